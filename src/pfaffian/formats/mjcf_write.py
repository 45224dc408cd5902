"""Writing mechanisms as MJCF, for MuJoCo: nested bodies, joints in their order, closures between sites."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from pfaffian.errors import ModelError
from pfaffian.formats.mjcf_write_part import COORDINATES, TURNED, add_actuator, add_closure, add_mimic, add_spring, same_frames
from pfaffian.formats.run_settings import RunSettings
from pfaffian.formats.xml_write import Tag, check_names, composed, document, inverted, is_one, numbers, plain, warn_lost
from pfaffian.maths import so3
from pfaffian.model.body import WORLD, Body
from pfaffian.model.constraint import Closure
from pfaffian.model.force import Spring
from pfaffian.model.joint import UNLIMITED, Joint
from pfaffian.model.mechanism import Mechanism
from pfaffian.model.shape import Shape
from pfaffian.model.unphysical import unphysical

Frame = tuple[np.ndarray, np.ndarray]
_GEOMS = {"box": "box", "sphere": "sphere", "cylinder": "cylinder", "capsule": "capsule"}
_MESHES = (".stl", ".obj")


def mjcf_files(m: Mechanism, path: Path, settings: RunSettings | None) -> dict[Path, str]:
    """The text of the MJCF file: {path: text}. Raises ModelError: an element that MJCF cannot represent, by name."""
    check_names([*(b.name for b in m.bodies), *(j.name for j in m.joints)], "MJCF")
    if m.coordinates or m.velocities:
        raise ModelError(
            "chosen coordinates and velocities are functions in Python, which a file cannot contain; leave them out"
        )
    for name, reason in unphysical(m).items():
        raise ModelError(f"body {name!r}: {reason}, and MuJoCo refuses such a body; correct it, or write YAML")
    lost = list[str]()
    root = Tag("mujoco", {"model": m.name})
    root.add("compiler", angle="radian", autolimits="true", inertiafromgeom="false", balanceinertia="false")
    root.add("option", gravity=numbers(m.gravity, "gravity"))
    assets, world = root.add("asset"), root.add("worldbody")
    places = {WORLD: world}
    bodies = {b.name: b for b in m.bodies}
    for j in m.joints:
        places[j.child] = _body(places[j.parent], j, bodies[j.child], m, assets, lost)
    sections = {word: Tag(word) for word in ("equality", "tendon", "actuator")}
    for j in m.joints:
        add_mimic(sections["equality"], j, lost)
    for c in m.constraints:
        if not isinstance(c, Closure) or c.active is not None:
            raise ModelError(f"constraint {c.name!r}: MJCF can only have closures that are always active; write YAML")
        add_closure(sections["equality"], c, places, lost)
    for f in m.forces:
        if not isinstance(f, Spring):
            raise ModelError(
                f"force {f.name!r}: the only forces that are written as MJCF are springs between points; write YAML"
            )
        add_spring(sections["tendon"], f, places)
    for a in m.actuators:
        add_actuator(sections["actuator"], a, m, places)
    root.inside = [t for t in [*root.inside, *sections.values()] if t.inside or t.given or t.name == "worldbody"]
    if settings is not None and settings != RunSettings():
        lost.append("the run settings")
    warn_lost(lost, "MJCF")
    return {path: document(root)}


def _body(parent: Tag, j: Joint, b: Body, m: Mechanism, assets: Tag, lost: list[str]) -> Tag:
    """The element of a joint's child, inside that of its parent.

    Where the joint's frame is turned in the child and has an orientation as coordinate, a massless body is put between them.
    """
    what = f"joint {j.name!r}"
    if j.pose is not None or j.kind.name not in COORDINATES or j.distribution is not None:
        part = "edges" if j.pose is not None else "distributions of velocities" if j.distribution is not None else j.kind.name
        raise ModelError(f"{what}: MJCF has no {part}{'' if part.endswith('s') else ' joints'}; write YAML")
    at, its = plain(j.placement, what), plain(j.child_placement, what)
    straight = same_frames(j.kind.name, its)
    made = parent.add("body", name=b.name if straight else f"{j.name} frame"[:128])
    place(made, composed(at, inverted(its)) if straight else at)
    _joints(made, j, its if straight else (np.eye(3), np.zeros(3)), what, at, lost)
    if not straight:
        made = made.add("body", name=b.name)
        place(made, inverted(its))
        lost.append(f"the turned frame of {what} in {b.name!r}, so a massless body is put between them")
    _inertial(made, b)
    for i, s in enumerate(b.shapes):
        _geom(made, s, f"{b.name} {i}", assets, lost)
    return made


def place(tag: Tag, X: Frame) -> None:
    """Set the position and orientation of an element, unless they are zero."""
    R, p = X
    if p.any():
        tag.given["pos"] = p
    if not is_one(R):
        x, y, z, w = so3.quaternions(R)
        tag.given["quat"] = (w, x, y, z)


def _inertial(made: Tag, b: Body) -> None:
    what = f"body {b.name!r}"
    mass, com, I = numbers(b.mass, what)[0], numbers(b.com, what), numbers(b.inertia, what).reshape(3, 3)
    if mass or I.any():
        six = [I[at] for at in ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))]
        made.add("inertial", pos=com, mass=mass, fullinertia=six)


def _joints(made: Tag, j: Joint, its: Frame, what: str, at: Frame, lost: list[str]) -> None:
    """Add the MuJoCo joints of a joint, one for each coordinate or orientation.   its: the joint's frame in the child."""
    R, p = its
    parts = COORDINATES[j.kind.name]
    if j.kind.name == "free" and j.parent == WORLD and is_one(at[0]) and not at[1].any():
        if not (j.damping.is_zero() and j.armature.is_zero() and j.stiffness.is_zero()):
            raise ModelError(f"{what}: MJCF has no spring, damper or armature on a free joint; write YAML")
        made.add("freejoint", name=j.name)
        return
    D, K = (_diagonal(x, word, what) for x, word in ((j.damping, "damping"), (j.stiffness, "stiffness")))
    armature, rest = numbers(j.armature, what), numbers(j.rest, what)
    n = TURNED.get(j.kind.name, 0)
    if n and (armature[:n].any() or len({*D[:n]}) > 1):
        raise ModelError(f"{what}: dampers and armature of MJCF slides do not turn with the body; write YAML")
    i = 0
    for kind, axis, label in parts:
        width = 3 if kind == "ball" else 1
        here: dict[str, Any] = {
            "name": j.name if not label else f"{j.name}.{label}",
            "type": kind,
            "pos": p if p.any() else None,
        }
        if kind != "ball":
            here["axis"] = R @ np.array(axis)
            low, high = j.limits[i] if not j.mimic else UNLIMITED
            if (low, high) != UNLIMITED:
                finite = bool(np.isfinite((low, high)).all())
                here["range"] = (low, high) if finite else None
                lost += [] if finite else [f"the one-sided limit of {what}"]
        if any(len({*x[i : i + width]}) > 1 for x in (D, armature)) or (kind == "ball" and K[i : i + 3].any()):
            raise ModelError(f"{what}: MJCF has one damping and one armature per orientation, and other springs; write YAML")
        here |= {key: x[i] for key, x in (("damping", D), ("armature", armature)) if len(x) > i and x[i]}
        if len(K) > i and K[i]:
            here |= {"stiffness": K[i], "springref": rest[i]}
        if np.isfinite(j.effort) and kind != "ball":
            here["actuatorfrcrange"] = (-j.effort, j.effort)
        made.add("joint", **here)
        i += width


