"""A Stewart platform whose legs keep it on its path: servo constraints with prescribed force directions. [ider (14)-(19)]

There are six legs, each with a universal joint, a slide with a motor and a ball joint: 24 velocities, 18 rows, 6 degrees of
freedom. The path of the platform is a servo constraint, phi(q, t) = 0 on its position and rotation vector, and its control
forces act along the six slides. The base joints are on a circle of 0.6 m, the platform joints on one of 0.35 m, in pairs 20
degrees wide that face each other's gaps; platform 0.8 m up, 20 kg, each leg 2 + 1 kg; a path with two sines along and about
each of x and z. All dimensions, masses and gains are ours; no source has this run.

Claimed: position and velocity errors stay bounded over a long run. The leg forces are those of pf.inverse_dynamics with only
the slides actuated, and with light legs those of Newton's and Euler's equations of the platform, mapped by the inverse
transpose of the leg Jacobian (NumPy). The decoupling matrix G of [ider (17)] loses its rank when the platform is turned to 90
degrees about z, where all six legs cross a common line, and the run stops and names this cause. So does, in a batch of four,
only the run whose sixth direction equals the fifth.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import casadi as ca
import numpy as np
import xarray as xr

import pfaffian as pf
from pfaffian.maths import so3
from pfaffian.study import Claim, blank_figure

BASE, TOP, HEIGHT = 0.6, 0.35, 0.8
HALF = np.radians(10)
G = 9.81
MASS, INERTIA = 20.0, (0.8, 0.9, 1.5)
LOWER, UPPER = 2.0, 1.0
STIFFNESS, DAMPING = 400.0, 40.0
LONG, STEP = 30.0, 2e-3
SWING, TURN, W1, W2 = 0.06, 0.15, 2.0, 3.1
"""Amplitudes [m], [rad] and frequencies [rad/s] of the path."""
LEGS = tuple(f"leg {i}" for i in range(6))


def circle(radius: float, middle: float, height: float) -> np.ndarray:
    """(6, 3) positions of joints in pairs about middle, middle + 120 degrees, ... [m]."""
    pairs = [middle + 2 * np.pi * k / 3 + side for k in range(3) for side in (-HALF, HALF)]
    return np.array([(radius * np.cos(a), radius * np.sin(a), height) for a in pairs])


# Leg i connects base joint i and the adjacent platform joint: pairs of the platform are at the gaps of the base.
FEET = circle(BASE, 0.0, 0.0)
CORNERS = np.roll(circle(TOP, np.pi / 3, 0.0), 1, axis=0)


def mechanism(servo=None, parameters: Sequence[pf.Parameter] = (), mass: ca.SX | float = 1.0) -> pf.Mechanism:
    """The platform; servo: its servo constraint, or None.   mass: factor on the masses of the legs."""
    platform = pf.joint("platform", "free", "world", "platform", placement=pf.pose((0, 0, HEIGHT)))
    bodies, joints, balls, motors = [pf.body("platform", MASS, inertia=INERTIA)], [platform], [], []
    for i, (leg, foot, corner) in enumerate(zip(LEGS, FEET, CORNERS, strict=True)):
        top = corner + (0, 0, HEIGHT)
        z = (top - foot) / np.linalg.norm(top - foot)
        x = np.cross((0, 0, 1), z) / np.linalg.norm(np.cross((0, 0, 1), z))
        upright = pf.pose(tuple(foot), rotation=np.column_stack([x, np.cross(z, x), z]))
        length = float(np.linalg.norm(top - foot))
        a, b = mass * LOWER, mass * UPPER
        bodies += [
            pf.body(f"cross {i}", mass * 0.1, inertia=mass * 1e-4),
            pf.body(f"cylinder {i}", a, (0, 0, 0.25), (a * 0.5**2 / 12,) * 2 + (a * 4e-4,)),
            pf.body(f"rod {i}", b, (0, 0, -0.25), (b * 0.5**2 / 12,) * 2 + (b * 2e-4,)),
        ]
        joints += [
            pf.joint(f"{leg} tilt", "revolute", "world", f"cross {i}", axis=(1, 0, 0), placement=upright),
            pf.joint(f"{leg} swing", "revolute", f"cross {i}", f"cylinder {i}", axis=(0, 1, 0)),
            pf.joint(leg, "prismatic", f"cylinder {i}", f"rod {i}", placement=pf.pose((0, 0, length))),
        ]
        balls.append(pf.coincide(f"ball {i}", f"rod {i}", (0, 0, 0), "platform", corner))
        motors.append(pf.actuator(leg, leg))
    servos = [] if servo is None else [servo]
    return pf.mechanism(
        "Stewart platform", bodies, joints, constraints=[*balls, *servos], actuators=motors, parameters=parameters
    )  # fmt: skip


def path(t: ca.SX) -> ca.SX:
    """Position minus HEIGHT [m] and rotation vector [rad] of the path."""
    a, b = (ca.sin(w * t) - w * t * ca.exp(-((w * t) ** 2)) for w in (W1, W2))
    return ca.vertcat(SWING * a, 0, SWING * b, TURN * b, 0, TURN * a)


def turning(t: ca.SX) -> ca.SX:
    """Rotation about z to 90 degrees within 4 s, at rest at the end."""
    s = ca.fmin(t / 4, 1)
    return ca.vertcat(ca.SX(5, 1), np.pi / 2 * s**3 * (10 - 15 * s + 6 * s**2))


def pose_error(reference):
    def phi(k: pf.Kinematics) -> ca.SX:
        w = reference(k.t)
        p = k.position("platform") - ca.vertcat(0, 0, HEIGHT) - w[:3]
        return ca.vertcat(p, so3.log(so3.exp(w[3:]).T @ k.rotation("platform")))

    return pf.holonomic("pose", phi)


def steered() -> pf.Mechanism:
    """The platform on its path, or with turn = 1 on its way to 90 degrees; parameter "mass" scales the legs' masses."""
    turn, mass = pf.Parameter("turn", 0.0), pf.Parameter("mass", 1.0)
    reference = lambda t: (1 - turn) * path(t) + turn * turning(t)  # noqa: E731
    return mechanism(path_servo(reference), [turn, mass], mass.symbol)


