"""Symbolic matrices of the thesis's three machines: spacecraft, rover, car with a crane. [chhabra14 3.4, 4.6]

Each machine is described twice: as a Mechanism with symbolic lengths, masses and inertias, and by the printed formulas of the
thesis: relative poses q_j, bases S_j, positions of mass centres. Kinetic energy, connections, two-forms and reduced equations
of both are compared at random states and parameter values; the figures show the library's matrices, in symbols where SymPy is
installed. The spacecraft's motion is also integrated by the sixteen printed equations of its reduced space. Parameter values
are ours.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import casadi as ca
import numpy as np
import xarray as xr

import pfaffian as pf
from pfaffian.maths import linear, se3, subgroups
from pfaffian.study import Claim, blank_figure

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


# -- as mechanisms ------------------------------------------------------------------------------------------------------


def mechanism() -> pf.Mechanism:
    """The spacecraft in symbols; its spherical joint is three hinges about x, y and z, whose angles are those of the thesis."""
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


# -- comparison ---------------------------------------------------------------------------------------------------------


def value(x: Any, at: ca.SX | None = None, number: Any = ()) -> np.ndarray:
    """Value of the expression x where its symbols `at` have the values `number`."""
    return np.array(ca.Function("x", [ca.SX(0, 1) if at is None else at], [ca.densify(ca.SX(x))])(number))


def off(a: Any, b: Any) -> float:
    """Largest difference, relative to the largest entry of b."""
    return float(np.abs(np.asarray(a) - np.asarray(b)).max() / max(1e-300, np.abs(np.asarray(b)).max()))


def varied(letters: Mapping[str, float], random: np.random.Generator) -> dict[str, float]:
    return {n: x * random.uniform(0.8, 1.25) for n, x in letters.items()}


def spacecraft_off() -> dict[str, float]:
    """By name: largest relative difference between a quantity and its printed formula over the random states."""
    m, n, random = mechanism(), unknowns(SPACECRAFT), np.random.default_rng(2)
    mu1, mu2 = ca.SX.sym("mu1"), ca.SX.sym("mu2")
    o, q, x, yh = ca.SX.sym("o", 4), ca.SX.sym("q", 6), ca.SX.sym("x", 6), ca.SX.sym("yh", 2)
    joints = printed_spacecraft(n, q)
    M = printed_inertia(joints)
    A = linear.solve_definite(M[:6, :6], M[:6, 6:])
    R, p = section(o)
    carried = ca.horzcat(*[_twist(R, p, o[i], left=True) for i in range(4)])
    mu = column(0, mu1, 0, mu2, 0, 0)
    base = rotation("Y", x[4]) @ rotation("X", x[3]) @ rotation("Z", x[5])
    base_twists = ca.horzcat(*[_twist(base, x[:3], x[i]) for i in range(6)])
    h = fitted(mu2 / mu1, yh[0], yh[1], o)
    place = ca.vertcat(h[1] + h[0] @ p, o[2], yh[1], o[3])
    alone = printed_form(mu1, mu2, o, q, A)
    along = column(0, 1, 0, 0, 0, 0), column(mu2 / mu1, 0, 0, 0, 1, 0)
    between = connection_of_isotropy(mu1, mu2, o, M)
    motions = ca.horzcat(*along) @ between
    theta = ca.vertcat(
        ca.horzcat(*[_twist(R, p, o[i]) for i in range(4)]).T @ body_momentum(mu1, mu2, o), A.T @ body_momentum(mu1, mu2, o)
    )
    slopes = ca.jacobian(theta, ca.vertcat(o, q))
    sx, cx, sz, cz = ca.sin(x[3]), ca.cos(x[3]), ca.sin(x[5]), ca.cos(x[5])
    back = ca.diagcat(base, ca.blockcat([[cz, -sz, 0], [sz / cx, cz / cx, 0], [sz * sx / cx, cz * sx / cx, 1]]))
    pairs = {
        "bases S_j": (ca.horzcat(*[basis_of_pose(j) for j in joints[1:]]), ca.horzcat(*[j.S for j in joints[1:]])),
        "basis of the base": (base_twists, base_rates(x)),
        "its inverse, in the horizontal lift": (back @ base_rates(x), ca.SX.eye(6)),
        "T chi chi^-1": (carried, carried_section(o)),
        "mu_b": (se3.Ad(R, p).T @ mu, body_momentum(mu1, mu2, o)),
        "T chi~": (ca.jacobian(place, ca.vertcat(yh, o)), split_tangent(mu2 / mu1, yh[1], o)),
        "mu under its isotropy group": (se3.Ad(*h).T @ mu, mu),
        "Xi_mu by theta": (slopes.T - slopes, alone),
        "Xi_mu with A^mu": (printed_form(mu1, mu2, o, q, A, motions), alone),
        "Xi_mu of the orbit": (alone[:4, :4], orbit_form(mu1, o)),
        "Pfaffian of the orbit": (pfaffian(alone[:4, :4]), -(mu1**2) * ca.cos(o[2])),
    }  # fmt: skip
    both = [ca.densify(y) for pair in pairs.values() for y in pair]
    f = ca.Function(
        "f",
        [*n.values(), mu1, mu2, o, q, x, yh],
        [M, motions, se3.Ad(base, x[:3]) @ ca.horzcat(base_rates(x), A), *both],
        {"cse": True},
    )
    found: dict[str, float] = {}
    for _ in range(STATES):
        L, momentum = varied(SPACECRAFT, random), varied(MU, random)
        at = [random.uniform(-1, 1, k) for k in (4, 6, 6, 2)]
        M_at, motions_at, connection, *values = (np.array(y) for y in f(*L.values(), *momentum.values(), *at))
        # The library's base is placed at the pose of the section.
        pose = np.array(ca.DM(value(rotation("X", o[2]) @ rotation("Z", o[3]), o, at[0])))
        here = np.r_[at[0][0], 0, at[0][1], _quaternion(pose), at[1]]
        there = np.r_[at[2][:3], _quaternion(value(base, x, at[2])), at[1]]
        numbers = [0, momentum["mu1"], 0, momentum["mu2"], 0, 0]
        v = np.block(
            [
                [value(ca.horzcat(*[_twist(R, p, o[i]) for i in range(4)]), o, at[0]), np.zeros((6, 6))],
                [np.zeros((6, 4)), np.eye(6)],
            ]
        )
        connection_at = (
            subgroups.isotropy(np.eye(6), numbers) @ pf.reduction.isotropy_connection(m, numbers, here, parameters=L) @ v
        )
        rates = np.block([[value(base_rates(x), x, at[2]), np.zeros((6, 6))], [np.zeros((6, 6)), np.eye(6)]])
        A_q = np.linalg.solve(
            pf.reduction.locked_inertia(m, there, parameters=L),
            np.column_stack([pf.reduction.momentum_map(m, there, e, parameters=L) for e in rates.T]),
        )
        here_too = {
            "K": off(pf.mass_matrix(m, here, parameters=L), M_at),
            "A~ of the isotropy group": off(connection_at, motions_at),
            "A_q": off(A_q, connection),
        } | {name: off(values[2 * i], values[2 * i + 1]) for i, name in enumerate(pairs)}
        found = {name: max(found.get(name, 0.0), y) for name, y in here_too.items()}
    return found


def pfaffian(X: ca.SX) -> ca.SX:
    """Pfaffian of a skew (4, 4) matrix."""
    return X[0, 1] * X[2, 3] - X[0, 2] * X[1, 3] + X[0, 3] * X[1, 2]


def _twist(R: ca.SX, p: ca.SX, by: ca.SX, left: bool = False) -> ca.SX:
    """(6, 1) twist H^-1 dH, or dH H^-1 if `left`, of the pose H = (R, p) by the symbol `by`."""
    D, v = ca.reshape(ca.jacobian(ca.vec(R), by), 3, 3), ca.jacobian(p, by)
    W = D @ R.T if left else R.T @ D
    w = ca.vertcat(W[2, 1], W[0, 2], W[1, 0])
    return ca.vertcat(v - ca.cross(w, p) if left else R.T @ v, w)


def _quaternion(R: np.ndarray) -> np.ndarray:
    """Quaternion (x, y, z, w) of a rotation by less than half a turn."""
    w = np.sqrt(1 + np.trace(R)) / 2
    return np.r_[np.array([R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]]) / (4 * w), w]


def rover_off() -> dict[str, float]:
    m, n, random = rover(), unknowns(ROVER), np.random.default_rng(3)
    q, p, theta = ca.SX.sym("q", 5), ca.SX.sym("p", 5), ca.SX.sym("theta")
    joints = printed_rover(n, q)
    pull, M_hat = rover_curvature(n, q, p)
    s, c = ca.sin(theta), ca.cos(theta)
    V = n.g * (n.l4 * n.m6 * ca.sin(q[3] + q[4]) + n.l3 * (n.m5 / 2 + n.m6) * ca.sin(q[3]))
    rows = ca.blockcat([[-s, c, 0, 0, 0], [c, s, -n.c, -n.b, 0], [c, s, n.c, 0, -n.b]])
    fields = ca.vertcat(ca.blockcat([[n.b / 2 * c] * 2, [n.b / 2 * s] * 2, [-n.b / (2 * n.c), n.b / (2 * n.c)]]), ca.SX.eye(2))
    turn = ca.diagcat(rotation("Z", theta)[:2, :2], 1)
    pairs = {
        "bases S_j": (ca.horzcat(*[basis_of_pose(j) for j in joints[1:]]), ca.horzcat(*[j.S for j in joints[1:]])),
        "horizontal lift": (-turn @ rover_lift(n), fields[:3, :]),
    }  # fmt: skip
    both = [ca.densify(y) for pair in pairs.values() for y in pair]
    f = ca.Function(
        "f", [*n.values(), q, p, theta], [printed_inertia(joints), pull, M_hat, V, rows @ fields, rover_lift(n), *both]
    )
    found: dict[str, float] = {}
    for _ in range(STATES):
        L, at, velocity = varied(ROVER, random), random.uniform(-1.5, 1.5, 8), random.normal(size=5)
        M, _, metric, height, slip, A, *values = (np.array(y) for y in f(*L.values(), at[3:], np.zeros(5), at[2]))
        v = np.r_[-A @ velocity[:2], velocity]
        K = pf.mass_matrix(m, at, parameters=L)
        upsilon = float(f(*L.values(), at[3:], metric @ velocity, at[2])[1])
        expected = np.zeros((5, 5))
        expected[0, 1], expected[1, 0] = upsilon, -upsilon
        lift = np.vstack([np.pad(-A, [(0, 0), (0, 3)]), np.eye(5)])
        zero = pf.energy(m, np.r_[at[:6], 0, 0], parameters=L).potential
        here = {
            "K": off(K, M),
            "V": off(pf.energy(m, at, parameters=L).potential - zero, height),
            "fields of D, slip": float(np.abs(slip).max()),
            "A^": off(pf.reduction.constraint_connection(m, at, parameters=L)[:, :2], A),
            "M^ by its blocks": off(lift.T @ K @ lift, metric),
            "Xi^": off(pf.reduction.constraint_curvature(m, at, parameters=L) @ (K @ v)[:3], expected),
        } | {name: off(values[2 * i], values[2 * i + 1]) for i, name in enumerate(pairs)}
        found = {name: max(found.get(name, 0.0), y) for name, y in here.items()}
    return found


def car_off() -> dict[str, float]:
    m, n, random, by = car(), unknowns(CAR), np.random.default_rng(4), ["base", "psi3"]
    q, p, theta, post_momentum = ca.SX.sym("q", 4), ca.SX.sym("p", 4), ca.SX.sym("theta"), ca.SX.sym("kept")
    wheels = ca.SX.sym("wheels", 2)
    joints = printed_car(n, ca.vertcat(q[0], q[2], wheels, q[3]))
    pull, M_hat = car_curvature(n, q, p)
    s, e, c, d = ca.sin(q[0]), ca.cos(q[0]), ca.cos(theta), ca.sin(theta)
    D = n.l - n.c * s
    rows = ca.blockcat([
        [-d, c, 0, 0, 0, 0],
        [-ca.sin(theta + q[0]), ca.cos(theta + q[0]), n.l * e, 0, 0, 0],
        [ca.cos(theta + q[0]), ca.sin(theta + q[0]), n.l * s - n.c, -n.c, -n.b, 0],
        [ca.cos(theta + q[0]), ca.sin(theta + q[0]), n.l * s + n.c, n.c, 0, -n.b],
    ])  # of x, y, theta, psi1, psi2, psi3  # fmt: skip
    columns = []
    for first, last in ((n.c, 2 / (n.b * e)), (n.b, (n.l + n.c * s) / (n.b * n.l * e))):
        columns.append(first * n.l * e / D * column(c, d, s / e / n.l, 0, 0, last))
    fields = ca.horzcat(*columns)
    fields[3, 0] = fields[4, 1] = 1
    turn = ca.diagcat(rotation("Z", theta)[:2, :2], 1, 1)
    across = ca.horzcat(n.c * s, n.b * s, D, 0) / D
    alpha = post_momentum * across
    slopes = ca.jacobian(alpha, q)
    form = ca.SX(4, 4)
    form[0, 1], form[1, 0] = post_momentum * n.b * n.l * e / D**2, -post_momentum * n.b * n.l * e / D**2
    K_theta = ca.diagcat(rotation("Z", theta)[:2, :2], ca.SX.eye(6))
    K = printed_inertia(joints)
    pairs = {
        "bases S_j": (ca.horzcat(*[basis_of_pose(j) for j in joints[1:]]), ca.horzcat(*[j.S for j in joints[1:]])),
        "K by its blocks": (K_theta @ K @ K_theta.T, car_inertia(n, q[3], theta)),
        "horizontal lift": (-turn @ car_lift(n, q[0]), fields[[0, 1, 2, 5], :]),
        "connection of the post": (M_hat[2, :] / M_hat[2, 2], across),
        "form of its momentum": (slopes.T - slopes, form),
    }  # fmt: skip
    both = [ca.densify(y) for pair in pairs.values() for y in pair]
    f = ca.Function(
        "f", [*n.values(), q, p, theta, post_momentum, wheels], [K, pull, M_hat, rows @ fields, car_lift(n, q[0]), *both]
    )
    found: dict[str, float] = {}
    for _ in range(STATES):
        L, at, velocity = varied(CAR, random), random.uniform(-0.9, 0.9, 8), random.normal(size=4)
        shape = at[[3, 5, 4, 7]]  # psi1, psi2, phi1, phi2
        rest = at[2], 3.0, at[[5, 6]]
        M, _, metric, slip, A, *values = (np.array(y) for y in f(*L.values(), shape, np.zeros(4), *rest))
        v = np.zeros(8)
        v[[3, 5, 4, 7]], v[[0, 1, 2, 6]] = velocity, -A @ velocity[:2]
        upsilon = float(f(*L.values(), shape, metric @ velocity, *rest)[1])
        expected = np.zeros((4, 4))
        expected[0, 1], expected[1, 0] = upsilon, -upsilon
        B = pf.reduction.constraint_curvature(m, at, by=by, parameters=L)  # of psi1, phi1, psi2, phi2
        order = [0, 2, 1, 3]
        P = (pf.mass_matrix(m, at, parameters=L) @ v)[[0, 1, 2, 6]]
        here = {
            "K": off(pf.mass_matrix(m, at, parameters=L), M),
            "fields of D, slip": float(np.abs(slip).max()),
            "A^": off(pf.reduction.constraint_connection(m, at, by=by, parameters=L)[:, [0, 2]], A),
            "Xi^": off((B @ P)[np.ix_(order, order)], expected),
        } | {name: off(values[2 * i], values[2 * i + 1]) for i, name in enumerate(pairs)}
        found = {name: max(found.get(name, 0.0), y) for name, y in here.items()}
    return found


def closed_or_not() -> dict[str, np.ndarray]:
    """d Xi_mu of the spacecraft at the start, as cyclic sums over index triples; derivatives of the rover's Upsilon at its
    start."""
    o, q = ca.SX.sym("o", 4), ca.SX.sym("q", 6)
    M = printed_inertia(printed_spacecraft(Letter(SPACECRAFT), q))
    A = linear.solve_definite(M[:6, :6], M[:6, 6:])
    Xi = printed_form(MU["mu1"], MU["mu2"], o, q, A)
    x = ca.vertcat(o, q)
    slopes = ca.Function("slopes", [x], [Xi, ca.jacobian(ca.vec(Xi), x)], {"cse": True})
    at, d = (np.array(y) for y in slopes(START))
    d = d.reshape(10, 10, 10)  # [j, i, k]: d_k Xi_ij
    round_three = [d[j, i, k] + d[k, j, i] + d[i, k, j] for i, j, k in combinations(range(10), 3)]
    w, p = ca.SX.sym("w", 5), ca.SX.sym("p", 5)
    pull, M_hat = rover_curvature(Letter(ROVER), w, p)
    f = ca.Function("f", [w, p], [ca.jacobian(pull, w), ca.jacobian(pull, p), M_hat, pull])
    start, rates = ROVER_START
    by_q, by_p, _, pull_at = (np.array(y).ravel() for y in f(start, np.array(f(start, rates)[2]) @ rates))
    return {
        "round three": np.array(round_three),
        "largest": np.abs(at).max(),
        "by phi": by_q[2:],
        "by psi": by_q[:2],
        "by p": by_p,
        "Upsilon": pull_at,
    }


def run() -> dict[str, xr.Dataset]:
    machine = sixteen(Letter(SPACECRAFT), MU["mu1"], MU["mu2"])
    M = value(printed_inertia(printed_spacecraft(Letter(SPACECRAFT), ca.SX(START[4:]))))
    p = (M[6:, 6:] - M[6:, :6] @ np.linalg.solve(M[:6, :6], M[:6, 6:])) @ RATES
    x, step, records = np.r_[START, p], 5e-3, []

    def rate(x: np.ndarray) -> np.ndarray:
        return np.array(machine(x)[0]).ravel()

    for i in range(1001):
        if not i % 20:
            records.append(x)
        k1 = rate(x)
        k2 = rate(x + step / 2 * k1)
        k3 = rate(x + step / 2 * k2)
        x = x + step / 6 * (k1 + 2 * k2 + 2 * k3 + rate(x + step * k3))
    x = np.array(records)
    ran = {"state": (("time", "entry"), x), "energy": ("time", [float(machine(y)[1]) for y in x])}
    compared = {"spacecraft": spacecraft_off(), "rover": rover_off(), "car": car_off()}
    return {"spacecraft in sixteen": xr.Dataset(ran, coords={"time": 0.1 * np.arange(len(x))})} | {
        "forms": xr.Dataset({name: (f"of {name}", np.atleast_1d(y)) for name, y in closed_or_not().items()}),
        **{name: xr.Dataset({"off": ("what", list(y.values()))}, coords={"what": list(y)}) for name, y in compared.items()},
    }


# -- figures ------------------------------------------------------------------------------------------------------------


NAMES = {"psi1": "psi_1", "psi2": "psi_2", "phi1": "phi_1", "phi2": "phi_2", "mu1": "mu_1", "mu2": "mu_2"}


UNPRINTED = r"$\bullet$"
"""Mark of an entry that needs SymPy to be written in symbols."""


def named(m: pf.Mechanism, q: Any) -> ca.SX:
    """M of the library at q, with its parameters as symbols."""
    T, at = pf.symbols(m), ca.vertcat(*q, *[ca.SX.sym(name) for name in m.p_names])
    return ca.densify(ca.substitute(T.M, ca.vertcat(T.q, m.p_symbols), at))


def in_letters(x: Any, states: Mapping[ca.SX, str] | None = None) -> list[list[str]]:
    """Text of each entry of an expression; states: symbol -> name. Without SymPy, `UNPRINTED` for nonzero entries."""
    try:
        import sympy as sp
    except ImportError:
        x = ca.densify(ca.SX(x))
        return [["$0$" if x[i, k].is_zero() else UNPRINTED for k in range(x.shape[1])] for i in range(x.shape[0])]

    known = {s.name(): sp.Symbol(name, real=True) for s, name in (states or {}).items()}
    for s in ca.symvar(ca.SX(x)):
        n = s.name()
        known.setdefault(
            n, sp.Symbol(NAMES.get(n) or (f"j_{n[1]}{n[2:]}" if n[0] == "j" else f"{n[0]}_{n[1:]}" if n[1:] else n))
        )
    M = pf.screws.to_sympy(x, known)
    return [
        [f"${sp.latex(sp.factor_terms(sp.trigsimp(e)) if len(str(e)) < 60 else sp.simplify(e))}$" for e in M.row(i)]
        for i in range(M.rows)
    ]


def matrix(ax: Any, entries: list[list[str]], rows: Sequence[str], columns: Sequence[str], title: str, size: float = 8) -> None:
    """Draw the entries of a matrix, nonzero ones on a coloured ground."""
    ax.imshow([[x != "$0$" for x in row] for row in entries], cmap="Blues", vmin=0, vmax=4, aspect="auto")
    for i, row in enumerate(entries):
        for k, x in enumerate(row):
            ax.text(k, i, x, ha="center", va="center", fontsize=size)
    ax.set_xticks(range(len(columns)), [x and f"${x}$" for x in columns])
    ax.set_yticks(range(len(rows)), [f"${x}$" for x in rows])
    ax.tick_params(length=0)
    ax.grid(False)
    ax.spines[:].set_visible(False)
    ax.set_title(f"{title} (symbols: pip install sympy)" if any(UNPRINTED in row for row in entries) else title)


def figures(result: dict[str, xr.Dataset]) -> dict[str, Any]:
    ran = _sixteen(result["spacecraft in sixteen"])
    return {"spacecraft": _spacecraft(), "sixteen": ran, "car": _car(), "wheels": _wheels()}


TWIST = ("v_x", "v_y", "v_z", "w_x", "w_y", "w_z")
SECTION = ("x", "z", r"\theta_X", r"\theta_Z")


def shortened(entries: list[list[str]], names: Mapping[str, tuple[int, int]]) -> tuple[list[list[str]], list[str]]:
    """The entries with names in the given places, and the equations of these names."""
    long = []
    for name, (i, k) in names.items():
        text = entries[i][k]
        if text != UNPRINTED:
            long.append(f"${name} = $ {text}")
            entries = [[f"${name}$" if x == text else x for x in row] for row in entries]
    return entries, long


def _spacecraft() -> Any:
    figure = blank_figure(11.0, 6.5)
    axes = figure.subplots(2, 2, width_ratios=(1, 1.3), height_ratios=(1, 1)).ravel()
    o, mu1, mu2, ratio, about_y = ca.SX.sym("o", 4), *(ca.SX.sym(x) for x in ("mu1", "mu2", "ratio", "yh"))
    states = dict(zip(ca.vertsplit(o), ("x", "z", "theta_X", "theta_Z"), strict=True))
    states |= {about_y: "theta_Y", ratio: r"\frac{\mu_2}{\mu_1}"}
    matrix(axes[0], in_letters(carried_section(o), states), TWIST, SECTION, r"$T\chi\,\chi^{-1}$")
    names = ("x", "y", "z", r"\theta_X", r"\theta_Y", r"\theta_Z")
    tangent = in_letters(split_tangent(ratio, about_y, o), states)
    tangent, long = shortened(tangent, {"a": (0, 1), "b": (2, 1)})
    matrix(axes[1], tangent, names, ("y", r"\theta_Y", *SECTION), r"$T\tilde\chi$")
    axes[1].set_xlabel("\n".join(long), fontsize=8)
    matrix(axes[2], in_letters(orbit_form(mu1, o), states), SECTION, SECTION, r"$\Xi_\mu$ of the orbit")
    matrix(axes[3], in_letters(body_momentum(mu1, mu2, o), states), TWIST, ("",), r"$\mu_b$")
    return figure


def _sixteen(r: xr.Dataset) -> Any:
    figure = blank_figure(10.0, 3.2)
    orbit, shape, momenta = figure.subplots(1, 3)
    for i, name in enumerate(SECTION):
        orbit.plot(r["time"], r["state"][:, i], label=f"${name}$")
    for i, name in enumerate((r"\psi_X", r"\psi_Y", r"\psi_Z", r"\psi_1", r"\psi_2", r"\psi_3")):
        shape.plot(r["time"], r["state"][:, 4 + i], label=f"${name}$")
        momenta.plot(r["time"], r["state"][:, 10 + i])
    orbit.set(ylabel="[m], [rad]", title="position on the orbit")
    shape.set(ylabel="[rad]", title="shape")
    momenta.set(ylabel="[N m s]", title="momenta of the shape, same colours")
    for ax in (orbit, shape, momenta):
        ax.set(xlabel="time [s]")
    orbit.legend(loc="upper left", ncols=2)
    shape.legend(loc="upper left", ncols=3)
    return figure


def _car() -> Any:
    figure = blank_figure(11.0, 5.5)
    K = named(car(), [ca.SX.sym(x) for x in ("x", "y", "theta", "psi1", "phi1", "psi2", "psi3", "phi2")])
    rates = ("v_x", "v_y", "w", r"\psi_1", r"\phi_1", r"\psi_2", r"\psi_3", r"\phi_2")
    entries, long = shortened(in_letters(K), {"m_{tot}": (0, 0), "S": (1, 2), r"j_{z,tot}": (2, 2), "K_{33}": (4, 4)})
    ax = figure.subplots()
    matrix(ax, entries, rates, rates, "car: K of the library, in the axes of the base")
    ax.set_xlabel("\n".join(long), fontsize=8)
    return figure


def _wheels() -> Any:
    figure = blank_figure(11.0, 3.2)
    rover_s, car_s, curved = figure.subplots(1, 3, width_ratios=(1, 1.6, 1))
    n, a = unknowns(CAR), ca.SX.sym("psi1")
    base, wheels = ("v_x", "v_y", "w", r"\psi_3"), (r"\psi_1", r"\psi_2")
    matrix(rover_s, in_letters(rover_lift(unknowns(ROVER))), base[:3], wheels, r"rover: $\hat A$", 10)
    matrix(car_s, in_letters(car_lift(n, a)), base, wheels, r"car: $\hat A$", 10)
    matrix(curved, in_letters(car_bend(n, a)), base, ("",), r"car: $\hat B_{12}$", 10)
    return figure


# -- claims -------------------------------------------------------------------------------------------------------------

EXACT = 1e-14
"""Tolerance of two computations of one expression, relative to its largest entry."""


def claims(result: dict[str, xr.Dataset]) -> Iterator[Claim]:
    sources = {
        "spacecraft": "[chhabra14 3.4]",
        "rover": "[chhabra14 example 4.6.1]",
        "car": "[chhabra14 example 4.6.2]",
    }
    for name, source in sources.items():
        for what, x in zip(result[name]["what"].values, result[name]["off"].values, strict=True):
            yield Claim(f"{name}: {what} minus its printed formula, relative", x, 0, EXACT, source)
    ran = result["spacecraft in sixteen"]
    last = (0.25588136, -0.441264147, 0.8193218581, -0.6337636431)
    last += (1.6246502994, 0.9415472815, -0.4612152686, 0.1216709787, -0.5099969956, -1.1821938358)
    for i, (x, expected) in enumerate(zip(ran["state"].values[-1], last, strict=False)):
        yield Claim(
            f"spacecraft in sixteen: entry {i + 1} at 5 s", x, expected, 6e-9 if i == 0 else 2e-9, sources["spacecraft"]
        )
    yield Claim("spacecraft in sixteen: energy at 0 [J]", ran["energy"][0], 9.56720528757156, 1e-13, sources["spacecraft"])
    yield Claim("spacecraft in sixteen: change of energy [J]", np.ptp(ran["energy"].values), 0, 1e-8, "[chhabra14 (3.3.44)]")
    forms = result["forms"]
    round_three = np.abs(forms["round three"].values).max() / forms["largest"].item()
    yield Claim(
        "spacecraft: d Xi_mu, relative to the largest entry of Xi_mu", round_three, 0, EXACT, "[chhabra14 theorem 3.2.7]"
    )
    for i, x in enumerate((-0.0103, 0.0010, -0.0003)):
        yield Claim(f"rover: derivative of Upsilon by phi{i + 1}", forms["by phi"].values[i], x, 5e-5, sources["rover"])
    yield Claim("rover: derivatives of Upsilon by psi", np.abs(forms["by psi"].values).max(), 0, 0, sources["rover"])
    yield Claim("rover: Upsilon at 0 [N m s]", forms["Upsilon"].item(), 0.006035250883290945, 1e-15, sources["rover"])
    by_p = np.abs(forms["by p"].values).min()
    yield Claim("rover: smallest derivative of Upsilon by a momentum", by_p, 0.01, 0, sources["rover"], "at least")
