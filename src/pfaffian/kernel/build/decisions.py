"""Inputs on both sides of a Program's decisions: a wrong number in a comparison shows only where the comparison is close.

For each comparison two runs with different outcomes are taken, and the segment between their inputs is cut where the operands
seem to be equal; for all comparisons at once and repeatedly, until the ends of the remaining segment differ in hardly more than
the decision. A Program that is called often decides at each call, and a loop at each iteration: of each comparison, the call
and iteration that splits the runs most evenly comes first. A loop that starts from zeros decides little in its first iteration.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from pfaffian.kernel.program.interpret import Lanes, dead_after
from pfaffian.kernel.program.ops import OPS
from pfaffian.kernel.program.program import Program

DECIDING = {"lt": np.less, "le": np.less_equal, "fmin": np.less, "fmax": np.greater}
"""Operation -> its decision on its operands. All other decisions use the results of these."""

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

Path = tuple[tuple[int, int], ...]
"""Place of a call: for each enclosing call, the step and the iteration."""


class _Place(NamedTuple):
    """Place of a decision.   path: of the call.   step: in the called Program."""

    path: Path
    step: int


class _Sides:
    """Outcomes (runs,) of each decision of each Program, at the calls and iterations where they differ between runs."""

    def __init__(self) -> None:
        self.sides: dict[tuple[str, int], dict[_Place, np.ndarray]] = {}

    def record(self, program: Program, place: _Place, op: str, args: Sequence[Lanes]) -> None:
        side = DECIDING[op](*args)
        if side.any() and not side.all():
            self.sides.setdefault((program.digest(), place.step), {})[place] = side

    def chosen(self) -> dict[_Place, np.ndarray]:
        """At most MOST outcomes: of each decision the place that splits the runs most evenly, then the next one of each."""
        places = [sorted(x.items(), key=lambda x: -min(x[1].sum(), (~x[1]).sum())) for x in self.sides.values()]
        places = [places[i] for i in np.linspace(0, len(places) - 1, min(len(places), MOST)).astype(int)]
        in_turn = [one for k in range(max(map(len, places), default=0)) for each in places for one in each[k : k + 1]]
        return dict(in_turn[:MOST])


class _Margins:
    """Outcomes (runs,) of chosen decisions, and the differences of their operands."""

    def __init__(self, places: Sequence[_Place]) -> None:
        self.places = set(places)
        self.found: dict[_Place, tuple[np.ndarray, np.ndarray]] = {}

    def record(self, program: Program, place: _Place, op: str, args: Sequence[Lanes]) -> None:
        if place in self.places:
            self.found[place] = DECIDING[op](*args), args[0] - args[1]


def both_sides(program: Program, rows: np.ndarray) -> np.ndarray:
    """Runs (inputs, 4 n) on both sides of n decisions, near and nearer.

    rows: (inputs, runs) that take these decisions differently; of those with each outcome, the run with the most finite outputs
    is where the search starts.
    """
    recorder = _Sides()
    outputs = _outputs(program, rows, recorder)
    order = np.argsort(-np.isfinite(outputs).sum(axis=0), kind="stable")
    rows, sides = rows[:, order], recorder.chosen()
    if not sides:
        return np.empty((len(rows), 0))
    ways = np.stack([rows[:, [int(np.argmax(x[order] == side)) for x in sides.values()]] for side in (True, False)], axis=2)
    ends, pairs = np.full((len(sides), 2), np.nan), []
    for k, beside in enumerate((None, *BESIDE), 1):
        cuts = EVEN if beside is None else _cuts(ends, beside)
        points = ways[:, :, :1] + (ways[:, :, 1:] - ways[:, :, :1]) * cuts
        side, margin = _decided(program, points, list(sides))
        at = np.argmin(np.hstack([side, np.zeros((len(sides), 1), dtype=bool)]), axis=1)[:, None] + [0, 1]
        ways = np.take_along_axis(np.concatenate([ways[:, :, :1], points, ways[:, :, 1:]], axis=2), at[None], axis=2)
        ends = np.take_along_axis(np.hstack([ends[:, :1], margin, ends[:, 1:]]), at, axis=1)
        if k in (COARSE, 1 + len(BESIDE)):
            pairs += [ways[:, :, 0], ways[:, :, 1]]
    return np.hstack(pairs)


def _cuts(margin: np.ndarray, beside: Sequence[float]) -> np.ndarray:
    """(n, 6) fractions of each segment, increasing: around where the operands seem to be equal, and in the larger remainder.

    margin: (n, 2) differences of the operands at its ends.
    """
    with np.errstate(all="ignore"):
        meet = np.nan_to_num(margin[:, 0] / (margin[:, 0] - margin[:, 1]), nan=0.5, posinf=0.5, neginf=0.5)
    rest = np.where(meet > 0.5, meet / 2, (1 + meet) / 2)
    around = [meet + side * x for x in beside for side in (1, -1)]
    return np.clip(np.sort(np.stack([rest, meet, *around], axis=1), axis=1), 0, 1)


def _decided(program: Program, points: np.ndarray, places: Sequence[_Place]) -> tuple[np.ndarray, np.ndarray]:
    """Outcome of each decision at its points, and difference of its operands there, both (decisions, points).

    points: (inputs, decisions, points).
    """
    recorder, shape = _Margins(places), points.shape[1:]
    _outputs(program, points.reshape(len(points), -1), recorder)
    side, margin = np.zeros(shape, dtype=bool), np.full(shape, np.nan)
    for i, place in enumerate(places):
        if place in recorder.found:
            for x, found in zip((side, margin), recorder.found[place], strict=True):
                x[i] = np.broadcast_to(found, shape[0] * shape[1]).reshape(shape)[i]
    return side, margin


def _outputs(program: Program, rows: np.ndarray, recorder: _Sides | _Margins) -> np.ndarray:
    """Outputs (n, runs) for the inputs (n, runs)."""
    with np.errstate(all="ignore"):
        outputs = _run(program, list(rows), recorder, ())
    runs = rows.shape[1]
    return np.array([np.broadcast_to(x, runs) for x in outputs]).reshape(len(outputs), runs)


def _run(program: Program, lanes: Sequence[Lanes], recorder: _Sides | _Margins, path: Path) -> list[Lanes]:
    """Outputs as by `interpret.run`; decisions go to the recorder."""
    values = dict(enumerate(lanes)) | {program.n_in + i: np.array([c]) for i, c in enumerate(program.constants)}
    for i, (step, dead) in enumerate(zip(program.steps, dead_after(program), strict=True)):
        args = [values[a] for a in step.args]
        if step.op == "call":
            callee = program.callees[step.callee]
            results = _run(callee, args, recorder, (*path, (i, 0)))
            for turn in range(1, step.times):
                if all(np.array_equal(a, b, equal_nan=True) for a, b in zip(args, results, strict=False)):
                    break
                args = results + args[len(results) :]
                results = _run(callee, args, recorder, (*path, (i, turn)))
        else:
            if step.op in DECIDING:
                recorder.record(program, _Place(path, i), step.op, args)
            outcome = OPS[step.op].numpy(*args)
            results = [outcome] if OPS[step.op].results == 1 else list(outcome)
        values.update(enumerate(results, step.result))
        for v in dead:
            del values[v]
    return [values[v] for output in program.outputs for v in output]
