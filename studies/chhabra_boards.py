"""A snakeboard and a roller racer: momenta along directions that turn with the shape. [chhabra14 prop. 4.2.15, bloch96]

The blades let the first body of each machine move, at constant shape s, along one field zeta(s) only. The momentum along this
field, p = <mu, zeta> with the momentum mu of the whole machine in the body's axes, is not constant: with the body's twist V

    p_dot = <mu, zeta' s_dot + [V, zeta]>.

The snakeboard is that of Bloch, Krishnaprasad, Marsden and Murray. Its wheels are steered in opposite directions by phi, and m
r^2 is the inertia of the whole machine: zeta = (-2 r cos^2 phi, 0, sin 2 phi) and p_dot = 2 J_r cos^2 phi phi_dot psi_dot - tan
phi phi_dot p, with the rotor's angle psi. The roller racer has zeta = (f + b cos a, 0, sin a), with one axle b behind the hinge
and the other f in front of it. Both start at rest and are driven by swinging only the rotor and wheels, or the bar, by springs
whose rest angle follows a sine. Numbers are ours.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import casadi as ca
import numpy as np
import xarray as xr
from scipy.integrate import cumulative_simpson

import pfaffian as pf
from pfaffian.study import Claim, blank_figure

BOARD = {"mass": 6.0, "r": 0.35, "rotor": 0.4, "wheels": 0.05}
"""Mass [kg], distance from the middle to a wheel set [m], inertias of the rotor and of each wheel set [kg m^2]. The board has
the rest of the inertia m r^2."""
RACER = {"seat": 4.0, "seat_I": 0.2, "seat_x": 0.1, "bar": 1.0, "bar_I": 0.1, "bar_x": 0.05, "b": 0.5, "f": 0.3}
"""Masses [kg], inertias [kg m^2]; mass centres ahead of the rear axle and of the hinge, and the axles from the hinge [m]."""
RATE = 2 * np.pi / 1.5
"""Frequency of the swinging [rad/s]."""
SWINGS = {"snakeboard": {"rotor": (0.7, 0.0), "back": (0.3, 0.0)}, "roller racer": {"hinge": (0.7, 0.0)}}
"""By joint: amplitude [rad] and phase [rad] of the sine that its spring follows."""
SPRING, DAMPER = 60.0, 8.0
"""Stiffness [N m/rad] and damping [N m s/rad] of these springs."""
THIN = 1e-12
"""Mass of the rotor and of the wheel sets, which only turn [kg]."""


def follow(joint: str, size: float, phase: float) -> Any:
    """A spring and a damper between a joint and a sine whose amplitude rises smoothly from zero."""

    def force(k: Any) -> ca.SX:
        target = size * (1 - ca.exp(-2 * k.t)) * ca.sin(RATE * k.t + phase)
        return SPRING * (target - k.joint(joint)) - DAMPER * k.joint_rate(joint)

    return pf.forces.generalised_force(f"{joint} swings", force, joint=joint)


def blade(body: str, at: float = 0.0) -> Any:
    return pf.rolling.knife_edge(f"{body} blade", body, (1, 0, 0), point=(at, 0, 0))


def mechanism() -> pf.Mechanism:
    """The snakeboard."""
    n = BOARD
    board_inertia = n["mass"] * n["r"] ** 2 - n["rotor"] - 2 * n["wheels"]
    bodies = [pf.body("board", n["mass"], inertia=board_inertia), pf.body("rotor", THIN, inertia=n["rotor"])]
    bodies += [pf.body(name, THIN, inertia=n["wheels"]) for name in ("back", "front")]
    against = pf.mimic({"back": -1.0})
    joints = [
        pf.joint("ground", "planar", "world", "board"),
        pf.joint("rotor", "revolute", "board", "rotor"),
        pf.joint("back", "revolute", "board", "back", placement=(-n["r"], 0, 0)),
        pf.joint("front", "revolute", "board", "front", placement=(n["r"], 0, 0), mimic=against),
    ]
    return pf.mechanism(
        "snakeboard", bodies, joints, constraints=[blade("back"), blade("front")],
        forces=[follow(j, *how) for j, how in SWINGS["snakeboard"].items()],
    )  # fmt: skip


def racer() -> pf.Mechanism:
    """The roller racer, on two slides and a hinge instead of a planar joint."""
    n = RACER
    bodies = [pf.body("slide x"), pf.body("slide y"), pf.body("seat", n["seat"], com=(n["seat_x"], 0, 0), inertia=n["seat_I"])]
    bodies.append(pf.body("bar", n["bar"], com=(n["bar_x"], 0, 0), inertia=n["bar_I"]))
    joints = [
        pf.joint("x", "prismatic", "world", "slide x", axis=(1, 0, 0)),
        pf.joint("y", "prismatic", "slide x", "slide y", axis=(0, 1, 0)),
        pf.joint("heading", "revolute", "slide y", "seat"),
        pf.joint("hinge", "revolute", "seat", "bar", placement=(n["b"], 0, 0)),
    ]
    return pf.mechanism(
        "roller racer", bodies, joints, constraints=[blade("seat"), blade("bar", n["f"])],
        forces=[follow(j, *how) for j, how in SWINGS["roller racer"].items()],
    )  # fmt: skip


def run() -> dict[str, xr.Dataset]:
    keep = partial(pf.run, duration=9.0, step=5e-4, every=10)
    board, bar = mechanism(), racer()
    return {
        "snakeboard": keep(board),
        "snakeboard, reduced": keep(pf.reduce(board)),
        "roller racer": keep(bar),
        "roller racer, reduced": keep(pf.reduce(bar)),
    }


# -- momentum equations by hand -------------------------------------------------------------------------------------------


def board_momentum(r: xr.Dataset) -> tuple[np.ndarray, np.ndarray]:
    """p from the momenta of the bodies, and p_dot by the printed equation."""
    n, phi = BOARD, r["q"].values[:, 4]
    psi_dot, phi_dot = r["v"].values[:, 3:5].T
    vx, _, w = r["v"].values[:, :3].T
    zeta = np.array([-2 * n["r"] * np.cos(phi) ** 2, np.sin(2 * phi)])
    p = n["mass"] * (vx * zeta[0] + n["r"] ** 2 * w * zeta[1]) + n["rotor"] * psi_dot * zeta[1]
    p_dot = 2 * n["rotor"] * np.cos(phi) ** 2 * phi_dot * psi_dot - np.tan(phi) * phi_dot * p
    return p, p_dot


def racer_momentum(r: xr.Dataset) -> tuple[np.ndarray, np.ndarray]:
    """p from the momenta of the bodies, and p_dot = <mu, zeta' a_dot + [V, zeta]> with V = (v, 0, w)."""
    n, (heading, a), (x_dot, y_dot, w, a_dot) = RACER, r["q"].values[:, 2:].T, r["v"].values.T
    v = np.cos(heading) * x_dot + np.sin(heading) * y_dot
    turn, sin, cos = w + a_dot, np.sin(a), np.cos(a)
    # Velocities of the bar's mass centre, and the momentum of both bodies about the rear axle, in the seat's axes.
    bar = np.array([v - n["bar_x"] * turn * sin, n["b"] * w + n["bar_x"] * turn * cos])
    place = np.array([n["b"] + n["bar_x"] * cos, n["bar_x"] * sin])
    mu = np.array([n["seat"] * v, n["seat"] * n["seat_x"] * w]) + n["bar"] * bar
    about = (n["seat_I"] + n["seat"] * n["seat_x"] ** 2) * w + n["bar_I"] * turn
    about += n["bar"] * (place[0] * bar[1] - place[1] * bar[0])
    zeta = np.array([n["f"] + n["b"] * cos, sin])
    p = mu[0] * zeta[0] + about * zeta[1]
    across = w * zeta[0] - v * zeta[1]
    return p, (-mu[0] * n["b"] * sin + about * cos) * a_dot + mu[1] * across


