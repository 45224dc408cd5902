"""Poses and twists: SE(3) with poses (R, p), twists xi = [v; w] and wrenches F = [f; n], linear part first.

ad(xi) is the matrix form of hat(w + e v) for a number e with e^2 = 0. Each function of a twist is therefore the function of
so3 together with its derivative along v: no new singularities or series arise.

Example:
    >>> from pfaffian.maths import se3
    >>> R, p = se3.exp([1, 2, 3, 0, 0, 0])  # without rotation the position is v
    >>> p
    DM([1, 2, 3])
"""

from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from pfaffian.maths import so3
from pfaffian.maths.so3 import Matrix, matrix


def _split(xi: Matrix) -> tuple[Matrix, Matrix]:
    """(v, w) of a twist, or (f, n) of a wrench."""
    xi = matrix(xi, 6)
    return xi[:3], xi[3:]


def _upper(a: Matrix, b: Matrix) -> Matrix:
    """[[a, b], [0, a]], the 6 x 6 form of a + e b."""
    return ca.vertcat(ca.horzcat(a, b), ca.horzcat(ca.DM(3, 3), a))


def hat(xi: Matrix) -> Matrix:
    """Matrix of a twist, [[hat(w), v], [0, 0]]; g_dot = g hat(xi) for the body twist. xi (6,) -> (4, 4).

    Example:
        >>> from pfaffian.maths import se3
        >>> se3.hat([1, 2, 3, 0, 0, 0]).full()[:3, 3]
        array([1., 2., 3.])
    """
    v, w = _split(xi)
    return ca.vertcat(ca.horzcat(so3.hat(w), v), ca.DM(1, 4))


def vee(S: Matrix) -> Matrix:
    """Twist of a 4 x 4 matrix, vee(hat(xi)) = xi. S (4, 4) -> (6,).

    Example:
        >>> from pfaffian.maths import se3
        >>> se3.vee(se3.hat([1, 2, 3, 4, 5, 6]))
        DM([1, 2, 3, 4, 5, 6])
    """
    S = matrix(S, 4, 4)
    return ca.vertcat(S[:3, 3], so3.vee(S[:3, :3]))


def vee2(M: Matrix) -> Matrix:
    """[b; so3.vee2(A)] of M = [[A, b], [*, *]]: tr(M hat(xi)^T) = xi^T vee2(M). M (4, 4) -> (6,).

    Example:
        >>> from pfaffian.maths import se3
        >>> se3.vee2(se3.hat([1, 2, 3, 4, 5, 6]))
        DM([1, 2, 3, 8, 10, 12])
    """
    M = matrix(M, 4, 4)
    return ca.vertcat(M[:3, 3], so3.vee2(M[:3, :3]))


def Vee(M: Matrix) -> Matrix:
    """6 x 6 matrix of the pseudo-matrix M = [[A, b], [c^T, d]]: [[d 1, hat(b)^T], [hat(c), so3.Vee(A)]]. (4, 4) -> (6, 6).

    tr(hat(xi) M hat(eta)^T) = eta^T Vee(M) xi: the inertia, damping or stiffness of weights at points of a body with respect
    to twists, from their second moments. [konz25 (3.78)-(3.87)]

    Example:
        >>> import numpy as np
        >>> from pfaffian.maths import se3
        >>> se3.Vee(np.diag([1, 2, 3, 7])).full().diagonal()
        array([7., 7., 7., 5., 4., 3.])
    """
    M = matrix(M, 4, 4)
    b, c, d = M[:3, 3], M[3, :3].T, M[3, 3]
    return ca.vertcat(ca.horzcat(d * ca.DM.eye(3), so3.hat(b).T), ca.horzcat(so3.hat(c), so3.Vee(M[:3, :3])))


def Wed(K: Matrix) -> Matrix:
    """Pseudo-matrix of a 6 x 6 matrix that is Vee of one: the inverse of Vee. (6, 6) -> (4, 4).

    Example:
        >>> import numpy as np
        >>> from pfaffian.maths import se3
        >>> se3.Wed(np.diag([7, 7, 7, 5, 4, 3])).full().diagonal()
        array([1., 2., 3., 7.])
    """
    K = matrix(K, 6, 6)
    b, c = -so3.vee(K[:3, 3:]), so3.vee(K[3:, :3])
    return ca.vertcat(ca.horzcat(so3.Wed(K[3:, 3:]), b), ca.horzcat(c.T, K[0, 0]))


