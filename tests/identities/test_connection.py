"""Brackets, connection and Hamel's equations on random trees, against the recursions and against closed tables."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import casadi as ca
import numpy as np
import pytest
from hypothesis import given

import pfaffian as pf
from pfaffian import kernel
from pfaffian.terms import connection
from pfaffian.terms import recursions as inertia
from pfaffian.terms.hamel import acceleration_energy, hamel
from tests.graph_twin import graph_twin
from tests.random_mechanisms import Case, matrices, random_body, random_tree, trees
from tests.tolerance import DERIVATIVE, close

LEVI_CIVITA = np.array([[[(i - j) * (j - k) * (k - i) / 2 for k in range(3)] for j in range(3)] for i in range(3)])


@pytest.fixture(autouse=True)
def interpreted(request, monkeypatch):
    """Compute without a compiler, except in one test: the numbers are the same."""
    if request.function is not test_a_batch:
        monkeypatch.setattr(kernel, "compile", partial(kernel.compile, backend="numpy"))


def weightless(drawn) -> Case:
    """A tree without gravity. An armature that is equal along all axes of a joint does not turn with the joint, so its
    energy is that of M only for joints with one axis."""
    random, kinds, parents = drawn
    m = random_tree(random, kinds, parents)
    joints = [j if j.nv == 1 else replace(j, armature=0 * j.armature) for j in m.joints]
    m = m.with_(joints=joints, gravity=(0, 0, 0))
    return Case(m, pf.random_configuration(m, random), random.normal(size=m.nv), np.zeros(0), 0.0)


def tensor(x: np.ndarray) -> np.ndarray:
    return x.reshape(x.shape[1], x.shape[1], x.shape[1])


@given(trees(most=4))
def test_four_equivalent_inertia_forces(drawn):
    four_forces(weightless(drawn))


def four_forces(case: Case) -> None:
    """Compare Gibbs and Appell's, Hamel's, Levi-Civita's and the projected inertia forces. [konz25 (3.26)-(3.31)]"""
    v_dot = ca.DM(np.random.default_rng(1).normal(size=case.m.nv))

    def gibbs_appell(T):
        a = ca.SX.sym("a", T.mechanism.nv)
        return ca.substitute(ca.gradient(acceleration_energy(T.kinematics, a), a), a, v_dot)

    def levi_civita(T):
        quadratic = [T.v.T @ G @ T.v for G in connection.connection_coefficients(T.kinematics, T.M)]
        return T.M @ v_dot + ca.vertcat(*quadratic)

    r = matrices(case, {
        "projection": lambda T: inertia.inverse_dynamics(T.kinematics, v_dot),
        "hamel": lambda T: (h := hamel(T.kinematics, T.T)).M @ v_dot + h.c,
        "energy": lambda T: hamel(T.kinematics, T.T).energy - T.T,
        "levi_civita": levi_civita,
        "gibbs_appell": gibbs_appell,
    })  # fmt: skip
    size = np.abs(r["projection"]).max() + 10
    for name in ("hamel", "levi_civita", "gibbs_appell"):
        close(r[name], r["projection"], DERIVATIVE, name, size)
    close(r["energy"], [[0.0]], DERIVATIVE, "energy of a quadratic T", size)


