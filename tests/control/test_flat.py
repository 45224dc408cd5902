"""References from flat outputs: smooth, feasible, and with known demands on speed, tilt and thrust."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import pfaffian as pf
from pfaffian import control
from tests.control.test_placement import POLES, quadcopter
from tests.refused import refusals
from tests.tolerance import close

G = 9.81


def numbers(y, t: float) -> np.ndarray:
    s = ca.SX.sym("t")
    return np.array(ca.Function("y", [s], [y(s)])(t)).ravel()


def test_a_path_from_rest_to_rest_has_the_given_smoothness():
    for smooth in (1, 2, 4, 6):
        y = control.rest_to_rest([1.0, -2.0], [2.0, 0.5], 1.5, begin=0.5, smooth=smooth)
        close(numbers(y, 0.3), [1.0, -2.0], 1e-15, "before")
        close(numbers(y, 2.5), [2.0, 0.5], 1e-15, "after")
        close(numbers(y, 1.25), [1.5, -0.75], 1e-14, "half way")
        t = ca.SX.sym("t")
        x = y(t)
        for order in range(1, smooth + 2):
            x = ca.jacobian(x, t)
            f = ca.Function("x", [t], [x])
            ends = [np.abs(np.array(f(at))).max() for at in (0.5 + 1e-12, 2.0 - 1e-12)]
            assert (max(ends) < 1e-4) == (order <= smooth), order


def test_extremes_of_a_transition():
    """Two metres in 1.5 s by a polynomial of degree nine. [konz25 5.6]"""
    found = control.extremes(control.rest_to_rest([0, 0, 0], [2, 0, 0], 1.5), 1.5)
    close(found["speed"], 3.28, 2e-3, "speed")
    close(found["acceleration"], 8.33, 2e-3, "acceleration")
    close(found["rate"] * 180 / np.pi, 272.6, 2e-3, "rate")
    close(found["tilt"] * 180 / np.pi, 40.3, 2e-3, "tilt")
    assert 1.0 <= found["thrust"] < 1.4 and found["least_thrust"] == pytest.approx(1.0)


def test_the_shortest_time_meets_its_limits_and_a_shorter_one_does_not():
    path = lambda T: control.rest_to_rest([0, 0, 0], [2, 1, 0.5], T)  # noqa: E731
    limits = {"speed": 2.0, "acceleration": 6.0, "rate": 4.0}
    T = control.least_time(path, limits)
    found, sooner = control.extremes(path(T), T), control.extremes(path(0.99 * T), 0.99 * T)
    assert all(found[n] <= x * (1 + 1e-9) for n, x in limits.items())
    assert any(sooner[n] > x for n, x in limits.items())


@pytest.mark.parametrize("drag", [0.0, 0.4])
@pytest.mark.parametrize("heading", [0.4, lambda t: 0.3 + 0.5 * ca.sin(t)])
def test_a_quadcopter_can_follow_its_reference(heading, drag):
    """A run that starts on the reference stays on it, its thrust is |r'' + drag r' - a_G|, and no matching force remains."""
    r = lambda t: ca.vertcat(ca.sin(t), 0.5 * ca.cos(1.3 * t), 0.2 * t + 0.1 * ca.sin(2 * t))  # noqa: E731
    reference = control.quadcopter_reference(r, heading, drag=drag)
    pair = control.quadcopter_pair("b", POLES, heading=(3.0, 0.8), inertia_ratio=0.1)
    air = pf.wrench("air", "b", lambda k: ca.vertcat(-1.2 * drag * k.twist("b")[:3], 0, 0, 0), axes="LOCAL")
    m = quadcopter().with_(forces=[air])
    start = reference.at(ca.SX(0.0), ca.SX(0, 1))
    q, rate = (np.array(ca.DM(ca.evalf(x))).ravel() for x in (start.value, start.rate))
    K = pf.compile_terms(m, {"K": lambda T: T.kinematics.kinematic_matrix}, backend="numpy", lanes=1)(q)["K"]
    v = np.linalg.lstsq(K, rate, rcond=None)[0]
    law = control.prototype_tracking([pair], reference, approach="body")
    found = pf.run(m, q, v, duration=2.0, step=2e-3, every=50, control=law)
    assert np.abs(found.matching_force.values).max() < 1e-6
    where = np.array([numbers(r, t) for t in found.time.values])
    close(found.q.values[:, :3], where, 1e-8, "position")
    t = ca.SX.sym("t")
    rate = ca.jacobian(r(t), t)
    f = ca.Function("f", [t], [ca.norm_2(ca.jacobian(rate, t) + drag * rate + ca.DM([0, 0, G]))])
    close(found.u.values.sum(axis=1), [1.2 * float(f(x)) for x in found.time.values], 1e-6, "thrust")
    angle = heading if isinstance(heading, float) else 0.3 + 0.5 * np.sin(found.time.values)
    x, y, z, w = found.q.values[:, 3:].T
    # The attitude is Rz(heading) Ry Rx: the machine's x axis lies in the vertical plane of the heading.
    close(np.arctan2(2 * (x * y + z * w), 1 - 2 * (y * y + z * z)), angle + 0 * x, 1e-7, "heading")


