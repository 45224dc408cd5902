"""Rotations: SO(3), unit quaternions (x, y, z, w), exponential, logarithm and their differentials.

Every function takes CasADi matrices or plain numbers and traces to straight-line code. The exponential and its differentials
are built on the entire functions of `stumpff`, and the logarithm on a series near zero, so none of them is singular at small
angles.

Example:
    >>> from pfaffian.maths import so3
    >>> R = so3.exp([0.0, 0.0, 0.5])  # by 0.5 rad about z
    >>> so3.log(R).full().ravel().round(3)
    array([0. , 0. , 0.5])
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import casadi as ca
import numpy as np

from pfaffian.errors import ModelError

Matrix: TypeAlias = Any  # results are ca.SX or ca.DM; arguments may also be NumPy arrays and lists of numbers or scalars

NEAR = 1.0  # squared angle below which the series is used: above it the quotients lose less than two digits
TERMS = 10  # NEAR**TERMS / (2 TERMS)! = 4e-19, and two derivatives stay below eps
NEAR_TANGENT = 1 / 16  # the same limit for tan(angle / 2)**2, in the logarithm
TERMS_TANGENT = 15
SMALLEST = 1e-300  # lower bound of a squared angle in a denominator
SNAP = 1e-15  # distance from 0 or +-1 within which entries of a numeric roll-pitch-yaw matrix are made exact

_EMPTY = ca.DM(1, 1)  # a structural zero, which products drop


def scalars(value: Matrix, n: int) -> list[Matrix]:
    """The n entries of a column, as a list.

    value: n numbers or expressions.

    Example:
        >>> from pfaffian.maths import so3
        >>> so3.scalars([1.0, 2.0], 2)
        [DM(1), DM(2)]
    """
    return list(ca.vertsplit(matrix(value, n)))


def _sparse(m: Matrix) -> Matrix:
    """The matrix with its numeric zeros made structural."""
    return m if isinstance(m, ca.MX) else ca.sparsify(m)


def matrix(value: Matrix, rows: int, columns: int = 1) -> Matrix:
    """The value as a (rows, columns) CasADi matrix: SX stays SX, numbers become DM. Raises ModelError: it has another shape.

    Example:
        >>> from pfaffian.maths import so3
        >>> print(so3.matrix([1.0, 2.0, 3.0], 3))
        [1, 2, 3]
    """
    m: Matrix = value
    if isinstance(value, Sequence) and any(isinstance(e, ca.SX | ca.DM | ca.MX) for e in value):
        m = ca.vertcat(*value)
    elif not isinstance(value, ca.SX | ca.DM | ca.MX):
        m = ca.DM(np.asarray(value, dtype=float))
    if m.shape != (rows, columns):
        raise ModelError(f"expected a {rows} x {columns} matrix, got {m.shape[0]} x {m.shape[1]}")
    return m


def stumpff(s: Matrix, k: int) -> list[Matrix]:
    """Stumpff functions c_0(s) ... c_k(s), k >= 1, smooth to all orders at s = 0.

    c_j(s) = sum_n (-s)^n / (2n + j)!;  c_0 = cos x, c_1 = sin x / x, c_2 = (1 - cos x) / x^2, ... with s = x^2.
    They obey c_j = 1/j! - s c_{j+2} and 2 c_j' = j c_{j+2} - c_{j+1}.

    Example:
        >>> from pfaffian.maths import so3
        >>> so3.stumpff(0.0, 2)  # 1 / j!
        [DM(1), DM(1), DM(0.5)]
    """
    near = s < NEAR
    far_s = ca.if_else(near, 1.0, s)
    x = ca.sqrt(far_s)
    far = [ca.cos(x), ca.sin(x) / x]
    inverse = 1 / far_s
    for j in range(2, k + 1):
        far.append((1 / math.factorial(j - 2) - far[j - 2]) * inverse)
    near_s = ca.if_else(near, s, 0.0)
    series = [_horner([(-1) ** n / math.factorial(2 * n + j) for n in range(TERMS)], near_s) for j in (k, k - 1)]
    for j in range(k - 2, -1, -1):
        series.append(1 / math.factorial(j) - near_s * series[k - j - 2])
    return [ca.if_else(near, series[k - j], far[j]) for j in range(k + 1)]


def _horner(coefficients: list[float], x: Matrix) -> Matrix:
    """The polynomial with these coefficients, the constant first, by Horner's rule."""
    value = coefficients[-1]
    for c in reversed(coefficients[:-1]):
        value = c + x * value
    return value


