"""Critical points of -tr(P R) on rotations, checked by differentiation; special polar decomposition; Wahba. [konz25 2.4]"""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest

from pfaffian import rotations
from pfaffian.maths import so3
from pfaffian.parts.rotation_potential import _quadratic_form
from tests.matrices import number
from tests.random_mechanisms import random_rotation
from tests.refused import refusals
from tests.tolerance import ALGEBRA, DERIVATIVE, close

SEEDS = range(5)


_W, _P, _R = ca.SX.sym("w", 3), ca.SX.sym("P", 3, 3), ca.SX.sym("R", 3, 3)
_V = -ca.trace(_P @ _R @ so3.exp(_W))
_H, _G = ca.hessian(_V, _W)
BY_DIFFERENTIATION = ca.Function("V", [_P, _R, _W], [_V, _G, _H])


def differentiated(P, R):
    """V, gradient and Hessian at R along R exp(hat(w))."""
    V, G, H = (np.array(x) for x in BY_DIFFERENTIATION(P, R, [0, 0, 0]))
    return V.item(), G.ravel(), H


def circle(rows):
    return lambda random: rows(*(lambda a: (np.cos(a), np.sin(a)))(random.uniform(0, 2 * np.pi)))


def half_turn(random):
    q = random.normal(size=3)
    return 2 * np.outer(q, q) / (q @ q) - np.eye(3)


def about_xy(random):
    x, y, w = (q := random.normal(size=3)) / np.linalg.norm(q)
    return number(so3.quat_to_matrix([x, y, 0, w]))


def at(*diagonal):
    return lambda random: np.diag(diagonal)


ONE, X, Y, Z = at(1, 1, 1), at(1, -1, -1), at(-1, 1, -1), at(-1, -1, 1)
SADDLES = circle(lambda c, s: [[-c, s, 0], [s, c, 0], [0, 0, -1]])
HIGH = circle(lambda c, s: [[-1, 0, 0], [0, c, s], [0, s, -c]])
LOW = circle(lambda c, s: [[1, 0, 0], [0, c, -s], [0, s, c]])
# (l1, l2, l3) -> (kind, shape, one of its points in the frames of the singular vectors, value, eigenvalues)
TABLE = {
    (1, 2, 2.5): [
        ("minimum", "a point", ONE, -2.75, (1, 2, 2.5)),
        ("saddle", "a point", X, -0.75, (-1, 1, 1.5)),
        ("saddle", "a point", Y, 1.25, (-2, -1, 0.5)),
        ("maximum", "a point", Z, 2.25, (-2.5, -1.5, -0.5)),
    ],
    (1, 2, 4): [  # P with a negative determinant
        ("minimum", "a point", ONE, -3.5, (1, 2, 4)),
        ("saddle", "a point", X, -1.5, (-1, 1, 3)),
        ("saddle", "a point", Y, 0.5, (-2, -1, 2)),
        ("maximum", "a point", Z, 4.5, (-4, -3, -2)),
    ],
    (2, 2, 3): [
        ("minimum", "a point", ONE, -3.5, (2, 2, 3)),
        ("saddle", "a circle", SADDLES, 0.5, (-2, 0, 1)),
        ("maximum", "a point", Z, 2.5, (-3, -1, -1)),
    ],
    (1, 3, 3): [
        ("minimum", "a point", ONE, -3.5, (1, 3, 3)),
        ("saddle", "a point", X, -1.5, (-1, 2, 2)),
        ("maximum", "a circle", HIGH, 2.5, (-3, -2, 0)),
    ],
    (2, 2, 2): [("minimum", "a point", ONE, -3, (2, 2, 2)), ("maximum", "a sphere", half_turn, 1, (-2, 0, 0))],
    (0, 1, 3): [
        ("minimum", "a circle", LOW, -2, (0, 1, 3)),
        ("saddle", "a point", Y, 0, (-1, -1, 2)),
        ("maximum", "a point", Z, 4, (-3, -3, -2)),
    ],
    (0, 2, 2): [("minimum", "a circle", LOW, -2, (0, 2, 2)), ("maximum", "a circle", HIGH, 2, (-2, -2, 0))],
    (0, 0, 3): [("minimum", "a sphere", about_xy, -1.5, (0, 0, 3)), ("maximum", "a point", Z, 4.5, (-3, -3, -3))],
    (0, 0, 0): [("constant", "all rotations", half_turn, 0, (0, 0, 0))],
}


