"""Tricopter and quadcopter of `konz_flight` with their agent: machines, force control, sensors, estimator. [konz25 ch. 5]"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import casadi as ca
import numpy as np
from scipy.spatial.transform import Rotation

import pfaffian as pf
from pfaffian import control
from pfaffian.control import Command, Sample, actuation, estimation
from pfaffian.maths import so3

PERIOD, STEP = 0.005, 0.001
CAPTURE, DELAY = 0.1, 0.034
"""Period and mean delay of motion capture [s]. [konz25 5.1, 5.4.3]"""
LATE = 1.0
"""Standard deviation of the radio's delay, in periods of the agent; at most two. Ours."""
AHEAD, DRIFT = 12.5, 2e-5
"""Offset of the motion-capture clock ahead of the agent's [s], and its drift."""
MEMORY = 9
"""Number of samples in the agent's memory: 45 ms; the thesis has 64 samples."""
MOTOR = 0.0105
"""k_M [N m/A]. [konz25 Table 5.1]"""
NOISY = pf.Parameter("noise", 1.0)
"""Factor on the noise of all sensors, a parameter."""
GYRO, ACCELEROMETER, PLACE, TURN = 0.01, 0.2, 5e-4, 5e-4
"""Standard deviations per sample [rad/s], [m/s^2], [m], and of a quaternion's entries."""
ASKEW, OFFSET = Rotation.from_rotvec([0.02, -0.03, 0.015]).as_matrix(), np.array([0.15, -0.1, 0.2])
"""Misalignment R_B and bias a_B [m/s^2] of the IMU."""
NAMES = ("x", "y", "z", "qx", "qy", "qz", "qw")
REFERENCE_INPUTS = tuple(f"{n}{mark}" for mark in ("", "'", "''") for n in NAMES)
BIAS = tuple(pf.Parameter(n, 0.0) for n in ("F_x", "F_y", "F_z", "tau_x", "tau_y", "tau_z"))
OBSERVER, FOLLOWS = (60.0, -900.0), 40.0
"""l1 [1/s] and l2 [1/s^2] of the propellers' observers, k_P [1/s] of their speeds."""
DRAWS = 16
"""Number of flights with the same reference and different noise."""
SETTLE = 3.0
"""Time before each flight in which the agent estimates the biases [s]."""
G = 9.81


class Drives(NamedTuple):
    """Force control.

    state: start values of its state.   made: (s, speeds, rates) -> (6,) current wrench of the drives.
    driven: (s, u) -> its next state, desired speeds and tilts, from the law's u.
    """

    state: Mapping[str, Any]
    made: Callable[[Sample, ca.SX, ca.SX], ca.SX]
    driven: Callable[[Sample, ca.SX], tuple[dict[str, ca.SX], ca.SX, ca.SX]]


class Craft(NamedTuple):
    """A machine with the model and numbers that its agent uses.

    numbers: those of Table 5.1.   plant: the machine.   model: the simplified machine.   inertia: (3,) of the model [kg m^2].
    drag: d of the model [kg/s].   pair: the prototype.   limits: W and l for the model's inputs.   drives: force control.
    hover: speed of the propellers in hovering [rad/s].
    """

    numbers: Mapping[str, Any]
    plant: pf.Mechanism
    model: pf.Mechanism
    inertia: tuple[float, float, float]
    drag: float
    pair: control.Pair
    limits: tuple[np.ndarray, np.ndarray]
    drives: Drives
    hover: float

    @property
    def tilts(self) -> int:
        """Number of tilting arms."""
        return len(self.numbers["azimuths"]) if self.numbers["tilt"] else 0


def quadcopter() -> Craft:
    poles = control.quadcopter_pair("body", [-11.0] * 4, heading=(10.0, 1.0), inertia_ratio=0.1)
    limits = np.vstack([-np.eye(4), np.eye(4)]), np.array([-LOW] * 4 + [HIGH] * 4)
    return craft("quadcopter", pf.multicopters.QUADCOPTER, (17.9e-3, 17.9e-3, 30.7e-3), poles, limits, quadcopter_drives)


