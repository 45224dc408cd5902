"""Equilibria along a parameter: a curve that is followed round its folds, and through the points where others branch off.

The equilibrium's rows and their slopes J by (q, s), s the parameter over its range, leave one direction: the tangent. From a
step along it Newton's iterations with the shortest change return to the curve. [Allgower and Georg 1990]
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from pfaffian.dynamics.motion import RANK_TOLERANCE
from pfaffian.errors import ModelError, RunError, nearest
from pfaffian.evaluate.arrays import as_flag, as_whole
from pfaffian.model.mechanism import Mechanism, as_mechanism
from pfaffian.model.number import as_float
from pfaffian.simulate.equilibrium import Case, balance, case_of, moved, size_of

CORRECTIONS, HALVINGS = 12, 12
"""Newton's iterations after a step, and times that a step is halved before the curve is given up."""

LOCATED = 40
"""Halvings that locate a branch point."""

SAME = 1e-7
"""Length of a step, in the units of `step`, below which two points are one."""


class EquilibriumPath(NamedTuple):
    """Equilibria along a parameter, curve after curve.

    parameter: (points,).   q: (points, nq).   stiffness: (points,) the least [1/s^2].   unstable: (points,) motions that grow.
    event: (points,) "fold" where the parameter turns back between this point and the last, "branch" where others
    branch off the first curve, else "".   curve: (points,) 0 for the first curve, then 1, 2, ...
    q_names: of the entries of q.
    """

    parameter: np.ndarray
    q: np.ndarray
    stiffness: np.ndarray
    unstable: np.ndarray
    event: np.ndarray
    curve: np.ndarray
    q_names: tuple[str, ...]

    @property
    def stable(self) -> np.ndarray:
        """(points,) whether every small motion has a stiffness above zero."""
        return self.stiffness > 0


class _Point(NamedTuple):
    """q: (nq,).   s: the parameter, 0 to 1 over its range.   way: (nv + 1,) tangent of size one.   stiffness: (n,), sorted.
    mode: (nv,) motion of the stiffness nearest to zero."""

    q: np.ndarray
    s: float
    way: np.ndarray
    stiffness: np.ndarray
    mode: np.ndarray

    @property
    def unstable(self) -> int:
        return int((self.stiffness < 0).sum())


class _Curve(NamedTuple):
    """case: the machine.   at: number of the parameter.   low, high: of its range."""

    case: Case
    at: int
    low: float
    high: float

    def case_at(self, s: float) -> Case:
        p = self.case.p.copy()
        p[self.at] = self.low + s * (self.high - self.low)
        return replace(self.case, p=p)

    def size(self, change: np.ndarray) -> float:
        """Of a change (nv + 1,): the largest of the angles, of the lengths over the machine's, and of s."""
        return max(size_of(self.case, change[:-1]), abs(float(change[-1])))


