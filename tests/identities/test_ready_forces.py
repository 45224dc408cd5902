"""Springs between poses, friction, drag and propellers: their formulas, their power, known motions."""

from __future__ import annotations

import pickle
from dataclasses import replace

import casadi as ca
import numpy as np
import pytest
from scipy.optimize import brentq

import pfaffian as pf
from pfaffian import forces
from pfaffian.maths import se3
from pfaffian.terms.equations_digest import digest
from pfaffian.terms.recursions import gravity_energy
from tests.graph_twin import graph_twin
from tests.identities.test_force_functions import LOAD, functions
from tests.identities.test_graphs import bare, chosen
from tests.identities.test_inertia import rate
from tests.matrices import number
from tests.random_mechanisms import Case, matrices, random_pose, random_tree
from tests.tolerance import ALGEBRA, DERIVATIVE, POWER, close

X = np.array([0.2, -0.1, 0.3])
WIND, LOW, NONE = pf.Parameter("wind", 1.5, "m/s"), pf.Parameter("low", -1.0), pf.Parameter("none", 0.0)


def random_pseudo(random: np.random.Generator) -> np.ndarray:
    """A random pseudo-matrix of five weights at points."""
    points = np.c_[random.normal(size=(5, 3)), np.ones(5)]
    return (random.uniform(1, 5, 5) * points.T) @ points


def chain(seed: int = 3) -> Case:
    random = np.random.default_rng(seed)
    m = random_tree(random, ["free", "revolute", "spherical", "prismatic"], [-1, 0, 1, 0])
    return Case(m, pf.random_configuration(m, random), random.normal(size=m.nv), np.zeros(0), 0.4)


def with_(case: Case, *forces) -> Case:
    m = case.m.with_(forces=forces, parameters=[WIND])
    return Case(m, case.q, case.v, np.zeros(m.nu), case.t)


# -- springs and dampers between poses --------------------------------------------------------------------------------


@pytest.mark.parametrize("ends", [("b3", "b2"), ("world", "b1"), ("b2", "world")])
def test_a_pose_spring_and_its_wrench(ends):
    """f^K = vee2((1 - G^-1 G_R) K') and f^D = Vee(D') xi along the relative motion. [konz25 (3.71) (3.92)]"""
    random, case, (a, b) = np.random.default_rng(1), chain(), ends
    K, D, rest = random_pseudo(random), random_pseudo(random), random_pose(random)
    parts = {"f": lambda T: T.f, "V": lambda T: T.V}
    plain, spring, damper = (
        matrices(with_(case, *f), parts)
        for f in ([], [forces.pose_spring("s", a, b, K, rest=rest)], [forces.pose_damper("d", a, b, D)])
    )
    J = {n: pf.jacobian(case.m, n, case.q) for n in (a, b)}
    poses = pf.forward_kinematics(case.m, case.q)
    g = {n: np.eye(4) for n in (a, b)}
    for n in set(ends) - {"world"}:
        g[n][:3, :3], g[n][:3, 3] = poses[n].rotation, poses[n].position
    G, G_R = np.linalg.solve(g[a], g[b]), number(se3.homogeneous(rest.R, rest.p))
    J_ab = J[b] - number(se3.Ad_inv(G[:3, :3], G[:3, 3])) @ J[a]
    wrench = number(se3.vee2((np.eye(4) - np.linalg.solve(G, G_R)) @ K))
    f = spring["f"] - plain["f"]
    close(f, -J_ab.T @ wrench, DERIVATIVE, "force of a pose spring", np.abs(f).max())
    close(spring["V"] - plain["V"], [[np.trace((G - G_R) @ K @ (G - G_R).T) / 2]], DERIVATIVE, "its energy", 10)
    f = damper["f"] - plain["f"]
    close(f, (-J_ab.T @ number(se3.Vee(D)) @ J_ab @ case.v)[:, None], DERIVATIVE, "force of a pose damper", np.abs(f).max())
    both = matrices(with_(case, forces.bushing("c", a, b, stiffness=K, damping=D, rest=rest)), parts)
    close(both["f"], spring["f"] + damper["f"] - plain["f"], DERIVATIVE, "a bushing is both", np.abs(both["f"]).max())


