"""Statistics computed during a run, against those of its full record; and Ctrl-C, which returns what was computed."""

from __future__ import annotations

import os
import signal

import casadi as ca
import numpy as np
import pytest

import pfaffian as pf
import pfaffian.simulate.run.interrupt as interrupt
import pfaffian.simulate.run.roll as roll
from pfaffian import control, statistics
from pfaffian.errors import ModelError, RunWarning
from pfaffian.kernel.call.rollout import Rollout
from pfaffian.simulate.error.accuracy import StepErrorMonitor
from tests.by_scipy import run_adaptive
from tests.simulate.machines import FOUR_BAR_START, four_bar, pendulum
from tests.tolerance import EPS

RUN = {"duration": 0.2, "step": 1e-2, "backend": "numpy", "error_bound": np.inf}
KINDS = {name: getattr(statistics, name) for name in ("maximum", "minimum", "mean", "integral", "final")}


def by_numpy(x, kind, time):
    """The statistic of x (..., time, entries) by NumPy, ignoring NaN."""
    x = np.moveaxis(x, -2, 0)
    last = np.array([column[np.isfinite(column)][-1] for column in x.reshape(len(x), -1).T]).reshape(x.shape[1:])
    h, there = time[1] - time[0], np.isfinite(x)
    pairs = np.where(there[1:] & there[:-1], (x[1:] + x[:-1]) / 2, 0)
    if kind in ("integral", "final"):
        return h * pairs.sum(axis=0) if kind == "integral" else last
    return {"maximum": np.nanmax, "minimum": np.nanmin, "mean": np.nanmean}[kind](x, axis=0)


def check(m, q, names, **how):
    """Compare every statistic of every signal with the full record, which a run with statistics does not store."""
    record = {f"{kind} of {n}": make(n) for kind, make in KINDS.items() for n in names}
    found, full = (pf.run(m, q, record=r, **RUN | how | {"every": e}) for r, e in ((record, 7), ("all", 1)))
    assert [n for n, x in found.data_vars.items() if "time" in x.dims] == ["error"]
    for kind in KINDS:
        for name in names:
            x, entry = full[name], [d for d in full[name].dims if d not in ("run", "time")]
            expected = by_numpy(x.values if entry else x.values[..., None], kind, full.time.values)
            got = found[f"{kind} of {name}"]
            assert got.dims == tuple(d for d in x.dims if d != "time"), "labelled as the signal"
            room = 64 * EPS * np.nanmax(np.abs(x.values), initial=1.0)
            np.testing.assert_allclose(got.values if entry else got.values[..., None], expected, rtol=0, atol=room)
            assert got.attrs["units"] == x.attrs["units"] + (" s" if kind == "integral" else "")
    return found


def test_statistics_of_one_run_with_constraints_and_of_a_batch():
    check(four_bar(), FOUR_BAR_START, ["q", "v", "energy", "multiplier", "regularity"])
    check(pendulum(), np.linspace(-1, 1, 3)[:, None], ["q", "energy"], outputs={"bob": lambda k: k.position("bob")})


def test_statistics_of_a_law_in_discrete_time_whose_instant_is_the_end():
    m = pendulum()
    law = control.discrete(lambda s: control.Command(-2 * s.terms.q, signals={"seen": ca.vertcat(s.terms.q, 1)}), 0.05)
    check(m, [0.4], ["u", "seen"], control=law)


def test_statistics_of_a_run_that_stops_cover_the_time_before():
    m = pendulum()
    push = pf.forces.generalised_force("push", lambda k: ca.if_else(k.t > 0.1, 1e300, 0) * (1 + k.q[0] ** 2), joint="pivot")
    with pytest.warns(RunWarning, match="stopped"):
        found = check(m.with_(forces=[*m.forces, push]), [0.3], ["q", "energy"])
    assert np.isfinite(found["mean of q"].values).all() and float(found.stopped) < 0.2


@pytest.mark.parametrize("backend", ["numpy", "interpreter"])
def test_lengths_of_calls_change_no_bit_and_recorded_signals_equal_the_record(monkeypatch, backend):
    record = {"q": True, "sum": statistics.integral("v"), "mean": statistics.mean("energy"), "end": statistics.final("q")}
    how = RUN | {"every": 3, "backend": backend}
    whole = pf.run(four_bar(), FOUR_BAR_START, record=record, **how)
    assert whole.q.dims == ("time", "coordinate") and "v" not in whole and "energy" not in whole
    np.testing.assert_array_equal(whole.q, pf.run(four_bar(), FOUR_BAR_START, record=["q"], **how).q)
    monkeypatch.setattr(roll, "FIRST_LANE_STEPS", 2)
    monkeypatch.setattr(roll, "CALL_SECONDS", 0.0)
    parts = pf.run(four_bar(), FOUR_BAR_START, record=record, **how)
    for name in ("q", "sum", "mean", "end"):
        np.testing.assert_array_equal(parts[name], whole[name])


