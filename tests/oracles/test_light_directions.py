"""Rank and acceleration with bodies thin as threads: inertia about one axis is 1e-14 to 1 of that about the others."""

from __future__ import annotations

import warnings

import mpmath
import numpy as np
import pytest
import scipy.linalg
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import pfaffian as pf
from tests.oracles.test_formulations import unit_rows
from tests.random_mechanisms import CLOSURES, Case, closing, extra, matrices, on_velocity, placements, random_pose
from tests.tolerance import SATISFIED, close

SURE = ["gauss", "quasi-velocity", "nullspace", "control-force", "projection-tuned"]
MIXING = ["multipliers", "projection", "projection-symmetric", "quasi-velocity-symmetric"]

INDEPENDENT, DEPENDENT = 1e-2, 1e-9
"""Bounds on singular values of unit rows, in velocity coordinates: above, below; no example has one in between."""

THREAD = 1e-9
"""Tolerance with twenty velocities whose inertias differ by up to 1e14, relative to the energy of the free acceleration."""


def exact(r: dict, rank: int) -> np.ndarray:
    """v_dot with 60 digits, by multipliers of `rank` rows that pivots in the velocity coordinates choose."""
    A, b = r["A"], r["b"].ravel()
    length = np.linalg.norm(A, axis=1, keepdims=True)
    rows = sorted(scipy.linalg.qr((A / np.where(length > 0, length, 1)).T, pivoting=True)[2][:rank])
    n = A.shape[1]
    with mpmath.workdps(60):
        K = mpmath.zeros(n + rank)
        K[:n, :n] = mpmath.matrix(r["M"].tolist())
        if rank:
            K[n:, :n] = mpmath.matrix(A[rows].tolist())
            K[:n, n:] = K[n:, :n].T
        solved = mpmath.lu_solve(K, mpmath.matrix([*r["force"].ravel().tolist(), *b[rows].tolist()]))
    return np.array([float(x) for x in solved[:n]])


def motions(case: Case, names: list[str]) -> dict:
    made: dict = {}
    parts = {f"{n} {i}": lambda T, n=n, i=i: made.setdefault(n, pf.FORMULATIONS[n](T))[i] for n in names for i in (0, 2)}
    terms = {
        "M": lambda T: T.M,
        "A": lambda T: T.A,
        "b": lambda T: T.b,
        "force": lambda T: T.force,
        "size": lambda T: T.row_size,
        "eta": lambda T: T.rows.eta,
    }
    return matrices(case, parts | terms)


def singular_values(r: dict) -> np.ndarray:
    return np.linalg.svd(unit_rows(r["A"], r["size"]), compute_uv=False)


def agree(r: dict, names: list[str]) -> None:
    """Compare ranks with an SVD of A, and accelerations with those of 60 digits."""
    rank = int((singular_values(r) > DEPENDENT).sum())
    v_dot, M = exact(r, rank), r["M"]
    free = np.linalg.solve(M, r["force"].ravel())
    scale = np.sqrt(max(v_dot @ M @ v_dot, free @ M @ free, M.max()))  # at least that of 1 rad/s^2 of the largest inertia
    for n in names:
        assert r[f"{n} 2"] == rank, f"rank by {n}"
        off = r[f"{n} 0"].ravel() - v_dot
        close(np.sqrt(off @ M @ off), 0.0, THREAD, f"v_dot by {n}", scale)


CORNERS = np.array([[0, 0, 0], [1, 0, 0], [1, -1, 0], [1, -1, 1], [0, -1, 1], [0, 0, 1.0]])
HINGES = np.array([[0, 1, 0], [0, 0, 1], [1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 0, 0]])


def bricard(axial: float) -> Case:
    """Bricard's loop of five rods along edges of a cube and six hinges: 30 rows of rank 29 on five free bodies."""
    bodies, joints, hinges, q = [], [], [], []
    middle = (CORNERS[:-1] + CORNERS[1:]) / 2
    for i in range(5):
        along = np.abs(CORNERS[i + 1] - CORNERS[i])
        bodies.append(pf.body(f"rod {i}", 1.0, inertia=tuple((1 - along) / 12 + along * axial / 12)))
        joints.append(pf.joint(f"flight {i}", "free", "world", f"rod {i}"))
        q += [*middle[i], 0, 0, 0, 1]
    names, at = ["world", *(b.name for b in bodies), "world"], [np.zeros(3), *middle, np.zeros(3)]
    for i, (corner, axis) in enumerate(zip(CORNERS, HINGES, strict=True)):
        ends = {"placement_a": pf.pose(corner - at[i]), "placement_b": pf.pose(corner - at[i + 1])}
        hinges.append(pf.closure(f"hinge {i}", "revolute", names[i], names[i + 1], axis=tuple(axis), **ends))
    m = pf.mechanism("Bricard", bodies, joints, constraints=hinges)
    return Case(m, np.array(q), np.zeros(m.nv), np.zeros(0), 0.0)