def test_springs_of_zero_length_equal_one_pose_spring():
    """Springs of zero length from points h of b3 to where these are on b2 at rest. [konz25 (3.61)-(3.72)]"""
    random, case = np.random.default_rng(2), chain()
    k, h, rest = random.uniform(1, 5, 4), random.normal(size=(4, 3)), random_pose(random)
    p = h @ number(rest.R).T + number(rest.p).T
    single = [pf.spring(f"s{i}", "b2", "b3", point_a=p[i], point_b=h[i], stiffness=k[i]) for i in range(4)]
    H = np.c_[h, np.ones(4)]
    one = forces.pose_spring("s", "b2", "b3", (k * H.T) @ H, rest=rest)
    r, s = (matrices(with_(case, *x), {"f": lambda T: T.f, "V": lambda T: T.V}) for x in (single, [one]))
    close(s["f"], r["f"], DERIVATIVE, "four springs as one", np.abs(r["f"]).max())
    close(s["V"], r["V"], DERIVATIVE, "their energy", 1 + np.abs(r["V"]).max())
    joints = ["j0", "j2", "j3"]
    a, b = (pf.reaction_wrench(with_(case, *x).m, joints, case.q, case.v) for x in (single, [one]))
    for n in joints:
        close(b[n].wrench, a[n].wrench, 1e-11, f"wrench of {n}", np.abs(a["j0"].wrench).max())


def test_pseudo_matrix():
    k, h, c = 3.0, np.array([0.1, -0.2, 0.3]), np.diag([1.0, 1.5, 2.0])
    K = number(forces.pseudo_matrix(k, h, c))
    H = np.array([[0, -h[2], h[1]], [h[2], 0, -h[0]], [-h[1], h[0], 0]])
    expected = np.block([[k * np.eye(3), k * H.T], [k * H, c - k * H @ H]])
    close(number(se3.Vee(K)), expected, ALGEBRA, "moments about the centre", 10)
    close(K, number(forces.pseudo_matrix(k, h, (1.0, 1.5, 2.0))), ALGEBRA, "principal moments")
    l = pf.Parameter("l", 2.0)
    assert forces.pose_spring("s", "world", "b", forces.pseudo_matrix(l, moments=l)) == forces.pose_spring(
        "s", "world", "b", forces.pseudo_matrix(l, moments=l)
    )


# -- power ------------------------------------------------------------------------------------------------------------


def slip(k: pf.Kinematics) -> ca.SX:
    """Velocity of the point X of b1 along the surface of b3 with normal y."""
    at = k.pose("b3")
    s = k.velocity("b1", X) - k.velocity("b3", at.R.T @ (k.position("b1", X) - at.p))
    return s - at.R[:, 1] * ca.dot(at.R[:, 1], s)


def stribeck(s2: ca.SX, C: float, S: float, d: float = 0.0) -> ca.SX:
    return (C + (S - C) * ca.exp(-s2 / 0.5**2)) / ca.sqrt(s2 + 0.1**2) + d


def push(k: pf.Kinematics, W: ca.SX, body: str, point=(0, 0, 0)) -> ca.SX:
    """Power of a wrench along the world's axes."""
    return ca.dot(W[:3], k.velocity(body, point)) + ca.dot(W[3:], k.twist(body, "WORLD")[3:])


def propelled(k: pf.Kinematics) -> ca.SX:
    w, R = k.joint_rate("j1"), k.rotation("b1")
    axis = R @ ca.DM([0.6, 0, 0.8])
    return ca.fabs(w) * w * push(k, ca.vertcat(-0.3 * axis, -0.1 * axis), "b1", X)


def gusty(k: pf.Kinematics) -> ca.SX:
    return ca.vertcat(0, WIND, 0.2 * k.t)


