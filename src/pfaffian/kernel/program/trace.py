"""casadi.Function of SX -> Program. CasADi reuses its work vector; here every value gets its own number."""

from __future__ import annotations

import re
import threading
from typing import Any

import casadi as ca

from pfaffian.errors import BuildError
from pfaffian.kernel.program.ops import ALIASES, NAME_OF_CODE, OPS
from pfaffian.kernel.program.program import Program, Step
from pfaffian.kernel.program.reciprocal import share_reciprocals
from pfaffian.kernel.program.selection import select

_CALL = re.compile(r"= (\w+)\(")
_LOCK = threading.Lock()  # CasADi's symbols are not thread-safe.


def trace(function: ca.Function) -> Program:
    """The Program of an SX Function. Inputs and outputs become dense columns, matrices column by column.

    Functions with the option never_inline stay calls. Raises BuildError: a Function that is not of SX, an operation without a
    printer, a constant that is not finite, two different callees of one name.
    """
    with _LOCK:
        return _Tracer({}).program(function, dense=True).check()


class _Tracer:
    """One trace.   done: name of a callee -> its Function and Program, of those traced so far."""

    def __init__(self, done: dict[str, tuple[ca.Function, Program]]) -> None:
        self.done = done

    def program(self, function: ca.Function, dense: bool) -> Program:
        if not function.is_a("SXFunction"):
            raise BuildError(f"{function.name()} is not a Function of SX: build it from casadi.SX symbols")
        layout_in = [_layout(function.sparsity_in(i), dense) for i in range(function.n_in())]
        layout_out = [_layout(function.sparsity_out(i), dense) for i in range(function.n_out())]
        listing = _Listing(function)
        callees = [self.callee(function, name) for name in listing.callees]
        return select(share_reciprocals(listing.program(layout_in, layout_out, callees)))

    def callee(self, caller: ca.Function, name: str) -> Program:
        found = [f for f in caller.find_functions() if f.name() == name]
        if not found:
            raise BuildError(f"{caller.name()} calls {name}, which CasADi does not give out")
        if any(f.__hash__() != found[0].__hash__() for f in found):
            raise BuildError(f"two different functions are called {name}: give each callee its own name")
        if name in self.done:
            function, program = self.done[name]
            if function.__hash__() != found[0].__hash__():
                raise BuildError(f"two different functions are called {name}: give each callee its own name")
            return program
        program = self.program(found[0], dense=False)
        self.done[name] = found[0], program
        return program


def _layout(sparsity: ca.Sparsity, dense: bool) -> tuple[int, list[int]]:
    """Length of the dense column, and the index in it of each structural nonzero."""
    if dense and not sparsity.is_dense():
        return sparsity.numel(), sparsity.find()
    return sparsity.nnz(), list(range(sparsity.nnz()))


class _Listing:
    """The instruction list of one Function."""

    def __init__(self, function: ca.Function) -> None:
        self.function = function
        self.n = function.n_instructions()
        self.codes = [function.instruction_id(i) for i in range(self.n)]
        self.constants: dict[str, int] = {}
        self.call_of: dict[int, str] = {}
        if ca.OP_CALL in self.codes:
            # Names of inputs and outputs precede the list and may contain anything, so lines are counted from its end.
            lines = function.str(True).rstrip("\n").split("\n")[-self.n :]
            for i, code in enumerate(self.codes):
                if code == ca.OP_CALL:
                    match = _CALL.search(lines[i])
                    if match is None:
                        raise BuildError(f"{function.name()}: cannot read which function instruction {i} calls")
                    self.call_of[i] = match.group(1)
        self.callees = sorted(set(self.call_of.values()))

    def program(self, layout_in: list, layout_out: list, callees: list[Program]) -> Program:
        values = self._constants()
        n_in = sum(length for length, _ in layout_in)
        starts = [sum(length for length, _ in layout_in[:i]) for i in range(len(layout_in))]
        number = {text: n_in + i for i, text in enumerate(values)}
        zero = number.get((0.0).hex(), -1)
        outputs = [[zero] * length for length, _ in layout_out]
        steps = self._steps(layout_in, layout_out, starts, number, outputs, callees, n_in + len(values))
        constants = tuple(values.values())
        if any(v < 0 for output in outputs for v in output):
            return _with_zero(n_in, layout_in, constants, steps, outputs, callees)
        inputs = tuple(length for length, _ in layout_in)
        return Program(inputs, constants, tuple(steps), tuple(map(tuple, outputs)), tuple(callees))

    def _constants(self) -> dict[str, float]:
        values: dict[str, float] = {}
        for i, code in enumerate(self.codes):
            if code == ca.OP_CONST:
                value = self.function.instruction_constant(i)
                values[value.hex()] = value
        return values

    def _steps(
        self,
        layout_in: list,
        layout_out: list,
        starts: list[int],
        number: dict[str, int],
        outputs: list[list[int]],
        callees: list[Program],
        known: int,
    ) -> list[Step]:
        f, work, steps = self.function, {}, []  # type: ignore[var-annotated]
        for i, code in enumerate(self.codes):
            name = NAME_OF_CODE.get(code)
            if name is not None:
                args = tuple([work[a] for a in f.instruction_input(i)[: OPS[name].arity]])
                work[f.instruction_output(i)[0]] = known
                steps.append(Step(name, args, known))
                known += 1
            elif code == ca.OP_INPUT:
                port, k = f.instruction_input(i)
                work[f.instruction_output(i)[0]] = starts[port] + layout_in[port][1][k]
            elif code == ca.OP_OUTPUT:
                port, k = f.instruction_output(i)
                outputs[port][layout_out[port][1][k]] = work[f.instruction_input(i)[0]]
            elif code == ca.OP_CONST:
                work[f.instruction_output(i)[0]] = number[f.instruction_constant(i).hex()]
            elif code == ca.OP_CALL:
                callee = self.callees.index(self.call_of[i])
                steps.append(Step("call", tuple(work[a] for a in f.instruction_input(i)), known, callee))
                for k, w in enumerate(f.instruction_output(i)):
                    work[w] = known + k
                known += callees[callee].n_out
            elif code in ALIASES:
                work[f.instruction_output(i)[0]] = work[f.instruction_input(i)[0]]
            else:
                raise BuildError(f"{f.name()}: {_name_of(code)} has no printer; write it with other operations")
        return steps


def _with_zero(
    n_in: int, layout_in: list, constants: tuple, steps: list[Step], outputs: list, callees: list[Program]
) -> Program:
    """Append the constant 0.0, which structural zeros of an output need, and renumber the values after the constants."""
    zero = n_in + len(constants)

    def shift(v: int) -> int:
        return zero if v < 0 else v + (v >= zero)

    return Program(
        tuple(length for length, _ in layout_in),
        constants + (0.0,),
        tuple(Step(s.op, tuple(map(shift, s.args)), s.result + 1, s.callee) for s in steps),
        tuple(tuple(map(shift, output)) for output in outputs),
        tuple(callees),
    )


def _name_of(code: int) -> Any:
    return next((name for name in dir(ca) if name.startswith("OP_") and getattr(ca, name) == code), f"operation {code}")
