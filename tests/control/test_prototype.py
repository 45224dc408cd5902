"""Tracking of a prototype: numbers of the thesis, falling energies, least deviation, limits, any coordinates."""

from __future__ import annotations

from contextlib import nullcontext

import casadi as ca
import numpy as np
import pytest

import pfaffian as pf
from pfaffian import control
from pfaffian.control.prototype import APPROACHES, ReferenceMotion, prototype_terms
from pfaffian.control.prototype_pair import motion_of
from pfaffian.maths import se3, so3
from pfaffian.terms.kinematics import Kinematics
from studies.konz_simple_bodies import translation_energy
from tests.by_scipy import run_adaptive
from tests.random_mechanisms import random_tree
from tests.refused import refusals
from tests.tolerance import DERIVATIVE, INTEGRATED, close

pm = pf.forces.pseudo_matrix
PLANAR = pf.actuate_all(
    pf.mechanism("planar", [pf.body("b", 1.0, inertia=0.3)], [pf.joint("j", "planar", "world", "b")], gravity=(0, 0, 0))
)
FREE = pf.actuate_all(
    pf.mechanism(
        "free",
        [pf.body("b", 1.3, com=(0.1, -0.2, 0.05), inertia=(0.3, 0.4, 0.5))],
        [pf.joint("j", "free", "world", "b")],
    )
)


def definite(random: np.random.Generator) -> np.ndarray:
    A = random.normal(size=(4, 6))
    return A @ A.T


def random_pairs(m: pf.Mechanism, seed: int) -> list[control.Pair]:
    """Pairs of each body with the world and with its neighbour, with random weights."""
    random, names = np.random.default_rng(seed), [b.name for b in m.bodies]
    ends = [(n, "world") for n in names] + list(zip(names[1:], names, strict=False))
    return [control.pair(b, seen_from=a, inertia=definite(random), damping=definite(random), stiffness=definite(random))
            for b, a in ends]  # fmt: skip


MOVING = control.function_of_time(
    lambda t: ca.vertcat(ca.cos(t), ca.sin(2 * t), 0.3 * t, so3.quat_exp(ca.vertcat(ca.sin(t), 0.5 * ca.cos(2 * t), 0.8 * t))),
    7,
)


# -- one body: its energies -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("approach", APPROACHES)
def test_the_energy_of_a_planar_body_is_that_of_its_translation_and_its_turn(approach):
    """They are decoupled, (4.99), with a reference that turns at pi rad/s. `konz-simple-bodies` claims places and energies."""
    turn = {"moments": 0.5}
    pair = control.pair("b", inertia=pm(1, **turn), damping=pm(4, moments=1.0), stiffness=pm(4, moments=2.0))
    law = control.prototype_tracking([pair], control.function_of_time(lambda t: [0, 0, np.pi * t], 3), approach=approach)
    r = pf.run(PLANAR, [0, 1, 0], [0, 0, 0], duration=3.0, step=1e-3, every=500, control=law)
    angle, rate = r.q.values[:, 2] - np.pi * r.time.values, r.v.values[:, 2] - np.pi
    if approach == "particle":
        w = r.v.values[:, 2]
        turning = 0.5 / 2 * (w**2 - 2 * w * np.pi * np.cos(angle) + np.pi**2) + 2.0 * (1 - np.cos(angle))
    else:
        turning = 0.5 / 2 * rate**2 + 2.0 * (1 - np.cos(angle))
    close(r.prototype_energy.values, translation_energy(r, approach) + turning, DERIVATIVE, "energy")


@pytest.mark.parametrize("approach", APPROACHES)
def test_energy_of_a_free_body_falls_along_any_reference(approach):
    """W_dot = -xi_E^T D xi_E for the approaches body and energy, not for particle. [konz25 (4.23), (4.32)]"""
    random = np.random.default_rng(3)
    M, D, K = (definite(random) for _ in range(3))
    pairs = [control.pair("b", inertia=M, damping=D, stiffness=K)]
    law = control.prototype_tracking(pairs, MOVING, approach=approach)
    q, v = pf.random_configuration(FREE, random), random.normal(size=6)
    r = pf.run(FREE, q, v, duration=0.5, step=5e-4, control=law)
    W, h = r.prototype_energy.values, 5e-4
    slope = (-W[4:] + 8 * W[3:-1] - 8 * W[1:-3] + W[:-4]) / (12 * h)
    close(slope, r.prototype_power.values[2:-2], 1e-7, "the power recorded is the energy's rate")
    lost, T = [], pf.compile_terms(FREE, {"G": _pose, "K": lambda T: T.kinematics.kinematic_matrix}, backend="numpy", lanes=1)
    for t, q, v in zip(r.time.values, r.q.values, r.v.values, strict=True):
        x = MOVING.at(ca.SX(float(t)), ca.SX(0, 1))
        q_R, rate = (np.array(ca.DM(ca.evalf(y))).ravel() for y in (x.value, x.rate))
        here, there = T(q), T(q_R)
        v_R = np.linalg.lstsq(there["K"], rate, rcond=None)[0]
        E = np.linalg.solve(there["G"], here["G"])
        xi = v - np.array(se3.Ad_inv(ca.DM(E[:3, :3]), ca.DM(E[:3, 3]))) @ v_R
        lost.append(-xi @ np.array(se3.Vee(ca.DM(D))) @ xi)
        if len(lost) > 40:
            break
    found = r.prototype_power.values[: len(lost)]
    if approach == "particle":
        assert np.abs(found - lost).max() > 0.1 * np.abs(lost).max()
    else:
        close(found, lost, 1e-9, "W_dot = -xi_E^T D xi_E")
    assert np.abs(r.matching_force.values).max() < 1e-10


