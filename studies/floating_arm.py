"""A satellite with an arm on a floating base: hand motion, reaction null space, holonomy, momentum balance, capture.

The hand follows a line while the base floats; arm motions leave the base at rest; loops of the arm change the attitude; a wheel
and a thruster enter the balance of momentum; and the hand captures a tumbling object, which outputs then control.

The machine is planar; its numbers are ours, of the size of a small servicing satellite. Ideal drives prescribe the joint speeds
s as a function of q and t, so that only the kinematics is tested: Umetani and Yoshida's J_g = J_s - J_b A and J_b K11^-1 mu_b,
without feedback.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import casadi as ca
import numpy as np
import xarray as xr

import pfaffian as pf
from pfaffian import control
from pfaffian.maths import linear
from pfaffian.study import Claim, blank_figure

LENGTHS = (0.7, 0.6, 0.5, 0.3)
MASSES = (4.0, 3.0, 2.0, 1.0)
BENT = (0.2, 1.0, 0.6, 0.4)
HULL, HULL_INERTIA, WHEEL_INERTIA = 30.0, 2.0, 0.05
SHOULDER, NOZZLE = 0.35, (-0.3, 0.2, 0.0)
HAND = (LENGTHS[-1], 0.0, 0.0)
DURATION, STEP = 4.0, 2e-3
LINE = np.array([0.5, -0.5])
"""Displacement of the hand in DURATION, from rest to rest [m]."""
MOMENTUM = np.array([0.8, -0.5, 0.4])
"""Linear and angular momentum [N s, N s, N m s]."""
THRUST = 0.4
RADII = (0.2, 0.4, 0.6, 0.8)
"""Radii of the loops of the first two joints [rad]."""
TURN = 0.3
"""Change of the hull's heading after the capture [rad]."""
OBJECT, OBJECT_INERTIA, TUMBLING = 8.0, 0.5, np.array([-0.12, 0.05, 3.0])
"""Mass [kg] and inertia [kg m^2] of the object; its velocity along its axes and angular velocity [m/s, rad/s]."""

ASSUMED = [pf.Parameter(f"assumed {n}", 0.0, unit) for n, unit in (("px", "N s"), ("py", "N s"), ("L", "N m s"))]
FLOATS = pf.Parameter("floats", 1.0)
"""1: the drives use the generalised Jacobian, 0: that of an arm on the ground."""
POSE, ATTITUDE = pf.Parameter("keep pose", 0.0), pf.Parameter("keep attitude", 0.0)
"""1: joint velocities are projected onto those that leave the hull's pose, or its attitude, constant."""

LED = ("generalised Jacobian", "with momentum", "momentum forgotten", "as on the ground")
STYLES = ("-", "--", "-.", ":")
QUIET = ("pose kept", "attitude kept", "plain")


def mechanism(constraints: tuple = (), damping: float = 0.0, **more) -> pf.Mechanism:
    """Hull with a reaction wheel, a thruster, and an arm of four hinges, in a plane."""
    bodies = [pf.body("hull", HULL, inertia=HULL_INERTIA), pf.body("wheel", 1.0, inertia=WHEEL_INERTIA)]
    joints = [pf.joint("base", "planar", "world", "hull"), pf.joint("spin", "revolute", "hull", "wheel")]
    before, at = "hull", SHOULDER
    for i, (l, mass) in enumerate(zip(LENGTHS, MASSES, strict=True)):
        bodies.append(pf.body(f"link{i + 1}", mass, com=(l / 2, 0, 0), inertia=mass * l**2 / 12))
        hinge = {"placement": (at, 0, 0), "damping": damping}
        joints.append(pf.joint(f"j{i + 1}", "revolute", before, f"link{i + 1}", **hinge))
        before, at = f"link{i + 1}", l
    drives = [pf.actuator("wheel", "spin"), pf.forces.thruster("jet", "hull", axis=(1, 0, 0), point=NOZZLE)]
    given = {"gravity": (0, 0, 0), "actuators": drives, "constraints": list(constraints)} | more
    return pf.mechanism("satellite", bodies, joints, **given)


# -- velocities of the drives ------------------------------------------------------------------------------------------


