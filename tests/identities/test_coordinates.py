"""Coordinates with phi = 0 and minimal velocities: relations between K, dphi/dq and their inverses. [konz25 2.1]"""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest

import pfaffian as pf
from pfaffian.terms.connection import pseudo_inverse
from studies import konz_coordinates, konz_free_body, konz_tricopter_load
from tests.random_mechanisms import random_pose
from tests.tolerance import close

MACHINES = {
    "circle": konz_coordinates.circle,
    "rotation": konz_coordinates.top,
    "pose": konz_free_body.by_matrices,
    "tricopter with a load": konz_tricopter_load.mechanism,
}


@pytest.mark.parametrize("name", MACHINES)
def test_velocities_and_constraints_split_the_rates(name):
    """Phi K = 0, Y K = 1, K Y + Psi Phi = 1, and Penrose's conditions for both pairs. [konz25 (2.4)-(2.10)]"""
    m = MACHINES[name]()
    phi = {
        "Phi": lambda T: ca.densify(ca.vertcat(*[_rows(c, T) for c in m.coordinates if c.phi])),
        "K": lambda T: ca.densify(T.kinematics.kinematic_matrix),
        "Y": lambda T: ca.densify(pseudo_inverse(T.kinematics)),
    }
    f = pf.compile_terms(m, phi, backend="numpy", lanes=1)
    random = np.random.default_rng(1)
    for _ in range(5):
        x = f.matrices(pf.random_configuration(m, random))
        Phi, K, Y = x["Phi"], x["K"], x["Y"]
        Psi = np.linalg.pinv(Phi, rcond=1e-9)
        zero = np.zeros((len(Phi), m.nv))
        close(Phi @ K, zero, 1e-13, "Phi K", scale=[1.0])
        close(Psi.T @ K, zero, 1e-13, "Psi^T K", scale=[1.0])
        close(Y @ K, np.eye(m.nv), 1e-12, "Y K")
        close(K @ Y + Psi @ Phi, np.eye(m.nq), 1e-12, "K Y + Psi Phi")
        for A, B in ((K, Y), (Phi, Psi)):
            close(A @ B @ A, A, 1e-12, "A B A = A")
            close(B @ A @ B, B, 1e-12, "B A B = B")
            close((A @ B).T, A @ B, 1e-12, "A B symmetric")
            close((B @ A).T, B @ A, 1e-12, "B A symmetric")
        assert np.linalg.matrix_rank(Phi, tol=1e-9) == m.nq - m.nv


def _rows(c: pf.Coordinates, T: pf.Terms) -> ca.SX:
    return ca.jacobian(c.phi(T.q[T.mechanism.q_slices[c.name], 0]), T.q)


def test_jacobians_and_their_rates_follow_from_the_position_of_a_point():
    """J v and J_dot v of a body behind a turned fixed joint equal derivatives of a point's position, by default that of the
    origin."""
    random = np.random.default_rng(2)
    bodies = [pf.body(n, 1.0, inertia=0.1) for n in ("ball", "arm", "camera")]
    joints = [
        pf.joint("turn", "spherical", "world", "ball", placement=random_pose(random)),
        pf.joint("slide", "cylindrical", "ball", "arm", placement=random_pose(random)),
        pf.joint("mount", "fixed", "arm", "camera", placement=random_pose(random)),
    ]
    m, point = pf.mechanism("m", bodies, joints), (0.3, -0.7, 0.4)

    def difference(T: pf.Terms) -> ca.SX:
        k, aligned = T.kinematics, "LOCAL_WORLD_ALIGNED"
        rows = []
        for given in ((), (point,)):
            rate = ca.jacobian(k.position("camera", *given), T.q) @ k.q_dot
            bias = ca.jtimes(rate, T.q, k.q_dot)
            rows += [rate - (k.jacobian("camera", aligned, *given) @ T.v)[:3], bias - k.bias_acceleration("camera", *given)[:3]]
            rows.append(rate - k.velocity("camera", *given))
        return ca.vertcat(*rows)

    f = pf.compile_terms(m, {"x": difference}, backend="numpy", lanes=1)
    for _ in range(3):
        found = f(pf.random_configuration(m, random), random.normal(size=m.nv))["x"]
        close(np.ravel(found), np.zeros(18), 1e-12, "rates of a point", scale=1.0)
