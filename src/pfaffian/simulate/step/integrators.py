"""The integrators: one time step by each of them, and the terms of the equations that each needs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import casadi as ca

from pfaffian.dynamics.controlforce import ideal_reaction
from pfaffian.dynamics.motion import Motion, shortest_change
from pfaffian.errors import ModelError, brief, listed
from pfaffian.maths.linear import largest_entry, solve_definite
from pfaffian.maths.pack import pack, unpack
from pfaffian.maths.reflection import NOTHING
from pfaffian.maths.tree_factor import multiply_WT, solve_W, solve_WT
from pfaffian.model.mechanism import Mechanism
from pfaffian.simulate.step.method import NO_FAULTS, Moved, Stage, StepData, later_faults, rates_from, rates_through
from pfaffian.simulate.step.pairs import DOP853, DOPRI5, TOO_SHORT, EmbeddedPair, explicit
from pfaffian.simulate.step.stiff_pair import RADAU5, UNRESOLVED, StiffPair, radau5
from pfaffian.states.abstract_system import AbstractSystem
from pfaffian.states.variables import q_dot
from pfaffian.tables import Registry
from pfaffian.terms.kinematics import Kinematics
from pfaffian.terms.terms import Terms


def _nothing(T: Terms, motion: Motion, push: Callable[[ca.SX, ca.SX], ca.SX]) -> tuple[Any, ...]:
    """No terms: `Integrator.needs` of a scheme that needs only the rate."""
    return ()


# -- explicit -----------------------------------------------------------------------------------------------------


def _rk4(s: StepData) -> Moved:
    """The classical rule with modified stages: coordinates whose rate is a velocity also follow their acceleration (Nystroem).

    Their middle stages are q + h/2 y + h^2/8 y_dot, where the classical rule has no h^2 term in one and h^2/4 in the other.
    Stages then violate the constraints by h^3 instead of h^2. This matters where rows are short, close to a singular
    configuration. The rule remains of order four.
    """
    X, h, u = s.variables.stepped(s.x), s.h, (s.u0 + s.u1) / 2
    at, rate = s.variables.straight
    first = stage = s.start(s.x, s.u0, s.t)
    k1 = first.rate
    slopes, faults = [k1], first.faults
    bends: tuple[Callable[[], ca.SX], ...] = (lambda: k1 / 8, lambda: -k1 / 8, lambda: (slopes[-1] - slopes[-2]) / 2)
    for part, w, bend in zip((h / 2, h / 2, h), (u, u, s.u1), bends, strict=True):
        X_stage = X + part * slopes[-1]
        X_stage[at, 0] += h**2 * bend()[rate, 0]
        x_stage = s.variables.state(X_stage)
        stage = s.f(x_stage, w, s.t + part)
        faults = later_faults(s, faults, first, x_stage, stage)
        slopes.append(stage.rate)
    k1, k2, k3, k4 = slopes
    moved = s.variables.state(X + h / 6 * (k1 + 2 * (k2 + k3) + k4))
    return Moved(moved, faults, stage.near, NO_FAULTS, rates=ca.horzcat(k1, k4))


def _semi_implicit(s: StepData) -> Moved:
    """Semi-implicit Euler: v first, then q with the new v; a law's state explicitly. Faults are checked at both ends."""
    m, first = s.m, s.start(s.x, s.u0, s.t)
    faster = s.variables.stepped(s.x) + s.h * ca.vertcat(ca.SX(m.nq, 1), first.rate[m.nq :, 0])
    v = s.variables.state(faster)[m.nq : m.nq + m.nv, 0]
    K = Kinematics(m, s.x[: m.nq, 0], v, s.t)
    moved, faults = s.variables.state(ca.vertcat(s.x[: m.nq, 0] + s.h * q_dot(K), faster[m.nq :, 0])), first.faults
    if faults.numel():
        faults = later_faults(s, faults, first, moved, s.f(moved, s.u1, s.t + s.h))
    path = rates_from(first.rate, s.variables.stepped(moved) - s.variables.stepped(s.x), s.h)
    return Moved(moved, faults, first.near, NO_FAULTS, rates=path)


# -- the midpoint rule, which conserves energy ---------------------------------------------------------------------


