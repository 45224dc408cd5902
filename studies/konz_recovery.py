"""Recovery of a quadcopter and a bicopter from 4096 random attitudes and rates, including upside down, within input limits.

All runs of a machine are one batch; the prototype law is evaluated at 200 Hz, with inputs kept within the limits by the QP in
the kernel [konz25 (4.63)]: 0 to 7.85 N for each propeller of the quadcopter of Table 5.1, the polygon of fig. 4.20 for those
of the bicopter of `konz_bicopter`. Attitudes are uniform in SO(3), rates in a ball of 6 rad/s, position and speed zero; the
reference is hover at the start. A run has recovered if at its end, after 9 s or with the fast poles 6 s, it is within 0.1 m,
0.1 rad, 0.1 m/s and 0.1 rad/s of the reference. Attitudes, rates, times and poles are ours; the inertia ratio of heading is
0.1, as in the thesis's flights.

The poles decide. With tilt poles at -3 and -3 exp(+-0.4 i) all 4096 runs recover, within 14 m. With -8, which hovers better,
those that tilt less than 60 degrees recover, and sooner, but many that are upside down never do. An error of one metre then
requires k h / Theta = 530 rad/s^2, of which the quadcopter can produce 105; with -3 it requires 10. A machine that tumbles
falls, which requires still more. No run is left out, and limits are checked in every period of every run. Only a few runs go
far, and they depend on the numbers: with an inertia ratio of heading of 0.3 all runs also recover, one of them from 22 m.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import casadi as ca
import numpy as np
import xarray as xr
from scipy.spatial.transform import Rotation

import pfaffian as pf
from pfaffian import control
from pfaffian.study import Claim, blank_figure

RUNS, FASTEST = 4096, 6.0
"""Number of starts, and the largest rate [rad/s]."""
PERIOD, EVERY = 0.005, 20
DURATION = {"slow": 9.0, "fast": 6.0}
GOAL = (0, 0, 0, 0, 0, 0, 1.0)
BOUND = 0.1
"""Largest errors of a recovered run [m], [rad], [m/s], [rad/s]."""
POLES = {"slow": -3.0, "fast": -8.0}
"""Tilt poles by name: two real ones and a pair with this magnitude [1/s]."""
HEADING = {"slow": (3.0, 0.8), "fast": (5.0, 0.8)}
LARGEST = 7.85
"""Largest thrust of a propeller, a quarter of 3.2 kg [N]. [konz25 5.1]"""
BICOPTER = {"mass": 1.0, "inertia": (0.015, 0.008, 0.018), "arm": 0.25, "height": 0.05, "lean": np.radians(15)}
GRAVITY = 9.81


def mechanism() -> pf.Mechanism:
    """The quadcopter."""
    x = pf.multicopters.QUADCOPTER
    return pf.multicopters.thrust_multicopter(
        "quadcopter", x["azimuths"], x["spins"], mass=x["mass"], inertia=(17.9e-3, 17.9e-3, 30.7e-3), arm=x["arm"],
        thrust=x["thrust"], torque=x["torque"],
    )  # fmt: skip


class Machine(NamedTuple):
    """A mechanism with its coupling length `lean`, limits W u <= l, and inputs in hover."""

    mechanism: pf.Mechanism
    lean: Any
    limits: tuple[np.ndarray, np.ndarray]
    hover: list[float]


def machines() -> dict[str, Machine]:
    box = np.kron(np.eye(4), [[-1.0], [1.0]]), np.tile([0.0, LARGEST], 4)
    polygon = pf.multicopters.thrust_polygon(2.0, 14.0, np.radians(30), propellers=2)
    up = BICOPTER["mass"] * GRAVITY / 2 / np.cos(BICOPTER["lean"])
    bicopter = pf.multicopters.bicopter("bicopter", **BICOPTER)
    return {
        "quadcopter": Machine(mechanism(), 0.0, box, [pf.multicopters.QUADCOPTER["mass"] * GRAVITY / 4] * 4),
        "bicopter": Machine(bicopter, pf.multicopters.bicopter_coupling_length(**BICOPTER), polygon, [0, up, 0, up]),
    }


def prototype(lean: Any) -> tuple[control.Pair, list[pf.Parameter], dict[str, dict[str, float]]]:
    """A pair whose pole-dependent matrix entries are parameters, the parameters, and their values for each choice of poles."""
    pairs = {}
    for poles, p in POLES.items():
        four = [p, p, p * np.exp(0.4j), p * np.exp(-0.4j)]
        pairs[poles] = control.quadcopter_pair("body", four, heading=HEADING[poles], coupling_length=lean, inertia_ratio=0.1)
    matrices, found, numbers = {}, dict[str, pf.Parameter](), {poles: dict[str, float]() for poles in POLES}
    for of in ("inertia", "damping", "stiffness"):
        each = {poles: np.array(ca.DM(getattr(pair, of))) for poles, pair in pairs.items()}
        M = ca.SX(ca.DM(each["slow"]))
        for i, j in zip(*np.nonzero(each["slow"] != each["fast"]), strict=True):
            name = f"{of} {min(i, j)} {max(i, j)}"
            M[i, j] = found.setdefault(name, pf.Parameter(name, float(each["slow"][i, j]))).symbol
            for poles, values in each.items():
                numbers[poles][name] = float(values[i, j])
        matrices[of] = M
    return control.pair("body", **matrices), list(found.values()), numbers


def starts(runs: int = RUNS) -> tuple[np.ndarray, np.ndarray]:
    """q and v of random starts."""
    random = np.random.default_rng(1)
    turns = Rotation.random(runs, random).as_quat()
    w = random.normal(size=(runs, 3))
    w *= FASTEST * random.uniform(size=(runs, 1)) ** (1 / 3) / np.linalg.norm(w, axis=1, keepdims=True)
    return np.hstack([np.zeros((runs, 3)), turns]), np.hstack([np.zeros((runs, 3)), w])


def watching(W: np.ndarray, l: np.ndarray) -> control.Control:
    """A law without inputs that records the largest distance so far and the largest violation of the input limits."""

    def watch(s: control.Sample) -> control.Command:
        far = ca.fmax(s["far"], ca.norm_2(s.terms.q[:3]))
        over = ca.fmax(s["over"], ca.mmax(ca.DM(W) @ s.u - l))
        return control.Command(ca.SX(4, 1), d_next={"far": far, "over": over}, signals={"farthest": far, "beyond": over})

    return control.discrete(watch, PERIOD, state={"far": [0.0], "over": [-LARGEST]})


def flown(machine: Machine, runs: int = RUNS) -> dict[str, xr.Dataset]:
    """Flights with all choices of poles, by one kernel."""
    pair, parameters, numbers = prototype(machine.lean)
    m = machine.mechanism.with_(parameters=parameters)
    law = control.prototype_tracking([pair], control.set_point(GOAL), approach="body", limits=machine.limits)
    sampled = control.discrete(law, PERIOD, start=machine.hover)
    how = {"step": PERIOD, "every": EVERY, "record": ["q", "v", "farthest", "beyond"]}
    how["control"] = control.several(law=sampled, watch=watching(*machine.limits))
    return {poles: pf.run(m, *starts(runs), duration=DURATION[poles], parameters=numbers[poles], **how) for poles in POLES}


def run() -> dict[str, xr.Dataset]:
    return {f"{name} {poles}": r for name, machine in machines().items() for poles, r in flown(machine).items()}


def tilt(q: np.ndarray) -> np.ndarray:
    """Angle of the body's z axis from the vertical [degrees]."""
    return np.degrees(2 * np.arcsin(np.clip(np.hypot(q[..., 3], q[..., 4]), 0, 1)))


