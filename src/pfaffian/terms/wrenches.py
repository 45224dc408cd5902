"""Forces body by body: what each body needs to move as it does, what acts on it, what constraints do to it.

Wrenches here are [force; moment] about the origin of the body's frame, along the world's axes.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import casadi as ca

from pfaffian.errors import ModelError
from pfaffian.maths.so3 import hat
from pfaffian.model.body import WORLD, Body
from pfaffian.model.caller import answer
from pfaffian.model.constraint import Closure, Holonomic, Nonholonomic, Target
from pfaffian.model.force import ExternalWrench, Spring
from pfaffian.model.number import column
from pfaffian.model.pose import Pose
from pfaffian.terms.forces import spring_pull
from pfaffian.terms.kinematics import Acceleration, Kinematics, turned_twist
from pfaffian.terms.pfaffian import activity
from pfaffian.terms.terms import Terms


def move(W: ca.SX, x: ca.SX) -> ca.SX:
    """Wrenches (6, n) known about a point, about another one from which it lies at x (3, 1)."""
    return ca.vertcat(W[:3, :], W[3:, :] + hat(x) @ W[:3, :])


def turn(R: ca.SX, W: ca.SX) -> ca.SX:
    """Wrenches (6, n) along other axes."""
    return ca.vertcat(R @ W[:3, :], R @ W[3:, :])


def inertial_wrench(k: Kinematics, b: Body, accelerations: tuple[Acceleration, ...]) -> ca.SX:
    """(6, 1) rate of the momentum of a body, less its weight; accelerations of the links as Kinematics gives them."""
    link, X = k.tree.place[b.name]
    R = k.pose(b.name).R
    if link < 0:
        f, n = -b.mass * k.mechanism.gravity, ca.SX.zeros(3, 1)
    else:
        x, w = accelerations[link], X.R.T @ k.omega[link]
        f = b.mass * (k.link_pose(link).R @ (x.a + x.Phi @ (X.R @ b.com + X.p)))
        n = R @ (b.inertia @ (X.R.T @ x.alpha) + ca.cross(w, b.inertia @ w))
    return move(ca.vertcat(f, n), R @ b.com)


def applied_wrench(T: Terms, body: str, u: ca.SX) -> ca.SX:
    """(6, 1) of springs between bodies and of external wrenches, known or inputs u (nu, 1).

    What acts within joints, as motors do, is left out.
    """
    k, m = T.kinematics, T.mechanism
    total, R = ca.SX.zeros(6, 1), k.rotation(body)
    for force in m.forces:
        if isinstance(force, Spring):
            ends = ((force.body_a, force.point_a, 1), (force.body_b, force.point_b, -1))
            for end, point, sign in ends:
                if end == body:
                    total += move(ca.vertcat(sign * spring_pull(k, force), ca.SX.zeros(3, 1)), R @ point)
        elif force.body == body:
            value = _inputs(T, force, u) if force.value is None else force.value
            total += move(turn(R, value) if force.axes == "LOCAL" else value, R @ force.point)
    return total


def _inputs(T: Terms, force: ExternalWrench, u: ca.SX) -> ca.SX:
    first = T.mechanism.u_names.index(f"{force.name}.fx")
    return u[first : first + 6]


class BodyRows(NamedTuple):
    """L: (6, rows) wrench on `body` for a unit of each multiplier of a constraint."""

    body: str
    L: ca.SX


def constraint_wrenches(k: Kinematics, c: Target) -> list[BodyRows]:
    """What a constraint does to each body that it holds, by the work that it does when bodies move on their own.

    A row that names a joint's coordinate or rate itself acts within the joint, as a motor does, and on no body.
    Raises ModelError: a function of the caller's that asks for more than joints, poses and twists of bodies.
    """
    if isinstance(c, Closure):
        found = _closure(k, c)
    else:
        apart = _Apart(k, c)
        what, f = f"constraint {c.name!r}", c.phi if isinstance(c, Holonomic) else c.eta
        rate = column(answer(f, what, apart), what)
        found = [BodyRows(name, turn(k.rotation(name), apart.work(rate, V))) for name, V in apart.twists.items()]
    if c.active is None:
        return found
    on = activity(k, c.active, c.name)
    return [BodyRows(name, L * on) for name, L in found]


def _closure(k: Kinematics, c: Closure) -> list[BodyRows]:
    Ga, Gb = k.pose(c.body_a) @ c.placement_a, k.pose(c.body_b) @ c.placement_b
    L = turn(Ga.R, ca.SX.eye(6)[:, list(c.locked)])  # at the origin of B, along the axes of A
    ends = ((c.body_a, -1), (c.body_b, 1))
    return [BodyRows(body, move(sign * L, Gb.p - k.position(body))) for body, sign in ends if body != WORLD]


class _Apart:
    """Kinematics for a constraint's function, in which every body moves on its own, by a twist V (6, 1) along its axes.

    A function phi sees poses that V displaces, a function eta sees V as the twist.
    """

    def __init__(self, k: Kinematics, c: Holonomic | Nonholonomic) -> None:
        self._k, self._c = k, c
        self.twists: dict[str, ca.SX] = {}
        self.mechanism, self.q, self.v, self.t = k.mechanism, k.q, k.v, k.t
        self.joint, self.joint_rate = k.joint, k.joint_rate

    position, rotation, velocity = Kinematics.position, Kinematics.rotation, Kinematics.velocity

    def _own(self, body: str) -> ca.SX:
        return self.twists.setdefault(body, ca.SX.sym("V", 6)) if body != WORLD else ca.SX.zeros(6, 1)

    def pose(self, body: str) -> Pose:
        G = self._k.pose(body)
        if isinstance(self._c, Nonholonomic):
            return G
        V = self._own(body)
        return Pose(G.R + G.R @ hat(V[3:]), G.p + G.R @ V[:3])

    def twist(self, body: str, frame: str = "LOCAL") -> ca.SX:
        if isinstance(self._c, Holonomic):
            return self._k.twist(body, frame)
        V = self._own(body)
        return V if frame == "LOCAL" else turned_twist(self._k.pose(body), V[:3], V[3:], frame)

    def work(self, rate: ca.SX, V: ca.SX) -> ca.SX:
        """(6, rows) of a body along its own axes: derivatives of the rows along its twist."""
        all_twists = list(self.twists.values())
        return ca.substitute([ca.jacobian(rate, V).T], all_twists, [ca.SX.zeros(6, 1)] * len(all_twists))[0]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise ModelError(
            f"its function asks the kinematics for {name!r}, so which body feels its force cannot be told; "
            "write it by joint, joint_rate, pose, position, rotation, twist and velocity"
        )
