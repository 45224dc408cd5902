"""Opening USD stages from untrusted files: the layers that may be opened, and the units of a stage."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from pfaffian.errors import ModelError, optional
from pfaffian.formats.text.file import MAX_BYTES
from pfaffian.formats.text.place import allowed_path
from pfaffian.formats.text.strict_number import printable

MAX_PRIMS = 200_000
MAX_LAYERS = 100

OPEN = ("limit", ":low", ":high", "force", "torque", "distance", "velocity", "contactoffset", "restoffset")
"""Ends of the names of attributes that may be infinite, in lower case: limits, and distances that PhysX chooses itself."""

NUMBERS = re.compile(
    r"newton:(armature|damping|friction|mimicCoef[01])|physxJoint:armature|physxMimicJoint:\w+:(gearing|offset)"
)
"""Attributes of other engines that are single numbers; the schemas of these need not be installed."""

SAME = {"token": "str", "string": "str"} | dict.fromkeys(("double", "half", "int", "uint", "int64", "uint64", "uchar"), "float")
"""Kinds of values that may stand for others: texts, and numbers of any precision."""

_OF_USD = re.compile(r"Error in '.*?' at line \d+ in file \S+ : '(?:\S*/)?")
"""The place within USD's own code with which its messages begin, and the folder of the file."""

_UP = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, -1.0], [0.0, 1.0, 0.0]])
"""Rotation from the axes of a stage with y up to those of the library, with z up."""


class PrimFrame(NamedTuple):
    """A prim in the world with z up.   R: (3, 3) rotation.   p: (3,) position [m].   scale: (3,), below zero where the prim
    is mirrored."""

    R: np.ndarray
    p: np.ndarray
    scale: np.ndarray


@dataclass(frozen=True)
class UsdStage:
    """A stage.   stage: object of pxr.   length: its unit of length [m].   mass: its unit of mass [kg].   up: (3, 3) rotation
    from its axes to axes with z up.   source: name of the file, for messages.   prims: all of them, those of instances too.
    frames: path of a prim -> its `frame`."""

    stage: Any
    length: float
    mass: float
    up: np.ndarray
    source: str
    prims: tuple[Any, ...]
    frames: dict[str, PrimFrame] = field(default_factory=dict)

    @property
    def inertia(self) -> float:
        """Its unit of inertia [kg m^2], which is also its unit of moments [N m]."""
        return self.mass * self.length**2

    def frame(self, prim: Any) -> PrimFrame:
        """The frame of a prim. Raises ModelError: it is mirrored."""
        found = self.solid_frame(prim)
        if found.scale[0] < 0:
            raise self.error(prim, "its transform mirrors; only colliders and shapes below a body may be mirrored")
        return found

    def solid_frame(self, prim: Any) -> PrimFrame:
        """The frame of a collider or shape, which may be mirrored; made once for each."""
        path = str(prim.GetPath()) if prim else ""
        if path not in self.frames:
            self.frames[path] = self._frame(prim)
        return self.frames[path]

    def _frame(self, prim: Any) -> PrimFrame:
        """The frame from the transforms of a prim and of those above it."""
        from pxr import UsdGeom

        T = np.array(UsdGeom.Xformable(prim).ComputeLocalToWorldTransform(0.0)).T if prim else np.eye(4)
        if not np.isfinite(T).all():
            raise self.error(prim, "its transform is not finite; correct it")
        if (T[:3, :3] == np.eye(3)).all():  # as most prims, which need neither a scale nor orthonormalisation
            return PrimFrame(self.up, self.up @ T[:3, 3] * self.length, np.ones(3))
        scale = np.linalg.norm(T[:3, :3], axis=0)
        if not (scale > 0).all():
            raise self.error(prim, "its transform has a scale of zero; give a positive scale")
        R = T[:3, :3] / scale
        if np.abs(R.T @ R - np.eye(3)).max() > 1e-5:
            raise self.error(prim, "its transform shears; use only rotations, translations and scales")
        if np.linalg.det(R) < 0:
            R, scale = -R, -scale
        U, _, Vt = np.linalg.svd(R)
        return PrimFrame(self.up @ U @ Vt, self.up @ T[:3, 3] * self.length, scale)

    def density(self, prim: Any) -> float | None:
        """The density [kg/m^3] of the material that is bound to a prim; None if it has none."""
        from pxr import UsdPhysics, UsdShade

        material, _ = UsdShade.MaterialBindingAPI(prim).ComputeBoundMaterial("physics")
        if not material or not material.GetPrim().HasAPI(UsdPhysics.MaterialAPI):
            return None
        given = UsdPhysics.MaterialAPI(material.GetPrim()).GetDensityAttr().Get()
        return float(given) * self.mass / self.length**3 if given and given > 0 else None

    def axis(self, prim: Any, name: str) -> str:
        """The axis X, Y or Z that an attribute of a joint or a solid names. Raises ModelError: it names another one."""
        found = str(prim.GetAttribute(name).Get())
        if found not in ("X", "Y", "Z"):
            raise self.error(prim, f"{name} is {printable(found)}; it must be X, Y or Z")
        return found

    def size(self, prim: Any, name: str, smallest: float = np.nextafter(0, 1)) -> float:
        """A size of a solid, in the units of its frame. Raises ModelError: it is missing, or below the smallest one."""
        found = prim.GetAttribute(name).Get()
        if found is None or found < smallest:
            raise self.error(prim, f"{name} is {found}; it must be {'zero or positive' if smallest == 0 else 'above zero'}")
        return float(found)

    def place(self, prim: Any) -> str:
        """The place of a prim, as errors begin."""
        return f"{self.source}: {printable(str(prim.GetPath()))}"

    def error(self, prim: Any, message: str) -> ModelError:
        return ModelError(f"{self.place(prim)}: {message}")


