"""The small equations of friction that follows loads, beside the same equations in NumPy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import casadi as ca
import numpy as np
import pytest

from pfaffian.dynamics import load_equations
from pfaffian.dynamics.load_equations import Equation, Grip
from pfaffian.maths.pack import pack, unpack
from tests.tolerance import ALGEBRA, DERIVATIVE, close

CASES = 12
SLIPPING = 1e-9
"""What the smoothing of a load of about 1 and the last iteration leave of an equation."""


class Numbers(NamedTuple):
    """The numbers of `Equation` of n joints.   factor, rest: (n,).   sizes: (n, k).   base: (n, k, 2).   turned: (n, k, 2, n).
    change: (n, n).
    """

    factor: np.ndarray
    sizes: np.ndarray
    base: np.ndarray
    turned: np.ndarray
    rest: np.ndarray
    change: np.ndarray

    def load(self, Q: np.ndarray) -> np.ndarray:
        """(n,) the loads at frictions Q (n,)."""
        return (self.sizes * np.linalg.norm(self.base + self.turned @ Q, axis=2)).sum(axis=1)

    def equations(self, sticking: bool) -> list[Equation]:
        n, k = self.sizes.shape
        rest = [(ca.SX(self.rest[i]), ca.SX(self.change[i][None])) if sticking else None for i in range(n)]
        parts = lambda x, i: tuple(ca.SX(x[i, j]) for j in range(k))  # noqa: E731
        return [
            Equation(i, ca.SX(self.factor[i]), parts(self.sizes, i), parts(self.base, i), parts(self.turned, i), rest[i])
            for i in range(n)
        ]


def drawn(random: np.random.Generator, n: int, k: int, gain: float = 0.3) -> Numbers:
    """Random equations, in which friction changes loads by up to `gain` of itself; rates answer as by a mass matrix."""
    B = random.normal(size=(n, n))
    H = B @ B.T + 0.5 * np.eye(n)
    turned = random.normal(size=(n, k, 2, n))
    factor, sizes = random.uniform(0.1, 1.0, n), random.uniform(0.3, 1.0, (n, k))
    most = (factor[:, None] * (sizes[:, :, None] * np.linalg.norm(turned, axis=2)).sum(axis=1)).sum(axis=1)
    turned *= (gain / most)[:, None, None, None]
    base, rest = random.normal(size=(n, k, 2)), random.normal(size=n)
    return Numbers(factor, sizes, base, turned, rest, H / np.diag(H)[:, None])


def solved(*several: list[Equation]) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Frictions and faults of systems of one structure."""
    p = ca.SX.sym("p", pack(several[0]).numel())
    f = ca.Function("f", [p], list(load_equations.friction(unpack(several[0], p))))
    for equations in several:
        Q, faults = f(ca.evalf(pack(equations)))
        yield np.array(Q).ravel(), np.array(faults).ravel()


@pytest.mark.parametrize(("n", "k"), [(1, 1), (1, 2), (2, 1), (3, 2)])
def test_smooth_friction_is_a_share_of_its_load(n, k):
    random = np.random.default_rng(3)
    cases = [drawn(random, n, k) for _ in range(CASES)]
    cases = [x._replace(factor=x.factor * random.choice([-1, 1], n)) for x in cases]
    for x, (Q, faults) in zip(cases, solved(*[x.equations(sticking=False) for x in cases]), strict=True):
        assert len(faults) == (2 if (n, k) == (1, 1) else n + 1) and not faults.any()
        close(Q, -x.factor * x.load(Q), SLIPPING, "friction", scale=1.0)


@pytest.mark.parametrize(("n", "k"), [(1, 1), (1, 2), (2, 1), (3, 2)])
def test_friction_holds_what_its_load_allows(n, k):
    """The one nearest to what would hold each joint, within its load; both kinds occur."""
    random, held = np.random.default_rng(4), []
    cases = [drawn(random, n, k, gain=0.1) for _ in range(CASES)]
    for x, (Q, faults) in zip(cases, solved(*[x.equations(sticking=True) for x in cases]), strict=True):
        assert not faults.any()
        left, most = x.rest + x.change @ Q, x.factor * x.load(Q)
        if n == k == 1:  # the friction that holds it is known without its own load
            left = Q + x.rest
        close(Q, np.clip(Q - left, -most, most), SLIPPING, "friction", scale=1.0)
        held += (np.abs(Q) < most * (1 - 1e-6)).tolist()
    assert 0.1 < np.mean(held) < 0.9


@pytest.mark.parametrize("sticking", [False, True])
@pytest.mark.parametrize("ratio", [0.98, 1.02])
def test_friction_that_increases_its_own_load_by_more_than_itself_is_a_fault(sticking, ratio):
    """Painleve: alone, and round a ring of joints of which each loads the next."""
    alone = drawn(np.random.default_rng(5), 1, 1)
    alone = alone._replace(turned=alone.turned * ratio / 0.3)
    ((_, faults),) = solved(alone.equations(sticking))
    assert faults[0] == (ratio > 1)
    for n in (2, 3):
        x = drawn(np.random.default_rng(6), n, 1)
        turned = np.zeros_like(x.turned)
        for i in range(n):
            turned[i, 0, :, (i + 1) % n] = np.array([0.6, -0.8]) / (x.factor[i] * x.sizes[i, 0])
        turned[0] *= 0.5
        turned[1] *= 2 * ratio
        ring = x._replace(turned=turned)
        ((_, faults),) = solved(ring.equations(sticking))
        assert faults[:n].any() == (ratio > 1)


