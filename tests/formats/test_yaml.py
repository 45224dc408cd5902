"""The meaning of YAML model files, and the messages about files that are refused."""

import math
import pickle
from dataclasses import replace
from pathlib import Path

import casadi as ca
import numpy as np
import pytest

import pfaffian as pf
from pfaffian.errors import ModelError
from pfaffian.formats import RunSettings, parse_yaml, read_yaml
from pfaffian.formats.read import read
from tests.work import CALLS_A_CHARACTER, calls_to_refuse

URDF = """<robot name="r"><link name="a"/><link name="b"><inertial><mass value="1"/>
<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="j" type="revolute"><parent link="a"/><child link="b"/></joint></robot>"""

PENDULUM = """
name: pendulum
parameters: {l: 1.5, m: {default: 2, unit: kg}}
bodies:
  rod: {mass: m, com: [l/2, 0, 0], inertia: [0, m*l^2/12, m*l^2/12]}
joints:
  pivot: {kind: revolute, parent: world, child: rod, axis: [0, 1, 0], damping: 0.1, limits: [-3, 3], effort: 4}
actuators:
  motor: {joint: pivot, gear: 10, limits: [-2, 2]}
"""


def test_a_whole_mechanism():
    m, settings = parse_yaml(PENDULUM)
    assert (m.name, m.q_names, m.u_names) == ("pendulum", ("pivot",), ("motor",))
    assert [(p.name, p.default, p.unit) for p in m.parameters] == [("l", 1.5, ""), ("m", 2, "kg")]
    assert np.diag(m.value(m.body("rod").inertia)) == pytest.approx([0, 0.375, 0.375])
    assert m.joint("pivot").limits == ((-3, 3),) and m.joint("pivot").effort == 4
    assert m.value(m.actuators[0].gear).item() == 10 and m.actuators[0].limits == (-2, 2)
    assert m.value(m.gravity).ravel().tolist() == [0, 0, -9.81]
    assert settings == RunSettings()


def test_constraints_forces_and_poses():
    m, _ = parse_yaml(
        PENDULUM
        + """
gravity: [0, -9.81, 0]
constraints:
  loop: {kind: point-on-line, body_a: world, body_b: rod, placement_a: {xyz: [0, 0, 1], rpy: [0, pi/2, 0]}}
  pin: {kind: coincide, body_a: rod, point_a: [l, 0, 0], body_b: world, point_b: [1, 0, 0]}
  weld: {kind: weld, body_a: world, body_b: rod, placement_b: {quaternion: [0, 0, 1, 1]}}
  thread: {kind: helical, body_a: world, body_b: rod, pitch: l/30}
  stay: {kind: distance, body_a: world, body_b: rod, length: 2*l}
  cross: {kind: universal, body_a: world, body_b: rod, axis: [0, 0, 1], axis_b: [0, 1, 0]}
forces:
  rope: {kind: spring, body_a: rod, point_a: [l, 0, 0], body_b: world, stiffness: 10*m, rest: 0.5}
  push: {kind: wrench, body: rod, axes: LOCAL}
  wind: {kind: wrench, body: rod, value: [1, 0, 0, 0, 0, 0]}
"""
    )
    assert [len(c.holds.rows) for c in m.constraints] == [2, 3, 6, 5, 1, 4]
    assert [m.value(c.number).item() for c in m.constraints[3:]] == [pytest.approx(0.05), 3, 0]
    assert m.value(m.constraints[0].placement_a.R)[:, 2] == pytest.approx([1, 0, 0], abs=1e-15)
    assert m.value(m.constraints[2].placement_b.R)[:, 0] == pytest.approx([0, 1, 0], abs=1e-15)
    assert m.nu == 1 + 6 and m.value(m.forces[0].stiffness).item() == 20
    assert m.value(m.gravity).ravel().tolist() == [0, -9.81, 0]


