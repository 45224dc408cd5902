"""What is said of steps that err too much, or that a run did not survive: which part is too fast, and which step would do."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import numpy as np

from pfaffian.errors import RunWarning, notice
from pfaffian.simulate.accuracy import Watch, relative
from pfaffian.simulate.fastest import Fastest, fastest
from pfaffian.simulate.system import show

FINEST = 50_000
"""What a step is divided by at most."""

DIGITS = (1, 2, 4, 5, 8)
"""First digits of what a step is divided by."""

MARGIN = 0.5
"""Of the bound, that a shorter step may gather."""

FOLLOWED = 1.0
"""Rate times step up to which a step follows a part, however badly; beyond it a stopped run is put down to that."""

NAMED = 64
"""Stopped runs whose fastest part is looked for."""


def tell_start(watch: Watch) -> bool:
    """Warn RunWarning before a run whose first step errs too much; whether it did."""
    error = watch.at_start()
    if not (error > watch.bound).any():
        return False
    run, first = int(np.nanargmax(error)), watch.looks[0]
    k, x = watch.kept[run][0] if run in watch.kept else (0, None)
    part = None if x is None else _fastest(watch, run, k, x)
    # What now speeds up comes to about this when the fastest part swings back.
    rate = max(abs(part.rate) if part else 0.0, 1 / (watch.when.step * watch.when.steps))
    top = first.largest[[run]] + first.change[[run]] / (rate * watch.when.step)
    error[run] = watch.when.steps * relative(first.error[[run]], top)[0]
    _tell(watch, error, run, top, part, " if all err as the first does")
    return True


def tell_accuracy(watch: Watch, error: np.ndarray, energy: np.ndarray) -> None:
    """Warn RunWarning after a run whose steps add up to an error (runs,) beyond the bound.   energy: (runs,) [J] likewise."""
    if not (error > watch.bound).any():
        return
    run = int(np.nanargmax(error))
    states, top = watch.kept.get(run, []), watch.largest[[run]]
    states.sort(key=lambda at: _left(watch, run, at[0], at[1], top))
    part = _fastest(watch, run, *states[-1]) if states else None
    _tell(watch, error, run, top, part, f" and {energy[run]:+.2g} J of energy" if abs(energy[run]) > 0 else "")


def _tell(watch: Watch, error: np.ndarray, run: int, top: np.ndarray, part: Fastest | None, more: str) -> None:
    over, runs, h = int((error > watch.bound).sum()), len(error), watch.when.step
    who = "the run" if runs == 1 else f"{over} of {runs} runs (run {run} the most)"
    states = watch.kept.get(run, [])
    step = _shorter(watch, run, *states[-1], top, float(error[run])) if states else None
    ways = ([f"step={step:.6g} would do"] if step else []) + _others(watch, part)
    notice(
        f"steps of {h:g} s cost {who} of {watch.mechanism.name!r} an error of {error[run]:.2g}{more} (angles in rad, speeds "
        f"beside the largest; more than {watch.bound:g})"
        + (f"; the fastest is {part}" if part else "")
        + (f"; {', '.join(ways)}" if ways else ""),
        RunWarning,
    )


def _left(watch: Watch, run: int, k: int, x: np.ndarray, top: np.ndarray, n: int = 1) -> float:
    """The error of n parts of step k from the state x."""
    parts = (watch.ahead(k, x[None], np.array([run]), i * n) for i in (1, 2))
    return float(relative(watch.difference(*parts), top)[0])


def _shorter(watch: Watch, run: int, k: int, x: np.ndarray, top: np.ndarray, error: float) -> float | None:
    """The step [s] that gathers less than the bound, made sure of at the state x of step k; None where none is found."""
    whole, least = _left(watch, run, k, x, top), (error / watch.bound / MARGIN) ** (1 / watch.order)
    for n in _round(least):
        if error * _left(watch, run, k, x, top, n) <= watch.bound * MARGIN * whole:
            return watch.when.step / n
    return None


def _round(least: float) -> Iterator[int]:
    """Whole numbers of one digit and zeros, from the least on."""
    every = (digit * 10**i for i in itertools.count() for digit in DIGITS)
    return itertools.takewhile(lambda n: n <= FINEST, (n for n in every if n >= max(2, least)))


def _fastest(watch: Watch, run: int, k: int, x: np.ndarray) -> Fastest | None:
    """The fastest part of a run before step k, in the state x."""
    s, when = watch.simulation, watch.when
    t, p = when.start + k * when.step, s.parameters(watch.p[[run]], x[None])
    q, v = show(s.system, x[None], p, t)
    # Between its instants a law in discrete time does not answer to the motion.
    law = s.control if s.control and not s.control.parts else None
    sample = watch.series[min(k // when.stride, len(watch.series) - 1)]
    w = (sample[run] if sample.ndim == 2 else sample) if law is s.control else np.zeros(s.mechanism.nu)
    return fastest(s.mechanism, law, q[0], v[0], w, x[s.system.nx :][: len(law.z) if law else 0], t, p[0])


def _others(watch: Watch, part: Fastest | None) -> list[str]:
    """What another integrator would do about the fastest part."""
    s, when = watch.simulation, watch.when
    now, turn = s.scheme.integrator, abs(part.rate) * when.step if part else np.inf
    if part and part.damped and now != "tr-bdf2" and not s.system.own:
        return ["scheme=pf.Scheme(integrator='tr-bdf2') goes over what is damped so fast"]
    if now != "rk4" and when.steps * turn**5 / 120 < watch.bound * MARGIN:
        return ["scheme=pf.Scheme(integrator='rk4') follows it"]
    return []


def too_fast(watch: Watch, x: np.ndarray, k: np.ndarray) -> Callable[[np.ndarray], list[str]]:
    """Of stopped runs, by their numbers, what was too fast for the step, "" where nothing was.

    x: (runs, nx) states before steps k (runs,) to look at.
    """

    def words(some: np.ndarray) -> list[str]:
        found = [""] * len(some)
        for i, run in enumerate(some[:NAMED].tolist()):
            part = _fastest(watch, run, int(k[run]), x[run])
            if part and abs(part.rate) * watch.when.step > FOLLOWED:
                ways = [f"a step of {FOLLOWED / 2 / abs(part.rate):.1g} s follows it", *_others(watch, part)]
                found[i] = f"the fastest is {part}: {', '.join(ways)}"
        return found

    return words
