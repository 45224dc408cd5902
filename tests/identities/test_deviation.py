"""Linearisation along a trajectory, against families of trajectories and against `linearise`. [konz25 (2.22)-(2.25)]

A family q(t, s) has the deviation eps = K^+ dq/ds; at s = 0, d/ds of f(q, v, v_dot) is F0 eps + F1 eps_dot + F2 eps_ddot.
"""

from __future__ import annotations

from functools import partial

import casadi as ca
import numpy as np
import pytest
from hypothesis import given

import pfaffian as pf
from pfaffian import kernel
from pfaffian.maths import so3
from pfaffian.terms import connection
from pfaffian.terms.recursions import inverse_dynamics
from pfaffian.terms.terms import symbols
from tests.random_mechanisms import random_body, random_tree, trees
from tests.tolerance import ALGEBRA, close


@pytest.fixture(autouse=True)
def interpreted(monkeypatch):
    monkeypatch.setattr(kernel, "compile", partial(kernel.compile, backend="numpy"))


TIME, S = ca.SX.sym("time"), ca.SX.sym("s")


def family(m, random):
    """Family q(t, s) of polynomials with normalised quaternions."""
    q0, c = pf.random_configuration(m, random), random.normal(size=(m.nq, 5))
    powers = ca.vertcat(TIME, S, TIME**2, TIME * S, TIME**2 * S)
    q = ca.DM(q0) + ca.DM(c) @ powers
    for at in m.quaternions.values():
        q[at] = q[at] / ca.norm_2(q[at])
    return q


def along(m, q, f):
    """Exact d/ds f at s = t = 0, the arguments of the formula, and the state.   f(k, v_dot)."""
    k, a = symbols(m.with_(constraints=[])).kinematics, ca.SX.sym("a", m.nv)
    Y = ca.Function("Y", [k.q, m.p_symbols], [connection.left_inverse(k)])
    p = ca.DM(m.p_defaults)
    v = Y(q, p) @ ca.jacobian(q, TIME)
    eps = Y(q, p) @ ca.jacobian(q, S)
    v_dot, eps_dot = ca.jacobian(v, TIME), ca.jacobian(eps, TIME)
    value = ca.Function("f", [k.q, k.v, a, k.t, m.p_symbols], [f(k, a)])(q, v, v_dot, 0, p)
    parts = [q, v, v_dot, eps, eps_dot, ca.jacobian(eps_dot, TIME), value, ca.jacobian(value, S), ca.jacobian(v, S)]
    return [np.array(x).ravel() for x in ca.Function("all", [TIME, S], parts)(0, 0)]


def check(m, q, f, what):
    at, v, v_dot, eps, eps_dot, eps_ddot, value, exact, dv = along(m, q, f)
    found = pf.calculus.linearise_along(m, at, v, v_dot, f=f)
    close(found.value, value, 1e-11, "f", 1 + np.abs(value).max())
    close(eps_dot + found.B @ eps, dv, 1e-11, f"{what}: change of v", 10 + np.abs(dv).max())
    got = found.F0 @ eps + found.F1 @ eps_dot + found.F2 @ eps_ddot
    size = sum(np.abs(F) @ np.abs(e) for F, e in zip(found[1:4], (eps, eps_dot, eps_ddot), strict=True)).max()
    close(got, exact, 1e-11, f"{what}: change of f", 1 + size)
    return np.abs(found.B).max()


def mixed(k, a):
    """A function of position, velocity and acceleration that is linear in none of them."""
    return ca.vertcat(ca.sin(k.q) * ca.sumsqr(k.v), ca.cos(a) + k.v, ca.dot(a, k.v))


@given(trees(most=4))
def test_random_mechanisms(drawn):
    random, kinds, parents = drawn
    m = random_tree(random, kinds, parents)
    check(m, family(m, random), mixed, "mixed")


def force(k, a):
    """M v_dot + c, for any kinematics."""
    return inverse_dynamics(k, a)


@pytest.mark.parametrize("kind", ["spherical", "free", "planar", "revolute"])
@pytest.mark.parametrize("f", [mixed, force], ids=["mixed", "force"])
def test_a_chain(kind, f):
    random = np.random.default_rng(2)
    m = random_tree(random, [kind, "revolute", "spherical"], [-1, 0, 1])
    assert check(m, family(m, random), f, kind) > 0.1, "these velocities are no rates of coordinates"


def test_chosen_velocities():
    """With T(q) the commutation coefficients change along the motion."""
    random = np.random.default_rng(8)
    m = random_tree(random, ["revolute", "spherical"], [-1, 0])
    X = random.normal(size=(4, 4))
    names = ["a", "b", "c", "d"]
    turned = m.with_(velocities=pf.velocities(lambda k: ca.DM.eye(4) + 0.3 * ca.DM(X) * ca.sin(k.q[0]), names))
    assert check(turned, family(turned, random), mixed, "chosen") > 0.1


