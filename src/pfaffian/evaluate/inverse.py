"""Inverse dynamics of closed loops with passive joints: the smallest inputs that produce an acceleration. [aghili05]"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from pfaffian import kernel
from pfaffian.control.allocation import UNCONTROLLABLE, allocate, weights
from pfaffian.control.reason import foremost, undriven
from pfaffian.errors import ModelError, RunError, nearest
from pfaffian.evaluate.arrays import as_flag, as_number, configurations, parameter_values, velocities
from pfaffian.evaluate.compiled import given
from pfaffian.evaluate.complete import complete_acceleration
from pfaffian.evaluate.given_state import check_given, check_on_constraints, off_constraints
from pfaffian.evaluate.realisability import blamed
from pfaffian.model.mechanism import Mechanism, actuate_all, as_mechanism, as_names
from pfaffian.model.number import floats
from pfaffian.terms.pfaffian import row_names
from pfaffian.terms.present import remembered
from pfaffian.terms.terms import symbols

FEASIBLE = 1e-6
"""Largest |A a - b|, relative to the size of its terms."""


class Inverse(NamedTuple):
    """u: (..., nu) inputs [N, N m], in the order of `names`, zero on wrenches from outside.
    tau: (..., nv) generalised force B u.   reaction: (..., nv) of the constraints under these inputs.
    names: of the inputs.
    """

    u: np.ndarray
    tau: np.ndarray
    reaction: np.ndarray
    names: tuple[str, ...]


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
        q: (nq,) or (runs, nq) array, or {coordinate: number}, neutral where left out; it must satisfy the constraints.
        v: (nv,) or (runs, nv) array, or {velocity: number}, zero where left out; it must satisfy the constraints.
        a: acceleration v_dot, as v; the constraints must allow it, A a = b.
        complete: whether the components that a = {velocity: number} leaves out follow from the constraints, as by
            `constraints.complete_acceleration`; False, the default, makes them zero.
        actuated: names of the velocities (joints) with actuators; if None the mechanism's own actuators, or one for every
            velocity where it has none.
        weight: (motors,) diagonal of R, ones if None; `control.length_weights` makes forces and moments comparable.
        t: time [s].
        parameters: {name: value or (runs,)} or a (np,) or (runs, np) array; defaults where left out.
    Returns:
        a named tuple: u (..., nu) inputs [N, N m] and their `names`, tau (..., nv) = B u, and the constraints' reaction (...,
        nv).
    Raises ModelError: unknown names, wrong shapes, v or a missing, a state off the constraints (which row, by how much).
    Raises RunError: a breaks a constraint (which row), or these actuators cannot drive a motion that the constraints leave free
    (which one).

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
        a = complete_acceleration(m, q, v, a, t=t, parameters=parameters)
    driven, f = _compiled(m, names, R)
    at = given(
        least=1,
        q=(q, configurations(m, q)),
        v=(v, velocities(m, v)),
        a=(a, velocities(m, a, "a")),
        parameters=(parameters, parameter_values(m, parameters)),
    )
    (qs, vs, accelerations, p), count = at.spread, at.size
    u, tau, reaction, off, broken, size, uncontrollable = f(qs, vs, accelerations, p, np.array([t]))
    check_on_constraints(driven, off.reshape(count, 4, -1).transpose(0, 2, 1))
    _check_feasible(driven, broken, size)
    if uncontrollable.any():
        run = int(np.argmax(uncontrollable[:, 0]))
        (why,) = blamed(driven, undriven())(qs[[run]], vs[[run]], p[[run]], np.array([t]))
        raise RunError(f"{UNCONTROLLABLE}; {why}{f' (run {run})' if count > 1 else ''}")
    return Inverse(at.shaped(u), at.shaped(tau), at.shaped(reaction), driven.u_names)


@remembered(64)
def _compiled(m: Mechanism, names: tuple[str, ...] | None, weight: tuple[float, ...] | None) -> tuple[Mechanism, kernel.Kernel]:
    """The mechanism with its actuators, and (q, v, a, p, t) -> (u, B u, reaction, constraint residuals of the state, A a - b,
    its scale, uncontrollable).
    """
    driven = actuated_by(m, names)
    T, a = symbols(driven), ca.SX.sym("a", m.nv)
    answer = allocate(T, T.M @ a + T.c - T.f, weights(driven, weight))
    tau = ca.densify(T.B @ answer.u)
    reaction = ca.densify(T.M @ a + T.c - T.f - tau)
    still = FEASIBLE / T.inverse_scales(FEASIBLE)
    size = ca.sqrt((T.A**2) @ a**2 + T.b**2) + still if T.A.shape[0] else ca.SX(0, 1)
    broken = ca.densify(T.A @ a - T.b)
    outputs = [answer.u, tau, reaction, ca.vec(off_constraints(T)), broken, ca.densify(size), answer.uncontrollable]
    return driven, kernel.compile(ca.Function("inverse", [T.q, T.v, a, m.p_symbols, T.t], outputs))


def actuated_by(m: Mechanism, names: tuple[str, ...] | None) -> Mechanism:
    """The mechanism with actuators on these velocities, or with its own; see `inverse_dynamics`."""
    if names is None:
        return m if m.actuators else actuate_all(m)
    known = {x.name: x for x in actuate_all(m).actuators}
    for n in names:
        if n not in known:
            raise ModelError(f"actuated: there is no velocity {n!r}; {nearest(n, list(known))}")
    return m.with_(actuators=[known[n] for n in names])


def _check_feasible(m: Mechanism, broken: np.ndarray, size: np.ndarray) -> None:
    if not broken.size:
        return
    run, row = foremost(broken / size)
    if abs(broken[run, row]) > FEASIBLE * size[run, row]:
        name = row_names(symbols(m).kinematics)[row]
        raise RunError(
            f"infeasible: the acceleration breaks constraint row {name!r} by {broken[run, row]:.3g}"
            f"{f' in run {run}' if len(broken) > 1 else ''}; take one with A a = b"
        )