def dragged(k: pf.Kinematics) -> ca.SX:
    w = k.velocity("b1", X) - gusty(k)
    return -0.5 * 1.2 * 0.7 * 0.3 * ca.norm_2(w) * ca.dot(w, k.velocity("b1", X))


DRY = {"stribeck": 0.5, "smooth": 0.1}
POWERS = {
    "joint friction": (forces.joint_friction("f", "j1", 2.0, static=3.0, viscous=0.2, **DRY),
                       lambda k: -stribeck(k.joint_rate("j1") ** 2, 2.0, 3.0, 0.2) * k.joint_rate("j1") ** 2),
    "contact friction": (forces.contact_friction("f", "b1", "b3", normal=(0, 2, 0), load=5.0, coefficient=0.4, static=0.6,
                                                point=X, viscous=0.3, **DRY),
                         lambda k: -stribeck(ca.sumsqr(slip(k)), 2.0, 3.0, 0.3) * ca.sumsqr(slip(k))),
    "drag": (forces.drag("f", "b1", 0.3, coefficient=0.7, density=1.2, point=X, wind=gusty),
             dragged),
    "propeller": (forces.propeller("f", "b1", "j1", thrust=0.3, torque=0.1, handed="left", axis=(3, 0, 4), point=X), propelled),
    "pose damper": (forces.pose_damper("f", "b1", "b3", random_pseudo(np.random.default_rng(5))), None),
}  # fmt: skip


@pytest.mark.parametrize("name", POWERS)
def test_power(name):
    """dE/dt is the power of the force by its definition plus that of forces within the joints."""
    force, power = POWERS[name]
    plain = chain(11)
    case = with_(plain, force)

    def motion(T):
        return pf.FORMULATIONS["articulated"](T).v_dot

    def others(T):
        P = pf.Terms(case.m.with_(forces=()), T.q, T.v, T.u, T.t)
        return ca.dot(P.f, T.v) + rate(P, P.V - gravity_energy(P.kinematics, P.mechanism.gravity))

    r = matrices(case, {
        "energy": lambda T: rate(T, T.T + T.V, motion(T)),
        "power": lambda T: power(T.kinematics) if power else -2 * force.function(T.kinematics),
        "others": others,
        "v_dot": motion,
    })  # fmt: skip
    size = 1 + np.abs(r["v_dot"]).max() ** 2 + np.abs(case.v).max()
    assert np.abs(r["power"]).max() > 1e-3
    close(r["energy"], r["power"] + r["others"], POWER, f"power of {name}", size)
    if name not in ("propeller", "drag"):
        assert r["power"] < 0, "it dissipates energy"
    read = pickle.loads(pickle.dumps(case.m))
    assert read == case.m and digest(read) == digest(case.m) != digest(plain.m)


def every_force(m: pf.Mechanism) -> list:
    """The forces of POWERS, and functions of every kind, under different names."""
    named = [replace(force, name=name) for name, (force, _) in POWERS.items()]
    return [*named, *[f for f in functions(m) if f.name != "swirl"]]  # swirl is along v, whichever v is chosen


@pytest.mark.parametrize("backwards", [False, True])
def test_on_graphs_and_along_other_velocities(backwards):
    """On a graph the forces are the same; along chosen velocities v0 = T v they are T^T f."""
    case = chain(11)
    thrusters = [forces.thruster("t", "b2", axis=(1, 2, 3), torque=0.2), pf.actuator("a", "j1")]
    m = bare(case.m).with_(actuators=thrusters)
    parts = {"f": lambda T: T.f, "V": lambda T: T.V, "B": lambda T: T.B}
    twin, (new, T_of) = graph_twin(m, backwards=backwards), chosen(m, 2)
    dampers = twin.m.forces
    every, given_ = every_force(m), {"parameters": [WIND, LOAD]}
    here = matrices(Case(m.with_(forces=every, **given_), case.q, case.v, np.zeros(2), 0.4), parts)
    graph = twin.m.with_(forces=[*dampers, *every], **given_)
    there = matrices(Case(graph, twin.q(case.q), case.v, np.zeros(2), 0.4), parts)
    T = T_of(case.q)
    y = np.linalg.solve(T, case.v)
    other = matrices(Case(new.with_(forces=every, **given_), case.q, y, np.zeros(2), 0.4), parts)
    for what, x in here.items():
        size = 1 + np.abs(x).max()
        close(there[what], x, 1e-11, f"{what} of a graph", size)
        close(other[what], x if what == "V" else T.T @ x, 1e-11, f"{what} along chosen velocities", size)


