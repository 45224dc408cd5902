"""The numbers of the zoo: for each machine in this folder its degrees of freedom, and one number that the library computes.

MOBILITY has the degrees of freedom. The function with a machine's name takes the mechanism and the start of its run, and
returns (value, expected value, tolerance). Its docstring says what the number is, and then where the expected value comes from.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import asin, atan2, cos, hypot, sin, sqrt, tan
from typing import Any

import casadi as ca
import numpy as np

import pfaffian as pf

G = 9.81

MOBILITY = {
    "andrews": 1, "bennett": 1, "bicopter": 8, "bicycle": 3, "bricard": 1, "cardan": 1, "chaplygin_sphere": 3, "coin": 3,
    "crane": 2, "delta": 3, "drones_with_bar": 16, "engine": 1, "excavator_arm": 3, "exoskeleton_leg": 3, "five_bar": 2,
    "four_bar": 1, "goldberg": 1, "governor": 2, "gripper": 1, "gyroscope": 3, "hexarotor": 6, "jansen_leg": 1,
    "peaucellier": 1, "quadcopter": 12, "quarter_car": 13, "rattleback": 3, "roller_racer": 2, "rover_with_trailer": 2,
    "sarrus": 1, "satellite": 11, "schatz": 1, "scissor_lift": 1, "scotch_yoke": 1, "screw_press": 1, "segway": 3, "sleigh": 2,
    "slider_crank": 1, "snakeboard": 4, "spatial_parallelograms": 2, "stewart": 6, "suspension": 2, "three_rrr": 3,
    "tippe_top": 5, "two_arm_spacecraft": 9, "walker": 3, "watt": 1, "wheel_set": 2, "windmill": 2,
}  # fmt: skip

Number = tuple[float, float, float]


def acceleration(m: pf.Mechanism, s: Any, name: str) -> float:
    """Rate of the velocity of that name at the start."""
    found = pf.forward_dynamics(m, s.q, s.v, s.u, parameters=s.p)
    return float(found.v_dot[m.v_names.index(name)])


def point(m: pf.Mechanism, s: Any, body: str, x: Sequence[float]) -> np.ndarray:
    """World coordinates (3,) of a point of a body [m]."""
    pose = pf.forward_kinematics(m, s.q, parameters=s.p)[body]
    return pose.position + pose.rotation @ np.array(x)


def meeting(p: Sequence[float], r: float, q: Sequence[float], t: float, side: int) -> np.ndarray:
    """The point (2,) where circles of radius r around p and t around q meet, left (1) or right (-1) of the line from p to q."""
    (x, z), d = np.subtract(q, p), float(np.linalg.norm(np.subtract(q, p)))
    along = (d**2 + r**2 - t**2) / (2 * d)
    across = side * sqrt(r**2 - along**2)
    return np.array([p[0] + (along * x - across * z) / d, p[1] + (along * z + across * x) / d])


def rates(M: np.ndarray, A: np.ndarray, f: np.ndarray) -> np.ndarray:
    """Accelerations from rest under the forces f, in the null space of the rows A."""
    N = np.linalg.svd(A)[2][np.linalg.matrix_rank(A) :].T
    return N @ np.linalg.solve(N.T @ M @ N, N.T @ f)


# -- linkages in a plane --------------------------------------------------------------------------------------------------


def four_bar(m: pf.Mechanism, s: Any) -> Number:
    """Angle of the rocker [rad]. Intersection of circles around the pin of the crank and the pivot of the rocker."""
    pin = meeting((0, s.p["a"]), s.p["b"], (s.p["g"], 0), s.p["c"], 1)
    return s.q["rocker"], atan2(pin[1], pin[0] - s.p["g"]), 1e-9


def slider_crank(m: pf.Mechanism, s: Any) -> Number:
    """Acceleration of the crank [rad/s^2]. m l^2 (1 + 4 sin^2 q) q'' = torque - m g l cos q at rest, by hand."""
    q, l, mass = s.q["q1"], s.p["l"], s.p["m"]
    return acceleration(m, s, "q1"), (s.u["crank torque"] - mass * G * l * cos(q)) / (mass * l**2 * (1 + 4 * sin(q) ** 2)), 1e-9


def five_bar(m: pf.Mechanism, s: Any) -> Number:
    """Height of the tip [m]. Intersection of circles around the elbows."""
    half, l = s.p["base"] / 2, s.p["crank"]
    left, right = s.q["left crank"], s.q["right crank"]
    elbows = (-half + l * cos(left), l * sin(left)), (half + l * cos(right), l * sin(right))
    tip = meeting(elbows[0], s.p["rod"], elbows[1], s.p["rod"], 1)
    return point(m, s, "left rod", (s.p["rod"], 0, 0))[2], tip[1], 1e-9


def three_rrr(m: pf.Mechanism, s: Any) -> Number:
    """Angle of each crank with the plate in the middle [rad]. Intersection of circles around a crank's foot and a corner."""
    elbow = meeting((s.p["base"], 0), s.p["crank"], (s.p["plate"], 0), s.p["rod"], -1)
    return s.q["crank 1"], atan2(elbow[1], elbow[0] - s.p["base"]), 1e-9


