"""Peak loads of joints, over runs and over states, against statics by hand and against wrenches of single states."""

from __future__ import annotations

import csv
import itertools
import zipfile
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

import pfaffian as pf
from pfaffian import statistics
from pfaffian.errors import ModelError, RunError, RunWarning
from pfaffian.output import table_file
from pfaffian.simulate.record.load_table import OF_PEAK
from tests.simulate.machines import four_bar
from tests.tolerance import INTEGRATED, PEER

G = 9.81
LIFT = Path(__file__).parents[2] / "examples" / "scissor_lift.yaml"
GUESS = {"slide": 0.866, "b": 2.618, "platform": -2.618}
STROKE = np.linspace(0.3, 1.0, 8)
INTERPRETED = {"backend": "interpreter"}


def lift_statics(angle: Any, load: Any) -> dict[str, Any]:
    """Forces in the joints of the scissor lift at rest: equilibrium of each part by hand. The weight is in the middle."""
    roller, arm, tan = load * G / (2 * np.cos(angle)), 2 * G, np.tan(angle)
    pin = load * G - roller
    x, z = -(load * G + arm) / tan, 2 * roller - load * G
    return {
        "a": np.hypot(x, roller + arm - z), "slide": np.hypot(x, z + pin + arm + G), "b": np.hypot(x, z + pin + arm),
        "platform": abs(pin), "cross": np.hypot(x, z), "roller": abs(roller),
    }  # fmt: skip


def lift() -> pf.Mechanism:
    return pf.read(LIFT)[0]


def swept(m: pf.Mechanism, folder: Path, space: Any, states: Any, **how: Any) -> Any:
    return pf.sweep(m, space, store=folder / "loads.zarr", states=states, **({"keep": "loads"} | INTERPRETED | how))


def test_table_of_a_scissor_lift_is_its_statics(tmp_path: Path) -> None:
    loads = np.array([20.0, 45.0, 60.0])
    found = swept(lift(), tmp_path, {"load": loads}, {"q:a": STROKE}, guess=GUESS)
    table = pf.loads(found).compute()
    for run, load in enumerate(loads):
        for name, forces in lift_statics(STROKE, load).items():
            at = table.isel(run=run).sel(joint=name)
            assert float(at["force"]) == pytest.approx(forces.max(), rel=PEER)
            assert STROKE[int(at["force_state"])] == STROKE[forces.argmax()]
    assert not table["force_unique"].any()  # forces across the plane are shared by its hinges
    np.testing.assert_allclose(table["force_z"].sel(joint="platform"), np.sin(STROKE[0]), rtol=PEER)


def test_a_sweep_over_states_has_units_and_its_variables_in_the_order_of_their_names(tmp_path: Path) -> None:
    pins = {name: pf.reaction("bob", magnitude=True) for name in ("the second", "a third", "the 1st")}
    how = {"keep": ["q", *pins], "outputs": pins, "store": tmp_path / "pins.zarr"} | INTERPRETED
    found = pf.sweep(rod(), {}, states={"q:bob.x": [0.1, 0.2]}, **how)
    assert found["q_unit"].dims == ("coordinate",) and set(found["q_unit"].values.tolist()) == {"m"}
    assert [name for name in found.data_vars if name in pins] == sorted(pins)
    table = pf.loads(swept(rod(), tmp_path, {}, {"q:bob.x": [0.1, 0.2]}), file=tmp_path / "loads.csv")
    assert table["force_state"].attrs["units"] == "1"
    assert "force_state," in (tmp_path / "loads.csv").read_text().splitlines()[0], "the number of a state is no time"


def test_states_are_the_same_whatever_the_blocks(tmp_path: Path) -> None:
    m, space, states = rod(), {"l": np.linspace(1, 2, 9)}, {"q:bob.x": np.linspace(-0.9, 0.9, 8)}
    one, other = (swept(m, tmp_path / str(block), space, states, guess=DOWN, block=block).load() for block in (9, 2))
    assert one.drop_vars("block_digest").equals(other.drop_vars("block_digest"))


