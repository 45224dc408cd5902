"""Skeletons of Programs. Programs that differ in numbers only have the same C text, and so the same compiled object.

Zero, one and minus one are part of the structure. All other constants are read from a table that is not part of the text.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from itertools import islice

import numpy as np

from pfaffian.kernel.program.ops import CALL
from pfaffian.kernel.program.program import Program, WordSteps, callees_first
from pfaffian.kernel.program.program_bytes import structure

PLAIN = frozenset(x.hex() for x in (0.0, 1.0, -1.0))
"""Constants that are written into the C text."""


def in_order_of_use(programs: Sequence[Program]) -> tuple[Program, ...]:
    """The Programs with their constants, and those of their callees, in the order of their first use, without unused ones.

    Without this, a piece of a Program would have all constants of the whole, in an order that depends on which of them are
    equal, and its skeleton would depend on numbers.
    """
    done: dict[str, Program] = {}
    for program in callees_first(programs):
        callees = tuple(done[callee.digest()] for callee in program.callees)
        done[program.digest()] = _in_order(program, callees)
    return tuple(done[program.digest()] for program in programs)


def _in_order(program: Program, callees: tuple[Program, ...]) -> Program:
    """One Program with other callees and with its constants in the order of their first use."""
    words, first, n = program.words, program.first_result, program.n_in
    outputs = np.array([v for output in program.outputs for v in output], np.int32)
    arguments = argument_words(program)
    values = np.concatenate([words[arguments], outputs])
    seen, where = np.unique(values[(values >= n) & (values < first)], return_index=True)
    used = seen[np.argsort(where)]
    number = np.arange(values.max(initial=first) + 1) - (first - n - len(used))
    number[:n], number[used] = np.arange(n), n + np.arange(len(used))
    words, given = words.copy(), iter(number[outputs].tolist())
    words[arguments] = number[words[arguments]]
    constants = tuple(program.constants[i - n] for i in used)
    steps = WordSteps(words, len(program.steps), n + len(constants), program.sizes)
    return Program(program.inputs, constants, steps, tuple(tuple(islice(given, len(o))) for o in program.outputs), callees)


def argument_words(program: Program) -> np.ndarray:
    """A mask of the words that are arguments: all except operations, callees and repetitions of calls."""
    words, heads = program.words, program.heads
    mask = np.ones(len(words), bool)
    mask[heads] = False
    calls = heads[words[heads] == CALL]
    mask[calls + 1] = mask[calls + 2] = False
    return mask


def places(program: Program) -> dict[int, int]:
    """{index of a constant: its index among the Program's constants that belong to the table}."""
    chosen = [i for i, c in enumerate(program.constants) if c.hex() not in PLAIN]
    return {i: place for place, i in enumerate(chosen)}


def numbers(programs: Sequence[Program]) -> np.ndarray:
    """The table of the Programs and their callees, callees before callers: all constants that are not PLAIN."""
    return np.array([p.constants[i] for p in callees_first(programs) for i in places(p)], float)


def skeleton(programs: Sequence[Program]) -> str:
    """sha256 of the Programs and their callees, without the numbers of their table."""
    plain = [c.hex() if c.hex() in PLAIN else "" for p in callees_first(programs) for c in p.constants]
    return hashlib.sha256(structure(programs) + ",".join(plain).encode()).hexdigest()
