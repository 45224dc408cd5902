"""The Program: a straight-line list of scalar operations, each value assigned once.

Values are numbered: first the inputs, one after another, then the constants, then the results of the steps in order.
A Program contains no string except the names of operations, so nothing that a user wrote can reach generated text.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from pfaffian.errors import BuildError
from pfaffian.kernel.program.ops import OPS


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
class Program:
    """inputs: length of each input.   outputs: values of each output.   callees: Programs that `call` steps refer to."""

    inputs: tuple[int, ...]
    constants: tuple[float, ...]
    steps: tuple[Step, ...]
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
        return sum(self.callees[s.callee].n_ops * s.times if s.op == "call" else 1 for s in self.steps)

    def check(self) -> Program:
        """Return self. BuildError unless it is single assignment, in order, of right arity, finite and callable."""
        if not all(math.isfinite(c) for c in self.constants):
            raise BuildError("a constant of the function is inf or nan: use a finite limit or an if_else")
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
        parts = [repr((self.inputs, [c.hex() for c in self.constants], self.outputs))]
        parts += [f"{s.op} {s.args} {s.result} {s.callee} {s.times}" for s in self.steps]
        parts += [callee.digest() for callee in self.callees]
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()


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
