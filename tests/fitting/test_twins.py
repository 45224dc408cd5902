"""A cheap part of the coverage on twins: loops that turn far between starts, wheels without slip, legs without sensors."""

from __future__ import annotations

import numpy as np
import pytest

from pfaffian.fitting.doubt import hidden
from pfaffian.fitting.starts import closed
from tests.fitting.twins import TWINS, bicycle, clean, fitted, inside
from tests.tolerance import SATISFIED

PLANTED = 2.0
"""Half widths within which a planted value lies: beyond them is one of ten thousand."""


@pytest.mark.parametrize("name", ["leg", "cart", "bicycle"])
def test_one_draw_of_noise_lies_near_the_truth(name: str) -> None:
    x = TWINS[name]
    fit = fitted(x, clean(x), 1)
    assert fit.converged and not fit.undetermined
    for number, value in (x.truth | {"delay of u": x.late}).items():
        assert abs(fit.values[number] - value) < PLANTED * fit.half_widths[number], number
    assert hidden(fit.problem, fit.solution) == (name != "leg"), "rolling ties no coordinate to the measured ones"


def test_intervals_of_a_leg_contain_the_true_numbers() -> None:
    assert inside(TWINS["leg"], range(8)).mean() > 0.8  # of 40 numbers, 38 on average


def test_measured_rates_that_disagree_move_no_coordinate() -> None:
    """A gyro says that a bicycle turns, and its handlebar that it rolls straight on: it must not lean because of that."""
    m = bicycle()
    x, ease = np.zeros((1, m.nq + m.nv)), np.ones(2 * m.nv)
    x[0, : m.nq] = m.neutral()
    for name, rate in (("base.wz", 0.3), ("rear", 15.0), ("steer", 0.0)):
        x[0, m.nq + m.v_names.index(name)] = rate
        ease[m.nv + m.v_names.index(name)] = 1e-3
    found, left = closed(m, x, m.p_defaults, np.zeros(1), ease)
    assert left[0] < SATISFIED
    assert np.abs(found[0, : m.nq] - m.neutral()).max() < SATISFIED
