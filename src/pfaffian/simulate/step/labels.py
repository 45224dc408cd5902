"""Labels of a result: its Dataset, built without the checks of xarray, which would take a third of the time of a short run.

xarray takes longer to import than everything else, so this file is imported only when the first result is labelled.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from xarray.indexes import PandasIndex


def labelled(data: dict[str, tuple[Any, ...]], coords: dict[str, Any], attrs: dict[str, Any], squeeze: bool) -> xr.Dataset:
    """The Dataset of the data, coordinates and attributes of a `Draft`.   squeeze: drop the run axis of a single run."""
    variable = _only if squeeze else _variable
    variables, indexes = _coordinates({name: x if isinstance(x, list) else variable(*x) for name, x in coords.items()})
    names = set(variables)
    variables |= {name: variable(*x) for name, x in data.items()}
    return _dataset(variables, names, indexes, attrs)


def _dataset(variables: dict[Any, Any], coords: set[Any], indexes: dict[Any, Any], attrs: dict[str, Any]) -> xr.Dataset:
    """The Dataset of variables whose dimensions agree; those named in `coords` are its coordinates.

    The public constructors of xarray check and copy each variable, which takes a third of the time of a short run. Its private
    constructor does not.
    """
    try:
        return xr.Dataset._construct_direct(variables, coords, attrs=attrs, indexes=indexes)
    except (AttributeError, TypeError):  # this version of xarray has another private constructor
        result = xr.Coordinates(variables, indexes).to_dataset().reset_coords([n for n in variables if n not in coords])
        result.attrs = attrs
        return result


def _variable(dims: Any, values: Any, attributes: Any = None) -> xr.Variable:
    """A variable of an array or of a list of texts."""
    if isinstance(values, list):
        return _texts(dims, tuple(values)).copy(deep=False)  # a copy, so that its attributes are not shared
    return _plain(dims, values, attributes)


def _plain(dims: Any, values: np.ndarray, attributes: Any = None) -> xr.Variable:
    """A variable of a NumPy array, unchecked: to look for other kinds of arrays, xarray would import dask where installed."""
    return xr.Variable(dims, values, attributes, fastpath=True)


def _only(dims: Any, values: Any, attributes: Any = None) -> xr.Variable:
    """A variable of the only run: without the axis "run"."""
    dims = (dims,) if isinstance(dims, str) else tuple(dims)
    if "run" in dims:
        at = dims.index("run")
        dims, values = dims[:at] + dims[at + 1 :], np.asarray(values)[(slice(None),) * at + (0, ...)]
    return _variable(dims, values, attributes)


def _coordinates(coords: dict[str, Any]) -> tuple[dict[Any, Any], dict[Any, Any]]:
    """Variables and indexes of coordinates, which are given as variables or as lists of entry names."""
    indexes: dict[Any, Any] = {}
    variables: dict[Any, Any] = {}
    for name, value in coords.items():
        if isinstance(value, list):
            indexes[name], named = _index(name, tuple(value))
            variables |= {key: x.copy(deep=False) for key, x in named.items()}
            continue
        variables[name] = value
        if value.dims == (name,):
            indexes[name] = _entries(value.values, name)
            variables |= indexes[name].create_variables(variables)
    return variables, indexes


@lru_cache(maxsize=256)
def _index(dim: str, names: tuple[str, ...]) -> tuple[PandasIndex, dict[Any, Any]]:
    """The index of a dimension's entries by name, and its variable. Building them takes a tenth of the time of a short run."""
    index = _entries(np.array(names), dim)
    return index, dict(index.create_variables())


def _entries(values: np.ndarray, dim: Any) -> PandasIndex:
    """The index of a dimension by these values, made by pandas: of an array xarray would first ask whether it is dask's."""
    return PandasIndex(pd.Index(values), dim)


@lru_cache(maxsize=256)
def _texts(dim: Any, texts: tuple[str, ...]) -> xr.Variable:
    """A variable of texts, such as units, that cannot be changed in place."""
    values = np.array(texts)
    values.flags.writeable = False
    return _plain(dim, values)