FORCES = """
  feet: {kind: pose-spring, body_a: world, body_b: rod, stiffness: {weight: 10*m, centre: [0, 0, l], moments: [2, 2, 3]},
         rest: {xyz: [0, 0, 1]}}
  felt: {kind: pose-damper, body_a: world, body_b: rod, damping: {weight: 2, moments: 0.1}}
  water: {kind: pose-inertia, body_a: world, body_b: rod, inertia: {weight: 3*m, centre: [l, 0, 0], moments: 0.2}}
  dry: {kind: joint-friction, joint: pivot, sliding: m, static: 2*m, stribeck: 0.1, viscous: 0.3, smooth: 0.02}
  floor: {kind: contact-friction, body: rod, on: world, normal: [0, 0, 1], load: 9, coefficient: 0.4, point: [l, 0, 0]}
  air: {kind: drag, body: rod, area: 0.2, coefficient: 1.1, density: 1.2, point: [l, 0, 0], wind: [m, 0, 0]}
  blade: {kind: propeller, body: rod, speed: -30*m, thrust: 1e-3, torque: 1e-4, handed: left, axis: [0, 1, 0], point: [l, 0, 0]}
  rotor: {kind: rotor, body: rod, joint: pivot, thrust: 1e-3}
  pull: {kind: wrench, body: rod, by: world, value: [1, 0, 0, 0, 0, l]}
  rubber: {kind: bushing, body_a: world, body_b: rod, stiffness: {diagonal: [9, 8*m, 7, 2*l, 3, 4]}, rest: {xyz: [0, 0.1, 0]},
           damping: {weight: 2, moments: 0.1}}
"""


def test_forces_agree_with_their_python_functions():
    m, _ = parse_yaml(PENDULUM + "forces:" + FORCES)
    l, w = m.parameters
    known = [
        pf.forces.pose_spring("feet", "world", "rod", pf.forces.pseudo_matrix(10 * w, (0, 0, l), (2, 2, 3)), rest=(0, 0, 1)),
        pf.forces.pose_damper("felt", "world", "rod", pf.forces.pseudo_matrix(2, moments=0.1)),
        pf.forces.pose_inertia("water", "world", "rod", pf.forces.pseudo_matrix(3 * w, (l, 0, 0), 0.2)),
        pf.forces.joint_friction("dry", "pivot", w, static=2 * w, stribeck=0.1, viscous=0.3, smooth=0.02),
        pf.forces.contact_friction("floor", "rod", "world", normal=(0, 0, 1), load=9, coefficient=0.4, point=(l, 0, 0)),
        pf.forces.drag("air", "rod", 0.2, coefficient=1.1, density=1.2, point=(l, 0, 0), wind=(w, 0, 0)),
        pf.forces.propeller("blade", "rod", -30 * w, thrust=1e-3, torque=1e-4, handed="left", axis=(0, 1, 0), point=(l, 0, 0)),
        pf.forces.propeller("rotor", "rod", "pivot", thrust=1e-3),
        pf.wrench("pull", "rod", (1, 0, 0, 0, 0, l), by="world"),
        pf.forces.bushing("rubber", "world", "rod", stiffness=ca.diag(ca.vertcat(9, 8 * w, 7, 2 * l, 3, 4)),
                           damping=pf.forces.pseudo_matrix(2, moments=0.1), rest=(0, 0.1, 0)),
    ]  # fmt: skip
    assert [f.name for f in m.forces] == [f.name for f in known]
    for f, g in zip(m.forces, known, strict=True):
        one, two = (m.with_(forces=[x]) for x in (f, g))
        at = [pf.forward_dynamics(x, {"pivot": 0.3}, {"pivot": 0.7}).v_dot for x in (one, two, m)]
        assert at[0] == pytest.approx(at[1], rel=1e-13) and at[0] != at[2]
    r = pf.run(m, {"pivot": 0.3}, duration=0.01, backend="numpy")
    assert int(r["status"]) == 0


RUN = """
run:
  duration: 2.5
  step: 1e-2
  record_every: 5
  formulation: projection
  integrator: rk4
  saturate: true
  parameters: {l: 3}
  q: {pivot: l*pi/4}
  guess: {pivot: l}
  v: {pivot: -1}
  u: {motor: 2}
"""


