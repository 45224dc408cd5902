"""Time to a true error: runs to an accuracy beside steps of one length, SciPy, SUNDIALS and diffrax, on nine motions.

The true error of each side is measured against a run to 1e-11 at the end of the motion: of angles in rad, of lengths and speeds
relative to the largest. `accuracy=` gets the asked error itself, so its true error is smaller; with and without its estimate.
RK4 takes the longest of the steps T / 2^k whose true error is small enough, which a user does not know, and estimates nothing.
The others take the largest of the tolerances error / 10^k that is small enough (`benchmarks/integrators.py`); where they call
our compiled right-hand side, the time inside the callback is told apart. The true errors over time are drawn in `accuracy.png`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import pfaffian as pf
from benchmarks.check import CheckFailed
from benchmarks.integrators import TRIES, Rate, around_ours, by_diffrax
from benchmarks.problems import PROBLEMS, Problem, four_bar
from benchmarks.result import Comparison, Goal
from benchmarks.timing import Options, interleaved

ERRORS = (1e-6, 1e-9)
EXACT = 1e-11
LONGEST, SHORTEST = 4, 20
"""Powers k of the steps T / 2^k of RK4 that are tried."""

SLOWEST = 4.0
"""Time of a rival's run [s] beyond which it is not repeated with smaller tolerances."""


def run(o: Options) -> Iterator[Comparison]:
    for what, make in list(PROBLEMS.items())[: 2 if o.quick else None]:
        of = make()
        exact = to(of, EXACT, o)
        for error in ERRORS[: 1 if o.quick else None]:
            yield from compare(f"{what}, error {error:g}", of, error, exact, o)
    if not o.quick:
        yield batch(o)
        draw(o.out / "accuracy.png", o)


def off(x: np.ndarray, exact: np.ndarray) -> float:
    """The error of a last state: of angles, of others relative to their size; inf where it is nan."""
    found = float(np.max(np.abs(x - exact) / np.maximum(1.0, np.abs(exact))))
    return found if np.isfinite(found) else np.inf


def compare(what: str, of: Problem, error: float, exact: np.ndarray, o: Options) -> Iterator[Comparison]:
    mine = off(to(of, error, o), exact)
    if not mine <= error:
        raise CheckFailed(f"{what}: a run to an accuracy of {error:g} has an error of {mine:.2g}")
    begin, ends = start(of), np.array([0.0, of.duration])
    calls: dict[str, Callable[[], object]] = {"": lambda: to(of, error, o), "no estimate": lambda: to(of, error, o, False)}
    notes: dict[str, dict[str, Any]] = {"no estimate": {}}
    steps = next((2**k for k in range(LONGEST, SHORTEST) if off(fixed(of, 2**k, o), exact) <= error), None)
    if steps:
        calls["RK4, best step"], notes["RK4, best step"] = lambda: fixed(of, steps, o), {"steps": steps}
    for name, solve in around_ours().items():
        rate = Rate(of)
        tolerance = reaching(lambda tol, solve=solve, rate=rate: solve(rate, begin, ends, tol)[-1], error, exact)
        if tolerance:
            calls[name] = lambda solve=solve, rate=rate, tolerance=tolerance: solve(rate, begin, ends, tolerance)
            rate.inside, rate.calls = 0.0, 0
            calls[name]()
            notes[name] = {"inside the callback [s]": rate.inside, "calls": rate.calls, "tolerance": tolerance}
    for solver in ("Dopri8", "Kvaerno5"):
        if by := by_diffrax(of, solver):
            tolerance = reaching(lambda tol, by=by: by(begin, ends, tol)[-1], error, exact)
            if tolerance:
                calls[f"diffrax {solver}"] = lambda by=by, tolerance=tolerance: by(begin, ends, tolerance)
                notes[f"diffrax {solver}"] = {"tolerance": tolerance}
    timings = interleaved(calls, 1, o)
    for name in list(calls)[1:]:
        yield Comparison(
            f"{what}, beside {name}", "a run", timings[""], timings[name], None, {"true error": mine} | notes[name]
        )


def reaching(solve: Callable[[float], np.ndarray], error: float, exact: np.ndarray) -> float | None:
    """The largest of the tolerances error / 10^k with which a solution is within the error, None if there is none."""
    for k in range(1, TRIES + 1):
        begun = time.process_time()
        try:
            if off(solve(error / 10**k), exact) <= error:
                return error / 10**k
        except Exception:
            return None
        if time.process_time() - begun > SLOWEST:
            return None
    return None


