"""The compiled model of an MJCF text: MuJoCo's own compiler resolves defaults, angles, frames and anchors.

The compiler opens no file. Meshes matter only for bodies without a given inertia; these meshes are read here, from the allowed
folders, and passed to the compiler. All other meshes, and missing ones, are replaced by spheres without mass.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from pfaffian.errors import ModelError, install
from pfaffian.formats.mjcf.mjcf_text import MjcfText
from pfaffian.formats.text.file import MAX_BYTES
from pfaffian.formats.text.left_out import leave
from pfaffian.formats.text.mesh_file import MeshFolders
from pfaffian.formats.text.msh_file import read_msh
from pfaffian.formats.text.strict_number import printable
from pfaffian.formats.text.xml import Element

MAX_BODIES = 20_000


@dataclass(frozen=True)
class MeshGeom:
    """A geometry that is a mesh.   label: name of its file.   file: its path, None if not found.   scale: (3,).   recentred:
    whether the compiler read the mesh and so moved its frame to the principal axes."""

    label: str
    file: str | None
    scale: tuple[float, ...]
    recentred: bool


@dataclass(frozen=True)
class CompiledModel:
    """A compiled model.   mujoco: the package.   model: an MjModel.   bodies, joints, tendons, actuators: names by number.
    meshes: number of a geometry -> its mesh.   touch: whether shapes of the file can collide.   root: the file's root element.
    children: number of a joint -> name of its child, filled while the tree is read."""

    mujoco: Any
    model: Any
    bodies: tuple[str, ...]
    joints: tuple[str, ...]
    tendons: tuple[str, ...]
    actuators: tuple[str, ...]
    meshes: dict[int, MeshGeom]
    touch: bool
    root: Element
    children: dict[int, str] = field(default_factory=dict)

    def error(self, message: str) -> ModelError:
        """The ModelError about the file."""
        return self.root.error(message)

    def check_of_joint(self, n: int, what: str, x: float) -> float:
        """x, a number of a joint. Raises ModelError, where the joint is in the file: it is below zero."""
        if x >= 0:
            return x
        name, waiting = self.joints[n], [self.root]
        while waiting:
            element = waiting.pop()
            if element.tag in ("joint", "freejoint") and element.attributes.get("name") == name:
                raise element.error(f"{what} {x:g} is below zero; make it zero or positive")
            waiting += element.children
        raise self.error(f"joint {printable(name)}: {what} {x:g} is below zero; make it zero or positive")

    @cached_property
    def transmissions(self) -> tuple[str, ...]:
        """The kind of transmission of each actuator, in MuJoCo's words: JOINT, JOINTINPARENT, TENDON, SITE and others."""
        words = {int(kind): name.removeprefix("mjTRN_") for name, kind in self.mujoco.mjtTrn.__members__.items()}
        return tuple(words[kind] for kind in self.model.actuator_trntype.tolist())

    @cached_property
    def on_joints(self) -> dict[int, list[int]]:
        """Number of a joint -> numbers of the actuators on it."""
        return self._driven_by("JOINT", "JOINTINPARENT")

    @cached_property
    def on_tendons(self) -> dict[int, list[int]]:
        """Number of a tendon -> numbers of the actuators on it."""
        return self._driven_by("TENDON")

    def _driven_by(self, *kinds: str) -> dict[int, list[int]]:
        found: dict[int, list[int]] = {}
        for i, (kind, n) in enumerate(zip(self.transmissions, self.model.actuator_trnid[:, 0].tolist(), strict=True)):
            if kind in kinds:
                found.setdefault(n, []).append(i)
        return found

    @cached_property
    def used(self) -> frozenset[str]:
        """The names of all bodies and joints."""
        return frozenset((*self.bodies, *self.joints))


def among(value: Any, *kinds: Any) -> bool:
    """Whether a number of the model is one of MuJoCo's kinds."""
    return int(value) in [int(kind) for kind in kinds]


