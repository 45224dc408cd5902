"""Filters and observers of flying machines against their transfer functions and polynomials. [konz25 5.3, 5.4]"""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest
from scipy import signal
from scipy.spatial.transform import Rotation

import pfaffian as pf
from pfaffian.control import actuation, estimation
from tests.tolerance import close

T = 0.005
EXACT = 1e-10
"""Polynomials and transfer functions of matrices that CasADi differentiated."""

P = (2.45e-7 / 3.6e-5, 0.0105 / 3.6e-5, 0.005 / 3.6e-5)


def linear(step, x, u):
    """A = d step/dx, B = d step/du at numbers x, u; step(x, u) gives a column."""
    X, U = ca.SX.sym("x", len(x)), ca.SX.sym("u", len(u))
    y = step(X, U)
    f = ca.Function("f", [X, U], [y, ca.jacobian(y, X), ca.jacobian(y, U)])
    return [np.array(a) for a in f(x, u)]


def test_the_servo_is_its_transfer_function():
    p0, p1 = 1555.6, 73.33
    _, A, B = linear(lambda x, u: ca.vertcat(*actuation.servo_step(x[0], x[1], u, T, p0, p1)), [0.1, 0.2], [0.3])
    for z in np.exp(1j * np.array([0.1, 0.5, 2.0])):
        close(abs(np.linalg.solve(z * np.eye(2) - A, B)[0, 0] - p0 * T**2 / ((z - 1) ** 2 + p1 * T * (z - 1) + p0 * T**2)),
              0.0, EXACT, "G")  # fmt: skip


def test_the_propeller_s_observer_has_its_polynomial():
    l1, l2, w, i = 60.0, -900.0, 412.9, 4.45

    def error(x, u):
        """The machine [w, w before, p3] and its estimate, by turns."""
        y = (x[0] + x[1]) / 2
        e = actuation.propeller_observer(actuation.PropellerEstimate(*ca.vertsplit(x[2:])), y, i, T, P[:2], (l1, l2))
        return ca.vertcat(*e)

    _, A, _ = linear(error, [w, w, w, w, P[2]], [0.0])
    found = np.poly(A[:, 2:])
    a = 4 * P[0] * w
    close(found, [1, T / 2 * (a + l1) - 2, 1 - T / 2 * (a + T * l2), -T / 2 * (l1 + T * l2)], EXACT, "(5.24)")
    assert np.abs(np.roots(found)).max() < 1
    x, est = w, actuation.PropellerEstimate(w + 20, w + 20, 0.0)
    before = x
    for _ in range(800):
        est = actuation.propeller_observer(est, (x + before) / 2, i, T, P[:2], (l1, l2))
        before, x = x, actuation.propeller_step(x, i, T, P)
    close([est.speed, est.friction], [x, P[2]], 1e-6, "the estimate")


def test_a_propeller_follows_its_wish():
    gain, w = 12.0, 400.0

    def step(x, u):
        wish, then = u[0], u[1]
        return actuation.propeller_step(x, actuation.propeller_current(wish, then, x, P[2], T, P[:2], gain), T, P)

    y, A, _ = linear(step, [w], [w, w + 3.0])
    close(y, [[w + 3.0]], EXACT, "on the wish it stays on it")
    close(A, [[1 - T * (2 * P[0] * w + gain)]], EXACT, "(5.27)")