@pytest.mark.parametrize("l", TABLE)
@pytest.mark.parametrize("seed", [0, 1])
def test_critical_points(l, seed):
    """Every row of the table of [konz25 2.4], and the cases that it leaves to the reader."""
    random = np.random.default_rng(seed)
    S = np.diag(sum(l) / 2 - np.array(l, dtype=float))
    left, right = random_rotation(random), random_rotation(random)
    P = left @ S @ right.T
    found = rotations.critical_rotations(P)
    assert [(c.kind, c.shape) for c in found] == [row[:2] for row in TABLE[l]]
    for c, (kind, _, point, value, eigenvalues) in zip(found, TABLE[l], strict=True):
        close(c.value, value, ALGEBRA, f"value at the {kind}", 5)
        close(c.eigenvalues, np.array(eigenvalues), ALGEBRA, f"eigenvalues at the {kind}", 5)
        close(c.quaternions @ c.quaternions.T, np.eye(len(c.quaternions)), ALGEBRA, "an orthonormal basis")
        printed = right @ np.array(point(random), dtype=float) @ left.T
        q = number(so3.matrix_to_quat(printed)).ravel()
        close(c.quaternions.T @ (c.quaternions @ q), q, 1e-14, f"the printed {kind} is in the set")
        for R in (printed, c.rotation, c.at(random.normal(size=len(c.quaternions)))):
            close(R @ R.T, np.eye(3), ALGEBRA, "a rotation")
            V, gradient, hessian = differentiated(P, R)
            close(V, c.value, DERIVATIVE, "V", 5)
            close(gradient, np.zeros(3), DERIVATIVE, "gradient", 5)
            close(np.linalg.eigvalsh(hessian), c.eigenvalues, DERIVATIVE, "eigenvalues of the Hessian", 5)
            close(hessian, number(so3.Vee(P @ R)), DERIVATIVE, "Hess V = Vee(P R)", 5)


@pytest.mark.parametrize("seed", SEEDS)
def test_v_is_a_quadratic_form_in_the_quaternion(seed):
    """V = q^T S q in the quaternion q, so its eigenvectors are the only critical points."""
    random = np.random.default_rng(seed)
    P, q = random.normal(size=(3, 3)), random.normal(size=4)
    q /= np.linalg.norm(q)
    R = number(so3.quat_to_matrix(q))
    V, gradient, _ = differentiated(P, R)
    close(q @ _quadratic_form(P) @ q, V, ALGEBRA, "V", 10)
    close(gradient, number(so3.vee2(P @ R)).ravel(), ALGEBRA, "grad V = vee2(P R)", 10)
    a = np.linalg.svd(P)[1]
    l = np.array([a[1] + a[2] * (s := np.sign(np.linalg.det(P))), a[0] + s * a[2], a[0] + a[1]])
    values = [-l.sum() / 2, *(2 * l - l.sum() / 2)]
    close([c.value for c in rotations.critical_rotations(P)], values, ALGEBRA, "values by the singular values", 10)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("rank", [3, 2, 1, 0])
def test_special_polar_decomposition(seed, rank):
    random = np.random.default_rng(seed)
    A, B = random.normal(size=(2, 3, 3))
    M = A[:, :rank] @ B[:rank]
    R, K, unique = rotations.special_polar(M)
    close(R @ R.T, np.eye(3), ALGEBRA, "R R^T = 1")
    assert np.linalg.det(R) > 0 and unique == (rank >= 2)
    close(R @ number(so3.Wed(K)), M, 1e-13, "R Wed(K) = M", 10)
    assert np.linalg.eigvalsh(K)[0] >= -1e-14 * np.abs(M).max()
    X, S, Yt = np.linalg.svd(M)
    d = np.diag([1, 1, np.linalg.det(X) * np.linalg.det(Yt)])
    close(K, number(so3.Vee(Yt.T @ d @ np.diag(S) @ Yt)), 1e-13, "K by the singular vectors", 10)
    if unique:
        close(R, X @ d @ Yt, 1e-12 / (S[1] - S[2]), "R by the singular vectors")


