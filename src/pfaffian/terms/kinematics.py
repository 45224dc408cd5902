"""Poses and motions of bodies: twists, Jacobians, kinematic matrix, bias accelerations.

Link quantities are in the link's axes. The acceleration of a point here is the second derivative of its position, not the
spatial acceleration, so that the velocities of origins are not needed to compute forces.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from pfaffian.errors import ModelError, brief, is_one_of, nearest
from pfaffian.kernel.remember import remembered
from pfaffian.maths import se3, so3
from pfaffian.maths.margins import equilibrated
from pfaffian.maths.repeated import repeated
from pfaffian.model import reprs
from pfaffian.model.constraint import Closure
from pfaffian.model.mechanism import Mechanism
from pfaffian.model.number import matrix, vector
from pfaffian.model.pose import IDENTITY, Pose
from pfaffian.model.traced_function import TracedFunction, graph
from pfaffian.model.user_functions import call_for_value, in_symbols
from pfaffian.terms.loop_joints import loop_coordinates, loop_rates
from pfaffian.terms.rates import (
    Rates,
    coordinates_of,
    elimination_parents,
    moving,
    places,
    rate_rows,
    rates_as_written,
    rates_of,
    symbols_of,
)
from pfaffian.terms.tree import Tree, motion, split_motion

FRAMES = ("LOCAL", "WORLD", "LOCAL_WORLD_ALIGNED")


class Acceleration(NamedTuple):
    """Acceleration of a link in its axes: a (3, 1) of its origin [m/s^2], alpha (3, 1) angular [rad/s^2].

    Phi: (3, 3) hat(alpha) + w w^T - |w|^2 1, so that the point at x has the acceleration a + Phi x.
    """

    a: ca.SX
    alpha: ca.SX
    Phi: ca.SX


@dataclass(frozen=True, eq=False)
class Kinematics:
    """Kinematics of a mechanism at symbols q (nq, 1), v (nv, 1), t; each quantity is computed once, on demand.

    The functions of `holonomic`, `nonholonomic` and other parts of a model receive it as their argument k, and write
    expressions of its poses, twists, Jacobians, coordinates and rates. `symbols(m).kinematics` returns one.

    Example:
        >>> import pfaffian as pf
        >>> bob = pf.body("bob", mass=2.0, com=(0, 0, -1))
        >>> m = pf.mechanism("pendulum", [bob], [pf.joint("hinge", "revolute", "world", "bob", axis=(0, 1, 0))])
        >>> k = pf.symbols(m).kinematics
        >>> print(k.position("bob", (0, 0, -1))[0], k.joint_rate("hinge"))
        (-sin(q)) v
    """

    mechanism: Mechanism
    q: ca.SX
    v: ca.SX
    t: ca.SX

    def __repr__(self) -> str:
        m = self.mechanism
        return reprs.words(self, f"of {m.name!r}", f"q ({m.nq}, 1), v ({m.nv}, 1), t")

    @cached_property
    def apart(self) -> Kinematics:
        """This kinematics at symbols of its own, in which energies are differentiated; one for all of them, which share it."""
        return replace(self, q=ca.SX.sym("q", self.q.numel()), v=ca.SX.sym("v", self.v.numel()), t=ca.SX.sym("t"))

    @cached_property
    def rates(self) -> Rates:
        return rates(self.mechanism)

    @property
    def tree(self) -> Tree:
        return self.rates.tree

    @cached_property
    def parents(self) -> tuple[int, ...]:
        """For each velocity the next one on the path to the root, or -1; this gives the sparsity of M. [tree_factor]"""
        if self.mechanism.kinetic_energies:
            return tuple(range(-1, self.mechanism.nv - 1))
        rotors = self.mechanism.loop_rotors
        if self.rates.plain and not rotors:
            return self.tree.parents
        path = ca.DM(self.tree.ns, self.tree.ns)
        for i, link in enumerate(self.tree.links):
            for above in self.tree.path(i):
                path[self.tree.links[above].v, link.v] = path[link.v, self.tree.links[above].v] = 1
        N = ca.DM.ones(self.maps[1].sparsity())
        entries = N.T @ path @ N
        for c in rotors:
            J = ca.DM.ones(loop_rates(self, c).sparsity())
            entries += J.T @ J
        return elimination_parents(entries.sparsity())

    @cached_property
    def maps(self) -> tuple[ca.SX, ca.SX, ca.SX]:
        """K (nq, nv), N (ns, nv), T (nv, nv): q_dot = K v, link rates s = N v, velocities of the joints as written v0 = T v."""
        return tuple(map(ca.sparsify, self.rates.maps(self.q, self.mechanism.p_symbols)))  # type: ignore[return-value]

    @cached_property
    def s(self) -> ca.SX:
        """(ns, 1) rates of the links."""
        return self.v if self.rates.plain else ca.densify(self.maps[1] @ self.v)

    def s_dot(self, v_dot: ca.SX | None = None) -> ca.SX:
        """(ns, 1) derivatives of the link rates s at v_dot (nv, 1), which is zero if not given."""
        if self.rates.plain:
            return ca.SX(self.mechanism.nv, 1) if v_dot is None else v_dot
        bias = ca.SX(self.rates.bias(self.q, self.v, self.mechanism.p_symbols))
        return bias if v_dot is None else bias + self.maps[1] @ v_dot

    def along_v(self, X: ca.SX) -> ca.SX:
        """N^T X (nv, k): transform generalised forces X (ns, k) along the link rates to forces along v."""
        return X if self.rates.plain else self.maps[1].T @ X

    def joint_rates_along_v(self, X: ca.SX) -> ca.SX:
        """T^T X (nv, k): transform generalised forces X (nv, k) along the joint velocities v0 to forces along v."""
        return X if self.mechanism.velocities is None else self.maps[2].T @ X

    # -- the arguments of constraint and task functions ------------------------------------------------------------

    def joint(self, name: str) -> ca.SX:
        """(n, 1) coordinates of a joint, also of one that follows others or closes a loop, or of `coordinates`."""
        if closing := self._closing(name):
            return loop_coordinates(self, closing)
        return coordinates_of(self.mechanism, self.mechanism.owner(name), self.q)

    def joint_rate(self, name: str) -> ca.SX:
        """(n, 1) velocities of a joint, also of one that closes a loop, or of `coordinates` as written: entries of v, or of T v
        where velocities are chosen."""
        if closing := self._closing(name):
            return ca.densify(loop_rates(self, closing) @ self.v)
        v0 = self.v if self.mechanism.velocities is None else self.maps[2] @ self.v
        return ca.densify(rate_rows(self.mechanism, self.mechanism.owner(name)) @ v0)

    def along_joint(self, name: str, X: ca.SX) -> ca.SX:
        """(nv, k) generalised forces along v of forces X (n, k) along the velocities of a joint or of `coordinates`."""
        if closing := self._closing(name):
            return loop_rates(self, closing).T @ X
        placed = ca.SX(self.mechanism.nv, X.shape[1])
        placed[self.mechanism.v_slices[name], :] = X
        return self.joint_rates_along_v(placed)

    def _closing(self, name: Any) -> Closure | None:
        """The closure of this name, if it is a joint."""
        return self.mechanism.loop_joints.get(name) if isinstance(name, str) else None

    def pose(self, body: str) -> Pose:
        """Pose of the body in the world."""
        link, X = self._place(body)
        return self.link_pose(link) @ X

    def position(self, body: str, point: Any = (0, 0, 0)) -> ca.SX:
        """(3, 1) world position of a point (3,) of the body [m]."""
        X = self.pose(body)
        return X.R @ vector(point, 3, "point") + X.p

    def rotation(self, body: str) -> ca.SX:
        """(3, 3) rotation from the body's axes to the world's."""
        return self.pose(body).R

    def twist(self, body: str, frame: str = "LOCAL") -> ca.SX:
        """(6, 1) twist [v; w] of the body; frame as in Pinocchio: LOCAL, WORLD or LOCAL_WORLD_ALIGNED."""
        link, X = self._place(body)
        if link < 0:
            return ca.SX.zeros(6, 1)
        u, w = self.link_velocity[link]
        v, w = X.R.T @ (u + ca.cross(w, X.p)), X.R.T @ w
        return ca.vertcat(v, w) if frame == "LOCAL" else turned_twist(self.pose(body), v, w, frame)

    def velocity(self, body: str, point: Any = (0, 0, 0)) -> ca.SX:
        """(3, 1) world velocity of a point (3,) of the body [m/s]."""
        V = self.twist(body, "LOCAL_WORLD_ALIGNED")
        return V[:3] + ca.cross(V[3:], self.rotation(body) @ vector(point, 3, "point"))

    def specific_force(self, body: str, v_dot: ca.SX, point: Any = (0, 0, 0)) -> ca.SX:
        """(3, 1) R^T (a - g) of a point (3,) of the body at v_dot (nv, 1): what an accelerometer there measures [m/s^2]."""
        link, X = self._place(body)
        gravity = self.mechanism.gravity
        if link < 0:
            return -X.R.T @ gravity
        acceleration = self.accelerations(v_dot, gravity)[link]
        return X.R.T @ (acceleration.a + acceleration.Phi @ (X.R @ vector(point, 3, "point") + X.p))

    def line(self, body_a: str, body_b: str, point_a: Any = (0, 0, 0), point_b: Any = (0, 0, 0)) -> ca.SX:
        """(3, 1) vector from a point (3,) of body_a to one of body_b, world axes [m].

        It is the difference of their positions, summed from the links between the two bodies alone, so that it keeps its digits
        however far from the world's origin they are.
        """
        ends = ((body_a, point_a, "point_a"), (body_b, point_b, "point_b"))
        (a, x), (b, y) = ((self._place(body), vector(point, 3, what)) for body, point, what in ends)
        return self.between((a[0], a[1].R @ x + a[1].p), (b[0], b[1].R @ y + b[1].p))

    def relative_pose(self, body: str, seen_from: str) -> Pose:
        """Pose of a body relative to another one, with the digits of `line`."""
        R = self.rotation(seen_from)
        return Pose(R.T @ self.rotation(body), R.T @ self.line(seen_from, body))

    def jacobian(self, body: str, frame: str = "LOCAL", point: Any = (0, 0, 0)) -> ca.SX:
        """(6, nv) Jacobian J, twist = J v, of a frame at `point` (3,) of the body with the body's axes."""
        link, X = self._place(body)
        if check_frame(frame) == "WORLD":
            return self.columns({i: -self.link_pose(i).p for i in self.tree.path(link)})
        J = self.columns(self.arms(link, X.R @ vector(point, 3, "point") + X.p))
        if frame == "LOCAL_WORLD_ALIGNED":
            return J
        R = self.rotation(body)
        return ca.diagcat(R.T, R.T) @ J

    def bias_acceleration(self, body: str, point: Any = (0, 0, 0)) -> ca.SX:
        """(6, 1) J_dot v, J the `jacobian` in LOCAL_WORLD_ALIGNED: [acceleration; angular acceleration] at v_dot = 0."""
        link, X = self._place(body)
        if link < 0:
            return ca.SX.zeros(6, 1)
        a, alpha = self.link_bias(link, X.R @ vector(point, 3, "point") + X.p)
        return ca.vertcat(a + self.mechanism.gravity, alpha)

    def relative(self, body: str, seen_from: str) -> tuple[Pose, ca.SX]:
        """Pose of a body relative to another one, and the Jacobian J (6, nv) of its relative twist, in the body's axes.

        Only the links between the two are used. Between neighbouring links, J consists of the joint's constant basis.
        """
        (end, X), (other, Y) = self._place(body), self._place(seen_from)
        shared = set(self.tree.path(end)) & set(self.tree.path(other))
        below, above = ([i for i in self.tree.path(link) if i not in shared] for link in (end, other))
        J, G, steps = ca.SX(6, self.tree.ns), IDENTITY, [X, *[self.steps[i] for i in below]]
        for i, step in zip(below, steps, strict=False):
            G = step @ G  # pose of the body in link i
            J[:, self.tree.links[i].v] = se3.Ad_inv(G.R, G.p) @ self.tree.links[i].basis
        back = [Y, *[self.steps[i] for i in above]]
        G = steps[-1].seen_from(back[-1]) @ G
        for i, step in zip(reversed(above), back[-2::-1], strict=True):
            J[:, self.tree.links[i].v] = -se3.Ad_inv(G.R, G.p) @ self.tree.links[i].basis
            G = step.inverse() @ G
        return G, J if self.rates.plain else ca.SX(J @ self.maps[1])

    def share_link(self, body: str, other: str) -> bool:
        """Whether a moving link carries both bodies, directly or through other links."""
        (end, _), (other_end, _) = self._place(body), self._place(other)
        return bool(set(self.tree.path(end)) & set(self.tree.path(other_end)))

    @cached_property
    def kinematic_matrix(self) -> ca.SX:
        """K (nq, nv): q_dot = K v."""
        if self.rates.plain and not self.mechanism.coordinates:
            m = self.mechanism
            return ca.diagcat(*[j.kinematic(self.q[m.q_slices[j.name], 0]) for j in m.joints if j.nv])
        return self.maps[0]

    @cached_property
    def q_dot(self) -> ca.SX:
        """(nq, 1) K v."""
        return self.kinematic_matrix @ self.v

    # -- the recursions -----------------------------------------------------------------------------------------

    @cached_property
    def steps(self) -> tuple[Pose, ...]:
        """For each link its pose in the previous link."""
        return tuple(link.placement @ X for link, X in zip(self.tree.links, self.motions, strict=True))

    @cached_property
    def motions(self) -> tuple[Pose, ...]:
        """For each link the pose of its joint's frame on the child relative to the joint's frame on the parent."""
        found = []
        for i, link in enumerate(self.tree.links):
            edge = self.rates.pose.get(i)
            found.append(Pose(*edge(self.q, self.mechanism.p_symbols)) if edge else motion(link, self.q[link.q]))
        return tuple(found)

    @cached_property
    def _poses(self) -> dict[int, Pose]:
        return {-1: IDENTITY}

    def link_pose(self, link: int) -> Pose:
        """Pose of a link in the world; only requested links are computed."""
        if link not in self._poses:
            before = self.tree.links[link].parent
            G, step = self.link_pose(before), self.steps[link]
            self._poses[link] = step if before < 0 else Pose(G.R @ step.R, self.offset(link) + G.p)
        return self._poses[link]

    @cached_property
    def omega(self) -> tuple[ca.SX, ...]:
        """Angular velocity (3, 1) of each link, in its axes [rad/s]."""
        out: list[ca.SX] = []
        for link, X in zip(self.tree.links, self.steps, strict=True):
            s = self.s[link.v]
            out += _turned_on()(link.basis, s, X.R, out[link.parent]) if link.parent >= 0 else [split_motion(link, s)[1]]
        return tuple(out)

    @cached_property
    def spin(self) -> tuple[ca.SX, ...]:
        """w w^T - |w|^2 1 of each link (3, 3): w x (w x y) = spin y, in six products."""
        return tuple(_spin()(w)[0] for w in self.omega)

    @cached_property
    def link_velocity(self) -> tuple[tuple[ca.SX, ca.SX], ...]:
        """Velocity of the origin and angular velocity of each link, in its axes [m/s, rad/s]."""
        out: list[tuple[ca.SX, ca.SX]] = []
        for link, X, w in zip(self.tree.links, self.steps, self.omega, strict=True):
            s = self.s[link.v]
            if link.parent >= 0:
                (u,) = _velocity()(link.basis, s, X.R, X.p, *out[link.parent])
            else:
                u, _ = split_motion(link, s)
            out.append((u, w))
        return tuple(out)

    def accelerations(self, v_dot: ca.SX | None, gravity: ca.SX) -> tuple[Acceleration, ...]:
        """Acceleration minus gravity of each link, as if the world accelerated by -gravity. v_dot: (nv, 1), zero if None."""
        s_dot = self.s_dot(v_dot)
        out: list[Acceleration] = []
        for i, (link, X) in enumerate(zip(self.tree.links, self.steps, strict=True)):
            a, alpha = self.velocity_product(i, with_spin=False)
            a_rel, alpha_rel = split_motion(link, s_dot[link.v])
            a, alpha = a + a_rel, alpha + alpha_rel
            if link.parent >= 0:
                before = out[link.parent]
                a, alpha = a + X.R.T @ (before.a + before.Phi @ X.p), alpha + X.R.T @ before.alpha
            else:
                a -= X.R.T @ gravity
            out.append(Acceleration(a, alpha, so3.hat(alpha) + self.spin[i]))
        return tuple(out)

    @cached_property
    def bias_accelerations(self) -> tuple[Acceleration, ...]:
        """Acceleration minus gravity of each link at v_dot = 0."""
        return self.accelerations(None, self.mechanism.gravity)

    def link_bias(self, link: int, x: ca.SX) -> tuple[ca.SX, ca.SX]:
        """World acceleration minus gravity of the point x (3, 1) of a link at v_dot = 0, and its angular acceleration."""
        if link < 0:
            return -self.mechanism.gravity, ca.SX.zeros(3, 1)
        bias, R = self.bias_accelerations[link], self.link_pose(link).R
        return R @ (bias.a + bias.Phi @ x), R @ bias.alpha

    def velocity_product(self, i: int, with_spin: bool = True) -> tuple[ca.SX, ca.SX]:
        """Velocity-dependent part (a, alpha) of link i's acceleration relative to the previous link, in the axes of link i.

        with_spin: whether it contains the centripetal acceleration of its origin, the spin of the parent times X.p.
        """
        link, X = self.tree.links[i], self.steps[i]
        s = self.s[link.v]
        if link.parent < 0:
            r, phi = split_motion(link, s)
            return ca.cross(phi, r), ca.SX.zeros(3, 1)
        a, alpha = _velocity_product()(link.basis, s, X.R, self.omega[link.parent])
        return a + _centripetal()(X.R, X.p, self.spin[link.parent])[0] if with_spin else a, alpha

    def columns(self, arms: Mapping[int, ca.SX]) -> ca.SX:
        """(6, nv) Jacobian, in world axes, of a point that some links carry.

        arms: link -> vector (3, 1) from its origin to the point, world axes.
        """
        J = ca.SX(6, self.tree.ns)
        for i, arm in arms.items():
            R, member = self.link_pose(i).R, self.tree.links[i]
            along, axes = R @ member.basis[:3, :], R @ member.basis[3:, :]
            for column in range(member.nv):
                v, w = along[:, column], axes[:, column]
                turning = ca.cross(w, arm) if w.nnz() else ca.SX.zeros(3, 1)
                J[:, member.v.start + column] = ca.densify(ca.vertcat((v if v.nnz() else 0) + turning, w))
        return J if self.rates.plain else ca.SX(J @ self.maps[1])

    def arms(self, link: int, x: ca.SX, outside: Collection[int] = ()) -> dict[int, ca.SX]:
        """For each link of a path the vector from its origin to a point, world axes.

        link: the last one, which has the point at x (3, 1).   outside: links where the path ends, which are left out.
        """
        arm, found = self.link_pose(link).R @ x, dict[int, ca.SX]()
        for i in self.tree.path(link):
            if i in outside:
                break
            found[i] = arm
            arm = arm + self.offset(i)
        return found

    def between(self, a: tuple[int, ca.SX], b: tuple[int, ca.SX]) -> ca.SX:
        """(3, 1) vector from a point to another one, world axes.   a, b: (link or -1, position of the point in it).

        Large numbers, the positions of the first links of two machines in the world, are subtracted first.
        """
        shared = set(self.tree.path(a[0])) & set(self.tree.path(b[0]))
        (near_a, far_a), (near_b, far_b) = self._split(*a, shared), self._split(*b, shared)
        return (far_b - far_a) + (near_b - near_a)

    def _split(self, link: int, x: ca.SX, shared: Collection[int]) -> tuple[ca.SX, ca.SX]:
        """Vectors from the origin of the first link that is not shared to a point, and from the link before to this origin."""
        arm, path = self.link_pose(link).R @ x, [i for i in self.tree.path(link) if i not in shared]
        return (self._reach(path) + arm, self.offset(path[-1])) if path else (ca.SX.zeros(3, 1), arm)

    def _reach(self, path: list[int]) -> ca.SX:
        """(3, 1) vector from the origin of the last link of a path to that of its first link, world axes.

        Paths with the same last link share their sums.
        """
        reached = self._reached.setdefault(path[-1], {path[-1]: ca.SX.zeros(3, 1)})
        for i in reversed(path):
            if i not in reached:
                reached[i] = self.offset(i) + reached[self.tree.links[i].parent]
        return reached[path[0]]

    @cached_property
    def _reached(self) -> dict[int, dict[int, ca.SX]]:
        return {}

    @cached_property
    def _offsets(self) -> dict[int, ca.SX]:
        return {}

    def offset(self, link: int) -> ca.SX:
        """(3, 1) vector from the origin of the previous link to that of a link, world axes."""
        if link not in self._offsets:
            self._offsets[link] = self.link_pose(self.tree.links[link].parent).R @ self.steps[link].p
        return self._offsets[link]

    def _place(self, body: str) -> tuple[int, Pose]:
        """The link that carries a body, -1 for the world, and the pose of the body in it."""
        try:
            return self.tree.place[body]
        except KeyError:
            known = nearest(body, list(self.tree.place))
            raise ModelError(f"mechanism {self.mechanism.name!r} has no body {brief(body)}; {known}") from None