def isotropic(factors: Sequence[Matrix], w: Matrix) -> Matrix:
    """a 1 + b hat(w) + c w w^T for factors (a, b, c): the form of every isotropic function of a vector. -> (3, 3).

    Example:
        >>> import casadi as ca
        >>> from pfaffian.maths import so3
        >>> print(so3.isotropic((1.0, 0.0, 2.0), ca.DM([0, 0, 3])))  # 1 + 2 w w^T
        [[1, 0, 0], [0, 1, 0], [0, 0, 19]]
    """
    a, b, c = factors
    return a * ca.DM.eye(3) + hat(b * w) + symmetric(ca.mtimes(c * w, w.T))


def symmetric(m: Matrix) -> Matrix:
    """Make a matrix that is symmetric up to rounding exactly so, from its upper triangle; the lower one is never computed.

    Example:
        >>> import casadi as ca
        >>> from pfaffian.maths import so3
        >>> print(so3.symmetric(ca.DM([[1, 2], [7, 3]])))
        [[1, 2], [2, 3]]
    """
    return ca.triu2symm(ca.triu(m))


def hat(w: Matrix) -> Matrix:
    """Skew matrix of a vector: hat(w) u = w x u. w (3,) -> (3, 3), zeros structural.

    Example:
        >>> from pfaffian.maths import so3
        >>> (so3.hat([0, 0, 1]) @ [1, 0, 0]).full().ravel()  # z x x = y
        array([0., 1., 0.])
    """
    x, y, z = scalars(w, 3)
    o = _EMPTY
    return ca.vertcat(ca.horzcat(o, -z, y), ca.horzcat(z, o, -x), ca.horzcat(-y, x, o))


def vee(S: Matrix) -> Matrix:
    """Vector of a skew matrix, hat(vee(S)) = S; of any other matrix, that of its skew part (S - S^T)/2. S (3, 3) -> (3,).

    Example:
        >>> from pfaffian.maths import so3
        >>> so3.vee(so3.hat([1, 2, 3]))
        DM([1, 2, 3])
    """
    S = matrix(S, 3, 3)
    return ca.vertcat(S[2, 1] - S[1, 2], S[0, 2] - S[2, 0], S[1, 0] - S[0, 1]) / 2


def vee2(M: Matrix) -> Matrix:
    """Vector of M - M^T: tr(M hat(w)^T) = w^T vee2(M), the gradient of tr(M R) along R_dot = R hat(w). M (3, 3) -> (3,).

    Example:
        >>> from pfaffian.maths import so3
        >>> so3.vee2(so3.hat([1, 2, 3]))  # twice the vector
        DM([2, 4, 6])
    """
    return 2 * vee(M)


def Vee(M: Matrix) -> Matrix:
    """trace(M) 1 - M: tr(hat(w) M hat(x)^T) = x^T Vee(M) w, inertia from a second moment. [konz25 (2.51)-(2.57)] -> (3, 3).

    Example:
        >>> import numpy as np
        >>> from pfaffian.maths import so3
        >>> so3.Vee(np.diag([1, 2, 3])).full().diagonal()
        array([5., 4., 3.])
    """
    M = matrix(M, 3, 3)
    return ca.trace(M) * ca.DM.eye(3) - M


def Wed(M: Matrix) -> Matrix:
    """trace(M)/2 1 - M, the inverse of Vee: the second moment of an inertia. (3, 3) -> (3, 3).

    Example:
        >>> import numpy as np
        >>> from pfaffian.maths import so3
        >>> so3.Wed(np.diag([5, 4, 3])).full().diagonal()
        array([1., 2., 3.])
    """
    M = matrix(M, 3, 3)
    return (ca.trace(M) / 2) * ca.DM.eye(3) - M


def exp(w: Matrix) -> Matrix:
    """Rotation by |w| [rad] about w: R = c_0 1 + c_1 hat(w) + c_2 w w^T at s = w.w. w (3,) -> (3, 3).

    Example:
        >>> import numpy as np
        >>> from pfaffian.maths import so3
        >>> so3.exp([0, 0, np.pi / 2]).full()[:, 0].round(3)  # x turns to y
        array([0., 1., 0.])
    """
    w = matrix(w, 3)
    return isotropic(stumpff(ca.sumsqr(w), 2), w)


