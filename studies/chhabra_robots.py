"""Concurrent control of real robots: a spacecraft with two Pandas, and Tiago on its wheels. [chhabra14 ch. 5]

A hull with three reaction wheels carries two Pandas of example-robot-data, 7 joints each: 17 motors for 15 outputs, the
attitude of the hull and the poses of both hands. The machine has linear and angular momentum. The references drift with its
mass centre and initially turn with the machine, so that two errors start at rest. The hull's error then goes straight to zero,
critically damped, and so does the left hand's, a screw about its own direction. The right hand's error is neither such a screw
nor at rest, so it takes another path, with V_L decreasing as the thesis proves. `rest_weight` decides how the redundant motors
are used: the wheels may turn a hundred times as fast as the arms, and absorb momentum that would otherwise swing the arms
until they are stretched. The reduced machine has the same motion.

Tiago, from the same collection, drives on two rolling wheels. A point in front of its axle and its hand follow an arc, once
with five motors for the five outputs, once with all nine, and from 4096 starts, some of which straighten the arm.

No paper has these runs; the law and the claims about it are from [chhabra14 5.4], the machines are those of the files. Ours are
the hull (a homogeneous box of 200 kg, whose wheels are plain disks), the mounts of the arms, momentum, references, gains,
weights and starts. Torques and speeds are not limited: whether the real motors could deliver them is not claimed.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import casadi as ca
import numpy as np
import xarray as xr

import pfaffian as pf
from pfaffian import control
from pfaffian.maths import se3, so3
from pfaffian.study import Claim, blank_figure

RECORDED = ("q", "v", "output_error", "velocity_error", "lyapunov", "lyapunov_rate", "sigma_min")

# -- spacecraft with two arms ------------------------------------------------------------------------------------------

HULL, SIDES = 200.0, np.array([1.2, 1.0, 0.8])
"""Mass [kg] and edges [m] of the hull."""
DISK, RADIUS, WIDTH = 6.0, 0.15, 0.05
"""Mass [kg], radius [m] and width [m] of a reaction wheel."""
SPIN = DISK * RADIUS**2 / 2
SHOULDERS = {"left": 0.35, "right": -0.35}
"""Positions of the arms' bases across the front of the hull [m]."""
READY = (0.0, -0.4, 0.0, -2.0, 0.0, 2.2, 0.8)
TIP = (0.0, 0.0, 0.1034)
"""Point between the fingers, in the frame of the hand [m]."""
MOMENTUM = np.array([6.0, -4.0, 5.0, 3.0, 2.0, -2.0])
"""Linear momentum, and angular momentum about the origin [N s, N m s]."""
SWING = 0.4
"""Frequency of the references' rotation [rad/s]."""
TURNED = (0.08, -0.06, 0.1)
"""Initial attitude error of the hull, a rotation vector [rad]."""
MISSED = {"left": (0.04, -0.03, 0.05, *TURNED), "right": (0.03, 0.05, -0.05, *TURNED)}
"""Initial pose errors of the hands, as twists in their axes applied for unit time [m, rad]; the left one is a screw about its
own direction."""
WAVE = {"left": (-0.05, 0.1, 0.1), "right": (-0.05, -0.1, 0.1)}
"""Amplitudes of the hands' references [m]."""
POLES = {"hull": 1.0, "hand": 2.0}
"""Double poles of the errors [1/s]."""
SPARE = {"rest_damping": 2.0, "rest_weight": np.array([1e-4] * 3 + [1.0] * 14)}
FLIGHT, TICK = 8.0, 2.5e-3


def robot(path: str, **given: str) -> pf.Mechanism:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pf.ModelWarning)
        return pf.formats.read_urdf(pf.formats.installed("example-robot-data", path, "chhabra-robots"), **given)