MOMENTA = {"snakeboard": board_momentum, "roller racer": racer_momentum}


def by_equation(r: xr.Dataset, p_dot: np.ndarray) -> np.ndarray:
    """p as the integral of p_dot from rest."""
    return np.r_[0.0, cumulative_simpson(p_dot, x=r["time"].values)]


# -- figures --------------------------------------------------------------------------------------------------------------


def figures(result: dict[str, xr.Dataset]) -> dict[str, Any]:
    figure = blank_figure(10.0, 6.2)
    for (name, momentum), (way, shape, momenta) in zip(MOMENTA.items(), figure.subplots(2, 3), strict=True):
        full, reduced = result[name], result[f"{name}, reduced"]
        _way(way, name, full)
        for joint in [n for n in full["coordinate"].values if n in ("rotor", "back", "hinge")]:
            shape.plot(full["time"], full["q"].sel(coordinate=joint), label="phi" if joint == "back" else joint)
        shape.set(xlabel="time [s]", ylabel="[rad]", title=f"{name}: shape")
        momenta.plot(full["time"], momentum(reduced)[0], label="reduced run")
        momenta.plot(full["time"][::50], by_equation(full, momentum(full)[1])[::50], "k.", label="by its equation, full run")
        momenta.set(xlabel="time [s]", ylabel="p along zeta [N s m]", title=f"{name}: momentum")
        for axes in (way, shape, momenta):
            axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.22), ncols=2, frameon=False, fontsize=8)
    return {"boards": figure}


