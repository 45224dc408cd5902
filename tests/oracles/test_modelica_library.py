"""Examples of the Modelica Standard Library 4.0 (MultiBody), at default settings.

PUBLISHED: the Modelica Association's reference results, by Dymola at a tolerance of 1e-6, correct to 1e-3 to 1e-5. The tables
solve the same problems to ten digits, in absolute coordinates by DOP853 with tolerances of 1e-12.
"""

from __future__ import annotations

from typing import NamedTuple

import casadi as ca
import numpy as np
import pytest

import pfaffian as pf
from tests.tolerance import close

PUBLISHED = 5e-4
"""Tolerance relative to the largest number: error of the reference results over a motion of some turns."""

GRAVITY, GRAVITY_Z = (0, -9.80665, 0), (0, 0, -9.80665)
DENSITY = 7700.0
X, Y, Z = np.eye(3)


def rod(name: str, r, across: float, about_r: float, mass: float) -> pf.Body:
    """A rod along r (3,) from the body's origin; across, about_r: its moments [m^2] per mass about its centre."""
    r = np.array(r, dtype=float)
    e = np.outer(r, r) / (r @ r)
    return pf.body(name, mass, com=r / 2, inertia=mass * (about_r * e + across * (np.eye(3) - e)))


def cylinder(name: str, r, d: float) -> pf.Body:
    long = np.linalg.norm(r)
    return rod(name, r, long**2 / 12 + d**2 / 16, d**2 / 8, DENSITY * np.pi * long * d**2 / 4)


def box(name: str, r, width: float) -> pf.Body:
    """A box of square section along r (3,)."""
    long = np.linalg.norm(r)
    return rod(name, r, (long**2 + width**2) / 12, width**2 / 6, DENSITY * long * width**2)


def turned(degrees: float, axis: int) -> np.ndarray:
    """Rotation (3, 3) about axis 0, 1 or 2, that is x, y or z."""
    c, s = np.cos(np.radians(degrees)), np.sin(np.radians(degrees))
    return np.roll(np.array([[1, 0, 0], [0, c, -s], [0, s, c]]), axis, (0, 1))


def wrapped(angle: np.ndarray) -> np.ndarray:
    """Angles wrapped into (-pi, pi]."""
    return np.angle(np.exp(1j * angle))


# -- Loops ------------------------------------------------------------------------------------------------------------


def spatial_four_bar() -> pf.Mechanism:
    """Loops.Fourbar1: revolute, prismatic, universal and spherical joints in one loop."""
    bodies = [cylinder("b1", (0, 0.5, 0.1), 0.05), cylinder("b2", (0, 0.2, 0), 0.05), cylinder("b3", (-1, 0.3, 0.1), 0.05)]
    about_y_then_z = np.column_stack([Y, Z, X])
    joints = [
        pf.joint("phi", "revolute", "world", "b1", axis=X),
        pf.joint("s", "prismatic", "world", "b2", axis=X, placement=(1.2, 0, 0)),
        pf.joint("universal", "universal", "b2", "b3", placement=pf.pose((0, 0.2, 0), rotation=about_y_then_z),
                 child_placement=pf.pose(rotation=about_y_then_z)),
    ]  # fmt: skip
    ball = pf.coincide("ball", "b3", (-1, 0.3, 0.1), "b1", (0, 0.5, 0.1))
    return pf.mechanism("spatial four-bar", bodies, joints, constraints=[ball], gravity=GRAVITY)


SPATIAL = np.array([  # t, phi (wrapped), phi', s
    [1, 1.518978118366, 9.361708251304, -0.3222684380297],
    [2, -2.31343341482, 10.44177889976, -0.3668007926184],
    [3, -0.6119830875228, 5.56862612967, -0.2066814494977],
    [4, 0.6001096315514, 6.537602840524, -0.2291934160962],
    [5, 40.32916546194 - 12 * np.pi, 11.74044280231, -0.4215266379814],
])  # fmt: skip
SPATIAL_PUBLISHED = (40.32823622, 11.73942190)


