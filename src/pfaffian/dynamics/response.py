"""How accelerations and reactions answer small changes, with the factors of the dynamics themselves.

M v_dot - A^T lambda - Z^T mu = f + B u - c,   A v_dot = b,   A_s v_dot = b_s hold along any change, so that the answers solve
the same equations, the changes of the residuals at constant v_dot, lambda and mu on their right-hand side. No derivative
passes through a factorisation or a rank decision.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import casadi as ca

from pfaffian.dynamics.controlforce import decoupled
from pfaffian.dynamics.motion import RANK_TOLERANCE, shortest_change
from pfaffian.dynamics.multipliers import by_least_norm
from pfaffian.maths.linear import orthogonalise
from pfaffian.maths.minimum_norm import MinimumNorm
from pfaffian.maths.tree_factor import TreeFactor, multiply_W, solve_W, solve_WT
from pfaffian.terms.terms import Terms


class FixedMotion(NamedTuple):
    """v_dot: (nv, 1).   multipliers: (m, 1) of ideal rows, of smallest norm where rows are redundant.
    mu: (ms, 1) forces of servo constraints."""

    v_dot: ca.SX
    multipliers: ca.SX
    mu: ca.SX


class Answered(NamedTuple):
    """For each right-hand side: v_dot (nv, k), multipliers (m, k), mu (ms, k), reaction (nv, k) A^T multipliers + Z^T mu."""

    v_dot: ca.SX
    multipliers: ca.SX
    mu: ca.SX
    reaction: ca.SX


class Factors(NamedTuple):
    """What answers are computed with.

    metric: W of M = W W^T.   Lam: (m, nv) the ideal rows in mass-weighted coordinates.
    right: (nv, m) the smallest y with Lam y = e_i in column i.
    directions, targets: (nv, ms), (ms, nv) servo directions and rows, in mass-weighted coordinates.
    pushed: (nv, ms) what unit servo forces do within the ideal rows.
    decouple: (ms, ms) servo forces for unit accelerations of the servo rows.
    """

    metric: TreeFactor
    Lam: ca.SX
    right: ca.SX
    directions: ca.SX
    targets: ca.SX
    pushed: ca.SX
    decouple: ca.SX


class Response(NamedTuple):
    """The factors at some Terms.

    rank: (1, 1) of ideal rows.   realisable: (1, 1) whether servo forces can do what their rows require.
    shared: solves A^T lambda = reaction by lambda of smallest norm, where rows are redundant and somebody asks for lambda.
    """

    terms: Terms
    factors: Factors
    rank: ca.SX
    realisable: ca.SX
    shared: MinimumNorm | None

    def solve(self, g: ca.SX, beta: ca.SX, beta_s: ca.SX) -> Answered:
        """M a - A^T lambda - Z^T mu = g (nv, k),   A a = beta (m, k),   A_s a = beta_s (ms, k).

        With redundant rows beta of those that are kept counts, and lambda is zero on the others.
        """
        F, Lam, right, directions, targets, pushed, decouple = self.factors
        free = solve_W(F, g)
        correction = right @ (beta - Lam @ free)
        mu = decouple @ (beta_s - targets @ (free + correction))
        correction = correction + (pushed - directions) @ mu
        multipliers = right.T @ correction
        correction = correction + directions @ mu
        reaction = ca.horzcat(*[multiply_W(F, correction[:, i]) for i in range(g.shape[1])])
        return Answered(solve_WT(F, free + correction), multipliers, mu, ca.SX(ca.reshape(reaction, *g.shape)))

    def motion(self) -> FixedMotion:
        """The motion itself."""
        T = self.terms
        found = self.solve(ca.densify(T.force), ca.densify(T.b), ca.densify(T.servo.b))
        lam = found.multipliers
        if self.shared is not None:
            lam = self.shared.solve(found.reaction - T.servo.Z.T @ found.mu)
        return FixedMotion(*[ca.densify(x) for x in (found.v_dot, lam, found.mu)])


def response(T: Terms, tolerance: float = RANK_TOLERANCE, *, least: bool = True) -> Response:
    """The Response at T.   least: whether multipliers of redundant rows are those of smallest norm; else any that serve."""
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
    """What vanishes on a motion, at symbols for v_dot, multipliers and mu.

    force: (nv, 1) M v_dot + c - f - B u - pushing.   rows: (m, 1) A v_dot - b.   servo: (ms, 1) A_s v_dot - b_s.
    pushing: (nv, 1) A^T lambda + Z^T mu.   motion: the symbols.
    """

    force: ca.SX
    rows: ca.SX
    servo: ca.SX
    pushing: ca.SX
    motion: FixedMotion


def residuals(T: Terms) -> Residuals:
    """The Residuals at T."""
    sizes = T.mechanism.nv, T.A.shape[0], T.servo.A.shape[0]
    motion = FixedMotion(*[ca.SX.sym(name, n) for name, n in zip(FixedMotion._fields, sizes, strict=True)])
    a, pushing = motion.v_dot, T.A.T @ motion.multipliers + T.servo.Z.T @ motion.mu
    force = T.inertia_force(a) - T.generalised_input - pushing
    return Residuals(force, T.A @ a - T.b, T.servo.A @ a - T.servo.b, pushing, motion)


class Slopes(NamedTuple):
    """Derivatives along k directions: v_dot, reaction (nv, k), multipliers (m, k), mu (ms, k)."""

    v_dot: ca.SX
    multipliers: ca.SX
    mu: ca.SX
    reaction: ca.SX


def slopes(at: Response, motion: FixedMotion, along: Callable[[ca.SX], ca.SX]) -> Slopes:
    """Derivatives of the motion along any directions.

    along: a column (n, 1) -> its derivatives (n, k) along them, v_dot, multipliers and mu constant.
    """
    parts, symbols, values = _parts(at, motion)
    return _answered(at, ca.substitute([along(x) for x in parts], symbols, values))


def gradient(at: Response, motion: FixedMotion, cotangents: Slopes, by: ca.SX) -> ca.SX:
    """(n, 1) the derivative by `by` (n, 1), symbols, of the sum of the motion's numbers times cotangents: one sweep back.

    cotangents: of v_dot (nv, 1), multipliers (m, 1), mu (ms, 1) and reaction (nv, 1); empty (0, 0) for none.
    """
    parts, symbols, values = _parts(at, motion)
    changes = [ca.SX.sym("d", x.numel()) for x in parts]
    given = [(x, y) for x, y in zip(_answered(at, changes), cotangents, strict=True) if y.numel()]
    answers, seeds = (ca.vertcat(ca.SX(0, 1), *x) for x in zip(*given, strict=True))
    back = ca.jtimes(answers, ca.vertcat(*changes), seeds, True)  # linear in the changes, so that none is left in it
    return ca.substitute([ca.densify(ca.jtimes(ca.vertcat(*parts), by, back, True))], symbols, values)[0]


def _parts(at: Response, motion: FixedMotion) -> tuple[list[ca.SX], list[ca.SX], list[ca.SX]]:
    """What changes: the Residuals' columns, and with redundant rows A w, w such that A w are the multipliers.

    Then the symbols in them that are held constant, and the values of these."""
    T, r = at.terms, residuals(at.terms)
    parts, symbols, values = [r.force, r.rows, r.servo, r.pushing], [*r.motion], [*motion]
    if at.shared is not None:
        w = ca.SX.sym("w", T.mechanism.nv)
        parts, symbols, values = [*parts, T.A @ w], [*symbols, w], [*values, combination(T, motion.multipliers)]
    return [ca.densify(x) for x in parts], symbols, values


def _answered(at: Response, moved: list[ca.SX]) -> Slopes:
    """The answer to changes (n, k) of the columns of `_parts`."""
    T, answer = at.terms, at.solve(*[-x for x in moved[:3]])
    lam = answer.multipliers
    if at.shared is not None:
        ideal = answer.reaction - T.servo.Z.T @ answer.mu
        lam = at.shared.solve(ideal - T.A.T @ moved[4]) + moved[4]
    return Slopes(answer.v_dot, lam, answer.mu, answer.reaction + moved[3])


def combination(T: Terms, lam: ca.SX) -> ca.SX:
    """(nv, 1) the smallest w with A w = lambda, for multipliers of smallest norm, which are such a combination of columns."""
    rows = orthogonalise(T.A, lam, RANK_TOLERANCE, T.row_size, groups=T.groups)
    return ca.densify(rows.Q.T @ rows.D)
