"""The point of a plane or a line nearest to the origin between pairs of parallel lines, beside the active-set method."""

import casadi as ca
import numpy as np
import pytest

import pfaffian as pf
from pfaffian.maths.nearest_in_plane import nearest_between
from tests.tolerance import close

ALIKE = 1e-9
"""Difference of both methods, each of which meets limits to 1e-11 of their size, with rows at angles of 0.01 and more."""


KINDS = ("general", "parallel", "zero", "through a point", "open", "locked")
OPEN = np.array([[0, 1], [1, 0], [0, 0], [1, 1], [1, 1], [0, 1], [1, 0]], dtype=bool)
"""Ends that have a limit where the kind is "open"."""


def problem(random, n, k, kind):
    """Rows (n, k) and limits (n, 2), inf for open ends; some have a solution and others do not."""
    Y = random.normal(size=(n, k))
    middle, wide = 2 * random.normal(size=n), random.exponential(size=n)
    if kind == "parallel":
        Y[n // 2 :] = Y[: n - n // 2] * random.choice([-1.0, 1.0, 0.3], size=(n - n // 2, 1))
    if kind == "zero":
        Y[random.random(n) < 0.4] = 0
        middle[~Y.any(axis=1)] *= 0.3
    if kind == "through a point":
        middle = Y @ random.normal(size=k)
    limits = np.column_stack([middle - wide, middle + wide])
    if kind == "open":
        limits = np.where(OPEN[:n], limits, [-np.inf, np.inf])
    if kind == "locked":
        limits[0] = limits[0].mean()
    return Y, limits


def compiled(n, k, ends):
    """Function of the rows and the limits.   ends: (n, 2) which of these are given."""
    Y, limits = ca.SX.sym("Y", n, k), ca.SX.sym("limits", n, 2)
    low, high = ([limits[i, side] if ends[i, side] else None for i in range(n)] for side in (0, 1))
    f = ca.Function("f", [Y, limits], list(nearest_between(Y, low, high)))

    def solve(Y, limits):
        z, good, proof = (np.array(x).ravel() for x in f(Y, np.where(np.isinf(limits), 0, limits)))
        return z, bool(good[0]), proof

    return solve


def by_active_set(Y, limits):
    """The nearest point, None if there is none. Rows of zeros, which restrict nothing there, are judged here."""
    W, l = np.vstack([Y, -Y]), np.r_[limits[:, 1], -limits[:, 0]]
    zero, there = ~W.any(axis=1), np.isfinite(l)
    if (l[zero & there] < 0).any():
        return None
    chosen = there & ~zero
    if not chosen.any():
        return np.zeros(Y.shape[1])
    found = pf.analysis.solve_qp(np.eye(Y.shape[1]), np.zeros(Y.shape[1]), W[chosen], l[chosen])
    return found.u if found.status == 0 else None


@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("kind", KINDS)
def test_the_nearest_point_and_proofs_beside_the_active_set_method(kind, k):
    random = np.random.default_rng(KINDS.index(kind) + 10 * k)
    outcomes = []
    for n in (1, 4, 7):
        solve = compiled(n, k, OPEN[:n] if kind == "open" else np.ones((n, 2), dtype=bool))
        for _ in range(8):
            Y, limits = problem(random, n, k, kind)
            z, good, c = solve(Y, limits)
            nearest = by_active_set(Y, limits)
            outcomes.append(good)
            assert good == (nearest is not None)
            if nearest is not None:
                close(z, nearest, ALIKE, "the nearest point", max(1.0, np.abs(nearest).max()))
            else:
                most = sum(x * limits[i, int(x > 0)] for i, x in enumerate(c) if x)
                close(Y.T @ c, np.zeros(k), ALIKE, "a proof is the same for all points", np.abs(c).max())
                assert most < 0
    assert any(outcomes) and (kind in ("through a point", "open") or not all(outcomes))


def test_what_is_not_a_number_is_not_solved():
    Y, limits = np.array([[1.0, 1.0], [1.0, 0.0]]), np.array([[1.0, 4.0], [2.0, 3.0]])
    for k in (1, 2):
        solve = compiled(2, k, np.ones((2, 2), dtype=bool))
        assert solve(Y[:, :k], limits)[1]
        for i in range(2):
            wrong, bad = Y[:, :k].copy(), limits.copy()
            wrong[i, 0] = bad[i, 1] = np.nan
            assert not solve(wrong, limits)[1] and not solve(Y[:, :k], bad)[1]


def test_limits_that_meet_in_a_point_are_met():
    """Six lines through one point, which is the only one left."""
    angles = np.linspace(0, np.pi, 6, endpoint=False) + 0.1
    Y, point = np.column_stack([np.cos(angles), np.sin(angles)]), np.array([3.0, -1.0])
    z, good, _ = compiled(6, 2, np.ones((6, 2), dtype=bool))(Y, np.column_stack([Y @ point, Y @ point]))
    assert good
    close(z, point, ALIKE, "the point")
