"""Writing mechanisms as MJCF, for MuJoCo: nested bodies, joints in their order, closures between sites."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from pfaffian.errors import ModelError
from pfaffian.formats.text.run_settings import RunSettings
from pfaffian.formats.text.strict_number import printable
from pfaffian.formats.writers.mjcf_write_part import (
    add_actuator,
    add_carried,
    add_closure,
    add_mimic,
    add_spring,
    mujoco_joints,
    range_of,
    same_frames,
    turned,
)
from pfaffian.formats.writers.xml_write import Tag, check_names, composed, document, inverted, is_one, numbers, plain, warn_lost
from pfaffian.maths import so3
from pfaffian.maths.margins import ROUNDING, ZERO
from pfaffian.model.body import WORLD, Body
from pfaffian.model.constraint import Closure
from pfaffian.model.force import Spring
from pfaffian.model.joint import Joint
from pfaffian.model.mechanism import Mechanism
from pfaffian.model.pose import NumericPose
from pfaffian.model.shape import Shape
from pfaffian.model.unphysical import unphysical

_GEOMS = {"box": "box", "sphere": "sphere", "cylinder": "cylinder", "capsule": "capsule"}
_MESHES = (".stl", ".obj", ".msh")

SMALL, LEAST = 1e-12, 1e-14
"""What is written for a mass or a moment of inertia that is zero, which MuJoCo refuses in a body that moves: this fraction of
the largest one, and at least this value [kg, kg m^2], ten times MuJoCo's limit. Others are never changed."""

FLAT = 1e-12
"""Relative distance from the flattest possible inertia below which it is written by its principal moments, since MuJoCo, which
computes them with rounding from a tensor, would take it for an impossible one."""


def mjcf_files(m: Mechanism, path: Path, settings: RunSettings | None) -> dict[Path, str]:
    """The text of the MJCF file: {path: text}. Raises ModelError: an element that MJCF cannot represent, by name."""
    _check_names(m)
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
    inertials, raised = _inertials(m)
    bodies = {b.name: b for b in m.bodies}
    driven = {joint for a in m.actuators for joint, _ in a.ends}
    for j in m.joints:
        j = replace(j, effort=np.inf) if j.name in driven else j  # of which the range of the motor's control says it
        places[j.child] = _body(places[j.parent], j, bodies[j.child], inertials[j.child], assets, lost)
    if raised:
        lost.append(f"zero masses and moments of inertia of bodies that move, so these are above zero: {', '.join(raised)}")
    lost += _renamed(m)
    sections = _sections(m, places, lost)
    root.inside = [t for t in [*root.inside, *sections] if t.inside or t.given or t.name == "worldbody"]
    if settings is not None and settings != RunSettings():
        lost.append("the run settings")
    _check_apart(root)
    warn_lost(lost, "MJCF")
    return {path: document(root)}


def _sections(m: Mechanism, places: dict[str, Tag], lost: list[str]) -> list[Tag]:
    """The sections <equality>, <tendon> and <actuator>.   places: body -> its element, to which sites are added."""
    sections = {word: Tag(word) for word in ("equality", "tendon", "actuator")}
    for j in m.joints:
        add_mimic(sections["equality"], j, lost)
    for c in m.constraints:
        if not isinstance(c, Closure) or c.active is not None:
            raise ModelError(f"constraint {c.name!r}: MJCF can only have closures that are always active; write YAML")
        add_closure(sections["equality"], c, places, lost)
        add_carried(sections["tendon"], c, m, lost)
    for f in m.forces:
        if not isinstance(f, Spring):
            raise ModelError(
                f"force {f.name!r}: the only forces that are written as MJCF are springs between points; write YAML"
            )
        add_spring(sections["tendon"], f, places)
    bounds = dict(zip(m.u_names, m.u_limits.tolist(), strict=True))
    for a in m.actuators:
        add_actuator(sections["actuator"], a, bounds[a.name], m, places, lost)
    return list(sections.values())


def _check_names(m: Mechanism) -> None:
    """Raise ModelError if a name cannot be written, also one that the writer makes of a joint and a part of its motion."""
    parts = [f"{j.name}.{x.label}" for j in m.joints for x in mujoco_joints(j.kind) or () if x.label]
    check_names([*(b.name for b in m.bodies), *(j.name for j in m.joints), *parts], "MJCF")


