"""Assemblies of an ankle that two motors move by cranks and rods: many poses at once, and along motions of the foot.

The velocities and accelerations of all joints are computed along the motions, not for the poses. Checked before any time is
measured: all poses that are reached are on one branch, and the states along a motion are those of its samples alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

import pfaffian as pf
from benchmarks.check import CheckFailed
from benchmarks.result import Comparison, Goal
from benchmarks.timing import Options, interleaved

Leg = tuple[tuple[float, float, float], tuple[float, float, float], float]
LEGS: dict[str, Leg] = {
    "right": ((0.0175, -0.016, -0.005), (0.022, -0.015, 0.008), 0.216),
    "left": ((0.013, 0.0165, -0.004), (0.022, 0.015, 0.008), 0.151),
}
"""Name of a crank -> its tip, the end of its rod on the foot, and its height [m]."""

BELOW = np.array([0, 0, -0.0175])
"""Axis of roll relative to that of pitch [m]."""

SAME = 1e-8
"""Largest difference of a state between both ways [rad], and residual of a pose that is reached [m]."""


def ankle(legs: Mapping[str, Leg] = LEGS, below: np.ndarray = BELOW) -> pf.Mechanism:
    """The ankle: pitch and roll, and for each leg a crank, a rod and two hinges between rod and foot."""
    x, y = {"axis": (1, 0, 0)}, {"axis": (0, 1, 0)}
    bodies = [pf.body("cross", 0.01, inertia=1e-6), pf.body("foot", 0.3, com=(0.035, 0, -0.02), inertia=1e-3)]
    joints = [
        pf.joint("pitch", "revolute", "world", "cross", **y),
        pf.joint("roll", "revolute", "cross", "foot", placement=tuple(below), **x),
    ]
    balls = []
    for name, (tip, end, height) in legs.items():
        base = np.array([end[0], 0, height])
        rod = base + tip - end - below
        bodies += [
            pf.body(f"{name} end", 0.0026, inertia=1e-7),
            pf.body(f"{name} rod", 0.015, com=tuple(rod / 2), inertia=(7e-5, 7e-5, 2e-7)),
            pf.body(f"{name} crank", 0.009, inertia=1e-6),
        ]
        joints += [
            pf.joint(f"{name} swing", "revolute", "foot", f"{name} end", placement=end, **y),
            pf.joint(f"{name} tilt", "revolute", f"{name} end", f"{name} rod", **x),
            pf.joint(name, "revolute", "world", f"{name} crank", placement=tuple(base), armature=1e-3, **x),
        ]
        ends = {"placement_a": tuple(rod), "placement_b": tip}
        balls.append(pf.closure(f"{name} ball", "spherical", f"{name} rod", f"{name} crank", **ends))
    return pf.mechanism("ankle", bodies, joints, constraints=balls)


def run(o: Options) -> Iterator[Comparison]:
    m, count = ankle(), 300 if o.quick else 10_000
    yield poses(m, count, o)
    for runs in (1, 2 if o.quick else 64):
        yield motions(m, count, runs, o)


def poses(m: pf.Mechanism, count: int, o: Options) -> Comparison:
    """`assemble` of poses."""
    random = np.random.default_rng(0)
    q = {"pitch": random.uniform(-0.7, 0.35, count), "roll": random.uniform(-0.25, 0.25, count)}
    found = pf.assemble(m, q, backend=o.backend, search=False)
    reached = found.continued & (found.residual < SAME)
    if not reached.mean() > 0.5 or len(set(found.branch[reached])) > 1:
        raise CheckFailed(f"ankle: {reached.sum()} of {count} poses are reached, on branches {set(found.branch[reached])}")
    q = {name: x[reached] for name, x in q.items()}
    times = interleaved({"": lambda: pf.assemble(m, q, backend=o.backend)}, int(reached.sum()), o)
    return Comparison(f"ankle, {reached.sum()} poses", "a pose", times[""], None, Goal("median", "<=", 4650))


def motions(m: pf.Mechanism, count: int, runs: int, o: Options) -> Comparison:
    """`assemble` along motions of the foot."""
    t, phase = np.linspace(0, 10, count)[:, None], np.linspace(0, 6, runs)
    q = {"pitch": -0.2 + 0.3 * np.sin(2 * t + phase), "roll": 0.2 * np.sin(3 * t + 0.4 + 1.5 * phase)}
    q, t = q if runs > 1 else {name: x[:, 0] for name, x in q.items()}, t[:, 0]
    found = pf.assemble(m, q, t=t, along=True, backend=o.backend)
    some = slice(None, None, count // 50)
    alone = pf.assemble(m, {name: x[some].ravel() for name, x in q.items()}, backend=o.backend).q
    if not (found.reached.all() and np.abs(found.q[some].reshape(alone.shape) - alone).max() < SAME):
        raise CheckFailed("ankle: states along a motion differ from those of the poses alone")
    calls = {"": lambda: pf.assemble(m, q, t=t, along=True, backend=o.backend)}
    goal = Goal("median", "<=", 6000 if runs == 1 else 1500)
    return Comparison(f"ankle, {runs} motions of {count} poses", "a pose", interleaved(calls, count * runs, o)[""], None, goal)
