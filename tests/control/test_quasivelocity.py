"""Theorems of reduced quasi-velocities, on random mechanisms and in rollouts. [aghili08]"""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import pfaffian as pf
from pfaffian import control
from pfaffian.dynamics.quasivelocity import FACTORS, projector_rate, quasi_velocity, reduced_quasi_velocity
from pfaffian.evaluate.transported_basis import transport_basis
from tests.random_mechanisms import Case, loops, matrices, on_velocity, random_tree, trees
from tests.tolerance import ALGEBRA, CENTRAL, DERIVATIVE, close

ROLLOUT = 1e-8
"""Tolerance of RK4 at the steps used here, relative to the start (the study's bound)."""

IN_STEPS = 1e-6
"""Tolerance of integrals and differences of recorded samples, by Simpson's rule and by central rules of fourth order."""


def along(T: pf.Terms, X: ca.SX) -> ca.SX:
    """Derivative of a matrix function of q and t along the motion."""
    rate = ca.jtimes(ca.vec(X), T.q, T.kinematics.q_dot) + ca.jacobian(ca.vec(X), T.t)
    return ca.reshape(rate, *X.shape)


def parts(factor: str, names: tuple[str, ...]) -> dict:
    """Functions that give fields of the quasi-velocity form, traced once."""
    made: dict = {}

    def part(name):
        return lambda T: getattr(made.setdefault("x", quasi_velocity(T, factor)), name)

    return {n: part(n) for n in names}


@st.composite
def arms(draw: st.DrawFn, least: int = 1, most: int = 4) -> tuple[np.random.Generator, pf.Mechanism]:
    """A chain of one-dof joints, so that v = q_dot, with a motor on each joint."""
    kinds = draw(st.lists(st.sampled_from(("revolute", "prismatic")), min_size=least, max_size=most))
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    return random, pf.actuate_all(random_tree(random, kinds, list(range(-1, len(kinds) - 1))))


def somewhere(random: np.random.Generator, m: pf.Mechanism) -> Case:
    q = pf.random_configuration(m, random)
    return Case(m, q, on_velocity(m, q, random.normal(size=m.nv), 0.0), random.normal(size=m.nu), 0.0)


TIP = (0.3, 0.2, 0.1)
"""A point of the last body [m]."""


def tip_on_plane(m: pf.Mechanism, *, twice: bool = False, driven: bool = False) -> pf.Mechanism:
    """Constrain the tip of the last body to its height at q = 0.3; `driven` moves it up and down, `twice` repeats the row."""
    tip = m.bodies[-1].name
    height = pf.compile_terms(m, {"z": lambda T: T.kinematics.position(tip, TIP)[2]}, backend="numpy", lanes=1)
    z = float(height(np.full(m.nq, 0.3))["z"])

    def phi(k):
        return k.position(tip, TIP)[2] - z - (0.05 * ca.sin(2 * k.t) if driven else 0)

    rows = [pf.holonomic("plane", phi)] + ([pf.holonomic("again", lambda k: 2 * phi(k))] if twice else [])
    return m.with_(constraints=rows)


# Theorems at a state.


def check_gamma(m: pf.Mechanism, random: np.random.Generator, factor: str) -> None:
    case = somewhere(random, m)
    names = ("W", "inverse", "W_dot", "y", "Gamma", "g")
    terms = {"M": lambda T: T.M, "c": lambda T: T.c, "T": lambda T: T.T}
    r = matrices(case, parts(factor, names) | terms)
    cond = np.linalg.cond(r["M"])
    assume(cond < 1e6)
    size = np.abs(r["M"]).max()
    close(r["W"] @ r["W"].T, r["M"], 4 * ALGEBRA, "W W^T = M", scale=size)
    close(r["W"] @ r["inverse"], np.eye(m.nv), ALGEBRA * cond, "W^-1")
    y, Gamma = r["y"], r["Gamma"]
    close(y.T @ y, 2 * r["T"], 4 * ALGEBRA, "|y|^2 = 2 T")
    largest = np.abs(Gamma).max() + np.abs(np.linalg.solve(r["W"], r["W_dot"])).max()
    close(Gamma + Gamma.T, 0 * Gamma, DERIVATIVE * np.sqrt(cond), "Gamma is skew", scale=largest)
    close(y.T @ Gamma @ y, [[0.0]], DERIVATIVE * np.sqrt(cond), "y^T Gamma y = 0 (13)", scale=largest * y.T @ y)
    # (7): W (Gamma y + W_dot^T v) is the part of c that depends on velocities.
    there = r["W"] @ (Gamma @ y + r["W_dot"].T @ case.v.reshape(-1, 1))
    close(there, r["c"] - r["g"], DERIVATIVE * cond, "Coriolis force", scale=np.abs(r["c"]).max() + largest * np.abs(y).max())


