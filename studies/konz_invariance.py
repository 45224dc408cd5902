"""One closed loop in quaternions, rotation matrices and Euler angles, and about two points of the body. [konz25 4.4]

A prototype is defined by poses of bodies, so the motion under its law cannot depend on the coordinates in which machine,
reference and law are written. A body on a ball joint with three thrusters follows a turning reference by each of the three
approaches, and with two thrusters as closely as possible: with a quaternion, with nine entries of R, with roll, pitch and yaw.
Where the reference passes a pitch of 90 degrees the run with angles stops; quaternion and matrix are regular there. For a free
body the prototype's forces are the same in another body frame, with X' transformed to T^-1 X' T^-T. All numbers are ours.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import casadi as ca
import numpy as np
import xarray as xr
from scipy.spatial.transform import Rotation

import pfaffian as pf
from pfaffian import control
from pfaffian.maths import se3, so3
from pfaffian.study import Claim, blank_figure

MASS, CENTRE, INERTIA = 1.3, np.array([0.05, -0.03, 0.02]), np.array([0.02, 0.03, 0.04])
AWAY = pf.Parameter("away", 0.0, "rad")
"""Distance of the reference from a pitch of 90 degrees at POLE_AT."""
POLE_AT, DURATION, STEP = 0.6, 1.2, 5e-4
"""Time at which the reference is nearest to 90 degrees, duration of a run, and its step [s]."""
TURN = {"through 90": (0.7, 2.0, -0.4), "beside 90": (0.4, 0.0, 2.0), "through -90": (-0.3, -2.2, 0.5)}
"""Angular velocity of the reference along its own axes [rad/s]; the second turns about an axis across the pitch."""
RATES = [pf.Parameter(n, x, "rad/s") for n, x in zip(("wx", "wy", "wz"), TURN["through 90"], strict=True)]
BESIDE = 0.3
"""Distance of the second reference from a pitch of 90 degrees [rad]."""
SHIFT = (np.array([0.2, -0.1, 0.15]), Rotation.from_rotvec([0.5, -0.3, 0.8]).as_matrix())
"""Position [m] and rotation of the second body frame in the first."""
ENTRIES = [f"{a}{b}" for a in "xyz" for b in "xyz"]
COORDINATES = ("quaternion", "matrix", "angles")


# -- the machine, in each kind of coordinates -----------------------------------------------------------


def machine(how: str, count: int = 3) -> pf.Mechanism:
    """A body on a ball joint at the origin, surrounded by thrusters that lean alternately to both sides."""
    body = pf.body("body", MASS, com=CENTRE, inertia=INERTIA)
    motors = []
    for i in range(count):
        a, lean = 2 * np.pi * i / 3, 0.5 * (-1) ** i
        axis = (-np.sin(a) * np.sin(lean), np.cos(a) * np.sin(lean), np.cos(lean))
        at = (0.25 * np.cos(a), 0.25 * np.sin(a), 0.05)
        motors.append(pf.forces.thruster(f"t{i}", "body", axis=axis, point=at, torque=0.1, limits=(-np.inf, np.inf)))
    rest = {"actuators": motors, "parameters": [AWAY, *RATES]}
    if how == "quaternion":
        return pf.mechanism(how, [body], [pf.joint("j", "spherical", "world", "body")], **rest)
    coordinates, pose = (nine(), by_nine) if how == "matrix" else (three(), by_three)
    return pf.mechanism(how, [body], [pf.edge("pose", "world", "body", pose)], coordinates=[coordinates], **rest)


def mechanism() -> pf.Mechanism:
    return machine("matrix")


def nine() -> pf.Coordinates:
    """A rotation matrix, with the body's angular velocity. [konz25 (2.7)]"""

    def K(q: ca.SX) -> ca.SX:
        R = ca.reshape(q, 3, 3)
        return ca.horzcat(*[ca.vec(R @ so3.hat(axis)) for axis in np.eye(3)])

    def phi(q: ca.SX) -> ca.SX:
        R = ca.reshape(q, 3, 3)
        return ca.vertcat(*[ca.dot(R[:, i], R[:, j]) - (i == j) for i in range(3) for j in range(i + 1)], ca.det(R) - 1)

    names = [f"{a}{b}" for a in "xyz" for b in "xyz"]
    return pf.coordinates("R", names, ("wx", "wy", "wz"), K, phi=phi, start=np.eye(3).ravel(), v_units="rad/s")


