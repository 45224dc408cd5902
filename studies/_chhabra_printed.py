"""The three machines of `chhabra_matrices`, as mechanisms and by the printed formulas of the thesis. [chhabra14 3.4, 4.6]"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

import pfaffian as pf
from pfaffian.maths import linear, se3

X, Y, Z = (1, 0, 0), (0, 1, 0), (0, 0, 1)
STATES = 3
"""Number of random states and parameter values at which both descriptions are compared."""

SPACECRAFT = {"l1": 0.6, "l2": 1.0, "l3": 0.8, "l4": 0.4, "l5": 0.4, "c": 0.25}
SPACECRAFT |= {"m1": 120.0, "m2": 10.0, "m3": 8.0, "m4": 4.0, "m5": 4.0, "jx1": 30.0, "jy1": 40.0, "jz1": 25.0}
SPACECRAFT |= {"jx2": 0.9, "jy2": 0.05, "jx3": 0.5, "jy3": 0.04, "jx4": 0.06, "jy4": 0.01, "jx5": 0.06, "jy5": 0.01}
MU = {"mu1": 40.0, "mu2": 30.0}
"""Linear momentum along y [N s] and angular momentum about x [N m s]."""
ROVER = {"l0": 0.10, "l1": 0.15, "l2": 0.30, "l3": 0.40, "l4": 0.20, "c": 0.25, "b": 0.10, "g": 9.81}
ROVER |= {"m1": 20.0, "m2": 1.0, "m4": 2.0, "m5": 1.5, "m6": 1.0, "jz1": 0.9, "jx2": 0.004, "jy2": 0.006}
ROVER |= {"jx4": 0.02, "jy4": 0.004, "jx5": 0.025, "jy5": 0.002, "jx6": 0.012, "jy6": 0.001, "jz6": 0.012}
CAR = {"l": 2.0, "l0": 0.9, "l1": 0.4, "l2": 1.2, "c": 0.5, "b": 0.3, "m1": 500.0, "m2": 20.0, "m3": 50.0, "m4": 10.0}
CAR |= {
    "m6": 80.0,
    "jz1": 200.0,
    "jx2": 2.0,
    "jy2": 0.5,
    "jx3": 4.0,
    "jz3": 1.5,
    "jx4": 0.3,
    "jy4": 0.45,
    "jx6": 2.0,
    "jy6": 40.0,
}
"""Lengths [m], masses [kg], inertias [kg m^2] of bodies 1 to 6, where both wheels are alike; g [m/s^2]."""

START = np.array([0.1, -0.2, 0.15, 0.2, 0.2, 0.3, -0.1, 0.4, -0.5, 0.6])
"""x, z [m], theta_X, theta_Z, and the six hinges of the spacecraft [rad]."""
RATES = np.array([0.1, -0.2, 0.15, 0.3, -0.25, 0.2])
ROVER_START = (np.array([0, 0, 0.3, 0.5, -0.4]), np.array([3, 4, 0.5, -0.2, 0.3]))

Letters = Mapping[str, Any]


class Letter(dict):
    """A dict of parameters by name, with access by attribute: n.l1."""

    def __getattr__(self, name: str) -> Any:
        return self[name]


def parameters(letters: Mapping[str, float]) -> Letter:
    units = {"m": "kg", "j": "kg m^2", "g": "m/s^2"}
    return Letter({n: pf.Parameter(n, x, units.get(n[0], "m")) for n, x in letters.items()})


def unknowns(letters: Mapping[str, float]) -> Letter:
    return Letter({n: ca.SX.sym(n) for n in letters})


def spacecraft() -> pf.Mechanism:
    """The spacecraft; its spherical joint is three hinges about x, y and z, whose angles are those of the thesis."""
    n = parameters(SPACECRAFT)
    bodies = [
        pf.body("B1", n.m1, inertia=(n.jx1, n.jy1, n.jz1)),
        pf.body("turned X"),
        pf.body("turned Y"),
        *[pf.body(f"B{i}", n[f"m{i}"], com=(0, at, 0), inertia=(n[f"jx{i}"], n[f"jy{i}"], n[f"jx{i}"]))
          for i, at in ((2, n.l2 / 2), (3, n.l3 / 2), (4, n.l4), (5, n.l5))],
    ]  # fmt: skip
    joints = [
        pf.joint("base", "free", "world", "B1"),
        pf.joint("psi_X", "revolute", "B1", "turned X", axis=X, placement=(0, n.l1, 0)),
        pf.joint("psi_Y", "revolute", "turned X", "turned Y", axis=Y),
        pf.joint("psi_Z", "revolute", "turned Y", "B2", axis=Z),
        pf.joint("psi_1", "revolute", "B2", "B3", axis=X, placement=(0, n.l2, 0)),
        pf.joint("psi_2", "revolute", "B3", "B4", axis=X, placement=(n.c, n.l3, 0)),
        pf.joint("psi_3", "revolute", "B3", "B5", axis=X, placement=(-n.c, n.l3, 0)),
    ]
    return pf.mechanism("spacecraft in letters", bodies, joints, gravity=(0, 0, 0), parameters=list(n.values()))


def rover() -> pf.Mechanism:
    n = parameters(ROVER)
    tall = [pf.body(f"B{i}", n[f"m{i}"], com=(0, at, 0), inertia=(n[f"jx{i}"], n[f"jy{i}"], jz))
            for i, at, jz in ((4, n.l2 / 2, n.jx4), (5, n.l3 / 2, n.jx5), (6, n.l4, n.jz6))]  # fmt: skip
    wheels = [pf.body(f"B{i}", n.m2, inertia=(n.jx2, n.jy2, n.jx2)) for i in (2, 3)]
    bodies = [pf.body("B1", n.m1, com=(n.l0, 0, 0), inertia=(n.jz1, n.jz1, n.jz1)), *wheels, *tall]
    joints = [
        pf.joint("base", "planar", "world", "B1"),
        pf.joint("psi1", "revolute", "B1", "B2", axis=Y, placement=(0, n.c, 0)),
        pf.joint("psi2", "revolute", "B1", "B3", axis=Y, placement=(0, -n.c, 0)),
        pf.joint("phi1", "revolute", "B1", "B4", placement=(n.l0 + n.l1, 0, 0)),
        pf.joint("phi2", "revolute", "B4", "B5", axis=X, placement=(0, n.l2, 0)),
        pf.joint("phi3", "revolute", "B5", "B6", axis=X, placement=(0, n.l3, 0)),
    ]

    def rolling(k: pf.Kinematics) -> ca.SX:
        v_x, v_y, w = ca.vertsplit(k.joint_rate("base"))
        return ca.vertcat(v_y, *[v_x - s * n.c * w - n.b * k.joint_rate(j) for s, j in ((1, "psi1"), (-1, "psi2"))])

    return pf.mechanism(
        "rover in letters", bodies, joints, constraints=[pf.nonholonomic("wheels", rolling)], gravity=(0, 0, -1 * n.g),
        parameters=list(n.values()),
    )  # fmt: skip


def car() -> pf.Mechanism:
    n = parameters(CAR)
    wheels = [pf.body(f"B{i}", n.m4, inertia=(n.jx4, n.jy4, n.jx4)) for i in (4, 5)]
    bodies = [
        pf.body("B1", n.m1, com=(n.l0, 0, 0), inertia=(n.jz1, n.jz1, n.jz1)),
        pf.body("B2", n.m2, inertia=(n.jx2, n.jy2, n.jx2)),
        pf.body("B3", n.m3, com=(0, 0, n.l2 / 2), inertia=(n.jx3, n.jx3, n.jz3)),
        *wheels,
        pf.body("B6", n.m6, inertia=(n.jx6, n.jy6, n.jy6)),
    ]
    joints = [
        pf.joint("base", "planar", "world", "B1"),
        pf.joint("psi1", "revolute", "B1", "B2", placement=(n.l, 0, 0)),
        pf.joint("phi1", "revolute", "B1", "B3", placement=(n.l1, 0, 0)),
        pf.joint("psi2", "revolute", "B2", "B4", axis=Y, placement=(0, n.c, 0)),
        pf.joint("psi3", "revolute", "B2", "B5", axis=Y, placement=(0, -n.c, 0)),
        pf.joint("phi2", "revolute", "B3", "B6", axis=Y, placement=(0, 0, n.l2)),
    ]

    def rolling(k: pf.Kinematics) -> ca.SX:
        v_x, v_y, w = ca.vertsplit(k.joint_rate("base"))
        s, e, turn = ca.sin(k.joint("psi1")), ca.cos(k.joint("psi1")), n.c * (w + k.joint_rate("psi1"))
        along, across = e * v_x + s * (v_y + n.l * w), e * (v_y + n.l * w) - s * v_x
        left, right = along - turn - n.b * k.joint_rate("psi2"), along + turn - n.b * k.joint_rate("psi3")
        return ca.vertcat(v_y, across, left, right)

    return pf.mechanism(
        "car in letters", bodies, joints, constraints=[pf.nonholonomic("wheels", rolling)], gravity=(0, 0, 0),
        parameters=list(n.values()),
    )  # fmt: skip


# -- as printed ---------------------------------------------------------------------------------------------------------


class Joint(NamedTuple):
    """A joint with its body as the thesis prints them.

    before: the joint of the parent body.   S: (6, k) basis.   pose: q_j (R, p), None for the first joint.
    q: coordinates.   centre: mass centre of the body at home.   h: (m, jx, jy, jz) of the body."""

    before: int
    S: ca.SX
    pose: Any
    q: Sequence[ca.SX]
    centre: Sequence[Any]
    h: Sequence[Any]


def column(*rows: Any) -> ca.SX:
    return ca.SX(ca.vertcat(*rows))


def rotation(axis: str, a: Any) -> ca.SX:
    c, s = ca.cos(a), ca.sin(a)
    rows = {
        "X": [[1, 0, 0], [0, c, -s], [0, s, c]],
        "Y": [[c, 0, s], [0, 1, 0], [-s, 0, c]],
        "Z": [[c, -s, 0], [s, c, 0], [0, 0, 1]],
    }
    return ca.blockcat(rows[axis])


def half(a: ca.SX) -> ca.SX:
    return ca.sin(a / 2) ** 2


def printed_spacecraft(n: Letter, q: ca.SX) -> list[Joint]:
    x, y, z, a, b, c = ca.vertsplit(q)
    R, pivot = rotation("X", x) @ rotation("Y", y) @ rotation("Z", z), column(0, n.l1, 0)
    sy, cy, sz, cz = ca.sin(y), ca.cos(y), ca.sin(z), ca.cos(z)
    S2 = [[n.l1 * sy, 0, n.l1], [0, 0, 0], [-n.l1 * cy * cz, -n.l1 * sz, 0], [cy * cz, sz, 0], [-cy * sz, cz, 0], [sy, 0, 1]]
    two, three = n.l1 + n.l2, n.l1 + n.l2 + n.l3

    def hinge(before: int, at: Any, angle: ca.SX, centre: Any, h: Any) -> Joint:
        pose = rotation("X", angle), column(0, 2 * at * half(angle), -at * ca.sin(angle))
        return Joint(before, column(0, 0, -at, 1, 0, 0), pose, [angle], centre, h)

    even = {i: (n[f"m{i}"], n[f"jx{i}"], n[f"jy{i}"], n[f"jx{i}"]) for i in (2, 3, 4, 5)}
    return [
        Joint(0, ca.SX.eye(6), None, (), (0, 0, 0), (n.m1, n.jx1, n.jy1, n.jz1)),
        Joint(1, ca.blockcat(S2), (R, pivot - R @ pivot), [x, y, z], (0, n.l1 + n.l2 / 2, 0), even[2]),
        hinge(2, two, a, (0, two + n.l3 / 2, 0), even[3]),
        hinge(3, three, b, (n.c, three + n.l4, 0), even[4]),
        hinge(3, three, c, (-n.c, three + n.l5, 0), even[5]),
    ]


PLANE = ca.SX(ca.DM(np.eye(6)[:, [0, 1, 5]]))


def printed_rover(n: Letter, q: ca.SX) -> list[Joint]:
    a, b, x, y, z = ca.vertsplit(q)
    post, reach, still = n.l0 + n.l1, n.l2 + n.l3, column(0, 0, 0)
    wheel, spin = (n.m2, n.jx2, n.jy2, n.jx2), column(0, 0, 0, 0, 1, 0)
    return [
        Joint(0, PLANE, None, (), (n.l0, 0, 0), (n.m1, n.jz1, n.jz1, n.jz1)),
        Joint(1, spin, (rotation("Y", a), still), [a], (0, n.c, 0), wheel),
        Joint(1, spin, (rotation("Y", b), still), [b], (0, -n.c, 0), wheel),
        Joint(1, column(0, -post, 0, 0, 0, 1), (rotation("Z", x), column(2 * post * half(x), -post * ca.sin(x), 0)), [x],
              (post, n.l2 / 2, 0), (n.m4, n.jx4, n.jy4, n.jx4)),
        Joint(4, column(0, 0, -n.l2, 1, 0, 0), (rotation("X", y), column(0, 2 * n.l2 * half(y), -n.l2 * ca.sin(y))), [y],
              (post, n.l2 + n.l3 / 2, 0), (n.m5, n.jx5, n.jy5, n.jx5)),
        Joint(5, column(0, 0, -reach, 1, 0, 0), (rotation("X", z), column(0, 2 * reach * half(z), -reach * ca.sin(z))), [z],
              (post, reach + n.l4, 0), (n.m6, n.jx6, n.jy6, n.jz6)),
    ]  # fmt: skip


def printed_car(n: Letter, q: ca.SX) -> list[Joint]:
    a, x, b, c, y = ca.vertsplit(q)  # psi1, phi1, psi2, psi3, phi2
    wheel, spin = (n.m4, n.jx4, n.jy4, n.jx4), column(0, 0, n.l, 0, 1, 0)

    def front(angle: ca.SX) -> tuple[ca.SX, ca.SX]:
        return rotation("Y", angle), column(2 * n.l * half(angle), 0, n.l * ca.sin(angle))

    boom = column(2 * n.l1 * half(y) - n.l2 * ca.sin(y), 0, n.l1 * ca.sin(y) + 2 * n.l2 * half(y))
    return [
        Joint(0, PLANE, None, (), (n.l0, 0, 0), (n.m1, n.jz1, n.jz1, n.jz1)),
        Joint(1, column(0, -n.l, 0, 0, 0, 1), (rotation("Z", a), column(2 * n.l * half(a), -n.l * ca.sin(a), 0)), [a],
              (n.l, 0, 0), (n.m2, n.jx2, n.jy2, n.jx2)),
        Joint(1, column(0, -n.l1, 0, 0, 0, 1), (rotation("Z", x), column(2 * n.l1 * half(x), -n.l1 * ca.sin(x), 0)), [x],
              (n.l1, 0, n.l2 / 2), (n.m3, n.jx3, n.jx3, n.jz3)),
        Joint(2, spin, front(b), [b], (n.l, n.c, 0), wheel),
        Joint(2, spin, front(c), [c], (n.l, -n.c, 0), wheel),
        Joint(3, column(-n.l2, 0, n.l1, 0, 1, 0), (rotation("Y", y), boom), [y], (n.l1, 0, n.l2), (n.m6, n.jx6, n.jy6, n.jy6)),
    ]  # fmt: skip


def printed_inertia(joints: list[Joint]) -> ca.SX:
    """FL = T^T h T, T = diag(Ad of r_cm^-1) J_q diag(S_j), relative to the first joint's pose. [chhabra14 (3.3.31)]"""
    T: list[ca.SX] = []
    sizes = [j.S.shape[1] for j in joints]
    for i, j in enumerate(joints):
        before = ca.SX(6, sum(sizes)) if j.pose is None else se3.Ad_inv(*j.pose) @ T[j.before - 1]
        before[:, sum(sizes[:i]) : sum(sizes[: i + 1])] = j.S
        T.append(before)
    M = ca.SX(sum(sizes), sum(sizes))
    for j, V in zip(joints, T, strict=True):
        centre = se3.Ad_inv(ca.SX.eye(3), column(*j.centre)) @ V
        M += centre.T @ ca.diag(column(*[j.h[0]] * 3, *j.h[1:])) @ centre
    return M


