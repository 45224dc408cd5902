"""The connected subgroups of SE(3): the groups of motions that joints with a constant motion subspace permit.

Up to conjugation they are the twelve rows of `SUBGROUPS` [chhabra14 table 2.1]. Three things define a row: the axes along
which it translates, its rotations (none, about z, or any), and whether a rotation also advances it along z as a screw does.
Body twists are [v; w] = S v with a constant S (6, k), whatever the pose; a joint with another placement g has the conjugate
group, with Ad_g S.

    q: chart of the group, `motion` returns the pose.      v: body-fixed velocity, q_dot = K(q) v.
    s: screw parameters, pose = exp(hat(S s)): the constant twist that reaches it in unit time.    [chhabra14 (2.1.3)]

Example:
    >>> from pfaffian.maths.subgroups import SUBGROUPS
    >>> R, p = SUBGROUPS["planar"].motion([1.0, 2.0, 0.5])  # to (1, 2) m, turned by 0.5 rad
    >>> p
    DM([1, 2, 0])
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import casadi as ca
import numpy as np

from pfaffian.errors import ModelError
from pfaffian.maths import se3, so3, span
from pfaffian.maths.so3 import Matrix, matrix
from pfaffian.tables import Table

IN_GROUP = 1e-9  # largest distance of a numeric pose from the group that `log` accepts, relative to its position
FULL_TURN = 1e-9  # distance from a full turn [rad] within which a screw in the plane has no logarithm


class Rotation(NamedTuple):
    """The rotations of a subgroup.

    axes: indices of the entries of the twist [v; w] that are angular velocities.
    names, rates, units: names of its coordinates, names of its velocities, units of its coordinates.
    matrix: coordinates -> R (3, 3).   rate: coordinates -> K with their rate K w.
    of_vector: rotation vector along the axes -> coordinates.
    offset: (coordinates at rest, coordinates) -> e, see `Subgroup.displacement`, and E with e_dot = E w.
    """

    axes: tuple[int, ...]
    names: tuple[str, ...]
    rates: tuple[str, ...]
    units: tuple[str, ...]
    matrix: Callable[[Matrix], Matrix]
    rate: Callable[[Matrix], Matrix]
    of_vector: Callable[[Matrix], Matrix]
    offset: Callable[[Matrix, Matrix], tuple[Matrix, Matrix]]


def _eye(q: Matrix) -> Matrix:
    """R of a group without rotations."""
    return ca.DM.eye(3)


def _same(s: Matrix) -> Matrix:
    """Coordinates that are the entries of the rotation vector."""
    return s


def _no_rate(q: Matrix) -> Matrix:
    """K of a group without rotations."""
    return ca.DM(0, 0)


def _turn_z(q: Matrix) -> Matrix:
    """R of a rotation about z by the angle q."""
    s, c = ca.sin(q), ca.cos(q)
    return ca.blockcat([[c, -s, 0], [s, c, 0], [0, 0, 1]])


def _unit_rate(q: Matrix) -> Matrix:
    """K of an angle, whose rate is its velocity."""
    return ca.DM.ones(1, 1)


def _no_offset(rest: Matrix, q: Matrix) -> tuple[Matrix, Matrix]:
    """Empty e and E of a group without rotations."""
    return q, ca.DM(0, 0)


def _angle_offset(rest: Matrix, q: Matrix) -> tuple[Matrix, Matrix]:
    """e and E of an angle: the difference from rest."""
    return q - rest, ca.DM.ones(1, 1)


def _quaternion_offset(rest: Matrix, q: Matrix) -> tuple[Matrix, Matrix]:
    """e and E of an orientation: twice the vector part of the quaternion from rest."""
    r = so3.quat_mul(so3.quat_conj(rest), q)
    return 2 * r[:3], 2 * so3.quat_rate(r)[:3, :]


NO_TURN = Rotation((), (), (), (), _eye, _no_rate, _same, _no_offset)
ABOUT_Z = Rotation((5,), ("angle",), ("wz",), ("rad",), _turn_z, _unit_rate, _same, _angle_offset)
ANY_TURN = Rotation(
    (3, 4, 5), ("qx", "qy", "qz", "qw"), ("wx", "wy", "wz"), ("1",) * 4,
    so3.quat_to_matrix, so3.quat_rate, so3.quat_exp, _quaternion_offset,
)  # fmt: skip


@dataclass(frozen=True)
class Subgroup:
    """A connected subgroup of SE(3), in a frame whose z axis is its axis of rotation or the normal of its plane.

    along: the axes, of 0, 1, 2, along which it translates.   rotation: its rotations.
    screws: whether a rotation also advances it along z, by `pitch` [m/rad].
    """

    name: str
    along: tuple[int, ...] = ()
    rotation: Rotation = NO_TURN
    screws: bool = False
    pitch: Matrix = 0.0

    def with_pitch(self, pitch: Matrix) -> Subgroup:
        """This group with another pitch [m/rad], a number or an SX. Raises ModelError: its motions are not screws."""
        if not self.screws:
            raise ModelError(f"a {self.name} motion has no pitch")
        return replace(self, pitch=pitch)

    @property
    def axes(self) -> tuple[int, ...]:
        """For each velocity of the group, the index of the equal twist entry; other entries are zero except for a screw."""
        return self.along + self.rotation.axes

    @property
    def nv(self) -> int:
        """k, the dimension of the group."""
        return len(self.axes)

    @property
    def nq(self) -> int:
        return len(self.along) + len(self.rotation.names)

    @property
    def q_names(self) -> tuple[str, ...]:
        """Name of each coordinate; empty where there is only one."""
        return ("",) if self.nq == 1 else tuple("xyz"[i] for i in self.along) + self.rotation.names

    @property
    def v_names(self) -> tuple[str, ...]:
        return ("",) if self.nv == 1 else tuple(f"v{'xyz'[i]}" for i in self.along) + self.rotation.rates

    @property
    def q_units(self) -> tuple[str, ...]:
        return ("m",) * len(self.along) + self.rotation.units

    @property
    def v_units(self) -> tuple[str, ...]:
        return ("m/s",) * len(self.along) + ("rad/s",) * len(self.rotation.axes)

    @property
    def s_names(self) -> tuple[str, ...]:
        """Name of each screw parameter; empty where there is only one."""
        turns = self.rotation.names if len(self.rotation.names) == len(self.rotation.axes) else ("rx", "ry", "rz")
        return ("",) if self.nv == 1 else tuple("xyz"[i] for i in self.along) + turns

    @property
    def s_units(self) -> tuple[str, ...]:
        return ("m",) * len(self.along) + ("rad",) * len(self.rotation.axes)

    @property
    def commutes(self) -> bool:
        """Whether all motions of the group commute: chart and screw parameters are then the same."""
        return len(self.rotation.axes) <= 1 and not (self.rotation.axes and set(self.along) & set(PLANE))

    @property
    def S(self) -> ca.SX:
        """(6, k) basis of the algebra: body twist [v; w] = S v. Zeros are structural."""
        S = ca.SX(6, self.nv)
        for column, i in enumerate(self.axes):
            S[i, column] = 1
        if self.screws:
            S[2, self.nv - 1] = self.pitch
        return S

    # -- the chart ----------------------------------------------------------------------------------------------

    def motion(self, q: Matrix) -> tuple[Matrix, Matrix]:
        """Pose (R, p) at the coordinates q (nq, 1)."""
        q, n = matrix(q, self.nq), len(self.along)
        position = ca.SX.zeros(3, 1) if isinstance(q, ca.SX) else ca.DM.zeros(3, 1)
        for row, i in enumerate(self.along):
            position[i] = q[row]
        if self.screws:
            position = position + ca.vertcat(0, 0, self.pitch * q[n])
        return self.rotation.matrix(q[n:, 0]), position

    def kinematic(self, q: Matrix) -> Matrix:
        """K (nq, k): q_dot = K v, v body-fixed."""
        along, turn = list(self.along), matrix(q, self.nq)[len(self.along) :, 0]
        return ca.diagcat(self.rotation.matrix(turn)[along, along], self.rotation.rate(turn))

    def chart(self, R: Matrix, p: Matrix) -> Matrix:
        """Coordinates q (nq, 1) of a pose of the group.

        Angles are within pi, except that of a screw, which follows from p and includes full turns.
        """
        w = ca.vertcat(0, 0, matrix(p, 3)[2] / self.pitch) if self._unwinds else so3.log(R)
        turn = self.rotation.of_vector(w[[i - 3 for i in self.rotation.axes], 0])
        return ca.vertcat(matrix(p, 3)[list(self.along), 0], turn)

    def displacement(self, q: Matrix, rest: Matrix) -> tuple[Matrix, Matrix]:
        """Displacement e (k, 1) from the coordinates at rest to q, and E (k, k) with e_dot = E v.

        For translations and angles, e is the difference. For an orientation, it is twice the vector part of the quaternion
        from rest to q, of length 2 sin(angle / 2): smooth, and with the same e^T e for both quaternions of an orientation.
        """
        n, q, rest = len(self.along), matrix(q, self.nq), matrix(rest, self.nq)
        e, E = self.rotation.offset(rest[n:, 0], q[n:, 0])
        R = self.rotation.matrix(q[n:, 0])
        return ca.vertcat(q[:n, 0] - rest[:n, 0], e), ca.diagcat(R[list(self.along), list(self.along)], E)

    @property
    def _unwinds(self) -> bool:
        """Whether the position determines the number of full turns."""
        return self.screws and not ca.SX(self.pitch).is_zero()

    # -- the algebra --------------------------------------------------------------------------------------------

    def exp(self, s: Matrix) -> tuple[Matrix, Matrix]:
        """Pose (R, p) reached by the constant body twist S s in unit time. s (k, 1) [m, rad]."""
        return self.motion(s) if self.commutes else se3.exp(self._twist(s))

    def log(self, R: Matrix, p: Matrix) -> Matrix:
        """Screw parameters s (k, 1) with exp(s) equal to the pose (R, p) of the group; rotations within pi.

        Every pose of a group has a logarithm, with one exception: in a planar-helical group p_z gives the angle, and a full
        turn with a displacement in the plane is not an exponential [chhabra14 prop. 2.1.3]. The planar part is [chhabra14
        (2.4.19)] s_xy = (alpha 1 - theta/2 hat(e_z)) p_xy, alpha = theta/2 cot(theta/2).

        Raises ModelError: a numeric pose that is not in the group or has no logarithm; expressions are not checked.
        """
        R, p = matrix(R, 3, 3), matrix(p, 3)
        numeric = isinstance(R, ca.DM) and isinstance(p, ca.DM) and ca.SX(self.pitch).is_constant()
        if numeric:
            self._check_in_group(R, p)
        if not self._unwinds:
            return se3.log(R, p)[list(self.axes), 0]
        theta = p[2] / self.pitch
        if not self.along:
            return theta
        turns = round(float(theta) / (2 * np.pi)) if numeric else 0
        if turns and abs(float(theta) - 2 * np.pi * turns) < FULL_TURN:
            if float(ca.norm_2(p[:2])) <= IN_GROUP * float(ca.norm_2(p)):
                return ca.vertcat(0, 0, theta)
            raise ModelError(
                f"log: a {self.name} motion by {turns} full turn(s) with a displacement in the plane is not the "
                "exponential of a twist: write it as two successive motions"
            )
        alpha, half = so3.dexp_inv_factors(theta * theta)[0], theta / 2
        return ca.vertcat(alpha * p[0] + half * p[1], alpha * p[1] - half * p[0], theta)

    def _check_in_group(self, R: ca.DM, p: ca.DM) -> None:
        """Raises ModelError: the pose is not in the group."""
        exact = replace(self, pitch=ca.DM(ca.SX(self.pitch))) if self.screws else self
        R_at, p_at = exact.motion(ca.DM(exact.chart(R, p)))
        if not max(float(ca.norm_inf(R_at - R)), float(ca.norm_inf(p_at - p)) / max(1.0, float(ca.norm_inf(p)))) < IN_GROUP:
            raise ModelError(f"log: the pose is not a {self.name} motion")

    def _twist(self, s: Matrix) -> Matrix:
        return ca.mtimes(self.S if isinstance(s, ca.SX) else self._numeric_S, matrix(s, self.nv))

    @property
    def _numeric_S(self) -> Matrix:
        S = self.S
        return ca.DM(S) if S.is_constant() else S

    def dexp_right(self, s: Matrix) -> Matrix:
        """(k, k) right differential of exp in the algebra: v = dexp_right(s) s_dot, the BODY velocity. [chhabra14 (2.1.4)]"""
        return self._within(se3.dexp_right, s)

    def dexp_left(self, s: Matrix) -> Matrix:
        """(k, k) left differential: S dexp_left(s) s_dot is the twist in the fixed frame."""
        return self._within(se3.dexp_left, s)

    def dexp_right_inv(self, s: Matrix) -> Matrix:
        """(k, k) inverse of `dexp_right`, s_dot = dexp_right_inv(s) v, for rotations of less than a full turn.

        [chhabra14 (2.1.5)] With a distribution v = B speeds, the screw speeds are s_dot = dexp_right_inv(s) B speeds.
        """
        return self._within(se3.dexp_right_inv, s)

    def _within(self, differential: Callable[[Matrix], Matrix], s: Matrix) -> Matrix:
        """(k, k) matrix of a differential of exp, which maps the algebra to itself, in the coordinates v of the twist S v."""
        if self.commutes:
            return ca.DM.eye(self.nv)
        basis = self.S if isinstance(s, ca.SX) else self._numeric_S
        return ca.mtimes(differential(self._twist(s)), basis)[list(self.axes), :]

    def screw_to_chart(self, s: Matrix) -> Matrix:
        """Coordinates q (nq, 1) of screw parameters s (k, 1); angles keep their full turns. [chhabra14 (2.1.3a)]"""
        if self.commutes:
            return matrix(s, self.nv)
        _, p = self.exp(s)
        return ca.vertcat(p[list(self.along), 0], self.rotation.of_vector(matrix(s, self.nv)[len(self.along) :, 0]))

    def chart_to_screw(self, q: Matrix) -> Matrix:
        """Screw parameters s (k, 1) of coordinates q (nq, 1); if motions do not commute, by `log`, with rotations within pi."""
        return matrix(q, self.nq) if self.commutes else self.log(*self.motion(q))

    def screw_rate(self, s: Matrix) -> Matrix:
        """Z (nq, k) with q_dot = Z(s) s_dot; the unit matrix if all motions of the group commute. [chhabra14 (2.1.3b)]"""
        return ca.mtimes(self.kinematic(self.screw_to_chart(s)), self.dexp_right(s))


PLANE, SPACE = (0, 1), (0, 1, 2)

SUBGROUPS = Table("motion group", {
    g.name: g
    for g in (
        Subgroup("fixed"),
        Subgroup("revolute", (), ABOUT_Z),
        Subgroup("prismatic", (2,)),
        Subgroup("helical", (), ABOUT_Z, screws=True),
        Subgroup("cylindrical", (2,), ABOUT_Z),
        Subgroup("planar-translation", PLANE),
        Subgroup("translation", SPACE),
        Subgroup("planar", PLANE, ABOUT_Z),
        Subgroup("planar-helical", PLANE, ABOUT_Z, screws=True),
        Subgroup("schoenflies", SPACE, ABOUT_Z),
        Subgroup("spherical", (), ANY_TURN),
        Subgroup("free", SPACE, ANY_TURN),
    )
}, "a joint of your own is a pf.edge with pf.coordinates")  # fmt: skip
"""Name -> subgroup, screws with zero pitch. Up to conjugation these are all connected subgroups. [chhabra14 table 2.1]