@pytest.mark.parametrize("seed", SEEDS)
def test_wahba(seed):
    """Compared with Kabsch's method and, without noise, with the true rotation. Rotations nearby have a higher cost."""
    random = np.random.default_rng(seed)
    n, true = 2 + seed, random_rotation(random)
    v, w = random.normal(size=(n, 3)), random.uniform(0.5, 2, n)
    exact = rotations.wahba(v @ true.T, v, w)
    close(exact.R, true, 1e-13, "without noise")
    assert exact.cost < 1e-24
    u = v @ true.T + 0.1 * random.normal(size=(n, 3))
    R, cost, information = rotations.wahba(u, v, w)
    X, _, Yt = np.linalg.svd((w[:, None] * u).T @ v)
    close(R, X @ np.diag([1, 1, np.linalg.det(X @ Yt)]) @ Yt, 1e-12, "Kabsch")

    def loss(R):
        return sum(wk * np.sum((uk - R @ vk) ** 2) for wk, uk, vk in zip(w, u, v, strict=True)) / 2

    close(cost, loss(R), ALGEBRA, "cost", 1)
    P = (w[:, None] * v).T @ u
    close(information, differentiated(P, R)[2], DERIVATIVE, "Hessian of the cost", 10)
    others = [number(so3.exp(x)) @ R for x in random.normal(size=(50, 3)) * 0.3]
    assert min(map(loss, others)) > cost


@pytest.mark.parametrize("seed", SEEDS)
def test_the_nearest_rotation(seed):
    random = np.random.default_rng(seed)
    Q, B = random.normal(size=(2, 3, 3))
    K = B @ B.T
    R = rotations.nearest_rotation(Q, K)
    distance = lambda R: np.trace((R - Q).T @ K @ (R - Q))  # noqa: E731
    others = [number(so3.exp(x)) @ R for x in random.normal(size=(50, 3)) * random.uniform(0.01, 3, (50, 1))]
    assert min(map(distance, others)) > distance(R)
    close(rotations.nearest_rotation(Q), rotations.special_polar(Q).R, ALGEBRA, "R of M = R Wed(K)")
    close(rotations.nearest_rotation(5 * R), R, 1e-14, "rotation nearest to a scaled rotation")


E = np.eye(3)
REFUSED = {
    "text": (lambda: rotations.critical_rotations("P"), "P: 'P' is not an array of real numbers"),
    "another shape": (lambda: rotations.special_polar(np.eye(4)), r"M: a \(3, 3\) matrix of numbers is needed"),
    "nan": (lambda: rotations.special_polar(E * np.nan), "M is not finite"),
    "two numbers for a point": (lambda: rotations.critical_rotations(E)[0].at([1, 2]), "c: 1 number.* for a point"),
    "one direction": (
        lambda: rotations.wahba([[0, 0, 1]], [[0, 0, 1]]), "are a circle, not a point: turning about .*0, 0, -?1.* two dir"),
    "along one line": (
        lambda: rotations.wahba([[0, 0, 1], [0, 0, 2]], [[0, 1, 0], [0, -1, 0]]), "are a (sphere|circle), not a point"),
    "no weight": (lambda: rotations.wahba(E, E, [0, 0, 0]), "are all rotations, not a point: turning about .* with a weight"),
    "a weight below zero": (lambda: rotations.wahba(E, E, [1, 1, -1]), "weights: 3 numbers, none below zero"),
    "different numbers of directions": (lambda: rotations.wahba(E, E[:2]), r"u and v of one shape \(n, 3\)"),
    "nearest to zero": (lambda: rotations.nearest_rotation(0 * E), "nearest rotations are all rotations, not a point"),
    "an indefinite metric": (lambda: rotations.nearest_rotation(E, np.diag([1, 1, -0.5])), "its lowest eigenvalue is -0.5"),
    "a skew metric": (lambda: rotations.nearest_rotation(E, np.triu(np.ones((3, 3)))), "metric: the matrix is not symmetric"),
}  # fmt: skip


test_refusals = refusals(REFUSED)