@given(tree=trees(most=4))
@pytest.mark.parametrize("factor", ["cholesky", "innovations"])
def test_gamma_of_any_joints(factor, tree):
    random, kinds, parents = tree
    check_gamma(random_tree(random, kinds, parents), random, factor)


@given(arm=arms(most=3))
@settings(max_examples=20)
def test_gamma_of_the_symmetric_factor(arm):
    random, m = arm
    check_gamma(m, random, "symmetric")


@given(tree=trees(most=4))
def test_innovations_factor_is_the_tree_factor(tree):
    random, kinds, parents = tree
    m = random_tree(random, kinds, parents)
    terms = {"W": lambda T: T.factor.W, "I": parts("innovations", ("W",))["W"], "M": lambda T: T.M}
    r = matrices(somewhere(random, m), terms)
    cond = np.linalg.cond(r["M"])
    assume(cond < 1e6)
    close(r["I"], r["W"], ALGEBRA * cond, "(I + H Phi G) D^1/2 = W")


@given(arm=arms(least=2, most=3))
@settings(max_examples=20)
@pytest.mark.parametrize("factor", FACTORS)
def test_printed_gamma(factor, arm):
    """(7b) is W^-1 (W_dot - dy^T/dq), which gives the same Gamma y but is not skew. (studies/errata.md)"""
    random, m = arm
    case = somewhere(random, m)
    made: dict = {}

    def printed(T):
        x = made.setdefault("x", quasi_velocity(T, factor))
        return x.inverse @ (x.W_dot - ca.jacobian(x.y, T.q).T)

    terms = {"printed": printed, "Gamma": lambda T: made["x"].Gamma, "y": lambda T: made["x"].y, "M": lambda T: T.M}
    r = matrices(case, terms)
    cond = np.linalg.cond(r["M"])
    assume(cond < 1e6)
    y, largest = r["y"], np.abs(r["printed"]).max() + np.abs(r["Gamma"]).max() + 1e-300
    close(r["printed"] @ y, r["Gamma"] @ y, DERIVATIVE * cond, "Gamma y", scale=largest * np.abs(y).max())
    close(y.T @ r["printed"] @ y, [[0.0]], DERIVATIVE * cond, "y^T Gamma y = 0 (13)", scale=largest * y.T @ y)


def test_printed_gamma_is_not_skew():
    random = np.random.default_rng(3)
    case = somewhere(random, random_tree(random, ["revolute"] * 3, [-1, 0, 1]))
    for factor in FACTORS:
        x = quasi_velocity(pf.symbols(case.m), factor)
        r = matrices(case, {"R": lambda T, f=factor: _printed(T, f)})["R"]
        assert np.abs(r + r.T).max() > 0.1 * np.abs(r).max(), factor
        assert x.Gamma.shape == r.shape


def _printed(T: pf.Terms, factor: str) -> ca.SX:
    x = quasi_velocity(T, factor)
    return x.inverse @ (x.W_dot - ca.jacobian(x.y, T.q).T)