def arm(side: str, shoulder: pf.Pose) -> tuple[list[pf.Body], list[pf.Joint]]:
    """Bodies and joints of a Panda on the hull with closed fingers; their names end in the side."""
    m, joints = robot("panda_description/urdf/panda.urdf"), []
    for j in m.joints:
        j = pf.locked(j) if "finger" in j.name else j
        parent, place = (f"{j.parent} {side}", j.placement) if j.parent != "world" else ("hull", shoulder)
        ends = {"parent": parent, "child": f"{j.child} {side}", "placement": place}
        joints.append(replace(j, name=f"{j.name} {side}", damping=ca.SX(0), **ends))
    return [replace(b, name=f"{b.name} {side}") for b in m.bodies], joints


def spacecraft() -> pf.Mechanism:
    squares = SIDES**2
    bodies = [pf.body("hull", HULL, inertia=tuple(HULL / 12 * (squares.sum() - squares)))]
    joints = [pf.joint("flight", "free", "world", "hull")]
    across = DISK * (3 * RADIUS**2 + WIDTH**2) / 12
    for name, axis in zip(("wheel x", "wheel y", "wheel z"), np.eye(3), strict=True):
        bodies.append(pf.body(name, DISK, inertia=tuple(across + (SPIN - across) * axis)))
        joints.append(pf.joint(name, "revolute", "hull", name, axis=tuple(axis), placement=tuple(-0.25 * axis)))
    for side, y in SHOULDERS.items():
        more = arm(side, pf.pose((SIDES[0] / 2, y, 0), rpy=(0, np.pi / 2, 0)))
        bodies, joints = bodies + more[0], joints + more[1]
    motors = [pf.actuator(j.name, j.name) for j in joints[1:] if j.nv]
    return pf.mechanism("spacecraft", bodies, joints, actuators=motors, gravity=(0, 0, 0))


def spacecraft_at(m: pf.Mechanism) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """q and v with the momentum `MOMENTUM` and motors at rest, and the mass centre [m]."""
    q = m.neutral()
    q[-14:] = READY + READY
    unit = np.array([pf.momentum(m, q, x) for x in np.eye(m.nv)[:6]]).T
    centre = np.array([unit[1, 5], unit[2, 3], unit[0, 4]]) / unit[0, 0]
    return q, np.r_[np.linalg.solve(unit, MOMENTUM), np.zeros(17)], centre


def spacecraft_law(m: pf.Mechanism) -> control.Control:
    q, v, centre = spacecraft_at(m)
    drift = v[:3] + np.cross(v[3:6], centre)

    def turn(t: ca.SX) -> ca.SX:
        return so3.exp(ca.DM(v[3:6]) * ca.sin(SWING * t) / SWING)

    outputs = [control.output("hull", "attitude", lambda t: turn(t) @ so3.exp(ca.DM(TURNED)), **gains(POLES["hull"]))]
    for side in SHOULDERS:
        hand = f"panda_hand {side}"
        at = pf.forward_kinematics(m, q)[hand]

        def pose(t: ca.SX, side: str = side, at: pf.Pose = at) -> ca.SX:
            R, p = se3.compose(ca.DM(at.rotation), at.position + at.rotation @ TIP - centre, *se3.exp(ca.DM(MISSED[side])))
            wave = ca.DM(WAVE[side]) * (1 - ca.cos(0.5 * t) if side == "left" else ca.sin(0.5 * t))
            return se3.homogeneous(turn(t) @ R, ca.DM(centre) + ca.DM(drift) * t + turn(t) @ p + wave)

        outputs.append(control.output(hand, "pose", pose, at=TIP, **gains(POLES["hand"])))
    return control.concurrent(outputs, **SPARE)


def gains(pole: float) -> dict[str, float]:
    """Gains that give a critically damped error with this double pole [1/s]."""
    return {"stiffness": pole**2, "damping": 2 * pole}


# -- Tiago ---------------------------------------------------------------------------------------------------------------

