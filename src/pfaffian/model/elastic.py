"""Springs and dampers between the poses of two bodies, by 4 x 4 pseudo-matrices. [konz25 2.4, 2.6]

Springs k_p of no length between points h_p of body B and points of body A have the potential
V = 1/2 tr((G - G_R) K' (G - G_R)^T), K' = sum k_p [h_p; 1] [h_p; 1]^T, G being the pose of B in A and G_R the one at rest:
any number of them is one 4 x 4 matrix (`constellation`). Dampers likewise: R = 1/2 xi^T Vee(D') xi, xi the twist of B relative
to A, in B. For V to be least at G_R, Vee(K') must be positive semidefinite, but not K' itself. A pseudo-matrix has 10 of the
21 numbers of a symmetric 6 x 6 matrix, which is accepted too.
"""

from __future__ import annotations

from typing import Any

import casadi as ca
import numpy as np

from pfaffian.errors import ModelError, brief
from pfaffian.maths import inertia, se3
from pfaffian.model import reprs
from pfaffian.model.body import tensor
from pfaffian.model.data import data
from pfaffian.model.force import Dissipation, KineticEnergy, Potential
from pfaffian.model.number import Scalar, at_defaults, is_symmetric, matrix, not_negative, vector
from pfaffian.model.pose import Pose, as_pose

SEMIDEFINITE = 1e-12
"""Relative amount by which rounding may make an eigenvalue negative."""


def pseudo_matrix(weight: Scalar, centre: Any = (0, 0, 0), moments: Any = 0.0) -> ca.SX:
    """The pseudo-matrix [[Wed(Pi), k h], [k h^T, k]] of a stiffness, damping or inertia: (4, 4) for `pose_spring` and its kin.
    [konz25 (3.91)]

    Pi are the moments about the origin, k is the weight and h its centre.

    Args:
        weight: k, of a stiffness [N/m], of a damping [N s/m].
        centre: h (3,) [m]; the origin by default.
        moments: stiffness or damping against turning about the centre [N m, N m s], zero by default, in the forms that `body`
            takes an inertia in: a number, (3,) principal, (6,) or (3, 3).
    Raises ModelError: numbers of the wrong count; a weight below zero.

    Example:
        >>> import casadi as ca
        >>> import pfaffian as pf
        >>> ca.DM(pf.forces.pseudo_matrix(400.0, centre=(0, 0, 0.5))).full()
        array([[  0.,   0.,   0.,   0.],
               [  0.,   0.,   0.,   0.],
               [  0.,   0., 100., 200.],
               [  0.,   0., 200., 400.]])
    """
    k, h = not_negative(weight, "pseudo_matrix: weight"), vector(centre, 3, "pseudo_matrix: centre")
    return ca.densify(ca.SX(inertia.pseudo(*inertia.moments(k, h, tensor(moments, "pseudo_matrix: moments")))))


def pose_spring(name: str, body_a: str, body_b: str, stiffness: Any, *, rest: Any = (0, 0, 0)) -> Potential:
    """A spring between the poses of two bodies, V = <X, X> / 2 with X = G_R^-1 G - 1, G the pose of body_b in body_a.
    [konz25 (3.71) (3.115) (A.14)-(A.19)]

    At rest the Hessian of V along twists of b is K. Of a pseudo-matrix K' it is V = tr((G - G_R) K' (G - G_R)^T) / 2, the
    wrench on b is -vee2((1 - G^-1 G_R) K'), and K = Vee(K').

    Args:
        name: unique among the forces.
        body_a, body_b: names, "world" for the fixed frame.
        stiffness: K' (4, 4) symmetric, in body_b's frame, with Vee(K') positive semidefinite, as `pseudo_matrix` makes one; or
            any K (6, 6) symmetric and positive semidefinite, of 21 numbers, by `se3.inner`.
        rest: G_R, the pose of body_b in body_a at which the force vanishes; identity by default.
    Returns: a potential, for forces=[...].
    Raises ModelError: a stiffness that is none of these, with its lowest eigenvalue.

    Example:
        >>> import pfaffian as pf
        >>> cart, rail = pf.body("cart", mass=2.0), pf.joint("rail", "prismatic", "world", "cart", axis=(1, 0, 0))
        >>> mount = pf.forces.pose_spring("mount", "world", "cart", pf.forces.pseudo_matrix(40.0), rest=(1, 0, 0))
        >>> m = pf.mechanism("cart", [cart], [rail], forces=[mount])
        >>> pf.forward_dynamics(m, [1.1]).v_dot.round(9)  # -40 (1.1 - 1) / 2
        array([-2.])
    """
    what = f"force {name!r}"
    K = form(stiffness, f"{what}: stiffness")
    check_parts(K, f"{what}: stiffness")
    return Potential(name, PoseSpring(body_a, body_b, K, as_pose(rest, f"{what}: rest")))


