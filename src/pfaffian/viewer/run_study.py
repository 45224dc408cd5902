"""Studies: modules that reproduce a figure or table of a paper and check claims about it.

A study is a file `NAME.py` in a folder `studies` with a docstring and functions mechanism(), run() -> Dataset or dict of
Datasets, figures(result) -> {name: Figure}, claims(result) -> claims; and law() if `pfaffian export` is to write its law in C.
Files `_NAME.py` are no studies, but parts of these: `from ._NAME import ...`.
"""

from __future__ import annotations

import ast
import importlib.util
import json
import math
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from pfaffian.errors import ModelError, brief, install, nearest, plural
from pfaffian.formats.bundled import shelf
from pfaffian.formats.text.file import as_path
from pfaffian.output.plain import stem, table, text

RELATIONS = ("within", "at most", "at least")
PARTS = ("run", "claims")
PACKAGES = ("matplotlib", "scipy")
"""Packages that the extra `studies` installs."""

_NAME = re.compile(r"[a-z0-9-]{1,64}")
_STEM = re.compile(r"[a-z0-9][a-z0-9_]{0,63}")


class Claim(NamedTuple):
    """One number that a study computes, with the value that its source gives.

    The function claims(result) of a study returns its claims; `holds` is whether a claim is satisfied.

    Args:
        name: the quantity, with its unit.
        value: the number that the study computed.
        expected: the number that the source gives.
        tolerance: the largest allowed difference from expected, in the same unit; default 0.
        source: paper and equation, figure or table; default empty.
        relation: "within": |value - expected| <= tolerance, the default; "at most": value <= expected + tolerance;
            "at least": value >= expected - tolerance.

    Example:
        >>> from pfaffian import study
        >>> study.Claim("period of a pendulum of 1 m [s]", 2.0061, 2.006, 0.001, "2 pi sqrt(l / g)").holds
        True
        >>> study.Claim("energy drift [J]", 3e-9, 1e-9, relation="at most").holds
        False
    """

    name: str
    value: float
    expected: float
    tolerance: float = 0.0
    source: str = ""
    relation: str = "within"

    @property
    def holds(self) -> bool:
        """Whether the value satisfies the claim; a number that is not finite never does."""
        value, expected, tolerance = _numbers(self)
        if not all(map(math.isfinite, (value, expected, tolerance))):
            return False
        return {
            "within": abs(value - expected) <= tolerance,
            "at most": value <= expected + tolerance,
            "at least": value >= expected - tolerance,
        }[self.relation]


def _numbers(claim: Claim) -> list[float]:
    """Value, expected and tolerance of a claim. Raises ModelError: one is not a number; the relation is unknown."""
    if claim.relation not in RELATIONS:
        raise ModelError(
            f"claim {brief(claim.name)}: relation {brief(claim.relation)} is unknown; one of {', '.join(RELATIONS)}"
        )
    try:
        return [float(x) for x in claim[1:4]]
    except (TypeError, ValueError):
        raise ModelError(f"a claim is (name, value, expected, tolerance, source), got {brief(tuple(claim))}") from None


class Outcome(NamedTuple):
    """The outcome of a study.   result: of its run().   claims: checked ones.   figures: {name: matplotlib Figure}."""

    name: str
    result: Any
    claims: tuple[Claim, ...]
    figures: Mapping[str, Any]

    @property
    def holds(self) -> bool:
        """Whether there are claims and all of them hold."""
        return bool(self.claims) and all(c.holds for c in self.claims)


def folder() -> Path:
    """The folder ./studies, or if there is none, the studies that came with this package. Raises ModelError: there are none."""
    local = Path.cwd() / "studies"
    return local if local.is_dir() else shelf("studies")


def studies(place: Path | None = None) -> dict[str, str]:
    """List the studies in a folder with the subject of each; none of them is imported.

    Args:
        place: the folder; None: ./studies, or if there is none, the studies that came with this package.
    Returns:
        {name: first line of the docstring}; the name is that of the file, with dashes.
    Raises ModelError: the folder does not exist; this copy of the package came without its studies.

    Example:
        >>> import pathlib, tempfile
        >>> from pfaffian import study
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     place = pathlib.Path(folder)
        ...     _ = (place / "half_turn.py").write_text("'A rod turns by half.'")
        ...     study.studies(place)
        {'half-turn': 'A rod turns by half.'}
    """
    return {name: _first_line(file) for name, file in _files(folder() if place is None else place).items()}


def _files(place: Path) -> dict[str, Path]:
    """Files of the studies in a folder by name, in the order of their names."""
    files = sorted(f for f in _existing(place).glob("*.py") if _STEM.fullmatch(f.stem) and f.is_file())
    return {f.stem.replace("_", "-"): f for f in files}


def _existing(place: Any) -> Path:
    """The folder as a path. Raises ModelError: it does not exist."""
    folder = as_path(place, "the folder of studies")
    if not folder.is_dir():
        raise ModelError(f"there is no folder {text(folder)!r}")
    return folder


def _first_line(path: Path) -> str:
    """First line of the docstring of a file, or why it cannot be read."""
    try:
        words = ast.get_docstring(ast.parse(path.read_bytes())) or ""
    except (SyntaxError, ValueError, OSError) as error:
        return f"(cannot be read: {error})"
    return words.split("\n")[0]


