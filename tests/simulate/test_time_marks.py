"""Instants at which equations change abruptly: found wherever they are, whatever a run's length, none in a steady sine."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest

from pfaffian.simulate.run.accuracy_request import PAIR
from pfaffian.simulate.step.run_arguments import arguments
from pfaffian.simulate.step.simulation import Simulation
from pfaffian.simulate.step.time_marks import time_marks
from pfaffian.states.system import as_system
from tests.simulate.test_run_to_accuracy import pushed

FORCES = {  # of time, instants of its changes in the first 4 s
    "switch": (lambda t: ca.if_else(t > 0.5, 2.0, 0.0), [0.5]),
    "window": (lambda t: ca.if_else(ca.logic_and(t > 1.7, t < 1.7001), 2.0, 0.0), [1.7, 1.7001]),
    "square wave": (lambda t: ca.if_else(ca.fmod(t, 1.3) < 0.4, 4.0, 0), [0.4, 1.3, 1.7, 2.6, 3.0, 3.9]),
    "pulse": (lambda t: ca.exp(-(((t - 1.234) / 1e-3) ** 2)), [1.232, 1.236]),
}


def marks(force, begin: float, end: float) -> np.ndarray:
    m = pushed(force)
    s = Simulation(as_system(m), *arguments(m, None, None, None, PAIR))
    return time_marks(s, np.zeros((1, 0)), begin, end)


@pytest.mark.parametrize("name", FORCES)
def test_every_change_has_marks_around_it(name):
    force, instants = FORCES[name]
    found, wide = marks(force, 0.0, 4.0), 1e-3 if name == "pulse" else 1e-12
    for t in instants:
        assert ((found > t - wide) & (found <= t)).any() and ((found >= t) & (found < t + wide)).any(), t


@pytest.mark.parametrize("begin", [0.0, 0.3])
@pytest.mark.parametrize("name", FORCES)
def test_the_marks_of_a_run_are_those_of_a_longer_run(name, begin):
    few, many = (marks(FORCES[name][0], begin, end) for end in (3.0, 40.0))
    np.testing.assert_array_equal(few[few < 3.0], many[many < 3.0])


@pytest.mark.parametrize("rate", [0.1, 7.0, 60.0])
def test_a_steady_oscillation_has_none(rate):
    """However few samples a period has; the steps follow it by their error."""
    assert len(marks(lambda t: ca.sin(rate * t), 0.0, 100.0)) == 0
