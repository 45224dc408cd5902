"""Two masses on a spring and a PVTOL, both underactuated: pole placement and flat references. [konz25 4.8.1-2]

Two masses (4.8.1): the matching conditions leave five free numbers, four of which place all poles; then the machine follows the
prototype exactly, along every reference z1 = z2 + z2'' / varpi. A PVTOL (4.8.2) does so only at a set point and along its flat
reference; otherwise there is a matching force, which depends on the approach.

The thesis gives no numbers. The numbers for two masses of 1 kg, varpi = 5 / s^2 with all poles at -2, and for a PVTOL of 1 kg
with eps = 5 cm and four poles at -3 follow from its formulas; the start away from the set point, the loop of 1 m in 2.5 s with
four poles at -6, and its limits of 0 to 25 N on each propeller are ours.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import casadi as ca
import numpy as np
import xarray as xr
from scipy.integrate import solve_ivp
from scipy.linalg import expm

import pfaffian as pf
from pfaffian import control
from pfaffian.study import Claim, blank_figure

EPS, MASS, INERTIA, G = 0.05, 1.0, 0.02, 9.81
VARPI = 5.0
"""k12 / m2 of the two masses [1/s^2]."""
LEAN = 0.2
"""Lean of the PVTOL's propellers [rad]."""
FAR = (1.5, 0.8, 2.5)
"""Start of the PVTOL on its way to the set point, at rest [m, rad]."""
RADIUS, LOOP = 1.0, 2.5
"""Radius of the loop [m], and its duration from rest to rest [s]."""
LIMITS = (0.0, 25.0)
"""Smallest and largest thrust of each propeller [N]; the loop needs up to 3.6 times the weight from both together."""


def mechanism(limits: tuple[float, float] = LIMITS) -> pf.Mechanism:
    """The PVTOL."""
    c, s = np.cos(LEAN), np.sin(LEAN)
    arm = INERTIA * s / (MASS * EPS * c)
    sides = {"right": 1, "left": -1}
    motors = [pf.forces.thruster(n, "body", axis=(x * s, c, 0), point=(x * arm, 0, 0), limits=limits) for n, x in sides.items()]
    joint = pf.joint("plane", "planar", "world", "body")
    return pf.mechanism("PVTOL", [pf.body("body", MASS, inertia=INERTIA)], [joint], gravity=(0, -G, 0), actuators=motors)


def two_masses() -> pf.Mechanism:
    """A force on the first of two masses with a spring between them. [konz25 (4.117)]"""
    joints = [pf.joint(n, "prismatic", "world", n, axis=(1, 0, 0)) for n in ("a", "b")]
    spring = pf.forces.potential("spring", lambda k: VARPI / 2 * (k.q[0] - k.q[1]) ** 2)
    bodies, motor = [pf.body("a", 1.0), pf.body("b", 1.0)], pf.actuator("F", "a")
    return pf.mechanism("two masses", bodies, joints, gravity=(0, 0, 0), actuators=[motor], forces=[spring])


# -- laws ------------------------------------------------------------------------------------------------------------------


def coupled() -> list[control.Pair]:
    """Pairs with inertia, damping and stiffness of (0, 1), (1, 2) and (0, 2); one damper alone is negative. [konz25 (4.128)]"""
    x = control.two_mass_placement([-2.0] * 4, ratio=VARPI)
    ends = {"01": ("a", "world"), "12": ("b", "a"), "02": ("b", "world")}
    weight = {n: [np.diag([0, 0, 0, getattr(x, f"{letter}{n}")]) for letter in "mdk"] for n in ends}
    return [
        control.pair(b, seen_from=a, inertia=weight[n][0], damping=weight[n][1], stiffness=weight[n][2])
        for n, (b, a) in ends.items()
    ]


