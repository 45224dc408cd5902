"""A law in C99 gives the bits of the law in Python: on recorded calls, and in a flight."""

import re

import casadi as ca
import numpy as np
import pytest

import pfaffian as pf
from pfaffian import control
from pfaffian.control import Command
from pfaffian.embedded.controller import controller
from pfaffian.errors import ModelError
from pfaffian.kernel.functions.transcendental import EXP
from pfaffian.viewer.laws import PARTS
from pfaffian.viewer.run_study import folder, load
from tests.embedded.conftest import compiled_law, run_written_test
from tests.loops_cut_anywhere import FOUR_BAR, linkage

STEP = 1e-3
NOTHING = ca.SX(0, 1)
pm = pf.forces.pseudo_matrix


def arm():
    """Two links in a plane, with names that must not reach C and a mass that is a parameter."""
    mass = pf.Parameter("payload */ ü \\", 1.5, "kg")
    bodies = [pf.body("upper", 2.0, com=(0.4, 0, 0), inertia=0.1), pf.body("lower", mass, com=(0.3, 0, 0), inertia=0.05)]
    joints = [
        pf.joint("shoulder", "revolute", "world", "upper", axis=(0, 1, 0)),
        pf.joint('elbow"??/', "revolute", "upper", "lower", placement=(0.8, 0, 0), axis=(0, 1, 0)),
    ]
    motors = [pf.actuator(f"motor {j.name}", j.name) for j in joints]
    return pf.mechanism("arm", bodies, joints, actuators=motors, parameters=[mass])


def pvtol():
    """A planar body with two thrusts that cannot pull."""
    motors = [
        pf.forces.thruster(n, "b", axis=(x * 0.2, 0.98, 0), point=(x * 0.08, 0, 0), limits=(0.0, 9.0))
        for n, x in (("right", 1), ("left", -1))
    ]
    body, joint = pf.body("b", 1.0, inertia=0.02), pf.joint("j", "planar", "world", "b")
    return pf.mechanism("pvtol", [body], [joint], gravity=(0, -9.81, 0), actuators=motors)


ARM, PVTOL = arm(), pvtol()
X0 = {"arm": ([0.1, -0.2], [0.3, 0.1]), "pvtol": ([0.6, 0.5, 1.2], [0.0, 0.0, 0.0])}


def computed():
    """Computed torque, a law without memory."""
    goal = control.polynomial([0.2, -0.3], [1.0, 0.5], 0.4)
    return control.computed_torque(control.whole(ARM), goal, stiffness=60, damping=15)


def integral():
    """Law in continuous time with an integral, a reaction, a fault, a parameter and elementary functions."""

    def law(T, z, w, y):
        e = T.q - ca.vertcat(1.0, 0.5)
        u = -40 * e - 8 * T.v - 300 * ca.exp(-(z**2)) * ca.tanh(z) - 0.01 * y
        u += ca.vertcat(T.mechanism.p_symbols[0], ca.sqrt(1 + ca.fmod(T.t, 0.3)))
        return Command(u, z_dot=e, faults=ca.sumsqr(z) > 4)

    return control.Control(law, z=(0.1, -0.2), faults=("wound up",))


def estimating(s):
    """Filter that estimates speeds from late and noisy angles, with a fault where they grow too large."""
    speed = s["speed"] + 0.006 * s["bend"] + 0.4 * (s["angles"] - s["angle"])
    angle = s["angle"] + 0.006 * s["speed"]
    return Command(
        NOTHING,
        signals={"slow": ca.sin(speed[0]), "no*\n#error \\": angle},
        d_next={"angle": angle, "speed": speed, "bend": 0.9 * s["bend"] + ca.atan2(speed, 1 + angle**2)},
        faults=ca.sumsqr(speed) > 1e4,
    )


def driving(s):
    return Command(-ca.vertcat(20 * s["slow"] + s["wish"], 12 * s.terms.v[1]) - 0.1 * s.u, faults=s["slow"] > 5)


def cascade(noise=0.01):
    """Two laws at two rates, each with a latency, with a noisy sensor, an input of the run, and a signal between them."""
    outer = control.discrete(
        estimating,
        0.006,
        phase=0.002,
        latency=1,
        state={"angle": [0, 0], "speed": [0.1, 0], "bend": [0, 0]},
        measure={"angles": control.sensor(lambda k: k.q, noise, latency=1, unit="rad")},
        gives=["slow"],
        faults=["runs away"],
    )
    inner = control.discrete(driving, 0.002, latency=2, start=[0.5, 0], inputs=["slow", "wish"], faults=["too fast"])
    return control.several(outer=outer, inner=inner)


