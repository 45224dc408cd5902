"""Compare all files of a format below some folders: python -m tools.compare_files FORMAT FOLDER...

    mjcf    MuJoCo: accelerations, free and with exact constraints
    usd     usd-core's mass properties; Newton's importer, if it is installed: joints, forces, limits, mass matrices
    sdf     Drake, if it is installed
    urdf    Pinocchio, MuJoCo, and Drake if it is installed
    osim    OpenSim, if it is installed

Drake, Newton and OpenSim are in no extra: pip install drake newton newton-usd-schemas opensim.

python -m tools.compare_files rows sdf|usd compares each row of the tables in tests/data that is read.

Prints a row for each file with the differences, their causes where these are known, what the reader left out, and totals. Each
file has two minutes of processor time, in a process of its own.
"""

from __future__ import annotations

import multiprocessing as mp
import resource
import signal
import sys
from collections import Counter
from contextlib import suppress
from importlib import import_module
from multiprocessing.connection import Connection
from pathlib import Path

from tools.compare_files import rows
from tools.compare_files.report import Row

ENGINES = {
    "mjcf": ("mujoco",),
    "usd": ("newton", "pxr.UsdPhysics"),
    "sdf": ("pydrake.all",),
    "urdf": ("pinocchio", "mujoco", "pydrake.all"),
    "osim": (),
}
"""Format -> packages of its engines; OpenSim runs in a process of its own."""

LIMIT = 120
"""Processor time for one file [s]."""


def _answer(name: str, path: Path, seconds: int, pipe: Connection) -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
    try:
        pipe.send(import_module(f"tools.compare_files.{name}").examine(path))
    except Exception as error:  # a fault of this tool is a row as well
        pipe.send(Row(error=f"this tool failed: {type(error).__name__}: {error}"[:300]))


def within_limit(name: str, path: Path, seconds: int = LIMIT) -> Row:
    """The row of a file, from a separate process, which may be slow or fail."""
    here, there = mp.Pipe(duplex=False)
    child = mp.get_context("fork").Process(target=_answer, args=(name, path, seconds, there))
    child.start()
    there.close()
    try:
        return here.recv()
    except EOFError:
        child.join()
        slow = child.exitcode == -signal.SIGXCPU
        return Row(error=f"it takes more than {seconds} s of processor" if slow else "an engine ended the process")
    finally:
        child.kill()
        child.join()


def main(words: list[str]) -> int:
    """Print the table and its totals; 2 for a wrong call."""
    if words[:1] == ["rows"] and len(words) == 2 and words[1] in rows.TEXTS:
        return rows.main(words[1])
    if len(words) < 2 or words[0] not in ENGINES:
        print(__doc__)
        return 2
    name, folders = words[0], [Path(w) for w in words[1:]]
    suffixes = import_module(f"tools.compare_files.{name}").SUFFIXES
    for package in ENGINES[name]:  # once for the processes of all files
        with suppress(ImportError):
            import_module(package)
    count, reasons = Counter[str](), Counter[str]()
    for path in sorted(p for folder in folders for p in folder.rglob("*") if p.suffix in suffixes):
        row = within_limit(name, path)
        count[row.outcome] += 1
        if row.refused:
            reasons["; ".join(filter(None, (row.refused.split("; ")[0].split(": ", 1)[-1][:90], row.note)))] += 1
        print(f"{str(path)[-64:]:64s} nv {row.nv:4d} {row.numbers} {row.outcome}: {row.why[:300]}", flush=True)
    print(f"\n{count.total()} files: " + ", ".join(f"{n} {what}" for what, n in count.most_common()))
    print("\n".join(f"{n:5d} do not open: {why}" for why, n in reasons.most_common()))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
