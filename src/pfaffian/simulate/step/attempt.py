"""Steps under error control as a step of the compiled loop: it tries one step, and accepts it or shortens the next.

The numbers of a lane are those of `lane.py`. A lane that has reached its end stays there.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, reduce
from typing import TYPE_CHECKING, NamedTuple

import casadi as ca
import numpy as np

from pfaffian.control.layout import NO_EVENTS, TO_ACCURACY, EventNumbers
from pfaffian.kernel import guarded
from pfaffian.maths.linear import largest_entry
from pfaffian.maths.reflection import NOTHING
from pfaffian.simulate.step.choice_of_pair import NEVER, PATIENCE, first_length_of, limit, pair_of_next_step
from pfaffian.simulate.step.events import (
    BESIDE,
    KINKS_AT_ONCE,
    MOST_AT_ONCE,
    MOST_STILL,
    PASSING,
    WIDENING,
    Ahead,
    EventCheck,
    Tried,
    across,
    ahead,
    each,
    event_check,
    events_of,
    exactness,
    gradual,
    is_finite,
    is_short,
    switched_now,
)
from pfaffian.simulate.step.lane import (
    BARRIER,
    SINCE,
    Lane,
    before_law,
    input_row,
    inputs_at,
    lane_of,
    lane_samplers,
    law_instants,
    sampled_lane,
)
from pfaffian.simulate.step.step import RightHandSide
from pfaffian.simulate.step.tracing import embedded_step
from pfaffian.terms.lengths import machine_length

if TYPE_CHECKING:
    from pfaffian.simulate.step.simulation import Simulation

SAFETY, LEAST, MOST = 0.9, 0.2, 6.0
"""A step is followed by one as long as its error allows, times SAFETY, but changed at most by the factors LEAST and MOST.

