"""The bicopter of [konz25 4.8.4] after its bad start, programmed again in NumPy and integrated by SciPy.

Nothing here comes from the library: body and propellers (4.150), prototype (4.66), its numbers by the formulas of 4.8.2 and
4.8.4, the reference by differentiation on paper, and the program of (4.64) as a problem of least distance by non-negative least
squares [Lawson and Hanson 1974].
"""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.optimize import nnls

import pfaffian as pf
from pfaffian import control
from tests.matrices import hat

G, MASS, THETA = 9.81, 1.0, np.array([0.015, 0.008, 0.018])
OUT, UP, LEAN = 0.25, 0.05, np.radians(15)
RADIUS, RATE = 1.6, np.pi
POLES, HEADING = [-8 * np.exp(0.4j), -8 * np.exp(-0.4j), -8, -8], (5.0, 0.8)
LEAST, MOST, TILT, CHORDS = 2.0, 14.0, np.radians(30), 4


def wed(x: np.ndarray) -> np.ndarray:
    return np.block([[hat(x[3:]), x[:3, None]], [np.zeros((1, 4))]])


def ad(x: np.ndarray) -> np.ndarray:
    return np.block([[hat(x[3:]), hat(x[:3])], [np.zeros((3, 3)), hat(x[3:])]])


def vee2(X: np.ndarray) -> np.ndarray:
    return np.array([*X[:3, 3], X[2, 1] - X[1, 2], X[0, 2] - X[2, 0], X[1, 0] - X[0, 1]])


S, C = np.sin(LEAN), np.cos(LEAN)
SIDE = OUT * C - UP * S
B = np.array([[1, 0, 1, 0], [0, S, 0, -S], [0, C, 0, C], [0, SIDE, 0, -SIDE], [UP, 0, UP, 0], [-OUT, 0, OUT, 0]])
M = np.diag([MASS, MASS, MASS, *THETA])
EPS_X, EPS_Y = -THETA[1] / (MASS * UP), THETA[0] * S / (MASS * SIDE)


def prototype() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """(6, 6) and (4, 4) matrices of inertia, damping and stiffness. [konz25 (4.136), (4.140), (4.154)]"""
    _, p3, p2, p1, p0 = np.poly(POLES).real
    q = p1 * p2 - p0 * p3
    k, d, h, s = p0 * p1 / q, p1**2 / q, EPS_Y + G * p3 / p1, EPS_Y + G * p1 / q
    wide, spin = (h - s) * (s - EPS_X), (h - s) * (s - EPS_Y)
    w, zeta = HEADING
    found = {}
    parts = {
        "inertia": (1.0, s, (spin, wide, spin)),
        "damping": (d, h, (0, 0, 2 * spin * zeta * w)),
        "stiffness": (k, h, (G * (h - s), G * (h - s), spin * w**2)),
    }
    for what, (weight, height, about) in parts.items():
        c = np.array([0, 0, height])
        moments = np.diag(about) + weight * hat(c) @ hat(c).T
        six = np.block([[weight * np.eye(3), weight * hat(c).T], [weight * hat(c), moments]])
        corner = np.trace(moments) / 2 * np.eye(3) - moments
        found[what] = six, np.block([[corner, weight * c[:, None]], [weight * c[None], np.array([[weight]])]])
    return found


BAR = prototype()
(M6, M4), (D6, _), (_, K4) = BAR["inertia"], BAR["damping"], BAR["stiffness"]
HEIGHT = M4[2, 3]


