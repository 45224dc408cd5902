"""Rows that repeat others, at another level or approximately, and rows with inertias far apart."""

from __future__ import annotations

import re

import casadi as ca
import numpy as np
import pytest

import pfaffian as pf
from pfaffian.errors import ModelError, RunWarning
from pfaffian.maths.linear import orthogonalise
from tests.tolerance import close

NOTHING = {"mass": 0.0, "com": (0, 0, 0), "inertia": 0.0}


def thin_disk(rows: int) -> pf.Mechanism:
    """A disk on its edge by yaw, lean and spin of massless bodies; its height is phi = 0, with two or three rows of no slip."""
    radius = 0.3
    bodies = [pf.body(n, **NOTHING) for n in ("cart", "fork", "frame")]
    bodies.append(pf.body("disk", 2.0, (0, 0, 0), np.diag([0.045, 0.09, 0.045])))
    joints = [
        pf.joint("at", "translation", "world", "cart"),
        pf.joint("yaw", "revolute", "cart", "fork", axis=(0, 0, 1)),
        pf.joint("lean", "revolute", "fork", "frame", axis=(1, 0, 0)),
        pf.joint("spin", "revolute", "frame", "disk", axis=(0, 1, 0)),
    ]

    def slip(k):
        V = k.twist("disk", "LOCAL_WORLD_ALIGNED")
        return (V[:3] - radius * ca.cross(V[3:], k.rotation("frame")[:, 2]))[:rows]

    height = pf.holonomic("height", lambda k: k.position("frame")[2] - radius * ca.cos(k.joint("lean")))
    return pf.mechanism("disk", bodies, joints, constraints=[height, pf.nonholonomic("slip", slip)])


def test_a_rate_that_repeats_a_position() -> None:
    """The third row of slip is the rate of the height: it changes nothing, not even the correction of the height."""
    q, v = {"yaw": 0.2, "lean": 0.1}, {"yaw": 0.3, "lean": 0.5, "spin": 6.0}
    runs = [pf.run(thin_disk(rows), q, v, duration=2.0, every=100, record=("q", "rank", "energy")) for rows in (2, 3)]
    for r in runs:
        assert r.status == 0 and (r["rank"].values == 3).all()
        close(r.energy, np.full(len(r.time), float(r.energy[0])), 1e-9, "energy")
    close(runs[1].q, runs[0].q.values, 1e-10, "motion with a redundant row")


def ring(axial: float) -> pf.Mechanism:
    """Five free rods in a ring, hinged at their ends; the inertia about their axes is a Parameter."""
    I = pf.Parameter("axial", axial, "kg m^2")
    bodies = [pf.body(f"rod {i}", 1.0, (0, 0, 0), [[I, 0, 0], [0, 0.08, 0], [0, 0, 0.08]]) for i in range(5)]
    joints = [pf.joint(f"free {i}", "free", "world", f"rod {i}") for i in range(5)]
    ends = {"placement_a": pf.pose((0.5, 0, 0)), "placement_b": pf.pose((-0.5, 0, 0)), "axis": (0, 0, 1)}
    loops = [pf.closure(f"hinge {i}", "revolute", f"rod {i}", f"rod {(i + 1) % 5}", **ends) for i in range(5)]
    return pf.mechanism("ring", bodies, joints, constraints=loops, parameters=[I])


def pentagon() -> np.ndarray:
    """q of the ring as a regular pentagon."""
    angles, r = 2 * np.pi / 5 * np.arange(5), 0.5 / np.tan(np.pi / 5)
    return np.concatenate([[r * np.sin(a), -r * np.cos(a), 0, 0, 0, np.sin(a / 2), np.cos(a / 2)] for a in angles])


def test_rhombs_are_judged_where_they_are_not_flat() -> None:
    """Steps onto the constraints often end near flat ones. Rows that depend on each other there alone, many in a long row of
    rhombs, would make the factor full."""
    hinge = {"kind": "revolute", "axis": (0, 1, 0)}
    bodies = [pf.body(f"{part} {i}", 1.0, inertia=0.1) for i in range(8) for part in ("post", "beam")]
    joints = [pf.joint(f"foot {i}", parent="world", child=f"post {i}", placement=(0.7 * i, 0, 0), **hinge) for i in range(8)]
    joints += [pf.joint(f"top {i}", parent=f"post {i}", child=f"beam {i}", placement=(0, 0, 0.7), **hinge) for i in range(8)]
    meets = [pf.coincide(f"corner {i}", f"beam {i}", (0.7, 0, 0), f"post {i + 1}", (0, 0, 0.7)) for i in range(7)]
    assert not pf.symbols(pf.mechanism("row of rhombs", bodies, joints, constraints=meets)).typical.dependent