With the error e of a step relative to the tolerance, that of the step before, and the order k, the length changes by
e^(-3 / 5 k) e_before^(1 / 5 k), which avoids steps that are refused. [Soderlind 2003, PI 4 2]"""

SMALL = 1e-10
"""Least error of a step relative to the tolerance, by which the next step is chosen."""

SLOW = 1e-6
"""A speed counts as at least that which moves the machine in a step by this part of its length, or turns it by this angle:
the relative error of smaller speeds is rounding."""

UNSURE, SQUARED = 10.0, 1000.0
"""Weights of what a correction leaves of the estimated error of a step, and of the square of that error, which tells what the
correction may miss. On 512 slider-cranks through singular configurations, to 1e-4, 1e-6 and 1e-8, true errors were more than 3
times the told ones in 0.2 % of the runs; with weights of 10 and 100 in 0.5 %, of 10 and 1 in 1.2 %."""

UNEQUAL = 0.75
"""Least length of the first step between two barriers, relative to the part that a lane may take: below it, this step and the
rest would be almost halves."""

CLEAR = 1e-3
"""Largest estimated error of a step that tells where an event lies in it; one with a larger error is refused instead."""

AT_REST = 1e-3
"""Length of the first step that a machine at rest without acceleration tries [s]."""

SHORTEST = 16 * float(np.finfo(float).eps)
"""Shortest step, relative to the time since the run began or since time zero."""


ROUNDED = 2 * float(np.finfo(float).eps)
"""Rounding of a coordinate in a step, relative to the coordinate."""

SLIDING = 1000
"""Number of steps over a jump from whose both sides the motion leads back to it, above which a run ends there."""


SOON = 1e-6
"""Time until a motion reaches such a jump from which on steps end where its rates lead to, relative to what is left of the run:
those whose stages lie on both sides are too inexact to tell where it is."""


class StepOutcome(NamedTuple):
    """What a step meets.

    good: whether it is accepted.   jumps, located, short, undefined, following: see `Ahead`.   endless: whether no step leads
    on from the event ahead.   numbers: (TO_ACCURACY, 1) after it.
    """

    good: ca.SX
    jumps: ca.SX
    located: ca.SX
    endless: ca.SX
    short: ca.SX
    undefined: ca.SX
    following: ca.SX
    numbers: ca.SX


class Attempt(NamedTuple):
    """A step that is tried: from `time` over h [s]; `last` if it reaches the instant `ends`, which it must not pass: an event,
    or the `barrier`.

    x_next: [x; z] at its end.   speeds, law: of the lane there.   finite, faulty: whether it can be accepted.
    error: estimated, relative to the tolerance.   turn: its length times the rate of the fastest motions.   event: what lies in
    it, and d_next: the discrete state at its end, both in machines with events.
    """

    time: ca.SX
    h: ca.SX
    last: ca.SX
    ends: ca.SX
    barrier: ca.SX
    x_next: ca.SX
    speeds: ca.SX
    law: ca.SX
    finite: ca.SX
    faulty: ca.SX
    error: ca.SX
    turn: ca.SX
    event: StepOutcome | None = None
    d_next: ca.SX = ca.SX(0, 1)

    @property
    def usable(self) -> ca.SX:
        """Whether the step has a result."""
        return ca.logic_and(self.finite, self.faulty == 0)

    @property
    def good(self) -> ca.SX:
        """Whether the step is accepted."""
        return self.event.good if self.event else ca.logic_and(self.usable, self.error <= 1)


def attempt(s: Simulation) -> tuple[ca.Function, ...]:
    """(step, observe, *samplers) for `compile_rollout`: a step that is tried, all numbers of a lane that change, and the parts
    of a law that are called before a step.

    Each lane takes the row of inputs that its `interval` tells, and the next one from its barrier on.
    """
    at, f = lane_of(s), embedded_step(s)
    lane, p, w = ca.SX.sym("lane", at.size), s.mechanism.p_symbols, input_row(s)
    tried, faults = _tried(s, at, lane, p, w)
    h, good, time, length, event = tried.h, tried.good, tried.time, lane[at.length, 0], tried.event
    begin, time_next = lane[at.begin, 0], ca.if_else(tried.last, tried.ends, time + tried.h)
    active = _active(s, at, lane)
    root = ca.fmax(tried.error, SMALL) ** (0.2 / s.pair.estimated)
    factor = ca.fmax(LEAST, ca.fmin(MOST, SAFETY * lane[at.root, 0] / root**3))
    factor = ca.if_else(good, ca.if_else(lane[at.refused, 0], ca.fmin(factor, 1), factor), ca.fmin(factor, SAFETY))
    factor = ca.if_else(tried.usable, factor, LEAST)
    clipped = ca.logic_and(ca.logic_and(h < length, good), factor >= 1)
    next_length = ca.if_else(clipped, ca.fmax(length, h * factor), h * factor)
    now = lane[at.implicit : at.spent + 1, 0]
    chosen = pair_of_next_step(limit(s.pair, f), s.scheme.stiff, now, tried.turn)
    refused, goes_on = ca.SX(1), good
    if event:
        next_length = ca.if_else(ca.logic_or(event.located, event.jumps), length, next_length)
        root, refused = ca.if_else(event.jumps, 1, root), ca.if_else(event.located, lane[at.refused, 0], 1)
        chosen = ca.if_else(ca.logic_or(event.jumps, event.short), now, chosen)
        goes_on = ca.logic_or(good, event.located)
    accepted, repeated, numbers = _discrete(s, at, lane, tried)
    first = first_length_of(s.scheme.stiff, h, tried.turn, next_length)
    first = ca.if_else(chosen[0, 0] == lane[at.implicit, 0], next_length, first)
    interval = lane[at.interval, 0] + (time_next == w[BARRIER, 0])
    made = lane[at.made, 0] + 1
    moved = ca.vertcat(tried.x_next, time_next, first, 0, root, chosen, interval, made, tried.speeds, tried.law, accepted)
    stays = ca.vertcat(lane[at.x, 0], time, next_length, refused, lane[at.root : at.law.stop, 0], repeated)
    old, new = lane[: moved.numel(), 0], each(good, moved, stays)
    too_short = ca.logic_and(active, h <= SHORTEST * ca.fmax(ca.fabs(begin + time), ca.fmax(time, 0)))
    ended = ca.logic_and(too_short, ca.logic_not(goes_on))
    if event:  # a step that passes one cannot be shortened
        ended = ca.logic_or(ended, ca.logic_and(active, ca.logic_and(event.jumps, ca.logic_not(good))))
    no_number = ca.logic_and(faults[_place(s), 0], ca.logic_not(tried.finite))  # others leave it to the explicit pair
    faults[_place(s), 0] = ca.logic_or(no_number, tried.faulty == 0)
    faults = each(ended, faults, ca.SX.zeros(*faults.shape))
    if event:
        faults = ca.vertcat(faults[:-1, 0], ca.logic_and(active, event.endless), faults[-1, 0])
    inputs = [lane, w, ca.SX.sym("w_next", w.numel()), p, ca.SX.sym("t"), ca.SX.sym("h")]
    step = ca.Function("attempt", inputs, [ca.vertcat(each(active, new, old), numbers), faults])
    return step, ca.Function("progress", [lane, w, p, inputs[4]], [lane[: at.moving, 0]]), *lane_samplers(s)


def _active(s: Simulation, at: Lane, lane: ca.SX) -> ca.SX:
    """Whether a lane has not reached its end, and takes steps of this pair."""
    return ca.logic_and(lane[at.time, 0] < lane[at.end, 0], lane[at.implicit, 0] == float(s.scheme.stiff))


def _discrete(s: Simulation, at: Lane, lane: ca.SX, tried: Attempt) -> tuple[ca.SX, ca.SX, ca.SX]:
    """The discrete state but for its EventNumbers after a step that is accepted, and after one that is not, and those numbers
    that change after it; (0, 1) where steps do not change them."""
    outcome, end = tried.event, s.layout.events.start
    if outcome is None:
        return ca.SX(0, 1), ca.SX(0, 1), ca.SX(0, 1)
    return tried.d_next[:end, 0], lane[at.discrete, 0][:end, 0], outcome.numbers


def _numbers(at: Lane, lane: ca.SX) -> EventNumbers:
    """The EventNumbers of a lane."""
    return EventNumbers(*[lane[i] for i in at.events])


def _tried(s: Simulation, at: Lane, lane: ca.SX, p: ca.SX, w: ca.SX) -> tuple[Attempt, ca.SX]:
    """The step that a lane tries, and its faults."""
    f, events, d = embedded_step(s), events_of(s), lane[at.discrete, 0]
    begin, _, tolerance, longest, share = ca.vertsplit(lane[at.begin :, 0])
    x, time, length = lane[at.x, 0], lane[at.time, 0], lane[at.length, 0]
    barrier = before_law(s, time, w[BARRIER, 0])
    ends = ca.fmin(barrier, lane[at.events.aim, 0]) if events else barrier
    proposed, left = ca.fmin(length, longest), ends - time
    splits = reduce(ca.logic_and, [share > 0, _begins(s, at, lane, w), 2 * proposed > left])
    last = ca.logic_and(proposed >= left, ca.logic_not(splits))
    h = ca.if_else(last, left, ca.if_else(2 * proposed > left, left / 2, proposed))
    first = ca.if_else(proposed >= UNEQUAL * share * left, ca.fmin(proposed, share * left), share / 2 * left)
    h = ca.if_else(splits, first, h)
    if events:
        here = events.at(ca.vertcat(x, d), inputs_at(w, time), p, begin + time)
        before, (d, switches) = d, switched_now(events, d, here, lane[at.events.aim, 0], time)
        h, last = ca.if_else(switches, 0, h), ca.logic_and(last, ca.logic_not(switches))
    u0, u1 = (inputs_at(w, instant) for instant in (time, time + h))
    x_next, faults, differences, fastest, reached, rates, near = f(ca.vertcat(x, d), u0, u1, p, begin + time, h)
    speeds, law = _sizes(s, at, lane, x_next, begin + time + h)
    sized = partial(error_of_step, s, at, lane, sizes=ca.vertcat(speeds, law), h=h)
    error = sized(_changes(s, lane[at.x, 0], begin + time, differences))
    error = _corrected_error(s, error, sized, tolerance, [reached, p, begin + time + h, near], differences) / tolerance
    turn = s.pair.turn(*(_displacement(s, at, lane, fastest[:, k], h) for k in range(2)))
    if s.changing.names:
        error, speeds, turn = ca.substitute([error, speeds, turn], [p], [s.now(p, d)])
    faulty, finite = largest_entry(faults), is_finite(x_next)
    tried = Attempt(time, h, last, ends, barrier, x_next, speeds, law, finite, faulty, error, turn)
    if not events:
        return tried, faults

    def along(c: float) -> tuple[ca.SX, ca.SX]:
        return inputs_at(w, time + c * h), begin + time + c * h

    clear = ca.logic_or(error <= 1, error * tolerance <= CLEAR)
    step = Tried(x, reached, rates, before, d, h, along, here, switches)
    check = event_check(events, s, step)
    tried, faults = tried._replace(faulty=ca.fmax(faulty, check.undefined)), ca.vertcat(faults, check.undefined)
    outcome = _outcome(s, lane, w, step, check, proposed, tried, clear)
    d_next = ca.if_else(switches, d, gradual(events, d, check.following))
    struck = events.rebound(ca.vertcat(x, d), u0, p, begin + time) if events.rebound else x
    moved = ca.if_else(switches, struck, x_next)
    return tried._replace(event=outcome, d_next=d_next, x_next=moved), faults


def _begins(s: Simulation, at: Lane, lane: ca.SX, w: ca.SX) -> ca.SX:
    """Whether a lane is where inputs, forces or a law have just changed."""
    time = lane[at.time, 0]
    changed = time == w[SINCE, 0]
    return ca.logic_or(changed, time == lane[at.sampled, 0]) if law_instants(s) else changed


def _outcome(
    s: Simulation, lane: ca.SX, w: ca.SX, part: Tried, check: EventCheck, proposed: ca.SX, tried: Attempt, clear: ca.SX
) -> StepOutcome:
    """What a step meets. Where it meets nothing, and no event lies just behind or ahead, hardly anything is computed.

    part, check: the step.   proposed: its length if nothing were ahead [s].   clear: whether it tells where an event lies."""
    at, within = lane_of(s), tried.error <= 1
    time, numbers = lane[at.time, 0], _numbers(at, lane)
    exact = exactness(ca.fmax(ca.fabs(lane[at.begin, 0] + time), ca.fabs(time)), proposed, numbers.width)
    short = is_short(part.h, exact)
    near = [getattr(numbers, name) != getattr(NO_EVENTS, name) for name in ("aim", "count", "width", "still")]
    some = _active(s, at, lane) * sum(near, ca.logic_not(check.nothing) + short)
    known = ca.vertcat(exact, tried.last, tried.barrier, clear, tried.usable, within)
    given = lane, w, s.mechanism.p_symbols, part.d, part.switches, part.h, part.x_next, part.rates, known
    flags, changed = _located(s, at)(some, *given)
    good, *others = ca.vertsplit(flags)
    good = ca.if_else(some, good, ca.logic_and(tried.usable, within))
    jumps, located, endless = (ca.logic_and(some, flag) for flag in others)
    after = each(some, changed, ca.vertcat(*numbers[:TO_ACCURACY]))
    return StepOutcome(good, jumps, located, endless, short, check.undefined, check.following, after)


def _located(s: Simulation, at: Lane) -> ca.Function:
    """(guard, lane, its inputs, p, discrete state in force, whether parameters jump, length, state at the end before its
    correction, rates, [exactness of instants, whether it ends at an instant, barrier, whether it is clear, whether it is usable
    and its error small enough]) -> whether the step is accepted, jumps, is to be taken again, see `Ahead`, and leads nowhere;
    and the EventNumbers after it that change."""
    events, f = events_of(s), embedded_step(s)
    assert events is not None
    lane, w, p, d = ca.SX.sym("lane", at.size), input_row(s), s.mechanism.p_symbols, ca.SX.sym("d", s.layout.size)
    switches, h, known = ca.SX.sym("switches"), ca.SX.sym("h"), ca.SX.sym("known", 6)
    reached, rates = (ca.SX.sym(name, f.sparsity_out(i)) for name, i in (("reached", 4), ("rates", 5)))
    x, before, begin, time = lane[at.x, 0], lane[at.discrete, 0], lane[at.begin, 0], lane[at.time, 0]
    numbers, (exact, last, barrier, clear, usable, within) = _numbers(at, lane), ca.vertsplit(known)

    def along(c: float) -> tuple[ca.SX, ca.SX]:
        return inputs_at(w, time + c * h), begin + time + c * h

    here = events.at(ca.vertcat(x, before), along(0.0)[0], p, begin + time)
    passes_kinks = numbers.count >= KINKS_AT_ONCE
    tried = Tried(x, reached, rates, before, d, h, along, here, switches)
    event = ahead(events, s, tried, exact, passes_kinks)
    event = event._replace(finite=ca.logic_and(event.finite, clear))
    ordinary = ca.logic_and(within, ca.logic_not(event.passes))
    good = ca.logic_or(switches, ca.logic_and(usable, ca.logic_or(event.jumps, ordinary)))
    slides, until = _slides(s, at, lane, tried, event)
    slides = ca.logic_and(slides, numbers.width <= WIDENING**2)  # a slow motion is not followed to the other side
    after, repeated = event.aims(numbers.aim, time, h, ca.logic_and(last, numbers.aim <= barrier))
    repeated = ca.if_else(slides, time + ca.fmin(ca.fmax(until, PASSING * exact), h / 2), repeated)
    accepted = numbers._replace(
        aim=after,
        count=event.counted(numbers.count, begin + time, h),
        last=ca.if_else(event.jumps, event.name, numbers.last),
        width=event.widened(numbers.width, h),
        total=numbers.total + event.jumps,
        still=event.stood_still(numbers.still, time, h),
    )
    named = ca.logic_or(slides, event.still)
    repeats = numbers._replace(
        aim=repeated, last=ca.if_else(named, event.name, numbers.last), still=numbers.still + event.still
    )
    changed = each(good, *(ca.vertcat(*after[:TO_ACCURACY]) for after in (accepted, repeats)))
    given = [ca.SX.sym("guard"), lane, w, p, d, switches, h, reached, rates, known]
    many = ca.logic_and(event.jumps, numbers.count >= MOST_AT_ONCE)
    many = ca.logic_or(many, ca.logic_and(event.still, numbers.still >= MOST_STILL))
    endless = ca.logic_or(many, reduce(ca.logic_and, [slides, event.root * h <= BESIDE * exact, numbers.last == event.name]))
    return guarded("located", given, [ca.vertcat(good, event.jumps, event.located, endless), changed])


def _slides(s: Simulation, at: Lane, lane: ca.SX, tried: Tried, event: Ahead) -> tuple[ca.SX, ca.SX]:
    """Whether the motion cannot leave the kink that lies ahead of a step, since both sides lead to it, and steps over it would
    be so short, or so wrong, that more than SLIDING of them are left to the end; and when it is there, after the begin of the
    step [s]. [Filippov 1988]   event: ahead."""
    events, rhs, p = events_of(s), s.traced.functions.rhs, s.mechanism.p_symbols
    assert events is not None

    def rate(x: ca.SX, u: ca.SX, t: ca.SX) -> ca.SX:
        return s.system.variables.rate(x, rhs(ca.vertcat(x, tried.d), u, s.now(p, tried.d), t)[0])

    left, ahead_by = lane[at.end, 0] - lane[at.time, 0], event.root * tried.h
    beside = across(events, s, tried, event.name, 2 * ahead_by + BESIDE * event.exact, rate)
    jump = ca.horzcat(*[left * beside.jump] * embedded_step(s).size2_out(2))
    changes = _changes(s, lane[at.x, 0], lane[at.begin, 0] + lane[at.time, 0], jump)
    error = error_of_step(s, at, lane, changes, lane[at.speeds.start : at.law.stop, 0], left)
    if s.changing.names:
        error = ca.substitute(error, p, s.now(p, tried.d))
    soon = ca.logic_and(event.passes, ahead_by <= SOON * left)
    return reduce(ca.logic_and, [soon, error > SLIDING * lane[at.tolerance, 0], beside.back]), beside.until


def record(s: Simulation) -> ca.Function:
    """(lane, its inputs, p, time) -> signals and [q; v] at an instant within the step that follows the lane's state."""
    at, f, rhs = lane_of(s), embedded_step(s), s.traced.rhs
    lane, p, time = ca.SX.sym("lane", at.size), s.mechanism.p_symbols, ca.SX.sym("time")
    begin, w = lane[at.begin, 0], input_row(s)
    x = ca.vertcat(lane[at.x, 0], lane[at.discrete, 0])
    u0, u1 = (inputs_at(w, instant) for instant in (lane[at.time, 0], time))
    h = time - lane[at.time, 0]
    x_next = f(x, u0, u1, p, begin + lane[at.time, 0], h)[0]
    x_next = each(h > 0, x_next, lane[at.x, 0])
    d = lane[at.discrete, 0]
    recorded = RightHandSide(*rhs(ca.vertcat(x_next, d), u1, s.now(p, d), begin + time)).records
    q_and_v = ca.vertcat(*s.system.q_and_v(x_next[: s.system.nx, 0], begin + time))
    if s.changing.names:
        q_and_v = ca.substitute(q_and_v, p, s.now(p, d))
    return ca.Function("record", [lane, w, p, time], [recorded, ca.densify(q_and_v)])


