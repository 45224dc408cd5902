"""The archive of an FMU: its names and sizes are checked before anything in it is read or unpacked."""

from __future__ import annotations

import stat
import struct
import zlib
from collections.abc import Sequence
from lzma import LZMAError
from pathlib import Path, PurePosixPath
from zipfile import BadZipFile, ZipFile, ZipInfo

from pfaffian.errors import ModelError
from pfaffian.formats.text.file import MAX_BYTES, decode
from pfaffian.formats.text.strict_number import printable

DESCRIPTION = "modelDescription.xml"

MOST_FILES, MOST_UNPACKED = 20_000, 2**31
"""Most files of an archive, and the most bytes that they may have when they are unpacked."""

DAMAGED = (BadZipFile, zlib.error, LZMAError, struct.error, NotImplementedError, EOFError, RuntimeError, ValueError)
"""What zipfile raises for an archive that is damaged or compressed in a way that it does not know."""

NEEDED = ("binaries/", "resources/")
"""Folders that an FMU needs when it runs."""


def described(path: Path) -> tuple[str, tuple[str, ...]]:
    """The text of modelDescription.xml of the FMU in a file, and the names of all its files.

    Raises ModelError: the file is no archive, one of its names leads out of it, it is too large, or it has no description.
    """
    where = printable(path.name)
    with _opened(path) as archive:
        entries = _checked(archive, where)
        found = next((entry for entry in entries if entry.filename == DESCRIPTION), None)
        if found is None:
            raise ModelError(
                f"{where}: this is a zip archive without {DESCRIPTION}, so no FMU; unpack it and read the model file in it"
            )
        if found.file_size > MAX_BYTES:
            raise ModelError(f"{where}: {DESCRIPTION} has {found.file_size} bytes; an FMU may have at most {MAX_BYTES}")
        return decode(_bytes(archive, found, where), f"{path.name}, {DESCRIPTION}"), tuple(e.filename for e in entries)


def unpack(path: Path, folder: Path) -> None:
    """Unpack the binaries and resources of the FMU in a file into a folder. Raises ModelError: see `described`."""
    where = printable(path.name)
    with _opened(path) as archive:
        for entry in _checked(archive, where):
            if entry.filename.startswith(NEEDED) and not entry.is_dir():
                target = folder.joinpath(*PurePosixPath(entry.filename).parts)
                data = _bytes(archive, entry, where)
                try:
                    target.parent.mkdir(parents=True, exist_ok=True)
                    target.write_bytes(data)
                except OSError as error:
                    raise ModelError(f"{where}: {printable(entry.filename)} cannot be unpacked: {error.strerror}") from None


def _opened(path: Path) -> ZipFile:
    """The archive. Raises ModelError: it cannot be read."""
    try:
        if stat.S_ISREG(path.stat().st_mode):  # reading from a pipe or a device could block or never end
            return ZipFile(path)
    except DAMAGED as error:
        raise ModelError(f"{printable(path.name)}: it is no zip archive, as FMUs are: {error}") from None
    except OSError as error:
        raise ModelError(f"{printable(path.name)}: the file cannot be read: {error.strerror}") from None
    raise ModelError(f"{printable(path.name)} is not a regular file; give the path of an FMU")


def _bytes(archive: ZipFile, entry: ZipInfo, where: str) -> bytes:
    """The bytes of an entry. Raises ModelError: it is damaged or compressed in a way that cannot be read."""
    try:
        return archive.read(entry)
    except (*DAMAGED, OSError) as error:
        raise ModelError(f"{where}: {printable(entry.filename)} cannot be unpacked: {error}") from None


def _checked(archive: ZipFile, where: str) -> Sequence[ZipInfo]:
    """The entries of an archive. Raises ModelError: names that lead out of it, links, encryption, too many or too large."""
    entries, names = archive.infolist(), set[str]()
    if len(entries) > MOST_FILES:
        raise ModelError(f"{where}: it has {len(entries)} files; an FMU may have at most {MOST_FILES}")
    if (size := sum(e.file_size for e in entries)) > MOST_UNPACKED:
        raise ModelError(f"{where}: its files have {size} bytes when unpacked; an FMU may have at most {MOST_UNPACKED}")
    for entry in entries:
        name, path = entry.filename, PurePosixPath(entry.filename)
        if path.is_absolute() or ".." in path.parts or not name.isprintable() or any(c in name for c in '\\:"*<>|?'):
            raise ModelError(f"{where}: the path {printable(name)} in it may lead out of the archive; nothing was unpacked")
        if stat.S_ISLNK(entry.external_attr >> 16):
            raise ModelError(f"{where}: {printable(name)} in it is a link; nothing was unpacked")
        if entry.flag_bits & 1:
            raise ModelError(f"{where}: {printable(name)} in it is encrypted; nothing was unpacked")
        if name in names:
            raise ModelError(f"{where}: {printable(name)} is in it twice; nothing was unpacked")
        names.add(name)
    return entries
