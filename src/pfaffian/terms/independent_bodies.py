"""Kinematics in which every body moves independently: derivatives along these motions show on which bodies a force acts."""

from __future__ import annotations

from typing import Any

import casadi as ca

from pfaffian.errors import ModelError
from pfaffian.maths.so3 import hat
from pfaffian.model.body import WORLD
from pfaffian.model.constraint import Closure
from pfaffian.model.number import vector
from pfaffian.model.pose import Pose
from pfaffian.terms.kinematics import Kinematics, turned_twist
from pfaffian.terms.loop_joints import closing_joint


class Apart:
    """Kinematics for a caller's function, in which every body moves independently by a twist V (6, 1) in its axes.

    twists: body -> V.   along: closure -> (n, 1) the motion along its velocities by which it moves independently.

    displaced: whether V displaces the poses; otherwise V is added to the twists.
    """

    def __init__(self, k: Kinematics, *, displaced: bool) -> None:
        self._k, self._displaced = k, displaced
        self.twists: dict[str, ca.SX] = {}
        self.along: dict[str, ca.SX] = {}
        self.mechanism, self.q, self.v, self.t = k.mechanism, k.q, k.v, k.t

    position, rotation, velocity = Kinematics.position, Kinematics.rotation, Kinematics.velocity

    def _twist_of(self, body: str) -> ca.SX:
        return self.twists.setdefault(body, ca.SX.sym("V", 6)) if body != WORLD else ca.SX.zeros(6, 1)

    def joint(self, name: str) -> ca.SX:
        """Coordinates of a joint; those of one that closes a loop are displaced by its own motion, those of others are not."""
        x, c = self._k.joint(name), self.mechanism.loop_joints.get(name)
        return x + closing_joint(c).kinematic(x) @ self._motion_along(c) if c and self._displaced else x

    def joint_rate(self, name: str) -> ca.SX:
        """Velocities of a joint, as `joint`."""
        x, c = self._k.joint_rate(name), self.mechanism.loop_joints.get(name)
        return x + self._motion_along(c) if c and not self._displaced else x

    def _motion_along(self, c: Closure) -> ca.SX:
        return self.along.setdefault(c.name, ca.SX.sym("along", closing_joint(c).nv))

    def pose(self, body: str) -> Pose:
        G = self._k.pose(body)
        if not self._displaced:
            return G
        V = self._twist_of(body)
        return Pose(G.R + G.R @ hat(V[3:]), G.p + G.R @ V[:3])

    def line(self, body_a: str, body_b: str, point_a: Any = (0, 0, 0), point_b: Any = (0, 0, 0)) -> ca.SX:
        line = self._k.line(body_a, body_b, point_a, point_b)
        return line + self._moved(body_b, point_b) - self._moved(body_a, point_a) if self._displaced else line

    def _moved(self, body: str, point: Any) -> ca.SX:
        """(3, 1) displacement of a point of the body, world axes."""
        V = self._twist_of(body)
        return self._k.rotation(body) @ (V[:3] + ca.cross(V[3:], vector(point, 3, "point")))

    def relative_pose(self, body: str, seen_from: str) -> Pose:
        G = self._k.relative_pose(body, seen_from)
        if not self._displaced:
            return G
        there, here = (Pose(ca.SX.eye(3) + hat(V[3:]), V[:3]) for V in map(self._twist_of, (body, seen_from)))
        return (G @ there).seen_from(here)

    def twist(self, body: str, frame: str = "LOCAL") -> ca.SX:
        if self._displaced:
            return self._k.twist(body, frame)
        V = self._k.twist(body) + self._twist_of(body)
        return V if frame == "LOCAL" else turned_twist(self._k.pose(body), V[:3], V[3:], frame)

    def work(self, rate: ca.SX, V: ca.SX) -> ca.SX:
        """(n, rows) derivatives of the rows `rate` with respect to the motion V of a body, in its axes, or along a closure."""
        motions = [*self.twists.values(), *self.along.values()]
        return ca.substitute([ca.jacobian(rate, V).T], motions, [ca.SX.zeros(*x.shape) for x in motions])[0]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise ModelError(
            f"its function uses {name!r} of the kinematics, so the bodies on which its force acts cannot be determined; "
            "write it in terms of joint, joint_rate, pose, position, line, relative_pose, rotation, twist and velocity"
        )
