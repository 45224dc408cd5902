"""Studies: a figure or table of a paper as a module that runs, and claims that are checked.

A study is `NAME.py` in a folder `studies`: a docstring, mechanism(), run() -> Dataset or dict of Datasets,
figures(result) -> {name: Figure}, claims(result) -> claims; and law() if `pfaffian export` shall write its law in C.
"""

from __future__ import annotations

import ast
import importlib.util
import json
import math
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from pfaffian.errors import ModelError, brief, install, nearest, plural
from pfaffian.formats.file import as_path
from pfaffian.formats.shelf import shelf
from pfaffian.output.plain import stem, table, text

RELATIONS = ("within", "at most", "at least")
PARTS = ("run", "claims")
PACKAGES = ("matplotlib", "scipy")
"""What the extra `studies` installs."""

_NAME = re.compile(r"[a-z0-9-]{1,64}")
_STEM = re.compile(r"[a-z0-9][a-z0-9_]{0,63}")


class Claim(NamedTuple):
    """One number that a study found, and what its source says that it has to be.

    A study returns its claims from claims(result); `holds` tells whether a claim is satisfied.

    Args:
        name: what is claimed, with the unit.
        value: the number that the study found.
        expected: the number that the source gives.
        tolerance: how far value may be from it, in the same unit; default 0.
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
        """Whether the value satisfies the claim; one that is not finite never does."""
        value, expected, tolerance = _numbers(self)
        if not all(map(math.isfinite, (value, expected, tolerance))):
            return False
        return {
            "within": abs(value - expected) <= tolerance,
            "at most": value <= expected + tolerance,
            "at least": value >= expected - tolerance,
        }[self.relation]


def _numbers(claim: Claim) -> list[float]:
    """Value, expected and tolerance. Raises ModelError: one is not a number; the relation is unknown."""
    if claim.relation not in RELATIONS:
        raise ModelError(
            f"claim {brief(claim.name)}: relation {brief(claim.relation)} is unknown; one of {', '.join(RELATIONS)}"
        )
    try:
        return [float(x) for x in claim[1:4]]
    except (TypeError, ValueError):
        raise ModelError(f"a claim is (name, value, expected, tolerance, source), got {brief(tuple(claim))}") from None


class Outcome(NamedTuple):
    """What a study returned.   result: from its run().   claims: checked.   figures: {name: matplotlib Figure}."""

    name: str
    result: Any
    claims: tuple[Claim, ...]
    figures: Mapping[str, Any]

    @property
    def holds(self) -> bool:
        return bool(self.claims) and all(c.holds for c in self.claims)


def folder() -> Path:
    """./studies, or else the studies that came with this package. Raises ModelError: there are none."""
    local = Path.cwd() / "studies"
    return local if local.is_dir() else shelf("studies")


def studies(place: Path | None = None) -> dict[str, str]:
    """Names of the studies in a folder, and what each is about; nothing is imported.

    Args:
        place: the folder; None: ./studies, or else the studies that came with this package.
    Returns:
        {name: first line of the docstring}; a name is that of the file, with dashes.
    Raises ModelError: there is no such folder; this copy of the package came without its studies.

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
    folder = as_path(place, "the folder of studies")
    if not folder.is_dir():
        raise ModelError(f"there is no folder {text(folder)!r}")
    return folder


def _first_line(path: Path) -> str:
    try:
        words = ast.get_docstring(ast.parse(path.read_bytes())) or ""
    except (SyntaxError, ValueError, OSError) as error:
        return f"(cannot be read: {error})"
    return words.split("\n")[0]


def run_study(name: str, place: Path | None = None, *, draw: bool = True) -> Outcome:
    r"""Run a study and check its claims.

    A study is a file with a docstring and functions run() -> result, claims(result) -> claims, and where it draws
    figures(result) -> {name: Figure}.

    Args:
        name: that of the file, with dashes.
        place: the folder of studies; None: ./studies, or else the studies that came with this package.
        draw: whether to make its figures; default True. Without matplotlib there are none, and a ModelWarning says so.
    Returns:
        (name, result, claims, figures): what run() returned, a tuple of Claim, {name: matplotlib Figure}; `holds` tells whether
        there are claims and all of them hold.
    Raises ModelError: an unknown name (with the nearest known one), a study without its functions or with a package that is
    not installed, a claim of something else than numbers, of an unknown relation, or whose expected number or tolerance is
    not finite.

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
    """Import the study of that name. Raises ModelError: an unknown name, or a study that lacks one of the functions `parts`."""
    known = _files(place)
    if not isinstance(name, str) or not _NAME.fullmatch(name) or name not in known:
        raise ModelError(f"there is no study {text(name, 60)!r}; {nearest(name, list(known))}")
    path = known[name]
    module_name = f"studies.{path.stem}"
    spec = importlib.util.spec_from_file_location(module_name, path)
    if spec is None or spec.loader is None:
        raise ModelError(f"study {name!r} cannot be imported")
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module  # dataclasses look themselves up there
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


def _figures(name: str, study: ModuleType, result: Any) -> Mapping[str, Any]:
    if not hasattr(study, "figures"):
        return {}
    from pfaffian.viewer.drawing import finish, has_matplotlib, style

    if not has_matplotlib(f"study {name!r}"):
        return {}
    with style():
        return {name: finish(figure) for name, figure in study.figures(result).items()}


def _claim(given: Any) -> Claim:
    """A checked Claim, from a Claim or a tuple in its order."""
    try:
        claim = Claim(*given)
    except TypeError:
        raise ModelError(f"a claim is (name, value, expected, tolerance, source), got {text(brief(given))}") from None
    numbers = _numbers(claim)
    if not (math.isfinite(numbers[1]) and math.isfinite(numbers[2]) and numbers[2] >= 0):
        raise ModelError(f"claim {claim.name!r}: expected and tolerance must be finite, tolerance not below zero")
    return claim._replace(value=numbers[0], expected=numbers[1], tolerance=numbers[2])


def report(claims: Iterable[Claim]) -> str:
    """The claims as a table, and how many of them hold."""
    claims = list(claims)
    if not claims:
        return "the study claims nothing: that proves nothing"
    rows = [
        ("pass" if c.holds else "FAIL", c.name, f"{c.value:.8g}", _expectation(c), f"{c.tolerance:.3g}", c.source)
        for c in claims
    ]
    good = sum(c.holds for c in claims)
    words = table(rows, ("", "claim", "value", "expected", "tolerance", "source"))
    return f"{words}\n{good} of {plural(len(claims), 'claim')} hold"


def _expectation(c: Claim) -> str:
    return f"{c.expected:.8g}" if c.relation == "within" else f"{c.relation} {c.expected:.8g}"


def as_json(outcome: Outcome, versions: Mapping[str, str]) -> str:
    """The claims as JSON; values that are not finite become text, since JSON has no nan."""
    claims = []
    for c in outcome.claims:
        value = c.value if math.isfinite(c.value) else str(c.value)
        claims.append(c._asdict() | {"value": value, "holds": c.holds})
    whole = {"study": outcome.name, "holds": outcome.holds, "claims": claims, "versions": dict(versions)}
    return json.dumps(whole, indent=1, allow_nan=False) + "\n"


def datasets(result: Any) -> Iterator[tuple[str, Any]]:
    """The Datasets of a result, each with a safe file name."""
    import xarray as xr

    from pfaffian.output.folder import unused

    named = {"result": result} if isinstance(result, xr.Dataset) else result if isinstance(result, Mapping) else {}
    used: set[str] = set()
    for name, value in named.items():
        if isinstance(value, xr.Dataset):
            yield unused(stem(name), used), value
