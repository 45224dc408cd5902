"""Limits of joints and inputs: a run warns when and by how far it exceeded them; inputs are cut on request."""

from __future__ import annotations

import warnings

import casadi as ca
import numpy as np
import pytest

import pfaffian as pf
from pfaffian import control
from pfaffian.simulate.step.limits import SLIGHT
from tests.by_scipy import run_adaptive
from tests.tolerance import ALGEBRA, close

MANY_STEPS = 100 * ALGEBRA
"""Rounding of a hundred steps of a motion that RK4 integrates exactly."""

SETTINGS = {"duration": 1.0, "step": 0.01, "backend": "interpreter"}


def cart(limits=(-1.0, 2.0), effort=np.inf, motor=(-3.0, 4.0), **more) -> pf.Mechanism:
    """A mass of 2 kg on a rail, pushed by a motor, and a rod on it that has no limits."""
    bodies = [pf.body("cart", 2.0), pf.body("rod", 1.0, com=(0, 0, -1), inertia=0.1)]
    joints = [
        pf.joint("rail", "prismatic", "world", "cart", axis=(1, 0, 0), limits=limits, effort=effort),
        pf.joint("rod", "revolute", "cart", "rod", axis=(1, 0, 0)),
    ]
    return pf.mechanism("cart", bodies, joints, actuators=[pf.actuator("push", "rail", limits=motor)], **more)


def warned(m: pf.Mechanism, *state, **more) -> tuple[list[str], object]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        r = pf.run(m, *state, **SETTINGS | more)
    return [str(w.message) for w in caught if w.category is pf.RunWarning], r


def test_within_limits_there_is_no_warning() -> None:
    found, r = warned(cart(), {"rail": 2.0}, u=[0.0])
    assert found == []
    assert (r["limit_excess"] == 0).all() and np.isnan(r["limit_time"]).all()
    assert (r["input_excess"] == 0).all() and np.isnan(r["input_time"]).all()


def test_without_limits_there_are_no_signals() -> None:
    _, r = warned(cart(limits=(-np.inf, np.inf), motor=(-np.inf, np.inf)), v=[9.0, 0.0], u=[99.0])
    assert not {"limit_excess", "limit_time", "input_excess", "input_time"} & set(r.data_vars)


def test_instant_and_size_of_excess_are_recorded() -> None:
    """x = x0 + v t: one run starts outside, one leaves downwards on the way, one stays inside."""
    found, r = warned(cart(), np.array([[2.3, 0], [0.5, 0], [0, 0]]), np.array([[0.1, 0], [-2.0, 0], [0.5, 0]]))
    assert r["limit_excess"].dims == ("run", "coordinate") and list(r["q_unit"].values) == ["m", "rad"]
    close(r["limit_excess"].values, np.array([[0.4, 0], [0.5, 0], [0, 0]]), MANY_STEPS, "largest excess", scale=1.0)
    close(r["limit_time"].values[:2, 0], np.array([0.0, 0.76]), MANY_STEPS, "first instant outside", scale=1.0)
    assert np.isnan(r["limit_time"].values[2, 0]) and np.isnan(r["limit_time"].values[:, 1]).all()
    assert found == ["limits are not enforced: joint 'rail' is outside at the start, by up to 0.5 m in 2 of 3 runs"]


def test_only_recorded_instants_count() -> None:
    """The joint leaves its limits and returns between two records."""
    m = cart().with_(forces=[pf.spring("pull", "world", "cart", stiffness=300.0, point_a=(-3, 0, 0), rest=5.0)])
    found, _ = warned(m, {"rail": 2.0}, {"rail": 1.0})
    assert len(found) == 1 and "from t = 0.01 s" in found[0]
    assert warned(m, {"rail": 2.0}, {"rail": 1.0}, every=100)[0] == []
    found, r = warned(m, {"rail": 5.0}, record=["energy"])
    assert "limit_excess" not in r, "q is not recorded"
    assert found == ["limits are not enforced: joint 'rail' is outside at the start, by up to 3 m"]
    assert warned(m, {"rail": 1.9}, record=["energy"])[0] == []


