"""Constraint rows in any unit: the same decisions and motions, or a word where a row is lost beside others."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import pfaffian as pf
from pfaffian.errors import collected
from pfaffian.evaluate.directions_at_states import planned
from pfaffian.maths.margins import CLEAR, ZERO, largest, span
from tests.tolerance import SATISFIED, close

INTERPRETED = {"backend": "interpreter"}


def sled(first: float = 1.0, second: float = 1.0, *, long: float = 1.0, tilt: float = 0.0) -> pf.Mechanism:
    """A sled of three joints on a blade, with a fin behind that has another; rows multiplied by two factors, lengths by one.

    tilt: [rad] of the axis about which it turns.
    """
    bodies = [pf.body("x", 0.0), pf.body("y", 0.0), pf.body("sled", 2.0, com=(0.2 * long, 0, 0), inertia=0.3 * long**2)]
    bodies.append(pf.body("fin", 0.5, com=(0.1 * long, 0, 0), inertia=0.02 * long**2))
    joints = [
        pf.joint("x", "prismatic", "world", "x", axis=(1, 0, 0)),
        pf.joint("y", "prismatic", "x", "y", axis=(0, 1, 0)),
        pf.joint("turn", "revolute", "y", "sled", placement=pf.pose(rpy=(tilt, 0, 0))),
        pf.joint("fin", "revolute", "sled", "fin", placement=(-0.4 * long, 0, 0)),
    ]

    def blade(k: pf.Kinematics) -> ca.SX:
        return first * (ca.cos(k.q[2]) * k.v[1] - ca.sin(k.q[2]) * k.v[0])

    def behind(k: pf.Kinematics) -> ca.SX:
        at = k.q[2] + k.q[3]
        return second * (ca.cos(at) * k.v[1] - ca.sin(at) * k.v[0] - 0.4 * long * ca.cos(k.q[3]) * k.v[2])

    rows = [pf.nonholonomic("blade", blade), pf.nonholonomic("behind", behind)]
    return pf.mechanism("sled", bodies, joints, constraints=rows, gravity=(0, 0, 0))


def test_rows_of_any_size_reduce_a_sled_alike():
    """All rows in another unit, and the second in one of its own; even where it is lost in a run, which tells so."""
    with collected() as told:
        want = planned(sled(), None)
        for factors in ((1e9, 1e9), (1.0, 1e-9), (1.0, 1e-13)):
            assert planned(sled(*factors), None) == want
    assert not told


@pytest.mark.parametrize("long", [1e-6, 1e6])
def test_a_sled_of_any_size_has_the_same_directions(long):
    with collected() as told:
        want, found = planned(sled(), None), planned(sled(long=long), None)
    assert found.found == want.found and not told
    assert [x._replace(least=()) for x in found.along.parts] == [x._replace(least=()) for x in want.along.parts]
    assert found.along.axes == want.along.axes
    assert found.along.length == pytest.approx(long * want.along.length, rel=0.01)


@pytest.mark.parametrize(("tilt", "told"), [(1e-12, False), (1e-7, True), (1e-3, False)])
def test_joints_that_nearly_form_a_group_are_told(tilt, told):
    with collected() as words:
        planned(sled(tilt=tilt), None)
    assert any("how many motions the joints" in x for x in words) is told


def test_a_row_that_is_lost_beside_another_is_told():
    """Of two rows that differ by more than twelve powers of ten the short one is nothing; each run names it."""
    q = [0, 0, 0.3, 0.5]
    for power, lost in ((-11, False), (-13, True), (-20, True)):
        with collected() as told:
            found = pf.forward_dynamics(sled(1.0, 10.0**power), q)
        assert int(found.rank) == (1 if lost else 2)
        assert any("'behind' counts as nothing" in x for x in told) is lost
    for _ in range(2):
        with collected() as told:
            pf.run(sled(1.0, 1e-13), q, duration=0.01, step=0.01, **INTERPRETED)
        assert any("'behind' counts as nothing" in x for x in told)


@pytest.mark.parametrize("power", [-12, 20])
def test_rounding_beside_rows_of_its_own_function_is_rounding_in_any_unit(power):
    """A planar linkage in skew axes whose end is held by three rows, of which one is rounding. None is told."""
    R = Rotation.from_euler("xyz", (0.4, 0.3, -0.2)).as_matrix()
    bodies = [pf.body(name, 1.0, com=0.15 * R[:, 0], inertia=0.02) for name in "abc"]
    places = ((0, 0, 0), 0.3 * R[:, 0], 0.5 * R[:, 0])
    joints = [
        pf.joint(b.name, "revolute", ("world", "a", "b")[i], b.name, axis=tuple(R[:, 1]), placement=tuple(places[i]))
        for i, b in enumerate(bodies)
    ]
    end, tip = 0.6 * R[:, 0] + 0.1 * R[:, 2], ca.DM(0.4 * R[:, 0])
    hold = pf.holonomic("end", lambda k: 10.0**power * (ca.DM(R.T) @ (k.pose("c").p + k.pose("c").R @ tip - ca.DM(end))))
    m = pf.mechanism("linkage", bodies, joints, constraints=[hold], gravity=tuple(-9.81 * R[:, 2]))
    with collected() as told:
        at = pf.assemble(m, [0.3, 0.8, -1.5], **INTERPRETED)
        motion = pf.forward_dynamics(m, at.q)
        plain = pf.forward_dynamics(m.with_(constraints=[pf.coincide("end", "c", 0.4 * R[:, 0], "world", end)]), at.q)
    assert int(motion.rank) == 2 and not told
    close(motion.v_dot, plain.v_dot, SATISFIED, "acceleration")


def test_margins_of_spans_and_of_the_largest():
    x = np.diag([3.0, 1.0, 0.0])
    for small in (0.0, 1e-13, 1e-10, 1e-8, 1e-3):
        for unit in (1e-6, 1.0, 1e6):
            x[2, 2] = 3 * small
            decision = span(unit * x)
            assert decision.answer == (3 if small > ZERO else 2)
            assert (decision.margin < CLEAR) is (small in (1e-10, 1e-8))
    assert span(np.zeros((3, 2))).answer == 0
    assert largest(np.array([1.0, 2.0, 2.0 + 1e-9, 1.5])) == 1 and largest(np.array([1.0, 2.0, 2.1])) == 2