class EnergyChange(NamedTuple):
    """How the energy E = T + V changes at a state.

    power: E_dot less the power of the reactions of constraints that the state violates.
    moving, still: (nx, 1) the shortest changes of v that change T, and of q that change E, along the constraints and in the
    metric of M.   T_slope, E_slope: the slopes of T and E along them, |v|^2 and |y|^2.
    """

    power: ca.SX
    moving: ca.SX
    T_slope: ca.SX
    still: ca.SX
    E_slope: ca.SX


def energy_change(T: Terms, motion: Motion, push: Callable[[ca.SX, ca.SX], ca.SX]) -> EnergyChange:
    """The EnergyChange at a state.   push: changes of q (nq, 1) and v (nv, 1) -> change of x."""
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
    return EnergyChange(
        power,
        push(ca.SX(nq, 1), T.v),
        2 * T.T,
        push(K @ solve_WT(F, along), ca.SX(nv, 1)),
        ca.sumsqr(along),
    )


ITERATIONS = 8
"""Right-hand sides that a step of the midpoint rule evaluates, in addition to the one at its start."""

POLISHED = 3
"""Final corrections onto the constraints and the energy level, which need no right-hand side."""

CONVERGED = 1e-5
"""Largest change in the last iteration that counts as converged, relative to 1 plus the largest number of the state."""

LARGEST_PART = 0.1
"""Largest correction of the energy, as a fraction of v. At an equilibrium, where nothing moves, rounding would otherwise
demand corrections of any size."""

UNCONVERGED = "the implicit integrator did not converge: take a shorter step"


def _midpoint(s: StepData) -> Moved:
    """x1 = x + h f((x + x1) / 2), on the constraints and with E1 = E + h power((x + x1) / 2).

    After each iteration x1 is projected onto the constraints along the rows at the midpoint, and onto its energy level along
    the shortest change of q and v there, (h^2 y, v) with y = M^-1 dE/dq along the constraints. This direction vanishes only at
    equilibria. The correction is of the third order in h, like all errors of the plain rule.
    """
    first = s.start(s.x, s.u0, s.t)
    X, end, E = s.variables.stepped(s.x), s.t + s.h, s.energy(s.x, s.x, s.t)[0]
    at, rate = s.variables.straight
    others = [i for i in range(X.numel()) if i not in at]

    def reached(slope: ca.SX) -> ca.SX:
        """x + h slope, where coordinates whose rate is a velocity move at the mean of that velocity at both ends."""
        X1 = X + s.h * slope
        X1[at, 0] = X[at, 0] + s.h / 2 * (X[rate, 0] + X1[rate, 0])
        return s.variables.state(X1)

    def correct(X1: ca.SX, part: ca.SX, off: ca.SX, stage: Stage) -> tuple[ca.SX, ca.SX, ca.SX]:
        """`X1` projected onto the constraints and the energy level: X1 + part * way + off, and the new `part` and `off`.

        way: the direction that changes the energy.   part: the step along it.   off: the correction onto the constraints.
        """
        change: EnergyChange = stage.terms
        way = change.moving + s.h**2 * change.still
        way = ca.vertcat(way, ca.SX.zeros(X1.numel() - way.numel(), 1))  # the numbers that a law integrates have no energy
        moved = X1 + part * way
        projected = s.project(moved + off, end, stage.near)
        energy, slope = s.energy(projected, way, end)
        least = (change.T_slope + s.h**2 * change.E_slope) / 4
        part = part + (E + s.h * change.power - energy) / ca.fmax(ca.fmax(slope, least), NOTHING)
        part, off = ca.fmax(-LARGEST_PART, ca.fmin(LARGEST_PART, part)), projected - moved
        return X1 + part * way + off, part, off

    slope, iterates = first.rate, list[tuple[ca.SX, ca.SX]]()
    guess, part, off, middle, stage = reached(slope), ca.SX(0), ca.SX.zeros(*X.shape), s.x, first
    for _ in range(ITERATIONS):
        middle = s.variables.state((X + s.variables.stepped(guess)) / 2)
        # The midpoint violates phi = 0 of a user's own coordinates by h^2, and by h^4 after one Newton step, which would still
        # affect the power. So two steps are made.
        middle = s.settled(s.settled(middle, s.t + s.h / 2), s.t + s.h / 2)
        stage = s.f(middle, (s.u0 + s.u1) / 2, s.t + s.h / 2)
        iterates.append((stage.rate, (stage.rate - slope)[others, 0]))
        slope = _accelerated(iterates)
        guess, part, off = correct(reached(slope), part, off, stage)
    for _ in range(POLISHED):
        guess, part, off = correct(reached(stage.rate), part, off, stage)
    change = s.h * largest_entry(iterates[-1][1])
    faults = later_faults(s, first.faults, first, middle, stage)
    path = rates_from(first.rate, s.variables.stepped(guess) - X, s.h)
    return Moved(guess, faults, stage.near, change > CONVERGED * (1 + largest_entry(s.x)), rates=path)


