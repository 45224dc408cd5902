"""Concurrent control of base and arm: a rover with a hand, and a free satellite with wheels and an arm. [chhabra14 ch. 5]

The rover's wheels and hinges are five motors for five outputs, the positions of its mass centre and of its hand. Each output
converges to its reference independently, critically damped. The outputs do not determine the heading: driving forwards it
settles; driving backwards it turns round, which no output shows, and a disturbance of it grows fiftyfold meanwhile. The
satellite conserves its momentum; base attitude on SO(3) and hand in R^3 follow references that this momentum allows, V_L
decreases as the thesis proves, and the reduced machine has the same motion. With its elbow bent to the other side the arm
straightens during the motion, where the run stops and names the cause.

The thesis gives no numbers: machines, gains, references and starts are ours. Errors and values of V_L at some instants, and the
time at which the arm straightens, were also computed by a separate program from the thesis's equations ("computed apart").
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import casadi as ca
import numpy as np
import xarray as xr

import pfaffian as pf
from pfaffian import control
from pfaffian.maths import so3
from pfaffian.study import Claim, blank_figure

SPEED, L0 = 0.3, 0.10
"""Speed of the rover's mass centre along x [m/s], and its distance in front of the axle [m]."""
BESIDE = np.array([L0, 0.6, 0.25])
"""Position of the hand next to the mass centre, within the arm's reach for any heading [m]."""
STARTS, SPREAD = 4096, 0.4
"""Number of random starts at rest, and how far each coordinate is from `ROVER_AT` at most [m, rad]."""
STRETCHED = 1e-4
"""Smallest singular value at a start [1] below which a step of 5 ms may fail before the law stops the run."""
POLES = np.array([2, 2, 3, 3, 3])
FAR = {"satellite": (0.9, (0.25, -0.2, 0.3)), "arm the other way": (-1.2, (0.5, -0.4, 0.6))}
"""Elbow angle at the start [rad], and the mean desired attitude as a rotation vector [rad]."""


def rover() -> pf.Mechanism:
    """Two driven wheels, an arm of three hinges. [chhabra14 example 4.6.1]"""
    l0, l1, l2, l3, l4, c, b = 0.10, 0.15, 0.30, 0.40, 0.20, 0.25, 0.10
    solids = {
        "rover": (20, (l0, 0, 0), (0.5, 0.6, 0.9)), "left": (1, (0, 0, 0), (0.004, 0.006, 0.004)),
        "right": (1, (0, 0, 0), (0.004, 0.006, 0.004)), "post": (2, (0, l2 / 2, 0), (0.02, 0.004, 0.02)),
        "upper": (1.5, (0, l3 / 2, 0), (0.025, 0.002, 0.025)), "lower": (1, (0, l4, 0), (0.012, 0.001, 0.012)),
    }  # fmt: skip
    joints = [
        pf.joint("base", "planar", "world", "rover"),
        pf.joint("psi1", "revolute", "rover", "left", axis=(0, 1, 0), placement=(0, c, 0)),
        pf.joint("psi2", "revolute", "rover", "right", axis=(0, 1, 0), placement=(0, -c, 0)),
        pf.joint("phi1", "revolute", "rover", "post", axis=(0, 0, 1), placement=(l0 + l1, 0, 0)),
        pf.joint("phi2", "revolute", "post", "upper", axis=(1, 0, 0), placement=(0, l2, 0)),
        pf.joint("phi3", "revolute", "upper", "lower", axis=(1, 0, 0), placement=(0, l3, 0)),
    ]

    def eta(k: pf.Kinematics) -> ca.SX:
        v_x, v_y, w = ca.vertsplit(k.joint_rate("base"))
        return ca.vertcat(v_y, v_x - c * w - b * k.joint_rate("psi1"), v_x + c * w - b * k.joint_rate("psi2"))

    bodies = [pf.body(n, m, com=s, inertia=I) for n, (m, s, I) in solids.items()]
    motors = [pf.actuator(f"m_{j.name}", j.name) for j in joints[1:]]
    wheels = pf.nonholonomic("wheels", eta)
    return pf.mechanism("rover", bodies, joints, actuators=motors, constraints=[wheels], gravity=(0, 0, -9.81))