def test_light_axes_by_a_parameter() -> None:
    """The 25 rows have rank 22 whatever the inertia; an inertia far from its default is refused by name."""
    q, v = pentagon(), np.random.default_rng(1).normal(size=30)
    for axial in (1e-2, 1e-12):
        assert pf.forward_dynamics(ring(axial), q, v).rank == 22, axial
        assert pf.forward_dynamics(ring(axial), q, v, parameters={"axial": 3 * axial}).rank == 22
    for ask in (pf.forward_dynamics, pf.assemble, pf.mass_matrix):
        with pytest.raises(ModelError, match=r"'axial' is 1e-12 in run 0 and 0.01 by default.*choose a default of that size"):
            ask(ring(1e-2), q, parameters={"axial": 1e-12})
    with pytest.raises(ModelError, match="in run 1"):
        pf.run(ring(1e-12), q, duration=0.01, parameters={"axial": [1e-12, 1e-2]})


def between_planes(apart: float, names: tuple[str, ...] = ("one", "two")) -> pf.Mechanism:
    """A particle on steep planes, whose normals in the x-z plane differ by `apart` from one to the next."""
    planes = [pf.holonomic(n, lambda k, i=i: (1 + i * apart) * k.q[0] + 0.3 * k.q[2]) for i, n in enumerate(names)]
    joint = pf.joint("at", "translation", "world", "particle")
    return pf.mechanism("planes", [pf.body("particle", 1.0, (0, 0, 0), 0.0)], [joint], constraints=planes)


@pytest.mark.parametrize(("apart", "rank"), [(0.0, 1), (1e-13, 1), (1e-4, 2)])
def test_rows_of_clear_rank_give_no_warning(apart: float, rank: int, recwarn: pytest.WarningsRecorder) -> None:
    r = pf.run(between_planes(apart), duration=0.1, every=10)
    assert (r["rank"].values == rank).all() and not recwarn.list
    assert r.attrs["left_out"] < 1e-10


def test_rows_that_the_tolerance_leaves_out() -> None:
    """Two planes 1e-7 apart would hold the particle exactly; within the tolerance it falls, and a warning says so."""
    with pytest.warns(
        RunWarning, match=r"up to 2\.8e-08 of their length.*rank tolerance of 1e-05, so '(one|two)' constrain nothing"
    ):
        r = pf.run(between_planes(1e-7), duration=0.1, every=10)
    assert (r["rank"].values == 1).all() and r.q[-1, 2] < -0.04
    close(r.attrs["left_out"], 1e-7 * 0.3 / 1.09, 1e-3, "remainder of the second row", scale=1e-8)


def test_many_rows_and_runs_are_reported_once(recwarn: pytest.WarningsRecorder) -> None:
    """Seven rows have rank one: one warning names four of the six left out, for ten runs that all begin there."""
    r = pf.run(between_planes(1e-7, tuple("abcdefg")), np.zeros((10, 3)), duration=0.001, backend="interpreter")
    (message,) = [str(w.message) for w in recwarn.list]
    assert re.search("so '[a-g]'(, '[a-g]'){3} and 2 more constrain nothing here", message)
    assert 1e-8 < r.attrs["left_out"] < 6e-7
    bare = pf.run(between_planes(0.0, ()), duration=0.001, backend="interpreter")
    assert "left_out" not in bare.attrs


def test_rows_that_a_parameter_of_the_run_makes_dependent(recwarn: pytest.WarningsRecorder) -> None:
    """A point of a ball is on two planes, which a parameter can make the same."""

    def rank(default: float, tilt: float) -> float:
        x = pf.Parameter("tilt", default, "rad")
        ends = {"axis": (0, 1, 0), "placement_b": pf.pose((1.0, 0, 0))}
        planes = [
            pf.closure(name, "point-on-plane", "world", "ball", placement_a=pf.pose(rpy=(a, 0, 0)), **ends)
            for name, a in (("first", 0.0), ("second", x))
        ]
        ball = pf.body("ball", 1.0, (0.5, 0, 0), np.diag([0.1, 0.2, 0.3]))
        joint = pf.joint("joint", "spherical", "world", "ball")
        m = pf.mechanism("planes", [ball], [joint], constraints=planes, parameters=[x])
        r = pf.run(m, duration=0.01, parameters={"tilt": [0.3, tilt]}, backend="interpreter", record=["rank"])
        return float(r["rank"][-1, -1])

    assert (rank(0.4, 0.2), rank(0.0, 0.0), rank(0.0, 0.4)) == (2, 1, 2)
    assert not recwarn.list
    with pytest.warns(RunWarning, match=r"with the tilt of a run, rows first.vz, second.vz depend on each other"):
        assert rank(0.4, 0.0) == 1