@pytest.mark.parametrize("drag", [0.0, 0.4])
def test_a_loop_passes_upside_down(drag):
    """Thrust is along r'' + drag r' - a_G all round a vertical circle, without spin about it, and rates fit the attitudes."""
    T, h = 1.2, 2e-3
    circle = control.along(
        lambda a: ca.vertcat(ca.sin(a), 0, 1 - ca.cos(a)), control.rest_to_rest([0], [2 * np.pi], T, smooth=4)
    )
    with pytest.raises(pf.ModelError, match="free fall"):
        control.check_thrust(control.rest_to_rest([0, 0, 0], [0, 0, -G / 2 * 0.8], 0.6), 0.6)
    values = control.turning_series(circle, T, h, heading=0.3, drag=drag)
    q, rate, bend = values[:, 3:7], values[:, 10:14], values[:, 17:21]
    t = ca.SX.sym("t")
    speed = ca.jacobian(circle(t), t)
    f = ca.jacobian(speed, t) + drag * speed + ca.DM([0, 0, G])
    z = ca.Function("z", [t], [f / ca.norm_2(f)])
    x, y, zz, w = q.T
    axis = np.stack([2 * (x * zz + y * w), 2 * (y * zz - x * w), 1 - 2 * (x * x + y * y)], axis=1)
    close(axis, [np.array(z(i * h)).ravel() for i in range(len(values))], 1e-8, "thrust's direction")
    assert axis[:, 2].min() < -0.9
    close((q[2:] - q[:-2]) / (2 * h), rate[1:-1], 1e-3, "rate")
    close((rate[2:] - rate[:-2]) / (2 * h), bend[1:-1], 1e-3, "acceleration")
    spin = 2 * (w * rate[:, 2] - zz * rate[:, 3] + y * rate[:, 0] - x * rate[:, 1])
    assert np.abs(spin).max() < 1e-9


def test_an_attitude_of_a_thrust_and_a_heading():
    for force, heading in (([1.0, -2.0, 9.0], 0.7), ([-3.0, 0.5, 4.0], -2.9), ([0.0, 0.0, 1.0], 3.0)):
        q = np.array(ca.DM(control.thrust_attitude(force, heading))).ravel()
        R = Rotation.from_quat(q).as_matrix()
        close(R[:, 2], force / np.linalg.norm(force), 1e-12, "thrust")
        nose = np.array([np.cos(heading), np.sin(heading)])
        close(R[:2, 0] / np.linalg.norm(R[:2, 0]), nose, 1e-12, "heading")


WRONG = {
    "sizes": (lambda: control.rest_to_rest([0.0], [1.0, 2.0], 1.0), "one length"),
    "no time": (lambda: control.rest_to_rest([0.0], [1.0], 0.0), "duration above zero"),
    "smooth": (lambda: control.rest_to_rest([0.0], [1.0], 1.0, smooth=0), "from 1 to 9"),
    "no function": (lambda: control.along(3, abs), "two functions"),
    "a limit": (lambda: control.least_time(lambda T: None, {"jerk": 1.0}), "no limit"),
    "no limits": (lambda: control.least_time(lambda T: None, {}), "at least one limit"),
    "a limit that nothing meets": (
        lambda: control.least_time(lambda T: control.rest_to_rest([0, 0, 0], [1, 0, 0], T), {"thrust": 0.5}, longest=2.0),
        "thrust is violated by a factor of 2",
    ),
    "a position of two": (
        lambda: control.quadcopter_reference(lambda t: [t, t]).at(ca.SX.sym("t"), ca.SX(0, 1)),
        "must give 3 numbers",
    ),
    "a force of two": (lambda: control.thrust_attitude([0, 1], 0.0), "3 x 1"),
    "a step": (lambda: control.turning_series(lambda t: [t, t, t], 1.0, 0.0), "step above zero"),
}


test_wrong_references_are_named = refusals(WRONG)
