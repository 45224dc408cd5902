"""Force control between the desired wrench and the propellers: bandwidth and crosstalk. [konz25 5.3]

Each filter is driven by small sines in each of its inputs, with 200 steps per second, and the output is plotted over the
transfer functions. As in the thesis, wrenches are relative to the largest that the machine can produce. The thesis gives
neither cut-off frequencies nor gains; ours are 8 Hz for the tricopter's thrusts, 5, 10 and 2 Hz for the quadcopter's thrust,
tilting moments and heading moment, and an observer whose slowest pole is 0.94 per period when hovering. Propellers turn with
145 to 754 rad/s, 0.3 to 8.2 N; the machines are those of Table 5.1. Thin green lines: tau_z with each propeller at its slowest
or fastest; grey: crosstalk.

The bench: a propeller follows a profile although its friction grows by half meanwhile and its speed is measured as the mean
over a period with 3 rad/s of noise; the discrete simulation of a servo is compared with the continuous servo.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import casadi as ca
import numpy as np
import xarray as xr

import pfaffian as pf
from pfaffian.control import actuation
from pfaffian.study import Claim, blank_figure

T = 0.005
FREQUENCIES = np.geomspace(0.1, 100.0, 120)
DRIVEN = np.array([0.2, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 40.0])
"""Frequencies of the sines [Hz], each with a whole number of periods in ten seconds of samples."""
SAMPLES, SETTLE = 2000, 1600
SMALL = 1e-4
"""Amplitude of the sines, relative to the largest wrench."""
SHARE, SERVO = float(np.exp(-2 * np.pi * 8 * T)), (1400 / 0.9, 66 / 0.9)
CUTOFFS = {"magnitude": 5.0, "tilt": 10.0, "heading": 2.0}
SLOW, FAST = np.sqrt(0.3 / 1.44e-5), 2 * np.pi * 120
TILTS = {"hovering": (0.0, 0.0, 0.0), "forward": (np.pi / 4, 0.0, -np.pi / 4)}
THRUST = 4.0
"""Thrust of each propeller of the tricopter [N]; its transfer functions do not depend on it."""
X = pf.multicopters.QUADCOPTER
HOVER = float(np.sqrt(X["mass"] * 9.81 / 4 / X["thrust"]))
P = (X["torque"] / X["rotor"], 0.0105 / X["rotor"], X["friction"] / X["rotor"])
"""(p1, p2, p3) of a propeller. [konz25 (5.13)]"""
GAINS, FOLLOW, NOISE = (40.0, -400.0), 15.0, 3.0
"""Gains of the observer [1/s], [1/s^2] and of the tracking law [1/s]; noise of the measured speed [rad/s]."""


def mechanism() -> pf.Mechanism:
    """The tricopter with vertical and lateral thrusts as inputs."""
    x = pf.multicopters.TRICOPTER
    return pf.multicopters.thrust_multicopter(
        "tricopter", x["azimuths"], x["spins"], mass=x["mass"], inertia=(19.2e-3, 19.2e-3, 30.8e-3), arm=x["arm"],
        height=x["height"], thrust=x["thrust"], torque=x["torque"], tilting=True,
    )  # fmt: skip


def quadcopter() -> pf.Mechanism:
    return pf.multicopters.thrust_multicopter(
        "quadcopter", X["azimuths"], X["spins"], mass=X["mass"], inertia=(17.9e-3, 17.9e-3, 30.7e-3), arm=X["arm"],
        thrust=X["thrust"], torque=X["torque"],
    )  # fmt: skip


def rows(m: pf.Mechanism) -> np.ndarray:
    """(6, nu) matrix B along the body's axes."""
    q = np.array([0, 0, 0, 0, 0, 0, 1.0])
    return pf.compile_terms(m, {"B": lambda k: k.B}, backend="numpy", lanes=1)(q, np.zeros(6))["B"]


Step = Callable[[ca.SX, ca.SX], tuple[ca.SX, ca.SX]]


