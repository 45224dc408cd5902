"""A redundant arm whose tip moves along a line: by ideal reactions, or by two of its three motors. [ider section 4, Fig. 1-5]

A planar arm of three links with relative angles theta; its tip is to follow [ider (20)]. The conventional method uses the
reaction of an ideal constraint as moments at all three joints; the control-force method uses the directions (24), moments at
joints 2 and 3 only, so M1 = 0. Both give the same motion of the tip and different motions of the joints.

From the paper: L = 1 m each, m = 30, 18, 18 kg, I = 10, 8.64, 8.64 kg m^2, theta(0) = (60, -10, -90) deg, theta_dot(0) =
(0.386, 0, -0.9618) rad/s, v^A = -1 m/s, 1 s. It gives neither the mass centres nor the point of I nor gravity: each is an
option of `mechanism`. Our defaults are mass centres at mid-link, I about them, and no gravity. That there is no gravity
follows from a claim below: with gravity, M1 = 0 cannot control the tip for 1 s. I_1 = m L^2 / 3 and I_2 = m (1.2 L)^2 / 3 look
like inertias about the joints, of links 1 and 1.2 m long; the effect of this interpretation is given. The paper's curves are
not given as numbers, so nothing is compared with them point by point.

Ours: the path starts at the exact tip of theta(0), which (20) rounds; a periodic path x(t) = x(0) - 0.2 (1 - cos(pi t / 2)) m
for 60 s with steps of 10 ms, with the error dynamics of the servo constraint and, as in the paper, without.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import casadi as ca
import numpy as np
import xarray as xr

import pfaffian as pf
from pfaffian.study import Claim, blank_figure

LENGTH = (1.0, 1.0, 1.0)  # [m]
MASS = (30.0, 18.0, 18.0)  # [kg]
INERTIA = (10.0, 8.64, 8.64)  # [kg m^2]
THETA = np.radians([60.0, -10.0, -90.0])
RATES = np.array([0.386, 0.0, -0.9618])  # [rad/s]
SPEED = -1.0  # v^A [m/s]
DURATION, STEP = 1.0, 1e-3
LONG, LONG_STEP = 60.0, 1e-2

WAYS = {"conventional": None, "control force": ("M2", "M3")}
"""Motors that control the tip, by method; None for the ideal constraint."""


def mechanism(
    path: Callable[[ca.SX], ca.SX] | None = None, moments: object = None, *, about: str = "mass centre", centre: float = 0.5,
    gravity: float = 0.0, stiffness: float = 400.0, damping: float = 40.0,
) -> pf.Mechanism:  # fmt: skip
    """The arm with its tip on `path`, x(t) with the constant y of (20).

    moments: names of motors, a function that gives directions of the control forces, or None for an ideal constraint.
    about: the point of I, "mass centre" or "joint".   centre: mass centre along the link [1].   gravity: along -y [m/s^2].
    stiffness, damping: of the servo's errors.
    """
    central_inertia = [
        i - m * (centre * l) ** 2 if about == "joint" else i for i, m, l in zip(INERTIA, MASS, LENGTH, strict=True)
    ]
    bodies = [pf.body(f"link{i + 1}", MASS[i], (centre * LENGTH[i], 0, 0), central_inertia[i]) for i in range(3)]
    joints = [
        pf.joint(f"theta{i + 1}", "revolute", "world" if i == 0 else f"link{i}", f"link{i + 1}",
                 placement=pf.pose((LENGTH[i - 1] if i else 0.0, 0, 0)))
        for i in range(3)
    ]  # fmt: skip
    wish = tip_on(path or line)
    tip_constraint = wish if moments is None else pf.servo(wish, moments, stiffness=stiffness, damping=damping)
    motors = [pf.actuator(f"M{i + 1}", f"theta{i + 1}") for i in range(3)]
    return pf.mechanism(
        "redundant arm", bodies, joints, constraints=[tip_constraint], actuators=motors, gravity=(0, -gravity, 0)
    )


def tip_on(path: Callable[[ca.SX], ca.SX]):
    x, y = tip(THETA)
    return pf.holonomic("tip", lambda k: k.position("link3", (LENGTH[2], 0, 0))[:2] - ca.vertcat(x + path(k.t), y))


def line(t: ca.SX) -> ca.SX:
    return SPEED * t


def wave(t: ca.SX) -> ca.SX:
    return -0.2 * (1 - ca.cos(np.pi * t / 2))


def elbows(theta: np.ndarray) -> np.ndarray:
    """(..., 4, 2) positions of the base, the elbows and the tip [m]."""
    angle = np.cumsum(theta, axis=-1)
    ends = np.cumsum(np.stack([np.cos(angle), np.sin(angle)], axis=-1) * np.array(LENGTH)[:, None], axis=-2)
    return np.concatenate([np.zeros_like(ends[..., :1, :]), ends], axis=-2)


def tip(theta: np.ndarray) -> np.ndarray:
    return elbows(theta)[..., -1, :]


def jacobian(theta: np.ndarray) -> np.ndarray:
    """(2, 3) Jacobian of the tip: (21) with corrected signs."""
    arms = tip(theta) - elbows(theta)[:-1]
    return np.array([-arms[:, 1], arms[:, 0]])


def start() -> np.ndarray:
    """The printed rates, corrected within their rounding (1e-4 rad/s) to the tip velocity (v^A, 0)."""
    J = jacobian(THETA)
    return RATES + np.linalg.pinv(J) @ (np.array([SPEED, 0.0]) - J @ RATES)


def row_combinations(mixing: np.ndarray) -> Callable[[pf.Kinematics], ca.SX]:
    """Directions that are combinations of the constraint's rows."""
    target = tip_on(line)
    return lambda k: ca.SX(ca.DM(mixing)) @ ca.jacobian(target.phi(k), k.q)


