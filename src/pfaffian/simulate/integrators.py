"""The integrators: one step of time by each of them, and what each needs of the equations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import casadi as ca

from pfaffian.dynamics.controlforce import ideal_reaction
from pfaffian.dynamics.motion import Motion, shortest_change
from pfaffian.maths.linear import largest_entry, solve_definite
from pfaffian.maths.pack import pack, unpack
from pfaffian.maths.reflection import NOTHING
from pfaffian.maths.tree_factor import multiply_WT, solve_W, solve_WT
from pfaffian.model.mechanism import Mechanism
from pfaffian.simulate.variables import Variables, q_dot
from pfaffian.terms.kinematics import Kinematics
from pfaffian.terms.terms import Terms

FAR = 1e12
"""A stage whose state has a larger norm has diverged: its faults are no cause."""


class Stage(NamedTuple):
    """The right-hand side at a state.

    rate: of the stepped variables.   faults, sides: see `Command`.   near: what the correction moves along.
    terms: those that the integrator needs.
    """

    rate: ca.SX
    faults: ca.SX
    sides: ca.SX
    near: ca.SX
    terms: Any


Rate = Callable[[ca.SX, ca.SX, ca.SX], Stage]
"""(x, u, t) -> Stage."""


class Tangent(NamedTuple):
    """Changes r of the stepped variables of a state x (n, 1) beside changes of q and v.

    n: numbers of the state, before those that a law integrates.   corrects: whether a step puts it onto constraints.
    show: (x, t) -> (q, v).   enter: (q, v, t) -> x.   into: (x, t, r) -> (dq, dv).   onto: (x, t, dq, dv) -> r.
    """

    n: int
    corrects: bool
    show: Callable[[ca.SX, ca.SX], tuple[ca.SX, ca.SX]]
    enter: Callable[[ca.SX, ca.SX, ca.SX], ca.SX]
    into: Callable[[ca.SX, ca.SX, ca.SX], tuple[ca.SX, ca.SX]]
    onto: Callable[[ca.SX, ca.SX, ca.SX, ca.SX], ca.SX]


class StepData(NamedTuple):
    """The data of a step from x at t over h, with inputs u0 and u1 at its ends.

    start: the first stage.   f: all others.   settled: (x, t) -> x with quaternions of unit length.
    project: (x, t, near) -> x on the constraints.   energy: (x, way, t) -> T + V and its slope.   tangent: of the state.
    iterations: of Newton's method, of each stage of `tr-bdf2`.
    solved: (k, base, g, u, t) -> k, which solves k = f(base + g k); where a step is differentiated, with the derivatives of
        the solution instead of those of the iterations.
    """

    m: Mechanism
    variables: Variables
    start: Rate
    f: Rate
    settled: Callable[[ca.SX, ca.SX], ca.SX]
    project: Callable[[ca.SX, ca.SX, ca.SX], ca.SX]
    energy: Callable[[ca.SX, ca.SX, ca.SX], Any]
    tangent: Tangent
    x: ca.SX
    p: ca.SX
    u0: ca.SX
    u1: ca.SX
    t: ca.SX
    h: ca.SX
    iterations: int
    solved: Callable[[ca.SX, ca.SX, ca.SX, ca.SX, ca.SX], ca.SX]


class Moved(NamedTuple):
    """The end of a step.

    x: still to be put onto the constraints.   faults: of all stages.   integrator_faults: of the integrator.
    near: what the correction moves along, of the last stage.
    """

    x: ca.SX
    faults: ca.SX
    near: ca.SX
    integrator_faults: ca.SX


def _further(faults: ca.SX, first: Stage, x: ca.SX, here: Stage) -> ca.SX:
    """The faults so far, and those with a side that are raised at x or whose side has changed since the step began."""
    sided, faults = first.sides.sparsity().get_triplet()[0], ca.SX(faults)
    raised, side = faults[sided, 0], first.sides[sided, 0]
    found = ca.logic_or(here.faults[sided, 0] * side != 0, side * here.sides[sided, 0] < 0)
    faults[sided, 0] = ca.if_else(raised != 0, raised, ca.if_else(ca.sumsqr(x) < FAR**2, found, 0))
    return faults


NONE = ca.SX(0, 1)


def _nothing(T: Terms, motion: Motion, push: Callable[[ca.SX, ca.SX], ca.SX]) -> tuple[Any, ...]:
    return ()


# -- explicit -----------------------------------------------------------------------------------------------------


def _rk4(s: StepData) -> Moved:
    """The classical rule with other stages: coordinates whose rate is a velocity follow their acceleration too (Nystroem).

    They are q + h/2 y + h^2/8 y_dot where the plain rule has h^2/4 and none. So a stage is off the constraints by h^3 instead
    of h^2, which matters where their rows are short: close to a singular configuration. The rule remains of order four.
    """
    X, h, u = s.variables.stepped(s.x), s.h, (s.u0 + s.u1) / 2
    at, rate = s.variables.straight
    first = seen = s.start(s.x, s.u0, s.t)
    k1 = first.rate
    slopes, faults = [k1], first.faults
    bends: tuple[Callable[[], ca.SX], ...] = (lambda: k1 / 8, lambda: -k1 / 8, lambda: (slopes[-1] - slopes[-2]) / 2)
    for part, w, bend in zip((h / 2, h / 2, h), (u, u, s.u1), bends, strict=True):
        ahead = X + part * slopes[-1]
        ahead[at, 0] += h**2 * bend()[rate, 0]
        there = s.variables.state(ahead)
        seen = s.f(there, w, s.t + part)
        faults = _further(faults, first, there, seen)
        slopes.append(seen.rate)
    k1, k2, k3, k4 = slopes
    return Moved(s.variables.state(X + h / 6 * (k1 + 2 * (k2 + k3) + k4)), faults, seen.near, NONE)


def _semi_implicit(s: StepData) -> Moved:
    """v first, then q with the new v; a law's state by the explicit rule. Faults are checked at both ends."""
    m, first = s.m, s.start(s.x, s.u0, s.t)
    faster = s.variables.stepped(s.x) + s.h * ca.vertcat(ca.SX(m.nq, 1), first.rate[m.nq :, 0])
    v = s.variables.state(faster)[m.nq : m.nq + m.nv, 0]
    K = Kinematics(m, s.x[: m.nq, 0], v, s.t)
    moved, faults = s.variables.state(ca.vertcat(s.x[: m.nq, 0] + s.h * q_dot(K), faster[m.nq :, 0])), first.faults
    if faults.numel():
        faults = _further(faults, first, moved, s.f(moved, s.u1, s.t + s.h))
    return Moved(moved, faults, first.near, NONE)


