"""Advice about steps that err too much or that stop a run: which part is too fast, and which step would be short enough."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import numpy as np

from pfaffian.control.open_loop import open_loop
from pfaffian.errors import RunWarning, notice
from pfaffian.model.contact import compliant
from pfaffian.simulate.accuracy import Watch
from pfaffian.simulate.balance import Cost
from pfaffian.simulate.draft import Draft
from pfaffian.simulate.fastest import Fastest, changing, fastest, kinks, springs_and_dampers
from pfaffian.simulate.simulation import Simulation
from pfaffian.simulate.sizes import relative
from pfaffian.simulate.system import show

FINEST, FINEST_INTERPRETED = 50_000, 100
"""Largest divisor of a step, in compiled code and without: the search must not take longer than the run."""

DIGITS = (1, 2, 4, 5, 8)
"""First digits of the divisors of a step."""

MARGIN = 0.1
"""Fraction of the bound that a shorter step may reach, as its error is an estimate and may grow."""

FOLLOWED = 1.0
"""Rate times step up to which a step still follows a part; beyond it, that part is blamed for a stopped run."""

LASTING = 5.0
"""Duration of a damped motion, in multiples of the inverse of its rate."""

LOOKED_AT = 4
"""Runs of a batch whose springs and dampers are examined."""

EXAMINED = 8
"""Recorded instants after the start at which they are."""

MOST_NAMED = 6
"""Springs and dampers that are named."""

NAMED = 64
"""Most stopped runs whose fastest part is determined."""


def tell_start(watch: Watch) -> bool:
    """Warn RunWarning before a run if its first steps err too much; returns whether it did."""
    if not watch.suspect.size:
        return False
    total, reach = watch.at_start()
    error = relative(total, reach)
    if not (error > watch.bound).any():
        return False
    run, first = int(np.nanargmax(error)), watch.looks[0]
    k, x = _states(watch, run)[0]
    part = _fastest(watch, run, k, x)
    # What now speeds up comes to about this when the fastest part swings back.
    rate = max(abs(part.rate) if part else 0.0, 1 / (watch.loop.when.step * watch.loop.when.steps))
    top = watch.halves.sizes.levelled(watch.largest[[run]] + first.change[[run]] / (rate * watch.loop.when.step))
    error[run] = relative(total[[run]], top)[0]
    _tell(watch, error, run, (k, x), top, part, ", to judge by its start")
    return True


def tell_stiff(watch: Watch, x: np.ndarray, named: bool) -> None:
    """Warn RunWarning before a run of springs and dampers whose time constants are shorter than its steps, which the scheme
    cannot follow, and of contacts and stops that `tr-bdf2` may not solve; by name, at the start x (runs, nx) of some of its
    runs.   named: whether the fastest has been named already.
    """
    s, when = watch.loop.simulation, watch.loop.when
    if _implicit(s) and not compliant(s.mechanism):
        return
    fast = _too_fast(watch, _at_start(watch, x))
    if _implicit(s) and fast:
        notice(
            f"{_listed(fast)} of {s.mechanism.name!r}: faster than the step of {when.step:g} s, in which tr-bdf2 may not "
            "converge where they touch, or gain energy; take softer surfaces, a larger creep, or a step of "
            f"{FOLLOWED / 2 / abs(fast[0].rate):.1g} s",
            RunWarning,
        )
    elif len(fast) > named:
        _tell_too_fast(watch, fast, "")


def tell_stiff_later(watch: Watch, result: Draft, x: np.ndarray) -> None:
    """Warn RunWarning after a run, as `tell_stiff` before it, of springs and dampers that became too fast for its steps.

    They are examined in some of the runs, at EXAMINED of the recorded instants and at the last states x (runs, nx): what is
    stiff for a while between two of these is not seen.
    """
    s = watch.loop.simulation
    if _implicit(s) or not changing(s.mechanism, s.changing.names):
        return
    fast = _too_fast(watch, _on_the_way(watch, result, x))
    if not fast:
        return
    known = {part.name for part in _too_fast(watch, _at_start(watch, watch.begin))}
    if later := [part for part in fast if part.name not in known]:
        _tell_too_fast(watch, later, "that became ")


def _tell_too_fast(watch: Watch, fast: list[Fastest], became: str) -> None:
    s, h = watch.loop.simulation, watch.loop.when.step
    notice(
        f"{_listed(fast)} of {s.mechanism.name!r}: time constants {became}shorter than the step of {h:g} s, which "
        f"{s.scheme.integrator} cannot follow; scheme=pf.Scheme(integrator='tr-bdf2') goes over them, a step of "
        f"{FOLLOWED / 2 / abs(fast[0].rate):.1g} s follows them",
        RunWarning,
    )


def _implicit(s: Simulation) -> bool:
    """Whether steps go over what is fast."""
    return s.scheme.integrator == "tr-bdf2"


class _Instant(NamedTuple):
    """The state q (nq,), v (nv,) of a run at time t [s] under the parameters p (np,)."""

    q: np.ndarray
    v: np.ndarray
    t: float
    p: np.ndarray


def _too_fast(watch: Watch, instants: Iterable[_Instant]) -> list[Fastest]:
    """Springs and dampers that are too fast for the steps at one of these instants, the fastest first."""
    s, found = watch.loop.simulation, dict[str, Fastest]()
    for q, v, t, p in instants:
        parts = springs_and_dampers(s.mechanism, q, v, t, p)
        for part in kinks(s.mechanism, parts, p) if _implicit(s) else parts:
            if abs(part.rate) * watch.loop.when.step > FOLLOWED and abs(part.rate) >= abs(found.get(part.name, part).rate):
                found[part.name] = part
    return sorted(found.values(), key=lambda part: -abs(part.rate))


def _some_runs(count: int) -> list[int]:
    return list(range(count)) if count <= LOOKED_AT else np.linspace(0, count - 1, LOOKED_AT).astype(int).tolist()


def _shown(watch: Watch, x: np.ndarray, run: int, t: float) -> _Instant:
    """Of a run in the state x (runs, nx) of all."""
    s = watch.loop.simulation
    p = s.parameters(watch.loop.p[[run]], x[[run]])
    q, v = show(s.system, x[[run]], p, t)
    return _Instant(q[0], v[0], t, p[0])


def _at_start(watch: Watch, x: np.ndarray) -> Iterator[_Instant]:
    """Those of some runs that start in the states x (runs, nx)."""
    for run in _some_runs(len(x)):
        yield _shown(watch, x, run, watch.loop.when.start)


def _on_the_way(watch: Watch, result: Draft, x: np.ndarray) -> Iterator[_Instant]:
    """Of some runs that finished, those that are examined."""
    s, when, time = watch.loop.simulation, watch.loop.when, result["time"]
    switched, finished = s.changing.names, np.flatnonzero(result["status"] == 0)
    recorded = all(name in result for name in ("q", "v", *switched))
    for run in finished[_some_runs(len(finished))].tolist() if finished.size else ():
        for i in np.unique(np.linspace(0, len(time) - 1, EXAMINED + 1).astype(int))[1:] if recorded else ():
            p = watch.loop.p[run].copy()
            p[s.changing.at] = [result[name][run, i] for name in switched]
            yield _Instant(result["q"][run, i], result["v"][run, i], float(time[i]), p)
        yield _shown(watch, x, run, when.start + when.step * when.steps)


def _listed(fast: list[Fastest]) -> str:
    more = f" and {len(fast) - MOST_NAMED} more" if len(fast) > MOST_NAMED else ""
    return f"{', '.join(map(str, fast[:MOST_NAMED]))}{more}"


def tell_accuracy(watch: Watch, error: np.ndarray, cost: Cost) -> bool:
    """Warn RunWarning after a run whose accumulated error (runs,) is beyond the bound; returns whether it did.

    cost: other errors.
    """
    if not (error > watch.bound).any():
        return False
    run = int(np.nanargmax(error))
    top = watch.largest[[run]]
    k, x = max(_states(watch, run), key=lambda at: _left(watch, run, at[0], at[1], top))
    energy = 0.0 if cost.energy is None else np.nan_to_num(cost.energy[run])
    amount = f"up to {energy:.2g}" if cost.estimated else f"{energy:+.2g}"
    more = f" and {amount} J of energy" if energy else ""
    more += ", which rises although nothing drives it" if cost.certain[run] and cost.rise[run] else ""
    _tell(watch, error, run, (k, x), top, _fastest(watch, run, k, x), more)
    return True


def _states(watch: Watch, run: int) -> list[tuple[int, np.ndarray]]:
    """Steps and states of a run at which it errs too much; the first step if none was stored."""
    return watch.kept.get(run, [(watch.loop.when.first, watch.begin[run])])


def _tell(
    watch: Watch,
    error: np.ndarray,
    run: int,
    at: tuple[int, np.ndarray],
    top: np.ndarray,
    part: Fastest | None,
    more: str,
) -> None:
    over, runs, h = int((error > watch.bound).sum()), len(error), watch.loop.when.step
    who = "the run" if runs == 1 else f"{over} of {runs} runs (run {run} the most)"
    step = _shorter(watch, run, *at, top, part, float(error[run]))
    words = f"{error[run]:.2g}" if error[run] < 1 else "more than 1"
    ways = ([f"step={step:.6g} would do"] if step else []) + _others(watch, part)
    notice(
        f"steps of {h:g} s cost {who} of {watch.mechanism.name!r} an error of {words}{more} (angles in rad, speeds "
        f"relative to the largest; more than {watch.bound:g})"
        + (f"; the fastest is {part}" if part else "")
        + (f"; {', '.join(ways)}" if ways else ""),
        RunWarning,
    )


def _left(watch: Watch, run: int, k: int, x: np.ndarray, top: np.ndarray, n: int = 1) -> float:
    """The error of step k from the state x, taken in n parts."""
    parts = (watch.halves.ahead(k, x[None], np.array([run]), i * n).x for i in (1, 2))
    return float(np.nan_to_num(relative(watch.halves.difference(*parts), top)[0], nan=np.inf))


def _shorter(
    watch: Watch, run: int, k: int, x: np.ndarray, top: np.ndarray, part: Fastest | None, error: float
) -> float | None:
    """A step [s] whose accumulated error is below the bound, verified at the state x of step k; None if none is found."""
    whole, steps = _left(watch, run, k, x, top), float(watch.loop.when.steps)
    if part and part.damped:
        steps = min(steps, LASTING / (abs(part.rate) * watch.loop.when.step))
    if np.isfinite(whole):
        error = min(error, max(steps, 1.0) * whole)  # of what grows only because the step is too long
    least = max(error / watch.bound / MARGIN, 1.0) ** (1 / watch.halves.order)
    for n in _round(least, FINEST if watch.loop.rollout.in_c else FINEST_INTERPRETED):
        left = _left(watch, run, k, x, top, n)
        if left == 0 or error * left <= watch.bound * MARGIN * whole:
            return watch.loop.when.step / n
    return None


def _round(least: float, most: int) -> Iterator[int]:
    """Whole numbers of one digit and zeros, from the least to the most."""
    every = (digit * 10**i for i in itertools.count() for digit in DIGITS)
    return itertools.takewhile(lambda n: n <= most, (n for n in every if n >= max(2, least)))


def _fastest(watch: Watch, run: int, k: int, x: np.ndarray) -> Fastest | None:
    """The fastest part of a run before step k, in the state x."""
    s, when = watch.loop.simulation, watch.loop.when
    t, p = when.start + k * when.step, s.parameters(watch.loop.p[[run]], x[None])
    q, v = show(s.system, x[None], p, t)
    # Between its instants a law in discrete time does not answer to the motion.
    law = open_loop(s.mechanism) if s.control.parts else s.control
    sample = watch.loop.series[min(k // when.stride, len(watch.loop.series) - 1)]
    w = (sample[run] if sample.ndim == 2 else sample) if law is s.control else np.zeros(s.mechanism.nu)
    return fastest(s.mechanism, law, q[0], v[0], w, x[s.system.nx :][: len(law.z)], t, p[0])


def _others(watch: Watch, part: Fastest | None) -> list[str]:
    """Other integrators that would follow or damp the fastest part."""
    s, when = watch.loop.simulation, watch.loop.when
    now, turn = s.scheme.integrator, abs(part.rate) * when.step if part else np.inf
    if part and part.damped and turn > FOLLOWED / 2 and now != "tr-bdf2":
        return ["scheme=pf.Scheme(integrator='tr-bdf2') goes over what is damped so fast"]
    if now != "rk4" and when.steps * turn**5 / 120 < watch.bound * MARGIN:
        return ["scheme=pf.Scheme(integrator='rk4') follows it"]
    return []


def too_fast(watch: Watch, x: np.ndarray, k: np.ndarray) -> Callable[[np.ndarray], list[str]]:
    """For stopped runs, given by number: the part that was too fast for the step, "" if there is none.

    x: (runs, nx) states before steps k (runs,).
    """

    def words(some: np.ndarray) -> list[str]:
        found = [""] * len(some)
        for i, run in enumerate(some[:NAMED].tolist()):
            part = _fastest(watch, run, int(k[run]), x[run])
            if part and abs(part.rate) * watch.loop.when.step > FOLLOWED:
                ways = [f"a step of {FOLLOWED / 2 / abs(part.rate):.1g} s follows it", *_others(watch, part)]
                found[i] = f"the fastest is {part}: {', '.join(ways)}"
        return found

    return words
