"""Rotations, compared with their axioms, SciPy, mpmath and CasADi's derivatives at every scale of angle."""

import math

import casadi as ca
import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import expm
from scipy.spatial.transform import Rotation

from pfaffian.errors import ModelError
from pfaffian.maths import so3
from tests.matrices import near

EPS = np.finfo(float).eps
ALGEBRA = 8 * EPS  # products of a few factors of size 1
EXPONENTIAL = 64 * EPS  # scipy's expm squares its matrix about five times
DERIVATIVE = 64 * EPS  # one quotient, differentiated at so3.NEAR, where the series ends: loses a few bits more than its value
CURVATURE = 1024 * EPS  # the quotient differentiated twice
BOUNDARY = 1e-3  # distance from 2 pi, where the inverse differentials are singular like 1/distance

SCALES = [0.0, 1e-300, 1e-160, 1e-8, 1e-4, 0.3, 1.0 - 1e-9, 1.0 + 1e-9, 2.0, math.pi - 1e-7, math.pi]
AXES = [(1, 0, 0), (0, -1, 0), (0, 0, 1), (0.6, 0, -0.8), *np.random.default_rng(1).normal(size=(4, 3))]
VECTORS = [np.multiply(axis, angle / np.linalg.norm(axis)) for angle in SCALES for axis in AXES]
WIDE = VECTORS + [np.multiply(AXES[-1], a / np.linalg.norm(AXES[-1])) for a in (4.0, 6.0, 2 * math.pi - BOUNDARY)]

vectors = st.lists(st.floats(-3.6, 3.6), min_size=3, max_size=3).map(np.array)
derandomized = settings(derandomize=True, deadline=None, max_examples=100)


def traced(f, *shapes):
    x = [ca.SX.sym(f"x{i}", *shape) for i, shape in enumerate(shapes)]
    return ca.Function("f", x, [f(*x)])


def derivative(f, n, *, order=1):
    """d^order f / dx^order as a function of x (n,) that returns an array of shape f.shape + (n,) * order."""
    x = ca.SX.sym("x", n)
    y = ca.vec(f(x))
    for _ in range(order):
        y = ca.vec(ca.jacobian(y, x))
    shape = (*f(x).shape, *(n,) * order)
    F = ca.Function("F", [x], [y])
    return lambda value: F(value).full().reshape(shape, order="F")


TRACED = {f: traced(f, (3, 1)) for f in (so3.exp, so3.dexp_left, so3.dexp_right, so3.dexp_left_inv, so3.quat_exp)}
TRACED_LOG = {f: traced(f, shape) for f, shape in ((so3.log, (3, 3)), (so3.quat_log, (4, 1)))}
D_EXP = derivative(so3.exp, 3)


def both(f, x):
    """The value of f for numbers, after a check that the traced function agrees."""
    value = f(x).full()
    trace = {**TRACED, **TRACED_LOG}[f](x).full()
    np.testing.assert_allclose(trace, value, rtol=0, atol=ALGEBRA * max(1.0, np.abs(value).max()))
    return value


def phi(X):
    """The integral of expm(s X) over s in [0, 1], from the exponential of a matrix of twice the size."""
    n = len(X)
    return expm(np.block([[X, np.eye(n)], [np.zeros((n, 2 * n))]]))[:n, n:]


def stumpff_reference(s, j):
    with mpmath.workdps(60):
        return mpmath.nsum(lambda n: (-mpmath.mpf(s)) ** int(n) / mpmath.factorial(2 * int(n) + j), [0, 60])


@pytest.mark.parametrize("s", [0.0, 1e-300, 1e-16, 1e-8, 1e-2, 0.999999, 1.0, 1.000001, 2.0, math.pi**2, 39.0])
def test_stumpff_functions_and_their_derivatives(s):
    x = ca.SX.sym("x")
    top = 6
    c = ca.vertcat(*so3.stumpff(x, top))
    d = ca.jacobian(c, x)
    F = ca.Function("F", [x], [c, d, ca.jacobian(d, x)])
    value, slope, curvature = (m.full().ravel() for m in F(s))
    near(value, ca.vertcat(*so3.stumpff(ca.DM(s), top)), EPS)
    ref = [stumpff_reference(s, j) for j in range(top + 5)]
    ref_slope = [(j * ref[j + 2] - ref[j + 1]) / 2 for j in range(top + 3)]
    ref_curvature = [(j * ref_slope[j + 2] - ref_slope[j + 1]) / 2 for j in range(top + 1)]
    for j in range(top + 1):
        near(value[j], float(ref[j]), 2 * ALGEBRA)
        near(slope[j], float(ref_slope[j]), DERIVATIVE)
        near(curvature[j], float(ref_curvature[j]), CURVATURE)
        if s <= 10:  # relative errors too: c_6 is 1/720 and must keep its digits up to pi
            near(value[j] / float(ref[j]) if j > 1 else 1, 1, 200 * ALGEBRA)


