"""Results: an xarray.Dataset with names, units and provenance."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pfaffian.errors import ModelError, RunError, brief
from pfaffian.model.mechanism import Mechanism, force_unit
from pfaffian.simulate.balance import Cost
from pfaffian.simulate.draft import Draft
from pfaffian.simulate.faults import Kind
from pfaffian.simulate.limits import excesses
from pfaffian.simulate.signals import Signal, entries_of, standard
from pfaffian.simulate.simulation import Simulation
from pfaffian.simulate.start import Start
from pfaffian.simulate.start_search import BLOCKED
from pfaffian.simulate.statistics import KINDS, Tally
from pfaffian.simulate.step import FAULTS
from pfaffian.simulate.system import System

if TYPE_CHECKING:
    import xarray as xr

FINISHED = "finished"
NO_START = f"not assembled: {BLOCKED}"
INTERRUPTED = "interrupted: the run was ended by Ctrl-C, and what it had computed until then is here"
CAUSES = (FINISHED, "diverged: the state grew beyond bounds or became no number; look at masses, gains and the step", *FAULTS)
"""Meaning of each value of `status`."""

DIVERGED, FIRST_FAULT, NO_STATUS = 1, 2, -1

STEP_ERROR = "sum of the errors of the steps, in angles [rad] or in speeds relative to the largest; nan if no step was compared"
ENERGY_ERROR = (
    "energy that the steps made: its change less the work of inputs, dissipation and moving constraints; where any of these "
    "does work an upper estimate from the steps that were compared, and no less than it rises by where nothing drives the "
    "machine; nan if the run stopped, or if no step was compared"
)
MOMENTUM_ERROR = (
    "momentum that the steps made, along the slides of the first joint and about the mass centre: its change less the impulse "
    "of all that pushes; where more than weight pushes an upper estimate from the steps that were compared"
)


class Recorded(NamedTuple):
    """What some runs did.

    time: (times,) [s].   records: (times, runs, signals).   status: (runs,).   stopped: (runs,) time of stop, NaN if none.
    start: where they started.   series: (samples, nw) or (samples, runs, nw) inputs, every `u_step` [s].
    cost: errors of the steps; None where no step was compared.
    end: the variable from which a run can go on.   tally: statistics; records then have only what is kept over time.
    """

    time: np.ndarray
    records: np.ndarray
    status: np.ndarray
    stopped: np.ndarray
    start: Start
    series: np.ndarray
    u_step: float
    cost: Cost | None = None
    end: tuple[Any, ...] | None = None
    tally: Tally | None = None


def drafted(s: Simulation, course: Recorded, provenance: dict[str, Any]) -> Draft:
    """The result of a Simulation's runs."""
    m, (time, records, status, stopped, *_) = s.mechanism, course
    data: dict[str, Any] = {}
    coords: dict[str, Any] = _coordinates(s.system) | {
        "time": ("time", time, {"units": "s"}),
        "run": ("run", np.arange(records.shape[1])),
    }
    known = [*standard(m).values(), *[signal for signal, _ in s.signals.values()]]
    coords |= {signal.dim: list(signal.names) for signal in known if signal.dim}
    kept = kept_signals(s, course.tally)
    recorded = {name: records[:, :, at] for name, at in entries_of(kept).items()}
    for name, (signal, size) in kept.items():
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
    others = (_statistics(s, course.tally), _start(m, course), _parameters(m, course), _inputs(s, course), _errors(course))
    for variables, names in others:
        data |= variables
        coords |= names
    return Draft(data, coords, {"mechanism": m.name} | {k: _plain(v) for k, v in provenance.items()})


def kept_signals(s: Simulation, tally: Tally | None) -> dict[str, tuple[Signal, int]]:
    """The signals that are kept over time, with the entries of each."""
    return s.signals if tally is None else {name: x for name, x in s.signals.items() if name in tally.recording.over_time}


def _statistics(s: Simulation, tally: Tally | None) -> tuple[dict[str, Any], dict[str, Any]]:
    found: dict[str, Any] = {}
    bins: dict[str, Any] = {}
    for name, x in tally.recording.statistics.items() if tally else ():
        (signal, size), unit = s.signals[x.signal], KINDS[x.kind].unit
        values, single = tally.value(name), signal.dim is None and size == 1  # type: ignore[union-attr]
        attributes = {"units": unit(signal.unit), "meaning": f"{x.kind} of {x.signal} over all steps"}
        dims = ("run",) if single else ("run", signal.dim or f"{x.signal}_component")
        if values.ndim == 3:
            dims, edges = (*dims, f"{name}_bin"), np.array(x.options)
            attributes |= {"edges": json.dumps(x.options)}
            bins[f"{name}_bin"] = f"{name}_bin", (edges[1:] + edges[:-1]) / 2, {"units": signal.unit, "meaning": "middle"}
        found[name] = dims, values[:, 0] if single else values, attributes
    return found, bins


def causes_of(s: Simulation) -> tuple[str, ...]:
    """Meaning of each status value of a simulation."""
    return (*CAUSES, *[fault.meaning for fault in s.faults.listed()], INTERRUPTED, NO_START)


def status_of(s: Simulation, kind: Kind) -> int:
    """The status of the first fault of a kind, NO_STATUS where there is none."""
    place = s.faults.place(kind)
    return NO_STATUS if place is None else len(CAUSES) + place


