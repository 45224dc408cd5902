"""Elimination by reflections for rows that share few columns: solutions, rank, coefficients and number of operations."""

import casadi as ca
import numpy as np
import pytest

import pfaffian as pf
from benchmarks.chain_length import ladder
from pfaffian.kernel.program.passes import optimise
from pfaffian.kernel.program.trace import trace
from pfaffian.maths.linear import orthogonalise, smallest
from pfaffian.maths.minimum_norm import minimum_norm
from pfaffian.maths.reflection import reflected_columns
from studies import parallel_robots, stewart_platform

TOLERANCE = 1e-5
ROUNDING = 1e-13
"""Relative rounding error of solutions of a dozen well-conditioned rows."""


def legs(random: np.random.Generator, count: int, rows: int = 3, joints: int = 3, shared: int = 6) -> np.ndarray:
    """Rows of legs: each leg has separate joint columns, and all share the columns of the platform."""
    A = np.zeros((count * rows, shared + count * joints))
    A[:, :shared] = random.normal(size=(count * rows, shared))
    for i in range(count):
        begin = shared + i * joints
        A[i * rows : (i + 1) * rows, begin : begin + joints] = random.normal(size=(rows, joints))
    return A


def reflected(A: np.ndarray):
    m = len(A)
    sparse = ca.sparsify(ca.SX(ca.DM(A)))
    return orthogonalise(sparse, ca.SX(m, 0), TOLERANCE, passes=1, reflected=True)


@pytest.mark.parametrize("seed", range(4))
def test_solutions_have_the_smallest_norm(seed):
    random = np.random.default_rng(seed)
    A = legs(random, 4)
    B = random.normal(size=(len(A), 2))
    found = ca.DM(smallest(reflected(A), ca.SX(ca.DM(B)))).full()
    expected = np.linalg.pinv(A) @ B
    assert np.abs(found - expected).max() <= ROUNDING * np.linalg.cond(A) * np.abs(expected).max()


def test_coefficients_are_lower_triangular_and_reproduce_the_gram_matrix():
    A = legs(np.random.default_rng(5), 3)
    C = ca.DM(reflected(A).coefficients).full()
    assert np.abs(C @ C.T - A @ A.T).max() <= ROUNDING * np.abs(A @ A.T).max()
    assert np.abs(np.triu(C, 1)).max() == 0


def test_a_leg_whose_joint_columns_vanish_uses_its_shared_columns():
    """Rows whose joint columns vanish, exactly or to 1e-200, have no direction to be reflected onto."""
    A = legs(np.random.default_rng(6), 3)
    A[3:6, 9:12] = 1e-200
    A[7, 12:15] = 0
    B = np.arange(9.0)[:, None]
    rows = reflected(A)
    found = ca.DM(smallest(rows, ca.SX(ca.DM(B)))).full()
    assert float(rows.rank) == 9
    assert np.abs(found - np.linalg.pinv(A) @ B).max() <= ROUNDING * np.linalg.cond(A) * np.abs(found).max()


def test_dependent_rows_are_dropped_as_without_reflections():
    random = np.random.default_rng(7)
    A = legs(random, 4)
    A[5] = 2 * A[3] - A[4]
    A[9:12, 15:18] = 0  # the last leg moves no joint, so that its rows constrain the platform alone
    plain = orthogonalise(ca.sparsify(ca.SX(ca.DM(A))), ca.SX(12, 0), TOLERANCE, passes=1)
    rows = reflected(A)
    assert np.array_equal(ca.DM(rows.independent).full(), ca.DM(plain.independent).full()) and float(rows.rank) == 11
    assert np.abs(ca.DM(rows.left - plain.left).full()).max() <= ROUNDING
    B = A @ random.normal(size=(18, 1))
    found = ca.DM(smallest(rows, ca.SX(ca.DM(B)))).full()
    expected = np.linalg.pinv(A, rcond=1e-12) @ B
    assert np.abs(found - expected).max() <= 1e3 * ROUNDING * np.abs(expected).max()


@pytest.mark.parametrize("condition", [1e2, 1e4])
def test_almost_dependent_rows_keep_a_backward_error_of_rounding(condition):
    """Two rows of one leg almost depend on each other; the backward error stays at rounding level."""
    random = np.random.default_rng(8)
    A = legs(random, 3)
    A[4] = A[3] + random.normal(size=15) * (A[3] != 0) / condition
    B = A @ random.normal(size=(15, 1))
    found = ca.DM(smallest(reflected(A), ca.SX(ca.DM(B)))).full()
    assert np.abs(A @ found - B).max() <= ROUNDING * np.abs(A).max() * np.abs(found).max() * 10
    assert np.abs(found - np.linalg.pinv(A) @ B).max() <= ROUNDING * np.linalg.cond(A) * np.abs(found).max() * 10


def test_reflected_columns_are_those_that_few_other_rows_touch():
    platform, leg = {0, 1}, {2, 3}
    other = platform | {4, 5}
    assert reflected_columns(platform | leg, [platform | leg, other, other]) == leg
    assert reflected_columns(platform | leg, [platform | leg] * 2) == set()
    assert reflected_columns(platform | leg, []) == set()


def test_the_order_of_rows_changes_no_solution():
    random = np.random.default_rng(9)
    A = legs(random, 4)
    B, mixed = random.normal(size=(12, 1)), random.permutation(12)
    found = []
    for order in (np.arange(12), mixed):
        rows = ca.sparsify(ca.SX(ca.DM(A[order])))
        found.append(ca.DM(minimum_norm(rows, TOLERANCE, ca.SX.ones(12, 1)).solve(ca.SX(ca.DM(B[order])))).full())
    assert np.abs(found[0] - found[1]).max() <= ROUNDING * np.linalg.cond(A) * np.abs(found[0]).max()


MOST = {
    "stewart": (stewart_platform.mechanism, 9_900),
    "delta": (parallel_robots.delta, 2_500),
    "five-bar": (parallel_robots.five_bar, 350),
    "ladder": (lambda: ladder(16), 4_510),  # 3 a loop for vectors that keep their digits far from the origin
}
"""Machines with the most operations allowed for their accelerations. Gram-Schmidt took 14272, 2984, 348 and 4672."""


@pytest.mark.parametrize("name", MOST)
def test_operations_of_machines(name):
    make, most = MOST[name]
    m = make()
    T = pf.symbols(m)
    f = ca.Function("f", [T.q, T.v, T.u, m.p_symbols, T.t], [ca.densify(pf.FORMULATIONS["gauss"](T).v_dot)])
    assert optimise(trace(f)).n_ops <= most
