"""Tracking of a prototype: a planar body that follows a turning one, and a PVTOL that loops. [konz25 4.7.4 - 4.8.2]

The three approaches differ in what inertia and damping feel: the motion of points, of the body, or of the velocities. The
thesis gives the planar body's numbers and no others; those of the PVTOL (1 kg, 24 cm arms, propellers that lean so that eps =
5 cm, poles at -6 and -2.4 +- 1.2 i) are ours.
"""

from __future__ import annotations

from collections.abc import Iterator

import casadi as ca
import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import pfaffian as pf
from pfaffian import control
from pfaffian.control.prototype import APPROACHES

EPS, MASS, INERTIA, G = 0.05, 1.0, 0.02, 9.81
LEAN = 0.2
"""Of the PVTOL's propellers [rad]."""
RADIUS, LOOP = 1.0, 2.5
"""Of the loop [m], and from rest to rest [s]."""
LIMITS = (0.0, 25.0)
"""Of each propeller [N]: in the loop both together carry 3.6 times the weight."""


def mechanism() -> pf.Mechanism:
    """The PVTOL."""
    c, s = np.cos(LEAN), np.sin(LEAN)
    arm = INERTIA * s / (MASS * EPS * c)
    sides = {"right": 1, "left": -1}
    motors = [pf.thruster(n, "body", axis=(x * s, c, 0), point=(x * arm, 0, 0), limits=LIMITS) for n, x in sides.items()]
    joint = pf.joint("plane", "planar", "world", "body")
    return pf.mechanism("PVTOL", [pf.body("body", MASS, inertia=INERTIA)], [joint], gravity=(0, -G, 0), actuators=motors)


def planar_body() -> pf.Mechanism:
    joint = pf.joint("plane", "planar", "world", "body")
    return pf.actuate_all(pf.mechanism("planar body", [pf.body("body", 1.0, inertia=0.3)], [joint], gravity=(0, 0, 0)))


# -- laws ------------------------------------------------------------------------------------------------------------------


def turning() -> control.Reference:
    return control.function_of_time(lambda t: [0, 0, np.pi * t], 3)


def decoupled() -> list[control.Pair]:
    """Mass 1, damping 4, stiffness 4 at the centre. [konz25 4.7.5]"""
    pm = pf.pseudo_matrix
    return [control.pair("body", inertia=pm(1, moments=0.1), damping=pm(4, moments=0.5), stiffness=pm(4, moments=2.0))]


def looping() -> control.Reference:
    """The point eps above the PVTOL once round a vertical circle, upside down at its top."""
    angle = control.rest_to_rest([0.0], [2 * np.pi], LOOP)
    circle = control.along(lambda a: ca.vertcat(RADIUS * ca.sin(a), RADIUS * (1 - ca.cos(a))), angle)
    return control.pvtol_reference(circle, lean=EPS)


def hovering() -> list[control.Pair]:
    x = control.hover_placement([-6.0] * 4, lean=EPS)
    pm = pf.pseudo_matrix
    inertia, damping = pm(x.mass, (0, x.s, 0), x.inertia), pm(x.damping, (0, x.h, 0))
    return [control.pair("body", inertia=inertia, damping=damping, stiffness=pm(x.stiffness, (0, x.h, 0), x.moment))]


def run() -> dict[str, xr.Dataset]:
    results = {}
    for a in APPROACHES:
        law = control.prototype_tracking(decoupled(), turning(), approach=a)
        results[f"planar {a}"] = pf.run(planar_body(), [0, 1, 0], duration=6.0, step=1e-3, every=10, control=law)
        law = control.prototype_tracking(hovering(), looping(), approach=a, limits="actuators")
        start = [-0.2, -EPS + 0.15, 0.3]
        results[f"loop {a}"] = pf.run(mechanism(), start, duration=6.0, step=1e-3, every=10, control=law)
    on = control.prototype_tracking(hovering(), looping())
    q, v = state(looping(), 0.0)
    results["loop from the start"] = pf.run(mechanism(), q, v, duration=3.0, step=5e-4, every=20, control=on)
    return results


