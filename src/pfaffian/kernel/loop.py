"""The time loop on NumPy arrays: what rollout.h means, and the way to run without a compiler."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np

from pfaffian.errors import ModelError
from pfaffian.kernel.interpret import evaluate
from pfaffian.kernel.program import Program

Hold = Literal["zero", "linear"]
HOLDS = ("zero", "linear")

LARGEST = 2**62
"""Counts stay below it, so that the sums of two fit into the integers of the compiled loop."""


class RolloutResult(NamedTuple):
    """x (batch, nx) last good states, records (n, batch, ny), status (batch,) int32, stopped (batch,) step or -1."""

    x: np.ndarray
    records: np.ndarray
    status: np.ndarray
    stopped: np.ndarray


class Span(NamedTuple):
    """When and how: what a call of a Rollout says besides its arrays."""

    t0: float
    h: float
    steps: int
    every: int
    first: int
    last: bool
    hold: Hold
    stride: int
    limit: float

    def recorded(self) -> list[int]:
        """Step indices at which a record is taken."""
        start = -(-self.first // self.every) * self.every
        return list(range(start, self.first + self.steps + bool(self.last), self.every))


def check_span(span: Span) -> None:
    if span.steps < 0 or span.every < 1 or span.stride < 1 or span.first < 0:
        raise ModelError("rollout needs steps >= 0, every >= 1, stride >= 1, first >= 0")
    if max(span.steps, span.every, span.stride, span.first) > LARGEST:
        raise ModelError(f"rollout needs steps, every, stride and first of at most {LARGEST}")
    if span.hold not in HOLDS:
        raise ModelError(f"hold {span.hold!r}: choose zero or linear")
    if not np.isfinite([span.t0, span.h]).all() or np.isnan(span.limit):
        raise ModelError("t0 and h must be finite, limit not nan")


def run_loop(
    step: Program, observe: Program, x0: np.ndarray, u: np.ndarray, p: np.ndarray, span: Span, result: RolloutResult
) -> None:
    """Fill in the result; its status and stopped hold those of the call before."""
    batch = len(result.status)
    x = np.array(np.broadcast_to(x0, (batch, x0.shape[-1])))
    records, index, end = iter(result.records), span.recorded(), span.first + span.steps
    wanted = set(index)
    for k in range(span.first, end + 1):
        running = result.status == 0
        t = np.array([span.t0 + k * span.h])
        u0 = _input_at(u, k, span)
        if k in wanted:
            y = evaluate(observe, [x, u0, p, t])[0]
            next(records)[...] = np.where(running[:, None], y, np.nan)
        if k == end or not running.any():
            continue
        u1 = _input_at(u, k + 1, span) if span.hold == "linear" else u0
        x_next, fault = evaluate(step, [x, u0, u1, p, t, np.array([span.h])])
        now = _verdict(x_next, fault, span.limit)
        x = np.where((running & (now == 0))[:, None], x_next, x)
        failing = running & (now != 0)
        result.status[failing] = now[failing]
        result.stopped[failing] = k
    result.x[...] = x


def _input_at(u: np.ndarray, j: int, span: Span) -> np.ndarray:
    """Input at the time t0 + j h."""
    last, i = len(u) - 1, j // span.stride
    sample = u[min(i, last)]
    if span.hold == "zero" or i >= last or j % span.stride == 0:
        return sample
    with np.errstate(all="ignore"):
        return sample + (j % span.stride) / span.stride * (u[i + 1] - sample)


def _verdict(x: np.ndarray, fault: np.ndarray, limit: float) -> np.ndarray:
    """0 good, 1 state not finite or beyond the limit, 2 + i fault i. A fault that is a number is the better reason."""
    good = np.all(np.fabs(x) <= limit, axis=1)
    code = np.where(good, 0, 1)
    for i in reversed(range(fault.shape[1])):
        f = fault[:, i]
        code = np.where((f != 0) & (good | (f == f)), 2 + i, code)
    return code
