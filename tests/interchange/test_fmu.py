"""Machines as FMUs: the same bits as a run, rates beside the library's own, and everything that an importer may do wrong."""

from __future__ import annotations

import subprocess
import sys
import time
import zipfile
from pathlib import Path
from xml.etree import ElementTree

import casadi as ca
import numpy as np
import pytest

import pfaffian as pf
from pfaffian import control
from tests.interchange.importer import ERROR, OK, Importer
from tests.odd_names import odd_names
from tests.tolerance import DERIVATIVE, SATISFIED

STEP, STEPS = 0.005, 40

INTEGRATED = 1e-6
"""Difference of a run and of an integration by an importer with a relative tolerance of 1e-9 over half a second: above what it
lets grow, below any wrong term."""


def loop() -> tuple[pf.Mechanism, dict[str, float]]:
    """A four-bar with a motor and a tunable mass, and a start on its closure."""
    mass = pf.Parameter("rocker mass", 1.5, "kg")
    bodies = [
        pf.body("crank", 1.0, com=(0.2, 0, 0)),
        pf.body("coupler", 1.2, com=(0.5, 0, 0)),
        pf.body("rocker", mass, com=(0.4, 0, 0)),
    ]
    axis = {"axis": (0, 1, 0)}
    joints = [
        pf.joint("a", "revolute", "world", "crank", **axis),
        pf.joint("b", "revolute", "crank", "coupler", placement=pf.pose((0.4, 0, 0)), **axis),
        pf.joint("c", "revolute", "coupler", "rocker", placement=pf.pose((1.0, 0, 0)), **axis),
    ]
    end = pf.closure(
        "d", "revolute", "rocker", "world", placement_a=pf.pose((0.8, 0, 0)), placement_b=pf.pose((0.9, 0, 0)), **axis
    )
    return pf.mechanism("loop", bodies, joints, constraints=[end], actuators=[pf.actuator("motor", "a")], parameters=[mass]), {
        "a": -1.0
    }


def cart() -> pf.Mechanism:
    slide = pf.joint("x", "prismatic", "world", "cart", axis=(1, 0, 0))
    hinge = pf.joint("swing", "revolute", "cart", "rod", axis=(0, 1, 0))
    bodies = [pf.body("cart", 2.0), pf.body("rod", 1.0, com=(0, 0, -0.5), inertia=0.1)]
    return pf.mechanism("cart", bodies, [slide, hinge], actuators=[pf.actuator("push", "x")])


def same(importer: Importer, result: object, m: pf.Mechanism, i: int) -> None:
    """Assert that the variables of an importer are the record i of a run, to the bit."""
    for signal, names in (("q", m.q_names), ("v", m.v_names)):
        np.testing.assert_array_equal(importer.get(*[f"{signal}.{n}" for n in names]), result[signal].values[i])
    np.testing.assert_array_equal(importer.get("energy"), result["energy"].values[i])


