"""Prototypes with all 21 numbers of a symmetric (6, 6) matrix, and transport maps that do not satisfy (4.30)."""

from __future__ import annotations

import re
import warnings

import casadi as ca
import numpy as np
import pytest

import pfaffian as pf
from pfaffian import control
from pfaffian.maths import se3
from tests.matrices import hat
from tests.tolerance import DERIVATIVE, close

pm = pf.forces.pseudo_matrix
HULL = pf.body("b", 1.3, com=(0.1, -0.2, 0.05), inertia=(0.3, 0.4, 0.5))
FREE = pf.actuate_all(pf.mechanism("free", [HULL], [pf.joint("j", "free", "world", "b")]))


def arm() -> pf.Mechanism:
    """A slide, a hinge and a ball joint in series."""
    kinds = {"a": "prismatic", "b": "revolute", "c": "spherical"}
    bodies = [pf.body(n, 1.0 + i, com=(0.1, 0.2 * i, 0.05), inertia=(0.02, 0.03, 0.04)) for i, n in enumerate(kinds)]
    joints = [pf.joint(f"j{n}", kinds[n], above, n, axis=(0.6, 0, 0.8), placement=(0.4, 0.1, 0))
              for n, above in zip(kinds, ("world", *kinds), strict=False)]  # fmt: skip
    return pf.actuate_all(pf.mechanism("arm", bodies, joints))


def form(random: np.random.Generator, n: int = 6) -> np.ndarray:
    A = random.normal(size=(n, 8))
    return A @ A.T


def potential(K: np.ndarray, G: np.ndarray, G_R: np.ndarray) -> float:
    """|G_R^-1 G - 1|^2 / 2 by the thesis's decomposition, with Wed for its Vee. [konz25 (A.14), (A.15), (A.19a)]"""
    X = np.linalg.solve(G_R, G) - np.eye(4)
    Kr = K[:3, :3]
    H = K[3:, :3] @ np.linalg.inv(Kr)
    KR = K[3:, 3:] - H @ Kr @ H.T
    vee2 = lambda A: np.array([A[2, 1] - A[1, 2], A[0, 2] - A[2, 0], A[1, 0] - A[0, 1]])  # noqa: E731
    Y, x = X[:3, :3], X[:3, 3]
    x = x + Y @ vee2(H) / 2 + (H + H.T) @ vee2(Y) / 4
    return (x @ Kr @ x + np.trace(Y @ (np.trace(KR) / 2 * np.eye(3) - KR) @ Y.T)) / 2


def poses(m: pf.Mechanism, q: np.ndarray) -> dict[str, np.ndarray]:
    found = {"world": np.eye(4)}
    for name, G in pf.forward_kinematics(m, q).items():
        found[name] = np.block([[np.array(G.rotation), np.array(G.position)[:, None]], [np.zeros((1, 3)), np.ones((1, 1))]])
    return found


def moved(m: pf.Mechanism, q: np.ndarray, eta: np.ndarray) -> np.ndarray:
    """q after unit time at v = eta, to second order, by the midpoint rule."""
    K = pf.compile_terms(m, {"K": lambda T: T.kinematics.kinematic_matrix}, backend="numpy", lanes=1)
    middle = q + K(q)["K"] @ eta / 2
    return q + K(middle)["K"] @ eta


def states(m: pf.Mechanism, seed: int) -> list[np.ndarray]:
    random = np.random.default_rng(seed)
    rates = [random.normal(size=m.nv) for _ in range(3)]
    return [pf.random_configuration(m, random), rates[0], pf.random_configuration(m, random), *rates[1:]]


