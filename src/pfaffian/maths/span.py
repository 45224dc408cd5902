"""Orthonormal bases of subspaces, the same on every machine; those of a factorisation would depend on rounding."""

from __future__ import annotations

import numpy as np

LENGTH_TOLERANCE = 1e-6
"""Columns whose lengths differ by less than this count as equal, and the first of them is chosen."""

PIVOT, ZERO = 1e-7, 1e-9
"""Bounds on entries of unit rows: no row is divided by an entry below PIVOT, and entries below ZERO are set to zero."""


def basis(X: np.ndarray) -> np.ndarray:
    """(n, k) orthonormal columns that span the range of the orthogonal projector P = X X^H of rank k = tr P, real or complex.

    Each column is the remainder of the projected unit vector whose remainder is longest, so that the result depends on P alone.
    What is left of all of them is reduced by each new column, which Gram-Schmidt applied twice makes orthogonal to the others.

    X: (n, r), the projector itself or any orthonormal basis of its range.
    """
    Q = np.zeros((len(X), round(np.linalg.norm(X) ** 2)), X.dtype)
    left = X.copy()
    for i in range(Q.shape[1]):
        lengths = np.linalg.norm(left, axis=1)
        x = left @ left[int(np.argmax(lengths > lengths.max() - LENGTH_TOLERANCE))].conj()
        for _ in range(2):
            x -= Q[:, :i] @ (Q[:, :i].conj().T @ x)
        Q[:, i] = x / np.linalg.norm(x)
        left -= np.outer(Q[:, i], Q[:, i].conj() @ left)
    return Q


def complement(A: np.ndarray, tolerance: float) -> np.ndarray:
    """(n, d) orthonormal columns that span the null space of A (k, n).

    Singular values up to `tolerance` times the largest count as zero.
    """
    if not A.size:
        return np.eye(A.shape[1])
    _, s, Vt = np.linalg.svd(A, full_matrices=False)
    rows = Vt[s > tolerance * s.max()]
    return basis(np.eye(A.shape[1]) - rows.T @ rows)


def reduced(rows: np.ndarray) -> np.ndarray:
    """Reduced row echelon form (d, n): rows with the same span; rows that become zero are left out."""
    out, at = rows.copy(), 0
    for column in range(out.shape[1]):
        if at == len(out):
            break
        pivot = at + int(np.argmax(np.abs(out[at:, column])))
        if abs(out[pivot, column]) < PIVOT:
            continue
        out[[at, pivot]] = out[[pivot, at]]
        out[at] /= out[at, column]
        rest = np.arange(len(out)) != at
        out[rest] -= np.outer(out[rest, column], out[at])
        at += 1
    return np.where(np.abs(out[:at]) < ZERO, 0.0, out[:at])