def by_nine(k: pf.Kinematics) -> pf.Pose:
    return pf.Pose(ca.reshape(k.q, 3, 3), ca.SX.zeros(3, 1))


def three() -> pf.Coordinates:
    """Roll, pitch and yaw, with their rates. [konz25 (1.6)]"""
    names = ("roll", "pitch", "yaw")
    return pf.coordinates("angles", names, names, lambda q: ca.SX.eye(3), q_units="rad")


def by_three(k: pf.Kinematics) -> pf.Pose:
    return pf.Pose(ca.SX(so3.rpy_to_matrix(k.q)), ca.SX.zeros(3, 1))


# -- the reference, in each -----------------------------------------------------------------------------


def goal(t: ca.SX) -> ca.SX:
    """Quaternion of the reference, which turns steadily and is AWAY from a pitch of 90 degrees at POLE_AT."""
    pitch, w = np.pi / 2 - AWAY.symbol, ca.vertcat(*[x.symbol for x in RATES])
    start = ca.vertcat(0, ca.sin(pitch / 2), 0, ca.cos(pitch / 2))
    return ca.SX(so3.quat_mul(start, so3.quat_exp(w * (t - POLE_AT))))


def in_coordinates(how: str, turn: ca.SX) -> ca.SX:
    """q in the given coordinates for a quaternion."""
    R = so3.quat_to_matrix(turn)
    if how == "quaternion":
        return turn
    if how == "matrix":
        return ca.SX(ca.vec(R))
    return ca.SX(ca.vertcat(ca.atan2(R[2, 1], R[2, 2]), -ca.asin(R[2, 0]), ca.atan2(R[1, 0], R[0, 0])))


def reference(how: str) -> control.Reference:
    t = ca.SX.sym("t")
    x = in_coordinates(how, goal(t))
    rate = ca.jacobian(x, t)
    parts = [x, rate, ca.jacobian(rate, t)]
    return control.Reference(lambda s, w: control.Setpoint(*ca.substitute(parts, [t], [s])), x.numel())


# -- laws -----------------------------------------------------------------------------------------------


def numbers() -> list[np.ndarray]:
    """Inertia, damping and stiffness (4, 4) of the prototype, 30 generic numbers."""
    random = np.random.default_rng(44)
    parts = (0.5 * random.normal(size=(4, 8)) for _ in range(3))
    return [weight * A @ A.T for weight, A in zip((0.3, 2.0, 5.0), parts, strict=True)]


def pairs(shift: tuple[np.ndarray, np.ndarray] = (np.zeros(3), np.eye(3))) -> list[control.Pair]:
    """The prototype in a body frame at `shift`, where X' becomes T^-1 X' T^-T."""
    T = np.eye(4)
    T[:3, 3], T[:3, :3] = shift
    back = np.linalg.inv(T)
    three_ = [back @ X @ back.T for X in numbers()]
    return [control.pair("body", inertia=three_[0], damping=three_[1], stiffness=three_[2])]


# -- runs -----------------------------------------------------------------------------------------------


def starts(how: str) -> tuple[np.ndarray, np.ndarray, dict[str, list[float]]]:
    """q (3, nq), v (3, 3) and parameters of the runs through and near a pitch of 90 degrees, with initial errors."""
    t = ca.SX.sym("t")
    f = ca.Function("goal", [t, AWAY.symbol, *[x.symbol for x in RATES]], [goal(t)])
    tilt, qs, vs, away = (
        Rotation.from_rotvec([0.15, -0.1, 0.2]),
        [],
        [],
        {"through 90": 0.0, "beside 90": BESIDE, "through -90": np.pi},
    )
    for name, w in TURN.items():
        turn = Rotation.from_quat(np.array(f(0.0, away[name], *w)).ravel()) * tilt
        q = np.array(ca.DM(ca.evalf(in_coordinates(how, ca.SX(turn.as_quat()))))).ravel()
        spin = np.array(w) + [0.2, -0.3, 0.1]
        qs.append(q)
        vs.append(angle_rates(q, spin) if how == "angles" else spin)
    given = {"away": list(away.values())} | {x.name: [TURN[n][i] for n in TURN] for i, x in enumerate(RATES)}
    return np.array(qs), np.array(vs), given


