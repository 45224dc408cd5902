"""pfaffian run and info: statuses, messages, files."""

from __future__ import annotations

import errno
import io
import os
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

import pfaffian as pf
from pfaffian.formats.writers.yaml_write import run_of
from pfaffian.kernel.build import object_store
from tests.work import PATIENCE

EXAMPLES = Path(__file__).parents[2] / "examples"

TWO_LOOPS = """\
bodies: {a: {mass: 1, com: [1, 0, 0]}}
joints: {j: {kind: revolute, parent: world, child: a, axis: [0, 1, 0]}}
constraints:
  tip: {kind: spherical, body_a: world, body_b: a, placement_a: {xyz: [3, 0, 0]}, placement_b: {xyz: [1, 0, 0]}}
"""

# So light and driven so hard that its speed exceeds the largest double.
DIVERGING = """\
bodies: {a: {mass: 1.0e-9, com: [1, 0, 0]}}
joints: {j: {kind: revolute, parent: world, child: a, axis: [0, 1, 0]}}
actuators: {motor: {joint: j}}
run: {duration: 1, step: 1e-2, u: {motor: 1.0e9}}
"""


def test_run_writes_a_result_and_a_figure(cli, here: Path) -> None:
    done = cli("run", "pendulum.yaml")
    assert done.status == 0 and done.err == ""
    assert sorted(p.name for p in (here / "out").iterdir()) == ["pendulum.nc", "pendulum.png"]
    for word in ("pendulum", "finished", "J at the start", "0.1 s in 10 steps", "wrote"):
        assert word in done.out
    result = pf.results.read_netcdf(here / "out" / "pendulum.nc")
    assert result.sizes["time"] == 11
    assert len(result.attrs["file_sha256"]) == 64 and result["parameters"].sel(parameter="mass") == 2


def test_run_writes_its_motion_as_a_page(cli, here: Path) -> None:
    done = cli("run", "pendulum.yaml", "--no-figure", "--animate", "films/swing.html")
    assert done.status == 0 and "swing.html" in done.out
    assert (here / "films" / "swing.html").read_bytes().startswith(b"<!doctype html>")
    done = cli("run", "pendulum.yaml", "--animate", "films/swing.avi", "--out", "not")
    assert done.status == 2 and "ends in .mp4, .gif, .html" in done.err and not (here / "not").exists()


def test_options_override_the_file(cli, here: Path) -> None:
    options = ("--duration", "0.2", "--step", "0.02", "--every", "2", "--integrator", "euler", "--formulation", "gauss")
    sets = ("--set", "mass=3", "--set", "q:hinge=0.25", "--set", "v:hinge=1", "--set", "u:motor=-4")
    done = cli("run", "pendulum.yaml", *options, *sets, "--out", "a/b", "--no-figure")
    assert done.status == 0 and [p.name for p in (here / "a" / "b").iterdir()] == ["pendulum.nc"]
    result = pf.results.read_netcdf(here / "a" / "b" / "pendulum.nc")
    np.testing.assert_allclose(result["time"], np.arange(6) * 0.04)
    assert result["q"].values[0] == 0.25 and result["v"].values[0] == 1 and (result["u"].values == -4).all()
    assert result.attrs["integrator"] == "euler" and result.attrs["formulation"] == "gauss"
    assert result["parameters"].sel(parameter="mass") == 3


FLOATING = """\
bodies: {hub: {mass: 2, inertia: 3}, disc: {mass: 1, inertia: 1}}
joints:
  base: {kind: planar, parent: world, child: hub}
  shaft: {kind: revolute, parent: hub, child: disc}
gravity: [0, 0, 0]
run: {duration: 0.1, step: 1.0e-2, state: reduced, v: {base.wz: 2, shaft: 1}}
"""


