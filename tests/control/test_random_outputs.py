"""V_L and its rate on random machines, outputs, gains and inertias, against a computation by matrices. [chhabra14 5.4]"""

from __future__ import annotations

from typing import NamedTuple

import casadi as ca
import numpy as np
import pytest
from scipy.linalg import block_diag, logm

import pfaffian as pf
from pfaffian import control
from pfaffian.maths import se3, so3
from tests.random_mechanisms import random_body, random_pose, random_tree
from tests.tolerance import close

STEP, STARTS = 3e-5, 6


class Case(NamedTuple):
    """m: the machine.   outputs: (body, kind, further arguments) of each output."""

    m: pf.Mechanism
    outputs: list[tuple[str, str, dict]]


def floating(random):
    """A free base, a ball joint, slides and hinges: base attitude and a hand's position, at momentum and with springs."""
    m = random_tree(random, ["free", "spherical", "revolute", "prismatic", "revolute"], [-1, 0, 1, 2, 0])
    at = tuple(random.normal(size=3))
    return Case(driven(m), [("b0", "attitude", {}), ("b3", "position", {"at": at})])


def standing(random):
    """Eight motors for seven coordinates: a hand's pose seen from the second body, and the height of a point of the first."""
    m = random_tree(random, ["revolute", "revolute", "spherical", "revolute", "revolute", "revolute"], [-1, 0, 1, 2, 3, 4])
    at = tuple(random.normal(size=3))
    return Case(
        driven(m, first=True),
        [("b5", "pose", {"seen_from": "b1", "at": at}), ("b0", "position", {"at": (0.3, 0.2, 0.1), "axes": (2,)})],
    )


def seen(random):
    """Two arms on a free base: one hand's attitude, and its position along two axes, seen from the other hand."""
    m = random_tree(random, ["free", "revolute", "revolute", "revolute", "revolute", "revolute"], [-1, 0, 1, 0, 3, 4])
    view = {"seen_from": "b5"}
    return Case(driven(m), [("b2", "attitude", view), ("b2", "position", view | {"axes": (0, 2)})])


def rolling(random):
    """A base that rolls and steers by its joint, an arm of three hinges: positions of a point of the base and of the hand."""
    bodies = [random_body(random, f"b{i}") for i in range(4)]
    joints = [pf.joint("j0", "planar", "world", "b0", distribution=np.array([[1.0, 0], [0, 0], [0, 1]]))]
    joints += [
        pf.joint(f"j{i}", "revolute", f"b{i - 1}", f"b{i}", axis=random.normal(size=3), placement=random_pose(random))
        for i in (1, 2, 3)
    ]
    m = pf.mechanism("rolling", bodies, joints, gravity=(0, 0, -9.81))
    base, hand = {"at": (0.3, 0.1, 0), "axes": (0, 1)}, {"at": tuple(random.normal(size=3))}
    return Case(driven(m, first=True), [("b0", "position", base), ("b3", "position", hand)])


def flat(random):
    """A free base in the plane with two arms: the base's heading, and the pose of one hand seen from the other."""
    bodies = [pf.body(f"b{i}", 1.0, com=(*random.normal(size=2) * 0.2, 0), inertia=0.3) for i in range(6)]
    joints = [pf.joint("j0", "planar", "world", "b0")]
    joints += [
        pf.joint(f"j{i}", "revolute", f"b{over}", f"b{i}", placement=(*random.normal(size=2), 0))
        for i, over in ((1, 0), (2, 1), (3, 2), (4, 0), (5, 4))
    ]
    m = pf.mechanism("flat", bodies, joints, gravity=(0, 0, 0))
    hand = {"seen_from": "b5", "at": (0.3, -0.2, 0)}
    return Case(driven(m), [("b0", "heading", {}), ("b3", "planar pose", hand)])


ROWS = {"pose": range(6), "attitude": (3, 4, 5), "planar pose": (0, 1, 5), "heading": (5,)}


def driven(m, first=False):
    """The machine with motors on all joints, on the first one only with `first`."""
    joints = m.joints if first else m.joints[1:]
    return m.with_(actuators=[pf.actuator(f"{j.name} {i}", j.name, component=i) for j in joints for i in range(j.nv)])


def gain(random, k):
    """Random full matrix, symmetric and positive definite."""
    X = random.normal(size=(k, k))
    return X @ X.T + np.eye(k)


def reference(random, kind, rows):
    """gamma(t), a function of time whose velocity is never constant."""
    a, b, c = (random.normal(size=6) * x for x in (0.4, 0.3, 0.2))

    def way(t):
        return a + b * ca.sin(1.3 * t + c[0]) + c * t

    return {
        "pose": lambda t: se3.homogeneous(*se3.exp(ca.DM(a))) @ se3.homogeneous(*se3.exp(b * ca.sin(t) + ca.DM(c) * t)),
        "attitude": lambda t: so3.exp(ca.DM(a[:3])) @ so3.exp(b[:3] * ca.sin(t) + ca.DM(c[:3]) * t),
        "planar pose": lambda t: flat_pose(way(t)),
        "heading": lambda t: flat_pose(way(t))[:2, :2],
        "position": lambda t: ca.vertcat(*[way(t)[i] for i in rows]),
    }[kind]  # fmt: skip


