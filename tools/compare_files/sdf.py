"""SDF files beside Drake, which reads them by libsdformat: mass matrices, accelerations, limits of each model of a world.

Drake gets each model alone, without what does not move it, and with the gravity of the mechanism, since it does not read that
of a world. It reads neither <mimic>, gearboxes nor loops closed by joints, so that trees are compared in which all joints move
by themselves.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import numpy as np

import pfaffian as pf
from pfaffian.formats.text.file import read_text
from pfaffian.formats.text.unit_length import NORMALISED
from pfaffian.formats.text.xml import well_formed
from tools.compare_files.report import Row
from tools.compare_files.trees import FOLLOWER, IMPOSSIBLE, LENGTH, SCREW, UNIVERSAL, apart, bare, limits_apart

SECOND = " axis2"
"""Ending of the reader's names for the second axis of a universal joint."""

SUFFIXES = (".sdf", ".world")
"""Of files in this format."""

ROUNDED = 1e-8
"""Relative difference that counts as equal: Drake turns tensors to unit inertias and back."""

MOVELESS = ("plugin", "sensor", "visual", "light", "audio_source", "particle_emitter", "projector", "battery")
"""Elements that do not move a model in Drake, but may name files that are missing."""

BESIDE = ("model", "include", "actor", "scene", "gui", "road", "population", "state", "physics", "joint")
"""Elements of a world beside the model that is read."""

OTHER = "of-others-"
PREFIXED = re.compile(r"(</?|\s)\w+:+(\w+)")
"""Names with a prefix, which no file of SDF declares, are those of other programs."""

UNDEFINED = re.compile(r"XML Element\[([^]]+)\], child of element\[([^]]+)\], not defined in SDF")
"""What Drake says of an element that SDFormat does not define; others read the file without it."""

WELD = " attached"
"""Ending of the reader's names for the welds of detachable joints, which are plugins in the file."""

Motion = Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]
"""(q, v) of the mechanism -> mass matrix and accelerations of its velocities."""


Spans = dict[str, tuple[float, float]]
"""Name -> (low, high)."""


def parsed(path: Path) -> Element:
    """The root of a file; names with a prefix that it does not declare, such as Drake's, get another one."""
    return ElementTree.fromstring(PREFIXED.sub(rf"\1{OTHER}\2", well_formed(read_text(path))))


def models(path: Path) -> Iterator[tuple[str | None, str]]:
    """Name and text of each model of a file that is not static; the name is None if it is the only one. Of models that differ
    in their names and in the places of floating bodies alone, only the first one: worlds repeat one model a thousand times."""
    root = parsed(path)
    found, seen = _parts(root), set[str]()
    for own in found:
        if own.findtext("static", "false").strip() in ("1", "true"):
            continue
        called = (own.findtext("uri") or "").strip().rpartition("/")[2] if own.tag == "include" else None
        name, text = (
            own.get("name") or own.findtext("name") or called,
            ElementTree.tostring(_alone(root, own), encoding="unicode"),
        )
        nameless = _without_place(text) if "world" not in ElementTree.tostring(own, encoding="unicode") else text
        if nameless not in seen:
            yield name if len(found) > 1 else None, text
        seen.add(nameless)


def _alone(parent: Element, own: Element) -> Element:
    """A copy of an element without what does not move a model, and without all models but one."""
    copy = Element(parent.tag, {k: x for k, x in parent.attrib.items() if not k.startswith(OTHER)})
    copy.text, above = parent.text, parent.tag in ("sdf", "gazebo", "world")
    unneeded = MOVELESS + BESIDE if above else MOVELESS
    rest = [e for e in parent if not (e.tag in unneeded or e.tag.startswith(OTHER) or (e.tag == "world" and own not in e))]
    copy.extend(_alone(e, own) for e in parent if e is own or e in rest)
    return copy