def test_file_or_command_asks_for_an_accuracy(cli, here: Path) -> None:
    done = cli("run", "pendulum.yaml", "--accuracy", "1e-8", "--out", "a", "--no-figure")
    assert done.status == 0 and "to an accuracy of 1e-08" in done.out, done.out
    result = pf.results.read_netcdf(here / "a" / "pendulum.nc")
    assert result.sizes["time"] == 201 and result.attrs["accuracy"] == 1e-8 and float(result["error"].max()) <= 1e-8
    text = (here / "pendulum.yaml").read_text()
    (here / "swing.yaml").write_text(text.replace("step: 1e-2", "accuracy: 1e-7").replace("step: 0.01", "accuracy: 1e-7"))
    m, settings = pf.read(here / "swing.yaml")
    assert settings.accuracy == 1e-7 and settings.times == {"duration": settings.duration, "accuracy": 1e-7}
    pf.write(m, here / "again.yaml", settings)
    assert pf.read(here / "again.yaml")[1].accuracy == 1e-7
    assert cli("run", "swing.yaml", "--out", "b", "--no-figure").status == 0
    assert cli("run", "swing.yaml", "--step", "0.01", "--out", "c", "--no-figure").status == 0
    assert "step" in pf.results.read_netcdf(here / "c" / "swing.nc").attrs
    for options in (("--accuracy", "1e-8", "--step", "0.01"), ("--accuracy", "0"), ("--accuracy", "high")):
        assert cli("run", "pendulum.yaml", *options).status == 2
    (here / "both.yaml").write_text(text.replace("run: {", "run: {accuracy: 1e-6, "))
    done = cli("run", "both.yaml")
    assert done.status == 2 and "run.step: a run to an accuracy has no step of its own" in done.err, done.err
    done = cli("run", "swing.yaml", "--every", "3", "--out", "d", "--no-figure")  # not in steps of some length, unasked
    assert done.status == 2 and "--every: swing.yaml asks for an accuracy" in done.err, done.err


def test_file_or_command_selects_the_integrated_state(cli, here: Path) -> None:
    """The result of the reduced state contains the momentum 2 (3 + 1) + 1; that of [q; v] contains none."""
    (here / "floating.yaml").write_text(FLOATING)
    assert cli("run", "floating.yaml", "--no-figure").status == 0
    momentum = pf.results.read_netcdf(here / "out" / "floating.nc")["momentum"].sel(momentum_entry="base.wz").values
    assert np.abs(momentum - 9).max() < 1e-12
    assert cli("run", "floating.yaml", "--no-figure", "--state", "standard").status == 0
    assert "momentum" not in pf.results.read_netcdf(here / "out" / "floating.nc")
    assert cli("run", "floating.yaml", "--no-figure", "--state", "hamiltonian").status == 0
    done = cli("run", "floating.yaml", "--state", "reducd")
    assert done.status == 2 and "--state: 'reducd' is unknown; did you mean 'reduced'" in done.err
    (here / "wrong.yaml").write_text(FLOATING.replace("state: reduced", "state: half"))
    done = cli("run", "wrong.yaml")
    assert done.status == 2 and "state 'half' is unknown" in done.err


def test_slider_crank_reports_rank_and_degrees_of_freedom(cli) -> None:
    done = cli("run", str(EXAMPLES / "slider_crank.yaml"), "--duration", "0.5", "--no-figure")
    assert done.status == 0 and "2 rows of rank 1; degrees of freedom 1" in done.out


def test_urdf_on_a_free_base(cli, here: Path) -> None:
    inertia = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
    (here / "r.urdf").write_text(f'<robot name="r"><link name="a">{inertia}</link></robot>')
    assert "read it with base='free'" in cli("info", "r.urdf").err
    assert "nq 7" in cli("info", "r.urdf", "--base", "free").out
    assert cli("info", "pendulum.yaml", "--base", "free").status == 2


def test_a_stopped_run_is_written_and_exits_with_1(cli, here: Path) -> None:
    (here / "d.yaml").write_text(DIVERGING)
    done = cli("run", "d.yaml")
    assert done.status == 1 and "diverged" in done.out
    assert done.err.startswith("pfaffian: warning: the run stopped: diverged") and done.err.count("\n") == 1
    assert (here / "out" / "d.nc").exists() and (here / "out" / "d.png").exists()


def test_file_or_command_limits_the_inputs(cli, here: Path) -> None:
    pendulum = (here / "pendulum.yaml").read_text()
    (here / "m.yaml").write_text(pendulum.replace("{joint: hinge}", "{joint: hinge, limits: [-2, 3]}"))
    strong = ("run", "m.yaml", "--no-figure", "--set", "u:motor=5")
    assert "input 'motor' is outside at the start, by up to 2 N m" in cli(*strong).err
    assert cli(*strong, "--saturate").err == ""
    assert float(pf.results.read_netcdf(here / "out" / "m.nc")["u"][-1, 0]) == 3
    (here / "m.yaml").write_text((here / "m.yaml").read_text().replace("run: {", "run: {saturate: true, "))
    assert cli(*strong).err == ""
    assert "by up to 2 N m" in cli(*strong, "--no-saturate").err