def _accelerated(iterates: Sequence[tuple[ca.SX, ca.SX]]) -> ca.SX:
    """The next argument of a fixed-point iteration: the combination of its last three values with the smallest residual.
    [Anderson 1965]

    iterates: (value, value less argument) of each iteration so far.
    """
    value, off = iterates[-1]
    past = [(a - b, r - s) for (a, r), (b, s) in zip(iterates[:-3:-1], iterates[-2:-4:-1], strict=False)]
    for i, (change, by) in enumerate(past):
        for other_change, other in past[:i]:
            part = ca.dot(by, other) / ca.fmax(ca.dot(other, other), NOTHING)
            change, by = change - part * other_change, by - part * other
        informative = ca.dot(by, by) > PARALLEL**2 * ca.dot(past[i][1], past[i][1])
        past[i] = change, by
        part = informative * ca.dot(off, by) / ca.fmax(ca.dot(by, by), NOTHING)
        value, off = value - part * change, off - part * by
    return value


PARALLEL = 1e-3
"""Changes of residuals whose directions differ by a smaller angle [rad] carry no further information."""


# -- TR-BDF2, for stiff springs -----------------------------------------------------------------------------------


class Stiffness(NamedTuple):
    """The mass matrix and the stiffness and damping at a state.

    metric: W of M = W W^T.   by_q, by_v: df/dq K and df/dv (nv, nv) of the applied force f(q, v, t), springs and dampers of
    all kinds.   projector: (nv, nv) the projector onto the constraint rows in mass-weighted coordinates, empty without rows.
    """

    metric: Any
    by_q: ca.SX
    by_v: ca.SX
    projector: ca.SX


def stiffness(T: Terms, motion: Motion, push: Callable[[ca.SX, ca.SX], ca.SX]) -> Stiffness:
    """Mass matrix, stiffness and damping of the applied forces, and the constraint rows, as a step of TR-BDF2 needs them."""
    projector = shortest_change(T).solve(T.Lam) if T.mechanism.ideal else ca.SX(0, 0)
    by_q, by_v = (ca.sparsify(ca.jacobian(T.f, x)) for x in (T.q, T.v))
    return Stiffness(T.factor, ca.sparsify(by_q @ T.kinematics.kinematic_matrix), by_v, ca.densify(projector))


GAMMA = 1 - 2**-0.5
"""Weight of a stage's own rate in that stage. With this value one matrix serves both stages, and infinitely stiff motions are
damped out in one step."""

NEWTON = 4
"""Default number of Newton iterations in a stage, each with the stiffness at its iterate. Where a stiff direction turns by an
angle, an iteration leaves an error of the square of that angle."""

KINKED = 16
"""Default number of Newton iterations of machines with contacts or stops, whose forces have kinks where contact begins."""


