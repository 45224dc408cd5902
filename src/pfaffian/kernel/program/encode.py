"""Program -> integer words that the interpreter in C runs (see text/interpreter.h), without any compiler.

Steps of the same operation that do not depend on each other form a group, so that the interpreter looks up the operation once
for all of them. Values are stored in registers. A register is used again after the last group that reads its value. Each
Program has its own registers, since no Program calls itself. The first registers contain the constants of all Programs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from pfaffian.kernel.program.ops import CALL, WORD
from pfaffian.kernel.program.program import Program, callees_first

END = CALL + 1
"""The word that follows the last group of a Program."""

COUNTS = "n_constants", "n_inputs", "n_outputs", "samplers", "sampled", "kept", "frame", "registers"
"""Names of the numbers that the interpreter takes in addition to the arrays: fields of the struct Code of interpreter.h."""

DECIDING = "lt", "le", "fmin", "fmax"
"""Operations that compare two numbers and so decide. All other selections use their results."""

TURNS = 64
"""Largest number of iterations of a repeated call whose decisions are noted."""


@dataclass(frozen=True, eq=False)
class Encoded:
    """Programs as arrays of numbers.

    words: the groups of all Programs, one after another: operation, number of steps, then results and arguments of each step;
        for a call CALL, the callee's row in the table, the number of iterations, its arguments and its results.
    table: (Programs, 6) first word, register of the first input, number of inputs, first word of the list of outputs, number
        of outputs, number of decisions of one evaluation.
    constants: values of the first registers.   registers: number of registers, constants included.
    tops: rows of the table of the Programs that are called from outside.   inputs, outputs: lengths of their ports.
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
        """{name: number} for the names in COUNTS."""
        sizes = len(self.constants), len(self.inputs[0]), len(self.outputs[0]), len(self.inputs[2:])
        return dict(zip(COUNTS, (*sizes, self.sampled, self.saved, self.frame, self.registers), strict=True))

    @property
    def frame(self) -> int:
        """Vectors of a block of runs: ports of the first two tops, outputs of a sampler, the saved state, and registers."""
        ports = sum(map(sum, (*self.inputs[:2], *self.outputs[:2])))
        return ports + self.sampled + self.saved + self.registers

    @property
    def sampled(self) -> int:
        """Largest number of outputs of a sampler."""
        return max(map(sum, self.outputs[2:]), default=0)

    @property
    def saved(self) -> int:
        """Entries of the state that samplers change: saved before the samples of the final record, and restored after them."""
        return self.outputs[2][0] if len(self.inputs) > 2 else 0


class EncodedProgram(NamedTuple):
    """One Program as words.   words: its groups, then the registers of its outputs.   n: number of words before the outputs.
    registers: number of its own registers, without constants.   decisions: number of decisions of one evaluation."""

    words: np.ndarray | list[int]
    n: int
    registers: int
    decisions: int


Place = Callable[[Program, Sequence[int], Sequence[int], Sequence[int], int], EncodedProgram]


def encode(*programs: Program, place: Place | None = None) -> Encoded:
    """Encode Programs that are called from outside, and all Programs that they call, for the interpreter.

    place: encodes one Program, given rows and decisions of its callees, registers of its constants and its first register;
    None: `placed`.
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
            program, rows, [parts[i].decisions for i in rows], [constants[c.hex()] for c in program.constants], base
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
    """Indices of the steps, in groups of one operation; each group follows the groups whose results it needs. A call is a
    group by itself."""
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
    """Encode one Program.   rows, decided: rows in the table and numbers of decisions of its callees.   constants: registers
    of its constants.   base: its first register."""
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
    decisions = sum(min(abs(s.times), TURNS) * decided[s.callee] if s.op == "call" else s.op in DECIDING for s in program.steps)
    return EncodedProgram([*words, *outputs], len(words), count - base, decisions)


def _dead_after(program: Program, groups: Sequence[Sequence[int]]) -> list[list[int]]:
    """For each group the results that no later group reads. Inputs are not listed, since their registers stay in use."""
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