def around(path: Path) -> list[Path]:
    """Folders in which the models may lie that a file includes: those of the file and of two levels above it, and `models`."""
    return [f for above in path.absolute().parents[:3] for f in (above, above / "models") if f.is_dir()]


def _placed(text: str, folders: list[Path]) -> str:
    """The text with the folders of included models in place of names, which Drake does not look for."""
    root = ElementTree.fromstring(text)
    for uri in root.iter("uri"):
        name = (uri.text or "").strip().rpartition("://")[2]
        if (
            uri.text
            and "http" not in uri.text
            and (found := [f / name for f in folders if (f / name / "model.config").is_file()])
        ):
            uri.text = str(found[0])
    return ElementTree.tostring(root, encoding="unicode")


def _without_place(text: str) -> str:
    """The text of a file with one model, without the model's name and pose."""
    root = ElementTree.fromstring(text)
    for model in _parts(root):
        model.attrib.pop("name", None)
        for pose in model.findall("pose"):
            model.remove(pose)
    return ElementTree.tostring(root, encoding="unicode")


def _parts(root: ElementTree.Element) -> list[ElementTree.Element]:
    return [e for place in (root, *root.findall("world")) for e in place if e.tag in ("model", "include")]


def as_tree(text: str, m: pf.Mechanism) -> tuple[str, pf.Mechanism]:
    """The model without the joints that close loops, gearboxes and laws of followers, in the text and in the mechanism; in the
    text also with the welds of plugins."""
    root, closing = ElementTree.fromstring(text), {c.name for c in m.constraints}
    for parent in [*root.iter()]:
        for e in [e for e in parent if e.tag == "mimic" or (e.tag == "joint" and e.get("name") in closing)]:
            parent.remove(e)
    for joint in root.iter("joint"):
        if joint.get("type") == "revolute2":  # which Drake lacks
            joint.set("type", "universal")
    for j in [j for j in m.joints if j.name.endswith(WELD) and j.kind.name == "fixed"]:
        joint = ElementTree.SubElement(next(root.iter("model")), "joint", name=j.name, type="fixed")
        for tag, link in (("parent", j.parent), ("child", j.child)):
            ElementTree.SubElement(joint, tag).text = link
    motors = [a for a in m.actuators if a.joint not in closing]
    forces = [f for f in m.forces if f.name.removesuffix(" friction") not in closing]
    loose = m.with_(constraints=(), joints=[replace(j, mimic=None) for j in m.joints], actuators=motors, forces=forces)
    return ElementTree.tostring(root, encoding="unicode"), loose


def defined(text: str, m: pf.Mechanism) -> tuple[Motion, Spans, Spans]:
    """`by_drake`, without the elements that SDFormat does not define."""
    while True:
        try:
            return by_drake(text, m)
        except RuntimeError as error:
            found = UNDEFINED.search(str(error))
            root, before = ElementTree.fromstring(text), text
            for parent in root.iter(found[2]) if found else ():
                for e in parent.findall(found[1]):
                    parent.remove(e)
            text = ElementTree.tostring(root, encoding="unicode")
            if text == before:
                raise