def _pose(T: pf.Terms) -> ca.SX:
    G = T.kinematics.pose("b")
    return se3.homogeneous(G.R, G.p)


# -- any mechanism ------------------------------------------------------------------------------------------------------

TREE = pf.actuate_all(random_tree(np.random.default_rng(7), ["free", "revolute", "spherical"], [-1, 0, 1]))


def at_symbols(m: pf.Mechanism, f) -> dict[str, np.ndarray]:
    """f(k, goal) at a random state and reference: in general, without error, and with the reference at rest."""
    random = np.random.default_rng(5)
    s = [ca.SX.sym(n, k) for n, k in (("q", m.nq), ("v", m.nv), ("q_R", m.nq), ("v_R", m.nv), ("a_R", m.nv))]
    t = ca.SX.sym("t")
    k, k_R = Kinematics(m, s[0], s[1], t), Kinematics(m, s[2], s[3], t)
    parts = f(k, ReferenceMotion(k_R, s[4]))
    numbers = [pf.random_configuration(m, random), random.normal(size=m.nv), pf.random_configuration(m, random),
               random.normal(size=m.nv), random.normal(size=m.nv)]  # fmt: skip
    given = {
        "error": numbers,
        "none": [*numbers[:2], *numbers[:2], numbers[4]],
        "rest": [*numbers[:3], 0 * numbers[3], 0 * numbers[4]],
    }
    values = {
        name: [np.array(x) for x in ca.Function("f", [*s, t], list(parts.values()))(*at, 0.0)] for name, at in given.items()
    }
    return {name: dict(zip(parts, x, strict=True)) | {"a_R": given[name][4]} for name, x in values.items()}


def test_relative_motion_is_the_difference_of_two_motions():
    """G_ab = G_a^-1 G_b, J_ab = J_b - Ad(G_ab^-1) J_a, across a branching tree and along chosen velocities."""
    random = np.random.default_rng(6)
    tree = random_tree(random, ["free", "revolute", "spherical", "helical", "fixed", "prismatic"], [-1, 0, 1, 0, 3, 4])
    A = np.eye(tree.nv) + 0.3 * random.normal(size=(tree.nv, tree.nv))
    turned = tree.with_(velocities=pf.velocities(lambda k: A, [f"w{i}" for i in range(tree.nv)]))
    names = ["world", *(b.name for b in tree.bodies)]
    for m in (tree, turned):
        k = pf.symbols(m).kinematics
        off, q = [], pf.random_configuration(m, random)
        for b in names:
            for a in names:
                G, J = k.relative(b, a)
                there = k.pose(a).inverse() @ k.pose(b)
                apart = J - (k.jacobian(b) - se3.Ad_inv(there.R, there.p) @ k.jacobian(a))
                off += [ca.vec(apart), ca.vec(G.R - there.R), G.p - there.p]
        values = np.array(ca.Function("off", [k.q, m.p_symbols], [ca.vertcat(*off)])(q, m.p_defaults))
        close(values, np.zeros_like(values), DERIVATIVE, m.name, scale=[10.0])
    _, J = pf.symbols(tree).kinematics.relative("b1", "b0")
    assert J.is_constant() and J.nnz() <= 6