def _check_apart(root: Tag) -> None:
    """Raise ModelError if two elements of one sort have the same name, which the writer may have made for one of them."""
    seen, waiting = set[tuple[str, object]](), [(root, "")]
    while waiting:
        tag, within = waiting.pop()
        sort = within if within in ("equality", "tendon", "actuator") else tag.name
        name = tag.given.get("name") if tag.name != "mujoco" else None
        if name is not None and (sort, name) in seen:
            raise ModelError(
                f"two elements <{tag.name}> of the MJCF file would be called {printable(name)}, a name that the writer makes "
                "of others; rename the body, joint, constraint or force that begins so"
            )
        seen.add((sort, name))
        waiting += [(x, tag.name) for x in tag.inside]


def _body(parent: Tag, j: Joint, b: Body, inertial: Tag | None, assets: Tag, lost: list[str]) -> Tag:
    """The element of a joint's child, inside that of its parent.   inertial: its mass and inertia, None without both.

    Where the joint's frame is turned in the child and has an orientation as coordinate, a massless body is put between them.
    """
    what = f"joint {j.name!r}"
    if j.pose is not None or mujoco_joints(j.kind) is None or j.distribution is not None:
        part = "edges" if j.pose is not None else "distributions of velocities" if j.distribution is not None else j.kind.name
        raise ModelError(f"{what}: MJCF has no {part}{'' if part.endswith('s') else ' joints'}; write YAML")
    at, its = plain(j.placement, what), plain(j.child_placement, what)
    straight = same_frames(j.kind, its)
    made = parent.add("body", name=b.name if straight else f"{j.name} frame"[:128])
    place(made, composed(at, inverted(its)) if straight else at)
    _joints(made, j, its if straight else (np.eye(3), np.zeros(3)), what, lost)
    if not straight:
        made = made.add("body", name=b.name)
        place(made, inverted(its))
        lost.append(f"the turned frame of {what} in {b.name!r}, so a massless body is put between them")
    made.inside += [inertial] if inertial else []
    for i, s in enumerate(b.shapes):
        _geom(made, s, f"{b.name} {i}", assets, lost)
    return made


def place(tag: Tag, X: NumericPose) -> None:
    """Set the position and orientation of an element, unless they are zero."""
    R, p = X
    if p.any():
        tag.given["pos"] = p
    if not is_one(R):
        x, y, z, w = so3.quaternions(R)
        tag.given["quat"] = (w, x, y, z)


def _inertials(m: Mechanism) -> tuple[dict[str, Tag | None], list[str]]:
    """Body -> its <inertial>, None without mass and inertia; and the masses and moments that were zero, in words.

    Raises ModelError: a mass or moment is below what MuJoCo takes, or the least that it takes is not small beside the others.
    """
    given = {b.name: (numbers(b.mass, _what(b))[0], numbers(b.inertia, _what(b)).reshape(3, 3)) for b in m.bodies}
    heaviest, largest = max(mass for mass, _ in given.values()), max(I.max() for _, I in given.values())
    points = [numbers(b.com, _what(b)) for b in m.bodies] + [plain(j.placement, f"joint {j.name!r}")[1] for j in m.joints]
    largest = max(largest, heaviest * max(np.linalg.norm(p) for p in points) ** 2) or heaviest
    moved, made, raised = {j.child for j in m.joints if j.moves}, dict[str, Tag | None](), list[str]()
    for b in m.bodies:
        mass, I = given[b.name]
        if not (mass or I.any() or b.name in moved):
            made[b.name] = None
            continue
        moments, R = _principal(I)
        (written,), least_mass = _above_zero(np.array([mass]), heaviest, f"the mass of body {b.name!r}", "kg")
        above, least = _above_zero(moments, largest, f"a moment of inertia of body {b.name!r}", "kg m^2")
        made[b.name] = tag = Tag("inertial", {"pos": numbers(b.com, _what(b)), "mass": written})
        if least_mass:
            raised.append(f"mass of {b.name!r} {least_mass:.1g} kg")
        if least:
            raised.append(f"moments of {b.name!r} {least:.1g} kg m^2")
        if least or 2 * moments.max() > (1 - FLAT) * moments.sum():
            place(tag, (R, np.zeros(3)))
            tag.given["diaginertia"] = _allowed(above)
        else:
            tag.given["fullinertia"] = [I[at] for at in ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))]
    return made, raised


