"""Complete accelerations from some of their components: the constraints determine the others."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from pfaffian.control.idle import idle_at
from pfaffian.dynamics.motion import RANK_TOLERANCE
from pfaffian.errors import ModelError, RunError, listed
from pfaffian.evaluate.arrays import configurations, named, parameter_values, velocities
from pfaffian.evaluate.compiled import compile_terms, given
from pfaffian.evaluate.given_state import check_given, check_on_constraints, off_constraints
from pfaffian.evaluate.single_values import as_number
from pfaffian.model.mechanism import Mechanism, as_mechanism
from pfaffian.terms.terms import Terms

BROKEN = 1e-6
"""Largest residual of a row at given accelerations, relative to the size of the row's terms."""


def complete_acceleration(m: Mechanism, q: Any, v: Any, a: Any, *, t: float = 0.0, parameters: Any = None) -> np.ndarray:
    """Complete an acceleration v_dot: some components are given, and the others follow from A v_dot = b.

    Args:
        m: the mechanism.
        q, v: a state on the constraints, (n,), (runs, n) or {name: number}; omitted entries are neutral and zero.
        a: {velocity: number or (runs,)} with the given components [m/s^2, rad/s^2]. Motions that nothing drives and on which
            nothing depends, such as the spin of a rod between two ball joints, need none.
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
    known, given_a = named(a, m.v_names), velocities(m, a, "a")
    if not known.any():
        raise ModelError(f"a: {{velocity: number}} is needed, for some of {listed(m.v_names)}")
    at = given(
        least=1,
        q=(q, configurations(m, q)),
        v=(v, velocities(m, v)),
        a=(a, given_a),
        parameters=(parameters, parameter_values(m, parameters)),
    )
    qs, vs, accelerations, p = at.spread
    f = compile_terms(m, {"A": lambda T: T.A, "b": lambda T: T.b, "M": lambda T: T.M, "off": _off}, squeeze=False)
    terms = f.matrices(qs, vs, t=as_number(t, "t"), parameters=p)
    check_on_constraints(m, terms["off"])
    rows = zip(terms["A"], terms["b"][:, :, 0], terms["M"], accelerations, zip(qs, vs, p, strict=True), strict=True)
    done = [_completed(m, A, b, M, row, known, partial(_idle, m, state, t)) for A, b, M, row, state in rows]
    return at.shaped(np.array(done))


def _idle(m: Mechanism, state: tuple[np.ndarray, np.ndarray, np.ndarray], t: float) -> np.ndarray:
    """(nv, k) the idle motions at a state (q, v, p)."""
    q, v, p = state
    return idle_at(m, q, v, t, p)


def _off(T: Terms) -> Any:
    """Residuals of the state, as an expression."""
    return off_constraints(T)


def _within(X: np.ndarray, Y: np.ndarray) -> bool:
    """Whether the orthonormal columns of X (n, d) lie in the span of the columns of Y (n, k)."""
    left = X - Y @ np.linalg.lstsq(Y, X, rcond=None)[0] if Y.size else X
    return bool(np.abs(left).max(initial=0.0) < BROKEN)


def _completed(
    m: Mechanism,
    A: np.ndarray,
    b: np.ndarray,
    M: np.ndarray,
    a: np.ndarray,
    known: np.ndarray,
    idle: Callable[[], np.ndarray],
) -> np.ndarray:
    """(nv,) the completed acceleration of one state. Directions are compared in the metric of the diagonal of M.

    idle: returns the idle motions (nv, k) there, which may stay free: they get the shortest acceleration.
    """
    unit = 1 / np.sqrt(np.diag(M))
    rest, missing = A[:, ~known] * unit[~known], b - A[:, known] @ a[known]
    _, sizes, V = np.linalg.svd(rest, full_matrices=True)
    rank = int((sizes > RANK_TOLERANCE * np.linalg.norm(A * unit, axis=1).max(initial=0.0)).sum())
    if rank < rest.shape[1] and not _within(V[rank:].T, idle()[~known] / unit[~known, None]):
        names = np.array(m.v_names)[~known]
        loose = [str(n) for n, part in zip(names, np.abs(V[rank:]).max(axis=0), strict=True) if part > 1e-6]
        raise RunError(f"a: {rest.shape[1] - rank} motion(s) stay free, of {listed(loose)}; give as many more of them")
    a = a.copy()
    a[~known] = unit[~known] * np.linalg.lstsq(rest, missing, rcond=None)[0]
    size = np.sqrt((A**2) @ a**2 + b**2) + 1e-300
    worst = int(np.argmax(np.abs(A @ a - b) / size)) if len(A) else 0
    if len(A) and abs(A[worst] @ a - b[worst]) > BROKEN * max(size[worst], 1e-9):
        raise RunError(
            f"a: the given components violate the constraints, row {worst} by {A[worst] @ a - b[worst]:.3g}; give fewer"
        )
    return a
