"""Errors are told also where samples, laws, calls or a greatest length limit all steps, and no error does."""

from __future__ import annotations

import numpy as np
import pytest

import pfaffian as pf
from pfaffian import control
from pfaffian.simulate.error.global_error import Solutions, global_error, largest_speeds
from tests.simulate.machines import pendulum

DURATION, RECORDS, FINE = 2.0, 20, 32
UNDER, OVER = 3.0, 30.0
"""Largest ratios of the true error to the told one, and of the told one to the true one."""


def damped(period: float) -> control.Control:
    """A law that is called so often."""
    measured = {"angle": control.sensor(lambda k: k.q), "rate": control.sensor(lambda k: k.v)}
    return control.discrete(lambda s: control.Command(-2 * s["angle"] - s["rate"]), period, measure=measured)


def sampled(period: float) -> dict:
    """Inputs that change so often."""
    return {"u": np.random.default_rng(4).uniform(-1, 1, (round(DURATION / period), 1)), "u_step": period}


def motion(r) -> np.ndarray:
    return np.concatenate([r.q.values, r.v.values], axis=1)[:, None]


def agrees(told: float, found: np.ndarray, exact: np.ndarray) -> None:
    """Whether the error that is told of a motion is near the true one."""
    m = pendulum()
    true = global_error(m, Solutions(found, exact), np.zeros((1, 0)), DURATION, largest_speeds(m, exact)).max()
    assert true <= UNDER * told and told <= OVER * true, (true, told)


def exactly(period: float, **how) -> np.ndarray:
    """The motion by many short steps of one length, of which a whole number lie between two instants."""
    step = period / FINE
    how |= {"every": round(DURATION / RECORDS / step), "error": False, "backend": "interpreter"}
    return motion(pf.run(pendulum(), {"pivot": 1.0}, duration=DURATION, step=step, **how))


@pytest.mark.parametrize("period", [0.2, 0.1])
@pytest.mark.parametrize("accuracy", [1e-2, 1e-4])
@pytest.mark.parametrize("limit", ["samples", "a law", "the greatest length"])
def test_errors_of_runs(limit, accuracy, period):
    how = {"samples": sampled(period), "a law": {"control": damped(period)}, "the greatest length": {}}[limit]
    longest = {"max_step": period} if limit == "the greatest length" else {}
    times = np.linspace(0, DURATION, RECORDS + 1)
    r = pf.run(pendulum(), {"pivot": 1.0}, times=times, accuracy=accuracy, backend="interpreter", **how, **longest)
    assert float(r.error.max()) <= accuracy
    agrees(float(r.error.max()), motion(r), exactly(period, **how))


def test_the_error_of_a_run_beside_a_solution_of_more_steps_is_all_of_their_difference():
    """One step between two samples, and two unequal ones in the other solution."""
    how = sampled(0.1)
    at = {"times": np.linspace(0, DURATION, RECORDS + 1), "accuracy": 1e-2, "backend": "interpreter"}
    r, m, exact = pf.run(pendulum(), {"pivot": 1.0}, **at, **how), pendulum(), exactly(0.1, **how)
    true = global_error(m, Solutions(motion(r), exact), np.zeros((1, 0)), DURATION, largest_speeds(m, exact)).max()
    assert true <= float(r.error.max()) <= OVER * true


@pytest.mark.parametrize("period", [0.2, 0.1])
def test_errors_of_steppers(period):
    exact = exactly(period)
    s = pf.stepper(pendulum(), accuracy=1e-3, backend="interpreter")
    s.reset({"pivot": 1.0})
    for _ in range(round(DURATION / period)):
        s.advance(period)
    agrees(float(s.error.max()), np.concatenate([s.q, s.v])[None, None], exact[-1:])


def test_the_error_of_a_stepper_beside_a_solution_of_more_steps_is_all_of_their_difference():
    """One step a call, and two unequal ones in the other solution; beside SciPy's motion under the inputs of the calls."""
    how = sampled(0.1)
    s = pf.stepper(pendulum(), accuracy=1e-2, backend="interpreter")
    s.reset({"pivot": 1.0})
    for row in how["u"]:
        s.advance(how["u_step"], u=row)
    m, exact = pendulum(), exactly(0.1, **how)
    mine = np.concatenate([s.q, s.v])[None, None]
    true = global_error(m, Solutions(mine, exact[-1:]), np.zeros((1, 0)), DURATION, largest_speeds(m, exact)).max()
    assert true <= float(s.error.max()) <= OVER * true


def test_no_bit_of_the_result_depends_on_the_other_solution():
    """It is made with other steps; those of the result are the same without it."""
    how = {"times": [0.0, 0.7, DURATION], "accuracy": 1e-2, "max_step": 0.02, "backend": "interpreter", **sampled(0.05)}
    told, alone = (pf.run(pendulum(), {"pivot": 1.0}, error=error, **how) for error in (True, False))
    np.testing.assert_array_equal(told.q.values, alone.q.values)
    assert int(told.steps) == int(alone.steps) and np.isnan(alone.error.values).all()