def test_a_run():
    m, s = parse_yaml(PENDULUM + RUN)
    assert (s.duration, s.step, s.record_every, s.formulation, s.integrator) == (2.5, 0.01, 5, "projection", "rk4")
    assert s.saturate and not parse_yaml(PENDULUM)[1].saturate
    q, v, u, p = s.arrays(m)
    assert (q.tolist(), v.tolist(), u.tolist(), p.tolist()) == ([0.75 * math.pi], [-1], [2], [3, 2])
    assert s.guess == {"pivot": 3.0}
    assert RunSettings(guess={"pivot": 0.5}).arrays(m).q.tolist() == [0.5]
    with pytest.raises(ModelError, match="run: q: 'x' is unknown"):
        RunSettings(q={"x": 1.0}).arrays(m)


WRITTEN = """
  weight: {kind: potential, V: 5*m*cos(pivot)^2/2 + 0.1*t*base.x}
  oil: {kind: dissipation, R: l*pivot'^2/2 + exp(-base.vx)}
  cubic: {kind: generalised-force, joint: pivot, f: -0.1*abs(pivot')*pivot'}
  all: {kind: generalised-force, f: [base.vy, 0, sqrt(1 + base.angle^2), tanh(t)]}
  wind: {kind: wrench, body: rod, value: [sin(2*t), 0, "l*cos(base.wz)", 0, 0, m]}
"""


def test_forces_as_expressions():
    base = PENDULUM.replace("bodies:", "bodies:\n  cart: {mass: 1, inertia: 1}").replace(
        "joints:", "joints:\n  base: {kind: planar, parent: world, child: cart}").replace("parent: world, child: rod",
        "parent: cart, child: rod")  # fmt: skip
    m, _ = parse_yaml(base + "forces:" + WRITTEN)
    l, w = m.parameters

    def rate(k, name):
        return k.joint_rate(name)

    known = [
        pf.forces.potential("weight", lambda k: 5 * w * ca.cos(k.joint("pivot")) ** 2 / 2 + 0.1 * k.t * k.joint("base")[0]),
        pf.forces.dissipation("oil", lambda k: l * rate(k, "pivot") ** 2 / 2 + ca.exp(-rate(k, "base")[0])),
        pf.forces.generalised_force("cubic", lambda k: -0.1 * ca.fabs(rate(k, "pivot")) * rate(k, "pivot"), joint="pivot"),
        pf.forces.generalised_force(
            "all", lambda k: ca.vertcat(rate(k, "base")[1], 0, ca.sqrt(1 + k.joint("base")[2] ** 2), ca.tanh(k.t))
        ),
        pf.wrench("wind", "rod", lambda k: ca.vertcat(ca.sin(2 * k.t), 0, l * ca.cos(rate(k, "base")[2]), 0, 0, w)),
    ]
    state = ([0.1, -0.2, 0.4, 0.3], [0.5, -0.6, 0.7, 0.8])
    plain = pf.forward_dynamics(m.with_(forces=()), *state, t=0.9).v_dot
    for f, g in zip(m.forces, known, strict=True):
        a, b = (pf.forward_dynamics(m.with_(forces=[x]), *state, t=0.9).v_dot for x in (f, g))
        assert a == pytest.approx(b, rel=1e-12, abs=1e-12) and np.abs(a - plain).max() > 1e-4
    again, _ = parse_yaml(base + "forces:" + WRITTEN)
    assert pickle.loads(pickle.dumps(m)) == m and again == m
    found = pf.reaction_wrench(m, "pivot", *state)
    assert np.isfinite(found.wrench).all()
    assert repr(m.forces[2].function) == "<Written: -0.1*abs(pivot')*pivot'>"


def test_the_quadcopter_hovers_with_its_parcel():
    """Four equal thrusts carry both weights, so the wind alone accelerates the mass centre."""
    m, settings = read(Path(__file__).parents[2] / "examples" / "quadcopter.yaml")
    q, v, u, _ = settings.arrays(m)
    still = pf.forward_dynamics(m, q, v, u, parameters={"wind": 0.0}).v_dot
    assert still[:3] == pytest.approx([0, 0, (60 * 0.05 - 0.3 * 9.81) / -1.2], abs=1e-12) and not still[3:6].any()
    pushed = pf.forward_dynamics(m, q, v, u).v_dot
    assert 1.2 * pushed[0] + 0.3 * pushed[6] == pytest.approx(0.5 * 1.225 * (0.03 + 0.02 * 1.1) * 4, rel=1e-12)


