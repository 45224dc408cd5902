"""Dynamics and a step whose second derivatives are exact: expressions in which no factorisation is differentiated.

Accelerations, multipliers and corrections solve M a - A^T l = g, A a = beta. Here they are calls of a function whose
derivatives are calls of itself, with those of the residual at constant a and l as right-hand sides, by the state too at which M
and A are taken. First derivatives by factors at hand (`dynamics/response.py`, `step_slopes`) are cheaper, and would be wrong if
they were differentiated again: a correction moves with its factors, and these have none of their own where, as in a straight
leg, a row loses a part.
"""

from __future__ import annotations

from collections.abc import Sequence

import casadi as ca

from pfaffian.dynamics.motion import shortest_change
from pfaffian.dynamics.multipliers import by_least_norm
from pfaffian.dynamics.response import combination
from pfaffian.maths.tree_factor import solve_W, solve_WT
from pfaffian.model.mechanism import Mechanism
from pfaffian.simulate.simulation import Simulation
from pfaffian.simulate.step import correct, time_step
from pfaffian.simulate.step_slopes import STAY, closed_loop
from pfaffian.simulate.variables import q_dot
from pfaffian.terms.pfaffian import POSITION, VELOCITY
from pfaffian.terms.terms import Terms, symbols

ORDERS = 2
"""Derivatives in which no factor is differentiated."""


def _state_of(T: Terms) -> ca.SX:
    """What M and A depend on."""
    return ca.vertcat(T.q, T.v, T.mechanism.p_symbols, T.t)


def _shortest(m: Mechanism, rows: Sequence[int], name: str) -> ca.Function:
    """(state, g, beta) -> (a, lambda) of M a - A^T lambda = g, A a = beta, with these rows of A."""
    T, every = symbols(m), list(rows)
    A, at, g, beta = T.A[every, :], _state_of(T), ca.SX.sym("g", m.nv), ca.SX.sym("beta", len(every))
    y, lam = solve_W(T.factor, g), ca.SX(0, 1)
    if every:
        right = shortest_change(T, rows=every if len(every) < T.A.shape[0] else None).solve(ca.SX.eye(len(every)))
        pushed = right @ (beta - T.Lam[every, :] @ y)
        y, lam = y + pushed, right.T @ pushed
    a, force = ca.SX.sym("a", m.nv), ca.SX.sym("lambda", len(every))
    f = ca.Function(f"{name}_0", [at, g, beta], [ca.densify(solve_WT(T.factor, y)), ca.densify(lam)], STAY)
    return _answering(f, ca.Function("residual", [at, a, force], [ca.densify(ca.vertcat(T.M @ a - A.T @ force, A @ a))]), name)


def _least(m: Mechanism, name: str) -> ca.Function:
    """(state, g, r) -> (lambda, w) of lambda - A w = g, A^T lambda = r: the multipliers of smallest norm of a reaction r."""
    T = symbols(m)
    n, at = T.A.shape[0], _state_of(T)
    g, r, lam, w = (ca.SX.sym(x, size) for x, size in (("g", n), ("r", m.nv), ("lambda", n), ("w", m.nv)))
    least = by_least_norm(T).solve(r - T.A.T @ g)
    f = ca.Function(f"{name}_0", [at, g, r], [ca.densify(g + least), combination(T, least)], STAY)
    return _answering(f, ca.Function("residual", [at, lam, w], [ca.densify(ca.vertcat(lam - T.A @ w, T.A.T @ lam))]), name)


def _answering(f: ca.Function, residual: ca.Function, name: str) -> ca.Function:
    """f: (state, g, beta) -> (a, l) with residual (state, a, l) = [g; beta], linear in a and l; then its derivatives answer."""
    for order in range(1, ORDERS + 1):
        f = _differentiable(f, residual, f"{name}_{order}")
    return f


