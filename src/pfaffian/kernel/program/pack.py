"""Programs as bytes and back: so that a Program which was traced once need not be traced again by another process."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

import numpy as np

from pfaffian.kernel.program.ops import OPS
from pfaffian.kernel.program.program import Program, Step, callees_first

NAMES = (*OPS, "call")
NUMBER = {name: i for i, name in enumerate(NAMES)}


def pack(programs: Sequence[Program]) -> bytes:
    """The Programs and all that they call: the count of whole numbers, these, and the constants."""
    order = callees_first(programs)
    index = {program.digest(): i for i, program in enumerate(order)}
    numbers = [len(order), len(programs), *(index[program.digest()] for program in programs)]
    for p in order:
        for part in (p.inputs, (len(p.constants),), [index[c.digest()] for c in p.callees], [len(o) for o in p.outputs]):
            numbers += (len(part), *part)
        numbers += [v for output in p.outputs for v in output]
        numbers.append(len(p.steps))
        for s in p.steps:
            numbers += (NUMBER[s.op], s.callee, s.times, *s.args)
    constants = [c for p in order for c in p.constants]
    return np.int64(len(numbers)).tobytes() + np.array(numbers, np.int32).tobytes() + np.array(constants, float).tobytes()


def unpack(data: bytes) -> tuple[Program, ...]:
    """What was packed."""
    end = 8 + 4 * int(np.frombuffer(data[:8], np.int64)[0])
    numbers = iter(np.frombuffer(data[8:end], np.int32).tolist())
    constants = iter(np.frombuffer(data[end:]).tolist())
    count, tops = next(numbers), next(numbers)
    chosen = [next(numbers) for _ in range(tops)]
    made: list[Program] = []
    for _ in range(count):
        inputs, (width,), callees, sizes = [tuple(islice(numbers, next(numbers))) for _ in range(4)]
        outputs = tuple(tuple(islice(numbers, n)) for n in sizes)
        own = tuple(islice(constants, width))
        called = tuple(made[i] for i in callees)
        made.append(Program(inputs, own, _steps(numbers, sum(inputs) + width, called), outputs, called))
    return tuple(made[i] for i in chosen)


def _steps(numbers: Iterator[int], known: int, callees: tuple[Program, ...]) -> tuple[Step, ...]:
    steps = []
    for _ in range(next(numbers)):
        op, callee, times = NAMES[next(numbers)], next(numbers), next(numbers)
        arity, width = (callees[callee].n_in, callees[callee].n_out) if op == "call" else (OPS[op].arity, OPS[op].results)
        steps.append(Step(op, tuple(islice(numbers, arity)), known, callee, times))
        known += width
    return tuple(steps)