def _above_zero(x: np.ndarray, largest: float, what: str, unit: str) -> tuple[np.ndarray, float]:
    """Masses or moments x (n,) without zeros, and what is written in place of these, 0 if there are none.

    largest: mass or moment of the machine beside which that is nothing.
    """
    zero, least = x <= ROUNDING * x.max(), max(SMALL * largest, LEAST)
    if (~zero & (x < LEAST)).any() or (zero.any() and least > ZERO * largest):
        raise ModelError(
            f"{what} is {x.min():.2g} {unit}, and MuJoCo takes none below 1e-15, which is not small beside the largest of this "
            "machine; write YAML, or give the machine in larger units"
        )
    return np.where(zero, least, x), least if zero.any() else 0.0


def _allowed(moments: np.ndarray) -> np.ndarray:
    """Moments (3,) of which none is above the sum of the others, not even by rounding, as MuJoCo demands."""
    most = (moments.sum() - moments.max()) * (1 - 4 * np.finfo(float).eps)
    return np.minimum(moments, most) if moments.max() > most else moments


def _what(b: Body) -> str:
    return f"body {b.name!r}"


def _principal(I: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(3,) principal moments of an inertia and (3, 3) rotation to their axes, those of the body if I is diagonal."""
    if not (I - np.diag(np.diag(I))).any():
        return np.diag(I), np.eye(3)
    moments, R = np.linalg.eigh(I)
    return moments, R * np.linalg.det(R)  # a rotation, not a reflection


def _renamed(m: Mechanism) -> list[str]:
    """The names of coordinates and velocities, and their order, that differ in the file, in words."""
    words, inside = list[str](), dict[str, list[Joint]]()
    for j in m.joints:
        inside.setdefault(j.parent, []).append(j)
        labels = [x.label for x in mujoco_joints(j.kind) or () if x.label]
        names = [n for n in dict.fromkeys((*j.kind.q_names, *j.kind.v_names)) if n not in labels]
        if labels and names and not _is_freejoint(j):
            parts, lost = (", ".join(f"{j.name}.{n}" for n in listed) for listed in (labels, names))
            words.append(f"joint {j.name!r} as one joint, but as {parts}, which replace the names {lost}")
    order, waiting = list[Joint](), inside[WORLD][::-1]
    while waiting:
        order.append(waiting.pop())
        waiting += inside.get(order[-1].child, [])[::-1]
    listed = [[j.name for j in joints if j.moves] for joints in (m.joints, order)]
    if listed[0] != listed[1]:
        words.append(f"the order of the joints, but has {', '.join(listed[1])}")
    return words


def _is_freejoint(j: Joint) -> bool:
    """Whether a joint is written as a <freejoint>, with its names: one from the world's frame to that of the child, or to a
    massless body between them."""
    at, its = (plain(X, f"joint {j.name!r}") for X in (j.placement, j.child_placement))
    direct = same_frames(j.kind, its)
    return j.kind.name == "free" and j.parent == WORLD and is_one(at[0]) and not at[1].any() and not (direct and its[1].any())


def _joints(made: Tag, j: Joint, its: NumericPose, what: str, lost: list[str]) -> None:
    """Add the MuJoCo joints of a joint, one for each coordinate or orientation.   its: the joint's frame in the child."""
    R, p = its
    if np.isfinite(j.effort) and (j.kind.name == "free" or any(kind == "ball" for kind, *_ in mujoco_joints(j.kind) or ())):
        lost.append(f"the effort of {what}")
    if _is_freejoint(j):
        if not (j.damping.is_zero() and j.armature.is_zero() and j.stiffness.is_zero()):
            raise ModelError(f"{what}: MJCF has no spring, damper or armature on a free joint; write YAML")
        made.add("freejoint", name=j.name)
        return
    D, K = (_diagonal(x, word, what) for x, word in ((j.damping, "damping"), (j.stiffness, "stiffness")))
    armature, rest = numbers(j.armature, what), numbers(j.rest, what)
    slides = turned(j.kind)
    if armature[slides].any() or len({*D[slides]}) > 1:
        raise ModelError(f"{what}: dampers and armature of MJCF slides do not turn with the body; write YAML")
    i = 0
    for kind, axis, label in mujoco_joints(j.kind) or ():
        width = 3 if kind == "ball" else 1
        here: dict[str, Any] = {
            "name": j.name if not label else f"{j.name}.{label}",
            "type": kind,
            "pos": p if p.any() else None,
        }
        if kind != "ball":
            here["axis"] = R @ np.array(axis)
            here["range"] = range_of(j.limits[i], what, lost) if not j.mimic else None
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
