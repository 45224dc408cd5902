"""The error that steps of one length tell of a four-bar linkage is near the true one, however few records there are."""

from __future__ import annotations

import numpy as np
import pytest

import pfaffian as pf
from tests.by_scipy import run_adaptive, true_error, with_instants_between

START, DURATION, FACTOR = {"A": 1.57}, 10.0, 3.0


def linkage() -> pf.Mechanism:
    """Rods of 0.4, 0.9 and 0.8 m on a base of 1 m."""
    hinge = {"kind": "revolute", "axis": (0, -1, 0)}
    rods = {"crank": 0.4, "coupler": 0.9, "rocker": 0.8}
    bodies = [pf.body(name, 2 * l, com=(l / 2, 0, 0), inertia=2 * l**3 / 12) for name, l in rods.items()]
    joints = [
        pf.joint("A", parent="world", child="crank", **hinge),
        pf.joint("B", parent="crank", child="coupler", placement=(0.4, 0, 0), **hinge),
        pf.joint("D", parent="world", child="rocker", placement=(1.0, 0, 0), **hinge),
    ]
    ends = {"body_a": "coupler", "body_b": "rocker", "placement_a": (0.9, 0, 0), "placement_b": (0.8, 0, 0)}
    loop = pf.closure("C", **ends, **hinge)
    return pf.mechanism("linkage", bodies, joints, constraints=[loop])


EXACT = with_instants_between(np.linspace(0, DURATION, 251))


@pytest.fixture(scope="module")
def exact():
    return run_adaptive(linkage(), START, times=EXACT, tolerance=1e-13)


@pytest.mark.parametrize("records", ["often", "the end"])
@pytest.mark.parametrize("step", [8e-3, 4e-3, 1e-3])
def test_told_errors_of_steps(step, records, exact):
    """A loss of energy becomes a phase that grows: RK4 errs here by a power of the step between 4 and 6."""
    every = round((0.04 if records == "often" else DURATION) / step)
    r = pf.run(linkage(), START, duration=DURATION, step=step, every=every, error_bound=np.inf, backend="interpreter")
    of = exact if records == "often" else exact.isel(time=np.r_[0:20, -1])
    true, told = true_error(linkage(), r, of), r.error.values
    if records == "the end":
        true, told = true[-1, :1], told[-1, :1]  # speeds are relative to the largest on the way
    assert told.max() / FACTOR <= true.max() <= FACTOR * told.max(), (true.max(), told.max())


def test_a_batch_tells_the_errors_of_single_runs():
    how = {"duration": DURATION, "step": 4e-3, "every": 2500, "error_bound": np.inf, "backend": "interpreter"}
    batch = pf.run(linkage(), {"A": np.full(64, START["A"])}, **how)
    np.testing.assert_array_equal(batch.error.values[[0, 32]], np.tile(pf.run(linkage(), START, **how).error.values, (2, 1, 1)))
    assert np.isnan(batch.error.values[[1, 31, 63]]).all()


@pytest.mark.parametrize("kind", ["prismatic", "revolute"])
def test_longer_steps_that_the_motion_is_lost_in_do_not_tell_the_error(kind):
    """A damper stops a body, as exp(-130 t): steps of 10 ms follow it, those twice as long hardly, those four times not.
    Records at each step: those of each solution are compared at the same instants."""
    rail = pf.joint("x", kind, "world", "b", axis=(1, 0, 0))
    force = pf.forces.generalised_force("drag", lambda k: -130 * k.v)
    m = pf.mechanism("drag", [pf.body("b", 1.0, inertia=1.0)], [rail], forces=[force], gravity=(0, 0, 0))
    r = pf.run(m, v=[1.0], duration=0.08, step=0.01, error_bound=np.inf, backend="interpreter")
    true = np.abs(r.v.values[:, 0] - np.exp(-130 * r.time.values))[1:]
    told = r.error.sel(error_kind="speed").values[1:]
    assert (true <= 2 * told).all() and (told <= 2 * true).all(), (true, told)


def test_errors_at_records_between_others_are_the_larger_of_these():
    """A record at each step, of which those with twice as long steps have every other one."""
    r = pf.run(linkage(), START, duration=2.0, step=4e-3, error_bound=np.inf, backend="interpreter")
    told = r.error.values
    np.testing.assert_array_equal(told[1::2], np.fmax(told[:-2:2], told[2::2]))
    assert (np.diff(told[::2], axis=0) > 0).any() and (np.diff(told[::2], axis=0) < 0).any()


def test_what_lies_between_two_events_of_a_step_is_told():
    """A ball on a floor so stiff that it touches it for 31 ms of a step of 50 ms, one part of it whatever the step."""
    slide, k = pf.joint("z", "prismatic", "world", "ball", axis=(0, 0, 1)), 1e4
    m = pf.mechanism("ball", [pf.body("ball", 1.0)], [slide], forces=[pf.forces.stop("floor", "z", low=0.0, stiffness=k)])
    r = pf.run(m, [1.0], duration=2.0, step=0.05, error_bound=np.inf, backend="interpreter")
    fall, w, t = np.sqrt(2 / 9.81), np.sqrt(k), r.time.values
    touch = 2 / w * (np.pi - np.arctan(fall * w))
    t = t % (2 * fall + touch)
    pressed = 9.81 / k * (np.cos(w * (t - fall)) - 1) - 9.81 * fall / w * np.sin(w * (t - fall))
    flight = 1 - 9.81 / 2 * np.minimum(t, 2 * fall + touch - t) ** 2
    true = np.abs(r.q.values[:, 0] - np.where((t > fall) & (t < fall + touch), pressed, flight)).max()
    assert true <= FACTOR * float(r.error.max()) and float(r.error.max()) <= FACTOR * true, (true, float(r.error.max()))
