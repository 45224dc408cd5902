"""The tree on which recursions run: a link for each moving joint, bodies on fixed joints lumped, joint axes along z."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple

import casadi as ca

from pfaffian.maths import so3
from pfaffian.maths.repeated import repeated
from pfaffian.maths.subgroups import Subgroup
from pfaffian.model.body import WORLD, Body
from pfaffian.model.joint import Joint, JointPart
from pfaffian.model.mechanism import Mechanism
from pfaffian.model.pose import IDENTITY, Pose


class Link(NamedTuple):
    """All bodies that move rigidly with one joint or edge, in the joint's frame on the child.

    parent: index of the previous link, -1 for the world.   joint: the joint to which it belongs.
    placement: pose of the joint's frame on the parent, in the previous link.
    subgroup: its group of motions, None for an edge.   q: its entries of q, if its joint has coordinates.
    v: its entries of the link rates s, which are v itself in a plain tree.
    basis: (6, k) S, the twist [v; w] relative to the previous link is S s.   armature: (k, 1) along s.
    mass: [kg].   h: (3, 1) first moment [kg m].   I: (3, 3) inertia about the frame's origin.
    """

    parent: int
    joint: Joint
    placement: Pose
    subgroup: Subgroup | None
    q: slice
    v: slice
    basis: ca.SX
    armature: ca.SX
    mass: ca.SX
    h: ca.SX
    I: ca.SX

    @property
    def nv(self) -> int:
        return self.basis.shape[1]

    @property
    def S(self) -> ca.SX:
        """(3, 3) second moment, the sum of m x x^T [kg m^2]: I = trace(S) 1 - S."""
        return ca.trace(self.I) / 2 * ca.SX.eye(3) - self.I


class Tree(NamedTuple):
    """The links of a mechanism.

    links: parents before children.   place: body name -> (link index or -1, pose of the body in that link).
    ns: number of link rates.   parents: for each link rate the next one on the path to the root, or -1.
    """

    links: tuple[Link, ...]
    place: dict[str, tuple[int, Pose]]
    ns: int
    parents: tuple[int, ...]

    def path(self, link: int) -> list[int]:
        """The link and its ancestors, nearest first; empty for the world."""
        return upwards(link, lambda i: self.links[i].parent)


def upwards(i: int, before: Callable[[int], int]) -> list[int]:
    """The index i and those before it, one after another, down to 0; empty if i is below zero, as the world's index is."""
    path = []
    while i >= 0:
        path.append(i)
        i = before(i)
    return path


class Frame(NamedTuple):
    """The frame of a link: the previous link, the joint or edge, the part of the joint, and its pose in the previous link."""

    parent: int
    joint: Joint
    part: JointPart | None
    placement: Pose


class BodyLayout(NamedTuple):
    """The frames of all links, and the links to which bodies are attached.   place: as in Tree."""

    frames: list[Frame]
    place: dict[str, tuple[int, Pose]]


def layout(m: Mechanism, still: dict[str, Pose]) -> BodyLayout:
    """The layout of a mechanism.

    Bodies on fixed joints are lumped with their parents, as are bodies on edges whose constant pose `still` gives.
    """
    place: dict[str, tuple[int, Pose]] = {WORLD: (-1, IDENTITY)}
    frames: list[Frame] = []
    for j in m.joints:
        link, X = place[j.parent]
        if not j.moves and (j.pose is None or j.name in still):
            place[j.child] = (link, X @ j.placement @ still.get(j.name, IDENTITY) @ j.child_placement.inverse())
            continue
        for part in j.parts or [None]:
            frames.append(Frame(link, j, part, X @ (part.placement if part else j.placement)))
            link, X = len(frames) - 1, IDENTITY
        place[j.child] = (link, j.end)
    return BodyLayout(frames, place)


_MassMoments = tuple[ca.SX, ca.SX, ca.SX]
"""Mass, first moment and inertia of a link."""


def assemble_tree(m: Mechanism, at: BodyLayout, bases: list[ca.SX], slices: list[slice]) -> Tree:
    """The tree of a layout, with the basis of each link and its entries of the link rates."""
    inertias, none = dict[int, _MassMoments](), (ca.SX(0), ca.SX.zeros(3, 1), ca.SX.zeros(3, 3))
    for b in m.bodies:
        link, X = at.place[b.name]
        if link >= 0:
            mass, h, I = map(ca.densify, _moments(b, X))
            others = inertias.get(link)
            inertias[link] = (others[0] + mass, others[1] + h, others[2] + I) if others else (mass, h, I)
    parts = enumerate(zip(at.frames, slices, bases, strict=True))
    links = tuple(_link(m, f, v, S, inertias.get(i, none)) for i, (f, v, S) in parts)
    return Tree(links, at.place, sum(link.nv for link in links), _rate_parents(links))