def pose_damper(name: str, body_a: str, body_b: str, damping: Any) -> Dissipation:
    """A damper between two bodies, R = xi^T D xi / 2, xi the twist of body_b relative to body_a in b's axes. [konz25 (3.117)]

    The wrench on b is -D xi.

    Args:
        name: unique among the forces.
        body_a, body_b: names, "world" for the fixed frame.
        damping: D (6, 6) symmetric and positive semidefinite, or D' (4, 4) with such a D = Vee(D'), both in body_b's frame;
            `pseudo_matrix` makes one.
    Returns: a dissipation, for forces=[...].
    Raises ModelError: a damping that is none of these, with its lowest eigenvalue.

    Example:
        >>> import pfaffian as pf
        >>> cart, rail = pf.body("cart", mass=2.0), pf.joint("rail", "prismatic", "world", "cart", axis=(1, 0, 0))
        >>> oil = pf.forces.pose_damper("oil", "world", "cart", pf.forces.pseudo_matrix(6.0))
        >>> m = pf.mechanism("cart", [cart], [rail], forces=[oil])
        >>> pf.forward_dynamics(m, [0.0], [1.0]).v_dot.round(9)
        array([-3.])
    """
    return Dissipation(name, PoseDamper(body_a, body_b, spatial(form(damping, f"force {name!r}: damping"))))


def pose_inertia(name: str, body_a: str, body_b: str, inertia: Any) -> KineticEnergy:
    """The inertia between two bodies, T = xi^T M xi / 2, xi the twist of body_b relative to body_a in b's axes. [konz25 (A.14)]

    It models the added mass of a fluid at rest, or an inerter. It has no weight and, like every `kinetic_energy`, acts within
    the joints.

    Args:
        name: unique among the forces.
        body_a, body_b: names, "world" for the fixed frame.
        inertia: M (6, 6) symmetric and positive semidefinite, of 21 numbers, as the added mass of a hull; or M' (4, 4) with
            such an M = Vee(M'), both in body_b's frame.
    Returns: a kinetic energy, for forces=[...].
    Raises ModelError: an inertia that is none of these, with its lowest eigenvalue.

    Example:
        >>> import pfaffian as pf
        >>> cart, rail = pf.body("cart", mass=2.0), pf.joint("rail", "prismatic", "world", "cart", axis=(1, 0, 0))
        >>> water = pf.forces.pose_inertia("water", "world", "cart", pf.forces.pseudo_matrix(3.0))
        >>> pf.mass_matrix(pf.mechanism("cart", [cart], [rail], forces=[water]), [0.0]).round(9)  # 2 + 3
        array([[5.]])
    """
    return KineticEnergy(name, PoseInertia(body_a, body_b, spatial(form(inertia, f"force {name!r}: inertia"))))


def bushing(
    name: str, body_a: str, body_b: str, *, stiffness: Any, damping: Any, rest: Any = (0, 0, 0)
) -> tuple[Potential, Dissipation]:
    """A bushing between two bodies: a `pose_spring` and a `pose_damper`, for forces=[*bushing(...)].

    Args:
        name: of the bushing; its parts are called "name spring" and "name damper".
        body_a, body_b: names, "world" for the fixed frame.
        stiffness, damping: (4, 4) pseudo-matrices or (6, 6), symmetric, in body_b's frame, positive semidefinite along twists.
        rest: the pose of body_b in body_a at which the spring is free; identity by default.
    Raises ModelError: a stiffness or damping that is none of these, with its lowest eigenvalue.

    Example:
        >>> import pfaffian as pf
        >>> cart, rail = pf.body("cart", mass=2.0), pf.joint("rail", "prismatic", "world", "cart", axis=(1, 0, 0))
        >>> rubber = {"stiffness": pf.forces.pseudo_matrix(40.0), "damping": pf.forces.pseudo_matrix(6.0)}
        >>> m = pf.mechanism("cart", [cart], [rail], forces=[*pf.forces.bushing("mount", "world", "cart", **rubber)])
        >>> pf.forward_dynamics(m, [0.1], [1.0]).v_dot.round(9)  # (-40 * 0.1 - 6 * 1) / 2
        array([-5.])
    """
    spring = pose_spring(f"{name} spring", body_a, body_b, stiffness, rest=rest)
    return spring, pose_damper(f"{name} damper", body_a, body_b, damping)