def limited():
    """Tracking within limits, whose quadratic program is a loop in C."""
    x = control.hover_placement([-3] * 4, coupling_length=0.05)
    pair = control.pair(
        "b",
        inertia=pm(x.mass, (0, x.s, 0), x.inertia),
        damping=pm(x.damping, (0, x.h, 0)),
        stiffness=pm(x.stiffness, (0, x.h, 0), x.moment),
    )
    return control.discrete(control.prototype_tracking([pair], control.set_point([0, 0, 0]), limits="actuators"), 0.004)


def forward(s):
    """Inputs that vary with time and configuration."""
    return Command(ca.vertcat(ca.sin(3 * s.terms.t), s.terms.q[0]))


LAWS = {
    "computed": lambda: (control.discrete(computed(), 0.002), ARM),
    "integral": lambda: (control.discrete(integral(), 0.004), ARM),
    "cascade": lambda: (cascade(), ARM),
    "limited": lambda: (limited(), PVTOL),
}


@pytest.mark.parametrize("precision", ["double", "single"])
@pytest.mark.parametrize("name", ["computed", "integral", "cascade"])
def test_the_exported_test_passes_and_compiles_without_a_warning(name, precision, gcc, tmp_path):
    law, m = LAWS[name]()
    made = pf.export(law, m, tmp_path, name=name, precision=precision)
    assert [f.name for f in made.files] == [f"{name}.h", f"{name}.c", f"{name}_test.c"]
    for flags in (["-O2"], ["-O0", "-DPLAIN_SQRT"], ["-O3", "-march=native", "-ffp-contract=fast"]):
        done = run_written_test(gcc, tmp_path, name, *flags)
        assert done.returncode == 0 and done.stdout.rstrip().endswith(", 0 of them wrong"), done.stdout
    assert (made.error == 0) == (precision == "double") and made.error < 1e-4
    assert all(f.read_bytes().endswith(b"\n") for f in made.files)  # C requires a newline at the end


def test_the_quadratic_program_is_a_loop(gcc, tmp_path):
    law, m = LAWS["limited"]()
    made = pf.export(law, m, tmp_path, name="limited")
    done = run_written_test(gcc, tmp_path, "limited", "-O2")
    assert done.returncode == 0, done.stdout
    text = made.files[1].read_text()
    (turns,) = re.findall(r"for \(int k = 0; k < (\d+); k\+\+\) \{\n    p\d+\(", text)
    assert int(turns) > 10 and len(text.splitlines()) < made.operations / 4
    floats = pf.export(law, m, tmp_path, name="limited_f", precision="single")
    assert run_written_test(gcc, tmp_path, "limited_f", "-O2").returncode == 0 and floats.error < 1e-5


def test_a_law_that_fails_in_floats_is_refused(tmp_path):
    """It relies on digits that floats do not have."""

    def fine(s):
        return Command(-s.terms.q, faults=1 + 1e-9 * (1 + ca.sumsqr(s.terms.q)) <= 1)

    law = control.discrete(fine, 0.01, faults=["too coarse"])
    words = r"the law fails in floats but not in doubles \(too coarse\) in 100% of 32 draws; export it in double"
    with pytest.raises(ModelError, match=words):
        pf.export(law, ARM, tmp_path, name="fine", precision="single")


def test_the_exported_test_detects_small_errors(gcc, tmp_path):
    """Errors are in the last digits of a coefficient of an elementary function, in a sign, and in a lost state."""
    law, m = LAWS["integral"]()
    pf.export(law, m, tmp_path, name="wrong")
    whole = (tmp_path / "wrong.c").read_text()
    coefficient = EXP[1]
    for right, broken in (
        (coefficient.hex(), (coefficient + 32 * float(np.spacing(coefficient))).hex()),
        ("x[0] = in->t;", "x[0] = -in->t;"),
        ("state->d[0] = x[", "state->d[1] = x["),
    ):
        assert right in whole, right
        (tmp_path / "wrong.c").write_text(whole.replace(right, broken))
        done = run_written_test(gcc, tmp_path, "wrong", "-O1")
        assert done.returncode == 1 and not done.stdout.rstrip().endswith(", 0 of them wrong")


def test_the_stack_is_measured_when_it_is_read(tmp_path, monkeypatch):
    """Compiling the source takes far longer than writing it."""
    compiled = []
    monkeypatch.setattr("pfaffian.embedded.export.measured_stack", lambda texts, name: compiled.append(name) or 100)
    made = pf.export(*LAWS["computed"](), tmp_path, name="lazy")
    assert not compiled
    assert [made.measured_stack, made.measured_stack] == [100, 100] and compiled == ["lazy"]


# -- the same flight -------------------------------------------------------------------------------------------------------


