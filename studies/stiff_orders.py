"""The order of the stiff pair, and of each rule through events.

The study is ours, from no paper. On five machines `radau5` takes steps of one length, which are halved three times, after the
fastest motions have died away: a cradle on rubber bushings, a block that slides on stiff ground with friction, a slider-crank
with a spring of 1e8 N/m in place of its rod, a bob on a spring of 1e8 N/m, and Andrews' mechanism. The errors of q and v at the
end are those beside a run to 1e-11. Steps are longer than the fastest motions, so a spring that turns acts like a constraint,
for which this rule has order 5 in q and 3 in v along the spring; what is seen lies between, and nothing rings.

The sixth machine is a double pendulum that strikes a wall twice, while a damper begins and ceases to act. Steps are split at
these events, so each rule keeps the order that it has without them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import casadi as ca
import numpy as np
import xarray as xr

import pfaffian as pf
from pfaffian.study import Claim, blank_figure

EXACT = 1e-11
HALVINGS = 4
ROUNDING = 1e-12
"""Errors below this are left out."""

LESS = 0.5
"""How far an observed order may lie below that of the rule: higher powers of the step still affect it."""

STIFF = pf.Scheme(integrator="radau5")
THROUGH_EVENTS = {"rk4": 4, "dopri5": 5, "dop853": 8, "radau5": 5, "tr-bdf2": 2}
"""Orders of the rules that split their steps at events."""

SWING, STEPS, FEWER = 2.0, 200, {"dop853": 40}
"""Duration of the double pendulum's motion [s], number of the longest steps, and that of a rule whose errors are smaller."""


class Motion(NamedTuple):
    """A motion.   settling: time in which its fastest motions die away [s].   steps: number of the longest ones over the
    duration.   order: that is expected of `radau5`.   more: inputs and switches."""

    m: pf.Mechanism
    q: Any
    v: Any
    settling: float
    duration: float
    steps: int
    order: float
    more: dict[str, Any] = {}  # noqa: RUF012


def bushings() -> Motion:
    """A rod that swings in a cradle, which two bushings of 4e6 N/m hold, as one between them."""
    cradle, rod = pf.body("cradle", 3.0, inertia=(0.02, 0.03, 0.04)), pf.body("rod", 1.5, com=(0, 0, -0.3), inertia=0.05)
    free = pf.joint("base", "free", "world", "cradle")
    swing = pf.joint("swing", "revolute", "cradle", "rod", axis=(0.6, 0.8, 0))
    stiffness, damping = np.diag([8e6] * 3 + [120.0, 3.2e5, 3.2e5]), np.diag([4e3] * 3 + [1.0, 160.0, 160.0])
    rubber = pf.forces.bushing("rubber", "world", "cradle", stiffness=stiffness, damping=damping)
    m = pf.mechanism("cradle", [cradle, rod], [free, swing], forces=[rubber])
    return Motion(m, {"swing": 1.2}, None, 0.1, 0.4, 8, 5)


def block() -> Motion:
    """A block that slides on ground of 1e7 N/m until friction stops it."""
    ground = pf.forces.contact("ground", "block", stiffness=1e7, exponent=1.0, damping=20.0, friction=0.3)
    base = pf.joint("x", "planar", "world", "block", axis=(0, -1, 0))
    m = pf.mechanism("block", [pf.body("block", 1.0, inertia=0.1)], [base], forces=[ground])
    return Motion(m, np.zeros(3), [1.0, 0, 0], 0.1, 0.3, 24, 5)


def slider_crank() -> Motion:
    """A crank of 0.2 m and a piston, joined by a spring of 0.6 m."""
    bodies = [pf.body("crank", 2.0, com=(0.1, 0, 0), inertia=0.05), pf.body("piston", 0.5, inertia=0.01)]
    joints = [
        pf.joint("crank", "revolute", "world", "crank", axis=(0, -1, 0)),
        pf.joint("slide", "prismatic", "world", "piston", axis=(1, 0, 0)),
    ]
    rod = pf.spring("rod", "crank", "piston", point_a=(0.2, 0, 0), stiffness=1e8, damping=2e3, rest=0.6)
    across, along = 0.2 * np.sin(1.0), np.sqrt(0.36 - (0.2 * np.sin(1.0)) ** 2)
    v = [5.0, -5.0 * across * (1 + 0.2 * np.cos(1.0) / along)]
    m = pf.mechanism("slider-crank", bodies, joints, forces=[rod])
    return Motion(m, [1.0, 0.2 * np.cos(1.0) + along], v, 0.1, 0.4, 100, 4)


def pendulum() -> Motion:
    """A bob on a spring of 1 m."""
    rail = pf.joint("x", "planar", "world", "bob", axis=(0, 1, 0))
    rod = pf.spring("rod", "world", "bob", stiffness=1e8, damping=2e4, rest=1.0)
    m = pf.mechanism("stiff pendulum", [pf.body("bob", 1.0, inertia=0.01)], [rail], forces=[rod])
    return Motion(m, [0.6, 0.8, 0.0], None, 0.05, 0.4, 60, 4)


def andrews() -> Motion:
    """Andrews' squeezing mechanism, which is fast and not stiff."""
    m, settings = pf.read("zoo:andrews")
    q = np.ravel(pf.assemble(m, settings.q, guess=settings.guess).q)
    return Motion(m, q, None, 0.0, 0.01, 20, 5, {"u": settings.u})