def _tr_bdf2(s: StepData) -> Moved:
    """The trapezoidal rule over 2 g h, then a backward difference, with g = 1 - 1 / sqrt(2). [Bank et al. 1985]

        k1 = f(x + g h (f(x) + k1)),   k2 = f(x1),   x1 = x + w h (f(x) + k1) + g h k2,   w = sqrt(2) / 4

    The stages are solved by Newton iterations with the derivatives of the applied forces alone: springs and dampers of all
    kinds. Inertia and control laws change little in a step, and each iteration reduces the error due to them by a power of h.
    """
    g, first = GAMMA * s.h, s.start(s.x, s.u0, s.t)
    X, solve, k0 = s.variables.stepped(s.x), _newton(s, first), first.rate

    def solve_stage(base: ca.SX, k: ca.SX, u: ca.SX, t: ca.SX) -> tuple[ca.SX, ca.SX, Stage, ca.SX]:
        """The solution of k = f(base + g k), the last state and Stage, and the change of the last iteration."""
        iterates = list[tuple[ca.SX, ca.SX]]()
        for _ in range(s.iterations):
            x = s.variables.state(base + g * k)
            stage = s.f(x, u, t)
            change = solve(x, stage, stage.rate - k)
            iterates.append((k + change, change))
            k = _accelerated(iterates)
        return s.solved(k, base, g, u, t), x, stage, s.h * largest_entry(change)

    k1, x, stage, change = solve_stage(X + g * k0, solve(s.x, first, k0), s.u0 + 2 * GAMMA * (s.u1 - s.u0), s.t + 2 * g)
    faults = later_faults(s, first.faults, first, x, stage)
    base = X + 2**0.5 / 4 * s.h * (k0 + k1)
    k2, x, stage, last = solve_stage(base, k1, s.u1, s.t + s.h)
    moved = s.variables.state(base + g * k2)
    if s.tangent.corrects:
        moved = _project_softly(s, moved, stage, solve)
    unconverged = ca.fmax(change, last) > CONVERGED * (1 + largest_entry(s.x))
    path = rates_through((2 * GAMMA, 1.0), (g * (k0 + k1), s.variables.stepped(moved) - X), s.h)
    return Moved(moved, later_faults(s, faults, first, x, stage), stage.near, unconverged, rates=path)


def _project_softly(s: StepData, x: ca.SX, stage: Stage, solve: Callable[[ca.SX, Stage, ca.SX], ca.SX]) -> ca.SX:
    """x projected onto the constraints by the shortest changes in the metric of M - g h f_v - g^2 h^2 f_q K.

    These hardly strain stiff springs, which the shortest changes in the metric of M would stretch.
    """
    of, t = s.tangent, s.t + s.h
    (q, v), (projected_q, projected_v) = of.show(x, t), of.show(s.project(x, t, stage.near), t)
    none, more = ca.SX(s.m.nq, 1), ca.SX(x.numel() - of.n, 1)
    K = Kinematics(s.m, q, ca.SX(s.m.nv, 1), s.t).kinematic_matrix

    def softly(dv: ca.SX) -> ca.SX:
        return of.into(x, t, solve(x, stage, ca.vertcat(of.onto(x, t, none, dv), more))[: of.n, 0])[1]

    dq = softly(solve_definite(K.T @ K, K.T @ (projected_q - q)))
    return ca.vertcat(of.enter(q + K @ dq, v + softly(projected_v - v), t), x[of.n :, 0])


