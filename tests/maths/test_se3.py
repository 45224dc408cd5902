"""Poses and twists, compared with their axioms, SciPy and CasADi's derivatives at every scale of angle."""

import math

import casadi as ca
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import expm, logm
from scipy.spatial.transform import Rotation

from pfaffian.errors import ModelError
from pfaffian.maths import se3, so3
from tests.matrices import near

EPS = np.finfo(float).eps
ALGEBRA = 16 * EPS  # products of a few 6 x 6 matrices, times their size
EXPONENTIAL = 128 * EPS  # scipy's expm squares its matrix about five times
LOGARITHM = 1e-11  # scipy's logm takes repeated square roots
DERIVATIVE = 128 * EPS  # one quotient, differentiated at so3.NEAR, where the series ends
BOUNDARY = 1e-3  # distance from 2 pi, where the inverse differentials are singular like 1/distance^2

SCALES = [0.0, 1e-300, 1e-8, 1e-4, 0.3, 1.0 - 1e-9, 1.0 + 1e-9, 2.0, math.pi - 1e-7, math.pi]
_draw = np.random.default_rng(2).normal
AXES = [np.array(a) / np.linalg.norm(a) for a in ((0, 0, 1), (0.6, 0, -0.8), *_draw(size=(3, 3)))]
TWISTS = [np.r_[_draw(size=3) * reach, axis * angle] for angle in SCALES for axis in AXES for reach in (0, 1, 100)]
WIDE = TWISTS + [np.r_[_draw(size=3), AXES[-1] * angle] for angle in (4.0, 6.0, 2 * math.pi - BOUNDARY)]

twists = st.lists(st.floats(-3.6, 3.6), min_size=6, max_size=6).map(np.array)
derandomized = settings(derandomize=True, deadline=None, max_examples=100)


def traced(f, n=6):
    x = ca.SX.sym("x", n)
    y = f(x)
    return ca.Function("f", [x], list(y) if isinstance(y, tuple) else [y])


def _pose_of(x):
    return ca.reshape(x[:9], 3, 3), x[9:]


ONE_MATRIX = {f: traced(f) for f in (se3.ad, se3.dexp_left, se3.dexp_right, se3.dexp_left_inv, se3.dexp_right_inv)}
EXP = traced(se3.exp)
LOG = traced(lambda x: se3.log(*_pose_of(x)), 12)
D_EXP = traced(lambda x: ca.jacobian(ca.vec(se3.homogeneous(*se3.exp(x))), x))
D_LOG = traced(  # d log(exp(x) exp(e)) / de, called at e = 0
    lambda x: ca.jacobian(se3.log(*se3.compose(*se3.exp(x[:6]), *se3.exp(x[6:]))), x)[:, 6:], 12
)


def both(f, xi):
    """The value of f for numbers, after a check that the traced function agrees."""
    value = f(xi).full()
    near(ONE_MATRIX[f](xi), value, ALGEBRA, size(value))
    return value


def both_exp(xi):
    R, p = se3.exp(xi)
    near(EXP(xi)[0], R, ALGEBRA)
    near(EXP(xi)[1], p, ALGEBRA, size(xi))
    return R.full(), p.full()


def both_log(R, p):
    xi = se3.log(R, p)
    near(LOG(ca.vertcat(ca.vec(ca.DM(R)), p)), xi, ALGEBRA, size(p))
    return xi.full().ravel()


def size(*values):
    return max(1.0, *(np.abs(np.array(v)).max() for v in values))


def phi(X):
    """The integral of expm(s X) over s in [0, 1], from the exponential of a matrix of twice the size."""
    n = len(X)
    return expm(np.block([[X, np.eye(n)], [np.zeros((n, 2 * n))]]))[:n, n:]


@pytest.mark.parametrize("xi", WIDE)
def test_exp_is_the_matrix_exponential(xi):
    R, p = both_exp(xi)
    near(se3.homogeneous(R, p), expm(se3.hat(xi).full()), EXPONENTIAL, size(xi))
    near(se3.Ad(R, p), expm(both(se3.ad, xi)), 4 * EXPONENTIAL, size(xi))


