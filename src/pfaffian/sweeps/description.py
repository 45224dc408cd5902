"""The description of a store: all its files except those of blocks of runs, and a copy of their bytes within the store.

The copy is in the attributes of the Zarr group `description`. It gets its name at once and only if there is none, so that the
first one of several workers determines the store; the files are then written from it. A file that differs from the copy is
damaged, and is written again from it. The sha256 of the copy, its seal, enters the digest of every block (`sweeps/blocks.py`):
a block of another store is no block of this one, and where the copy itself is damaged a block confirms the files.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any
from uuid import uuid4

from pfaffian.errors import ModelError, RunError

LAYOUT = 2
"""Number of the layout of a store; that of 1 had no description."""

IDENTITY = "sweep"
"""The attribute of a store that identifies its sweep."""

NAME = "name"
"""The attribute of an array with the name of its variable, where this differs from the name of its folder."""

METADATA = "zarr.json"
"""The file of a Zarr group or array that describes it."""

COPY = Path("description", METADATA)
"""The file with the copy."""

PARTIAL, ASIDE = re.compile(r".+\.[0-9a-f]{32}\.partial"), re.compile(r"\.[0-9a-f]{32}\.partial")
"""Names of files that are being written, by Zarr or by `put`, and of the folder of a copy that has no name yet."""

OLD = 3600.0
"""Age [s] of a temporary file from which no process can still be writing it."""


@dataclass(frozen=True)
class Description:
    """The files of a store that do not change.   place: folder of the store.   files: path within it -> bytes."""

    place: Path
    files: Mapping[str, bytes]

    @cached_property
    def text(self) -> str:
        """The files as text."""
        return json.dumps({path: data.decode("latin-1") for path, data in sorted(self.files.items())})

    @cached_property
    def seal(self) -> str:
        """sha256 of the text."""
        return sha256(self.text.encode()).hexdigest()

    @cached_property
    def copy(self) -> bytes:
        """The bytes of the copy."""
        attributes = {"meaning": "all files of the store except blocks of runs", "sha256": self.seal, "files": self.text}
        return json.dumps({"zarr_format": 3, "node_type": "group", "attributes": attributes}, indent=1).encode()

    @cached_property
    def attributes(self) -> dict[str, Any]:
        """The attributes of the store."""
        return json.loads(self.files[METADATA])["attributes"]

    @cached_property
    def identity(self) -> dict[str, Any]:
        """The identity of the sweep."""
        return json.loads(self.attributes[IDENTITY])

    @cached_property
    def arrays(self) -> dict[str, dict[str, Any]]:
        """Folder of each array -> its metadata."""
        folders = {
            path.removesuffix(f"/{METADATA}"): data for path, data in self.files.items() if path.endswith(f"/{METADATA}")
        }
        return {folder: json.loads(data) for folder, data in folders.items()}

    def file(self, path: str) -> str:
        """The file `path` in words: the array to which it belongs, and its chunk."""
        folder, _, rest = path.partition("/")
        if not rest:
            return "its metadata"
        name = self.arrays[folder]["attributes"].get(NAME, folder)
        return f"array {name!r}, " + (
            "its metadata" if rest == METADATA else f"chunk {rest.removeprefix('c/').replace('/', '.')}"
        )

    def damaged(self) -> Iterator[tuple[str, str]]:
        """Each file that differs from the copy: its path, and what is wrong."""
        for path, data in self.files.items():
            if (found := contents(self.place / path)) != data:
                yield path, "absent" if found is None else found if isinstance(found, str) else "not what was written"


def contents(path: Path) -> bytes | str | None:
    """The bytes of a file, None if there is none, or a text that says why it is no file.

    Raises RunError: the system refuses to read it, which is no damage.
    """
    if leads_nowhere(path):
        return "a link that leads nowhere"
    if is_endless(path):
        return ENDLESS
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except NotADirectoryError:
        return "not in a folder"
    except IsADirectoryError:
        return "a folder"
    except OSError as error:
        raise RunError(f"cannot read {str(path)!r}: {error.strerror or error}") from error


ENDLESS = "a pipe or a device"


def is_endless(path: Path) -> bool:
    """Whether this is a pipe or a device, the reading of which may have no end."""
    return path.exists() and not path.is_file() and not path.is_dir()


def leads_nowhere(path: Path) -> bool:
    """Whether this is a link to itself, or to what is not there."""
    return path.is_symlink() and not path.exists()


def copied(place: Path) -> Description | None:
    """The copy in a store, None if it is absent or damaged."""
    data = contents(place / COPY)
    with contextlib.suppress(ValueError, KeyError, TypeError, AttributeError):
        text = json.loads(data)["attributes"]["files"]  # type: ignore[arg-type]  # a TypeError where there is no file
        found = Description(place, {path: x.encode("latin-1") for path, x in json.loads(text).items()})
        if found.copy == data:
            return found
    return None


def stored_identity(place: Path) -> dict[str, Any]:
    """The identity that a store contains; empty if there is none."""
    found = copied(place)
    return found.identity if found else {}


def described(place: Path) -> Description:
    """The description of a store, whose files are those of the copy.

    Raises ModelError: the folder is not a store; it has another layout; a file is damaged, which the message names.
    """
    empty, found = is_empty(place), copied(place)
    if found is None:
        refuse_others(place)
        raise damage(
            place, "its description", f"{COPY.as_posix()!r} is not what was written", "writes it again from the other files"
        )
    for path, why in found.damaged():
        if why == "absent" and empty:
            continue  # another process is writing the files, or was killed before it had
        raise damage(place, found.file(path), why, "writes it again")
    return found


def damage(place: Path, what: str, why: str, way: str) -> ModelError:
    """The error for damage.   what: array and chunk.   why: what is wrong with it.   way: what `damaged` does about it."""
    return ModelError(f"store {str(place)!r}: {what}: {why}, so the store is damaged: pf.sweeps.damaged({str(place)!r}) {way}")


def refuse_others(place: Path) -> None:
    """Raise ModelError: the folder is not a store, or one of an earlier layout."""
    try:
        attributes = json.loads(contents(place / METADATA) or "")["attributes"]
        layout = attributes.get("layout", 1) if isinstance(json.loads(attributes[IDENTITY]), dict) else 0
    except (ValueError, KeyError, TypeError, AttributeError):
        layout = LAYOUT if (place / COPY.parent).exists() and (place / "space").exists() else 0
    if layout == 0:
        raise ModelError(f"{str(place)!r} is not the store of a sweep; choose another name, or remove it")
    if layout != LAYOUT:
        raise ModelError(
            f"{str(place)!r} is the store of a sweep in another layout ({layout} there, {LAYOUT} here), written by another "
            "version of the library: read it with that version, or by xarray.open_zarr; sweep into another store"
        )


def is_empty(place: Path) -> bool:
    """Whether no block is stored."""
    try:
        return not os.listdir(place / "block_digest" / "c")
    except OSError as error:
        return isinstance(error, FileNotFoundError)


def is_unused(place: Path) -> bool:
    """Whether a folder is absent, or contains nothing but what workers killed before they named the description left."""
    return not place.exists() or (place.is_dir() and all(ASIDE.fullmatch(name) for name in os.listdir(place)))


def publish(description: Description) -> None:
    """Write the copy of a description, unless there is one. Raises OSError: it cannot be written, and nothing is left."""
    place = description.place
    aside = place / f".{uuid4().hex}.partial"
    aside.mkdir(parents=True)
    try:
        put(aside / COPY.name, description.copy)
        aside.rename(place / COPY.parent)
        flush(place)
    except OSError:
        if not (place / COPY).exists():
            raise
    finally:
        shutil.rmtree(aside, ignore_errors=True)
        with contextlib.suppress(OSError):  # it is not empty
            place.rmdir()


def expand(description: Description, paths: list[str]) -> None:
    """Write files from the copy. Raises OSError: one cannot be written."""
    for path in paths:
        clear(description.place, path)
        put(description.place / path, description.files[path])


def put(path: Path, data: bytes) -> None:
    """Write a file, which gets its name when all of it is on the disk. Raises OSError: it cannot be written."""
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_name(f"{path.name}.{uuid4().hex}.partial")
    try:
        with aside.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(aside, path)
    finally:
        aside.unlink(missing_ok=True)


def flush(path: Path) -> None:
    """Flush a file or folder to the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def flush_chunk(folder: Path, k: int) -> None:
    """Flush the files of chunk k in a folder of chunks to the disk, and the folders in which they are, if there are any."""
    chunk = folder / str(k)
    for path in (*(chunk.rglob("*") if chunk.is_dir() else ()), chunk, folder):
        if path.exists():
            flush(path)


def clear(place: Path, path: str) -> None:
    """Make way for a file of the store: remove a folder or link in its place, and what is no folder in that of its folders."""
    for parent in (place / x for x in reversed(Path(path).parents)):
        if parent.is_file() or leads_nowhere(parent) or is_endless(parent):
            parent.unlink()
    if (place / path).is_symlink() or is_endless(place / path):
        (place / path).unlink()
    elif (place / path).is_dir():
        shutil.rmtree(place / path)


def tidy(place: Path) -> None:
    """Remove temporary files that processes left behind when they were killed, once they are older than OLD."""
    for path in place.glob("**/*.partial"):
        ours = ASIDE.fullmatch(path.name) if path.is_dir() else PARTIAL.fullmatch(path.name)
        try:
            if ours and time.time() - path.stat().st_mtime > OLD:
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        except OSError:
            continue
