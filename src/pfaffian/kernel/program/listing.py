"""The instruction list of a CasADi Function, and the Program that it is."""

from __future__ import annotations

from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from pfaffian.errors import BuildError
from pfaffian.kernel.program.ops import NAME_OF_CODE, OPS
from pfaffian.kernel.program.program import Program, Step

ALIASES = {ca.OP_ASSIGN, ca.OP_LIFT, ca.OP_PRINTME}
"""Bookkeeping operations of CasADi; the value is the first argument."""


class Listing(NamedTuple):
    """Instructions of a Function of SX.

    records: for each instruction its code and three places in the work vector: of the result, and of one or two arguments; of
        an input place, port, entry; of an output port, place, entry; a call has its numbers in `calls`.
    room: places of the work vector.
    inputs, outputs: length of each port.   of_input, of_output: for the entries of each port their places among those of all.
    values: the constants.   constants: value of each instruction that gives one, in turn.
    calls: of each call in turn the callee, the places of its arguments and of its results, -1 for what is not used.
    """

    name: str
    records: np.ndarray
    room: int
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    of_input: list[list[int]]
    of_output: list[list[int]]
    values: tuple[float, ...]
    constants: list[int]
    calls: list[tuple[int, list[int], list[int]]]
    callees: tuple[Program, ...]

    @property
    def no_output(self) -> list[int]:
        """Values of the outputs where all are structurally zero."""
        zero = [sum(self.inputs) + i for i, value in enumerate(self.values) if value.hex() == (0.0).hex()]
        return (zero or [-1]) * sum(self.outputs)

    def ports(self, outputs: list[int]) -> tuple[tuple[int, ...], ...]:
        """The outputs port by port."""
        begin = [sum(self.outputs[:i]) for i in range(len(self.outputs))]
        return tuple(tuple(outputs[start : start + n]) for start, n in zip(begin, self.outputs, strict=True))


def unknown(listing: Listing, i: int) -> BuildError:
    """The error of an instruction that no Program can contain."""
    code = int(listing.records[i, 0])
    name: Any = next((name for name in dir(ca) if name.startswith("OP_") and getattr(ca, name) == code), f"operation {code}")
    return BuildError(f"{listing.name}: {name} has no printer; write it with other operations")


def listed(listing: Listing) -> Program:
    """The Program of a listing. CasADi reuses its work vector; here every value gets its own number."""
    known, work, steps = sum(listing.inputs) + len(listing.values), {}, []  # type: ignore[var-annotated]
    outputs, constants, calls = listing.no_output, iter(listing.constants), iter(listing.calls)
    for i, (code, a, b, c) in enumerate(listing.records.tolist()):
        name = NAME_OF_CODE.get(code)
        if name is not None:
            steps.append(Step(name, tuple([work[v] for v in (b, c)[: OPS[name].arity]]), known))
            work[a] = known
            known += 1
        elif code == ca.OP_INPUT:
            work[a] = listing.of_input[b][c]
        elif code == ca.OP_OUTPUT:
            outputs[listing.of_output[a][c]] = work[b]
        elif code == ca.OP_CONST:
            work[a] = next(constants)
        elif code == ca.OP_CALL:
            callee, given, made = next(calls)
            steps.append(Step("call", tuple([work[v] for v in given]), known, callee))
            work |= {v: known + k for k, v in enumerate(made)}
            known += listing.callees[callee].n_out
        elif code in ALIASES:
            work[a] = work[b]
        else:
            raise unknown(listing, i)
    return Program(listing.inputs, listing.values, tuple(steps), listing.ports(outputs), listing.callees)
