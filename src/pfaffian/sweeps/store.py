"""The store of a sweep: a Zarr folder whose chunks are blocks of runs, with one status entry a block, written last.

A block is whole or absent: Zarr gives each chunk its name when it is whole, and the entry in `block_digest` follows when all
chunks of the block are on the disk. The entry is a digest of the block's numbers, so that it tells a damaged block too. A chunk
that has nothing but the fill value (the time of stop of runs that finished) has no file.
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
"""Age [s] at which no process can be writing a temporary file any more."""


def need_zarr() -> Any:
    """The package zarr. Raises ModelError: it, or Dask, is not installed, and how to install it."""
    zarr, _ = (optional(m, m.partition(".")[0], "a sweep's store needs") for m in ("zarr", "dask.array"))
    return zarr


def create(sweep: Sweep) -> None:
    """Make the store, or check that one that is there is this sweep's. Raises ModelError: it is another one's."""
    if not sweep.store.exists():
        _made(sweep)
    check(sweep.store, sweep.identity)


def check(store: Path, identity: dict[str, Any]) -> None:
    """Raise ModelError if a store differs from this, with all that differs."""
    if not (kept := stored_identity(store)):
        raise ModelError(f"{str(store)!r} is no store of a sweep; choose another name, or remove it")
    if not (other := [name for name, value in identity.items() if kept.get(name) != value]):
        return
    readable = [n for n in other if n.startswith(("version", "runs"))]
    words = [f"{n} ({kept.get(n)!r} there, {identity[n]!r} here)" if n in readable else n for n in other]
    raise ModelError(f"{str(store)!r} is of another sweep: {', '.join(words)} differ; choose another store, or remove it")


def _made(sweep: Sweep) -> None:
    """An empty store, which has its name when it is whole: of several workers the first one gives it."""
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
    """A coordinate with texts of any length, which Zarr's format knows."""
    return x.variable.astype(np.dtypes.StringDType()) if x.dtype.kind == "U" else x.variable


def _fill(x: xr.DataArray) -> Any:
    """What a run that is not computed has: NaN, or -1."""
    return np.nan if x.dtype.kind == "f" else -1


def write(sweep: Sweep, k: int, found: xr.Dataset) -> None:
    """Write a block, and when all of it is on the disk its entry. Raises RunError: the disk is full, for instance."""
    zarr = need_zarr()
    found = found.drop_vars([name for name in found.coords if "run" not in found[name].dims or name == "run"])
    found.attrs = {}
    try:
        found.to_zarr(sweep.store, region={"run": sweep.runs_of(k)}, zarr_format=3, consolidated=False)
        for path in _chunks(sweep.store, [str(n) for n in found.data_vars], k):
            _flush(path)
        zarr.open_array(sweep.store / STATUS, mode="r+")[k] = digest(found)
        _flush(sweep.store / STATUS / "c" / str(k))
    except OSError as error:
        raise RunError(f"cannot write block {k} into {str(sweep.store)!r}: {error.strerror or error}; what is there stays, and "
                       "the same call goes on from it") from error  # fmt: skip


def digest(found: xr.Dataset) -> np.uint64:
    """Of the numbers of a block, never 0."""
    kept = sha256()
    for name in sorted(map(str, found.data_vars)):
        kept.update(name.encode() + np.ascontiguousarray(found[name].values).tobytes())
    return np.uint64(int.from_bytes(kept.digest()[:8], "little") | 1)


def _chunks(store: Path, names: list[str], k: int) -> Iterator[Path]:
    """The files of a block, and their folders."""
    for name in names:
        place = store / name / "c"
        own = place / str(k)
        yield from (p for p in (own, place, *(own.rglob("*") if own.is_dir() else ())) if p.exists())


def _flush(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def there(sweep: Sweep) -> set[int]:
    """The blocks in the store, whoever wrote them: those whose entry has a file, as an entry of 0 has none."""
    try:
        return {int(name) for name in os.listdir(sweep.store / STATUS / "c") if name.isdecimal()}
    except OSError:
        return set()


def missing(sweep: Sweep) -> list[int]:
    """The blocks that are not in the store."""
    return sorted(set(range(sweep.blocks)) - there(sweep))


def tidy(store: Path) -> None:
    """Remove the temporary files that killed processes left long ago."""
    for path in [*store.glob("**/*.partial"), *store.parent.glob(f".{store.name}-*.partial")]:
        try:
            if time.time() - path.stat().st_mtime > OLD:
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        except OSError:
            continue


def open_store(store: Any) -> xr.Dataset:
    """The results of a sweep, finished or not, as a Dataset that reads from the store what is asked of it.

    Args:
        store: folder of a sweep.
    Returns:
        Dataset over `run`, in chunks of one block, so that it may be larger than memory: what was kept, `status` (0: finished,
        -1: not computed yet), `stopped` [s], `step_error`, and `space` with the values of each axis.
    Raises ModelError: no such store.

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
        raise ModelError(f"{str(place)!r} is no store of a sweep")
    return xr.open_zarr(place, consolidated=False, chunks={})


def damaged(store: Any) -> list[int]:
    """The blocks of a store whose numbers are not those that were written; they count as missing from now on.

    Args:
        store: folder of a sweep.
    Returns:
        list of blocks, whose entries are removed: the next call of `sweep` computes them again.
    Raises ModelError: no such store.

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
