"""A step of one length that is split at events: its parts end just before an event, pass it, and go on from there."""

from __future__ import annotations

from typing import NamedTuple

import casadi as ca

from pfaffian.control.layout import NO_AIM, NO_EVENTS, EventNumbers
from pfaffian.kernel import guarded
from pfaffian.simulate.step.closed_loop import LawAndSystem
from pfaffian.simulate.step.events import (
    EARLY,
    PASSING,
    Ahead,
    ConditionsHere,
    Events,
    Tried,
    ahead,
    each,
    event_check,
    events_of,
    exactness,
    gradual,
    switched_now,
)

MOST_PARTS = 24
"""Greatest number of parts of a step, those that are tried again among them: about six events. What then is left of the step is
one more part, which passes its events as they come."""

NEAR = 2**-10
"""Distance before a kink, in parts of the way to it, at which a part ends first. The stages of a long part that ended at the
kink might lie beyond it, where a force has jumped; those of a part as short as this do not."""


class Begun(NamedTuple):
    """The next part of a step, as it begins.

    events: of the simulation.   step: [x; z; d], inputs at both ends, parameters, time and length of the whole step.
    numbers: in d.   d: discrete state in force.   here: conditions.   switches: whether parameters jump.   gives_up: whether it
    is the last part and passes events as they come.   ends: where it ends [s].   length: [s].   halved: whether it is the first
    of two in place of one.
    """

    events: Events
    step: tuple[ca.SX, ca.SX, ca.SX, ca.SX, ca.SX, ca.SX]
    numbers: EventNumbers
    d: ca.SX
    here: ConditionsHere
    switches: ca.SX
    gives_up: ca.SX
    ends: ca.SX
    length: ca.SX
    halved: ca.SX

    def along(self, c: float) -> tuple[ca.SX, ca.SX]:
        """Inputs and time [s] at c, in parts of it."""
        return _after(self.step, self.numbers.done + c * self.length)


def _after(step: tuple[ca.SX, ...], elapsed: ca.SX) -> tuple[ca.SX, ca.SX]:
    """Inputs and time [s] some time after the begin of a step [s]."""
    _, u0, u1, _, t, h = step
    return u0 + elapsed / ca.if_else(h > 0, h, 1) * (u1 - u0), t + elapsed


class PartResult(NamedTuple):
    """Results of the `embedded_step` of a part.   x_next: at its end.   reached: there, before its correction.   rates: of the
    stepped variables at both ends."""

    x_next: ca.SX
    reached: ca.SX
    rates: ca.SX


def split(s: LawAndSystem, part: ca.Function) -> ca.Function:
    """(x, u0, u1, p, t, h) -> (x_next, faults, whether the step goes on), for `compile_rollout`: the next part of a step.

    A step that meets no event is one part. What the others do is computed where there are some.

    x, x_next: [x; z; d].   part: the `embedded_step` of the simulation.   u0, u1: inputs at both ends of the whole step.
    """
    n = s.system.nx + len(s.z)
    now = _begun(s, part)
    given, p = now.step[0], now.step[3]
    (begin, time), end = now.along(0.0), now.along(1.0)[0]
    x_next, faults, _, _, reached, rates, _ = part(ca.vertcat(given[:n, 0], now.d), begin, end, p, time, now.length)
    meets = event_check(now.events, s, _tried(now, PartResult(x_next, reached, rates), n))
    numbers = now.numbers
    whole = ca.logic_and(meets.nothing, ca.logic_and(numbers.count == 0, numbers.aim == NO_AIM))
    ended = NO_EVENTS._replace(unsplit=numbers.unsplit, last=numbers.last, total=numbers.total, finer=numbers.finer)
    d = given[n:, 0]
    alone = ca.vertcat(x_next, gradual(now.events, d, meets.following)[: s.layout.events.start, 0], *ended)
    moved, over, stays, more = _with_events(s, now, part)(ca.logic_not(whole), *now.step, x_next, reached, rates)
    moved, over = each(whole, alone, moved), ca.logic_or(whole, over)
    stays, more = ca.logic_and(ca.logic_not(whole), stays), each(whole, ca.SX.zeros(*more.shape), more)
    faults = ca.vertcat(each(stays, ca.SX.zeros(*faults.shape), faults), more)
    return ca.Function("part", list(now.step), [moved, faults, ca.logic_not(over)])