def test_forces_are_derivatives_of_their_energies():
    """f^K = grad V, f^D = dR/dv, f^M = dS/dv_dot with the acceleration energies of the differences. [konz25 (4.16)]"""
    m, pairs = TREE, random_pairs(TREE, 1)
    v_dot = ca.SX.sym("v_dot", m.nv)

    def compared(k, goal):
        P = {a: prototype_terms(k, goal, pairs, a, None) for a in ("particle", "body")}
        S = R = V = S_body = R_body = ca.SX(0)
        for e in pairs:
            here, there = motion_of(k, e), motion_of(goal.k, e)
            back = ca.solve(here.G, there.G)
            X, X_R = se3.hat(here.J @ k.v), se3.hat(there.J @ goal.k.v)
            A = se3.hat(here.J @ v_dot + here.J_dot @ k.v) + X @ X
            A_R = se3.hat(there.J @ goal.v_dot + there.J_dot @ goal.k.v) + X_R @ X_R
            half = lambda E, weight: ca.trace(E @ weight @ E.T) / 2  # noqa: E731
            S += half(A - back @ A_R, e.inertia)
            R += half(X - back @ X_R, e.damping)
            V += half(here.G - there.G, e.stiffness)
            carry = se3.Ad(back[:3, :3], back[:3, 3])
            carried = carry @ (there.J @ goal.k.v)
            xi = here.J @ k.v - carried
            rate = here.J @ v_dot + here.J_dot @ k.v - carry @ (there.J @ goal.v_dot + there.J_dot @ goal.k.v)
            rate += se3.ad(xi) @ carried
            S_body += half(se3.hat(rate) + se3.hat(xi) @ se3.hat(xi), e.inertia)
            R_body += half(se3.hat(xi), e.damping)
        pull = (ca.jacobian(V, k.q) @ k.kinematic_matrix).T
        energies = {"particle": (S, R), "body": (S_body, R_body)}
        forces = {a: (ca.jacobian(S, v_dot) + ca.jacobian(R, k.v)).T + pull for a, (S, R) in energies.items()}
        at = lambda x: ca.substitute(x, v_dot, ca.DM(np.arange(m.nv)))  # noqa: E731
        return {a: at(P[a].M @ v_dot + P[a].b - force) for a, force in forces.items()} | {
            "size": at(forces["particle"]),
            "potential": P["particle"].potential - V,
            "body's": P["body"].potential - V,
        }

    found = at_symbols(m, compared)["error"]
    for what in ("particle", "body", "potential", "body's"):
        close(found[what], np.zeros_like(found[what]), DERIVATIVE, what, scale=[1.0, np.abs(found["size"]).max()])


def test_the_three_approaches_agree_at_rest_and_without_error():
    """With a constant reference they have the same bbar; without error bbar = -Mbar v_R_dot."""
    pairs = random_pairs(TREE, 2)

    def all_three(k, goal):
        P = {a: prototype_terms(k, goal, pairs, a, None) for a in APPROACHES}
        return {a: x.b for a, x in P.items()} | {"M": P["body"].M} | {f"W {a}": x.energy for a, x in P.items()}

    found = at_symbols(TREE, all_three)
    for a in APPROACHES:
        close(found["rest"][a], found["rest"]["body"], 1e-11, f"{a} at a constant reference")
        close(found["rest"][f"W {a}"], found["rest"]["W body"], 1e-11, f"energy of {a}")
        expected = -found["none"]["M"] @ found["none"]["a_R"]
        close(found["none"][a].ravel(), expected, 1e-11, f"{a} without error")
        close(found["none"][f"W {a}"], np.zeros((1, 1)), 1e-11, f"energy of {a} without error")
    assert np.abs(found["error"]["particle"] - found["error"]["body"]).max() > 1e-3
    assert np.abs(found["error"]["energy"] - found["error"]["body"]).max() > 1e-3


def test_the_closed_loop_does_not_depend_on_coordinates():
    """With the same pairs a robot has the same motion along other velocities, under each of the three approaches."""
    random = np.random.default_rng(4)
    m = pf.actuate_all(random_tree(random, ["revolute", "prismatic", "revolute"], [-1, 0, 1]))
    A = np.eye(3) + 0.3 * random.normal(size=(3, 3))
    T = lambda q: A + 0.2 * np.sin(q[0]) * np.eye(3)  # noqa: E731
    new = m.with_(velocities=pf.velocities(lambda k: ca.SX(A) + 0.2 * ca.sin(k.q[0]) * ca.SX.eye(3), ["a", "b", "c"]))
    reference = control.function_of_time(lambda t: [ca.sin(t), 0.3 * t, ca.cos(2 * t)], 3)
    q, v = random.normal(size=3), random.normal(size=3)
    for approach in APPROACHES:
        law = control.prototype_tracking(random_pairs(m, 3), reference, approach=approach)
        how = {"duration": 0.4, "step": 1e-3, "every": 100, "control": law}
        here, there = pf.run(m, q, v, **how), pf.run(new, q, np.linalg.solve(T(q), v), **how)
        close(there.q.values, here.q.values, INTEGRATED, approach)
        close(there.u.values, here.u.values, 1e-7, f"u of {approach}")


