"""Checks of a caller's arguments: states, inputs and parameters, as arrays or by name, become (runs, n) arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from pfaffian.errors import ModelError, brief, listed, nearest
from pfaffian.evaluate.light_inertia import check_light
from pfaffian.evaluate.single_values import common_runs, some_runs
from pfaffian.formats.text.run_settings import RunSettings
from pfaffian.kernel.call.memory import on_processor
from pfaffian.model.mechanism import Mechanism, check_configuration
from pfaffian.model.number import floats
from pfaffian.model.unphysical import check_ranges


def as_batch(value: Any, names: Sequence[str], default: np.ndarray, what: str) -> np.ndarray:
    """An argument as a (runs, n) array, (1, n) for one state, from None, (n,), (runs, n), or {name: number or (runs,)}.

    default: (n,) values of omitted entries.   what: the argument's name in messages.
    Raises ModelError: a wrong shape, an unknown name (with the nearest known one), a number that is not finite.
    """
    if value is None:
        return default[None, :].copy()
    value = by_label(value, what)
    if isinstance(value, Mapping):
        return _by_name(value, names, default, what)
    array = floats(value, what, names)
    if not names and array.size:
        raise ModelError(f"{what}: there are none, so leave them out; got an array of shape {array.shape}")
    if array.ndim not in (1, 2) or array.shape[-1] != len(names):
        raise ModelError(
            f"{what} has shape {array.shape}: ({len(names)},) or (runs, {len(names)}) is needed, in the order {listed(names)}"
        )
    return array[None, :] if array.ndim == 1 else array


def by_label(value: Any, what: str, *, series: bool = False) -> Any:
    """Convert a labelled pandas or xarray object to {name: values}, in any order of labels; leave anything else unchanged.

    series: whether the values may have a time axis, which then comes first.
    Raises ModelError: a whole Dataset; a time axis where no series is expected.
    """
    if hasattr(value, "iloc"):
        labels = value.index if value.ndim == 1 else value.columns
        named = len(labels) and all(isinstance(n, str) for n in labels)
        return {n: np.asarray(value[n]) for n in labels} if named else value
    if isinstance(value, RunSettings):
        raise ModelError(f"{what}: the settings of a file are not an array; unpack them: q, v, u, p = settings.arrays(m)")
    if hasattr(value, "data_vars"):
        raise ModelError(f"{what}: one variable of the Dataset is needed, such as result['q'].isel(time=-1)")
    if not (hasattr(value, "dims") and hasattr(value, "coords")):
        return on_processor(value, what)
    if "time" in value.dims and series:
        value = value.transpose("time", ...)
    elif "time" in value.dims:
        raise ModelError(f"{what} still has a time axis; choose one instant, such as .isel(time=-1)")
    labelled = [d for d in value.dims if d in value.coords and value[d].dtype.kind in "UOT"]
    return {str(n): value.sel({labelled[-1]: n}).values for n in value[labelled[-1]].values} if labelled else value.values


def instants(t: Any) -> np.ndarray:
    """(runs, 1) times [s] from one or (runs,) of them. Raises ModelError: anything else."""
    array = floats(t, "t")
    if array.ndim > 1:
        raise ModelError(f"t has shape {array.shape}: one time, or one for each run, is needed")
    return array.reshape(-1, 1)


def _by_name(value: Mapping[str, Any], names: Sequence[str], default: np.ndarray, what: str) -> np.ndarray:
    """(runs, n) array from {name: number or (runs,)}, with the default (n,) for names that are absent."""
    columns = {}
    for name, entry in value.items():
        if name not in names:
            raise unknown(name, names, what)
        columns[name] = floats(entry, f"{what}[{name!r}]")
        if columns[name].ndim > 1:
            raise ModelError(f"{what}[{name!r}] has shape {columns[name].shape}: one number, or one for each run, is needed")
    count = common_runs({f"{what}[{n!r}]": c.shape[0] if c.ndim else 1 for n, c in columns.items()})
    array = np.tile(default, (count, 1))
    for name, column in columns.items():
        array[:, list(names).index(name)] = column
    return array


def unknown(name: Any, names: Sequence[str], what: str) -> ModelError:
    """The error for an unknown name."""
    return ModelError(f"{what}: there is no {brief(name)}; {nearest(name, names)}")


def by_name(values: np.ndarray, names: Sequence[str]) -> dict[str, Any]:
    """Label (..., n) values: {name: number or (runs,) numbers}."""
    return {name: values[..., i] if values.ndim > 1 else float(values[i]) for i, name in enumerate(names)}


def one_or_many(values: np.ndarray, names: Sequence[str]) -> str:
    """Text for the repr of a result: (n,) numbers as "name = value", of (runs, n) only the number of runs and the names."""
    if values.ndim > 1:
        return f"{len(values)} times {listed(names)}"
    return listed([f"{name} = {value:.4g}" for name, value in by_name(values, names).items()])


def named(value: Any, names: Sequence[str], what: str = "names") -> np.ndarray:
    """(n,) of bool: whether a caller's dict contains each name; all False for an array, or for labels of all entries."""
    labelled = by_label(value, what)
    chosen = isinstance(labelled, Mapping) and (labelled is value or len(labelled) < len(names))
    return np.array([chosen and n in labelled for n in names], dtype=bool)


