"""What a caller gives: states, inputs and parameters by array or by name, checked, as (runs, n) arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any

import numpy as np

from pfaffian.errors import ModelError
from pfaffian.formats.run_settings import RunSettings


def runs(value: Any, names: Sequence[str], default: np.ndarray, what: str) -> np.ndarray:
    """(runs, n) or (1, n) from None, (n,), (runs, n), or a dict of name -> number or (runs,).

    Raises ModelError: a wrong shape, an unknown name (with the nearest known one), a number that is not finite.
    """
    if value is None:
        return default[None, :].copy()
    value = by_label(value, what)
    if isinstance(value, Mapping):
        return _by_name(value, names, default, what)
    array = as_floats(value, what)
    if array.ndim not in (1, 2) or array.shape[-1] != len(names):
        raise ModelError(
            f"{what} has shape {array.shape}: ({len(names)},) or (runs, {len(names)}) is needed, in the order {_listed(names)}"
        )
    return array[None, :] if array.ndim == 1 else array


def by_label(value: Any, what: str) -> Any:
    """A pandas Series or DataFrame, or an xarray DataArray, as {name: values}, whatever their order; all else as it is.

    Raises ModelError: a whole Dataset, or one with times still in it.
    """
    if hasattr(value, "iloc"):
        labels = value.index if value.ndim == 1 else value.columns
        named = len(labels) and all(isinstance(n, str) for n in labels)
        return {n: np.asarray(value[n]) for n in labels} if named else value
    if isinstance(value, RunSettings):
        raise ModelError(f"{what}: the settings of a file are no array: q, v, u, p = settings.arrays(m) takes them apart")
    if hasattr(value, "data_vars"):
        raise ModelError(f"{what}: one variable of the Dataset is needed, such as result['q'].isel(time=-1)")
    if not (hasattr(value, "dims") and hasattr(value, "coords")):
        return value
    if "time" in value.dims:
        raise ModelError(f"{what} still has its times; choose one, such as .isel(time=-1)")
    labelled = [d for d in value.dims if d in value.coords and value[d].dtype.kind in "UOT"]
    return {str(n): value.sel({labelled[-1]: n}).values for n in value[labelled[-1]].values} if labelled else value.values


def as_floats(value: Any, what: str) -> np.ndarray:
    """The value as a float64 array; ModelError if it holds anything but finite numbers."""
    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise ModelError(f"{what}: {value!r} is no array of numbers") from None
    if not np.isfinite(array).all():
        where = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        raise ModelError(f"{what} is not finite at index {where}")
    return array


def _by_name(value: Mapping, names: Sequence[str], default: np.ndarray, what: str) -> np.ndarray:
    columns = {}
    for name, entry in value.items():
        if name not in names:
            near = get_close_matches(str(name), names, 1)
            raise ModelError(
                f"{what}: there is no {name!r}{f'; did you mean {near[0]!r}?' if near else ''}; there are {_listed(names)}"
            )
        columns[name] = as_floats(entry, f"{what}[{name!r}]")
        if columns[name].ndim > 1:
            raise ModelError(f"{what}[{name!r}] has shape {columns[name].shape}: one number, or one for each run, is needed")
    count = common_runs({f"{what}[{n!r}]": c.shape[0] if c.ndim else 1 for n, c in columns.items()})
    array = np.tile(default, (count, 1))
    for name, column in columns.items():
        array[:, list(names).index(name)] = column
    return array


def common_runs(counts: Mapping[str, int]) -> int:
    """The number of runs that all agree on; 1 goes with any."""
    many = {what: n for what, n in counts.items() if n != 1}
    if len(set(many.values())) > 1:
        raise ModelError("the numbers of runs differ: " + ", ".join(f"{what} has {n}" for what, n in many.items()))
    return next(iter(many.values()), 1)


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(names[:12])
    return f"{shown}, ... ({len(names)} in all)" if len(names) > 12 else shown or "none"
