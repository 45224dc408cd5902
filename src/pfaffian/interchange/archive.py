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
from pfaffian.kernel.build.toolchain import FLAGS, MODES, TIMEOUT, needed_compiler

EPOCH = (1980, 1, 1, 0, 0, 0)
"""Time of all files in an archive, so that the same machine gives the same bytes."""


class Platform(NamedTuple):
    """A platform.   two, three: its name in FMI 2.0 and 3.0.   target: its name for zig.   suffix: of libraries.
    flags: of the compiler."""

    two: str
    three: str
    target: str
    suffix: str
    flags: tuple[str, ...]


PLATFORMS = {
    "linux64": Platform("linux64", "x86_64-linux", "x86_64-linux-gnu.2.17", ".so", ("-march=x86-64",)),
    "win64": Platform("win64", "x86_64-windows", "x86_64-windows-gnu", ".dll", ("-march=x86_64",)),
    "darwin64": Platform("darwin64", "x86_64-darwin", "x86_64-macos", ".dylib", ("-march=x86_64",)),
}
"""Platforms for which an FMU can have a binary."""


def here() -> str | None:
    """The platform of this machine, None if it is none of these."""
    known = sys.platform == "linux" and platform.machine() in ("x86_64", "AMD64")
    return "linux64" if known else None


def flags_of(of: Platform) -> tuple[str, ...]:
    """Flags for all compilers; the functions of FMI are the only symbols that a binary shows."""
    return (*FLAGS, *MODES["strict"], *of.flags, "-fvisibility=hidden")


def compiled(units: Mapping[str, str], name: str, needs_zig: bool) -> bytes:
    """The stripped library of C texts by their names, for the platform of this name. Raises BuildError: no compiler can."""
    of = PLATFORMS[name]
    cross = needs_zig or name != here()
    if cross and not importlib.util.find_spec("ziglang"):
        raise BuildError(f"fmu: a binary for {name} needs zig: {install('ziglang')}, or leave {name} out of platforms")
    argv = (sys.executable, "-m", "ziglang", "cc", "-target", of.target) if cross else needed_compiler().argv
    quiet = ("-fno-sanitize=all", "-g0") if cross or "ziglang" in argv else ()
    flags = tuple(f.replace("x86-64", "x86_64") if quiet else f for f in flags_of(of))
    with tempfile.TemporaryDirectory(prefix="pfaffian-fmu-") as folder:
        place = Path(folder)
        for file, text in units.items():
            (place / file).write_text(text, encoding="utf-8")
        environment = os.environ | {"LC_ALL": "C", "ZIG_LOCAL_CACHE_DIR": str(place / "zig"), "TMPDIR": folder}
        alone = [f for f in flags if f != "-shared"]
        objects = [str(place / f"{file}.o") for file in units]
        each = [[*argv, *alone, *quiet, "-c", "-o", o, str(place / file)] for o, file in zip(objects, units, strict=True)]
        target = place / f"binary{of.suffix}"
        link = [*argv, *flags, *quiet, "-s", "-o", str(target), *objects, *(["-lm"] if name == "linux64" else [])]
        for commands in (each, [link]):
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
