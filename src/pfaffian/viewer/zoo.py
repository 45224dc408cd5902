"""The zoo: the machines that come with the package, each with its degrees of freedom and a number that the tests check.

A machine is `NAME.yaml` in the folder `examples`. The function NAME of `zoo.py` in that folder computes its number, and the
docstring of the function describes it; MOBILITY in the same file has the degrees of freedom.
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
from pfaffian.formats.bundled import ZOO, example, examples, shelf
from pfaffian.formats.read import read
from pfaffian.formats.text.run_settings import RunSettings
from pfaffian.model.mechanism import Mechanism
from pfaffian.simulate.run.run import run
from pfaffian.simulate.step.step import Scheme
from pfaffian.starts.assemble import start_arguments, start_of
from pfaffian.starts.start import start_state
from pfaffian.viewer.run_study import Claim

ANY_ERROR = 1.0
"""Step error above which a run that is only drawn warns; a picture needs no more accuracy."""


class ZooStart(NamedTuple):
    """The start of a machine of the zoo, on its constraints.   q, v, u, p: {name: value} of all coordinates, velocities, inputs
    and parameters."""

    q: Mapping[str, float]
    v: Mapping[str, float]
    u: Mapping[str, float]
    p: Mapping[str, float]


class ZooMachine(NamedTuple):
    """A machine of the zoo.   title: the comment at the head of its file.   m, settings: the file's mechanism and run."""

    name: str
    title: str
    m: Mechanism
    settings: RunSettings


def machines() -> tuple[str, ...]:
    """Names of the machines that have a number; the others need files of another package."""
    return tuple(name for name in examples() if hasattr(_numbers(), name))


def machine(name: str) -> ZooMachine:
    """Read a machine of the zoo by its name. Raises ModelError: there is none of that name."""
    file = example(name)
    title = []
    for line in file.read_text(encoding="utf-8").split("\n"):
        if not line.startswith("#"):
            break
        title.append(line.removeprefix("#").strip())
    return ZooMachine(file.stem, " ".join(title), *read(f"{ZOO}{file.stem}"))


def start(m: Mechanism, settings: RunSettings, backend: Any = "interpreter") -> ZooStart:
    """The start of a machine's run, put onto the constraints."""
    file = settings.arrays(m)
    arrays = start_arguments(m, dict(settings.q), dict(settings.v), file.p, guess=dict(settings.guess))
    state = start_state(start_of(m, arrays, 0.0, backend), correct=True)
    names, values = (m.q_names, m.v_names, m.u_names, m.p_names), (state.q[0], state.v[0], file.u, file.p)
    return ZooStart(*[dict(zip(n, x.tolist(), strict=True)) for n, x in zip(names, values, strict=True)])


def mobility(name: str) -> int:
    """Degrees of freedom of a machine, from MOBILITY in `examples/zoo.py`."""
    return int(_numbers().MOBILITY[name])


def description(name: str) -> str:
    """Description of a machine's number: the first sentence of its function's docstring."""
    return (inspect.getdoc(getattr(_numbers(), name)) or "").split("\n")[0].split(". ")[0].rstrip(".")


def claim(machine: ZooMachine, at: ZooStart) -> Claim:
    """The claim of a machine: its number at a start, and the expected value."""
    if not hasattr(_numbers(), machine.name):
        raise ModelError(f"{machine.name!r} has no number to check")
    function = getattr(_numbers(), machine.name)
    value, expected, tolerance = function(machine.m, at)
    source = " ".join((inspect.getdoc(function) or "").split()).partition(". ")[2].rstrip(".")
    return Claim(description(machine.name), float(value), float(expected), float(tolerance), source)


def motion(machine: ZooMachine, at: ZooStart) -> xr.Dataset:
    """Run a machine from a start, as its file describes."""
    s = machine.settings
    chosen: dict[str, Any] = {k: getattr(s, k) for k in ("formulation", "integrator") if getattr(s, k) is not None}
    scheme, recorded = Scheme(**chosen, saturate=s.saturate), ("q", "v", "u") if machine.m.nu else ("q", "v")
    values: dict[str, Any] = {"u": at.u, "parameters": at.p, "record": recorded}
    return run(machine.m, at.q, at.v, **values, **s.times, scheme=scheme, error_bound=ANY_ERROR)


@cache
def _numbers() -> ModuleType:
    """The module `examples/zoo.py`, whose functions compute the numbers of the machines."""
    spec = importlib.util.spec_from_file_location("pfaffian_zoo", shelf("examples") / "zoo.py")
    if spec is None or spec.loader is None:
        raise ModelError("the numbers of the zoo cannot be imported")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