def line(k: pf.Kinematics) -> ca.SX:
    """Residual eta: the wheel is at rest and the hand moves along the line with the smallest arm velocities."""
    base = pf.reduction.floating_base(k)
    at, frame = slice(0, 2), "LOCAL_WORLD_ALIGNED"
    fixed = k.jacobian("link4", frame, HAND)[at, base.s]
    J = (fixed + FLOATS.symbol * (base.jacobian("link4", frame, HAND)[at, :] - fixed))[:, 1:]
    wish = ca.DM(LINE) * (1 - ca.cos(2 * np.pi * k.t / DURATION)) / DURATION
    wish -= base.momentum_twist("link4", frame, HAND, momentum=ASSUMED)[at, 0]
    s = k.v[base.s, 0]
    return ca.vertcat(s[0], s[1:] - J.T @ linear.solve_definite(J @ J.T, wish))


def wished(t: ca.SX) -> ca.SX:
    """Velocities of wheel and arm before any projection [rad/s]."""
    return ca.vertcat(0, 0.5, -0.4, 0.7, 0.6) * ca.sin(np.pi * t / DURATION)


def quietly(k: pf.Kinematics) -> ca.SX:
    base, wish = pf.reduction.floating_base(k), wished(k.t)
    P = [base.reaction_free(keep) @ wish - wish for keep in ("pose", "attitude")]
    return k.v[base.s, 0] - wish - POSE.symbol * P[0] - ATTITUDE.symbol * P[1]


def start_at(m: pf.Mechanism) -> np.ndarray:
    return np.concatenate([np.zeros(4), BENT])


def moving_as_one(m: pf.Mechanism, q: np.ndarray, mu: np.ndarray) -> np.ndarray:
    """v with this momentum and all joints at rest."""
    tau = np.linalg.solve(pf.mass_matrix(m, q)[:3, :3], mu)
    return np.concatenate([tau, np.zeros(m.nv - 3)])


def hand(k: pf.Kinematics) -> ca.SX:
    return k.position("link4", HAND)[:2, 0]


def follow() -> xr.Dataset:
    m = mechanism((pf.nonholonomic("line", line),), parameters=[*ASSUMED, FLOATS])
    q, none = start_at(m), np.zeros(3)
    v = [moving_as_one(m, q, mu) for mu in (none, MOMENTUM, MOMENTUM, none)]
    assumed = np.array([none, MOMENTUM, none, none])
    numbers = {p.name: assumed[:, i] for i, p in enumerate(ASSUMED)} | {"floats": np.array([1.0, 1, 1, 0])}
    # The drives start with impulses, which do not change the momentum.
    v = pf.impact(m, np.tile(q, (4, 1)), np.array(v), parameters=numbers).v
    how = {"duration": DURATION, "step": STEP, "every": 20, "parameters": numbers}
    r = pf.run(m, np.tile(q, (4, 1)), v, outputs={"hand": hand}, **how)
    t = r["time"].values
    wish = r["hand"].values[0, 0] + np.outer(t / DURATION - np.sin(2 * np.pi * t / DURATION) / (2 * np.pi), LINE)
    mu = [pf.reduction.momentum_map(m, r["q"].values[i], r["v"].values[i]) for i in range(4)]
    return xr.Dataset(
        {
            "hand": (("led", "time", "xy"), r["hand"].values),
            "miss": (("led", "time"), np.linalg.norm(r["hand"].values - wish, axis=2)),
            "hull": (("led", "time", "pose"), r["q"].values[:, :, :3]),
            "drift": ("led", np.abs(np.array(mu) - np.array([none, MOMENTUM, MOMENTUM, none])[:, None]).max(axis=(1, 2))),
        },
        coords={"led": list(LED), "time": t, "pose": ["x", "y", "angle"]},
    )


def quiet() -> xr.Dataset:
    m = mechanism((pf.nonholonomic("quietly", quietly),), parameters=[POSE, ATTITUDE])
    numbers = {"keep pose": np.array([1.0, 0, 0]), "keep attitude": np.array([0.0, 1, 0])}
    q = np.tile(start_at(m), (3, 1))
    r = pf.run(m, q, None, duration=DURATION, step=STEP, every=20, parameters=numbers, outputs={"hand": hand})
    return xr.Dataset(
        {"quiet_hull": (("kept", "time", "pose"), r["q"].values[:, :, :3]),
         "quiet_joints": (("kept", "time", "joint"), r["q"].values[:, :, 3:])},
        coords={"kept": list(QUIET), "joint": list(m.q_names[3:])},
    )  # fmt: skip


