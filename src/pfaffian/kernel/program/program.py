"""The Program: a straight-line list of scalar operations, each value assigned once.

Values are numbered: first the inputs, one after another, then the constants, then the results of the steps in order.
A Program contains no string except the names of operations, so nothing that a user wrote can reach generated text.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple, overload

import numpy as np

from pfaffian.errors import BuildError
from pfaffian.kernel.program.ops import CALL, NAMES, OPS, WORD


class Step(NamedTuple):
    """One operation. Its results are the values result, result + 1, ... (one, unless a call or a pair).

    times: how often a call is made, each time with the previous results as its first arguments.
    """

    op: str
    args: tuple[int, ...]
    result: int
    callee: int = -1
    times: int = 1


@dataclass(frozen=True, eq=False)
class WordSteps(Sequence[Step]):
    """Steps as words, read only when one of them is looked at: what passes in C give.

    words: of each step its operation and arguments, of a call CALL, callee, times and arguments.
    n: how many there are.   known: the first result.   sizes: inputs and outputs of each callee.
    """

    words: np.ndarray
    n: int
    known: int
    sizes: tuple[tuple[int, int], ...]

    def __len__(self) -> int:
        return self.n

    @overload
    def __getitem__(self, index: int) -> Step: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Step, ...]: ...
    def __getitem__(self, index: int | slice) -> Step | tuple[Step, ...]:
        return self.steps[index]

    def __iter__(self) -> Iterator[Step]:
        return iter(self.steps)

    @cached_property
    def steps(self) -> tuple[Step, ...]:
        words, at, known, steps = self.words.tolist(), 0, self.known, []
        while at < len(words):
            op, callee, times, at = words[at], -1, 1, at + 1
            if op == CALL:
                (callee, times), at = words[at : at + 2], at + 2
                arity, width = self.sizes[callee]
            else:
                arity, width = _ARITY[op], _RESULTS[op]
            steps.append(Step(NAMES[op], tuple(words[at : at + arity]), known, callee, times))
            at, known = at + arity, known + width
        return tuple(steps)


_ARITY = [op.arity for op in OPS.values()]
_RESULTS = [op.results for op in OPS.values()]


@dataclass(frozen=True, eq=False)
class Program:
    """inputs: length of each input.   outputs: values of each output.   callees: Programs that `call` steps refer to."""

    inputs: tuple[int, ...]
    constants: tuple[float, ...]
    steps: Sequence[Step]
    outputs: tuple[tuple[int, ...], ...]
    callees: tuple[Program, ...] = field(default=())

    def __repr__(self) -> str:
        lengths = tuple(map(len, self.outputs))
        return f"<Program: inputs of {self.inputs}, outputs of {lengths} numbers, {len(self.steps)} steps>"

    @cached_property
    def n_in(self) -> int:
        return sum(self.inputs)

    @cached_property
    def n_out(self) -> int:
        return sum(map(len, self.outputs))

    @property
    def first_result(self) -> int:
        """Number of the first value that a step defines."""
        return self.n_in + len(self.constants)

    def width(self, step: Step) -> int:
        """How many values the step defines."""
        return self.callees[step.callee].n_out if step.op == "call" else OPS[step.op].results

    @cached_property
    def n_ops(self) -> int:
        """Operations executed by one evaluation at most, calls followed."""
        if not self.callees:
            return len(self.steps)
        return sum(self.callees[s.callee].n_ops * s.times if s.op == "call" else 1 for s in self.steps)

    @cached_property
    def words(self) -> np.ndarray:
        """The steps as numbers, see WordSteps."""
        if isinstance(self.steps, WordSteps):
            return self.steps.words
        words: list[int] = []
        for s in self.steps:
            words += (CALL, s.callee, s.times, *s.args) if s.op == "call" else (WORD[s.op], *s.args)
        return np.array(words, np.int32)

    @cached_property
    def sizes(self) -> tuple[tuple[int, int], ...]:
        """Numbers that each callee takes and gives."""
        return tuple((callee.n_in, callee.n_out) for callee in self.callees)

    def check(self) -> Program:
        """Return self. BuildError unless it is single assignment, in order, of right arity, finite and callable."""
        if not all(math.isfinite(c) for c in self.constants):
            raise BuildError("a constant of the function is inf or nan: use a finite limit or an if_else")
        if isinstance(self.steps, WordSteps):  # which passes in C wrote, that were tried
            return self
        known = self.first_result
        for step in self.steps:
            _check_step(self, step, known)
            known += self.width(step)
        if any(not 0 <= v < known for output in self.outputs for v in output):
            raise BuildError("an output of the Program is a value that no step defines")
        for callee in self.callees:
            callee.check()
        return self

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Program) and self.digest() == other.digest()

    def __hash__(self) -> int:
        return hash(self.digest())

    def digest(self) -> str:
        """sha256 of the whole Program, callees included; the same in every process."""
        return self._digest

    @cached_property
    def _digest(self) -> str:
        sizes = self.inputs, tuple(map(len, self.outputs)), len(self.constants), len(self.words)
        digest = hashlib.sha256(repr((sizes, [callee.digest() for callee in self.callees])).encode())
        digest.update(np.array(self.constants, "<f8").tobytes() + self.words.astype("<i4").tobytes())
        digest.update(np.array([v for output in self.outputs for v in output], "<i4").tobytes())
        return digest.hexdigest()


def callees_first(programs: Sequence[Program]) -> list[Program]:
    """The Programs and all that they call, once each, callees before callers."""
    order: dict[str, Program] = {}

    def visit(program: Program) -> None:
        if program.digest() not in order:
            for callee in program.callees:
                visit(callee)
            order[program.digest()] = program

    for program in programs:
        visit(program)
    return list(order.values())


def _check_step(program: Program, step: Step, known: int) -> None:
    if step.op == "call":
        if not 0 <= step.callee < len(program.callees):
            raise BuildError(f"a call refers to callee {step.callee} of {len(program.callees)}")
        arity = program.callees[step.callee].n_in
        if step.times > 1 and arity < program.callees[step.callee].n_out:
            raise BuildError("a call cannot be repeated on its own results: it gives more than it takes")
    elif step.op in OPS:
        arity = OPS[step.op].arity
    else:
        raise BuildError(f"unknown operation {step.op!r}")
    if len(step.args) != arity:
        raise BuildError(f"{step.op} takes {arity} arguments, got {len(step.args)}")
    if step.result != known:
        raise BuildError(f"a step defines value {step.result} where {known} is next: not single assignment")
    if any(not 0 <= a < known for a in step.args):
        raise BuildError(f"{step.op} uses a value before it is defined")