def without_lost(value: Any, names: Sequence[str], default: np.ndarray, what: str) -> tuple[Any, np.ndarray]:
    """A batch with its all-NaN rows replaced by the default, and a mask (runs,) of these rows, or (0,) for one state.

    Values that are not a batch of numbers of this size are returned unchanged, for `as_batch` to check.
    """
    value = by_label(value, what)
    if isinstance(value, Mapping):
        value = {n: on_processor(x, f"{what}[{n!r}]") for n, x in value.items()}
        columns = {n: np.asarray(x, dtype=float) for n, x in value.items() if np.ndim(x) == 1 and _numeric(x)}
        if not columns or len({len(x) for x in columns.values()}) > 1 or not set(columns) <= set(names):
            return value, np.zeros(0, dtype=bool)
        lost = np.all([np.isnan(x) for x in columns.values()], axis=0)
        if not lost.any():
            return value, lost
        start = dict(zip(names, default, strict=True))
        return {**value, **{n: np.where(lost, start[n], x) for n, x in columns.items()}}, lost
    if not _is_table(value) or np.shape(value)[1] != len(default) or not len(default):
        return value, np.zeros(0, dtype=bool)
    array = np.asarray(value, dtype=float)
    lost = np.isnan(array).all(axis=1)
    return (np.where(lost[:, None], default, array), lost) if lost.any() else (value, lost)


def _is_table(value: Any) -> bool:
    """Whether the value is a table of numbers with rows of equal length."""
    try:
        return np.ndim(value) == 2 and _numeric(value)
    except ValueError:
        return False


def _numeric(value: Any) -> bool:
    """Whether every entry is a number."""
    return getattr(value, "dtype", np.asarray(value, dtype=object).dtype).kind in "fiu" or all(
        isinstance(x, (int, float)) for x in np.ravel(np.asarray(value, dtype=object))
    )


class Arguments(NamedTuple):
    """A state, parameters and inputs that a caller gave, as arrays (runs, n) of one or of a common number of runs.

    q, v, p, u: of n = nq, nv, np, and the number of inputs.   named_q: (nq,), named_v: (nv,) of bool: the entries that a dict
    names.   guesses: whether q and v were given as arrays, and so as guesses.
    hold: names of coordinates or joints to hold besides.
    """

    q: np.ndarray
    v: np.ndarray
    p: np.ndarray
    u: np.ndarray
    named_q: np.ndarray
    named_v: np.ndarray
    guesses: tuple[bool, bool]
    hold: tuple[str, ...] = ()


def run_arguments(m: Mechanism, q: Any, v: Any, parameters: Any, u: Any, u_names: Sequence[str]) -> Arguments:
    """All arguments of a caller that are arrays or dicts of numbers, checked once; below, they are arrays.

    Raises ModelError: wrong names, shapes or numbers of runs; see `configurations`, `parameter_values`.
    """
    arrays = configurations(m, q), velocities(m, v), parameter_values(m, parameters)
    some_runs({what: len(x) for what, x in zip(("q", "v", "parameters"), arrays, strict=True)})
    inputs = as_batch(u, u_names, np.zeros(len(u_names)), "u")
    return Arguments(*arrays, inputs, named(q, m.q_names), named(v, m.v_names), (_is_guess(q), _is_guess(v)))


def _is_guess(x: Any) -> bool:
    """Whether a configuration or velocities were given as an array, which is a guess, and not by name."""
    return x is not None and not isinstance(x, Mapping)


def velocities(m: Mechanism, v: Any, what: str = "v") -> np.ndarray:
    """(runs, nv) array of velocities, or of other numbers in their order, read by `as_batch`; omitted ones are zero."""
    return as_batch(v, m.v_names, np.zeros(m.nv), what)


def parameter_values(m: Mechanism, parameters: Any) -> np.ndarray:
    """(runs, np) array of parameters, read by `as_batch`; omitted ones take their defaults.

    Raises ModelError: wrong names, shapes or numbers; inertias too far from their defaults (`check_light`); a number
    of an element that is out of its range.
    """
    n = len(m.given_parameters)
    p = m.all_parameters(as_batch(parameters, m.p_names[:n], m.p_defaults[:n], "parameters"))
    check_light(m, p)
    if parameters is not None:
        check_ranges(m, p)
    return p


def configurations(m: Mechanism, q: Any) -> np.ndarray:
    """(runs, nq) array of q, read by `as_batch`; omitted coordinates are neutral, quaternions get unit length.

    Raises ModelError: wrong names, shapes or numbers; a quaternion of zero length, or only some of its components named.
    """
    given = named(q, m.q_names, "q")
    for name, turn in m.quaternions.items():
        if given[turn].any() and not given[turn].all():
            parts = ", ".join(m.q_names[turn])
            raise ModelError(f"q names only some components of the quaternion of joint {name!r}: give all of {parts}, or none")
    return guessed_configurations(m, q)


def guessed_configurations(m: Mechanism, q: Any) -> np.ndarray:
    """(runs, nq) array of an initial guess q, which unlike in `configurations` may name only some components of a quaternion.

    The other components are neutral before the quaternion gets unit length.
    """
    array, given = as_batch(q, m.q_names, m.neutral(), "q"), named(q, m.q_names)
    fixed = np.zeros(m.nq, dtype=bool)
    for c in m.coordinates:
        at = m.q_slices[c.name]
        fixed[at] = given[at] & (not given[at].all())  # all of them named are a guess, as in an array
    return check_configuration(m, array, fixed)
