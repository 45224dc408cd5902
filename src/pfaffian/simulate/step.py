"""One step of time as traced functions: right-hand side, integrator, correction onto the manifold, observation.

State x = [q; v; z]: configuration, velocity, and whatever a controller integrates.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import casadi as ca

from pfaffian.control.law import Command, Control
from pfaffian.dynamics import formulation
from pfaffian.dynamics.controlforce import FAULT as SERVO_FAULT
from pfaffian.dynamics.controlforce import control_force
from pfaffian.dynamics.motion import RANK_TOLERANCE, Motion, shortest_change
from pfaffian.dynamics.multipliers import minimum_norm_multipliers
from pfaffian.errors import ModelError
from pfaffian.maths.linear import orthogonalise, solve_WT
from pfaffian.model.mechanism import Mechanism
from pfaffian.terms.kinematics import Kinematics
from pfaffian.terms.pfaffian import row_names
from pfaffian.terms.terms import Terms, symbols

INTEGRATORS = ("rk4", "euler")
CORRECTION_TOLERANCE = 1e-6
"""Rank tolerance of the correction, smaller than that of the dynamics: right after a singular passage the velocity must be
projected although the rows are still short (measured: rate errors at the passage fall from 5e-4 to below 1e-5 rad/s)."""

FAULTS = ("constraint violation above the limit after correction: take a shorter step, or look for rows that contradict",)
"""What each fault of the step means, in order; status 2 is the first."""


@dataclass(frozen=True)
class Scheme:
    """How time goes on; all that changes the compiled step.

    formulation: a name of dynamics.FORMULATIONS, or auto.   integrator: rk4, or euler (semi-implicit).
    corrections: Newton iterations onto phi = 0 after each step, with one projection of the velocity; 0 for none.
    violation_limit: a run stops when |phi| stays above it [the unit of phi].
    """

    formulation: str = "auto"
    integrator: str = "rk4"
    corrections: int = 2
    violation_limit: float = 1e-6

    def __post_init__(self) -> None:
        if self.integrator not in INTEGRATORS:
            raise ModelError(f"integrator {self.integrator!r} is unknown; one of {', '.join(INTEGRATORS)}")
        if not (isinstance(self.corrections, int) and 0 <= self.corrections <= 20):
            raise ModelError(f"corrections must be a whole number from 0 to 20, got {self.corrections!r}")
        if not self.violation_limit > 0:
            raise ModelError(f"violation_limit must be positive, got {self.violation_limit!r}")


@dataclass(frozen=True, eq=False)
class Signal:
    """A recorded quantity: a column of terms, with what each entry is called and its unit."""

    value: Callable[[Terms], ca.SX]
    unit: str
    names: tuple[str, ...] | None = None
    dim: str | None = None


@dataclass(frozen=True, eq=False)
class System:
    """The functions that the kernel compiles, and how their vectors are laid out."""

    mechanism: Mechanism
    rhs: ca.Function
    project: ca.Function
    step: ca.Function
    observe: ca.Function
    signals: Mapping[str, tuple[Signal, int]]
    z: tuple[float, ...] = ()
    u_names: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()


def system(
    m: Mechanism, scheme: Scheme, control: Control | None = None, outputs: Mapping[str, Callable[[Kinematics], Any]] | None = None
) -> System:
    """Trace the step of a mechanism."""
    T = symbols(m)
    control = control or Control(lambda terms, z, w, reaction: Command(w), w_names=m.u_names)
    z, w = ca.SX.sym("z", len(control.z)), ca.SX.sym("w", len(control.w_names))
    command = _command(T, control, scheme, z, w)
    closed = Terms(m, T.q, T.v, command.u, T.t)
    motion = formulation(scheme.formulation, closed)(closed)
    faults, causes = command.faults, control.faults
    if m.servos:
        faults, causes = ca.vertcat(faults, 1 - control_force(closed).realisable), (*causes, SERVO_FAULT)
    x = ca.vertcat(T.q, T.v, z)
    inputs = [x, w, m.p_symbols, T.t]
    options = {"never_inline": True, "cse": True}
    rate = ca.vertcat(closed.kinematics.q_dot, motion.v_dot, command.z_dot)
    rhs = ca.Function("rhs", inputs, [rate, ca.densify(faults)], options)
    project = ca.Function("project", [x, m.p_symbols, T.t], list(correct(T, z, scheme)), options)
    signals = _signals(closed, motion, command, outputs or {})
    columns = {name: ca.densify(ca.vec(ca.SX(s.value(closed)))) for name, s in signals.items()}
    observe = ca.Function("observe", inputs, [ca.vertcat(*columns.values())], {"cse": True})
    laid_out = {name: (s, columns[name].numel()) for name, s in signals.items()}
    return System(m, rhs, project, _step(rhs, project, m, scheme), observe, laid_out, control.z, control.w_names, causes)


def _command(T: Terms, control: Control, scheme: Scheme, z: ca.SX, w: ca.SX) -> Command:
    """The law's answer, with the loop through a measured reaction closed: u = u0 + K F(u), F(u) = F0 + F1 u."""
    m = T.mechanism
    measured = ca.SX.sym("F", m.nv)
    command = control.law(Terms(m, T.q, T.v, ca.SX(m.nu, 1), T.t), z, w, measured)
    _check_command(command, control, m)
    parts = [command.u, command.z_dot, command.faults, *command.signals.values()]
    if not ca.depends_on(ca.veccat(*parts), measured):
        return command
    u = ca.SX.sym("u", m.nu)
    plant = Terms(m, T.q, T.v, u, T.t)
    reaction = formulation(scheme.formulation, plant)(plant).reaction
    K, F1 = ca.jacobian(command.u, measured), ca.jacobian(reaction, u)
    if ca.depends_on(K, measured):
        raise ModelError("a control law must be affine in the measured reaction")
    u0, F0 = ca.substitute(command.u, measured, ca.SX.zeros(m.nv, 1)), ca.substitute(reaction, u, ca.SX.zeros(m.nu, 1))
    loop = orthogonalise(ca.SX.eye(m.nu) - K @ F1, u0 + K @ F0, RANK_TOLERANCE)
    solved = loop.Q.T @ loop.D
    z_dot, faults, *signals = ca.substitute(parts[1:], [measured], [F0 + F1 @ solved])
    return Command(ca.densify(solved), z_dot, faults, dict(zip(command.signals, signals, strict=True)))