def terms(m: pf.Mechanism, pairs: list[control.Pair], approach: str, at: list[np.ndarray]) -> dict[str, np.ndarray]:
    """M, b, energy and potential at q, v, q_R, v_R, v_R_dot."""
    s = [ca.SX.sym(n, len(x)) for n, x in zip(("q", "v", "q_R", "v_R", "a_R"), at, strict=True)]
    k, k_R = (pf.Kinematics(m, q, v, ca.SX(0)) for q, v in (s[:2], s[2:4]))
    P = control.prototype_terms(k, control.ReferenceMotion(k_R, s[4]), pairs, approach, None)
    found = ca.Function("P", s, list(P))(*at)
    return dict(zip(("M", "b", "energy", "potential"), (np.array(x) for x in found), strict=True))


PAIRS = (("c", "world"), ("b", "world"), ("c", "b"))


@pytest.mark.parametrize("approach", control.APPROACHES)
def test_stiffness_is_the_gradient_of_the_thesis_s_potential(approach):
    """At rest bbar is the derivative of (A.19a), by differences of poses in NumPy; its Hessian on the reference is J^T K J."""
    m, random = arm(), np.random.default_rng(3)
    K = {ends: form(random) for ends in PAIRS}
    pairs = [control.pair(b, seen_from=a, stiffness=X) for (b, a), X in K.items()]
    q, v, q_R, v_R, a_R = states(m, 4)
    there = poses(m, q_R)

    def V(q: np.ndarray) -> float:
        here, of = poses(m, q), lambda G, b, a: np.linalg.solve(G[a], G[b])
        return sum(potential(X, of(here, b, a), of(there, b, a)) for (b, a), X in K.items())

    found = terms(m, pairs, approach, [q, 0 * v, q_R, 0 * v_R, 0 * a_R])
    close(found["potential"].item(), V(q), 1e-12, "the potential", scale=[V(q)])
    h, slope = 1e-5, []
    for e in np.eye(m.nv):
        slope.append((V(moved(m, q, h * e)) - V(moved(m, q, -h * e))) / (2 * h))
    close(found["b"].ravel(), slope, 1e-7, "its gradient", scale=slope)
    h = 1e-4
    at = [terms(m, pairs, approach, [moved(m, q_R, x * h * e), 0 * v, q_R, 0 * v_R, 0 * a_R])["b"].ravel()
          for e in np.eye(m.nv) for x in (1, -1)]  # fmt: skip
    hessian = np.array([(a - b) / (2 * h) for a, b in zip(at[::2], at[1::2], strict=True)])
    J = [pf.compile_terms(m, {"J": lambda T, b=b, a=a: T.kinematics.relative(b, a)[1]}, backend="numpy", lanes=1)(q_R)["J"]
         for b, a in K]  # fmt: skip
    close(hessian, sum(j.T @ X @ j for j, X in zip(J, K.values(), strict=True)), 1e-6, "its Hessian", scale=hessian)


def test_one_body_moves_by_kirchhoff_s_equations():
    """M v_dot = ad^T M xi - D xi - grad V, with all 21 numbers of M and D, towards a reference at rest; both approaches."""
    random = np.random.default_rng(6)
    M, D, K = (form(random) for _ in range(3))
    pairs = [control.pair("b", inertia=M, damping=D, stiffness=K)]
    q, v, q_R, v_R, a_R = states(FREE, 7)
    V = lambda q: potential(K, poses(FREE, q)["b"], poses(FREE, q_R)["b"])  # noqa: E731
    h = 1e-5
    pull = np.array([(V(moved(FREE, q, h * e)) - V(moved(FREE, q, -h * e))) / (2 * h) for e in np.eye(6)])
    ad = np.block([[hat(v[3:]), hat(v[:3])], [np.zeros((3, 3)), hat(v[3:])]])
    expected = -ad.T @ M @ v + D @ v + pull
    for approach in ("body", "energy"):
        found = terms(FREE, pairs, approach, [q, v, q_R, 0 * v_R, 0 * a_R])
        close(found["M"], M, DERIVATIVE, "Mbar", scale=M)
        close(found["b"].ravel(), expected, 1e-7, approach, scale=expected)


