"""Results: an xarray.Dataset with names, units and provenance."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pfaffian.errors import ModelError, RunError, brief
from pfaffian.model.loop_coordinates import loop_coordinates_of
from pfaffian.model.mechanism import Mechanism, force_unit
from pfaffian.simulate.error.balance import Cost
from pfaffian.simulate.error.global_error import ERROR_KINDS
from pfaffian.simulate.step.draft import Draft
from pfaffian.simulate.step.faults import FaultKind
from pfaffian.simulate.step.limits import excesses
from pfaffian.simulate.step.motion_statistics import MotionTally
from pfaffian.simulate.step.running_statistics import Tally
from pfaffian.simulate.step.signals import entries_of, standard
from pfaffian.simulate.step.simulation import Simulation
from pfaffian.simulate.step.step import FAULTS
from pfaffian.starts.start import Start
from pfaffian.starts.start_search import BLOCKED
from pfaffian.states.abstract_system import AbstractSystem
from pfaffian.states.signal import Signal

if TYPE_CHECKING:
    import xarray as xr

FINISHED = "finished"
NO_START = f"not assembled: {BLOCKED}"
INTERRUPTED = "interrupted: Ctrl-C ended the run, and the result contains what it had computed until then"
CAUSES = (FINISHED, "diverged: the state grew beyond bounds or became NaN; look at masses, gains and the step", *FAULTS)
"""Meaning of each value of `status`."""

DIVERGED, FIRST_FAULT, NO_STATUS = 1, 2, -1

ERROR = (
    "estimated error of the motion since this run began, at each record: angles [rad], lengths relative to the machine, speeds "
    "relative to the largest; nan where it was not estimated"
)
ENERGY_ERROR = (
    "energy error of the steps: the change of the energy less the work of inputs, dissipation and moving constraints; where "
    "any of these does work, an upper estimate from the steps that were compared, at least the rise of the energy where "
    "nothing drives the machine; nan if the run stopped, or if no step was compared"
)
MOMENTUM_ERROR = (
    "momentum error of the steps, along the slides of the first joint and about the mass centre: the change of the momentum "
    "less the impulse of all forces; where forces other than weight act, an upper estimate from the steps that were compared"
)


class Recorded(NamedTuple):
    """The computed data of a batch of runs.

    time: (times,) [s].   records: (times, runs, signals).   status: (runs,).   stopped: (runs,) time of stop [s], NaN if none.
    start: start of the runs.   series: (samples, nw) or (samples, runs, nw) inputs, every `u_step` [s].
    error: (times, runs, kinds) estimated error of the motion.   cost: errors of energy and momenta; None where no step was
    compared.   end: the variable from which a later run can continue.
    tally: statistics of the runs; the records then contain only the signals that are stored over time.
    """

    time: np.ndarray
    records: np.ndarray
    status: np.ndarray
    stopped: np.ndarray
    start: Start
    series: np.ndarray
    u_step: float
    error: np.ndarray
    cost: Cost | None = None
    end: tuple[Any, ...] | None = None
    tally: Tally | MotionTally | None = None


def build_result(s: Simulation, course: Recorded, provenance: dict[str, Any]) -> Draft:
    """The result of the runs of a Simulation, as a Draft."""
    m, (time, records, status, stopped, *_) = s.mechanism, course
    data: dict[str, Any] = {}
    coords: dict[str, Any] = coordinates_of(s.system) | {
        "time": ("time", time, {"units": "s"}),
        "run": ("run", np.arange(records.shape[1])),
    }
    known = [*standard(m).values(), *[signal for signal, _ in s.signals.values()]]
    coords |= {signal.dim: list(signal.names) for signal in known if signal.dim}
    stored = stored_signals(s, course.tally)
    recorded = {name: records[:, :, at] for name, at in entries_of(stored).items()}
    for name, (signal, size) in stored.items():
        values = recorded[name].transpose(1, 0, 2)
        if signal.dim is None and size == 1:
            data[name] = (("run", "time"), values[:, :, 0], {"units": signal.unit})
            continue
        dim = signal.dim or f"{name}_component"
        data[name] = (("run", "time", dim), values, {"units": signal.unit})
    data |= excesses(m, time, recorded)
    data["status"] = ("run", status.astype(np.int32), {"meaning": json.dumps(list(causes_of(s)))})
    data["stopped"] = ("run", stopped, {"units": "s", "meaning": "time at which a run stopped, NaN if it finished"})
    if course.end:
        data["end_state"] = course.end
    others = (
        statistics_of(s.signals, course.tally),
        _start(m, course),
        _parameters(m, course),
        _inputs(s, course),
        _errors(course),
    )
    for variables, names in others:
        data |= variables
        coords |= names
    return Draft(data, coords, {"mechanism": m.name} | {k: _plain(v) for k, v in provenance.items()})


def stored_signals(s: Simulation, tally: Tally | MotionTally | None) -> dict[str, tuple[Signal, int]]:
    """The signals that are stored over time, with the number of entries of each."""
    return s.signals if tally is None else {name: x for name, x in s.signals.items() if name in tally.recording.over_time}


def statistics_of(
    signals: Mapping[str, tuple[Signal, int]], tally: Tally | MotionTally | None
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Variables with the statistics of the runs, and coordinates with the middles of the bins of histograms."""
    data: dict[str, Any] = {}
    bins: dict[str, Any] = {}
    for name, x in tally.recording.statistics.items() if tally else ():
        signal, size = signals[x.signal]
        values, single = tally.value(name), signal.dim is None and size == 1  # type: ignore[union-attr]
        of = " by ".join(dict.fromkeys(x.signals))
        attributes = {"units": tally.unit(x.kind, signal.unit), "meaning": f"{x.kind} of {of} {tally.over}"}  # type: ignore[union-attr]
        dims = ("run",) if single else ("run", signal.dim or f"{x.signal}_component")
        if values.ndim == 3:
            dims, edges = (*dims, f"{name}_bin"), np.array(x.options)
            attributes |= {"edges": json.dumps(x.options)}
            bins[f"{name}_bin"] = f"{name}_bin", (edges[1:] + edges[:-1]) / 2, {"units": signal.unit, "meaning": "middle"}
        data[name] = dims, values[:, 0] if single else values, attributes
    return data, bins