def basis_of_pose(j: Joint) -> ca.SX:
    """(6, k) basis q_j^-1 dq_j by differentiation of the pose."""
    R, p = j.pose
    out = []
    for x in j.q:
        D = ca.reshape(ca.jacobian(ca.vec(R), x), 3, 3)
        W = R.T @ D
        out.append(ca.vertcat(R.T @ ca.jacobian(p, x), W[2, 1], W[0, 2], W[1, 0]))
    return ca.horzcat(*out)


# -- spacecraft at mu = (0, mu1, 0, mu2, 0, 0) --------------------------------------------------------------------------


def section(o: ca.SX) -> tuple[ca.SX, ca.SX]:
    """Section chi(x, z, theta_X, theta_Z) as a pose."""
    return rotation("X", o[2]) @ rotation("Z", o[3]), column(o[0], 0, o[1])


def carried_section(o: ca.SX) -> ca.SX:
    """Printed (T chi) chi^-1, (6, 4)."""
    x, z, a, _ = ca.vertsplit(o)
    s, c = ca.sin(a), ca.cos(a)
    return ca.blockcat([[1, 0, 0, z * s], [0, 0, z, -x * c], [0, 1, 0, -x * s], [0, 0, 1, 0], [0, 0, 0, -s], [0, 0, 0, c]])


