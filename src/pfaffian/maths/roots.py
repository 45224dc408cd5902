"""Eigenvalues and symmetric square roots of positive definite matrices, traced."""

from __future__ import annotations

from typing import NamedTuple

import casadi as ca

SWEEPS = 8
"""Of cyclic Jacobi rotations: convergence is quadratic, and 8 sweeps reach rounding for the sizes of mechanisms."""


class SquareRoot(NamedTuple):
    """S (n, n) symmetric with S S = M, its inverse, and its derivative for a given derivative of M."""

    S: ca.SX
    inverse: ca.SX
    S_dot: ca.SX


def eigen(M: ca.SX) -> tuple[ca.SX, ca.SX]:
    """Eigenvalues (n, 1) and orthonormal eigenvectors, the columns of V (n, n), of a symmetric M."""
    n = M.shape[0]
    A, V = ca.densify(M), ca.SX.eye(n)
    V = ca.densify(V)
    for _ in range(SWEEPS):
        for p in range(n):
            for q in range(p + 1, n):
                c, s = _rotation(A[p, p], A[q, q], A[p, q])
                A[p, :], A[q, :] = c * A[p, :] - s * A[q, :], s * A[p, :] + c * A[q, :]
                A[:, p], A[:, q] = c * A[:, p] - s * A[:, q], s * A[:, p] + c * A[:, q]
                V[:, p], V[:, q] = c * V[:, p] - s * V[:, q], s * V[:, p] + c * V[:, q]
    return ca.diag(A), V


def _rotation(app: ca.SX, aqq: ca.SX, apq: ca.SX) -> tuple[ca.SX, ca.SX]:
    """Cosine and sine of the smaller rotation that makes apq vanish."""
    d = aqq - app
    reach = ca.fabs(d) + ca.sqrt(d * d + 4 * apq * apq)
    t = 2 * apq * ca.if_else(d < 0, -1, 1) * ca.if_else(reach > 0, 1 / reach, 0)
    c = 1 / ca.sqrt(t * t + 1)
    return c, t * c


def square_root(M: ca.SX, M_dot: ca.SX) -> SquareRoot:
    """The symmetric square root of a positive definite M (n, n) with derivative M_dot: S S_dot + S_dot S = M_dot."""
    squares, V = eigen(M)
    roots = ca.sqrt(squares)
    sums = ca.repmat(roots, 1, M.shape[0]) + ca.repmat(roots.T, M.shape[0], 1)
    return SquareRoot(V @ ca.diag(roots) @ V.T, V @ ca.diag(1 / roots) @ V.T, V @ ((V.T @ M_dot @ V) / sums) @ V.T)