def test_thrusts_and_tilts_make_the_wrench():
    m = pf.thrust_multicopter(
        "t", pf.TRICOPTER["azimuths"], pf.TRICOPTER["spins"], mass=1.251, inertia=(0.0192, 0.0192, 0.0308), arm=0.24,
        height=-6e-3, thrust=1.44e-5, torque=2.45e-7, tilting=True,
    )  # fmt: skip
    q = np.array([0, 0, 0, 0, 0, 0, 1.0])
    B = pf.compile_terms(m, {"B": lambda k: k.B}, backend="numpy", lanes=1)(q, np.zeros(6))["B"]
    f = np.array([0.5, -0.8, 12.0, 0.1, -0.05, 0.2])
    x = actuation.tilt_thrusts(f, B)
    F, angle = np.array(x.thrust).ravel(), np.array(x.angle).ravel()
    close(B @ np.r_[F * np.cos(angle), F * np.sin(angle)], f, 1e-12, "the wrench")
    far = actuation.tilt_thrusts(3 * f + [30, 0, 0, 0, 0, 0], B)
    assert float(ca.mmax(far.thrust)) == 7.0 and float(ca.mmax(ca.fabs(far.angle))) == pytest.approx(np.pi / 4)
    _, A, b = linear(lambda x, u: actuation.low_pass(x, u, 0.7), [1.0], [2.0])
    close([A[0, 0], b[0, 0]], [0.7, 0.3], EXACT, "(1 - c) / (z - c)")


SPINS = np.array([1, -1, 1, -1])
KF, KT, L, SPIN = 1.44e-5, 2.45e-7, 0.24, 3.6e-5
BQ = np.array([[1, 1, 1, 1], [0, L, 0, -L], [-L, 0, L, 0], -KT / KF * SPINS]) * KF
HOVER = np.sqrt(1.001 * 9.81 / 4 / KF)


def p4(w):
    return SPIN / (8 * KT) * (1 / w).sum()


def test_the_quadcopter_s_filter_is_its_transfer_function():
    """[konz25 (5.40), corrected], away from hover too, where heading is coupled."""
    close(p4(np.full(4, HOVER)), 0.17794, 1e-4, "p4 at hover")
    close(KT / SPIN * np.sqrt(1.001 * 9.81 / KF), 5.620, 1e-3, "k_head1")
    close(KT / SPIN * np.sqrt(1.001 * 9.81 / KF), 1 / p4(np.full(4, HOVER)), EXACT, "a pole on the zero")
    k0, k1 = np.array([900.0, 2500.0, 2500.0, 60.0]), np.array([42.0, 70.0, 70.0, 5.62])
    of = actuation.QuadcopterFilter(BQ, SPIN * SPINS, k0, k1)
    for w in (np.full(4, HOVER), np.array([400.0, 500.0, 430.0, 350.0])):
        rest = BQ @ w**2

        def step(x, u, of=of):
            return ca.vertcat(*actuation.quadcopter_forces(x[:4], x[4:], u, T, of))

        def made(x, u, of=of):
            """f at k, which the step has made of: h' = h + T k0 (u - f)."""
            h, _ = actuation.quadcopter_forces(x[:4], x[4:], u, T, of)
            return u - (h - x[:4]) / (T * ca.DM(of.k0))

        at = np.r_[k1 * rest, w]
        y, A, B = linear(step, at, rest)
        close(y.ravel(), at, 1e-12, "at rest it stays")
        _, C, _ = linear(made, at, rest)
        p = [
            SPIN / (8 * KF) * (-1 / w[0] + 1 / w[1] - 1 / w[2] + 1 / w[3]),
            SPIN / (4 * KF * L) * (1 / w[1] - 1 / w[3]),
            SPIN / (4 * KF * L) * (1 / w[0] - 1 / w[2]),
        ]
        for z in np.exp(1j * np.array([0.02, 0.1, 0.7])):
            s = (z - 1) / T
            G = C @ np.linalg.solve(z * np.eye(8) - A, B)
            own = k0 / (s**2 + k1 * s + k0)
            four = s**2 + (k0[3] * p4(w) + k1[3]) * s + k0[3]
            want = np.diag([*own[:3], k0[3] * (p4(w) * s + 1) / four]).astype(complex)
            want[3, :3] = [p[j] * own[j] * s**2 * (s + k1[3]) / four for j in range(3)]
            close(np.abs(G - want).max(), 0.0, 1e-8, "G")