def jansen_leg(m: pf.Mechanism, s: Any) -> Number:
    """Height of the foot above the crank [m]. Intersections of circles with Jansen's lengths, without the library."""
    return point(m, s, "ghi", (-7.746594007, 48.383781183, 0))[1], -91.756932926, 1e-7


def andrews(m: pf.Mechanism, s: Any) -> Number:
    """Initial acceleration of beta [rad/s^2]. The IVP test set prints 14222.4439199541."""
    return acceleration(m, s, "beta"), 14222.4439199541, 1e-5


def watt(m: pf.Mechanism, s: Any) -> Number:
    """Angle of the right arm [rad]. Intersection of circles around the end of the left arm and the pivot of the right."""
    a = s.p["arm"]
    pin = meeting((a * cos(s.q["A"]), a * sin(s.q["A"])), s.p["link"], (2 * a, -s.p["link"]), a, -1)
    return s.q["D"], np.pi + atan2(-pin[1] - s.p["link"], 2 * a - pin[0]), 1e-9


def peaucellier(m: pf.Mechanism, s: Any) -> Number:
    """Distance of the straight line from the pivot [m]. (long^2 - short^2) / (2 radius), an inversion of the circle."""
    return point(m, s, "B P", (s.p["short"], 0, 0))[0], (s.p["long"] ** 2 - s.p["short"] ** 2) / (2 * s.p["radius"]), 1e-9


def scotch_yoke(m: pf.Mechanism, s: Any) -> Number:
    """Acceleration of the crank [rad/s^2]. torque / (J + 2 r^2 sin^2 q), by hand."""
    r = s.p["r"]
    return acceleration(m, s, "crank"), s.u["motor"] / (0.01 + (r / 2) ** 2 + 2 * (r * sin(s.q["crank"])) ** 2), 1e-9


def scissor_lift(m: pf.Mechanism, s: Any) -> Number:
    """Force of the cylinder that holds the platform [N]. Virtual work: (load + half of both arms) g / tan(angle)."""
    still = {name: 0.0 for name in s.v}
    held = pf.inverse_dynamics(m, s.q, still, still, parameters=s.p).u[0]
    return held, -(s.p["load"] + 2) * G / tan(s.q["a"]), 1e-7


def governor(m: pf.Mechanism, s: Any) -> Number:
    """Acceleration of the arms at its steady speed [rad/s^2]. Zero at w^2 = (1 + M / m) g / (l cos), Porter's formula."""
    return acceleration(m, s, "left"), 0.0, 1e-9


