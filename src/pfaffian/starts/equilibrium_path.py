"""Equilibria along a parameter: a curve is followed round its folds, and through the points where other curves branch off.

The equations of an equilibrium have a derivative J with respect to (q, s), s the parameter scaled to its range. The null space
of J is one direction: the tangent. After a step along it, Newton iterations with the smallest change return to the curve.
[Allgower and Georg 1990]
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from pfaffian.dynamics.motion import RANK_TOLERANCE
from pfaffian.errors import ModelError, RunError, nearest
from pfaffian.evaluate.single_values import as_flag, as_whole
from pfaffian.model.mechanism import Mechanism, as_mechanism
from pfaffian.model.number import as_float
from pfaffian.starts.equilibrium import Case, SmallMotions, balance, case_of, moved, size_of, small_motions
from pfaffian.terms.traced_now import present

CORRECTIONS, HALVINGS = 12, 12
"""Largest number of Newton iterations after a step, and of halvings of a step before the curve ends."""

BISECTIONS = 40
"""Bisections that locate a branch point or the end of the range."""

SHARPEST = 0.5
"""Smallest cosine of the angle between the tangents of two points, below which the step is halved."""

COINCIDENT = 1e-7
"""Distance, measured as `step` is, below which two points are one."""


class EquilibriumPath(NamedTuple):
    """Equilibria along a parameter, curve after curve.

    parameter: (points,).   q: (points, nq).   stiffness: (points,) the least stiffness [1/s^2].   unstable, neutral: (points,)
    numbers of small motions that grow, and of those without stiffness, such as the spin of a wheel.
    event: (points,) "fold" where the parameter turns back between the previous point and this one, "branch" where another curve
    crosses this one, else "".   curve: (points,) 0 for the first curve, then 1, 2, ...
    q_names: names of the entries of q.
    """

    parameter: np.ndarray
    q: np.ndarray
    stiffness: np.ndarray
    unstable: np.ndarray
    neutral: np.ndarray
    event: np.ndarray
    curve: np.ndarray
    q_names: tuple[str, ...]

    @property
    def stable(self) -> np.ndarray:
        """(points,) whether every small motion has a stiffness above zero."""
        return (self.unstable == 0) & (self.neutral == 0)


class _Point(NamedTuple):
    """A point of a curve.

    q: (nq,).   s: the parameter, 0 to 1 over its range.   tangent: (nv + 1,) of size one.   small: the small motions.
    """

    q: np.ndarray
    s: float
    tangent: np.ndarray
    small: SmallMotions


class _Branch(NamedTuple):
    """A point where other curves cross.   modes: (nv, k) the motions that lose their stiffness there."""

    point: _Point
    modes: np.ndarray


class _Curve(NamedTuple):
    """The equations of the curves.   case: the machine.   at: index of the parameter.   low, high: its range."""

    case: Case
    at: int
    low: float
    high: float

    def case_at(self, s: float) -> Case:
        """The machine at the scaled parameter s."""
        p = self.case.p.copy()
        p[self.at] = self.low + s * (self.high - self.low)
        return replace(self.case, p=p)

    def size(self, change: np.ndarray) -> float:
        """The size of a change (nv + 1,): its largest angle, length over the machine's length, or part of the range."""
        return max(size_of(self.case, change[:-1]), abs(float(change[-1])))

    def cosine(self, a: np.ndarray, b: np.ndarray) -> float:
        """The cosine of the angle between two changes (nv + 1,), lengths relative to the machine's length."""
        x, y = (np.append(change[:-1] / self.case.lengths, change[-1]) for change in (a, b))
        return float(x @ y / max(np.linalg.norm(x) * np.linalg.norm(y), 1e-300))


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
    """Follow equilibria along a parameter, from its value in `parameters` to another value, round folds and onto branches.

    A curve ends where the parameter leaves its range, or after `points` points. Buckling is an example of a branch: at the
    critical load the straight equilibrium becomes unstable, and two curves of bent equilibria begin.

    Args:
        m: the mechanism.
        parameter: name of the parameter.
        to: last value of the parameter.
        q: an equilibrium, or a configuration from which one is searched, as in `equilibrium`.
        hold, u, parameters, t: as in `equilibrium`, for one state. Inputs are zero and t is 0 by default.
        step: largest change between two points, of angles [rad], of lengths over the machine's length and of the parameter over
            its range; 0.05 by default.
        points: largest number of points of a curve; 400 by default.
        switch: whether to follow curves that branch off as well, in both directions. True by default.
    Returns:
        parameter (points,), q (points, nq), the least stiffness, the number of motions that grow, and the event at each point:
        "fold" or "branch". `curve` numbers the curves.
    Raises ModelError: an unknown parameter, a range without length, a batch.
    Raises RunError: no equilibrium is found at the start.

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
    m = present(as_mechanism(m))
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
    curves, branches = [], list[_Branch]()
    main, events, found = _trace(curve, first, h, most)
    curves.append((main, events))
    branches += found if as_flag(switch, "switch") else []
    for point, modes in branches:
        for direction in (sign * mode for mode in modes.T for sign in (1, -1)):
            begin = _onto_branch(curve, point, direction, h)
            if begin is not None:
                others, events, _ = _trace(curve, begin, h, most)
                curves.append(([point, *others], ["", *events]))
    return _path(curve, curves)


def _path(curve: _Curve, curves: list[tuple[list[_Point], list[str]]]) -> EquilibriumPath:
    """The record of the points and events of all curves."""
    points = [(x, event, i) for i, (xs, events) in enumerate(curves) for x, event in zip(xs, events, strict=True)]
    least = [x.small.stiffness.min(initial=np.inf) for x, _, _ in points]
    return EquilibriumPath(
        np.array([curve.low + x.s * (curve.high - curve.low) for x, _, _ in points]),
        np.array([x.q for x, _, _ in points]),
        np.array(least),
        np.array([int(x.small.growing.sum()) for x, _, _ in points]),
        np.array([int(x.small.neutral.sum()) for x, _, _ in points]),
        np.array([event for _, event, _ in points]),
        np.array([i for _, _, i in points]),
        curve.case.m.q_names,
    )


def _trace(curve: _Curve, first: _Point, h: float, limit: int) -> tuple[list[_Point], list[str], list[_Branch]]:
    """The points of a curve from its first one on, the event at each, and the branch points."""
    points, events, branches, step = [first], [""], list[_Branch](), h
    while len(points) < limit:
        last = points[-1]
        new = _next_point(curve, last, step)
        if new is None or curve.cosine(new.tangent, last.tangent) < SHARPEST:
            step /= 2
            if step < h / 2**HALVINGS:
                break
            continue
        if not 0 <= new.s <= 1:
            inside = _bisect(curve, last, step, lambda x: not 0 <= x.s <= 1)[0]
            if curve.size(np.append(np.zeros(curve.case.m.nv), inside.s - last.s)) > COINCIDENT:
                points.append(inside)
                events.append("")
            break
        event = "fold" if new.tangent[-1] * last.tangent[-1] < 0 else ""
        if new.small.sinks != last.small.sinks and not event:
            less, more = sorted(
                _bisect(curve, last, step, lambda x, n=last.small.sinks: x.small.sinks != n), key=lambda x: x.small.sinks
            )
            points, events = [*points, less], [*events, "branch"]
            branches.append(_Branch(less, more.small.modes[:, less.small.sinks : more.small.sinks]))
        points.append(new)
        events.append(event)
        step = min(h, 1.5 * step)
    return points, events, branches


def _bisect(curve: _Curve, last: _Point, step: float, beyond: Any) -> tuple[_Point, _Point]:
    """The points just before and just after `beyond` becomes true within a step from the point `last`, by bisection."""
    low, high = 0.0, step
    before, after = last, last
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        point = _next_point(curve, last, middle)
        if point is None or beyond(point):
            high, after = middle, point or after
        else:
            low, before = middle, point
    return before, after


def _next_point(curve: _Curve, last: _Point, step: float) -> _Point | None:
    """The point of the curve after a step of this size along the tangent; None if none is found."""
    change = step * last.tangent
    return _corrected(curve, moved(curve.case_at(last.s), last.q, change[:-1]), last.s + change[-1], last.tangent)


def _onto_branch(curve: _Curve, point: _Point, mode: np.ndarray, step: float) -> _Point | None:
    """A point of another curve through a branch point, to the side of a motion `mode` (nv,); None if none is found."""
    direction = np.append(mode, 0.0) / max(size_of(curve.case, mode), 1e-300)
    q = moved(curve.case_at(point.s), point.q, step * direction[:-1])
    return _corrected(curve, q, point.s, direction)


def _corrected(curve: _Curve, q: np.ndarray, s: float, direction: np.ndarray) -> _Point | None:
    """The point of the curve near (q, s), with its tangent on the side of `direction`; None if the iterations find none."""
    for _ in range(CORRECTIONS):
        case = curve.case_at(s)
        at = balance(case, q)
        if not np.isfinite(at.out):
            return None
        J, residual = _slopes(curve, at)
        if at.solved:
            return _point(curve, at, q, s, J, direction)
        change = -np.linalg.pinv(J, rcond=1e-10) @ residual
        q, s = moved(case, q, at.back @ change[:-1]), s + float(change[-1]) / at.span
    return None


def _slopes(curve: _Curve, at: Any) -> tuple[np.ndarray, np.ndarray]:
    """J (rows, nv + 1), the derivative with respect to mass-weighted changes and to s times the size of a large one, and the
    residual (rows,). The rows of forces are divided by the largest stiffness."""
    width = (curve.high - curve.low) / at.span
    S = at.Y.T @ at.back.T @ at.slope @ at.back
    size = max(float(np.abs(S).max(initial=0.0)), 1e-300)
    phi = np.hstack([at.rows, width * at.phi_p[:, [curve.at]]])
    force = np.hstack([S, width * at.Y.T @ at.back.T @ at.force_p[:, [curve.at]]]) / size
    return np.vstack([phi, force]), np.concatenate([at.phi, at.r / size])


def _point(curve: _Curve, at: Any, q: np.ndarray, s: float, J: np.ndarray, direction: np.ndarray) -> _Point:
    """The point at (q, s), with its tangent on the side of `direction` and its small motions."""
    sizes = np.linalg.svd(J, compute_uv=False)
    _, _, V = np.linalg.svd(J, full_matrices=True)
    rank = min(int((sizes > RANK_TOLERANCE**2 * sizes.max(initial=0.0)).sum()), J.shape[1] - 1)
    unweighted = np.linalg.inv(at.back)
    along = np.append(unweighted @ direction[:-1], direction[-1] * at.span)
    null = V[rank:]
    # Two curves cross at a branch point; follow the one that continues along `direction`.
    t = null.T @ (null @ along) if len(null) > 1 else null[0] * (np.sign(null[0] @ along) or 1.0)
    tangent = np.append(at.back @ t[:-1], t[-1] / at.span)
    tangent /= max(curve.size(tangent), 1e-300)
    return _Point(q, s, tangent, small_motions(at))