def test_joint_space_laws_are_special_prototypes():
    """Moments about each joint's axis, relative to the previous body: joints act as single ones. [konz25 (4.104)-(4.106)]"""
    bodies = [pf.body("arm", 1.0, com=(0.2, 0, 0), inertia=0.1), pf.body("hand", 0.5, com=(0.1, 0, 0), inertia=0.05)]
    joints = [pf.joint("j1", "revolute", "world", "arm"), pf.joint("j2", "revolute", "arm", "hand", placement=(0.4, 0, 0))]
    m = pf.actuate_all(pf.mechanism("scara", bodies, joints))
    chain = {"arm": "world", "hand": "arm"}
    inertia, damping, stiffness = 0.5, 1.5, 3.0
    pairs = [control.pair(b, seen_from=a, inertia=pm(0, moments=inertia), damping=pm(0, moments=damping),
                          stiffness=pm(0, moments=stiffness)) for b, a in chain.items()]  # fmt: skip
    goal = np.array([0.4, -0.7])
    for approach in ("body", "energy"):
        law = control.prototype_tracking(pairs, control.function_of_time(lambda t: [0.4 + t, -0.7 - t], 2), approach=approach)
        r = pf.run(m, goal + 0.8, [0.0, 0.0], duration=1.0, step=1e-3, control=law)
        e = r.q.values - goal - np.outer(r.time.values, [1, -1])
        rate = r.v.values - [1, -1]
        bend = (r.v.values[2:] - r.v.values[:-2]) / 2e-3
        left = inertia * bend + damping * rate[1:-1] + stiffness * np.sin(e[1:-1])
        assert np.abs(left).max() < 2e-5


# -- fewer inputs than motions ------------------------------------------------------------------------------------------

G, BEAM = 9.81, 0.2
"""Gravity [m/s^2], and the angle by which each propeller of the PVTOL leans inwards [rad]."""
LEAN = 0.05
"""eps of the PVTOL [m]."""
HOVER = control.hover_placement([-3] * 4, coupling_length=LEAN)
"""Prototype with four poles at -3 and, at m = 1 kg, a pair at -1.2 +- 0.6 i; `konz-underactuated` claims its numbers."""


def pvtol(limits=(-np.inf, np.inf)) -> pf.Mechanism:
    inertia, c, s = 0.02, np.cos(BEAM), np.sin(BEAM)
    arm = inertia * s / (LEAN * c)
    motors = [
        pf.forces.thruster(n, "b", axis=(x * s, c, 0), point=(x * arm, 0, 0), limits=limits)
        for n, x in (("right", 1), ("left", -1))
    ]
    body, joint = pf.body("b", 1.0, inertia=inertia), pf.joint("j", "planar", "world", "b")
    return pf.mechanism("pvtol", [body], [joint], gravity=(0, -G, 0), actuators=motors)


def hovering() -> list[control.Pair]:
    x = HOVER
    return [control.pair("b", inertia=pm(x.mass, (0, x.s, 0), x.inertia), damping=pm(x.damping, (0, x.h, 0)),
                         stiffness=pm(x.stiffness, (0, x.h, 0), x.moment))]  # fmt: skip


def test_the_matching_force_is_that_of_the_thesis():
    """btilde = (h - s) / (h - eps) [1, 0, -eps]^T lambda for a moving reference, with the lambda of each approach.

    [konz25 (4.142)] as corrected in studies/errata.md.
    """
    x, m, eps = HOVER, pvtol(), LEAN
    y = lambda t: (0.8 * ca.sin(1.1 * t), 0.5 * ca.cos(0.7 * t))  # noqa: E731

    def flat(t):
        s = ca.SX.sym("s")
        p = ca.vertcat(*y(s))
        bend = ca.jacobian(ca.jacobian(p, s), s)
        angle = ca.atan2(-bend[0], bend[1] + G)
        place = ca.vertcat(p[0] + eps * ca.sin(angle), p[1] - eps * ca.cos(angle), angle)
        return ca.Function("flat", [s], [place])(t)

    reference = control.function_of_time(flat, 3)
    for approach in APPROACHES:
        law = control.prototype_tracking(hovering(), reference, approach=approach)
        r = pf.run(m, [0.3, -0.2, 0.5], [0.1, 0.2, -0.3], duration=0.2, step=1e-3, control=law)
        for t, q, v, force in zip(r.time.values, r.q.values, r.v.values, r.matching_force.values, strict=True):
            w = reference.at(ca.SX(float(t)), ca.SX(0, 1))
            q_R, rate, bend = (np.array(ca.DM(ca.evalf(z))).ravel() for z in w)
            R = lambda a: np.array([[np.cos(a), -np.sin(a)], [np.sin(a), np.cos(a)]])  # noqa: E731
            v_R, w_R, w_R_dot = R(q_R[2]).T @ rate[:2], rate[2], bend[2]
            v_R_dot = R(q_R[2]).T @ bend[:2] - w_R * np.array([-v_R[1], v_R[0]])
            a = q[2] - q_R[2]
            r_E = R(q[2]).T @ (q[:2] - q_R[:2])
            S = np.array([[0, -1], [1, 0]])
            v_E = v[:2] - R(a).T @ v_R - w_R * S @ r_E
            up = v_R_dot[1] + v_R[0] * w_R + G * (np.cos(q_R[2]) - 1)
            if approach == "particle":
                lam = -(up - eps * w_R**2) * np.sin(a)
            else:
                twice = 2 if approach == "body" else 1
                lam = -(up * np.sin(a) - r_E[0] * w_R**2 - twice * v_E[1] * w_R - (r_E[1] + eps * (1 - np.cos(a))) * w_R_dot)
            expected = (x.h - x.s) / (x.h - eps) * np.array([1, 0, -eps]) * lam
            close(force, expected, 1e-9, f"{approach} at {t}", scale=[1.0])