@pytest.mark.parametrize("xi", TWISTS)
def test_log_inverts_exp(xi):
    back = both_log(*both_exp(xi))
    if np.linalg.norm(xi[3:]) >= math.pi and back[3:] @ xi[3:] < 0:
        near(back[3:], -xi[3:], ALGEBRA)
        near(se3.homogeneous(*se3.exp(back)), se3.homogeneous(*se3.exp(xi)), ALGEBRA, size(xi))
    else:
        near(back, xi, ALGEBRA, size(xi))
        near(back[3:], xi[3:], ALGEBRA, max(np.linalg.norm(xi[3:]), 1e-290))


@derandomized
@given(twists)
def test_log_of_any_pose(xi):
    R, p = Rotation.from_rotvec(xi[3:]).as_matrix(), xi[:3]
    back = both_log(R, p)
    near(se3.homogeneous(*se3.exp(back)), se3.homogeneous(R, p), ALGEBRA, size(back))
    if np.linalg.norm(back[3:]) < 3:  # the principal branch of logm ends at pi
        near(se3.hat(back), logm(se3.homogeneous(R, p).full()).real, LOGARITHM, size(back))


@derandomized
@given(twists, twists, twists)
def test_group_axioms(a, b, c):
    g, h, k = se3.exp(a), se3.exp(b), se3.exp(c)
    gh = se3.compose(*g, *h)
    scale = size(a) + size(b) + size(c)
    near(se3.homogeneous(*gh), se3.homogeneous(*g) @ se3.homogeneous(*h), ALGEBRA, scale)
    left, right = se3.compose(*gh, *k), se3.compose(*g, *se3.compose(*h, *k))
    near(se3.homogeneous(*left), se3.homogeneous(*right), ALGEBRA, scale)
    near(se3.homogeneous(*se3.compose(*g, *se3.inverse(*g))), np.eye(4), ALGEBRA, scale)
    near(se3.homogeneous(*se3.exp(-a)), se3.homogeneous(*se3.inverse(*g)), ALGEBRA, scale)
    near(se3.act(*gh, c[:3]), se3.act(*g, se3.act(*h, c[:3])), ALGEBRA, scale)
    near(ca.vertcat(se3.act(*g, c[:3]), 1), se3.homogeneous(*g) @ np.r_[c[:3], 1], ALGEBRA, scale)


@derandomized
@given(twists, twists, twists)
def test_adjoint_is_a_homomorphism(a, b, c):
    g, h = se3.exp(a), se3.exp(b)
    scale = (size(a) + size(b)) * size(c)
    near(se3.Ad(*se3.compose(*g, *h)), se3.Ad(*g) @ se3.Ad(*h), ALGEBRA, scale)
    near(se3.Ad_inv(*g) @ se3.Ad(*g), np.eye(6), ALGEBRA, scale)
    near(se3.Ad_inv(*g), se3.Ad(*se3.inverse(*g)), ALGEBRA, scale)
    G, Gi = se3.homogeneous(*g), se3.homogeneous(*se3.inverse(*g))
    near(se3.vee(G @ se3.hat(c) @ Gi), se3.Ad(*g) @ c, ALGEBRA, 4 * scale)
    near(se3.vee(se3.hat(c)), c, 0)


@derandomized
@given(twists, twists, twists)
def test_bracket(a, b, c):
    A, B, scale = se3.hat(a), se3.hat(b), size(a) * size(b) * size(c)
    near(se3.hat(se3.ad(a) @ b), A @ B - B @ A, ALGEBRA, scale)
    jacobi = se3.ad(a) @ se3.ad(b) @ c + se3.ad(b) @ se3.ad(c) @ a + se3.ad(c) @ se3.ad(a) @ b
    near(jacobi, np.zeros(6), ALGEBRA, 4 * scale)
    near(se3.ad_transpose(a, b), se3.ad(a).T @ b, ALGEBRA, scale)


def test_structure_constants():
    """Nonzero brackets of the translations E1, E2, E3 and rotations E4, E5, E6, as listed in [chhabra14 2.4]."""
    listed = {(4, 5): 6, (5, 6): 4, (6, 4): 5, (4, 2): 3, (4, 3): -2, (5, 3): 1, (5, 1): -3, (6, 1): 2, (6, 2): -1}
    E = np.eye(6)
    for i in range(1, 7):
        for k in range(1, 7):
            index = listed.get((i, k)) or -listed.get((k, i), 0)
            near(se3.ad(E[i - 1]) @ E[k - 1], np.sign(index) * E[abs(index) - 1], 0)


