"""Sweeps: each run equals that run alone, and a store has the same bytes whatever happens while it is written."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import warnings
from functools import cache
from pathlib import Path

import casadi as ca
import numpy as np
import pytest
import xarray as xr

import pfaffian as pf
import pfaffian.sweeps.engine as engine
import pfaffian.sweeps.plan as plan
import pfaffian.sweeps.planned as planned
import pfaffian.sweeps.store as store
from pfaffian import control, statistics, sweeps
from pfaffian.errors import ModelError, RunError, RunWarning
from pfaffian.forces import joint_friction
from tests.simulate.machines import four_bar

LENGTH = pf.Parameter("length", 1.0, "m")
HINGE = {"kind": "revolute", "axis": (0, 1, 0)}
KEEP = {"fastest": statistics.maximum("v"), "spent": statistics.histogram("q", [-9, 0, 9])}
RUN = {"duration": 0.05, "step": 0.01, "backend": "interpreter", "keep": KEEP, "block": 8, "error": True}


@cache
def pendulum() -> pf.Mechanism:
    rod = pf.body("rod", 1.0, com=(0, 0, -LENGTH), inertia=0.1)
    return pf.mechanism(
        "pendulum", [rod], [pf.joint("hinge", parent="world", child="rod", **HINGE)],
        actuators=[pf.actuator("motor", "hinge")], parameters=[LENGTH],
    )  # fmt: skip


SPACE = {"length": np.linspace(0.5, 1.5, 6), "q:hinge": [-0.4, 0.1, 0.2, 0.9], "u:motor": ("q:hinge", [0.0, 1.0, 2.0, 3.0])}
"""24 runs in 3 blocks: inputs vary together with starts, and lengths multiply."""


def files(folder: Path) -> dict[str, bytes]:
    """All files of a store except those that a killed process was writing."""
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file() and p.suffix != ".partial"}


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Path:
    """The store of the sweep when it is computed at once."""
    place = tmp_path_factory.mktemp("whole") / "runs.zarr"
    pf.sweep(pendulum(), SPACE, store=place, threads=1, **RUN)
    return place


def test_each_run_of_a_sweep_equals_that_run_alone(whole):
    found = sweeps.open_store(whole).load()
    assert found["axis"].values.tolist() == list(SPACE) and found.sizes["run"] == 24 and (found["status"] == 0).all()
    assert found["axis_unit"].values.tolist() == ["m", "rad", "N m"]
    for k in (0, 9, 23):
        length, q, u = found["space"].values[k]
        assert (length, q, u) == (SPACE["length"][k // 4], SPACE["q:hinge"][k % 4], SPACE["u:motor"][1][k % 4])
        given = {"q": {"hinge": q}, "u": {"motor": u}, "parameters": {"length": length}, "record": KEEP}
        alone = pf.run(pendulum(), **given, **{k: x for k, x in RUN.items() if k not in ("keep", "block")})
        for name in KEEP:
            np.testing.assert_array_equal(found[name].values[k], alone[name].values)
            assert found[name].attrs == alone[name].attrs and found[name].dims[1:] == alone[name].dims


def test_statistics_to_an_accuracy_store_nothing_over_time(tmp_path):
    """Some ten numbers a run, not 201 of which pair made the step to each record."""
    keep, how = {"peak": statistics.maximum("v")}, {"accuracy": 1e-6, "duration": 1.0, "backend": "interpreter"}
    d = pf.sweep(pendulum(), {"length": [0.5, 0.8]}, store=tmp_path / "runs.zarr", keep=keep, **how)
    assert "time" not in d.sizes and "stiff" not in d and np.isfinite(d["error"]).all()
    both = pf.sweep(pendulum(), {"length": [0.5, 0.8]}, store=tmp_path / "also.zarr", keep=keep | {"q": True}, **how)
    assert both["stiff"].shape == (2, 201) and both["q"].shape == (2, 201, 1)


@pytest.mark.parametrize("when", [{"times": [0.0, 0.1, 0.35]}, {"duration": 0.35}])
def test_sweeps_to_an_accuracy_are_runs_to_it(when, tmp_path):
    how = {"accuracy": 1e-7, "backend": "interpreter", **when}
    found = pf.sweep(pendulum(), {"length": [0.5, 0.8]}, store=tmp_path / "runs.zarr", q=[0.4], keep=["q"], **how).load()
    for k, length in enumerate((0.5, 0.8)):
        alone = pf.run(pendulum(), q=[0.4], parameters={"length": length}, record=["q"], **how)
        np.testing.assert_array_equal(found["q"].values[k], alone["q"].values)
        assert 0 < alone["error"].values.max() <= 1e-7


def test_a_sweep_needs_the_times_of_its_runs(tmp_path):
    with pytest.raises(ModelError, match=r"duration .* or times .* are needed"):
        pf.sweep(pendulum(), {"length": [0.5, 0.8]}, store=tmp_path / "runs.zarr", keep=["q"], accuracy=1e-6)


def test_a_block_has_one_chunk_for_each_variable_and_its_entry_comes_last(whole):
    names = ["fastest", "spent", "space", "status", "error", "block_digest"]
    for name in names:
        assert len([p for p in (whole / name / "c").rglob("*") if p.is_file()]) == 3, "one chunk a block"
    assert not (whole / "stopped" / "c").exists(), "no file for a chunk of fill values"
    others = [p for p in whole.rglob("*") if p.is_file() and "c" not in p.relative_to(whole).parts[1:2]]
    labels = [p for p in whole.glob("*/c/0") if p.is_file() and p.parts[-3] != "block_digest"]
    assert len(others) + len(labels) == DESCRIBED + 1, "and the copy"
    assert np.isnan(sweeps.open_store(whole)["stopped"]).all()


def counted(monkeypatch) -> list[int]:
    """List that receives the numbers of the runs that are computed from now on."""
    seen: list[int] = []
    run = plan.Sweep._run
    monkeypatch.setattr(plan.Sweep, "_run", lambda self, which, *rest: (seen.extend(which), run(self, which, *rest))[1])
    return seen


def test_parts_on_threads_in_any_order_make_the_same_store(whole, tmp_path, monkeypatch):
    parts = tmp_path / "runs.zarr"
    for shard in ("3/3", "1/3"):
        pf.sweep(pendulum(), SPACE, store=parts, shard=shard, **RUN)
    half = sweeps.open_store(parts)
    assert (half["status"].values == -1).sum() == 8 and (half["block_digest"].values == 0).tolist() == [False, True, False]
    seen = counted(monkeypatch)
    done = pf.sweep(pendulum(), SPACE, store=parts, threads=3, **RUN | {"block": None})
    assert seen == [*range(8, 16)], "only the missing runs"
    assert files(parts) == files(whole)
    pf.sweep(pendulum(), SPACE, store=parts, **RUN)
    assert len(seen) == 8
    xr.testing.assert_identical(done.load(), sweeps.open_store(whole).load())


def killed(space, place: Path, at: int) -> bool:
    """Sweep in a process that is killed without warning just before it gives the `at`-th file or folder its name; returns
    whether it was."""
    child = os.fork()
    if not child:
        try:
            count = [0]

            def counting(name):
                original = getattr(os, name)

                def counted(*given, **how):
                    count[0] += 1
                    if count[0] == at:
                        os.kill(os.getpid(), signal.SIGKILL)
                    return original(*given, **how)

                return counted

            os.replace, os.rename = counting("replace"), counting("rename")
            pf.sweep(pendulum(), space, store=place, threads=1, **RUN)
            os._exit(0)
        finally:
            os._exit(9)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0
    return os.WIFSIGNALED(status)


DESCRIBED = 28
"""Number of files with metadata and labels of the store of the pendulum."""


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_sweep_that_is_killed_at_any_file_makes_the_same_store_when_called_again(whole, tmp_path):
    """As with `kill -9`, no handler runs. Files get their names for the copy of the description, which then gets its own, for
    the description, then seven for each block."""
    again = tmp_path / "runs.zarr"
    kills = [killed(SPACE, again, at) for at in (1, 2, 3, 9, DESCRIBED + 1, 9, 7, 6, 4, 2, 1)]
    assert all(kills) and {p.name for p in tmp_path.iterdir()} == {"runs.zarr"}, "no file outside the store"
    found = sweeps.open_store(again).load()
    assert 0 < (found["status"].values == -1).sum() < 24
    partial = [p for p in again.rglob("*.partial") if p.is_file()]
    assert len(partial) > 5
    for p in again.rglob("*"):
        os.utime(p, (0, 0))
    pf.sweep(pendulum(), SPACE, store=again, **RUN)
    assert not [*again.rglob("*.partial")], "those that no process is writing any more are removed"
    assert files(again) == files(whole) and sweeps.damaged(again) == []


def test_processes_that_begin_at_once_make_one_store(whole, tmp_path):
    """All of them find no store, and compute all blocks."""
    children = []
    for _ in range(3):
        children.append(os.fork())
        if not children[-1]:
            try:
                pf.sweep(pendulum(), SPACE, store=tmp_path / "runs.zarr", threads=1, **RUN)
                os._exit(0)
            finally:
                os._exit(9)
    assert [os.waitpid(child, 0)[1] for child in children] == [0, 0, 0]
    assert files(tmp_path / "runs.zarr") == files(whole) and [p.name for p in tmp_path.iterdir()] == ["runs.zarr"]


def test_of_two_sweeps_that_begin_at_once_the_second_is_refused(whole, tmp_path, monkeypatch):
    """It finds no store, and that of another sweep when it has composed its own."""
    place, empty = tmp_path / "runs.zarr", store._empty

    def late(sweep):
        found = empty(sweep)
        shutil.copytree(whole, place)
        return found

    monkeypatch.setattr(store, "_empty", late)
    with pytest.raises(ModelError, match="another sweep: space differ"):
        pf.sweep(pendulum(), SPACE | {"length": np.linspace(0.5, 1.4, 6)}, store=place, **RUN)
    assert files(place) == files(whole)


def test_a_full_disk_costs_one_block(whole, tmp_path, monkeypatch):
    replace, count = os.replace, [0]

    def full(*names):
        count[0] += "space" in str(names[1])
        if count[0] > 3:  # its metadata, block 0, block 1
            raise OSError(28, "No space left on device")
        return replace(*names)

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", full)
        with pytest.raises(RunError, match=r"cannot write block 2 into .*: No space left on device; blocks in the store stay"):
            pf.sweep(pendulum(), SPACE, store=tmp_path / "runs.zarr", threads=1, **RUN)
    assert (sweeps.open_store(tmp_path / "runs.zarr")["block_digest"].values != 0).tolist() == [True, True, False]
    pf.sweep(pendulum(), SPACE, store=tmp_path / "runs.zarr", **RUN)
    assert files(tmp_path / "runs.zarr") == files(whole)


def test_a_disk_that_is_full_at_the_beginning_leaves_nothing(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", full)
        with pytest.raises(RunError, match=r"cannot make the store '.*runs.zarr': No space left on device"):
            pf.sweep(pendulum(), SPACE, store=tmp_path / "runs.zarr", **RUN)
    assert not [*tmp_path.iterdir()]
    (tmp_path / "runs.zarr").mkdir()
    assert (pf.sweep(pendulum(), SPACE, store=tmp_path / "runs.zarr", **RUN)["status"].values == 0).all(), (
        "an empty folder is none"
    )


def test_ctrl_c_ends_a_sweep_after_the_blocks_in_progress(tmp_path, monkeypatch):
    stored = engine.stored
    monkeypatch.setattr(engine, "stored", lambda planned, k: (stored(planned, k), signal.raise_signal(signal.SIGINT))[0])
    with pytest.raises(KeyboardInterrupt):
        pf.sweep(pendulum(), SPACE, store=tmp_path / "runs.zarr", threads=1, **RUN)
    assert 1 <= (sweeps.open_store(tmp_path / "runs.zarr")["block_digest"].values != 0).sum() < 3


def test_a_damaged_block_is_detected_and_computed_again(whole, tmp_path, monkeypatch):
    place = tmp_path / "runs.zarr"
    pf.sweep(pendulum(), SPACE, store=place, **RUN)
    (place / "fastest" / "c" / "1" / "0").write_bytes((place / "fastest" / "c" / "2" / "0").read_bytes())
    (place / "space" / "c" / "2" / "0").write_bytes(b"torn")
    assert sweeps.damaged(place) == [1, 2]
    seen = counted(monkeypatch)
    pf.sweep(pendulum(), SPACE, store=place, **RUN)
    assert sorted(seen) == [*range(8, 24)] and files(place) == files(whole)


LAW = control.Control(lambda terms, z, w, reaction: control.Command(2 * w), (), ("motor",))
OTHERS = {
    "space": (SPACE | {"length": np.linspace(0.5, 1.6, 6)}, {}, "space differ"),
    "mechanism": (SPACE, {"outputs": {"twice": lambda k: 2 * k.q}}, "mechanism, law, scheme, outputs and switches differ"),
    "law": (SPACE, {"control": LAW}, "mechanism, law, scheme, outputs and switches differ"),
    "scheme": (SPACE, {"scheme": pf.Scheme(integrator="euler")}, "mechanism, law, scheme, outputs and switches differ"),
    "switches": (SPACE, {"switches": {"length": lambda k: 1 + k.t}}, "mechanism, law, scheme, outputs and switches differ"),
    "seed": (SPACE, {"seed": 1}, "arguments of run differ"),
    "step": (SPACE, {"step": 0.005}, "arguments of run differ"),
    "keep": (SPACE, {"keep": KEEP | {"spent": statistics.histogram("q", [-9, 1, 9])}}, "keep differ"),
    "trajectories too": (SPACE, {"keep": KEEP | {"q": True}}, "keep differ"),
    "block": (SPACE, {"block": 12}, r"runs of a block \(8 there, 12 here\) differ"),
}


@pytest.mark.parametrize("case", OTHERS)
def test_the_store_of_another_sweep_is_refused_with_the_difference(whole, case):
    space, changed, words = OTHERS[case]
    before = files(whole)
    with pytest.raises(ModelError, match=f"is of another sweep: {words}; choose another store"):
        pf.sweep(pendulum(), space, store=whole, **RUN | changed)
    assert files(whole) == before


@pytest.mark.parametrize("package", ["pfaffian", "casadi", "numpy"])
def test_another_version_is_refused(whole, monkeypatch, package):
    version = planned.version
    monkeypatch.setattr(planned, "version", lambda name: "9.9" if name == package else version(name))
    with pytest.raises(ModelError, match=rf"is of another sweep: version of {package} \('.*' there, '9.9' here\) differ"):
        pf.sweep(pendulum(), SPACE, store=whole, **RUN)


def test_a_store_that_depends_on_more_is_of_another_sweep(whole, monkeypatch):
    versions = planned.versions
    monkeypatch.setattr(planned, "versions", lambda space: {k: x for k, x in versions(space).items() if "numpy" not in k})
    with pytest.raises(ModelError, match=r"version of numpy \('.*' there, None here\) differ"):
        pf.sweep(pendulum(), SPACE, store=whole, **RUN)


def test_another_backend_is_the_same_sweep(whole):
    before = files(whole)
    pf.sweep(pendulum(), SPACE, store=whole, **RUN | {"backend": "numpy"})
    assert files(whole) == before


def test_another_switch_is_another_sweep(tmp_path):
    """A load that the pendulum catches where it passes; another switch in the same store is refused."""
    caught = pf.Parameter("caught", 0.0)
    m = pendulum().with_(parameters=[LENGTH, caught], bodies=[pf.body("rod", 1.0 + caught, com=(0, 0, -LENGTH), inertia=0.1)])

    def at(angle):
        return {"caught": lambda k: ca.if_else(k.q[0] > angle, 1.0, caught)}

    space, how = {"v:hinge": [0.0, 9.0]}, RUN | {"keep": ["q", "caught"]}
    found = pf.sweep(m, space, store=tmp_path / "a.zarr", switches=at(0.2), **how)
    assert found["caught"].values[:, -1].ravel().tolist() == [0.0, 1.0]
    with pytest.raises(ModelError, match="another sweep: mechanism, law, scheme, outputs and switches differ"):
        pf.sweep(m, space, store=tmp_path / "a.zarr", switches=at(0.3), **how)


def test_other_folders_are_no_stores(tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "zarr.json").write_text('{"attributes": {"sweep": "[]"}}')
    for place in (tmp_path / "mine", tmp_path):
        with pytest.raises(ModelError, match="not the store of a sweep"):
            pf.sweep(pendulum(), SPACE, store=place, **RUN)
        with pytest.raises(ModelError, match="not the store of a sweep"):
            sweeps.open_store(place)


def test_only_temporary_files_of_the_library_are_deleted(tmp_path):
    """A statistic or a file of the user with a similar name stays, however old it is."""
    place, keep = (
        tmp_path / "runs.zarr",
        KEEP | {"top.partial": statistics.final("q"), f"a.{'0' * 32}.partial": statistics.final("v")},
    )
    made = pf.sweep(pendulum(), SPACE, store=place, **RUN | {"keep": keep}).load()
    before = files(place)
    chunks, mark = place / "space" / "c" / "1", "0123456789abcdef" * 2
    old, new, mine, aside = (
        chunks / f"0.{mark}.partial",
        chunks / f"1.{mark}.partial",
        chunks / "a.partial",
        place / f".{mark}.partial",
    )
    aside.mkdir()
    for path in (old, new, mine):
        path.write_bytes(b"half")
    for path in [p for p in place.rglob("*") if p != new]:
        os.utime(path, (0, 0))
    found = pf.sweep(pendulum(), SPACE, store=place, **RUN | {"keep": keep}).load()
    assert [p.exists() for p in (old, new, mine, aside)] == [False, True, True, False]
    assert found.identical(made) and before.items() <= files(place).items()


def test_runs_that_cannot_start_have_their_status(tmp_path):
    """Blocks of cranks whose rod is too short; the other runs equal those alone."""
    rod = pf.Parameter("rod", 2.0)
    bodies = [pf.body("crank", 1.0, (0.5, 0, 0), 0.1), pf.body("rod", 1.0, (rod / 2, 0, 0), 0.1)]
    hinges = [pf.joint("a", parent="world", child="crank", **HINGE),
              pf.joint("b", parent="crank", child="rod", placement=(1, 0, 0), **HINGE)]  # fmt: skip
    slider = pf.holonomic("slider", lambda k: k.position("rod", (rod.symbol, 0, 0))[2])
    m = pf.mechanism("slider-crank", bodies, hinges, constraints=[slider], parameters=[rod])
    space = {"rod": [2.0, 0.2, 3.0, 0.3, 0.3, 0.2, 0.1, 0.2]}
    how = RUN | {"q": {"a": 1.2}, "block": 4}
    with pytest.warns(RunWarning, match=r"2 blocks of 2 computed now had warnings; runs 0 to 3: .*not assembled"):
        found = pf.sweep(m, space, store=tmp_path / "runs.zarr", **how).load()
    assert (found["status"].values[[0, 2]] == 0).all() and (found["status"].values[[1, 3, 4, 5, 6, 7]] > 0).all()
    assert "not assembled" in pf.results.causes(found.assign_coords(time=0.0))[7]
    alone = pf.run(m, {"a": 1.2}, parameters={"rod": 3.0}, record=KEEP, duration=0.05, step=0.01, backend="interpreter")
    np.testing.assert_array_equal(found["fastest"].values[2], alone["fastest"].values)
    with pytest.raises(RunError, match=r"the coordinate 'a' = 1.2 rad cannot be kept"):
        pf.sweep(m, {"rod": [0.1, 0.2]}, store=tmp_path / "none.zarr", **how)
    assert not (tmp_path / "none.zarr").exists()


def test_a_guess_chooses_the_branch_of_a_loop(tmp_path):
    m, how = four_bar(), RUN | {"keep": ["q"], "duration": 0.01}
    b, d = pf.assemble(m, {"a": 0.4}, branches=2, backend="interpreter").q[:, 1:].T
    for k in range(2):
        guess = {"b": b[k] + 0.1, "d": d[k] - 0.1}
        found = pf.sweep(m, {"q:a": [0.4, 0.5]}, store=tmp_path / f"{k}.zarr", guess=guess, **how)
        np.testing.assert_allclose(found["q"].values[0, 0], [0.4, b[k], d[k]], atol=1e-9)
    every = pf.sweep(m, {"q:a": [0.4], "q:b": b, "q:d": ("q:b", d)}, store=tmp_path / "all.zarr", guess=guess, **how)
    np.testing.assert_array_equal(every["q"].values[:, 0], np.column_stack([[0.4, 0.4], b, d]))


def test_seeds_are_those_of_single_runs(tmp_path):
    law = control.discrete(
        lambda s: control.Command(-s["place"]), 0.01, measure={"place": control.sensor(lambda k: k.q, std=0.1)}
    )
    how = RUN | {"control": law, "keep": ["q"], "block": 2}
    single = {"control": law, "duration": 0.05, "step": 0.01, "backend": "interpreter", "record": ["q"]}
    found = pf.sweep(pendulum(), {"q:hinge": [0.1, 0.1, 0.1]}, store=tmp_path / "a.zarr", seed=4, **how)
    named = pf.sweep(pendulum(), {"seed": [6, 5, 4]}, store=tmp_path / "b.zarr", q={"hinge": 0.1}, **how)
    for k in range(3):
        alone = pf.run(pendulum(), {"hinge": 0.1}, seed=4 + k, **single)
        np.testing.assert_array_equal(found["q"].values[k], alone["q"].values)
        np.testing.assert_array_equal(named["q"].values[2 - k], alone["q"].values)
    assert found["q"].dims == ("run", "time", "coordinate") and (found["q"][0] != found["q"][1]).any()


SERIES = {
    "an array": (np.array([[1.0], [3.0], [2.0], [0.0]]), 0.02),
    "by name": ({"motor": [1.0, 3.0, 2.0, 0.0]}, 0.02),
    "one sample": (np.array([[2.0]]), 0.01),
    "labelled": (xr.DataArray([[1.0], [3.0], [2.0], [0.0]], dims=("time", "input"), coords={"input": ["motor"]}), 0.02),
    "constant": (np.array([2.0]), None),
    "constant by name": ({"motor": 2.0}, None),
}


@pytest.mark.parametrize("case", SERIES)
def test_inputs_of_all_runs_are_those_of_a_single_run(tmp_path, case):
    u, u_step = SERIES[case]
    given = {"u": u, "u_step": u_step, "hold": "linear"}
    found = pf.sweep(pendulum(), {"q:hinge": [0.1, 0.4, 0.9]}, store=tmp_path / "a.zarr", **given, **RUN | {"block": 2}).load()
    for k, q in enumerate([0.1, 0.4, 0.9]):
        alone = pf.run(pendulum(), [q], **given, duration=0.05, step=0.01, backend="interpreter", record=KEEP)
        np.testing.assert_array_equal(found["fastest"].values[k], alone["fastest"].values)
    with pytest.raises(ModelError, match="another sweep: arguments of run differ"):
        pf.sweep(pendulum(), {"q:hinge": [0.1, 0.4, 0.9]}, store=tmp_path / "a.zarr", **RUN | {"block": 2, "u": {"motor": 2.5}})


def test_a_series_of_one_input_beside_an_axis_of_another(tmp_path):
    """A brake that follows a series, and a motor that each run has constant."""
    m = pendulum()
    m = m.with_(actuators=[*m.actuators, pf.actuator("brake", "hinge")])
    series, how = [0.5, -0.5, 1.0], {"u_step": 0.02, "duration": 0.05, "step": 0.01, "backend": "interpreter"}
    space = {"u:motor": [1.0, 2.0, 3.0]}
    found = pf.sweep(m, space, store=tmp_path / "a.zarr", keep=["q"], u={"brake": series}, block=2, **how).load()
    for k, motor in enumerate(space["u:motor"]):
        alone = pf.run(m, u={"brake": series, "motor": motor}, record=["q"], **how)
        np.testing.assert_array_equal(found["q"].values[k], alone["q"].values)


def test_labels_of_numbers_count_and_their_order_does_not(tmp_path):
    m = pendulum()
    m = m.with_(actuators=[*m.actuators, pf.actuator("brake", "hinge")])

    def inputs(*names):
        return xr.DataArray([1.0, 2.0], dims="input", coords={"input": list(names)})

    how = {"store": tmp_path / "a.zarr", **RUN}
    pf.sweep(m, {"q:hinge": [0.1, 0.2]}, u=inputs("motor", "brake"), **how)
    pf.sweep(m, {"q:hinge": [0.1, 0.2]}, u=inputs("motor", "brake")[::-1], **how)
    with pytest.raises(ModelError, match="another sweep: arguments of run differ"):
        pf.sweep(m, {"q:hinge": [0.1, 0.2]}, u=inputs("brake", "motor"), **how)


def test_explain_refuses_the_store_of_another_sweep(whole):
    with pytest.raises(ModelError, match="another sweep: space differ"):
        sweeps.explain(pendulum(), SPACE | {"length": np.linspace(0.5, 1.4, 6)}, store=whole, **RUN)


def test_explain_gives_the_cost_of_a_sweep(tmp_path):
    how = RUN | {"store": tmp_path / "runs.zarr"}
    cost = sweeps.explain(pendulum(), SPACE, **how)
    assert cost[:4] == (24, 3, 24, 24 * (8 + 16 + 24 + 4 + 8 + 3 * 8)) and cost.seconds > 0
    assert "24 runs in 3 blocks, 24 of them to do; 2.02 kB before compression" in str(cost) and not how["store"].exists()
    pf.sweep(pendulum(), SPACE, shard="1/3", **how)
    assert sweeps.explain(pendulum(), SPACE, **how).left == 16
    pf.sweep(pendulum(), SPACE, shard="2/3", **how)
    last = sweeps.explain(pendulum(), SPACE, **how)
    assert last.left == 8 and last.seconds > 0


@pytest.mark.parametrize(("long", "times"), [(np.inf, 2), (0.0, 1)])
def test_a_quick_block_is_timed_again_after_its_compilation(tmp_path, monkeypatch, long, times):
    computed, calls = engine.computed, []
    monkeypatch.setattr(engine, "LONG", long)
    monkeypatch.setattr(engine, "computed", lambda *what: (calls.append(what), computed(*what))[1])
    sweeps.explain(pendulum(), SPACE, store=tmp_path / "runs.zarr", **RUN)
    assert len(calls) == times


def test_the_size_of_blocks_follows_from_the_runs(tmp_path):
    def block(count, **changed):
        options = {"duration": 1.0, "step": 0.01, "backend": "interpreter"} | changed
        keep = options.pop("keep", KEEP)
        return plan.plan(pendulum(), {"length": np.linspace(1, 2, count)}, tmp_path / "x", keep, None, options).block

    assert block(10) == 10 and block(1000) == 64 and block(2**20) == 2**14 and block(2**23) == 2**16
    assert block(2**23, duration=1e3) == 2**10, "at most 2^27 steps in a block, 1e5 for each run"
    assert block(2**20, keep=["q"], duration=4.0) == 2**14 and block(2**20, keep="all", duration=100.0) < 200


WRONG = {
    "no such axis": ({"lenght": [1.0]}, {}, "space: there is no 'lenght'.* did you mean 'length'"),
    "no such coordinate": ({"q:hing": [1.0]}, {}, "did you mean 'q:hinge'"),
    "no axis": ({}, {}, "space: {label: values} is needed"),
    "a number": ({"length": 1.0}, {}, r"'length' has shape \(\): \(n,\) values"),
    "another size": ({"length": ("a", [1, 2]), "q:hinge": ("a", [1, 2, 3])}, {}, "'q:hinge' has 3 values along 'a'.* have 2"),
    "two dimensions": ({"length": xr.DataArray(np.ones((2, 2)), dims=("a", "b"))}, {}, "one dimension is needed"),
    "half a seed": ({"seed": [0.5]}, {}, "seed: .* whole numbers"),
    "an array beside an axis": ({"q:hinge": [1.0]}, {"q": [1.0]}, "q must be {name: number}"),
    "an input of none": ({"u:motr": [1.0]}, {}, "u: there is no 'motr'"),
    "a series": ({"u:motor": [1.0]}, {"u": {"motor": [1, 2]}, "u_step": 0.01}, "u is a series"),
    "an array of runs": (
        {"length": [1.0, 2.0]},
        {"q": [[0.1], [0.2]]},
        "q: a number for each entry is needed, since all runs share",
    ),
    "numbers of runs": ({"length": [1.0, 2.0]}, {"v": {"hinge": [0.1, 0.2]}}, "v: a number for each entry is needed"),
    "parameters of runs": ({"q:hinge": [1.0, 2.0]}, {"parameters": {"length": [1, 2]}}, "parameters: a number for each entry"),
    "guesses of runs": ({"length": [1.0, 2.0]}, {"guess": {"hinge": [1, 2]}}, "guess: a number for each entry"),
    "inputs of runs": ({"length": [1.0, 2.0]}, {"u": [[1.0], [2.0]]}, "u: a number for each entry"),
    "a series of runs": ({"length": [1.0, 2.0]}, {"u": np.ones((3, 2, 1)), "u_step": 0.01}, r"u: a number or \(samples,\)"),
    "an array of text": ({"length": [1.0]}, {"u": ["1"]}, "u: .* is not an array of real numbers"),
    "samples of seeds": ({"seed": sweeps.samples({"length": (0, 1)}, 4)["length"]}, {}, "'seed': whole numbers are needed"),
    "a text as seed": ({"length": [1.0]}, {"seed": "1"}, "seed must be a whole number from 0 .* got '1'"),
    "a fraction as seed": ({"length": [1.0]}, {"seed": 1.5}, "seed must be a whole number from 0 .* got 1.5"),
    "a truth as seed": ({"length": [1.0]}, {"seed": True}, "seed must be a whole number from 0 .* got True"),
    "a seed that is no number": ({"length": [1.0]}, {"seed": np.nan}, "seed must be a whole number from 0 .* got nan"),
    "a last seed too large": ({"length": np.ones(9)}, {"seed": 2**52 - 5}, "seed must be a whole number from 0 to 2"),
    "a duration of text": (
        {"length": [1.0]},
        {"duration": "2", "block": None},
        "duration: '2' is not an array of real numbers",
    ),
    "no duration": ({"length": [1.0]}, {"duration": None, "block": None}, "duration: None is not"),
    "a name of the store": (
        {"length": [1.0]},
        {"keep": {"space": statistics.final("q")}},
        "keep: statistic 'space': a store uses",
    ),
    "a unit's name": ({"length": [1.0]}, {"keep": {"axis_unit": statistics.final("q")}}, "statistic 'axis_unit': a store uses"),
    "no name of a file": ({"length": [1.0]}, {"keep": {"..": statistics.final("q")}}, r"statistic '\.\.': a store uses"),
    "seeds for all": ({"length": [1.0]}, {"seed": [1, 2]}, "seeds of runs are an axis"),
    "an argument that the sweep gives": ({"length": [1.0]}, {"record": "all"}, "'record' is given by the sweep itself"),
    "no argument": ({"length": [1.0]}, {"durations": 1}, "'durations' is no argument of run; did you mean 'duration'"),
    "no keep": ({"length": [1.0]}, {"keep": None}, "keep is needed"),
    "a shard": ({"length": [1.0]}, {"shard": "2"}, "shard: 'i/n' is needed"),
    "a shard too many": ({"length": [1.0]}, {"shard": "3/2"}, "there are shards 1 to 2"),
    "no client": ({"length": [1.0]}, {"client": 3}, "client: a dask.distributed.Client"),
    "threads of a client": ({"length": [1.0]}, {"client": 3, "threads": 1}, "threads are those of this process"),
    "no block": ({"length": [1.0]}, {"block": 0}, "block must be a whole number"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_arguments_are_refused(case, tmp_path):
    space, changed, words = WRONG[case]
    with pytest.raises(ModelError, match=words):
        pf.sweep(pendulum(), space, store=tmp_path / "runs.zarr", **RUN | changed)


def test_a_store_below_a_file_cannot_be_made(tmp_path):
    (tmp_path / "notes").write_text("words")
    with pytest.raises(RunError, match=r"cannot make the store '.*notes/runs.zarr': (File exists|Not a directory)"):
        pf.sweep(pendulum(), {"length": [1.0]}, store=tmp_path / "notes" / "runs.zarr", **RUN)
    assert [p.name for p in tmp_path.iterdir()] == ["notes"]


def test_a_sweep_needs_a_duration(tmp_path):
    with pytest.raises(ModelError, match="duration"):
        pf.sweep(pendulum(), SPACE, store=tmp_path / "runs.zarr", keep=KEEP)


@pytest.mark.parametrize(("module", "package"), [("zarr", "zarr"), ("dask.array", "dask")])
def test_a_missing_package_names_itself(monkeypatch, tmp_path, module, package):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ModelError, match=f"needs the package {package}: run `pip install {package}`"):
        pf.sweep(pendulum(), SPACE, store=tmp_path / "runs.zarr", **RUN)


def test_progress_counts_the_blocks_of_all_workers(tmp_path, capsys):
    pf.sweep(pendulum(), SPACE, store=tmp_path / "runs.zarr", shard="1/2", **RUN)
    pf.sweep(pendulum(), SPACE, store=tmp_path / "runs.zarr", progress=True, **RUN)
    assert "3/3" in capsys.readouterr().err


def test_warnings_are_collected_into_one(tmp_path):
    """Friction of a pendulum with steps that are too long."""
    m = pendulum().with_(forces=[joint_friction("f", "hinge", 1.0)])
    with warnings.catch_warnings(record=True, action="always") as caught:
        pf.sweep(m, {"v:hinge": np.linspace(1, 40, 16)}, store=tmp_path / "a.zarr", **RUN | {"step": 0.05, "duration": 1.0})
    assert len(caught) == 1 and "2 blocks of 2 computed now had warnings; runs 0 to 7: " in str(caught[0].message)
