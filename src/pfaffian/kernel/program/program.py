"""The Program: a straight-line list of scalar operations, each value assigned once.

Values are numbered: first the inputs, one after another, then the constants, then the results of the steps in order.
A Program contains no strings except names of operations, so that no text of a user can reach the generated C.
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

GUARDED = -1
"""`Step.times` of a call that is left out where its first argument is zero in all runs that are computed together."""


class Step(NamedTuple):
    """One operation. Its results are the values result, result + 1, ...; only calls and sincos have more than one.

    op: name of the operation.   args: numbers of its arguments.   callee: index of a call's callee.
    times: iterations of a call, each with the results of the previous one as its first arguments; GUARDED of a call that is
        made only where its first argument is not zero in one of the runs which are computed together. Elsewhere its results are
        any numbers, which the Program must not use.
    """

    op: str
    args: tuple[int, ...]
    result: int
    callee: int = -1
    times: int = 1


@dataclass(frozen=True, eq=False)
class WordSteps(Sequence[Step]):
    """Steps as words, as the passes in C return them. They are decoded only when a step is read.

    words: for each step its operation and arguments; for a call CALL, callee, times and arguments.
    n: number of steps.   known: the first result.   sizes: numbers of inputs and outputs of each callee.
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
        """The steps, decoded from the words."""
        words, at, known, steps, new = self.words.tolist(), 0, self.known, list[Step](), tuple.__new__
        while at < len(words):
            op, at = words[at], at + 1
            if op == CALL:
                (callee, times), at = words[at : at + 2], at + 2
                arity, width = self.sizes[callee]
                step = Step("call", tuple(words[at : at + arity]), known, callee, times)
            else:
                arity, width = _ARITY[op], _RESULTS[op]
                step = new(Step, (NAMES[op], tuple(words[at : at + arity]), known, -1, 1))
            steps.append(step)
            at, known = at + arity, known + width
        return tuple(steps)


_ARITY = [op.arity for op in OPS.values()]
_RESULTS = [op.results for op in OPS.values()]


@dataclass(frozen=True, eq=False)
class Program:
    """A straight-line list of scalar operations, each value assigned once.

    inputs: length of each input.   constants: finite numbers.   steps: the operations in order.
    outputs: numbers of the values of each output.   callees: Programs that `call` steps refer to.
    """

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
        """Number of input values."""
        return sum(self.inputs)

    @cached_property
    def n_out(self) -> int:
        """Number of output values."""
        return sum(map(len, self.outputs))

    @property
    def first_result(self) -> int:
        """Number of the first value that a step defines."""
        return self.n_in + len(self.constants)

    def width(self, step: Step) -> int:
        """Number of values that the step defines."""
        return self.callees[step.callee].n_out if step.op == "call" else OPS[step.op].results

    @cached_property
    def n_ops(self) -> int:
        """Largest number of operations that one evaluation executes, those of callees included."""
        if not self.callees:
            return len(self.steps)
        return sum(self.callees[s.callee].n_ops * abs(s.times) if s.op == "call" else 1 for s in self.steps)

    @cached_property
    def words(self) -> np.ndarray:
        """The steps as integers, in the form of WordSteps."""
        if isinstance(self.steps, WordSteps):
            return self.steps.words
        words: list[int] = []
        for s in self.steps:
            words += (CALL, s.callee, s.times, *s.args) if s.op == "call" else (WORD[s.op], *s.args)
        return np.array(words, np.int32)

    @cached_property
    def heads(self) -> np.ndarray:
        """Index of the first word of each step.

        Every word is read as if a step began there; from the steps that are known, all those 1, 2, 4, ... further are found.
        """
        words, end = self.words, len(self.words)
        lengths = np.array([*(1 + arity for arity in _ARITY), 3])
        onwards = np.append(np.arange(end) + lengths[np.clip(words, 0, CALL)], end)
        calls = np.flatnonzero(words[:-2] == CALL)
        arities = np.array([*(n for n, _ in self.sizes), 0])
        onwards[calls] += arities[np.clip(words[calls + 1], 0, len(self.sizes))]
        onwards, found = np.minimum(onwards, end), np.zeros(min(1, end), int)
        while end and onwards[0] < end:
            further = onwards[found]
            found = np.append(found, further[further < end])
            onwards = onwards[onwards]
        return found

    @cached_property
    def operations(self) -> frozenset[str]:
        """Names of the operations of the steps."""
        return frozenset(NAMES[word] for word in np.unique(self.words[self.heads]))

    @cached_property
    def sizes(self) -> tuple[tuple[int, int], ...]:
        """Numbers of inputs and outputs of each callee."""
        return tuple((callee.n_in, callee.n_out) for callee in self.callees)

    def check(self) -> Program:
        """Return the Program if it is valid.

        Raises BuildError: a constant that is not finite, a step that uses or defines a value out of order or has a wrong
        number of arguments, an unknown operation, or an invalid callee.
        """
        if not all(math.isfinite(c) for c in self.constants):
            raise BuildError("a constant of the function is inf or nan: use a finite limit or an if_else")
        if isinstance(self.steps, WordSteps):  # written by passes in C, which were tested when they were compiled
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
        """sha256 of the whole Program, callees included. It is the same in every process."""
        return self._digest

    @cached_property
    def _digest(self) -> str:
        sizes = self.inputs, tuple(map(len, self.outputs)), len(self.constants), len(self.words)
        digest = hashlib.sha256(repr((sizes, [callee.digest() for callee in self.callees])).encode())
        digest.update(np.array(self.constants, "<f8").tobytes() + self.words.astype("<i4").tobytes())
        digest.update(np.array([v for output in self.outputs for v in output], "<i4").tobytes())
        return digest.hexdigest()


def callees_first(programs: Sequence[Program]) -> list[Program]:
    """The Programs and all their callees, each once, callees before callers."""
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
    """Raise BuildError if the step is invalid.   known: number of its first result."""
    if step.op == "call":
        if not 0 <= step.callee < len(program.callees):
            raise BuildError(f"a call refers to callee {step.callee} of {len(program.callees)}")
        arity = program.callees[step.callee].n_in
        if step.times > 1 and arity < program.callees[step.callee].n_out:
            raise BuildError("a call cannot be repeated on its own results: it has more results than arguments")
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
