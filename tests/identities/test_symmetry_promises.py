"""What symmetries say and are verified at: words of doubts, states of verification, and fields along which no input works."""

from __future__ import annotations

from typing import Any

import casadi as ca
import numpy as np
import pytest

import pfaffian as pf
from pfaffian.errors import ModelError
from pfaffian.evaluate import symmetry
from pfaffian.evaluate.candidates import JOINT, JointMotion
from pfaffian.evaluate.effects import CONSTRAINTS
from pfaffian.maths.values import values
from pfaffian.terms.generic_states import generic_states
from pfaffian.terms.terms import shared
from tests.tolerance import ALGEBRA, close

SLIDE = JointMotion("rail", "left", (1.0, 0, 0, 0, 0, 0), "moving along x of 'rail'")
TURN = JointMotion("hinge", "right", (0, 0, 0, 0, 0, 1.0), "turning about z of 'hinge'")


def carts(*actuators: Any, servo: bool = False) -> pf.Mechanism:
    """A cart on a rail with a second one on it, and a wheel on its axis."""
    bodies = [pf.body("a", 3.0, inertia=0.1), pf.body("b", 1.0, inertia=0.1), pf.body("wheel", 0.5, inertia=(0.1, 0.1, 0.2))]
    joints = [
        pf.joint("rail", "prismatic", "world", "a", axis=(1, 0, 0)),
        pf.joint("on it", "prismatic", "a", "b", axis=(1, 0, 0)),
        pf.joint("spin", "revolute", "b", "wheel", axis=(0, 0, 1)),
    ]
    held = pf.servo(pf.holonomic("held", lambda k: k.joint("on it") - k.t), [a.name for a in actuators])
    return pf.mechanism("carts", bodies, joints, actuators=actuators, constraints=[held] if servo else [])


@pytest.mark.parametrize(
    ("cause", "words"),
    [
        (JOINT, "the joint prevents 2.0e-10 of it, which is unclear"),
        (CONSTRAINTS, "constraints prevent 2.0e-10 of it, which is unclear"),
        ("weight", "weight changes its momentum by 2.0e-10 of its size, which is unclear"),
    ],
)
def test_words_of_a_doubt(cause, words):
    doubt = symmetry.Doubt(((1.0, SLIDE), (-0.5, TURN)), cause, 2e-10)
    assert str(doubt) == f"moving along x of 'rail' and -0.5 turning about z of 'hinge': {words}"


def test_symmetries_are_verified_at_different_places_and_speeds_of_each_joint():
    bodies = [pf.body("hull", 3.0, inertia=(1, 2, 2.5)), pf.body("arm", 1.0, com=(0.2, 0, 0), inertia=0.1)]
    joints = [pf.joint("flight", "free", "world", "hull"), pf.joint("hinge", "revolute", "hull", "arm", placement=(1, 0, 0))]
    m = pf.mechanism("craft", bodies, joints)
    states = generic_states(m, count=symmetry.VERIFIED_AT)
    far, speeds = [], []
    for before, after in zip(states, symmetry._elsewhere(m, states), strict=True):
        place = after.q / before.q
        far.append(place[0])
        close(place, np.where([u == "m" for u in m.q_units], place[0], 1.0), ALGEBRA, "places")
        faster = after.v / before.v
        speeds.append(faster[[0, 6]])
        close(faster, np.repeat(speeds[-1], [6, 1]), ALGEBRA, "speeds of one joint")
        assert (after.t, after.p.tolist()) == (before.t, before.p.tolist())
    powers, of_speeds = np.log10(far), np.log10(speeds)
    assert np.abs(powers).max() <= symmetry.PLACES and np.ptp(powers) > symmetry.PLACES
    most = symmetry.SPEEDS + symmetry.FASTER
    assert np.abs(of_speeds).max() <= most and (np.ptp(of_speeds, axis=0) > most).all()
    assert symmetry.FASTER < np.ptp(of_speeds[:, 0] - of_speeds[:, 1]) <= 4 * symmetry.FASTER


PUSH, MOTOR, DRIVE = (
    pf.forces.thruster("push", "a", axis=(1, 0, 0)), pf.actuator("motor", "on it"), pf.actuator("drive", "spin"),
)  # fmt: skip


@pytest.mark.parametrize(
    ("still", "kept"),
    [
        ((), ()), (("push",), ("rail",)), (("motor",), ("on it",)), (("drive",), ("spin",)),
        (("push", "motor"), ("rail", "on it")), (("push", "drive"), ("rail", "spin")),
        (("push", "motor", "drive"), ("rail", "on it", "spin")),
    ],
)  # fmt: skip
def test_momenta_last_along_fields_on_which_no_input_works(still, kept):
    """An input that acts changes the momentum of each motion that it drives."""
    m = carts(PUSH, MOTOR, DRIVE)
    Y = symmetry.conserved_fields(T := shared(m), still, m.p_defaults)
    (fields,) = values(ca.Function("Y", [T.q], [ca.densify(Y)]), np.zeros(m.nq))
    want = np.eye(m.nv)[:, [m.v_names.index(name) for name in kept]]
    assert fields.shape == (m.nv, len(kept))
    close(want @ np.linalg.lstsq(want, fields, rcond=None)[0], fields, ALGEBRA, "fields", scale=1.0)
    assert np.linalg.matrix_rank(fields) == len(kept)


def test_servo_forces_and_machines_without_a_carrier_conserve_nothing():
    for servo, kept in ((False, 2), (True, 0)):
        m = carts(MOTOR, servo=servo)
        assert symmetry.conserved_fields(shared(m), (), m.p_defaults).shape == (3, kept)
    m = pf.mechanism("one", [pf.body("b", 1.0, inertia=0.1)], [pf.joint("j", "universal", "world", "b")], gravity=(0, 0, 0))
    with pytest.raises(ModelError):
        pf.reduction.symmetry(m)
    assert symmetry.conserved_fields(shared(m), (), m.p_defaults).shape == (2, 0)


def test_inner_symmetries_are_named_by_the_speed_that_turns():
    """The ball's own spins, on a slide from the hull, by the names of the velocities; in any order of joints asked for."""
    bodies = [pf.body("cart", 3.0, inertia=0.1), pf.body("ball", 1.0, inertia=0.2), pf.body("other", 1.0, inertia=0.3)]
    joints = [
        pf.joint("rail", "prismatic", "world", "cart", axis=(1, 0, 0)),
        pf.joint("s", "spherical", "cart", "ball"),
        pf.joint("t", "spherical", "cart", "other", placement=(0, 1, 0)),
    ]
    m = pf.mechanism("cart", bodies, joints, gravity=(0, 0, 0))
    one, both = symmetry.inner_symmetries(m, ("s",)), symmetry.inner_symmetries(m, ("s", "t"))
    assert one.names == tuple(f"{m.v_names[i]} within" for i in (1, 2, 3))
    assert both.names == tuple(f"{name} within" for name in m.v_names[1:])
    assert one.labels == tuple(f"turning about {x} of 's' from the child's side" for x in "xyz")
    (fields,) = values(ca.Function("Y", [both.q], [ca.densify(both.Y)]), m.neutral())
    close(fields, np.eye(7)[:, 1:], ALGEBRA, "fields", scale=1.0)
    assert symmetry.inner_symmetries(m, ("rail",)).Y.shape == (7, 0)