def flat_pose(x):
    c, s = ca.cos(x[5]), ca.sin(x[5])
    return ca.blockcat([[c, -s, x[0]], [s, c, x[1]], [0, 0, 1]])


def whole(X, kind, rows):
    """(4, 4) homogeneous matrix of the group element X."""
    G = np.eye(4)
    if kind == "pose":
        G = X
    elif kind in ("attitude", "heading"):
        G[: len(X), : len(X)] = X
    elif kind == "planar pose":
        G[:2, :2], G[:2, 3] = X[:2, :2], X[:2, 2]
    else:
        G[list(rows), 3] = np.ravel(X)
    return G


def place(poses, body, kind, rows, at=(0, 0, 0), axes=(), seen_from=None):
    """(4, 4) homogeneous matrix of an output's group element r at these poses."""
    on, under = (
        np.eye(4) if n is None else np.block([[poses[n].rotation, poses[n].position[:, None]], [np.zeros((1, 3)), 1]])
        for n in (body, seen_from)
    )
    on[:3, 3] += on[:3, :3] @ at
    X = np.linalg.solve(under, on)
    parts = {"pose": X, "attitude": X[:3, :3], "heading": X[:2, :2], "planar pose": np.delete(np.delete(X, 2, 0), 2, 1)}
    return whole(parts.get(kind, X[list(axes or (0, 1, 2)), 3]), kind, rows)


def slope(x):
    """Derivative at the middle of five samples."""
    return (x[0] - 8 * x[1] + 8 * x[3] - x[4]) / (12 * STEP)


def vee(X, rows):
    return np.array([X[0, 3], X[1, 3], X[2, 3], X[2, 1], X[0, 2], X[1, 0]]).real[rows]


@pytest.mark.parametrize("make", [floating, standing, seen, rolling, flat], ids=lambda make: make.__name__)
def test_V_L_changes_at_its_recorded_rate(make):
    random = np.random.default_rng(3)
    m, outputs_of_case = make(random)
    outputs, gains, goals = [], [], []
    for body, kind, more in outputs_of_case:
        rows = ROWS.get(kind, more.get("axes", (0, 1, 2)))
        K_P, K_D, I = (gain(random, len(rows)) for _ in range(3))
        goal = reference(random, kind, rows)
        outputs.append(control.output(body, kind, goal, stiffness=K_P, damping=K_D, inertia=I, **more))
        gains.append((list(rows), K_P, K_D, I))
        t = ca.SX.sym("t")
        goals.append(ca.Function("goal", [t], [ca.SX(goal(t))]))
    q = np.array([pf.random_configuration(m, random) for _ in range(STARTS)])
    v = random.normal(size=(STARTS, m.nv))
    r = pf.run(m, q, v, duration=4 * STEP, step=STEP, every=1, start=0.7, control=control.concurrent(outputs),
               record=["q", "output_error", "velocity_error", "lyapunov", "lyapunov_rate"])  # fmt: skip
    assert not r.status.any()
    V, rate = r.lyapunov.values, r.lyapunov_rate.values[:, 2]
    size = np.abs(rate).max()
    close(slope(V.T), rate, 1e-8, "dV_L/dt", size)
    K_D = block_diag(*[g[2] for g in gains])
    v_e = r.velocity_error.values[:, 2]
    close(-np.einsum("ri,ij,rj->r", v_e, K_D, v_e), rate, 1e-12, "-<K_D v_e, v_e>", size)
    # By matrices: xi_e = log(r^-1 gamma), V and eta by differences along the run.
    times = 0.7 + STEP * np.arange(5)
    for i in range(STARTS):
        poses = [pf.forward_kinematics(m, x) for x in r.q.values[i]]
        value, errors = 0.0, []
        for (body, kind, more), (rows, K_P, _, I), goal in zip(outputs_of_case, gains, goals, strict=True):
            here = np.array([place(x, body, kind, rows, **more) for x in poses])
            there = np.array([whole(np.array(goal(t)), kind, rows) for t in times])
            r_e = np.linalg.solve(here[2], there[2])
            velocity, eta = (np.linalg.solve(x[2], slope(x)) for x in (here, there))
            xi, v_e = vee(logm(r_e), rows), vee(velocity - r_e @ eta @ np.linalg.inv(r_e), rows)
            value += (xi @ K_P @ xi + v_e @ I @ v_e) / 2
            errors.append(xi)
        close(r.output_error.values[i, 2], np.concatenate(errors), 1e-9, "xi_e")
        close(V[i, 2], value, 1e-8, "V_L")