MOTIONS = {
    "rod in a cradle on bushings": bushings,
    "block on ground with friction": block,
    "slider-crank with a spring": slider_crank,
    "bob on a spring": pendulum,
    "Andrews' mechanism": andrews,
}


def double_pendulum() -> tuple[pf.Mechanism, dict[str, Any]]:
    """Two rods, a wall that the upper one strikes, and a damper in the lower hinge below -0.3 rad."""
    hinge, low = {"kind": "revolute", "axis": (0, 1, 0)}, pf.Parameter("low", 0.0)
    bodies = [
        pf.body("upper", 1.0, com=(0, 0, -0.5), inertia=0.1),
        pf.body("lower", 0.7, com=(0, 0, -0.4), inertia=0.06),
    ]
    joints = [
        pf.joint("a", parent="world", child="upper", **hinge),
        pf.joint("b", parent="upper", child="lower", placement=(0, 0, -1), **hinge),
    ]
    wall = pf.forces.rebound("wall", lambda k: k.q[0] + 0.2, 0.7)
    damper = pf.forces.dissipation("damper", lambda k: low.symbol * 0.8 * k.v[1] ** 2)
    m = pf.mechanism("double pendulum", bodies, joints, forces=[wall, damper], parameters=[low])
    return m, {"low": lambda k: ca.if_else(k.q[1] < -0.3, 1, 0)}


def run() -> xr.Dataset:
    found: dict[str, Any] = {}
    for title, make in MOTIONS.items():
        add(found, title, *stiff_errors(make()))
    m, switches = double_pendulum()
    how: dict[str, Any] = {"backend": "interpreter", "switches": switches, "record": ["q", "v"]}
    exact = pf.run(m, [1.0, 0.4], times=[0, SWING], accuracy=EXACT, **how)
    for name in THROUGH_EVENTS:
        start = Motion(m, [1.0, 0.4], None, 0.0, SWING, FEWER.get(name, STEPS), 0, how)
        add(found, name, *errors(start, exact, pf.Scheme(integrator=name)))
    found["events"] = (), len(pf.events(exact)["name"])
    return xr.Dataset(found)


def add(found: dict[str, Any], title: str, step: np.ndarray, error: np.ndarray) -> None:
    """Store errors (halvings,) with their steps [s]."""
    found[title], found[f"{title} step"] = ("halving", error), ("halving", step)


def stiff_errors(of: Motion) -> tuple[np.ndarray, np.ndarray]:
    """Steps [s] of `radau5` and errors, (halvings,), of a motion whose fastest motions have died away."""
    how = of.more | {"record": ["q", "v"], "backend": "interpreter"}
    if of.settling:
        before = pf.run(of.m, of.q, of.v, times=[0, of.settling], accuracy=1e-9, **how)
        of = of._replace(q=before.q.values[-1], v=before.v.values[-1])
    exact = pf.run(of.m, of.q, of.v, times=[0, of.duration], accuracy=EXACT, **how)
    return errors(of._replace(more=how), exact, STIFF)


def errors(of: Motion, exact: xr.Dataset, scheme: pf.Scheme) -> tuple[np.ndarray, np.ndarray]:
    """Steps [s] and errors at the end, (halvings,): of q, and of v relative to the largest speed of the motion."""
    counts = of.steps * 2 ** np.arange(HALVINGS)
    largest, found = np.abs(exact.v.values).max(), []
    for count in counts:
        how = of.more | {"step": of.duration / count, "every": int(count), "error": False, "error_bound": np.inf}
        r = pf.run(of.m, of.q, of.v, duration=of.duration, scheme=scheme, **how)
        q, v = (np.abs(r[x].values[-1] - exact[x].values[-1]).max() for x in "qv")
        found.append(max(q, v / largest))
    return of.duration / counts, np.array(found)


def slope(result: xr.Dataset, title: str) -> float:
    """The observed order, from the errors that rounding does not decide."""
    step, error = result[f"{title} step"].values, result[title].values
    shows = error > ROUNDING
    return float(np.polyfit(np.log(step[shows]), np.log(error[shows]), 1)[0])


def figures(result: xr.Dataset) -> dict[str, Any]:
    figure = blank_figure(9, 5.4)
    stiff, events = figure.subplots(1, 2)
    for axes, titles, of in (
        (stiff, MOTIONS, "radau5 on stiff machines"),
        (events, THROUGH_EVENTS, "a double pendulum through four events"),
    ):
        for title, mark in zip(titles, "os^dv", strict=True):
            label = f"{title}: {slope(result, title):.1f}"
            axes.loglog(1e3 * result[f"{title} step"], np.maximum(result[title], 1e-15), marker=mark, markersize=3, label=label)
        axes.set(xlabel="step [ms]", ylabel="error at the end", title=of)
        axes.set_xscale("log", base=2)
        axes.legend(fontsize=8, title="orders", title_fontsize=8, loc="upper center", bbox_to_anchor=(0.5, -0.15))
    return {"stiff-orders": figure}


def claims(result: xr.Dataset) -> Iterator[Claim]:
    for title, make in MOTIONS.items():
        yield Claim(f"{title}: order of radau5", slope(result, title), make().order, LESS, "definition", "at least")
    yield Claim("events of the double pendulum", float(result.events), 4, 0, "wall and damper")
    for name, order in THROUGH_EVENTS.items():
        yield Claim(f"order of {name} through events", slope(result, name), order, LESS, "definition", "at least")
