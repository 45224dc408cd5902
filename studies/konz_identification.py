"""Identification of a quadcopter from a bench, two strings and a flight, with confidence intervals. [konz25 5.2.3, 5.2.4]

Measurements are simulated with the numbers of Table 5.1 and noise, so that each identified number can be compared with the
true one. Ours, since the thesis does not give them: noise (1 rad/s of a propeller, 0.05 degrees of a servo, 0.05 rad/s on the
strings, in flight 0.01 m/s, 0.01 rad/s, 1 rad/s), strings 0.4 m apart and 1.5 m long, windows, and the flights: half a minute
of waves by discrete laws with motors and servos, 200 times per second. Each flight uses the full machine, with all of Table
5.1.

Where only the right side of the equations is noisy, intervals contain the true value as often as they should. The
accelerations in a pendulum's equation are on the left side: the shorter the window of their derivative, the smaller the
identified inertia. In flight the same happens to moments of inertia, and to a servo that moves slowly. Instruments from a
second set of sensors, or from a simulated motion, remove this bias and give correct intervals. The intervals also show that
thrust along z alone contains almost no information on the height of the mass centre.

Instruments do not help against the smoothing by the window itself: equations made from smoothed thrusts and tilts are not the
smoothed equations. This does not matter where the motion is slow compared with the window. In the first quarter of a second of
the tricopter's flight, however, servos jump to their angles with 500 rad/s^2, ten times within a window. These fifty of 6000
samples make Ixx 15 % too small and place the mass centre 0.15 mm too high, equally in each measurement and by three intervals.
Both flights are therefore used from START on. The residuals show this without knowledge of the true values: there some rows
deviate by ten and more standard deviations of their kind.

Accelerations of both flights are compared as measured, by the full models and by the simplified models (5.16), (5.17), as in
the thesis. Translation and propellers agree in both models. Rotation does not: the simplified models lack moments due to the
position of the mass centre, products of inertia and the tricopter's propellers, whose spins do not cancel. Each is about 0.3
rad/s^2, as large as the accelerations about x in the gentle flight of the tricopter.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import casadi as ca
import numpy as np
import xarray as xr
from scipy.spatial.transform import Rotation

import pfaffian as pf
from pfaffian import control
from pfaffian import identification as found_by
from pfaffian.control import actuation
from pfaffian.study import Claim, blank_figure

T, STEP, SECONDS = 0.005, 0.0025, 30.0
X, Y = pf.multicopters.QUADCOPTER, pf.multicopters.TRICOPTER
KM = 0.0105
P = np.array([X["torque"], KM, X["friction"]]) / X["rotor"]
SERVO = np.array([1400, 66]) / Y["tilt"][0]
STRINGS = {"mass": X["mass"], "distance": 0.4, "length": 1.5}
SWING = 0.05
"""Noise of the gyro on the strings [rad/s]."""
WINDOWS = (5, 7, 11, 15, 21, 31, 41)
NOISE = {"v": 0.01, "w": 0.01, "speeds": 1.0, "up": 1e-3, "tilt": np.radians(0.05)}
SHORT, MIDDLE, LONG, THIN, DRAWS = 9, 15, 25, 5, 8
"""Flight: samples of a derivative's window, every how many samples one is used, and number of simulated measurements."""
START = 1.0
"""Start of the used part of a flight [s]; before, the laws converge to the waves."""


class Way(NamedTuple):
    """Samples of a derivative's window, whether a second set of sensors gives instruments, and start of the used part [s]."""

    window: int
    instruments: bool = False
    begin: float = START


WAYS = {"short window": Way(SHORT), "long window": Way(LONG), "long, instruments": Way(LONG, True)}
TILTING_WAYS = {"long, instruments": Way(LONG, True), "the same with the start": Way(LONG, True, 0.0)}
HOVER = float(np.sqrt(X["mass"] * 9.81 / 4 / X["thrust"]))


def mechanism() -> pf.Mechanism:
    """The full quadcopter, with propellers as turning bodies."""
    return pf.multicopters.multicopter("quadcopter", **X)


def truth(x: Any) -> np.ndarray:
    """True values of the numbers `identification.FLIGHT` for a machine of Table 5.1."""
    (d_x, d_z), l = x["drag"], x["drag_height"]
    return np.concatenate([x["mass"] * np.array(x["com"]), x["inertia"], [d_x, d_z, d_x * l], x["turning_drag"], x["bias"]])