def test_rotation_matrices_as_coordinates():
    """F0, F1, F2 of one f are equal with a quaternion and with nine entries, and as printed: B = -hat(w) for eps_dot + w x
    eps."""
    random = np.random.default_rng(3)
    I = np.diag([1.0, 2.0, 3.0])

    def euler(k, a):
        return ca.DM(I) @ a + ca.cross(k.v, ca.DM(I) @ k.v)

    b = pf.body("b", 1, inertia=(1.0, 2.0, 3.0))
    m = pf.mechanism("ball", [b], [pf.joint("j", "spherical", "world", "b")])
    entries = pf.coordinates(
        "R", [f"r{i}" for i in range(9)], ("wx", "wy", "wz"),
        lambda q: ca.horzcat(*[ca.vec(ca.reshape(q, 3, 3) @ so3.hat(e)) for e in np.eye(3)]),
        phi=lambda q: ca.vertcat(ca.vec((R := ca.reshape(q, 3, 3)).T @ R - ca.DM.eye(3))[[0, 1, 2, 4, 5, 8]], ca.det(R) - 1),
        start=np.eye(3).ravel(),
    )  # fmt: skip
    edge = pf.edge("e", "world", "b", lambda k: pf.Pose(ca.reshape(k.q, 3, 3), ca.SX.zeros(3, 1)))
    twin = pf.mechanism("matrix", [b], [edge], coordinates=[entries])
    y = ca.DM(random.normal(size=(3, 4))) @ ca.vertcat(TIME, S, TIME**2, TIME * S)
    check(twin, ca.vec(so3.exp(y)), euler, "nine entries")
    check(m, so3.quat_exp(y), euler, "a quaternion")
    v, a = random.normal(size=(2, 3))
    one, other = (
        pf.calculus.linearise_along(m, None, v, a, f=euler),
        pf.calculus.linearise_along(twin, np.eye(3).ravel(), v, a, f=euler),
    )
    hat = lambda w: np.array(ca.DM(so3.hat(w)))  # noqa: E731
    along_w = hat(v) @ I - hat(I @ v)
    printed = (along_w @ hat(v) + I @ hat(a), along_w + I @ hat(v), I)
    for x, y_, p in zip(one[1:4], other[1:4], printed, strict=True):
        close(x, p, ALGEBRA, "closed form", 10)
        close(y_, p, ALGEBRA, "by nine entries", 10)
    close(one.B, hat(v), ALGEBRA, "B")


def test_differences_of_simulated_motions():
    """Two motions of a free body from nearby starts: their deviation satisfies the linearised equation."""
    random = np.random.default_rng(5)
    m = pf.mechanism("free", [random_body(random, "b")], [pf.joint("j", "free", "world", "b")],
                     forces=[pf.forces.pose_spring("s", "world", "b", np.diag([1.0, 2, 3, 4]))])  # fmt: skip
    start, v0 = pf.random_configuration(m, random), random.normal(size=6)
    d, h = random.normal(size=6), 2e-3
    K = ca.Function("K", [(k := symbols(m).kinematics).q], [k.kinematic_matrix, connection.left_inverse(k)])
    tiny = 1e-6
    near = pf.calculus.linearise_along(m, start, v0)
    moves = []
    for sign in (1, -1):
        q = start + sign * tiny * np.array(K(start)[0] @ d).ravel()
        q[3:] /= np.linalg.norm(q[3:])
        v = v0 + sign * tiny * near.B @ d  # so that eps_dot = 0 at the start
        moves.append(pf.run(m, q, v, duration=0.1, backend="interpreter", record=["q", "v"]))
    base = pf.run(m, start, v0, duration=0.1, backend="interpreter", record=["q", "v"])
    q, v = base["q"].values, base["v"].values
    dq = (moves[0]["q"].values - moves[1]["q"].values) / (2 * tiny)
    dv = (moves[0]["v"].values - moves[1]["v"].values) / (2 * tiny)
    eps = np.array([np.array(K(qi)[1]) @ x for qi, x in zip(q, dq, strict=True)])
    a = pf.forward_dynamics(m, q, v).v_dot
    L = pf.calculus.linearise_along(m, q, v, a)
    assert np.abs(L.value).max() < 1e-12
    x = np.concatenate([d, np.zeros(6)])
    A = [np.block([[np.zeros((6, 6)), np.eye(6)], [-np.linalg.solve(M, F0), -np.linalg.solve(M, F1)]])
         for F0, F1, M in zip(L.F0, L.F1, L.F2, strict=True)]  # fmt: skip
    for i in range(0, 100, 2):
        k1 = A[i] @ x
        k2 = A[i + 1] @ (x + h / 2 * k1)
        k3 = A[i + 1] @ (x + h / 2 * k2)
        x = x + h / 6 * (k1 + 2 * k2 + 2 * k3 + A[i + 2] @ (x + h * k3))
    close(x[:6], eps[-1], 1e-7, "deviation after 0.1 s", 1)
    close(x[6:] + L.B[-1] @ x[:6], dv[-1], 1e-7, "change of velocity", 10)


