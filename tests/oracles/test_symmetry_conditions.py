"""Motions of a joint that leave the kinetic energy unchanged, by [chhabra14 4.4], against `pf.reduction.symmetry`.

All quantities are in ground axes at home: joint motions are conjugated there, h' are spatial inertias of bodies. Conditions are
linear in the motion and hold for all configurations and twists, so that their solutions are a null space over random ones."""

from __future__ import annotations

from typing import NamedTuple

import casadi as ca
import numpy as np
import pytest
from scipy.linalg import null_space

import pfaffian as pf
from pfaffian.maths import se3
from pfaffian.model.mechanism import random_configuration
from pfaffian.terms.reduced_terms import group_of
from studies import chhabra_symmetry as study

SAMPLES = 40


class Chain(NamedTuple):
    """Bodies in a chain.   S: bases (6, k) of joints.   q: random poses (R, p) of joints.   h: inertias (6, 6) of bodies."""

    S: list[np.ndarray]
    q: list
    h: list[np.ndarray]


def chain(m: pf.Mechanism, off: float, random: np.random.Generator) -> Chain:
    at_home = pf.forward_kinematics(m)
    S, poses, h = [], [], []
    q = random_configuration(m, random)
    for j in m.joints:
        # All axes here are z: the frame of a body is that of its joint.
        R, p = ca.DM(at_home[j.child].rotation), ca.DM(at_home[j.child].position)
        (part,) = j.parts
        S.append(np.array(se3.Ad(R, p)) @ np.array(ca.DM(group_of(j).S)))
        poses.append(se3.compose(*se3.compose(R, p, *part.subgroup.motion(ca.DM(q[m.q_slices[j.name]]))), *se3.inverse(R, p)))
        body = m.body(j.child)
        number = ca.Function("n", [m.p_symbols], [ca.densify(ca.SX(x)) for x in (body.mass, body.com, body.inertia)])
        mass, com, inertia = (np.array(x) for x in number([off]))
        c = np.array(ca.DM(se3.Ad_inv(ca.DM.eye(3), ca.DM(com))))
        about_origin = c.T @ np.block([[mass * np.eye(3), np.zeros((3, 3))], [np.zeros((3, 3)), inertia]]) @ c
        back = np.array(se3.Ad_inv(R, p))
        h.append(back.T @ about_origin @ back)
    return Chain(S, poses, h)


def Ad_inv(poses: list) -> np.ndarray:
    """Inverse of Ad of the product of the poses."""
    out = np.eye(6)
    for R, p in poses:
        out = np.array(se3.Ad_inv(R, p)) @ out
    return out


def ad(x: np.ndarray) -> np.ndarray:
    return np.array(ca.DM(se3.ad(ca.DM(x))))


def unchanged_from_parent(m: pf.Mechanism, off: float) -> int:
    """Dimension of the motions of the second joint from its parent's side, a_2 q_2, that satisfy (4.4.29), (4.4.30)."""
    random, rows = np.random.default_rng(5), []
    for _ in range(SAMPLES):
        c = chain(m, off, random)
        tau = [S @ random.normal(size=S.shape[1]) for S in c.S]
        row, V = np.zeros(c.S[1].shape[1]), tau[0]
        for i in range(1, len(c.S)):
            back = Ad_inv(c.q[1 : i + 1])
            V = Ad_inv([c.q[i]]) @ V + tau[i]
            row += np.array([V @ c.h[i] @ back @ ad(w) @ tau[0] for w in c.S[1].T])
        rows.append(row)
    return null_space(np.array(rows), rcond=1e-9).shape[1] if np.abs(rows).max() > 1e-9 else c.S[1].shape[1]


def unchanged_from_child(m: pf.Mechanism, off: float) -> int:
    """Dimension of the motions of the last joint, q_i a, that satisfy (4.4.32) for all twists that the last body can have."""
    random, rows = np.random.default_rng(6), []
    for _ in range(SAMPLES):
        c = chain(m, off, random)
        Y = sum(Ad_inv(c.q[i + 1 :]) @ S @ random.normal(size=S.shape[1]) for i, S in enumerate(c.S))
        rows.append([Y @ c.h[-1] @ ad(r) @ Y for r in c.S[-1].T])
    return null_space(np.array(rows), rcond=1e-9).shape[1] if np.abs(rows).max() > 1e-9 else c.S[-1].shape[1]


def common_motions(m: pf.Mechanism, off: float) -> int:
    """AP1: dimension of the intersection of all q_1 Q_2 q_1^-1, motions in space that the second joint has for any q_1."""
    random, across = np.random.default_rng(7), []
    for _ in range(SAMPLES):
        c = chain(m, off, random)
        moved = np.linalg.inv(Ad_inv(c.q[:1])) @ c.S[1]
        Q = np.linalg.qr(moved)[0]
        across.append(np.eye(6) - Q @ Q.T)
    return null_space(np.vstack(across), rcond=1e-9).shape[1]


