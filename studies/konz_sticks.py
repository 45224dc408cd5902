"""A quadcopter by remote control: a Bessel filter turns the accelerations set by the sticks into a reference. [konz25 5.5]

The sticks give the desired acceleration in the frame of the heading, and the rate of the heading, 50 times per second. A
Bessel low-pass filter of order four and 7 Hz, discretised exactly for 5 ms (5.72), provides them with three derivatives:
enough for the attitude, its rate and its acceleration. The prototype has the machine's mass and moments but no stiffness and
damping of the position, k = d = 0, so that its particle-based law has the thrust F_z = m R_z^T (r''_R - a_G) and leaves
position and velocity to the pilot.

The machine is the simplified quadcopter of Table 5.1, without air. Ours, since the thesis does not give them: the attitude
control (12 rad/s and zeta 0.8 about all axes), the movements of the sticks, and the width of the Gaussian window of 43 samples
with which the filter is compared: its gain at 7 Hz is 1/sqrt(2), like that of the Bessel filter. Then both are equally smooth,
and the window delays by half its length.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import casadi as ca
import numpy as np
import xarray as xr
from scipy.spatial.transform import Rotation

import pfaffian as pf
from pfaffian import control
from pfaffian.control import Command, Sample, estimation
from pfaffian.maths import so3
from pfaffian.study import Claim, blank_figure

PERIOD, STEP, STICKS = 0.005, 0.0025, 0.02
"""Period of the law, step of the integrator, and period of the sticks [s]."""
CUTOFF, WINDOW = 7.0, 43
"""Cut-off frequency [Hz] and length of the window in samples. [konz25 (5.72), fig. 5.23]"""
MASS, INERTIA, G = pf.multicopters.QUADCOPTER["mass"], np.array([17.9e-3, 17.9e-3, 30.7e-3]), 9.81
HOLDS, DAMPS = 12.0, 0.8
DURATION = 8.0
NAMES = ("x", "y", "z", "qx", "qy", "qz", "qw")
INPUTS = ("forwards", "left", "up", "turning")


def mechanism() -> pf.Mechanism:
    x = pf.multicopters.QUADCOPTER
    return pf.multicopters.thrust_multicopter(
        "quadcopter",
        x["azimuths"],
        x["spins"],
        mass=MASS,
        inertia=INERTIA,
        arm=x["arm"],
        thrust=x["thrust"],
        torque=x["torque"],
    )


def sticks() -> np.ndarray:
    """(readings, 4) sticks: forwards, left, up [m/s^2] and turning [rad/s]. Forwards and back, sideways while turning, up."""
    t = STICKS * np.arange(round(DURATION / STICKS))
    on = lambda begin, end: ((t >= begin) & (t < end)).astype(float)  # noqa: E731
    forwards = 4 * (on(0.5, 1.2) - on(1.2, 1.9)) + 3 * np.sin(3 * t) * on(5.0, 7.0)
    left = 4 * (on(2.5, 3.2) - on(3.2, 3.9)) + 3 * np.cos(3 * t) * on(5.0, 7.0)
    up = 3 * (on(4.0, 4.4) - on(4.4, 4.8))
    return np.stack([forwards, left, up, 2.0 * on(2.5, 5.5)], axis=1)


def leaning() -> ca.Function:
    """Function (y, psi) -> (3,) acceleration along the world's axes; attitude, its rate and its acceleration, (4,) each.

    y: (3, 3) acceleration in the frame of the heading and its first two derivatives.   psi: (3,) heading and two derivatives.
    """
    s, y, psi = ca.SX.sym("s"), ca.SX.sym("y", 3, 3), ca.SX.sym("psi", 3)
    powers = ca.vertcat(1, s, s**2 / 2)
    heading = ca.dot(psi, powers)
    bend = ca.SX(so3.rotation((0, 0, 1), heading)) @ (y @ powers)
    q = control.thrust_attitude(bend + ca.DM([0, 0, G]), heading)
    rate = ca.jacobian(q, s)
    return ca.Function("leaning", [y, psi], ca.substitute([bend, q, rate, ca.jacobian(rate, s)], [s], [ca.SX(0)]))


def agent() -> control.Control:
    pm = pf.forces.pseudo_matrix
    pair = control.pair(
        "body", inertia=pm(MASS, moments=INERTIA), damping=pm(0, moments=2 * DAMPS * HOLDS * INERTIA),
        stiffness=pm(0, moments=HOLDS**2 * INERTIA),
    )  # fmt: skip
    track, lean = control.prototype_tracking([pair], control.sampled(NAMES), approach="particle"), leaning()
    F, G_ = estimation.bessel_filter(CUTOFF, PERIOD)

    def step(s: Sample) -> Command:
        x = ca.reshape(s["filter"], 4, 4)  # one column for each stick
        psi = ca.vertcat(s["heading"], x[:2, 3])
        bend, q, rate, turn = lean(x[:3, :3].T, psi)
        nowhere = ca.SX.zeros(3, 1)
        command = track.law(s.terms, ca.SX(0, 1), ca.vertcat(nowhere, q, nowhere, rate, bend, turn), ca.SX(0, 1))
        further = ca.dot(x[:3, 3], ca.DM([PERIOD, PERIOD**2 / 2, PERIOD**3 / 6]))
        readings = ca.horzcat(*[s[name] for name in INPUTS])
        d_next = {"filter": ca.vec(ca.DM(F) @ x + ca.DM(G_) @ readings), "heading": s["heading"] + further}
        return Command(command.u, faults=command.faults, signals={"asked": bend, "attitude": q}, d_next=d_next)

    state = {"filter": np.zeros(16), "heading": 0.0}
    return control.discrete(step, PERIOD, state=state, inputs=INPUTS, faults=track.faults)


def window() -> np.ndarray:
    """(43,) Gaussian weights with the gain 1 / sqrt(2) at the cut-off frequency."""
    width = np.sqrt(np.log(2)) / (2 * np.pi * CUTOFF * PERIOD)
    w = np.exp(-((np.arange(WINDOW) - WINDOW // 2) ** 2) / (2 * width**2))
    return w / w.sum()


def steps() -> xr.Dataset:
    """Step responses of both filters."""
    F, G_ = estimation.bessel_filter(CUTOFF, PERIOD)
    x, found = np.zeros(4), []
    for _ in range(80):
        found.append(x[0])
        x = F @ x + G_
    slid = np.convolve(np.ones(80), window())[:80]
    return xr.Dataset({"bessel": ("time", found), "window": ("time", slid)}, {"time": PERIOD * np.arange(80)})


def half(t: np.ndarray, y: np.ndarray) -> float:
    """Time at which a step response reaches one half [s]."""
    return float(np.interp(0.5, y, t))


def run() -> dict[str, xr.Dataset]:
    m, v = mechanism(), np.zeros((2, 6))
    v[1, :3] = 1.0, -0.5, 0.3
    q = np.tile(m.neutral(), (2, 1))
    both = pf.run(m, q, v, duration=DURATION, step=STEP, every=2, control=agent(), u=sticks(), u_step=STICKS, record="all")
    both["sticks"] = (("reading", "stick"), sticks())
    return {"from rest": both.isel(run=0), "on the way": both.isel(run=1), "steps": steps()}


def world(r: xr.Dataset) -> tuple[np.ndarray, np.ndarray]:
    """Rotations (n, 3, 3) and velocities along the world's axes (n, 3)."""
    R = Rotation.from_quat(r["q"].values[:, 3:7]).as_matrix()
    return R, np.einsum("nij,nj->ni", R, r["v"].values[:, :3])


