"""Coordinates of closures that are held like those of joints: the same machine cut elsewhere tells what is right."""

import casadi as ca
import numpy as np
import pytest

import pfaffian as pf
from tests.loops_cut_anywhere import FOUR_BAR, linkage
from tests.tolerance import ALGEBRA, close

LOOSE = 1e3 * ALGEBRA
"""Difference of two states that satisfy their constraints to rounding, from Newton's iterations of different machines."""

HINGES = "ABCD"


def both(held: str) -> tuple[pf.Mechanism, pf.Mechanism]:
    """The four-bar cut at the hinge that is held, and the one cut opposite."""
    return linkage(FOUR_BAR, held), linkage(FOUR_BAR, "ABCD"[("ABCD".index(held) + 2) % 4])


def poses(m: pf.Mechanism, q: np.ndarray) -> np.ndarray:
    found = pf.forward_kinematics(m, q)
    return np.array([[*found[b].position, *np.ravel(found[b].rotation)] for b in ("crank", "coupler", "rocker")])


@pytest.mark.parametrize("held", HINGES)
def test_a_closure_is_held_like_the_joint_of_another_cut(held):
    cut, tree = both(held)
    value = pf.assemble(linkage(FOUR_BAR, "C"), {"A": 0.5})  # a pose that closes
    angle = {n: float(x) for n, x in value.named.items()} | {
        "C": pf.assemble(linkage(FOUR_BAR, "A"), {"D": value.named["D"]}).named["C"]
    }
    guess = {n: x for n, x in angle.items() if n in cut.q_names}
    closed = pf.assemble(cut, {held: angle[held]}, guess=guess)
    there = pf.assemble(tree, {held: angle[held]}, guess={n: x for n, x in angle.items() if n in tree.q_names and n != held})
    close(poses(cut, closed.q), poses(tree, there.q), LOOSE, "poses")
    assert closed.continued and closed.q_names == cut.q_names and closed.q.shape == closed.moved.shape == (cut.nq,)


def test_rates_batches_and_runs():
    cut, tree = linkage(FOUR_BAR, "C", {"C": {"damping": 0.1}}), linkage(FOUR_BAR, "D", {"C": {"damping": 0.1}})
    angles, rates = np.array([0.3, -0.2, 0.1]), np.array([0.5, -2.0, 0.0])
    many, there = pf.assemble(cut, {"C": angles}, {"C": rates}), pf.assemble(tree, {"C": angles}, {"C": rates})
    shared = [n for n in cut.q_names if n in tree.q_names]
    for n in shared:
        close(many.named[n], there.named[n], LOOSE, n)
        close(many.v[:, cut.v_names.index(n)], there.v[:, tree.v_names.index(n)], LOOSE, f"rate of {n}")
    one = pf.assemble(cut, {"C": -0.2}, {"C": -2.0})
    assert (one.q == many.q[1]).all() and (one.v == many.v[1]).all() and one.distance == many.distance[1]
    r = pf.run(cut, {"C": angles}, {"C": rates}, duration=0.01, step=1e-3, backend="interpreter")
    close(r["loop"].values[:, 0, 0], angles, LOOSE, "angle recorded at the start")
    close(r["loop_rate"].values[:, 0, 0], rates, LOOSE, "rate recorded at the start")
    assert r["moved"].shape == (3, cut.nq) and r["q"].shape[-1] == cut.nq


def test_a_guess_whose_closure_is_held_keeps_its_angle_and_rate():
    cut = linkage(FOUR_BAR, "B", {"B": {"damping": 0.1}})
    near = pf.assemble(cut, {"A": 1.2}).q + [0.02, -0.03, 0.01]
    q = pf.run(cut, near, [1.0, 0.0, 0.0], correct_start=False, duration=0.001, step=1e-3, backend="interpreter",
               error_bound=np.inf)["loop"].values.ravel()[0]  # fmt: skip
    a = pf.assemble(cut, near, hold=["B"])
    found = pf.run(cut, a.q, duration=0.001, step=1e-3, backend="interpreter")["loop"].values.ravel()[0]
    close(found, q, LOOSE, "angle of the closure")
    floating = linkage(FOUR_BAR, "B", floating=True)
    light, heavy = (pf.assemble(floating, {"B": -1.0}, weight=w).moved[0] for w in (None, {"base.vx": 1e6}))
    assert abs(heavy) < 0.01 * abs(light)
    assert pf.assemble(cut, {"A": a.q[0]}, guess={"B": float(q), "D": float(a.q[1])}).continued


