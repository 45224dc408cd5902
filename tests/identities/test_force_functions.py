"""Forces as functions of the kinematics: their power, equivalent forces, reactions, and what they compile to."""

from __future__ import annotations

import pickle

import casadi as ca
import numpy as np
import pytest
from hypothesis import given, settings

import pfaffian as pf
from pfaffian import control
from pfaffian.terms import kinematics
from pfaffian.terms.equations_digest import digest
from pfaffian.terms.recursions import gravity_energy, momentum
from tests.identities.test_inertia import drawn_case, rate
from tests.oracles.test_formulations import affordable, well_posed
from tests.random_mechanisms import Case, loops, matrices, random_forces, random_tree, trees
from tests.tolerance import ALGEBRA, DERIVATIVE, POWER, close

X, Y = np.array([0.2, -0.1, 0.3]), np.array([-0.3, 0.2, 0.1])
LOAD = pf.Parameter("load", 1.3, "N")


def cubic(a: str, b: str):
    """A potential that grows with the fourth power of a distance, with a stiffness that depends on time."""
    return lambda k: (1 + 0.2 * ca.sin(k.t)) * ca.sumsqr(k.position(b, X) - k.position(a, Y)) ** 2 / 4


def thick(a: str, b: str):
    """A dissipation function that is no quadratic form: a term of third degree and one of second."""

    def R(k):
        w = k.twist(a, "LOCAL_WORLD_ALIGNED") - k.twist(b, "LOCAL_WORLD_ALIGNED")
        return ca.sumsqr(w[:3]) ** 1.5 / 3 + (1 + ca.sumsqr(k.position(a))) * ca.sumsqr(w[3:]) / 2

    return R


def swirl(k):
    """S v with a skew S: a gyroscopic force, which has no power."""
    n = k.mechanism.nv
    S = np.triu(np.arange(1, n * n + 1).reshape(n, n) % 7, 1)
    return ca.DM(S - S.T) @ k.v * LOAD


def gust(a: str):
    """A force and a moment that depend on configuration, velocity, time and a parameter."""

    def f(k):
        z = k.position(a)[2]
        return ca.vertcat(ca.sin(k.t) * k.velocity(a, X), LOAD * z, k.twist(a)[:2] ** 2)

    return f


def functions(m: pf.Mechanism) -> list:
    """One force of each kind between the first and the last body, or the world if there is only one body."""
    a = m.bodies[0].name
    b = m.bodies[-1].name if len(m.bodies) > 1 else "world"
    slow = next(j for j in m.joints if j.nv)
    return [
        pf.forces.potential("cubic", cubic(a, b)),
        pf.forces.dissipation("thick", thick(a, b)),
        pf.forces.generalised_force("swirl", swirl),
        pf.forces.generalised_force("slow", lambda k: -0.3 * k.joint_rate(slow.name), joint=slow.name),
        pf.wrench("gust", a, gust(a), point=X, axes="LOCAL", by=b),
    ]


def with_functions(m: pf.Mechanism) -> pf.Mechanism:
    return m.with_(forces=[*m.forces, *functions(m)], parameters=[LOAD])


def power_of_functions(T: pf.Terms) -> ca.SX:
    """Power of the forces in `functions`, by their definitions."""
    k, m = T.kinematics, T.mechanism
    _, thick_, swirl_, slow, w = m.forces[-5:]
    R = thick_.function(k)
    P = ca.dot(swirl_.function(k), k.v) - 0.3 * ca.sumsqr(k.joint_rate(slow.joint)) - ca.jtimes(R, T.v, T.v)
    G, W = k.pose(w.body), ca.SX(w.value(k))
    x = G.R @ w.point + G.p
    by = k.pose(w.by)
    slip = k.velocity(w.body, w.point) - k.velocity(w.by, by.R.T @ (x - by.p))
    turn = k.twist(w.body, "WORLD")[3:] - k.twist(w.by, "WORLD")[3:]
    P += ca.dot(G.R @ W[:3], slip) + ca.dot(G.R @ W[3:], turn)
    return P + ca.jacobian(m.forces[-5].function(k), T.t)  # power of the agent that changes the potential