def _start(m: Mechanism, course: Recorded) -> tuple[dict[str, Any], dict[str, Any]]:
    """What moved onto the constraints before the first step, and the residual that is left."""
    start = course.start
    if not m.ideal:
        return {}, {}
    meaning = "added to the given state to meet the constraints"
    data: dict[str, Any] = {
        "moved": (("run", "coordinate"), _of_each(start.moved, course), {"units": "per coordinate", "meaning": meaning}),
        "moved_rate": (("run", "velocity"), _of_each(start.moved_rate, course), {"units": "per velocity", "meaning": meaning}),
        "start_residual": ("run", _of_each(start.residual, course), {"units": "per row", "meaning": "left of phi and eta"}),
    }
    return data, {}


def _parameters(m: Mechanism, course: Recorded) -> tuple[dict[str, Any], dict[str, Any]]:
    if not m.parameters:
        return {}, {}
    names, units = list(m.p_names), [p.unit for p in m.parameters]
    values = ("run", "parameter"), _each(course.start.p, len(course.status)), {"units": "per parameter"}
    return {"parameters": values}, {"parameter": names, "p_unit": ("parameter", units)}


def _inputs(s: Simulation, course: Recorded) -> tuple[dict[str, Any], dict[str, Any]]:
    """The inputs that the caller gave as u, constant or a series; under a law those of the law."""
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
    cost, entry = course.cost, "momentum_error_entry"
    if cost is None:
        return {}, {}
    data: dict[str, Any] = {"step_error": ("run", cost.error, {"units": "1", "meaning": STEP_ERROR})}
    if cost.energy is not None:
        data["energy_error"] = "run", cost.energy, {"units": "J", "meaning": ENERGY_ERROR}
    if cost.momenta is None:
        return data, {}
    data["momentum_error"] = ("run", entry), cost.momentum, {"units": "per entry", "meaning": MOMENTUM_ERROR}
    return data, {entry: list(cost.momenta.names), "momentum_error_unit": (entry, list(cost.momenta.units))}


def _of_each(values: np.ndarray, course: Recorded) -> np.ndarray:
    """(runs, ...) of what belongs to the start alone, copied only where it is one for all runs."""
    return values if len(values) == len(course.status) else _each(values, len(course.status))


def _each(values: np.ndarray, runs: int) -> np.ndarray:
    """(runs, ...) of values given for each run or for all."""
    return np.array(np.broadcast_to(values, (runs, *values.shape[1:])))


def _coordinates(s: System) -> dict[str, Any]:
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
    if m.nu:
        coords |= {"input": list(m.u_names), "u_unit": ("input", list(m.u_units))}
    return coords


def _plain(value: Any) -> str | int | float:
    """An attribute that NetCDF can hold."""
    if isinstance(value, (bool, np.bool_)):
        return int(value)
    return value if isinstance(value, (str, int, float)) else json.dumps(value, default=str)


def as_result(result: Any) -> xr.Dataset:
    """The value itself. Raises ModelError: it is no result of a run."""
    import xarray as xr

    if not isinstance(result, xr.Dataset) or not {"time", "status"} <= set(result.variables):
        raise ModelError(f"this is no result of a run, a Dataset as run(...) gives it: {brief(result)}")
    return result


def causes(result: xr.Dataset) -> list[str]:
    """What ended each run of a result: "finished", or the fault, its time, and what is to blame where that could be determined.

    Args:
        result: of `run` or `run_adaptive`.
    Returns:
        list with a message for each run.
    Raises ModelError: no result of a run.

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
    """What ended each run. meaning: of each value of its status (runs,).   stopped: (runs,) [s].   reasons: (runs,) texts."""
    return [
        FINISHED if k == 0 else f"{meaning[int(k)]} (at t = {t:.6g} s)" + (f"; {reason}" if reason else "")
        for k, t, reason in zip(status, stopped, reasons, strict=True)
    ]


def recorded(result: xr.Dataset, *names: str) -> xr.Dataset:
    """The result, if it has these variables. Raises ModelError: they are missing; what to record."""
    missing = [n for n in names if n not in result.variables]
    if missing:
        raise ModelError(f"the result has no {', '.join(map(repr, missing))}: run with record={list(names)} or record='all'")
    return result


class SignChanges(NamedTuple):
    """When a number passes zero.   times: (k,) [s], interpolated linearly between samples.   rising: (k,) from - to +."""

    times: np.ndarray
    rising: np.ndarray


def sign_changes(result: xr.Dataset, variable: str, name: str | None = None) -> SignChanges:
    """Times at which one recorded number of one run changes its sign: of a contact force that would have to pull, for instance.

    Args:
        result: of one run.
        variable: of the result, such as "multiplier" or "reaction".
        name: of the variable's entry, such as the row; None where it has but one.
    Returns:
        times: (k,) [s], interpolated linearly between two samples.
        rising: (k,) of bool, True where the number changes from negative to positive.
    Raises ModelError: no result of a run.
    Raises RunError: no such variable or entry, or several runs at once.

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
        raise RunError(f"the result has no {variable!r}: run with record=[{variable!r}], or take one of {known}")
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
    part = values[at] / (values[at] - values[at + 1])
    return SignChanges(t[at] + part * (t[at + 1] - t[at]), values[at] < 0)
