"""How objects are shown at a prompt, in errors and in notebooks: briefly, in words, and safely."""

from html.parser import HTMLParser

import casadi as ca
import numpy as np
import pytest

import pfaffian as pf
from pfaffian import control, forces
from pfaffian.states.system import as_system

LONGEST = 200
L = pf.Parameter("coupler", 2.0, "m")


def four_bar(**changes):
    rods, hinge = {"crank": 1.0, "coupler": L, "rocker": 2.0}, {"kind": "revolute", "axis": (0, -1, 0)}
    joints = [
        pf.joint("A", parent="world", child="crank", **hinge),
        pf.joint("B", parent="crank", child="coupler", placement=(1, 0, 0), **hinge),
        pf.joint("D", parent="world", child="rocker", placement=(2.5, 0, 0), **hinge),
    ]
    given = {
        "name": "four-bar",
        "bodies": [pf.body(name, mass=1.0, com=(x / 2, 0, 0), inertia=0.1) for name, x in rods.items()],
        "joints": joints,
        "constraints": [
            pf.closure("C", body_a="coupler", body_b="rocker", placement_a=(L, 0, 0), placement_b=(2, 0, 0), **hinge)
        ],
        "actuators": [pf.actuator("motor", "A", gear=2, limits=(-3, 3))],
        "parameters": [L],
    }
    return pf.mechanism(**given | changes)


def still(k):
    return k.q[0]


def early(k):
    return k.t < 1


M = four_bar()
FLOATING = pf.mechanism("floating", [pf.body("b", 1.0, inertia=0.1), pf.body("c", 1.0, inertia=0.1)],
                        [pf.joint("flight", "free", "world", "b"), pf.joint("hinge", "revolute", "b", "c")])  # fmt: skip
T = pf.symbols(M)
HOLD = pf.holonomic("h", still)
AIM = {"stiffness": 1, "damping": 1}
HEADING = control.output("A", "attitude", np.eye(3), **AIM)
CLOSED = pf.assemble(M, {"A": 0.5}, guess={"B": -0.2, "D": 1.0}, backend="numpy")
SPRUNG = {"axis": (0, 0, 1), "stiffness": 10.0, "rest": 0.2}
ROD = pf.mechanism("rod", [pf.body("rod", 1.0, inertia=0.1)], [pf.joint("hinge", "revolute", "world", "rod", **SPRUNG)])
GRASP = pf.impact(M, CLOSED.q, {"A": 1.0}, backend="numpy")
COMPILED = pf.compile_terms(M, {"M": lambda T: T.M, "angle": lambda T: T.q[0]}, backend="numpy", lanes=1)