def engine(m: pf.Mechanism, s: Any) -> Number:
    """Sum of the heights of the pistons, less six rods [m]. r cos + sqrt(l^2 - r^2 sin^2) of the six cranks."""
    angles = s.q["crankshaft"] + 2 * np.pi / 3 * np.array([0, 1, -1, -1, 1, 0])
    r, l = s.p["r"], s.p["l"]
    expected = float(np.sum(r * np.cos(angles) + np.sqrt(l**2 - (r * np.sin(angles)) ** 2) - l))
    return sum(s.q[f"bore {i}"] for i in range(1, 7)) - 6 * l, expected, 1e-9


def excavator_arm(m: pf.Mechanism, s: Any) -> Number:
    """Length of the cylinder of the boom [m]. The distance between its pins."""
    q = s.q["boom"]
    pin = 2 * cos(q) - 0.3 * sin(q), 1 + 2 * sin(q) + 0.3 * cos(q)
    return s.q["boom cylinder"], hypot(pin[0] - 0.5, pin[1] - 0.3), 1e-9


def gripper(m: pf.Mechanism, s: Any) -> Number:
    """Opening between the pads [m]. Parallelograms: 2 (half - l sin(angle)), less two pads."""
    left, right = (point(m, s, f"{side} pad", (x, 0, 0))[0] for side, x in (("left", s.p["gap"]), ("right", -s.p["gap"])))
    return right - left, 2 * (s.p["half"] - s.p["l"] * sin(s.q["drive"])), 1e-9


def exoskeleton_leg(m: pf.Mechanism, s: Any) -> Number:
    """Torque of the hip motor that holds the leg [N m]. Difference of the energy between two states near this one."""
    still = {name: 0.0 for name in s.v}
    motors = ["hip motor", "knee motor", "ankle"]
    held = pf.inverse_dynamics(m, s.q, still, still, parameters=s.p, actuated=motors).u[0]
    near = np.array([list(s.q.values())] * 2)
    near[:, m.q_names.index("hip motor")] += (-1e-4, 1e-4)
    states = pf.assemble(m, near, hold=motors, parameters=s.p, backend="interpreter").q
    low, high = pf.energy(m, states, parameters=s.p).potential
    return float(held), float(high - low) / 2e-4, 1e-5


def walker(m: pf.Mechanism, s: Any) -> Number:
    """Angle of the knees [rad]. The law of cosines for thigh, shank and the line from hip to foot."""
    a, b, far = s.p["thigh"], s.p["shank"], hypot(s.q["trunk.y"], s.p["stride"] / 2)
    return s.q["left knee"], -np.arccos((far**2 - a**2 - b**2) / (2 * a * b)), 1e-9


def crane(m: pf.Mechanism, s: Any) -> Number:
    """Frequency of the load while the trolley is free [rad/s]. sqrt(g / l (1 + load / trolley))."""
    found = pf.linearise(m, parameters=s.p).frequencies.max()
    return float(found), sqrt(G / s.p["rope"] * (1 + s.p["load"] / s.p["trolley"])), 1e-7


def suspension(m: pf.Mechanism, s: Any) -> Number:
    """Displacement of the wheel inwards [m]. Equal parallel arms: arm (1 - cos)."""
    return s.p["arm"] - point(m, s, "upright", (0, 0, 0))[1], s.p["arm"] * (1 - cos(s.q["lower"])), 1e-9


def quarter_car(m: pf.Mechanism, s: Any) -> Number:
    """Height of the car at rest relative to that without load [m]. Newton's method in the plane, `_car_at_rest`."""
    found = pf.equilibrium(m, parameters=s.p).named["ride"]
    return float(found), _car_at_rest(s.p), 1e-6


