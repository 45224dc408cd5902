"""FMUs as parts of machines: beside the same in one run, with events of the run, in batches; and FMUs that must not run."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path

import casadi as ca
import numpy as np
import pytest

import pfaffian as pf
from pfaffian import control
from pfaffian.interchange import running_fmu
from tests.formats.test_fmu_file import THREE, TWO, packed

pytest.importorskip("fmpy")

PERIOD, STEP, STEPS = 0.02, 0.005, 80

STIFFNESS = 30.0

TOLD = 0.3
"""Largest relative difference of a told error from the true one, both of the exchange of numbers alone: the terms of higher
order, for steps that are long enough to see the error."""

PUT_BACK = 2e-10
"""Largest error of the length of a quaternion after an event, which an FMU requests from 1e-10 on."""

INTEGRATED = 1e-6
"""Difference of a run from an integration by CVODE with a relative tolerance of 1e-9 over two seconds with an event."""


def slide(name: str, body: str, stiffness: float = 0.0) -> pf.Joint:
    return pf.joint(name, "prismatic", "world", body, axis=(1, 0, 0), stiffness=stiffness)


def cart() -> pf.Mechanism:
    """A cart on a spring, with a motor."""
    rail = slide("x", "cart", 5.0)
    return pf.mechanism("cart", [pf.body("cart", 2.0)], [rail], actuators=[pf.actuator("push", "x")])


@pytest.fixture(scope="module")
def controller(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An FMU with a law in discrete time: proportional, differential and integral."""

    def law(s: control.Sample) -> control.Command:
        force = -8 * s["x"] - 3 * s["v"] - 2 * s["sum"]
        return control.Command(ca.SX(0, 1), signals={"force": force}, d_next={"sum": s["sum"] + PERIOD * s["x"]})

    it = pf.mechanism("controller", [pf.body("none", 1.0)], [slide("none", "none")])
    sampled = control.discrete(law, PERIOD, state={"sum": 0.5}, inputs=["x", "v"])
    return pf.fmu(it, tmp_path_factory.mktemp("fmu") / "controller.fmu", control=sampled, step=PERIOD).file


def same_controller() -> pf.control.Control:
    """The law of the controller, inside of a run."""

    def law(s: control.Sample) -> control.Command:
        x, v = s.terms.q[0], s.terms.v[0]
        return control.Command(-8 * x - 3 * v - 2 * s["sum"], d_next={"sum": s["sum"] + PERIOD * x})

    return control.discrete(law, PERIOD, state={"sum": 0.5})


def neighbour(folder: Path, kind: str = "co-simulation") -> Path:
    """An FMU with a second mass, which a spring ties to the cart."""
    rail = pf.mechanism("mass", [pf.body("mass", 1.0)], [slide("y", "mass")], actuators=[pf.actuator("pull", "y")])

    def tied(terms: pf.Terms, z: ca.SX, w: ca.SX, y: ca.SX) -> control.Command:
        force = STIFFNESS * (w[0] - terms.q[0])
        return control.Command(force, signals={"force": -force})

    law = control.Control(tied, w_names=("x",))
    return pf.fmu(rail, folder / "mass.fmu", kind=kind, control=law, step=0.001).file


def both() -> tuple[pf.Mechanism, control.Control]:
    """The cart and the second mass as one machine, with the spring between them as a law."""
    rails = [slide("x", "cart", 5.0), slide("y", "mass")]
    motors = [pf.actuator("push", "x"), pf.actuator("pull", "y")]
    m = pf.mechanism("both", [pf.body("cart", 2.0), pf.body("mass", 1.0)], rails, actuators=motors)

    def tied(terms: pf.Terms, z: ca.SX, w: ca.SX, y: ca.SX) -> control.Command:
        force = STIFFNESS * (terms.q[1] - terms.q[0])
        return control.Command(ca.vertcat(force, -force))

    return m, control.Control(tied)


