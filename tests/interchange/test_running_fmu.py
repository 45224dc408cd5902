"""What an instance of an FMU is asked for, call by call, beside an FMU and a solver that note what they are asked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import pfaffian as pf
from pfaffian.formats.fmu.fmu_file import FMUVariable
from pfaffian.interchange import fmu_law, running_fmu
from pfaffian.simulate.step.signals import RESERVED, STANDARD, standard
from tests.formats.test_fmu_file import packed
from tests.tolerance import ALGEBRA

TWO = """<fmiModelDescription fmiVersion="2.0" modelName="valve" guid="{2}" numberOfEventIndicators="3">
  <ModelExchange modelIdentifier="valve"/>
  <CoSimulation modelIdentifier="valve"/>
  <ModelVariables>
    <ScalarVariable name="a" valueReference="1" causality="input"><Real/></ScalarVariable>
    <ScalarVariable name="b" valueReference="2" causality="input" variability="discrete"><Real/></ScalarVariable>
    <ScalarVariable name="y" valueReference="3" causality="output"><Real/></ScalarVariable>
  </ModelVariables>
  <ModelStructure><Derivatives><Unknown index="1"/><Unknown index="2"/></Derivatives></ModelStructure>
</fmiModelDescription>"""

THREE = """<fmiModelDescription fmiVersion="3.0" modelName="valve" instantiationToken="{2}">
  <ModelExchange modelIdentifier="valve" needsCompletedIntegratorStep="true"/>
  <CoSimulation modelIdentifier="valve"/>
  <ModelVariables>
    <Float64 name="a" valueReference="1" causality="input"/>
    <Float64 name="b" valueReference="2" causality="input" variability="discrete"/>
    <Float64 name="y" valueReference="3" causality="output"/>
  </ModelVariables>
  <ModelStructure><ContinuousStateDerivative valueReference="1"/><EventIndicator valueReference="2"/></ModelStructure>