# -- from link to link ------------------------------------------------------------------------------------------------------


@repeated
def _turned_on(basis: ca.SX, s: ca.SX, R: ca.SX, before: ca.SX) -> tuple[ca.SX]:
    """Angular velocity of a link whose previous link has the angular velocity `before`."""
    return (ca.densify(basis @ s)[3:] + R.T @ before,)


@repeated
def _velocity(basis: ca.SX, s: ca.SX, R: ca.SX, p: ca.SX, u: ca.SX, w: ca.SX) -> tuple[ca.SX]:
    """Velocity of the origin of a link whose previous link has the velocities u and w."""
    return (ca.densify(basis @ s)[:3] + R.T @ (u + ca.cross(w, p)),)


@repeated
def _spin(w: ca.SX) -> tuple[ca.SX]:
    """w w^T - |w|^2 1."""
    x, y, z = ca.vertsplit(w)
    xx, yy, zz = x * x, y * y, z * z
    return (ca.blockcat([[-yy - zz, x * y, x * z], [x * y, -xx - zz, y * z], [x * z, y * z, -xx - yy]]),)


@repeated
def _velocity_product(basis: ca.SX, s: ca.SX, R: ca.SX, before: ca.SX) -> tuple[ca.SX, ca.SX]:
    """`velocity_product` without the centripetal acceleration.   before: angular velocity of the previous link."""
    V, w = ca.densify(basis @ s), R.T @ before
    r, phi = V[:3], V[3:]
    return 2 * ca.cross(w, r) + ca.cross(phi, r), ca.cross(w, phi)