def post() -> pf.Mechanism:
    """A post that turns on a rover carries a rotor on the same axis, whose mass centre is off the axis by a parameter."""
    bodies = [
        pf.body("rover", 8.0, com=(0.05, 0, 0), inertia=0.3),
        pf.body("post", 2.0, com=(0, 0, 0.1), inertia=(0.03, 0.05, 0.04)),
        pf.body("rotor", 1.0, com=(study.OFF, 0, 0.2), inertia=(0.01, 0.02, 0.02)),
    ]
    joints = [
        pf.joint("plane", "planar", "world", "rover"),
        pf.joint("turn", "revolute", "rover", "post", placement=(0.2, 0.1, 0)),
        pf.joint("spin", "revolute", "post", "rotor", axis=(0, 0, 1), placement=(0, 0, 0.3)),
    ]
    return pf.mechanism("post", bodies, joints, gravity=(0, 0, 0), parameters=[study.OFF])


# machine, off, dimensions: by (4.4.29) or (4.4.30), by (4.4.32), by AP1. In a plane a body may be turned from inside about its
# mass centre, where its joint can do that, and any body may be moved along a slide.
DIMENSIONS = {
    "rover with rotor": (study.rover_with_rotor, 0.0, 1, 1, 0),
    "its mass off the axis": (study.rover_with_rotor, study.AWAY, 0, 0, 0),
    "rover on a disc": (study.rover_on_disc, 0.0, 1, 1, 3),
    "its mass off": (study.rover_on_disc, study.AWAY, 1, 1, 3),
    "commuting joints": (study.commuting_joints, study.AWAY, 1, 1, 1),
    "identical joints": (study.identical_joints, study.AWAY, 0, 1, 3),
    "wheel on a free body": (study.wheel_on_a_free_body, 0.0, 1, 1, 0),
    "out of balance": (study.wheel_on_a_free_body, study.AWAY, 0, 0, 0),
    "post with rotor": (post, 0.0, 1, 1, 0),
    "rotor off the post": (post, study.AWAY, 0, 0, 0),
}


def found(m: pf.Mechanism, off: float, joint: str, sides: tuple[str, ...]) -> int:
    """Number of motions that pf.reduction.symmetry finds for this joint alone, from these sides."""
    s = pf.reduction.symmetry(m, parameters={"off": off})
    return sum(all(x.joint == joint and x.side in sides for _, x in parts) for parts in s.further)


@pytest.mark.parametrize("name", DIMENSIONS)
def test_conditions_of_the_thesis_and_the_null_space_agree(name):
    make, off, left, right, common = DIMENSIONS[name]
    m = make()
    second, last = m.joints[1].name, m.joints[-1].name
    assert unchanged_from_parent(m, off) == left == found(m, off, second, ("left",))
    assert unchanged_from_child(m, off) == right
    assert common_motions(m, off) == common
    # A motion that counts from both sides is found once, from the parent's.
    assert found(m, off, last, ("left", "right", "world")) >= max(right, left * (second == last))
    # Motions of AP1 are symmetries whatever the masses are.
    assert found(m, off, second, ("left", "world")) >= common


@pytest.mark.parametrize("side", ["left", "right"])
def test_the_rate_of_energy_is_the_residual_of_the_conditions(side):
    """Along the motion itself, for a rotor off its axis, the rate of T is the residual of (4.4.29) and (4.4.32)."""
    m, off, random = study.rover_with_rotor(), study.AWAY, np.random.default_rng(8)
    c, turned = chain(m, off, np.random.default_rng(8)), 1e-6
    q = random_configuration(m, random)
    v = random.normal(size=m.nv)
    tau = [S @ v[m.v_slices[j.name]] for S, j in zip(c.S, m.joints, strict=True)]
    V = Ad_inv([c.q[1]]) @ tau[0] + tau[1]
    w = c.S[1][:, 0]
    residual = V @ c.h[1] @ (Ad_inv([c.q[1]]) @ ad(w) @ tau[0] if side == "left" else ad(w) @ V)
    T = [pf.energy(m, q + [0, 0, 0, s * turned], v, parameters={"off": off}).kinetic for s in (-1, 1)]
    assert abs(residual) > 1e-3
    # Turning the joint is both motions: from the child's side the twist is turned back, and the joint's own part commutes.
    np.testing.assert_allclose(abs(T[1] - T[0]) / (2 * turned), abs(residual), rtol=1e-6)
