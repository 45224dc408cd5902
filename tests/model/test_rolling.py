"""Contacts with a plane: rows compared with independent geometry, closed forms of simple motions, wrong arguments, YAML."""

import casadi as ca
import numpy as np
import pytest

import pfaffian as pf
from pfaffian.formats import parse_yaml
from pfaffian.model.constraint import Closure
from pfaffian.terms.equations_digest import digest
from tests.random_mechanisms import Case, matrices, random_tree
from tests.tolerance import ALGEBRA, DERIVATIVE, INTEGRATED, SATISFIED, close

G = 9.81


def ball(constraints, radius=0.3, joint="free", **changes):
    body = pf.body("ball", 2.0, (0, 0, 0), 0.4 * 2.0 * radius**2)
    return pf.mechanism("ball", [body], [pf.joint("j", joint, "world", "ball")], constraints=constraints, **changes)


def coin(constraints, radius=0.5, mass=1.0, **changes):
    """A homogeneous thin disk with its axis along z."""
    i = mass * radius**2 / 4
    body = pf.body("coin", mass, (0, 0, 0), (i, i, 2 * i))
    return pf.mechanism("coin", [body], [pf.joint("j", "free", "world", "coin")], constraints=constraints, **changes)


def upright(height, lean=0.0, heading=0.0):
    """q of a free coin that rolls along x with its axis along y, leaning by `lean` and turned by `heading` [rad]."""
    X = pf.pose((0, 0, height), rpy=(np.pi / 2 + lean, 0, 0))
    R = np.array(ca.DM(pf.pose(rpy=(0, 0, heading)).R)) @ np.array(ca.DM(X.R))
    w = np.sqrt(max(1 + np.trace(R), 0)) / 2
    return np.r_[0, 0, height, np.array([R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]]) / (4 * w), w]


CONTACTS = {
    "disk": lambda plane: pf.rolling.disk("c", "b1", 0.4, axis=(0.3, 0.5, 1.0), centre=(0.1, 0.2, -0.1), plane=plane),
    "wheel": lambda plane: pf.rolling.wheel("c", "b1", 0.4, axis=(0.3, 0.5, 1.0), plane=plane),
    "sphere": lambda plane: pf.rolling.sphere("c", "b1", 0.4, centre=(0.1, 0.2, -0.1), plane=plane),
    "edge": lambda plane: pf.rolling.knife_edge("c", "b1", (0.3, 0.5, 1.0), point=(0.2, 0.1, 0.4), plane=plane),
}


@pytest.mark.parametrize("what", CONTACTS)
def test_rows_on_a_moving_turntable(what):
    """The plane is on another body and its surface turns at a rate that depends on t. Slip is relative to this surface."""
    random = np.random.default_rng(3)
    m = random_tree(random, ["free", "free"], [-1, -1])
    plane = {"on": "b0", "through": (0.1, -0.2, 0.3), "normal": (0.2, -0.3, 1.0), "rate": lambda t: 2 * ca.sin(t)}
    m = m.with_(constraints=[CONTACTS[what](pf.rolling.plane(**plane))])
    q, v, t = pf.random_configuration(m, random), random.normal(size=12), 0.4
    eta = matrices(Case(m, q, v, np.zeros(0), t), {"eta": lambda T: T.rows.eta, "phi": lambda T: T.rows.phi,
        "R0": lambda T: T.kinematics.rotation("b0"), "R1": lambda T: T.kinematics.rotation("b1"),
        "p0": lambda T: T.kinematics.position("b0", plane["through"]), "o1": lambda T: T.kinematics.position("b1"),
        "c1": lambda T: T.kinematics.position("b1", (0.1, 0.2, -0.1)),
        "e1": lambda T: T.kinematics.position("b1", (0.2, 0.1, 0.4)),
        "o0": lambda T: T.kinematics.position("b0"),
        "V0": lambda T: T.kinematics.twist("b0", "LOCAL_WORLD_ALIGNED"),
        "V1": lambda T: T.kinematics.twist("b1", "LOCAL_WORLD_ALIGNED")})  # fmt: skip
    r = {name: x.ravel() if x.shape[1] == 1 else x for name, x in eta.items()}
    n = r["R0"] @ np.array(plane["normal"]) / np.linalg.norm(plane["normal"])
    a = r["R1"] @ np.array((0.3, 0.5, 1.0)) / np.linalg.norm((0.3, 0.5, 1.0))
    down = -(n - (n @ a) * a)
    down /= np.linalg.norm(down)
    x = {"disk": r["c1"] + 0.4 * down, "wheel": r["o1"] + 0.4 * down, "sphere": r["c1"] - 0.4 * n, "edge": r["e1"]}[what]

    def at(name, origin):
        return r[name][:3] + np.cross(r[name][3:], x - r[origin])

    s = at("V1", "o1") - at("V0", "o0") - 2 * np.sin(t) * np.cross(n, x - r["p0"])
    tangential = s - n * (n @ s)
    if what == "edge":
        close(r["eta"], [a @ np.cross(s, n)], 10 * ALGEBRA, "sideways", 5)
    else:
        slip = r["eta"][-2:]
        close(slip @ slip, tangential @ tangential, 10 * ALGEBRA, "slip", 20)
    if what in ("disk", "sphere"):
        close(r["phi"][0], n @ (x - r["p0"]), 10 * ALGEBRA, "height", 2)
    if what in ("disk", "wheel"):
        side = a - n * (n @ a)
        close(slip[1], s @ side / np.linalg.norm(side), 10 * ALGEBRA, "sideways", 5)