@given(trees(most=4))
def test_identities_of_the_connection(drawn):
    case = weightless(drawn)
    r = matrices(case, {
        "M": lambda T: T.M,
        "M_dot": lambda T: connection.rate(T.kinematics, T.M),
        "dM": lambda T: connection.directional_derivative(T.kinematics, ca.vec(ca.densify(T.M))),
        "gamma": lambda T: ca.vertcat(*connection.commutation_coefficients(T.kinematics)),
        "Gamma": lambda T: ca.vertcat(*connection.connection_coefficients(T.kinematics, T.M)),
        "C": lambda T: connection.coriolis_matrix(T.kinematics, T.M),
        "bodies": lambda T: inertia.coriolis_matrix(T.kinematics) @ T.v,
        "left": lambda T: connection.left_inverse(T.kinematics) @ T.kinematics.kinematic_matrix,
    })  # fmt: skip
    n, v, M, gamma, Gamma = case.m.nv, case.v, r["M"], tensor(r["gamma"]), tensor(r["Gamma"])
    dM = r["dM"].reshape(n, n, n)  # M is symmetric, so the order of its entries does not matter
    size = np.abs(dM).max() + np.abs(M).max()
    close(gamma, -gamma.transpose(1, 0, 2), DERIVATIVE, "gamma is skew")
    close(dM, Gamma + Gamma.transpose(1, 0, 2), DERIVATIVE, "d_k M_ij = Gamma_ijk + Gamma_jik", size)
    lowered = np.einsum("ijs,sk->ijk", gamma, M)
    close(lowered, Gamma.transpose(2, 1, 0) - Gamma.transpose(1, 2, 0), DERIVATIVE, "gamma M = Gamma_kji - Gamma_kij", size)
    size *= 1 + np.abs(v).sum()
    close(r["C"], Gamma @ v, DERIVATIVE, "C = Gamma v", size)
    close(r["C"] + r["C"].T, r["M_dot"], DERIVATIVE, "M_dot = C + C^T", size)
    size *= 1 + np.abs(v).sum()
    close(r["C"] @ v, r["bodies"].ravel(), DERIVATIVE, "C v is that of the bodies", size)
    close(r["left"], np.eye(n), DERIVATIVE, "K^+ K = 1")


def test_commutation_coefficients_of_rotations_are_the_cross_product():
    """With quaternions for q the coefficients are those of the group, as for any coordinates. [konz25 (2.20)]"""
    b = pf.body("b", 1, inertia=1)
    m = pf.mechanism("ball", [b], [pf.joint("j", "spherical", "world", "b")])
    q = pf.random_configuration(m, np.random.default_rng(1))
    close(pf.calculus.commutation_coefficients(m, q), LEVI_CIVITA, DERIVATIVE, "gamma of SO(3)")


def test_free_body_tables():
    """The 18 coefficients of SE(3) and its whole connection. [konz25 (3.49), (3.57), (3.58)]"""
    random = np.random.default_rng(2)
    free_body = random_body(random, "b")
    m = pf.mechanism("free", [free_body], [pf.joint("j", "free", "world", "b")])
    q = pf.random_configuration(m, random)
    gamma = np.zeros((6, 6, 6))
    for k, i, j in ((1, 2, 6), (1, 5, 3), (2, 3, 4), (2, 6, 1), (3, 1, 5), (3, 4, 2), (4, 5, 6), (5, 6, 4), (6, 4, 5)):
        gamma[i - 1, j - 1, k - 1], gamma[j - 1, i - 1, k - 1] = 1, -1
    close(pf.calculus.commutation_coefficients(m, q), gamma, DERIVATIVE, "gamma of SE(3)")

    mass, s, I = (m.value(x) for x in (free_body.mass, free_body.com, free_body.inertia))
    mass, s = mass.item(), s.ravel()
    second = np.trace(I) / 2 * np.eye(3) - I + mass * np.outer(s, s)  # sum of m x x^T about the frame's origin
    entries = dict.fromkeys(("324", "135", "216"), mass)
    entries |= dict.fromkeys(("254", "364", "515", "616"), mass * s[0])
    entries |= dict.fromkeys(("424", "145", "365", "626"), mass * s[1])
    entries |= dict.fromkeys(("434", "535", "146", "256"), mass * s[2])
    entries |= {"654": second[0, 0], "465": second[1, 1], "546": second[2, 2]}
    entries |= dict.fromkeys(("464", "655"), second[0, 1])
    entries |= dict.fromkeys(("544", "656"), second[0, 2])
    entries |= dict.fromkeys(("545", "466"), second[1, 2])
    Gamma = np.zeros((6, 6, 6))
    for name, x in entries.items():
        i, j, k = (int(c) - 1 for c in name)
        Gamma[i, j, k], Gamma[j, i, k] = x, -x
    close(pf.calculus.connection_coefficients(m, q), Gamma, DERIVATIVE, "Gamma of a free body")


