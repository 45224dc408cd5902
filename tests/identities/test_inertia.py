"""Theorems of the tree terms on random mechanisms: M, kinetic energy, momentum, Jacobians, Coriolis force."""

from __future__ import annotations

import casadi as ca
import numpy as np
from hypothesis import given

import pfaffian as pf
from pfaffian.terms import recursions as inertia
from tests.random_mechanisms import Case, matrices, moving, random_forces, random_tree, trees
from tests.tolerance import ALGEBRA, DERIVATIVE, close


def rate(T: pf.Terms, x: ca.SX, v_dot: ca.SX | None = None) -> ca.SX:
    """dx/dt along the motion: q changes by K v, v by v_dot (zero unless given), time by one."""
    out = ca.jtimes(x, T.q, T.kinematics.q_dot) + ca.jtimes(x, T.t, ca.SX(1))
    return out if v_dot is None else out + ca.jtimes(x, T.v, v_dot)


def drawn_case(drawn) -> Case:
    random, kinds, parents = drawn
    m = random_forces(random, random_tree(random, kinds, parents))
    return Case(m, pf.random_configuration(m, random), random.normal(size=m.nv), random.normal(size=m.nu), 0.0)


@given(trees())
def test_mass_matrix(drawn):
    case = drawn_case(drawn)
    last = case.m.bodies[-1].name
    r = matrices(case, {
        "M": lambda T: T.M,
        "c": lambda T: T.c,
        "T": lambda T: T.T,
        "from energy": lambda T: ca.hessian(T.T, T.v)[0],
        "rnea": lambda T: inertia.inverse_dynamics(T.kinematics, T.v),
        "J": lambda T: T.kinematics.jacobian(last, "WORLD", (0.1, 0.2, 0.3)),
        "twist": lambda T: T.kinematics.twist(last, "WORLD"),
    })  # fmt: skip
    v = case.v[:, None]
    assert np.array_equal(r["M"], r["M"].T)
    assert np.linalg.eigvalsh(r["M"])[0] > 0
    close(r["M"], r["from energy"], ALGEBRA, "M is the Hessian of T")
    close(v.T @ r["M"] @ v / 2, r["T"], ALGEBRA, "v M v / 2 is the sum over the bodies")
    close(r["rnea"], r["M"] @ v + r["c"], ALGEBRA, "M v_dot + c by Newton and Euler", np.abs(r["rnea"]).max() + 10)
    close(r["J"] @ v, r["twist"], ALGEBRA, "J v is the twist", np.abs(r["J"]).max() * np.abs(v).sum())


@given(trees())
def test_momentum(drawn):
    case = drawn_case(drawn)
    m = case.m
    r = matrices(case, {
        "momentum": lambda T: inertia.momentum(T.kinematics),
        "bodies": lambda T: sum(body_momentum(T.kinematics, b) for b in m.bodies),
        "com rate": lambda T: rate(T, inertia.mass_centre(T.kinematics)),
        "weight": lambda T: rate(T, inertia.gravity_energy(T.kinematics, m.gravity)),
    })  # fmt: skip
    size = np.abs(r["momentum"]).max()
    close(r["momentum"], r["bodies"], ALGEBRA, "momentum is the sum over the bodies", size)
    mass = sum(m.value(m.body(name).mass).item() for name in moving(m))
    close(r["momentum"][:3], mass * r["com rate"], DERIVATIVE, "linear momentum is that of the mass centre", size)
    power = -m.value(m.gravity).ravel() @ r["momentum"][:3]
    close(r["weight"].ravel(), power, DERIVATIVE, "weight does the work of the mass centre's fall", 10 * size)


def body_momentum(k: pf.Kinematics, b: pf.Body) -> ca.SX:
    """[linear; angular about the world's origin] from the body's data and the velocity of its mass centre."""
    R, com = k.rotation(b.name), k.position(b.name, b.com)
    p = b.mass * k.velocity(b.name, b.com)
    return ca.vertcat(p, R @ (b.inertia @ k.twist(b.name)[3:]) + ca.cross(com, p))


@given(trees())
def test_velocities_are_rates(drawn):
    case = drawn_case(drawn)
    b = case.m.bodies[-1].name
    point = (0.3, -0.2, 0.1)
    r = matrices(case, {
        "velocity": lambda T: T.kinematics.velocity(b, point),
        "rate": lambda T: rate(T, T.kinematics.position(b, point)),
        "spin": lambda T: T.kinematics.twist(b, "LOCAL_WORLD_ALIGNED")[3:],
        "R_dot R^T": lambda T: ca.reshape(rate(T, ca.vec(T.kinematics.rotation(b))), 3, 3) @ T.kinematics.rotation(b).T,
    })  # fmt: skip
    W = r["R_dot R^T"]
    size = 1 + np.abs(case.v).sum()
    close(r["rate"], r["velocity"], DERIVATIVE, "velocity of a point is the rate of its position", size)
    close(np.array([[W[2, 1]], [W[0, 2]], [W[1, 0]]]), r["spin"], DERIVATIVE, "spin is the rate of the rotation", size)
    close(W, -W.T, DERIVATIVE, "rotations stay rotations", size)


@given(trees(most=4))
def test_coriolis_force_does_the_work_of_the_changing_mass(drawn):
    """v^T c without weight is v^T M_dot v / 2: beyond that, the quadratic part of c does no work."""
    case = drawn_case(drawn)
    m = case.m
    r = matrices(case, {
        "M_dot": lambda T: ca.reshape(rate(T, ca.vec(T.M)), m.nv, m.nv),
        "c": lambda T: T.c,
        "weight": lambda T: rate(T, inertia.gravity_energy(T.kinematics, m.gravity)),
        "M": lambda T: T.M,
    })  # fmt: skip
    v = case.v[:, None]
    size = np.abs(r["c"]).T @ np.abs(v) + np.abs(r["M"]).max() * np.abs(v).sum() ** 3
    close(v.T @ r["c"], v.T @ r["M_dot"] @ v / 2 + r["weight"], DERIVATIVE, "v (M_dot - 2 C) v = 0", size)
