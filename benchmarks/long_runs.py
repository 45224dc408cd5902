"""Rows of `python -m benchmarks accuracy`: four-bars over 100 s and in batches, a fast top, and what the estimates cost."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

import pfaffian as pf
from benchmarks.integrators import by_diffrax
from benchmarks.problems import Problem, end_of_run, end_of_steps, four_bar, heavy_top, off, start
from benchmarks.result import Comparison, Goal
from benchmarks.rivals import ACCURACIES, TOLERANCES, Rival, attempts, least, once, rivals
from benchmarks.timing import Options, interleaved

EXACT = 1e-12
"""Accuracy of the references."""

BESIDE = "RK4 at 1 ms"
GOALS = {BESIDE: 1 / 0.37, "SciPy DOP853": 60.0, "SUNDIALS CVODE": 20.0, "SUNDIALS IDA": 20.0, "diffrax Dopri8": 10.0}
"""Least ratios for a four-bar over 100 s, by the side."""

MOST_TIMES = 100
"""How many times the time of ours they may take there."""

ALONE, VMAPPED = 32, 256
"""Four-bars of a batch that are computed one by one, and by diffrax, for a time a run."""


def run(o: Options) -> Iterator[Comparison]:
    yield from long_four_bar(o)
    yield from lengths(o)
    yield spin(o)
    yield from estimates(o)


def first_within(error: float, exact: np.ndarray, solve: Any) -> float | None:
    """The first of TOLERANCES with which the coordinates at the end (..., n) are within an error, None if there is none."""
    n = exact.shape[-1] // 2
    return next((x for x in TOLERANCES if off(solve(x)[..., :n], exact[..., :n], n) <= error), None)


def long_four_bar(o: Options) -> Iterator[Comparison]:
    """A four-bar with two records, at a true error of 1e-8, its estimate included."""
    of, error = four_bar(10.0 if o.quick else 100.0), 1e-8
    exact, angles, steps = end_of_run(of, EXACT, o), slice(of.m.nq), int(1e3 * of.duration)

    def error_of(x: np.ndarray) -> float:
        return off(x[angles], exact[angles], of.m.nq)

    sides = {name: side for name, side in rivals(of, o).items() if name in GOALS and not o.quick}
    mine = least(attempts(Rival(lambda accuracy: end_of_run(of, accuracy, o), ACCURACIES), error_of, error, np.inf), error)
    most = MOST_TIMES * mine.seconds
    tried = {name: attempts(side, error_of, error, most) for name, side in sides.items()}
    calls: dict[str, Any] = {"": lambda: end_of_run(of, mine.setting, o), BESIDE: lambda: end_of_steps(of, steps, o)}
    times = {name: once(name, found, error, most) for name, found in tried.items()} | interleaved(calls, 1, o)
    notes = {name: least(found, error).notes for name, found in tried.items()} | {
        BESIDE: {"true error": error_of(calls[BESIDE]())}
    }
    for name in (BESIDE, *sides):
        what = f"four-bar, {of.duration:g} s, true error {error:g}, beside {name}"
        told = notes[name] | {"accuracy of ours": mine.setting, "its true error": mine.error}
        yield Comparison(what, "a run", times[""], times[name], Goal("ratio", ">=", GOALS[name]), told)


def lengths(o: Options) -> Iterator[Comparison]:
    """Four-bars with cranks of different lengths at once, beside them one by one, and by diffrax."""
    of, n = four_bar(10.0, pf.Parameter("crank", 0.4, "m")), o.runs
    cranks, ends = np.linspace(0.35, 0.45, n), np.array([0.0, of.duration])
    how: dict[str, Any] = {"times": ends, "accuracy": 1e-6, "record": ["q", "v"], "backend": o.backend}
    at = pf.assemble(of.m, {"A": 1.57}, parameters={"crank": cranks})
    once = lambda some: pf.run(of.m, at.q[some], at.v[some], parameters={"crank": cranks[some]}, threads=1, **how)  # noqa: E731
    each = range(0, n, max(1, n // ALONE))
    together = interleaved({"": lambda: once(slice(None))}, n, o)[""]
    alone = interleaved({"one by one": lambda: [once(i) for i in each]}, len(each), o)["one by one"]
    yield Comparison(f"{n} four-bars, 10 s, beside one by one", "a run", together, alone, Goal("ratio", ">=", 3.0))
    by = by_diffrax(of, "Dopri8")
    if by and not o.quick:
        some = slice(None, None, n // VMAPPED)
        begin, exact = np.concatenate([at.q, at.v], axis=1)[some], once(some)
        last = np.concatenate([exact.q.values[:, -1], exact.v.values[:, -1]], axis=1)
        tolerance = first_within(3e-6, last, lambda tolerance: by(begin, ends, tolerance, cranks[some])[:, -1]) or 1e-9
        calls = {"diffrax Dopri8, vmapped": lambda: by(begin, ends, tolerance, cranks[some])}
        theirs = interleaved(calls, VMAPPED, o)["diffrax Dopri8, vmapped"]
        notes = {"tolerance": tolerance}
        yield Comparison(f"{n} four-bars, 10 s, beside diffrax", "a run", together, theirs, Goal("ratio", ">=", 30.0), notes)


def spin(o: Options) -> Comparison:
    """The heavy top to 1e-7, beside 8 times as many steps of RK4 as at 1 ms."""
    of: Problem = heavy_top()
    steps = int(8e3 * of.duration)
    calls = {"": lambda: end_of_run(of, 1e-7, o, False), "RK4": lambda: end_of_steps(of, steps, o)}
    times = interleaved(calls, 1, o)
    return Comparison(
        f"heavy top to 1e-7, beside {steps} steps of RK4", "a run", times[""], times["RK4"], Goal("ratio", ">=", 1.0)
    )


def estimates(o: Options) -> Iterator[Comparison]:
    """What an estimate of the error costs: to an accuracy, at steps of one length alone and in a batch."""
    of = four_bar()
    steps = 64 if o.quick else 10_000
    cases = {
        "to an accuracy": (lambda error: end_of_run(of, 1e-6, o, error), 3.0),
        "steps of 1 ms": (lambda error: end_of_steps(of, steps, o, error), 2.0),
        f"{o.runs} runs of 100 steps": (lambda error: many_steps(of, o, error), 1.1),
    }
    for what, (call, most) in cases.items():
        times = interleaved({"without": lambda call=call: call(False), "with": lambda call=call: call(None)}, 1, o)
        yield Comparison(f"estimate, four-bar, {what}", "a run", times["without"], times["with"], Goal("ratio", "<=", most))


def many_steps(of: Problem, o: Options, error: bool | None) -> Any:
    """A batch of four-bars with steps of 1 ms."""
    q = np.tile(start(of)[: of.m.nq], (o.runs, 1))
    how: dict[str, Any] = {"step": 1e-3, "every": 100, "record": ["q", "v"], "error_bound": np.inf, "backend": o.backend}
    return pf.run(of.m, q, duration=0.1, error=error, threads=1, **how)