def _diagonal(x: Any, word: str, what: str) -> np.ndarray:
    """The diagonal of a diagonal matrix. Raises ModelError: the matrix is not diagonal."""
    if x.is_zero():
        return np.zeros(x.shape[0])
    X = numbers(x, what).reshape(x.shape)
    if np.abs(X - np.diag(np.diag(X))).max() > 0:
        raise ModelError(f"{what}: its {word} couples several velocities, which MJCF cannot represent; write YAML")
    return np.diag(X)


def _geom(made: Tag, s: Shape, name: str, assets: Tag, lost: list[str]) -> None:
    """A shape for pictures only, without collisions, since contact is not part of the mechanism."""
    given: dict[str, Any] = {"contype": "0", "conaffinity": "0", "group": "2" if s.role == "visual" else "3"}
    size = numbers(s.size, name)
    if s.kind == "mesh":
        if s.file is None or Path(s.file).suffix.lower() not in _MESHES:
            lost.append(f"the mesh {s.label!r}")
            return
        assets.add("mesh", name=name, file=s.file, scale=size)
        given |= {"type": "mesh", "mesh": name}
    elif s.kind not in _GEOMS:
        lost.append(f"the {s.kind} of {name!r}")
        return
    else:
        half = {"box": size / 2, "sphere": size}.get(s.kind, np.array([size[0], size[-1] / 2]))
        given |= {"type": _GEOMS[s.kind], "size": half}
    tag = made.add("geom", **given)
    place(tag, plain(s.placement, name))
    if s.colour is not None:
        tag.given["rgba"] = s.colour
