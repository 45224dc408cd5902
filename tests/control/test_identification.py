"""Numbers of a machine from synthetic measurements whose true values are known. [konz25 5.2.3]"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import pfaffian as pf
from pfaffian.control import identification as found_by
from tests.tolerance import close

P = np.array([2.45e-7 / 3.6e-5, 0.0105 / 3.6e-5, 0.005 / 3.6e-5])


def test_intervals_hold_the_truth_as_often_as_they_say():
    random, x = np.random.default_rng(3), np.array([2.0, -1.0, 0.5])
    A = random.normal(size=(60, 3))
    inside = np.array([
        np.abs((e := found_by.least_squares(A, A @ x + 0.1 * random.normal(size=60))).value - x) < e.half_width
        for _ in range(2000)
    ])  # fmt: skip
    assert np.abs(inside.mean(axis=0) - 0.95).max() < 0.02
    exact = found_by.least_squares(A, A @ x)
    close(exact.value, x, 1e-13, "without noise")
    b = A @ x + random.normal(size=60)
    e = found_by.least_squares(A, b)
    close(e.value, np.linalg.lstsq(A, b, rcond=None)[0], 1e-12, "as NumPy")
    left = A @ e.value - b
    close(e.covariance, left @ left / 57 * np.linalg.inv(A.T @ A), 1e-12, "covariance")
    close(e.deviation, np.sqrt(left @ left / 57), 1e-13, "deviation")


def test_a_propeller_on_its_bench():
    """Current in steps and waves, Euler's exact rates with noise."""
    random = np.random.default_rng(1)
    t = np.arange(0, 20, 0.005)
    i = 4 + 2 * np.sin(0.9 * t) + np.sign(np.sin(2.3 * t))
    w = solve_ivp(lambda s, w: P[1] * np.interp(s, t, i) - P[2] - P[0] * w**2, (0, 20), [300.0], t_eval=t, rtol=1e-8).y[0]
    rate = P[1] * i - P[2] - P[0] * w**2
    e = found_by.propeller_bench(w, rate + 20 * random.normal(size=t.size), i)
    assert (np.abs(e.value - P) < 1.5 * e.half_width).all() and (e.half_width < 0.02 * P).all()
    close(found_by.propeller_bench(w, rate, i).value, P, 1e-9, "without noise")


def test_a_body_on_two_strings():
    random = np.random.default_rng(2)
    inertia, damping, m, d, h, g = 0.0307, 2e-3, 1.001, 0.4, 1.5, 9.81

    def moment(a):
        return m * g * d**2 * np.sin(a) / (4 * np.sqrt(h**2 - d**2 / 2 * (1 - np.cos(a))))

    t = np.arange(0, 30, 0.01)
    a, rate = solve_ivp(
        lambda s, x: [x[1], -(damping * x[1] + moment(x[0])) / inertia], (0, 30), [0.8, 0.0], t_eval=t, rtol=1e-10, atol=1e-12
    ).y
    bend = -(damping * rate + moment(a)) / inertia
    given = {"mass": m, "distance": d, "length": h}
    close(found_by.bifilar_pendulum(a, rate, bend, **given).value, [inertia, damping], 1e-12, "without noise")
    e = found_by.bifilar_pendulum(a, rate, bend + 0.02 * random.normal(size=t.size), **given)
    assert (np.abs(e.value - [inertia, damping]) < 2 * e.half_width).all() and e.half_width[0] < 1e-2 * inertia
    with pytest.raises(pf.ModelError, match="cannot turn so far"):
        found_by.bifilar_pendulum([3.1] * 5, [0.0] * 5, [0.0] * 5, mass=1.0, distance=0.5, length=0.1)


def test_a_flight_of_the_quadcopter():
    """The whole machine at random states: its own forward dynamics gives the rates."""
    random, n = np.random.default_rng(5), 400
    x = pf.QUADCOPTER
    m = pf.multicopter("quadcopter", **x)
    q = np.array([pf.random_configuration(m, random) for _ in range(n)])
    v = np.column_stack([3 * random.normal(size=(n, 6)), random.uniform(300, 600, (n, 4))])
    bend = pf.forward_dynamics(m, q, v, u=0.05 + 0.1 * random.normal(size=(n, 4))).v_dot
    eps, phi = np.array(x["spins"]), np.array(x["azimuths"])
    F, w = x["thrust"] * v[:, 6:] ** 2, v[:, 3:6]
    turn = x["arm"] * np.stack([np.sin(phi), -np.cos(phi), 0 * phi])
    turn[2] = -x["torque"] / x["thrust"] * eps
    spun = x["rotor"] * v[:, 6:] @ eps
    moment = F @ turn.T - np.cross(w, np.outer(spun, [0, 0, 1])) - np.outer(x["rotor"] * bend[:, 6:] @ eps, [0, 0, 1])
    wrench = np.column_stack([np.outer(F.sum(axis=1), [0, 0, 1]), moment])
    up = pf.forward_kinematics(m, q, bodies=["body"])["body"].rotation[:, 2, :]
    s, (d_x, d_z), l, (u_x, u_z) = np.array(x["com"]), x["drag"], x["drag_height"], x["turning_drag"]
    truth = np.r_[x["mass"] * s, x["inertia"], d_x, d_z, d_x * l, u_x, u_z, x["bias"]]
    state = (v[:, :3], w, bend[:, :3], bend[:, 3:6], up)
    close(found_by.flight(*state, wrench, mass=x["mass"]).value, truth, 1e-9, "without noise")
    e = found_by.flight(*state, wrench + 0.01 * random.normal(size=wrench.shape), mass=x["mass"])
    assert (np.abs(e.value - truth) < 2 * e.half_width).all() and (np.abs(e.value - truth) < e.half_width).mean() >= 0.8
    still = [np.tile(y[:1], (n, 1)) for y in (*state, wrench)]
    with pytest.raises(pf.ModelError, match=r"do not tell .* apart"):
        found_by.flight(*still, mass=x["mass"])


WRONG = {
    "shapes": (lambda: found_by.least_squares([1.0, 2.0], [1.0, 2.0]), r"A \(n, k\)"),
    "names": (lambda: found_by.least_squares(np.eye(3)[:, :2], [1, 2, 3], ["a"]), "2 names"),
    "rows": (lambda: found_by.least_squares([[1.0, 0.0], [0.0, 1.0]], [1.0, 2.0]), "more than 2 rows"),
    "alike": (lambda: found_by.least_squares([[1, 1, 0], [2, 2, 0], [3, 3, 1], [4, 4, 5]], range(4), "abc"), "tell a, b apart"),
    "a flight": (lambda: found_by.flight(*[np.zeros((4, 3))] * 5, np.zeros((4, 3)), mass=1.0), r"wrench \(n, 6\)"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_measurements_are_named(case):
    call, words = WRONG[case]
    with pytest.raises(pf.ModelError, match=words):
        call()
