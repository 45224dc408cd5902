"""Baxter with both hands on one bar: a closed loop of two arms, with its constraint rows written once and twice.

The robot is the URDF file of the package example-robot-data (pip install example-robot-data). The setting is ours, after the
redundant constraints of [aghili05 section II]; there is no figure to match.

The bar is a uniform rod of 2 kg and 0.5 m, fixed to the left hand and welded to the right one. The hands point forward, 0.75 m
ahead and 0.25 m up, as in examples/baxter_bar.yaml. The gripper fingers are locked and the joints' damping is left out, so that
15 joints and exactly 6 constraint rows remain and energy is constant. The arms fall from rest under gravity for 5 s; joint
limits are not enforced. Steps of 0.2 ms.

A third machine has twelve rows: six other rows of the same row space, written from the hand instead of the bar, precede the
first ones. There rounding differs, and the motion is chaotic: differences grow tenfold in a fifth of a second, so the same
motion is claimed over the first 0.75 s only. With the rows written twice the rank decision drops the copies and the numbers are
the same to the bit.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import casadi as ca
import numpy as np
import xarray as xr

import pfaffian as pf
from pfaffian.study import Claim, blank_figure

LENGTH, MASS = 0.5, 2.0
DURATION, STEP = 5.0, 2e-4
CASES = ("once", "twice", "from both sides")
START = {
    "left_s0": -0.509426045428602,
    "left_s1": -0.7575302376679675,
    "left_e0": -0.353293912917511,
    "left_e1": 2.108596040039351,
    "left_w0": 0.02783949594387457,
    "left_w1": -1.312308569974892,
    "left_w2": 0.24707570537616044,
    "right_s0": 0.5094260029989127,
    "right_s1": -0.7575302236861329,
    "right_e0": 0.3532939637775866,
    "right_e1": 2.1085960370272274,
    "right_w0": -0.027839504308939538,
    "right_w1": -1.3123085684156912,
    "right_w2": -0.24707574254182188,
}


def mechanism(rows: str = "once") -> pf.Mechanism:
    """The robot with the bar, its closure written once, twice, or once from each side."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the file's mimic joints and unphysical inertias
        robot = pf.formats.read_urdf(
            pf.formats.installed("example-robot-data", "baxter_description/urdf/baxter.urdf", "study"), mimic="free"
        )
    joints = [replace(j, damping=ca.SX(0)) if "finger" not in j.name else pf.locked(j) for j in robot.joints]
    I = MASS * LENGTH**2 / 12
    bar = pf.body("bar", MASS, (0, 0, 0), (I, 0, I))
    end = pf.pose((0, -LENGTH / 2, 0))
    left = pf.joint("left grip", "fixed", "left_hand_link", "bar", placement=end)
    grip = pf.closure("right grip", "weld", "bar", "right_hand_link", placement_a=end)
    again = {
        "once": [],
        "twice": [replace(grip, name="again")],
        "from both sides": [pf.closure("again", "weld", "right_hand_link", "bar", placement_b=end)],
    }
    constraints = [*again[rows], grip]
    return robot.with_(bodies=[*robot.bodies, bar], joints=[*joints, left], constraints=constraints, actuators=())


def run() -> dict[str, xr.Dataset]:
    known = {"q": START, "duration": DURATION, "step": STEP, "every": 25}
    hands = {
        "left hand": lambda k: k.position("left_hand_link"),
        "right hand": lambda k: k.position("right_hand_link"),
    }
    # One motion three times: the error of its steps is estimated once.
    return {rows: pf.run(mechanism(rows), outputs=hands, error=rows == "once", **known) for rows in CASES}


def figures(result: dict[str, xr.Dataset]) -> dict[str, Any]:
    return {"motion": _motion(result["once"]), "agreement": _agreement(result)}


