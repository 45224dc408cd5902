"""Dynamics and a step whose second derivatives are exact: expressions in which no factorisation is differentiated.

Accelerations, multipliers and corrections solve M a - A^T l = g, A a = beta. Here they are calls of a function whose
derivatives are calls of itself. The right-hand sides of those calls are derivatives of the residual at constant a and l, also
with respect to the state at which M and A are evaluated. First derivatives that reuse existing factors
(`dynamics/response.py`, `step_slopes`) are cheaper, but would be wrong if differentiated again: a correction changes with its
factors, and these have no derivative where a row loses a part, as in a straight leg.
"""

from __future__ import annotations

from collections.abc import Sequence

import casadi as ca

from pfaffian.differentiation.step_slopes import STAY
from pfaffian.dynamics.motion import shortest_change
from pfaffian.dynamics.multipliers import by_least_norm
from pfaffian.dynamics.response import combination
from pfaffian.maths.tree_factor import solve_W, solve_WT
from pfaffian.model.mechanism import Mechanism
from pfaffian.simulate.step.closed_loop import closed_loop
from pfaffian.simulate.step.simulation import Simulation
from pfaffian.simulate.step.step import correct, time_step
from pfaffian.states.variables import q_dot
from pfaffian.terms.pfaffian import POSITION, VELOCITY
from pfaffian.terms.terms import Terms, symbols

ORDERS = 2
"""Orders of derivatives in which no factor is differentiated."""


def _state_of(T: Terms) -> ca.SX:
    """The state on which M and A depend: (q, v, p, t)."""
    return ca.vertcat(T.q, T.v, T.mechanism.p_symbols, T.t)


def _constrained_solution(m: Mechanism, rows: Sequence[int], name: str) -> ca.Function:
    """(state, g, beta) -> the solution (a, lambda) of M a - A^T lambda = g, A a = beta, with these rows of A."""
    T, selected = symbols(m), list(rows)
    A, at, g, beta = T.A[selected, :], _state_of(T), ca.SX.sym("g", m.nv), ca.SX.sym("beta", len(selected))
    y, lam = solve_W(T.factor, g), ca.SX(0, 1)
    if selected:
        right = shortest_change(T, rows=selected if len(selected) < T.A.shape[0] else None).solve(ca.SX.eye(len(selected)))
        pushed = right @ (beta - T.Lam[selected, :] @ y)
        y, lam = y + pushed, right.T @ pushed
    a, force = ca.SX.sym("a", m.nv), ca.SX.sym("lambda", len(selected))
    f = ca.Function(f"{name}_0", [at, g, beta], [ca.densify(solve_WT(T.factor, y)), ca.densify(lam)], STAY)
    return _with_derivatives(
        f, ca.Function("residual", [at, a, force], [ca.densify(ca.vertcat(T.M @ a - A.T @ force, A @ a))]), name
    )


def _least_multipliers(m: Mechanism, name: str) -> ca.Function:
    """(state, g, r) -> the solution (lambda, w) of lambda - A w = g, A^T lambda = r. At g = 0, lambda are the multipliers of
    smallest norm of the reaction r."""
    T = symbols(m)
    n, at = T.A.shape[0], _state_of(T)
    g, r, lam, w = (ca.SX.sym(x, size) for x, size in (("g", n), ("r", m.nv), ("lambda", n), ("w", m.nv)))
    least = by_least_norm(T).solve(r - T.A.T @ g)
    f = ca.Function(f"{name}_0", [at, g, r], [ca.densify(g + least), combination(T, least)], STAY)
    return _with_derivatives(
        f, ca.Function("residual", [at, lam, w], [ca.densify(ca.vertcat(lam - T.A @ w, T.A.T @ lam))]), name
    )


def _with_derivatives(f: ca.Function, residual: ca.Function, name: str) -> ca.Function:
    """f with ORDERS derivatives that are calls of f.

    f: (state, g, beta) -> (a, l) solves residual(state, a, l) = [g; beta], which is linear in a and l.
    """
    for order in range(1, ORDERS + 1):
        f = _with_derivatives_once(f, residual, f"{name}_{order}")
    return f


