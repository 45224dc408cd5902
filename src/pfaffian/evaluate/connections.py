"""What a reduction is made of, as numbers: momentum map, locked inertia, connection and its curvature, inertia of the shape.

Of the first joint of an open chain, with its velocities tau in the body and all other velocities s, the shape's: q and v are
(n,) or (runs, n) arrays or {name: number}; None is neutral, and at rest. parameters: {name: value} or an array.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import casadi as ca
import numpy as np

from pfaffian.errors import ModelError
from pfaffian.evaluate.compiled import ask
from pfaffian.evaluate.reduction_plan import as_group, plan
from pfaffian.maths.linear import solve_definite
from pfaffian.maths.subgroups import isotropy
from pfaffian.model.mechanism import Mechanism, as_mechanism
from pfaffian.model.number import floats
from pfaffian.terms.orbit import orbit_of, two_form
from pfaffian.terms.present import remembered
from pfaffian.terms.reduction import (
    adjoint_inverse,
    blocks,
    curvature,
    first_joint,
    group_of,
    horizontal_lift,
    in_first_joint,
    indices,
)
from pfaffian.terms.terms import Terms


def momentum_map(m: Mechanism, q: Any = None, v: Any = None, *, parameters: Any = None) -> np.ndarray:
    """J (..., k): spatial momentum that belongs to the first joint, about the frame it stands in [N s, N m s].

    J = Ad_g^-T (K11 tau + K1s s), kept where the group of the joint is one of symmetries. [chhabra14 (3.3.35)]
    m: the mechanism.   q, v, parameters: as said above.
    Raises ModelError: no first joint that is a group; wrong names, shapes or numbers.
    """
    return _ask(m, "momentum", q, v, parameters)[..., 0]


def locked_inertia(m: Mechanism, q: Any = None, *, parameters: Any = None) -> np.ndarray:
    """I_q (..., k, k) = Ad_g^-T K11 Ad_g^-1: what moves with all other joints locked, where the first one stands.

    m: the mechanism.   q, parameters: as said above.
    [chhabra14 (3.3.36)] [kg, kg m, kg m^2]   Raises ModelError: as `momentum_map`.
    """
    return _ask(m, "locked", q, None, parameters)


def mechanical_connection(m: Mechanism, q: Any = None, *, parameters: Any = None) -> np.ndarray:
    """A (..., k, n) = K11^-1 K1s: without momentum the first joint moves by tau = -A s. [chhabra14 (3.3.37)]

    m: the mechanism.   q, parameters: as said above.
    Unit: of tau by that of s.   Raises ModelError: as `momentum_map`.
    """
    return _ask(m, "connection", q, None, parameters)


def shape_inertia(m: Mechanism, q: Any = None, *, parameters: Any = None) -> np.ndarray:
    """M^ (..., n, n) = Kss - K1s^T A: what the shape feels, kinetic energy s^T M^ s / 2 + mu_b^T K11^-1 mu_b / 2.

    m: the mechanism.   q, parameters: as said above.
    [chhabra14 (3.3.42)] [kg, kg m, kg m^2]   Raises ModelError: as `momentum_map`.
    """
    return _ask(m, "shape", q, None, parameters)


def connection_curvature(m: Mechanism, q: Any = None, *, parameters: Any = None) -> np.ndarray:
    """B (..., n, n, k)[i, j] = d_i A_j - d_j A_i - gamma_ij^l A_l - [A_i, A_j]: how far the first joint has moved, without
    momentum, when the shape has gone round a small rectangle of i and j is -B_ij by its area. [chhabra14 (3.3.43)]

    m: the mechanism.   q, parameters: as said above.
    Unit: of tau by those of s_i and s_j, per second.   Raises ModelError: as `momentum_map`; a joint has a distribution.
    """
    return _over_pairs(_ask(m, "curvature", q, None, parameters))


def isotropy_inertia(m: Mechanism, momentum: Any, q: Any = None, *, parameters: Any = None) -> np.ndarray:
    """I^mu (..., d, d) = i^T I_q i: the locked inertia that motions feel which leave a spatial momentum as it is.

    Columns of i are those of `subgroups.isotropy(S, mu)`, S of the first joint's group. [chhabra14 theorem 3.2.7]
    m: the mechanism.   momentum: (k,) mu of the first joint [N s, N m s].   q, parameters: as said above.
    Unit: kg, kg m, kg m^2.   Raises ModelError: as `momentum_map`; a momentum of another size.
    """
    return of_first_joint(m, "isotropy inertia", _isotropy_inertia, _momentum(m, momentum), q, None, parameters)


def isotropy_connection(m: Mechanism, momentum: Any, q: Any = None, *, parameters: Any = None) -> np.ndarray:
    """A^mu (..., d, nv) = (I^mu)^-1 i^T I A_q: how a velocity v moves within the isotropy group of mu, columns of i.

    A principal connection of that group: one for velocities along it, zero for those that the metric has across it. It is not
    needed for Xi_mu, where <mu, [Lie(G_mu), .]> = 0 takes it out. [chhabra14 theorem 3.2.7]
    m: the mechanism.   momentum, q, parameters: as in `isotropy_inertia`.
    Unit: of i's columns by those of v.   Raises ModelError: as `isotropy_inertia`.
    """
    return of_first_joint(m, "isotropy connection", _isotropy_connection, _momentum(m, momentum), q, None, parameters)


def reduced_two_form(m: Mechanism, momentum: Any, q: Any = None, *, parameters: Any = None) -> np.ndarray:
    """Xi_mu (..., d + n, d + n) of the reduced space of one spatial momentum: over the coordinates of its orbit, as they are in
    the state of `reduce(m, momentum=mu)`, and the velocities of all other joints. [chhabra14 (3.3.43)]

    m: the mechanism.   momentum, q, parameters: as in `isotropy_inertia`; q says where on the orbit.
    Unit: N m s by those of the two coordinates.   Raises ModelError: as `isotropy_inertia`; a joint has a distribution.
    """
    return of_first_joint(m, "reduced two-form", _two_form, _momentum(m, momentum), q, None, parameters)


def _two_form(T: Terms, joint: str, *mu: float) -> ca.SX:
    j = T.mechanism.joint(joint)
    group = group_of(j)
    assert group is not None
    orbit = orbit_of(group, np.array(mu))
    o = ca.SX.sym("o", len(orbit.names))
    at = orbit.coordinates(*group.motion(T.q[T.mechanism.q_slices[joint], 0]))
    return ca.substitute(two_form(T, joint, orbit, o), o, at)


def _momentum(m: Mechanism, momentum: Any) -> tuple[float, ...]:
    first = first_joint(replace(as_mechanism(m), constraints=()))
    mu = floats(momentum, f"momentum of joint {first.name!r}")
    if mu.shape != (first.nv,):
        raise ModelError(f"momentum: {first.nv} numbers are needed for joint {first.name!r}, got {mu.size}")
    return tuple(mu.tolist())


def _along_isotropy(T: Terms, joint: str, mu: tuple[float, ...]) -> ca.SX:
    """(k, d) Ad_g^-1 i: the motions that leave mu as it is, as velocities of the first joint."""
    j = T.mechanism.joint(joint)
    group = group_of(j)
    assert group is not None
    S = ca.DM(T.mechanism.value(group.S))
    return adjoint_inverse(j, T.q[T.mechanism.q_slices[joint], 0]) @ ca.SX(ca.DM(isotropy(S, np.array(mu))))


def _isotropy_inertia(T: Terms, joint: str, *mu: float) -> ca.SX:
    along = _along_isotropy(T, joint, mu)
    return along.T @ blocks(T, joint).K11 @ along


def _isotropy_connection(T: Terms, joint: str, *mu: float) -> ca.SX:
    own, along = indices(T.mechanism, (joint,)), _along_isotropy(T, joint, mu)
    M = ca.densify(T.M)
    return solve_definite(along.T @ M[own, own] @ along, along.T @ M[own, :])


def constraint_connection(m: Mechanism, q: Any = None, *, by: Any = None, parameters: Any = None) -> np.ndarray:
    """A^ (..., g, n): the constraints on velocities fix v_G = -A^ y of a group by all other velocities y. [chhabra14 (4.3.25)]

    m: the mechanism.   q, parameters: as said above.   by: the joints of the group, names; found if None, as in `reduce`.
    Unit: of v_G by that of y.   Raises ModelError: as `reduce`; nothing constrains velocities.
    """
    return of_first_joint(m, "constraint connection", _fixing, _fixed(m, by), q, None, parameters, constrained=True)


def constraint_curvature(m: Mechanism, q: Any = None, *, by: Any = None, parameters: Any = None) -> np.ndarray:
    """B^ (..., n, n, g)[i, j] = d_i A^_j - d_j A^_i - gamma_ij^l A^_l - [A^_i, A^_j]: the two-form of the reduced machine is
    Xi^_ij = <P, B^_ij>, P the momenta of the group, and p_i_dot = -d_i H + ... - Xi^_ji y^j. [chhabra14 (4.2.14), (4.3.27)]

    m: the mechanism.   q, parameters: as said above.   by: as in `constraint_connection`.
    Unit: of v_G by those of y_i and y_j, per second.
    Raises ModelError: as `constraint_connection`; a joint has a distribution.
    """
    x = of_first_joint(m, "constraint curvature", _curving, _fixed(m, by), q, None, parameters, constrained=True)
    return _over_pairs(x)


@remembered(64)
def _group(m: Mechanism, by: tuple[str, ...] | None) -> tuple[str, ...]:
    group = plan(m, by).group
    if not group:
        raise ModelError(f"nothing constrains velocities of {m.name!r}: it has a mechanical_connection, and no other")
    return tuple(j.name for j in m.joints if m.v_slices[j.name].start in group)


def _fixed(m: Mechanism, by: Any) -> tuple[str, ...]:
    return _group(as_mechanism(m), as_group(by))


def _fixing(T: Terms, first: str, *joints: str) -> ca.SX:
    return -horizontal_lift(T, indices(T.mechanism, joints))[indices(T.mechanism, joints), :]


def _curving(T: Terms, first: str, *joints: str) -> ca.SX:
    return curvature(T, _fixing(T, first, *joints), joints)


def _over_pairs(x: np.ndarray) -> np.ndarray:
    """(..., n, n, k) of (..., k n, n), as `curvature` has it."""
    n = x.shape[-1]
    return np.moveaxis(x.reshape(*x.shape[:-2], -1, n, n), -3, -1)


def _locked(T: Terms, joint: str) -> ca.SX:
    m = T.mechanism
    back = adjoint_inverse(m.joint(joint), T.q[m.q_slices[joint], 0])
    return back.T @ blocks(T, joint).K11 @ back


_QUANTITIES: dict[str, Callable[[Terms, str], ca.SX]] = {
    "momentum": in_first_joint,
    "locked": _locked,
    "connection": lambda T, joint: blocks(T, joint).A,
    "shape": lambda T, joint: blocks(T, joint).shape,
    "curvature": lambda T, joint: curvature(T, blocks(T, joint).A, (joint,)),
}
"""Quantity -> what it is of Terms and the name of the first joint."""


def _ask(m: Mechanism, what: str, q: Any, v: Any, parameters: Any) -> np.ndarray:
    return of_first_joint(m, what, _QUANTITIES[what], (), q, v, parameters)


def of_first_joint(
    m: Mechanism,
    what: str,
    f: Callable[..., ca.SX],
    arguments: tuple,
    q: Any,
    v: Any,
    parameters: Any,
    *,
    constrained: bool = False,
) -> np.ndarray:
    """(..., rows, columns) of f(Terms, name of the first joint, *arguments), see `compiled.ask`.

    constrained: whether the mechanism's constraints take part.
    """
    first = first_joint(as_mechanism(m) if constrained else replace(as_mechanism(m), constraints=())).name
    named = f"{what} of the first joint"
    return ask(m, named, f, (first, *arguments), q, v, parameters=parameters, constrained=constrained)