def balance() -> xr.Dataset:
    """Run in which the arm swings, the jet fires, and the wheel alone keeps the attitude constant."""
    swing = pf.nonholonomic("swing", lambda k: k.v[4:] - wished(k.t)[1:, 0])
    still = pf.nonholonomic("still", lambda k: k.joint_rate("base")[2])
    m = mechanism((swing, pf.servo(still, ["wheel"])))
    r = pf.run(m, start_at(m), None, u={"jet": THRUST}, duration=DURATION, step=STEP, every=20)
    return xr.Dataset(
        {"balance": (("time", "entry"), pf.reduction.momentum_map(m, r["q"].values, r["v"].values)),
         "place": (("time", "pose"), r["q"].values[:, :3]),
         "wheel": ("time", WHEEL_INERTIA * r["v"].values[:, 3])},
        coords={"entry": ["px", "py", "L"]},
    )  # fmt: skip


# -- attitude by loops of the arm ------------------------------------------------------------------------------------------


def loops() -> xr.Dataset:
    m = mechanism()
    turned, flux = [], []
    nodes, weights = np.polynomial.legendre.leggauss(12)
    angles = 2 * np.pi * np.arange(24) / 24
    for r in RADII:

        def loop(x: ca.SX, r: float = r) -> ca.SX:
            a = 2 * np.pi * x
            return ca.vertcat(0, BENT[0] + r * ca.cos(a), BENT[1] + r * ca.sin(a), *BENT[2:])

        g = pf.reduction.holonomy(m, loop, steps=80)
        turned.append(np.unwrap(np.arctan2(g[:, 1, 0], g[:, 0, 0])))
        # By Stokes's theorem; for planar rotations the bracket vanishes.
        rho = r * (nodes + 1) / 2
        q = np.tile(start_at(m), (len(rho) * len(angles), 1))
        q[:, 4] += np.outer(rho, np.cos(angles)).ravel()
        q[:, 5] += np.outer(rho, np.sin(angles)).ravel()
        B = pf.reduction.connection_curvature(m, q)[:, 1, 2, 2].reshape(len(rho), len(angles))
        flux.append(-(weights * r / 2 * rho) @ B.mean(axis=1) * 2 * np.pi)
    return xr.Dataset(
        {"turned": (("radius", "x"), np.array(turned)), "flux": ("radius", np.array(flux))},
        coords={"radius": list(RADII), "x": np.linspace(0, 1, 81)},
    )


# -- capture ---------------------------------------------------------------------------------------------------------------


def capture() -> xr.Dataset:
    """The hand captures a tumbling object; then dampers in the joints slow the relative motion until all turn as one body."""
    alone = mechanism(damping=8.0)
    bodies = [*alone.bodies, pf.body("object", OBJECT, inertia=OBJECT_INERTIA)]
    grasp = pf.pose(HAND), pf.pose((-0.2, 0.1, 0))
    weld = pf.closure("grasp", "fixed", "link4", "object", placement_a=grasp[0], placement_b=grasp[1])
    m = alone.with_(bodies=bodies, joints=[*alone.joints, pf.joint("tumble", "planar", "world", "object")], constraints=[weld])
    q = pf.assemble(m, np.concatenate([start_at(m), [1, 0.5, 0.7]]), hold=["base", "spin", *(f"j{i}" for i in range(1, 5))]).q
    v = np.concatenate([np.zeros(8), TUMBLING])
    hit = pf.impact(m, q, v)
    rigid = pf.joint("held", "fixed", "link4", "object", placement=grasp[0] @ grasp[1].inverse())
    one = alone.with_(bodies=bodies, joints=[*alone.joints, rigid])
    r = pf.run(pf.reduce(one), q[:8], hit.v[:8], u={"jet": 0.0}, duration=6.0, step=STEP, every=30)
    rates = r["v"].values
    wheel, jets = hold_on(one, q[:8], hit.v[:8])
    momentum = np.vstack([
        pf.momentum(m, np.tile(q, (2, 1)), np.vstack([v, hit.v])), pf.momentum(one, r["q"].values, rates)
    ])  # fmt: skip
    return xr.Dataset(
        {
            "captured": (("moment", "entry"), momentum[:, [0, 1, 5]]),
            "rates": (("later", "body"), np.stack([rates[:, 2], rates[:, 2] + rates[:, 4:].sum(axis=1)], axis=1)),
            "lost": ((), float(hit.loss)),
            "energies": (("when",), [pf.energy(m, q, x).kinetic for x in (v, hit.v)]),
        }
        | wheel
        | jets,
        coords={"later": r["time"].values, "body": ["hull", "object"]},
    )


