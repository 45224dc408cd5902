"""Files next to a URDF file that describe where its loops close ("sidecars").

closed_loop, type, name_mot, joint_name, joint_type     example-parallel-robots: pairs of frames that coincide
closures, independent, dependent                        scikit-robot: hinges given by a point and an axis
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import casadi as ca

from pfaffian.errors import ModelError
from pfaffian.formats.text.file import read_text
from pfaffian.formats.text.place import allowed_path
from pfaffian.formats.text.strict_number import printable
from pfaffian.formats.text.yaml_tree import Node, parse_tree
from pfaffian.formats.urdf.loop_record import Loop, hinge_at, loop_kind, zero_places
from pfaffian.formats.urdf.urdf_part import UrdfJoint
from pfaffian.model.pose import Pose

NAMES = ("robot.yaml", "loop_closures.yaml")
"""Usual names of the two kinds of files."""

WAY_OUT = "pass loops=path if it describes the loops of this robot, or loops=False"
"""End of the message about a file of loops in another folder."""

_PARALLEL = ("closed_loop", "type", "name_mot", "joint_name", "joint_type")
_HINGES = ("closures", "independent", "dependent")
_AXES = {"X": (1.0, 0.0, 0.0), "Y": (0.0, 1.0, 0.0), "Z": (0.0, 0.0, 1.0)}


@dataclass(frozen=True)
class Sidecar:
    """A file of loops.   source: its name.   pairs: (frame, frame, kind, place in the file) of each loop by two frames.
    hinges: entries of loops by a point and an axis.   motors: names of joints, None if the file gives none.   kinds: joint ->
    type that replaces its type in the URDF file.   lost: keys that are left out."""

    source: str = ""
    pairs: tuple[tuple[str, str, str, Node], ...] = ()
    hinges: tuple[Node, ...] = ()
    motors: tuple[str, ...] | None = None
    kinds: dict[str, Node] = field(default_factory=dict)
    lost: tuple[str, ...] = ()


def find_sidecar(path: Path) -> Path | None:
    """The file of loops in the folder of a URDF file; None if there is none that has the right keys.

    Raises ModelError: a symbolic link of its name leads out of the folder, or to no file.
    """
    for name in NAMES:
        beside, where = path.with_name(name), printable(path.name)[1:-1]
        if beside.is_file() or beside.is_symlink():
            place = allowed_path(path.parent, name, None, where, WAY_OUT)
            if not place.is_file():
                raise ModelError(f"{where}: {name!r} is a link to what is no file; {WAY_OUT}")
            text = read_text(place)
            if any(line.split(":")[0].strip() in ("closed_loop", "closures") for line in text.splitlines()):
                return place
    return None


def read_sidecar(path: Path) -> Sidecar:
    """Read a file of loops of either kind. Raises ModelError: the file has other keys, or a wrong value."""
    return parse_sidecar(read_text(path), path.name)


def parse_sidecar(text: str, source: str) -> Sidecar:
    """Read the text of a file of loops of either kind. Raises ModelError: the text has other keys, or a wrong value."""
    root = parse_tree(text, source)
    f = root.map()
    if "closed_loop" in f:
        lost = tuple(k for k in f if k not in _PARALLEL)
        motors = tuple(n.text() for n in f["name_mot"].items()) if "name_mot" in f else None
        return Sidecar(source, _pairs(f["closed_loop"], f.get("type")), (), motors, _kinds(root), lost)
    if "closures" in f:
        lost = tuple(k for k in f if k not in _HINGES)
        motors = tuple(n.text() for n in f["independent"].items()) if "independent" in f else None
        return Sidecar(source, (), tuple(f["closures"].items()), motors, {}, lost)
    raise root.error("a file of loops needs the key closed_loop (example-parallel-robots) or closures (scikit-robot)")


def _pairs(loops: Node, types: Node | None) -> tuple[tuple[str, str, str, Node], ...]:
    """(frame, frame, kind, place in the file) of each pair of frames that coincide.   types: kinds of the loops."""
    pairs = loops.items()
    words = types.items(len(pairs)) if types is not None else [None] * len(pairs)
    found = []
    for pair, word in zip(pairs, words, strict=True):
        a, b = (n.text() for n in pair.items(2))
        kind = "weld" if word is None else loop_kind(word.text(), word.where)
        found.append((a, b, kind, pair))
    return tuple(found)


def _kinds(root: Node) -> dict[str, Node]:
    """Name of each joint in joint_name -> its entry in joint_type."""
    f = root.map()
    if ("joint_name" in f) != ("joint_type" in f):
        raise root.error("joint_name and joint_type are needed together; one of them is missing")
    if "joint_name" not in f:
        return {}
    names = [n.text() for n in f["joint_name"].items()]
    return dict(zip(names, f["joint_type"].items(len(names)), strict=True))


def retyped(joints: dict[str, UrdfJoint], side: Sidecar) -> dict[str, UrdfJoint]:
    """The joints, with the kinds that the file of loops gives. Its joints that the robot lacks are ignored."""
    made = dict(joints)
    for name, node in side.kinds.items():
        given = _typed(node.text().upper(), node)
        if name in made:
            made[name] = replace(made[name], mimic=None, **given)
    return made


def _typed(word: str, node: Node) -> dict[str, Any]:
    """The fields of a UrdfJoint for a joint_type."""
    if word in ("FIXED", "SPHERICAL"):
        return {"kind": word.lower()}
    axes = word.removeprefix("UJOINT_")
    if word.startswith("UJOINT_") and len(axes) == 2 and set(axes) <= set(_AXES) and axes[0] != axes[1]:
        x, y = ca.DM(_AXES[axes[0]]), ca.DM(_AXES[axes[1]])
        return {"kind": "universal", "turn": Pose(ca.SX(ca.horzcat(x, y, ca.cross(x, y))), ca.SX.zeros(3, 1))}
    raise node.error(f"joint_type {printable(word)} is unknown; it must be FIXED, SPHERICAL or UJOINT_XY (with any two axes)")


def loops_of(side: Sidecar, order: list[UrdfJoint], links: Iterable[str], root: str) -> list[Loop]:
    """The loops of a file of loops. An end is the name of a joint, which means its child link, or of a link."""
    child, known = {j.name: j.child for j in order}, set(links)
    found = []
    for a, b, kind, node in side.pairs:
        ends = []
        for name in (a, b):
            if name not in child and name not in known:
                raise node.error(f"there is no joint or link {printable(name)}; correct the name")
            ends.append(child.get(name, name))
        found.append(Loop(f"{a} {b}", kind, (ends[0], ends[1]), node.where))
    zero = zero_places(order, root) if side.hinges else {}
    for i, node in enumerate(side.hinges):
        f = node.fields(("link_a", "link_b", "point", "axis", "type", "name"), required=("link_a", "link_b", "point", "axis"))
        kind = loop_kind(f["type"].text(), f["type"].where) if "type" in f else "revolute"
        name = f["name"].text() if "name" in f else f"closure {i + 1}"
        links = f["link_a"].text(), f["link_b"].text()
        found.append(hinge_at(name, links, f["point"].constants(3), f["axis"].constants(3), zero, kind, node.where))
    return found


def check_motors(side: Sidecar, joints: dict[str, UrdfJoint]) -> None:
    """Raise ModelError if the file of loops puts a motor on a joint that the robot does not have."""
    for name in side.motors or ():
        if name not in joints:
            raise ModelError(f"{side.source}: name_mot: there is no joint {printable(name)}; correct the name")
