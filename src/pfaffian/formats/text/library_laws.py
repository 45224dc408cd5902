"""The library's ready-made functions, with their numbers, as entries of a YAML file: `V: {law: spring-of-length, along: ...}`.

A law is frozen data, so its fields describe it completely. LAWS maps the names in files to classes, and the type hints of a
class tell which values its fields accept. A file can choose among these and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from dataclasses import fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import casadi as ca

from pfaffian.errors import ModelError, brief, nearest
from pfaffian.formats.text import coupling
from pfaffian.formats.text.formula import formula, formulas, rows
from pfaffian.formats.text.strict_number import printable
from pfaffian.formats.text.yaml_tree import Node
from pfaffian.model.path import Drum, Guide, Path, PathPart, Strand, Through
from pfaffian.model.path_force import FixedLength
from pfaffian.model.pose import IDENTITY, Pose
from pfaffian.model.slider_crank import SliderCrank
from pfaffian.parts.drives import Gust
from pfaffian.parts.multicopter import LinearDrag
from pfaffian.parts.road import Road, RoadTyre
from pfaffian.parts.tyre import TyreForce
from pfaffian.parts.wheels import Disk, Plane
from pfaffian.tables import Registry

YamlTree = dict[str, Any]
Names = Mapping[str, ca.SX]


def _check(name: str, law: Any) -> None:
    """Raise ModelError if the row of a user is no class of laws."""
    if not (isinstance(law, type) and is_dataclass(law) and "__call__" in vars(law)):
        raise ModelError(f"force law {name!r}: a frozen dataclass with __call__(self, k) is needed, got {brief(law)}")


LAWS: Registry[Any] = Registry("force law", {
    "gust": Gust, "linear-drag": LinearDrag, "tyre": TyreForce, "disk": Disk, "plane": Plane,
    "road-tyre": RoadTyre, "road": Road,
    "coupling": coupling.LengthCoupling, "piecewise": coupling.PiecewiseCoupling,
    "prescribed": coupling.PrescribedMotion,
    "sum": coupling.JointSum, "path": Path, "strand": Strand,
    "through": Through, "guide": Guide, "drum": Drum, "slider-crank": SliderCrank, "fixed-length": FixedLength,
    "lifted": coupling.GravityCompensation, "spring-of-length": coupling.LengthSpring,
    "damper-of-length": coupling.LengthDamper, "bias-of-length": coupling.ActuatorBias,
    "damping-of-actuator": coupling.ActuatorDamping,
    "inertia-of-length": coupling.LengthInertia, "spring-of-turn": coupling.TurnSpring,
    "armature-of-base": coupling.FreeArmature, "lifted-by-motors": coupling.MotorGravityCompensation,
}, "give your own another name", _check)  # fmt: skip
"""Name in a file -> class of a law or of a part of a law. To add one, a frozen dataclass whose fields are texts and numbers and
which is a function of the kinematics: `pf.formats.LAWS["mine"] = Mine`. Files may then say `V: {law: mine, ...}`.

Example:
    >>> from dataclasses import dataclass
    >>> import pfaffian as pf
    >>> @dataclass(frozen=True)
    ... class Quartic:
    ...     joint: str
    ...     stiffness: float
    ...     def __call__(self, k):
    ...         return self.stiffness * k.joint(self.joint) ** 4 / 4
    >>> pf.formats.LAWS["quartic"] = Quartic
    >>> text = "{bodies: {cart: {mass: 2}}, joints: {x: {kind: prismatic, parent: world, child: cart, axis: [1, 0, 0]}}, "
    >>> text += "forces: {spring: {kind: potential, V: {law: quartic, joint: x, stiffness: 80}}}}"
    >>> pf.forward_dynamics(pf.formats.parse_yaml(text)[0], [0.5]).v_dot  # -80 * 0.5^3 / 2
    array([-5.])
    >>> del pf.formats.LAWS["quartic"]