# -- known motions ----------------------------------------------------------------------------------------------------


def block(*forces, gravity=(0, 0, 0), parameters=()) -> pf.Mechanism:
    slide = pf.joint("x", "prismatic", "world", "block", axis=(1, 0, 0))
    return pf.mechanism("block", [pf.body("block", 2.0)], [slide], forces=forces, gravity=gravity, parameters=parameters)


def test_fall_against_drag():
    """v = v_t tanh(g t / v_t), z = -v_t^2 / g log cosh(g t / v_t); sideways log(1 + c v t) / c under drag alone."""
    c, g = 0.5 * 1.225 * 0.8 * 0.5 / 2.0, 9.81
    ball = pf.mechanism("ball", [pf.body("ball", 2.0, inertia=0.1)], [pf.joint("b", "free", "world", "ball")],
                        forces=[forces.drag("air", "ball", 0.5, coefficient=0.8)], gravity=(0, 0, -g))  # fmt: skip
    r = pf.run(ball, duration=4.0, every=1000)
    t, v_t = r["time"].values, np.sqrt(g / c)
    z = r["q"].values[:, 2]
    np.testing.assert_allclose(z, -(v_t**2) / g * np.log(np.cosh(g * t / v_t)), atol=1e-9)
    np.testing.assert_allclose(r["v"].values[:, 2], -v_t * np.tanh(g * t / v_t), atol=1e-9)
    shot = pf.run(ball.with_(gravity=(0, 0, 0)), v={"b.vx": 20.0}, duration=2.0, every=1000)
    t = shot["time"].values
    np.testing.assert_allclose(shot["q"].values[:, 0], np.log(1 + c * 20 * t) / c, atol=1e-8)
    carried = ball.with_(forces=[forces.drag("air", "ball", 0.5, coefficient=0.8, wind=(3.0, 0, 0))], gravity=(0, 0, 0))
    assert not pf.forward_dynamics(carried, carried.neutral(), {"b.vx": 3.0}).v_dot.any()
    at_rest = pf.linearise(ball.with_(gravity=(0, 0, 0)))
    assert np.isfinite(at_rest.A).all()


def test_sliding_to_rest():
    """Under Coulomb friction C v / sqrt(v^2 + s^2) alone, w - s artanh(s / w) falls by C / m each second, with w = sqrt(v^2
    + s^2)."""
    C, s, m, v0 = 3.0, 0.05, 2.0, 1.0
    r = pf.run(block(forces.joint_friction("f", "x", C, smooth=s)), v={"x": v0}, duration=0.6, every=100)

    def left(v):
        w = np.sqrt(v * v + s * s)
        return w - s * np.arctanh(s / w)

    np.testing.assert_allclose(left(r["v"].values[:, 0]), left(v0) - C / m * r["time"].values, atol=1e-9)
    stopped = pf.run(block(forces.joint_friction("f", "x", C, smooth=s)), v={"x": v0}, duration=2.0, every=2000)
    assert abs(float(stopped["v"][-1, 0])) < 1e-9