@pytest.mark.parametrize("sticking", [False, True])
def test_linear_equations_are_those_of_the_friction_nearby(sticking):
    """value and slopes belong together; alone solves an equation while loads and others stay; goal solves it linearly."""
    random, n = np.random.default_rng(7), 3
    q = ca.SX.sym("Q", n)
    for _ in range(CASES):
        x = drawn(random, n, 2)
        Q = random.normal(size=n)
        for i, e in enumerate(x.equations(sticking)):
            near = e.at(q)
            out = [near.value, ca.jacobian(near.value, q), *near[1:5], *near.grip]
            value, exact, slopes, goal, most, alone, sticks, side = (np.array(y)[0] for y in ca.Function("f", [q], out)(Q))
            close(slopes, exact, DERIVATIVE, "slopes", scale=1.0)
            close(most[0], x.factor[i] * x.load(Q)[i], ALGEBRA, "most", scale=1.0)
            aim = Q[i] - x.rest[i] - x.change[i] @ Q
            assert sticks == (sticking and abs(aim) <= most)
            assert side == (np.sign(aim) if sticking else -1)
            close(alone, [aim] if sticks else side * most, ALGEBRA, "alone", scale=1.0)
            close(value, x.rest[[i]] + x.change[i] @ Q if sticks else Q[i] - alone, ALGEBRA, "value", scale=1.0)
            if not sticks:
                close(goal, [slopes @ Q] - value, DERIVATIVE, "goal", scale=1.0)


def test_what_was_decided_before_stays():
    x, Q = drawn(np.random.default_rng(12), 2, 1), np.array([0.3, -0.4])
    first, most = x.equations(sticking=True)[0], x.factor[0] * x.load(Q)[0]
    for sticks, side, want in ((1, 1, (x.rest + x.change @ Q)[0]), (0, 1, Q[0] - most), (0, -1, Q[0] + most)):
        near = first.at(ca.SX(Q), Grip(ca.SX(sticks), ca.SX(side)))
        assert float(near.value) == pytest.approx(want, abs=ALGEBRA) and near.grip == (sticks, side)


def test_feedback_bounds_what_a_friction_does_to_itself_and_others():
    random, n = np.random.default_rng(8), 3
    for _ in range(CASES):
        x, Q, dQ = drawn(random, n, 2), random.normal(size=n), random.normal(size=n)
        found = np.vstack([np.array(ca.evalf(e.feedback)) for e in x.equations(sticking=False)])
        want = x.factor[:, None] * (x.sizes[:, :, None] * np.linalg.norm(x.turned, axis=2)).sum(axis=1)
        close(found, want, ALGEBRA, "feedback", scale=1.0)
        assert (np.abs(x.factor * (x.load(Q + dQ) - x.load(Q))) <= found @ np.abs(dQ) * (1 + ALGEBRA)).all()


@pytest.mark.parametrize("n", [1, 2, 3, 5])
def test_small_systems_are_factored_and_solved(n):
    random = np.random.default_rng(9)
    A, b = random.normal(size=(n, n)) + 4 * np.eye(n), random.normal(size=n)
    LU = load_equations._factors(ca.SX(A))
    F = np.array(ca.evalf(LU))
    close((np.tril(F, -1) + np.eye(n)) @ np.triu(F), A, ALGEBRA, "L U", scale=5.0)
    close(np.array(ca.evalf(load_equations._solve(LU, ca.SX(b)))).ravel(), np.linalg.solve(A, b), ALGEBRA, "x", scale=1.0)


def test_a_step_ends_at_the_first_limit_and_lets_go_of_that_joint():
    """Both joints are held; the one with less room is let go, on the side to which it was pulled."""
    limit = 0.5
    x = Numbers(np.array([limit, 5.0]), np.ones((2, 1)), np.zeros((2, 1, 2)), np.zeros((2, 1, 2, 2)), np.zeros(2), np.eye(2))
    x.base[:, 0, 0] = 1.0
    for sign in (1, -1):
        x = x._replace(rest=np.array([-2.0, 1.0]) * sign)
        near = [e.at(ca.SX.zeros(2), Grip(ca.SX(1), ca.SX(0))) for e in x.equations(sticking=True)]
        Q, grips = load_equations._step(near, ca.SX.zeros(2))
        share = limit / 2.0
        close(np.array(ca.evalf(Q)).ravel(), share * np.array([2.0, -1.0]) * sign, 1e-7, "Q", scale=1.0)
        found = [[ca.evalf(y).full().item() for y in g] for g in grips]
        assert [g[0] for g in found] == [0, 1] and found[0][1] == sign


@pytest.mark.parametrize("load", [1e-3, 1.0, 1e6])
def test_the_residual_is_judged_beside_the_load(load):
    x = drawn(np.random.default_rng(11), 2, 1)
    x = x._replace(base=x.base * load)
    Q = np.array([3.0, -2.0]) * load
    want = np.abs(Q + x.factor * x.load(Q)) / (x.factor * x.load(Q))
    found = float(load_equations._residual(x.equations(sticking=False), ca.SX(Q)))
    assert found == pytest.approx(want.max(), rel=1e-4)


def test_rounds_are_called_and_not_written_out():
    """The text of the rounds is as long for many as for one."""
    equations = drawn(np.random.default_rng(13), 2, 1).equations(sticking=True)
    p = ca.SX.sym("p", pack(equations).numel())
    given = unpack(equations, p)
    of_one = ca.Function("one", [p], [load_equations._round(given, ca.SX.zeros(2))]).n_instructions()
    assert ca.Function("all", [p], list(load_equations.friction(given))).n_instructions() < load_equations.ROUNDS * of_one / 2