</fmiModelDescription>"""

SETTLED = (False, False, False, False, False, 0.0)
"""What an FMU answers where no event is left: more, the end, nominals, values, whether an instant is known, the instant."""

STANDING = {
    "newDiscreteStates": SETTLED, "updateDiscreteStates": SETTLED, "completedIntegratorStep": (False, False),
    "getReal": [7.0], "getFloat64": [7.0], "getNumberOfContinuousStates": 1, "getNumberOfEventIndicators": 1,
}  # fmt: skip
"""What an FMU answers where a test gives no answers."""

Call = tuple[Any, ...]


class Asked:
    """The calls of an FMU.   said: what was called, and with what.   answers: {call: what it returns, in turn}."""

    def __init__(self, said: list[Call], answers: dict[str, list[Any]]) -> None:
        self.said, self.answers = said, answers

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def call(*given: Any, **named: Any) -> Any:
            self.said.append((name, *given, *named.values()))
            return self.answers[name].pop(0) if self.answers.get(name) else STANDING.get(name)

        return call


class Solver:
    """An integrator that goes at most `reach` seconds in one call, and then tells an event if one is in `events`."""

    def __init__(self, said: list[Call], **given: Any) -> None:
        self.given, self.said, self.reach, self.events = given, said, 10.0, set[float]()

    def step(self, t: float, to: float) -> tuple[bool, list[int], float]:
        self.said.append(("solve", t, to))
        at = min(t + self.reach, to)
        return at in self.events, [], at

    def reset(self, t: float) -> None:
        self.said.append(("reset", t))


@pytest.fixture
def started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[running_fmu.RunningFMU, list[Call]]]:
    def start(text: str, kind: str, inputs: list[str], **answers: list[Any]) -> tuple[running_fmu.RunningFMU, list[Call]]:
        said: list[Call] = []
        calls = Asked(said, answers)
        monkeypatch.setattr(running_fmu, "instantiated", lambda *_: calls)
        monkeypatch.setattr(running_fmu, "optional", lambda *_: SimpleNamespace(CVodeSolver=partial(Solver, said)))
        fmu = pf.formats.read_fmu(packed(tmp_path / "x.fmu", text), kind=kind)
        it = running_fmu.started(fmu, tmp_path, inputs, ["y"], {}, 0.5, np.arange(1.0, 1.0 + len(inputs)))
        return it, said

    return start


@pytest.mark.parametrize(("version", "whole"), [("2.0", "setInteger"), ("3.0", "setInt32")])
def test_start_values_of_all_types_are_set(started: Any, tmp_path: Path, version: str, whole: str) -> None:
    it, said = started(TWO if version == "2.0" else THREE, "co-simulation", [])
    kinds = {"on": "flag", "gear": "whole"}
    variables = {n: FMUVariable(k, kind, "parameter", "fixed", "", None, False) for k, (n, kind) in enumerate(kinds.items())}
    said.clear()
    running_fmu.started(replace(it.fmu, variables=variables), tmp_path, [], [], {"on": 1, "gear": 2.0}, 0.5, np.zeros(0))
    calls = [c for c in it.calls.said if c[0].startswith("set") and c[0] != "setupExperiment"]
    assert calls == [("setBoolean", [0], [True]), (whole, [1], [2])] * 2
    assert [type(c[2][0]) for c in calls] == [bool, int] * 2


@pytest.mark.parametrize(("text", "real"), [(TWO, "Real"), (THREE, "Float64")], ids=["2.0", "3.0"])
def test_co_simulation_steps_under_the_mean_of_its_inputs(started: Any, text: str, real: str) -> None:
    it, said = started(
        text, "co-simulation", ["b", "a"], **{"doStep": [None, (True, False), (False, True)], f"get{real}": [[4.5]]}
    )
    assert said[-2:] == [(f"set{real}", [2, 1], [1.0, 2.0]), ("exitInitializationMode",)]
    said.clear()
    it.advance(0.5, 0.75, np.array([1.0, 2.0]), np.array([3.0, 7.0]))
    assert said == [(f"set{real}", [2, 1], [2.0, 4.5]), ("doStep", 0.5, 0.25)]
    it.advance(0.75, 1.0, np.zeros(2), np.zeros(2))  # whose flags ask for no end
    said.clear()
    np.testing.assert_array_equal(it.outputs_under(np.array([5.0, 6.0])), [4.5])
    assert said == [(f"set{real}", [2, 1], [5.0, 6.0]), (f"get{real}", [3])]
    it.messages.append("too hot")
    with pytest.raises(pf.ModelError, match=r"asks for the end of the simulation; it says: 'too hot'"):
        it.advance(1.0, 1.25, np.zeros(2), np.zeros(2))


def test_model_exchange_is_integrated_from_event_to_event(started: Any) -> None:
    instant = (False, False, False, False, True, 0.6)
    more = (True, False, False, False, True, 9.0)
    sizes = {"getNumberOfContinuousStates": [5], "getNumberOfEventIndicators": [4]}
    it, said = started(THREE, "model exchange", ["a"], updateDiscreteStates=[more, instant], **sizes)
    rounds = [("updateDiscreteStates",)] * 2
    assert said[-5:] == [*rounds, ("enterContinuousTimeMode",), *[(name,) for name in sizes]]
    solver = it.stepped.solver
    wanted = {"nx": 5, "nz": 4, "startTime": 0.5, "relativeTolerance": 1e-9}
    assert {k: solver.given[k] for k in wanted} == wanted
    said.clear()
    it.calls.answers["completedIntegratorStep"] = [(False, False)] * 3 + [(True, False)]
    solver.reach, solver.events = 0.0625, {0.625}
    it.advance(0.5, 0.75, np.array([0.0]), np.array([4.0]))
    moves = [c for c in said if c[0] in ("solve", "reset", "enterEventMode")]
    assert moves == [
        ("reset", 0.5), ("solve", 0.5, 0.6), ("solve", 0.5625, 0.6),
        ("enterEventMode",), ("reset", 0.6),  # the instant that the FMU told
        ("solve", 0.6, 0.75), ("solve", 0.6625, 0.75), ("enterEventMode",), ("reset", 0.725),  # which it asked for
        ("solve", 0.725, 0.75),
    ]  # fmt: skip
    inputs = [c[2][0] for c in said if c[0] == "setFloat64"]
    np.testing.assert_allclose(inputs, 16 * (np.array([0.5, 0.5625, 0.6, 0.6625, 0.725, 0.75]) - 0.5))
    assert [c[1] for c in said if c[0] == "setTime"] == [0.5, 0.5625, 0.6, 0.6625, 0.725, 0.75]


def test_model_exchange_of_two_asks_for_what_it_says(started: Any) -> None:
    text = TWO.replace("<ModelExchange ", '<ModelExchange completedIntegratorStepNotNeeded="true" ')
    it, said = started(text, "model exchange", ["a"])
    solver = it.stepped.solver
    assert (solver.given["nx"], solver.given["nz"]) == (2, 3) and it.stepped.next_event == np.inf
    solver.reach, solver.events = 0.25, {1.0}
    said.clear()
    it.advance(0.5, 1.0, np.array([0.0]), np.array([0.0]))
    assert [c[0] for c in said] == [
        "setTime", "setReal", "reset", *["solve", "setTime", "setReal"] * 2, "enterEventMode", "newDiscreteStates",
        "enterContinuousTimeMode", "reset",
    ]  # fmt: skip


@pytest.mark.parametrize(("text", "real"), [(TWO, "Real"), (THREE, "Float64")], ids=["2.0", "3.0"])
def test_discrete_inputs_of_model_exchange_are_set_in_event_mode(started: Any, text: str, real: str) -> None:
    it, said = started(text, "model exchange", ["b", "a"])
    said.clear()
    it.outputs_under(np.array([5.0, 6.0]))
    update = "newDiscreteStates" if text == TWO else "updateDiscreteStates"
    assert said == [
        ("enterEventMode",), (f"set{real}", [2, 1], [5.0, 6.0]), (update,), ("enterContinuousTimeMode",), (f"get{real}", [3])
    ]  # fmt: skip
    said.clear()
    it.advance(0.5, 1.0, np.array([5.0, 6.0]), np.array([5.0, 8.0]))
    assert [c for c in said if c[0] == f"set{real}"] == [(f"set{real}", [1], [6.0]), (f"set{real}", [1], [8.0])]
    it, said = started(text, "model exchange", ["a"])
    said.clear()
    it.outputs_under(np.array([6.0]))
    assert said == [(f"set{real}", [1], [6.0]), (f"get{real}", [3])]


def test_ends_and_events_without_end_are_told(started: Any) -> None:
    end = (False, True, False, False, False, 0.0)
    with pytest.raises(pf.ModelError, match="'valve' cannot be started: it asks for the end"):
        started(THREE, "model exchange", [], updateDiscreteStates=[end])
    more = (True, False, False, False, False, 0.0)
    started(THREE, "model exchange", [], updateDiscreteStates=[more] * (running_fmu.MOST_ROUNDS - 1))
    with pytest.raises(pf.ModelError, match=f"events do not end within {running_fmu.MOST_ROUNDS} rounds"):
        started(THREE, "model exchange", [], updateDiscreteStates=[more] * running_fmu.MOST_ROUNDS)
    it, _ = started(THREE, "model exchange", [], completedIntegratorStep=[(False, True)])
    with pytest.raises(pf.ModelError, match="asks for the end"):
        it.advance(0.5, 1.0, np.zeros(0), np.zeros(0))


class Follower:
    """An instance whose outputs are ten times its inputs."""

    def __init__(self) -> None:
        self.calls = SimpleNamespace(freeInstance=lambda: None)

    def advance(self, t: float, to: float, begin: np.ndarray, end: np.ndarray) -> None:
        """Nothing in it moves."""

    def outputs_under(self, inputs: np.ndarray) -> np.ndarray:
        return 10 * inputs


def test_inputs_and_outputs_may_have_names_that_results_have(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = THREE.replace('name="a"', 'name="u" unit="m"').replace('name="b"', 'name="time"').replace('name="y"', 'name="q"')
    text = text.replace(
        "</ModelVariables>", '<Float64 name="v" valueReference="4" causality="output" unit="W"/></ModelVariables>'
    )
    monkeypatch.setattr(running_fmu, "instantiated", lambda *_: None)
    monkeypatch.setattr(fmu_law, "started", lambda *_: Follower())
    fmu = replace(pf.read(packed(tmp_path / "x.fmu", text)), run_binary=True)
    rail = pf.joint("x", "prismatic", "world", "cart", axis=(1, 0, 0))
    m = pf.mechanism("cart", [pf.body("cart", 2.0)], [rail], actuators=[pf.actuator(n, "x") for n in ("push", "pull")])
    inputs = {"u": lambda k: k.q[0] + 0.5, "time": 3.0}
    law = pf.bridges.fmu_law(fmu, 0.1, inputs=inputs, outputs={"q": "push", "v": ("push", 0.1)}, record=["v", "q"])
    result = pf.run(m, v=[1.0], control=law, duration=0.3, step=0.1, error=False, record="all")
    read = result["q"].values[:-1, 0] + 0.5
    np.testing.assert_array_equal(result["valve.q"].values[:-1], 10 * read)
    np.testing.assert_array_equal(result["valve.v"].values, 30.0)
    np.testing.assert_allclose(result["u"].values[:-1, 0], 10 * read + 3.0, rtol=ALGEBRA)
    assert not result["u"].values[:, 1].any()
    np.testing.assert_array_equal(result["valve.u"].values[:-1], read)
    assert result["valve.v"].attrs["units"] == "W" and result["valve.u"].attrs["units"] == "m"


def test_every_signal_of_a_run_is_among_the_standard_names() -> None:
    end = pf.closure("end", "spherical", "rod", "world")
    hinge = pf.joint("a", "revolute", "world", "rod", axis=(0, 1, 0))
    m = pf.mechanism("m", [pf.body("rod", 1.0)], [hinge], constraints=[end], actuators=[pf.actuator("motor", "a")])
    assert {"q", "reaction", "u_cut"} < set(standard(m, True)) <= STANDARD
    assert not STANDARD & RESERVED


def test_wrong_start_values_are_refused(tmp_path: Path) -> None:
    fmu = pf.read(packed(tmp_path / "x.fmu", THREE.replace('name="y"', 'name="' + "y" * 5000 + '"')))
    assert running_fmu.check_start(fmu, None) == {} and running_fmu.check_start(fmu, {"a": np.float64(2)}) == {"a": 2.0}
    for wrong, words in (
        ([("a", 1)], "start_values: {name: number} is needed"), ({"z": 1.0}, "no variable 'z'"),
        ({"a": np.inf}, "finite number"), ({"a": "1"}, "finite number"),
    ):  # fmt: skip
        with pytest.raises(pf.ModelError, match=words):
            running_fmu.check_start(fmu, wrong)
    array = THREE.replace('causality="input"/>', 'causality="input"><Dimension start="1"/></Float64>', 1)
    other = array.replace('<Float64 name="y" valueReference="3" causality="output"/>', '<String name="y" valueReference="3"/>')
    fmu = pf.read(packed(tmp_path / "array.fmu", other))
    for name in ("a", "y"):
        with pytest.raises(pf.ModelError, match="no single number or flag"):
            running_fmu.check_start(fmu, {name: 1.0})