WHEEL, HALF_TRACK, AHEAD = 0.0985, 0.2022, 0.15
"""Radius of a wheel and half the track, from the file; distance of the controlled point in front of the axle [m]."""
OFF = (-AHEAD, 0.05, 0.1)
"""Pose of the base at the start [m, m, rad]."""
BENT = {1: 1.2, 2: 0.4, 3: -0.6, 4: 1.3, 5: 0.4, 6: -0.5, 7: 0.7}
THREE_JOINTS, ALL_JOINTS = (1, 2, 4), tuple(BENT)
"""Joints of the arm that move, in the two machines; the others are locked at zero."""
SPEED, ARC = 0.3, 2.0
"""Speed [m/s] and radius [m] of the reference arc."""
DRIVE = np.array([2.0, 2, 3, 3, 3])
"""Double poles of Tiago's errors [1/s]."""
CALM = {"rest_damping": 2.0, "rest_weight": np.array([WHEEL**2] * 2 + [1.0] * 7)}
STARTS, SPREAD = 4096, 0.4
"""Number of random starts, and how far each coordinate is from the start at most [m, rad]."""


def tiago(free: tuple[int, ...]) -> pf.Mechanism:
    """Tiago on two rolling wheels; of the other joints only the given ones of the arm move."""
    m = robot("tiago_description/robots/tiago_no_hand.urdf", base="free")
    moving = {"wheel_left_joint", "wheel_right_joint", *(f"arm_{i}_joint" for i in free)}
    joints = [replace(j, damping=ca.SX(0)) if j.name in moving else pf.locked(j) for j in m.joints if j.nv != 6]
    joints = [pf.joint("base", "planar", "world", "base_footprint"), *joints]
    wheels = [pf.rolling.wheel(n, f"wheel_{n}_link", WHEEL) for n in ("left", "right")]
    return m.with_(joints=joints, actuators=[a for a in m.actuators if a.joint in moving], constraints=wheels)


def tiago_at(m: pf.Mechanism, place: tuple[float, ...]) -> tuple[np.ndarray, np.ndarray]:
    """q and v of Tiago, rolling straight ahead; place: x, y and heading of the base."""
    q, v = m.neutral(), np.zeros(m.nv)
    q[:3], v[:5] = place, (SPEED, 0, 0, SPEED / WHEEL, SPEED / WHEEL)
    for i, angle in BENT.items():
        if m.joint(f"arm_{i}_joint").nv:
            q[m.q_slices[f"arm_{i}_joint"]] = angle
    return q, v


def arc(t: ca.SX) -> tuple[ca.SX, ca.SX]:
    """Position of the controlled point on the arc [m], and the heading of the path [rad]."""
    a = SPEED / ARC * t
    return ARC * ca.vertcat(ca.sin(a), 1 - ca.cos(a)), a


def tiago_law(m: pf.Mechanism, **rest) -> control.Control:
    hand = pf.forward_kinematics(m, tiago_at(m, (-AHEAD, 0, 0))[0])["arm_tool_link"].position

    def reach(t: ca.SX) -> ca.SX:
        x, a = arc(t)
        out = ca.DM(hand) + 0.05 * ca.vertcat(ca.sin(0.5 * t), -1, ca.cos(0.5 * t))
        return ca.vertcat(x, 0) + so3.exp(ca.vertcat(0, 0, a)) @ out

    ahead = control.output("base_footprint", "position", lambda t: arc(t)[0], axes=(0, 1), at=(AHEAD, 0, 0), **gains(DRIVE[0]))
    return control.concurrent([ahead, control.output("arm_tool_link", "position", reach, **gains(DRIVE[2]))], **rest)


# -- runs ----------------------------------------------------------------------------------------------------------------