# -- the midpoint rule, which keeps the energy --------------------------------------------------------------------


class Level(NamedTuple):
    """How the energy E = T + V changes at a state.

    power: E_dot less the work of reactions of constraints that the state is off.
    moving, still: (nx, 1) the shortest changes along the constraints, in the metric of M, of v that change T and of q that
    change E.   T_slope, E_slope: how much they change them, |v|^2 and |y|^2.
    """

    power: ca.SX
    moving: ca.SX
    T_slope: ca.SX
    still: ca.SX
    E_slope: ca.SX


def level(T: Terms, motion: Motion, push: Callable[[ca.SX, ca.SX], ca.SX]) -> Level:
    """The Level at a state.   push: changes of q (nq, 1) and v (nv, 1) -> that of x."""
    E, k, F = T.T + T.V, T.kinematics, T.factor
    K = k.kinematic_matrix
    slope, p = K.T @ ca.gradient(E, T.q), ca.gradient(T.T, T.v)
    power = ca.dot(slope, T.v) + ca.dot(p, motion.v_dot) + ca.jacobian(E, T.t)
    along = solve_W(F, slope)
    if T.mechanism.ideal:
        rows = shortest_change(T)
        power -= ca.dot(ideal_reaction(T, motion), solve_WT(F, rows.solve(T.rows.eta)))
        along -= rows.solve(T.Lam @ along)
    nq, nv = T.mechanism.nq, T.mechanism.nv
    return Level(
        power,
        push(ca.SX(nq, 1), T.v),
        2 * T.T,
        push(K @ solve_WT(F, along), ca.SX(nv, 1)),
        ca.sumsqr(along),
    )


ITERATIONS = 8
"""Right-hand sides that a step of the midpoint rule evaluates, beside the one at its start."""

POLISHED = 3
"""Final corrections onto the constraints and the energy, which need no right-hand side."""

CONVERGED = 1e-5
"""Change that the last iteration may make, relative to 1 plus the largest number of the state."""

