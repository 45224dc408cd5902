"""The best runs of a sweep, and further sweeps around the best run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr

from pfaffian.errors import ModelError, brief, nearest
from pfaffian.evaluate.single_values import as_flag, as_number, as_whole
from pfaffian.formats.text.file import as_path
from pfaffian.formats.text.sweep_settings import Method
from pfaffian.simulate.step.sampling import check_seed
from pfaffian.states.system import as_system
from pfaffian.sweeps.engine import sweep
from pfaffian.sweeps.space import samples

PIECE = 2**20
"""Number of runs that are read from the store at a time."""


def column(found: xr.Dataset, by: Any) -> xr.DataArray:
    """(run,) one number of each run, by "NAME", "NAME.ENTRY" or the label of an axis. Raises ModelError: there is none."""
    if not isinstance(found, xr.Dataset) or not {"space", "status"} <= set(found.variables):
        raise ModelError(f"the Dataset of a sweep is needed, as sweep(...) and open_store return it, got {brief(found)}")
    axes = found["axis"].values.tolist()
    if by in axes:
        return found["space"][:, axes.index(by)].drop_vars("axis")
    name, _, entry = str(by).partition(".") if str(by) not in found else (str(by), "", "")
    if name not in found.data_vars or name == "space":
        known = [*axes, *(str(n) for n, x in found.data_vars.items() if "run" in x.dims and n != "space")]
        raise ModelError(f"the sweep has no {brief(by)}; {nearest(by, known)}")
    x = found[name]
    dims = [str(d) for d in x.dims if d != "run"]
    if not dims or dims == ["run"]:
        return x
    labels = [str(v) for v in x[dims[0]].values] if dims[0] in x.coords else []
    if len(dims) > 1 or "time" in dims or (entry not in labels and x.sizes[dims[0]] > 1):
        raise ModelError(f"{brief(by)}: one number of each run is needed; " + nearest(by, [f"{name}.{n}" for n in labels]))
    return x.isel({dims[0]: labels.index(entry) if entry else 0}).drop_vars(dims[0], errors="ignore")


def best(results: xr.Dataset, by: str, count: int = 10, *, largest: bool = False) -> xr.Dataset:
    """The runs of a sweep with the smallest values of one number, the best first; only runs that finished.

    The store is read in pieces, so that it may be larger than memory.

    Args:
        results: Dataset of a sweep.
        by: the number to rank by: "NAME" of a stored number, "NAME.ENTRY" of one of its entries, or the label of an axis.
        count: number of runs, 10 by default.
        largest: rank by the largest values instead; False by default.
    Returns:
        Dataset of these runs, in memory; fewer than `count` if fewer have a value.
    Raises ModelError: there is no such number.

    Example:
        >>> import tempfile
        >>> import pfaffian as pf
        >>> m = pf.mechanism("box", [pf.body("box", 1.0)], [pf.joint("x", "prismatic", "world", "box")])
        >>> how = {"duration": 1.0, "step": 0.1, "backend": "numpy", "keep": {"end": pf.statistics.final("q")}}
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     found = pf.sweep(m, {"v:x": [1.0, 4.0, 2.0]}, store=f"{folder}/runs.zarr", **how)
        ...     pf.sweeps.best(found, "end", 2, largest=True)["run"].values
        array([1, 2])
    """
    x, number, sign = column(results, by), as_whole(count, "count"), -1.0 if as_flag(largest, "largest") else 1.0
    values, runs = np.zeros(0), np.zeros(0, dtype=int)
    for first in range(0, x.sizes["run"], PIECE):
        part = slice(first, first + PIECE)
        ranked = np.where(results["status"][part].values == 0, sign * x[part].values, np.nan)
        good = np.flatnonzero(~np.isnan(ranked))
        values, runs = np.append(values, ranked[good]), np.append(runs, first + good)
        order = np.argsort(values, kind="stable")[:number]
        values, runs = values[order], runs[order]
    at_run = [name for name, x in results.variables.items() if "run" in x.dims]
    chosen = results.drop_vars([n for n in results.variables if n not in at_run and n not in results.coords])
    back = np.argsort(np.argsort(runs))
    return chosen.isel(run=np.sort(runs)).load().isel(run=back).assign_coords(run=runs)


def refine(
    m: Any,
    ranges: Mapping[str, tuple[float, float]],
    *,
    store: Any,
    keep: Any,
    by: str,
    largest: bool = False,
    rounds: int = 4,
    count: int = 1024,
    shrink: float = 0.4,
    method: Method = "sobol",
    seed: int = 0,
    **options: Any,
) -> xr.Dataset:
    """Sweep a box, then smaller and smaller boxes around the best run so far; called again, it continues where it was stopped.

    Every round is a `sweep` with a separate store, STORE/round0.zarr and so on. Its box depends only on the rounds before it,
    so that an interrupted refinement ends with the same bits.

    Args:
        m: the mechanism, or a System.
        ranges: {label: (lowest, highest)}, labels as in `sweep`; all boxes lie within them.
        store: folder for the stores of the rounds.
        keep: as in `sweep`.
        by, largest: which run is best, see `best`; the one with the smallest value by default.
        rounds: number of rounds, including the first; 4 by default.
        count: number of runs in a round, 1024 by default.
        shrink: ratio of the sides of a box to those of the box before, 0.4 by default.
        method, seed: of the points, see `samples`; round k has the seed `seed + k`.
        options: of `sweep` and `run`; `duration` is needed.
    Returns:
        Dataset of the best run of each round, over `run`, the best of all first; `round` is its round.
    Raises ModelError: wrong arguments, see `sweep`; no run of a round finishes.

    Example:
        From which height must a stone start to end at 2 m?

        >>> import tempfile
        >>> import pfaffian as pf
        >>> m = pf.mechanism("stone", [pf.body("stone", 1.0)], [pf.joint("z", "prismatic", "world", "stone")])
        >>> how = {"duration": 1.0, "step": 0.1, "backend": "numpy", "outputs": {"off": lambda k: (k.q[0] - 2) ** 2}}
        >>> keep = {"end": pf.statistics.final("off")}
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     best = pf.sweeps.refine(m, {"q:z": (0, 20)}, store=folder, keep=keep, by="end", count=32, rounds=3, **how)
        >>> best["space"].values[0].round(1)
        array([6.9])
    """
    as_system(m)
    check_seed(seed)
    place, ratio = as_path(store), as_number(shrink, "shrink", above=0)
    if not ratio < 1:
        raise ModelError(f"shrink must be below 1, got {ratio:g}")
    samples(ranges, count, method=method, seed=seed)  # which checks them
    low, high = np.array([*ranges.values()], dtype=float).T
    sides, box, found = high - low, dict(ranges), []
    for k in range(as_whole(rounds, "rounds")):
        points = samples(box, count, method=method, seed=seed + k)
        made = sweep(m, points, store=place / f"round{k}.zarr", keep=keep, **options)
        top = best(made, by, 1, largest=largest)
        if not top.sizes["run"]:
            raise ModelError(f"refine: no run of round {k} finished with a value of {by!r}")
        found.append(top.assign_coords(round=("run", [k])))
        tops = xr.concat(found, "run", data_vars="minimal", coords="minimal", compat="override")
        order = np.argsort(column(tops, by).values * (-1 if largest else 1), kind="stable")
        centre, half = tops["space"].values[order[0]], sides * ratio ** (k + 1) / 2
        middle = np.clip(centre, low + half, high - half)
        box = {label: (a, b) for label, a, b in zip(ranges, middle - half, middle + half, strict=True)}
    return tops.isel(run=order)