def test_a_thruster():
    m, _ = parse_yaml(PENDULUM + "  jet: {body: rod, axis: [0, 0, 2], point: [l, 0, 0], torque: l, limits: [0, 5]}\n")
    l = m.parameters[0]
    assert m.actuators[1] == pf.forces.thruster("jet", "rod", axis=(0, 0, 2), point=(l, 0, 0), torque=l, limits=(0, 5))
    assert m.u_names == ("motor", "jet") and m.u_limits[1].tolist() == [0, 5]
    with pytest.raises(ModelError, match=r"line 10: actuators\.jet: actuator 'jet': there is no body 'rot'"):
        parse_yaml(PENDULUM + "  jet: {body: rot}\n")


EXPRESSIONS = {
    "1": 1, "-2.5e-1": -0.25, "l": 3, "-l": -3, "l/2": 1.5, "2*m*l^2/12": 3, "2*m*l**2/12": 3, "-l^2": -9, "2^-1": 0.5,
    "2^3^2": 512, "8/4/2": 1, "8-4-2": 2, "(8-4)*-2": -8, "4--2": 6, "-(-l)": 3, "2*+l": 6,
    "8/-2": -4, "0.5e1": 5, "+l - -m": 5, "2*pi": 2 * math.pi, "sin(pi/6)": 0.5,
    "-abs(-l)^2": -9, "2*sqrt(m+2)": 4, "atan(tan(0.5))": 0.5, "exp(log(l))": 3, " ( l ) ": 3, "l-l": 0,
}  # fmt: skip
NO_EXPRESSIONS = [
    "1_000", "\u0661", ".nan", "nan", ".inf", "inf", "1e400", "0x1F", "0o17", "017", "1:30", "yes", "l.real",
    "__import__('os')", "l(1)", "[l]", "2 l", "2l", "(l", "l)", "l*", "*l", "", "~", "1/0", "0^-1", "(-8)^(1/3)",
    "sin", "sin 1", "sin()", "sin(1", "sin(1)2", "sqrt(-1)", "log(0)", "l'", "sin'(1)", "pow(2)", "b.x", "t",
    "l if l else m", "1;2", "l//2",
    "--1", "+-1", "-+l", "2*--m", "1 - --l", "2^+-1", "--(l)", "sin(--1)",
    "(" * 40 + "l" + ")" * 40, "-(" * 40 + "l" + ")" * 40, "2^" * 40 + "2", "9" * 2000, "l\\0", "k",
]  # fmt: skip


def value_of(text):
    quoted = text.replace("\\", "\\\\").replace('"', '\\"')
    m, _ = parse_yaml(f'parameters: {{l: 3, m: 2}}\nbodies: {{b: {{mass: 1, com: ["{quoted}", 0, 0]}}}}\n'
                      "joints: {j: {kind: free, parent: world, child: b}}")  # fmt: skip
    return m.value(m.body("b").com)[0, 0]


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_expressions(text):
    assert value_of(text) == pytest.approx(EXPRESSIONS[text], rel=1e-15)


@pytest.mark.parametrize("text", NO_EXPRESSIONS)
def test_invalid_expressions_are_refused(text):
    with pytest.raises(ModelError, match=r"line 2: bodies\.b\.com\[0\]: "):
        value_of(text)


def test_parameters_remain_symbols():
    m, _ = parse_yaml(PENDULUM)
    assert ca.depends_on(m.body("rod").inertia, m.p_symbols)


