"""Transmissions: one input drives several joints. Forces along the joints, unit, limits and refusals."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import pfaffian as pf
from pfaffian.errors import ModelError


def machine(*actuators, **more):
    bodies = [pf.body(n, mass=2.0, inertia=(0.1, 0.2, 0.3)) for n in ("a", "b", "c")]
    joints = [
        pf.joint("turn", "revolute", "world", "a", effort=1.0),
        pf.joint("slide", "prismatic", "a", "b"),
        pf.joint("base", "free", "world", "c"),
    ]
    return pf.mechanism("m", bodies, joints, actuators=actuators, **more)


def test_its_input_column_is_the_sum_of_those_of_single_actuators():
    gears = {"turn": 2.0, "slide": -3.0, ("base", 4): 0.5}
    singles = [
        pf.actuator("1", "turn", gear=2.0),
        pf.actuator("2", "slide", gear=-3.0),
        pf.actuator("3", "base", component=4, gear=0.5),
    ]
    B = [
        np.asarray(pf.compile_terms(machine(*a), {"B": lambda T: T.B}, backend="numpy", lanes=1)(machine().neutral())["B"])
        for a in ([pf.forces.transmission("u", gears)], singles)
    ]
    assert np.ravel(B[0]).tolist() == B[1].sum(axis=1).tolist() and np.count_nonzero(B[0]) == 3


def test_units_limits_and_repr():
    k = pf.Parameter("k", 2.0)
    one = pf.forces.transmission("u", {"turn": k, ("base", 3): -1.0}, limits=(-4, 5))
    m = machine(one, pf.forces.transmission("w", {"turn": 1.0, "slide": 1.0}), parameters=[k])
    assert (m.u_names, m.u_units) == (("u", "w"), ("N m", "J"))
    assert m.u_limits.tolist() == [[-4, 5], [-np.inf, np.inf]]
    assert repr(one) == "<Transmission 'u': k on 'turn', velocity 0, -1 on 'base', velocity 3, from -4 to 5>"
    assert pickle.loads(pickle.dumps(one)) == one


def test_joined_refuses_to_remove_a_driven_free_joint():
    pin = pf.closure("pin", "revolute", "b", "c")
    driven = machine(pf.forces.transmission("u", {"turn": 1.0, ("base", 3): 1.0}), constraints=[pin])
    with pytest.raises(ModelError, match="without actuator"):
        pf.joined(driven, "pin")
    assert pf.joined(machine(constraints=[pin]), "pin").nv == 3


@pytest.mark.parametrize(
    ("gears", "message"),
    [
        ({}, "gears must be a dict of joint -> gear"),
        ([("turn", 1.0)], "gears must be a dict"),
        ({3: 1.0}, "each key must be a joint or (joint, number of its velocity), got 3"),
        ({("base", "x"): 1.0}, "a joint or (joint, number"),
        ({("base", True): 1.0}, "a joint or (joint, number"),
        ({"turn": "much"}, "gear of 'turn': 'much' is not a number"),
        ({"turn": 1.0, "lift": 1.0}, "there is no joint 'lift'"),
        ({("base", 6): 1.0}, "joint 'base' has 6 velocities, none numbered 6"),
    ],
)
def test_wrong_gears_are_refused(gears, message):
    with pytest.raises(ModelError) as error:
        machine(pf.forces.transmission("u", gears))
    assert "actuator 'u'" in str(error.value) and message in str(error.value)


def test_reversed_limits_and_joints_that_follow_are_refused():
    with pytest.raises(ModelError, match="limits"):
        machine(pf.forces.transmission("u", {"turn": 1.0}, limits=(2, 1)))
    bodies = [pf.body(n, mass=1.0, inertia=0.1) for n in ("a", "b")]
    joints = [
        pf.joint("lead", "revolute", "world", "a"),
        pf.joint("led", "revolute", "world", "b", mimic=pf.mimic({"lead": 2.0})),
    ]
    with pytest.raises(ModelError, match="joint 'led' follows lead; drive that"):
        pf.mechanism("m", bodies, joints, actuators=[pf.forces.transmission("u", {"lead": 1.0, "led": 1.0})])
