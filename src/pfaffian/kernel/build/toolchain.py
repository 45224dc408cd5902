"""The C compiler: finding it, identifying it exactly, and running it."""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import os
import platform
import shutil
import sys
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Literal

from pfaffian.errors import BuildError, install
from pfaffian.kernel.build import object_store as store
from pfaffian.kernel.build import private_files, processes
from pfaffian.kernel.build.processor import processor
from pfaffian.kernel.text.units import units_of

TIMEOUT = 300.0  # seconds for one compilation
ANSWER = 60.0  # seconds for the compiler's answer to --version
FLAGS = ("-shared", "-fPIC", "-std=gnu11", "-w", "-fwrapv", "-fno-strict-aliasing", "-fno-math-errno",
         "-fno-trapping-math")  # fmt: skip
BuildMode = Literal["strict", "interpreter", "passes", "fast", "pictures"]
# All modes but fast and pictures compute a b + c by two operations, as NumPy does. A first run waits for the interpreter and
# the passes: -O2 with unrolled loops would compile the interpreter in twice the time and make it 7 % faster, and any
# optimisation of the passes takes longer than they need for a million operations.
MODES: dict[BuildMode, tuple[str, ...]] = {
    "strict": ("-O1", "-ffp-contract=off"),
    "interpreter": ("-Og", "-ffp-contract=off"),
    "passes": ("-O0", "-ffp-contract=off"),
    "fast": ("-O2", "-ffp-contract=fast"),
    "pictures": ("-O3", "-ffp-contract=fast"),
}
# Flags of gcc for long blocks of arithmetic: instructions are scheduled before registers are assigned, and are not paired in
# short vectors, which makes one lane 40 % slower. The code is 4 to 10 % faster than with -O1 alone and takes 40 % longer to
# compile, in the background. Without AVX, which not all processors of a level have, it is no faster than with -O1 alone.
SCHEDULED = ("-O2", "-fschedule-insns", "-fsched-pressure", "-fno-schedule-insns2", "-fno-tree-vectorize",
             "-fno-tree-slp-vectorize")  # fmt: skip
NO_COMPILER = f"no C compiler found: install gcc or clang, or {install('ziglang')}, or set PFAFFIAN_CC to the path of one"


@dataclass(frozen=True)
class Compiler:
    """A C compiler.   argv: command that starts it.   kind: gcc, clang or zig, whose flags differ.   version: the first line
    of its answer to --version.   identity: sha256 of its version and predefined macros."""

    argv: tuple[str, ...]
    kind: str
    version: str
    identity: str

    def flags(self, mode: BuildMode, level: str | None = None) -> tuple[str, ...]:
        """Flags of one compilation, for this processor or, with a level of `carried`, for all processors of that level."""
        native: tuple[str, ...] = ("-mcpu=native",) if self.kind == "zig" else (NATIVE,)
        if level is not None:
            native = (f"-march={level}",)
        # gcc 12's tuning for processors with AVX-512 makes one lane 7 % slower, and eight lanes no faster.
        if self.kind == "gcc" and NATIVE == "-march=native":
            native += ("-mtune=generic",)
        # zig writes the path of the text into an object, which would then differ each time it is compiled.
        quiet = ("-fno-sanitize=all", "-g0") if self.kind == "zig" else ()
        scheduled = SCHEDULED if self.kind == "gcc" and mode in ("strict", "fast") and level is None else ()
        return FLAGS + native + quiet + MODES[mode] + scheduled


NATIVE = "-march=native" if platform.machine().lower() in ("x86_64", "amd64", "i686") else "-mcpu=native"


def find_compiler() -> Compiler | None:
    """PFAFFIAN_CC if set, else the first of gcc, clang and `python -m ziglang cc` that answers; None if there is none."""
    requested = os.environ.get("PFAFFIAN_CC", "")
    candidates = [requested] if requested else ["gcc", "clang", "zig"]
    for name in candidates:
        argv = _argv(name)
        compiler = _identify(argv, _stamp(argv)) if argv else None
        if compiler is not None:
            return compiler
    return None