BAD = {
    "empty": ("", "the file is empty"),
    "list": ("- a", "a map of `key: value` is needed"),
    "unknown key": (PENDULUM + "joint: {}", r"line 10: joint: the key 'joint' is unknown; did you mean 'joints'\?"),
    "unknown inner key": (
        PENDULUM.replace("damping", "dampning"),
        r"line 7: .*'dampning' is unknown; did you mean 'damping'",
    ),
    "key twice": (PENDULUM + "name: again", "line 10: the key 'name' is given twice"),
    "alias": ("name: &a x\nurdf: *a", "line 1: name: anchors and aliases are not allowed"),
    "tag": ("name: !!python/object/apply:os.system [ls]", "line 1: name: tags such as .* are not allowed"),
    "plain tag": ("name: !x y", "tags such as '!x'"),
    "two documents": ("name: a\n---\nname: b", "line 3: .*second document"),
    "key of a list": ("[a, b]: c", "a key must be a text"),
    "bad yaml": ("name: [a", "line 1: this is not well-formed YAML|line 2: this is not well-formed YAML"),
    "tab": ("name:\n\t- a", "line 2: this is not well-formed YAML"),
    "control": ("name: \x07", "characters that YAML does not allow"),
    "escape": ('name: "\\Uffffffff"', "characters that YAML does not allow"),
    "unknown kind": (
        PENDULUM.replace("revolute", "revolut"),
        "line 7: joints.pivot.kind: 'revolut' is unknown; did you mean 'revolute'",
    ),
    "kind of another library": (
        PENDULUM.replace("revolute", "hinge"),
        "did you mean 'revolute'\\? there are fixed, revolute, .*, spherical, free, universal",
    ),
    "missing key": (
        "bodies: {a: {}}\njoints: {j: {kind: free, parent: world}}",
        "line 2: joints.j: the key 'child' is missing",
    ),
    "unknown body": (
        PENDULUM.replace("child: rod", "child: rot"),
        "line 7: joints.pivot: joint 'pivot': there is no body 'rot'",
    ),
    "world": ("bodies: {world: {mass: 1}}", "line 1: bodies.world: 'world' is the fixed frame"),
    "unphysical inertia": (
        "bodies: {a: {mass: 1, inertia: [1, 1, 3]}}\njoints: {j: {kind: free, parent: world, child: a}}",
        "line 1: bodies.a: ",
    ),
    "two axes": (PENDULUM.replace("[0, 1, 0]", "[0, 1]"), "joints.pivot.axis: a list of length 3 is needed"),
    "axis of parameters": (PENDULUM.replace("[0, 1, 0]", "[0, l, 0]"), r"axis\[1\]: .*no parameter 'l'"),
    "no axis": (PENDULUM.replace("[0, 1, 0]", "[0, 0, 0]"), "line 7: joints.pivot: .*has no direction"),
    "two orientations": (
        PENDULUM.replace("damping: 0.1", "placement: {rpy: [0, 0, 0], quaternion: [0, 0, 0, 1]}"),
        "line 7: .*one of .*not several",
    ),
    "parameter name": ("parameters: {m-1: 2}", "'m-1' cannot name a parameter"),
    "parameter pi": ("parameters: {pi: 3}", "'pi' cannot name a parameter"),
    "parameter of parameter": ("parameters: {a: 1, b: a}", "no parameter 'a'"),
    "octal index": (PENDULUM.replace("gear: 10", "component: 01"), "no leading zeros"),
    "broken index": (PENDULUM.replace("gear: 10", "component: 0.5"), "whole number from 0 to 5"),
    "empty value": (PENDULUM.replace("gear: 10", "gear:"), "actuators.motor.gear: a text or number is needed"),
    "run coordinate": (PENDULUM + "run: {q: {pivott: 1}}", "did you mean 'pivot'"),
    "run duration": (PENDULUM + "run: {duration: -1}", "a time above zero"),
    "run steps": (PENDULUM + "run: {duration: 1e300, step: 1e-300}", "is not between 1 and"),
    "run parameter": (PENDULUM + "run: {parameters: {k: 1}}", "the key 'k' is unknown"),
    "unknown force": (PENDULUM + "forces: {f: {kind: dragg, body: rod}}", "forces.f.kind: 'dragg' is unknown; did you mean"),
    "force without an argument": (
        PENDULUM + "forces: {f: {kind: drag, body: rod}}",
        "line 10: forces.f: the key 'area' is missing",
    ),
    "force with a key of another kind": (
        PENDULUM + "forces: {f: {kind: drag, body: rod, area: 1, load: 2}}",
        "forces.f.load: .*'load' is unkn",
    ),
    "force with a negative area": (
        PENDULUM + "forces: {f: {kind: drag, body: rod, area: -m}}",
        "line 10: forces.f: .*area -2 is below zero",
    ),
    "rotor of an unknown joint": (
        PENDULUM + "forces: {f: {kind: rotor, body: rod, joint: pivott, thrust: 1}}",
        "line 10: forces.f: force 'f': there is no joint 'pivott'; did you mean 'pivot'",
    ),
    "expression with an unknown name": (
        PENDULUM + "forces: {f: {kind: potential, V: 2*cos(pivott)}}",
        r"forces.f: force 'f': its expression: .*no parameter 'pivott'; the known names are l, m, pivot, pivot', t, pi",
    ),
    "unknown function": (PENDULUM + "forces: {f: {kind: potential, V: 2*cosine(pivot)}}", "no parameter 'cosine'"),
    "expression without brackets": (PENDULUM + "forces: {f: {kind: potential, V: cos pivot}}", "no parameter 'cos'"),
    "expression with code": (PENDULUM + "forces: {f: {kind: potential, V: \"__import__('os')\"}}", "forces.f: .*not allowed"),
    "expression with an ambiguous name": (
        PENDULUM.replace("l: 1.5", "l: 1.5, pivot: 2") + "forces: {f: {kind: potential, V: pivot}}",
        "forces.f: force 'f': the name 'pivot' is ambiguous among parameters, coordinates, rates and the time t",
    ),
    "expression with a joint named like the time": (
        PENDULUM.replace("pivot", "t") + "forces: {f: {kind: potential, V: 2*t}}",
        "forces.f: force 'f': the name 't' is ambiguous among parameters, coordinates, rates and the time t",
    ),
    "wrench of five": (
        PENDULUM + "forces: {f: {kind: wrench, body: rod, value: [t, 0, 0, 0, 0]}}",
        "a list of length 6 is needed",
    ),
    "spring with an indefinite stiffness": (
        PENDULUM + "forces: {f: {kind: pose-spring, body_a: world, body_b: rod, stiffness: {weight: 1, moments: [1, 0, -2]}}}",
        "line 10: forces.f: .*lowest eigenvalue is -2",
    ),
    "bushing of five numbers": (
        PENDULUM + "forces: {f: {kind: bushing, body_a: world, body_b: rod, damping: {weight: 1},"
        " stiffness: {diagonal: [1, 2, 3, 4, 5]}}}",
        "forces.f.stiffness.diagonal: a list of length 6 is needed",
    ),
    "bushing with negative stiffness": (
        PENDULUM + "forces: {f: {kind: bushing, body_a: world, body_b: rod, damping: {weight: 1},"
        " stiffness: {diagonal: [1, 2, 3, 4, 5, -6]}}}",
        "line 10: forces.f: .*lowest eigenvalue is -6",
    ),
    "bushing to an unknown body": (
        PENDULUM + "forces: {f: {kind: bushing, body_a: world, body_b: rot, damping: {weight: 1}, stiffness: {weight: 1}}}",
        "line 10: forces.f: force 'f spring': there is no body 'rot'",
    ),
    "spring to an unknown body": (
        PENDULUM + "forces: {f: {kind: pose-spring, body_a: world, body_b: rot, stiffness: {weight: 1}}}",
        "line 10: forces.f: force 'f': there is no body 'rot'",
    ),
    "yes": (
        "urdf: {file: a.urdf, package: pfaffian, strict: yes}",
        "urdf.strict: 'yes' is unknown; there are true, false",
    ),
    "no folder": ("urdf: a.urdf", "pass folder="),
    "bidi": (
        'bodies: {"a\u202e": {mass: 1}}\njoints: {j: {kind: free, parent: world, child: "a\u202e"}}',
        "is not a name",
    ),
}