def test_steady_sliding_with_stribeck():
    """A force of 2.5 N pulls. Friction falls from 3 N to 2 N and rises by 0.8 v, so the stable speed lies beyond the drop."""
    law = {"static": 3.0, "stribeck": 0.2, "viscous": 0.8, "smooth": 0.01}
    pull = pf.wrench("pull", "block", (2.5, 0, 0, 0, 0, 0))
    r = pf.run(block(forces.joint_friction("f", "x", 2.0, **law), pull), v={"x": 1.0}, duration=80.0, every=80000)

    def excess(v):
        return (2 + np.exp(-((v / 0.2) ** 2))) * v / np.sqrt(v * v + 1e-4) + 0.8 * v - 2.5

    steady = brentq(excess, 0.3, 2.0, xtol=1e-14)
    assert float(r["v"][-1, 0]) == pytest.approx(steady, abs=1e-9)
    contact = forces.contact_friction("f", "block", "world", normal=(0, 0, 1), load=10.0, coefficient=0.2,
                                  **law | {"static": 0.3})  # fmt: skip
    a, b = (
        pf.forward_dynamics(block(f, pull), {"x": 0.0}, {"x": 0.3}).v_dot
        for f in (forces.joint_friction("f", "x", 2.0, **law), contact)
    )
    np.testing.assert_allclose(a, b, rtol=1e-13)


def test_hover():
    """Four propellers, two of each handedness, carry the weight without a moment; a single one turns its frame the other
    way."""
    w = pf.Parameter("w", 400.0, "rad/s")
    k_T, arms, hands = 1.2 * 9.81 / 4 / 400**2, [(1, 0), (0, 1), (-1, 0), (0, -1)], ("right", "left") * 2
    frame = pf.body("frame", 1.2, inertia=(0.01, 0.01, 0.02))
    speeds = (w, -w, w, -w)
    props = [forces.propeller(f"p{i}", "frame", w, thrust=k_T, torque=k_T / 60, handed=hand, point=(0.2 * x, 0.2 * y, 0))
             for i, (w, hand, (x, y)) in enumerate(zip(speeds, hands, arms, strict=True))]  # fmt: skip
    quad = pf.mechanism("quad", [frame], [pf.joint("f", "free", "world", "frame")], forces=props, parameters=[w])
    still = quad.neutral(), np.zeros(6)
    np.testing.assert_allclose(pf.forward_dynamics(quad, *still).v_dot, np.zeros(6), atol=1e-13)
    up = pf.forward_dynamics(quad, *still, parameters={"w": 800.0}).v_dot
    np.testing.assert_allclose(up, [0, 0, 3 * 9.81, 0, 0, 0], atol=1e-12)
    alone = pf.forward_dynamics(quad.with_(forces=props[:1]), *still).v_dot
    np.testing.assert_allclose(alone[3:], [0, -0.2 * k_T * 400**2 / 0.01, -k_T / 60 * 400**2 / 0.02], rtol=1e-12, atol=1e-12)


def test_a_rotor_on_its_motor():
    """At a steady speed the motor gives k_M w^2, whose reaction turns the frame; the rotor carries the thrust."""
    bodies = [pf.body("frame", 1.0, inertia=0.01), pf.body("rotor", 0.1, inertia=(1e-4, 1e-4, 2e-4))]
    joints = [pf.joint("f", "free", "world", "frame"), pf.joint("r", "revolute", "frame", "rotor")]
    k_T, k_M, w = 1e-5, 2e-7, 500.0
    m = pf.mechanism("rotor", bodies, joints, actuators=[pf.actuator("motor", "r")],
                     forces=[forces.propeller("p", "rotor", "r", thrust=k_T, torque=k_M)])  # fmt: skip
    found = pf.forward_dynamics(m, m.neutral(), {"r": w}, u={"motor": k_M * w**2})
    turn = -k_M * w**2 / 0.01  # acceleration of the frame
    np.testing.assert_allclose(found.v_dot, [0, 0, k_T * w**2 / 1.1 - 9.81, 0, 0, turn, -turn], rtol=1e-12, atol=1e-12)