def body_momentum(mu1: Any, mu2: Any, o: ca.SX) -> ca.SX:
    """Printed mu_b, (6, 1), with the missing minus in its last entry."""
    x, z, a, b = ca.vertsplit(o)
    sx, cx, sz, cz = ca.sin(a), ca.cos(a), ca.sin(b), ca.cos(b)
    return column(
        mu1 * cx * sz, mu1 * cx * cz, -mu1 * sx,
        mu1 * (z * cz - x * sx * sz) + mu2 * cz, -mu1 * (z * sz + x * cz * sx) - mu2 * sz, -mu1 * x * cx,
    )  # fmt: skip


def orbit_form(mu1: Any, o: ca.SX) -> ca.SX:
    """Printed (4, 4) two-form of the orbit in x, z, theta_X, theta_Z."""
    x, _, a, _ = ca.vertsplit(o)
    out = ca.SX(4, 4)
    for i, j, value in ((1, 2, mu1), (0, 3, -mu1 * ca.cos(a)), (2, 3, mu1 * x * ca.sin(a))):
        out[i, j], out[j, i] = value, -value
    return out


def fitted(ratio: Any, y: ca.SX, about_y: ca.SX, o: ca.SX) -> tuple[ca.SX, ca.SX]:
    """Element h(y, theta_Y) of the isotropy group of mu as a pose (R, p); ratio = mu2 / mu1."""
    p = column(ratio * ca.sin(about_y), y, -2 * ratio * half(about_y))
    return rotation("Y", about_y), p


