"""The lanes of the compiled loop under error control: the numbers of each, and how a law in discrete time is sampled there.

Each lane has its own time and step, which are numbers of its state, so that no bit of a run depends on the others. The state of
a lane is

    [x; z | time, length, refused, root, implicit, evidence, patience, spent, interval, made, speeds, law |
     d, sampled | begin, end, tolerance, longest, part]

where the first group changes in a step, in machines with events (`events.py`) also d but for those EventNumbers which only
steps of one length change; samplers change d and `sampled`.
The inputs of a lane are a row of numbers, [w; w_dot; since; barrier], of the interval in which it is: the loop has the rows of
many intervals, and each lane chooses its own.

x: state of the system.   z, d: states of the law that it integrates, and samples.   time: since the run began [s].
length: of the next step [s].   refused: whether the last step was.   root: fifth root of the factor by which the error of the
step before would have changed its length.   implicit: whether the stiff pair makes the next step; a loop of the other pair
leaves the lane alone.   evidence: steps that spoke for the other pair, less those against it.   patience: evidence after which
the explicit pair gives way to the stiff one.   spent: steps since the pair changed.   interval: index of its inputs, among
those that a call of the loop has.   made: number of steps so far.   speeds: the largest so far, of each unit.   law: the
largest |z| so far.
sampled: when a law in discrete time was called last [s], where the loop calls it.
begin: time at which the run began [s].   end: the lane stays where it passes this.   tolerance: largest error of a step.
longest: greatest length of a step [s].   part: the largest part of the time between two barriers that the first step may take
where one or two would do, so that they are no halves; 0: they may be halves or one step.
w, w_dot: inputs at the begin of an interval, and their rates.   since, barrier: its ends [s]; no step passes the second.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Any, NamedTuple

import casadi as ca
import numpy as np

from pfaffian.control.layout import TO_ACCURACY, EventNumbers
from pfaffian.kernel.remember import once_for
from pfaffian.simulate.step.events import each, eventful
from pfaffian.simulate.step.sampling import in_python, rates

if TYPE_CHECKING:
    from pfaffian.simulate.step.simulation import Simulation

SAME = 4 * float(np.finfo(float).eps)
"""Relative difference of instants that count as one."""


class Lane(NamedTuple):
    """Where the numbers of a lane stand.   x: of system and law.   stepped: number of those that a step changes.
    moving: number of those that steps and the loop's samplers change.   discrete: of law and switches.   events: in it, where a
    lane has some.   units: of `speeds`.   The others are named as in the text above."""

    x: slice
    time: int
    length: int
    refused: int
    root: int
    implicit: int
    evidence: int
    patience: int
    spent: int
    interval: int
    made: int
    speeds: slice
    law: slice
    discrete: slice
    sampled: int
    begin: int
    end: int
    tolerance: int
    longest: int
    part: int
    stepped: int
    moving: int
    events: EventNumbers
    units: tuple[str, ...]

    @property
    def size(self) -> int:
        """Number of all numbers."""
        return self.part + 1


def lane_of(s: Simulation) -> Lane:
    """The Lane of a simulation."""
    return once_for(s, "lane", lambda: _lane(s))


def _lane(s: Simulation) -> Lane:
    """The Lane of a simulation, in the order of the text above."""
    n, nz, units = s.system.nx + len(s.z), len(s.z), tuple(sorted(set(s.mechanism.v_units)))
    speeds = slice(n + 10, n + 10 + len(units))
    law = slice(speeds.stop, speeds.stop + nz)
    d = slice(law.stop, law.stop + s.layout.size)
    events = EventNumbers(*[d.start + s.layout.events.start + i for i in range(len(EventNumbers._fields))])
    stepped = events[TO_ACCURACY] if eventful(s) else d.start
    moving = d.stop + 1 if law_instants(s) else stepped
    time, length, refused, root, implicit, evidence, patience, spent, interval, made = range(n, n + 10)
    sampled, begin, end, tolerance, longest, part = range(d.stop, d.stop + 6)
    pair, given = (implicit, evidence, patience, spent, interval, made, speeds, law), (begin, end, tolerance, longest, part)
    return Lane(slice(0, n), time, length, refused, root, *pair, d, sampled, *given, stepped, moving, events, units)


def discrete_of(at: Lane, moving: np.ndarray, lane: np.ndarray) -> np.ndarray:
    """d (n, nd) from the numbers of lanes that steps and samplers change (n, moving), and the others of their lanes."""
    return np.concatenate([moving, lane[:, at.moving :]], axis=1)[:, at.discrete]


def new_lanes(s: Simulation, x: np.ndarray) -> np.ndarray:
    """(runs, numbers) the lanes of runs that begin with these states x (runs, nx), [state of the system; z; d]."""
    at = lane_of(s)
    lane = np.zeros((len(x), at.size))
    lane[:, at.x], lane[:, at.discrete], lane[:, at.sampled] = x[:, : at.x.stop], x[:, at.x.stop :], -1.0
    return lane


def law_instants(s: Simulation) -> tuple[tuple[float, float], ...]:
    """Period and phase [s] of each part of a law in discrete time that the loop calls; none beside a law in Python, which is
    called between calls of the loop, with all other parts."""
    return () if in_python(s.control) else tuple((group[0].period, group[0].phase) for group in rates(s.control))


def nearest_instant(period: float, phase: float, time: Any) -> Any:
    """The instant of a part that is nearest to a time since the run began [s], of numbers (n,) or an expression."""
    floor, larger = (ca.floor, ca.fmax) if isinstance(time, ca.SX) else (np.floor, np.maximum)
    return phase + larger(floor((time - phase) / period + 0.5), 0) * period


def at_instant(s: Simulation, time: np.ndarray) -> np.ndarray:
    """Whether the loop calls a part of the law at these times (n,) since the run began [s]."""
    due = [np.abs(nearest_instant(*each, time) - time) <= SAME * np.abs(time) for each in law_instants(s)]
    return np.logical_or.reduce(due) if due else np.zeros(len(time), dtype=bool)


def before_law(s: Simulation, time: ca.SX, barrier: ca.SX) -> ca.SX:
    """The barrier of a step that begins at a time since the run began [s], or the next instant of the law before it."""
    for period, phase in law_instants(s):
        near = nearest_instant(period, phase, time)
        following = ca.if_else(near <= time * (1 + SAME), nearest_instant(period, phase, near + period), near)
        barrier = ca.if_else(following < barrier * (1 - SAME), following, barrier)
    return barrier


def lane_samplers(s: Simulation) -> tuple[ca.Function, ...]:
    """A function (lane, its inputs, p, t) -> (the numbers of the lane up to `moving`, faults) for each part of the law, which
    the loop calls before each step: it changes lanes at one of its instants before their end, unless sampled there before."""
    at, instants = lane_of(s), law_instants(s)
    lane, p, t = ca.SX.sym("lane", at.size), s.mechanism.p_symbols, ca.SX.sym("t")
    w, time, found = input_row(s), lane[at.time, 0], list[ca.Function]()
    new = ca.logic_and(lane[at.sampled, 0] != time, time < lane[at.end, 0])
    due = [ca.logic_and(new, ca.fabs(nearest_instant(*one, time) - time) <= SAME * ca.fabs(time)) for one in instants]
    for j, sampler in enumerate(s.traced.samplers if instants else ()):
        x = ca.vertcat(lane[at.x, 0], lane[at.discrete, 0])
        x_next, faults = sampler(x, inputs_at(w, time), p, lane[at.begin, 0] + time)
        moved = ca.SX(lane[: at.moving, 0])
        moved[at.discrete, 0] = each(due[j], x_next[at.x.stop :, 0], lane[at.discrete, 0])
        if j == len(instants) - 1:
            moved[at.sampled, 0] = ca.if_else(reduce(ca.logic_or, due), time, lane[at.sampled, 0])
        found.append(ca.Function("sample", [lane, w, p, t], [moved, each(due[j], faults, ca.SX.zeros(*faults.shape))]))
    return tuple(found)


def sampled_lane(s: Simulation, lane: ca.SX, w: ca.SX, p: ca.SX) -> ca.SX:
    """The lane after its samplers, wherever it ends."""
    at, lane = lane_of(s), ca.SX(lane)
    lane[at.end, 0] = lane[at.time, 0] + 1
    for sampler in lane_samplers(s):
        lane = ca.vertcat(sampler(lane, w, p, 0)[0], lane[at.moving :, 0])
    return lane


SINCE, BARRIER = -2, -1
"""Where the ends of an interval stand in a row of inputs."""


def row_size(s: Simulation) -> int:
    """Number of entries of a row of inputs, [w; w_dot; since; barrier]."""
    return 2 * len(s.w_names) + 2


def input_row(s: Simulation) -> ca.SX:
    """Symbols of a row of inputs."""
    return ca.SX.sym("w", row_size(s))


def inputs_at(row: ca.SX, time: ca.SX) -> ca.SX:
    """(nw, 1) the inputs of a lane at a time since the run began [s], from their row."""
    n = row.numel() // 2 - 1
    return row[:n, 0] + (time - row[2 * n, 0]) * row[n : 2 * n, 0]


def rows_of_lanes(rows: np.ndarray, interval: np.ndarray, lanes: np.ndarray) -> np.ndarray:
    """(..., entries) the rows of inputs that lanes choose by numbers `interval` (...), the last one beyond the end.

    rows: (intervals, entries) of all lanes, or (intervals, lanes, entries).   lanes: (...) which they are.
    """
    i = np.minimum(interval, len(rows) - 1).astype(int)
    return rows[i, lanes] if rows.ndim == 3 else rows[i]