def of_controller(file: Path, **more: object) -> control.Control:
    fmu = pf.read(file, run_binary=True)
    signals = {"input.x": lambda k: k.q[0], "input.v": control.sensor(lambda k: k.v[0])}
    return pf.bridges.fmu_law(fmu, PERIOD, inputs=signals, outputs={"force": "push"}, **more)


def test_controller_as_fmu_gives_the_bits_of_the_same_law_in_one_run(controller: Path) -> None:
    m, law = cart(), of_controller(controller, record=["force"])
    for how in ({"step": STEP}, {"accuracy": 1e-7}):
        inside = pf.run(m, v=[0.5], control=same_controller(), duration=STEPS * STEP, **how)
        again = [pf.run(m, v=[0.5], control=law, duration=STEPS * STEP, error=False, **how) for _ in range(2)]
        for outside in again:
            np.testing.assert_array_equal(outside["q"], inside["q"])
            np.testing.assert_array_equal(outside["force"].values, inside["u"].values[:, 0])
    batch = pf.run(m, v=[[0.1], [0.5]], control=law, duration=STEPS * STEP, step=STEP, error=False)
    alone = pf.run(m, v=[0.5], control=law, duration=STEPS * STEP, step=STEP, error=False)
    np.testing.assert_array_equal(batch["q"].values[1], alone["q"].values)


def test_two_fmus_and_a_master_give_the_bits_of_one_run(tmp_path: Path, controller: Path) -> None:
    from tests.interchange.importer import OK, Importer

    m = cart()
    plant = Importer(pf.fmu(m, tmp_path / "cart.fmu", v=[0.5], step=STEP).file, tmp_path / "cart")
    law = Importer(controller, tmp_path / "law")
    assert plant.start() == law.start(**{"input.v": 0.5}) == OK
    result = pf.run(m, v=[0.5], control=same_controller(), duration=STEPS * STEP, step=STEP)
    for k in range(0, STEPS, 4):
        np.testing.assert_array_equal(plant.get("q.x", "v.x"), [result["q"].values[k, 0], result["v"].values[k, 0]])
        assert plant.set("input.push", law.get("force")[0]) == OK
        assert plant.step(k * STEP, PERIOD) == OK and law.step(k * STEP, PERIOD) == OK
        for name in ("x", "v"):
            assert law.set(f"input.{name}", plant.get(f"{'q' if name == 'x' else 'v'}.x")[0]) == OK
    np.testing.assert_array_equal(plant.get("q.x"), result["q"].values[-1])


@pytest.mark.parametrize("kind", ["co-simulation", "model exchange"])
def test_error_of_the_exchange_is_told_and_has_the_order_of_the_hold(tmp_path: Path, kind: str) -> None:
    m, law = both()
    exact = pf.run(m, {"x": 0.3}, control=law, duration=STEPS * STEP, step=STEP / 4)["q"].values[::4, 0]
    fmu, errors = pf.read(neighbour(tmp_path, kind), run_binary=True), {}
    for hold in ("zero", "first"):
        for period in (PERIOD, PERIOD / 2):
            part = pf.bridges.fmu_law(fmu, period, inputs={"input.x": lambda k: k.q[0]}, outputs={"force": "push"}, hold=hold)
            with pytest.warns(pf.RunWarning, match="makes an error of .*shorter period"):
                result = pf.run(cart(), {"x": 0.3}, control=part, duration=STEPS * STEP, step=STEP)
            errors[hold, period] = true = np.abs(result["q"].values[:, 0] - exact).max()
            length = np.abs(result["q"].values).max()
            assert result["error"].values[:, 1].max() == pytest.approx(true / length, rel=TOLD)
    for hold, order in (("zero", 1), ("first", 2)):
        assert errors[hold, PERIOD] / errors[hold, PERIOD / 2] == pytest.approx(2**order, rel=TOLD)


