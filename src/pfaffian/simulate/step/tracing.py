"""The functions of a simulation that the kernel compiles: the right-hand side, the step, the correction, what is recorded."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple, Protocol

import casadi as ca

from pfaffian.dynamics import formulation, gauss, passage
from pfaffian.dynamics.controlforce import control_force
from pfaffian.dynamics.motion import Motion
from pfaffian.maths.pack import pack, placeholders, unpack
from pfaffian.simulate.step import activation
from pfaffian.simulate.step.closed_loop import ClosedLoop, LawAndSystem, closed_loop, traced_loop
from pfaffian.simulate.step.events import eventful
from pfaffian.simulate.step.faults import Faults
from pfaffian.simulate.step.integrators import Integrator
from pfaffian.simulate.step.sampling import Acting, in_python, samplers
from pfaffian.simulate.step.signals import OutputFunction, Record, columns
from pfaffian.simulate.step.split import split
from pfaffian.simulate.step.step import (
    CorrectionFactors,
    Functions,
    RightHandSide,
    along,
    correct,
    corrected_rows,
    remaining,
    time_step,
)
from pfaffian.simulate.step.tangent import tangent
from pfaffian.states.abstract_system import At
from pfaffian.terms.loop_joints import half_turn_sides
from pfaffian.terms.pfaffian import ACCELERATION
from pfaffian.terms.terms import Terms

SHARED = {"never_inline": True}
"""Options of a Function that is called and never inlined, so that it is compiled once."""

INFINITE = 1e100
"""A derivative as large as this is one at a kink, and counts as zero."""


class Traced(NamedTuple):
    """The CasADi functions of a run.

    rhs: (x, w, p, t) -> (x_dot, faults, sides, carried, records).   project: (x, p, t, carried) -> (x, violation).
        `carried` are numbers that the correction after a step needs from its last stage, and the integrator from all stages.
    step, observe, samplers: arguments of the kernel's rollout; the first two call rhs, which is thus compiled once.
    sizes: number of entries of each signal.   functions: that the step calls.
    between: with a law in Python, arguments of a rollout that runs the samplers between the steps and changes nothing else."""

    rhs: ca.Function
    project: ca.Function
    step: ca.Function
    observe: ca.Function
    sizes: Mapping[str, int]
    functions: Functions
    samplers: tuple[ca.Function, ...]
    between: tuple[ca.Function, ...]


class Traceable(LawAndSystem, Protocol):
    """What is traced: the members of a `Simulation` on which its functions depend, described there."""

    @property
    def outputs(self) -> tuple[tuple[str, OutputFunction], ...]: ...
    @property
    def record(self) -> Record: ...
    @property
    def integrator(self) -> Integrator: ...
    @property
    def faults(self) -> Faults: ...
    @property
    def arrived(self) -> ca.Function | None: ...
    @property
    def traced(self) -> Traced: ...


def trace(sim: Traceable) -> Traced:
    """All functions of a run but `entering_step`. Raises ModelError: the integrator, the law or an output does not fit."""
    loop = traced_loop(sim, last=True)
    here, z = loop.here, loop.z
    parts = correction(sim, here, z)
    project, needed = ca.Function("project", parts.inputs, [parts.x, parts.violation], SHARED), parts.needed
    rhs, sizes, terms = _rate(sim, "rhs", loop, None, needed)
    x, w, p, t = inputs = list(rhs.sx_in())
    at = RightHandSide(*rhs(x, w, sim.now(p, x[x.numel() - sim.layout.size :, 0]), t))
    observe = ca.Function("observe", inputs, [at.records])
    of_state = tangent(sim.system, _corrects(sim))
    functions = Functions(rhs, project, _energy(sim, here, z), terms, partial(_settled, sim), of_state, sim.system.limit)
    functions = functions._replace(remaining=_remaining(sim, here, parts))
    if sim.integrator.slopes:
        coordinates = sim.mechanism.nq if sim.system.parts[0].name == "q" else 0
        functions = functions._replace(slopes=_slopes(sim, rhs), coordinates=coordinates)
    sampled, python = _samplers(sim), in_python(sim.control)
    between = (*_standstill(x, w, p, t), *sampled) if python else ()
    step = split(sim, embedded(sim, functions)) if eventful(sim) else _step(sim, functions)
    return Traced(rhs, project, step, observe, sizes, functions, () if python else sampled, between)


def _standstill(x: ca.SX, w: ca.SX, p: ca.SX, t: ca.SX) -> tuple[ca.Function, ca.Function]:
    """A step that does not change the state, and an observation that contains only the time."""
    end = [ca.SX.sym("w", w.numel()), p, t, ca.SX.sym("h")]
    return ca.Function("step", [x, w, *end], [x[:1, 0], ca.SX(0, 1)]), ca.Function("observe", [x, w, p, t], [t])


def _samplers(sim: Traceable) -> tuple[ca.Function, ...]:
    """The samplers of the law."""
    acting: Acting = lambda *at: ClosedLoop(sim, *at).acting  # noqa: E731
    return samplers(sim.system, sim.control, sim.scheme, sim.layout, len(sim.w_names), sim.changing, acting)


def entering_step(sim: Traceable) -> ca.Function:
    """The step from a start in a singular configuration, whose first stage uses the rates of the lost rows, see `passage`."""
    first, *_ = _rate(sim, "passage", closed_loop(sim, sim.system.at()), passage.motion, None)
    return _step(sim, sim.traced.functions, first)


def _step(sim: Traceable, functions: Functions, first: ca.Function | None = None) -> ca.Function:
    """The `time_step` of a simulation.   first: replaces the right-hand side at the first stage."""
    return time_step(functions, sim.mechanism, sim.system.variables, sim.scheme, first, sim.now, sim.arrived)


def embedded_step(sim: Traceable) -> ca.Function:
    """(x, u0, u1, p, t, h) -> (x_next, faults, differences, fastest, x before its correction, rates at both ends, factors of
    the correction): the `time_step` of a simulation with a pair."""
    return embedded(sim, sim.traced.functions)


def embedded(sim: Traceable, functions: Functions) -> ca.Function:
    """The `embedded_step` of a simulation whose functions are these."""
    variables = sim.system.variables
    return time_step(functions, sim.mechanism, variables, sim.scheme, None, sim.now, sim.arrived, embedded=True)


def _slopes(sim: Traceable, rhs: ca.Function) -> ca.Function:
    """(x, w, p, t) -> (n, n) the derivatives of the rates of the stepped variables by these; zero where they are no numbers."""
    names, (rate, *_) = rhs.name_in(), rhs.name_out()
    of_state = rhs.factory("rate_and_slopes", names, [rate, f"jac:{rate}:{names[0]}"])
    x, w, p, t = rhs.sx_in()
    n, axes = rhs.size1_out(0), sim.system.variables
    x_dot, J = of_state(x, w, p, t)
    J, now = J[:n, :n], x[:n, 0]
    if axes.state(now) is not now:
        X, r = ca.SX.sym("X", n), ca.SX.sym("r", n)
        moved = ca.substitute(ca.jacobian(axes.state(X), X), X, axes.stepped(now))
        turned = axes.rate(now, r)
        J = (ca.jacobian(turned, r) @ J + ca.substitute(ca.jacobian(turned, now), r, x_dot)) @ moved
    row, column = J.sparsity().get_triplet()
    for i, j in zip(row, column, strict=True):
        J[i, j] = ca.if_else(ca.fabs(J[i, j]) < INFINITE, J[i, j], 0)
    return ca.Function("slopes", [x, w, p, t], [J], SHARED)


def _settled(sim: Traceable, x: ca.SX, t: ca.SX) -> ca.SX:
    """x on the manifold of the system's state, see `System.settled`; the states of a law stay unchanged."""
    s = sim.system
    return ca.vertcat(s.settled(x[: s.nx, 0], t), x[s.nx :, 0])


