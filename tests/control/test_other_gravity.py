"""Functions that take `gravity=`, with the gravity of the Moon, against closed forms."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import pfaffian as pf
from pfaffian import control, identification
from pfaffian.control import check_thrust, estimation, extremes, least_time
from tests.tolerance import close

MOON = 1.62
UP = np.array([0, 0, MOON])


def path(t):
    return ca.vertcat(0.4 * ca.sin(1.3 * t), 0.3 * ca.cos(t), 0.2 * ca.sin(0.9 * t))


def bend(t):
    return np.array([-0.4 * 1.69 * np.sin(1.3 * t), -0.3 * np.cos(t), -0.2 * 0.81 * np.sin(0.9 * t)])


def at(reference, t):
    """Value of the reference at t."""
    s = ca.SX.sym("t")
    return np.array(ca.Function("x", [s], [ca.SX(reference.at(s, ca.SX(0, 1)).value)])(t)).ravel()


@pytest.mark.parametrize("t", [0.3, 1.7])
def test_references_lean_with_the_required_thrust(t):
    """Thrust is along r'' - a_G."""
    a = bend(t)
    angle = np.arctan2(-a[0], a[1] + MOON)
    flat = control.pvtol_reference(lambda s: path(s)[:2], coupling_length=0.1, gravity=MOON)
    place = np.array([0.4 * np.sin(1.3 * t) + 0.1 * np.sin(angle), 0.3 * np.cos(t) - 0.1 * np.cos(angle), angle])
    close(at(flat, t), place, 1e-12, "PVTOL")
    beside = control.bicopter_reference(lambda s: path(s)[:2], coupling_length=0.1, gravity=MOON)
    close(at(beside, t), [0, *place[:2], np.sin(angle / 2), 0, 0, np.cos(angle / 2)], 1e-12, "bicopter")
    q = at(control.quadcopter_reference(path, 0.4, gravity=MOON), t)[3:]
    z = (a + UP) / np.linalg.norm(a + UP)
    close(Rotation.from_quat(q).as_matrix()[:, 2], z, 1e-12, "quadcopter")


def test_a_turning_series_begins_with_its_heading():
    values = control.turning_series(control.rest_to_rest([0, 0, 0], [1, 0.5, 0], 3.0), 1.0, 0.02, heading=0.7, gravity=MOON)
    close(values[0, 3:7], [0, 0, np.sin(0.35), np.cos(0.35)], 1e-12, "at rest, upright")
    s = ca.SX.sym("t")
    slope = ca.jacobian(ca.jacobian(control.rest_to_rest([0, 0, 0], [1, 0.5, 0], 3.0)(s), s), s)
    force = np.array(ca.Function("f", [s], [slope])(1.0)).ravel() + UP
    R = Rotation.from_quat(values[-1, 3:7]).as_matrix()
    close(R[:, 2], force / np.linalg.norm(force), 1e-9, "thrust")
    assert np.abs(np.arctan2(R[1, 0], R[0, 0]) - 0.7) < 0.1


def test_thrust_is_checked_from_begin():
    """A drop of 1 m between 2 and 4 s is free fall on the Moon only; thrust is relative to the Moon's weight."""
    drop = control.rest_to_rest([0, 0, 0], [0, 0, -1.0], 2.0, begin=2.0)
    close(check_thrust(drop, 1.9, gravity=MOON), np.ones(2000), 1e-12, "before")
    with pytest.raises(pf.ModelError, match=r"at t = 2\.[0-9]+ s .* free fall"):
        check_thrust(drop, 1.9, begin=2.0, gravity=MOON)
    check_thrust(drop, 1.9, begin=2.0)  # not free fall on Earth
    with pytest.raises(pf.ModelError, match="free fall"):
        control.turning_series(drop, 4.0, 0.1, gravity=MOON)
    assert len(control.turning_series(drop, 4.0, 0.1)) == 41
    close(check_thrust(path, 1.0, begin=0.8, gravity=MOON)[[0, -1]],
          [np.linalg.norm(bend(t) + UP) / MOON for t in (0.8, 1.8)], 1e-12, "from begin to its end")  # fmt: skip


def test_least_time_depends_on_gravity():
    level = lambda T: control.rest_to_rest([0, 0, 0], [2, 0, 0], T)  # noqa: E731
    found, earth = extremes(level(2.0), 2.0, gravity=MOON), extremes(level(2.0), 2.0)
    close(found["tilt"], np.arctan(found["acceleration"] / MOON), 1e-6, "tilt")
    close(found["thrust"], np.hypot(found["acceleration"], MOON) / MOON, 1e-12, "thrust")
    close(earth["tilt"], np.arctan(earth["acceleration"] / 9.81), 1e-6, "tilt on Earth")
    T = least_time(level, {"tilt": 0.3}, gravity=MOON)
    # Accelerations fall with the square of the time.
    close(T, 2.0 * np.sqrt(found["acceleration"] / (MOON * np.tan(0.3))), 1e-5, "least time")


