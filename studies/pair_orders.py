"""The orders of the pairs for runs to an accuracy: redundant rows, rolling, quaternions, and a passage through a singularity.

The study is ours, from no paper. Each pair takes steps of one length, which are halved three times; the error of q and v after
0.4 s is that beside a run to 1e-12. The machines are a four-bar with redundant rows (revolute closure, five rows of rank two),
a coin that leans and rolls, a free body with an arm on a ball joint (two quaternions), and a parallelogram that passes its flat
pose, where its rows lose rank.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

import pfaffian as pf
from pfaffian.study import Claim, blank_figure

ORDERS = {"dopri5": 5, "dop853": 8, "radau5": 5}
FINER = {"dopri5": 4, "dop853": 1, "radau5": 2}
"""How many times as many steps a pair begins with as a motion says."""

MARKS = {"dopri5": "o", "dop853": "s", "radau5": "^"}
DURATION = 0.4  # s
HALVINGS = 4
EXACT = 1e-12
ROUNDING, FAR = 1e-12, 1e-3
"""Errors between which the order shows."""

LESS = 0.5
"""How far an observed order may lie below that of the rule: higher powers of the step still affect it."""


class Motion(NamedTuple):
    """A motion from a start on the constraints.   steps: number of the longest ones of `dop853`."""

    m: pf.Mechanism
    q: Any
    v: Any
    steps: int


def parallelogram() -> pf.Mechanism:
    """Two cranks of 0.4 m, 1 m apart, joined by a rod of 1 m."""
    rods, hinge = {"A": 0.4, "rod": 1.0, "D": 0.4}, {"kind": "revolute", "axis": (0, -1, 0)}
    bodies = [pf.body(name, 2 * l, com=(l / 2, 0, 0), inertia=l**3 / 6) for name, l in rods.items()]
    joints = [
        pf.joint("a", parent="world", child="A", **hinge),
        pf.joint("b", parent="A", child="rod", placement=(0.4, 0, 0), **hinge),
        pf.joint("d", parent="world", child="D", placement=(1.0, 0, 0), **hinge),
    ]
    ends = {"placement_a": (1.0, 0, 0), "placement_b": (0.4, 0, 0)}
    return pf.mechanism(
        "parallelogram", bodies, joints, constraints=[pf.closure("c", body_a="rod", body_b="D", **ends, **hinge)]
    )


def four_bar() -> pf.Mechanism:
    """A crank, a coupler and a rocker in the x-z plane, all on hinges."""
    hinge = {"kind": "revolute", "axis": (0, 1, 0)}
    bodies = [
        pf.body("crank", 1.3, com=(0.15, 0, 0), inertia=0.015),
        pf.body("coupler", 1.8, com=(0.4, 0, 0), inertia=0.17),
        pf.body("rocker", 1.7, com=(0.35, 0, 0), inertia=0.08),
    ]
    joints = [
        pf.joint("a", parent="world", child="crank", **hinge),
        pf.joint("b", parent="crank", child="coupler", placement=(0.3, 0, 0), **hinge),
        pf.joint("d", parent="world", child="rocker", placement=(0.9, 0, 0), **hinge),
    ]
    ends = {"placement_a": pf.pose((0.8, 0, 0)), "placement_b": pf.pose((0.7, 0, 0))}
    return pf.mechanism(
        "four-bar", bodies, joints, constraints=[pf.closure("c", body_a="coupler", body_b="rocker", **hinge, **ends)]
    )


def flying_pair() -> pf.Mechanism:
    """A free body and an arm on a ball joint."""
    bodies = [pf.body("hull", 2.0, inertia=(0.3, 0.4, 0.5)), pf.body("arm", 0.5, com=(0.3, 0, 0), inertia=(0.01, 0.03, 0.02))]
    ball = pf.joint("ball", "spherical", "hull", "arm", placement=(0, 0.2, 0.1))
    return pf.mechanism("free body with an arm", bodies, [pf.joint("flight", "free", "world", "hull"), ball])


def coin() -> Motion:
    """A disk of 0.1 m that leans and rolls on its edge."""
    disk = pf.body("disk", 0.5, inertia=(0.00125, 0.0025, 0.00125))
    edge = pf.rolling.disk("edge", "disk", 0.1, axis=(0, 1, 0))
    m = pf.mechanism("coin", [disk], [pf.joint("base", "free", "world", "disk")], constraints=[edge])
    lean = {"base.z": 0.1 * np.cos(0.3), "base.qx": np.sin(0.15), "base.qw": np.cos(0.15)}
    return on_constraints(m, None, {"base.wy": 8.0}, 16, guess=lean)


def on_constraints(m: pf.Mechanism, q: Any, v: Any, steps: int, guess: Any = None) -> Motion:
    """The motion from the state nearest to the given one."""
    at = pf.assemble(m, q, v, guess=guess)
    return Motion(m, np.ravel(at.q), np.ravel(at.v), steps)


def motions() -> dict[str, Motion]:
    """Title -> motion."""
    pair = flying_pair()
    return {
        "four-bar, redundant rows": on_constraints(four_bar(), {"a": -0.35}, {"a": 4.0}, 8, guess={"b": -0.48, "d": -1.69}),
        "coin, rolling": coin(),
        "free body with an arm": Motion(pair, None, np.linspace(-3.0, 3.0, pair.nv), 3),
        "parallelogram, through its flat pose": on_constraints(
            parallelogram(), {"a": -0.6}, {"a": 5.0}, 3, guess={"b": 0.6, "d": -0.6}
        ),
    }


def run() -> xr.Dataset:
    found = {}
    for title, of in motions().items():
        exact = pf.run(of.m, of.q, of.v, times=[0, DURATION], accuracy=EXACT, record=["q", "v"])
        for name in ORDERS:
            found[f"{title}, {name}"] = "halving", [
                error(of, name, of.steps * FINER[name] * 2**i, exact) for i in range(HALVINGS)
            ]  # fmt: skip
            found[f"{title}, {name} step"] = "halving", DURATION / (of.steps * FINER[name] * 2.0 ** np.arange(HALVINGS))
    return xr.Dataset(found)


def error(of: Motion, name: str, steps: int, exact: xr.Dataset) -> float:
    """The largest difference of q and v at the end of so many steps of a pair."""
    how: dict[str, Any] = {"step": DURATION / steps, "every": steps, "scheme": pf.Scheme(integrator=name)}
    r = pf.run(of.m, of.q, of.v, duration=DURATION, record=["q", "v"], error=False, error_bound=np.inf, **how)
    return max(float(abs(r[x].values[-1] - exact[x].values[-1]).max()) for x in "qv")


def slope(step: np.ndarray, error: np.ndarray) -> float:
    """The observed order, from the errors that neither rounding nor long steps decide."""
    shows = (error > ROUNDING) & (error < FAR)
    return float(np.polyfit(np.log(step[shows]), np.log(error[shows]), 1)[0])


def figures(result: xr.Dataset) -> dict[str, Any]:
    figure = blank_figure(9, 6.4)
    for axes, title in zip(figure.subplots(2, 2).flat, motions(), strict=True):
        for name, mark in MARKS.items():
            step, found = (result[f"{title}, {name}{what}"].values for what in (" step", ""))
            label = f"{name}, order {slope(step, found):.1f}"
            axes.loglog(step * 1e3, np.maximum(found, 1e-15), marker=mark, markersize=3, label=label)
        axes.set_xscale("log", base=2)
        axes.set(xlabel="step [ms]", ylabel="error after 0.4 s", title=title)
        axes.legend(fontsize=8)
    return {"pair-orders": figure}


def claims(result: xr.Dataset) -> Iterator[Claim]:
    for title in motions():
        for name, order in ORDERS.items():
            observed = slope(result[f"{title}, {name} step"].values, result[f"{title}, {name}"].values)
            yield Claim(f"{title}: order of {name}", observed, order, LESS, "definition", "at least")
