"""Starts of segments: on the constraints, with the directions in which they are free and their changes with the parameters."""

from __future__ import annotations

from typing import NamedTuple

import casadi as ca
import numpy as np

from pfaffian import kernel
from pfaffian.model.mechanism import Mechanism
from pfaffian.terms.terms import symbols
from pfaffian.terms.traced_now import remembered

DEPENDENT = 1e-9
"""A singular value of the constraint rows below this fraction of the largest one counts as zero."""

ITERATIONS = 8
"""Most Newton iterations onto the constraints; starts are near them, so that three are usual."""

CLOSED = 1e-12
"""Residual below which a start counts as on the constraints, relative to the size of its entries."""


class Freedom(NamedTuple):
    """What may change at the starts of segments.

    basis: (segments, nx, k) independent changes of [q; v] along the constraints; a segment with fewer has columns of zeros.
    by_p: (segments, nx, np) changes of [q; v] that keep the constraints where the parameters change.
    """

    basis: np.ndarray
    by_p: np.ndarray


def freedom(m: Mechanism, x: np.ndarray, p: np.ndarray, t: np.ndarray) -> Freedom:
    """The Freedom of starts x (segments, nx) at parameters p (np,) and times t (segments,)."""
    onto, _, C, C_p = _at(m, x, p, t)
    count = 2 * m.nv
    if not C.shape[1]:
        return Freedom(onto, np.zeros((len(x), x.shape[1], C_p.shape[2])))
    _, s, Vt = np.linalg.svd(C)
    independent = s > DEPENDENT * s[:, :1]
    free = count - int(independent.sum(axis=1).min())
    basis = Vt[:, count - free :].swapaxes(1, 2).copy()
    spare = independent.sum(axis=1)[:, None] > np.arange(count - free, count)[None]  # columns that constraints still fix
    basis *= ~spare[:, None]
    return Freedom(onto @ basis, -(onto @ _shortest(C, C_p, _residuals(m).positions)))


def closed(
    m: Mechanism, x: np.ndarray, p: np.ndarray, t: np.ndarray, ease: np.ndarray | None = None, most: int = ITERATIONS
) -> tuple[np.ndarray, np.ndarray]:
    """The starts x (segments, nx) moved onto the constraints by the shortest way, and their residuals (segments,).

    Coordinates move until phi = 0 and velocities until eta = 0: a measured velocity that contradicts the others moves no
    coordinate. ease: (2 nv,) by which a change along each [displacement; v] counts as shorter, 1 by default.   most: steps.
    """
    ease = np.ones(2 * m.nv) if ease is None else ease
    x = _unit(m, x)
    if not m.ideal:
        return x, np.zeros(len(x))
    n, nv = _residuals(m).positions, m.nv
    for _ in range(most):
        onto, c, C, _ = _at(m, x, p, t)
        left = np.abs(c).max(axis=1, initial=0.0)
        if (left <= CLOSED * (1 + np.abs(x).max(axis=1))).all():
            break
        step = ease[:, None] * _shortest(np.nan_to_num(C * ease), np.nan_to_num(c)[:, :, None], n)
        x = np.hstack([_unit(m, x[:, : m.nq + nv] - (onto @ step)[:, :, 0]), x[:, m.nq + nv :]])
    return x, left


def _shortest(C: np.ndarray, c: np.ndarray, n: int) -> np.ndarray:
    """The shortest displacement, and then the shortest change of v, that take away residuals c (segments, r, k).

    C: (segments, r, 2 nv) derivatives of the residuals.   n: number of those of phi, which come first.
    """
    nv = C.shape[2] // 2
    moved = np.linalg.pinv(C[:, :n, :nv], rcond=DEPENDENT) @ c[:, :n]
    sped = np.linalg.pinv(C[:, n:, nv:], rcond=DEPENDENT) @ (c[:, n:] - C[:, n:, :nv] @ moved)
    return np.concatenate([moved, sped], axis=1)


def kinematic_matrix(m: Mechanism, q: np.ndarray) -> np.ndarray:
    """K (nq, nv) at q (nq,)."""
    x = _unit(m, np.hstack([q, np.zeros(m.nv)])[None])
    return _at(m, x, m.p_defaults, np.zeros(1))[0][0, : m.nq, : m.nv]


def _unit(m: Mechanism, x: np.ndarray) -> np.ndarray:
    """States whose quaternions have unit length."""
    x = x.copy()
    for at in m.quaternions.values():
        x[:, at] /= np.linalg.norm(x[:, at], axis=1, keepdims=True)
    return x


def _at(m: Mechanism, x: np.ndarray, p: np.ndarray, t: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """diag(K, 1) (segments, nx, 2 nv), the residuals (segments, r) and their derivatives by [displacement; v] and by p."""
    count, nq, nv, n_p = len(x), m.nq, m.nv, len(m.p_names)
    K, c, C, C_p = _residuals(m).kernel(x[:, :nq], x[:, nq : nq + nv], np.tile(p, (count, 1)), t[:, None])
    onto = np.zeros((count, nq + nv, 2 * nv))
    onto[:, :nq, :nv] = K.reshape(count, nv, nq).swapaxes(1, 2)
    onto[:, nq:, nv:] = np.eye(nv)
    by_x, by_p = (y.reshape(count, n, c.shape[1]).swapaxes(1, 2) for y, n in ((C, 2 * nv), (C_p, n_p)))
    return onto, c, by_x, by_p


class _StartResiduals(NamedTuple):
    """kernel: see `_residuals`.   positions: how many of the residuals are those of phi."""

    kernel: kernel.Kernel
    positions: int


@remembered(64)
def _residuals(m: Mechanism) -> _StartResiduals:
    """Kernel (q, v, p, t) -> K, [phi; eta], and their derivatives by [displacement; v] and by p, column by column."""
    T = symbols(m)
    K = T.kinematics.kinematic_matrix
    c = ca.densify(ca.vertcat(T.rows.phi, T.rows.eta)) if m.ideal else ca.SX(0, 1)
    by_x = ca.jacobian(c, ca.vertcat(T.q, T.v)) @ ca.diagcat(K, ca.SX.eye(m.nv))
    outputs = [K, c, by_x, ca.jacobian(c, m.p_symbols)]
    f = ca.Function("starts", [T.q, T.v, m.p_symbols, T.t], [ca.vec(ca.densify(y)) for y in outputs])
    return _StartResiduals(kernel.compile(f), T.rows.phi.numel() if m.ideal else 0)
