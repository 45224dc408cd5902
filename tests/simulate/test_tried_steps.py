"""Single steps under error control: the size of their error, and what follows one."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest

import pfaffian as pf
from pfaffian import control
from pfaffian.simulate.step.attempt import StateChanges, attempt, error_of_step
from pfaffian.simulate.step.choice_of_pair import NEVER
from pfaffian.simulate.step.lane import lane_of, row_size
from pfaffian.states.system import as_system
from pfaffian.terms.lengths import machine_length
from tests.simulate.machines import pendulum
from tests.simulations import simulation


def arm() -> pf.Mechanism:
    """A body on a spherical joint, and another one that slides along it."""
    bodies = [pf.body("upper", 1.0, com=(0.3, 0, 0), inertia=(0.02, 0.05, 0.04)), pf.body("slide", 0.5, inertia=0.01)]
    joints = [
        pf.joint("ball", "spherical", "world", "upper"),
        pf.joint("slide", "prismatic", "upper", "slide", axis=(1, 0, 0), placement=pf.pose((0.4, 0, 0))),
    ]
    return pf.mechanism("arm", bodies, joints, actuators=[pf.actuator("push", "slide")])


LONG = float(ca.evalf(machine_length(arm())))
SMALL, SPIN, SLIDE, MEMORY = 1e-6, 2.0, 1e-4, 4.0
CHANGES = {  # entries of q, v, z, and the error: lengths relative to the machine, speeds and states to the largest
    "half an angle in a quaternion": ((1, SMALL), None, None, 2 * SMALL),
    "a length": ((4, SMALL * LONG), None, None, SMALL),
    "a turn": (None, (2, SMALL), None, SMALL / SPIN),
    "a slide beside a faster turn": (None, (3, SMALL * LONG), None, SMALL / SPIN),
    "a state of the law": (None, None, (0, SMALL), SMALL / MEMORY),
    "the largest of several": ((1, SMALL), (2, 9 * SMALL), (0, SMALL), 4.5 * SMALL),
}


@pytest.mark.parametrize("kind", CHANGES)
def test_the_error_of_a_step_is_relative_to_what_it_changes(kind):
    law = control.Control(lambda T, z, w, y: control.Command(-z, z_dot=T.q[4]), z=(0.0,))
    s = simulation(as_system(arm()), pf.Scheme(integrator="dopri5"), law)
    at, *changes, error = lane_of(s), *CHANGES[kind]
    columns = [ca.DM(n, 1) for n in (5, 4, 1)]
    for column, change in zip(columns, changes, strict=True):
        if change:
            column[change[0]] = change[1]
    lane = ca.SX(at.size, 1)
    lane[0] = lane[at.tolerance] = 1.0
    sizes = ca.vertcat(*[{"m/s": SLIDE, "rad/s": SPIN}[unit] for unit in at.units], MEMORY)
    found = error_of_step(s, at, lane, StateChanges(*map(ca.SX, columns)), sizes, ca.SX(1.0))
    assert float(ca.evalf(found)) == pytest.approx(error, rel=1e-12)


def after(tolerance: float = 1e-8, **numbers: float) -> tuple[float, np.ndarray]:
    """The length of the step that a pendulum takes after one of 1 ms, and the faults of this one.   numbers: of its lane."""
    s = simulation(as_system(pendulum(motor=False)), pf.Scheme(integrator="dop853"))
    at, lane, row = lane_of(s), np.zeros(lane_of(s).size), np.zeros(row_size(s))
    lane[at.x] = [1.0, 0.5]
    for name, value in ({"length": 1e-3, "root": 1.0, "patience": NEVER, "end": 9.0, "longest": 9.0} | numbers).items():
        lane[getattr(at, name)] = value
    lane[at.tolerance], row[-1] = tolerance, 1e7
    step = attempt(s)[0]
    moved, faults = step(lane, row, row, [], 0.0, 0.0)
    return float(moved[at.length]), np.array(faults).ravel()


def test_a_step_is_no_longer_than_one_that_was_shortened_just_before():
    """One that follows another one that was refused would else be refused as often again."""
    assert after()[0] > 2e-3 and after(refused=1.0)[0] == 1e-3


@pytest.mark.parametrize("numbers", [{"begin": 1e6, "time": 0.0}, {"begin": 0.0, "time": 1e6}, {"begin": -1e6, "time": 1e6}])
def test_a_step_that_does_not_change_the_time_ends_a_run(numbers):
    """Of the time itself, or of that since the run began, which may be far from each other."""
    short = {"length": 1e-12, "end": 2e6} | numbers
    assert after(1e-300, **short)[1].any() and not after(1e-300, **short | {"length": 1e-6})[1].any()
    assert not after(1e-300, length=1e-12)[1].any()