def test_inputs_minimise_the_deviation_from_the_prototype():
    """|v_dot + Mbar^-1 bbar| in the metric of Mbar is least: any other u has a larger deviation. [konz25 (4.52)]"""
    m, random = pvtol(), np.random.default_rng(2)
    law = control.prototype_tracking(hovering(), control.set_point([0, 0, 0]))
    r = pf.run(m, [0.3, -0.2, 0.9], [0.1, 0.2, -0.3], duration=0.01, step=1e-3, control=law)
    q, v, u = r.q.values[0], r.v.values[0], r.u.values[0]
    inertia = lambda T: prototype_terms(T.kinematics, ReferenceMotion(T.kinematics, ca.SX(3, 1)), hovering(), "body", None).M  # noqa: E731
    M = pf.compile_terms(m, {"M": inertia}, backend="numpy", lanes=1)(q)["M"]
    of = lambda u: pf.forward_dynamics(m, q, v, u=u).v_dot  # noqa: E731
    best = of(u)
    target = best - np.linalg.solve(M, r.matching_force.values[0])
    size = lambda a: (a - target) @ M @ (a - target)  # noqa: E731
    for _ in range(20):
        assert size(of(u + 0.1 * random.normal(size=2))) > size(best)
    assert size(best) > 0


# -- limits ---------------------------------------------------------------------------------------------------------------


def test_inputs_stay_within_limits_of_any_form():
    m = pvtol(limits=(0.0, 9.0))
    how = {"duration": 6.0, "step": 2e-3, "every": 10}
    start = ([1.5, 0.5, 2.2], [0.0, 0.0, 0.0])
    law = control.prototype_tracking(hovering(), control.set_point([0, 0, 0]), limits="actuators")
    r = pf.run(m, *start, control=law, **how)
    assert r.u.values.min() > -1e-9 and r.u.values.max() < 9 + 1e-9
    assert r.limit_active.values.any() and int(r.status) == 0
    assert np.abs(r.q.values[-1]).max() < 0.05
    free = control.prototype_tracking(hovering(), control.set_point([0, 0, 0]))
    loose = pf.run(m, *start, control=free, record=["u"], duration=0.1, step=2e-3)
    assert loose.u.values.min() < -1 or loose.u.values.max() > 10
    slack = np.concatenate([r.u.values, 9.0 - r.u.values], axis=1)
    close(r.limit_slack.values, slack, 1e-12, "slack to the limits")
    rows = (np.vstack([-np.eye(2), np.eye(2)]), [0.0, 0.0, 9.0, 9.0])
    for form in ([(0.0, 9.0)] * 2, ((0.0, 9.0), (0.0, 9.0)), rows):
        again = control.prototype_tracking(hovering(), control.set_point([0, 0, 0]), limits=form)
        short = pf.run(m, *start, control=again, duration=0.1, step=2e-3, every=10)
        assert np.array_equal(short.u, r.u[:6]), form
    wide = control.prototype_tracking(hovering(), control.set_point([0, 0, 0]), limits=(np.eye(2), [1e3, 1e3]))
    same = [pf.run(m, [0.1, 0, 0.1], [0, 0, 0], duration=0.2, step=2e-3, control=x).u.values for x in (wide, free)]
    close(*same, 1e-10, "limits that are far change nothing")


@pytest.mark.parametrize("sampled", [False, True])
def test_records_of_the_law_have_units(sampled):
    """Wbar, its rate, the potential, the matching force along v, the slack to the limits and which limits are active."""
    law = control.prototype_tracking(hovering(), REF, limits=([[1.0, 1.0], [-1.0, 0.0], [0.0, -1.0]], [30.0, 0.0, 0.0]))
    law = control.discrete(law, 0.01) if sampled else law
    r = pf.run(pvtol(), [0.3, 0.1, 0.2], duration=0.05, step=0.01, control=law)
    units = {
        "prototype_energy": "J", "prototype_power": "W", "prototype_potential": "J", "matching_force": "per velocity",
        "transport_error": "per velocity", "limit_slack": "per limit", "limit_active": "1",
    }  # fmt: skip
    assert {name: r[name].attrs["units"] for name in units} == units
    assert r["matching_force"].dims == r["transport_error"].dims == ("time", "velocity")
    left = np.array([30.0, 0, 0]) - r.u.values @ [[1, -1, 0], [1, 0, -1]]
    close(r["limit_slack"].values, left, 1e-12, "l - W u")


