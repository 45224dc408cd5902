"""Another LAPACK: factorisations as valid as NumPy's, with other bases of every subspace, other signs, phases and orders."""

from __future__ import annotations

import numpy as np
import pytest

EQUAL = 1e-11
"""Relative difference of values whose vectors are mixed: rounding of a few dozen operations, far below any real difference in
these tests."""


def mix(monkeypatch: pytest.MonkeyPatch, seed: int = 0) -> None:
    """Replace eig, eigh and svd of NumPy by ones that return other bases."""
    random, (eig, eigh, svd) = np.random.default_rng(seed), (np.linalg.eig, np.linalg.eigh, np.linalg.svd)

    def turn(n: int) -> np.ndarray:
        return np.linalg.qr(random.normal(size=(n, n)))[0]

    def groups(values: np.ndarray) -> list[np.ndarray]:
        same = np.abs(np.subtract.outer(values, values)) <= EQUAL * np.abs(values).max(initial=0.0)
        return [np.flatnonzero(row) for i, row in enumerate(same) if not row[:i].any()]

    def other_eig(A: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        values, vectors = eig(A)
        vectors = vectors.astype(complex)
        for at in groups(values):
            vectors[:, at] = vectors[:, at] @ turn(len(at)) * np.exp(1j * random.uniform(0, 6))
        order = random.permutation(len(values))
        return values[order], vectors[:, order]

    def other_eigh(A: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        values, vectors = eigh(A)
        for at in groups(values):
            vectors[:, at] = vectors[:, at] @ turn(len(at))
        return values, vectors

    def other_svd(A: np.ndarray, full_matrices: bool = True, compute_uv: bool = True, **more):
        if not compute_uv or np.ndim(A) != 2:
            return svd(A, full_matrices=full_matrices, compute_uv=compute_uv, **more)
        U, s, V = svd(A, full_matrices=full_matrices)
        for at in groups(s):
            Q = turn(len(at))
            U[:, at] = U[:, at] @ Q
            V[at] = (Q if s[at[0]] > EQUAL * s[0] else turn(len(at))).T @ V[at]
        for rest, count in ((U, U.shape[1] - len(s)), (V.T, len(V) - len(s))):
            rest[:, len(s) :] = rest[:, len(s) :] @ turn(count)
        return U, s, V

    for name, f in (("eig", other_eig), ("eigh", other_eigh), ("svd", other_svd)):
        monkeypatch.setattr(np.linalg, name, f)