def _begun(s: LawAndSystem, part: ca.Function) -> Begun:
    """The next part of a step."""
    events, at, n = events_of(s), s.layout, s.system.nx + len(s.z)
    assert events is not None
    given, u0, u1, _, t, h = part.sx_in()
    step, numbers = (given, u0, u1, s.mechanism.p_symbols, t, h), EventNumbers(*ca.vertsplit(given[n:, 0][at.events, 0]))
    begin, time = _after(step, numbers.done)
    here = events.at(given, begin, s.mechanism.p_symbols, time)
    d, switches = switched_now(events, given[n:, 0], here, numbers.aim, numbers.done)
    gives_up = ca.logic_not(numbers.count < MOST_PARTS)
    ends = ca.if_else(gives_up, h, ca.fmin(h, numbers.aim))
    halved = _halved(numbers, ends, h, exactness(t, h, numbers.width))
    ends = ca.if_else(halved, (numbers.done + ends) / 2, ends)
    length = ca.if_else(switches, 0, ends - numbers.done)
    return Begun(events, step, numbers, d, here, switches, gives_up, ends, length, halved)


def _halved(numbers: EventNumbers, ends: ca.SX, h: ca.SX, exact: ca.SX) -> ca.SX:
    """Whether a part up to `ends` is the first of two in place of one, see `EventNumbers.finer`. The parts around events are so
    short that their errors do not count."""
    of_several = ca.logic_or(numbers.done > 0, ends < h)
    return ca.logic_and(numbers.finer == 1, ca.logic_and(of_several, ends - numbers.done > 4 * PASSING * exact))


def _tried(now: Begun, made: PartResult, n: int) -> Tried:
    """The part as a step that is tried.   n: size of [x; z]."""
    x, d = now.step[0][:n, 0], now.step[0][n:, 0]
    return Tried(x, made.reached, made.rates, d, now.d, now.length, now.along, now.here, now.switches)


def _with_events(s: LawAndSystem, now: Begun, part: ca.Function) -> ca.Function:
    """(guard, the `step`, the `PartResult`) -> (x_next, whether the step is over, whether x stays as it is but for impacts,
    faults) of a part that may meet an event, or is not the only one of its step."""
    events, at, n = now.events, s.layout, s.system.nx + len(s.z)
    given, _, _, p, t, h = now.step
    x, d, (aim, count, last, width, total, still, done, unsplit, finer) = given[:n, 0], given[n:, 0], now.numbers
    symbols = [ca.SX.sym(name, part.sparsity_out(i)) for name, i in (("x_next", 0), ("reached", 4), ("rates", 5))]
    made = PartResult(*symbols)
    event = ahead(events, s, _tried(now, made, n), exactness(t, h, width), ca.SX(0))
    event = event._replace(passes=ca.logic_and(event.passes, ca.logic_not(now.gives_up)))
    after, before = event.aims(aim, done, now.length, ca.logic_and(aim < h, ca.logic_not(now.halved)))
    before = ca.if_else(_far(events, event, now.length, h), done + (1 - NEAR) * event.root * now.length, before)
    stays = ca.logic_or(event.located, now.switches)
    over = ca.logic_not(ca.logic_or(stays, now.ends < h))
    d_next = ca.if_else(event.located, d, ca.if_else(over, gradual(events, now.d, event.following), now.d))
    going = EventNumbers(
        ca.if_else(event.located, before, after),
        count + 1,
        ca.if_else(event.jumps, event.name, last),
        ca.if_else(event.located, width, event.widened(width, now.length)),
        total + event.jumps,
        still,
        ca.if_else(stays, done, now.ends),
        unsplit,
        ca.if_else(event.jumps, ca.fmin(finer, 1), ca.if_else(ca.logic_and(now.halved, ca.logic_not(stays)), 2, finer)),
    )
    lost = unsplit + ca.logic_and(now.gives_up, ca.logic_not(events.is_kink(last)))
    ended = NO_EVENTS._replace(unsplit=lost, last=going.last, total=going.total, finer=ca.fmin(finer, 1))
    numbers = [ca.if_else(over, b, a) for a, b in zip(going, ended, strict=True)]
    struck = events.rebound(ca.vertcat(x, now.d), now.along(0.0)[0], p, t + done) if events.rebound else x
    x_next = ca.if_else(now.switches, struck, ca.if_else(stays, x, made.x_next))
    moved = ca.vertcat(x_next, d_next[: at.events.start, 0], *numbers)
    endless = ca.logic_and(now.gives_up, ca.logic_or(now.switches, _rebounds(events, last)))
    undefined = ca.logic_and(ca.logic_not(stays), event.undefined)
    results = [ca.densify(moved), over, stays, ca.vertcat(endless, undefined)]
    return guarded("part_with_events", [ca.SX.sym("guard"), *now.step, *symbols], results)


def _far(events: Events, event: Ahead, length: ca.SX, h: ca.SX) -> ca.SX:
    """Whether a part of a step h meets a kink so far from its begin that the next one ends a distance NEAR before it."""
    return ca.logic_and(ca.logic_and(events.is_kink(event.name), event.root > EARLY), length > 4 * NEAR * h)


def _rebounds(events: Events, last: ca.SX) -> ca.SX:
    """Whether the last event is an impact: bodies whose impacts have no end would sink into one another."""
    return ca.logic_and(last >= events.conditions, last < events.conditions + events.impacts)
