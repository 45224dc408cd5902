"""Statistics kept within a run against those of its full record; Ctrl-C that gives back what was computed."""

from __future__ import annotations

import os
import signal

import casadi as ca
import numpy as np
import pytest

import pfaffian as pf
import pfaffian.simulate.interrupt as interrupt
import pfaffian.simulate.roll as roll
from pfaffian import control
from pfaffian.errors import ModelError, RunWarning
from pfaffian.kernel.call.rollout import Rollout
from pfaffian.simulate.accuracy import Watch
from tests.simulate.machines import FOUR_BAR_START, four_bar, pendulum
from tests.tolerance import EPS

RUN = {"duration": 0.2, "step": 1e-2, "backend": "numpy", "error_bound": np.inf}
KINDS = {"maximum": pf.maximum, "minimum": pf.minimum, "mean": pf.mean, "integral": pf.integral, "final": pf.final}


def of(x, kind, time):
    """The statistic of x (..., time, entries) by NumPy alone, NaN left out."""
    x = np.moveaxis(x, -2, 0)
    last = np.array([column[np.isfinite(column)][-1] for column in x.reshape(len(x), -1).T]).reshape(x.shape[1:])
    h, there = time[1] - time[0], np.isfinite(x)
    pairs = np.where(there[1:] & there[:-1], (x[1:] + x[:-1]) / 2, 0)
    if kind in ("integral", "final"):
        return h * pairs.sum(axis=0) if kind == "integral" else last
    return {"maximum": np.nanmax, "minimum": np.nanmin, "mean": np.nanmean}[kind](x, axis=0)


def check(m, q, names, **how):
    """Every statistic of every signal against the full record, which is not kept."""
    record = {f"{kind} of {n}": make(n) for kind, make in KINDS.items() for n in names}
    found, full = (pf.run(m, q, record=r, **RUN | how | {"every": e}) for r, e in ((record, 7), ("all", 1)))
    assert not [n for n, x in found.data_vars.items() if "time" in x.dims]
    for kind in KINDS:
        for name in names:
            x, entry = full[name], [d for d in full[name].dims if d not in ("run", "time")]
            wanted = of(x.values if entry else x.values[..., None], kind, full.time.values)
            got = found[f"{kind} of {name}"]
            assert got.dims == tuple(d for d in x.dims if d != "time"), "labelled as the signal is"
            room = 64 * EPS * np.nanmax(np.abs(x.values), initial=1.0)
            np.testing.assert_allclose(got.values if entry else got.values[..., None], wanted, rtol=0, atol=room)
            assert got.attrs["units"] == x.attrs["units"] + (" s" if kind == "integral" else "")
    return found


def test_of_one_run_with_constraints_and_of_a_batch():
    check(four_bar(), FOUR_BAR_START, ["q", "v", "energy", "multiplier", "regularity"])
    check(pendulum(), np.linspace(-1, 1, 3)[:, None], ["q", "energy"], outputs={"bob": lambda k: k.position("bob")})


def test_of_a_law_in_discrete_time_that_is_due_at_the_end():
    m = pendulum()
    law = control.discrete(lambda s: control.Command(-2 * s.terms.q, signals={"seen": ca.vertcat(s.terms.q, 1)}), 0.05)
    check(m, [0.4], ["u", "seen"], control=law)


def test_of_a_run_that_stops_up_to_there():
    m = pendulum()
    push = pf.generalised_force("push", lambda k: ca.if_else(k.t > 0.1, 1e300, 0) * (1 + k.q[0] ** 2), joint="pivot")
    with pytest.warns(RunWarning, match="stopped"):
        found = check(m.with_(forces=[*m.forces, push]), [0.3], ["q", "energy"])
    assert np.isfinite(found["mean of q"].values).all() and float(found.stopped) < 0.2


