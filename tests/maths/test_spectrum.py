"""Repeated and defective eigenvalues: their multiplicities, subspaces and order, whatever LAPACK returns."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest

from pfaffian.maths.spectrum import Spectrum, principal_axes, spectrum
from tests.other_lapack import mix
from tests.tolerance import close

CONDITIONED = 1e-10
"""Error of a subspace: rounding times the condition of the basis, below 1e3, and of the block of a chain of four."""

RANDOM = np.random.default_rng(4)


def block(value: complex, chain: int) -> np.ndarray:
    """The real Jordan block of a real eigenvalue, or of a complex pair."""
    a, b = complex(value).real, complex(value).imag
    one = np.array([[a, -b], [b, a]]) if b else np.array([[a]])
    return np.kron(np.eye(chain), one) + np.kron(np.eye(chain, k=1), np.eye(len(one)))


def matrix(blocks: list[tuple[complex, int]], turned: bool = False) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A matrix with these Jordan blocks, its basis X and its Jordan form J."""
    parts = [block(*x) for x in blocks]
    n, at = sum(map(len, parts)), 0
    J = np.zeros((n, n))
    for part in parts:
        J[at : at + len(part), at : at + len(part)] = part
        at += len(part)
    X = RANDOM.normal(size=(n, n))
    X = np.linalg.qr(X)[0] if turned else X
    return X @ J @ np.linalg.inv(X), X, J


BLOCKS = [(0, 4), (0, 2), (0, 2), (0, 1), (-1, 3), (-1, 1), (-1.1, 1), (-5, 2), (-0.2 + 3j, 2), (-0.2 + 3j, 1), (7j, 1),
          (7j, 1), (2, 1)]  # fmt: skip
FOUND = [(2, (1,)), (0, (4, 2, 2, 1)), (-7j, (1, 1)), (7j, (1, 1)), (-0.2 - 3j, (2, 1)), (-0.2 + 3j, (2, 1)), (-1, (3, 1)),
         (-1.1, (1,)), (-5, (2,))]  # fmt: skip


@pytest.mark.parametrize("turned", [True, False])
def test_chains_and_subspaces_of_a_known_jordan_form(turned):
    """LAPACK alone splits the zeros by 1e-4 and the threefold -1 by 1e-5."""
    A, X, J = matrix(BLOCKS, turned)
    found = spectrum(A)
    assert found.clear and [x.chains for x in found.clusters] == [chains for _, chains in FOUND]
    for x, (value, chains) in zip(found.clusters, FOUND, strict=True):
        assert x.value == 0 if value == 0 else abs(x.value - value) < CONDITIONED
        assert x.defective == (max(chains) > 1) and x.vectors.shape[1] == sum(chains)
        V, E = x.vectors, x.eigenvectors
        close(np.abs(V.conj().T @ V), np.eye(sum(chains)), CONDITIONED, "orthonormal")
        assert np.abs(A @ E - x.value * E).max() < CONDITIONED * np.abs(A).max() and E.shape[1] == len(chains)
        power = np.linalg.matrix_power(J - value * np.eye(len(J)), max(chains))
        null = np.linalg.svd(power)[2][-sum(chains) :].conj().T  # of the exact Jordan form
        Q = np.linalg.qr(X @ null)[0]
        off = np.abs(V @ V.conj().T - Q @ Q.conj().T)
        close(off, np.zeros(off.shape), CONDITIONED * np.linalg.cond(X), "subspace", 1.0)
    values = found.values
    assert len(values) == len(A) and (values[1:10] == 0).all()
    whole = np.hstack([x.vectors for x in found.clusters])
    assert np.linalg.svd(whole, compute_uv=False).min() > 1e-9, "the vectors of all clusters are a basis"


def test_a_neighbour_is_no_member_of_a_chain():
    A, *_ = matrix([(-1, 3), (-1.0001, 1), (-1, 1), (-4, 1)], turned=True)
    assert [x.chains for x in spectrum(A).clusters] == [(3, 1), (1,), (1,)]
    close(spectrum(A).values.real, [-1, -1, -1, -1, -1.0001, -4], 1e-9, "values")  # 1e-16 / (1e-4)^3 for the neighbour
    close(spectrum(A).values.imag, np.zeros(6), 1e-9, "real", 1.0)


