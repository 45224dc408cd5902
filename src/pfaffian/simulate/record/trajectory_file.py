"""Time histories from files of other tools: tables in text, and MATLAB 4 files as Dymola and OpenModelica write them."""

from __future__ import annotations

import csv
import re
import struct
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from pfaffian.errors import ModelError, RunError, RunWarning, brief, nearest, notice
from pfaffian.formats.text.file import MAX_BYTES, as_path, decode
from pfaffian.formats.text.strict_number import UNSIGNED, printable

TIMES = ("time", "Time", "t")
"""Names of the column of times."""

_SIZES = {0: np.float64, 1: np.float32, 2: np.int32, 3: np.int16, 4: np.uint16, 5: np.uint8}
"""Digit for the type of numbers in a MATLAB 4 file -> the type."""

_UNIT = re.compile(r"\[([^\]|:#]*)[^\]]*\]\s*$")
"""The unit at the end of a description."""

_NAMED_UNIT = re.compile(r"(.*\S)\s+[\[(]([^\])]*)[\])]")
"""A name in a table, and its unit in brackets after a blank, by which it differs from an index."""

_SECONDS = {"s": 1.0, "sec": 1.0, "seconds": 1.0, "ms": 1e-3, "us": 1e-6, "min": 60.0, "h": 3600.0}
"""Unit of time -> its length in seconds."""

_VALUE = re.compile(rf"[+-]?(?:{UNSIGNED}|nan|inf|infinity)", re.I)
"""A number in a table."""


class TableColumn(NamedTuple):
    """The values of a variable, one for each time or a single one, and its description and unit in the file."""

    values: np.ndarray
    text: str = ""
    unit: str = ""


def read_table(path: str | Path, names: Iterable[str] | Mapping[str, str] | None = None) -> xr.Dataset:
    """Read the time histories of a file of another tool, to compare a run with them.

    Read are tables in text (.csv, or .sto and .mot of OpenSim), whose columns have names in the line before the numbers, and
    MATLAB 4 files (.mat) of Dymola and OpenModelica, from Modelica's MultiBody library for instance. In a table, units may
    follow the names in brackets, "q [rad]", or be a line below them; they are no part of a name. Where something happened at an
    instant, a file may have several rows of the same time; all are kept.

    Args:
        path: of the file.
        names: variables to read, or {name in the result: name in the file}; all of them if None, the default.
    Returns:
        A Dataset with a variable for each column along "time" [s], and one number for constants and parameters. Units and
        descriptions that the file gives are attributes.
    Raises RunError: the file cannot be read, or is none of these; a cell that is no number; two variables of one name; times
    that are not finite, go back, or have a unit that is unknown.
    Raises ModelError: a variable that the file does not have, or names that are not text.
    Warns RunWarning: the file of OpenSim says that its angles are in degrees; they stay so.

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> import pfaffian as pf
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     file = Path(folder, "pendulum_res.csv")
        ...     n = file.write_text('"time","hinge.phi"\\n0,0.1\\n0.5,0.3\\n')
        ...     other = pf.results.read_table(file, {"q": "hinge.phi"})
        >>> other.q.values
        array([0.1, 0.3])
    """
    place = as_path(path)
    try:
        with place.open("rb") as stream:
            data = stream.read(MAX_BYTES + 1)
        if len(data) > MAX_BYTES:
            raise ValueError(f"it is larger than {MAX_BYTES} bytes; write fewer variables or records")
        if data.startswith(b"MATLAB"):
            raise ValueError("it is a MATLAB file of version 5 or later; save it with '-v4', or as a table in text")
        columns = _matlab(data) if data[1:4] == b"\0\0\0" else _text(decode(data, place.name), f"{path}")
    except (OSError, ValueError, struct.error, csv.Error, ModelError) as error:
        raise RunError(f"cannot read {path} as a table: {error}") from error
    return _dataset(columns, names, f"{path}")