def equilibrium_path(
    m: Mechanism,
    parameter: str,
    to: float,
    q: Any = None,
    *,
    hold: Iterable[str] = (),
    u: Any = None,
    parameters: Any = None,
    t: float = 0.0,
    step: float = 0.05,
    points: int = 400,
    switch: bool = True,
) -> EquilibriumPath:
    """Equilibria along a parameter, from its value in `parameters` to another one: round folds, and onto branches.

    A curve ends where the parameter leaves its range, or after so many points. Buckling is such a branch: at the critical load
    the straight machine becomes unstable, and two bent ones begin.

    Args:
        m: the mechanism.
        parameter: name of the parameter.
        to: its last value.
        q: an equilibrium, or where one is searched, as of `equilibrium`.
        hold, u, parameters, t: as of `equilibrium`, of one state. Inputs are zero and t is 0 by default.
        step: largest change between two points, of angles [rad], of lengths over the machine's and of the parameter over its
            range; 0.05 by default.
        points: of a curve at most; 400 by default.
        switch: follow curves that branch off as well, in both directions. True by default.
    Returns:
        parameter (points,), q (points, nq), the least stiffness, the number of motions that grow, and what happened: "fold" or
        "branch". `curve` numbers the curves.
    Raises ModelError: an unknown parameter, a range without length, a batch.
    Raises RunError: no equilibrium is found to begin with.

    Example:
        An upright rod of 1 kg buckles when the stiffness of its hinge falls below m g l:

        >>> import pfaffian as pf
        >>> k = pf.Parameter("k", 15.0, "N m/rad")
        >>> hinge = pf.joint("hinge", "revolute", "world", "rod", axis=(0, 1, 0), stiffness=k)
        >>> m = pf.mechanism("rod", [pf.body("rod", mass=1.0, com=(0, 0, 1))], [hinge], parameters=[k])
        >>> path = pf.calculus.equilibrium_path(m, "k", 5.0)
        >>> print(path.parameter[path.event == "branch"].round(3), int(path.curve.max()) + 1, "curves")
        [9.81] 3 curves
    """
    as_mechanism(m)
    if parameter not in m.p_names:
        raise ModelError(f"equilibrium_path: {m.name!r} has no parameter {parameter!r}; {nearest(parameter, m.p_names)}")
    case, start = case_of(m, q, hold, u, parameters, t)
    at, end, h = m.p_names.index(parameter), as_float(to), as_float(step)
    if not np.isfinite(end) or end == case.p[at]:
        raise ModelError(f"equilibrium_path: {parameter!r} is {case.p[at]:g} already; `to` must be another finite number")
    if not 0 < h <= 1:
        raise ModelError(f"equilibrium_path: step must be above 0 and at most 1, got {step!r}")
    curve, most = _Curve(case, at, case.p[at], end), as_whole(points, "points", most=100_000)
    first = _corrected(curve, start, 0.0, np.eye(m.nv + 1)[-1])
    if first is None:
        raise RunError(f"equilibrium_path: no curve of equilibria of {m.name!r} passes through its start")
    curves, branches = [], list[_Point]()
    main, events, found = _followed(curve, first, h, most)
    curves.append((main, events))
    branches += found if as_flag(switch, "switch") else []
    for point in branches:
        for side in (1, -1):
            begin = _beside(curve, point, side * h)
            if begin is not None:
                others, events, _ = _followed(curve, begin, h, most)
                curves.append(([point, *others], ["", *events]))
    return _path(curve, curves)


def _path(curve: _Curve, curves: list[tuple[list[_Point], list[str]]]) -> EquilibriumPath:
    every = [(x, event, i) for i, (xs, events) in enumerate(curves) for x, event in zip(xs, events, strict=True)]
    least = [x.stiffness.min(initial=np.inf) for x, _, _ in every]
    return EquilibriumPath(
        np.array([curve.low + x.s * (curve.high - curve.low) for x, _, _ in every]),
        np.array([x.q for x, _, _ in every]),
        np.array(least),
        np.array([x.unstable for x, _, _ in every]),
        np.array([event for _, event, _ in every]),
        np.array([i for _, _, i in every]),
        curve.case.m.q_names,
    )


def _followed(curve: _Curve, first: _Point, h: float, most: int) -> tuple[list[_Point], list[str], list[_Point]]:
    """The points of a curve from the first one on, what happened at each, and the branch points."""
    found, events, branches, part = [first], [""], list[_Point](), h
    while len(found) < most:
        last = found[-1]
        new = _stepped(curve, last, part)
        if new is None or new.way @ last.way < 0.5:
            part /= 2
            if part < h / 2**HALVINGS:
                break
            continue
        if not 0 <= new.s <= 1:
            inside = _until(curve, last, part, lambda x: not 0 <= x.s <= 1)[0]
            if curve.size(np.append(np.zeros(curve.case.m.nv), inside.s - last.s)) > SAME:
                found.append(inside)
                events.append("")
            break
        event = "fold" if new.way[-1] * last.way[-1] < 0 else ""
        if new.unstable != last.unstable and not event:
            before, after = _until(curve, last, part, lambda x, n=last.unstable: x.unstable != n)
            crossing = before if abs(_nearest_zero(before)) < abs(_nearest_zero(after)) else after
            found, events = [*found, crossing], [*events, "branch"]
            branches.append(crossing)
        found.append(new)
        events.append(event)
        part = min(h, 1.5 * part)
    return found, events, branches