@pytest.mark.parametrize("text, words", BAD.values(), ids=BAD)
def test_bad_files_are_refused_with_the_reason(text, words):
    with pytest.raises(ModelError, match=words) as caught:
        parse_yaml(text)
    assert len(str(caught.value)) < 1000


def test_no_and_on_are_valid_names():
    m, _ = parse_yaml(PENDULUM.replace("rod", "no").replace("name: pendulum", "name: on"))
    assert (m.name, m.bodies[0].name) == ("on", "no")


BOMBS = {
    "flow": "x: " + "[" * 90_000,
    "block": "- " * 45_000,
    "map": "{" * 90_000,
    "aliases": "a: &a [x]\nb: &b [*a, *a]\nc: [*b, *b]",
    "length": "x" * 10_000_000,
    "quotes": "x: '" + "\n" * 90_000,
    "anchors": "&a " * 30_000,
}


@pytest.mark.parametrize("text", BOMBS.values(), ids=BOMBS)
def test_bombs_are_refused_quickly(text):
    assert calls_to_refuse(parse_yaml, text, ModelError) < 1000 + CALLS_A_CHARACTER * len(text)


@pytest.fixture
def house(tmp_path):
    """A folder with a robot below it, and a link to another robot outside."""
    folder = tmp_path / "folder"
    (folder / "robots").mkdir(parents=True)
    (folder / "robots" / "r.urdf").write_text(URDF)
    (tmp_path / "out.urdf").write_text(URDF)
    (folder / "link.urdf").symlink_to(tmp_path / "out.urdf")
    return folder


