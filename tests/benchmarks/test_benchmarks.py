"""Each benchmark runs in quick mode: its checks pass, its table and JSON are whole."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("pinocchio")
pytest.importorskip("mujoco")

from benchmarks.__main__ import NAMES
from benchmarks.check import CheckFailed, agree
from benchmarks.result import Comparison, Goal, Timing, shown, table
from tests.work import PATIENCE

ROOT = Path(__file__).parents[2]


def run(*arguments: str) -> subprocess.CompletedProcess:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([p for p in sys.path if p])}
    command = [sys.executable, "-m", "benchmarks", *arguments]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=PATIENCE)


def refuse(text: str) -> None:
    raise ValueError(f"{text} is no JSON")


@pytest.mark.parametrize("name", NAMES)
def test_runs_quickly(name, tmp_path):
    said = run(name, "--quick", "--json", str(tmp_path / "result.json"), "--out", str(tmp_path))
    assert said.returncode == 0, said.stdout + said.stderr
    found = json.loads((tmp_path / "result.json").read_text(), parse_constant=refuse)
    assert found["quick"] and found["failed"] == {} and found["versions"]["pfaffian"] and found["threads"]
    assert found["results"]
    for r in found["results"]:
        assert r["benchmark"] == name and r["met"] is None and r["unit"].startswith("ns ")
        for side in filter(None, (r["ours"], r["peer"])):
            assert side["samples_ns"] and 0 < side["minimum_ns"] <= side["median_ns"]
        assert (r["ratio_of_medians"] is None) == (r["peer"] is None)
        assert r["what"] in said.stdout
    if name == "chain_length":
        assert (tmp_path / "chain_length.png").stat().st_size > 10_000


def test_unknown_name_is_refused():
    said = run("nothing")
    assert said.returncode == 2 and "there are forward_dynamics" in said.stderr


def test_goals():
    row = Comparison("it", "a step", Timing("", (2.0, 1.0, 9.0)), Timing("peer", (50.0,)), Goal("ratio", ">=", 25))
    assert row.ours.median == 2.0 and row.ours.minimum == 1.0
    assert row.ratio == 25.0 and row.ratio_of_minima == 50.0 and row.met
    assert not Comparison("it", "a step", row.peer, None, Goal("median", "<=", 49.0)).met
    assert Comparison("it", "a step", row.peer, None, Goal("slope", "<=", 1.1), {"slope": 1.0}).met
    assert "yes" in table([("b", row)], judged=True) and "not judged" in table([("b", row)], judged=False)


def test_check_refuses_what_differs():
    import numpy as np

    a = np.array([[1.0, 2.0], [3.0, 4.0]])
    assert agree("same", a, a) == 0.0
    for other in (a * (1 + 1e-6), a[:1], np.where(a == 4, np.nan, a)):
        with pytest.raises(CheckFailed, match="what"):
            agree("what", a, other)


@pytest.mark.parametrize("ns, text", [(0.5, "0.5 ns"), (38.24, "38.2 ns"), (1650, "1.65 us"), (4.4e8, "440 ms")])
def test_shown(ns, text):
    assert shown(ns) == text