def rows() -> np.ndarray:
    """(4, 4) matrix of (F_z, tau) = rows varpi^2."""
    phi, eps, l, kappa = np.array(X["azimuths"]), np.array(X["spins"]), X["arm"], X["torque"] / X["thrust"]
    return X["thrust"] * np.stack([np.ones(4), l * np.sin(phi), -l * np.cos(phi), -kappa * eps])


FILTER = actuation.quadcopter_filter(rows(), X["rotor"] * np.array(X["spins"]), HOVER, magnitude=5.0, tilt=10.0, heading=2.0)


def waves(t: ca.SX) -> ca.SX:
    """(4,) reference of position [m] and heading [rad]."""
    return ca.vertcat(
        1.2 * ca.sin(1.7 * t) + 0.25 * ca.sin(4.1 * t), 1.0 * ca.sin(2.1 * t + 1) + 0.2 * ca.sin(4.7 * t),
        0.4 * ca.sin(1.3 * t) + 0.1 * ca.sin(5.0 * t), 1.5 * ca.sin(1.1 * t) + 0.5 * ca.sin(2.9 * t),
    )  # fmt: skip


def flying(s: control.Sample) -> control.Command:
    """Law of the quadcopter: thrust and attitude towards the wave, moments by the filter, currents by the propellers' model."""
    k, goal = s.terms.kinematics, waves(s.terms.t)
    R, v, w, speeds = k.rotation("body"), k.velocity("body"), s.terms.v[3:6], s.terms.v[6:]
    wish = 6.0 * (goal[:3] - k.position("body")) - 3.5 * v + ca.DM([0, 0, 9.81])
    tilt = R.T @ ca.cross(R[:, 2], wish / ca.norm_2(wish))
    heading = ca.sin(goal[3] - ca.atan2(R[1, 0], R[0, 0]))
    turn = ca.vertcat(90 * tilt[0] - 15 * w[0], 90 * tilt[1] - 15 * w[1], 9 * heading - 5 * w[2])
    force = ca.vertcat(X["mass"] * ca.dot(R[:, 2], wish), ca.DM(np.array(X["inertia"][:3])) * turn)
    h, then = actuation.quadcopter_forces(s["h"], s["goal"], force, T, FILTER, slowest=145.0, fastest=754.0)
    current = actuation.propeller_current(s["goal"], then, speeds, P[2], T, P[:2], 20.0)
    return control.Command(KM * current, d_next={"h": h, "goal": then})


def tricopter_rows() -> np.ndarray:
    """(6, 6) matrix B of vertical and lateral thrusts. [konz25 (5.16c), corrected]"""
    phi, eps, kappa = np.array(Y["azimuths"]), np.array(Y["spins"]), Y["torque"] / Y["thrust"]
    at = np.stack([Y["arm"] * np.cos(phi), Y["arm"] * np.sin(phi), np.full(3, Y["height"])])
    forces = np.stack([np.zeros(3), np.zeros(3), np.ones(3)]), np.stack([np.sin(phi), -np.cos(phi), np.zeros(3)])
    return np.hstack([np.vstack([f, np.cross(at.T, f.T).T - kappa * eps * f]) for f in forces])


def tilting(s: control.Sample) -> control.Command:
    """Law of the tricopter: forces towards the wave at any attitude, moments towards a swaying attitude; servos as springs with
    dampers."""
    k, goal = s.terms.kinematics, waves(s.terms.t)
    R, v, w = k.rotation("body"), k.velocity("body"), s.terms.v[3:6]
    angle, rate, speeds = s.terms.q[7:10], s.terms.v[6:9], s.terms.v[9:]
    wish = 3.0 * (0.7 * goal[:3] - k.position("body")) - 3.0 * v + ca.DM([0, 0, 9.81])
    sway = ca.vertcat(0.2 * ca.sin(1.9 * s.terms.t), 0.2 * ca.sin(1.4 * s.terms.t), 1)
    tilt = R.T @ ca.cross(R[:, 2], sway / ca.norm_2(sway))
    heading = ca.sin(0.5 * goal[3] - ca.atan2(R[1, 0], R[0, 0]))
    turn = ca.vertcat(60 * tilt[0] - 12 * w[0], 60 * tilt[1] - 12 * w[1], 6 * heading - 4 * w[2])
    f = ca.vertcat(Y["mass"] * (R.T @ wish), ca.DM(np.array(Y["inertia"][:3])) * turn)
    goals = actuation.tilt_thrusts(f, tricopter_rows())
    thrust = actuation.low_pass(s["thrust"], goals.thrust, 0.8)
    now, then = ca.sqrt(s["thrust"] / Y["thrust"]), ca.sqrt(thrust / Y["thrust"])
    current = actuation.propeller_current(now, then, speeds, P[2], T, P[:2], 20.0)
    servo = 1400 * (goals.angle - angle) - 66 * rate
    return control.Command(ca.vertcat(servo, KM * current), d_next={"thrust": thrust})


