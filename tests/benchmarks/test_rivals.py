"""The sides of `python -m benchmarks accuracy`: a run of others has a bound, and a row takes the quickest that is exact."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("scipy")

from benchmarks.accuracy import compare
from benchmarks.integrators import Rate
from benchmarks.problems import double_pendulum, start
from benchmarks.rivals import ALONE, OURS, RK4, Attempt, Rival, attempt, attempts, least
from benchmarks.timing import Options


def tried(setting: float, seconds: float, error: float) -> Attempt:
    return Attempt(setting, seconds, error, np.nan, 0)


def test_an_integrator_without_end_is_stopped():
    of = double_pendulum()
    rate = Rate(of, "numpy")

    def endless(tolerance: float) -> np.ndarray:
        for _ in range(1000):
            rate(0.0, start(of))
        return np.zeros(1)  # which is exact

    found = attempts(Rival(endless, [1e-6, 1e-7], rate), np.max, 1e-6, 0.0)
    assert [(a.setting, a.error) for a in found] == [(1e-6, np.inf)]
    assert np.isfinite(rate(0.0, start(of))).all()  # no bound outside a run


def test_settings_are_tried_until_one_is_exact():
    rival = Rival(lambda setting: np.array([setting]), [1e-6, 1e-7, 1e-8, 1e-9])
    assert [a.setting for a in attempts(rival, np.max, 1e-8, np.inf)] == [1e-6, 1e-7, 1e-8]
    assert attempt(rival._replace(solve=lambda setting: 1 / 0), 1e-6, np.max, np.inf).error == np.inf


def test_a_row_tells_what_did_not_get_there():
    found = [tried(1e-6, 1.0, 1e-5), tried(1e-7, 2.0, 1e-8), tried(1e-8, 3.0, 1e-9)]
    assert [least(found, error).setting for error in (1e-4, 1e-6, 1e-9, 1e-12)] == [1e-6, 1e-7, 1e-8, 1e-8]
    ours = Rival(lambda setting: np.zeros(1), [1e-6])
    sides = {OURS: ours, ALONE: ours, RK4: ours, "slow": ours, "coarse": ours}
    exact = [tried(1e-6, 0.0, 1e-7)]
    by = {OURS: exact, ALONE: exact, RK4: exact, "slow": [tried(1e-6, 9.0, 1e-5)], "coarse": [tried(1e-6, 0.5, 1e-5)]}
    rows = list(compare("it", 1e-6, sides, by, 2.0, Options(quick=True)))
    assert [r.peer.name for r in rows if r.peer] == [RK4, "slow, stopped", "coarse"]
    assert [r.peer.median for r in rows[1:] if r.peer] == [2e9, 5e8]
    assert [r.goal is not None for r in rows] == [True, False, False]
    assert [r.notes.get("not within") for r in rows] == [None, 1e-6, 1e-6]
