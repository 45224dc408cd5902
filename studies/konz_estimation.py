"""State estimation of a multicopter: misalignment of its IMU, delay of the position measurement, position. [konz25 5.4]

All measurements are simulated with noise, so that the estimates can be compared with the true values. From the thesis: 20
attitudes of 10 s, 200 samples per second, a camera every 0.1 s whose frames are 34 ms late on average, all gains. Ours: an IMU
misaligned by 2 degrees with a bias of 0.3 m/s^2, noise of 0.05 m/s^2, 0.01 rad/s, 1 mm and 0.2 degrees, delays that vary by
10 ms, a clock that is 17.3 s behind, and a flight back and forth with up to 3 m/s, 60 degrees of tilt and 330 degrees per
second.

The flight is estimated four times: with the delay of each frame from its time stamp, with the mean delay for all, with no
delay, and with time stamps but without the bias of the accelerometer. The unknown force and moment are those of Table 5.1.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import casadi as ca
import numpy as np
import xarray as xr
from scipy.spatial.transform import Rotation

import pfaffian as pf
from pfaffian.control import estimation
from pfaffian.study import Claim, blank_figure

T, FRAME, DELAY, VARY = 0.005, 0.1, 0.034, 0.010
G = 9.81
BIAS, MISALIGNED = np.array([0.2, -0.15, 0.18]), Rotation.from_rotvec([0.02, -0.025, 0.015])
NOISE = {"accelerometer": 0.05, "gyro": 0.01, "position": 1e-3, "attitude": np.radians(0.2)}
OFFSET = 17.3
INERTIA = np.diag([17.9e-3, 17.9e-3, 30.7e-3])
MOMENT = np.array([0.049, -0.015, -0.012])
"""Unknown moment tau_B of the quadcopter [N m]. [konz25 Table 5.1]"""
FORCE, MASS, DRAG = np.array([0.09, 0.02, -0.09]), 1.001, 0.32
SECONDS = 20.0
LATE = DELAY + T / 2
"""Mean delay, including the mean time until the next sample [s]."""
WAYS = {
    "time stamps": lambda seen: seen,
    "mean delay": lambda seen: LATE,
    "no delay": lambda seen: 0.0,
    "no bias": lambda seen: seen,
}
"""Delay that each estimate uses, as a function of the delay from the time stamp [s]."""


def mechanism() -> pf.Mechanism:
    """The quadcopter whose flight is estimated."""
    x = pf.multicopters.QUADCOPTER
    return pf.multicopters.thrust_multicopter(
        "quadcopter", x["azimuths"], x["spins"], mass=x["mass"], inertia=np.diag(INERTIA), arm=x["arm"], thrust=x["thrust"],
        torque=x["torque"], drag=x["drag"],
    )  # fmt: skip


def misalignment(random: np.random.Generator) -> xr.Dataset:
    """a_G measured at rest in 20 attitudes, raw and corrected by the identified misalignment and bias."""
    R = Rotation.random(20, random_state=4).as_matrix()
    a = (
        9.8107 * R[:, 2, :] @ MISALIGNED.as_matrix().T
        + BIAS
        + NOISE["accelerometer"] / np.sqrt(2000) * random.normal(size=(20, 3))
    )
    found = estimation.imu_misalignment(a, R, gravity=9.8107)
    measured = {"raw": a, "corrected": (a - found.bias) @ found.rotation}
    world = {name: (("attitude", "axis"), -np.einsum("nij,nj->ni", R, x)) for name, x in measured.items()}
    turn = (Rotation.from_matrix(found.rotation) * MISALIGNED.inv()).magnitude()
    return xr.Dataset({**world, "turn off": turn, "bias off": np.abs(found.bias - BIAS).max()})


def clocks(random: np.random.Generator) -> xr.Dataset:
    """A minute of rotation, measured by an encoder and by the camera; then clock offset and delay of every frame."""
    n = 600
    delays = DELAY + VARY * random.uniform(-1, 1, n)
    exposed, t = FRAME * np.arange(1, n + 1), np.arange(0, n * FRAME + 0.2, T)

    def yaw(t: np.ndarray) -> np.ndarray:
        return np.sin(1.3 * t) + 0.6 * np.sin(3.1 * t + 1) + 0.3 * np.sin(5.7 * t)

    stamped, received = exposed - OFFSET, exposed + delays
    shifted = stamped + (received - stamped).mean()
    seen = yaw(exposed) + NOISE["attitude"] * random.normal(size=n)
    mean = estimation.latency(t, yaw(t), shifted, seen)
    offsets, late = np.zeros(n), np.zeros(n)
    offset = received[0] - stamped[0] - DELAY
    for k in range(n):
        offset, late[k] = estimation.clock_step(offset, received[k], stamped[k])
        offsets[k] = offset
    parts = {"encoder": ("sample", yaw(t)), "camera": ("frame", seen), "offset": ("frame", offsets), "delay": ("frame", late)}
    return xr.Dataset({**parts, "true_delay": ("frame", delays), "mean": mean}, {"sample": t, "frame": shifted})


def flight() -> tuple[np.ndarray, np.ndarray, np.ndarray, Rotation, np.ndarray]:
    """Times, position, acceleration, attitude and angular velocity of a quadcopter that flies back and forth, every ms."""
    t = np.arange(0, SECONDS + T, 1e-3)
    waves = ((0, 1.6, 0.30), (1, 1.1, 0.38), (2, 0.4, 0.23), (0, 0.25, 0.9))
    r, bend = np.zeros((len(t), 3)), np.zeros((len(t), 3))
    for axis, size, f in waves:
        w = 2 * np.pi * f
        r[:, axis] += size * (1 - np.cos(w * t))
        bend[:, axis] += size * w**2 * np.cos(w * t)
    z = bend + [0, 0, G]
    z /= np.linalg.norm(z, axis=1)[:, None]
    y = np.cross(z, np.column_stack([np.cos(0.5 * t), np.sin(0.5 * t), 0 * t]))
    y /= np.linalg.norm(y, axis=1)[:, None]
    R = Rotation.from_matrix(np.stack([np.cross(y, z), y, z], axis=2))
    turned = (R[:-1].inv() * R[1:]).as_rotvec() / 1e-3
    return t, r, bend, R, np.vstack([turned, turned[-1:]])


def frames(random: np.random.Generator, r: np.ndarray, R: Rotation, n: int) -> dict[int, tuple[np.ndarray, np.ndarray, float]]:
    """By the sample at which a frame arrives: position, quaternion, and delay from the time stamp [s]."""
    found, offset = {}, None
    for k in range(1, round(SECONDS / FRAME)):
        i = round(k * FRAME / 1e-3)
        at = int(np.ceil((k * FRAME + DELAY + VARY * random.uniform(-1, 1)) / T))
        received, stamped = at * T, k * FRAME - OFFSET
        offset = received - stamped - LATE if offset is None else offset
        offset, delay = estimation.clock_step(offset, received, stamped, LATE)
        turn = R[i] * Rotation.from_rotvec(NOISE["attitude"] * random.normal(size=3))
        if at < n:
            found[at] = r[i] + NOISE["position"] * random.normal(size=3), turn.as_quat(), float(delay)
    return found


def estimates(random: np.random.Generator) -> xr.Dataset:
    """Errors of position and velocity of the flight, estimated in several ways; estimates of the unknown force and moment."""
    t, r, bend, R, w = flight()
    every, n = round(T / 1e-3), round(SECONDS / T)
    seen, specific, v = frames(random, r, R, n), R.inv().apply(bend + [0, 0, G]), np.gradient(r, t, axis=0)
    start = r[0], R[0].as_quat()
    r, R, v, w, specific = (x[: every * n + 1 : every] for x in (r, R, v, w, specific))
    a_M = specific + BIAS + NOISE["accelerometer"] * random.normal(size=(n + 1, 3))
    gyro = w + NOISE["gyro"] * random.normal(size=(n + 1, 3))
    found = xr.Dataset(coords={"time": T * np.arange(n)})
    imu = [(x[:-1] + x[1:]) / 2 for x in (a_M, gyro)]
    for name, way in WAYS.items():
        gains = (1.0, 0.575, -0.025 * (name != "no bias"))
        estimated = filtered(*start, *imu, seen, way, gains)
        found[f"position, {name}"] = ("time", np.linalg.norm(estimated[:, :3] - r[:-1], axis=1))
        found[f"velocity, {name}"] = ("time", np.linalg.norm(estimated[:, 3:6] - v[:-1], axis=1))
        found[f"bias, {name}"] = (("time", "axis"), estimated[:, 6:9])
        if name == "time stamps":
            F = MASS * specific[:-1] + DRAG * R[:-1].inv().apply(v[:-1]) - FORCE
            found["force"] = (("time", "axis"), unknown_force(estimated, a_M[:-1], F))
    found["moment"] = (("time", "axis"), unknown_moment(w[:-1], gyro[:-1]))
    return found


def filtered(
    r: np.ndarray, q: np.ndarray, a_M: np.ndarray, gyro: np.ndarray, seen: dict, delay: Any, gains: tuple
) -> np.ndarray:
    """(n, 13) estimates of r, v, a_B, q at all samples; the IMU's values are those of the period after each sample."""
    samples = 12
    sizes = (13, estimation.SAMPLE_SIZE * samples, 2, 3, 4, 1, 1, 3, 3)
    x = [ca.SX.sym(f"x{i}", size) for i, size in enumerate(sizes)]
    now = estimation.fix_step(estimation.FlightMemory(*x[:3]), estimation.Fix(*x[3:7]), T, gains)
    f = ca.Function("f", x, [now.estimate, *estimation.imu_step(now, x[7], x[8], T)])
    memory, estimated = list(estimation.flight_memory(r, q, samples)), []
    for k in range(len(a_M)):
        fix = seen.get(k)
        given = (np.zeros(3), q, 0.0, 0.0) if fix is None else (fix[0], fix[1], delay(fix[2]), 1.0)
        estimate, *memory = f(*memory, *given, a_M[k], gyro[k])
        estimated.append(np.array(estimate).ravel())
    return np.array(estimated)


