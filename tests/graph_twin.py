"""The same machine described as a graph of relative poses, in redundant coordinates instead of joints."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

import pfaffian as pf
from pfaffian.maths import so3


class Chart(NamedTuple):
    """Coordinates of a joint.   q, v: names.   K: q -> K(q) in q_dot = K v.   pose: q -> pose.   phi: q -> residual.   of:
    q of the joint (n,) -> these coordinates."""

    q: tuple[str, ...]
    v: tuple[str, ...]
    K: Callable[[ca.SX], Any]
    pose: Callable[[ca.SX], pf.Pose]
    phi: Callable[[ca.SX], Any] | None
    of: Callable[[np.ndarray], np.ndarray]


def _rz(c, s):
    return ca.blockcat([[c, -s, 0], [s, c, 0], [0, 0, 1]])


def _columns(q):
    return ca.reshape(q, 3, 3)


def _spin(q):
    """K of the nine entries, column by column, for the body's angular velocity: R_dot = R hat(w)."""
    R = _columns(q)
    x, y, z = R[:, 0], R[:, 1], R[:, 2]
    none = ca.SX.zeros(3, 1)
    return ca.vertcat(ca.horzcat(none, -z, y), ca.horzcat(z, none, -x), ca.horzcat(-y, x, none))


def _orthonormal(q):
    """Residuals of R^T R = 1, six rows, and of det R = 1, which adds no rank."""
    R = _columns(q)
    E = R.T @ R - ca.SX.eye(3)
    return ca.vertcat(E[0, 0], E[1, 1], E[2, 2], E[0, 1], E[0, 2], E[1, 2], ca.det(R) - 1)


def _entries(q):
    return np.array(ca.DM(so3.quat_to_matrix(ca.DM(q)))).T.ravel()


NINE = tuple(f"R{i}{j}" for j in "xyz" for i in "xyz")
ZERO = ca.SX.zeros(3, 1)
REDUNDANT = {
    "revolute": Chart(("c", "s"), ("w",), lambda q: ca.vertcat(-q[1], q[0]), lambda q: pf.Pose(_rz(q[0], q[1]), ZERO),
                      lambda q: q[0] ** 2 + q[1] ** 2 - 1, lambda q: np.array([np.cos(q[0]), np.sin(q[0])])),
    "prismatic": Chart(("x",), ("v",), lambda q: 1, lambda q: pf.Pose(ca.SX.eye(3), ca.vertcat(0, 0, q)), None, lambda q: q),
    "planar": Chart(("x", "y", "c", "s"), ("vx", "vy", "w"),
                    lambda q: ca.vertcat(ca.horzcat(q[2], -q[3], 0), ca.horzcat(q[3], q[2], 0), ca.horzcat(0, 0, -q[3]),
                                         ca.horzcat(0, 0, q[2])),
                    lambda q: pf.Pose(_rz(q[2], q[3]), ca.vertcat(q[0], q[1], 0)),
                    lambda q: q[2] ** 2 + q[3] ** 2 - 1, lambda q: np.array([q[0], q[1], np.cos(q[2]), np.sin(q[2])])),
    "spherical": Chart(NINE, ("wx", "wy", "wz"), _spin, lambda q: pf.Pose(_columns(q), ZERO), _orthonormal, _entries),
    "free": Chart(("x", "y", "z", *NINE), ("vx", "vy", "vz", "wx", "wy", "wz"),
                  lambda q: ca.diagcat(_columns(q[3:]), _spin(q[3:])), lambda q: pf.Pose(_columns(q[3:]), q[:3]),
                  lambda q: _orthonormal(q[3:]), lambda q: np.concatenate([q[:3], _entries(q[3:])])),
}  # fmt: skip
"""Kind of joint -> coordinates without angles and quaternions [konz25 (2.5)-(2.7), (3.48), (4.87)]."""


class Twin(NamedTuple):
    """m: the graph.   q: configuration of the tree (nq,) -> that of the graph."""

    m: pf.Mechanism
    q: Callable[[np.ndarray], np.ndarray]


def graph_twin(m: pf.Mechanism, *, backwards: bool = False) -> Twin:
    """The mechanism with coordinates and an edge for every joint, and functions for the springs and dampers of joints.

    backwards: edges in the opposite order, every other one written from the child's side.
    """
    charts = {j.name: REDUNDANT[j.kind.name] for j in m.joints if j.nv}
    coordinates = [
        pf.coordinates(j.name, c.q, c.v, c.K, phi=c.phi, start=c.of(start))
        for j, c, start in ((j, charts[j.name], m.neutral()[m.q_slices[j.name]]) for j in m.joints if j.nv)
    ]
    edges = [_edge(j, charts.get(j.name), turned=backwards and i % 2 == 0) for i, j in enumerate(m.joints)]
    forces = [*m.forces]
    for j in m.joints:
        assert not m.value(j.armature).any(), "an edge has no armature"
        if j.nv:
            forces.append(
                pf.forces.dissipation(f"{j.name} damper", lambda k, j=j: ca.bilin(j.damping, k.joint_rate(j.name)) / 2)
            )
        assert not m.value(j.stiffness).any(), "a spring over redundant coordinates needs another form"
    made = pf.mechanism(
        "graph", m.bodies, edges[::-1] if backwards else edges, coordinates=coordinates, constraints=m.constraints,
        forces=forces, actuators=m.actuators, gravity=m.gravity, parameters=m.parameters,
    )  # fmt: skip
    return Twin(made, lambda q: np.concatenate([charts[j.name].of(q[m.q_slices[j.name]]) for j in m.joints if j.nv]))


def _edge(j: pf.Joint, chart: Chart | None, turned: bool) -> pf.Joint:
    def pose(k):
        motion = chart.pose(k.joint(j.name)) if chart else pf.pose()
        return j.placement @ motion @ j.child_placement.inverse()

    if turned:
        return pf.edge(f"edge {j.name}", j.child, j.parent, lambda k: pose(k).inverse())
    return pf.edge(f"edge {j.name}", j.parent, j.child, pose)