def test_the_observer_of_turning():
    I = np.diag([17.9e-3, 18.0e-3, 30.7e-3])
    zero = np.zeros(3)

    def step(x, u):
        return ca.vertcat(*estimation.turning_step(x[:3], x[3:], zero, u, I, T))

    _, A, _ = linear(step, np.zeros(6), zero)
    for i, theta in enumerate(np.diag(I)):
        close(np.poly(A[np.ix_([i, 3 + i], [i, 3 + i])]), [1, -(2 - 0.2), 1 - 0.2 + T * 0.01 / theta], EXACT, "poles")
    close(np.sort(np.linalg.eigvals(A[np.ix_([0, 3], [0, 3])]).real), [0.8151, 0.9849], 1e-4, "the quadcopter's about x")
    w, b = np.array([0.3, -0.2, 0.1]), np.array([4e-3, -1e-3, 2e-3])
    est = (zero, zero)
    for _ in range(1000):
        est, w = estimation.turning_step(*est, w, zero, I, T), w + T * np.linalg.solve(I, b - np.cross(w, I @ w))
    close(np.array(est[1]).ravel(), b, 1e-3, "the moment that nobody knew of")


def test_the_length_of_a_quaternion_settles():
    q, w = np.array([0.1, 0.2, -0.3, 0.9]), np.array([2.0, -1.0, 3.0])
    q = ca.DM(1.05 * q / np.linalg.norm(q))
    off = []
    for _ in range(6):
        q = estimation.attitude_step(q, np.zeros(3), T)
        off.append(abs(float(ca.norm_2(q)) - 1))
    assert off[0] < 5e-3 and off[1] < 3e-5 and off[-1] < 1e-15
    start = Rotation.from_quat(np.array(q).ravel())
    for _ in range(200):
        q = estimation.attitude_step(q, w, T)
    end = start * Rotation.from_rotvec(w)
    close((Rotation.from_quat(np.array(q).ravel()) * end.inv()).magnitude(), 0.0, 2e-4, "a second of turning")


def test_the_position_filter_has_its_poles():
    period, a, R = 0.1, np.array([0.3, -0.2, 9.5]), Rotation.from_rotvec([0.4, -0.3, 0.8]).as_matrix()

    def around(x, u):
        z = estimation.flight_correction(estimation.Flight(x[:3], x[3:6], x[6:]), R, u, period)
        for _ in range(20):
            z = estimation.flight_step(z, R, a, T)
        return ca.vertcat(*z)

    _, A, _ = linear(around, np.zeros(9), np.zeros(3))
    close(np.poly(A), np.poly([0.0, 0.5, 0.9] * 3), 1e-9, "{0, 0.5, 0.9}, three times")
    gains = (0.9, 0.4, -0.03)

    def other(x, u):
        z = estimation.flight_correction(estimation.Flight(x[:3], x[3:6], x[6:]), R, u, period, gains)
        return ca.vertcat(*estimation.flight_step(z, R, a, period))

    _, A, _ = linear(other, np.zeros(9), np.zeros(3))
    lr, lv, la = gains
    close(np.poly(A), np.poly(np.tile(np.roots([1, lr + lv - la - 3, 3 - 2 * lr - lv - la, lr - 1]), 3)).real, 1e-6, "(5.65)")
    still = estimation.flight_step(estimation.Flight(np.zeros(3), np.zeros(3), np.zeros(3)), R, R.T @ [0, 0, 9.81], T)
    assert np.abs(np.array(still.v)).max() < 1e-14


def test_the_bias_of_the_force_settles():
    _, A, B = linear(lambda x, u: estimation.force_bias_step(x, u, 0.5, 2.0, mass=1.2, drag=0.3), [0.1], [4.0])
    close([A[0, 0], B[0, 0]], [0.98, 0.02 * 1.2], EXACT, "a low pass")
    b = 0.0
    for _ in range(2000):
        b = estimation.force_bias_step(b, 4.0, 0.5, 2.0, mass=1.2, drag=0.3)
    close(b, 1.2 * 4 + 0.3 * 0.5 - 2, 1e-12, "what is left over")


