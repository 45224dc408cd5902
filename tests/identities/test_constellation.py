"""Point springs as one spring between poses and back, and stiffness, damping and inertia of 21 numbers. [konz25 2.4, A.5]"""

from __future__ import annotations

import pickle

import casadi as ca
import numpy as np
import pytest

import pfaffian as pf
from pfaffian import forces
from pfaffian.maths import se3, so3
from pfaffian.terms.equations_digest import digest
from tests.identities.test_ready_forces import chain, with_
from tests.matrices import number
from tests.random_mechanisms import Case, matrices, random_pose, random_rotation
from tests.refused import refusals
from tests.tolerance import ALGEBRA, DERIVATIVE, close

SEEDS = range(6)


def random_springs(seed: int, n: int = 7):
    """Random springs (k, p, h). For seeds of 3 and above the body points are mirrored, so that the second moments have a
    negative determinant."""
    random = np.random.default_rng(seed)
    h = random.normal(size=(n, 3))
    p = h @ (np.diag([1, 1, -1.5]) if seed > 2 else np.eye(3)) @ random_rotation(random).T + 0.4 * random.normal(size=(n, 3))
    return random.uniform(1, 5, n), p + random.normal(size=3), h


def energy_of(springs, G):
    k, p, h = springs
    return k @ np.square(h @ G[:3, :3].T + G[:3, 3] - p).sum(axis=1) / 2


def at_rest(found) -> np.ndarray:
    return number(se3.homogeneous(found.rest.R, found.rest.p))


def random_poses(random, count: int):
    for _ in range(count):
        yield np.block([[random_rotation(random), 3 * random.normal(size=(3, 1))], [np.zeros((1, 3)), np.ones((1, 1))]])


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("n", [1, 2, 3, 7, 40])
def test_springs_are_17_numbers(seed, n):
    """V = tr((G - G_R) K' (G - G_R)^T) / 2 + V0 at any pose, and V0 is the smallest energy. [konz25 (3.61)-(3.72)]"""
    springs, random = random_springs(seed, n), np.random.default_rng(100 + seed)
    found = forces.spring_constellation(*springs)
    G_R, K = at_rest(found), found.stiffness
    assert found.strict == (n > 2)
    close(found.energy, energy_of(springs, G_R), ALGEBRA, "V0", 1)
    for G in random_poses(random, 20):
        V, X = energy_of(springs, G), G - G_R
        close(np.trace(X @ K @ X.T) / 2 + found.energy, V, 1e-13, "V", V)
        assert found.energy * (1 - 1e-12) <= V
    close(
        se3.Vee(K),
        number(se3.Vee(forces.pseudo_matrix(found.weight, found.centre, found.moments))),
        1e-13,
        "k, h, Pi_s",
        100,
    )
    least = np.linalg.eigvalsh(number(se3.Vee(K)))[0]
    assert least > (1e-3 if found.strict else -1e-12)
    assert (np.linalg.eigvalsh(K)[0] < -1e-3) == (seed > 2 and n > 3)


@pytest.mark.parametrize("seed", SEEDS)
def test_gradient_and_hessian(seed):
    """Along G_dot = G hat(xi): derivatives of the energy summed over the springs against the printed ones. [konz25 (3.64),
    (3.65), (3.72)]"""
    k, p, h = springs = random_springs(seed)
    random = np.random.default_rng(seed)
    R, r, xi = ca.SX.sym("R", 3, 3), ca.SX.sym("r", 3), ca.SX.sym("xi", 6)
    Q, x = se3.compose(R, r, *se3.exp(xi))
    V = sum(ki * ca.sumsqr(x + Q @ ca.DM(hi) - ca.DM(pi)) / 2 for ki, pi, hi in zip(k, p, h, strict=True))
    d = ca.Function("d", [R, r, xi], [ca.gradient(V, xi), ca.jacobian(ca.gradient(V, xi), xi)])
    total, h_s, p_s, P = k.sum(), k @ h / k.sum(), k @ p / k.sum(), (k[:, None] * h).T @ p
    hat = lambda w: number(so3.hat(w))  # noqa: E731
    G = next(random_poses(random, 1))
    R0, r0 = G[:3, :3], G[:3, 3]
    turn = total * np.cross(h_s, R0.T @ r0) + number(so3.vee2(P @ R0)).ravel()
    printed = np.concatenate([total * (R0.T @ (r0 - p_s) + h_s), turn])
    close(number(d(R0, r0, np.zeros(6))[0]).ravel(), printed, DERIVATIVE, "gradient", 100)
    found = forces.spring_constellation(*springs)
    G = at_rest(found)
    R0, r0 = G[:3, :3], G[:3, 3]
    gradient, hessian = (number(y) for y in d(R0, r0, np.zeros(6)))
    close(gradient, np.zeros((6, 1)), DERIVATIVE, "gradient at rest", 100)
    close(hessian, number(se3.Vee(found.stiffness)), DERIVATIVE, "Hessian at rest", 100)
    P_R = P @ R0
    printed = np.block([[total * np.eye(3), total * hat(R0.T @ (r0 - p_s))],
                        [total * hat(h_s), total * hat(h_s) @ hat(R0.T @ r0) + np.trace(P_R) * np.eye(3) - P_R.T]])  # fmt: skip
    close(hessian, printed, DERIVATIVE, "(3.65)", 100)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("more", [None, 0.0, 3.0])
