"""Instants at which a machine's equations change abruptly with time: forces, motions and references that jump, bend or last
for a short time only. Steps under error control end there, since stages on both sides of a short blow would not see it.

They are looked for in parts of the time whose lengths double, from the begin of the first run on, so that they do not depend on
how long a run lasts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import casadi as ca
import numpy as np

from pfaffian.kernel.remember import remembered
from pfaffian.simulate.step.thresholds import COMPARED

if TYPE_CHECKING:
    from pfaffian.simulate.step.simulation import Simulation

GRID = 2**13
"""Number of cells of a part of the time at whose ends a function is sampled. A smooth pulse that is shorter may be missed."""

FIRST = 2.0**-4
"""Length of the first part [s]."""

BEND = 1e-3
"""Second difference of a function of time between samples, relative to its largest value, that counts as abrupt."""

SIDE, QUIET, ISOLATED = 8, 2, 16.0
"""A second difference is abrupt beside SIDE others only if, on one side, more than QUIET of these are ISOLATED times smaller:
those of a steady oscillation are not."""

HALVINGS = 60
"""Most bisections that locate a jump between two samples."""

MOST = 2_000
"""Largest number of instants in a part of the time; of more, some are taken at even distances."""

APART = 16 * float(np.finfo(float).eps)
"""Distance of these instants from a change, relative to the time."""

ROWS = 8
"""Number of runs with different parameters for which functions of time are sampled."""


def time_marks(s: Simulation, p: np.ndarray, begin: float, end: float) -> np.ndarray:
    """(n,) increasing instants after `begin` [s], one shortly before and one shortly after each change, so that no stage of a
    step stands on it.   p: (runs, np) parameters.   end: of the run [s].

    The instants reach as far beyond the end as the run is long: a step before the end is shortened by no later one.
    """
    functions, switches = functions_of_time(s)
    if not (functions.size1_out(0) or switches.size1_out(0)) or end <= begin:
        return np.zeros(0)
    rows, found, since, long = np.unique(p, axis=0), list[np.ndarray](), 0.0, FIRST
    sizes = np.zeros((min(len(rows), ROWS), functions.size1_out(0), 1))
    while since < 2 * (end - begin):
        a, b = begin + since, begin + long
        abrupt = (_abrupt(functions, row, a, b, size) for row, size in zip(rows[:ROWS], sizes, strict=False))
        marks = np.concatenate([_roots(switches, rows, a, b), *abrupt])
        marks = np.unique(marks[(marks > begin) & (marks >= a) & (marks <= b)])
        found.append(marks if len(marks) <= MOST else marks[np.linspace(0, len(marks) - 1, MOST).astype(int)])
        since, long = long, 2 * long
    marks = np.concatenate(found)
    return np.unique(marks + np.multiply.outer([-APART, APART], np.maximum(np.abs(marks), marks - begin)))


@remembered(64)
def functions_of_time(s: Simulation) -> tuple[ca.Function, ca.Function]:
    """(t, p) -> the largest parts of the rate that depend on time and parameters alone, and the differences of the numbers
    that such parts compare."""
    rhs = s.traced.rhs
    x, w, p, t = (ca.SX.sym(name, rhs.size1_in(i)) for i, name in enumerate("xwpt"))
    values, found, compared = [ca.SX(0)] * rhs.sz_w(), dict[int, ca.SX](), list[ca.SX]()
    timed, alone = [False] * rhs.sz_w(), [True] * rhs.sz_w()
    if any(e.element_hash() == t.element_hash() for e in ca.symvar(ca.vertcat(*rhs(x, w, p, t)[:2]))):
        for k in range(rhs.n_instructions()):
            op, inputs, outputs = rhs.instruction_id(k), rhs.instruction_input(k), rhs.instruction_output(k)
            if op == ca.OP_OUTPUT:
                places, alone_now, timed_now = inputs[:1], False, False
                if outputs[0] > 1:
                    continue
            elif op == ca.OP_INPUT:
                values[outputs[0]] = (x, w, p, t)[inputs[0]][inputs[1]]
                timed[outputs[0]], alone[outputs[0]] = inputs[0] == 3, inputs[0] >= 2
                continue
            elif op == ca.OP_CONST:
                values[outputs[0]], timed[outputs[0]], alone[outputs[0]] = ca.SX(rhs.instruction_constant(k)), False, True
                continue
            else:
                places = inputs
                alone_now, timed_now = all(alone[i] for i in places), any(timed[i] for i in places)
            if op in COMPARED and alone_now and timed_now:
                compared.append(values[places[0]] - values[places[1]])
            if not alone_now or op == ca.OP_CALL:
                for i in places:
                    if alone[i] and timed[i]:
                        found[values[i].element_hash()] = values[i]
            for i in outputs if op != ca.OP_OUTPUT else ():
                alone[i], timed[i] = alone_now and op != ca.OP_CALL, timed_now
                if alone[i]:
                    of = [values[j] for j in places]
                    values[i] = ca.SX.unary(op, *of) if len(of) == 1 else ca.SX.binary(op, *of)
    parts = [part for part in found.values() if part.element_hash() != t.element_hash()]
    return (
        ca.Function("functions", [t, p], [ca.vertcat(ca.SX(0, 1), *parts)]),
        ca.Function("switches", [t, p], [ca.vertcat(ca.SX(0, 1), *compared)]),
    )


def _roots(switches: ca.Function, rows: np.ndarray, begin: float, end: float) -> np.ndarray:
    """Roots of those differences that are linear in time, however close two of them are."""
    if not switches.size1_out(0):
        return np.zeros(0)
    at = np.array([begin, begin + (end - begin) / 3, end])
    found = []
    for row in rows:
        a, between, b = np.array(switches.map(3)(at[None], np.tile(row[:, None], 3))).T
        with np.errstate(all="ignore"):
            linear = np.abs(a + (b - a) / 3 - between) <= 1e-12 * (np.abs(a) + np.abs(b))
            found.append((begin + (end - begin) * a / (a - b))[linear & (a * b <= 0) & (a != b)])
    return np.concatenate(found)


def _abrupt(functions: ca.Function, p: np.ndarray, begin: float, end: float, size: np.ndarray) -> np.ndarray:
    """Instants at which the functions of time jump, bend, or change within few samples.

    size: (functions, 1) their largest values before, which become those up to the end.
    """
    if not functions.size1_out(0):
        return np.zeros(0)

    def at(t: np.ndarray) -> np.ndarray:
        return np.array(functions.map(len(t))(t[None], np.tile(p[:, None], len(t))))

    t = np.linspace(begin, end, GRID + 1)
    with np.errstate(all="ignore"):
        g = at(t)
        size[:] = np.maximum(size, np.nanmax(np.abs(g), axis=1, keepdims=True, initial=0.0))
        bends = np.abs(np.diff(g, n=2, axis=1))
        abrupt = (bends > BEND * np.where(size > 0, size, np.inf)) & (bends > ISOLATED * _quieter_side(bends))
        cells = np.flatnonzero(abrupt.any(axis=0))
        a, b = t[cells], t[cells + 2]
        left, right = g[:, cells], g[:, cells + 2]
        for _ in range(HALVINGS):
            middle = a + (b - a) / 2
            if not ((a < middle) & (middle < b)).any():
                break
            centre = at(middle)
            first = (np.abs(centre - left) / size > np.abs(right - centre) / size).any(axis=0)
            a, left = np.where(first, a, middle), np.where(first, left, centre)
            b, right = np.where(first, middle, b), np.where(first, centre, right)
    return np.concatenate([t[cells + 1], b])


def _quieter_side(bends: np.ndarray) -> np.ndarray:
    """The QUIET-th smallest of the SIDE second differences (functions, cells) beyond the next, on the side where it is smaller.

    A jump changes two neighbours, which is why the next one does not count.
    """
    padded = np.pad(bends, ((0, 0), (SIDE + 1, SIDE + 1)), mode="edge")
    windows = np.sort(np.lib.stride_tricks.sliding_window_view(padded, SIDE, axis=1), axis=2)[:, :, QUIET]
    n = bends.shape[1]
    return np.fmin(windows[:, :n], windows[:, SIDE + 3 : SIDE + 3 + n])