def _car_at_rest(p: Mapping[str, float]) -> float:
    """Height of the car at rest [m], where the gradient of the energy of car, arms and upright in the plane (y, z) is zero.

    Multipliers keep the upper ball joint closed. No force in this plane turns the wheel about the line between its ball joints,
    so the tie rod carries no load.
    """
    low, arm, tall, seat = p["wheel"] - p["tall"] / 2, p["arm"], p["tall"], p["seat"]

    def at(x: Any, y: Any, z: float) -> Any:
        return np.array([y * np.cos(x) - z * np.sin(x), y * np.sin(x) + z * np.cos(x)])

    def lagrangian(x: np.ndarray) -> Any:
        ride, y1, z1, lower, y2, z2, upper, turn = x[:8]
        foot, top = np.array([y1, low + ride + z1]), np.array([y2, low + ride + z2 + tall])
        ball = foot + at(lower, arm, 0)
        hub = ball + at(turn, 0.12, tall / 2)
        coil = np.array([seat, low + ride + 0.5]) - foot - at(lower, seat, 0)
        weight = p["sprung"] * ride + 4 * (foot + ball)[1] / 2 + 3 * (top + at(upper, arm / 2, 0))[1]
        weight += 12 * (ball + at(turn, 0, tall / 2))[1] + 16 * hub[1]
        rubber = p["radial"] * (y1**2 + z1**2 + y2**2 + z2**2) + 2 * p["twist"] * (2 - np.cos(lower) - np.cos(upper))
        sunk = p["side"] * (hub[0] - arm - 0.12) ** 2 + p["tyre"] * (hub[1] - p["wheel"]) ** 2
        loaded = p["k"] * (np.sqrt(coil @ coil) - 0.5 - p["preload"] / p["k"]) ** 2
        return G * weight + rubber + (sunk + loaded) / 2 + 1e6 * x[8:] @ (ball + at(turn, 0, tall) - top - at(upper, arm, 0))

    def slopes(x: np.ndarray) -> np.ndarray:
        return np.array([lagrangian(x + 1e-30j * way).imag / 1e-30 for way in np.eye(10)])

    x, near = np.zeros(10), 1e-6 * np.eye(10)
    for _ in range(12):
        x = x - np.linalg.solve([(slopes(x + way) - slopes(x - way)) / 2e-6 for way in near], slopes(x))
    return float(x[0])


# -- linkages in space ----------------------------------------------------------------------------------------------------


def bennett(m: pf.Mechanism, s: Any) -> Number:
    """Product of the tangents of half of neighbouring angles. Bennett: sin((beta + alpha) / 2) / sin((beta - alpha) / 2)."""
    alpha, b, a = s.p["alpha"], s.p["b"], s.p["a"]
    beta = asin(b / a * sin(alpha))
    product = tan(s.q["hinge 1"] / 2) * tan(s.q["hinge 2"] / 2)
    return product, sin((beta + alpha) / 2) / sin((beta - alpha) / 2), 1e-8


def goldberg(m: pf.Mechanism, s: Any) -> Number:
    """Angle of the third hinge [rad]. SciPy's least_squares on the product of the links' matrices, without the library."""
    return s.q["hinge 3"], -0.1495048, 1e-6


def bricard(m: pf.Mechanism, s: Any) -> Number:
    """Cosine of the second angle. Threefold symmetry [chen05]: cos 1 + cos 2 + cos 1 cos 2 = 0 with right twists."""
    first = cos(s.q["hinge 1"])
    return cos(s.q["hinge 2"]), -first / (1 + first), 1e-8


def schatz(m: pf.Mechanism, s: Any) -> Number:
    """Angle of the third hinge [rad]. SciPy's least_squares on the product of the links' matrices, without the library."""
    return s.q["hinge 3"], 4.89718861 - 2 * np.pi, 1e-6


def sarrus(m: pf.Mechanism, s: Any) -> Number:
    """Height of the plate [m]. 2 link sin(angle)."""
    return point(m, s, "plate", (0, 0, 0))[2], 2 * s.p["link"] * sin(s.q["foot x"]), 1e-9


