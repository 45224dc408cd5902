"""Operators of 3 x 3 and 4 x 4 pseudo-matrices, compared with their definitions. [konz25 2.5, 3.3]"""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest

from pfaffian.maths import inertia, se3, so3
from tests.matrices import number
from tests.tolerance import ALGEBRA, close

SEEDS = range(5)


@pytest.mark.parametrize("seed", SEEDS)
def test_operators_of_3_x_3_matrices(seed):
    random = np.random.default_rng(seed)
    a, b, c = random.normal(size=(3, 3))
    M = random.normal(size=(3, 3))
    hat = lambda w: number(so3.hat(w))  # noqa: E731
    vee2, Vee, Wed = (lambda x, f=f: number(f(x)) for f in (so3.vee2, so3.Vee, so3.Wed))
    close(so3.vee(hat(a)).full().ravel(), a, ALGEBRA, "vee undoes hat")
    close(vee2(M).ravel(), number(so3.vee(M - M.T)).ravel(), ALGEBRA, "vee2 is vee of M - M^T")
    close(a @ vee2(M).ravel(), np.trace(M @ hat(a).T), ALGEBRA, "vee2 by the trace", 10)
    close(b @ Vee(M) @ a, np.trace(hat(a) @ M @ hat(b).T), ALGEBRA, "Vee by the trace", 10)
    close(Wed(Vee(M)), M, ALGEBRA, "Wed undoes Vee", 10)
    close(Vee(Wed(M)), M, ALGEBRA, "Vee undoes Wed", 10)
    close(hat(a) @ b, vee2(np.outer(b, a)).ravel(), ALGEBRA, "a x b", 10)
    close(hat(a) @ hat(b), np.outer(b, a) - b @ a * np.eye(3), ALGEBRA, "two hats", 10)
    close(hat(a) @ hat(b), -Vee(np.outer(b, a)), ALGEBRA, "two hats by Vee", 10)
    jacobi = [np.cross(x, np.cross(y, z)) for x, y, z in ((a, b, c), (b, c, a), (c, a, b))]
    close(sum(jacobi), np.zeros(3), ALGEBRA, "Jacobi's identity", 10)
    close(vee2(hat(b) @ M).ravel(), Vee(M) @ b, ALGEBRA, "vee2 of hat(b) M", 10)


@pytest.mark.parametrize("seed", SEEDS)
def test_operators_of_4_x_4_matrices(seed):
    random = np.random.default_rng(seed)
    x, y = random.normal(size=(2, 6))
    M = random.normal(size=(4, 4))
    hat = lambda x: number(se3.hat(x))  # noqa: E731
    vee2, Vee, Wed = (lambda x, f=f: number(f(x)) for f in (se3.vee2, se3.Vee, se3.Wed))
    close(number(se3.vee(hat(x))).ravel(), x, ALGEBRA, "vee undoes hat")
    close(x @ vee2(M).ravel(), np.trace(M @ hat(x).T), ALGEBRA, "vee2 by the trace", 10)
    close(y @ Vee(M) @ x, np.trace(hat(x) @ M @ hat(y).T), ALGEBRA, "Vee by the trace", 10)
    close(Wed(Vee(M)), M, ALGEBRA, "Wed undoes Vee", 10)
    close(vee2(hat(x) @ M).ravel(), Vee(M) @ x, ALGEBRA, "vee2 of hat(xi) M  [konz25 (3.84)]", 10)
    G, H = (se3.exp(z) for z in (x, y))
    Ad = lambda g: number(se3.Ad(*g))  # noqa: E731
    close(Ad(se3.compose(*G, *H)), Ad(G) @ Ad(H), ALGEBRA, "Ad of a product", 100)
    close(np.linalg.inv(Ad(G)), Ad(se3.inverse(*G)), ALGEBRA, "Ad of an inverse", 100)
    ad = lambda z: number(se3.ad(z))  # noqa: E731
    close(ad(x) @ y, -ad(y) @ x, ALGEBRA, "brackets are skew", 10)
    s = ca.SX.sym("s")
    moved = se3.compose(*G, *se3.exp(s * ca.DM(x)))
    rate = ca.Function("rate", [s], [ca.reshape(ca.jacobian(ca.vec(se3.Ad(*moved)), s), 6, 6)])
    close(number(rate(0.0)), Ad(G) @ ad(x), ALGEBRA, "d/dt Ad_G = Ad_G ad_xi", 100)


@pytest.mark.parametrize("seed", SEEDS)
def test_second_moments_of_weights_at_points(seed):
    """Second moments of weights at points, and the corresponding 6 x 6 matrix for twists. [konz25 (3.91)]"""
    random = np.random.default_rng(seed)
    weights, points = random.uniform(0.1, 1, 5), random.normal(size=(5, 3))
    X = np.c_[points, np.ones(5)]
    M = (weights * X.T) @ X
    J = [np.c_[np.eye(3), -number(so3.hat(h))] for h in points]
    close(number(se3.Vee(M)), sum(w * j.T @ j for w, j in zip(weights, J, strict=True)), ALGEBRA, "Vee of weights", 10)
    m, h, I = (number(x) for x in inertia.pseudo_to_moments(M))
    H = number(so3.hat(h))
    close(number(se3.Vee(M)), np.block([[m * np.eye(3), -H], [H, I]]), ALGEBRA, "as an inertia", 10)
