"""Correction of drift: Newton iterations down to a tolerance, their largest number, and a stop beyond the limit."""

from __future__ import annotations

import numpy as np
import pytest

import pfaffian as pf
from tests.simulate.machines import FOUR_BAR_START, four_bar
from tests.tolerance import SATISFIED

LOOSE = 1e-7
"""Tolerance relative to the longest side; the drift exceeds it after some tens of steps of 10 ms."""

DRIFT = 0.9 * LOOSE
"""LOOSE as a length [m]: the pivots are 0.9 m apart."""

COARSE = {"duration": 0.6, "step": 1e-2, "backend": "interpreter"}


def moved(scheme: pf.Scheme, **also):
    return pf.run(four_bar("spherical"), FOUR_BAR_START, {"a": 4.0}, scheme=scheme, **(COARSE | also))


def test_correction_waits_until_the_tolerance_is_exceeded():
    free, loose, tight = (moved(pf.Scheme(violation_limit=1e-2, **x)) for x in (
        {"corrections": 0}, {"tolerance": LOOSE}, {}))  # fmt: skip
    assert free.violation.max() > DRIFT
    assert SATISFIED < loose.violation.max() <= DRIFT
    assert tight.violation.max() < SATISFIED
    early = int(np.argmax(free.violation.values > DRIFT))
    assert early > 2
    assert np.array_equal(loose.q[:early], free.q[:early])
    assert not np.array_equal(loose.q[: early + 1], free.q[: early + 1])


def test_a_tolerance_below_all_drift_changes_nothing():
    assert np.array_equal(moved(pf.Scheme(corrections=1, tolerance=1e-300)).q, moved(pf.Scheme(corrections=1)).q)


def test_rows_without_position_are_corrected_by_their_velocity():
    body = pf.body("skate", 1.0, inertia=0.1)
    blade = pf.nonholonomic("blade", lambda k: k.joint_rate("ice")[1])
    joint = pf.joint("ice", "planar", "world", "skate")
    m = pf.mechanism("skate", [body], [joint], constraints=[blade], gravity=(0, 0, 0))
    for tolerance, left in ((1e-2, 1e-3), (1e-4, 0.0)):
        scheme = pf.Scheme(tolerance=tolerance, violation_limit=1.0)
        r = pf.run(m, None, [1.0, 1e-3, 0.0], duration=1e-3, correct_start=False, backend="interpreter", scheme=scheme)
        assert abs(abs(float(r.v[-1, 1])) - left) < SATISFIED


def test_a_run_stops_if_the_allowed_corrections_do_not_suffice():
    start = {"duration": 0.01, "correct_start": False}
    with pytest.warns(pf.RunWarning, match="constraint violation above the limit after correction"):
        stopped = moved(pf.Scheme(corrections=1), **start)
    assert stopped.status == 2
    assert stopped.stopped == 0.0
    assert moved(pf.Scheme(corrections=20), **start).status == 0


def test_a_tolerance_beyond_the_limit_is_refused():
    with pytest.raises(pf.ModelError, match="violation_limit"):
        pf.Scheme(tolerance=1e-3)
    with pytest.raises(pf.ModelError, match="tolerance"):
        pf.Scheme(tolerance=-1.0)