FARTHEST = 0.1
"""Largest part of v by which the energy is corrected: at an equilibrium, where nothing moves, rounding would ask for any."""

UNCONVERGED = "the implicit integrator did not converge: take a shorter step"


def _midpoint(s: StepData) -> Moved:
    """x1 = x + h f((x + x1) / 2), on the constraints and with E1 = E + h power((x + x1) / 2).

    After each iteration x1 is put onto the constraints along the rows of the middle, and onto its energy along the shortest
    change of q and v there, (h^2 y, v) with y = M^-1 dE/dq along the constraints. This vanishes only where nothing moves and
    nothing pulls, and is of the third order in h like all errors of the plain rule.
    """
    first = s.start(s.x, s.u0, s.t)
    X, end, E = s.variables.stepped(s.x), s.t + s.h, s.energy(s.x, s.x, s.t)[0]
    at, rate = s.variables.straight
    others = [i for i in range(X.numel()) if i not in at]

    def reached(slope: ca.SX) -> ca.SX:
        """x + h slope; coordinates whose rate is a velocity move by the mean of that velocity at both ends."""
        ahead = X + s.h * slope
        ahead[at, 0] = X[at, 0] + s.h / 2 * (X[rate, 0] + ahead[rate, 0])
        return s.variables.state(ahead)

    def put_right(ahead: ca.SX, part: ca.SX, off: ca.SX, stage: Stage) -> tuple[ca.SX, ca.SX, ca.SX]:
        """`ahead` put onto the constraints and the energy: moved by `part` of the way, and by `off` beside it."""
        level_there: Level = stage.terms
        way = level_there.moving + s.h**2 * level_there.still
        way = ca.vertcat(way, ca.SX.zeros(ahead.numel() - way.numel(), 1))  # what a law integrates has no energy
        there = ahead + part * way
        projected = s.project(there + off, end, stage.near)
        level, slope = s.energy(projected, way, end)
        least = (level_there.T_slope + s.h**2 * level_there.E_slope) / 4
        part = part + (E + s.h * level_there.power - level) / ca.fmax(ca.fmax(slope, least), NOTHING)
        part, off = ca.fmax(-FARTHEST, ca.fmin(FARTHEST, part)), projected - there
        return ahead + part * way + off, part, off

    slope, found = first.rate, list[tuple[ca.SX, ca.SX]]()
    guess, part, off, middle, stage = reached(slope), ca.SX(0), ca.SX.zeros(*X.shape), s.x, first
    for _ in range(ITERATIONS):
        middle = s.variables.state((X + s.variables.stepped(guess)) / 2)
        # The middle is off phi = 0 of a caller's coordinates by h^2, after one Newton step by h^4, which the power would show.
        middle = s.settled(s.settled(middle, s.t + s.h / 2), s.t + s.h / 2)
        stage = s.f(middle, (s.u0 + s.u1) / 2, s.t + s.h / 2)
        found.append((stage.rate, (stage.rate - slope)[others, 0]))
        slope = _accelerated(found)
        guess, part, off = put_right(reached(slope), part, off, stage)
    for _ in range(POLISHED):
        guess, part, off = put_right(reached(stage.rate), part, off, stage)
    change = s.h * largest_entry(found[-1][1])
    faults = _further(first.faults, first, middle, stage)
    return Moved(guess, faults, stage.near, change > CONVERGED * (1 + largest_entry(s.x)))


def _accelerated(found: Sequence[tuple[ca.SX, ca.SX]]) -> ca.SX:
    """The next argument of a fixed-point iteration: of its last three values the combination with the smallest residual.
    [Anderson 1965]

    found: (value, value less argument) of each iteration."""
    value, off = found[-1]
    past = [(a - b, r - s) for (a, r), (b, s) in zip(found[:-3:-1], found[-2:-4:-1], strict=False)]
    for i, (change, by) in enumerate(past):
        for other_change, other in past[:i]:
            part = ca.dot(by, other) / ca.fmax(ca.dot(other, other), NOTHING)
            change, by = change - part * other_change, by - part * other
        tells = ca.dot(by, by) > PARALLEL**2 * ca.dot(past[i][1], past[i][1])
        past[i] = change, by
        part = tells * ca.dot(off, by) / ca.fmax(ca.dot(by, by), NOTHING)
        value, off = value - part * change, off - part * by
    return value