def test_point_springs_give_the_matrix_back(seed, more):
    first = forces.spring_constellation(*random_springs(seed))
    least = forces.spring_constellation(*forces.point_springs(first.stiffness, first.rest)).energy
    S = first.stiffness[:3, :3] - first.weight * np.outer(first.centre, first.centre)
    close(least, max(0.0, -2 * np.linalg.eigvalsh(S)[0]), 1e-12, "least energy", 10)
    total_energy = None if more is None else least + more
    springs = forces.point_springs(first.stiffness, first.rest, total_energy)
    again = forces.spring_constellation(*springs)
    close(again.stiffness, first.stiffness, 1e-13, "K'", 100)
    close(at_rest(again), at_rest(first), 1e-12, "pose at rest", 10)
    close(again.energy, least + (more or 0), 1e-12, "V0", 10)
    assert np.ptp(springs.stiffness) == 0 and len(springs.stiffness) == 4


def test_point_springs_of_one_spring():
    """All four springs are at one point, or spread out on one body if there is an energy."""
    first = forces.spring_constellation([3.0], [[0, 0, 1]], [[1, 0, 0]])
    assert not first.strict and first.energy == 0 and not first.moments.any()
    for energy in (None, 2.5):
        again = forces.spring_constellation(*forces.point_springs(first.stiffness, first.rest, energy))
        close(again.stiffness, first.stiffness, ALGEBRA, "K'")
        close(again.energy, energy or 0.0, ALGEBRA, "V0", 1)


@pytest.mark.parametrize("seed", [1, 4])
def test_merged_springs_give_the_same_forces(seed):
    """Forces and reactions are equal, also for a second moment with a negative eigenvalue and for ends in the other order."""
    case, (k, p, h) = chain(), random_springs(seed)
    single = [pf.spring(f"s{i}", "b2", "b3", point_a=p[i], point_b=h[i], stiffness=k[i]) for i in range(6)]
    single.append(pf.spring("s6", "b3", "b2", point_a=h[6], point_b=p[6], stiffness=k[6]))
    one = forces.merged_springs("s", single)
    parts = {"f": lambda T: T.f, "V": lambda T: T.V}
    r, s = (matrices(with_(case, *x), parts) for x in (single, [one]))
    close(s["f"], r["f"], DERIVATIVE, "as one", np.abs(r["f"]).max())
    close(r["V"] - s["V"], [[forces.spring_constellation(k, p, h).energy]], DERIVATIVE, "V0", np.abs(r["V"]).max())
    joints = ["j0", "j2", "j3"]
    a, b = (pf.reaction_wrench(with_(case, *x).m, joints, case.q, case.v) for x in (single, [one]))
    for n in joints:
        close(b[n].wrench, a[n].wrench, 1e-11, f"wrench of {n}", np.abs(a["j0"].wrench).max())


# -- 21 numbers -------------------------------------------------------------------------------------------------------


def random_form(random, rank: int = 6) -> np.ndarray:
    B = random.normal(size=(6, rank))
    return B @ B.T


