"""A planned sweep: its runs and blocks, what is stored of each run, and the computation of one block."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
import xarray as xr

from pfaffian.errors import ModelError, RunError, brief, collected
from pfaffian.kernel.call.cache_keys import sources
from pfaffian.simulate.run.companion import SAMPLE
from pfaffian.simulate.run.run import run
from pfaffian.simulate.step.inputs import STEP
from pfaffian.simulate.step.run_arguments import arguments
from pfaffian.simulate.step.running_statistics import as_recording
from pfaffian.simulate.step.signals import as_record
from pfaffian.simulate.step.simulation import Simulation
from pfaffian.simulate.step.switches import as_switches
from pfaffian.states.abstract_system import AbstractSystem
from pfaffian.sweeps.at_states import StateSweep, at_states
from pfaffian.sweeps.blocks import STATUS, StoredBlocks
from pfaffian.sweeps.description import described, stored_identity
from pfaffian.sweeps.space import SEED, Space, argument_of, unit_of

TRACED = ("scheme", "control", "switches", "outputs")
"""Options that the key of the simulation covers."""

NEUTRAL = ("backend",)
"""Options that do not change a bit of the results."""

ALWAYS = ("status", "stopped")
"""Variables of a result that are stored of every run."""

MOST_BYTES, MOST_STEPS, MOST_RUNS, FEWEST, BLOCKS = 2**26, 2**27, 2**16, 64, 64
"""Largest numbers of bytes, steps and runs in a block. A space is divided into BLOCKS blocks or more, as long as they have at
least FEWEST runs."""

PROBED = 8
"""Number of runs whose results determine the arrays of the store, and in which a law in Python is compared."""

ONE_AT_A_TIME = Lock()
"""Held during runs with a law in Python, which may remember within a run what it was called with."""

LAW = "law in Python"
"""Name of the digest of such a law in the identity of a sweep."""

OF_STORE = ("space", "axis", "axis_unit", "block", STATUS)
"""Names in the Dataset of a store, in addition to those of a result."""


@dataclass(frozen=True, eq=False)
class Sweep:
    """A planned sweep.   store: folder.   keep: `record` of runs.   options: of `run`.   requested: block size, if given.

    python: digest of what the law in Python was made of before anyone called it, None without one.
    states: what is evaluated in place of runs; None for runs.
    """

    system: AbstractSystem
    space: Space
    store: Path
    keep: Any
    options: Mapping[str, Any]
    requested: int | None = None
    python: str | None = None
    states: StateSweep | None = None

    @cached_property
    def template(self) -> xr.Dataset:
        """The results to be stored of some of the first runs, at least one of which can start; they determine the arrays."""
        count = min(self.space.runs, FEWEST)
        which = np.unique(np.linspace(0, count - 1, min(count, PROBED)).astype(int))
        with collected():  # the blocks give the same warnings again
            values = self.space.at(which)
            return self._stored(which, values, self._run(which, values, 1, self.keep))

    @cached_property
    def block(self) -> int:
        """Number of runs in a block, except the last one: as requested, as in the store, or by the steps and bytes of a run."""
        if self.requested is not None:
            return min(self.requested, self.space.runs)
        if existing := stored_identity(self.store):
            return int(existing["runs of a block"])
        steps = self.states.space.runs if self.states else _duration(self.options) / (self.options.get("step") or STEP)
        fewest = MOST_RUNS / steps if self.states else FEWEST  # a state takes less time than the call that computes it
        most = min(MOST_RUNS, MOST_BYTES / self.bytes_a_run, MOST_STEPS / max(steps, 1), max(self.space.runs / BLOCKS, fewest))
        return min(self.space.runs, max(1, 2 ** int(np.log2(max(most, 1)))))

    @cached_property
    def written(self) -> StoredBlocks:
        """The blocks of the store, which exists. Raises ModelError: it is damaged, or no store."""
        return StoredBlocks(described(self.store))

    @property
    def bytes_a_run(self) -> int:
        """Bytes that one run stores, before compression."""
        return sum(int(np.prod(x.shape[1:])) * x.dtype.itemsize for x in self.template.data_vars.values())

    @property
    def blocks(self) -> int:
        """Number of blocks."""
        return -(-self.space.runs // self.block)

    def runs_of(self, k: int) -> slice:
        """Indices of the runs in block k."""
        return slice(k * self.block, min((k + 1) * self.block, self.space.runs))

    def results(self, which: np.ndarray, threads: int, record: Any = None) -> xr.Dataset:
        """What is stored of the runs with the indices `which`, all over `run`; or the signals `record` of these runs."""
        values = self.space.at(which)
        try:
            result = self._run(which, values, threads, record or self.keep)
        except RunError:
            if (good := int(self.template.attrs["good"])) < 0:
                raise
            # No run can start on its constraints. Together with a run that can, each gets a status that says so.
            with_good = {label: np.append(x, self.space.at(np.array([good]))[label]) for label, x in values.items()}
            result = self._run(np.append(which, good), with_good, threads, record or self.keep).isel(run=slice(0, len(which)))
        return result[record] if record else self._stored(which, values, result)

    def _stored(self, which: np.ndarray, values: Mapping[str, np.ndarray], result: xr.Dataset) -> xr.Dataset:
        """What is stored of the result of the runs `which`, with these values of the axes.

        Raises ModelError: a store cannot keep a variable of this name.
        """
        names = [name for name, x in result.data_vars.items() if self._keeps(name, x)]
        check_names(names, self.keep)
        stored = result[names]
        if "error" in result:
            stored["error"] = result["error"].max("time", keep_attrs=True)
        stored["space"] = ("run", "axis"), np.column_stack([np.zeros((len(which), 0)), *values.values()]).astype(float)
        started = np.flatnonzero(stored["status"].values != len(json.loads(stored["status"].attrs["meaning"])) - 1)
        stored.attrs = {"mechanism": self.system.mechanism.name, "good": int(which[started[0]]) if len(started) else -1}
        units = [unit_of(label, self.system.mechanism) for label in self.space.axes]
        return stored.transpose("run", ...).assign_coords(run=which, axis=list(self.space.axes), axis_unit=("axis", units))

    def _keeps(self, name: Any, x: xr.DataArray) -> bool:
        """Whether a variable of a result is stored."""
        statistics = recording.statistics if (recording := as_recording(self.keep)) else {}
        over = {"time", "state"} & set(x.dims) if recording is None or recording.over_time else set()
        return "run" in x.dims and name != "error" and bool(name in ALWAYS or name in statistics or over)

    def _run(self, which: np.ndarray, values: Mapping[str, np.ndarray], threads: int, record: Any) -> xr.Dataset:
        """The result of `run`, or the states, of the runs `which`, with these values of the axes."""
        if self.states:
            return at_states(self.states, values, len(which), threads)
        given: dict[str, Any] = dict(self.options)
        given[SEED] = int(given.get(SEED, 0)) + which
        if not {"accuracy", "times"} & set(given):
            given.setdefault("error", which % SAMPLE == 0)
        inputs: dict[str, np.ndarray] = {}
        for label, x in values.items():
            group, name = argument_of(label, self.system.mechanism)
            if group == SEED:
                given[SEED] = x.astype(np.int64)
            elif group == "u":
                inputs[name] = x
            else:
                given[group] = {**(given.get(group) or {}), name: x}
                if group == "q" and name in (given.get("guess") or {}):
                    given["guess"] = {n: at for n, at in given["guess"].items() if n != name}
        if inputs:
            # Inputs that vary become series, which may have an axis of runs that no other argument has.
            constant = {name: x for name, x in (given.get("u") or {}).items() if name not in inputs}
            samples = max([len(x) for x in constant.values() if np.ndim(x)], default=1)
            given["u"] = {**constant, **{name: np.broadcast_to(x, (samples, len(which))) for name, x in inputs.items()}}
            given["u_step"] = given.get("u_step") or given.get("step") or STEP
        with ONE_AT_A_TIME if self.python else nullcontext():
            return run(self.system, **given, record=record, threads=threads, squeeze=False)

    def inputs_of_law(self) -> str:
        """Digest of the inputs that the law in Python gives in some runs of the whole space.

        Raises ModelError: it gives others when the same runs are computed again, so that blocks would depend on their order.
        """
        count = self.space.runs
        which = np.unique(np.linspace(0, count - 1, min(count, PROBED)).astype(int))
        with collected():
            first, second = (self.results(which, 1, ["u"]) for _ in range(2))
        if not first.equals(second):
            raise ModelError(
                "control: the law in Python gives other inputs when the same runs are computed again: a sweep computes its "
                "blocks in any order, so that such a law has to forget at the first instant of a run; give it a memory by "
                "control.discrete(..., state=...), and noise by control.sensor"
            )
        return sha256(first["u"].values.tobytes()).hexdigest()

    @cached_property
    def identity(self) -> dict[str, Any]:
        """Digests of all data that determine the bits of the store, by name."""
        if self.states:
            return self._of_states()
        o, m = self.options, self.system.mechanism
        scheme, law, extra = arguments(m, o.get("scheme"), o.get("control"), o.get("outputs"))
        changing = as_switches(m, o.get("switches"))
        recording = as_recording(self.keep)
        record = as_record(recording.signals if recording else self.keep, 2)
        stored = recording and (recording.over_time, sorted(recording.statistics.items()))
        simulation = Simulation(self.system, scheme, law, extra, record, changing.next).with_kinks()
        others = {name: x for name, x in o.items() if name not in (*TRACED, *NEUTRAL)}
        return (
            {
                "mechanism, law, scheme, outputs and switches": simulation.key,
                "space": self.space.digest,
                "keep": sha256(repr(stored).encode()).hexdigest(),
                "arguments of run": sha256(repr(_content(others)).encode()).hexdigest(),
                "runs of a block": self.block,
            }
            | (self._of_python() if self.python else {})
            | versions(self.space)
        )

    def _of_states(self) -> dict[str, Any]:
        """The identity of a sweep over states."""
        assert self.states
        stored = self.states.recording and (self.states.recording.over_time, sorted(self.states.recording.statistics.items()))
        others = {name: x for name, x in self.options.items() if name not in (*TRACED, *NEUTRAL)}
        return {
            "mechanism, outputs and states": self.states.key,
            "space": self.space.digest,
            "keep": sha256(repr(stored).encode()).hexdigest(),
            "arguments of states": sha256(repr(_content(others)).encode()).hexdigest(),
            "runs of a block": self.block,
        } | versions(self.space)

    def _of_python(self) -> dict[str, str]:
        """The part of the identity about a law in Python."""
        return {
            LAW: str(self.python),
            "inputs of the law in Python": self.inputs_of_law(),
            "version of Python": ".".join(map(str, sys.version_info[:2])),
        }


def versions(space: Space) -> dict[str, str]:
    """Versions that have to be the same on all machines that work on a store; SciPy only where it draws samples."""
    names = ("pfaffian", "casadi", "numpy", *(["scipy"] if space.sampled else []))
    return {f"version of {name}": version(name) for name in names} | {"source": sources()}


def _content(value: Any) -> Any:
    """The content of a value, for a digest."""
    if isinstance(value, Mapping):
        return [(name, _content(x)) for name, x in sorted(value.items(), key=lambda pair: str(pair[0]))]
    if isinstance(value, (bool, str)) or value is None:
        return value
    array = np.asarray(value)
    return (array.shape, sha256(array.astype("<f8").tobytes()).hexdigest())


def _duration(options: Mapping[str, Any]) -> float:
    """Duration of the runs [s]."""
    times = options.get("times")
    return float(options["duration"]) if times is None else float(times[-1]) - float(options.get("start", 0.0))


def check_names(names: Iterable[Any], keep: Any) -> None:
    """Raise ModelError if a Dataset of a store cannot have a variable of one of these names, which are in `keep`."""
    for name in names:
        if name in OF_STORE or str(name).startswith("."):
            what = "signal" if not isinstance(keep, Mapping) or keep.get(name) is True else "statistic"
            raise ModelError(f"keep: {what} {brief(name)}: a store uses that name itself; choose another")


def computed(sweep: Sweep, k: int, threads: int) -> tuple[xr.Dataset, list[str]]:
    """The results of block k, and the warnings about its runs."""
    runs = sweep.runs_of(k)
    with collected() as messages:
        return sweep.results(np.arange(runs.start, runs.stop), threads), messages