def stroke(sign: float = 1.0) -> control.Reference:
    """Reference with z2 from 0 to 1 m in 2 s, and z1 = z2 + z2'' / varpi. [konz25 (4.124), its sign corrected]"""
    y = control.rest_to_rest([0.0], [1.0], 2.0, begin=0.5)

    def both(t: ca.SX) -> ca.SX:
        s = ca.SX.sym("s")
        bend = ca.Function("bend", [s], [ca.jacobian(ca.jacobian(y(s), s), s)])(t)
        return ca.vertcat(y(t) + sign * bend / VARPI, y(t))

    return control.function_of_time(both, 2)


def looping() -> control.Reference:
    """Reference of the point eps above the PVTOL on a vertical circle, upside down at its top."""
    angle = control.rest_to_rest([0.0], [2 * np.pi], LOOP)
    circle = control.along(lambda a: ca.vertcat(RADIUS * ca.sin(a), RADIUS * (1 - ca.cos(a))), angle)
    return control.pvtol_reference(circle, coupling_length=EPS)


def hovering(pole: float = -3.0) -> list[control.Pair]:
    """Prototype with a fourfold pole of position and tilt."""
    x = control.hover_placement([pole] * 4, coupling_length=EPS)
    pm = pf.forces.pseudo_matrix
    inertia, damping = pm(x.mass, (0, x.s, 0), x.inertia), pm(x.damping, (0, x.h, 0))
    return [control.pair("body", inertia=inertia, damping=damping, stiffness=pm(x.stiffness, (0, x.h, 0), x.moment))]


def run() -> dict[str, xr.Dataset]:
    law = control.prototype_tracking(coupled(), stroke())
    results = {"two masses": pf.run(two_masses(), [0.3, -0.2], [0.1, 0.5], duration=5.0, step=1e-3, every=10, control=law)}
    for a in control.APPROACHES:
        law = control.prototype_tracking(hovering(), control.set_point([0, 0, 0]), approach=a)
        results[f"hover {a}"] = pf.run(mechanism((-np.inf, np.inf)), FAR, duration=8.0, step=2e-3, every=10, control=law)
        law = control.prototype_tracking(hovering(-6.0), looping(), approach=a, limits="actuators")
        start = [-0.2, -EPS + 0.15, 0.3]
        results[f"loop {a}"] = pf.run(mechanism(), start, duration=6.0, step=1e-3, every=10, control=law)
    on = control.prototype_tracking(hovering(-6.0), looping())
    q, v = state(looping(), 0.0)
    results["loop from the start"] = pf.run(mechanism(), q, v, duration=3.0, step=5e-4, every=20, control=on)
    return results


def state(reference: control.Reference, t: float) -> tuple[np.ndarray, np.ndarray]:
    """q and v of the PVTOL on its reference."""
    x = reference.at(ca.SX(t), ca.SX(0, 1))
    q, rate = (np.array(ca.DM(ca.evalf(y))).ravel() for y in (x.value, x.rate))
    c, s = np.cos(q[2]), np.sin(q[2])
    return q, np.array([c * rate[0] + s * rate[1], -s * rate[0] + c * rate[1], rate[2]])


def along_reference(reference: control.Reference, times: np.ndarray, derivative: int = 0) -> np.ndarray:
    """(times, nq) values of the reference, or of its rate or acceleration."""
    t = ca.SX.sym("t")
    f = ca.Function("q_R", [t], [reference.at(t, ca.SX(0, 1))[derivative]])
    return np.array([np.array(f(x)).ravel() for x in times])