def inner(K: Matrix, X1: tuple[Matrix, Matrix], X2: tuple[Matrix, Matrix]) -> Matrix:
    """Scalar product <X1, X2> of X = [[Y, x], [0, 0]] for a symmetric K = [[Kr, Kr H^T], [H Kr, KR + H Kr H^T]] (6, 6).

    [konz25 (A.14)-(A.19)] It is xt1^T Kr xt2 + tr(Y1 Wed(KR) Y2^T) with xt = x + Y vee2(H) / 2 + (H + H^T) vee2(Y) / 4. For X
    = hat(xi) it is xi1^T K xi2; for K = Vee(K') it is tr(X1 K' X2^T), which does not change when X1 and X2 are rotated from
    the left. If K is positive semidefinite, <X, X> is not negative for X = G - 1, G a pose.

    K: (6, 6); Kr must be regular unless K is numeric.   X1, X2: (Y (3, 3), x (3, 1)).

    Example:
        >>> import numpy as np
        >>> from pfaffian.maths import se3
        >>> X = np.zeros((3, 3)), [1, 2, 0]
        >>> float(se3.inner(np.diag([10, 10, 10, 1, 1, 1]), X, X))  # 10 |x|^2
        50.0
    """
    parts = _parts(K)
    (Y1, x1), (Y2, x2) = parts.shifted(X1), parts.shifted(X2)
    return ca.dot(x1, parts.Kr @ x2) + ca.dot(Y1 @ parts.turning, Y2)


def pull(K: Matrix, X: tuple[Matrix, Matrix], R: Matrix) -> Matrix:
    """The wrench F with F . eta = <X, [R hat(w), R v]> for every twist eta = [v; w]: see `inner`. (6, 1).

    For X = G - 1, with R the rotation of G, it is the derivative of <X, X> / 2 along the body's twists; for X = hat(xi) and R
    = 1 it is K xi. [konz25 (A.19)]

    K: (6, 6); Kr, see `inner`, must be regular unless K is numeric.   X: (Y (3, 3), x (3, 1)).   R: (3, 3).

    Example:
        >>> import numpy as np
        >>> from pfaffian.maths import se3
        >>> X = np.zeros((3, 3)), [1, 2, 0]
        >>> se3.pull(np.diag([10, 10, 10, 1, 1, 1]), X, np.eye(3))
        DM([10, 20, 0, 0, 0, 0])
    """
    parts, R = _parts(K), matrix(R, 3, 3)
    Y, x = parts.shifted(X)
    f = parts.Kr @ x
    lever = parts.even @ so3.Vee(R.T) - R @ so3.hat(parts.odd)
    return ca.vertcat(R.T @ f, lever.T @ f + so3.vee2(R.T @ Y @ parts.turning))


class _StiffnessParts(NamedTuple):
    """Parts of K = [[Kr, Kr H^T], [H Kr, KR + H Kr H^T]].   odd: vee2(H) / 2.   even: (H + H^T) / 4.   turning: Wed(KR)."""

    Kr: Matrix
    odd: Matrix
    even: Matrix
    turning: Matrix

    def shifted(self, X: tuple[Matrix, Matrix]) -> tuple[Matrix, Matrix]:
        """(Y, xt) for X = (Y, x), with xt as in `inner`."""
        Y, x = matrix(X[0], 3, 3), matrix(X[1], 3)
        return Y, x + Y @ self.odd + self.even @ so3.vee2(Y)


def _parts(K: Matrix) -> _StiffnessParts:
    K = matrix(K, 6, 6)
    Kr, C = K[:3, :3], K[3:, :3]
    inverse = np.linalg.pinv(np.array(ca.DM(Kr)), rcond=1e-12, hermitian=True) if K.is_constant() else ca.inv(Kr)
    H = C @ inverse
    return _StiffnessParts(Kr, so3.vee2(H) / 2, (H + H.T) / 4, so3.Wed(K[3:, 3:] - C @ H.T))


def homogeneous(R: Matrix, p: Matrix) -> Matrix:
    """Pose as one matrix g = [[R, p], [0, 1]]. R (3, 3), p (3,) [m] -> (4, 4).

    Example:
        >>> import numpy as np
        >>> from pfaffian.maths import se3
        >>> se3.homogeneous(np.eye(3), [1, 2, 3]).full()[0]
        array([1., 0., 0., 1.])
    """
    return ca.vertcat(ca.horzcat(matrix(R, 3, 3), matrix(p, 3)), ca.sparsify(ca.DM([[0, 0, 0, 1]])))