def log(R: Matrix) -> Matrix:
    """Rotation vector, exp(log(R)) = R, |log(R)| <= pi [rad]; at pi the sign of the axis is arbitrary. R (3, 3) -> (3,).

    Example:
        >>> from pfaffian.maths import so3
        >>> so3.log(so3.exp([0.0, 0.0, 0.5])).full().ravel().round(3)
        array([0. , 0. , 0.5])
    """
    return quat_log(quat_of(R))


def dexp_left(w: Matrix) -> Matrix:
    """Left differential of exp: dR/dt R^T = hat(dexp_left(w) w_dot), the angular velocity in the fixed frame.

    dexp_left(w) = c_1 1 + c_2 hat(w) + c_3 w w^T = dexp_right(-w) = exp(w) dexp_right(w).  w (3,) -> (3, 3).

    Example:
        >>> from pfaffian.maths import so3
        >>> (so3.dexp_left([0, 0, 0.5]) @ [0, 0, 2]).full().ravel().round(3)  # about the axis itself nothing changes
        array([0., 0., 2.])
    """
    w = matrix(w, 3)
    return isotropic(stumpff(ca.sumsqr(w), 3)[1:], w)


def dexp_right(w: Matrix) -> Matrix:
    """Right differential of exp: R^T dR/dt = hat(dexp_right(w) w_dot), the BODY angular velocity. w (3,) -> (3, 3).

    Example:
        >>> from pfaffian.maths import so3
        >>> (so3.dexp_right([0, 0, 0.5]) @ [0, 0, 2]).full().ravel().round(3)
        array([0., 0., 2.])
    """
    return dexp_left(-matrix(w, 3))


def dexp_left_inv(w: Matrix) -> Matrix:
    """Inverse of dexp_left: a 1 - hat(w)/2 + g w w^T, for |w| < 2 pi.  w (3,) -> (3, 3).

    With x = |w|/2: a = x cot x, g = (1 - a) / |w|^2.

    Example:
        >>> from pfaffian.maths import so3
        >>> w = [0.1, 0.2, 0.3]
        >>> (so3.dexp_left_inv(w) @ so3.dexp_left(w)).full().trace().round(6)  # the trace of the unit matrix
        np.float64(3.0)
    """
    w = matrix(w, 3)
    a, g = dexp_inv_factors(ca.sumsqr(w))[:2]
    return isotropic([a, -0.5, g], w)


def dexp_right_inv(w: Matrix) -> Matrix:
    """Inverse of dexp_right: a 1 + hat(w)/2 + g w w^T; w_dot = dexp_right_inv(w) (body angular velocity), for |w| < 2 pi.

    Example:
        >>> from pfaffian.maths import so3
        >>> (so3.dexp_right_inv([0, 0, 0.5]) @ [0, 0, 2]).full().ravel().round(3)
        array([0., 0., 2.])
    """
    return dexp_left_inv(-matrix(w, 3))


def dexp_inv_factors(s: Matrix) -> tuple[Matrix, Matrix, Matrix]:
    """a(s) = x cot x with s = (2x)^2 < (2 pi)^2, g = (1 - a)/s, and 2 dg/ds.

    Example:
        >>> import casadi as ca
        >>> from pfaffian.maths import so3
        >>> [round(float(x), 9) for x in so3.dexp_inv_factors(ca.DM(0.0))]
        [1.0, 0.083333333, 0.002777778]
    """
    c0, c1, c2, c3, c4, c5 = stumpff(s / 4, 5)  # half angles: no digits lost towards 2 pi
    r = 1 / c1
    d = (c2 - c3) * r
    return c0 * r, d / 4, (d * d + (3 * (c4 - c5) - c3) * r) / 16


def rotation(axis: Matrix, angle: Matrix) -> Matrix:
    """Rotation by an angle [rad] about a unit axis: a a^T + cos (1 - a a^T) + sin hat(a). axis (3,) -> (3, 3).

    An entry that a numeric axis makes zero is a structural zero; one that it makes one is the number one.

    Example:
        >>> import casadi as ca
        >>> from pfaffian.maths import so3
        >>> so3.rotation([0, 0, 1], ca.SX.sym("a"))[1, 0]
        SX(sin(a))
    """
    a = matrix(axis, 3)
    aa = ca.mtimes(a, a.T)
    along, across, spin = (_sparse(m) for m in (aa, ca.DM.eye(3) - aa, hat(a)))
    angle = matrix(angle, 1)
    return along + ca.cos(angle) * across + ca.sin(angle) * spin


