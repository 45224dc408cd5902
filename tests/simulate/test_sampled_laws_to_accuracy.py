"""Laws in discrete time in runs to an accuracy: parts of several rates, inputs, faults and events."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest

import pfaffian as pf
from pfaffian import RunWarning, control
from pfaffian.kernel.call.rollout import Rollout
from pfaffian.statistics import integral
from tests.simulate.machines import pendulum

HOW = {"accuracy": 1e-9, "backend": "interpreter"}
LONG = 2.0  # s, some 400 instants of a law at 200 Hz
CLOSE = 2e-9
"""Bound of the error: that asked of both runs."""


def damped(period: float = 0.005, **kwargs) -> control.Control:
    """A law with a slower sensor, which is called before it."""
    fast = {"rate": control.sensor(lambda k: k.v)}
    slow = {"angle": control.sensor(lambda k: k.q, period=4 * period, phase=period)}
    return control.discrete(lambda s: control.Command(-6 * s["angle"] - s["rate"]), period, measure=fast | slow, **kwargs)


def exactly(m: pf.Mechanism, seconds: float, law: control.Control, **kwargs):
    """The same motion by short steps of one length, a whole number of which lie between two instants."""
    return pf.run(m, {"pivot": 1.0}, duration=seconds, step=2.5e-4, every=80, control=law, backend="c", **kwargs)


def test_parts_of_two_rates():
    m, law = pendulum(), damped()
    exact = exactly(m, LONG, law)
    r = pf.run(m, {"pivot": 1.0}, times=exact.time.values, control=law, **HOW)
    np.testing.assert_allclose(r.q.values, exact.q.values, atol=CLOSE)
    np.testing.assert_allclose(r.u.values, exact.u.values, atol=20 * CLOSE)
    assert np.ptp(r.u.values) > 1


@pytest.mark.parametrize("hold", ["zero", "linear"])
def test_inputs_that_change_where_the_law_is_called(hold):
    """The law reads the samples that begin at its instants, and is called once where rounding puts these beside its own."""
    law = control.discrete(
        lambda s: control.Command(s["wish"] - s["rate"] + 0.1 * s["calls"], d_next={"calls": s["calls"] + 1}),
        0.01,
        measure={"rate": control.sensor(lambda k: k.v)},
        inputs=("wish",),
        state={"calls": 0.0},
    )
    k = np.arange(21)
    assert (k * 0.05 > 5 * k * 0.01).any()
    samples = np.random.default_rng(4).normal(size=(21, 1))
    inputs = {"u": samples, "u_step": 0.05, "hold": hold}
    exact = exactly(pendulum(), 1.0, law, **inputs)
    r = pf.run(pendulum(), {"pivot": 1.0}, times=exact.time.values, control=law, **inputs, **HOW)
    np.testing.assert_allclose(r.q.values, exact.q.values, atol=CLOSE)
    np.testing.assert_allclose(r.u.values, exact.u.values, atol=20 * CLOSE)


def test_the_records_change_no_bit():
    """Records at instants of the law, beside them and far apart, in a batch and alone, in one part and in two."""
    m, law = pendulum(), damped(latency=1)
    often = pf.run(m, {"pivot": 1.0}, times=np.linspace(0, LONG, 401), control=law, **HOW)
    rare = pf.run(m, {"pivot": 1.0}, times=[0.0, 0.5, LONG], control=law, **HOW)
    batch = pf.run(m, [[0.2], [1.0], [2.5]], times=[0.0, 0.5, LONG], control=law, threads=2, **HOW).isel(run=1)
    half = pf.run(m, {"pivot": 1.0}, times=[0.0, 0.0123, 0.5], control=law, **HOW)
    rest = pf.run(m, start_from=half, times=[0.5, LONG], control=law, **HOW)
    for name in ("q", "v", "u"):
        np.testing.assert_array_equal(rare[name].values, often[name].values[[0, 100, 400]])
        np.testing.assert_array_equal(batch[name].values, rare[name].values)
        np.testing.assert_array_equal(rest[name].values, rare[name].values[1:])
    assert int(often.steps) == int(rare.steps) and float(often.error.max()) <= 1e-9


def test_neither_samples_nor_instants_of_the_law_end_a_call(monkeypatch):
    """The number of calls of the compiled loop does not grow with the rate of the law or of the samples of inputs."""
    calls, call = [], Rollout.__call__

    def counted(self, *args, **kwargs):
        calls.append(self)
        return call(self, *args, **kwargs)

    monkeypatch.setattr(Rollout, "__call__", counted)
    for period in (0.02, 0.002):
        samples = np.sin(np.arange(1 + round(0.4 / period)))[:, None]
        for how in ({"control": damped(period)}, {"u": samples, "u_step": period}, {"u": samples[:, None], "u_step": period}):
            calls.clear()
            pf.run(pendulum(), {"pivot": 1.0}, duration=0.4, **how, **HOW)
            assert 0 < len(calls) < 15


def test_a_law_that_fails_at_an_instant():
    """The run ends there; what came before it is recorded, its events too."""
    law = control.discrete(
        lambda s: control.Command(0 * s["angle"], faults=s["angle"] < 0.2),
        0.005, measure={"angle": control.sensor(lambda k: k.q)}, faults=("the rod is low",),
    )  # fmt: skip
    m = pendulum()
    free = pf.run(m, {"pivot": 1.0}, times=np.linspace(0, 1, 401), **HOW)
    with pytest.warns(RunWarning, match="the rod is low"):
        r = pf.run(m, {"pivot": 1.0}, times=np.linspace(0, 1, 401), control=law, **HOW)
    k = 2 * int(np.argmax(free.q.values[::2, 0] < 0.2))
    assert float(r.stopped) == pytest.approx(0.0025 * k, abs=1e-12)
    np.testing.assert_allclose(r.q.values[:k], free.q.values[:k], atol=CLOSE)
    assert np.isnan(r.q.values[k:]).all()
    total = {"record": {"angle": integral("q")}, **HOW}
    with pytest.warns(RunWarning, match="the rod is low"):
        stopped = pf.run(m, {"pivot": 1.0}, duration=1.0, control=law, **total)
    whole = pf.run(m, {"pivot": 1.0}, duration=0.0025 * k, **total)
    assert float(stopped["angle"].squeeze()) == pytest.approx(float(whole["angle"].squeeze()), abs=CLOSE)


def test_events_between_the_instants():
    """A mode that changes with the motion acts at its own instant, the law at its own."""
    fast = pf.Parameter("fast", 0.0)
    law = control.discrete(
        lambda s: control.Command(-6 * s["angle"] - 5 * fast * s["rate"]), 0.05,
        measure={"angle": control.sensor(lambda k: k.q), "rate": control.sensor(lambda k: k.v)},
    )  # fmt: skip
    m = pendulum().with_(parameters=[fast])
    how = {"control": law, "switches": {"fast": lambda k: ca.if_else(k.v[0] < -1.0, 1, fast)}}
    r = pf.run(m, {"pivot": 1.0}, times=np.linspace(0, 1, 11), **how, **HOW)
    exact = pf.run(m, {"pivot": 1.0}, duration=1.0, step=5e-4, every=200, backend="c", **how)
    np.testing.assert_allclose(r.q.values, exact.q.values, atol=1e-7)
    (when,) = pf.events(r).time.values
    assert when % 0.05 > 1e-3 and when == pytest.approx(float(pf.events(exact).time[0]), abs=1e-6)