def tricopter() -> Craft:
    inertia, m = np.array([19.2e-3, 19.2e-3, 30.8e-3]), pf.multicopters.TRICOPTER["mass"]
    place, turn = 5.0, np.array([15.0, 15.0, 8.0])
    pm = pf.forces.pseudo_matrix
    poles = control.pair(
        "body", inertia=pm(m, moments=inertia), damping=pm(1.8 * place * m, moments=1.6 * turn * inertia),
        stiffness=pm(place**2 * m, moments=turn**2 * inertia),
    )  # fmt: skip
    one, none, low, high = np.eye(3), np.zeros((3, 3)), *PUSH
    slant = np.tan(np.pi / 8)  # a chord of the circle from upright to 45 degrees
    W = np.block([[-one, none], [one, slant * one], [one, -slant * one], [-one, one], [-one, -one]])
    limits = W, np.repeat([-low, high, high, 0, 0], 3)
    return craft("tricopter", pf.multicopters.TRICOPTER, tuple(inertia), poles, limits, tricopter_drives)


def craft(
    name: str, numbers: Mapping[str, Any], inertia: Any, pair: control.Pair, limits: Any, drives: Callable[..., Drives]
) -> Craft:
    x = dict(numbers) | {"turning_drag": np.maximum(numbers["turning_drag"], 0)}
    plant = pf.multicopters.multicopter(name, x.pop("azimuths"), x.pop("spins"), **x, parameters=[NOISY])
    x = dict(numbers)
    model = pf.multicopters.thrust_multicopter(
        f"{name}, simplified", x["azimuths"], x["spins"], mass=x["mass"], inertia=inertia, arm=x["arm"], height=x["height"],
        thrust=x["thrust"], torque=x["torque"], tilting=x["tilt"] is not None, drag=x["drag"], bias=BIAS, parameters=BIAS,
    )  # fmt: skip
    S = pf.symbols(model)
    B = np.array(ca.Function("B", [S.q, model.p_symbols], [S.B])(model.neutral(), model.p_defaults))
    hover = float(np.sqrt(x["mass"] * G / len(x["azimuths"]) / x["thrust"]))
    d = (2 * x["drag"][0] + x["drag"][1]) / 3
    return Craft(x, plant, model, inertia, d, pair, limits, drives(x, B, hover), hover)


# -- force control ---------------------------------------------------------------------------------------------------------

LOW, HIGH = 0.3, 7.85
"""Smallest and largest thrust of a quadcopter's propeller [N]; the largest carries a quarter of 3.2 kg. [konz25 5.1]"""
MAGNITUDE, TILT, HEADING = 20.0, 20.0, 16.0
"""Cut-off frequencies of the quadcopter's force control [Hz]."""


def quadcopter_drives(x: Mapping[str, Any], B: np.ndarray, hover: float) -> Drives:
    """Force control of the quadcopter. [konz25 5.3.4]"""
    rows, spin = B[2:] * x["thrust"], x["rotor"] * np.array(x["spins"])
    of = actuation.quadcopter_filter(rows, spin, hover, magnitude=MAGNITUDE, tilt=TILT, heading=HEADING)
    slowest, fastest = np.sqrt(np.array([LOW, HIGH]) / x["thrust"])

    def made(s: Sample, speeds: ca.SX, rates: ca.SX) -> ca.SX:
        return ca.vertcat(0, 0, actuation.quadcopter_wrench(speeds, rates, rows, spin))

    def driven(s: Sample, u: ca.SX) -> tuple[dict[str, ca.SX], ca.SX, ca.SX]:
        force = ca.DM(B[2:]) @ u
        h, speeds = actuation.quadcopter_forces(s["h"], s["goal"], force, PERIOD, of, slowest=slowest, fastest=fastest)
        return {"h": h}, speeds, ca.SX(0, 1)

    return Drives({"h": of.k1 * (rows @ np.full(4, hover**2))}, made, driven)


SERVO = (1400 / 0.9, 66 / 0.9)
"""k_PS / Theta_A [1/s^2] and k_DS / Theta_A [1/s]. [konz25 Table 5.1]"""
PUSH, LEAN, SMOOTH = (0.3, 7.0), np.pi / 4, 0.7
"""Limits of the tricopter's thrusts [N] and tilts [rad] [konz25 5.3.3]; c_F."""


