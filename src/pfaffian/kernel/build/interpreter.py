"""The interpreter in C, which runs Programs without compiling them: built once on a machine, then found in the store."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from pfaffian.kernel.build import library, toolchain
from pfaffian.kernel.build.compiled_passes import encoded
from pfaffian.kernel.build.loop_trial import answers_of, loop_answers
from pfaffian.kernel.build.toolchain import Compiler
from pfaffian.kernel.build.trial import Trial
from pfaffian.kernel.program.encode import COUNTS, Encoded, encode
from pfaffian.kernel.program.program import Program, callees_first
from pfaffian.kernel.text.interpreter_source import (
    APART,
    functions_source,
    functions_tried,
    interpreter_text,
    interpreter_tried,
)


class _CodeStruct(ctypes.Structure):
    """The struct Code of interpreter.h."""

    _fields_ = (
        [(name, ctypes.c_void_p) for name in ("words", "table", "tops", "constants")]
        + [(name, ctypes.c_void_p * 2) for name in ("inputs", "outputs")]
        + [("faults", ctypes.c_void_p)]
        + [(name, ctypes.c_int64) for name in COUNTS]
    )


class _Log(ctypes.Structure):
    """The struct Log of interpreter.h."""

    _fields_ = (("sides", ctypes.c_void_p), ("which", ctypes.c_void_p)) + tuple(
        [(name, ctypes.c_int64) for name in ("count", "blocks", "block")] + [("operands", ctypes.c_void_p)]
    )


class Words:
    """Encoded Programs in memory that C can read.   address: address of the struct Code that the interpreter takes."""

    def __init__(self, encoded: Encoded) -> None:
        self.arrays: list[Any] = [encoded.words, encoded.table, np.array(encoded.tops, np.int32), encoded.constants]
        self.arrays += [np.array(sizes, np.int32) for sizes in _two(encoded.inputs) + _two(encoded.outputs)]
        self.arrays.append(np.array([sizes[1] for sizes in encoded.outputs[2:]], np.int32))
        places = [array.ctypes.data for array in self.arrays]
        two = ctypes.c_void_p * 2
        counts = [encoded.counts[name] for name in COUNTS]
        self.code = _CodeStruct(*places[:4], two(*places[4:6]), two(*places[6:8]), places[8], *counts)
        self.address = ctypes.addressof(self.code)


def _two(sizes: tuple[tuple[int, ...], ...]) -> list[tuple[int, ...]]:
    """The sizes of the first two Programs; () for those that do not exist."""
    return [*sizes[:2], *[()] * (2 - len(sizes))]


def interpreter(lanes: int, programs: Sequence[Program] = ()) -> ctypes.CDLL:
    """The interpreter's library with this number of lanes for these Programs, built and tested now if the store has none.

    Raises BuildError: it, or functions of the Programs that it does not contain, can be neither found nor built.
    """
    compiler = toolchain.find_compiler()
    built = _built(lanes, compiler)
    if any(not program.operations.isdisjoint(APART) for program in callees_first(programs)):
        _complete(lanes, compiler)
    return built


@lru_cache(maxsize=8)
def _built(lanes: int, compiler: Compiler | None) -> ctypes.CDLL:
    """The interpreter's library, by this compiler, with the types of its functions' arguments."""
    programs = interpreter_tried()
    trial = Trial(lambda: loop_answers(programs), lanes * encode(*programs).frame, True)
    built = library.ready(interpreter_text(lanes), "interpreter", trial, compiler)
    pointer, number = ctypes.c_void_p, ctypes.c_int64
    arguments = {
        "pfaffian_interpret": [pointer] * 3 + [number] * 3 + [pointer],
        "pfaffian_interpret_rollout": [pointer] * 2 + [number] * 2 + [pointer],
        "pfaffian_interpret_trial": [pointer] * 4,
        "pfaffian_interpret_rollout_trial": [pointer] * 4,
        "pfaffian_interpret_noting": [pointer] * 3 + [number] + [pointer] * 2,
        "pfaffian_interpret_with": [pointer],
    }
    for name, types in arguments.items():
        function = getattr(built, name)
        function.argtypes, function.restype = types, None
    return built


@lru_cache(maxsize=8)
def _complete(lanes: int, compiler: Compiler | None) -> None:
    """Give the interpreter the elementary functions that are compiled apart. Raises BuildError: as for the interpreter."""
    program, source = functions_tried(), functions_source(lanes)
    trial = Trial(lambda: answers_of(program), source.doubles, True)
    functions = library.ready(source.text, "interpreter", trial, compiler)
    table = (ctypes.c_void_p * len(APART)).in_dll(functions, "pfaffian_functions")
    _built(lanes, compiler).pfaffian_interpret_with(ctypes.addressof(table))


LANES = 8


class Interpreted:
    """Programs run by the interpreter, eight lanes at once, for the trial of a compiled object."""

    def __init__(self, *programs: Program) -> None:
        self.program, self.library = programs[0], interpreter(LANES, programs)
        self.encoded = encoded(*programs)
        self.words = Words(self.encoded)
        self.work = np.zeros(LANES * self.encoded.frame + LANES)

    def trial(self, inputs: np.ndarray, size: int, loop: bool) -> np.ndarray:
        """Outputs (rounds, size) that pfaffian_trial of a compiled object must give for inputs (rounds, numbers).

        loop: whether the object is a time loop.
        """
        call = self.library.pfaffian_interpret_rollout_trial if loop else self.library.pfaffian_interpret_trial
        inputs, outputs = np.array(inputs), np.zeros((len(inputs), size))
        for given, result in zip(inputs, outputs, strict=True):
            call(self.words.address, given.ctypes.data, result.ctypes.data, self._place())
        return outputs

    def outputs(self, rows: np.ndarray) -> np.ndarray:
        """Outputs (n, runs) of the first Program for inputs (m, runs)."""
        return self._run(rows, _Log(blocks=0))

    def sides(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Outputs (n, runs) for inputs (m, runs), and outcomes (decisions, runs / 8) of all decisions, one bit each."""
        row = self.encoded.table[self.encoded.tops[0]]
        sides = np.zeros((int(row[5]), -(-rows.shape[1] // LANES)), np.uint8)
        return self._run(rows, _Log(sides.ctypes.data, None, 0, sides.shape[1], 0, None)), sides

    def operands(self, rows: np.ndarray, places: np.ndarray) -> np.ndarray:
        """Operands (places, runs, 2) of decisions for inputs (m, runs).   places: indices of the decisions, increasing."""
        runs, places = rows.shape[1], np.array(places, np.int64)
        operands = np.full((len(places), -(-runs // LANES), 2, LANES), np.nan)
        self._run(rows, _Log(None, places.ctypes.data, len(places), operands.shape[1], 0, operands.ctypes.data))
        return operands.swapaxes(2, 3).reshape(len(places), -1, 2)[:, :runs]

    def _run(self, rows: np.ndarray, log: _Log) -> np.ndarray:
        """Outputs (n, runs) for inputs (m, runs); the decisions are noted in the log."""
        rows, runs = np.ascontiguousarray(rows), rows.shape[1]
        outputs = np.empty((self.program.n_out, runs))
        ports = [
            (array.ctypes.data + 8 * runs * start, 1, runs)
            for array, sizes in ((rows, self.encoded.inputs[0]), (outputs, self.encoded.outputs[0]))
            for start in np.cumsum((0, *sizes[:-1]))[: len(sizes)]
        ]
        table = np.array(ports or [(0, 0, 0)], np.int64)
        first = table.ctypes.data
        second = first + 24 * len(self.encoded.inputs[0])
        log_at = ctypes.addressof(log) if log.blocks else None
        self.library.pfaffian_interpret_noting(self.words.address, first, second, runs, log_at, self._place())
        return outputs

    def _place(self) -> int:
        """Address of the workspace, on a boundary of 64 bytes."""
        return int((self.work.ctypes.data + 63) & ~63)