def _way(axes: Any, name: str, r: xr.Dataset) -> None:
    """Draw the path of the first body's origin, and that body at regular instants."""
    x, y, heading = r["q"].values[:, :3].T
    behind, before = (-BOARD["r"], BOARD["r"]) if name == "snakeboard" else (0.0, RACER["b"])
    for i in range(0, len(x), 150):
        ends = np.array([behind, before])
        label = "body, every 0.75 s" if not i else None
        axes.plot(
            x[i] + ends * np.cos(heading[i]), y[i] + ends * np.sin(heading[i]), color="0.75", linestyle="-", lw=3, label=label
        )
    axes.plot(x, y, color="C0", label="its middle" if name == "snakeboard" else "its axle")
    axes.set(xlabel="x [m]", ylabel="y [m]", title=f"{name} from above, y stretched")


# -- claims ---------------------------------------------------------------------------------------------------------------


def claims(result: dict[str, xr.Dataset]) -> Iterator[Claim]:
    source = "[chhabra14 prop. 4.2.15]"
    for name, momentum in MOMENTA.items():
        full, reduced = result[name], result[f"{name}, reduced"]
        for what in ("q", "v"):
            yield Claim(
                f"{name}: {what}, reduced minus full machine", float(np.abs(reduced[what] - full[what]).max()), 0, 1e-9, source
            )
        p, p_dot = momentum(full)
        yield Claim(
            f"{name}: momentum minus that by its equation", np.abs(p - by_equation(full, p_dot)).max(), 0, 1e-7, "[bloch96]"
        )
        yield Claim(f"{name}: final momentum along zeta, from rest [N s]", np.abs(p[-1]), 0.5, 0, source, "at least")
        gone = float(np.hypot(*(full["q"].values[-1, :2])))
        yield Claim(f"{name}: distance travelled by swinging alone [m]", gone, 0.5, 0, "ours", "at least")
    board, bar = result["snakeboard, reduced"], result["roller racer, reduced"]
    names = [*board["momentum_entry"].values, *bar["momentum_entry"].values]
    target = ["ground.vx", "rotor", "back", "seat.vx", "hinge"]
    yield Claim("momentum entries: one of the body, and one of each angle", names == target, 1, 0, source)
