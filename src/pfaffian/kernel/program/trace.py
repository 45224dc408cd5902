"""Tracing: casadi.Function of SX -> Program."""

from __future__ import annotations

import re
import threading
from collections.abc import Sequence
from dataclasses import replace

import casadi as ca
import numpy as np

from pfaffian.errors import BuildError
from pfaffian.kernel.program.listing import Listing
from pfaffian.kernel.program.ops import CALL
from pfaffian.kernel.program.passes import PYTHON, TRANSLATION, Passes
from pfaffian.kernel.program.program import GUARDED, Program, WordSteps

_CALL = re.compile(r"= (\w+)\(")
GUARD = "guarded_"
"""How names of Functions begin whose calls are GUARDED."""

_LOCK = threading.Lock()  # CasADi's symbols are not thread-safe.


def trace(function: ca.Function, passes: Passes = PYTHON, dense: bool = True) -> Program:
    """The Program of a Function of SX. Calls of Functions with the option never_inline stay calls.

    Args:
        function: the Function of SX.
        passes: the passes of the translation, in Python or C.
        dense: whether ports are dense columns, matrices column by column (the default); else they contain only nonzeros.
    Raises BuildError: a Function that is not of SX, an operation that no Program can contain, a constant that is not finite,
    two different callees with the same name.
    """
    with _LOCK:
        return _Tracer({}, passes).program(function, dense)


class _Tracer:
    """The tracing of one Function.   done: {name: (Function, Program)} of the callees traced so far."""

    def __init__(self, done: dict[str, tuple[ca.Function, Program]], passes: Passes) -> None:
        self.done, self.passes = done, passes

    def program(self, function: ca.Function, dense: bool) -> Program:
        """The Program of a Function, after the passes of TRANSLATION."""
        if not function.is_a("SXFunction"):
            raise BuildError(f"{function.name()} is not a Function of SX: build it from casadi.SX symbols")
        records, numbers = instructions(function)
        called = _calls(function, np.flatnonzero(records[:, 0] == ca.OP_CALL).tolist())
        names = sorted(set(called.values()))
        callees = tuple(self.callee(function, name) for name in names)
        calls = {i: names.index(name) for i, name in called.items()}
        program = self.passes["listed"](_listing(function, records, numbers, dense, callees, calls)).check()
        program = _with_guards(program, [i for i, name in enumerate(names) if name.startswith(GUARD)])
        for name in TRANSLATION:
            program = self.passes[name](program)
        return program

    def callee(self, caller: ca.Function, name: str) -> Program:
        """The Program of the Function of this name that `caller` calls, traced once."""
        matches = [f for f in caller.find_functions() if f.name() == name]
        if not matches:
            raise BuildError(f"{caller.name()} calls {name}, which CasADi does not list; write it as a Function of SX")
        if any(f.__hash__() != matches[0].__hash__() for f in matches):
            raise BuildError(f"two different functions are called {name}: give each callee its own name")
        if name in self.done:
            function, program = self.done[name]
            if function.__hash__() != matches[0].__hash__():
                raise BuildError(f"two different functions are called {name}: give each callee its own name")
            return program
        program = self.program(matches[0], dense=False)
        self.done[name] = matches[0], program
        return program


def guarded(name: str, inputs: Sequence[ca.SX], outputs: Sequence[ca.SX]) -> ca.Function:
    """A Function whose calls are left out where the first input, a number, is zero in all runs that are computed together. Its
    results in runs where it is zero are any numbers: select others there."""
    return ca.Function(f"{GUARD}{name}", inputs, outputs, {"never_inline": True})


def _with_guards(program: Program, callees: Sequence[int]) -> Program:
    """The program with the calls of these callees GUARDED."""
    if not callees:
        return program
    words, heads = program.words.copy(), program.heads
    calls = heads[words[heads] == CALL]
    words[calls[np.isin(words[calls + 1], callees)] + 2] = GUARDED
    return replace(program, steps=WordSteps(words, len(program.steps), program.first_result, program.sizes))


def _calls(function: ca.Function, at: Sequence[int]) -> dict[int, str]:
    """{index of an instruction: name of the function that it calls}.   at: indices of the calls.

    Raises BuildError: a name cannot be read.
    """
    if not at:
        return {}
    # Names of inputs and outputs precede the list and may contain any text, so lines are counted from the end.
    lines = function.str(True).rstrip("\n").split("\n")[-function.n_instructions() :]
    called = {i: match.group(1) for i in at if (match := _CALL.search(lines[i]))}
    if len(called) != len(at):
        raise BuildError(f"{function.name()}: cannot read which function an instruction calls")
    return called