def _dataset(columns: dict[str, TableColumn], names: Iterable[str] | Mapping[str, str] | None, where: str) -> xr.Dataset:
    """The chosen columns along the times."""
    called = next((n for n in TIMES if n in columns), None)
    if called is None:
        raise RunError(f"cannot read {where} as a table: no column has the name {' or '.join(TIMES)}")
    longest = max(len(c.values) for c in columns.values())
    if len(columns[called].values) != longest:
        raise RunError(f"cannot read {where} as a table: {printable(called)} has one value, and others have {longest}")
    time = _times(columns[called], called, where)
    chosen = _chosen(names, columns, called)
    found = xr.Dataset(coords={"time": ("time", time, {"units": "s"})})
    for name, column in chosen.items():
        if column not in columns:
            raise ModelError(f"{where}: there is no variable {printable(column)}; {nearest(column, [*columns])}")
        values, text, unit = columns[column]
        about = ({"long_name": text} if text else {}) | ({"units": unit} if unit else {})
        found[name] = ((), values[0], about) if len(values) == 1 != len(time) else ("time", values, about)
    return found


def _chosen(names: Any, known: Iterable[str], called: str) -> dict[str, str]:
    """Name in the result -> name in the file, without the times.   called: name of the times in the file."""
    if isinstance(names, str) or not isinstance(names, Iterable | None):
        pairs: list[Any] = [(names, None)]
    else:
        pairs = [*names.items()] if isinstance(names, Mapping) else [(n, n) for n in (known if names is None else names)]
    pairs = [pair for pair in pairs if pair not in ((called, called), ("time", called))]
    if not all(isinstance(x, str) for pair in pairs for x in pair) or any(name == "time" for name, _ in pairs):
        ways = "a list of names in the file is needed, or {name: name in the file}, where the times alone are called 'time'"
        raise ModelError(f"names={brief(names)}: {ways}")
    return dict(pairs)


def _times(column: TableColumn, name: str, where: str) -> np.ndarray:
    """The times in seconds. Raises RunError: they are not finite, go back, or have an unknown unit."""
    factor = _SECONDS.get(column.unit or "s")
    if factor is None:
        raise RunError(f"{where}: the unit {printable(column.unit)} of the times is unknown; use one of {', '.join(_SECONDS)}")
    time = column.values * factor
    wrong = ~np.isfinite(time) | (np.diff(time, prepend=time[0]) < 0)
    if wrong.any():
        i = int(wrong.argmax())
        before = f", after {time[i - 1]} s" if i else ""
        raise RunError(
            f"{where}: record {i + 1} of {printable(name)} is {time[i]} s{before}; times must be finite and must not go back"
        )
    return time


# -- tables in text ---------------------------------------------------------------------------------------------------


def _text(text: str, where: str) -> dict[str, TableColumn]:
    """The columns of a table in text; what precedes the line "endheader" is skipped."""
    before, mark, after = text.partition("\nendheader")
    if mark and re.search(r"^\s*inDegrees\s*=\s*yes", before, re.I | re.M):
        notice(f"{where}: its angles are in degrees (inDegrees=yes), and are returned so", RunWarning)
    lines = [line for line in (after if mark else text).splitlines() if line.strip() and not line.startswith("#")]
    if len(lines) < 2:
        raise ValueError("it has no line of names with numbers below")
    head, *rows = _cells(lines)
    names, units = (list(x) for x in zip(*map(_named, head), strict=True))
    if len(rows) > 1 and len(rows[0]) == len(names) and not any(map(_VALUE.fullmatch, rows[0])):
        units = [x.strip("[]() ") for x in rows.pop(0)]
    wrong = next((i for i, row in enumerate(rows) if len(row) != len(names)), None)
    if wrong is not None:
        raise ValueError(f"row {wrong + 1} has {len(rows[wrong])} numbers, for {len(names)} names")
    _check_apart(names)
    table = np.array([[_value(x, i, n) for x, n in zip(row, names, strict=True)] for i, row in enumerate(rows, 1)])
    return {n: TableColumn(x, "", unit) for n, unit, x in zip(names, units, table.T, strict=True)}


def _cells(lines: list[str]) -> list[list[str]]:
    """The cells of all lines, with points as decimal marks. The line of names decides what separates them."""
    plain = re.sub('"[^"]*"', "", lines[0])
    split = next((mark for mark in "\t;," if mark in plain), "")
    blanks = not split and len(plain.split()) > 1 and not _NAMED_UNIT.fullmatch(plain.strip())
    table = [line.split() for line in lines] if blanks else [*csv.reader(lines, delimiter=split or ",", skipinitialspace=True)]
    if all(not row[-1].strip() for row in table):
        table = [row[:-1] for row in table]  # all lines end with a separator
    if split in ("", ","):
        return [[x.strip() for x in row] for row in table]
    return [[x.strip() for x in table[0]], *([x.strip().replace(",", ".") for x in row] for row in table[1:])]


