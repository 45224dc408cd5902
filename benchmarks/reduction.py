"""A machine in the state that its symmetries and wheels leave, beside the same machine in [q; v].

A satellite with a UR5 by all six momenta, and a rover with an arm by its wheels [chhabra14 example 4.6.1]. RK4 with steps of
1 ms, 4096 runs from other starts, one thread; nothing drives them. Beside it, of one run at one step for both: how far they are
off after 10 s, by a run at an eighth of the step, and by how much what is kept has changed within 100 s.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

import pfaffian as pf
from benchmarks.check import CheckFailed
from benchmarks.closed_loop import STEPS, loop
from benchmarks.result import Comparison
from benchmarks.robots import undamped, urdf
from benchmarks.timing import Options, interleaved
from pfaffian.errors import ModelWarning
from studies.chhabra_reduction import ROVER_START, rover

FINE = 8
"""How many steps of the run that long ones are compared with are in one of theirs."""
SOON, LATE = 10.0, 100.0
"""When places are compared, and what shall be constant [s]. Later than the first the arms' motion is chaos."""
SPREAD = 0.02


def run(o: Options) -> Iterator[Comparison]:
    m = satellite()
    v = np.r_[0.1, -0.05, 0.02, 0.05, 0.1, -0.08, 0.3, -0.2, 0.4, 0.5, -0.3, 0.6]
    yield beside("satellite with a UR5", m, np.array([*m.neutral()[:7], 0.4, -1.2, 1.4, -0.5, 0.6, 0.3]), v, 1e-2, o)
    yield beside("rover with an arm", rover(), *ROVER_START, 1e-3, o)


def satellite() -> pf.Mechanism:
    """A UR5 whose base is a body of 200 kg that floats."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)
        m = undamped(pf.read_urdf(urdf("ur5"), base="free"))
    hull = pf.body("base_link", 200.0, com=(0, 0, -0.5), inertia=(30.0, 30.0, 40.0))
    return m.with_(bodies=[hull if b.name == hull.name else b for b in m.bodies], gravity=(0, 0, 0), actuators=[])


def beside(name: str, m: pf.Mechanism, q: np.ndarray, v: np.ndarray, step: float, o: Options) -> Comparison:
    """Reduced beside full, from starts about q and v; the base, whose places are all alike, stays.
    step: of the long runs [s]."""
    random, reduced = np.random.default_rng(7), pf.reduce(m)
    many = np.tile(q, (o.runs, 1))
    base = m.q_slices[m.joints[0].name].stop
    many[:, base:] += SPREAD * random.uniform(-1, 1, (o.runs, m.nq - base))
    v_many = np.tile(v, (o.runs, 1))
    (ours, operations), (theirs, of_full) = loop(reduced, None, many, v_many), loop(m, None, many, v_many)
    for side, call in (("reduced", ours), ("full", theirs)):
        if not np.isfinite(call()).all():
            raise CheckFailed(f"{name}, {side}: not all numbers are finite")
    times = interleaved({"reduced": ours, "full": theirs}, o.runs * STEPS, o)
    notes = {"operations of a right-hand side": operations, "of the full one's": of_full} | long_runs(m, reduced, q, v, step, o)
    what = f"{name}, reduced beside full, {o.runs} runs"
    return Comparison(what, "a step", replace(times["reduced"], name=""), times["full"], None, notes)


def long_runs(m: pf.Mechanism, reduced: pf.System, q: np.ndarray, v: np.ndarray, step: float, o: Options) -> dict[str, Any]:
    soon, late = (SOON / 50, LATE / 500) if o.quick else (SOON, LATE)
    steps = round(soon / step)
    notes: dict[str, Any] = {"step of long runs [s]": step}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pf.RunWarning)  # joints turn on beyond their limits
        exact = pf.run(m, q, v, duration=soon, step=step / FINE, every=steps * FINE)
        runs = {
            side: [pf.run(x, q, v, duration=soon, step=step, every=steps), pf.run(x, q, v, duration=late, step=step, every=20)]
            for side, x in (("reduced", reduced), ("full", m))
        }
    for side, (short, long) in runs.items():
        energy = long["energy"].values
        notes[f"{side}, q off after {soon:g} s"] = float(np.abs(short["q"] - exact["q"])[-1].max())
        notes[f"{side}, energy within {late:g} s, relative"] = float(np.abs(energy - energy[0]).max() / np.abs(energy[0]))
        if m.constraints:
            notes[f"{side}, slip [m/s]"] = float(long["velocity_violation"].max())
        else:
            mu = pf.momentum_map(m, long["q"].values, long["v"].values)
            notes[f"{side}, momentum, relative"] = float(np.abs(mu - mu[0]).max() / np.abs(mu[0]).max())
    return notes