def spatial_parallelograms(m: pf.Mechanism, s: Any) -> Number:
    """Acceleration of the upper storey [rad/s^2]. Two rods in a chain, beams as masses: two equations by hand."""
    p, q = s.q["left 1"], s.q["left 2"]
    M = np.array([[2 * (0.1 + 0.25) + 1 + 3, 2 * cos(p - q)], [2 * cos(p - q), 2 * (0.1 + 0.25) + 1]])
    f = np.array([-G * sin(p) * (2 * 0.5 + 1 + 3), -G * sin(q) * (2 * 0.5 + 1)])
    return acceleration(m, s, "left 1"), float(np.linalg.solve(M, f)[0]), 1e-8


def cardan(m: pf.Mechanism, s: Any) -> Number:
    """Speed of the output over that of the input. cos(bend) / (1 - sin^2(bend) sin^2(angle))."""
    bend = s.p["bend"]
    return s.v["load"] / s.v["drive"], cos(bend) / (1 - (sin(bend) * sin(s.q["drive"])) ** 2), 1e-9


def screw_press(m: pf.Mechanism, s: Any) -> Number:
    """Acceleration of the flywheel [rad/s^2]. (torque + lead (wheel's 20 kg + ram) g) / (J + lead^2 (20 kg + ram))."""
    lead, both = s.p["lead"], 20 + s.p["ram"]
    return acceleration(m, s, "spindle"), (s.u["motor"] + lead * both * G) / (s.p["wheel"] + lead**2 * both), 1e-9


def delta(m: pf.Mechanism, s: Any) -> Number:
    """Height of the plate [m]. -crank sin - sqrt(rod^2 - (hub + crank cos - plate)^2)."""
    angle, crank = s.q["crank 1"], s.p["crank"]
    across = s.p["hub"] + crank * cos(angle) - s.p["plate"]
    return s.q["plate.z"], -crank * sin(angle) - sqrt(s.p["rod"] ** 2 - across**2), 1e-9


def stewart(m: pf.Mechanism, s: Any) -> Number:
    """Length of each leg at its middle height [m]. From foot to head: sqrt(1 + 0.6^2 - 1.2 cos 40 + 0.8^2)."""
    return s.q["leg 4"], sqrt(1 + 0.36 - 1.2 * cos(np.radians(40)) + 0.64), 1e-9


# -- what rolls and slides ------------------------------------------------------------------------------------------------


def bicycle(m: pf.Mechanism, s: Any) -> Number:
    """Fastest rate at which the bicycle falls at rest [1/s]. 5.53094371765393 in table 2 of Meijaard and others (2007)."""
    rates = pf.linearise(m, parameters=s.p).eigenvalues.real
    return float(rates.max()), 5.53094371765393, 1e-6


def sleigh(m: pf.Mechanism, s: Any) -> Number:
    """Angular acceleration [rad/s^2]. -m a v w / (I + m a^2), the equation of Chaplygin."""
    mass, a = s.p["m"], s.p["a"]
    expected = -mass * a * s.v["ice.vx"] * s.v["ice.wz"] / (s.p["I"] + mass * a**2)
    return acceleration(m, s, "ice.wz"), expected, 1e-9


def snakeboard(m: pf.Mechanism, s: Any) -> Number:
    """Forward acceleration while the rotor is driven [m/s^2]. -t torque / (m + I t^2), t = tan(angle) / half."""
    t = tan(s.q["front"]) / s.p["half"]
    turning = 0.3 + 2 * 0.1 * s.p["half"] ** 2
    return acceleration(m, s, "floor.vx"), -t * s.u["swing"] / (8.2 + turning * t**2), 1e-9


def roller_racer(m: pf.Mechanism, s: Any) -> Number:
    """Forward acceleration [m/s^2]. Mass matrix and rows of both axles by hand, in NumPy."""
    a, b, x = s.p["long"], s.p["short"], s.q["steer"]
    c, d, k = 0.1, 0.05, cos(x)
    J = np.array([[1, 0, d * sin(x), d * sin(x)], [0, 1, a - d * k, -d * k]])
    M = 0.8 * J.T @ J
    M[:3, :3] += 3 * np.array([[1, 0, 0], [0, 1, c], [0, c, c**2]])
    M[2, 2] += 0.1
    M[2:, 2:] += 0.02
    A = np.array([[0, 1, 0, 0], [-sin(x), k, a * k - b, -b]])
    return acceleration(m, s, "floor.vx"), float(rates(M, A, np.array([0, 0, 0, s.u["arms"]]))[0]), 1e-9


