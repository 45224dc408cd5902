"""Two-forms, connections and momentum maps of a reduction: identities that hold on any machine. [chhabra14 sections 3.2,
3.3]"""

from __future__ import annotations

from functools import cache

import casadi as ca
import numpy as np
import pytest
from scipy.linalg import null_space

import pfaffian as pf
from pfaffian.dynamics.motion import Motion
from pfaffian.evaluate.reduction_plan import plan
from pfaffian.maths import se3
from pfaffian.maths.linear import solve_definite
from pfaffian.maths.subgroups import isotropy
from pfaffian.model.mechanism import random_configuration
from pfaffian.terms.applied_forces import potential_energy
from pfaffian.terms.connection import commutation_coefficients, directional_derivative
from pfaffian.terms.orbit_chart import Orbit, body_momentum, orbit_of, two_form
from pfaffian.terms.reduced_terms import blocks, curvature, group_of, horizontal_lift, on_algebra, transport_along
from pfaffian.terms.terms import symbols
from studies import chhabra_constants as constants
from studies import chhabra_matrices as printed
from studies import chhabra_reduction as study
from studies import chhabra_steps as steps
from tests.random_mechanisms import random_tree
from tests.tolerance import ALGEBRA, close

SPECIAL = {
    "free": ([1, 2, 3, 4, 5, 6], [0, 0, 0, 1, 2, 3]), "spherical": ([1, 2, 3],), "planar": ([1, 2, 3],),
    "schoenflies": ([1, 2, 3, 4],),
}  # fmt: skip
"""Kind of first joint -> momenta with different orbits."""
CASES = [(base, mu) for base, momenta in SPECIAL.items() for mu in momenta]
NAMES = [f"{base} {mu}" for base, mu in CASES]


@cache
def machine(base: str) -> pf.Mechanism:
    """A first joint without springs, a ball joint and a hinge: velocities of the shape that do not commute."""
    m = random_tree(np.random.default_rng(3), [base, "spherical", "revolute"], [-1, 0, 1])
    bare = pf.joint("j0", base, "world", "b0", placement=m.joints[0].placement)
    return m.with_(joints=[bare, *m.joints[1:]], gravity=(0, 0, 0))


def S_of(m: pf.Mechanism) -> np.ndarray:
    return np.array(ca.DM(group_of(m.joints[0]).S))