@pytest.mark.parametrize("s", [1e-300, 1e-8, 0.5, 3.999, 4.001, math.pi**2, 39.0])
def test_factors_of_the_inverse_differential(s):
    with mpmath.workdps(700):  # the quotients below cancel all digits of 1e-300 twice
        x2 = mpmath.mpf(s)
        x = mpmath.sqrt(x2) / 2
        a = x * mpmath.cot(x)
        g = (1 - a) / x2
        a_slope = (mpmath.cot(x) - x / mpmath.sin(x) ** 2) / (8 * x)
        expected = [float(v) for v in (a, g, -2 * (a_slope + g) / x2)]
    scale = 1 / (2 * math.pi - math.sqrt(s)) ** 2
    near(ca.vertcat(*so3.dexp_inv_factors(ca.DM(s))), expected, ALGEBRA, max(1.0, scale))


@pytest.mark.parametrize("w", WIDE)
def test_exp_is_scipy_rotation_and_orthogonal(w):
    R = both(so3.exp, w)
    near(R, Rotation.from_rotvec(w).as_matrix(), ALGEBRA)
    near(R @ R.T, np.eye(3), ALGEBRA)
    near(R, so3.quat_to_matrix(so3.quat_exp(w)), ALGEBRA)
    near(both(so3.quat_exp, w).ravel(), Rotation.from_rotvec(w).as_quat(), ALGEBRA)


@pytest.mark.parametrize("w", VECTORS)
def test_log_inverts_exp(w):
    R = both(so3.exp, w)
    angle = np.linalg.norm(w)
    for back in (both(so3.log, R), both(so3.quat_log, so3.quat_exp(w)), both(so3.quat_log, -so3.quat_exp(w))):
        if angle < math.pi:
            near(back, w, ALGEBRA, max(angle, 1e-290))  # relative: log keeps the digits of a tiny rotation
        else:
            near(back * np.sign(back.ravel() @ w), w, ALGEBRA, math.pi)
        assert np.linalg.norm(back) <= math.pi * (1 + EPS)


@derandomized
@given(vectors)
def test_log_of_any_rotation(w):
    R = Rotation.from_rotvec(w)
    back = both(so3.log, R.as_matrix()).ravel()
    near(so3.exp(back), R.as_matrix(), ALGEBRA)
    assert np.linalg.norm(back) <= math.pi * (1 + EPS)


@derandomized
@given(vectors, vectors, vectors)
def test_group_axioms(a, b, c):
    A, B = so3.exp(a), so3.exp(b)
    p, q, r = (so3.quat_exp(w) for w in (a, b, c))
    near(so3.quat_to_matrix(so3.quat_mul(p, q)), A @ B, ALGEBRA)
    near(so3.quat_mul(so3.quat_mul(p, q), r), so3.quat_mul(p, so3.quat_mul(q, r)), ALGEBRA)
    near(so3.quat_mul(p, so3.quat_conj(p)), (0, 0, 0, 1), ALGEBRA)
    near(so3.exp(-a), A.T, ALGEBRA)
    near(A @ so3.hat(b) @ A.T, so3.hat(A @ b), 4 * ALGEBRA, 4.0)
    near(so3.hat(a) @ b, np.cross(a, b), ALGEBRA, 16.0)
    near(so3.vee(so3.hat(a)), a, 0)
    near(so3.exp(A @ b), A @ B @ A.T, 2 * ALGEBRA, 4.0)