def test_a_ball_rolls_down_a_slope():
    """The acceleration is 5/7 g sin(slope), and the normal force is m g cos(slope)."""
    slope = 0.3
    normal = (np.sin(slope), 0, np.cos(slope))
    m = ball([pf.rolling.sphere("roll", "ball", 0.3, plane=pf.rolling.plane(normal=normal))])
    r = pf.run(m, 0.3 * np.r_[normal, 0, 0, 0, 1 / 0.3], duration=1.0, step=0.01, every=10, backend="interpreter")
    t, way = r["time"].values, np.array([np.cos(slope), 0, -np.sin(slope)])
    close(r["q"].values[:, :3] @ way, 5 / 14 * G * np.sin(slope) * t**2, INTEGRATED, "way down")
    close(r["multiplier"].values[:, 0], np.full(len(t), 2 * G * np.cos(slope)), SATISFIED, "normal force", G)
    close(r["energy"].values, np.full(len(t), r["energy"].values[0]), INTEGRATED, "energy")


def test_a_disk_rolls_straight_with_known_multipliers():
    """The disk is pulled at its centre with the force F, and the friction f follows from m a = F - f, I a / r = f r."""
    pull = pf.wrench("pull", "coin", value=(3.0, 0, 0, 0, 0, 0), axes="WORLD")
    m = coin([pf.rolling.disk("roll", "coin", 0.5)], forces=[pull])
    r = pf.run(m, upright(0.5), duration=0.5, step=0.01, every=10, backend="interpreter")
    a, t = 3.0 / 1.5, r["time"].values
    close(r["q"].values[:, 0], a * t**2 / 2, INTEGRATED, "x")
    close(r["q"].values[:, [1, 2]], np.tile([0, 0.5], (len(t), 1)), SATISFIED, "straight")
    one = r["multiplier"].values[0]
    close(one[0], G, SATISFIED, "normal force", G)
    close(np.hypot(one[1], one[2]), 3.0 - a, SATISFIED, "friction", G)
    close(one[2], 0.0, SATISFIED, "none sideways", G)


def test_a_wheel_carried_by_a_cart_adds_no_height():
    """A cart on rails with a wheel has one degree of freedom: (m + I / r^2) a = F."""
    bodies = [pf.body("cart", 4.0), pf.body("wheel", 1.0, (0, 0, 0), (0.1, 0.2, 0.1))]
    joints = [
        pf.joint("rail", "prismatic", "world", "cart", axis=(1, 0, 0), placement=(0, 0, 0.5)),
        pf.joint("axle", "revolute", "cart", "wheel", axis=(0, 1, 0)),
    ]
    roll = pf.rolling.wheel("tyre", "wheel", 0.5, axis=(0, 1, 0))
    m = pf.mechanism("cart", bodies, joints, constraints=[roll], forces=[pf.wrench("pull", "cart", value=(2.9, 0, 0, 0, 0, 0))])
    found = pf.forward_dynamics(m, [0.0, 0.0], [1.0, 2.0])
    close(found.v_dot.ravel(), np.array([1.0, 2.0]) * 2.9 / 5.8, ALGEBRA, "acceleration")
    assert float(np.asarray(found.rank).item()) == 1