def _place(s: Simulation) -> int:
    """Index of the fault of steps that became too short."""
    return 1 + (s.faults.place("integrator") or 0)


def _sizes(s: Simulation, at: Lane, lane: ca.SX, x: ca.SX, t: ca.SX) -> tuple[ca.SX, ca.SX]:
    """The largest speeds of each unit, and the largest z, up to the state x at the time t."""
    m = s.mechanism
    v = s.system.q_and_v(x[: s.system.nx, 0], t)[1]
    v = ca.densify(v)
    largest = [largest_entry(ca.vertcat(*[v[i] for i, u in enumerate(m.v_units) if u == unit])) for unit in at.units]
    z = ca.fabs(x[s.system.nx : at.x.stop, 0])
    return ca.fmax(ca.vertcat(ca.SX(0, 1), *largest), lane[at.speeds, 0]), ca.fmax(z, lane[at.law, 0])


class StateChanges(NamedTuple):
    """Changes of a state, one in each column.   q: (nq, k).   v: (nv, k).   z: (nz, k) of the law."""

    q: ca.SX
    v: ca.SX
    z: ca.SX


def _changes(s: Simulation, x: ca.SX, t: ca.SX, differences: ca.SX) -> StateChanges:
    """Differences (n, k) of the stepped variables as changes of the state x [x; z]."""
    into = s.traced.functions.tangent.into
    dq, dv = zip(*[into(x, t, differences[:, k]) for k in range(differences.size2())], strict=True)
    return StateChanges(ca.horzcat(*dq), ca.horzcat(*dv), differences[s.system.nx :, :])


