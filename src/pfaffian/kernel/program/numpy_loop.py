"""The time loop on NumPy arrays: the specification of rollout.h, and the way to run without a compiler."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np

from pfaffian.errors import ModelError, is_one_of
from pfaffian.kernel.program.interpret import evaluate
from pfaffian.kernel.program.program import Program

Hold = Literal["zero", "linear"]
HOLDS = ("zero", "linear")

FIRST_FAULT = 2
"""Status of a step's first fault. The faults of the samplers follow those of the step."""

LARGEST = 2**62
"""Bound of every count, so that the sum of two fits into the integers of the compiled loop."""


class RolloutResult(NamedTuple):
    """What a call of a Rollout returns.

    x: (batch, nx) last good state of each run.   records: (n, batch, ny).   status: (batch,) int32, see `Rollout`.
    stopped: (batch,) step at which the run stopped, or -1.   tier: what computed them: numpy, interpreter or c.
    parts: (rows, 1 + nx) of a single run where they are asked for, else without rows: the index of a step of several calls and
        the state, before each of these calls and after the last.
    """

    x: np.ndarray
    records: np.ndarray
    status: np.ndarray
    stopped: np.ndarray
    tier: str = "numpy"
    parts: np.ndarray = np.empty((0, 0))


LIMIT = 1e12
"""Default limit: a run stops when the magnitude of an entry of its state exceeds it."""


