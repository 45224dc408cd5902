"""Inverse dynamics of closed loops with passive joints: the smallest inputs that produce an acceleration. [aghili05]"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from pfaffian import kernel
from pfaffian.control.allocation import UNCONTROLLABLE, allocate, weights
from pfaffian.control.idle import idle_motions
from pfaffian.control.losses_at import with_losses_at
from pfaffian.control.reason import foremost, undriven
from pfaffian.errors import ModelError, RunError, nearest
from pfaffian.evaluate.arrays import configurations, parameter_values, velocities
from pfaffian.evaluate.compiled import given
from pfaffian.evaluate.complete import complete_acceleration
from pfaffian.evaluate.given_state import check_given, check_on_constraints, off_constraints
from pfaffian.evaluate.realisability import blamed
from pfaffian.evaluate.single_values import as_flag, as_number
from pfaffian.model.force import Actuator, actuator
from pfaffian.model.mechanism import Mechanism, actuate_all, as_mechanism, as_names
from pfaffian.model.number import floats
from pfaffian.terms.pfaffian import row_names
from pfaffian.terms.terms import symbols
from pfaffian.terms.traced_now import remembered

FEASIBLE = 1e-6
"""Largest |A a - b| of an acceleration that satisfies the constraints, relative to the size of its terms."""


class Inverse(NamedTuple):
    """Result of `inverse_dynamics`.

    u: (..., nu) inputs [N, N m], in the order of `names`, zero for wrenches from outside.
    tau: (..., nv) generalised force B u.   reaction: (..., nv) reaction of the constraints under these inputs.
    names: of the inputs.   idle: of the velocities that take part in motions which nothing drives and on which nothing depends,
    such as the spin of a rod between two ball joints; these motions are left to themselves.
    """

    u: np.ndarray
    tau: np.ndarray
    reaction: np.ndarray
    names: tuple[str, ...]
    idle: tuple[str, ...] = ()


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
) -> Inverse:
    """Inputs of smallest u^T R u under which the mechanism at q, v accelerates by a. [aghili05 (45) (46) (53)-(62)]

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
    Returns:
        a named tuple: u (..., nu) inputs [N, N m] and their `names`, tau (..., nv) = B u, the constraints' reaction (..., nv),
        and the names of the `idle` velocities. Idle motions, such as the spin of a rod between two ball joints, are left to
        themselves: no motor drives them, they move no mass centre, and no force acts on them.
    Raises ModelError: unknown names, wrong shapes, v or a missing, a state off the constraints (with the row and its residual).
    Raises RunError: the acceleration violates a constraint (with the row), or the actuators cannot drive a motion that the
    constraints leave free (with the motion).

    Example:
        >>> import numpy as np
        >>> import pfaffian as pf
        >>> bob = pf.body("bob", mass=2.0, com=(0, 0, -1))
        >>> m = pf.mechanism("pendulum", [bob], [pf.joint("hinge", "revolute", "world", "bob", axis=(0, 1, 0))])
        >>> pf.inverse_dynamics(m, {"hinge": np.pi / 2}, [0.0], [0.0]).u.round(2)  # hold 2 kg still, 1 m out
        array([19.62])
    """
    as_mechanism(m)
    names = None if actuated is None else as_names(actuated, "actuated")
    R = None if weight is None else tuple(floats(weight, "weight").ravel().tolist())
    check_given(v, m.v_names, "v")
    check_given(a, m.v_names, "a")
    t = as_number(t, "t")
    if as_flag(complete, "complete"):
        a = complete_acceleration(actuated_by(m, names), q, v, a, t=t, parameters=parameters)
    driven, f = _compiled(m, names, R)
    at = given(
        least=1,
        q=(q, configurations(m, q)),
        v=(v, velocities(m, v)),
        a=(a, velocities(m, a, "a")),
        parameters=(parameters, parameter_values(m, parameters)),
    )
    (qs, vs, accelerations, p), count = at.spread, at.size
    u, tau, reaction, off, residual, size, uncontrollable = f(qs, vs, accelerations, p, np.array([t]))
    check_on_constraints(driven, off.reshape(count, 4, -1).transpose(0, 2, 1))
    _check_feasible(driven, residual, size)
    if uncontrollable.any():
        run = int(np.argmax(uncontrollable[:, 0]))
        (why,) = blamed(driven, undriven())(qs[[run]], vs[[run]], p[[run]], np.array([t]))
        raise RunError(f"{UNCONTROLLABLE}; {why}{f' (run {run})' if count > 1 else ''}")
    return Inverse(at.shaped(u), at.shaped(tau), at.shaped(reaction), driven.u_names, idle_motions(driven).names)


@remembered(64)
def _compiled(m: Mechanism, names: tuple[str, ...] | None, weight: tuple[float, ...] | None) -> tuple[Mechanism, kernel.Kernel]:
    """The mechanism with its actuators, and the compiled (q, v, a, p, t) -> (u, B u, reaction, constraint residuals of the
    state, A a - b, its scale, uncontrollable).
    """
    driven = actuated_by(m, names)
    T, a = symbols(driven), ca.SX.sym("a", m.nv)
    R, idle = weights(driven, weight), idle_motions(driven).number
    T = with_losses_at(T, a, R, idle)
    answer = allocate(T, T.M @ a + T.c - T.f, R, idle=idle)
    tau = ca.densify(T.B @ answer.u)
    reaction = ca.densify(answer.tau - tau)
    size_at_rest = FEASIBLE / T.inverse_scales(FEASIBLE)
    size = ca.sqrt((T.A**2) @ a**2 + T.b**2) + size_at_rest if T.A.shape[0] else ca.SX(0, 1)
    residual = ca.densify(T.A @ a - T.b)
    outputs = [answer.u, tau, reaction, ca.vec(off_constraints(T)), residual, ca.densify(size), answer.uncontrollable]
    return driven, kernel.compile(ca.Function("inverse", [T.q, T.v, a, m.p_symbols, T.t], outputs))


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
