"""FMUs whose steps, laws and events have instants of their own: error control inside, time events, clocks."""

from __future__ import annotations

import ctypes
from pathlib import Path

import casadi as ca
import numpy as np
import pytest

import pfaffian as pf
from pfaffian import control
from pfaffian.simulate.step.lane import lane_of
from tests.interchange.importer import ERROR, OK, Importer

ACCURACY, CALL = 1e-7, 2.0**-4
"""Of the steps; length of a communication step [s], whose multiples are exact."""

INTEGRATED = 1e-7
"""Difference of a run to an accuracy of 1e-10 and of an integration with a relative tolerance of 1e-10 over a second."""

PERIOD, PHASE = 0.07, 0.02
"""Of the law: no multiples of a communication step."""


def block(*forces: object, stiffness: float = 0.0) -> pf.Mechanism:
    """A block that is pushed along a line, on a spring with much damping."""
    slide = pf.joint("x", "prismatic", "world", "block", axis=(1, 0, 0), stiffness=stiffness, damping=stiffness / 100)
    return pf.mechanism("block", [pf.body("block", 2.0)], [slide], forces=forces, actuators=[pf.actuator("push", "x")])


def law(period: float = PERIOD, phase: float = PHASE) -> control.Control:
    """Pulls the block back, one period late."""
    return control.discrete(lambda s: control.Command(-8 * s.terms.q - 3 * s.terms.v), period, phase=phase, latency=1)


def stiff() -> tuple[pf.Mechanism, dict[str, object]]:
    """A stiff machine under a law in discrete time, with a blow that lasts shorter than a step."""
    blow = pf.forces.generalised_force("blow", lambda k: ca.if_else(abs(k.t - 0.33) < 1e-3, 50, 0))
    return block(blow, stiffness=1e6), {"control": law()}


def eventful() -> tuple[pf.Mechanism, dict[str, object]]:
    """A machine that runs into a buffer, with a drag that begins at a speed and one that follows it."""
    drag, air = pf.Parameter("drag", 0.0), pf.Parameter("air", 0.0)
    force = pf.forces.generalised_force("resistance", lambda k: -(drag + air) * k.v)
    m = block(pf.forces.stop("buffer", "x", high=0.15, stiffness=1e4, exponent=1.0), force)
    m = pf.mechanism("buffered", m.bodies, m.joints, forces=m.forces, actuators=m.actuators, parameters=[drag, air])
    return m, {"switches": {"drag": lambda k: ca.if_else(k.v[0] > 0.6, 2.0, drag), "air": lambda k: k.v[0] ** 2 / 10}}


def kinked() -> tuple[pf.Mechanism, dict[str, object]]:
    """A machine whose spring has a kink at a place that it passes."""
    return block(pf.forces.generalised_force("spring", lambda k: -40 * ca.fabs(k.q - 0.02))), {}


@pytest.mark.parametrize("make", [stiff, eventful, kinked])
def test_steps_under_error_control_have_the_bits_of_the_stepper(tmp_path: Path, make: object) -> None:
    m, how = make()
    it = Importer(pf.fmu(m, tmp_path / "a.fmu", accuracy=ACCURACY, step=CALL, v={"x": 0.5}, **how).file, tmp_path / "at")
    s = pf.stepper(m, accuracy=ACCURACY, record="lean", backend="interpreter", **how)
    s.reset(v={"x": 0.5})
    u = [2.0] * len(s.u_names)
    assert it.start(**{f"input.{name}": value for name, value in zip(s.u_names, u, strict=True)}) == OK
    seen = {stiff: ("energy", "u.push"), eventful: ("energy", "drag", "air"), kinked: ("energy",)}[make]
    # The last calls end at instants of the law, nearly.
    for n in (1, 2, 1, 3, 1, 4, 0.64 * (1 + 1e-11), *[PERIOD / CALL / 2] * 5):
        now = s.observe()
        expected = [*s.q, *s.v, *(now[name.partition(".")[0]][0] for name in seen)]
        np.testing.assert_array_equal(it.get("q.x", "v.x", *seen), expected)
        if s.t == 8 * CALL:
            saved = it.saved()
        if s.t == 12 * CALL:
            end = expected[:2]
        assert it.step(s.t, n * CALL) == OK
        s.advance(n * CALL, u=u)
    at, lane = lane_of(s._s), s.save().lane[0]
    if make is stiff:
        assert lane[at.implicit] == 1
    else:
        assert lane[at.events.total] >= 2
    assert it.restore(saved) == OK and it.step(8 * CALL, 4 * CALL) == OK
    np.testing.assert_array_equal(it.get("q.x", "v.x"), end)


def test_laws_of_two_rates_act_at_the_instants_of_the_stepper(tmp_path: Path) -> None:
    """Their common instants differ by rounding, k 0.15 and k 0.1, and calls end near these and between."""
    m, slow = block(), control.discrete(lambda s: control.Command(-2 * s.terms.v), 0.1)
    both = control.several(one=law(0.15, 0.0), two=slow)
    it = Importer(pf.fmu(m, tmp_path / "a.fmu", accuracy=ACCURACY, control=both, v={"x": 0.5}).file, tmp_path / "at")
    s = pf.stepper(m, accuracy=ACCURACY, record="lean", backend="interpreter", control=both)
    s.reset(v={"x": 0.5})
    assert it.start() == OK
    for h in (0.1, 0.1, 0.1, 0.037, 0.0625, 0.3, 0.2, 0.3, 0.001, 0.4):
        np.testing.assert_array_equal(it.get("q.x", "v.x", "u.push"), [*s.q, *s.v, *s.observe()["u"]])
        assert it.step(s.t, h) == OK
        s.advance(h)


