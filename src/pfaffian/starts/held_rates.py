"""Velocities and accelerations under given motions of some coordinates, and how near their state is to a singular one.

    A v = c,   A v_dot = b

with the given coordinates' rates as they are given. What the constraints leave free is as small as possible in the metric of M.
"""

from __future__ import annotations

from typing import NamedTuple

import casadi as ca
import numpy as np

from pfaffian import kernel
from pfaffian.errors import ModelError
from pfaffian.kernel.call.recipe import Backend
from pfaffian.maths.reflection import NOTHING
from pfaffian.maths.values import values
from pfaffian.model.mechanism import Mechanism, random_configuration
from pfaffian.starts.newton import Problem, call, coordinate_rates, lanes_for, shortest
from pfaffian.terms.equations_digest import digest
from pfaffian.terms.lengths import default_length
from pfaffian.terms.pfaffian import POSITION, VELOCITY, row_names
from pfaffian.terms.terms import relative_size, shared, turning
from pfaffian.terms.traced_now import remembered

SAMPLES = 32
"""Number of random configurations over which the length of a row in the coordinates that are not given is averaged."""


class StateRates(NamedTuple):
    """StateRates of states.

    v, v_dot: (runs, nv).   q_dot: (runs, nq).   w: (runs, nv) rates of the coordinates one by one: v, but of translations along
    the axes of their joint.   rank: (runs,) of the position rows in the coordinates that are not given.
    regularity: (runs,) 0 where these rows lose rank, at most 1: the least sine of the angle between a row and all others, in
    the metric of M, times the length of the row relative to its typical one.   row: (runs,) index of that row.
    """

    v: np.ndarray
    v_dot: np.ndarray
    q_dot: np.ndarray
    w: np.ndarray
    rank: np.ndarray
    regularity: np.ndarray
    row: np.ndarray


def rates(problem: Problem, q: np.ndarray, w: np.ndarray, a: np.ndarray, into: StateRates | None = None) -> StateRates:
    """The StateRates at q (runs, nq) on the constraints.

    w, a: (runs, nv) rates of the fixed coordinates and their derivatives, and what those of the others shall be near to.
    into: arrays for the results, new ones if it is not given.
    """
    fixed = tuple(problem.fixed.q[0].tolist())
    of = _kernel(problem.m, problem.backend, fixed, lanes_for(len(q)))
    given = q, w, a, np.sqrt(problem.fixed.weight), problem.p, problem.instants
    if into is None:
        found = call(of, *given)
        return StateRates(*found[:4], *[x[:, 0] for x in found[4:]])
    call(of, *given, into=[*into[:4], *[x[:, None] for x in into[4:]]])
    return into


def row_name(m: Mechanism, row: int) -> str:
    """Name of a row that `StateRates.row` counts."""
    return row_names(shared(m).kinematics)[shared(m).rows.at(POSITION)[row]]


@remembered(64)
def _kernel(m: Mechanism, backend: Backend, fixed: tuple[bool, ...], lanes: int) -> kernel.Kernel:
    """Kernel (q, w, a, stiffness, p, t) -> the fields of StateRates."""
    return kernel.compile(lambda: _function(m, fixed), backend=backend, lanes=lanes, key=f"held rates {fixed!r} {digest(m)}")


@remembered(64)
def _function(m: Mechanism, fixed: tuple[bool, ...]) -> ca.Function:
    """(q, w, a, stiffness, p, t) -> the fields of StateRates."""
    T, free = shared(m), ca.SX([0.0 if x else 1.0 for x in fixed])
    if rows := turning(T):
        name = row_names(T.kinematics)[rows[0]]
        raise ModelError(f"along=True: row {name!r} is not affine in v, so that no rates follow from those that are given")
    w, a, stiffness = (ca.SX.sym(name, m.nv) for name in ("w", "a", "stiffness"))
    R, moving, K = coordinate_rates(T), T.rows.at(POSITION, VELOCITY), T.kinematics.kinematic_matrix
    A = T.A[moving, :] @ R
    step = shortest(T, A, R.T @ T.M @ R, moving, free, stiffness)

    def at(x: ca.SX, v: ca.SX) -> ca.SX:
        return ca.substitute(ca.densify(x), T.v, v)

    w_all = w - step.solve(at(T.rows.eta[moving], R @ w))
    v = R @ w_all
    q_dot = K @ v
    turned = ca.jtimes(R @ w, T.q, q_dot)  # d/dt R at constant w
    turned = ca.substitute(ca.densify(turned), w, w_all)
    a_all = a - step.solve(T.A[moving, :] @ (R @ a + turned) - at(T.b[moving], v))
    near, row, rank = _regularity(m, fixed, stiffness)
    outputs = v, R @ a_all + turned, q_dot, w_all, rank, near, row
    inputs = [T.q, w, a, stiffness, m.p_symbols, T.t]
    return ca.Function("rates", inputs, [ca.densify(x) for x in outputs], {"cse": True})


def _regularity(m: Mechanism, fixed: tuple[bool, ...], stiffness: ca.SX) -> tuple[ca.SX, ca.SX, ca.SX]:
    """The regularity, the index of its row, and the rank of the position rows, (1, 1) each; see `StateRates`."""
    T, firm = shared(m), shared(m).rows.at(POSITION)
    free, R = ca.SX([0.0 if x else 1.0 for x in fixed]), coordinate_rates(T)
    if not firm:
        return ca.SX(1), ca.SX(0), ca.SX(0)
    A = T.A[firm, :] @ R
    step = shortest(T, A, R.T @ T.M @ R, firm, free, stiffness)
    assert step.minimum is not None
    size = ca.sqrt(relative_size(T, A @ ca.diag(free), firm))
    f = ca.Function("size", [T.q, m.p_symbols, T.t], [ca.densify(size)])
    random, long = np.random.default_rng(23), default_length(m) or 1.0  # for a mean, which decides nothing
    drawn = [values(f, random_configuration(m, random, long), m.p_defaults, 0)[0] for _ in range(SAMPLES)]
    typical = np.sqrt(np.nanmean(np.square(drawn), axis=0))
    motion = ca.sqrt(ca.sum1(step.minimum.solve(ca.SX.eye(len(firm))) ** 2)).T  # that changes one row alone
    length = ca.sqrt(ca.sum2(step.Lam**2))
    short = ca.fmin(1, size / ca.DM(np.maximum(typical, 1e-300)))
    each = ca.densify(ca.if_else(motion > 0, short / ca.fmax(motion * length, NOTHING), 1))
    least, row = ca.SX(1), ca.SX(0)
    for i in range(len(firm)):
        row = ca.if_else(each[i] < least, i, row)
        least = ca.fmin(least, each[i])
    return least, row, step.rank
