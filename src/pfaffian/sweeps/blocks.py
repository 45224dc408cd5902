"""The blocks of a store: an array of each variable, whose chunks are blocks of runs, and their digests.

`chunk_digest` (blocks, arrays) has a digest of each chunk, and `block_digest` (blocks,) one of each row of these, the entry of
the block, which is written last. An entry covers the seal of the description and the number of the block, so that those of
another block or store differ. Neither is compressed, so that an entry is read without Zarr. A chunk that contains only the fill
value (the times of stop where all runs finished) has no file.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from pfaffian.errors import ModelError, RunError, optional
from pfaffian.sweeps.description import COPY, ENDLESS, NAME, Description, clear, contents, damage, flush_chunk, is_endless

STATUS, CHUNKS = "block_digest", "chunk_digest"
"""Names of the arrays with the digests of blocks and of chunks, 0 where a block is missing."""

ENTRY = np.dtype("<u8")
"""Type of a digest in a file."""


def need_zarr() -> Any:
    """The package zarr. Raises ModelError, with the way to install it: it, or Dask, is not installed."""
    need_dask()
    return optional("zarr", "zarr", "a sweep's store needs")


def need_dask() -> Any:
    """The module dask.array. Raises ModelError, with the way to install it: it is not installed."""
    return optional("dask.array", "dask", "a sweep's store needs")


@dataclass(frozen=True)
class StoredBlocks:
    """The blocks of a store.   description: of the store."""

    description: Description

    @property
    def place(self) -> Path:
        """Folder of the store."""
        return self.description.place

    @cached_property
    def folders(self) -> list[str]:
        """The folders of the arrays over runs, in the order of their digests."""
        return sorted(
            folder for folder, x in self.description.arrays.items() if x.get("dimension_names", [None])[:1] == ["run"]
        )

    @cached_property
    def folder_of(self) -> dict[str, str]:
        """Name of each variable over runs -> folder of its array, in the order of their digests."""
        return {self.description.arrays[folder]["attributes"].get(NAME, folder): folder for folder in self.folders}

    @property
    def size(self) -> int:
        """Number of runs in a block, except the last one."""
        return self.description.identity["runs of a block"]

    @cached_property
    def runs(self) -> int:
        """Total number of runs."""
        return self.description.arrays["space"]["shape"][0]

    @property
    def count(self) -> int:
        """Number of blocks."""
        return -(-self.runs // self.size)

    def runs_of(self, k: int) -> slice:
        """Indices of the runs in block k."""
        return slice(k * self.size, min((k + 1) * self.size, self.runs))

    def stored(self) -> set[int]:
        """The blocks in the store, from any worker: those that have an entry.

        Raises ModelError: the entries are not in a folder. Raises RunError: the system refuses to list them.
        """
        place = self.place / STATUS / "c"
        try:
            return {int(name) for name in os.listdir(place) if name.isdecimal() and name.isascii()}
        except FileNotFoundError:
            return set()
        except NotADirectoryError:
            what, way = f"array {STATUS!r}, its chunks", "removes it, and the same sweep computes all blocks again"
            raise damage(self.place, what, "a file in place of their folder", way) from None
        except OSError as error:
            raise RunError(f"cannot read {str(place)!r}: {error.strerror or error}") from error

    def missing(self) -> list[int]:
        """The blocks that are not in the store."""
        return sorted(set(range(self.count)) - self.stored())

    @cached_property
    def _arrays(self) -> dict[str, Any]:
        """The arrays of the store that blocks are written into."""
        return {folder: need_zarr().open_array(self.place / folder, mode="r+") for folder in (*self.folders, CHUNKS, STATUS)}

    def write(self, k: int, values: Mapping[str, np.ndarray]) -> None:
        """Write block k, then the digests of its chunks, then its entry, each when all before it is on the disk.

        values: of each variable over runs, by its name.   Raises OSError: a file cannot be written.
        """
        for name, folder in self.folder_of.items():
            self._arrays[folder][self.runs_of(k)] = values[name]
        for folder in self.folders:
            flush_chunk(self.place / folder / "c", k)
        row = np.array([chunk_digest(values[name]) for name in self.folder_of], ENTRY)
        for folder, digests in ((CHUNKS, row), (STATUS, self.block_digest(k, row.tobytes()))):
            self._arrays[folder][k] = digests
            flush_chunk(self.place / folder / "c", k)

    def entry(self, k: int) -> int:
        """The entry of block k, 0 if the block is missing. Raises ModelError: it is damaged, or there is no store any more."""
        found = contents(self.place / STATUS / "c" / str(k))
        if found is None and not (self.place / COPY).exists():
            raise ModelError(f"store {str(self.place)!r} was removed after it was opened, so its numbers cannot be read")
        if found is None:
            return 0
        if isinstance(found, str):
            raise self.damage(k, STATUS, found)
        if len(found) != ENTRY.itemsize or not any(found):
            raise self.damage(k, STATUS, f"{len(found)} bytes that are no digest")
        return int.from_bytes(found, "little")

    def digests(self, k: int) -> np.ndarray | None:
        """(arrays,) the digests of the chunks of block k, None if the block is missing. Raises ModelError: they are damaged."""
        entry = self.entry(k)
        if not entry:
            return None
        row = contents(self.place / CHUNKS / "c" / str(k) / "0")
        if not isinstance(row, bytes):
            raise self.damage(k, CHUNKS, row or "absent")
        if len(row) != ENTRY.itemsize * len(self.folders) or self.block_digest(k, row) != entry:
            raise self.damage(k, CHUNKS, f"it and {STATUS!r} differ")
        return np.frombuffer(row, ENTRY)

    def entries(self) -> np.ndarray:
        """(blocks,) all entries. Raises ModelError: one is damaged."""
        found = np.zeros(self.count, np.uint64)
        for k in range(self.count):
            found[k] = self.entry(k) if self.digests(k) is not None else 0
        return found

    def block_digest(self, k: int, row: bytes) -> int:
        """Digest of block k from those of its chunks, never 0."""
        return _digest(sha256(f"{self.description.seal} {k}\n".encode() + row))

    def damage(self, k: int, folder: str, why: str) -> ModelError:
        """The error for a damaged chunk of block k."""
        metadata, runs = self.description.arrays[folder], self.runs_of(k)
        chunk = ".".join(map(str, [k, *[0] * (len(metadata["shape"]) - 1)]))
        name = metadata["attributes"].get(NAME, folder)
        way = (
            f"marks block {k} (runs {runs.start} to {runs.stop - 1}) as missing, and the same sweep computes it again, to the "
            "same bits; all other blocks stay"
        )
        return damage(self.place, f"array {name!r}, chunk {chunk}", why, way)

    def array(self, folder: str) -> StoredArray:
        """The array in a folder."""
        return StoredArray(self, folder)

    def forget(self, k: int) -> None:
        """Mark block k as missing. Raises OSError: that cannot be written."""
        for path in [f"{STATUS}/c/{k}", f"{CHUNKS}/c/{k}/0"]:
            clear(self.place, path)
            (self.place / path).unlink(missing_ok=True)
        for folder in self.folders:
            clear(self.place, self.chunk(k, folder))

    def chunk(self, k: int, folder: str) -> str:
        """The path of a chunk of block k in the store."""
        return "/".join([folder, "c", str(k), *["0"] * (len(self.description.arrays[folder]["shape"]) - 1)])

    def confirmed(self) -> bool:
        """Whether a stored block confirms the description."""
        return any(self._confirms(k) for k in sorted(self.stored()))

    def _confirms(self, k: int) -> bool:
        try:
            return self.digests(k) is not None
        except ModelError:
            return False


def chunk_digest(values: np.ndarray) -> int:
    """Digest of a chunk, never 0. All NaN count as one, since a chunk of NaN alone has no file that keeps their signs."""
    if values.dtype.kind == "f":
        values = np.where(np.isnan(values), np.nan, values)
    hashed = sha256(f"{values.dtype.str} {values.shape}\n".encode())
    hashed.update(np.ascontiguousarray(values).tobytes())
    return _digest(hashed)


def _digest(hashed: Any) -> int:
    """The first 64 bits of a sha256, never 0."""
    return int.from_bytes(hashed.digest()[: ENTRY.itemsize], "little") | 1


@dataclass(frozen=True)
class StoredArray:
    """An array over runs that is read block by block, each compared with its digest; all that Dask needs of an array.

    A missing block has the fill value.
    """

    blocks: StoredBlocks
    folder: str

    @cached_property
    def _array(self) -> Any:
        return need_zarr().open_array(self.blocks.place / self.folder, mode="r")

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.blocks.description.arrays[self.folder]["shape"])

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def dtype(self) -> np.dtype:
        return np.dtype(self.blocks.description.arrays[self.folder]["data_type"])

    def __getitem__(self, at: Any) -> np.ndarray:
        first, *rest = at if isinstance(at, tuple) else (at,)
        runs = range(self.shape[0])[first]
        if isinstance(runs, int):
            k, run = divmod(runs, self.blocks.size)
            return self.block(k)[(run, *rest)]
        if not runs:
            return np.empty((0, *self.shape[1:]), self.dtype)[(slice(0), *rest)]
        first, last = sorted((runs[0] // self.blocks.size, runs[-1] // self.blocks.size))
        values = np.concatenate([self.block(k) for k in range(first, last + 1)])
        return values[(np.arange(runs.start, runs.stop, runs.step) - first * self.blocks.size, *rest)]

    def block(self, k: int) -> np.ndarray:
        """Block k. Raises ModelError: it is damaged. Raises RunError: the system refuses to read it."""
        row, runs = self.blocks.digests(k), self.blocks.runs_of(k)
        if row is None:
            fill = np.nan if self.dtype.kind == "f" else -1
            return np.full((runs.stop - runs.start, *self.shape[1:]), fill, self.dtype)
        if is_endless(self.blocks.place / self.blocks.chunk(k, self.folder)):
            raise self.blocks.damage(k, self.folder, ENDLESS)
        try:
            values = np.asarray(self._array[runs])
        except PermissionError as error:
            raise RunError(f"cannot read block {k} of {str(self.blocks.place / self.folder)!r}: {error.strerror}") from error
        except Exception as error:  # a decoder of damaged bytes may raise anything
            raise self.blocks.damage(k, self.folder, f"it cannot be read ({type(error).__name__})") from error
        if chunk_digest(values) != row[self.blocks.folders.index(self.folder)]:
            raise self.blocks.damage(k, self.folder, f"it differs from its digest in {CHUNKS!r}")
        return values


def damaged_blocks(blocks: StoredBlocks) -> Iterator[int]:
    """The stored blocks with a damaged chunk, and those beyond the last one."""
    for k in sorted(blocks.stored()):
        try:
            for folder in blocks.folders:
                blocks.array(folder).block(k)
        except ModelError:
            yield k