def test_thrusters_equal_wrenches():
    """Thrusters act as a wrench with a single input each, along the velocities and in each joint."""
    case = chain(7)
    one = [forces.thruster("x", "b1", axis=(2, 0, 0), point=X, torque=0.3), forces.thruster("y", "b2", axis=(0, 3, -4))]
    m = case.m.with_(actuators=[pf.actuator("motor", "j3"), *one])
    u = np.array([0.4, 1.5, -2.0])
    known = [pf.wrench("x", "b1", (1.5, 0, 0, 0.45, 0, 0), point=X, axes="LOCAL"),
             pf.wrench("y", "b2", (0, -1.2, 1.6, 0, 0, 0), axes="LOCAL")]  # fmt: skip
    with_wrenches = case.m.with_(actuators=[pf.actuator("motor", "j3")], forces=known)
    assert m.u_names == ("motor", "x", "y") and m.u_units[1:] == ("N", "N") and m.motor_names == m.u_names
    parts = {"x": lambda T: T.generalised_input}
    a, b = (matrices(Case(x, case.q, case.v, w, 0.0), parts)["x"] for x, w in ((m, u), (with_wrenches, u[:1])))
    close(a, b, ALGEBRA, "generalised force of thrusters", np.abs(b).max())
    names = [j.name for j in m.joints]
    found, expected = (pf.reaction_wrench(x, names, case.q, case.v, w) for x, w in ((m, u), (with_wrenches, u[:1])))
    for n in names:
        close(found[n].wrench, expected[n].wrench, 1e-11, f"wrench of {n}", np.abs(expected["j0"].wrench).max())
    ways = [{}, {"torque": 1}, {"axis": (1, 0, 0)}, {"point": (1, 0, 0)}]
    digests = {digest(case.m.with_(actuators=[forces.thruster("x", b, **x)])) for b in ("b1", "b2") for x in ways}
    assert len(digests) == 8
    assert pickle.loads(pickle.dumps(m)) == m


def test_thrusters_carry_a_hull():
    """A servo constraint and a law hold a planar vehicle by two thrusters, which carry half the weight each; limits cut
    them."""
    hull = pf.body("hull", 2.0, inertia=0.3)
    ride = pf.joint("p", "planar", "world", "hull", placement=pf.pose(rpy=(np.pi / 2, 0, 0)))
    motors = [
        forces.thruster(n, "hull", axis=(0, 1, 0), point=(x, 0, 0), limits=(0, 12)) for n, x in (("left", -1), ("right", 1))
    ]
    m = pf.mechanism("hull", [hull], [ride], actuators=motors, gravity=(0, 0, -10.0))
    assert m.u_limits.tolist() == [[0, 12], [0, 12]]
    hold = pf.servo(pf.holonomic("hold", lambda k: k.joint("p")[1:]), ["left", "right"])
    r = pf.run(m.with_(constraints=[hold]), v={"p.vx": 0.5}, duration=0.2, every=200, record=["q", "servo_force"])
    np.testing.assert_allclose(r["q"].values[-1], [0.1, 0, 0], atol=1e-9)
    np.testing.assert_allclose(r["servo_force"].values, 10.0, atol=1e-9)
    m = m.with_(actuators=[*motors, forces.thruster("side", "hull", axis=(1, 0, 0), point=(0, 0.2, 0))])
    law = pf.control.computed_torque(pf.control.joints("p"), pf.control.set_point([0.0, 0.0, 0.3]), stiffness=16, damping=8)
    r = pf.run(m, duration=1.0, every=100, control=law)
    t = r["time"].values
    np.testing.assert_allclose(r["q"].values[:, 2], 0.3 * (1 - (1 + 4 * t) * np.exp(-4 * t)), atol=1e-9)
    near = pf.run(m, duration=0.05, every=10, control=law, scheme=pf.Scheme(saturate=True))
    assert float(near["u"].max()) <= 12.0