def test_states_of_an_arm_are_single_states(tmp_path: Path) -> None:
    """A workspace of two joints with a payload, moving: every state by inverse dynamics and a wrench of its own."""
    m = arm()
    way = {"q:lower": np.linspace(-1, 1, 4), "q:upper": [0.3, 1.2]}
    space = {"payload": [1.0, 3.0]}
    keep = {"shoulder": statistics.maximum("pin"), "worst": statistics.time_of_maximum("pin"), "u": True}
    outputs = {"pin": pf.reaction("upper", magnitude=True)}
    found = swept(m, tmp_path, space, way, keep=keep, outputs=outputs, v={"lower": 0.7}).load()
    for run, payload in enumerate(space["payload"]):
        seen = []
        for q in itertools.product(*way.values()):
            p = {"payload": payload}
            u = pf.inverse_dynamics(m, q, [0.7, 0.0], [0.0, 0.0], parameters=p).u
            np.testing.assert_allclose(found["u"][run, len(seen)], u, rtol=PEER, atol=PEER)
            w = pf.reaction_wrench(m, "upper", q, [0.7, 0.0], u, parameters=p).wrench
            seen.append([np.linalg.norm(w[:3]), np.linalg.norm(w[3:])])
        np.testing.assert_allclose(found["shoulder"][run], np.max(seen, axis=0), rtol=PEER)
        assert found["worst"][run].values.tolist() == np.argmax(seen, axis=0).tolist()


def test_states_under_given_inputs_move(tmp_path: Path) -> None:
    """The pull in a rod that falls freely from the horizontal is none, and from below it carries the bob."""
    keep = {"hold": statistics.minimum("rod")}
    outputs = {"rod": pf.reaction("lower", magnitude=True)}
    found = swept(arm(), tmp_path, {"payload": [2.0]}, {"q:lower": [0.0]}, keep=keep, outputs=outputs, u={"lower": 0.0})
    straight = pf.forward_dynamics(arm(), [0.0, 0.0], parameters={"payload": 2.0})
    w = pf.reaction_wrench(arm(), "lower", [0.0, 0.0], [0.0, 0.0], parameters={"payload": 2.0}).wrench
    assert abs(straight.v_dot).max() > 1
    np.testing.assert_allclose(found["hold"][0, 0], np.linalg.norm(w[:3]), rtol=PEER)


def arm() -> pf.Mechanism:
    payload = pf.Parameter("payload", 1.0, "kg")
    bodies = [pf.body("a", 2.0, com=(0.3, 0, 0), inertia=0.1), pf.body("b", payload, com=(0.5, 0, 0), inertia=0.05)]
    joints = [
        pf.joint("lower", "revolute", "world", "a", axis=(0, 1, 0)),
        pf.joint("upper", "revolute", "a", "b", axis=(0, 1, 0), placement=(0.6, 0, 0)),
    ]
    motors = [pf.actuator("lower", "lower"), pf.actuator("upper", "upper")]
    return pf.mechanism("arm", bodies, joints, actuators=motors, parameters=[payload])


def test_loads_of_a_run_are_those_of_its_records(tmp_path: Path) -> None:
    """A four-bar on the move: the table of the run, and that of its motion; both with all instants and places."""
    m = four_bar()
    how = {"duration": 0.4, "step": 2e-3, "backend": "interpreter"}
    start = pf.run(m, duration=2e-3, step=2e-3, backend="interpreter")
    v = {m.v_names[0]: 3.0}
    given = start["q"].isel(time=0).values
    table = pf.loads(pf.run(m, given, v, record="loads", **how), file=tmp_path / "loads.csv")
    motion = pf.loads(pf.run(m, given, v, **how), m)
    assert set(table.data_vars) == set(motion.data_vars)
    for name in table.data_vars:
        close = pytest.approx(motion[name].values, rel=INTEGRATED, abs=INTEGRATED)
        assert name.startswith("moment") or table[name].values == close
    rows = list(csv.reader((tmp_path / "loads.csv").read_text().splitlines()))
    assert rows[0][:3] == ["joint", "force [N]", "force_time [s]"] and len(rows) == 1 + table.sizes["joint"]
    assert float(rows[1][1]) == float(table["force"][0])