def _corrected_error(
    s: Simulation, error: ca.SX, sized: Callable[[StateChanges], ca.SX], tolerance: ca.SX, end: list[ca.SX], differences: ca.SX
) -> ca.SX:
    """The estimated error of a step after its correction onto the constraints: UNSURE times what this leaves of the
    differences, but at least SQUARED times the square of the error before it. It is asked where that exceeds the tolerance.

    Near a singular configuration the stages, which are off the constraints, hardly know the motions across the constraints,
    but the correction at the end does: without this, steps would become as short as the distance from there.

    sized: the error of changes.   end: x before its correction, p, t and factors there, arguments of `Functions.remaining`.
    """
    remaining = s.traced.functions.remaining
    if remaining is None:
        return error
    before, exceeds = _changes(s, end[0], end[2], differences), error > tolerance
    columns = zip(ca.horzsplit(before.q), ca.horzsplit(before.v), strict=True)  # one text for all differences
    dq, dv = zip(*[remaining(exceeds, *end, *column) for column in columns], strict=True)
    left = sized(StateChanges(ca.horzcat(*dq), ca.horzcat(*dv), before.z))
    left = ca.fmax(UNSURE * left, SQUARED * error**2)
    return ca.if_else(ca.logic_and(exceeds, left < error), left, error)


