"""Small Programs with every operation, in groups of several, and with calls, once and repeated: the interpreter's trial."""

from __future__ import annotations

from pfaffian.kernel.program.ops import OPS
from pfaffian.kernel.program.program import Program, Step

NX, NU, NP = 3, 2, 3


def tried() -> tuple[Program, Program, Program]:
    """A step, an observation and a sampler."""
    return _step(), _observation(), _sampler()


def _settling() -> Program:
    """(a, b, c) -> (floor a, b / 2, c): called again and again, it stops changing where b ends at zero."""
    steps = Step("floor", (0,), 4), Step("mul", (1, 3), 5)
    return Program((3,), (0.5,), steps, ((4, 5, 2),))


def _step() -> Program:
    """(x, u0, u1, p, t, h) -> next x from a repeated call and one called once, and a fault where x0 is above 1."""
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


def _observation() -> Program:
    """(x, u, p, t) -> the results of every operation on neighbouring inputs, and again on these results."""
    inputs = NX, NU, NP, 1
    n = sum(inputs)
    steps: list[Step] = []
    known, values = n + 1, list(range(n + 1))
    for _ in range(2):
        taken, values = values, []
        for i, (name, op) in enumerate(OPS.items()):
            steps.append(Step(name, tuple(taken[(i + k) % len(taken)] for k in range(op.arity)), known))
            values += range(known, known + op.results)
            known += op.results
    return Program(inputs, (0.0,), tuple(steps), (tuple(range(n, known)),))


def _sampler() -> Program:
    """(x, u, p, t) -> x + p, and a fault where t is below u0."""
    inputs = NX, NU, NP, 1
    n = sum(inputs)
    steps = (*(Step("add", (i, NX + NU + i), n + i) for i in range(NX)), Step("lt", (n - 1, NX), n + NX))
    return Program(inputs, (), steps, (tuple(range(n, n + NX)), (n + NX,)))