@given(arm=arms(least=2, most=4))
@settings(max_examples=20)
def test_unitary_change(arm):
    """W' = W V(q) has y' = V^T y and Gamma' = V^T (Gamma - Omega) V, V_dot = -Omega V. (10) (11)"""
    random, m = arm
    S = random.normal(size=(m.nv, m.nv, m.nq))

    def changed(T):
        x = quasi_velocity(T)
        V = ca.SX.eye(m.nv)
        for i in range(m.nv):
            for j in range(i + 1, m.nv):
                a, R = ca.dot(ca.DM(S[i, j]), T.q), ca.SX.eye(m.nv)
                R[i, i], R[j, j], R[i, j], R[j, i] = ca.cos(a), ca.cos(a), -ca.sin(a), ca.sin(a)
                V = V @ R
        Omega = -along(T, V) @ V.T
        W, back = x.W @ V, V.T @ x.inverse
        C = x.W @ (x.Gamma @ x.W.T + x.W_dot.T)
        return ca.horzcat(V.T @ (x.Gamma - Omega) @ V, (back @ C - along(T, W).T) @ back.T, Omega)

    r = matrices(somewhere(random, m), {"X": changed, "M": lambda T: T.M})
    cond = np.linalg.cond(r["M"])
    assume(cond < 1e6)
    by_change, by_factor, Omega = np.hsplit(r["X"], 3)
    largest = np.abs(Omega).max() + np.abs(by_factor).max()
    close(Omega + Omega.T, 0 * Omega, DERIVATIVE, "Omega is skew", scale=largest)
    close(by_change, by_factor, DERIVATIVE * cond, "Gamma' (11)", scale=largest)


def null_parts(r: dict) -> tuple[np.ndarray, np.ndarray]:
    """V1 and V2 of Lam = A W^-T with rows of unit length. (21)"""
    Lam = np.linalg.solve(r["W"], r["A"].T).T
    length = np.linalg.norm(Lam, axis=1, keepdims=True)
    _, s, Vt = np.linalg.svd(Lam / np.where(length > 1e-9, length, np.inf))
    s = np.append(s, np.zeros(len(Vt) - len(s)))
    assume(not ((s > 1e-9) & (s < 1e-2)).any())
    return Vt[s > 0.5e-2].T, Vt[s <= 0.5e-2].T


@given(case=loops(most=3))
def test_motion_and_force_are_decoupled(case):
    """u_o = V1^T W^-1 f moves nothing, u_r = V2^T W^-1 f loads no constraint. (28) (31)"""
    m = pf.actuate_all(case.m)
    r = matrices(case, {"W": lambda T: T.factor.W, "A": lambda T: T.A, "M": lambda T: T.M})
    assume(np.linalg.cond(r["M"]) < 1e6)
    V1, V2 = null_parts(r)
    u = np.random.default_rng(7).normal(size=m.nv)
    wrenches = [f for f in m.forces if getattr(f, "value", 0) is None]
    pad = np.zeros(6 * len(wrenches))

    motion = pf.FORMULATIONS["quasi-velocity"]
    x = pf.compile_terms(m, {"v_dot": lambda T: motion(T).v_dot, "F": lambda T: motion(T).reaction}, backend="numpy", lanes=1)

    def answer(f):
        got = x(case.q, case.v, np.append(f, pad), t=case.t)
        return np.atleast_1d(got["v_dot"]), np.atleast_1d(got["F"])

    still, pushed, loaded = (answer(f) for f in (0 * u, r["W"] @ V2 @ V2.T @ u, r["W"] @ V1 @ V1.T @ u))
    size = 1e-9 * (1 + np.abs(still[0]).max()) * np.linalg.cond(r["M"])
    close(loaded[0], still[0], size, "u_o moves nothing", scale=1.0)
    close(pushed[1], still[1], size, "u_r loads no constraint", scale=1 + np.abs(r["M"]).max())
    close(loaded[1] - still[1], -r["W"] @ V1 @ V1.T @ u, size, "u_o goes into the reaction", scale=1 + np.abs(r["M"]).max())


