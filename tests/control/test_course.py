"""Courses: from any motion to rest, changed on the way, and flown by a machine that learns its goals in flight."""

from __future__ import annotations

from math import factorial

import casadi as ca
import numpy as np
import pytest

import pfaffian as pf
from pfaffian import control
from pfaffian.control import Course
from studies.konz_course import LENGTH, PERIOD, START, STEP, agent, mechanism
from tests.refused import refusals
from tests.tolerance import close

RANDOM = np.random.default_rng(31)


def numbers(x) -> np.ndarray:
    return np.array(ca.evalf(ca.SX(x)))


def by_equations(start: np.ndarray, end: np.ndarray, T: float, t: float) -> np.ndarray:
    """(k, n) point of the course, from 2 n linear equations for the coefficients of the polynomial, in NumPy."""
    n = start.shape[1]
    row = lambda t, d: [factorial(j) / factorial(j - d) * t ** (j - d) if j >= d else 0.0 for j in range(2 * n)]  # noqa: E731
    A = np.array([row(0.0, d) for d in range(n)] + [row(T, d) for d in range(n)])
    rest = np.zeros((n, len(end)))
    rest[0] = end
    c = np.linalg.solve(A, np.vstack([start.T, rest]))
    return (np.array([row(t, d) for d in range(n)]) @ c).T


@pytest.mark.parametrize("n", [1, 2, 3, 5, 8])
def test_a_course_is_the_polynomial_between_its_ends(n):
    start, end, T = RANDOM.normal(size=(3, n)), RANDOM.normal(size=3), 1.3
    for t in (0.0, 0.1, 0.7, 1.2, 1.3):
        found = numbers(control.course(start, end, T, t))
        close(found, by_equations(start, end, T, t), 1e-6 if n == 8 else 1e-9, f"at {t} s", 10.0**n)
    for t, expected, size in ((-0.5, start, 10.0**n), (0.0, start, 10.0**n), (5.0, np.eye(1, n) * end[:, None], 1.0)):
        close(numbers(control.course(start, end, T, t)), expected, 1e-15, "its ends", 3 * size)


def test_a_course_from_rest_is_a_path_from_rest_to_rest():
    a, b = np.array([1.0, -2.0]), np.array([3.0, 0.5])
    planned = control.rest_to_rest(a, b, 2.0)
    start = np.column_stack([a, np.zeros((2, 4))])
    for t in (0.3, 1.0, 1.9):
        close(numbers(control.course(start, b, 2.0, t))[:, 0], numbers(planned(t)).ravel(), 1e-13, "position", 3.0)


def test_the_rest_of_a_course_is_a_course():
    """The rest of a course is the course that begins at its current point; each column is the rate of the one before."""
    start, end = RANDOM.normal(size=(2, 5)), np.array([0.4, -0.3])
    there = control.course(start, end, 2.0, 0.8)
    close(numbers(control.course(there, end, 1.2, 0.7)), numbers(control.course(start, end, 2.0, 1.5)), 1e-9, "later", 1.0)
    t = ca.SX.sym("t")
    y = control.course(start, end, 2.0, t)
    f = ca.Function("y", [t], [y[:, 1:], ca.horzcat(*[ca.jacobian(y[:, i], t) for i in range(4)])])
    for at in (0.2, 1.7):
        rates, slopes = (np.array(x) for x in f(at))
        close(rates, slopes, 1e-9, "rates", 10.0)


WRONG = {
    "sizes": (lambda: control.course([[0.0, 1.0]], [1.0, 2.0], 1.0, 0.5), "start .* and end"),
    "too many": (lambda: control.course(np.zeros((1, 9)), [1.0], 1.0, 0.5), "n from 1 to 8"),
    "no time": (lambda: control.course([[0.0]], [1.0], 0.0, 0.5), "duration above zero"),
    "a goal": (lambda: control.course_step(Course([[0.0]], [1.0], 1.0, 0.5), [1.0, 2.0], 1.0, 0.1), "goal has 2 numbers"),
}


test_wrong_courses_are_named = refusals(WRONG)


# -- in flight -------------------------------------------------------------------------------------------------------------


def test_goals_that_arrive_in_flight():
    """From a flight at 2 m/s to one place, and before it is reached to another: the machine follows both smooth courses."""
    m, start = mechanism(), START
    first, second = [1.5, 1.0, 0.5, 0.8], [0.0, -1.0, 0.2, -0.4]
    goals = np.array([first] * 200 + [second] * 400)
    r = pf.run(
        m, np.r_[np.zeros(6), 1.0], np.r_[start[:3, 1], np.zeros(3)], duration=3.0, step=STEP, every=2, control=agent(),
        u=goals, u_step=PERIOD, record="all",
    )  # fmt: skip
    assert int(r.status) == 0
    now = r["now"].values.reshape(-1, 5, 4)  # samples, derivative, coordinate
    changed = 200
    whole = np.array([by_equations(start, np.array(first), LENGTH, k * PERIOD) for k in range(changed + 1)])
    close(now[: changed + 1].transpose(0, 2, 1), whole, 1e-8, "the first course", 100.0)
    rest = np.array([by_equations(whole[-1], np.array(second), LENGTH, k * PERIOD) for k in range(200)])
    close(now[changed : changed + 200].transpose(0, 2, 1), rest, 1e-8, "the second course", 100.0)
    off = np.linalg.norm(r["q"].values[:, :3] - now[:, 0, :3], axis=1)
    assert off.max() < 0.01, off.max()  # for a law with a period of 5 ms
    x, y, z, w = r["q"].values[-1, 3:]
    assert np.arctan2(2 * (x * y + z * w), 1 - 2 * (y * y + z * z)) == pytest.approx(second[3], abs=2e-3)
    close(r["q"].values[-1, :3], second[:3], 2e-3, "at rest there", 1.0)
    assert np.ptp(r["q"].values[:, 0]) > 1.0