def powers(formulation: str, m: pf.Mechanism) -> dict:
    made: dict = {}
    plain = m.with_(forces=m.forces[:-5])

    def motion(T):
        return made.setdefault("motion", pf.FORMULATIONS[formulation](T))

    def others(T):
        P = pf.Terms(plain, T.q, T.v, T.u, T.t)
        springs = P.V - gravity_energy(P.kinematics, m.gravity)  # stored energy, whose change is not lost
        return ca.dot(P.generalised_input + motion(T).reaction, T.v) + rate(P, springs)

    return {
        "energy": lambda T: rate(T, T.T, motion(T).v_dot) + rate(T, T.V),
        "power": power_of_functions,
        "others": others,
        "M": lambda T: T.M, "A": lambda T: T.A, "b": lambda T: T.b, "force": lambda T: T.force, "eta": lambda T: T.rows.eta,
        "phi": lambda T: T.rows.phi, "size": lambda T: T.row_size, "v_dot": lambda T: motion(T).v_dot,
    }  # fmt: skip


def balance(r: dict, v: np.ndarray, what: str) -> None:
    size = np.abs(v).sum() * (np.abs(r["M"]).max() * np.abs(r["v_dot"]).max() + np.abs(r["force"]).max())
    close(r["energy"], r["power"] + r["others"], POWER, what, 1 + size + np.abs(r["power"]).max())


@settings(max_examples=25)
@given(trees(most=4))
def test_power_of_a_tree(drawn):
    case = drawn_case(drawn)
    case = Case(with_functions(case.m), case.q, case.v, case.u, 0.7)
    balance(matrices(case, powers("articulated", case.m)), case.v, "dE/dt of a tree")


@settings(max_examples=8)
@given(loops(most=3))
def test_power_with_constraints(case):
    case = Case(with_functions(case.m), case.q, case.v, case.u, case.t)
    r = matrices(case, powers("gauss", case.m))
    well_posed(r)
    balance(r, case.v, "dE/dt with constraints")


def test_formulations_agree():
    random = np.random.default_rng(2)
    m = with_functions(random_forces(random, random_tree(random, ["revolute", "spherical", "prismatic"], [-1, 0, 1])))
    q, v, u = pf.random_configuration(m, random), random.normal(size=m.nv), random.normal(size=m.nu)
    names = [*affordable(m), "articulated"]
    r = matrices(Case(m, q, v, u, 0.4), {n: lambda T, n=n: pf.FORMULATIONS[n](T).v_dot for n in names})
    for n in names:
        close(r[n], r["gauss"], 1e-11, f"v_dot by {n}")
    free = pf.actuate_all(m.with_(forces=[f for f in m.forces if f.name != "hand"]))
    holding = pf.inverse_dynamics(free, q, v, np.zeros(m.nv), t=0.4).tau
    T = matrices(Case(free, q, v, np.zeros(free.nu), 0.4), {"x": lambda T: T.c - T.f})
    close(holding, T["x"].ravel(), 1e-12, "inputs that hold the machine still", np.abs(T["x"]).max())


# -- equivalent forces ------------------------------------------------------------------------------------------------

SPRING = {"stiffness": 7.0, "rest": 0.4, "damping": 0.6}


def stretched(k) -> ca.SX:
    return ca.norm_2(k.position("b3", Y) - k.position("b1", X))


def lengthens(k) -> ca.SX:
    line = k.position("b3", Y) - k.position("b1", X)
    return ca.dot(line, k.velocity("b3", Y) - k.velocity("b1", X)) / ca.norm_2(line)


def pull(k) -> ca.SX:
    line = k.position("b1", X) - k.position("b3", Y)
    f = SPRING["stiffness"] * (stretched(k) - SPRING["rest"]) + SPRING["damping"] * lengthens(k)
    return ca.vertcat(f * line / ca.norm_2(line), 0, 0, 0)


def twins() -> dict[str, list]:
    """One spring-damper between b1 and b3, described in several ways."""
    return {
        "built in": [pf.spring("s", "b1", "b3", point_a=X, point_b=Y, **SPRING)],
        "potential and dissipation": [
            pf.forces.potential("V", lambda k: SPRING["stiffness"] * (stretched(k) - SPRING["rest"]) ** 2 / 2),
            pf.forces.dissipation("R", lambda k: SPRING["damping"] * lengthens(k) ** 2 / 2),
        ],
        "wrench by the other body": [pf.wrench("w", "b3", pull, point=Y, by="b1")],
        "two wrenches": [pf.wrench("w", "b3", pull, point=Y), pf.wrench("x", "b1", lambda k: -pull(k), point=X)],
        "wrench along the body's axes": [
            pf.wrench(
                "w", "b3", lambda k: ca.vertcat(k.rotation("b3").T @ pull(k)[:3], 0, 0, 0), point=Y, axes="LOCAL", by="b1"
            )
        ],
    }