UNSURE = 1e-11
"""1e-4 of it is the rounding of a squared remainder: kept rows are known to EPS / 1e-5, and remainders are 1e-5 at most."""


@pytest.mark.parametrize("seed", range(12))
def test_remainders_of_dropped_rows_are_their_distances_from_the_kept_ones(seed: int) -> None:
    """Random rows of nearly low rank, some zero, in their order and by groups, with and without weights."""
    random = np.random.default_rng(seed)
    m, n, rank = (int(random.integers(1, most)) for most in (9, 9, 5))
    A = random.normal(size=(m, rank)) @ random.normal(size=(rank, n)) + 10.0 ** -random.integers(6, 10) * random.normal(
        size=(m, n)
    )
    A[random.integers(m)] *= random.integers(2)
    size, counted = random.uniform(0.5, 1.5, m), random.uniform(0.2, 1, n) if seed % 2 else np.ones(n)
    order, cut = random.permutation(m).tolist(), int(random.integers(m))
    for groups in ([[i] for i in range(m)], [[i] for i in order[:cut]] + [order[cut:]]):
        rows = orthogonalise(ca.SX(A), ca.SX(m, 0), 1e-5, ca.SX(size), ca.DM(counted).T, groups=groups)
        kept, left = (np.array(ca.DM(x))[:, 0] for x in (rows.independent, rows.left))
        before: list[int] = []
        for group in groups:
            before += [i for i in group if kept[i]]
            for i in (i for i in group if not kept[i]):
                apart = A[i] - (np.linalg.lstsq(A[before].T, A[i])[0] @ A[before] if before else 0)
                expected = ((apart * counted) ** 2).sum() * min(1, size[i]) / max(((A[i] * counted) ** 2).sum(), 1e-300)
                close(left[i], expected, 1e-4, f"row {i}", max(expected, UNSURE))


PARALLEL = {"a": -0.4, "b": 0.8, "d": -1.6}
"""A guess near a configuration in which the four-bar closes [rad]."""


def tilted_four_bar(tilt: float, turn: float) -> pf.Mechanism:
    """Crank, coupler and rocker in the x-z plane, closed by a ball; the coupler's hinge is tilted by `tilt` [rad].

    turn: angle of that hinge at which the ends meet across the plane.
    """
    lengths = {"crank": 0.3, "coupler": 0.8, "rocker": 0.7}
    bodies = [pf.body(n, 1 + l, com=(l / 2, 0, 0), inertia=l * l / 6) for n, l in lengths.items()]
    joints = [
        pf.joint("a", "revolute", "world", "crank", axis=(0, 1, 0)),
        pf.joint("b", "revolute", "crank", "coupler", axis=(tilt, 1, 0), placement=pf.pose((0.3, 0, 0))),
        pf.joint("d", "revolute", "world", "rocker", axis=(0, 1, 0), placement=pf.pose((0.9, 0, 0))),
    ]
    ends = {"placement_a": pf.pose((0.8, 0, 0)), "placement_b": pf.pose((0.7, 0.8 * tilt * (1 - np.cos(turn)), 0))}
    return pf.mechanism("four-bar", bodies, joints, constraints=[pf.closure("c", "spherical", "coupler", "rocker", **ends)])


@pytest.mark.parametrize("tilt", [7e-8, 2e-6])
def test_a_loop_moves_although_a_file_tilts_its_axes_by_rounding(tilt: float) -> None:
    """1.5708 for a right angle turns axes that should be parallel by up to 1e-6. The loop moves as the planar one does, and its
    ends separate by as much as the tilt moves them out of the plane."""
    plane = tilted_four_bar(0.0, 0.0)
    q = pf.assemble(plane, guess=PARALLEL).q
    turn = float(q[1])
    how = {"duration": 0.3, "step": 2e-3, "backend": "interpreter"}
    exact, tilted = pf.run(plane, q, **how), tilted_four_bar(tilt, turn)
    with pytest.warns(RunWarning, match="'c.vy' constrain nothing here"):
        found = pf.run(tilted, q, **how)
    assert (exact["rank"] == 2).all() and (found["rank"] == 2).all()
    close(found.q.values, exact.q.values, 3 * tilt, "motion", 1.0)
    turns = exact.q.sel(coordinate="b").values
    assert np.ptp(turns) > 0.1
    phi = pf.compile_terms(tilted, {"phi": lambda T: T.rows.phi}, backend="interpreter", lanes=1)
    gap = 0.8 * tilt * (np.cos(turn) - np.cos(turns))
    left = [float(np.abs(phi(q)["phi"]).max()) for q in found.q.values]
    close(left, np.abs(gap), 1e-3, "gap across the plane", 0.8 * tilt)