PARALLEL = 1e-3
"""Changes whose directions differ by less carry no further information."""


# -- TR-BDF2, for stiff springs -----------------------------------------------------------------------------------


class Stiffness(NamedTuple):
    """metric: W of M = W W^T.   by_q, by_v: df/dq K and df/dv (nv, nv) of the applied force f(q, v, t), springs and dampers of
    all kinds.   projector: (nv, nv) the projector onto the constraint rows in mass-weighted coordinates, empty without rows."""

    metric: Any
    by_q: ca.SX
    by_v: ca.SX
    projector: ca.SX


def stiffness(T: Terms, motion: Motion, push: Callable[[ca.SX, ca.SX], ca.SX]) -> Stiffness:
    """The Stiffness at a state."""
    projector = shortest_change(T).solve(T.Lam) if T.mechanism.ideal else ca.SX(0, 0)
    by_q, by_v = (ca.sparsify(ca.jacobian(T.f, x)) for x in (T.q, T.v))
    return Stiffness(T.factor, ca.sparsify(by_q @ T.kinematics.kinematic_matrix), by_v, ca.densify(projector))


GAMMA = 1 - 2**-0.5
"""Weight of each stage's own rate: with it one matrix serves both, and what is infinitely stiff is damped out in one step."""

NEWTON = 4
"""Iterations of a stage unless a Scheme says otherwise, each with the stiffness at its iterate: a stiff direction that turns by
an angle leaves its square."""

KINKED = 16
"""The same of machines with contacts or stops, whose forces have kinks where they touch."""


def _tr_bdf2(s: StepData) -> Moved:
    """The trapezoidal rule over 2 g h, then a backward difference, g = 1 - 1 / sqrt(2). [Bank et al. 1985]

        k1 = f(x + g h (f(x) + k1)),   k2 = f(x1),   x1 = x + w h (f(x) + k1) + g h k2,   w = sqrt(2) / 4

    By Newton's iterations with the derivatives of the applied forces alone, springs and dampers of all kinds. Inertia and laws
    change little in a step, and each iteration reduces the error in them by a power of h.
    """
    g, first = GAMMA * s.h, s.start(s.x, s.u0, s.t)
    X, solve, k0 = s.variables.stepped(s.x), _newton(s, first), first.rate

    def stage(base: ca.SX, k: ca.SX, u: ca.SX, t: ca.SX) -> tuple[ca.SX, ca.SX, Stage, ca.SX]:
        """k = f(base + g k), the state and the stage there, and what the last iteration changed."""
        found = list[tuple[ca.SX, ca.SX]]()
        for _ in range(s.iterations):
            there = s.variables.state(base + g * k)
            seen = s.f(there, u, t)
            change = solve(there, seen, seen.rate - k)
            found.append((k + change, change))
            k = _accelerated(found)
        return s.solved(k, base, g, u, t), there, seen, s.h * largest_entry(change)

    k1, there, seen, change = stage(X + g * k0, solve(s.x, first, k0), s.u0 + 2 * GAMMA * (s.u1 - s.u0), s.t + 2 * g)
    faults = _further(first.faults, first, there, seen)
    base = X + 2**0.5 / 4 * s.h * (k0 + k1)
    k2, there, seen, last = stage(base, k1, s.u1, s.t + s.h)
    moved = s.variables.state(base + g * k2)
    if s.tangent.corrects:
        moved = _project_softly(s, moved, seen, solve)
    far = ca.fmax(change, last) > CONVERGED * (1 + largest_entry(s.x))
    return Moved(moved, _further(faults, first, there, seen), seen.near, far)


def _project_softly(s: StepData, x: ca.SX, seen: Stage, solve: Callable[[ca.SX, Stage, ca.SX], ca.SX]) -> ca.SX:
    """x put onto the constraints by changes that are shortest in the metric of M - g h f_v - g^2 h^2 f_q K: they leave stiff
    springs alone, which a change in the metric of M would stretch."""
    of, t = s.tangent, s.t + s.h
    (q, v), (projected_q, projected_v) = of.show(x, t), of.show(s.project(x, t, seen.near), t)
    none, more = ca.SX(s.m.nq, 1), ca.SX(x.numel() - of.n, 1)
    K = Kinematics(s.m, q, ca.SX(s.m.nv, 1), s.t).kinematic_matrix

    def softly(dv: ca.SX) -> ca.SX:
        return of.into(x, t, solve(x, seen, ca.vertcat(of.onto(x, t, none, dv), more))[: of.n, 0])[1]

    dq = softly(solve_definite(K.T @ K, K.T @ (projected_q - q)))
    return ca.vertcat(of.enter(q + K @ dq, v + softly(projected_v - v), t), x[of.n :, 0])


