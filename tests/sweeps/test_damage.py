"""Damaged stores: reading is right or an error of the library, whatever happened to a file, and repair gives the same bytes."""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import pfaffian as pf
from pfaffian import statistics, sweeps
from pfaffian.errors import ModelError, RunError, RunWarning
from pfaffian.sweeps.description import COPY, METADATA
from tests.sweeps.test_sweep import KEEP, SPACE, counted, files, pendulum

ODD = "1\\2"
"""Name of a variable that is no name of a folder."""

RUN = {"duration": 0.05, "step": 0.01, "backend": "interpreter", "block": 8, "threads": 1, "error": True}
RUN["keep"] = {**KEEP, "q": True, ODD: statistics.mean("v")}

DIGESTS = ("block_digest", "chunk_digest")


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Path:
    """A store of three blocks of eight runs."""
    place = tmp_path_factory.mktemp("whole") / "runs.zarr"
    pf.sweep(pendulum(), SPACE, store=place, **RUN)
    return place


@pytest.fixture(scope="module")
def expected(whole):
    return sweeps.open_store(whole).load()


@pytest.fixture
def copy(whole, tmp_path) -> Path:
    """A store that a test may damage by replacing files; what it does not replace it shares with `whole`."""
    return Path(shutil.copytree(whole, tmp_path / "runs.zarr", copy_function=os.link))


def flipped(data: bytes, at: float) -> bytes:
    """The data with one bit changed."""
    k = int(at * (len(data) - 1))
    return data[:k] + bytes([data[k] ^ 4]) + data[k + 1 :]