def test_events_of_an_fmu_for_model_exchange_are_found(tmp_path: Path) -> None:
    def switched(terms: pf.Terms, z: ca.SX, w: ca.SX, y: ca.SX) -> control.Command:
        return control.Command(ca.if_else(terms.q[0] < 0.1, 1.0, -3.0))

    ball = pf.body("ball", 1.0, inertia=(0.1, 0.2, 0.3))  # whose quaternion drifts, and is put back in events
    joints = [slide("y", "mass"), pf.joint("turn", "spherical", "world", "ball")]
    m = pf.mechanism("mass", [pf.body("mass", 1.0), ball], joints, actuators=[pf.actuator("pull", "y")])
    law, spin = control.Control(switched), {"turn.wx": 3.0, "turn.wy": 1.0}
    made = pf.fmu(m, tmp_path / "mass.fmu", kind="model exchange", control=law, v=spin, q={"y": -0.2})
    names = [f"q.{n}" for n in m.q_names]
    fmu = pf.read(made.file, run_binary=True)
    assert fmu.indicators
    found = pf.run(cart(), control=pf.bridges.fmu_law(fmu, 0.1, record=names), duration=2.0, step=0.05, error=False)
    turn = np.stack([found[n].values for n in names if n.startswith("q.turn")])
    assert len(turn) == 4 and np.abs(np.linalg.norm(turn, axis=0) - 1).max() < PUT_BACK
    exact = pf.run(m, {"y": -0.2}, spin, control=law, times=found["time"].values[::2], accuracy=1e-9)
    np.testing.assert_allclose(np.stack([found[n].values[::2] for n in names], axis=1), exact["q"].values, atol=INTEGRATED)


def test_laws_and_an_fmu_act_together(controller: Path) -> None:
    m, fmu = cart(), pf.read(controller, run_binary=True)
    filtered = control.discrete(lambda s: control.Command(ca.SX(0, 1), signals={"goal": s.terms.q[0] - 0.2}), PERIOD)
    brake = control.Control(lambda terms, z, w, y: control.Command(-0.5 * terms.v))
    of_fmu = pf.bridges.fmu_law(
        fmu, PERIOD, inputs={"input.x": "goal", "input.v": lambda k: k.v[0]}, outputs={"force": ("push", 2)}
    )
    result = pf.run(
        m,
        control=control.several(filter=filtered, brake=brake, loop=of_fmu),
        duration=0.4,
        step=STEP,
        record="all",
        error=False,
    )

    def inside(s: control.Sample) -> control.Command:
        x, v = s.terms.q[0] - 0.2, s.terms.v[0]
        return control.Command(2 * (-8 * x - 3 * v - 2 * s["sum"]), d_next={"sum": s["sum"] + PERIOD * x})

    same = control.several(brake=brake, loop=control.discrete(inside, PERIOD, state={"sum": 0.5}))
    np.testing.assert_array_equal(result["q"], pf.run(m, control=same, duration=0.4, step=STEP)["q"])
    with pytest.raises(pf.ModelError, match="name it last"):
        control.several(loop=of_fmu, brake=brake)


def edited(file: Path, change: Callable[[str], str], out: Path) -> Path:
    """A copy of an FMU with a changed description."""
    with zipfile.ZipFile(file) as source, zipfile.ZipFile(out, "w") as target:
        for name in source.namelist():
            data = source.read(name)
            target.writestr(name, change(data.decode()).encode() if name == "modelDescription.xml" else data)
    return out


def test_one_instance_only_is_respected_and_its_error_is_nan(tmp_path: Path, controller: Path) -> None:
    once = edited(
        controller,
        lambda text: text.replace("<CoSimulation ", '<CoSimulation canBeInstantiatedOnlyOncePerProcess="true" '),
        tmp_path / "once.fmu",
    )
    m, law = cart(), of_controller(once)
    with pytest.raises(pf.ModelError, match="allows one instance only, and there are 2 runs"):
        pf.run(m, v=[[0.1], [0.5]], control=law, duration=0.1, step=STEP)
    for how in ({"step": STEP}, {"accuracy": 1e-6}):
        with pytest.warns(pf.RunWarning, match="is nan, as it cannot run a second time: .*one instance only"):
            result = pf.run(m, v=[0.5], control=law, duration=0.1, **how)
        assert np.isnan(result["error"]).all() and (result["status"] == 0).all()


