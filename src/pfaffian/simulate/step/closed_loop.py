"""The command of a control law in a run, with the algebraic loop through the reactions that the law measures solved."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import casadi as ca

from pfaffian.control import law
from pfaffian.control.command import Command
from pfaffian.control.discrete_laws import single
from pfaffian.control.hybrid_force_law import Multipliers
from pfaffian.control.law import Control
from pfaffian.control.layout import Layout, offered
from pfaffian.dynamics import formulation, gauss
from pfaffian.dynamics.motion import RANK_TOLERANCE, Motion
from pfaffian.errors import ModelError
from pfaffian.kernel.remember import forget, once_for
from pfaffian.maths.linear import orthogonalise
from pfaffian.model.mechanism import Mechanism
from pfaffian.simulate.step.limits import saturated
from pfaffian.simulate.step.sampling import in_force
from pfaffian.simulate.step.step import Scheme
from pfaffian.simulate.step.switches import Switches
from pfaffian.states.abstract_system import AbstractSystem, At
from pfaffian.terms.terms import Terms


def command_of(T: Terms, control: Control, scheme: Scheme, z: ca.SX, w: ca.SX, sampled: Command | None = None) -> Command:
    """The command of a law, with the loop through its measurement solved: y = y0 + Y y, y0 the measurement under u at y = 0.

    If T has no inputs, the law is evaluated at T itself, so the caller finds the terms that the law has built.
    z: states that the law integrates.   w: inputs of the run.
    sampled: inputs and signals that its parts in discrete time hold.
    Raises ModelError: the law returns other sizes than it declares, is not affine in y, or measures under `saturate`.
    """
    m = T.mechanism
    idle = T.under(ca.SX(m.nu, 1)) if T.u.nnz() else T
    y = ca.SX.sym("y", law.measured(control, idle, ca.SX.sym("F", m.nv)).numel())
    law_inputs = len(control.w_names)
    command = law.command(control, idle, z, _law_inputs(control, w[:law_inputs, 0], sampled), y)
    _check_command(command, control, m)
    if sampled is not None:
        signals_of_law = {f"law.{name}" if name in sampled.signals else name: x for name, x in command.signals.items()}
        command = command._replace(u=command.u + sampled.u, signals={**sampled.signals, **signals_of_law})
    # Wrenches from outside are neither an output nor an input of the law.
    command = command._replace(u=command.u + ca.vertcat(ca.SX(len(m.motor_names), 1), w[law_inputs:, 0]))
    command = command._replace(sides=command.sides if command.sides.numel() else ca.SX.zeros(len(control.faults), 1))
    parts = [command.u, command.z_dot, command.faults, command.sides, *command.signals.values()]
    if not ca.depends_on(ca.veccat(*parts), y):
        return command
    if scheme.saturate:
        raise ModelError("saturate: inputs of a control law that measures reactions cannot be limited; run it without saturate")
    U = ca.jacobian(command.u, y)
    if ca.depends_on(U, y):
        raise ModelError("a control law must be affine in the measured reaction")
    plant = idle.under(command.u)
    measured = ca.densify(_measured(control, plant, formulation(scheme.formulation, plant, idle.built("M"))))
    Y, y0 = ca.jacobian(measured, y), ca.substitute(measured, y, ca.SX.zeros(*y.shape))
    loop = orthogonalise(ca.SX.eye(y.numel()) - Y, y0, RANK_TOLERANCE)
    y_closed = loop.Q.T @ loop.D
    _, z_dot, faults, sides, *signals = ca.substitute(parts, [y], [y_closed])
    u = ca.substitute(command.u, y, ca.SX.zeros(*y.shape)) + U @ y_closed
    return Command(ca.densify(u), z_dot, faults, dict(zip(command.signals, signals, strict=True)), sides)


def _measured(control: Control, plant: Terms, solve: Callable[[Terms], Motion]) -> ca.SX:
    """(ny, 1) the part of the plant's reaction that the law measures."""
    if isinstance(control.measured, Multipliers) and solve is gauss.motion:
        return control.measured.chosen(plant, gauss.multipliers(plant))
    return law.measured(control, plant, solve(plant).reaction)


