"""Program -> words of numbers that the interpreter in C runs (see text/interpreter.h), without any compiler.

Steps of one operation that do not need each other form a group, so that the interpreter looks up the operation once for all of
them. Values live in registers; a register is used again after the group that reads its value last. Each Program has registers
of its own, since none calls itself. The constants of all Programs come first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pfaffian.kernel.program.ops import OPS
from pfaffian.kernel.program.program import Program, callees_first

CALL, END = len(OPS), len(OPS) + 1
"""Words for what is no operation; an operation's word is its place in OPS."""

COUNTS = "n_constants", "n_inputs", "n_outputs", "samplers", "sampled", "kept", "frame", "registers"
"""Numbers that the interpreter is given beside the arrays."""

DECIDING = "lt", "le", "fmin", "fmax"
"""Operations that decide. All other selections use their results."""

TURNS = 64
"""Turns of a repeated call, at most, in which decisions are noted."""

WORD = {name: i for i, name in enumerate(OPS)} | {"call": CALL}


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


def encode(*programs: Program) -> Encoded:
    """The Programs, which are called from outside, and all that they call."""
    order = callees_first(programs)
    index = {program.digest(): i for i, program in enumerate(order)}
    values = sorted({c.hex() for program in order for c in program.constants})
    constants = {c: i for i, c in enumerate(values)}
    words: list[int] = []
    table: list[tuple[int, ...]] = []
    base = len(values)
    for program in order:
        callees = [index[c.digest()] for c in program.callees]
        row, size = _append(words, program, callees, [table[i][5] for i in callees], constants, base)
        table.append(row)
        base += size
    numbers = np.array([float.fromhex(c) for c in values])
    tops = tuple(index[program.digest()] for program in programs)
    sizes = tuple(p.inputs for p in programs), tuple(tuple(map(len, p.outputs)) for p in programs)
    return Encoded(np.array(words, np.int32), np.array(table, np.int32), numbers, base, tops, *sizes)


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


def _append(
    words: list[int], program: Program, callees: Sequence[int], decided: Sequence[int], constants: dict[str, int], base: int
) -> tuple[tuple[int, ...], int]:
    """Append the words of one Program; its row of the table, and how many registers it takes from `base` on.

    decided: decisions of each callee.
    """
    groups, n, begin = groups_of(program), program.n_in, len(words)
    place = [*range(base, base + n), *(constants[c.hex()] for c in program.constants)]
    place += [-1] * sum(map(program.width, program.steps))
    dead = _dead_after(program, groups)
    free: list[int] = []
    count = base + n
    for group, gone in zip(groups, dead, strict=True):
        first = program.steps[group[0]]
        width = program.width(first)
        if first.op == "call":
            words += (CALL, callees[first.callee], first.times, *[place[a] for a in first.args])
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
    row = begin, base, n, len(words), len(outputs), decisions
    words += outputs
    return row, count - base


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