def run() -> dict[str, xr.Dataset]:
    result = {}
    for name, moments in WAYS.items():
        r = pf.run(mechanism(line, moments), THETA, start(), duration=DURATION, step=STEP, every=5)
        result[name] = r.assign(moment=(("time", "joint"), moments_of(r, moments)), tip=(("time", "axis"), tip(r["q"].values)))
        for about, g in (("joint", 0.0), ("mass centre", 9.81), ("joint", 9.81)):
            m = mechanism(line, moments, about=about, gravity=g)
            result[f"{name}, I about the {about}, g = {g}"] = pf.run(m, THETA, start(), duration=DURATION, step=STEP, every=5)
    mixed = mechanism(line, row_combinations(np.array([[2.0, 1.0], [-1.0, 3.0]])))
    result["own rows, mixed"] = pf.run(mixed, THETA, start(), duration=DURATION, step=STEP, every=5)
    for name, moments in (("conventional", row_combinations(np.eye(2))), ("control force", WAYS["control force"])):
        for errors, gains in (("held", {}), ("acceleration only", {"stiffness": 0.0, "damping": 0.0})):
            m = mechanism(wave, moments, **gains)
            result[f"{name}, {errors}"] = pf.run(m, THETA, duration=LONG, step=LONG_STEP, every=10)
    return result


def moments_of(r: xr.Dataset, moments: object) -> np.ndarray:
    """(times, 3) joint moments [N m], from the equations of motion and the motion alone: M v_dot + c."""
    # The acceleration along the line is always zero, so without error dynamics (2e-12 m) the result does not depend on t.
    m = mechanism(line, moments, stiffness=0.0, damping=0.0)
    accelerations = pf.forward_dynamics(m, r["q"].values, r["v"].values)
    free = pf.compile_terms(mechanism(), {"M": lambda T: T.M, "c": lambda T: T.c})(r["q"].values, r["v"].values)
    return np.einsum("tij,tj->ti", free["M"], accelerations.v_dot) + free["c"]


LABELS = {"conventional": "ideal reaction", "control force": "M1 = 0"}


def figures(result: dict[str, xr.Dataset]) -> dict[str, Any]:
    return {
        "figures_2_3_4": _curves(result),
        "figure_5": _configurations(result),
        "constraint_errors": _errors(result),
    }


def _curves(result: dict[str, xr.Dataset]) -> Any:
    figure = blank_figure(7.0, 8.0)
    axes = figure.subplots(3, 1, sharex=True)
    names = ("Δθ{} [deg]", "rate of θ{} [rad/s]", "M{} [N m]")
    for (way, label), dash in zip(LABELS.items(), ("-", "--"), strict=True):
        r = result[way]
        values = (np.degrees(r["q"].values - THETA), r["v"].values, r["moment"].values)
        for ax, x in zip(axes, values, strict=True):
            for i in range(3):
                ax.plot(r["time"], x[:, i], dash, color=pf.study.COLOURS[i], label=f"{i + 1}, {label}")
    for ax, name in zip(axes, names, strict=True):
        ax.set_ylabel(name.format("i"))
        ax.grid(color="#E6E6E6")
    axes[0].set_title("like Fig. 2, 3, 4: joints 1, 2, 3")
    axes[2].set_xlabel("time [s]")
    return figure


