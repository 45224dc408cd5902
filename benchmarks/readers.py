"""Time that readers take: public robots, beside another checkout of the library if one is given, and chains of each format.

The robots are the URDF and SDF files of the package example-robot-data, and of the folder `--files`. With `--beside DIR` each
file is read in turn by this library and by the one of that checkout, in a process for each; both have read other files before.
All times are processor times. A chain of 10^4 links is read once, in a fresh process, whose peak memory is noted.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import IO

import pfaffian as pf
from benchmarks.long_files import WRITERS
from benchmarks.result import Comparison, Goal, Missing, Timing
from benchmarks.robots import URDF
from benchmarks.timing import Options

ROOT = Path(__file__).parents[1]
NOT_SLOWER = Goal("ratio", ">=", 1.0)
LINKS, SECONDS, GIGABYTES = 10_000, 10.0, 1.0
PACKAGE = "example-robot-data"
SUFFIXES = (".urdf", ".sdf")


class Reader:
    """A process that reads files with the library of a checkout."""

    def __init__(self, tree: Path) -> None:
        paths = os.pathsep.join([str(tree / "src"), str(ROOT)])
        environment = os.environ | {"PYTHONPATH": paths}
        command = [sys.executable, "-m", "benchmarks.read_files"]
        self.process = subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __enter__(self) -> Reader:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.communicate()

    def read(self, path: Path) -> dict[str, float]:
        """Processor time [ns] and peak memory of the process [bytes]; {}: it does not open."""
        asked = _open(self.process.stdin)
        asked.write(f"{path}\n")
        asked.flush()
        return json.loads(_open(self.process.stdout).readline())


def _open(pipe: IO[str] | None) -> IO[str]:
    assert pipe is not None
    return pipe


def public(o: Options) -> list[Path]:
    """The robots, by name."""
    try:
        root = pf.formats.installed(PACKAGE, URDF["panda"], "benchmarks").parents[2]
    except pf.ModelError as error:
        raise Missing(str(error)) from None
    if o.quick:
        return [root / URDF["panda"]]
    folders = [root, *filter(None, [o.files])]
    return sorted(p for folder in folders for p in folder.rglob("*") if p.suffix in SUFFIXES)


def run(o: Options) -> Iterator[Comparison]:
    trees = {"": ROOT} | ({str(o.beside): o.beside} if o.beside else {})
    with ExitStack() as stack:
        readers = {name: stack.enter_context(Reader(tree)) for name, tree in trees.items()}
        for path in public(o):
            yield from _compared(path, readers, o)
    for name in WRITERS:
        yield _chain(name, 40 if o.quick else LINKS)


def _compared(path: Path, readers: dict[str, Reader], o: Options) -> Iterator[Comparison]:
    """The row of a file that this library reads; without a peer if the other does not."""
    found = {name: [reader.read(path)] for name, reader in readers.items()}  # not counted: imports, what is made once
    for _ in range(1 if o.quick else o.repeat):
        for name, reader in readers.items():
            found[name].append(reader.read(path))
    timings = {name: Timing(name, tuple(x["time"] for x in f[1:])) for name, f in found.items() if f[0]}
    if "" in timings:
        peer = timings.get(str(o.beside))
        yield Comparison("/".join(path.parts[-3:]), "a file", timings[""], peer, NOT_SLOWER if peer else None)


def _chain(name: str, links: int) -> Comparison:
    with tempfile.TemporaryDirectory() as folder, Reader(ROOT) as reader:
        path = Path(folder, f"chain.{name}")
        path.write_text(WRITERS[name](links), encoding="utf-8")
        found = reader.read(path)
    memory = found["memory"] / 1e9
    notes = {"peak memory in GB": memory, "seconds or GB beyond": max(found["time"] / 1e9 / SECONDS, memory / GIGABYTES)}
    goal = Goal("seconds or GB beyond", "<=", 1.0)
    return Comparison(f"a chain of {links} links, {name}", "a file", Timing("", (found["time"],)), None, goal, notes)
