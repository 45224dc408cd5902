"""Poses: rotation and position of one frame in another."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import casadi as ca
import numpy as np

from pfaffian.errors import ModelError, brief
from pfaffian.kernel.remember import once_for
from pfaffian.maths import so3
from pfaffian.maths.repeated import repeated
from pfaffian.model import reprs
from pfaffian.model.data import data
from pfaffian.model.number import are_plain, floats, vector

NumericPose = tuple[np.ndarray, np.ndarray]
"""Rotation (3, 3) and origin (3,) [m] of a frame in another one, in numbers."""


@data
class Pose:
    """The pose of a frame B in a frame A, x_A = R x_B + p; made by `pose`.

    `X @ Y` composes two poses, `X.inverse()` is the pose of A in B, and `X.seen_from(Y)` is Y.inverse() @ X.

    R: (3, 3) rotation.
    p: (3, 1) origin of B in A [m].

    Example:
        >>> import pfaffian as pf
        >>> X = pf.pose((1, 0, 0), rpy=(0, 0, 1.5)) @ pf.pose((2, 0, 0), rpy=(0, 0, -1.5))
        >>> X
        <Pose: at (1.1415, 1.995, 0) m>
        >>> print(pf.pose((1, 2, 3)).inverse().p)
        [-1, -2, -3]
    """

    R: ca.SX
    p: ca.SX

    def __repr__(self) -> str:
        parts = [f"at {reprs.number(self.p, 'm')}", reprs.turn(self.R, so3.log)]
        return reprs.words(self, *[part for part in parts if part])

    def __matmul__(self, other: Pose) -> Pose:
        if not isinstance(other, Pose):
            raise ModelError(f"X @ Y needs another pose(...), got {brief(other)}; X.R @ x + X.p transforms a point x (3, 1)")
        if self is IDENTITY or other is IDENTITY:
            return other if self is IDENTITY else self
        if self.R is IDENTITY.R and other.p is IDENTITY.p:  # a place and a direction, as most joints have: nothing to compute
            return Pose(other.R, self.p)
        if other.p is IDENTITY.p:
            return Pose(_turned()(self.R, other.R)[0], self.p)
        return Pose(*_product()(self.R, self.p, other.R, other.p))

    def inverse(self) -> Pose:
        return self if self is IDENTITY else once_for(self, "inverse", lambda: Pose(*_inverse()(self.R, self.p)))

    def seen_from(self, other: Pose) -> Pose:
        """`other.inverse() @ self`: the pose of B in C for those of B and C in A, with the digits of their distance."""
        return Pose(other.R.T @ self.R, other.R.T @ (self.p - other.p))


@repeated
def _product(R: ca.SX, p: ca.SX, S: ca.SX, x: ca.SX) -> tuple[ca.SX, ca.SX]:
    """R and p of the product of the poses (R, p) and (S, x)."""
    return R @ S, R @ x + p


@repeated
def _turned(R: ca.SX, S: ca.SX) -> tuple[ca.SX]:
    """The product of two rotations."""
    return (R @ S,)


@repeated
def _inverse(R: ca.SX, p: ca.SX) -> tuple[ca.SX, ca.SX]:
    """R and p of the inverse of a pose."""
    return R.T, -(R.T @ p)


IDENTITY = Pose(ca.SX(ca.DM.eye(3)), ca.SX.zeros(3, 1))


def pose(xyz: Any = (0, 0, 0), rpy: Any = None, quaternion: Any = None, rotation: Any = None) -> Pose:
    """The pose of a frame, from its origin and its orientation in one of three forms; by default the axes are parallel.

    Args:
        xyz: (3,) origin [m], numbers or parameters; zero by default.
        rpy: (3,) roll, pitch, yaw about the fixed axes [rad], R = Rz(yaw) Ry(pitch) Rx(roll), as in URDF.
        quaternion: (4,) numbers (x, y, z, w), of any length but zero.
        rotation: (3, 3) numbers, a proper rotation matrix.
    Raises ModelError: more than one orientation, or one that is not a rotation.

    Example:
        >>> import numpy as np
        >>> import pfaffian as pf
        >>> flange = pf.pose((0, 0, 0.5), rpy=(0, 0, np.pi / 2))
        >>> flange
        <Pose: at (0, 0, 0.5) m, turned by (0, 0, 1.5708) rad>
        >>> print(flange.R @ [1, 0, 0] + flange.p)
        [0, 1, 0.5]
    """
    p = vector(xyz, 3, "xyz")
    forms = [name for name, value in (("rpy", rpy), ("quaternion", quaternion), ("rotation", rotation)) if value is not None]
    if len(forms) > 1:
        raise ModelError(f"pose: give one of {forms}, not several")
    if rpy is not None:
        if are_plain(rpy) and len(rpy) == 3:
            return Pose(_rpy_rotation(*map(float, rpy)), p)
        angles = vector(rpy, 3, "rpy")
        if angles.is_constant():
            return Pose(_rpy_rotation(*map(float, ca.DM(angles).nonzeros())), p)
        return Pose(ca.densify(ca.SX(so3.rpy_to_matrix(angles))), p)
    if quaternion is not None:
        x = floats(quaternion, "quaternion")
        if x.shape != (4,) or not np.isfinite(x).all() or not np.linalg.norm(x) > 0:
            raise ModelError(f"quaternion: four numbers (x, y, z, w), not all zero, are needed, got {brief(quaternion)}")
        return Pose(_quaternion_rotation(*(x / np.linalg.norm(x)).tolist()), p)
    if rotation is not None:
        R = floats(rotation, "rotation")
        if R.shape != (3, 3) or not np.allclose(R @ R.T, np.eye(3), atol=1e-9) or np.linalg.det(R) < 0:
            raise ModelError("rotation: a proper rotation matrix (3, 3) is needed, R R^T = I and det R = 1")
        return Pose(clean(ca.DM(R)), p)
    return Pose(IDENTITY.R, p)


@lru_cache(maxsize=4096)
def _rpy_rotation(roll: float, pitch: float, yaw: float) -> ca.SX:
    """The rotation of plain numbers roll, pitch and yaw [rad], in which right angles give exact zeros and ones.

    It is cached, since a machine has few directions.
    """
    return ca.densify(ca.SX(so3.rpy_to_matrix((roll, pitch, yaw))))


@lru_cache(maxsize=4096)
def _quaternion_rotation(x: float, y: float, z: float, w: float) -> ca.SX:
    """The rotation of a unit quaternion; cached for the same reason."""
    return clean(so3.quat_to_matrix(ca.DM([x, y, z, w])))


def as_pose(value: Any, what: str) -> Pose:
    """A Pose unchanged, or three numbers as a position without rotation. Raises ModelError: anything else.

    what: the label of the value in error messages.
    """
    if isinstance(value, Pose):
        return value
    return Pose(IDENTITY.R, vector(value, 3, f"{what}, a pose(...) or a position"))


OPPOSITE = 1e-14
"""Distance from -z that counts as rounding."""


def align_z(axis: np.ndarray) -> np.ndarray:
    """The smallest rotation (3, 3) that turns z to the unit vector `axis` (3,); half a turn about x for -z."""
    x, y, z = axis
    if z < 0 and np.hypot(x, y) < OPPOSITE:
        return np.diag([1.0, -1.0, -1.0])
    h = (1 - z) / (x * x + y * y) if z < 0 else 1 / (1 + z)  # 1 + z has few digits near -z
    return np.array([[1 - h * x * x, -h * x * y, x], [-h * x * y, 1 - h * y * y, y], [-x, -y, z]])


def clean(R: ca.DM) -> ca.SX:
    """A numeric rotation (3, 3) whose entries within rounding of 0, 1 and -1 are made exact, so that products simplify."""
    M = np.array(ca.DM(R))
    for target in (0.0, 1.0, -1.0):
        M[np.abs(M - target) < 1e-15] = target
    return ca.SX(ca.DM(M))