def conjugate_z(cos: Matrix, sin: Matrix, X: Matrix) -> Matrix:
    """Rz X Rz^T for any X (3, 3), by double angles: half the operations of two products.

    The sums and differences of the upper left block's entries turn by twice the angle; cos, sin are those of the angle itself.

    Example:
        >>> import casadi as ca
        >>> from pfaffian.maths import so3
        >>> print(ca.diag(so3.conjugate_z(0.0, 1.0, ca.diag(ca.DM([1, 2, 3])))))  # turned by a quarter
        [2, 1, 3]
    """
    s2, sc = sin * sin, sin * cos
    p, q = X[1, 1] - X[0, 0], X[0, 1] + X[1, 0]
    e, g = s2 * p - sc * q, s2 * q + sc * p
    return ca.vertcat(
        ca.horzcat(X[0, 0] + e, X[0, 1] - g, cos * X[0, 2] - sin * X[1, 2]),
        ca.horzcat(X[1, 0] - g, X[1, 1] - e, sin * X[0, 2] + cos * X[1, 2]),
        ca.horzcat(cos * X[2, 0] - sin * X[2, 1], sin * X[2, 0] + cos * X[2, 1], X[2, 2]),
    )


def rpy_to_matrix(rpy: Matrix) -> Matrix:
    """Rz(yaw) Ry(pitch) Rx(roll): roll, pitch, yaw [rad] about the fixed axes x, y, z, as in URDF. (3,) -> (3, 3).

    Numeric entries within 1e-15 of 0 or +-1 become exactly these numbers; zeros are structural.

    Example:
        >>> import numpy as np
        >>> from pfaffian.maths import so3
        >>> so3.rpy_to_matrix([0, 0, np.pi / 2]).full()  # exactly a quarter turn about z
        array([[ 0., -1., 0.], [ 1., 0., 0.], [ 0., 0., 1.]])
    """
    rpy = matrix(rpy, 3)
    if not isinstance(rpy, ca.DM):
        roll, pitch, yaw = scalars(rpy, 3)
        return _sparse(ca.mtimes([rotation((0, 0, 1), yaw), rotation((0, 1, 0), pitch), rotation((1, 0, 0), roll)]))
    angles = rpy.full().ravel()
    (cr, cp, cy), (sr, sp, sy) = np.cos(angles), np.sin(angles)
    entries = np.array([
        [cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr],
        [sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr],
        [-sp, cp * sr, cp * cr],
    ])  # fmt: skip
    whole = np.rint(entries)
    return _sparse(ca.DM(np.where(np.abs(entries - whole) < SNAP, whole, entries)))


def quat_to_matrix(q: Matrix) -> Matrix:
    """Rotation matrix of a unit quaternion; q is not normalised. q (4,) -> (3, 3).

    Example:
        >>> from pfaffian.maths import so3
        >>> so3.quat_to_matrix([0, 0, 1, 0]).full().diagonal()  # half a turn about z
        array([-1., -1., 1.])
    """
    x, y, z, w = scalars(q, 4)
    x2, y2, z2 = 2 * x, 2 * y, 2 * z
    xx, yy, zz, xy, xz, yz, wx, wy, wz = x * x2, y * y2, z * z2, x * y2, x * z2, y * z2, w * x2, w * y2, w * z2
    return ca.vertcat(
        ca.horzcat(1 - (yy + zz), xy - wz, xz + wy),
        ca.horzcat(xy + wz, 1 - (xx + zz), yz - wx),
        ca.horzcat(xz - wy, yz + wx, 1 - (xx + yy)),
    )


def matrix_to_quat(R: Matrix) -> Matrix:
    """Unit quaternion of a rotation matrix with w >= 0, accurate for every rotation. R (3, 3) -> (4,).

    Example:
        >>> import numpy as np
        >>> from pfaffian.maths import so3
        >>> so3.matrix_to_quat(np.eye(3))
        DM([0, 0, 0, 1])
    """
    k = quat_of(R)
    return k * (ca.if_else(k[3] < 0, -1.0, 1.0) / ca.sqrt(ca.sumsqr(k)))