def hovered(times: np.ndarray) -> np.ndarray:
    """(times, 3) motion of the PVTOL to the set point by SciPy, from HOVER and the thesis's planar body. [konz25 4.7.4]"""
    m, k, d, h, s = (HOVER[n] for n in ("mass", "stiffness", "damping", "h", "s"))
    M = np.array([[m, 0, -m * s], [0, m, 0], [-m * s, 0, HOVER["inertia"] + m * s**2]])
    D = d * np.array([[1, 0, -h], [0, 1, 0], [-h, 0, h**2]])
    # Accelerations by the sum of the thrusts, and by their difference, which also pushes sideways.
    S = np.array([[0, EPS], [1, 0], [0, 1]])

    def rate(t: float, x: np.ndarray) -> np.ndarray:
        (dx, dy, a), xi = x[:3], x[3:]
        (vx, vy, w), c, sn = xi, np.cos(a), np.sin(a)
        pull = k * np.array([c * dx + sn * dy - h * sn, -sn * dx + c * dy + h * (1 - c), -h * (sn * dy + c * dx) + h**2 * sn])
        C = m * w * np.array([[0, -1, 0], [1, 0, -s], [0, s, 0]])
        bbar = C @ xi + D @ xi + pull + [0, 0, HOVER["moment"] * sn]
        free = np.array([vy * w - G * sn, -vx * w - G * c, 0])
        v_dot = free - S @ np.linalg.solve(S.T @ M @ S, S.T @ (M @ free + bbar))
        return np.array([c * vx - sn * vy, sn * vx + c * vy, w, *v_dot])

    return solve_ivp(rate, (0, times[-1]), [*FAR, 0, 0, 0], "DOP853", times, rtol=1e-11, atol=1e-13).y[:3].T


def figures(result: dict[str, xr.Dataset]) -> dict[str, Any]:
    return {"masses": masses_figure(result["two masses"]), "pvtol": pvtol_figure(result)}


def masses_figure(r: xr.Dataset) -> Any:
    figure = blank_figure(9, 3.2)
    place, force = figure.subplots(1, 2)
    t, goal = r["time"].values, along_reference(stroke(), r["time"].values)
    for i, name in enumerate(("driven", "other")):
        place.plot(t, r["q"][:, i], f"C{i}", label=f"{name} mass")
        place.plot(t, goal[:, i], f"C{i}:", label="reference" if i else None)
    force.plot(t, r["u"][:, 0])
    place.set(xlabel="time [s]", ylabel="place [m]", title="two masses")
    force.set(xlabel="time [s]", ylabel="force [N]")
    place.legend(loc="best")
    return figure


def pvtol_figure(result: dict[str, xr.Dataset]) -> Any:
    figure = blank_figure(10, 6.6)
    (path, tilt, left), (loop, turned, thrust) = figure.subplots(2, 3)
    for i, a in enumerate(control.APPROACHES):
        still, fly = result[f"hover {a}"], result[f"loop {a}"]
        path.plot(still["q"][:, 0], still["q"][:, 1], label=a)
        tilt.plot(still["time"], np.degrees(still["q"][:, 2]))
        left.plot(fly["time"], fly["matching_force"][:, 0])
        loop.plot(fly["q"][:, 0], fly["q"][:, 1])
        turned.plot(fly["time"], np.degrees(fly["q"][:, 2]))
        thrust.plot(fly["time"], fly["u"][:, 0], f"C{i}", linewidth=0.8)
        thrust.plot(fly["time"], fly["u"][:, 1], f"C{i}--", linewidth=0.8)
    silhouettes(path, result["hover body"]["q"].values[:200:20], "C1")
    silhouettes(loop, result["loop body"]["q"].values[:250:14], "C1")
    goal = along_reference(looping(), np.linspace(0, LOOP, 200))
    loop.plot(goal[:, 0], goal[:, 1], "k:", label="reference")
    path.set(xlabel="x [m]", ylabel="height [m]", title="to a set point: all three alike", aspect="equal")
    tilt.set(xlabel="time [s]", ylabel="tilt [deg]", title="to a set point: all three alike")
    left.set(xlabel="time [s]", ylabel="matching force along x [N]", title="in the loop")
    loop.set(xlabel="x [m]", ylabel="height [m]", title="a loop within input limits", aspect="equal")
    turned.set(xlabel="time [s]", ylabel="tilt [deg]")
    thrust.set(xlabel="time [s]", ylabel="thrusts [N]", title="right, left (dashed)")
    handles, names = (a + b for a, b in zip(*(ax.get_legend_handles_labels() for ax in (path, loop)), strict=True))
    figure.legend(handles, names, loc="outside lower center", ncols=4)
    return figure


