"""Every result records its origin: versions, sources, commit, processor, program."""

import re
import subprocess
from pathlib import Path

import numpy as np
import pytest

import pfaffian as pf
from pfaffian.kernel.build.processor import Processor, processor
from pfaffian.simulate.record.provenance import checked_out, machine
from tests.by_scipy import run_adaptive
from tests.simulate.machines import pendulum

A, B = "a" * 40, "b1" * 20
HERE = Path(__file__).parents[2]


def test_every_result_has_provenance(tmp_path):
    by_steps = pf.run(pendulum(), duration=0.01)
    adaptive = run_adaptive(pendulum(), times=np.linspace(0, 0.01, 3))
    pf.results.write_netcdf(by_steps, tmp_path / "run.nc")
    for result in (by_steps, adaptive, pf.results.read_netcdf(tmp_path / "run.nc")):
        assert machine().items() <= result.attrs.items()
        assert all(re.fullmatch(r"[0-9a-f]{64}", part) for part in result.attrs["kernel_digest"].split(":"))
        assert re.fullmatch(r"[0-9a-f]{64}", result.attrs["source_sha256"])
        assert result.attrs["processor"] == processor().model and result.attrs["features"] == " ".join(processor().vector)
    other = pf.run(pendulum(damping=0.5), duration=0.01)
    assert other.attrs["kernel_digest"] != by_steps.attrs["kernel_digest"]


def test_this_checkout():
    """The commit is the one that git reports, if this is a checkout."""
    reported = subprocess.run(["git", "rev-parse", "HEAD"], cwd=HERE, capture_output=True, text=True, check=False)
    known = reported.stdout.strip() if (HERE / ".git").exists() else None
    assert checked_out(HERE) == known == machine().get("commit")


@pytest.fixture
def checkout(tmp_path):
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "pfaffian"\n')
    (tmp_path / ".git" / "refs" / "heads").mkdir(parents=True)
    (tmp_path / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    return tmp_path


def test_kinds_of_checkouts(checkout):
    git = checkout / ".git"
    assert checked_out(checkout) is None  # nothing is committed yet
    (git / "packed-refs").write_text(f"# pack-refs with: peeled\n{B} refs/heads/other\n{A} refs/heads/main\n^{B}\n")
    assert checked_out(checkout) == A
    (git / "refs" / "heads" / "main").write_text(f"{B}\n")
    assert checked_out(checkout) == B
    (git / "HEAD").write_text(f"{A}\n")
    assert checked_out(checkout) == A
    tree = git / "worktrees" / "second"
    tree.mkdir(parents=True)
    (tree / "HEAD").write_text("ref: refs/heads/main\n")
    (tree / "commondir").write_text("../..\n")
    second = checkout / "second"
    second.mkdir()
    (second / "pyproject.toml").write_text('name = "pfaffian"')
    (second / ".git").write_text(f"gitdir: {tree}\n")
    assert checked_out(second) == B


@pytest.mark.parametrize("head", ["", "ref: ", "ref: refs/heads/../../HEAD", "not a commit", "ref: \0", A[:-1], "é" * 40])
def test_damaged_checkouts_give_no_commit(checkout, head):
    (checkout / ".git" / "HEAD").write_text(head)
    assert checked_out(checkout) is None


def test_checkouts_of_other_projects_give_no_commit(checkout):
    """An installed library may lie in a folder of the user's repository."""
    (checkout / ".git" / "HEAD").write_text(A)
    (checkout / "pyproject.toml").write_text('[project]\nname = "robots"\ndependencies = ["pfaffian"]\n')
    assert checked_out(checkout) is None
    (checkout / "pyproject.toml").unlink()
    assert checked_out(checkout) is None


def test_processor():
    cpu = processor()
    assert cpu.architecture and set(cpu.vector) <= set(cpu.features)
    assert Processor("x", "y", ("avx2", "fma", "sse")).vector == ("avx2", "fma")
    text = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""
    assert all(f" {name}" in text for name in cpu.features) and cpu.model.split(" ")[-1] in (text or cpu.model)