def _configurations(result: dict[str, xr.Dataset]) -> Any:
    figure = blank_figure(6.5, 4.2)
    ax = figure.subplots()
    ax.plot(*elbows(THETA).T, "o-", color="#BBBBBB", label="at the start")
    for way, colour in zip(LABELS, pf.study.COLOURS, strict=False):
        ax.plot(*elbows(result[way]["q"].values[-1]).T, "o-", color=colour, label=f"after 1 s, {LABELS[way]}")
    ax.plot(*result["conventional"]["tip"].values.T, ":", color="black", label="path of the tip")
    ax.set(xlabel="x [m]", ylabel="y [m]", aspect="equal", title="like Fig. 5", xlim=(-0.2, 2.1), ylim=(-0.1, 2.05))
    return figure


def _errors(result: dict[str, xr.Dataset]) -> Any:
    figure = blank_figure(7.0, 5.5)
    axes = figure.subplots(2, 1, sharex=True)
    for way, colour in zip(LABELS, pf.study.COLOURS, strict=False):
        for errors, dash in (("acceleration only", "--"), ("held", "-")):
            r = result[f"{way}, {errors}"]
            for ax, name in zip(axes, ("servo_error", "servo_rate"), strict=True):
                off = np.linalg.norm(r[name].values, axis=-1)
                ax.semilogy(r["time"], np.maximum(off, 1e-16), dash, color=colour, label=f"{LABELS[way]}, {errors}")
    axes[0].set(ylabel="position error [m]", title=f"periodic path, steps of {1e3 * LONG_STEP:.0f} ms")
    axes[1].set(ylabel="velocity error [m/s]", xlabel="time [s]")
    for ax in axes:
        ax.grid(color="#E6E6E6")
    return figure


def claims(result: dict[str, xr.Dataset]) -> Iterator[Claim]:
    a, b = result["conventional"], result["control force"]
    yield from _start()
    expected = tip(THETA) + np.outer(a["time"].values, [SPEED, 0.0])
    for way in LABELS:
        off = _largest(result[way]["tip"].values - expected)
        yield Claim(f"tip minus (20), {way} [m]", off, 0, 3e-12, "[ider (20)]")
    yield Claim(
        "difference of the tips by the two methods [m]", _largest(a["tip"].values - b["tip"].values), 0, 3e-12, "[ider Fig. 5]"
    )
    yield Claim("M1 of the control-force method [N m]", _largest(b["moment"].values[:, 0]), 0, 3e-13, "[ider (25)]")
    off = _largest(b["moment"].values[:, 1:] - b["servo_force"].values)
    yield Claim("M2, M3 minus nu [N m]", off, 0, 2e-7, "[ider (25)]")
    off = _largest(a["moment"].values - a["reaction"].values)
    yield Claim("moments of the conventional method minus B^T lambda [N m]", off, 0, 1e-13, "[ider (23)]")
    smallest = np.abs(a["moment"].values).max(axis=0).min()
    yield Claim("conventional method: smallest of the three largest moments [N m]", smallest, 1, 0, "[ider (23)]", "at least")
    apart = np.degrees(_largest(a["q"].values[-1] - b["q"].values[-1]))
    yield Claim("difference of the joint angles after 1 s [deg]", apart, 10, 0, "[ider Fig. 5]", "at least")
    m = mechanism(line, WAYS["control force"])
    hold = min(
        pf.constraints.realisability(m, q, t=t).smallest
        for q, t in zip(b["q"].values[::20], b["time"].values[::20], strict=True)
    )
    yield Claim("smallest singular value of the decoupling matrix", hold, 0.25, 0, "[ider section 4]", "at least")
    off = _largest(result["own rows, mixed"]["q"].values - a["q"].values)
    yield Claim("A = combinations of B^K: joints minus the conventional motion [rad]", off, 0, 3e-12, "[ider section 3]")
    yield from _all_joints()
    yield from _long(result)
    yield from _readings(result)


