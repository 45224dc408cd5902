"""USD stages from untrusted files: which layers may be opened, and what its units are."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pfaffian.errors import ModelError, optional
from pfaffian.formats.file import MAX_BYTES
from pfaffian.formats.number import printable
from pfaffian.formats.place import beside

MAX_PRIMS = 200_000
MAX_LAYERS = 100

_UP = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, -1.0], [0.0, 1.0, 0.0]])
"""Turns a stage whose y axis points up to the library's, where z does."""


@dataclass(frozen=True)
class Stage:
    """stage: of pxr.   length: [m], mass: [kg] of its units.   up: (3, 3) from its axes to those with z up.   source: name."""

    stage: Any
    length: float
    mass: float
    up: np.ndarray
    source: str

    @property
    def inertia(self) -> float:
        """[kg m^2] of its unit of inertia, [N m] of that of moments."""
        return self.mass * self.length**2

    def frame(self, prim: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(3, 3) rotation, (3,) position [m] and (3,) scale of a prim in the world with z up."""
        from pxr import UsdGeom

        T = np.array(UsdGeom.Xformable(prim).ComputeLocalToWorldTransform(0.0)).T if prim else np.eye(4)
        if not np.isfinite(T).all():
            raise self.error(prim, "its transform is not finite")
        scale = np.linalg.norm(T[:3, :3], axis=0)
        if not (scale > 0).all():
            raise self.error(prim, "its transform has a scale of zero")
        R = T[:3, :3] / scale
        if not np.allclose(R.T @ R, np.eye(3), atol=1e-5) or np.linalg.det(R) < 0:
            raise self.error(prim, "its transform shears or mirrors; write it as turns, translations and positive scales")
        U, _, Vt = np.linalg.svd(R)
        return self.up @ U @ Vt, self.up @ T[:3, 3] * self.length, scale

    def error(self, prim: Any, message: str) -> ModelError:
        return ModelError(f"{self.source}: {printable(str(prim.GetPath()))}: {message}")


def open_stage(path: Path) -> Stage:
    """The stage of a file. Only layers below the file's own folder are opened.

    Raises ModelError: usd-core is not installed; another kind of file; layers elsewhere, or too many or too large.
    """
    source = printable(path.name)[1:-1]
    names = ("Sdf", "Usd", "UsdGeom", "UsdPhysics")
    Sdf, Usd, UsdGeom, UsdPhysics = (optional(f"pxr.{n}", "usd-core", f"{source}: USD needs") for n in names)
    _check_size(path, source)
    with readable(source):
        layer = Sdf.Layer.FindOrOpen(str(path))
        if layer is None:
            raise ModelError(f"{source}: no USD layer")
        _check_layers(layer, path.parent.resolve(), source, Sdf)
        stage = Usd.Stage.Open(layer, Usd.Stage.LoadAll)
    count = sum(1 for _, _ in zip(stage.Traverse(), range(MAX_PRIMS + 1), strict=False))
    if count > MAX_PRIMS:
        raise ModelError(f"{source}: more than {MAX_PRIMS} prims; split the stage")
    _check_types(stage, source, Sdf)
    length, mass = UsdGeom.GetStageMetersPerUnit(stage), UsdPhysics.GetStageKilogramsPerUnit(stage)
    if not (0 < length < 1e6 and 0 < mass < 1e9):
        raise ModelError(f"{source}: metersPerUnit {length} and kilogramsPerUnit {mass} must be above zero")
    up = _UP if UsdGeom.GetStageUpAxis(stage) == UsdGeom.Tokens.y else np.eye(3)
    return Stage(stage, length, mass, up, source)


@contextmanager
def readable(source: str) -> Iterator[None]:
    """What USD's own code says within this block, as a ModelError."""
    from pxr import Tf

    try:
        yield
    except Tf.ErrorException as error:
        try:
            words = " ".join(str(error).split())
        except UnicodeDecodeError:  # the message quotes the file
            words = "it holds bytes that are no UTF-8"
        raise ModelError(f"{source}: not a readable USD file: {printable(words)[1:-1]}") from None


def _check_types(stage: Any, source: str, Sdf: Any) -> None:
    """Raise ModelError for an attribute with a value of no known type, or text for a number, or a number for text."""
    words = {Sdf.ValueTypeNames.Token, Sdf.ValueTypeNames.String}
    for prim in stage.Traverse():
        for attribute in prim.GetAuthoredAttributes():
            kind, value = attribute.GetTypeName(), attribute.Get()
            unknown = isinstance(value, Sdf.UnregisteredValue)
            if unknown or (value is not None and not kind.isArray and isinstance(value, str) != (kind in words)):
                what = f"{source}: {printable(str(attribute.GetPath()))}"
                raise ModelError(
                    f"{what} has a value of {'no known type' if unknown else f'another type than {kind}'}; correct it"
                )


def _check_size(path: Path, source: str) -> None:
    try:
        if not path.is_file():
            raise ModelError(f"{printable(str(path))} is not a regular file")
        size = path.stat().st_size
    except (OSError, ValueError):
        raise ModelError(f"{printable(str(path))} cannot be read; correct the path, or the rights to read it") from None
    if size > MAX_BYTES:
        raise ModelError(f"{source}: larger than {MAX_BYTES} bytes; split the stage")


def _check_layers(layer: Any, root: Path, source: str, Sdf: Any) -> None:
    """Raise ModelError where a layer, or one that it names, lies outside the folder, before any of these is opened."""
    waiting, seen = [layer], set[str]()
    while waiting:
        here = waiting.pop()
        folder = Path(here.realPath).parent
        for name in here.GetCompositionAssetDependencies():
            path = beside(folder, str(name), None, f"{source}: layer")
            if not path.is_relative_to(root):
                raise ModelError(
                    f"{source}: the layer {printable(str(name))} leads out of the file's own folder; move it there"
                )
            if str(path) in seen or not path.is_file():
                continue
            seen.add(str(path))
            _check_size(path, source)
            if len(seen) > MAX_LAYERS:
                raise ModelError(f"{source}: more than {MAX_LAYERS} layers; flatten the stage")
            found = Sdf.Layer.FindOrOpen(str(path))
            if found is not None:
                waiting.append(found)
