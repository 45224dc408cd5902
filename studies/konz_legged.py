"""Go2 on three legs: torso and lifted foot as bodies on springs and dampers, within the motors' limits. [konz25 4.4-4.6]

The robot is that of example-robot-data: 18 velocities, of which the six of the floating base have no motor, and 12 motors.
Three feet stand on fixed points, 9 rows, so that 9 degrees of freedom are left, those of the torso (6) and of the lifted foot
(3): the prototype has a body for the torso and a point for the foot. There are three more motors than degrees of freedom; of
inputs with the same motion the law takes the smallest. No paper has these runs; the claims follow from the equations.

Ours: the prototype's torso has the apparent inertia of the standing robot's torso, as closely as a pseudo-matrix can, and
small errors decay by s^2 + 9.6 s + 36; the foot has 1 kg, s^2 + 24 s + 225. In "walk" the torso turns and moves down while the
foot is lifted, from a start with an error. In "tight" motors have 24 % of their torques, and feet push against each other to
relieve a motor at its limit; in "weak" they have 22 %, and the motion is as close as these allow; with 20 % the robot falls.
In "pushed" the torso is pushed for 0.1 s. The law does not know the push, which acts on the robot's real inertia. A constant
force F is therefore balanced by K' only as far as the prototype's inertia equals the robot's: K e = Mbar S F, where S F are
the accelerations due to the force alone.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from functools import cache
from typing import Any

import casadi as ca
import numpy as np
import xarray as xr
from scipy.integrate import solve_ivp
from scipy.spatial.transform import Rotation

import pfaffian as pf
from pfaffian import control
from pfaffian.maths import se3, so3
from pfaffian.study import Claim, blank_figure

LEGS, FREE = ("FR", "RL", "RR"), "FL"
BEND = {"hip": 0.0, "thigh": 0.8, "calf": -1.5}
"""Joint angles of each leg at which the feet are placed [rad]."""
HEIGHT = 0.31131
"""Height of the base above the feet at these angles [m]."""
LEAN = (-0.06, -0.04, -0.01)
"""Displacement of the base at the start, so that the mass centre is above the three feet [m]."""
D, K = 9.6, 36.0
FOOT = 1.0, 24.0, 225.0
"""Prototype of the foot [kg, N s/m, N/m]."""
MOVE, TURN = (0.02, 0.0, -0.04), (0.05, 0.12, 0.2)
"""Motion of the torso in "walk" [m, rad]."""
LIFT = {"thigh": 0.5, "calf": -0.7}
OFF, OFF_TURN = np.array([0.015, -0.02, 0.01]), np.array([0.06, -0.05, 0.08])
"""Initial error of the torso in "walk", relative to its reference [m, rad]."""
FORCES = np.array([1.0, 1.0, 1.0, 0.005, 0.05, 0.05])
"""Constant pushes along the world's axes at the base [N, N m]."""
PUSH = {"push.fy": 60.0, "push.nz": 4.0}
"""Short push, for 0.1 s [N, N m]."""
SHARES = {"walk": 1.0, "tight": 0.24, "weak": 0.22}
"""Available fraction of the motors' torques."""
DURATION, STEP, EVERY = 2.5, 2.5e-3, 2
WRENCH = ("fx", "fy", "fz", "nx", "ny", "nz")
GO = pf.Parameter("go", 0.0)
"""Fraction of the motion of "walk" in the reference."""
STRENGTH = pf.Parameter("strength", 1.0)
"""Fraction of the motors' torques that is available."""