def same(a: Spectrum, b: Spectrum, tolerance: float) -> None:
    assert [x.chains for x in a.clusters] == [x.chains for x in b.clusters] and a.clear == b.clear
    for x, y in zip(a.clusters, b.clusters, strict=True):
        assert abs(x.value - y.value) < tolerance
        close(np.abs(x.vectors - y.vectors), np.zeros(x.vectors.shape), tolerance, "the same basis", 1.0)


@pytest.mark.parametrize("seed", range(4))
def test_no_basis_of_lapack_shows(seed, monkeypatch):
    A, *_ = matrix(BLOCKS, turned=True)
    expected, axes = spectrum(A), principal_axes(np.diag([2.0, 1.0, 2.0, 1.0, 5.0]))
    mix(monkeypatch, seed)
    same(spectrum(A), expected, CONDITIONED)
    for x, y in zip(principal_axes(np.diag([2.0, 1.0, 2.0, 1.0, 5.0])), axes, strict=True):
        close(x, y, CONDITIONED, "principal axes")


def test_principal_axes():
    Q = np.linalg.qr(RANDOM.normal(size=(4, 4)))[0]
    values, axes = principal_axes(Q @ np.diag([3.0, 1.0, 3.0, -2.0]) @ Q.T)
    close(values, [-2, 1, 3, 3], CONDITIONED, "ascending")
    close(axes @ np.diag(values) @ axes.T, Q @ np.diag([3.0, 1.0, 3.0, -2.0]) @ Q.T, CONDITIONED, "the matrix")
    close(principal_axes(np.diag([2.0, 2.0, 2.0]))[1], np.eye(3), CONDITIONED, "a ball has the axes of its body")


def test_simple_eigenvalues_agree_with_forty_digits():
    A = RANDOM.normal(size=(9, 9))
    with mpmath.workdps(40):
        exact = np.array([complex(x) for x in mpmath.eig(mpmath.matrix(A.tolist()))[0]])
    found = spectrum(A)
    assert all(x.chains == (1,) for x in found.clusters)
    close(np.abs(np.sort_complex(found.values) - np.sort_complex(exact)), np.zeros(9), CONDITIONED, "eigenvalues", 1.0)
    assert (np.diff(found.values.real) < CONDITIONED).all(), "the least stable first"


def test_sizes_of_the_variables():
    """What is rounding is decided in x / units: a slow rate beside a stiff spring is no rounding, beside noise it is."""
    fast, slow = 1e6, 1e-2
    K = np.diag([fast**2, slow**2])
    A = np.block([[np.zeros((2, 2)), np.eye(2)], [-K, np.zeros((2, 2))]])
    units = np.array([1 / fast, 1 / fast, 1.0, 1.0])
    assert (np.abs(spectrum(A, units).values).min() > 0) == (slow / fast > np.sqrt(1e-13))
    damped = np.array([[0.0, 1.0, 0, 0], [0, -1e-4, 0, 0], [0, 0, 0, 1.0], [0, 0, -(fast**2), 0]])
    close(spectrum(damped, np.array([1 / fast, 1, 1 / fast, 1])).values.real.min(), -1e-4, 1e-9, "a slow decay")
    near = spectrum(np.diag([1.0, 1e-12, 1.1e-12])).clusters
    assert [x.chains for x in near] == [(1,)] * 3, "slow rates within rounding of each other, but not of their own size"
    noise = np.array([[0.0, 1.0], [1e-15, 0.0]])
    assert spectrum(noise).clusters[0].chains == (2,)
    empty = spectrum(np.zeros((0, 0)))
    assert empty.clusters == () and empty.values.shape == (0,) and empty.clear


def test_an_unclear_zero_is_told():
    for value, clear in ((1e-16, True), (3e-13, False), (3e-14, False), (1e-9, True)):
        assert spectrum(np.diag([1.0, value])).clear is clear


def test_units_of_variables_change_no_multiplicity():
    """Among variables from micrometres to thousands of kilometres, the clusters are those of equal units."""
    A = matrix([(0, 2), (0, 1), (-1, 2), (3j, 1), (2, 1)])[0]
    units = 10.0 ** np.array([-6, -3, 0, 6, 2, -1, 4, -5])
    one, other = spectrum(A), spectrum(A * units[:, None] / units, units)
    assert [x.chains for x in one.clusters] == [x.chains for x in other.clusters]
    close(one.values.view(float), other.values.view(float), CONDITIONED, "eigenvalues")
