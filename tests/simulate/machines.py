"""Small machines that the tests of `simulate` run."""

from __future__ import annotations

import casadi as ca
import numpy as np

import pfaffian as pf
from studies.integrators import START

Y = (0, 1, 0)


def pendulum(length: float = 1.0, motor: bool = True, **joint) -> pf.Mechanism:
    """A point mass of 1 kg on a massless rod, hanging along -z at q = 0."""
    return pf.mechanism(
        "pendulum",
        [pf.body("bob", 1.0, com=(0, 0, -length))],
        [pf.joint("pivot", "revolute", "world", "bob", axis=Y, **joint)],
        actuators=[pf.actuator("motor", "pivot")] if motor else [],
    )


def four_bar(closure: str = "revolute", ground: float = 0.9) -> pf.Mechanism:
    """A crank, a coupler and a rocker in the x-z plane. A revolute closure writes five rows of rank two. With a ground
    longer than 1.8 m the loop cannot close."""
    lengths = {"crank": 0.3, "coupler": 0.8, "rocker": 0.7}
    bodies = [pf.body(n, 1 + l, com=(l / 2, 0, 0), inertia=l * l / 6) for n, l in lengths.items()]
    joints = [
        pf.joint("a", "revolute", "world", "crank", axis=Y),
        pf.joint("b", "revolute", "crank", "coupler", axis=Y, placement=pf.pose((0.3, 0, 0))),
        pf.joint("d", "revolute", "world", "rocker", axis=Y, placement=pf.pose((ground, 0, 0))),
    ]
    end = {"placement_a": pf.pose((0.8, 0, 0)), "placement_b": pf.pose((0.7, 0, 0))}
    close = pf.closure("c", closure, "coupler", "rocker", axis=Y, **end)
    return pf.mechanism("four-bar", bodies, joints, constraints=[close], actuators=[pf.actuator("motor", "a")])


FOUR_BAR_START = np.array(list(START.values()))
"""Closed to the last digit, so that any further motion comes from the run."""


def ball_and_plane() -> pf.Mechanism:
    """A spherical joint, a hinge, and a tip that stays on an inclined plane: a machine with quaternions and a constraint."""
    bodies = [
        pf.body("upper", 1.0, com=(0.3, 0, 0), inertia=(0.02, 0.05, 0.04)),
        pf.body("lower", 0.7, com=(0.2, 0.05, 0), inertia=(0.01, 0.03, 0.02)),
    ]
    joints = [
        pf.joint("shoulder", "spherical", "world", "upper"),
        pf.joint("elbow", "revolute", "upper", "lower", axis=(0.2, 1, 0.3), placement=pf.pose((0.6, 0, 0))),
    ]
    plane = pf.closure(
        "plane", "point-on-plane", "world", "lower", axis=(0.1, 0.2, 1.0),
        placement_a=pf.pose((0, 0, -0.1)), placement_b=pf.pose((0.4, 0, 0)),
    )  # fmt: skip
    return pf.mechanism("ball and plane", bodies, joints, constraints=[plane], gravity=(0, 0, -3.0))


def flying_pair() -> pf.Mechanism:
    """A free body and a second one on a spherical joint: a machine without constraints, with two quaternions."""
    bodies = [
        pf.body("hull", 2.0, inertia=(0.3, 0.4, 0.5)),
        pf.body("arm", 0.5, com=(0.3, 0, 0), inertia=(0.01, 0.03, 0.02)),
    ]
    joints = [
        pf.joint("flight", "free", "world", "hull"),
        pf.joint("ball", "spherical", "hull", "arm", placement=pf.pose((0, 0.2, 0.1))),
    ]
    return pf.mechanism("flying pair", bodies, joints)


def velocity(m: pf.Mechanism, seed: int = 0, size: float = 1.0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=m.nv) * size


def about_mass_centre(m: pf.Mechanism, q, v) -> np.ndarray:
    """The spatial momentum of the first joint, less the contribution of V = momentum along its slides / mass of all bodies.

    The momentum map is linear in v, so this contribution is its value at V, wherever the machine is.
    """
    J = np.array([pf.reduction.momentum_map(m, q, e) for e in np.eye(m.nv)]).T
    (part,) = m.joints[0].parts
    group, mu = part.subgroup, J @ v
    n, along = len(group.along), list(group.along)
    R = np.array(ca.DM(group.motion(ca.DM(q[: m.joints[0].nq]))[0]))[np.ix_(along, along)]
    mass = sum(float(b.mass) for b in m.bodies)
    mu[n:] -= J[n:, :n] @ R.T @ mu[:n] / mass
    return mu


def summed(m, q, v):
    """Total momentum, and its moment about the common mass centre: sums of m v, I w and r x m v over the bodies."""
    P, L, mass, at, place = np.zeros(3), np.zeros(3), 0.0, np.zeros(3), pf.forward_kinematics(m, q)
    for b in m.bodies:
        body_mass, com, I = (np.array(ca.DM(x)) for x in (b.mass, b.com, b.inertia))
        R, V = place[b.name].rotation, pf.jacobian(m, b.name, q, frame="LOCAL_WORLD_ALIGNED", point=com.ravel()) @ v
        c, carried = place[b.name].position + R @ com.ravel(), body_mass.item() * V[:3]
        P, L = P + carried, L + np.cross(c, carried) + R @ I @ R.T @ V[3:]
        mass, at = mass + body_mass.item(), at + body_mass.item() * c
    return P, L - np.cross(at / mass, P)