def test_redundant_motors_share_the_load_and_replace_limited_ones():
    """Four inputs move a body with three motions: the smallest that give the motion; at a limit the fourth takes over."""
    side = pf.forces.thruster("side", "b", axis=(1, 0, 0), point=(0, 0.4, 0))
    m = PLANAR.with_(actuators=(*PLANAR.actuators, side))
    start = ([0.3, -0.2, 0.9], [0.1, 0.2, -0.3])
    pairs = [control.pair("b", inertia=pm(2, (0.1, 0, 0), 0.3), damping=pm(3, moments=1.0), stiffness=pm(4, moments=2.0))]
    how = {"duration": 0.5, "step": 2e-3}
    law = control.prototype_tracking(pairs, REF)
    one, r = pf.run(PLANAR, *start, control=law, **how), pf.run(m, *start, control=law, **how)
    close(r.q.values, one.q.values, 1e-10, "the motion")
    B = pf.compile_terms(m, {"B": lambda T: T.B}, backend="numpy", lanes=1)
    for q, u, alone in zip(r.q.values[::50], r.u.values[::50], one.u.values[::50], strict=True):
        forces = pf.compile_terms(PLANAR, {"B": lambda T: T.B}, backend="numpy", lanes=1)(q)["B"] @ alone
        close(u, np.linalg.pinv(B(q)["B"], rcond=1e-9) @ forces, 1e-9, "the smallest inputs")
    most = 0.5 * np.abs(r.u.values[:, 0]).max()
    limits = ([[1.0, 0, 0, 0], [-1.0, 0, 0, 0]], [most, most])
    limited = pf.run(m, *start, control=control.prototype_tracking(pairs, REF, limits=limits), **how)
    assert np.abs(limited.u.values[:, 0]).max() < most + 1e-9 and limited.limit_active.values.any()
    close(limited.q.values, one.q.values, 1e-6, "the motion at the limit")


def test_limits_that_exclude_every_input_stop_the_run():
    limits = ([[0, 1.0], [1, 0], [0, -1], [-1, 0]], [3.0, 0.0, 3.0, -1.0])
    law = control.prototype_tracking(hovering(), control.set_point([0, 0, 0]), limits=limits)
    with pytest.warns(pf.RunWarning, match="no input is within the limits.*rows 1, 3 contradict each other; they limit right"):
        r = pf.run(pvtol(), duration=0.1, control=law)
    assert int(r.status) != 0


def test_a_prototype_without_inertia_stops_and_names_the_motion():
    only_turning = [control.pair("b", inertia=pm(0, moments=1.0), stiffness=pm(1.0))]
    law = control.prototype_tracking(only_turning, control.set_point([0, 0, 0]))
    with pytest.warns(pf.RunWarning, match=r"no inertia against some motion[^$]*j\.v[xy]"):
        pf.run(PLANAR, duration=0.1, control=law)


REF = control.set_point([0, 0, 0])
WRONG = {
    "no pairs": (lambda: control.prototype_tracking([], REF), "a list of pair"),
    "no list": (lambda: control.prototype_tracking(hovering()[0], REF), "a list of pair"),
    "approach": (lambda: control.prototype_tracking(hovering(), REF, approach="best"), "one of particle, body, energy"),
    "transport": (
        lambda: control.prototype_tracking(hovering(), REF, approach="body", transport=abs),
        "approach 'energy' only",
    ),
    "one body twice": (lambda: control.pair("b", seen_from="b"), "two different bodies"),
    "not symmetric": (lambda: control.pair("b", stiffness=np.triu(np.ones((4, 4)))), "stiffness.*not symmetric"),
    "negative": (
        lambda: pf.run(
            PLANAR,
            duration=0.1,
            control=control.prototype_tracking([control.pair("b", inertia=pm(1), damping=-np.eye(4))], REF),
        ),
        "damping is negative, -[0-9.]+, along a motion of j",
    ),
    "negative beside what is large": (
        lambda: pf.run(
            PLANAR,
            duration=0.1,
            control=control.prototype_tracking(
                [control.pair("b", inertia=pm(1, moments=1), damping=np.diag([-1e-6, -1e-6, 0, 1e4]))], REF
            ),
        ),
        "damping is negative, -2e-06, along a motion of j.wz",
    ),
    "reference": (
        lambda: pf.run(PLANAR, duration=0.1, control=control.prototype_tracking(hovering(), control.set_point([0.0]))),
        "the reference has 1 numbers, but the configuration of 'planar' has 3: j.x, j.y, j.angle",
    ),
    "no actuators": (
        lambda: pf.run(PLANAR.with_(actuators=()), duration=0.1, control=control.prototype_tracking(hovering(), REF)),
        "has no actuators",
    ),
    "an unknown body": (
        lambda: pf.run(PLANAR, duration=0.1, control=control.prototype_tracking([control.pair("c", inertia=pm(1))], REF)),
        "no body 'c'",
    ),
    "limits": (lambda: pf.run(PLANAR, duration=0.1, control=control.prototype_tracking(hovering(), REF, limits=3)), "a pair"),
    "limits of another size": (
        lambda: pf.run(PLANAR, duration=0.1, control=control.prototype_tracking(hovering(), REF, limits=([[1.0]], [1.0]))),
        "W must be",
    ),
    "no limits": (
        lambda: pf.run(PLANAR, duration=0.1, control=control.prototype_tracking(hovering(), REF, limits="actuators")),
        "none of them is finite; give the actuators limits",
    ),
}