def _newton(s: StepData, first: Stage) -> Callable[[ca.SX, Stage, ca.SX], ca.SX]:
    """(x, stage at x, r) -> the change d of the rate of the stepped variables that solves d - g h J d = r.

    For velocities in mass-weighted coordinates along the constraints the matrix is 1 - g h W^-1 f_v W^-T - g^2 h^2 W^-1 f_q K
    W^-T, of size nv. It is positive definite where the forces restore and damp.
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
    along_rows = weighted - free @ weighted
    pushed = free @ (weighted + Z @ along_rows + g * (by_q @ moving))
    d_v = solve_WT(F, along_rows + free @ solve_definite(ca.SX.eye(n) - free @ Z @ free, pushed))
    d = ca.vertcat(of.onto(x, t, r_q + g * (K @ d_v), d_v), r[of.n :, 0])
    inputs = [x, numbers, r, t, g, m.p_symbols]
    solve = ca.Function("newton", inputs, [ca.densify(d)], {"never_inline": True})
    return lambda x, stage, r: solve(x, pack(stage.terms), r, s.t, GAMMA * s.h, s.p)


# -- the table ----------------------------------------------------------------------------------------------------


AnyPair = EmbeddedPair | StiffPair
"""A pair: a rule with an estimate of the error of its steps."""


class Integrator(NamedTuple):
    """An integrator and its properties.

    step: makes one time step.   order: order of its error.   needs: terms of Terms and Motion that it needs at each stage.
    shares: whether its last stage is near enough to the end of the step for its factors to serve the correction.
    faults: messages of its own faults.   any_state: whether it integrates states other than [q; v].
    stiff: whether it steps over motions too fast for its step.   pair: that estimates the error of its steps, if any.
    slopes: whether it needs the derivatives of the right-hand side.
    refuses: mechanism -> message on what the integrator cannot handle in it, "" if nothing.
    """

    step: Callable[[StepData], Moved]
    order: int
    needs: Callable[[Terms, Motion, Callable[[ca.SX, ca.SX], ca.SX]], tuple[Any, ...]] = _nothing
    shares: bool = False
    faults: Sequence[str] = ()
    any_state: bool = True
    stiff: bool = False
    pair: AnyPair | None = None
    slopes: bool = False
    refuses: Callable[[Mechanism], str] = lambda m: ""

    @property
    def compared(self) -> int:
        """Number of results of lower order of an explicit pair, 0 without one."""
        return len(self.pair.errors) if isinstance(self.pair, EmbeddedPair) else 0


def _changes_energy(m: Mechanism) -> str:
    """Why the midpoint rule cannot integrate a mechanism: the parts that change its energy, "" if there are none."""
    names = [c.name for c in m.ideal if c.active]
    if names:
        return f"it conserves energy, which constraints that come and go ({', '.join(names)}) dissipate at once"
    names = [c.name for c in m.coordinates if c.returns is not None]
    return f"it conserves energy, which coordinates that return to phi = 0 ({', '.join(names)}) change" if names else ""


def _check(name: str, row: Any) -> None:
    """Raise ModelError if a user's row is no Integrator."""
    if not isinstance(row, Integrator):
        raise ModelError(f"integrator {name!r}: an Integrator is needed, got {brief(row)}")


INTEGRATORS = Registry("integrator", {
    "rk4": Integrator(_rk4, 4, shares=True),
    "euler": Integrator(_semi_implicit, 1, any_state=False),
    "midpoint": Integrator(_midpoint, 2, energy_change, shares=True, faults=(UNCONVERGED,), refuses=_changes_energy),
    "tr-bdf2": Integrator(
        _tr_bdf2, 2, stiffness, shares=True, faults=(f"{UNCONVERGED}, or more iterations by Scheme",), stiff=True
    ),
    "dopri5": Integrator(partial(explicit, DOPRI5), 5, shares=True, faults=(TOO_SHORT,), pair=DOPRI5),
    "dop853": Integrator(partial(explicit, DOP853), 8, shares=True, faults=(TOO_SHORT,), pair=DOP853),
    "radau5": Integrator(radau5, 5, shares=True, faults=(UNRESOLVED,), stiff=True, pair=RADAU5, slopes=True),
}, "give your own another name", _check)  # fmt: skip
"""Integrators by name. Of a row that a user adds, the key of a run contains the traced step."""

STIFF_PAIR = "radau5"
"""The pair of runs to an accuracy where the motion is stiff."""


def integrator_for(name: str, s: AbstractSystem) -> Integrator:
    """The integrator of this name. Raises ModelError: it does not support the system."""
    integrator = INTEGRATORS.named(name)
    if s.other_state and not integrator.any_state:
        others = ", ".join(n for n, other in INTEGRATORS.items() if other.any_state)
        raise ModelError(f"integrator {name!r} supports only the state [q; v]; {s.title} works with {others}")
    if reason := integrator.refuses(s.mechanism):
        raise ModelError(f"integrator {name!r} cannot serve {s.mechanism.name!r}: {reason}; take 'rk4'")
    return integrator


def pair_of(integrator: Integrator, name: str) -> AnyPair:
    """The pair of the integrator of this name. Raises ModelError: it has none."""
    if integrator.pair is None:
        pairs = listed([n for n, row in INTEGRATORS.items() if row.pair])
        raise ModelError(f"accuracy: {name!r} does not estimate the error of its steps; leave it out, or take {pairs}")
    return integrator.pair