@repeated
def _centripetal(R: ca.SX, p: ca.SX, spin: ca.SX) -> tuple[ca.SX]:
    """Centripetal acceleration of a link's origin, from the spin of the previous link."""
    return (R.T @ (spin @ p),)


def turned_twist(G: Pose, v: ca.SX, w: ca.SX, frame: str) -> ca.SX:
    """(6, 1) transform the body twist [v; w] of the frame G to WORLD or LOCAL_WORLD_ALIGNED."""
    v, w = G.R @ v, G.R @ w
    return ca.vertcat(v - (ca.cross(w, G.p) if check_frame(frame) == "WORLD" else 0), w)


def check_frame(frame: str) -> str:
    """Return the name of a frame, unchanged. Raises ModelError: there is no such frame."""
    if not is_one_of(frame, FRAMES):
        raise ModelError(f"frame {brief(frame)} is unknown; one of {', '.join(FRAMES)}")
    return frame


# -- a choice of velocities: v0 = T(q) v, T a function of the kinematics ----------------------------------------------------


def rates(m: Mechanism) -> Rates:
    """Rates of a mechanism, computed once. Raises ModelError: invalid poses, K or T."""
    return rates_as_written(m) if m.velocities is None else _rates_of_choice(choice_now(m), symbols_of(m))