def test_a_skate_on_a_turning_floor_is_carried_along():
    """The blade is radial, so its sideways speed must be that of the floor, rate times radius."""
    body = pf.body("skate", 1.0, (0, 0, 0), 0.1)
    rate = pf.Parameter("rate", 0.7, "rad/s")
    edge = pf.rolling.knife_edge("edge", "skate", (1, 0, 0), plane=pf.rolling.plane(rate=rate))
    m = pf.mechanism("skate", [body], [pf.joint("j", "planar", "world", "skate")], constraints=[edge], parameters=[rate])
    a = pf.assemble(m, [2.0, 0.0, 0.0], parameters={"rate": [0.7, -1.0]}, backend="numpy")
    close(a.v[:, 1], [1.4, -2.0], SATISFIED, "sideways speed")


def test_a_flat_disk_has_no_lowest_point():
    m = coin([pf.rolling.disk("roll", "coin", 0.5)])
    with pytest.raises(pf.RunError, match=r"'roll height'.*nan"):
        pf.run(m, [0, 0, 0, 0, 0, 0, 1], duration=0.01, backend="interpreter")


def test_a_falling_disk_stops_the_run_when_it_is_flat():
    """Released from rest while leaning, the disk falls flat, where the velocity of its contact point grows without bounds."""
    m = coin([pf.rolling.disk("roll", "coin", 0.5)])
    with pytest.warns(pf.RunWarning, match="run stopped"):
        r = pf.run(m, upright(0.5 * np.cos(1.0), 1.0), duration=3.0, step=2e-3, backend="interpreter")
    assert 0 < float(r["stopped"]) < 1.0 and float(r["status"]) != 0


def test_a_knife_edge_normal_to_the_plane_constrains_nothing():
    body = pf.body("skate", 1.0, (0, 0, 0), 0.1)
    m = pf.mechanism("skate", [body], [pf.joint("j", "planar", "world", "skate")],
                     constraints=[pf.rolling.knife_edge("edge", "skate", (0, 0, 1))])  # fmt: skip
    assert float(np.asarray(pf.forward_dynamics(m, [0, 0, 0], [0, 0, 0]).rank).item()) == 0


def test_reactions_of_contacts_act_on_bodies():
    """The socket that connects arm and ball transmits the force that accelerates the ball and its spin."""
    r = 0.3
    bodies = [pf.body("arm", 1.0, (0, 0, 0)), pf.body("ball", 2.0, (0, 0, 0), 0.4 * 2.0 * r**2)]
    joints = [pf.joint("slide", "planar", "world", "arm", placement=(0, 0, r)), pf.joint("socket", "spherical", "arm", "ball")]
    m = pf.mechanism("caster", bodies, joints, constraints=[pf.rolling.sphere("roll", "ball", r)])
    push = m.with_(forces=[pf.wrench("push", "arm", value=(1.9, 0, 0, 0, 0, 0), axes="WORLD")])
    a = pf.forward_dynamics(push, m.neutral(), np.zeros(6)).v_dot.ravel()[0]
    close(a, 1.9 / (1 + 2 * 1.4), ALGEBRA, "acceleration")
    wrench = pf.reaction_wrench(push, "socket", m.neutral(), np.zeros(6), frame="LOCAL_WORLD_ALIGNED").wrench
    close(wrench[0], 1.4 * 2 * a, SATISFIED, "the arm pushes the ball and its spin")


