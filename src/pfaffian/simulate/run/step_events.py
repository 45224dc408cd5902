"""The events of a single run in steps of one length, from the parts of the steps that pass some."""

from __future__ import annotations

import numpy as np

from pfaffian.control.layout import EventNumbers
from pfaffian.kernel.program.numpy_loop import input_at
from pfaffian.simulate.record.event_table import PassedEvents, at_last, passing
from pfaffian.simulate.step.events import eventful, events_of
from pfaffian.simulate.step.time_loop import TimeLoop


def step_events(loop: TimeLoop, parts: np.ndarray) -> tuple[PassedEvents, ...]:
    """The events that steps pass.   parts: (rows, 1 + nx) index of a step and state, see `RolloutResult`."""
    s, when, events = loop.simulation, loop.when, events_of(loop.simulation)
    if events is None or len(parts) < 2:
        return ()
    k, x = parts[:, 0].astype(int), parts[:, 1:]
    same = k[1:] == k[:-1]
    numbers = EventNumbers(*x[:, s.nx - s.layout.size :][:, s.layout.events].T)
    time = np.where(np.append(same, False), numbers.done, when.step)
    at = np.flatnonzero(same & passing(events, time, numbers))
    w = np.array([_inputs(loop, int(k[i]), time[i + 1]) for i in at]).reshape(len(at), len(s.w_names))
    return (PassedEvents(x[at], x[at + 1], when.start + k[at] * when.step + time[at + 1], w, np.zeros(len(at), int)),)


def _inputs(loop: TimeLoop, k: int, since: float) -> np.ndarray:
    """The inputs (nw,) some time after the begin of step k [s]."""
    span, step = loop.span(k, 1), loop.when.step
    u0 = input_at(loop.series, k, span)
    u1 = input_at(loop.series, k + 1, span) if loop.hold == "linear" else u0
    return np.reshape(u0 + since / step * (u1 - u0), -1)


def events_at_end(loop: TimeLoop, x: np.ndarray, k: int) -> tuple[PassedEvents, ...]:
    """The events at the last instant of a single run that ends before step k, where rounding decides on which side of it they
    are: those of a step that is made for them alone.   x: (1, nx) state at the end."""
    if not eventful(loop.simulation):
        return ()
    end = loop.when.start + k * loop.when.step
    found = step_events(loop, loop.steps(x, slice(None), k, 1, False).parts)
    return tuple(PassedEvents(*(values[each.time <= end + at_last(end)] for values in each)) for each in found)
