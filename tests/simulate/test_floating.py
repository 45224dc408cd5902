"""Machines on a free base, against composite bodies summed by hand, closed forms, and runs."""

from __future__ import annotations

from typing import NamedTuple

import casadi as ca
import numpy as np
import pytest

import pfaffian as pf
from pfaffian import control
from pfaffian.maths.linear import solve_definite
from tests.matrices import hat
from tests.random_mechanisms import random_body, random_rotation
from tests.simulate.test_reduction import satellite
from tests.tolerance import ALGEBRA, PEER, close

HAND = {"frame": "LOCAL_WORLD_ALIGNED", "point": (0.2, -0.1, 0.3)}


class Arm(NamedTuple):
    """An arm of hinges on a free base.   bodies: n + 1.   axes, places: (n, 3).   turned: n rotations (3, 3)."""

    bodies: list[pf.Body]
    axes: np.ndarray
    places: np.ndarray
    turned: list[np.ndarray]

    @property
    def mechanism(self) -> pf.Mechanism:
        joints = [pf.joint("flight", "free", "world", "b0")]
        for i, (axis, p, R) in enumerate(zip(self.axes, self.places, self.turned, strict=True)):
            joints.append(pf.joint(f"j{i}", "revolute", f"b{i}", f"b{i + 1}", axis=axis, placement=pf.pose(p, rotation=R)))
        return pf.mechanism("floating arm", self.bodies, joints, gravity=(0, 0, 0))


def random_arm(seed: int, hinges: int = 7) -> Arm:
    random = np.random.default_rng(seed)
    bodies = [random_body(random, f"b{i}") for i in range(hinges + 1)]
    axes = random.normal(size=(hinges, 3))
    axes /= np.linalg.norm(axes, axis=1, keepdims=True)
    return Arm(bodies, axes, random.uniform(-0.5, 0.5, (hinges, 3)), [random_rotation(random) for _ in range(hinges)])


def start(m, seed=0):
    random = np.random.default_rng(seed)
    return pf.random_configuration(m, random), random.normal(size=m.nv)


def about(n, angle):
    """Rotation about a unit vector n, by Rodrigues' formula."""
    return np.eye(3) + np.sin(angle) * hat(n) + (1 - np.cos(angle)) * hat(n) @ hat(n)


class Composite(NamedTuple):
    """Quantities for the velocities u = [w_0; r_0_dot; joints] of the base's origin and the joints, in world axes.

    H: (6 + n, 6 + n) mass matrix. momentum: (6, 6 + n) rows [angular about the world's origin; linear]. J: (6, 6 + n) twist
    rows [turning; travel] of a point of the last body. to_v: (6 + n, 6 + n) matrix with u = to_v v for our v.
    """

    H: np.ndarray
    momentum: np.ndarray
    J: np.ndarray
    to_v: np.ndarray


def composite(arm: Arm, q: np.ndarray, point) -> Composite:
    """Quantities of an arm by the decoupled natural orthogonal complement with composite masses, from the last body down."""
    n = len(arm.axes)
    x, y, z, w = q[3:7]
    R = [np.eye(3) + 2 * w * hat([x, y, z]) + 2 * hat([x, y, z]) @ hat([x, y, z])]
    origin, k = [q[:3]], []
    for i in range(n):
        origin.append(origin[i] + R[i] @ arm.places[i])
        before = R[i] @ arm.turned[i]
        k.append(before @ arm.axes[i])
        R.append(before @ about(arm.axes[i], q[7 + i]))
    number = [[np.array(ca.DM(x)) for x in (b.mass, b.com, b.inertia)] for b in arm.bodies]
    centre = [o + A @ com.ravel() for o, A, (_, com, _) in zip(origin, R, number, strict=True)]

    def carry(to, at):
        """Matrix that takes the twist at one point to the twist at another point of the same body."""
        return np.block([[np.eye(3), np.zeros((3, 3))], [hat(at - to), np.eye(3)]])

    # Twist of each joint at the mass centre of the body that it moves.
    p = [np.r_[k[i], np.cross(k[i], centre[i + 1] - origin[i + 1])] for i in range(n)]
    M = [None] * (n + 1)
    for i in reversed(range(n + 1)):
        mass, _, I = number[i]
        M[i] = np.block([[R[i] @ I @ R[i].T, np.zeros((3, 3))], [np.zeros((3, 3)), mass * np.eye(3)]])
        if i < n:
            B = carry(centre[i + 1], centre[i])
            M[i] = M[i] + B.T @ M[i + 1] @ B
    H, rows = np.zeros((6 + n, 6 + n)), np.zeros((6, 6 + n))
    base = carry(centre[0], origin[0])
    H[:6, :6] = base.T @ M[0] @ base
    back = carry(np.zeros(3), origin[0])  # from the momentum about the base's origin to that about the world's
    for j in range(n):
        across = M[j + 1] @ p[j]
        H[:6, 6 + j] = (carry(centre[j + 1], centre[0]) @ base).T @ across
        for i in range(j + 1):
            H[6 + i, 6 + j] = (carry(centre[j + 1], centre[i + 1]) @ p[i]) @ across
    H = np.triu(H) + np.triu(H, 1).T
    rows = np.linalg.inv(back).T @ H[:6, :]
    at = origin[-1] + R[-1] @ np.asarray(point)
    J = np.hstack([carry(at, origin[0]), *[(carry(at, centre[i + 1]) @ p[i])[:, None] for i in range(n)]])
    to_v = np.eye(6 + n)
    to_v[:6, :6] = np.block([[np.zeros((3, 3)), R[0]], [R[0], np.zeros((3, 3))]])
    return Composite(H, rows, J, to_v)