def model(folder, urdf, more=""):
    path = folder / "m.yaml"
    path.write_text(f"urdf: {urdf}\n{more}")
    return path


def test_additions_to_a_robot(house):
    more = (
        "bodies: {c: {mass: 1, inertia: 1}}\n"
        "joints: {k: {kind: prismatic, parent: b, child: c}}\n"
        "constraints: {loop: {kind: point-on-plane, body_a: world, body_b: c}}\n"
        "actuators: {push: {joint: k}}"
    )
    m, _ = read_yaml(model(house, "{file: robots/r.urdf, base: free, actuated: []}", more))
    assert m.name == "r" and [j.name for j in m.joints] == ["root_joint", "j", "k"]
    assert m.u_names == ("push",) and len(m.constraints) == 1 and m.nv == 8


@pytest.mark.parametrize("truth", ["true", "false"])
def test_true_and_false(house, truth):
    _, settings = read_yaml(
        model(house, f"{{file: robots/r.urdf, base: free, strict: {truth}}}", f"run: {{saturate: {truth}}}")
    )
    assert settings.saturate is (truth == "true")


def test_read_opens_urdf_and_yaml(house):
    assert read(house / "robots" / "r.urdf", base="free")[0].nv == 7
    assert read(model(house, "robots/r.urdf"))[1] == RunSettings()


OUTSIDE = [
    "../out.urdf",
    "robots/../../out.urdf",
    "link.urdf",
    "/etc/passwd",
    "file:///etc/passwd",
    "'C:\\x.urdf'",
    "'..\\out.urdf'",
]


@pytest.mark.parametrize("name", OUTSIDE)
def test_paths_that_leave_the_folder_are_refused(house, name):
    with pytest.raises(ModelError, match=r"line 1: urdf: .*(own folder); move the file there, or pass allow="):
        read_yaml(model(house, name))


def test_the_caller_may_allow_more_folders(house):
    outside = house.parent
    for name in ("../out.urdf", "link.urdf", str(outside / "out.urdf")):
        assert read_yaml(model(house, name), allow=[outside])[0].nv == 1
    with pytest.raises(ModelError, match="leads out of"):
        read_yaml(model(house, "../../x.urdf"), allow=[outside])


PACKAGES = {
    "{package: no-such-package-at-all, file: a.urdf}": "is not installed; run `pip install no-such-package-at-all`",
    "{package: ../x, file: a.urdf}": "is not a package name",
    "{package: pyyaml, file: ../yaml/__init__.py}": "is not a path in a package",
    "{package: pyyaml, file: robot.urdf}": "has no file whose path ends in 'robot.urdf'",
    "{package: pyyaml, file: yaml/__init__.py}": r"__init__.py line \d: this is not well-formed XML",
}


@pytest.mark.parametrize("urdf, words", PACKAGES.items())
def test_packages(urdf, words):
    with pytest.raises(ModelError, match=words):
        parse_yaml(f"urdf: {urdf}")


