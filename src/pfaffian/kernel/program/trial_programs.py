"""Small Programs on which the interpreter and the passes in C are tested: with every operation, in groups of several steps,
and with calls, single and repeated."""

from __future__ import annotations

from collections.abc import Collection

import casadi as ca
import numpy as np

from pfaffian.kernel.program.listing import Listing
from pfaffian.kernel.program.ops import OPS
from pfaffian.kernel.program.program import Program, Step

NX, NU, NP = 3, 2, 3


def tried(operations: Collection[str] = tuple(OPS)) -> tuple[Program, Program, Program]:
    """The Programs of the interpreter's trial: a step, an observation with these operations, and a sampler."""
    return _step(), _observation(operations), _sampler()


def _settling() -> Program:
    """(a, b, c) -> (floor a, b / 2, c). Repeated on its own results, it stops changing once b has reached zero."""
    steps = Step("floor", (0,), 4), Step("mul", (1, 3), 5)
    return Program((3,), (0.5,), steps, ((4, 5, 2),))


def _step() -> Program:
    """(x, u0, u1, p, t, h) -> next x, from a repeated and a single call, and a fault where the first entry of x is above 1."""
    inputs = NX, NU, NU, NP, 1, 1
    n = sum(inputs)
    steps = (
        Step("call", (0, 1, 2), n + 1, 0, 7),
        Step("call", (3, 5, 7), n + 4, 0),
        Step("add", (n + 1, n + 4), n + 7),
        Step("add", (n + 2, n + 5), n + 8),
        Step("mul", (n + 3, n + 6), n + 9),
        Step("lt", (n, 0), n + 10),
    )
    return Program(inputs, (1.0,), steps, ((n + 7, n + 8, n + 9), (n + 10,)), (_settling(),))


def _observation(operations: Collection[str]) -> Program:
    """(x, u, p, t) -> the results of the operations on neighbouring inputs, then of the operations on these results."""
    return with_each(operations, (NX, NU, NP, 1))


def with_each(operations: Collection[str], inputs: tuple[int, ...]) -> Program:
    """The results of the operations on neighbouring inputs, then of the operations on these results."""
    n = sum(inputs)
    steps: list[Step] = []
    known, values = n + 1, list(range(n + 1))
    for _ in range(2):
        before, values = values, []
        for i, (name, op) in enumerate((name, OPS[name]) for name in operations):
            steps.append(Step(name, tuple(before[(i + k) % len(before)] for k in range(op.arity)), known))
            values += range(known, known + op.results)
            known += op.results
    return Program(inputs, (0.0,), tuple(steps), (tuple(range(n, known)),))


def _sampler() -> Program:
    """(x, u, p, t) -> x + p, and a fault where t is below the first entry of u."""
    inputs = NX, NU, NP, 1
    n = sum(inputs)
    steps = (*(Step("add", (i, NX + NU + i), n + i) for i in range(NX)), Step("lt", (n - 1, NX), n + NX))
    return Program(inputs, (), steps, (tuple(range(n, n + NX)), (n + NX,)))


def passes_tried() -> tuple[Program, ...]:
    """The Programs of the trial of the passes in C: two on which every pass has an effect, and those of `tried`."""
    return _to_be_shorter(), _to_be_rolled(), *tried()


def _to_be_shorter() -> Program:
    """A Program with equal expressions, shared denominators, CasADi's selections, sine and cosine of one angle, and
    differences of equal values with the operations that they make zero."""
    steps, known = [], 4
    a, b, zero = 0, 1, 3

    def new(op: str, *args: int) -> int:
        nonlocal known
        steps.append(Step(op, args, known))
        known += 1
        return known - 1

    first, second = new("mul", a, b), new("mul", b, a)
    nothing = new("sub", first, second)
    sums = [new("add", nothing, a), new("add", b, zero), new("sub", nothing, b), new("mul", b, nothing)]
    sums += [new("add", first, second), new("sub", a, nothing)]
    zeros = [new(op, nothing) for op in ("neg", "sq", "twice", "sqrt")]
    zeros += [new(op, nothing, nothing) for op in ("add", "sub", "mul", "div", "fmax")]
    zeros += [new(op, *args) for op in ("div", "fmin", "mul") for args in ((nothing, a), (a, nothing))]
    quotients = [new("div", first, b), new("div", a, b), new("inv", b), new("div", b, a)]
    yes, no = new("if_else_zero", a, first), new("if_else_zero", new("not", a), b)
    chosen = new("add", no, yes), new("add", yes, yes)
    angles = new("sin", a), new("cos", b), new("cos", a), new("sin", new("sin", a))
    new("sqrt", a)
    outputs = (*sums, *zeros, *quotients), (*chosen, *angles, a, 2)
    return Program((2,), (0.5, 0.0), tuple(steps), outputs).check()


def _to_be_rolled() -> Program:
    """A Program with a chain of three calls, a call that continues from a value used twice, and calls whose further argument
    differs."""
    inner = Program((3,), (), (Step("add", (0, 2), 3), Step("lt", (1, 2), 4)), ((3, 4),))
    steps = (
        Step("call", (0, 1, 0), 2, 0), Step("call", (2, 3, 0), 4, 0), Step("call", (4, 5, 0), 6, 0),
        Step("call", (6, 7, 1), 8, 0), Step("sq", (8,), 10), Step("call", (8, 9, 1), 11, 0),
        Step("call", (11, 12, 1), 13, 0, 3),
    )  # fmt: skip
    return Program((2,), (), steps, ((10, 13), (14, 0)), (inner,)).check()


def listing_tried() -> Listing:
    """A Listing with two inputs, one of them a matrix with structural zeros, constants, a call, a reused place of the work
    vector, and an output with structural zeros."""
    inner = Program((2,), (), (Step("add", (0, 1), 2),), ((2, 0),))
    rows = [
        (ca.OP_INPUT, 0, 0, 1), (ca.OP_INPUT, 1, 1, 0), (ca.OP_CONST, 2, 0, 0), (ca.OP_MUL, 0, 0, 1), (ca.OP_CONST, 3, 0, 0),
        (ca.OP_CALL, 0, 0, 0), (ca.OP_ASSIGN, 3, 1, 1), (ca.OP_OUTPUT, 0, 1, 0), (ca.OP_SQ, 1, 3, 3), (ca.OP_OUTPUT, 1, 1, 1),
        (ca.OP_OUTPUT, 1, 2, 0),
    ]  # fmt: skip
    calls = [(0, [0, 2], [1, -1])]
    ports = (3, 1), (2, 2), [[0, 2], [3]], [[1], [2, 3]]
    return Listing("tried", np.array(rows, np.int32), 4, *ports, (0.5, 0.0), [4, 5], calls, (inner,))
