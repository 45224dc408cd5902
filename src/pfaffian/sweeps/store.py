"""The store of a sweep: a Zarr folder with its description, labels and blocks of runs; created, written, read and repaired.

A block is whole or absent: each chunk gets its name when it is complete, and the entry of the block is written when all of its
chunks are on the disk. Whatever is read is compared with what was written.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from pfaffian.errors import ModelError, RunError, RunWarning, listed, notice
from pfaffian.formats.text.file import as_path
from pfaffian.sweeps.blocks import CHUNKS, ENTRY, STATUS, StoredBlocks, damaged_blocks, need_dask, need_zarr
from pfaffian.sweeps.description import (
    COPY,
    IDENTITY,
    LAYOUT,
    METADATA,
    NAME,
    PARTIAL,
    Description,
    clear,
    copied,
    damage,
    described,
    expand,
    is_unused,
    publish,
    put,
    refuse_others,
)
from pfaffian.sweeps.opaque import UNKNOWN
from pfaffian.sweeps.planned import LAW, Sweep

PLAIN = re.compile(r"(?!(?:con|prn|aux|nul|com\d|lpt\d)(?:\.|$))(?=.{1,64}$)\w+(?:[.-]\w+)*", re.ASCII | re.IGNORECASE)
"""Names of variables that are also those of their folders: words that every file system can store."""

OURS = (STATUS, CHUNKS, COPY.parts[0], METADATA)
"""Folders and files of every store that are no variable of a result."""


def folders(names: Collection[str]) -> dict[str, str]:
    """Name of each variable -> the folder of its array: the name itself if it is plain, else one made of its digest.

    Of names that differ in cases only, which some file systems take for one, that in lower case keeps its own.
    """
    alike = Counter(name.casefold() for name in (*names, *OURS))

    def folder(name: str) -> str:
        alone = alike[name.casefold()] == 1 or (name == name.casefold() and name not in OURS)
        if alone and PLAIN.fullmatch(name):
            return name
        return f"name-{sha256(name.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}"

    return {name: folder(name) for name in names}


def create(sweep: Sweep) -> None:
    """Create the store if there is none. Raises ModelError: there is one of another sweep, or it is damaged."""
    try:
        if is_unused(sweep.store):
            publish(_empty(sweep))
        check(sweep)
        expand(sweep.written.description, [path for path, _ in sweep.written.description.damaged()])
    except OSError as error:
        raise RunError(f"cannot make the store {str(sweep.store)!r}: {error.strerror or error}") from error


def check(sweep: Sweep) -> None:
    """Raise ModelError if the store is of another sweep, and list what differs; or if it is damaged."""
    existing, identity = sweep.written.description.identity, sweep.identity
    if not (other := [name for name in {**identity, **existing} if existing.get(name) != identity.get(name)]):
        return
    readable = [n for n in other if n.startswith(("version", "runs")) or UNKNOWN in str(identity.get(n))]
    words = [f"{n} ({existing.get(n)!r} there, {identity.get(n)!r} here)" if n in readable else n for n in other]
    memory = "; what a law in Python remembers from earlier runs is part of it: make it anew" if other == [LAW] else ""
    what = f"{str(sweep.store)!r} is of another sweep: {', '.join(words)} differ"
    raise ModelError(f"{what}; choose another store, or remove it{memory}")


def _empty(sweep: Sweep) -> Description:
    """The description of a store without blocks."""
    from zarr.storage import MemoryStore

    runs, t, da = sweep.space.runs, sweep.template, need_dask()
    attributes = {"mechanism": t.attrs["mechanism"], IDENTITY: json.dumps(sweep.identity), "layout": LAYOUT}
    attributes["dimensions"] = json.dumps({**sweep.space.sizes})
    attributes["axes"] = json.dumps({label: axis.dim for label, axis in sweep.space.axes.items()})
    labels = {str(name): _texts(x) for name, x in t.drop_vars("run").coords.items()}
    names = folders([*map(str, t.data_vars), *labels])
    data: dict[Any, Any] = {}
    how: dict[Any, Any] = {}
    for name, x in t.data_vars.items():
        data[names[str(name)]] = x.dims, da.empty((runs, *x.shape[1:]), dtype=x.dtype, chunks=-1), x.attrs
        how[names[str(name)]] = {"chunks": (sweep.block, *x.shape[1:]), "fill_value": np.nan if x.dtype.kind == "f" else -1}
    for folder, width, what in ((STATUS, (), "a block of runs"), (CHUNKS, (len(data),), "each chunk of a block")):
        digests = da.empty((sweep.blocks, *width), dtype=ENTRY, chunks=-1)
        data[folder] = ("block", "array")[: digests.ndim], digests, {"meaning": f"digest of {what}, 0: missing"}
        how[folder] = {"chunks": (1, *width), "fill_value": 0, "compressors": None}
    empty = xr.Dataset(data, {names[name]: x for name, x in labels.items()}, attributes)
    for name, folder in names.items():
        if folder != name:
            empty[folder].attrs[NAME] = name
    files: dict[str, Any] = {}
    empty.to_zarr(MemoryStore(store_dict=files), zarr_format=3, consolidated=False, compute=False, encoding=how)
    return Description(sweep.store, {path: x.to_bytes() for path, x in files.items()})


def _texts(x: xr.DataArray) -> xr.Variable:
    """A coordinate; its texts as strings of variable length, which the Zarr format supports."""
    return x.variable.astype(np.dtypes.StringDType()) if x.dtype.kind == "U" else x.variable


def write(sweep: Sweep, k: int, results: xr.Dataset) -> None:
    """Write block k, and then, when all of it is on the disk, its entry. Raises RunError: it fails, as with a full disk."""
    try:
        sweep.written.write(k, {str(name): x.values for name, x in results.data_vars.items()})
    except OSError as error:
        raise RunError(f"cannot write block {k} into {str(sweep.store)!r}: {error.strerror or error}; blocks "
                       "in the store stay, and the same call continues from them") from error  # fmt: skip


def open_store(store: Any) -> xr.Dataset:
    """The results of a sweep, finished or not, as a Dataset that reads values from the store when they are used.

    Metadata and labels are compared with what was written when the store is opened, and each chunk when it is read.

    Args:
        store: folder of a sweep.
    Returns:
        Dataset over `run`, in chunks of one block, so that it may be larger than memory: the variables of `keep`, `status` (0:
        finished, -1: not computed yet), `stopped` [s], `error`, and `space` with the values of each axis.
    Raises ModelError: the folder is not the store of a sweep, or one of another layout; it is damaged, here or where values are
    read: the message names the array, the chunk and what can be computed again, see `damaged`.
    Raises RunError: the system refuses to read it.

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
    return _dataset(StoredBlocks(described(as_path(store))))


