"""Labels of a result: its Dataset, made past the checks of xarray that cost a third of a short run.

xarray takes longer to import than all else, so this file is imported when the first result is labelled.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import xarray as xr
from xarray.indexes import PandasIndex


def labelled(data: dict[str, tuple[Any, ...]], coords: dict[str, Any], attrs: dict[str, Any], squeeze: bool) -> xr.Dataset:
    """The Dataset of these parts of a `Draft`; squeeze: without the run axis of a single run."""
    made = _only if squeeze else _variable
    variables, indexes = _coordinates({name: x if isinstance(x, list) else made(*x) for name, x in coords.items()})
    names = set(variables)
    variables |= {name: made(*x) for name, x in data.items()}
    return _dataset(variables, names, indexes, attrs)


def _dataset(variables: dict[Any, Any], coords: set[Any], indexes: dict[Any, Any], attrs: dict[str, Any]) -> xr.Dataset:
    """The Dataset of variables that fit together, those named in `coords` as coordinates.

    xarray checks and copies each of them, by all that it offers to others, which takes a third of a short run; what it offers
    itself does not.
    """
    try:
        return xr.Dataset._construct_direct(variables, coords, attrs=attrs, indexes=indexes)
    except (AttributeError, TypeError):  # a version of xarray in which this is another way
        result = xr.Coordinates(variables, indexes).to_dataset().reset_coords([n for n in variables if n not in coords])
        result.attrs = attrs
        return result


def _variable(dims: Any, values: Any, attributes: Any = None) -> xr.Variable:
    if isinstance(values, list):
        return _texts(dims, tuple(values)).copy(deep=False)  # whose attributes are the caller's own
    return _plain(dims, values, attributes)


def _plain(dims: Any, values: np.ndarray, attributes: Any = None) -> xr.Variable:
    """Of a NumPy array as it is: xarray would look for other kinds, and import dask for that where it is installed."""
    return xr.Variable(dims, values, attributes, fastpath=True)


def _only(dims: Any, values: Any, attributes: Any = None) -> xr.Variable:
    """The same for the only run."""
    dims = (dims,) if isinstance(dims, str) else tuple(dims)
    if "run" in dims:
        at = dims.index("run")
        dims, values = dims[:at] + dims[at + 1 :], np.asarray(values)[(slice(None),) * at + (0, ...)]
    return _variable(dims, values, attributes)


def _coordinates(coords: dict[str, Any]) -> tuple[dict[Any, Any], dict[Any, Any]]:
    """Variables and indexes of coordinates, given as variables or as lists of the names of entries."""
    indexes: dict[Any, Any] = {}
    variables: dict[Any, Any] = {}
    for name, value in coords.items():
        if isinstance(value, list):
            indexes[name], named = _index(name, tuple(value))
            variables |= {key: x.copy(deep=False) for key, x in named.items()}
            continue
        variables[name] = value
        if value.dims == (name,):
            indexes[name] = PandasIndex(value.values, name)
            variables |= indexes[name].create_variables(variables)
    return variables, indexes


@lru_cache(maxsize=256)
def _index(dim: str, names: tuple[str, ...]) -> tuple[PandasIndex, dict[Any, Any]]:
    """The index of a dimension's entries by name, and its variable; making them takes a tenth of a short run."""
    index = PandasIndex(np.array(names), dim)
    return index, dict(index.create_variables())


@lru_cache(maxsize=256)
def _texts(dim: Any, texts: tuple[str, ...]) -> xr.Variable:
    """A variable of texts, such as units, that cannot be changed in place."""
    values = np.array(texts)
    values.flags.writeable = False
    return _plain(dim, values)
