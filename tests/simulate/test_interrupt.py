"""Ctrl-C interrupts a run within one call of the compiled loop, however long the run and its `every`."""

from __future__ import annotations

import signal
import subprocess
import sys

import numpy as np
import pytest

import pfaffian as pf
import pfaffian.simulate.run.roll as module
from pfaffian.kernel.call.rollout import Rollout
from pfaffian.kernel.program.numpy_loop import Span
from pfaffian.simulate.error.accuracy import StepErrorMonitor
from tests.simulate.machines import pendulum
from tests.work import PATIENCE

HOURS = 10**11
"""Number of steps of a run that takes hours."""

SCRIPT = f"""
import os, signal, threading
import pfaffian as pf
from tests.simulate.machines import pendulum
pf.run(pendulum(), duration=0.01)
threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    pf.run(pendulum(), duration={HOURS} * 1e-3, every={HOURS})
except KeyboardInterrupt:
    print("heard")
"""


def test_an_interrupt_stops_a_run_between_two_records():
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=PATIENCE)
    assert done.stdout.strip() == "heard", done.stderr


@pytest.mark.parametrize("runs", [1, 9])
def test_calls_are_short_and_change_no_bit(monkeypatch, runs):
    """The clock says that the time of each call is proportional to its steps; the next call has no more steps than fit into
    CALL_SECONDS."""
    now, steps = [0.0], []
    call = Rollout.__call__

    def timed(self, *arguments, **how):
        (span,) = (x for x in arguments if isinstance(x, Span))
        steps.append(span.steps)
        now[0] += span.steps / 100
        return call(self, *arguments, **how)

    q = np.linspace(-1, 1, runs)[:, None]
    whole = pf.run(pendulum(), q, duration=1.0, every=300, error=False)
    monkeypatch.setattr(StepErrorMonitor, "at", ())  # comparisons of steps are calls too
    monkeypatch.setattr(module, "FIRST_LANE_STEPS", 2 * runs)
    monkeypatch.setattr(module.time, "perf_counter", lambda: now[0])
    monkeypatch.setattr(Rollout, "__call__", timed)
    parts = pf.run(pendulum(), q, duration=1.0, every=300, error=False)
    assert steps[:3] == [2, 16, 50]
    assert max(steps) == 100 * module.CALL_SECONDS
    assert sum(steps) == 1000
    for name in ("time", "q", "v", "energy"):
        np.testing.assert_array_equal(parts[name].values, whole[name].values)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