BLOCK = """
bodies: {block: {mass: 2}}
joints: {x: {kind: prismatic, parent: world, child: block, axis: [1, 0, 0]}}
forces:
  dry: {kind: joint-friction, joint: x, sliding: 1}
  hold: {kind: potential, V: 5*x^2}
run: {duration: 0.1, q: {x: 0.5}}
"""


def test_forces_of_a_file(cli, here: Path) -> None:
    (here / "b.yaml").write_text(BLOCK)
    done = cli("info", "b.yaml").out
    assert "JointFriction: sliding 1, static 1, viscous 0, on 'x'" in done and "Written: 5*x^2" in done
    assert cli("run", "b.yaml", "--out", "o").status == 0
    result = pf.results.read_netcdf(here / "o" / "b.nc")
    assert 0 < float(result["energy"][0] - result["energy"][-1]) < 0.1 and float(result["energy"][0]) == pytest.approx(1.25)


def test_a_start_that_does_not_close(cli, here: Path) -> None:
    (here / "l.yaml").write_text(TWO_LOOPS)
    done = cli("run", "l.yaml")
    assert done.status == 2 and "cannot be put onto the constraints: row 'tip." in done.err
    done = cli("info", "l.yaml")
    assert done.status == 0 and "no state near it closes" in done.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "missing.yaml"], "there is no file 'missing.yaml'; `pfaffian zoo` lists the machines"),
        (["info", "four-bra"], "did you mean 'four_bar'?"),
        (["info", "elsewhere/four_bar.yaml"], "there is no file 'elsewhere/four_bar.yaml'"),
        (["run", "."], "not a regular file"),
        (["run", "folder.yaml"], "not a regular file"),
        (["run", "pendulum.txt"], "nor a .yaml or .yml file"),
        (["run", "pendulum.yaml", "--out", "pendulum.yaml"], "choose another folder"),
        (["run", "pendulum.yaml", "--out", "pendulum.yaml/x"], "choose another folder"),
        (["run", "pendulum.yaml", "--out", "/proc/x"], "choose another folder"),
        (["run", "pendulum.yaml", "--step", "0"], "a time above zero"),
        (["run", "pendulum.yaml", "--step", "1_0"], "not a decimal number"),
        (["run", "pendulum.yaml", "--duration", "nan"], "not a decimal number"),
        (["run", "pendulum.yaml", "--duration", "1e12"], "is not between 1 and"),
        (["run", "pendulum.yaml", "--every", "0"], "whole number from 1 on"),
        (["run", "pendulum.yaml", "--every", "²"], "whole number from 1 on"),
        (["run", "pendulum.yaml", "--integrator", "heun"], "rk4, euler"),
        (["run", "pendulum.yaml", "--formulation", "newton"], "gauss"),
        (["run", "pendulum.yaml", "--set", "mas=1"], "did you mean 'mass'?"),
        (["run", "pendulum.yaml", "--set", "hinge=1"], "write q:hinge"),
        (["run", "pendulum.yaml", "--set", "u:moter=1"], "no input 'moter'; did you mean 'motor'?"),
        (["run", "pendulum.yaml", "--set", "mass"], "NAME=VALUE"),
        (["run", "pendulum.yaml", "--set", "mass=two"], "not a decimal number"),
        (["run"], "required: FILE"),
        (["fly"], "invalid choice"),
        (["run", "pendulum.yaml", "--fast"], "unrecognized arguments"),
        ([], "required: COMMAND"),
    ],
)  # fmt: skip
def test_wrong_input_gives_one_message(cli, here: Path, arguments: list[str], message: str) -> None:
    (here / "folder.yaml").mkdir()
    (here / "pendulum.txt").write_text("")
    done = cli(*arguments)
    assert done.status == 2 and done.out == ""
    assert message in done.err and "Traceback" not in done.err and done.err.count("\n") == 1
    assert not (here / "out").exists()


