"""Inverse dynamics of closed loops with passive joints: the smallest inputs that produce an acceleration. [aghili05]"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from pfaffian import kernel
from pfaffian.control.allocation import UNCONTROLLABLE, allocate, input_limits, weights
from pfaffian.control.idle import idle_motions
from pfaffian.control.losses_at import with_losses_at
from pfaffian.control.reason import foremost, undriven
from pfaffian.errors import ModelError, RunError, RunWarning, nearest, notice
from pfaffian.evaluate.arrays import as_batch, configurations, parameter_values, velocities
from pfaffian.evaluate.compiled import given
from pfaffian.evaluate.complete import complete_acceleration
from pfaffian.evaluate.given_state import check_given, check_on_constraints, off_constraints
from pfaffian.evaluate.realisability import blamed
from pfaffian.evaluate.single_values import as_flag, as_number, one_of
from pfaffian.formats.text.coupling import ActuatorBias, ActuatorDamping
from pfaffian.model.force import Actuator, Dissipation, Potential, actuator
from pfaffian.model.mechanism import Mechanism, actuate_all, as_mechanism, as_names
from pfaffian.model.number import floats
from pfaffian.model.traced_function import TracedFunction
from pfaffian.terms.pfaffian import row_names
from pfaffian.terms.terms import Terms, symbols
from pfaffian.terms.traced_now import present, remembered

NO_INPUTS = "no inputs within the limits produce this motion: request a slower one, choose another pose, or widen the limits"

BEYOND_ROUNDING = 1e-9
"""Excess of an input over its limit that is rounding, relative to the largest input or the limit."""

SMALL_WEIGHT = 1e-9
"""Weights of a proof below this fraction of the largest are rounding."""

FEASIBLE = 1e-6
"""Largest |A a - b| of an acceleration that satisfies the constraints, relative to the size of its terms."""


_NONE = np.zeros(0)


class Inverse(NamedTuple):
    """Result of `inverse_dynamics`.

    u: (..., nu) inputs [N, N m], in the order of `names`, zero for wrenches from outside.
    tau: (..., nv) generalised force B u.   reaction: (..., nv) reaction of the constraints under these inputs.
    names: of the inputs.   idle: of the velocities that take part in motions which nothing drives and on which nothing depends,
    such as the spin of a rod between two ball joints; these motions are left to themselves.
    proof: (..., nu) weights c that prove where no inputs within the limits produce the motion: c^T u is the same for all inputs
    that do, and more than for any within the limits. Zero where there are such inputs, and without limits.
    servo_part: (..., nu) the part of u that makes up for what the servos of a file measure: the force of an actuator is its
    gear times u - servo_part. Zero for motors.
    """

    u: np.ndarray
    tau: np.ndarray
    reaction: np.ndarray
    names: tuple[str, ...]
    idle: tuple[str, ...] = ()
    proof: np.ndarray = _NONE
    servo_part: np.ndarray = _NONE


def inverse_dynamics(
    m: Mechanism,
    q: Any,
    v: Any,
    a: Any,
    *,
    actuated: Sequence[str] | None = None,
    weight: Any = None,
    t: float = 0.0,
    parameters: Any = None,
    complete: bool = False,
    limits: Any = None,
    wish: Any = None,
    beyond: str = "raise",
) -> Inverse:
    """Inputs of smallest (u - wish)^T R (u - wish) under which the mechanism accelerates by a. [aghili05 (45) (46) (53)-(62)]

    Args:
        m: the mechanism.
        q: (nq,) or (runs, nq) array, or {coordinate: number}; omitted coordinates are neutral; it must satisfy the constraints.
        v: (nv,) or (runs, nv) array, or {velocity: number}; omitted velocities are zero; it must satisfy the constraints.
        a: (nv,) or (runs, nv) array, or {velocity: number}, the acceleration v_dot; the constraints must allow it, A a = b.
        complete: True computes the components omitted in a = {velocity: number} from the constraints, by
            `constraints.complete_acceleration`; False, the default, makes them zero.
        actuated: names of the velocities with actuators, those of joints that close loops too. If None, the mechanism's
            actuators, or one for every velocity of a mechanism without actuators.
        weight: (motors,) diagonal of R, ones if None; `control.length_weights` makes forces and moments comparable.
        t: time [s].
        parameters: {name: value or (runs,)} or a (np,) or (runs, np) array; defaults where left out.
        limits: "actuators" for inputs within the limits of the actuators, or (low, high) for each; None, the default, for no
            limits: then a warning names inputs beyond the actuators' limits.
        wish: {input: number or (runs,)}, (nu,) or (runs, nu), from which the inputs differ least, such as the tensions
            that cables should have; None, the default, for zero. Where the motion determines all inputs, it changes nothing.
        beyond: "raise", the default, raises an error where no inputs within the limits produce the motion; "nan" makes u, tau
            and reaction nan there, and gives the `proof`, for instance to map a workspace.
    Returns:
        a named tuple: u (..., nu) inputs [N, N m] and their `names`, tau (..., nv) = B u, the constraints' reaction (..., nv),
        the `proof` (..., nu) that no inputs within the limits do, `servo_part` (..., nu) of inputs that are targets of servos,
        and the names of the `idle` velocities. Idle motions, such as the spin of a rod between two ball joints, are left to
        themselves: no motor drives them, they move no mass centre, and no force acts on them.
    Raises ModelError: unknown names, wrong shapes, v or a missing, a state off the constraints (with the row and its residual).
    Raises RunError: the acceleration violates a constraint (with the row), the actuators cannot drive a motion that the
    constraints leave free (with the motion), or no inputs within the limits produce the motion (with the proof).
    Warns RunWarning: inputs beyond the actuators' limits, where `limits` is left out.

    Example:
        >>> import numpy as np
        >>> import pfaffian as pf
        >>> bob = pf.body("bob", mass=2.0, com=(0, 0, -1))
        >>> m = pf.mechanism("pendulum", [bob], [pf.joint("hinge", "revolute", "world", "bob", axis=(0, 1, 0))])
        >>> pf.inverse_dynamics(m, {"hinge": np.pi / 2}, [0.0], [0.0]).u.round(2)  # hold 2 kg still, 1 m out
        array([19.62])

        Four cables that only pull, each with 2 N at least:

        >>> ropes = [pf.forces.path([("world", (x, 0, z)), ("disc", (0, 0, 0))]) for x in (-1, 1) for z in (-1, 1)]
        >>> winches = [pf.forces.winch(f"w{i}", rope, limits=(2, 100)) for i, rope in enumerate(ropes)]
        >>> slide = pf.joint("slide", "planar-translation", "world", "disc", axis=(0, -1, 0))
        >>> m = pf.mechanism("disc", [pf.body("disc", 1.0)], [slide], actuators=winches)
        >>> pf.inverse_dynamics(m, [0, 0], [0, 0], [0, 0], limits="actuators").u.round(3)
        array([2.   , 8.937, 2.   , 8.937])
    """
    m = present(as_mechanism(m))
    names = None if actuated is None else as_names(actuated, "actuated")
    R = None if weight is None else tuple(floats(weight, "weight").ravel().tolist())
    check_given(v, m.v_names, "v")
    check_given(a, m.v_names, "a")
    t = as_number(t, "t")
    if as_flag(complete, "complete"):
        a = complete_acceleration(actuated_by(m, names), q, v, a, t=t, parameters=parameters)
    one_of(beyond, ("raise", "nan"), "beyond")
    driven = actuated_by(m, names)
    bounds = None if limits is None else input_limits(driven, limits)
    how = driven, R, None if bounds is None else tuple(map(tuple, bounds.tolist())), wish is not None
    at = given(
        least=1,
        q=(q, configurations(m, q)),
        v=(v, velocities(m, v)),
        a=(a, velocities(m, a, "a")),
        parameters=(parameters, parameter_values(m, parameters)),
        wish=(wish, as_batch(wish, driven.u_names, np.zeros(driven.nu), "wish")),
    )
    (qs, vs, accelerations, p, wishes), count = at.spread, at.size
    arguments = qs, vs, accelerations, p, np.array([t]), wishes
    u, tau, reaction, off, residual, size, uncontrollable, outside, servo = _compiled(*how, False)(*arguments)
    proof = _proofs(partial(_compiled, *how, True), arguments, outside[:, 0] != 0, u)
    check_on_constraints(driven, off.reshape(count, 4, -1).transpose(0, 2, 1))
    _check_feasible(driven, residual, size)
    if uncontrollable.any():
        run = int(np.argmax(uncontrollable[:, 0]))
        (why,) = blamed(driven, undriven())(qs[[run]], vs[[run]], p[[run]], np.array([t]))
        raise RunError(f"{UNCONTROLLABLE}; {why}{f' (run {run})' if count > 1 else ''}")
    if bounds is None:
        _warn_of_limits(driven, u)
    elif beyond == "raise":
        _check_limits(driven, bounds, u, outside, proof)
    if outside.any():
        u, tau, reaction = (np.where(outside != 0, np.nan, x) for x in (u, tau, reaction))
    u, tau, reaction, proof, servo = (at.shaped(x) for x in (u, tau, reaction, proof, servo))
    return Inverse(u, tau, reaction, driven.u_names, idle_motions(driven).names, proof, servo)


def _warn_of_limits(m: Mechanism, u: np.ndarray) -> None:
    """Warn of inputs u (runs, nu) beyond the limits of the actuators."""
    low, high = m.u_limits.T
    over = np.fmax(np.fmax(u - high, low - u), 0)
    slight = BEYOND_ROUNDING * np.fmax(np.abs(u).max(axis=0), np.where(np.isfinite(high), np.abs(high), 0))
    phrases = []
    for i in np.flatnonzero((over > slight).any(axis=0)).tolist():
        run = int(np.argmax(over[:, i]))
        where = f" in run {run}" if len(u) > 1 else ""
        phrases.append(f"{m.u_names[i]!r} {u[run, i]:.4g} {m.u_units[i]}{where}, from {low[i]:g} to {high[i]:g}")
    if phrases:
        more = f" and {len(phrases) - 4} more" if len(phrases) > 4 else ""
        way = 'limits="actuators" finds inputs within them, if there are any'
        notice(f"inputs beyond the limits of their actuators: {'; '.join(phrases[:4])}{more}; {way}", RunWarning)


def _check_limits(m: Mechanism, limits: np.ndarray, u: np.ndarray, outside: np.ndarray, proof: np.ndarray) -> None:
    """Raise RunError, with the proof, if no inputs within the limits (motors, 2) produce the motion of some run.

    u, proof: (runs, nu).   outside: (runs, 1), not zero for these runs.
    """
    if not outside.any():
        return
    run = int(np.argmax(outside[:, 0] != 0))
    where, c = f" (run {run})" if len(u) > 1 else "", proof[run, : len(limits)]
    if not c.any():
        raise RunError(f"{NO_INPUTS}{where}")
    c = c / np.abs(c).max()
    used = np.flatnonzero(np.abs(c) > SMALL_WEIGHT)
    most = sum(c[i] * limits[i, int(c[i] > 0)] for i in used)
    named = " ".join(f"{'-' if c[i] < 0 else '+'} {abs(c[i]):.4g} {m.u_names[i]}" for i in used).removeprefix("+ ")
    needed = f"{named} is {c[used] @ u[run, used]:.4g} for all inputs that do"
    raise RunError(f"{NO_INPUTS}; proof: {needed}, at most {most:.4g} within limits{where}")


def _proofs(f: Callable[[], kernel.Kernel], arguments: tuple[np.ndarray, ...], beyond: np.ndarray, u: np.ndarray) -> np.ndarray:
    """(runs, nu) the proofs for the runs that are beyond the limits, else zero.   f: makes the kernel.   u: (runs, nu)."""
    proof = np.zeros_like(u)
    if beyond.any():
        *states, t, wishes = arguments
        proof[beyond] = f()(*(x[beyond] for x in states), t, wishes[beyond])
    return proof


@remembered(64)
def _compiled(
    driven: Mechanism, weight: tuple[float, ...] | None, limits: tuple[tuple[float, float], ...] | None, wished: bool,
    proving: bool,
) -> kernel.Kernel:  # fmt: skip
    """The compiled (q, v, a, p, t, wish) -> (u, B u, reaction, constraint residuals of the state, A a - b, its scale,
    uncontrollable, beyond the limits, part of the servos).

    proving: the proof that the motion is beyond the limits alone, which a batch needs for few states only.
    """
    T, a, wish = symbols(driven), ca.SX.sym("a", driven.nv), ca.SX.sym("wish", driven.nu)
    bounds, motors = None if limits is None else np.array(limits), len(driven.actuators)
    R, idle = weights(driven, weight), idle_motions(driven).number
    T = with_losses_at(T, a, R, idle)
    hoped = wish[:motors] if wished else None
    answer = allocate(T, T.inertia_force(a) - T.f, R, limits=bounds, idle=idle, wish=hoped)
    proof = ca.vertcat(answer.proof, ca.SX.zeros(driven.nu - answer.proof.numel(), 1))
    tau = ca.densify(T.B @ answer.u)
    reaction = ca.densify(answer.tau - tau)
    size_at_rest = FEASIBLE / T.inverse_scales(FEASIBLE)
    size = ca.sqrt((T.A**2) @ a**2 + T.b**2) + size_at_rest if T.A.shape[0] else ca.SX(0, 1)
    residual = ca.densify(T.A @ a - T.b)
    outputs = [answer.u, tau, reaction, ca.vec(off_constraints(T)), residual, ca.densify(size), answer.uncontrollable]
    outputs = [proof] if proving else [*outputs, answer.beyond, servo_part(T)]
    given = [T.q, T.v, a, driven.p_symbols, T.t, wish]
    return kernel.compile(ca.Function("inverse", given, [ca.densify(x) for x in outputs]))


def servo_part(T: Terms) -> ca.SX:
    """(nu, 1) the part of each input that makes up for what the servo of a file measures."""
    found, names = ca.SX.zeros(T.mechanism.nu, 1), T.mechanism.u_names
    for f in T.mechanism.all_forces:
        law = f.function if isinstance(f, (Potential, Dissipation)) else None
        law = law.function if isinstance(law, TracedFunction) else law
        if isinstance(law, (ActuatorBias, ActuatorDamping)) and law.actuator in names:
            found[names.index(law.actuator)] -= law.force(T.kinematics) / law.gear
    return found


def actuated_by(m: Mechanism, names: tuple[str, ...] | None) -> Mechanism:
    """The mechanism with actuators on the velocities of these names; if None with its actuators, or one on every velocity."""
    if names is None:
        return m if m.actuators else actuate_all(m)
    known = {x.name: x for x in (*_along_closures(m), *actuate_all(m).actuators)}
    for n in names:
        if n not in known:
            raise ModelError(f"actuated: there is no velocity {n!r}; {nearest(n, list(known))}")
    return m.with_(actuators=[known[n] for n in names])


def _along_closures(m: Mechanism) -> list[Actuator]:
    """An actuator on every velocity of every joint that closes a loop, within the effort of this joint."""
    joints = [c.joint for c in m.loop_joints.values() if c.joint is not None]
    return [
        actuator(f"{j.name}.{n}" if n else j.name, j.name, component=i, limits=(-j.effort, j.effort))
        for j in joints for i, n in enumerate(j.v_names)
    ]  # fmt: skip


def _check_feasible(m: Mechanism, residual: np.ndarray, size: np.ndarray) -> None:
    """Raise RunError, naming the row of largest residual A a - b (runs, m), if it exceeds FEASIBLE relative to its size."""
    if not residual.size:
        return
    run, row = foremost(residual / size)
    if abs(residual[run, row]) > FEASIBLE * size[run, row]:
        name = row_names(symbols(m).kinematics)[row]
        raise RunError(
            f"infeasible: the acceleration violates constraint row {name!r} by {residual[run, row]:.3g}"
            f"{f' in run {run}' if len(residual) > 1 else ''}; choose one with A a = b"
        )