def error_of_step(s: Simulation, at: Lane, lane: ca.SX, of: StateChanges, sizes: ca.SX, h: ca.SX) -> ca.SX:
    """The estimated error of a step: the largest of angles [rad], lengths relative to the machine, speeds relative to the
    largest of their unit so far, states of the law relative to theirs. The pair combines the sizes of its differences. What is
    within the ROUNDED part of a coordinate is within the tolerance, since no step could be better.
    """
    m, long = s.mechanism, _length(s)
    q = s.system.q_and_v(lane[at.x, 0][: s.system.nx, 0], lane[at.begin, 0] + lane[at.time, 0])[0]
    rounded = ca.fabs(q) * (ROUNDED / lane[at.tolerance, 0])
    scale = {"rad": ca.SX(1), "m": long}
    speed = {unit: sizes[i] for i, unit in enumerate(at.units)}
    if {"m/s", "rad/s"} <= set(at.units):
        speed["m/s"] = ca.fmax(speed["m/s"], long * speed["rad/s"])
    least = {unit: SLOW / h * (long if unit == "m/s" else 1) for unit in at.units}
    turning = {i for turn in m.quaternions.values() for i in range(turn.start, turn.stop)}
    estimates = []
    for k in range(of.q.size2()):
        dq, dv, dz = (change[:, k] for change in of)
        sized = [ca.fmax(scale.get(unit, 1), rounded[i]) for i, unit in enumerate(m.q_units)]
        parts = [ca.fabs(dq[i]) * 2 if i in turning else ca.fabs(dq[i]) / sized[i] for i in range(m.nq)]
        parts += [ca.fabs(dv[i]) / ca.fmax(speed[unit], least[unit]) for i, unit in enumerate(m.v_units)]
        parts += [ca.fabs(dz[i]) / ca.fmax(sizes[len(at.units) + i], NOTHING) for i in range(dz.numel())]
        estimates.append(largest_entry(ca.vertcat(*parts)))
    return s.pair.error(*estimates)


