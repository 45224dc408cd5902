"""Robustness of a quadcopter's agent to model errors: noise, latency, mass, inertia, wind. [konz25 ch. 5]

A quadcopter of Table 5.1 with its propellers' thrusts as inputs is flown by an agent as in the thesis: estimator (angular
velocity and bias of the moment, attitude and position with motion capture every 0.1 s, bias of the force), body-based tracking
within limits, 200 times per second and a period late. It flies 1.5 m to the side and back, 1.3 s each way, and turns by a right
angle.

One quantity at a time differs from the agent's model: the noise of all sensors grows, captures are older than assumed, the
machine is heavier or lighter, has more or less inertia, or there is a steady wind along its path. Each flight is one run of a
batch, and one kernel serves all. A flight has failed if the machine is ever a metre from its reference, or if the run stops.

The variations are ours, since the thesis has none; poles, noise and limits are as in the study konz-flight, whose machine also
has turning propellers and motors.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import casadi as ca
import numpy as np
import xarray as xr

import pfaffian as pf
from pfaffian import control
from pfaffian.control import Command, Sample, estimation
from pfaffian.maths import so3
from pfaffian.study import Claim, blank_figure

PERIOD, STEP, SETTLE, DURATION = 0.005, 0.001, 2.0, 6.5
CAPTURE, DELAY, SAMPLES = 0.1, 0.034, 20
"""Period and delay of motion capture [s], and number of samples in the agent's memory: 100 ms."""
X = pf.multicopters.QUADCOPTER
INERTIA = np.array([17.9e-3, 17.9e-3, 30.7e-3])
LOW, HIGH, G, SLOWED = 0.3, 7.85, 9.81, 0.32
"""Limits of a thrust [N], gravity [m/s^2], and drag d [kg/s]."""
GYRO, ACCELEROMETER, PLACE, TURN = 0.01, 0.2, 5e-4, 5e-4
NAMES = ("x", "y", "z", "qx", "qy", "qz", "qw")
REFERENCE_INPUTS = tuple(f"{n}{mark}" for mark in ("", "'", "''") for n in NAMES)
NOISE, LATER, HEAVIER, LAZIER, WIND = (
    pf.Parameter("noise", 1.0), pf.Parameter("later", 0.0, "s"), pf.Parameter("heavier", 1.0), pf.Parameter("lazier", 1.0),
    pf.Parameter("wind", 0.0, "m/s"),
)  # fmt: skip
"""Quantities that the agent does not know; `later` is the additional age of its captures, in whole periods."""
BIAS = tuple(pf.Parameter(n, 0.0) for n in ("F_x", "F_y", "F_z", "tau_x", "tau_y", "tau_z"))
FAILED = 1.0
"""Distance from the reference at which a flight has failed [m]."""


class Sweep(NamedTuple):
    """Variation of one quantity.

    name: name of its Parameter.   values: its values.   label, scale: of the axis.   known: value in the agent's model.
    """

    name: str
    values: tuple[float, ...]
    label: str
    known: float
    scale: float = 1.0


SWEEPS = (
    Sweep("noise", (0.0, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 96.0, 128.0), "noise, relative to the sensors'", 1.0),
    Sweep("later", (-0.03, -0.02, -0.01, 0.0, 0.01, 0.02, 0.03, 0.04, 0.05, 0.06), "additional age of captures [ms]", 0.0, 1e3),
    Sweep("heavier", (0.5, 0.7, 0.9, 1.0, 1.1, 1.4, 1.8, 2.2, 2.6, 3.0), "mass, relative to the model", 1.0),
    Sweep("lazier", (0.2, 0.4, 0.7, 0.9, 1.0, 1.1, 1.5, 2.0, 3.0, 4.0, 6.0), "inertia, relative to the model", 1.0),
    Sweep("wind", (0.0, 3.0, 6.0, 9.0, 12.0, 16.0, 20.0, 25.0, 30.0), "wind [m/s]", 0.0),
)
TOGETHER = {"noise": 2.0, "later": 0.02, "heavier": 1.1, "lazier": 1.1, "wind": 4.0}
"""Variation of all quantities at once."""


def mechanism() -> pf.Mechanism:
    """The true machine, with the parameters that the agent does not know."""
    bare = machine("quadcopter", X["mass"] * HEAVIER.symbol, [x * LAZIER.symbol for x in INERTIA], (), (HEAVIER, LAZIER))
    air = pf.wrench("air", "body", pushed, axes="LOCAL")
    return bare.with_(forces=[air], parameters=[NOISE, LATER, HEAVIER, LAZIER, WIND])


def pushed(k: pf.Kinematics) -> ca.SX:
    """Dissipation of the drag in a wind along x."""
    still = k.velocity("body") - ca.vertcat(WIND.symbol, 0, 0)
    return ca.vertcat(-SLOWED * (k.rotation("body").T @ still), 0, 0, 0)


def machine(name: str, mass: object, inertia: object, bias: object, parameters: object) -> pf.Mechanism:
    return pf.multicopters.thrust_multicopter(
        name, X["azimuths"], X["spins"], mass=mass, inertia=inertia, arm=X["arm"], thrust=X["thrust"], torque=X["torque"],
        bias=bias or (0,) * 6, parameters=parameters,
    )  # fmt: skip