def figures(result: dict[str, xr.Dataset]) -> dict[str, Any]:
    figure = blank_figure(9.5, 5.6)
    (step, bend), (turn, path) = figure.subplots(2, 2)
    s, r = result["steps"], result["from rest"]
    step.plot(1e3 * s["time"], s["bessel"], label="Bessel, order 4, 7 Hz")
    step.plot(1e3 * s["time"], s["window"], label="Gaussian window of 43")
    step.set(xlabel="time [ms]", ylabel="stick", title="response to a step of a stick")
    _, v = world(r)
    t, felt = r["time"].values, np.gradient(v, PERIOD, axis=0)
    for i, name in enumerate("xy"):
        bend.plot(t, r["asked"][:, i], color="0.7", linestyle="-", linewidth=3, label="desired" if not i else None)
        bend.plot(t, felt[:, i], label=f"along {name}")
    bend.set(xlabel="time [s]", ylabel="acceleration [m/s^2]", title="flight")
    turn.plot(t, np.degrees(r["heading"].values.ravel()), color="0.7", linestyle="-", linewidth=3, label="desired")
    turn.plot(t, np.degrees(heading(r)), label="flown")
    turn.set(xlabel="time [s]", ylabel="heading [degrees]")
    path.plot(r["q"][:, 0], r["q"][:, 1])
    some = r["q"].values[::80]
    noses = Rotation.from_quat(some[:, 3:7]).as_matrix()[:, :, 0]
    path.quiver(some[:, 0], some[:, 1], noses[:, 0], noses[:, 1], width=0.004, scale=12, color="C1")
    path.set(xlabel="x [m]", ylabel="y [m]", title="path and heading")
    path.axis("equal")
    for axes in (step, bend, turn):
        axes.legend()
    return {"sticks": figure}