def causes_of(s: Simulation) -> tuple[str, ...]:
    """The meaning of each status of a simulation, in order."""
    return (*CAUSES, *[fault.meaning for fault in s.faults.listed()], INTERRUPTED, NO_START)


def status_of(s: Simulation, kind: FaultKind) -> int:
    """The status of the first fault of a kind, NO_STATUS if there is no such fault."""
    place = s.faults.place(kind)
    return NO_STATUS if place is None else len(CAUSES) + place


def _start(m: Mechanism, course: Recorded) -> tuple[dict[str, Any], dict[str, Any]]:
    """Variables of the start: the correction onto the constraints before the first step, and the residual after it."""
    start = course.start
    if not m.ideal:
        return {}, {}
    meaning = "added to the given state to satisfy the constraints"
    data: dict[str, Any] = {
        "moved": (("run", "coordinate"), _of_each(start.moved, course), {"units": "per coordinate", "meaning": meaning}),
        "moved_rate": (("run", "velocity"), _of_each(start.moved_rate, course), {"units": "per velocity", "meaning": meaning}),
        "start_residual": ("run", _of_each(start.residual, course), {"units": "per row", "meaning": "residual of phi and eta"}),
    }
    return data, {}


def _parameters(m: Mechanism, course: Recorded) -> tuple[dict[str, Any], dict[str, Any]]:
    """The variable with the parameters of each run, and coordinates with their names and units."""
    given = m.given_parameters
    if not given:
        return {}, {}
    names, units = [p.name for p in given], [p.unit for p in given]
    values = ("run", "parameter"), _each(course.start.p[:, : len(given)], len(course.status)), {"units": "per parameter"}
    return {"parameters": values}, {"parameter": names, "p_unit": ("parameter", units)}