def recovered(r: xr.Dataset) -> np.ndarray:
    """Which runs have recovered."""
    q, v = r["q"].values[:, -1], r["v"].values[:, -1]
    angle = 2 * np.arctan2(np.linalg.norm(q[:, 3:6], axis=1), np.abs(q[:, 6]))
    errors = [np.linalg.norm(q[:, :3], axis=1), angle, np.linalg.norm(v[:, :3], axis=1), np.linalg.norm(v[:, 3:], axis=1)]
    return (np.stack(errors) < BOUND).all(axis=0) & (r["status"].values == 0)


def farthest(r: xr.Dataset) -> np.ndarray:
    return r["farthest"].values[:, -1].ravel()


EDGES = np.arange(0, 181, 15)


def figures(result: dict[str, xr.Dataset]) -> dict[str, Any]:
    figure = blank_figure(10.5, 6.2)
    for row, machine in zip(figure.subplots(2, 3), machines(), strict=True):
        share, far, height = row
        for poles, colour in (("fast", "C1"), ("slow", "C0")):
            r = result[f"{machine} {poles}"]
            lean, ok = tilt(r["q"].values[:, 0]), recovered(r)
            parts = [100 * ok[(lean >= a) & (lean < b)].mean() for a, b in pairwise(EDGES)]
            named = {"color": colour, "label": f"poles at {POLES[poles]:g}"}
            share.step(EDGES, [*parts, parts[-1]], linewidth=1.6, where="post", **named)
            far.semilogy(lean[ok], farthest(r)[ok], ".", markersize=1.2, **named)
        r = result[f"{machine} slow"]
        worst = np.argsort(farthest(r))[-1]
        inverted = np.flatnonzero(tilt(r["q"].values[:, 0]) > 160)[:12]
        height.plot(r["time"], r["q"].values[inverted, :, 2].T, color="0.6", linestyle="-", linewidth=0.8)
        height.plot(r["time"], r["q"].values[worst, :, 2], color="C3", label="the farthest of all")
        share.set(ylim=(0, 104), ylabel="recovered [%]", title=machine, xticks=EDGES[::3])
        far.set(ylabel="farthest from the goal [m]", title="of those that recovered", xticks=EDGES[::3])
        height.set(xlabel="time [s]", ylabel="height [m]", title="started upside down, poles at -3")
        for ax in (share, far):
            ax.set(xlabel="tilt at the start [degrees]")
        height.legend()
    figure.axes[0].legend()
    return {"recovery": figure}