def test_quaternions_of_many_rotations_agree_with_scipy():
    """Rotations of every branch: small turns, half turns about each axis and between, in a batch of any shape."""
    vectors = np.array([*VECTORS, *(np.pi * np.eye(3)), *np.random.default_rng(2).normal(size=(200, 3))])[: 8 * 35]
    turns = Rotation.from_rotvec(vectors)
    found = so3.quaternions(turns.as_matrix().reshape(8, -1, 3, 3))
    assert found.shape == (8, 35, 4) and (found[..., 3] >= 0).all()
    expected = turns.as_quat(canonical=True).reshape(found.shape)
    sign = np.where(np.sum(found * expected, axis=-1, keepdims=True) < 0, -1.0, 1.0)
    np.testing.assert_allclose(sign * found, expected, atol=1e-15 * 4)
    assert (sign[np.abs(expected[..., 3:]) > 1e-15] == 1).all(), "the opposite sign is allowed only for half turns"
    assert so3.quaternions(np.zeros((5, 0, 3, 3))).shape == (5, 0, 4)


@derandomized
@given(st.lists(st.floats(-1, 1), min_size=4, max_size=4).map(np.array).filter(lambda q: np.linalg.norm(q) > 0.1))
def test_quaternion_of_every_rotation(q):
    q /= np.linalg.norm(q)
    R = Rotation.from_quat(q).as_matrix()
    near(so3.quat_to_matrix(q), R, ALGEBRA)
    back = so3.matrix_to_quat(R).full().ravel()
    near(back * np.sign(back @ q), q, ALGEBRA)
    near(back @ back, 1, ALGEBRA)
    assert back[3] >= 0
    near(traced(so3.matrix_to_quat, (3, 3))(R), back, 0)


@pytest.mark.parametrize(
    "q", np.vstack([np.eye(4), [[s, t, u, v] for s in (0, 1) for t in (-1, 1) for u in (0, 1) for v in (0, 1e-9)]])
)
def test_quaternion_on_the_boundaries_of_the_four_formulas(q):
    q = q / np.linalg.norm(q)
    back = so3.matrix_to_quat(so3.quat_to_matrix(q)).full().ravel()
    near(back * np.sign(back @ q), q, ALGEBRA)


@pytest.mark.parametrize("w", WIDE)
def test_dexp_is_the_differential_of_exp(w):
    R, dR = so3.exp(w).full(), D_EXP(w)
    left, right = both(so3.dexp_left, w), both(so3.dexp_right, w)
    for i in range(3):
        near(so3.vee(dR[:, :, i] @ R.T), left[:, i], DERIVATIVE)
        near(so3.vee(R.T @ dR[:, :, i]), right[:, i], DERIVATIVE)
    near(left, phi(so3.hat(w).full()), EXPONENTIAL)
    near(left, R @ right, ALGEBRA)


@pytest.mark.parametrize("w", WIDE)
def test_dexp_inverses(w):
    scale = 1 / min(1.0, 2 * math.pi - np.linalg.norm(w))
    near(both(so3.dexp_left_inv, w) @ so3.dexp_left(w).full(), np.eye(3), 2 * ALGEBRA, scale)
    near(so3.dexp_right(w) @ so3.dexp_right_inv(w), np.eye(3), 2 * ALGEBRA, scale)


def _log_of_product(a, b):
    return so3.log(ca.mtimes(so3.exp(a), so3.exp(b)))


D_LOG = traced(lambda a, b: ca.jacobian(_log_of_product(a, b), b), (3, 1), (3, 1))


@pytest.mark.parametrize("w", [w for w in VECTORS if np.linalg.norm(w) < math.pi - 1e-8])
def test_derivative_of_log_is_the_inverse_differential(w):
    """d log(exp(w) exp(e)) / de at e = 0 is dexp_right_inv(w); at pi itself the axis changes its sign."""
    near(D_LOG(w, np.zeros(3)), so3.dexp_right_inv(w), DERIVATIVE)


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("f", [so3.exp, so3.quat_exp, so3.dexp_left, so3.dexp_left_inv])
def test_derivatives_through_the_switch(f, order):
    """Derivatives are continuous at 0 and at |w| = 1, where the formulas change, and agree with the series at 0."""
    D = derivative(f, 3, order=order)
    tolerance = DERIVATIVE if order == 1 else CURVATURE
    for axis in AXES:
        axis = np.array(axis) / np.linalg.norm(axis)
        near(D(axis * (1 - 1e-15)), D(axis * (1 + 1e-15)), tolerance)
        near(D(axis * 1e-200), D(axis * 0), tolerance)
        assert np.isfinite(D(axis * math.pi)).all()
    E = np.array([so3.hat(e).full() for e in np.eye(3)])
    EE = np.einsum("kab,lbc->ackl", E, E)
    EE = EE + EE.swapaxes(2, 3)
    first, second = {so3.exp: (1, 1 / 2), so3.dexp_left: (1 / 2, 1 / 6), so3.dexp_left_inv: (-1 / 2, 1 / 12)}.get(
        f, (None, None)
    )
    if first is not None:  # f = 1 + first hat(w) + second hat(w)^2 + ...
        near(D(np.zeros(3)), first * E.transpose(1, 2, 0) if order == 1 else second * EE, ALGEBRA)