def split_tangent(ratio: Any, about_y: ca.SX, o: ca.SX) -> ca.SX:
    """Printed T chi~ (6, 6), from (y, theta_Y, x, z, theta_X, theta_Z) to (x, y, z, theta_X, theta_Y, theta_Z)."""
    x, z, _, _ = ca.vertsplit(o)
    s, c = ca.sin(about_y), ca.cos(about_y)
    out = ca.SX(6, 6)
    out[0, :] = ca.horzcat(0, (ratio + z) * c - x * s, c, s, 0, 0)
    out[1, 0] = 1
    out[2, :] = ca.horzcat(0, -(ratio + z) * s - x * c, -s, c, 0, 0)
    out[3, 4] = out[4, 1] = out[5, 5] = 1
    return out


def base_rates(x: ca.SX) -> ca.SX:
    """Printed T(L^-1 iota), (6, 6), for x, y, z, theta_X, theta_Y, theta_Z of the base."""
    a, b, c = x[3], x[4], x[5]
    R = rotation("Y", b) @ rotation("X", a) @ rotation("Z", c)
    sx, cx, sz, cz = ca.sin(a), ca.cos(a), ca.sin(c), ca.cos(c)
    return ca.diagcat(R.T, ca.blockcat([[cz, cx * sz, 0], [-sz, cx * cz, 0], [0, -sx, 1]]))


