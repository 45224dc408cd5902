"""Joints, motors and dry friction of a URDF file, as parts of a mechanism."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from pfaffian.errors import ModelError
from pfaffian.formats.text.strict_number import printable
from pfaffian.formats.urdf.loop_record import DAMPED, ONE_MOTION, Loop
from pfaffian.formats.urdf.urdf_part import UrdfJoint
from pfaffian.formats.urdf.urdf_sidecar import Sidecar
from pfaffian.formats.urdf.urdf_warnings import warn_of_friction
from pfaffian.model.body import WORLD
from pfaffian.model.constraint import Closure
from pfaffian.model.force import Actuator, Force, actuator
from pfaffian.model.joint import UNLIMITED, Joint, joint, locked, mimic
from pfaffian.model.pose import IDENTITY
from pfaffian.parts.friction import joint_friction

FRICTION = ("none", "smooth")


ROOT_JOINT = "root_joint"
"""Name of the joint that the reader puts between the world and the root link, the same as in Pinocchio."""


def dry_friction(closing: list[Loop], order: list[UrdfJoint]) -> dict[str, float]:
    """Joint, of the tree or of a loop -> its dry friction, where it has some [N, N m]."""
    found = {loop.name: loop.friction for loop in closing} | {j.name: j.friction for j in order if j.kind != "fixed"}
    return {n: x for n, x in found.items() if x}


def friction_of(dry: Mapping[str, float], tree: list[Joint], loops: Iterable[Closure], choice: str, source: str) -> list[Force]:
    """Smooth friction of the joints of the tree and of loops that can have it, if that is the choice; warns of the others.

    dry: friction by joint [N, N m].
    """
    joints = {j.name: j for j in [*tree, *(c.joint for c in loops if c.joint is not None)]}
    smooth = [n for n in dry if choice == "smooth" and _rubs(joints.get(n))]
    warn_of_friction(smooth, [n for n in dry if n not in smooth], choice, source)
    return [joint_friction(f"{n} friction"[:128], n, dry[n]) for n in smooth]


def driven_joints(
    actuated: Iterable[str] | None, side: Sidecar, order: list[UrdfJoint], couplings: Mapping[str, Any]
) -> Iterable[str] | None:
    """Names of the joints with motors, from the caller, the file of loops or `independent`; None for all joints."""
    if actuated is not None or side.motors is not None:
        return side.motors if actuated is None else actuated
    if all(j.independent is None for j in order):
        return None
    return [
        j.name for j in order if j.independent is not False and j.kind in ("revolute", "prismatic") and j.name not in couplings
    ]


def free_name(name: str, names: Iterable[str]) -> str:
    """The name, with underscores at its end until it is not in use."""
    used = set(names)
    while name in used:
        name += "_"
    return name


def joints_of_tree(
    order: list[UrdfJoint],
    called: Mapping[str, str],
    root: str,
    base: str,
    follow: bool,
    couplings: Mapping[str, dict[str, Any]],
) -> list[Joint]:
    """The joints.   called: link -> body.   follow: whether mimic joints follow.   couplings: joint -> (joint -> ratio)."""
    made, fixed = [], _fixed_places(order) if follow else {}
    if called[root] != WORLD:
        made.append(joint(free_name(ROOT_JOINT, (j.name for j in order)), base, WORLD, called[root]))
    for j in order:
        one = j.kind in ("revolute", "prismatic")
        mimicked = j.mimic if follow and j.name not in couplings else None
        after = mimic(couplings[j.name]) if j.name in couplings else None
        if mimicked and j.name not in fixed:
            after = mimic({mimicked.joint: mimicked.multiplier}, mimicked.offset)
        read = joint(
            j.name,
            j.kind,
            called[j.parent],
            called[j.child],
            axis=j.axis if j.kind in _WITH_AXIS else (0, 0, 1),
            placement=j.placement if j.turn is IDENTITY else j.placement @ j.turn,
            child_placement=j.turn,
            damping=j.damping if j.kind in DAMPED else 0.0,
            armature=j.armature if one else 0.0,
            stiffness=j.stiffness,
            rest=j.rest if j.stiffness else None,
            pitch=j.pitch,
            limits=j.limits if one and not (mimicked or after) else UNLIMITED,
            effort=np.inf if mimicked or after else j.effort,
            mimic=after,
        )
        made.append(locked(read, fixed[j.name]) if mimicked and j.name in fixed else read)
    return made


_WITH_AXIS = ("revolute", "prismatic", "planar", "helical")


def _fixed_places(order: list[UrdfJoint]) -> dict[str, float]:
    """Joint -> its coordinate, for joints that never move: fixed joints (zero), and mimic joints that follow such a joint."""
    joints, places = {j.name: j for j in order}, dict[str, float | None]()
    for j in order:
        followers = list[UrdfJoint]()
        while j.mimic is not None and j.name not in places:
            followers.append(j)
            j = joints[j.mimic.joint]
        q = places.setdefault(j.name, 0.0 if j.kind == "fixed" else None)
        for f in reversed(followers):
            q = places[f.name] = None if q is None or f.mimic is None else f.mimic.multiplier * q + f.mimic.offset
    return {name: q for name, q in places.items() if q is not None}


def motors_of(
    order: list[UrdfJoint],
    actuated: Iterable[str] | None,
    drop_mimics: bool,
    couplings: Mapping[str, Any],
    closing: list[Loop],
    cut: list[str],
) -> list[Actuator]:
    """The motors.   couplings: the joints in it follow others and get no motor.   closing: the loops, along which motors may
    act too.   cut: names of the joints that became loops, which have motors as others do. Raises ModelError: an unknown name.
    """
    tree = {j.name: j for j in order if j.kind in ("revolute", "prismatic") and j.name not in couplings}
    single: dict[str, UrdfJoint | Loop] = {loop.name: loop for loop in closing if loop.kind in ONE_MOTION} | tree
    if actuated is None:
        following = {loop.name for loop in closing if loop.follows}
        driven = {n: j for n, j in single.items() if n in cut and n not in following}
        chosen = [j for j in tree.values() if not (drop_mimics and j.mimic)] + [j for n, j in driven.items() if n not in tree]
    else:
        names = list(actuated)
        for n in names:
            if n not in single:
                raise ModelError(
                    f"actuated: {printable(n)} is not a movable joint with one velocity; one of {', '.join(single)}"
                )
        chosen = [single[n] for n in names]
    return [actuator(j.name, j.name, limits=(-j.effort, j.effort)) for j in chosen]


def _rubs(j: Joint | None) -> bool:
    """Whether a joint may have dry friction: it has one velocity of its own."""
    return j is not None and j.nv == 1 and j.mimic is None
