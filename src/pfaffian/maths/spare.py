"""The smallest solution of rows A x = b with fewer rows than unknowns, and the directions that they leave, by reflections.

Each row is reflected onto one axis by 1 - beta v v^T, and later rows follow: A = L Q with L lower triangular. L y = b gives
x = Q^T y, and the axes onto which no row was reflected give the directions. Six rows of eight unknowns take 1,000 operations,
orthonormal rows and a basis of their null space 2,700. [Householder 1958]
"""

from __future__ import annotations

from typing import NamedTuple

import casadi as ca

from pfaffian.maths.reflection import NOTHING


class SmallestAndSpare(NamedTuple):
    """x: (n, 1).   independent: (m, 1) 1 for rows that x satisfies, 0 for those that depend on others.
    spare: (n - m, n) orthonormal rows S with A S^T = 0."""

    x: ca.SX
    independent: ca.SX
    spare: ca.SX


def smallest_and_spare(A: ca.SX, b: ca.SX, tolerance: float, size: ca.SX) -> SmallestAndSpare:
    """The smallest x with A x = b, and the directions that change nothing.

    A row counts as independent by the rule of `linear.orthogonalise`, in its own order. Where one does not, x may be longer.

    Args:
        A: (m, n), m <= n.   b: (m, 1).   tolerance: [1].
        size: (m, 1) squared length of each row relative to its typical one.

    Example:
        >>> import casadi as ca
        >>> from pfaffian.maths.spare import smallest_and_spare
        >>> found = smallest_and_spare(ca.SX([[3, 4]]), ca.SX([10]), 1e-9, ca.SX(1))
        >>> print(ca.evalf(found.x), ca.evalf(found.spare))
        [1.2, 1.6] [[-0.8, 0.6]]
    """
    (m, n), rows = A.shape, [ca.densify(A[i, :].T) for i in range(A.shape[0])]
    reflections, y, independent = list[tuple[ca.SX, ca.SX]](), list[ca.SX](), list[ca.SX]()
    for i, row in enumerate(rows):
        tail = row[i:, 0]
        squared = ca.sumsqr(tail)
        keep = squared * ca.fmin(1, size[i]) > tolerance**2 * ca.sumsqr(A[i, :])
        length = ca.sqrt(ca.fmax(squared, NOTHING))
        towards = ca.if_else(tail[0] > 0, -length, length)  # away from the row, so that their difference loses no digits
        v = tail - towards * ca.SX.eye(n - i)[:, 0]
        reflections.append((v, keep / (length * (length + ca.fabs(tail[0])))))
        for j in range(i + 1, m):
            rows[j][i:, 0] = _reflected(reflections[-1], rows[j][i:, 0])
        known = sum((row[k] * y[k] for k in range(i)), ca.SX(0))
        y.append(keep * (b[i] - known) / towards)
        independent.append(keep)
    axes = ca.SX.eye(n)[:, m:]
    turned = ca.horzcat(ca.vertcat(ca.SX(0, 1), *y, ca.SX.zeros(n - m, 1)), axes)
    for i in reversed(range(m)):
        turned[i:, :] = ca.horzcat(*[_reflected(reflections[i], c) for c in ca.horzsplit(turned[i:, :])])
    return SmallestAndSpare(turned[:, 0], ca.vertcat(ca.SX(0, 1), *independent), turned[:, 1:].T)


def _reflected(by: tuple[ca.SX, ca.SX], c: ca.SX) -> ca.SX:
    """c (k, 1) less its part along v, twice.   by: v (k, 1) and beta = 2 / v^T v, zero for no reflection."""
    v, beta = by
    return c - (beta * ca.dot(v, c)) * v