def answered(step: Step, at: np.ndarray, rest: np.ndarray, size: np.ndarray) -> np.ndarray:
    """(frequencies, n, n) gain of a filter step(x, u) -> (next x, wrench) at rest at (at, rest), by sines of relative size
    SMALL."""
    n = len(rest)
    x, u = ca.SX.sym("x", len(at)), ca.SX.sym("u", n)
    roll = ca.Function("f", [x, u], list(step(x, u))).mapaccum(SETTLE + SAMPLES)
    k, found = np.arange(SETTLE + SAMPLES), np.zeros((len(DRIVEN), n, n), complex)
    for i, f in enumerate(DRIVEN):
        wave = np.exp(2j * np.pi * f * T * k)
        for j in range(n):
            made = np.array(roll(at, rest[:, None] + SMALL * np.outer(size * np.eye(n)[j], wave.real))[1])
            found[i, :, j] = 2 / SAMPLES * (made[:, SETTLE:] @ wave[SETTLE:].conj()) / SMALL / size
    return found


def bode(
    transfer: Callable[[complex], np.ndarray], step: Step, at: np.ndarray, rest: np.ndarray, size: np.ndarray
) -> xr.Dataset:
    """G~ (frequency, out, in) relative to `size`, in closed form for all frequencies and measured from the filter at some."""
    scale = size[None, :] / size[:, None]
    lines, points = (np.array([transfer(np.exp(2j * np.pi * f * T)) * scale for f in fs]) for fs in (FREQUENCIES, DRIVEN))
    seen = answered(step, at, rest, size)
    off, seen = np.abs(seen - points).max(), np.abs(seen)
    return xr.Dataset({"G": (("f", "out", "in"), np.abs(lines)), "seen": (("g", "out", "in"), seen), "off": off},
                      {"f": FREQUENCIES, "g": DRIVEN})  # fmt: skip


def tricopter(tilts: tuple[float, ...], B: np.ndarray) -> xr.Dataset:
    numbers = {"forgetting": SHARE, "servo": SERVO}
    F, angle = np.full(3, THRUST), np.array(tilts)
    wide = {"thrust": (0.0, 20.0), "angle": 1.5}
    rest = np.array(actuation.tilt_wrench(actuation.TiltThrusts(F, angle), B)).ravel()
    most = np.concatenate([np.full(3, 7.0), np.full(3, 7.0 * np.sin(np.pi / 4))])

    def step(x: ca.SX, u: ca.SX) -> tuple[ca.SX, ca.SX]:
        drives = actuation.TiltDrives(x[:3], x[3:6], x[6:])
        after, _ = actuation.tricopter_forces(drives, u, T, B, **numbers, **wide)
        return ca.vertcat(*after), actuation.tilt_wrench(actuation.TiltThrusts(drives.thrust, drives.angle), B)

    at = np.concatenate([F, angle, np.zeros(3)])
    return bode(lambda z: actuation.tricopter_transfer(z, angle, B, T, **numbers), step, at, rest, np.abs(B) @ most)


def flying(of: actuation.QuadcopterFilter, speeds: np.ndarray) -> xr.Dataset:
    rest, size = of.B @ speeds**2, np.abs(of.B) @ np.full(4, FAST**2) / np.array([1, 1, 1, 2])

    def step(x: ca.SX, u: ca.SX) -> tuple[ca.SX, ca.SX]:
        h, w = actuation.quadcopter_forces(x[:4], x[4:], u, T, of)
        return ca.vertcat(h, w), actuation.quadcopter_wrench(x[4:], (w - x[4:]) / T, of.B, of.spin)

    at = np.concatenate([of.k1 * rest, speeds])
    return bode(lambda z: actuation.quadcopter_transfer(z, speeds, of, T), step, at, rest, size)


def filters(B: np.ndarray) -> dict[str, actuation.QuadcopterFilter]:
    """By name: the thesis's dynamic filter, the static one from Butterworth filters, and the static one with a pole that
    cancels the zero."""
    spin = X["rotor"] * np.array(X["spins"])
    made = {s: actuation.quadcopter_filter(B, spin, HOVER, **CUTOFFS, static=s) for s in (False, True)}
    w = 2 * np.pi * CUTOFFS["heading"]
    k0, k1 = made[True].k0.copy(), made[True].k1.copy()
    k0[3], k1[3] = w**2, np.sqrt(2) * w
    return {"dynamic": made[False], "static": actuation.QuadcopterFilter(B, spin, k0, k1, True), "static, tuned": made[True]}


def spread(of: actuation.QuadcopterFilter) -> np.ndarray:
    """(16, f, 4) gains |G~_4j| with each propeller at its slowest or fastest."""
    size, points = np.abs(of.B) @ np.full(4, FAST**2) / np.array([1, 1, 1, 2]), np.exp(2j * np.pi * FREQUENCIES * T)
    corners = [np.array(w) for w in product((SLOW, FAST), repeat=4)]
    rows = [[actuation.quadcopter_transfer(z, w, of, T)[3] for z in points] for w in corners]
    return np.abs(np.array(rows)) * size / size[3]