def hold_on(one: pf.Mechanism, q: np.ndarray, v: np.ndarray) -> tuple[dict, dict]:
    """Two runs after the capture. In the first, wheel and hinges turn the hull to a new heading while the object's pose
    relative to the hull is kept; in the second, two jets also keep the hull's position. Remaining motion of the hinges is
    damped, that of the wheel is not."""
    stiff, how = {"stiffness": 4, "damping": 4}, {"duration": 6.0, "step": STEP, "every": 30}
    poses = pf.forward_kinematics(one, q)
    hull, there = (pf.pose(poses[n].position, rotation=poses[n].rotation) for n in ("hull", "object"))
    grip = control.output("object", "planar pose", in_plane(hull.inverse() @ there), seen_from="hull", **stiff)

    def law(what: control.Output, motors: int) -> control.Control:
        return control.concurrent([what, grip], rest_damping=2.0, rest_weight=(1e-8, *[1] * (motors - 1)))

    hinges = [pf.actuator(f"m{i}", f"j{i}") for i in range(1, 5)]
    steady = one.with_(actuators=[one.actuators[0], *hinges])
    heading = control.output("hull", "heading", in_plane(hull @ pf.pose(rpy=(0, 0, TURN)))[:2, :2], **stiff)
    r = pf.run(pf.reduce(steady), q, v, control=law(heading, 5), **how)
    mu = pf.momentum(steady, r["q"].values, r["v"].values)[:, [0, 1, 5]]
    x, y, _ = pf.mass_centre(steady, r["q"].values).T
    by_wheel = {
        "held_error": ("later", np.linalg.norm(r["output_error"].values, axis=1)),
        "held_heading": (("later", "rate"), np.stack([r[n].values[:, 0] for n in ("output_error", "velocity_error")], axis=1)),
        "held_momentum": (("later", "entry"), mu),
        "held_spin": ("later", mu[:, 2] - x * mu[:, 1] + y * mu[:, 0]),
        "held_wheel": ("later", WHEEL_INERTIA * (r["v"].values[:, 2] + r["v"].values[:, 3])),
    }
    jets = [pf.forces.thruster(f"jet {'xy'[i]}", "hull", axis=tuple(np.eye(3)[i])) for i in (0, 1)]
    driven = steady.with_(actuators=[*steady.actuators, *jets])
    r = pf.run(driven, q, v, control=law(control.output("hull", "planar pose", in_plane(hull), **stiff), 7), **how)
    by_jets = {
        "docked_error": ("later", np.linalg.norm(r["output_error"].values, axis=1)),
        "docked_momentum": (("later", "entry"), pf.momentum(driven, r["q"].values, r["v"].values)[:, [0, 1, 5]]),
    }
    return by_wheel, by_jets


def in_plane(x: pf.Pose) -> np.ndarray:
    """(3, 3) homogeneous matrix of the pose in the x y plane."""
    R, p = np.array(ca.DM(x.R)), np.array(ca.DM(x.p))
    return np.block([[R[:2, :2], p[:2]], [np.zeros((1, 2)), np.ones((1, 1))]])


def run() -> xr.Dataset:
    return xr.merge([follow(), quiet(), balance(), loops(), capture()])