def flown() -> xr.Dataset:
    law = control.discrete(flying, T, state={"h": FILTER.k1 * (rows() @ np.full(4, HOVER**2)), "goal": np.full(4, HOVER)})
    return flight(mechanism(), law, np.full(4, HOVER))


def tricopter_flown() -> xr.Dataset:
    thrust = np.full(3, Y["mass"] * 9.81 / 3)
    law = control.discrete(tilting, T, state={"thrust": thrust})
    return flight(pf.multicopters.multicopter("tricopter", **Y), law, np.sqrt(thrust / Y["thrust"]))


def flight(m: pf.Mechanism, law: control.Control, speeds: np.ndarray) -> xr.Dataset:
    q, v = np.zeros(m.nq), np.zeros(m.nv)
    q[6], v[-len(speeds) :] = 1.0, speeds
    return pf.run(m, q, v, duration=SECONDS, step=STEP, every=2, control=law, record=["q", "v", "u"])


def bench(random: np.random.Generator) -> xr.Dataset:
    """kF, (p1, p2, p3) and (p_S0, p_S1) with their intervals, from a propeller on a scale and on a bench, and from a servo."""
    t = T * np.arange(4000)
    i = 4 + 2 * np.sin(0.9 * t) + np.sign(np.sin(2.3 * t))
    speed = np.empty_like(t)
    speed[0] = 400.0
    for k in range(len(t) - 1):  # accurate to 1e-7 by ten steps of order two
        w, h = speed[k], T / 10
        for _ in range(10):
            middle = w + h / 2 * (P[1] * i[k] - P[2] - P[0] * w**2)
            w += h * (P[1] * i[k] - P[2] - P[0] * middle**2)
        speed[k + 1] = w
    window, half = 7, 3
    seen, rate, _ = found_by.smoothed(speed + NOISE["speeds"] * random.normal(size=t.size), T, window)
    mean_current = (np.convolve(i, [0.5, 0.5])[: t.size])[
        half:-half
    ]  # mean current around each sample, since the current steps there
    propeller = found_by.least_squares(found_by.propeller_bench(seen, rate, mean_current), correlated=6 * window)
    at = np.linspace(150, 750, 25)
    thrust = X["thrust"] * at**2 + 0.03 * random.normal(size=at.size)
    scale = found_by.least_squares(found_by.thrust_scale(at, thrust))
    known = np.array([X["thrust"], *P, *SERVO])
    plain, simulated = servo(random)
    all_of = (scale, propeller, simulated)
    value, half_width = (np.concatenate([getattr(e, n) for e in all_of]) for n in ("value", "half_width"))
    parts = {"value": value, "half_width": half_width, "true": known}
    return xr.Dataset({n: ("number", x) for n, x in parts.items()} | {"thrust": ("speed", thrust), "plain": plain.value[0]},
                      {"number": ["kF", "p1", "p2", "p3", "p_S0", "p_S1"], "speed": at})  # fmt: skip


def servo(random: np.random.Generator) -> tuple[found_by.Estimate, found_by.Estimate]:
    """(p_S0, p_S1) from an encoder with 1000 readings per second and noise of 0.05 degrees, without and with instruments from a
    simulated servo.

    In slow motion p_S1 a' and p_S0 (goal - a) are nearly equal, so that already the noise of a' biases both.
    """
    h, window = 1e-3, 15
    t = h * np.arange(6000)
    goal = 0.3 * np.sin(4 * t) + 0.2 * np.sin(11 * t + 1) + 0.1 * np.sin(23 * t)

    def equations(p: np.ndarray, noise: float) -> found_by.Equations:
        s, V = np.linalg.eig(np.array([[0.0, 1.0], [-p[0], -p[1]]]))
        F, x, angle = (V @ np.diag(np.exp(s * h)) @ np.linalg.inv(V)).real, np.zeros(2), np.zeros_like(t)
        for k, u in enumerate(goal):
            angle[k] = x[0]
            x = F @ x + (np.eye(2) - F) @ [u, 0]
        seen = found_by.smoothed(angle + noise * random.normal(size=t.size), h, window)
        between, _, _ = found_by.smoothed(np.convolve(goal, [0.5, 0.5])[: t.size], h, window)
        return found_by.servo_bench(*seen, between)

    read = equations(SERVO, np.radians(0.05))
    plain = found_by.least_squares(read, correlated=6 * window)
    return plain, found_by.least_squares(read, instruments=equations(plain.value, 0.0), correlated=6 * window)


