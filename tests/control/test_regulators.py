"""Building blocks of laws: actuators against SciPy, anti-windup, an attitude loop in a run, numbers and symbols alike."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest
from scipy.linalg import expm

import pfaffian as pf
from pfaffian import control
from pfaffian.control import regulators as reg
from tests.refused import refusals
from tests.tolerance import close


def test_actuators_are_exact_for_held_inputs():
    """Against the matrix exponential of their equations."""
    w, d, T = 7.0, 0.4, 0.05
    A = np.array([[0, 1, 0], [-w * w, -2 * d * w, w * w], [0, 0, 0]])
    x, rate = reg.second_order_step(0.3, -1.2, 0.8, T, frequency=w, damping=d)
    close([x, rate], (expm(A * T) @ [0.3, -1.2, 0.8])[:2], 1e-13, "second order")
    lag = reg.lag_step(0.3, 0.8, T, time_constant=0.2)
    close(lag, 0.8 - 0.5 * np.exp(-T / 0.2), 1e-14, "first order")
    assert reg.lag_step(0.3, -9.0, T, time_constant=0.2, rate=1.0) == pytest.approx(0.3 - T)


def test_the_integral_stops_where_the_output_is_limited():
    """After a large error the output leaves its limit at once; with windup it would stay there."""
    given = {"gain": 1.0, "integral_gain": 4.0, "limits": (-1.0, 1.0)}
    I = s = 0.0
    for _ in range(200):
        u, I, s = reg.pid_step(3.0, 3.0, I, s, 0.01, **given)
    assert u == 1.0 and I == 0.0
    assert reg.pid_step(-0.5, 3.0, I, s, 0.01, **given).u < 0
    down = reg.pid_step(-3.0, -3.0, 0.0, 0.0, 0.01, **given)
    assert down.u == -1.0 and down.integral == 0.0
    freed = reg.pid_step(-0.1, -0.1, 0.5, 0.0, 0.01, **given)  # at the upper limit, but the error lets the integral unwind
    assert freed.u == 1.0 and freed.integral == pytest.approx(0.499)
    rated = reg.pid_step(0.2, 0.1, 0.0, 1.0, 0.1, gain=0.0, rate_gain=1.0, smoothing=0.3)
    assert rated.u == pytest.approx(1.0) and rated.slope == pytest.approx(1.0)
    assert reg.pid_step(0.4, 0.1, 0.0, 1.0, 0.1, gain=0.0, rate_gain=1.0, smoothing=0.3).slope == pytest.approx(1.5)


@pytest.mark.parametrize("error", [-2.0, -0.1, 0.3, 5.0])
def test_symbols_and_numbers_agree(error):
    e, l, I, s = (ca.SX.sym(n) for n in "elIs")
    given = {"gain": 1.0, "integral_gain": 2.0, "rate_gain": 0.1, "smoothing": 0.05, "limits": (-1.0, 1.0)}
    f = ca.Function("pid", [e, l, I, s], list(reg.pid_step(e, l, I, s, 0.01, **given)))
    close(
        np.array([float(x) for x in f(error, 0.1, 0.4, 0.2)]),
        reg.pid_step(error, 0.1, 0.4, 0.2, 0.01, **given),
        1e-14,
        "pid",
        1,
    )


def body() -> pf.Mechanism:
    return pf.mechanism(
        "craft", [pf.body("craft", 1.0, inertia=(0.02, 0.03, 0.05))], [pf.joint("ball", "spherical", "world", "craft")],
        actuators=[pf.actuator(f"m{i}", "ball", component=i) for i in range(3)], gravity=(0, 0, 0),
    )  # fmt: skip


def test_an_attitude_loop_turns_a_craft_through_lagging_motors():
    """Rates of attitude_rate, moments of rate_torque, motors of lag_step: 1 rad about a skew axis in 3 s."""
    inertia, axis = np.diag([0.02, 0.03, 0.05]), np.array([1.0, -2.0, 2.0]) / 3
    half = np.append(np.sin(0.5) * axis, np.cos(0.5))

    def law(s: control.Sample):
        k = s.terms.kinematics
        desired = reg.attitude_rate(k.rotation("craft"), pf.pose(quaternion=half).R, 4.0)
        moment = reg.rate_torque(k.twist("craft")[3:], desired, ca.DM(inertia), 20.0)
        motor = reg.lag_step(s["motor"], moment, 0.01, time_constant=0.02)
        return control.Command(motor, d_next={"motor": motor})

    r = pf.run(body(), duration=3.0, step=0.005, control=control.discrete(law, 0.01, state={"motor": [0.0] * 3}),
               error_bound=np.inf, backend="interpreter")  # fmt: skip
    close(r.q[-1], half, 1e-4, "attitude")
    assert np.abs(r.v[-1]).max() < 1e-3


def test_rate_torque_compensates_the_gyroscopic_moment():
    """Euler's equations of a craft that turns about a skew axis: its acceleration is gain (desired - w) and nothing else."""
    w, desired = np.array([1.0, -2.0, 3.0]), np.array([0.5, 1.0, -1.0])
    moment = reg.rate_torque(ca.DM(w), ca.DM(desired), ca.DM(np.diag([0.02, 0.03, 0.05])), 4.0)
    found = pf.forward_dynamics(body(), {}, w, np.array(moment).ravel())
    close(found.v_dot, 4.0 * (desired - w), 1e-12, "acceleration")


def test_a_battery_sags_and_empties():
    given = {"full": 16.8, "empty": 13.2, "resistance": 0.05}
    assert reg.battery_voltage(1.0, 0.0, **given) == 16.8
    assert reg.battery_voltage(0.25, 10.0, **given) == pytest.approx(13.6)
    charge = 1.0
    for _ in range(5):
        charge = reg.charge_step(charge, 100.0, 1.0, capacity=400.0)
    assert charge == 0.0


WRONG = {
    "no period": (lambda: reg.lag_step(0, 1, 0.0, time_constant=1.0), "period must be above zero, got 0.0"),
    "no time constant": (lambda: reg.lag_step(0, 1, 0.1, time_constant=0.0), "time_constant must be above zero"),
    "no rate": (lambda: reg.lag_step(0, 1, 0.1, time_constant=1.0, rate=0.0), "rate must be above zero"),
    "no frequency": (lambda: reg.second_order_step(0, 0, 1, 0.1, frequency=-1.0), "frequency must be above zero"),
    "overdamped": (lambda: reg.second_order_step(0, 0, 1, 0.1, frequency=1.0, damping=1.0), "without overshoot use lag_step"),
    "limits the wrong way round": (lambda: reg.pid_step(1, 1, 0, 0, 0.1, gain=1.0, limits=(1, -1)), "limits"),
    "smoothing of less": (lambda: reg.pid_step(1, 1, 0, 0, 0.1, gain=1.0, smoothing=-1.0), "smoothing must not be below zero"),
    "an odd battery": (lambda: reg.battery_voltage(1, 0, full=1.0, empty=2.0, resistance=0.0), "empty 2.0 is above full 1.0"),
    "a battery that drives": (
        lambda: reg.battery_voltage(1, 0, full=2.0, empty=1.0, resistance=-1.0),
        "resistance must not be",
    ),
    "a resistance of words": (lambda: reg.battery_voltage(1, 0, full=2.0, empty=1.0, resistance="a"), "^resistance: "),
    "no capacity": (lambda: reg.charge_step(1, 0, 1.0, capacity=0.0), "capacity must be above zero"),
    "a period of words": (lambda: reg.charge_step(1, 0, "a", capacity=1.0), "period"),
}


test_wrong_arguments_are_named = refusals(WRONG)
