"""Eigenvalues of a real matrix with their multiplicities, and bases of the subspaces that belong to them.

LAPACK returns one vector for each eigenvalue. Where an eigenvalue is repeated these vectors are any basis of a subspace, and
where the matrix is defective they are parallel up to the root of rounding, whatever the subspace is. Here eigenvalues that
are equal up to rounding form one cluster with one value, and the dimensions of its subspaces are decided by singular values,
which rounding changes only by its own size: the null space N of A - value, then that of the rest on the complement of N, and
so on. [Kublanovskaya 1966; Golub and Wilkinson 1976]
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pfaffian.maths.span import basis

ROUNDING = 1e-13
"""Fraction of the norm of a matrix below which its singular values, and parts of its eigenvalues, are zero."""

UNCLEAR = 10.0
"""Singular values within this factor of that bound are neither clearly zero nor clearly different from zero."""

NEAR = 1e-3
"""Relative distance within which eigenvalues may be one that rounding has split, the k-th root of rounding for a chain of k."""

TIE = 1e-9
"""Fraction of the norm within which two rates are in the same place of an order."""


class Cluster(NamedTuple):
    """Eigenvalues that are equal up to rounding.

    value: their common value, with real and imaginary parts exactly zero where they are rounding.
    chains: lengths of the Jordan chains, the longest first: as many as there are independent eigenvectors.
    vectors: (n, m) orthonormal columns, m the sum of `chains`: a basis of the eigenvectors, then of what the chains add to it.
        Each basis is that of `span.basis`, which depends on the subspace alone.
    """

    value: complex
    chains: tuple[int, ...]
    vectors: np.ndarray

    @property
    def eigenvectors(self) -> np.ndarray:
        """(n, k) the independent eigenvectors."""
        return self.vectors[:, : len(self.chains)]

    @property
    def defective(self) -> bool:
        """Whether there are fewer independent eigenvectors than eigenvalues."""
        return len(self.chains) < self.vectors.shape[1]


class Spectrum(NamedTuple):
    """The clusters of a matrix, the largest real part first; together their vectors are a basis.

    clear: whether each eigenvalue is either clearly zero or clearly different from zero.
    """

    clusters: tuple[Cluster, ...]
    clear: bool

    @property
    def values(self) -> np.ndarray:
        """(n,) the eigenvalues, as often as they occur."""
        return np.array([x.value for x in self.clusters for _ in x.vectors.T], dtype=complex)


def spectrum(A: np.ndarray, units: np.ndarray | None = None) -> Spectrum:
    """The clusters of a real matrix A (n, n).

    units: (n,) sizes of the variables x of x_dot = A x that count as equal, all equal if not given: what is rounding is
    decided in x / units.
    """
    units = np.ones(len(A)) if units is None else units
    B = A * units / units[:, None]
    size = float(np.linalg.norm(B, 2)) if len(B) else 0.0
    zero = _stairs(B, ROUNDING * size)
    Q, S, T = zero.Q, zero.Q[:, : zero.size], zero.Q[:, zero.size :]
    nilpotent, across, inner = S.T @ B @ S, S.T @ B @ T, T.T @ B @ T
    values, vectors = np.linalg.eig(inner)
    found = [_cluster(0j, zero.steps, Q, units)] if zero.size else []
    for members in _families(values, inner, ROUNDING * size):
        value = _mean(values[members], ROUNDING * size)
        if len(members) > 1:
            of = _stairs(_shifted(inner, value), ROUNDING * size)
        else:
            of = _Stairs(vectors[:, members], (1,), clear=True)
        Y = of.Q[:, : of.size]
        X = S @ _carried(nilpotent, across @ Y, Y.conj().T @ (inner @ Y)) + T @ Y
        found.append(_cluster(value, of.steps, X, units))
    clear = zero.clear and bool((np.abs(values) > ROUNDING * size).all())
    return Spectrum(tuple(sorted(found, key=lambda x: _place(x.value, TIE * size or 1.0))), clear)


def principal_axes(S: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues (n,) of a symmetric matrix, ascending, and orthonormal eigenvectors (n, n), those of equal ones being the
    `span.basis` of their subspace."""
    found = spectrum((S + S.T) / 2).clusters[::-1]
    columns = [np.zeros((len(S), 0)), *(x.vectors.real for x in found)]
    return np.array([x.value.real for x in found for _ in x.vectors.T]), np.hstack(columns)


