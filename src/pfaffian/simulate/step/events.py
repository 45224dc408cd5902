"""Events: instants at which the equations of a machine change with its motion. A constraint begins or ceases to act
(`active_while`), or a parameter switches.

A step under error control that passes an event is taken again, so that it ends just before it; the step after that is very
short and passes it. So no longer step mixes the equations of both sides, and the instant is as exact as the motion. Where the
event lies is told by the numbers that conditions compare, at six points of the step that interpolate between its ends.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import TYPE_CHECKING, NamedTuple

import casadi as ca
import numpy as np

from pfaffian.control.layout import NO_AIM
from pfaffian.kernel.remember import once_for, remembered
from pfaffian.maths.reflection import NOTHING
from pfaffian.parts.rebound import gaps_of, impacts_of
from pfaffian.simulate.step.activation import switched
from pfaffian.simulate.step.closed_loop import LawAndSystem, closed_loop
from pfaffian.simulate.step.kinks import gaps_and_kinks
from pfaffian.simulate.step.rebounds import after_impact, is_due
from pfaffian.simulate.step.signals import MotionOutput
from pfaffian.simulate.step.thresholds import compared, undefined
from pfaffian.terms.pfaffian import condition

if TYPE_CHECKING:
    from pfaffian.states.variables import Variables

POINTS, POINTS_OF_MOTION = 6, 3
"""Number of points of a step at which conditions are evaluated, and those that depend on the motion and so cost an evaluation
of the equations. Two events between neighbouring points may be missed, but not where the numbers compared are linear."""

EPS = float(np.finfo(float).eps)

EXACT = 1e-13
"""Exactness of the instant of an event, relative to the length of steps."""

PASSING = 2
"""Length of the step that passes an event, relative to the exactness of its instant."""

WIDENING = 8
"""Growth of both after a step that should have passed an event and did not: where a machine moves slowly, the numbers of its
state do not change in a shorter time."""

MOVED_ON = 1e3
"""Length of a step, relative to the exactness of an instant, after which the next one is sought as exactly as others."""

WIDEST = 1e-5
"""Greatest exactness of an instant that slow motion widens, relative to the length of steps."""

EARLY, BEYOND = 0.2, 2.0
"""An event in the first fifth of a step is known from the path of the whole step only roughly: the next one ends beyond
it, and so shows where it is."""

MOST_AT_ONCE = 32
"""Greatest number of events in quick succession, without a step longer than those around events between them."""

KINKS_AT_ONCE = 24
"""Number of events in quick succession after which ordinary steps pass kinks: those that end a run are of other kinds."""

AT_ONCE = 1e-10
"""Length of steps between events in quick succession, relative to the time: a condition that its own constraint keeps at its
edge changes by rounding, in steps of any length."""

STILL, ROUNDED = 1e-6, 64 * EPS
"""Speed below which a number that a condition compares stands still, relative to the sum of the speeds of its parts, and the
number that is rounding, relative to the sum of its parts, or of the two sides of a comparison: where a constraint begins to act
because of its own motion, it keeps its condition at its edge, where rounding decides."""

MOST_STILL, SELDOM = 128, 1e-3
"""Greatest number of steps that meet such an event, some five of them each, and the time after which one counts no more,
relative to the time since the run began. Whatever steps lie between, so many show that the constraint will go on so."""

SHORT = 200
"""Instructions of conditions up to which a step contains them at each point: copying arguments and results takes longer."""

LARGEST = 1e300
"""A state whose squares add up to more counts as infinite, and its step as failed."""

NOWHERE = 2.0
"""A place beyond the end of a step, in parts of it."""

LEADS_BACK = 1e-4
"""Least speed with which a motion beside a kink leads back to it, relative to that with which the motion on the other side
comes: along a curve on which a law switches, this is rounding."""

BESIDE = 200
"""Time after a kink at which a motion is clearly on the other side, in parts of the exactness of its instant."""

ENDLESS = (
    "events follow one another without end: conditions switch each other back and forth, come closer and closer in time, or "
    "both sides of a jump lead back to it"
)

UNDEFINED = "the number that a condition compares became NaN where the condition depends on it"

ITERATIONS = 8
"""Iterations that find the root of a polynomial between two points."""


class ConditionsHere(NamedTuple):
    """What conditions are at a state.   states: (n,) one number for each of the names, constant between events.
    differences: (k,) the numbers that conditions compare, each of which is zero where its condition changes.
    following: next value of each of the parameters.   values: (k,) of the comparisons.   sizes: (k,) of the numbers of which
    `differences` are the differences.   undefined: (n,) which of the names depend on a comparison with NaN."""

    states: ca.SX
    differences: ca.SX
    following: ca.SX
    values: ca.SX
    sizes: ca.SX
    undefined: ca.SX


class Events(NamedTuple):
    """What may change at an event.

    names: of constraints, of kinks, of parts that rebound, then of parameters.   parts: names of the parts of all these, of
    which one may have several kinks.   parameters: indices in d of those that a run changes.
    stepwise: of each of these, whether it changes at events only, not gradually.
    impacts: number of the names between those that are of parts which rebound.   kinks: number of those before them at which
    forces have a kink, as where compliant surfaces touch, and nothing else changes.
    linear: whether the numbers that conditions compare are linear functions of the stepped variables, the inputs and time.
    rebound: (x, w, p, t) -> [x; z] after their impacts that are due, None without such parts.
    points: at which a step evaluates them, in parts of it.   inner: for each comparison in their conditions the indices of the
    jumps of its numbers, which count as comparisons before it.
    combined: (values of the comparisons, x, w, p, t) -> the first result of `function`.
    function: (x, w, p, t) -> the `ConditionsHere` of a state.
    """

    names: tuple[str, ...]
    parts: tuple[str, ...]
    parameters: tuple[int, ...]
    stepwise: tuple[bool, ...]
    points: tuple[float, ...]
    inner: tuple[tuple[int, ...], ...]
    function: ca.Function
    combined: ca.Function
    impacts: int = 0
    rebound: ca.Function | None = None
    kinks: int = 0
    linear: bool = False

    def at(self, x: ca.SX, w: ca.SX, p: ca.SX, t: ca.SX) -> ConditionsHere:
        """The result of `function`."""
        return ConditionsHere(*self.function(x, w, p, t))

    @property
    def comparisons(self) -> int:
        """Number of the comparisons."""
        return len(self.inner)

    @property
    def conditions(self) -> int:
        """Number of the names that are of constraints and of kinks."""
        return len(self.names) - self.impacts - sum(self.stepwise)

    @property
    def modes(self) -> list[int]:
        """Indices in d of the parameters that change at events only."""
        return [place for place, stepwise in zip(self.parameters, self.stepwise, strict=True) if stepwise]

    @property
    def kink_places(self) -> range:
        """Indices of the names that are of kinks."""
        return range(self.conditions - self.kinks, self.conditions)

    def is_kink(self, name: ca.SX) -> ca.SX:
        """Whether a name, given by its index, is of a kink."""
        return ca.logic_and(name >= self.conditions - self.kinks, name < self.conditions)


@remembered(64)
def events_of(s: LawAndSystem) -> Events | None:
    """The Events of a simulation; None if nothing changes in it."""
    if not eventful(s):
        return None
    m, loop = s.mechanism, closed_loop(s, s.system.at())
    here, T, z, d, w = loop.here, loop.here.T, loop.z, loop.d, loop.w
    moving = ca.vertcat(T.q, T.v, T.t)
    conditions = {c.name: ca.if_else(condition(T.kinematics, c.active, c.name), 1, 0) for c in switched(m) if c.active}
    conditions = {name: x for name, x in conditions.items() if ca.depends_on(x, moving)}
    kinks = gaps_and_kinks(loop) if s.kinks else {}
    touches = {name: ca.if_else(kink.number < 0, 1, 0) for name, kink in kinks.items()}
    after = loop.following()
    symbols = [m.p_symbols[i] for i in s.changing.at]
    others = [ca.vertcat(moving, z, d, w, *symbols[:i], *symbols[i + 1 :]) for i in range(len(symbols))]
    stepwise = tuple(is_stepwise(after[i], ca.vertcat(moving, z), others[i]) for i in range(len(symbols)))
    modes = {name: after[i] for i, name in enumerate(s.changing.names) if stepwise[i]}
    gaps = gaps_of(T.kinematics)
    due = {name: ca.if_else(is_due(hit), 1, 0) for name, hit in gaps.items()}
    states = ca.densify(ca.vertcat(ca.SX(0, 1), *conditions.values(), *touches.values(), *due.values(), *modes.values()))
    costly = any(isinstance(f, MotionOutput) for _, f in s.changing.next)
    found = compared(states, ca.vertcat(moving, z, w), inside=not costly)
    differences, values, sizes = (ca.vertcat(ca.SX(0, 1), *[c[i] for c in found.comparisons]) for i in range(3))
    inner = tuple(c.inner for c in found.comparisons)
    nan = undefined(states, found)
    for i, kink in enumerate(kinks.values(), start=len(conditions)):
        if kink.undefined is not None:  # its number may be NaN where the part does not depend on it
            nan[i, 0] = kink.undefined
    outputs = here.of_state([*ConditionsHere(states, differences, after, values, sizes, ca.sparsify(nan)), found.states])
    *outputs, with_symbols = ca.substitute(outputs, [m.p_symbols], [s.now(m.p_symbols, d)])
    inputs = [loop.x, w, m.p_symbols, T.t]
    function = _called_if_long(ca.Function("conditions", inputs, [*map(ca.densify, outputs[:-1]), outputs[-1]]))
    combined = ca.Function("combined", [found.symbols, *inputs], [ca.densify(with_symbols)])
    names, places = (*conditions, *touches, *due, *modes), tuple(range(s.layout.size)[s.layout.switched])
    parts = (*conditions, *[kink.part for kink in kinks.values()], *due, *modes)
    # A run that only counts turns has no event to look for.
    points = tuple(np.linspace(0.0, 1.0, (POINTS_OF_MOTION if costly else POINTS) if names else 2).tolist())
    linear = not costly and _is_linear(s, function)
    if not gaps:
        return Events(names, parts, places, stepwise, points, inner, function, combined, kinks=len(touches), linear=linear)
    rebounded = here.of_state([s.system.entered(T, T.q, after_impact(T, list(gaps.values())))])
    (x,) = ca.substitute(rebounded, [m.p_symbols], [s.now(m.p_symbols, d)])
    rebound = ca.Function("rebound", inputs, [ca.densify(ca.vertcat(x, z))], {"never_inline": True})
    return Events(names, parts, places, stepwise, points, inner, function, combined, len(gaps), rebound, len(touches), linear)


def _is_linear(s: LawAndSystem, function: ca.Function) -> bool:
    """Whether the numbers that conditions compare are linear, see `Events`. They have no jumps beside those that are compared
    too.   function: of the Events."""
    X, (_, w, p, t) = ca.SX.sym("X", s.system.nx + len(s.z)), function.sx_in()
    d = ca.SX.sym("d", s.layout.size)
    differences = function(ca.vertcat(s.system.variables.state(X), d), w, p, t)[1]
    return bool(ca.is_linear(differences, ca.vertcat(X, w, t)))


def _called_if_long(f: ca.Function) -> ca.Function:
    """The function, as one that is called, not inlined, if it has more than SHORT instructions."""
    x = f.sx_in()
    return f if f.n_instructions() <= SHORT else ca.Function(f.name(), x, f.call(x), {"never_inline": True})


def eventful(s: LawAndSystem) -> bool:
    """Whether constraints of a simulation begin or cease to act, or parameters change."""
    m = s.mechanism
    return once_for(s, "eventful", lambda: bool(switched(m) or s.changing.names or impacts_of(m) or s.kinks))


def exactness(t: ca.SX, h: ca.SX, width: ca.SX) -> ca.SX:
    """Exactness of the instants of events at the time t, in steps of ordinary length h [s].   width: that of `EventNumbers`."""
    least = ca.fmax(64 * EPS * ca.fabs(t), EXACT * h)
    return ca.fmax(least, ca.fmin(width * least, WIDEST * h))


def is_stepwise(x: ca.SX, moving: ca.SX, others: ca.SX) -> bool:
    """Whether the next value x of a parameter changes at events only: by jumps with the symbols `moving`, and not with itself
    alone.   others: all symbols but its own."""
    return ca.depends_on(x, others) and ca.sparsify(ca.jacobian(x, moving)).nnz() == 0


def switched_now(events: Events, d: ca.SX, here: ConditionsHere, aim: ca.SX, time: ca.SX) -> tuple[ca.SX, ca.SX]:
    """The discrete state d with the next values of all parameters if one jumps, and whether it does or an impact is due.

    aim: of the step that begins at `time`. Parameters that have just jumped wait until time has passed: where a condition is at
    its edge, rounding would make them jump back.
    """
    after, jumps = ca.SX(d), ca.SX(0)
    waits = ca.logic_or(ca.logic_or(aim > 1.5 * NO_AIM, aim == time), any_of(here.undefined))
    for i in range(events.conditions, events.conditions + events.impacts):
        jumps = ca.logic_or(jumps, here.states[i])
    for place, value, stepwise in zip(events.parameters, ca.vertsplit(here.following), events.stepwise, strict=True):
        if stepwise:
            value = ca.if_else(waits, d[place], value)
            after[place], jumps = value, ca.logic_or(jumps, value != d[place])
    for place, value, stepwise in zip(events.parameters, ca.vertsplit(here.following), events.stepwise, strict=True):
        after[place] = after[place] if stepwise else ca.if_else(jumps, value, d[place])
    return after, jumps


def gradual(events: Events, d: ca.SX, following: ca.SX) -> ca.SX:
    """The discrete state d with the next values of those parameters that change gradually."""
    after = ca.SX(d)
    for place, value, stepwise in zip(events.parameters, ca.vertsplit(following), events.stepwise, strict=True):
        after[place] = after[place] if stepwise else value
    return after


class Ahead(NamedTuple):
    """What a step meets.

    switches: whether parameters jump at its begin; such a step changes nothing else.   passes: whether it passes an event.
    short: whether it is as short as a step that passes an event should be.   root: where the event is, in parts of the step.
    finite: whether its end is.   undefined: whether a condition compares NaN at one of its ends.   exact: exactness of instants
    [s].   name: index of the name that changes.   following: next values of the parameters at its end.   still: whether it
    meets an event, and all numbers that decide it stand still.
    """

    switches: ca.SX
    passes: ca.SX
    short: ca.SX
    root: ca.SX
    finite: ca.SX
    undefined: ca.SX
    exact: ca.SX
    name: ca.SX
    following: ca.SX
    still: ca.SX

    @property
    def jumps(self) -> ca.SX:
        """Whether the step passes an event as it should, or parameters jump at its begin."""
        return ca.logic_or(self.switches, ca.logic_and(self.passes, self.short))

    @property
    def located(self) -> ca.SX:
        """Whether the step is to be taken again, up to an event."""
        return ca.logic_and(ca.logic_and(self.passes, ca.logic_not(self.short)), self.finite)

    def aims(self, aim: ca.SX, time: ca.SX, h: ca.SX, landed: ca.SX) -> tuple[ca.SX, ca.SX]:
        """Where the next step ends, after a step from `time` over h that is accepted, and after one that is not.

        aim: where this step had to end.   landed: whether it does, just before an event.
        """
        passing = PASSING * self.exact
        after = ca.if_else(h > 1.5 * passing, time + h + passing, NO_AIM)
        after = ca.if_else(self.jumps, NO_AIM, ca.if_else(landed, after, ca.fmin(aim, NO_AIM)))
        after = ca.if_else(ca.logic_and(h == 0, aim == time), 2 * NO_AIM, after)  # parameters have just jumped
        after = ca.if_else(self.switches, time, after)  # a step without length puts the state onto the new constraints
        early = ca.if_else(self.root < EARLY, BEYOND * self.root * h, self.root * h - self.exact / 2)
        near = ca.if_else(self.exact >= 0.9 * WIDEST * h, 0.1 * h, passing)  # so wide: the event is not at the root
        before = ca.if_else(self.root * h <= self.exact, near, early)
        return after, ca.if_else(self.located, time + before, aim)

    def widened(self, width: ca.SX, h: ca.SX) -> ca.SX:
        """The exactness of the next instant relative to `exactness`, from that of this one, after a step that is accepted."""
        missed = ca.logic_and(ca.logic_and(self.short, h > 0), ca.logic_not(self.jumps))
        return ca.if_else(missed, ca.fmin(WIDENING * width, NO_AIM), ca.if_else(h > MOVED_ON * self.exact, 1, width))

    def ordinary(self, h: ca.SX) -> ca.SX:
        """Whether a step is longer than those around events."""
        return h > 2 * PASSING * self.exact

    def counted(self, events: ca.SX, t: ca.SX, h: ca.SX) -> ca.SX:
        """The number of events in quick succession, after a step that is accepted.   t: time [s]."""
        apart = ca.logic_and(self.ordinary(h), h > AT_ONCE * ca.fabs(t))
        return ca.if_else(self.jumps, events + 1, ca.if_else(apart, 0, events))

    def stood_still(self, steps: ca.SX, elapsed: ca.SX, h: ca.SX) -> ca.SX:
        """The number of steps of late that met an event at which what is compared stands still, after one that is accepted.

        elapsed: time since the run began, at its begin [s]."""
        return ca.if_else(self.still, steps + 1, ca.fmax(steps - h / ca.fmax(SELDOM * (elapsed + h), NOTHING), 0))


class StepPoint(NamedTuple):
    """A point of a step.   states, differences, values: see `ConditionsHere`.   given: arguments of `Events.function`."""

    states: ca.SX
    differences: ca.SX
    values: ca.SX
    given: tuple[ca.SX, ca.SX, ca.SX, ca.SX]


class Tried(NamedTuple):
    """A step that is tried.   x, x_next: states at its begin, and at its end before its correction.   rates: of the stepped
    variables at both.   before, d: discrete state at its begin, and that in force.   h: length [s].
    at: part c of the step -> inputs and time [s].   here: at its begin.   switches: whether parameters jump there."""

    x: ca.SX
    x_next: ca.SX
    rates: ca.SX
    before: ca.SX
    d: ca.SX
    h: ca.SX
    at: Callable[[float], tuple[ca.SX, ca.SX]]
    here: ConditionsHere
    switches: ca.SX


class EventCheck(NamedTuple):
    """What a step meets, before an event is located.   nothing: whether no condition changes or compares NaN in it and no
    parameter jumps at its begin.   undefined: whether a condition compares NaN at one of its ends.   following: next values of
    the parameters at its end."""

    nothing: ca.SX
    undefined: ca.SX
    following: ca.SX


def event_check(events: Events, s: LawAndSystem, tried: Tried) -> EventCheck:
    """What a step meets, before an event is located.

    The path of a step is a cubic within the convex hull of four states. Where the numbers that conditions compare are linear,
    one that has the same sign at all four passes zero nowhere in between, and the points need not be looked at.
    """
    if events.linear:
        hull = [events.at(*given) for given in _hull(s, tried)]
        end, modes, first = hull[-1], tried.d[events.modes, 0], events.conditions + events.impacts
        alike = [ca.sum1(tried.here.differences * x.differences > 0) for x in hull]
        changes = [sum(alike, ca.SX(0)) < len(hull) * events.comparisons, *ca.vertsplit(tried.here.states[first:, 0] != modes)]
    else:
        points, end = step_points(events, s, tried)
        changes = [any_of(x.states != points[0].states) for x in points[1:]]
    undefined = ca.logic_or(any_of(tried.here.undefined), any_of(end.undefined))
    return EventCheck(ca.logic_not(any_of(ca.vertcat(tried.switches, *changes, undefined))), undefined, end.following)


def ahead(events: Events, s: LawAndSystem, tried: Tried, exact: ca.SX, passes_kinks: ca.SX) -> Ahead:
    """What a step meets.   exact: exactness of the instants of events [s].   passes_kinks: whether kinks count as none."""
    points, here = step_points(events, s, tried)
    begin, numbers, first = points[0].states, events.modes, events.conditions
    passes, root, after, decide = passed(events, points, passes_kinks)
    short, finite = is_short(tried.h, exact), is_finite(tried.x_next)
    if events.linear:
        turns = _turning_point(tried.here, [events.at(*given) for given in _hull(s, tried)])
        hidden = ca.logic_and(turns < NOWHERE, ca.logic_not(reduce(ca.logic_or, [passes, short, passes_kinks])))
        passes, root = ca.logic_or(passes, hidden), ca.if_else(hidden, turns, root)
    nan = ca.logic_or(any_of(tried.here.undefined), any_of(here.undefined))
    stands = ca.logic_or(tried.switches, tried.h == 0)  # a step without length puts the state onto the constraints alone
    passes = ca.logic_and(passes, ca.logic_not(ca.logic_or(stands, nan)))
    at_once = any_of(begin != tried.here.states)
    root = ca.if_else(at_once, 0, root)
    # A parameter that jumps at the begin has another next value there than in d; a condition changes within the step.
    now = ca.vertcat(tried.here.states[:first, 0], ca.SX(events.impacts, 1), tried.before[numbers, 0])
    changed = ca.if_else(tried.switches, begin != now, after != begin)
    name = ca.SX(-1)
    for i in reversed(range(len(events.names))):
        name = ca.if_else(changed[i], i, name)
    moves = ca.logic_and(decide, ca.logic_not(_stands_still(events, s, tried)))
    still = reduce(ca.logic_and, [passes, ca.logic_not(at_once), any_of(decide), ca.logic_not(any_of(moves))])
    return Ahead(tried.switches, passes, short, root, finite, nan, exact, name, here.following, still)


def _stands_still(events: Events, s: LawAndSystem, tried: Tried) -> ca.SX:
    """(k, 1) which of the numbers that conditions compare stand still at the begin of a step although their parts move, or are
    rounding from its begin to its end; structurally zero for those on which no condition of a constraint depends."""
    axes, (u, t) = s.system.variables, tried.at(0.0)
    depends, flags = ca.DM(events.combined.jac_sparsity(0, 0)), ca.SX(events.comparisons, 1)
    of = sorted({k for i in range(events.kink_places.start) for k in depends[i, :].sparsity().get_col()})
    X, now = ca.SX.sym("X", tried.x.numel()), ca.SX.sym("now")
    numbers = events.at(ca.vertcat(axes.state(X), tried.d), u, s.mechanism.p_symbols, now).differences[of, 0]
    x, rates = ca.vertcat(axes.stepped(tried.x), t), ca.vertcat(tried.rates[:, 0], 1)
    (slopes,) = ca.substitute([ca.jacobian(numbers, ca.vertcat(X, now))], [X, now], [x[:-1, 0], t])
    speed, (speeds, sizes) = ca.fabs(slopes @ rates), (ca.fabs(slopes) @ ca.fabs(of_each) for of_each in (rates, x))
    largest = ca.fmax(ca.fabs(tried.here.differences[of, 0]), tried.h * speed)
    sizes = ca.fmax(sizes, tried.here.sizes[of, 0])
    flags[of, 0] = ca.logic_or(speed < STILL * speeds, largest < ROUNDED * sizes)
    return flags


class Across(NamedTuple):
    """What a motion near a kink meets on its other side.   until: when it is there [s].   jump: of the rates of the stepped
    variables.   back: whether the motion there leads back, at a speed of at least LEADS_BACK of that with which it comes."""

    until: ca.SX
    jump: ca.SX
    back: ca.SX


def across(events: Events, s: LawAndSystem, tried: Tried, name: ca.SX, far: ca.SX, rate: Callable[..., ca.SX]) -> Across:
    """What a step that begins near the kink `name` meets on its other side.

    far: time after which the motion at its begin is on that side [s].   rate: (x, inputs, t) -> rates of the stepped variables.
    """
    axes, p, (u, t) = s.system.variables, s.mechanism.p_symbols, tried.at(0.0)
    first = rate(tried.x, u, t)
    there = axes.stepped(tried.x) + far * first
    other = rate(axes.state(there), u, t + far)
    beyond, later = (
        events.at(ca.vertcat(axes.state(x), tried.d), u, p, t + c * far) for x, c in ((there, 1), (there + far * other, 2))
    )
    depends, back, until = ca.DM(events.combined.jac_sparsity(0, 0)), ca.SX(0), ca.SX(0)
    for i in events.kink_places:
        for k in depends[i, :].sparsity().get_col():
            now, then, last = (here.differences[k] for here in (tried.here, beyond, later))
            passes = ca.logic_and(name == i, beyond.states[i] != tried.here.states[i])
            back = ca.logic_or(back, ca.logic_and(passes, (last - then) * (then - now) < -LEADS_BACK * (then - now) ** 2))
            until = ca.if_else(passes, far * now / (now - then), until)
    return Across(until, other - first, back)


def is_short(h: ca.SX, exact: ca.SX) -> ca.SX:
    """Whether a step of the length h [s] is as short as one that passes an event should be.   exact: of instants [s]."""
    return h <= 1.5 * PASSING * exact


def is_finite(x: ca.SX) -> ca.SX:
    """Whether the state at the end of a step is finite."""
    return ca.sumsqr(x) < LARGEST


def step_points(events: Events, s: LawAndSystem, tried: Tried) -> tuple[list[StepPoint], ConditionsHere]:
    """The points of a step at which conditions are evaluated, and what these are at its end. At its begin the states of
    parameters are those in force."""
    path, p = path_of(s.system.variables, tried.x, tried.x_next, tried.rates, tried.h), s.mechanism.p_symbols
    points, here = list[StepPoint](), tried.here
    for c in events.points:
        (u, t), x = tried.at(c), tried.x if c == 0 else tried.x_next if c == 1 else path(c)
        given = ca.vertcat(x, tried.d), u, p, t
        here = events.at(*given) if c else tried.here
        points.append(StepPoint(here.states, here.differences, here.values, given))
    others = events.conditions + events.impacts
    points[0] = points[0]._replace(states=ca.vertcat(tried.here.states[:others, 0], tried.d[events.modes, 0]))
    return points, here


def _hull(s: LawAndSystem, tried: Tried) -> list[tuple[ca.SX, ca.SX, ca.SX, ca.SX]]:
    """The arguments of `Events.function` at the corners of the path of a step, but for its begin: its Bezier points."""
    axes, (first, last) = s.system.variables, ca.horzsplit(tried.rates)
    after, before = axes.stepped(tried.x) + tried.h / 3 * first, axes.stepped(tried.x_next) - tried.h / 3 * last
    corners, instants = (axes.state(after), axes.state(before), tried.x_next), (tried.at(c) for c in (1 / 3, 2 / 3, 1.0))
    return [(ca.vertcat(x, tried.d), u, s.mechanism.p_symbols, t) for x, (u, t) in zip(corners, instants, strict=True)]


def _turning_point(begin: ConditionsHere, hull: list[ConditionsHere]) -> ca.SX:
    """Where, in parts of a step, one of the numbers that conditions compare is farthest beyond zero, the first if there are
    several, while it has the same sign at both ends; NOWHERE where none is. Linear numbers are cubics along the path.

    hull: see `_hull`."""
    found = ca.SX(NOWHERE)
    for k in range(begin.differences.numel()):
        a, b, c, d = (x.differences[k] for x in (begin, *hull))
        # The derivative is 3 (p (1 - x)^2 + 2 q x (1 - x) + r x^2), in Bernstein's polynomials.
        p, q, r = b - a, c - b, d - c
        root = ca.sqrt(ca.fmax(q**2 - p * r, 0))
        away = p - q + ca.if_else(p >= q, root, -root)
        for x in (p / away, away / (p - 2 * q + r)):
            value = a * (1 - x) ** 3 + 3 * b * x * (1 - x) ** 2 + 3 * c * x**2 * (1 - x) + d * x**3
            beyond = ca.logic_and(ca.logic_and(x > 0, x < 1), ca.logic_and(a * d > 0, a * value < 0))
            found = ca.if_else(beyond, ca.fmin(found, x), found)
    return found


def path_of(variables: Variables, x: ca.SX, x_next: ca.SX, rates: ca.SX, h: ca.SX) -> Callable[[float], ca.SX]:
    """The states within a step, from its part c: by the cubic polynomial of the stepped variables between its ends."""
    begin, end, (first, last) = variables.stepped(x), variables.stepped(x_next), ca.horzsplit(rates)

    def at(c: float) -> ca.SX:
        # As a change from the begin: far from the origin, the sum of parts of two equal states would differ from them.
        bend = c * (1 - c) ** 2 * h * first - c**2 * (1 - c) * h * last
        return variables.state(begin + (c**2 * (3 - 2 * c) * (end - begin) + bend))

    return at


def passed(events: Events, points: list[StepPoint], passes_kinks: ca.SX) -> tuple[ca.SX, ca.SX, ca.SX, ca.SX]:
    """Whether a step passes an event, where, in parts of its length, the states after it, and (k, 1) which comparisons decide
    it, from points along it.

    Among the comparisons that change between two points, those that alone change the states tell the place: another one may
    stand at its edge, and change by rounding.
    """
    at, differences = events.points, [x.differences for x in points]
    states = [_counted(events, x.states, points[0].states, passes_kinks) for x in points]
    changed = [any_of(x != states[0]) for x in states]
    powers = [sum((float(w) * g for w, g in zip(row, differences, strict=True)), ca.SX(0)) for row in _to_powers(at)]
    count = events.comparisons
    middle, right, after = ca.SX(1), ca.SX(1), states[0]
    before, value, crosses = differences[0], differences[-1], ca.SX(count, 1)
    for i in reversed(range(1, len(at))):
        middle = ca.if_else(changed[i], (at[i - 1] + at[i]) / 2, middle)
        right, after = ca.if_else(changed[i], at[i], right), ca.if_else(changed[i], states[i], after)
        before, value = (ca.if_else(changed[i], x, y) for x, y in ((differences[i - 1], before), (differences[i], value)))
        crosses = ca.if_else(changed[i], _decisive(events, points[i - 1], points[i], passes_kinks), crosses)
    found = ca.SX(NOWHERE)
    for k in range(count):
        root = _root([power[k] for power in powers], right - at[1], right, before[k])
        found = ca.if_else(crosses[k], ca.fmin(found, root), found)
    return reduce(ca.logic_or, changed), ca.if_else(found < NOWHERE, found, middle), after, crosses


def _counted(events: Events, states: ca.SX, before: ca.SX, passes_kinks: ca.SX) -> ca.SX:
    """The states, those of kinks as they were before where kinks count as none."""
    states, kinks = ca.SX(states), slice(events.conditions - events.kinks, events.conditions)
    states[kinks, 0] = each(passes_kinks, before[kinks, 0], states[kinks, 0])
    return states


def _decisive(events: Events, left: StepPoint, right: StepPoint, passes_kinks: ca.SX) -> ca.SX:
    """(k, 1) which comparisons change between two points and alone change the states; if none does, all that change. Where the
    numbers of one jump between the points, these jumps in place of it."""
    begin, end = ([x.values[k] for k in range(events.comparisons)] for x in (left, right))
    states = events.combined(ca.vertcat(ca.SX(0, 1), *begin), *left.given)
    changes, alone = ca.SX(len(begin), 1), ca.SX(len(begin), 1)
    depends = ca.DM(events.combined.jac_sparsity(0, 0))  # of states on comparisons
    for k in range(len(begin)):
        one = events.combined(ca.vertcat(*begin[:k], end[k], *begin[k + 1 :]), *left.given)
        one = _counted(events, one, states, passes_kinks)
        changes[k] = begin[k] != end[k]
        alone[k] = any_of(ca.vertcat(ca.SX(0, 1), *[one[i] != states[i] for i in depends[:, k].sparsity().row()]))
    decisive = ca.logic_and(changes, ca.logic_or(alone, ca.logic_not(any_of(alone))))
    for k in reversed(range(len(begin))):
        jumps = any_of(ca.vertcat(ca.SX(0, 1), *[changes[i] for i in events.inner[k]]))
        for i in events.inner[k]:
            decisive[i] = ca.logic_or(decisive[i], ca.logic_and(decisive[k], changes[i]))
        decisive[k] = ca.logic_and(decisive[k], ca.logic_not(jumps))
    return decisive


def any_of(flags: ca.SX) -> ca.SX:
    """Whether one of the flags is set."""
    return reduce(ca.logic_or, ca.vertsplit(flags), ca.SX(0))


def each(condition: ca.SX, yes: ca.SX, no: ca.SX) -> ca.SX:
    """Each entry of `yes` where the condition is true, else that of `no`; what is not chosen may be nan."""
    return ca.vertcat(*[ca.if_else(condition, yes[i], no[i]) for i in range(yes.numel())]) if yes.numel() else yes


def _to_powers(at: Sequence[float]) -> np.ndarray:
    """Coefficients of the polynomial through values at these points, from the lowest power: _to_powers(at) @ values."""
    c = np.array(at)
    return np.array([np.poly(np.delete(c, i))[::-1] / (c[i] - np.delete(c, i)).prod() for i in range(len(c))]).T


def _root(powers: list[ca.SX], low: ca.SX, high: ca.SX, value: ca.SX) -> ca.SX:
    """A root of a polynomial between two points, by Newton's rule within a bracket that shrinks; NOWHERE where it is NaN.

    value: at `low`.
    """
    x, y = low, value
    for _ in range(ITERATIONS):
        slope = reduce(lambda total, k: total * x + k * powers[k], reversed(range(1, len(powers))), ca.SX(0))
        newton = x - y / ca.if_else(slope != 0, slope, 1)
        inside = ca.logic_and(slope != 0, ca.logic_and(low <= newton, newton <= high))
        x = ca.if_else(inside, newton, (low + high) / 2)
        y = reduce(lambda total, w: total * x + w, reversed(powers))
        before = y * value > 0
        low, high = ca.if_else(before, x, low), ca.if_else(before, high, x)
    return ca.if_else(ca.fabs(y) < LARGEST, x, NOWHERE)