def tracking(model: pf.Mechanism) -> tuple[ca.Function, tuple[str, ...]]:
    """Body-based tracking with the agent's model: a function (q, v, reference, biases) -> u and faults, and the meanings of the
    faults."""
    pair = control.quadcopter_pair("body", [-9.0] * 4, heading=(8.0, 1.0), inertia_ratio=0.1)
    limits = np.vstack([-np.eye(4), np.eye(4)]), np.array([-LOW] * 4 + [HIGH] * 4)
    law_of_model = control.prototype_tracking([pair], control.sampled(NAMES), approach="body", limits=limits)
    S, w = pf.symbols(model), ca.SX.sym("w", len(REFERENCE_INPUTS))
    command = law_of_model.law(pf.Terms(model, S.q, S.v, ca.SX(model.nu, 1), S.t), ca.SX(0, 1), w, ca.SX(0, 1))
    f = ca.Function("law", [S.q, S.v, w, model.p_symbols], [command.u, command.faults])
    return f, tuple(fault.meaning for fault in law_of_model.faults)


def felt(T: pf.Terms, motion: object) -> ca.SX:
    """Specific force measured by an accelerometer in the body's frame [m/s^2]."""
    return motion.v_dot[:3] + ca.cross(T.v[3:6], T.v[:3]) + G * T.kinematics.rotation("body").T[:, 2]


def law() -> control.Control:
    """The agent, which knows the machine of Table 5.1."""
    model = machine("as known", X["mass"], INERTIA, BIAS, BIAS)
    track, meanings = tracking(model)
    S = pf.symbols(model)
    B = np.array(ca.Function("B", [S.q, model.p_symbols], [S.B])(model.neutral(), model.p_defaults))
    sensors = {
        "gyro": control.sensor(lambda k: k.v[3:6], NOISE * GYRO, unit="rad/s"),
        "accelerometer": control.sensor(felt, NOISE * ACCELEROMETER, moving=True, unit="m/s^2"),
        "capture": control.sensor(
            lambda k: k.q[:7], ca.vertcat(*[NOISE * PLACE] * 3, *[NOISE * TURN] * 4), period=CAPTURE, phase=CAPTURE - DELAY
        ),
    }

    def step(s: Sample) -> Command:
        wrench = ca.DM(B) @ s["thrusts"]
        w, tau = estimation.turning_step(s["w_hat"], s["tau_hat"], s["gyro"], wrench[3:], np.diag(INERTIA), PERIOD)
        arrives = s["tick"] - LATER.symbol / PERIOD  # the agent assumes that every capture is DELAY old
        came = ca.logic_and(ca.fabs(ca.fmod(arrives + 0.5, round(CAPTURE / PERIOD)) - 0.5) < 0.25, s["tick"] > 14)
        seen = ca.if_else(came, s["capture"][3:], ca.DM([0, 0, 0, 1]))
        fix = estimation.Fix(s["capture"][:3], seen / ca.norm_2(seen), DELAY, came)
        here = estimation.fix_step(estimation.FlightMemory(s["estimate"], s["samples"], s["fixes"]), fix, PERIOD)
        there = estimation.imu_step(here, s["accelerometer"], (s["w_hat"] + w) / 2, PERIOD)
        v = so3.quat_to_matrix(here.q).T @ here.flight.v
        rest = s["accelerometer"] - here.flight.a_B
        F = estimation.force_bias_step(s["F_hat"], rest, v, wrench[:3], mass=X["mass"])
        at = ca.vertcat(there.flight.r, there.q), ca.vertcat(so3.quat_to_matrix(there.q).T @ there.flight.v, w)
        u, faults = track.call([*at, ca.vertcat(*[s[n] for n in REFERENCE_INPUTS]), ca.vertcat(F, tau)], True, False)
        d_next = there._asdict() | {"tick": s["tick"] + 1, "w_hat": w, "tau_hat": tau, "F_hat": F, "thrusts": u}
        return Command(u, faults=faults, d_next=d_next)

    hover = [X["mass"] * G / 4] * 4
    state = estimation.flight_memory(np.zeros(3), [0, 0, 0, 1], SAMPLES, known=True)._asdict() | {
        "tick": 0, "w_hat": np.zeros(3), "tau_hat": np.zeros(3), "F_hat": np.zeros(3), "thrusts": hover,
    }  # fmt: skip
    return control.discrete(
        step, PERIOD, latency=1, state=state, inputs=REFERENCE_INPUTS, measure=sensors, faults=meanings, start=hover
    )  # fmt: skip


def reference_series() -> np.ndarray:
    """(samples, 21) reference to the side and back, with a quarter turn."""
    there = control.rest_to_rest([0, 0, 0], [1.5, 0.0, 0.4], 1.3, begin=SETTLE)
    back = control.rest_to_rest([0, 0, 0], [-1.5, 0.0, -0.4], 1.3, begin=SETTLE + 1.7)
    turn = control.rest_to_rest([0], [np.pi / 2], 2.0, begin=SETTLE + 0.5)
    reference = control.quadcopter_reference(lambda t: there(t) + back(t), turn)
    t = ca.SX.sym("t")
    f = ca.Function("wanted", [t], [ca.vertcat(*reference.at(t, ca.SX(0, 1)))])
    times = PERIOD * np.arange(round(DURATION / PERIOD) + 2)
    return np.array(f.map(len(times))(times)).T


