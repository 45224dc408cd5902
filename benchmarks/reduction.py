"""Reduced machines compared with the full machines in [q; v], at the same accuracy.

A satellite with a UR5, reduced by all six momenta, in the space of all momenta and in that of one, and a rover with an arm,
reduced by its wheels [chhabra14 example 4.6.1]. RK4, 4096 runs from different starts with one momentum, one thread, without
inputs. First one step of each is timed. Then one second of motion of each is timed, with step sizes of equal joint error after
10 s: the errors are measured for some of the runs with three step sizes, relative to runs of the full machine with negligible
errors, and interpolated as a power of the step. The median over the runs is used; later the motion of such arms is chaotic. For
this step size the change of conserved quantities within 100 s is given.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

import pfaffian as pf
from benchmarks.check import CheckFailed
from benchmarks.closed_loop import STEP, STEPS
from benchmarks.ours import again
from benchmarks.result import Comparison, Goal, Timing
from benchmarks.robots import undamped, urdf
from benchmarks.timing import Options, interleaved
from studies.chhabra_reduction import ROVER_START, rover

Machine = pf.Mechanism | pf.reduction.AbstractSystem

SOON, LATE = 10.0, 100.0
"""Time at which joints are compared, and duration over which conserved quantities are checked [s]."""
SPREAD = 0.5
"""Largest deviation of the starts, in either direction, in joints and rates [rad, rad/s]."""
FEW = 32, 4
"""Number of runs by which accuracy is judged, and with `quick`, where it is not."""


@dataclass(frozen=True)
class Case:
    """A machine to be compared.

    q, v: centre of the starts.   steps: step sizes at which errors are measured, and last that of the reference [s].
    off: joint error after SOON for which the steps are chosen [rad].   at_mu: whether the space of one momentum is included."""

    name: str
    m: pf.Mechanism
    q: np.ndarray
    v: np.ndarray
    steps: tuple[float, ...]
    off: float
    at_mu: bool


def run(o: Options) -> Iterator[Comparison]:
    m, v = satellite(), np.r_[0.02, -0.01, 0.1, 0.01, 0.02, -0.08, 0.3, -0.2, 0.4, 0.5, -0.3, 0.6]
    q = np.array([*m.neutral()[:7], 0.4, -1.2, 1.4, -0.5, 0.6, 0.3])
    yield from beside(Case("satellite with a UR5", m, q, v, (0.08, 0.04, 0.02, 0.005), 1e-6, True), o)
    yield from beside(Case("rover with an arm", rover(), *ROVER_START, (2e-3, 1e-3, 5e-4, 1.25e-4), 1e-3, False), o)


def satellite() -> pf.Mechanism:
    """A UR5 on a floating base of 200 kg."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pf.ModelWarning)
        m = undamped(pf.formats.read_urdf(urdf("ur5"), base="free"))
    hull = pf.body("base_link", 200.0, com=(0, 0, -0.5), inertia=(30.0, 30.0, 40.0))
    return m.with_(bodies=[hull if b.name == hull.name else b for b in m.bodies], gravity=(0, 0, 0), actuators=[])


def beside(case: Case, o: Options) -> Iterator[Comparison]:
    """Comparisons of each reduced machine with the full one: for a step, then for a second of motion at the same accuracy."""
    m, few = case.m, FEW[o.quick]
    q, v = starts(case, max(o.runs, few))
    sides: dict[str, Machine] = {"reduced": pf.reduce(m)}
    if case.at_mu:
        sides["reduced, at one momentum"] = pf.reduce(m, momentum=pf.reduction.momentum_map(m, case.q, case.v))
    sides["full"] = m
    calls, operations = {}, {}
    for side, x in sides.items():
        calls[side], counted = again(x, q, v, STEPS, backend=o.backend, step=STEP)
        operations[side] = counted["step"]
        if not np.isfinite(calls[side]()).all():
            raise CheckFailed(f"{case.name}, {side}: not all numbers are finite")
    times = interleaved(calls, len(q) * STEPS, o)
    found = accuracy(case, sides, q[:few], v[:few])
    for side in list(sides)[:-1]:
        what = f"{case.name}, {side}, beside full, {len(q)} runs"
        notes = {"operations": operations[side], "of the full one": operations["full"]}
        yield Comparison(what, "a step", replace(times[side], name=""), times["full"], None, notes)
        ours, full = (for_a_second(times[x], found[x]["step [s]"]) for x in (side, "full"))
        notes = {f"{x}, {name}": value for x in (side, "full") for name, value in found[x].items()}
        goal = Goal("ratio", ">=", 1.0) if side == "reduced" else None
        what = f"{what}, joints {case.off:g} rad off"
        yield Comparison(what, "a second", replace(ours, name=""), full, goal, notes)