def test_a_sheet_has_the_numbers_of_the_csv_file_and_no_formula(tmp_path: Path) -> None:
    """Two cranes whose joints have names like formulas and tags, one of them without finite loads, in .xlsx and .csv."""
    names = ("=1+2", "<b> & 'a'")
    arms = [pf.body(f"arm {i}", 2.0, com=(0.3, 0, 0), inertia=0.1) for i in range(2)]
    joints = [
        pf.joint(n, "revolute", parent, b.name, axis=(0, 1, 0), placement=(0.6, 0, 0))
        for n, parent, b in zip(names, ("world", "arm 0"), arms, strict=True)
    ]
    m = pf.mechanism("crane", arms, joints)
    r = pf.run(m, np.array([[0.1, 0.2], [0.3, 0.4]]), duration=0.02, step=0.01, backend="numpy")
    r["v"][1] = np.nan
    for file in ("loads.csv", "loads.XLSX"):
        pf.loads(r, m, file=tmp_path / file)
    with zipfile.ZipFile(tmp_path / "loads.XLSX") as file:
        assert all(ElementTree.fromstring(file.read(part)).tag for part in file.namelist())
        sheet = ElementTree.fromstring(file.read("xl/sheet.xml"))
        kinds = {file.read(part)[:5] for part in file.namelist()}
    ns = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
    assert kinds == {b"<?xml"} and not list(sheet.iter(f"{ns}f"))
    cells = [[(c.findtext(f"{ns}is/{ns}t"), c.findtext(f"{ns}v")) for c in row] for row in sheet.iter(f"{ns}row")]
    written = list(csv.reader((tmp_path / "loads.csv").read_text(encoding="utf-8").splitlines()))
    assert len(cells) == len(written) == 5 and [x for x, _ in cells[0]] == written[0]
    assert [row[1][0] for row in cells[1:]] == [*names] * 2
    for row, line in zip(cells[1:], written[1:], strict=True):
        numbers = [(float(x) if x else np.nan) for x in (value for word, value in row if word is None)]
        expected = [float(x) for i, x in enumerate(line) if i != 1]
        np.testing.assert_array_equal(numbers, np.where(np.isfinite(expected), expected, np.nan))
    assert np.isnan(float(written[3][2])) and cells[3][2] == (None, None)
    with pytest.raises(ModelError, match=r"'loads.ods': the name of a table ends in .csv or .xlsx"):
        pf.loads(r, m, file=tmp_path / "loads.ods")
    assert not (tmp_path / "loads.ods").exists()


def test_a_sheet_has_no_more_rows_than_spreadsheets_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [["a", 1.0]] * 100
    table_file.write_table(tmp_path / "t.xlsx", rows)
    assert table_file.MOST_ROWS == 1_048_576 and (tmp_path / "t.xlsx").exists()
    monkeypatch.setattr(table_file, "MOST_ROWS", 99)
    table_file.write_table(tmp_path / "t.csv", rows)
    with pytest.raises(ModelError, match=r"a table of 100 rows: a sheet has 99 at most; write \.csv"):
        table_file.write_table(tmp_path / "more.xlsx", rows)