def swinging(inertia: float, damping: float, t: np.ndarray) -> list[np.ndarray]:
    """Angle, rate and acceleration of a body on two strings from 0.8 rad, by the classical Runge-Kutta method."""
    m, d, h = STRINGS.values()

    def slope(x: np.ndarray) -> np.ndarray:
        a, rate = x
        moment = m * 9.81 * d**2 * np.sin(a) / (4 * np.sqrt(h**2 - d**2 / 2 * (1 - np.cos(a))))
        return np.array([rate, -(damping * rate + moment) / inertia])

    x, step, records = np.array([0.8, 0.0]), t[1] - t[0], []
    for _ in t:
        k1 = slope(x)
        records.append([*x, k1[1]])
        k2 = slope(x + step / 2 * k1)
        k3 = slope(x + step / 2 * k2)
        x = x + step / 6 * (k1 + 2 * k2 + 2 * k3 + slope(x + step * k3))
    return list(np.array(records).T)


def response(window: int, period: float) -> np.ndarray:
    """Coefficients of the samples in the first derivative of `derivatives`."""
    return found_by.smoothed(np.eye(window), period, window)[1, 0]


def strings(random: np.random.Generator) -> xr.Dataset:
    """Identified Theta_zz by window of the derivative, without instruments and with a simulated motion as instrument, and the
    fraction that the noise is expected to leave."""
    t, inertia = 0.01 * np.arange(3000), X["inertia"][2]
    a, rate, bend = swinging(inertia, 2e-3, t)
    found = np.zeros((4, len(WINDOWS), 8))
    like = None
    for draw in range(8):
        gyro = rate + SWING * random.normal(size=t.size)
        for j, window in reversed(list(enumerate(WINDOWS))):
            inner, correlated = slice(window // 2, -(window // 2)), 4 * window
            _, a2, _ = found_by.smoothed(gyro, t[1], window)
            swing = found_by.bifilar_pendulum(a[inner], gyro[inner], a2, **STRINGS)
            e = found_by.least_squares(swing, correlated=correlated)
            like = swinging(*e.value, t) if like is None else like  # by the result of the longest window
            instruments = found_by.bifilar_pendulum(*(x[inner] for x in like), **STRINGS)
            better = found_by.least_squares(swing, instruments=instruments, correlated=correlated)
            found[:, j, draw] = [x[0] / inertia for x in (e.value, e.half_width, better.value, better.half_width)]
    noise = np.array([SWING * np.linalg.norm(response(window, t[1])) for window in WINDOWS])
    parts = zip(("plain", "half", "instruments", "half_instruments"), found, strict=True)
    left = 1 / (1 + noise**2 / (bend**2).mean())
    return xr.Dataset({n: (("window", "draw"), x) for n, x in parts} | {"left": ("window", left)}, {"window": list(WINDOWS)})


def measured(of: Any, r: xr.Dataset, random: np.random.Generator, window: int, noise: float = 1.0) -> found_by.Equations:
    """Equations of a flight from one set of sensors; for a machine with tilting arms also from the servos' angles."""
    v, quaternion, propellers = r["v"].values, r["q"].values[:, 3:7], len(of["spins"])
    n, half, chosen = len(v), window // 2, slice(None, None, THIN)
    sizes = noise * np.repeat([NOISE["v"], NOISE["w"], NOISE["speeds"]], [3, 3, propellers])
    up = Rotation.from_quat(quaternion).as_matrix()[:, 2, :] + noise * NOISE["up"] * random.normal(size=(n, 3))
    seen = np.hstack([v[:, :6], v[:, -propellers:]])
    x, rate, _ = found_by.smoothed(seen + sizes * random.normal(size=seen.shape), T, window)
    x, rate, up = x[chosen], rate[chosen], up[half:-half][chosen]
    numbers = {name: of[name] for name in ("azimuths", "spins", "arm", "height", "rotor", "thrust", "torque") if name in of}
    if of["tilt"] is not None:
        angle = r["q"].values[:, 7 : 7 + propellers]
        tilts = found_by.smoothed(angle + noise * NOISE["tilt"] * random.normal(size=angle.shape), T, window)
        numbers |= {"tilts": np.stack(tilts)[:, chosen], "tilt_inertia": of["tilt"][1]}
    wrench = found_by.propeller_wrench(x[:, 6:], rate[:, 6:], x[:, 3:6], **numbers)
    return found_by.flight(x[:, :3], x[:, 3:6], rate[:, :3], rate[:, 3:6], up, wrench, mass=of["mass"])


def identified(of: Any, r: xr.Dataset, random: np.random.Generator, ways: dict[str, Way]) -> xr.Dataset:
    """Numbers of the flight with half intervals from several measurements, in the given ways; and the largest residuals."""
    found = np.zeros((2, len(ways), DRAWS, len(found_by.FLIGHT)))
    worst = np.zeros((len(ways), DRAWS))
    for draw in range(DRAWS):
        sets: dict[tuple, list[found_by.Equations]] = {}
        for i, (window, better, begin) in enumerate(ways.values()):
            if (window, begin) not in sets:
                used = r.isel(time=slice(round(begin / T), None))
                sets[window, begin] = [measured(of, used, random, window) for _ in range(2)]
            one, two = sets[window, begin]
            e = found_by.least_squares(one, instruments=two if better else None, correlated=max(1, 6 * window // THIN))
            found[:, i, draw] = e.value, e.half_width
            worst[i, draw] = np.abs((one.A @ e.value - one.b) / e.deviation).max()
    parts = {name: (("way", "draw", "number"), x) for name, x in zip(("value", "half"), found, strict=True)}
    names = {"way": list(ways), "number": list(found_by.FLIGHT)}
    return xr.Dataset(parts | {"worst": (("way", "draw"), worst), "true": ("number", truth(of))}, names)


MOMENTS = ("about x", "about y", "about z")


def rounded(of: Any, r: xr.Dataset, random: np.random.Generator) -> xr.Dataset:
    """Residuals of the moment rows at the true numbers with the long window: without noise, and by the noise alone."""
    exact, noisy = (measured(of, r, random, LONG, noise) for noise in (0.0, 1.0))
    x = truth(of)
    off = (exact.A @ x - exact.b)[:, 3:]
    noise = (noisy.A @ x - noisy.b)[:, 3:] - off
    at = T * (LONG // 2 + THIN * np.arange(len(off)))
    return xr.Dataset({n: (("time", "row"), y) for n, y in (("off", off), ("noise", noise))},
                      {"time": at, "row": list(MOMENTS)})  # fmt: skip


PLOTTED = ("v_x", "v_z", "w_x", "w_z", "propeller 1")


def simplified(x: np.ndarray, q: np.ndarray, u: np.ndarray) -> np.ndarray:
    """v_dot by (5.17), with columns (v_dot, w_dot, propellers)."""
    speeds, gain = x[:, 6:], driven(x[:, 6:], u)
    f = speeds**2 @ rows().T
    f[:, 3] -= X["rotor"] * gain @ np.array(X["spins"])
    wrench = np.column_stack([np.zeros((len(x), 2)), f])
    return np.column_stack([carried(X, (0, 0, 2), x, q, wrench), gain])


def tricopter_simplified(x: np.ndarray, q: np.ndarray, u: np.ndarray) -> np.ndarray:
    """v_dot by (5.16), with columns (v_dot, w_dot, tilts, propellers)."""
    F, angle = Y["thrust"] * x[:, 9:] ** 2, q[:, 7:10]
    wrench = np.column_stack([F * np.cos(angle), F * np.sin(angle)]) @ tricopter_rows().T
    return np.column_stack([carried(Y, (0, 1, 2), x, q, wrench), u[:, :3] / Y["tilt"][0], driven(x[:, 9:], u[:, 3:])])


def driven(speeds: np.ndarray, u: np.ndarray) -> np.ndarray:
    """Accelerations varpi_dot of the propellers. [konz25 (5.16e)]"""
    return (u - X["friction"] - X["torque"] * speeds**2) / X["rotor"]


def carried(of: Any, moments: tuple[int, ...], x: np.ndarray, q: np.ndarray, wrench: np.ndarray) -> np.ndarray:
    """(v_dot, w_dot) of a body about its mass centre with one drag. [konz25 (5.16a), (5.16b)]"""
    I, bias, d = np.array(of["inertia"])[list(moments)], np.array(of["bias"]), (2 * of["drag"][0] + of["drag"][1]) / 3
    v, w, up = x[:, :3], x[:, 3:6], Rotation.from_quat(q[:, 3:7]).as_matrix()[:, 2, :]
    force, moment = wrench[:, :3] + bias[:3], wrench[:, 3:] + bias[3:]
    return np.column_stack([(force - d * v) / of["mass"] - np.cross(w, v) - 9.81 * up, (moment - np.cross(w, w * I)) / I])


def compared(r: xr.Dataset, random: np.random.Generator, m: pf.Mechanism, simple: Any, propeller: int) -> xr.Dataset:
    """Accelerations as measured, by the full model and by the simplified one, at the measured states and inputs."""
    half, chosen, columns = MIDDLE // 2, slice(None, None, THIN), [0, 2, 3, 5, propeller]
    v = r["v"].values
    sizes = np.full(m.nv, NOISE["w"])
    sizes[:3], sizes[propeller:] = NOISE["v"], NOISE["speeds"]
    x, rate, _ = found_by.smoothed(v + sizes * random.normal(size=v.shape), T, MIDDLE)
    x, rate = x[chosen], rate[chosen]
    q, u = (r[name].values[half:-half][chosen] for name in ("q", "u"))
    parts = {"measured": rate, "whole": pf.forward_dynamics(m, q, x, u).v_dot, "simple": simple(x, q, u)}
    return xr.Dataset({n: (("time", "of"), y[:, columns]) for n, y in parts.items()},
                      {"time": T * (half + THIN * np.arange(len(x))), "of": list(PLOTTED)})  # fmt: skip


def run() -> dict[str, xr.Dataset]:
    random, quad, tri = np.random.default_rng(17), flown(), tricopter_flown()
    parts = {"bench": bench(random), "strings": strings(random), "numbers": identified(X, quad, random, WAYS)}
    return {
        "flight": quad, "tricopter's flight": tri, **parts,
        "quadcopter": compared(quad, random, mechanism(), simplified, 6),
        "tricopter's numbers": identified(Y, tri, np.random.default_rng(19), TILTING_WAYS),
        "rounded": rounded(Y, tri, np.random.default_rng(23)),
        "tricopter": compared(tri, random, pf.multicopters.multicopter("tricopter", **Y), tricopter_simplified, 9),
    }  # fmt: skip


SIZES = np.repeat([1e-3, 18e-3, 0.3, 3.6e-3, 10e-3, 0.1, 0.01], [3, 6, 2, 1, 2, 3, 3])
"""Scales of the numbers of a flight for relative errors: about the largest value of each kind."""


def figures(result: dict[str, xr.Dataset]) -> dict[str, Any]:
    figure = blank_figure(9.5, 3.4)
    scale, left = figure.subplots(1, 2)
    r = result["bench"]
    scale.plot(r["speed"], r["thrust"], "o", markersize=3, label="on the scale")
    scale.plot(r["speed"], float(r["value"][0]) * r["speed"] ** 2, label="kF varpi^2")
    scale.set(xlabel="speed [rad/s]", ylabel="thrust [N]", title="propeller")
    r = result["strings"]
    left.errorbar(r["window"], r["plain"][:, 0], r["half"][:, 0], fmt="o", markersize=3, label="least squares")
    left.errorbar(r["window"], r["instruments"][:, 0], r["half_instruments"][:, 0], fmt="s", markersize=3, label="instruments")
    left.plot(r["window"], r["left"], color="0.6", linestyle="-", label="1 / (1 + (noise / signal)^2)")
    left.set(xlabel="window [samples]", ylabel="identified part of Theta_zz", title="on two strings")
    figures = {"bench": figure, "numbers": numbers(result), "start": start(result["rounded"])}
    units = ("m/s^2", "m/s^2", "rad/s^2", "rad/s^2", "rad/s^2")
    for name in ("quadcopter", "tricopter"):
        figures[name] = blank_figure(9.5, 6.4)
        r = result[name].sel(time=slice(4, 8))
        for ax, of, unit in zip(figures[name].subplots(5, 1, sharex=True), PLOTTED, units, strict=True):
            y = r.sel(of=of)
            ax.plot(r["time"], y["measured"], color="0.75", linestyle="-", linewidth=2, label="measured")
            ax.plot(r["time"], y["whole"], label="whole model")
            ax.plot(r["time"], y["simple"], "--", label="simplified")
            ax.set(ylabel=f"{of} [{unit}]")
        figures[name].axes[-1].set(xlabel="time [s]")
    return figures


def numbers(result: dict[str, xr.Dataset]) -> Any:
    """Errors of the numbers of both flights relative to their intervals, and widths of the intervals."""
    figure = blank_figure(11, 6)
    at = np.arange(len(found_by.FLIGHT))
    looks = {"short window": ("o", "C0"), "long window": ("s", "C1"), "long, instruments": ("^", "C2"),
             "the same with the start": ("v", "C3")}  # fmt: skip
    axes = figure.subplots(2, 2, sharex=True, sharey="row")
    for (wrong, sure), name in zip(axes.T, ("numbers", "tricopter's numbers"), strict=True):
        r = result[name]
        for i, way in enumerate(str(x) for x in r["way"].values):
            y, (mark, colour) = r.sel(way=way), looks[way]
            look = {"marker": mark, "color": colour, "markersize": 4, "linestyle": "none"}
            off, x = (y["value"] - r["true"]) / y["half"], at + 0.2 * (i - (r.sizes["way"] - 1) / 2)
            wrong.plot(x, off.mean("draw"), label=way, **look)
            sure.semilogy(x, y["half"].mean("draw") / SIZES, **look)
        wrong.axhspan(-1, 1, color="0.9", zorder=0)
        wrong.set(title="the quadcopter's flight" if name == "numbers" else "the tricopter's flight", yscale="symlog")
        sure.set(xticks=at)
        sure.set_xticklabels(found_by.FLIGHT, rotation=60, ha="right")
    axes[0, 0].set(ylabel="mean error / half interval")
    axes[1, 0].set(ylabel="half interval / size of its kind")
    both = [ax.get_legend_handles_labels() for ax in axes[0]]
    known = {name: handle for handles, names in both for handle, name in zip(handles, names, strict=True)}
    figure.legend(known.values(), known.keys(), loc="outside lower center", ncols=4)
    return figure


def start(r: xr.Dataset) -> Any:
    """Errors of the tricopter's moments by the window and by noise in the first seconds."""
    figure = blank_figure(9.5, 3.2)
    r = r.sel(time=slice(0, 3))
    for ax, row in zip(figure.subplots(1, 3, sharey=True), MOMENTS, strict=True):
        ax.plot(r["time"], r["noise"].sel(row=row), ".", color="0.7", markersize=3, label="by noise")
        ax.plot(r["time"], r["off"].sel(row=row), label="by the window alone")
        ax.axvline(START, color="k", linestyle=":", label="used from here on")
        ax.set(xlabel="time [s]", title=f"moment {row}")
        ax.set_yscale("symlog", linthresh=0.01)
    figure.axes[0].set(ylabel="residual at true numbers [N m]")
    figure.legend(*figure.axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return figure


def rms(x: xr.DataArray) -> xr.DataArray:
    return np.sqrt((x**2).mean("time"))


def claims(result: dict[str, xr.Dataset]) -> Iterator[Claim]:
    for name in ("flight", "tricopter's flight"):
        yield Claim(f"{name}: run ended early", float(result[name]["status"] != 0), 0)
    r = result["bench"]
    for i, name in enumerate(r["number"].values):
        off = float(np.abs(r["value"] - r["true"])[i] / r["half_width"][i])
        yield Claim(f"bench: error of {name}, relative to half its interval", off, 1.5, 0, "[konz25 (5.3), (5.13)]", "at most")
        yield Claim(
            f"bench: half the interval of {name}, relative",
            float(r["half_width"][i] / r["true"][i]),
            0.02,
            0,
            "ours",
            "at most",
        )
    yield Claim(
        "bench: p_S0 without a simulated servo, relative to the true one",
        float(r["plain"] / SERVO[0]),
        0.97,
        0,
        "errors in variables",
        "at most",
    )
    r = result["strings"]
    off = float(np.abs(r["plain"].mean("draw") - r["left"]).max())
    yield Claim("strings: identified over true Theta_zz, minus the formula", off, 0, 6e-3, "errors in variables")
    yield Claim(
        "strings: identified over true Theta_zz, shortest window", float(r["plain"][0].mean()), 0.35, 0, "ours", "at most"
    )
    yield Claim(
        "strings: identified over true Theta_zz, longest window", float(r["plain"][-1].mean()), 0.99, 0, "ours", "at least"
    )
    within = [(np.abs(r[n] - 1) < r[h]).mean("draw") for n, h in (("plain", "half"), ("instruments", "half_instruments"))]
    yield Claim("strings: share of intervals with the true value, window 5", float(within[0][0]), 0, 0, "errors in variables")
    yield Claim(
        "strings: share of intervals with the true value, with instruments", float(within[1].mean()), 0.9, 0, "ours", "at least"
    )
    yield Claim("strings: identified over true Theta_zz, with instruments", float(r["instruments"].mean()), 1, 5e-3, "ours")
    r = result["numbers"]
    covered = (np.abs(r["value"] - r["true"]) < r["half"]).mean(["draw", "number"])
    yield Claim(
        "flight: share of intervals with the true value, short window",
        float(covered[0]),
        0.85,
        0,
        "errors in variables",
        "at most",
    )
    yield Claim(
        "flight: share of intervals with the true value, long window and instruments",
        float(covered[-1]),
        0.95,
        0.05,
        "[konz25 5.2.3]",
    )
    inertia = (r["value"] / r["true"]).sel(number=["Ixx", "Iyy", "Izz"]).mean("draw")
    yield Claim(
        "flight: identified over true inertias, short window",
        float(inertia[0].max()),
        0.975,
        0,
        "errors in variables",
        "at most",
    )
    off = float(np.abs(inertia.sel(way="long, instruments") - 1).max())
    yield Claim("flight: relative error of the inertias, long window and instruments", off, 0, 4e-3, "[konz25 5.2.3]")
    half = r["half"].sel(way="long, instruments").mean("draw")
    more = float(half.sel(number="com z") / half.sel(number="com x"))
    yield Claim("flight: interval of com z relative to that of com x", more, 10, 0, "thrust is along z", "at least")
    yield from tricopter_claims(result["tricopter's numbers"], result["rounded"])
    noise = np.array([NOISE["v"], NOISE["v"], NOISE["w"], NOISE["w"], NOISE["speeds"]]) * np.linalg.norm(response(MIDDLE, T))
    for machine, figure in (("quadcopter", "[konz25 fig. 5.12]"), ("tricopter", "[konz25 fig. 5.11]")):
        r = result[machine]
        off = float(np.abs(rms(r["measured"] - r["whole"]).values / noise - 1).max())
        yield Claim(f"{machine}: error of the full model relative to the noise, minus 1", off, 0, 0.1, figure)
        part = rms(r["simple"] - r["whole"]) / rms(r["measured"])
        small, large = ("v_x", "v_z", "propeller 1"), ("w_x", "w_z")
        for names, bound, sense in ((small, 0.05, "at most"), (large, 0.1, "at least")):
            for name in names:
                what = f"{machine}, {name}: simplified minus full model, relative"
                yield Claim(what, float(part.sel(of=name)), bound, 0, figure, sense)


def tricopter_claims(r: xr.Dataset, window: xr.Dataset) -> Iterator[Claim]:
    """Claims on the tricopter's identification: errors, intervals, the least certain numbers, and the effect of its start."""
    good, all_of = (r.sel(way=way) for way in TILTING_WAYS)
    covered = [float((np.abs(x["value"] - x["true"]) < x["half"]).mean()) for x in (good, all_of)]
    yield Claim("tricopter: share of intervals with the true value", covered[0], 0.95, 0.05, "[konz25 5.2.3]")
    yield Claim(
        "tricopter: share of intervals with the true value, with its start", covered[1], 0.8, 0, "the window", "at most"
    )
    spread = good["value"].std("draw") / np.sqrt(DRAWS - 1)
    bias = np.abs(good["value"].mean("draw") - good["true"]) / spread
    yield Claim(
        "tricopter: error of the mean over the draws, in its standard deviations",
        float(bias.max()),
        4.5,
        0,
        "no bias",
        "at most",
    )
    for name, most, least in (("Ixx", 0.02, -0.12), ("com z", 0.05, 0.15)):
        size = SIZES[found_by.FLIGHT.index(name)]
        off = [float((x["value"] - x["true"]).sel(number=name).mean() / size) for x in (good, all_of)]
        yield Claim(f"tricopter: relative error of {name}", off[0], 0, most, "ours")
        yield Claim(
            f"tricopter: relative error of {name} with its start", off[1], least, 0, "", "at most" if least < 0 else "at least"
        )
    early = window["time"] < START
    squares = (window["off"] ** 2).sum("row")
    share = float(squares.where(early).sum() / squares.sum())
    yield Claim("tricopter: share of the window's squared errors before START", share, 0.99, 0, "", "at least")
    left = float((rms(window["off"].where(~early)) / rms(window["noise"])).max())
    yield Claim("tricopter: error of the window after START, relative to the noise of a row", left, 0.15, 0, "ours", "at most")
    worst = [float(x["worst"].max()) for x in (good, all_of)]
    yield Claim(
        "tricopter: largest residual of a row, in standard deviations of its kind", worst[0], 6, 0, "normal errors", "at most"
    )
    yield Claim("tricopter: largest residual with its start", worst[1], 10, 0, "shows in the residuals", "at least")
    half = good["half"].mean("draw") / SIZES
    uncertain = [str(name) for name, x in zip(r["number"].values, half.values, strict=True) if x > 0.06]
    yield Claim(f"tricopter: numbers not known to 6 %: {', '.join(uncertain)}", float(len(uncertain)), 6, 0, "ours")
    surest = half.sel(number=["Ixx", "Iyy", "Izz", "Ixy", "Ixz", "Iyz", "d_x"]).max()
    yield Claim("tricopter: half the intervals of the inertia and d_x, relative", float(surest), 0.035, 0, "ours", "at most")