def test_inputs_beyond_their_limits() -> None:
    series = np.array([[1.0], [4.5], [6.0], [-7.0]])
    found, r = warned(cart((-9, 9)), u=series, u_step=0.25)
    close(float(r["input_excess"][0]), 4.0, ALGEBRA, "largest excess")
    close(float(r["input_time"][0]), 0.25, ALGEBRA, "first instant beyond")
    assert found == [
        "limits are not enforced: input 'push' is outside from t = 0.25 s, by up to 4 N; "
        "Scheme(saturate=True) or --saturate cuts inputs"
    ]
    close(r["u"].values[-1], [-7.0], ALGEBRA, "as given")


def test_forces_of_servo_constraints_count_as_their_inputs() -> None:
    wish = pf.servo(pf.holonomic("hold", lambda k: k.q[0]), ["push"])
    m = cart(motor=(-3, 3), constraints=[wish], gravity=(5.0, 0, -9.81))
    found, r = warned(m, u=[1.0])
    close(float(r["input_excess"][0]), 3 * 5.0 - 3, MANY_STEPS, "3 kg held against 5 m/s^2, less the limit")
    assert "input 'push' is outside at the start, by up to 12 N" in found[0]


@pytest.mark.parametrize("integrator", ["rk4", "euler"])
def test_saturated_inputs_are_cut_within_the_step(integrator: str) -> None:
    """The bits are those of a series clipped beforehand, and the part that was cut is recorded."""
    series = np.array([[1.0], [4.5], [6.0], [-7.0], [-2.0], [3.0]])
    r = warned(cart(), u=series, u_step=0.2, scheme=pf.Scheme(saturate=True, integrator=integrator), error_bound=1.0)
    assert r[0] == []
    by_hand = pf.run(cart(), u=np.clip(series, -3, 4), u_step=0.2, scheme=pf.Scheme(integrator=integrator), **SETTINGS)
    np.testing.assert_array_equal(r[1]["q"].values, by_hand["q"].values)
    np.testing.assert_array_equal(r[1]["u"].values, by_hand["u"].values)
    stepwise = np.repeat(series[:, 0], 20)[:101]
    np.testing.assert_array_equal(r[1]["u_cut"].values[:, 0], stepwise - np.clip(stepwise, -3, 4))
    assert r[1]["u_cut"].dims == ("time", "input")
    close(float(r[1]["input_excess"][0]), 4.0, ALGEBRA, "excess of the given input")


def test_inputs_of_a_law_are_cut_too() -> None:
    """The motor gives 4 N until the far setpoint is near, so the machine moves as a double integrator of 3 kg."""
    law = control.projected(control.joints("rail", "rod"), control.set_point([50.0, 0.0]), stiffness=9.0, damping=6.0)
    m = pf.actuate_all(cart((-99, 99))).with_(actuators=[pf.actuator(n, n, limits=(-3, 4)) for n in ("rail", "rod")])
    found, r = warned(m, control=law, scheme=pf.Scheme(saturate=True))
    assert found == [] and (r["u"].values[:, 0] == 4).all()
    close(float(r["q"][-1, 0]), 0.5 * 4 / 3, MANY_STEPS, "4 N on 3 kg for 1 s")
    close(float(r["u_cut"][0, 0]), 3 * 9 * 50 - 4, MANY_STEPS, "cut at the start")
    assert "input 'rail' is outside at the start" in warned(m, control=law)[0][0]


def test_limits_are_part_of_the_compiled_step() -> None:
    """Two machines that differ only in a limit, and two that differ only in an effort."""
    for limit in (1.0, 2.0):
        _, r = warned(cart(motor=(-limit, limit)), u=[9.0], scheme=pf.Scheme(saturate=True), backend="auto")
        assert float(r["u"][-1, 0]) == limit
    for effort in (1.5, 0.5):
        _, r = warned(
            cart(effort=effort), u=np.array([[9.0], [-9.0]]), u_step=0.5, scheme=pf.Scheme(saturate=True), backend="auto"
        )
        assert r["u"].values[[0, -1], 0].tolist() == [effort, -effort]


