"""Reading URDF files as mechanisms."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from pfaffian.errors import ModelError, ModelWarning, notice
from pfaffian.formats.text.file import as_path, read_text
from pfaffian.formats.text.left_out import as_they_are
from pfaffian.formats.text.mesh_file import MeshFolders, places
from pfaffian.formats.text.strict_number import check_choice, printable
from pfaffian.formats.text.unread import NOT_READ, unread
from pfaffian.formats.text.xacro_source import WAY_OUT, expanded
from pfaffian.formats.text.xml import Element, parse_xml
from pfaffian.formats.urdf.loop_record import DAMPED, ONE_MOTION, Loop, close, past_massless, zero_places
from pfaffian.formats.urdf.loop_record import KINDS as CLOSING
from pfaffian.formats.urdf.urdf_drake import read_drake_joint, rotors
from pfaffian.formats.urdf.urdf_gazebo import Gazebo, read_gazebo, weightless, with_spring
from pfaffian.formats.urdf.urdf_loops import Extras, check_names, coupled, on_parent, read_extras
from pfaffian.formats.urdf.urdf_names import KNOWN
from pfaffian.formats.urdf.urdf_part import UrdfJoint, UrdfLink, assumed_limits, read_joint, read_link, unique
from pfaffian.formats.urdf.urdf_shape import read_colours, read_shapes
from pfaffian.formats.urdf.urdf_sidecar import Sidecar, check_motors, find_sidecar, loops_of, read_sidecar, retyped
from pfaffian.formats.urdf.urdf_tree import check_mimics, massless_joints, open_loops, parents_first, root_link
from pfaffian.model.body import WORLD, Body, body
from pfaffian.model.constraint import Closure
from pfaffian.model.force import Actuator, Force, actuator
from pfaffian.model.joint import UNLIMITED, Joint, joint, locked, mimic
from pfaffian.model.mechanism import Mechanism, mechanism
from pfaffian.model.pose import IDENTITY
from pfaffian.model.shape import Shape
from pfaffian.model.unphysical import unphysical
from pfaffian.parts.friction import joint_friction

MAX_LINKS = 20_000
FRICTION = ("none", "smooth")
GRAVITY = np.array([0.0, 0.0, -9.81])
"""Gravity [m/s^2], about which URDF says nothing."""

WAYS_OUT = {
    "mujoco": "this is MJCF; pf.read opens it",
    "sdf": "this is SDF; pf.read opens it",
}
"""Root element of another format -> what to do."""

ROOT_JOINT = "root_joint"
"""Name of the joint that the reader puts between the world and the root link, the same as in Pinocchio."""


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
    tree = _tree(order, called, root, base, mimic == "follow", couplings)
    if not any(j.nv for j in tree):
        raise robot.error("no joint moves; read it with base='free', or give a joint a type other than fixed")
    shapes = _shapes(robot, links, strict, places(None if folder is None else Path(folder), meshes))
    closing, loops_closed = _closed(closing, tree if mimic == "follow" else [], called)
    rubbing = _friction(_dry_friction(closing, order), tree, loops_closed, friction, robot.source)
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
        actuators=_actuators(
            order, _motors(actuated, side, order, couplings), mimic == "follow", couplings, closing, [j.name for j in cut]
        ),
        gravity=GRAVITY,
        lenient=True,
    )
    _warn(order, mimic, robot.source)
    _warn_unread(robot, gazebo)
    _warn_loops(robot.source, closing, cut, extras, side, order)
    return replace(made, lenient=_judge(unphysical(made), links, strict, robot.source))


def _check_choices(base: str, mimic: str, friction: str) -> None:
    """Raise ModelError if one of these arguments of `parse_urdf` has no meaning."""
    check_choice(base, ("fixed", "free"), "base")
    check_choice(mimic, ("free", "follow"), "mimic")
    check_choice(friction, FRICTION, "friction")


def _dry_friction(closing: list[Loop], order: list[UrdfJoint]) -> dict[str, float]:
    """Joint, of the tree or of a loop -> its dry friction, where it has some [N, N m]."""
    found = {loop.name: loop.friction for loop in closing} | {j.name: j.friction for j in order if j.kind != "fixed"}
    return {n: x for n, x in found.items() if x}


def _friction(dry: Mapping[str, float], tree: list[Joint], loops: Iterable[Closure], choice: str, source: str) -> list[Force]:
    """Smooth friction of the joints of the tree and of loops that can have it, if that is the choice; warns of the others.

    dry: friction by joint [N, N m].
    """
    joints = {j.name: j for j in [*tree, *(c.joint for c in loops if c.joint is not None)]}
    smooth = [n for n in dry if choice == "smooth" and _rubs(joints.get(n))]
    _warn_friction(smooth, [n for n in dry if n not in smooth], choice, source)
    return [joint_friction(f"{n} friction"[:128], n, dry[n]) for n in smooth]


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


def _closed(closing: list[Loop], tree: list[Joint], called: Mapping[str, str]) -> tuple[list[Loop], list[Closure]]:
    """The loops and their closures; they follow joints of the tree with one coordinate only.   called: link -> body."""
    leaders = {j.name for j in tree if j.kind.nq == 1}
    loops = [x if x.follows is None or x.follows.joint in leaders else replace(x, follows=None) for x in closing]
    return loops, [close(loop, called) for loop in loops]


def _axes(j: UrdfJoint) -> tuple[tuple[float, ...], tuple[float, ...]]:
    return ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0)) if j.kind == "universal" else (j.axis, j.axis)


def _motors(
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
        _notice(f"{source}: joints that move no mass are locked at zero: {_listed(lost - merged)}; give their links a mass")
    if merged:
        _notice(f"{source}: massless joints at the ends of loops become part of the loop closures: {_listed(merged)}")
    return [replace(j, kind="fixed", mimic=None) if j.name in lost else j for j in order]


def _body_names(links: Mapping[str, UrdfLink], root: str, base: str) -> dict[str, str]:
    """Name of each link -> name of its body. A root link named "world" is the world itself, unless it floats."""
    called = {name: name for name in links}
    if WORLD in links and not (root == WORLD and base == "fixed"):
        called[WORLD] = _free_name("world_link", links)
    return called


def _free_name(name: str, names: Iterable[str]) -> str:
    """The name, with underscores at its end until it is not in use."""
    used = set(names)
    while name in used:
        name += "_"
    return name


def _body(link: UrdfLink, name: str, shapes: tuple[Shape, ...]) -> Body:
    I = link.inertia
    tensor: Any = (I[0, 0], I[1, 1], I[2, 2], I[0, 1], I[0, 2], I[1, 2]) if I.any() else 0.0
    return body(name, link.mass, link.com, tensor, shape=shapes)


def _shapes(robot: Element, links: Mapping[str, UrdfLink], strict: bool, where: MeshFolders) -> dict[str, tuple[Shape, ...]]:
    """Link -> its shapes. Those that cannot be read are left out with a warning, or refused if `strict`."""
    colours, found, wrong = read_colours(robot), dict[str, tuple[Shape, ...]](), list[ModelError]()
    for name, link in links.items():
        found[name], bad = read_shapes(link.element, colours, where)
        wrong += bad
    if wrong and strict:
        raise wrong[0]
    if wrong:
        more = f", and {len(wrong) - 1} more" if len(wrong) > 1 else ""
        _notice(f"{robot.source}: shapes that cannot be read are left out of pictures: {wrong[0]}{more}")
    return found


def _tree(
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
        made.append(joint(_free_name(ROOT_JOINT, (j.name for j in order)), base, WORLD, called[root]))
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


def _actuators(
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


def _judge(wrong: Mapping[str, str], links: Mapping[str, UrdfLink], strict: bool, source: str) -> bool:
    """Whether the mechanism must be lenient because of inertias that no body can have. Warns of them, or raises if strict."""
    if strict and wrong:
        name, reason = next(iter(wrong.items()))
        # Only the root link "world" has been renamed.
        raise (links[name] if name in links else links[WORLD]).element.error(f"{reason}; correct it")
    if wrong:
        _notice(f"{source}: {as_they_are(wrong)}")
    return bool(wrong)


def _rubs(j: Joint | None) -> bool:
    """Whether a joint may have dry friction: it has one velocity of its own."""
    return j is not None and j.nv == 1 and j.mimic is None


def _warn_friction(smooth: list[str], lost: list[str], choice: str, source: str) -> None:
    """Warn of the joints whose dry friction is smoothed or left out."""
    if smooth:
        _notice(f"{source}: dry friction is smooth below 0.001 rad/s or m/s: {_listed(smooth)}")
    if lost:
        way = "; friction='smooth' reads it" if choice == "none" else ""
        _notice(f"{source}: dry friction is left out: {_listed(lost)}{way}")


def _warn(order: list[UrdfJoint], mimic: str, source: str) -> None:
    """Warn of mimic joints that move freely, and of bounds and dampers."""
    followers = [j.name for j in order if j.mimic]
    if followers and mimic == "free":
        _notice(f"{source}: mimic joints move on their own: {_listed(followers)}; mimic='follow' couples them")
    lost = [j.name for j in order if j.damping and j.kind in ("planar", "free")]
    if lost:
        _notice(f"{source}: damping of joints with velocities of several units is left out: {_listed(lost)}")
    assumed = [f"{j.name} ({' and '.join(assumed_limits(j))})" for j in order if assumed_limits(j) and j.kind != "fixed"]
    if assumed:
        _notice(f"{source}: bounds that a <limit> leaves out are 0 by the format: {_listed(assumed)}; write them")


VERSION = "1.0"
"""The version of URDF whose elements are known, and the only one that urdfdom reads."""


def _warn_unread(robot: Element, gazebo: Gazebo) -> None:
    """Warn of the elements and attributes that are not read; those of Drake below <robot> are told with the loops."""
    plain = replace(robot, children=[e for e in robot.children if not e.tag.startswith("drake:")])
    version = robot.attributes.get("version", VERSION)
    later = [] if version == VERSION else [f"version {version} of <robot>, of which {VERSION} is known"]
    found = [*later, *unread(plain, KNOWN), *(w for e in robot.all("drake:joint") for w in unread(e, KNOWN)), *gazebo.lost]
    if gazebo.geared:
        words = "motors act on the joint's side of transmissions, whatever their mechanicalReduction"
        _notice(f"{robot.source}: {words}: {_listed(dict.fromkeys(gazebo.geared))}")
    if found:
        _notice(f"{robot.source}: {NOT_READ}: {_listed(dict.fromkeys(found))}")


def _warn_loops(
    source: str, closing: list[Loop], cut: list[UrdfJoint], extras: Extras, side: Sidecar, order: list[UrdfJoint]
) -> None:
    """Warn of the loops and their closures, and of elements that were changed or left out."""
    if closing:
        by = f" ({side.source})" if side.source else ""
        first = "; ".join(f"{printable(c.name)}, {c.kind} of {printable(c.links[0])} and {printable(c.links[1])}"
                          for c in closing[:10])  # fmt: skip
        more = f"; and {len(closing) - 10} more" if len(closing) > 10 else ""
        _notice(f"{source}: loops are closed by constraints{by}: {first}{more}")
    if cut:
        _notice(
            f"{source}: the child links of these joints already have a parent, so the joints close loops: "
            f"{_listed(j.name for j in cut)}"
        )
    if side.motors is None and any(j.independent is False for j in order):
        _notice(f"{source}: motors are on the joints that the file marks as independent; actuated=[...] chooses others")
    known = {j.name for j in (*order, *cut)}
    lost = [f"{', '.join(parts)} of the {c.kind} loop {printable(c.name)}" for c in closing if (parts := c.not_carried)]
    following = {c.name for c in closing if c.follows}
    free = [j.name for j in cut if j.mimic and j.name not in following]
    lost += [f"the <mimic> of joint {printable(name)}, which closes a loop" for name in free]
    lost += [*extras.lost, *(f"{side.source}: {key}" for key in (*side.lost, *(n for n in side.kinds if n not in known)))]
    for words in (*extras.changed, *([f"left out: {_listed(lost)}"] if lost else [])):
        _notice(f"{source}: {words}")


def _notice(message: str) -> None:
    notice(message, ModelWarning)


def _listed(names: Iterable[str]) -> str:
    """The first 20 names in alphabetical order, and how many more there are."""
    order = sorted(names)
    return ", ".join(printable(n) for n in order[:20]) + (f" and {len(order) - 20} more" if len(order) > 20 else "")
