"""A step of one length that is split at events: its parts end just before an event, pass it, and go on from there."""

from __future__ import annotations

import casadi as ca

from pfaffian.control.layout import NO_EVENTS, EventNumbers
from pfaffian.simulate.step.closed_loop import LawAndSystem
from pfaffian.simulate.step.events import EARLY, Ahead, Events, Tried, ahead, events_of, exactness, gradual, switched_now

MOST_PARTS = 24
"""Greatest number of parts of a step, those that are tried again among them: about six events. What then is left of the step is
one more part, which passes its events as they come."""

NEAR = 2**-10
"""Distance before a kink, in parts of the way to it, at which a part ends first. The stages of a long part that ended at the
kink might lie beyond it, where a force has jumped; those of a part as short as this do not."""


def split(s: LawAndSystem, part: ca.Function) -> ca.Function:
    """(x, u0, u1, p, t, h) -> (x_next, faults, whether the step goes on), for `compile_rollout`: the next part of a step.

    x, x_next: [x; z; d].   part: the `embedded_step` of the simulation.   u0, u1: inputs at both ends of the whole step.
    """
    events, at, n, p = events_of(s), s.layout, s.system.nx + len(s.z), s.mechanism.p_symbols
    assert events is not None
    given, u0, u1, _, t, h = part.sx_in()
    x, d, whole = given[:n, 0], given[n:, 0], ca.if_else(h > 0, h, 1)
    done, aim, count, unsplit, last, width, total = EventNumbers(*ca.vertsplit(d[at.events, 0]))
    here = events.at(given, u0 + done / whole * (u1 - u0), p, t + done)
    d_now, switches = switched_now(events, d, here, aim, done)
    gives_up = ca.logic_not(count < MOST_PARTS)
    ends = ca.if_else(gives_up, h, ca.fmin(h, aim))
    length = ca.if_else(switches, 0, ends - done)

    def along(c: float) -> tuple[ca.SX, ca.SX]:
        elapsed = done + c * length
        return u0 + elapsed / whole * (u1 - u0), t + elapsed

    inputs = along(0.0)[0], along(1.0)[0]
    x_next, faults, _, _, reached, rates = part(ca.vertcat(x, d_now), *inputs, p, t + done, length)
    event = ahead(events, s, Tried(x, reached, rates, d, d_now, length, along, here, switches), exactness(t, h, width))
    event = event._replace(passes=ca.logic_and(event.passes, ca.logic_not(gives_up)))
    after, before = event.aims(aim, done, length, aim < h)
    before = ca.if_else(_far(events, event, length, h), done + (1 - NEAR) * event.root * length, before)
    stays = ca.logic_or(event.located, switches)
    over = ca.logic_not(ca.logic_or(stays, ends < h))
    d_next = ca.if_else(event.located, d, ca.if_else(over, gradual(events, d_now, event.following), d_now))
    going = EventNumbers(
        ca.if_else(stays, done, ends),
        ca.if_else(event.located, before, after),
        count + 1,
        unsplit,
        ca.if_else(event.jumps, event.name, last),
        ca.if_else(event.located, width, event.widened(width, length)),
        total + event.jumps,
    )
    lost = unsplit + ca.logic_and(gives_up, ca.logic_not(events.is_kink(last)))
    ended = NO_EVENTS._replace(unsplit=lost, last=going.last, total=going.total)
    numbers = [ca.if_else(over, b, a) for a, b in zip(going, ended, strict=True)]
    struck = events.rebound(ca.vertcat(x, d_now), inputs[0], p, t + done) if events.rebound else x
    moved = ca.vertcat(ca.if_else(switches, struck, ca.if_else(stays, x, x_next)), d_next[: at.events.start, 0], *numbers)
    faults = ca.if_else(stays, ca.SX.zeros(*faults.shape), faults)
    endless = ca.logic_and(gives_up, ca.logic_or(switches, _rebounds(events, last)))
    undefined = ca.logic_and(ca.logic_not(stays), event.undefined)
    return ca.Function("part", [given, u0, u1, p, t, h], [moved, ca.vertcat(faults, endless, undefined), ca.logic_not(over)])


def _far(events: Events, event: Ahead, length: ca.SX, h: ca.SX) -> ca.SX:
    """Whether a part of a step h meets a kink so far from its begin that the next one ends a distance NEAR before it."""
    return ca.logic_and(ca.logic_and(events.is_kink(event.name), event.root > EARLY), length > 4 * NEAR * h)


def _rebounds(events: Events, last: ca.SX) -> ca.SX:
    """Whether the last event is an impact: bodies whose impacts have no end would sink into one another."""
    return ca.logic_and(last >= events.conditions, last < events.conditions + events.impacts)
