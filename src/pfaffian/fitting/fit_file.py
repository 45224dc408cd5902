"""A fit described by a YAML file: a machine, records in CSV files, and the arguments of `pf.fit`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import casadi as ca
import pandas as pd

from pfaffian.errors import nearest
from pfaffian.fitting.fit import fit
from pfaffian.fitting.fit_result import Fit
from pfaffian.formats.bundled import model_file
from pfaffian.formats.read import read
from pfaffian.formats.text.file import as_path, read_text
from pfaffian.formats.text.yaml_tree import Node, parse_tree

KEYS = (
    "machine", "records", "unseen", "horizons", "columns", "parameters", "unknown", "horizon", "start", "bounds", "priors",
    "guess", "units", "robust",
)  # fmt: skip
"""The keys of a file."""


class FitFile(NamedTuple):
    """What a file describes.   arguments: of `pf.fit`.   unseen: records that the fit must not see.   horizons: [s].

    Example:
        >>> import numpy as np, pfaffian as pf
        >>> t, (m, _) = np.linspace(0.0, 1.0, 21), pf.read("four_bar")
        >>> file = pf.identification.FitFile({"m": m, "records": {"time": t, "q": {"crank": 0 * t}}}, {}, horizons=[0.5])
        >>> sorted(file.arguments), file.horizons
        (['m', 'records'], [0.5])
    """

    arguments: dict[str, Any]
    unseen: dict[str, Any]
    horizons: list[float] | None

    def fit(self, progress: bool = False) -> Fit:
        """The fit."""
        return fit(**self.arguments, progress=progress)


def read_fit(path: str | Path) -> FitFile:
    """Read the description of a fit. All files that it names lie relative to its folder.

        machine: arm.yaml                          any file that `pf.read` reads
        records: {first: run_1.csv}                CSV files with a line of names, or a list of them
        columns: {time: t, q: {hinge: angle}, u: {motor: torque}}
        unseen: {second: run_2.csv}
        unknown: {u: delay}

    `columns` says which column holds the time, and for each signal which column holds each of its numbers. The other keys are
    parameters, unknown, horizon, start, bounds, priors, guess, units and robust as in `pf.fit`, and horizons as in
    `Fit.unseen`.

    Args:
        path: of the YAML file.
    Returns:
        FitFile: the arguments of `pf.fit`, the records held out, and the horizons.
    Raises ModelError: a key that is unknown, a file that cannot be read, a column that is missing, with the line.

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> import pfaffian as pf
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = Path(folder, "run.csv").write_text("t,x\\n0,1.0\\n0.1,0.9\\n0.2,0.7\\n")
        ...     words = "{machine: five_bar, records: [run.csv], columns: {time: t, q: {left crank: x}}}"
        ...     _ = Path(folder, "fit.yaml").write_text(words)
        ...     sorted(pf.identification.read_fit(f"{folder}/fit.yaml").arguments)
        ['m', 'records']
    """
    place = as_path(path)
    tree = parse_tree(read_text(place), place.name)
    found = tree.fields(KEYS, ("machine", "records", "columns"))
    machine, _ = read(_file(found["machine"], place.parent))
    arguments: dict[str, Any] = {"m": machine, "records": _records(found["records"], found["columns"], place.parent)}
    for key, reader in _READERS.items():
        if key in found:
            arguments[key] = reader(found[key])
    unseen = _records(found["unseen"], found["columns"], place.parent) if "unseen" in found else {}
    horizons = [_number(x) for x in found["horizons"].items()] if "horizons" in found else None
    return FitFile(arguments, unseen, horizons)


def _file(node: Node, folder: Path) -> Path:
    """The file that a node names, in the folder or a machine that came with the package."""
    there = folder / node.text()
    return there if there.exists() else model_file(Path(node.text()))


def _records(node: Node, columns: Node, folder: Path) -> dict[str, dict[str, Any]]:
    """Records by name, from CSV files."""
    if isinstance(node.value, dict):
        files = node.map()
    else:
        stems = [Path(x.text()).stem for x in node.items()]
        files = {s if stems.count(s) == 1 else x.text(): x for s, x in zip(stems, node.items(), strict=True)}
        if len(files) < len(stems):
            raise node.error(f"a file is named twice: {', '.join(x.text() for x in node.items())}")
    return {name: _record(file, columns, folder) for name, file in files.items()}


def _record(file: Node, columns: Node, folder: Path) -> dict[str, Any]:
    """One record. Raises ModelError: its file cannot be read, or a column is missing."""
    try:
        table = pd.read_csv(folder / file.text(), skipinitialspace=True)
    except (OSError, ValueError) as error:
        raise file.error(f"{file.text()} cannot be read as CSV: {error}") from None

    def column(node: Node) -> Any:
        if node.text() not in table.columns:
            known = tuple(map(str, table.columns))
            raise node.error(f"{file.text()} has no column {node.text()!r}; {nearest(node.text(), known)}")
        return table[node.text()].to_numpy()

    found = {}
    for signal, of in columns.map().items():
        found[signal] = {name: column(x) for name, x in of.map().items()} if isinstance(of.value, dict) else column(of)
    return found


def _number(node: Node) -> float:
    """A number without names in it."""
    return float(ca.DM(node.number({})))


def _numbers(node: Node) -> dict[str, float]:
    """{name: number}."""
    return {name: _number(x) for name, x in node.map().items()}


def _pairs(node: Node) -> dict[str, tuple[float, float]]:
    """{name: (number, number)}."""
    return {name: (_number(x.items(2)[0]), _number(x.items(2)[1])) for name, x in node.map().items()}


def _words(node: Node) -> dict[str, Any]:
    """{name: text or list of texts}."""
    return {n: [y.text() for y in x.value] if isinstance(x.value, list) else x.text() for n, x in node.map().items()}


_READERS: dict[str, Callable[[Node], Any]] = {
    "parameters": lambda node: [x.text() for x in node.items()],
    "unknown": _words,
    "horizon": _number,
    "start": _numbers,
    "bounds": _pairs,
    "priors": _pairs,
    "guess": _numbers,
    "units": _words,
    "robust": Node.truth,
}
"""How each argument of `pf.fit` is read."""
