"""Reading USD stages with UsdPhysics as mechanisms."""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence, Set
from functools import partial
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np

from pfaffian.errors import ModelError, ModelWarning, notice
from pfaffian.formats.text.coupling import GravityCompensation
from pfaffian.formats.text.file import as_path, without_collection
from pfaffian.formats.text.left_out import LeftOut, leave, warned
from pfaffian.formats.text.run_settings import RunSettings
from pfaffian.formats.text.strict_number import printable
from pfaffian.formats.usd.usd_body import read_body, rigid_bodies
from pfaffian.formats.usd.usd_joint import Drive, UsdJoint, read_joint
from pfaffian.formats.usd.usd_names import soft_prims, unread
from pfaffian.formats.usd.usd_series import MasslessBody, in_series
from pfaffian.formats.usd.usd_stage import UsdStage, open_stage, readable
from pfaffian.formats.usd.usd_start import start_coordinates, start_rates
from pfaffian.model.body import WORLD, Body, body
from pfaffian.model.constraint import Closure, closure
from pfaffian.model.force import Actuator, GeneralisedForce, Potential, actuator
from pfaffian.model.joint import UNLIMITED, Joint, joint, mimic
from pfaffian.model.mechanism import Mechanism, mechanism
from pfaffian.model.pose import IDENTITY, NumericPose, Pose
from pfaffian.parts.friction import joint_friction


@without_collection
def read_usd(path: str | Path, *, strict: bool = False) -> tuple[Mechanism, RunSettings]:
    """Read the UsdPhysics mechanism of a USD file (.usd, .usda, .usdc), and its start: (Mechanism, RunSettings).

    The rigid bodies and joints of all articulations are read. The result has z up and SI units, whatever the stage has. A
    joint that is excluded from its articulation, or whose bodies are already connected by others, becomes a closure. A body
    without a joint gets a free joint. Masses follow the precedence of UsdPhysics: the body, then its enabled colliders, then
    bound materials. A drive becomes a spring and a damper of its joint, and a motor with maxForce as its limit. The run starts
    from the poses of the bodies in the stage, with the velocities that it gives. Properties that are not read are named.

    Args:
        path: of the file. The layers that it refers to must lie below its folder.
        strict: whether to refuse inertias that no body can have. By default they are used as they are, with a warning.
    Raises ModelError: usd-core is not installed, or SciPy where the hull of a mesh is needed; a prim is wrong, with its path
    and the reason.
    Warns ModelWarning: joints that close loops, and everything that was changed or left out.

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> import pfaffian as pf
        >>> text = '''#usda 1.0
        ... ( metersPerUnit = 1
        ...   upAxis = "Z" )
        ... def Xform "rod" ( prepend apiSchemas = ["PhysicsRigidBodyAPI", "PhysicsMassAPI"] )
        ... { float physics:mass = 2
        ...   point3f physics:centerOfMass = (0, 0, -0.5)
        ...   float3 physics:diagonalInertia = (0.5, 0.5, 0.25)
        ... }
        ... def PhysicsRevoluteJoint "hinge"
        ... { rel physics:body1 = </rod>
        ...   uniform token physics:axis = "Y"
        ... }
        ... '''
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     file = Path(folder, "pendulum.usda")
        ...     n = file.write_text(text)
        ...     m, settings = pf.formats.read_usd(file)
        >>> m, pf.mass_matrix(m)  # 0.5 + 2 * 0.5^2
        (<Mechanism 'pendulum': 1 body, 1 joint (nq 1, nv 1), inputs hinge>, array([[1.]]))
    """
    place = as_path(path)
    s = open_stage(place)
    with readable(s.source):
        return _read(s, place.stem, strict)