ROVER_AT = np.r_[0, 0.05, 0.1, 0, 0, 0.1, 0.6, -0.3], np.r_[0.2, 0, 0, 2, 2, 0, 0, 0]


def rover_outputs() -> list[control.Output]:
    def centre(t: ca.SX) -> ca.SX:
        a = 0.15 * t
        return ca.vertcat(0.10 + 2 * ca.sin(a), 2 * (1 - ca.cos(a)))

    def hand(t: ca.SX) -> ca.SX:
        return ca.vertcat(centre(t), 0) + ca.vertcat(0.15 + 0.05 * ca.sin(0.5 * t), 0.6, 0.25 + 0.05 * ca.cos(0.5 * t))

    return [
        control.output("rover", "position", centre, axes=(0, 1), at=(0.10, 0, 0), stiffness=4, damping=4),
        control.output("lower", "position", hand, at=(0, 0.20, 0), stiffness=9, damping=6),
    ]


def rover_law() -> control.Control:
    return control.concurrent(rover_outputs())


def straight_law(hand: np.ndarray, speed: float) -> control.Control:
    """Law that moves mass centre and hand along x at the given speed, the hand's reference starting at `hand`."""
    return control.concurrent([
        control.output("rover", "position", lambda t: ca.vertcat(L0 + speed * t, 0), axes=(0, 1), at=(L0, 0, 0),
                       stiffness=4, damping=4),
        control.output("lower", "position", lambda t: ca.DM(hand) + ca.vertcat(speed * t, 0, 0), at=(0, 0.2, 0),
                       stiffness=9, damping=6),
    ])  # fmt: skip


def tip(m: pf.Mechanism, q: np.ndarray) -> np.ndarray:
    """(..., 3) position of the rover's hand [m]."""
    lower = pf.forward_kinematics(m, q)["lower"]
    return lower.position + lower.rotation @ [0, 0.2, 0]


def straight_at(speed: float, heading: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    v = np.r_[speed, 0, 0, speed / 0.1, speed / 0.1, 0, 0, 0]
    return np.r_[0, 0, heading, 0, 0, 0.1, 0.6, -0.3], v


def backwards() -> xr.Dataset:
    """The rover drives backwards on both references from a heading of 0.02 rad, with the growth of a heading disturbance."""
    m, law = rover(), straight_law(BESIDE, -SPEED)

    def off(k: pf.Kinematics) -> ca.SX:
        x = ca.vertcat(-SPEED * k.t, 0)
        centre, hand = k.position("rover", (L0, 0, 0))[:2], k.position("lower", (0, 0.2, 0))
        return ca.vertcat(centre - ca.vertcat(L0, 0) - x, hand - ca.DM(BESIDE) - ca.vertcat(x, 0))

    there = pf.assemble(m.with_(constraints=[*m.constraints, pf.holonomic("on both", off)]), {"base.angle": 0.02})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pf.RunWarning)
        inside = pf.analysis.zero_dynamics_along(m, law, there.q, there.v, duration=5, step=2.5e-3, every=20)
    heading = np.array([z.dq[2] @ Phi for z, Phi in zip(inside.at, inside.transition, strict=True)])
    first = inside.at[0].dq[2]
    return inside.result.assign(grown=("time", heading @ first / (first @ first)), unstable=inside.unstable)


