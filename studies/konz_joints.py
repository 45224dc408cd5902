"""Tracking of joints: a revolute joint by three approaches and by a linear law, and coordinates on R^n. [konz25 4.3.2, 4.7.2]

Beside a revolute joint there are joint coordinates on R^n, where the law is augmented PD control or computed torque.

From the thesis: theta_R = pi / 2 sin(2 pi t / 2.5) of the revolute joint. It gives no gains of this joint: Pi / Theta = 25 /
s^2, Upsilon / Theta = 6 / s are ours, chosen so that Pi / Theta exceeds the square of the largest rate, 15.6 / s^2, as the
particle approach requires. All other numbers are ours too. A body on a helical joint has a coordinate in R on which springs at
points of its axis act linearly, so 4.3.2 is demonstrated with such joints.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import casadi as ca
import numpy as np
import xarray as xr

import pfaffian as pf
from pfaffian import control
from pfaffian.study import Claim, blank_figure

pm = pf.forces.pseudo_matrix
THETA = 0.2
"""Inertia of the machine with a revolute joint [kg m^2]."""
TH, UPS, PI = 1.0, 6.0, 25.0
"""Inertia, damping and stiffness of its prototype [kg m^2, N m s, N m]."""
RATE = pf.Parameter("rate", 0.0, "rad/s")
"""Constant part of the reference's rate [rad/s], a parameter."""
SWING, PERIOD = pf.Parameter("swing", 0.0, "rad"), 2.5
SLOW, FAST = 4.5, 5.5
"""Rates below and above sqrt(Pi / Theta) = 5 rad/s [rad/s]."""
SMALL = 1e-6
PITCH = 0.3
"""Pitch of the helical joints [m/rad]."""
POLES = np.array([[-3.0, -5.0], [-2.0, -6.0]])
"""Poles of each joint under computed torque [1/s]."""


def mechanism() -> pf.Mechanism:
    """One body on a revolute joint with a motor. [konz25 4.7.2]"""
    joint = pf.joint("j", "revolute", "world", "body")
    m = pf.mechanism("revolute", [pf.body("body", 1.0, inertia=THETA)], [joint], gravity=(0, 0, 0), parameters=[RATE, SWING])
    return pf.actuate_all(m)


def helical_arm() -> pf.Mechanism:
    """C3: two helical joints, so that q is in R^2 and M depends on it."""
    bodies = [
        pf.body("a", 1.2, com=(0.2, 0.05, 0.1), inertia=(0.02, 0.03, 0.04)),
        pf.body("b", 0.8, com=(0.1, -0.2, 0.1), inertia=0.02),
    ]
    joints = [
        pf.joint("a", "helical", "world", "a", pitch=PITCH),
        pf.joint("b", "helical", "a", "b", axis=(0, 0.6, 0.8), placement=(0.4, 0, 0), pitch=PITCH),
    ]
    return pf.actuate_all(pf.mechanism("helical arm", bodies, joints))


def turning_joint() -> control.Reference:
    """theta_R = rate t + swing sin(2 pi t / 2.5), both parameters of a run. [konz25 fig. 4.5]"""
    w, r, a = 2 * np.pi / PERIOD, RATE.symbol, SWING.symbol

    def at(t: ca.SX, _: ca.SX) -> control.Setpoint:
        return control.Setpoint(r * t + a * ca.sin(w * t), r + a * w * ca.cos(w * t), -a * w**2 * ca.sin(w * t))

    return control.Reference(at, 1)


def swaying() -> control.Reference:
    return control.function_of_time(lambda t: [0.8 * ca.sin(2 * t), 0.5 * ca.cos(3 * t)], 2)


def turning() -> list[control.Pair]:
    return [control.pair("body", inertia=pm(0, moments=TH), damping=pm(0, moments=UPS), stiffness=pm(0, moments=PI))]


def along_axes(weights: np.ndarray) -> list[np.ndarray]:
    """(4, 4) matrices of weights at points of the joints' axes, so that joint i has the stiffness weights[i] = k pitch^2."""
    return [np.diag([0, 0, 0, w / PITCH**2]) for w in weights]


def computed() -> list[control.Pair]:
    """Computed torque: inertia 1 of each joint, gains by its poles. [konz25 (4.39)]"""
    parts = zip(along_axes(np.ones(2)), along_axes(-POLES.sum(1)), along_axes(POLES.prod(1)), strict=True)
    ends = (("a", "world"), ("b", "a"))
    return [
        control.pair(b, seen_from=a, inertia=i, damping=d, stiffness=k) for (b, a), (i, d, k) in zip(ends, parts, strict=True)
    ]


