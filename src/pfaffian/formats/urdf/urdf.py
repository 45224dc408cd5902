"""Reading URDF files as mechanisms."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from pfaffian.errors import ModelError
from pfaffian.formats.text.file import as_path, read_text, without_collection
from pfaffian.formats.text.mesh_file import places
from pfaffian.formats.text.strict_number import check_choice, printable
from pfaffian.formats.text.xacro_source import WAY_OUT, expanded
from pfaffian.formats.text.xml import Element, parse_xml
from pfaffian.formats.urdf.loop_record import KINDS as CLOSING
from pfaffian.formats.urdf.loop_record import Loop, closed_loops, past_massless, zero_places
from pfaffian.formats.urdf.urdf_drake import read_drake_joint, rotors
from pfaffian.formats.urdf.urdf_gazebo import read_gazebo, weightless, with_spring
from pfaffian.formats.urdf.urdf_joints import (
    FRICTION,
    driven_joints,
    dry_friction,
    free_name,
    friction_of,
    joints_of_tree,
    motors_of,
)
from pfaffian.formats.urdf.urdf_loops import Extras, check_names, coupled, on_parent, read_extras
from pfaffian.formats.urdf.urdf_part import UrdfJoint, UrdfLink, read_joint, read_link, unique
from pfaffian.formats.urdf.urdf_shape import shapes_of_links
from pfaffian.formats.urdf.urdf_sidecar import Sidecar, check_motors, find_sidecar, loops_of, read_sidecar, retyped
from pfaffian.formats.urdf.urdf_tree import check_mimics, massless_joints, open_loops, parents_first, root_link
from pfaffian.formats.urdf.urdf_warnings import (
    judge,
    sorted_names,
    warn,
    warn_of_joints,
    warn_of_loops,
    warn_of_unread,
)
from pfaffian.model.body import WORLD, Body, body
from pfaffian.model.mechanism import Mechanism, mechanism
from pfaffian.model.shape import Shape
from pfaffian.model.unphysical import unphysical

MAX_LINKS = 20_000
GRAVITY = np.array([0.0, 0.0, -9.81])
"""Gravity [m/s^2], about which URDF says nothing."""

WAYS_OUT = {
    "mujoco": "this is MJCF; pf.read opens it",
    "sdf": "this is SDF; pf.read opens it",
}
"""Root element of another format -> what to do."""


def read_urdf(path: str | Path, *, expand: bool = False, **options: Any) -> Mechanism:
    """Read the robot of a URDF file as a mechanism, with its loop closures.

    Besides the file itself, only a file of loops is opened. Mesh files are opened later, when they are drawn.

    Args:
        path: of the file.
        expand: whether to expand a .xacro file with the package xacro, which runs its expressions and opens the files that it
            includes. Only for files that you trust; False by default.
        options: those of `parse_urdf`: base, actuated, mimic, friction, strict, name, meshes, loops (by default robot.yaml or
            loop_closures.yaml in the same folder, if one of them describes loops; False for none), source (by default the
            file's name), folder (by default the file's).
    Raises ModelError: an element is wrong, with its line and the reason.
    Warns ModelWarning: joints without mass, inertias that no body can have, mimic joints that move freely, dry friction.

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> import pfaffian as pf
        >>> mass = '<inertial><mass value="2"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     file = Path(folder, "boat.urdf")
        ...     n = file.write_text(f'<robot name="boat"><link name="hull">{mass}</link></robot>')
        ...     pf.formats.read_urdf(file, base="free")
        <Mechanism 'boat': 1 body, 1 joint (nq 7, nv 6), no inputs>
    """
    place = as_path(path)
    options.setdefault("source", place.name)
    options.setdefault("folder", place.parent)
    if "loops" not in options:
        options["loops"] = find_sidecar(place)
    if place.suffix.lower() == ".xacro" and not expand:
        raise ModelError(f"{printable(place.name)}: {WAY_OUT}")
    return parse_urdf(expanded(place) if expand else read_text(place), **options)


@without_collection
def parse_urdf(
    text: str,
    *,
    base: str = "fixed",
    actuated: Iterable[str] | None = None,
    mimic: str = "free",
    friction: str = "none",
    strict: bool = False,
    name: str | None = None,
    source: str = "URDF",
    folder: str | Path | None = None,
    meshes: Iterable[str | Path] = (),
    loops: str | Path | bool | None = None,
) -> Mechanism:
    """Read the robot of a URDF text as a mechanism.

    Loops become closures: those of <loop>, <loop_joint> (Isaac Sim), <constraint> (urdfdom's proposal), <gazebo><joint>,
    <drake:ball_constraint> or a separate file of loops, and joints whose child link already has a parent. A <coupling> (URDF+)
    makes one joint follow others.

    Springs of joints and gravity of links in <gazebo reference> are read. Elements and attributes that are not read are named.

    Joints keep the order of the file, except that parents come first. Links without <inertial> are massless. Joint damping is
    read; dry friction is left out by default. Limits of joints and motors are not enforced, except that
    `Scheme(saturate=True)` limits the motors. A run warns of a start outside the limits, and its result says when and
    by how much they were exceeded.

    Args:
        text: of the file.
        base: "fixed", the default, welds the root link to the world (a root link called "world" is the world itself); "free"
            connects it by a free joint "root_joint", whose q comes first.
        actuated: names of the joints with a motor, in this order, each with one velocity; None, the default, for those named
            in the file of loops or marked as independent (URDF+), else for all such joints. A motor has the name of its joint,
            and the file's effort as its limit, if that is above 0.
        mimic: "free", the default, lets mimic joints move independently, as Pinocchio does by default; "follow" makes them
            follow, q = multiplier * q_other + offset, without coordinates, motors and limits (see `pf.mimic`).
        friction: "none", the default, leaves the dry friction of joints out, as Pinocchio and Drake do; "smooth" turns it into
            `forces.joint_friction`, smooth below 0.001 rad/s or m/s, on joints with one velocity.
        strict: whether to refuse inertias that no body can have, and movable joints that carry no mass. By default both give a
            warning: the inertias are used as they are, and the joints are locked at zero, since no force determines their
            acceleration.
        name: of the mechanism; None, the default, takes the name in the file.
        source: name of the text in errors, "URDF" by default.
        folder: of the file, for meshes; with None, the default, only `meshes` is searched. package://P/x is x in a folder P
            above the file that has a package.xml; other names are paths in the folder of the file.
        meshes: more folders with meshes; none by default. A missing mesh is not an error: pictures show a box instead.
        loops: path of a file that describes where loops close, in the form of example-parallel-robots (closed_loop) or
            scikit-robot (closures); none by default.
    Raises ModelError: an element is wrong, with its line and the reason.
    Warns ModelWarning: loops and the closures that they became, joints without mass, inertias that no body can have, mimic
    joints that move freely, dry friction, shapes and elements that cannot be read.

    Example:
        >>> import pfaffian as pf
        >>> mass = '<inertial><mass value="2"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
        >>> links = f'<link name="base"/><link name="rod">{mass}</link>'
        >>> hinge = '<joint name="hinge" type="continuous"><parent link="base"/><child link="rod"/><axis xyz="0 1 0"/></joint>'
        >>> pf.formats.parse_urdf(f'<robot name="pendulum">{links}{hinge}</robot>')
        <Mechanism 'pendulum': 2 bodies, 2 joints (nq 1, nv 1), inputs hinge>
    """
    _check_choices(base, mimic, friction)
    robot = parse_xml(text, source, words=True)
    side = read_sidecar(as_path(loops, "loops")) if loops and not isinstance(loops, bool) else Sidecar()
    links, joints, cut, extras = _parts(robot, side)
    gazebo = read_gazebo(robot, links, [*joints.values(), *cut])
    joints = {name: with_spring(j, gazebo.springs) for name, j in joints.items()}
    cut = [with_spring(j, gazebo.springs) for j in cut]
    check_mimics(joints, mimic == "follow")
    root = root_link(links, [*joints.values(), *cut])
    whole = parents_first(root, list(joints.values()))
    lost = massless_joints(links, whole)
    closing, merged = past_massless(_closing(whole, cut, extras, side, links, root), whole, lost)
    order = _lock_massless(whole, lost, merged, strict, robot.source)
    called, couplings = _body_names(links, root, base), coupled(extras.couplings, order)
    tree = joints_of_tree(order, called, root, base, mimic == "follow", couplings)
    if not any(j.nv for j in tree):
        raise robot.error("no joint moves; read it with base='free', or give a joint a type other than fixed")
    shapes = shapes_of_links(robot, links, strict, places(None if folder is None else Path(folder), meshes))
    closing, loops_closed = closed_loops(closing, tree if mimic == "follow" else [], called)
    rubbing = friction_of(dry_friction(closing, order), tree, loops_closed, friction, robot.source)
    made = mechanism(
        name or robot.attributes.get("name") or "robot",
        [_body(link, called[n], shapes[n]) for n, link in links.items() if called[n] != WORLD],
        tree,
        constraints=loops_closed,
        forces=[
            *(make(called) for make in extras.forces),
            *weightless(links, gazebo.weights, called, GRAVITY),
            *rubbing,
        ],
        actuators=motors_of(
            order, driven_joints(actuated, side, order, couplings), mimic == "follow", couplings, closing, [j.name for j in cut]
        ),
        gravity=GRAVITY,
        lenient=True,
    )
    warn_of_joints(made, order, mimic, robot.source)
    warn_of_unread(robot, gazebo)
    warn_of_loops(robot.source, closing, cut, extras, side, order)
    return replace(made, lenient=judge(unphysical(made), links, strict, robot.source))


def _check_choices(base: str, mimic: str, friction: str) -> None:
    """Raise ModelError if one of these arguments of `parse_urdf` has no meaning."""
    check_choice(base, ("fixed", "free"), "base")
    check_choice(mimic, ("free", "follow"), "mimic")
    check_choice(friction, FRICTION, "friction")


def _closing(
    order: list[UrdfJoint], cut: list[UrdfJoint], extras: Extras, side: Sidecar, links: Iterable[str], root: str
) -> list[Loop]:
    """All loops: of joints whose child already has a parent, of elements such as <loop>, and of the file of loops."""
    zero = zero_places(order, root) if extras.loops else {}
    found = [
        Loop(j.name, CLOSING.get(j.kind, j.kind), (j.parent, j.child), j.element.where, (j.placement @ j.turn, j.turn),
             _axes(j), j.pitch, j.stiffness, j.rest, j.damping, j.armature, j.friction, j.limits, j.effort, j.mimic)
        for j in cut if j.kind != "free"
    ]  # fmt: skip
    found += [on_parent(loop, zero) for loop in extras.loops]
    found += loops_of(side, [*order, *cut], links, root)
    check_names(found)
    return found


def _axes(j: UrdfJoint) -> tuple[tuple[float, ...], tuple[float, ...]]:
    return ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0)) if j.kind == "universal" else (j.axis, j.axis)


def _parts(robot: Element, side: Sidecar) -> tuple[dict[str, UrdfLink], dict[str, UrdfJoint], list[UrdfJoint], Extras]:
    """The links, the joints of the tree, the joints that close loops, and the elements besides links and joints."""
    if robot.tag != "robot":
        raise robot.error(WAYS_OUT.get(robot.tag, "the root element of a URDF file is <robot>"))
    count = len(robot.all("link"))
    if not count:
        raise robot.error("the robot has no <link>; if this is xacro source, expand it to URDF first")
    if count > MAX_LINKS:
        raise robot.error(f"{count} links are more than {MAX_LINKS}; split the robot")
    links = unique([read_link(e) for e in robot.all("link")], "link")
    turning = rotors(robot)
    read = [read_joint(e) if e.tag == "joint" else read_drake_joint(e) for e in robot.children if e.tag in _JOINTS]
    joints = unique([replace(j, armature=turning.pop(j.name, 0.0)) for j in read], "joint")
    check_motors(side, joints)
    tree, cut = open_loops(list(retyped(joints, side).values()))
    extras = read_extras(robot)
    extras.loops = [replace(loop, armature=turning.pop(loop.name, 0.0)) for loop in extras.loops]
    extras.lost += [f"the rotor of {printable(name)}, which is no joint" for name in turning]
    return links, {j.name: j for j in tree}, cut, extras


_JOINTS = ("joint", "drake:joint")


def _lock_massless(order: list[UrdfJoint], lost: set[str], merged: set[str], strict: bool, source: str) -> list[UrdfJoint]:
    """The joints, with those that move no mass replaced by fixed ones.   merged: those that became part of a loop closure."""
    if not lost:
        return order
    if strict and lost - merged:
        first = next(j for j in order if j.name in lost - merged)
        raise first.element.error(f"this joint moves no mass; give link {printable(first.child)} a mass, or make it fixed")
    if lost - merged:
        warn(f"{source}: joints that move no mass are locked at zero: {sorted_names(lost - merged)}; give their links a mass")
    if merged:
        warn(f"{source}: massless joints at the ends of loops become part of the loop closures: {sorted_names(merged)}")
    return [replace(j, kind="fixed", mimic=None) if j.name in lost else j for j in order]


def _body_names(links: Mapping[str, UrdfLink], root: str, base: str) -> dict[str, str]:
    """Name of each link -> name of its body. A root link named "world" is the world itself, unless it floats."""
    called = {name: name for name in links}
    if WORLD in links and not (root == WORLD and base == "fixed"):
        called[WORLD] = free_name("world_link", links)
    return called


def _body(link: UrdfLink, name: str, shapes: tuple[Shape, ...]) -> Body:
    I = link.inertia
    tensor: Any = (I[0, 0], I[1, 1], I[2, 2], I[0, 1], I[0, 2], I[1, 2]) if I.any() else 0.0
    return body(name, link.mass, link.com, tensor, shape=shapes)