REPRS = {
    "<Mechanism 'four-bar': 3 bodies, 3 joints (nq 3, nv 3), 1 constraint, inputs motor, parameters coupler>": M,
    "<Body 'crank': mass 1 kg, com (0.5, 0, 0) m, inertia (0.1, 0.1, 0.1) kg m^2>": M.body("crank"),
    "<Body 'coupler': mass 1 kg, com (f(coupler), 0, 0) m, inertia (0.1, 0.1, 0.1) kg m^2>": M.body("coupler"),
    "<Body 'b': mass coupler kg, com (0, 0, 0) m, inertia (1, 2, 3, 0.1, 0, 0) kg m^2>": pf.body(
        "b", L, inertia=(1, 2, 3, 0.1, 0, 0)
    ),
    "<Joint 'B': revolute, 'crank' to 'coupler'>": M.joint("B"),
    "<Closure 'C': revolute, 'coupler' to 'rocker', 5 rows>": M.constraints[0],
    "<Closure 't': helical of pitch 0.1, 'crank' to 'rod', 5 rows>": pf.closure("t", "helical", "crank", "rod", pitch=0.1),
    "<Holonomic 'h': phi(q, t) = 0 by still>": HOLD,
    "<Holonomic 'h': phi(q, t) = 0 by still, while early>": pf.constraints.active_while(HOLD, early),
    "<Nonholonomic 'n': eta(q, v, t) = 0 by a lambda>": pf.nonholonomic("n", lambda k: k.v[0]),
    "<AccelerationConstraint 'a': Z v_dot = z by a lambda>": pf.constraints.acceleration_constraint("a", lambda k: ([[1]], 0)),
    "<Servo 'h': holds <Holonomic 'h': phi(q, t) = 0 by still> by forces along motor>": pf.servo(HOLD, ["motor"]),
    "<Spring 's': 'world' to 'crank', stiffness f(coupler) N/m, rest 0.5 m, damping 0 N s/m>": pf.spring(
        "s", "world", "crank", stiffness=2 * L, rest=0.5
    ),
    "<Wrench 'p': on 'crank' at (0, 0, 0) m, six inputs, WORLD>": pf.wrench("p", "crank"),
    "<Wrench 'p': on 'crank' at (0, 0, 0) m, (1, 2, 3, 0, 0, 0) N, N m, LOCAL>": pf.wrench(
        "p", "crank", value=(1, 2, 3, 0, 0, 0), axes="LOCAL"
    ),
    "<Wrench 'p': on 'crank' at (0, 0, 0) m, early, WORLD, by 'rocker'>": pf.wrench("p", "crank", early, by="rocker"),
    "<Potential 'V': early>": pf.forces.potential("V", early),
    "<Potential 's': PoseSpring: 'world' to 'crank'>": forces.pose_spring("s", "world", "crank", np.eye(4)),
    "<KineticEnergy 'i': PoseInertia: 'world' to 'crank'>": forces.pose_inertia("i", "world", "crank", np.eye(6)),
    "<Dissipation 'd': PoseDamper: 'world' to 'crank'>": forces.pose_damper("d", "world", "crank", np.eye(4)),
    "<GeneralisedForce 'f': JointFriction: sliding 1, static f(coupler), viscous 0, on 'A'>": forces.joint_friction(
        "f", "A", 1.0, static=2 * L
    ),
    "<Wrench 'c': on 'crank' at (0, 0, 0) m, ContactFriction: normal (0, 0, 1), sliding 2, static 2, viscous 0, WORLD, "
    "by 'world'>": forces.contact_friction("c", "crank", "world", normal=(0, 0, 3), load=10, coefficient=0.2),
    "<Wrench 'd': on 'crank' at (0, 0, 0) m, Drag: 2 kg/m, wind early, WORLD>": forces.drag(
        "d", "crank", 4, density=1, wind=early
    ),
    "<Wrench 'p': on 'crank' at (0, 0, 0) m, Propeller: speed rate of 'A', along (0, 0, 1), thrust 0.1, LOCAL>": forces.propeller(  # noqa: E501
        "p", "crank", "A", thrust=0.1
    ),
    "<Dissipation 'R': a lambda>": pf.forces.dissipation("R", lambda k: k.t),
    "<KineticEnergy 'T': early>": pf.forces.kinetic_energy("T", early),
    "<GeneralisedForce 'f': early, on 'A'>": pf.forces.generalised_force("f", early, joint="A"),
    "<GeneralisedForce 'f': early, on v>": pf.forces.generalised_force("f", early),
    "<Transmission 't': 2 on 'hinge', velocity 0, from -inf to inf>": forces.transmission("t", {"hinge": 2.0}),
    "<Thruster 't': on 'crank' at (1, 0, 0) m, along (0, 0, 1), torque 0.02 m, from 0 to inf>": forces.thruster(
        "t", "crank", point=(1, 0, 0), torque=0.02, limits=(0, np.inf)
    ),
    "<Actuator 'motor': on 'A', velocity 0, gear 2, from -3 to 3>": M.actuators[0],
    "<Pose: at (1, 0, 0) m, turned by (0, 0, 1.5708) rad>": pf.pose((1, 0, 0), rpy=(0, 0, np.pi / 2)),
    "<Pose: at (coupler, 0, 0) m>": pf.pose((L, 0, 0)),
    "<Pose: at (0, 0, 0) m, turned by parameters>": pf.pose(rpy=(L, 0, 0)),
    "<System: of 'four-bar', state '[q; v]': q (3), v (3)>": as_system(M),
    "<System: of 'four-bar', state '[q; p]': q (3), momentum (3)>": pf.reduction.hamiltonian(M),
    "<Constellation: weight 2 N/m, energy 0 J, other poses too at rest, <Pose: at (0, 0, 1) m>>": forces.spring_constellation(
        [2.0], [[0, 0, 1]], [[0, 0, 0]]
    ),
    "<CriticalRotations: minimum, a circle, value -2, eigenvalues (0, 1, 3)>": pf.rotations.critical_rotations(
        np.diag([2, 1, -1])
    )[0],
    "Parameter(name='coupler', default=2.0, unit='m')": L,
    "<GraphMatrices: joints A, B, D, extremities coupler, rocker>": pf.calculus.graph_matrices(four_bar(constraints=[])),
    "<SymbolicKinematics: of 'four-bar', s (3, 1), 1 parameter>": pf.screws.symbolic_kinematics(four_bar(constraints=[])),
    "<Exponentials: of 'four-bar', s (3, 1), 3 factors>": pf.screws.exponentials(four_bar(constraints=[])),
    "<FloatingBase: of 'floating', joint 'flight', s (1, 1)>": pf.reduction.floating_base(pf.symbols(FLOATING)),
    "<Terms: of 'four-bar', q (3, 1), v (3, 1), u (1, 1), t>": T,
    "<Kinematics: of 'four-bar', q (3, 1), v (3, 1), t>": T.kinematics,
    "<Control: projected>": control.projected(control.joints("A"), control.set_point([1]), **AIM),
    "<Control: hybrid_force, integrates 1 number, inputs x, x', x''>": control.hybrid_force(
        control.joints("A"), control.sampled(["x"]), control.set_point([0]), ["C.vx"], **AIM
    ),
    "<Control: in discrete time, gyro every 0.001 s, law every 0.005 s>": control.discrete(
        control.projected(control.joints("A"), control.set_point([1]), **AIM),
        0.005,
        measure={"gyro": control.sensor(still, period=0.001)},
    ),
    "<LawPart 'law': every 0.005 s, latency 2>": control.discrete(early, 0.005, latency=2).parts[0],
    "<Sensor: still, with its law>": control.sensor(still),
    "<Output: attitude of 'A'>": HEADING,
    "<Control: concurrent>": control.concurrent([HEADING]),
    "<Control: early, integrates 2 numbers>": control.Control(early, z=(0, 0)),
    "<Reference: set_point of 1 coordinate>": control.set_point([1]),
    "<Reference: sampled of 2 coordinates, inputs a, b, a', b', a'', b''>": control.sampled(["a", "b"]),
    "<Compiled: of 'four-bar', M (3, 3), angle (1, 1)>": COMPILED,
    "<Assembly: A = 0.5, B = 0.3468, D = 1.72>": CLOSED,
    "<Assembly: 2 times A, B, D>": pf.assemble(M, {"A": [0.5, 0.6]}, backend="numpy"),
    "<Impact: v, impulse (3,), loss 1.35107 J>": GRASP,
    "<Equilibrium: hinge = 0.2, stable>": pf.equilibrium(ROD, {"hinge": 0.5}),
    "<Singularities: input 0.5234, output 0.116, constraint 0.4586, mobility 1, rank 2, jacobian (6, 1)>": (
        pf.constraints.singularities(M, CLOSED.q, "rocker", length=1.0)
    ),
    "<Kernel: inputs of (3, 3, 1, 1, 1), outputs of (9, 1) numbers, backend numpy, lanes 1, strict True>": COMPILED.kernel,
}