@pytest.mark.parametrize("approach", ["body", "energy"])
def test_energy_of_a_body_falls_by_its_dissipation(approach):
    """W_dot = -xi_E^T D xi_E along a moving reference, xi_E = xi - Ad(G_E^-1) xi_R. [konz25 (4.23), (4.32)]"""
    random = np.random.default_rng(8)
    M, D, K = (form(random) for _ in range(3))
    pairs = [control.pair("b", inertia=M, damping=D, stiffness=K)]
    goal = control.function_of_time(
        lambda t: ca.vertcat(ca.cos(t), ca.sin(2 * t), 0.3 * t, ca.sin(t), 0.5 * ca.cos(2 * t), 0.8 * t, 1 + ca.sin(t) / 3), 7
    )
    q, v = pf.random_configuration(FREE, random), random.normal(size=6)
    law = control.prototype_tracking(pairs, goal, approach=approach)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        r = pf.run(FREE, q, v, duration=0.02, step=1e-3, control=law, backend="interpreter")
    t = ca.SX.sym("t")
    x = goal.at(t, ca.SX(0, 1))
    turn, rate = x.value[3:] / ca.norm_2(x.value[3:]), x.rate
    unit = ca.Function("unit", [t], [ca.vertcat(x.value[:3], turn), ca.vertcat(rate[:3], ca.jacobian(turn, t))])
    K_of = pf.compile_terms(FREE, {"K": lambda T: T.kinematics.kinematic_matrix}, backend="numpy", lanes=1)
    lost = []
    for time, q, v in zip(r.time.values, r.q.values, r.v.values, strict=True):
        q_R, rate_R = (np.array(y).ravel() for y in unit(float(time)))
        v_R = np.linalg.lstsq(K_of(q_R)["K"], rate_R, rcond=None)[0]
        E = np.linalg.solve(poses(FREE, q_R)["b"], poses(FREE, q)["b"])
        back = np.linalg.inv(E)
        Ad = np.block([[back[:3, :3], hat(back[:3, 3]) @ back[:3, :3]], [np.zeros((3, 3)), back[:3, :3]]])
        xi = v - Ad @ v_R
        lost.append(-xi @ D @ xi)
    close(r.prototype_power.values, lost, 1e-9, "W_dot", scale=lost)


def test_pseudo_matrices_are_special_cases():
    """Vee(X') instead of X' changes nothing, with several pairs on an arm that follows a moving reference."""
    m, random = arm(), np.random.default_rng(9)
    parts = {ends: {w: form(random, 4) for w in ("inertia", "damping", "stiffness")} for ends in PAIRS}
    spatial = lambda X: np.array(ca.DM(se3.Vee(ca.DM(X))))  # noqa: E731
    small = [control.pair(b, seen_from=a, **x) for (b, a), x in parts.items()]
    large = [control.pair(b, seen_from=a, **{w: spatial(X) for w, X in x.items()}) for (b, a), x in parts.items()]
    at = states(m, 10)
    for approach in ("body", "energy"):
        one, two = (terms(m, pairs, approach, at) for pairs in (small, large))
        for what, value in one.items():
            close(two[what], value, 1e-10, f"{what} of {approach}", scale=value)