def _place(value: complex, unit: float) -> tuple[int, ...]:
    """The place in the order: the least stable first, then the slowest, then by imaginary part, in whole numbers of `unit`."""
    return tuple(round(x / unit) for x in (-value.real, abs(value), value.imag))


def _mean(values: np.ndarray, rounding: float) -> complex:
    """The mean, with real and imaginary parts of zero where they are rounding."""
    mean = complex(values.mean())
    return complex(*(0.0 if abs(x) <= rounding else x for x in (mean.real, mean.imag)))


def _shifted(A: np.ndarray, value: complex) -> np.ndarray:
    """A - value, real if the value is."""
    return A - (value if value.imag else value.real) * np.eye(len(A))


def _carried(N: np.ndarray, Y: np.ndarray, J: np.ndarray) -> np.ndarray:
    """X with N X + Y = X J: the parts along the root subspace of zero of vectors whose other parts have the block J."""
    if not N.size:
        return np.zeros(Y.shape)
    k, m = Y.shape
    equations = np.kron(N, np.eye(m)) - np.kron(np.eye(k), J.T)
    return -np.linalg.solve(equations, Y.ravel()).reshape(k, m)


def _cluster(value: complex, steps: tuple[int, ...], X: np.ndarray, units: np.ndarray) -> Cluster:
    """A cluster from columns X, in x / units, of which the first sum(steps) span the subspaces of its steps."""
    k, chains = steps[0], tuple(sum(step > i for step in steps) for i in range(steps[0]))
    Q = np.linalg.qr(units[:, None] * X[:, : sum(steps)])[0]
    return Cluster(value, chains, np.hstack([basis(Q[:, :k]), basis(Q[:, k:])]))


class _Stairs(NamedTuple):
    """The root subspace of zero of a matrix.

    Q: orthonormal; its first columns are a basis of this subspace, step by step.   steps: dimensions of null spaces of powers,
    each minus that of the power before.   clear: whether no singular value was near the tolerance.
    """

    Q: np.ndarray
    steps: tuple[int, ...]
    clear: bool

    @property
    def size(self) -> int:
        """Dimension of the subspace."""
        return sum(self.steps)


def _stairs(A: np.ndarray, tolerance: float) -> _Stairs:
    """The root subspace of zero, singular values up to the tolerance being zero."""
    Q, done, steps, clear = np.eye(len(A)), 0, list[int](), True
    while done < len(A):
        rest = Q[:, done:]
        _, s, Vh = np.linalg.svd(rest.conj().T @ A @ rest)
        rank = int((s > tolerance).sum())
        clear &= not ((s > tolerance / UNCLEAR) & (s < tolerance * UNCLEAR)).any()
        if rank == len(s):
            break
        null_last = rest @ Vh.conj().T
        Q = np.hstack([Q[:, :done], null_last[:, rank:], null_last[:, :rank]])
        steps.append(len(s) - rank)
        done += len(s) - rank
    return _Stairs(Q, tuple(steps), clear)


def _families(values: np.ndarray, A: np.ndarray, tolerance: float) -> list[np.ndarray]:
    """The indices of eigenvalues that belong to one value: sets of near ones, as large as possible, whose mean has a root
    subspace of as many dimensions."""
    least = np.minimum.outer(np.abs(values), np.abs(values))
    apart = np.abs(np.subtract.outer(values, values)) / np.where(least > 0, least, 1.0)
    for k in range(len(values)):  # the longest step on the way from one to another by the shortest steps
        apart = np.minimum(apart, np.maximum(apart[:, k, None], apart[k]))

    def belongs(members: np.ndarray) -> bool:
        return _stairs(_shifted(A, _mean(values[members], tolerance)), tolerance).size == len(members)

    found, open_sets = [], _classes(np.arange(len(values)), apart <= NEAR)
    while open_sets:
        members = open_sets.pop()
        if len(members) == 1 or belongs(members):
            found.append(members)
        else:
            inside = apart[np.ix_(members, members)]
            open_sets += _classes(members, (inside < inside.max()) | np.eye(len(members), dtype=bool))
    return found


def _classes(members: np.ndarray, same: np.ndarray) -> list[np.ndarray]:
    """The classes of an equivalence relation."""
    return [members[row] for i, row in enumerate(same) if not row[:i].any()]