def chain(seed: int = 9) -> Case:
    random = np.random.default_rng(seed)
    m = random_tree(random, ["free", "spherical", "revolute", "planar"], [-1, 0, 1, 2])
    m = m.with_(forces=[pf.wrench("hand", "b2", point=X)])
    return Case(m, pf.random_configuration(m, random), random.normal(size=m.nv), random.normal(size=m.nu), 0.0)


@pytest.mark.parametrize("way", list(twins())[1:])
def test_a_spring_described_by_functions(way):
    case, parts = chain(), {"f": lambda T: T.f, "V": lambda T: T.V}
    ours, theirs = (case.m.with_(forces=[*case.m.forces, *twins()[n]]) for n in (way, "built in"))
    one, two = (matrices(Case(m, case.q, case.v, case.u, 0.0), parts) for m in (ours, theirs))
    close(one["f"], two["f"], DERIVATIVE, f"force of a {way}", np.abs(two["f"]).max())
    if "potential" in way:
        close(one["V"], two["V"], DERIVATIVE, "energy")
        assert one["V"] != matrices(case, parts)["V"]
    names = [j.name for j in ours.joints]
    found, known = (pf.reaction_wrench(m, names, case.q, case.v, case.u) for m in (ours, theirs))
    scale = max(np.abs(x.wrench).max() for x in known.values())
    for n in names:
        close(found[n].wrench, known[n].wrench, 1e-10, f"wrench of joint {n} with a {way}", scale)


def test_forces_within_joints_equal_those_of_the_joint():
    """A damper, a spring and a torque at one hinge, by the joint itself, by functions of joint coordinates, and by an
    actuator."""
    random = np.random.default_rng(3)
    m = random_tree(random, ["free", "revolute", "spherical"], [-1, 0, 1])
    without = ("damping", "armature", "stiffness")
    still = [type(j)(**vars(j) | {n: 0 * getattr(j, n) for n in without}) for j in m.joints]
    hinge = type(m.joints[1])(**vars(still[1]) | {"stiffness": ca.SX(3.0), "damping": ca.SX(0.4), "rest": ca.SX(0.2)})
    known = m.with_(joints=[still[0], hinge, still[2]], actuators=[pf.actuator("motor", "j1")])
    by_functions = m.with_(joints=still, forces=[
        pf.forces.potential("spring", lambda k: 1.5 * (k.joint("j1") - 0.2) ** 2),
        pf.forces.dissipation("damper", lambda k: 0.2 * k.joint_rate("j1") ** 2),
        pf.forces.generalised_force("torque", lambda k: 0.7, joint="j1"),
    ])  # fmt: skip
    q, v, names = pf.random_configuration(m, random), random.normal(size=m.nv), ["j0", "j1", "j2"]
    one, two = pf.reaction_wrench(by_functions, names, q, v), pf.reaction_wrench(known, names, q, v, {"motor": 0.7})
    for n in names:
        close(one[n].wrench, two[n].wrench, 1e-11, f"wrench of {n}", np.abs(two["j1"].wrench).max())


def test_forces_between_bodies_conserve_their_momentum():
    random = np.random.default_rng(6)
    m = random_tree(random, ["free", "free", "revolute"], [-1, -1, 1]).with_(gravity=(0, 0, 0))
    within = [pf.forces.potential("V", cubic("b0", "b2")), pf.wrench("w", "b2", gust("b2"), point=X, by="b0", axes="LOCAL"),
              pf.wrench("push", "b1", range(6), by="b0")]  # fmt: skip
    still = [
        type(j)(**vars(j) | {"damping": 0 * j.damping, "armature": 0 * j.armature, "stiffness": 0 * j.stiffness})
        for j in m.joints
    ]
    m = m.with_(joints=still, parameters=[LOAD])
    q, v = pf.random_configuration(m, random), random.normal(size=m.nv)

    def momentum_rate(forces):
        return matrices(Case(m.with_(forces=forces), q, v, np.zeros(0), 0.3), {
            "p": lambda T: rate(T, momentum(T.kinematics), pf.FORMULATIONS["articulated"](T).v_dot), "f": lambda T: T.f
        })  # fmt: skip

    for force in within:
        r = momentum_rate([force])
        scale = np.abs(r["f"]).max()
        assert scale > 0.01
        close(r["p"].ravel(), np.zeros(6), ALGEBRA, f"momentum under {force.name}", 1 + scale)
    assert np.abs(momentum_rate([pf.wrench("w", "b2", range(6))])["p"]).max() > 1


