"""The space of a sweep: axes and their dimensions. Axes of one dimension vary together; different dimensions multiply."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from typing import Any, NamedTuple, get_args

import numpy as np

from pfaffian.errors import ModelError, brief, nearest, optional
from pfaffian.evaluate.single_values import as_whole, one_of
from pfaffian.formats.text.sweep_settings import Method
from pfaffian.model.mechanism import Mechanism
from pfaffian.model.number import floats
from pfaffian.simulate.step.sampling import check_seed, check_seeds

SEED = "seed"
"""Label of the axis of seeds."""

GROUPS = {"q:": "q", "v:": "v", "u:": "u"}
"""Prefix of the label of an axis -> argument of `run`; the label of a parameter is its name without a prefix."""


@dataclass(frozen=True)
class Points:
    """Low-discrepancy points in a box, computed when they are needed.   low, high: (axes,) bounds of the box."""

    method: Method
    count: int
    seed: int
    low: tuple[float, ...]
    high: tuple[float, ...]

    def at(self, which: np.ndarray) -> np.ndarray:
        """(len(which), axes) the points with the increasing indices `which`."""
        low, high = np.array(self.low), np.array(self.high)
        return low + (high - low) * (_table(self)[which] if self.method == "latin" else self._drawn(which))

    def _drawn(self, which: np.ndarray) -> np.ndarray:
        """The points `which` in the unit box, drawn in pieces of successive indices."""
        qmc = _qmc()
        engine, at = _ENGINES.known.pop(self, (None, 0))
        if engine is None or which[0] < at:
            kind = {"sobol": qmc.Sobol, "halton": qmc.Halton}[self.method]
            engine, at = kind(len(self.low), seed=np.random.default_rng(self.seed)), 0
        pieces = []
        for part in np.split(which, np.flatnonzero(np.diff(which) != 1) + 1):
            if part[0] > at:
                engine.fast_forward(int(part[0]) - at)
            lone = [engine.random(1)] if part[0] == 0 else []  # Sobol warns if its first draw is not a power of two
            pieces += lone + ([engine.random(len(part) - len(lone))] if len(part) > len(lone) else [])
            at = int(part[-1]) + 1
        _ENGINES.known[self] = engine, at
        return np.concatenate(pieces)


class _Engines(threading.local):
    """Engines of a thread, and the number of points that each has drawn: a new one needs seconds to reach the 10^9th point."""

    def __init__(self) -> None:
        self.known: dict[Points, tuple[Any, int]] = {}


_ENGINES = _Engines()


def _qmc() -> Any:
    """The module scipy.stats.qmc. Raises ModelError: SciPy is not installed."""
    return optional("scipy.stats.qmc", "scipy", "samples need")


@cache
def _table(points: Points) -> np.ndarray:
    """All points of a Latin hypercube, which cannot be computed one by one."""
    return _qmc().LatinHypercube(len(points.low), seed=np.random.default_rng(points.seed)).random(points.count)


class Drawn(NamedTuple):
    """An axis whose values are one coordinate of some points.   dim: its dimension.   axis: index of the coordinate."""

    dim: str
    points: Points
    axis: int


class Listed(NamedTuple):
    """An axis with given values (n,).   dim: its dimension."""

    dim: str
    values: np.ndarray


@dataclass(frozen=True, eq=False)
class Space:
    """What varies in a sweep.   sizes: of each dimension; the last one varies fastest.   axes: label -> values."""

    sizes: Mapping[str, int]
    axes: Mapping[str, Drawn | Listed]

    @property
    def sampled(self) -> bool:
        """Whether an axis has values that `samples` draws."""
        return any(isinstance(axis, Drawn) for axis in self.axes.values())

    @property
    def runs(self) -> int:
        """Total number of runs."""
        return int(np.prod([float(n) for n in self.sizes.values()]))

    def at(self, which: np.ndarray) -> dict[str, np.ndarray]:
        """The values (len(which),) of each axis for the runs with the indices `which`."""
        place = dict(zip(self.sizes, np.unravel_index(which, tuple(self.sizes.values())), strict=True))
        drawn: dict[Points, tuple[np.ndarray, np.ndarray]] = {}
        found = {}
        for label, axis in self.axes.items():
            if isinstance(axis, Listed):
                found[label] = axis.values[place[axis.dim]]
                continue
            if axis.points not in drawn:
                numbers, back = np.unique(place[axis.dim], return_inverse=True)
                drawn[axis.points] = axis.points.at(numbers), back
            values, back = drawn[axis.points]
            found[label] = values[back, axis.axis]
        return found

    @property
    def digest(self) -> str:
        """sha256 of the dimensions and of all values."""
        hashed = sha256(repr(list(self.sizes.items())).encode())
        for label, axis in self.axes.items():
            values = axis.values.astype("<f8").tobytes() if isinstance(axis, Listed) else repr(axis).encode()
            hashed.update(repr((label, axis.dim, len(values))).encode() + values)
        return hashed.hexdigest()


ONE_RUN = Space({"run": 1}, {})
"""One run, in which nothing varies but its states."""


def argument_of(label: str, m: Mechanism) -> tuple[str, str]:
    """The argument of `run` that an axis sets, and the name of the entry in it. Raises ModelError: the label is unknown."""
    known = {"parameters": m.p_names, "q": m.q_names, "v": m.v_names}
    if label in m.p_names:
        return "parameters", label
    if label == SEED:
        return SEED, SEED
    group = GROUPS.get(label[:2])
    if group and (group == "u" or label[2:] in known[group]):
        return group, label[2:]
    names = [*m.p_names, *(f"q:{n}" for n in m.q_names), *(f"v:{n}" for n in m.v_names), *(f"u:{n}" for n in m.u_names), SEED]
    raise ModelError(f"space: there is no {brief(label)}: a parameter, q:NAME, v:NAME, u:NAME or seed; {nearest(label, names)}")


def unit_of(label: str, m: Mechanism) -> str:
    """The unit of an axis: "1" for a seed, "" for a parameter without a unit and for an input of a law."""
    group, name = argument_of(label, m)
    if group == "parameters":
        return next(p.unit for p in m.parameters if p.name == name)
    names, units = {"q": (m.q_names, m.q_units), "v": (m.v_names, m.v_units), "u": (m.u_names, m.u_units)}.get(group, ((), ()))
    return dict(zip(names, units, strict=True)).get(name, "1" if group == SEED else "")


def as_space(value: Any, m: Mechanism) -> Space:
    """The Space of a caller's {label: values}. Raises ModelError: it is not one, or names or sizes do not fit."""
    if not isinstance(value, Mapping) or not value:
        raise ModelError(f"space: {{label: values}} is needed, such as {{'length': [0.5, 1.0]}}, got {brief(value)}")
    sizes: dict[str, int] = {}
    axes: dict[str, Drawn | Listed] = {}
    for label, given in value.items():
        if not isinstance(label, str):
            raise ModelError(f"space: a label is a text, got {brief(label)}")
        argument_of(label, m)
        axes[label] = axis = _axis(label, given)
        count = len(axis.values) if isinstance(axis, Listed) else axis.points.count
        if sizes.setdefault(axis.dim, count) != count:
            raise ModelError(f"space: {label!r} has {count} values along {axis.dim!r}, where others have {sizes[axis.dim]}")
    space = Space(sizes, axes)
    as_whole(space.runs, "space: the number of runs", 2**47)
    return space