def _link(m: Mechanism, f: Frame, v: slice, S: ca.SX, inertia: _MassMoments) -> Link:
    """The link of a frame, with its entries v of the link rates, its basis S and its moments."""
    if f.part is None:
        return Link(f.parent, f.joint, f.placement, None, slice(0, 0), v, S, ca.SX(S.shape[1], 1), *inertia)
    q, first = f.part.q, m.q_slices[f.joint.name].start
    return Link(f.parent, f.joint, f.placement, f.part.subgroup, slice(first + q.start, first + q.stop), v, S,
                f.joint.armature[f.part.v, 0], *inertia)  # fmt: skip


def _moments(b: Body, X: Pose) -> _MassMoments:
    """Mass, first moment and inertia of a body with the pose X in a link, about the link's origin."""
    c, I = _placed()(b.com, b.inertia, X.R, X.p)
    h, about_origin = _about_origin()(b.mass, c, I, *_squares()(c))
    return b.mass, h, about_origin


@repeated
def _placed(com: ca.SX, inertia: ca.SX, R: ca.SX, p: ca.SX) -> tuple[ca.SX, ca.SX]:
    """The mass centre of a body with the pose (R, p) in a link, and the inertia about it, in the link's axes."""
    return R @ com + p, so3.symmetric(R @ inertia @ R.T)


@repeated
def _squares(c: ca.SX) -> tuple[ca.SX, ca.SX]:
    """c^T c and c c^T. A function of its own: where these are known to be products, |c|^2 - c_i^2 is another sum."""
    return ca.dot(c, c), c @ c.T


@repeated
def _about_origin(mass: ca.SX, c: ca.SX, I: ca.SX, square: ca.SX, outer: ca.SX) -> tuple[ca.SX, ca.SX]:
    """First moment and inertia about the origin, from the mass centre c and the inertia I about it."""
    return mass * c, I + mass * (square * ca.SX.eye(3) - outer)


def _rate_parents(links: tuple[Link, ...]) -> tuple[int, ...]:
    """For each link rate the next one on the path to the root, or -1."""
    parents = {-1: -1}
    for link in links:
        at, before = range(link.v.start, link.v.stop), link.parent
        while before >= 0 and not links[before].nv:
            before = links[before].parent
        root = links[before].v.stop - 1 if before >= 0 else -1
        parents |= dict(zip(at, [root, *at], strict=False))
    return tuple(parents[i] for i in range(len(parents) - 1))


def motion(link: Link, q: ca.SX) -> Pose:
    """Pose of the joint's frame on the child relative to its frame on the parent, at the link's entries of q."""
    g = link.subgroup
    assert g is not None
    return Pose(*(map(ca.SX, g.motion(q)) if g.screws else _motion(g)(q)))


@repeated
def _motion(g: Subgroup, q: ca.SX) -> tuple[ca.SX, ...]:
    """R and p of a motion of a group without screws."""
    return tuple(map(ca.SX, g.motion(q)))


Turning = Literal["any", "about z", "none"]
"""What is known of a rotation: nothing, that it is about z, that it is the unit matrix."""


def turning(R: ca.SX) -> Turning:
    """What is known of a rotation R (3, 3)."""
    if R[2, 2].is_one() and R[0, 2].is_zero() and R[1, 2].is_zero():
        return "none" if R[0, 0].is_one() else "about z"
    return "any"


def turned(turns: Turning, R: ca.SX, Y: ca.SX) -> ca.SX:
    """R Y R^T for Y (3, 3), cheaper where R is a rotation about z or the unit matrix."""
    if turns == "any":
        return R @ Y @ R.T
    return Y if turns == "none" else so3.conjugate_z(R[0, 0], R[1, 0], Y)


def split_motion(link: Link, x: ca.SX) -> tuple[ca.SX, ca.SX]:
    """Linear and angular part, each (3, 1), of the motion S x, with x along the link's rates."""
    V = ca.densify(link.basis @ x)
    return V[:3], V[3:]


def project_force(link: Link, f: ca.SX, n: ca.SX) -> ca.SX:
    """(nv, 1) S^T [f; n], the generalised force of a wrench along the link's rates."""
    return ca.densify(link.basis.T @ ca.vertcat(f, n))