def _named(word: str) -> tuple[str, str]:
    """The name of a column and its unit, which may be empty."""
    found = _NAMED_UNIT.fullmatch(word)
    return (found[1], found[2].strip()) if found else (word, "")


def _value(word: str, row: int, name: str) -> float:
    """The number of a cell.   row, name: where it is, for errors."""
    if not _VALUE.fullmatch(word):
        what = printable(word) if word else "nothing"
        raise ValueError(f"row {row} has {what} for {printable(name)}, where a number or nan is needed")
    return float(word)


def _check_apart(names: Sequence[str]) -> None:
    """Raise ValueError if two variables have the same name."""
    if len(set(names)) != len(names):
        twice = next(n for n in names if names.count(n) > 1)
        raise ValueError(f"two of its {len(names)} columns have the same name, {printable(twice)}")


# -- MATLAB 4 ---------------------------------------------------------------------------------------------------------


def _matrices(data: bytes) -> dict[str, np.ndarray]:
    """The matrices of a MATLAB 4 file by name."""
    found, at = dict[str, np.ndarray](), 0
    while at < len(data):
        kind, rows, columns, imaginary, length = struct.unpack_from("<5i", data, at)
        size = _SIZES.get(kind // 10 % 10)
        if not 0 <= kind < 1000 or size is None or imaginary or min(rows, columns) < 0 or not 1 <= length <= 100:
            raise ValueError("it is not a MATLAB 4 file of real numbers in the order of bytes of a PC")
        at += 20
        name, count = data[at : at + length].rstrip(b"\0").decode("latin-1"), rows * columns
        at += length
        end = at + count * np.dtype(size).itemsize
        if end > len(data):
            raise ValueError(f"its matrix {printable(name)} is cut off")
        found[name] = np.frombuffer(data, size, count, at).reshape(rows, columns, order="F")
        at = end
    return found


def _words(matrix: np.ndarray) -> list[str]:
    """The texts of a matrix of characters, one a row."""
    return [bytes(row.astype(np.uint8)).rstrip(b" \0").decode("utf-8", "replace") for row in matrix]


def _matlab(data: bytes) -> dict[str, TableColumn]:
    """The variables of a result of Dymola or OpenModelica.

    dataInfo says for each of them the matrix, 1 for parameters or 2 for trajectories, and the column there, whose sign is that
    of the variable. "binTrans" files have all matrices transposed.
    """
    parts = _matrices(data)
    missing = {"Aclass", "name", "dataInfo"}.difference(parts)
    if missing:
        raise ValueError(f"it is no result of Dymola or OpenModelica: the matrix {sorted(missing)[0]} is missing")
    form = _words(parts["Aclass"])
    turned = len(form) > 3 and form[3] == "binTrans"
    if not form or form[0] != "Atrajectory":
        raise ValueError(f"its class is {printable(form[0] if form else '')}, not Atrajectory")
    name, info, about = (parts.get(n, np.zeros((0, 0))) for n in ("name", "dataInfo", "description"))
    names, texts = _words(name.T if turned else name), _words(about.T if turned else about)
    if not np.isfinite(info).all():
        raise ValueError("its matrix dataInfo has numbers that are not finite")
    rows = (info.T if turned else info).astype(int)
    tables = {k: parts[f"data_{k}"].T if turned else parts[f"data_{k}"] for k in (1, 2) if f"data_{k}" in parts}
    if len(rows) != len(names) or rows.shape[1:] < (2,) or 2 not in tables:
        raise ValueError("its matrices name, dataInfo and data_2 do not belong together")
    _check_apart(names)
    found = dict[str, TableColumn]()
    for i, (n, (table, column)) in enumerate(zip(names, rows[:, :2].tolist(), strict=True)):
        here = tables[table or 2] if table in (0, *tables) else np.zeros((0, 0))
        if not 1 <= abs(column) <= here.shape[1] or not len(here):
            raise ValueError(f"its variable {printable(n)} is in no matrix")
        values = np.sign(column) * here[:, abs(column) - 1].astype(float)
        text = texts[i] if i < len(texts) else ""
        unit = _UNIT.search(text)
        found[n] = TableColumn(values[:1] if table == 1 else values, text, unit[1].strip() if unit else "")
    return found