def figures(result: xr.Dataset) -> dict[str, Any]:
    hand = blank_figure(9, 6.6)
    (path, miss), (turns, rest) = hand.subplots(2, 2)
    t = result["time"]
    for led, style in zip(LED, STYLES, strict=True):
        one = result.sel(led=led)
        path.plot(one["hand"][:, 0], one["hand"][:, 1], style, label=led)
        miss.semilogy(t[1:], one["miss"][1:], style, label=led)
        turns.plot(t, np.rad2deg(one["hull"].sel(pose="angle")), style, label=led)
    path.set(xlabel="x [m]", ylabel="y [m]", title="hand", aspect="equal")
    path.legend(fontsize=7)
    miss.set(xlabel="t [s]", ylabel="distance of the hand from its line [m]", title="drives without feedback")
    turns.set(xlabel="t [s]", ylabel="hull [deg]", title="the base floats")
    for name in QUIET:
        turn = np.abs(result["quiet_hull"].sel(kept=name, pose="angle"))
        rest.semilogy(t[1:], np.rad2deg(turn[1:]) + 1e-16, label=name)
    rest.set(xlabel="t [s]", ylabel="rotation of the hull [deg]", title="reaction null space")
    rest.legend(fontsize=7)

    momentum = blank_figure(9, 6.6)
    (jet, loop), (meet, after) = momentum.subplots(2, 2)
    for entry, unit in (("px", "N s"), ("py", "N s"), ("L", "N m s")):
        jet.plot(t, result["balance"].sel(entry=entry), label=f"{entry} [{unit}]")
    jet.plot(t, result["wheel"], "--", label="wheel [N m s]")
    jet.set(xlabel="t [s]", ylabel="momentum", title="jet fires, wheel keeps the attitude")
    jet.legend(fontsize=7)
    for r in RADII:
        loop.plot(result["x"], np.rad2deg(result["turned"].sel(radius=r)), label=f"{r} rad")
    loop.plot(np.ones(len(RADII)), np.rad2deg(result["flux"]), "k_", markersize=14, label="curvature by area")
    loop.set(xlabel="part of the loop", ylabel="hull [deg]", title="holonomy of loops of two joints")
    loop.legend(fontsize=7)
    for i, entry in enumerate(("px", "py", "L")):
        meet.plot([0, 1], result["captured"][:2, i], "o-", label=entry)
    meet.plot([0, 1], result["energies"], "s--", label="kinetic energy [J]")
    meet.set(xticks=[0, 1], title="capture", ylabel="N s, N m s, J")
    meet.set_xticklabels(["before", "after"])
    meet.legend(fontsize=7)
    for body in ("hull", "object"):
        after.plot(result["later"], result["rates"].sel(body=body), label=body)
    after.set(xlabel="t after the capture [s]", ylabel="turn [rad/s]", title="joint dampers equalise the rates")
    after.legend(fontsize=7)
    docking = blank_figure(9, 3.4)
    error, share = docking.subplots(1, 2)
    later = result["later"]
    for name, label, style in (("held_error", "wheel and hinges", "-"), ("docked_error", "and jets", "--")):
        error.semilogy(later, np.maximum(result[name], 1e-6), style, label=label)
    error.set(xlabel="t after the capture [s]", ylabel="errors [m, rad]", title="hull and object controlled by outputs")
    error.legend(fontsize=7)
    share.plot(later, result["held_spin"], "k:", label="total, about the mass centre [N m s]")
    share.plot(later, result["held_wheel"], label="wheel [N m s]")
    for i, entry in enumerate(("px", "py")):
        share.plot(later, result["docked_momentum"][:, i], "--", label=f"{entry} with jets [N s]")
    share.set(xlabel="t after the capture [s]", ylabel="momentum", title="the wheel absorbs L, the jets p")
    share.legend(fontsize=7)
    return {"hand": hand, "momentum": momentum, "held": docking}


