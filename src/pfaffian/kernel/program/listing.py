"""The instruction list of a CasADi Function, and its translation to a Program."""

from __future__ import annotations

from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from pfaffian.errors import BuildError
from pfaffian.kernel.program.ops import NAME_OF_CODE, OPS
from pfaffian.kernel.program.program import Program, Step

ALIASES = {ca.OP_ASSIGN, ca.OP_LIFT, ca.OP_PRINTME}
"""Bookkeeping operations of CasADi, whose value is their first argument."""


class Listing(NamedTuple):
    """The instructions of a Function of SX.

    records: (instructions, 4) code, then three numbers. In general these are places in the work vector, of the result and of
        one or two arguments; for an input they are place, port and entry; for an output port, place and entry. The arguments
        of a call are in `calls`.
    room: length of the work vector.
    inputs, outputs: length of each port.   of_input, of_output: for each port the indices of its entries among all entries.
    values: the constants.   constants: number of the value that each constant instruction defines, in order.
    calls: for each call in order the index of its callee, the places of its arguments and results (-1: unused).
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
        """Numbers of the output values if all outputs are structurally zero: of the constant 0.0, or -1 if there is none."""
        zero = [sum(self.inputs) + i for i, value in enumerate(self.values) if value.hex() == (0.0).hex()]
        return (zero or [-1]) * sum(self.outputs)

    def ports(self, outputs: list[int]) -> tuple[tuple[int, ...], ...]:
        """Split a list of all output values into ports."""
        begin = [sum(self.outputs[:i]) for i in range(len(self.outputs))]
        return tuple(tuple(outputs[start : start + n]) for start, n in zip(begin, self.outputs, strict=True))


def unknown(listing: Listing, i: int) -> BuildError:
    """The error for instruction i, whose operation no Program can contain."""
    code = int(listing.records[i, 0])
    name: Any = next((name for name in dir(ca) if name.startswith("OP_") and getattr(ca, name) == code), f"operation {code}")
    return BuildError(f"{listing.name}: the operation {name} cannot be compiled; write it with other operations")


def listed(listing: Listing) -> Program:
    """Translate a listing to a Program. CasADi reuses the places of its work vector; in a Program every value has its own
    number."""
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
            callee, arguments, results = next(calls)
            steps.append(Step("call", tuple([work[v] for v in arguments]), known, callee))
            work |= {v: known + k for k, v in enumerate(results)}
            known += listing.callees[callee].n_out
        elif code in ALIASES:
            work[a] = work[b]
        else:
            raise unknown(listing, i)
    return Program(listing.inputs, listing.values, tuple(steps), listing.ports(outputs), listing.callees)