def augmented(m: pf.Mechanism) -> list[control.Pair]:
    """Augmented PD control: the machine's inertia, with damping and stiffness of each joint. [konz25 (4.37)]"""
    inertias = {b.name: pm(b.mass, b.com, b.inertia) for b in m.bodies}
    relative = zip((("a", "world"), ("b", "a")), along_axes(-POLES.sum(1)), along_axes(POLES.prod(1)), strict=True)
    pairs = [control.pair(b, seen_from=a, damping=d, stiffness=k) for (b, a), d, k in relative]
    return pairs + [control.pair(n, inertia=i) for n, i in inertias.items()]


def linear() -> control.Control:
    """Linear law Theta E'' + Upsilon E' + Pi E = 0 with E in (-pi, pi], which jumps at pi. [konz25 (4.80)]"""

    def law(T: pf.Terms, z: ca.SX, w: ca.SX, y: ca.SX) -> control.Command:
        goal = turning_joint().at(T.t, w)
        apart = T.q - goal.value
        E = ca.atan2(ca.sin(apart), ca.cos(apart))
        return control.Command(THETA * (goal.acceleration - (UPS * (T.v - goal.rate) + PI * E) / TH))

    return control.Control(law)


STARTS = [(E, 0.0) for E in np.linspace(-3, 3, 9)] + [(-4.5, 12.0), (-4.5, 17.0), (4.5, -12.0), (4.5, -17.0)]
"""Starts E and E' of the phase plots [rad, rad/s]."""


def joint_runs() -> dict[str, xr.Dataset]:
    """Runs of the revolute joint: all starts, rates and swings of one law in one batch."""
    random = np.random.default_rng(45)
    phases = [(*s, turns, 0.0) for turns in (0.0, 3.0, 8.0) for s in STARTS]
    small = [(SMALL, 0, SLOW, 0), (SMALL, 0, FAST, 0), (np.pi - SMALL, 0, 0, 0)]
    anywhere = [(*random.normal(size=2), 1.5, 0.7) for _ in range(3)]
    starts = np.array([*phases, *small, *anywhere, (1.2, 3.0, 0.0, np.pi / 2)])
    E, rate, turns, swing = starts.T
    q, v = E[:, None], (rate + turns + swing * 2 * np.pi / PERIOD)[:, None]
    how = {"duration": 6.0, "step": 2e-3, "every": 5, "parameters": {"rate": turns, "swing": swing}}
    laws = {a: control.prototype_tracking(turning(), turning_joint(), approach=a) for a in ("particle", "body")}
    m, found = mechanism(), {}
    for name, law in {**laws, "linear": linear()}.items():
        signals = ["q", "v", "u", *(["prototype_energy", "prototype_power"] if name in laws else [])]
        r = pf.run(m, q, v, control=law, record=signals, **how)
        t = r["time"].values
        w = 2 * np.pi / PERIOD
        for what, x in (
            ("E", r["q"].values[..., 0] - np.outer(turns, t) - np.outer(swing, np.sin(w * t))),
            ("rate_E", r["v"].values[..., 0] - turns[:, None] - np.outer(swing * w, np.cos(w * t))),
            ("rate_R", turns[:, None] + np.outer(swing * w, np.cos(w * t))),
            ("bend_R", -np.outer(swing * w**2, np.sin(w * t))),
        ):
            r[what] = (("run", "time"), x)
        found[f"revolute {name}"] = r
    return found


def run() -> dict[str, xr.Dataset]:
    results, arm = joint_runs(), helical_arm()
    laws = {
        "by the prototype": control.prototype_tracking(computed(), swaying()),
        "computed torque": control.computed_torque(
            control.joints("a", "b"), swaying(), stiffness=POLES.prod(1), damping=-POLES.sum(1)
        ),
        "augmented": control.prototype_tracking(augmented(arm), swaying()),
    }
    for name, law in laws.items():
        results[f"arm {name}"] = pf.run(arm, [0.5, 0.1], [-0.4, 0.8], duration=2.0, step=2e-3, every=10, control=law)
    return results


N = len(STARTS)
BATCH = {
    "phase, 0": slice(0, N),
    "phase, 3": slice(N, 2 * N),
    "phase, 8": slice(2 * N, 3 * N),
    "slow": 3 * N,
    "fast": 3 * N + 1,
    "upside down": 3 * N + 2,
    "random": slice(3 * N + 3, 3 * N + 6),
    "thesis": 3 * N + 6,
}
"""Indices of the runs in a batch by name."""


def figures(result: dict[str, xr.Dataset]) -> dict[str, Any]:
    return {"revolute": revolute_figure(result), "arm": arm_figure(result)}


