"""References and tasks: values in closed form, and rates and accelerations as their derivatives."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest
from scipy.interpolate import CubicSpline

import pfaffian as pf
from pfaffian import control
from pfaffian.control.reference import of_unit_length
from pfaffian.control.task import gain, task_terms
from pfaffian.terms.recursions import mass_centre
from tests.identities.test_inertia import rate
from tests.random_mechanisms import Case, matrices, random_tree
from tests.tolerance import ALGEBRA, DERIVATIVE, close


def values(reference: control.Reference, t: float, w=()) -> np.ndarray:
    """Value, rate and acceleration as rows, followed by the derivatives of the value and of the rate."""
    s, given = ca.SX.sym("t"), ca.SX(ca.DM(w)) if len(w) else ca.SX(0, 1)
    x = reference.at(s, given)
    slopes = [ca.jacobian(x.value, s), ca.jacobian(x.rate, s)]
    return np.array(ca.Function("f", [s], [ca.horzcat(*x, *slopes)])(t)).T


POLYNOMIAL = control.polynomial([1.0, -2.0], [3.0, 0.5], 0.8, begin=0.3)


@pytest.mark.parametrize("t", [0.35, 0.5, 0.7, 1.05])
def test_polynomial_between_its_ends(t):
    x = values(POLYNOMIAL, t)
    close(x[1], x[3], DERIVATIVE, "rate")
    close(x[2], x[4], DERIVATIVE, "acceleration", 100.0)
    s = (t - 0.3) / 0.8
    close(x[0], np.array([1, -2]) + np.array([2, 2.5]) * s**3 * (10 - 15 * s + 6 * s**2), ALGEBRA, "value")


def test_polynomial_rests_at_its_ends_and_beyond():
    for t, at in ((-1.0, [1.0, -2.0]), (0.3, [1.0, -2.0]), (1.1, [3.0, 0.5]), (5.0, [3.0, 0.5])):
        x = values(POLYNOMIAL, t)
        close(x[0], np.array(at), ALGEBRA, f"value at {t}")
        close(x[1:3], np.zeros((2, 2)), 1e3 * ALGEBRA, f"rest at {t}", 1.0)
    for wrong in (lambda: control.polynomial([1.0], [1.0, 2.0], 1.0), lambda: control.polynomial([1.0], [2.0], 0.0)):
        with pytest.raises(pf.ModelError, match="polynomial reference needs"):
            wrong()


def test_a_function_of_time_may_hold_parameters():
    """The amplitude and the frequency of a path may change from run to run."""
    a, w = pf.Parameter("a", 1.0), pf.Parameter("w", 2.0)
    t = ca.SX.sym("t")
    x = control.function_of_time(lambda t: [a.symbol * ca.sin(w.symbol * t), t], 2).at(t, ca.SX(0, 1))
    found = np.array(ca.Function("f", [t, ca.vertcat(a.symbol, w.symbol)], [ca.horzcat(*x)])(0.4, [0.7, 3.0])).T
    s, c = np.sin(1.2), np.cos(1.2)
    close(found, np.array([[0.7 * s, 0.4], [2.1 * c, 1.0], [-6.3 * s, 0.0]]), ALGEBRA, "value, rate, acceleration")


def test_set_point_and_function():
    close(values(control.set_point([2.0, 3.0]), 0.7)[:3], np.array([[2.0, 3.0], [0, 0], [0, 0]]), ALGEBRA, "set point")
    close(values(control.set_point(ca.SX([2.0, 3.0])), 0.7)[:3], np.array([[2.0, 3.0], [0, 0], [0, 0]]), ALGEBRA, "a column")
    for number in (2.0, ca.SX(2.0)):
        with pytest.raises(pf.ModelError, match="a list of numbers, one for each coordinate, is needed"):
            control.set_point(number)
    wave = control.function_of_time(lambda t: [ca.sin(3 * t), t**3], 2)
    t = 0.4
    expected = [[np.sin(3 * t), t**3], [3 * np.cos(3 * t), 3 * t**2], [-9 * np.sin(3 * t), 6 * t]]
    close(values(wave, t)[:3], np.array(expected), ALGEBRA, "function of time")
    with pytest.raises(pf.ModelError, match="gives 2 numbers where the task has 3"):
        values(control.function_of_time(lambda t: [t, t], 3), 0.0)


def test_sampled_takes_value_rate_and_acceleration_by_name():
    reference = control.sampled(["a", "b"])
    assert reference.w_names == ("a", "b", "a'", "b'", "a''", "b''") and reference.size == 2
    close(values(reference, 0.0, [1.0, 2, 3, 4, 5, 6])[:3], np.array([[1.0, 2], [3, 4], [5, 6]]), ALGEBRA, "sampled")


def test_series_is_the_natural_cubic_spline():
    random = np.random.default_rng(3)
    times = np.cumsum(random.uniform(0.1, 0.4, 9))
    points = random.normal(size=(9, 2))
    step = 0.01
    found = control.series(times, points, step)
    spline = CubicSpline(times, points, bc_type="natural")
    t = times[0] + step * np.arange(len(found))
    assert times[-1] - step < t[-1] <= times[-1] + step / 2
    for order in range(3):
        inside = np.abs(t[:, None] - times).min(axis=1) > 1e-9 if order == 2 else slice(None)
        expected = spline(t, order)
        close(found[inside, 2 * order : 2 * order + 2], expected[inside], 1e-10, f"derivative {order}", np.abs(expected).max())
    for wrong in ((times[::-1], points), (times[:-1], points), (times, points[:, 0])):
        with pytest.raises(pf.ModelError, match="increasing times"):
            control.series(*wrong, step)


def test_gains_are_one_number_or_one_for_each_coordinate():
    for given in (3.0, ca.SX(3.0), ca.DM(3.0)):
        assert np.array(ca.DM(gain(given, 2, "stiffness"))).ravel().tolist() == [3.0, 3.0]
    for given in ([1.0, 2.0], (1.0, 2.0), np.array([1.0, 2.0]), ca.DM([1.0, 2.0]), ca.SX(ca.DM([1.0, 2.0]))):
        assert np.array(ca.DM(gain(given, 2, "stiffness"))).ravel().tolist() == [1.0, 2.0]
    with pytest.raises(pf.ModelError, match="damping: 3 numbers are needed, got 2"):
        gain([1.0, 2.0], 3, "damping")


# Tasks.


def machine() -> Case:
    random = np.random.default_rng(9)
    m = random_tree(random, ["free", "revolute", "spherical"], [-1, 0, 1])
    return Case(m, pf.random_configuration(m, random), random.normal(size=m.nv), np.zeros(0), 0.4)


TURNED = np.array([[0.0, -1, 0], [1, 0, 0], [0, 0, 1]])
TASKS = {
    "joints": (control.joints("j1"), lambda k: k.joint("j1")),
    "point": (control.point("b1", (0.1, 0.2, 0.3), (2, 0)), lambda k: k.position("b1", (0.1, 0.2, 0.3))[[2, 0]]),
    "centre of mass": (control.centre_of_mass((1,)), lambda k: mass_centre(k)[1]),
    "stack": (
        control.stack(control.point("b2"), control.joints("j1")),
        lambda k: ca.vertcat(k.position("b2"), k.joint("j1")),
    ),
    "of time": (lambda k: ca.sin(k.t) * k.position("b2"), lambda k: ca.sin(k.t) * k.position("b2")),
    "pose": (control.pose("b2"), None),
    "pose about": (control.pose("b2", TURNED), None),
}


@pytest.mark.parametrize("name", TASKS)
def test_terms_of_a_task_are_derivatives_of_one_another(name):
    """rate = J v + d theta / dt, J is its derivative with respect to v, and the drift is theta_ddot at v_dot = 0."""
    task, expected = TASKS[name]
    made: dict = {}

    def x(T):
        return made.setdefault("x", task_terms(T, task))

    r = matrices(machine(), {
        "theta": lambda T: x(T).theta, "rate": lambda T: x(T).rate, "J": lambda T: x(T).J, "drift": lambda T: x(T).drift,
        "from theta": lambda T: rate(T, x(T).theta), "from rate": lambda T: rate(T, x(T).rate),
        "slope": lambda T: ca.jacobian(x(T).rate, T.v),
    } | ({"expected": lambda T: expected(T.kinematics)} if expected else {}))  # fmt: skip
    size = 10 * (1 + np.abs(r["J"]).max())
    close(r["rate"], r["from theta"], DERIVATIVE, "rate", size)
    close(r["J"], r["slope"], DERIVATIVE, "J", size)
    close(r["drift"], r["from rate"], DERIVATIVE, "drift", 10 * size)
    if expected:
        close(r["theta"], r["expected"], ALGEBRA, "theta", 10.0)


def test_pose_is_position_and_rotation_vector():
    """The rotation vector turns `about` into the body's rotation: R = about exp(w)."""
    case = machine()
    for about in (np.eye(3), TURNED):
        task = control.pose("b2", about)
        r = matrices(case, {
            "x": lambda T, task=task: task(T.kinematics),
            "p": lambda T: T.kinematics.position("b2"), "R": lambda T: T.kinematics.rotation("b2"),
        })  # fmt: skip
        w = r["x"][3:, 0]
        angle = np.linalg.norm(w)
        K = np.array([[0, -w[2], w[1]], [w[2], 0, -w[0]], [-w[1], w[0], 0]]) / angle
        close(r["x"][:3], r["p"], ALGEBRA, "position", 10.0)
        turn = np.eye(3) + np.sin(angle) * K + (1 - np.cos(angle)) * K @ K
        close(about @ turn, r["R"], 1e-12, "rotation", 1.0)
    with pytest.raises(pf.ModelError, match=r"about must be a \(3, 3\) rotation"):
        control.pose("b2", np.eye(2))


