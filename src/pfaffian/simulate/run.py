"""run: a mechanism, initial states and inputs -> a labelled result; the time loop is compiled code."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict
from functools import lru_cache
from typing import Any

import numpy as np
import xarray as xr
from tqdm import tqdm

from pfaffian import kernel
from pfaffian.control.law import Control
from pfaffian.errors import ModelError
from pfaffian.kernel.kernel import Backend
from pfaffian.kernel.rollout import Hold
from pfaffian.model.check import check_parameters
from pfaffian.model.mechanism import Mechanism, check_configuration
from pfaffian.simulate.arrays import as_floats, common_runs, runs
from pfaffian.simulate.assemble import assemble
from pfaffian.simulate.limits import tell_limits
from pfaffian.simulate.result import dataset, machine
from pfaffian.simulate.signals import Output, Record, as_record
from pfaffian.simulate.step import Scheme
from pfaffian.simulate.stops import tell_stops
from pfaffian.simulate.system import System, arguments

CHUNK_LANE_STEPS = 2_000_000
"""Lane-steps between two looks at the progress bar and at Ctrl-C."""


@lru_cache(maxsize=64)
def _compiled(
    m: Mechanism,
    scheme: Scheme,
    control: Control | None,
    outputs: tuple,
    record: Record,
    backend: Backend,
    lanes: int,
    strict: bool,
) -> tuple[System, kernel.Rollout]:
    system = System(m, scheme, control, outputs, record)
    build = lambda: (system.traced.step, system.traced.observe)  # noqa: E731
    return system, kernel.compile_rollout(build, backend=backend, lanes=lanes, strict=strict, key=system.key)


def run(
    m: Mechanism,
    q: Any = None,
    v: Any = None,
    *,
    duration: float,
    step: float = 1e-3,
    every: int = 1,
    start: float = 0.0,
    u: Any = None,
    u_step: float | None = None,
    hold: Hold = "zero",
    parameters: Any = None,
    control: Control | None = None,
    outputs: Mapping[str, Output] | None = None,
    record: Any = None,
    scheme: Scheme | None = None,
    correct_start: bool = True,
    backend: Backend = "auto",
    strict: bool = True,
    threads: int | None = None,
    progress: bool = False,
    squeeze: bool = True,
) -> xr.Dataset:
    """Run a mechanism, or a batch of them, through time.

    Args:
        q, v: initial state: None (neutral, at rest), (n,), (runs, n), or {name: number or (runs,)}.
        duration, step, start: [s]; the number of steps is duration / step, rounded.   every: record each so many steps.
        u: inputs [N, N m]: None, (nu,), (runs, nu), {name: ...}, or a series (samples, nu) or (samples, runs, nu) with
            `u_step` [s] between samples, a whole number of steps.   hold: "zero" or "linear" between samples.
        parameters: {name: number or (runs,)}, or an array in the mechanism's order.
        control: a law that drives the mechanism's inputs; `u` then are the law's own inputs.
        outputs: {name: function of Kinematics, `reaction(...)` or `of_motion(...)`}, recorded beside the standard signals.
        record: names of the signals to record, "all" or "lean". None: all of one run; of a batch the lean record, which
            leaves out those with an entry for each row or velocity: phi, reaction, multiplier.
        scheme: formulation, integrator, drift correction.   correct_start: put the initial state onto the constraints.
        strict: the same bits on every machine and backend; False allows fused multiply-add.
        threads: None for one a core when the batch is large.   progress: show a bar.   squeeze: drop the run axis of one run.
    Returns:
        Dataset over (run, time): q, v, energy, ... with status (0 finished), stopped, units, provenance.
    Raises ModelError: wrong shapes, names or numbers; RunError: the initial state cannot meet the constraints. Warns
    RunWarning: runs stopped, see `causes`; joints or inputs were beyond their limits, see `limit_excess` and `input_excess` in
    the result.
    """
    scheme, extra = arguments(m, scheme, control, outputs)
    steps, stride = _step_counts(duration, step, every, u_step)
    x0, p = initial_state(m, q, v, parameters, control.z if control else (), correct_start, start, backend)
    series = _series(u, control.w_names if control else m.u_names, u_step is not None)
    count = common_runs({"q, v": len(x0), "parameters": len(p), "u": series.shape[1] if series.ndim == 3 else 1})
    x0, p = (np.broadcast_to(a, (count, a.shape[1])) if len(a) != count else a for a in (x0, p))
    made = m, scheme, control, extra, as_record(record, count)
    system, rollout = _compiled(*made, backend, 8 if count > 1 else 1, strict)
    threads = threads or (min(os.cpu_count() or 1, 1 + count // 64))
    status, stopped, records = np.zeros(count, np.int32), np.full(count, -1, np.int64), []
    x = np.asfortranarray(x0)
    chunk = max(every, CHUNK_LANE_STEPS // max(count, 1) // every * every)
    with tqdm(total=steps, unit="step", disable=not progress, desc=m.name) as bar:
        for done in range(0, max(steps, 1), chunk):
            n = min(chunk, steps - done)
            r = rollout(x, series, p, t0=start, h=step, steps=n, every=every, first=done, hold=hold, stride=stride,
                        threads=threads, status=status, stopped=stopped, last=done + n == steps)  # fmt: skip
            x, status, stopped = r.x, r.status, r.stopped
            records.append(r.records)
            bar.update(n)
    recorded = np.concatenate(records)
    time = start + step * every * np.arange(len(recorded))
    provenance = machine() | {f"kernel_{k}": v for k, v in rollout.provenance.items()} | asdict(scheme)
    provenance |= {"step": step, "duration": duration, "hold": hold}
    result = dataset(system, time, recorded, status, np.where(stopped >= 0, start + step * stopped, np.nan), provenance)
    tell_stops(result, system, x, p)
    tell_limits(result, m, scheme.saturate)
    return result.squeeze("run") if squeeze and count == 1 else result


def initial_state(
    m: Mechanism, q: Any, v: Any, parameters: Any, z: tuple[float, ...], correct: bool, start: float, backend: Backend
) -> tuple[np.ndarray, np.ndarray]:
    """x (runs, nx) and p (runs, np) of a run, the state on the constraints if asked for."""
    qs = check_configuration(m, runs(q, m.q_names, m.neutral(), "q"))
    vs = runs(v, m.v_names, np.zeros(m.nv), "v")
    p = runs(parameters, tuple(x.name for x in m.parameters), m.p_defaults, "parameters")
    if parameters is not None:
        check_parameters(m, p)
    count = common_runs({"q": len(qs), "v": len(vs), "parameters": len(p) if correct and m.ideal else 1})
    qs, vs = np.broadcast_to(qs, (count, m.nq)), np.broadcast_to(vs, (count, m.nv))
    if correct and m.ideal:
        qs, vs = assemble(m, qs, vs, p, t=start, backend=backend)
    return np.hstack([qs, vs, np.broadcast_to(np.array(z, dtype=float), (count, len(z)))]), p


def _step_counts(duration: float, step: float, every: int, u_step: float | None) -> tuple[int, int]:
    if not (np.isfinite(duration) and np.isfinite(step) and step > 0 and duration >= 0):
        raise ModelError(f"duration {duration!r} and step {step!r} must be finite times, step above zero")
    if not (isinstance(every, (int, np.integer)) and every >= 1):
        raise ModelError(f"every must be a whole number of steps, at least 1, got {every!r}")
    stride = 1 if u_step is None else round(u_step / step)
    if u_step is not None and (stride < 1 or abs(stride * step - u_step) > 1e-9 * u_step):
        raise ModelError(f"u_step {u_step!r} must be a whole number of steps of {step!r} s")
    return round(duration / step), stride


def _series(u: Any, names: tuple[str, ...], sampled: bool) -> np.ndarray:
    """(samples, nu) or (samples, runs, nu)."""
    if not sampled:
        held = runs(u, names, np.zeros(len(names)), "u")
        return held if len(held) == 1 else held[None]
    series = as_floats(u, "u")
    if series.ndim not in (2, 3) or series.shape[-1] != len(names) or not len(series):
        raise ModelError(f"u has shape {series.shape}: (samples, {len(names)}) or (samples, runs, {len(names)}) is needed")
    return series