def test_peak_of_a_pendulum_is_at_its_lowest_point() -> None:
    """m g (3 - 2 cos q0) where a pendulum released at q0 passes its lowest point; batch, closed form."""
    bob = pf.body("bob", mass=2.0, com=(0, 0, -1))
    m = pf.mechanism("pendulum", [bob], [pf.joint("hinge", "revolute", "world", "bob", axis=(0, 1, 0))])
    angles = np.array([0.4, 1.0, 1.5])
    result = pf.run(m, {"hinge": angles}, duration=1.2, step=1e-3, record="loads", backend="interpreter")
    table = pf.loads(result)
    exact = 2 * G * (3 - 2 * np.cos(angles))
    np.testing.assert_allclose(table["force"][:, 0], exact, rtol=1e-5)  # the record nearest to the lowest point
    assert (np.abs(table["force_time"][:, 0] - np.pi / 2 / np.sqrt(G) * (1 + angles**2 / 16)) < 0.02).all()
    assert table["force_unique"].all() and (table["force_z"] == 0).all()


def test_loads_of_a_sweep_over_runs_are_those_of_each_run(tmp_path: Path) -> None:
    how: Any = {"q": {"lower": 0.4}, "duration": 0.3, "step": 5e-3, **INTERPRETED}
    found = pf.sweep(arm(), {"payload": [1.0, 2.5]}, store=tmp_path / "runs.zarr", keep="loads", **how)
    table = pf.loads(found, file=tmp_path / "loads.csv").load()
    for run, payload in enumerate((1.0, 2.5)):
        alone = pf.loads(pf.run(arm(), parameters={"payload": payload}, record="loads", **how))
        for name in alone.data_vars:
            np.testing.assert_array_equal(table[name][run], alone[name], err_msg=str(name))
    rows = (tmp_path / "loads.csv").read_text().splitlines()
    assert rows[0].startswith("run,joint,force [N],force_time [s]") and rows[3].startswith("1,lower,") and len(rows) == 5
    with pytest.raises(ModelError, match="output 'joint_x': 'loads' has an output of that name"):
        pf.run(arm(), record="loads", outputs={"joint_x": lambda k: k.q[0]}, **how)


def test_instants_do_not_depend_on_the_length_of_calls() -> None:
    """The first of equal maxima counts, and NaN never."""
    from pfaffian.simulate.step.running_statistics import Recording, tally_of
    from pfaffian.states.signal import Signal

    signals = {"x": (Signal("1"), 1), "y": (Signal("1", "axis", ("a", "b")), 2)}
    keep = {
        "when": statistics.time_of_maximum("x"),
        "at": statistics.at_maximum("y", "x"),
        "own": statistics.at_maximum("y", "y"),
    }
    records = np.array([[np.nan, 1, 5], [3, 2, 1], [1, 9, np.nan], [3, 4, 7]])[:, None, :]
    found = []
    for cuts in ([4], [1, 3], [2, 1, 1]):
        tally = tally_of(Recording((), keep), signals, 1, 0.0, 0.5)
        assert tally is not None
        at = 0
        for n in cuts:
            tally.add(records[at : at + n], at, 0)
            at += n
        found.append([tally.value(name).tolist() for name in keep])
    assert found[0] == found[1] == found[2] == [[[0.5]], [[2.0, 1.0]], [[9.0, 7.0]]]


DOWN = {"bob.y": -1.0}


def rod() -> pf.Mechanism:
    """A bob on a rod of length l, in a plane."""
    l = pf.Parameter("l", 1.0, "m")
    held = pf.closure("rod", "distance", "world", "bob", length=l)
    plane = pf.joint("bob", "planar-translation", "world", "bob", axis=(0, -1, 0))
    return pf.mechanism("rod", [pf.body("bob", 1.0)], [plane], constraints=[held], parameters=[l])


def test_states_out_of_reach_are_told(tmp_path: Path) -> None:
    """A bob asked to swing further than its rod reaches: other runs of the sweep are not affected."""
    m = rod()
    with pytest.warns(RunWarning, match="state 1 of run 0"):
        found = swept(m, tmp_path, {"l": [0.5, 2.0]}, {"q:bob.x": [0.4, 0.9]}, guess=DOWN).load()
    assert found["status"].values.tolist() == [2, 0] and found["stopped"][0] == 1
    with pytest.raises(RunError, match="out of reach in every run"):
        swept(m, tmp_path / "none", {"l": [0.5, 0.6]}, {"q:bob.x": [0.9]}, guess=DOWN)


