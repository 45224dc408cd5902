"""Planar arm with its tip on a slider: three controllers, one motion, three forces. [aghili05 section IX, Fig. 8, Table II]

The tip of a 3R arm is hinged to a slider along x, y(q) = y0 = -0.27 m. It follows x_d = -0.075 + 0.225 sin(pi t + pi / 9) with
the hand at theta_d = 0; G_P = 480, G_D = 45, G_F = 3, G_I = 0.1, lambda_d = 0 (all from the paper). Plain inverse dynamics
controls x, y and theta as if there were no slider, projected inverse dynamics applies the least torque that gives the motion,
and hybrid control regulates the contact force to zero.

The paper reports an experiment with geared motors and publishes no data of the arm. Our arm is a plausible one: links of 0.35,
0.30 and 0.15 m, uniform rods of 3.0, 2.0 and 0.8 kg, rotor inertias of 0.30, 0.10 and 0.03 kg m^2 on the joint side of the
gears, no friction, a horizontal plane, base at the origin, elbow up; 4 s at 1 ms from the reference state. Plain inverse
dynamics assumes the slider to be 1 mm lower than it is (and 0, 0.5, 2, 5, 10 mm). The numbers of Table II are therefore printed
next to ours and not matched; only their ordering is claimed.

The effect of a millimetre: plain inverse dynamics holds the tip like a spring of stiffness G_P times the apparent mass there,
1.4 kg, so 0.7 N/mm. The slider pushes the tip up when it is assumed too low, down when too high, and a tenfold G_P gives a
tenfold force. That is not large: it reaches the contact force of the projected law, 5 N, only at an error of 7 mm. A force that
is large for 1 mm needs ten times our apparent mass (more rotor inertia through the gears), stiffer gains, or the friction of
the experiment. For the same reason our three controllers differ less than the paper's. With the slider assumed 1 mm too high
instead of too low, plain inverse dynamics even needs slightly less torque than hybrid control, though never less than the
projected law would need for the same motion.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import casadi as ca
import numpy as np
import xarray as xr

import pfaffian as pf
from pfaffian import control
from pfaffian.study import Claim, blank_figure

LENGTHS, MASSES, ROTORS = (0.35, 0.30, 0.15), (3.0, 2.0, 0.8), (0.30, 0.10, 0.03)
Y0 = -0.27
MOTION = {"stiffness": 480.0, "damping": 45.0}
FORCE = {"force_gain": 3.0, "integral_gain": 0.1}
OFFSETS = (0.0, 0.5e-3, 1e-3, 2e-3, 5e-3, 10e-3)
"""How far below its true height plain inverse dynamics assumes the slider [m]."""
DURATION = 4.0
TABLE = {"plain": (3.18, 4.90), "hybrid": (2.63, 2.30), "projected": (1.50, 1.89)}
"""Table II: RMS of the torque vector, largest joint torque [N m]."""
LAWS = tuple(TABLE)
TIP = (LENGTHS[-1], 0, 0)


def mechanism() -> pf.Mechanism:
    bodies, joints = [], []
    for i, (l, m, rotor) in enumerate(zip(LENGTHS, MASSES, ROTORS, strict=True)):
        I = m * l**2 / 12
        bodies.append(pf.body(f"link{i + 1}", m, (l / 2, 0, 0), (0, I, I)))
        before, at = ("world", 0.0) if i == 0 else (f"link{i}", LENGTHS[i - 1])
        place = {"axis": (0, 0, 1), "placement": pf.pose((at, 0, 0)), "armature": rotor}
        joints.append(pf.joint(f"q{i + 1}", "revolute", before, f"link{i + 1}", **place))
    slider = pf.holonomic("slider", lambda k: k.position("link3", TIP)[1] - Y0)
    return pf.actuate_all(pf.mechanism("arm on a slider", bodies, joints, constraints=[slider], gravity=(0, 0, 0)))


def along(k: pf.Kinematics) -> ca.SX:
    """Position of the tip along the slider, and the angle of the hand."""
    return ca.vertcat(k.position("link3", TIP)[0], ca.sum1(k.q))


def x_d(t: ca.SX) -> ca.SX:
    return -0.075 + 0.225 * ca.sin(np.pi * t + np.pi / 9)


def start() -> tuple[np.ndarray, np.ndarray]:
    """The reference state at t = 0."""
    x, rate = -0.075 + 0.225 * np.sin(np.pi / 9), 0.225 * np.pi * np.cos(np.pi / 9)
    wrist = np.array([x - LENGTHS[2], Y0])
    a, b = LENGTHS[:2]
    inner = np.arccos((wrist @ wrist - a**2 - b**2) / (2 * a * b))
    q1 = np.arctan2(wrist[1], wrist[0]) - np.arctan2(b * np.sin(inner), a + b * np.cos(inner))
    q = np.array([q1, inner, -q1 - inner])
    m = mechanism()
    J = pf.compile_terms(m, {"J": lambda T: T.kinematics.jacobian("link3", "LOCAL_WORLD_ALIGNED", TIP)[[0, 1, 5], :]})(q)["J"]
    return q, np.linalg.solve(J, [rate, 0, 0])


def run() -> dict[str, xr.Dataset]:
    m, (q, v) = mechanism(), start()
    path = control.function_of_time(lambda t: [x_d(t), 0], 2)
    none = control.set_point([0.0])
    task = {"q": q, "v": v, "duration": DURATION}
    results = {
        "projected": pf.run(m, control=control.projected(along, path, **MOTION), **task),
        "hybrid": pf.run(m, control=control.hybrid_force(along, path, none, ["slider"], **MOTION, **FORCE), **task),
    }
    believed = pf.Parameter("y0", Y0, "m")
    outputs = control.stack(along, control.point("link3", TIP, (1,)))
    stiff = control.computed_torque(outputs, control.Reference(*_with_height(path, believed)), **MOTION)
    plain = m.with_(parameters=[believed])
    batch = pf.run(plain, control=stiff, parameters={"y0": Y0 - np.array(OFFSETS)}, record="all", **task)
    results |= {f"plain, {1e3 * d:g} mm": batch.isel(run=i) for i, d in enumerate(OFFSETS)}
    results["plain, -1 mm"] = pf.run(plain, control=stiff, parameters={"y0": Y0 + 1e-3}, **task)
    tenfold = {"stiffness": 10 * MOTION["stiffness"], "damping": np.sqrt(10) * MOTION["damping"]}
    stiffer = control.computed_torque(outputs, control.Reference(*_with_height(path, believed)), **tenfold)
    results["plain, 1 mm, ten times G_P"] = pf.run(plain, control=stiffer, parameters={"y0": Y0 - 1e-3}, **task)
    return results


def _with_height(path: control.Reference, height: pf.Parameter) -> tuple:
    """The path extended by a constant height, a parameter of the run."""
    still = control.set_point([height])

    def at(t: ca.SX, w: ca.SX) -> tuple:
        one, other = path.at(t, w), still.at(t, w)
        return type(one)(*[ca.vertcat(a, b) for a, b in zip(one, other, strict=True)])

    return at, path.size + 1


def chosen(result: dict[str, xr.Dataset], law: str) -> xr.Dataset:
    return result["plain, 1 mm" if law == "plain" else law]


def torque(r: xr.Dataset) -> np.ndarray:
    """(times,) norm of the joint torques [N m]."""
    return np.linalg.norm(r["u"].values, axis=1)


def rms(r: xr.Dataset) -> float:
    return float(np.sqrt(np.mean(torque(r) ** 2)))


def peak(r: xr.Dataset) -> float:
    return float(np.abs(r["u"]).max())


def tip(r: xr.Dataset) -> tuple[np.ndarray, np.ndarray]:
    """x and y of the tip at the recorded joint angles [m]."""
    angles = np.cumsum(r["q"].values, axis=1)
    return np.cos(angles) @ LENGTHS, np.sin(angles) @ LENGTHS


def figures(result: dict[str, xr.Dataset]) -> dict[str, Any]:
    """Fig. 8: position, angle, contact force, torque; and how the force grows with the offset."""
    figure = blank_figure(8.5, 5.6)
    (position, angle), (force, norm) = figure.subplots(2, 2, sharex=True)
    for law, dashes in zip(LAWS, ("-", "--", ":"), strict=True):
        r = chosen(result, law)
        t = r["time"]
        position.plot(t, tip(r)[0], dashes, label=law)
        angle.plot(t, np.degrees(r["q"].sum("coordinate")), dashes)
        force.plot(t, r["multiplier"][:, 0], dashes)
        ours = f"RMS {rms(r):.2f}, peak {peak(r):.2f}"
        norm.plot(t, torque(r), dashes, label="{}: {};\npaper {:.2f}, {:.2f}".format(law, ours, *TABLE[law]))
    desired = -0.075 + 0.225 * np.sin(np.pi * t + np.pi / 9)
    position.plot(t, desired, color="#000000", linewidth=0.6, label="desired")
    position.set(ylabel="tip along the slider [m]", ylim=(-0.33, 0.35))
    angle.set(ylabel="angle of the hand [deg]", ylim=(-2, 2))
    force.set(ylabel="contact force, multiplier [N]", xlabel="time [s]")
    norm.set(ylabel="|joint torques| [N m]", xlabel="time [s]")
    figure.suptitle("Arm on a slider; plain inverse dynamics assumes it 1 mm too low")
    grows = blank_figure(4.5, 3.2)
    ax = grows.subplots()
    largest = [float(np.abs(result[f"plain, {1e3 * d:g} mm"]["multiplier"]).max()) for d in OFFSETS]
    ax.plot(1e3 * np.array(OFFSETS), largest, "o-")
    ax.set(xlabel="error of y0 [mm]", ylabel="largest contact force [N]", title="plain inverse dynamics")
    return {"controllers": figure, "path": _path(chosen(result, "projected")), "offset": grows}


def _path(r: xr.Dataset) -> Any:
    """The arm at two instants, and the path of its tip along the slider."""
    figure = blank_figure(5.5, 3.6)
    ax = figure.subplots()
    angles = np.cumsum(r["q"].values, axis=1)
    links = np.stack([np.cos(angles), np.sin(angles)], axis=-1) * np.asarray(LENGTHS)[:, None]
    elbows = np.concatenate([np.zeros((len(links), 1, 2)), np.cumsum(links, axis=1)], axis=1)
    instants = [int(np.argmax(tip(r)[0])), int(np.argmin(tip(r)[0]))]
    for i, dashes in zip(instants, ("-", "--"), strict=True):
        ax.plot(*elbows[i].T, f"o{dashes}", color="#BBBBBB", markersize=4, label=f"arm at t = {float(r['time'][i]):.2f} s")
    ax.plot(*tip(r), color="#D55E00", linewidth=2.5, label="path of the tip")
    ax.axhline(Y0, color="#000000", linestyle=":", linewidth=0.8)
    ax.set(xlabel="x [m]", ylabel="y [m]", aspect="equal", title="dotted: the slider")
    return figure


def claims(result: dict[str, xr.Dataset]) -> Iterator[Claim]:
    for name, r in result.items():
        yield Claim(f"{name}: finished", float(r["status"]), 0, 0, "[aghili05 section IX]")
        yield Claim(f"{name}: |phi| [m]", float(r["violation"].max()), 1e-10, relation="at most", source="ours")
    for law in ("projected", "hybrid"):
        error = float(np.abs(result[law]["task_error"]).max())
        yield Claim(f"{law}: tracking error [m, rad]", error, 0, 1e-8, "[aghili05 (45)]")
    yield from _torques(result)
    yield from _forces(result)


def _torques(result: dict[str, xr.Dataset]) -> Iterator[Claim]:
    least = torque(result["projected"])
    source, m = "[aghili05 Fig. 8(D)]", mechanism()
    for name in ("hybrid", "plain, 0 mm", "plain, 1 mm"):
        excess = float((torque(result[name]) - least).min())
        yield Claim(f"{name}: least excess over projected [N m]", excess, 0, 1e-9, source, "at least")
    for name, r in result.items():
        # The runs differ slightly in their motion, so each is compared with the least torque for its own motion.
        q, v, u = (r[x].values for x in ("q", "v", "u"))
        same = pf.inverse_dynamics(m, q, v, pf.forward_dynamics(m, q, v, u).v_dot).u
        excess = float((torque(r) - np.linalg.norm(same, axis=1)).min())
        yield Claim(f"{name}: least excess for its own motion [N m]", excess, 0, 1e-9, source, "at least")
    stiff, middle, soft = (rms(chosen(result, law)) for law in LAWS)
    yield Claim("RMS torque: hybrid over projected; Table II 1.75", middle / soft, 1, 0, "[aghili05 Table II]", "at least")
    yield Claim("RMS torque: plain over hybrid; Table II 1.21", stiff / middle, 1, 0, "[aghili05 Table II]", "at least")
    stiff, middle, soft = (peak(chosen(result, law)) for law in LAWS)
    yield Claim("peak torque: hybrid over projected; Table II 1.22", middle / soft, 1, 0, "[aghili05 Table II]", "at least")
    yield Claim("peak torque: plain over hybrid; Table II 2.13", stiff / middle, 1, 0, "[aghili05 Table II]", "at least")


def _forces(result: dict[str, xr.Dataset]) -> Iterator[Claim]:
    def largest(name: str) -> float:
        return float(np.abs(result[name]["multiplier"]).max())

    yield Claim("hybrid: |contact force| [N]", largest("hybrid"), 0, 1e-8, "[aghili05 Fig. 8(C)]")
    soft = largest("projected")
    yield Claim("projected: largest |contact force| [N]", soft, 1, relation="at least", source="[aghili05 Fig. 8(C)]")
    exact = largest("plain, 0 mm")
    yield Claim("plain, y0 exact: |contact force| [N]", exact, 0, 1e-6, "plain inverse dynamics, exact model")
    for one, other in pairwise(OFFSETS[1:]):
        growth = largest(f"plain, {1e3 * other:g} mm") / largest(f"plain, {1e3 * one:g} mm")
        name = f"plain: contact force at {1e3 * other:g} mm over that at {1e3 * one:g} mm"
        yield Claim(name, growth, other / one, 0.01, "[aghili05 section IX]")
    low, high = (result[f"plain, {d} mm"]["multiplier"].values for d in (1, -1))
    yield Claim("plain, 1 mm lower: largest contact force, up on the tip [N]", float(low.max()), 0.68, 0.01, "ours")
    yield Claim("plain, 1 mm lower: least contact force, up on the tip [N]", float(low.min()), 0.44, 0.01, "ours")
    yield Claim("plain, 1 mm higher: largest contact force, down on the tip [N]", -float(high.min()), 0.68, 0.01, "ours")
    ratio = rms(result["plain, -1 mm"]) / rms(result["hybrid"])
    yield Claim("RMS torque: plain, 1 mm higher, over hybrid; Table II 1.21", ratio, 1, 0, "ours", "at most")
    equal = soft / largest("plain, 1 mm")
    source = "[aghili05 section IX: large]"
    yield Claim("slider error at which the force of plain equals that of projected [mm]", equal, 7.4, 0.1, source)
    stiffer = largest("plain, 1 mm, ten times G_P") / largest("plain, 1 mm")
    yield Claim("plain, 1 mm: contact force at ten times G_P over that at G_P", stiffer, 10, 0.05, "ours")
    r = result["plain, 1 mm"]
    # The force that the offset d causes: G_P d times the apparent mass at the tip, lambda = (G_P d) / (A M^-1 A^T).
    m = mechanism()
    terms = pf.compile_terms(m, {"A": lambda T: T.A.T, "M": lambda T: T.M})(r["q"].values)
    apparent = 1 / np.einsum("ti,tij,tj->t", terms["A"], np.linalg.inv(terms["M"]), terms["A"])
    off = float(np.abs(r["multiplier"].values[:, 0] - 480 * 1e-3 * apparent).max())
    yield Claim("plain, 1 mm: force minus G_P d / (A M^-1 A^T) [N]", off, 0, 1e-6, "least squares, ours")
