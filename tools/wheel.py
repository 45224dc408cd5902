"""Build a binary wheel for this system, with the interpreter and the passes compiled for several processor levels.

python -m tools.wheel [FOLDER] [--level x86-64-v3 ...]    # writes pfaffian-...-py3-none-linux_x86_64.whl, into dist by default

With this wheel, runs start without a compiler, and with a compiler 1.5 s earlier (`kernel/build/prebuilt.py`). All other wheels
and the source distribution are built by `python -m build` as usual. The wheel is built from a copy, so that the checkout does
not change; it needs gcc or clang and no network. The objects need the C library of the build machine or a later one: to
distribute the wheel, build it in a manylinux container.
"""

from __future__ import annotations

import argparse
import platform
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Sequence
from pathlib import Path

from pfaffian.errors import BuildError
from pfaffian.kernel.build.prebuilt import LEVELS, file_name
from pfaffian.kernel.build.toolchain import NO_COMPILER, BuildMode, Compiler, compile_source, find_compiler
from pfaffian.kernel.text.interpreter_source import functions_source, interpreter_text
from pfaffian.kernel.text.passes_source import passes_text

ROOT = Path(__file__).resolve().parents[1]
PARTS = ("src", "studies", "examples", "docs", "pyproject.toml", "setup.py", "README.md", "LICENSE")


def main(arguments: Sequence[str] | None = None) -> None:
    every = tuple(LEVELS.get(platform.machine(), ()))
    parser = argparse.ArgumentParser(prog="python -m tools.wheel", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("folder", nargs="?", default=ROOT / "dist", type=Path)
    parser.add_argument("--level", action="append", choices=every, help="all of this architecture if not given")
    given = parser.parse_args(arguments)
    print(build(given.folder.resolve(), given.level or every))


def build(folder: Path, levels: Sequence[str]) -> Path:
    """Write the wheel with objects for these levels, and return its path. Raises BuildError: no gcc or clang, or it fails."""
    compiler = find_compiler()
    if compiler is None or compiler.kind == "zig":
        raise BuildError(NO_COMPILER if compiler is None else "zig compiles for this processor only: install gcc or clang")
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        for part in PARTS:
            if (ROOT / part).is_dir():
                shutil.copytree(ROOT / part, place / part, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
            else:
                shutil.copy(ROOT / part, place)
        compile_all(compiler, place / "src/pfaffian/kernel/carried", levels)
        system = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        (place / "setup.cfg").write_text(f"[bdist_wheel]\nplat_name = {system}\n")
        made = place / "made"
        options = ("--no-build-isolation", "--no-deps", "--no-index", "--disable-pip-version-check", "-w", str(made))
        subprocess.run([sys.executable, "-m", "pip", "wheel", "-q", *options, name], check=True)
        (wheel,) = made.glob("*.whl")
        folder.mkdir(parents=True, exist_ok=True)
        return Path(shutil.move(wheel, folder / wheel.name))


def compile_all(compiler: Compiler, folder: Path, levels: Sequence[str]) -> None:
    """Write the objects of the interpreter and its functions, with one and eight lanes, and of the passes, for these levels."""
    folder.mkdir(parents=True)
    texts = [text for lanes in (1, 8) for text in (interpreter_text(lanes), functions_source(lanes).text)]
    modes: list[tuple[str, BuildMode]] = [(text, "interpreter") for text in texts]
    for text, mode in [*modes, (passes_text(), "passes")]:
        with tempfile.TemporaryDirectory() as name:
            source = Path(name) / "kernel.c"
            source.write_text(text, encoding="utf-8")
            for level in levels:
                compile_source(compiler, source, folder / file_name(text, mode, level), mode, level)


if __name__ == "__main__":
    main()