@pytest.mark.parametrize("seed", range(2))
def test_quantities_of_space_robot_toolkits(seed):
    """H_0, H_0m, H* = H_m - H_0m^T H_0^-1 H_0m, momentum and generalised Jacobian, from composite bodies."""
    arm = random_arm(seed)
    m = arm.mechanism
    q, v = start(m, seed)
    c = composite(arm, q, HAND["point"])
    H0, H0m, Hm = c.H[:6, :6], c.H[:6, 6:], c.H[6:, 6:]
    close(pf.mass_matrix(m, q), c.to_v.T @ c.H @ c.to_v, PEER, "H")
    A = np.linalg.solve(H0, H0m)
    close(c.to_v[:6, :6] @ pf.reduction.mechanical_connection(m, q), A, PEER, "H_0^-1 H_0m")
    close(pf.reduction.shape_inertia(m, q), Hm - H0m.T @ A, PEER, "H*")
    p = c.momentum @ c.to_v @ v
    close(pf.reduction.momentum_map(m, q, v), p[[3, 4, 5, 0, 1, 2]], PEER, "momentum")
    turn_last = [3, 4, 5, 0, 1, 2]
    close(pf.reduction.generalised_jacobian(m, "b7", q, **HAND), (c.J[:, 6:] - c.J[:, :6] @ A)[turn_last], PEER, "J_g")
    drift = c.J[:, :6] @ np.linalg.solve(H0, c.H[:6, :] @ c.to_v @ v)
    close(pf.reduction.momentum_twist(m, "b7", q, v, **HAND), drift[turn_last], PEER, "J_b H_0^-1 mu")


def test_the_twist_of_the_hand_is_the_sum_of_joint_and_momentum_parts():
    m = satellite()
    q, v = start(m, 4)
    J = pf.jacobian(m, "right", q, **HAND)
    parts = pf.reduction.generalised_jacobian(m, "right", q, **HAND) @ v[6:] + pf.reduction.momentum_twist(
        m, "right", q, v, **HAND
    )
    close(parts, J @ v, 1e2 * ALGEBRA, "V")
    # With the conserved momentum as an argument the result is the same, although no velocities of the base enter.
    mu = pf.reduction.momentum_map(m, q, v)

    def by_momentum(T):
        return pf.reduction.floating_base(T).momentum_twist("right", HAND["frame"], HAND["point"], momentum=mu)

    f = pf.compile_terms(
        m, {"drift": by_momentum, "J": lambda T: pf.reduction.floating_base(T).jacobian("right")}, backend="numpy"
    )
    close(f(q)["drift"], pf.reduction.momentum_twist(m, "right", q, v, **HAND), 1e2 * ALGEBRA, "drift")
    close(f(q)["J"], pf.reduction.generalised_jacobian(m, "right", q), 10 * ALGEBRA, "J in the body")


