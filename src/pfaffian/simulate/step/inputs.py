"""The inputs of a run, constant or as a time series, and its times and step counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from pfaffian.errors import ModelError, RunWarning, notice
from pfaffian.evaluate.arrays import by_label, unknown
from pfaffian.evaluate.single_values import LARGEST, as_number, as_whole, common_runs
from pfaffian.model.number import floats

STEP = 1e-3
"""Length of a step of runs whose steps all have one length, if none is given [s]."""


class Times(NamedTuple):
    """The times of a run, in seconds and in steps.

    start, step, duration: [s].   steps: number of steps of this run.   every: steps between records.
    stride: steps between samples of u.   first: number of steps since `start` made by an earlier run that this one continues.
    """

    start: float
    step: float
    duration: float
    steps: int
    every: int
    stride: int
    first: int = 0

    @property
    def begin(self) -> float:
        """Time at which this run begins [s]."""
        return self.start + self.first * self.step

    @property
    def end(self) -> int:
        """Index of the step at which this run ends, counted from `start`."""
        return self.first + self.steps

    @property
    def records(self) -> int:
        """Number of recorded instants, the first one included."""
        return self.steps // self.every + 1


def times_in_steps(start: Any, duration: Any, step: Any, every: Any, u_step: Any) -> Times:
    """The times of a run, checked.   step, every: None for the default, STEP and 1.

    Raises ModelError: a value is not a number, is out of range, or is not a whole number of steps.
    """
    begin, h = as_number(start, "start"), as_number(STEP if step is None else step, "step", above=0)
    length = as_number(duration, "duration", least=0)
    if not length / h < LARGEST:
        raise ModelError(f"duration {length:g} s is more than {LARGEST} steps of {h:g} s")
    if length and round(length / h) == 0:
        raise ModelError(f"duration {length:g} s is less than one step of {h:g} s: are the two swapped?")
    if not (length < h / 2 or (begin + h > begin and begin + length > begin + length - h)):
        raise ModelError(
            f"step {h:g} s is lost to rounding next to start {begin:g} s and duration {length:g} s: take longer steps"
        )
    stride = 1 if u_step is None else _stride(as_number(u_step, "u_step", above=0), h)
    return Times(begin, h, length, round(length / h), as_whole(1 if every is None else every, "every"), stride)


def _stride(u_step: float, step: float) -> int:
    """Number of steps between samples of u. Raises ModelError: not a whole number from 1, or too large."""
    if not u_step / step < LARGEST or round(u_step / step) < 1 or abs(round(u_step / step) * step - u_step) > 1e-9 * u_step:
        raise ModelError(f"u_step {u_step!r} must be a whole number of steps of {step!r} s, fewer than {LARGEST}")
    return round(u_step / step)


def refuse_inputs(u: Any, names: Sequence[str]) -> None:
    """Raise ModelError if inputs are given to a run that has none."""
    if not names and _given(u):
        raise ModelError("u: nothing takes inputs here: the mechanism has none, or a control law gives them all")


def constant_inputs(u: np.ndarray, named: bool, others: int) -> np.ndarray:
    """Constant inputs u (runs, nu) as one sample, (1, nu) or (1, runs, nu).

    named: whether they were given by name.   others: number of runs in the state and parameters.
    Raises ModelError: u alone has several runs, which may be meant as a time series.
    """
    if len(u) == 1:
        return u
    if others == 1:
        shape = f"({len(u)},) for an input" if named else f"({len(u)}, {u.shape[1]})"
        raise ModelError(
            f"u has the shape {shape} and nothing else has {len(u)} runs: give u_step=... [s] if these are samples in "
            f"time; for {len(u)} runs under constant inputs give q, v or parameters for each of them"
        )
    return u[None]


def series_of(u: Any, names: Sequence[str]) -> np.ndarray:
    """A time series of inputs as an array (samples, nu) or (samples, runs, nu). Raises ModelError: its shape is wrong."""
    u = by_label(u, "u", series=True)
    series = _named_series(u, names) if isinstance(u, Mapping) else floats(u, "u")
    if series.ndim not in (2, 3) or series.shape[-1] != len(names) or not len(series):
        raise ModelError(
            f"u has shape {series.shape}: with u_step (samples, {len(names)}), (samples, runs, {len(names)}) or "
            "{name: (samples,) or (samples, runs)} is needed"
        )
    return series


def _given(u: Any) -> bool:
    """Whether u contains any input."""
    try:
        return u is not None and (len(u) if isinstance(u, Mapping) else np.size(u)) > 0
    except ValueError:  # rows of different lengths
        return True


def warn_of_short_inputs(series: np.ndarray, when: Times, hold: str) -> None:
    """Issue a RunWarning if a series of inputs ends before the run; a single sample is a constant and does not end."""
    samples = len(series) - 1 if hold == "linear" else len(series)
    if len(series) > 1 and samples * when.stride < when.steps:
        needed = -(-when.steps // when.stride) + (hold == "linear")
        notice(
            f"u ends at t = {when.begin + samples * when.stride * when.step:.6g} s and its last sample is held until the run "
            f"ends: {len(series)} samples are given, {needed} are needed",
            RunWarning,
        )


def _named_series(u: Mapping[str, Any], names: Sequence[str]) -> np.ndarray:
    """The series as an array, from {name: number, (samples,) or (samples, runs)}; inputs that are not named are zero."""
    columns = {}
    for name, entry in u.items():
        if name not in names:
            raise unknown(name, names, "u")
        columns[name] = floats(entry, f"u[{name!r}]")
        if columns[name].ndim > 2 or columns[name].size == 0:
            raise ModelError(f"u[{name!r}] has shape {columns[name].shape}: a number, (samples,) or (samples, runs) is needed")
    samples = {len(c) for c in columns.values() if c.ndim}
    if len(samples) > 1:
        counts = ", ".join(f"{n!r} has {len(c)}" for n, c in columns.items() if c.ndim)
        raise ModelError(f"the series of u have different numbers of samples: {counts}")
    count = common_runs({f"u[{n!r}]": c.shape[1] for n, c in columns.items() if c.ndim == 2})
    series = np.zeros((samples.pop() if samples else 1, count, len(names)))
    for name, c in columns.items():
        series[:, :, list(names).index(name)] = c[:, None] if c.ndim == 1 else c
    return series[:, 0] if count == 1 else series