def _start() -> Iterator[Claim]:
    x, y = tip(THETA)
    yield Claim("x of the tip at the start [m]", x, 1.9088, 5e-5, "[ider (20)]")
    yield Claim("y of the tip at the start [m]", y, 0.9893, 5e-5, "[ider (20)]")
    speed = jacobian(THETA) @ RATES
    yield Claim("speed of the tip by the printed rates, x [m/s]", speed[0], SPEED, 2e-4, "[ider section 4]")
    yield Claim("speed of the tip by the printed rates, y [m/s]", speed[1], 0, 2e-4, "[ider section 4]")
    h = 1e-6
    by_differences = np.array([(tip(THETA + h * e) - tip(THETA - h * e)) / (2 * h) for e in np.eye(3)]).T
    off = _largest(jacobian(THETA) - by_differences)
    yield Claim("Jacobian minus that of (20) by differences", off, 0, 1e-9, "[ider (21)]")
    # The printed equations: B = (sum L s; sum L c), h = -(sum L s w^2; sum L c w^2).
    s, c = np.sin(np.cumsum(THETA)), np.cos(np.cumsum(THETA))
    printed = np.array([[s[i:].sum() for i in range(3)], [c[i:].sum() for i in range(3)]])
    w = np.cumsum(start())
    v_dot = pf.forward_dynamics(mechanism(), THETA, start()).v_dot
    off = _largest(printed[0] + jacobian(THETA)[0])
    yield Claim("first row of the printed B plus that of the Jacobian", off, 0, 1e-14, "[ider (21), errata]")
    acceleration = jacobian(THETA) @ v_dot - np.array([c @ w**2, s @ w**2])
    yield Claim("acceleration of the tip [m/s^2]", _largest(acceleration), 0, 1e-14, "[ider (20)]")
    off = _largest(printed @ v_dot + np.array([s @ w**2, c @ w**2]))
    yield Claim("error of the printed B and h on this motion [m/s^2]", off, 0.4, 0, "[ider (21) (22), errata]", "at least")


def _all_joints() -> Iterator[Claim]:
    """Claims with as many constraints as coordinates: the tip and the angle of the last link."""
    angle = THETA.sum()
    target = tip_on(line)
    wish = pf.holonomic("pose", lambda k: ca.vertcat(target.phi(k), ca.sum1(k.q) - angle - 0.5 * k.t))
    v = np.linalg.solve(np.vstack([jacobian(THETA), np.ones(3)]), [SPEED, 0.0, 0.5])
    skew = ca.DM([[1, 0.3, 0], [0, 1, -0.4], [0.2, 0, 1]])
    both = [wish, pf.servo(wish, lambda k: ca.SX(skew), stiffness=0.0, damping=0.0)]
    base = mechanism()
    plain = pf.Scheme(corrections=0)
    ideal, driven = (pf.run(base.with_(constraints=[c]), THETA, v, duration=0.5, step=STEP, scheme=plain) for c in both)
    pushed = driven["servo_force"].values @ np.array(skew)
    off = _largest(driven["q"].values - ideal["q"].values)
    yield Claim("n = c: joints minus the conventional motion [rad]", off, 0, 2e-14, "[ider section 3]")
    off = _largest(pushed - ideal["reaction"].values) / _largest(ideal["reaction"])
    yield Claim("n = c: Z^T nu minus B^T lambda, relative", off, 0, 3e-14, "[ider section 3]")


MOST = {"conventional": (5e-8, 2e-6), "control force": (5e-7, 1e-5)}
"""Bounds of the tip's errors of position [m] and velocity [m/s] within 60 s."""


def _long(result: dict[str, xr.Dataset]) -> Iterator[Claim]:
    for way in LABELS:
        stabilised, drifted = result[f"{way}, held"], result[f"{way}, acceleration only"]
        source = "[ider section 2], errata"
        after = stabilised["time"] > 1
        off, rate = _largest(stabilised["servo_error"][after]), _largest(stabilised["servo_rate"][after])
        place, speed = MOST[way]
        yield Claim(f"60 s, {way}: position error with error dynamics [m]", off, place, 0, source, "at most")
        yield Claim(f"60 s, {way}: velocity error with error dynamics [m/s]", rate, speed, 0, source, "at most")
        yield Claim(
            f"60 s, {way}: position error of the last cycle over that at half time",
            _growth(stabilised),
            1.1,
            0,
            source,
            "at most",
        )
        yield Claim(f"60 s, {way}: that ratio without error dynamics", _growth(drifted), 2.5, 0, source, "at least")


def _growth(r: xr.Dataset) -> float:
    last, middle = (_largest(r["servo_error"].sel(time=slice(end - 4, end))) for end in (LONG, LONG / 2))
    return last / middle


def _readings(result: dict[str, xr.Dataset]) -> Iterator[Claim]:
    base = result["control force"]["q"].values[-1]
    other = result["control force, I about the joint, g = 0.0"]["q"].values[-1]
    apart = np.degrees(_largest(base - other))
    yield Claim("I about the joints instead: difference of the joints after 1 s [deg]", apart, 2, 0, "ours", "at most")
    for about in ("mass centre", "joint"):
        end = result[f"control force, I about the {about}, g = 9.81"]["stopped"]
        yield Claim(
            f"gravity, I about the {about}: time until which M1 = 0 controls the tip [s]",
            end,
            0.55,
            0,
            "[ider Fig. 2: 1 s]",
            "at most",
        )


def _largest(x: object) -> float:
    return float(np.abs(np.asarray(x)).max())