def _energy(sim: Traceable, here: At, z: ca.SX) -> ca.Function:
    """(x, way, p, t) -> T + V and its derivative along the direction `way` of x."""
    x = ca.vertcat(here.x, z)
    way = ca.SX.sym("way", x.numel())
    (E,) = here.of_state([here.T.T + here.T.V])
    return ca.Function("energy", [x, way, sim.mechanism.p_symbols, here.T.t], [E, ca.jtimes(E, x, way)], SHARED)


def arrival_flags(sim: Traceable) -> ca.Function | None:
    """(x, x after a step, p, t, h) -> the flags of `faults.arriving`; None if no constraint becomes active or jumps."""
    if not sim.faults.arriving:
        return None
    m, a, b, h = sim.mechanism, sim.system.at(), sim.system.at(), ca.SX.sym("h")
    later = Terms(m, a.T.q, ca.SX.zeros(m.nv, 1), a.T.u, b.T.t)
    flags = activation.fault_flags(a.T, b.T, later, h, sim.scheme.violation_limit, sim.changing.names)
    outputs = ca.substitute(b.of_state(a.of_state([flags])), [b.T.t], [a.T.t + h])
    return ca.Function("arrived", [a.x, b.x, m.p_symbols, a.T.t, h], outputs)


def projection(sim: Traceable) -> ca.Function:
    """(x, p, t) -> (x on the constraints, violation), with a factorisation at x itself."""
    here, z = sim.system.at(), ca.SX.sym("z", len(sim.z))
    inputs = [ca.vertcat(here.x, z), sim.mechanism.p_symbols, here.T.t]
    return ca.Function("project", inputs, _corrected(sim, here, z, None))


