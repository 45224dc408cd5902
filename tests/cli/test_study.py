"""pfaffian study: claims, files, pages and messages."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import pfaffian as pf
from pfaffian.viewer.run_study import Claim, run_study, studies

GOOD = '''"""A pendulum falls. [aghili05 (1)]

More words.
"""
import xarray as xr
from matplotlib.figure import Figure
from pfaffian.viewer.run_study import Claim

def run():
    return {"one/../run": xr.Dataset({"a": ("t", [1.0, 2.0])}), "two": xr.Dataset({"b": 1.0}), "note": 3}

def figures(result):
    figure = Figure()
    figure.subplots().plot(result["one/../run"]["a"])
    return {"../Fig. 6": figure}

def claims(result):
    yield Claim("near", 1.0, 1.05, 0.1, "paper Fig. 6")
    yield ("as a tuple", 2, 2, 0, "paper (2)")
    yield Claim("bounded", 1e-9, 1e-6, relation="at most")
'''
BAD = GOOD.replace("1.05, 0.1", "1.05, 0.01")


@pytest.fixture
def shelf(here: Path) -> Path:
    """A folder with a study whose claims hold, one that fails, incomplete ones, and files that are no studies."""
    place = here / "studies"
    place.mkdir()
    (place / "falling_pendulum.py").write_text(GOOD)
    (place / "wrong_pendulum.py").write_text(BAD)
    (place / "empty.py").write_text('"""Nothing."""\ndef run(): return 1\ndef claims(result): return []\n')
    (place / "partial.py").write_text('"""No claims."""\ndef run(): return 1\n')
    (place / "_private.py").write_text("raise SystemExit\n")
    (place / "Broken Name.py").write_text("raise SystemExit\n")
    return place


@pytest.mark.parametrize(
    ("claim", "holds"),
    [
        (Claim("c", 1.0, 1.1, 0.11), True),
        (Claim("c", 1.0, 1.1, 0.09), False),
        (Claim("c", 2.0, 2.0), True),
        (Claim("c", 0.9, 1.0, relation="at most"), True),
        (Claim("c", 1.1, 1.0, relation="at most"), False),
        (Claim("c", 1.1, 1.0, 0.2, relation="at most"), True),
        (Claim("c", 1.1, 1.0, relation="at least"), True),
        (Claim("c", 0.9, 1.0, relation="at least"), False),
        (Claim("c", float("nan"), 1.0, 1e9), False),
        (Claim("c", float("nan"), 1.0, relation="at most"), False),
        (Claim("c", float("inf"), 1.0, relation="at least"), False),
        (Claim("c", float("-inf"), 1.0, relation="at most"), False),
        (Claim("c", 1.0, 1.0, float("nan")), False),
    ],
)
def test_when_a_claim_holds(claim: Claim, holds: bool) -> None:
    assert claim.holds is holds


def test_list_runs_nothing(cli, shelf: Path) -> None:
    done = cli("study")
    assert done.status == 0
    assert "falling-pendulum  A pendulum falls. [aghili05 (1)]" in done.out
    assert list(studies(shelf)) == ["empty", "falling-pendulum", "partial", "wrong-pendulum"]


def test_study_that_holds(cli, shelf: Path, here: Path) -> None:
    done = cli("study", "falling-pendulum", "--json", "j/claims.json")
    assert done.status == 0 and done.out.count("pass") == 3 and "3 of 3 claims hold" in done.out
    assert sorted(p.name for p in (here / "out" / "falling-pendulum").iterdir()) == ["Fig-6.png", "one-run.nc", "two.nc"]
    found = json.loads((here / "j" / "claims.json").read_text())
    assert found["holds"] is True and found["claims"][0]["source"] == "paper Fig. 6" and "casadi" in found["versions"]
    assert {p.name for p in here.iterdir()} == {"out", "j", "studies", "pendulum.yaml"}


MOVING = '''"""A pendulum to look at."""
import pfaffian as pf
from pfaffian.study import Claim

def mechanism():
    joint = pf.joint("hinge", "revolute", "world", "rod", axis=(0, 1, 0))
    return pf.mechanism("pendulum", [pf.body("rod", 1.0, com=(1, 0, 0))], [joint])

def run():
    return {"one fall": pf.run(mechanism(), duration=0.02, step=0.01, backend="numpy")}

def claims(result):
    yield Claim("a claim", 1, 1)
'''


FOUR_BAR = pf.formats.read_yaml(Path(__file__).parents[2] / "examples" / "four_bar.yaml")[0]


def test_a_run_is_viewed_with_its_parameters(cli, monkeypatch: pytest.MonkeyPatch) -> None:
    viewed = []
    monkeypatch.setattr("pfaffian.viewer.browser.need_viser", lambda: None)
    monkeypatch.setattr(
        "pfaffian.viewer.browser.view", lambda m, result, p, block: viewed.append((m.name, result["q"].ndim, len(p)))
    )
    done = cli("run", "four_bar", "--duration", "0.01", "--no-figure", "--view")
    assert done.status == 0 and viewed == [("four-bar", 2, len(FOUR_BAR.p_names))]


def test_a_result_of_a_study_is_viewed(cli, shelf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (shelf / "moving.py").write_text(MOVING)
    viewed = []
    monkeypatch.setattr("pfaffian.viewer.browser.need_viser", lambda: None)
    monkeypatch.setattr("pfaffian.viewer.browser.view", lambda m, result, block: viewed.append((m.name, result["q"].shape)))
    assert cli("study", "moving", "--view", "one-fall").status == 0 and viewed == [("pendulum", (3, 1))]
    done = cli("study", "moving", "--view", "one-fal")
    assert done.status == 2 and "did you mean 'one-fall'?" in done.err
    (shelf / "moving.py").write_text(MOVING.replace("def mechanism", "def machine").replace("mechanism()", "machine()"))
    done = cli("study", "moving", "--view", "one-fall")
    assert done.status == 2 and "has no function mechanism()" in done.err


def test_the_motions_of_a_study_become_pages(cli, shelf: Path, here: Path) -> None:
    (shelf / "moving.py").write_text(MOVING)
    done = cli("study", "moving", "--animate", "--out", "here")
    assert done.status == 0 and "one-fall.html" in done.out
    assert (here / "here" / "one-fall.html").read_bytes().startswith(b"<!doctype html>")
    (shelf / "moving.py").write_text(MOVING + "\ndef figures(result):\n    result['one fall'] = 0\n    return {}\n")
    done = cli("study", "moving", "--animate", "--out", "none")
    assert done.status == 2 and "--animate: no result of study 'moving' is a motion of its mechanism 'pendulum'" in done.err


def test_study_that_fails(cli, shelf: Path, here: Path) -> None:
    done = cli("study", "wrong-pendulum", "--out", "here")
    assert done.status == 1 and "FAIL" in done.out and "2 of 3 claims hold" in done.out
    assert (here / "here" / "Fig-6.png").exists()


def test_the_json_of_a_failing_study_names_the_failed_claim(cli, shelf: Path, here: Path) -> None:
    """It contains every field of each claim; a value that is not a number is written as text."""
    name = "wrong-pendulum"
    (shelf / "wrong_pendulum.py").write_text(f"{BAD}    yield Claim('lost', float('nan'), 1.0, 0.5, 'table 2', 'at least')\n")
    assert cli("study", name, "--json", "claims.json").status == 1
    found = json.loads((here / "claims.json").read_text())
    assert found["study"] == name and found["holds"] is False
    assert [(c["name"], c["holds"]) for c in found["claims"]] == [
        ("near", False), ("as a tuple", True), ("bounded", True), ("lost", False)]  # fmt: skip
    assert found["claims"][0] == {"name": "near", "value": 1.0, "expected": 1.05, "tolerance": 0.01, "source": "paper Fig. 6",
                                  "relation": "within", "holds": False}  # fmt: skip
    assert found["claims"][2]["relation"] == "at most" and found["claims"][3]["value"] == "nan"
    printed = cli("study", name).out
    rows = [line.split() for line in printed.splitlines()]
    assert ["FAIL", "near", "1", "1.05", "0.01", "paper", "Fig.", "6"] in rows and "2 of 4 claims hold" in printed
    assert ["pass", "bounded", "1e-09", "at", "most", "1e-06", "0"] in rows


def test_study_without_claims_fails(cli, shelf: Path) -> None:
    assert cli("study", "empty").status == 1


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("faling-pendulum", "did you mean 'falling-pendulum'?"),
        ("zzz", "there are empty, falling-pendulum"),
        ("../studies/falling-pendulum", "did you mean"),
        ("falling_pendulum", "did you mean 'falling-pendulum'?"),
        ("-private", "required"),
        ("a\x1b[31m\n", "there is no study 'a\\\\x1b[31m\\\\n'"),
        ("partial", "has no function claims()"),
    ],
)
def test_wrong_names_of_studies(cli, shelf: Path, name: str, message: str) -> None:
    done = cli("study", name)
    assert done.status == 2 and "\x1b" not in done.err and done.err.count("\n") == 1
    if name != "-private":
        assert message in done.err


def test_malformed_claims_are_refused(shelf: Path) -> None:
    for claim, message in (
        ("('a', 'b', 1, 1)", "a claim is"),
        ("('a', 1, float('inf'), 1)", "finite"),
        ("('a', 1, 1, 1, '', 'near')", "relation"),
    ):
        (shelf / "empty.py").write_text(f"def run(): return 1\ndef claims(r): return [{claim}]\n")
        with pytest.raises(pf.ModelError, match=message):
            run_study("empty", shelf)


def test_no_folder_of_studies(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pfaffian.formats.bundled.__file__", str(here / "a" / "b" / "c" / "shelf.py"))
    with pytest.raises(pf.ModelError, match="source"):
        studies()


def test_a_study_may_import_a_part_beside_it(here):
    """Each folder has its own parts, also under one name."""
    found = {}
    for folder, angle in (("first", 180), ("second", 90)):
        (here / folder).mkdir()
        (here / folder / "_turn.py").write_text(f"ANGLE = {angle}\n")
        words = "'A turn.'\nfrom ._turn import ANGLE\ndef run(): return ANGLE\ndef claims(x): return [('angle', x, x)]\n"
        (here / folder / "turn.py").write_text(words)
        assert list(studies(here / folder)) == ["turn"]
        found[folder] = run_study("turn", here / folder).result
    assert found == {"first": 180, "second": 90}