def needed_compiler() -> Compiler:
    """The compiler of `find_compiler`. Raises BuildError: there is none."""
    compiler = find_compiler()
    if compiler is None:
        raise BuildError(NO_COMPILER)
    return compiler


def _argv(name: str) -> tuple[str, ...] | None:
    """The command that starts a compiler; None if it is not installed."""
    if name == "zig":
        return (sys.executable, "-m", "ziglang", "cc") if importlib.util.find_spec("ziglang") else None
    path = shutil.which(name)
    return (path,) if path else None


def _stamp(argv: tuple[str, ...]) -> str:
    """sha256 of path, size and time of the executable and of the processor: if it changes, the compiler is identified anew."""
    path = Path(argv[0]).resolve()
    if "ziglang" in argv:
        spec = importlib.util.find_spec("ziglang")
        folder = Path(spec.origin).parent if spec and spec.origin else path.parent
        path = next((p for p in (folder / "zig", folder / "zig.exe") if p.is_file()), path)
    status = path.stat()
    what = argv, str(path), status.st_size, status.st_mtime_ns, processor()
    return hashlib.sha256(repr(what).encode()).hexdigest()


@lru_cache(maxsize=16)
def _identify(argv: tuple[str, ...], stamp: str) -> Compiler | None:
    """The Compiler, from the note of an earlier process or from the compiler's answers; None if it does not answer."""
    note = store.directory() / f"compiler-{stamp}.txt"
    with contextlib.suppress(OSError, ValueError):
        kind, version, identity = private_files.read(note).decode().split("\n")
        return Compiler(argv, kind, version, identity)
    try:
        answer = _ask(*argv, "--version")
        kind = "zig" if "ziglang" in argv else "clang" if "clang" in answer else "gcc"
        native = "-mcpu=native" if kind == "zig" else NATIVE
        macros = _ask(*argv, native, "-dM", "-E", "-x", "c", os.devnull)
    except BuildError:
        return None
    lines = "\n".join(sorted(macros.splitlines()))
    identity = hashlib.sha256(f"{answer}\n{lines}".encode()).hexdigest()
    version = answer.strip().split("\n")[0][:120]
    with contextlib.suppress(OSError):
        private_files.write(note, f"{kind}\n{version}\n{identity}".encode())
    return Compiler(argv, kind, version, identity)


def compile_source(compiler: Compiler, source: Path, target: Path, mode: BuildMode, level: str | None = None) -> None:
    """Compile a C file to a shared object, its units in parallel.

    Raises BuildError: with the end of the compiler's messages and the path of the source.
    """
    units = units_of(source.read_text(encoding="utf-8"))
    flags = compiler.flags(mode, level)
    link = [*compiler.argv, *flags, "-o", str(target)]
    if len(units) == 1:
        _compile([[*link, str(source), "-lm"]], source)
    else:
        places = [source.with_name(f"unit{k}.c") for k in range(len(units))]
        for place, text in zip(places, units, strict=True):
            place.write_text(text, encoding="utf-8")
        objects = [str(place.with_suffix(".o")) for place in places]
        alone = [*compiler.argv, *(f for f in flags if f != "-shared"), "-DUNIT", "-c"]
        _compile([[*alone, "-o", o, str(place)] for o, place in zip(objects, places, strict=True)], source)
        _compile([[*link, *objects, "-lm"]], source)
    if not target.is_file() or target.stat().st_size == 0:
        raise BuildError(f"{compiler.argv[0]} reported success but wrote no object; source kept at {source}")


def _compile(commands: list[list[str]], source: Path) -> None:
    """Run several compiler commands in parallel, with their temporary files in the folder of the source."""
    settings = {"LC_ALL": "C", "ZIG_LOCAL_CACHE_DIR": str(source.parent / "zig"), "TMPDIR": str(source.parent)}
    hint = f"; source kept at {source}"
    processes.run(commands, TIMEOUT, environment=os.environ | settings, hint=hint, activity="compiling, once")


def _ask(*argv: str) -> str:
    """Standard output of a compiler that is asked about itself."""
    (answer,) = processes.run([argv], ANSWER, environment=os.environ | {"LC_ALL": "C"})
    return answer.decode(errors="replace")