def _differentiable(f: ca.Function, residual: ca.Function, name: str) -> ca.Function:
    """f, whose derivatives are calls of f as it is given."""
    at, g, beta = given = [ca.SX.sym(n, f.size1_in(i)) for i, n in enumerate(("at", "g", "beta"))]
    a, l = found = [ca.SX.sym(n, f.size1_out(i)) for i, n in enumerate(("a", "l"))]
    ways, bars = ([ca.SX.sym("d", x.numel()) for x in xs] for xs in (given, found))
    value, ends = residual(at, a, l), [0, g.numel(), g.numel() + beta.numel()]
    first, second = ca.vertsplit(ca.densify(ca.jtimes(value, at, ways[0])), ends)
    w, minus = f(at, bars[0], -bars[1])  # M w + A^T k = bar of a, -A w = bar of l
    by_state = -ca.jtimes(value, at, ca.vertcat(w, -minus), True)
    derivatives = [
        ca.Function(f"fwd1_{name}", [*given, *found, *ways], list(f(at, ways[1] - first, ways[2] - second)), STAY),
        ca.Function(f"adj1_{name}", [*given, *found, *bars], [ca.densify(by_state), w, -minus], STAY),
    ]
    return ca.Function(name, given, list(f(*given)), {**STAY, "cache": {d.name(): d for d in derivatives}})


def smooth_motion(T: Terms) -> tuple[ca.SX, ca.SX, ca.SX]:
    """v_dot, reaction and the multipliers of smallest norm at Terms of a mechanism without servo constraints."""
    m = T.mechanism
    v_dot, lam = _shortest(m, range(T.A.shape[0]), "motion")(_state_of(T), ca.densify(T.force), ca.densify(T.b))
    reaction = ca.densify(T.A.T @ lam)
    if T.row_blocks() is not None:  # rows may be redundant
        lam, _ = _least(m, "least")(_state_of(T), ca.SX(lam.numel(), 1), reaction)
    return v_dot, reaction, lam


def smooth_step(s: Simulation, h: float) -> ca.Function:
    """(x, u, p, t) -> x after a step under inputs that are held."""
    m, functions = s.mechanism, s.traced.functions
    if m.servos:  # whose forces are not those of their rows: differentiated as they are written
        step = s.traced.step
    else:
        shares = functions.project.size1_in(3) > 0
        step = time_step(
            functions._replace(rhs=_rhs(s, shares), project=_project(s, shares), terms=()), m, s.system.variables, s.scheme
        )
    x, w, _, p, t, _ = given = [ca.SX.sym(n, step.size1_in(i)) for i, n in enumerate(("x", "u", "u1", "p", "t", "h"))]
    there = step(x, w, w, p, t, h)[0]
    return ca.Function("step", [given[i] for i in (0, 1, 3, 4)], [there], ["x", "u", "p", "t"], ["x_next"])


def _rhs(s: Simulation, shares: bool) -> ca.Function:
    """The right-hand side, which hands on its state where corrections use the factors there."""
    c, none = closed_loop(s), ca.SX(0, 1)
    motion = _shortest(s.mechanism, range(c.T.A.shape[0]), "motion")
    v_dot, _ = motion(_state_of(c.T), ca.densify(c.T.force), ca.densify(c.T.b))
    results = [ca.vertcat(q_dot(c.T.kinematics), v_dot, c.z_dot), none, none, _state_of(c.T) if shares else none, none]
    return ca.Function("smooth_rhs", [c.x, c.w, s.mechanism.p_symbols, c.T.t], results, STAY)


def _project(s: Simulation, shares: bool) -> ca.Function:
    """The correction, by factors at the state that is handed on, or at its own."""
    T, z = s.system.at().T, ca.SX.sym("z", len(s.z))
    shortest = _shortest(s.mechanism, T.rows.at(POSITION, VELOCITY), "shortest")
    near = ca.SX.sym("near", shortest.size1_in(0) if shares else 0)

    def move(off: ca.SX) -> ca.SX:
        at, still = near if shares else _state_of(T), ca.SX(s.mechanism.nv, 1)
        return ca.horzcat(*[shortest(at, still, ca.densify(x))[0] for x in ca.horzsplit(off)])

    q, v, violation = correct(T, s.scheme, move)
    given = [ca.vertcat(T.q, T.v, z), s.mechanism.p_symbols, T.t, near]
    return ca.Function("smooth_project", given, [ca.densify(ca.vertcat(q, v, z)), violation], STAY)
