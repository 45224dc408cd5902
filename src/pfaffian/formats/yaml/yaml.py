"""Reading model files in YAML: a mechanism, or additions to a robot's URDF file, and a run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import casadi as ca

from pfaffian.errors import ModelError, brief
from pfaffian.formats.text.file import as_path, read_text, without_collection
from pfaffian.formats.text.library_laws import check_law
from pfaffian.formats.text.mesh_file import MeshFolders, places
from pfaffian.formats.text.place import allowed_path, installed
from pfaffian.formats.text.run_settings import RunSettings, read_run
from pfaffian.formats.text.strict_number import printable
from pfaffian.formats.text.sweep_settings import read_sweep
from pfaffian.formats.text.written import Written
from pfaffian.formats.text.yaml_tree import Node, parse_tree
from pfaffian.formats.urdf.urdf import read_urdf
from pfaffian.formats.yaml.yaml_part import (
    read_actuator,
    read_body,
    read_constraint,
    read_force,
    read_joint,
    read_parameter,
)
from pfaffian.model.body import WORLD
from pfaffian.model.compound import flat
from pfaffian.model.constraint import Servo
from pfaffian.model.mechanism import Mechanism, mechanism
from pfaffian.model.unphysical import unphysical

_PARTS: dict[str, tuple[str, Callable[..., Any]]] = {
    "bodies": ("body", read_body),
    "joints": ("joint", read_joint),
    "constraints": ("constraint", read_constraint),
    "forces": ("force", read_force),
    "actuators": ("actuator", read_actuator),
}
"""Section -> the word for one entry in error messages, and its reader."""


def read_yaml(path: str | Path, *, allow: Iterable[str | Path] = ()) -> tuple[Mechanism, RunSettings]:
    """Read the mechanism and the run of a YAML file, with the sections of `parse_yaml`: (Mechanism, RunSettings).

    Args:
        path: of the file.
        allow: folders, besides the file's own, in which URDF files and meshes that it names may lie; none by default.
    Raises ModelError: an element is wrong, with its line and the reason.

    Example:
        >>> import pfaffian as pf
        >>> from pfaffian.formats.bundled import example
        >>> pf.formats.read_yaml(example("bennett"))[0]  # a file of the zoo
        <Mechanism 'Bennett': 3 bodies, 3 joints (nq 3, nv 3), 1 constraint, ...>
    """
    place = as_path(path)
    return parse_yaml(read_text(place), folder=place.parent, allow=allow, source=place.name)


@without_collection
def parse_yaml(
    text: str, *, folder: str | Path | None = None, allow: Iterable[str | Path] = (), source: str = "YAML"
) -> tuple[Mechanism, RunSettings]:
    """Read the mechanism and the run of a YAML text: (Mechanism, RunSettings). Its sections are

        name, gravity, parameters, urdf, bodies, joints, constraints, forces, actuators, lenient, run, sweep

    Bodies, joints, constraints, forces and actuators are maps of name: {...} with the arguments of the functions that make
    them. Numbers may be expressions of the parameters. With `urdf`, the sections add to that robot. Potentials, dissipation
    functions, generalised forces and wrenches may also depend on coordinates, their rates and the time, for example
    `V: m*9.81*l*cos(pivot)`, `f: -d*pivot'`, `value: [sin(2*t), 0, 0, 0, 0, 0]`. A body's `shape` is a map with the arguments
    of `shape`, or a list of such maps.

    Args:
        text: of the file.
        folder: start of relative file names; with None, the default, they are errors.
        allow: more folders in which files may lie; none by default.
        source: name of the text in errors, "YAML" by default; without its suffix, also the default name of the mechanism.
    Raises ModelError: an element is wrong, with its line and the reason.

    Example:
        >>> import pfaffian as pf
        >>> m, settings = pf.formats.parse_yaml('''
        ... name: pendulum
        ... parameters: {l: 0.5}
        ... bodies:
        ...   rod: {mass: 2, com: [0, 0, -l], inertia: 0.1}
        ... joints:
        ...   hinge: {kind: revolute, parent: world, child: rod, axis: [0, 1, 0]}
        ... run: {q: {hinge: pi/2}}
        ... ''')
        >>> m
        <Mechanism 'pendulum': 1 body, 1 joint (nq 1, nv 1), no inputs, parameters l>
        >>> round(settings.q["hinge"], 4)
        1.5708
    """
    if not isinstance(text, str):
        raise ModelError(f"{printable(source)}: the text of a file is needed, got {brief(text)}; use pf.read(path) for a file")
    root = parse_tree(text, source)
    f = root.fields(("name", "gravity", "parameters", "urdf", *_PARTS, "lenient", "run", "sweep"))
    parameters = [read_parameter(name, node) for name, node in _entries(f, "parameters").items()]
    names = {p.name: p.symbol for p in parameters}
    start, allow = None if folder is None else Path(folder), tuple(allow)
    robot = _robot(f["urdf"], start, allow) if "urdf" in f else None
    parts: dict[str, Any] = {key: _section(f, key, names, places(start, allow)) for key in _PARTS}
    if robot:
        parts = {key: getattr(robot, key) + added for key, added in parts.items()}
    name = f["name"].text() if "name" in f else robot.name if robot else Path(source).stem
    if "gravity" in f:
        parts["gravity"] = f["gravity"].numbers(3, names)
    try:
        lenient = "lenient" in f and f["lenient"].truth()
        made = mechanism(name, **parts, parameters=parameters, lenient=lenient or (robot is not None and robot.lenient))
        if made.lenient and not lenient:
            _check_file_bodies(made, f)
        _check_written(made)
    except ModelError as error:
        raise _placed(error, f, parts, root) from None
    settings = read_run(f["run"], made) if "run" in f else RunSettings()
    return made, replace(settings, sweep=read_sweep(f["sweep"])) if "sweep" in f else settings


def _entries(f: Mapping[str, Node], key: str) -> dict[str, Node]:
    """Name -> entry of a section, which may be missing."""
    return f[key].map() if key in f else {}


def _section(f: Mapping[str, Node], key: str, names: Mapping[str, ca.SX], where: MeshFolders) -> tuple[Any, ...]:
    """All parts of a section.   names: of the parameters -> symbols.   where: places of meshes."""
    reader = partial(read_body, where=where) if key == "bodies" else _PARTS[key][1]
    return tuple(reader(name, node, names) for name, node in _entries(f, key).items())


def _robot(node: Node, folder: Path | None, allow: Iterable[str | Path]) -> Mechanism:
    """Read `urdf: arm.urdf` or `urdf: {file: ..., package: ..., base: free, mimic: follow, actuated: [...], strict: true}`."""
    if isinstance(node.value, str):
        f = {"file": node}
    else:
        f = node.fields(("file", "package", "base", "mimic", "actuated", "strict"), required=("file",))
    options: dict[str, Any] = {k: f[k].text() for k in ("base", "mimic") if k in f}
    if "actuated" in f:
        options["actuated"] = [n.text() for n in f["actuated"].items()]
    if "strict" in f:
        options["strict"] = f["strict"].truth()
    name = f["file"].text()
    if "package" in f:
        path = installed(f["package"].text(), name, node.where)
    elif folder is None:
        raise node.error("a relative file name needs a folder to start from; pass folder=...")
    else:
        path = allowed_path(folder, name, allow, node.where)
    try:
        return read_urdf(path, **options, meshes=allow)
    except ModelError as error:
        raise node.error(str(error)) from None


def _check_file_bodies(m: Mechanism, f: Mapping[str, Node]) -> None:
    """Raise ModelError for unphysical inertias of bodies in the YAML file; those of the URDF file are allowed."""
    for name, reason in unphysical(m).items():
        if name in _entries(f, "bodies"):
            raise ModelError(f"body {name!r}: {reason}; correct it")


def _check_written(m: Mechanism) -> None:
    """Check the names in expressions of forces and constraints, which is possible only with the whole mechanism."""
    targets = [c.target if isinstance(c, Servo) else c for c in m.all_constraints]
    bodies, joints = dict.fromkeys((WORLD, *(b.name for b in m.bodies))).keys(), dict.fromkeys(j.name for j in m.joints).keys()
    for what, parts in (("force", m.all_forces), ("constraint", targets)):
        for part in parts:
            for function in vars(part).values():
                try:
                    if isinstance(function, Written):
                        function.check(m)
                    else:
                        check_law(function, bodies, joints)
                except ModelError as error:
                    raise ModelError(f"{what} {part.name!r}: {error}") from None


def _placed(error: ModelError, f: Mapping[str, Node], parts: Mapping[str, Any], root: Node) -> ModelError:
    """An error about the mechanism, with the line of the entry whose name, or that of one of its parts, is in the message."""
    message = str(error)
    for key, (what, _) in _PARTS.items():
        entries = _entries(f, key)
        for made in parts[key]:
            if any(message.startswith(f"{what} {part.name!r}") for part in (made, *flat([made]))) and made.name in entries:
                return entries[made.name].error(message)
    return root.error(message)