@given(arm=arms(least=2, most=3), driven=st.booleans())
@settings(max_examples=15)
def test_projector_rate(arm, driven):
    random, m = arm
    m = tip_on_plane(m, driven=driven)
    h, made = 1e-5, {}

    def P(T):
        return reduced_quasi_velocity(T, made.setdefault("x", quasi_velocity(T))).P

    terms = {"P": P, "P_dot": lambda T: projector_rate(T, made["x"]), "A": lambda T: T.A}
    f = pf.compile_terms(m, terms, backend="numpy", lanes=1)
    q, v = pf.random_configuration(m, random), random.normal(size=m.nv)
    here = f(q, v, t=0.4)
    assume(np.linalg.norm(here["A"]) > 0.1)
    before, after = (f(q + s * h * v, v, t=0.4 + s * h)["P"] for s in (-1, 1))
    scale = 1 + np.abs(here["P_dot"]).max()
    close(here["P_dot"], (after - before) / (2 * h), CENTRAL * scale, "P_dot", scale=scale)


def test_projector_rate_of_rows_that_turn_with_time():
    """Rolling along a direction that turns at 2 rad/s, with a row that does not depend on time: dA/dt is part of P_dot."""
    random = np.random.default_rng(4)
    m = random_tree(random, ["revolute", "prismatic", "revolute", "revolute"], [-1, 0, 1, 2])

    def blade(k):
        p = k.velocity("b3", TIP)
        return ca.cos(2 * k.t) * p[0] + ca.sin(2 * k.t) * p[1] - 0.3 * k.t

    h, made = 1e-5, {}
    flat = pf.holonomic("flat", lambda k: k.position("b3", TIP)[2])
    m = m.with_(constraints=[flat, pf.nonholonomic("blade", blade)])
    terms = {
        "P": lambda T: reduced_quasi_velocity(T, made.setdefault("x", quasi_velocity(T))).P,
        "P_dot": lambda T: projector_rate(T, made["x"]),
    }
    f = pf.compile_terms(m, terms, backend="numpy", lanes=1)
    q, v = pf.random_configuration(m, random), random.normal(size=m.nv)
    for rates in (v, 0 * v):  # at rest only the direction turns
        before, after = (f(q + s * h * rates, rates, t=0.4 + s * h)["P"] for s in (-1, 1))
        found = f(q, rates, t=0.4)["P_dot"]
        assert np.abs(found).max() > 0.1
        close(found, (after - before) / (2 * h), CENTRAL * (1 + np.abs(found).max()), "P_dot", scale=1)


# Control, in rollouts.

WAVES = control.function_of_time(lambda t: [0.3 + 0.2 * ca.sin(2 * t), 0.1 * ca.cos(3 * t), 0.2 * t, -0.1 * t], 4)


def arm(seed: int = 5, kinds=("revolute", "revolute", "prismatic", "revolute")) -> pf.Mechanism:
    random = np.random.default_rng(seed)
    return pf.actuate_all(random_tree(random, list(kinds), list(range(-1, len(kinds) - 1))))


START = {"q": [0.3, 0.3, 0.3, 0.3], "v": [0.4, -0.2, 0.1, 0.3]}


def length(result, name: str) -> np.ndarray:
    return np.linalg.norm(result[name].values, axis=-1)


@pytest.mark.parametrize("factor", FACTORS)
@pytest.mark.parametrize("constraint", ["free", "plane", "redundant", "driven"])
def test_tracking_error_is_exponential(constraint, factor):
    """|eps(t)| = |eps(0)| exp(-K_d t) for one number K_d, whatever the mechanism. (42) (43)"""
    m = arm() if constraint == "free" else tip_on_plane(arm(), twice=constraint == "redundant", driven=constraint == "driven")
    law = control.tracking(WAVES, velocity_gain=4.0, position_gain=6.0, factor=factor)
    r = pf.run(m, **START, duration=0.5, step=1e-3, every=10, control=law)
    assert r.status == 0, pf.results.causes(r)
    eps = length(r, "eps")
    assert eps[0] > 0.1
    close(eps, eps[0] * np.exp(-4.0 * r.time.values), ROLLOUT, f"|eps|, {constraint}, {factor}", scale=eps[0])