def profile(t: np.ndarray) -> np.ndarray:
    """Speeds from 250 to 650 rad/s: waves, and ramps of a tenth of a second."""
    steps = 70 * np.tanh(np.sin(2 * np.pi * t / 3) / 0.1)
    return 440 + 110 * np.sin(2 * np.pi * 0.4 * t) + steps


def propeller(seconds: float = 10.0) -> xr.Dataset:
    """Simulation of a propeller that follows `profile` by the estimates of its observer."""
    random, n, fine = np.random.default_rng(14), round(seconds / T), 10
    times = T * np.arange(n)
    wish, friction = profile(T * np.arange(n + 2)), np.where(times < 0.6 * seconds, P[2], 1.5 * P[2])
    speed, x, current = 300.0, actuation.PropellerEstimate(300.0, 300.0, 0.0), 0.0
    records = np.zeros((n, 5))
    for k in range(n):
        turned = 0.0
        for _ in range(fine):  # the propeller in continuous time, with an error of 1e-6
            h = T / fine
            middle = speed + h / 2 * (P[1] * current - friction[k] - P[0] * speed**2)
            slope = P[1] * current - friction[k] - P[0] * middle**2
            turned += h * (speed + h / 2 * slope)
            speed += h * slope
        seen = turned / T + NOISE * random.normal()
        x = actuation.propeller_observer(x, seen, current, T, P[:2], GAINS)
        records[k] = speed, x.speed, seen, x.friction, current
        current = actuation.propeller_current(wish[k + 1], wish[k + 2], x.speed, x.friction, T, P[:2], FOLLOW)
    names = ("speed", "estimate", "seen", "friction", "current")
    return xr.Dataset({"wish": ("time", wish[1 : n + 1]), "true_friction": ("time", friction)}
                      | {name: ("time", records[:, i]) for i, name in enumerate(names)}, {"time": times + T})  # fmt: skip


def servo(seconds: float = 6.0) -> xr.Dataset:
    """Exact angle of the continuous servo, and angle of its discrete simulation [degrees]."""
    p0, p1 = SERVO
    A = np.array([[0.0, 1.0], [-p0, -p1]])
    s, V = np.linalg.eig(A)
    F = (V @ np.diag(np.exp(s * T)) @ np.linalg.inv(V)).real
    times = T * np.arange(round(seconds / T))
    goal = np.radians(20 * np.sin(2 * np.pi * 0.5 * times) + 10 * np.sin(2 * np.pi * 1.1 * times))
    x, guess, both = np.zeros(2), (0.0, 0.0), []
    for u in goal:
        both.append((x[0], guess[0]))
        x = F @ x + (np.eye(2) - F) @ [u, 0]
        guess = actuation.servo_step(*guess, u, T, p0, p1)
    angles = np.degrees(np.array(both))
    columns = {"wish": np.degrees(goal), "angle": angles[:, 0], "simulated": angles[:, 1]}
    return xr.Dataset({name: ("time", x) for name, x in columns.items()}, {"time": times})


def run() -> dict[str, xr.Dataset]:
    across, up = rows(mechanism()), rows(quadcopter())[2:] * X["thrust"]
    found = {f"tricopter {name}": tricopter(tilts, across) for name, tilts in TILTS.items()}
    for name, of in filters(up).items():
        r = flying(of, np.full(4, HOVER))
        r["worst"] = (("corner", "f", "in"), spread(of))
        r["off uneven"] = flying(of, np.array([SLOW, FAST, 500.0, 300.0]))["off"]
        found[f"quadcopter {name}"] = r
    return {**found, "propeller": propeller(), "servo": servo()}


FORCES = ("F_x", "F_y", "F_z", "tau_x", "tau_y", "tau_z")