def _newton(s: StepData, first: Stage) -> Callable[[ca.SX, Stage, ca.SX], ca.SX]:
    """(x, stage there, r) -> the change d of a rate of the stepped variables with d - g h J d = r.

    For velocities in mass-weighted coordinates along the constraints the matrix is 1 - g h W^-1 f_v W^-T - g^2 h^2 W^-1 f_q K
    W^-T, of size nv, and positive definite where forces hold and damp.
    """
    m, n, of = s.m, s.m.nv, s.tangent
    x, r, t, g = ca.SX.sym("x", s.x.numel()), ca.SX.sym("r", s.x.numel()), ca.SX.sym("t"), ca.SX.sym("g")
    numbers = ca.SX.sym("own", pack(first.terms).numel())
    stiff: Stiffness = unpack(first.terms, numbers)
    F, (r_q, r_v) = stiff.metric, of.into(x, t, r[: of.n, 0])
    K = Kinematics(m, of.show(x, t)[0], ca.SX(n, 1), t).kinematic_matrix
    free = ca.SX.eye(n) - stiff.projector if stiff.projector.numel() else ca.SX.eye(n)
    by_q, by_v = (solve_W(F, ca.densify(part)) for part in (stiff.by_q, stiff.by_v))
    Z = solve_W(F, ca.densify(g * by_v + g**2 * by_q).T).T
    weighted, moving = multiply_WT(F, r_v), solve_definite(K.T @ K, K.T @ r_q)
    kept = weighted - free @ weighted
    pushed = free @ (weighted + Z @ kept + g * (by_q @ moving))
    d_v = solve_WT(F, kept + free @ solve_definite(ca.SX.eye(n) - free @ Z @ free, pushed))
    d = ca.vertcat(of.onto(x, t, r_q + g * (K @ d_v), d_v), r[of.n :, 0])
    inputs = [x, numbers, r, t, g, m.p_symbols]
    solve = ca.Function("newton", inputs, [ca.densify(d)], {"never_inline": True})
    return lambda x, stage, r: solve(x, pack(stage.terms), r, s.t, GAMMA * s.h, s.p)


# -- the table ----------------------------------------------------------------------------------------------------


class Integrator(NamedTuple):
    """step: one step of time.   order: of its error.   needs: terms that it needs at each stage, of the Terms and the Motion.
    shares: whether its last stage is near enough to the end to correct along.   faults: its own messages.
    any_state: whether it serves other states than [q; v].   stiff: whether it goes over motions that its step cannot follow.
    refuses: message that tells what of a mechanism it cannot serve, "" for nothing.
    """

    step: Callable[[StepData], Moved]
    order: int
    needs: Callable[[Terms, Motion, Callable[[ca.SX, ca.SX], ca.SX]], tuple[Any, ...]] = _nothing
    shares: bool = False
    faults: Sequence[str] = ()
    any_state: bool = True
    stiff: bool = False
    refuses: Callable[[Mechanism], str] = lambda m: ""


def _changes_energy(m: Mechanism) -> str:
    names = [c.name for c in m.ideal if c.active]
    if names:
        return f"it keeps the energy, which constraints that come and go ({', '.join(names)}) take at once"
    names = [c.name for c in m.coordinates if c.returns is not None]
    return f"it keeps the energy, which coordinates that return to phi = 0 ({', '.join(names)}) change" if names else ""


INTEGRATORS = {
    "rk4": Integrator(_rk4, 4, shares=True),
    "euler": Integrator(_semi_implicit, 1, any_state=False),
    "midpoint": Integrator(_midpoint, 2, level, shares=True, faults=(UNCONVERGED,), refuses=_changes_energy),
    "tr-bdf2": Integrator(
        _tr_bdf2, 2, stiffness, shares=True, faults=(f"{UNCONVERGED}, or more iterations by Scheme",), stiff=True
    ),
}
"""Name -> integrator."""