@pytest.mark.parametrize("kind", ["planar", "spherical", "free"])
@pytest.mark.parametrize("law", [control.tracking, control.regulation])
def test_joints_whose_rates_are_not_q_dot_are_refused(law, kind):
    """A planar joint has as many velocities as coordinates, but along its own axes."""
    m = arm(kinds=("revolute", kind))
    steer = law(control.set_point(np.zeros(m.nq)), velocity_gain=4.0, position_gain=6.0)
    with pytest.raises(pf.ModelError, match=f"mechanism {m.name!r} has joints whose rates are not q_dot; .* one-dof joints"):
        pf.run(m, duration=0.01, step=1e-2, control=steer, backend="interpreter")


def test_tracking_error_is_bounded_by_the_smallest_gain():
    law = control.tracking(WAVES, velocity_gain=[3.0, 8.0, 5.0, 4.0], position_gain=6.0)
    r = pf.run(tip_on_plane(arm()), **START, duration=0.5, step=1e-3, every=10, control=law)
    eps, bound = length(r, "eps"), np.exp(-3.0 * r.time.values)
    assert (eps <= eps[0] * bound * (1 + ROLLOUT)).all() and eps[-1] < 0.9 * eps[0] * bound[-1]


def test_tracking_follows_a_sampled_reference():
    """Samples replace the function: the reference's acceleration enters through the inputs, not through time."""
    m, names, times = arm(), [f"q{i}" for i in range(4)], np.linspace(0, 0.6, 601)
    there = ca.Function("at", [t := ca.SX.sym("t")], [WAVES.at(t, ca.SX(0, 1)).value])
    u = control.series(times, np.array([np.array(there(x)).ravel() for x in times]), 1e-3)
    law = control.tracking(control.sampled(names), velocity_gain=4.0, position_gain=6.0)
    r = pf.run(m, **START, duration=0.5, step=1e-3, every=10, control=law, u=u, u_step=1e-3, hold="linear")
    eps = length(r, "eps")
    close(eps, eps[0] * np.exp(-4.0 * r.time.values), 1e-5, "|eps| with linear samples", scale=eps[0])


def test_position_error_vanishes():
    """e goes to zero for a reference that satisfies the constraint, here a free run under the same gravity. (45)"""
    m = tip_on_plane(arm())
    free = pf.run(m, START["q"], [0.1, 0.0, 0.05, 0.0], duration=3.0, step=1e-3)
    u = control.series(free.time.values, free.q.values, 1e-3)
    law = control.tracking(control.sampled([f"q{i}" for i in range(4)]), velocity_gain=8.0, position_gain=8.0)
    q = free.q.values[0] + [0.1, -0.1, 0.05, 0.05]
    r = pf.run(m, q, duration=3.0, step=1e-3, every=100, control=law, u=u, u_step=1e-3, hold="linear")
    assert length(r, "task_error")[0] > 0.05
    assert length(r, "task_error")[-1] < 1e-4


@pytest.mark.parametrize("factor", FACTORS)
def test_force_law_holds_the_multiplier(factor):
    """u_o = Lam_r^T lam_d + Gamma_o v_r keeps lambda at lam_d during motion. (47)"""
    m = tip_on_plane(arm())
    desired = control.function_of_time(lambda t: [20 + 5 * ca.sin(4 * t)], 1)
    law = control.tracking(WAVES, velocity_gain=4.0, position_gain=6.0, force=desired, rows=("plane",), factor=factor)
    r = pf.run(m, **START, duration=0.5, step=1e-3, every=10, control=law)
    assert r.status == 0, pf.results.causes(r)
    close(r.multiplier.values[:, 0], 20 + 5 * np.sin(4 * r.time.values), 1e-10, "lambda")
    without = control.tracking(WAVES, velocity_gain=4.0, position_gain=6.0, factor=factor)
    same = pf.run(m, **START, duration=0.5, step=1e-3, every=10, control=without)
    close(r.q.values, same.q.values, 1e-9, "the force law does not disturb the motion")