def figures(result: dict[str, xr.Dataset]) -> dict[str, Any]:
    figure = blank_figure(9.5, 3.6)
    for ax, name in zip(figure.subplots(1, 2), TILTS, strict=True):
        r = result[f"tricopter {name}"]
        for i, force in enumerate(FORCES):
            (line,) = ax.loglog(r["f"], r["G"][:, i, i], label=force if ax is figure.axes[-1] else "_", linewidth=1.6)
            ax.loglog(r["g"], r["seen"][:, i, i], "o", markersize=3, color=line.get_color())
        for i, j in product(range(6), repeat=2):
            if i != j and float(r["G"][:, i, j].max()) > 1e-4:
                ax.loglog(r["f"], r["G"][:, i, j], color="0.75", linestyle="-", linewidth=0.7)
        ax.set(title=f"tricopter, {name}", xlabel="frequency [Hz]", ylabel="gain, of the largest", ylim=(1e-3, 3))
    other = blank_figure(9.5, 3.4)
    for ax, name in zip(other.subplots(1, 3, sharey=True), ("dynamic", "static", "static, tuned"), strict=True):
        r = result[f"quadcopter {name}"]
        for j, force in ((2, "tau_x and tau_y"), (0, "F_z"), (3, "tau_z")):
            (line,) = ax.loglog(r["f"], r["G"][:, j, j], label=force if ax is other.axes[-1] else "_", linewidth=1.6)
            ax.loglog(r["g"], r["seen"][:, j, j], "o", markersize=3, color=line.get_color())
        for corner in r["worst"].values:
            ax.loglog(r["f"], corner[:, 3], color="C2", linewidth=0.4)
            for j in range(3):
                if corner[:, j].max() > 1e-6:
                    ax.loglog(r["f"], corner[:, j], color="0.75", linestyle="-", linewidth=0.5)
        ax.set(title=f"quadcopter, {name}", xlabel="frequency [Hz]", ylim=(1e-3, 40))
    other.axes[0].set(ylabel="gain, of the largest")
    bench = blank_figure(9.5, 5.0)
    (speed, angle), (friction, error) = bench.subplots(2, 2, sharex="col")
    r = result["propeller"]
    speed.plot(r["time"], r["wish"], color="0.7", linestyle="-", linewidth=2.5, label="wanted")
    speed.plot(r["time"], r["speed"], label="speed")
    speed.set(ylabel="speed [rad/s]", title="propeller")
    friction.plot(r["time"], r["true_friction"], color="0.7", linestyle="-", linewidth=2.5, label="friction")
    friction.plot(r["time"], r["friction"], label="observed")
    friction.set(ylabel="p3 [rad/s^2]", xlabel="time [s]")
    r = result["servo"]
    angle.plot(r["time"], r["angle"], color="0.7", linestyle="-", linewidth=2.5, label="servo")
    angle.plot(r["time"], r["simulated"], label="simulated")
    angle.set(ylabel="tilt [degrees]", title="servo")
    error.plot(r["time"], r["simulated"] - r["angle"])
    error.set(ylabel="simulated minus true tilt [degrees]", xlabel="time [s]")
    for ax in (speed, friction, angle):
        ax.legend(loc="best")
    return {"tricopter": figure, "quadcopter": other, "bench": bench}