def test_spatial_four_bar():
    """Motion over six turns, and acceleration and force on the rod at the start."""
    m = spatial_four_bar()
    push = lambda T, motion: T.kinematics.specific_force("b3", motion.v_dot, (-0.5, 0.15, 0.05)) * m.value(m.body("b3").mass)  # noqa: E731
    outputs = {"v_dot": pf.of_motion(lambda T, motion: motion.v_dot), "push": pf.of_motion(push)}
    for step, bar in ((1e-3, 1e-7), (2.5e-4, 1e-9)):
        every = round(1 / step)
        r = pf.run(m, {"s": -0.2}, {"phi": 5.235987755982989}, duration=5.0, step=step, every=every, outputs=outputs)
        phi, s = r.q.values[1:, 0], r.q.values[1:, 1]
        close(np.column_stack([wrapped(phi), s]), SPATIAL[:, [1, 3]], bar, f"Fourbar1 at {step} s", 1.0)
        close(r.v.values[1:, 0], SPATIAL[:, 2], bar, f"Fourbar1 at {step} s, phi'")
    close([phi[-1], r.v.values[-1, 0]], SPATIAL_PUBLISHED, PUBLISHED, "Fourbar1, published")
    close(r.v_dot.values[0, 0], 5.42007856985, 1e-10, "Fourbar1, acceleration")
    close(r.push.values[0], (-22.68262801722, 42.52417681921, -0.2498841036), 1e-10, "Fourbar1, force on the rod")
    assert (r["rank"] == 3).all()


PLANAR = np.array([  # t, phi1 (wrapped), phi1'
    [1, -1.821090896419, 12.455705724],
    [2, 2.658714122101, 0.0198030286873],
    [5, -0.940165296781, 6.99604685686],
])  # fmt: skip


def test_planar_four_bar_of_spatial_revolutes():
    """Loops.PlanarFourbar: three redundant rows, for which Modelica needs a joint of another kind."""
    bodies = [box("b1", (0.4, 0, 0), 0.05), box("b2", (0.1, 1.1, 0), 0.05), box("b4", (0.65, 0.1, 0), 0.05)]
    joints = [
        pf.joint("phi1", "revolute", "world", "b1", damping=0.1),
        pf.joint("phi2", "revolute", "b1", "b2", placement=(0.4, 0, 0)),
        pf.joint("phi4", "revolute", "world", "b4", placement=(-0.15, 1, 0)),
    ]
    cut = pf.closure("cut", "revolute", "b4", "b2", placement_a=(0.65, 0.1, 0), placement_b=(0.1, 1.1, 0))
    m = pf.mechanism("planar four-bar", bodies, joints, constraints=[cut], gravity=GRAVITY)
    r = pf.run(m, duration=5.0, every=1000, outputs={"v_dot": pf.of_motion(lambda T, motion: motion.v_dot)})
    at = PLANAR[:, 0].astype(int)
    found = np.column_stack([wrapped(r.q.values[at, 0]), r.v.values[at, 0]])
    close(found, PLANAR[:, 1:], 1e-8, "PlanarFourbar", 1.0)
    close(found[-1], (-0.93978340, 6.99349011), PUBLISHED, "PlanarFourbar, published")
    close(r.v_dot.values[0, 0], -27.0041238494, 1e-11, "PlanarFourbar, acceleration")
    assert (r["rank"] == 2).all()
    assert r.sizes["row"] == 5


# -- Elementary: rolling ----------------------------------------------------------------------------------------------

WHEEL = np.array([  # t, x, y, axle (3), angular velocity in the body (3)
    [1, 0.7005793906571, -0.7093588659347, -0.1390585603825, -0.7961681747885, 0.5888794055138,
     2.142916988051, 5.404265790789, -1.629640532678],
    [2, -0.8393906777373, -0.4326189791944, -0.0029991768467, -0.7306983160349, -0.6826939108283,
     -3.140965589191, 5.598944434327, -0.3531696047733],
    [4, 0.16300348298, -2.23761434166, -0.2507053917, -0.83256587684, 0.4939441945,
     -0.79001582759, 5.26442266923, 2.13882721453],
])  # fmt: skip


def test_rolling_wheel():
    """Elementary.RollingWheel: yaw, lean and spin of one disk."""
    wheel = pf.body("wheel", 2.0, inertia=(0.12, 0.06, 0.12))
    roll = pf.rolling.disk("roll", "wheel", 0.3, axis=Y)
    m = pf.mechanism("wheel", [wheel], [pf.joint("free", "free", "world", "wheel")], constraints=[roll], gravity=GRAVITY_Z)
    outputs = {
        "at": lambda k: k.position("wheel")[:2],
        "axle": lambda k: k.rotation("wheel")[:, 1],
        "spin": lambda k: k.twist("wheel")[3:],
    }
    q, v = [0.2, 0.2, 0.3, 0, 0, 0, 1], [1.5, -0.3, 0, 1, 5, 0]
    r = pf.run(m, q, v, duration=4.0, every=1000, outputs=outputs)
    found = np.hstack([r[name].values[WHEEL[:, 0].astype(int)] for name in outputs])
    close(found, WHEEL[:, 1:], 1e-8, "RollingWheel", 1.0)
    close(found[-1, :2], (0.1625467804, -2.2377848070), PUBLISHED, "RollingWheel, published")