def _inputs(s: Simulation, course: Recorded) -> tuple[dict[str, Any], dict[str, Any]]:
    """The variable with the inputs given as u, constant or a series (those of the law, if any), and its coordinates."""
    if not s.w_names:
        return {}, {}
    series, known = course.series, dict(zip(s.mechanism.u_names, s.mechanism.u_units, strict=True))
    coords: dict[str, Any] = {"given": list(s.w_names), "given_unit": ("given", [known.get(n, "") for n in s.w_names])}
    attributes = {"units": "per input", "meaning": "inputs as they were given to the run"}
    if len(series) == 1:
        return {"inputs": (("run", "given"), _each(series.reshape(-1, len(s.w_names)), len(course.status)), attributes)}, coords
    instants = course.time[0] + course.u_step * np.arange(len(series))
    coords["sample_time"] = "sample", instants, {"units": "s"}
    dims = ("sample", "given") if series.ndim == 2 else ("sample", "run", "given")
    return {"inputs": (dims, series, attributes)}, coords


def _errors(course: Recorded) -> tuple[dict[str, Any], dict[str, Any]]:
    """Variables with the errors of motion, energy and momenta, and coordinates with the names of their entries."""
    cost, entry = course.cost, "momentum_error_entry"
    of_motion = course.error.swapaxes(0, 1), {"units": "1", "meaning": ERROR}
    data: dict[str, Any] = {"error": (("run", "time", "error_kind"), *of_motion)}
    coords: dict[str, Any] = {"error_kind": list(ERROR_KINDS)}
    if cost is None:
        return data, coords
    if cost.energy is not None:
        data["energy_error"] = "run", cost.energy, {"units": "J", "meaning": ENERGY_ERROR}
    if cost.momenta is None:
        return data, coords
    data["momentum_error"] = ("run", entry), cost.momentum, {"units": "per entry", "meaning": MOMENTUM_ERROR}
    return data, coords | {entry: list(cost.momenta.names), "momentum_error_unit": (entry, list(cost.momenta.units))}


def _of_each(values: np.ndarray, course: Recorded) -> np.ndarray:
    """(runs, ...) values of the start, copied only where all runs share one value."""
    return values if len(values) == len(course.status) else _each(values, len(course.status))


def _each(values: np.ndarray, runs: int) -> np.ndarray:
    """A copy (runs, ...) of values that are given for each run or once for all runs."""
    return np.array(np.broadcast_to(values, (runs, *values.shape[1:])))


def coordinates_of(s: AbstractSystem) -> dict[str, Any]:
    """Coordinates with the names and units of the mechanism, its inputs and the parts of the state."""
    m = s.mechanism
    coords: dict[str, Any] = {
        "coordinate": list(m.q_names),
        "q_unit": ("coordinate", list(m.q_units)),
        "velocity": list(m.v_names),
        "v_unit": ("velocity", list(m.v_units)),
        "force_unit": ("velocity", [force_unit(u) for u in m.v_units]),
    }
    coords |= {
        f"{part.name}_unit": (f"{part.name}_entry", list(part.units)) for part in (*s.parts, *s.named) if part.name in s.labels
    }
    if (loops := loop_coordinates_of(m)).closures:
        coords |= {
            "loop_unit": ("loop_coordinate", list(loops.units)),
            "loop_rate_unit": ("loop_velocity", list(loops.v_units)),
        }
    if m.nu:
        coords |= {"input": list(m.u_names), "u_unit": ("input", list(m.u_units))}
    return coords


def _plain(value: Any) -> str | int | float:
    """The value as an attribute that NetCDF can store."""
    if isinstance(value, (bool, np.bool_)):
        return int(value)
    return value if isinstance(value, (str, int, float)) else json.dumps(value, default=str)


def as_result(result: Any) -> xr.Dataset:
    """The value itself. Raises ModelError: it is not the result of a run."""
    import xarray as xr

    if not isinstance(result, xr.Dataset) or not {"time", "status"} <= set(result.variables):
        raise ModelError(f"this is not the result of a run (a Dataset that run(...) returns): {brief(result)}")
    return result


def causes(result: xr.Dataset) -> list[str]:
    """What ended each run of a result: "finished", or the fault, its time and, where it could be determined, its reason.

    Args:
        result: the result of `run`.
    Returns:
        list with a message for each run.
    Raises ModelError: the argument is not the result of a run.

    Example:
        >>> import pfaffian as pf
        >>> slide = pf.joint("x", "prismatic", "world", "box", axis=(1, 0, 0))
        >>> m = pf.mechanism("block", [pf.body("box", mass=2.0)], [slide])
        >>> pf.results.causes(pf.run(m, v=[[1.0], [2.0]], duration=0.1, step=0.01, backend="numpy"))
        ['finished', 'finished']
    """
    meaning = json.loads(as_result(result)["status"].attrs["meaning"])
    status, stopped = np.atleast_1d(result["status"].values), np.atleast_1d(result["stopped"].values)
    reasons = np.atleast_1d(result["reason"].values) if "reason" in result else np.full(len(status), "")
    return ends(meaning, status, stopped, reasons)