@pytest.mark.parametrize("moving", [False, True])
def test_agrees_with_linearise(moving):
    """At an equilibrium the eigenvalues are equal; at a moving state the change of the acceleration with q and v is."""
    random = np.random.default_rng(4)
    m = random_tree(random, ["revolute", "spherical", "revolute"], [-1, 0, 1])
    m = pf.actuate_all(m)
    q = pf.random_configuration(m, random)
    v = random.normal(size=m.nv) * moving
    u = np.zeros(m.nu)
    if not moving:
        u = pf.inverse_dynamics(m, q, v, np.zeros(m.nv)).u
    a = pf.forward_dynamics(m, q, v, u).v_dot
    L, here = pf.calculus.linearise_along(m, q, v, a, u), pf.linearise(m, q, v, u)
    close(L.F2, pf.mass_matrix(m, q), 1e-13, "F2 = M", 10)
    n = m.nv
    Z, Zv = np.linalg.lstsq(kinematic_matrix(m, q), here.dq[:, :n], rcond=None)[0], here.dv[:, n:]
    # eps = Z x1 and, at this instant, eps_dot = Zv x2 + dv x1 - B eps
    rate = np.hstack([here.dv[:, :n] - L.B @ Z, Zv])
    eps = np.hstack([Z, np.zeros((n, n))])
    # v_dot = v_bar_dot + eps_ddot + (B(v_dot) + B_dot) eps + B eps_dot
    free = -np.linalg.solve(L.F2, L.F0 @ eps + L.F1 @ rate)
    carried = pf.calculus.linearise_along(m, q, v, a, f=lambda k, a: a)
    dv_dot = free + carried.F0 @ eps + carried.F1 @ rate
    close(dv_dot, Zv @ here.A[n:], 1e-10, "change of the acceleration", np.abs(here.A).max())
    if not moving:
        assert here.equilibrium
        A = np.block([[np.zeros((n, n)), np.eye(n)], [-np.linalg.solve(L.F2, L.F0), -np.linalg.solve(L.F2, L.F1)]])
        for e in here.eigenvalues:
            assert np.abs(np.linalg.eigvals(A) - e).min() < 1e-6 * np.abs(here.A).max()


def kinematic_matrix(m, q):
    k = symbols(m).kinematics
    return np.array(ca.Function("K", [k.q], [k.kinematic_matrix])(q))


def test_inputs_batches_and_refusals():
    random = np.random.default_rng(6)
    m = pf.actuate_all(random_tree(random, ["revolute", "spherical"], [-1, 0]))
    q = np.array([pf.random_configuration(m, random) for _ in range(3)])
    v, u = random.normal(size=(3, m.nv)), random.normal(size=(3, m.nu))
    L = pf.calculus.linearise_along(m, q, v, u=u)
    assert L.F0.shape == L.B.shape == (3, m.nv, m.nv) and L.value.shape == (3, m.nv) and L.E.shape == (3, m.nv, m.nu)
    for i in range(3):
        alone = pf.calculus.linearise_along(m, q[i], v[i], u=u[i])
        for x, y in zip(L, alone, strict=True):
            assert np.array_equal(x[i], y)
    step = pf.calculus.linearise_along(m, q, v, u=u + 1).value - L.value
    close(step, L.E.sum(axis=2), 1e-12, "E", 10)
    for ask, message in (
        (lambda: pf.calculus.linearise_along(m, q, v, f=3), r"f: a function f\(k, v_dot\)"),
        (lambda: pf.calculus.linearise_along(m, q, v, f=lambda k: k.v), "f: a function of 2 argument"),
        (lambda: pf.calculus.linearise_along(m, q, v, f=lambda k, a: ca.SX.sym("z")), "f uses symbols"),
        (lambda: pf.calculus.linearise_along(m, q, v[:2]), "numbers of runs differ"),
        (lambda: pf.calculus.linearise_along(m, q, v, {"x": 1}), "v_dot"),
    ):
        with pytest.raises(pf.ModelError, match=message):
            ask()