def claims(result: dict[str, xr.Dataset]) -> Iterator[Claim]:
    lean = tilt(starts()[0])
    part = np.sort((1 - np.cos(np.radians(lean))) / 2)
    apart = np.abs(part - (np.arange(len(part)) + 0.5) / len(part)).max()
    # For 4096 uniform attitudes the largest difference exceeds 0.0254 in one of a hundred samples. [Kolmogorov]
    yield Claim(
        "starts: distribution of the tilts minus that of uniform attitudes", float(apart), 0, 0.0254, "uniform attitudes"
    )
    most = {"quadcopter": 11.22, "bicopter": 13.76}
    share = {"quadcopter": 0.769, "bicopter": 0.844}
    steep = {"quadcopter": 0.015, "bicopter": 0.213}
    for name, r in result.items():
        machine, poles = name.split()
        yield Claim(f"{name}: runs that ended early", float((r["status"] != 0).sum()), 0)
        over = float(r["beyond"].values[:, -1].max())
        yield Claim(f"{name}: largest violation of the input limits [N]", over, 0, 1e-10, "[konz25 (4.63)]", "at most")
        ok, far = recovered(r), farthest(r)
        if poles == "slow":
            yield Claim(f"{name}: share recovered", ok.mean(), 1, 0, "all 4096")
            yield Claim(f"{name}: worst excursion [m]", far.max(), most[machine], 0.01 * most[machine])
        else:
            yield Claim(f"{name}: share recovered", ok.mean(), share[machine], 0.005)
            yield Claim(f"{name}: share recovered of tilts below 60", ok[lean < 60].mean(), 1, 0)
            yield Claim(f"{name}: share recovered of tilts above 150", ok[lean > 150].mean(), steep[machine], 0.01)
    for machine in machines():
        slow, fast = (result[f"{machine} {poles}"] for poles in POLES)
        small = lean < 60
        gain = np.median(farthest(slow)[small]) / np.median(farthest(fast)[small])
        yield Claim(f"{machine}: median excursion, slow to fast, tilts below 60", gain, 5, 0, "", "at least")