def whirl(m: pf.Mechanism) -> pf.Mechanism:
    """The mechanism along velocities that turn with the configuration and are not rates of any coordinates."""
    mixed = np.roll(np.diag(np.random.default_rng(8).normal(size=m.nv)), 1, axis=1)
    names = [f"y{i}" for i in range(m.nv)]
    return m.with_(velocities=pf.velocities(lambda k: ca.SX.eye(m.nv) + mixed * ca.sin(k.position("b1")[0] + 0.3), names))


def unsprung(kinds: list[str], parents: list[int]) -> pf.Mechanism:
    m = random_tree(np.random.default_rng(3), kinds, parents)
    bare = [replace(j, armature=0 * j.armature, stiffness=0 * j.stiffness) for j in m.joints]
    return m.with_(joints=bare, gravity=(0, 0, 0))


def test_other_coordinates_and_velocities():
    """Cosines and rotation matrices for q change nothing; v = T(q) y gives what a change of basis gives. [konz25 (2.19)]"""
    m = unsprung(["spherical", "planar"], [-1, 0])
    q = pf.random_configuration(m, np.random.default_rng(4))
    n, twin, other = m.nv, graph_twin(m), whirl(m)
    old, Gamma = pf.calculus.commutation_coefficients(m, q), pf.calculus.connection_coefficients(m, q)
    close(pf.calculus.commutation_coefficients(twin.m, twin.q(q)), old, DERIVATIVE, "gamma of a graph")
    close(pf.calculus.connection_coefficients(twin.m, twin.q(q)), Gamma, DERIVATIVE, "Gamma of a graph")
    r = matrices(Case(other, q, np.zeros(n), np.zeros(0), 0.0), {
        "T": lambda T: T.kinematics.maps[2],
        "along": lambda T: connection.directional_derivative(T.kinematics, ca.vec(ca.densify(T.kinematics.maps[2]))),
    })  # fmt: skip
    T, step = r["T"], r["along"].reshape(n, n, n).transpose(2, 0, 1)  # step[i, j, a]: d_i T_j^a in the new directions
    there = np.einsum("ai,bj,abc->ijc", T, T, old) + step - step.transpose(1, 0, 2)
    new = pf.calculus.commutation_coefficients(other, q)
    close(new, np.einsum("ijc,kc->ijk", there, np.linalg.inv(T)), DERIVATIVE, "gamma of chosen velocities", np.abs(new).max())
    M = pf.mass_matrix(m, q)
    bent = np.einsum("ai,bj,ck,abc->ijk", T, T, T, Gamma) + np.einsum("ai,ab,kjb->ijk", T, M, step)
    close(pf.calculus.connection_coefficients(other, q), bent, DERIVATIVE, "Gamma of chosen velocities", np.abs(bent).max())


@pytest.mark.parametrize("other", [whirl, lambda m: graph_twin(m).m, lambda m: whirl(graph_twin(m).m)])
def test_inertia_forces_of_graphs_and_chosen_velocities(other):
    m = other(unsprung(["free", "revolute"], [-1, 0]))
    random = np.random.default_rng(6)
    four_forces(Case(m, pf.random_configuration(m, random), random.normal(size=m.nv), np.zeros(0), 0.0))


def pendulum() -> pf.Mechanism:
    b = pf.body("b", 2.0, (0.5, 0, 0), 0.1)
    return pf.mechanism("pendulum", [b], [pf.joint("j", "revolute", "world", "b", axis=(0, -1, 0))])


def test_gradient_and_hessian():
    """For the potential energy and a function of the caller; at a critical point the metric does not matter."""
    m = pendulum()
    close(pf.calculus.directional_derivative(m, [0.3]), [[9.81 * np.cos(0.3)]], DERIVATIVE, "gradient")
    close(pf.calculus.covariant_hessian(m, [-np.pi / 2]), [[9.81]], DERIVATIVE, "stable")
    close(pf.calculus.covariant_hessian(m, [np.pi / 2]), [[-9.81]], DERIVATIVE, "unstable")
    speed = pf.calculus.directional_derivative(m, [0.3], [2.0], f=lambda k: k.velocity("b", (1, 0, 0)))
    close(speed, [[-2 * np.cos(0.3)], [0], [-2 * np.sin(0.3)]], DERIVATIVE, "gradient of a velocity", 1.0)
    assert pf.calculus.directional_derivative(m, f=lambda k: ca.SX(0, 1)).shape == (0, 1)


