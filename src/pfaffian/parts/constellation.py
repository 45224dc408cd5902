"""Sets of point springs between two bodies merged into one spring between their poses, and the inverse. [konz25 2.4,
(3.61)-(3.72)]

Springs of stiffness k_p and zero free length between points h_p of body B and p_p of body A have the potential

    V = sum k_p |r + R h_p - p_p|^2 / 2 = tr((G - G_R) K' (G - G_R)^T) / 2 + V0,   K' = [[Wed(Pi), k h], [k h^T, k]],

with G = (R, r) the pose of B in A. Whatever the number of springs, V has 6 numbers for the pose at rest G_R, 10 for K' and 1
for V0. Let k = sum k_p, let h and p be the stiffness-weighted centres of the h_p and of the p_p, and P_s = sum k_p (h_p - h)
(p_p - p)^T. The special polar decomposition P_s^T = R_R Wed(Pi_s) gives R_R and Pi_s = Pi - k hat(h) hat(h)^T, and r_R = p -
R_R h.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from pfaffian.errors import ModelError, brief
from pfaffian.maths.spectrum import principal_axes
from pfaffian.model.force import Potential, Spring
from pfaffian.model.number import floats, named_float, several
from pfaffian.model.pose import Pose, as_pose, pose
from pfaffian.parts.elastic import form, pose_spring
from pfaffian.parts.rotation_potential import special_polar

TETRAHEDRON = np.array([[1.0, 1, 1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1]])
"""Four points whose centre is zero and whose second moment is isotropic: 4 times the unit matrix."""

ROUNDING = 1e-12
"""Relative error of a stiffness or an energy that counts as rounding."""


class PointSprings(NamedTuple):
    """Springs of zero free length between points of two bodies, made by `point_springs`.

    stiffness: (n,) of each spring [N/m].
    points_a, points_b: (n, 3) ends of the springs on the two bodies, each in the frame of its body [m].
    """

    stiffness: np.ndarray
    points_a: np.ndarray
    points_b: np.ndarray


@dataclass(frozen=True, eq=False)
class Constellation:
    """A set of springs between two bodies as one spring between their poses.

    Its potential is V = tr((G - G_R) K' (G - G_R)^T) / 2 + V0, with G the pose of body_b in body_a.

    rest: G_R, the pose of least energy; if there are several, the one with the smallest rotation angle.
    energy: V0 [J], the least value of V.
    stiffness: K' (4, 4) in body_b's frame, as `pose_spring` takes it; se3.Vee(K') is the Hessian of V at rest.
    strict: whether no other pose has the least energy, which holds if all eigenvalues of `moments` are above zero.
    """

    rest: Pose
    stiffness: np.ndarray
    energy: float
    strict: bool

    @property
    def weight(self) -> float:
        """k, the stiffness against translation [N/m]."""
        return float(self.stiffness[3, 3])

    @property
    def centre(self) -> np.ndarray:
        """(3,) h in body_b [m]: the point through which a force at rest causes no rotation."""
        return self.stiffness[:3, 3] / self.weight

    @property
    def moments(self) -> np.ndarray:
        """(3, 3) Pi_s, the stiffness against turning about the centre, along body_b's axes at rest [N m]."""
        S = self.stiffness[:3, :3] - self.weight * np.outer(self.centre, self.centre)
        return np.trace(S) * np.eye(3) - S

    def __repr__(self) -> str:
        how = "the only pose at rest" if self.strict else "other poses too at rest"
        return f"<Constellation: weight {self.weight:.5g} N/m, energy {self.energy:.5g} J, {how}, {self.rest}>"


def spring_constellation(stiffness: Any, points_a: Any, points_b: Any) -> Constellation:
    """The pose at rest, stiffness K' and least energy of springs of zero free length between two bodies. [konz25 (3.61)-(3.72)]

    V = tr((G - G_R) K' (G - G_R)^T) / 2 + V0 is exact for all poses G of body_b in body_a. V0 is its least value.

    Args:
        stiffness: (n,) of each spring, not below zero [N/m].
        points_a, points_b: (n, 3) ends of the springs on body_a and on body_b, each in the frame of its body [m].
    Returns:
        rest (G_R), stiffness (K', (4, 4) in body_b's frame, as `pose_spring` takes it), energy (V0 [J]), strict (whether no
        other pose has the least energy), weight [N/m], centre (3,) [m] and moments (3, 3) [N m].
    Raises ModelError: the wrong number of values, a stiffness below zero, or a total stiffness of zero.

    Example:
        >>> import pfaffian as pf
        >>> corners = [(1, 0, 0), (-1, 0, 0), (0, 1, 0), (0, -1, 0)]
        >>> merged = pf.forces.spring_constellation([100, 100, 100, 100], corners, [(0, 0, 0)] * 4)
        >>> round(merged.weight, 6), round(merged.energy, 6)  # at rest each spring is 1 m long: 4 * 100 / 2
        (400.0, 200.0)
    """
    k, p, h = floats(stiffness, "stiffness"), floats(points_a, "points_a"), floats(points_b, "points_b")
    if k.ndim != 1 or p.shape != (len(k), 3) or h.shape != (len(k), 3):
        raise ModelError(f"springs: (n,) and twice (n, 3) numbers are needed, got {k.shape}, {p.shape} and {h.shape}")
    if (k < 0).any():
        raise ModelError(f"springs: the stiffness of number {int(np.argmax(k < 0))} is below zero: {k.min():.6g} N/m")
    total = k.sum()
    if not total > 0:
        raise ModelError("springs: their total stiffness is zero, so that every pose is at rest; one must be above zero")
    p_s, h_s = k @ p / total, k @ h / total
    R, Pi_s, unique = special_polar((p - p_s).T @ (k[:, None] * (h - h_s)))
    second = np.trace(Pi_s) / 2 * np.eye(3) - Pi_s + total * np.outer(h_s, h_s)
    K = np.block([[second, total * h_s[:, None]], [total * h_s[None, :], np.full((1, 1), total)]])
    r = p_s - R @ h_s
    energy = float(k @ np.square(h @ R.T + r - p).sum(axis=1)) / 2
    return Constellation(pose(r, rotation=R), K, energy, unique)


def point_springs(stiffness: Any, rest: Any = (0, 0, 0), energy: float | None = None) -> PointSprings:
    """Four springs of equal stiffness with a given K', pose at rest and least energy: the inverse of `spring_constellation`.

    If K' is positive semidefinite, the energy at rest can be zero: the two ends of each spring then coincide. If K' has its
    centre at the origin and a negative eigenvalue s, the energy at rest is at least -2 s.

    Args:
        stiffness: K' (4, 4) numbers, in body_b's frame, with a weight above zero, as `pose_spring` takes it.
        rest: G_R, the pose of body_b in body_a; identity by default.
        energy: V0, the energy at rest [J]; the least possible if None.
    Returns:
        stiffness (4,) [N/m], points_a and points_b (4, 3) [m], as `spring_constellation` takes them.
    Raises ModelError: a K' that no set of springs has (the message gives the lowest eigenvalue of Vee(K')), or an energy below
    the least possible.

    Example:
        >>> import numpy as np
        >>> import pfaffian as pf
        >>> K = np.diag([3.0, 2.0, 1.0, 400.0])
        >>> springs = pf.forces.point_springs(K)
        >>> springs.stiffness.round(6)
        array([100., 100., 100., 100.])
        >>> bool(np.allclose(pf.forces.spring_constellation(*springs).stiffness, K))
        True
    """
    K, G = _numbers(form(stiffness, "stiffness", (4, 4)), "stiffness"), as_pose(rest, "rest")
    R, r = _numbers(G.R, "rest"), _numbers(G.p, "rest").ravel()
    k = K[3, 3]
    if not k > ROUNDING * np.abs(K).max():
        raise ModelError("stiffness: its weight, the last entry, is zero: point springs that turn a body also pull it")
    h = K[:3, 3] / k
    s, U = principal_axes(K[:3, :3] - k * np.outer(h, h))
    size, least = np.abs(s).sum(), np.abs(s).sum() - s.sum()
    target = least if energy is None else named_float(energy, "energy")
    if target < least - ROUNDING * size:
        raise ModelError(f"energy {target:.6g} J is less than springs of this stiffness have at rest, {least:.6g} J")
    spare = max(target - least, 0.0)
    axes = U * np.sqrt(np.abs(s) / k)
    if size > ROUNDING * np.abs(K).max():
        y = spare / size
        stretch = np.sqrt(1 + y + np.sqrt(y * (2 + y)))  # stretch^2 + 1 / stretch^2 = 2 (1 + y)
        on_b, on_a = TETRAHEDRON @ (stretch * axes).T, TETRAHEDRON @ (axes * np.sign(s) / stretch).T
    else:
        on_b, on_a = np.zeros((4, 3)), TETRAHEDRON * np.sqrt(2 * spare / (3 * k))
    return PointSprings(np.full(4, k / 4), (h + on_a) @ R.T + r, h + on_b)


def merged_springs(name: str, springs: Iterable[Spring]) -> Potential:
    """One pose spring in place of springs of zero free length between two bodies: the same forces in fewer operations.

    Its potential is lower than theirs by their energy at rest.

    Args:
        name: unique among the forces.
        springs: made by `spring`, all between the same two bodies, with free length 0 and damping 0, and with numbers (not
            Parameters) for stiffness and points.
    Returns: a potential, for forces=[...].
    Raises ModelError: a spring that does not qualify; the message names it.

    Example:
        >>> import pfaffian as pf
        >>> two = [pf.spring(f"{y}", "world", "cart", point_a=(0, y, 0), point_b=(0, y, 0), stiffness=20.0) for y in (1, -1)]
        >>> cart, rail = pf.body("cart", mass=2.0), pf.joint("rail", "prismatic", "world", "cart", axis=(1, 0, 0))
        >>> m = pf.mechanism("cart", [cart], [rail], forces=[pf.forces.merged_springs("both", two)])
        >>> pf.forward_dynamics(m, [0.1]).v_dot.round(9)  # -2 * 20 * 0.1 / 2
        array([-2.])
    """
    what = f"force {name!r}"
    members = list(springs) if several(springs) else []
    if not members or not all(isinstance(s, Spring) for s in members):
        raise ModelError(f"{what}: a list of spring(...) is needed, got {brief(springs)}")
    ends = (members[0].body_a, members[0].body_b)
    rows = []
    for s in members:
        if {s.body_a, s.body_b} != set(ends):
            raise ModelError(f"{what}: spring {s.name!r} is not between {ends[0]!r} and {ends[1]!r}, as {members[0].name!r} is")
        k, rest, damping, *points = (
            _numbers(x, f"{what}: spring {s.name!r}") for x in (s.stiffness, s.rest, s.damping, s.point_a, s.point_b)
        )
        if rest.any() or damping.any():
            raise ModelError(f"{what}: spring {s.name!r} has a length at rest or a damping, and a pose_spring has neither")
        a, b = points if s.body_a == ends[0] else reversed(points)
        rows.append((k.item(), a.ravel(), b.ravel()))
    try:
        merged = spring_constellation(*zip(*rows, strict=True))
    except ModelError as error:
        raise ModelError(f"{what}: {error}") from None
    return pose_spring(name, *ends, merged.stiffness, rest=merged.rest)


def _numbers(x: ca.SX, what: str) -> np.ndarray:
    """The entries of a constant expression as floats. Raises ModelError: x depends on Parameters."""
    if not x.is_constant():
        raise ModelError(f"{what}: numbers are needed here, not Parameters: eigenvectors of expressions cannot be computed")
    return np.array(ca.DM(x))
