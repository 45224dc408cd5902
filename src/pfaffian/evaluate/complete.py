"""Complete accelerations from some of their components: the constraints determine the others."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from pfaffian.control.idle import idle_at
from pfaffian.dynamics.motion import RANK_TOLERANCE
from pfaffian.errors import ModelError, RunError, listed
from pfaffian.evaluate.arrays import as_batch, configurations, named, parameter_values, velocities
from pfaffian.evaluate.compiled import compile_terms, given
from pfaffian.evaluate.given_state import check_given, check_on_constraints, off_constraints
from pfaffian.evaluate.single_values import as_number
from pfaffian.model.loop_coordinates import velocities_of_closures
from pfaffian.model.mechanism import Mechanism, as_mechanism
from pfaffian.terms.loop_joints import loop_rates
from pfaffian.terms.loop_rotors import rotor_acceleration
from pfaffian.terms.pfaffian import row_names
from pfaffian.terms.terms import Terms, shared

BROKEN = 1e-6
"""Largest residual of a row at given accelerations, relative to the size of the row's terms."""


class LinearRows(NamedTuple):
    """Rows A v_dot = b of one state.   A: (n, nv).   b: (n,).   rest: (n,) sizes of rows without terms.   names: (n,)."""

    A: np.ndarray
    b: np.ndarray
    rest: np.ndarray
    names: tuple[str, ...]


def complete_acceleration(m: Mechanism, q: Any, v: Any, a: Any, *, t: float = 0.0, parameters: Any = None) -> np.ndarray:
    """Complete an acceleration v_dot: some components are given, and the others follow from A v_dot = b.

    Args:
        m: the mechanism.
        q, v: a state on the constraints, (n,), (runs, n) or {name: number}; omitted entries are neutral and zero.
        a: {velocity: number or (runs,)} with the given components [m/s^2, rad/s^2], those of closures too. Motions that
            nothing drives and on which nothing depends, such as the spin of a rod between two ball joints, need none.
        t: time [s], 0 by default.
        parameters: {name: value or (runs,)} or an array in the mechanism's order; defaults where left out.
    Returns: (..., nv) v_dot, for instance for `inverse_dynamics`.
    Raises ModelError: no names, unknown names, a state off the constraints.
    Raises RunError: the given components violate the constraints, or leave motions undetermined (with their names).

    Example:
        A particle on a circle of 1 m, at its lowest point, moves at 2 m/s:

        >>> import pfaffian as pf
        >>> plane = pf.joint("bob", "planar-translation", "world", "bob", axis=(0, -1, 0))
        >>> rod = pf.closure("rod", "distance", "world", "bob", length=1.0)
        >>> m = pf.mechanism("pendulum", [pf.body("bob", mass=1.0)], [plane], constraints=[rod])
        >>> pf.constraints.complete_acceleration(m, [0, -1], [2, 0], {"bob.vx": 0.5}).round(9)
        array([0.5, 4. ])
    """
    as_mechanism(m)
    check_given(a, m.v_names, "a")
    names = (*m.v_names, *velocities_of_closures(m))
    given_a, known = as_batch(a, names, np.zeros(len(names)), "a"), named(a, names)
    if not known.any():
        raise ModelError(f"a: {{velocity: number}} is needed, for some of {listed(names)}")
    at = given(
        least=1,
        q=(q, configurations(m, q)),
        v=(v, velocities(m, v)),
        a=(a, given_a),
        parameters=(parameters, parameter_values(m, parameters)),
    )
    qs, vs, accelerations, p = at.spread
    along = np.flatnonzero(known[m.nv :]).tolist()
    f = compile_terms(m, _expressions(m, along), squeeze=False)
    terms = f.matrices(qs, vs, t=as_number(t, "t"), parameters=p)
    check_on_constraints(m, terms["off"])
    rows = (*row_names(shared(m).kinematics), *[names[m.nv + i] for i in along])
    target = accelerations[:, m.nv :][:, along, None]
    A, b = np.concatenate([terms["A"], terms["J"]], axis=1), np.concatenate([terms["b"], target - terms["h"]], axis=1)
    rest, done = np.concatenate([terms["rest"], 0 * target], axis=1), list[np.ndarray]()
    for i, given_row in enumerate(accelerations[:, : m.nv]):
        of, idle = LinearRows(A[i], b[i, :, 0], rest[i, :, 0], rows), partial(idle_at, m, qs[i], vs[i], t, p[i])
        done.append(_completed(m, of, terms["M"][i], given_row, known[: m.nv], idle))
    return at.shaped(np.array(done))


