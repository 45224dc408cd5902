"""What an integrator takes and returns: the right-hand side at a state, the data of a step, the end of a step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from pfaffian.model.mechanism import Mechanism
from pfaffian.states.variables import Variables


class Stage(NamedTuple):
    """The right-hand side at a state.

    rate: rate of the stepped variables.   faults, sides: see `Command`.   near: factors along which the correction moves.
    terms: the terms that the integrator needs.
    """

    rate: ca.SX
    faults: ca.SX
    sides: ca.SX
    near: ca.SX
    terms: Any


Rate = Callable[[ca.SX, ca.SX, ca.SX], Stage]
"""A right-hand side (x, u, t) -> Stage."""


class Tangent(NamedTuple):
    """Conversions between changes r of the stepped variables of a state x (n, 1) and changes of q and v.

    n: size of the state without the numbers that a law integrates.   corrects: whether a step projects it onto constraints.
    show: (x, t) -> (q, v).   enter: (q, v, t) -> x.   into: (x, t, r) -> (dq, dv).   onto: (x, t, dq, dv) -> r.
    """

    n: int
    corrects: bool
    show: Callable[[ca.SX, ca.SX], tuple[ca.SX, ca.SX]]
    enter: Callable[[ca.SX, ca.SX, ca.SX], ca.SX]
    into: Callable[[ca.SX, ca.SX, ca.SX], tuple[ca.SX, ca.SX]]
    onto: Callable[[ca.SX, ca.SX, ca.SX, ca.SX], ca.SX]


class StepData(NamedTuple):
    """The data of a step from x at t over h, with inputs u0 and u1 at its ends.

    start: right-hand side of the first stage.   f: right-hand side of all other stages.
    settled: (x, t) -> x with quaternions of unit length.   project: (x, t, near) -> x on the constraints.
    limit: a stage whose state has a larger norm has diverged; its faults are not reported as a cause.
    energy: (x, way, t) -> T + V and its slope along way.   tangent: the Tangent of the state.
    iterations: number of Newton iterations in each stage of `tr-bdf2`.
    solved: (k, base, g, u, t) -> k, the solution of k = f(base + g k). Where a step is differentiated, its derivatives are
        those of the solution instead of those of the iterations.
    slopes: (x, u, t) -> (n, n) derivatives of the rates of the stepped variables by these.   coordinates: number of the first
        of them that are coordinates.
    """

    m: Mechanism
    variables: Variables
    start: Rate
    f: Rate
    settled: Callable[[ca.SX, ca.SX], ca.SX]
    project: Callable[[ca.SX, ca.SX, ca.SX], ca.SX]
    energy: Callable[[ca.SX, ca.SX, ca.SX], Any]
    tangent: Tangent
    limit: float
    x: ca.SX
    p: ca.SX
    u0: ca.SX
    u1: ca.SX
    t: ca.SX
    h: ca.SX
    iterations: int
    solved: Callable[[ca.SX, ca.SX, ca.SX, ca.SX, ca.SX], ca.SX]
    slopes: Callable[[ca.SX, ca.SX, ca.SX], ca.SX]
    coordinates: int


class Moved(NamedTuple):
    """The end of a step.

    x: state before the final projection onto the constraints.   faults: faults of all stages.
    near: factors of the last stage, along which the correction moves.   integrator_faults: faults of the integrator itself.
    differences: (n, k) of the stepped variables between the result and results of lower order; None without an estimate.
    fastest: (n, 2) a change of the stepped variables that consists of the fastest motions, and the change to which their rates
        lead within the step; see `turn` of a pair.
    rates: (n, 2) of the stepped variables at the begin and near the end of the step; None for those of a straight path.
    """

    x: ca.SX
    faults: ca.SX
    near: ca.SX
    integrator_faults: ca.SX
    differences: ca.SX | None = None
    fastest: ca.SX | None = None
    rates: ca.SX | None = None


def rates_through(times: Sequence[float], changes: Sequence[ca.SX], h: ca.SX) -> ca.SX:
    """(n, 2) the rates at both ends of the polynomial path through changes (n, 1) of the stepped variables since the begin of a
    step over h, at these times in parts of it."""
    nodes = np.array([0.0, *times])
    paths = [np.poly(np.delete(nodes, i)) / (c - np.delete(nodes, i)).prod() for i, c in enumerate(nodes)][1:]
    slopes = [[float(np.polyval(np.polyder(path), end)) for path in paths] for end in (0.0, 1.0)]
    ends = [sum((w * Z for w, Z in zip(row, changes, strict=True)), ca.SX.zeros(*changes[0].shape)) for row in slopes]
    return ca.horzcat(*ends) / ca.if_else(h > 0, h, 1)


def rates_from(first: ca.SX, change: ca.SX, h: ca.SX) -> ca.SX:
    """(n, 2) the rates at both ends of the quadratic path with the rate `first` at the begin of a step over h and with this
    change."""
    return ca.horzcat(first, 2 * change / ca.if_else(h > 0, h, 1) - first)


def later_faults(s: StepData, faults: ca.SX, first: Stage, x: ca.SX, here: Stage) -> ca.SX:
    """The faults so far, and those with a side that are raised at x or whose side changed sign since the step began."""
    sided, faults = first.sides.sparsity().get_triplet()[0], ca.SX(faults)
    raised, side = faults[sided, 0], first.sides[sided, 0]
    later = ca.logic_or(here.faults[sided, 0] * side != 0, side * here.sides[sided, 0] < 0)
    faults[sided, 0] = ca.if_else(raised != 0, raised, ca.if_else(ca.sumsqr(x) < s.limit**2, later, 0))
    return faults


NO_FAULTS = ca.SX(0, 1)