def test_force_of_redundant_rows():
    """Two proportional rows share the force, and their multipliers, of smallest norm, are the desired ones."""
    m = tip_on_plane(arm(), twice=True)
    force = control.set_point([4.0, 8.0])
    law = control.tracking(WAVES, velocity_gain=4.0, position_gain=6.0, force=force, rows=("plane", "again"))
    r = pf.run(m, **START, duration=0.3, step=1e-3, every=10, control=law)
    assert r.status == 0, pf.results.causes(r)
    close(r.multiplier.values, np.tile([4.0, 8.0], (len(r.time), 1)), 1e-9, "lambda of smallest norm")


def test_force_regulation_error_is_quadratic_in_the_velocity():
    """Without Gamma_o v_r, |lam - lam_d| <= gamma / s_r |v_r|^2: four times the error at twice the speed. (51)"""
    m = tip_on_plane(arm())
    law = control.regulation(control.set_point([0.3] * 4), velocity_gain=3.0, position_gain=20.0,
                             force=control.set_point([15.0]), rows=("plane",))  # fmt: skip
    speeds, base = np.array([0.0, 0.5, 1.0, 2.0]), np.array(START["v"])
    r = pf.run(m, np.tile(START["q"], (4, 1)), speeds[:, None] * base, duration=0.0, control=law, record="all")
    off = r.multiplier.values[:, 0, 0] - 15.0
    assert abs(off[2]) > 1e-3
    close(off, off[2] * speeds**2, 1e-9, "error against speed squared", scale=abs(off[2]))


@pytest.mark.parametrize("constraint", ["free", "plane", "redundant"])
def test_the_lyapunov_function_of_regulation_falls(constraint):
    """V = (|v_r|^2 + e^T K_p e) / 2 falls at the rate v_r^T K_d v_r. (50)"""
    m = arm() if constraint == "free" else tip_on_plane(arm(), twice=constraint == "redundant")
    target, K_p = np.array([0.5, 0.1, 0.2, 0.4]), np.array([30.0, 20.0, 50.0, 10.0])
    law = control.regulation(control.set_point(target), velocity_gain=3.0, position_gain=list(K_p))
    r = pf.run(m, **START, duration=1.0, step=1e-3, control=law)
    assert r.status == 0, pf.results.causes(r)
    e = r.q.values - target
    V = r.kinetic_energy.values + (e * K_p * e).sum(-1) / 2
    lost = 3.0 * 2 * r.kinetic_energy.values
    h = 1e-3
    simpson = np.append(0, np.cumsum((lost[:-2:2] + 4 * lost[1:-1:2] + lost[2::2]) * h / 3))
    assert V[-1] < 0.6 * V[0] and (np.diff(V) <= 0).all()
    close(V[::2], V[0] - simpson, IN_STEPS, "V(t) = V(0) - the integral of v_r^T K_d v_r", scale=V[0])


def slider_crank() -> pf.Mechanism:
    """Crank and rod of equal length: at 90 degrees the rows lose rank and the mechanism could fold."""
    rod = dict(mass=1.0, com=(0.5, 0, 0), inertia=(0, 1 / 12, 1 / 12))
    return pf.mechanism(
        "slider-crank",
        [pf.body("crank", **rod), pf.body("rod", **rod)],
        [
            pf.joint("crank", "revolute", "world", "crank"),
            pf.joint("rod", "revolute", "crank", "rod", placement=pf.pose((1, 0, 0))),
        ],
        constraints=[pf.holonomic("slide", lambda k: k.position("rod", (1, 0, 0))[1])],
        actuators=[pf.actuator("motor", "crank"), pf.actuator("elbow", "rod")],
        gravity=(0, -9.81, 0),
    )