test_wrong_prototypes_are_named = refusals(WRONG)


def test_two_prototypes_do_not_share_a_kernel():
    from pfaffian.control.law_digest import digest

    laws = [
        control.prototype_tracking(hovering(), REF),
        control.prototype_tracking(hovering(), REF, approach="body"),
        control.prototype_tracking([control.pair("b", inertia=pm(1, (0, 1, 0), 2))], REF),
        control.prototype_tracking(hovering(), REF, transport=lambda k, k_R: ca.SX.eye(3)),
        control.prototype_tracking(hovering(), REF, limits=(np.eye(3), [1.0, 1.0, 1.0])),
    ]
    assert len({digest(law, PLANAR) for law in laws}) == len(laws)


# -- transport maps -------------------------------------------------------------------------------------------------------


def tool(k):
    """Tip of two links of 0.4 and 0.3 m. [konz25 (4.108)]"""
    a, b = k.q[0], k.q[0] + k.q[1]
    return ca.vertcat(0.4 * ca.cos(a) + 0.3 * ca.cos(b), 0.4 * ca.sin(a) + 0.3 * ca.sin(b))


def test_a_tool_moves_like_a_point_on_a_spring():
    """Weights at the tool alone give m e'' + d e' + k e = 0: by particles, and by energy with the map of errors, (4.111b).

    With the map of the pairs' twists, under which the body of the reference carries the tool, the energy falls too, but the
    motion differs.
    """
    bodies = [pf.body("arm", 1.0, com=(0.2, 0, 0), inertia=0.1), pf.body("hand", 0.5, com=(0.1, 0, 0), inertia=0.05)]
    joints = [pf.joint("j1", "revolute", "world", "arm"), pf.joint("j2", "revolute", "arm", "hand", placement=(0.4, 0, 0))]
    m, at = pf.actuate_all(pf.mechanism("scara", bodies, joints)), (0.3, 0, 0)
    point = [control.pair("hand", inertia=pm(1, at), damping=pm(3, at), stiffness=pm(4, at))]
    reference = control.function_of_time(lambda t: [0.3 + 0.2 * ca.sin(t), 0.9 + 0.3 * t], 2)
    maps = {"own": None, "of errors": control.error_coordinates(lambda k, k_R: tool(k) - tool(k_R))}
    laws = {"particle": control.prototype_tracking(point, reference, approach="particle")}
    laws |= {name: control.prototype_tracking(point, reference, transport=x) for name, x in maps.items()}
    outputs = {"tool": tool}
    h = 1e-3
    for name, law in laws.items():
        r = pf.run(m, [0.6, 1.2], [0.3, -0.2], duration=0.5, step=h, control=law, outputs=outputs)
        q_R = np.stack([0.3 + 0.2 * np.sin(r.time.values), 0.9 + 0.3 * r.time.values])
        total = q_R.sum(axis=0)
        goal = np.stack([0.4 * np.cos(q_R[0]) + 0.3 * np.cos(total), 0.4 * np.sin(q_R[0]) + 0.3 * np.sin(total)], axis=1)
        e = r.tool.values - goal
        bend = (-e[4:] + 16 * e[3:-1] - 30 * e[2:-2] + 16 * e[1:-3] - e[:-4]) / (12 * h**2)
        rate = (-e[4:] + 8 * e[3:-1] - 8 * e[1:-3] + e[:-4]) / (12 * h)
        assert (np.abs(bend + 3 * rate + 4 * e[2:-2]).max() < 1e-7) == (name != "own"), name
        if name != "particle":
            assert np.abs(r.transport_error.values).max() < 1e-12, name
            assert r.prototype_power.values.max() < 1e-12


def test_a_transport_map_that_misses_its_condition_warns():
    """For a body in space, Q = 1 does not satisfy the condition."""
    random = np.random.default_rng(8)
    pairs = [control.pair("b", inertia=definite(random), damping=definite(random), stiffness=definite(random))]
    q, v = pf.random_configuration(FREE, random), random.normal(size=6)
    errors = {}
    for name, Q in {"one": lambda k, k_R: ca.SX.eye(6), "own": None}.items():
        with pytest.warns(pf.RunWarning, match="transport map does not satisfy") if Q else nullcontext():
            r = pf.run(FREE, q, v, duration=0.01, step=1e-3, control=control.prototype_tracking(pairs, MOVING, transport=Q))
        errors[name] = np.abs(r.transport_error.values).max()
    assert errors["own"] < 1e-10 < 0.1 < errors["one"]


# -- invalid references and parameters of a run -------------------------------------------------------------------


