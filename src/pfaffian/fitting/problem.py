"""The least-squares problem of a fit: residuals of all segments, and one small triangle for each in place of its Jacobian."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pfaffian.fitting.determined import typical
from pfaffian.fitting.prediction import MeasuredSystem, TangentDirections, predict
from pfaffian.fitting.records import CheckedRecord, Measurements
from pfaffian.fitting.segments import ON_GRID, STENCIL, Segments, input_integral, weights
from pfaffian.fitting.starts import Freedom, closed, freedom
from pfaffian.fitting.unknowns import UnknownNumber, lateness
from pfaffian.kernel import Span

BLOCK = 64
"""Segments predicted at once, which bounds the memory."""

HUBER = 3.0
"""Residuals beyond this many standard deviations count by their size instead of their square."""


class FitProblem(NamedTuple):
    """What a fit compares.   free: indices of the parameters that are fitted.   p: (np,) values of all of them.
    robust: whether residuals beyond HUBER count less."""

    of: MeasuredSystem
    layout: Measurements
    records: tuple[CheckedRecord, ...]
    segments: Segments
    free: tuple[int, ...]
    p: np.ndarray
    unknowns: tuple[UnknownNumber, ...]
    robust: bool

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the numbers theta: the fitted parameters, then the unknowns."""
        return tuple(self.of.s.mechanism.p_names[i] for i in self.free) + tuple(x.name for x in self.unknowns)

    def at(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """All parameters (np,) and the unknowns."""
        p = self.p.copy()
        p[list(self.free)] = theta[: len(self.free)]
        return p, theta[len(self.free) :]

    def typical(self, theta: np.ndarray) -> np.ndarray:
        """(n,) sizes to which changes of the numbers are compared."""
        return typical(theta, np.append(self.of.s.mechanism.p_defaults[list(self.free)], [x.default for x in self.unknowns]))


class Fitted(NamedTuple):
    """A problem at some numbers.

    x: (segments, nx) starts on the constraints.   basis: (segments, nx, k) directions in which they are free.
    triangles: (segments, k + n + 1, k + n + 1), R of the weighted [d/dstarts, d/dtheta, residual], as measured - predicted.
    cost: the sum of squares, or of Huber's function, of weighted residuals; infinite if a segment stopped.
    square: (ny,) sum of squared residuals of each measured number, those beyond HUBER cut.   counts: (ny,) of samples.
    residual: (segments, samples, ny), nan where nothing is measured.   deviation: (ny,) of the weights.
    """

    x: np.ndarray
    basis: np.ndarray
    triangles: np.ndarray
    cost: float
    square: np.ndarray
    counts: np.ndarray
    residual: np.ndarray
    deviation: np.ndarray


def evaluate(problem: FitProblem, theta: np.ndarray, x: np.ndarray, deviation: np.ndarray) -> Fitted | None:
    """The problem at numbers theta, starts x (segments, nx) and standard deviations (ny,); None if a motion fails."""
    p, _ = problem.at(theta)
    m, begin = problem.of.s.mechanism, problem.segments.begin
    x, left = closed(m, x, p, begin)
    if not np.isfinite(x).all() or (left > 1e-6).any():
        return None
    free = freedom(m, x, p, begin)
    if not np.isfinite(free.by_p).all():
        return None
    blocks = list[_BlockOfSegments]()
    for first in range(0, len(x), BLOCK):
        block = _block(problem, theta, x, free, slice(first, first + BLOCK), deviation)
        if block is None:
            return None
        blocks.append(block)
    triangles, residual = (np.concatenate(x) for x in ([b.triangles for b in blocks], [b.residual for b in blocks]))
    cost, square = sum(b.cost for b in blocks), sum((b.square for b in blocks), np.zeros(len(deviation)))
    counts = np.isfinite(residual).sum(axis=(0, 1))
    return Fitted(x, free.basis, triangles, cost, square, counts, residual, deviation)


class _BlockOfSegments(NamedTuple):
    triangles: np.ndarray
    cost: float
    square: np.ndarray
    residual: np.ndarray


def _block(
    problem: FitProblem, theta: np.ndarray, x: np.ndarray, free: Freedom, which: slice, deviation: np.ndarray
) -> _BlockOfSegments | None:
    """The part of `Fitted` of some segments."""
    r, J = residuals(problem, theta, x[which], Freedom(free.basis[which], free.by_p[which]), which)
    if r is None:
        return None
    measured = np.isfinite(r)
    scaled = np.where(measured, r, 0.0) / deviation
    size = np.abs(scaled)
    beyond = size > HUBER if problem.robust else np.zeros_like(measured)
    cost = float(np.where(beyond, HUBER * (2 * size - HUBER), scaled**2).sum())
    square = (np.minimum(size, HUBER if problem.robust else np.inf) ** 2).sum(axis=(0, 1)) * deviation**2
    root = np.where(measured, np.sqrt(np.where(beyond, HUBER / np.maximum(size, HUBER), 1.0)), 0.0) / deviation
    rows = np.concatenate([J, np.where(measured, r, 0.0)[..., None]], axis=3) * root[..., None]
    rows = rows.reshape(len(rows), -1, rows.shape[3])
    if rows.shape[1] < rows.shape[2]:
        rows = np.pad(rows, ((0, 0), (0, rows.shape[2] - rows.shape[1]), (0, 0)))
    return _BlockOfSegments(np.asarray(np.linalg.qr(rows, mode="r")), cost, square, r)


def residuals(
    problem: FitProblem, theta: np.ndarray, x: np.ndarray, free: Freedom, which: slice
) -> tuple[np.ndarray | None, np.ndarray]:
    """Measured minus predicted (segments, samples, ny), nan where nothing is measured, and the derivatives of the prediction

    (segments, samples, ny, k + n) by the starts and by theta; (None, _) if a segment stopped.
    """
    p, values = problem.at(theta)
    segments, inputs = problem.segments.take(which), [u for u in problem.unknowns if u.signal == "u"]
    along = TangentDirections(free.basis.shape[2], problem.free, len(inputs))
    dx = np.concatenate([free.basis, free.by_p[:, :, list(problem.free)]], axis=2)
    u = _inputs(problem, segments, inputs, values)
    t0 = segments.begin[:, None]
    motion = predict(
        problem.of, along, x, dx, u, np.hstack([np.tile(p, (len(x), 1)), t0]), Span(0.0, segments.h, segments.steps)
    )
    if motion.stopped.any():
        return None, motion.dy
    return _compared(problem, segments, motion.y, motion.dy, values)


def _inputs(problem: FitProblem, segments: Segments, inputs: list[UnknownNumber], values: np.ndarray) -> np.ndarray:
    """(steps, segments, nw, 1 + unknowns) means of the inputs over each step, and their derivatives by the unknowns."""
    nw = len(problem.layout.u_names)
    found = np.zeros((segments.steps, segments.runs, nw, 1 + len(inputs)))
    if not nw:
        return found
    late = lateness(inputs, values[: len(inputs)], segments.record)
    times = segments.begin + late + segments.h * np.arange(segments.steps)[:, None]
    raw, rate = np.zeros(found.shape[:3]), np.zeros(found.shape[:3])
    for k in np.unique(segments.record):
        mine = segments.record == k
        raw[:, mine], rate[:, mine] = input_integral(problem.records[k]).over(times[:, mine], segments.h)
    gain, offset = np.ones(nw), np.zeros((segments.runs, nw))
    for j, (x, value) in enumerate(zip(inputs, values, strict=False), start=1):
        mine = x.concerns(segments.record)
        if x.shifts:
            found[..., j][:, mine] = rate[:, mine]
        elif x.word == "gain":
            gain[x.entry] = value
            found[:, :, x.entry, j] = raw[:, :, x.entry]
        else:
            offset[mine, x.entry] += value
            found[:, mine, x.entry, j] = 1.0
    found[..., 0] = raw * gain + offset
    found[..., 1:] *= np.where([x.shifts for x in inputs], gain[:, None], 1.0)
    return found


def _compared(
    problem: FitProblem, segments: Segments, y: np.ndarray, dy: np.ndarray, values: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Measured minus predicted, and the derivatives of the predicted, at the times of the samples."""
    n_inputs = sum(x.signal == "u" for x in problem.unknowns)
    sensors, known = problem.unknowns[n_inputs:], dy.shape[3]
    predicted, J = np.zeros_like(segments.y), np.zeros((*segments.y.shape, known + len(sensors)))
    for signal, at in problem.layout.slices.items():
        mine = [
            (known + j, x, v) for j, (x, v) in enumerate(zip(sensors, values[n_inputs:], strict=True)) if x.signal == signal
        ]
        late = lateness([x for _, x, _ in mine], [v for *_, v in mine], segments.record)
        value, slope, rate = sampled(segments, y[:, :, at], dy[:, :, at], late, any(x.shifts for _, x, _ in mine))
        gain, offset = np.ones(at.stop - at.start), np.zeros((segments.runs, at.stop - at.start))
        for column, x, v in mine:
            which = x.concerns(segments.record)
            if x.shifts:
                J[..., column][which, :, at] = -rate[which]
            elif x.word == "gain":
                gain[x.entry] = v
                J[:, :, at.start + x.entry, column] = value[:, :, x.entry]
            else:
                offset[which, x.entry] += v
                J[which, :, at.start + x.entry, column] = 1.0
        predicted[:, :, at] = value * gain + offset[:, None]
        J[:, :, at, :known] = slope * gain[:, None]
        J[:, :, at, known:] *= np.where([x.shifts for x in sensors], gain[:, None], 1.0)
    measured = _nearest_turn(problem, segments.y, predicted)
    return measured - predicted, J


def _nearest_turn(problem: FitProblem, measured: np.ndarray, predicted: np.ndarray) -> np.ndarray:
    """Measured values, with the sign of each quaternion that is nearest to the predicted one."""
    at = problem.layout.slices.get("q")
    turns = problem.of.s.mechanism.quaternions.values() if at else ()
    for turn in turns:
        here = slice(at.start + turn.start, at.start + turn.stop)  # type: ignore[union-attr]
        sign = np.where((measured[:, :, here] * predicted[:, :, here]).sum(axis=2, keepdims=True) < 0, -1.0, 1.0)
        measured = measured.copy()
        measured[:, :, here] *= sign
    return measured


def sampled(
    segments: Segments, y: np.ndarray, dy: np.ndarray, late: np.ndarray, rates: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Predictions at the samples, their derivatives, and, if wanted, their rates: (segments, samples, ny[, directions]).

    late: (segments,) by which the samples are [s].
    """
    at, runs = segments.at - late[:, None], np.arange(segments.runs)[:, None]
    step = np.rint(at / segments.h).astype(int)
    within = step.min() >= 0 and step.max() <= segments.steps
    if not rates and within and np.abs(at - step * segments.h).max() < ON_GRID * segments.h:
        return y[step, runs], dy[step, runs], np.zeros((*at.shape, y.shape[2]))
    base, w, dw = weights(at, segments.h, segments.steps)
    value, slope, rate = (np.zeros((*at.shape, *of.shape[2:])) for of in (y, dy, y))
    for j in STENCIL:
        value += w[..., j, None] * y[base + j, runs]
        slope += w[..., j, None, None] * dy[base + j, runs]
        rate += dw[..., j, None] * y[base + j, runs]
    return value, slope, rate
