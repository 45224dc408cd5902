"""Filters and observers of flying machines against their transfer functions and polynomials. [konz25 5.3, 5.4]"""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest
from scipy import signal
from scipy.spatial.transform import Rotation

import pfaffian as pf
from pfaffian.control import actuation, estimation
from tests.refused import refusals
from tests.tolerance import close

T = 0.005
EXACT = 1e-10
"""Tolerance of polynomials and transfer functions from matrices that CasADi differentiated."""

P = (2.45e-7 / 3.6e-5, 0.0105 / 3.6e-5, 0.005 / 3.6e-5)


def linear(step, x, u):
    """Value of step(x, u), a column, at numbers x and u, with A = d step/dx and B = d step/du."""
    X, U = ca.SX.sym("x", len(x)), ca.SX.sym("u", len(u))
    y = step(X, U)
    f = ca.Function("f", [X, U], [y, ca.jacobian(y, X), ca.jacobian(y, U)])
    return [np.array(a) for a in f(x, u)]


def test_the_servo_has_its_transfer_function():
    p0, p1 = 1555.6, 73.33
    _, A, B = linear(lambda x, u: ca.vertcat(*actuation.servo_step(x[0], x[1], u, T, p0, p1)), [0.1, 0.2], [0.3])
    for z in np.exp(1j * np.array([0.1, 0.5, 2.0])):
        close(abs(np.linalg.solve(z * np.eye(2) - A, B)[0, 0] - p0 * T**2 / ((z - 1) ** 2 + p1 * T * (z - 1) + p0 * T**2)),
              0.0, EXACT, "G")  # fmt: skip


def test_the_propeller_s_observer_has_its_polynomial():
    l1, l2, w, i = 60.0, -900.0, 412.9, 4.45

    def error(x, u):
        """Next estimate, from the measured speeds x[:2] (now and before) and the present estimate x[2:]."""
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


def test_a_propeller_follows_its_desired_speed():
    gain, w = 12.0, 400.0

    def step(x, u):
        desired, then = u[0], u[1]
        return actuation.propeller_step(x, actuation.propeller_current(desired, then, x, P[2], T, P[:2], gain), T, P)

    y, A, _ = linear(step, [w], [w, w + 3.0])
    close(y, [[w + 3.0]], EXACT, "at the desired speed it stays there")
    close(A, [[1 - T * (2 * P[0] * w + gain)]], EXACT, "(5.27)")


def tilting():
    """Input matrix B (6, 6) of the tricopter."""
    x = pf.multicopters.TRICOPTER
    m = pf.multicopters.thrust_multicopter(
        "t", x["azimuths"], x["spins"], mass=x["mass"], inertia=(0.0192, 0.0192, 0.0308), arm=x["arm"], height=x["height"],
        thrust=x["thrust"], torque=x["torque"], tilting=True,
    )  # fmt: skip
    q = np.array([0, 0, 0, 0, 0, 0, 1.0])
    return pf.compile_terms(m, {"B": lambda k: k.B}, backend="numpy", lanes=1)(q, np.zeros(6))["B"]


def test_thrusts_and_tilts_make_the_wrench():
    B = tilting()
    f = np.array([0.5, -0.8, 12.0, 0.1, -0.05, 0.2])
    x = actuation.tilt_thrusts(f, B)
    close(np.array(actuation.tilt_wrench(x, B)).ravel(), f, 1e-12, "the wrench")
    far = actuation.tilt_thrusts(3 * f + [30, 0, 0, 0, 0, 0], B)
    assert float(ca.mmax(far.thrust)) == 7.0 and float(ca.mmax(ca.fabs(far.angle))) == pytest.approx(np.pi / 4)
    least = actuation.tilt_thrusts(np.zeros(6), B)
    assert (np.array(least.thrust) == 0.3).all()
    _, A, b = linear(lambda x, u: actuation.low_pass(x, u, 0.7), [1.0], [2.0])
    close([A[0, 0], b[0, 0]], [0.7, 0.3], EXACT, "(1 - c) / (z - c)")


