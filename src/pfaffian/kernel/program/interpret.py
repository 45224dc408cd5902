"""The NumPy interpreter: the specification of every printer, and the way to run without a compiler."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from pfaffian.kernel.functions.elementary import FUNCTIONS
from pfaffian.kernel.program.ops import OPS
from pfaffian.kernel.program.program import Program

Lanes = np.ndarray  # (batch,) or (1,) for a value that is the same in all runs


def evaluate(program: Program, arrays: Sequence[np.ndarray], kind: Any = np.float64) -> list[np.ndarray]:
    """Outputs (batch, m_j) of the Program for inputs (batch, n_i) or (n_i,), in numbers of the kind; (m_j,) if all are 1-D."""
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
    """All outputs in order, one array each. A value is dropped after its last use.

    In float32 every operation is one of floats, except elementary functions, which are those of the double, rounded.
    """
    values: dict[int, Lanes] = dict(enumerate(lanes))
    values |= {program.n_in + i: np.array([constant(c, kind)]) for i, c in enumerate(program.constants)}
    for step, dead in zip(program.steps, dead_after(program), strict=True):
        args = [values[a] for a in step.args]
        if step.op == "call":
            results = turns(program.callees[step.callee], args, step.times, kind)
        else:
            results = _operation(step.op, args, kind)
        values.update(enumerate(results, step.result))
        for v in dead:
            del values[v]
    return [values[v] for output in program.outputs for v in output]


def constant(c: float, kind: Any) -> Any:
    """c in numbers of the kind; out of their range, the smallest or the largest of them."""
    limits = np.finfo(kind)
    size = min(max(abs(c), float(limits.tiny)), float(limits.max)) if kind is not np.float64 and c else abs(c)
    return kind(math.copysign(size, c))


def _operation(op: str, args: list[Lanes], kind: Any) -> list[Lanes]:
    if kind is not np.float64:
        args = [a.astype(np.float64) for a in args] if op in FUNCTIONS else args
    results = OPS[op].numpy(*args)
    results = [results] if OPS[op].results == 1 else list(results)
    return results if kind is np.float64 else [r.astype(kind) for r in results]


def turns(callee: Program, args: list[Lanes], times: int, kind: Any) -> list[Lanes]:
    """The callee applied so many times to its own results; fewer times if these stop changing, which changes no bit."""
    word = np.dtype(f"i{np.dtype(kind).itemsize}")
    results = run(callee, args, kind)
    for _ in range(times - 1):
        if all(np.array_equal(a.view(word), b.view(word)) for a, b in zip(args, results, strict=False)):
            break
        args = results + args[len(results) :]
        results = run(callee, args, kind)
    return results


@lru_cache(maxsize=64)
def dead_after(program: Program) -> list[list[int]]:
    """For each step the values that it is the last to use."""
    last: dict[int, int] = {}
    for i, step in enumerate(program.steps):
        for r in range(step.result, step.result + program.width(step)):
            last[r] = i
        for a in step.args:
            last[a] = i
    for output in program.outputs:
        for v in output:
            last.pop(v, None)
    dead: list[list[int]] = [[] for _ in program.steps]
    for v, i in last.items():
        dead[i].append(v)
    return dead