def by_drake(text: str, m: pf.Mechanism) -> tuple[Motion, Spans, Spans]:
    """Drake's dynamics of a model in the velocities of the mechanism; the limits of joints, and those of their effort.

    Raises ImportError: Drake is not installed; RuntimeError: it does not read the text; ValueError: it has other joints.
    """
    from pydrake.all import BodyIndex, MultibodyPlant, Parser, Quaternion, RigidTransform, RollPitchYaw, RotationMatrix

    plant = MultibodyPlant(0.0)
    Parser(plant).AddModelsFromString(text, "sdf")
    plant.mutable_gravity_field().set_gravity_vector(m.value(m.gravity).ravel())
    plant.Finalize()
    context = plant.CreateDefaultContext()
    if plant.num_actuators():
        plant.get_actuation_input_port().FixValue(context, np.zeros(plant.num_actuated_dofs()))
    bodies = {_within(plant, b): b for b in map(plant.get_body, map(BodyIndex, range(1, plant.num_bodies())))}
    moving = [j for j in map(plant.get_joint, plant.GetJointIndices()) if j.num_velocities()]
    joints = {j.name(): j for j in moving} | {_within(plant, j): j for j in moving}  # Drake puts a joint into its child's model
    named = {j.name for j in m.joints if j.nv and j.kind.name != "free"}
    joints |= {f"{n}{SECOND}": j for n, j in joints.items() if f"{n}{SECOND}" in named}
    if plant.num_velocities() != m.nv or not named <= {*joints}:
        raise ValueError(f"Drake has other joints: {sorted({*joints} ^ named)[:5]}")
    rows = dict(zip(m.v_names, range(m.nv), strict=True)), dict(zip(m.q_names, range(m.nq), strict=True))

    def at(q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        T, drift = np.zeros((m.nv, m.nv)), np.zeros(m.nv)  # Drake's velocities are T v, and their rates T v_dot + drift
        where, placed = plant.GetPositions(context), []
        for j in m.joints:
            if not j.nv:
                continue
            i, k = (names[next(n for n in names if n == j.name or n.startswith(f"{j.name}."))] for names in rows)
            x, u = q[k : k + j.nq], v[i : i + j.nv]
            if j.kind.name == "free":
                pose, root = RigidTransform(Quaternion(np.roll(x[3:], 1)), x[:3]), bodies[j.child]
                R, first = pose.rotation().matrix(), root.floating_velocities_start_in_v()
                T[first : first + 3, i + 3 : i + 6] = T[first + 3 : first + 6, i : i + 3] = R
                drift[first + 3 : first + 6] = R @ np.cross(u[3:], u[:3])
                placed.append((root, pose))
            elif j.kind.name == "spherical":
                R, first = RotationMatrix(Quaternion(np.roll(x, 1))), joints[j.name].velocity_start()
                T[first : first + 3, i : i + 3] = R.matrix()
                where[joints[j.name].position_start() :][:3] = RollPitchYaw(R).vector()
            else:
                second = j.name.endswith(SECOND) and joints[j.name].num_velocities() == 2
                T[joints[j.name].velocity_start() + second, i] = 1
                where[joints[j.name].position_start() + second] = x[0]
        plant.SetPositions(context, where)
        for root, pose in placed:
            plant.SetFreeBodyPose(context, root, pose)
        plant.SetVelocities(context, T @ v)
        found = plant.EvalTimeDerivatives(context).get_generalized_velocity().CopyToVector()
        return T.T @ plant.CalcMassMatrix(context) @ T, np.linalg.solve(T, found - drift)

    axes = {n: (j, j.num_positions() - 1 if n.endswith(SECOND) else 0) for n, j in joints.items() if n in named}
    axes = {n: (j, k) for n, (j, k) in axes.items() if j.num_positions() < 3}
    motors = map(plant.get_joint_actuator, plant.GetJointActuatorIndices())
    efforts = {a.joint().name(): (-a.effort_limit(), a.effort_limit()) for a in motors}
    return at, {n: (j.position_lower_limits()[k], j.position_upper_limits()[k]) for n, (j, k) in axes.items()}, efforts


def _within(plant: Any, part: Any) -> str:
    """Name of a body or joint within the model: those of nested models, and its own."""
    return "::".join([*plant.GetModelInstanceName(part.model_instance()).split("::")[1:], part.name()])


def examine(path: Path) -> Row:
    """Open the models of a file and compare them; the row has the largest differences."""
    try:
        rows = [_examined(path, *model) for model in models(path)]
    except (ElementTree.ParseError, pf.PfaffianError) as error:
        return Row(refused=str(error))
    if not rows or all(r.refused for r in rows):
        return rows[0] if rows else Row(refused="no model moves")
    keys = dict.fromkeys(k for r in rows for k in r.differences)
    without = [r.error or r.refused for r in sorted(rows, key=lambda r: not r.error) if not r.differences]
    skipped = f"{len(without)} of {len(rows)} models not compared: {without[0]}" if without else ""
    return Row(
        left_out="; ".join(filter(None, (r.left_out for r in rows))),
        error="" if keys else skipped,
        nv=sum(r.nv for r in rows),
        differences={k: max(r.differences.get(k, 0.0) for r in rows) for k in keys},
        same=ROUNDED,
        causes={k: why for r in rows for k, why in r.causes.items()},
        note=skipped if keys else "",
    )


def _examined(path: Path, name: str | None, text: str) -> Row:
    with warnings.catch_warnings(record=True, action="always") as caught:
        try:
            m, _ = pf.formats.read_sdf(path, model=name, friction="none", meshes=around(path))
        except pf.PfaffianError as error:
            return Row(refused=str(error))
    row = Row(nv=m.nv, left_out="; ".join(str(w.message) for w in caught))
    row = replace(row, causes=_causes(m, row.left_out))
    try:
        text, tree = as_tree(_placed(text, around(path)), m)
        return replace(row, differences=_differences(tree, *defined(text, tree)))
    except ImportError:
        return replace(row, error="Drake is not installed: pip install drake")
    except (ValueError, RuntimeError, IndexError, MemoryError, np.linalg.LinAlgError, pf.PfaffianError) as error:
        return replace(row, error=f"{m.name}: {type(error).__name__}: {' '.join(str(error).split())[:200]}")


def _causes(m: pf.Mechanism, told: str) -> dict[str, str]:
    """Beginning of what differs -> why Drake is not right."""
    found, known = dict[str, str](), {j.name: j for j in m.joints}
    for j in m.joints:
        if j.kind.name == "helical":
            found[f"Drake limits of '{j.name}'"] = SCREW
            found |= {"Drake acc": SCREW} if np.any(m.value(j.stiffness)) else {}
        if j.mimic is not None:
            found[f"Drake limits of '{j.name}'"] = FOLLOWER
        first = known.get(j.name.removesuffix(SECOND), j)
        if first is not j:
            found |= {f"Drake limits of '{x.name}'": UNIVERSAL for x in (first, j)}
            dampings = m.value(first.damping) != m.value(j.damping)
            if np.any(dampings) or np.any(m.value(first.stiffness)) or np.any(m.value(j.stiffness)):
                found["Drake acc"] = UNIVERSAL
    for words, why in (("inertias that no body can have", IMPOSSIBLE), (NORMALISED, LENGTH)):
        if words in told or (why is IMPOSSIBLE and any(b.mass.is_zero() and not b.inertia.is_zero() for b in m.bodies)):
            found |= dict.fromkeys(("Drake mass", "Drake acc"), why)
    return found


def _differences(m: pf.Mechanism, theirs: Motion, limits: Spans, efforts: Spans) -> dict[str, float]:
    given = {a.name: a.limits for a in m.actuators if a.name in efforts}
    strength = [n for n, span in given.items() if not np.allclose(span, efforts[n])]
    m = bare(m)
    parts = {"M": lambda T: T.M, "a": lambda T: pf.FORMULATIONS["gauss"](T).v_dot}
    ours = pf.compile_terms(m, parts, backend="interpreter", lanes=1)
    worst = {"Drake mass matrix": 0.0, "Drake accelerations": 0.0}
    for seed in range(3):
        random = np.random.default_rng(seed)
        q, v = pf.random_configuration(m, random), random.normal(size=m.nv)
        M, a = theirs(q, v)
        found = ours(q, v, np.zeros(m.nu))
        worst["Drake mass matrix"] = max(worst["Drake mass matrix"], apart(found["M"], M, 1e-300))
        worst["Drake accelerations"] = max(worst["Drake accelerations"], apart(found["a"], a, 1.0))
    return worst | limits_apart(m, limits, "Drake") | {f"Drake effort of '{n}'": 1.0 for n in strength[:1]}