def in_python(step, period, more_inputs):
    """The compiled law as a law in Python; `more_inputs` gives the inputs other than t, q and v."""

    def law(t, q, v):
        out, status = step({"t": t, "q": q, "v": v, **more_inputs(t, q, v)})
        assert status == 0
        return out["u"]

    return control.python_law(law, period)


def late_angles(t, q, v, seen):
    """Inputs: the value of a sensor that samples at 2, 8, 14 ms and is a period late; and the wish."""
    if round(t / STEP) % 6 == 2:
        seen.append(q)
    return {"y": seen[-2] if len(seen) > 1 else np.zeros(2), "w": [0.7]}


@pytest.mark.parametrize("name", ["computed", "cascade", "limited"])
def test_the_same_flight(name, gcc, tmp_path):
    """Latencies, two rates, a state and the quadratic program are in C; the sensor is computed in Python, without noise."""
    law, m = (cascade(noise=0), ARM) if name == "cascade" else LAWS[name]()
    how = {"duration": 0.5, "step": STEP, "every": 3, "backend": "numpy"}
    flown = pf.run(m, *X0[m.name], control=law, u={"wish": 0.7} if name == "cascade" else None, **how)
    pf.export(law, m, tmp_path, name=name)
    c, seen = controller(law, m), []
    more_inputs = (lambda t, q, v: late_angles(t, q, v, seen)) if name == "cascade" else (lambda *_: {})
    again = pf.run(m, *X0[m.name], control=in_python(compiled_law(gcc, tmp_path, name, c), c.tick, more_inputs), **how)
    assert int(flown.status) == int(again.status) == 0
    assert name != "limited" or flown.limit_active.values.any()
    for signal in ("q", "v", "u"):
        assert np.array_equal(flown[signal].values.view(np.int64), again[signal].values.view(np.int64)), signal


@pytest.mark.usefixtures("measuring")
def test_the_thesis_quadcopter_flies_the_same_loop(gcc, tmp_path):
    """The law at 200 Hz in C flies the loop of the study, upside down and back: not one bit differs. [konz25 5.6]"""
    study = load("konz-quadcopter", folder(), PARTS)
    law, m = study.law(), study.mechanism()
    made = pf.export(law, m, tmp_path, name="quadcopter")
    assert run_written_test(gcc, tmp_path, "quadcopter").returncode == 0
    assert made.operations < 3500 and made.state == 0 and made.measured_stack < made.stack < 20_000
    duration = study.TIMES["looping"]
    reference = control.turning_series(study.paths()["looping"], duration, study.STEP)
    start = np.array([0, 0, 0, 0, 0, 0, 1.0]), np.zeros(6)
    how = {"duration": duration, "step": study.STEP, "every": 2}
    flown = pf.run(m, *start, control=law, u=reference, u_step=study.STEP, hold="linear", **how)
    c = controller(law, m)
    more_inputs = lambda t, q, v: {"w": reference[round(t / study.STEP)]}  # noqa: E731
    again = pf.run(m, *start, control=in_python(compiled_law(gcc, tmp_path, "quadcopter", c), c.tick, more_inputs), **how)
    turned = 1 - 2 * (flown.q.values[:, 3] ** 2 + flown.q.values[:, 4] ** 2)
    assert turned.min() < -0.99 and flown.sizes["time"] > 600
    for signal in ("q", "v", "u"):
        assert np.array_equal(flown[signal].values.view(np.int64), again[signal].values.view(np.int64)), signal


@pytest.mark.usefixtures("measuring")
def test_the_whole_flight_agent_is_exported(gcc, tmp_path):
    """Observers, filter with late measurements, tracking within limits and force control: the whole agent. [konz25 fig. 5.5]"""
    study = load("konz-flight", folder(), PARTS)
    made = pf.export(study.law(), study.mechanism(), tmp_path, name="flight")
    assert run_written_test(gcc, tmp_path, "flight").returncode == 0
    assert made.operations < 40_000 and made.state < 2000 and made.measured_stack < made.stack < 32_000


def test_an_exported_law_names_a_closure(gcc, tmp_path):
    def law(s):
        k = s.terms.kinematics
        return control.Command(-0.3 * k.joint("C") - 0.1 * k.joint_rate("C") - s.terms.f[0] / 10)

    m = linkage(FOUR_BAR, "C", {"C": {"stiffness": 2.0, "damping": 0.5}}, actuators=[pf.actuator("motor", "C")])
    pf.export(control.discrete(law, 0.01), m, tmp_path, name="hold")
    done = run_written_test(gcc, tmp_path, "hold")
    assert done.returncode == 0, done.stdout + done.stderr