def four_arms():
    m = pf.multicopters.thrust_multicopter(
        "four", [0.3, 1.9, 3.6, 5.1], [1, -1, 1, -1], mass=1.9, inertia=(0.02, 0.03, 0.04), arm=0.3, height=0.02,
        thrust=1.2e-5, torque=2.1e-7, tilting=True,
    )  # fmt: skip
    return pf.compile_terms(m, {"B": lambda k: k.B}, backend="numpy", lanes=1)(np.r_[np.zeros(6), 1.0], np.zeros(6))["B"]


def test_four_tilting_arms_share_a_wrench():
    """The thrusts are the smallest that produce the wrench, by NumPy's pseudo-inverse."""
    B, f = four_arms(), np.array([0.7, -0.4, 18.0, 0.2, 0.1, -0.3])
    x = actuation.tilt_thrusts(f, B)
    up, across = (np.linalg.pinv(B) @ f).reshape(2, 4)
    close(np.array(x.thrust).ravel(), np.hypot(up, across), 1e-12, "thrusts")
    close(np.array(x.angle).ravel(), np.arctan2(across, up), 1e-12, "angles")
    drives = actuation.TiltDrives(x.thrust, x.angle, np.zeros(4))
    after, _ = actuation.tricopter_forces(drives, f, T, B, forgetting=SHARE, servo=SERVO)
    close(
        np.array(ca.vertcat(*after)).ravel(), np.r_[np.array(ca.vertcat(x.thrust, x.angle)).ravel(), np.zeros(4)], 1e-12, "rest"
    )


