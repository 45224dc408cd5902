"""The result of runs in steps of fixed length, from what their time loop left."""

from __future__ import annotations

from typing import Any

import numpy as np

from pfaffian.control.idle import idle_under
from pfaffian.kernel.call.recipe import Backend
from pfaffian.simulate.error.accuracy import StepErrorMonitor
from pfaffian.simulate.error.balance import cost_of
from pfaffian.simulate.record.event_names import numbers_of
from pfaffian.simulate.record.event_table import record_events
from pfaffian.simulate.record.provenance import machine
from pfaffian.simulate.record.result import Recorded, build_result, stored_signals
from pfaffian.simulate.run.companion import RecordedMotion, estimated_error
from pfaffian.simulate.run.findings import ComparedSteps, EndedRuns, with_findings
from pfaffian.simulate.run.python_law import PythonLaw, messages_of
from pfaffian.simulate.run.resume import end_state
from pfaffian.simulate.run.roll import LoopResult, LoopStart
from pfaffian.simulate.step.draft import Draft
from pfaffian.simulate.step.events import eventful
from pfaffian.simulate.step.sampling import provenance as sampled
from pfaffian.simulate.step.signals import entries_of
from pfaffian.simulate.step.step import settings_of

NOTHING = slice(0, 0)


def ended(
    watch: StepErrorMonitor,
    departure: LoopStart,
    done: LoopResult,
    series: np.ndarray,
    python: PythonLaw | None,
    seed: Any,
    backend: Backend,
    estimated: np.ndarray,
) -> Draft:
    """The result of the runs, with all findings about them.   estimated: indices of the runs whose error is estimated."""
    loop, begun = watch.loop, departure.start
    s, when, scheme = loop.simulation, loop.when, loop.simulation.scheme
    state, end_attributes = end_state(s, done.x, when)
    provenance = machine() | {f"kernel_{k}": x for k, x in loop.rollout.provenance.items()}
    provenance |= settings_of(scheme, s.mechanism) | {"state": s.system.name}
    provenance["kernel_backend"] = ", then ".join(done.tiers)
    provenance |= {"idle_motions": ", ".join(idle)} if (idle := idle_under(s.control, s.mechanism)) else {}
    provenance |= {"state_about": "\n".join(s.system.about)} if s.system.about else {}
    provenance |= {"step": when.step, "duration": when.duration, "hold": loop.hold} | sampled(s.control, s.changing, seed)
    instants = when.start + when.step * when.every * (when.first // when.every + np.arange(when.records))
    stopped = np.where(done.stopped >= 0, when.start + when.step * done.stopped, np.nan)
    stopped += numbers_of(s, done.x).done if eventful(s) else 0.0  # in the middle of a step, after an event
    stored = entries_of(stored_signals(s, loop.tally))
    E, T, q, v = (done.records[:, :, stored.get(name, NOTHING)] for name in ("energy", "kinetic_energy", "q", "v"))
    cost = cost_of(watch, done.x, done.stopped, E, T, q, v)
    q_v = np.concatenate([q, v], axis=2) if {"q", "v"} <= set(stored) else None
    error = estimated_error(loop, departure, RecordedMotion(instants, q_v, done.x, done.status), estimated)
    course = Recorded(
        instants, done.records, done.status, stopped, begun, series, when.step * when.stride, error, cost, state, loop.tally
    )
    result = build_result(s, course, provenance | end_attributes | ({"interrupted": True} if done.interrupted else {}))
    if len(done.status) == 1:
        record_events(result, s, list(done.events), loop.p)
    steps = ComparedSteps(watch, cost, departure.x, done.stopped, done.warned)
    messages = messages_of(begun.messages, python.calls if python else None, len(done.status))
    return with_findings(result, EndedRuns(s, begun, when.start, messages, done.x, departure.kinds, backend, steps))