def heading(r: xr.Dataset) -> np.ndarray:
    R, _ = world(r)
    return np.unwrap(np.arctan2(R[:, 1, 0], R[:, 0, 0]))


def claims(result: dict[str, xr.Dataset]) -> Iterator[Claim]:
    r, other, s = result["from rest"], result["on the way"], result["steps"]
    for name in ("from rest", "on the way"):
        yield Claim(f"{name}: run ended early", float(result[name]["status"] != 0), 0)
    R, v = world(r)
    carried = MASS * np.einsum("ni,ni->n", R[:, :, 2], r["asked"].values + np.array([0, 0, G]))
    off = np.abs(r["u"].values.sum(axis=1) - carried).max()
    yield Claim("thrust minus m R_z^T (r''_R - a_G) [N]", off, 0, 1e-10, "[konz25 (5.71)]")
    _, w = world(other)
    changed = np.abs(w - v - np.array([1.0, -0.5, 0.3])).max()
    yield Claim("change of the velocity added at the start [m/s]", changed, 0, 1e-9, "k = d = 0")
    apart = np.abs(np.cumsum(r["asked"].values, axis=0)[:-1] * PERIOD - v[1:]).max()
    yield Claim("error of the velocity [m/s]", apart, 0, 0.05, "ours")
    seen = Rotation.from_quat(r["attitude"].values).inv() * Rotation.from_quat(r["q"].values[:, 3:7])
    yield Claim("error of the attitude [degrees]", np.degrees(seen.magnitude()).max(), 0, 2.0, "ours")
    turned = np.degrees(heading(r)[-1])
    yield Claim("heading after 3 s of 2 rad/s [degrees]", turned, np.degrees(6.0), 0.5, "ours")
    t = s["time"].values
    yield Claim("Bessel: time to half of a step [s]", half(t, s["bessel"].values), 0.0471, 5e-4, "2.11 / (2 pi 7 Hz)")
    yield Claim("window: time to half of a step [s]", half(t, s["window"].values), 0.105, 5e-3, "half its length")
    yield Claim("Bessel: overshoot", float(s["bessel"].max()) - 1, 0.0084, 1e-3, "order four")
    back = np.abs(np.sum(window() * np.exp(-2j * np.pi * CUTOFF * PERIOD * np.arange(WINDOW))))
    yield Claim("window: gain at 7 Hz", back, np.sqrt(0.5), 1e-3, "as Bessel's")
