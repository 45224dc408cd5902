"""Studies: a figure or table of a paper as a module that runs, and claims that are checked.

A study is `NAME.py` in a folder `studies`: a docstring, mechanism(), run() -> Dataset or dict of Datasets,
figures(result) -> {name: Figure}, claims(result) -> claims; law() where `pfaffian export` shall write one of its laws in C.
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

from pfaffian.errors import ModelError, brief, nearest, plural
from pfaffian.formats.file import as_path
from pfaffian.output.plain import stem, table, text
from pfaffian.viewer.shelf import shelf

RELATIONS = ("within", "at most", "at least")
PARTS = ("run", "claims")
_NAME = re.compile(r"[a-z0-9-]{1,64}")
_STEM = re.compile(r"[a-z0-9][a-z0-9_]{0,63}")


class Claim(NamedTuple):
    """One number of a study and what it has to be.

    name: what is claimed.   value: what the study found.   expected, tolerance: what the source says, and how near.
    source: paper and equation, figure or table.
    relation: "within": |value - expected| <= tolerance; "at most": value <= expected + tolerance; "at least":
        value >= expected - tolerance.
    """

    name: str
    value: float
    expected: float
    tolerance: float = 0.0
    source: str = ""
    relation: str = "within"

    @property
    def holds(self) -> bool:
        """Whether the claim is met; a value that is not finite never is."""
        value, expected, tolerance = _numbers(self)
        if not all(map(math.isfinite, (value, expected, tolerance))):
            return False
        return {
            "within": abs(value - expected) <= tolerance,
            "at most": value <= expected + tolerance,
            "at least": value >= expected - tolerance,
        }[self.relation]


def _numbers(claim: Claim) -> list[float]:
    """Value, expected and tolerance. Raises ModelError: they are no numbers; the relation is unknown."""
    if claim.relation not in RELATIONS:
        raise ModelError(
            f"claim {brief(claim.name)}: relation {brief(claim.relation)} is unknown; one of {', '.join(RELATIONS)}"
        )
    try:
        return [float(x) for x in claim[1:4]]
    except (TypeError, ValueError):
        raise ModelError(f"a claim is (name, value, expected, tolerance, source), got {brief(tuple(claim))}") from None


class Outcome(NamedTuple):
    """What a study gave.   result: as its run() returned it.   figures: {name: matplotlib Figure}."""

    name: str
    result: Any
    claims: tuple[Claim, ...]
    figures: Mapping[str, Any]

    @property
    def holds(self) -> bool:
        return bool(self.claims) and all(c.holds for c in self.claims)


def folder() -> Path:
    """./studies, or the studies that came with this package. Raises ModelError: there are none."""
    own = Path.cwd() / "studies"
    return own if own.is_dir() else shelf("studies")


def studies(place: Path | None = None) -> dict[str, str]:
    """Name, with dashes -> first line of the docstring of each study in the folder `place`. Nothing is imported."""
    place = folder() if place is None else _existing(place)
    files = sorted(f for f in place.glob("*.py") if _STEM.fullmatch(f.stem) and f.is_file())
    return {f.stem.replace("_", "-"): _first_line(f) for f in files}


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
    """Run a study by its name in `studies()`, from the folder `place`; draw=False leaves its figures out.

    Raises ModelError: an unknown name (with the nearest known one), a study without its functions, a claim that says
    nothing.
    """
    place = folder() if place is None else _existing(place)
    study = load(name, place)
    result = study.run()
    claims = tuple(_claim(c) for c in study.claims(result))
    return Outcome(name, result, claims, _figures(study, result) if draw else {})


def load(name: str, place: Path, parts: Iterable[str] = PARTS) -> ModuleType:
    """The study of that name, imported. Raises ModelError: an unknown name, a study without functions of these names."""
    known = studies(place)
    if not isinstance(name, str) or not _NAME.fullmatch(name) or name not in known:
        raise ModelError(f"there is no study {text(name, 60)!r}; {nearest(name, list(known))}")
    path = place / f"{name.replace('-', '_')}.py"
    called = f"studies.{path.stem}"
    spec = importlib.util.spec_from_file_location(called, path)
    if spec is None or spec.loader is None:
        raise ModelError(f"study {name!r} cannot be imported")
    module = importlib.util.module_from_spec(spec)
    sys.modules[called] = module  # dataclasses look themselves up there
    spec.loader.exec_module(module)
    for part in parts:
        if not callable(getattr(module, part, None)):
            raise ModelError(f"study {name!r} has no function {part}()")
    return module


def _figures(study: ModuleType, result: Any) -> Mapping[str, Any]:
    if not hasattr(study, "figures"):
        return {}
    from pfaffian.viewer.drawing import finish, style

    with style():
        return {name: finish(figure) for name, figure in study.figures(result).items()}


def _claim(given: Any) -> Claim:
    """A claim from a Claim or a tuple in its order."""
    try:
        claim = Claim(*given)
    except TypeError:
        raise ModelError(f"a claim is (name, value, expected, tolerance, source), got {text(brief(given))}") from None
    numbers = _numbers(claim)
    if not (math.isfinite(numbers[1]) and math.isfinite(numbers[2]) and numbers[2] >= 0):
        raise ModelError(f"claim {claim.name!r}: expected and tolerance must be finite, tolerance not below zero")
    return claim._replace(value=numbers[0], expected=numbers[1], tolerance=numbers[2])


def report(claims: Iterable[Claim]) -> str:
    """The claims as a table, and how many hold."""
    claims = list(claims)
    if not claims:
        return "the study claims nothing: that proves nothing"
    rows = [
        ("pass" if c.holds else "FAIL", c.name, f"{c.value:.8g}", _wanted(c), f"{c.tolerance:.3g}", c.source) for c in claims
    ]
    good = sum(c.holds for c in claims)
    shown = table(rows, ("", "claim", "value", "expected", "tolerance", "source"))
    return f"{shown}\n{good} of {plural(len(claims), 'claim')} hold"


def _wanted(c: Claim) -> str:
    return f"{c.expected:.8g}" if c.relation == "within" else f"{c.relation} {c.expected:.8g}"


def as_json(outcome: Outcome, versions: Mapping[str, str]) -> str:
    """The claims for a machine; what is no number is text, since JSON has no nan."""
    claims = []
    for c in outcome.claims:
        value = c.value if math.isfinite(c.value) else str(c.value)
        claims.append(c._asdict() | {"value": value, "holds": c.holds})
    whole = {"study": outcome.name, "holds": outcome.holds, "claims": claims, "versions": dict(versions)}
    return json.dumps(whole, indent=1, allow_nan=False) + "\n"


def datasets(result: Any) -> Iterator[tuple[str, Any]]:
    """The Datasets of a result with a safe name for the file of each."""
    import xarray as xr

    from pfaffian.output.folder import unused

    named = {"result": result} if isinstance(result, xr.Dataset) else result if isinstance(result, Mapping) else {}
    taken: set[str] = set()
    for name, value in named.items():
        if isinstance(value, xr.Dataset):
            yield unused(stem(name), taken), value