@pytest.mark.parametrize("seed", SEEDS)
def test_inner_product(seed):
    """[konz25 (A.14)-(A.19)], with Wed where the thesis prints Vee."""
    random = np.random.default_rng(seed)
    K, pseudo = random_form(random), 0.0
    for h in random.normal(size=(5, 4)):
        pseudo = pseudo + np.outer(h, h)
    Y, x, z = random.normal(size=(2, 3, 3)), random.normal(size=(2, 3)), random.normal(size=(2, 6))
    X = [np.block([[Yi, xi[:, None]], [np.zeros((1, 4))]]) for Yi, xi in zip(Y, x, strict=True)]
    inner = lambda K, a, b: number(se3.inner(K, a, b)).item()  # noqa: E731
    a, b = zip(Y, x, strict=True)
    twists = [(hat[:3, :3], hat[:3, 3]) for hat in (number(se3.hat(xi)) for xi in z)]
    close(inner(K, *twists), z[0] @ K @ z[1], ALGEBRA, "of twists", 100)
    general = number(se3.Vee(pseudo))
    close(inner(general, a, b), np.trace(X[0] @ pseudo @ X[1].T), ALGEBRA, "of a pseudo-matrix", 100)
    close(inner(K, a, b), inner(K, b, a), ALGEBRA, "symmetric", 100)
    R = random_rotation(random)
    turned = [(R @ Yi, R @ xi) for Yi, xi in (a, b)]
    close(inner(general, *turned), inner(general, a, b), ALGEBRA, "a pseudo-matrix is invariant under rotations", 100)
    assert abs(inner(K, *turned) - inner(K, a, b)) > 1e-3, "but others are not"
    for rank in (6, 3, 1):
        for G in random_poses(random, 10):
            off = (G[:3, :3] - np.eye(3), G[:3, 3])
            assert inner(random_form(random, rank), off, off) > -1e-10


@pytest.mark.parametrize("ends", [("b3", "b2"), ("world", "b1"), ("b2", "world")])
def test_a_pose_spring_of_21_numbers(ends):
    """With Vee(K') it equals the spring of K'. For other K, V is 0 only at rest, where its Hessian along the body's twists
    is K."""
    random, case = np.random.default_rng(4), chain()
    pseudo, rest = forces.spring_constellation(*random_springs(5)).stiffness, random_pose(random)
    general = number(se3.Vee(pseudo))
    parts = {"f": lambda T: T.f, "V": lambda T: T.V}
    a, b = (matrices(with_(case, forces.pose_spring("s", *ends, K, rest=rest)), parts) for K in (pseudo, general))
    close(b["f"], a["f"], DERIVATIVE, "force", np.abs(a["f"]).max())
    close(b["V"], a["V"], DERIVATIVE, "energy", np.abs(a["V"]).max() + 10)
    K, D = random_form(random), number(se3.Vee(pseudo))
    a, b = (matrices(with_(case, forces.pose_damper("d", *ends, Q)), parts) for Q in (pseudo, D))
    close(b["f"], a["f"], DERIVATIVE, "damper", np.abs(a["f"]).max())
    s = pf.Parameter("scale", 2.0)
    scaled, plain = (forces.pose_spring("s", *ends, Q, rest=rest) for Q in (s * ca.SX(K), 2 * K))
    r, p = (matrices(Case(case.m.with_(forces=[f], parameters=[s]), case.q, case.v, case.u, case.t), parts)
            for f in (scaled, plain))  # fmt: skip
    close(r["f"], p["f"], DERIVATIVE, "of parameters", np.abs(p["f"]).max())
    assert pickle.loads(pickle.dumps(plain)) == plain
    kinds = [forces.pose_spring("s", *ends, Q) for Q in (K, 2 * K, pseudo)] + [
        forces.pose_inertia("s", *ends, Q) for Q in (K, 2 * K)
    ]
    assert len({digest(with_(case, f).m) for f in kinds}) == 5


def test_at_rest_the_hessian_is_the_stiffness():
    random = np.random.default_rng(6)
    rest, K = random_pose(random), random_form(random)
    m = pf.mechanism("free", [pf.body("b", 1, inertia=1)], [pf.joint("j", "free", "world", "b")],
                     forces=[forces.pose_spring("s", "world", "b", K, rest=rest)], gravity=(0, 0, 0))  # fmt: skip
    q = np.concatenate([number(rest.p).ravel(), number(so3.matrix_to_quat(rest.R)).ravel()])
    close(pf.calculus.covariant_hessian(m, q), K, DERIVATIVE, "K", 10)
    close(pf.calculus.directional_derivative(m, q), np.zeros((1, 6)), DERIVATIVE, "no force", 10)
    damped = m.with_(forces=[*m.forces, forces.pose_damper("d", "world", "b", K)])
    v = random.normal(size=6)
    found = (
        [pf.bias_force(x, q, v) for x in (m, damped)] if False else [pf.forward_dynamics(x, q, v).v_dot for x in (m, damped)]
    )
    close(pf.mass_matrix(m, q) @ (found[0] - found[1]), K @ v, DERIVATIVE, "D xi", 10)