def test_hessian_is_the_second_derivative_along_geodesics():
    """d2/dt2 of f along v_dot^i = -Gamma^i_jk v^j v^k, for any v, is what (2.16) gives."""
    random = np.random.default_rng(5)
    m = random_tree(random, ["spherical", "planar", "revolute"], [-1, 0, 0]).with_(gravity=(1, 2, 3))
    T = pf.symbols(m)
    k, n = T.kinematics, m.nv
    slope = connection.directional_derivative(k, T.V) @ T.v
    acceleration = -ca.solve(T.M, connection.coriolis_matrix(k, T.M) @ T.v)
    second = connection.rate(k, slope) + ca.gradient(slope, T.v).T @ acceleration
    f = ca.Function("f", [T.q, T.v], [second])
    q, v = pf.random_configuration(m, random), random.normal(size=n)
    H = pf.calculus.covariant_hessian(m, q)
    close(H, H.T, DERIVATIVE, "symmetric")
    close(v @ H @ v, float(f(q, v)), DERIVATIVE, "second derivative", np.abs(H).max())


def test_a_batch():
    m = pendulum()
    q = np.linspace(-1, 1, 5)[:, None]
    close(pf.calculus.covariant_hessian(m, q)[:, 0, 0], -9.81 * np.sin(q[:, 0]), DERIVATIVE, "over five states")
    assert pf.calculus.connection_coefficients(m, q).shape == pf.calculus.commutation_coefficients(m, q).shape == (5, 1, 1, 1)


def test_linear_terms_do_no_work():
    """A charge in a plane: T = |v|^2 / 2 + b_i v^i + T0, so c contains the curl of b. [konz25 (2.44b) as corrected]"""
    b = pf.body("b", 1.0)
    m = pf.mechanism("plane", [b], [pf.joint("j", "planar", "world", "b")], gravity=(0, 0, 0))
    T = pf.symbols(m)
    k, world = T.kinematics, T.kinematics.q_dot
    field = ca.vertcat(-T.q[1], T.q[0], 0) * ca.cos(T.t)
    h = hamel(k, ca.sumsqr(world) / 2 + ca.dot(field, world) + T.q[0] ** 2)
    f = ca.Function("f", [T.q, T.v, T.t], [h.M, h.c, h.energy, k.kinematic_matrix])
    q, v = np.array([0.3, -0.4, 0.5]), np.array([0.2, 0.7, -0.3])
    M, c, energy, K = (np.array(x) for x in f(q, v, 0.6))
    rate = K @ v
    expected = 2 * np.cos(0.6) * np.array([-rate[1], rate[0]]) - np.sin(0.6) * np.array([-q[1], q[0]]) - [2 * q[0], 0]
    expected += rate[2] * np.array([-rate[1], rate[0]])  # the body's axes turn
    close(M, np.eye(3), DERIVATIVE, "mass")
    close(c.ravel()[:2], K[:2, :2].T @ expected, DERIVATIVE, "force", 1.0)
    close(energy.item(), rate @ rate / 2 - q[0] ** 2, DERIVATIVE, "energy")
    with pytest.raises(pf.ModelError, match=r"T must be quadratic in v"):
        hamel(k, ca.sqrt(ca.sumsqr(T.v)))


def test_wrong_arguments():
    m = pendulum()
    for ask, message in (
        (lambda: pf.calculus.covariant_hessian(m, f=lambda k: k.v[0]), "depends on q and t alone"),
        (lambda: pf.calculus.covariant_hessian(m, f=lambda k: k.position("b")), "one number"),
        (lambda: pf.calculus.directional_derivative(m, f=3), "a function of Kinematics is needed"),
        (lambda: pf.calculus.directional_derivative(m, f=lambda k: k.position("c")), "f: mechanism 'pendulum' has no body 'c'"),
        (lambda: pf.calculus.commutation_coefficients(m, [1, 2]), "q has shape"),
    ):
        with pytest.raises(pf.ModelError, match=message):
            ask()