def _read(s: UsdStage, name: str, strict: bool) -> tuple[Mechanism, RunSettings]:
    """The mechanism and the start of a stage.   name: of the mechanism.   strict: whether to refuse impossible inertias."""
    prims = _bodies(s)
    named = dict(zip([str(p.GetPath()) for p in prims], prim_names(prims), strict=True))
    lost: LeftOut = {}
    joints, between = in_series(s, _joints(s, named), named, lost)
    tree, closing = _spanning(s, joints, prims, named, lost)
    bodies = [read_body(s, prim, named[str(prim.GetPath())], lost) for prim in prims]
    massless = _massless(between)
    by_path = {str(j.prim.GetPath()): j for j in joints}
    made = [_tree_joint(j, flipped, by_path) for j, flipped in tree]
    moving = [j for j, made_joint in zip((j for j, _ in tree), made, strict=True) if made_joint.nv]
    placed = {id(j) for j, _ in tree}
    in_tree = {path: j for path, j in by_path.items() if id(j) in placed}
    loops = [_closure(j, in_tree) for j in closing]
    driving = [*moving, *(j for j, c in zip(closing, loops, strict=True) if c.joint is not None)]
    _check_masses(s, tree, [*bodies, *(b for group in massless.values() for b in group)], named)
    if not moving:
        raise ModelError(f"{s.source}: no joint moves: joints or kinematicEnabled fix all bodies; let one move")
    gravity = _gravity(s, lost)
    m = mechanism(
        name,
        [x for b in bodies for x in (*massless.get(b.name, ()), b)],
        made,
        constraints=loops,
        forces=[*_friction(driving, lost), *_weightless(s, named, bodies, gravity)],
        actuators=[a for j in driving for a in _motors(j)],
        gravity=gravity,
        lenient=True,
    )
    _warn(s, joints, closing, lost)
    if any(shape.role == "collision" for b in bodies for shape in b.shapes):
        leave(lost, "contact between shapes is left out")
    stops = {n: x.at for n, x in between.items()}
    start, rates = start_coordinates(s, m, tree, named, stops, lost), start_rates(s, m, tree, named, stops, lost)
    pushed = _thrusts(driving, {j.name for j, flipped in tree if flipped})
    unread(s, lost)
    refused = {name: s.place(prim) for prim, name in zip(prims, named.values(), strict=True)} if strict else None
    return warned(m, s.source, lost, refused), RunSettings(guess=start, v=rates, u=pushed)


def _bodies(s: UsdStage) -> list[Any]:
    """The prims of the rigid bodies. Raises ModelError: there is none."""
    found = rigid_bodies(s)
    if not found:
        soft = soft_prims(s)
        others = f" beside what bends or flows, such as {printable(soft[0])}, which is not read" if soft else ""
        raise ModelError(f"{s.source}: there is no rigid body{others}; apply PhysicsRigidBodyAPI to the prims that move")
    return found


def _massless(between: Mapping[str, MasslessBody]) -> dict[str, list[Body]]:
    """Body -> the massless bodies of the joints in series that lead to it."""
    found: dict[str, list[Body]] = defaultdict(list)
    for name, stop in between.items():
        found[stop.before].append(body(name))
    return found


def _check_masses(s: UsdStage, tree: list[tuple[UsdJoint, bool]], bodies: Sequence[Body], named: Mapping[str, str]) -> None:
    """Raise ModelError for a body that a joint moves although neither it nor what it carries has a mass."""
    paths = {name: path for path, name in named.items()}
    carried: dict[str | None, float] = {b.name: float(b.mass) + abs(float(b.inertia[0, 0])) for b in bodies}
    for j, flipped in reversed(tree):
        parent, child = j.bodies[::-1] if flipped else j.bodies
        if child and j.kind != "fixed" and not carried[child] and not any(j.armature):
            reason = "it moves, but has no mass: neither a MassAPI nor an enabled collider of known volume gives one"
            raise s.error(
                s.stage.GetPrimAtPath(paths[child]) if child in paths else j.prim,
                f"{reason}; give it a mass, or make it kinematic",
            )
        carried[parent] = carried.get(parent, 0.0) + carried[child]


def prim_names(prims: Sequence[Any]) -> list[str]:
    """Names of prims, replaced by their paths if two have the same name."""
    short = [p.GetName() for p in prims]
    times = Counter(short)
    return [n if times[n] == 1 and n != WORLD else str(p.GetPath()) for n, p in zip(short, prims, strict=True)]


def _joints(s: UsdStage, named: dict[str, str]) -> list[UsdJoint]:
    """All enabled joints of a stage.   named: path of a rigid body -> its name."""
    from pxr import UsdPhysics

    prims = [p for p in s.prims if p.IsA(UsdPhysics.Joint)]
    found = [read_joint(s, p, name, named) for p, name in zip(prims, prim_names(prims), strict=True)]
    return [j for j in found if j is not None]