KINDS: dict[str, Callable[[bytes], bytes] | None] = {
    "removed": None,
    "a folder": None,
    "a link to itself": None,
    "a link to nothing": None,
    "a link to a device": None,
    "a pipe": None,
    "emptied": lambda data: b"",
    "cut": lambda data: data[: len(data) // 2],
    "longer": lambda data: data + b"\0",
    "zeros": lambda data: bytes(len(data)),
    "first bit": lambda data: flipped(data, 0),
    "middle bit": lambda data: flipped(data, 0.5),
    "last bit": lambda data: flipped(data, 1),
    "other metadata": lambda data: b'{"zarr_format": 3, "node_type": "group"}',
    "garbled": lambda data: b"\x00\xff{[",
    "another word": lambda data: data.replace(b"64", b"32") + b"\n" * (b"64" not in data),
}


SOME = ("removed", "a folder", "a link to itself", "a pipe", "cut", "middle bit", "other metadata", "another word")
"""Kinds of damage that stand for all."""


def damage(path: Path, kind: str) -> None:
    data, change = path.read_bytes(), KINDS[kind]
    path.unlink()
    if change is not None:
        path.write_bytes(change(data))
    elif kind == "a folder":
        path.mkdir()
    elif kind == "a pipe":
        os.mkfifo(path)
    elif kind != "removed":
        path.symlink_to({"a link to itself": path.name, "a link to a device": "/dev/zero"}.get(kind, "nothing"))


def name_of(store: Path, folder: str) -> str:
    """The variable of an array."""
    return json.loads((store / folder / METADATA).read_bytes())["attributes"].get("name", folder)


def is_block(store: Path, folder: str) -> bool:
    """Whether the chunks of an array are blocks of runs."""
    return json.loads((store / folder / METADATA).read_bytes())["dimension_names"][0] in ("run", "block")


def folders(store: Path) -> list[str]:
    return sorted(path.name for path in store.iterdir() if path.is_dir() and path.name != COPY.parts[0])


def chunk(store: Path, folder: str) -> Path | None:
    """A chunk of an array, that of block 1 where it has several; None if it has no file."""
    chunks = sorted(path for path in (store / folder / "c").rglob("*") if path.is_file())
    return chunks[len(chunks) // 2] if chunks else None


def test_the_copy_of_a_store_is_a_store_with_all_its_arrays(copy, expected):
    assert sweeps.open_store(copy).load().identical(expected)
    names = {name_of(copy, folder) for folder in folders(copy)}
    assert names == {str(n) for n in expected.variables} | {"chunk_digest"} and ODD in names
    assert chunk(copy, "stopped") is None and chunk(copy, "fastest").relative_to(copy).as_posix() == "fastest/c/1/0"


@pytest.mark.parametrize("kind", KINDS)
def test_damage_to_any_array_is_named(copy, whole, kind):
    """Metadata and labels where the store is opened, blocks of runs where they are read."""
    for folder in folders(whole):
        for path in filter(None, [whole / folder / METADATA, chunk(whole, folder)]):
            here = copy / path.relative_to(whole)
            damage(here, kind)
            if folder == "block_digest" and path.name == "1" and kind == "removed":
                assert (sweeps.open_store(copy)["status"].values == -1).sum() == 8, "the block is missing"
            else:
                what = "its metadata" if path.name == METADATA else r"chunk [01](\.0)*"
                name = f"({'|'.join(DIGESTS)})" if folder in DIGESTS else re.escape(repr(name_of(whole, folder))[1:-1])
                words = rf"runs.zarr': array '{name}', {what}: .* damaged: pf\.sweeps\.damaged\("
                with pytest.raises(ModelError, match=words) as caught:
                    read(copy, name_of(whole, folder))
                assert ("computes it again" in str(caught.value)) == (path.name != METADATA and is_block(whole, folder))
            (shutil.rmtree if here.is_dir() else Path.unlink)(here) if os.path.lexists(here) else None
            os.link(path, here)


def read(store: Path, name: str) -> None:
    """Read a variable of a store; the digests of chunks where any variable is read."""
    found = sweeps.open_store(store)
    found["status" if name == "chunk_digest" else name].load()


@pytest.mark.parametrize("kind", SOME)
def test_repair_restores_every_array_and_costs_one_block(copy, whole, monkeypatch, kind):
    """Metadata and a chunk of every array are damaged at once. The other blocks stay."""
    paths = [path for folder in folders(whole) for path in (whole / folder / METADATA, chunk(whole, folder)) if path]
    for path in [*paths, whole / METADATA]:
        damage(copy / path.relative_to(whole), kind)
    with pytest.raises(ModelError, match=r"damaged: pf\.sweeps\.damaged"):
        pf.sweep(pendulum(), SPACE, store=copy, **RUN)
    with pytest.warns(RunWarning, match=r"array 'axis', its metadata.*: damaged, and written again"):
        assert sweeps.damaged(copy) == ([1] if kind != "removed" else []), "a block without entry is missing"
    seen = counted(monkeypatch)
    pf.sweep(pendulum(), SPACE, store=copy, **RUN)
    assert seen == [*range(8, 16)] and files(copy) == files(whole)


@pytest.mark.parametrize("kind", SOME)
def test_a_block_confirms_the_files_where_their_copy_is_damaged(copy, whole, expected, kind):
    damage(copy / COPY, kind)
    with pytest.raises(ModelError, match=r"its description: 'description/zarr\.json' is not what was written"):
        sweeps.open_store(copy)
    with pytest.warns(RunWarning, match="its description: damaged, and written again"):
        assert sweeps.damaged(copy) == []
    assert files(copy) == files(whole) and sweeps.open_store(copy).load().identical(expected)


def test_a_copy_that_nothing_confirms_is_not_restored(copy):
    damage(copy / COPY, "cut")
    damage(copy / "velocity" / "c" / "0", "middle bit")
    before = files(copy)
    with pytest.raises(ModelError, match="no block of runs confirms the other files"):
        sweeps.damaged(copy)
    assert files(copy) == before


@pytest.mark.filterwarnings("ignore:store .* written again")
@pytest.mark.parametrize("place", ["velocity", "fastest", "fastest/c", "fastest/c/1", *DIGESTS, "block_digest/c"])
@pytest.mark.parametrize("kind", ["removed", "a file"])
def test_a_folder_may_be_damaged(copy, whole, place, kind):
    shutil.rmtree(copy / place)
    if kind == "a file":
        (copy / place).write_text("words")
    if not (place.startswith("block_digest") and kind == "removed"):
        with pytest.raises(ModelError, match=r"damaged: pf\.sweeps\.damaged"):
            sweeps.open_store(copy).load()
    sweeps.damaged(copy)
    pf.sweep(pendulum(), SPACE, store=copy, **RUN)
    assert files(copy) == files(whole)


def test_chunks_of_another_block_or_store_are_damage(copy, tmp_path):
    """Each chunk and its digests are whole, and not those of this place."""
    for k in ("fastest/c/{}/0", "chunk_digest/c/{}/0", "block_digest/c/{}"):
        (copy / k.format(1)).unlink()
        shutil.copy(copy / k.format(2), copy / k.format(1))
    with pytest.raises(ModelError, match=r"array 'chunk_digest', chunk 1\.0: it and 'block_digest' differ"):
        sweeps.open_store(copy)["fastest"].load()
    other = tmp_path / "other.zarr"
    pf.sweep(pendulum(), SPACE | {"length": np.linspace(0.5, 1.4, 6)}, store=other, **RUN)
    for path in [p for p in other.rglob("*") if p.is_file() and "c" in p.parts and p.parts[-2:] != ("c", "0")]:
        (copy / path.relative_to(other)).unlink(missing_ok=True)
        shutil.copy(path, copy / path.relative_to(other))
    with pytest.raises(ModelError, match=r"damaged: pf\.sweeps\.damaged"):
        sweeps.open_store(copy)["fastest"].load()


def test_a_chunk_where_none_belongs_is_removed(copy, whole):
    """All runs finished, so that the times of stop have no chunks."""
    (copy / "stopped" / "c").mkdir()
    (copy / "stopped" / "c" / "1").write_bytes(next((copy / "fastest" / "c" / "1").rglob("*")).read_bytes())
    (copy / "block_digest" / "c" / "77").write_bytes(b"12345678")
    with pytest.raises(ModelError, match="array 'stopped', chunk 1: it differs from its digest"):
        sweeps.open_store(copy)["stopped"].load()
    assert sweeps.damaged(copy) == [1, 77]
    pf.sweep(pendulum(), SPACE, store=copy, **RUN)
    assert files(copy) == files(whole)


def test_a_part_of_a_variable_is_read_without_the_others(copy, expected):
    """Only the blocks that are read are compared, each as a whole."""
    damage(copy / "fastest" / "c" / "1" / "0", "garbled")
    found = sweeps.open_store(copy)
    for name, runs in {"fastest": slice(0, 8), "spent": slice(None), "q": slice(3, 20, 5), "space": [23, 0]}.items():
        np.testing.assert_array_equal(found[name][runs].values, expected[name][runs].values)
    np.testing.assert_array_equal(found["q"][9, 2, 0].values, expected["q"][9, 2, 0].values)
    np.testing.assert_array_equal(found["q"][::-1, 1:3].values, expected["q"][::-1, 1:3].values)
    for runs in (slice(7, 9), 15, slice(None)):
        with pytest.raises(ModelError, match=r"array 'fastest', chunk 1\.0: it cannot be read .* block 1 \(runs 8 to 15\)"):
            found["fastest"][runs].load()


def test_a_block_that_is_being_written_reads_as_missing(copy):
    (copy / "block_digest" / "c" / "2").unlink()
    found = sweeps.open_store(copy).load()
    assert (found["status"].values[16:] == -1).all() and np.isnan(found["fastest"].values[16:]).all()
    assert (found["status"].values[:16] == 0).all() and found["block_digest"].values[2] == 0


def test_a_store_that_was_removed_has_no_numbers(copy):
    """A chunk without a file has the fill value, a store without files has none."""
    found = sweeps.open_store(copy)
    shutil.rmtree(copy)
    for name in ("fastest", "status", "block_digest"):
        with pytest.raises(ModelError, match="was removed after it was opened"):
            found[name].load()


def test_a_store_of_an_earlier_layout_is_named(tmp_path):
    """Such a store has no description; its root has the identity alone."""
    place = tmp_path / "runs.zarr"
    place.mkdir()
    identity = json.dumps({"space": "0", "runs of a block": 8})
    (place / METADATA).write_text(json.dumps({"attributes": {"sweep": identity}, "zarr_format": 3, "node_type": "group"}))
    before = files(place)
    for use in (sweeps.open_store, sweeps.damaged, lambda store: pf.sweep(pendulum(), SPACE, store=store, **RUN)):
        with pytest.raises(ModelError, match=r"in another layout \(1 there, 2 here\).*: read it with that version"):
            use(place)
    assert files(place) == before


@pytest.mark.parametrize("path", ["block_digest/c/1", "chunk_digest/c/1/0", "fastest/c/1/0", "velocity/c/0", "zarr.json"])
def test_what_the_system_refuses_to_read_is_no_damage(copy, monkeypatch, path):
    """As where the right to read is missing."""
    read_bytes = Path.read_bytes

    def refused(file):
        if file == copy / path:
            raise PermissionError(13, "Permission denied")
        return read_bytes(file)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "read_bytes", refused)
        for use in (lambda: sweeps.open_store(copy)["fastest"].load(), lambda: sweeps.damaged(copy)):
            with pytest.raises(RunError, match=r"cannot read .*: Permission denied"):
                use()
    assert sweeps.damaged(copy) == []


def test_a_store_that_cannot_be_written_can_be_read(copy, expected, monkeypatch):
    """All calls that write fail, as on a read-only disk; a finished sweep needs none."""

    def refused(*_, **__):
        raise OSError(30, "Read-only file system")

    for name in ("replace", "unlink", "mkdir", "rmdir"):
        monkeypatch.setattr(os, name, refused)
    assert pf.sweep(pendulum(), SPACE, store=copy, **RUN).load().identical(expected)
    assert sweeps.open_store(copy).load().identical(expected) and sweeps.damaged(copy) == []
    monkeypatch.undo()
    damage(copy / "fastest" / "c" / "1" / "0", "cut")
    monkeypatch.setattr(os, "unlink", refused)
    with pytest.raises(RunError, match=r"cannot repair the store .*: Read-only file system"):
        sweeps.damaged(copy)


def test_a_chunk_of_nan_alone_is_whole(tmp_path):
    """No run of the second block can start; 0 / 0 is a NaN with a sign, and a chunk of NaN has no file that keeps it."""
    rod = pf.Parameter("rod", 2.0)
    hinges = [pf.joint("a", "revolute", "world", "crank", axis=(0, 1, 0)),
              pf.joint("b", "revolute", "crank", "rod", axis=(0, 1, 0), placement=(1, 0, 0))]  # fmt: skip
    bodies = [pf.body("crank", 1.0, (0.5, 0, 0), 0.1), pf.body("rod", 1.0, (rod / 2, 0, 0), 0.1)]
    slider = pf.holonomic("slider", lambda k: k.position("rod", (rod.symbol, 0, 0))[2])
    m = pf.mechanism("slider-crank", bodies, hinges, constraints=[slider], parameters=[rod])
    how = {"q": {"a": 1.2}, "keep": {"mean": statistics.mean("v")}, "block": 2, "store": tmp_path / "runs.zarr"}
    space, how = {"rod": [2.0, 0.2, 0.3, 0.1]}, how | {"duration": 0.02, "step": 0.01, "backend": "interpreter"}
    with pytest.warns(RunWarning):
        pf.sweep(m, space, shard="1/2", **how)
        found = pf.sweep(m, space, **how).load()  # only the block without a run that can start
    assert np.isnan(found["mean"].values[1:]).all() and (found["status"].values > 0).tolist() == [False, True, True, True]
    assert not (tmp_path / "runs.zarr" / "mean" / "c" / "1").exists() and sweeps.damaged(tmp_path / "runs.zarr") == []


def test_modes_of_files_are_those_of_the_process(copy):
    """Files of a description are readable by whom the umask allows, as those that Zarr writes."""
    modes = {stat.S_IMODE(path.stat().st_mode) for path in copy.rglob("*") if path.is_file()}
    assert len(modes) == 1