def wheel_set(forces: list) -> pf.Mechanism:
    """Two wheels on a massless axle that carries a load; their sideways rows are the same."""
    bodies = [pf.body("axle"), pf.body("load", 0.01, inertia=0.001)]
    bodies += [pf.body(name, 0.5, inertia=(0.02, 0.01, 0.02)) for name in ("wheel1", "wheel2")]
    joints = [
        pf.joint("base", "planar", "world", "axle", placement=(0, 0, 0.1)),
        pf.joint("stay", "fixed", "axle", "load", placement=(0.2, 0, 0)),
        pf.joint("theta1", "revolute", "axle", "wheel1", axis=Y, placement=(0, 0.25, 0)),
        pf.joint("theta2", "revolute", "axle", "wheel2", axis=Y, placement=(0, -0.25, 0)),
    ]
    rows = [pf.rolling.wheel(f"roll {name}", name, 0.1, axis=Y) for name in ("wheel1", "wheel2")]
    return pf.mechanism("wheel set", bodies, joints, constraints=rows, forces=forces, gravity=GRAVITY_Z)


def torque(angle: float):
    return lambda k: -2 * ca.sin(2 * np.pi * k.t + angle)


def pull(k: pf.Kinematics) -> ca.SX:
    """Force that changes from (1, 0) N to (0, 2) N between t = 1 s and t = 2 s."""
    s = ca.fmin(1, ca.fmax(0, k.t - 1))
    return ca.vertcat(1 - s, 2 * s, 0, 0, 0, 0)


DRIVEN = np.array([  # t, x, y, phi, theta1', theta2'
    [1, -0.8885977488537, -0.1096271669352, -2.790651578301, 0.0820538140238, 0.2416048004969],
    [2, -0.0433742880932, 0.4323489790756, 0.733816044937, 0.1661128544368, 0.4841835361372],
    [3, -0.6127161691443, -0.386803446123, -1.993181371587, 0.2522193756874, 0.7277006047649],
])  # fmt: skip
PULLED = np.array([
    [1, 0.1 + 1 / (2 * 3.01), 0.1, 0, 3.322259136213, 3.322259136213],
    [2, 0.7123789695504, 0.1359591674608, 0.2857593644617, 3.233108545433, 7.488280229366],
    [3, 1.052138960247, 0.7083296011202, 1.770794031673, 5.823798959823, 14.67387014837],
])  # fmt: skip


@pytest.mark.parametrize(
    ("name", "forces", "expected", "published"),
    [
        ("Driving",
         [pf.forces.generalised_force("drive 1", torque(0), joint="theta1"),
          pf.forces.generalised_force("drive 2", torque(np.pi / 2), joint="theta2")],
         DRIVEN, (-0.61271531, -0.38680361, 10.57319065, 0.25222407, 0.72770107)),
        ("Pulling", [pf.wrench("pull", "load", pull)], PULLED,
         (1.05214181, 0.70833243, 1.77078953, 5.82381144, 14.67387603)),
    ],
)  # fmt: skip
def test_rolling_wheel_set(name, forces, expected, published):
    """Elementary.RollingWheelSet...: four rows of rank three."""
    m = wheel_set(forces)
    r = pf.run(m, {"base.x": 0.1, "base.y": 0.1}, duration=3.0, every=1000)
    assert (r["rank"] == 3).all()
    phi = r.q.values[1:, 2]
    wheels = [m.v_names.index(n) for n in ("theta1", "theta2")]
    found = np.column_stack([r.q.values[1:, :2], wrapped(phi), r.v.values[1:, wheels]])
    close(found, expected[:, 1:], 2e-9, f"RollingWheelSet{name}", 1.0)
    found[-1, 2] = phi[-1]
    close(found[-1], published, 2e-5, f"RollingWheelSet{name}, published", 1.0)


# -- Constraints: one free body and one closure -----------------------------------------------------------------------


class ClosedBody(NamedTuple):
    """A body on a spring and a single closure.   at: attachment of the spring on the body.
    found: entries of (r, w) in the table, for t = 1, 5, 10."""

    closure: dict
    at: tuple[float, float, float]
    found: list[int]
    table: list
    published: tuple[float, ...]


