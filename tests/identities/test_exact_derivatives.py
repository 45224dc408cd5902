"""Derivatives of the motion of fifty random constrained machines, to ten digits and more.

CasADi differentiates the formulation itself, through its factorisations, which the library never does. The multipliers of
smallest norm are derived from the reaction by NumPy, with the derivative of a pseudoinverse. All are compared along a random
change of q, v, u and t that the constraints allow to first order, so that redundant rows are no exception.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import casadi as ca
import numpy as np
import pytest

import pfaffian as pf
from pfaffian.dynamics.controlforce import ideal_reaction
from pfaffian.terms.terms import symbols
from tests.graph_twin import graph_twin
from tests.identities.test_graphs import bare
from tests.random_mechanisms import (
    CLOSURES,
    EXTRAS,
    JOINTS,
    Case,
    closing,
    constrained,
    moving,
    on_velocity,
    placements,
    random_forces,
    random_tree,
)
from tests.tolerance import close

EXACT = 1e-10
"""Bound relative to the largest entry; the largest difference of these machines is near 1e-13."""

RANK = 1e-8
"""Singular values below this part of the largest one count as zero."""

KINDS = tuple(kind for kind in EXTRAS if kind != "squared")  # the rows of "squared" have lost rank on the constraints
CHARTED = ("revolute", "prismatic", "planar", "spherical", "free")


def drawn(random: np.random.Generator, of: Sequence[str], least: int, most: int) -> list[str]:
    return [str(name) for name in random.choice(of, int(random.integers(least, most + 1)))]


def tree(random: np.random.Generator, of: Sequence[str]) -> tuple[list[str], list[int]]:
    kinds = [*drawn(random, [kind for kind in of if kind != "fixed"], 1, 1), *drawn(random, of, 0, 1)]
    return kinds, [int(random.integers(-1, i)) for i in range(len(kinds))]


def loop(seed: int) -> Case:
    """A tree with closures and with rows on motion, acceleration and time, some of them redundant."""
    random = np.random.default_rng(seed)
    kinds, parents = tree(random, JOINTS)
    closures = drawn(random, CLOSURES, 0, len(kinds))
    return constrained(random, kinds, parents, closures, drawn(random, KINDS, 0 if closures else 1, 3))


def graph(seed: int) -> Case:
    """A graph in coordinates that have constraints, with a ball joint to the world and a rolling row."""
    random = np.random.default_rng(seed)
    m = random_forces(random, bare(random_tree(random, *tree(random, CHARTED))))
    q, last = pf.random_configuration(m, random), m.bodies[-1].name
    ball = closing("ball", "point-on-plane", "world", last, random, placements(m, q))
    rolling = pf.nonholonomic("rolling", lambda k: k.velocity(last, (0.1, 0.2, 0.3))[0] - 0.1 * ca.cos(k.t))
    m = m.with_(constraints=[ball, rolling])
    twin, v = graph_twin(m), on_velocity(m, q, random.normal(size=m.nv), 0.4)
    return Case(twin.m, twin.q(q), v, random.normal(size=m.nu), 0.4)


def servo(seed: int) -> Case:
    """A motor that controls a coordinate of a point along a path in time; for odd seeds there is also a rolling row,
    written twice, once with a factor that varies."""
    random = np.random.default_rng(seed)
    m = random_forces(random, random_tree(random, *tree(random, [kind for kind in JOINTS if kind != "fixed"])))
    body, x, t = moving(m)[-1], random.normal(size=3), 0.2
    path = pf.holonomic("path", lambda k: k.position(body, x)[seed % 3] - 0.3 * ca.sin(k.t))
    controlled, across = pf.servo(path, [m.actuators[0].name], stiffness=9.0, damping=2.0), (seed + 1) % 3

    def rolling(k: pf.Kinematics) -> ca.SX:
        return k.velocity(body, x)[across] - 0.2 * ca.cos(k.t)

    rows = [pf.nonholonomic("rolling", rolling), pf.nonholonomic("again", lambda k: (2 + ca.sin(k.q[0])) * rolling(k))]
    rows = rows if seed % 2 and m.nv > 2 else []
    q, v = pf.random_configuration(m, random), random.normal(size=m.nv)
    v = on_velocity(m.with_(constraints=rows), q, v, t)
    return Case(m.with_(constraints=[controlled, *rows]), q, v, random.normal(size=m.nu), t)


def allowed(J: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """A random vector in the null space of the rows J, of any rank."""
    way = random.normal(size=J.shape[1])
    return way - np.linalg.pinv(J, rcond=RANK) @ (J @ way)


def pseudoinverse(X: np.ndarray, dX: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """X^+ and its derivative at constant rank."""
    P = np.linalg.pinv(X, rcond=RANK)
    across, along = np.eye(X.shape[0]) - X @ P, np.eye(X.shape[1]) - P @ X
    return P, -P @ dX @ P + P @ P.T @ dX.T @ across + along @ dX.T @ P.T @ P


def compare(case: Case) -> int:
    """Compare the derivatives of a case; returns the number of redundant rows."""
    m, random = case.m, np.random.default_rng(0)
    T = symbols(m)
    motion = pf.FORMULATIONS["control-force" if m.servos else "gauss"](T)
    K = ca.densify(T.kinematics.kinematic_matrix)
    x, way = ca.vertcat(T.q, T.v, T.u, T.t), ca.SX.sym("way", m.nq + m.nv + m.nu + 1)
    numbers = [ca.densify(y) for y in (motion.v_dot, motion.reaction, ideal_reaction(T, motion), ca.vec(ca.densify(T.A)))]
    moved = ca.jtimes(ca.vertcat(*numbers), x, way)
    on = ca.jacobian(ca.vertcat(T.rows.phi, T.rows.eta), ca.vertcat(T.q, T.v, T.t)) @ ca.diagcat(K, ca.SX.eye(m.nv + 1))
    ours = pf.calculus.motion_derivatives(T, by=["q", "v", "u", "t"], of=["v_dot", "reaction", "multipliers"])
    at = [T.q, T.v, T.u, T.t]
    f = ca.Function("f", at, [on, K, ours, *numbers])
    J, K, ours, *numbers = (np.array(y) for y in f(case.q, case.v, case.u, case.t))
    dq, dv, dt = np.split(allowed(J, random), [m.nv, 2 * m.nv])
    du = random.normal(size=m.nu)
    along = np.array(
        ca.Function("along", [*at, way], [moved])(case.q, case.v, case.u, case.t, np.concatenate([K @ dq, dv, du, dt]))
    )
    ends = np.cumsum([0, *[y.size for y in numbers]])
    by_casadi = [along.ravel()[a:b] for a, b in pairwise(ends)]
    rows = numbers[3].size // m.nv
    X, dX = (
        numbers[3].reshape(m.nv, rows),
        by_casadi[3].reshape(m.nv, rows),
    )  # A^T: the columns of A are stored one after another
    P, dP = pseudoinverse(X, dX)
    expected = [*by_casadi[:2], dP @ numbers[2].ravel() + P @ by_casadi[2]]
    found = np.split(ours @ np.concatenate([dq, dv, du, dt]), [m.nv, 2 * m.nv])
    for name, a, b in zip(("v_dot", "reaction", "multipliers"), found, expected, strict=True):
        close(a, b, EXACT, f"{name} of {case}", max(1.0, np.abs(b).max(initial=0.0)))
    return rows - int(np.linalg.matrix_rank(X, tol=RANK))


GROUPS: dict[str, tuple[Callable[[int], Case], int]] = {"loops": (loop, 30), "graphs": (graph, 10), "servos": (servo, 10)}


@pytest.mark.parametrize("name", GROUPS)
def test_fifty_machines(name):
    make, count = GROUPS[name]
    cases = [make(seed) for seed in range(count)]
    redundant = [compare(case) > 0 for case in cases]
    if name == "loops":
        words = " ".join(c.name for case in cases for c in case.m.constraints)
        assert all(kind in words for kind in ("rolling", "speed", "pushed", "driven", "duplicate", "within"))
        assert sum(redundant) > count // 3
    if name == "servos":
        assert sum(redundant) > 2 and not all(redundant)
    if name == "graphs":
        assert all(case.m.nq > case.m.nv or case.m.nv < 3 for case in cases)