def need_mujoco() -> Any:
    """The package mujoco. Raises ModelError: it is not installed or too old, with the command that installs it."""
    try:
        import mujoco
    except ImportError:
        raise ModelError(f"MJCF is read by MuJoCo's compiler: run {install('mujoco')}") from None
    if int(mujoco.__version__.split(".")[0]) < 4:
        raise ModelError(
            f"MJCF needs the package mujoco from version 4 on, not {mujoco.__version__}: run {install('--upgrade mujoco')}"
        )
    return mujoco


def compiled(found: MjcfText, where: MeshFolders) -> CompiledModel:
    """The compiled model of a prepared text.

    Raises ModelError: an error of MuJoCo's compiler, with the element; a body whose inertia would come from a missing mesh.
    """
    mujoco = need_mujoco()
    try:
        spec = mujoco.MjSpec.from_string(found.text, include=found.models or None)
    except (ValueError, RuntimeError) as error:
        raise found.error(error) from None
    spec.compiler.LRopt.mode, spec.compiler.discardvisual = mujoco.mjtLRMode.mjLRMODE_NONE, False
    geoms = [(body, geom) for body in spec.bodies for geom in body.geoms]  # once: each pass of MuJoCo's takes n^2
    touch = len(geoms) > 1 and any(g.contype for _, g in geoms) and any(g.conaffinity for _, g in geoms)
    used = _stand_ins(mujoco, spec, geoms, found, where)
    try:
        model = spec.compile()
    except (ValueError, RuntimeError) as error:
        raise _lost_inertia(found, error) or found.error(error) from None
    if model.nbody > MAX_BODIES:
        raise found.root.error(f"{model.nbody} bodies are more than {MAX_BODIES}; split the file")
    counts = {"body": model.nbody, "jnt": model.njnt, "tendon": model.ntendon, "actuator": model.nactuator}
    b, j, t, a = _element_names(model, *(_names(model, kind, count) for kind, count in counts.items()))
    return CompiledModel(mujoco, model, b, j, t, a, {int(geom.id): mesh for geom, mesh in used}, touch, found.root)


def _stand_ins(
    mujoco: Any, spec: Any, geoms: list[tuple[Any, Any]], found: MjcfText, where: MeshFolders
) -> list[tuple[Any, MeshGeom]]:
    """The geometries that are meshes.   geoms: all geometries, each after its body.

    Those that are missing or not needed for an inertia are replaced by massless spheres.

    Collisions of meshes are switched off, so that the compiler does not compute their convex hulls.
    """
    files = {m.name: _MeshFile(m, found, where) for m in spec.meshes}
    always = spec.compiler.inertiafromgeom == mujoco.mjtInertiaFromGeom.mjINERTIAFROMGEOM_TRUE
    kinds, meshes, used = mujoco.mjtGeom, list[tuple[Any, MeshGeom]](), set[str]()
    for body, geom in geoms:
        mesh = files.get(geom.meshname) if geom.meshname else None
        solid = geom.type not in (kinds.mjGEOM_MESH, kinds.mjGEOM_SDF, kinds.mjGEOM_HFIELD)
        if mesh is None and solid:
            continue
        weighs = body.name != "world" and (always or not body.explicitinertial) and geom.mass != 0 and geom.density != 0
        if mesh is not None and (weighs or solid) and mesh.data(found):
            used.add(geom.meshname)
            geom.contype = geom.conaffinity = 0
            if not solid:
                meshes.append((geom, MeshGeom(mesh.label, mesh.path, mesh.scale, True)))
        else:
            if weighs:
                what = mesh.label if mesh is not None else "?"
                leave(found.lost, MISSING, f"{body.name or 'a body without a name'} (mesh {what})")
            if mesh is not None and not solid:
                meshes.append((geom, MeshGeom(mesh.label, mesh.path, mesh.scale, False)))
            _plain_sphere(kinds, geom)
    for mesh in list(spec.meshes):
        if mesh.name in used:
            spec.assets[mesh.file] = files[mesh.name].bytes if mesh.file else b""
        else:
            spec.delete(mesh)
    return meshes