BRACKETS = {(4, 5): {6: 1}, (5, 6): {4: 1}, (4, 6): {5: -1}, (2, 4): {3: -1}, (3, 4): {2: 1}, (3, 5): {1: -1}, (1, 5): {3: 1},
            (1, 6): {2: -1}, (2, 6): {1: 1}}  # fmt: skip
"""(l, k) -> {a: E^a_lk}, l < k: structure constants of E1 .. E6."""


def printed_form(mu1: Any, mu2: Any, o: ca.SX, q: ca.SX, A: ca.SX, between: ca.SX | None = None) -> ca.SX:
    """Xi_mu (10, 10) by the printed sum over structure constants.

    between: A^mu, as motions of the base (6, 10), or None."""
    F = body_momentum(mu1, mu2, o)
    slopes = ca.jacobian(ca.vec(A), q)
    D = ca.horzcat(carried_section(o), se3.Ad(*section(o)) @ A)
    if between is not None:
        D -= between
    mu = {2: mu1, 4: mu2}
    out = ca.SX(10, 10)
    for i, j in combinations(range(10), 2):
        for (l, k), found in BRACKETS.items():
            for a, E in found.items():
                if a in mu:
                    out[i, j] += mu[a] * E * (D[l - 1, i] * D[k - 1, j] - D[l - 1, j] * D[k - 1, i])
                if i >= 4:
                    u, w = A[:, i - 4], A[:, j - 4]
                    out[i, j] -= F[a - 1] * E * (u[l - 1] * w[k - 1] - w[l - 1] * u[k - 1])
        if i >= 4:
            out[i, j] += ca.dot(F, slopes[6 * (j - 4) : 6 * (j - 3), i - 4] - slopes[6 * (i - 4) : 6 * (i - 3), j - 4])
        out[j, i] = -out[i, j]
    return out