def test_numbers_and_functions_are_in_the_digest():
    def on_plane(**given):
        return pf.rolling.sphere("c", "ball", 0.3, plane=pf.rolling.plane(**given))

    made = [
        pf.rolling.sphere("c", "ball", 0.3), pf.rolling.sphere("c", "ball", 0.4), on_plane(rate=1.0),
        on_plane(rate=lambda t: t), on_plane(normal=(0, 1, 1)), on_plane(through=(0, 0, 1)),
        pf.rolling.sphere("c", "ball", 0.3, centre=(0, 0, 0.1)),
        pf.rolling.disk("c", "ball", 0.3), pf.rolling.disk("c", "ball", 0.3, axis=(0, 1, 0)),
    ]  # fmt: skip
    assert len({digest(ball([c])) for c in made}) == len(made)
    assert pf.rolling.disk("c", "ball", 0.3) == pf.rolling.disk("c", "ball", 0.3) != pf.rolling.disk("c", "ball", 0.4)


def test_derivatives_of_contacts():
    """A is the derivative of eta along v, and b is minus the derivative of eta along the motion at constant v."""
    m = coin([pf.rolling.disk("roll", "coin", 0.5, plane=pf.rolling.plane(rate=0.8))])
    a = pf.assemble(m, upright(0.48, 0.3), [0.4, 0.3, 0.1, 0.2, -0.4, 3.0], backend="numpy")
    parts = {"A": lambda T: T.A, "b": lambda T: T.b, "from eta": lambda T: ca.jacobian(T.rows.eta, T.v),
             "drift": lambda T: ca.jtimes(T.rows.eta, T.q, T.kinematics.q_dot)}  # fmt: skip
    r = matrices(Case(m, a.q, a.v, np.zeros(0), 0.0), parts)
    close(r["from eta"], r["A"], DERIVATIVE, "A", 1)
    close(r["drift"], -r["b"], DERIVATIVE, "b", 10)


YAML = """
name: toys
parameters: {r: 0.3, spin: 1.5}
bodies:
  ball: {mass: 1, inertia: 0.4*r^2}
  coin: {mass: 1, inertia: [0.25*r^2, 0.25*r^2, 0.5*r^2]}
joints:
  a: {kind: free, parent: world, child: ball}
  b: {kind: free, parent: world, child: coin}
constraints:
  table: {kind: rolling-sphere, body: ball, radius: r, plane: {rate: spin, through: [1, 0, 0]}}
  edge: {kind: rolling-disk, body: coin, radius: r, axis: [0, 0, 1], plane: {normal: [0, 1, 5]}}
  wheel: {kind: rolling-wheel, body: coin, radius: 2*r, plane: {on: ball}}
  blade: {kind: knife-edge, body: coin, along: [1, 0, 0]}
  pin: {kind: distance, body_a: ball, body_b: coin, length: 4*r}
"""


def test_yaml():
    m, _ = parse_yaml(YAML)
    assert [c.name for c in m.constraints] == ["table", "edge", "wheel", "blade", "pin"]
    assert [c.name for c in m.all_constraints[:4]] == ["table height", "table slip", "edge height", "edge slip"]
    p = {x.name: x for x in m.parameters}
    by_hand = [pf.rolling.sphere("table", "ball", p["r"], plane=pf.rolling.plane(rate=p["spin"], through=(1, 0, 0))),
               pf.rolling.disk("edge", "coin", p["r"], plane=pf.rolling.plane(normal=(0, 1, 5))),
               pf.rolling.wheel("wheel", "coin", 2 * p["r"], plane=pf.rolling.plane(on="ball")),
               pf.rolling.knife_edge("blade", "coin", (1, 0, 0))]  # fmt: skip
    assert list(m.constraints[:4]) == by_hand and isinstance(m.constraints[4], Closure)
    for old, new in (("radius: r, plane", "plane"), ("along: [1, 0, 0]", "point: [0, 0, 0]")):
        with pytest.raises(pf.ModelError, match="is missing"):
            parse_yaml(YAML.replace(old, new, 1))
    with pytest.raises(
        pf.ModelError, match=r"YAML line 11: constraints.table: constraint 'table height': there is no body 'bal'"
    ):
        parse_yaml(YAML.replace("body: ball, radius", "body: bal, radius"))
