"""Response of accelerations and reactions to small changes, computed with the factors of the dynamics.

M v_dot - A^T lambda - Z^T mu = f + B u - c,   A v_dot = b,   A_s v_dot = b_s hold along any change. The responses therefore
solve these equations too, with the changes of the residuals at constant v_dot, lambda and mu as right-hand side. No
factorisation or rank decision is differentiated.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import casadi as ca

from pfaffian.dynamics.controlforce import decoupled
from pfaffian.dynamics.motion import RANK_TOLERANCE, shortest_change
from pfaffian.dynamics.multipliers import by_least_norm
from pfaffian.maths.linear import orthogonalise
from pfaffian.maths.minimum_norm import MinimumNorm
from pfaffian.maths.tree_factor import multiply_W, solve_W, solve_WT
from pfaffian.terms.terms import Terms


class FixedMotion(NamedTuple):
    """A motion whose numbers are constant while residuals are differentiated.

    v_dot: (nv, 1).   multipliers: (m, 1) of ideal rows, of smallest norm where rows are redundant.
    mu: (ms, 1) forces of servo constraints.
    """

    v_dot: ca.SX
    multipliers: ca.SX
    mu: ca.SX


class Solution(NamedTuple):
    """Solution for k right-hand sides.

    v_dot: (nv, k).   multipliers: (m, k).   mu: (ms, k).   reaction: (nv, k) A^T multipliers + Z^T mu.
    """

    v_dot: ca.SX
    multipliers: ca.SX
    mu: ca.SX
    reaction: ca.SX


class Factors(NamedTuple):
    """Factors of the dynamics from which responses are computed: expressions, or arrays of their values.

    metric: W of M = W W^T.   Lam: (m, nv) the ideal rows in mass-weighted coordinates.
    right: (nv, m) right inverse of Lam; column i is the smallest y with Lam y = e_i.
    directions, targets: (nv, ms), (ms, nv) servo directions and rows, in mass-weighted coordinates.
    pushed: (nv, ms) accelerations due to unit servo forces that the ideal rows allow.
    decouple: (ms, ms) servo forces for unit accelerations of the servo rows.
    """

    metric: Any
    Lam: Any
    right: Any
    directions: Any
    targets: Any
    pushed: Any
    decouple: Any

    def respond(self, free: Any, beta: Any, beta_s: Any) -> tuple[Any, Any, Any]:
        """Correction (nv, k) of accelerations without constraints, `free` (nv, k), in mass-weighted coordinates, the part of
        it without servo forces (nv, k), and these forces mu (ms, k), for the rows' accelerations beta and beta_s."""
        correction = self.right @ (beta - self.Lam @ free)
        mu = self.decouple @ (beta_s - self.targets @ (free + correction))
        ideal = correction + (self.pushed - self.directions) @ mu
        return ideal + self.directions @ mu, ideal, mu


class Response(NamedTuple):
    """The factors of the dynamics at some Terms, and the solution of its equations with them.

    rank: (1, 1) of ideal rows.   realisable: (1, 1) whether servo forces can produce the accelerations that their rows require.
    shared: factorisation that solves A^T lambda = reaction by the lambda of smallest norm; None if rows are not redundant, or
        that lambda is not needed.
    """

    terms: Terms
    factors: Factors
    rank: ca.SX
    realisable: ca.SX
    shared: MinimumNorm | None

    def solve(self, g: ca.SX, beta: ca.SX, beta_s: ca.SX) -> Solution:
        """Solve M a - A^T lambda - Z^T mu = g (nv, k),   A a = beta (m, k),   A_s a = beta_s (ms, k).

        If rows are redundant, only beta of the rows in use counts, and lambda is zero on the others.
        """
        F, free = self.factors.metric, solve_W(self.factors.metric, g)
        correction, ideal, mu = self.factors.respond(free, beta, beta_s)
        return Solution(solve_WT(F, free + correction), self.factors.right.T @ ideal, mu, multiply_W(F, correction))

    def motion(self) -> FixedMotion:
        """The motion at these Terms, as numbers to be treated as constant."""
        T = self.terms
        solution = self.solve(ca.densify(T.force), ca.densify(T.b), ca.densify(T.servo.b))
        lam = solution.multipliers
        if self.shared is not None:
            lam = self.shared.solve(solution.reaction - T.servo.Z.T @ solution.mu)
        return FixedMotion(*[ca.densify(x) for x in (solution.v_dot, lam, solution.mu)])


def response(T: Terms, tolerance: float = RANK_TOLERANCE, *, least: bool = True) -> Response:
    """The solution of the motion for any forces and targets, factored once.

    least: whether multipliers of redundant rows have smallest norm; if False, any solution is used.
    """
    n, m, ms = T.mechanism.nv, T.A.shape[0], T.servo.A.shape[0]
    right, rank, realisable, shared, decouple = ca.SX(n, m), ca.SX(0), ca.SX(1), None, ca.SX(ms, ms)
    if m:
        change = shortest_change(T, tolerance)
        right, rank = change.solve(ca.SX.eye(m)), change.rank
        shared = by_least_norm(T, tolerance) if least and T.row_blocks() is not None else None
    directions, targets = solve_W(T.factor, T.servo.Z.T), solve_W(T.factor, T.servo.A.T).T
    pushed = ca.densify(directions - right @ (T.Lam @ directions))
    if ms:
        unit, solved = decoupled(targets @ pushed, ca.SX.eye(ms), targets, directions, tolerance)
        decouple, realisable = ca.diag(unit) @ (solved.Q.T @ solved.D), solved.rank >= ms
    return Response(T, Factors(T.factor, T.Lam, right, directions, targets, pushed, decouple), rank, realisable, shared)


