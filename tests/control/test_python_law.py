"""Laws in plain Python against compiled ones: sensors, noise, latency, holds, switches, batches, resumed runs."""

from __future__ import annotations

import json

import casadi as ca
import numpy as np
import pytest

import pfaffian as pf
from pfaffian import control
from pfaffian.control import Command
from pfaffian.errors import RunWarning
from tests.control.test_discrete import X0, M, run
from tests.refused import refusals
from tests.simulate.machines import FOUR_BAR_START, four_bar

STARTS = np.array([[1.0], [0.5], [2.0]]) * X0
PLACES = {"period": 0.008, "phase": 0.002, "start": [0.1, 0.2]}


def sensors():
    """Three sensors: one slow and late, one fast, one of the motion under the inputs held until then."""
    return {
        "place": control.sensor(lambda k: k.q, std=[0.1, 0.02, 0.3], period=0.004, latency=1),
        "speed": control.sensor(lambda k: k.v, std=0.2, period=0.002),
        "felt": control.sensor(lambda T, motion: motion.v_dot, std=0.01, moving=True),
    }


def equations(s):
    pulled = -2 * s["place"][0] - s["speed"][1] * s["felt"][2]
    return Command(ca.vertcat(pulled, -0.5 * s["place"][2] + s["felt"][0]))


def numbers(t, q, v, y):
    place, speed, felt = (np.moveaxis(y[name], -1, 0) for name in ("place", "speed", "felt"))
    return np.stack([-2 * place[0] - speed[1] * felt[2], -0.5 * place[2] + felt[0]], axis=-1)


def same(a, b, in_python=True) -> None:
    assert set(a.data_vars) == set(b.data_vars)
    assert np.isnan(b["error"].values).all() == in_python, "the error of a law in Python is not estimated"
    for name in set(a.data_vars) - {"error"}:
        np.testing.assert_array_equal(a[name].values, b[name].values, err_msg=str(name))


@pytest.mark.parametrize(("latency", "hold"), [(0, "zero"), (2, "first")])
@pytest.mark.parametrize("x", [X0, STARTS], ids=["one run", "three runs"])
def test_sensors_noise_and_latency_are_those_of_the_compiled_law(latency, hold, x):
    """Every signal agrees to the bit, measurements included."""
    how = {**PLACES, "latency": latency, "hold": hold, "measure": sensors()}
    plan = {"seconds": 0.04, "x": x, "seed": [5, 6, 9] if x.ndim == 2 else 5, "record": "all", "backend": "interpreter"}
    compiled, called = run(control.discrete(equations, **how), **plan), run(control.python_law(numbers, **how), **plan)
    same(compiled, called)
    assert np.ptp(called.place.values) > 0.1 and np.ptp(called.u.values) > 0.1
    parts = json.loads(called.attrs["sampling"])
    assert [(p["name"], p["latency"], "python" in p) for p in parts] == [
        ("place", 1, False), ("speed", 0, False), ("felt", 0, False), ("law", latency, True)]  # fmt: skip


def test_a_closed_loop_mechanism_with_a_switch_and_a_noisy_sensor():
    """A four-bar on a spring that stiffens as it turns and then halves in every step: switches precede sensors and law."""
    k = pf.Parameter("k", 0.3)
    spring = pf.forces.potential("coil", lambda kin: k * kin.q[0] ** 2)
    m = four_bar().with_(forces=(spring,), parameters=(k,), actuators=(pf.actuator("motor", "a"),))
    rate = control.sensor(lambda kin: kin.v[0], std=0.05)
    switches = {"k": lambda kin: ca.if_else(kin.t > 0.029, 0.5 * k, 0.3 + 0.1 * kin.v[0] ** 2)}
    how = {"duration": 0.045, "step": 1e-3, "seed": 3, "switches": switches, "backend": "interpreter"}
    laws = (
        control.discrete(lambda s: Command(-0.2 * s["rate"] + 0.1 * s.terms.q[1]), 0.006, latency=1, measure={"rate": rate}),
        control.python_law(lambda t, q, v, y: -0.2 * y["rate"] + 0.1 * q[1:2], 0.006, latency=1, measure={"rate": rate}),
    )
    compiled, called = (pf.run(m, FOUR_BAR_START, {"a": 1.0}, control=law, **how) for law in laws)
    same(compiled, called)
    assert compiled.k.values[0] > 0.39 and compiled.k.values[-1] < 1e-4


