"""Inputs on both sides of what a Program decides: a wrong number in a comparison shows only where the comparison is close.

Two runs that a comparison tells apart are taken, and the way between their inputs is cut where its operands seem to meet, for
all comparisons at once and again and again, until both ends of what is left look alike but for the decision. A Program that is
called often decides at each call, and a loop at each turn: of one comparison that call and turn is looked at first in which it
tells the most runs apart. A loop that begins with nothing decides little in its first turn.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from pfaffian.kernel.program.interpret import Lanes, dead_after
from pfaffian.kernel.program.ops import OPS
from pfaffian.kernel.program.program import Program

DECIDING = {"lt": np.less, "le": np.less_equal, "fmin": np.less, "fmax": np.greater}
"""Operation -> what it decides of its operands. All else that decides takes what these gave."""

MOST = 128
"""Decisions that are looked at."""

EVEN = np.linspace(0, 1, 6)
"""Where the ways are cut first, their ends among it."""

BESIDE = ((0.02, 0.15), (0.01, 0.1), (1e-3, 0.05), (1e-4, 0.02))
"""Each further time, how far on both sides of where the operands seem to meet, in parts of what is left: the shorter that is,
the straighter."""

COARSE = 2
"""After how many cuts the ends are tried as well: a number that is wrong by a part of itself moves the decision past one of the
two pairs."""

Path = tuple[tuple[int, int], ...]
"""Where a call is: the steps of the calls around it, and their turns."""


class _Place(NamedTuple):
    """Of a decision.   path: of the call.   step: of the Program that is called."""

    path: Path
    step: int


class _Sides:
    """Of each decision of each Program, of the calls and turns in which it tells runs apart, (runs,) what it decides there."""

    def __init__(self) -> None:
        self.told: dict[tuple[str, int], dict[_Place, np.ndarray]] = {}

    def look(self, program: Program, place: _Place, op: str, args: Sequence[Lanes]) -> None:
        side = DECIDING[op](*args)
        if side.any() and not side.all():
            self.told.setdefault((program.digest(), place.step), {})[place] = side

    def chosen(self) -> dict[_Place, np.ndarray]:
        """MOST of them: of each decision the place in which it tells the most runs apart, then the next of each."""
        turns = [sorted(x.items(), key=lambda x: -min(x[1].sum(), (~x[1]).sum())) for x in self.told.values()]
        turns = [turns[i] for i in np.linspace(0, len(turns) - 1, min(len(turns), MOST)).astype(int)]
        later = [one for k in range(max(map(len, turns), default=0)) for each in turns for one in each[k : k + 1]]
        return dict(later[:MOST])


class _Margins:
    """Of chosen decisions the side (runs,) and by how much the operands differ."""

    def __init__(self, places: Sequence[_Place]) -> None:
        self.wanted = set(places)
        self.found: dict[_Place, tuple[np.ndarray, np.ndarray]] = {}

    def look(self, program: Program, place: _Place, op: str, args: Sequence[Lanes]) -> None:
        if place in self.wanted:
            self.found[place] = DECIDING[op](*args), args[0] - args[1]


def both_sides(program: Program, rows: np.ndarray) -> np.ndarray:
    """(inputs, 4 n) runs on both sides of n decisions that the runs `rows` (inputs, runs) take differently, near and nearer; of
    each two that differ, where the most numbers come out, are what it begins with."""
    seen = _Sides()
    outputs = _outputs(program, rows, seen)
    order = np.argsort(-np.isfinite(outputs).sum(axis=0), kind="stable")
    rows, told = rows[:, order], seen.chosen()
    if not told:
        return np.empty((len(rows), 0))
    ways = np.stack([rows[:, [int(np.argmax(x[order] == side)) for x in told.values()]] for side in (True, False)], axis=2)
    ends, pairs = np.full((len(told), 2), np.nan), []
    for k, beside in enumerate((None, *BESIDE), 1):
        cuts = EVEN if beside is None else _cuts(ends, beside)
        points = ways[:, :, :1] + (ways[:, :, 1:] - ways[:, :, :1]) * cuts
        side, margin = _decided(program, points, list(told))
        at = np.argmin(np.hstack([side, np.zeros((len(told), 1), dtype=bool)]), axis=1)[:, None] + [0, 1]
        ways = np.take_along_axis(np.concatenate([ways[:, :, :1], points, ways[:, :, 1:]], axis=2), at[None], axis=2)
        ends = np.take_along_axis(np.hstack([ends[:, :1], margin, ends[:, 1:]]), at, axis=1)
        if k in (COARSE, 1 + len(BESIDE)):
            pairs += [ways[:, :, 0], ways[:, :, 1]]
    return np.hstack(pairs)


def _cuts(margin: np.ndarray, beside: Sequence[float]) -> np.ndarray:
    """(n, 6) parts of each way, in order: a place in the larger rest, and around where the operands meet.

    margin: (n, 2) by how much they differ at its ends.
    """
    with np.errstate(all="ignore"):
        meet = np.nan_to_num(margin[:, 0] / (margin[:, 0] - margin[:, 1]), nan=0.5, posinf=0.5, neginf=0.5)
    rest = np.where(meet > 0.5, meet / 2, (1 + meet) / 2)
    around = [meet + side * x for x in beside for side in (1, -1)]
    return np.clip(np.sort(np.stack([rest, meet, *around], axis=1), axis=1), 0, 1)


def _decided(program: Program, points: np.ndarray, places: Sequence[_Place]) -> tuple[np.ndarray, np.ndarray]:
    """Of each decision, (decisions, points) both, what it decides at its own points, and by how much its operands differ.

    points: (inputs, decisions, points).
    """
    seen, shape = _Margins(places), points.shape[1:]
    _outputs(program, points.reshape(len(points), -1), seen)
    side, margin = np.zeros(shape, dtype=bool), np.full(shape, np.nan)
    for i, place in enumerate(places):
        if place in seen.found:
            for x, found in zip((side, margin), seen.found[place], strict=True):
                x[i] = np.broadcast_to(found, shape[0] * shape[1]).reshape(shape)[i]
    return side, margin


def _outputs(program: Program, rows: np.ndarray, seen: _Sides | _Margins) -> np.ndarray:
    """(n, runs)."""
    with np.errstate(all="ignore"):
        outputs = _run(program, list(rows), seen, ())
    runs = rows.shape[1]
    return np.array([np.broadcast_to(x, runs) for x in outputs]).reshape(len(outputs), runs)


def _run(program: Program, lanes: Sequence[Lanes], seen: _Sides | _Margins, path: Path) -> list[Lanes]:
    """As `interpret.run`, with a look at what is decided."""
    values = dict(enumerate(lanes)) | {program.n_in + i: np.array([c]) for i, c in enumerate(program.constants)}
    for i, (step, dead) in enumerate(zip(program.steps, dead_after(program), strict=True)):
        args = [values[a] for a in step.args]
        if step.op == "call":
            callee = program.callees[step.callee]
            results = _run(callee, args, seen, (*path, (i, 0)))
            for turn in range(1, step.times):
                if all(np.array_equal(a, b, equal_nan=True) for a, b in zip(args, results, strict=False)):
                    break
                args = results + args[len(results) :]
                results = _run(callee, args, seen, (*path, (i, turn)))
        else:
            if step.op in DECIDING:
                seen.look(program, _Place(path, i), step.op, args)
            made = OPS[step.op].numpy(*args)
            results = [made] if OPS[step.op].results == 1 else list(made)
        values.update(enumerate(results, step.result))
        for v in dead:
            del values[v]
    return [values[v] for output in program.outputs for v in output]