class Residuals(NamedTuple):
    """Residuals of the equations, which vanish on a motion, at symbols for v_dot, multipliers and mu.

    force: (nv, 1) M v_dot + c - f - B u - pushing.   rows: (m, 1) A v_dot - b.   servo: (ms, 1) A_s v_dot - b_s.
    pushing: (nv, 1) A^T lambda + Z^T mu.   motion: the symbols.
    """

    force: ca.SX
    rows: ca.SX
    servo: ca.SX
    pushing: ca.SX
    motion: FixedMotion


def residuals(T: Terms) -> Residuals:
    """The equations of motion with every term on one side, at Terms and at new symbols for accelerations and multipliers."""
    sizes = T.mechanism.nv, T.A.shape[0], T.servo.A.shape[0]
    motion = FixedMotion(*[ca.SX.sym(name, n) for name, n in zip(FixedMotion._fields, sizes, strict=True)])
    a, pushing = motion.v_dot, T.A.T @ motion.multipliers + T.servo.Z.T @ motion.mu
    force = T.inertia_force(a) - T.generalised_input - pushing
    return Residuals(force, T.A @ a - T.b, T.servo.A @ a - T.servo.b, pushing, motion)


class Slopes(NamedTuple):
    """Derivatives of the motion along k directions: v_dot and reaction (nv, k), multipliers (m, k), mu (ms, k)."""

    v_dot: ca.SX
    multipliers: ca.SX
    mu: ca.SX
    reaction: ca.SX


def slopes(at: Response, motion: FixedMotion, along: Callable[[ca.SX], ca.SX]) -> Slopes:
    """Derivatives of the motion along any directions.

    motion: the motion at which to differentiate.
    along: function column (n, 1) -> its derivatives (n, k) along the directions, with constant v_dot, multipliers and mu.
    """
    parts, symbols, values = _parts(at, motion)
    return _response_to(at, ca.substitute([along(x) for x in parts], symbols, values))


def gradient(at: Response, motion: FixedMotion, cotangents: Slopes, by: ca.SX) -> ca.SX:
    """Gradient (n, 1) of the motion's numbers times cotangents by the symbols `by` (n, 1), in one backward sweep.

    motion: the motion at which to differentiate.
    cotangents: weights of v_dot (nv, 1), multipliers (m, 1), mu (ms, 1) and reaction (nv, 1); empty (0, 0) for none.
    """
    parts, symbols, values = _parts(at, motion)
    changes = [ca.SX.sym("d", x.numel()) for x in parts]
    weighted = [(x, y) for x, y in zip(_response_to(at, changes), cotangents, strict=True) if y.numel()]
    numbers, seeds = (ca.vertcat(ca.SX(0, 1), *x) for x in zip(*weighted, strict=True))
    back = ca.jtimes(numbers, ca.vertcat(*changes), seeds, True)  # contains no changes: numbers are linear in them
    return ca.substitute([ca.densify(ca.jtimes(ca.vertcat(*parts), by, back, True))], symbols, values)[0]


def _parts(at: Response, motion: FixedMotion) -> tuple[list[ca.SX], list[ca.SX], list[ca.SX]]:
    """The columns to differentiate, the symbols in them that stay constant, and the values of these symbols.

    The columns are the Residuals and, with redundant rows, A w for the w such that A w are the multipliers.
    """
    T, r = at.terms, residuals(at.terms)
    parts, symbols, values = [r.force, r.rows, r.servo, r.pushing], [*r.motion], [*motion]
    if at.shared is not None:
        w = ca.SX.sym("w", T.mechanism.nv)
        parts, symbols, values = [*parts, T.A @ w], [*symbols, w], [*values, combination(T, motion.multipliers)]
    return [ca.densify(x) for x in parts], symbols, values


def _response_to(at: Response, moved: list[ca.SX]) -> Slopes:
    """The response to changes `moved` (n, k) of the columns of `_parts`."""
    force, rows, servo, pushing, *combined = moved
    T, solution = at.terms, at.solve(-force, -rows, -servo)
    lam = solution.multipliers
    if at.shared is not None:
        ideal = solution.reaction - T.servo.Z.T @ solution.mu
        lam = at.shared.solve(ideal - T.A.T @ combined[0]) + combined[0]
    return Slopes(solution.v_dot, lam, solution.mu, solution.reaction + pushing)


def combination(T: Terms, lam: ca.SX) -> ca.SX:
    """(nv, 1) the smallest w with A w = lambda; multipliers of smallest norm are such a combination of the columns of A."""
    rows = orthogonalise(T.A, lam, RANK_TOLERANCE, T.row_size, groups=T.groups)
    return ca.densify(rows.Q.T @ rows.D)
