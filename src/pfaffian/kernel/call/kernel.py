"""`compile` makes a Kernel of a casadi.Function: a function of arrays that evaluates a batch of runs in compiled code."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import casadi as ca
import numpy as np

from pfaffian.errors import ModelError
from pfaffian.kernel.build.compiled_passes import passes
from pfaffian.kernel.build.exercise import of_program
from pfaffian.kernel.build.trial import Trial
from pfaffian.kernel.call import memory
from pfaffian.kernel.call.native import Native
from pfaffian.kernel.call.obtain import Code, obtain
from pfaffian.kernel.call.recipe import SHORT, Backend, PortLengths, Recipe, mode_of, recipe
from pfaffian.kernel.program.interpret import evaluate
from pfaffian.kernel.program.passes import PYTHON
from pfaffian.kernel.program.program import Program
from pfaffian.kernel.program.share import needed
from pfaffian.kernel.text.source import kernel_source


def compile(
    function: ca.Function | Callable[[], ca.Function],
    *,
    backend: Backend = "auto",
    lanes: int = 8,
    strict: bool = True,
    key: str | None = None,
) -> Kernel:
    """Compile a casadi.Function of SX.

    Args:
        function: the Function, or a function without arguments that returns it.
        backend: "auto" interprets in C at once and compiles in the background when that pays, or runs NumPy, after a warning,
            where nothing can be compiled; "c" compiles now; "interpreter" interprets in C; "numpy" runs NumPy.
        lanes: number of runs that are computed at once, 8, 4 or 1.
        strict: whether to give the same bits on every backend; False lets the compiler contract a b + c (20-30 % faster).
        key: identifies the function permanently, such as a digest of everything that it depends on. A kernel that was compiled
            under the same key, with the same options, compiler and library, is loaded from the store without calling
            `function`. None: no key.
    Raises BuildError: the Function contains an operation that no Program can contain; or the backend is "c" or "interpreter"
    and cannot be built.
    """

    def build() -> tuple[Any]:
        return (function if isinstance(function, ca.Function) or not callable(function) else function(),)

    return _kernel(recipe(build, kernel_source, backend, lanes, mode_of(strict), _needed), backend, key)


def _needed(program: Program) -> tuple[Program]:
    """The Program whose callees compute what it needs."""
    return (needed(program, PYTHON if program.n_ops <= SHORT else passes()) if program.callees else program,)


def _kernel(plan: Recipe, backend: Backend, key: str | None) -> Kernel:
    """The Kernel of a recipe."""
    code = obtain(plan, "pfaffian_evaluate", _trial, backend, key)
    native = Native(code.tiers, code.shapes[0], plan.lanes, code.work[0]) if code.tiers else None
    return Kernel(code, native)


@dataclass(frozen=True, eq=False)
class Kernel:
    """A function of arrays, kernel(*arrays) -> tuple of arrays, with attributes program, source (C text) and provenance."""

    code: Code = field(repr=False)
    native: Native | None = field(default=None, repr=False)

    def __repr__(self) -> str:
        how = ", ".join(f"{k} {self.provenance[k]}" for k in ("backend", "lanes", "strict") if k in self.provenance)
        return f"<Kernel: inputs of {self.shape.inputs}, outputs of {self.shape.outputs} numbers, {how}>"

    @property
    def shape(self) -> PortLengths:
        """Lengths of the inputs and outputs."""
        return self.code.shapes[0]

    @property
    def provenance(self) -> dict[str, Any]:
        """Digest of the Program, options, the backend that computes now, and how it was compiled."""
        return self.code.provenance

    @property
    def program(self) -> Program:
        """The Program. It is traced when first needed if the kernel came from the store by its key."""
        return self.code.recipe.programs[0]

    @property
    def source(self) -> str:
        """The C text."""
        return self.code.recipe.source.text

    def __call__(self, *arrays: Any, threads: int = 1, out: Sequence[np.ndarray] | None = None) -> tuple[np.ndarray, ...]:
        """Evaluate all runs of a batch.

        Args:
            arrays: one for each input, (batch, n_i), or (n_i,) if it is the same in all runs; with any strides, not copied.
            threads: number of threads that share the blocks of runs, default 1.
            out: arrays (batch, m_j) for the results, with any strides; None: new arrays.
        Returns:
            arrays (batch, m_j), with the runs contiguous in memory; (m_j,) if all inputs are 1-D.
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
        """The inputs as arrays of float64, the batch size, and whether all are 1-D. Raises ModelError: a wrong shape."""
        sizes = self.shape.inputs
        if len(arrays) != len(sizes):
            raise ModelError(f"the kernel takes {len(sizes)} arrays, got {len(arrays)}")
        inputs, batch = [], -1
        for i, (value, n) in enumerate(zip(arrays, sizes, strict=True)):
            array = memory.addressable(memory.as_float(value, f"argument {i}"))
            if array.ndim not in (1, 2) or array.shape[-1] != n:
                raise ModelError(f"argument {i} has shape {array.shape}: needs ({n},) or (batch, {n})")
            if array.ndim == 2:
                if batch not in (-1, len(array)):
                    raise ModelError(f"argument {i} has {len(array)} runs, but an earlier argument has {batch}")
                batch = len(array)
            inputs.append(array)
        return inputs, (1 if batch < 0 else batch), batch < 0

    def _results(self, batch: int, single: bool) -> tuple[np.ndarray, ...]:
        """New arrays for the results."""
        if single:
            return tuple([np.empty(n) for n in self.shape.outputs])
        return tuple([np.empty((n, batch)).T for n in self.shape.outputs])

    def _given(self, out: Sequence[np.ndarray], batch: int, single: bool) -> tuple[np.ndarray, ...]:
        """The caller's arrays for the results. Raises ModelError: a wrong type, shape or alignment, or a read-only array."""
        if len(out) != len(self.shape.outputs):
            raise ModelError(f"out has {len(out)} arrays: needs {len(self.shape.outputs)}")
        for j, (array, n) in enumerate(zip(out, self.shape.outputs, strict=True)):
            shape = (n,) if single else (batch, n)
            if not isinstance(array, np.ndarray) or array.dtype != memory.FLOAT or array.shape != shape:
                raise ModelError(f"out[{j}] must be a float64 array of shape {shape}")
            if not array.flags.writeable or memory.addressable(array) is not array:
                raise ModelError(f"out[{j}] must be writeable and aligned")
        return tuple(out)


def _trial(plan: Recipe) -> Trial:
    """The trial of a kernel, by the function pfaffian_trial of driver.h."""
    return Trial(lambda: of_program(plan.programs[0]), plan.source.doubles, plan.mode != "fast", plan.numbers)