def test_first_crossings_and_histograms(monkeypatch):
    """For x = cos(4 t) and its speed, in two runs, with calls of any length."""
    slide = pf.joint("x", "prismatic", "world", "box", axis=(1, 0, 0), stiffness=16.0)
    m, edges = pf.mechanism("box", [pf.body("box", 1.0)], [slide]), [-0.6, 0.0, 0.25, 1.0]
    level = {way: statistics.first_crossing("q", 0.5, way) for way in ("rising", "falling", "either")}
    record = level | {"spent": statistics.histogram("q", edges), "never": statistics.first_crossing("q", 7.0)}
    record |= {"away": statistics.first_crossing("v"), "q": True}
    how = RUN | {"duration": 1.5, "record": record, "start": 3.0}
    found = pf.run(m, {"x": [1.0, -1.0]}, **how)
    a = np.pi / 12  # x = 1/2 at 4 t = pi/3 and 5 pi/3; -x at 2 pi/3 and 4 pi/3
    for way, whens in {"rising": (5 * a, 2 * a), "falling": (a, 4 * a), "either": (a, 2 * a)}.items():
        np.testing.assert_allclose(found[way].values[:, 0], np.add(whens, 3), atol=1e-3, err_msg=way)
    np.testing.assert_allclose(found["away"].values[:, 0], 3 + np.pi / 4, atol=1e-3)  # not at the start, where the speed is 0
    assert np.isnan(found["never"]).all() and found["rising"].units == "s" and found["spent"].units == "1"
    counted = [np.histogram(x, edges)[0] for x in found.q.values[:, :, 0]]
    np.testing.assert_array_equal(found["spent"].values[:, 0], counted)
    assert found["spent"].dims == ("run", "coordinate", "spent_bin") and found["spent_bin"].values.tolist() == [
        -0.3,
        0.125,
        0.625,
    ]
    monkeypatch.setattr(roll, "FIRST_LANE_STEPS", 2)
    monkeypatch.setattr(roll, "CALL_SECONDS", 0.0)
    assert pf.run(m, {"x": [1.0, -1.0]}, **how)[list(record)].identical(found[list(record)])
    ends = pf.run(m, {"x": 1.0}, **RUN | {"duration": 0.0}, record={"n": statistics.histogram("q", [0, 1])})
    assert ends["n"].values.tolist() == [[1]], "the last edge belongs to the last interval"


WRONG = {
    "the name of bins": ({"a": statistics.histogram("q", [0, 1]), "a_bin": statistics.maximum("q")}, "'a_bin': the result"),
    "no statistic": ({"peak": "u"}, "record: 'peak': 'u': a statistic such as statistics.maximum"),
    "trajectories alone": ({"q": True}, "a dict without a statistic"),
    "no such signal": ({"peak": statistics.maximum("spin")}, "there is no signal 'spin'"),
    "the name of a signal": ({"q": statistics.maximum("q")}, "statistic 'q': the result has something else"),
    "the name of a dimension": ({"velocity": statistics.maximum("v")}, "statistic 'velocity': the result has something else"),
    "a group": ({"a/b": statistics.maximum("v")}, "without '/'"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_statistics_are_refused(case):
    record, words = WRONG[case]
    with pytest.raises(ModelError, match=words):
        pf.run(pendulum(), record=record, **RUN)


def test_wrong_arguments_and_adaptive_runs_are_refused():
    for edges in ([1.0], [1.0, 1.0], [0, 2, 1], [[0, 1]]):
        with pytest.raises(ModelError, match="histogram: edges: at least two increasing"):
            statistics.histogram("q", edges)
    with pytest.raises(ModelError, match="first_crossing: direction 'up' is unknown; one of rising, falling, either"):
        statistics.first_crossing("q", direction="up")
    with pytest.raises(ModelError, match="first_crossing: level"):
        statistics.first_crossing("q", "high")
    with pytest.raises(ModelError, match="maximum: the name of a signal"):
        statistics.maximum(3)
    with pytest.raises(ModelError, match="supported by run only"):
        run_adaptive(pendulum(), times=[0, 1], record={"peak": statistics.maximum("v")})


def pressed_at(monkeypatch, *calls):
    """Press Ctrl-C during these calls of the loop."""
    count, call = [0], Rollout.__call__

    def interrupted(self, *arguments, **how):
        count[0] += 1
        done = call(self, *arguments, **how)
        for _ in range(calls.count(count[0])):
            os.kill(os.getpid(), signal.SIGINT)
        return done

    monkeypatch.setattr(StepErrorMonitor, "at", ())  # comparisons of steps are calls too
    monkeypatch.setattr(roll, "FIRST_LANE_STEPS", 4)
    monkeypatch.setattr(roll, "CALL_SECONDS", 0.0)  # one step in each call
    monkeypatch.setattr(Rollout, "__call__", interrupted)


def test_an_interrupted_run_returns_what_it_computed(monkeypatch):
    monkeypatch.setattr(interrupt, "SHORT", 0.0)
    whole = pf.run(pendulum(), [0.3], **RUN)
    pressed_at(monkeypatch, 3)
    with pytest.warns(RunWarning, match="interrupted"):
        part = pf.run(pendulum(), [0.3], **RUN)
    assert part.attrs["interrupted"] == 1 and "interrupted" not in whole.attrs
    assert pf.results.causes(part)[0].startswith("interrupted: ") and float(part.stopped) == pytest.approx(0.06)
    np.testing.assert_array_equal(part.q[:6], whole.q[:6])
    assert np.isnan(part.q[6:]).all() and np.isfinite(part.end_state).all()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.parametrize(("short", "calls"), [(np.inf, [2]), (0.0, [2, 2])], ids=["a run just begun", "pressed twice"])
def test_other_interrupts_raise_keyboard_interrupt(monkeypatch, short, calls):
    monkeypatch.setattr(interrupt, "SHORT", short)
    pressed_at(monkeypatch, *calls)
    with pytest.raises(KeyboardInterrupt):
        pf.run(pendulum(), [0.3], **RUN)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
