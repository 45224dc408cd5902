"""Springs and dampers between the poses of two bodies, by 4 x 4 pseudo-matrices. [konz25 2.4, 2.6]

Springs k_p of no length between points h_p of body B and points of body A have the potential
V = 1/2 tr((G - G_R) K' (G - G_R)^T), K' = sum k_p [h_p; 1] [h_p; 1]^T, G being the pose of B in A and G_R the one at rest:
any number of them is one 4 x 4 matrix. Dampers likewise: R = 1/2 xi^T Vee(D') xi, xi the twist of B relative to A, in B.
"""

from __future__ import annotations

from typing import Any

import casadi as ca
import numpy as np

from pfaffian.errors import ModelError, brief
from pfaffian.maths import inertia, se3
from pfaffian.model import shown
from pfaffian.model.body import tensor
from pfaffian.model.data import data
from pfaffian.model.force import Dissipation, Potential
from pfaffian.model.number import Scalar, at_defaults, matrix, not_negative, vector
from pfaffian.model.pose import Pose, as_pose

SEMIDEFINITE = 1e-12
"""Relative room for rounding below zero in an eigenvalue."""


def pseudo_matrix(weight: Scalar, centre: Any = (0, 0, 0), moments: Any = 0.0) -> ca.SX:
    """[[Wed(Pi), k h], [k h^T, k]] (4, 4) of a weight k at its centre h, with moments Pi about the origin. [konz25 (3.91)]

    Args:
        weight: k, of a stiffness [N/m], of a damping [N s/m].   centre: h (3,) [m].
        moments: stiffness or damping against turning about the centre [N m, N m s], as `body` takes an inertia: a number, (3,)
            principal, (6,) or (3, 3).
    Raises ModelError: numbers of the wrong count; a weight below zero.
    """
    k, h = not_negative(weight, "pseudo_matrix: weight"), vector(centre, 3, "pseudo_matrix: centre")
    return ca.densify(ca.SX(inertia.pseudo(*inertia.moments(k, h, tensor(moments, "pseudo_matrix: moments")))))


def pose_spring(name: str, body_a: str, body_b: str, stiffness: Any, *, rest: Any = (0, 0, 0)) -> Potential:
    """V = 1/2 tr((G - G_R) K' (G - G_R)^T), G the pose of body_b in body_a: the wrench on b is -vee2((1 - G^-1 G_R) K').

    Args:
        stiffness: K' (4, 4) symmetric and positive semidefinite, in body_b's frame; `pseudo_matrix` makes one.
        rest: G_R, the pose of body_b in body_a at which the force vanishes.
    Raises ModelError: a K' that is none of these, with its lowest eigenvalue. [konz25 (3.71) (3.115)]
    """
    what = f"force {name!r}"
    return Potential(name, PoseSpring(body_a, body_b, pseudo(stiffness, f"{what}: stiffness"), as_pose(rest, f"{what}: rest")))


def pose_damper(name: str, body_a: str, body_b: str, damping: Any) -> Dissipation:
    """R = 1/2 xi^T Vee(D') xi, xi the twist of body_b relative to body_a in b's axes: the wrench on b is -Vee(D') xi.

    damping: D' (4, 4) symmetric and positive semidefinite, in body_b's frame; `pseudo_matrix` makes one.
    Raises ModelError: a D' that is none of these, with its lowest eigenvalue. [konz25 (3.117)]
    """
    return Dissipation(name, PoseDamper(body_a, body_b, pseudo(damping, f"force {name!r}: damping")))


def bushing(
    name: str, body_a: str, body_b: str, *, stiffness: Any, damping: Any, rest: Any = (0, 0, 0)
) -> tuple[Potential, Dissipation]:
    """A `pose_spring` and a `pose_damper` named "name spring" and "name damper", for forces=[*bushing(...)].

    body_a, body_b, stiffness, rest, damping: as these take them.
    """
    spring = pose_spring(f"{name} spring", body_a, body_b, stiffness, rest=rest)
    return spring, pose_damper(f"{name} damper", body_a, body_b, damping)


@data
class PoseSpring:
    """V(k) of a pose spring."""

    body_a: str
    body_b: str
    stiffness: ca.SX
    rest: Pose

    @property
    def bodies(self) -> tuple[str, str]:
        return self.body_a, self.body_b

    def __call__(self, k: Any) -> ca.SX:
        G = k.pose(self.body_a).inverse() @ k.pose(self.body_b)
        E = ca.horzcat(G.R - self.rest.R, G.p - self.rest.p)
        return ca.dot(E, E @ self.stiffness) / 2

    def __repr__(self) -> str:
        return shown.words(self, f"{self.body_a!r} to {self.body_b!r}")


@data
class PoseDamper:
    """R(k) of a pose damper."""

    body_a: str
    body_b: str
    damping: ca.SX

    @property
    def bodies(self) -> tuple[str, str]:
        return self.body_a, self.body_b

    def __call__(self, k: Any) -> ca.SX:
        G = k.pose(self.body_a).inverse() @ k.pose(self.body_b)
        xi = k.twist(self.body_b) - se3.Ad_inv(G.R, G.p) @ k.twist(self.body_a)
        return ca.dot(xi, se3.Vee(self.damping) @ xi) / 2

    def __repr__(self) -> str:
        return shown.words(self, f"{self.body_a!r} to {self.body_b!r}")


def pseudo(value: Any, what: str) -> ca.SX:
    """(4, 4) symmetric and positive semidefinite; `what` names it. Raises ModelError: it is none, with an eigenvalue."""
    K = symmetric_pseudo(value, what)
    number = at_defaults(K)
    if number is not None:
        lowest = np.linalg.eigvalsh(number)[0]
        if lowest < -SEMIDEFINITE * np.abs(number).max():
            raise ModelError(f"{what}: the matrix must be positive semidefinite; its lowest eigenvalue is {lowest:.6g}")
    return K


def symmetric_pseudo(value: Any, what: str) -> ca.SX:
    """(4, 4) symmetric; `what` names it. Raises ModelError: it is none."""
    K = ca.densify(matrix(value, what))
    if K.shape != (4, 4):
        raise ModelError(f"{what}: a (4, 4) matrix is needed, as pseudo_matrix(...) makes, got {brief(value)}")
    number = at_defaults(K)
    if number is None:
        return K  # a symbol that is no Parameter is told where the mechanism is made
    size = np.abs(number).max()
    if not np.isfinite(size) or np.abs(number - number.T).max() > SEMIDEFINITE * size:
        raise ModelError(f"{what}: the matrix is not symmetric" if np.isfinite(size) else f"{what} is not finite")
    return K