def test_turns_of_a_crank_that_closes_the_loop():
    cut = linkage(FOUR_BAR, "A")
    tree, angles = linkage(FOUR_BAR, "C"), np.array([1.0, 7.0, 20.0, -20.0])
    closed, there = pf.assemble(cut, {"A": angles}), pf.assemble(tree, {"A": angles})
    close(np.cos(closed.named["D"]), np.cos(there.named["D"]), LOOSE, "rocker")
    r = pf.run(linkage(FOUR_BAR, "A", {"A": {"damping": 0.1}}), closed.q, duration=1e-3, step=1e-3, backend="interpreter")
    close(r["loop"].values[:, 0, 0], angles, LOOSE, "angle with its turns")
    # A rocker makes no whole turns, whatever a joint of the tree would take for the same pose.
    with pytest.raises(pf.errors.RunError, match=r"'D' = 6 rad cannot be kept: the loop closes at -0\.283185 rad"):
        pf.assemble(linkage(FOUR_BAR, "D"), {"D": 6.0})
    some = pf.assemble(linkage(FOUR_BAR, "D"), {"D": np.array([0.2, 6.0, -0.3])})
    assert np.isnan(some.q).all(axis=1).tolist() == [True, True, False]
    r = pf.run(linkage(FOUR_BAR, "D"), {"D": np.array([0.2, 6.0, -0.3])}, duration=0.01, step=1e-3, backend="interpreter")
    first, second, third = pf.results.causes(r)
    assert "is left with phi" in first and "whole turns away" in second and third == "finished"


def test_a_motion_of_a_closure_is_followed():
    cut, tree, t = linkage(FOUR_BAR, "A"), linkage(FOUR_BAR, "C"), np.linspace(0, 1, 40)
    q = {"A": 0.4 + 7 * t**2}
    closed, there = (pf.assemble(m, q, t=t, along=True) for m in (cut, tree))
    close(closed.named["D"], there.named["D"], LOOSE, "rocker")
    for x, y in ((closed.v, there.v), (closed.a, there.a)):
        close(x[:, cut.v_names.index("D")], y[:, tree.v_names.index("D")], 1e3 * LOOSE, "rates of the rocker")
    assert closed.q.shape == (40, cut.nq)
    with pytest.raises(pf.ModelError, match="along=True takes no coordinate of closure 'A'"):
        pf.assemble(cut, {"D": q["A"]}, guess={"A": 1.0}, t=t, along=True)


@pytest.mark.parametrize(
    "kind, values, more",
    [
        ("universal", {"C.about_a": 0.3, "C.about_b": -0.7}, {"axis": (1, 0, 0), "axis_b": (0, 0.6, 0.8)}),
        ("cylindrical", {"C.angle": 2.0}, {"axis": (1, 1, 0)}),
        ("planar", {"C.x": 0.2, "C.angle": -0.4}, {"axis": (0, 1, 1)}),
        ("helical", {"C": 9.0}, {"axis": (0, 1, 1), "pitch": 0.1}),
        ("spherical", dict(zip(("C.qx", "C.qy", "C.qz", "C.qw"), (0.5, -0.1, 0.7, 0.5), strict=True)), {}),
    ],
)
def test_kinds_of_closures_are_held(kind, values, more):
    ends = {"placement_a": (0.3, 0, 0.1), "placement_b": (0, 0.2, 0)}
    loop = pf.closure("C", kind, "world", "hull", damping=0.1, **ends, **more)
    bodies = [pf.body(n, 2.0, com=(0.3, 0.1, 0), inertia=(0.1, 0.2, 0.25)) for n in ("hull", "other")]
    loops = [pf.closure("E", "revolute", "world", "other", damping=0.1), loop]
    m = pf.mechanism("hulls", bodies, [pf.joint(b.name, "free", "world", b.name) for b in bodies], constraints=loops)
    a = pf.assemble(m, values)
    r = pf.run(m, a.q, duration=1e-3, step=1e-3, backend="interpreter")
    there = dict(zip(r.loop_coordinate.values.tolist(), r["loop"].values[0].tolist(), strict=True))
    length = np.sqrt(sum(x**2 for x in values.values())) if kind == "spherical" else 1.0
    for name, x in values.items():
        close(there[name], x / length, LOOSE, name)
    assert there["E"] == 0


