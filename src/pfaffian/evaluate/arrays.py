"""Checks of what a caller passes: states, inputs and parameters by array or by name, as (runs, n) arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pfaffian.errors import ModelError, brief, listed, nearest
from pfaffian.evaluate.light_inertia import check_light
from pfaffian.formats.run_settings import RunSettings
from pfaffian.kernel.call.memory import on_processor
from pfaffian.model.mechanism import Mechanism, check_configuration
from pfaffian.model.number import floats


def runs(value: Any, names: Sequence[str], default: np.ndarray, what: str) -> np.ndarray:
    """(runs, n) or (1, n) from None, (n,), (runs, n), or a dict of name -> number or (runs,).

    Raises ModelError: a wrong shape, an unknown name (with the nearest known one), a number that is not finite.
    """
    if value is None:
        return default[None, :].copy()
    value = by_label(value, what)
    if isinstance(value, Mapping):
        return _by_name(value, names, default, what)
    array = floats(value, what, names)
    if array.ndim not in (1, 2) or array.shape[-1] != len(names):
        raise ModelError(
            f"{what} has shape {array.shape}: ({len(names)},) or (runs, {len(names)}) is needed, in the order {listed(names)}"
        )
    return array[None, :] if array.ndim == 1 else array


def by_label(value: Any, what: str, *, series: bool = False) -> Any:
    """A pandas Series or DataFrame, or an xarray DataArray, as {name: values}, whatever their order; anything else unchanged.

    Raises ModelError: a whole Dataset; times where no series is expected. In a series time comes first.
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
        return on_processor(value, what)
    if "time" in value.dims and series:
        value = value.transpose("time", ...)
    elif "time" in value.dims:
        raise ModelError(f"{what} still has its times; choose one, such as .isel(time=-1)")
    labelled = [d for d in value.dims if d in value.coords and value[d].dtype.kind in "UOT"]
    return {str(n): value.sel({labelled[-1]: n}).values for n in value[labelled[-1]].values} if labelled else value.values


def as_number(value: Any, what: str, *, above: float = -np.inf, least: float = -np.inf) -> float:
    """One finite real number above `above` and at least `least`; ModelError for anything else."""
    array = floats(value, what)
    if array.ndim:
        raise ModelError(f"{what} has shape {array.shape}: one number is needed")
    if not (array > above and array >= least):
        bound = f"above {above:g}" if array >= least else f"at least {least:g}"
        raise ModelError(f"{what} must be {bound}, got {brief(value)}")
    return float(array)


LARGEST = 2**53
"""Largest count: beyond it a number of steps is no exact float."""


MOST_THREADS = 1024
"""Threads that a caller may ask for."""


def as_whole(value: Any, what: str, most: int = LARGEST) -> int:
    """A whole number from 1 to `most`; ModelError for anything else, True and 2.0 included."""
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool) and 1 <= value <= most:
        return int(value)
    raise ModelError(f"{what} must be a whole number from 1 to {most}, got {brief(value)}")


def one_of(value: Any, known: Sequence[str], what: str) -> None:
    """Raise ModelError where the value is not among those known."""
    if value not in known:
        raise ModelError(f"{what} {brief(value)} is unknown; one of {', '.join(known)}")


def as_flag(value: Any, what: str) -> bool:
    """True or False; ModelError for anything else, which Python would read as either."""
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    raise ModelError(f"{what} must be True or False, got {brief(value)}")


def _by_name(value: Mapping[str, Any], names: Sequence[str], default: np.ndarray, what: str) -> np.ndarray:
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
    """{name: its number, or its (runs,) numbers} of (..., n) values."""
    return {name: values[..., i] if values.ndim > 1 else float(values[i]) for i, name in enumerate(names)}


def one_or_many(values: np.ndarray, names: Sequence[str]) -> str:
    """What a result says of its (n,) numbers, or of (runs, n): the first of them by name, or how many there are."""
    if values.ndim > 1:
        return f"{len(values)} times {listed(names)}"
    return listed([f"{name} = {value:.4g}" for name, value in by_name(values, names).items()])


def named(value: Any, names: Sequence[str], what: str = "names") -> np.ndarray:
    """(n,) of bool: which of the names a caller's dict contains; none of an array, nor of labels that contain them all."""
    labelled = by_label(value, what)
    chosen = isinstance(labelled, Mapping) and (labelled is value or len(labelled) < len(names))
    return np.array([chosen and n in labelled for n in names], dtype=bool)


def without_lost(value: Any, names: Sequence[str], default: np.ndarray, what: str) -> tuple[Any, np.ndarray]:
    """A batch with the default in place of rows of nothing but NaN, and which rows these are (runs,); (0,) for one state."""
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
    """Whether the value is a table of numbers; one with rows of several lengths is none."""
    try:
        return np.ndim(value) == 2 and _numeric(value)
    except ValueError:
        return False


def _numeric(value: Any) -> bool:
    return getattr(value, "dtype", np.asarray(value, dtype=object).dtype).kind in "fiu" or all(
        isinstance(x, (int, float)) for x in np.ravel(np.asarray(value, dtype=object))
    )


def velocities(m: Mechanism, v: Any, what: str = "v") -> np.ndarray:
    """(runs, nv) of velocities, or of other numbers in their order, as `runs` reads it; zero where not named."""
    return runs(v, m.v_names, np.zeros(m.nv), what)


def parameter_values(m: Mechanism, parameters: Any) -> np.ndarray:
    """(runs, np) of parameters as `runs` reads it; defaults where not named.

    Raises ModelError: as `runs`; inertias too far from their defaults, see `check_light`.
    """
    p = runs(parameters, m.p_names, m.p_defaults, "parameters")
    check_light(m, p)
    return p


def configurations(m: Mechanism, q: Any) -> np.ndarray:
    """(runs, nq) of q as `runs` reads it, unnamed coordinates neutral, quaternions of unit length.

    Raises ModelError: as `runs`; a quaternion of zero length, or only a part of one named.
    """
    given = named(q, m.q_names, "q")
    for name, turn in m.quaternions.items():
        if given[turn].any() and not given[turn].all():
            parts = ", ".join(m.q_names[turn])
            raise ModelError(f"q names a part of the quaternion of joint {name!r}: give all of {parts}, or none")
    return guessed_configurations(m, q)


def guessed_configurations(m: Mechanism, q: Any) -> np.ndarray:
    """As `configurations`, of a q that only says where to begin: it may name a part of a quaternion, the rest of which is
    neutral before it gets unit length."""
    array, given = runs(q, m.q_names, m.neutral(), "q"), named(q, m.q_names)
    fixed = np.zeros(m.nq, dtype=bool)
    for c in m.coordinates:
        at = m.q_slices[c.name]
        fixed[at] = given[at] & (not given[at].all())  # if all are named they are a guess, like an array
    return check_configuration(m, array, fixed)


def common_runs(counts: Mapping[str, int]) -> int:
    """The number of runs that all agree on; 1 agrees with any."""
    many = {what: n for what, n in counts.items() if n != 1}
    if len(set(many.values())) > 1:
        raise ModelError("the numbers of runs differ: " + ", ".join(f"{what} has {n}" for what, n in many.items()))
    return next(iter(many.values()), 1)


def some_runs(counts: Mapping[str, int]) -> int:
    """Like `common_runs`, and at least one."""
    count = common_runs(counts)
    if not count:
        raise ModelError(f"no run in {' and '.join(what for what, n in counts.items() if not n)}: give one at least")
    return count