def test_an_input_wrench_between_two_bodies():
    case = chain()
    values = np.arange(1.0, 7.0)
    fixed = case.m.with_(forces=[pf.wrench("w", "b3", values, point=Y, axes="LOCAL", by="b0")])
    given_ = case.m.with_(forces=[pf.wrench("w", "b3", point=Y, axes="LOCAL", by="b0")])
    one = matrices(Case(fixed, case.q, case.v, np.zeros(0), 0.0), {"x": lambda T: T.generalised_input})
    two = matrices(Case(given_, case.q, case.v, values, 0.0), {"x": lambda T: T.generalised_input})
    close(one["x"], two["x"], ALGEBRA, "a wrench as numbers and as inputs", np.abs(one["x"]).max())
    a, b = pf.reaction_wrench(fixed, "j1", case.q, case.v), pf.reaction_wrench(given_, "j1", case.q, case.v, values)
    close(a.wrench, b.wrench, 1e-12, "what a joint carries of it")


# -- kernels, files and runs ------------------------------------------------------------------------------------------


def pendulum(*forces) -> pf.Mechanism:
    rod = pf.body("rod", 1.0, com=(0.5, 0, 0), inertia=0.1)
    hinge = pf.joint("hinge", "revolute", "world", "rod", axis=(0, 1, 0))
    return pf.mechanism("pendulum", [rod], [hinge], forces=forces, actuators=[pf.actuator("motor", "hinge", limits=(-1, 1))])


def test_each_function_has_its_kernel():
    def made(power, f=pf.forces.potential, **more):
        return digest(pendulum(f("F", lambda k: k.joint("hinge") ** power, **more)))

    assert made(2) == made(2), "equal functions have one digest"
    w = [pf.wrench("w", "rod", lambda k: ca.vertcat(k.t, 0, 0, 0, 0, 0), by=by, axes=axes)
         for by in (None, "world") for axes in ("WORLD", "LOCAL")]  # fmt: skip
    other = [made(2), made(3), made(2, pf.forces.dissipation), made(2, pf.forces.generalised_force),
             made(2, pf.forces.generalised_force, joint="hinge"), *[digest(pendulum(x)) for x in w],
             digest(pendulum(pf.wrench("w", "rod", [1, 0, 0, 0, 0, 0]))), digest(pendulum(pf.wrench("w", "rod")))]  # fmt: skip
    assert len(set(other)) == len(other)
    a, b = (pendulum(pf.forces.potential("F", lambda k, s=s: s * ca.cos(k.joint("hinge")))) for s in (1.0, 2.0))
    runs = [pf.run(m, {"hinge": 0.3}, duration=0.1, every=100) for m in (a, b, a)]
    ends = [float(r["q"].values[-1, 0]) for r in runs]
    assert ends[0] == ends[2] != ends[1]


def level(k):
    return 2.0 * ca.cos(k.joint("hinge"))


def test_a_mechanism_with_functions_can_be_pickled():
    m = pendulum(pf.forces.potential("level", level), pf.wrench("w", "rod", still), pf.forces.dissipation("R", level))
    read = pickle.loads(pickle.dumps(m))
    assert read == m and hash(read) == hash(m) and digest(read) == digest(m)
    with pytest.raises(pf.ModelError, match="potential 'V': its function function cannot be pickled"):
        pickle.dumps(pendulum(pf.forces.potential("V", lambda k: k.t)))


def still(k):
    return [0, 0, 0, 0, 0, 0]


def test_a_run_conserves_the_energy_of_a_potential():
    """A rod whose weight is a potential instead of gravity, compared with the rod under gravity."""
    weight = pf.forces.potential("weight", lambda k: 9.81 * k.position("rod", (0.5, 0, 0))[2])
    plain, by_potential = pendulum(), pendulum(weight).with_(gravity=(0, 0, 0))
    a, b = (pf.run(m, {"hinge": 0.3}, duration=0.5, every=50, record=["q", "energy"]) for m in (plain, by_potential))
    np.testing.assert_allclose(a["q"], b["q"], atol=1e-12)
    np.testing.assert_allclose(a["energy"], b["energy"], atol=1e-9)
    assert np.ptp(b["energy"].values) < 1e-9
    q = {"hinge": 0.4}
    np.testing.assert_allclose(pf.energy(by_potential, q).potential, pf.energy(plain, q).potential, rtol=1e-12)