def connection_of_isotropy(mu1: Any, mu2: Any, o: ca.SX, M: ca.SX) -> ca.SX:
    """A~ (2, 10) by the printed blocks K~ = T chi~^T K T chi~ at h = e, in y and theta_Y."""
    at = ca.vertcat(o[0], 0, o[1], o[2], 0, o[3])
    T = base_rates(at) @ split_tangent(mu2 / mu1, ca.SX(0), o)
    K11, K1s = T.T @ M[:6, :6] @ T, T.T @ M[:6, 6:]
    return ca.solve(K11[:2, :2], ca.horzcat(K11[:2, 2:], K1s[:2, :]))


def sixteen(n: Letter, mu1: Any, mu2: Any) -> ca.Function:
    """The sixteen reduced equations in matrix form: a function of the state (o, shape, shape momenta) to its rate, H and
    Xi_mu."""
    o, q, p = ca.SX.sym("o", 4), ca.SX.sym("q", 6), ca.SX.sym("p", 6)
    M = printed_inertia(printed_spacecraft(n, q))
    A = linear.solve_definite(M[:6, :6], M[:6, 6:])
    Xi = printed_form(mu1, mu2, o, q, A)
    F = body_momentum(mu1, mu2, o)
    y = ca.vertcat(F, p + A.T @ F)
    H = ca.dot(y, linear.solve_definite(M, y)) / 2
    dH = ca.gradient(H, ca.vertcat(o, q, p))
    s = dH[10:]
    turned = ca.solve(Xi[:4, :4], dH[:4] - Xi[:4, 4:] @ s)
    p_dot = -dH[4:10] + Xi[4:, :4] @ turned + Xi[4:, 4:] @ s
    return ca.Function("sixteen", [ca.vertcat(o, q, p)], [ca.vertcat(turned, s, p_dot), H, Xi], {"cse": True})


# -- rover and car ------------------------------------------------------------------------------------------------------


def rover_lift(n: Letter) -> ca.SX:
    """Printed connection A^ of the rover, (3, 2)."""
    return ca.blockcat([[-n.b / 2, -n.b / 2], [0, 0], [n.b / (2 * n.c), -n.b / (2 * n.c)]])