def test_defaults_of_optional_arguments():
    """Twists are of the body's origin in its axes, the null space keeps the whole pose, and holonomy takes 200 steps."""
    m = satellite()
    q, v = start(m, 6)
    by_arm, by_momentum = (
        pf.reduction.generalised_jacobian(m, "right", q) @ v[6:],
        pf.reduction.momentum_twist(m, "right", q, v),
    )
    close(by_arm + by_momentum, pf.jacobian(m, "right", q) @ v, 1e2 * ALGEBRA, "V")
    m = random_arm(5).mechanism
    q, v = start(m, 5)
    base = pf.reduction.floating_base(pf.symbols(m))
    f = ca.Function("f", [base.terms.q, base.terms.v], [base.momentum_twist("b7"), base.reaction_free()])
    close(np.array(f(q, v)[0]).ravel(), pf.reduction.momentum_twist(m, "b7", q, v), 1e2 * ALGEBRA, "J_b K11^-1 mu_b")
    close(np.array(f(q, v)[1]), pf.reduction.reaction_null_space(m, q), PEER, "P")
    close(pf.reduction.reaction_null_space(m, q), pf.reduction.reaction_null_space(m, q, keep="pose"), ALGEBRA, "P")
    with pytest.raises(pf.ModelError, match="momentum: 6 numbers are needed"):
        base.momentum_twist("b7", momentum=[1, 2, 3])
    assert pf.reduction.holonomy(two_bodies(), lambda x: x).shape == (201, 4, 4)


def test_expressions_work_in_laws_and_outputs():
    """A law that pushes along the reaction null space of four hinges does not turn the hull; an output computes the hand's
    twist."""
    m = random_arm(7, 4).mechanism
    m = m.with_(actuators=pf.actuate_all(m).actuators[6:])

    def law(T, z, w, reaction):
        """Torques that move the joints at s = P(q) a t while the base moves freely."""
        base = pf.reduction.floating_base(T)
        P = base.reaction_free("attitude")
        a = ca.DM([0.8, -0.5, 0.4, 0.6])
        s = P @ a * T.t
        s_dot = ca.jtimes(s, T.q, T.kinematics.q_dot) + ca.jacobian(s, T.t)
        c = T.c - T.f
        tau_dot = -solve_definite(base.blocks.K11, base.blocks.K1s @ s_dot + c[base.b, 0])
        u = T.M[base.s, base.b] @ tau_dot + T.M[base.s, base.s] @ s_dot + c[base.s, 0]
        return control.Command(u)

    def hand(k):
        base = pf.reduction.floating_base(k)
        return base.jacobian("b4") @ k.v[base.s, 0] + base.momentum_twist("b4", momentum=np.zeros(6)) - k.twist("b4")

    q = start(m, 3)[0]
    r = pf.run(m, q, None, control=control.Control(law), outputs={"hand": hand}, duration=0.5, step=1e-3, every=50)
    turned = r["q"].values[:, 3:7] - q[3:7]
    close(turned, 0 * turned, 1e-10, "attitude", 1)
    close(r["hand"].values, np.zeros((11, 6)), 1e-11, "twist of the hand without momentum", 1)
    assert np.abs(r["q"].values[-1, 7:] - q[7:]).max() > 0.02 and np.abs(r["q"].values[-1, :3] - q[:3]).max() > 1e-3


@pytest.mark.parametrize("keep, rows, left", [("pose", slice(0, 6), 1), ("attitude", slice(3, 6), 4)])
def test_reaction_null_space(keep, rows, left):
    """Against the SVD of the coupling, whose linear part is eliminated by hand."""
    m = random_arm(5).mechanism
    q = np.array([start(m, i)[0] for i in range(3)])
    P = pf.reduction.reaction_null_space(m, q, keep=keep)
    for q_i, P_i in zip(q, P, strict=True):
        M = pf.mass_matrix(m, q_i)
        K = M[3:6] - M[3:6, :3] @ np.linalg.solve(M[:3, :3], M[:3])
        coupling = M[:6, 6:] if keep == "pose" else K[:, 6:]
        Vt = np.linalg.svd(coupling)[2][-left:]
        close(P_i, Vt.T @ Vt, PEER, "P")
        close((pf.reduction.mechanical_connection(m, q_i) @ P_i)[rows], np.zeros(P_i[rows].shape), PEER, "A P")
    assert pf.constraints.transport_basis(P[:1]).shape == (1, 7, left)


# -- attitude by arm motion --------------------------------------------------------------------------------------------