def test_states_of_a_machine_in_which_nothing_else_varies(tmp_path: Path) -> None:
    """Its reactions along the stroke are those of the machine that varies, and a second call reads them from the store."""
    m, empty = lift(), dict[str, Any]()
    load = dict(zip(m.p_names, m.p_defaults, strict=True))["load"]
    found = swept(m, tmp_path, empty, {"q:a": STROKE}, guess=GUESS)
    varied = swept(m, tmp_path / "varied", {"load": [load]}, {"q:a": STROKE}, guess=GUESS)
    assert found.sizes["run"] == 1 and pf.sweeps.damaged(tmp_path / "loads.zarr") == []
    again = pf.loads(swept(m, tmp_path, empty, {"q:a": STROKE}, guess=GUESS)).compute()
    np.testing.assert_array_equal(again["force"], pf.loads(varied).compute()["force"])
    with pytest.raises(ModelError, match="values} is needed"):
        pf.sweep(m, empty, store=tmp_path / "none", keep="loads", duration=0.1)
    with pytest.raises(ModelError, match="states have no noise, so there is no seed"):
        swept(m, tmp_path / "none", {"seed": [0]}, {"q:a": STROKE}, guess=GUESS)


@pytest.mark.parametrize(
    ("states", "how", "words"),
    [
        ({"q:a": [0.3]}, {"duration": 1.0}, "is for runs"),
        ({"q:a": [0.3]}, {"keep": {"x": statistics.integral("q")}}, "over time"),
        ({"load": [1.0]}, {}, "an axis of the space and of the states"),
        ({"seed": [1]}, {}, "no seed"),
        ({"q:nothing": [1]}, {}, "there is no"),
    ],
)
def test_states_that_do_not_fit_are_refused(tmp_path: Path, states: Any, how: Any, words: str) -> None:
    with pytest.raises(ModelError, match=words):
        swept(lift(), tmp_path, {"load": [20.0]}, states, guess=GUESS, **how)


def test_loads_of_other_results_are_refused() -> None:
    m = arm()
    result = pf.run(m, duration=0.01, step=1e-3, record=["q"], backend="interpreter")
    with pytest.raises(ModelError, match="give the mechanism too"):
        pf.loads(result)
    with pytest.raises(ModelError, match="no 'v'"):
        pf.loads(result, m)
    with pytest.raises(ModelError, match="the result of a run"):
        pf.loads(3)  # type: ignore[arg-type]
    record = {"x": statistics.at_maximum("q", "v"), "y": statistics.at_maximum("pin", "q")}
    with pytest.raises(ModelError, match="one is needed, or as many"):
        pf.run(
            m, duration=0.01, step=1e-3, record={"y": statistics.at_maximum("pin", "q")}, outputs={"pin": pf.reaction("upper")}
        )
    assert pf.run(m, duration=0.01, step=1e-3, record={"x": record["x"]}, backend="interpreter")["x"].shape == (2,)
    assert "unique" in OF_PEAK


def test_loads_say_what_to_do_with_a_machine_or_a_motion_in_place_of_a_result() -> None:
    door = pf.joint("hinges", "revolute", "world", "door")
    m = pf.mechanism("gate", [pf.body("door", 20.0, com=(0.4, 0, 0), inertia=1.0)], [door])
    with pytest.raises(pf.ModelError, match=r"the mechanism comes after it, loads\(result, m\)"):
        pf.loads(m)
    way = pf.assemble(m, {"hinges": np.linspace(0.0, 1.0, 5)}, t=np.arange(5.0), along=True)
    with pytest.raises(pf.ModelError, match="a motion of assemble has no inputs: inverse_dynamics"):
        pf.loads(way, m)