def test_faults_of_an_fmu_stop_the_run_with_their_reason(tmp_path: Path, controller: Path) -> None:
    m, file = cart(), controller
    off = pf.bridges.fmu_law(
        pf.read(file, run_binary=True), 0.015, inputs={"input.x": lambda k: k.q[0]}, outputs={"force": "push"}
    )
    with pytest.warns(pf.RunWarning, match="stopped"):
        result = pf.run(m, v=[0.5], control=off, duration=0.1, step=STEP, error=False)
    assert "whole number of steps" in str(result["reason"].values) and "'controller'" in str(result["reason"].values)
    token = pf.read(file).token
    wrong = edited(file, lambda text: text.replace(token, "{" + "0" * 36 + "}"), tmp_path / "wrong.fmu")
    with pytest.warns(pf.RunWarning, match="stopped"):
        result = pf.run(m, v=[0.5], control=of_controller(wrong), duration=0.1, step=STEP)
    assert "GUID" in str(result["reason"].values)
    for how in ({"step": STEP}, {"accuracy": 1e-6}):
        first = pf.run(m, v=[0.5], control=of_controller(file), duration=0.1, error=False, **how)
        with pytest.raises(pf.ModelError, match="state that the result does not contain"):
            pf.run(m, start_from=first, control=of_controller(file), duration=0.1, **how)


def test_wrong_arguments_of_a_part_are_refused(controller: Path) -> None:
    fmu, m = pf.read(controller, run_binary=True), cart()
    for wrong, words in (
        ({"inputs": {"input.y": 1.0}}, "no input 'input.y'"), ({"outputs": {"input.x": "push"}}, "no output"),
        ({"outputs": {"force": 3}}, "name of an actuator"), ({"hold": "second"}, "hold"),
        ({"record": ["nothing"]}, "no output"),
        ({"start_values": {"gain": 1.0}}, "no variable"), ({"start_values": {"input.x": "much"}}, "finite number"),
        ({"inputs": [1]}, "inputs"), ({"inputs": {"input.x": float("nan")}}, "input.x"),
    ):  # fmt: skip
        with pytest.raises(pf.ModelError, match=words):
            pf.bridges.fmu_law(fmu, PERIOD, **wrong)
    with pytest.raises(pf.ModelError, match="period"):
        pf.bridges.fmu_law(fmu, 0.0)
    with pytest.raises(pf.ModelError, match="no actuator 'pull'"):
        pf.run(m, control=pf.bridges.fmu_law(fmu, PERIOD, outputs={"force": "pull"}), duration=0.1, step=STEP)
    with pytest.raises(pf.ModelError, match="run_binary=True"):
        pf.bridges.fmu_law(pf.read(controller), PERIOD)
    with pytest.raises(pf.ModelError, match="an FMU is needed"):
        pf.bridges.fmu_law(str(controller), PERIOD)


@pytest.mark.parametrize(
    ("text", "values", "calls"),
    [
        (TWO, {"on": True, "u": 2}, [("setBoolean", [0], [True]), ("setReal", [3], [2.0])]),
        (THREE, {"n": 7, "p": 2}, [("setInt32", [3], [7]), ("setFloat64", [1], [2.0])]),
    ],
    ids=["2.0", "3.0"],
)
def test_start_values_are_set_by_the_call_of_their_type(
    text: str, values: dict[str, object], calls: list[object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before initialisation and in it, since parameters may count in either."""
    said: list[object] = []

    class Calls:
        def __getattr__(self, name: str) -> Callable[..., None]:
            return lambda *given, **named: said.append((name, *given, *named.items()))

    monkeypatch.setattr(running_fmu, "instantiated", lambda *_: Calls())
    running_fmu.started(pf.read(packed(tmp_path / "x.fmu", text)), tmp_path, [], [], values, 0.5, np.zeros(0))
    time = ("startTime", 0.5)
    begin = [("setupExperiment", time)] if text == TWO else []
    enter = ("enterInitializationMode",) if text == TWO else ("enterInitializationMode", time)
    assert said == [*begin, *calls, enter, *calls, ("exitInitializationMode",)]
