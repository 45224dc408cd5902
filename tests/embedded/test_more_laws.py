"""Further exports: estimators, laws that measure reactions, first-order holds, limits, parameters that stay inputs."""

import re
import subprocess

import casadi as ca
import numpy as np
import pytest

import pfaffian as pf
from pfaffian import control
from pfaffian.control import Command, estimation
from pfaffian.embedded.controller import controller, random_inputs
from pfaffian.embedded.stack import measured_stack
from tests.embedded.conftest import compiled_law, run_written_test
from tests.embedded.test_export import LAWS

NOTHING = ca.SX(0, 1)
FREE = pf.mechanism(
    "free", [pf.body("b", 0.8, inertia=(0.018, 0.018, 0.03))], [pf.joint("j", "free", "world", "b")], gravity=(0, 0, -9.81)
)
INERTIA = ca.diag(ca.DM([0.018, 0.018, 0.03]))
PERIOD = 0.005
GYRO = tuple(f"gyro {x}" for x in "xyz")


def observing(s):
    """Estimator of attitude and rates from a gyro. [konz25 (5.51), (5.56)]"""
    gyro = ca.vertcat(*[s[name] for name in GYRO])
    w, bias = estimation.turning_step(s["w"], s["bias"], gyro, ca.DM.zeros(3), INERTIA, PERIOD)
    q = estimation.attitude_step(s["attitude"], gyro, PERIOD)
    return Command(NOTHING, signals={"rate": w, "turned": q}, d_next={"w": w, "bias": bias, "attitude": q})


def observer():
    state = {"w": [0, 0, 0], "bias": [0, 0, 0], "attitude": [0, 0, 0, 1]}
    return control.discrete(observing, PERIOD, state=state, inputs=GYRO)


def test_an_exported_estimator_agrees_with_its_steps_in_numbers(gcc, tmp_path):
    made = pf.export(observer(), FREE, tmp_path, name="observer")
    assert run_written_test(gcc, tmp_path, "observer", "-O2").returncode == 0
    assert made.state == 8 * 10
    c = controller(observer(), FREE)
    assert [port.name for port, _ in c.inputs] == ["w"] and [port.name for port in c.outputs] == ["signals"]
    step = compiled_law(gcc, tmp_path, "observer", c)
    gyro = np.random.default_rng(3).normal(size=(200, 3))
    w, bias, q = ca.DM.zeros(3), ca.DM.zeros(3), ca.DM([0, 0, 0, 1])
    for measured in gyro:
        out, status = step({"w": measured})
        w, bias = estimation.turning_step(w, bias, ca.DM(measured), ca.DM.zeros(3), INERTIA, PERIOD)
        q = estimation.attitude_step(q, ca.DM(measured), PERIOD)
        assert status == 0
        np.testing.assert_allclose(out["signals"], np.array(ca.vertcat(w, q)).ravel(), rtol=1e-12, atol=1e-12)


MASS, GAIN = pf.Parameter("mass", 2.0, "kg"), pf.Parameter("gain */", 5.0, "N/m")


def sledge():
    body, rail = pf.body("a", MASS), pf.joint("x", "prismatic", "world", "a", axis=(1, 0, 0))
    push = pf.actuator("push", "x", limits=(-3, 4))
    return pf.mechanism("sledge", [body], [rail], actuators=[push], parameters=[MASS, GAIN], gravity=(0, 0, 0))


SLEDGE = sledge()


def spring(s):
    return Command(-ca.SX(GAIN) * s.terms.q - MASS * s.terms.v)


def compiled(gcc, folder, law, m, name, **how):
    """Controller of the law, and its function in C."""
    pf.export(law, m, folder, name=name, **how)
    assert run_written_test(gcc, folder, name).returncode == 0
    c = controller(law, m, **how)
    return c, compiled_law(gcc, folder, name, c)


