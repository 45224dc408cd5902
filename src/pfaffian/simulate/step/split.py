"""A step of one length that is split at events: its parts end just before an event, pass it, and go on from there."""

from __future__ import annotations

import casadi as ca

from pfaffian.simulate.step.closed_loop import ClosedLoop
from pfaffian.simulate.step.events import Tried, ahead, events_of, exactness, switched_now

MOST_PARTS = 64
"""Greatest number of parts of a step, those that are tried again among them: about twelve events."""


def split(s: ClosedLoop, part: ca.Function) -> ca.Function:
    """(x, u0, u1, p, t, h) -> (x_next, faults, whether the step goes on), for `compile_rollout`: the next part of a step.

    x, x_next: [x; z; d].   part: the `embedded_step` of the simulation.   u0, u1: inputs at both ends of the whole step.
    """
    events, at, n = events_of(s), s.layout, s.system.nx + len(s.z)
    assert events is not None
    whole, u0, u1, _, t, h = part.sx_in()
    p = s.mechanism.p_symbols
    x, d = whole[:n, 0], whole[n:, 0]
    done, aim, count = ca.vertsplit(d[at.events, 0])
    whole_h = ca.if_else(h > 0, h, 1)
    here = events.function(whole, _between(u0, u1, done / whole_h), p, t + done)
    d_now, switches = switched_now(events, d, here[2])
    ends = ca.fmin(h, aim)
    length = ca.if_else(switches, 0, ends - done)

    def along(c: float) -> tuple[ca.SX, ca.SX]:
        elapsed = done + c * length
        return _between(u0, u1, elapsed / whole_h), t + elapsed

    (begin, _), (end, _) = along(0.0), along(1.0)
    x_next, faults, _, reached, rates = part(ca.vertcat(x, d_now), begin, end, p, t + done, length)
    passed = ahead(events, s, Tried(x, reached, rates, d_now, length, along, here, switches), exactness(t, h))
    after, before = passed.aims(aim, done, length, aim < h)
    over = ca.logic_and(ca.logic_not(passed.located), ca.logic_and(ends >= h, ca.logic_not(switches)))
    done_next = ca.if_else(ca.logic_or(passed.located, switches), done, ends)
    aim_next = ca.if_else(passed.located, before, after)
    kept = ca.if_else(passed.located, d[: at.events.start, 0], passed.d_next[: at.events.start, 0])
    numbers = ca.vertcat(done_next, aim_next, count + 1)
    numbers = ca.if_else(over, ca.DM(at.start[at.events]), numbers)
    faults = ca.if_else(passed.located, ca.SX.zeros(*faults.shape), faults)
    endless = ca.logic_not(count < MOST_PARTS)
    moved = ca.vertcat(ca.if_else(passed.located, x, x_next), kept, numbers)
    return ca.Function("part", [whole, u0, u1, p, t, h], [moved, ca.vertcat(faults, endless), ca.logic_not(over)])


def _between(u0: ca.SX, u1: ca.SX, part: ca.SX) -> ca.SX:
    """The inputs at a part of the step."""
    return u0 + part * (u1 - u0)
