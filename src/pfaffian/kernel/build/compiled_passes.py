"""The passes in C, with the same results as those in Python: built once on a machine, then found in the store."""

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
from pfaffian.kernel.program.trial_programs import listing_tried, passes_tried
from pfaffian.kernel.text.passes_source import IN_C, TASKS, TRIAL_ROOM, passes_text

_CODES = [getattr(ca, name) for name in dir(ca) if name.startswith("OP_")]
_MEANING = np.full(max(_CODES) + 1, -1, np.int32)
_MEANING[list(NAME_OF_CODE)] = [WORD[name] for name in NAME_OF_CODE.values()]
_MEANING[[*ALIASES]] = -2
_MEANING[[ca.OP_INPUT, ca.OP_OUTPUT, ca.OP_CONST, ca.OP_CALL]] = -3, -4, -5, -6


def passes() -> Passes:
    """The passes in C, with the encoding as "placed"; the passes in Python where nothing can be compiled."""
    return _found(toolchain.find_compiler())


def encoded(*programs: Program) -> encode.Encoded:
    """Encode Programs for the interpreter, by the encoding in C where that can be compiled."""
    return encode.encode(*programs, place=passes().get("placed"))


@lru_cache(maxsize=8)
def _found(compiler: Compiler | None) -> Passes:
    """The passes in C with this compiler, or those in Python."""
    with suppress(BuildError, OSError):
        return _built(compiler)
    return PYTHON


def _built(compiler: Compiler | None) -> Passes:
    """The passes in C. Raises BuildError: they cannot be compiled."""
    built = library.ready(passes_text(), "passes", Trial(_answers, 0, True), compiler)
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
    in_c: dict[str, Callable[..., Any]] = {name: partial(_pass, built, name) for name in IN_C}
    return in_c | {"listed": partial(_listed, built), "tail": partial(_tail, built), "placed": partial(_placed, built)}


class _Struct(ctypes.Structure):
    """A struct of C that keeps the arrays alive to which it points."""

    arrays: tuple[np.ndarray, ...]

    @classmethod
    def of(cls, numbers: Sequence[int], arrays: Sequence[np.ndarray]) -> Any:
        """The struct with these numbers, then pointers to these arrays."""
        struct = cls(*numbers, *[array.ctypes.data for array in arrays])
        struct.arrays = tuple(arrays)
        return struct


def _fields(numbers: int, arrays: int) -> list[tuple[str, Any]]:
    """Fields of a struct of so many integers, then so many pointers."""
    names = [(f"n{i}", ctypes.c_int64) for i in range(numbers)]
    return [*names, *[(f"a{i}", ctypes.c_void_p) for i in range(arrays)]]


class _GivenStruct(_Struct):
    """The struct Given of passes.h."""

    _fields_ = _fields(4, 3)


class _ListingStruct(_Struct):
    """The struct Listing of listing.h."""

    _fields_ = _fields(2, 6)


class _Placing(_Struct):
    """The struct Placing of encode.h."""

    _fields_ = _fields(3, 2)


def _whole(numbers: Any) -> np.ndarray:
    """A contiguous array of 32-bit integers."""
    return np.ascontiguousarray(numbers, np.int32)


def _given(program: Program) -> tuple[list[int], list[np.ndarray]]:
    """Numbers and arrays of the struct Given."""
    zeros = [i for i, c in enumerate(program.constants) if c.hex() == (0.0).hex()]
    zero = program.n_in + zeros[0] if zeros else -1
    outputs = _whole([v for output in program.outputs for v in output])
    sizes = _whole(program.sizes).ravel()
    return [program.first_result, zero, len(program.words), len(outputs)], [sizes, _whole(program.words), outputs]


def _counts(built: ctypes.CDLL, program: Program) -> tuple[int, int]:
    """The numbers of steps and values of a Program."""
    given, counts = _GivenStruct.of(*_given(program)), np.zeros(2, np.int64)
    built.pfaffian_count(ctypes.addressof(given), counts.ctypes.data)
    return int(counts[0]), int(counts[1])


