"""USD stages beside usd-core's own mass properties, and beside Newton's importer if it is installed: masses of all bodies.

usd-core asks for the volume of each collider, and gets that of `usd_mass`, so that what is compared is the precedence of what
the stage gives. Both compute with single precision. A collider whose volume is unknown, such as a plane or a group of shapes,
adds a cube of 1 kg to usd-core's sum and nothing to the reader's, which names it; bodies with one are not compared.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import pfaffian as pf
from pfaffian.formats.text.file import as_path
from pfaffian.formats.usd.usd import prim_names
from pfaffian.formats.usd.usd_body import rigid_bodies
from pfaffian.formats.usd.usd_mass import INDEFINITE, _solid
from pfaffian.formats.usd.usd_stage import UsdStage, open_stage
from tools.compare_files import newton_mended, newton_series
from tools.compare_files.by_newton import UNITS, Imported, Masses, compared
from tools.compare_files.report import Row

SUFFIXES = (".usd", ".usda", ".usdc")
"""Of files in this format."""

SINGLE = 1e-4
"""Relative difference that counts as equal: the engines use single precision, in sums over many colliders."""


def by_usd(s: UsdStage, prim: Any) -> Masses | None:
    """Mass [kg], mass centre [m] and inertia [kg m^2] in the frame of the prim, by usd-core; None if a volume is unknown."""
    from pxr import Gf, UsdPhysics

    Rb, pb, _ = s.frame(prim)
    asked = list[bool]()

    def volume(part: Any) -> Any:
        found, solid = UsdPhysics.RigidBodyAPI.MassInformation(), _solid(s, part, {})
        asked.append(solid is not None)
        R, p, _ = s.solid_frame(part)
        place, turn = Rb.T @ (p - pb) / s.length, Rb.T @ R
        found.volume = -1.0 if solid is None else solid.mass / s.length**3
        if solid is not None:
            found.inertia = Gf.Matrix3f(*(solid.inertia / s.length**5).ravel().tolist())
            found.centerOfMass = Gf.Vec3f(*(solid.com / s.length).tolist())
        found.localPos = Gf.Vec3f(*place.tolist())
        found.localRot = Gf.Quatf(Gf.Matrix3d(*turn.T.ravel().tolist()).ExtractRotation().GetQuat())
        return found

    mass, moments, com, q = UsdPhysics.RigidBodyAPI(prim).ComputeMassProperties(volume)
    if not all(asked):
        return None
    api = UsdPhysics.MassAPI(prim)
    given = any(api.GetDiagonalInertiaAttr().Get() or ())
    if given and not asked and not api.GetPrincipalAxesAttr().HasAuthoredValue():
        q = Gf.Quatf(1)  # usd-core leaves it undefined, another at each call
    R = np.array(Gf.Matrix3d(Gf.Quatd(q).GetNormalized())).T
    return mass * s.mass, np.array(com) * s.length, R @ np.diag(moments) @ R.T * s.inertia


def _apart(m: pf.Mechanism, b: pf.Body, theirs: Masses) -> float:
    mass, com, inertia = theirs
    I = m.value(b.inertia)
    pairs = ((m.value(b.mass).ravel(), [mass]), (m.value(b.com).ravel(), com), (I, inertia))
    scales = (mass, max(1.0, float(np.abs(com).max())), float(np.abs(inertia).max()))
    return max(float(np.abs(x - y).max() / max(scale, 1e-300)) for (x, y), scale in zip(pairs, scales, strict=True))


def bodies_of(s: UsdStage, m: pf.Mechanism) -> dict[str, pf.Body]:
    """Path of a prim in the stage -> its body."""
    prims = rigid_bodies(s)
    return {str(p.GetPath()): m.body(name) for p, name in zip(prims, prim_names(prims), strict=True)}


def masses_apart(s: UsdStage, m: pf.Mechanism) -> dict[str, float | None]:
    """Path of a prim -> largest relative difference of its mass properties from usd-core's; None if a volume is unknown."""
    found = dict[str, float | None]()
    for p, b in bodies_of(s, m).items():
        theirs = by_usd(s, s.stage.GetPrimAtPath(p))
        found[p] = None if theirs is None else _apart(m, b, theirs) if theirs[0] > 0 else 0.0
    return found


def _partly_given(
    s: UsdStage, m: pf.Mechanism, bodies: Mapping[str, pf.Body], own: Mapping[str, float | None], doubtful: bool
) -> dict[str, Masses]:
    """The masses of bodies that, or whose colliders, give mass properties, and of which usd-core has the reader's.
    doubtful: of all of them, since rounding chooses axes."""
    names = [f"physics:{name}" for name in ("mass", "density", "centerOfMass", "diagonalInertia", "principalAxes")]
    giving = [f"{p.GetPath()}/" for p in s.prims if any(p.GetAttribute(name).HasAuthoredValue() for name in names)]
    found = dict[str, Masses]()
    for path, b in bodies.items():
        far = own[path]
        if far is not None and (far <= SINGLE or doubtful) and any(x.startswith(f"{path}/") for x in giving):
            found[path] = float(m.value(b.mass).ravel()[0]), m.value(b.com).ravel(), m.value(b.inertia)
    return found


def examine(path: Path) -> Row:
    """Open a stage and compare it."""
    with warnings.catch_warnings(record=True, action="always") as caught:
        try:
            m, settings = pf.formats.read_usd(path)
        except pf.PfaffianError as error:
            return Row(refused=str(error))
    told = "; ".join(str(w.message) for w in caught)
    row = Row(nv=m.nv, left_out=told, same=SINGLE, causes={"Newton units of the mimic": UNITS, **newton_series.CAUSES})
    s = open_stage(as_path(path))
    if INDEFINITE in told:
        row = replace(row, causes={**row.causes, "usd-core masses": INDEFINITE})
    if (s.length, s.mass) != (1.0, 1.0):
        row = replace(row, causes={**row.causes, "Newton": "Newton keeps the units of the stage"})
    bodies, own = bodies_of(s, m), masses_apart(s, m)
    differences = {"usd-core masses": max((x for x in own.values() if x is not None), default=0.0)}
    notes = ", ".join(f"{p} has colliders of unknown volume" for p, x in own.items() if x is None)
    try:
        newton = Imported(path)
        shared = [(bodies[p], masses) for p, masses in newton.masses.items() if p in bodies]
        differences["Newton masses"] = max((_apart(m, b, masses) for b, masses in shared), default=0.0)
        more, note = compared(newton, m, settings, bodies)
        if any(not x <= SINGLE for what, x in (differences | more).items() if what in newton_mended.CONCERNED):
            again = Imported(path)
            if found := newton_mended.mend(again, s, _partly_given(s, m, bodies, own, INDEFINITE in told)):
                left = compared(again, m, settings, bodies)[0]
                more["Newton explained"] = max([x for what, x in left.items() if what in more], default=0.0)
                row = replace(row, causes={**row.causes, **dict.fromkeys(newton_mended.CONCERNED, "; ".join(found))})
        if newton.twice:
            why = f"Newton takes another body for {newton.twice[0]!r}, so that its joints are those of others"
            row = replace(row, causes={**row.causes, "Newton poses": why, "Newton mass matrix": why})
        differences, notes = differences | more, "; ".join(filter(None, (notes, note)))
    except ImportError:
        pass
    except Exception as error:  # whatever an importer raises for a stage that it does not read
        notes += f" Newton: {type(error).__name__}: {' '.join(str(error).split())[:100]}"
    return replace(row, differences=differences, note=notes)