def _touching(joints: list[UsdJoint]) -> dict[str | None, list[int]]:
    """Body, None for the world -> indices of its joints."""
    found: dict[str | None, list[int]] = defaultdict(list)
    for i, j in enumerate(joints):
        for end in j.bodies:
            found[end].append(i)
    return found


def _grow(
    joints: list[UsdJoint],
    touching: Mapping[str | None, list[int]],
    tree: list[tuple[UsdJoint, bool]],
    placed: set[str | None],
    start: str | None,
) -> None:
    """Add the joints that `start` leads to, as by going through the list again and again: in each round, in its order."""
    ready = [(0, i) for i in touching[start]]
    while ready:
        turn, i = heapq.heappop(ready)
        j = joints[i]
        flipped = j.bodies[1] in placed
        if (j.bodies[0] in placed) == flipped:
            continue
        tree.append((j, flipped))
        new = j.bodies[0] if flipped else j.bodies[1]
        placed.add(new)
        for k in touching[new]:
            heapq.heappush(ready, (turn + (k <= i), k))


def _spanning(
    s: UsdStage, joints: list[UsdJoint], prims: Sequence[Any], named: dict[str, str], lost: LeftOut
) -> tuple[list[tuple[UsdJoint, bool]], list[UsdJoint]]:
    """The joints of the tree, parents first, each with whether it is flipped (its second body comes first); and those that
    close loops.

    A kinematic body is fixed where the stage places it, whatever joints it has. Another one that no joint connects to the
    world gets a free joint.
    """
    from pxr import UsdPhysics

    zero = (np.eye(3), np.zeros(3))

    def base(name: str, prim: Any, kind: str, at: NumericPose) -> None:
        joint = UsdJoint(f"{name} base", prim, kind, (None, name), (at, zero), (1.0, 0.0, 0.0), False)
        tree.append((joint, False))
        placed.add(name)

    usable = [j for j in joints if not j.excluded and j.kind not in ("distance",)]
    placed: set[str | None] = {None}
    tree = list[tuple[UsdJoint, bool]]()
    grow = partial(_grow, usable, _touching(usable), tree, placed)

    for prim in prims:
        if UsdPhysics.RigidBodyAPI(prim).GetKinematicEnabledAttr().Get():
            base(named[str(prim.GetPath())], prim, "fixed", s.frame(prim)[:2])
    still = frozenset(placed)
    for start in (None, *(name for name in named.values() if name in still)):
        grow(start)
    roots = [p for p in prims if p.HasAPI(UsdPhysics.ArticulationRootAPI)]
    for prim in [*roots, *prims]:
        name = named[str(prim.GetPath())]
        if name not in placed:
            base(name, prim, "free", zero)
            grow(name)
    idle = [j.name for j in joints if still.issuperset(j.bodies)]
    if idle:
        leave(lost, "joints between bodies that do not move are left out", *idle)
    used = {*(j.name for j, _ in tree), *idle}
    return tree, [j for j in joints if j.name not in used and j.kind != "free"]


def _pose(frame: NumericPose) -> Pose:
    R, p = frame
    turned = not np.array_equal(R, np.eye(3))
    return Pose(ca.SX(R) if turned else IDENTITY.R, ca.SX(p)) if turned or p.any() else IDENTITY


def _tree_joint(j: UsdJoint, flipped: bool, joints: Mapping[str, UsdJoint]) -> Joint:
    """A joint of the tree, from the body that comes first. If that is its second body, the motion is the inverse one: an axis
    is reversed, so that the coordinate keeps its sign.   joints: path -> joint."""
    first, second = (1, 0) if flipped else (0, 1)
    at, its = (_pose(j.frames[k]) for k in (first, second))
    axis = j.axis if j.single else (0.0, 0.0, 1.0)
    if flipped and j.single:
        axis = tuple(-x for x in axis)  # type: ignore[assignment]
    if flipped and j.kind == "universal":
        raise ModelError(f"joint {j.name!r} turns about two axes and is reached from its second body; swap body0 and body1")
    after = _follows(j, joints)
    passive: dict[str, Any] = {"armature": _each(j.armature), "damping": _each(j.damping)} if j.armature and not after else {}
    if passive and j.limits:
        passive |= _sprung(j, flipped)
    return joint(
        j.name, j.kind, j.bodies[first] or WORLD, j.bodies[second] or WORLD, axis=axis, placement=at, child_placement=its,
        mimic=after, **passive,
    )  # fmt: skip