def angle_rates(a: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Rates of roll, pitch and yaw for an angular velocity along the body's axes. [konz25 (1.6b)]"""
    (c, s), (C, S) = ((np.cos(x), np.sin(x)) for x in a[:2])
    return np.linalg.solve(np.array([[1, 0, -S], [0, c, C * s], [0, -s, C * c]]), w)


LAWS = {**{a: (3, a, COORDINATES) for a in control.APPROACHES}, "two thrusters": (2, "body", COORDINATES[:2])}
"""By name: number of thrusters, approach, and coordinates; with two thrusters the motion comes close to 90 degrees anyway."""


def run() -> dict[str, xr.Dataset]:
    results = {}
    for name, (count, approach, kinds) in LAWS.items():
        for how in kinds:
            q, v, given = starts(how)
            law = control.prototype_tracking(pairs(), reference(how), approach=approach)
            say = {"parameters": given, "duration": DURATION, "step": STEP, "every": 40, "record": ["q", "v", "u"]}
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", pf.RunWarning)  # the run with angles is expected to stop
                results[f"{name}, {how}"] = pf.run(machine(how, count), q, v, control=law, **say)
    results["shift"] = shifted()
    return results


def shifted() -> xr.Dataset:
    """Mbar v_dot + bbar of a free body at random states, in one body frame and transformed from the other."""
    joint = pf.joint("j", "free", "world", "body")
    m, found = pf.mechanism("free", [pf.body("body", MASS, inertia=INERTIA)], [joint]), []
    sizes = {"q": 7, "v": 6, "q_R": 7, "v_R": 6, "a_R": 6, "a": 6}
    s, t = {n: ca.SX.sym(n, size) for n, size in sizes.items()}, ca.SX.sym("t")
    k, goal_ = pf.Kinematics(m, s["q"], s["v"], t), control.ReferenceMotion(pf.Kinematics(m, s["q_R"], s["v_R"], t), s["a_R"])
    for approach in control.APPROACHES:
        both = [control.prototype_terms(k, goal_, coordinates, approach, None) for coordinates in (pairs(), pairs(SHIFT))]
        forces = [ca.Function("f", [*s.values(), t], [x.M @ s["a"] + x.b]) for x in both]
        random, carry = np.random.default_rng(44), np.array(se3.Ad(*(ca.DM(x) for x in SHIFT[::-1])))
        for _ in range(10):
            q, q_R = (pf.random_configuration(m, random) for _ in range(2))
            rates = random.normal(size=(4, 6))
            here = np.array(forces[0](q, rates[0], q_R, rates[1], rates[2], rates[3], 0.0)).ravel()
            back = np.linalg.solve(carry, rates.T).T
            there = forces[1](elsewhere(q), back[0], elsewhere(q_R), back[1], back[2], back[3], 0.0)
            found.append([carry.T @ here, np.array(there).ravel()])
    shape = (len(control.APPROACHES), 10, 2, 6)
    return xr.Dataset(
        {"f": (("approach", "state", "frame", "axis"), np.array(found).reshape(shape))}, {"approach": list(control.APPROACHES)}
    )


def elsewhere(q: np.ndarray) -> np.ndarray:
    """q of a free body's second frame."""
    R = Rotation.from_quat(q[3:])
    return np.concatenate([q[:3] + R.apply(SHIFT[0]), (R * Rotation.from_matrix(SHIFT[1])).as_quat()])


# -- figure and claims ----------------------------------------------------------------------------------


def attitude(r: xr.Dataset, how: str) -> np.ndarray:
    """(runs, time, 3, 3) rotation matrices, NaN after the end of a run."""
    q = r["q"].values
    if how == "matrix":
        return q.reshape(*q.shape[:2], 3, 3).swapaxes(-1, -2)
    lost = ~np.isfinite(q).all(-1)
    flat = np.where(lost[..., None], 0.5, q).reshape(-1, q.shape[-1])
    turns = Rotation.from_quat(flat) if how == "quaternion" else Rotation.from_euler("ZYX", flat[:, ::-1])
    return np.where(lost[..., None, None], np.nan, turns.as_matrix().reshape(*q.shape[:2], 3, 3))


def apart(result: dict[str, xr.Dataset], name: str, how: str) -> np.ndarray:
    """(runs, time) largest difference of R from that of the run with the matrix."""
    off = attitude(result[f"{name}, {how}"], how) - attitude(result[f"{name}, matrix"], "matrix")
    return np.abs(off).max((-1, -2))


def figures(result: dict[str, xr.Dataset]) -> dict[str, Any]:
    figure = blank_figure(10, 3.4)
    pitch, beside, through = figure.subplots(1, 3)
    for i, name in enumerate(TURN):
        r = result["body, matrix"]
        angle = np.degrees(-np.arcsin(np.clip(attitude(r, "matrix")[i, :, 2, 0], -1, 1)))
        pitch.plot(r["time"], angle, f"C{3 + i}", label=name)  # C0 to C2 are the approaches
    pitch.set(xlabel="time [s]", ylabel="pitch [deg]", title="body approach")
    for ax, i, title in ((through, 0, "through 90 degrees"), (beside, 1, "beside 90 degrees")):
        for how, dashes in (("quaternion", "-"), ("angles", "--")):
            for j, name in enumerate(control.APPROACHES):
                off = apart(result, name, how)[i]
                ax.semilogy(result["body, matrix"]["time"], off + 1e-17, f"C{j}{dashes}", label=f"{name}, {how}")
        ax.set(xlabel="time [s]", ylabel="R minus that by the matrix [1]", title=title)
    pitch.legend(loc="best")
    through.legend(loc="best", fontsize=7)
    return {"invariance": figure}


def rounding(name: str, how: str) -> float:
    """Size of the rounding errors at the end of a run; they grow faster with two thrusters and with angles near their pole."""
    return 5e-10 if name == "two thrusters" else 1e-11 if how == "angles" else 1e-12


def claims(result: dict[str, xr.Dataset]) -> Iterator[Claim]:
    pole = attitude(result["body, matrix"], "matrix")[1, :, 2, 0]
    yield Claim("beside: largest sine of the pitch", float(np.abs(pole).max()), 0.96, 0, "setting", "at most")
    for name, (_, _, kinds) in LAWS.items():
        known = result[f"{name}, matrix"]
        for how in (x for x in kinds if x != "matrix"):
            r = result[f"{name}, {how}"]
            off = float(apart(result, name, how)[1].max())
            yield Claim(f"{name}, beside: R by {how} minus R by matrix", off, 0, rounding(name, how), "[konz25 4.4]")
            off = float(np.abs(r["u"][1] - known["u"][1]).max())
            yield Claim(
                f"{name}, beside: thrusts by {how} minus those by matrix [N]", off, 0, 10 * rounding(name, how), "[konz25 4.4]"
            )
        for i, way in ((0, "through 90"), (2, "through -90")):
            off = float(apart(result, name, "quaternion")[i].max())
            yield Claim(
                f"{name}, {way}: R by quaternion minus R by matrix", off, 0, rounding(name, "quaternion"), "[konz25 4.4]"
            )
            for how in ("matrix", "quaternion"):
                early = float(result[f"{name}, {how}"]["status"][i] != 0)
                yield Claim(f"{name}, {way}: run by {how} ended early", early, 0)
            if "angles" in kinds:
                ended = float(result[f"{name}, angles"]["stopped"][i])
                yield Claim(f"{name}, {way}: time at which the run by angles stops [s]", ended, POLE_AT, 0.002, "[konz25 1.2]")
    f = result["shift"]["f"].values
    for i, name in enumerate(control.APPROACHES):
        off = np.abs(f[i, :, 0] - f[i, :, 1]).max() / np.abs(f[i]).max()
        yield Claim(f"{name}: force in the other body frame, relative difference", off, 0, 1e-14, "[konz25 4.4]")
