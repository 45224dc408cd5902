"""Exported laws, compiled as a user would compile them, and called through ctypes."""

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
    """Measure stacks by gcc, whatever compiles the library's own code: not every compiler reports them."""
    monkeypatch.setenv("PFAFFIAN_CC", gcc)


def run_written_test(gcc: str, folder: Path, name: str, *flags: str) -> subprocess.CompletedProcess:
    """Compile the exported test without a mathematical library and run it."""
    program = folder.resolve() / f"{name}-test"
    subprocess.run([gcc, *FLAGS, *flags, f"{name}.c", f"{name}_test.c", "-o", str(program)], cwd=folder, check=True)
    return subprocess.run([str(program)], capture_output=True, text=True)


def compiled_law(
    gcc: str, folder: Path, name: str, c: Controller, precision: str = "double", *flags: str
) -> Callable[[Mapping[str, np.ndarray]], tuple[dict[str, np.ndarray], int]]:
    """Compile an exported law: function of inputs by port that returns outputs by port and the status of NAME_step."""
    return law_of_library(compiled(gcc, folder, name, *flags), name, c, precision)


def compiled(gcc: str, folder: Path, name: str, *flags: str) -> Path:
    """Compile the exported law into a shared library."""
    library = folder.resolve() / f"{name}-{len(list(folder.glob('*.so')))}.so"
    subprocess.run([gcc, *FLAGS, *flags, "-shared", "-fPIC", f"{name}.c", "-o", str(library)], cwd=folder, check=True)
    return library


def law_of_library(
    library: Path, name: str, c: Controller, precision: str = "double"
) -> Callable[[Mapping[str, np.ndarray]], tuple[dict[str, np.ndarray], int]]:
    """Function of inputs by port, with a state of its own, that returns outputs by port and the status of NAME_step."""
    lib, real = ctypes.CDLL(str(library)), REAL[precision]

    def fields(ports):
        return [(p.name, real if p.name == "t" else real * len(p.entries)) for p in ports] or [("nothing", ctypes.c_char)]

    state_fields = [("d", real * len(c.state))] if c.state else []
    state_fields += [("wait", ctypes.c_uint32 * len(c.rates))] if c.counts else []
    layouts = {
        "In": fields([port for port, _ in c.inputs]),
        "State": state_fields or [("nothing", ctypes.c_char)],
        "Out": fields([*c.outputs, *([c.faults] if c.faults.entries else [])]),
    }
    In, State, Out = (type(n, (ctypes.Structure,), {"_fields_": f}) for n, f in layouts.items())
    (count,) = re.findall(rf"{{ \w+ x\[(\d+)\]; }} {name}_work;", (library.parent / f"{name}.h").read_text())
    state, work, out = State(), (real * int(count))(), Out()
    getattr(lib, f"{name}_init")(ctypes.byref(state))

    def step(inputs):
        given = In()
        for port, _ in c.inputs:
            x = np.atleast_1d(inputs[port.name]).tolist()
            setattr(given, port.name, x[0] if port.name == "t" else (real * len(x))(*x))
        ctypes.memset(work, 0xFF, ctypes.sizeof(work))  # NaN: a call must not use values of an earlier one
        status = getattr(lib, f"{name}_step")(*[ctypes.byref(x) for x in (given, state, work, out)])
        return {name: np.array(getattr(out, name)) for name, _ in layouts["Out"]}, status

    return step
