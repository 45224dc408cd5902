"""The tree as recursions need it: one link for each joint that moves, fixed bodies lumped, every axis along z."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import casadi as ca

from pfaffian.maths import so3
from pfaffian.model.body import WORLD, Body
from pfaffian.model.joint import Joint
from pfaffian.model.mechanism import Mechanism
from pfaffian.model.pose import IDENTITY, Pose


class Link(NamedTuple):
    """All that moves rigidly with one joint, in the joint's frame on the child side.

    parent: index of the link before, -1 for the world.   placement: joint frame in the parent link.
    q, v: its entries.   mass: [kg].   h: (3, 1) first moment [kg m].   I: (3, 3) inertia about the frame's origin.
    """

    parent: int
    joint: Joint
    placement: Pose
    q: slice
    v: slice
    mass: ca.SX
    h: ca.SX
    I: ca.SX

    @property
    def S(self) -> ca.SX:
        """(3, 3) second moment, the sum of m x x^T [kg m^2]: I = trace(S) 1 - S."""
        return ca.trace(self.I) / 2 * ca.SX.eye(3) - self.I


class Tree(NamedTuple):
    """links: parents before children.   place: body name -> (link index or -1, pose of the body in that link).
    parents: for each velocity coordinate the one before it on the way to the root, or -1."""

    links: tuple[Link, ...]
    place: dict[str, tuple[int, Pose]]
    parents: tuple[int, ...]

    def path(self, link: int) -> list[int]:
        """The link and those before it, nearest first; empty for the world."""
        path = []
        while link >= 0:
            path.append(link)
            link = self.links[link].parent
        return path


def tree(m: Mechanism) -> Tree:
    """Lump bodies on fixed joints and lay out the links of a mechanism."""
    # Equal mechanisms may have parameters of their own, and the links hold their symbols.
    return _tree(m, tuple(p.symbol.element_hash() for p in m.parameters))


@lru_cache(maxsize=256)
def _tree(m: Mechanism, symbols: tuple[int, ...]) -> Tree:
    place: dict[str, tuple[int, Pose]] = {WORLD: (-1, IDENTITY)}
    frames: list[tuple[int, Joint, Pose]] = []
    for j in m.joints:
        link, X = place[j.parent]
        if j.nv == 0:
            place[j.child] = (link, X @ j.placement @ j.child_placement.inverse())
        else:
            frames.append((link, j, X @ j.placement))
            place[j.child] = (len(frames) - 1, j.child_placement.inverse())
    inertias = [(ca.SX(0), ca.SX.zeros(3, 1), ca.SX.zeros(3, 3)) for _ in frames]
    for b in m.bodies:
        link, X = place[b.name]
        if link >= 0:
            inertias[link] = tuple(x + y for x, y in zip(inertias[link], _moments(b, X), strict=True))  # type: ignore[assignment]
    links = tuple(Link(parent, j, X, m.q_slices[j.name], m.v_slices[j.name], *inertia)
                  for (parent, j, X), inertia in zip(frames, inertias, strict=True))  # fmt: skip
    return Tree(links, place, _dof_parents(links))


def _moments(b: Body, X: Pose) -> tuple[ca.SX, ca.SX, ca.SX]:
    c = X.R @ b.com + X.p
    return b.mass, b.mass * c, so3.symmetric(X.R @ b.inertia @ X.R.T) + b.mass * (ca.dot(c, c) * ca.SX.eye(3) - c @ c.T)


def _dof_parents(links: tuple[Link, ...]) -> tuple[int, ...]:
    parents: list[int] = []
    for link in links:
        before = links[link.parent].v.stop - 1 if link.parent >= 0 else -1
        parents += [before, *range(link.v.start, link.v.stop - 1)]
    return tuple(parents)


def motion(link: Link, q: ca.SX) -> Pose:
    """Pose of the joint frame on the child in that on the parent, at the joint's q."""
    R, p = link.joint.kind.subgroup.motion(q)
    return Pose(ca.SX(R), p)


def conjugate(link: Link, q: ca.SX, Y: ca.SX) -> ca.SX:
    """R Y R^T for Y (3, 3), R the rotation from the link's axes to those of the link before it."""
    P = link.placement.R
    return P @ link.joint.kind.subgroup.conjugate(q, Y) @ P.T


def kinematic_block(link: Link, q: ca.SX) -> ca.SX:
    """(nq, nv) of the joint: q_dot = K v with v body-fixed."""
    return ca.SX(link.joint.kind.subgroup.kinematic(q))


def split_motion(link: Link, x: ca.SX) -> tuple[ca.SX, ca.SX]:
    """S x as its linear and angular part, each (3, 1), for x along the joint's velocity coordinates."""
    twist = ca.densify(link.joint.kind.subgroup.S @ x)
    return twist[:3], twist[3:]


def project_force(link: Link, f: ca.SX, n: ca.SX) -> ca.SX:
    """S^T [f; n]: (nv, 1) of the joint."""
    return ca.densify(link.joint.kind.subgroup.S.T @ ca.vertcat(f, n))