@pytest.mark.parametrize("approach", APPROACHES)
def test_quaternions_of_a_reference_may_have_any_length(approach):
    """Only a quaternion's direction is the attitude: at twice the length, or at a changing one, the reference is the same."""
    random = np.random.default_rng(8)
    pairs = [control.pair("b", inertia=definite(random), damping=definite(random), stiffness=definite(random))]
    q, v, runs = pf.random_configuration(FREE, random), random.normal(size=6), {}
    for name, length in {"one": lambda t: 1, "two": lambda t: 2, "any": lambda t: 1.5 + ca.sin(3 * t + 0.4)}.items():

        def longer(t, length=length):
            x = MOVING.at(t, ca.SX(0, 1)).value
            return ca.vertcat(x[:3], length(t) * x[3:])

        law = control.prototype_tracking(pairs, control.function_of_time(longer, 7), approach=approach)
        runs[name] = pf.run(FREE, q, v, duration=0.03, step=1e-2, every=1, control=law, backend="interpreter")
    for name in ("two", "any"):
        for what in ("q", "u", "prototype_power"):
            close(runs[name][what], runs["one"][what], 1e-10, f"{what}, {name}")


def test_a_quaternion_of_a_reference_that_is_no_attitude_is_refused():
    pairs = [control.pair("b", inertia=pm(1.0, moments=1.0))]
    with pytest.raises(pf.ModelError, match="reference of joint 'j': its quaternion is zero"):
        pf.run(FREE, duration=0.1, control=control.prototype_tracking(pairs, control.set_point([0] * 7)))
    with pytest.raises(pf.ModelError, match="reference of joint 'j': its quaternion is zero"):
        control.check_reference(FREE, control.set_point([0] * 7), 1.0)
    for size in (2.0, 1.0 + 3e-6):
        with pytest.raises(pf.ModelError, match=r"at t = 0 s .*by j.qx, .*keep the length 1, and the length of this one is"):
            control.check_reference(FREE, control.set_point([0, 0, 0, 0, 0, 0, size]), 1.0)

    def vanishing(t):
        s = ca.fmax(0.02 - t, 0)
        return [0, 0, 0, 0.6 * s, 0, 0, 0.8 * s]

    # A quaternion that vanishes on the way ends the run there.
    law = control.prototype_tracking(pairs, control.function_of_time(vanishing, 7))
    with pytest.warns(pf.RunWarning, match="the run stopped"):
        r = pf.run(FREE, duration=0.1, step=1e-2, control=law, backend="interpreter")
    assert float(r.stopped) <= 0.02


GIVEN = pf.Parameter("given", 1.0)


@pytest.mark.parametrize("what", ["inertia", "damping", "stiffness"])
def test_parameters_of_a_run_that_no_prototype_can_have_are_refused(what):
    m = PLANAR.with_(parameters=[GIVEN])
    parts = {"inertia": pm(1.0, moments=1.0)} | {what: GIVEN.symbol * np.eye(4)}
    law = control.prototype_tracking([control.pair("b", **parts)], REF)
    keep = {"duration": 0.02, "step": 1e-2, "backend": "interpreter"}
    for p, words in ((-3.0, r"parameters \(given = -3\): "), ([1.0, 2.0, -1e-3], r"parameters of run 2 \(given = -0.001\): ")):
        for x in (law, control.discrete(law, 0.01)):
            with pytest.raises(pf.ModelError, match=f"{words}the prototype's {what} is negative, -.*, along a motion of j"):
                pf.run(m, parameters={"given": p}, control=x, **keep)
    with pytest.raises(pf.ModelError, match=f"the prototype's {what} is negative"):
        run_adaptive(m, parameters={"given": -3.0}, control=law, times=[0, 0.01])
    assert (pf.run(m, parameters={"given": [1.0, 2.0]}, control=law, **keep).status == 0).all()


def test_the_energy_of_several_pairs_may_rise_with_twists():
    """An arm of two hinges follows a reference: under `body` the errors of two pairs are not a motion of the arm."""
    bodies = [pf.body(n, 1.0, com=(0.2, 0, 0), inertia=0.02) for n in "ab"]
    joints = [pf.joint("j", "revolute", "world", "a"), pf.joint("k", "revolute", "a", "b", placement=(0.4, 0, 0))]
    arm = pf.actuate_all(pf.mechanism("arm", bodies, joints, gravity=(0, 0, 0)))
    fast = control.function_of_time(lambda t: [3 * t, -4 * t], 2)
    still, rising, random = control.set_point([0.3, 0.5]), [], np.random.default_rng(0)
    for _ in range(6):
        pairs = [control.pair(n, inertia=definite(random), stiffness=definite(random), damping=0.1 * definite(random))
               for n in "ab"]  # fmt: skip
        q, v = random.normal(size=2), random.normal(size=2)
        for reference in (fast, still):
            law = control.prototype_tracking(pairs, reference, approach="body")
            r = pf.run(arm, q, v, duration=1e-2, step=1e-2, every=1, control=law, backend="interpreter")
            if reference is still:
                assert r.prototype_power.max() < 0
            else:
                rising.append(float(r.prototype_power.max()))
    assert max(rising) > 10
