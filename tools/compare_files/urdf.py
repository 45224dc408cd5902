"""URDF files beside Pinocchio, MuJoCo and Drake: mass matrices, accelerations, limits.

Pinocchio ignores damping, and only Drake reads rotors, so that each gets a mechanism of its own. None of them reads the loops
and forces of the dialects, which are left out. Shapes are removed from the text, since meshes may be missing; joints that move
no mass, which the reader holds and names, are held in the engines too.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Set
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np

import pfaffian as pf
from pfaffian.formats.text.file import read_text
from tools.compare_files.report import Row
from tools.compare_files.sdf import OTHER, parsed
from tools.compare_files.trees import (
    CONTINUOUS,
    FOLLOWER,
    IMPOSSIBLE,
    MASSLESS,
    MISSING,
    OPEN,
    QUATERNIONS,
    Dynamics,
    along_world,
    bare,
    compared,
    drake,
)

SUFFIXES = (".urdf",)
"""Of files in this format."""

ROUNDED = 1e-8
"""Relative difference that counts as equal: engines turn tensors to principal axes and back."""


def _plain(path: Path, held: Set[str], floating: pf.Joint | None, rotors: bool) -> tuple[str, str]:
    """The text without shapes, and the name of its root link.   held: joints that become fixed ones.   floating: of the
    mechanism to the world; it is added if the file lacks it.   rotors: whether transmissions stay."""
    root = parsed(path)
    for link in root.iter("link"):
        for tag in ("visual", "collision"):
            for part in link.findall(tag):
                link.remove(part)
    for tag in ("gazebo", "mujoco") if rotors else ("gazebo", "transmission", "mujoco"):
        for part in root.findall(tag):
            root.remove(part)
    for joint in root.findall("joint"):
        if joint.get("name") in held:
            joint.set("type", "fixed")
            for law in joint.findall("mimic"):
                joint.remove(law)
    if floating and floating.name not in {j.get("name") for j in root.findall("joint")}:
        ElementTree.SubElement(root, "link", name="world")
        joint = ElementTree.SubElement(root, "joint", name=floating.name, type="floating")
        ElementTree.SubElement(joint, "parent", link="world")
        ElementTree.SubElement(joint, "child", link=floating.child)
    for part in root.iter():
        part.tag = re.sub(f"{OTHER}(rotor_inertia|gear_ratio)", r"drake:\1", part.tag)
    children = {j.find("child").get("link") for j in root.findall("joint")}
    first = next(x.get("name") for x in root.findall("link") if x.get("name") not in children)
    return ElementTree.tostring(root, encoding="unicode"), first


def pinocchio(text: str, _: str) -> Dynamics:
    import pinocchio as pin

    model = pin.buildModelFromXML(text)
    data = model.createData()
    names = [str(n) for n, j in list(zip(model.names, model.joints, strict=True))[1:] if j.nv]  # without the universe
    joints = [model.joints[model.getJointId(n)] for n in names]
    if any(j.nv not in (1, 6) for j in joints):
        raise ValueError("a joint has several velocities")

    def at(q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        whole, rest = pin.neutral(model), list(q)
        for j in joints:
            x = [rest.pop(0) for _ in range(max(1, j.nq * (j.nv > 1)))]
            whole[j.idx_q : j.idx_q + j.nq] = [np.cos(x[0]), np.sin(x[0])] if j.nq == 2 else x
        a = pin.aba(model, data, whole, v, np.zeros(model.nv)).copy()
        M = pin.crba(model, data, whole)
        return np.triu(M) + np.triu(M, 1).T, a

    limits = {
        n: (float(model.lowerPositionLimit[j.idx_q]), float(model.upperPositionLimit[j.idx_q]))
        for n, j in zip(names, joints, strict=True) if j.nq == 1
    }  # fmt: skip
    return Dynamics(names, at, limits)


def by_mujoco(text: str, _: str) -> Dynamics:
    import mujoco

    model = mujoco.MjModel.from_xml_string(text)
    off = mujoco.mjtDisableBit
    model.opt.disableflags |= int(off.mjDSBL_CONTACT | off.mjDSBL_LIMIT | off.mjDSBL_FRICTIONLOSS | off.mjDSBL_EQUALITY)
    data = mujoco.MjData(model)

    def at(q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        T, drift, where = np.eye(len(v)), np.zeros(len(v)), np.array(q)
        for j in np.flatnonzero(model.jnt_type == mujoco.mjtJoint.mjJNT_FREE):
            k, i = model.jnt_qposadr[j], model.jnt_dofadr[j]
            where[k + 3 : k + 7] = np.roll(q[k + 3 : k + 7], 1)
            T[i : i + 3, i : i + 3], drift[i : i + 3] = along_world(q[k : k + 7], v[i : i + 6])
        data.qpos, data.qvel = where, T @ v
        mujoco.mj_forward(model, data)
        M = np.zeros((model.nv, model.nv))
        mujoco.mj_fullM(model, data, M)
        return T.T @ M @ T, T.T @ (data.qacc - drift)

    limits = {model.joint(i).name: tuple(model.jnt_range[i]) for i in range(model.njnt) if model.jnt_limited[i]}
    massless = [x.get("name") for x in ElementTree.fromstring(text).iter("link") if _mass(x) == 0]
    nothing = 0.0, np.zeros(3), np.zeros((3, 3))
    names = [model.joint(i).name for i in range(model.njnt)]
    return Dynamics(names, at, limits, dict.fromkeys(massless, nothing), absolute=True)


def _mass(link: ElementTree.Element) -> float | None:
    mass = link.find("inertial/mass")
    return None if mass is None else float(mass.get("value", "nan"))


ENGINES: dict[str, tuple[Callable[[str, str], Dynamics], bool, bool]] = {
    "Pinocchio": (pinocchio, False, False),
    "MuJoCo": (by_mujoco, True, False),
    "Drake": (lambda text, root: drake(text, None if root == "world" else root), True, True),
}
"""Name -> its dynamics, whether it reads damping, and whether it reads the rotors of transmissions."""


def _causes(path: Path, m: pf.Mechanism, told: str) -> dict[str, str]:
    """Beginning of what differs -> why an engine is not right."""
    found = {"MuJoCo opens": OPEN, "Drake opens": OPEN}
    for joint in parsed(path).findall("joint"):
        if joint.get("type") == "continuous":
            found[f"Drake limits of '{joint.get('name')}'"] = CONTINUOUS
        elif (limit := joint.find("limit")) is not None and len({"lower", "upper"} & {*limit.keys()}) == 1:
            found |= {f"{name} limits of '{joint.get('name')}'": MISSING for name in ENGINES}
    if "quat_xyzw" in read_text(path):
        found |= {f"{name} {what}": QUATERNIONS for name in ENGINES for what in ("mass", "acc")}
    for j in m.joints:
        if j.mimic is not None:
            found |= {f"{name} limits of '{j.name}'": FOLLOWER for name in ENGINES}
    if any(not m.value(b.mass).any() and m.value(b.inertia).any() for b in m.bodies):
        found |= dict.fromkeys(("MuJoCo mass", "MuJoCo acc", "Drake mass", "Drake acc"), MASSLESS)
    if "inertias that no body can have" in told:
        found |= dict.fromkeys(("Drake mass", "Drake acc"), IMPOSSIBLE)
    return found


def _read(path: Path) -> pf.Mechanism:
    """The mechanism; it floats if nothing else in it moves."""
    try:
        return pf.formats.read_urdf(path, loops=False)
    except pf.PfaffianError as error:
        if "base='free'" not in str(error):
            raise
        return pf.formats.read_urdf(path, loops=False, base="free")


def examine(path: Path) -> Row:
    """Open a file and compare it."""
    with warnings.catch_warnings(record=True, action="always") as caught:
        try:
            m = bare(_read(path))
        except pf.PfaffianError as error:
            return Row(refused=str(error))
    row = Row(nv=m.nv, left_out="; ".join(str(w.message) for w in caught), same=ROUNDED)
    if any(j.nv > 1 and j.kind.name != "free" for j in m.joints):
        return replace(row, error="a joint has several velocities")
    row = replace(row, causes=_causes(path, m, row.left_out))
    m = m.with_(joints=[replace(j, stiffness=0 * j.stiffness, mimic=None) for j in m.joints])  # no engine reads them
    differences, notes = dict[str, float](), list[str]()
    try:
        floating = next((j for j in m.joints if j.kind.name == "free" and j.parent == "world"), None)
        held = {j.name for j in m.joints if j.kind.name == "fixed"}
        texts = {rotors: _plain(path, held, floating, rotors) for rotors in (False, True)}
    except (ElementTree.ParseError, AttributeError, StopIteration) as error:
        return replace(row, error=f"{type(error).__name__}: {error}")
    for name, (engine, damped, rotors) in ENGINES.items():
        read = [replace(j, damping=damped * j.damping, armature=rotors * j.armature) for j in m.joints]
        try:
            differences |= compared(m.with_(joints=read), engine(*texts[rotors]), name, ROUNDED)
        except ImportError:
            continue
        except (ValueError, RuntimeError, IndexError, np.linalg.LinAlgError, pf.PfaffianError) as error:
            notes.append(f"{name}: {' '.join(str(error).split())[:100]}")
    return replace(row, differences=differences, note="; ".join(notes))