@cache
def mechanism() -> pf.Mechanism:
    """Go2 with three feet on fixed points."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pf.ModelWarning)
        path = pf.formats.installed("example-robot-data", "go2_description/urdf/go2.urdf", "konz-legged")
        m = pf.formats.read_urdf(path, base="free")
    feet = {leg: lambda T, leg=leg: T.kinematics.position(f"{leg}_foot") for leg in LEGS}
    at = pf.compile_terms(m, feet, backend="numpy", lanes=1)(placed(m, np.array([0, 0, HEIGHT])))
    holds = [pf.closure(leg, "spherical", "world", f"{leg}_foot", placement_a=x) for leg, x in at.items()]
    return m.with_(constraints=holds, forces=[pf.wrench("push", "base")], parameters=[GO, STRENGTH])


def placed(m: pf.Mechanism, base: np.ndarray) -> np.ndarray:
    q = m.neutral()
    q[:3] = base
    for leg in (*LEGS, FREE):
        for part, angle in BEND.items():
            q[m.q_slices[f"{leg}_{part}_joint"]] = angle
    return q


@cache
def stance() -> np.ndarray:
    """q with the base displaced above the three feet and the lifted leg at its given angles."""
    m = mechanism()
    guess = placed(m, np.array([0, 0, HEIGHT]) + LEAN)
    fixed_joints = ["root_joint", *(f"{FREE}_{part}_joint" for part in BEND)]
    return pf.assemble(m, guess, hold=fixed_joints).q


def reference() -> control.Reference:
    """Reference of the base and of the lifted leg's joints; the standing legs follow, so theirs is arbitrary."""
    m, q, y = mechanism(), stance(), control.rest_to_rest([0.0], [1.0], 1.0, begin=0.3)

    def at(t: ca.SX) -> ca.SX:
        part = y(t) * GO.symbol
        found = ca.SX(ca.DM(q))
        found[:3] = q[:3] + part * ca.DM(MOVE)
        found[3:7] = so3.quat_exp(part * ca.DM(TURN))
        for name, angle in LIFT.items():
            found[m.q_slices[f"{FREE}_{name}_joint"]] = BEND[name] + part * angle
        return found

    return control.function_of_time(at, m.nq)


@cache
def apparent() -> np.ndarray:
    """(6, 6) accelerations of the torso by wrenches on it, along its axes, for the robot on its feet without motor torques."""
    m, q = mechanism(), stance()
    J = pf.compile_terms(m, {"J": lambda T: T.kinematics.jacobian("base")}, backend="numpy", lanes=1)(q)["J"]
    u = np.zeros((7, m.nu))
    u[1:, m.nu - 6 :] = np.eye(6)
    a = pf.forward_dynamics(m, np.tile(q, (7, 1)), u=u).v_dot
    return J @ (a[1:] - a[0]).T


@cache
def torso() -> np.ndarray:
    """(4, 4) pseudo-matrix nearest to the apparent inertia of the torso."""
    inertia = np.linalg.inv(apparent())
    mass = np.trace(inertia[:3, :3]) / 3
    lever = (inertia[:3, 3:] - inertia[:3, 3:].T) / 2
    centre = np.array([lever[1, 2], lever[2, 0], lever[0, 1]]) / mass
    arm = mass * (centre @ centre * np.eye(3) - np.outer(centre, centre))
    about = (inertia[3:, 3:] + inertia[3:, 3:].T) / 2 - arm
    return np.array(ca.DM(pf.forces.pseudo_matrix(mass, centre, about)))


def law() -> control.Control:
    """Body-based law within the motors' limits."""
    M = torso()
    body = control.pair("base", inertia=M, damping=D * M, stiffness=K * M)
    point = [pf.forces.pseudo_matrix(x) for x in FOOT]
    foot = control.pair(f"{FREE}_foot", inertia=point[0], damping=point[1], stiffness=point[2])
    most = mechanism().u_limits[:12, 1]
    limits = np.vstack([np.eye(12), -np.eye(12)]), STRENGTH.symbol * ca.DM(np.concatenate([most, most]))
    return control.prototype_tracking([body, foot], reference(), approach="body", limits=limits)