def test_parameters_are_constants_or_inputs(gcc, tmp_path):
    law = control.discrete(spring, 0.01)
    c, step = compiled(gcc, tmp_path, law, SLEDGE, "as_it_is")
    assert step({"q": 0.3, "v": 0.1})[0]["u"] == [-5.0 * 0.3 - 2.0 * 0.1] and "p" not in [port.name for port, _ in c.inputs]
    assert "gain _/" in (tmp_path / "as_it_is.c").read_text() and "gain */" not in (tmp_path / "as_it_is.c").read_text()
    _, step = compiled(gcc, tmp_path, law, SLEDGE, "changed", parameters={"mass": 3.0})
    assert step({"q": 0.3, "v": 0.1})[0]["u"] == [-5.0 * 0.3 - 3.0 * 0.1]
    c, step = compiled(gcc, tmp_path, law, SLEDGE, "tunable", tunable=["gain */"])
    assert step({"q": 0.3, "v": 0.1, "p": 7.0})[0]["u"] == [-7.0 * 0.3 - 2.0 * 0.1]


@pytest.mark.parametrize("tick", [0.2, None])
def test_recorded_calls_are_a_tick_apart(tick):
    law = control.discrete(lambda s: Command(ca.sin(s.terms.t) + s.terms.q), 0.2) if tick else control.projected(
        control.joints("x"), control.function_of_time(lambda t: ca.sin(t), 1), stiffness=1.0, damping=1.0
    )  # fmt: skip
    times = random_inputs(controller(law, SLEDGE), SLEDGE, 4, np.random.default_rng(0))["t"].ravel()
    assert np.allclose(np.diff(times), tick or 0.01, rtol=1e-12)


def test_the_header_documents_the_status_of_a_step(tmp_path):
    made = pf.export(control.discrete(spring, 0.01), SLEDGE, tmp_path, name="told")
    words = " ".join(made.files[0].read_text().split())
    assert "Returns 0; i + 1 if fault i is the first that is not zero; or -1 if an output is not a finite number" in words


def test_limits_apply_to_outputs_and_to_the_inputs_that_the_law_reads(gcc, tmp_path):
    law = control.discrete(lambda s: Command(s.u - 1), 0.01)
    for saturate, expected in ((False, [-1, -2, -3, -4, -5]), (True, [-1, -2, -3, -3, -3])):
        _, step = compiled(gcc, tmp_path, law, SLEDGE, f"down{int(saturate)}", saturate=saturate)
        assert [step({})[0]["u"][0] for _ in range(5)] == expected


def test_a_first_order_hold_changes_inputs_between_periods(gcc, tmp_path):
    law = control.discrete(lambda s: Command(ca.sin(3 * s.terms.t) + s.terms.q), 0.004, hold="first", phase=0.002)
    how = {"duration": 0.05, "step": 1e-3, "backend": "numpy"}
    flown = pf.run(SLEDGE, [0.2], [0.5], control=law, **how)
    c, step = compiled(gcc, tmp_path, law, SLEDGE, "onwards", tick=1e-3)
    found = [step({"t": t, "q": q})[0]["u"] for t, q in zip(flown.time.values, flown.q.values, strict=True)]
    assert c.tick == 1e-3 and np.diff(flown.u.values[:, 0], n=1)[2:].all()
    assert np.array_equal(np.array(found).view(np.int64), flown.u.values.view(np.int64))
    assert controller(law, SLEDGE).tick == 0.002


def test_a_measured_reaction_is_an_input(gcc, tmp_path):
    law = control.Control(lambda T, z, w, y: Command(2 * y - T.q), measured=lambda T, reaction: 3 * reaction)
    c, step = compiled(gcc, tmp_path, law, SLEDGE, "reacting")
    assert step({"q": 0.5, "reaction": 0.7})[0]["u"] == [2 * (3 * 0.7) - 0.5]
    assert c.tick is None and "call it at any time" in (tmp_path / "reacting.h").read_text()


def test_the_status_of_a_step(gcc, tmp_path):
    """The first fault, counted from one; -1 if an output is not finite; with two rates the faults of the laws that run."""
    law = control.several(
        slow=control.discrete(lambda s: Command(s.terms.q, faults=s.terms.q > 1), 0.02, phase=0.01, faults=["far"]),
        fast=control.discrete(lambda s: Command(s.terms.v, faults=s.terms.v > 1), 0.01, faults=["quick"]),
    )
    _, step = compiled(gcc, tmp_path, law, SLEDGE, "failing")
    calls = [(2, 0), (2, 2), (0, 2), (2, 0), (0, 0), (np.inf, 0), (0, 0), (0, 0)]
    results = [step({"q": q, "v": v}) for q, v in calls]
    assert [s for _, s in results] == [0, 1, 2, 1, 0, 1, -1, 0]
    assert [list(out["faults"]) for out, _ in results][:4] == [[0, 0], [1, 1], [0, 1], [1, 0]]
    assert [out["u"][0] for out, _ in results][:4] == [0, 4, 4, 2]