def _made(built: ctypes.CDLL, program: Program, words: np.ndarray, outputs: Sequence[Sequence[int]]) -> Program:
    """The Program with other words and outputs."""
    steps = WordSteps(words, 0, program.first_result, program.sizes)
    program = replace(program, steps=steps, outputs=tuple(map(tuple, outputs)))
    return replace(program, steps=replace(steps, n=_counts(built, program)[0]))


def _split(numbers: np.ndarray, sizes: Sequence[int]) -> list[list[int]]:
    """The numbers split into lists of these sizes."""
    return [part.tolist() for part in np.split(numbers, np.cumsum(sizes)[:-1])] if sizes else []


def _pass(built: ctypes.CDLL, name: str, program: Program) -> Program:
    """Apply the pass of this name in C."""
    numbers, arrays = _given(program)
    given, to = _GivenStruct.of(numbers, arrays), np.empty(2 * numbers[2] + 1, np.int32)
    n = built.pfaffian_pass(IN_C.index(name), ctypes.addressof(given), to.ctypes.data)
    return _made(built, program, to[:n].copy(), _split(arrays[2], [len(output) for output in program.outputs]))


def _tail(built: ctypes.CDLL, program: Program, count: int) -> tuple[Program, list[int]]:
    """`tail` of the passes, in C."""
    numbers, arrays = _given(program)
    given, to = _GivenStruct.of(numbers, arrays), np.empty(numbers[2] + 1, np.int32)
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
    """The Program of a listing without its steps, all outputs zero."""
    return Program(listing.inputs, listing.values, (), listing.ports(listing.no_output), listing.callees)


def _listed(built: ctypes.CDLL, listing: Listing) -> Program:
    """`listed`, the translation of a listing, in C."""
    program = _empty(listing)
    numbers, arrays = _given(program)
    given, lists = _GivenStruct.of(numbers, arrays), _ListingStruct.of(*_lists(listing))
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
    """`placed`, the encoding of one Program, in C."""
    n_steps, n_values = _counts(built, program)
    given = _GivenStruct.of(*_given(program))
    placing = _Placing.of((n_steps, n_values, base), _places(program, rows, decided, constants))
    to = np.empty(len(program.words) + 2 * n_steps + n_values + program.n_out + 1, np.int32)
    counts = np.zeros(3, np.int64)
    built.pfaffian_encode(ctypes.addressof(given), ctypes.addressof(placing), to.ctypes.data, counts.ctypes.data)
    n, registers, decisions = counts.tolist()
    return encode.EncodedProgram(to[: n + program.n_out].copy(), n, registers, decisions)


def _answers() -> Answers:
    """Rounds of the trial of the passes in C, in the form of passes_trial.h."""
    rounds = [round_ for program in passes_tried() for round_ in _rounds(program)]
    listing = listing_tried()
    rounds.append((_round(TASKS["LIST"], _empty(listing), listing=_lists(listing)), _right(listed(listing))))
    width = max(len(given) for given, _ in rounds)
    inputs = [given + [0] * (width - len(given)) for given, _ in rounds]
    return Answers(np.array(inputs, float), np.array([right for _, right in rounds], float))


def _rounds(program: Program) -> list[tuple[list[int], list[int]]]:
    """Input and expected output of the trial for each pass on this Program."""
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
    """Input of one task of the trial, as passes_trial.h reads it."""
    numbers, arrays = _given(program)
    values = program.first_result + sum(map(program.width, program.steps))
    head = _whole([task, *numbers[:2], program.n_in, count, len(program.steps), values, BASE, *listing[0]])
    inputs = [head, *arrays, *listing[1], *placing]
    return [*map(len, inputs), *np.concatenate(inputs).tolist()]


def _right(program: Program, words: Any = None, counts: Sequence[int] = (0, 0, 0), more: Sequence[int] = ()) -> list[int]:
    """Expected output of one task of the trial, as passes_trial.h writes it.   words: None: those of the Program."""
    words = program.words if words is None else words
    outputs = [v for output in program.outputs for v in output]
    padded = [[*part, *[0] * (TRIAL_ROOM - len(part))] for part in (words, outputs, more)]
    return [len(words), *counts, *chain.from_iterable(padded)]
