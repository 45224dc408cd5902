"""What each integrator is for: order, energy over 1e5 steps, a spring of 1e8 N/m at steps of a millisecond.

The study is ours, from no paper. Its machines are a four-bar with redundant rows (revolute closure, five rows of rank two), and
two links that swing and tumble chaotically. Order: the error after 0.4 s relative to DOP853 at 1e-13, with steps halved five
times. Energy: 1e5 steps of 10 ms. Stiffness: a bob on a spring of 1e8 N/m in Cartesian coordinates, with 10,000 rad/s next to
the pendulum's 3 rad/s, compared with the rigid pendulum; and the four-bar with such a spring in its coupler, compared with the
rigid four-bar.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import xarray as xr

import pfaffian as pf
from pfaffian.study import Claim, blank_figure

Y = (0, 1, 0)
START, SPEED = {"a": -0.35270521275768546, "b": -0.47993345215274025, "d": -1.685514198023723}, {"a": 4.0}
COLOUR = {"rk4": "#0072B2", "euler": "#E69F00", "midpoint": "#009E73", "tr-bdf2": "#D55E00"}
STIFFNESS = 1e8  # N/m
ORDER = {"rk4": 4, "euler": 1, "midpoint": 2, "tr-bdf2": 2}
COARSEST = {"rk4": 80, "euler": 320, "midpoint": 80, "tr-bdf2": 80}
"""Numbers of steps in 0.4 s."""
HALVINGS = 5
LONG = 100_000  # steps
STEP = 0.01  # s
TIMES = np.linspace(0, 2, 201)


def mechanism(stiffness: float = 0.0) -> pf.Mechanism:
    """Four-bar with crank, coupler in two halves and rocker in the x-z plane; stiffness [N/m] of a slide between the halves,
    0: rigid."""
    bodies = [
        pf.body("crank", 1.3, com=(0.15, 0, 0), inertia=0.015),
        pf.body("left", 0.9, com=(0.2, 0, 0), inertia=0.05),
        pf.body("right", 0.9, com=(0.2, 0, 0), inertia=0.05),
        pf.body("rocker", 1.7, com=(0.35, 0, 0), inertia=0.08),
    ]
    slide = {"kind": "prismatic", "axis": (1, 0, 0), "stiffness": stiffness} if stiffness else {"kind": "fixed"}
    joints = [
        pf.joint("a", "revolute", "world", "crank", axis=Y),
        pf.joint("b", "revolute", "crank", "left", axis=Y, placement=(0.3, 0, 0)),
        pf.joint("s", parent="left", child="right", placement=(0.4, 0, 0), **slide),
        pf.joint("d", "revolute", "world", "rocker", axis=Y, placement=(0.9, 0, 0)),
    ]
    ends = {"placement_a": pf.pose((0.4, 0, 0)), "placement_b": pf.pose((0.7, 0, 0))}
    closed = pf.closure("c", "revolute", "right", "rocker", axis=Y, **ends)
    return pf.mechanism("four-bar", bodies, joints, constraints=[closed])


def links() -> pf.Mechanism:
    return pf.mechanism(
        "two links",
        [pf.body(n, 1.0, com=(0.5, 0, 0), inertia=0.02) for n in "ab"],
        [
            pf.joint("A", "revolute", "world", "a", axis=Y),
            pf.joint("B", "revolute", "a", "b", axis=Y, placement=(1, 0, 0)),
        ],
    )


def bob() -> pf.Mechanism:
    spring = pf.spring("spring", "world", "bob", stiffness=STIFFNESS, rest=1.0)
    return pf.mechanism("bob", [pf.body("bob", 1.0, inertia=0.01)], [pf.joint("p", "free", "world", "bob")], forces=[spring])


def pendulum() -> pf.Mechanism:
    rod = [pf.body("rod", 1.0, com=(1, 0, 0))]
    return pf.mechanism("pendulum", rod, [pf.joint("A", "revolute", "world", "rod", axis=Y)])


def run() -> dict[str, xr.Dataset]:
    return {"order": _orders(), **_energies(), **_stiff()}


def _orders() -> xr.Dataset:
    m = mechanism()
    exact = pf.run(m, START, SPEED, times=[0, 0.4], accuracy=1e-11)
    found = {}
    for name, coarsest in COARSEST.items():
        steps = 0.4 / (coarsest * 2 ** np.arange(HALVINGS))
        ends = [
            pf.run(m, START, SPEED, duration=0.4, step=h, every=round(0.4 / h), scheme=pf.Scheme(integrator=name)).isel(time=-1)
            for h in steps
        ]
        error = [max(float(abs(r[x] - exact[x][-1]).max()) for x in "qv") for r in ends]
        found |= {f"{name} step": ("halving", steps), f"{name} error": ("halving", error)}
    return xr.Dataset(found)


def _energies() -> dict[str, xr.Dataset]:
    known = {"duration": LONG * STEP, "step": STEP, "every": 50, "record": ["energy"]}
    # The semi-implicit Euler method violates the constraints at such steps.
    schemes = {name: pf.Scheme(integrator=name) for name in ORDER if name != "euler"}
    four_bar = {f"four-bar, {n}": pf.run(mechanism(), START, SPEED, scheme=s, **known) for n, s in schemes.items()}
    return four_bar | {
        f"two links, {n}": pf.run(links(), {"A": -2.0, "B": 1.0}, scheme=schemes[n], **known) for n in ("rk4", "midpoint")
    }


def _stiff() -> dict[str, xr.Dataset]:
    stiff, found = pf.Scheme(integrator="tr-bdf2"), {}
    found["pendulum"] = pf.run(pendulum(), times=TIMES, accuracy=1e-9)
    found["rigid"] = pf.run(mechanism(), START, SPEED, times=TIMES, accuracy=1e-9)
    for step in (4e-3, 2e-3, 1e-3):
        known = {"duration": 2.0, "step": step, "every": round(0.02 / step), "scheme": stiff}
        found[f"bob {step:g}"] = pf.run(bob(), {"p.x": 1.0}, **known)
        if step < 4e-3:
            found[f"elastic {step:g}"] = pf.run(mechanism(STIFFNESS), START | {"s": 0.0}, SPEED | {"s": 0.0}, **known)
    return found


def drift(r: xr.Dataset) -> np.ndarray:
    return np.abs(r["energy"].values - r["energy"].values[0])


def off(result: dict[str, xr.Dataset], name: str) -> np.ndarray:
    """Angle of a stiff machine minus that of the rigid one [rad], every 20 ms."""
    r = result[name]
    if name.startswith("bob"):
        angle = np.arctan2(-r["q"].sel(coordinate="p.z"), r["q"].sel(coordinate="p.x")).values
        return angle - result["pendulum"]["q"].values[::2, 0]
    return (r["q"].sel(coordinate="a") - result["rigid"]["q"].sel(coordinate="a")[::2].values).values


def figures(result: dict[str, xr.Dataset]) -> dict[str, Any]:
    figure = blank_figure(9, 6.4)
    (order, energy), (chaos, stiff) = figure.subplots(2, 2)
    for name in ORDER:
        o = result["order"]
        order.loglog(o[f"{name} step"], o[f"{name} error"], marker="o", markersize=3, label=name, color=COLOUR[name])
    order.set(xlabel="step [s]", ylabel="error after 0.4 s", title="order: a four-bar")
    order.legend()
    for axes, machine in ((energy, "four-bar"), (chaos, "two links")):
        for name in ORDER:
            if (r := result.get(f"{machine}, {name}")) is not None:
                axes.semilogy(r["time"][1:], np.maximum(drift(r)[1:], 1e-16), label=name, linewidth=0.8, color=COLOUR[name])
        axes.set(xlabel="time [s]", ylabel="|energy - energy at the start| [J]", title=f"{machine}, steps of 10 ms")
        axes.legend()
    for name in (n for n in result if n.startswith(("bob", "elastic"))):
        machine, step = name.split()
        t = result[name]["time"][1:]
        dash = "-" if machine == "bob" else "--"
        stiff.semilogy(t, np.abs(off(result, name))[1:], dash, label=f"{machine}, {float(step) * 1e3:g} ms")
    stiff.set(
        xlabel="time [s]", ylabel="angle minus the rigid one's [rad]", title="bob and elastic four-bar on 1e8 N/m, tr-bdf2"
    )
    stiff.legend()
    return {"integrators": figure}


def claims(result: dict[str, xr.Dataset]) -> Iterator[Claim]:
    o = result["order"]
    for name, order in ORDER.items():
        slope = np.polyfit(np.log(o[f"{name} step"]), np.log(o[f"{name} error"]), 1)[0]
        yield Claim(f"{name}: slope of log error over log step", slope, order, 0.1, "definition")
    for machine, scale in (("four-bar", 12.0), ("two links", 37.0)):
        relative = drift(result[f"{machine}, midpoint"]).max() / scale
        yield Claim(f"midpoint: energy of the {machine} over 1e5 steps, relative", relative, 1e-11, 0, "ours", "at most")
    lost = drift(result["four-bar, rk4"]).max()
    yield Claim("rk4: energy drift of the four-bar over 1e5 steps [J]", lost, 1e-3, 0, "ours", "at least")
    bobs = [np.abs(off(result, f"bob {h}")).max() for h in ("0.004", "0.002", "0.001")]
    yield Claim("tr-bdf2: bob on 1e8 N/m at 1 ms, error of the angle [rad]", bobs[2], 5e-5, 0, "rigid pendulum", "at most")
    yield Claim("tr-bdf2: bob on 1e8 N/m, order between 4 and 2 ms", np.log2(bobs[0] / bobs[1]), 2, 0.2, "definition")
    elastic = np.abs(off(result, "elastic 0.001")).max()
    yield Claim(
        "tr-bdf2: elastic four-bar at 1 ms, error of the crank angle [rad]", elastic, 1e-4, 0, "rigid four-bar", "at most"
    )
    violation = max(float(result[f"elastic {h}"]["violation"].max()) for h in ("0.002", "0.001"))
    yield Claim("tr-bdf2: elastic four-bar, |phi|", violation, 1e-12, 0, "ours", "at most")
