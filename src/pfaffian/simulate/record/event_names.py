"""What is said of events: the one after which a run stopped, and steps that were not split at all of theirs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pfaffian.control.layout import EventNumbers
from pfaffian.errors import RunWarning, listed, notice, plural
from pfaffian.simulate.step.activation import switched
from pfaffian.simulate.step.draft import Draft
from pfaffian.simulate.step.events import ConditionsHere, eventful, events_of
from pfaffian.simulate.step.simulation import Simulation

RECENT_EVENTS = 10
"""Number of the last events of a run that stopped whose rate is told."""


def numbers_of(s: Simulation, x: np.ndarray) -> EventNumbers:
    """The EventNumbers (runs,) in the states x (runs, nx) of runs with events."""
    return EventNumbers(*x[:, s.nx - s.layout.size :][:, s.layout.events].T)


def last_names(s: Simulation, x: np.ndarray) -> list[str]:
    """Names of the constraint or parameter that changed last in runs with these states, "" where none did."""
    events = events_of(s)
    names = ("", *(events.names if events else ()))
    return [names[int(i) + 1] for i in numbers_of(s, x).last]


SMOOTH = "; if it jumps, smooth it, or hold the motion there by a constraint (active_while) with a memory (switches=)"
REMEMBER = "; if its own constraint keeps its condition at the edge, give it a memory (switches=)"
REST = "; a body that comes to rest there needs a constraint that carries it from then on (active_while) and a mode (switches=)"
APART = "; let the mode switch back at another value than forth, and no two modes switch each other"
"""The ways out where events of a kink, of a constraint, of an impact or of a mode have no end."""


def reasons(s: Simulation, x: np.ndarray, result: Draft, at: np.ndarray) -> list[str]:
    """What the endless events of the runs `at` are of, how fast they follow one another, and the way out, from the last states
    x (runs, nx) of all runs and the events of their result, if it has them."""
    events, last = events_of(s), numbers_of(s, x[at]).last
    assert events is not None
    named = [f"the last is of {name!r}" if name else "" for name in last_names(s, x[at])]
    ends = events.kink_places.start, events.conditions, events.conditions + events.impacts
    ways_out = [(REMEMBER, SMOOTH, REST, APART)[int(np.searchsorted(ends, i, "right"))] for i in last]
    several = zip(named, ways_out, at, strict=True)
    return [f"{words}{_rate(result, int(run))}{way_out}" if words else "" for words, way_out, run in several]


def _rate(result: Draft, run: int) -> str:
    """In which time the last events of a run to an accuracy follow one another; of a step of one length that failed they are
    not known."""
    if "accuracy" not in result.attrs:
        return ""
    times = result["event_time"][result["event_run"] == run][-RECENT_EVENTS:]
    if len(times) < 2:
        return ", where others would follow at the same instant"
    long = np.ptp(times)
    return f", the last {len(times)} {f'follow within {long:.2g} s' if long > 0 else 'are at one instant'}"


def and_last_event(
    s: Simulation, x: np.ndarray, result: Draft, find: Callable[[np.ndarray], list[str]], at: np.ndarray
) -> list[str]:
    """What `find` says of the runs `at`, and their last event, from the last states x (runs, nx) of all runs and the result."""
    events = reasons(s, x, result, at) if eventful(s) else [""] * len(at)
    causes = [f"events: {words}" if words else "" for words in events]
    return ["; ".join(words for words in both if words) for both in zip(find(at), causes, strict=True)]


def undefined_names(s: Simulation, at: np.ndarray) -> list[str]:
    """What has conditions that may compare NaN, for each of the runs `at`."""
    events = events_of(s)
    assert events is not None
    places = events.function.sparsity_out(ConditionsHere._fields.index("undefined")).row()
    names = listed(list(dict.fromkeys(repr(events.parts[i]) for i in places)))
    return [f"it may be that of {names}; guard it, as in ca.logic_and(x > 0, ca.log(x) < 1)"] * len(at)


def contradicting_names(s: Simulation, at: np.ndarray) -> list[str]:
    """What may have made the runs `at` leave their constraints, in machines some of whose constraints begin to act."""
    names = listed([repr(c.name) for c in switched(s.mechanism)])
    way_out = "let one of them cease to act (active_while), or take a shorter step"
    return [f"{names}, or rows beside them, may contradict each other where they begin to act: {way_out}"] * len(at)


def warn_of_unsplit_steps(s: Simulation, x: np.ndarray) -> None:
    """Warn of runs some of whose steps were not split at all of their events.   x: (runs, nx) last states."""
    events = events_of(s)
    if events is None:
        return
    unsplit = numbers_of(s, x).unsplit
    lost = np.flatnonzero(unsplit > 0)
    if not lost.size:
        return
    run = int(lost[np.argmax(unsplit[lost])])
    which = "" if len(x) == 1 else f" in {len(lost)} of {len(x)} runs, most in run {run},"
    name, count = last_names(s, x[run : run + 1])[0], int(unsplit[run])
    of = [name] if name else list(dict.fromkeys(events.parts))  # none was passed yet: it may be any
    notice(
        f"events of {listed([repr(part) for part in of])} follow one another so fast that{which} {plural(count, 'step')} "
        f"{'was' if count == 1 else 'were'} not split at all of them, so that the error there falls with the step only. If a "
        "condition turns false where it has just become true, give it a memory: switches={mode: function of the mode}",
        RunWarning,
    )