def batch(o: Options) -> Comparison:
    """Four-bars from different speeds at once, beside diffrax's vmap, or one by one where that is not installed."""
    of, n = four_bar(), 64 if o.quick else 1024
    speeds = np.linspace(0.5, 1.5, n)
    with_speed = lambda v: pf.assemble(of.m, of.q, {"A": v})  # noqa: E731
    at = with_speed(speeds)
    begin, ends = np.concatenate([np.broadcast_to(at.q, (n, 3)), at.v], axis=1), np.array([0.0, of.duration])
    mine = lambda: pf.run(of.m, begin[:, :3], begin[:, 3:], times=ends, accuracy=1e-6, record=["q", "v"], threads=1)  # noqa: E731
    by = by_diffrax(of, "Dopri8")
    peer = (lambda: by(begin, ends, 1e-8)) if by else lambda: [to(of._replace(v=v), 1e-6, o) for v in begin[:32, 3:]]
    times = interleaved({"": mine, "peer": peer}, n, o)
    name = "diffrax Dopri8, vmapped" if by else "one by one"
    return Comparison(f"{n} four-bars, 10 s, beside {name}", "a run", times[""], times["peer"], Goal("ratio", ">=", 3.0), {})


def start(of: Problem) -> np.ndarray:
    """[q; v] at the start, on the constraints."""
    at = pf.assemble(of.m, of.q, of.v)
    return np.concatenate([np.ravel(at.q), np.ravel(at.v)])


def to(of: Problem, accuracy: float, o: Options, error: bool = True) -> np.ndarray:
    """[q; v] at the end of a run to an accuracy."""
    r = pf.run(of.m, of.q, of.v, u=of.u, times=[0.0, of.duration], accuracy=accuracy, record=["q", "v"], error=error,
               backend=o.backend)  # fmt: skip
    return np.concatenate([r.q.values[-1], r.v.values[-1]])


def fixed(of: Problem, steps: int, o: Options) -> np.ndarray:
    """[q; v] at the end of a run of RK4, without an estimate; nan if it stops."""
    r = pf.run(of.m, of.q, of.v, u=of.u, duration=of.duration, step=of.duration / steps, every=steps, record=["q", "v"],
               error_bound=np.inf, error=False, backend=o.backend)  # fmt: skip
    return np.concatenate([r.q.values[-1], r.v.values[-1]])


def draw(path: Path, o: Options) -> None:
    """The true error of a four-bar over time: of each integrator at 1e-6, and what runs to an accuracy tell of theirs."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    of, times = four_bar(20.0), np.linspace(0.0, 20.0, 401)
    how = {"times": times, "backend": o.backend}
    exact, begin = pf.run(of.m, of.q, accuracy=EXACT, **how).q.values, start(of)
    figure, ax = plt.subplots(figsize=(8, 4.5), layout="constrained")

    def add(q: np.ndarray, label: str, **style: Any) -> None:
        ax.semilogy(times[1:], np.maximum(np.abs(q - exact).max(axis=1), 1e-15)[1:], label=label, **style)

    for accuracy, colour in zip(ERRORS, ("tab:blue", "tab:green"), strict=True):
        r = pf.run(of.m, of.q, accuracy=accuracy, **how)
        add(r.q.values, f"accuracy={accuracy:g}", color=colour)
        ax.semilogy(times[1:], r.error.values[1:, 0], ":", color=colour, label="its `error`")
    r = pf.run(of.m, of.q, duration=20.0, step=1e-3, every=50, backend=o.backend)
    add(r.q.values, "RK4, step=1 ms", color="tab:orange")
    ax.semilogy(times[1:], r.error.values[1:, 0], ":", color="tab:orange", label="its `error`")
    for name, solve in around_ours().items():
        if name != "SciPy Radau":
            add(solve(Rate(of), begin, times, 1e-6)[:, :3], f"{name}, tolerances 1e-6", linewidth=0.8)
    ax.set(xlabel="time [s]", ylabel="error of the angles [rad]", title="A four-bar let go at 1.57 rad")
    ax.grid(True, alpha=0.4)
    ax.legend(fontsize=8, ncols=2)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
    plt.close(figure)
