"""Springs, dampers and inertias between the poses of two bodies, given by 4 x 4 pseudo-matrices. [konz25 2.4, 2.6]

Springs of stiffness k_p and zero free length between points h_p of body B and points of body A have the potential
V = 1/2 tr((G - G_R) K' (G - G_R)^T), K' = sum k_p [h_p; 1] [h_p; 1]^T, where G is the pose of B in A and G_R the pose at rest.
So a single 4 x 4 matrix represents any number of springs (`constellation`). Dampers have the dissipation function R = 1/2 xi^T
Vee(D') xi, with xi the twist of B relative to A along B's axes. V is least at G_R if Vee(K') is positive semidefinite; K'
itself need not be. A pseudo-matrix has 10 of the 21 independent entries of a symmetric 6 x 6 matrix. Where 10 are too few, a
symmetric 6 x 6 matrix is accepted instead.
"""

from __future__ import annotations

from typing import Any

import casadi as ca
import numpy as np

from pfaffian.errors import ModelError, brief
from pfaffian.maths import inertia, se3
from pfaffian.model import reprs
from pfaffian.model.body import tensor
from pfaffian.model.compound import Compound
from pfaffian.model.data import data
from pfaffian.model.force import Dissipation, KineticEnergy, Potential
from pfaffian.model.number import Scalar, at_defaults, is_symmetric, matrix, not_negative, vector
from pfaffian.model.pose import Pose, as_pose
from pfaffian.model.ranges import Range

EIGENVALUE_ROUNDING = 1e-12
"""Eigenvalues below this fraction of the largest entry count as zero."""


