"""One URDF file read by the library and by Pinocchio, with the map between their coordinates."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np
import pinocchio as pin

import pfaffian as pf
from pfaffian.errors import ModelWarning

ROBOTS = {
    f"{p.parts[-3]}/{p.stem}": p
    for p in sorted(Path(str(f.locate())) for f in distribution("example-robot-data").files or [] if f.suffix == ".urdf")
}
NO_LINK = {"ur_description/ur3"}  # xacro source that Pinocchio refuses as well
ONE_BODY = {"hector_description/quadrotor_base", "iris_description/iris_simple"}  # moves only on a free base


@dataclass(frozen=True)
class Twin:
    """The same robot in both engines."""

    ours: pf.Mechanism
    model: Any
    data: Any

    def q(self, q: np.ndarray) -> np.ndarray:
        """Our q in Pinocchio's order, where the angle of a continuous or planar joint is (cos, sin)."""
        out = pin.neutral(self.model)
        for joint in self.moving:
            theirs = self.model.joints[self.model.getJointId(joint.name)]
            values = q[self.ours.q_slices[joint.name]]
            if theirs.nq > joint.nq:  # continuous and planar joints
                values = [*values[:-1], np.cos(values[-1]), np.sin(values[-1])]
            out[theirs.idx_q : theirs.idx_q + theirs.nq] = values
        return out

    @property
    def order(self) -> np.ndarray:
        """order[i]: index in Pinocchio's v of our velocity i."""
        at = [self.model.joints[self.model.getJointId(j.name)].idx_v for j in self.moving]
        return np.concatenate([np.arange(i, i + j.nv) for i, j in zip(at, self.moving, strict=True)])

    def v(self, v: np.ndarray) -> np.ndarray:
        """Our v (or force) in Pinocchio's order."""
        out = np.zeros(self.model.nv)
        out[self.order] = v
        return out

    @property
    def moving(self) -> list[pf.Joint]:
        return [j for j in self.ours.joints if j.nv]

    def frame(self, body: str) -> int:
        """Pinocchio's frame of a body; a root link called "world" has another name in the library if it floats."""
        name = body if self.model.existFrame(body, pin.BODY) else "world"
        return self.model.getFrameId(name, pin.BODY)


def twin(name: str, base: str = "fixed", **changes: Any) -> Twin:
    """Read a robot twice. The library locks joints that move no mass at zero, so they are locked in Pinocchio too."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)
        ours = pf.formats.read_urdf(ROBOTS[name], base=base, mimic="free")
    ours = ours.with_(forces=[])  # Gazebo's switches of gravity, which Pinocchio does not read
    model = pin.buildModelFromUrdf(str(ROBOTS[name]), *([pin.JointModelFreeFlyer()] if base == "free" else []))
    moving = {j.name for j in ours.joints if j.nv}
    locked = [model.getJointId(n) for n in model.names if n != "universe" and n not in moving]
    if locked:
        model = pin.buildReducedModel(model, locked, pin.neutral(model))
    assert model.nv == ours.nv
    return Twin(ours.with_(**changes) if changes else ours, model, model.createData())


def composite(*parts: Any) -> Any:
    model = pin.JointModelComposite()
    for part in parts:
        model.addJoint(part, pin.SE3.Identity())
    return model


JOINTS = {
    "revolute": lambda pitch: pin.JointModelRZ(),
    "prismatic": lambda pitch: pin.JointModelPZ(),
    "helical": pin.JointModelHZ,
    "cylindrical": lambda pitch: composite(pin.JointModelPZ(), pin.JointModelRZ()),
    "planar-translation": lambda pitch: composite(pin.JointModelPX(), pin.JointModelPY()),
    "translation": lambda pitch: pin.JointModelTranslation(),
    "planar": lambda pitch: pin.JointModelPlanar(),
    "planar-helical": lambda pitch: composite(pin.JointModelPX(), pin.JointModelPY(), pin.JointModelHZ(pitch)),
    "schoenflies": lambda pitch: composite(pin.JointModelTranslation(), pin.JointModelRZ()),
    "universal": lambda pitch: pin.JointModelUniversal(np.array([1.0, 0, 0]), np.array([0, 1.0, 0])),
    "spherical": lambda pitch: pin.JointModelSpherical(),
    "free": lambda pitch: pin.JointModelFreeFlyer(),
}
BY_COORDINATES = ("planar-helical", "schoenflies")
"""Kinds whose velocities in Pinocchio are q_dot; ours are those of the body, with q_dot = K v."""


def twin_of(m: pf.Mechanism) -> Twin:
    """Build a tree of the library joint by joint in Pinocchio; bodies become frames."""
    model = pin.Model()
    model.gravity.linear = m.value(m.gravity).ravel()
    at = {"world": (0, pin.SE3.Identity())}
    armature = []
    for j in depth_first(m, "world"):
        above, X = at[j.parent]
        child = se3(m, j.child_placement).inverse()
        if j.nv == 0:
            at[j.child] = (above, X * se3(m, j.placement) * child)
        else:
            at[j.child] = (
                model.addJoint(above, JOINTS[j.kind.name](m.value(j.pitch).item()), X * se3(m, j.placement), j.name),
                child,
            )
            armature += m.value(j.armature).ravel().tolist()
        b, (link, place) = m.body(j.child), at[j.child]
        inertia = pin.Inertia(m.value(b.mass).item(), m.value(b.com).ravel(), m.value(b.inertia))
        model.appendBodyToJoint(link, inertia, place)
        model.addFrame(pin.Frame(j.child, link, 0, place, pin.BODY))
    model.armature = np.array(armature)
    return Twin(m, model, model.createData())


def their_rates(T: pf.Terms) -> tuple[ca.SX, ca.SX]:
    """Matrix R (nv, nv) with Pinocchio's velocities = R v, joint by joint, and R_dot v."""
    m, blocks = T.mechanism, [ca.SX(0, 0)]
    for j in m.joints:
        blocks.append(j.kinematic(T.kinematics.joint(j.name)) if j.kind.name in BY_COORDINATES else ca.SX.eye(j.nv))
    R = ca.diagcat(*blocks)
    return ca.densify(R), ca.densify(ca.jtimes(R @ T.v, T.q, T.kinematics.q_dot))


def depth_first(m: pf.Mechanism, body: str) -> list[pf.Joint]:
    """Joints below a body, subtree after subtree: Pinocchio's composite recursion needs that order."""
    below = [[j, *depth_first(m, j.child)] for j in m.joints if j.parent == body]
    return [j for branch in below for j in branch]


def se3(m: pf.Mechanism, X: pf.Pose) -> pin.SE3:
    return pin.SE3(m.value(X.R), m.value(X.p).ravel())
