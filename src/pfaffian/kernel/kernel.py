"""compile(function) -> Kernel, a function of arrays that runs over a batch in compiled code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import casadi as ca
import numpy as np

from pfaffian.errors import BuildError, ModelError
from pfaffian.kernel import memory
from pfaffian.kernel.build import load_or_none
from pfaffian.kernel.interpret import evaluate
from pfaffian.kernel.native import Native
from pfaffian.kernel.passes import optimise
from pfaffian.kernel.program import Program
from pfaffian.kernel.text import kernel_source
from pfaffian.kernel.trace import trace
from pfaffian.kernel.trial import RUNS, Trial, random_inputs

Backend = Literal["auto", "c", "numpy"]


def compile(function: ca.Function, *, backend: Backend = "auto", lanes: int = 8, strict: bool = True) -> Kernel:
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
    loaded = None
    if backend != "numpy":
        loaded = load_or_none(source.text, strict, _trial(program, source.doubles, strict), backend)
    provenance = {"digest": program.digest(), "lanes": lanes, "strict": strict, "backend": "c" if loaded else "numpy"}
    if loaded is None:
        return Kernel(program, source.text, provenance)
    native = Native(loaded[0], program, lanes, source.doubles)
    return Kernel(program, source.text, provenance | loaded[1], native)


@dataclass(frozen=True, eq=False)
class Kernel:
    """kernel(*arrays) -> tuple of arrays. program, source (C text) and provenance say what it is."""

    program: Program
    source: str
    provenance: dict[str, Any]
    native: Native | None = field(default=None, repr=False)

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
        if self.native is not None and out is None:
            results = self.native.single(arrays)
            if results is not None:
                return results
        inputs, batch, single = self._inputs(arrays)
        results = self._results(batch, single) if out is None else self._given(out, batch, single)
        if self.native is None:
            for result, value in zip(results, evaluate(self.program, inputs), strict=True):
                result[...] = value
        elif batch:
            self.native.batch(inputs, results, batch, threads)
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


def _trial(program: Program, doubles: int, strict: bool) -> Trial:
    """The call that pfaffian_trial of driver.h makes."""
    flat = random_inputs(program.n_in)

    def wanted() -> np.ndarray:
        edges = np.cumsum(program.inputs)[:-1]
        outputs = evaluate(program, [part.T for part in np.split(flat, edges)] if program.inputs else [])
        columns = [np.broadcast_to(np.atleast_2d(output), (RUNS, output.shape[-1])).T.ravel() for output in outputs]
        return np.concatenate([*columns, np.empty(0)])

    return Trial(flat, wanted, doubles, strict)
