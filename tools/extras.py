"""What an extra of `pyproject.toml` installs: its packages, those that they require, and which of them are missing here.

In `alone(extra)` no other package can be imported or found, as in an environment with that extra alone.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any
from unittest import mock

from packaging.requirements import Requirement

ALWAYS = frozenset({"pfaffian", "pip", "pytest", "pluggy", "hypothesis", "pyarrow"})
"""Packages that stay in sight in `alone`: what runs the tests takes part in each import, and pandas goes on to use the pyarrow
that it found when it was imported itself."""
PROJECT = Path(__file__).resolve().parents[1] / "pyproject.toml"


def requirements(extra: str) -> list[Requirement]:
    """The requirements of the library with an extra, and with the extras that this one names."""
    project: dict[str, Any] = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]
    found = list(map(Requirement, [*project["dependencies"], *project["optional-dependencies"][extra]]))
    within = [other for x in found if x.name == project["name"] for other in sorted(x.extras)]
    return [x for x in found if x.name != project["name"]] + [x for other in within for x in requirements(other)]


def missing(extra: str) -> list[str]:
    """The requirements of an extra that are not installed, or only in another version."""
    return list(dict.fromkeys(str(x) for x in requirements(extra) if not _satisfied(x)))


def _satisfied(requirement: Requirement) -> bool:
    try:
        return requirement.specifier.contains(metadata.version(requirement.name), prereleases=True)
    except metadata.PackageNotFoundError:
        return False


def closure(extra: str) -> dict[str, str]:
    """Name and version of each installed package that an extra brings, those that its packages require among them."""
    found: dict[str, str] = {}
    seen: set[tuple[str, frozenset[str]]] = set()
    waiting = requirements(extra)
    while waiting:
        requirement = waiting.pop()
        name, extras = canonical(requirement.name), frozenset(requirement.extras)
        if (name, extras) not in seen and _satisfied(Requirement(name)):
            seen.add((name, extras))
            found[name] = metadata.version(name)
            waiting += _required(name, extras)
    return found


def _required(name: str, extras: frozenset[str]) -> Iterator[Requirement]:
    """What an installed package requires here, with these extras of its own."""
    for requirement in map(Requirement, metadata.requires(name) or ()):
        marker = requirement.marker
        if marker is None or any(marker.evaluate({"extra": extra}) for extra in ("", *extras)):
            yield requirement


def canonical(name: str) -> str:
    """The one spelling of a package's name."""
    return re.sub(r"[-_.]+", "-", name).lower()


@contextmanager
def alone(extra: str) -> Iterator[None]:
    """Hide the packages that an extra does not bring, and their modules: those that are loaded already, too."""
    known = frozenset(closure(extra)) | ALWAYS
    find = metadata.distribution

    def distribution(name: str) -> metadata.Distribution:
        if canonical(name) not in known:
            raise metadata.PackageNotFoundError(name)
        return find(name)

    tops = _modules_without(known)
    loaded = {name: module for name, module in sys.modules.items() if name.partition(".")[0] in tops}
    hidden = dict.fromkeys([*tops, *loaded])
    sys.modules.update(hidden)  # None: an import of it fails
    try:
        with mock.patch.object(metadata, "distribution", distribution):
            yield
    finally:  # what was imported meanwhile stays
        for name in hidden:
            del sys.modules[name]
        sys.modules.update(loaded)


@cache
def _modules_without(known: frozenset[str]) -> frozenset[str]:
    """The top modules of all installed packages but these."""
    plain = {module for module, owners in metadata.packages_distributions().items() if not known & set(map(canonical, owners))}
    others = [found for found in metadata.distributions() if canonical(found.name) not in known]
    return frozenset(plain | {module for found in others for module in _nested(found)})


def _nested(found: metadata.Distribution) -> Iterator[str]:
    """Modules that a package keeps in a folder `site-packages` of its own, as those of `pin` do."""
    for file in found.files or ():
        _, mark, within = file.as_posix().rpartition("site-packages/")
        if mark:
            yield within.partition("/")[0].partition(".")[0]