def test_elementary_functions_of_numpy_differ_in_the_last_bits():
    """NumPy's elementary functions differ from the kernel's in the last bits: after 50 calls by less than 1e-12."""
    craft = pf.body("craft", 5.0, inertia=(0.2, 0.3, 0.4))
    motors = [pf.actuator(f"t{i}", "turn", component=i) for i in range(3)]
    m = pf.mechanism("craft", [craft], [pf.joint("turn", "spherical", "world", "craft")], actuators=motors)
    gyro = control.sensor(lambda k: k.v, std=0.01, latency=1, unit="rad/s")
    answer = lambda s: Command(-ca.sin(3 * s["gyro"]) - s.terms.q[:3] * ca.exp(-s.terms.t))  # noqa: E731
    laws = (
        control.discrete(answer, 0.01, measure={"gyro": gyro}),
        control.python_law(lambda t, q, v, y: -np.sin(3 * y["gyro"]) - q[:3] * np.exp(-t), 0.01, measure={"gyro": gyro}),
    )
    compiled, called = (
        pf.run(m, [0.1, 0.2, 0.3, 0.9], [1, -2, 0.5], duration=0.5, step=5e-3, control=law, seed=4, backend="interpreter")
        for law in laws
    )
    for name in ("q", "v", "u", "gyro"):
        np.testing.assert_allclose(called[name].values, compiled[name].values, rtol=0, atol=1e-12)
    assert called.gyro.attrs["units"] == "rad/s"


@pytest.mark.parametrize("half", [0.02, 0.026], ids=["at a sample", "at an instant of the law"])
def test_a_resumed_run_continues_sensors_and_delayed_inputs(half):
    law = control.python_law(numbers, **PLACES, latency=2, measure=sensors())
    plan = {"seed": 7, "backend": "interpreter"}
    whole, first = run(law, 0.05, **plan), run(law, half, **plan)
    step = {"step": 1e-3, "control": law, "backend": "interpreter"}
    rest = pf.run(M, start_from=first, duration=0.05 - half, **step)
    for name in ("q", "v", "u", "place", "speed", "felt"):
        np.testing.assert_array_equal(rest[name].values, whole[name].values[round(half / 1e-3) :], err_msg=name)


def test_a_number_that_is_not_finite_stops_its_run_and_an_error_stops_all():
    def wild(t, q, v):
        u = -np.ones((3, 2)) * q[:, :1]
        u[1] += np.nan if t > 0.015 else 0
        return u

    words = r"1 of 3 runs stopped.*the law in Python, wild: u is not finite: 'first' is nan at t = 0.02 s"
    with pytest.warns(RunWarning, match=words):
        r = run(control.python_law(wild, 0.01), seconds=0.04, x=STARTS)
    assert r.status.values.astype(bool).tolist() == [False, True, False] and r.stopped.values[1] == pytest.approx(0.02)
    alone = run(control.python_law(lambda t, q, v: -np.ones(2) * q[0], 0.01), seconds=0.04, x=STARTS[2])
    np.testing.assert_array_equal(r.q.values[2], alone.q.values)

    def breaks(t, q, v):
        return {}["gain"] if t > 0.015 else np.zeros((3, 2))

    words = r"3 of 3 runs stopped.*the law in Python, breaks in test_python_law.py line \d+.*KeyError: 'gain' at t = 0.02 s"
    with pytest.warns(RunWarning, match=words):
        r = run(control.python_law(breaks, 0.01), seconds=0.04, x=STARTS)
    assert (r.stopped.values == pytest.approx(0.02)) and "breaks" in r.reason.values[2]


@pytest.mark.parametrize("hold", ["zero", "linear"])
def test_sampled_laws_measure_a_wrench_from_outside(hold):
    """The wrench is an input of the run: a series that is held or linear between its samples, for two runs."""
    gust = pf.wrench("gust", "c")
    m = pf.mechanism("cart", [pf.body("c", 2.0, inertia=0.1)], [pf.joint("x", "prismatic", "world", "c", axis=(1, 0, 0))],
                     actuators=[pf.actuator("motor", "x")], forces=[gust], gravity=(0, 0, 0))  # fmt: skip
    felt = {"felt": control.sensor(lambda T, motion: motion.v_dot, moving=True, period=0.002)}
    laws = (
        control.discrete(lambda s: Command(ca.vertcat(-s["felt"], ca.SX(6, 1))), 0.004, measure=felt),
        control.python_law(lambda t, q, v, y: np.pad(-y["felt"], ((0, 0), (0, 6))), 0.004, measure=felt),
    )
    u = {"gust.fx": np.array([[1.0, 3.0, -2.0], [0.5, 0.1, 4.0]]).T}
    how = {"duration": 0.006, "u": u, "u_step": 0.003, "hold": hold, "backend": "interpreter", "record": "all"}
    compiled, called = (pf.run(m, np.zeros((2, 1)), control=law, **how) for law in laws)
    same(compiled, called)
    assert compiled.felt.values[:, 0] == pytest.approx([0.5, 0.25]) and np.ptp(compiled.felt.values) > 1