@derandomized
@given(twists, twists, twists)
def test_power_is_the_same_on_both_sides_of_a_pose(a, V_B, F_B):
    g = se3.exp(a)
    V_A, F_A = se3.Ad(*g) @ V_B, se3.Ad_inv(*g).T @ F_B
    near(ca.dot(V_A, F_A), V_B @ F_B, ALGEBRA, 8 * size(a) ** 2 * size(V_B) * size(F_B))


@pytest.mark.parametrize("xi", WIDE)
def test_dexp_is_the_differential_of_exp(xi):
    g, dg = se3.exp(xi), D_EXP(xi).full().reshape(4, 4, 6, order="F")
    inverse, scale = se3.homogeneous(*se3.inverse(*g)).full(), size(xi)
    left, right = both(se3.dexp_left, xi), both(se3.dexp_right, xi)
    for i in range(6):
        near(se3.vee(dg[:, :, i] @ inverse), left[:, i], DERIVATIVE, scale)
        near(se3.vee(inverse @ dg[:, :, i]), right[:, i], DERIVATIVE, scale)
    near(left, phi(se3.ad(xi).full()), EXPONENTIAL, scale)
    near(left, se3.Ad(*g) @ right, ALGEBRA, scale)


@pytest.mark.parametrize("xi", WIDE)
def test_dexp_inverses(xi):
    scale = size(xi) / min(1.0, 2 * math.pi - np.linalg.norm(xi[3:])) ** 2
    near(both(se3.dexp_left_inv, xi) @ se3.dexp_left(xi).full(), np.eye(6), ALGEBRA, scale)
    near(both(se3.dexp_right_inv, xi) @ se3.dexp_right(xi).full(), np.eye(6), ALGEBRA, scale)


@pytest.mark.parametrize("xi", [xi for xi in TWISTS if np.linalg.norm(xi[3:]) < math.pi - 1e-8])
def test_derivative_of_log_is_the_inverse_differential(xi):
    near(D_LOG(np.r_[xi, np.zeros(6)]), se3.dexp_right_inv(xi), DERIVATIVE, size(xi))


@pytest.mark.parametrize("f", [se3.dexp_left, se3.dexp_left_inv])
def test_derivatives_of_the_differentials_through_the_switch(f):
    D = traced(lambda x: ca.jacobian(ca.vec(f(x)), x))
    first = {se3.dexp_left: 1 / 2, se3.dexp_left_inv: -1 / 2}[f]
    at_zero = [first * se3.ad(e).full().ravel(order="F") for e in np.eye(6)]
    near(D(np.zeros(6)), np.transpose(at_zero), ALGEBRA)
    for axis in AXES:
        v = np.array([1.0, -2.0, 0.5])
        below, above = (D(np.r_[v, axis * (1 + k * 1e-15)]) for k in (-1, 1))
        near(below, above, 8 * DERIVATIVE)
        near(D(np.r_[v, axis * 1e-200]), D(np.r_[v, axis * 0]), DERIVATIVE)


def test_a_pure_translation_and_a_pure_rotation_keep_their_zeros():
    x = ca.SX.sym("x")
    R, p = se3.exp([x, 0, 0, 0, 0, 0])
    near(ca.Function("f", [x], [R])(0.3), np.eye(3), 0)
    near(ca.Function("f", [x], [p])(0.3), (0.3, 0, 0), 0)
    Ad = se3.Ad(so3.rotation((0, 0, 1), x), np.zeros(3))
    assert ca.sparsify(Ad).nnz() == 10


def test_wrong_shapes_are_named():
    with pytest.raises(ModelError, match="6 x 1"):
        se3.exp([1, 2, 3])
    with pytest.raises(ModelError, match="3 x 3"):
        se3.log(np.eye(4), np.zeros(3))
    with pytest.raises(ModelError, match="3 x 1"):
        se3.act(np.eye(3), np.zeros(3), np.zeros(4))