def _dataset(blocks: StoredBlocks) -> xr.Dataset:
    """The Dataset that reads from the blocks; its labels are those of the description."""
    from zarr.core.buffer import default_buffer_prototype
    from zarr.storage import MemoryStore

    buffer, da, d = default_buffer_prototype().buffer, need_dask(), blocks.description
    labels_only: dict[str, Any] = {path: buffer.from_bytes(data) for path, data in d.files.items()}
    memory = MemoryStore(store_dict=labels_only, read_only=True)
    data: dict[str, Any] = {}
    labels: dict[str, Any] = {}
    called = {folder: str(x["attributes"].get(NAME, folder)) for folder, x in d.arrays.items()}
    for folder in sorted(called, key=called.__getitem__):
        name, x = called[folder], d.arrays[folder]
        attributes = {key: value for key, value in x["attributes"].items() if key not in (NAME, "coordinates", "_FillValue")}
        dims = x["dimension_names"]
        if folder in blocks.folders:
            values, chunks = blocks.array(folder), (blocks.size, *x["shape"][1:])
            lazily = da.from_array(values, chunks, name=False, fancy=False, meta=np.empty(0, values.dtype))
            data[name] = dims, lazily, attributes
        elif folder == STATUS:
            entries = da.map_blocks(blocks.entries, chunks=((blocks.count,),), dtype=np.uint64, meta=np.empty(0, np.uint64))
            data[name] = dims, entries, attributes
        elif folder != CHUNKS:
            labels[name] = dims, need_zarr().open_array(memory, path=folder, mode="r")[...], attributes
    return xr.Dataset(data, labels, d.attributes)


def damaged(store: Any) -> list[int]:
    """Find what is damaged in a store: write metadata and labels again, and mark blocks of runs as missing.

    A block is damaged if one of its numbers differs from what was written. All others stay. Metadata and labels come from the
    description in the store; if that is damaged itself, from the files, when a block of runs confirms them.

    Args:
        store: folder of a sweep.
    Returns:
        list of indices of the damaged blocks; the next call of `sweep` computes them again, to the same bits.
    Raises ModelError: the folder is not the store of a sweep, or one of another layout; nothing confirms a damaged description.
    Raises RunError: the system refuses to read or to write the store.
    Warns RunWarning: metadata or labels were damaged and have been written again; the message names them.

    Example:
        >>> import tempfile
        >>> import pfaffian as pf
        >>> slide = pf.joint("x", "prismatic", "world", "box")
        >>> m = pf.mechanism("box", [pf.body("box", 1.0)], [slide])
        >>> keep = {"end": pf.statistics.final("q")}
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     made = pf.sweep(m, {"v:x": [1.0, 2.0]}, store=f"{folder}/runs.zarr", duration=1.0, step=0.1, keep=keep)
        ...     pf.sweeps.damaged(f"{folder}/runs.zarr")
        []
    """
    need_zarr()
    place = as_path(store)
    try:
        blocks = StoredBlocks(_restored(place))
        clear(place, f"{STATUS}/c/-")  # a file in place of the folder of entries
        bad = list(damaged_blocks(blocks))
        for k in bad:
            blocks.forget(k)
    except OSError as error:
        raise RunError(f"cannot repair the store {str(place)!r}: {error.strerror or error}") from error
    return bad


def _restored(place: Path) -> Description:
    """The description of a store, after its damaged files were written again."""
    found, again = copied(place), []
    if found is None:
        refuse_others(place)
        if (found := _confirmed(place)) is None:
            raise damage(place, "its description", "it is not what was written, and no block of runs confirms the other files",
                         "cannot restore it; remove the store and sweep again")  # fmt: skip
        clear(place, str(COPY))
        put(place / COPY, found.copy)
        again.append("its description")
    paths = [path for path, _ in found.damaged()]
    expand(found, paths)
    if again := [*again, *map(found.file, paths)]:
        notice(f"store {str(place)!r}: {listed(again)}: damaged, and written again", RunWarning)
    return found


def _confirmed(place: Path) -> Description | None:
    """The description that the files of a store make up, None if no block of runs confirms it."""
    paths = [path for path in (place / METADATA, *place.glob(f"*/{METADATA}")) if path != place / COPY]
    with suppress(ValueError, KeyError, TypeError, AttributeError):  # from garbled metadata
        for path in paths[1:]:
            if not {"run", "block"} & set(json.loads(path.read_bytes())["dimension_names"]):
                paths += sorted(x for x in (path.parent / "c").rglob("*") if x.is_file() and not PARTIAL.fullmatch(x.name))
        found = Description(place, {path.relative_to(place).as_posix(): path.read_bytes() for path in paths})
        return found if StoredBlocks(found).confirmed() else None
    return None