M1, J1, ARM1, M2, J2, ARM2 = 5.0, 0.4, 0.6, 2.0, 0.15, 0.5


def two_bodies(base="planar") -> pf.Mechanism:
    bodies = [pf.body("hull", M1, inertia=J1), pf.body("arm", M2, com=(ARM2, 0, 0), inertia=J2)]
    joints = [pf.joint("base", base, "world", "hull"), pf.joint("hinge", "revolute", "hull", "arm", placement=(ARM1, 0, 0))]
    return pf.mechanism("two bodies", bodies, joints, gravity=(0, 0, 0))


def turned_by(a: float, b: float) -> float:
    """Angle by which the hull turns while the hinge goes from a to b without angular momentum, in closed form."""
    e = M1 * M2 / (M1 + M2)
    A1, A2, k = J1 + e * ARM1**2, J2 + e * ARM2**2, 2 * e * ARM1 * ARM2
    root = np.sqrt((A1 + A2) ** 2 - k**2)

    def integral(x):  # of 1 / (A1 + A2 + k cos x)
        return (2 * np.arctan(root / (A1 + A2 + k) * np.tan(x / 2)) + 2 * np.pi * np.round(x / (2 * np.pi))) / root

    return -(b - a) / 2 - (A2 - A1) / 2 * (integral(b) - integral(a))


@pytest.mark.parametrize("base", ["planar", "free"])
@pytest.mark.parametrize("a, b", [(-0.4, 2.3), (0.0, 2 * np.pi), (1.0, -8.0)])
def test_planar_holonomy_in_closed_form(base, a, b):
    """After a full turn of the hinge the machine has its shape again, but another attitude."""
    g = pf.reduction.holonomy(two_bodies(base), lambda x: a + (b - a) * x, steps=120)
    angle = np.unwrap(np.arctan2(g[:, 1, 0], g[:, 0, 0]))
    close(angle[-1], turned_by(a, b), PEER, "angle", 1)
    # The common mass centre stands still: those of hull and arm move oppositely.
    c, s = np.cos(angle + a + (b - a) * np.linspace(0, 1, 121)), np.sin(angle + a + (b - a) * np.linspace(0, 1, 121))
    arm = g[:, :2, 3] + ARM1 * g[:, :2, 0] + ARM2 * np.stack([c, s], axis=1)
    centre = (M1 * g[:, :2, 3] + M2 * arm) / (M1 + M2)
    close(centre, np.tile(centre[0], (121, 1)), PEER, "mass centre", 1)


def test_holonomy_in_space_equals_that_of_a_run():
    """A loop of two hinges that do not commute: of order six, and equal to the integrated motion."""
    m = satellite()
    path = lambda x: ca.vertcat(ca.sin(2 * np.pi * x), 1 - ca.cos(2 * np.pi * x))  # noqa: E731
    coarse, fine, finest = (pf.reduction.holonomy(m, path, steps=n)[-1] for n in (15, 30, 60))
    assert np.abs(coarse - finest).max() > 40 * np.abs(fine - finest).max()
    driven = pf.nonholonomic("path", lambda k: k.v[6:] - _rate(path, k.t))
    there = m.with_(constraints=[driven], actuators=[])
    s = np.array([2 * np.pi, 0])
    v = np.r_[-pf.reduction.mechanical_connection(m) @ s, s]
    r = pf.run(there, None, v, duration=1.0, step=1e-3, every=1000, backend="c")
    place = pf.forward_kinematics(m, r.q[-1].values, bodies=["hull"])["hull"]
    close(finest[:3, :3], place.rotation, 1e-9, "attitude", 1)
    close(finest[:3, 3], place.position, 1e-9, "place", 1)


def _rate(path, t):
    x = ca.SX.sym("x")
    return ca.substitute(ca.jacobian(path(x), x), x, t)


def test_holonomy_of_a_ball_joint():
    """The path consists of quaternions; turned about one axis the ball acts as a hinge."""
    m = two_bodies("free")
    ball = pf.joint("hinge", "spherical", "hull", "arm", placement=(ARM1, 0, 0))
    by_ball = pf.reduction.holonomy(
        m.with_(joints=[m.joints[0], ball]), lambda x: ca.vertcat(0, 0, ca.sin(x), ca.cos(x)), steps=30
    )
    close(by_ball, pf.reduction.holonomy(m, lambda x: 2 * x, steps=30), PEER, "g")
