"""A six-axis arm, controlled by its joints like single joints and by its tool like a free body; singularities. [konz25 4.7.7]

The axes are z y y x y x (4.112). For control by the joints (4.113) the prototype has an inertia, damping and stiffness about
each axis, relative to the link before, and every joint obeys E'' + d E' + k sin E = 0 independently. For control by the tool
(4.114) it has mass, damping and stiffness between tool and world only: as long as det J is not zero, the tool moves like a free
body under the same law, whatever carries it. Both follow the same reference, which turns every joint. The thesis gives no
numbers: lengths, masses and gains, for a robot with 10 kg of payload, are ours.

For the energy approach the thesis prints the map Q = J(q)^-1 J(q_R). With body Jacobians, which it uses everywhere else, this
map does not satisfy (4.30). Of a free body's two maps, (4.42) gives Q = J(q)^-1 Ad(G_E^-1) J(q_R), which the library uses;
(4.43), for centres at the tool's origin, gives the printed map with Jacobians along the world's axes.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import casadi as ca
import numpy as np
import xarray as xr
from scipy.integrate import solve_ivp
from scipy.spatial.transform import Rotation

import pfaffian as pf
from pfaffian import control
from pfaffian.maths import so3
from pfaffian.study import Claim, blank_figure

L1, L2, L3 = 0.2, 0.6, 0.5
"""Distance of the shoulder from the first axis, lengths of upper arm and forearm [m]."""
AXES = "zyyxyx"
PLACES = ((0, 0, 0), (L1, 0, 0), (0, 0, L2), (L3, 0, 0), (0, 0, 0), (0, 0, 0))
TOOL = pf.pose((0.12, 0.02, -0.03), rpy=(0.2, -0.4, 0.3))
"""Arbitrary placement of the tool on the sixth link."""
LINKS = (  # mass [kg], centre [m], moments of inertia [kg m^2]
    (20, (0.1, 0, -0.1), (0.4, 0.5, 0.5)),
    (15, (0, 0, 0.3), (0.6, 0.6, 0.1)),
    (8, (0.1, 0, 0.02), (0.05, 0.1, 0.1)),
    (4, (-0.1, 0, 0), (0.02, 0.04, 0.04)),
    (1.5, (0.02, 0, 0), (0.005, 0.004, 0.005)),
    (0.5, (0.05, 0, 0), (0.001, 0.001, 0.001)),
)
JOINT_M = np.array([1.0, 1.0, 1.0, 0.5, 0.5, 0.5])
JOINT_D, JOINT_K = JOINT_M * [4, 4, 5, 6, 6, 8], JOINT_M * [9, 9, 16, 16, 25, 36]
"""Inertia, damping and stiffness of the joints [kg m^2, N m s, N m]: 3 to 6 rad/s, well damped."""
TURN = Rotation.from_rotvec([0.3, -0.5, 0.2]).as_matrix()
TOOL_M = {"weight": 2.0, "moments": TURN @ np.diag([0.03, 0.05, 0.04]) @ TURN.T}
TOOL_D = {"weight": 10.0, "moments": TURN @ np.diag([0.2, 0.25, 0.25]) @ TURN.T}
TOOL_K = {"weight": 40.0, "moments": TURN @ np.diag([1.0, 0.8, 0.9]) @ TURN.T}
"""Inertia [kg, kg m^2], damping and stiffness of the tool, with centres at its origin and principal axes turned by TURN."""
HOME = np.array([0.2, 0.3, 0.5, -0.3, 0.9, 0.4])
SWING = np.array([0.5, 0.3, -0.4, 0.8, 0.4, -0.9])
"""Reference q_R = HOME + SWING sin(t (1 + i / 10)) [rad], with a different frequency for each joint."""
OFF, OFF_RATE = np.array([0.25, -0.15, 0.2, 0.3, -0.2, 0.4]), np.array([0.3, 0.2, -0.4, 0.5, 0.1, -0.6])
"""Initial errors of angles and rates [rad, rad/s]."""
DURATION, STEP, EVERY = 2.0, 1e-3, 5


def mechanism() -> pf.Mechanism:
    names = [f"link {i}" for i in range(1, 7)]
    bodies = [pf.body(n, *x) for n, x in zip(names, LINKS, strict=True)]
    joints = [
        pf.joint(f"joint {i + 1}", "revolute", ("world", *names)[i], n, axis=_axis(a), placement=x)
        for i, (n, a, x) in enumerate(zip(names, AXES, PLACES, strict=True))
    ]
    flange = pf.joint("flange", "fixed", "link 6", "tool", placement=TOOL)
    return pf.actuate_all(pf.mechanism("six axes", [*bodies, pf.body("tool")], [*joints, flange]))


def _axis(name: str) -> np.ndarray:
    return np.eye(3)["xyz".index(name)]


def free_tool() -> pf.Mechanism:
    """Any body on a free joint; under the law its motion does not depend on its inertia."""
    body = pf.body("tool", 3.0, (0.01, 0.02, 0), (0.02, 0.03, 0.03))
    return pf.actuate_all(pf.mechanism("free tool", [body], [pf.joint("free", "free", "world", "tool")]))


# -- laws ------------------------------------------------------------------------------------------------------------------


def angles(t: ca.SX) -> ca.SX:
    return ca.DM(HOME) + ca.vertcat(*[a * ca.sin(t * (1 + i / 10)) for i, a in enumerate(SWING)])


def reference() -> control.Reference:
    return control.function_of_time(angles, 6)


def tool_reference() -> control.Reference:
    """Position and quaternion of the tool along the reference of the joints."""

    def pose(t: ca.SX) -> ca.SX:
        k = pf.Kinematics(mechanism(), angles(t), ca.SX(6, 1), t).pose("tool")
        return ca.vertcat(k.p, so3.matrix_to_quat(k.R))

    return control.function_of_time(pose, 7)


def by_joints() -> list[control.Pair]:
    """Prototype with inertia, damping and stiffness about each axis, relative to the link before. [konz25 (4.113)]"""
    ends = ["world", *(f"link {i}" for i in range(1, 7))]
    rows = zip(ends[1:], ends, AXES, JOINT_M, JOINT_D, JOINT_K, strict=False)
    return [_turning(body, before, _axis(a), *numbers) for body, before, a, *numbers in rows]


def _turning(body: str, before: str, axis: np.ndarray, *numbers: float) -> control.Pair:
    inertia, damping, stiffness = (pf.forces.pseudo_matrix(0, moments=x * axis) for x in numbers)
    return control.pair(body, seen_from=before, inertia=inertia, damping=damping, stiffness=stiffness)


def by_tool() -> list[control.Pair]:
    """Prototype of the tool as a free body. [konz25 (4.114)]"""
    inertia, damping, stiffness = (pf.forces.pseudo_matrix(**x) for x in (TOOL_M, TOOL_D, TOOL_K))
    return [control.pair("tool", inertia=inertia, damping=damping, stiffness=stiffness)]


def printed(frame: str) -> Callable[[pf.Kinematics, pf.Kinematics], ca.SX]:
    """Printed map Q = J(q)^-1 J(q_R), with J along the axes of a frame. [konz25 (4.115)]"""

    def Q(k: pf.Kinematics, k_R: pf.Kinematics) -> ca.SX:
        return ca.solve(k.jacobian("tool", frame), k_R.jacobian("tool", frame))

    return Q


def run() -> dict[str, Any]:
    m, body = mechanism(), free_tool()
    q, v = np.array(ca.DM(angles(0))).ravel() + OFF, SWING * (1 + np.arange(6) / 10) + OFF_RATE
    how = {"duration": DURATION, "step": STEP, "every": EVERY}
    results = {}
    for a in ("particle", "body"):
        law = control.prototype_tracking(by_joints(), reference(), approach=a)
        results[f"joints, {a}"] = pf.run(m, q, v, control=law, **how)
    start = pf.compile_terms(m, {"G": _pose, "J": lambda T: T.kinematics.jacobian("tool")}, backend="numpy", lanes=1)(q)
    pose = np.concatenate([start["G"][:3, 3], Rotation.from_matrix(start["G"][:3, :3]).as_quat()])
    for a in control.APPROACHES:
        law = control.prototype_tracking(by_tool(), reference(), approach=a)
        results[f"tool, {a}"] = pf.run(m, q, v, control=law, outputs=PLACE, **how)
        law = control.prototype_tracking(by_tool(), tool_reference(), approach=a)
        results[f"free, {a}"] = pf.run(body, pose, start["J"] @ v, control=law, outputs=PLACE, **how)
    return results | {"determinants": determinants(m), "maps": maps(m), "singular": singular(m)}


PLACE = {"tool": lambda k: k.position("tool"), "axes": lambda k: ca.vec(k.rotation("tool"))}


def _pose(T: pf.Terms) -> ca.SX:
    G = T.kinematics.pose("tool")
    return ca.horzcat(G.R, G.p)


def formula(q: np.ndarray) -> np.ndarray:
    """det J at (..., 6) angles by the formula. [konz25 (4.116)]"""
    reach = L1 + L2 * np.sin(q[..., 1]) + L3 * np.cos(q[..., 1] + q[..., 2])
    return -L2 * L3 * reach * np.cos(q[..., 2]) * np.sin(q[..., 4])


def determinants(m: pf.Mechanism) -> xr.Dataset:
    q = np.random.default_rng(7).uniform(-np.pi, np.pi, (200, 6))
    J = pf.compile_terms(m, {"J": lambda T: T.kinematics.jacobian("tool")})(q)["J"]
    return xr.Dataset({"numeric": ("state", np.linalg.det(J)), "formula": ("state", formula(q))})


def maps(m: pf.Mechanism) -> xr.Dataset:
    """grad_R Vbar + Q^T grad Vbar at 20 pairs of random states, for the printed map along body and world axes. [konz25
    (4.30)]"""
    q, t = [ca.SX.sym(n, 6) for n in ("q", "q_R")], ca.SX.sym("t")
    k, k_R = (pf.Kinematics(m, x, ca.SX(6, 1), t) for x in q)
    off = {
        name: control.transport_error(k, k_R, by_tool(), printed(frame)(k, k_R))
        for name, frame in (("body", "LOCAL"), ("world", "LOCAL_WORLD_ALIGNED"))
    }
    f, states = ca.Function("off", q, list(off.values())), np.random.default_rng(9).uniform(-1, 1, (2, 6, 20))
    found = f.map(20)(*states)
    return xr.Dataset({name: (("velocity", "state"), np.array(x)) for name, x in zip(off, found, strict=True)})


SINGULAR = {  # where a factor of the determinant vanishes, and which joints move there without moving the tool
    "arm stretched, cos theta_3 = 0": ([0.2, 0.3, np.pi / 2, -0.3, 0.9, 0.4], (2, 3, 4, 5, 6)),
    "wrist stretched, sin theta_5 = 0": ([0.2, 0.3, 0.5, -0.3, 0.0, 0.4], (4, 6)),
    "wrist on the first axis": ([0.2, 0.3, np.arccos(-(L1 + L2 * np.sin(0.3)) / L3) - 0.3, -0.3, 0.9, 0.4], (1, 4, 5, 6)),
}


def singular(m: pf.Mechanism) -> list[str]:
    """Reasons why runs with control by the tool stop at the singular configurations."""
    law, reasons = control.prototype_tracking(by_tool(), reference()), []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pf.RunWarning)
        for q, _ in SINGULAR.values():
            r = pf.run(m, q, duration=STEP, step=STEP, every=EVERY, control=law, outputs=PLACE)
            reasons += pf.results.causes(r)
    return reasons


def single_joints(particle: bool, times: np.ndarray) -> np.ndarray:
    """q of the six joints as independent equations, by SciPy. [konz25 (4.76), (4.80)]"""
    t = ca.SX.sym("t")
    f = ca.Function("reference", [t], [ca.horzcat(*reference().at(t, ca.SX(0, 1))).T])

    def rate(t: float, x: np.ndarray) -> np.ndarray:
        (q_R, v_R, a_R), q, v = np.array(f(t)), x[:6], x[6:]
        c, s = (np.cos(q - q_R), np.sin(q - q_R)) if particle else (1, 0)
        return np.concatenate([v, a_R * c + v_R**2 * s - (JOINT_D * (v - v_R * c) + JOINT_K * np.sin(q - q_R)) / JOINT_M])

    start = np.array(f(0.0))
    x = np.concatenate([start[0] + OFF, start[1] + OFF_RATE])
    return solve_ivp(rate, (0, times[-1]), x, "DOP853", times, rtol=1e-11, atol=1e-12).y[:6].T


def turned(r: xr.Dataset) -> np.ndarray:
    """Angle between the tool and its reference [rad]."""
    t = ca.SX.sym("t")
    f = ca.Function("reference", [t], [tool_reference().at(t, ca.SX(0, 1)).value[3:]])
    goal = Rotation.from_quat(np.array(f.map(r.sizes["time"])(r.time.values)).T)
    return (goal.inv() * Rotation.from_matrix(r["axes"].values.reshape(-1, 3, 3).swapaxes(1, 2))).magnitude()


# -- figures and claims ----------------------------------------------------------------------------------------------------


def figures(result: dict[str, xr.Dataset]) -> dict[str, Any]:
    figure = blank_figure(11, 3.4)
    single, away, energy = figure.subplots(1, 3)
    r = result["joints, body"]
    q_R = np.array([np.array(ca.DM(angles(t))).ravel() for t in r.time.values])
    for i in range(6):
        single.plot(r.time, r.q.values[:, i] - q_R[:, i], color=f"C{3 + i}", label=f"joint {i + 1}")
    for i, a in enumerate(control.APPROACHES):
        r, alone = result[f"tool, {a}"], result[f"free, {a}"]
        away.plot(r.time, turned(r), color=f"C{i}", label=a)
        away.plot(alone.time[::20], turned(alone)[::20], "o", color=f"C{i}", markersize=3)
        energy.semilogy(r.time, r.prototype_energy, color=f"C{i}")
    single.set(xlabel="time [s]", ylabel="errors of the joints [rad]", title="controlled by its joints")
    away.set(xlabel="time [s]", ylabel="angle error of the tool [rad]", title="controlled by its tool; dots: a free body")
    energy.set(xlabel="time [s]", ylabel="energy of the error [J]", title="controlled by its tool")
    return {"arm": figure}


def claims(result: dict[str, xr.Dataset]) -> Iterator[Claim]:
    d = result["determinants"]
    apart = float(np.abs(d.numeric - d.formula).max())
    yield Claim("det J minus the formula, at 200 states [m^3]", apart, 0, 1e-14, "[konz25 (4.116)]")
    for a in ("particle", "body"):
        r = result[f"joints, {a}"].isel(time=slice(None, None, 20))
        apart = float(np.abs(r.q.values - single_joints(a == "particle", r.time.values)).max())
        yield Claim(f"joints by {a} minus six single ones [rad]", apart, 0, 1e-9, "[konz25 (4.113), (4.76), (4.80)]")
    for a in control.APPROACHES:
        arm, alone = result[f"tool, {a}"], result[f"free, {a}"]
        apart = float(np.abs(arm.tool.values - alone.tool.values).max())
        yield Claim(f"tool by {a} minus a free body: position [m]", apart, 0, 1e-8, "[konz25 (4.115)]")
        apart = float(np.abs(arm["axes"].values - alone["axes"].values).max())
        yield Claim(f"tool by {a} minus a free body: axes [1]", apart, 0, 1e-8, "[konz25 (4.115)]")
        apart = float(np.abs(arm.prototype_energy.values - alone.prototype_energy.values).max())
        yield Claim(f"tool by {a} minus a free body: energy [J]", apart, 0, 1e-8, "[konz25 (4.115)]")
        if a != "particle":
            rise = float(arm.prototype_power.max())
            yield Claim(f"tool by {a}: largest rate of the energy [W]", rise, 0, 1e-12, "[konz25 (4.23), (4.32)]", "at most")
    wrong = float(np.abs(result["tool, energy"].transport_error).max())
    yield Claim("map J(q)^-1 Ad(G_E^-1) J(q_R): error in (4.30)", wrong, 0, 1e-10, "[konz25 (4.42)]")
    wrong = {name: float(np.abs(x).max()) for name, x in result["maps"].items()}
    yield Claim(
        "map J(q)^-1 J(q_R) along the world's axes: error in (4.30)", wrong["world"], 0, 1e-10, "[konz25 (4.43), (4.115)]"
    )
    yield Claim(
        "map J(q)^-1 J(q_R) along the body's axes: error in (4.30)",
        wrong["body"],
        0.1,
        0,
        "ours, against [konz25 (4.115)]",
        "at least",
    )
    ways = [result[f"tool, {a}"]["axes"].values[200] for a in control.APPROACHES]
    apart = min(float(np.abs(x - y).max()) for i, x in enumerate(ways) for y in ways[:i])
    yield Claim("smallest difference of the axes by two approaches after 1 s [1]", apart, 1e-4, 0, "ours", "at least")
    for reasons, (where, (_, joints)) in zip(result["singular"], SINGULAR.items(), strict=True):
        named = {f"joint {i}" for i in joints} == set(
            reasons.partition("against a motion of ")[2].partition(";")[0].split(", ")
        )
        yield Claim(f"{where}: joints {', '.join(map(str, joints))} are named", float(named), 1, 0, "ours")