def pseudo_matrix(weight: Scalar, centre: Any = (0, 0, 0), moments: Any = 0.0) -> ca.SX:
    """The pseudo-matrix [[Wed(Pi), k h], [k h^T, k]] of a stiffness, damping or inertia, (4, 4). [konz25 (3.91)]

    It is an argument of `pose_spring`, `pose_damper`, `pose_inertia` and `bushing`. k is the weight, h its centre, and Pi are
    the moments about the origin.

    Args:
        weight: k [N/m] of a stiffness, [N s/m] of a damping, [kg] of an inertia.
        centre: h (3,) [m]; the origin by default.
        moments: rotational stiffness, damping or inertia about the centre [N m, N m s, kg m^2], in one of the forms of an
            inertia in `body`: a number, (3,) principal moments, (6,) or (3, 3); zero by default.
    Raises ModelError: the wrong number of values, or a weight below zero.

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

    At rest the Hessian of V along twists of b is K. For a pseudo-matrix K', V = tr((G - G_R) K' (G - G_R)^T) / 2, the wrench
    on b is -vee2((1 - G^-1 G_R) K'), and K = Vee(K').

    Args:
        name: unique among the forces.
        body_a, body_b: names, "world" for the fixed frame.
        stiffness: K' (4, 4) symmetric, in body_b's frame, with Vee(K') positive semidefinite, made by `pseudo_matrix` for
            instance; or any symmetric positive semidefinite K (6, 6), with V by `se3.inner`.
        rest: G_R, the pose of body_b in body_a at which the force vanishes; identity by default.
    Returns: a potential, for forces=[...].
    Raises ModelError: a stiffness of neither form; the message gives its lowest eigenvalue.

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
        damping: D (6, 6), symmetric and positive semidefinite; or D' (4, 4), made by `pseudo_matrix` for instance, with D =
            Vee(D') of this kind. Both are in body_b's frame.
    Returns: a dissipation, for forces=[...].
    Raises ModelError: a damping of neither form; the message gives its lowest eigenvalue.

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
    """An inertia between two bodies, T = xi^T M xi / 2, xi the twist of body_b relative to body_a in b's axes. [konz25 (A.14)]

    It models the added mass of a fluid at rest, or an inerter. It does not weigh anything and, like every `kinetic_energy`,
    acts within the joints.

    Args:
        name: unique among the forces.
        body_a, body_b: names, "world" for the fixed frame.
        inertia: M (6, 6), symmetric and positive semidefinite, such as the added mass of a hull; or M' (4, 4) with M = Vee(M')
            of this kind. Both are in body_b's frame.
    Returns: a kinetic energy, for forces=[...].
    Raises ModelError: an inertia of neither form; the message gives its lowest eigenvalue.

    Example:
        >>> import pfaffian as pf
        >>> cart, rail = pf.body("cart", mass=2.0), pf.joint("rail", "prismatic", "world", "cart", axis=(1, 0, 0))
        >>> water = pf.forces.pose_inertia("water", "world", "cart", pf.forces.pseudo_matrix(3.0))
        >>> pf.mass_matrix(pf.mechanism("cart", [cart], [rail], forces=[water]), [0.0]).round(9)  # 2 + 3
        array([[5.]])
    """
    return KineticEnergy(name, PoseInertia(body_a, body_b, spatial(form(inertia, f"force {name!r}: inertia"))))


def bushing(name: str, body_a: str, body_b: str, *, stiffness: Any, damping: Any, rest: Any = (0, 0, 0)) -> Compound:
    """A bushing between two bodies: a `pose_spring` and a `pose_damper`.

    Args:
        name: of the bushing; its parts are called "name spring" and "name damper".
        body_a, body_b: names, "world" for the fixed frame.
        stiffness, damping: (4, 4) pseudo-matrices or (6, 6), symmetric, in body_b's frame, positive semidefinite along twists.
        rest: the pose of body_b in body_a at which the spring is relaxed; identity by default.
    Returns: a compound of both, for forces=[...].
    Raises ModelError: a stiffness or damping of neither form; the message gives its lowest eigenvalue.

    Example:
        >>> import pfaffian as pf
        >>> cart, rail = pf.body("cart", mass=2.0), pf.joint("rail", "prismatic", "world", "cart", axis=(1, 0, 0))
        >>> rubber = {"stiffness": pf.forces.pseudo_matrix(40.0), "damping": pf.forces.pseudo_matrix(6.0)}
        >>> m = pf.mechanism("cart", [cart], [rail], forces=[pf.forces.bushing("mount", "world", "cart", **rubber)])
        >>> pf.forward_dynamics(m, [0.1], [1.0]).v_dot.round(9)  # (-40 * 0.1 - 6 * 1) / 2
        array([-5.])
    """
    what = f"force {name!r}"
    K, D = form(stiffness, f"{what}: stiffness"), form(damping, f"{what}: damping")
    of = Bushing(body_a, body_b, K, D, as_pose(rest, f"{what}: rest"))
    spring = pose_spring(f"{name} spring", body_a, body_b, K, rest=of.rest)
    return Compound(name, (spring, pose_damper(f"{name} damper", body_a, body_b, D)), of)


@data
class Bushing:
    """A bushing: the arguments of `bushing`, checked.   ranges: of numbers from which stiffness and damping follow."""

    body_a: str
    body_b: str
    stiffness: ca.SX
    damping: ca.SX
    rest: Pose
    ranges: tuple[Range, ...] = ()


@data
class PoseSpring:
    """V(k) of a pose spring.   stiffness: K' (4, 4) or K (6, 6).   rest: G_R, the pose of body_b in body_a without force."""

    body_a: str
    body_b: str
    stiffness: ca.SX
    rest: Pose

    @property
    def ranges(self) -> tuple[Range, ...]:
        """What its numbers must be."""
        return _on_diagonal("stiffness", self.stiffness)

    @property
    def bodies(self) -> tuple[str, str]:
        return self.body_a, self.body_b

    def __call__(self, k: Any) -> ca.SX:
        G, rest = k.relative_pose(self.body_b, self.body_a), self.rest
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
    def ranges(self) -> tuple[Range, ...]:
        """What its numbers must be."""
        return _on_diagonal("damping", self.damping)

    @property
    def bodies(self) -> tuple[str, str]:
        return self.body_a, self.body_b

    def __call__(self, k: Any) -> ca.SX:
        return _quadratic_in_twist(self.damping, k, *self.bodies)

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
        return _quadratic_in_twist(self.inertia, k, *self.bodies)

    def __repr__(self) -> str:
        return reprs.words(self, f"{self.body_a!r} to {self.body_b!r}")


