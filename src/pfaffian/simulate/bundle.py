"""What a reduction is made of, as numbers: momentum map, locked inertia, connection and its curvature, inertia of the shape.

Of the first joint of an open chain, with its velocities tau in the body and all other velocities s, the shape's: q and v are
(n,) or (runs, n) arrays or {name: number}; None is neutral, and at rest. parameters: {name: value} or an array.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import Any

import casadi as ca
import numpy as np

from pfaffian import kernel
from pfaffian.maths import se3
from pfaffian.model.mechanism import Mechanism, as_mechanism
from pfaffian.simulate.evaluate import Compiled, function_of
from pfaffian.terms.connection import commutation_coefficients, directional_derivative
from pfaffian.terms.digest import digest
from pfaffian.terms.reduction import adjoint_inverse, blocks, first_joint, group_of, in_first_joint, indices, others
from pfaffian.terms.terms import Terms, symbols


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
    x = _ask(m, "curvature", q, None, parameters)
    n = x.shape[-1]
    return np.moveaxis(x.reshape(*x.shape[:-2], -1, n, n), -3, -1)


def _curvature(T: Terms, joint: str) -> ca.SX:
    """(k n, n): for each tau the matrix over i and j."""
    m, k = T.mechanism, T.kinematics
    group = group_of(first_joint(m))
    assert group is not None
    rest = others(m, indices(m, (joint,)))
    A = blocks(T, joint).A
    gamma = commutation_coefficients(k)
    axes, n = list(group.axes), len(rest)
    # along[a + k j, i]: d_i A_aj.
    along = directional_derivative(k, ca.vec(A))[:, rest]
    out = ca.SX(group.nv * n, n)
    for i in range(n):
        for j in range(n):
            rows = slice(group.nv * j, group.nv * (j + 1)), slice(group.nv * i, group.nv * (i + 1))
            x = along[rows[0], i] - along[rows[1], j] - A @ gamma[rest[i]][rest[j], rest].T
            x -= (se3.ad(group.S @ A[:, i]) @ (group.S @ A[:, j]))[axes]
            out[[n * a + i for a in range(group.nv)], j] = x
    return out


def _locked(T: Terms, joint: str) -> ca.SX:
    m = T.mechanism
    back = adjoint_inverse(m.joint(joint), T.q[m.q_slices[joint], 0])
    return back.T @ blocks(T, joint).K11 @ back


_QUANTITIES: dict[str, Callable[[Terms, str], ca.SX]] = {
    "momentum": in_first_joint,
    "locked": _locked,
    "connection": lambda T, joint: blocks(T, joint).A,
    "shape": lambda T, joint: blocks(T, joint).shape,
    "curvature": _curvature,
}
"""Quantity -> what it is of Terms and the name of the first joint."""


def _ask(m: Mechanism, what: str, q: Any, v: Any, parameters: Any) -> np.ndarray:
    return asked(m, what, _QUANTITIES[what], (), q, v, parameters)


def asked(m: Mechanism, what: str, f: Callable[..., ca.SX], arguments: tuple, q: Any, v: Any, parameters: Any) -> np.ndarray:
    """(..., rows, columns) of f(Terms, name of the first joint, *arguments), found again by `what` and the arguments."""
    return _compiled(as_mechanism(m), what, f, arguments).matrices(q, v, parameters=parameters)[what]


@lru_cache(maxsize=256)
def _compiled(m: Mechanism, what: str, f: Callable[..., ca.SX], arguments: tuple) -> Compiled:
    free = replace(m, constraints=())  # which take no part
    T = symbols(free)
    value = f(T, first_joint(free).name, *arguments)
    traced = function_of(T, {what: value})
    key = f"{what} of the first joint {arguments!r} {digest(free)}"
    return Compiled(m, kernel.compile(lambda: traced, key=key), {what: value.shape})