def _displacement(s: Simulation, at: Lane, lane: ca.SX, change: ca.SX, h: ca.SX) -> ca.SX:
    """The size of a change of the stepped variables: the largest of angles [rad], lengths relative to the machine, and those
    which its speeds reach within the step."""
    m, long = s.mechanism, _length(s)
    dq, dv = s.traced.functions.tangent.into(lane[at.x, 0], lane[at.begin, 0] + lane[at.time, 0], change)
    parts = [ca.fabs(dq[i]) / (long if unit == "m" else 1) for i, unit in enumerate(m.q_units)]
    parts += [h * ca.fabs(dv[i]) / (long if unit == "m/s" else 1) for i, unit in enumerate(m.v_units)]
    return largest_entry(ca.vertcat(ca.SX(0), *parts))


def beginning(s: Simulation, changes: bool) -> ca.Function:
    """(lane, its inputs, p) -> the lane before its first step: the length of that, and parameters that change gradually.

    changes: whether the stiff pair may make steps.
    """
    at, events = lane_of(s), events_of(s)
    lane, w, p = ca.SX.sym("lane", at.size), input_row(s), s.mechanism.p_symbols
    sampled, begun = sampled_lane(s, lane, w, p), ca.SX(lane)
    if events:
        x = ca.vertcat(sampled[at.x, 0], sampled[at.discrete, 0])
        following = events.at(x, inputs_at(w, lane[at.time, 0]), p, lane[at.begin, 0]).following
        for i, (place, stepwise) in enumerate(zip(events.parameters, events.stepwise, strict=True)):
            if not stepwise:
                sampled[at.discrete.start + place, 0] = begun[at.discrete.start + place, 0] = following[i, 0]
    begun[at.root, 0], begun[at.implicit, 0] = 1.0, float(s.scheme.stiff)
    begun[at.patience, 0] = PATIENCE if changes else NEVER
    begun[at.length, 0] = _first_length(s)(sampled, w, p)
    return ca.Function("beginning", [lane, w, p], [begun])


