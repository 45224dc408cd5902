"""Machines whose equations change with their motion, as FMUs for model exchange: an importer locates the events of a run."""

from __future__ import annotations

import ctypes
from pathlib import Path

import casadi as ca
import numpy as np
import pytest

import pfaffian as pf
from tests.interchange.importer import ERROR, OK, Importer
from tests.tolerance import SATISFIED

INTEGRATED = 1e-6
"""Difference of a run to an accuracy of 1e-9 and of an integration with the proposed relative tolerance of 1e-10, after three
events: each makes the errors before it a few times larger."""

EVERY = 0.11
"""Time between records [s]; no event falls onto one."""


def train(edge: float = 0.3) -> tuple[pf.Mechanism, dict[str, object]]:
    """Two wagons that couple where the second one stands at `edge`, and whose brake acts from a speed on until another one."""
    brake = pf.Parameter("brake", 0.0)
    rails = [pf.joint(n, "prismatic", "world", f"wagon {n}", axis=(1, 0, 0)) for n in "ab"]
    couple = pf.constraints.active_while(pf.nonholonomic("couple", lambda k: k.v[1] - k.v[0]), lambda k: k.q[1] > edge)
    drag = pf.forces.generalised_force("drag", lambda k: -3 * brake, joint="b")
    bodies = [pf.body("wagon a", 1.0), pf.body("wagon b", 2.0)]
    m = pf.mechanism(
        "train", bodies, rails, constraints=[couple], forces=[drag], parameters=[brake], actuators=[pf.actuator("engine", "b")]
    )
    return m, {"brake": lambda k: ca.if_else(k.v[1] > 0.9, 1, ca.if_else(k.v[1] < 0.8, 0, brake))}


def ball() -> tuple[pf.Mechanism, dict[str, object]]:
    """A ball that falls onto a curved floor and rebounds."""
    slides = [
        pf.joint("x", "prismatic", "world", "cross", axis=(1, 0, 0)),
        pf.joint("z", "prismatic", "cross", "ball", axis=(0, 0, 1)),
    ]
    floor = pf.forces.rebound("floor", lambda k: k.q[1] - 0.1 * ca.sin(k.q[0]), 0.8)
    return pf.mechanism("ball", [pf.body("cross", 0.1), pf.body("ball", 1.0)], slides, forces=[floor]), {}


@pytest.mark.parametrize(("make", "start", "u"), [(train, {}, 2.0), (ball, {"q": {"z": 1.0, "x": 0.2}, "v": {"x": 0.4}}, None)])
def test_an_importer_finds_the_events_of_a_run(tmp_path: Path, make: object, start: dict[str, object], u: float | None) -> None:
    fmpy = pytest.importorskip("fmpy")
    m, switches = make()
    made = pf.fmu(m, tmp_path / "a.fmu", kind="model exchange", version="2.0", switches=switches, **start)
    names, push = [*[f"q.{n}" for n in m.q_names], *[f"v.{n}" for n in m.v_names]], {} if u is None else {"input.engine": u}
    how = {"stop_time": 18 * EVERY, "output_interval": EVERY, "record_events": False}  # by the tolerance that the FMU proposes
    found = fmpy.simulate_fmu(str(made.file), output=names, start_values=push, **how)
    exact = pf.run(
        m, **start, u=u and {"engine": u}, times=found["time"], accuracy=1e-9, switches=switches, backend="interpreter"
    )
    assert len(pf.events(exact)["name"]) >= 3
    for k, values in enumerate([*exact["q"].values.T, *exact["v"].values.T]):
        np.testing.assert_allclose(found[names[k]], values, rtol=0, atol=INTEGRATED)


def test_what_follows_an_event_is_told_by_the_motion(tmp_path: Path) -> None:
    m, switches = train(edge=0.5)
    it = Importer(pf.fmu(m, tmp_path / "a.fmu", kind="model exchange", switches=switches, v={"b": 0.6}).file, tmp_path / "at")
    assert it.start() == OK and it.event() is None
    assert it.move([0.0, 0.5, 0.0, 0.6]) == OK and it.event() is None  # at its edge a condition still fails
    q, v = np.split(it.states(4), 2)
    np.testing.assert_allclose([*q, *v], [0.0, 0.5, 0.4, 0.4], rtol=0, atol=1e-9)  # 2 * 0.6 = 3 * 0.4: momentum is shared
    assert it.event() is None
    np.testing.assert_array_equal(it.states(4), [*q, *v])  # nothing happens twice

    wants, ends = ctypes.c_bool(), ctypes.c_bool()
    after = lambda: it.call("CompletedIntegratorStep", ctypes.c_bool(True), ctypes.byref(wants), ctypes.byref(ends))  # noqa: E731
    assert it.move([0.6, 0.7, 0.8, 0.8]) == OK and after() == OK and not wants
    assert it.move([0.6, 0.7, 1.0, 1.0]) == OK and after() == OK and wants  # an importer that missed the event
    assert it.get("brake")[0] == 0 and it.event() is None and it.get("brake")[0] == 1
    assert it.states(4, "ContinuousStateDerivatives")[2:] == pytest.approx([-1.0, -1.0])
    assert it.move([0.6, 0.7, 0.3, 0.3]) == OK and it.event() is None
    assert it.get("brake")[0] == 1  # a parameter jumps once at an instant
    saved = it.saved()
    assert it.call("SetTime", ctypes.c_double(0.1)) == OK and it.event() is None and it.get("brake")[0] == 0
    assert it.restore(saved) == OK and it.get("brake")[0] == 1


def test_a_parameter_whose_switch_is_due_at_the_start_has_jumped_there(tmp_path: Path) -> None:
    m, switches = train()
    how = {"switches": switches, "v": {"b": 1.0}, "step": 1e-3}
    it = Importer(pf.fmu(m, tmp_path / "a.fmu", **how).file, tmp_path / "at")
    assert it.start() == OK and it.get("brake")[0] == 1 and it.step(0.0, 1e-3) == OK
    r = pf.run(m, **how, u={"engine": 0.0}, duration=1e-3, backend="interpreter")
    np.testing.assert_array_equal(it.get("v.a", "v.b"), r["v"].values[-1])


def test_what_a_run_stops_for_is_told_in_events(tmp_path: Path) -> None:
    slide = pf.joint("x", "prismatic", "world", "block", axis=(1, 0, 0))
    far = pf.constraints.active_while(pf.holonomic("far", lambda k: k.q[0] - 1), lambda k: k.t > 0.25)
    m = pf.mechanism("block", [pf.body("block", 2.0)], [slide], constraints=[far])
    it = Importer(pf.fmu(m, tmp_path / "a.fmu", kind="model exchange").file, tmp_path / "at")
    assert it.start() == OK and it.event() is None
    assert it.call("SetTime", ctypes.c_double(0.25)) == OK and it.call("EnterEventMode") == OK
    flags = [ctypes.byref(ctypes.c_bool()) for _ in range(5)]
    assert it.call("UpdateDiscreteStates", *flags, ctypes.byref(ctypes.c_double())) == ERROR
    assert "became active (active_while) away from phi = 0: far" in it.messages[-1] and abs(it.get("q.x")[0]) < SATISFIED

    drag = pf.Parameter("drag", 0.0)
    m = pf.mechanism("block", [pf.body("block", 2.0)], [slide], parameters=[drag])
    with pytest.raises(pf.ModelError, match="does not serve switches that change gradually: drag"):
        pf.fmu(m, tmp_path / "no.fmu", kind="model exchange", switches={"drag": lambda k: k.v[0] ** 2})
