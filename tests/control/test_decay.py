"""Guaranteed decay of errors: runs against the constants of the proof, found by a search. [chhabra14 (5.4.38)-(5.4.44)]

With x^2 = <K_P xi, xi>, y^2 = <I v_e, v_e>, Theta the left differential of exp at xi, and E_dot = -<K_P xi, Theta^-1 v_e>,

    E_ddot <= -W3 x^2 + (W5 + W6') x y + W4 y^2,    V_L_dot <= -W6 y^2,    |E_dot| <= W12 x y

while x^2 + y^2 <= 2 V_L(0). As printed, W6 stands for two constants and sqrt(V_L(0)) for the bound on x and y.
"""

from __future__ import annotations

import casadi as ca
import numpy as np

import pfaffian as pf
from pfaffian import control
from pfaffian.maths import so3
from tests.tolerance import close

K_P, K_D, I = np.diag([2.0, 3.0, 4.5]), np.diag([2.0, 2.5, 3.0]), np.diag([1.0, 1.2, 0.8])
START, RUNS, STEP = 3.0, 24, 2e-3
"""V_L of all starts, below pi^2 / 2 times the smallest gain 2, the least V_L of half a turn; number of runs; step [s]."""


def hull() -> pf.Mechanism:
    m = pf.mechanism("hull", [pf.body("hull", 1.0, inertia=(0.3, 0.4, 0.5))], [pf.joint("turn", "spherical", "world", "hull")])
    return pf.actuate_all(m.with_(gravity=(0, 0, 0)))


def roots(X):
    """X^(1/2) and X^(-1/2) of a diagonal matrix."""
    return np.sqrt(X), np.diag(1 / np.sqrt(np.diag(X)))


def constants() -> dict[str, float]:
    """Bounds over |xi|_KP <= sqrt(2 V_L(0)), by a search over random directions and lengths."""
    w, v = ca.SX.sym("w", 3), ca.SX.sym("v", 3)
    inverse = ca.SX(so3.dexp_left_inv(w))
    rate = ca.reshape(ca.jtimes(ca.vec(inverse), w, -inverse @ v), 3, 3)  # along xi_dot = -Theta^-1 v_e
    f = ca.Function("f", [w, v], [inverse, rate @ v])
    (P, P_), (_, J_) = roots(K_P), roots(I)
    random, reach = np.random.default_rng(0), np.sqrt(2 * START)
    found = {"W12": 0.0, "W3": np.inf, "W4": 0.0, "W5": 0.0, "W6'": 0.0, "W6": float(np.linalg.eigvalsh(J_ @ K_D @ J_)[0])}
    for _ in range(4000):
        n, y = random.normal(size=(2, 3))
        xi = P_ @ n / np.linalg.norm(n) * reach * random.uniform() ** 0.3
        v_e = J_ @ y / np.linalg.norm(y)
        T, bent = (np.array(x) for x in f(xi, v_e))
        size = np.linalg.norm(P @ xi)
        found["W12"] = max(found["W12"], np.linalg.norm(P @ T @ J_, 2))
        found["W3"] = min(found["W3"], np.linalg.norm(J_ @ T.T @ K_P @ xi) ** 2 / size**2)
        found["W4"] = max(found["W4"], np.linalg.norm(P @ T @ J_, 2) ** 2)
        found["W5"] = max(found["W5"], abs(xi @ K_P @ bent[:, 0]) / size * reach)
        found["W6'"] = max(found["W6'"], np.linalg.norm(P @ T @ J_ @ J_ @ K_D @ J_, 2))
    return found


def test_errors_vanish_at_least_as_fast_as_proved():
    W = constants()
    cross = W["W5"] + W["W6'"]
    most = min(1 / W["W12"], 4 * W["W3"] * W["W6"] / (cross**2 + 4 * W["W3"] * W["W4"]))
    delta = most / 2
    lower, upper = 1 - delta * W["W12"], 1 + delta * W["W12"]
    falls = np.array([[2 * delta * W["W3"], -delta * cross], [-delta * cross, 2 * (W["W6"] - delta * W["W4"])]])
    pace = np.linalg.eigvalsh(falls)[0] / upper
    assert delta > 0 and pace > 0
    random = np.random.default_rng(1)
    xi, v_e = random.normal(size=(2, RUNS, 3))
    part = random.uniform(0.05, 0.95, RUNS)
    xi *= np.sqrt(2 * START * part / np.einsum("ri,ij,rj->r", xi, K_P, xi))[:, None]
    v_e *= np.sqrt(2 * START * (1 - part) / np.einsum("ri,ij,rj->r", v_e, I, v_e))[:, None]
    q = np.array([np.array(so3.quat_exp(ca.DM(-x))).ravel() for x in xi])
    still = control.output("hull", "attitude", np.eye(3), stiffness=K_P, damping=K_D, inertia=I)
    r = pf.run(hull(), q, v_e, duration=4, step=STEP, every=1, control=control.concurrent([still]))
    assert not r.status.any()
    x, v = r.output_error.values, r.velocity_error.values
    close(x[:, 0], xi, 1e-12, "xi_e at the start")
    V, t = r.lyapunov.values, r.time.values
    close(V[:, 0], np.full(RUNS, START), 1e-12, "V_L at the start")
    assert np.max(V - upper / lower * START * np.exp(-pace * t)) <= 1e-9
    # V_L + delta E_dot falls at least by the quadratic form of the proof, at every instant.
    x, v, V, t = x[:, ::20], v[:, ::20], V[:, ::20], t[::20]
    pull = np.array([[np.array(ca.DM(so3.dexp_left_inv(ca.DM(a)))).T @ K_P @ a for a in row] for row in x])
    both = V - delta * np.einsum("rti,rti->rt", pull, v)
    size = np.stack([np.sqrt(np.einsum("rti,ij,rtj->rt", z, G, z)) for z, G in ((x, K_P), (v, I))], axis=-1)
    assert np.min(both - lower / 2 * (size**2).sum(axis=-1)) > -1e-12
    promised = np.einsum("rti,ij,rtj->rt", size, falls, size) / 2
    least = (promised[:, :-1] + promised[:, 1:]) / 2 * np.diff(t)
    assert np.min(both[:, :-1] - both[:, 1:] - 0.98 * least) > -1e-12