def _nearest_zero(x: _Point) -> float:
    return float(x.stiffness[np.argmin(np.abs(x.stiffness))])


def _until(curve: _Curve, last: _Point, part: float, beyond: Any) -> tuple[_Point, _Point]:
    """The points just before and after something becomes true within a step."""
    low, high = 0.0, part
    before, after = last, last
    for _ in range(LOCATED):
        middle = (low + high) / 2
        x = _stepped(curve, last, middle)
        if x is None or beyond(x):
            high, after = middle, x or after
        else:
            low, before = middle, x
    return before, after


def _stepped(curve: _Curve, last: _Point, part: float) -> _Point | None:
    """The point of the curve after a step of that size along the tangent."""
    ahead = part * last.way
    return _corrected(curve, moved(curve.case_at(last.s), last.q, ahead[:-1]), last.s + ahead[-1], last.way)


def _beside(curve: _Curve, point: _Point, part: float) -> _Point | None:
    """A point of the other curve through a branch point."""
    way = np.append(point.mode, 0.0) * np.sign(part) / max(size_of(curve.case, point.mode), 1e-300)
    q = moved(curve.case_at(point.s), point.q, abs(part) * way[:-1])
    return _corrected(curve, q, point.s, way)


def _corrected(curve: _Curve, q: np.ndarray, s: float, way: np.ndarray) -> _Point | None:
    """The nearest point of the curve, and its tangent on the side of `way`; None if there is none near."""
    for _ in range(CORRECTIONS):
        case = curve.case_at(s)
        at = balance(case, q)
        if not np.isfinite(at.out):
            return None
        J, residual = _slopes(curve, at)
        if at.solved:
            return _point(curve, at, q, s, J, way)
        change = -np.linalg.pinv(J, rcond=1e-10) @ residual
        q, s = moved(case, q, at.back @ change[:-1]), s + float(change[-1])
    return None


def _slopes(curve: _Curve, at: Any) -> tuple[np.ndarray, np.ndarray]:
    """J (rows, nv + 1) by mass-weighted changes and s, and the residual (rows,); forces over the largest stiffness."""
    width = curve.high - curve.low
    S = at.Y.T @ at.back.T @ at.slope @ at.back
    size = max(float(np.abs(S).max(initial=0.0)), 1e-300)
    phi = np.hstack([at.rows, width * at.phi_p[:, [curve.at]]])
    force = np.hstack([S, width * at.Y.T @ at.back.T @ at.force_p[:, [curve.at]]]) / size
    return np.vstack([phi, force]), np.concatenate([at.phi, at.r / size])


def _point(curve: _Curve, at: Any, q: np.ndarray, s: float, J: np.ndarray, way: np.ndarray) -> _Point:
    sizes = np.linalg.svd(J, compute_uv=False)
    _, _, V = np.linalg.svd(J, full_matrices=True)
    rank = min(int((sizes > RANK_TOLERANCE**2 * sizes.max(initial=0.0)).sum()), J.shape[1] - 1)
    unweighted = np.linalg.inv(at.back)
    along = np.append(unweighted @ way[:-1], way[-1])
    null = V[rank:]
    # At a branch point two curves cross: the one that goes on along `way`.
    t = null.T @ (null @ along) if len(null) > 1 else null[0] * (np.sign(null[0] @ along) or 1.0)
    tangent = np.append(at.back @ t[:-1], t[-1])
    tangent /= max(curve.size(tangent), 1e-300)
    k, W = np.linalg.eigh((at.stiffness + at.stiffness.T) / 2)
    mode = at.back @ at.Y @ W[:, np.argmin(np.abs(k))] if len(k) else np.zeros(curve.case.m.nv)
    return _Point(q, s, tangent, k, mode * (np.sign(mode[np.argmax(np.abs(mode))]) or 1.0))
