"""The function V(R) = -tr(P R) of a rotation R: critical points, special polar decomposition, Wahba's problem. [konz25 2.4]

As a function of the unit quaternion of R, (x, y, z, w), V is a quadratic form with the symmetric 4 x 4 matrix

    [[tr(P) 1 - P - P^T, vee2(P)], [vee2(P)^T, -tr(P)]],

Its critical points are therefore the eigenvectors of this matrix, its critical values the eigenvalues V_0 <= ... <= V_3, and
the Hessian at the i-th critical point has the eigenvalues (V_j - V_i) / 2. This summarises the table of [konz25 2.4]. A double
eigenvalue has a circle of critical rotations, a triple one a sphere of quaternions, in which opposite quaternions are the same
rotation. All functions take numbers, not expressions.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from pfaffian.errors import ModelError, brief
from pfaffian.maths import so3
from pfaffian.maths.span import basis
from pfaffian.maths.spectrum import principal_axes
from pfaffian.model.number import floats, is_symmetric

SAME_VALUE = 1e-12
"""Critical values count as equal if they differ by less than this fraction of the range of V."""

SHAPES = ("a point", "a circle", "a sphere", "all rotations")
"""Names of the sets of critical rotations with one value, by dimension from 0."""


@dataclass(frozen=True, eq=False)
class CriticalRotations:
    """The set of critical rotations of V = -tr(P R) with one value of V.

    kind: minimum, saddle or maximum over all rotations; constant for P = 0.
    value: V on the set.
    eigenvalues: (3,) of the Hessian Vee(P R), ascending; zero along the set.
    quaternions: (k, 4) orthonormal rows (x, y, z, w); the set consists of all their combinations of unit length.
    """

    kind: str
    value: float
    eigenvalues: np.ndarray
    quaternions: np.ndarray

    @property
    def shape(self) -> str:
        """The shape of the set, of dimension k - 1: a point, a circle, a sphere or all rotations."""
        return SHAPES[len(self.quaternions) - 1]

    @property
    def rotation(self) -> np.ndarray:
        """(3, 3) the rotation of the set with the smallest angle."""
        nearest = self.quaternions[:, 3]
        return self.at(nearest if np.linalg.norm(nearest) > SAME_VALUE else np.eye(len(nearest))[0])

    def at(self, c: Any) -> np.ndarray:
        """(3, 3) the rotation of the set with the quaternion c @ quaternions.   c: (k,), of any length but zero.

        Raises ModelError: the wrong number of values, or all zero.
        """
        x = floats(c, "c")
        if x.shape != (len(self.quaternions),) or not x.any():
            raise ModelError(f"c: {len(self.quaternions)} number(s), not all zero, are needed for {self.shape}, got {brief(c)}")
        q = x / np.linalg.norm(x) @ self.quaternions
        return np.array(ca.DM(so3.quat_to_matrix(q / np.linalg.norm(q))))

    def __repr__(self) -> str:
        values = ", ".join(f"{x:.5g}" for x in self.eigenvalues)
        return f"<CriticalRotations: {self.kind}, {self.shape}, value {self.value:.5g}, eigenvalues ({values})>"


class SpecialPolar(NamedTuple):
    """The special polar decomposition M = R Wed(K), Wed(K) = tr(K)/2 1 - K.

    R: (3, 3) rotation; if there are several, the one with the smallest angle.
    K: (3, 3) symmetric and positive semidefinite; always unique.
    unique: whether R is unique, which it is if K is positive definite.
    """

    R: np.ndarray
    K: np.ndarray
    unique: bool


class Attitude(NamedTuple):
    """The rotation between two sets of directions, as `wahba` estimates it.

    R: (3, 3) rotation with u_k = R v_k as nearly as possible.
    cost: sum w_k |u_k - R v_k|^2 / 2.
    information: (3, 3) Hessian of the cost along R_dot = R hat(w). For directions with standard deviations sigma_k [rad] and
        w_k = 1/sigma_k^2, its inverse is the covariance of the error of R [rad^2], along the axes of the v_k.
    """

    R: np.ndarray
    cost: float
    information: np.ndarray


def critical_rotations(P: Any) -> tuple[CriticalRotations, ...]:
    """All critical points of V(R) = -tr(P R) over rotations R, by ascending value. [konz25 (2.61)-(2.68)]

    Along R_dot = R hat(w) the gradient of V is vee2(P R); at critical points its Hessian is Vee(P R). All minima have the
    lowest value and all maxima the highest.

    Args:
        P: (3, 3) numbers, any matrix. Critical values that differ by less than 1e-12 of the range of V count as equal.
    Returns:
        One item for each value: kind (minimum, saddle, maximum or constant), value, eigenvalues (3,) of the Hessian,
        quaternions (k, 4) that span the set, shape (a point, a circle, a sphere or all rotations) and rotation (3, 3), the one
        with the smallest angle in the set.
    Raises ModelError: P is not a (3, 3) matrix of numbers.

    Example:
        >>> import numpy as np
        >>> import pfaffian as pf
        >>> sets = pf.rotations.critical_rotations(np.diag([4.0, 2.0, 1.0]))  # the unit matrix, half turns about x, y and z
        >>> [(c.kind, round(c.value, 6)) for c in sets]
        [('minimum', -7.0), ('saddle', -1.0), ('saddle', 3.0), ('maximum', 5.0)]
    """
    M = _square(P, "P")
    scale = float(np.abs(M).max()) or 1.0  # Without it products of entries may overflow.
    values, vectors = np.linalg.eigh(_quadratic_form(M / scale))
    groups = [[0]]
    for i, (low, high) in enumerate(pairwise(values), 1):
        groups[-1:] = [[*groups[-1], i]] if high - low <= SAME_VALUE * (values[3] - values[0]) else [groups[-1], [i]]
    mean = np.concatenate([np.full(len(g), values[g].mean()) for g in groups]) * scale
    return tuple(
        CriticalRotations(
            _kind(g), float(mean[g[0]]), np.delete(mean - mean[g[0]], g[0]) / 2, basis(vectors[:, g]).T,
        )
        for g in groups
    )  # fmt: skip


def _quadratic_form(P: np.ndarray) -> np.ndarray:
    """The matrix D (4, 4) with -tr(P R) = q^T D q for the unit quaternion q of R."""
    axial = np.array(so3.vee2(P))
    return np.block([[np.trace(P) * np.eye(3) - P - P.T, axial], [axial.T, np.full((1, 1), -np.trace(P))]])


def _kind(group: list[int]) -> str:
    """The kind of the critical rotations to which the eigenvalues of these numbers belong."""
    if len(group) == 4:
        return "constant"
    return "minimum" if group[0] == 0 else "maximum" if group[-1] == 3 else "saddle"


def special_polar(M: Any) -> SpecialPolar:
    """The special polar decomposition M = R Wed(K) into a rotation R and a symmetric positive semidefinite K. [konz25 2.4]

    Wed(K) = tr(K)/2 1 - K. R minimises -tr(M^T R), and so the distance |M - R|; K is the Hessian at the minimum. Unlike the
    polar decomposition, R is a proper rotation for determinants of either sign. Where det M is negative, Wed(K) is indefinite.

    Args:
        M: (3, 3) numbers, any matrix.
    Returns:
        R (3, 3), if there are several the one with the smallest angle; K (3, 3); unique, whether R is unique, which it is if K
        is positive definite.
    Raises ModelError: M is not a (3, 3) matrix of numbers.

    Example:
        >>> import numpy as np
        >>> import pfaffian as pf
        >>> polar = pf.rotations.special_polar([[0, -2, 0], [2, 0, 0], [0, 0, 2]])  # twice a quarter turn about z
        >>> polar.R.round(6).astype(int).tolist(), np.diag(polar.K).round(6).tolist(), polar.unique
        ([[0, -1, 0], [1, 0, 0], [0, 0, 1]], [4.0, 4.0, 4.0], True)
    """
    X = _square(M, "M")
    lowest = critical_rotations(X.T)[0]
    S = lowest.rotation.T @ X
    S = (S + S.T) / 2
    return SpecialPolar(lowest.rotation, np.trace(S) * np.eye(3) - S, lowest.shape == "a point")


def nearest_rotation(Q: Any, metric: Any = None) -> np.ndarray:
    """The rotation R (3, 3) nearest to a matrix Q, with the least tr((R - Q)^T K (R - Q)). [konz25 2.4]

    Args:
        Q: (3, 3) numbers.
        metric: K (3, 3), symmetric and positive semidefinite; the unit matrix if None.
    Raises ModelError: several rotations are equally near, or the metric is not symmetric or not positive semidefinite; the
    message then gives its lowest eigenvalue.

    Example:
        >>> import pfaffian as pf
        >>> pf.rotations.nearest_rotation([[0, -1.1, 0], [0.9, 0, 0], [0, 0, 1]]).round(6).astype(int).tolist()
        [[0, -1, 0], [1, 0, 0], [0, 0, 1]]
    """
    X, K = _square(Q, "Q"), np.eye(3) if metric is None else _square(metric, "metric")
    lowest = np.linalg.eigvalsh(K)[0]
    if not is_symmetric(K):
        raise ModelError("metric: the matrix is not symmetric")
    if lowest < -SAME_VALUE * np.abs(K).max():
        raise ModelError(f"metric: the matrix must be positive semidefinite; its lowest eigenvalue is {lowest:.6g}")
    minima = critical_rotations(X.T @ K)[0]
    if minima.shape != "a point":
        raise ModelError(
            f"Q: its nearest rotations are {minima.shape}, not a point; critical_rotations(Q.T @ K)[0] gives them all"
        )
    return minima.rotation


def wahba(u: Any, v: Any, weights: Any = None) -> Attitude:
    """The solution of Wahba's problem: the rotation R with the least cost sum w_k |u_k - R v_k|^2 / 2. [konz25 2.4]

    It minimises -tr(P R) with P = sum w_k v_k u_k^T.

    Args:
        u, v: (n, 3) the same directions in two frames, n >= 2.
        weights: (n,) w_k, not below zero; ones if None.
    Returns:
        R (3, 3); cost; information (3, 3), the Hessian of the cost along R_dot = R hat(w). For directions with standard
        deviations sigma_k [rad] and w_k = 1/sigma_k^2, its inverse is the covariance of the error of R [rad^2], along the axes
        of the v_k.
    Raises ModelError: R is not unique, since all directions with a weight are parallel; a weight below zero.

    Example:
        >>> import pfaffian as pf
        >>> attitude = pf.rotations.wahba([(0, 1, 0), (-1, 0, 0)], [(1, 0, 0), (0, 1, 0)])
        >>> attitude.R.round(6).astype(int).tolist(), round(attitude.cost, 9)
        ([[0, -1, 0], [1, 0, 0], [0, 0, 1]], 0.0)
    """
    a, b = floats(u, "u"), floats(v, "v")
    if a.ndim != 2 or a.shape != b.shape or a.shape[1] != 3:
        raise ModelError(f"wahba: u and v of one shape (n, 3) are needed, got {a.shape} and {b.shape}")
    w = np.ones(len(a)) if weights is None else floats(weights, "weights")
    if w.shape != (len(a),) or (w < 0).any():
        raise ModelError(f"wahba: weights: {len(a)} numbers, none below zero, are needed, got {brief(weights)}")
    P = (w[:, None] * b).T @ a
    minima = critical_rotations(P)[0]
    R = minima.rotation
    if minima.shape != "a point":
        free = principal_axes(_symmetric_Vee(P @ R))[1][:, 0]
        about = ", ".join(f"{x:.3g}" for x in free)
        raise ModelError(
            f"wahba: the rotations that fit best are {minima.shape}, not a point: turning about ({about}) in v's frame costs "
            "nothing; two directions with a weight that are not along one line are needed"
        )
    return Attitude(R, float(w @ np.square(a - b @ R.T).sum(axis=1)) / 2, _symmetric_Vee(P @ R))


def _symmetric_Vee(S: np.ndarray) -> np.ndarray:
    """Vee(S) (3, 3), symmetrised."""
    return np.trace(S) * np.eye(3) - (S + S.T) / 2


def _square(value: Any, what: str) -> np.ndarray:
    """The value as a (3, 3) array. Raises ModelError: another shape.   what: the label of the value in the message."""
    x = floats(value, what)
    if x.shape != (3, 3):
        raise ModelError(f"{what}: a (3, 3) matrix of numbers is needed, got {brief(value)}")
    return x