def test_steps_under_error_control_are_refused_where_they_make_no_sense(tmp_path: Path) -> None:
    m = block()
    with pytest.raises(pf.ModelError, match="the importer chooses the steps"):
        pf.fmu(m, tmp_path / "no.fmu", kind="model exchange", accuracy=ACCURACY)
    with pytest.raises(pf.ModelError, match="smallest"):
        pf.fmu(m, tmp_path / "no.fmu", accuracy=1e-20)
    it = Importer(pf.fmu(block(stiffness=-1e9), tmp_path / "a.fmu", accuracy=ACCURACY, v={"x": 1.0}).file, tmp_path / "at")
    assert it.start() == OK and it.step(0.0, 0.0) == ERROR and "longer than 0" in it.messages[-1]
    assert it.step(0.5, 0.1) == ERROR and "time that was reached" in it.messages[-1]
    assert it.step(0.0, 1.0) == ERROR and it.step(0.0, 1.0) == ERROR
    assert np.isfinite(it.get("q.x", "v.x")).all() and 0 < it.get("time")[0] < 1.0


def test_a_law_in_discrete_time_acts_at_time_events_of_model_exchange(tmp_path: Path) -> None:
    fmpy = pytest.importorskip("fmpy")
    m, start = block(), {"v": {"x": 0.5}}
    file = pf.fmu(m, tmp_path / "a.fmu", kind="model exchange", version="2.0", control=law(), **start).file
    found = fmpy.simulate_fmu(str(file), stop_time=1.0, output_interval=0.05, relative_tolerance=1e-10)
    rows = np.flatnonzero(np.diff(np.append(found["time"], np.inf)) > 1e-3)
    exact = pf.run(m, **start, control=law(), times=np.round(found["time"][rows], 12), accuracy=1e-10, backend="interpreter")
    np.testing.assert_allclose(found["q.x"][rows], exact["q"].values[:, 0], rtol=0, atol=INTEGRATED)


def test_time_events_of_a_law_are_its_instants(tmp_path: Path) -> None:
    it = Importer(pf.fmu(block(), tmp_path / "a.fmu", kind="model exchange", control=law(), v={"x": 0.5}).file, tmp_path / "at")
    assert it.start() == OK
    for k in range(3):
        following = it.event()
        assert following == PHASE + k * PERIOD and it.event() == following  # a second call at an instant changes nothing
        assert it.states(2, "ContinuousStateDerivatives")[1] == (-0.75 if k == 2 else 0.0)  # -3 v / 2, a period late
        assert it.call("SetTime", ctypes.c_double(following)) == OK


def test_clocks_of_an_importer_evaluate_the_law(tmp_path: Path) -> None:
    """Beside laws whose instants the library knows: to the bit, in steps of one length and under error control."""
    m, h, n = block(), 1 / 128, 11
    how = {"control": law(3 * h, h), "clocks": True, "step": h, "v": {"x": 0.5}}
    result = pf.run(m, v={"x": 0.5}, control=how["control"], duration=n * h, step=h, error=False, backend="interpreter")
    s = pf.stepper(m, accuracy=ACCURACY, control=how["control"], backend="interpreter")
    s.reset(v={"x": 0.5})
    s.advance(n * h)
    for more, end in (({}, result.isel(time=-1)), ({"accuracy": ACCURACY}, s)):
        it = Importer(pf.fmu(m, tmp_path / "a.fmu", **how, **more).file, tmp_path / f"at{len(more)}")
        assert it.start() == OK
        t, instants = 0.0, [k * h for k in (1, 4, 7, 10)]
        for until in (*instants, n * h):
            calls = 1 if more else round((until - t) / h)
            for k in range(calls):
                assert it.step(t + k * (until - t) / calls, (until - t) / calls) == OK
            t = until
            assert t not in instants or it.event("clock.law") is None
        np.testing.assert_array_equal(it.get("q.x", "v.x"), [*np.ravel(end.q), *np.ravel(end.v)])


def test_clocks_are_declared_and_refused_where_there_are_none(tmp_path: Path) -> None:
    made = pf.fmu(block(), tmp_path / "a.fmu", kind="model exchange", control=law(), clocks=True, v={"x": 0.5})
    it = Importer(made.file, tmp_path / "at")
    (clock,) = it.root.find("ModelVariables").findall("Clock")
    assert (clock.get("name"), clock.get("causality"), clock.get("intervalVariability")) == ("clock.law", "input", "constant")
    assert (float(clock.get("intervalDecimal")), float(clock.get("shiftDecimal"))) == (PERIOD, PHASE)
    assert it.start() == OK and it.event() is None
    assert it.event("clock.law") is None and it.event() is None  # a tick counts once
    assert it.states(2, "ContinuousStateDerivatives")[1] == 0
    assert it.event("clock.law") is None and it.states(2, "ContinuousStateDerivatives")[1] == -0.75
    assert it.call("SetClock", (ctypes.c_uint * 1)(10**6), ctypes.c_size_t(1), (ctypes.c_bool * 1)(True)) == ERROR
    assert "no clock" in it.messages[-1]
    with pytest.raises(pf.ModelError, match="clocks need version"):
        pf.fmu(block(), tmp_path / "no.fmu", version="2.0", control=law(), clocks=True)
    with pytest.raises(pf.ModelError, match="periods of a law in discrete time, and there is none"):
        pf.fmu(block(), tmp_path / "no.fmu", clocks=True)