def test_what_a_closure_leaves_free_moves_alike_in_every_size():
    """A planar closure whose angle is held: the hull slides to where its own inertia takes it, not that of a joint."""
    found = []
    for size in (1e-3, 1.0, 1e4):
        ends = {"placement_a": (0.3 * size, 0, 0.1 * size), "placement_b": (0, 0.2 * size, 0), "axis": (1, 1, 0)}
        inertia = (0.1 * size**2, 0.2 * size**2, 0.25 * size**2)
        hull = pf.body("hull", 2.0, com=(0.3 * size, 0.1 * size, 0), inertia=inertia)
        base, loop = pf.joint("base", "free", "world", "hull"), pf.closure("C", "planar", "world", "hull", **ends)
        a = pf.assemble(pf.mechanism("hull", [hull], [base], constraints=[loop]), {"C.angle": 2.0})
        found.append([*a.q[:3] / size, *a.q[3:], a.distance / size])
    close(np.array(found), np.array([found[1]] * 3), LOOSE, "states relative to the size")


def test_what_cannot_be_held_is_refused():
    spring = pf.joint("bob", "translation", "world", "bob")
    rod = pf.closure("rod", "distance", "world", "bob", length=1.0)
    m = pf.mechanism("pendulum", [pf.body("bob", 1.0)], [spring], constraints=[rod])
    with pytest.raises(pf.ModelError, match=r"closure 'rod' \(distance\) has no coordinate"):
        pf.assemble(m, {"rod": 1.0})
    cut = linkage(FOUR_BAR, "C")
    for named in ({"q": {"E": 1.0}}, {"v": {"E": 1.0}}, {"guess": {"E": 1.0}}, {"hold": ["E"]}):
        with pytest.raises(pf.ModelError, match=f"{next(iter(named))}: there is no 'E'; there are A, B, D, C"):
            pf.assemble(cut, **named)
    with pytest.raises(pf.ModelError, match="there are A, B, D, C, coupler, crank, rocker"):
        pf.assemble(cut, {"E": [0.1, 0.2]}, along=True)
    with pytest.raises(pf.ModelError, match="an impact takes no coordinate of closure 'C'"):
        pf.impact(cut, {"C": 0.2}, [0.0, 0.0, 0.0])
    with pytest.raises(pf.ModelError, match="a start without correction takes no coordinate of closure 'C'"):
        pf.run(cut, {"C": 0.2}, duration=0.1, correct_start=False)
    (closed,) = cut.constraints
    held = cut.with_(constraints=[pf.servo(closed, lambda k: ca.SX.eye(5)[:, :3])])
    with pytest.raises(pf.ModelError, match="closure 'C' is held by forces"):
        pf.assemble(held, {"C": 0.2})
    chosen = cut.with_(velocities=pf.velocities(lambda k: ca.SX.eye(3) * 2, names=["a", "b", "c"]))
    with pytest.raises(pf.ModelError, match="closure 'C' cannot be held where velocities are chosen"):
        pf.assemble(chosen, {"C": 0.2})