def _motion(r: xr.Dataset) -> Any:
    figure = blank_figure(8.5, 5.6)
    (left, right), (hands, force) = figure.subplots(2, 2, sharex=True)
    t = r["time"]
    for ax, side in ((left, "left"), (right, "right")):
        for name in r["coordinate"].values:
            if name.startswith(f"{side}_"):
                ax.plot(t, r["q"].sel(coordinate=name), label=name.removeprefix(f"{side}_"), linewidth=1.0)
        ax.set(ylabel=f"{side} arm, joint angles [rad]")
    for side, dashes in (("left", "-"), ("right", "--")):
        for axis, colour in zip("xyz", ("#0072B2", "#D55E00", "#009E73"), strict=True):
            component = r[f"{side} hand"][:, "xyz".index(axis)]
            hands.plot(t, component, dashes, color=colour, label=f"{side} {axis}", linewidth=1.0)
    hands.set(xlabel="time [s]", ylabel="positions of the hands [m]")
    grip = r["multiplier"].values
    force.plot(t, np.linalg.norm(grip[:, :3], axis=1), label="force [N]")
    force.plot(t, np.linalg.norm(grip[:, 3:], axis=1), "--", label="moment [N m]")
    force.set(xlabel="time [s]", ylabel="load of the right grip")
    return figure


def _agreement(result: dict[str, xr.Dataset]) -> Any:
    figure = blank_figure(8.5, 3.0)
    axes = figure.subplots(1, 3)
    one = result["once"]
    t, least = one["time"], 1e-17
    for i, (name, dashes) in enumerate(zip(CASES, ("-", "--", ":"), strict=True)):
        r, look = result[name], {"color": f"C{i}", "linestyle": dashes, "label": f"rows {name}"}
        if name != "once":
            axes[0].semilogy(t, np.maximum(np.abs(one["q"] - r["q"]).max("coordinate"), least), **look)
        axes[1].semilogy(t, np.maximum(np.abs(r["energy"] - r["energy"][0]) / _scale(r), least), **look)
        axes[2].semilogy(t, np.maximum(r["violation"], least), **look)
    labels = ("difference of q to rows once [rad]", "energy error / largest kinetic energy", "|phi| [m, rad]")
    for ax, label in zip(axes, labels, strict=True):
        ax.set(xlabel="time [s]", ylabel=label)
    return figure


def _scale(r: xr.Dataset) -> float:
    return float(r["kinetic_energy"].max())


def claims(result: dict[str, xr.Dataset]) -> Iterator[Claim]:
    one = result["once"]
    for name, rows in zip(CASES, (6, 12, 12), strict=True):
        r = result[name]
        yield Claim(f"rows {name}: finished", float(r["status"]), 0, 0, "ours")
        yield Claim(f"rows {name}: number of rows", r.sizes["row"], rows, 0, "ours")
        for of in ("min", "max"):
            rank = float(getattr(r["rank"], of)())
            yield Claim(f"rows {name}: {of} of the rank reported", rank, 6, 0, "[aghili05 Remark 4]")
        yield Claim(f"rows {name}: |phi| [m, rad]", float(r["violation"].max()), 1e-10, relation="at most", source="ours")
        drift = float(np.abs(r["energy"] - r["energy"][0]).max()) / _scale(r)
        yield Claim(f"rows {name}: energy error over 5 s, relative", drift, 0, 1e-8, "ours, no dissipation")
    for name, until in (("twice", DURATION), ("from both sides", 0.75)):
        first, r, so_long = one.sel(time=slice(0, until)), result[name].sel(time=slice(0, until)), f"over {until:g} s"
        off = _apart(first["q"], r["q"])
        yield Claim(f"rows {name}: difference of q to rows once, {so_long} [rad]", off, 0, 1e-9, "[aghili05 section I]")
        for signal in ("v", "reaction"):
            off = _apart(first[signal], r[signal]) / float(np.abs(one[signal]).max())
            yield Claim(
                f"rows {name}: difference of {signal} to rows once, {so_long}, relative", off, 0, 1e-9, "[aghili05 section I]"
            )
    half = one["multiplier"].values / 2
    share = np.hstack([half, half]) - result["twice"]["multiplier"].values
    force = float(np.abs(one["multiplier"]).max())
    yield Claim(
        "rows twice: multipliers shared evenly, relative", float(np.abs(share).max()) / force, 0, 1e-9, "[aghili05 Remark 4]"
    )
    moved = float(np.abs(one["q"] - one["q"][0]).max())
    yield Claim("largest joint motion, not a state of rest [rad]", moved, 1, relation="at least", source="ours")


def _apart(a: xr.DataArray, b: xr.DataArray) -> float:
    return float(np.abs(a.values - b.values).max())
