"""Theorems of projected inverse dynamics on random mechanisms, and its errors. [aghili05]"""

from __future__ import annotations

from dataclasses import replace

import casadi as ca
import numpy as np
import pytest
from hypothesis import assume, given, settings

import pfaffian as pf
from pfaffian import control
from pfaffian.dynamics.projection import coupling, length_metric, projector
from tests.random_mechanisms import Case, loops, matrices, trees
from tests.tolerance import ALGEBRA, CLEAR_OF_THRESHOLD, PEER, close

ROLLOUT = 1e-8
"""Tolerance of RK4 at 1 ms against the designed error, relative to the initial error: h^4 and rounding stay below it."""

CLEAR = (0.03, 300.0)
"""Range of singular values of scaled rows and inputs in these tests: no borderline rank, no lost digits."""


def null(A: np.ndarray) -> np.ndarray:
    """Orthonormal columns that span the null space of A."""
    _, s, Vt = np.linalg.svd(np.atleast_2d(A))
    rank = int((s > 1e-6 * max(s.max(initial=0), 1e-300)).sum())
    return Vt[rank:].T


def fields_of(case: Case, f, *names: str) -> dict[str, np.ndarray]:
    """Fields of f(terms), traced once."""
    shapes: list[tuple[int, int]] = []

    def all_of(T: pf.Terms) -> ca.SX:
        found = f(T)
        columns = [ca.densify(getattr(found, n)) for n in names]
        shapes[:] = [x.shape for x in columns]
        return ca.veccat(*columns)

    flat = matrices(case, {"all": all_of})["all"].ravel()
    cuts = np.cumsum([a * b for a, b in shapes])[:-1]
    return {n: x.reshape(shape, order="F") for n, x, shape in zip(names, np.split(flat, cuts), shapes, strict=True)}


def well_posed(case: Case, B: np.ndarray | None = None) -> dict[str, np.ndarray]:
    """A, M, b and row sizes of a case whose rank is clear; other examples are dropped."""
    parts = matrices(case, {"A": lambda T: T.A, "M": lambda T: T.M, "b": lambda T: T.b, "size": lambda T: T.row_size})
    A, M = parts["A"], parts["M"]
    low, high = CLEAR_OF_THRESHOLD
    for metric in (np.eye(len(M)), np.linalg.cholesky(M)):
        rows = np.linalg.solve(metric, A.T).T
        long = np.linalg.norm(A, axis=1) > low
        assume(bool(((parts["size"][long] > high**2) & (parts["size"][long] < 1e4)).all()))
        scaled = rows[long] / np.linalg.norm(rows[long], axis=1, keepdims=True)
        s = np.linalg.svd(scaled, compute_uv=False) if len(scaled) else np.zeros(0)
        assume(bool(((s > CLEAR[0]) | (s < low)).all()))
    assume(np.linalg.cond(M) < 1e4)
    inverse = np.linalg.pinv(A, rcond=1e-6)
    assume(bool(np.allclose(A @ inverse @ parts["b"], parts["b"], atol=1e-9)))  # the rows do not contradict each other
    if B is not None:
        s = np.linalg.svd(null(A).T @ B, compute_uv=False)
        assume(bool((s > CLEAR[0]).all()) and len(s) == null(A).shape[1])
    return parts


def assembled(m: pf.Mechanism, q, v) -> tuple[np.ndarray, np.ndarray]:
    """q and v, put onto the constraints."""
    return pf.assemble(m, q, v)[:2]


def motion(m: pf.Mechanism, case: Case, u: np.ndarray) -> np.ndarray:
    return np.atleast_1d(pf.forward_dynamics(m, case.q, case.v, u, t=case.t).v_dot)


# -- the operators --------------------------------------------------------------------------------------------------


def random_metric(random: np.random.Generator, n: int, whole: bool) -> np.ndarray:
    X = random.normal(size=(n, n))
    return X @ X.T / n + np.eye(n) if whole else random.uniform(0.3, 3, n)


