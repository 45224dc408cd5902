"""Random trees with joints of every kind inside, which URDF cannot describe, against Pinocchio."""

from __future__ import annotations

from dataclasses import replace

import casadi as ca
import numpy as np
import pinocchio as pin
from hypothesis import given

import pfaffian as pf
from tests.oracles.pinocchio_twin import BY_COORDINATES, their_rates, twin_of
from tests.random_mechanisms import Case, matrices, random_tree, trees
from tests.tolerance import PEER, close


@given(trees())
def test_random_tree_agrees_with_pinocchio(drawn):
    random, kinds, parents = drawn
    m = pf.actuate_all(random_tree(random, kinds, parents))
    bare = [replace(j, armature=ca.SX(j.nv, 1)) if j.kind.name in BY_COORDINATES else j for j in m.joints]
    m = m.with_(joints=bare)  # Pinocchio's armature is along q_dot, ours along v
    w = twin_of(m)
    case = Case(m, pf.random_configuration(m, random), random.normal(size=m.nv), random.normal(size=m.nv), 0.0)
    bodies = [b.name for b in m.bodies]
    got = matrices(case, {
        "R": lambda T: ca.horzcat(*[T.kinematics.rotation(b) for b in bodies]),
        "p": lambda T: ca.horzcat(*[T.kinematics.position(b) for b in bodies]),
        "J": lambda T: T.kinematics.jacobian(bodies[-1]),
        "M": lambda T: T.M,
        "c": lambda T: T.c,
        "f": lambda T: T.f,
        "v_dot": lambda T: pf.FORMULATIONS["articulated"](T).v_dot,
        "rates": lambda T: their_rates(T)[0],
        "drift": lambda T: their_rates(T)[1],
    })  # fmt: skip
    R, drift = got["rates"], got["drift"].ravel()
    q, v = w.q(case.q), w.v(R @ case.v)
    pin.forwardKinematics(w.model, w.data, q, v)
    pin.updateFramePlacements(w.model, w.data)
    poses = [w.data.oMf[w.frame(b)] for b in bodies]
    close(got["R"], np.hstack([G.rotation for G in poses]), PEER, "rotations")
    close(got["p"], np.stack([G.translation for G in poses], 1), PEER, "positions", 1 + np.abs(got["p"]).max())
    J = pin.computeFrameJacobian(w.model, w.data, q, w.frame(bodies[-1]), pin.ReferenceFrame.LOCAL)
    close(got["J"], J.reshape(6, -1)[:, w.order] @ R, PEER, "Jacobian")
    upper = np.triu(pin.crba(w.model, w.data, q))
    M = (upper + np.triu(upper, 1).T)[np.ix_(w.order, w.order)]
    close(got["M"], R.T @ M @ R, PEER, "mass matrix")
    c = pin.nonLinearEffects(w.model, w.data, q, v)[w.order]
    close(got["c"].ravel(), R.T @ (c + M @ drift), PEER, "bias force", np.abs(M).max() * (1 + case.v @ case.v))
    v_dot = pin.aba(w.model, w.data, q, v, w.v(np.linalg.solve(R.T, case.u + got["f"].ravel())))[w.order]
    close(got["v_dot"].ravel(), np.linalg.solve(R, v_dot - drift), PEER, "forward dynamics")
