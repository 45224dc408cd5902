"""Matching of prototypes with fewer inputs than motions: conditions about a set point, and along a reference."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest
from scipy.linalg import null_space

import pfaffian as pf
from pfaffian import control
from pfaffian.control.prototype import APPROACHES, prototype_terms, reference_motion
from tests.control.test_placement import POLES, quadcopter
from tests.control.test_prototype import LEAN, PLANAR, G, definite, hovering, pvtol, random_pairs
from tests.random_mechanisms import random_body, random_pose
from tests.refused import refusals
from tests.tolerance import close

pm = pf.forces.pseudo_matrix
UPRIGHT = [0, 0, 0, 0, 0, 0, 1.0]
SPRING, MASSES = 5.0, (1.5, 0.8)


def two_masses() -> pf.Mechanism:
    joints = [pf.joint(n, "prismatic", "world", n, axis=(1, 0, 0)) for n in ("a", "b")]
    spring = pf.forces.potential("spring", lambda s: SPRING / 2 * (s.q[0] - s.q[1]) ** 2)
    bodies = [pf.body(n, mass) for n, mass in zip("ab", MASSES, strict=True)]
    return pf.mechanism("two", bodies, joints, gravity=(0, 0, 0), actuators=[pf.actuator("F", "a")], forces=[spring])


def two_mass_pairs(**changes) -> list[control.Pair]:
    x = control.two_mass_placement([-2.0, -1.0, -1 + 1j, -1 - 1j], ratio=SPRING / MASSES[1])._replace(**changes)
    weight = lambda value: np.diag([0.0, 0, 0, value])  # noqa: E731
    mdk = {n: tuple(map(weight, (getattr(x, f"m{n}"), getattr(x, f"d{n}"), getattr(x, f"k{n}")))) for n in ("01", "12", "02")}
    ends = {"01": ("a", "world"), "12": ("b", "a"), "02": ("b", "world")}
    return [
        control.pair(b, seen_from=a, inertia=mdk[n][0], damping=mdk[n][1], stiffness=mdk[n][2]) for n, (b, a) in ends.items()
    ]


def cart(constrained: bool) -> pf.Mechanism:
    """A driven cart with a pendulum b and a pendulum c that follows it, by a constraint row or by a mimic joint."""
    masses, centres = {"cart": 2.0, "b": 1.0, "c": 0.7}, {"cart": (0, 0, 0), "b": (0, -0.3, 0), "c": (0, -0.4, 0)}
    bodies = [pf.body(n, mass, com=centres[n], inertia=0.1) for n, mass in masses.items()]
    joints = [
        pf.joint("x", "prismatic", "world", "cart", axis=(1, 0, 0)),
        pf.joint("b", "revolute", "cart", "b"),
        pf.joint(
            "c", "revolute", "cart", "c", placement=(0.5, 0, 0), **({} if constrained else {"mimic": pf.mimic({"b": -1.4})})
        ),
    ]
    rows = [pf.holonomic("follow", lambda k: k.q[2] + 1.4 * k.q[1])] if constrained else []
    return pf.mechanism("cart", bodies, joints, constraints=rows, gravity=(0, -G, 0), actuators=[pf.actuator("F", "x")])


def forces(m: pf.Mechanism, law: control.Control, q, v) -> np.ndarray:
    """Matching forces (runs, nv) that runs record at their start."""
    how = {"duration": 1e-9, "step": 1e-9, "record": ["matching_force"], "backend": "interpreter", "correct_start": False}
    return pf.run(m, q, v, control=law, **how)["matching_force"].values.reshape(len(q), -1, m.nv)[:, 0]


MATCHED = {
    "two masses": lambda: (two_masses(), two_mass_pairs(), None),
    "PVTOL": lambda: (pvtol(), hovering(), None),
    "quadcopter": lambda: (quadcopter(), [control.quadcopter_pair("b", POLES, heading=(3.0, 0.8))], UPRIGHT),
}


@pytest.mark.parametrize("name", MATCHED)
def test_placed_prototypes_match(name):
    m, pairs, q = MATCHED[name]()
    x = pf.analysis.matching(m, pairs, q)
    scale = np.abs(x.idle).max() * 100
    close(x.stiffness, np.zeros_like(x.stiffness), 1e-12, "Lambda_K", scale)
    close(x.damping, np.zeros_like(x.damping), 1e-12, "Lambda_D", scale)
    assert x.idle.shape == (m.nv, m.nv - len(m.actuators))


def test_conditions_are_those_of_the_thesis():
    """(4.135) for a PVTOL and (4.118) for two masses, with parameters that do not satisfy them; u holds the weight."""
    m, eps = pvtol(), LEAN
    k, d, h, s, Th, Pi, l, Ups = 1.8, 2.4, 1.1, 0.3, 0.25, 9.0, 0.9, 0.7
    pair = control.pair("b", inertia=pm(1, (0, s, 0), Th), damping=pm(d, (0, l, 0), Ups), stiffness=pm(k, (0, h, 0), Pi))
    found = pf.analysis.matching(m, [pair])
    close(found.u, np.full(2, G / 2 / np.cos(0.2)), 1e-12, "thrust at rest")
    # Bp = [1, 0, -eps m / Theta_z] up to a factor.
    scale = found.idle[0, 0]
    close(found.idle[:, 0], scale * np.array([1, 0, -eps / 0.02]), 1e-12, "Bp")
    # The two conditions of (4.135) are combinations of the entries for x and for the turn.
    left = Th - (h - s) * (s - eps)
    on_x, on_turn = k * left / Th, (Pi * (s - eps) - k * h * left) / Th - G
    close(found.stiffness[0], scale * np.array([on_x, 0, on_turn]), 1e-12, "Lambda_K")
    damped = Th - (l - s) * (s - eps)
    close(found.damping[0], scale * np.array([d * damped, 0, Ups * (s - eps) - d * l * damped]) / Th, 1e-12, "Lambda_D")
    off = pf.analysis.matching(two_masses(), two_mass_pairs(m12=1.3, d12=2.0))
    p = control.two_mass_placement([-2.0, -1.0, -1 + 1j, -1 - 1j], ratio=SPRING / MASSES[1])._replace(m12=1.3, d12=2.0)
    D, varpi = p.m01 * p.m02 + 1.3 * p.m01 + 1.3 * p.m02, SPRING / MASSES[1]
    row = off.idle[1, 0] * MASSES[1] / D
    K = [1.3 * p.k01 - p.m01 * p.k12 + D * varpi, p.m01 * p.k12 + (p.m01 + 1.3) * p.k02 - D * varpi]
    close(off.stiffness[0], row * np.array(K), 1e-12, "Lambda_K of two masses")
    damped = [1.3 * p.d01 - p.m01 * 2.0, p.m01 * 2.0 + (p.m01 + 1.3) * p.d02]
    close(off.damping[0], row * np.array(damped), 1e-12, "Lambda_D of two masses")


def random_machine(seed: int) -> pf.Mechanism:
    """Three joints with springs and dampers, at rest at q = 0, and two motors."""
    random = np.random.default_rng(seed)
    K, D = definite(random)[:3, :3], definite(random)[:3, :3]
    rest = [
        pf.forces.potential("springs", lambda k: ca.dot(k.q, ca.DM(K) @ k.q) / 2 + ca.sin(k.q[0]) * k.q[1] ** 2),
        pf.forces.dissipation("dampers", lambda k: ca.dot(k.v, ca.DM(D) @ k.v) / 2),
    ]
    kinds, names = ("revolute", "prismatic", "revolute"), ("b0", "b1", "b2")
    joints = [
        pf.joint(f"j{i}", kind, above, names[i], axis=random.normal(size=3), placement=random_pose(random))
        for i, (kind, above) in enumerate(zip(kinds, ("world", *names), strict=False))
    ]
    motors = [pf.actuator(n, n) for n in ("j0", "j2")]
    bodies = [random_body(random, n) for n in names]
    return pf.mechanism("random", bodies, joints, gravity=(0, 0, 0), forces=rest, actuators=motors)


@pytest.mark.parametrize("name", ["random", "turned PVTOL", "PVTOL along other velocities"])
@pytest.mark.parametrize("approach", APPROACHES)
def test_the_matching_force_of_small_errors(name, approach):
    """The recorded force is that of lambda = Lambda_K e + Lambda_D e_dot up to terms of second order, for every approach."""
    random = np.random.default_rng(8)
    m, q = {
        "random": lambda: (random_machine(3), np.zeros(3)),
        "turned PVTOL": lambda: (pvtol(), np.array([0.4, -0.2, 0.0])),
        "PVTOL along other velocities": lambda: (
            pvtol().with_(velocities=pf.velocities(lambda k: _turned(k.q[2]), ["x", "y", "w"])), np.zeros(3)),
    }[name]()  # fmt: skip
    if name == "random":
        pairs = random_pairs(m, 4)
    else:
        pairs = [control.pair("b", inertia=definite(random), damping=definite(random), stiffness=definite(random))]
    x = pf.analysis.matching(m, pairs, q)
    law = control.prototype_tracking(pairs, control.set_point(q), approach=approach)
    e, e_dot = random.normal(size=3), random.normal(size=3)
    K = pf.compile_terms(m, {"K": lambda T: T.kinematics.kinematic_matrix}, backend="numpy", lanes=1)(q)["K"]
    steps = np.array([1e-3, -1e-3, 5e-4, -5e-4])
    found = forces(m, law, q + np.outer(steps, K @ e), np.outer(steps, e_dot))
    apart = [(found[i] - found[i + 1]) / (2 * steps[i]) - x.force(e, e_dot) for i in (0, 2)]
    scale = np.abs(x.force(e, e_dot)).max()
    assert scale > 0.1
    close((4 * apart[1] - apart[0]) / 3, np.zeros(3), 1e-8, approach, scale)


def _turned(a: ca.SX) -> ca.SX:
    """Velocities of a planar body along world axes, with another unit of turning."""
    c, s = ca.cos(a), ca.sin(a)
    return ca.vertcat(ca.horzcat(c, s, 0.3), ca.horzcat(-s, c, 0), ca.horzcat(0, 0, 2.0))


def test_matching_concerns_the_motions_that_constraints_leave_free():
    """The cart with a constraint row, against the one whose pendulum follows by its joint."""
    weights = {"inertia": pm(1.0, (0.1, 0.2, 0), 0.3), "damping": pm(2.0, moments=1.0), "stiffness": pm(3.0, (0, 1, 0), 2.0)}
    pairs = [control.pair(b, seen_from=a, **weights) for b, a in (("cart", "world"), ("b", "cart"), ("c", "world"))]
    row, joint = (pf.analysis.matching(cart(x), pairs) for x in (True, False))
    back = np.array([[1, 0], [0, 1], [0, -1.4]])
    sign = np.sign(row.idle[1, 0] / joint.idle[1, 0])
    close(row.idle, sign * back @ joint.idle, 1e-12, "Bp")
    close(row.stiffness @ back, sign * joint.stiffness, 1e-12, "Lambda_K")
    close(row.damping @ back, sign * joint.damping, 1e-12, "Lambda_D")
    close(back.T @ row.carry, sign * joint.carry, 1e-12, "M Bp S")
    assert np.abs(joint.stiffness).max() > 0.1


# -- along a reference ----------------------------------------------------------------------------------------------------


def test_lambda_without_error_is_the_model_along_the_reference():
    """Two masses: no input gives -(m2 z2'' + k (z2 - z1)); W only decides how it is distributed. [konz25 (4.60), (4.123)]"""
    m, pairs = two_masses(), two_mass_pairs()
    reference = control.function_of_time(lambda t: [0.3 * ca.sin(t), ca.cos(2 * t)], 2)
    t = np.linspace(0, 3, 7)
    found = pf.analysis.feasibility(m, reference, t)
    missing = MASSES[1] * -4 * np.cos(2 * t) + SPRING * (np.cos(2 * t) - 0.3 * np.sin(t))
    close(found.force, np.stack([0 * t, -missing], axis=1), 1e-12, "-(M v_R_dot + b)")
    close(found.lacking[:, 1], missing / MASSES[1], 1e-12, "lacking")
    assert not found.feasible
    x = pf.analysis.matching(m, pairs)
    weighed = pf.analysis.feasibility(m, reference, t, pairs=pairs).force
    lam = -missing * x.idle[1, 0]
    close(weighed, np.outer(lam, x.carry[:, 0]), 1e-12, "btilde = M Bp S lambda")
    q, v = np.stack([0.3 * np.sin(t), np.cos(2 * t)], axis=1), np.stack([0.3 * np.cos(t), -2 * np.sin(2 * t)], axis=1)
    for i in (0, 3):
        later = control.function_of_time(lambda s, i=i: [0.3 * ca.sin(s + t[i]), ca.cos(2 * (s + t[i]))], 2)
        recorded = forces(m, control.prototype_tracking(pairs, later), q[i : i + 1], v[i : i + 1])
        close(weighed[i], recorded[0], 1e-11, "recorded by a run on the reference", 1.0)


def test_flat_references_are_feasible_and_others_name_where_not():
    m, t = pvtol(), np.linspace(0, 4, 41)
    y = control.rest_to_rest([0, 0], [1.0, 0.5], 3.0, begin=0.5)
    found = pf.analysis.feasibility(m, control.pvtol_reference(y, coupling_length=LEAN), t)
    assert found.feasible and str(found).startswith("feasible")
    found.check()
    close(found.u[0], np.full(2, G / 2 / np.cos(0.2)), 1e-9, "thrust at rest")
    upright = control.function_of_time(lambda s: ca.vertcat(y(s), 0), 3)
    found = pf.analysis.feasibility(m, upright, t)
    assert not found.feasible
    bend = np.abs(found.lacking[:, 0])
    assert found.worst == int(np.argmax(np.abs(found.force).max(axis=1))) and bend.max() > 0.1
    with pytest.raises(
        pf.ModelError, match=rf"at t = {t[found.worst]:.6g} s no input produces the acceleration of .*j\..*flat output"
    ):
        found.check()
    ball = control.function_of_time(lambda s: ca.vertcat(0, 0, 5 - 0.5 * s, 0, 0, 0, 1), 7)
    assert pf.analysis.feasibility(quadcopter(), ball, t).feasible


@pytest.mark.parametrize("length", [1e-3, 1.0, 1e3])
def test_the_motion_without_inertia_has_the_same_names_in_any_unit_of_length(length):
    """A prototype of the bob alone has no inertia where cart and pole leave the bob at rest."""
    bodies = [pf.body("cart", 1.0), pf.body("pole", 0.5, com=(0, 0, -length))]
    joints = [pf.joint("rail", "prismatic", "world", "cart", axis=(1, 0, 0)),
              pf.joint("hinge", "revolute", "cart", "pole", axis=(0, 1, 0))]  # fmt: skip
    motor = pf.actuator("motor", "rail")
    m = pf.mechanism("cart and pole", bodies, joints, actuators=[motor], gravity=(0, 0, -9.81 * length))
    bob = np.array([0, 0, -length, 1.0])
    with pytest.raises(pf.ModelError, match="no inertia against rail, hinge;"):
        pf.analysis.matching(m, [control.pair("pole", inertia=np.outer(bob, bob))])


UNHELD = control.set_point([0, 0, 0.3])
WRONG = {
    "no pairs": (lambda: pf.analysis.matching(PLANAR, []), "a list of pair"),
    "no equilibrium": (
        lambda: pf.analysis.matching(pvtol(), hovering(), [0, 0, 0.4]),
        r"hold this set point, it accelerates along j\.wz, j\.vx",
    ),
    "no inertia": (
        lambda: pf.analysis.matching(PLANAR, [control.pair("b", inertia=pm(0, moments=1.0))]),
        r"no inertia against j\.v[xy]",
    ),
    "a Parameter from elsewhere": (
        lambda: pf.analysis.matching(PLANAR, [control.pair("b", inertia=pm(pf.Parameter("m", 1.0, "kg")))]),
        "pair 'b' seen from 'world': inertia uses symbols that do not belong to the mechanism",
    ),
    "sampled": (lambda: pf.analysis.feasibility(pvtol(), control.sampled(["x", "y", "a"]), [0.0]), "known only during a run"),
    "no actuators": (lambda: pf.analysis.feasibility(PLANAR.with_(actuators=()), UNHELD, [0.0]), "has no actuators"),
    "times": (lambda: pf.analysis.feasibility(pvtol(), UNHELD, [[0.0]]), "times must be"),
    "undefined": (
        lambda: pf.analysis.feasibility(pvtol(), control.function_of_time(lambda t: [ca.sqrt(t), 0, 0], 3), [1.0, 0.0]),
        "at t = 0 s the reference is undefined",
    ),
}  # fmt: skip


test_wrong_arguments_are_named = refusals(WRONG)


# -- the law itself, at random states ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("approach", APPROACHES)
@pytest.mark.parametrize("motors", [("j0", "j1", "j2"), ("j0", "j2"), ("j1",)])
def test_inputs_are_those_of_the_formulas(motors, approach):
    """(4.51) with as many inputs as motions; (4.53) with fewer, and the matching force (4.54), (4.58) in each of its forms.

    Bp is multiplied by a random matrix: the matching force does not depend on the choice.
    """
    m = random_machine(6)
    m = m.with_(actuators=[pf.actuator(n, n) for n in motors])
    random, pairs = np.random.default_rng(23), random_pairs(m, 4)
    reference = control.function_of_time(lambda t: [ca.sin(t), 0.3 * t, ca.cos(2 * t)], 3)
    law = control.prototype_tracking(pairs, reference, approach=approach)

    def bars(T):
        P = prototype_terms(T.kinematics, reference_motion(T, reference, ca.SX(0, 1)), pairs, approach, None)
        return ca.horzcat(P.M, P.b)

    parts = {"model": lambda T: ca.horzcat(T.M, T.c - T.f), "B": lambda T: T.B, "bars": bars}
    at = pf.compile_terms(m, parts, backend="numpy", lanes=1)
    states = random.normal(size=(2, 3, 3))
    r = pf.run(m, *states, duration=1e-9, step=1e-9, control=law, record=["u", "matching_force"], backend="interpreter")
    for q, v, u, left in zip(*states, r["u"].values[:, 0], r["matching_force"].values[:, 0], strict=True):
        x = at.matrices(q, v)
        (M, b), (Mbar, bbar), B = np.split(x["model"], [3], axis=1), np.split(x["bars"], [3], axis=1), x["B"]
        b, bbar, inverse = b.ravel(), bbar.ravel(), np.linalg.inv(M)
        H = B.T @ inverse @ Mbar @ inverse @ B
        u0 = np.linalg.solve(H, B.T @ inverse @ (Mbar @ inverse @ b - bbar))
        close(u, u0, 1e-11, "u of (4.53)")
        if len(motors) == 3:
            close(u, np.linalg.solve(B, b - M @ np.linalg.solve(Mbar, bbar)), 1e-11, "u of (4.51)")
            close(left, np.zeros(3), 1e-10, "no matching force", scale=np.abs(bbar).max())
            continue
        P = np.eye(3) - inverse @ B @ np.linalg.solve(H, B.T @ inverse @ Mbar)
        close(left, Mbar @ P @ (np.linalg.solve(Mbar, bbar) - inverse @ b), 1e-11, "btilde of (4.54)")
        idle = null_space(B.T)
        for Bp in (idle, idle @ random.normal(size=(idle.shape[1],) * 2)):
            lam = Bp.T @ (M @ np.linalg.solve(Mbar, bbar) - b)
            S = np.linalg.inv((M @ Bp).T @ np.linalg.solve(Mbar, M @ Bp))
            close(left, M @ Bp @ S @ lam, 1e-11, "btilde of (4.58)")
            close(left @ np.linalg.solve(Mbar, left), lam @ S @ lam, 1e-11, "twice the minimum of (4.52)")