def silhouettes(ax, q: np.ndarray, colour: str) -> None:
    """The PVTOL as a bar with its thrust axis."""
    for x, y, a in q:
        c, s = 0.12 * np.cos(a), 0.12 * np.sin(a)
        ax.plot([x - c, x + c], [y - s, y + s], colour, linestyle="-", linewidth=1.6)
        ax.plot([x, x - s], [y, y + c], colour, linestyle="-", linewidth=0.8)


TWO = {"m01": 4, "m12": 1, "m02": 12, "d01": 32, "d12": 8, "d02": -6.4, "k01": 16, "k12": 84, "k02": -3.2}
"""Prototype of the two masses [kg, N s/m, N/m]. [konz25 4.8.1, computed apart]"""
FEEDBACK = np.array([-14, 10.8, -8, 1.6])
"""Feedback gains of the errors of both masses and of their rates. [konz25 (4.127), computed apart]"""
BEHIND = {"particle": (0.302, 1.82), "body": (2.285, 4.65), "energy": (0.516, 3.34)}
"""Largest distance of the PVTOL from its loop after a bad start [m], and time from which it stays within 2 cm [s]."""
HOVER = {"mass": 1.0, "stiffness": 1.8, "damping": 2.4, "h": 1.14, "s": 0.268, "inertia": 0.190096, "moment": 8.55432}
"""Prototype of the PVTOL. [konz25 (4.141), computed apart]"""


def claims(result: dict[str, xr.Dataset]) -> Iterator[Claim]:
    yield from _of_the_masses(result["two masses"])
    yield from _of_the_hover(result)
    yield from _of_the_loop(result)


def _of_the_placement(what: str, found: Any, known: Mapping[str, float], source: str) -> Iterator[Claim]:
    for name, value in known.items():
        yield Claim(f"{what}: {name}", getattr(found, name), value, 1e-12, source)


def _of_the_matching(what: str, x: Any, source: str) -> Iterator[Claim]:
    for name, part in (("Lambda_K", x.stiffness), ("Lambda_D", x.damping)):
        yield Claim(f"{what}: {name}", float(np.abs(part).max()), 0, 1e-10, source)


def _of_the_masses(r: xr.Dataset) -> Iterator[Claim]:
    found = control.two_mass_placement([-2.0] * 4, ratio=VARPI)
    yield from _of_the_placement("two masses", found, TWO, "[konz25 (4.128)]")
    yield from _of_the_matching("two masses", pf.analysis.matching(two_masses(), coupled()), "[konz25 (4.118)]")
    law = control.prototype_tracking(coupled(), control.set_point([0.0, 0.0]))
    polynomial = np.poly(pf.linearise(two_masses(), [0, 0], control=law).eigenvalues).real
    off = np.abs(polynomial - [1, 8, 24, 32, 16]).max()
    yield Claim("two masses: error of the closed-loop polynomial", off, 0, 1e-8, "[konz25 (4.126)]")
    t, q, v = r["time"].values, r["q"].values, r["v"].values
    goal, rate, bend = (along_reference(stroke(), t, i) for i in range(3))
    errors = np.hstack([q - goal, v - rate])
    F = bend[:, 0] + VARPI * (goal[:, 0] - goal[:, 1]) + errors @ FEEDBACK
    yield Claim("two masses: force minus its formula [N]", np.abs(r["u"].values[:, 0] - F).max(), 0, 1e-10, "[konz25 (4.127)]")
    yield Claim("two masses: matching force [N]", float(np.abs(r["matching_force"]).max()), 0, 1e-10, "[konz25 (4.57)]")
    A = np.vstack([np.eye(4)[2:], FEEDBACK + [-VARPI, VARPI, 0, 0], [VARPI, -VARPI, 0, 0]])
    expected = np.array([expm(A * s) @ errors[0] for s in t])
    yield Claim("two masses: errors minus exp(A t) e [m]", np.abs(errors - expected).max(), 0, 1e-9, "[konz25 (4.125)]")
    times = np.linspace(0, 3, 31)
    for sign, word in ((1.0, "corrected"), (-1.0, "as printed")):
        left = np.abs(pf.analysis.feasibility(two_masses(), stroke(sign), times).force).max()
        kind = ("at most", 1e-9) if sign > 0 else ("at least", 1.0)
        yield Claim(f"two masses: reference {word}, force without an input [N]", left, kind[1], 0, "[konz25 (4.124)]", kind[0])


