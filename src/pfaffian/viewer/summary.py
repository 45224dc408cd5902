"""A run in a few lines of text."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import xarray as xr

from pfaffian.errors import plural
from pfaffian.model.mechanism import Mechanism
from pfaffian.output.plain import LONGEST, table, text
from pfaffian.simulate.record.result import causes


def summary(m: Mechanism, result: xr.Dataset, seconds: float, files: list[Path]) -> str:
    """What ran, how it ended, and the numbers to check first.   seconds: wall time of the run.   files: those that it wrote."""
    facts = table([(f"{what}:", value) for what, value in _facts(m, result, seconds)], indent=0)
    return facts + "".join(f"\nwrote {text(path)}" for path in files)


def _facts(m: Mechanism, result: xr.Dataset, seconds: float) -> Iterator[tuple[str, str]]:
    """The lines of the summary: (title, text)."""
    yield "mechanism", text(m.name, LONGEST)
    yield "size", f"nq {m.nq}, nv {m.nv}, nu {m.nu}, {plural(len(m.bodies), 'body')}"
    yield "constraints", _constraints(m, result)
    yield from _course(result, seconds)
    yield "energy", _energy(result)
    if "violation" in result and "velocity_violation" in result:
        worst, rate = (float(np.nanmax(result[k].values)) for k in ("violation", "velocity_violation"))
        yield "violation", f"at most {worst:.2g} of position, {rate:.2g} of velocity"
    if "error" in result and np.isfinite(result["error"].values).any():
        worst = float(np.nanmax(result["error"].values))
        yield "error", f"at most {worst:.2g} (angles in rad, lengths and speeds relative to the largest), estimated"
    for cause in causes(result):
        status, _, advice = cause.partition(": ")
        yield "status", status
        if advice:
            yield "advice", advice


def _constraints(m: Mechanism, result: xr.Dataset) -> str:
    """Number of constraint rows, their rank and the degrees of freedom, with the changes of rank during the run."""
    if not result.sizes.get("row"):
        return f"none; {plural(m.nv, 'degree')} of freedom"
    rank = result["rank"].values if "rank" in result else np.empty(0)
    rank = rank[np.isfinite(rank)].astype(int)
    if not rank.size:
        return plural(result.sizes["row"], "row")
    low, high = int(rank.min()), int(rank.max())
    ranks = f"{low}" if low == high else f"{low} to {high}"
    free = f"{m.nv - high}" if low == high else f"{m.nv - high} to {m.nv - low}"
    changed = "" if low == high else f"; rank changed {np.count_nonzero(np.diff(rank))} times between records"
    return f"{plural(result.sizes['row'], 'row')} of rank {ranks}; degrees of freedom {free}{changed}"


def _course(result: xr.Dataset, seconds: float) -> Iterator[tuple[str, str]]:
    """The lines on duration, steps, scheme and wall time."""
    a, time = result.attrs, result["time"].values
    if "accuracy" in a:
        stepped = f"to an accuracy of {a['accuracy']:.4g}, {plural(int(np.max(result['steps'].values)), 'step')}"
    else:
        stepped = f"in {plural(round(a['duration'] / a['step']), 'step')} of {a['step']:.4g} s"
    scheme = f"{a['formulation']}, {a['integrator']}, {a.get('kernel_backend', '?')} backend"
    yield "run", f"{time[-1] - time[0]:.6g} s {stepped}; {scheme}"
    yield "wall time", f"{seconds:.2f} s, compiling included"


def _energy(result: xr.Dataset) -> str:
    if "energy" not in result:
        return "not recorded; record=['energy'] records it"
    energy = result["energy"].values
    energy = energy[np.isfinite(energy)]
    if not energy.size:
        return "not finite"
    return f"{energy[0]:.6g} J at the start, {energy[-1]:.6g} J at the end, change {energy[-1] - energy[0]:+.3g} J"