def test_tiny_constants_do_not_vanish_in_single(gcc, tmp_path):
    """1e-300 is no float; the smallest float guards a quotient as well."""
    law = control.discrete(lambda s: Command(s.terms.q / ca.fmax(ca.fabs(s.terms.q), 1e-300)), 0.01)
    pf.export(law, SLEDGE, tmp_path, precision="single", vectors={"q": [0.0, 0.5, -2.0]})
    assert run_written_test(gcc, tmp_path, "law").returncode == 0
    step = compiled_law(gcc, tmp_path, "law", controller(law, SLEDGE), "single")
    assert [step({"q": q}) for q in (0.0, 0.5, -2.0)] == [({"u": u}, 0) for u in (0, 1, -1)]


def lift():
    """A sliding cart with an arm that turns on it."""
    bodies = [pf.body("cart", 2.0), pf.body("arm", 1.0, com=(0.3, 0, 0), inertia=0.1)]
    joints = [pf.joint("x", "prismatic", "world", "cart"), pf.joint("j", "revolute", "cart", "arm", axis=(0, 1, 0))]
    return pf.actuate_all(pf.mechanism("lift", bodies, joints, parameters=[pf.Parameter("gain", 2.0, "N/m")]))


def with_every_port(s):
    m = s.terms.mechanism
    u = -m.p_symbols[0] * s.terms.q - s.terms.v - 0.1 * s.reaction + s["tilt"][0] + s["wish"]
    return Command(u, signals={"tilted": s["tilt"]}, d_next={"sum": s["sum"] + s.terms.t})


def test_the_header_has_the_unit_of_each_number(tmp_path):
    sensor = control.sensor(lambda k: ca.vertcat(k.q[1], 2 * k.q[1]), unit="rad", latency=1)
    law = control.discrete(
        with_every_port, 0.01, state={"sum": 0.0}, inputs=["wish"], measure={"tilt": sensor}, hold="first", latency=1
    )
    made = pf.export(law, lift(), tmp_path, name="lift", tunable=["gain"], tick=0.005)
    ports, part = {}, ""
    for line in made.files[0].read_text().splitlines():
        port, entry = (
            re.match(r"  double (\w+)(?:\[\d+\])?; ?(?:/\* (.*) \*/)?", line),
            re.match(r"  /\* +(\d+) (.*) \*/", line),
        )
        if port:
            part = port[1]
            ports[part] = [port[2]] if part == "t" else []
        elif entry:
            assert int(entry[1]) == len(ports[part])
            ports[part].append(entry[2])
    u, signals = ["x [N]", "j [N m]"], ["tilted 0", "tilted 1"]
    late = ["x, on its way [N]", "j, on its way [N m]", "tilted 0, on its way", "tilted 1, on its way"]
    entries = [*u, *signals, *late, "sum", "x, before [N]", "j, before [N m]", "since when [s]"]
    assert ports == {
        "t": ["time [s]"], "q": ["x [m]", "j [rad]"], "v": ["x [m/s]", "j [rad/s]"], "w": ["wish"], "p": ["gain [N/m]"],
        "reaction": ["x [N]", "j [N m]"], "y": ["tilt 0 [rad]", "tilt 1 [rad]"], "d": entries, "u": u, "signals": signals,
    }  # fmt: skip


SIZES = """#include "NAME.h"
#include <stdio.h>
int main(void) { printf("%d %d", (int)sizeof(NAME_state), (int)sizeof(NAME_work)); return 0; }
"""


