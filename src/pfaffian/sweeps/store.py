"""The store of a sweep: a Zarr folder whose chunks are blocks of runs, and whose array `block_digest` has an entry per block.

A block is whole or absent: Zarr gives each chunk its name when it is complete, and the entry is written when all chunks of the
block are on the disk. The entry is a digest of the block's numbers, so that it also reveals a damaged block. A chunk that
contains only the fill value (the times of stop where all runs finished) has no file.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import xarray as xr

from pfaffian.errors import ModelError, RunError, optional
from pfaffian.formats.file import as_path
from pfaffian.sweeps.plan import IDENTITY, STATUS, Sweep, stored_identity

OLD = 3600.0
"""Age [s] of a temporary file from which no process can still be writing it."""


def need_zarr() -> Any:
    """The package zarr. Raises ModelError, with the way to install it: it, or Dask, is not installed."""
    zarr, _ = (optional(m, m.partition(".")[0], "a sweep's store needs") for m in ("zarr", "dask.array"))
    return zarr


def create(sweep: Sweep) -> None:
    """Create the store, or check that an existing one belongs to the sweep. Raises ModelError: it belongs to another one."""
    if not sweep.store.exists():
        _create_empty(sweep)
    check(sweep.store, sweep.identity)


def check(store: Path, identity: dict[str, Any]) -> None:
    """Raise ModelError if a store has another identity, and list what differs."""
    if not (existing := stored_identity(store)):
        raise ModelError(f"{str(store)!r} is not the store of a sweep; choose another name, or remove it")
    if not (other := [name for name, value in identity.items() if existing.get(name) != value]):
        return
    readable = [n for n in other if n.startswith(("version", "runs"))]
    words = [f"{n} ({existing.get(n)!r} there, {identity[n]!r} here)" if n in readable else n for n in other]
    raise ModelError(f"{str(store)!r} is of another sweep: {', '.join(words)} differ; choose another store, or remove it")


def _create_empty(sweep: Sweep) -> None:
    """Create an empty store. It gets its name when it is complete; of several workers, the first one wins."""
    import dask.array as da

    aside = sweep.store.with_name(f".{sweep.store.name}-{uuid4().hex}.partial")
    runs, t = sweep.space.runs, sweep.template
    attributes = {"mechanism": t.attrs["mechanism"], IDENTITY: json.dumps(sweep.identity)}
    attributes["dimensions"] = json.dumps({**sweep.space.sizes})
    attributes["axes"] = json.dumps({label: axis.dim for label, axis in sweep.space.axes.items()})
    empty = xr.Dataset(
        {n: (x.dims, da.empty((runs, *x.shape[1:]), dtype=x.dtype, chunks=-1), x.attrs) for n, x in t.data_vars.items()}
        | {
            STATUS: (
                "block",
                da.empty(sweep.blocks, dtype="uint64", chunks=-1),
                {"meaning": "digest of a block of runs, 0: missing"},
            )
        },
        {name: _texts(x) for name, x in t.drop_vars("run").coords.items()},
        attributes,
    )
    how: dict[Any, Any] = {n: {"chunks": (sweep.block, *x.shape[1:]), "fill_value": _fill(x)} for n, x in t.data_vars.items()}
    how[STATUS] = {"chunks": (1,), "fill_value": 0}
    try:
        sweep.store.parent.mkdir(parents=True, exist_ok=True)
        empty.to_zarr(aside, zarr_format=3, consolidated=False, compute=False, encoding=how)
        os.rename(aside, sweep.store)
    except OSError as error:
        shutil.rmtree(aside, ignore_errors=True)
        if not sweep.store.exists():
            raise RunError(f"cannot make the store {str(sweep.store)!r}: {error.strerror or error}") from error


def _texts(x: xr.DataArray) -> xr.Variable:
    """A coordinate; its texts as strings of variable length, which the Zarr format supports."""
    return x.variable.astype(np.dtypes.StringDType()) if x.dtype.kind == "U" else x.variable


def _fill(x: xr.DataArray) -> Any:
    """The value of a variable in runs that are not computed: NaN, or -1."""
    return np.nan if x.dtype.kind == "f" else -1


def write(sweep: Sweep, k: int, results: xr.Dataset) -> None:
    """Write block k, and then, when all of it is on the disk, its entry. Raises RunError: it fails, as with a full disk."""
    zarr = need_zarr()
    results = results.drop_vars([name for name in results.coords if "run" not in results[name].dims or name == "run"])
    results.attrs = {}
    try:
        results.to_zarr(sweep.store, region={"run": sweep.runs_of(k)}, zarr_format=3, consolidated=False)
        for path in _chunks(sweep.store, [str(n) for n in results.data_vars], k):
            _flush(path)
        zarr.open_array(sweep.store / STATUS, mode="r+")[k] = digest(results)
        _flush(sweep.store / STATUS / "c" / str(k))
    except OSError as error:
        raise RunError(f"cannot write block {k} into {str(sweep.store)!r}: {error.strerror or error}; blocks "
                       "in the store stay, and the same call continues from them") from error  # fmt: skip


def digest(results: xr.Dataset) -> np.uint64:
    """Digest of the numbers of a block, never 0."""
    hashed = sha256()
    for name in sorted(map(str, results.data_vars)):
        hashed.update(name.encode() + np.ascontiguousarray(results[name].values).tobytes())
    return np.uint64(int.from_bytes(hashed.digest()[:8], "little") | 1)


def _chunks(store: Path, names: list[str], k: int) -> Iterator[Path]:
    """The files of block k of these variables, and their folders."""
    for name in names:
        place = store / name / "c"
        chunk = place / str(k)
        yield from (p for p in (chunk, place, *(chunk.rglob("*") if chunk.is_dir() else ())) if p.exists())


def _flush(path: Path) -> None:
    """Flush a file or folder to the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def stored_blocks(sweep: Sweep) -> set[int]:
    """The blocks in the store, from any worker: those whose entry has a file, since an entry of 0 has none."""
    try:
        return {int(name) for name in os.listdir(sweep.store / STATUS / "c") if name.isdecimal()}
    except OSError:
        return set()


