"""The compiled prediction: a batch of segments of a motion, what is measured of it, and all its tangents in one pass."""

from __future__ import annotations

from typing import NamedTuple

import casadi as ca
import numpy as np

from pfaffian import kernel
from pfaffian.control.command import Command
from pfaffian.differentiation.step_slopes import with_matrices
from pfaffian.kernel import Span
from pfaffian.kernel.remember import remembered as by_key
from pfaffian.simulate.step.closed_loop import closed_loop
from pfaffian.simulate.step.signals import MotionOutput, OutputFunction, columns, output_digest
from pfaffian.simulate.step.simulation import Simulation

STATE = ("q", "v")
"""Measured signals that are entries of the state; all others are outputs."""


class MeasuredSystem(NamedTuple):
    """A simulation and what is measured of it.   names: of the signals: "q", "v" or outputs.   outputs: name -> function."""

    s: Simulation
    names: tuple[str, ...]
    outputs: tuple[tuple[str, OutputFunction], ...]

    @property
    def key(self) -> str:
        """Text that determines the equations and the measured signals."""
        return repr((self.s.key, self.names, [output_digest(name, f, self.s.mechanism) for name, f in self.outputs]))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MeasuredSystem) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)


class TangentDirections(NamedTuple):
    """The directions of the tangents: `starts` of each segment, the parameters with the indices `free`, `inputs` changes."""

    starts: int
    free: tuple[int, ...]
    inputs: int

    @property
    def size(self) -> int:
        return self.starts + len(self.free) + self.inputs


class Prediction(NamedTuple):
    """A batch of predictions.   y: (steps + 1, segments, ny) measured signals.   dy: (steps + 1, segments, ny, directions).
    stopped: (segments,) of bool, those that did not reach their end."""

    y: np.ndarray
    dy: np.ndarray
    stopped: np.ndarray


def predict(
    of: MeasuredSystem, along: TangentDirections, x: np.ndarray, dx: np.ndarray, u: np.ndarray, p: np.ndarray, span: Span
) -> Prediction:
    """The measured signals of all segments at all steps, and their changes along the directions.

    x: (segments, nx) starts.   dx: (segments, nx, starts + free) their changes; those along inputs are zero.
    u: (steps, segments, nw, 1 + inputs) inputs and their changes.   p: (segments, np + 1) parameters and the time of the start.
    """
    n, count = along.size, len(x)
    changes = np.concatenate([dx, np.zeros((count, x.shape[1], along.inputs))], axis=2)
    state = np.hstack([x, changes.transpose(0, 2, 1).reshape(count, -1)])
    now = u.transpose(0, 1, 3, 2).reshape(*u.shape[:2], -1)
    r = _rollout(of, along)(state, now, p, span._replace(last=True))
    ny = r.records.shape[2] // (1 + n)
    dy = r.records[:, :, ny:].reshape(*r.records.shape[:2], n, ny).swapaxes(2, 3)
    return Prediction(r.records[:, :, :ny], dy, r.status != 0)


@by_key(64)
def sizes(of: MeasuredSystem) -> tuple[int, ...]:
    """Number of entries of each measured signal."""
    _, values = _measured(of)
    return tuple(y.numel() for y in values)


def _measured(of: MeasuredSystem) -> tuple[list[ca.SX], list[ca.SX]]:
    """Symbols (x, w, p, t) and the columns of the measured signals."""
    loop, needs = closed_loop(of.s, of.s.system.at()), any(isinstance(f, MotionOutput) for _, f in of.outputs)
    T, motion = loop.moving() if needs else (loop.pushed, None)
    found = columns(T, motion, Command(T.u), dict(of.outputs), STATE)  # type: ignore[arg-type]
    return [loop.x, loop.w, of.s.mechanism.p_symbols, T.t], [found[name] for name in of.names]


@by_key(64)
def _rollout(of: MeasuredSystem, along: TangentDirections) -> kernel.Rollout:
    """The compiled steps of [x; dx] under the inputs [w; dw], which record [y; dy]; their time is t0, a parameter, plus t."""

    def build() -> tuple[ca.Function, ...]:
        """The step and the record, each with its tangents."""
        parts = with_matrices(of.s)  # which keeps the derivatives of its functions alive
        (x, w, p, t, h), x_next = parts.step(of.s)
        symbols, y = _measured(of)
        step = _with_tangents("step", [x, w, p, t, h], x_next, along)
        observe = _with_tangents("observe", symbols, ca.vertcat(*y), along)
        X, W, P = (ca.SX.sym(name, step.size1_in(i)) for i, name in enumerate(("X", "W", "P")))
        W1, time = ca.SX.sym("W1", W.numel()), ca.SX.sym("t")
        begin = P[-1, 0]
        return (
            ca.Function("step", [X, W, W1, P, time, h], [step(X, W, P, time + begin, h), ca.SX(0, 1)]),
            ca.Function("observe", [X, W, P, time], [observe(X, W, P, time + begin)]),
        )

    return kernel.compile_rollout(build, lanes=8, key=f"prediction {of.key} {along}")


def _with_tangents(name: str, symbols: list[ca.SX], y: ca.SX, along: TangentDirections) -> ca.Function:
    """([x; dx], [w; dw], [p; t0], t, ...) -> [y; dy], dx (nx, count) and dw (nw, inputs) column by column."""
    x, w, p, *rest = symbols
    dx, dw = ca.SX.sym("dx", x.numel(), along.size), ca.SX.sym("dw", w.numel(), along.inputs)
    by_p = ca.SX(p.numel(), along.size)
    for column, i in enumerate(along.free):
        by_p[i, along.starts + column] = 1
    by_w = ca.horzcat(ca.SX(w.numel(), along.size - along.inputs), dw)
    dy = ca.jtimes(y, ca.vertcat(x, w, p), ca.vertcat(dx, by_w, by_p)) if along.size else ca.SX(y.numel(), 0)
    whole = ca.densify(ca.vertcat(y, ca.vec(dy)))
    given = [ca.vertcat(x, ca.vec(dx)), ca.vertcat(w, ca.vec(dw)), ca.vertcat(p, ca.SX.sym("t0")), *rest]
    return ca.Function(name, given, [whole])