def compose(R1: Matrix, p1: Matrix, R2: Matrix, p2: Matrix) -> tuple[Matrix, Matrix]:
    """Product of poses g1 g2 = (R1 R2, R1 p2 + p1).

    Example:
        >>> import numpy as np
        >>> from pfaffian.maths import se3
        >>> se3.compose(np.eye(3), [1, 0, 0], np.eye(3), [0, 2, 0])[1]
        DM([1, 2, 0])
    """
    R1 = matrix(R1, 3, 3)
    return ca.mtimes(R1, matrix(R2, 3, 3)), ca.mtimes(R1, matrix(p2, 3)) + matrix(p1, 3)


def inverse(R: Matrix, p: Matrix) -> tuple[Matrix, Matrix]:
    """Inverse pose (R^T, -R^T p).

    Example:
        >>> import numpy as np
        >>> from pfaffian.maths import se3
        >>> se3.inverse(np.eye(3), [1, 2, 3])[1]
        DM([-1, -2, -3])
    """
    Rt = matrix(R, 3, 3).T
    return Rt, -ca.mtimes(Rt, matrix(p, 3))


def act(R: Matrix, p: Matrix, x: Matrix) -> Matrix:
    """Point moved by a pose: R x + p. x (3,) [m] -> (3,).

    Example:
        >>> import numpy as np
        >>> from pfaffian.maths import se3
        >>> se3.act(np.eye(3), [1, 0, 0], [0, 2, 0])
        DM([1, 2, 0])
    """
    return ca.mtimes(matrix(R, 3, 3), matrix(x, 3)) + matrix(p, 3)


def exp(xi: Matrix) -> tuple[Matrix, Matrix]:
    """Pose reached by a constant twist in unit time: R = exp(w), p = dexp_left(w) v. xi (6,) -> (R, p).

    Example:
        >>> import numpy as np
        >>> from pfaffian.maths import se3
        >>> se3.exp([np.pi / 2, 0, 0, 0, 0, np.pi / 2])[1].full().ravel().round(3)  # a quarter of a circle of radius 1
        array([1., 1., 0.])
    """
    v, w = _split(xi)
    c0, c1, c2, c3 = so3.stumpff(ca.sumsqr(w), 3)
    p = c1 * v + c2 * ca.cross(w, v) + (c3 * ca.dot(w, v)) * w
    return so3.isotropic((c0, c1, c2), w), p


def log(R: Matrix, p: Matrix) -> Matrix:
    """Twist whose exponential is the pose, with |w| <= pi; at pi the sign of the axis is arbitrary. -> (6,).

    Example:
        >>> from pfaffian.maths import se3
        >>> se3.log(*se3.exp([1, 2, 3, 0, 0, 0.5])).full().ravel().round(3)
        array([1. , 2. , 3. , 0. , 0. , 0.5])
    """
    q, p = so3.quat_of(R), matrix(p, 3)
    f, a, g = so3.log_factors(q)
    w = f * q[:3]
    return ca.vertcat(a * p - ca.cross(w, p) / 2 + (g * ca.dot(w, p)) * w, w)


def Ad(R: Matrix, p: Matrix) -> Matrix:
    """Adjoint matrix of a pose, [[R, hat(p) R], [0, R]], which transforms twists: V_A = Ad(g_AB) V_B. -> (6, 6).

    Example:
        >>> import numpy as np
        >>> from pfaffian.maths import se3
        >>> se3.Ad(np.eye(3), [1, 0, 0]) @ [0, 0, 0, 0, 0, 1]  # turning about z at x = 1
        DM([0, -1, 0, 0, 0, 1])
    """
    R = matrix(R, 3, 3)
    return _upper(R, ca.mtimes(so3.hat(p), R))


def Ad_inv(R: Matrix, p: Matrix) -> Matrix:
    """Ad of the inverse pose: [[R^T, -R^T hat(p)], [0, R^T]]; wrenches transform as F_A = Ad_inv(g_AB)^T F_B. -> (6, 6).

    Example:
        >>> import numpy as np
        >>> from pfaffian.maths import se3
        >>> se3.Ad_inv(np.eye(3), [1, 0, 0]).T @ [0, 5, 0, 0, 0, 0]  # a force of 5 N along y at x = 1 m
        DM([0, 5, 0, 0, 0, 5])
    """
    Rt = matrix(R, 3, 3).T
    return _upper(Rt, -ca.mtimes(Rt, so3.hat(p)))