@pytest.mark.parametrize("backend", ["numpy", "interpreter"])
def test_where_calls_end_changes_no_bit_and_what_is_kept_over_time_is_the_record(monkeypatch, backend):
    record = {"q": True, "sum": pf.integral("v"), "mean": pf.mean("energy"), "end": pf.final("q")}
    how = RUN | {"every": 3, "backend": backend}
    whole = pf.run(four_bar(), FOUR_BAR_START, record=record, **how)
    assert whole.q.dims == ("time", "coordinate") and "v" not in whole and "energy" not in whole
    np.testing.assert_array_equal(whole.q, pf.run(four_bar(), FOUR_BAR_START, record=["q"], **how).q)
    monkeypatch.setattr(roll, "FIRST_LANE_STEPS", 2)
    monkeypatch.setattr(roll, "CALL_SECONDS", 0.0)
    parts = pf.run(four_bar(), FOUR_BAR_START, record=record, **how)
    for name in ("q", "sum", "mean", "end"):
        np.testing.assert_array_equal(parts[name], whole[name])


WRONG = {
    "no statistic": ({"peak": "u"}, "record: 'peak': 'u': a statistic such as maximum"),
    "trajectories alone": ({"q": True}, "a dict without a statistic"),
    "no such signal": ({"peak": pf.maximum("spin")}, "there is no signal 'spin'"),
    "the name of a signal": ({"q": pf.maximum("q")}, "statistic 'q': the result has something else"),
    "the name of a dimension": ({"velocity": pf.maximum("v")}, "statistic 'velocity': the result has something else"),
    "a group": ({"a/b": pf.maximum("v")}, "without '/'"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_no_statistic_is_refused(case):
    record, words = WRONG[case]
    with pytest.raises(ModelError, match=words):
        pf.run(pendulum(), record=record, **RUN)


def test_a_statistic_has_a_name_and_other_ways_to_run_say_so():
    with pytest.raises(ModelError, match="maximum: the name of a signal"):
        pf.maximum(3)
    with pytest.raises(ModelError, match="kept by run alone"):
        pf.run_adaptive(pendulum(), times=[0, 1], record={"peak": pf.maximum("v")})


def pressed_at(monkeypatch, *calls):
    """Ctrl-C within these calls of the loop."""
    count, call = [0], Rollout.__call__

    def interrupted(self, *arguments, **how):
        count[0] += 1
        done = call(self, *arguments, **how)
        for _ in range(calls.count(count[0])):
            os.kill(os.getpid(), signal.SIGINT)
        return done

    monkeypatch.setattr(Watch, "at", ())  # its looks are calls too
    monkeypatch.setattr(roll, "FIRST_LANE_STEPS", 4)
    monkeypatch.setattr(roll, "CALL_SECONDS", 0.0)  # a step at a time
    monkeypatch.setattr(Rollout, "__call__", interrupted)


def test_an_interrupted_run_gives_back_what_it_computed(monkeypatch):
    monkeypatch.setattr(interrupt, "SHORT", 0.0)
    whole = pf.run(pendulum(), [0.3], **RUN)
    pressed_at(monkeypatch, 3)
    with pytest.warns(RunWarning, match="interrupted"):
        part = pf.run(pendulum(), [0.3], **RUN)
    assert part.attrs["interrupted"] == 1 and "interrupted" not in whole.attrs
    assert pf.causes(part)[0].startswith("interrupted: ") and float(part.stopped) == pytest.approx(0.06)
    np.testing.assert_array_equal(part.q[:6], whole.q[:6])
    assert np.isnan(part.q[6:]).all() and np.isfinite(part.end_state).all()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.parametrize(("short", "calls"), [(np.inf, [2]), (0.0, [2, 2])], ids=["a run just begun", "pressed twice"])
def test_other_interrupts_are_those_of_the_program(monkeypatch, short, calls):
    monkeypatch.setattr(interrupt, "SHORT", short)
    pressed_at(monkeypatch, *calls)
    with pytest.raises(KeyboardInterrupt):
        pf.run(pendulum(), [0.3], **RUN)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
