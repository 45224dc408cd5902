"""Each benchmark runs in quick mode: its checks pass, and its table and JSON are complete."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("pinocchio")
pytest.importorskip("mujoco")

from benchmarks import parallel_chains
from benchmarks.__main__ import NAMES, main
from benchmarks.check import SAME, CheckFailed, agree
from benchmarks.ours import acceleration
from benchmarks.result import Comparison, Goal, Timing, formatted, table
from benchmarks.timing import Options
from tests.work import PATIENCE

ROOT = Path(__file__).parents[2]


def run(*arguments: str) -> subprocess.CompletedProcess:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([p for p in sys.path if p])}
    command = [sys.executable, "-m", "benchmarks", *arguments]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=PATIENCE)


def refuse(text: str) -> None:
    raise ValueError(f"{text} is no JSON")


LINK = (
    '<link name="{0}"><inertial><origin xyz="0 0.5 0"/><mass value="{1}"/>'
    '<inertia ixx="0.05" ixy="0" ixz="0" iyy="0.04" iyz="0" izz="0.06"/></inertial></link>'
)
HINGE = (
    '<joint name="{0}" type="revolute" independent="{1}"><parent link="{2}"/><child link="{3}"/><origin xyz="{4}"/>'
    '<axis xyz="0 0 1"/><limit lower="-10" upper="10" effort="30" velocity="1"/></joint>'
)
LOOP = (
    '<loop name="tie" type="revolute"><predecessor link="rod"><origin xyz="1 0 0"/></predecessor>'
    '<successor link="b2"><origin xyz="0 1 0"/></successor><axis xyz="0 0 1"/></loop>'
)
COUPLING = '<coupling name="tie"><predecessor link="a2"/><successor link="b2"/><ratio value="-1.5"/></coupling>'


def two_chains(tie: str, rod: bool) -> str:
    """URDF+ of two chains of two links, 1 m apart, whose ends are tied by a rod and a loop or by a coupling."""
    text = [
        '<robot name="two chains"><link name="base"/>',
        *[LINK.format(*x) for x in (("a1", 1), ("a2", 2), ("b1", 3), ("b2", 4))],
    ]
    for name, parent, child, at in (
        ("ja1", "base", "a1", "0 0 0"),
        ("ja2", "a1", "a2", "0 1 0"),
        ("jb1", "base", "b1", "1 0 0"),
        ("jb2", "b1", "b2", "0 1 0"),
    ):
        text.append(HINGE.format(name, name != "jb2", parent, child, at))
    if rod:
        text += [LINK.format("rod", 0.5), HINGE.format("jr", False, "a2", "rod", "0 1 0")]
    return "".join([*text, tie, "</robot>"])


@pytest.fixture
def chains(tmp_path):
    """A folder of parallel chains as the benchmark reads them; it skips files without a loop."""
    for family, tie in (("loops", LOOP), ("couplings", COUPLING)):
        folder = tmp_path / "chains" / family / "depth2"
        folder.mkdir(parents=True)
        (folder / "loop_size2.urdf").write_text("not read: a shorter loop than the other file's")
        (folder / "loop_size4.urdf").write_text(two_chains(tie, tie is LOOP))
        (folder / "approx_loop_size8.urdf").write_text("not read: it has no loop")
    return tmp_path / "chains"


def test_chains_are_compared_with_an_independent_answer(chains, monkeypatch):
    rows = list(parallel_chains.run(Options(quick=True, chains=chains)))
    assert [r.what for r in rows] == ["coupling, depth2, loop_size4, 4 angles", "loop, depth2, loop_size4, 5 angles"]
    assert all(r.peer and r.notes["difference"] < SAME for r in rows)

    def untied(m, formulation, **how):
        return acceleration(m.with_(constraints=()), formulation, **how)

    monkeypatch.setattr(parallel_chains, "acceleration", untied)
    with pytest.raises(CheckFailed, match=r"loop_size4.urdf: they differ"):
        list(parallel_chains.run(Options(quick=True, chains=chains)))


def test_missing_files_are_reported_once(capsys, monkeypatch, tmp_path):
    monkeypatch.setattr("benchmarks.__main__.pin_to_one_core", lambda: None)
    for folder in ([], ["--chains", str(tmp_path)]):
        assert main(["parallel_chains", "--quick", *folder]) == 0
        text = capsys.readouterr().out
        assert text.count("not measured: parallel_chains: ") == 1 and "--chains FOLDER" in text and "FAILED" not in text


@pytest.mark.parametrize("name", [n for n in NAMES if n != "parallel_chains"])
def test_runs_quickly(name, tmp_path, capsys):
    status = main([name, "--quick", "--json", str(tmp_path / "result.json"), "--out", str(tmp_path)])
    out, err = capsys.readouterr()
    assert status == 0, out + err
    found = json.loads((tmp_path / "result.json").read_text(), parse_constant=refuse)
    assert found["quick"] and found["failed"] == {} and found["versions"]["pfaffian"] and found["threads"]
    assert found["results"]
    for r in found["results"]:
        assert r["benchmark"] == name and r["met"] is None and r["unit"].startswith("ns ")
        for side in filter(None, (r["ours"], r["peer"])):
            assert side["samples_ns"] and 0 < side["minimum_ns"] <= side["median_ns"]
        assert (r["ratio_of_medians"] is None) == (r["peer"] is None)
        assert r["what"] in out
    if name == "chain_length":
        assert (tmp_path / "chain_length.png").stat().st_size > 10_000


def test_unknown_name_is_refused():
    done = run("nothing")
    assert done.returncode == 2 and "there are forward_dynamics" in done.stderr


def test_goals():
    row = Comparison("it", "a step", Timing("", (2.0, 1.0, 9.0)), Timing("peer", (50.0,)), Goal("ratio", ">=", 25))
    assert row.ours.median == 2.0 and row.ours.minimum == 1.0
    assert row.ratio == 25.0 and row.ratio_of_minima == 50.0 and row.met
    assert not Comparison("it", "a step", row.peer, None, Goal("median", "<=", 49.0)).met
    assert Comparison("it", "a step", row.peer, None, Goal("slope", "<=", 1.1), {"slope": 1.0}).met
    assert "yes" in table([("b", row)], judged=True) and "not judged" in table([("b", row)], judged=False)


def test_check_refuses_differences():
    import numpy as np

    a = np.array([[1.0, 2.0], [3.0, 4.0]])
    assert agree("same", a, a) == 0.0
    for other in (a * (1 + 1e-6), a[:1], np.where(a == 4, np.nan, a)):
        with pytest.raises(CheckFailed, match="what"):
            agree("what", a, other)


@pytest.mark.parametrize("ns, text", [(0.5, "0.5 ns"), (38.24, "38.2 ns"), (1650, "1.65 us"), (4.4e8, "440 ms")])
def test_shown(ns, text):
    assert formatted(ns) == text
