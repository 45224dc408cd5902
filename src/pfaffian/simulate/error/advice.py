"""Advice about steps that are too inaccurate or stop a run: which part is too fast, and which step would be short enough."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import numpy as np

from pfaffian.control.open_loop import open_loop
from pfaffian.errors import RunWarning, notice
from pfaffian.parts.contact import compliant_parts
from pfaffian.simulate.error.accuracy import BOUND, StepErrorMonitor
from pfaffian.simulate.error.balance import Cost
from pfaffian.simulate.error.fastest import Fastest, contact_parts, fastest, largest_force, may_stiffen, springs_and_dampers
from pfaffian.simulate.error.sizes import relative
from pfaffian.simulate.step.draft import Draft
from pfaffian.simulate.step.run_arguments import input_names
from pfaffian.simulate.step.simulation import Simulation
from pfaffian.states.abstract_system import show

FINEST, FINEST_INTERPRETED = 50_000, 100
"""Largest divisor of a step that is tried, in compiled and interpreted code: the search must not take longer than the run."""

DIGITS = (1, 2, 4, 5, 8)
"""First digits of the divisors of a step that are tried."""

MARGIN = 0.1
"""Fraction of the bound that the error of an advised step may reach, because that error is an estimate and may grow."""

MAX_RATE = 1.0
"""Rate of a part times step up to which a step follows the part; beyond it, the part counts as the cause of a stopped run."""

DURATION = 5.0
"""Duration of a damped motion, in multiples of the inverse of its rate; the error of a step adds up over it."""

EXAMINED_RUNS = 4
"""Number of runs of a batch whose springs and dampers are examined."""

EXAMINED_INSTANTS = 8
"""Number of recorded instants after the start at which springs and dampers are examined."""

MOST_NAMED = 6
"""Largest number of springs and dampers that a warning names."""

MOST_EXPLAINED = 64
"""Largest number of stopped runs whose fastest part is determined."""


def warn_of_first_steps(watch: StepErrorMonitor) -> bool:
    """Warn RunWarning before a run if the error of its first steps exceeds the bound; return whether it did."""
    if not watch.suspect.size:
        return False
    total, reach = watch.at_start()
    error = relative(total, reach)
    if not (error > max(watch.bound, BOUND)).any():  # the first steps are too few to judge by a tighter bound
        return False
    run, first = int(np.nanargmax(error)), watch.comparisons[0]
    k, x = _exceeding_states(watch, run)[0]
    part = _fastest(watch, run, k, x)
    # Speeds that now increase reach about this value by the time at which the fastest part swings back.
    rate = max(abs(part.rate) if part else 0.0, 1 / (watch.loop.when.step * watch.loop.when.steps))
    top = watch.halves.sizes.levelled(watch.largest[[run]] + first.change[[run]] / (rate * watch.loop.when.step))
    error[run] = relative(total[[run]], top)[0]
    _warn_of_error(watch, error, run, (k, x), top, part, ", judging by its start")
    return True


def warn_of_stiffness(watch: StepErrorMonitor, x: np.ndarray, named: bool) -> None:
    """Warn RunWarning before a run about springs and dampers whose time constants are shorter than its steps, which the scheme
    cannot follow, and about contacts and stops for which an implicit one may not converge.

    x: (runs, nx) states at the start, some of which are examined.   named: whether a warning already named the fastest part.
    """
    s, when = watch.loop.simulation, watch.loop.when
    if s.scheme.stiff and not compliant_parts(s.mechanism):
        return
    fast = _too_fast(watch, _start_instants(watch, x))
    if s.scheme.stiff and fast:
        notice(
            f"{_listed(fast)} of {s.mechanism.name!r}: faster than the step of {when.step:g} s, so in contact "
            f"{s.scheme.integrator} may not converge, or may gain energy; take softer surfaces, a larger creep, or a step of "
            f"{MAX_RATE / 2 / abs(fast[0].rate):.1g} s",
            RunWarning,
        )
    elif len(fast) > named:
        _warn_too_fast(watch, fast, "")


def warn_of_later_stiffness(watch: StepErrorMonitor, result: Draft, x: np.ndarray) -> bool:
    """Warn RunWarning after a run about springs and dampers that became too fast for its steps during the run; return whether
    any are, also those that were so at the start.

    Some of the runs are examined, at EXAMINED_INSTANTS of the recorded instants and at the last states x (runs, nx). A part
    that is stiff only between two of these instants is missed.
    """
    s = watch.loop.simulation
    if s.scheme.stiff:
        return False
    if not may_stiffen(s.mechanism, s.changing.visible):
        return bool(_too_fast(watch, _start_instants(watch, watch.begin)))
    fast = _too_fast(watch, _later_instants(watch, result, x))
    if not fast:
        return False
    known = {part.name for part in _too_fast(watch, _start_instants(watch, watch.begin))}
    if later := [part for part in fast if part.name not in known]:
        _warn_too_fast(watch, later, "that became ")
    return True


def _warn_too_fast(watch: StepErrorMonitor, fast: list[Fastest], became: str) -> None:
    """Warn RunWarning that these parts are too fast for the step.   became: words that precede "shorter" in the message."""
    s, h = watch.loop.simulation, watch.loop.when.step
    notice(
        f"{_listed(fast)} of {s.mechanism.name!r}: time constants {became}shorter than the step of {h:g} s, which "
        f"{s.scheme.integrator} cannot follow; scheme=pf.Scheme(integrator='tr-bdf2') is stable without following them, a step "
        f"of {MAX_RATE / 2 / abs(fast[0].rate):.1g} s follows them",
        RunWarning,
    )


class _Instant(NamedTuple):
    """The state q (nq,), v (nv,) of a run at time t [s] under the parameters p (np,)."""

    q: np.ndarray
    v: np.ndarray
    t: float
    p: np.ndarray


def _too_fast(watch: StepErrorMonitor, instants: Iterable[_Instant]) -> list[Fastest]:
    """Springs and dampers that are too fast for the steps at one or more of these instants, the fastest first."""
    s, found = watch.loop.simulation, dict[str, Fastest]()
    for q, v, t, p in instants:
        parts = springs_and_dampers(s.mechanism, q, v, t, p)
        for part in contact_parts(s.mechanism, parts, p) if s.scheme.stiff else parts:
            if abs(part.rate) * watch.loop.when.step > MAX_RATE and abs(part.rate) >= abs(found.get(part.name, part).rate):
                found[part.name] = part
    return sorted(found.values(), key=lambda part: -part.size)


def _examined_runs(count: int) -> list[int]:
    """The runs to examine of `count` runs, spread evenly."""
    return list(range(count)) if count <= EXAMINED_RUNS else np.linspace(0, count - 1, EXAMINED_RUNS).astype(int).tolist()


def _instant(watch: StepErrorMonitor, x: np.ndarray, run: int, t: float) -> _Instant:
    """The instant of one run at the time t [s].   x: (runs, nx) states of all runs."""
    s = watch.loop.simulation
    p = s.parameters(watch.loop.p[[run]], x[[run]])
    q, v = show(s.system, x[[run]], p, t)
    return _Instant(q[0], v[0], t, p[0])


def _start_instants(watch: StepErrorMonitor, x: np.ndarray) -> Iterator[_Instant]:
    """The instants at the start of the examined runs.   x: (runs, nx) first states of all runs."""
    for run in _examined_runs(len(x)):
        yield _instant(watch, x, run, watch.loop.when.start)


def _later_instants(watch: StepErrorMonitor, result: Draft, x: np.ndarray) -> Iterator[_Instant]:
    """The examined instants, after the start, of some of the runs that finished.   x: (runs, nx) last states of all runs."""
    s, when, time = watch.loop.simulation, watch.loop.when, result["time"]
    switched, finished = s.changing.visible, np.flatnonzero(result["status"] == 0)
    recorded = all(name in result for name in ("q", "v", *switched))
    for run in finished[_examined_runs(len(finished))].tolist() if finished.size else ():
        for i in np.unique(np.linspace(0, len(time) - 1, EXAMINED_INSTANTS + 1).astype(int))[1:] if recorded else ():
            p = watch.loop.p[run].copy()
            p[[s.mechanism.p_names.index(name) for name in switched]] = [result[name][run, i] for name in switched]
            yield _Instant(result["q"][run, i], result["v"][run, i], float(time[i]), p)
        yield _instant(watch, x, run, when.start + when.step * when.steps)


def _listed(fast: list[Fastest]) -> str:
    """The parts in words, at most MOST_NAMED of them."""
    more = f" and {len(fast) - MOST_NAMED} more" if len(fast) > MOST_NAMED else ""
    return f"{', '.join(map(str, fast[:MOST_NAMED]))}{more}"


def warn_of_step_error(watch: StepErrorMonitor, error: np.ndarray, cost: Cost) -> bool:
    """Warn RunWarning after a run whose accumulated error (runs,) exceeds the bound; return whether it did.

    cost: errors of energy and momenta, which the warning mentions.
    """
    if not (error > watch.bound).any():
        return False
    run = int(np.nanargmax(error))
    top = watch.largest[[run]]
    k, x = max(_exceeding_states(watch, run), key=lambda at: _step_error(watch, run, at[0], at[1], top))
    energy = 0.0 if cost.energy is None else np.nan_to_num(cost.energy[run])
    amount = f"up to {energy:.2g}" if cost.estimated else f"{energy:+.2g}"
    more = f" and {amount} J of energy" if energy else ""
    more += ", which rises although nothing drives it" if cost.certain[run] and cost.rise[run] else ""
    _warn_of_error(watch, error, run, (k, x), top, _fastest(watch, run, k, x), more)
    return True


def _exceeding_states(watch: StepErrorMonitor, run: int) -> list[tuple[int, np.ndarray]]:
    """Steps and states of a run at which its step error exceeds the bound; the first step if none was stored."""
    return watch.exceeding_states.get(run, [(watch.loop.when.first, watch.begin[run])])


def _warn_of_error(
    watch: StepErrorMonitor,
    error: np.ndarray,
    run: int,
    instant: tuple[int, np.ndarray],
    top: np.ndarray,
    part: Fastest | None,
    more: str,
) -> None:
    """Warn RunWarning of accumulated errors (runs,), with a step and an integrator that would satisfy the bound.

    run: the run with the largest error.   instant: a step and state of it.   top: (1, units) largest speeds.   part: its
    fastest part.   more: words that follow the error.
    """
    count, runs, h = int((error > watch.bound).sum()), len(error), watch.loop.when.step
    who = "the run" if runs == 1 else f"{count} of {runs} runs (run {run} the most)"
    step = _sufficient_step(watch, run, *instant, top, part, float(error[run]))
    words = f"{error[run]:.2g}" if error[run] < 1 else "more than 1"
    ways = ([f"step={step:.6g} would do"] if step else []) + _other_integrators(watch, part)
    ways += [f"accuracy={watch.bound:g} takes the steps that it needs"] if watch.bound < BOUND else []
    notice(
        f"steps of {h:g} s give {who} of {watch.mechanism.name!r} an error of {words}{more} (angles in rad, speeds "
        f"relative to the largest; more than {watch.bound:g})"
        + (f"; the fastest part is {part}" if part else "")
        + (f"; {', '.join(ways)}" if ways else ""),
        RunWarning,
    )


def _step_error(watch: StepErrorMonitor, run: int, k: int, x: np.ndarray, top: np.ndarray, n: int = 1) -> float:
    """The error of step k from the state x (nx,), relative to the speeds top (1, units), if taken as n shorter steps."""
    parts = (watch.halves.advance(k, x[None], np.array([run]), i * n).x for i in (1, 2))
    return float(np.nan_to_num(relative(watch.halves.difference(*parts), top)[0], nan=np.inf))


def _sufficient_step(
    watch: StepErrorMonitor, run: int, k: int, x: np.ndarray, top: np.ndarray, part: Fastest | None, error: float
) -> float | None:
    """A step [s] whose accumulated error stays below the bound, verified at the state x of step k; None if none is found."""
    whole, steps = _step_error(watch, run, k, x, top), float(watch.loop.when.steps)
    if part and part.damped:
        steps = min(steps, DURATION / (abs(part.rate) * watch.loop.when.step))
    if np.isfinite(whole):
        error = min(error, max(steps, 1.0) * whole)  # leave out what grows only because the step is too long
    least = max(error / watch.bound, 1.0) ** (1 / watch.halves.order)
    for n in _divisors(least, FINEST if watch.loop.rollout.in_c else FINEST_INTERPRETED):
        error_of_step = _step_error(watch, run, k, x, top, n)
        if error_of_step == 0 or error * error_of_step <= watch.bound * MARGIN * whole:
            return watch.loop.when.step / n
    return None


def _divisors(least: float, most: int) -> Iterator[int]:
    """Divisors to try, from the least to the most: whole numbers with one of the DIGITS, followed by zeros."""
    numbers = (digit * 10**i for i in itertools.count() for digit in DIGITS)
    return itertools.takewhile(lambda n: n <= most, (n for n in numbers if n >= max(2, least)))


def _fastest(watch: StepErrorMonitor, run: int, k: int, x: np.ndarray) -> Fastest | None:
    """The fastest part of a run at the state x (nx,) before step k."""
    s, when = watch.loop.simulation, watch.loop.when
    t, p = when.start + k * when.step, s.parameters(watch.loop.p[[run]], x[None])
    q, v = show(s.system, x[None], p, t)
    # A law in discrete time does not respond to the motion between its instants.
    law = open_loop(s.mechanism) if s.control.parts else s.control
    sample = watch.loop.series[min(k // when.stride, len(watch.loop.series) - 1)]
    w = (sample[run] if sample.ndim == 2 else sample) if law is s.control else np.zeros(s.mechanism.nu)
    return fastest(s.mechanism, law, q[0], v[0], w, x[s.system.nx :][: len(law.z)], t, p[0])


def _other_integrators(watch: StepErrorMonitor, part: Fastest | None) -> list[str]:
    """Advice in words: other integrators that would follow the fastest part, or stay stable without following it."""
    s, when = watch.loop.simulation, watch.loop.when
    now, turn = s.scheme.integrator, abs(part.rate) * when.step if part else np.inf
    if part and part.damped and turn > MAX_RATE / 2 and not s.scheme.stiff:
        return ["scheme=pf.Scheme(integrator='tr-bdf2') is stable without following what decays so fast"]
    if now != "rk4" and when.steps * turn**5 / 120 < watch.bound * MARGIN:
        return ["scheme=pf.Scheme(integrator='rk4') follows it"]
    return []


def too_fast(watch: StepErrorMonitor, x: np.ndarray, k: np.ndarray) -> Callable[[np.ndarray], list[str]]:
    """A function that explains stopped runs, given by number: the part that was too fast for the step, "" if there is none.

    x: (runs, nx) states before steps k (runs,).
    """

    def words(runs: np.ndarray) -> list[str]:
        found = [""] * len(runs)
        for i, run in enumerate(runs[:MOST_EXPLAINED].tolist()):
            part = _fastest(watch, run, int(k[run]), x[run])
            if part and abs(part.rate) * watch.loop.when.step > MAX_RATE:
                ways = [f"a step of {MAX_RATE / 2 / abs(part.rate):.1g} s follows it", *_other_integrators(watch, part)]
                found[i] = f"the fastest part is {part}: {', '.join(ways)}"
        return found

    return words


def unresolved(s: Simulation, x: np.ndarray, p: np.ndarray, t: np.ndarray) -> Callable[[np.ndarray], list[str]]:
    """A function that explains runs to an accuracy, given by number, whose steps became too short or whose motion has grown:
    the fastest part there, or the largest force where no motion is fast.

    x: (runs, nx) last states.   p: (runs, np) parameters.   t: (runs,) times [s].
    """
    law = open_loop(s.mechanism) if s.control.parts else s.control
    w = np.zeros(len(input_names(s.mechanism, law)))

    def words(runs: np.ndarray) -> list[str]:
        """What is fastest, or largest, in each of these runs."""
        found = [""] * len(runs)
        for i, run in enumerate(runs[:MOST_EXPLAINED].tolist()):
            now = s.parameters(p[[run]], x[[run]])
            q, v = show(s.system, x[[run]], now, float(t[run]))
            z = x[run, s.system.nx :][: len(law.z)]
            at = s.mechanism, law, q[0], v[0], w, z, float(t[run]), now[0]
            if part := fastest(*at):
                found[i] = f"the fastest part there is {part}: soften it, or smooth a force that jumps"
            elif force := largest_force(*at):
                found[i] = f"the largest force there is {force}: bound it"
        return found

    return words