def path_servo(reference, directions=LEGS):
    return pf.servo(pose_error(reference), directions, stiffness=STIFFNESS, damping=DAMPING)


def blended(m: pf.Mechanism, blend: ca.SX):
    """Directions of the control forces, whose sixth changes into the fifth as blend goes from 0 to 1."""
    rows = ca.DM.zeros(6, m.nv)
    for i, leg in enumerate(LEGS):
        rows[i, m.v_slices[leg].start] = 1

    def directions(k: pf.Kinematics) -> ca.SX:
        return ca.vertcat(ca.SX(rows[:5, :]), (1 - blend) * rows[5, :] + blend * rows[4, :])

    return directions


def run() -> dict[str, xr.Dataset]:
    m = steered()
    start, moving = np.zeros(m.nq), np.zeros(m.nv)
    start[:7] = 0.01, -0.01, 0.01, 0.02, 0.01, -0.02, 1.0
    moving[:6] = 0.1, 0.05, -0.1, 0.1, 0.2, -0.1
    long = pf.run(m, start, moving, duration=LONG, step=STEP, every=10)
    parts = {"G": lambda x: x.G, "realisable": lambda x: x.realisable, "mu": lambda x: x.mu, "v_dot": lambda x: x.motion.v_dot}
    at = pf.compile_terms(m, {name: lambda T, f=f: f(pf.constraints.control_force(T)) for name, f in parts.items()}, lanes=1)
    results = {"long": long, "oracle": oracle(at, long), "light": light(at, long), "measure": measure(at)}
    results["turning"] = pf.run(m, duration=4.0, step=STEP, every=5, parameters={"turn": 1.0})
    p = pf.Parameter("blend", 0.0)
    mixed = mechanism(path_servo(path, blended(m, p.symbol)), [p])
    results["batch"] = pf.run(mixed, duration=0.5, step=STEP, parameters={"blend": [0.0, 0.5, 1.0, 0.9]})
    return results


SAMPLES = 8


def sampled(r: xr.Dataset) -> xr.Dataset:
    return r.isel(time=np.linspace(0, r.sizes["time"] - 1, SAMPLES).astype(int))