def starts(case: Case, runs: int) -> tuple[np.ndarray, np.ndarray]:
    """States near that of the case, which is the first. The base has the same pose in all, and moves as the wheels allow, or
    so that all states have one momentum."""
    m, first, random = case.m, case.m.joints[0], np.random.default_rng(7)
    q, v = np.tile(case.q, (runs, 1)), np.tile(case.v, (runs, 1))
    for x, base in ((q, m.q_slices[first.name]), (v, m.v_slices[first.name])):
        x[1:, base.stop :] += random.uniform(-SPREAD, SPREAD, x[1:, base.stop :].shape)
    if m.constraints:
        return pf.assemble(m, q, v)[:2]
    missing = pf.reduction.momentum_map(m, case.q, case.v) - pf.reduction.momentum_map(m, q, v)
    v[:, m.v_slices[first.name]] += np.linalg.solve(pf.reduction.locked_inertia(m, q), missing[..., None])[..., 0]
    return q, v


def for_a_second(t: Timing, step: float) -> Timing:
    """Timing for a second of motion from the timing of a step [s]."""
    return replace(t, samples=tuple(x / step for x in t.samples))


def accuracy(case: Case, sides: Mapping[str, Machine], q: np.ndarray, v: np.ndarray) -> dict[str, dict[str, float]]:
    """By side: the step with the joint error `case.off`, the joint error with that step, and the drift of conserved
    quantities."""
    joints = slice(case.m.q_slices[case.m.joints[0].name].stop, case.m.nq)

    def end(x: Machine, step: float) -> np.ndarray:
        n = round(SOON / step)
        r = pf.run(x, q, v, duration=SOON, step=SOON / n, every=n)
        if (r["status"] != 0).any():
            raise CheckFailed(f"{case.name}: a run with steps of {step:g} s stopped")
        return r["q"].values[:, -1, joints]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pf.RunWarning)  # joints may exceed their limits
        exact = end(case.m, case.steps[-1])

        def off(x: Machine, step: float) -> float:
            return float(np.median(np.abs(end(x, step) - exact).max(axis=1)))

        found = {}
        for side, x in sides.items():
            errors = [off(x, step) for step in case.steps[:-1]]
            step = at(case.off, errors, case.steps[:-1])
            found[side] = {"step [s]": step, "off [rad]": off(x, step)} | drifts(case.m, x, q, v, step)
    return found


def at(error: float, errors: list[float], steps: tuple[float, ...]) -> float:
    """Step with this error, on the line through the two nearest points of (log error, log step)."""
    i = min(max(sum(e > error for e in errors) - 1, 0), len(errors) - 2)
    slope = np.log(steps[i] / steps[i + 1]) / np.log(errors[i] / errors[i + 1])
    return float(steps[i] * (error / errors[i]) ** slope)


def drifts(m: pf.Mechanism, x: Machine, q: np.ndarray, v: np.ndarray, step: float) -> dict[str, float]:
    """Largest drift of energy and momentum, or slip of the wheels, within LATE over all runs."""
    steps = round(LATE / step)
    r = pf.run(x, q, v, duration=LATE, step=LATE / steps, every=max(steps // 100, 1))
    found = {f"energy within {LATE:g} s": drift(r["energy"].values[..., None])}
    if m.constraints:
        return found | {"slip [m/s]": float(r["velocity_violation"].max())}
    mu = [pf.reduction.momentum_map(m, *of_one) for of_one in zip(r["q"].values, r["v"].values, strict=True)]
    return found | {"momentum": drift(np.array(mu))}


def drift(x: np.ndarray) -> float:
    """Largest change of x (runs, times, n) since the start, relative to its initial size."""
    return float((np.abs(x - x[:, :1]).max(axis=(1, 2)) / np.abs(x[:, 0]).max(axis=-1)).max())
