"""Accelerations and mass matrices of trees of floating joints and those with one velocity, beside other engines: for URDF."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple
from xml.etree import ElementTree

import numpy as np

import pfaffian as pf

UNLIMITED = (-np.inf, np.inf)

FAR = 1e16
"""From here on numbers stand for infinity, in SDF by its specification."""

OPEN = "limits (0, 0), also where the file gives none, are no limits: findings/urdf-limit-without-bounds.sh"
IMPOSSIBLE = "inertias that no body can have become those of balls of water: findings/drake-impossible-inertia.sh"
MASSLESS = "an inertia without a mass is left out by MuJoCo, and becomes a ball of 1 kg in Drake: the same script"
CONTINUOUS = "a continuous joint keeps its limits: findings/urdf-continuous-with-limits.sh"
FOLLOWER = "a joint that follows others has no limits here, and does not follow there"
UNIVERSAL = "both axes get the damping of the first, and neither springs nor limits: findings/drake-sdf-universal-damping.sh"
SCREW = "Drake gives a screw neither springs nor limits: findings/drake-sdf-screw-springs.sh"
LENGTH = "libsdformat places joints elsewhere by quaternions that are not of unit length"
MISSING = "a bound that <limit> leaves out is 0 by the format, and open there: findings/urdf-limit-without-bounds.sh"
QUATERNIONS = "quat_xyzw, which urdfdom reads from version 1.1 on, and MuJoCo and Drake never"
"""Causes of differences."""


class Dynamics(NamedTuple):
    """What an engine computes.   names: of its joints that move, in its order.   at: (q, v) in this order, of each joint as in
    the library -> mass matrix and accelerations without inputs.   limits: joint -> (low, high).   masses: link -> mass, mass
    centre, inertia about it, where the engine may take others than the file gives.   absolute: whether q has the poses of
    floating bodies in the world, also where their joints are placed elsewhere."""

    names: list[str]
    at: Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]
    limits: Mapping[str, tuple[float, float]]
    masses: Mapping[str, tuple[float, np.ndarray, np.ndarray]] = MappingProxyType({})
    absolute: bool = False


def bare(m: pf.Mechanism) -> pf.Mechanism:
    """The mechanism without constraints, and without forces other than gravity; most engines read those differently."""
    return m.with_(constraints=(), forces=(), actuators=())


def compared(m: pf.Mechanism, engine: Dynamics, label: str, same: float) -> dict[str, float]:
    """Largest relative differences of mass matrix, accelerations and limits at three random states; where they are above
    `same`, also with the engine's own masses in the mechanism.

    Raises ValueError: the engine has other joints.
    """
    found = _moved(m, engine, label)
    if engine.masses and max(found.values()) > same:
        theirs = [pf.body(b.name, *engine.masses[b.name]) if b.name in engine.masses else b for b in m.bodies]
        found[f"{label} with its inertias"] = max(_moved(m.with_(bodies=theirs), engine, label).values())
    return found | limits_apart(m, engine.limits, label)


def _moved(m: pf.Mechanism, engine: Dynamics, label: str) -> dict[str, float]:
    known = [j.name for j in m.joints if j.nv]
    if sorted(engine.names) != sorted(known):
        raise ValueError(f"{label} has other joints: {sorted({*engine.names} ^ {*known})[:5]}")
    back_q, back = (
        np.concatenate([np.arange(n)[of[name]] for name in engine.names]) for n, of in ((m.nq, m.q_slices), (m.nv, m.v_slices))
    )
    order = np.argsort(back)
    parts = {"M": lambda T: T.M, "a": lambda T: pf.FORMULATIONS["gauss"](T).v_dot}
    ours = pf.compile_terms(m, parts, backend="interpreter", lanes=1)
    worst = {"mass matrix": 0.0, "accelerations": 0.0}
    for seed in range(3):
        random = np.random.default_rng(seed)
        q, v = random.uniform(-1, 1, m.nq), random.normal(size=m.nv)
        for j in (j for j in m.joints if j.kind.name == "free"):
            turn = q[m.q_slices[j.name]][3:]
            turn /= np.linalg.norm(turn)
        placed = _in_world(m, q) if engine.absolute else q
        M, a = engine.at(placed[back_q], v[back])
        found = ours(q, v, np.zeros(m.nu))
        worst["mass matrix"] = max(worst["mass matrix"], apart(np.squeeze(found["M"]), M[np.ix_(order, order)], 1e-300))
        worst["accelerations"] = max(worst["accelerations"], apart(np.ravel(found["a"]), a[order], 1.0))
    return {f"{label} {what}": x for what, x in worst.items()}


def _in_world(m: pf.Mechanism, q: np.ndarray) -> np.ndarray:
    """q with the poses of floating bodies in the world in place of those in the frames of their joints."""
    found, where = np.array(q), pf.forward_kinematics(m, q)
    for j in m.joints:
        if j.kind.name == "free":
            found[m.q_slices[j.name]] = np.r_[where[j.child].position, where[j.child].quaternion]
    return found


def limits_apart(
    m: pf.Mechanism, limits: Mapping[str, tuple[float, float]], label: str, among: Sequence[str] | None = None
) -> dict[str, float]:
    """Names the first joint of one coordinate whose limits differ, if there is one; joints that `limits` lacks have none.

    Limits (0, 0) that the engine leaves open are named apart: `OPEN` says why.   among: joints to compare, all if None.
    """

    def near(x: Any) -> np.ndarray:
        return np.where(np.abs(x) < FAR, x, np.copysign(np.inf, x))

    pairs = {n: (near(x), near(limits.get(n, UNLIMITED))) for n, x in zip(m.q_names, m.q_limits, strict=True)}
    names = [j.name for j in m.joints if j.name in pairs and (among is None or j.name in among)]
    differ = [name for name in names if not np.allclose(*pairs[name], rtol=1e-6)]
    opened = [n for n in differ if not pairs[n][0].any() and not np.isfinite(pairs[n][1]).any()]
    first = {f"{label} limits of '{n}'": 1.0 for n in [n for n in differ if n not in opened][:1]}
    return first | {f"{label} opens '{n}'": 1.0 for n in opened[:1]}


def apart(ours: np.ndarray, theirs: np.ndarray, least: float) -> float:
    """Their difference beside the largest entry, which counts as at least `least`: a motion may have no acceleration."""
    return float(np.abs(np.reshape(ours, theirs.shape) - theirs).max() / max(least, float(np.abs(theirs).max())))


def along_world(q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The rotation R of a free body, and what R v_dot lacks of the acceleration along the world's axes."""
    x, y, z, w = q[3:]
    cross = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    R = np.eye(3) + 2 * w * cross + 2 * cross @ cross
    return R, R @ np.cross(v[3:], v[:3])