def car_lift(n: Letter, a: ca.SX) -> ca.SX:
    """Printed connection A^ of the car, (4, 2)."""
    s, e = ca.sin(a), ca.cos(a)
    rows = [[n.l * n.c * e, n.l * n.b * e], [0, 0], [n.c * s, n.b * s], [2 * n.l * n.c / n.b, n.l + n.c * s]]
    return -ca.blockcat(rows) / (n.l - n.c * s)


def lifted(A: ca.SX, K: ca.SX, group: list[int], wheels: list[int], arm: list[int]) -> tuple[ca.SX, ca.SX]:
    """M^ by its printed blocks, and P^T M^, which gives the momenta of the group from the rates of wheels and arm."""
    K_gg, K_wg, K_ag = K[group, group], K[wheels, group], K[arm, group]
    K11 = A.T @ K_gg @ A - A.T @ K_wg.T - K_wg @ A + K[wheels, wheels]
    K12 = -A.T @ K_ag.T + K[wheels, arm]
    return ca.blockcat([[K11, K12], [K12.T, K[arm, arm]]]), ca.vertcat(-A.T @ K_gg + K_wg, K_ag)


def rover_curvature(n: Letter, q: ca.SX, p: ca.SX) -> tuple[ca.SX, ca.SX]:
    """Upsilon at q^ and p^, and M^. [chhabra14 example 4.6.1]"""
    K = printed_inertia(printed_rover(n, q))
    M, P = lifted(rover_lift(n), K, [0, 1, 2], [3, 4], [5, 6, 7])
    return ca.dot(linear.solve_definite(M, p), P @ column(0, n.b**2 / (2 * n.c), 0)), M


def car_curvature(n: Letter, q: ca.SX, p: ca.SX) -> tuple[ca.SX, ca.SX]:
    """Upsilon at q^ = (psi1, psi2, phi1, phi2) and p^, and M^, with the missing minus. [chhabra14 example 4.6.2]"""
    K = car_inertia(n, q[3], ca.SX(0))
    M, P = lifted(car_lift(n, q[0]), K, [0, 1, 2, 6], [3, 5], [4, 7])
    return ca.dot(linear.solve_definite(M, p), P @ car_bend(n, q[0])), M


def car_bend(n: Letter, a: ca.SX) -> ca.SX:
    """B^_12 (4, 1), the vector that Upsilon multiplies, with the minus that is missing in print."""
    s, e = ca.sin(a), ca.cos(a)
    return -n.l / (n.l - n.c * s) ** 2 * column(n.b * (n.c - n.l * s), 0, n.b * e, 2 * n.c * e)


def car_inertia(n: Letter, phi2: ca.SX, theta: ca.SX) -> ca.SX:
    """K (8, 8) in x, y, theta, psi1, phi1, psi2, psi3, phi2 by the printed blocks."""
    S = n.l * n.m2 + 2 * n.l * n.m4 + n.l0 * n.m1 + n.l1 * n.m3 + n.l1 * n.m6
    K33 = n.jz3 + n.jx6 * ca.sin(phi2) ** 2 + n.jy6 * ca.cos(phi2) ** 2
    K22 = 2 * n.m4 * n.c**2 + n.jx2 + 2 * n.jx4
    turning = n.jz1 + n.jx2 + n.jz3 + 2 * n.jx4 + n.jx6 + n.l**2 * n.m2 + 2 * n.l**2 * n.m4 + n.l0**2 * n.m1 + n.l1**2 * n.m3
    turning += n.l1**2 * n.m6 + 2 * n.c**2 * n.m4 + (n.jy6 - n.jx6) * ca.cos(phi2) ** 2
    total = n.m1 + n.m2 + n.m3 + 2 * n.m4 + n.m6
    K = ca.diagcat(total, total, turning, K22, K33, n.jy4, n.jy4, n.jy6)
    for i, j, value in ((0, 2, -ca.sin(theta) * S), (1, 2, ca.cos(theta) * S), (2, 3, K22), (2, 4, K33)):
        K[i, j] = K[j, i] = value
    return ca.densify(K)
