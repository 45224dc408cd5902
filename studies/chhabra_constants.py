"""A reduction step by constants of motion that belong to no symmetry: a rover whose load slides across.

A rover on two wheels has a load that slides across. It has no further symmetry group, yet two of its momenta along fields
sigma(r) are constants of motion, where r is the distance of the load from the middle, [chhabra14 prop. 4.2.15]

    f_1' p_f + f_2' p_t + f_1 m w - f_2 m v = 0   at all v, w:    f = (m r / M, 1)  and
    f = (1 + m r f_2 / M, f_2),  f_2 = -m / sqrt(I n) atan(r sqrt(n / I)),  n = m (1 - m / M),

with the momenta p_f and p_t along rolling ahead and turning, and M and I the inertias of these motions at r = 0. The two
constants do not commute, as the theorem requires; but nothing depends on the angles of the wheels, and again six dimensions
become two. The rover is ours, of the size of a toy on a table.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import casadi as ca
import numpy as np
import xarray as xr
from scipy.integrate import solve_ivp

import pfaffian as pf
from pfaffian.study import Claim, blank_figure

Y = (0, 1, 0)
ROVER = {
    "c": 0.2,
    "b": 0.08,
    "mass": 4.0,
    "I": 0.09,
    "wheel": 0.3,
    "wheel_I": 0.002,
    "load": 1.5,
    "load_I": 0.004,
    "spring": 30.0,
}
"""Half the axle, radius of the wheels [m]; masses [kg] and inertias [kg m^2]; spring on the slide [N/m]."""
ROVER_START = (np.array([0, 0, 0, 0, 0, 0.12]), (0.5, 2.5, -0.3))
"""q; speed ahead [m/s], rate of turning [rad/s] and speed of the load [m/s]."""


def mechanism(ahead: float = 0.0) -> pf.Mechanism:
    """The rover; ahead: distance of the hull's mass centre in front of the axle [m]; unless it is zero, nothing is
    conserved."""
    g = ROVER
    bodies = [
        pf.body("hull", g["mass"], com=(ahead, 0, 0), inertia=(0.05, 0.05, g["I"])),
        pf.body("left", g["wheel"], inertia=(0.001, g["wheel_I"], 0.001)),
        pf.body("right", g["wheel"], inertia=(0.001, g["wheel_I"], 0.001)),
        pf.body("load", g["load"], inertia=g["load_I"]),
    ]
    joints = [
        pf.joint("base", "planar", "world", "hull"),
        pf.joint("psi1", "revolute", "hull", "left", axis=Y, placement=(0, g["c"], 0)),
        pf.joint("psi2", "revolute", "hull", "right", axis=Y, placement=(0, -g["c"], 0)),
        pf.joint("slide", "prismatic", "hull", "load", axis=Y, placement=(0, 0, 0.1), stiffness=g["spring"]),
    ]

    def rolling(k: pf.Kinematics) -> ca.SX:
        v_x, v_y, w = ca.vertsplit(k.joint_rate("base"))
        wheels = [v_x - s * g["c"] * w - g["b"] * k.joint_rate(n) for s, n in ((1, "psi1"), (-1, "psi2"))]
        return ca.vertcat(v_y, *wheels)

    return pf.mechanism(
        "rover with a load", bodies, joints, constraints=[pf.nonholonomic("wheels", rolling)], gravity=(0, 0, 0)
    )


def inertias() -> tuple[float, float, float]:
    """Inertias M of rolling ahead and I of turning at r = 0, and the load's mass."""
    g = ROVER
    M = g["mass"] + 2 * g["wheel"] + g["load"] + 2 * g["wheel_I"] / g["b"] ** 2
    I = g["I"] + g["load_I"] + 2 * (g["wheel"] * g["c"] ** 2 + 0.001) + 2 * g["wheel_I"] * (g["c"] / g["b"]) ** 2
    return M, I, g["load"]


def shares(r: ca.SX) -> ca.SX:
    """(2, 2) coefficients f of p_f and p_t, one row for each of the two constants."""
    M, I, m = inertias()
    n = m * (1 - m / M)
    f_2 = -m / np.sqrt(I * n) * ca.atan(r * np.sqrt(n / I))
    return ca.blockcat([[m * r / M, 1], [1 + m * r * f_2 / M, f_2]])


def field(i: int, k: pf.Kinematics) -> ca.SX:
    """sigma(r) as velocities: f_1 ahead, f_2 turning, and the wheels rolling with them."""
    f, (b, c) = shares(k.joint("slide"))[i, :], (ROVER["b"], ROVER["c"])
    return ca.vertcat(f[0], 0, f[1], (f[0] - c * f[1]) / b, (f[0] + c * f[1]) / b, 0)


FIELDS = {"psi1": partial(field, 0), "psi2": partial(field, 1)}


def rover_start() -> tuple[np.ndarray, np.ndarray]:
    q, (v, w, r_dot) = ROVER_START
    return q, np.r_[v, 0, w, (v - ROVER["c"] * w) / ROVER["b"], (v + ROVER["c"] * w) / ROVER["b"], r_dot]


