"""Inputs on both sides of a Program's decisions: a wrong number in a comparison shows only where its operands are close.

For each comparison the search starts from two runs with different outcomes. It cuts the segment between their inputs where the
operands seem to be equal, and repeats this, for all comparisons at once, until the ends of the segment differ in little more
than the decision. A Program that is called often makes a decision at each call, and a loop at each iteration. For each
comparison the call and iteration that splits the runs most evenly is examined first, because a loop that starts from zeros
decides little in its first iteration.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pfaffian.kernel.build.interpreter import Interpreted
from pfaffian.kernel.program.encode import DECIDING, TURNS, groups_of
from pfaffian.kernel.program.program import Program, callees_first

SIDE = {"lt": np.less, "le": np.less_equal, "fmin": np.less, "fmax": np.greater}
"""{operation: NumPy function of its decision on its operands}."""

MOST = 128
"""Largest number of decisions that are examined."""

EVEN = np.linspace(0, 1, 6)
"""Fractions at which the segments are cut first, their ends included."""

DISTANCES = ((0.02, 0.15), (0.01, 0.1), (1e-3, 0.05), (1e-4, 0.02))
"""For each further cut, distances to both sides of the point where the operands seem equal, as fractions of the segment. They
decrease, because the operands are the more nearly linear the shorter the segment is."""

COARSE = 2
"""Number of cuts after which the ends of the segments are returned too. A number with a small relative error moves the
decision past one of the two pairs of ends."""


def both_sides(program: Program, rows: np.ndarray) -> np.ndarray:
    """Inputs (inputs, 4 n) of runs on both sides of n decisions, at two distances from each.

    rows: (inputs, runs) from which the search starts. For each outcome of a decision it starts from the run with the most
    finite outputs.
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
    for k, distances in enumerate((None, *DISTANCES), 1):
        cuts = EVEN if distances is None else _cuts(ends, distances)
        points = ways[:, :, :1] + (ways[:, :, 1:] - ways[:, :, :1]) * cuts
        side, margin = _decided(interpreted, points, places, ops)
        at = np.argmin(np.hstack([side, np.zeros((len(places), 1), dtype=bool)]), axis=1)[:, None] + [0, 1]
        ways = np.take_along_axis(np.concatenate([ways[:, :, :1], points, ways[:, :, 1:]], axis=2), at[None], axis=2)
        ends = np.take_along_axis(np.hstack([ends[:, :1], margin, ends[:, 1:]]), at, axis=1)
        if k in (COARSE, 1 + len(DISTANCES)):
            pairs += [ways[:, :, 0], ways[:, :, 1]]
    return np.hstack(pairs)


def _chosen(program: Program, sides: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Choose at most MOST decisions: indices in the order of evaluation, and the operation of each.

    The decision of each comparison that splits the runs most evenly is chosen first, then the next one of each comparison.
    sides: (decisions, runs / 8) outcomes, one bit each.
    """
    which, names = _comparisons(program)
    yes = np.bitwise_count(sides).sum(axis=1, dtype=np.int64)
    even = np.minimum(yes, 8 * sides.shape[1] - yes)
    order = np.lexsort((np.arange(len(which)), -even, which))  # by comparison, then the most even decision first
    order = order[even[order] > 0]
    first = np.concatenate([[True], which[order][1:] != which[order][:-1]]) if order.size else np.empty(0, bool)
    starts = np.flatnonzero(first)
    rank = np.arange(len(order)) - np.repeat(starts, np.diff([*starts, len(order)]))  # within each comparison
    chosen = np.linspace(0, len(starts) - 1, min(len(starts), MOST)).astype(int) if len(starts) else starts
    among = np.isin(np.cumsum(first) - 1, chosen)
    best = order[among][np.argsort(rank[among], kind="stable")][:MOST]
    return np.sort(best), names[which[np.sort(best)]]


def _comparisons(program: Program) -> tuple[np.ndarray, np.ndarray]:
    """The comparison (an index) that makes each decision, in the order of evaluation; and the operation of each comparison."""
    names: list[str] = []
    turns: dict[str, np.ndarray] = {}
    for p in callees_first([program]):
        parts = []
        for group in groups_of(p):
            step = p.steps[group[0]]
            if step.op == "call":
                parts.append(np.tile(turns[p.callees[step.callee].digest()], min(abs(step.times), TURNS)))
            elif step.op in DECIDING:
                parts.append(np.arange(len(names), len(names) + len(group)))
                names += [step.op] * len(group)
        turns[p.digest()] = np.concatenate([np.empty(0, np.int64), *parts])
    return turns[program.digest()], np.array(names)


def _cuts(margin: np.ndarray, distances: Sequence[float]) -> np.ndarray:
    """(n, 6) increasing fractions of each segment: around the point where the operands seem equal, and in the longer rest.

    margin: (n, 2) differences of the operands at the ends of each segment.
    """
    with np.errstate(all="ignore"):
        meet = np.nan_to_num(margin[:, 0] / (margin[:, 0] - margin[:, 1]), nan=0.5, posinf=0.5, neginf=0.5)
    rest = np.where(meet > 0.5, meet / 2, (1 + meet) / 2)
    around = [meet + side * x for x in distances for side in (1, -1)]
    return np.clip(np.sort(np.stack([rest, meet, *around], axis=1), axis=1), 0, 1)


def _decided(
    interpreted: Interpreted, points: np.ndarray, places: np.ndarray, ops: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Outcomes of each decision at its points, and differences of its operands there, both (decisions, points).

    points: (inputs, decisions, points) inputs at the points.
    """
    n, k = points.shape[1:]
    operands = interpreted.operands(points.reshape(len(points), -1), places).reshape(n, n, k, 2)
    a, b = np.moveaxis(operands[np.arange(n), np.arange(n)], -1, 0)
    side = np.zeros((n, k), dtype=bool)
    for op in np.unique(ops):
        side[ops == op] = SIDE[op](a[ops == op], b[ops == op])
    with np.errstate(all="ignore"):
        return side, a - b