@pytest.mark.parametrize("axial", [1e-10, 1e-14])
def test_rods_thin_as_threads_keep_their_rank(axial):
    agree(motions(bricard(axial), ["gauss"]), ["gauss"])


@st.composite
def threads(draw: st.DrawFn) -> Case:
    """Cases of one or two bodies, thin about one axis each, on joints and closures, some of them written twice."""
    kinds = draw(st.lists(st.sampled_from(("revolute", "spherical", "planar", "free", "free")), min_size=1, max_size=2))
    parents = [draw(st.integers(-1, i - 1)) for i in range(len(kinds))]
    closures = draw(st.lists(st.sampled_from(CLOSURES), min_size=1, max_size=2))
    extras = draw(st.lists(st.sampled_from(("duplicate", "reversed", "rolling")), max_size=2, unique=True))
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    bodies, joints = [], []
    for i, (kind, parent) in enumerate(zip(kinds, parents, strict=True)):
        inertia = np.full(3, 10 ** random.uniform(-3, -1))
        inertia[random.integers(3)] *= 10 ** random.uniform(-14, 0)
        bodies.append(pf.body(f"b{i}", 10 ** random.uniform(-1, 1), inertia=tuple(inertia)))
        above = "world" if parent < 0 else f"b{parent}"
        joints.append(pf.joint(f"j{i}", kind, above, f"b{i}", placement=random_pose(random)))
    m = pf.mechanism("threads", bodies, joints)
    q = pf.random_configuration(m, random)
    at, made = placements(m, q), []
    for i, kind in enumerate(closures):
        b = f"b{(i + 1) % len(bodies)}"
        a = str(random.choice([n for n in at if n != b]))
        made.append(closing(f"{kind} {i}", kind, a, b, random, at))
    for kind in extras:
        made += extra(kind, m, made, random, at, 0.0)
    m = m.with_(constraints=made)
    return Case(m, q, on_velocity(m, q, random.normal(size=m.nv), 0.0), np.zeros(0), 0.0)


@given(threads())
@settings(max_examples=12)
def test_rank_depends_on_the_rows_alone(case):
    names = SURE if case.m.nv <= 3 else ["gauss"]
    r = motions(case, names)
    s = singular_values(r)
    assume(((s > INDEPENDENT) | (s < DEPENDENT)).all())
    assume(np.abs(r["eta"]).max(initial=0.0) < SATISFIED)  # a body that cannot move cannot roll either: rows that contradict
    agree(r, names)


@pytest.mark.parametrize("name", MIXING)
def test_formulations_that_would_lose_digits_refuse(name):
    case = bricard(1e-10)
    with pytest.raises(pf.ModelError, match=f"'{name}'.*'gauss'"):
        pf.forward_dynamics(case.m, case.q, formulation=name)


def test_an_inertia_far_from_its_default_is_refused_where_rank_depends_on_it():
    """The defaults decide how rows are scaled for comparison, so that a run with a very different inertia is refused."""
    thin, long = pf.Parameter("axial", 0.1), pf.Parameter("length", 1e-9)
    rod = pf.body("rod", 1.0, inertia=(thin, 0.1, 0.1))
    joint = pf.joint("flight", "free", "world", "rod")
    keep = {"duration": 2e-3, "backend": "interpreter"}

    def hung(y: float) -> pf.Mechanism:
        """A rod on a wire at a point y beside its axis: for y = 0 no row depends on the turn about the axis."""
        wire = pf.holonomic("wire", lambda k: k.position("rod", (0, y, 0))[2] - long.symbol)
        return pf.mechanism("rod", [rod], [joint], constraints=[wire], parameters=[thin, long])

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pf.run(hung(0.0), {"flight.z": 1e-9}, parameters={"axial": [0.1, 1e-12]}, **keep)
        pf.run(hung(0.0), {"flight.z": 1e-2}, parameters={"length": 1e-2}, **keep)
        pf.run(hung(0.3), {"flight.z": 1e-9}, parameters={"axial": 1e-3}, **keep)
    with pytest.raises(pf.ModelError, match=r"'axial' is 1e-12 in run 1 and 0\.1 by default.*rank"):
        pf.run(hung(0.3), {"flight.z": 1e-9}, parameters={"axial": [0.1, 1e-12]}, **keep)
