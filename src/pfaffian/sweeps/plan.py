"""The arguments of a sweep, checked: what a caller gives becomes a planned `Sweep`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from inspect import signature
from typing import Any

import numpy as np

from pfaffian.errors import ModelError, brief, nearest
from pfaffian.evaluate.arrays import by_label
from pfaffian.evaluate.single_values import as_whole
from pfaffian.model.mechanism import Mechanism
from pfaffian.model.number import floats
from pfaffian.simulate.run.run import run
from pfaffian.simulate.step.inputs import times_in_steps
from pfaffian.simulate.step.joint_loads import with_loads
from pfaffian.simulate.step.run_arguments import arguments
from pfaffian.simulate.step.sampling import check_seed, in_python
from pfaffian.states.system import as_system
from pfaffian.sweeps.at_states import as_states
from pfaffian.sweeps.opaque import content
from pfaffian.sweeps.planned import Sweep, check_names
from pfaffian.sweeps.space import ONE_RUN, SEED, Space, argument_of, as_space

OURS = ("m", "record", "start_from", "threads", "progress", "squeeze")
"""Arguments of `run` that a sweep sets itself."""

OPTIONS = tuple(name for name in signature(run).parameters if name not in OURS)
"""Arguments of `run` that a caller may give to a sweep."""

TIMES = ("start", "duration", "step", "every", "u_step")
"""Arguments of `run` that determine its times."""

GIVEN = ("q", "v", "u", "parameters", "guess")
"""Arguments of `run` with numbers for each run."""


def plan(m: Any, space: Any, store: Any, keep: Any, block: Any, options: Mapping[str, Any], states: Any = None) -> Sweep:
    """The checked Sweep. Raises ModelError: arguments that do not fit."""
    from pfaffian.formats.text.file import as_path

    system = as_system(m)
    keep, outputs = with_loads(system.mechanism, keep, options.get("outputs"), "time" if states is None else "state")
    options = {**options, **({} if outputs is None else {"outputs": outputs})}
    chosen = None if states is None else as_space(states, system.mechanism)
    for name in options:
        if name not in OPTIONS:
            what = "is given by the sweep itself" if name in OURS else f"is no argument of run; {nearest(name, OPTIONS)}"
            raise ModelError(f"sweep: {brief(name)} {what}")
    if chosen is None and not {"duration", "times"} & set(options):
        raise ModelError("sweep: duration [s] or times [s] of each run are needed, or states={label: values} in place of runs")
    if keep is None:
        raise ModelError("sweep: keep is needed: statistics, such as {'end': statistics.final('q')}, or names of signals")
    check_names(keep if isinstance(keep, (Mapping, list, tuple)) else (), keep)
    checked = ONE_RUN if space == {} and chosen is not None else as_space(space, system.mechanism)
    if chosen is not None and SEED in (*chosen.axes, *checked.axes):
        raise ModelError("sweep: states have no noise, so there is no seed")
    if chosen is not None and (both := sorted(set(chosen.axes) & set(checked.axes))):
        raise ModelError(f"sweep: {both[0]!r} is an axis of the space and of the states; leave it out of one of them")
    law = in_python(arguments(system.mechanism, None, options.get("control"), None)[1])
    given = as_options(options, checked, system.mechanism)
    return Sweep(
        system,
        checked,
        as_path(store),
        keep,
        given,
        None if block is None else as_whole(block, "block"),
        content(law.python) if law and law.python else None,
        None if chosen is None else as_states(system.mechanism, chosen, given, keep),
    )


def read_again(sweep: Sweep) -> Sweep:
    """The sweep in another process, with the law in Python as this process reads it."""
    law = in_python(arguments(sweep.system.mechanism, None, sweep.options.get("control"), None)[1])
    return replace(sweep, python=content(law.python)) if law and law.python else sweep


def as_options(options: Mapping[str, Any], space: Space, m: Mechanism) -> dict[str, Any]:
    """The arguments of `run` that do not vary, with numbers and series as arrays.

    Raises ModelError: one has an axis of runs, which the sweep gives by its space; or does not fit an axis of the space.
    """
    defaults, series = signature(run).parameters, options.get("u_step") is not None
    if "duration" in options and options.get("accuracy") is None and options.get("times") is None:
        start, duration, step, every, u_step = (options.get(x, defaults[x].default) for x in TIMES)
        times_in_steps(start, duration, step, every, u_step)
    varied = {argument_of(label, m) for label in space.axes}
    checked = dict(options)
    for name in GIVEN:
        if options.get(name) is None:
            continue
        value = by_label(options[name], name, series=series and name == "u")
        if not isinstance(value, Mapping) and name in {group for group, _ in varied}:
            raise ModelError(f"sweep: {name} must be {{name: number}} if the space varies entries of it")
        checked[name] = _of_each_run(value, name, 1 if series and name == "u" else 0)
    for name, x in checked["u"].items() if series and isinstance(checked.get("u"), Mapping) else ():
        if np.ndim(x) and ("u", name) in varied:
            raise ModelError(
                f"sweep: {name!r} of u is a series, so it cannot be an axis of the space; vary a parameter instead"
            )
    seed = options.get(SEED, 0)
    if np.ndim(seed):
        raise ModelError("sweep: seeds of runs are an axis of the space; seed is that of the first run")
    check_seed(seed)
    check_seed(int(seed) + space.runs - 1)
    return checked


def _of_each_run(value: Any, name: str, axes: int) -> Any:
    """The numbers of an argument that all runs share.   axes: number of axes that an entry may have, 1 for a series.

    Raises ModelError: it has more, of which one would be that of runs.
    """
    found: Any = floats(value, name) if not isinstance(value, Mapping) else None
    if found is None:
        found = {n: floats(x, f"{name}[{n!r}]") for n, x in value.items()}
    most = found.ndim - 1 if isinstance(found, np.ndarray) else max((x.ndim for x in found.values()), default=0)
    if most > axes:
        what = "a number or (samples,)" if axes else "a number"
        raise ModelError(
            f"sweep: {name}: {what} for each entry is needed, since all runs share it; what varies is an axis of the space"
        )
    return found