CLOSED_BODIES = {
    "Spherical": ClosedBody(
        {"kind": "spherical"}, (0.4, 0, 0), [3, 4, 5],
        [[0, -2.210953014913, -0.9160929877959], [0, 0.6182120252658, 0.2561518483193], [0, -1.214262931253, -0.5031213911641]],
        (0, -1.21424, -0.50299),
    ),
    "Universal": ClosedBody(
        {"kind": "universal", "axis": Z, "axis_b": X}, (0.5, 0.15, 0.2), [3, 4, 5],
        [[0.7067368415947, -1.029275650834, -1.176367173367], [-0.4056017969667, 0.7178445068377, 0.4892121238359],
         [1.424831833028, -0.1123547019416, -1.179483675058]],
        (1.42481, -0.11231, -1.17946),
    ),
    "Revolute": ClosedBody(
        {"kind": "revolute", "axis": Y}, (0.4, 0, 0), [4],
        [[-2.337338993537], [-0.04907634415111], [0.09814391569882]],
        (0.0981645,),
    ),
    "Prismatic": ClosedBody(
        {"kind": "planar-translation"}, (0.4, 0, 0), [0, 1, 2],
        [[0.2614617639853, -0.9442517577572, -0.00272955692017], [0.2959447591337, -1.3057078696, -0.1164705541587],
         [0.2129531625719, -0.4357770622632, 0.1572744298465]],
        (0.212954, -0.435788, 0.157271),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CLOSED_BODIES)
def test_one_body_in_a_closure(name):
    """Constraints....Constraint: a free joint, and a closure that removes three to five of its motions."""
    case = CLOSED_BODIES[name]
    F = pf.pose((0.2, -0.3, 0.2), rotation=turned(10, 0) @ turned(55, 1) @ turned(68, 2))
    spring = pf.spring("spring", "world", "body", point_a=(0.8, 0, 0.3), point_b=case.at, stiffness=20.0)
    m = pf.mechanism(
        name,
        [pf.body("body", 1.0, com=(0.2, 0, 0), inertia=1.0)],
        [pf.joint("free", "free", "world", "body", placement=F)],
        constraints=[pf.closure("holds", body_a="world", body_b="body", placement_a=F, **case.closure)],
        forces=[spring],
        gravity=GRAVITY,
    )
    outputs = {"r": lambda k: k.position("body"), "w": lambda k: k.twist("body")[3:]}
    r = pf.run(m, duration=10.0, every=1000, outputs=outputs)
    found = np.hstack([r.r.values, r.w.values])[[1, 5, 10]][:, case.found]
    close(found, case.table, 1e-10, f"{name}Constraint", 1.0)
    close(found[-1], case.published, 2e-4, f"{name}Constraint, published", 1.0)


# -- Rotational3DEffects ----------------------------------------------------------------------------------------------

GYROSCOPE = np.array([  # t, angular velocity of the rotor (3) and of the arm (3), each in its own axes
    [1, 10, -8.6522264236, -1.9431681838, 5.9221352895, -4.3688820272, 4.9911405256],
    [5, 10, -6.629432507, 4.387871891, 3.583791032, -7.949304761, -3.734448997],
])  # fmt: skip


def test_gyroscope_on_an_arm():
    """Rotational3DEffects.GyroscopicEffects: the rotor's speed about its axle is constant."""
    bodies = [cylinder("arm", (0.25, 0, 0), 0.05), cylinder("rotor", (0.2, 0, 0), 0.1)]
    joints = [
        pf.joint("ball", "spherical", "world", "arm"),
        pf.joint("axle", "revolute", "arm", "rotor", axis=X, placement=pf.pose((0.25, 0, 0), rotation=turned(45, 1)),
                 child_placement=(0.1, 0, 0)),
    ]  # fmt: skip
    m = pf.mechanism("gyroscope", bodies, joints, gravity=GRAVITY)
    outputs = {"rotor": lambda k: k.twist("rotor")[3:], "arm": lambda k: k.twist("arm")[3:]}
    for step, bar in ((1e-3, 1e-6), (2.5e-4, 1e-8)):
        r = pf.run(m, None, {"axle": 10.0}, duration=5.0, step=step, every=round(1 / step), outputs=outputs)
        found = np.hstack([r.rotor.values, r.arm.values])[[1, 5]]
        close(found, GYROSCOPE[:, 1:], bar, f"GyroscopicEffects at {step} s", 1.0)
    close(found[-1], (10, -6.6293914, 4.3879476, 3.5837945, -7.9493031, -3.7344528), 1e-4, "GyroscopicEffects, published", 1.0)