@given(loops(3))
@settings(max_examples=12)
def test_projector_in_a_metric(case: Case) -> None:
    """P_W is idempotent, W P_W symmetric, A P_W = 0, and A^+ b is the particular solution of least W-norm. (8)-(10)"""
    known, random = well_posed(case), np.random.default_rng(8)
    for whole in (False, True):
        W = random_metric(random, case.m.nv, whole)
        G = W if whole else np.diag(W)
        found = fields_of(case, lambda T, W=W: projector(T, metric=W), "P", "particular", "rank")
        P, A = found["P"], known["A"]
        inverse = np.linalg.solve(G, A.T) @ np.linalg.pinv(A @ np.linalg.solve(G, A.T), rcond=1e-9)
        scale = np.linalg.cond(G) * 1e3
        close(P, np.eye(len(G)) - inverse @ A, ALGEBRA * scale, "P_W", scale=1)
        close(P @ P, P, ALGEBRA * scale, "P_W P_W", scale=1)
        close(G @ P, (G @ P).T, ALGEBRA * scale, "W P_W", scale=1)
        close(found["particular"], inverse @ known["b"], ALGEBRA * scale, "A^+ b", scale=1 + np.abs(known["b"]).max())
        assert found["rank"].item() == np.linalg.matrix_rank(A, 1e-6) == round(len(G) - np.trace(P))


def test_metric_of_ones_is_the_default_and_metric_of_inertia_is_gauss() -> None:
    random = np.random.default_rng(5)
    m, q, v = gantry(1.0), random.normal(size=4), random.normal(size=4)
    c = Case(m, q, v, random.normal(size=m.nu), 0.0)
    one = matrices(c, {"none": lambda T: projector(T).P, "ones": lambda T: projector(T, metric=np.ones(4)).P})
    close(one["none"], one["ones"], ALGEBRA, "P")
    for name in ("P", "particular"):
        got = matrices(c, {"x": lambda T, name=name: getattr(projector(T, metric=T.M), name)})["x"]
        M, A, b = matrices(c, {"M": lambda T: T.M, "A": lambda T: T.A, "b": lambda T: T.b}).values()
        inverse = np.linalg.solve(M, A.T) @ np.linalg.inv(A @ np.linalg.solve(M, A.T))
        close(got, np.eye(4) - inverse @ A if name == "P" else inverse @ b, ALGEBRA * 1e3, name)


@pytest.mark.parametrize("metric", [[1.0, 2.0], [1.0, 1.0, 1.0, -1.0], np.diag([1.0, 1.0, 1.0, -1.0]), [np.nan] * 4])
def test_wrong_metrics_are_refused(metric) -> None:
    with pytest.raises(pf.ModelError, match="metric"):
        projector(pf.Terms(*_symbols(gantry(1.0))), metric=metric)
    with pytest.raises(pf.ModelError, match="length"):
        length_metric(gantry(1.0), 0.0)


def _symbols(m: pf.Mechanism) -> tuple:
    T = pf.symbols(m)
    return m, T.q, T.v, T.u, T.t


@given(loops(3))
@settings(max_examples=12)
def test_reaction_split(case: Case) -> None:
    """direct + coupled is the reaction in any metric; each part is in the range of A^T. (32)"""
    known = well_posed(case)
    found = matrices(case, {"reaction": lambda T: pf.FORMULATIONS["gauss"](T).reaction, "force": lambda T: T.force})
    reaction, force = found["reaction"], found["force"]
    W = random_metric(np.random.default_rng(9), case.m.nv, True)
    N, scale = null(known["A"]), 1 + np.abs(force).max() + np.abs(reaction).max()
    for metric in (None, W):
        x = fields_of(case, lambda T, metric=metric: coupling(T, metric=metric), "direct", "coupled")
        bound = ALGEBRA * np.linalg.cond(known["M"]) * 1e3
        close(x["direct"] + x["coupled"], reaction, bound, "reaction", scale=scale)
        close(N.T @ x["direct"], 0 * (N.T @ x["direct"]), bound, "direct", scale=scale)
        close(N.T @ x["coupled"], 0 * (N.T @ x["coupled"]), bound, "coupled", scale=scale)


