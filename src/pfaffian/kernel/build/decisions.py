"""Inputs on both sides of what a Program decides: a wrong number in a comparison shows only where the comparison is close.

Two runs that a comparison tells apart are taken, and the way between their inputs is cut into sections again and again, for all
comparisons at once, until both ends of what is left look alike but for the decision.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from pfaffian.kernel.program.interpret import Lanes, dead_after, turns
from pfaffian.kernel.program.ops import OPS
from pfaffian.kernel.program.program import Program

DECIDING = {"lt": np.less, "le": np.less_equal, "fmin": np.less, "fmax": np.greater}
"""Operation -> what it decides of its operands. All else that decides takes what these gave."""

MOST = 48
"""Decisions that are looked at."""

POINTS, ROUNDS = 384, 6
"""On all ways together at a time, and how often."""


class _Decision(NamedTuple):
    """Where in the text it stands: a Program, a step of it."""

    program: str
    step: int


def both_sides(program: Program, rows: np.ndarray) -> np.ndarray:
    """(inputs, 2 n) runs on both sides of n decisions that the runs `rows` (inputs, runs) take differently; of each two that
    differ, where the most numbers come out, are what it begins with."""
    taken, outputs = _decisions(program, rows)
    order = np.argsort(-np.isfinite(outputs).sum(axis=0), kind="stable")
    rows, told = rows[:, order], {d: x[order] for d, x in taken.items() if x.any() and not x.all()}
    told = dict(list(told.items())[:: -(-len(told) // MOST) or 1])
    if not told:
        return np.empty((len(rows), 0))
    yes, no = (rows[:, [int(np.argmax(x == side)) for x in told.values()]] for side in (True, False))
    cuts = np.linspace(0.0, 1.0, max(3, POINTS // len(told)))
    for _ in range(ROUNDS):
        points = yes[:, :, None] + (no - yes)[:, :, None] * cuts
        now, _ = _decisions(program, points.reshape(len(rows), -1))
        found = np.array([now[d].reshape(len(told), -1)[i] for i, d in enumerate(told)])
        found[:, 0], found[:, -1] = True, False
        at = np.argmin(found, axis=1)
        yes, no = (np.take_along_axis(points, (at - back)[None, :, None], axis=2)[:, :, 0] for back in (1, 0))
    return np.hstack([yes, no])


def _decisions(program: Program, rows: np.ndarray) -> tuple[dict[_Decision, np.ndarray], np.ndarray]:
    """What is decided in each run, where first it is, and the outputs (n, runs)."""
    seen: dict[_Decision, np.ndarray] = {}
    with np.errstate(all="ignore"):
        outputs = _run(program, list(rows), seen)
    runs = rows.shape[1]
    return (
        {d: np.broadcast_to(x, runs) for d, x in seen.items()},
        np.array([np.broadcast_to(x, runs) for x in outputs]).reshape(len(outputs), runs),
    )


def _run(program: Program, lanes: Sequence[Lanes], seen: dict[_Decision, np.ndarray]) -> list[Lanes]:
    """As `interpret.run`; of calls that are repeated the first is looked into."""
    values = dict(enumerate(lanes)) | {program.n_in + i: np.array([c]) for i, c in enumerate(program.constants)}
    for i, (step, dead) in enumerate(zip(program.steps, dead_after(program), strict=True)):
        args = [values[a] for a in step.args]
        if step.op == "call":
            callee = program.callees[step.callee]
            results = _run(callee, args, seen)
            if step.times > 1:
                results = turns(callee, results + args[len(results) :], step.times - 1, np.float64)
        else:
            if step.op in DECIDING:
                seen.setdefault(_Decision(program.digest(), i), DECIDING[step.op](*args))
            made = OPS[step.op].numpy(*args)
            results = [made] if OPS[step.op].results == 1 else list(made)
        values.update(enumerate(results, step.result))
        for v in dead:
            del values[v]
    return [values[v] for output in program.outputs for v in output]