def revolute_figure(result: dict[str, xr.Dataset]) -> Any:
    figure = blank_figure(9.5, 6.4)
    (a, b, c), (d, e, f) = figure.subplots(2, 3)
    panels = (
        (a, "body", "phase, 0", "body and energy approach"),
        (b, "particle", "phase, 3", "particles, rate 3 rad/s"),
        (c, "particle", "phase, 8", "particles, rate 8 rad/s"),
        (d, "linear", "phase, 0", "linear, jumps at $\\pm\\pi$"),
    )
    colours = {"particle": "C0", "body": "C1", "linear": "C2"}
    for ax, name, which, title in panels:
        r = result[f"revolute {name}"]
        for E, rate in zip(r["E"].values[BATCH[which]], r["rate_E"].values[BATCH[which]], strict=True):
            around = (E + np.pi) % (2 * np.pi) - np.pi
            cut = np.abs(np.diff(around, append=around[-1])) > 1  # do not draw a line across the jump of the angle
            ax.plot(np.where(cut, np.nan, around), rate, colours[name], linewidth=0.8)
        ax.set(xlabel="$\\theta_E$ [rad]", ylabel="its rate [rad/s]", title=title, xlim=(-3.5, 3.5))
    for name, colour in colours.items():
        r = result[f"revolute {name}"].isel(run=BATCH["thesis"])
        t = r["time"].values
        e.plot(t, r["q"].values[:, 0], colour, label=name if name != "body" else "body, energy")
        f.plot(t, r["u"].values[:, 0], colour)
    e.plot(t, np.pi / 2 * np.sin(2 * np.pi * t / PERIOD), "k:", label="reference")
    e.set(xlabel="time [s]", ylabel="$\\theta$ [rad]", ylim=(-2.2, 2.6))
    f.set(xlabel="time [s]", ylabel="torque [N m]")
    e.legend(loc="upper right")
    return figure


def arm_figure(result: dict[str, xr.Dataset]) -> Any:
    figure = blank_figure(5.0, 3.2)
    arm = figure.subplots()
    for name, dashes in (("by the prototype", "-"), ("augmented", "--")):
        r = result[f"arm {name}"]
        e = r["q"].values - sway(r["time"].values)[0]
        for i, joint in enumerate("ab"):
            arm.plot(r["time"], e[:, i], f"C{i}{dashes}", label=f"{'computed torque' if dashes == '-' else name}, {joint}")
    arm.set(xlabel="time [s]", ylabel="error [rad]", title="two helical joints")
    arm.legend(loc="best", fontsize=7)
    return figure