def run() -> dict[str, xr.Dataset]:
    m, goal = mechanism(), reference_series()
    cases = [{sweep.name: x} for sweep in SWEEPS for x in sweep.values] + [TOGETHER]
    q = np.tile(m.neutral(), (len(cases), 1))
    numbers = {p.name: np.array([case.get(p.name, p.default) for case in cases]) for p in m.parameters}
    r = pf.run(
        m, q, np.zeros((len(cases), 6)), duration=DURATION, step=STEP, every=5, control=law(), seed=7, parameters=numbers,
        u=goal[1:], u_step=PERIOD, record=["q"],
    )  # fmt: skip
    off = np.linalg.norm(r["q"].values[..., :3] - goal[None, : r.sizes["time"], :3], axis=2)
    off = np.where(np.isfinite(off), off, np.inf)[:, round(SETTLE / PERIOD) :]
    most, mean = off.max(axis=1), np.sqrt((np.minimum(off, 1e3) ** 2).mean(axis=1))
    failed, found, first = (most > FAILED) | (r["status"].values != 0), {}, 0
    for sweep in SWEEPS:
        part = slice(first, first + len(sweep.values))
        columns = {"rms": ("value", mean[part]), "failed": ("value", failed[part])}
        found[sweep.name] = xr.Dataset(columns, {"value": list(sweep.values)})
        first = part.stop
    found["together"] = xr.Dataset({"rms": mean[-1], "failed": failed[-1]})
    return found


def figures(result: dict[str, xr.Dataset]) -> dict[str, Any]:
    figure = blank_figure(10.5, 5.6)
    grid = figure.subplots(2, 3, sharey=True).ravel()
    for ax, sweep in zip(grid, SWEEPS, strict=False):
        r = result[sweep.name]
        flew, x = ~r["failed"].values, sweep.scale * r["value"].values
        ax.semilogy(x[flew], 1e3 * r["rms"].values[flew], "o-", markersize=4, label="flies")
        for i, at in enumerate(x[~flew]):
            ax.axvline(at, color="C3", linewidth=1, linestyle="--", label="has failed" if not i else None)
        ax.axvline(sweep.scale * sweep.known, color="0.6", linewidth=1, label="value in the agent's model")
        ax.set(xlabel=sweep.label)
        ax.set_yticks([20, 50, 100, 200], ["20", "50", "100", "200"])
        ax.minorticks_off()
    grid[0].set(ylabel="rms error of position [mm]")
    grid[3].set(ylabel="rms error of position [mm]")
    grid[5].axis("off")
    handles, labels = grid[1].get_legend_handles_labels()
    grid[5].legend(handles, labels, loc="center")
    return {"robustness": figure}


STOPS = {"noise": (32.0, 64.0), "later": (0.03, 0.04), "heavier": (1.8, 2.6), "lazier": (1.5, 2.0), "wind": (16.0, 20.0)}
"""Value up to which every flight succeeds, and value from which on each fails."""
ORDINARY = {"noise": (2.0,), "later": (-0.02, 0.02), "heavier": (0.9, 1.1), "lazier": (0.9, 1.1), "wind": (3.0,)}
WITHIN = {"noise": 0.04, "later": 0.065, "heavier": 0.035, "lazier": 0.035, "wind": 0.08}
"""Ordinary model errors, for example 20 ms and 10 %, and bounds of the rms error of position with them [m]."""


def claims(result: dict[str, xr.Dataset]) -> Iterator[Claim]:
    for sweep in SWEEPS:
        r, (good, bad) = result[sweep.name], STOPS[sweep.name]
        failed = r["failed"].values
        yield Claim(f"{sweep.name} up to {good:g}: flights that failed", float(failed[r["value"] <= good].sum()), 0, 0, "ours")
        left = float((~failed[r["value"] >= bad]).sum())
        yield Claim(f"{sweep.name} from {bad:g} on: flights that did not fail", left, 0, 0, "ours")
        for x in ORDINARY[sweep.name]:
            error = float(r["rms"].sel(value=x))
            yield Claim(f"{sweep.name} {x:g}: rms error of position [m]", error, WITHIN[sweep.name], 0, "ours", "at most")
        best = float(r["rms"].min())
        yield Claim(f"{sweep.name}: least rms error of position [m]", best, 0.026, 0, "ours", "at most")
        worst = float(r["rms"].values[~failed].max())
        yield Claim(
            f"{sweep.name}: largest rms error of a successful flight, relative to the least",
            worst / best,
            1.3,
            0,
            "ours",
            "at least",
        )
    yield Claim("all at once: failed", float(result["together"]["failed"]), 0, 0, "ours")
    yield Claim("all at once: rms error of position [m]", float(result["together"]["rms"]), 0.12, 0, "ours", "at most")