def outputs() -> dict:
    """Outputs: pose of the torso and position of the foot relative to their references."""
    m = mechanism()

    def error(k: pf.Kinematics, body: str) -> pf.Pose:
        q_R = reference().at(k.t, ca.SX(0, 1)).value
        return pf.Kinematics(m, q_R, k.v, k.t).pose(body).inverse() @ k.pose(body)

    return {
        "place": lambda k: error(k, "base").p,
        "axes": lambda k: ca.vec(error(k, "base").R),
        "foot": lambda k: error(k, f"{FREE}_foot").p,
    }


def run() -> dict[str, xr.Dataset]:
    """All runs as one batch: three walks from a start with an error, and from the stance a short push and six constant ones."""
    m, q = mechanism(), stance()
    off = q.copy()
    off[:3], off[3:7] = q[:3] + OFF, Rotation.from_rotvec(OFF_TURN).as_quat()
    off = pf.assemble(m, off, hold=("root_joint", *(f"{FREE}_{part}_joint" for part in BEND))).q
    names = [*SHARES, "pushed", *(f"held {name}" for name in WRENCH)]
    steps = round(DURATION / STEP)
    pushes = {f"push.{name}": np.zeros((steps, len(names))) for name in WRENCH}
    for name, most in PUSH.items():
        pushes[name][: round(0.1 / STEP), names.index("pushed")] = most
    for name, force in zip(WRENCH, FORCES, strict=True):
        pushes[f"push.{name}"][:, names.index(f"held {name}")] = force
    walks = np.array([name in SHARES for name in names])
    parameters = {"go": walks.astype(float), "strength": np.array([SHARES.get(name, 1.0) for name in names])}
    r = pf.run(
        m, np.where(walks[:, None], off, q), duration=DURATION, step=STEP, every=EVERY, u=pushes, u_step=STEP,
        parameters=parameters, control=law(), outputs=outputs(), record="all",
    )  # fmt: skip
    results = {name: r.isel(run=i) for i, name in enumerate(names)}
    results["pushed"] = results["pushed"].sel(time=slice(0, 1.5))
    return results | {"alone": alone(results["walk"])}


def alone(r: xr.Dataset) -> xr.Dataset:
    """Error of a free body with the torso's prototype from the same start, by SciPy. [konz25 (4.22)]"""
    X, v, M = ca.SX.sym("X", 3, 4), ca.SX.sym("v", 6), ca.DM(torso())
    R, p = X[:, :3], X[:, 3]
    pull = se3.vee2((ca.SX.eye(4) - se3.homogeneous(*se3.inverse(R, p))) @ M)
    I = se3.Vee(M)
    v_dot = ca.solve(I, se3.ad_transpose(v, I @ v)) - D * v - K * ca.solve(I, pull)
    rate = ca.Function("rate", [X, v], [ca.vertcat(ca.vec(ca.horzcat(R @ so3.hat(v[3:]), R @ v[:3])), v_dot)])
    start = np.concatenate([r["axes"][0], r.place[0], np.zeros(6)])

    def f(t: float, x: np.ndarray) -> np.ndarray:
        return np.array(rate(x[:12].reshape(4, 3).T, x[12:])).ravel()

    found = solve_ivp(f, (0, r.time[-1]), start, "DOP853", r.time, rtol=1e-10, atol=1e-12).y.T
    return xr.Dataset(
        {"place": (("time", "axis"), found[:, 9:12]), "axes": (("time", "entry"), found[:, :9])}, {"time": r.time}
    )


def turn(r: xr.Dataset) -> np.ndarray:
    """Rotation vectors of the torso's error [rad]."""
    return Rotation.from_matrix(r["axes"].values.reshape(-1, 3, 3).swapaxes(1, 2)).as_rotvec()


def measured_stiffness(result: dict[str, xr.Dataset]) -> np.ndarray:
    """(6, 6) stiffness from the constant pushes and the final displacements of the torso."""
    ends = [np.concatenate([r.place.values[-1], turn(r)[-1]]) for r in (result[f"held {n}"] for n in WRENCH)]
    return np.linalg.inv(np.array(ends).T / FORCES)


