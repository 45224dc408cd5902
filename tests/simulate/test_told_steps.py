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