@given(trees(3))
@settings(max_examples=6)
def test_coupling_vanishes_where_the_null_space_is_invariant(drawn) -> None:
    """Where A combines left eigenvectors of M, M maps N(A) into itself and |mu P| = 0. Proposition 3"""
    random = drawn[0]
    m = particles(random.uniform(0.5, 3, 3))
    normal = {"eigenvector": np.array([0.0, 1.0, 0.0]), "slanted": np.array([1.0, 1.0, 0.3])}
    for name, n in normal.items():
        constrained = m.with_(constraints=[pf.holonomic("plane", lambda k, n=n: ca.dot(ca.DM(n), k.position("p2")))])
        q = random.normal(size=3)
        q -= n * (n @ q) / (n @ n)
        c = Case(constrained, q, np.zeros(3), np.zeros(3), 0.0)
        x = matrices(c, {"measure": lambda T: coupling(T).measure, "M": lambda T: T.M, "mu": lambda T: coupling(T).mu})
        if name == "eigenvector":
            assert x["measure"].item() < ALGEBRA
            close(x["mu"], np.diag([0.0, 1.0, 0.0]), ALGEBRA, "mu is I - P then, not zero")
        else:
            P = np.eye(3) - np.outer(n, n) / (n @ n)
            expected = (np.eye(3) - P) @ x["M"] @ np.linalg.inv(x["M"] + P @ x["M"] - (P @ x["M"]).T)
            close(x["mu"], expected, ALGEBRA * 100, "mu")
            close(x["measure"].item(), np.linalg.norm(expected @ P), ALGEBRA * 100, "measure")
            assert x["measure"].item() > 1e-3


def particles(masses: np.ndarray) -> pf.Mechanism:
    """Three slides at right angles with masses of their own: M is diagonal, and its entries differ."""
    bodies = [pf.body(f"p{i}", k) for i, k in enumerate(masses)]
    joints = [
        pf.joint(f"x{i}", "prismatic", "world" if i == 0 else f"p{i - 1}", f"p{i}", axis=np.eye(3)[i].tolist())
        for i in range(3)
    ]
    return pf.actuate_all(pf.mechanism("particles", bodies, joints))


def without_wrenches(m: pf.Mechanism) -> pf.Mechanism:
    """The mechanism without the external wrenches that are inputs."""
    return m.with_(forces=[f for f in m.forces if getattr(f, "value", 0) is not None])


# -- the allocation -------------------------------------------------------------------------------------------------


@given(loops(3))
@settings(max_examples=6)
def test_least_weighted_norm(case: Case) -> None:
    """Of all inputs that give a motion, inverse_dynamics finds that of least u^T R u, with passive joints too. (46) (60)"""
    case = Case(without_wrenches(case.m), case.q, case.v, case.u[: len(case.m.actuators)], case.t)
    m, random = pf.actuate_all(case.m), np.random.default_rng(46)
    for passive in (False, True):
        driven = [i for i in range(m.nv) if not passive or random.random() < 0.7]
        assume(driven)
        B = np.eye(m.nv)[:, driven]
        known = well_posed(case, B)
        a = motion(case.m, case, case.u)
        R = random.uniform(0.2, 5, len(driven))
        names = [m.u_names[i] for i in driven]
        x = pf.inverse_dynamics(m, case.q, case.v, a, actuated=names, weight=R, t=case.t)
        assert x.names == tuple(names) and x.u.shape == (len(driven),)
        with_motors = m.with_(actuators=[m.actuators[i] for i in driven])
        bound = ALGEBRA * np.linalg.cond(known["M"]) * 1e5
        close(motion(with_motors, case, x.u), a, bound, "motion under u", scale=1 + np.abs(a).max() + np.abs(x.u).max())
        close(x.tau, B @ x.u, ALGEBRA, "tau = B u")
        idle = null(null(known["A"]).T @ B)
        others = x.u + random.normal(size=(5, idle.shape[1])) @ idle.T
        for other in others:
            assert other @ (R * other) >= x.u @ (R * x.u) * (1 - 1e-9)
        same = np.atleast_2d(motion(with_motors, case, others).T).T
        close(same, np.tile(a, (5, 1)), bound, "motion under other inputs", scale=1 + np.abs(a).max() + np.abs(others).max())
        # Stationary: the gradient R u has no part along inputs that move nothing.
        slope = idle.T @ (R * x.u)
        close(slope, 0 * slope, bound, "gradient along idle inputs", scale=1 + np.abs(R * x.u).max())


