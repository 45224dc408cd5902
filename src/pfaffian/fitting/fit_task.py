"""What a fit begins from: the checked records, unknowns, bounds and priors, the first guess of numbers and starts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from pfaffian.errors import ModelError, brief, listed, nearest
from pfaffian.evaluate.arrays import guessed_configurations
from pfaffian.evaluate.single_values import as_number
from pfaffian.fitting.fit_result import Fit
from pfaffian.fitting.guesses import guesses
from pfaffian.fitting.known_before import possibility, settings, within
from pfaffian.fitting.linear_step import Settings
from pfaffian.fitting.prediction import MeasuredSystem, sizes
from pfaffian.fitting.problem import FitProblem
from pfaffian.fitting.records import (
    CheckedRecord,
    Measurements,
    as_records,
    check,
    check_degrees,
    check_units,
    measured_names,
    noise,
)
from pfaffian.fitting.segments import cut, usual_interval
from pfaffian.fitting.unknowns import as_unknowns
from pfaffian.model.mechanism import Mechanism
from pfaffian.model.number import named_float
from pfaffian.simulate.step.signals import OutputFunction
from pfaffian.simulate.step.simulation import Simulation

SAMPLES = 50
"""Usual intervals in a segment, by default."""


class FitOptions(NamedTuple):
    """Options of a caller, as in `fit`."""

    start: Any
    bounds: Mapping[str, tuple[float, float]]
    priors: Mapping[str, tuple[float, float]]
    guess: Any
    units: Mapping[str, str]
    robust: bool
    unknown: Any
    horizon: Any


class FitTask(NamedTuple):
    """A problem with the numbers, starts and standard deviations from which its solution begins."""

    problem: FitProblem
    theta: np.ndarray
    x: np.ndarray
    deviation: np.ndarray
    settings: Settings
    horizon: float
    near: bool


def fit_task(
    s: Simulation, free: tuple[int, ...], records: Any, outputs: Mapping[str, OutputFunction], given: FitOptions
) -> FitTask:
    """The task of a fit of the parameters with the indices `free`, checked."""
    m = s.mechanism
    read = as_records(records)
    names = measured_names(read, outputs)
    of = MeasuredSystem(s, names, tuple((n, f) for n, f in outputs.items() if n in names))
    layout = _layout(of)
    check_units(given.units, (*layout.names, "u"))
    checked = tuple(check(name, x, layout, given.units) for name, x in read.items())
    _check_content(m, checked, layout)
    length = as_number(given.horizon, "horizon", above=0) if given.horizon is not None else SAMPLES * usual_interval(checked)
    unknowns = as_unknowns(given.unknown, layout, tuple(read), _usual(layout, checked))
    p = m.p_defaults.copy()
    first = given.start.values if isinstance(given.start, Fit) else given.start
    known = (*m.p_names, *[x.name for x in unknowns])
    for name, value in first.items():
        if name in m.p_names:
            p[m.p_names.index(name)] = named_float(value, f"start[{name!r}]")
        elif name not in known and not isinstance(given.start, Fit):
            raise ModelError(f"start: there is no parameter {brief(name)}; {nearest(name, known)}")
    problem = FitProblem(of, layout, checked, cut(checked, length), free, p, unknowns, given.robust)
    theta = np.append(p[list(free)], [float(first.get(x.name, x.default)) for x in unknowns])
    x = guesses(m, layout, checked, problem.segments, guessed_configurations(m, given.guess)[0], p)
    x = np.hstack([x, np.tile(s.z, (len(x), 1))])
    deviation = noise(checked)
    before = given.start.solution if isinstance(given.start, Fit) else None
    if before and before.fitted.residual.shape == problem.segments.y.shape and before.fitted.x.shape == x.shape:
        x, deviation = before.fitted.x, before.deviation
    known_before = _settings(problem, given)
    theta = within(theta, known_before, problem.names, first)
    return FitTask(problem, theta, x, deviation, known_before, length, before is not None)


def _layout(of: MeasuredSystem) -> Measurements:
    """The layout of what a machine measures."""
    m, counts = of.s.mechanism, sizes(of)
    known = {"q": m.q_names, "v": m.v_names}
    entries = tuple(known.get(n, ("",) if k == 1 else tuple(map(str, range(k)))) for n, k in zip(of.names, counts, strict=True))
    return Measurements(of.names, entries, of.s.w_names)


def _check_content(m: Mechanism, records: tuple[CheckedRecord, ...], layout: Measurements) -> None:
    """Raise ModelError: nothing changes in the records, or angles are in degrees."""
    for r in records:
        check_degrees(m, r, layout)
    still = [np.nanmax(r.y, axis=0, initial=-np.inf) <= np.nanmin(r.y, axis=0, initial=np.inf) for r in records]
    if np.all(still):
        raise ModelError(
            f"records: {listed(layout.labels)} are constant in all records; nothing moves, so nothing can be fitted"
        )


def _usual(layout: Measurements, records: tuple[CheckedRecord, ...]) -> dict[str, str]:
    """The unknowns by default: the delay of inputs that change, and of v beside q."""
    moving = any((np.ptp(r.u, axis=0) > 0).any() for r in records if r.u.size)
    return ({"u": "delay"} if moving else {}) | ({"v": "delay"} if {"q", "v"} <= set(layout.names) else {})


def _settings(problem: FitProblem, given: FitOptions) -> Settings:
    """Bounds and priors by number, and the check of physical possibility."""
    possible = possibility(problem.of.s.mechanism)
    return settings(problem.names, given.bounds, given.priors, lambda theta: possible(problem.at(theta)[0]))
