"""The zoo: the machines that come with the package, each with its degrees of freedom and a number that the tests check.

A machine is `NAME.yaml` in the folder `examples`; its number is the function NAME of `zoo.py` there, whose docstring says what
the number is. MOBILITY in the same file has the degrees of freedom.
"""

from __future__ import annotations

import importlib.util
import inspect
from collections.abc import Mapping
from functools import cache
from types import ModuleType
from typing import Any, NamedTuple

import xarray as xr

from pfaffian.errors import ModelError
from pfaffian.formats.door import read
from pfaffian.formats.run_settings import RunSettings
from pfaffian.formats.shelf import ZOO, example, examples, shelf
from pfaffian.model.mechanism import Mechanism
from pfaffian.simulate.assemble import start_from_guess
from pfaffian.simulate.run import run
from pfaffian.simulate.start import start_state
from pfaffian.simulate.step import Scheme
from pfaffian.viewer.study import Claim

ANY_ERROR = 1.0
"""Error of the steps at which a run to be drawn warns."""


class Start(NamedTuple):
    """Where a machine of the zoo starts, its loops closed.   q, v, u, p: {name: value} of all coordinates, velocities, inputs
    and parameters."""

    q: Mapping[str, float]
    v: Mapping[str, float]
    u: Mapping[str, float]
    p: Mapping[str, float]


class Animal(NamedTuple):
    """A machine of the zoo.   title: the first lines of its file.   m, settings: what the file says."""

    name: str
    title: str
    m: Mechanism
    settings: RunSettings


def machines() -> tuple[str, ...]:
    """Names of the machines that have a number; the others need files of another package."""
    return tuple(name for name in examples() if hasattr(_checked(), name))


def animal(name: str) -> Animal:
    """The machine of that name. Raises ModelError: there is none."""
    file = example(name)
    words = []
    for line in file.read_text(encoding="utf-8").split("\n"):
        if not line.startswith("#"):
            break
        words.append(line.removeprefix("#").strip())
    return Animal(file.stem, " ".join(words), *read(f"{ZOO}{file.stem}"))


def start(m: Mechanism, settings: RunSettings, backend: Any = "interpreter") -> Start:
    """The start of its run, on its constraints."""
    _, _, u, p = settings.arrays(m)
    given = start_from_guess(m, dict(settings.q), dict(settings.guess), dict(settings.v), p, 0.0, backend)
    begun = start_state(given, {}, {}, correct=True)
    names = (m.q_names, m.v_names, m.u_names, m.p_names)
    return Start(*[dict(zip(n, x.tolist(), strict=True)) for n, x in zip(names, (begun.q[0], begun.v[0], u, p), strict=True)])


def mobility(name: str) -> int:
    """Its degrees of freedom, as its number's file says."""
    return int(_checked().MOBILITY[name])


def what(name: str) -> str:
    """What its number is: the first sentence of the number's docstring."""
    return (inspect.getdoc(getattr(_checked(), name)) or "").split("\n")[0].split(". ")[0].rstrip(".")


def claim(found: Animal, at: Start) -> Claim:
    """Its number beside what it has to be."""
    if not hasattr(_checked(), found.name):
        raise ModelError(f"{found.name!r} has no number to check")
    function = getattr(_checked(), found.name)
    value, expected, tolerance = function(found.m, at)
    source = " ".join((inspect.getdoc(function) or "").split()).partition(". ")[2].rstrip(".")
    return Claim(what(found.name), float(value), float(expected), float(tolerance), source)


def motion(found: Animal, at: Start) -> xr.Dataset:
    """Its run, as its file describes it."""
    s = found.settings
    words: dict[str, Any] = {k: getattr(s, k) for k in ("formulation", "integrator") if getattr(s, k) is not None}
    times: dict[str, Any] = {"duration": s.duration, "step": s.step, "every": s.record_every}
    scheme, recorded = Scheme(**words, saturate=s.saturate), ("q", "v", "u") if found.m.nu else ("q", "v")
    given: dict[str, Any] = {"u": at.u, "parameters": at.p, "record": recorded}
    return run(found.m, at.q, at.v, **given, **times, scheme=scheme, error_bound=ANY_ERROR)


@cache
def _checked() -> ModuleType:
    spec = importlib.util.spec_from_file_location("pfaffian_zoo", shelf("examples") / "zoo.py")
    if spec is None or spec.loader is None:
        raise ModelError("the numbers of the zoo cannot be imported")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