@derandomized
@given(vectors, vectors)
def test_quaternion_rate_is_the_body_angular_velocity(a, omega):
    q = so3.quat_exp(a)
    near(so3.quat_rate(q) @ omega, so3.quat_mul(q, ca.vertcat(omega, 0)) / 2, ALGEBRA, 4.0)
    D = traced(lambda x: ca.jacobian(so3.quat_exp(x), x), (3, 1))(a)
    near(so3.quat_rate(q) @ so3.dexp_right(a), D, ALGEBRA)


@pytest.mark.parametrize("axis", [(1, 0, 0), (0, 1, 0), (0, 0, 1), (0, 0, -1)])
def test_rotation_about_a_coordinate_axis_keeps_zeros_and_ones(axis):
    t = ca.SX.sym("t")
    R = so3.rotation(axis, t)
    assert R.nnz() == 5
    k = int(np.flatnonzero(axis)[0])
    assert float(R[k, k]) == 1
    near(ca.Function("f", [t], [R])(0.7), Rotation.from_rotvec(0.7 * np.array(axis)).as_matrix(), ALGEBRA)


@derandomized
@given(vectors.filter(lambda v: np.linalg.norm(v) > 1e-3), st.floats(-7, 7))
def test_rotation_about_any_axis(v, angle):
    axis = v / np.linalg.norm(v)
    R = so3.rotation(axis, angle)
    near(R, so3.exp(axis * angle), 2 * ALGEBRA)
    near(traced(so3.rotation, (3, 1), (1, 1))(axis, angle), R, ALGEBRA)


@derandomized
@given(vectors)
def test_roll_pitch_yaw(rpy):
    R = so3.rpy_to_matrix(list(rpy))
    near(R, Rotation.from_euler("xyz", rpy).as_matrix(), ALGEBRA)
    near(traced(so3.rpy_to_matrix, (3, 1))(rpy), R, ALGEBRA)


def test_quarter_turns_are_exact():
    turns = [k * math.pi / 2 for k in range(-4, 5)]
    for rpy in ((a, b, c) for a in turns for b in turns for c in turns):
        R = so3.rpy_to_matrix(rpy)
        assert R.nnz() == 3
        assert np.isin(R.full(), (-1.0, 0.0, 1.0)).all()


def test_entries_close_to_one_are_rounded_to_one():
    c, s = math.cos(3e-8), math.sin(3e-8)
    assert 1 - so3.SNAP < c < 1
    assert so3.rpy_to_matrix((3e-8, 0, 0)).full().tolist() == [[1, 0, 0], [0, 1, -s], [0, s, 1]]


def test_arguments_of_every_type():
    x = ca.SX.sym("x")
    for w in ([1, 2, 3], (1.0, 2.0, 3.0), np.array([1, 2, 3]), np.array([[1.0], [2.0], [3.0]]), ca.DM([1, 2, 3])):
        assert isinstance(so3.exp(w), ca.DM)
        near(so3.exp(w), Rotation.from_rotvec([1, 2, 3]).as_matrix(), ALGEBRA)
    assert isinstance(so3.exp([0, x, 0]), ca.SX)
    assert so3.exp(ca.SX(3, 1)).is_constant()
    for wrong in ([1, 2], np.eye(3), ca.SX.sym("w", 1, 3)):
        with pytest.raises(ModelError, match="3 x 1"):
            so3.exp(wrong)
