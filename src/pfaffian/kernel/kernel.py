"""compile(function) -> Kernel, a function of arrays that runs over a batch in compiled code."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import casadi as ca
import numpy as np

from pfaffian.errors import BuildError, ModelError
from pfaffian.kernel import memory
from pfaffian.kernel.build import load_or_none
from pfaffian.kernel.interpret import evaluate
from pfaffian.kernel.passes import optimise
from pfaffian.kernel.program import Program
from pfaffian.kernel.text import kernel_source
from pfaffian.kernel.trace import trace

Backend = Literal["auto", "c", "numpy"]
TOLERANCE = 1e-6  # of the trial run when strict=False, where contraction may round otherwise


def compile(  # noqa: A001
    function: ca.Function, *, backend: Backend = "auto", lanes: int = 8, strict: bool = True
) -> Kernel:
    """Compile a casadi.Function of SX.

    Args:
        backend: "c" compiled or BuildError, "numpy" interpreted, "auto" compiled if a compiler works.
        lanes: runs that are computed at once, 8 or 1.
        strict: the same bits on every backend; False lets the compiler contract a b + c (20-30 % faster).
    """
    check_options(backend, lanes)
    return from_program(optimise(trace(function)), backend=backend, lanes=lanes, strict=strict)


def check_options(backend: str, lanes: int) -> None:
    if backend not in ("auto", "c", "numpy"):
        raise BuildError(f"backend {backend!r}: choose auto, c or numpy")
    if lanes not in (1, 8):
        raise BuildError(f"lanes={lanes}: choose 8 or 1")


def from_program(program: Program, *, backend: Backend = "auto", lanes: int = 8, strict: bool = True) -> Kernel:
    """Kernel of a Program as it is, no passes."""
    source = kernel_source(program, lanes)
    doubles = lanes * (program.n_in + program.n_out + source.slots)
    loaded = None
    if backend != "numpy":
        loaded = load_or_none(source.text, strict, lambda lib: _agrees(_Native(lib, doubles), program, strict), backend)
    provenance = {"digest": program.digest(), "lanes": lanes, "strict": strict, "backend": "c" if loaded else "numpy"}
    if loaded is None:
        return Kernel(program, source.text, provenance, lanes)
    return Kernel(program, source.text, provenance | loaded[1], lanes, _Native(loaded[0], doubles))


class _Native:
    """The compiled loop over a batch."""

    def __init__(self, library: ctypes.CDLL, doubles: int) -> None:
        self.doubles = doubles
        self.function = library.pfaffian_evaluate
        self.function.argtypes = [ctypes.c_void_p] * 2 + [ctypes.c_int64] * 3 + [ctypes.c_void_p]
        self.function.restype = None

    def __call__(self, inputs: list, outputs: list, batch: int, lanes: int = 8, threads: int = 1) -> None:
        """inputs, outputs: ports of the arrays."""
        table = np.array(inputs + outputs or [(0, 0, 0)], dtype=np.int64)
        address = table.ctypes.data
        second = address + 24 * len(inputs)

        def work(begin: int, end: int) -> None:
            self.function(address, second, batch, begin, end, memory.WORKSPACES.get(self.doubles))

        memory.in_blocks(work, batch, lanes, threads)


@dataclass(frozen=True, eq=False)
class Kernel:
    """kernel(*arrays) -> tuple of arrays. program, source (C text) and provenance say what it is."""

    program: Program
    source: str
    provenance: dict[str, Any]
    lanes: int = 8
    native: _Native | None = field(default=None, repr=False)

    def __call__(
        self, *arrays: Any, threads: int = 1, out: Sequence[np.ndarray] | None = None
    ) -> tuple[np.ndarray, ...]:
        """Evaluate all runs of a batch.

        Args:
            arrays: one for each input, (batch, n_i) or (n_i,) for the same in all runs; any strides, no copies.
            threads: blocks of runs are shared among so many.
            out: arrays (batch, m_j) to write to, any strides.
        Returns:
            (batch, m_j) each, the runs contiguous in memory; (m_j,) if all inputs are 1-D.
        """
        inputs, batch, single = self._inputs(arrays)
        results = self._results(batch, single) if out is None else self._given(out, batch, single)
        if self.native is None:
            for result, value in zip(results, evaluate(self.program, inputs), strict=True):
                result[...] = value
        elif batch:
            ports_in = [memory.port(a, 0 if a.ndim == 2 else None) for a in inputs]
            ports_out = [memory.port(a, 0 if a.ndim == 2 else None) for a in results]
            self.native(ports_in, ports_out, batch, self.lanes, threads)
        return results

    def _inputs(self, arrays: Sequence[Any]) -> tuple[list[np.ndarray], int, bool]:
        sizes = self.program.inputs
        if len(arrays) != len(sizes):
            raise ModelError(f"the kernel takes {len(sizes)} arrays, got {len(arrays)}")
        inputs, batch = [], -1
        for i, (value, n) in enumerate(zip(arrays, sizes, strict=True)):
            array = memory.addressable(memory.as_float(value, f"argument {i}"))
            if array.ndim not in (1, 2) or array.shape[-1] != n:
                raise ModelError(f"argument {i} has shape {array.shape}: needs ({n},) or (batch, {n})")
            if array.ndim == 2:
                if batch not in (-1, len(array)):
                    raise ModelError(f"argument {i} has {len(array)} runs where an argument before has {batch}")
                batch = len(array)
            inputs.append(array)
        return inputs, (1 if batch < 0 else batch), batch < 0

    def _results(self, batch: int, single: bool) -> tuple[np.ndarray, ...]:
        if single:
            return tuple([np.empty(len(output)) for output in self.program.outputs])
        return tuple([np.empty((len(output), batch)).T for output in self.program.outputs])

    def _given(self, out: Sequence[np.ndarray], batch: int, single: bool) -> tuple[np.ndarray, ...]:
        if len(out) != len(self.program.outputs):
            raise ModelError(f"out has {len(out)} arrays: needs {len(self.program.outputs)}")
        for j, (array, output) in enumerate(zip(out, self.program.outputs, strict=True)):
            shape = (len(output),) if single else (batch, len(output))
            if not isinstance(array, np.ndarray) or array.dtype != memory.FLOAT or array.shape != shape:
                raise ModelError(f"out[{j}] must be a float64 array of shape {shape}")
            if not array.flags.writeable or memory.addressable(array) is not array:
                raise ModelError(f"out[{j}] must be writeable and aligned")
        return tuple(out)


def _agrees(native: _Native, program: Program, strict: bool) -> bool:
    """Trial of a new object: 8 runs of pseudo-random inputs against the interpreter, to the bit when strict."""
    random = np.random.default_rng(7)
    inputs = [random.uniform(-2.0, 2.0, (n, 8)).T for n in program.inputs]
    results = [np.empty((len(output), 8)).T for output in program.outputs]
    native([memory.port(a, 0) for a in inputs], [memory.port(a, 0) for a in results], 8)
    wanted = evaluate(program, [np.ascontiguousarray(a) for a in inputs]) if inputs else None
    if wanted is None:
        return True
    return all(same(a, b, strict) for a, b in zip(results, wanted, strict=True))


def same(a: np.ndarray, b: np.ndarray, strict: bool) -> bool:
    """Equal to the bit (a nan is a nan), or when not strict within a tolerance."""
    if strict:
        return bool(np.all((np.ascontiguousarray(a).view(np.int64) == np.ascontiguousarray(b).view(np.int64)) | (np.isnan(a) & np.isnan(b))))
    return bool(np.allclose(a, b, rtol=TOLERANCE, atol=TOLERANCE, equal_nan=True))