def unknown_force(estimated: np.ndarray, a_M: np.ndarray, F: np.ndarray) -> np.ndarray:
    """F_B from the estimates and from the force F of the propellers along the body's axes."""
    body_velocity, bias, found = Rotation.from_quat(estimated[:, 9:13]).inv().apply(estimated[:, 3:6]), np.zeros(3), []
    for k in range(len(F)):
        bias = estimation.force_bias_step(bias, a_M[k] - estimated[k, 6:9], body_velocity[k], F[k], mass=MASS, drag=DRAG)
        found.append(bias)
    return np.array(found)


def unknown_moment(w: np.ndarray, gyro: np.ndarray) -> np.ndarray:
    """tau_B from the gyro and from the moment that the flight needs minus the unknown one."""
    moment = (np.gradient(w, T, axis=0) @ INERTIA) + np.cross(w, w @ INERTIA) - MOMENT
    est, found = (w[0], np.zeros(3)), []
    for k in range(len(w)):
        est = tuple(np.array(x).ravel() for x in estimation.turning_step(*est, gyro[k], moment[k], INERTIA, T))
        found.append(est[1])
    return np.array(found)


def run() -> dict[str, xr.Dataset]:
    random = np.random.default_rng(21)
    return {"misalignment": misalignment(random), "clocks": clocks(random), "flight": estimates(random)}