def test_wrong_matrices_are_named():
    goal, random = control.set_point([0.0] * 6 + [1.0]), np.random.default_rng(0)
    K = form(random)
    for what in ("inertia", "damping"):
        pairs = [control.pair("b", inertia=pm(1.0, moments=1.0)), control.pair("b", **{what: K})]
        with pytest.raises(pf.ModelError, match=f"pair 'b' seen from 'world': {what}: points have no matrix"):
            control.prototype_tracking(pairs, goal, approach="particle")
    with pytest.raises(pf.ModelError, match=r"inertia: a \(4, 4\) or \(6, 6\) matrix is needed"):
        control.pair("b", inertia=np.eye(5))
    with pytest.raises(pf.ModelError, match="damping: the matrix is not symmetric"):
        control.pair("b", damping=np.triu(K))
    bent = np.zeros((6, 6))
    bent[0, 3] = bent[3, 0] = 1.0
    with pytest.raises(pf.ModelError, match="stiffness: it couples rotation to a translation"):
        control.pair("b", stiffness=bent)
    given = pf.Parameter("given", 1.0)
    with pytest.raises(pf.ModelError, match="stiffness: if it contains Parameters, its first three rows must resist"):
        control.pair("b", stiffness=given.symbol * np.diag([1.0, 1, 0, 1, 1, 1]))
    m = FREE.with_(parameters=[given])
    law = control.prototype_tracking([control.pair("b", inertia=K), control.pair("b", damping=given.symbol * K)], goal)
    with pytest.raises(pf.ModelError, match=r"given = -3\): the prototype's damping is negative"):
        pf.run(m, duration=0.01, step=0.01, control=law, parameters={"given": -3.0}, backend="interpreter")


# -- transport maps -------------------------------------------------------------------------------------------------------

TWO = pf.actuate_all(
    pf.mechanism(
        "two hinges",
        [pf.body(n, 1.0, com=(0.2, 0, 0), inertia=0.02) for n in "ab"],
        [pf.joint("j", "revolute", "world", "a"), pf.joint("k", "revolute", "a", "b", placement=(0.4, 0, 0))],
        gravity=(0, 0, 0),
    )
)


def test_transport_power_completes_the_rate_of_energy():
    """W_dot = -v_E^T Dbar v_E + transport_power, the latter alone without dampers; a warning reports the transport map."""
    random = np.random.default_rng(1)
    elastic = [control.pair(n, inertia=form(random), stiffness=form(random)) for n in "ab"]
    damped = [control.pair(n, damping=form(random)) for n in "ab"]
    goals = {"moving": control.function_of_time(lambda t: [3 * t, -4 * t], 2), "still": control.set_point([0.3, 0.5])}
    how = {"q": [0.4, -0.7], "v": [0.2, 0.5], "duration": 0.02, "step": 2e-3, "backend": "interpreter"}
    one = lambda k, k_R: ca.SX.eye(2)  # noqa: E731
    for Q in (None, one):
        law = control.prototype_tracking(elastic, goals["moving"], transport=Q)
        with pytest.warns(pf.RunWarning, match=r"the transport map does not satisfy \(4.30\)") as caught:
            r = pf.run(TWO, control=law, **how)
        moved, most = re.search(r"moved (\S+) J into or out of it, of at most (\S+) J", str(caught[0].message)).groups()
        close(float(moved), np.trapezoid(np.abs(r.transport_power), r.time), 0.06, "energy that the map moved")
        close(float(most), float(r.prototype_energy.max()), 0.06, "energy of the prototype")
        close(r.prototype_power.values, r.transport_power.values, 1e-10, "without dampers", scale=r.prototype_power.values)
        assert np.abs(r.transport_power.values).max() > 1e-2
        law = control.prototype_tracking([*elastic, *damped], goals["moving"], transport=Q)
        with pytest.warns(pf.RunWarning, match="the transport map does not satisfy"):
            r = pf.run(TWO, control=law, **how)
        assert (r.prototype_power.values < r.transport_power.values).all()
    single = [control.pair("b", inertia=form(random), stiffness=form(random), damping=form(random))]
    for pairs, goal in ((elastic, goals["still"]), ([*elastic, *damped], goals["still"])):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            r = pf.run(TWO, control=control.prototype_tracking(pairs, goal), **how)
        assert (r.transport_power.values == 0).all()
    batch = control.prototype_tracking([*elastic, *single], goals["moving"])
    with pytest.warns(pf.RunWarning, match="the transport map does not satisfy.*, in run [01] of 2 the most"):
        pf.run(TWO, control=batch, **(how | {"q": [[0.4, -0.7], [0.5, 0.1]], "v": [[0.2, 0.5]] * 2}))
