"""Shortest times of any machine: an arm by its moments in closed form, a PVTOL and a craft with tilting arms by thrusts."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import pfaffian as pf
from pfaffian import control
from tests.control.test_prototype import LEAN, pvtol
from tests.refused import refusals
from tests.tolerance import close

L, MASS, TURN = (0.5, 0.4), (3.0, 2.0), (0.08, 0.05)
BEGIN, END = np.array([0.2, 0.9]), np.array([1.4, -0.6])


def arm() -> pf.Mechanism:
    """Two links in a horizontal plane, mass centres half-way."""
    bodies = [pf.body(n, m, com=(x / 2, 0, 0), inertia=i) for n, m, x, i in zip(("a", "b"), MASS, L, TURN, strict=True)]
    joints = [pf.joint("A", "revolute", "world", "a"), pf.joint("B", "revolute", "a", "b", placement=(L[0], 0, 0))]
    motors = [pf.actuator("first", "A", limits=(-6.0, 9.0)), pf.actuator("second", "B", limits=(-2.0, 2.0))]
    return pf.mechanism("arm", bodies, joints, gravity=(0, 0, 0), actuators=motors)


def moments(T: float) -> tuple[np.ndarray, np.ndarray]:
    """Rates (n, 2) and moments (n, 2) of the arm along its path, by Lagrange's equations of two links."""
    s = np.linspace(0, 1, 201)[:, None]
    p = np.polynomial.Polynomial([0, 0, 0, 0, 0, 126, -420, 540, -315, 70])
    q, v, a = (BEGIN * (d == 0) + (END - BEGIN) * p.deriv(d)(s) / T**d for d in range(3))
    (l, _), (c1, c2) = L, (L[0] / 2, L[1] / 2)
    m1, m2, i1, i2 = *MASS, *TURN
    k = m2 * l * c2
    cos, sin = np.cos(q[:, 1]), np.sin(q[:, 1])
    M11, M12, M22 = i1 + m1 * c1**2 + i2 + m2 * (l**2 + c2**2) + 2 * k * cos, i2 + m2 * c2**2 + k * cos, i2 + m2 * c2**2
    first = M11 * a[:, 0] + M12 * a[:, 1] - k * sin * (2 * v[:, 0] * v[:, 1] + v[:, 1] ** 2)
    second = M12 * a[:, 0] + M22 * a[:, 1] + k * sin * v[:, 0] ** 2
    return v, np.column_stack([first, second])


def path(T: float) -> control.Reference:
    return control.function_of_time(control.rest_to_rest(BEGIN, END, T), 2)


def test_an_arm_within_its_motors():
    T = control.least_time(path, {"input": "actuators"}, mechanism=arm())
    tau = moments(T)[1]
    used = np.maximum(tau / [9.0, 2.0], -tau / [6.0, 2.0]).max()
    assert used == pytest.approx(1, abs=1e-6)


def test_an_arm_within_its_speeds():
    """Each joint has its limit, and the slower one decides; the polynomial's largest rate is 315 / 128 of the mean."""
    bound = np.array([2.0, 1.2])
    T = control.least_time(path, {"speed": bound, "acceleration": 40.0}, mechanism=arm())
    assert pytest.approx((315 / 128 * np.abs(END - BEGIN) / bound).max(), rel=1e-6) == T
    T = control.least_time(path, {"speed": 50.0, "acceleration": 4.0}, mechanism=arm())
    v, _ = moments(T)
    assert np.abs(np.gradient(v, T / 200, axis=0)).max() == pytest.approx(4.0, rel=1e-3)


def test_a_pvtol_within_its_thrusts():
    """In the shortest time the thrusts reach a limit; in two per cent less time no thrusts within the limits suffice."""
    m = pvtol()
    move = lambda T: control.pvtol_reference(control.rest_to_rest([0, 0], [2.0, 0.5], T), coupling_length=LEAN)  # noqa: E731
    bound = [(1.5, 8.0), (1.5, 8.0)]
    T = control.least_time(move, {"input": bound}, mechanism=m)
    rows = (np.vstack([np.eye(2), -np.eye(2)]), np.array([8.0, 8.0, -1.5, -1.5]))
    u = control.check_reference(m, move(T), T)
    assert u.max() <= 8.0 + 1e-3 and u.min() >= 1.5 - 1e-3 and min(8.0 - u.max(), u.min() - 1.5) < 1e-3
    with pytest.raises(pf.ModelError, match="beyond the limits"):
        control.check_reference(m, move(0.98 * T), 0.98 * T, limits=rows)


def four_that_tilt() -> pf.Mechanism:
    return pf.multicopters.thrust_multicopter(
        "four that tilt", np.pi / 4 + np.arange(4) * np.pi / 2, [1, -1, 1, -1], mass=1.6, inertia=(0.03, 0.03, 0.05), arm=0.3,
        thrust=1e-5, torque=2e-7, tilting=True,
    )  # fmt: skip