def figures(result: dict[str, xr.Dataset]) -> dict[str, Any]:
    figure = blank_figure(9.5, 5.4)
    (size, across), (yaw, delay) = figure.subplots(2, 2)
    r = result["misalignment"]
    for name in ("raw", "corrected"):
        size.plot(np.arange(1, 21), np.linalg.norm(r[name], axis=1), "o-", markersize=3, label=name)
        across.plot(np.arange(1, 21), np.abs(r[name][:, :2]).max(axis=1), "o-", markersize=3)
    size.axhline(9.8107, color="0.6", linewidth=0.8)
    size.set(xlabel="attitude", ylabel="|a_G| [m/s^2]", title="gravity measured by the accelerometer")
    across.set(xlabel="attitude", ylabel="horizontal [m/s^2]", title="its part that is not vertical")
    r = result["clocks"]
    first = slice(0, 40)
    late = r["frame"].values
    yaw.plot(r["sample"][: round(4 / T)], r["encoder"][: round(4 / T)], label="encoder")
    yaw.plot(late[first], r["camera"][first], "o", markersize=3, label="camera")
    yaw.set(xlabel="time [s]", ylabel="yaw [rad]", title="frames shifted by their mean delay")
    delay.plot(r["frame"][:100], 1000 * r["true_delay"][:100], color="0.7", linestyle="-", linewidth=2.5, label="true")
    delay.plot(r["frame"][:100], 1000 * r["delay"][:100], label="by time stamps")
    delay.set(xlabel="time [s]", ylabel="delay [ms]", title="delay of each frame")
    other = blank_figure(9.5, 5.4)
    (place, speed), (bias, unknown) = other.subplots(2, 2, sharex=True)
    r = result["flight"]
    for name in WAYS:
        place.semilogy(r["time"], 1000 * r[f"position, {name}"] + 1e-1, label=name, linewidth=0.8)
        speed.semilogy(r["time"], r[f"velocity, {name}"] + 1e-3, linewidth=0.8)
    place.set(ylabel="error of position [mm]", title="estimates of a flight")
    speed.set(ylabel="error of velocity [m/s]")
    for i, axis in enumerate("xyz"):
        (line,) = bias.plot(r["time"], r["bias, time stamps"][:, i], color=f"C{4 + i}", label=axis)
        bias.axhline(BIAS[i], color=line.get_color(), linewidth=0.6, linestyle=":")
        unknown.plot(r["time"], r["force"][:, i], color=line.get_color(), linewidth=0.8)
        unknown.axhline(FORCE[i], color=line.get_color(), linewidth=0.6, linestyle=":")
    bias.set(ylabel="a_B [m/s^2]", xlabel="time [s]", title="bias of the accelerometer")
    unknown.set(ylabel="F_B [N]", xlabel="time [s]", title="unknown force")
    return {"measuring": figure, "flight": other}


