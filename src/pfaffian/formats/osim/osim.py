"""Reading OSIM files as mechanisms."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pfaffian.errors import nearest
from pfaffian.formats.osim.osim_coordinate import moves, prescribed, read_coupler, settled, settled_start, start_speeds
from pfaffian.formats.osim.osim_frame import UP, Frames, offset, vector
from pfaffian.formats.osim.osim_function import Affine
from pfaffian.formats.osim.osim_joint import ChainParts, add, closing, coupled, moved
from pfaffian.formats.osim.osim_known import fill, not_known
from pfaffian.formats.osim.osim_part import (
    MEMBERS,
    NEWEST,
    OsimBody,
    OsimJoint,
    check_version,
    components,
    listed,
    name_of,
    read_bodies,
    read_joints,
    text_of,
    truth,
    value,
)
from pfaffian.formats.text.file import as_path, read_text, without_collection
from pfaffian.formats.text.left_out import LeftOut, leave, warned
from pfaffian.formats.text.run_settings import RunSettings
from pfaffian.formats.text.strict_number import printable
from pfaffian.formats.text.unread import NOT_READ
from pfaffian.formats.text.xml import Element, parse_xml
from pfaffian.model.body import WORLD, Body, body
from pfaffian.model.constraint import Constraint, closure, coincide
from pfaffian.model.force import Actuator, actuator
from pfaffian.model.joint import joint
from pfaffian.model.mechanism import Mechanism, mechanism
from pfaffian.model.number import constants
from pfaffian.model.pose import Pose

IDLE = ("PhysicalOffsetFrame", "Station", "Marker", "ContactSphere", "ContactHalfSpace", "ContactMesh", "TableReporter")
"""Components that exert no force."""

UNITS = {"length_units": ("metres", "meters", "meter", "m"), "force_units": ("newtons", "newton", "n")}
"""Element with the name of a unit -> the unit that OpenSim takes, and other names of it."""

GRAVITY = (0.0, -9.80665, 0.0)
"""Gravity [m/s^2] of a model that gives none, along the axes of ground."""


def read_osim(path: str | Path, **options: Any) -> tuple[Mechanism, RunSettings]:
    """Read the mechanism of an OpenSim model file (.osim), and its start: (Mechanism, RunSettings).

    Args:
        path: of the file. No other file is opened.
        options: those of `parse_osim`: strict, name, source (by default the file's name).
    Raises ModelError: an element is wrong, with its line and the reason.
    Warns ModelWarning: one warning with everything that was left out or changed.

    Example:
        >>> import tempfile
        >>> import pfaffian as pf
        >>> rod = '<Body name="rod"><mass>2</mass><mass_center>0 -0.5 0</mass_center><inertia>1 1 1 0 0 0</inertia></Body>'
        >>> ends = "<socket_parent_frame>/ground</socket_parent_frame><socket_child_frame>/bodyset/rod</socket_child_frame>"
        >>> hinge = f'<PinJoint name="hinge">{ends}<coordinates><Coordinate name="angle"/></coordinates></PinJoint>'
        >>> sets = f"<BodySet><objects>{rod}</objects></BodySet><JointSet><objects>{hinge}</objects></JointSet>"
        >>> with tempfile.NamedTemporaryFile("w", suffix=".osim") as file:
        ...     text = f'<OpenSimDocument Version="40000"><Model name="m">{sets}</Model></OpenSimDocument>'
        ...     print(text, file=file, flush=True)
        ...     m, settings = pf.formats.read_osim(file.name)
        >>> m, pf.mass_matrix(m)  # 1 + 2 * 0.5^2
        (<Mechanism 'm': 1 body, 1 joint (nq 1, nv 1), no inputs>, array([[1.5]]))
    """
    place = as_path(path)
    options.setdefault("source", place.name)
    return parse_osim(read_text(place), **options)


@without_collection
def parse_osim(
    text: str, *, strict: bool = False, name: str | None = None, source: str = "OSIM"
) -> tuple[Mechanism, RunSettings]:
    """Read the mechanism of an OpenSim model as text, and its start: (Mechanism, RunSettings).

    Files of versions 3 and 4 are read. Coordinates keep their names, and z points up. A CustomJoint becomes a joint for each of
    its axes: the first one that moves by a coordinate alone has the name of the coordinate; others are called "joint axis" and
    follow, exactly where the function is linear, by a constraint where it is a spline or a polynomial. Balls and free joints
    turn about x, y and z one after another, as their coordinates say. Constraints between points, frames and coordinates are
    exact. CoordinateActuators are inputs, and SpringGeneralizedForces springs and dampers of joints. Muscles, contact and other
    forces are left out and named in a warning.

    Args:
        text: of the file.
        strict: whether to refuse inertias that no body can have. By default they are used as they are, with a warning.
        name: of the mechanism; None, the default, takes the name in the file.
        source: name of the text in errors, "OSIM" by default.
    Returns: the mechanism, and settings with the default values of its coordinates in `guess`, and their speeds in `v`.
    Raises ModelError: an element is wrong, with its line and the reason.
    Warns ModelWarning: one warning with everything that was left out or changed.

    Example:
        >>> import pfaffian as pf
        >>> cart = '<Body name="cart"><mass>2</mass></Body>'
        >>> ends = "<socket_parent_frame>/ground</socket_parent_frame><socket_child_frame>/bodyset/cart</socket_child_frame>"
        >>> rail = f'<SliderJoint name="rail">{ends}<coordinates><Coordinate name="x"/></coordinates></SliderJoint>'
        >>> sets = f"<BodySet><objects>{cart}</objects></BodySet><JointSet><objects>{rail}</objects></JointSet>"
        >>> m, _ = pf.formats.parse_osim(f'<OpenSimDocument Version="40000"><Model name="m">{sets}</Model></OpenSimDocument>')
        >>> m.q_names
        ('x',)
    """
    document, lost = parse_xml(text, source, words=True), LeftOut()
    if document.tag != "OpenSimDocument":
        raise document.error("this is not a model of OpenSim; the root element of one is <OpenSimDocument>")
    model = document.only("Model")
    if model is None:
        raise document.error("the file has no <Model>; read a file with one")
    version = check_version(document)
    fill(model)
    bodies = read_bodies(model, version)
    given, frames = read_joints(model, version, bodies)
    enforced = [e for e in listed(model, "ConstraintSet") if truth(e, "isEnforced", True) and not truth(e, "isDisabled")]
    couplers = [c for e in enforced if e.tag == COUPLER and (c := read_coupler(e, given)) is not None]
    joints, couplers, replaced = settled(given, couplers, lost)
    passive, motors = _forces(model, joints, replaced, lost)
    made = ChainParts(frozenset(c.name for j in joints for c in j.coordinates))
    loops = _grow(bodies, joints, passive, made, lost)
    couplers = [c for c in couplers if moves(c, made.start, loops)]
    motions = prescribed(joints, replaced, loops, made.start)
    constraints = [
        *(coupled(n, n, f) for n, f in made.couplings),
        *(coupled(c.name, c.dependent, c.by) for c in couplers),
        *(moved(n, f) for n, f in motions.items()),
        *(closing(j, passive, made, lost) for j in loops),
        *_constraints(enforced, frames, lost),
    ]
    followers = {c.dependent: c.by for c in couplers} | dict(made.couplings)
    start = settled_start(made.start, motions, followers)
    found = mechanism(
        name or model.attributes.get("name") or "model",
        [*(_body(b, lost) for b in bodies), *made.between],
        made.joints,
        constraints=constraints,
        actuators=motors({j.name for j in made.joints if j.mimic is None}),
        gravity=tuple((constants(UP.R) @ vector(model, "gravity", GRAVITY)).tolist()),
        lenient=True,
    )
    _tell(document, model, joints, loops, lost)
    speeds = start_speeds(joints, {*found.v_names}.difference(motions, followers))
    refused = {b.name: b.element.where for b in bodies} if strict else None
    return warned(found, document.source, lost, refused), RunSettings(guess={n: x for n, x in start.items() if x}, v=speeds)


def _body(b: OsimBody, lost: LeftOut) -> Body:
    """A body; without a mass it has no inertia, as in OpenSim."""
    if not b.mass and any(b.inertia):
        leave(lost, "bodies without a mass have no inertia, whatever the file gives", b.name)
    return body(b.name, b.mass, b.com, b.inertia if b.mass and any(b.inertia) else 0.0)


def _grow(
    bodies: Sequence[OsimBody], joints: Sequence[OsimJoint], passive: Mapping[str, Any], made: ChainParts, lost: LeftOut
) -> list[OsimJoint]:
    """Add the joints of a tree, outwards from ground. Returns those that close loops.

    A body that no joint connects to ground gets a free joint, as in OpenSim.
    """
    touching, placed, used = defaultdict[str, list[OsimJoint]](list), {WORLD}, set[int]()
    for j in joints:
        for end, _ in (j.parent, j.child):
            touching[end].append(j)

    def grow(start: str) -> None:
        """Add the joints that `start` leads to, nearest first."""
        waiting = deque([start])
        while waiting:
            here = waiting.popleft()
            for j in touching[here]:
                back = j.child[0] == here
                new = (j.parent if back else j.child)[0]
                if new not in placed:
                    add(j, back, passive, made, lost)
                    used.add(id(j))
                    placed.add(new)
                    waiting.append(new)

    grow(WORLD)
    for b in bodies:
        if b.name not in placed:
            made.joints.append(joint(f"{b.name} free"[:128], "free", WORLD, b.name, placement=UP))
            placed.add(b.name)
            grow(b.name)
    return [j for j in joints if id(j) not in used]


# -- constraints ------------------------------------------------------------------------------------------------------


COUPLER = "CoordinateCouplerConstraint"


def _constraints(enforced: Sequence[Element], frames: Frames, lost: LeftOut) -> list[Constraint]:
    """The constraints between bodies."""
    for e in enforced:
        if e.tag != COUPLER and e.tag not in _BETWEEN:
            leave(lost, "constraints of other kinds are left out", f"{e.attributes.get('name', '?')} ({e.tag})")
    return [_BETWEEN[e.tag](e, frames) for e in enforced if e.tag in _BETWEEN]


def _ends(e: Element, frames: Frames, *tags: str) -> list[tuple[str, Pose]]:
    """The bodies that two sockets name, and the poses of the frames there.   tags: names of the sockets."""
    found = []
    for tag in tags:
        path = text_of(e, f"socket_{tag}", f"socket_{tag}_connectee_name", tag)
        if not path:
            raise e.error(f"<socket_{tag}> is missing; add it")
        found.append(frames.find(path, f"/constraintset/{e.attributes.get('name', '')}", e))
    return found


def _at(e: Element, end: tuple[str, Pose], tag: str) -> tuple[str, Any]:
    """A body, and a point of one of its frames."""
    name, X = end
    return name, X.R @ np.array(vector(e, tag, (0.0, 0.0, 0.0))) + X.p


def _point(e: Element, frames: Frames) -> Constraint:
    ends = _ends(e, frames, "body_1", "body_2")
    (a, x), (b, y) = (_at(e, end, f"location_body_{i}") for i, end in enumerate(ends, 1))
    return coincide(name_of(e), a, x, b, y)


def _rod(e: Element, frames: Frames) -> Constraint:
    ends = _ends(e, frames, "body_1", "body_2")
    (a, x), (b, y) = (_at(e, end, f"location_body_{i}") for i, end in enumerate(ends, 1))
    length = value(e, "constant_distance", 0.0)
    if not length > 0:
        raise e.error(f"constant_distance {length} must be above zero; use a PointConstraint for zero")
    return closure(name_of(e), "distance", a, b, placement_a=x, placement_b=y, length=length)


def _weld(e: Element, frames: Frames) -> Constraint:
    old = e.only("body_1") is not None
    (a, x), (b, y) = _ends(e, frames, "body_1", "body_2") if old else _ends(e, frames, "frame1", "frame2")
    if old:
        x, y = (X @ offset(e, f"location_body_{i}", f"orientation_body_{i}") for i, X in ((1, x), (2, y)))
    return closure(name_of(e), "weld", a, b, placement_a=x, placement_b=y)


def _on_line(e: Element, frames: Frames) -> Constraint:
    line, follower = _ends(e, frames, "line_body", "follower_body")
    (a, x), (b, y) = _at(e, line, "point_on_line"), _at(e, follower, "point_on_follower")
    axis = constants(line[1].R) @ np.array(vector(e, "line_direction_vec", (0.0, 0.0, 0.0)))
    return closure(name_of(e), "point-on-line", a, b, placement_a=x, placement_b=y, axis=axis)


_BETWEEN: dict[str, Callable[[Element, Frames], Constraint]] = {
    "PointConstraint": _point, "ConstantDistanceConstraint": _rod, "WeldConstraint": _weld, "PointOnLineConstraint": _on_line,
}  # fmt: skip
"""Kind of a constraint between bodies -> how it is read."""


# -- forces -----------------------------------------------------------------------------------------------------------


def _forces(
    model: Element, joints: Sequence[OsimJoint], replaced: Mapping[str, Affine], lost: LeftOut
) -> tuple[dict[str, dict[str, float]], Callable[[set[str]], list[Actuator]]]:
    """Coordinate -> stiffness, rest and damping of its forces; and the actuators of the joints that have coordinates."""
    known = {c.name for j in joints for c in j.coordinates} | {*replaced}
    passive, driven = dict[str, dict[str, float]](), list[tuple[str, str, float, tuple[float, float]]]()
    for e in listed(model, "ForceSet"):
        if truth(e, "isDisabled") or not truth(e, "appliesForce", True):
            continue
        coordinate = text_of(e, "coordinate")
        if e.tag in ("CoordinateActuator", "SpringGeneralizedForce") and coordinate not in known:
            raise e.error(f"there is no coordinate {printable(coordinate)}; {nearest(coordinate, [*known])}")
        coordinate, a, b = replaced.get(coordinate, (coordinate, 1.0, 0.0))
        if e.tag == "CoordinateActuator":
            limits = bound(e, "min_control", -np.inf), bound(e, "max_control", np.inf)
            driven.append((name_of(e), coordinate, a * value(e, "optimal_force", 1.0), limits))
        elif e.tag == "SpringGeneralizedForce":
            k, rest, d = (value(e, tag, 0.0) for tag in ("stiffness", "rest_length", "viscosity"))
            _spring(passive.setdefault(coordinate, {}), k * a * a, (rest - b) / a, d * a * a)
        else:
            what = (
                "muscles" if "Muscle" in e.tag else "forces of other kinds than CoordinateActuator and SpringGeneralizedForce"
            )
            leave(lost, f"{what} are left out", e.attributes.get("name", "?"))

    def motors(moving: set[str]) -> list[Actuator]:
        for name, at, _, _ in driven:
            if at not in moving:
                leave(lost, "actuators of coordinates that do not move on their own are left out", name)
        return [actuator(name, at, gear=gear, limits=limits) for name, at, gear, limits in driven if at in moving]

    return passive, motors


def _spring(given: dict[str, float], stiffness: float, rest: float, damping: float) -> None:
    """Add a spring and a damper to those of a coordinate."""
    whole = given.get("stiffness", 0.0) + stiffness
    given["rest"] = (given.get("stiffness", 0.0) * given.get("rest", 0.0) + stiffness * rest) / whole if whole else 0.0
    given["stiffness"], given["damping"] = whole, given.get("damping", 0.0) + damping


def bound(e: Element, tag: str, default: float) -> float:
    """The number in a child element, which may be Inf or -Inf; the default without one."""
    word = text_of(e, tag).lower().removeprefix("+").replace("infinity", "inf")
    return {"": default, "inf": np.inf, "-inf": -np.inf}[word] if word in ("", "inf", "-inf") else value(e, tag, default)


def _tell(document: Element, model: Element, joints: Sequence[OsimJoint], loops: Sequence[OsimJoint], lost: LeftOut) -> None:
    """Name what is not read otherwise."""
    for j in joints:
        for c in j.coordinates:
            if c.locked:
                leave(lost, "locked coordinates are fixed at their default values", c.name)
    if loops:
        leave(lost, "joints close loops as constraints", *(j.name for j in loops))
    if names := [c.name for j in loops for c in j.coordinates]:
        leave(lost, "coordinates of joints that close loops are left out", *names)
    others = [e for e in listed(model, "BodySet") if e.tag != "Body"]
    for e in [*others, *components(model)]:
        if not any(tags.fullmatch(e.tag) for tags in MEMBERS.values()) and e.tag not in IDLE:
            leave(lost, "further components are left out", f"{e.attributes.get('name', '?')} ({e.tag})")
    for e in listed(model, "ControllerSet"):
        if truth(e, "enabled", True) and not truth(e, "isDisabled"):
            leave(lost, "controllers are left out", e.attributes.get("name", "?"))
    for tag, ours in UNITS.items():
        if (word := text_of(model, tag)) and word.lower() not in ours:
            leave(lost, f"numbers are in {ours[0]}, as in OpenSim, whatever {tag} says", word)
    if check_version(document) > NEWEST:
        leave(lost, f"the version of the file is newer than {NEWEST}, the newest that is known", document.attributes["Version"])
    if names := not_known(document, model):
        leave(lost, NOT_READ, *names)