def tricopter_drives(x: Mapping[str, Any], B: np.ndarray, hover: float) -> Drives:
    """Force control of the tricopter. [konz25 5.3.3]"""

    def made(s: Sample, speeds: ca.SX, rates: ca.SX) -> ca.SX:
        return actuation.tilt_wrench(actuation.TiltThrusts(x["thrust"] * speeds**2, s["angle"]), B)

    def driven(s: Sample, u: ca.SX) -> tuple[dict[str, ca.SX], ca.SX, ca.SX]:
        now = actuation.TiltDrives(x["thrust"] * s["goal"] ** 2, s["angle"], s["angle_rate"])
        then, goal = actuation.tricopter_forces(
            now, ca.DM(B) @ u, PERIOD, B, forgetting=SMOOTH, servo=SERVO, thrust=PUSH, angle=LEAN
        )
        return {"angle": then.angle, "angle_rate": then.rate}, ca.sqrt(then.thrust / x["thrust"]), goal.angle

    return Drives({"angle": np.zeros(3), "angle_rate": np.zeros(3)}, made, driven)


def servos() -> control.Control:
    """Law of the servos: moments that turn the arms to the tilts from the agent. [konz25 (5.2)]"""

    def law(terms: pf.Terms, z: ca.SX, w: ca.SX, reaction: ca.SX) -> Command:
        moment = 1400 * (w - terms.q[7:10]) - 66 * terms.v[6:9]
        return Command(ca.vertcat(moment, ca.SX.zeros(terms.mechanism.nu - 3, 1)))

    return control.Control(law, w_names=tuple(f"tilt {i}" for i in (1, 2, 3)))


# -- sensors and agent -----------------------------------------------------------------------------------------------------


def specific_force(terms: pf.Terms, motion: Any) -> ca.SX:
    """(3,) acceleration of the body's frame minus gravity, along its axes [m/s^2]. [konz25 (5.46)]"""
    R = terms.kinematics.pose("body").R
    return motion.v_dot[:3] + ca.cross(terms.v[3:6], terms.v[:3]) + G * R.T[:, 2]


def sensors(propellers: int) -> dict[str, control.Sensor]:
    """Sensors: IMU, angles of the propellers, and motion capture with its time stamp, which arrives later by radio."""
    capture = lambda k: ca.vertcat(k.pose("body").p, k.q[3:7], (1 + DRIFT) * k.t + AHEAD)  # noqa: E731
    return {
        "gyro": control.sensor(lambda k: ca.DM(ASKEW) @ k.v[3:6], NOISY * GYRO, unit="rad/s"),
        "accelerometer": control.sensor(
            lambda T, motion: ca.DM(ASKEW) @ specific_force(T, motion) + OFFSET,
            NOISY * ACCELEROMETER,
            moving=True,
            unit="m/s^2",
        ),
        "encoder": control.sensor(lambda k: k.q[-propellers:], unit="rad"),
        "capture": control.sensor(
            capture, ca.vertcat(*[NOISY * PLACE] * 3, *[NOISY * TURN] * 4, 0), period=CAPTURE, phase=CAPTURE - DELAY
        ),
        "radio": control.sensor(lambda k: ca.SX(0), NOISY * LATE, period=CAPTURE, phase=CAPTURE - DELAY),
    }


def calibration() -> estimation.Misalignment:
    """Misalignment and bias of the IMU, from 20 attitudes at rest of 10 s each. [konz25 5.4.1]"""
    random = np.random.default_rng(20)
    R = Rotation.random(20, random_state=20).as_matrix()
    mean = G * R[:, 2, :] @ ASKEW.T + OFFSET + ACCELEROMETER / np.sqrt(10 / PERIOD) * random.normal(size=(20, 3))
    seen = Rotation.from_matrix(R) * Rotation.from_rotvec(2 * TURN * random.normal(size=(20, 3)))
    return estimation.imu_misalignment(mean, seen.as_matrix())


def tracking(c: Craft) -> tuple[ca.Function, list[str]]:
    """Body-based tracking with the simplified machine: a function (q, v, reference, biases) -> u, faults and active limits, and
    the meanings of the faults."""
    m, w = c.model, ca.SX.sym("w", len(REFERENCE_INPUTS))
    S = pf.symbols(m)
    tracking_law = control.prototype_tracking([c.pair], control.sampled(NAMES), approach="body", limits=c.limits)
    command = tracking_law.law(pf.Terms(m, S.q, S.v, ca.SX(m.nu, 1), S.t), ca.SX(0, 1), w, ca.SX(0, 1))
    f = ca.Function("law", [S.q, S.v, w, m.p_symbols], [command.u, command.faults, command.signals["limit_active"]])
    return f, [fault.meaning for fault in tracking_law.faults]


def agent(c: Craft) -> control.Control:
    """Estimator, tracking and force control of a machine, with servos if arms tilt. [konz25 fig. 5.5]"""
    return control.several(agent=computer(c), servos=servos()) if c.tilts else computer(c)


