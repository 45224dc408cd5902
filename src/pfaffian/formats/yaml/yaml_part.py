"""Reading the entries of YAML files: parameters, bodies, joints, constraints, forces and actuators."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import casadi as ca
import numpy as np

from pfaffian.formats.text.expression import CONSTANTS, NAME
from pfaffian.formats.text.library_laws import Names, whole
from pfaffian.formats.text.mesh_file import NOWHERE, MeshFolders
from pfaffian.formats.text.strict_number import printable
from pfaffian.formats.text.yaml_tree import Node
from pfaffian.formats.yaml.yaml_kinds import FORCES, ROLLING
from pfaffian.formats.yaml.yaml_value import made_at, read_column, read_path, read_pose, read_shapes, take
from pfaffian.maths.closures import CLOSURES
from pfaffian.model.body import Body, body
from pfaffian.model.compound import Compound
from pfaffian.model.constraint import Closure, Constraint, closure, coincide, holonomic, nonholonomic, servo
from pfaffian.model.force import (
    Force,
    Motor,
    actuator,
    thruster,
    transmission,
)
from pfaffian.model.joint import KINDS, Joint, Mimic, joint, locked, mimic
from pfaffian.model.number import Parameter
from pfaffian.model.path_force import Winch, winch

_BY_TEXT: dict[str, tuple[Callable[..., Any], str]] = {"holonomic": (holonomic, "phi"), "nonholonomic": (nonholonomic, "eta")}
"""Kind of constraint given by expressions -> the function that makes it, and the key of the expressions."""


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
    given = take(f, mass=lambda n: n.number(names), com=lambda n: n.numbers(3, names),
                 inertia=lambda n: _inertia(n, names), shape=lambda n: read_shapes(n, names, where))  # fmt: skip
    return made_at(node, body, name, **given)


def _inertia(node: Node, names: Names) -> Any:
    if isinstance(node.value, str):
        return node.number(names)
    count = len(node.items())
    if count not in (3, 6):
        raise node.error("give one number, 3 principal moments, or 6 numbers xx yy zz xy xz yz")
    return node.numbers(count, names)


def read_joint(name: str, node: Node, names: Names) -> Joint:
    """Read a joint: `pivot: {kind: revolute, parent: world, child: crank, axis: [0, 1, 0]}`.

    `locked: 0.3` locks it at this coordinate; `mimic: {joints: {other: 2}, offset: 0.1}` makes it follow others.
    """
    arrays = ("stiffness", "rest", "damping", "armature", "pitch")
    keys = ("kind", "parent", "child", "axis", "placement", "child_placement", "limits", "effort", "distribution", "speeds",
            "mimic", "locked", *arrays)  # fmt: skip
    f = node.fields(keys, required=("kind", "parent", "child"))
    given = take(f, axis=lambda n: n.constants(3), placement=lambda n: read_pose(n, names),
                 child_placement=lambda n: read_pose(n, names), limits=_limits, effort=lambda n: n.constant(),
                 distribution=lambda n: _distribution(n, names), speeds=_speeds, mimic=lambda n: _mimic(n, names),
                 **{k: lambda n: n.array(names) for k in arrays})  # fmt: skip
    made = made_at(node, joint, name, f["kind"].choice(KINDS), f["parent"].text(), f["child"].text(), **given)
    return made_at(f["locked"], locked, made, f["locked"].array(names)) if "locked" in f else made


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
    return made_at(node, mimic, ratios, **take(f, offset=lambda n: n.number(names)))


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
        return made_at(node, make, name, read_column(f[key], names))
    ends = ("kind", "body_a", "body_b")
    if kind == "coincide":
        f = node.fields((*ends, "point_a", "point_b"), required=(*ends, "point_a", "point_b"))
        a, b = (f[k].numbers(3, names) for k in ("point_a", "point_b"))
        return made_at(node, coincide, name, f["body_a"].text(), a, f["body_b"].text(), b)
    arrays = ("stiffness", "rest", "damping", "armature", "friction", "near")
    keys = ("placement_a", "placement_b", "axis", "axis_b", "pitch", "length", "limits", "effort", "mimic", "axes",
            *arrays)  # fmt: skip
    f = node.fields((*ends, *keys), required=ends)
    given = take(f, placement_a=lambda n: read_pose(n, names), placement_b=lambda n: read_pose(n, names),
                 axis=lambda n: n.constants(3), axis_b=lambda n: n.constants(3), pitch=lambda n: n.number(names),
                 length=lambda n: n.number(names), limits=_limits, effort=lambda n: n.constant(),
                 mimic=lambda n: _mimic(n, names), **{k: lambda n: n.array(names) for k in arrays})  # fmt: skip
    made = made_at(node, closure, name, kind, f["body_a"].text(), f["body_b"].text(), **given)
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
    given = take(f, stiffness=lambda n: n.number(names), damping=lambda n: n.number(names))
    return made_at(node, servo, target, [n.text() for n in f["directions"].items()], **given)


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
        return made_at(node, transmission, name, gears, **take(f, limits=interval_of))
    if "body" in node.map():
        f = node.fields(("body", "axis", "point", "torque", "limits"))
        given = take(f, axis=lambda n: n.constants(3), point=lambda n: n.numbers(3, names),
                     torque=lambda n: n.number(names), limits=interval_of)  # fmt: skip
        return made_at(node, thruster, name, f["body"].text(), **given)
    f = node.fields(("joint", "component", "gear", "limits"), required=("joint",))
    given = take(f, component=lambda n: whole(n, 6), gear=lambda n: n.number(names), limits=interval_of)
    return made_at(node, actuator, name, f["joint"].text(), **given)


def _winch(name: str, node: Node, names: Names) -> Winch:
    """An actuator along a path."""
    f = node.fields(("path", "gear", "limits", "unit", "damps"))
    given = take(f, gear=lambda n: n.number(names), limits=interval_of)
    made = made_at(node, winch, name, read_path(f["path"], names), **given)
    kind = take(f, unit=lambda n: n.choice(("N", "N m", "N s/m", "N m s", "Pa")), damps=lambda n: n.truth())
    return replace(made, **kind)


def _gear(node: Node, names: Names) -> tuple[tuple[str, int], ca.SX]:
    f = node.fields(("joint", "component", "gear"), required=("joint", "gear"))
    return (f["joint"].text(), whole(f["component"], 6) if "component" in f else 0), f["gear"].number(names)


def read_force(name: str, node: Node, names: Names) -> Force | Compound:
    """Read a force: `rope: {kind: spring, body_a: ..., stiffness: k}`, with the arguments of the function that makes it."""
    kind = node.fields([*node.map()], required=("kind",))["kind"].choice(FORCES)
    return FORCES[kind].read(name, node, names)