def open_stage(path: Path) -> UsdStage:
    """Open the stage of a file. Only layers below the file's own folder are opened.

    Raises ModelError: usd-core is not installed; the file is not USD; a layer lies elsewhere, or is too large.
    """
    source = printable(path.name)[1:-1]
    names = ("Sdf", "Usd", "UsdGeom", "UsdPhysics")
    Sdf, Usd, UsdGeom, UsdPhysics = (optional(f"pxr.{n}", "usd-core", f"{source}: USD needs") for n in names)
    _check_size(path, source)
    with readable(source):
        layer = Sdf.Layer.FindOrOpen(str(path))
        if layer is None:
            raise ModelError(f"{source}: this is not a USD file")
        _check_layers(layer, path.parent.resolve(), source, Sdf)
        stage = Usd.Stage.Open(layer, Usd.Stage.LoadAll)
    every = Usd.PrimRange.Stage(stage, Usd.TraverseInstanceProxies())
    prims = tuple(prim for prim, _ in zip(every, range(MAX_PRIMS + 1), strict=False))
    if len(prims) > MAX_PRIMS:
        raise ModelError(f"{source}: the stage has more than {MAX_PRIMS} prims; split it")
    _check_types(prims, source, Sdf)
    length, mass = UsdGeom.GetStageMetersPerUnit(stage), UsdPhysics.GetStageKilogramsPerUnit(stage)
    if not (0 < length < 1e6 and 0 < mass < 1e9):
        raise ModelError(f"{source}: metersPerUnit {length} and kilogramsPerUnit {mass} must be above zero")
    upward = str(UsdGeom.GetStageUpAxis(stage))
    if upward not in ("Y", "Z"):
        raise ModelError(f"{source}: upAxis is {printable(upward)}; it must be Y or Z")
    up = _UP if upward == "Y" else np.eye(3)
    return UsdStage(stage, length, mass, up, source, prims)


@contextmanager
def readable(source: str) -> Iterator[None]:
    """Turn errors of USD's own code within this block into ModelErrors."""
    from pxr import Tf

    try:
        yield
    except Tf.ErrorException as error:
        try:
            words = " ".join(str(error).split())
        except UnicodeDecodeError:  # the message quotes the file
            words = "it contains bytes that are not UTF-8"
        words = _OF_USD.sub("", words, count=1).rstrip("'")
        raise ModelError(f"{source}: this USD file cannot be read: {printable(words)[1:-1]}") from None