def test_closed_loop_gives_the_bits_of_a_run_and_goes_on_from_a_saved_state(tmp_path: Path) -> None:
    m, q = loop()
    made = pf.fmu(m, tmp_path / "loop.fmu", q=q, step=STEP)
    u, p = 3.0, {"rocker mass": 1.5}
    result = pf.run(m, q, u={"motor": u}, parameters=p, duration=STEPS * STEP, step=STEP)
    it = Importer(made.file, tmp_path / "at")
    assert it.start(**{"input.motor": u}) == OK
    same(it, result, m, 0)
    for k in range(0, STEPS, 4):
        if k == STEPS // 2:
            saved = it.saved()
        assert it.step(k * STEP, 4 * STEP) == OK
    same(it, result, m, STEPS)
    assert it.restore(saved) == OK
    same(it, result, m, STEPS // 2)
    assert it.step(STEPS / 2 * STEP, STEPS / 2 * STEP) == OK
    same(it, result, m, STEPS)
    assert it.restore(saved[:-1]) == it.restore(b"x" + saved[1:]) == ERROR


def test_parameters_and_starts_of_an_importer_are_put_onto_the_constraints(tmp_path: Path) -> None:
    m, q = loop()
    it = Importer(pf.fmu(m, tmp_path / "loop.fmu", q=q, step=STEP).file, tmp_path / "at")
    assert it.start(**{"q.b": it.get("q.b")[0] + 0.05, "parameter.rocker mass": 2.0}) == OK
    assert it.get("violation")[0] < SATISFIED
    at = it.get(*[f"q.{n}" for n in m.q_names])
    assert it.step(0.0, STEP) == OK
    ahead = pf.run(m, at, parameters={"rocker mass": 2.0}, duration=STEP, step=STEP)
    np.testing.assert_allclose(it.get(*[f"v.{n}" for n in m.v_names]), ahead["v"].values[-1], atol=SATISFIED)
    assert it.set("q.b", 0.0) == ERROR and "cannot be set now" in it.messages[-1]


def test_sampled_law_and_events_give_the_bits_of_a_run(tmp_path: Path) -> None:
    m = cart()
    law = control.discrete(lambda s: control.Command(-8 * s.terms.q[:1] - 3 * s.terms.v[:1]), 3 * STEP)
    made = pf.fmu(m, tmp_path / "cart.fmu", q={"swing": 0.4}, v={"x": 0.5}, control=law, step=STEP)
    result = pf.run(m, {"swing": 0.4}, {"x": 0.5}, control=law, duration=STEPS * STEP, step=STEP)
    it = Importer(made.file, tmp_path / "at")
    assert it.start() == OK
    for k in range(STEPS):
        same(it, result, m, k)
        assert it.step(k * STEP, STEP) == OK
    same(it, result, m, STEPS)

    caught = pf.Parameter("caught", 0.0)
    catch = pf.constraints.active_while(pf.nonholonomic("catch", lambda k: k.v[0]), lambda k: caught > 0.5)
    stopped = pf.mechanism("stopped", m.bodies, m.joints, constraints=[catch], parameters=[caught])
    switches = {"caught": lambda k: ca.if_else(k.q[0] > 0.1234, 1, caught)}
    result = pf.run(stopped, v={"x": 1.0}, switches=switches, duration=60 * STEP, step=STEP)
    made = pf.fmu(stopped, tmp_path / "s.fmu", v={"x": 1.0}, switches=switches, step=STEP)
    assert "caught" in made.variables and "parameter.caught" not in made.variables
    it = Importer(made.file, tmp_path / "stopped")
    assert it.start() == OK and it.step(0.0, 60 * STEP) == OK
    same(it, result, stopped, 60)
    assert it.get("caught") == 1.0
    it.reference["hidden"] = 1  # without inputs, the place of the first parameter, which the run itself switches
    assert it.set("hidden", 0.0) == ERROR and "cannot be set now" in it.messages[-1]


def test_rates_and_their_derivatives_are_those_of_the_library(tmp_path: Path) -> None:
    m = cart()
    it = Importer(pf.fmu(m, tmp_path / "cart.fmu", kind="model exchange").file, tmp_path / "at")
    q, v, u = np.array([0.3, 0.7]), np.array([-0.4, 1.1]), 2.5
    assert it.start(**{"input.push": u}) == OK and it.move([*q, *v]) == OK
    rate = it.states(4, "ContinuousStateDerivatives")
    np.testing.assert_array_equal(rate[:2], v)
    d = pf.derivatives(m, q, v, [u])
    np.testing.assert_allclose(rate[2:], pf.forward_dynamics(m, q, v, [u]).v_dot, atol=DERIVATIVE * 20)
    exact = np.hstack([d.v_dot.q, d.v_dot.v, d.v_dot.u])
    knowns, rates = ["q.x", "q.swing", "v.x", "v.swing", "input.push"], ["der(v.x)", "der(v.swing)"]
    found = np.array([it.products("Directional", rates, knowns, e) for e in np.eye(5)]).T
    np.testing.assert_allclose(found, exact, atol=DERIVATIVE * 20)
    back = np.array([it.products("Adjoint", rates, knowns, e) for e in np.eye(2)])
    np.testing.assert_allclose(back, exact, atol=DERIVATIVE * 20)
    assert it.products("Directional", ["q.swing"], ["q.x", "q.swing"], np.array([1.0, 2.0])) == 2.0


def test_state_that_has_left_the_constraints_is_put_back_in_an_event(tmp_path: Path) -> None:
    import ctypes

    m, q = loop()
    it = Importer(pf.fmu(m, tmp_path / "loop.fmu", q=q, kind="model exchange").file, tmp_path / "at")
    assert it.start() == OK
    n, event, end = 2 * m.nq, ctypes.c_bool(), ctypes.c_bool()
    arguments = ctypes.c_bool(True), ctypes.byref(event), ctypes.byref(end)
    assert it.call("CompletedIntegratorStep", *arguments) == OK and not event
    x = it.states(n)
    assert it.move(x + 1e-5) == OK and it.call("CompletedIntegratorStep", *arguments) == OK and event
    flags, following = [ctypes.c_bool() for _ in range(5)], ctypes.c_double()
    assert it.call("UpdateDiscreteStates", *map(ctypes.byref, flags), ctypes.byref(following)) == OK
    assert flags[3] and not (flags[0] or flags[1] or flags[2] or flags[4])
    assert it.get("violation")[0] < SATISFIED and it.get("velocity_violation")[0] < SATISFIED


def test_faults_and_misuse_are_told_through_the_log(tmp_path: Path) -> None:
    slide = pf.joint("x", "prismatic", "world", "box", axis=(1, 0, 0), stiffness=-1e9)
    m = pf.mechanism("unstable", [pf.body("box", 1.0)], [slide])
    made = pf.fmu(m, tmp_path / "f.fmu", v={"x": 1.0}, step=0.01)
    it = Importer(made.file, tmp_path / "at")
    assert it.step(0.0, 0.01) == ERROR and "initialised" in it.messages[-1]
    assert it.start() == OK
    assert it.step(0.0, 0.015) == ERROR and "whole number of steps of 0.01" in it.messages[-1]
    assert it.step(0.5, 0.01) == ERROR and "time that was reached" in it.messages[-1]
    assert it.set("q.x", float("nan")) == ERROR and "not finite" in it.messages[-1]
    assert it.step(0.0, 1.0) == ERROR and it.messages[-1].startswith("diverged")
    assert np.isfinite(it.get("q.x", "v.x")).all() and 0 < it.get("time")[0] < 1.0
    assert not Importer(made.file, tmp_path / "other", token="{another}").at.value


def test_odd_names_stay_names(tmp_path: Path) -> None:
    names = [n for n in odd_names()[::9] if n.strip()][:24]
    joints = [
        pf.joint(n, "prismatic", "world" if i == 0 else f"b{i - 1}", f"b{i}", axis=(1, 0, 0)) for i, n in enumerate(names)
    ]
    m = pf.mechanism('../<con>"&', [pf.body(f"b{i}", 1.0) for i in range(len(names))], joints)
    for version in ("3.0", "2.0"):
        made = pf.fmu(m, tmp_path / "odd.fmu", version=version)
        with zipfile.ZipFile(made.file) as archive:
            files = archive.namelist()
            root = ElementTree.fromstring(archive.read("modelDescription.xml"))
        assert all(
            set(part) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.") and part.strip(".")
            for f in files
            for part in f.split("/")
        )
        listed = [v.get("name") for v in root.find("ModelVariables")]
        assert len(set(listed)) == len(listed) and {f"q.{n}" for n in m.q_names} <= set(listed)


def test_same_machine_gives_the_same_bytes_and_nothing_else(tmp_path: Path) -> None:
    first, again = (pf.fmu(cart(), tmp_path / f"{n}.fmu").file.read_bytes() for n in "ab")
    assert first == again
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.fmu", "b.fmu"]


def test_a_level_of_processors_changes_the_binary_and_no_bit(tmp_path: Path) -> None:
    m, q = loop()
    found = []
    for processor in ("x86-64", "x86-64-v3"):
        made = pf.fmu(m, tmp_path / f"{processor}.fmu", q=q, step=STEP, processor=processor)
        it = Importer(made.file, tmp_path / processor)
        if it.at.value:
            assert it.start(**{"input.motor": 3.0}) == OK and it.step(0.0, STEPS * STEP) == OK
            found.append(it.get("q.a", "v.a", "energy"))
        else:
            assert "level x86-64-v3" in it.messages[-1]
    assert all((x == found[0]).all() for x in found)


def test_a_killed_export_leaves_no_half_file(tmp_path: Path) -> None:
    code = (
        "import sys, pfaffian as pf; slide = pf.joint('x', 'prismatic', 'world', 'cart', axis=(1, 0, 0));"
        "m = pf.mechanism('cart', [pf.body('cart', 2.0)], [slide]); print('ready', flush=True);"
        f"[pf.fmu(m, {str(tmp_path / 'a.fmu')!r}, v=[k]) for k in range(1000)]"
    )
    for wait in (0.1, 0.7):
        with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
            assert process.stdout is not None and process.stdout.readline() == b"ready\n"
            time.sleep(wait)
            process.kill()
        for file in tmp_path.glob("*.fmu"):
            with zipfile.ZipFile(file) as archive:
                assert archive.testzip() is None and "modelDescription.xml" in archive.namelist()


def test_wrong_arguments_are_refused(tmp_path: Path) -> None:
    m, out = cart(), tmp_path / "no.fmu"
    for wrong, words in (
        ({"kind": "both"}, "kind"), ({"version": "1.0"}, "version"), ({"platforms": ["vax"]}, "platform"),
        ({"platforms": []}, "platforms is empty"), ({"step": 0}, "step"), ({"q": [[0, 0], [0, 1]]}, "for 2 runs"),
        ({"processor": "vax"}, "processor"), ({"platforms": type}, "platforms: a list of names"), ({"seed": {}}, "seed"),
        ({"record": ca.MX.sym("x")}, "record must be a list"),
    ):  # fmt: skip
        with pytest.raises(pf.ModelError, match=words):
            pf.fmu(m, out, **wrong)
    assert not out.exists()


def test_casadi_imports_rates_and_their_derivatives(tmp_path: Path) -> None:
    m, q = loop()
    made = pf.fmu(m, tmp_path / "loop.fmu", q=q, v={"a": 2.0}, kind="model exchange")
    with zipfile.ZipFile(made.file) as archive:
        archive.extractall(tmp_path / "at")
    dae = ca.DaeBuilder("loop", str(tmp_path / "at"))
    names = [f"{part}.{n}" for part in "qv" for n in m.q_names]
    assert dae.x() == names and dae.u() == ["input.motor"]
    f, x, u = dae.create("f", ["x", "u"], ["ode"]), np.array(dae.start(dae.x())), 3.0
    d = pf.derivatives(m, x[:3].ravel(), x[3:].ravel(), [u])
    size = np.abs(np.hstack([d.v_dot.q, d.v_dot.v])).max()
    np.testing.assert_allclose(np.array(f(x, u)).ravel()[3:], d.motion.v_dot, atol=DERIVATIVE * size)
    by_x, by_u = (np.array(J)[3:] for J in f.jacobian()(x, u, 0))
    np.testing.assert_allclose(by_x, np.hstack([d.v_dot.q, d.v_dot.v]), atol=DERIVATIVE * size)
    np.testing.assert_allclose(by_u, d.v_dot.u, atol=DERIVATIVE * size)


def test_dependencies_are_those_of_the_equations(tmp_path: Path) -> None:
    with zipfile.ZipFile(pf.fmu(cart(), tmp_path / "cart.fmu", kind="model exchange").file) as archive:
        root = ElementTree.fromstring(archive.read("modelDescription.xml"))
    name = {v.get("valueReference"): v.get("name") for v in root.find("ModelVariables")}
    of = {
        name[u.get("valueReference")]: {name[r] for r in u.get("dependencies").split()}
        for u in root.iter("ContinuousStateDerivative")
    }
    assert of["der(q.x)"] == {"v.x"} and of["der(q.swing)"] == {"v.swing"}
    assert of["der(v.x)"] == {"q.swing", "v.swing", "input.push"}


@pytest.mark.parametrize("version", ["3.0", "2.0"])
@pytest.mark.parametrize("kind", ["co-simulation", "model exchange"])
def test_fmpy_accepts_and_simulates(tmp_path: Path, kind: str, version: str) -> None:
    fmpy = pytest.importorskip("fmpy")
    from fmpy.validation import validate_fmu

    m, q = loop()
    file = str(pf.fmu(m, tmp_path / "loop.fmu", q=q, step=STEP, kind=kind, version=version).file)
    assert validate_fmu(file) == []
    how = {"stop_time": 0.5, "step_size": STEP, "output_interval": STEP, "relative_tolerance": 1e-9}
    found = fmpy.simulate_fmu(file, start_values={"input.motor": 3.0}, **how)
    times = STEP * np.arange(len(set(np.round(found["time"] / STEP))))
    steps = {"accuracy": 1e-10, "times": times} if kind == "model exchange" else {"duration": 0.5, "step": STEP}
    result = pf.run(m, q, u={"motor": 3.0}, **steps)
    rows = np.flatnonzero(np.diff(np.append(found["time"], np.inf)) > STEP / 2)  # the last row of each instant
    values = np.stack([found[f"q.{n}"][rows] for n in m.q_names], axis=1)
    assert found["violation"][rows].max() < SATISFIED
    np.testing.assert_allclose(values, result["q"].values, rtol=0, atol=0 if kind == "co-simulation" else INTEGRATED)
