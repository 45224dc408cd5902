"""The NumPy interpreter: the specification of every printer, and the way to run without a compiler."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from pfaffian.kernel.ops import OPS
from pfaffian.kernel.program import Program

Lanes = np.ndarray  # (batch,) or (1,) for a value that is the same in all runs


def evaluate(program: Program, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Outputs (batch, m_j) of the Program for inputs (batch, n_i) or (n_i,), float64. All 1-D gives 1-D."""
    single = all(a.ndim == 1 for a in arrays)
    batch = next((a.shape[0] for a in arrays if a.ndim == 2), 1)
    lanes = [a[..., i].reshape(-1) for a in arrays for i in range(a.shape[-1])]
    with np.errstate(all="ignore"):
        results = iter(run(program, lanes))
    outputs = []
    for output in program.outputs:
        table = np.empty((len(output), batch))
        for row in table:
            row[:] = next(results)
        outputs.append(table[:, 0] if single else table.T)
    return outputs


def run(program: Program, lanes: Sequence[Lanes]) -> list[Lanes]:
    """All outputs in a row, one array each. A value is dropped after its last use."""
    values: dict[int, Lanes] = dict(enumerate(lanes))
    values |= {program.n_in + i: np.array([c]) for i, c in enumerate(program.constants)}
    for step, dead in zip(program.steps, _dead_after(program), strict=True):
        args = [values[a] for a in step.args]
        if step.op == "call":
            results = _turns(program.callees[step.callee], args, step.times)
            values.update(enumerate(results, step.result))
        elif OPS[step.op].results == 1:
            values[step.result] = OPS[step.op].numpy(*args)
        else:
            values.update(enumerate(OPS[step.op].numpy(*args), step.result))
        for v in dead:
            del values[v]
    return [values[v] for output in program.outputs for v in output]


def _turns(callee: Program, args: list[Lanes], times: int) -> list[Lanes]:
    """The callee so many times on its own results; fewer where they have come to rest, which changes no bit."""
    results = run(callee, args)
    for _ in range(times - 1):
        if all(np.array_equal(a.view(np.int64), b.view(np.int64)) for a, b in zip(args, results, strict=False)):
            break
        args = results + args[len(results) :]
        results = run(callee, args)
    return results


@lru_cache(maxsize=64)
def _dead_after(program: Program) -> list[list[int]]:
    """For each step the values that nothing after it uses."""
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