def reference(t: float) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Rotation, position, twist and rate of the twist of the reference, whose flat output is a circle."""
    a, c = RATE * t, RADIUS * RATE**2
    P, dP, ddP = (RADIUS * RATE**i * np.array(x) for i, x in enumerate((
        (np.sin(a), 1 - np.cos(a)), (np.cos(a), np.sin(a)), (-np.sin(a), np.cos(a)))))  # fmt: skip
    n, dn = np.array([c * np.sin(a), c * np.cos(a) + G]), RATE * c * np.array([np.cos(a), -np.sin(a)])
    ddn = -(RATE**2) * c * np.array([np.sin(a), np.cos(a)])
    cross = lambda x, y: x[0] * y[1] - x[1] * y[0]  # noqa: E731
    f, df = np.arctan2(*n), cross(dn, n) / (n @ n)
    ddf = cross(ddn, n) / (n @ n) - 2 * cross(dn, n) * (n @ dn) / (n @ n) ** 2
    z, dz = np.array([-np.sin(f), np.cos(f)]), np.array([-np.cos(f), -np.sin(f)])
    r, dr, ddr = (np.r_[0, x] for x in (P - EPS_Y * z, dP - EPS_Y * df * dz, ddP - EPS_Y * (ddf * dz - df**2 * z)))
    R, w = np.array([[1, 0, 0], [0, np.cos(f), -np.sin(f)], [0, np.sin(f), np.cos(f)]]), np.array([df, 0, 0])
    v = R.T @ dr
    return R, r, np.r_[v, w], np.r_[R.T @ ddr - np.cross(w, v), ddf, 0, 0]


def bbar(R: np.ndarray, r: np.ndarray, xi: np.ndarray, t: float, approach: str) -> np.ndarray:
    """bbar of [konz25 (4.66)] for one body."""
    R_R, r_R, xi_R, a_R = reference(t)
    back, turn = np.eye(4), R.T @ R_R
    back[:3, :3], back[:3, 3] = turn, R.T @ (r_R - r)
    Ad = np.block([[turn, hat(back[:3, 3]) @ turn], [np.zeros((3, 3)), turn]])
    xi_E = xi - Ad @ xi_R
    forces = vee2((np.eye(4) - back) @ K4) + D6 @ xi_E
    if approach == "body":
        return forces + M6 @ (ad(xi_E) @ Ad @ xi_R - Ad @ a_R) - ad(xi_E).T @ M6 @ xi_E
    w, s = hat(xi[3:]), hat(np.array([0, 0, HEIGHT]))
    carried = np.block([[w, -w @ s], [s @ w, hat(M4[:3, :3] @ xi[3:])]])
    return forces + carried @ xi_E - M6 @ (Ad @ a_R - ad(xi_E) @ Ad @ xi_R)


def polygon() -> tuple[np.ndarray, np.ndarray]:
    middles = TILT * (2 * np.arange(CHORDS) + 1 - CHORDS) / CHORDS
    rows = [[0, -1], [C30, -S30], [-C30, -S30], *np.stack([np.sin(middles), np.cos(middles)], axis=1)]
    return np.kron(np.eye(2), rows), np.tile([-LEAST, 0, 0, *[MOST * np.cos(TILT / CHORDS)] * CHORDS], 2)


C30, S30 = np.cos(TILT), np.sin(TILT)
W, L = polygon()


def nearest(H: np.ndarray, u0: np.ndarray) -> np.ndarray:
    """u with W u <= L nearest to u0 in the metric of H."""
    if (W @ u0 <= L).all():
        return u0
    F = np.linalg.cholesky(H)
    E = np.vstack([-np.linalg.solve(F, W.T), W @ u0 - L])
    goal = np.array([0, 0, 0, 0, 1.0])
    left = E @ nnls(E, goal)[0] - goal
    return u0 - np.linalg.solve(F.T, left[:4] / left[4])


def rate(t: float, x: np.ndarray, approach: str) -> np.ndarray:
    R, xi = x[3:12].reshape(3, 3), x[12:]
    b = -ad(xi).T @ M @ xi + np.r_[MASS * R.T @ [0, 0, G], 0, 0, 0]
    S = np.linalg.solve(M, B)
    H = S.T @ M6 @ S
    u = nearest((H + H.T) / 2, np.linalg.solve(H, S.T @ (M6 @ np.linalg.solve(M, b) - bbar(R, x[:3], xi, t, approach))))
    return np.r_[R @ xi[:3], (R @ hat(xi[3:])).ravel(), np.linalg.solve(M, B @ u - b)]


@pytest.mark.parametrize("approach", ["body", "energy"])
def test_scipy_flies_the_same_flight(approach):
    """Position and velocity over the first second, to the error of steps of 2 ms in which a limit becomes active."""
    R_R, r_R, xi_R, _ = reference(0.0)
    turned = np.array([[0, -1, 0], [1, 0, 0], [0, 0, 1.0]]) @ R_R
    start = np.r_[r_R + 0.5, turned.ravel(), turned.T @ R_R @ xi_R[:3], 0, 0, 0]
    theirs = solve_ivp(rate, (0, 1.0), start, args=(approach,), rtol=1e-7, atol=1e-9, dense_output=True).sol
    numbers = {"mass": MASS, "inertia": THETA, "arm": OUT, "height": UP, "lean": LEAN}
    m, lean = pf.multicopters.bicopter("bicopter", **numbers), pf.multicopters.bicopter_coupling_length(**numbers)

    def circle(t):
        return RADIUS * ca.sin(RATE * t), RADIUS * (1 - ca.cos(RATE * t))

    law = control.prototype_tracking(
        [control.quadcopter_pair("body", POLES, heading=HEADING, coupling_length=lean)],
        control.bicopter_reference(circle, coupling_length=lean[1]),
        approach=approach,
        limits=pf.multicopters.thrust_polygon(LEAST, MOST, TILT, propellers=2, chords=CHORDS),
    )
    quarter = np.r_[0, 0, np.sin(np.pi / 4), np.cos(np.pi / 4)]
    r = pf.run(m, np.r_[start[:3], quarter], start[12:], duration=1.0, step=2e-3, every=50, control=law, record="all")
    assert (r.limit_active.values[:5].max(axis=1) > 0).any(), "some limit is active"
    x = theirs(r.time.values).T
    assert np.abs(r.q.values[:, :3] - x[:, :3]).max() < 2e-4
    assert np.abs(r.v.values - x[:, 12:]).max() < 5e-3
    off = [np.linalg.norm(r.q.values[i, :3] - reference(t)[1]) for i, t in ((5, 0.5), (10, 1.0))]
    also = [np.linalg.norm(x[i, :3] - reference(t)[1]) for i, t in ((5, 0.5), (10, 1.0))]
    assert np.abs(np.array(off) - also).max() < 1e-4
