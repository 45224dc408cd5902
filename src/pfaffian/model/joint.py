"""Joints of the tree: what motion each kind leaves to the child.

Every joint acts about or along the z axis of its own frame; `axis` turns that frame. The velocity of every kind is
body-fixed: V = S v with a constant motion subspace S, in the joint frame on the child.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import casadi as ca
import numpy as np

from pfaffian.errors import ModelError, brief
from pfaffian.maths.subgroups import SUBGROUPS, Subgroup
from pfaffian.model import shown
from pfaffian.model.data import data
from pfaffian.model.number import Scalar, interval, named_float, scalar, vector
from pfaffian.model.pose import IDENTITY, Pose, align_z, as_pose, clean


@dataclass(frozen=True)
class JointKind:
    """What a kind of joint leaves free: the motions of a subgroup, with its coordinates and velocities."""

    subgroup: Subgroup

    @property
    def name(self) -> str:
        return self.subgroup.name

    @property
    def motion(self) -> tuple[int, ...]:
        """Indices into the twist [vx vy vz wx wy wz] that are free; v_i drives motion[i]."""
        return self.subgroup.axes

    @property
    def q_names(self) -> tuple[str, ...]:
        return self.subgroup.q_names

    @property
    def v_names(self) -> tuple[str, ...]:
        return self.subgroup.v_names

    @property
    def q_units(self) -> tuple[str, ...]:
        return self.subgroup.q_units

    @property
    def v_units(self) -> tuple[str, ...]:
        return self.subgroup.v_units

    @property
    def nq(self) -> int:
        return self.subgroup.nq

    @property
    def nv(self) -> int:
        return self.subgroup.nv

    @property
    def plain(self) -> int:
        """How many coordinates come before the quaternion, all of them where there is none."""
        return self.nq if self.nq == self.nv else self.nq - 4


KINDS = {name: JointKind(SUBGROUPS[name]) for name in ("fixed", "revolute", "prismatic", "spherical", "planar", "free")}
KINDS["edge"] = JointKind(replace(SUBGROUPS["fixed"], name="edge"))

JOINT_KINDS = tuple(name for name in KINDS if name != "edge")
"""Those that `joint` makes."""


@data
class Joint:
    """A joint of the tree: child frame = placement . motion(q) . child_placement^-1, seen from the parent body.

    Both placements already carry the turn of the axis to z. Springs, dampers and armature act on one-dof joints:
    tau = -stiffness (q - rest) - damping v, and armature [kg m^2 or kg] adds to the diagonal of M.
    pose: of an edge, its motion as a function of the configuration.
    """

    name: str
    kind: JointKind
    parent: str
    child: str
    placement: Pose
    child_placement: Pose
    stiffness: ca.SX
    rest: ca.SX
    damping: ca.SX
    armature: ca.SX
    limits: tuple[float, float]
    effort: float
    pose: Callable[[Any], Pose] | None = None

    def __repr__(self) -> str:
        return shown.words(self, self.kind.name, f"{self.parent!r} to {self.child!r}", name=self.name)

    @property
    def nq(self) -> int:
        return self.kind.nq

    @property
    def nv(self) -> int:
        return self.kind.nv

    @property
    def plain(self) -> int:
        """How many coordinates have a rate that is one velocity, or several by an orthogonal block; quaternions follow."""
        return self.kind.plain

    @property
    def q_names(self) -> tuple[str, ...]:
        return self.kind.q_names

    @property
    def v_names(self) -> tuple[str, ...]:
        return self.kind.v_names

    @property
    def q_units(self) -> tuple[str, ...]:
        return self.kind.q_units

    @property
    def v_units(self) -> tuple[str, ...]:
        return self.kind.v_units


def joint(
    name: str,
    kind: str,
    parent: str,
    child: str,
    *,
    axis: Any = (0, 0, 1),
    placement: Any = IDENTITY,
    child_placement: Any = IDENTITY,
    stiffness: Scalar = 0.0,
    rest: Scalar = 0.0,
    damping: Scalar = 0.0,
    armature: Scalar = 0.0,
    limits: tuple[float, float] = (-np.inf, np.inf),
    effort: float = np.inf,
) -> Joint:
    """A joint between two bodies.

    Args:
        name: unique among the joints.   kind: fixed, revolute, prismatic, spherical, planar or free.
        parent, child: body names, "world" for the fixed frame.
        axis: (3,) of the rotation, the translation or the plane's normal, in the joint frame; normalised here.
        placement: joint frame in the parent body, a pose or a position.   child_placement: that in the child body.
        stiffness, rest, damping, armature: of the joint, SI units; the first two for one-dof joints only.
        limits: (low, high) of q of a one-dof joint; a result says when and by how far they were left, nothing holds them.
        effort: largest |u| of an actuator on it, see `actuator`.
    Raises ModelError: an unknown kind, a zero axis, limits the wrong way round, a negative effort, a spring or limits where
    there is no one dof.
    """
    what = f"joint {name!r}"
    if not isinstance(kind, str) or kind not in JOINT_KINDS:
        raise ModelError(f"{what}: kind {brief(kind)} is unknown; one of {', '.join(JOINT_KINDS)}")
    _check_ends(what, parent, child)
    G = axis_frame(axis, what)
    low, high = interval(limits, f"{what}: limits")
    if effort != np.inf and not named_float(effort, f"{what}: effort") >= 0:
        raise ModelError(f"{what}: effort {effort!r} must be zero or positive, left out where there is none")
    numbers: dict[str, Any] = {k: scalar(v, f"{what}: {k}") for k, v in
               dict(stiffness=stiffness, rest=rest, damping=damping, armature=armature).items()}  # fmt: skip
    chosen = KINDS[kind]
    if chosen.nv != 1 and not (numbers["stiffness"].is_zero() and numbers["rest"].is_zero()):
        raise ModelError(f"{what}: a {kind} joint takes no spring; use a force between bodies")
    if chosen.nv != 1 and (low, high) != (-np.inf, np.inf):
        raise ModelError(f"{what}: a {kind} joint takes no limits; they are for one-dof joints")
    at, child_at = (as_pose(x, f"{what}: placement") @ G for x in (placement, child_placement))
    return Joint(name, chosen, parent, child, at, child_at, limits=(low, high), effort=float(effort), **numbers)


def edge(name: str, parent: str, child: str, pose: Callable[[Any], Pose]) -> Joint:
    """The pose of one body in another as a function of the mechanism's configuration. [konz25 (3.95), (3.101)-(3.104)]

    Edges and joints together connect all bodies to the world, each by one way; an edge may be written from either side and in
    any order. Twists, Jacobians and their rates follow from the pose by differentiation. It has no coordinates of its own:
    they belong to `coordinates(...)` or to joints.

    Args:
        name: unique among the joints.   parent, child: names of bodies, "world" for the fixed frame.
        pose: function of the configuration k (k.q, k.joint(name)) giving the Pose of the child's frame in the parent's.
    Raises ModelError: names or a function that are none. What it answers is checked when the equations are made.
    """
    what = f"edge {name!r}"
    _check_ends(what, parent, child)
    if not callable(pose):
        raise ModelError(f"{what}: pose must be a function of the configuration, got {brief(pose)}")
    zero = ca.SX(0)
    return Joint(
        name, KINDS["edge"], parent, child, IDENTITY, IDENTITY, zero, zero, zero, zero, (-np.inf, np.inf), np.inf, pose
    )


def _check_ends(what: str, parent: Any, child: Any) -> None:
    for word, body in (("parent", parent), ("child", child)):
        if not isinstance(body, str):
            raise ModelError(f"{what}: {word} must be the name of a body, got {brief(body)}")
    if parent == child:
        raise ModelError(f"{what}: parent and child are both {parent!r}")


def axis_frame(axis: Any, what: str) -> Pose:
    """The pose that turns z to the (numeric) axis."""
    n = np.array(ca.DM(_constant(vector(axis, 3, f"{what}: axis"), what))).ravel()
    length = np.linalg.norm(n)
    if not length > 1e-9:
        raise ModelError(f"{what}: the axis {tuple(n.tolist())} has no direction")
    return _turned_z(*(n / length).tolist())


@lru_cache(maxsize=4096)
def _turned_z(x: float, y: float, z: float) -> Pose:
    """The parts of a machine have few directions."""
    return Pose(clean(ca.DM(align_z(np.array([x, y, z])))), ca.SX.zeros(3, 1))


def _constant(x: ca.SX, what: str) -> ca.SX:
    if not x.is_constant():
        raise ModelError(f"{what}: the axis must be plain numbers; turn the placement to make it a parameter")
    return x
