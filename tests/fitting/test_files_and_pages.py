"""A fit from the command line: files in, numbers, a page and a mechanism out."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import pfaffian as pf
from pfaffian.cli.main import main
from tests.fitting.machines import PENDULUM, pendulum, record

WORDS = """machine: pendulum.yaml
records: [one.csv]
unseen: {unseen: two.csv}
horizons: [0.2, 0.5]
columns: {time: t, q: {hinge: angle}, u: {motor: torque}}
units: {q: deg}
bounds: {damping: [0, 1]}
unknown: {u: [delay, gain]}
start: {m_r: 1.0}
parameters: [I, damping]
"""


ALONE = ("machine", "records", "columns", "parameters")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a machine, two records in degrees, and a file that describes the fit."""
    place = tmp_path_factory.mktemp("fit")
    m = pendulum()
    pf.write(m, place / "pendulum.yaml")
    for name, angle, seed in (("one", 1.0, 1), ("two", -0.6, 2)):
        r = record(m, PENDULUM, ("hinge",), q={"hinge": angle}, seed=seed)
        columns = {"t": r["time"], "angle": np.degrees(r["q"]["hinge"]), "torque": r["u"][:, 0]}
        pd.DataFrame(columns).to_csv(place / f"{name}.csv", index=False)
    (place / "fit.yaml").write_text(WORDS)
    return place


def test_the_command_writes_numbers_a_page_and_a_mechanism(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fit", str(folder / "fit.yaml"), "--out", str(folder / "out")]) == 0
    said = capsys.readouterr().out
    assert all(word in said for word in ("gain of u motor", "damping", "persistence", "fit.html"))
    page = (folder / "out" / "fit.html").read_text(encoding="utf-8")
    assert page.count("data:image/png") == 1 and "<script" not in page and "held" not in page.split("<h1>")[0]
    again, _ = pf.read(folder / "out" / "fitted.yaml")
    assert again.p_names == ("m_r",)  # what was not fitted stays a parameter
    assert np.isclose(pf.mass_matrix(again, [0.0], parameters={"m_r": 1.0})[0, 0], PENDULUM["I"], rtol=0.1)


def test_the_command_does_not_succeed_with_a_fit_in_doubt(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its angles are read as radians, and the search ends at a minimum."""
    (folder / "doubt.yaml").write_text("\n".join(line for line in WORDS.splitlines() if line.split(":")[0] in ALONE))
    assert main(["fit", str(folder / "doubt.yaml"), "--out", str(folder / "doubt")]) == 1
    assert "false minimum" in capsys.readouterr().err
    assert "has not converged" not in (folder / "doubt" / "fit.html").read_text(encoding="utf-8")


def test_a_file_gives_the_arguments_of_a_fit(folder: Path) -> None:
    described = pf.identification.read_fit(folder / "fit.yaml")
    fit = described.fit()
    table = fit.unseen(described.unseen, described.horizons)
    assert (table["fit"] < 0.02).all()  # radians, though the records are in degrees
    assert set(fit.values) == {"I", "damping", "delay of u", "gain of u motor"}


@pytest.mark.parametrize(
    "was, now, words",
    [
        ("angle}", "angel}", r"fit.yaml line 5.*no column 'angel'.*angle"),
        ("one.csv", "none.csv", r"fit.yaml line 2.*none.csv cannot be read"),
        ("bounds", "bound", "the key 'bound' is unknown.*bounds"),
        ("[0, 1]", "[0, 1, 2]", "list of length 2"),
        ("machine: pendulum.yaml\n", "", "'machine' is missing"),
        ("delay, gain", "lag", "'lag'.*delay"),
    ],
)
def test_faults_of_a_file_are_named(folder: Path, was: str, now: str, words: str) -> None:
    bad = folder / "bad" / "fit.yaml"
    bad.parent.mkdir(exist_ok=True)
    for name in ("pendulum.yaml", "one.csv", "two.csv"):
        (bad.parent / name).write_bytes((folder / name).read_bytes())
    bad.write_text(WORDS.replace(was, now))
    with pytest.raises(pf.ModelError, match=words):
        pf.identification.read_fit(bad).fit()


def test_files_of_one_name_in_two_folders_are_two_records(folder: Path) -> None:
    for place in ("a", "b"):
        (folder / place).mkdir()
        (folder / place / "one.csv").write_bytes((folder / "one.csv").read_bytes())
    described = folder / "folders.yaml"
    described.write_text(WORDS.replace("[one.csv]", "[a/one.csv, b/one.csv, two.csv]"))
    assert set(pf.identification.read_fit(described).arguments["records"]) == {"a/one.csv", "b/one.csv", "two"}
    described.write_text(WORDS.replace("[one.csv]", "[one.csv, one.csv]"))
    with pytest.raises(pf.ModelError, match=r"line 2.*named twice.*one.csv"):
        pf.identification.read_fit(described)


def test_names_of_a_machine_are_letters_on_the_page(tmp_path: Path) -> None:
    """Names that are HTML and formulas of matplotlib. Two wrong samples side by side correlate, by 1 at most."""
    k = pf.Parameter("<b>k</b>", 5.0)
    slide = pf.joint("x $\\frac{$", "prismatic", "world", "box", axis=(1, 0, 0), stiffness=k)
    m = pf.mechanism("<script>", [pf.body("box", mass=2.0)], [slide], parameters=[k])
    t = np.arange(0.0, 2.0, 0.02)
    q = np.cos(2 * t) + np.where(np.abs(t - 1.01) < 0.011, 0.5, 0.0)
    fit = pf.fit(m, {"<i>": {"time": t, "q": q}})
    page = pf.identification.fit_report(fit, tmp_path / "page.html").read_text(encoding="utf-8")
    assert "<script>" not in page and "<b>k" not in page and "<i>" not in page
    row = page.split("<h2>Residuals</h2>")[1].split("<td>")[1:]
    assert row[2].startswith("m<") and 0 < float(row[3].split("<")[0]) <= 1