def rms(x: xr.DataArray) -> float:
    return float(np.sqrt((x**2).mean()))


def claims(result: dict[str, xr.Dataset]) -> Iterator[Claim]:
    r = result["misalignment"]
    wrong = {name: float(np.abs(np.linalg.norm(r[name], axis=1) / 9.8107 - 1).max()) for name in ("raw", "corrected")}
    yield Claim("|a_G|: raw, largest error", wrong["raw"], 0.02, 0, "[konz25 fig. 5.19]: some 5 %", "at least")
    yield Claim("|a_G|: corrected, largest error", wrong["corrected"], 2e-3, 0, "[konz25 fig. 5.19]", "at most")
    yield Claim("error of the misalignment [rad]", float(r["turn off"]), 0, 3e-4, "[konz25 (5.49), corrected]")
    yield Claim("error of the bias [m/s^2]", float(r["bias off"]), 0, 1e-3, "[konz25 (5.49), corrected]")
    r = result["clocks"]
    mean = float(r["true_delay"].mean())
    yield Claim("latency by correlation [s]", float(r["mean"]), mean, 5e-4, "[konz25 (5.52)]")
    yield Claim("offset of the clock [s]", float(r["offset"][-300:].mean()), OFFSET, 5e-4, "[konz25 (5.53)]")
    off = (r["delay"] - r["true_delay"])[200:]
    yield Claim("delay of each frame, rms error [s]", rms(off), 1e-3, 0, "[konz25 (5.54)]", "at most")
    r = result["flight"].sel(time=slice(5, None))
    place, speed = ({name: rms(r[f"{what}, {name}"]) for name in WAYS} for what in ("position", "velocity"))
    yield Claim("position, rms error [m]", place["time stamps"], 6e-3, 0, "ours", "at most")
    yield Claim("velocity, rms error [m/s]", speed["time stamps"], 0.03, 0, "ours", "at most")
    for name, less in (("mean delay", 4), ("no delay", 15)):
        yield Claim(
            f"position, {name}: error relative to time stamps",
            place[name] / place["time stamps"],
            less,
            0,
            "[konz25 5.4.3]",
            "at least",
        )
    yield Claim(
        "velocity, no bias: error relative to time stamps",
        speed["no bias"] / speed["time stamps"],
        2,
        0,
        "[konz25 5.4.5]",
        "at least",
    )
    for what, truth, within, source in (
        ("bias, time stamps", BIAS, 0.015, "[konz25 (5.60)]"),
        ("force", FORCE, 0.015, "[konz25 (5.67)]"),
        ("moment", MOMENT, 1e-3, "[konz25 (5.51)]"),
    ):
        off = float(np.abs(r[what].mean("time") - truth).max())
        yield Claim(f"{what.split(',')[0]}: error of the mean", off, 0, within, source)