def run() -> dict[str, xr.Dataset]:
    m, found = spacecraft(), {}
    q, v, _ = spacecraft_at(m)
    law = spacecraft_law(m)
    for name, system in (("spacecraft", m), ("spacecraft, reduced", pf.reduce(m))):
        found[name] = pf.run(system, q, v, duration=FLIGHT, step=TICK, every=1, control=law, record=RECORDED)
    m, all_motors = tiago(ALL_JOINTS), tiago_law(tiago(ALL_JOINTS), **CALM)
    found["nine motors"] = pf.run(m, *tiago_at(m, OFF), duration=10, step=2e-3, every=1, control=all_motors, record=RECORDED)
    m, law = tiago(THREE_JOINTS), tiago_law(tiago(THREE_JOINTS))
    q, v = tiago_at(m, OFF)
    # A batch of two, so that this run shares a kernel with the random starts.
    pair = pf.run(m, np.array([q, q]), v, duration=10, step=2e-3, every=1, control=law, record=RECORDED)
    found["five motors"] = pair.isel(run=0)
    starts = q + np.random.default_rng(5).uniform(-SPREAD, SPREAD, (STARTS, len(q)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pf.RunWarning)
        found["random starts"] = pf.run(m, starts, v, duration=2, step=1e-2, every=20, control=law, record=RECORDED)
    return found


def designed(r: xr.Dataset, poles: np.ndarray) -> np.ndarray:
    """(..., times, k) critically damped errors that start from the recorded ones."""
    e, e_dot, t = r.output_error.values[..., :1, :], -r.velocity_error.values[..., :1, :], r.time.values[:, None]
    return np.exp(-poles * t) * (e + (e_dot + poles * e) * t)


def slope(r: xr.Dataset) -> np.ndarray:
    """Rate of V_L by differences of fourth order, without two times at either end."""
    V, t = r.lyapunov.values, r.time.values
    return (V[:-4] - 8 * V[1:-3] + 8 * V[3:-1] - V[4:]) / (12 * (t[1] - t[0]))


FLOWN = np.array([POLES["hull"]] * 3 + [POLES["hand"]] * 12)
STRAIGHT = slice(9)
"""Errors that go straight to zero: all but those of the right hand."""


GROWN = 1e3
"""Speed [rad/s, m/s] above which a run has diverged between two steps."""


def claims(result: dict[str, xr.Dataset]) -> Iterator[Claim]:
    m, r, other, random_starts = spacecraft(), result["spacecraft"], result["spacecraft, reduced"], result["random starts"]
    for name, poles in (("spacecraft", FLOWN), ("five motors", DRIVE), ("nine motors", DRIVE)):
        x = result[name]
        yield Claim(f"{name}: ended early", float(x.status), 0)
        off = np.abs(slope(x) - x.lyapunov_rate.values[2:-2]).max()
        yield Claim(f"{name}: rate of V_L plus <K_D v_e, v_e>", float(off), 0, 1e-8, "[chhabra14 (5.4.35)]")
        off = np.abs((x.output_error.values - designed(x, poles))[:, STRAIGHT]).max()
        yield Claim(f"{name}: errors minus critically damped ones [m, rad]", float(off), 0, 1e-10, "[chhabra14 5.4]")
        yield Claim(
            f"{name}: largest error at the start [m, rad]", float(np.abs(x.output_error[0]).max()), 0.04, 0, "", "at least"
        )
    p = pf.momentum(m, r.q.values, r.v.values) - MOMENTUM
    yield Claim("spacecraft: drift of the momentum [N s, N m s]", float(np.abs(p).max()), 0, 1e-10, "[chhabra14 3.2]")
    p = pf.momentum(m, other.q.values, other.v.values) - MOMENTUM
    yield Claim("spacecraft, reduced: drift of the momentum [N s, N m s]", float(np.abs(p).max()), 0, 1e-13, "[chhabra14 3.2]")
    apart = np.abs(other.q.values - r.q.values).max()
    yield Claim("spacecraft: reduced minus full machine [m, rad]", float(apart), 0, 5e-9, "[chhabra14 3.4]")
    yield Claim("spacecraft: largest speed of an arm joint [rad/s]", float(np.abs(r.v[:, 9:]).max()), 0.5, 0, "", "at most")
    yield Claim("spacecraft: largest speed of a wheel [rad/s]", float(np.abs(r.v[:, 6:9]).max()), 50, 0, "", "at least")
    at = pf.forward_kinematics(tiago(THREE_JOINTS), tiago_at(tiago(THREE_JOINTS), (0, 0, 0))[0])
    off = [
        np.abs(at[f"wheel_{n}_link"].position - (0, side * HALF_TRACK, WHEEL)).max() for n, side in (("left", 1), ("right", -1))
    ]
    yield Claim("wheels: error of their centres above the floor [m]", float(max(off)), 0, 1e-12, "the file")
    for name in ("five motors", "nine motors"):
        x, y, w, right, left = result[name].v.values[:, :5].T
        slip = np.abs([y, x - HALF_TRACK * w - WHEEL * left, x + HALF_TRACK * w - WHEEL * right]).max()
        yield Claim(f"{name}: slip of the wheels [m/s]", float(slip), 0, 1e-12, "radius and track of the file")
    fastest = float(np.abs(result["nine motors"].v[:, 5:]).max())
    yield Claim("nine motors: largest speed of an arm joint [rad/s]", fastest, 0.2, 0, "", "at most")
    stopped, causes = ~np.isnan(random_starts.stopped.values), np.array(pf.results.causes(random_starts))
    yield Claim("share of random starts that finish", 1 - float(stopped.mean()), 0.95, 0, "of 4096", "at least")
    # Runs that diverge between two steps, before the law stops them, name the singularity that they were near.
    other = np.array(["because of arm_4_joint" not in x for x in causes[stopped]])
    yield Claim("stops for a reason other than the elbow", float(other.sum()), 0, 0, "of 4096 starts")
    ended = np.array([x.startswith("the outputs are not within") for x in causes])
    yield Claim("share of the stops that are due to the law", float(ended.sum() / stopped.sum()), 0.9, 0, "", "at least")
    elbow = np.abs(random_starts.end_state.values[:, 7])
    # A run whose speeds diverge within its last step may end at any configuration.
    slower = np.abs(random_starts.end_state.values[:, 8:]).max(axis=1) < GROWN
    yield Claim("stops by the law that end faster than 1000 rad/s", float((ended & ~slower).sum()), 2, 0, "", "at most")
    yield Claim(
        "other stops by the law: elbow angle at the end [rad]",
        float(elbow[ended & slower].max()),
        0.25,
        0,
        "geometry",
        "at most",
    )
    yield Claim("runs that finish: elbow angle at the end [rad]", float(elbow[~stopped].min()), 0.7, 0, "geometry", "at least")
    ran = random_starts.isel(run=~stopped)
    off = np.abs(ran.output_error.values - designed(ran, DRIVE)).max()
    yield Claim(
        "runs that finish: errors minus critically damped ones [m]", float(off), 0, 1e-4, "[chhabra14 5.4], at a long step"
    )


def figures(result: dict[str, xr.Dataset]) -> dict[str, Any]:
    return {"spacecraft": _spacecraft(result["spacecraft"]), "tiago": _tiago(result)}


def _spacecraft(r: xr.Dataset) -> Any:
    figure = blank_figure(11, 6.6)
    (error, fall), (carried, rates) = figure.subplots(2, 2)
    t, dots = r.time.values, slice(None, None, 160)
    parts = {"hull [rad]": (0, 3), "left hand [m]": (3, 6), "left hand [rad]": (6, 9), "right hand [m]": (9, 12)}
    for i, (name, (a, b)) in enumerate(parts.items()):
        error.semilogy(t, np.linalg.norm(r.output_error[:, a:b], axis=1), color=f"C{i}", label=name)
        if b <= STRAIGHT.stop:
            straight = np.linalg.norm(designed(r, FLOWN)[dots, a:b], axis=1)
            error.semilogy(t[dots], straight, "o", color=f"C{i}", markersize=3)
    error.set(xlabel="time [s]", ylabel="norm of the error", title="errors; dots: critically damped")
    fall.semilogy(t, r.lyapunov, label="$V_L$ [(m or rad)$^2$/s$^2$]")
    fall.semilogy(t[20:], -r.lyapunov_rate[20:], label="$<K_D v_e, v_e>$ [(m or rad)$^2$/s$^3$]")
    fall.semilogy(t[2:-2][160:][dots], -slope(r)[160:][dots], "C1o", markersize=3)
    fall.set(xlabel="time [s]", title="$V_L$ and its decrease; dots: by differences")
    q, p = r.q.values, MOMENTUM
    # Momentum about the mass centre, along the hull's axes.
    spin = p[3:] - np.cross(spacecraft_at(spacecraft())[2], p[:3])
    total = np.stack([R.T @ spin for R in pf.forward_kinematics(spacecraft(), q)["hull"].rotation])
    for i, axis in enumerate("xyz"):
        carried.plot(t, SPIN * r.v[:, 6 + i], color=f"C{i}", label=f"wheel {axis}")
        carried.plot(t, total[:, i], ":", color=f"C{i}")
    carried.set(xlabel="time [s]", ylabel="momentum [N m s]", title="share of the wheels; dotted: total")
    rates.plot(t, np.abs(r.v[:, 9:16]).max(axis=1), color="C1", label="left arm's fastest joint [rad/s]")
    rates.plot(t, np.abs(r.v[:, 16:]).max(axis=1), color="C3", label="right arm's [rad/s]")
    rates.plot(t, 50 * r.sigma_min, "k--", label="50 $\\sigma_{min}$ [1]")
    rates.set(xlabel="time [s]", ylim=(0, 0.38), title="the arms stay slow and bent")
    for ax in (error, fall, carried, rates):
        ax.legend(loc="best", fontsize="small")
    return figure


def _tiago(result: dict[str, xr.Dataset]) -> Any:
    figure = blank_figure(11, 6.6)
    (path, error), (turn, lost) = figure.subplots(2, 2)
    few, random_starts = result["five motors"], result["random starts"]
    t = few.time.values
    for name, x, look in (("5 motors", few, "-"), ("9 motors", result["nine motors"], "--")):
        at = pf.forward_kinematics(tiago(THREE_JOINTS if look == "-" else ALL_JOINTS), x.q.values)
        base, hand = at["base_footprint"], at["arm_tool_link"].position
        ahead = base.position + base.rotation @ [AHEAD, 0, 0]
        for i, (p, what) in enumerate(((ahead, "point ahead"), (hand, "hand"))):
            path.plot(p[:, 0], p[:, 1], look, color=f"C{i}", label=f"{what}, {name}")
        turn.plot(t, np.abs(x.v[:, 5:]).max(axis=1), look, color="C2", label=f"arm's fastest joint [rad/s], {name}")
        turn.plot(t, x.sigma_min, look, color="C3", label=f"$\\sigma_{{min}}$ [1], {name}")
    for i, name in enumerate(("ahead x", "ahead y", "hand x", "hand y", "hand z")):
        error.semilogy(t, np.maximum(np.abs(few.output_error[:, i]), 1e-13), color=f"C{i}", label=name)
        error.semilogy(t[::250], np.maximum(np.abs(designed(few, DRIVE)[::250, i]), 1e-13), "o", color=f"C{i}", markersize=3)
    path.set(xlabel="x [m]", ylabel="y [m]", aspect="equal", title="Tiago from above, same controlled point with both")
    error.set(xlabel="time [s]", ylabel="error [m]", title="errors, 5 motors; dots: critically damped")
    turn.set(xlabel="time [s]", ylim=(0, None), title="the arm")
    stopped, q = ~np.isnan(random_starts.stopped.values), random_starts.q.values[:, 0]
    lost.plot(q[~stopped, 0], q[~stopped, 7], ".", markersize=2, label="goes on")
    lost.plot(q[stopped, 0], q[stopped, 7], "x", markersize=4, label="starts whose arm stretches are stopped")
    lost.set(xlabel="x at the start [m]", ylabel="elbow at the start [rad]", title=f"{STARTS} starts", ylim=(0.85, 2.1))
    for ax in (path, error, turn, lost):
        ax.legend(loc="best", fontsize="small")
    return figure