def _sprung(j: UsdJoint, flipped: bool) -> dict[str, Any]:
    """Limits, stiffness, rest and damping of a joint with coordinates along axes, its drives included."""
    back, commutes = flipped and not j.single, j.commutes
    drives = [d or Drive() for d in j.drives]
    if (
        not commutes and j.kind != "universal" and any(j.drives)
    ):  # its velocities are along the axes of the second body, its drives along the first's
        j.lost.append(f"drives of a {j.kind} joint")
        drives = [Drive() for _ in drives]
    if back and not commutes:  # the coordinates of the inverse motion are others
        if any(span != UNLIMITED for span in j.limits):
            j.lost.append("limits, because the tree goes through the joint from its second body")
        return {}
    spans = [(-high, -low) if back else (low, high) for low, high in j.limits]
    return {
        "limits": spans[0] if j.single else spans,
        "stiffness": _each([d.stiffness for d in drives]),
        "rest": [-d.rest if back else d.rest for d in drives],
        "damping": _each([d.damping + c for d, c in zip(drives, j.damping, strict=True)]),
    }


def _each(values: Sequence[float]) -> Sequence[float] | float:
    """The values of all velocities; one zero if there are no others, which `joint` takes without checks."""
    return values if any(values) else 0.0


def _follows(j: UsdJoint, joints: Mapping[str, UsdJoint]) -> Any:
    """The Mimic of a joint, None if it follows no other.   joints: path -> joint."""
    if j.mimic is None:
        return None
    path, ratio, offset = j.mimic
    other = joints.get(path)
    if other is None:
        raise ModelError(f"joint {j.name!r} mimics {printable(path)}, which is not a joint; correct the path")
    if not (j.single and other.single):
        j.lost.append(f"a mimic of {other.name}, which needs two revolute or prismatic joints")
        return None
    driven = j.drive and (j.drive.stiffness or j.drive.damping)
    if j.limits != (UNLIMITED,) or driven or any((*j.armature, *j.damping)):
        j.lost.append("limits, drives, armature and damping of a joint that follows another")
    return mimic({other.name: ratio * j.unit / other.unit}, offset)  # degrees and lengths of the stage


def _closure(j: UsdJoint, tree: Mapping[str, UsdJoint]) -> Closure:
    """The closure of a joint that closes a loop, with its drive, limits and rotor.   tree: path -> joint of the tree."""
    after = _follows(j, tree) if j.mimic and j.mimic[0] in tree else None
    if j.mimic and j.mimic[0] not in tree:
        j.lost.append("a mimic of a joint that is not in the tree")
    kinds = {"fixed": "weld"}
    a, b = (_pose(frame) for frame in j.frames)
    length = j.length if j.kind == "distance" else None
    return closure(j.name, kinds.get(j.kind, j.kind), j.bodies[0] or WORLD, j.bodies[1] or WORLD, placement_a=a, placement_b=b,
                   axis=_closing_axis(j), axis_b=(0, 1, 0) if j.kind == "universal" else None, length=length,
                   **({"mimic": after} if after else _inside(j)))  # fmt: skip


def _inside(j: UsdJoint) -> dict[str, Any]:
    """What a joint that closes a loop carries, as arguments of `closure`: limits and drive of a hinge or slider, and the
    damping and the rotors of all."""
    given: dict[str, Any] = {"armature": _each(j.armature), "damping": _each(j.damping)}
    if not j.single:
        return given
    drive = j.drive or Drive()
    given |= {"limits": j.limits[0]} if j.limits else {}
    if not (drive.stiffness or drive.damping or sum(j.damping)):
        return given
    return given | {"stiffness": drive.stiffness, "damping": drive.damping + sum(j.damping), "rest": drive.rest}


def _closing_axis(j: UsdJoint) -> tuple[float, float, float]:
    return j.axis if j.single else (1.0, 0.0, 0.0) if j.kind == "universal" else (0.0, 0.0, 1.0)


def _motors(j: UsdJoint) -> list[Actuator]:
    """The motor of a revolute or prismatic joint, and those of other joints on coordinates that are driven."""
    if j.single:
        most = j.drive.most if j.drive else np.inf
        return [] if j.mimic else [actuator(j.name, j.name, limits=(-most, most))]
    if not j.drives or not (j.commutes or j.kind == "universal"):
        return []
    driven = [(i, n, d) for i, (n, d) in enumerate(zip(j.names, j.drives, strict=True)) if d]
    return [actuator(f"{j.name} {n}"[:128], j.name, component=i, limits=(-d.most, d.most)) for i, n, d in driven]