def run_study(name: str, place: Path | None = None, *, draw: bool = True) -> Outcome:
    r"""Run a study and check its claims.

    A study is a file with a docstring and functions run() -> result, claims(result) -> claims, and if it draws figures,
    figures(result) -> {name: Figure}.

    Args:
        name: name of the file, with dashes.
        place: the folder of studies; None: ./studies, or if there is none, the studies that came with this package.
        draw: whether to make its figures; default True. Without matplotlib there are none, and a ModelWarning says so.
    Returns:
        Outcome (name, result, claims, figures): the result of run(), a tuple of Claim, {name: matplotlib Figure}; `holds` is
        whether there are claims and all of them hold.
    Raises ModelError: there is no study of that name (the message has the nearest one); the study lacks a function, or a
    package that it needs is not installed; a claim has an entry that is not a number, an unknown relation, or an expected
    number or tolerance that is not finite.

    Example:
        >>> import pathlib, tempfile
        >>> from pfaffian import study
        >>> words = "'Half a turn.'\ndef run(): return 180\ndef claims(x): return [('angle [deg]', x, 180, 0, 'by hand')]"
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     place = pathlib.Path(folder)
        ...     _ = (place / "half_turn.py").write_text(words)
        ...     outcome = study.run_study("half-turn", place)
        >>> outcome.result, outcome.holds
        (180, True)
    """
    place = folder() if place is None else _existing(place)
    study = load(name, place)
    result = study.run()
    claims = tuple(_claim(c) for c in study.claims(result))
    return Outcome(name, result, claims, _figures(name, study, result) if draw else {})


def load(name: str, place: Path, parts: Iterable[str] = PARTS) -> ModuleType:
    """Import a study by name. Raises ModelError: there is no such study, or it lacks one of the functions `parts`."""
    files = _files(place)
    if not isinstance(name, str) or not _NAME.fullmatch(name) or name not in files:
        raise ModelError(f"there is no study {text(name, 60)!r}; {nearest(name, list(files))}")
    path = files[name]
    module_name = f"{_package(place)}.{path.stem}"
    spec = importlib.util.spec_from_file_location(module_name, path)
    if spec is None or spec.loader is None:
        raise ModelError(f"study {name!r} cannot be imported")
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module  # dataclasses look up their module there
    try:
        spec.loader.exec_module(module)
    except ModuleNotFoundError as error:
        package = str(error.name).partition(".")[0]
        if package not in PACKAGES:
            raise
        raise ModelError(f"study {name!r} needs the package {package}: run {install(package)}") from None
    for part in parts:
        if not callable(getattr(module, part, None)):
            raise ModelError(f"study {name!r} has no function {part}()")
    return module


def _package(place: Path) -> str:
    """Name of the package whose modules are the files of a folder, so that a study may import another file beside it."""
    name = f"studies_{sha256(str(place.resolve()).encode()).hexdigest()[:16]}"
    if name not in sys.modules:
        sys.modules[name] = ModuleType(name)
        sys.modules[name].__path__ = [str(place)]
    return name


def _figures(name: str, study: ModuleType, result: Any) -> Mapping[str, Any]:
    """The finished figures of a study, none if it draws none or matplotlib is missing."""
    if not hasattr(study, "figures"):
        return {}
    from pfaffian.viewer.drawing import finish, has_matplotlib, style

    if not has_matplotlib(f"study {name!r}"):
        return {}
    with style():
        return {name: finish(figure) for name, figure in study.figures(result).items()}


def _claim(given: Any) -> Claim:
    """A checked Claim from a Claim, or from a tuple of its fields."""
    try:
        claim = Claim(*given)
    except TypeError:
        raise ModelError(f"a claim is (name, value, expected, tolerance, source), got {text(brief(given))}") from None
    numbers = _numbers(claim)
    if not (math.isfinite(numbers[1]) and math.isfinite(numbers[2]) and numbers[2] >= 0):
        raise ModelError(f"claim {claim.name!r}: expected and tolerance must be finite, and tolerance not below zero")
    return claim._replace(value=numbers[0], expected=numbers[1], tolerance=numbers[2])


def report(claims: Iterable[Claim]) -> str:
    """The claims as a table, and how many of them hold."""
    claims = list(claims)
    if not claims:
        return "the study makes no claims, so it proves nothing"
    rows = [
        ("pass" if c.holds else "FAIL", c.name, f"{c.value:.8g}", _expectation(c), f"{c.tolerance:.3g}", c.source)
        for c in claims
    ]
    passed = sum(c.holds for c in claims)
    words = table(rows, ("", "claim", "value", "expected", "tolerance", "source"))
    return f"{words}\n{passed} of {plural(len(claims), 'claim')} hold"


def _expectation(c: Claim) -> str:
    return f"{c.expected:.8g}" if c.relation == "within" else f"{c.relation} {c.expected:.8g}"


def as_json(outcome: Outcome, versions: Mapping[str, str]) -> str:
    """The claims of a study as JSON; values that are not finite become text, since JSON has no nan."""
    claims = []
    for c in outcome.claims:
        value = c.value if math.isfinite(c.value) else str(c.value)
        claims.append(c._asdict() | {"value": value, "holds": c.holds})
    whole = {"study": outcome.name, "holds": outcome.holds, "claims": claims, "versions": dict(versions)}
    return json.dumps(whole, indent=1, allow_nan=False) + "\n"


def datasets(result: Any) -> Iterator[tuple[str, Any]]:
    """The Datasets in the result of a study, each with a name that is safe for a file."""
    import xarray as xr

    from pfaffian.output.folder import unused

    named = {"result": result} if isinstance(result, xr.Dataset) else result if isinstance(result, Mapping) else {}
    used: set[str] = set()
    for name, value in named.items():
        if isinstance(value, xr.Dataset):
            yield unused(stem(name), used), value