def quaternion_of(q: Any) -> tuple[float, ...]:
    """The four numbers of a quaternion of USD, scalar last; by NumPy, since Python takes 50 us to iterate over its vector."""
    return *np.array(q.imaginary).tolist(), q.real


def _check_types(prims: Sequence[Any], source: str, Sdf: Any) -> None:
    """Raise ModelError if the value of an attribute has an unknown type or another one than the attribute, such as a text, or
    three numbers for one, or is a number that is not finite."""
    types = Sdf.ValueTypeNames
    for prim in prims:
        for attribute in prim.GetAuthoredAttributes():
            kind, value, name = attribute.GetTypeName(), attribute.Get(), attribute.GetName()
            what = f"{source}: {printable(str(attribute.GetPath()))}"
            if isinstance(value, Sdf.UnregisteredValue):
                raise ModelError(f"{what} has a value of an unknown type; correct it")
            expected = types.Float if NUMBERS.fullmatch(name) else types.FloatArray if name == "newton:inertia" else kind
            if value is not None and _form(type(value).__name__) != _form(type(expected.defaultValue).__name__):
                raise ModelError(f"{what} has a value of a type other than {expected}; correct it")
            if _is_wrong(attribute, kind, value):
                raise ModelError(f"{what}: {value} is not finite; correct it")


@cache
def _form(name: str) -> tuple[str, bool]:
    """What values of a Python type of USD contain, whatever its precision, and whether they are arrays.   name: of the type."""
    entry = name.removesuffix("Array").lower()
    return SAME.get(entry, entry.rstrip("fdhi")), name.endswith("Array")  # Vec3f and Vec3d, Quatf and Quatd are the same


def _is_wrong(attribute: Any, kind: Any, value: Any) -> bool:
    """Whether one of a few numbers is nan or infinite, other than an open end or what the schema has by default."""
    if kind.isArray:
        return False
    numbers = np.ravel(quaternion_of(value) if hasattr(value, "imaginary") else value)
    if numbers.dtype.kind != "f" or np.isfinite(numbers).all():
        return False
    name = attribute.GetName()
    if not np.isnan(numbers).any() and name.lower().endswith(OPEN):
        return False
    return bool(value != attribute.GetPrim().GetPrimDefinition().GetAttributeFallbackValue(name))


def _check_size(path: Path, source: str) -> None:
    """Raise ModelError if a path is not a readable regular file of at most MAX_BYTES."""
    try:
        if not path.is_file():
            raise ModelError(f"{printable(str(path))} is not a regular file; give the path of a file")
        size = path.stat().st_size
    except (OSError, ValueError):
        raise ModelError(f"{printable(str(path))} cannot be read; correct the path, or the permissions of the file") from None
    if size > MAX_BYTES:
        raise ModelError(f"{source}: the file is larger than {MAX_BYTES} bytes; split the stage")


def _check_layers(layer: Any, root: Path, source: str, Sdf: Any) -> None:
    """Raise ModelError if a layer refers to one outside the folder, before that one is opened."""
    waiting, seen = [layer], set[str]()
    while waiting:
        here = waiting.pop()
        folder = Path(here.realPath).parent
        for name in here.GetCompositionAssetDependencies():
            path = allowed_path(folder, str(name), None, f"{source}: layer")
            if not path.is_relative_to(root):
                raise ModelError(
                    f"{source}: the layer {printable(str(name))} leads out of the file's own folder; move it there"
                )
            if str(path) in seen or not path.is_file():
                continue
            seen.add(str(path))
            _check_size(path, source)
            if len(seen) > MAX_LAYERS:
                raise ModelError(f"{source}: the stage has more than {MAX_LAYERS} layers; flatten it")
            found = Sdf.Layer.FindOrOpen(str(path))
            if found is not None:
                waiting.append(found)
