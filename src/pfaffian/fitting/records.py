"""Records of measured motion, checked: times, inputs and measured signals as arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from pfaffian.errors import ModelError, brief, listed, nearest
from pfaffian.evaluate.arrays import by_label
from pfaffian.model.mechanism import Mechanism
from pfaffian.model.number import reals

UNITS = {
    "deg": np.pi / 180, "deg/s": np.pi / 180, "rev": 2 * np.pi, "rpm": np.pi / 30, "mm": 1e-3, "mm/s": 1e-3, "cm": 1e-2,
    "cm/s": 1e-2, "in": 0.0254, "g": 9.80665,
    "rad": 1.0, "rad/s": 1.0, "m": 1.0, "m/s": 1.0, "N": 1.0, "N m": 1.0, "m/s^2": 1.0,
}  # fmt: skip
"""Factors from the units of a record to SI units."""

ALONG = ("time", "u")
"""Entries of a record that are not measured signals."""

SMOOTH = 1e-5
"""Least noise of a signal, as a fraction of its range, from which a fit starts."""

NORMAL = 1.4826
"""Standard deviation of normal noise over the median of its size."""

ROUNDING = 1e-9
"""Relative difference of two values that are the same but for rounding errors of floats."""

ROUNDED, REPEATED = 1e-2, 2
"""Values are rounded to counts if their differences are whole numbers of counts within ROUNDED, and each value occurs REPEATED
times on average."""

DEGREES = 0.05
"""Relative distance of the ratio between a rate and the change of its angle from 180 / pi that counts as degrees."""


class CheckedRecord(NamedTuple):
    """A checked record.

    name: in messages.   time: (n,) [s], increasing.   u: (n, nw) inputs, each held until the next sample.
    y: (n, ny) measured signals side by side, nan where there is no measurement.
    """

    name: str
    time: np.ndarray
    u: np.ndarray
    y: np.ndarray


class Measurements(NamedTuple):
    """The measured signals.   names: of the signals.   entries: of each signal, names of its entries.   u_names: inputs."""

    names: tuple[str, ...]
    entries: tuple[tuple[str, ...], ...]
    u_names: tuple[str, ...]

    @property
    def labels(self) -> tuple[str, ...]:
        """The name of every measured number, such as "q shoulder"."""
        return tuple(f"{name} {x}" if x else name for name, of in zip(self.names, self.entries, strict=True) for x in of)

    @property
    def slices(self) -> dict[str, slice]:
        """The place of each signal among the measured numbers."""
        ends = np.cumsum([0, *map(len, self.entries)]).tolist()
        return {name: slice(ends[i], ends[i + 1]) for i, name in enumerate(self.names)}


def as_records(records: Any) -> dict[str, Mapping[str, Any]]:
    """Records by name. Raises ModelError: they are none."""
    if isinstance(records, Mapping) and "time" not in records:
        found = {str(name): x for name, x in records.items()}
    elif isinstance(records, Mapping) or hasattr(records, "columns") or hasattr(records, "data_vars"):
        found = {"record 0": records}
    elif isinstance(records, Sequence) and not isinstance(records, str):
        found = {f"record {i}": x for i, x in enumerate(records)}
    else:
        found = {}
    for name, x in found.items():
        if not hasattr(x, "keys") or "time" not in x:
            raise ModelError(f"{name}: a dict with 'time' and measured signals is needed, got {brief(x)}")
    if not found:
        raise ModelError(f"records: a list of dicts {{'time': ..., 'q': ..., 'u': ...}} is needed, got {brief(records)}")
    return found


def measured_names(records: Mapping[str, Mapping[str, Any]], outputs: Mapping[str, Any]) -> tuple[str, ...]:
    """The measured signals: "q", "v" and outputs that a record has.

    Raises ModelError: none; a record has an entry that is no signal.
    """
    known = ("q", "v", *outputs)
    for name, x in records.items():
        if hasattr(x, "data_vars"):
            continue
        for entry in x:
            if entry not in (*ALONG, *known):
                raise ModelError(f"{name}: {brief(entry)} is neither time, q, v, u nor an output; {nearest(entry, known)}")
    found = tuple(n for n in known if any(n in x for x in records.values()))
    if not found:
        raise ModelError(f"records: no record has a measured signal; give one of {listed(known)}")
    return found


def check(name: str, x: Mapping[str, Any], layout: Measurements, units: Mapping[str, str]) -> CheckedRecord:
    """A record as arrays. Raises ModelError: what is wrong, with the record, the signal and the time."""
    time = _measured(x["time"], f"{name}: time [s]")
    if time.ndim != 1 or len(time) < 2:
        raise ModelError(f"{name}: two or more times are needed, got {time.shape}")
    bad = np.flatnonzero(~(np.diff(time) > 0))
    if bad.size:
        raise ModelError(f"{name}: time does not increase after sample {bad[0]}, at {time[bad[0]]:.6g} s")
    u = _columns(name, "u", x.get("u"), len(time), layout.u_names) * _factor("u", units)
    if "u" not in x:
        u = np.zeros((len(time), len(layout.u_names)))
    for k, i in np.argwhere(~np.isfinite(u))[:1]:
        raise ModelError(f"{name}: input {layout.u_names[i]!r} is not finite at {time[k]:.6g} s; fill it in")
    parts = [
        _columns(name, signal, x.get(signal), len(time), of) * _factor(signal, units)
        for signal, of in zip(layout.names, layout.entries, strict=True)
    ]
    y = np.hstack(parts)
    if not np.isfinite(y).any():
        raise ModelError(f"{name}: no measured number is finite, in {listed(layout.names)}")
    return CheckedRecord(name, time, u, y)


def check_units(units: Any, names: Sequence[str]) -> None:
    """Raise ModelError: units of a signal that no record has."""
    if not isinstance(units, Mapping):
        raise ModelError(f"units: {{signal: unit}} is needed, such as {{'q': 'deg'}}, got {brief(units)}")
    for signal in units:
        if signal not in names:
            raise ModelError(f"units: no record measures {brief(signal)}; {nearest(signal, tuple(names))}")


def _factor(signal: str, units: Mapping[str, str]) -> float:
    """The factor from the unit of a signal to SI units."""
    unit = units.get(signal)
    if unit is not None and unit not in UNITS:
        raise ModelError(f"units: {brief(unit)} of {signal!r} is unknown; {nearest(unit, tuple(UNITS))}")
    return UNITS[unit] if unit is not None else 1.0


def _columns(name: str, signal: str, value: Any, count: int, entries: tuple[str, ...]) -> np.ndarray:
    """(count, entries) numbers of a signal, nan where it is absent."""
    if value is None:
        return np.full((count, len(entries)), np.nan)
    value = by_label(value, f"{name}: {signal}", series=True)
    if isinstance(value, Mapping):
        array = np.full((count, len(entries)), np.nan)
        for entry, column in value.items():
            if entry not in entries:
                raise ModelError(f"{name}: {signal}: there is no {brief(entry)}; {nearest(entry, entries)}")
            one = _measured(column, f"{name}: {signal} {entry}")
            if one.shape != (count,):
                raise ModelError(f"{name}: {signal} {entry!r} has shape {one.shape}, and there are {count} times")
            array[:, entries.index(entry)] = one
        return array
    array = _measured(value, f"{name}: {signal}")
    array = array[:, None] if array.ndim == 1 and len(entries) == 1 else array
    if array.shape != (count, len(entries)):
        order = listed(entries) if any(entries) else f"{len(entries)} numbers"
        raise ModelError(f"{name}: {signal} has shape {array.shape}: ({count}, {len(entries)}) is needed, {order}")
    return array


def _measured(value: Any, what: str) -> np.ndarray:
    """An array of floats, which may be nan. Raises ModelError: it contains anything but real numbers, or infinite ones."""
    array = reals(value, what)
    for at in np.argwhere(np.isinf(array))[:1]:
        raise ModelError(f"{what}: sample {at[0]} is infinite; write nan where nothing was measured")
    return array


def check_degrees(m: Mechanism, record: CheckedRecord, layout: Measurements) -> None:
    """Raise ModelError: an angle and its rate of which one is in degrees."""
    at = layout.slices
    if "q" not in at or "v" not in at or m.nq != m.nv:
        return
    steps = np.diff(record.time)
    for i, unit in enumerate(m.q_units):
        q, v = record.y[:, at["q"]][:, i], record.y[:, at["v"]][:, i]
        change, rate = np.diff(q), steps * (v[1:] + v[:-1]) / 2
        good = np.isfinite(change) & np.isfinite(rate)
        if unit != "rad" or not (rate[good] ** 2).sum() > 0 or not (change[good] ** 2).sum() > 0:
            continue
        ratio = np.sqrt((change[good] ** 2).sum() / (rate[good] ** 2).sum())
        for which, other, size in (("q", "v", ratio), ("v", "q", 1 / ratio)):
            if abs(size * np.pi / 180 - 1) < DEGREES:
                raise ModelError(
                    f"{record.name}: {which} {m.q_names[i]!r} changes {size:.3g} times as much as {other} says, as in "
                    f"degrees; write units={{{which!r}: {'deg' if which == 'q' else 'deg/s'!r}}}"
                )


def count(y: np.ndarray) -> float:
    """The count to which values are rounded, as by an encoder: their least difference if others are multiples, else zero."""
    values = np.unique(y)
    steps = np.diff(values)
    steps = steps[steps > ROUNDING * np.abs(values).max(initial=0.0)]
    if not steps.size or len(y) < REPEATED * (len(steps) + 1):
        return 0.0
    least = float(steps.min())
    return least if (np.abs(steps / least - np.rint(steps / least)) < ROUNDED).all() else 0.0


def noise(records: Sequence[CheckedRecord]) -> np.ndarray:
    """(ny,) standard deviations of the noise of each measured number: what parabolas through neighbours leave of most samples.

    Outliers do not enlarge it, and it is not below that of rounding to counts, count / sqrt(12), which neighbours of a slow
    motion do not show: they are equal.
    """
    found = np.ones(records[0].y.shape[1])
    for i in range(len(found)):
        columns = [r.y[np.isfinite(r.y[:, i]), i] for r in records]
        rough = np.concatenate([np.diff(y, 3) for y in columns]) / np.sqrt(20)  # 1 + 9 + 9 + 1
        size = max((float(np.ptp(y)) for y in columns if len(y)), default=0.0)
        left = NORMAL * float(np.median(np.abs(rough))) if len(rough) else 0.0
        rounding = max((count(y) for y in columns), default=0.0) / np.sqrt(12)
        found[i] = max(left, rounding, SMOOTH * size) or 1.0
    return found