def ad(xi: Matrix) -> Matrix:
    """Bracket of twists, ad(xi) eta = [xi, eta]: [[hat(w), hat(v)], [0, hat(w)]]. xi (6,) -> (6, 6).

    Example:
        >>> from pfaffian.maths import se3
        >>> (se3.ad([0, 0, 0, 0, 0, 1]) @ [1, 0, 0, 0, 0, 0]).full().ravel()
        array([0., 1., 0., 0., 0., 0.])
    """
    v, w = _split(xi)
    return _upper(so3.hat(w), so3.hat(v))


def ad_transpose(xi: Matrix, F: Matrix) -> Matrix:
    """ad(xi)^T F = [f x w; f x v + n x w], as in M V_dot = ad(V)^T M V + F. xi (6,), F (6,) -> (6,).

    Example:
        >>> from pfaffian.maths import se3
        >>> se3.ad_transpose([0, 0, 0, 0, 0, 1], [1, 0, 0, 0, 0, 0]).full().ravel()[1]  # f x w = x x z = -y
        np.float64(-1.0)
    """
    (v, w), (f, n) = _split(xi), _split(F)
    return ca.vertcat(ca.cross(f, w), ca.cross(f, v) + ca.cross(n, w))


def dexp_left(xi: Matrix) -> Matrix:
    """Left differential of exp: g_dot g^-1 = hat(dexp_left(xi) xi_dot), the twist in the fixed frame.

    [[J(w), dJ(w)[v]], [0, J(w)]] with J = so3.dexp_left and dJ(w)[v] its derivative along v. xi (6,) -> (6, 6).

    Example:
        >>> from pfaffian.maths import se3
        >>> se3.dexp_left([0, 0, 0, 0, 0, 0]) @ [1, 2, 3, 4, 5, 6]  # the unit matrix at zero
        DM([1, 2, 3, 4, 5, 6])
    """
    v, w = _split(xi)
    _, c1, c2, c3, c4, c5 = so3.stumpff(ca.sumsqr(w), 5)
    d = ca.dot(w, v)
    return _dual((c1, c2, c3), (d * (c3 - c2), d * (2 * c4 - c3), d * (3 * c5 - c4)), v, w)


def dexp_right(xi: Matrix) -> Matrix:
    """Right differential of exp: g^-1 g_dot = hat(dexp_right(xi) xi_dot), the BODY twist. xi (6,) -> (6, 6).

    Example:
        >>> from pfaffian.maths import se3
        >>> se3.dexp_right([0, 0, 0, 0, 0, 0]) @ [1, 2, 3, 4, 5, 6]
        DM([1, 2, 3, 4, 5, 6])
    """
    return dexp_left(-matrix(xi, 6))


def dexp_left_inv(xi: Matrix) -> Matrix:
    """Inverse of dexp_left, for |w| < 2 pi. xi (6,) -> (6, 6).

    Example:
        >>> from pfaffian.maths import se3
        >>> xi = [1, 2, 3, 0.1, 0.2, 0.3]
        >>> (se3.dexp_left_inv(xi) @ se3.dexp_left(xi)).full().trace().round(6)  # the trace of the unit matrix
        np.float64(6.0)
    """
    v, w = _split(xi)
    s, d = ca.sumsqr(w), ca.dot(w, v)
    a, g, g_slope = so3.dexp_inv_factors(s)
    return _dual((a, -0.5, g), (-d * (2 * g + s * g_slope), 0.0, d * g_slope), v, w)


def dexp_right_inv(xi: Matrix) -> Matrix:
    """Inverse of dexp_right: xi_dot = dexp_right_inv(xi) (body twist), for |w| < 2 pi. xi (6,) -> (6, 6).

    Example:
        >>> from pfaffian.maths import se3
        >>> xi = [1, 2, 3, 0.1, 0.2, 0.3]
        >>> (se3.dexp_right_inv(xi) @ se3.dexp_right(xi)).full().trace().round(6)
        np.float64(6.0)
    """
    return dexp_left_inv(-matrix(xi, 6))


def _dual(k: tuple[Any, ...], k_dot: tuple[Any, ...], v: Matrix, w: Matrix) -> Matrix:
    """a 1 + b hat(w) + c w w^T with its derivative along v, from the factors k = (a, b, c) and their derivatives k_dot."""
    (_, b, c), (a_dot, b_dot, c_dot) = k, k_dot
    wu = ca.mtimes(w, ((c_dot / 2) * w + c * v).T)  # half of c_dot w w^T + c (w v^T + v w^T)
    return _upper(so3.isotropic(k, w), a_dot * ca.DM.eye(3) + so3.hat(b_dot * w + b * v) + so3.symmetric(wu + wu.T))