def start(m: pf.Mechanism, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    return random_configuration(m, random), random.normal(size=m.nv)


def adjoint(m: pf.Mechanism, R: object, p: object) -> np.ndarray:
    """Ad of a pose on the algebra of the first joint."""
    return np.array(ca.evalf(on_algebra(group_of(m.joints[0]), ca.SX(R), ca.SX(p))))


def pose(m: pf.Mechanism, q: np.ndarray) -> tuple[ca.DM, ca.DM]:
    return group_of(m.joints[0]).motion(ca.DM(q[: m.joints[0].nq]))


# -- the two-form -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("base", "mu"), CASES, ids=NAMES)
def test_the_two_form_is_closed(base, mu):
    """dXi(i, j, k), the cyclic sum of d_i Xi_jk - Xi([i, j], k), is zero by exact derivatives. [chhabra14 theorem 3.2.7]"""
    m = machine(base)
    T, joint = symbols(m), m.joints[0]
    orbit = orbit_of(group_of(joint), np.array(mu, dtype=float))
    d, nb = len(orbit.names), joint.nv
    o = ca.SX.sym("o", d)
    Xi = two_form(T, joint.name, orbit, o)
    n = Xi.shape[0]
    slopes = ca.horzcat(ca.jacobian(ca.vec(Xi), o), directional_derivative(T.kinematics, ca.vec(Xi))[:, nb:])
    gamma = ca.horzcat(*[ca.vec(g[nb:, nb:]) for g in commutation_coefficients(T.kinematics)[nb:]])
    f = ca.Function("f", [T.q, o], [Xi, slopes, gamma])
    q, _ = start(m)
    at, along, brackets = (np.array(x) for x in f(q, np.linspace(0.2, 0.7, d)))
    along = along.reshape(n, n, n).transpose(2, 1, 0)  # [k, i, j]: d_k Xi_ij
    c = np.zeros((n, n, n))
    c[d:, d:, d:] = brackets.reshape(n - d, n - d, n - d, order="F").transpose(2, 0, 1)
    assert c.any() and np.abs(at).max() > 0.1
    close(at, -at.T, ALGEBRA, "skew")
    turned = np.einsum("ijl,lk->ijk", c, at)
    whole = sum((along - turned).transpose(x) for x in ((0, 1, 2), (1, 2, 0), (2, 0, 1)))
    close(whole, np.zeros_like(whole), 1e4 * ALGEBRA, "d Xi", scale=np.abs(along).max())
    # Without the brackets it is not zero.
    assert np.abs(along + along.transpose(1, 2, 0) + along.transpose(2, 0, 1)).max() > 1e-3 * np.abs(along).max()


@pytest.mark.parametrize(("base", "mu"), CASES, ids=NAMES)
def test_the_two_form_by_curvature(base, mu):
    """Xi(u, w) = <mu_b, B(u, w)> + <mu, [X_u, X_w]>, X_u = (T chi u) chi^-1 + Ad_chi A u. Any motion of the isotropy group
    may be added to X, since it drops out. [chhabra14 (3.3.43)]"""
    m = machine(base)
    j, (q, _) = m.joints[0], start(m)
    S, orbit = S_of(m), orbit_of(group_of(j), np.array(mu, dtype=float))
    d, k = len(orbit.names), j.nv
    o = ca.SX.sym("o", d)
    R, p = orbit.section(o)
    H = ca.blockcat([[R, p], [ca.SX(1, 3), 1]])
    left = [ca.reshape(ca.jacobian(ca.vec(ca.densify(H)), o[i]), 4, 4) @ ca.inv(H) for i in range(d)]
    carried = ca.horzcat(*[ca.vertcat(x[:3, 3], x[2, 1], x[0, 2], x[1, 0]) for x in left])
    T = symbols(m)
    f = ca.Function("f", [T.q, o], [two_form(T, j.name, orbit, o), carried, R, p])
    at = np.linspace(0.2, 0.7, d)
    Xi, along, R_at, p_at = (np.array(x) for x in f(q, at))
    Ad, back = adjoint(m, R_at, p_at), np.linalg.pinv(S)
    X = np.hstack([back @ along, Ad @ pf.reduction.mechanical_connection(m, q)])
    X = X + isotropy(S, orbit.mu) @ np.random.default_rng(7).normal(size=(isotropy(S, orbit.mu).shape[1], X.shape[1]))

    def bracket(x, y):
        return back @ (np.array(se3.ad(ca.DM(S @ x))) @ S @ y)

    whole = np.array([[orbit.mu @ bracket(x, y) for y in X.T] for x in X.T])
    whole[d:, d:] += pf.reduction.connection_curvature(m, q) @ (Ad.T @ orbit.mu)
    assert along.shape == (6, d) and k == len(orbit.mu)
    close(Xi, whole, 1e3 * ALGEBRA, "Xi")


@pytest.mark.parametrize(("base", "mu"), CASES, ids=NAMES)
def test_a_run_at_one_momentum_follows_the_two_form(base, mu):
    """iota_X (Omega - Xi_mu) = dH, H = p~^T M^^-1 p~ / 2 + mu_b^T K11^-1 mu_b / 2 with p~ = p_s - A^T mu_b: the state
    contains p_s, whose rate follows from momenta of bodies. [chhabra14 (3.3.42), (3.3.44)]"""
    m = machine(base)
    j, T = m.joints[0], symbols(m)
    orbit, K, rest = orbit_of(group_of(j), np.array(mu, dtype=float)), blocks(T, j.name), list(range(j.nv, m.nv))
    d, k = len(orbit.names), j.nv
    o, p = ca.SX.sym("o", d), ca.SX.sym("p", len(rest))
    mu_b = body_momentum(group_of(j), orbit, o)
    theta, y = K.A.T @ mu_b, solve_definite(K.shape, p)
    H = (ca.dot(p, y) + ca.dot(mu_b, solve_definite(K.K11, mu_b))) / 2
    # The axes of rotors that joints drive do not turn with the rotors.
    rotors = ca.vertcat(*[link.armature for link in T.kinematics.tree.links])[rest]
    turned = ca.vertcat(*[y.T @ commutation_coefficients(T.kinematics)[i][rest, rest] @ (p - rotors * y) for i in rest])
    slope = ca.vertcat(ca.gradient(H, o), directional_derivative(T.kinematics, H)[:, rest].T + turned)
    system, x = pf.reduce(m, momentum=mu), ca.SX.sym("x", m.nq + m.nv)
    at_rest = Motion(ca.SX(m.nv, 1), ca.SX(m.nv, 1), ca.SX(0))
    moving = ca.Function("moving", [T.q, T.v, T.u, x], [system.rated(x, T, at_rest), T.generalised_input[rest]])
    velocity_of = ca.Function("shown", [x, T.t], [system.q_and_v(x, T.t)[1]])
    q_dot, mu_dot = ca.SX.sym("q_dot", m.nq), ca.SX.sym("mu_dot", k)
    seen = [x, y, mu_b, theta, slope, two_form(T, j.name, orbit, o), ca.jacobian(mu_b, o)]
    seen[0] = ca.jtimes(theta, T.q, q_dot) + K.A.T @ mu_dot
    f = ca.Function("f", [T.q, o, p, q_dot, mu_dot], seen)
    (q, _), random = start(m), np.random.default_rng(5)
    at = [q, np.linspace(0.2, 0.7, d), random.normal(size=len(rest))]
    _, y_at, mu_at, theta_at, *_ = f(*at, 0, 0)
    state = ca.vertcat(ca.DM(q), mu_at, ca.DM(at[2]) + theta_at)
    v = velocity_of(state, 0)
    rate, pushed = (np.array(a).ravel() for a in moving(q, v, 0, state))
    theta_dot, _, _, _, slope, Xi, J = (np.array(a) for a in f(*at, rate[: m.nq], rate[m.nq : m.nq + k]))
    close(np.array(v)[k:], np.array(y_at), 1e3 * ALGEBRA, "y")
    o_dot, *_ = np.linalg.lstsq(J, rate[m.nq : m.nq + k], rcond=None)
    close(J @ o_dot, rate[m.nq : m.nq + k], 1e3 * ALGEBRA, "mu_b stays on its orbit", scale=1.0)
    p_dot = rate[m.nq + k :] - pushed - theta_dot.ravel()
    by_form = Xi @ np.r_[o_dot, np.array(y_at).ravel()] - slope.ravel()
    assert np.abs(Xi[d:, d:]).max() > 1e-2 and np.abs(theta_dot).max() > 1e-2
    close(by_form, np.r_[np.zeros(d), p_dot], 1e4 * ALGEBRA, "p_dot", scale=np.abs(slope).max())


def test_the_two_form_in_the_printed_chart():
    """By the section of the thesis and its sum over structure constants. [chhabra14 3.4]"""
    m = study.mechanism()
    T, o, mu1, mu2 = symbols(m), ca.SX.sym("o", 4), printed.MU["mu1"], printed.MU["mu2"]
    chart = Orbit(
        printed.SECTION, ("m", "m", "rad", "rad"), study.MU, (np.eye(3), np.zeros(3)), printed.section, lambda R, p: ca.SX(0, 1)
    )
    ours = two_form(T, "base", chart, o)
    theirs = printed.printed_form(mu1, mu2, o, T.q[7:], blocks(T, "base").A)
    f = ca.Function("f", [T.q, o], [ours, theirs])
    for seed in range(3):
        random = np.random.default_rng(seed)
        a, b = (np.array(x) for x in f(np.r_[0, 0, 0, 0, 0, 0, 1, random.uniform(-2, 2, 6)], random.uniform(-1, 1, 4)))
        close(a, b, 1e2 * ALGEBRA, "Xi")


WHOLE = {"translation": [1, 2, 3], "cylindrical": [0.5, -2], "revolute": [1.5], "planar": [0, 0, 2.5], "free": [0] * 6}
"""Momenta that every motion of their group leaves unchanged."""


@pytest.mark.parametrize("base", WHOLE)
def test_two_form_where_the_isotropy_group_is_the_whole_group(base):
    """Xi_ij = <mu, B_ij>, over the shape alone, and zero without momentum. [chhabra14 cor. 3.3.7, (3.3.47)]"""
    m, mu = machine(base), np.array(WHOLE[base], dtype=float)
    q, _ = start(m)
    Xi = pf.reduction.reduced_two_form(m, mu, q)
    n = m.nv - m.joints[0].nv
    assert Xi.shape == (n, n)
    close(Xi, pf.reduction.connection_curvature(m, q) @ mu, 1e2 * ALGEBRA, "Xi", scale=1)
    # A base that only slides moves opposite to the mass centre: its connection is flat.
    bent = base != "translation" and mu.any()
    assert np.abs(Xi).max() > 0.01 if bent else np.abs(Xi).max() < 1e2 * ALGEBRA


# -- under constraints --------------------------------------------------------------------------------------------------


def almost_symplectic(m, group):
    """Symbols z = (q^, p^), H and Omega - Xi^ (6, 6) with iota_X (Omega - Xi^) = dH, of a machine with three coordinates
    besides a group that wheels fix. [chhabra14 (4.2.13)]"""
    T = symbols(m)
    in_group = [i for n in group for i in range(m.v_slices[n].start, m.v_slices[n].stop)]
    rest = [i for i in range(m.nv) if i not in in_group]
    X, p = ca.densify(horizontal_lift(T, in_group)), ca.SX.sym("p", len(rest))
    y = solve_definite(X.T @ T.M @ X, p)
    P, B = (T.M @ X @ y)[in_group], curvature(T, -X[in_group, :], group)
    n = len(rest)
    Xi = sum((P[a] * B[n * a : n * (a + 1), :] for a in range(len(in_group))), ca.SX(n, n))
    H = ca.dot(p, y) / 2 + potential_energy(T.kinematics)
    return T.q, p, H, ca.densify(ca.blockcat([[-Xi, ca.SX.eye(n)], [-ca.SX.eye(n), ca.SX(n, n)]]))


WHEELED = {
    "rover": (study.rover, ["base"]), "car": (study.car, ["base", "psi3"]), "gyroscope": (steps.mechanism, ["ground"]),
    "load across": (constants.mechanism, ["base"]), "load along": (steps.cart, ["ground"]),
}  # fmt: skip


@pytest.mark.parametrize("name", WHEELED)
def test_momenta_by_bodies_and_by_curvature(name):
    """X^T p_dot + X_dot^T p = d_i T^ - gamma_ij^k y^j p_k - Xi^_ji y^j: one equation in two ways. [chhabra14 (4.2.13)]"""
    make, group = WHEELED[name]
    m = make()
    T = symbols(m)
    in_group = [i for n in group for i in range(m.v_slices[n].start, m.v_slices[n].stop)]
    rest, n = [i for i in range(m.nv) if i not in in_group], m.nv - len(in_group)
    X, y = ca.densify(horizontal_lift(T, in_group)), ca.SX.sym("y", m.nv - len(in_group))
    metric, B = X.T @ T.M @ X, curvature(T, -X[in_group, :], group)
    pi, P = metric @ y, (T.M @ X @ y)[in_group]
    slope = directional_derivative(T.kinematics, ca.dot(y, pi) / 2)[:, rest].T
    turned = ca.vertcat(*[ca.dot(commutation_coefficients(T.kinematics)[i][rest, rest].T @ y, pi) for i in rest])
    pull = sum((P[a] * B[n * a : n * (a + 1), :] for a in range(len(in_group))), ca.SX(n, n)).T @ y
    by_bodies = ca.substitute(transport_along(T, X), T.v, X @ y)
    f = ca.Function("f", [T.q, y], [by_bodies, slope - turned - pull, pull])
    bent = 0.0
    for seed in range(3):
        random = np.random.default_rng(seed)
        a, b, part = (np.array(x).ravel() for x in f(random_configuration(m, random), random.normal(size=n)))
        close(a, b, 1e3 * ALGEBRA, "p_dot", scale=np.abs(a).max() + np.abs(part).max())
        bent = max(bent, np.abs(part).max() / np.abs(a).max())
    assert bent > 1e-3


def test_the_form_vanishes_although_wheels_roll():
    """For a rover with its mass centre on the axle Xi^ = 0, and both momenta are conserved, although its wheels let it turn
    and roll and B^ is not zero. [chhabra14 remark 4.2.9]"""
    m = constants.mechanism()
    m = m.with_(bodies=m.bodies[:3], joints=m.joints[:3])
    random = np.random.default_rng(2)
    A, B = pf.reduction.constraint_connection(m), pf.reduction.constraint_curvature(m)
    y = random.normal(size=2)
    P = (pf.mass_matrix(m) @ np.r_[-A @ y, y])[:3]
    assert np.abs(B[0, 1]).max() > 1e-3 and np.abs(P).min() < 1e-15 < np.abs(P).max()
    close(B @ P, np.zeros((2, 2)), ALGEBRA, "Xi^", scale=1)
    assert plan(m, None).conserved == (3, 4)


def constants_of(name):
    """(q, p) -> the momenta along the fields of the study, written by hand."""
    if name == "load along":
        return lambda q, p: [p[2], (p[1] - p[2] * steps.CARRIAGE["b"] * ca.cos(q[2])) / ca.sqrt(effective_inertia(q[2]))]
    b, c = constants.ROVER["b"], constants.ROVER["c"]

    def both(q, p):
        f = constants.shares(q[5])
        return [((f[i, 0] - c * f[i, 1]) * p[0] + (f[i, 0] + c * f[i, 1]) * p[1]) / b for i in range(2)]

    return both


def effective_inertia(a):
    g = steps.CARRIAGE
    return (g["mass"] + g["fork"] + g["wheel"]) * g["b"] ** 2 + g["wheel_I"] + steps.LOAD * (g["b"] * ca.sin(a)) ** 2


@pytest.mark.parametrize("name", ["load across", "load along"])
def test_constants_of_motion_and_their_fields(name):
    """h is conserved if its field leaves H unchanged, dH(X_h) = -dh(X_H), and only then. [chhabra14 prop. 4.2.12]

    With the load along the carriage both constants commute, and the contribution of their fields to d Xi^ vanishes on their
    level, so that [chhabra14 theorem 4.2.17] applies; with the load across they are conserved as well, but neither condition
    holds.
    """
    make, group = WHEELED[name]
    m = make()
    q, p, H, form = almost_symplectic(m, group)
    rest = [i for i in range(m.nq) if not any(m.q_slices[n].start <= i < m.q_slices[n].stop for n in group)]
    z = ca.vertcat(q[rest], p)
    functions = [*constants_of(name)(q, p), p[1], ca.sin(q[rest[0]]) * p[0] + p[2]]
    slopes = ca.horzcat(*[ca.gradient(x, z) for x in (*functions, H)])
    # iota_X form = dh: form^T X = dh.
    fields = ca.solve(form.T, slopes)
    change = ca.jacobian(ca.vec(form), z)
    f = ca.Function("f", [q, p], [slopes, fields, form, change])
    random = np.random.default_rng(11)
    dh, X, at, d = (np.array(x) for x in f(np.r_[np.zeros(m.nq - 3), random.uniform(-1, 1, 3)], random.normal(size=3)))
    bracket = dh.T @ X
    close(bracket, -bracket.T, 1e2 * ALGEBRA, "skew")
    assert np.abs(bracket[:2, 4]).max() < 1e3 * ALGEBRA * np.abs(bracket).max() and np.abs(bracket[2:4, 4]).min() > 1e-3
    d = d.reshape(6, 6, 6).transpose(2, 1, 0)
    d = d + d.transpose(1, 2, 0) + d.transpose(2, 0, 1)
    level = null_space(dh[:, :2].T)
    left = np.einsum("ak,abc,bi,cj->kij", X[:, :2], d, level, level)
    applies = name == "load along"
    assert np.abs(d).max() > 1e-3
    for x in (bracket[0, 1], np.abs(left).max()):
        assert abs(x) < 1e-12 if applies else abs(x) > 1e-3
    # The form on the level has the fields as its kernel, or no kernel.
    assert np.linalg.matrix_rank(level.T @ at @ level, tol=1e-9) == (2 if applies else 4)


# -- connections and momentum maps ------------------------------------------------------------------------------------


@pytest.mark.parametrize("base", ["free", "planar", "schoenflies"])
def test_equivariance_under_the_group(base):
    """T(g q) = T(q), J(g q) = Ad_g^-T J, I(g q) = Ad_g^-T I Ad_g^-1, A and M^ are invariant; I^-1 J xi_Q = xi. [chhabra14
    3.3.2]"""
    m = machine(base)
    j, (q, v) = m.joints[0], start(m)
    g = start(m, 9)[0]
    moved = q.copy()
    moved[: j.nq] = np.array(group_of(j).chart(*se3.compose(*pose(m, g), *pose(m, q)))).ravel()
    back = np.linalg.inv(adjoint(m, *pose(m, g)))
    close(pf.energy(m, moved, v).kinetic, pf.energy(m, q, v).kinetic, 10 * ALGEBRA, "T")
    close(pf.reduction.momentum_map(m, moved, v), back.T @ pf.reduction.momentum_map(m, q, v), 1e2 * ALGEBRA, "J")
    close(pf.reduction.locked_inertia(m, moved), back.T @ pf.reduction.locked_inertia(m, q) @ back, 1e2 * ALGEBRA, "I")
    for f in (pf.reduction.mechanical_connection, pf.reduction.shape_inertia):
        close(f(m, moved), f(m, q), 1e2 * ALGEBRA, f.__name__)
    xi = np.random.default_rng(4).normal(size=j.nv)
    along = np.r_[np.linalg.solve(adjoint(m, *pose(m, q)), xi), np.zeros(m.nv - j.nv)]
    close(
        np.linalg.solve(pf.reduction.locked_inertia(m, q), pf.reduction.momentum_map(m, q, along)), xi, 1e3 * ALGEBRA, "A(xi_Q)"
    )


@pytest.mark.parametrize(("base", "mu"), CASES[:4], ids=NAMES[:4])
def test_inertia_and_connection_of_the_isotropy_group(base, mu):
    """I^mu = i^T I i. A^mu is the identity along the group, zero across it in the metric, and equivariant under the
    isotropy group."""
    m = machine(base)
    j, (q, v) = m.joints[0], start(m)
    i = isotropy(S_of(m), mu)
    inertia, A = pf.reduction.isotropy_inertia(m, mu, q), pf.reduction.isotropy_connection(m, mu, q)
    close(inertia, i.T @ pf.reduction.locked_inertia(m, q) @ i, 1e3 * ALGEBRA, "I^mu")
    along = np.zeros((m.nv, i.shape[1]))
    along[: j.nv] = np.linalg.solve(adjoint(m, *pose(m, q)), i)
    close(A @ along, np.eye(i.shape[1]), 1e3 * ALGEBRA, "A^mu along the group")
    across = v - along @ (A @ v)
    close(along.T @ pf.mass_matrix(m, q) @ across, np.zeros(i.shape[1]), 1e4 * ALGEBRA, "across, in the metric")
    close(inertia @ A @ v, i.T @ pf.reduction.momentum_map(m, q, v), 1e3 * ALGEBRA, "I^mu A^mu = i^T J")
    h = se3.exp(ca.DM(S_of(m) @ i @ np.linspace(0.3, 0.8, i.shape[1])))
    moved = q.copy()
    moved[: j.nq] = np.array(group_of(j).chart(*se3.compose(*map(ca.DM, h), *pose(m, q)))).ravel()
    turned = np.linalg.lstsq(i, adjoint(m, *map(ca.DM, h)) @ i, rcond=None)[0]  # Ad_h maps the algebra to itself
    close(i @ turned, adjoint(m, *map(ca.DM, h)) @ i, 1e2 * ALGEBRA, "Ad_h i")
    close(pf.reduction.isotropy_connection(m, mu, moved), turned @ A, 1e4 * ALGEBRA, "A^mu moved by h")


def test_the_remaining_motion_stays_in_the_isotropy_group():
    """h = g chi(o)^-1 leaves mu unchanged throughout a run, and h^-1 h_dot is in its algebra. [chhabra14 (5.1.11)]"""
    first, second = (
        pf.body("a", 2.0, com=(0.1, 0, 0), inertia=(0.1, 0.2, 0.25)),
        pf.body("b", 1.0, com=(0.2, 0, 0), inertia=0.1),
    )
    m = pf.mechanism(
        "two bodies", [first, second],
        [pf.joint("f", "free", "world", "a"), pf.joint("h", "revolute", "a", "b", axis=(0, 1, 0), placement=(0.3, 0, 0))],
        gravity=(0, 0, 0),
    )  # fmt: skip
    v = np.array([0.3, -0.2, 1.0, 0.5, 0.4, -0.7, 0.9])
    mu = pf.reduction.momentum_map(m, None, v)
    r = pf.run(pf.reduce(m, momentum=mu), None, v, duration=0.4, step=2e-3, every=1, backend="interpreter")
    group = group_of(m.joints[0])
    orbit = orbit_of(group, mu)
    o = ca.SX.sym("o", 4)
    section = ca.Function("section", [o], list(orbit.section(o)))
    seen = ca.Function("seen", [o], [body_momentum(group, orbit, o)])
    h = []
    for q, mu_b in zip(r.q.values, r.orbit.values, strict=True):
        x = ca.DM(orbit.coordinates(*group.motion(ca.DM(q[:7]))))
        close(np.array(seen(x)).ravel(), mu_b, 1e-9, "mu_b by the chart")
        # The section is in the frame of the chart, where a^-1 g = h chi.
        carried = se3.compose(*se3.inverse(*map(ca.DM, orbit.aligned)), *group.motion(ca.DM(q[:7])))
        h.append(se3.compose(*carried, *se3.inverse(*section(x))))
    Ad = np.array([np.array(se3.Ad(*x)) for x in h])
    close(Ad.transpose(0, 2, 1) @ orbit.mu, np.tile(orbit.mu, (len(h), 1)), 1e-9, "mu under h")
    assert np.abs(Ad - Ad[0]).max() > 0.1
    i = isotropy(np.eye(6), orbit.mu)
    for a, b in zip(h[:-2:20], h[2::20], strict=True):
        step = np.array(se3.log(*se3.compose(*se3.inverse(*a), *b))).ravel()
        close(i @ (i.T @ step), step, 1e-9, "h^-1 h_dot", scale=np.abs(step).max())
