"""Eigenvalues, symmetric square roots of positive definite matrices, and smallest singular values, as expressions."""

from __future__ import annotations

from typing import NamedTuple

import casadi as ca

from pfaffian.maths.reflection import NOTHING

SWEEPS = 8
"""Number of sweeps of cyclic Jacobi rotations: convergence is quadratic, and 8 reach rounding for matrices of mechanisms."""

HALVINGS = 54
"""Number of bisections after which the interval is as small as rounding."""
TINY = 1e-30
"""A pivot below this fraction of the shift counts as zero."""


class SquareRoot(NamedTuple):
    """Symmetric S (n, n) with S S = M, its inverse, and its derivative for a given derivative of M."""

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
    """Cosine and sine of the smaller of the two rotations that make apq vanish."""
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


def smallest_singular_value(G: ca.SX) -> ca.SX:
    """Smallest singular value of G (k, n), k <= n, to the rounding of the largest one, by bidiagonalisation and bisection."""
    d, e = _bidiagonal(ca.densify(G.T))
    d, e = d * d, e * e
    low, high = ca.SX(0), ca.sqrt(d[0])
    for _ in range(HALVINGS):
        x = (low + high) / 2
        below = _has_one_within(d, e, x * x)
        low, high = ca.if_else(below, low, x), ca.if_else(below, x, high)
    return (low + high) / 2


def _bidiagonal(A: ca.SX) -> tuple[ca.SX, ca.SX]:
    """Diagonal (k, 1) and superdiagonal (k - 1, 1) of an upper bidiagonal matrix with the singular values of A (n, k)."""
    d, e = [], []
    while A.shape[1]:
        size, A = _reflected(A)
        d.append(size)
        if A.shape[1]:
            size, B = _reflected(A.T)
            e.append(size)
            A = B.T
    return ca.vertcat(*d), ca.vertcat(*e)


def _reflected(A: ca.SX) -> tuple[ca.SX, ca.SX]:
    """The length of the first column of A, and the other columns after the reflection that takes it onto the first axis."""
    x, rest = A[:, 0], A[:, 1:]
    size = ca.sqrt(ca.sumsqr(x))
    x[0] += ca.if_else(x[0] < 0, -1, 1) * size
    return size, rest - x @ ((x.T @ rest) / ca.fmax(size * ca.fabs(x[0]), NOTHING))


def _has_one_within(d: ca.SX, e: ca.SX, square: ca.SX) -> ca.SX:
    """Whether a singular value of the bidiagonal B is at most sqrt(square): then a pivot of B^T B - square is not positive.

    d, e: squares of the diagonal and of the superdiagonal of B.   square: the shift.
    """
    least, s = ca.SX(ca.inf), -square
    for i in range(d.numel()):
        pivot = d[i] + s
        least = ca.fmin(least, pivot)
        if i < e.numel():
            # After a pivot that is not positive, later pivots do not change the answer, but they must not be NaN.
            s = e[i] * (s / ca.fmax(ca.fabs(pivot), TINY * square + NOTHING)) - square
    return least <= 0
