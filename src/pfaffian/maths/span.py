"""Orthonormal bases of subspaces, the same on every machine: which one a factorisation finds depends on rounding."""

from __future__ import annotations

import numpy as np

ALIKE = 1e-6
"""Columns whose lengths differ by less count as equal, and the first of them is chosen."""


def basis(P: np.ndarray) -> np.ndarray:
    """(n, k) orthonormal columns that span the range of an orthogonal projector P (n, n) of rank k = tr P.

    Each is the projection of the unit vector with the largest remainder, by Gram and Schmidt, done twice.
    """
    Q = np.zeros((len(P), 0))
    for _ in range(round(np.trace(P))):
        left = P - Q @ (Q.T @ P)
        left -= Q @ (Q.T @ left)
        lengths = np.linalg.norm(left, axis=0)
        x = left[:, int(np.argmax(lengths > lengths.max() - ALIKE))]
        Q = np.column_stack([Q, x / np.linalg.norm(x)])
    return Q


def complement(A: np.ndarray, tolerance: float) -> np.ndarray:
    """(n, d) orthonormal columns that span the null space of A (k, n): vectors that it shortens to less than `tolerance` of its
    norm.
    """
    if not A.size:
        return np.eye(A.shape[1])
    _, s, Vt = np.linalg.svd(A, full_matrices=False)
    rows = Vt[s > tolerance * s.max()]
    return basis(np.eye(A.shape[1]) - rows.T @ rows)