def test_a_limited_law_compensates_them():
    """A computed torque includes every force of the mechanism, so the error dynamics stay linear."""
    m = pendulum(pf.forces.generalised_force("drag", lambda k: -0.05 * k.joint_rate("hinge") ** 3, joint="hinge"),
                 pf.wrench("wind", "rod", lambda k: ca.vertcat(0.1 * ca.sin(k.t), 0, 0, 0, 0, 0), point=(1, 0, 0)),
                 pf.forces.potential("V", lambda k: 0.05 * ca.cos(2 * k.joint("hinge")))).with_(gravity=(0, 0, 0))  # fmt: skip
    law = control.computed_torque(control.joints("hinge"), control.set_point([0.5]), stiffness=16.0, damping=8.0)
    r = pf.run(m, {"hinge": 0.4}, duration=0.5, every=100, control=law, scheme=pf.Scheme(saturate=True))
    t = r["time"].values
    np.testing.assert_allclose(r["q"].values[:, 0], 0.5 - 0.1 * (1 + 4 * t) * np.exp(-4 * t), atol=1e-9)
    assert np.abs(r["u"]).max() > 0.2
    far = pf.run(m, {"hinge": -0.4}, duration=0.1, every=100, control=law, scheme=pf.Scheme(saturate=True))
    assert float(far["u"].max()) == 1.0 and "u_cut" in far


def test_linearised():
    """A hinge with inertia J under forces f(q, v) given by functions."""
    m = pendulum(
        pf.forces.potential("V", lambda k: k.joint("hinge") ** 4),
        pf.forces.dissipation("R", lambda k: k.joint_rate("hinge") ** 2),
        pf.forces.generalised_force("g", lambda k: ca.sin(k.joint("hinge")), joint="hinge"),
    ).with_(gravity=(0, 0, 0))
    L = pf.linearise(m, {"hinge": 0.3})
    J = 0.1 + 0.25
    np.testing.assert_allclose(
        np.sort(np.linalg.eigvals(L.A)), np.sort(np.roots([J, 2.0, 12 * 0.09 - np.cos(0.3)])), rtol=1e-10
    )
    q, h = 0.3, 1e-6
    at = lambda q: pf.forward_dynamics(m, {"hinge": q}).v_dot[0]  # noqa: E731
    assert np.prod(np.linalg.eigvals(L.A)) == pytest.approx(-(at(q + h) - at(q - h)) / (2 * h), rel=1e-7)


def test_functions_at_expressions_instead_of_symbols():
    """Terms at expressions, not symbols: the functions are still differentiated."""
    m = with_functions(random_tree(np.random.default_rng(1), ["revolute", "spherical"], [-1, 0]))
    q, v = pf.random_configuration(m, np.random.default_rng(1)), np.arange(m.nv) + 1.0
    x = ca.SX.sym("x")
    T = pf.Terms(m, ca.SX(q) * x, ca.SX(v) * x**2, ca.SX(0, 1), x - 1)
    f = ca.Function("f", [x, m.p_symbols], [T.f, T.V])
    there = matrices(Case(m, q, v, np.zeros(0), 0.0), {"f": lambda T: T.f, "V": lambda T: T.V})
    close(np.array(f(1.0, m.p_defaults)[0]), there["f"], ALGEBRA, "forces", np.abs(there["f"]).max())
    close(np.array(f(1.0, m.p_defaults)[1]), there["V"], ALGEBRA, "energy")


def test_many_potentials_share_the_poses_of_a_chain(monkeypatch):
    """The motions of a chain's joints are written once for all its potentials and dissipations, not once for each."""
    links = [f"l{i}" for i in range(12)]
    joints = [pf.joint(f"j{i}", "revolute", "world" if not i else links[i - 1], b, axis=(0, 1, 0)) for i, b in enumerate(links)]
    made, write = [], kinematics.motion

    def counted(link, q):
        made.append(link)
        return write(link, q)

    def counts(n):
        forces = [pf.forces.potential(f"V{i}", lambda k: k.position("l11", (1, 0, 0))[2]) for i in range(n)]
        forces += [pf.forces.dissipation(f"R{i}", lambda k: k.velocity("l11")[0] ** 2) for i in range(n)]
        m = pf.mechanism("chain", [pf.body(b, mass=1.0, com=(0.5, 0, 0)) for b in links], joints, forces=forces)
        made.clear()
        assert pf.symbols(m).f.numel() == len(links)
        return len(made)

    monkeypatch.setattr(kinematics, "motion", counted)
    assert counts(1) == counts(9) > 0
