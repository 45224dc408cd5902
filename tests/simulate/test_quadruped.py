"""A quadruped on feet that touch the ground stands, and trots in open loop."""

import casadi as ca
import numpy as np

import pfaffian as pf
from tests.tolerance import close

OPEN = {"hip": 0.0, "thigh": 0.8, "calf": -1.6}
"""Joint angles of a standing leg [rad]."""

LEGS = {"FL": 0.0, "FR": np.pi, "RL": np.pi, "RR": 0.0}
"""Phase of each leg in the trot [rad]."""

GAIT = pf.Parameter("gait", 0.0)


def reference(part: str, phase: float, t: ca.SX) -> ca.SX:
    turn = 4 * np.pi * t + phase
    lift, swing = GAIT * ca.fmax(0, ca.sin(turn)), GAIT * ca.cos(turn)
    return OPEN[part] + {"hip": 0, "thigh": 0.35 * lift - 0.12 * swing, "calf": -0.7 * lift}[part]


def hold(leg: str, part: str) -> pf.Mechanism:
    j = f"{leg}_{part}_joint"
    return pf.forces.generalised_force(
        f"hold {j}", lambda k: 120 * (reference(part, LEGS[leg], k.t) - k.joint(j)) - 3 * k.joint_rate(j), joint=j
    )


def test_go2_stands_and_lifts_its_feet_in_a_trot():
    """At steps of 1 ms. When it stands, the ground carries its weight; in the trot two feet leave the ground and the others
    do not slip."""
    path = pf.formats.installed("example-robot-data", "go2_description/urdf/go2.urdf", "test_quadruped")
    m, foot = pf.formats.read_urdf(path, base="free"), pf.shape("sphere", radius=0.022)
    rubber = {"shape_a": foot, "stiffness": 3e4, "exponent": 1.0, "damping": 10.0, "friction": 0.8, "creep": 0.02}
    feet = [pf.forces.contact(f"{leg} ground", f"{leg}_foot", **rubber) for leg in LEGS]
    servos = [hold(leg, part) for leg in LEGS for part in OPEN]
    m = m.with_(forces=[*feet, *servos], parameters=[GAIT])
    stance = {f"{leg}_{part}_joint": angle for leg in LEGS for part, angle in OPEN.items()}
    high = 0.022 - pf.forward_kinematics(m, stance)["FL_foot"].position[2]
    r = pf.run(
        m, stance | {"root_joint.z": high}, duration=0.36, every=5, parameters={"gait": [0.0, 1.0]},
        scheme=pf.Scheme(integrator="tr-bdf2", iterations=12), error_bound=np.inf, backend="interpreter",
        outputs={leg: (lambda k, leg=leg: k.position(f"{leg}_foot")) for leg in LEGS},
    )  # fmt: skip
    assert (r.status == 0).all()
    depth = sum(0.022 - r[leg].values[0, :, 2] for leg in LEGS)
    weight = 9.81 * sum(float(ca.DM(b.mass)) for b in m.bodies)
    close(3e4 * depth[-10:].mean(), weight, 0.05, "carried by the ground")
    lifted = {leg: r[leg].values[1, :, 2].max() for leg in LEGS}
    assert lifted["FL"] > 0.05 and lifted["RR"] > 0.05, lifted
    still = [float(np.abs(np.diff(r[leg].values[1, 10:40, 0])).max()) for leg in ("FR", "RL")]
    assert max(still) < 1e-3, "feet on the ground stay where they are"