WRONG = {
    "hold": (lambda: control.python_law(numbers, 0.01, hold="second"), "hold 'second' is unknown; one of zero, first"),
    "sensors": (lambda: control.python_law(numbers, 0.01, measure={"y": 3}), r"measure: \{name: sensor\(...\)\} is needed"),
    "no steps": (lambda: run(control.python_law(numbers, 0.0105), 0.02), r"0.0105 s of 'law' must be a whole number of steps"),
    "sensor's steps": (
        lambda: run(control.python_law(numbers, 0.01, measure={"y": control.sensor(lambda k: k.q, period=0.0015)}), 0.02),
        "0.0015 s of 'y' must be a whole number of steps",
    ),
}


test_wrong_python_laws_are_named = refusals(WRONG)


def test_a_law_in_python_and_one_of_zeros_are_two_laws():
    """The equations of a law in Python contain zeros in its place; the loops of the two differ in what they sample."""
    nothing = control.discrete(lambda s: Command(ca.SX.zeros(2)), 0.01, start=[1.0, 1.0])
    called = control.python_law(lambda t, q, v: np.zeros(2), 0.01, start=[1.0, 1.0])
    one, other, again = (run(law, seconds=0.03) for law in (nothing, called, nothing))
    same(one, other)
    same(one, again, in_python=False)


TO_ACCURACY = {"accuracy": 1e-6, "backend": "interpreter", "record": "all", "seed": 5}


@pytest.mark.parametrize("x", [X0, STARTS], ids=["one run", "three runs"])
def test_runs_to_an_accuracy_call_the_law_once_at_its_instants(x):
    """With the bits of the compiled law, sensors and noise included; their errors are not estimated."""
    how, called_at = {**PLACES, "latency": 1, "hold": "first", "measure": sensors()}, []

    def counted(t, q, v, y):
        called_at.append(t)
        return numbers(t, q, v, y)

    plan = {"times": np.linspace(0, 0.04, 6), "error": False, **TO_ACCURACY}
    compiled = pf.run(M, x[..., :3], x[..., 3:], control=control.discrete(equations, **how), **plan)
    called = pf.run(M, x[..., :3], x[..., 3:], control=control.python_law(counted, **how), **plan | {"error": None})
    same(compiled.drop_vars("end_state"), called.drop_vars("end_state"))  # each continues in its own way
    np.testing.assert_allclose(called_at, 0.002 + 0.008 * np.arange(5), atol=1e-12)
    np.testing.assert_array_equal(called.steps, compiled.steps)


def test_a_run_to_an_accuracy_under_a_law_in_python_continues():
    law = control.python_law(lambda t, q, v: -2 * q[:2] - np.sin(v[:2]) + t, 0.01, latency=1)
    whole, half = (pf.run(M, X0[:3], X0[3:], times=t, control=law, **TO_ACCURACY) for t in ([0, 0.047, 0.1], [0, 0.047]))
    rest = pf.run(M, start_from=half, times=[0.047, 0.1], control=law, **TO_ACCURACY | {"seed": 0})
    np.testing.assert_array_equal(rest.q.values, whole.q.values[1:])
    np.testing.assert_array_equal(rest.end_state.values, whole.end_state.values)


def test_a_law_in_python_that_fails_within_a_run_to_an_accuracy():
    def wild(t, q, v):
        return np.where((np.arange(len(q))[:, None] != 1) & (t > 0.025), np.nan, np.zeros((len(q), 2)))

    with pytest.warns(RunWarning, match="2 of 3 runs stopped.*u is not finite.*at t = 0.03 s"):
        r = pf.run(M, STARTS[:, :3], STARTS[:, 3:], duration=0.05, control=control.python_law(wild, 0.01), **TO_ACCURACY)
    assert (r.status.values != 0).tolist() == [True, False, True] and np.nanmax(r.stopped) == pytest.approx(0.03)
    with pytest.raises(pf.ModelError, match="second solution"):
        pf.run(M, X0[:3], X0[3:], duration=0.05, control=control.python_law(wild, 0.01), error=True, **TO_ACCURACY)