def claims(result: dict[str, xr.Dataset]) -> Iterator[Claim]:
    for name, r in result.items():
        if "off" in r:
            yield Claim(
                f"{name}: measured gains minus the closed form", float(r["off"]), 0, 1e-7, "[konz25 (5.31), (5.40), (5.43)]"
            )
        if "off uneven" in r:
            yield Claim(
                f"{name}: measured gains minus the closed form at unequal speeds",
                float(r["off uneven"]),
                0,
                3e-5,
                "[konz25 (5.40), (5.43)]",
            )
    z = np.exp(2j * np.pi * FREQUENCIES * T)
    thrust = np.abs((1 - SHARE) / (z - SHARE))
    tilting = np.abs(SERVO[0] / (((z - 1) / T) ** 2 + SERVO[1] * (z - 1) / T + SERVO[0]))
    G = result["tricopter hovering"]["G"].values
    for i, like, by in ((0, tilting, "servos"), (1, tilting, "servos"), (2, thrust, "thrusts")):
        off = float(np.abs(G[:, i, i] - like).max())
        yield Claim(f"hovering tricopter: gain of {FORCES[i]} minus that of the {by}", off, 0, 1e-12, "[konz25 5.3.3]")
    for i, like, by in ((3, thrust, "thrusts"), (4, thrust, "thrusts"), (5, tilting, "servos")):
        off = float(np.abs(G[:, i, i] - like).max())
        yield Claim(
            f"hovering tricopter: gain of {FORCES[i]} close to that of the {by}", off, 0, 1e-2, "[konz25 5.3.3]", "at most"
        )
    leak = {name: leaking(result[f"tricopter {name}"]["G"].values) for name in TILTS}
    more = leak["forward"] / leak["hovering"]
    yield Claim("tricopter: crosstalk in forward flight relative to hovering", more, 5, 0, "[konz25 5.3.3]", "at least")
    spin, B = X["rotor"] * np.array(X["spins"]), rows(quadcopter())[2:] * X["thrust"]
    yield Claim("p4 when hovering [s]", actuation.spin_coupling(np.full(4, HOVER), B, spin)[3], 0.17794, 5e-6, "[konz25 5.3.4]")
    yield Claim("k_head1 [1/s]", filters(B)["dynamic"].k1[3], 5.620, 5e-4, "[konz25 5.3.4]")
    peak = {name: float(result[f"quadcopter {name}"]["G"][:, 3, 3].max()) for name in ("dynamic", "static", "static, tuned")}
    corner = {name: float(result[f"quadcopter {name}"]["worst"][:, :, 3].max()) for name in peak}
    low = {name: float(result[f"quadcopter {name}"]["worst"][:, 0, :3].max()) for name in peak}
    w = 2 * np.pi * CUTOFFS["heading"] * 0.17794
    yield Claim("static filter: largest gain of tau_z", peak["static"], overshoot(w), 0.06, "[konz25 (5.43)]")
    for name in ("dynamic", "static, tuned"):
        yield Claim(f"{name} filter: largest gain of tau_z", peak[name], 1, 1e-12, "[konz25 5.3.4]", "at most")
    yield Claim(
        "dynamic filter: largest gain of tau_z at the worst speeds", corner["dynamic"], 1.05, 0, "[konz25 fig. 5.16]", "at most"
    )
    yield Claim(
        "static, tuned filter: largest gain of tau_z at the worst speeds",
        corner["static, tuned"],
        2,
        0,
        "[konz25 fig. 5.17]",
        "at least",
    )
    for name in ("static", "static, tuned"):
        more = low[name] / low["dynamic"]
        yield Claim(
            f"{name} filter: crosstalk to tau_z at 0.1 Hz relative to the dynamic filter",
            more,
            10,
            0,
            "[konz25 5.3.4]",
            "at least",
        )
    r = result["propeller"]
    on, late = r.sel(time=slice(1, None)), r.sel(time=slice(8, None))
    rms = float(np.sqrt(((on["speed"] - on["wish"]) ** 2).mean()))
    yield Claim("propeller: rms error of its speed [rad/s]", rms, 4, 0, "ours", "at most")
    rms = float(np.sqrt(((on["estimate"] - on["speed"]) ** 2).mean()))
    yield Claim("propeller: rms error of the estimate [rad/s]", rms, 0.7 * NOISE, 0, "less than the measurement's", "at most")
    yield Claim("propeller: estimated friction [1/s^2]", float(late["friction"].mean()), 1.5 * P[2], 5, "[konz25 (5.23)]")
    poles = max(np.abs(np.roots(polynomial(w))).max() for w in np.linspace(SLOW, FAST, 20))
    yield Claim("propeller: slowest pole of the observer", poles, 0.96, 0, "[konz25 (5.24)]", "at most")
    r = result["servo"]
    off = float(np.abs(r["simulated"] - r["angle"]).max())
    yield Claim("servo: simulated minus true angle [degrees]", off, 0.5, 0, "[konz25 fig. 5.13]", "at most")


def leaking(G: np.ndarray) -> float:
    """Largest gain from one component of a wrench to another."""
    return float((G * (1 - np.eye(G.shape[1]))).max())


def overshoot(x: float) -> float:
    """Largest |(x s + 1) / (s^2 + sqrt(2) s + 1)| of the static filter in continuous time, x being p4 times its cut-off."""
    s = 1j * np.linspace(0.01, 5, 5000)
    return float(np.abs((x * s + 1) / (s**2 + np.sqrt(2) * s + 1)).max())


def polynomial(w: float) -> list[float]:
    """Characteristic polynomial of the observer's errors at a speed. [konz25 (5.24)]"""
    l1, l2 = GAINS
    return [1, T / 2 * (4 * P[0] * w + l1) - 2, 1 - T / 2 * (4 * P[0] * w + T * l2), -T / 2 * (l1 + T * l2)]