def _check_command(command: Command, control: Control, m: Mechanism) -> None:
    for what, got, wanted in (
        ("inputs", command.u, m.nu),
        ("integrated states", command.z_dot, len(control.z)),
        ("faults", command.faults, len(control.faults)),
    ):
        if got.numel() != wanted:
            raise ModelError(f"the control law gives {got.numel()} {what} where {wanted} are declared")


def _step(rhs: ca.Function, project: ca.Function, m: Mechanism, scheme: Scheme) -> ca.Function:
    """(x, u0, u1, p, t, h) -> (x_next, fault)."""
    x, p = ca.SX.sym("x", rhs.size1_in(0)), ca.SX.sym("p", rhs.size1_in(2))
    u0, u1 = ca.SX.sym("u0", rhs.size1_in(1)), ca.SX.sym("u1", rhs.size1_in(1))
    t, h = ca.SX.sym("t"), ca.SX.sym("h")
    if scheme.integrator == "rk4":
        moved, faults = _rk4(rhs, x, u0, u1, p, t, h)
    else:
        moved, faults = _semi_implicit(rhs, m, x, u0, p, t, h)
    corrected, violation = project(moved, p, t + h)
    return ca.Function("step", [x, u0, u1, p, t, h], [corrected, ca.vertcat(violation > scheme.violation_limit, faults)])


def _rk4(f: ca.Function, x: ca.SX, u0: ca.SX, u1: ca.SX, p: ca.SX, t: ca.SX, h: ca.SX) -> tuple[ca.SX, ca.SX]:
    """x after the step, and the faults at its start."""
    u = (u0 + u1) / 2
    k1, faults = f(x, u0, p, t)
    k2, _ = f(x + h / 2 * k1, u, p, t + h / 2)
    k3, _ = f(x + h / 2 * k2, u, p, t + h / 2)
    k4, _ = f(x + h * k3, u1, p, t + h)
    return x + h / 6 * (k1 + 2 * (k2 + k3) + k4), faults