def test_an_internal_error_has_a_traceback(cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pfaffian.viewer.describe.describe", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        cli("info", "pendulum.yaml")


def test_interrupt(cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("pfaffian.viewer.describe.describe", interrupt)
    assert cli("info", "pendulum.yaml")[::2] == (130, "pfaffian: interrupted\n")


LIMITED = """\
name: lift
parameters: {load: {default: 2, unit: kg}, pull: {default: 9, unit: m/s^2}}
gravity: [0, 0, -pull]
bodies: {cabin: {mass: 2*load}, arm: {mass: 1.5, com: [0.5, 0, 0], inertia: 0.1}}
joints:
  rail: {kind: prismatic, parent: world, child: cabin, limits: [-0.25, 4], effort: 70}
  hinge: {kind: revolute, parent: cabin, child: arm, axis: [0, 1, 0], limits: [-3, 2]}
actuators: {winch: {joint: rail, limits: [-20, 30]}, motor: {joint: hinge}}
run: {duration: 0.1, step: 0.01, q: {rail: 0.5, hinge: 1.5707963267948966}, u: {winch: 30}}
"""


def test_info_gives_the_numbers_of_this_run(cli, here: Path) -> None:
    """Limits in their order, masses and gravity with the parameters of the run, and these beside their defaults."""
    (here / "lift.yaml").write_text(LIMITED)
    rows = [line.split() for line in cli("info", "lift.yaml", "--set", "load=3", "--set", "pull=4").out.splitlines()]
    for words in (
        "lift: 2 bodies, 2 joints", "nq 2 (configuration), nv 2 (velocity), nu 2 (inputs)",
        "total mass 7.5 kg, gravity (0, 0, -4) m/s^2", "cabin rail prismatic [m] -0.25 4 70 N 6",
        "arm hinge revolute [rad] -3 2 - 1.5", "winch N -20 30", "motor N m -inf inf", "load 2 3 kg", "pull 9 4 m/s^2",
        "constraints: none; 2 degrees of freedom",
    ):  # fmt: skip
        assert words.split() in rows, words
    assert "total mass 5.5 kg, gravity (0, 0, -9)" in cli("info", "lift.yaml").out
    assert "unphysical bodies" in cli("info", "lift.yaml", "--set", "load=-3").out


def facts(text: str) -> dict[str, str]:
    """Lines that a run prints, by their titles."""
    return {what: words.strip() for what, _, words in (line.partition(":") for line in text.splitlines())}


def test_a_run_prints_its_numbers(cli, here: Path) -> None:
    """Energies of a known motion, from the start of the run to its end: 30 N lift 7.5 kg, and the arm hangs."""
    (here / "lift.yaml").write_text(LIMITED)
    options = ("--set", "load=3", "--set", "pull=4", "--every", "5", "--no-figure")
    printed = facts(cli("run", "lift.yaml", *options).out)
    energy, gain = 4 * (7.5 * 0.5 - 1.5 * 0.5), 30 * 0.1**2 * (30 / 7.5 - 4) / 2  # at rest: the winch carries the weight
    assert printed["mechanism"] == "lift" and printed["size"] == "nq 2, nv 2, nu 2, 2 bodies"
    assert printed["run"].startswith("0.1 s in 10 steps of 0.01 s; auto, rk4, ") and printed["status"] == "finished"
    assert gain == 0 and printed["energy"].startswith(f"{energy:.6g} J at the start, {energy:.6g} J at the end")
    fall = 30 * (30 / 7.5 - 9.0) * 0.1**2 / 2  # force times distance, at the default pull and the same load
    printed = facts(cli("run", "lift.yaml", "--set", "load=3", "--no-figure").out)
    start = 9 * (7.5 * 0.5 - 1.5 * 0.5)
    assert printed["energy"] == f"{start:.6g} J at the start, {start + fall:.6g} J at the end, change {fall:+.3g} J"


def test_a_run_prints_its_largest_violation(cli, here: Path) -> None:
    printed = facts(cli("run", str(EXAMPLES / "four_bar.yaml"), "--duration", "0.2", "--no-figure").out)
    result = pf.results.read_netcdf(here / "out" / "four_bar.nc")
    worst, rate = (float(result[name].max()) for name in ("violation", "velocity_violation"))
    assert float(result["violation"].min()) < 0.5 * worst
    assert printed["violation"] == f"at most {worst:.2g} of position, {rate:.2g} of velocity"
    assert printed["constraints"] == "5 rows of rank 2; degrees of freedom 1"


def test_info_of_a_loop_names_the_redundant_rows(cli) -> None:
    done = cli("info", str(EXAMPLES / "four_bar.yaml"))
    assert done.status == 0 and done.err == ""
    redundant = "redundant in every state tried: loop.vz, loop.wx, loop.wy"
    for words in ("nq 3", "total mass 4.2 kg", "loop  revolute  coupler - rocker", redundant):
        assert words in done.out
    start = next(line for line in done.out.splitlines() if line.startswith("  start"))
    assert start.split()[1:3] == ["2", "1"]


def test_info_on_symmetries(cli) -> None:
    done = cli("info", "pendulum.yaml", "--symmetry")
    assert done.status == 0 and "gravity" in done.out and "no motion of joint 'hinge'" in done.out
    assert "pf.reduce cannot: reduce: no motion of joint 'hinge'" in done.out
    done = cli("info", str(EXAMPLES / "four_bar.yaml"), "--symmetry")
    assert done.status == 0 and "no motion of joints crank, rocker together leaves all as it is" in done.out
    assert "none of these moves as all do together" in done.out


def test_info_for_latex(cli) -> None:
    done = cli("info", "pendulum.yaml", "--latex")
    assert done.status == 0 and done.out.startswith("\\documentclass") and done.out.endswith("\\end{document}\n")
    assert "\\texttt{hinge}" in done.out and done.err == ""
    done = cli("info", str(EXAMPLES / "four_bar.yaml"), "--latex")
    assert done.status == 2 and "closure 'loop' from 'coupler' to 'rocker' closes the chain" in done.err and not done.out


def test_info_of_the_equations(cli) -> None:
    done = cli("info", "pendulum.yaml", "--equations")
    assert done.status == 0 and "M v_dot + c = B u" in done.out and "hinge_dot" in done.out and done.err == ""
    assert cli("info", "pendulum.yaml", "--equations", "--latex").out.startswith("\\begin{gather*}")


def test_info_closes_all_its_samples_at_once(cli, monkeypatch: pytest.MonkeyPatch) -> None:
    """Closing one start after another evaluated Newton's step more than 40 times."""
    from pfaffian.kernel.call import kernel

    evaluate, sizes = kernel.evaluate, []
    monkeypatch.setattr(kernel, "evaluate", lambda *given: sizes.append(len(given[1][0])) or evaluate(*given))
    assert "random 4" in cli("info", str(EXAMPLES / "four_bar.yaml")).out
    assert 4 in sizes and len(sizes) <= 30


def test_info_finds_a_singular_start(cli) -> None:
    upright = ("--set", "q:q1=1.5707963267948966", "--set", "q:q2=3.141592653589793")
    done = cli("info", str(EXAMPLES / "slider_crank.yaml"), *upright)
    assert "the start is singular" in done.out


def test_help_imports_little() -> None:
    heavy = "bool({'numpy', 'casadi', 'matplotlib', 'xarray'} & set(sys.modules))"
    code = f"import sys; from pfaffian.cli.main import main; main(['--help']); sys.exit({heavy})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=PATIENCE)
    assert done.returncode == 0 and b"doctor" in done.stdout


def test_version(cli) -> None:
    assert cli("--version").out == "pfaffian 0.1.0\n"


def test_a_reader_that_closes_the_pipe(here: Path) -> None:
    code = "import sys; from pfaffian.cli.main import main; sys.exit(main(['info', 'pendulum.yaml']))"
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=here)
    child.stdout.close()
    assert child.wait(PATIENCE) == 1 and child.stderr.read() == b""


def test_doctor_passes_here(cli) -> None:
    done = cli("doctor")
    assert done.status == 0
    assert done.out.count("PASS") + done.out.count("NONE") >= 3 and "FAIL" not in done.out


def test_doctor_deletes_what_was_not_used_for_long(cli, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PFAFFIAN_CACHE", str(here / "cache"))
    monkeypatch.setenv("PFAFFIAN_CC", str(here / "no-such-compiler"))
    old, young = object_store.directory() / "old.alias", object_store.directory() / "young.alias"
    for note in (old, young):
        note.write_text("")
    os.utime(old, (1.0, 1.0))
    assert cli("doctor", "--prune", "30").out.startswith("deleted 0 compiled objects")
    assert young.exists() and not old.exists()
    assert cli("doctor", "--prune", "soon").status == 2


def test_doctor_without_a_compiler(cli, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PFAFFIAN_CC", str(here / "no-such-compiler"))
    monkeypatch.setenv("PFAFFIAN_CACHE", str(here / "cache"))
    done = cli("doctor")
    assert done.status == 0 and done.out.count("NONE") == 4 and "`pip install ziglang`" in done.out


def test_doctor_with_a_wrong_compiler(cli, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from shutil import which

    if not which("gcc"):
        pytest.skip("no gcc to break")
    liar = here / "liar"
    liar.write_text('#!/bin/sh\nfor a; do case $a in *.c) sed -i \'s/ [*] v/ + v/g\' "$a";; esac; done\nexec gcc "$@"\n')
    liar.chmod(0o755)
    monkeypatch.setenv("PFAFFIAN_CC", str(liar))
    monkeypatch.setenv("PFAFFIAN_CACHE", str(here / "cache"))
    done = cli("doctor")
    assert done.status == 1 and "FAIL" in done.out and "do not trust" in done.out


@pytest.mark.parametrize("name", ["four_bar", "four-bar", "four_bar.yaml", "examples/four_bar.yaml"])
def test_a_name_without_a_file_means_an_example(cli, name: str) -> None:
    assert cli("info", name).out.startswith("four-bar: 3 bodies")


def test_a_file_takes_precedence_over_an_example(cli, here: Path) -> None:
    (here / "pendulum.yaml").rename(here / "four_bar.yaml")
    assert cli("info", "four_bar.yaml").out.startswith("pendulum: 1 body")


def test_a_run_keeps_given_coordinates_and_moves_guessed_ones(cli, here: Path) -> None:
    path, settings = str(EXAMPLES / "four_bar.yaml"), ("--duration", "0.01", "--no-figure")
    done = cli("run", path, *settings, "--set", "a=0.45", "--set", "v:crank=2")
    assert done.status == 0 and done.err == ""
    result = pf.results.read_netcdf(here / "out" / "four_bar.nc")
    assert result["q"].values[0, 0] == np.pi / 2 and result["v"].values[0, 0] == 2
    assert result["moved"].values[0] == 0 and np.abs(result["moved"].values[1:]).min() > 1e-3
    assert result["violation"].values[0] < 1e-12
    done = cli("run", path, *settings, "--set", "q:rocker=0.1", "--set", "q:coupler=0.1")
    assert done.status == 2 and "cannot all be kept" in done.err and "instead of 0.1" in done.err
    done = cli("info", path, "--set", "a=0.45")
    assert "no state near it closes" not in done.out.split("random")[0]


class Full(io.RawIOBase):
    """A file on a disk without space.   file: what its number refers to."""

    def __init__(self, file: io.FileIO) -> None:
        super().__init__()
        self.file = file

    def fileno(self) -> int:
        return self.file.fileno()

    def writable(self) -> bool:
        return True

    def write(self, data: bytes) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("buffered", [True, False])
@pytest.mark.parametrize(
    "arguments", ["--help", "--version", "zoo --help", "info pendulum.yaml", "run pendulum.yaml --no-figure"]
)
def test_a_full_disk_gives_one_line(cli, here: Path, monkeypatch: pytest.MonkeyPatch, arguments: str, buffered: bool) -> None:
    file = io.FileIO(here / "full", "w")
    raw = Full(file)
    full = io.TextIOWrapper(io.BufferedWriter(raw) if buffered else raw, write_through=not buffered)
    monkeypatch.setattr(sys, "stdout", full)
    done = cli(*arguments.split())
    assert done.status == 2 and done.err.count("\n") == 1 and "standard output cannot be written" in done.err
    file.write(b"what is left to print at exit")  # it goes to the null device
    assert (here / "full").stat().st_size == 0


def test_closed_streams_are_no_error(cli, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as closed:
        closed.setattr(sys, "stdout", None)
        assert cli("info", "pendulum.yaml").status == 0
    monkeypatch.setattr(sys, "stderr", None)
    assert cli("info", "no-such-file.yaml") == (2, "", "")


@pytest.mark.parametrize("times, warned", [("duration: 3", True), ("duration: 3, step: 0.001", False)])
def test_a_file_without_a_step_is_run_to_a_millionth_or_told(tmp_path, times, warned):
    """A spring of 52 rad/s has an error of 3e-6 after 3 s in steps of 1 ms: below the bound of a step that a file names."""
    rail = "x: {kind: prismatic, parent: world, child: box, axis: [1, 0, 0], stiffness: 2700}"
    file = tmp_path / "oscillator.yaml"
    file.write_text(f"bodies: {{box: {{mass: 1}}}}\njoints: {{{rail}}}\nrun: {{{times}, v: {{x: 5}}}}\n")
    m, settings = pf.read(file)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        r = pf.run(m, settings.start, settings.v, **settings.times)
    assert r.attrs["step"] == 1e-3 and [pf.RunWarning] * warned == [w.category for w in caught]
    assert ("step" in run_of(settings)) != warned