def sway(t: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Reference of the arm with rate and acceleration."""
    w, a = np.array([2.0, 3.0]), np.array([0.8, 0.5])
    x = np.outer(t, w) + [0, np.pi / 2]
    return a * np.sin(x), a * w * np.cos(x), -a * w**2 * np.sin(x)


def claims(result: dict[str, xr.Dataset]) -> Iterator[Claim]:
    yield from _of_the_turning_joint(result)
    yield from _of_the_arm(result)


def _of_the_turning_joint(result: dict[str, xr.Dataset]) -> Iterator[Claim]:
    r = result["revolute particle"].isel(run=BATCH["random"])
    E, w_R, a_R, w = (r[n].values for n in ("E", "rate_R", "bend_R", "rate_E"))
    w = w + w_R
    c, s, bend = np.cos(E), np.sin(E), r["u"].values[..., 0] / THETA
    left = TH * (bend - a_R * c - w_R**2 * s) + UPS * (w - w_R * c) + PI * s
    yield Claim("revolute by particle: residual of the closed loop [N m]", np.abs(left).max(), 0, 1e-10, "[konz25 (4.76)]")
    W = TH / 2 * (w**2 - 2 * w * w_R * c + w_R**2) + PI * (1 - c)
    rise = -UPS * (w - w_R * c) ** 2 + PI * w_R * s * (c - 1) + TH * w_R * (a_R * (1 - c**2) + (w**2 - w_R**2 * c) * s)
    yield Claim(
        "revolute by particle: energy minus the formula [J]",
        np.abs(W - r["prototype_energy"].values).max(),
        0,
        1e-10,
        "[konz25 (4.77)]",
    )
    yield Claim(
        "revolute by particle: power minus the formula [W]",
        np.abs(rise - r["prototype_power"].values).max(),
        0,
        1e-9,
        "[konz25 (4.77)]",
    )
    yield Claim(
        "revolute by particle: largest power, which is positive [W]", float(rise.max()), 1.0, 0, "[konz25 4.7.2]", "at least"
    )
    r = result["revolute body"].isel(run=BATCH["random"])
    E, w, a_R = (r[n].values for n in ("E", "rate_E", "bend_R"))
    left = TH * (r["u"].values[..., 0] / THETA - a_R) + UPS * w + PI * np.sin(E)
    yield Claim("revolute by body: residual of the closed loop [N m]", np.abs(left).max(), 0, 1e-10, "[konz25 (4.79)]")
    off = np.abs(r["prototype_power"].values + UPS * w**2).max()
    yield Claim("revolute by body: power plus Upsilon E'^2 [W]", off, 0, 1e-10, "[konz25 (4.79)]")
    for name, turns in (("slow", SLOW), ("fast", FAST)):
        r = result["revolute particle"].isel(run=BATCH[name])
        root = (-UPS + np.sqrt(UPS**2 - 4 * TH * (PI - TH * turns**2))) / (2 * TH)
        yield Claim(
            f"particles at {turns} rad/s: growth [1/s]", growth(r["E"].values, r["time"].values), root, 1e-4, "[konz25 4.7.2]"
        )
    r = result["revolute body"].isel(run=BATCH["upside down"])
    root = (-UPS + np.sqrt(UPS**2 + 4 * TH * PI)) / (2 * TH)
    yield Claim("body upside down: growth [1/s]", growth(np.pi - r["E"].values, r["time"].values), root, 1e-4, "[konz25 4.7.2]")
    for name in ("particle", "body", "linear"):
        r = result[f"revolute {name}"].isel(run=BATCH["thesis"])
        last = np.abs(np.sin(r["E"].values[-100:] / 2)).max()
        yield Claim(f"{name}: error from the thesis's reference at the end", last, 0, 1e-5, "[konz25 fig. 4.5]", "at most")
    for name, jump in (("linear", 2 * np.pi * PI * THETA / TH), ("body", 0.0)):
        f = torque_at_half_turn(name)
        yield Claim(f"{name}: jump of the torque at half a turn [N m]", f[0] - f[1], jump, 1e-4, "[konz25 (4.80)]")


def growth(E: np.ndarray, t: np.ndarray) -> float:
    """Growth rate of a small error after it has become the slowest mode [1/s]."""
    i, j = np.searchsorted(t, (2.5, 3.0))
    return float(np.log(E[j] / E[i]) / (t[j] - t[i]))


def torque_at_half_turn(name: str) -> np.ndarray:
    """Torques slightly beyond and before half a turn, at rest [N m]."""
    law = linear() if name == "linear" else control.prototype_tracking(turning(), turning_joint(), approach="body")
    q = [[np.pi + SMALL], [np.pi - SMALL]]
    r = pf.run(mechanism(), q, duration=1e-3, step=1e-3, control=law, record=["u"], backend="numpy")
    return r["u"].values[:, 0, 0]


def _of_the_arm(result: dict[str, xr.Dataset]) -> Iterator[Claim]:
    ours, known = result["arm by the prototype"], result["arm computed torque"]
    off = np.abs(ours["u"].values - known["u"].values).max() / np.abs(known["u"].values).max()
    yield Claim("Mbar = 1: efforts minus those of computed torque, relative", off, 0, 1e-10, "[konz25 (4.40)]")
    t = ours["time"].values
    e0, rate0 = np.array([0.5, 0.1]) - sway(t[:1])[0][0], np.array([-0.4, 0.8]) - sway(t[:1])[1][0]
    e = ours["q"].values - sway(t)[0]
    for i, s in enumerate(POLES):
        A = np.linalg.solve([[1, 1], s], [e0[i], rate0[i]])
        off = np.abs(e[:, i] - np.exp(np.outer(t, s)) @ A).max()
        yield Claim(f"error of joint {'ab'[i]} minus its exponentials [rad]", off, 0, 1e-7, "[konz25 (4.39)]")
    r, m = result["arm augmented"], helical_arm()
    q, v, x = r["q"].values, r["v"].values, sway(t)
    M, C = pf.mass_matrix(m, q), np.einsum("nijk,nk->nij", pf.calculus.connection_coefficients(m, q), v)
    rest = pf.bias_force(m, q, 0 * v)  # the weight
    e, rate = q - x[0], v - x[1]
    f = np.einsum("nij,nj->ni", M, x[2]) + np.einsum("nij,nj->ni", C, x[1]) + POLES.sum(1) * rate - POLES.prod(1) * e + rest
    off = np.abs(r["u"].values - f).max() / np.abs(f).max()
    yield Claim("Mbar = M: efforts minus those of augmented PD, relative", off, 0, 1e-10, "[konz25 (4.38)]")
