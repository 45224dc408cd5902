"""The NumPy interpreter: the specification for every printer of C, and the way to run without a compiler."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from pfaffian.kernel.functions.elementary import FUNCTIONS
from pfaffian.kernel.program.ops import OPS, SINGLE
from pfaffian.kernel.program.program import Program, Step

Lanes = np.ndarray  # (batch,) or (1,) for a value that is the same in all runs


def evaluate(program: Program, arrays: Sequence[np.ndarray], kind: Any = np.float64) -> list[np.ndarray]:
    """Evaluate a Program: outputs (batch, m_j) for inputs (batch, n_i) or (n_i,), or (m_j,) if all inputs are 1-D.

    kind: type of the numbers, np.float64 or np.float32.
    """
    single = all(a.ndim == 1 for a in arrays)
    batch = next((a.shape[0] for a in arrays if a.ndim == 2), 1)
    lanes = [a[..., i].reshape(-1) for a in arrays for i in range(a.shape[-1])]
    with np.errstate(all="ignore"):
        results = iter(run(program, lanes, kind))
    outputs = []
    for output in program.outputs:
        table = np.empty((len(output), batch), kind)
        for row in table:
            row[:] = next(results)
        outputs.append(table[:, 0] if single else table.T)
    return outputs


def run(program: Program, lanes: Sequence[Lanes], kind: Any = np.float64) -> list[Lanes]:
    """All outputs of a Program in order, one array each. A value is released after its last use.

    With float32, operations are computed in floats. Elementary functions are computed in double and then rounded.
    """
    constants, orders, results_in_all = _prepared(program, kind)
    values: list[Any] = [*lanes, *constants, *[None] * results_in_all]
    for step, function, results, dead in orders:
        args = [values[a] for a in step.args]
        if function is None:
            outcome = turns(program.callees[step.callee], args, step.times, kind)
            values[step.result : step.result + results] = outcome
        elif results == 1:
            values[step.result] = function(*args)
        else:
            values[step.result : step.result + results] = function(*args)
        for v in dead:
            values[v] = None
    return [values[v] for output in program.outputs for v in output]


def constant(c: float, kind: Any) -> Any:
    """The constant c as a number of the kind; outside the kind's range, its smallest normal or its largest number."""
    limits = np.finfo(kind)
    size = min(max(abs(c), float(limits.tiny)), float(limits.max)) if kind is not np.float64 and c else abs(c)
    return kind(math.copysign(size, c))


def turns(callee: Program, args: list[Lanes], times: int, kind: Any) -> list[Lanes]:
    """Results of calling the callee `times` times on its own results. It stops early once these no longer change, with the
    same bits."""
    word = np.dtype(f"i{np.dtype(kind).itemsize}")
    results = run(callee, args, kind)
    for _ in range(1, times):
        if all(np.array_equal(a.view(word), b.view(word)) for a, b in zip(args, results, strict=False)):
            break
        args = results + args[len(results) :]
        results = run(callee, args, kind)
    return results


_PreparedStep = tuple[Step, Callable[..., Any] | None, int, list[int]]
"""A step, prepared for evaluation: the operation on arrays, None for a call; the number of results; values that no later step
uses."""


@lru_cache(maxsize=64)
def _prepared(program: Program, kind: Any) -> tuple[list[Lanes], list[_PreparedStep], int]:
    """The constants of a Program, its prepared steps, and the number of results of all steps."""
    functions = {op: None if op == "call" else _in_kind(op, kind) for op in program.operations}
    widths = [1 if s.op in SINGLE else program.width(s) for s in program.steps]
    orders = zip(program.steps, [functions[s.op] for s in program.steps], widths, _dead_after(program, widths), strict=True)
    return [np.array([constant(c, kind)]) for c in program.constants], list(orders), sum(widths)


def _in_kind(op: str, kind: Any) -> Callable[..., Any]:
    """The NumPy function of an operation, for arrays of the kind."""
    function = OPS[op].numpy
    if kind is np.float64:
        return function

    def narrow(*args: Lanes) -> Any:
        exact = function(*[a.astype(np.float64) for a in args] if op in FUNCTIONS else args)
        return exact.astype(kind) if OPS[op].results == 1 else [x.astype(kind) for x in exact]

    return narrow


def _dead_after(program: Program, widths: Sequence[int]) -> list[list[int]]:
    """For each step the values that no later step uses.   widths: number of results of each step."""
    last = dict(enumerate((i for i, n in enumerate(widths) for _ in range(n)), program.first_result))
    last |= {a: i for i, step in enumerate(program.steps) for a in step.args}
    for output in program.outputs:
        for v in output:
            last.pop(v, None)
    dead: list[list[int]] = [[] for _ in program.steps]
    for v, i in last.items():
        dead[i].append(v)
    return dead