def ends(meaning: Sequence[str], status: np.ndarray, stopped: np.ndarray, reasons: np.ndarray) -> list[str]:
    """A message for each run on what ended it.

    meaning: the meaning of each value of status.   status: (runs,).   stopped: (runs,) [s].   reasons: (runs,) texts.
    A reason for a violation takes the place of the general advice after the colon, which would lead away from it.
    """
    messages = []
    for k, t, reason in zip(status, stopped, reasons, strict=True):
        what = meaning[int(k)].partition(":")[0] if k == FIRST_FAULT and reason else meaning[int(k)]
        messages.append(FINISHED if k == 0 else f"{what} (at t = {t:.6g} s)" + (f"; {reason}" if reason else ""))
    return messages


def recorded(result: xr.Dataset, *names: str) -> xr.Dataset:
    """The result itself. Raises ModelError: it lacks one of these variables, which were not recorded."""
    missing = [n for n in names if n not in result.variables]
    if missing:
        raise ModelError(f"the result has no {', '.join(map(repr, missing))}: run with record={list(names)} or record='all'")
    return result


class SignChanges(NamedTuple):
    """Instants at which a number changes its sign.

    times: (k,) [s], interpolated linearly between samples.   rising: (k,) of bool, True from negative to positive.
    """

    times: np.ndarray
    rising: np.ndarray


def sign_changes(result: xr.Dataset, variable: str, name: str | None = None) -> SignChanges:
    """Times at which one recorded number of one run changes its sign, as where a contact force would have to pull.

    Args:
        result: the result of one run.
        variable: name of a variable of the result, such as "multiplier" or "reaction".
        name: name of an entry of the variable, such as a row; None if the variable has only one entry.
    Returns:
        times: (k,) [s], interpolated linearly between two samples.
        rising: (k,) of bool, True where the number changes from negative to positive.
    Raises ModelError: the argument is not the result of a run.
    Raises RunError: the variable or entry does not exist, or the result has several runs.

    Example:
        cos(2 t) passes zero at pi/4 and 3 pi/4 s:

        >>> import pfaffian as pf
        >>> slide = pf.joint("x", "prismatic", "world", "box", axis=(1, 0, 0), stiffness=8.0)
        >>> m = pf.mechanism("oscillator", [pf.body("box", mass=2.0)], [slide])
        >>> result = pf.run(m, {"x": 1.0}, duration=2.5, step=0.01, backend="numpy")
        >>> found = pf.results.sign_changes(result, "q", "x")
        >>> found.times.round(4), found.rising
        (array([0.7854, 2.3562]), array([False,  True]))
    """
    if variable not in as_result(result):
        known = ", ".join(str(v) for v in result.data_vars)
        raise RunError(f"the result has no {variable!r}: run with record=[{variable!r}], or choose one of {known}")
    x = result[variable]
    if name is not None:
        entries = [d for d in x.dims if d not in ("run", "time") and d in x.coords]
        if not entries or name not in x[entries[0]].values:
            known = ", ".join(str(n) for n in x[entries[0]].values) if entries else "none by name"
            raise RunError(f"{variable!r} has no entry {name!r}; there are {known}")
        x = x.sel({entries[0]: name})
    if x.dims != ("time",):
        raise RunError(f"sign_changes takes one number of one run; {variable!r} still has {x.dims}: choose a run and an entry")
    t, values = result["time"].values, x.values
    signed = np.flatnonzero(np.isfinite(values) & (values != 0))
    t, values = t[signed], values[signed]
    at = np.flatnonzero(values[:-1] * values[1:] < 0)
    fraction = values[at] / (values[at] - values[at + 1])
    return SignChanges(t[at] + fraction * (t[at + 1] - t[at]), values[at] < 0)
