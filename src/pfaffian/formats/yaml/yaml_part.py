"""Reading the entries of YAML files: parameters, bodies, joints, constraints, forces and actuators."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from pfaffian.errors import ModelError
from pfaffian.formats.text.expression import CONSTANTS, NAME, words
from pfaffian.formats.text.library_laws import Names, read_law, whole
from pfaffian.formats.text.mesh_file import MESHES, NOWHERE, MeshFolders
from pfaffian.formats.text.place import WAY_OUT
from pfaffian.formats.text.strict_number import printable
from pfaffian.formats.text.written import Written
from pfaffian.formats.text.yaml_tree import Node
from pfaffian.maths.closures import CLOSURES
from pfaffian.model.body import Body, body
from pfaffian.model.compound import Compound
from pfaffian.model.constraint import Closure, Constraint, closure, coincide, holonomic, nonholonomic, servo
from pfaffian.model.force import (
    Force,
    Motor,
    actuator,
    dissipation,
    generalised_force,
    kinetic_energy,
    potential,
    spring,
    thruster,
    transmission,
    wrench,
)
from pfaffian.model.joint import KINDS, Joint, Mimic, joint, locked, mimic
from pfaffian.model.number import Parameter, at_defaults
from pfaffian.model.path import Path
from pfaffian.model.path_force import Winch, path_spring, winch
from pfaffian.model.pose import IDENTITY, Pose, pose
from pfaffian.model.shape import ROLES, SIZES, Shape, mesh, shape
from pfaffian.parts.contact import Contact, Stop, contact, stop
from pfaffian.parts.cylinder import Cylinder, cylinder
from pfaffian.parts.drives import Belt, Cable, Gear, belt, cable, gear
from pfaffian.parts.elastic import Bushing, bushing, pose_damper, pose_inertia, pose_spring, pseudo_matrix
from pfaffian.parts.fluid import drag, propeller
from pfaffian.parts.friction import contact_friction, joint_friction
from pfaffian.parts.load_friction import gear_loss, guide_friction, pin_friction, screw_friction
from pfaffian.parts.rebound import Rebound, rebound
from pfaffian.parts.suspension import AntiRollBar, anti_roll_bar, bush
from pfaffian.parts.wheels import Ball, Blade, Disk, Ellipsoid, Plane, disk, ellipsoid, knife_edge, plane, sphere, wheel


def read_parameter(name: str, node: Node) -> Parameter:
    """Read a parameter: `l: 1.0` or `m: {default: 1, unit: kg}`."""
    if not NAME.fullmatch(name) or name in CONSTANTS:
        raise node.error(f"{printable(name)} cannot name a parameter; use letters, digits and _, but not {[*CONSTANTS]}")
    if isinstance(node.value, str):
        return Parameter(name, node.constant())
    f = node.fields(("default", "unit"), required=("default",))
    return Parameter(name, f["default"].constant(), f["unit"].text() if "unit" in f else "")


def read_body(name: str, node: Node, names: Names, where: MeshFolders = NOWHERE) -> Body:
    """Read a body: `crank: {mass: m, com: [l/2, 0, 0], inertia: [0, 0, m*l^2/12]}`, or `crank: {shape: {kind: box, ...}}`."""
    f = node.fields(("mass", "com", "inertia", "shape"))
    given = _take(f, mass=lambda n: n.number(names), com=lambda n: n.numbers(3, names),
                  inertia=lambda n: _inertia(n, names), shape=lambda n: read_shapes(n, names, where))  # fmt: skip
    return _made(node, body, name, **given)


def read_shapes(node: Node, names: Names, where: MeshFolders) -> list[Shape]:
    """Read one shape, or a list of shapes: `{kind: box, size: [l, 0.02, 0.01], density: 2700}`."""
    return [_shape(n, names, where) for n in (node.items() if isinstance(node.value, list) else [node])]


def _shape(node: Node, names: Names, where: MeshFolders) -> Shape:
    lengths = ("radius", "length", "density", "mass")
    f = node.fields(("kind", "size", "file", "label", "scale", "placement", "colour", "role", *lengths), required=("kind",))
    kind = f["kind"].choice(SIZES)
    if kind == "mesh" and "label" in f:
        return _labelled(node, f, names, where)
    given = _take(f, size=lambda n: n.numbers(3, names), file=lambda n: _mesh(n, where), scale=lambda n: n.array({}),
                  placement=lambda n: read_pose(n, names), colour=_colour, role=lambda n: n.choice(ROLES),
                  **{k: lambda n: n.number(names) for k in lengths})  # fmt: skip
    return _made(node, shape, kind, **given)


def _labelled(node: Node, f: Mapping[str, Node], names: Names, where: MeshFolders) -> Shape:
    """A mesh with its name in another file as label. It is not an error if it is not found: pictures then show a box."""
    f = node.fields(("kind", "file", "label", "scale", "placement", "colour", "role"))
    given = _take(f, scale=lambda n: n.array({}), placement=lambda n: read_pose(n, names), colour=_colour,
                  role=lambda n: n.choice(ROLES))  # fmt: skip
    colour = given.pop("colour", None)
    checked = {} if colour is None else {"colour": _made(node, shape, "sphere", radius=1.0, colour=colour).colour}
    found = where.find(f["file"].text()) if "file" in f else None
    return _made(node, mesh, found, f["label"].text(), **given, **checked)


def _mesh(node: Node, where: MeshFolders) -> str:
    """The path of a mesh. Raises ModelError: it is not found."""
    found = where.find(node.text())
    if found is None:
        kinds = ", ".join(MESHES)
        raise node.error(f"the mesh {printable(node.text())} is not a file ({kinds}) below the file's own folder; {WAY_OUT}")
    return found


def _colour(node: Node) -> Any:
    return [n.constant() for n in node.items()] if isinstance(node.value, list) else node.text()


def _inertia(node: Node, names: Names) -> Any:
    if isinstance(node.value, str):
        return node.number(names)
    count = len(node.items())
    if count not in (3, 6):
        raise node.error("give one number, 3 principal moments, or 6 numbers xx yy zz xy xz yz")
    entries = node.numbers(count, names)
    return entries if count == 6 else ca.vertcat(entries, ca.SX.zeros(3, 1))


def read_joint(name: str, node: Node, names: Names) -> Joint:
    """Read a joint: `pivot: {kind: revolute, parent: world, child: crank, axis: [0, 1, 0]}`.

    `locked: 0.3` locks it at this coordinate; `mimic: {joints: {other: 2}, offset: 0.1}` makes it follow others.
    """
    arrays = ("stiffness", "rest", "damping", "armature", "pitch")
    keys = ("kind", "parent", "child", "axis", "placement", "child_placement", "limits", "effort", "distribution", "speeds",
            "mimic", "locked", *arrays)  # fmt: skip
    f = node.fields(keys, required=("kind", "parent", "child"))
    given = _take(f, axis=lambda n: n.constants(3), placement=lambda n: read_pose(n, names),
                  child_placement=lambda n: read_pose(n, names), limits=_limits, effort=lambda n: n.constant(),
                  distribution=lambda n: _distribution(n, names), speeds=_speeds, mimic=lambda n: _mimic(n, names),
                  **{k: lambda n: n.array(names) for k in arrays})  # fmt: skip
    made = _made(node, joint, name, f["kind"].choice(KINDS), f["parent"].text(), f["child"].text(), **given)
    return _made(f["locked"], locked, made, f["locked"].array(names)) if "locked" in f else made


def _limits(node: Node) -> Any:
    """A pair of constants, or a list with a pair for each coordinate."""
    if isinstance(node.value, list) and any(isinstance(n.value, list) for n in node.value):
        return [interval_of(n) for n in node.items()]
    return interval_of(node)


def interval_of(node: Node) -> tuple[float, ...]:
    """(low, high), both constants; `-inf` or `inf` means no limit."""
    return tuple(float(n.text()) if n.value in ("inf", "-inf") else n.constant() for n in node.items(2))


def _distribution(node: Node, names: Names) -> Any:
    """A distribution: names of velocities, or rows of numbers."""
    rows = node.items()
    return node.array(names) if any(isinstance(n.value, list) for n in rows) else [n.text() for n in rows]


def _speeds(node: Node) -> Any:
    if isinstance(node.value, dict):
        return {name: unit.text() for name, unit in node.value.items()}
    return [n.text() for n in node.items()]


def _mimic(node: Node, names: Names) -> Mimic:
    f = node.fields(("joints", "offset"), required=("joints",))
    ratios = {name: ratio.number(names) for name, ratio in f["joints"].map().items()}
    return _made(node, mimic, ratios, **_take(f, offset=lambda n: n.number(names)))


def read_constraint(name: str, node: Node, names: Names) -> Constraint | Compound:
    """Read a constraint: `loop: {kind: revolute, body_a: rocker, body_b: world, placement_a: {xyz: [l, 0, 0]}}`, also of kind
    coincide, or a contact with a plane: `tyre: {kind: rolling-disk, body: wheel, radius: r}`."""
    kind = node.fields([*node.map()], required=("kind",))["kind"].choice([*CLOSURES, "coincide", *_BY_TEXT, *ROLLING])
    if "servo" in node.map():
        return _servo(name, node, names)
    if kind in ROLLING:
        return ROLLING[kind].read(name, node, names)
    if kind in _BY_TEXT:
        make, key = _BY_TEXT[kind]
        f = node.fields(("kind", key), required=(key,))
        return _made(node, make, name, _column(f[key], names))
    ends = ("kind", "body_a", "body_b")
    if kind == "coincide":
        f = node.fields((*ends, "point_a", "point_b"), required=(*ends, "point_a", "point_b"))
        a, b = (f[k].numbers(3, names) for k in ("point_a", "point_b"))
        return _made(node, coincide, name, f["body_a"].text(), a, f["body_b"].text(), b)
    arrays = ("stiffness", "rest", "damping", "armature", "friction", "near")
    keys = ("placement_a", "placement_b", "axis", "axis_b", "pitch", "length", "limits", "effort", "mimic", "axes",
            *arrays)  # fmt: skip
    f = node.fields((*ends, *keys), required=ends)
    given = _take(f, placement_a=lambda n: read_pose(n, names), placement_b=lambda n: read_pose(n, names),
                  axis=lambda n: n.constants(3), axis_b=lambda n: n.constants(3), pitch=lambda n: n.number(names),
                  length=lambda n: n.number(names), limits=_limits, effort=lambda n: n.constant(),
                  mimic=lambda n: _mimic(n, names), **{k: lambda n: n.array(names) for k in arrays})  # fmt: skip
    made = _made(node, closure, name, kind, f["body_a"].text(), f["body_b"].text(), **given)
    return made if "axes" not in f else replace(made, axes=_axes(f["axes"], made))


def _axes(node: Node, c: Closure) -> ca.SX:
    """(3, 2) the axes of a universal closure in its joint frames, for placements that contain the rotations onto them."""
    if c.axes is None:
        raise node.error(f"a {c.kind} closure has no axes; leave them out")
    first, second = (np.array(n.constants(3)) for n in node.items(2))
    if not np.abs(np.cross(first, second)).max() > 0:
        raise node.error("the two axes are parallel; a universal joint turns about two")
    return ca.SX(ca.DM(np.column_stack([first, second])))


def _servo(name: str, node: Node, names: Names) -> Constraint:
    """A constraint that inputs maintain, with `servo: {directions: [motor], stiffness: 400, damping: 40}` and its kind."""
    inner = dict(node.map())
    f = inner.pop("servo").fields(("directions", "stiffness", "damping"), required=("directions",))
    target = read_constraint(name, Node(inner, node.where), names)
    given = _take(f, stiffness=lambda n: n.number(names), damping=lambda n: n.number(names))
    return _made(node, servo, target, [n.text() for n in f["directions"].items()], **given)


def read_actuator(name: str, node: Node, names: Names) -> Motor:
    """Read an actuator: `motor: {joint: pivot, gear: 1, limits: [-2, 2]}`, `jet: {body: hull, axis: [1, 0, 0]}`, on several
    velocities `tendon: {gears: [{joint: a, gear: 2}, {joint: b, component: 1, gear: -1}]}`, or `winch: {path: ...}`."""
    if "path" in node.map():
        return _winch(name, node, names)
    if "gears" in node.map():
        f = node.fields(("gears", "limits"))
        gears = dict(_gear(n, names) for n in f["gears"].items())
        if len(gears) < len(f["gears"].items()):
            raise f["gears"].error("a velocity is listed twice; list it once, with the sum of its gears")
        return _made(node, transmission, name, gears, **_take(f, limits=interval_of))
    if "body" in node.map():
        f = node.fields(("body", "axis", "point", "torque", "limits"))
        given = _take(f, axis=lambda n: n.constants(3), point=lambda n: n.numbers(3, names),
                      torque=lambda n: n.number(names), limits=interval_of)  # fmt: skip
        return _made(node, thruster, name, f["body"].text(), **given)
    f = node.fields(("joint", "component", "gear", "limits"), required=("joint",))
    given = _take(f, component=lambda n: whole(n, 6), gear=lambda n: n.number(names), limits=interval_of)
    return _made(node, actuator, name, f["joint"].text(), **given)


def _winch(name: str, node: Node, names: Names) -> Winch:
    """An actuator along a path."""
    f = node.fields(("path", "gear", "limits", "unit", "damps"))
    given = _take(f, gear=lambda n: n.number(names), limits=interval_of)
    made = _made(node, winch, name, _path(f["path"], names), **given)
    kind = _take(f, unit=lambda n: n.choice(("N", "N m", "N s/m", "N m s", "Pa")), damps=lambda n: n.truth())
    return replace(made, **kind)


def _gear(node: Node, names: Names) -> tuple[tuple[str, int], ca.SX]:
    f = node.fields(("joint", "component", "gear"), required=("joint", "gear"))
    return (f["joint"].text(), whole(f["component"], 6) if "component" in f else 0), f["gear"].number(names)


def read_pose(node: Node, names: Names) -> Pose:
    """Read a pose: `{xyz: [0, 0, l], rpy: [0, pi/2, 0]}`; `quaternion: [x, y, z, w]` or rows in `rotation` may replace rpy."""
    f = node.fields(("xyz", "rpy", "quaternion", "rotation"))
    if "rotation" in f:
        R = ca.densify(ca.vertcat(*[row.numbers(3, names).T for row in f["rotation"].items(3)]))
        if R.is_constant() and "rpy" not in f and "quaternion" not in f:
            _made(f["rotation"], pose, rotation=np.array(ca.DM(R)))
            return Pose(R, f["xyz"].numbers(3, names) if "xyz" in f else IDENTITY.p)
        if not R.is_constant():
            return _turned(f, R, names)
    given = _take(f, xyz=lambda n: n.numbers(3, names), rpy=lambda n: n.numbers(3, names),
                  quaternion=lambda n: n.constants(4))  # fmt: skip
    return _made(node, pose, **given)


def _turned(f: Mapping[str, Node], R: ca.SX, names: Names) -> Pose:
    """A pose whose rotation depends on parameters; it must be a rotation at their defaults."""
    if "rpy" in f or "quaternion" in f:
        raise f["rotation"].error("give only one of rotation, rpy and quaternion")
    _made(f["rotation"], pose, rotation=at_defaults(R))
    return Pose(R, f["xyz"].numbers(3, names) if "xyz" in f else IDENTITY.p)


def _take(fields: Mapping[str, Node], **readers: Callable[[Node], Any]) -> dict[str, Any]:
    """The values of the keys that are present.   readers: key -> reader of its value."""
    return {key: read(fields[key]) for key, read in readers.items() if key in fields}


def _made(node: Node, make: Callable[..., Any], *args: Any, **given: Any) -> Any:
    """The result of `make`, whose errors get the place in the file."""
    try:
        return make(*args, **given)
    except ModelError as error:
        raise node.error(str(error)) from None


# -- forces and contacts, one row per kind ---------------------------------------------------------------------------------


def read_force(name: str, node: Node, names: Names) -> Force | Compound:
    """Read a force: `rope: {kind: spring, body_a: ..., stiffness: k}`, with the arguments of the function that makes it."""
    kind = node.fields([*node.map()], required=("kind",))["kind"].choice(FORCES)
    return FORCES[kind].read(name, node, names)


class FileKind(NamedTuple):
    """A kind of force or constraint in a file: the function that makes it and the forms of its arguments.

    required: keys of the bodies or the joint, in order.   optional: key -> form of its value; with "!" it is required too.
    record: class of frozen data whose fields are these arguments, by which it is written again; None if there is none.
    """

    make: Callable[..., Any]
    required: tuple[str, ...]
    optional: dict[str, str]
    record: type | None = None

    def read(self, name: str, node: Node, names: Names) -> Any:
        """What the function makes of the entry. Raises ModelError: a key that is missing or unknown, a value of wrong form."""
        needed = [key for key, form in self.optional.items() if form.endswith("!")]
        f = node.fields(("kind", *self.required, *self.optional), required=(*self.required, *needed))
        forms = {key: _FORMS[form.rstrip("!")] for key, form in self.optional.items()}
        given = _take(f, **{key: lambda n, form=form: form(n, names) for key, form in forms.items()})
        return _made(node, self.make, name, *[f[key].text() for key in self.required], **given)


def _kind(make: Callable[..., Any], record: type | None = None, /, *required: str, **optional: str) -> FileKind:
    """A row of the tables below."""
    return FileKind(make, required, optional, record)


def _pseudo(node: Node, names: Names) -> ca.SX:
    """Read a pseudo-matrix: `{weight: k, centre: [0, 0, l], moments: [1, 1, 2]}`, `{diagonal: [six numbers]}`, or its rows."""
    if isinstance(node.value, list):
        return ca.vertcat(*[ca.horzcat(*[x.number(names) for x in row.items(len(node.value))]) for row in node.value])
    if "diagonal" in node.map():
        return ca.densify(ca.diag(ca.vertcat(*[x.number(names) for x in node.fields(("diagonal",))["diagonal"].items(6)])))
    f = node.fields(("weight", "centre", "moments"), required=("weight",))
    given = _take(f, weight=lambda n: n.number(names), centre=lambda n: n.numbers(3, names),
                  moments=lambda n: _moments(n, names))  # fmt: skip
    return _made(node, pseudo_matrix, **given)


def _moments(node: Node, names: Names) -> Any:
    return node.number(names) if isinstance(node.value, str) else [x.number(names) for x in node.items()]


def _written(texts: list[str], names: Names) -> Written:
    used = [word for word in words(texts) if word in names]
    return Written(tuple(texts), tuple(used), ca.vertcat(ca.SX(0, 1), *[names[word] for word in used]))


def _wrench(node: Node, names: Names) -> Any:
    """The value of a wrench: six numbers, a law, or a function if the expressions contain more than parameters."""
    if isinstance(node.value, dict):
        return read_law(node, names, read_pose)
    try:
        return node.numbers(6, names)
    except ModelError:
        return _written([n.text() for n in node.items(6)], names)


def _column(node: Node, names: Names) -> Any:
    """A function given by one or several expressions, or by a law."""
    if isinstance(node.value, dict):
        return read_law(node, names, read_pose)
    return _written([node.text()] if isinstance(node.value, str) else [n.text() for n in node.items()], names)


def _path(node: Node, names: Names) -> Path:
    """A path, as a law of its strands and drums."""
    return read_law(node, names, read_pose, (Path,))


def _surface(node: Node, names: Names) -> Any:
    """A surface in contact: a shape, or a point or a plane by its pose."""
    if isinstance(node.value, list):
        return node.numbers(3, names)
    return _shape(node, names, NOWHERE) if "kind" in node.map() else read_pose(node, names)


def _plane(node: Node, names: Names) -> Plane:
    """Read a plane: `{on: ramp, through: [0, 0, h], normal: [0, 1, 1], rate: 0.5}`."""
    f = node.fields(("on", "through", "normal", "rate"))
    given = _take(f, on=lambda n: n.text(), through=lambda n: n.numbers(3, names), normal=lambda n: n.constants(3),
                  rate=lambda n: n.number(names))  # fmt: skip
    return _made(node, plane, **given)


_FORMS: dict[str, Callable[[Node, Names], Any]] = {
    "number": lambda n, names: n.number(names),
    "point": lambda n, names: n.numbers(3, names),
    "wrench": _wrench,
    "function": _column,
    "wind": lambda n, names: read_law(n, names, read_pose) if isinstance(n.value, dict) else n.numbers(3, names),
    "direction": lambda n, _: n.constants(3),
    "axes": lambda n, _: n.choice(("LOCAL", "WORLD")),
    "hand": lambda n, _: n.choice(("right", "left")),
    "text": lambda n, _: n.text(),
    "component": lambda n, _: whole(n, 6),
    "pair": lambda n, names: tuple(x.number(names) for x in n.items(2)),
    "surface": _surface,
    "plane": _plane,
    "path": _path,
    "truth": lambda n, _: n.truth(),
    "pose": read_pose,
    "pseudo": _pseudo,
}
"""Form of a value -> its reader."""

_BY_TEXT: dict[str, tuple[Callable[..., Any], str]] = {"holonomic": (holonomic, "phi"), "nonholonomic": (nonholonomic, "eta")}
"""Kind of constraint given by expressions -> the function that makes it, and the key of the expressions."""

_DRY = dict.fromkeys(("static", "stribeck", "viscous", "smooth"), "number")
_BLADE = {"thrust": "number!", "torque": "number", "handed": "hand", "axis": "direction", "point": "point"}

_PRESS = {"stiffness": "number!", "exponent": "number", "damping": "number"}
_SURFACE = _PRESS | {"stiffness": "number", "impact": "number"}

_LOADED = {"static": "number", "stribeck": "number", "smooth": "number", "settle": "number"}

FORCES: dict[str, FileKind] = {
    "spring": _kind(spring, None, "body_a", "body_b", point_a="point", point_b="point", stiffness="number", rest="number",
                    damping="number"),
    "path-spring": _kind(path_spring, None, path="path!", stiffness="number", rest="number", damping="number",
                         pulls_only="truth"),
    "wrench": _kind(wrench, None, "body", value="wrench", point="point", axes="axes", by="text"),
    "potential": _kind(potential, None, V="function!"),
    "dissipation": _kind(dissipation, None, R="function!"),
    "kinetic-energy": _kind(kinetic_energy, None, T="function!"),
    "generalised-force": _kind(generalised_force, None, f="function!", joint="text"),
    "pose-spring": _kind(pose_spring, None, "body_a", "body_b", stiffness="pseudo!", rest="pose"),
    "pose-damper": _kind(pose_damper, None, "body_a", "body_b", damping="pseudo!"),
    "bushing": _kind(bushing, Bushing, "body_a", "body_b", stiffness="pseudo!", damping="pseudo!", rest="pose"),
    "bush": _kind(bush, None, "body_a", "body_b", axis="direction!", point="point", radial="number!", axial="number!",
                  torsional="number!", cardanic="number!", damping="number", rest="pose"),
    "anti-roll-bar": _kind(anti_roll_bar, AntiRollBar, "left", "right", stiffness="number!", ratio="number", damping="number"),
    "pose-inertia": _kind(pose_inertia, None, "body_a", "body_b", inertia="pseudo!"),
    "joint-friction": _kind(joint_friction, None, "joint", sliding="number!", **_DRY),
    "guide-friction": _kind(guide_friction, None, "joint", coefficient="number!", length="number", **_LOADED),
    "pin-friction": _kind(pin_friction, None, "joint", coefficient="number!", radius="number!", collar="number", **_LOADED),
    "screw-friction": _kind(screw_friction, None, "joint", coefficient="number!", radius="number!", **_LOADED),
    "gear-loss": _kind(gear_loss, None, "joint", efficiency="number!", backward="number", smooth="number"),
    "contact-friction": _kind(contact_friction, None, "body", "on", normal="direction!", load="number!", coefficient="number!",
                              point="point", **_DRY),
    "contact": _kind(contact, Contact, "body_a", body_b="text", shape_a="surface", shape_b="surface", **_SURFACE,
                     friction="number", static="number", stribeck="number", creep="number"),
    "stop": _kind(stop, Stop, "joint", low="number", high="number", component="component", **_SURFACE),
    "rebound": _kind(rebound, Rebound, gap="function!", impact="number!"),
    "gear": _kind(gear, Gear, "driven", "by", ratio="number!", backlash="number", **_PRESS),
    "cable": _kind(cable, Cable, "body_a", "body_b", length="number!", point_a="point", point_b="point", **_PRESS),
    "cylinder": _kind(cylinder, Cylinder, "body_a", "body_b", bore="number!", stroke="pair!", stiffness="number!", rod="number",
                      point_a="point", point_b="point", damping="number", friction="number", viscous="number", smooth="number"),
    "belt": _kind(belt, Belt, "driven", "by", radii="pair!", stiffness="number!", damping="number"),
    "drag": _kind(drag, None, "body", area="number!", coefficient="number", density="number", point="point", wind="wind"),
    "propeller": _kind(propeller, None, "body", speed="number!", **_BLADE),
    "rotor": _kind(propeller, None, "body", "joint", **_BLADE),
}  # fmt: skip
"""Kind of force -> how it is made. The speed of a propeller is a number, that of a rotor the rate of a joint."""

_DISK = {"radius": "number!", "axis": "direction", "centre": "point", "plane": "plane"}

ROLLING: dict[str, FileKind] = {
    "rolling-disk": _kind(disk, Disk, "body", **_DISK),
    "rolling-wheel": _kind(wheel, None, "body", **_DISK),
    "rolling-sphere": _kind(sphere, Ball, "body", radius="number!", centre="point", plane="plane"),
    "rolling-ellipsoid": _kind(ellipsoid, Ellipsoid, "body", semi_axes="point!", centre="point", plane="plane"),
    "knife-edge": _kind(knife_edge, Blade, "body", along="direction!", point="point", plane="plane"),
}
"""Kind of contact with a plane -> how it is made. A wheel has the record of a disk."""