@pytest.mark.parametrize("ends", [("world", "b1"), ("b2", "b3")])
def test_added_mass(ends):
    """M v_dot + c are those of Kirchhoff, M_A xi_dot - ad(xi)^T M_A xi, mapped by the Jacobian of the relative twist."""
    random, case, (a, b) = np.random.default_rng(7), chain(), ends
    M_A = random_form(random)
    with_mass, plain = (
        matrices(with_(case, *f), {"M": lambda T: T.M, "c": lambda T: T.c}) for f in ([forces.pose_inertia("i", a, b, M_A)], [])
    )
    k = pf.symbols(case.m).kinematics
    G = k.pose(a).inverse() @ k.pose(b)
    J = k.jacobian(b) - se3.Ad_inv(G.R, G.p) @ k.jacobian(a)
    J_dot = ca.reshape(ca.jtimes(ca.vec(ca.densify(J)), k.q, k.q_dot), 6, case.m.nv)
    of = ca.Function("J", [k.q, k.v, k.mechanism.p_symbols], [J, J_dot])
    J, J_dot = (number(x) for x in of(case.q, case.v, case.m.p_defaults))
    xi = J @ case.v
    force = J.T @ (M_A @ J_dot @ case.v - number(se3.ad(xi)).T @ M_A @ xi)
    close(with_mass["M"] - plain["M"], J.T @ M_A @ J, DERIVATIVE, "mass matrix", np.abs(with_mass["M"]).max())
    close((with_mass["c"] - plain["c"]).ravel(), force, DERIVATIVE, "inertia force", np.abs(force).max())


S = pf.spring("s", "a", "b", stiffness=1.0)
K1 = np.eye(4)
REFUSED = {
    "no stiffness": (lambda: forces.spring_constellation([0, 0], np.eye(3)[:2], np.eye(3)[:2]), "total stiffness is zero"),
    "none at all": (lambda: forces.spring_constellation([], np.zeros((0, 3)), np.zeros((0, 3))), "total stiffness is zero"),
    "below zero": (
        lambda: forces.spring_constellation([1, -2], np.eye(3)[:2], np.eye(3)[:2]), "number 1 is below zero: -2 N/m"),
    "of another count": (lambda: forces.spring_constellation([1], np.eye(3), np.eye(3)), r"\(n,\) and twice \(n, 3\)"),
    "stiffness of no springs": (lambda: forces.point_springs(np.diag([1, -2, 1, 1])), "stiffness: .*lowest eigenvalue is -1"),
    "a full one": (lambda: forces.point_springs(np.eye(6)), r"stiffness: a \(4, 4\) matrix is needed"),
    "turning alone": (lambda: forces.point_springs(np.diag([1, 1, 1, 0])), "its weight, the last entry, is zero"),
    "too little energy": (lambda: forces.point_springs(np.diag([2, 2, -1, 1]), energy=1), "energy 1 J is less than .* 2 J"),
    "energy as text": (lambda: forces.point_springs(K1, energy="1"), "energy: '1' is not a number"),
    "a parameter": (
        lambda: forces.point_springs(forces.pseudo_matrix(pf.Parameter("k", 1.0))), "stiffness: numbers are needed here"),
    "merged: no springs": (lambda: forces.merged_springs("m", []), "force 'm': a list of spring"),
    "merged: a pose spring": (lambda: forces.merged_springs("m", [forces.pose_spring("p", "a", "b", K1)]), "a list of spring"),
    "merged: two pairs": (
        lambda: forces.merged_springs("m", [S, pf.spring("t", "a", "c")]), "spring 't' is not between 'a' and 'b', as 's' is"),
    "merged: with a length": (
        lambda: forces.merged_springs("m", [pf.spring("t", "a", "b", rest=1)]), "'t' has a length at rest"),
    "merged: a parameter": (
        lambda: forces.merged_springs("m", [pf.spring("t", "a", "b", stiffness=pf.Parameter("k", 1.0))]), "'t': numbers are"),
    "merged: no stiffness": (lambda: forces.merged_springs("m", [pf.spring("t", "a", "b")]), "'m': .*total stiffness is zero"),
}  # fmt: skip


test_wrong_arguments_are_refused = refusals(REFUSED)