def rattleback(m: pf.Mechanism, s: Any) -> Number:
    """Faster frequency of rocking [rad/s]. Mass and stiffness matrices of both directions, from the curvatures, in NumPy."""
    a, b, c, h = (s.p[n] for n in "abch")
    M = np.array([[0.0002, -0.00002], [-0.00002, 0.0016]]) + h**2 * np.eye(2)
    K = G * np.diag([b**2 / c - h, a**2 / c - h])
    found = pf.linearise(m, {"base.z": h}, parameters=s.p).frequencies.max()
    return float(found), float(np.sqrt(np.linalg.eigvals(np.linalg.solve(M, K)).real.max())), 1e-6


def chaplygin_sphere(m: pf.Mechanism, s: Any) -> Number:
    """Angular acceleration about x [rad/s^2]. (I + m r^2 (1 - n n)) w' = I w x w, in NumPy."""
    w, r = np.array([s.v[f"base.w{x}"] for x in "xyz"]), s.p["r"]
    I, D = np.diag([0.002, 0.003, 0.0045]), r**2 * np.diag([1.0, 1.0, 0.0])
    return acceleration(m, s, "base.wx"), float(np.linalg.solve(I + D, np.cross(I @ w, w))[0]), 1e-9


def coin(m: pf.Mechanism, s: Any) -> Number:
    """Rate of the energy [W]. Zero: the coin rolls without slip, and nothing drives it."""
    r = pf.run(m, s.q, s.v, duration=0.05, parameters=s.p, every=50, record=("energy",), backend="interpreter", error_bound=1.0)
    return float(r.energy[-1] - r.energy[0]) / 0.05, 0.0, 1e-9


def segway(m: pf.Mechanism, s: Any) -> Number:
    """Angular acceleration of the fall [rad/s^2]. Two equations of a pendulum on wheels, solved by hand."""
    r, l, q = s.p["r"], s.p["l"], s.q["lean"]
    torque = s.u["left motor"] + s.u["right motor"]
    M = np.array([[48 + 2 * 0.06 / r**2, 40 * l * cos(q)], [40 * l * cos(q), 3 + 40 * l**2]])
    found = np.linalg.solve(M, [torque / r, 40 * G * l * sin(q) - torque])
    return acceleration(m, s, "lean"), float(found[1]), 1e-8


def rover_with_trailer(m: pf.Mechanism, s: Any) -> Number:
    """Rate of the angle between rover and trailer over the speed [rad/m]. From the directions in which the axles can move."""
    turn, q = tan(s.q["steer"]) / s.p["wheelbase"], s.q["hitch"]
    return s.v["hitch"] / s.v["floor.vx"], -(sin(q) + turn * s.p["hitch"] * cos(q)) / s.p["trailer"] - turn, 1e-9


def wheel_set(m: pf.Mechanism, s: Any) -> Number:
    """Acceleration down the slope [m/s^2]. m g sin / (m + 2 J / r^2)."""
    mass = s.p["load"] + 2 * s.p["m"]
    return acceleration(m, s, "slope.vx"), mass * 2 / (mass + 2 * s.p["J"] / s.p["r"] ** 2), 1e-9


# -- what spins -----------------------------------------------------------------------------------------------------------


