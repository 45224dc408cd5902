"""Every robot of example-robot-data against Pinocchio: fixed and free base, at random states."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pinocchio as pin
import pytest

import pfaffian as pf
from pfaffian.terms import recursions as inertia
from tests.oracles.pinocchio_twin import NO_LINK, ONE_BODY, ROBOTS, Twin, twin
from tests.tolerance import PEER, close

STATES = 3
FRAMES = {
    "LOCAL": pin.ReferenceFrame.LOCAL,
    "WORLD": pin.ReferenceFrame.WORLD,
    "LOCAL_WORLD_ALIGNED": pin.ReferenceFrame.LOCAL_WORLD_ALIGNED,
}
CASES = [
    pytest.param(name, base, id=f"{name}-{base}")
    for name in ROBOTS
    for base in ("fixed", "free")
    if name not in NO_LINK and not (base == "fixed" and name in ONE_BODY)
]


def quantities(m: pf.Mechanism, chosen: list[str]) -> dict:
    """All compared quantities as functions of Terms; u is the acceleration for rnea and the force for forward dynamics."""
    q = {
        "M": lambda T: T.M,
        "c": lambda T: T.c,
        "T": lambda T: T.T,
        "V": lambda T: T.V,
        "momentum": lambda T: inertia.momentum(T.kinematics),
        "com": lambda T: inertia.mass_centre(T.kinematics),
        "rnea": lambda T: inertia.inverse_dynamics(T.kinematics, T.u),
        "damping": lambda T: T.f,
        "articulated": lambda T: pf.FORMULATIONS["articulated"](T).v_dot,
        "gauss": lambda T: pf.FORMULATIONS["gauss"](T).v_dot,
        "R": lambda T: ca.horzcat(*[T.kinematics.rotation(b.name) for b in m.bodies]),
        "p": lambda T: ca.horzcat(*[T.kinematics.position(b.name) for b in m.bodies]),
    }
    for b in chosen:
        for f in FRAMES:
            q[f"J {f} {b}"] = lambda T, b=b, f=f: T.kinematics.jacobian(b, f)
            q[f"twist {f} {b}"] = lambda T, b=b, f=f: T.kinematics.twist(b, f)
    return q


def check_kinematics(w: Twin, chosen: list[str], q: np.ndarray, v: np.ndarray, got: dict) -> None:
    model, data = w.model, w.data
    pin.forwardKinematics(model, data, w.q(q), w.v(v))
    pin.updateFramePlacements(model, data)
    pin.computeJointJacobians(model, data)
    poses = [data.oMf[w.frame(b.name)] for b in w.ours.bodies]
    close(got["R"], np.hstack([G.rotation for G in poses]), PEER, "rotations")
    p = got["p"].reshape(3, -1)
    close(p, np.stack([G.translation for G in poses], 1), PEER, "positions", 1 + np.abs(p).max())
    for b in chosen:
        for name, frame in FRAMES.items():
            J = pin.getFrameJacobian(model, data, w.frame(b), frame)[:, w.order]
            close(got[f"J {name} {b}"], J, PEER, f"Jacobian {name}")
            V = pin.getFrameVelocity(model, data, w.frame(b), frame).vector
            close(got[f"twist {name} {b}"], V, PEER, f"twist {name}", np.abs(J).max() * np.abs(v).max() or 1.0)


def check_dynamics(w: Twin, q: np.ndarray, v: np.ndarray, u: np.ndarray, got: dict) -> None:
    model, data = w.model, w.data
    upper = np.triu(pin.crba(model, data, w.q(q)))
    M = upper + np.triu(upper, 1).T
    close(got["M"], M[np.ix_(w.order, w.order)], PEER, "mass matrix")
    close(got["c"], pin.nonLinearEffects(model, data, w.q(q), w.v(v))[w.order], PEER, "bias force")
    close(got["rnea"], pin.rnea(model, data, w.q(q), w.v(v), w.v(u))[w.order], PEER, "inverse dynamics")
    # Joint damping is a force in the library; Pinocchio's aba has none.
    a = pin.aba(model, data, w.q(q), w.v(v), w.v(u + got["damping"]))[w.order]
    close(got["articulated"], a, PEER, "forward dynamics, articulated")
    close(got["gauss"], a, PEER, "forward dynamics, gauss")
    close(got["T"], pin.computeKineticEnergy(model, data, w.q(q), w.v(v)), PEER, "kinetic energy")
    com = pin.centerOfMass(model, data, w.q(q), w.v(v))
    close(got["com"], com, PEER, "mass centre", 1 + np.abs(com).max())
    h = pin.computeCentroidalMomentum(model, data)
    about_origin = np.concatenate([h.linear, h.angular + np.cross(com, h.linear)])
    close(got["momentum"], about_origin, PEER, "momentum", np.abs(h.vector).max())


@pytest.mark.parametrize("name, base", CASES)
def test_robot_agrees_with_pinocchio(name, base):
    w = twin(name, base)
    m = pf.actuate_all(w.ours)
    random = np.random.default_rng(1)
    tips = {b.name for b in m.bodies} - {j.parent for j in m.joints}
    chosen = sorted(random.choice([b.name for b in m.bodies], 3)) + sorted(tips)[:2]
    at = pf.compile_terms(m, quantities(m, list(dict.fromkeys(chosen))), backend="numpy", lanes=1)
    qs = np.array([pf.random_configuration(m, random) for _ in range(STATES)])
    vs, us = random.normal(size=(STATES, m.nv)), random.normal(size=(STATES, m.nv))
    results = at(qs, vs, us)
    heights = []
    for i, (q, v, u) in enumerate(zip(qs, vs, us, strict=True)):
        got = {k: x[i] for k, x in results.items()}
        check_kinematics(w, list(dict.fromkeys(chosen)), q, v, got)
        check_dynamics(w, q, v, u, got)
        heights.append(got["V"] - pin.computePotentialEnergy(w.model, w.data, w.q(q)))
    close(heights, np.full(STATES, heights[0]), PEER, "potential energy", 1 + np.abs(results["V"]).max())
