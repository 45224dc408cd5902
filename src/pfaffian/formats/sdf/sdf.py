"""Reading SDF files as mechanisms, with exact loop closures."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from pfaffian.errors import ModelError, nearest
from pfaffian.formats.sdf.sdf_frame import MODEL, NamedFrames, read_frames
from pfaffian.formats.sdf.sdf_inertia import auto_inertia
from pfaffian.formats.sdf.sdf_joint import Joined, check_mimics, read_couplings, read_friction, read_loops, read_tree
from pfaffian.formats.sdf.sdf_names import BELOW
from pfaffian.formats.sdf.sdf_nest import (
    Flat,
    Scope,
    check_placed_alone,
    flatten,
    include_name,
    leave_unread,
    open_include,
    read_version,
)
from pfaffian.formats.sdf.sdf_part import SdfJoint, SdfLink, gravity_compensation, read_joint, read_link, value, written_pose
from pfaffian.formats.sdf.sdf_shape import read_shapes
from pfaffian.formats.sdf.sdf_tree import JointEnds, span
from pfaffian.formats.text.file import as_path, read_text, without_collection
from pfaffian.formats.text.left_out import LeftOut, leave, warned
from pfaffian.formats.text.mesh_file import MeshFolders, places
from pfaffian.formats.text.run_settings import RunSettings
from pfaffian.formats.text.strict_number import check_choice, numbers, printable
from pfaffian.formats.text.xml import Element, parse_xml
from pfaffian.model.body import Body, body
from pfaffian.model.force import Actuator, actuator
from pfaffian.model.joint import Joint
from pfaffian.model.mechanism import Mechanism, mechanism
from pfaffian.model.pose import Pose

MAX_PARTS = 20_000
GRAVITY, WORLD_GRAVITY = (0.0, 0.0, -9.81), (0.0, 0.0, -9.8)
"""Gravity [m/s^2] of a file without a world, and that of a world that gives none, by the SDF specification."""

BASES = ("file", "fixed", "free")
FRICTION = ("smooth", "none")


def read_sdf(path: str | Path, **options: Any) -> tuple[Mechanism, RunSettings]:
    """Read the model of an SDF file, with exact loop closures, and its start: (Mechanism, RunSettings).

    Included models are read only from below its folder, or from folders in `meshes`.

    Args:
        path: of the file.
        options: those of `parse_sdf`: base, actuated, friction, strict, model, name, meshes, source (by default the file's
            name), folder (by default the file's).
    Raises ModelError: an element is wrong, with its line and the reason.
    Warns ModelWarning: one warning with everything that was left out or changed.

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> import pfaffian as pf
        >>> link = '<link name="hull"><pose>0 0 1 0 0 0</pose><inertial><mass>2</mass></inertial></link>'
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     file = Path(folder, "boat.sdf")
        ...     n = file.write_text(f'<sdf version="1.9"><model name="boat">{link}</model></sdf>')
        ...     m, settings = pf.formats.read_sdf(file)
        >>> m, settings.guess["root_joint.z"]
        (<Mechanism 'boat': 1 body, 1 joint (nq 7, nv 6), no inputs>, 1.0)
    """
    place = as_path(path)
    options.setdefault("source", place.name)
    options.setdefault("folder", place.parent)
    return parse_sdf(read_text(place), **options)


@without_collection
def parse_sdf(
    text: str,
    *,
    base: str = "file",
    actuated: Iterable[str] | None = None,
    friction: str = "smooth",
    strict: bool = False,
    model: str | None = None,
    name: str | None = None,
    source: str = "SDF",
    folder: str | Path | None = None,
    meshes: Iterable[str | Path] = (),
) -> tuple[Mechanism, RunSettings]:
    """Read the model of an SDF text as a mechanism, and its start: (Mechanism, RunSettings).

    A link with several parents closes a loop: the first joint in the file with this child is part of the tree, the others
    become exact closures. A gearbox becomes a constraint on two angles. Nested and included models become part of the
    mechanism: the link "palm" of the model "hand" is called "hand::palm", and keeps its name if "hand" is merged. A joint
    with two axes becomes two joints, "name" and "name axis2". Joints are at zero where the file places its links. Limits,
    springs, dampers and <mimic> are read; dry friction is smoothed. Parts that a mechanism cannot represent are left out and
    named in a warning: contact, plugins, <mimic> of joints that close loops.

    Args:
        text: of the file.
        base: "file", the default, puts a model that no joint connects to the world on a free joint "root_joint"; "fixed"
            welds it to the world where the file places it; "free" is like "file", but an error if a joint already connects
            the model to the world.
        actuated: names of the joints with a motor, in this order, each with one velocity; None, the default, for all such
            joints. A motor has the name of its joint, and the file's effort as its limit, if that is above 0.
        friction: "smooth", the default, turns dry friction into `forces.joint_friction`, smooth below 0.001 rad/s or m/s;
            "none" leaves it out.
        strict: whether to refuse inertias that no body can have. By default they are used as they are, with a warning.
        model: name of the model to read, if the file has several; None, the default, if it has one.
        name: of the mechanism; None, the default, takes the name of the model.
        source: name of the text in errors, "SDF" by default.
        folder: of the file, for meshes and included models; with None, the default, only `meshes` is searched.
        meshes: more folders with meshes and included models; none by default. A missing mesh is not an error: pictures show a
            box instead.
    Returns: the mechanism, and settings with the time step of the file's world, if it has one, and the start in `guess`,
        with the <initial_position> of axes.
    Raises ModelError: an element is wrong, with its line and the reason; an included model is not found.
    Warns ModelWarning: one warning with everything that was left out or changed.

    Example:
        >>> import pfaffian as pf
        >>> inertia = "<ixx>1</ixx><iyy>1</iyy><izz>1</izz>"
        >>> rod = f'<link name="rod"><inertial><mass>2</mass><inertia>{inertia}</inertia></inertial></link>'
        >>> ends = "<parent>world</parent><child>rod</child><axis><xyz>0 1 0</xyz></axis>"
        >>> hinge = f'<joint name="hinge" type="revolute">{ends}</joint>'
        >>> m, settings = pf.formats.parse_sdf(f'<sdf version="1.9"><model name="pendulum">{rod}{hinge}</model></sdf>')
        >>> m
        <Mechanism 'pendulum': 1 body, 1 joint (nq 1, nv 1), inputs hinge>
    """
    check_choice(base, BASES, "base")
    check_choice(friction, FRICTION, "friction")
    sdf, lost = parse_xml(text, source, words=True), dict[str, list[str]]()
    where = places(None if folder is None else Path(folder), meshes)
    given, scope, world = _model(sdf, model, where)
    if world is not None:
        leave_unread(lost, replace(world, children=[e for e in world.children if e.tag not in BELOW or e.tag == "joint"]))
        if names := [e.attributes.get("name", "?") for e in world.all("plugin") if not _is_service(e)]:
            leave(lost, "plugins are left out", *names)
    chosen_model, flat = flatten(given, scope.version, scope.where, lost)
    links, joints, frames = _parts(chosen_model, flat, lost)

    ends = [JointEnds(j, frames.link_of(j.parent, j.element), frames.link_of(j.child, j.element)) for j in joints.values()]
    tree, closed, floating = _spanned(links, ends, frozenset(j.name for j in joints.values() if j.kind == "gearbox"))
    if base == "free" and not floating:
        raise chosen_model.error("base='free': a joint already connects the model to the world; leave base out")
    joined = Joined(joints, frames, _place(given, frames), lost)
    made_tree = read_tree(joined, tree, floating, base == "fixed")
    loops = read_loops(joined, tree, closed)
    following = {c.name for c in loops if c.mimic}
    movable = [*made_tree.joints, *(c.joint for c in loops if c.joint is not None)]
    made = mechanism(
        name or chosen_model.attributes.get("name") or "model",
        [*[_body(link, flat.meshes[link.name], lost) for link in links.values()], *made_tree.between],
        made_tree.joints,
        constraints=[*loops, *read_couplings(joined, tree)],
        forces=[*read_friction(joined, movable, friction == "smooth"), *gravity_compensation(links, _gravity(world))],
        actuators=_actuators([j for j in movable if j.name not in following], actuated),
        gravity=_gravity(world),
        lenient=True,
    )
    refused = {n: link.element.where for n, link in links.items()} if strict else None
    return warned(made, sdf.source, lost, refused), _settings(world, made, made_tree.start)


SERVICES = ("Physics", "UserCommands", "SceneBroadcaster", "Sensors", "Contact", "Imu", "ForceTorque", "Altimeter", "NavSat",
            "AirPressure", "Magnetometer", "LogicalCamera")  # fmt: skip
"""Last part of the names of Gazebo's plugins of a world that exert no force."""


def _is_service(plugin: Element) -> bool:
    """Whether a plugin of a world exerts no force."""
    return plugin.attributes.get("name", "").rpartition("::")[2] in SERVICES


def _model(sdf: Element, name: str | None, where: MeshFolders) -> tuple[Element, Scope, Element | None]:
    """The model to read, the scope of its file, and its world, if any. Included models count only if the file has no others.

    Raises ModelError: there is no such model, or several.
    """
    if sdf.tag != "sdf":
        raise sdf.error("this is not SDF; the root element of an SDF file is <sdf>")
    scope, worlds = Scope("", MODEL, read_version(sdf), where), sdf.all("world")
    children = [(m, w) for w in (None, *worlds) for m in (sdf if w is None else w).children]
    models = {n: [(m, w) for m, w in children if m.tag == n] for n in ("model", "include")}
    names = {id(m): m.attributes.get("name", "?") for m, _ in models["model"]}
    names |= {id(m): include_name(m) for m, _ in models["include"]}
    found = models["model"] or models["include"]
    if name is not None:
        found = [(m, w) for m, w in (*models["model"], *models["include"]) if names[id(m)] == name]
    if len(found) == 1:
        ((model, world),) = found
        if model.tag == "include":
            model, scope = open_include(model, where)
        check_placed_alone(model)
        return model, scope, world
    if not names:
        raise sdf.error("the file has no <model>; read a file with one")
    if name is None:
        listed = ", ".join(printable(names[id(m)]) for m, _ in found[:8])
        raise sdf.error(f"there are {len(found)} models: {listed}; pass model=name")
    raise ModelError(f"model={printable(name)}: {nearest(name, list(names.values()))}")


def _place(model: Element, frames: NamedFrames) -> Pose:
    """The pose of the model in the world, given by its <pose>, which places its placement_frame if it has one."""
    at = model.attributes.get("placement_frame", "")
    here = written_pose(model.only("pose"))
    return here @ frames.at(at, model).inverse() if at else here


def _parts(model: Element, flat: Flat, lost: LeftOut) -> tuple[dict[str, SdfLink], dict[str, SdfJoint], NamedFrames]:
    """The links, joints and frames of a flat model. Raises ModelError: one of them is wrong, or there are too many."""
    counts = len(model.all("link")), len(model.all("joint"))
    if not counts[0] or max(counts) > MAX_PARTS:
        raise model.error(f"a model must have 1 to {MAX_PARTS} links and joints; this one has {counts[0]} links")
    frames = read_frames(model, flat.version, flat.after)
    links = {x.name: x for x in (_link(e, flat, lost) for e in model.all("link"))}
    joints = {x.name: x for x in (read_joint(e, lost) for e in model.all("joint"))}
    for name in frames.defaults:
        frames.at(name, model)
    check_mimics(joints)
    if any(e.all("collision") for e in model.all("link")):
        leave(lost, "contact between shapes is left out")
    return links, joints, frames


def _link(element: Element, flat: Flat, lost: LeftOut) -> SdfLink:
    where = flat.meshes[element.attributes["name"]]
    return read_link(element, lost, lambda inertial: auto_inertia(element, inertial, where))


def _body(link: SdfLink, where: MeshFolders, lost: LeftOut) -> Body:
    return body(link.name, link.mass, link.com, link.inertia, shape=read_shapes(link.element, where, lost))


def _gravity(world: Element | None) -> tuple[float, ...]:
    """(3,) [m/s^2] of the world; up to SDF 1.4 it is in <physics>."""
    if world is None:
        return GRAVITY
    found = world.only("gravity") or next((g for p in world.all("physics") for g in p.all("gravity")), None)
    return WORLD_GRAVITY if found is None else numbers(found.content, 3, found.where)


def _spanned(
    links: Iterable[str], ends: list[JointEnds], loops: frozenset[str]
) -> tuple[list[JointEnds], list[JointEnds], list[str]]:
    """What `span` returns, with joints that follow others, lead them or have a start in the tree where that is possible."""
    found = span(list(links), ends, loops)
    followed = {x.follows[0] for e in ends for x in e.joint.axes if x.follows}
    in_tree = {e.joint.name for e in ends if e.joint.name in followed or any(x.follows or x.initial for x in e.joint.axes)}
    if not in_tree & {e.joint.name for e in found[1]}:
        return found
    return span(list(links), sorted(ends, key=lambda e: e.joint.name not in in_tree), loops)


def _actuators(joints: list[Joint], actuated: Iterable[str] | None) -> list[Actuator]:
    """A motor for each joint in `actuated`, or for each joint with one velocity, in the tree or closing a loop."""
    single = {j.name: j for j in joints if j.nv == 1 and j.mimic is None}
    names = list(single) if actuated is None else list(actuated)
    for n in names:
        if n not in single:
            raise ModelError(f"actuated: {printable(n)} is not a joint with one velocity; {nearest(n, list(single))}")
    return [actuator(n, n, limits=(-single[n].effort, single[n].effort)) for n in names]


def _settings(world: Element | None, m: Mechanism, start: dict[str, np.ndarray]) -> RunSettings:
    """The run settings: the time step of the world, and the start of floating links and of axes that give one."""
    physics = next(iter(world.all("physics") if world else ()), None)
    step = 1e-3 if physics is None else value(physics, "max_step_size", 1e-3)
    if physics is not None and not 0 < step < 1:
        raise physics.error(f"max_step_size {step} is not a time step between 0 and 1 s")
    q = m.neutral()
    for joint, x in start.items():
        q[m.q_slices[joint]] = x
    return RunSettings(step=step, guess={n: float(x) for n, x in zip(m.q_names, q, strict=True)})