def test_reaction_of_inverse_dynamics_is_that_of_the_motion() -> None:
    """With the inputs found, forward dynamics returns a and the same reaction, and tau + reaction is the force that a needs."""
    for m, q in ((gantry(1.0), [0.1, 0.9, 0.4, -0.7]), (five_bar(), [FIVE_BAR[n] for n in five_bar().q_names])):
        m = m.with_(joints=[replace(j, damping=ca.SX(0.4), stiffness=ca.SX(2.0)) for j in m.joints])
        q, v = assembled(m, q, np.linspace(-0.5, 0.6, m.nv))
        a = pf.forward_dynamics(m, q, v, np.linspace(3, -2, m.nu)).v_dot
        x = pf.inverse_dynamics(m, q, v, a)
        there = pf.forward_dynamics(m, q, v, x.u)
        scale = np.abs(there.reaction).max()
        assert scale > 0.5
        close(there.v_dot, a, PEER, "acceleration under u")
        close(x.reaction, there.reaction, PEER, "reaction", scale)
        T = matrices(Case(m, q, v, x.u, 0.0), {"M": lambda T: T.M, "c": lambda T: T.c, "f": lambda T: T.f, "A": lambda T: T.A})
        close(x.tau + x.reaction, T["M"] @ a + (T["c"] - T["f"]).ravel(), PEER, "M a + c - f", scale)
        close(null(T["A"]).T @ x.reaction, np.zeros(null(T["A"]).shape[1]), PEER, "virtual work of the reaction", scale)
        many = pf.inverse_dynamics(m, np.stack([q, q]), np.stack([v, v]), np.stack([a, a]))
        assert many.reaction.shape == (2, m.nv)
        close(many.reaction[1], x.reaction, PEER, "reaction of a batch", scale)


def gantry(s: float, g: float = 9.81) -> pf.Mechanism:
    """A cart with an arm of three hinges in the x-z plane, its tip on a slanted line; lengths in units of 1/s m."""
    up, rods = (0, -1, 0), (0.7 * s, 0.5 * s, 0.4 * s)
    bodies = [pf.body("cart", 2.0)] + [
        pf.body(
            f"rod{i}",
            1.0 + i,
            (l / 2, 0, 0),
            [0.01 * s**2, (1 + i) * l**2 / 12 + 0.01 * s**2, (1 + i) * l**2 / 12 + 0.01 * s**2],
        )
        for i, l in enumerate(rods)
    ]
    joints = [pf.joint("x", "prismatic", "world", "cart", axis=(1, 0, 0))]
    for i in range(3):
        at = (0 if i == 0 else rods[i - 1], 0, 0)
        joints.append(
            pf.joint(f"q{i}", "revolute", "cart" if i == 0 else f"rod{i - 1}", f"rod{i}", axis=up, placement=pf.pose(at))
        )
    tip = (rods[-1], 0, 0)
    line = pf.holonomic("line", lambda k: k.position("rod2", tip)[2] - 0.3 * k.position("rod2", tip)[0] - 0.5 * s)
    m = pf.mechanism("gantry", bodies, joints, constraints=[line], gravity=(0, 0, -g * s))
    return pf.actuate_all(m)


@pytest.mark.parametrize("passive", [(), ("q1",)])
def test_unit_of_length(passive: tuple[str, ...]) -> None:
    """With a characteristic length the torques are the same in metres and millimetres; without one they are not. (47) (48)"""
    length, s = 0.6, 1000.0
    metre, milli = gantry(1.0), gantry(s)
    q, v = assembled(metre, [0.1, 0.9, 0.4, -0.7], [0.3, 0.2, -0.5, 0.4])
    unit = np.array([s, 1, 1, 1])
    a = pf.forward_dynamics(metre, q, v, np.arange(4.0)).v_dot
    driven = [n for n in metre.u_names if n not in passive]
    indices = [metre.u_names.index(n) for n in driven]
    forces = np.array([s, s**2, s**2, s**2])[indices]

    def torques(weights: bool) -> tuple[np.ndarray, np.ndarray]:
        R = [control.length_weights(m, l)[indices] if weights else None for m, l in ((metre, length), (milli, length * s))]
        one = pf.inverse_dynamics(metre, q, v, a, actuated=driven, weight=R[0])
        other = pf.inverse_dynamics(milli, q * unit, v * unit, a * unit, actuated=driven, weight=R[1])
        return one.u, other.u / forces

    close(*torques(True), 1e-10, "torques in two units")
    one, other = torques(False)
    # With as many motors as degrees of freedom the weight has no effect.
    assert (np.abs(one - other).max() > 1e-3 * np.abs(one).max()) == (not passive)
    P = [
        pf.compile_terms(m, {"P": lambda T, m=m, l=l: projector(T, metric=length_metric(m, l)).P})(q * k)["P"]
        for m, l, k in ((metre, length, 1.0), (milli, length * s, unit))
    ]
    close(P[1] / unit[:, None] * unit, P[0], 1e-10, "projector in two units")