def _semi_implicit(
    f: ca.Function, m: Mechanism, x: ca.SX, u: ca.SX, p: ca.SX, t: ca.SX, h: ca.SX
) -> tuple[ca.SX, ca.SX]:
    """v first, then q with the new v; a controller's state as in the explicit rule. And the faults at the start."""
    rate, faults = f(x, u, p, t)
    faster = x + h * ca.vertcat(ca.SX(m.nq, 1), rate[m.nq :])
    K = Kinematics(m, faster[: m.nq], faster[m.nq : m.nq + m.nv], t)
    return ca.vertcat(x[: m.nq] + h * K.q_dot, faster[m.nq :]), faults


def normalise(m: Mechanism, q: ca.SX) -> ca.SX:
    """q with its quaternions of unit length."""
    parts = []
    for j in m.joints:
        own = q[m.q_slices[j.name]]
        turn = [i for i, n in enumerate(j.kind.q_names) if n.startswith("q")]
        if turn:
            own = ca.vertcat(own[: turn[0]], own[turn] / ca.norm_2(own[turn]))
        parts.append(own)
    return ca.vertcat(*parts)


def correct(T: Terms, z: ca.SX, scheme: Scheme) -> tuple[ca.SX, ca.SX]:
    """The state moved onto phi = 0 and A v = c along M^-1 A^T, and the largest |phi| left.

    The shortest move in the metric of M. Position and velocity share one factorisation, since a correction is small;
    `corrections` further ones follow when asked for. [aghili05 section VI, with the metric of M]
    """
    m = T.mechanism
    q, v = normalise(m, T.q), T.v
    if not m.ideal:
        return ca.vertcat(q, v, z), ca.SX(0)
    for _ in range(scheme.corrections):
        here = Terms(m, q, v, T.u, T.t)
        off = ca.horzcat(here.rows.phi, here.rows.eta)
        move = solve_WT(here.factor, shortest_change(here, lambda Lam, off=off: off, CORRECTION_TOLERANCE).X)
        q = normalise(m, q - here.kinematics.kinematic_matrix @ move[:, 0])
        v = v - move[:, 1]
    return ca.vertcat(q, v, z), largest(Terms(m, q, v, T.u, T.t).rows.phi)


def largest(x: ca.SX) -> ca.SX:
    """max |x_i|, 0 of nothing."""
    return ca.mmax(ca.fabs(ca.densify(x))) if x.numel() else ca.SX(0)


def _signals(T: Terms, motion: Motion, command: Command, outputs: Mapping[str, Callable]) -> dict[str, Signal]:
    m = T.mechanism
    signals = {
        "q": Signal(lambda T: T.q, "per coordinate", m.q_names, "coordinate"),
        "v": Signal(lambda T: T.v, "per velocity", m.v_names, "velocity"),
        "energy": Signal(lambda T: T.T + T.V, "J"),
        "kinetic_energy": Signal(lambda T: T.T, "J"),
    }
    if m.nu:
        signals["u"] = Signal(lambda T: T.u, "per input", m.u_names, "input")
    if m.ideal:
        names = row_names(T.kinematics)
        signals |= {
            "phi": Signal(lambda T: T.rows.phi, "per row", names, "row"),
            "violation": Signal(lambda T: largest(T.rows.phi), "unit of phi"),
            "velocity_violation": Signal(lambda T: largest(T.rows.eta), "unit of phi / s"),
            "rank": Signal(lambda T: motion.rank, "1"),
            "reaction": Signal(lambda T: motion.reaction, "per velocity", m.v_names, "velocity"),
            "multiplier": Signal(lambda T: minimum_norm_multipliers(T, motion.reaction), "per row", names, "row"),
        }
    if m.servos:
        servo = row_names(T.kinematics, tuple(s.target for s in m.servos))
        signals |= {
            "servo_force": Signal(lambda T: control_force(T).mu, "unit of the direction", servo, "servo_row"),
            "servo_error": Signal(lambda T: T.servo.phi, "per row", servo, "servo_row"),
            "servo_rate": Signal(lambda T: T.servo.eta, "per row / s", servo, "servo_row"),
        }
    signals |= {name: Signal(partial(_constant, x), "per component") for name, x in command.signals.items()}
    for name, output in outputs.items():
        if name in signals:
            raise ModelError(f"output {name!r}: the result has a signal of that name already")
        signals[name] = Signal(partial(_of_kinematics, output), "")
    return signals


def _constant(x: ca.SX, terms: Terms) -> ca.SX:
    return x


def _of_kinematics(output: Callable[[Kinematics], Any], terms: Terms) -> ca.SX:
    return output(terms.kinematics)
