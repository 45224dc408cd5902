"""The events of a run in steps of one length: calls of the loop in which some occurred are made again, step by step."""

from __future__ import annotations

import casadi as ca
import numpy as np

from pfaffian import kernel
from pfaffian.control.layout import EventNumbers
from pfaffian.kernel.program.numpy_loop import input_at
from pfaffian.kernel.remember import remembered
from pfaffian.simulate.record.event_names import numbers_of
from pfaffian.simulate.record.event_table import PassedEvents, at_last, passing
from pfaffian.simulate.step.events import eventful, events_of
from pfaffian.simulate.step.simulation import Simulation
from pfaffian.simulate.step.time_loop import TimeLoop

BLOCK = 2**12
"""Most steps whose states are stored at once."""


def step_events(loop: TimeLoop, x: np.ndarray, first: int, steps: int, end: np.ndarray) -> list[PassedEvents]:
    """The events of a single run in `steps` steps from step `first`.   x, end: (1, nx) states before and after them."""
    s, found = loop.simulation, list[PassedEvents]()
    if not eventful(s) or numbers_of(s, end).total == numbers_of(s, x).total:
        return found
    states = _states(s, loop.rollout.in_c)
    for k in range(first, first + steps, BLOCK):
        span = loop.span(k, min(BLOCK, first + steps - k), True)._replace(every=1)
        r = states(x, loop.series, loop.p, span)
        total = numbers_of(s, r.records[:, 0]).total
        found += [_of_step(loop, r.records[i, 0], k + int(i)) for i in np.flatnonzero(total[1:] > total[:-1])]
        x = r.x
    return found


def events_at_end(loop: TimeLoop, x: np.ndarray, k: int) -> list[PassedEvents]:
    """The events at the last instant of a single run that ends before step k, where rounding decides on which side of it they
    are: those of a step that is made for them alone.   x: (1, nx) state at the end."""
    if not eventful(loop.simulation):
        return []
    when, after = loop.when, loop.beside(x, np.zeros(1, int), first=k, steps=1)
    end = when.start + k * when.step
    found = step_events(loop, x, k, 1, after.x)
    return [PassedEvents(*(values[each.time <= end + at_last(end)] for values in each)) for each in found]


@remembered(64)
def _states(s: Simulation, in_c: bool) -> kernel.Rollout:
    """The time loop of a simulation that records its states.   in_c: whether it is worth to compile it."""
    x, w, p, t = s.traced.observe.sx_in()
    states = ca.Function("states", [x, w, p, t], [x])
    build = lambda: (s.traced.step, states, *s.traced.samplers)  # noqa: E731
    return kernel.compile_rollout(build, backend="auto" if in_c else "interpreter", lanes=1, key=f"states {s.key}")


@remembered(64)
def _part(s: Simulation) -> kernel.Kernel:
    """The next part of a step of a simulation."""
    return kernel.compile(lambda: s.traced.step, backend="interpreter", lanes=1, key=f"part {s.key}")


def _of_step(loop: TimeLoop, x: np.ndarray, k: int) -> PassedEvents:
    """The events in step k from the state x (nx,)."""
    s, when, events, span = loop.simulation, loop.when, events_of(loop.simulation), loop.span(k, 1)
    assert events is not None
    u0 = np.broadcast_to(input_at(loop.series, k, span), (1, len(s.w_names)))
    u1 = np.broadcast_to(input_at(loop.series, k + 1, span), u0.shape) if loop.hold == "linear" else u0
    begin, states, goes_on = when.start + k * when.step, [x], True
    while goes_on:
        x_next, faults, more = _part(s)(states[-1][None], u0, u1, loop.p, np.array([begin]), np.array([when.step]))
        states.append(np.concatenate([x_next[0], x[x_next.shape[1] :]]))
        goes_on = more[0, 0] != 0 and not faults.any()
    rows = np.array(states)
    numbers = EventNumbers(*rows[:, s.nx - s.layout.size :][:, s.layout.events].T)
    time = np.append(numbers.done[:-1], when.step)
    at = np.flatnonzero(passing(events, time, numbers))
    w = u0 + (time[at + 1] / when.step)[:, None] * (u1 - u0)
    return PassedEvents(rows[at], rows[at + 1], begin + time[at + 1], w, np.zeros(len(at), int))