def quat_of(R: Matrix) -> Matrix:
    """Quaternion of a rotation matrix, of length between 2 and 4 and either sign, from the best of four formulas.

    The formulas are the columns of 4 q q^T; the chosen one belongs to a component of q whose square is at least 1/4.

    Example:
        >>> import casadi as ca
        >>> from pfaffian.maths import so3
        >>> print(so3.quat_of(ca.diag(ca.DM([-1, 1, -1]))))  # half a turn about y
        [0, 4, 0, 0]
    """
    R = matrix(R, 3, 3)
    a, b, c = R[0, 0], R[1, 1], R[2, 2]
    yz, zx, xy = R[2, 1] + R[1, 2], R[0, 2] + R[2, 0], R[1, 0] + R[0, 1]
    wx, wy, wz = R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]
    by_x = ca.vertcat(1 + a - b - c, xy, zx, wx)
    by_y = ca.vertcat(xy, 1 - a + b - c, yz, wy)
    by_z = ca.vertcat(zx, yz, 1 - a - b + c, wz)
    by_w = ca.vertcat(wx, wy, wz, 1 + a + b + c)
    return ca.if_else(c < 0, ca.if_else(a > b, by_x, by_y), ca.if_else(a < -b, by_z, by_w))


def quaternions(R: np.ndarray) -> np.ndarray:
    """Unit quaternions with w >= 0 of an array of numeric rotation matrices; `matrix_to_quat` takes a symbolic one.

    R (..., 3, 3) -> (..., 4).

    Example:
        >>> import numpy as np
        >>> from pfaffian.maths import so3
        >>> so3.quaternions(np.stack([np.eye(3), np.diag([1.0, -1.0, -1.0])]))  # no rotation, and half a turn about x
        array([[0., 0., 0., 1.],
               [1., 0., 0., 0.]])
    """
    a, b, c = (R[..., i, i] for i in range(3))
    yz, zx, xy = (R[..., i, j] + R[..., j, i] for i, j in ((2, 1), (0, 2), (1, 0)))
    wx, wy, wz = (R[..., i, j] - R[..., j, i] for i, j in ((2, 1), (0, 2), (1, 0)))
    squares = x, y, z, w = 1 + a - b - c, 1 - a + b - c, 1 - a - b + c, 1 + a + b + c
    four = (x, xy, zx, wx), (xy, y, yz, wy), (zx, yz, z, wz), (wx, wy, wz, w)
    columns = np.stack([np.stack(column, axis=-1) for column in four])
    best = np.argmax(np.stack(squares), axis=0)  # the largest diagonal entry of 4 q q^T is at least 1
    q = np.take_along_axis(columns, best[None, ..., None], axis=0)[0]
    return q / np.where(q[..., 3:] < 0, -1.0, 1.0) / np.linalg.norm(q, axis=-1, keepdims=True)


def quat_mul(q: Matrix, r: Matrix) -> Matrix:
    """Hamilton product q r, so that quat_to_matrix(q r) = quat_to_matrix(q) quat_to_matrix(r). (4,), (4,) -> (4,).

    Example:
        >>> from pfaffian.maths import so3
        >>> so3.quat_mul([1, 0, 0, 0], [0, 1, 0, 0])  # i j = k
        DM([0, 0, 1, 0])
    """
    q, r = matrix(q, 4), matrix(r, 4)
    v, u = q[:3], r[:3]
    return ca.vertcat(q[3] * u + r[3] * v + ca.cross(v, u), q[3] * r[3] - ca.dot(v, u))


def quat_conj(q: Matrix) -> Matrix:
    """Conjugate (-x, -y, -z, w), the inverse of a unit quaternion. (4,) -> (4,).

    Example:
        >>> from pfaffian.maths import so3
        >>> q = [0.5, 0.5, 0.5, 0.5]
        >>> so3.quat_mul(q, so3.quat_conj(q))
        DM([0, 0, 0, 1])
    """
    q = matrix(q, 4)
    return ca.vertcat(-q[:3], q[3])


def quat_exp(w: Matrix) -> Matrix:
    """Unit quaternion of the rotation exp(w): (c_1 w/2, c_0) at s = w.w / 4. w (3,) [rad] -> (4,).

    Example:
        >>> import numpy as np
        >>> from pfaffian.maths import so3
        >>> so3.quat_exp([0, 0, np.pi / 2]).full().ravel().round(3)
        array([0. , 0. , 0.707, 0.707])
    """
    w = matrix(w, 3)
    c0, c1 = stumpff(ca.sumsqr(w) / 4, 1)
    return ca.vertcat((c1 / 2) * w, c0)


