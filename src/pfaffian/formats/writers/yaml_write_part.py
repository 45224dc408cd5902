"""Writing shapes, constraints and forces as entries of a YAML file, with the arguments of the functions that make them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from inspect import signature
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np

from pfaffian.errors import ModelError
from pfaffian.formats.text.formula import formula, formulas, rows
from pfaffian.formats.text.library_laws import YamlTree, law_tree, placed
from pfaffian.formats.text.written import Written
from pfaffian.formats.yaml.yaml_kinds import FORCES, ROLLING
from pfaffian.model.body import WORLD
from pfaffian.model.compound import Compound, flat
from pfaffian.model.constraint import Closure, Constraint, Holonomic, Nonholonomic, Servo
from pfaffian.model.force import Dissipation, Force, GeneralisedForce, KineticEnergy, Potential, Spring, Wrench
from pfaffian.model.joint import UNLIMITED, Joint, Mimic
from pfaffian.model.load_loss import GEAR, GUIDE, PIN, LoadLoss
from pfaffian.model.number import at_defaults
from pfaffian.model.path import Path as LinePath
from pfaffian.model.path_force import PathSpring
from pfaffian.model.pose import Pose
from pfaffian.model.shape import Shape
from pfaffian.parts.elastic import PoseDamper, PoseInertia, PoseSpring
from pfaffian.parts.fluid import Drag, Propeller
from pfaffian.parts.friction import ContactFriction, JointFriction, Sliding
from pfaffian.parts.wheels import Blade, Disk, Height, Plane, Slip


def some(what: str, **vectors: ca.SX) -> YamlTree:
    """The entries of those vectors that are not zero.   what: their owner, for errors."""
    return {key: formulas(x, what) for key, x in vectors.items() if not x.is_zero()}


def one(what: str, **numbers: ca.SX) -> YamlTree:
    """The entries of those numbers that are not zero.   what: their owner, for errors."""
    return {key: formula(x, what) for key, x in numbers.items() if not x.is_zero()}


def shape_of(s: Shape, what: str, folder: Path = Path()) -> YamlTree:
    """The entry of a shape.   what: its owner, for errors.   folder: of the file, for the names of meshes."""
    tree: YamlTree = {"kind": s.kind}
    if s.kind == "mesh":
        tree |= {"scale": formulas(s.size, what), **mesh_name(s, folder)}
    elif s.kind == "box":
        tree["size"] = formulas(s.size, what)
    else:
        tree |= dict(zip(("radius", "length"), formulas(s.size, what), strict=False))
    if s.mass is not None:
        tree["mass"] = formula(s.mass, what)
    if s.colour is not None:
        tree["colour"] = [float(c) for c in s.colour]
    return tree | placed("placement", s.placement, what) | ({"role": s.role} if s.role != "visual" else {})


def mesh_name(s: Shape, folder: Path) -> YamlTree:
    """The entries that name a mesh: its label, and its path, if known, relative to the folder or else absolute."""
    if s.file is None:
        return {"label": s.label}
    path = Path(s.file)
    inside = path.is_relative_to(folder)
    return {"file": path.relative_to(folder).as_posix() if inside else str(path), "label": s.label}


def function_of(f: Callable[[Any], Any], what: str) -> list[str] | YamlTree:
    """The expressions of a function that was read from a file, or the entry of a ready-made law. Raises ModelError: another
    function in Python."""
    return list(f.texts) if isinstance(f, Written) else law_tree(f, what)


def entries_of(items: Sequence[Any], entry: Callable[[Any], YamlTree], what: str) -> YamlTree:
    """Name -> entry of each force or constraint. A compound of a known record is one entry; of others, each part is.

    entry: of a single one.   what: noun.
    """
    found = YamlTree()
    for item in items:
        if isinstance(item, Compound) and type(item.of) in KINDS:
            found[item.name] = arguments_of(KINDS[type(item.of)], item.of, f"{what} {item.name!r}")
        else:
            found |= {part.name: entry(part) for part in flat([item])}
    return found


KINDS = {kind.record: name for name, kind in (FORCES | ROLLING).items() if kind.record is not None}
"""Class of a record -> the kind of its entry."""


def arguments_of(kind: str, of: Any, what: str) -> YamlTree:
    """The entry of a record: its fields, without those that equal the defaults of the function that makes it."""
    row = (FORCES | ROLLING)[kind]
    defaults, tree = signature(row.make).parameters, YamlTree({"kind": kind})
    for key in (*row.required, *row.optional):
        value, default = getattr(of, key), defaults[key].default
        if value is not None and (written := _argument(value, what)) != _default(default):
            tree[key] = written
    return tree


def _argument(x: Any, what: str) -> Any:
    """The value of an argument as a tree of texts, numbers, lists and maps."""
    if isinstance(x, ca.SX):
        return formula(x, what) if x.is_scalar() else formulas(x, what) if x.is_column() else rows(x, what)
    if isinstance(x, Shape):
        is_point = x.kind == "sphere" and x.size.is_zero()
        return formulas(x.placement.p, what) if is_point else shape_of(x, what)
    if isinstance(x, Pose):
        return placed("pose", x, what).get("pose", {})
    if isinstance(x, Plane):
        return _plane(x, what)
    if isinstance(x, LinePath):
        return law_tree(x, what)
    if callable(x):
        return function_of(x, what)
    return [_argument(item, what) for item in x] if isinstance(x, tuple) else x


def _default(x: Any) -> Any:
    """The default of an argument in the form of `_argument`."""
    if isinstance(x, (Pose, Plane)):
        return {}
    return [float(item) for item in x] if isinstance(x, tuple) else x


def carried(j: Joint, what: str) -> YamlTree:
    """The keys of the spring, damper, rotor, limits and effort of a joint, also of one that closes a loop."""
    tree = YamlTree()
    for key, x in (("stiffness", j.stiffness), ("damping", j.damping)):
        if not x.is_zero():
            alone = ca.diag(ca.diag(x))
            tree[key] = formulas(ca.diag(x), what) if (x - alone).is_zero() else rows(x, f"{what}: {key}")
    if not j.armature.is_zero():
        tree["armature"] = formulas(j.armature, f"{what}: armature")
    free = [0.0] * (j.kind.nq - j.kind.quaternion) + [1.0] * j.kind.quaternion
    if formulas(j.rest, what) != free:
        tree["rest"] = formulas(j.rest, f"{what}: rest")
    if any(pair != UNLIMITED for pair in j.limits):
        tree["limits"] = [range_of(pair) for pair in j.limits] if len(j.limits) > 1 else range_of(j.limits[0])
    if np.isfinite(j.effort):
        tree["effort"] = j.effort
    return tree


def following(law: Mimic | None, what: str) -> YamlTree:
    """The key of the law that a joint or closure follows; none if there is none."""
    if law is None:
        return {}
    tree: YamlTree = {"joints": dict(zip(law.joints, formulas(law.ratios, f"{what}: mimic"), strict=True))}
    return {"mimic": tree | ({} if law.offset.is_zero() else {"offset": formula(law.offset, f"{what}: mimic")})}


def range_of(pair: Iterable[float]) -> list[float | str]:
    """(low, high) as an entry, with "-inf" or "inf" for no limit."""
    return [x if np.isfinite(x) else "inf" if x > 0 else "-inf" for x in map(float, pair)]


def _closure(c: Closure, what: str) -> YamlTree:
    """The entry of a closure, whose placements contain the rotation of its axis onto z."""
    tree: YamlTree = {"kind": c.kind, "body_a": c.body_a, "body_b": c.body_b}
    turned = c.placement_a.R.nnz() != 3 or c.placement_b.R.nnz() != 3
    if c.kind == "spherical" and not turned and not c.carries:
        points = {"point_a": formulas(c.placement_a.p, what), "point_b": formulas(c.placement_b.p, what)}
        return tree | {"kind": "coincide"} | points
    tree |= placed("placement_a", c.placement_a, what, True) | placed("placement_b", c.placement_b, what, True)
    tree |= {} if c.axes is None else {"axis_b": [0.0, 0.0, 1.0], "axes": rows(c.axes.T, what)}
    tree |= {c.holds.number: formula(c.number, what)} if c.holds.number else {}
    tree |= {} if c.joint is None else carried(c.joint, what) | following(c.mimic, what)
    return tree | {key: formulas(x, what) for key, x in (("friction", c.friction), ("near", c.near)) if x is not None}


def constraint_of(c: Constraint) -> YamlTree:
    """The entry of one constraint. Raises ModelError: a file cannot contain it."""
    what = f"constraint {c.name!r}"
    if isinstance(c, Servo):
        if callable(c.directions):
            raise ModelError(
                f"{what}: its directions are a function in Python, which a file cannot contain; name inputs instead"
            )
        servo = {"directions": list(c.directions), "stiffness": formula(c.stiffness, what), "damping": formula(c.damping, what)}
        return constraint_of(c.target) | {"servo": servo}
    if c.active is not None:
        raise ModelError(f"{what}: its condition is a function in Python, which a file cannot contain; leave it out")
    if isinstance(c, Closure):
        return _closure(c, what)
    if isinstance(c, Holonomic):
        if isinstance(c.phi, Height):
            raise ModelError(f"{what} is the height of a contact without its slip, which a file cannot contain; take both")
        return {"kind": "holonomic", "phi": function_of(c.phi, f"{what}: phi")}
    if isinstance(c, Nonholonomic):
        if isinstance(c.eta, Slip) and isinstance(c.eta.of, (Disk, Blade)):
            return arguments_of("rolling-wheel" if isinstance(c.eta.of, Disk) else "knife-edge", c.eta.of, what)
        return {"kind": "nonholonomic", "eta": function_of(c.eta, f"{what}: eta")}
    raise ModelError(f"{what}: its rows are a function in Python, which a file cannot contain; use another kind")


def _plane(p: Plane, what: str) -> YamlTree:
    """The keys of the plane of a contact that differ from the defaults."""
    if callable(p.rate):
        raise ModelError(f"{what}: its rate is a function in Python, which a file cannot contain; give a number")
    tree: YamlTree = {"on": p.on} if p.on != WORLD else {}
    normal = formulas(p.axes[:, 2], what)
    tree |= {"normal": normal} if normal != [0.0, 0.0, 1.0] else {}
    return tree | some(what, through=p.through) | one(what, rate=p.rate)


def force_of(f: Force) -> YamlTree:
    """The entry of a force."""
    what = f"force {f.name!r}"
    if isinstance(f, Spring):
        tree: YamlTree = {"kind": "spring", "body_a": f.body_a, "body_b": f.body_b}
        tree |= some(what, point_a=f.point_a, point_b=f.point_b)
        return tree | one(what, stiffness=f.stiffness, rest=f.rest, damping=f.damping)
    if isinstance(f, PathSpring):
        return arguments_of("path-spring", f, what)
    if isinstance(f, Wrench):
        return _wrench(f, what)
    if isinstance(f, LoadLoss):
        return _load_loss(f, what)
    law = f.function
    if isinstance(law, (PoseSpring, PoseDamper, PoseInertia)):
        word = {PoseSpring: "stiffness", PoseDamper: "damping", PoseInertia: "inertia"}[type(law)]
        tree = {"kind": f"pose-{_POSE[word]}", "body_a": law.body_a, "body_b": law.body_b, word: rows(getattr(law, word), what)}
        return tree | (placed("rest", law.rest, what) if isinstance(law, PoseSpring) else {})
    if isinstance(law, JointFriction):
        return {"kind": "joint-friction", "joint": law.joint} | _sliding(law.law, what)
    kind, key = _WRITTEN[type(f)]
    tree = {"kind": kind, key: function_of(law, f"{what}: {key}")}
    return tree | ({"joint": f.joint} if isinstance(f, GeneralisedForce) and f.joint is not None else {})


def _load_loss(f: LoadLoss, what: str) -> YamlTree:
    """The entry of friction that follows the load of a joint."""
    if f.carrier == GEAR:
        efficiency = {"efficiency": formula(f.sliding, what), "backward": formula(f.static, what)}
        return {"kind": "gear-loss", "joint": f.joint} | efficiency | one(what, smooth=f.smooth)
    tree: YamlTree = {"kind": f"{f.carrier}-friction", "joint": f.joint, "coefficient": formula(f.sliding, what)}
    if f.carrier == GUIDE:
        tree |= one(what, length=f.lengths[0])
    else:
        tree |= {"radius": formula(f.lengths[0], what)} | (one(what, collar=f.lengths[1]) if f.carrier == PIN else {})
    tree |= one(what, static=f.static, stribeck=f.stribeck, smooth=f.smooth)
    return tree | ({} if f.settle is None else {"settle": formula(f.settle, what)})


_POSE = {"stiffness": "spring", "damping": "damper", "inertia": "inertia"}
_WRITTEN = {
    Potential: ("potential", "V"), Dissipation: ("dissipation", "R"), KineticEnergy: ("kinetic-energy", "T"),
    GeneralisedForce: ("generalised-force", "f"),
}  # fmt: skip
"""Class of a force with a function -> its kind in a file, and the key of the function."""


def _wrench(f: Wrench, what: str) -> YamlTree:
    """The entry of a wrench, contact friction, drag or propeller."""
    law = f.value
    if isinstance(law, ContactFriction):
        tree: YamlTree = {"kind": "contact-friction", "body": law.body, "on": law.on, "normal": formulas(law.normal, what)}
        unit = Sliding(law.law.sliding, law.law.static, law.law.stribeck, law.law.viscous, law.law.smooth)
        numbers = _sliding(unit, what)
        return tree | {"load": 1.0, "coefficient": numbers.pop("sliding")} | numbers | some(what, point=law.point)
    if isinstance(law, Drag):
        tree = {"kind": "drag", "body": law.body, "area": formula(2 * law.factor, what), "density": 1.0}
        wind = {"wind": law_tree(law.wind, f"{what}: wind")} if callable(law.wind) else some(what, wind=law.wind)
        return tree | some(what, point=law.point) | wind
    if isinstance(law, Propeller):
        return _propeller(f, law, what)
    tree = {"kind": "wrench", "body": f.body, "axes": f.axes} | some(what, point=f.point)
    tree |= {"by": f.by} if f.by is not None else {}
    if law is None:
        return tree
    return tree | {"value": function_of(law, f"{what}: value") if callable(law) else formulas(law, what)}


def _propeller(f: Wrench, law: Propeller, what: str) -> YamlTree:
    """The entry of a propeller with a constant speed, or of a rotor that turns with a joint."""
    if callable(law.speed):
        raise ModelError(f"{what}: its speed is a function in Python, which a file cannot contain; give a number or a joint")
    turned = {"joint": law.speed} if isinstance(law.speed, str) else {"speed": formula(law.speed, what)}
    left = _negative(law.thrust)
    tree: YamlTree = {"kind": "rotor" if isinstance(law.speed, str) else "propeller", "body": f.body} | turned
    tree |= {"thrust": formula(-law.thrust if left else law.thrust, what), "axis": formulas(law.axis, what)}
    return tree | one(what, torque=law.torque) | some(what, point=f.point) | ({"handed": "left"} if left else {})


def _negative(x: ca.SX) -> bool:
    """Whether a number is below zero, with parameters at their defaults."""
    value = at_defaults(x)
    return value is not None and float(value.item()) < 0


def _sliding(law: Sliding, what: str) -> YamlTree:
    """The keys of a law of dry friction."""
    numbers = {key: formula(getattr(law, key), what) for key in ("sliding", "static", "stribeck", "viscous", "smooth")}
    return {key: x for key, x in numbers.items() if x != 0.0 or key in ("sliding", "static")}
