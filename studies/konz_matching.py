"""Matching force while a quadcopter and a bicopter come to rest from a bad start, in closed form. [konz25 4.8.3, 4.8.4]

Both have four inputs for six degrees of freedom, so that they cannot match the prototype exactly; the matching force is the
remainder. At a set point the thesis gives it in closed form, (4.149) and (4.155), used here as corrected: it consists only of
Theta_z w_x w_z and Pi_z (R_zE^x + R_xE^z) / 2 and of the corresponding terms in y. A start with errors in one vertical plane
therefore has no matching force, even nearly upside down, and the prototype's energy decreases as with six inputs. A start with
errors in all directions also disturbs the heading and has a matching force until the heading has converged. At a constant
reference the three approaches are identical.

The thesis gives no numbers: machines as in `konz_quadcopter` and `konz_bicopter`, poles of tilt -5 and -5 exp(+-0.4 i), heading
w0 = 4 rad/s and zeta = 0.8 with three tenths of the tilt's inertia, and starts are ours. Thrusts have no limits here.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import xarray as xr
from scipy.spatial.transform import Rotation

import pfaffian as pf
from pfaffian import control
from pfaffian.study import Claim, blank_figure

POLES, HEADING, SHARE = [-5.0, -5.0, -5 * np.exp(0.4j), -5 * np.exp(-0.4j)], (4.0, 0.8), 0.3
BICOPTER = {"mass": 1.0, "inertia": (0.015, 0.008, 0.018), "arm": 0.25, "height": 0.05, "lean": np.radians(15)}
QUADCOPTER_INERTIA = (17.9e-3, 17.9e-3, 30.7e-3)
GOAL = (0, 0, 0, 0, 0, 0, 1.0)
STARTS = {
    "in a plane": ([0, -0.5, 0.5], [2.6, 0, 0], [-2.0, 0, 0]),
    "all round": ([1.0, -0.5, 0.5], [1.5, -0.7, 1.6], [1.0, -2.0, 2.0]),
}
"""Initial errors: position [m], rotation vector [rad], and angular velocity [rad/s]."""


def mechanism() -> pf.Mechanism:
    """The bicopter."""
    return pf.multicopters.bicopter("bicopter", **BICOPTER)


def machines() -> dict[str, tuple[pf.Mechanism, tuple[float, float], tuple[float, ...]]]:
    """By name: mechanism, (eps_x, eps_y), principal inertias."""
    x = pf.multicopters.QUADCOPTER
    quadcopter = pf.multicopters.thrust_multicopter(
        "quadcopter", x["azimuths"], x["spins"], mass=x["mass"], inertia=QUADCOPTER_INERTIA, arm=x["arm"],
        thrust=x["thrust"], torque=x["torque"],
    )  # fmt: skip
    lean = pf.multicopters.bicopter_coupling_length(**BICOPTER)
    return {"quadcopter": (quadcopter, (0.0, 0.0), QUADCOPTER_INERTIA), "bicopter": (mechanism(), lean, BICOPTER["inertia"])}


def run() -> dict[str, xr.Dataset]:
    results = {}
    for machine, (m, lean, _) in machines().items():
        prototype = control.quadcopter_pair("body", POLES, heading=HEADING, inertia_ratio=SHARE, coupling_length=lean)
        law = control.prototype_tracking([prototype], control.set_point(GOAL), approach="body")
        for start, (place, turn, rates) in STARTS.items():
            q, v = np.r_[place, Rotation.from_rotvec(turn).as_quat()], np.r_[0, 0, 0, rates]
            results[f"{machine}, {start}"] = pf.run(m, q, v, duration=4.0, step=2e-3, every=5, control=law)
    return results


def closed_form(machine: str, r: xr.Dataset) -> np.ndarray:
    """(time, 6) matching force btilde along a run. [konz25 (4.149), (4.155), corrected]"""
    _, (ex, ey), (x, y, z) = machines()[machine]
    prototype = control.hover_placement(POLES, coupling_length=ey)
    a, Theta_z = prototype.h - prototype.s, SHARE * prototype.inertia
    Pi_z, E, w = Theta_z * HEADING[0] ** 2, Rotation.from_quat(r["q"].values[:, 3:]).as_matrix(), r["v"].values[:, 3:]
    b1 = (Theta_z - a * ((x - z) / y * ex - ey)) * w[:, 0] * w[:, 2] - Pi_z / 2 * (E[:, 0, 2] + E[:, 2, 0])
    b2 = (Theta_z - a * ((y - z) / x * ey - ex)) * w[:, 1] * w[:, 2] - Pi_z / 2 * (E[:, 1, 2] + E[:, 2, 1])
    f, g = b1 / (prototype.h - ex), b2 / (prototype.h - ey)
    return np.stack([f, g, 0 * f, -ey * g, ex * f, 0 * f], axis=1)


def figures(result: dict[str, xr.Dataset]) -> dict[str, Any]:
    figure = blank_figure(10.2, 6.0)
    for (turn, force, energy), machine in zip(figure.subplots(2, 3), machines(), strict=True):
        for start, colour in zip(STARTS, ("C0", "C1"), strict=True):
            r = result[f"{machine}, {start}"]
            R, t = Rotation.from_quat(r["q"].values[:, 3:]).as_matrix(), r["time"].values
            turn.plot(t, np.degrees(np.arccos(R[:, 2, 2])), color=colour, label=f"tilt, {start}")
            energy.semilogy(t, np.maximum(r["prototype_energy"], 1e-9), color=colour)
            if start != "in a plane":
                heading = np.degrees(np.arctan2(R[:, 1, 0] - R[:, 0, 1], R[:, 0, 0] + R[:, 1, 1]))
                turn.plot(t, heading, color="C2", label=f"heading, {start}")
        found, known = r["matching_force"].values, closed_form(machine, r)
        for i, name in enumerate(("along x", "along y")):
            force.plot(t, found[:, i], color=f"C{i + 3}", label=name)
            force.plot(t[::12], known[::12, i], ".", color=f"C{i + 3}", markersize=4, label=f"{name}, closed form")
        turn.set(ylabel="[degrees]", title=machine)
        force.set(ylabel="matching force [N]", title="off all round")
        energy.set(ylabel="energy of the prototype [J]")
        for ax in (turn, force, energy):
            ax.set(xlabel="time [s]")
        turn.legend()
        force.legend()
    return {"matching": figure}


NEAR = {"quadcopter, all round": 3e-5}
"""Final distance from the set point [m]; 3e-3 for the other runs."""
MOST, LATE = {"quadcopter": 0.25, "bicopter": 1.1}, {"quadcopter": 5e-9, "bicopter": 5e-6}
"""Bounds of the matching force [N]: its maximum is at least MOST, in the last half second it is at most LATE."""


def claims(result: dict[str, xr.Dataset]) -> Iterator[Claim]:
    for name, r in result.items():
        machine, start = name.split(", ")
        found, known = r["matching_force"].values, closed_form(machine, r)
        yield Claim(f"{name}: run ended early", float(r["status"] != 0), 0)
        source = {"quadcopter": "[konz25 (4.149), corrected]", "bicopter": "[konz25 (4.155), corrected]"}[machine]
        yield Claim(f"{name}: matching force minus its closed form [N]", np.abs(found - known).max(), 0, 1e-13, source)
        yield Claim(
            f"{name}: distance from the set point at the end [m]", np.abs(r["q"].values[-1, :3]).max(), 0, NEAR.get(name, 3e-3)
        )
        if start == "in a plane":
            yield Claim(f"{name}: largest matching force [N]", np.abs(found).max(), 0, 1e-13, source, "at most")
            rise = float(r["prototype_power"].max())
            yield Claim(f"{name}: largest rate of the energy [W]", rise, 0, 1e-12, "[konz25 (4.23)]", "at most")
        else:
            yield Claim(f"{name}: largest matching force [N]", np.abs(found).max(), MOST[machine], 0, "", "at least")
            late = np.abs(found[-50:]).max()
            yield Claim(f"{name}: matching force in the last half second [N]", late, 0, LATE[machine], "", "at most")