def quat_log(q: Matrix) -> Matrix:
    """Rotation vector of a quaternion of any length but zero, the same for q and -q, |.| <= pi [rad]. (4,) -> (3,).

    Example:
        >>> from pfaffian.maths import so3
        >>> so3.quat_log([0, 0, 1, 1]).full().ravel().round(3)  # a quarter turn about z
        array([0. , 0. , 1.571])
    """
    q = matrix(q, 4)
    return log_factors(q)[0] * q[:3]


def log_factors(q: Matrix) -> tuple[Matrix, Matrix, Matrix]:
    """Factors (f, a, g): log = f q[:3], and a = x cot x, g = (1 - a)/(2x)^2 for a rotation by the angle 2x.

    q: (4, 1) quaternion of any length but zero, scalar last; f is inversely proportional to its length.

    Example:
        >>> import casadi as ca
        >>> from pfaffian.maths import so3
        >>> print(so3.log_factors(ca.DM([0.0, 0.0, 1.0, 0.0]))[0])  # half a turn: the angle pi along (0, 0, 1)
        3.14159
    """
    n2, w = ca.sumsqr(q[:3]), q[3]
    near = n2 < NEAR_TANGENT * w * w
    sign = ca.if_else(w < 0, -1.0, 1.0)
    n = ca.sqrt(ca.if_else(near, 1.0, n2))
    angle = 2 * ca.atan2(n, sign * w)
    f_far = sign * angle / n
    a_far = f_far * w / 2
    near_w = ca.if_else(near, w, 1.0)
    u = ca.if_else(near, n2, 0.0) / (near_w * near_w)  # tan(x)^2
    series = _horner([(-1) ** n / (2 * n + 3) for n in range(TERMS_TANGENT)], u)
    a_near = 1 - u * series  # arctan(t)/t
    g_near = series / (4 * a_near * a_near)
    return tuple(
        ca.if_else(near, *pair)
        for pair in ((2 * a_near / near_w, f_far), (a_near, a_far), (g_near, (1 - a_far) / (angle * angle)))
    )


class LogMotion(NamedTuple):
    """A rotation vector and its derivatives.

    phi: (3, 1) rotation vector.   L: (3, 3) with phi_dot = L w.   bias: (3, 1) L_dot w, so that phi_ddot = L w_dot + bias.
    """

    phi: Matrix
    L: Matrix
    bias: Matrix


def log_motion(R: Matrix, w: Matrix) -> LogMotion:
    """phi = log(R) and its derivatives for R_dot = hat(w) R, with L = dexp_left_inv(phi). R (3, 3), w (3,) [rad/s].

    L w = w - phi x w / 2 + g phi x (phi x w). With x = |phi|/2 and a = x cot x, g = (1 - a) / |phi|^2 changes at the rate
    g_dot = phi.w (1/4 - a g - 2 g) / |phi|^2. Near phi = 0 the bracket is mere rounding, but phi.w times the vector that g_dot
    multiplies vanishes like |phi|^3.

    Example:
        >>> from pfaffian.maths import so3
        >>> so3.log_motion(so3.exp([0, 0, 0.5]), [0, 0, 2]).bias  # about one axis the rate is that of the angle
        DM([0, 0, 0])
    """
    q, w = quat_of(R), matrix(w, 3)
    f, a, g = log_factors(q)
    phi = f * q[:3]
    L = isotropic((a, -0.5, g), phi)
    turned = ca.cross(phi, w)
    twice = ca.cross(phi, turned)
    difference = g * twice - turned / 2  # phi_dot - w
    across = ca.cross(difference, w)  # phi_dot x w
    g_dot = ca.dot(phi, w) * (0.25 - a * g - 2 * g) / ca.fmax(ca.sumsqr(phi), SMALLEST)
    bias = g_dot * twice + g * (ca.cross(w + difference, turned) + ca.cross(phi, across)) - across / 2
    return LogMotion(phi, L, bias)


def quat_rate(q: Matrix) -> Matrix:
    """K(q) with q_dot = K(q) w = q (w; 0) / 2 for the BODY angular velocity w [rad/s]. (4,) -> (4, 3).

    Example:
        >>> from pfaffian.maths import so3
        >>> so3.quat_rate([0, 0, 0, 1]) @ [0, 0, 2]
        DM([0, 0, 1, 0])
    """
    half = matrix(q, 4) / 2
    v, w = half[:3], half[3]
    return ca.vertcat(w * ca.DM.eye(3) + hat(v), -v.T)
