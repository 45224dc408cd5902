"""Plastic impact against the merged machine, by momentum alone."""

from __future__ import annotations

import numpy as np
import pytest

import pfaffian as pf
from tests.simulate.test_reduction import satellite, start
from tests.tolerance import close

OBJECT = pf.body("object", 1.7, com=(0.1, -0.2, 0.05), inertia=(0.05, 0.08, 0.09))
GRASP = pf.pose((0.1, 0.3, 0.1), rpy=(0.3, -0.5, 0.2)), pf.pose((-0.2, 0.1, 0), rpy=(0, 0.4, 0))
"""Poses of the grasp in the hand and in the object."""


def meeting() -> tuple[pf.Mechanism, np.ndarray, np.ndarray]:
    """A satellite whose hand is at a tumbling object that it is to grasp, their configuration, and their velocities before."""
    m = satellite(actuators=[])
    weld = pf.closure("grasp", "fixed", "right", "object", placement_a=GRASP[0], placement_b=GRASP[1])
    both = m.with_(bodies=[*m.bodies, OBJECT], joints=[*m.joints, pf.joint("tumble", "free", "world", "object")],
                   constraints=[weld])  # fmt: skip
    q, v = start(both, 3)
    return both, pf.assemble(both, q, hold=["flight", "l", "r"]).q, v


def test_velocities_after_a_grasp_are_those_of_the_merged_machine():
    """With the object in the hand M' v' = X^T M v-, where v = X v' are the velocities of machine and object."""
    m, q, v = meeting()
    before = v.copy()
    hit = pf.impact(m, q, v)
    close(pf.momentum(m, q, hit.v), pf.momentum(m, q, v), 1e-12, "momentum")
    assert (v == before).all() and np.abs(hit.v - v).max() > 0.1
    grip = pf.joint("held", "fixed", "right", "object", placement=GRASP[0] @ GRASP[1].inverse())
    merged = m.with_(joints=[*m.joints[:-1], grip], constraints=[])
    X = np.vstack([np.eye(8), pf.jacobian(merged, "object", q[:9])])
    M = pf.mass_matrix(m, q)
    close(pf.mass_matrix(merged, q[:9]), X.T @ M @ X, 1e-12, "M'")
    close(hit.v, X @ np.linalg.solve(X.T @ M @ X, X.T @ M @ v), 1e-11, "v+")
    lost = pf.energy(m, q, v).kinetic - pf.energy(m, q, hit.v).kinetic
    close(hit.loss, lost, 1e-12, "energy lost is that of the velocities lost")
    assert hit.loss > 0.1
    close(hit.impulse, M @ (hit.v - v), 1e-12, "impulse")
    close(pf.impact(m, q, hit.v).v, hit.v, 1e-12, "nothing more to hit")


def test_an_impact_equals_assembly_and_takes_batches():
    m, q, v = meeting()
    many = pf.impact(m, np.tile(q, (3, 1)), np.outer([1, 2, -1], v))
    close(many.v, np.outer([1, 2, -1], many.v[0]), 1e-11, "linear")
    close(many.v[0], pf.assemble(m, q, v).v, 1e-11, "assemble")
    close(many.loss, many.loss[0] * np.array([1, 4, 1]), 1e-11, "loss")


def test_any_argument_may_make_a_batch():
    """Batches of one run or two, by q, v or parameters. Constraints are evaluated at the time of the impact."""
    mass = pf.Parameter("mass", 2.0, "kg")
    cart, stop = pf.body("cart", mass, inertia=0.1), pf.nonholonomic("belt", lambda k: k.v[0] - 3 * k.t)
    m = pf.mechanism("cart", [cart], [pf.joint("j", "prismatic", "world", "cart")], constraints=[stop], parameters=[mass])
    assert [x.tolist() for x in pf.impact(m, [0], [1])] == [[0], [-2], 1]
    assert [x.tolist() for x in pf.impact(m, [0], [1], t=1)] == [[3], [4], 4]
    assert [x.tolist() for x in pf.impact(m, [[0]], [1])] == [[[0]], [[-2]], [1]]
    assert [x.tolist() for x in pf.impact(m, [0], {"j": [1, 2]})] == [[[0], [0]], [[-2], [-4]], [1, 4]]
    assert [x.tolist() for x in pf.impact(m, [0], [1], parameters=[[5.0]])] == [[[0]], [[-5]], [2.5]]
    with pytest.raises(pf.ModelError, match=r"^t: 'now' is not an array"):
        pf.impact(m, [0], [1], t="now")


def test_a_run_makes_the_same_impact_where_a_constraint_activates():
    m, q, v = meeting()
    (weld,), h = m.constraints, 1e-8
    late = m.with_(constraints=[pf.constraints.active_while(weld, lambda k: k.t > h / 2)])
    r = pf.run(late, q, v, duration=h, step=h, backend="interpreter")
    close(r["v"].values[-1], pf.impact(m, q, v).v, 1e-4, "v after a step of h, q being off by h")
    assert np.abs(r["v"].values[0] - v).max() == 0


def test_a_tilted_rod_lands_on_its_tip():
    """A textbook result: a rod of length l falls at speed v without turning, and its tip hits a frictionless floor at angle
    a; then it turns at 6 v cos a / (l (1 + 3 cos^2 a)) [rad/s]."""
    l, a, fall = 1.4, 0.6, 2.0
    rod = pf.body("rod", 0.9, inertia=(0, 0.9 * l**2 / 12, 0.9 * l**2 / 12))
    floor = pf.holonomic("floor", lambda k: k.position("rod", (-l / 2, 0, 0))[1])
    m = pf.mechanism("rod", [rod], [pf.joint("j", "planar", "world", "rod")], constraints=[floor], gravity=(0, 0, 0))
    q = np.array([0, l / 2 * np.sin(a), a])
    hit = pf.impact(m, q, [-fall * np.sin(a), -fall * np.cos(a), 0])
    close(hit.v[2], -6 * fall * np.cos(a) / (l * (1 + 3 * np.cos(a) ** 2)), 1e-12, "w")


def test_wrong_impacts_are_refused():
    m, q, v = meeting()
    with pytest.raises(pf.RunError, match=r"impact: grasp\.\w+ is .* off before the impact; put q onto the constraints first"):
        pf.impact(m, q + np.r_[0.1, np.zeros(15)], v)
    with pytest.raises(pf.ModelError, match="has no constraints that could begin"):
        pf.impact(m.with_(constraints=[]), q, v)
    apart = pf.nonholonomic("apart", lambda k: k.joint_rate("l") - 1)
    still = pf.nonholonomic("still", lambda k: k.joint_rate("l"))
    with pytest.raises(pf.RunError, match="no velocities satisfy all constraints"):
        pf.impact(m.with_(constraints=[apart, still]), q, v)