def state(reference: control.Reference, t: float) -> tuple[np.ndarray, np.ndarray]:
    """q and v of the PVTOL on its reference."""
    x = reference.at(ca.SX(t), ca.SX(0, 1))
    q, rate = (np.array(ca.DM(ca.evalf(y))).ravel() for y in (x.value, x.rate))
    c, s = np.cos(q[2]), np.sin(q[2])
    return q, np.array([c * rate[0] + s * rate[1], -s * rate[0] + c * rate[1], rate[2]])


def along_reference(reference: control.Reference, times: np.ndarray) -> np.ndarray:
    t = ca.SX.sym("t")
    f = ca.Function("q_R", [t], [reference.at(t, ca.SX(0, 1)).value])
    return np.array([np.array(f(x)).ravel() for x in times])


def figures(result: dict[str, xr.Dataset]) -> dict[str, Figure]:
    figure = Figure(figsize=(11, 3.6), layout="constrained")
    path, energy, loop = figure.subplots(1, 3)
    for a in APPROACHES:
        r, fly = result[f"planar {a}"], result[f"loop {a}"]
        path.plot(r["q"][:, 0], r["q"][:, 1], label=a)
        energy.semilogy(r["time"], np.maximum(r["prototype_energy"], 1e-8), label=a)
        loop.plot(fly["q"][:, 0], fly["q"][:, 1])
    goal = along_reference(looping(), np.linspace(0, LOOP, 200))
    loop.plot(goal[:, 0], goal[:, 1], "k:", label="reference")
    path.set(xlabel="x [m]", ylabel="y [m]", title="planar body, reference turning at 0", aspect="equal")
    energy.set(xlabel="time [s]", ylabel="energy [J]", title="energy of the error")
    loop.set(xlabel="x [m]", ylabel="height [m]", title="PVTOL, inputs within limits", aspect="equal")
    loop.legend(loc="lower right")
    for ax in (path, energy):
        ax.legend(loc="best")
    return {"tracking": figure}


GOLDEN = {"particle": (0.0, 0.406006), "body": (-0.425168, -0.406006), "energy": (-0.094439, -0.362186)}
"""Position of the planar body after a second. [konz25 fig. 4.8, recomputed]"""


def claims(result: dict[str, xr.Dataset]) -> Iterator[pf.Claim]:
    for a in APPROACHES:
        r = result[f"planar {a}"]
        off = np.abs(r.q.sel(time=1.0, method="nearest").values[:2] - GOLDEN[a]).max()
        yield pf.Claim(f"planar body by {a}: off after 1 s [m]", float(off), 0, 1e-6, "[konz25 fig. 4.8]")
        rise = float(r.prototype_power.max())
        if a != "particle":
            yield pf.Claim(f"energy by {a} never rises [W]", rise, 0, 1e-12, "[konz25 (4.23), (4.32)]", "at most")
    r = result["loop from the start"]
    apart = r.q.values - along_reference(looping(), r.time.values)
    apart[:, 2] = np.sin(apart[:, 2] / 2)  # of a whole turn nothing is left
    off = np.abs(apart).max()
    yield pf.Claim("loop: off the reference from a start on it [m]", float(off), 0, 1e-6, "[konz25 (4.132)], corrected")
    yield pf.Claim("what is left to match there [N]", float(np.abs(r.matching_force).max()), 0, 1e-4, "[konz25 (4.142)]")
    yield pf.Claim("turned by [rad]", float(r.q.values[-1, 2]), 2 * np.pi, 1e-6, "ours")
    for a in APPROACHES:
        r = result[f"loop {a}"]
        slack = float(r.limit_slack.min())
        yield pf.Claim(f"loop by {a}: least left to the limits [N]", slack, 0, 1e-9, "[konz25 (4.64)]", "at least")
        off = np.abs(r.q.values[-1, :2] - (0, -EPS)).max()
        yield pf.Claim(f"off at the end by {a} [m]", float(off), 0, 0.02, "ours", "at most")
    used = max(float(result[f"loop {a}"].limit_active.sum()) for a in APPROACHES)
    yield pf.Claim("limits that held an input somewhere", used, 1, 0, "ours", "at least")