def _axis(label: str, given: Any) -> Drawn | Listed:
    """The axis of a caller's values; its dimension is `label`, or is named by (dimension, values) or by a DataArray."""
    what = f"space: {label!r}"
    if isinstance(given, Drawn):
        if label == SEED:
            raise ModelError(f"{what}: whole numbers are needed, got an axis of samples")
        return given
    dim, values = label, given
    if hasattr(given, "dims"):
        if len(given.dims) != 1:
            raise ModelError(f"{what}: one dimension is needed, got {tuple(given.dims)}")
        dim, values = str(given.dims[0]), given.values
    elif isinstance(given, tuple) and len(given) == 2 and isinstance(given[0], str):
        dim, values = given
    if label == SEED:
        check_seeds(np.asarray(values))
    array = floats(values, what)
    if array.ndim != 1 or not len(array):
        raise ModelError(f"{what} has shape {array.shape}: (n,) values are needed, or (dimension, values); what does not vary "
                         "belongs to parameters, q, v or u")  # fmt: skip
    return Listed(dim, array)


def samples(
    ranges: Mapping[str, tuple[float, float]], count: int, *, method: Method = "sobol", seed: int = 0, dim: str = "sample"
) -> dict[str, Any]:
    """Axes of a sweep's space whose points fill a box evenly, by SciPy's `qmc`.

    Args:
        ranges: {label: (lowest, highest)}, labels as in `sweep`.
        count: number of points; "sobol" is balanced for powers of 2.
        method: "sobol" (default) and "halton" are computed block by block; "latin", a Latin hypercube, is in memory as a
            whole.
        seed: seed of the randomisation, 0 by default.
        dim: name of the dimension that these axes share, "sample" by default.
    Returns:
        dict for `space` of `sweep`, to which more axes may be added.
    Raises ModelError: a range is not a pair of increasing numbers; unknown method; SciPy is not installed.

    Example:
        >>> import pfaffian as pf
        >>> sorted(pf.sweeps.samples({"length": (0.5, 1.5), "q:hinge": (-1, 1)}, 1024))
        ['length', 'q:hinge']
    """
    _qmc()
    one_of(method, get_args(Method), "samples: method")
    check_seed(seed)
    if not isinstance(ranges, Mapping) or not ranges:
        raise ModelError(f"samples: {{label: (lowest, highest)}} is needed, got {brief(ranges)}")
    pairs = []
    for label, given in ranges.items():
        pair = floats(given, f"samples: {brief(label)}")
        if pair.shape != (2,) or not pair[0] < pair[1] or label == SEED:
            raise ModelError(f"samples: {brief(label)}: (lowest, highest) is needed, got {brief(given)}")
        pairs.append(pair.tolist())
    points = Points(method, as_whole(count, "samples: count", 2**30), int(seed), *(tuple(x) for x in zip(*pairs, strict=True)))
    return {label: Drawn(dim, points, i) for i, label in enumerate(ranges)}