MISSING = "bodies lack the inertia of meshes that are missing or cannot be read"


def _plain_sphere(kinds: Any, geom: Any) -> None:
    """Turn a geometry into a small sphere without mass."""
    geom.type, geom.meshname, geom.hfieldname = kinds.mjGEOM_SPHERE, "", ""
    geom.size, geom.mass, geom.fromto = [1e-3, 0, 0], 0.0, [np.nan] * 6


class _MeshFile:
    """The file of a mesh; its bytes are read only if an inertia needs them."""

    def __init__(self, mesh: Any, found: MjcfText, where: MeshFolders) -> None:
        self.label = found.meshes.get(mesh.file, mesh.name)
        self.inline = not mesh.file
        self.path = None if self.inline else where.find(self.label)
        self.scale = tuple(float(x) for x in mesh.scale)
        self.bytes = b""

    def data(self, found: MjcfText) -> bool:
        """Whether the compiler can read the mesh; reads the bytes of its file. Raises ModelError: the file is too large."""
        if self.inline:
            return True
        kind = "" if self.path is None else Path(self.path).suffix.lower()
        if self.path is None or kind not in (".stl", ".obj", ".msh"):
            return False
        if not self.bytes:
            with Path(self.path).open("rb") as stream:
                data = stream.read(MAX_BYTES + 1)
            if len(data) > MAX_BYTES:
                raise found.root.error(
                    f"mesh {printable(self.label)} is larger than {MAX_BYTES} bytes; simplify it, or leave the mesh out"
                )
            self.bytes = b"" if kind == ".msh" and read_msh(data) is None else data
        return bool(self.bytes)


def _lost_inertia(found: MjcfText, error: Exception) -> ModelError | None:
    """The error about a body without inertia because its mesh is missing; None if the compiler's error is another one."""
    if MISSING not in found.lost or "mjMINVAL" not in str(error):
        return None
    named = ", ".join(printable(n) for n in found.lost[MISSING][:5])
    way = "the body moves but has no inertia without its mesh; add <inertial>, or put the mesh files in place"
    return found.element(error).error(f"{way}. Without their meshes: {named}")


def _names(model: Any, kind: str, count: int) -> tuple[str, ...]:
    """The names in the file of all elements of a kind; empty for elements without a name."""
    at, names = getattr(model, f"name_{kind}adr"), bytes(model.names)
    return tuple(names[at[i] : names.index(b"\0", at[i])].decode("utf-8", "replace") for i in range(count))


def _element_names(model: Any, bodies: Any, joints: Any, tendons: Any, actuators: Any) -> tuple[tuple[str, ...], ...]:
    """Names of the elements of a mechanism: printable, short, unique, and invented for elements without a name."""
    kinds = {0: "free", 1: "ball", 2: "slide", 3: "hinge"}
    b = _unique(bodies, [f"body {i}" for i in range(len(bodies))])
    invented = [f"{b[model.jnt_bodyid[i]]} {kinds[int(model.jnt_type[i])]}" for i in range(len(joints))]
    return (
        b,
        _unique(joints, invented),
        _unique(tendons, [f"tendon {i}" for i in range(len(tendons))]),
        _unique(actuators, [f"actuator {i}" for i in range(len(actuators))]),
    )


def _unique(names: tuple[str, ...], otherwise: list[str]) -> tuple[str, ...]:
    """The names, printable, at most 128 characters long and unique.   otherwise: names for elements that have none."""
    used, unique = set(names), list[str]()
    for name, other in zip(names, otherwise, strict=True):
        label = "".join(c if c.isprintable() else "?" for c in name)[:128]
        if not name:
            label = other
        while label != name and label in used:
            label += "_"
        used.add(label)
        unique.append(label)
    return tuple(unique)