KINDS_OF_JOINT = """
name: kinds
parameters: {h: 0.1, r: 2.0}
bodies:
  a: {mass: 1, inertia: 0.1}
  b: {mass: 1, com: [0.1, 0, 0], inertia: 0.1}
  c: {mass: 1, inertia: 0.1}
  d: {mass: 1, inertia: 0.1}
  e: {mass: 1, inertia: 0.1}
joints:
  base:
    {kind: planar, parent: world, child: a, distribution: [[1, 0], [0, h], [0, 1]], speeds: {drive: m/s, turn: rad/s},
     damping: [1, 2], limits: [[-1, 1], [-2, 2], [-3, 3]]}
  skate: {kind: planar, parent: world, child: e, distribution: [vx, wz], speeds: [u, w]}
  screw: {kind: helical, pitch: h, parent: a, child: b}
  geared: {kind: revolute, parent: b, child: c, mimic: {joints: {screw: r}, offset: 0.5}}
  held: {kind: universal, parent: c, child: d, locked: [0.3, h]}
"""


def test_joints_of_every_kind():
    m, _ = parse_yaml(KINDS_OF_JOINT)
    h, r = m.parameters
    a, b = ("world", "a"), ("c", "d")
    assert m.joints == (
        pf.joint("base", "planar", *a, distribution=[[1, 0], [0, h], [0, 1]], speeds={"drive": "m/s", "turn": "rad/s"},
                 damping=[1, 2], limits=[(-1, 1), (-2, 2), (-3, 3)]),
        pf.joint("skate", "planar", "world", "e", distribution=["vx", "wz"], speeds=["u", "w"]),
        pf.joint("screw", "helical", "a", "b", pitch=h),
        pf.joint("geared", "revolute", "b", "c", mimic=pf.mimic({"screw": r}, 0.5)),
        pf.locked(pf.joint("held", "universal", *b), [0.3, h]),
    )  # fmt: skip
    assert m.v_names == ("base.drive", "base.turn", "skate.u", "skate.w", "screw")


@pytest.mark.parametrize(
    "old, new, words",
    [
        ("pitch: h, ", "", r"line 15: joints.screw: joint 'screw': a helical joint needs its pitch"),
        ("joints: {screw: r}", "joint: screw", r"joints.geared.mimic.joint: the key 'joint' is unknown; .*'joints'"),
        ("[vx, wz]", "[vx, wx]", r"line 14: joints.skate: joint 'skate': distribution: a planar joint has no velocity 'wx'"),
        ("[0.3, h]", "[0.3]", r"joints.held.locked: joint 'held': locked: 2 numbers are needed, got 1"),
        ("{screw: r}", "{skrew: r}", r"joint 'geared' follows 'skrew', which is not a joint"),
    ],
)
def test_joints_refused(old, new, words):
    assert old in KINDS_OF_JOINT
    with pytest.raises(ModelError, match=words):
        parse_yaml(KINDS_OF_JOINT.replace(old, new))


def test_settings_of_a_run_do_not_change_the_mechanism():
    """Parameters of one run do not become the defaults of this mechanism or of an equal one."""
    path = Path(__file__).parents[2] / "examples" / "four_bar.yaml"
    m, settings = pf.read(path)
    changed = replace(settings, parameters={"a": 0.45}, q={"crank": 1.0}, u={"motor": 3.0})
    assert changed.arrays(m).p[1] == 0.45
    assert m.p_defaults[1] == 0.4 and m.neutral()[0] == 0.0
    other, plain = pf.read(path)
    assert plain.arrays(other).p[1] == 0.4
    with pytest.raises(ValueError, match="read-only"):
        m.p_defaults[1] = 1.0


def test_only_the_robot_of_a_yaml_file_may_have_impossible_inertias(tmp_path):
    inertia = '<inertia ixx="1" iyy="1" izz="3" ixy="0" ixz="0" iyz="0"/>'
    link = f'<link name="a"><inertial><mass value="1"/>{inertia}</inertial></link>'
    (tmp_path / "r.urdf").write_text(f'<robot name="r">{link}</robot>')
    text = "urdf: {{file: r.urdf, base: free}}\nbodies: {{b: {{mass: 1, inertia: [1, 1, {}]}}}}\n"
    text += "joints: {{j: {{kind: revolute, parent: a, child: b}}}}"
    with pytest.warns(pf.ModelWarning, match="inertias that no body can have"):
        assert parse_yaml(text.format(1), folder=tmp_path)[0].lenient
    with pytest.warns(pf.ModelWarning), pytest.raises(ModelError, match=r"line 2: bodies\.b: body 'b': .*; correct it"):
        parse_yaml(text.format(3), folder=tmp_path)