def missing(sweep: Sweep) -> list[int]:
    """The blocks that are not in the store."""
    return sorted(set(range(sweep.blocks)) - stored_blocks(sweep))


def tidy(store: Path) -> None:
    """Remove temporary files that processes left behind when they were killed, once they are older than OLD."""
    for path in [*store.glob("**/*.partial"), *store.parent.glob(f".{store.name}-*.partial")]:
        try:
            if time.time() - path.stat().st_mtime > OLD:
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        except OSError:
            continue


def open_store(store: Any) -> xr.Dataset:
    """The results of a sweep, finished or not, as a Dataset that reads values from the store when they are used.

    Args:
        store: folder of a sweep.
    Returns:
        Dataset over `run`, in chunks of one block, so that it may be larger than memory: the variables of `keep`, `status` (0:
        finished, -1: not computed yet), `stopped` [s], `step_error`, and `space` with the values of each axis.
    Raises ModelError: the folder is not the store of a sweep.

    Example:
        >>> import tempfile
        >>> import pfaffian as pf
        >>> slide = pf.joint("x", "prismatic", "world", "box")
        >>> m = pf.mechanism("box", [pf.body("box", 1.0)], [slide])
        >>> how = {"duration": 1.0, "step": 0.1, "backend": "numpy", "keep": {"end": pf.statistics.final("q")}}
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     made = pf.sweep(m, {"v:x": [1.0, 2.0]}, store=f"{folder}/runs.zarr", **how)
        ...     pf.sweeps.open_store(f"{folder}/runs.zarr")["end"].values.ravel().round(3)
        array([-3.905, -2.905])
    """
    need_zarr()
    place = as_path(store)
    if not stored_identity(place):
        raise ModelError(f"{str(place)!r} is not the store of a sweep")
    return xr.open_zarr(place, consolidated=False, chunks={})


def damaged(store: Any) -> list[int]:
    """Find the blocks of a store whose numbers differ from those that were written, and mark them as missing.

    Args:
        store: folder of a sweep.
    Returns:
        list of indices of these blocks; the next call of `sweep` computes them again.
    Raises ModelError: the folder is not the store of a sweep.

    Example:
        >>> import tempfile
        >>> import pfaffian as pf
        >>> slide = pf.joint("x", "prismatic", "world", "box")
        >>> m = pf.mechanism("box", [pf.body("box", 1.0)], [slide])
        >>> how = {"duration": 1.0, "step": 0.1, "backend": "numpy", "keep": {"end": pf.statistics.final("q")}}
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     made = pf.sweep(m, {"v:x": [1.0, 2.0]}, store=f"{folder}/runs.zarr", **how)
        ...     pf.sweeps.damaged(f"{folder}/runs.zarr")
        []
    """
    found = open_store(store)
    entries = need_zarr().open_array(as_path(store) / STATUS, mode="r+")
    block = json.loads(found.attrs[IDENTITY])["runs of a block"]
    bad = []
    for k in np.flatnonzero(entries[:]).tolist():
        part = found.drop_vars([n for n in found.variables if "run" not in found[n].dims]).isel(
            run=slice(k * block, (k + 1) * block)
        )
        try:
            good = digest(part.load()) == entries[k]
        except (OSError, ValueError, RuntimeError):
            good = False
        if not good:
            bad.append(k)
            entries[k] = 0
    return bad
