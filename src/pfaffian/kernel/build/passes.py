"""The passes in C: built once on a machine, found in the store from then on. They give what the passes in Python give."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache, partial
from itertools import chain
from typing import Any

import casadi as ca
import numpy as np

from pfaffian.errors import BuildError
from pfaffian.kernel.build import library, toolchain
from pfaffian.kernel.build.toolchain import Compiler
from pfaffian.kernel.build.trial import Answers, Trial
from pfaffian.kernel.program import encode
from pfaffian.kernel.program.listing import ALIASES, Listing, listed, unknown
from pfaffian.kernel.program.ops import NAME_OF_CODE, WORD
from pfaffian.kernel.program.passes import PYTHON, Passes
from pfaffian.kernel.program.program import Program, WordSteps
from pfaffian.kernel.program.tried import listing_tried, passes_tried
from pfaffian.kernel.text.passes import IN_C, TASKS, TRIAL_ROOM, passes_text

_MEANING = np.full(max(NAME_OF_CODE | dict.fromkeys((*ALIASES, ca.OP_CALL))) + 1, -1, np.int32)
_MEANING[list(NAME_OF_CODE)] = [WORD[name] for name in NAME_OF_CODE.values()]
_MEANING[[*ALIASES]] = -2
_MEANING[[ca.OP_INPUT, ca.OP_OUTPUT, ca.OP_CONST, ca.OP_CALL]] = -3, -4, -5, -6


def passes() -> Passes:
    """The passes in C, and `placed` of the encoding; those in Python where nothing can be compiled."""
    return _found(toolchain.find_compiler())


def encoded(*programs: Program) -> encode.Encoded:
    """What the interpreter is given for these Programs, placed in C where that can be compiled."""
    return encode.encode(*programs, place=passes().get("placed"))


@lru_cache(maxsize=8)
def _found(compiler: Compiler | None) -> Passes:
    with suppress(BuildError, OSError):
        return _built(compiler)
    return PYTHON


def _built(compiler: Compiler | None) -> Passes:
    built = library.ready(passes_text(), "strict", Trial(_answers, 0, True), compiler)
    pointer, number = ctypes.c_void_p, ctypes.c_int64
    for name, types in {
        "pfaffian_pass": [number, pointer, pointer],
        "pfaffian_tail": [pointer, number, number, pointer, pointer],
        "pfaffian_list": [pointer] * 3,
        "pfaffian_encode": [pointer] * 4,
        "pfaffian_count": [pointer] * 2,
    }.items():
        function = getattr(built, name)
        function.argtypes, function.restype = types, number
    found: dict[str, Callable[..., Any]] = {name: partial(_pass, built, name) for name in IN_C}
    return found | {"listed": partial(_listed, built), "tail": partial(_tail, built), "placed": partial(_placed, built)}


class _Struct(ctypes.Structure):
    """A struct of passes.h whose arrays stay alive with it."""

    arrays: tuple[np.ndarray, ...]

    @classmethod
    def of(cls, numbers: Sequence[int], arrays: Sequence[np.ndarray]) -> Any:
        struct = cls(*numbers, *[array.ctypes.data for array in arrays])
        struct.arrays = tuple(arrays)
        return struct


def _fields(numbers: int, arrays: int) -> list[tuple[str, Any]]:
    names = [(f"n{i}", ctypes.c_int64) for i in range(numbers)]
    return [*names, *[(f"a{i}", ctypes.c_void_p) for i in range(arrays)]]


class _Given(_Struct):
    _fields_ = _fields(4, 3)


class _Listed(_Struct):
    _fields_ = _fields(2, 6)


class _Placing(_Struct):
    _fields_ = _fields(3, 2)


def _whole(numbers: Any) -> np.ndarray:
    return np.ascontiguousarray(numbers, np.int32)


def _given(program: Program) -> tuple[list[int], list[np.ndarray]]:
    """Numbers and arrays of the struct Given."""
    zeros = [i for i, c in enumerate(program.constants) if c.hex() == (0.0).hex()]
    zero = program.n_in + zeros[0] if zeros else -1
    outputs = _whole([v for output in program.outputs for v in output])
    sizes = _whole(program.sizes).ravel()
    return [program.first_result, zero, len(program.words), len(outputs)], [sizes, _whole(program.words), outputs]


def _counts(built: ctypes.CDLL, program: Program) -> tuple[int, int]:
    """Steps and values."""
    given, counts = _Given.of(*_given(program)), np.zeros(2, np.int64)
    built.pfaffian_count(ctypes.addressof(given), counts.ctypes.data)
    return int(counts[0]), int(counts[1])


def _made(built: ctypes.CDLL, program: Program, words: np.ndarray, outputs: Sequence[Sequence[int]]) -> Program:
    """The Program with other words and outputs."""
    steps = WordSteps(words, 0, program.first_result, program.sizes)
    program = replace(program, steps=steps, outputs=tuple(map(tuple, outputs)))
    return replace(program, steps=replace(steps, n=_counts(built, program)[0]))


def _split(numbers: np.ndarray, sizes: Sequence[int]) -> list[list[int]]:
    return [part.tolist() for part in np.split(numbers, np.cumsum(sizes)[:-1])] if sizes else []


def _pass(built: ctypes.CDLL, name: str, program: Program) -> Program:
    numbers, arrays = _given(program)
    given, to = _Given.of(numbers, arrays), np.empty(2 * numbers[2] + 1, np.int32)
    n = built.pfaffian_pass(IN_C.index(name), ctypes.addressof(given), to.ctypes.data)
    return _made(built, program, to[:n].copy(), _split(arrays[2], [len(output) for output in program.outputs]))


def _tail(built: ctypes.CDLL, program: Program, count: int) -> tuple[Program, list[int]]:
    numbers, arrays = _given(program)
    given, to = _Given.of(numbers, arrays), np.empty(numbers[2] + 1, np.int32)
    crossing = np.empty(_counts(built, program)[1] + 1, np.int32)
    address = ctypes.addressof(given)
    n = built.pfaffian_tail(address, program.n_in, count, crossing.ctypes.data, to.ctypes.data)
    more = int(crossing[0])
    inputs = replace(program, inputs=(*program.inputs, more))
    return _made(built, inputs, to[:n].copy(), [arrays[2][count:].tolist()]), crossing[1 : more + 1].tolist()


def _lists(listing: Listing) -> tuple[list[int], list[np.ndarray]]:
    """Numbers and arrays of the struct Listing."""

    def ports(lists: list[list[int]]) -> np.ndarray:
        begin = np.cumsum([len(lists), *map(len, lists)])[:-1] if lists else ()
        return _whole([*begin, *chain.from_iterable(lists)])

    calls = [number for callee, given, made in listing.calls for number in (callee, *given, *made)]
    arrays = [_whole(listing.records).ravel(), _MEANING, ports(listing.of_input), ports(listing.of_output)]
    return [len(listing.records), listing.room], [*arrays, _whole(listing.constants), _whole(calls)]


def _empty(listing: Listing) -> Program:
    """The Program before its steps are known."""
    return Program(listing.inputs, listing.values, (), listing.ports(listing.no_output), listing.callees)


def _listed(built: ctypes.CDLL, listing: Listing) -> Program:
    program = _empty(listing)
    numbers, arrays = _given(program)
    given, lists = _Given.of(numbers, arrays), _Listed.of(*_lists(listing))
    to = np.empty(4 * len(listing.records) + sum(3 + len(x) for _, x, _ in listing.calls) + 1, np.int32)
    n = built.pfaffian_list(ctypes.addressof(given), ctypes.addressof(lists), to.ctypes.data)
    if n < 0:
        raise unknown(listing, -1 - n)
    return _made(built, program, to[:n].copy(), listing.ports(arrays[2].tolist()))


def _places(program: Program, rows: Sequence[int], decided: Sequence[int], constants: Sequence[int]) -> list[np.ndarray]:
    """Arrays of the struct Placing."""
    return [_whole([len(constants), *constants]), _whole(list(zip(rows, decided, strict=True))).ravel()]


def _placed(
    built: ctypes.CDLL, program: Program, rows: Sequence[int], decided: Sequence[int], constants: Sequence[int], base: int
) -> encode.EncodedProgram:
    n_steps, n_values = _counts(built, program)
    given = _Given.of(*_given(program))
    placing = _Placing.of((n_steps, n_values, base), _places(program, rows, decided, constants))
    to = np.empty(len(program.words) + 2 * n_steps + n_values + program.n_out + 1, np.int32)
    counts = np.zeros(3, np.int64)
    built.pfaffian_encode(ctypes.addressof(given), ctypes.addressof(placing), to.ctypes.data, counts.ctypes.data)
    n, registers, decisions = counts.tolist()
    return encode.EncodedProgram(to[: n + program.n_out].copy(), n, registers, decisions)


def _answers() -> Answers:
    """Rounds of the trial: what each pass gives, as passes_trial.h reads and writes it."""
    rounds = [round_ for program in passes_tried() for round_ in _rounds(program)]
    listing = listing_tried()
    rounds.append((_round(TASKS["LIST"], _empty(listing), listing=_lists(listing)), _right(listed(listing))))
    width = max(len(given) for given, _ in rounds)
    inputs = [given + [0] * (width - len(given)) for given, _ in rounds]
    return Answers(np.array(inputs, float), np.array([right for _, right in rounds], float))


def _rounds(program: Program) -> list[tuple[list[int], list[int]]]:
    """What is given and what is right, of each pass on this Program."""
    rounds = [(_round(i, program), _right(PYTHON[name](program))) for i, name in enumerate(IN_C)]
    tail, crossing = PYTHON["tail"](program, 1)
    rounds.append((_round(TASKS["TAIL"], program, count=1), _right(tail, more=[len(crossing), *crossing])))
    rows, constants = range(3, 3 + len(program.callees)), range(len(program.constants))
    placed = encode.placed(program, rows, rows, constants, BASE)
    right = _right(program, placed.words, (placed.n, placed.registers, placed.decisions))
    return [*rounds, (_round(TASKS["ENCODE"], program, placing=_places(program, rows, rows, constants)), right)]


BASE = 5
"""The first register of a Program in the trial."""

_NOTHING = _whole([])


def _round(
    task: int,
    program: Program,
    count: int = 0,
    placing: Sequence[np.ndarray] = (_NOTHING,) * 2,
    listing: tuple[list[int], list[np.ndarray]] = ([0, 0], [_NOTHING] * 6),
) -> list[int]:
    numbers, arrays = _given(program)
    values = program.first_result + sum(map(program.width, program.steps))
    head = _whole([task, *numbers[:2], program.n_in, count, len(program.steps), values, BASE, *listing[0]])
    every = [head, *arrays, *listing[1], *placing]
    return [*map(len, every), *np.concatenate(every).tolist()]


def _right(program: Program, words: Any = None, counts: Sequence[int] = (0, 0, 0), more: Sequence[int] = ()) -> list[int]:
    words = program.words if words is None else words
    outputs = [v for output in program.outputs for v in output]
    padded = [[*part, *[0] * (TRIAL_ROOM - len(part))] for part in (words, outputs, more)]
    return [len(words), *counts, *chain.from_iterable(padded)]
