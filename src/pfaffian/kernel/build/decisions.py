"""Inputs on both sides of a Program's decisions: a wrong number in a comparison shows only where the comparison is close.

For each comparison two runs with different outcomes are taken, and the segment between their inputs is cut where the operands
seem to be equal; for all comparisons at once and repeatedly, until the ends of the remaining segment differ in hardly more than
the decision. A Program that is called often decides at each call, and a loop at each iteration: of each comparison, the call
and iteration that splits the runs most evenly comes first. A loop that starts from zeros decides little in its first iteration.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pfaffian.kernel.build.interpreter import Interpreted
from pfaffian.kernel.program.encode import DECIDING, TURNS, groups_of
from pfaffian.kernel.program.program import Program, callees_first

SIDE = {"lt": np.less, "le": np.less_equal, "fmin": np.less, "fmax": np.greater}
"""Operation -> its decision on its operands."""

MOST = 128
"""Decisions that are examined, at most."""

EVEN = np.linspace(0, 1, 6)
"""Where the segments are cut first, their ends included."""

BESIDE = ((0.02, 0.15), (0.01, 0.1), (1e-3, 0.05), (1e-4, 0.02))
"""At each further cut, distances on both sides of where the operands seem to be equal, as fractions of the remaining segment:
the shorter the segment, the more nearly linear they are."""

COARSE = 2
"""Cuts after which the ends are tried as well: a number with a small relative error moves the decision past one of the two
pairs."""


def both_sides(program: Program, rows: np.ndarray) -> np.ndarray:
    """Runs (inputs, 4 n) on both sides of n decisions, near and nearer.

    rows: (inputs, runs) that take these decisions differently; of those with each outcome, the run with the most finite outputs
    is where the search starts.
    """
    interpreted = Interpreted(program)
    outputs, sides = interpreted.sides(rows)
    places, ops = _chosen(program, sides)
    if not places.size:
        return np.empty((len(rows), 0))
    order = np.argsort(-np.isfinite(outputs).sum(axis=0), kind="stable")
    rows, outcomes = rows[:, order], np.unpackbits(sides[places], axis=1, bitorder="little").astype(bool)[:, order]
    ways = np.stack([rows[:, np.argmax(outcomes == side, axis=1)] for side in (True, False)], axis=2)
    ends, pairs = np.full((len(places), 2), np.nan), []
    for k, beside in enumerate((None, *BESIDE), 1):
        cuts = EVEN if beside is None else _cuts(ends, beside)
        points = ways[:, :, :1] + (ways[:, :, 1:] - ways[:, :, :1]) * cuts
        side, margin = _decided(interpreted, points, places, ops)
        at = np.argmin(np.hstack([side, np.zeros((len(places), 1), dtype=bool)]), axis=1)[:, None] + [0, 1]
        ways = np.take_along_axis(np.concatenate([ways[:, :, :1], points, ways[:, :, 1:]], axis=2), at[None], axis=2)
        ends = np.take_along_axis(np.hstack([ends[:, :1], margin, ends[:, 1:]]), at, axis=1)
        if k in (COARSE, 1 + len(BESIDE)):
            pairs += [ways[:, :, 0], ways[:, :, 1]]
    return np.hstack(pairs)


def _chosen(program: Program, sides: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """At most MOST decisions in the order in which they are taken, and the operation of each: of each comparison the one that
    splits the runs most evenly, then the next one of each.

    sides: (decisions, runs / 8) outcomes, a bit each.
    """
    which, names = _comparisons(program)
    yes = np.bitwise_count(sides).sum(axis=1, dtype=np.int64)
    even = np.minimum(yes, 8 * sides.shape[1] - yes)
    order = np.lexsort((np.arange(len(which)), -even, which))  # comparison by comparison, the most even first
    order = order[even[order] > 0]
    first = np.concatenate([[True], which[order][1:] != which[order][:-1]]) if order.size else np.empty(0, bool)
    starts = np.flatnonzero(first)
    rank = np.arange(len(order)) - np.repeat(starts, np.diff([*starts, len(order)]))  # of each among those of its comparison
    chosen = np.linspace(0, len(starts) - 1, min(len(starts), MOST)).astype(int) if len(starts) else starts
    among = np.isin(np.cumsum(first) - 1, chosen)
    found = order[among][np.argsort(rank[among], kind="stable")][:MOST]
    return np.sort(found), names[which[np.sort(found)]]


def _comparisons(program: Program) -> tuple[np.ndarray, np.ndarray]:
    """Of each decision in turn the number of its comparison; of each comparison its operation."""
    names: list[str] = []
    turns: dict[str, np.ndarray] = {}
    for p in callees_first([program]):
        parts = []
        for group in groups_of(p):
            step = p.steps[group[0]]
            if step.op == "call":
                parts.append(np.tile(turns[p.callees[step.callee].digest()], min(step.times, TURNS)))
            elif step.op in DECIDING:
                parts.append(np.arange(len(names), len(names) + len(group)))
                names += [step.op] * len(group)
        turns[p.digest()] = np.concatenate([np.empty(0, np.int64), *parts])
    return turns[program.digest()], np.array(names)


def _cuts(margin: np.ndarray, beside: Sequence[float]) -> np.ndarray:
    """(n, 6) fractions of each segment, increasing: around where the operands seem to be equal, and in the larger remainder.

    margin: (n, 2) differences of the operands at its ends.
    """
    with np.errstate(all="ignore"):
        meet = np.nan_to_num(margin[:, 0] / (margin[:, 0] - margin[:, 1]), nan=0.5, posinf=0.5, neginf=0.5)
    rest = np.where(meet > 0.5, meet / 2, (1 + meet) / 2)
    around = [meet + side * x for x in beside for side in (1, -1)]
    return np.clip(np.sort(np.stack([rest, meet, *around], axis=1), axis=1), 0, 1)


def _decided(
    interpreted: Interpreted, points: np.ndarray, places: np.ndarray, ops: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Outcome of each decision at its points, and difference of its operands there, both (decisions, points).

    points: (inputs, decisions, points).
    """
    n, k = points.shape[1:]
    operands = interpreted.operands(points.reshape(len(points), -1), places).reshape(n, n, k, 2)
    a, b = np.moveaxis(operands[np.arange(n), np.arange(n)], -1, 0)
    side = np.zeros((n, k), dtype=bool)
    for op in np.unique(ops):
        side[ops == op] = SIDE[op](a[ops == op], b[ops == op])
    with np.errstate(all="ignore"):
        return side, a - b