def choice_now(m: Mechanism) -> Mechanism:
    """The part of a mechanism that determines how it moves, with its functions replaced by their present traces.

    Raises ModelError: one of these functions fails, or does not return K, phi, a pose or T.
    """
    now = moving(m)
    if m.velocities is None:
        return now
    if isinstance(m.velocities.T, TracedFunction):
        return replace(now, velocities=m.velocities)
    q = ca.SX.sym("q", m.nq)
    digest = graph([q, m.p_symbols], [_traced_choice(replace(now, velocities=m.velocities), q)])
    return replace(now, velocities=replace(m.velocities, T=TracedFunction(m.velocities.T, digest)))


@remembered(256)
def _rates_of_choice(m: Mechanism, symbols: tuple[int, ...]) -> Rates:
    """Rates for a choice of velocities v0 = T(q) v. Raises ModelError: T is invalid or singular."""
    at, q, p = rates_as_written(m), ca.SX.sym("q", m.nq), m.p_symbols
    T = _traced_choice(m, q)
    f = ca.Function("T", [q, p], [T])
    if not any(np.linalg.cond(equilibrated(np.nan_to_num(np.array(f(*at))))) < 1e10 for at in places(m)):
        raise ModelError("velocities: T is singular: no v gives some of the joint velocities v0 = T v")
    T, (K, N, _) = ca.sparsify(T), at.maps(q, p)
    return rates_of(at.tree, at.pose, False, (ca.sparsify(K @ T), ca.sparsify(N @ T), T), q, p)


def _traced_choice(m: Mechanism, q: ca.SX) -> ca.SX:
    """T from the caller's function at q. Raises ModelError: it is not (nv, nv), or not of q alone."""
    assert m.velocities is not None
    what = "velocities: T"
    k = Kinematics(replace(m, velocities=None), q, ca.SX.sym("v", m.nv), ca.SX.sym("t"))
    T = in_symbols(matrix(call_for_value(m.velocities.T, what, k), what), what, (k.q, k.v, k.t, m.p_symbols))
    if T.shape != (m.nv, m.nv):
        raise ModelError(f"{what} must give ({m.nv}, {m.nv}) for {m.nv} velocities, got {T.shape}")
    if ca.depends_on(T, ca.vertcat(k.v, k.t)):
        raise ModelError(f"{what} must be a function of q alone, not of velocities or time")
    return T