def oracle(at: Callable, r: xr.Dataset) -> xr.Dataset:
    """Leg forces by pf.inverse_dynamics of the platform without servo constraint, with the slides actuated."""
    r = sampled(r)
    q, v, t = (r[name].values for name in ("q", "v", "time"))
    v_dot = np.array([at(q[i], v[i], t=t[i])["v_dot"] for i in range(SAMPLES)])
    inverse = pf.inverse_dynamics(mechanism(), q, v, v_dot)
    return xr.Dataset({"mu": (("time", "leg"), r["servo_force"].values), "inverse": (("time", "leg"), inverse.u)}, {"time": t})


def light(at: Callable, r: xr.Dataset) -> xr.Dataset:
    """With legs of a millionth of their mass: forces of the library, and by Newton's and Euler's equations of the platform."""
    r = sampled(r)
    q, v, t = (r[name].values for name in ("q", "v", "time"))
    found = [at(q[i], v[i], t=t[i], parameters={"mass": 1e-6}) for i in range(SAMPLES)]
    newton = [leg_forces(q[i, :7], v[i, :6], x["v_dot"][:6]) for i, x in enumerate(found)]
    forces = {"mu": [x["mu"] for x in found], "newton": newton}
    return xr.Dataset({name: (("time", "leg"), np.array(x)) for name, x in forces.items()}, {"time": t})