"""

LENGTHS = (coupling.JointSum, Path)
"""Classes that a field of type Length accepts."""

ANY_OF: dict[Any, tuple[type, ...]] = {coupling.Length: LENGTHS, PathPart: (Strand, SliderCrank)}
"""Type of a field -> the classes that it accepts, where they are not the type itself."""


def _name_of(law: type) -> str | None:
    """The name in files of a class of laws; None if it has none."""
    return next((name for name, known in LAWS.items() if known is law), None)


# -- writing ----------------------------------------------------------------------------------------------------------


def law_tree(law: Any, what: str) -> YamlTree:
    """The YAML entry of a law.   what: names the law in errors. Raises ModelError: the law is a function in Python."""
    if (name := _name_of(type(law))) is None:
        raise ModelError(f"{what} is a function in Python, which a file cannot contain; use a ready-made law or an expression")
    given = {f.name: getattr(law, f.name) for f in fields(law)}
    return {"law": name} | {k: _tree(x, f"{what}: {k}") for k, x in given.items() if x is not None}


def _tree(x: Any, what: str) -> Any:
    """The value of a field as a tree of texts, numbers, lists and maps."""
    if isinstance(x, ca.SX):
        return formula(x, what) if x.is_scalar() else formulas(x, what) if x.is_column() else rows(x, what)
    if isinstance(x, Pose):
        return placed("pose", x, what)
    if isinstance(x, tuple):
        return [_tree(item, what) for item in x]
    return x if isinstance(x, (str, int, float)) else law_tree(x, what)


def placed(key: str, X: Pose, what: str, dense: bool = False) -> YamlTree:
    """The entry `key: pose`, with the rotation as a matrix to the last digit; empty for an identity that can be left out.

    dense: whether the reader makes a full matrix of a missing rotation, as it does for frames with an axis.
    """
    tree = YamlTree()
    if not X.p.is_zero():
        tree["xyz"] = formulas(X.p, what)
    if not (X.R - IDENTITY.R).is_zero() or (X.R.nnz() == 9) != dense:
        tree["rotation"] = rows(X.R, what)
    return {key: tree} if tree else {}


# -- reading ----------------------------------------------------------------------------------------------------------


def read_law(node: Node, names: Names, pose: Callable[[Node, Names], Pose], among: tuple[type, ...] | None = None) -> Any:
    """The law of an entry.   pose: reads a pose.   among: the classes allowed here; None for all that can be called.

    Raises ModelError: an unknown law, or one that is not allowed here; a key that is missing, or a value of the wrong form.
    """
    called = node.fields([*node.map()], required=("law",))["law"]
    may = [n for n, law in LAWS.items() if (law in among if among is not None else "__call__" in vars(law))]
    law = LAWS[called.choice(may)]
    hints = _hints(law)
    needed = [n for n, hint in hints.items() if NoneType not in get_args(hint)]
    f = node.fields(("law", *hints), required=("law", *needed))
    return law(**{n: _field(hint, f[n], names, pose) if n in f else None for n, hint in hints.items()})


_JOINTS, _BODIES = ("joint", "joints", "driven", "by"), ("body", "bodies", "body_a", "body_b", "on")
"""Fields of laws with names of joints, and those with names of bodies."""


def check_law(law: Any, bodies: Set[str], joints: Set[str]) -> None:
    """Raise ModelError if a law names a body or joint that is not among these."""
    if _name_of(type(law)) is None:
        return
    for f in fields(law):
        value = getattr(law, f.name)
        for what, named, known in (("joint", _JOINTS, joints), ("body", _BODIES, bodies)):
            for name in (value if isinstance(value, tuple) else (value,)) if f.name in named else ():
                if name not in known:
                    raise ModelError(f"there is no {what} {printable(name)}; {nearest(name, [*known])}")
        check_law(value, bodies, joints)


@cache
def _hints(law: type) -> dict[str, Any]:
    """Field of a law -> its type."""
    found = get_type_hints(law)
    return {f.name: found[f.name] for f in fields(law)}


def _field(hint: Any, node: Node, names: Names, pose: Callable[[Node, Names], Pose]) -> Any:
    """The value of a field, read by its type hint."""
    may = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    laws = tuple(x for kind in may for x in ANY_OF.get(kind, (kind,)) if _name_of(x))
    if isinstance(node.value, dict):
        if Pose in may:
            f = node.fields(("pose",))
            return pose(f["pose"], names) if "pose" in f else IDENTITY
        if laws:
            return read_law(node, names, pose, laws)
    elif get_origin(hint) is tuple:
        inner = get_args(hint)
        items = node.items() if Ellipsis in inner else node.items(len(inner))
        return tuple(_field(inner[0], item, names, pose) for item in items)
    elif ca.SX in may and (str not in may or isinstance(node.value, list)):
        return _numbers(node, names)
    elif str in may:
        return node.text()
    elif hint is bool:
        return node.truth()
    elif hint is int:
        return whole(node)
    elif hint is float:
        return node.constant()
    known = ", ".join(str(_name_of(x)) for x in laws)
    raise node.error(f"{known or 'another form'} is needed here; write it as `pf.write` does")


def _numbers(node: Node, names: Names) -> ca.SX:
    """A number, a column or a matrix by its rows."""
    if isinstance(node.value, str):
        return node.number(names)
    columns = {len(n.items()) if isinstance(n.value, list) else 0 for n in node.items()}
    if len(columns) != 1:
        raise node.error("a number, a list of numbers, or rows of equal length are needed")
    if columns == {0}:
        return node.numbers(len(node.items()), names)
    return ca.vertcat(*[n.numbers(len(n.items()), names).T for n in node.items()])


def whole(node: Node, end: int = 1_000_000) -> int:
    """A whole number from 0 to `end` - 1."""
    value = node.constant()
    if value != int(value) or not 0 <= value < end:
        raise node.error(f"a whole number from 0 to {end - 1} is needed")
    return int(value)