@pytest.mark.parametrize("order", [1, 4, 6])
def test_bessel_s_filter(order):
    F, G = estimation.bessel_filter(7.0, T, order)
    b, a = signal.bessel(order, 2 * np.pi * 7.0, norm="mag", analog=True)
    A, B, C, D = signal.tf2ss(b, a)
    A, B, C, _, _ = signal.cont2discrete((A, B, C, D), T)
    for w in (1.0, 20.0, 44.0, 200.0):
        z = np.exp(1j * w * T)
        have, want = np.linalg.solve(z * np.eye(order) - F, G)[0], (C @ np.linalg.solve(z * np.eye(order) - A, B))[0, 0]
        close(abs(have - want), 0.0, 1e-9, "G")


def test_how_an_imu_sits_is_found():
    random = np.random.default_rng(7)
    R = Rotation.random(20, random_state=3).as_matrix()
    R_B, a_B = Rotation.from_rotvec([0.03, -0.05, 0.02]).as_matrix(), np.array([0.2, -0.1, 0.3])
    a = np.einsum("ij,nj->ni", R_B, 9.81 * R[:, 2, :]) + a_B
    found = estimation.imu_misalignment(a, R)
    close(found.rotation, R_B, 1e-12, "rotation")
    close(found.bias, a_B, 1e-12, "bias")
    noisy = estimation.imu_misalignment(a + 0.01 * random.normal(size=a.shape), R)
    assert np.abs(noisy.rotation - R_B).max() < 3e-3 and np.abs(noisy.bias - a_B).max() < 0.02
    with pytest.raises(pf.ModelError, match="leave R_B open"):
        estimation.imu_misalignment(a, Rotation.from_rotvec(np.outer(np.arange(20), [0, 0, 0.1])).as_matrix())


def test_a_latency_is_found():
    def yaw(t):
        return np.sin(1.3 * t) + 0.6 * np.sin(3.1 * t + 1) + 0.3 * np.sin(5.7 * t)

    random = np.random.default_rng(2)
    t, s = np.arange(0, 60, 0.005), np.arange(0, 60, 0.1)
    late = yaw(s - 0.034) + 2e-3 * random.normal(size=s.size)
    assert abs(estimation.latency(t, yaw(t), s, late) - 0.034) < 1e-3
    with pytest.raises(pf.ModelError, match="no delay within"):
        estimation.latency(s, 0 * s, s, 0 * s)
    with pytest.raises(pf.ModelError, match="increasing"):
        estimation.latency(t[::-1], yaw(t), s, late)
    with pytest.raises(pf.ModelError, match="three times"):
        estimation.latency(s[:4], s[:4], s[:4], s[:4])


def test_errors_of_tracking():
    random = np.random.default_rng(5)
    R, turn = Rotation.random(30, random_state=1), random.normal(size=(30, 3))
    e = estimation.tracking_error(
        np.ones((30, 3)), (R * Rotation.from_rotvec(turn)).as_matrix(), np.zeros((30, 3)), R.as_matrix()
    )
    close(e.attitude, Rotation.from_rotvec(turn).magnitude(), 1e-12, "e_R")
    close(e.position, np.full(30, np.sqrt(3)), 1e-14, "e_r")
    assert (e.heading <= e.attitude + 1e-12).all()
    about = estimation.tracking_error([[0, 0, 0]], [Rotation.from_rotvec([0, 0, -0.4]).as_matrix()], [[0, 0, 0]], [np.eye(3)])
    close([about.heading[0], about.attitude[0]], [0.4, 0.4], 1e-14, "a turn about z")


WRONG = {
    "no cutoff": (lambda: estimation.bessel_filter(0.0, T), "above zero"),
    "an order": (lambda: estimation.bessel_filter(7.0, T, 12), "from 1 to 9"),
    "shapes of an imu": (lambda: estimation.imu_misalignment(np.zeros((4, 3)), np.eye(3)), r"attitudes \(n, 3, 3\)"),
    "shapes of errors": (lambda: estimation.tracking_error(np.zeros((4, 3)), np.eye(3), 0, 0), "twice are needed"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_arguments_are_named(case):
    call, words = WRONG[case]
    with pytest.raises(pf.ModelError, match=words):
        call()