@data
class PoseSpring:
    """V(k) of a pose spring.   stiffness: K' (4, 4) or K (6, 6)."""

    body_a: str
    body_b: str
    stiffness: ca.SX
    rest: Pose

    @property
    def bodies(self) -> tuple[str, str]:
        return self.body_a, self.body_b

    def __call__(self, k: Any) -> ca.SX:
        G, rest = k.pose(self.body_a).inverse() @ k.pose(self.body_b), self.rest
        Y, x = G.R - rest.R, G.p - rest.p
        if self.stiffness.shape == (6, 6):
            X = (rest.R.T @ Y, rest.R.T @ x)
            return se3.inner(self.stiffness, X, X) / 2
        E = ca.horzcat(Y, x)
        return ca.dot(E, E @ self.stiffness) / 2

    def __repr__(self) -> str:
        return reprs.words(self, f"{self.body_a!r} to {self.body_b!r}")


@data
class PoseDamper:
    """R(k) of a pose damper.   damping: D (6, 6)."""

    body_a: str
    body_b: str
    damping: ca.SX

    @property
    def bodies(self) -> tuple[str, str]:
        return self.body_a, self.body_b

    def __call__(self, k: Any) -> ca.SX:
        return _of_twist(self.damping, k, *self.bodies)

    def __repr__(self) -> str:
        return reprs.words(self, f"{self.body_a!r} to {self.body_b!r}")


@data
class PoseInertia:
    """T(k) of a pose inertia.   inertia: M (6, 6)."""

    body_a: str
    body_b: str
    inertia: ca.SX

    @property
    def bodies(self) -> tuple[str, str]:
        return self.body_a, self.body_b

    def __call__(self, k: Any) -> ca.SX:
        return _of_twist(self.inertia, k, *self.bodies)

    def __repr__(self) -> str:
        return reprs.words(self, f"{self.body_a!r} to {self.body_b!r}")


def _of_twist(Q: ca.SX, k: Any, body_a: str, body_b: str) -> ca.SX:
    """xi^T Q xi / 2 of the twist xi of body_b relative to body_a, in b's axes."""
    G = k.pose(body_a).inverse() @ k.pose(body_b)
    xi = k.twist(body_b) - se3.Ad_inv(G.R, G.p) @ k.twist(body_a)
    return ca.dot(xi, Q @ xi) / 2


def form(value: Any, what: str, *shapes: tuple[int, int]) -> ca.SX:
    """K' (4, 4) or K (6, 6), of the given shapes or either, symmetric, with Vee(K') or K positive semidefinite.

    Raises ModelError: it is not, with the lowest eigenvalue.
    """
    K = symmetric_pseudo(value, what, *(shapes or ((4, 4), (6, 6))))
    _semidefinite(spatial(K), f"{what}: its form in twists" if K.shape == (4, 4) else f"{what}: the matrix")
    return K


def spatial(K: ca.SX) -> ca.SX:
    """(6, 6) of K' (4, 4) or K (6, 6): the form in twists, without its zeros."""
    return ca.sparsify(ca.SX(se3.Vee(K)) if K.shape == (4, 4) else K)


def symmetric_pseudo(value: Any, what: str, *shapes: tuple[int, int]) -> ca.SX:
    """A symmetric matrix, (4, 4) or of the given shapes; `what` names it in errors. Raises ModelError: it is not."""
    K, shapes = ca.densify(matrix(value, what)), shapes or ((4, 4),)
    if K.shape not in shapes:
        sizes = " or ".join(map(str, shapes))
        raise ModelError(f"{what}: a {sizes} matrix is needed, such as pseudo_matrix(...), got {brief(value)}")
    number = at_defaults(K)  # None with a symbol of no Parameter, which `mechanism` reports
    if number is not None and not np.isfinite(number).all():
        raise ModelError(f"{what} is not finite")
    if number is not None and not is_symmetric(K):
        raise ModelError(f"{what}: the matrix is not symmetric")
    return K


def _semidefinite(K: ca.SX, what: str) -> None:
    number = at_defaults(K)
    lowest = 0.0 if number is None else np.linalg.eigvalsh(number)[0]
    if number is not None and lowest < -SEMIDEFINITE * np.abs(number).max():
        raise ModelError(f"{what} must be positive semidefinite; its lowest eigenvalue is {lowest:.6g}")


def check_parts(K: ca.SX, what: str) -> None:
    """Raise ModelError where a stiffness K (6, 6) cannot be split into Kr, H and KR of `se3.inner`."""
    number = at_defaults(K) if K.shape == (6, 6) else None
    if number is None:
        return
    Kr, C = number[:3, :3], number[3:, :3]
    if not K.is_constant() and np.linalg.eigvalsh(Kr)[0] <= SEMIDEFINITE * np.abs(Kr).max():
        raise ModelError(f"{what}: with Parameters in it, its first three rows must resist every translation")
    left = C - C @ np.linalg.pinv(Kr, rcond=SEMIDEFINITE, hermitian=True) @ Kr
    if np.abs(left).max() > 1e-9 * np.abs(number).max():
        raise ModelError(
            f"{what}: it couples turning to a translation that its first three rows do not resist; resist that one"
        )
