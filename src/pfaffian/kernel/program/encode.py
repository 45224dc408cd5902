"""Program -> words of numbers that the interpreter in C runs (see text/interpreter.h), without any compiler.

Steps of one operation that do not need each other form a group, so that the interpreter looks up the operation once for all of
them. Values live in registers; a register is used again after the group that reads its value last. Each Program has registers
of its own, since none calls itself. The constants of all Programs come first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from pfaffian.kernel.program.ops import CALL, WORD
from pfaffian.kernel.program.program import Program, callees_first

END = CALL + 1
"""The word after the last group of a Program."""

COUNTS = "n_constants", "n_inputs", "n_outputs", "samplers", "sampled", "kept", "frame", "registers"
"""Numbers that the interpreter is given beside the arrays."""

DECIDING = "lt", "le", "fmin", "fmax"
"""Operations that decide. All other selections use their results."""

TURNS = 64
"""Turns of a repeated call, at most, in which decisions are noted."""


@dataclass(frozen=True, eq=False)
class Encoded:
    """Programs as numbers.

    words: the groups of all Programs, one after another: operation, count, then results and arguments of each step; of a call
        the callee, how often it is made, its arguments and results.
    table: (Programs, 6) first word, register of the first input, number of inputs, first word of the list of outputs, number
        of outputs, how many decisions an evaluation takes.
    constants: in the first registers.   registers: how many there are.
    tops: rows of the table that are called from outside.   inputs, outputs: their sizes, of each of these.
    """

    words: np.ndarray
    table: np.ndarray
    constants: np.ndarray
    registers: int
    tops: tuple[int, ...]
    inputs: tuple[tuple[int, ...], ...]
    outputs: tuple[tuple[int, ...], ...]

    @property
    def counts(self) -> dict[str, int]:
        """The COUNTS, by name."""
        sizes = len(self.constants), len(self.inputs[0]), len(self.outputs[0]), len(self.inputs[2:])
        return dict(zip(COUNTS, (*sizes, self.sampled, self.kept, self.frame, self.registers), strict=True))

    @property
    def frame(self) -> int:
        """Vectors of a block of runs: inputs and outputs of the first two tops, those of the samplers, registers."""
        ports = sum(map(sum, (*self.inputs[:2], *self.outputs[:2])))
        return ports + self.sampled + self.kept + self.registers

    @property
    def sampled(self) -> int:
        """Outputs of a sampler at most."""
        return max(map(sum, self.outputs[2:]), default=0)

    @property
    def kept(self) -> int:
        """Numbers of the state that samplers change."""
        return self.inputs[2][0] if len(self.inputs) > 2 else 0


class EncodedProgram(NamedTuple):
    """One Program as words.   n: how many there are before the outputs.   registers: that it takes of its own."""

    words: np.ndarray | list[int]
    n: int
    registers: int
    decisions: int


Place = Callable[[Program, Sequence[int], Sequence[int], Sequence[int], int], EncodedProgram]


def encode(*programs: Program, place: Place | None = None) -> Encoded:
    """What the interpreter is given for these Programs, which are called from outside, and all that they call.

    place: encodes one Program, from rows and decisions of its callees, registers of its constants and its first register; the
    default is `placed`.
    """
    order = callees_first(programs)
    index = {program.digest(): i for i, program in enumerate(order)}
    values = sorted({c.hex() for program in order for c in program.constants})
    constants = {c: i for i, c in enumerate(values)}
    table: list[tuple[int, ...]] = []
    parts: list[EncodedProgram] = []
    begin, base = 0, len(values)
    for program in order:
        rows = [index[c.digest()] for c in program.callees]
        part = (place or placed)(
            program, rows, [table[i][5] for i in rows], [constants[c.hex()] for c in program.constants], base
        )
        table.append((begin, base, program.n_in, begin + part.n, program.n_out, part.decisions))
        parts.append(part)
        begin, base = begin + len(part.words), base + part.registers
    words = np.concatenate([np.asarray(part.words, np.int32) for part in parts])
    numbers = np.array([float.fromhex(c) for c in values])
    tops = tuple(index[program.digest()] for program in programs)
    sizes = tuple(p.inputs for p in programs), tuple(tuple(map(len, p.outputs)) for p in programs)
    return Encoded(words, np.array(table, np.int32), numbers, base, tops, *sizes)


def groups_of(program: Program) -> list[list[int]]:
    """Numbers of the steps in groups of one operation, each after all that it needs; a call is a group of its own."""
    steps, first = program.steps, program.first_result
    maker = [-1] * (first + sum(program.width(s) for s in steps))
    users: list[list[int]] = [[] for _ in steps]
    waits = [0] * len(steps)
    ready: dict[str, list[int]] = {}
    for i, step in enumerate(steps):
        for r in range(step.result, step.result + program.width(step)):
            maker[r] = i
        for j in {maker[a] for a in step.args if a >= first}:
            users[j].append(i)
            waits[i] += 1
        if not waits[i]:
            ready.setdefault(step.op, []).append(i)
    groups = []
    while ready:
        op = max(ready, key=lambda name: len(ready[name]))
        group = [ready[op].pop()] if op == "call" else ready.pop(op)
        if op == "call" and not ready[op]:
            del ready[op]
        groups.append(group)
        for i in group:
            for j in users[i]:
                waits[j] -= 1
                if not waits[j]:
                    ready.setdefault(steps[j].op, []).append(j)
    return groups


def placed(
    program: Program, rows: Sequence[int], decided: Sequence[int], constants: Sequence[int], base: int
) -> EncodedProgram:
    """The words of one Program.   rows, decided: of its callees.   constants: their registers.   base: its first register."""
    groups, n = groups_of(program), program.n_in
    words: list[int] = []
    place = [*range(base, base + n), *constants, *[-1] * sum(map(program.width, program.steps))]
    dead = _dead_after(program, groups)
    free: list[int] = []
    count = base + n
    for group, gone in zip(groups, dead, strict=True):
        first = program.steps[group[0]]
        width = program.width(first)
        if first.op == "call":
            words += (CALL, rows[first.callee], first.times, *[place[a] for a in first.args])
        else:
            words += (WORD[first.op], len(group))
        for step in [program.steps[i] for i in group]:
            for r in range(step.result, step.result + width):
                if free:
                    place[r] = free.pop()
                else:
                    place[r] = count
                    count += 1
            words += place[step.result : step.result + width]
            if step.op != "call":
                words += [place[a] for a in step.args]
        free += [place[v] for v in gone]
    words.append(END)
    outputs = [place[v] for output in program.outputs for v in output]
    decisions = sum(min(s.times, TURNS) * decided[s.callee] if s.op == "call" else s.op in DECIDING for s in program.steps)
    return EncodedProgram([*words, *outputs], len(words), count - base, decisions)


def _dead_after(program: Program, groups: Sequence[Sequence[int]]) -> list[list[int]]:
    """For each group the results that no later one reads. Inputs keep their registers."""
    last: dict[int, int] = {}
    for g, group in enumerate(groups):
        for step in [program.steps[i] for i in group]:
            last.update(dict.fromkeys(range(step.result, step.result + program.width(step)), g))
            last.update(dict.fromkeys(step.args, g))
    for output in program.outputs:
        for v in output:
            last.pop(v, None)
    dead: list[list[int]] = [[] for _ in groups]
    for v, g in last.items():
        if v >= program.first_result:
            dead[g].append(v)
    return dead