def satellite() -> pf.Mechanism:
    """A free base with three wheels and an arm of three hinges."""
    wheels = {"wx": ((0.3, 0, 0), 0), "wy": ((0, -0.3, 0), 1), "wz": ((0, 0, -0.3), 2)}
    bodies, joints = [pf.body("base", 100, inertia=(12, 14, 10))], [pf.joint("flight", "free", "world", "base")]
    for name, (place, i) in wheels.items():
        axis, inertia = np.eye(3)[i], np.full(3, 0.05)
        inertia[i] = 0.08
        bodies.append(pf.body(name, 4, inertia=tuple(inertia)))
        joints.append(pf.joint(name, "revolute", "base", name, axis=tuple(axis), placement=place))
    arm = {
        "yaw": ("base", (0, 1, 0), 0.4, 0.1, 8, (0.1, 0.1, 0.05)),
        "shoulder": ("yaw", (1, 0, 0), 0.2, 0.4, 6, (0.3, 0.02, 0.3)),
        "elbow": ("shoulder", (1, 0, 0), 0.8, 0.3, 4, (0.15, 0.01, 0.15)),
    }
    for name, (parent, axis, y, com, mass, inertia) in arm.items():
        bodies.append(pf.body(name, mass, com=(0, com, 0), inertia=inertia))
        joints.append(pf.joint(name, "revolute", parent, name, axis=axis, placement=(0, y, 0)))
    motors = [pf.actuator(f"m_{j.name}", j.name) for j in joints[1:]]
    return pf.mechanism("satellite", bodies, joints, actuators=motors, gravity=(0, 0, 0))


MOMENTUM = np.array([0, 20, 0, 3, 1, -2.0])