def computer(c: Craft) -> control.Control:
    """The discrete law that the agent computes 200 times per second."""
    x, n, imu, (track, known) = c.numbers, len(c.numbers["azimuths"]), calibration(), tracking(c)
    p = (x["torque"] / x["rotor"], MOTOR / x["rotor"])
    friction = x["friction"] / x["rotor"]
    resting = (p[0] * c.hover**2 + friction) / p[1]

    def step(s: Sample) -> Command:
        # estimate the propellers one period ahead
        turned = ca.if_else(s["tick"] > 0, (s["encoder"] - s["turned"]) / PERIOD, s["speed"])
        seen = actuation.PropellerEstimate(s["speed"], s["before"], s["friction"])
        spun = actuation.propeller_observer(seen, turned, s["current"], PERIOD, p, OBSERVER)
        wrench = c.drives.made(s, s["speed"], (spun.speed - s["speed"]) / PERIOD)
        # estimate the body one period ahead
        felt, rate = ca.DM(imu.rotation.T) @ (s["accelerometer"] - ca.DM(imu.bias)), ca.DM(imu.rotation.T) @ s["gyro"]
        w, tau = estimation.turning_step(s["w_hat"], s["tau_hat"], rate, wrench[3:], np.diag(c.inertia), PERIOD)
        late = ca.fmin(ca.fmax(ca.floor(s["radio"] + 0.5), -2), 2)
        came = ca.logic_and(ca.fmod(s["tick"] - late, round(CAPTURE / PERIOD)) == 0, s["tick"] > 2)
        capture = s["capture"]
        attitude = ca.if_else(came, capture[3:7] / ca.norm_2(capture[3:7]), ca.DM([0, 0, 0, 1]))
        clock = estimation.clock_step(s["clock"], PERIOD * s["tick"], capture[7], DELAY)
        memory = estimation.FlightMemory(s["estimate"], s["samples"], s["fixes"])
        here = estimation.fix_step(memory, estimation.Fix(capture[:3], attitude, clock.delay, came), PERIOD)
        mean = (s["w_hat"] + w) / 2
        there = estimation.imu_step(here, felt, mean, PERIOD)
        R = so3.quat_to_matrix(here.q)
        F = estimation.force_bias_step(
            s["F_hat"], felt - here.flight.a_B, R.T @ here.flight.v, wrench[:3], mass=x["mass"], drag=c.drag
        )
        # the law at that instant
        v = ca.vertcat(so3.quat_to_matrix(there.q).T @ there.flight.v, w)
        desired = ca.vertcat(*[s[name] for name in REFERENCE_INPUTS])
        u, faults, active = track.call([ca.vertcat(there.flight.r, there.q), v, desired, ca.vertcat(F, tau)], True, False)
        drive_state, goal, tilts = c.drives.driven(s, u)
        current = actuation.propeller_current(s["goal"], goal, spun.speed, spun.friction, PERIOD, p, FOLLOWS)
        d_next = drive_state | there._asdict() | {
            "tick": s["tick"] + 1, "turned": s["encoder"], "speed": spun.speed, "before": spun.before,
            "friction": spun.friction, "w_hat": w, "tau_hat": tau, "F_hat": F, "goal": goal, "current": current,
            "clock": ca.if_else(came, clock.offset, s["clock"]),
        }  # fmt: skip
        signals = {"wanted": u, "active": active} | {f"tilt {i + 1}": tilts[i] for i in range(c.tilts)}
        return Command(ca.vertcat(ca.SX.zeros(c.tilts, 1), MOTOR * current), faults=faults, signals=signals, d_next=d_next)

    start = estimation.flight_memory(np.zeros(3), [0, 0, 0, 1], MEMORY, known=True)._asdict()
    state = {
        **c.drives.state, **start, "tick": 0, "turned": np.zeros(n), "speed": [c.hover] * n, "before": [c.hover] * n,
        "friction": [friction] * n, "w_hat": np.zeros(3), "tau_hat": np.zeros(3), "F_hat": np.zeros(3), "goal": [c.hover] * n,
        "current": [resting] * n, "clock": -AHEAD,
    }  # fmt: skip
    tilts = tuple(f"tilt {i + 1}" for i in range(c.tilts))
    return control.discrete(
        step, PERIOD, latency=1, state=state, inputs=REFERENCE_INPUTS, measure=sensors(n), gives=tilts, faults=known,
        start=[0.0] * c.tilts + [MOTOR * resting] * n,
    )  # fmt: skip