@pytest.mark.parametrize("words", REPRS)
def test_repr_describes_the_object(words):
    assert repr(REPRS[words]) == words and len(words) <= LONGEST


def test_a_program_does_not_print_its_steps():
    words = repr(COMPILED.kernel.program)
    assert words.startswith("<Program: inputs of (3, 3, 1, 1, 1), outputs of (9, 1) numbers, ") and len(words) < LONGEST


def test_the_repr_of_a_scheme_has_all_its_choices():
    assert repr(pf.Scheme(corrections=1)).startswith("Scheme(formulation='auto', integrator=None, corrections=1")


def test_long_lists_of_names_are_shortened():
    m = pf.actuate_all(pf.mechanism("m", [pf.body("b", 1, inertia=1)], [pf.joint("j", "free", "world", "b")]))
    two = m.with_(actuators=[*m.actuators, pf.actuator("another", "j")])
    assert repr(two) == (
        "<Mechanism 'm': 1 body, 1 joint (nq 7, nv 6), inputs j.vx, j.vy, j.vz, j.wx, j.wy, j.wz, ... (7 in all)>"
    )


class Cells(HTMLParser):
    """The rows of all tables, and the set of tags."""

    def __init__(self, text):
        super().__init__()
        self.rows, self.tags, self.open = [], set(), []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)
        self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] in ("td", "th"):
            self.rows[-1][-1] += data


def test_a_notebook_shows_tables_with_units():
    found = Cells(M.with_(forces=[pf.forces.dissipation("slow", early)])._repr_html_())
    assert found.open == []
    assert found.rows == [
        ["joint", "kind", "parent", "child", "coordinates"],
        ["A", "revolute", "world", "crank", "[rad]"],
        ["B", "revolute", "crank", "coupler", "[rad]"],
        ["D", "revolute", "world", "rocker", "[rad]"],
        ["constraint", "holds"],
        ["C", "revolute, 'coupler' to 'rocker', 5 rows"],
        ["force", "kind", "acts"],
        ["slow", "Dissipation", "early"],
        ["input", "unit"],
        ["motor", "N m"],
        ["parameter", "default", "unit"],
        ["coupler", "2", "m"],
    ]
    free = pf.mechanism("m", [pf.body("b", 1, inertia=1)], [pf.joint("j", "free", "world", "b")])._repr_html_()
    assert "x [m], y [m], z [m], qx [1]" in free and "parameter" not in free and "input" not in free


def test_names_with_markup_stay_text():
    bad = "<script>alert('1')</script>: & \"x\""
    swing = pf.holonomic(bad, lambda k: k.q[0] - ca.sin(k.t))
    length = pf.Parameter(bad, 1.0, "<i>m</i>\x1b")
    m = four_bar(name=bad, constraints=[swing], actuators=[pf.actuator(bad, "A")], parameters=[L, length])
    found = Cells(m._repr_html_())
    assert found.tags == {"b", "table", "tr", "td", "th"}
    cells = [cell for row in found.rows for cell in row]
    assert cells.count(bad) == 3 and "<i>m</i>\\x1b" in cells and ["phi(q, t) = 0 by a lambda"] in [r[1:] for r in found.rows]


def test_a_long_machine_has_a_short_table():
    links = [pf.body(f"b{i}", 1, inertia=1) for i in range(100)]
    chain = [pf.joint(f"j{i}", "revolute", f"b{i - 1}" if i else "world", f"b{i}") for i in range(100)]
    rows = Cells(pf.mechanism("chain", links, chain)._repr_html_()).rows
    assert len(rows) == 62 and rows[-1] == ["and 40 more"] and rows[60][0] == "j59"
