"""Find a C compiler, say exactly which one it is, and run it."""

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
from pfaffian.kernel.build import private_files, processes, store
from pfaffian.kernel.build.processor import processor
from pfaffian.kernel.text.units import units_of

TIMEOUT = 300.0  # seconds for one compilation
ANSWER = 60.0  # seconds for it to say what it is
FLAGS = ("-shared", "-fPIC", "-std=gnu11", "-w", "-fwrapv", "-fno-strict-aliasing", "-fno-math-errno",
         "-fno-trapping-math")  # fmt: skip
Mode = Literal["strict", "quick", "fast"]
# strict and quick keep a b + c two operations, as NumPy has them; gcc forms no fma at -O1, and without it -O1 compiles faster
# to the same speed. quick compiles in half the time to code that takes several times as long.
MODES: dict[Mode, tuple[str, ...]] = {
    "strict": ("-O1", "-ffp-contract=off"),
    "quick": ("-O0", "-ffp-contract=off"),
    "fast": ("-O2", "-ffp-contract=fast"),
}
NO_COMPILER = f"no C compiler found: install gcc or clang, or {install('ziglang')}, or set PFAFFIAN_CC to the path of one"


@dataclass(frozen=True)
class Compiler:
    """argv: how to start it. kind: gcc, clang or zig, by which the flags differ. identity: sha256 of what it is."""

    argv: tuple[str, ...]
    kind: str
    version: str
    identity: str

    def flags(self, mode: Mode) -> tuple[str, ...]:
        """Flags of one compilation."""
        native: tuple[str, ...] = ("-mcpu=native",) if self.kind == "zig" else (NATIVE,)
        # gcc 12's tuning for a processor with AVX-512 makes one lane slower by 7 %, and eight no faster.
        if self.kind == "gcc" and NATIVE == "-march=native":
            native += ("-mtune=generic",)
        quiet = ("-fno-sanitize=all",) if self.kind == "zig" else ()
        return FLAGS + native + quiet + MODES[mode]


NATIVE = "-march=native" if platform.machine().lower() in ("x86_64", "amd64", "i686") else "-mcpu=native"


def find_compiler() -> Compiler | None:
    """PFAFFIAN_CC if set, else gcc, clang, `python -m ziglang cc`, the first that answers; None without any."""
    wanted = os.environ.get("PFAFFIAN_CC", "")
    candidates = [wanted] if wanted else ["gcc", "clang", "zig"]
    for name in candidates:
        argv = _argv(name)
        compiler = _identify(argv, _stamp(argv)) if argv else None
        if compiler is not None:
            return compiler
    return None


def _argv(name: str) -> tuple[str, ...] | None:
    if name == "zig":
        return (sys.executable, "-m", "ziglang", "cc") if importlib.util.find_spec("ziglang") else None
    path = shutil.which(name)
    return (path,) if path else None


def _stamp(argv: tuple[str, ...]) -> str:
    """sha256 of the executable's path, size and time and of the processor: a change of any asks the compiler again."""
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
    """What the compiler is, from the note of an earlier process or from itself; None if it does not answer."""
    note = store.directory() / f"compiler-{stamp}.txt"
    with contextlib.suppress(OSError, ValueError):
        kind, version, identity = private_files.read(note).decode().split("\n")
        return Compiler(argv, kind, version, identity)
    try:
        said = _ask(*argv, "--version")
        kind = "zig" if "ziglang" in argv else "clang" if "clang" in said else "gcc"
        native = "-mcpu=native" if kind == "zig" else NATIVE
        macros = _ask(*argv, native, "-dM", "-E", "-x", "c", os.devnull)
    except BuildError:
        return None
    lines = "\n".join(sorted(macros.splitlines()))
    identity = hashlib.sha256(f"{said}\n{lines}".encode()).hexdigest()
    version = said.strip().split("\n")[0][:120]
    with contextlib.suppress(OSError):
        private_files.write(note, f"{kind}\n{version}\n{identity}")
    return Compiler(argv, kind, version, identity)


def compile_source(compiler: Compiler, source: Path, target: Path, mode: Mode) -> None:
    """Compile one file to a shared object, its units at once. BuildError with the end of what the compiler said."""
    units = units_of(source.read_text(encoding="utf-8"))
    flags = compiler.flags(mode)
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
        raise BuildError(f"{compiler.argv[0]} ended well but wrote no object; source kept at {source}")


def _compile(commands: list[list[str]], source: Path) -> None:
    """Run compilers at once; their own temporary files go beside the source."""
    own = {"LC_ALL": "C", "ZIG_LOCAL_CACHE_DIR": str(source.parent / "zig"), "TMPDIR": str(source.parent)}
    processes.run(commands, TIMEOUT, environment=os.environ | own, kept=f"; source kept at {source}", doing="compiling, once")


def _ask(*argv: str) -> str:
    """What a compiler says of itself."""
    (said,) = processes.run([argv], ANSWER, environment=os.environ | {"LC_ALL": "C"})
    return said.decode(errors="replace")
