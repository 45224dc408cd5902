"""Exported laws, compiled as a stranger would and called through ctypes."""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pytest

from pfaffian.embedded.controller import Controller

FLAGS = ("-std=c99", "-pedantic", "-Wall", "-Wextra", "-Wconversion", "-Werror")
REAL = {"double": ctypes.c_double, "single": ctypes.c_float}


@pytest.fixture(scope="session")
def gcc() -> str:
    path = shutil.which("gcc")
    assert path, "these tests compile C: install gcc"
    return path


@pytest.fixture
def measuring(gcc: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The stack is measured by gcc, whatever compiles the library's own code: not every compiler tells it."""
    monkeypatch.setenv("PFAFFIAN_CC", gcc)


def said_by_test(gcc: str, folder: Path, name: str, *flags: str) -> subprocess.CompletedProcess:
    """The written test, compiled without a library of mathematics, and run."""
    program = folder.resolve() / f"{name}-test"
    subprocess.run([gcc, *FLAGS, *flags, f"{name}.c", f"{name}_test.c", "-o", str(program)], cwd=folder, check=True)
    return subprocess.run([str(program)], capture_output=True, text=True)


def bound(
    gcc: str, folder: Path, name: str, c: Controller, precision: str = "double", *flags: str
) -> Callable[[Mapping[str, np.ndarray]], tuple[dict[str, np.ndarray], int]]:
    """A function of the inputs by port that gives the outputs by port, and what NAME_step returned; with a state of its own."""
    return begun(compiled(gcc, folder, name, *flags), name, c, precision)


def compiled(gcc: str, folder: Path, name: str, *flags: str) -> Path:
    """A library of what was written."""
    library = folder.resolve() / f"{name}-{len(list(folder.glob('*.so')))}.so"
    subprocess.run([gcc, *FLAGS, *flags, "-shared", "-fPIC", f"{name}.c", "-o", str(library)], cwd=folder, check=True)
    return library


def begun(
    library: Path, name: str, c: Controller, precision: str = "double"
) -> Callable[[Mapping[str, np.ndarray]], tuple[dict[str, np.ndarray], int]]:
    """As `bound`, of a library that is compiled."""
    lib, real = ctypes.CDLL(str(library)), REAL[precision]

    def fields(ports):
        return [(p.name, real if p.name == "t" else real * len(p.entries)) for p in ports] or [("nothing", ctypes.c_char)]

    kept = [("d", real * len(c.state))] if c.state else []
    kept += [("wait", ctypes.c_uint32 * len(c.rates))] if c.counts else []
    made = {
        "In": fields([port for port, _ in c.inputs]),
        "State": kept or [("nothing", ctypes.c_char)],
        "Out": fields([*c.outputs, *([c.faults] if c.faults.entries else [])]),
    }
    In, State, Out = (type(n, (ctypes.Structure,), {"_fields_": f}) for n, f in made.items())
    (count,) = re.findall(rf"{{ \w+ x\[(\d+)\]; }} {name}_work;", (library.parent / f"{name}.h").read_text())
    state, work, out = State(), (real * int(count))(), Out()
    getattr(lib, f"{name}_init")(ctypes.byref(state))

    def step(inputs):
        given = In()
        for port, _ in c.inputs:
            x = np.atleast_1d(inputs[port.name]).tolist()
            setattr(given, port.name, x[0] if port.name == "t" else (real * len(x))(*x))
        ctypes.memset(work, 0xFF, ctypes.sizeof(work))  # not a number: nothing that a call computes with is from before
        status = getattr(lib, f"{name}_step")(*[ctypes.byref(x) for x in (given, state, work, out)])
        return {name: np.array(getattr(out, name)) for name, _ in made["Out"]}, status

    return step