def _with_derivatives_once(f: ca.Function, residual: ca.Function, name: str) -> ca.Function:
    """f with first derivatives that are calls of the given f."""
    at, g, beta = given = [ca.SX.sym(n, f.size1_in(i)) for i, n in enumerate(("at", "g", "beta"))]
    a, l = solution = [ca.SX.sym(n, f.size1_out(i)) for i, n in enumerate(("a", "l"))]
    directions, bars = ([ca.SX.sym("d", x.numel()) for x in xs] for xs in (given, solution))
    value, ends = residual(at, a, l), [0, g.numel(), g.numel() + beta.numel()]
    first, second = ca.vertsplit(ca.densify(ca.jtimes(value, at, directions[0])), ends)
    w, minus = f(at, bars[0], -bars[1])  # M w + A^T k = bar of a, -A w = bar of l
    by_state = -ca.jtimes(value, at, ca.vertcat(w, -minus), True)
    derivatives = [
        ca.Function(
            f"fwd1_{name}", [*given, *solution, *directions], list(f(at, directions[1] - first, directions[2] - second)), STAY
        ),
        ca.Function(f"adj1_{name}", [*given, *solution, *bars], [ca.densify(by_state), w, -minus], STAY),
    ]
    return ca.Function(name, given, list(f(*given)), {**STAY, "cache": {d.name(): d for d in derivatives}})


def smooth_motion(T: Terms) -> tuple[ca.SX, ca.SX, ca.SX]:
    """v_dot, reaction and multipliers of smallest norm, at Terms of a mechanism without servo constraints."""
    m = T.mechanism
    v_dot, lam = _constrained_solution(m, range(T.A.shape[0]), "motion")(_state_of(T), ca.densify(T.force), ca.densify(T.b))
    reaction = ca.densify(T.A.T @ lam)
    if T.row_blocks() is not None:  # rows may be redundant
        lam, _ = _least_multipliers(m, "least")(_state_of(T), ca.SX(lam.numel(), 1), reaction)
    return v_dot, reaction, lam


def smooth_step(s: Simulation, h: float) -> ca.Function:
    """(x, u, p, t) -> x after a step of h [s] under constant inputs, with exact second derivatives."""
    m, functions = s.mechanism, s.traced.functions
    if m.servos:  # servo forces do not act along their rows, so the step is differentiated as it is written
        step = s.traced.step
    else:
        shares_factors = functions.project.size1_in(3) > 0
        step = time_step(
            functions._replace(rhs=_rhs(s, shares_factors), project=_project(s, shares_factors), terms=()),
            m,
            s.system.variables,
            s.scheme,
        )
    x, w, _, p, t, _ = given = [ca.SX.sym(n, step.size1_in(i)) for i, n in enumerate(("x", "u", "u1", "p", "t", "h"))]
    x_next = step(x, w, w, p, t, h)[0]
    return ca.Function("step", [given[i] for i in (0, 1, 3, 4)], [x_next], ["x", "u", "p", "t"], ["x_next"])


def _rhs(s: Simulation, shares_factors: bool) -> ca.Function:
    """The right-hand side. shares_factors: whether corrections use the factors at its state, which is then an output."""
    loop, none = closed_loop(s, s.system.at()), ca.SX(0, 1)
    T = loop.pushed
    motion = _constrained_solution(s.mechanism, range(T.A.shape[0]), "motion")
    v_dot, _ = motion(_state_of(T), ca.densify(T.force), ca.densify(T.b))
    rate = ca.vertcat(q_dot(T.kinematics), v_dot, ca.densify(loop.command.z_dot))
    results = [rate, none, none, _state_of(T) if shares_factors else none, none]
    return ca.Function("smooth_rhs", [loop.x, loop.w, s.mechanism.p_symbols, T.t], results, STAY)


def _project(s: Simulation, shares_factors: bool) -> ca.Function:
    """The correction onto the constraints. shares_factors: whether it uses the factors at a state that the right-hand side
    passes on, or those at the state that is corrected."""
    T, z = s.system.at().T, ca.SX.sym("z", len(s.z))
    shortest = _constrained_solution(s.mechanism, T.rows.at(POSITION, VELOCITY), "shortest")
    factor_state = ca.SX.sym("near", shortest.size1_in(0) if shares_factors else 0)

    def move(off: ca.SX) -> ca.SX:
        at, still = factor_state if shares_factors else _state_of(T), ca.SX(s.mechanism.nv, 1)
        return ca.horzcat(*[shortest(at, still, ca.densify(x))[0] for x in ca.horzsplit(off)])

    q, v, violation = correct(T, s.scheme, move)
    given = [ca.vertcat(T.q, T.v, z), s.mechanism.p_symbols, T.t, factor_state]
    return ca.Function("smooth_project", given, [ca.densify(ca.vertcat(q, v, z)), violation], STAY)
