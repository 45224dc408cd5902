"""pfaffian fmu: the file, what is printed, and wrong arguments."""

from __future__ import annotations

import zipfile
from pathlib import Path


def test_fmu_writes_a_machine_with_the_settings_of_its_file(cli, here: Path) -> None:
    done = cli("fmu", "pendulum.yaml", "--set", "mass=3", "--fmi", "2.0")
    assert done.status == 0 and done.err == ""
    assert "parameter.mass" in done.out and "FMI 2.0, co-simulation" in done.out
    with zipfile.ZipFile(here / "out" / "pendulum.fmu") as archive:
        text = archive.read("modelDescription.xml").decode()
    assert 'stepSize="0.01"' in text and 'start="3.0"' in text and 'start="0.5"' in text


def test_steps_of_an_fmu_under_error_control(cli, here: Path) -> None:
    done = cli("fmu", "pendulum.yaml", "--accuracy", "1e-6")
    assert done.status == 0 and done.err == ""
    with zipfile.ZipFile(here / "out" / "pendulum.fmu") as archive:
        text = archive.read("modelDescription.xml").decode()
    assert 'tolerance="1e-06"' in text and 'stepSize="0.01"' in text and "fixedInternalStepSize" not in text


def test_wrong_arguments_of_fmu_leave_no_file(cli, here: Path) -> None:
    for wrong in (["--platform", "vax"], ["--step", "0"], ["--kind", "both"]):
        done = cli("fmu", "pendulum.yaml", *wrong)
        assert done.status == 2 and done.err
    assert not (here / "out").exists()
