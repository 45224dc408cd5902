"""The nine motions on which integrators are compared: trees, loops, rolling, a fast spin, stiff bushings; and their ends."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np

import pfaffian as pf
from benchmarks.chain_length import ladder
from benchmarks.robots import EXAMPLES, robot
from benchmarks.timing import Options


class Problem(NamedTuple):
    """A motion under constant inputs u.   q, v: start, on the constraints.   duration: [s]."""

    m: pf.Mechanism
    q: Any
    v: Any
    duration: float
    u: Any = None


def double_pendulum() -> Problem:
    """Two uniform rods of 1 kg and 1 m, let go above the horizontal."""
    rod = lambda name: pf.body(name, 1.0, com=(0, 0, -0.5), inertia=1 / 12)  # noqa: E731
    hinge = {"kind": "revolute", "axis": (0, 1, 0)}
    joints = [
        pf.joint("h", parent="world", child="a", **hinge),
        pf.joint("k", parent="a", child="b", placement=(0, 0, -1), **hinge),
    ]
    return Problem(pf.mechanism("double pendulum", [rod("a"), rod("b")], joints), {"h": 2.5, "k": 0.5}, None, 4.0)


def heavy_top() -> Problem:
    """A top that spins at 150 rad/s about its inclined axis."""
    body = pf.body("top", 15.0, com=(0, 0, 1.0), inertia=(0.234375, 0.234375, 0.46875))
    m = pf.mechanism("heavy top", [body], [pf.joint("tip", "spherical", "world", "top")])
    return Problem(m, np.array([np.sin(0.2), 0.0, 0.0, np.cos(0.2)]), [0.0, 0.0, 150.0], 2.0)


def four_bar(duration: float = 10.0, crank: Any = 0.4) -> Problem:
    """Rods of 0.4, 0.9 and 0.8 m over 1 m, let go with the crank upright.   crank: its length, a number or a Parameter."""
    given = (crank,) if isinstance(crank, pf.Parameter) else ()
    rods, hinge = {"crank": crank, "coupler": 0.9, "rocker": 0.8}, {"kind": "revolute", "axis": (0, -1, 0)}
    bodies = [pf.body(name, mass=2 * l, com=(l / 2, 0, 0), inertia=2 * l**3 / 12) for name, l in rods.items()]
    joints = [
        pf.joint("A", parent="world", child="crank", **hinge),
        pf.joint("B", parent="crank", child="coupler", placement=(crank, 0, 0), **hinge),
        pf.joint("D", parent="world", child="rocker", placement=(1.0, 0, 0), **hinge),
    ]
    loop = pf.closure("C", body_a="coupler", body_b="rocker", placement_a=(0.9, 0, 0), placement_b=(0.8, 0, 0), **hinge)
    m = pf.mechanism("four-bar", bodies, joints, constraints=[loop], parameters=given)
    return Problem(m, np.ravel(pf.assemble(m, {"A": 1.57}).q), None, duration)


def example(name: str, duration: float) -> Problem:
    """A machine of the folder of examples, from the start in its file."""
    m, settings = pf.formats.read_yaml(EXAMPLES / f"{name}.yaml")
    at = pf.assemble(m, settings.start, settings.v, guess=settings.guess)
    return Problem(m, np.ravel(at.q), np.ravel(at.v), duration, settings.arrays(m).u)


def falling_ur5() -> Problem:
    """A UR5 without friction, let go from its home position, in which it is stretched along the horizontal."""
    return Problem(robot("ur5"), None, None, 2.0)


def falling_ladder() -> Problem:
    """A ladder of 20 four-bars, let go from the upright with a small push."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pf.RunWarning)
        m = ladder(20)
        at = pf.assemble(m, {m.q_names[0]: 0.3})
    return Problem(m, np.ravel(at.q), None, 1.0)


PROBLEMS = {
    "double pendulum, 4 s": double_pendulum,
    "heavy top at 150 rad/s, 2 s": heavy_top,
    "four-bar, 10 s": four_bar,
    "slider-crank, 5 s": lambda: example("slider_crank", 5.0),
    "Andrews' squeezer, 0.03 s": lambda: example("andrews", 0.03),
    "UR5 falling, 2 s": falling_ur5,
    "ladder of 20 four-bars, 1 s": falling_ladder,
    "quarter car, 0.3 s": lambda: example("quarter_car", 0.3),
    "rolling disk, 5 s": lambda: example("coin", 5.0),
}
"""Name of a motion -> what makes it. The first is that of `--quick`."""


def start(of: Problem) -> np.ndarray:
    """[q; v] at the start, on the constraints."""
    at = pf.assemble(of.m, of.q, of.v)
    return np.concatenate([np.ravel(at.q), np.ravel(at.v)])


def end_of_run(of: Problem, accuracy: float, o: Options, error: bool | None = None) -> np.ndarray:
    """[q; v] at the end of a run to an accuracy."""
    r = pf.run(of.m, of.q, of.v, u=of.u, times=[0.0, of.duration], accuracy=accuracy, record=["q", "v"], error=error,
               backend=o.backend)  # fmt: skip
    return np.concatenate([r.q.values[-1], r.v.values[-1]])


def end_of_steps(of: Problem, steps: int, o: Options, error: bool | None = False) -> np.ndarray:
    """[q; v] at the end of a run of RK4; nan if it stops."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pf.RunWarning)  # the longest steps diverge
        r = pf.run(of.m, of.q, of.v, u=of.u, duration=of.duration, step=of.duration / steps, every=steps, record=["q", "v"],
                   error_bound=np.inf, error=error, backend=o.backend)  # fmt: skip
    return np.concatenate([r.q.values[-1], r.v.values[-1]])


def off(x: np.ndarray, exact: np.ndarray, nq: int) -> float:
    """The error of a state [q; v] (..., nq + nv): of q, and of v relative to the largest speed; inf where it is nan."""
    fastest = max(1.0, np.abs(exact[..., nq:]).max(initial=0.0))
    found = float(max(np.abs(x - exact)[..., :nq].max(), np.abs(x - exact)[..., nq:].max(initial=0.0) / fastest))
    return found if np.isfinite(found) else np.inf
