"""A sweep before it starts: which runs, in which blocks, what is kept of them, and how one block is computed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from importlib.metadata import version
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from pfaffian.errors import ModelError, RunError, brief, collected, nearest
from pfaffian.evaluate.arrays import as_whole
from pfaffian.kernel.call.keyed import sources
from pfaffian.simulate.run import run
from pfaffian.simulate.signals import as_record
from pfaffian.simulate.simulation import Simulation, arguments
from pfaffian.simulate.statistics import as_recording
from pfaffian.simulate.switches import as_switches
from pfaffian.simulate.system import System, as_system
from pfaffian.sweeps.space import SEED, Space, argument_of, as_space, unit_of

OURS = ("m", "record", "start_from", "threads", "progress", "squeeze")
"""Arguments of `run` that a sweep gives itself."""

OPTIONS = tuple(name for name in signature(run).parameters if name not in OURS)
TRACED = ("scheme", "control", "switches", "outputs")
"""Options whose content the key of the simulation has."""

HOW = ("backend",)
"""Options that change no bit."""

ALWAYS = ("status", "stopped", "step_error")
MOST_BYTES, MOST_STEPS, MOST_RUNS, FEWEST, BLOCKS = 2**26, 2**27, 2**16, 64, 64
"""Bytes that a block stores, steps and runs that it has at most; the least number of runs
that a block is cut to, and of blocks where there are more."""

PROBED = 8
"""Runs from whose result the store is made."""

IDENTITY = "sweep"
"""The attribute of a store that says whose it is."""


@dataclass(frozen=True, eq=False)
class Sweep:
    """A planned sweep.   store: its folder.   keep: `record` of each run.   options: of `run`.   requested: runs of a block."""

    system: System
    space: Space
    store: Path
    keep: Any
    options: Mapping[str, Any]
    requested: int | None = None

    @cached_property
    def template(self) -> xr.Dataset:
        """What is kept of some runs of the first block, at least one of which starts."""
        count = min(self.space.runs, FEWEST)
        with collected():  # the blocks will say it again
            return self.kept(np.unique(np.linspace(0, count - 1, min(count, PROBED)).astype(int)), 1)

    @cached_property
    def block(self) -> int:
        """Runs of a block, but for the last one: as requested, as the store has it, or by what a run is."""
        if self.requested is not None:
            return min(self.requested, self.space.runs)
        if there := stored_identity(self.store):
            return int(there["runs of a block"])
        steps = self.options["duration"] / self.options.get("step", signature(run).parameters["step"].default)
        most = min(MOST_RUNS, MOST_BYTES / self.bytes_a_run, MOST_STEPS / max(steps, 1), max(self.space.runs / BLOCKS, FEWEST))
        return min(self.space.runs, max(1, 2 ** int(np.log2(max(most, 1)))))

    @property
    def bytes_a_run(self) -> int:
        """What one run stores, before compression."""
        return sum(int(np.prod(x.shape[1:])) * x.dtype.itemsize for x in self.template.data_vars.values())

    @property
    def blocks(self) -> int:
        return -(-self.space.runs // self.block)

    def runs_of(self, k: int) -> slice:
        """The numbers of the runs of a block."""
        return slice(k * self.block, min((k + 1) * self.block, self.space.runs))

    def kept(self, which: np.ndarray, threads: int) -> xr.Dataset:
        """What is kept of these runs, all over `run`."""
        values = self.space.at(which)
        try:
            result = self._run(which, values, threads)
        except RunError:
            if "template" not in vars(self):
                raise
            # None of them starts on its constraints. Beside a run that does, each has a status that says so.
            good = int(self.template.attrs["good"])
            beside = {label: np.append(x, self.space.at(np.array([good]))[label]) for label, x in values.items()}
            result = self._run(np.append(which, good), beside, threads).isel(run=slice(0, len(which)))
        found = result[[name for name, x in result.data_vars.items() if self._keeps(name, x)]]
        if "step_error" not in found:
            found["step_error"] = "run", np.full(len(which), np.nan), {"units": "1"}
        found["space"] = ("run", "axis"), np.column_stack([*values.values()]).astype(float)
        started = np.flatnonzero(found["status"].values != len(json.loads(found["status"].attrs["meaning"])) - 1)
        found.attrs = {"mechanism": self.system.mechanism.name, "good": int(which[started[0]]) if len(started) else -1}
        units = [unit_of(label, self.system.mechanism) for label in self.space.axes]
        return found.transpose("run", ...).assign_coords(run=which, axis=list(self.space.axes), axis_unit=("axis", units))

    def _keeps(self, name: Any, x: xr.DataArray) -> bool:
        statistics = recording.statistics if (recording := as_recording(self.keep)) else {}
        return "run" in x.dims and (name in ALWAYS or name in statistics or "time" in x.dims)

    def _run(self, which: np.ndarray, values: Mapping[str, np.ndarray], threads: int) -> xr.Dataset:
        """The runs with these numbers and values of the axes, by `run`."""
        given: dict[str, Any] = dict(self.options)
        given[SEED] = int(given.get(SEED, 0)) + which
        for label, x in values.items():
            group, name = argument_of(label, self.system.mechanism)
            if group == SEED:
                given[SEED] = x.astype(np.int64)
            else:
                given[group] = {**(given.get(group) or {}), name: x}
                if group == "q" and name in (given.get("guess") or {}):
                    given["guess"] = {n: at for n, at in given["guess"].items() if n != name}
        if given.get("u") and any(label.startswith("u:") for label in values):
            # A series of one sample, which is held: constant inputs alone may not be what makes a batch.
            given["u"] = {name: np.broadcast_to(x, (1, len(which))) for name, x in given["u"].items()}
            given["u_step"] = given.get("step", signature(run).parameters["step"].default)
        return run(self.system, **given, record=self.keep, threads=threads, squeeze=False)

    @cached_property
    def identity(self) -> dict[str, Any]:
        """What determines the bits of the store."""
        o, m = self.options, self.system.mechanism
        scheme, law, extra = arguments(m, o.get("scheme"), o.get("control"), o.get("outputs"))
        changing = as_switches(m, o.get("switches"))
        recording = as_recording(self.keep)
        record = as_record(recording.signals if recording else self.keep, 2)
        kept = recording and (recording.over_time, sorted(recording.statistics.items()))
        simulation = Simulation(self.system, scheme, law, extra, record, changing.next)
        others = {name: x for name, x in o.items() if name not in (*TRACED, *HOW)}
        return {
            "mechanism, law, scheme, outputs and switches": simulation.key,
            "space": self.space.digest,
            "keep": sha256(repr(kept).encode()).hexdigest(),
            "arguments of run": sha256(repr(_content(others)).encode()).hexdigest(),
            "runs of a block": self.block,
        } | versions(self.space)


def stored_identity(store: Path) -> dict[str, Any]:
    """The identity that is written in a store; empty if it has none."""
    try:
        there = json.loads(json.loads((store / "zarr.json").read_bytes())["attributes"][IDENTITY])
        return there if isinstance(there, dict) and isinstance(there.get("runs of a block"), int) else {}
    except (OSError, KeyError, ValueError, TypeError):
        return {}


def versions(space: Space) -> dict[str, str]:
    """What has to be the same on all machines that work on a store; SciPy draws the samples."""
    names = ("pfaffian", "casadi", "numpy", *(["scipy"] if space.sampled else []))
    return {f"version of {name}": version(name) for name in names} | {"source": sources()}


def _content(value: Any) -> Any:
    """A value by its content, for a digest."""
    if isinstance(value, Mapping):
        return [(name, _content(x)) for name, x in sorted(value.items(), key=lambda pair: str(pair[0]))]
    if isinstance(value, (bool, str)) or value is None:
        return value
    array = np.asarray(value)
    return (array.shape, sha256(array.astype("<f8").tobytes()).hexdigest())


def plan(m: Any, space: Any, store: Any, keep: Any, block: Any, options: Mapping[str, Any]) -> Sweep:
    """The checked Sweep. Raises ModelError: arguments that do not fit."""
    from pfaffian.formats.file import as_path

    system = as_system(m)
    for name in options:
        if name not in OPTIONS:
            what = "is given by the sweep itself" if name in OURS else f"is no argument of run; {nearest(name, OPTIONS)}"
            raise ModelError(f"sweep: {brief(name)} {what}")
    if "duration" not in options:
        raise ModelError("sweep: duration [s] of each run is needed")
    if keep is None:
        raise ModelError("sweep: keep is needed: statistics, such as {'end': statistics.final('q')}, or names of signals")
    made = as_space(space, system.mechanism)
    for group in {argument_of(label, system.mechanism)[0] for label in made.axes} - {SEED}:
        if options.get(group) is not None and not isinstance(options[group], Mapping):
            raise ModelError(f"sweep: {group} must be {{name: number}} where the space has entries of it too")
    if options.get("u_step") is not None and any(argument_of(label, system.mechanism)[0] == "u" for label in made.axes):
        raise ModelError("sweep: u is a series, so inputs cannot be axes of the space; vary a parameter instead")
    if SEED in options and np.ndim(options[SEED]):
        raise ModelError("sweep: seeds of runs are an axis of the space; seed is that of the first run")
    return Sweep(system, made, as_path(store), keep, dict(options), None if block is None else as_whole(block, "block"))


def computed(sweep: Sweep, k: int, threads: int) -> tuple[xr.Dataset, list[str]]:
    """A block of runs, and the warnings about it."""
    runs = sweep.runs_of(k)
    with collected() as messages:
        return sweep.kept(np.arange(runs.start, runs.stop), threads), messages