def _of_the_hover(result: dict[str, xr.Dataset]) -> Iterator[Claim]:
    found = control.hover_placement([-3.0] * 4, coupling_length=EPS)
    yield from _of_the_placement("PVTOL", found, HOVER, "[konz25 (4.141)], corrected")
    yield from _of_the_matching("PVTOL", pf.analysis.matching(mechanism(), hovering()), "[konz25 (4.135)]")
    expected = np.polymul(np.poly([-3.0] * 4), [1, 2.4, 1.8])
    for a in control.APPROACHES:
        law = control.prototype_tracking(hovering(), control.set_point([0, 0, 0]), approach=a)
        polynomial = np.poly(pf.linearise(mechanism(), [0, 0, 0], control=law).eigenvalues).real
        yield Claim(f"PVTOL by {a}: error of the polynomial", np.abs(polynomial - expected).max(), 0, 1e-7, "[konz25 (4.140)]")
        r = result[f"hover {a}"]
        yield Claim(f"PVTOL by {a}: matching force [N]", float(np.abs(r["matching_force"]).max()), 0, 1e-10, "[konz25 (4.142)]")
        yield Claim(f"PVTOL by {a}: error at the end [m]", float(np.abs(r["q"][-1]).max()), 0, 1e-3, "ours", "at most")
        rise = float(r["prototype_power"].max())
        yield Claim(f"PVTOL by {a}: largest power of its error [W]", rise, 0, 1e-10, "[konz25 (4.47)]", "at most")
    r = result["hover body"]
    apart = np.abs(r["q"].values - hovered(r["time"].values)).max()
    yield Claim("PVTOL: motion to the set point minus SciPy's [m, rad]", float(apart), 0, 1e-8, "[konz25 4.7.4, 4.8.2]")
    same = max(float(np.abs(result[f"hover {a}"]["q"] - result["hover body"]["q"]).max()) for a in control.APPROACHES)
    yield Claim("PVTOL: difference of the approaches on the way to the set point [m]", same, 0, 1e-9, "[konz25 (4.47)]")


def _of_the_loop(result: dict[str, xr.Dataset]) -> Iterator[Claim]:
    r = result["loop from the start"]
    apart = r.q.values - along_reference(looping(), r.time.values)
    apart[:, 2] = np.sin(apart[:, 2] / 2)  # a whole turn counts as zero
    off = np.abs(apart).max()
    yield Claim("loop: error from a start on the reference [m]", float(off), 0, 1e-6, "[konz25 (4.132)], corrected")
    yield Claim(
        "loop: matching force from a start on the reference [N]",
        float(np.abs(r.matching_force).max()),
        0,
        1e-4,
        "[konz25 (4.142)]",
    )
    yield Claim("loop: final angle [rad]", float(r.q.values[-1, 2]), 2 * np.pi, 1e-6, "ours")
    for a in control.APPROACHES:
        r = result[f"loop {a}"]
        slack = float(r.limit_slack.min())
        yield Claim(f"loop by {a}: smallest margin to the limits [N]", slack, 0, 1e-9, "[konz25 (4.64)]", "at least")
        off = np.linalg.norm(r.q.values[:, :2] - along_reference(looping(), r.time.values)[:, :2], axis=1)
        most, arrived = BEHIND[a]
        yield Claim(f"loop by {a}: largest distance from the reference [m]", float(off.max()), most, 0.01 * most, "ours")
        yield Claim(
            f"loop by {a}: time from which it stays within 2 cm [s]", float(r.time[off > 0.02][-1]), arrived, 0.03, "ours"
        )
        yield Claim(f"loop by {a}: error at the end [m]", float(off[-1]), 0, 0.02 if a == "body" else 1e-4, "ours", "at most")
    used = max(float(result[f"loop {a}"].limit_active.sum()) for a in control.APPROACHES)
    yield Claim("loop: number of samples at a limit", used, 1, 0, "ours", "at least")