def satellite_at(m: pf.Mechanism, elbow: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """q and v with the momentum `MOMENTUM` and motors at rest, and the position of the hand [m]."""
    q = m.neutral()
    q[-3:] = 0.2, 0.7, elbow
    unit = np.array([pf.momentum(m, q, np.eye(m.nv)[i]) for i in range(6)]).T
    v = np.r_[np.linalg.solve(unit, MOMENTUM), np.zeros(6)]
    pose = pf.forward_kinematics(m, q)["elbow"]
    return q, v, pose.position + pose.rotation @ [0, 0.3, 0]


def satellite_law(hand: np.ndarray, first: tuple[float, ...]) -> control.Control:
    def attitude(t: ca.SX) -> ca.SX:
        return so3.exp(ca.DM(first)) @ so3.exp(0.1 * ca.sin(0.3 * t) * ca.DM([0.6, 0, 0.8]))

    def goal(t: ca.SX) -> ca.SX:
        return ca.DM(hand) + ca.vertcat(0.05 + 0.06 * ca.sin(0.5 * t), -0.05, -0.05) + ca.DM(MOMENTUM[:3]) / 130 * t

    return control.concurrent([
        control.output("base", "attitude", attitude, stiffness=(2, 3, 4), damping=(3, 3, 4)),
        control.output("elbow", "position", goal, at=(0, 0.3, 0), stiffness=4, damping=4),
    ])  # fmt: skip


def run() -> dict[str, xr.Dataset]:
    """By name: the rover, from random starts, and backwards; the satellite, full and reduced, and until its arm straightens."""
    m, law, q = rover(), rover_law(), np.random.default_rng(5).uniform(-SPREAD, SPREAD, (STARTS, 8))
    found = {"rover": pf.run(m, *ROVER_AT, duration=12, step=1e-3, every=50, control=law)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pf.RunWarning)
        found["random starts"] = pf.run(m, ROVER_AT[0] + q, duration=3, step=5e-3, every=60, control=law)
    found["backwards"] = backwards()
    s = satellite()
    for name, (elbow, first) in FAR.items():
        q, v, hand = satellite_at(s, elbow)
        aim = satellite_law(hand, first)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", pf.RunWarning)
            found[name] = pf.run(s, q, v, duration=5, step=1e-3, every=20, control=aim)
            if name == "satellite":
                found["satellite, reduced"] = pf.run(pf.reduce(s), q, v, duration=5, step=1e-3, every=20, control=aim)
    return found


def designed(r: xr.Dataset) -> np.ndarray:
    """(times, 5) critically damped errors that start from the recorded ones."""
    e, e_dot, t = r.output_error.values[0], -r.velocity_error.values[0], r.time.values[:, None]
    return np.exp(-POLES * t) * (e + (e_dot + POLES * e) * t)


def claims(result: dict[str, xr.Dataset]) -> Iterator[Claim]:
    r, back, s, end = (result[n] for n in ("rover", "backwards", "satellite", "arm the other way"))
    e = np.linalg.norm(r.output_error.values, axis=1)
    for at, expected in ((0, 0.330353423), (2, 9.458943593e-3), (4, 2.505668772e-4)):
        found = float(e[np.isclose(r.time, at)][0])
        yield Claim(f"rover: error at {at} s [m]", found, expected, 1e-9 * expected + 1e-12, "[chhabra14 5.5], computed apart")
    off = np.abs(r.output_error.values - designed(r)).max()
    yield Claim("rover: errors minus five critically damped ones [m]", float(off), 0, 5e-11, "[chhabra14 5.5]")
    apart = np.abs(result["satellite, reduced"].q.values - s.q.values).max()
    yield Claim("satellite: reduced minus full machine [m, rad]", float(apart), 0, 5e-9, "[chhabra14 3.4]")
    for speed in (SPEED, -SPEED):
        at, m = straight_at(speed), rover()
        inside = pf.analysis.zero_dynamics(m, straight_law(tip(m, at[0]), speed), *at)
        most, source = float(max(inside.eigenvalues.real, key=abs)), "theta' = V sin(beta - theta) / l0"
        yield Claim(f"heading's eigenvalue at {speed:g} m/s [1/s]", most, -speed / L0, 1e-6, source)
    yield Claim("backwards: heading at the end [rad]", float(back.q[-1, 2]), np.pi, 1e-3, "stable heading backwards")
    largest_error = float(np.abs(back.output_error.values).max())
    yield Claim("backwards: largest error of the outputs [m]", largest_error, 0, 1e-9, "[chhabra14 5.3]", "at most")
    turned, heading = back.grown.values, back.q.values[:, 2]
    apart = np.abs(turned - np.sin(heading) / np.sin(heading[0])).max()
    source = "variational equation of theta' = V sin(beta - theta) / l0"
    yield Claim("backwards: growth of a heading disturbance minus sin theta / sin theta_0", float(apart), 0, 2e-5, source)
    yield Claim("backwards: largest growth of a heading disturbance [times]", float(turned.max()), 1 / np.sin(0.02), 1, source)
    yield Claim("backwards: a warning names the growth", float(back.unstable), 1, 0, "GROWN")
    for at, expected in ((0, 0.351912), (1, 9.995467e-2), (5, 1.266916e-5)):
        found = float(s.lyapunov.values[np.isclose(s.time, at)][0])
        yield Claim(f"satellite: V_L at {at} s", found, expected, 1e-6 * expected, "[chhabra14 (5.4.35)], computed apart")
    p = np.abs(pf.momentum(satellite(), s.q.values, s.v.values) - MOMENTUM).max()
    yield Claim("satellite: drift of the momentum [N s, N m s]", float(p), 0, 1e-11, "[chhabra14 3.2]")
    yield Claim(
        "arm the other way: time of the stop [s]", float(end.stopped), 1.93, 5e-3, "where the elbow is straight, computed apart"
    )
    yield Claim(
        "arm the other way: the reason names the elbow", float("because of elbow" in str(end.reason.values)), 1, 0, "the reason"
    )
    starts = result["random starts"]
    ran = np.isnan(starts.stopped.values)
    by_elbow = np.array(["because of phi3" in str(x) for x in starts.reason.values]) & ~ran
    yield Claim("random starts that stop for a reason other than the elbow", int((~ran & ~by_elbow).sum()), 0, 0, "geometry")
    # The two runs that start nearest to a straight elbow stop within their first step.
    elbow = np.abs([starts.q.values[:, 0, 7], starts.end_state.values[:, 7]]).min(axis=0)
    yield Claim(
        "smallest recorded elbow angle of runs that stop [rad]", float(elbow[~ran].max()), 0.01, 0, "geometry", "at most"
    )
    bent = float(np.abs(starts.q.values[ran, -1, 7]).min())
    yield Claim("elbow angle at the end of runs that finish [rad]", bent, 2, 0, "geometry", "at least")
    last = np.array([x[np.isfinite(x)][-1] for x in starts.sigma_min.values])
    yield Claim("sigma_min at the end of runs that stop", float(last[~ran].max()), 1e-3, 0, "last record", "at most")
    yield Claim("sigma_min at the end of runs that finish", float(last[ran].min()), 0.02, 0, "last record", "at least")
    yield Claim("share of random starts that finish", float(ran.mean()), 0.985, 0.003, "of 4096")


def figures(result: dict[str, xr.Dataset]) -> dict[str, Any]:
    r, back, s, end = (result[n] for n in ("rover", "backwards", "satellite", "arm the other way"))
    driven = blank_figure(11, 6.6)
    (path, error), (sigma, turn) = driven.subplots(2, 2)
    centre = r.q.values[:, :2] + L0 * np.stack([np.cos(r.q.values[:, 2]), np.sin(r.q.values[:, 2])], axis=1)
    hand = tip(rover(), r.q.values)
    for x, e, name in ((centre, r.output_error.values[:, :2], "mass centre"), (hand, r.output_error.values[:, 2:], "hand")):
        path.plot(x[:, 0], x[:, 1], label=name)
        path.plot(*(x[:, :2] + e[:, :2]).T, "k:", linewidth=1)
    path.set(xlabel="x [m]", ylabel="y [m]", aspect="equal", title="rover: paths, references dotted")
    path.legend(loc="best")
    for i, name in enumerate(("centre x", "centre y", "hand x", "hand y", "hand z")):
        error.semilogy(r.time, np.maximum(np.abs(r.output_error[:, i]), 1e-13), color=f"C{i}", label=name)
        error.semilogy(r.time[::8], np.maximum(np.abs(designed(r)[::8, i]), 1e-13), "o", color=f"C{i}", markersize=3)
    error.set(xlabel="time [s]", ylabel="error [m]", title="rover: errors; dots: closed form")
    error.legend(loc="best", fontsize="small")
    sigma.plot(r.time, r.sigma_min)
    sigma.set(xlabel="time [s]", ylabel="smallest singular value", title="rover: generalised Jacobian", ylim=(0, None))
    turn.plot(back.time, back.q[:, 2], label="heading [rad]")
    turn.plot(back.time, back.grown / 10, label="growth of its disturbance [10 times]")
    turn.plot(back.time[::6], (np.sin(back.q[:, 2]) / np.sin(0.02) / 10)[::6], "C1o", markersize=3)
    turn.plot(back.time, 10 * np.linalg.norm(back.output_error, axis=1), label="error of outputs [0.1 m]")
    turn.axhline(np.pi, color="k", linestyle=":", linewidth=1)
    turn.set(xlabel="time [s]", title="rover backwards: the heading turns round unobserved")
    turn.set_ylim(None, 5.6)
    turn.legend(loc="upper right", fontsize="small")
    free = blank_figure(11, 3.8)
    fall, reach = free.subplots(1, 2)
    for x, name in ((s, "elbow bent"), (end, "elbow the other way")):
        fall.semilogy(x.time, x.lyapunov, label=name)
        reach.plot(x.time, 1e3 * x.sigma_min, label=name)
    fall.set(xlabel="time [s]", ylabel="V_L", title="satellite: V_L decreases until a run stops")
    reach.set(
        xlabel="time [s]", ylabel="smallest singular value [0.001]", ylim=(0, None), title="satellite: generalised Jacobian"
    )
    for ax in (fall, reach):
        ax.axvline(float(end.stopped), color="k", linestyle=":", linewidth=1)
        ax.legend(loc="best")
    return {"rover": driven, "satellite": free}
