"""The interpreter in C: built once on a machine, found in the store from then on; it runs a Program without compiling it."""

from __future__ import annotations

import ctypes
from functools import lru_cache
from typing import Any

import numpy as np

from pfaffian.errors import BuildError
from pfaffian.kernel.build import library, store, toolchain
from pfaffian.kernel.build.loop_trial import loop_answers
from pfaffian.kernel.build.toolchain import Compiler
from pfaffian.kernel.build.trial import Trial
from pfaffian.kernel.program.encode import COUNTS, Encoded, encode
from pfaffian.kernel.program.tried import tried
from pfaffian.kernel.text.interpreter import interpreter_text


class _Code(ctypes.Structure):
    """The struct Code of interpreter.h."""

    _fields_ = (
        [(name, ctypes.c_void_p) for name in ("words", "table", "tops", "constants")]
        + [(name, ctypes.c_void_p * 2) for name in ("inputs", "outputs")]
        + [("faults", ctypes.c_void_p)]
        + [(name, ctypes.c_int64) for name in COUNTS]
    )


class Words:
    """Encoded Programs in memory where C can read them.   address: of the struct that the interpreter takes."""

    def __init__(self, encoded: Encoded) -> None:
        self.arrays: list[Any] = [encoded.words, encoded.table, np.array(encoded.tops, np.int32), encoded.constants]
        self.arrays += [np.array(sizes, np.int32) for sizes in _two(encoded.inputs) + _two(encoded.outputs)]
        self.arrays.append(np.array([sizes[1] for sizes in encoded.outputs[2:]], np.int32))
        places = [array.ctypes.data for array in self.arrays]
        two = ctypes.c_void_p * 2
        counts = [encoded.counts[name] for name in COUNTS]
        self.code = _Code(*places[:4], two(*places[4:6]), two(*places[6:8]), places[8], *counts)
        self.address = ctypes.addressof(self.code)


def _two(sizes: tuple[tuple[int, ...], ...]) -> list[tuple[int, ...]]:
    return [*sizes[:2], *[()] * (2 - len(sizes))]


def interpreter(lanes: int) -> ctypes.CDLL:
    """The library of the interpreter for so many lanes; built and tried now if the store has none. BuildError: it cannot be."""
    compiler = toolchain.find_compiler()
    if compiler is None:
        raise BuildError(toolchain.NO_COMPILER)
    return _built(lanes, compiler, str(store.directory()))


@lru_cache(maxsize=8)
def _built(lanes: int, compiler: Compiler, folder: str) -> ctypes.CDLL:
    programs = tried()
    trial = Trial(lambda: loop_answers(programs), lanes * encode(*programs).frame, True)
    built = library.load(interpreter_text(lanes), "interpreter", trial, compiler)[0]
    built.pfaffian_interpret.argtypes = [ctypes.c_void_p] * 3 + [ctypes.c_int64] * 3 + [ctypes.c_void_p]
    built.pfaffian_interpret_rollout.argtypes = [ctypes.c_void_p] * 2 + [ctypes.c_int64] * 2 + [ctypes.c_void_p]
    for function in (built.pfaffian_interpret, built.pfaffian_interpret_rollout):
        function.restype = None
    return built