class Span(NamedTuple):
    """The steps that a call of a Rollout computes: k = first ... first + steps - 1, with t_k = t0 + k h.

    t0: time of step 0 [s].   h: step [s].   steps, first: number of steps and the first of them.
    every: the state before each step k with k % every == 0 is recorded.
    last: whether to record the state after the final step too. Without it, successive calls with `first` give the records of
        one call, bit for bit.
    hold: "zero" holds a sample of the inputs during its steps, "linear" interpolates between samples.
    stride: steps from one sample of the inputs to the next; the last sample is held.
    limit: a run stops when |x_i| exceeds it.
    sampling: (period, phase) of each sampler, in steps. A sampler is called at the steps k with k % period == phase, before
        the state is recorded; samplers are called in order. Samples after the final step affect its record only, so a call
        that continues from there takes them again.
    chooser: index of an entry of the state that tells which sample of the inputs a run takes, the last beyond the end of
        these; None: the sample of the time, by `hold` and `stride`.
    until_still: whether runs end that a step leaves as they are, so that their later steps, which must not depend on the time,
        need not be computed.
    """

    t0: float
    h: float
    steps: int
    every: int = 1
    first: int = 0
    last: bool = False
    hold: Hold = "zero"
    stride: int = 1
    limit: float = LIMIT
    sampling: Sequence[tuple[int, int]] = ()
    chooser: int | None = None
    until_still: bool = False

    def recorded(self) -> list[int]:
        """Step indices at which a record is taken."""
        start = -(-self.first // self.every) * self.every
        return list(range(start, self.first + self.steps + bool(self.last), self.every))

    def due(self, k: int) -> list[int]:
        """The samplers that are called at step k."""
        return [j for j, (period, phase) in enumerate(self.sampling) if k >= phase and (k - phase) % period == 0]


def as_span(s: Span) -> Span:
    """The Span with its numbers converted to Python's types. Raises ModelError: a number is out of range."""
    sampling = tuple([(int(n), int(at)) for n, at in s.sampling])
    limit = min(float(s.limit), np.finfo(np.float64).max)
    span = Span(
        float(s.t0), float(s.h), int(s.steps), int(s.every), int(s.first), bool(s.last), s.hold, int(s.stride), limit, sampling,
        None if s.chooser is None else int(s.chooser), bool(s.until_still),
    )  # fmt: skip
    _check_span(span)
    return span


def _check_span(span: Span) -> None:
    """Raise ModelError if a number of the Span is out of range."""
    for period, phase in span.sampling:
        if not 0 <= phase < period <= LARGEST:
            raise ModelError(f"a sampler needs a period of at least one step and a phase below it, got {(period, phase)}")
    if span.steps < 0 or span.every < 1 or span.stride < 1 or span.first < 0:
        raise ModelError("rollout needs steps >= 0, every >= 1, stride >= 1, first >= 0")
    if max(span.steps, span.every, span.stride, span.first) > LARGEST:
        raise ModelError(f"rollout needs steps, every, stride and first of at most {LARGEST}")
    if not is_one_of(span.hold, HOLDS):
        raise ModelError(f"hold {span.hold!r}: choose zero or linear")
    if not (math.isfinite(span.t0) and math.isfinite(span.h)) or math.isnan(span.limit):
        raise ModelError("t0 and h must be finite, limit not nan")
    if span.chooser is not None and span.hold != "zero":
        raise ModelError("samples that the runs choose are held: take hold='zero' with a chooser")
    if span.until_still and span.every != 1:
        raise ModelError("runs that end where they are still repeat their last record: take every=1 with until_still")


def run_loop(
    step: Program,
    observe: Program,
    samplers: Sequence[Program],
    x0: np.ndarray,
    u: np.ndarray,
    p: np.ndarray,
    span: Span,
    result: RolloutResult,
) -> list[np.ndarray]:
    """Run the time loop and fill in the result. Its status and stopped contain those of the previous call. Returns the rows of
    its `parts`, for a single run."""
    batch = len(result.status)
    x = np.array(np.broadcast_to(x0, (batch, x0.shape[-1])))
    records, index, end = iter(result.records), span.recorded(), span.first + span.steps
    recorded, parts, moved = set(index), list[np.ndarray](), True
    first_fault = FIRST_FAULT + len(step.outputs[1]) + np.cumsum([0, *(len(s.outputs[1]) for s in samplers)])
    for k in range(span.first, end + 1):
        t, before = np.array([span.t0 + k * span.h]), x
        u0 = input_at(u, k, span) if span.chooser is None else chosen_input(u, x[:, span.chooser])
        if k == end:
            result.x[...] = x
        for j in span.due(k) if k < end or k in recorded else ():
            x_next, fault = evaluate(samplers[j], [x, u0, p, t])
            x = _accepted(x, x_next, fault, k, span, result, int(first_fault[j]), result.status == 0)
        running = result.status == 0
        if k in recorded:
            if moved:
                y = evaluate(observe, [x, u0, p, t])[0]
            next(records)[...] = np.where(running[:, None], y, np.nan)
        if k == end or not running.any() or not moved:
            continue
        u1 = input_at(u, k + 1, span) if span.hold == "linear" else u0
        open_now, rows = running, [np.append(k, x[0])]
        while open_now.any():
            x_next, fault, *more = evaluate(step, [x, u0, u1, p, t, np.array([span.h])])
            x = _accepted(x, x_next, fault, k, span, result, FIRST_FAULT, open_now)
            open_now = open_now & (result.status == 0) & (more[0][:, 0] != 0) if more else np.zeros_like(running)
            rows.append(np.append(k, x[0]))
        moved = not span.until_still or x.tobytes() != before.tobytes()
        parts += rows if len(rows) > 2 else []
    return parts


def _accepted(
    x: np.ndarray,
    x_next: np.ndarray,
    fault: np.ndarray,
    k: int,
    span: Span,
    result: RolloutResult,
    first_fault: int,
    runs: np.ndarray,
) -> np.ndarray:
    """Advance those of the `runs` (batch,) whose next state is good; the others of them keep their state, stop and get a
    status. Entries of x beyond those of x_next do not change."""
    now = _status(x_next, fault, span.limit, first_fault)
    failing = runs & (now != 0)
    result.status[failing] = now[failing]
    result.stopped[failing] = k
    moved = x.copy()
    moved[:, : x_next.shape[1]] = np.where((runs & (now == 0))[:, None], x_next, x[:, : x_next.shape[1]])
    return moved


def input_at(u: np.ndarray, j: int, span: Span) -> np.ndarray:
    """The inputs at the time t0 + j h."""
    last, i = len(u) - 1, j // span.stride
    sample = u[min(i, last)]
    if span.hold == "zero" or i >= last or j % span.stride == 0:
        return sample
    with np.errstate(all="ignore"):
        return sample + (j % span.stride) / span.stride * (u[i + 1] - sample)


def chosen_input(u: np.ndarray, number: np.ndarray) -> np.ndarray:
    """(batch, nu) the inputs of runs that choose their samples, by numbers (batch,)."""
    i = np.where(number > 0, np.minimum(number, len(u) - 1), 0).astype(int)  # 0 for nan
    return u[i] if u.ndim == 2 else u[i, np.arange(len(i))]


def _status(x: np.ndarray, fault: np.ndarray, limit: float, first_fault: int) -> np.ndarray:
    """Status of each run: 0 good, 1 state not finite or beyond the limit, first_fault + i for fault i.

    A fault that is a number takes precedence over status 1; a fault that is nan does not.
    """
    good = np.all(np.fabs(x) <= limit, axis=1)
    code = np.where(good, 0, 1)
    for i in reversed(range(fault.shape[1])):
        f = fault[:, i]
        code = np.where((f != 0) & (good | (f == f)), first_fault + i, code)
    return code