@pytest.mark.parametrize("precision", ["double", "single"])
@pytest.mark.parametrize("name", ["integral", "cascade"])
def test_sizes_of_state_and_work_are_those_of_the_structures(name, precision, gcc, tmp_path):
    """The header states them too; a law without memory has no state."""
    made = pf.export(*LAWS[name](), tmp_path, name=name, precision=precision)
    (tmp_path / "sizes.c").write_text(SIZES.replace("NAME", name))
    subprocess.run([gcc, "sizes.c", "-o", "sizes"], cwd=tmp_path, check=True)
    found = subprocess.run([tmp_path / "sizes"], capture_output=True, text=True).stdout
    assert [int(x) for x in found.split()] == [made.state, made.work] and min(made.state, made.work) > 0
    words = f" * {made.operations} operations a call at most; {made.state} bytes of state; {made.stack} bytes of stack at most"
    assert words in made.files[0].read_text()
    assert pf.export(*LAWS["computed"](), tmp_path, name="plain", precision=precision).state == 0


def test_the_error_of_single_compares_its_outputs_with_double(gcc, tmp_path):
    """Over recorded calls of both libraries in C: the largest difference in any port, relative to its largest number."""
    law, m = LAWS["cascade"]()
    random = np.random.default_rng(6)
    given = {"v": random.normal(size=(60, 2)), "w": random.normal(size=(60, 1)), "y": random.normal(size=(60, 2))}
    found = {}
    for precision in ("double", "single"):
        made = pf.export(law, m, tmp_path, name=precision[0], precision=precision, vectors=given)
        step = compiled_law(gcc, tmp_path, precision[0], controller(law, m), precision)
        calls = [step({name: x[k] for name, x in given.items()})[0] for k in range(60)]
        found[precision] = {port: np.array([c[port] for c in calls]) for port in ("u", "signals")}
    off = [np.abs(found["single"][port] - x).max() / np.abs(x).max() for port, x in found["double"].items()]
    assert min(off) > 1e-9 and made.error == pytest.approx(max(off), rel=1e-12)
    assert f"differ from the law in double by at most {made.error:.1e} of the largest number" in made.files[0].read_text()


@pytest.mark.parametrize(("name", "precision"), [("integral", "double"), ("integral", "single"), ("limited", "double")])
@pytest.mark.usefixtures("measuring")
def test_the_stated_stack_is_enough(name, precision, tmp_path):
    """Without optimisation gcc needs less than the computed stack, but not much less: nested calls are counted."""
    made = pf.export(*LAWS[name](), tmp_path, name="law", precision=precision)
    texts = {f.name: f.read_text() for f in made.files}
    plain = measured_stack(texts, "law", ("-O0", "-DPLAIN_SQRT"))
    assert made.measured_stack <= plain <= made.stack <= 2 * plain, (made, plain)
    assert re.search(rf"{made.stack} bytes of stack at most", texts["law.h"])


def position_filter(samples=64):
    """Filter of the position by an IMU at 200 Hz and late fixes, with a buffer of samples. [konz25 5.4.3]"""
    start = estimation.flight_memory(np.zeros(3), [0, 0, 0, 1], samples, known=True)._asdict()
    names = {what: [f"{what} {i}" for i in range(n)] for what, n in (("felt", 3), ("rate", 3), ("place", 3), ("turn", 4))}

    def step(s):
        felt, rate, place, turn = (ca.vertcat(*[s[name] for name in group]) for group in names.values())
        memory = estimation.FlightMemory(s["estimate"], s["samples"], s["fixes"])
        here = estimation.fix_step(memory, estimation.Fix(place, turn, s["age"], s["came"]), PERIOD)
        there = estimation.imu_step(here, felt, rate, PERIOD)
        return Command(NOTHING, signals={"place": there.estimate[:3, 0]}, d_next=there._asdict())

    return control.discrete(
        step, PERIOD, state=start, inputs=[*(name for group in names.values() for name in group), "age", "came"]
    )


@pytest.mark.usefixtures("measuring")
def test_a_filter_of_many_samples_needs_little_stack(tmp_path):
    """With 64 samples, in double and without optimisation: samples are in the state, intermediate values in the work array."""
    made = pf.export(position_filter(), FREE, tmp_path, name="law")
    texts = {f.name: f.read_text() for f in made.files}
    plain = measured_stack(texts, "law", ("-O0", "-DPLAIN_SQRT"))
    assert plain <= made.stack < 4000 and made.measured_stack < 2000
    words = rf"{made.state} bytes of state; {made.stack} bytes of stack at most\s.*; {made.work} bytes of work"
    assert made.state > 8 * 19 * 64 and re.search(words, texts["law.h"])