def _first_length(s: Simulation) -> ca.Function:
    """(lane, its inputs, p) -> the length of the first step that a lane tries [s].

    In it the speeds and accelerations at the start turn the machine by tolerance^(1 / order) rad, or move it by that part of
    its length. A machine at rest without acceleration begins with AT_REST.
    """
    at, m, functions = lane_of(s), s.mechanism, s.traced.functions
    lane, w, p = ca.SX.sym("lane", at.size), input_row(s), s.mechanism.p_symbols
    begin, tolerance = lane[at.begin, 0], lane[at.tolerance, 0]
    x, d, t = lane[at.x, 0], lane[at.discrete, 0], begin + lane[at.time, 0]
    rate = functions.rhs(ca.vertcat(x, d), inputs_at(w, lane[at.time, 0]), s.now(p, d), t)[0]
    dq, dv = functions.tangent.into(x, t, s.system.variables.rate(x, rate))
    long = _length(s)

    def angle(x: ca.SX, unit: str) -> ca.SX:
        return ca.fabs(x) / (long if unit in ("m", "m/s") else ca.SX(1))

    speed = largest_entry(ca.vertcat(ca.SX(0), *[angle(dq[i], unit) for i, unit in enumerate(m.q_units)]))
    bend = ca.sqrt(largest_entry(ca.vertcat(ca.SX(0), *[angle(dv[i], unit) for i, unit in enumerate(m.v_units)])))
    part = tolerance ** (1 / s.pair.estimated)
    fastest = ca.fmax(speed, bend)
    h = ca.if_else(fastest > 0, part / ca.fmax(fastest, NOTHING), AT_REST)
    return ca.Function("first_length", [lane, w, p], ca.substitute([h], [p], [s.now(p, d)]) if s.changing.names else [h])


def _length(s: Simulation) -> ca.SX:
    """The machine's length [m], 1 if no body has one."""
    long = machine_length(s.mechanism)
    return ca.SX(1) if long.is_zero() else long