def _law_inputs(control: Control, w: ca.SX, sampled: Command | None) -> ca.SX:
    """The inputs w of the law in continuous time: inputs of the run, and signals that its parts in discrete time hold."""
    if control.takes is None or sampled is None:
        return w
    known = {name: w[i] for i, name in enumerate(control.w_names)}
    known = offered(sampled.signals, [n for part in control.parts for n in part.gives if n in sampled.signals]) | known
    return ca.vertcat(ca.SX(0, 1), *[single(name, known[name]) for name in control.takes])


def _check_command(command: Command, control: Control, m: Mechanism) -> None:
    """Raise ModelError unless the law returned as many numbers as it declares."""
    for what, values, declared in (
        ("inputs", command.u, m.nu),
        ("integrated states", command.z_dot, len(control.z)),
        ("faults", command.faults, len(control.faults)),
        ("sides", command.sides, len(control.faults) if command.sides.numel() else 0),
    ):
        if values.numel() != declared:
            raise ModelError(f"the control law gives {values.numel()} {what} where {declared} are declared")


class LawAndSystem(Protocol):
    """A system under a law, with parameters that change: members of a `Simulation`, described there."""

    @property
    def system(self) -> AbstractSystem: ...
    @property
    def mechanism(self) -> Mechanism: ...
    @property
    def scheme(self) -> Scheme: ...
    @property
    def control(self) -> Control: ...
    @property
    def z(self) -> tuple[float, ...]: ...
    @property
    def w_names(self) -> tuple[str, ...]: ...
    @property
    def layout(self) -> Layout: ...
    @property
    def changing(self) -> Switches: ...
    @property
    def kinks(self) -> bool: ...
    def now(self, p: ca.SX, d: ca.SX) -> ca.SX: ...


@dataclass(frozen=True, eq=False)
class ClosedLoop:
    """A simulation at symbols, whose law is evaluated once, when it is needed.

    here: the system's state, its Terms without inputs; the law builds terms there.   z, d, w: the states that the law
    integrates, the discrete state, and the inputs of the run.
    """

    sim: LawAndSystem
    here: At
    z: ca.SX
    d: ca.SX
    w: ca.SX

    @property
    def x(self) -> ca.SX:
        """The whole state of the simulation."""
        return ca.vertcat(self.here.x, self.z, self.d)

    @cached_property
    def command(self) -> Command:
        """What the law gives, before the scheme cuts its inputs."""
        sim, T = self.sim, self.here.T
        sampled = in_force(sim.layout, self.d, sim.mechanism.nu, T.t)
        return command_of(T, sim.control, sim.scheme, self.z, self.w, sampled)

    @cached_property
    def acting(self) -> ca.SX:
        """(nu, 1) all inputs that act."""
        return cut(self.sim, self.command.u) if self.sim.scheme.saturate else self.command.u

    @cached_property
    def pushed(self) -> Terms:
        """The Terms under these inputs."""
        return self.here.T.under(self.acting)

    def following(self) -> ca.SX:
        """(switches, 1) the next values of the switched parameters."""
        return self.sim.changing.following(self.here.T, self.moving)

    def moving(self) -> tuple[Terms, Motion]:
        """The `pushed` Terms, and the motion there."""
        return self.pushed, formulation(self.sim.scheme.formulation, self.pushed)(self.pushed)


def closed_loop(sim: LawAndSystem, here: At) -> ClosedLoop:
    """A simulation at the symbols of a state of its system, and at new ones for the rest."""
    here = here._replace(T=here.T.under(ca.SX(sim.mechanism.nu, 1)))
    z, d, w = (ca.SX.sym(*x) for x in (("z", len(sim.z)), ("d", sim.layout.size), ("w", len(sim.w_names))))
    return ClosedLoop(sim, here, z, d, w)


def traced_loop(sim: LawAndSystem, *, last: bool = False) -> ClosedLoop:
    """The one at whose symbols the right-hand side is traced.   last: whether this is its last use, so that it is not kept."""
    loop = once_for(sim, "loop", lambda: closed_loop(sim, sim.system.at_shared()))
    if last:
        forget(sim, "loop")
    return loop


def cut(sim: LawAndSystem, u: ca.SX) -> ca.SX:
    """u cut at its limits. Raises ModelError: the mechanism has servo constraints."""
    m = sim.mechanism
    if m.servos:
        servos = ", ".join(s.name for s in m.servos)
        raise ModelError(f"saturate: the forces of {servos} hold a motion and cannot be cut; use control.servo_control")
    return saturated(m, u)