def claims(result: xr.Dataset) -> Iterator[Claim]:
    miss, hull = result["miss"].max("time"), result["hull"]
    for led in LED[:2]:
        yield Claim(f"{led}: distance of the hand from its line [m]", float(miss.sel(led=led)), 0, 1e-9)
    for led in LED[2:]:
        yield Claim(f"{led}: distance of the hand from its line [m]", float(miss.sel(led=led)), 0.02, 0, "", "at least")
    yield Claim("all motions along the line: change of momentum [N s, N m s]", float(result["drift"].max()), 0, 1e-10)
    away = np.hypot(*(hull.sel(led="with momentum") - hull.sel(led=LED[0])).values[-1, :2])
    yield Claim("displacement of the hull by its momentum [m]", float(away), 0.03, 0, "", "at least")
    moved = np.abs(result["quiet_hull"]).max("time")
    yield Claim("pose kept: motion of the hull [m, rad]", float(moved.sel(kept="pose kept").max()), 0, 1e-12)
    yield Claim("attitude kept: rotation of the hull [rad]", float(moved.sel(kept="attitude kept", pose="angle")), 0, 1e-10)
    yield Claim("attitude kept: motion of the hull [m]", float(moved.sel(kept="attitude kept").max()), 0.005, 0, "", "at least")
    yield Claim(
        "without projection: rotation of the hull [rad]", float(moved.sel(kept="plain", pose="angle")), 0.2, 0, "", "at least"
    )
    swept = np.abs(result["quiet_joints"].isel(time=-1, joint=slice(1, None)).sel(kept="pose kept") - np.array(BENT)).max()
    yield Claim("pose kept: largest rotation of a hinge [rad]", float(swept), 0.05, 0, "", "at least")
    t, at = result["time"].values, result["place"].values
    yield Claim("wheel: rotation of the hull [rad]", float(np.abs(at[:, 2]).max()), 0, 1e-9)
    p = result["balance"]
    yield Claim("jet: p_x minus thrust times time [N s]", float(np.abs(p[:, 0] - THRUST * t).max()), 0, 1e-9)
    yield Claim("jet: p_y [N s]", float(np.abs(p[:, 1]).max()), 0, 1e-9)
    lever = -THRUST * (at[:, 1] + NOZZLE[1])
    moment = np.sum((lever[:-2:2] + 4 * lever[1:-1:2] + lever[2::2]) * (t[2] - t[0]) / 6)
    yield Claim("jet: L minus the integral of the jet's moment [N m s]", float(p[-1, 2] - moment), 0, 1e-7)
    for r in RADII:
        one = result.sel(radius=r)
        apart = float(one["turned"][-1] - one["flux"])
        yield Claim(
            f"loop of {r} rad: rotation of the hull minus integral of the curvature [rad]",
            apart,
            0,
            1e-11,
            "[chhabra14 (3.2.24)]",
        )
    yield Claim("rotation of the hull by the largest loop [rad]", float(abs(result["turned"][-1, -1])), 0.05, 0, "", "at least")
    there = result["captured"].values
    yield Claim("capture: change of momentum [N s, N m s]", float(np.abs(there[1] - there[0]).max()), 0, 1e-12)
    yield Claim(
        "capture: change of momentum until all turn as one [N s, N m s]", float(np.abs(there - there[0]).max()), 0, 1e-9
    )
    before, after = result["energies"].values
    yield Claim("capture: energy lost minus the loss given by `impact` [J]", before - after - float(result["lost"]), 0, 1e-12)
    yield Claim("capture: energy lost [J]", before - after, 0.3, 0, "", "at least")
    yield Claim(
        "capture: final difference of the rates of hull and object [rad/s]",
        float(np.diff(result["rates"].values[-1])[0]),
        0,
        0.02,
    )
    later, (e, v_e) = result["later"].values, result["held_heading"].values.T
    designed = np.exp(-2 * later) * (e[0] + (2 * e[0] - v_e[0]) * later)
    yield Claim(
        "held: heading error minus the critically damped one [rad]",
        float(np.abs(e - designed).max()),
        0,
        1e-9,
        "[chhabra14 5.5]",
    )
    yield Claim("held: heading error at the start [rad]", float(e[0]), TURN, 1e-12)
    for name in ("held", "docked"):
        yield Claim(f"{name}: errors at the end [m, rad]", float(result[f"{name}_error"][-1]), 0, 2e-4)
    mu, spin, wheel = (result[f"held_{what}"].values for what in ("momentum", "spin", "wheel"))
    # About the origin, L also contains the deviation of the mass centre from its straight line, an error of the time steps.
    yield Claim("held: change of momentum since the capture [N s, N m s]", float(np.abs(mu - there[0]).max()), 0, 1e-11)
    central = np.column_stack([mu[:, :2], spin])
    yield Claim(
        "held: change of momentum about the mass centre [N s, N m s]", float(np.abs(central - central[0]).max()), 0, 1e-13
    )
    yield Claim(
        "held: final momentum of the wheel minus the total angular momentum [N m s]", float(wheel[-1] - spin[-1]), 0, 3e-3
    )
    yield Claim("held: final angular momentum [N m s]", float(spin[-1]), 0.5, 0, "", "at least")
    left = result["docked_momentum"].values
    yield Claim("docked: final linear momentum [N s]", float(np.abs(left[-1, :2]).max()), 0, 1e-3)
    yield Claim("docked: change of L by jets through the origin [N m s]", float(np.ptp(left[:, 2])), 0, 1e-3)