def measured_decay(r: xr.Dataset) -> np.ndarray:
    """(d, k) of e'' + d e' + k e = 0 by least squares, for the torso after the short push."""
    e, h = np.hstack([r.place.values, turn(r) / 10])[40:], EVERY * STEP
    bend = (-e[4:] + 16 * e[3:-1] - 30 * e[2:-2] + 16 * e[1:-3] - e[:-4]) / (12 * h**2)
    rate = (-e[4:] + 8 * e[3:-1] - 8 * e[1:-3] + e[:-4]) / (12 * h)
    return np.linalg.lstsq(np.stack([rate.ravel(), e[2:-2].ravel()], axis=1), -bend.ravel(), rcond=None)[0]


def carried(r: xr.Dataset) -> np.ndarray:
    """(time, 3) normal forces of the ground on the feet [N]."""
    return np.stack([r.multiplier.sel(row=f"{leg}.vz").values for leg in LEGS], axis=1)


def sideways(r: xr.Dataset) -> np.ndarray:
    """(time, 3) forces along the ground [N]."""
    return np.stack([np.hypot(*(r.multiplier.sel(row=f"{leg}.{x}").values for x in ("vx", "vy"))) for leg in LEGS], axis=1)


def decay(times: np.ndarray, d: float, k: float) -> np.ndarray:
    """Solution of x'' + d x' + k x = 0 from 1 at rest."""
    w = np.sqrt(k - d**2 / 4)
    return np.exp(-d / 2 * times) * (np.cos(w * times) + d / (2 * w) * np.sin(w * times))


# -- figures and claims ----------------------------------------------------------------------------------------------------


def figures(result: dict[str, xr.Dataset]) -> dict[str, Any]:
    figure = blank_figure(11, 6)
    (off, turned, foot), (torque, force, push) = figure.subplots(2, 3)
    for i, (name, share) in enumerate(SHARES.items()):
        r, look = result[name], f"C{i}"
        off.plot(r.time, 1e3 * np.linalg.norm(r.place, axis=1), color=look, label=f"motors at {share:.0%}")
        turned.plot(r.time, np.degrees(np.linalg.norm(turn(r), axis=1)), color=look)
        foot.plot(r.time, 1e3 * np.linalg.norm(r.foot, axis=1), color=look)
        used = np.abs(r.u.values[:, :12]) / mechanism().u_limits[:12, 1]
        torque.plot(r.time, used.max(axis=1), color=look)
    r, free = result["walk"], result["alone"]
    off.plot(free.time[::20], 1e3 * np.linalg.norm(free.place, axis=1)[::20], "ko", markersize=3, label="a free body, a point")
    turned.plot(free.time[::20], np.degrees(np.linalg.norm(turn(free), axis=1))[::20], "ko", markersize=3)
    point = np.linalg.norm(r.foot[0]) * np.abs(decay(r.time.values, FOOT[1], FOOT[2]))
    foot.plot(r.time[::20], 1e3 * point[::20], "ko", markersize=3)
    for i, leg in enumerate(LEGS):
        force.plot(r.time, carried(r)[:, i], color=f"C{i + 1}", label=leg)
    force.axhline(0, color="k", linewidth=0.8)
    r = result["pushed"]
    for i, axis in enumerate("xyz"):
        push.plot(r.time, 1e3 * r.place[:, i], color=f"C{i + 1}", label=axis)
    off.set_ylabel("error of the torso [mm]")
    turned.set_ylabel("angle error of the torso [deg]")
    foot.set_ylabel("error of the lifted foot [mm]")
    torque.set_ylabel("largest share of a motor's limit [1]")
    force.set_ylabel("normal forces, walk [N]")
    push.set_ylabel("torso after a push [mm]")
    for ax in figure.axes:
        ax.set_xlabel("time [s]")
    force.legend()
    push.legend()
    return {"legged": figure}