# -- in the loop ----------------------------------------------------------------------------------------------------


def five_bar(motors: tuple[str, ...] = ("left", "right"), redundant: bool = True) -> pf.Mechanism:
    """Two cranks and two rods in the x-z plane, 1 m apart; the rods' tips coincide (in space: one row too many)."""
    up, crank, rod = (0, -1, 0), 0.6, 0.9

    def bar(name: str, mass: float, length: float) -> pf.Body:
        I = mass * length**2 / 12
        return pf.body(name, mass, (length / 2, 0, 0), [0.0, I, I])

    bodies = [bar("crank l", 1.0, crank), bar("rod l", 0.8, rod), bar("crank r", 1.2, crank), bar("rod r", 0.7, rod)]
    joints = [
        pf.joint("left", "revolute", "world", "crank l", axis=up),
        pf.joint("elbow l", "revolute", "crank l", "rod l", axis=up, placement=pf.pose((crank, 0, 0))),
        pf.joint("right", "revolute", "world", "crank r", axis=up, placement=pf.pose((1, 0, 0))),
        pf.joint("elbow r", "revolute", "crank r", "rod r", axis=up, placement=pf.pose((crank, 0, 0))),
    ]
    tips = pf.coincide("tips", "rod l", (rod, 0, 0), "rod r", (rod, 0, 0))
    acts = [pf.actuator(n, n) for n in motors]
    return pf.mechanism("five-bar", bodies, joints, constraints=[tips], actuators=acts)


FIVE_BAR = {"left": 1.9, "elbow l": -1.0, "right": 1.1, "elbow r": 1.1}


TWO, FOUR = ("left", "right"), ("left", "elbow l", "right", "elbow r")


def designed(t: np.ndarray, e: np.ndarray, rate: np.ndarray, pole: float) -> np.ndarray:
    """Error at times t of a second-order system with both poles at -pole."""
    t = t[:, None]
    return (e + (rate + pole * e) * t) * np.exp(-pole * t)


@pytest.mark.parametrize(("law", "motors"), [("projected", TWO), ("projected", FOUR), ("hybrid", FOUR)])
def test_error_dynamics(law: str, motors: tuple[str, ...]) -> None:
    """The tip of a five-bar follows an ellipse: from a wrong start the error is the designed one."""
    pole = 8.0
    path = control.function_of_time(lambda t: [0.5 + 0.15 * ca.cos(3 * t), 0.9 + 0.1 * ca.sin(3 * t)], 2)
    task, gains = control.point("rod l", (0.9, 0, 0), (0, 2)), {"stiffness": pole**2, "damping": 2 * pole}
    if law == "projected":
        steer = control.projected(task, path, **gains)
    else:
        force = control.function_of_time(lambda t: 2 * ca.sin(t), 1)
        steer = control.hybrid_force(task, path, force, ["tips.vx"], **gains, integral_gain=5.0, integral_start=[0.2])
    m = five_bar(motors)
    r = pf.run(m, [FIVE_BAR[n] for n in m.q_names], duration=2.0, control=steer)
    assert r["status"] == 0 and r["violation"].max() < 1e-10
    e, rate = r["task_error"].values, r["task_error_rate"].values
    close(e, designed(r["time"].values, e[0], rate[0], pole), ROLLOUT, "error of the tip")
    if law == "hybrid":
        f = r["force_error"].values
        f = f.reshape(len(f))
        close(f, f[0] * np.exp(-5.0 * r["time"].values), ROLLOUT, "force error")