def test_tracking_through_a_singular_configuration():
    """Through 90 degrees, where crank and rod could fold, eps keeps its bound, with and without a redundant row."""
    go = control.function_of_time(lambda t: [0.8 + 1.2 * t, -1.6 - 2.4 * t], 2)
    law = control.tracking(go, velocity_gain=4.0, position_gain=6.0)
    once = slider_crank()
    twice = once.with_(constraints=[*once.constraints, pf.holonomic("again", lambda k: k.position("rod", (1, 0, 0))[1])])
    for m in (once, twice):
        r = pf.run(m, [0.8, -1.6], [0.5, -1.0], duration=1.5, step=1e-3, control=law)
        assert r.status == 0, pf.results.causes(r)
        assert r.q.values[-1, 0] > 2.5
        eps = length(r, "eps")
        assert (eps <= eps[0] * np.exp(-4.0 * r.time.values) + 1e-4 * eps[0]).all()


# A smooth basis along a run.


def test_transported_basis():
    """In a transported basis vd_r + V2^T Gamma V2 v_r = u_r, by differences of a recorded run. (31a)"""
    m = tip_on_plane(arm())
    u = [3.0, -2.0, 1.0, 2.0]
    r = pf.run(m, **START, u=u, duration=0.4, step=1e-3)
    x: dict = {}

    def form(T):
        return x.setdefault("x", quasi_velocity(T))

    f = pf.compile_terms(m, {"P": lambda T: reduced_quasi_velocity(T, form(T)).P, "y": lambda T: x["x"].y,
                             "Gamma": lambda T: x["x"].Gamma,
                             "u": lambda T: x["x"].inverse @ (T.generalised_input - x["x"].g)})  # fmt: skip
    s = f(r.q.values, r.v.values, np.tile(u, (len(r.time), 1)))
    V2 = transport_basis(s["P"])
    assert V2.shape == (len(r.time), 4, 3)
    close(np.swapaxes(V2, 1, 2) @ V2, np.tile(np.eye(3), (len(V2), 1, 1)), ALGEBRA, "orthonormal")
    close(V2 @ np.swapaxes(V2, 1, 2), s["P"], 4 * ALGEBRA, "V2 V2^T = P")
    v_r = np.einsum("tij,ti->tj", V2, s["y"])
    close((v_r**2).sum(1), 2 * r.kinetic_energy.values, ALGEBRA, "|v_r|^2 = 2 T (27)")
    Gamma_r = np.swapaxes(V2, 1, 2) @ s["Gamma"] @ V2
    rate = (8 * (v_r[3:-1] - v_r[1:-3]) - (v_r[4:] - v_r[:-4])) / 12e-3
    u_r = np.einsum("tij,ti->tj", V2, s["u"])
    coupling = np.einsum("tij,tj->ti", Gamma_r, v_r)
    assert np.abs(coupling).max() > 0.1
    close(rate + coupling[2:-2], u_r[2:-2], IN_STEPS, "vd_r + Gamma_r v_r = u_r")


def test_basis_that_cannot_be_transported():
    P = np.tile(np.diag([1.0, 0.0]), (3, 1, 1))
    P[1] = np.diag([0.0, 1.0])
    with pytest.raises(pf.ModelError, match="sample 1"):
        transport_basis(P)
    for wrong in (np.eye(2), np.zeros((0, 2, 2)), np.tile([[1.0, 0.5], [0.0, 0.0]], (2, 1, 1))):
        with pytest.raises(pf.ModelError):
            transport_basis(wrong)


@pytest.mark.parametrize("name", ["velocity_gain", "position_gain"])
def test_a_gain_of_another_size_is_named(name):
    gains = {"velocity_gain": 4.0, "position_gain": 6.0} | {name: [1.0, 2.0]}
    for law in (control.tracking(WAVES, **gains), control.regulation(control.set_point(np.zeros(4)), **gains)):
        with pytest.raises(pf.ModelError, match=rf"{name}: .*4"):
            pf.run(arm(), duration=0.01, control=law, backend="interpreter")
