"""The files of an FMU: sources compiled for its platforms, and packed into an archive that is whole or absent."""

from __future__ import annotations

import importlib.util
import io
import os
import platform
import sys
import tempfile
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from pfaffian.errors import BuildError, install
from pfaffian.kernel.build import processes
from pfaffian.kernel.build.toolchain import FLAGS, MODES, TIMEOUT, Compiler, needed_compiler

EPOCH = (1980, 1, 1, 0, 0, 0)
"""Time of all files in an archive, so that the same machine gives the same bytes."""


class Platform(NamedTuple):
    """A platform.   two, three: its name in FMI 2.0 and 3.0.   target: its name for zig.   suffix: of libraries."""

    two: str
    three: str
    target: str
    suffix: str


PLATFORMS = {
    "linux64": Platform("linux64", "x86_64-linux", "x86_64-linux-gnu.2.17", ".so"),
    "win64": Platform("win64", "x86_64-windows", "x86_64-windows-gnu", ".dll"),
    "darwin64": Platform("darwin64", "x86_64-darwin", "x86_64-macos", ".dylib"),
}
"""Platforms for which an FMU can have a binary, all with the processors that every simulator may have."""

PROCESSORS = ("x86-64", "x86-64-v3")
"""Levels of processors: all of them, and those with AVX2, most since 2013."""

SOURCE_FLAGS = (*FLAGS, *MODES["strict"], "-fvisibility=hidden")
"""Flags with which an importer should compile the sources; the functions of FMI are the only symbols that a binary shows."""


def here() -> str | None:
    """The platform of this machine, None if it is none of these."""
    return "linux64" if sys.platform == "linux" and platform.machine() == "x86_64" else None


def compiler_for(name: str) -> Compiler:
    """The compiler for a platform: that of this machine for its own, else zig. Raises BuildError: there is none."""
    if name == here():
        return needed_compiler()
    if not importlib.util.find_spec("ziglang"):
        raise BuildError(f"fmu: a binary for {name} needs zig: {install('ziglang')}, or leave {name} out of platforms")
    return Compiler((sys.executable, "-m", "ziglang", "cc", "-target", PLATFORMS[name].target), "zig", "", "")


def compiled(units: Mapping[str, str], name: str, processor: str) -> bytes:
    """The stripped library of C texts by their names, for the platform of this name and a level of processors.

    Raises BuildError: no compiler can.
    """
    compiler = compiler_for(name)
    level = processor.replace("-", "_") if compiler.kind == "zig" else processor
    flags = (*compiler.flags("strict", level), "-fvisibility=hidden")
    with tempfile.TemporaryDirectory(prefix="pfaffian-fmu-") as folder:
        place = Path(folder)
        for file, text in units.items():
            (place / file).write_text(text, encoding="utf-8")
        environment = os.environ | {"LC_ALL": "C", "ZIG_LOCAL_CACHE_DIR": str(place / "zig"), "TMPDIR": folder}
        alone = [*compiler.argv, *(f for f in flags if f != "-shared"), "-c", "-o"]
        objects = [str(place / f"{file}.o") for file in units]
        target = place / f"binary{PLATFORMS[name].suffix}"
        maths = ["-lm"] if name == "linux64" else []
        for commands in (
            [[*alone, o, str(place / file)] for o, file in zip(objects, units, strict=True)],
            [[*compiler.argv, *flags, "-s", "-o", str(target), *objects, *maths]],
        ):
            processes.run(commands, TIMEOUT, environment=environment, hint="", activity="compiling an FMU")
        return target.read_bytes()


def packed(files: Sequence[tuple[str, bytes]]) -> bytes:
    """An archive with these files."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files:
            entry = zipfile.ZipInfo(name, EPOCH)
            entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
            archive.writestr(entry, data)
    return stream.getvalue()