def drake(text: str, root: str | None) -> Dynamics:
    """Drake's dynamics of a URDF text.   root: link that is welded to the world; None if the file does that.

    Raises ImportError: Drake is not installed; RuntimeError: it does not read the file.
    """
    from pydrake.all import MultibodyPlant, Parser

    plant = MultibodyPlant(0.0)
    Parser(plant).AddModelsFromString(text, "urdf")
    if root is not None:
        plant.WeldFrames(plant.world_frame(), plant.GetFrameByName(root))
    plant.Finalize()
    joints = [plant.get_joint(i) for i in plant.GetJointIndices()]
    moving = sorted((j for j in joints if j.num_velocities()), key=lambda j: j.velocity_start())
    if any(j.num_velocities() not in (1, 6) for j in moving):
        raise ValueError("a joint has several velocities")
    context = plant.CreateDefaultContext()

    def at(q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        T, drift, where = np.eye(len(v)), np.zeros(len(v)), np.array(q)
        for j in (j for j in moving if j.num_velocities() == 6):
            k, i = j.position_start(), j.velocity_start()
            R, moved = along_world(q[k : k + 7], v[i : i + 6])
            where[k : k + 7] = np.r_[q[k + 6], q[k + 3 : k + 6], q[k : k + 3]]
            T[i : i + 6, i : i + 6] = np.block([[np.zeros((3, 3)), R], [R, np.zeros((3, 3))]])
            drift[i + 3 : i + 6] = moved
        plant.SetPositions(context, where)
        plant.SetVelocities(context, T @ v)
        M = plant.CalcMassMatrix(context)
        force = plant.CalcGravityGeneralizedForces(context) - plant.CalcBiasTerm(context)
        damping = np.concatenate([j.default_damping_vector() for j in moving])
        return T.T @ M @ T, np.linalg.solve(T, np.linalg.solve(M, force - damping * (T @ v)) - drift)

    axes = [j for j in moving if j.num_velocities() == 1]
    limits = {j.name(): (float(j.position_lower_limits()[0]), float(j.position_upper_limits()[0])) for j in axes}
    floating = {
        j.find("child").get("link"): j.get("name")
        for j in ElementTree.fromstring(text.replace("drake:", "")).findall("joint[@type='floating']")
    }
    names = [floating.get(j.child_body().name(), j.name()) for j in moving]  # of the world's child there is no joint there
    return Dynamics(names, at, limits, _masses(plant), absolute=True)


def _masses(plant: Any) -> dict[str, tuple[float, np.ndarray, np.ndarray]]:
    """The masses, mass centres and inertias that Drake has, which are not those of the file if no body can have those."""
    from pydrake.all import BodyIndex

    found = {}
    for body in map(plant.get_body, map(BodyIndex, range(1, plant.num_bodies()))):
        whole = body.default_spatial_inertia()
        com = np.array(whole.get_com())
        inertia = whole.Shift(com).CalcRotationalInertia().CopyToFullMatrix3()
        found[body.name()] = float(whole.get_mass()), com, np.array(inertia)
    return found