def _listing(
    function: ca.Function,
    records: np.ndarray,
    numbers: Sequence[float],
    dense: bool,
    callees: tuple[Program, ...],
    called: dict[int, int],
) -> Listing:
    """The instruction list of the Function.   records, numbers: its `instructions`.
    called: {index of an instruction: index of the callee that it calls}."""
    n_in, n_out = function.n_in(), function.n_out()
    inputs, of_input = _layout([function.sparsity_in(i) for i in range(n_in)], dense)
    outputs, of_output = _layout([function.sparsity_out(i) for i in range(n_out)], dense)
    values = {number.hex(): number for number in numbers}
    values.setdefault((0.0).hex(), 0.0)  # for structural zeros, and for a - a that `simplify` finds
    place = {text: sum(inputs) + i for i, text in enumerate(values)}
    calls = [(callee, function.instruction_input(i), function.instruction_output(i)) for i, callee in called.items()]
    constants = [place[number.hex()] for number in numbers]
    ports = inputs, outputs, of_input, of_output
    return Listing(function.name(), records, function.sz_w(), *ports, tuple(values.values()), constants, calls, callees)


def _layout(ports: list[ca.Sparsity], dense: bool) -> tuple[tuple[int, ...], list[list[int]]]:
    """Length of each port as a column, and for each of its structural nonzeros the index among the entries of all ports."""
    lengths = tuple(port.numel() if dense else port.nnz() for port in ports)
    begin = [sum(lengths[:i]) for i in range(len(ports))]
    entries = (port.find() if dense and not port.is_dense() else range(port.nnz()) for port in ports)
    return lengths, [[start + k for k in chosen] for start, chosen in zip(begin, entries, strict=True)]


def instructions(function: ca.Function) -> tuple[np.ndarray, list[float]]:
    """The records of the Listing of a Function of SX, and the values of its constant instructions, in order."""
    n = function.n_instructions()
    serialised = _serialised(function) if n >= MANY else None
    records = _records(function, range(n)) if serialised is None else serialised
    constants = np.flatnonzero(records[:, 0] == ca.OP_CONST).tolist()
    return records, [function.instruction_constant(i) for i in constants]


def codes_of(function: ca.Function) -> list[int]:
    """The codes of the instructions of a Function of SX, in order: a third of the time of `instructions`."""
    return list(map(function.instruction_id, range(function.n_instructions())))


def constants_of(function: ca.Function) -> list[float]:
    """The values of the constant instructions of a Function of SX, in order."""
    return [function.instruction_constant(i) for i, code in enumerate(codes_of(function)) if code == ca.OP_CONST]


MANY = 200
"""Number of instructions from which on all are read at once, from the serialised Function."""

COMPARED = 12
"""Number of instructions that are also read one by one and compared with those from the serialised Function."""


def _serialised(function: ca.Function) -> np.ndarray | None:
    """The records, read from the serialised Function; None if they are not found there.

    CasADi writes a byte as two letters, and the instructions one after another, each as four numbers of 32 bits. Four
    instructions that are read one by one serve to find the place, and COMPARED others to confirm it.
    """
    letters = np.frombuffer(function.serialize().encode("latin-1"), np.uint8) - ord("a")
    data = (letters[0::2] | letters[1::2] << 4).tobytes()
    n = function.n_instructions()
    chosen = [i for i in np.linspace(0, n - 1, COMPARED).astype(int).tolist() if function.instruction_id(i) not in _OTHERS]
    near = next((i for i in range(n - 4) if all(function.instruction_id(i + k) not in _OTHERS for k in range(4))), None)
    if near is None or not chosen:
        return None
    known, anchor = _records(function, chosen), _records(function, range(near, near + 4)).astype("<i4").tobytes()
    at = data.find(anchor)
    while at >= 0:
        begin = at - 16 * near
        if begin >= 0 and begin + 16 * n <= len(data):
            records = np.frombuffer(data[begin : begin + 16 * n], "<i4").reshape(n, 4)
            if np.array_equal(records[chosen], known):
                return records.astype(np.int32)
        at = data.find(anchor, at + 1)
    return None


_OTHERS = (ca.OP_CONST, ca.OP_CALL)  # instructions whose serialised numbers differ from their record


def _records(function: ca.Function, chosen: Sequence[int]) -> np.ndarray:
    """The records of the chosen instructions, read one by one."""
    rows = []
    for i in chosen:
        code, given, made = function.instruction_id(i), function.instruction_input(i), function.instruction_output(i)
        if code == ca.OP_OUTPUT:
            rows.append((code, made[0], given[0], made[1]))
        elif code in _OTHERS:
            rows.append((code, made[0], 0, 0))
        else:
            rows.append((code, made[0], given[0], given[-1]))
    return np.array(rows, np.int32).reshape(-1, 4)