class CorrectionParts(NamedTuple):
    """A correction as expressions.   inputs: x, p, t, carried.   x, violation: its results.   needed: indices of the numbers of
    `along` in `carried`.   near: the factors of the last stage, if the correction shares them."""

    inputs: list[ca.SX]
    x: ca.SX
    violation: ca.SX
    needed: list[int]
    near: CorrectionFactors | None


def correction(sim: Traceable, here: At, z: ca.SX) -> CorrectionParts:
    """The correction of a state, which shares the factors of the last stage where these are of the same rows."""
    solve = formulation(sim.scheme.formulation, here.T)
    # Reuse the last stage's factor only if it has exactly the rows to be corrected: acceleration rows belong to the rate
    # alone, and a row that becomes active after the last stage is missing from it.
    shares = solve is gauss.motion and _corrects(sim) and sim.scheme.corrections > 0
    shares = shares and sim.integrator.shares and ACCELERATION not in here.T.rows.level and not sim.faults.arriving
    near = along(here.T) if shares else None
    numbers = placeholders(near, "carried")
    factors = near and unpack(near, numbers)
    x, violation = _corrected(sim, here, z, factors)
    used = {s.element_hash() for s in ca.symvar(ca.vertcat(x, violation))}
    needed = [i for i in range(numbers.numel()) if numbers[i].is_symbolic() and numbers[i].element_hash() in used]
    inputs = [ca.vertcat(here.x, z), sim.mechanism.p_symbols, here.T.t, numbers[needed, 0]]
    return CorrectionParts(inputs, x, violation, needed, factors)


def _remaining(sim: Traceable, here: At, of: CorrectionParts) -> ca.Function | None:
    """What a correction leaves of changes of q and v, see `Functions`; None where nothing is corrected, or without a pair."""
    if not (sim.integrator.compared and _corrects(sim) and sim.scheme.corrections and corrected_rows(here.T)):
        return None
    return remaining(here, of.inputs, of.near)


def rate_with(sim: Traceable, name: str, needs: Callable[[Terms, Motion, Any], Any]) -> tuple[ca.Function, Any]:
    """The right-hand side of the traced step, but carrying the terms of `needs`, and the structure of these terms."""
    loop = closed_loop(sim, sim.system.at())
    rhs, _, terms = _rate(sim, name, loop, None, correction(sim, loop.here, loop.z).needed, needs)
    return rhs, terms