def test_whole_is_for_joints_without_quaternions():
    random = np.random.default_rng(1)
    arm = random_tree(random, ["revolute", "prismatic"], [-1, 0])
    q = random.normal(size=2)
    theta = matrices(Case(arm, q, 0 * q, np.zeros(0), 0.0), {"x": lambda T: control.whole(arm)(T.kinematics)})["x"]
    close(theta.ravel(), q, ALGEBRA, "whole configuration")
    with pytest.raises(pf.ModelError, match="'j0' turns by a quaternion"):
        control.whole(machine().m)


def test_of_unit_length_differentiates_the_normalised_quaternion():
    """It gives n = q / |q| and its derivatives, as a reference written for n does."""

    def q(t):
        return ca.vertcat(ca.sin(t), 0.4 * t, ca.cos(2 * t), 1 + t * t)

    longer = control.function_of_time(lambda t: ca.vertcat(t**3, q(t)), 5)
    unit = control.function_of_time(lambda t: ca.vertcat(t**3, q(t) / ca.norm_2(q(t))), 5)
    t = ca.SX.sym("t")
    found = of_unit_length(longer.at(t, ca.SX(0, 1)), slice(1, 5), "a reference")
    f = ca.Function("f", [t], [ca.vertcat(*found), ca.vertcat(*unit.at(t, ca.SX(0, 1)))])
    for at in (0.3, 1.7):
        given, expected = (np.array(x).ravel() for x in f(at))
        close(given, expected, 10 * ALGEBRA, "value, rate and acceleration")