def one_degree_of_freedom() -> xr.Dataset:
    """Run of the load in the potential W given by the two constants: m r_ddot = -dW/dr, H = m r_dot^2 / 2 + W."""
    M, I, m = inertias()
    r, h = ca.SX.sym("r"), ca.SX.sym("h", 2)
    G = ca.blockcat([[M, -m * r], [-m * r, I + m * r**2]])
    p = ca.solve(shares(r), h)
    W = ca.dot(p, ca.solve(G, p)) / 2 + ROVER["spring"] * r**2 / 2
    f = ca.Function("f", [r, h], [-ca.gradient(W, r) / m, W, ca.solve(G, p)])
    q, (v, w, r_dot) = ROVER_START
    at = float(q[5])
    start = ca.Function("start", [r], [shares(r) @ G])
    constants = np.array(start(at)) @ [v, w]
    time = 0.03 * np.arange(101)
    rate = lambda t, x: [x[1], float(f(x[0], constants)[0])]  # noqa: E731
    x = solve_ivp(rate, (0, time[-1]), [at, r_dot], "DOP853", time, rtol=1e-12, atol=1e-13).y.T
    _, potential, twist = (np.array(y) for y in f.map(len(x))(x[:, 0], np.tile(constants[:, None], len(x))))
    return xr.Dataset(
        {
            "r": ("time", x[:, 0]),
            "r_dot": ("time", x[:, 1]),
            "potential": ("time", potential.ravel()),
            "twist": (("time", "of"), twist.T),
        },
        coords={"time": time, "of": ["v", "w"]},
        attrs={"constants": constants},
    )


def run() -> dict[str, xr.Dataset]:
    keep = partial(pf.run, duration=3.0, step=5e-4, every=60)
    m = mechanism()
    return {
        "full": keep(m, *rover_start()),
        "reduced": keep(pf.reduce(m, along=FIELDS), *rover_start()),
        "one degree of freedom": one_degree_of_freedom(),
    }


WAYS = ("ahead [N s]", "of turning [N m s]")


def along_ways(r: xr.Dataset) -> np.ndarray:
    """(time, 2) momenta of the rover along rolling ahead and turning."""
    p = np.einsum("tij,tj->ti", pf.mass_matrix(mechanism(), r["q"].values), r["v"].values)
    b, c = ROVER["b"], ROVER["c"]
    return np.stack([p[:, 0] + (p[:, 3] + p[:, 4]) / b, p[:, 2] + (p[:, 4] - p[:, 3]) * c / b], axis=1)


def figures(result: dict[str, xr.Dataset]) -> dict[str, Any]:
    figure = blank_figure(10.0, 3.4)
    way, momenta, phase = figure.subplots(1, 3)
    full, reduced, one = result.values()
    way.plot(full["q"][:, 0], full["q"][:, 1])
    way.set(xlabel="x [m]", ylabel="y [m]", aspect="equal", title="axle's centre", xticks=(-0.1, 0, 0.1))
    for name, x in zip(WAYS, along_ways(full).T, strict=True):
        momenta.plot(full["time"], x, label=name)
    for i, (name, unit) in enumerate((("first", "N m s"), ("second", "N s"))):
        momenta.plot(full["time"], reduced["momentum"][:, i], "--", label=f"{name} constant [{unit}]")
    momenta.set(xlabel="time [s]", title="momenta")
    momenta.legend()
    phase.plot(full["q"][:, 5], full["v"][:, 5], label="full")
    phase.plot(one["r"][::2], one["r_dot"][::2], ".", label="one degree of freedom")
    phase.set(xlabel="r [m]", ylabel="its speed [m/s]", title="load")
    phase.legend()
    return {"rover": figure}


def claims(result: dict[str, xr.Dataset]) -> Iterator[Claim]:
    full, reduced, one = result.values()
    source = "[chhabra14 prop. 4.2.15]"
    for what in ("q", "v"):
        yield Claim(f"rover: {what} minus that with reactions", np.abs(reduced[what] - full[what]).max(), 0, 1e-9, source)
    along, r = along_ways(full), ca.SX.sym("r")
    sigma = ca.Function("sigma", [r], [shares(r)])
    found = np.array([np.array(sigma(x)) @ y for x, y in zip(full["q"].values[:, 5], along, strict=True)])
    for i, name in enumerate(("first", "second")):
        recorded = reduced["momentum"].values[:, i]
        off = np.abs(found[:, i] - recorded).max()
        yield Claim(f"rover: {name} constant in the state minus that of the machine with reactions", off, 0, 1e-11, source)
        yield Claim(
            f"rover: {name} constant in the state minus that by hand", recorded[0] - one.attrs["constants"][i], 0, 1e-14, source
        )
    for name, x in zip(WAYS, along.T, strict=True):
        yield Claim(f"rover: change of the momentum {name}, which is not conserved", np.ptp(x), 0.02, 0, source, "at least")
    off = np.abs(one["r"].values - full["q"].values[:, 5]).max()
    yield Claim("rover with one degree of freedom: position of the load [m]", off, 0, 1e-8, source)
    off = np.abs(one["twist"].values - full["v"].values[:, [0, 2]]).max()
    yield Claim("rover with one degree of freedom: reconstructed rolling and turning", off, 0, 1e-7, source)
    H = ROVER["load"] * one["r_dot"] ** 2 / 2 + one["potential"]
    yield Claim(
        "rover with one degree of freedom: energy minus the machine's [J]", np.abs(H - full["energy"]).max(), 0, 1e-8, source
    )
    left = 2 * (np.ptp(reduced["momentum"].values, axis=0) != 0).sum()
    yield Claim("rover: dimension without both constants and wheel angles, of 6 after the first step", left, 2, 0, source)
