"""Time histories from files of other tools: tables in text, and MATLAB 4 files as Dymola and OpenModelica write them."""

from __future__ import annotations

import csv
import re
import struct
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
import xarray as xr

from pfaffian.errors import ModelError, RunError, nearest
from pfaffian.formats.text.file import MAX_BYTES, as_path, decode
from pfaffian.formats.text.strict_number import printable

TIMES = ("time", "Time", "t")
"""Names of the column of times."""

_SIZES = {0: np.float64, 1: np.float32, 2: np.int32, 3: np.int16, 4: np.uint16, 5: np.uint8}
"""Digit for the type of numbers in a MATLAB 4 file -> the type."""

_UNIT = re.compile(r"\[([^\]|:#]*)[^\]]*\]\s*$")


class TableColumn(NamedTuple):
    """The values of a variable, one for each time or a single one, and its description in the file."""

    values: np.ndarray
    text: str = ""


def read_table(path: str | Path, names: Iterable[str] | Mapping[str, str] | None = None) -> xr.Dataset:
    """Read the time histories of a file of another tool, to compare a run with them.

    Read are tables in text (.csv, or .sto and .mot of OpenSim), whose columns have names in the line before the numbers, and
    MATLAB 4 files (.mat) of Dymola and OpenModelica, from Modelica's MultiBody library for instance. Where something happened
    at an instant, a file may have several rows of the same time; all are kept.

    Args:
        path: of the file.
        names: variables to read, or {name in the result: name in the file}; all of them if None, the default.
    Returns:
        A Dataset with a variable for each column along "time" [s], and one number for constants and parameters. Units and
        descriptions that the file gives are attributes.
    Raises RunError: the file cannot be read, or is none of these.
    Raises ModelError: a variable that the file does not have.

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
        columns = _matlab(data) if data[1:4] == b"\0\0\0" else _text(decode(data, place.name))
    except (OSError, ValueError, struct.error, ModelError) as error:
        raise RunError(f"cannot read {path} as a table: {error}") from error
    return _dataset(columns, names, f"{path}")


def _dataset(columns: dict[str, TableColumn], names: Iterable[str] | Mapping[str, str] | None, where: str) -> xr.Dataset:
    """The chosen columns along the times."""
    called = next((n for n in TIMES if n in columns), None)
    if called is None:
        raise RunError(f"cannot read {where} as a table: no column has the name {' or '.join(TIMES)}")
    chosen = names if isinstance(names, Mapping) else {n: n for n in (columns if names is None else names) if n != called}
    found = xr.Dataset(coords={"time": ("time", columns[called].values, {"units": "s"})})
    for name, column in chosen.items():
        if column not in columns:
            raise ModelError(f"{where}: there is no variable {printable(column)}; {nearest(column, [*columns])}")
        values, text = columns[column]
        unit = _UNIT.search(text)
        about = ({"long_name": text} if text else {}) | ({"units": unit[1].strip()} if unit and unit[1].strip() else {})
        found[name] = ((), values[0], about) if len(values) == 1 != found.sizes["time"] else ("time", values, about)
    return found


# -- tables in text ---------------------------------------------------------------------------------------------------


def _text(text: str) -> dict[str, TableColumn]:
    """The columns of a table in text; what precedes the line "endheader" is skipped."""
    _, mark, after = text.partition("\nendheader")
    lines = [line for line in (after if mark else text).splitlines() if line.strip() and not line.startswith("#")]
    if len(lines) < 2:
        raise ValueError("it has no line of names with numbers below")
    split = next((mark for mark in "\t;," if mark in lines[0]), ",")
    head, *rows = csv.reader(lines, delimiter=split, skipinitialspace=True)
    names = [n.strip() for n in head]
    if split == "," or not any("," in x for x in rows[0]):
        table = [[float(x) for x in row if x.strip() or len(row) == len(names)] for row in rows]
    else:
        table = [[float(x.replace(",", ".")) for x in row] for row in rows]
    wrong = next((i for i, row in enumerate(table) if len(row) != len(names)), None)
    if wrong is not None or len(set(names)) != len(names):
        what = "two columns have the same name" if wrong is None else f"row {wrong + 1} has {len(table[wrong])} numbers"
        raise ValueError(f"{what}, for {len(names)} names")
    return {n: TableColumn(x) for n, x in zip(names, np.array(table).T, strict=True)}


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
    name, info, text = (parts.get(n, np.zeros((0, 0))) for n in ("name", "dataInfo", "description"))
    names, texts = _words(name.T if turned else name), _words(text.T if turned else text)
    rows = (info.T if turned else info).astype(int)
    tables = {k: parts[f"data_{k}"].T if turned else parts[f"data_{k}"] for k in (1, 2) if f"data_{k}" in parts}
    if len(rows) != len(names) or rows.shape[1:] < (2,) or 2 not in tables:
        raise ValueError("its matrices name, dataInfo and data_2 do not belong together")
    found = dict[str, TableColumn]()
    for i, (n, (table, column)) in enumerate(zip(names, rows[:, :2].tolist(), strict=True)):
        here = tables[table or 2] if table in (0, *tables) else np.zeros((0, 0))
        if not 1 <= abs(column) <= here.shape[1] or not len(here):
            raise ValueError(f"its variable {printable(n)} is in no matrix")
        values = np.sign(column) * here[:, abs(column) - 1].astype(float)
        found[n] = TableColumn(values[:1] if table == 1 else values, texts[i] if i < len(texts) else "")
    return found
