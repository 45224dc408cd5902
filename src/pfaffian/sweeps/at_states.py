"""States in place of runs: a stroke or a workspace for each set of parameters, assembled, held by actuators, evaluated."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import xarray as xr

from pfaffian.control.allocation import UNCONTROLLABLE
from pfaffian.errors import ModelError, RunError, RunWarning, notice, plural
from pfaffian.evaluate.arrays import as_batch, parameter_values
from pfaffian.model.mechanism import Mechanism
from pfaffian.model.unphysical import check_parameters
from pfaffian.simulate.record.result import coordinates_of, statistics_of
from pfaffian.simulate.step.running_statistics import Recording, Tally, as_recording, tally_of
from pfaffian.simulate.step.signals import OutputFunction, Record, as_record, entries_of
from pfaffian.starts.assemble import close
from pfaffian.starts.given_start import Given, start_arguments, start_of
from pfaffian.starts.newton import fixed_entries
from pfaffian.states.system import as_system
from pfaffian.sweeps.space import Space, argument_of
from pfaffian.sweeps.state_values import StateValues, key_of, values_at_states

OF_STATES = ("q", "v", "u", "parameters", "guess", "outputs", "backend", "start")
"""Arguments of `run` that a sweep over states takes."""

FINISHED, LOST, FREE_MOTION = "finished", "not assembled: a state is out of reach", UNCONTROLLABLE
MEANING = (FINISHED, FREE_MOTION, LOST)
"""Meaning of each value of `status`."""

WITHOUT_TIME = ("integral", "first_crossing")
"""Statistics that need the time of a run."""


@dataclass(frozen=True, eq=False)
class StateSweep:
    """A checked sweep over states.   options: arguments of `run` that do not vary.   recording: the statistics, if any."""

    m: Mechanism
    space: Space
    options: Mapping[str, Any]
    outputs: Mapping[str, OutputFunction]
    record: Record
    recording: Recording | None

    @property
    def balanced(self) -> bool:
        """Whether the actuators hold the states: no inputs are given, and there are actuators."""
        return bool(self.m.actuators) and not self.options.get("u")

    @cached_property
    def values(self) -> StateValues:
        """The compiled values of a state."""
        return values_at_states(self.m, self.outputs, self.record, self.balanced)

    @property
    def key(self) -> str:
        """Digest of the equations, the outputs and the states."""
        return f"{key_of(self.m, self.outputs, self.record, self.balanced)} {self.space.digest}"


def as_states(m: Mechanism, space: Space, options: Mapping[str, Any], keep: Any) -> StateSweep:
    """The checked StateSweep. Raises ModelError: an argument that has no meaning without a motion in time."""
    for name in options:
        if name not in OF_STATES:
            raise ModelError(f"sweep: {name} is for runs; a sweep over states takes {', '.join(OF_STATES)}")
    recording = as_recording(keep)
    for name, x in recording.statistics.items() if recording else ():
        if x.kind in WITHOUT_TIME:
            raise ModelError(f"keep: {name!r}: {x.kind} is over time, which states do not have")
    record = as_record(recording.signals if recording else keep, 2)
    return StateSweep(m, space, options, options.get("outputs") or {}, record, recording)


def at_states(s: StateSweep, values: Mapping[str, np.ndarray], runs: int, threads: int) -> xr.Dataset:
    """What is kept of the states of some runs.   values: (runs,) of each axis of the runs.   runs: their number.

    Each state is assembled on the branch of the one before, the first on that of `guess`.
    Raises RunError: no state of any run is within reach.
    """
    of, count = s.values, s.space.runs
    given, u = _given(s, values, runs, count)
    q, v, lost = _assembled(given, runs, count)
    if lost.all():
        raise RunError(f"sweep: {LOST} in every run; give the coordinates that are not held by guess=...")
    p, t = given.problem.p, np.array([given.problem.t])
    entries = sum(size for _, size in of.signals.values())
    records, free = np.empty((count, runs, entries)), np.zeros((count, runs), bool)
    for k in range(count):
        at = slice(k * runs, (k + 1) * runs)
        records[k], bad = of.kernel(q[at], v[at], u[at], p[at], t, threads=threads)
        free[k] = bad.reshape(runs, -1).any(axis=1) & ~lost[k]
    records[lost] = np.nan
    tally = tally_of(s.recording, of.signals, 1, 0.0, 1.0)
    return _dataset(s, of, tally.add(records, 0, 0) if tally else records, tally, lost, free)


def _given(s: StateSweep, values: Mapping[str, np.ndarray], runs: int, count: int) -> tuple[Given, np.ndarray]:
    """The starts of all runs in the first state, then in the second, ...: (states runs,), and their inputs."""
    m, here = s.m, {label: np.tile(x, count) for label, x in values.items()}
    here |= {label: np.repeat(x, runs) for label, x in s.space.at(np.arange(count)).items()}
    of: dict[str, Any] = {name: s.options.get(name) for name in ("q", "v", "u", "parameters")}
    for label, x in here.items():
        group, name = argument_of(label, m)
        of[group] = {**(of[group] or {}), name: x}
    u = np.broadcast_to(as_batch(of["u"], m.u_names, np.zeros(m.nu), "u"), (count * runs, m.nu))
    p = np.broadcast_to(parameter_values(m, of["parameters"]), (count * runs, len(m.p_names)))
    varied = any(argument_of(label, m)[0] == "parameters" for label in s.space.axes)
    check_parameters(m, p if varied else p[:runs])
    begin = start_arguments(m, of["q"], of["v"], None, guess=s.options.get("guess"))
    begin = begin._replace(arrays=begin.arrays._replace(p=p))
    return start_of(m, begin, float(s.options.get("start", 0.0)), s.options.get("backend", "auto")), u


def _assembled(given: Given, runs: int, count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """q and v (states runs, n), and (states, runs) which states are out of reach; these are at rest in the neutral state."""
    m, fixed = given.problem.m, fixed_entries(given.problem.m, given.problem.fixed.q[:1])
    lost, before = np.zeros((count, runs), bool), np.full((runs, m.nq), np.nan)
    for k in range(count):
        at = slice(k * runs, (k + 1) * runs)
        known = np.isfinite(before).all(axis=1)[:, None]
        q, origin = np.where(fixed | ~known, given.q[at], before), np.where(known, before, given.origin[at])
        found = close(given._replace(q=q, v=given.v[at], problem=given.problem.take(at), origin=origin))
        lost[k] = ~found.satisfied
        before = np.where(found.satisfied[:, None], found.q, before)
        given.q[at] = np.where(found.satisfied[:, None], found.q, m.neutral())
        given.v[at] = np.where(found.satisfied[:, None], found.v, 0.0)
    return given.q, given.v, lost


def _dataset(
    s: StateSweep, of: StateValues, records: np.ndarray, tally: Tally | None, lost: np.ndarray, free: np.ndarray
) -> xr.Dataset:
    """The Dataset of the records (states, runs, entries).   lost, free: (states, runs) states without a value."""
    m, runs = s.m, lost.shape[1]
    stored = of.signals if tally is None else {n: x for n, x in of.signals.items() if n in tally.recording.over_time}
    coords: dict[str, Any] = {"run": np.arange(runs)}
    data: dict[str, Any] = {}
    for name, where in entries_of(stored).items():
        signal, size = stored[name]
        x = records[:, :, where].transpose(1, 0, 2)
        dim = signal.dim or f"{name}_component"
        single = signal.dim is None and size == 1
        data[name] = (("run", "state"), x[:, :, 0]) if single else (("run", "state", dim), x)
        data[name] = (*data[name], {"units": signal.unit})
    variables, bins = statistics_of(of.signals, tally)
    for name, statistic in tally.recording.statistics.items() if tally else ():
        if statistic.kind == "time_of_maximum":
            variables[name][2]["units"] = "1"  # the number of a state
    data |= variables
    used = {dim for x in data.values() for dim in x[0]}
    coords |= {x.dim: list(x.names) for x, _ in of.signals.values() if x.dim and x.dim in used} | bins
    labels = coordinates_of(as_system(m))
    coords |= {name: x for name, x in labels.items() if isinstance(x, tuple) and x[0] in used}
    ended = lost | free
    status = np.where(lost.any(axis=0), MEANING.index(LOST), np.where(free.any(axis=0), MEANING.index(FREE_MOTION), 0))
    data["status"] = "run", status.astype(np.int32), {"meaning": json.dumps(MEANING)}
    first = np.where(ended.any(axis=0), ended.argmax(axis=0), np.nan)
    data["stopped"] = "run", first, {"units": "1", "meaning": "number of the first state without a value, NaN if there is none"}
    _tell(ended, lost)
    return xr.Dataset(data, coords, {"mechanism": m.name})


def _tell(ended: np.ndarray, lost: np.ndarray) -> None:
    """Warn RunWarning about states without a value."""
    if ended.any():
        k, run = (int(x[0]) for x in np.nonzero(ended))
        why = LOST if lost[k, run] else FREE_MOTION
        notice(f"{plural(int(ended.any(axis=0).sum()), 'run')} with states that have no value, the first state {k} of run "
               f"{run}: {why}", RunWarning)  # fmt: skip