K, BAD = np.eye(4), np.diag([1.0, 1, 1, -0.5])
REFUSED = [
    (lambda: forces.pose_spring("s", "a", "b", BAD), r"force 's': stiffness: .*positive semidefinite.*-0.5"),
    (lambda: forces.pose_damper("s", "a", "b", BAD), r"force 's': damping: .*eigenvalue is -0.5"),
    (lambda: forces.pose_spring("s", "a", "b", np.triu(np.ones((4, 4)))), "stiffness: the matrix is not symmetric"),
    (lambda: forces.pose_inertia("s", "a", "b", np.diag([1, 1, 1, 1, 1, -2])), "inertia: the matrix must .* eigenvalue is -2"),
    (lambda: forces.pose_spring("s", "a", "b", ca.diag(ca.vertcat(NONE.symbol, 1, 1, 1, 1, 1))), "resist every translation"),
    (lambda: forces.pose_spring("s", "a", "b", 3.0), r"stiffness: a \(4, 4\) or \(6, 6\) matrix is needed.*pseudo_matrix"),
    (lambda: forces.pose_spring("s", "a", "b", forces.pseudo_matrix(1, moments=(1, 0, -0.1))), "eigenvalue is -0.1"),
    (lambda: forces.pose_spring("s", "a", "b", K, rest=np.eye(4)), "force 's': rest"),
    (lambda: forces.pose_spring("s", "a", "b", LOW * ca.SX.eye(4)), "eigenvalue is -2"),
    (lambda: forces.pseudo_matrix(-1), "weight -1 is below zero"),
    (lambda: block(forces.pose_spring("s", "world", "blok", K)), "force 's': there is no body 'blok'"),
    (lambda: block(forces.pose_damper("s", "block", "block", K)), "force 's': both ends are on 'block'"),
    (lambda: block((forces.pose_spring("s", "world", "block", K),)), r"join the lists, forces=\[..., \*more\]"),
    (lambda: forces.joint_friction("f", "x", -1), "force 'f': sliding friction -1 is below zero"),
    (lambda: forces.joint_friction("f", "x", pf.Parameter("C", -2.0)), "sliding friction -2 is below zero"),
    (lambda: forces.joint_friction("f", "x", 2, static=1), "static friction is less than sliding friction by 1"),
    (lambda: forces.joint_friction("f", "x", 2, smooth=0), "smooth 0 must be above zero"),
    (lambda: forces.joint_friction("f", "x", 2, stribeck=-1), "stribeck -1 must be above zero"),
    (lambda: block(forces.joint_friction("f", "y", 2)), "force 'f': there is no joint 'y'"),
    (lambda: forces.contact_friction("f", "b", "world", normal=(0, 0, 0), load=1, coefficient=1), "normal: three numbers"),
    (lambda: forces.contact_friction("f", "b", "world", normal=(0, 0, 1), load=-1, coefficient=1), "load -1 is below zero"),
    (lambda: forces.drag("d", "b", -1), "force 'd': area -1 is below zero"),
    (lambda: forces.drag("d", "b", 1, wind=2), "force 'd': wind: a sequence of 3"),
    (lambda: pf.run(block(forces.drag("d", "block", 1, wind=lambda k: k.t)), duration=0.01, backend="numpy"),
     "force 'd': wind: its function must return 3 numbers, got 1"),
    (lambda: forces.propeller("p", "b", 1.0, thrust=1, axis=(0, 0, 0)), "force 'p': axis: three numbers"),
    (lambda: forces.propeller("p", "b", 1.0, thrust=-1), "force 'p': thrust -1 is below zero"),
    (lambda: forces.propeller("p", "b", 1.0, thrust=1, handed="up"), "handed 'up' must be right or left"),
    (lambda: forces.thruster("t", "b", axis=(0, 0, 0)), "actuator 't': axis: three numbers, not all zero"),
    (lambda: forces.thruster("t", pf.body("b")), "actuator 't': body must be the name of a body"),
    (lambda: block().with_(actuators=[forces.thruster("t", "blok")]), "actuator 't': there is no body 'blok'"),
    (lambda: block(forces.thruster("t", "block")), r"forces: .* belongs in actuators=\[...\]"),
    (lambda: forces.propeller("p", "b", None, thrust=1), "force 'p': speed: None is not a number"),
    (lambda: pf.run(block(forces.propeller("p", "block", "y", thrust=1)), duration=0.01, backend="numpy"), "force 'p'.*'y'"),
]  # fmt: skip


@pytest.mark.parametrize("case", range(len(REFUSED)))
def test_wrong_arguments_are_refused(case):
    ask, message = REFUSED[case]
    with pytest.raises(pf.ModelError, match=message):
        ask()