def _quadratic_in_twist(Q: ca.SX, k: Any, body_a: str, body_b: str) -> ca.SX:
    """xi^T Q xi / 2 for the twist xi of body_b relative to body_a, along b's axes.   Q: (6, 6)."""
    G = k.relative_pose(body_b, body_a)
    xi = k.twist(body_b) - se3.Ad_inv(G.R, G.p) @ k.twist(body_a)
    return ca.dot(xi, Q @ xi) / 2


def form(value: Any, what: str, *shapes: tuple[int, int]) -> ca.SX:
    """The value as a symmetric matrix K' (4, 4) or K (6, 6), checked: Vee(K') or K must be positive semidefinite.

    shapes: the shapes that are accepted; (4, 4) and (6, 6) if none is given.
    Raises ModelError: a matrix of another kind; the message gives its lowest eigenvalue.
    """
    K = symmetric_pseudo(value, what, *(shapes or ((4, 4), (6, 6))))
    _semidefinite(spatial(K), f"{what}: its form in twists" if K.shape == (4, 4) else f"{what}: the matrix")
    return K


def spatial(K: ca.SX) -> ca.SX:
    """The quadratic form in twists, (6, 6) and sparse: Vee(K') for K' (4, 4), K itself for K (6, 6)."""
    return ca.sparsify(ca.SX(se3.Vee(K)) if K.shape == (4, 4) else K)


def symmetric_pseudo(value: Any, what: str, *shapes: tuple[int, int]) -> ca.SX:
    """The value as a symmetric matrix, checked.

    what: its label in error messages.
    shapes: the shapes that are accepted; (4, 4) if none is given.
    Raises ModelError: another shape, a matrix that is not finite or not symmetric.
    """
    K, shapes = ca.densify(matrix(value, what)), shapes or ((4, 4),)
    if K.shape not in shapes:
        sizes = " or ".join(map(str, shapes))
        raise ModelError(f"{what}: a {sizes} matrix is needed, such as pseudo_matrix(...), got {brief(value)}")
    number = at_defaults(K)  # None if K has a symbol of no Parameter, which `mechanism` reports.
    if number is not None and not np.isfinite(number).all():
        raise ModelError(f"{what} is not finite")
    if number is not None and not is_symmetric(K):
        raise ModelError(f"{what}: the matrix is not symmetric")
    return K


def _semidefinite(K: ca.SX, what: str) -> None:
    """Raise ModelError for a matrix that is not positive semidefinite at the parameters' defaults."""
    number = at_defaults(K)
    lowest = 0.0 if number is None else np.linalg.eigvalsh(number)[0]
    if number is not None and lowest < -EIGENVALUE_ROUNDING * np.abs(number).max():
        raise ModelError(f"{what} must be positive semidefinite; its lowest eigenvalue is {lowest:.6g}")


def check_parts(K: ca.SX, what: str) -> None:
    """Raise ModelError where a stiffness K (6, 6) cannot be split into Kr, H and KR of `se3.inner`."""
    number = at_defaults(K) if K.shape == (6, 6) else None
    if number is None:
        return
    Kr, C = number[:3, :3], number[3:, :3]
    if not K.is_constant() and np.linalg.eigvalsh(Kr)[0] <= EIGENVALUE_ROUNDING * np.abs(Kr).max():
        raise ModelError(f"{what}: if it contains Parameters, its first three rows must resist every translation")
    remainder = C - C @ np.linalg.pinv(Kr, rcond=EIGENVALUE_ROUNDING, hermitian=True) @ Kr
    if np.abs(remainder).max() > 1e-9 * np.abs(number).max():
        raise ModelError(
            f"{what}: it couples rotation to a translation that its first three rows do not resist; add stiffness along it"
        )


def _on_diagonal(word: str, K: ca.SX) -> tuple[Range, ...]:
    """What a positive semidefinite (6, 6), or (4, 4) pseudo-matrix, must have at least: no entry below zero on its diagonal."""
    return tuple(Range(f"{word} {i + 1}, {i + 1}", x) for i, x in enumerate(ca.vertsplit(ca.diag(spatial(K)))))