@pytest.mark.parametrize("arms", ["three", "four"])
def test_the_missing_part_of_a_wrench_is_reported(arms):
    """The missing wrench is the desired one less that of the limited thrusts; within the limits nothing is missing."""
    B = tilting() if arms == "three" else four_arms()
    easy = np.array([0.5, -0.8, 14.0, 0.1, -0.05, 0.2])
    close(np.array(actuation.tilt_thrusts(easy, B).missing).ravel(), np.zeros(6), 1e-12, "none", 1.0)
    for hard in (easy + [0, 0, 40, 0, 0, 0], easy + [15, 0, 0, 0, 0, 0], easy - [0, 0, 30, 0, 0, 0]):
        x = actuation.tilt_thrusts(hard, B, thrust=(0.5, 6.0), angle=0.6)
        F, a = (np.array(y).ravel() for y in x[:2])
        assert (F >= 0.5).all() and (F <= 6.0).all() and (np.abs(a) <= 0.6).all()
        missing = np.array(x.missing).ravel()
        close(missing, hard - B @ np.r_[F * np.cos(a), F * np.sin(a)], 1e-12, "what is missing", 10.0)
        assert np.abs(missing).max() > 1.0
    state = actuation.TiltDrives(np.full(B.shape[1] // 2, 4.0), np.zeros(B.shape[1] // 2), np.zeros(B.shape[1] // 2))
    _, goal = actuation.tricopter_forces(state, hard, T, B, forgetting=SHARE, servo=SERVO, thrust=(0.5, 6.0), angle=0.6)
    close(np.array(goal.missing).ravel(), missing, 1e-12, "by the filter", 10.0)
    with pytest.raises(pf.ModelError, match="three or more arms that tilt"):
        actuation.tilt_thrusts(easy, B[:, :4])
    with pytest.raises(pf.ModelError, match="rows of B depend on each other"):
        actuation.tilt_thrusts(easy, np.vstack([B[:5], B[:1]]))


SERVO, SHARE = (1400 / 0.9, 66 / 0.9), 0.7


@pytest.mark.parametrize("angle", [[0, 0, 0], [np.pi / 5, 0, -np.pi / 5], [0.3, -0.2, 0.1]])
def test_the_tricopter_s_drives_have_their_transfer_function(angle):
    """[konz25 (5.31)-(5.33)], for thrusts that differ."""
    B, F, angle = tilting(), np.array([3.0, 4.5, 5.0]), np.array(angle)
    rest = np.array(actuation.tilt_wrench(actuation.TiltThrusts(F, angle), B)).ravel()

    def drives(x):
        return actuation.TiltDrives(x[:3], x[3:6], x[6:])

    def step(x, u):
        return ca.vertcat(*actuation.tricopter_forces(drives(x), u, T, B, forgetting=SHARE, servo=SERVO)[0])

    at = np.r_[F, angle, 0, 0, 0]
    y, A, b = linear(step, at, rest)
    close(y.ravel(), at, 1e-12, "at rest it stays")
    _, goal = actuation.tricopter_forces(drives(ca.DM(at)), rest, T, B, forgetting=SHARE, servo=SERVO)
    close(np.array(goal.angle).ravel(), angle, 1e-12, "the servos' angles")
    C = linear(lambda x, u: actuation.tilt_wrench(actuation.TiltThrusts(*drives(x)[:2]), B), at, rest)[1]
    close(C[:, :6], actuation.tilt_jacobian(F, angle, B), EXACT, "(5.33)")
    for f in (0.3, 3.0, 30.0):
        z = np.exp(2j * np.pi * f * T)
        G = actuation.tricopter_transfer(z, angle, B, T, forgetting=SHARE, servo=SERVO)
        close(np.abs(C @ np.linalg.solve(z * np.eye(9) - A, b) - G).max(), 0.0, 1e-8, "G")
        if not angle.any():
            drive = [(1 - SHARE) / (z - SHARE), SERVO[0] / (((z - 1) / T) ** 2 + SERVO[1] * (z - 1) / T + SERVO[0])]
            close(np.abs(np.diag(G)[:5] - [drive[1], drive[1], drive[0], drive[0], drive[0]]).max(), 0.0, 2e-2, "hovering")
            close(np.abs(np.diag(G)[:3] - [drive[1], drive[1], drive[0]]).max(), 0.0, 1e-12, "hovering, forces")


SPINS = np.array([1, -1, 1, -1])
KF, KT, L, SPIN = 1.44e-5, 2.45e-7, 0.24, 3.6e-5
BQ = np.array([[1, 1, 1, 1], [0, L, 0, -L], [-L, 0, L, 0], -KT / KF * SPINS]) * KF
HOVER = np.sqrt(1.001 * 9.81 / 4 / KF)
UNEVEN = np.array([400.0, 500.0, 430.0, 350.0])


def test_numbers_at_hover():
    close(HOVER, 412.9, 1e-4, "speed")
    p = actuation.spin_coupling(np.full(4, HOVER), BQ, SPIN * SPINS)
    close(p[:3], [0, 0, 0], 5e-6, "p at hover")
    w = UNEVEN
    close(actuation.spin_coupling(w, BQ, SPIN * SPINS), [
        SPIN / (8 * KF) * (-1 / w[0] + 1 / w[1] - 1 / w[2] + 1 / w[3]),
        SPIN / (4 * KF * L) * (1 / w[1] - 1 / w[3]),
        SPIN / (4 * KF * L) * (1 / w[0] - 1 / w[2]),
        SPIN / (8 * KT) * (1 / w).sum(),
    ], EXACT, "(5.41)")  # fmt: skip
    of = actuation.quadcopter_filter(BQ, SPIN * SPINS, HOVER, magnitude=5.0, tilt=8.0, heading=2.0)
    close(of.k1[3], KT / SPIN * np.sqrt(1.001 * 9.81 / KF), EXACT, "k_head1")
    for j, f in ((0, 5.0), (2, 8.0)):
        s = 2j * np.pi * f
        close(abs(of.k0[j] / (s**2 + of.k1[j] * s + of.k0[j])), np.sqrt(0.5), EXACT, "Butterworth's cut-off")
        close(np.roots([1, of.k1[j], of.k0[j]]).real, np.full(2, -2 * np.pi * f * np.sqrt(0.5)), EXACT, "and angle")
    for static in (False, True):
        of = actuation.quadcopter_filter(BQ, SPIN * SPINS, HOVER, magnitude=5.0, tilt=8.0, heading=2.0, static=static)
        G = actuation.quadcopter_transfer(1 + 0.3j, np.full(4, HOVER), of, T)
        w = 4 * np.pi
        close(abs(G[3, 3] - w / (0.3j / T + w)), 0.0, EXACT, "at hover heading is of first order")
        close(np.abs(G[3, :3]).max(), 0.0, 1e-12, "and independent of the others")


def same_transfer(A, B, C, w, of):
    """Compare (A, B, C) and the library's transfer function with (5.40), (5.43) at the speeds w. [konz25, corrected]"""
    p, k0, k1 = actuation.spin_coupling(w, of.B, of.spin), of.k0, of.k1
    for z in np.exp(1j * np.array([0.02, 0.1, 0.7])):
        s = (z - 1) / T
        G = C @ np.linalg.solve(z * np.eye(len(A)) - A, B)
        second_order = k0 / (s**2 + k1 * s + k0)
        four = s**2 + (k0[3] * p[3] * (not of.static) + k1[3]) * s + k0[3]
        want = np.diag([*second_order[:3], k0[3] * (p[3] * s + 1) / four]).astype(complex)
        want[3, :3] = [p[j] * second_order[j] * (s if of.static else s**2 * (s + k1[3]) / four) for j in range(3)]
        close(np.abs(G - want).max(), 0.0, 1e-8, "G")
        close(np.abs(actuation.quadcopter_transfer(z, w, of, T) - want).max(), 0.0, EXACT, "of the library")


@pytest.mark.parametrize("static", [False, True])
@pytest.mark.parametrize("w", [np.full(4, HOVER), UNEVEN], ids=["hover", "uneven"])
def test_the_quadcopter_s_filter_has_its_transfer_function(static, w):
    """[konz25 (5.40), (5.43), corrected], also away from hover, where heading is coupled."""
    k0, k1 = np.array([900.0, 2500.0, 2500.0, 60.0]), np.array([42.0, 70.0, 70.0, 5.62])
    of = actuation.QuadcopterFilter(BQ, SPIN * SPINS, k0, k1, static)
    rest = BQ @ w**2

    def step(x, u):
        return ca.vertcat(*actuation.quadcopter_forces(x[:4], x[4:], u, T, of))

    def made(x, u):
        """Wrench (5.34) from the speeds and their change in one step."""
        _, after = actuation.quadcopter_forces(x[:4], x[4:], u, T, of)
        pull = ca.vertcat(0, 0, 0, SPIN * ca.dot(ca.DM(SPINS), after - x[4:]) / T)
        return ca.DM(BQ) @ x[4:] ** 2 - pull

    at = np.r_[k1 * rest, w]
    y, A, B = linear(step, at, rest)
    close(y.ravel(), at, 1e-12, "at rest it stays")
    _, C, _ = linear(made, at, rest)
    same_transfer(A, B, C, w, of)


def rows_of(azimuths, spins):
    """Matrix with (F_z, tau) = matrix @ varpi^2, of propellers that push along z."""
    phi, eps = np.array(azimuths), np.array(spins)
    return KF * np.stack([np.ones(len(phi)), L * np.sin(phi), -L * np.cos(phi), -KT / KF * eps])


MORE = {
    "six": (np.arange(6) * np.pi / 3, [1, -1] * 3),
    "eight, two on an arm": (np.repeat(np.arange(4) * np.pi / 2, 2), [1, -1, -1, 1, 1, -1, -1, 1]),
    "five": (np.arange(5) * 2 * np.pi / 5, [1, -1, 1, -1, 1]),
}


@pytest.mark.parametrize("static", [False, True])
@pytest.mark.parametrize("name", MORE)
def test_more_propellers_have_the_same_transfer_function(name, static):
    """p is that of the smallest changes of speed, and changes of speed without a wrench do not appear."""
    azimuths, spins = MORE[name]
    B, spin, n = rows_of(azimuths, spins), SPIN * np.array(spins), len(spins)
    k0, k1 = np.array([900.0, 2500.0, 2500.0, 60.0]), np.array([42.0, 70.0, 70.0, 5.62])
    of = actuation.QuadcopterFilter(B, spin, k0, k1, static)
    rest = np.array([20.0, 0.3, -0.2, 0.0])
    w = np.sqrt(np.linalg.pinv(B) @ rest)
    p = actuation.spin_coupling(w, B, spin)
    close(p, -(spin / (2 * w)) @ np.linalg.pinv(B), EXACT, "p")

    def step(x, u):
        return ca.vertcat(*actuation.quadcopter_forces(x[:4], x[4:], u, T, of))

    def made(x, u):
        _, after = actuation.quadcopter_forces(x[:4], x[4:], u, T, of)
        return ca.DM(B) @ x[4:] ** 2 - ca.vertcat(0, 0, 0, ca.dot(ca.DM(spin), after - x[4:]) / T)

    at = np.r_[k1 * rest, w]
    y, A, b = linear(step, at, rest)
    close(y.ravel(), at, 1e-12, "at rest it stays")
    _, C, _ = linear(made, at, rest)
    same_transfer(A, b, C, w, of)
    hover = float(np.sqrt(20.0 / n / KF))
    assert name == "five" or actuation.quadcopter_filter(B, spin, hover, magnitude=5.0, tilt=8.0, heading=2.0).k1[3] > 0


def test_six_propellers_return_to_the_smallest_thrusts():
    """The speeds were at their limits and differed from each other before."""
    azimuths, spins = MORE["six"]
    B, spin = rows_of(azimuths, spins), SPIN * np.array(spins)
    of = actuation.quadcopter_filter(B, spin, 450.0, magnitude=5.0, tilt=8.0, heading=2.0)
    w = np.full(6, 450.0)
    h = of.k1 * (B @ w**2)
    for desired, steps in (([40.0, 2.0, -1.0, 0.1], 60), ([18.0, 0.2, 0.1, 0.02], 1200)):
        for _ in range(steps):
            h, w = actuation.quadcopter_forces(h, w, desired, T, of, slowest=145.0, fastest=500.0)
        if steps == 60:
            assert (np.array(w) == 500.0).any()
    close(np.array(w).ravel() ** 2, np.linalg.pinv(B) @ desired, 1e-8, "smallest")


def test_speeds_stay_within_their_limits():
    of = actuation.quadcopter_filter(BQ, SPIN * SPINS, HOVER, magnitude=5.0, tilt=8.0, heading=2.0)
    h, w = of.k1 * (BQ @ np.full(4, HOVER) ** 2), np.full(4, HOVER)
    for _ in range(400):
        h, w = actuation.quadcopter_forces(h, w, [40.0, 0, 0, 0], T, of, slowest=145.0, fastest=697.0)
    assert (np.array(w) == 697.0).all()


def test_wrench_of_the_propellers_of_a_whole_quadcopter():
    """Against the machine with turning propellers, which leave the body less moment about z while they gain speed."""
    x = pf.multicopters.QUADCOPTER
    m = pf.multicopters.multicopter(
        "q", **{**x, "drag": (0, 0), "drag_height": 0, "turning_drag": (0, 0), "bias": (0,) * 6, "com": (0, 0, 0)}
    )
    w, torque = UNEVEN, np.array([0.01, 0.05, 0.03, 0.02])
    q, v = np.r_[0, 0, 0, 0, 0, 0, 1.0, np.zeros(4)], np.r_[np.zeros(6), w]
    bend = np.asarray(pf.forward_dynamics(m, q, v, torque).v_dot)
    f = np.array(actuation.quadcopter_wrench(w, bend[6:], BQ, SPIN * SPINS)).ravel()
    I = np.zeros((3, 3))
    I[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]] = x["inertia"]
    I = I + np.triu(I, 1).T
    close(I @ bend[3:6], f[1:], 1e-12, "moments")
    close(x["mass"] * (bend[2] + 9.81), f[0], 1e-12, "thrust")


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
    close(np.array(est[1]).ravel(), b, 1e-3, "the unknown moment")


def test_the_length_of_a_quaternion_settles():
    q, w = np.array([0.1, 0.2, -0.3, 0.9]), np.array([2.0, -1.0, 3.0])
    q = ca.DM(1.05 * q / np.linalg.norm(q))
    off = []
    for _ in range(6):
        q = estimation.attitude_step(q, np.zeros(3), T)
        off.append(abs(float(ca.norm_2(q)) - 1))
    assert off[0] < 5e-3 and off[1] < 3e-5 and off[-1] < 1e-15
    printed, off = 1.01 * q / ca.norm_2(q), []
    for _ in range(40):
        printed = estimation.attitude_step(printed, np.zeros(3), T, 2.0)
        off.append(float(ca.norm_2(printed)) - 1)
    assert min(np.abs(off)) > 0.008 and (np.diff(np.sign(off)) != 0).all(), "T36: (5.56) as printed oscillates"
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
    close(b, 1.2 * 4 + 0.3 * 0.5 - 2, 1e-12, "the remaining force")


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


def test_the_misalignment_of_an_imu_is_found():
    random = np.random.default_rng(7)
    R = Rotation.random(20, random_state=3).as_matrix()
    R_B, a_B = Rotation.from_rotvec([0.03, -0.05, 0.02]).as_matrix(), np.array([0.2, -0.1, 0.3])
    a = np.einsum("ij,nj->ni", R_B, 9.81 * R[:, 2, :]) + a_B
    found = estimation.imu_misalignment(a, R)
    close(found.rotation, R_B, 1e-12, "rotation")
    close(found.bias, a_B, 1e-12, "bias")
    noisy = estimation.imu_misalignment(a + 0.01 * random.normal(size=a.shape), R)
    assert np.abs(noisy.rotation - R_B).max() < 3e-3 and np.abs(noisy.bias - a_B).max() < 0.02
    about_x = Rotation.from_rotvec(np.outer(np.linspace(-1, 1, 20), [1.0, 0, 0])).as_matrix()
    found = estimation.imu_misalignment(np.einsum("ij,nj->ni", R_B, 9.81 * about_x[:, 2, :]) + a_B, about_x)
    close(found.rotation, R_B, 1e-12, "tilts about one axis are enough")
    with pytest.raises(pf.ModelError, match="do not determine R_B"):
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
    "shapes of spin_coupling": (lambda: actuation.spin_coupling(HOVER, BQ, SPIN * SPINS), "speeds and spin .* are needed"),
    "no cutoff": (lambda: estimation.bessel_filter(0.0, T), "above zero"),
    "no hover": (
        lambda: actuation.quadcopter_filter(BQ, SPIN * SPINS, 0.0, magnitude=5, tilt=8, heading=2),
        "must be above zero",
    ),
    "signs of spin": (
        lambda: actuation.quadcopter_filter(BQ, -SPIN * SPINS, HOVER, magnitude=5, tilt=8, heading=2),
        "check the signs of spin",
    ),
    "an order": (lambda: estimation.bessel_filter(7.0, T, 12), "from 1 to 9"),
    "shapes of an imu": (lambda: estimation.imu_misalignment(np.zeros((4, 3)), np.eye(3)), r"attitudes \(n, 3, 3\)"),
    "shapes of errors": (lambda: estimation.tracking_error(np.zeros((4, 3)), np.eye(3), 0, 0), "r and r_R .n, 3., R and R_R"),
}


test_wrong_arguments_are_named = refusals(WRONG)