def slider_crank(motors: tuple[str, ...] = ("q1", "q2"), target: pf.Parameter | None = None) -> pf.Mechanism:
    up = (0, -1, 0)
    return pf.mechanism(
        "slider-crank",
        [pf.body("crank", 1.0, (1, 0, 0)), pf.body("rod", 1.0, (1, 0, 0))],
        [
            pf.joint("q1", "revolute", "world", "crank", axis=up),
            pf.joint("q2", "revolute", "crank", "rod", axis=up, placement=pf.pose((1, 0, 0))),
        ],
        constraints=[pf.holonomic("slider", lambda k: k.position("rod", (1, 0, 0))[2])],
        actuators=[pf.actuator(n, n) for n in motors],
        parameters=[target] if target else [],
    )


def test_through_singular_configurations() -> None:
    """The crank turns twice, through four singular configurations, under all laws; the error stays near zero."""
    turn = control.function_of_time(lambda t: [1.0 + 4 * t + 0.3 * ca.sin(5 * t)], 1)
    gains, none = {"stiffness": 100.0, "damping": 20.0}, control.set_point([0.0])
    task = control.joints("q1")
    q, v = [1.0, 2 * np.pi - 2.0], [5.5, -11.0]
    for motors, law in (
        (("q1", "q2"), control.projected(task, turn, **gains)),
        (("q1",), control.projected(task, turn, **gains)),
        (("q1", "q2"), control.hybrid_force(task, turn, none, ["slider"], **gains, force_gain=1.0, integral_gain=5.0)),
    ):
        r = pf.run(slider_crank(motors), q, v, duration=3.0, control=law)
        assert pf.results.causes(r) == ["finished"] and r["q"].values[-1, 0] > 4 * np.pi
        assert np.abs(r["task_error"]).max() < 1e-4
        assert np.abs(r["q"].values @ [2, 1] - 2 * np.pi).max() < 1e-7


def test_constraints_that_switch_on_and_off() -> None:
    """One law keeps a tip on a line and moves it along, whether the constraint is active or not. Conclusion of the paper"""
    tip = (0.4, 0, 0)
    free = gantry(1.0).with_(constraints=[])
    line = pf.holonomic("line", lambda k: k.position("rod2", tip)[2] - 0.5)
    there = pf.constraints.active_while(line, lambda k: ca.logic_or(k.t < 0.5, k.t > 1.0))
    m = free.with_(constraints=[there])
    q, v = assembled(m, [0.1, 0.9, 0.4, -0.7], np.zeros(4))
    start = pf.compile_terms(m, {"x": lambda T: T.kinematics.position("rod2", tip)})(q)["x"][0]
    x_d = control.function_of_time(lambda t: [start + 0.1 + 0.2 * ca.sin(2 * t), 0.5], 2)
    gains = {"stiffness": 64.0, "damping": 16.0, "rest_damping": 3.0}
    law = control.projected(control.point("rod2", tip, (0, 2)), x_d, **gains)
    r = pf.run(m, q, v, duration=1.5, control=law)
    t = r["time"].values
    assert r["status"] == 0
    rank = r["rank"].values
    assert (rank[t < 0.499] == 1).all() and (rank[(t > 0.501) & (t < 1)] == 0).all() and (rank[t > 1.001] == 1).all()
    e = r["task_error"].values
    close(e, designed(t, e[0], r["task_error_rate"].values[0], 8.0), ROLLOUT, "error across changes of topology")
    u = np.linalg.norm(r["u"].values, axis=1)
    assert u.max() < 200 and np.abs(np.diff(u)).max() > 1e-3  # inputs jump where the line begins or ceases to carry


# -- impossible requests ---------------------------------------------------------------------------------------------