def tippe_top(m: pf.Mechanism, s: Any) -> Number:
    """Spin along the line from mass centre to contact, times its length, after 0.2 s [kg m^3/s]. Jellett: C w (r cos - e)."""

    def jellett(k: pf.Kinematics) -> ca.SX:
        V, n = k.twist("top", "LOCAL"), k.rotation("top").T @ ca.DM([0, 0, 1])
        spin = ca.vertcat(s.p["A"], s.p["A"], s.p["C"]) * V[3:]
        return -ca.dot(spin, ca.vertcat(0, 0, s.p["e"]) - s.p["r"] * n)

    turned = dict(duration=0.2, step=2e-4, every=1000, record=("q",), outputs={"J": jellett}, error_bound=1.0)
    r = pf.run(m, s.q, s.v, parameters=s.p, backend="interpreter", **turned)
    return float(r.J[-1]), s.p["C"] * s.v["spin"] * (s.p["r"] * cos(s.q["tilt"]) - s.p["e"]), 1e-12


def gyroscope(m: pf.Mechanism, s: Any) -> Number:
    """Acceleration of the axle downwards [rad/s^2]. Zero at the precession m g l / (C w) of a horizontal axle."""
    return acceleration(m, s, "nutation"), 0.0, 1e-9


def windmill(m: pf.Mechanism, s: Any) -> Number:
    """Moment in the shaft's bearing, less that without yaw [N m]. J times the rates of rotor and yaw."""
    moments = [pf.reaction_wrench(m, "shaft", s.q, v, parameters=s.p).wrench[4] for v in (s.v, {**s.v, "yaw": 0.0})]
    return float(moments[0] - moments[1]), s.p["J"] * s.v["shaft"] * s.v["yaw"], 1e-7


# -- what flies -----------------------------------------------------------------------------------------------------------


def quadcopter(m: pf.Mechanism, s: Any) -> Number:
    """Acceleration of the frame upwards [m/s^2]. (thrusts - weight - the rope's pull of 60 N/m over 0.05 m) / 1.2 kg."""
    return acceleration(m, s, "fly.vz"), (sum(s.u.values()) - 1.2 * G - 60 * 0.05) / 1.2, 1e-9


def hexarotor(m: pf.Mechanism, s: Any) -> Number:
    """Thrust of each rotor that holds the machine [N]. m g / (6 cos 20)."""
    still = {name: 0.0 for name in s.v}
    return (
        float(pf.inverse_dynamics(m, s.q, still, still, parameters=s.p).u.max()),
        s.p["m"] * G / (6 * cos(np.radians(20))),
        1e-6,
    )


def bicopter(m: pf.Mechanism, s: Any) -> Number:
    """Acceleration upwards [m/s^2]. Both thrusts times the cosine of their tilt, over the whole mass, less g."""
    mass = s.p["m"] + 0.04
    centre = acceleration(m, s, "fly.vz")
    return centre, (s.u["left rotor"] + s.u["right rotor"]) * cos(s.q["left tilt"]) / mass - G, 1e-9


def drones_with_bar(m: pf.Mechanism, s: Any) -> Number:
    """Pull of both rods on the bar [N]. The bar's weight, times the thrusts over the whole weight."""
    pull = pf.forward_dynamics(m, s.q, s.v, s.u, parameters=s.p).reaction[m.v_names.index("bar.vz")]
    return float(pull), s.p["bar"] * sum(s.u.values()) / (s.p["bar"] + 2 * s.p["m"]), 1e-7


def satellite(m: pf.Mechanism, s: Any) -> Number:
    """Angular momentum about z [N m s]. J w of the one wheel that spins; the rest is at rest."""
    return float(pf.momentum(m, s.q, s.v, parameters=s.p)[5]), s.p["J"] * s.v["wheel z"], 1e-9


def two_arm_spacecraft(m: pf.Mechanism, s: Any) -> Number:
    """Rate of the angular momentum about the chaser's middle [N m]. The jet's force times its distance; it starts at rest."""
    v_dot = pf.forward_dynamics(m, s.q, s.v, s.u, parameters=s.p).v_dot
    return float(pf.momentum(m, s.q, v_dot, parameters=s.p)[5]), -0.2 * s.u["jet"], 1e-8