def _thrusts(driving: Sequence[UsdJoint], flipped: Set[str]) -> dict[str, float]:
    """Motor -> its constant input, from drives with a target velocity and without stiffness.   flipped: joints that are
    reached from their second body."""
    if not any(d and d.thrust for j in driving for d in j.drives):
        return {}
    found = dict[str, float]()
    for j in driving:
        sign = -1.0 if j.name in flipped and not j.single else 1.0
        thrusts = [sign * d.thrust for d in j.drives if d]
        found |= {a.name: x for a, x in zip(_motors(j), thrusts, strict=False) if x}
    return found


def _friction(moving: Sequence[UsdJoint], lost: LeftOut) -> list[GeneralisedForce]:
    """Newton's dry friction of joints with one velocity, smoothed."""
    found = []
    for j in moving:
        if not any(j.friction):
            continue
        if j.single:
            leave(lost, "dry friction is smooth below 0.001 rad/s or m/s", j.name)
            found.append(joint_friction(f"{j.name} friction"[:128], j.name, j.friction[0]))
        else:
            j.lost.append("friction")
    return found


def _weightless(s: UsdStage, named: Mapping[str, str], bodies: Sequence[Body], gravity: np.ndarray) -> list[Potential]:
    """Bodies on which gravity does not act (PhysX): for each, a force at the mass centre that carries its weight."""
    found = []
    for path, b in zip(named, bodies, strict=True):
        off = s.stage.GetPrimAtPath(path).GetAttribute("physxRigidBody:disableGravity")
        if off and off.Get():
            carried = GravityCompensation(b.name, b.com, -b.mass * ca.SX(gravity))
            found.append(Potential(f"{b.name} without gravity"[:128], carried))
    return found


def _gravity(s: UsdStage, lost: LeftOut) -> np.ndarray:
    """(3,) [m/s^2] gravity of the first physics scene; 9.81 downwards if the stage gives none."""
    from pxr import UsdPhysics

    scenes = [p for p in s.prims if p.IsA(UsdPhysics.Scene)]
    if not scenes:
        return np.array([0.0, 0.0, -9.81])
    first, *others = (_gravity_of(s, scene) for scene in scenes)
    if not np.allclose([first, *others], first):
        leave(lost, "gravity is that of the first of several physics scenes", str(scenes[0].GetPath()))
    return first


def _gravity_of(s: UsdStage, scene: Any) -> np.ndarray:
    """(3,) [m/s^2] gravity of a physics scene."""
    from pxr import UsdPhysics

    down = np.array([0.0, 0.0, -1.0])
    api, enabled = UsdPhysics.Scene(scene), scene.GetAttribute("newton:gravityEnabled")
    if enabled and enabled.Get() is False:
        return 0.0 * down
    size = api.GetGravityMagnitudeAttr().Get()
    n = np.array(api.GetGravityDirectionAttr().Get() or (0, 0, 0), dtype=float)
    if n.any():
        down = s.up @ (n / np.linalg.norm(n))
    return down * (9.81 if size is None or not np.isfinite(size) or size < 0 else float(size) * s.length)


def _warn(s: UsdStage, joints: list[UsdJoint], closing: list[UsdJoint], lost: LeftOut) -> None:
    """Warn of joints that close loops, of drives, and of everything that is left out."""
    if closing:
        words = [
            f"{printable(j.name)} ({j.kind}{', excluded from its articulation' if j.excluded else ''})" for j in closing[:10]
        ]
        more = f" and {len(closing) - 10} more" if len(closing) > 10 else ""
        notice(f"{s.source}: joints close loops as constraints: {', '.join(words)}{more}", ModelWarning)
    driven = [j.name for j in joints if any(d and (d.stiffness or d.damping) and d.most < np.inf for d in j.drives)]
    if driven:
        leave(lost, "drives act as springs and dampers without a limit, and maxForce limits the motors", *driven)
    left = [f"{j.name}: {word}" for j in joints for word in j.lost]
    if left:
        leave(lost, "left out", *left)