def _expressions(m: Mechanism, along: list[int]) -> dict[str, Callable[[Terms], ca.SX]]:
    """A, b, M, the residuals `off` and the sizes at rest of the rows; J (n, nv) and h (n, 1) of the accelerations J v_dot + h
    of closures, those of the indices `along` among the velocities of all of them."""
    closures = tuple(m.loop_joints.values())

    def J(T: Terms) -> ca.SX:
        return ca.vertcat(ca.SX(0, m.nv), *[loop_rates(T.kinematics, c) for c in closures])[along, :]

    def h(T: Terms) -> ca.SX:
        return ca.vertcat(ca.SX(0, 1), *[rotor_acceleration(T.kinematics, c) for c in closures])[along, :]

    of: dict[str, Callable[[Terms], ca.SX]] = {
        "A": lambda T: T.A,
        "b": lambda T: T.b,
        "M": lambda T: T.M,
        "off": off_constraints,
        "rest": _size_at_rest,
    }
    return of | {"J": J, "h": h}


def _size_at_rest(T: Terms) -> ca.SX:
    """(m, 1) size of each row where none of its terms has one: of a row that vanishes, rounding is left."""
    return BROKEN / T.inverse_scales(BROKEN)


def _within(X: np.ndarray, Y: np.ndarray) -> bool:
    """Whether the orthonormal columns of X (n, d) lie in the span of the columns of Y (n, k)."""
    left = X - Y @ np.linalg.lstsq(Y, X, rcond=None)[0] if Y.size else X
    return bool(np.abs(left).max(initial=0.0) < BROKEN)


def _completed(
    m: Mechanism, of: LinearRows, M: np.ndarray, a: np.ndarray, known: np.ndarray, idle: Callable[[], np.ndarray]
) -> np.ndarray:
    """(nv,) the completed acceleration of one state. Directions are compared in the metric of the diagonal of M.

    idle: returns the idle motions (nv, k) there, which may stay free: they get the shortest acceleration.
    """
    A, b, rest, rows = of
    unit = 1 / np.sqrt(np.diag(M))
    unknown, missing = A[:, ~known] * unit[~known], b - A[:, known] @ a[known]
    _, sizes, V = np.linalg.svd(unknown, full_matrices=True)
    rank = int((sizes > RANK_TOLERANCE * np.linalg.norm(A * unit, axis=1).max(initial=0.0)).sum())
    if rank < unknown.shape[1] and not _within(V[rank:].T, idle()[~known] / unit[~known, None]):
        names = np.array(m.v_names)[~known]
        loose = [str(n) for n, part in zip(names, np.abs(V[rank:]).max(axis=0), strict=True) if part > 1e-6]
        raise RunError(f"a: {unknown.shape[1] - rank} motion(s) stay free, of {listed(loose)}; give as many more of them")
    a = a.copy()
    a[~known] = unit[~known] * np.linalg.lstsq(unknown, missing, rcond=None)[0]
    size, left = np.sqrt((A**2) @ a**2 + b**2) + rest + 1e-300, A @ a - b
    worst = int(np.argmax(np.abs(left) / size)) if len(A) else 0
    if len(A) and abs(left[worst]) > BROKEN * size[worst]:
        raise RunError(f"a: the given components violate the constraints, row {rows[worst]!r} by {left[worst]:.3g}; give fewer")
    return a