def claims(result: dict[str, xr.Dataset]) -> Iterator[Claim]:
    r, tight, weak, free = (result[n] for n in ("walk", "tight", "weak", "alone"))
    yield Claim("runs that ended early", sum(int(x.status) != 0 for n, x in result.items() if n != "alone"), 0)
    apart = float(np.abs(r.place.values - free.place.values).max())
    yield Claim("walk: torso minus a free body: position [m]", apart, 0, 1e-8, "[konz25 (4.22)]")
    apart = float(np.abs(r["axes"].values - free["axes"].values).max())
    yield Claim("walk: torso minus a free body: axes [1]", apart, 0, 1e-8, "[konz25 (4.22)]")
    start = np.linalg.norm(r.foot.values[0])
    yield Claim("walk: error of the lifted foot at the start [m]", float(start), 0.02, 0, "setting", "at least")
    apart = np.linalg.norm(r.foot.values, axis=1) - start * np.abs(decay(r.time.values, FOOT[1], FOOT[2]))
    yield Claim("walk: foot minus m e'' + d e' + k e = 0 [m]", float(np.abs(apart).max()), 0, 1e-8, "[konz25 (4.98)]")
    yield Claim("walk: matching force [N, N m]", float(np.abs(r.matching_force).max()), 0, 1e-8, "[konz25 (4.54)]")
    yield Claim("walk: largest rate of the energy [W]", float(r.prototype_power.max()), 0, 1e-10, "[konz25 (4.23)]", "at most")
    yield Claim("walk: least normal force [N]", float(carried(r).min()), 0, 0, "unilateral contact", "at least")
    yield Claim("walk: largest friction coefficient used", float((sideways(r) / carried(r)).max()), 0.6, 0, "ours", "at most")
    for name, x in (("tight", tight), ("weak", weak)):
        slack, used = float(x.limit_slack.min()), float(x.limit_active.sum())
        yield Claim(f"{name}: smallest margin to the motors' limits [N m]", slack, 0, 1e-9, "[konz25 (4.64)]", "at least")
        yield Claim(f"{name}: number of samples at a limit", used, 1, 0, "setting", "at least")
        yield Claim(
            f"{name}: error of the torso at the end [m]", float(np.linalg.norm(x.place[-1])), 0, 1e-3, "ours", "at most"
        )
    apart = float(np.abs(tight.place.values - r.place.values).max())
    yield Claim("tight: torso minus that with strong motors [m]", apart, 0, 1e-5, "ours", "at most")
    apart = float(np.abs(weak.place.values - r.place.values).max())
    yield Claim("weak: torso minus that with strong motors [m]", apart, 1e-3, 0, "setting", "at least")
    d, k = measured_decay(result["pushed"])
    yield Claim("pushed: measured damping over inertia [1/s]", float(d), D, 0.02 * D, "setting")
    yield Claim("pushed: measured stiffness over inertia [1/s^2]", float(k), K, 0.02 * K, "setting")
    far = float(np.abs(result["pushed"].place).max())
    yield Claim("pushed: largest displacement of the torso [m]", far, 0.02, 0, "setting", "at least")
    nominal, expected = K * np.array(ca.DM(se3.Vee(ca.DM(torso())))), K * np.linalg.inv(apparent())
    found = measured_stiffness(result)
    for name, i, unit in (("sideways", 1, "N/m"), ("yaw", 5, "N m")):
        yield Claim(f"held: measured stiffness, {name} [{unit}]", found[i, i], nominal[i, i], 0.05 * nominal[i, i], "setting")
    size = np.linalg.inv(np.linalg.cholesky(nominal))
    apart = float(np.linalg.norm(size @ (found - nominal) @ size.T, 2))
    yield Claim("held: measured stiffness minus the prototype's, relative", apart, 0, 0.2, "setting", "at most")
    apart = float(np.linalg.norm(size @ (found - expected) @ size.T, 2))
    yield Claim("held: measured stiffness minus that of K e = Mbar S F, relative", apart, 0, 0.02, "ours", "at most")