def _corrects(sim: Traceable) -> bool:
    """Whether a step has to put the state onto the constraints."""
    return bool(sim.mechanism.ideal) and not sim.system.holds


def _corrected(sim: Traceable, here: At, z: ca.SX, near: CorrectionFactors | None) -> list[ca.SX]:
    """The state put onto its manifold and, by way of (q, v), onto the constraints; and the largest relative residual."""
    s, T = sim.system, here.T
    x, violation = here.x, ca.SX(0)
    if s.project is None or _corrects(sim):
        q, v, violation = correct(T, sim.scheme, near and near.move)
        x, violation = here.of_state([s.entered(T, q, v), violation])
        x[list(s.uncorrected), 0] = here.x[list(s.uncorrected), 0]
    if s.project is not None:
        x, violation = ca.substitute([x, violation], [here.x], [s.projected(here.x, T.t)])
    return [ca.vertcat(x, z), violation]


def _rate(
    sim: Traceable,
    name: str,
    loop: ClosedLoop,
    solve: Callable[[Terms], Motion] | None,
    needed: list[int] | None,
    needs: Callable[..., Any] | None = None,
) -> tuple[ca.Function, dict[str, int], Any]:
    """(x, w, p, t) -> (x_dot, faults, sides, carried, recorded), the sizes of the signals, and the integrator's terms.

    solve: computes the accelerations; None: the scheme's formulation.   needed: indices of the numbers of `along` to carry;
        None: zeros in their place.   needs: computes the terms to carry after these; None: those of the integrator."""
    m, here, T = sim.mechanism, loop.here, loop.here.T
    requested, command, closed = loop.command.u, loop.command._replace(u=loop.acting), loop.pushed
    motion = (solve or formulation(sim.scheme.formulation, closed, T.built("M")))(closed)
    faults, sides = command.faults, command.sides
    if m.servos:
        servo = control_force(closed)
        faults, sides = ca.vertcat(faults, 1 - servo.realisable), ca.vertcat(sides, servo.side)
    if closed.losses is not None:
        flags = closed.losses.faults
        faults, sides = ca.vertcat(faults, flags), ca.vertcat(sides, ca.SX.ones(*flags.shape))  # raised at any stage
    for _, r in sim.changing.ranges:
        faults, sides = ca.vertcat(faults, ca.logic_not(r.holds)), ca.vertcat(sides, 1)
    side = sim.system.side(here.x, T)
    faults, sides = ca.vertcat(faults, side == 0), ca.vertcat(sides, side)
    turning = half_turn_sides(T.kinematics)
    faults, sides = ca.vertcat(faults, ca.SX.zeros(*turning.shape)), ca.vertcat(sides, turning)
    rate = ca.vertcat(sim.system.rated(here.x, closed, motion), command.z_dot)
    excess = requested - command.u if sim.scheme.saturate else None
    state_signals = sim.system.recorded(here.x, closed, motion)
    recorded = columns(closed, motion, command, dict(sim.outputs), sim.record, excess, state_signals)
    if needed is None:
        near = ca.SX.zeros(sim.traced.project.size1_in(3), 1)
    else:
        near = ca.densify(pack(along(closed))[needed, 0]) if needed else ca.SX(0, 1)
    terms = (needs or sim.integrator.needs)(closed, motion, partial(sim.system.pushed, here.x, T))
    carried = ca.vertcat(near, ca.densify(pack(terms)))
    parts = [rate, ca.densify(faults), ca.sparsify(sides), carried, ca.vertcat(*recorded.values())]
    rhs = ca.Function(name, [loop.x, loop.w, m.p_symbols, T.t], here.of_state(parts), SHARED)
    return rhs, {name: column.numel() for name, column in recorded.items()}, terms