TILTED = Rotation.from_rotvec([0.3, -0.2, 0.5])
STILL = TILTED.as_matrix().T @ UP
"""Reading of an accelerometer at rest."""


def test_filters_stay_at_rest_with_the_machine():
    x = estimation.Flight(np.ones(3), np.zeros(3), np.array([0.01, 0.02, -0.03]))
    for _ in range(20):
        x = estimation.flight_step(x, TILTED.as_matrix(), STILL + x.a_B, 0.01, MOON)
    close(np.array(ca.DM(x.v)).ravel(), np.zeros(3), 1e-14, "velocity", scale=1.0)
    memory = estimation.flight_memory([1, 2, 3], TILTED.as_quat(), 6, known=True, gravity=MOON)
    start = np.array(memory.estimate)
    for i in range(8):
        memory = estimation.imu_step(memory, STILL, np.zeros(3), 0.01, MOON)
        fix = estimation.Fix(np.array([1.0, 2, 3]), TILTED.as_quat(), 0.034, float(i % 2))
        memory = estimation.fix_step(memory, fix, 0.01, gravity=MOON)
    close(np.array(ca.DM(memory.estimate)).ravel(), start, 1e-11, "estimate")


def test_misalignment_and_identification_take_gravity():
    R = Rotation.random(20, random_state=3).as_matrix()
    R_B, a_B = Rotation.from_rotvec([0.03, -0.05, 0.02]).as_matrix(), np.array([0.2, -0.1, 0.3])
    found = estimation.imu_misalignment(np.einsum("ij,nj->ni", R_B, MOON * R[:, 2, :]) + a_B, R, MOON)
    close(found.rotation, R_B, 1e-12, "rotation")
    close(found.bias, a_B, 1e-12, "bias")

    # A body on two strings of length h, d apart: the stiffness of small turns is m g d^2 / (4 h).
    mass, d, h, inertia, friction = 1.2, 0.3, 0.9, 0.02, 0.001
    a, rate = np.linspace(-0.01, 0.01, 9), np.linspace(0.3, -0.2, 9)
    acceleration = -(friction * rate + mass * MOON * d**2 / (4 * h) * a) / inertia
    swing = identification.bifilar_pendulum(a, rate, acceleration, mass=mass, distance=d, length=h, gravity=MOON)
    close(swing.A @ [inertia, friction], swing.b, 1e-4, "pendulum")

    # Hovering at rest, against the weight of a mass centre away from the origin.
    com = np.array([0.02, -0.03, 0.01])
    z = Rotation.random(5, random_state=4).as_matrix()[:, 2, :]
    wrench = np.hstack([mass * MOON * z, np.cross(com, mass * MOON * z)])
    still = np.zeros((5, 3))
    rows = identification.flight(still, still, still, still, z, wrench, mass=mass, gravity=MOON)
    close(rows.A[:, :, :3] @ (mass * com), rows.b, 1e-12, "flight", scale=1.0)


def test_first_second_third_and_early_fix():
    """The first fix sets the position, the second position and velocity, the third corrects by the gains; an early one is
    ignored."""
    T, gains, q = 0.01, (0.5, 0.2, 0.03), np.array([0.0, 0, 0, 1])
    x = estimation.flight_memory([0, 0, 0], q, 8, gravity=MOON)

    def later(x, steps):
        for _ in range(steps):
            x = estimation.imu_step(x, UP, np.zeros(3), T, MOON)
        return x

    def fixed(x, place):
        return estimation.fix_step(x, estimation.Fix(np.array(place), q, 0.0, 1.0), T, gains, MOON)

    def parts(x):
        return np.array(ca.DM(x.estimate)).ravel()[:9].reshape(3, 3)

    x = fixed(later(x, 3), [1.0, 0, 2])
    close(parts(x), [[1, 0, 2], [0, 0, 0], [0, 0, 0]], 1e-13, "first")
    early = fixed(x, [9.0, 9, 9])
    close(parts(early), parts(x), 0.0, "again at once")
    x = fixed(later(x, 4), [1.1, 0.2, 2])
    speed = np.array([0.1, 0.2, 0]) / (4 * T)
    close(parts(x), [[1.1, 0.2, 2], speed, [0, 0, 0]], 1e-12, "second")
    x = later(x, 5)
    there = np.array([1.1, 0.2, 2]) + 5 * T * speed
    e, since = np.array([0.3, -0.1, 0.2]), 5 * T
    x = fixed(x, there + e)
    close(parts(x), [there + 0.5 * e, speed + 0.2 * e / since, 2 * 0.03 * e / since**2], 1e-11, "third")


@pytest.mark.parametrize("delay", [0.032, 0.038])
def test_latency_is_interpolated_by_a_parabola(delay):
    """The delay lies between points of the grid, on either side of the nearest one."""
    t = np.arange(0, 20, 0.01)
    signal = lambda s: np.sin(1.3 * s) + 0.6 * np.sin(2.1 * s + 1)  # noqa: E731
    assert abs(estimation.latency(t, signal(t), t, signal(t - delay), step=0.01) - delay) < 2e-4