def test_uncontrollable_and_infeasible_inverse_dynamics() -> None:
    m = five_bar()
    q, v = assembled(m, [FIVE_BAR[n] for n in m.q_names], np.zeros(4))
    a = pf.forward_dynamics(m, q, v, [1.0, 0.5]).v_dot
    both = pf.inverse_dynamics(m, q, v, a)
    close(both.u, np.array([1.0, 0.5]), 1e-9, "the two inputs")
    with pytest.raises(pf.RunError, match=r"uncontrollable.*actuators are left"):
        pf.inverse_dynamics(m, q, v, a, actuated=["left"])
    with pytest.raises(pf.RunError, match=r"uncontrollable.*\(run 1\)"):
        # Upright, the slider-crank has two degrees of freedom for a moment.
        pf.inverse_dynamics(slider_crank(("q1",)), [[1.0, 2 * np.pi - 2], [np.pi / 2, np.pi]], np.zeros(2), np.zeros(2))
    with pytest.raises(pf.RunError, match=r"infeasible.*tips"):
        pf.inverse_dynamics(m, q, v, a + [0, 0, 0, 1.0])
    with pytest.raises(pf.RunError, match=r"infeasible.*run 2"):
        pf.inverse_dynamics(m, q, v, np.stack([a, a, a + [0, 0, 0, 1.0]]))
    with pytest.raises(pf.ModelError, match="no velocity 'wrist'"):
        pf.inverse_dynamics(m, q, v, a, actuated=["wrist"])


def test_only_the_affected_run_stops_uncontrollable() -> None:
    """One of nine slider-cranks with one motor starts with its crank upright; the others are unaffected."""
    m = slider_crank(("q1",))
    law = control.projected(control.joints("q1"), control.set_point([1.2]), stiffness=25.0, damping=10.0)
    q1 = np.linspace(0.2, 1.4, 9)
    q1[4] = np.pi / 2
    q = np.column_stack([q1, 2 * np.pi - 2 * q1])
    with pytest.warns(pf.RunWarning, match=r"1 of 9 runs stopped: 1 uncontrollable.*run 4 first, at t = 0 s"):
        r = pf.run(m, q, duration=0.5, control=law)
    assert (r["status"].values != 0).tolist() == [i == 4 for i in range(9)]
    assert pf.results.causes(r)[4].startswith("uncontrollable") and float(r["stopped"][4]) == 0
    assert pf.results.causes(r)[4].endswith("the motion without an actuator moves q1, q2; the actuators are q1")
    for i in (0, 3, 8):
        alone = pf.run(m, q[i], duration=0.5, control=law)
        np.testing.assert_array_equal(alone["q"].values, r["q"].values[i])


def test_only_the_affected_run_stops_infeasible() -> None:
    """The task contains the slider's height: zero is feasible, any other height is not."""
    height = pf.Parameter("height", 0.0, "m")
    m = slider_crank(target=height)
    task = control.stack(control.joints("q1"), control.point("rod", (1, 0, 0), (2,)))
    law = control.projected(task, control.set_point([1.2, height]), stiffness=25.0, damping=10.0)
    r = pf.run(m, [1.0, 2 * np.pi - 2], duration=0.2, control=law, parameters={"height": np.array([0.0, 0.1, 0.0])})
    assert [c.split(":")[0] for c in pf.results.causes(r)] == ["finished", "infeasible", "finished"]
    assert pf.results.causes(r)[1].endswith("leave task coordinate 1 the least motion, 0, where 1 is unrestricted")
    assert pf.results.causes(r.isel(run=slice(1, 3)))[0] == pf.results.causes(r)[1]
    assert float(r["stopped"][1]) == 0 and np.abs(r["task_error"].values[0, :, 1]).max() < 1e-10


def test_force_out_of_reach() -> None:
    """One motor drives the slider-crank but cannot also choose the slider's force."""
    law = control.hybrid_force(
        control.joints("q1"), control.set_point([1.2]), control.set_point([1.0]), ["slider"], stiffness=25.0, damping=10.0
    )
    r = pf.run(slider_crank(("q1",)), [1.0, 2 * np.pi - 2], duration=0.2, control=law)
    assert "out of reach" in pf.results.causes(r)[0] and float(r["stopped"]) == 0


def test_no_actuators_at_all() -> None:
    law = control.projected(control.joints("q1"), control.set_point([1.2]), stiffness=25.0, damping=10.0)
    with pytest.raises(pf.ModelError, match="no actuators"):
        pf.run(slider_crank(()), [1.0, 2 * np.pi - 2], duration=0.1, control=law)
