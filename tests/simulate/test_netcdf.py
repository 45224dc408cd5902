"""Result files are whole or absent on a full disk, and a damaged file is never read as something else."""

import hashlib
import os
import subprocess
import sys
import time

import numpy as np
import pytest
import xarray as xr

import pfaffian as pf
from pfaffian.output.whole_file import OLD, write_whole
from pfaffian.simulate.record.netcdf import SEAL
from tests.work import PATIENCE


@pytest.fixture(scope="module")
def result():
    """A result with numbers, texts, a nan, an empty and a scalar variable."""
    random = np.random.default_rng(2)
    data = {
        "q": (("time", "coordinate"), random.normal(size=(40, 3)), {"units": "rad"}),
        "stopped": ("run", np.array([np.nan, 0.25])),
        "status": ("run", np.array([0, 1], np.int32), {"meaning": '["finished", "ä"]'}),
        "nothing": (("time", "none"), np.empty((40, 0))),
        "regularity": ((), 0.5),
    }
    coords = {"coordinate": ["crank", "Kurbel ü", ""], "time": ("time", np.arange(40) * 1e-3, {"units": "s"})}
    return xr.Dataset(data, coords, attrs={"mechanism": "m", "step": 1e-3, "strict": 1, "said": ""})


@pytest.fixture
def written(result, tmp_path):
    path = tmp_path / "run.nc"
    pf.results.write_netcdf(result, path)
    return path


DAMAGED = r"filter returned failure|Fletcher32"
"""Message of HDF5 about damaged data, which depends on its version."""


def test_round_trip(result, written):
    back = pf.results.read_netcdf(written)
    xr.testing.assert_identical(back, result)
    with xr.open_dataset(written, engine="h5netcdf") as other:
        xr.testing.assert_identical(other.load(), result)


def test_every_damage_is_detected(written):
    """Flipped bits, truncated and zeroed tails, pieces of another file and an empty file raise RunError, whichever byte is
    damaged."""
    whole = written.read_bytes()
    random = np.random.default_rng(4)
    damaged = [whole[: int(k)] for k in [0, 1, 8, 79, len(whole) - 1, *random.integers(len(whole), size=40)]]
    damaged += [whole[: -int(k)] + bytes(int(k)) for k in (1, 64, 100, 4096, len(whole) - 8)]
    damaged += [whole + b"\0", whole[512:] + whole[:512], whole[: len(SEAL) + 64]]
    for at in [*random.integers(len(whole), size=200), *range(len(whole) - 80, len(whole))]:
        flipped = bytearray(whole)
        flipped[at] ^= 1 << int(random.integers(8))
        damaged.append(bytes(flipped))
    for data in damaged:
        written.write_bytes(data)
        with pytest.raises(pf.RunError, match=r"run\.nc as a result: it is damaged"):
            pf.results.read_netcdf(written)


def test_invalid_data_under_a_valid_seal_is_refused(written):
    for stored in (b"", b"\x89HDF\r\n\x1a\n" + bytes(500), b"CDF\x01" + bytes(90), os.urandom(3000)):
        written.write_bytes(stored + SEAL + hashlib.sha256(stored).hexdigest().encode())
        with pytest.raises(pf.RunError, match=r"run\.nc"):
            pf.results.read_netcdf(written)


def test_other_readers_detect_flipped_numbers(result, written):
    """HDF5 itself has a checksum for each array."""
    whole = bytearray(written.read_bytes())
    at = whole.index(result["q"].values.tobytes())
    whole[at + 100] ^= 4
    written.write_bytes(whole)
    with pytest.raises(OSError, match=DAMAGED), xr.open_dataset(written, engine="h5netcdf") as other:
        other.load()


FULL = """
import resource, sys
import numpy as np, xarray as xr
import pfaffian as pf
from pathlib import Path
from pfaffian.simulate.record.netcdf import write_netcdf
from pfaffian.viewer.drawing import save
from matplotlib.figure import Figure
folder = Path(sys.argv[1])
r = xr.Dataset({"q": (("time", "coordinate"), np.random.default_rng(0).normal(size=(5000, 8)))})
pf.results.write_netcdf(r.isel(time=slice(10)), folder / "run.nc")
resource.setrlimit(resource.RLIMIT_FSIZE, (20000, 20000))
for write in (lambda: write_netcdf(r, folder / "run.nc"), lambda: save(Figure(), folder / "figure.png")):
    try:
        write()
    except pf.RunError as error:
        print(error)
assert r["q"].shape == (5000, 8)
assert pf.results.read_netcdf(folder / "run.nc")["q"].shape == (10, 8)
"""


def test_a_full_disk_leaves_the_process_and_the_old_file(tmp_path):
    """A limit on file sizes fails in the middle of a write, as a full disk does: with an error, not a signal."""
    child = subprocess.run([sys.executable, "-c", FULL, str(tmp_path)], capture_output=True, text=True, timeout=PATIENCE)
    assert child.returncode == 0, child.stderr
    assert "cannot write" in child.stdout and "run.nc" in child.stdout
    assert [p.name for p in tmp_path.iterdir() if p.name != "figure.png"] == ["run.nc"]


def test_files_of_killed_writers_are_deleted(result, tmp_path):
    """Only old ones are deleted; other files stay, as do those of a writer that may still run."""
    old, young, others = (tmp_path / f".pfaffian-{c * 32}.tmp" for c in "abc")
    named = tmp_path / ".pfaffian-notes.tmp"
    for path in (old, young, others, named):
        path.write_bytes(b"half")
    for path in (old, others, named):
        os.utime(path, (time.time() - OLD - 1,) * 2)
    if os.getuid() == 0:
        os.chown(others, 12345, -1)
    else:
        others.unlink()
    pf.results.write_netcdf(result, tmp_path / "run.nc")
    assert {p for p in (old, young, named) if p.exists()} == {young, named}
    assert others.exists() == (os.getuid() == 0)


def test_a_failure_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "x"
    write_whole(path, b"old")

    def fails(handle):
        raise OSError("no")

    monkeypatch.setattr(os, "fsync", fails)
    with pytest.raises(OSError, match="no"):
        write_whole(path, b"new")
    assert path.read_bytes() == b"old" and list(tmp_path.iterdir()) == [path]