planar-translation: R^2.   translation: R^3.   planar: SE(2).   schoenflies: SE(2) x R, planar and along the normal.
planar-helical: H_p x R^2, a screw along the normal of the plane in which it translates.
"""


def is_subgroup(basis: Matrix, tolerance: float = 1e-9) -> bool:
    """Whether the span of numeric twists, the columns of `basis`, is closed under the bracket. [chhabra14 def. 2.1.2]

    If so, a joint with these twists permits a group of motions, and its body twists form a constant subspace.

    basis: (6, k).   tolerance: relative to the largest singular value.

    Example:
        >>> import numpy as np
        >>> from pfaffian.maths import subgroups
        >>> subgroups.is_subgroup(np.eye(6)[:, 3:]), subgroups.is_subgroup(np.eye(6)[:, 3:5])  # about three axes, and two
        (True, False)
    """
    B = np.array(ca.DM(basis).full())
    Q, sizes, _ = np.linalg.svd(B, full_matrices=False)
    Q = Q[:, sizes > tolerance * max(sizes, default=0.0)]
    for i in range(Q.shape[1]):
        for j in range(i):
            bracket = np.array(ca.DM(ca.mtimes(se3.ad(Q[:, i]), Q[:, j])).full()).ravel()
            if np.linalg.norm(bracket - Q @ (Q.T @ bracket)) > tolerance:
                return False
    return True


def name_of(basis: Matrix, tolerance: float = 1e-9) -> str:
    """Name, such as "SE(2) x R", of the group whose algebra the numeric twists span; "none" if there is no motion.

    [chhabra14 table 2.1] The columns [v; w] of `basis` must be closed under the bracket.
    Raises ModelError: they are not, so that the twists do not generate a group of that dimension.

    basis: (6, k).   tolerance: relative to the largest singular value.

    Example:
        >>> import numpy as np
        >>> from pfaffian.maths import subgroups
        >>> subgroups.name_of(np.eye(6)[:, [0, 1, 5]])
        'SE(2)'
    """
    B = np.array(ca.DM(basis).full()).reshape(6, -1)
    if not is_subgroup(B, tolerance):
        raise ModelError("these twists do not form an algebra: the bracket of two of them is not in their span")
    Q, sizes, _ = np.linalg.svd(B, full_matrices=False)
    Q = Q[:, sizes > tolerance * max(1.0, sizes.max(initial=0.0))]
    k, turns = Q.shape[1], np.linalg.matrix_rank(Q[3:], tol=tolerance)
    slides = k - turns
    if turns == 1:
        # The rotating twist. Where its pitch matters, the others translate across its axis, so its translation along it is the
        # pitch.
        turning = Q @ np.linalg.svd(Q[3:])[2][0]
        screws = abs(turning[:3] @ turning[3:]) > tolerance * (turning[3:] @ turning[3:])
        return {0: "H" if screws else "SO(2)", 1: "SO(2) x R", 2: "H x R^2" if screws else "SE(2)", 3: "SE(2) x R"}[slides]
    return {(0, 0): "none", (0, 1): "R", (0, 2): "R^2", (0, 3): "R^3", (3, 0): "SO(3)", (3, 3): "SE(3)"}[turns, slides]


def isotropy(basis: Matrix, momentum: Matrix, tolerance: float = 1e-9) -> np.ndarray:
    """(k, d) orthonormal x whose motions B x leave a momentum mu unchanged: ad(B x)^T mu = 0 on the algebra that B spans.

    [chhabra14 table 3.1]
    basis: (6, k) B, numeric twists [v; w] closed under the bracket.
    momentum: (k,) mu, the momenta along the columns of B [N s, N m s], in the frame of B.
    tolerance: relative to the largest entry of the momentum.

    Example:
        >>> import numpy as np
        >>> from pfaffian.maths import subgroups
        >>> abs(subgroups.isotropy(np.eye(6)[:, 3:], [0.0, 0.0, 2.0])).round(9)  # turns about the angular momentum
        array([[0.],
               [0.],
               [1.]])
    """
    B, mu = np.array(ca.DM(basis).full()).reshape(6, -1), np.asarray(momentum, dtype=float).ravel()
    k, back = B.shape[1], np.linalg.pinv(B)
    ad = [back @ np.array(ca.DM(ca.mtimes(se3.ad(B[:, i]), B)).full()) for i in range(k)]
    rows = np.array([a.T @ mu for a in ad]).T.reshape(k, k)
    _, sizes, V = np.linalg.svd(rows)
    return span.basis(V[sizes <= tolerance * max(np.abs(mu).max(initial=0.0), 1e-300)].T)