def test_a_craft_with_tilting_arms_turns_and_moves_independently():
    """Its flat output is the whole pose: attitudes as by SciPy, feasible whatever they are, thrusts by Newton's law."""
    angles = lambda t: [0.3 * ca.sin(t), 0.2 * ca.cos(2 * t), 0.5 * t]  # noqa: E731
    way = lambda t: [ca.sin(t), 0.2 * t, 0.3 * ca.cos(t)]  # noqa: E731
    reference, m = control.tricopter_reference(way, angles), four_that_tilt()
    t = ca.SX.sym("t")
    f = ca.Function("q", [t], [reference.at(t, ca.SX(0, 1)).value])
    for at in (0.0, 0.8, 3.0):
        q, (a, b, c) = np.array(f(at)).ravel(), (0.3 * np.sin(at), 0.2 * np.cos(2 * at), 0.5 * at)
        expected = Rotation.from_euler("ZYX", [c, b, a]).as_matrix()
        close(Rotation.from_quat(q[3:]).as_matrix(), expected, 1e-12, "attitude", 1.0)
    u = control.check_reference(m, reference, 3.0)
    bend = lambda t: np.array([-np.sin(t), 0.0, -0.3 * np.cos(t) + 9.81])  # noqa: E731
    times = np.linspace(0, 3.0, len(u))
    B = pf.compile_terms(m, {"B": lambda k: k.B}, backend="numpy", lanes=1)(np.r_[np.zeros(6), 1.0], np.zeros(6))["B"]
    R = [Rotation.from_quat(np.array(f(at)).ravel()[3:]).as_matrix() for at in times]
    pushed = np.array([1.6 * x.T @ bend(at) for x, at in zip(R, times, strict=True)])
    close(u @ B[:3].T, pushed, 1e-8, "thrust along the body's axes", 10.0)
    level = control.tricopter_reference(lambda t: [t, 0, 0], [0.1, 0.2, 0.3]).at(ca.SX(1.0), ca.SX(0, 1)).value
    still = Rotation.from_euler("ZYX", [0.3, 0.2, 0.1]).as_quat()
    close(np.array(ca.evalf(level)).ravel(), np.r_[1.0, 0, 0, still], 1e-12, "three numbers", 1.0)


def test_a_motor_without_any_range_exceeds_it_by_its_moment():
    """A limit of zero has no width to compare with, so the excess is in N m."""
    with pytest.raises(pf.ModelError, match=r"input 'second' at t = .* violated by a factor of") as error:
        control.least_time(path, {"input": [(-1e3, 1e3), (0.0, 0.0)]}, mechanism=arm(), longest=2.0)
    assert float(str(error.value).split()[-1]) == pytest.approx(1 + np.abs(moments(2.0)[1][:, 1]).max(), rel=1e-2)


def test_a_descent_keeps_its_least_thrust():
    """A limit from below, beside one from above: 1 m down, where braking and speed do not matter."""
    down = lambda T: control.rest_to_rest([0, 0, 0], [0, 0, -1.0], T)  # noqa: E731
    T = control.least_time(down, {"least_thrust": 0.5, "speed": 50.0})
    assert control.extremes(down(T), T)["least_thrust"] == pytest.approx(0.5, abs=1e-6)


WRONG = {
    "of a point": (lambda: control.least_time(path, {"tilt": 1.0}, mechanism=arm()), "no limit; speed, acceleration, input"),
    "a bound": (lambda: control.least_time(path, {"speed": [1.0, -1.0]}, mechanism=arm()), "speed: a number above zero"),
    "no reference": (lambda: control.least_time(lambda T: 1.0, {"speed": 1.0}, mechanism=arm()), "a Reference is needed"),
    "never": (
        lambda: control.least_time(path, {"speed": 1e-3}, mechanism=arm(), longest=1.0),
        r"in 1 s the limit on speed of 'B' at t = 0.5 s is violated by a factor of 3.69e\+03",
    ),
    "a motor": (
        lambda: control.least_time(path, {"speed": 50.0, "input": [(-9.0, 9.0), (-1e-4, 1e-4)]}, mechanism=arm(), longest=2.0),
        r"in 2 s the limit on input 'second' at t = [01]\.[0-9]+ s is violated by a factor of",
    ),
    "another motor": (
        lambda: control.least_time(path, {"input": [(-1e-4, 9.0), (-np.inf, np.inf)]}, mechanism=arm(), longest=2.0),
        r"in 2 s the limit on input 'first' at t = [01]\.[0-9]+ s is violated by a factor of",
    ),
    "what no time helps": (
        lambda: control.least_time(
            lambda T: control.function_of_time(lambda t: [t, 0, 0.3], 3), {"speed": 9.0}, mechanism=pvtol(), longest=1.0
        ),
        "that no input gives",
    ),
    "an attitude of two": (lambda: control.tricopter_reference(lambda t: [t, t, t], [0.0, 1.0]), "3"),
}  # fmt: skip


test_wrong_limits_are_named = refusals(WRONG)
