"""Default values of optional arguments: they must not change, since models rely on them."""

import numpy as np
import pytest

import pfaffian as pf

ORIGIN, UP, STILL, OPEN = (0, 0, 0), (0, 0, 1), (0, 0, 0), (-np.inf, np.inf)
PLANE = {"plane": pf.rolling.plane()}
K = pf.forces.pseudo_matrix(3.0, (0.1, 0.2, 0.3), 0.5)
SLIDING = {"stribeck": 0.01, "viscous": 0.0, "smooth": 1e-3}

# Function, required arguments, optional arguments with their documented defaults.
MADE = {
    "actuator": (pf.actuator, ("a", "j"), {"component": 0, "gear": 1.0, "limits": OPEN}),
    "thruster": (pf.forces.thruster, ("a", "b"), {"axis": UP, "point": ORIGIN, "torque": 0.0, "limits": OPEN}),
    "transmission": (pf.forces.transmission, ("a", {"j": 1.0}), {"limits": OPEN}),
    "wrench": (pf.wrench, ("w", "b"), {"value": None, "point": ORIGIN, "axes": "WORLD", "by": None}),
    "spring": (pf.spring, ("s", "a", "b"), {"stiffness": 0.0, "rest": 0.0, "damping": 0.0, "point_a": ORIGIN,
                                            "point_b": ORIGIN}),
    "pose spring": (pf.forces.pose_spring, ("s", "a", "b", K), {"rest": pf.pose(ORIGIN)}),
    "pseudo-matrix": (pf.forces.pseudo_matrix, (2.0,), {"centre": ORIGIN, "moments": 0.0}),
    "joint friction": (pf.forces.joint_friction, ("f", "j", 0.3), SLIDING | {"static": 0.3}),
    "contact friction": (
        lambda *given, **more: pf.forces.contact_friction(*given, normal=UP, load=9.0, coefficient=0.4, **more),
        ("f", "a", "b"), SLIDING | {"static": 0.4, "point": ORIGIN},
    ),
    "drag": (pf.forces.drag, ("d", "b", 0.2), {"coefficient": 1.0, "density": 1.225, "point": ORIGIN, "wind": STILL}),
    "propeller": (
        lambda *given, **more: pf.forces.propeller(*given, thrust=2.0, **more),
        ("p", "b", 3.0), {"torque": 0.0, "handed": "right", "axis": UP, "point": ORIGIN},
    ),
    "plane": (pf.rolling.plane, (), {"on": "world", "through": ORIGIN, "normal": UP, "rate": 0.0}),
    "rolling disk": (pf.rolling.disk, ("d", "b", 0.5), PLANE | {"axis": UP, "centre": ORIGIN}),
    "rolling wheel": (pf.rolling.wheel, ("d", "b", 0.5), PLANE | {"axis": UP, "centre": ORIGIN}),
    "rolling sphere": (pf.rolling.sphere, ("d", "b", 0.5), PLANE | {"centre": ORIGIN}),
    "knife edge": (pf.rolling.knife_edge, ("d", "b", (1, 0, 0)), PLANE | {"point": ORIGIN}),
    "joint": (
        pf.joint, ("j", "revolute", "world", "b"),
        {"axis": UP, "placement": ORIGIN, "child_placement": ORIGIN, "stiffness": 0.0, "rest": 0.0, "damping": 0.0,
         "armature": 0.0, "limits": OPEN, "effort": np.inf, "distribution": None, "speeds": None, "mimic": None},
    ),
    "closure": (
        pf.closure, ("c", "revolute", "a", "b"),
        {"placement_a": ORIGIN, "placement_b": ORIGIN, "axis": UP, "axis_b": None, "pitch": None, "length": None},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MADE)
def test_defaults_are_as_documented(name):
    make, given, rest = MADE[name]
    plain, explicit = make(*given), make(*given, **rest)
    if name == "pseudo-matrix":
        plain, explicit = str(plain), str(explicit)
    assert plain == explicit


@pytest.mark.parametrize("name", [n for n in MADE if n not in ("pseudo-matrix", "closure")])
def test_every_optional_argument_counts(name):
    """Any other value of an optional argument gives an unequal part; otherwise comparing the defaults would prove nothing."""
    make, given, rest = MADE[name]
    plain = make(*given)
    for argument, value in rest.items():
        if argument in OTHER and (name, argument) != ("pose spring", "rest"):
            assert make(*given, **rest | {argument: OTHER[argument]}) != plain, (argument, value)


OTHER = {
    "gear": 2.0, "limits": (-1, 1), "axis": (1, 0, 0), "point": (0, 0, 0.1), "torque": 0.1, "axes": "LOCAL", "by": "c",
    "damping": 0.1, "point_a": (0, 0.1, 0), "point_b": (0, 0.1, 0), "stribeck": 0.02, "viscous": 0.1, "smooth": 2e-3,
    "static": 0.6, "coefficient": 1.1, "density": 1.0, "wind": (0, 0, 1), "handed": "left", "on": "c", "through": (0, 0, 1),
    "normal": (0, 1, 0), "rate": 0.1, "centre": (0, 0, 0.1), "placement": (0, 0, 1), "child_placement": (0, 0, 1),
    "plane": pf.rolling.plane(rate=0.1), "stiffness": 0.1, "rest": 0.1, "armature": 0.1, "effort": 5.0,
}  # fmt: skip
OTHER_POSE = pf.pose((0, 0, 0.1))


def test_the_rest_of_a_pose_spring_counts():
    assert pf.forces.pose_spring("s", "a", "b", K, rest=OTHER_POSE) != pf.forces.pose_spring("s", "a", "b", K)