def leg_forces(q: np.ndarray, v: np.ndarray, v_dot: np.ndarray) -> np.ndarray:
    """(6,) forces along the legs of the free platform [N].   q: position, quaternion.   v: body-fixed twist."""
    x, y, z, w = q[3:]
    R = np.array([
        [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
        [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
        [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
    ])  # fmt: skip
    arms = CORNERS @ R.T
    legs = q[:3] + (0, 0, HEIGHT) + arms - FEET
    s = legs / np.linalg.norm(legs, axis=1)[:, None]
    omega, alpha = R @ v[3:], R @ v_dot[3:]
    I = R @ np.diag(INERTIA) @ R.T
    force = MASS * (R @ (v_dot[:3] + np.cross(v[3:], v[:3])) + (0, 0, G))
    moment = I @ alpha + np.cross(omega, I @ omega)
    transposed = np.vstack([s.T, np.cross(arms, s).T])
    return np.linalg.solve(transposed, np.concatenate([force, moment]))


def measure(at: Callable) -> xr.Dataset:
    """Smallest over largest singular value of G on the way to 90 degrees and beyond."""
    angles = np.linspace(0, np.radians(100), 101)
    rows = pf.compile_terms(mechanism(), {"phi": lambda T: T.rows.phi, "A": lambda T: T.A}, lanes=1)
    q = np.zeros(7 + 3 * len(LEGS))
    ratio, realisable = [], []
    for angle in angles:
        q[5], q[6] = np.sin(angle / 2), np.cos(angle / 2)
        # Move the legs onto their ball joints at the given platform pose, by Newton steps from the previous angle.
        for _ in range(6):
            x = rows(q)
            q[7:] -= np.linalg.solve(x["A"][:, 6:], x["phi"])
        x = at(q)
        s = np.linalg.svd(x["G"], compute_uv=False)
        ratio.append(s[-1] / s[0])
        realisable.append(float(x["realisable"]))
    return xr.Dataset({"measure": ("angle", ratio), "realisable": ("angle", realisable)}, {"angle": np.degrees(angles)})


def figures(result: dict[str, xr.Dataset]) -> dict[str, Any]:
    figure = blank_figure(12, 5.6)
    (way, error, force), (near, batch, blank) = figure.subplots(2, 3)
    blank.remove()
    r = result["long"]
    for name, what in (("servo_error", "position and angle [m, rad]"), ("servo_rate", "rates [m/s, rad/s]")):
        error.semilogy(r["time"], np.linalg.norm(r[name], axis=1), label=what)
    error.set_ylabel("norm of the error")
    first = r.sel(time=slice(0, 6))
    reference = ca.Function("path", [t := ca.SX.sym("t")], [path(t)])
    x, z = (100 * first["q"].values[:, i] for i in (0, 2))
    reference_path = 100 * np.array([reference(time) for time in first["time"].values]).reshape(-1, 6)
    way.plot(x, z, label="path of the platform")
    way.plot(reference_path[:, 0], reference_path[:, 2], "--", label="reference")
    way.plot(x[0], z[0], "o", color="C0", label="start")
    way.set(xlabel="x [cm]", ylabel="up, from mid height [cm]", aspect="equal")
    o = result["oracle"].sel(time=slice(0, 6))
    for i, leg in enumerate(LEGS):
        force.plot(first["time"], first["servo_force"][:, i], color=f"C{i}", label=leg)
        force.plot(o["time"], o["inverse"][:, i], "o", color=f"C{i}", markersize=4)
    force.set_ylabel("leg force [N]")
    force.set_title("dots: pf.inverse_dynamics")
    x = result["measure"]
    near.semilogy(x["angle"], x["measure"])
    near.axvline(90, color="black", linewidth=0.8)
    near.set_xlabel("platform turned about z [degree]")
    near.set_ylabel("smallest / largest singular value of G")
    for i, blend in enumerate((0.0, 0.5, 1.0, 0.9)):
        b = result["batch"].isel(run=i)
        stopped = b["status"] != 0
        if stopped:
            batch.set_title(f"sixth direction {blend:g} fifth: not realisable, stops at {float(b['stopped']):g} s")
        else:
            batch.plot(
                b["time"], np.linalg.norm(b["servo_force"], axis=1), color=f"C{i}", label=f"sixth direction {blend:g} fifth"
            )
    batch.set_ylabel("norm of the leg forces [N]")
    for axes in (error, force, batch):
        axes.set_xlabel("time [s]")
    return {"stewart platform": figure}


def claims(result: dict[str, xr.Dataset]) -> Iterator[Claim]:
    r, turned = result["long"], result["turning"]
    yield Claim("long run: ended early", float(r["status"] != 0), 0)
    late = r.sel(time=slice(2, None))
    for name, what, unit, least, most in (
        ("servo_error", "position", "m, rad", 0.02, 1e-9), ("servo_rate", "velocity", "m/s, rad/s", 0.1, 1e-8),
    ):  # fmt: skip
        yield Claim(f"{what} error at the start [{unit}]", np.abs(r[name].values[0]).max(), least, 0, "setting", "at least")
        yield Claim(f"{what} error from 2 s to 30 s [{unit}]", np.abs(late[name].values).max(), 0, most, "[ider (16)]")
    yield Claim("|phi| of the ball joints [m]", float(r["violation"].max()), 0, 1e-14)
    o, x = result["oracle"], result["light"]
    off = np.abs(o["mu"] - o["inverse"]).max() / np.abs(o["mu"]).max()
    yield Claim("leg forces minus those of pf.inverse_dynamics, relative", float(off), 0, 1e-14, "[aghili05 (57)-(60)]")
    off = np.abs(x["mu"] - x["newton"]).max() / np.abs(x["mu"]).max()
    yield Claim("forces of light legs minus those of Newton and Euler, relative", float(off), 0, 3e-6, "Newton, Euler")
    away = result["measure"].sel(angle=0, method="nearest")
    at = result["measure"].sel(angle=90, method="nearest")
    yield Claim(
        "singular values of G, smallest / largest, at 0 degrees", float(away["measure"]), 0.05, 0, "[ider (17)]", "at least"
    )
    yield Claim("singular values of G, smallest / largest, at 90 degrees", float(at["measure"]), 0, 1e-14, "[ider (17)]")
    yield Claim("realisable at 90 degrees", float(at["realisable"]), 0, 0, "[ider (17)]")
    yield Claim(
        "turned to 90 degrees: the reason names that it is not realisable",
        float("not realisable" in pf.results.causes(turned)[0]),
        1,
        0,
        "[ider (17)]",
    )
    s = turned["q"].values[np.isfinite(turned["q"].values).all(axis=1)]
    angle = np.degrees(2 * np.arctan2(s[-1, 5], s[-1, 6]))
    yield Claim("turned to 90 degrees: angle at the stop [degree]", angle, 90, 0.05, "geometry")
    status = result["batch"]["status"].values
    yield Claim(
        "of four runs, only that with a dependent sixth direction stops",
        float(np.flatnonzero(status).tolist() == [2]),
        1,
        0,
        "[ider (17)]",
    )
    yield Claim(
        "this run: the reason names that it is not realisable",
        float("not realisable" in pf.results.causes(result["batch"])[2]),
        1,
        0,
        "[ider (17)]",
    )