def test_nan_is_not_cut() -> None:
    from pfaffian.simulate.step.limits import saturated

    u = ca.SX.sym("u")
    f = ca.Function("f", [u], [saturated(cart(), u)])
    assert np.isnan(float(f(np.nan))) and float(f(9)) == 4 and float(f(-9)) == -3 and float(f(1)) == 1


def test_limits_that_cannot_be_enforced_are_refused() -> None:
    wish = pf.servo(pf.holonomic("hold", lambda k: k.q[0]), ["push"])
    with pytest.raises(pf.ModelError, match=r"the forces of hold hold a motion.*servo_control"):
        pf.run(cart(constraints=[wish]), scheme=pf.Scheme(saturate=True), **SETTINGS)
    wall = pf.actuate_all(cart(constraints=[pf.holonomic("wall", lambda k: k.q[0])]))
    goals = control.joints("rod"), control.set_point([0.0]), control.set_point([1.0])
    law = control.hybrid_force(*goals, ["wall"], stiffness=1.0, damping=2.0)
    with pytest.raises(pf.ModelError, match="a control law that measures reactions cannot be limited"):
        pf.run(wall, control=law, scheme=pf.Scheme(saturate=True), **SETTINGS)
    with pytest.raises(pf.ModelError, match="saturate must be True or False"):
        pf.Scheme(saturate="yes")


def test_adaptive_runs_warn_too() -> None:
    with pytest.warns(pf.RunWarning, match="joint 'rail' is outside at the start, by up to 0.3 m"):
        r = run_adaptive(cart(), {"rail": 2.3}, times=np.linspace(0, 0.1, 3))
    close(r["limit_excess"].values, np.array([0.3, 0]), ALGEBRA, "excess")


def test_rounding_is_no_excess() -> None:
    found, r = warned(cart(), {"rail": 2.0 + SLIGHT / 2})
    assert found == [] and (r["limit_excess"] == 0).all()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: pf.joint("j", "spherical", "world", "a", limits=(-1, 1)), "joint 'j': a spherical joint takes no limits"),
        (lambda: pf.joint("j", "revolute", "world", "a", effort=-1), "joint 'j': effort -1 must be zero or positive"),
        (lambda: cart(effort=2.0, motor=(3, 5)), r"actuator 'push': limits \(3.0, 5.0\) lie outside its joint's effort 2"),
        (lambda: cart(effort=2.0, motor=(-5, -3)), "lie outside"),
    ],
)
def test_impossible_limits_are_refused(make, message: str) -> None:
    with pytest.raises(pf.ModelError, match=message):
        make()


URDF = """<robot name="r">
  <link name="a"/><link name="b"><inertial><mass value="1"/>
    <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="j" type="revolute"><parent link="a"/><child link="b"/><axis xyz="0 0 1"/>
    <limit lower="0.5" upper="2" effort="3" velocity="1"/></joint>
</robot>"""


def test_limits_of_a_urdf_file() -> None:
    """The neutral start lies outside the limits; the effort limits the motor to 3 N m, on 1 kg m^2."""
    m = pf.formats.parse_urdf(URDF)
    found, r = warned(m, u=[7.0])
    assert found == [
        "limits are not enforced: joint 'j' is outside at the start, by up to 1.5 rad; input 'j' is outside "
        "at the start, by up to 4 N m; Scheme(saturate=True) or --saturate cuts inputs"
    ]
    found, r = warned(m, {"j": 0.5}, u=[7.0], scheme=pf.Scheme(saturate=True))
    assert found == []
    close(float(r["q"][-1, 0]), 0.5 + 3 / 2, MANY_STEPS, "turned by 3 N m for 1 s")
