"""A written mechanism that is read again is equal or moves alike; parts that a format cannot express are refused by name."""

import importlib
import inspect
import pickle
import pkgutil
import warnings
from dataclasses import fields

import casadi as ca
import numpy as np
import pytest

import pfaffian as pf
from pfaffian.errors import ModelError, ModelWarning
from pfaffian.formats import RunSettings, parse_urdf
from pfaffian.formats.read import read
from pfaffian.formats.text import coupling
from pfaffian.formats.text.library_laws import LAWS
from pfaffian.formats.write import write
from pfaffian.formats.writers.mjcf_write_part import mujoco_joints, turned
from pfaffian.maths.closures import CLOSURES
from pfaffian.maths.margins import ZERO
from pfaffian.model.data import is_data
from pfaffian.model.joint import KINDS, JointFactor, JointKind
from pfaffian.model.path import Path
from pfaffian.model.shape import SIZES, Shape
from pfaffian.model.slider_crank import SliderCrank
from pfaffian.parts.multicopter import LinearDrag
from tests.random_mechanisms import random_body, random_pose
from tests.tolerance import PEER, close

L, K = pf.Parameter("l", 0.5, "m"), pf.Parameter("k", 3.0)
DRAW = np.random.default_rng(7)


def again(m, folder, suffix=".yaml", settings=None):
    """Write the mechanism and read the last of the written files; returns mechanism and settings."""
    return read(write(m, folder / f"machine{suffix}", settings)[-1])


def every_joint():
    """One joint of each kind with all properties that the kind can have, on bodies with shapes."""
    bodies, joints = [], []
    for kind in KINDS:
        given = {"pitch": 0.1 * L} if KINDS[kind].screws else {}
        if kind != "fixed":
            given |= {"stiffness": np.diag(np.arange(1.0, KINDS[kind].nv + 1)), "damping": 2 * K, "armature": 0.1}
        if KINDS[kind].nq == 1:
            given |= {"limits": (-1.0, np.inf), "rest": 0.2, "effort": 7.0}
        box = pf.shape("box", size=(L, 0.1, 0.2), colour=(0.1, 0.2, 0.3), placement=random_pose(DRAW), role="collision")
        bodies.append(pf.body(kind, mass=K, com=(L / 2, 0, 0), inertia=(4, 4, K + ca.sin(L.symbol) ** 2), shape=box))
        joints.append(pf.joint(kind, kind, "world", kind, axis=DRAW.normal(size=3), placement=random_pose(DRAW), **given))
    bodies += [
        pf.body("ball", shape=[pf.shape("sphere", radius=L, density=100.0), pf.shape("capsule", radius=0.1, length=L)]),
        random_body(DRAW, "skate"),
        random_body(DRAW, "gear"),
    ]
    joints += [
        pf.joint("ice", "planar", "world", "skate", distribution=["vx", "wz"], speeds={"run": "m/s", "turn": "rad/s"}),
        pf.joint("hang", "spherical", "skate", "ball", placement=pf.pose((0, 0, L), rpy=(L, 0, 0))),
        pf.joint("gear", "revolute", "world", "gear", mimic=pf.mimic({"revolute": -K, "prismatic": 2}, L)),
    ]
    motors = [
        pf.actuator("motor", "planar", component=2, gear=K, limits=(-1, np.inf)),
        pf.forces.thruster("jet", "free", axis=(1, 2, 3), point=(0, L, 0), torque=0.1, limits=(0, 5)),
    ]
    return pf.mechanism("joints & more: \"all\" 'äß'", bodies, joints, actuators=motors, parameters=[L, K], gravity=(0, K, -9))


def every_constraint():
    """Every kind of closure, contacts and a servo constraint, between two free bodies."""
    ends = {"placement_a": random_pose(DRAW), "placement_b": random_pose(DRAW)}
    bodies = [random_body(DRAW, n) for n in "ab"]
    joints = [pf.joint(f"base {n}", "free", "world", n) for n in "ab"]
    constraints = []
    for kind in CLOSURES:
        given = {"universal": {"axis_b": (0, 1, 0)}, "distance": {"length": L}}.get(kind, {})
        given |= {"pitch": 0.1} if "helical" in kind else {}
        constraints.append(pf.closure(kind, kind, "a", "b", axis=(1, 2, 2), **ends, **given))
    constraints += [
        pf.rolling.disk("coin", "a", L, axis=(0, 1, 0), plane=pf.rolling.plane(rate=0.2, normal=(0, 1, 1))),
        pf.rolling.sphere("ball", "b", 0.3),
        pf.rolling.wheel("tyre", "a", 0.2, centre=(L, 0, 0)),
        pf.rolling.knife_edge("blade", "b", (1, 1, 0), plane=pf.rolling.plane(on="a")),
        pf.rolling.ellipsoid("egg", "b", (L, 0.2, 0.3), centre=(0, 0, L), plane=pf.rolling.plane(normal=(0, 1, 1), rate=0.5)),
        pf.servo(pf.coincide("held", "world", (0, 0, 1), "a", (0, 0, 0)), ["fx", "fy", "fz"], stiffness=K),
    ]
    motors = [pf.forces.thruster(f"f{n}", "a", axis=np.eye(3)[i]) for i, n in enumerate("xyz")]
    return pf.mechanism("constraints", bodies, joints, constraints=constraints, actuators=motors, parameters=[L, K])


def every_force():
    bodies = [random_body(DRAW, n) for n in "ab"]
    joints = [pf.joint("base", "free", "world", "a"), pf.joint("hinge", "revolute", "a", "b", axis=(0, 1, 1))]
    P = pf.forces.pseudo_matrix(3.0, centre=(0, 0, 0.5), moments=(1, 2, 3))
    A = DRAW.normal(size=(6, 6))
    forces = [
        pf.spring("rope", "world", "b", point_a=(0, 0, L), stiffness=K, rest=0.1, damping=2.0),
        pf.wrench("push", "a", (1, 2, 3, 4, 5, K), axes="LOCAL", by="b", point=(L, 0, 0)),
        pf.wrench("unknown", "b"),
        pf.forces.bushing("mount", "world", "a", stiffness=P, damping=A @ A.T, rest=random_pose(DRAW)),
        pf.forces.pose_inertia("water", "world", "a", 2 * P),
        pf.forces.joint_friction("seal", "hinge", L, static=2 * L, viscous=0.3, smooth=0.01),
        pf.forces.pin_friction("pin", "hinge", 0.1, L, collar=0.03, static=0.17, settle=0.3),
        pf.forces.gear_loss("head", "hinge", 0.7, backward=0.3),
        pf.forces.contact_friction(
            "brake", "a", "b", normal=(0, 0, 2), load=3.0, coefficient=0.5, static=0.75, point=(0, 0, 1)
        ),
        pf.forces.drag("air", "a", 0.5, coefficient=2.0, density=1.25, point=(L, 0, 0), wind=(1, 0, 0)),
        pf.forces.propeller("fan", "a", K, thrust=0.25, torque=0.125, handed="left", axis=(0, 3, 4)),
        pf.forces.propeller("rotor", "b", "hinge", thrust=L, point=(0, 0, L)),
    ]
    return pf.mechanism("forces", bodies, joints, forces=forces, parameters=[L, K])


def every_law():
    """Forces, constraints and actuators with laws of the library, including those of MJCF and SDF files."""
    round_ones = [pf.shape(kind, radius=L, length=0.2, density=K) for kind in ("cylinder", "cone")]
    bodies = [*[random_body(DRAW, n) for n in "abc"], pf.body("d", shape=round_ones)]
    joints = [pf.joint("base", "free", "world", "a")]
    joints += [pf.joint(n, "revolute", p, n, axis=(0, 1, 1)) for n, p in (("b", "a"), ("c", "b"), ("d", "a"))]
    points = pf.forces.path([(n, DRAW.normal(size=3)) for n in ("a", "b", "world")], falls=L)
    travel = SliderCrank("a", random_pose(DRAW), "c", ca.SX([0, 0, 0.1]), L.symbol, ca.SX(0.5))
    turns = [pf.forces.guide("b", 0.1, centre=(0, 0, 1), axis=(0, 3, 4), side=(0, 1, 2)), pf.forces.guide("c", L)]
    turns += [pf.forces.pulley("a", 0.2, axis=(1, 0, 0), centre=(0, 1, 0))]
    stops = [x for n, turn in zip("cab", turns, strict=True) for x in ((n, DRAW.normal(size=3)), turn)]
    rope = pf.forces.path([*stops, ("world", (0, 0, 5))], drums={"b": K}) + Path((travel,))
    both = coupling.JointSum(("b", "c"), ca.vertcat(K, 2))
    forces = [
        pf.forces.contact("foot", "a", shape_a=(0, 0, L), stiffness=1e4 * K, damping=0.1, friction=0.5),
        pf.forces.contact("hip", "a", "c", shape_a=pf.shape("sphere", radius=L, colour="#102030"), stiffness=10.0,
                           shape_b=pf.shape("capsule", radius=0.1, length=L, mass=2, placement=random_pose(DRAW))),
        pf.forces.contact("heel", "b", "world", shape_b=random_pose(DRAW), stiffness=10.0, static=0.5),
        pf.forces.stop("knee", "b", -1.0, K, stiffness=5.0, damping=0.1),
        pf.forces.stop("one side", "c", high=2 * L, stiffness=5.0),
        pf.forces.stop("rigid", "c", low=-2 * L, impact=K / 100),
        pf.forces.gear("teeth", "b", "c", ratio=2.0, stiffness=K, backlash=0.1, damping=0.2),
        pf.forces.cable("rope", "world", "b", point_a=(0, 0, L), length=2.0, stiffness=K, damping=0.2),
        pf.forces.belt("belt", "b", "d", radii=(L, 0.1), stiffness=K, damping=0.2),
        (ram := pf.forces.cylinder("ram", "world", "a", bore=0.1 * L, rod=0.02, stroke=(0.5, K), stiffness=1e7, friction=20.0)),
        pf.forces.path_spring("rubber", rope, stiffness=K, rest=1.5, damping=0.25, pulls_only=True),
        pf.forces.drag("air", "a", 0.5, wind=pf.forces.gust((1, 0, 0), intensity=2.0, seed=3)),
        pf.forces.tyre("tyre", "b", L, load=3.0, friction=0.5, curvature=-1.0, centre=(0, 0.1, 0)),
        pf.forces.road_tyre("wheel", "b", L, road=pf.forces.road([[0, 0.1]], x=[0.5], y=[0, 1]), vertical=1e5, friction=0.5),
        pf.forces.anti_roll_bar("bar", "b", "c", K, damping=0.3),
        pf.wrench("hull", "a", LinearDrag("a", ca.SX(DRAW.normal(size=(6, 6)))), axes="LOCAL"),
        pf.forces.potential("up", coupling.GravityCompensation("c", ca.SX([0, 0, 1]), ca.vertcat(0, 0, K))),
        pf.forces.potential("pull", coupling.LengthSpring(points, K.symbol, ca.SX(0.1), ca.SX(0.4))),
        pf.forces.dissipation("slow", coupling.LengthDamper(both, ca.SX([0.25, 0.5]))),
        pf.forces.potential("bias", coupling.ActuatorBias(both, ca.SX(0.25), K.symbol, "tendon", ca.SX(2))),
        pf.forces.dissipation("servo", coupling.ActuatorDamping(both, K.symbol, None, ca.SX(1))),
        pf.forces.kinetic_energy("rotor", coupling.LengthInertia(points, ca.SX(0.25))),
        pf.forces.potential("turn", coupling.TurnSpring("base", K.symbol, ca.SX([0, 0, 1, 0, 0, 0, 1]))),
        pf.forces.kinetic_energy("armature", coupling.FreeArmature("base", ca.SX(np.arange(1.0, 7.0)))),
        pf.forces.generalised_force(
            "carried",
            coupling.MotorGravityCompensation(
                True, "b", ca.SX([0, 1, 0]), ca.SX([0.1, 0, 0]), ("b", "c"), ca.SX(DRAW.normal(size=(3, 2))),
                ca.SX(DRAW.normal(size=(3, 2))), ca.SX(-1), K.symbol,
            ),
            joint="b",
        ),
    ]  # fmt: skip
    ends = coupling.LengthCoupling(coupling.one("d"), both, ca.SX([0, 1, 2, 0, 0]), ca.SX([0.1, 0.2]))
    fixed = coupling.LengthCoupling(points, None, ca.SX([0, 0, 0, 0, 0]), ca.SX([1.0, 0]))
    rows = [pf.holonomic("coupled", ends), pf.holonomic("fixed", fixed), pf.constraints.taut_cable("taut", rope, length=2 * L)]
    bent = coupling.PiecewiseCoupling("d", ("b",), ca.SX([0.5]), L.symbol, "c", ca.SX([[0, 1, 0.25, 0], [0.5, 1.125, 0, 2]]))
    rows.append(pf.holonomic("bent", bent))
    rows.append(pf.holonomic("wound up", coupling.PrescribedMotion("c", ca.SX([[0, 0, 0.5], [2, 1, 0]]))))
    motors = [pf.forces.transmission("tendon", {"b": K, ("base", 2): -1.0, ("base", 4): 2.0}, limits=(-1, np.inf))]
    motors += [pf.forces.winch("winch", rope, gear=L), pf.forces.winch("wound", points, drum=0.25, limits=(-1, 1))]
    motors += [*pf.forces.pressures(ram, limits=(0, 2e7))]
    motors += [pf.forces.adjustable_damper("oil", rope, limits=(0, 2))]
    return pf.mechanism("laws", bodies, joints, constraints=rows, forces=forces, actuators=motors, parameters=[L, K])


EVERYTHING = [every_joint, every_constraint, every_force, every_law]


@pytest.mark.parametrize("made", EVERYTHING, ids=lambda f: f.__name__)
def test_yaml_preserves_everything_to_the_last_digit(tmp_path, made):
    m = made()
    found, settings = again(m, tmp_path)
    assert found == m and settings == RunSettings()
    copy = pickle.loads(pickle.dumps(m))
    assert copy == m and again(copy, tmp_path)[0] == m


def kinds_in(item):
    """The classes of all data in an item, and the names of their kinds."""
    if isinstance(item, (tuple, list)):
        return {x for entry in item for x in kinds_in(entry)}
    if not is_data(item):
        return set()
    words = {k for k in (getattr(item, "kind", None), getattr(getattr(item, "kind", None), "name", None)) if isinstance(k, str)}
    return {type(item), *words, *(x for f in fields(item) for x in kinds_in(getattr(item, f.name)))}


PYTHON = {"AccelerationConstraint", "Coordinates", "Velocities"}
"""Classes that contain a function of the user, which no file can express."""


def test_every_class_and_kind_of_a_model_is_written():
    """The machines above contain every class of data in `model`, `parts` and `formats`, and every kind in their tables."""
    places = [importlib.import_module(f"pfaffian.{room}") for room in ("model", "parts", "formats")]
    rooms = [importlib.import_module(found.name)
             for x in places for found in pkgutil.walk_packages(x.__path__, f"{x.__name__}.")]  # fmt: skip
    classes = {c for room in rooms for c in vars(room).values() if inspect.isclass(c) and c.__module__ == room.__name__
               and c.__eq__ is Shape.__eq__}  # fmt: skip
    m, _ = pf.formats.parse_yaml(WRITTEN)
    found = {x for made in (*[f() for f in EVERYTHING], m) for x in kinds_in(made)}
    assert {c.__name__ for c in classes - found if c.__name__[0] != "_"} == PYTHON
    assert {*KINDS, *CLOSURES, *SIZES} <= found
    assert set(LAWS.values()) <= found


WRITTEN = """
parameters: {l: 0.5}
bodies: {rod: {mass: 1, com: [0, 0, -l], inertia: 0.1, shape: {kind: mesh, label: "package://robot/rod.stl"}}, lost: {mass: 0}}
joints: {hinge: {kind: revolute, parent: world, child: rod}, weld: {kind: fixed, parent: rod, child: lost}}
constraints: {phi: {kind: holonomic, phi: "hinge - sin(2*t)*l"}, eta: {kind: nonholonomic, eta: ["hinge' - 1"]}}
forces:
  V: {kind: potential, V: "cos(hinge)*l"}
  R: {kind: dissipation, R: "hinge'^2"}
  T: {kind: kinetic-energy, T: "hinge'^2/2"}
  f: {kind: generalised-force, f: -hinge, joint: hinge}
  w: {kind: wrench, body: rod, value: ["sin(t)", 0, 0, 0, 0, 0]}
  g: {kind: rebound, gap: "hinge + l", impact: 0.5}
run: {duration: 2, step: 0.002, integrator: rk4, saturate: true, q: {hinge: 0.25}, v: {hinge: 1}, parameters: {l: 0.75}}
"""


def test_a_yaml_file_is_written_as_it_was_read(tmp_path):
    m, settings = pf.formats.parse_yaml(WRITTEN)
    found, same = again(m, tmp_path, settings=settings)
    parts = zip(m.forces + m.constraints, found.forces + found.constraints, strict=True)
    said = (getattr(part, "of", part) for pair in parts for part in pair)
    texts = [[x.texts for x in vars(part).values() if hasattr(x, "texts")] for part in said]
    assert same == settings and found.bodies == m.bodies and texts[::2] == texts[1::2] and all(texts)
    state = [0.3], [0.7]
    close(pf.forward_dynamics(found, *state).v_dot, pf.forward_dynamics(m, *state).v_dot, PEER, "accelerations")


def test_unphysical_inertias_are_preserved(tmp_path):
    rod, hinge = pf.body("rod", mass=2.0, inertia=(1, 1, 3)), pf.joint("hinge", "revolute", "world", "rod")
    m = pf.mechanism("lenient", [rod], [hinge], lenient=True)
    assert again(m, tmp_path)[0] == m


def test_meshes_keep_their_file_and_scale(tmp_path):
    (tmp_path / "rod.stl").write_bytes(b"solid")
    rod = pf.body(
        "rod", 1.0, (1, 0, 0), 0.1, shape=pf.shape("mesh", file=tmp_path / "rod.stl", scale=(1, 2, 3), colour="#102030")
    )
    m = pf.mechanism("mesh", [rod], [pf.joint("hinge", "revolute", "world", "rod")])
    assert again(m, tmp_path)[0] == m and "file: rod.stl" in (tmp_path / "machine.yaml").read_text()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    with pytest.warns(pf.ModelWarning, match=rf"meshes lie outside its folder.*pf\.read\(\.\.\., allow=\['{tmp_path}'\]\)"):
        file = write(m, elsewhere / "machine.yaml")[0]
    with pytest.warns(pf.ModelWarning, match=r"pf\.read\(\.\.\., meshes=\["):
        write(m, elsewhere / "machine.xml")
    assert read(file)[0].body("rod").shapes[0].file is None and read(file, allow=[tmp_path])[0] == m


LAW = "{bodies: {a: {mass: 1, inertia: 1}}, joints: {h: {kind: revolute, parent: world, child: a}}, forces: {f: {kind: %s}}}"
TURN = "potential, V: {law: spring-of-turn, joint: h, stiffness: 1, rest: [0, 0, 0, 1]}"
LENGTH = "potential, V: {law: spring-of-length, along: {law: sum, joints: [h], weights: [1]}, stiffness: 1, low: 0, high: 1}"
STOP = "stop, joint: h, low: -1, stiffness: 1"
WRONG_LAWS = {
    "unknown": (TURN.replace("of-turn", "of-trn"), "'spring-of-trn' is unknown; did you mean 'spring-of-turn'? "),
    "no name": (TURN.replace("law: spring-of-turn, ", ""), "the key 'law' is missing"),
    "an inner law alone": ("potential, V: {law: plane, on: a}", "'plane' is unknown; "),
    "a law of another kind": (LENGTH.replace("law: sum", "law: gust"), "'gust' is unknown; there are sum, path"),
    "a number for a law": (
        LENGTH.replace("{law: sum, joints: [h], weights: [1]}", "1"),
        "forces.f.V.along: sum, path is needed",
    ),
    "a missing key": (TURN.replace("joint: h, ", ""), "the key 'joint' is missing"),
    "another key": (TURN.replace("rest", "res"), "the key 'res' is unknown; "),
    "an unknown joint": (TURN.replace("joint: h", "joint: k"), "force 'f': there is no joint 'k'; there are h"),
    "an unknown body": ("potential, V: {law: lifted, body: b, com: [0, 0, 0], force: [0, 0, 1]}", "there is no body 'b'"),
    "ragged rows": (
        TURN.replace("rest: [0, 0, 0, 1]", "rest: [[1], 2]"),
        "a number, a list of numbers, or rows of equal length",
    ),
    "a wind": ("drag, body: a, area: 1, wind: {law: disk}", "'disk' is unknown"),
    "a stop: half a component": (STOP + ", component: 0.5", "a whole number from 0 to 5 is needed"),
    "a stop: soft": (STOP.replace("stiffness: 1", "stiffness: -1"), "force 'f': stiffness -1 must be above zero"),
    "a stop: an unknown joint": (STOP.replace("joint: h", "joint: k"), "there is no joint 'k'"),
    "a belt to an unknown pulley": ("belt, driven: h, by: k, radii: [1, 2], stiffness: 1", "there is no joint 'k'"),
    "a belt with one radius": ("belt, driven: h, by: k, radii: [1], stiffness: 1", "a list of length 2 is needed"),
    "a contact of a mesh": (
        "contact, body_a: a, stiffness: 1, shape_a: {kind: mesh, label: a.stl}",
        "shape_a: a mesh cannot touch",
    ),
    "a contact of two numbers": ("contact, body_a: a, stiffness: 1, shape_a: [1, 2]", "a list of length 3 is needed"),
    "a plane of another key": (
        "contact, body_a: a, stiffness: 1, shape_b: {normal: [0, 0, 1]}",
        "the key 'normal' is unknown",
    ),
}


SLIDE_AND_TABLE = JointKind("slide and table", (JointFactor(KINDS["prismatic"].factors[0].subgroup, (1.0, 0.0, 0.0), "way"),
                                                KINDS["planar"].factors[0]))  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "indices"),
    [(KINDS["planar"], [0, 1]), (KINDS["schoenflies"], [0, 1]), (KINDS["free"], [0, 1, 2]), (KINDS["cylindrical"], []),
     (KINDS["translation"], []), (KINDS["spherical"], []), (KINDS["universal"], []), (SLIDE_AND_TABLE, [1, 2])],
    ids=lambda x: getattr(x, "name", ""),
)  # fmt: skip
def test_velocities_along_axes_that_turn_with_the_child(kind, indices):
    """A slide along the axis of rotation does not turn."""
    assert turned(kind) == indices
    assert [x.axis for x in mujoco_joints(SLIDE_AND_TABLE)] == [
        (1.0, 0.0, 0.0),
        (1.0, 0.0, 0.0),
        (0.0, 1.0, 0.0),
        (0.0, 0.0, 1.0),
    ]


@pytest.mark.parametrize(("text", "words"), WRONG_LAWS.values(), ids=WRONG_LAWS)
def test_wrong_laws_are_refused_with_the_place(text, words):
    with pytest.raises(ModelError) as error:
        pf.formats.parse_yaml(LAW % text)
    assert words in str(error.value) and "line 1: forces.f" in str(error.value)


@pytest.mark.parametrize(
    ("gears", "words"),
    [
        ("[]", "gears must be a dict"),
        ("[{joint: h}]", "the key 'gear' is missing"),
        ("[{joint: h, gear: 1}, {joint: h, gear: 2}]", "a velocity is listed twice; list it once"),
        ("[{joint: h, component: 7, gear: 1}]", "a whole number from 0 to 5 is needed"),
        ("[{joint: k, gear: 1}]", "actuator 'm'"),
    ],
)
def test_wrong_transmissions_are_refused_by_name(gears, words):
    text = (LAW % STOP)[:-1] + ", actuators: {m: {gears: " + gears + "}}}"
    with pytest.raises(ModelError) as error:
        pf.formats.parse_yaml(text)
    assert words in str(error.value)


def test_an_mjcf_file_can_be_written_as_yaml(tmp_path):
    pytest.importorskip("mujoco")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)
        m, settings = pf.formats.parse_mjcf(MACHINE)
    found, same = again(m, tmp_path, settings=settings)
    assert found == m and same == settings and len(m.forces) == 8 and len(m.constraints) == 3


MACHINE = """<mujoco><worldbody><site name="o" pos="0 0 2"/>
  <body name="a"><freejoint name="base"/><geom size=".1" mass="1"/><site name="s" pos=".1 0 0"/></body>
  <body name="b" pos="1 0 0" gravcomp=".5"><joint name="h" axis="0 1 0" frictionloss=".1"/><geom size=".1" mass="1"/>
   <body name="c"><joint name="g" type="ball" stiffness="2"/><geom size=".1" mass="1" pos="0 0 .1"/></body></body>
  <body name="d"><joint name="i" type="slide"/><geom size=".1" mass="1"/></body></worldbody>
 <tendon><spatial name="rope" stiffness="3" damping=".1"><site site="o"/><site site="s"/></spatial>
  <fixed name="t" stiffness="1"><joint joint="h" coef=".5"/><joint joint="i" coef="2"/></fixed></tendon>
 <equality><joint joint1="h" joint2="i" polycoef="0 1 2 0 0"/><connect body1="a" body2="d" anchor="0 0 0"/>
  <tendon tendon1="t"/></equality>
 <actuator><motor name="u" tendon="t"/><position name="p" joint="h" kp="3" kv="1"/></actuator></mujoco>"""


# -- URDF and MJCF -----------------------------------------------------------------------------------------------------------


def tree(kinds=("revolute", "prismatic", "planar", "fixed"), plain=False):
    """A chain of joints of these kinds on a free base, with random frames on both bodies unless `plain`."""
    bodies, joints, last = [random_body(DRAW, "hull")], [pf.joint("base", "free", "world", "hull")], "hull"
    for kind in kinds:
        given = {"damping": 0.3, "armature": 0.2} if kind in ("revolute", "prismatic") else {}
        at = {} if plain else {"placement": random_pose(DRAW), "child_placement": random_pose(DRAW)}
        bodies.append(random_body(DRAW, f"a {kind}"))
        joints.append(pf.joint(kind, kind, last, f"a {kind}", axis=DRAW.normal(size=3), **at, **given))
        last = f"a {kind}"
    gear = pf.body("gear", 1.0, (0, 0, 0.1), 0.1, shape=pf.shape("cylinder", radius=0.1, length=0.2, colour=(1, 0, 0, 0.5)))
    joints.append(pf.joint("gear", "revolute", "hull", "gear", mimic=pf.mimic({"revolute": -3.0}, 0.1)))
    pin = pf.closure("pin", "revolute", "hull", last, placement_a=(1, 0, 0), axis=(0, 1, 0))
    rope = pf.spring("rope", "world", last, point_a=(0, 0, 2), stiffness=5.0, rest=0.5, damping=1.0)
    motors = [pf.actuator("motor", "revolute", gear=2.0, limits=(-1, 1))]
    return pf.mechanism("tree", [*bodies, gear], joints, constraints=[pin], forces=[rope], actuators=motors)


def state_of(m):
    q, v = m.neutral(), DRAW.normal(size=m.nv)
    for j in m.joints:
        free = m.q_slices[j.name]
        stop = free.stop - 4 * (j.name in m.quaternions)
        q[free.start : stop] = DRAW.normal(size=stop - free.start)
    for turn in m.quaternions.values():
        x = DRAW.normal(size=4)
        q[turn] = x / np.linalg.norm(x)
    return q, v


def alike(m, found):
    assert (found.q_names, found.v_names, found.u_names) == (m.q_names, m.v_names, m.u_names)
    q, v = state_of(m)
    u = DRAW.normal(size=m.nu)
    close(pf.forward_dynamics(found, q, v, u).v_dot, pf.forward_dynamics(m, q, v, u).v_dot, PEER, "accelerations")


def test_urdf_with_its_sidecar_moves_alike(tmp_path):
    m = tree()
    with pytest.warns(ModelWarning, match="URDF cannot represent: the axis of joint 'revolute' away from the origin"):
        files = write(m, tmp_path / "tree.urdf")
    assert [f.name for f in files] == ["tree.urdf", "tree.yaml"]
    found, _ = read(files[1])
    alike(m, found)
    gear, cylinder = found.body("gear").shapes, m.body("gear").shapes
    assert [(s.kind, s.colour) for s in gear] == [(s.kind, s.colour) for s in cylinder]
    assert pf.formats.read_urdf(files[0], loops=False).nv == m.nv + 1  # without its sidecar, it has neither loop nor gear


def test_a_urdf_file_is_written_as_it_was_read(tmp_path):
    mass = '<inertial><origin xyz="0 0 .5"/><mass value="2"/>'
    mass += '<inertia ixx="1" iyy="1.5" izz="1" ixy=".1" ixz="0" iyz="0"/></inertial>'
    text = f"""<robot name="arm"><link name="base"/><link name="a">{mass}
    <visual><origin xyz="1 2 3"/><geometry><box size="1 2 3"/></geometry>
    <material name="m"><color rgba=".1 .2 .3 1"/></material></visual></link><link name="b">{mass}</link>
    <joint name="j" type="revolute"><origin xyz="0 1 0" rpy=".1 .2 .3"/>
    <parent link="base"/><child link="a"/><axis xyz="0 0 1"/>
    <limit lower="-1" upper="2" effort="3" velocity="1"/><dynamics damping=".5"/></joint>
    <joint name="k" type="prismatic"><parent link="a"/><child link="b"/><axis xyz="0 3 4"/></joint></robot>"""
    m = parse_urdf(text)
    assert again(m, tmp_path, ".urdf")[0] == m
    floating = parse_urdf(text, base="free")
    assert again(floating, tmp_path, ".urdf")[0] == floating


def qpos_of(model, m, q):
    """MuJoCo's coordinates at q; its quaternions have the scalar first."""
    at = {model.joint(i).name: model.jnt_qposadr[i] for i in range(model.njnt)}
    x, places = model.qpos0.copy(), {"x": 0, "y": 1, "z": 2, "qw": 0, "qx": 1, "qy": 2, "qz": 3}
    for name, value in zip(m.q_names, q, strict=True):
        stem, _, label = name.rpartition(".")
        behind = 3 if stem == "base" and label.startswith("q") else 0
        x[at[name] if name in at else at[stem] + places[label] + behind] = value
    return x


CHAINS = (("revolute", "spherical", "cylindrical"), ("universal", "planar", "prismatic"), ("translation", "schoenflies"))


@pytest.mark.parametrize("kinds", CHAINS, ids="-".join)
def test_mjcf_moves_in_mujoco_as_in_the_library(tmp_path, kinds):
    """Positions and accelerations of all bodies at rest agree, without closures and gears, which MuJoCo makes soft."""
    mujoco = pytest.importorskip("mujoco")
    m = tree(("revolute", *[k for k in kinds if k != "revolute"])).with_(constraints=[])
    m = m.with_(joints=[j for j in m.joints if not j.mimic], bodies=[b for b in m.bodies if b.name != "gear"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)
        model = mujoco.MjModel.from_xml_path(str(write(m, tmp_path / "tree.xml")[0]))
    data, (q, _), u = mujoco.MjData(model), state_of(m), [0.7]
    data.qpos[:], data.ctrl[:] = qpos_of(model, m, q), u
    mujoco.mj_forward(model, data)
    v_dot, places = pf.forward_dynamics(m, q, np.zeros(m.nv), u).v_dot, pf.forward_kinematics(m, q)
    for b in m.bodies:
        close(data.body(b.name).xpos, places[b.name].position, PEER, "positions", scale=1.0)
        J = np.zeros((6, model.nv))
        mujoco.mj_jacBody(model, data, J[:3], J[3:], model.body(b.name).id)
        ours = pf.jacobian(m, b.name, q, frame="LOCAL_WORLD_ALIGNED") @ v_dot
        close(J @ data.qacc, ours, PEER, "accelerations")


def test_loops_and_gears_are_soft_in_mjcf(tmp_path):
    mujoco = pytest.importorskip("mujoco")
    m = tree(("revolute", "spherical"), plain=True)
    with pytest.warns(ModelWarning, match=r"that constraint 'pin' holds exactly, since MuJoCo's equality is soft"):
        model = mujoco.MjModel.from_xml_path(str(write(m, tmp_path / "tree.xml")[0]))
    kinds = [mujoco.mjtEq(k).name for k in model.eq_type]
    assert kinds == ["mjEQ_JOINT", "mjEQ_CONNECT", "mjEQ_CONNECT"] and model.nv == m.nv + 1
    assert list(model.eq_data[0, :2]) == pytest.approx([0.1, -3.0]) and list(model.geom_rgba[0]) == pytest.approx(
        [1, 0, 0, 0.5]
    )


@pytest.mark.parametrize("limits", [(-1.0, np.inf), (-np.inf, 2.0), (-1.0, 2.0)])
def test_one_sided_limits_are_left_out_of_mjcf_with_a_warning(tmp_path, limits):
    """MJCF's range needs both limits."""
    rod, hinge = pf.body("rod", 1.0, inertia=0.1), pf.joint("hinge", "revolute", "world", "rod", limits=limits)
    m = pf.mechanism("m", [rod], [hinge])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        text = write(m, tmp_path / "m.xml")[0].read_text()
    whole = all(np.isfinite(limits))
    assert ("range=" in text) == whole
    assert [str(w.message) for w in caught] == (
        [] if whole else ["MJCF cannot represent: the one-sided limit of joint 'hinge'"]
    )


def written_for_mujoco(m, tmp_path):
    """The MJCF file of a mechanism, as MuJoCo's model, and the warning about what it lacks."""
    mujoco = pytest.importorskip("mujoco")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        path = write(m, tmp_path / "m.xml")[0]
    return mujoco.MjModel.from_xml_path(str(path)), path, " ".join(str(w.message) for w in caught)


def test_mujoco_gets_inertias_where_a_body_has_none(tmp_path):
    """A thread with a bob, thin rods along and across the axes, and massless bodies: the raised values change no motion."""
    mujoco = pytest.importorskip("mujoco")
    turn = np.array(ca.DM(pf.pose(rpy=(0.3, 0.5, -0.8)).R))
    oblique = turn @ np.diag([0.0, 0.02, 0.02]) @ turn.T
    bodies = [
        pf.body("thread"), pf.body("bob", 0.3, com=(0, 0, -0.8)), pf.body("hook"),
        pf.body("rod", 1.2, (0.3, 0, 0), (0, 0.04, 0.04)), pf.body("spoke", 0.7, (0, 0.1, 0.2), (oblique + oblique.T) / 2),
    ]  # fmt: skip
    joints = [
        pf.joint("a", "revolute", "world", "thread", axis=(0, 1, 0)), pf.joint("b", "prismatic", "thread", "bob"),
        pf.joint("c", "revolute", "world", "hook", axis=(1, 0, 0)), pf.joint("d", "revolute", "hook", "rod", axis=(0, 1, 1)),
        pf.joint("e", "revolute", "rod", "spoke", axis=(0, 1, 0), placement=(0.6, 0, 0)),
    ]  # fmt: skip
    m = pf.mechanism("threads", bodies, joints)
    model, path, words = written_for_mujoco(m, tmp_path)
    assert "zero masses and moments of inertia" in words and all(f"of {b.name!r}" in words for b in bodies)
    q, data = [0.3, -0.1, 0.2, 0.4, 0.5], mujoco.MjData(model)
    data.qpos[:] = q
    mujoco.mj_forward(model, data)
    expected = pf.forward_dynamics(m, q).v_dot
    close(data.qacc, expected, PEER, "accelerations")
    close(pf.forward_dynamics(pf.read(path)[0], q).v_dot, expected, PEER, "accelerations of the file")
    whole = pf.mechanism("ball", [pf.body("ball", 2.0, inertia=0.1)], [pf.joint("j", "spherical", "world", "ball")])
    assert not written_for_mujoco(whole, tmp_path)[2]


@pytest.mark.parametrize("size", [1e-2, 1e-4, 1e-6])
def test_mujoco_gets_light_bodies_as_they_are_or_not_at_all(tmp_path, size):
    """A mirror on a hinge with a wheel, of silicon: the smaller ones would be raised a thousandfold. A bead on a thread: what
    is written for a moment of zero has to be small beside its mass times the squared length of the thread."""
    mass = 2e3 * size**3
    bodies = [pf.body("mirror", mass, inertia=mass * size**2), pf.body("wheel", mass / 10, inertia=1e-3 * mass * size**2)]
    joints = [pf.joint("a", "revolute", "world", "mirror", axis=(0, 1, 0)), pf.joint("b", "revolute", "mirror", "wheel")]
    bead = pf.mechanism("bead", [pf.body("bead", 1.0, com=(size, 0, 0))], [pf.joint("a", "revolute", "world", "bead")])
    for m in (pf.mechanism("mirror", bodies, joints), bead):
        if size > 1e-3:
            written_for_mujoco(m, tmp_path)
            M = pf.mass_matrix(pf.read(tmp_path / "m.xml")[0], np.zeros(m.nq))
            close(M, pf.mass_matrix(m, np.zeros(m.nq)), ZERO, "M")
        else:
            with pytest.raises(ModelError, match="MuJoCo takes none below"):
                write(m, tmp_path / "m.xml")


KINDS_OF_MJCF = ("revolute", "universal", "spherical", "cylindrical", "translation", "planar", "schoenflies", "free")


@pytest.mark.parametrize("kind", KINDS_OF_MJCF)
@pytest.mark.parametrize("parent", ["world", "rod"])
def test_names_that_mjcf_changes_are_told(tmp_path, kind, parent):
    bodies = [pf.body(n, 1.0, inertia=0.1) for n in ("rod", "ball")]
    joints = [pf.joint("hinge", "revolute", "world", "rod"), pf.joint("base", kind, parent, "ball")]
    m = pf.mechanism("m", bodies, joints)
    _, path, words = written_for_mujoco(m, tmp_path)
    read = pf.read(path)[0]
    lost = {*m.q_names, *m.v_names} - {*read.q_names, *read.v_names}
    assert all(n in words for n in lost) and bool(lost) == bool(words)


@pytest.mark.filterwarnings("ignore::pfaffian.errors.ModelWarning")
def test_laminas_and_rods_are_inertias_that_mujoco_accepts(tmp_path):
    """The largest moment is the sum of the others, or two are equal and one is zero; axes are the body's, or turned."""
    mujoco = pytest.importorskip("mujoco")
    flatness = 1e-11  # relative size that the writer gives to moments that are zero, with rounding
    for seed in range(40):
        rng = np.random.default_rng(seed)
        a, b = rng.uniform(0.1, 1, 2)
        moments = rng.permutation([(a, b, a + b), (0, a, a)][seed % 2])
        R = np.linalg.qr(rng.normal(size=(3, 3)))[0] if seed % 3 else np.eye(3)
        I = R @ np.diag(moments) @ R.T
        six = [I[i, k] for i, k in ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))]
        flat = pf.mechanism("flat", [pf.body("a", mass=1, inertia=six)], [pf.joint("j", "free", "world", "a")], lenient=True)
        (file,) = pf.write(pf.mechanism("flat", flat.bodies, flat.joints), tmp_path / "m.xml")
        M = mujoco.MjModel.from_xml_path(str(file))
        close(np.sort(M.body_inertia[1]), np.sort(moments), flatness, f"moments, seed {seed}")


def test_coordinates_of_followers_are_told(tmp_path):
    bodies = [pf.body(n, mass=1, inertia=1) for n in "ab"]
    gear = pf.joint("gear", "revolute", "a", "b", mimic=pf.mimic({"wheel": 2}))
    m = pf.mechanism("m", bodies, [pf.joint("wheel", "revolute", "world", "a"), gear])
    with pytest.warns(ModelWarning, match="joint 'gear' follows exactly, .* so that the joint has a coordinate of its own"):
        pf.write(m, tmp_path / "m.xml")


@pytest.mark.parametrize("length", [101, 128])
def test_long_names_survive_mjcf(tmp_path, length):
    name = "n" * length
    m = pf.mechanism("m", [pf.body(name, mass=1, inertia=1)], [pf.joint(name, "revolute", "world", name)],
                     actuators=[pf.actuator(name, name)])  # fmt: skip
    (file,) = pf.write(m, tmp_path / "m.xml")
    found = pf.read(file)[0]
    assert (found.q_names, found.u_names, found.bodies[0].name) == (m.q_names, m.u_names, name)


def test_an_order_that_mjcf_changes_is_told(tmp_path):
    bodies = [pf.body(n, 1.0, inertia=0.1) for n in "abcd"]
    ends = (("1", "world", "a"), ("2", "world", "b"), ("3", "a", "c"), ("4", "b", "d"))
    m = pf.mechanism("m", bodies, [pf.joint(n, "revolute", *pair) for n, *pair in ends])
    _, path, words = written_for_mujoco(m, tmp_path)
    assert pf.read(path)[0].q_names == ("1", "3", "2", "4") and "the order of the joints, but has 1, 3, 2, 4" in words


def test_a_free_joint_away_from_the_origin_keeps_its_coordinates(tmp_path):
    base = pf.joint("base", "free", "world", "ball", child_placement=(0.3, -0.2, 0.1))
    m = pf.mechanism("m", [pf.body("ball", 1.0, inertia=0.1)], [base])
    q = np.array([0.1, 0.2, 0.3, 0.0, 0.6, 0.0, 0.8])
    places = [pf.forward_kinematics(x, q)["ball"] for x in (m, pf.read(written_for_mujoco(m, tmp_path)[1])[0])]
    close(places[1].position, places[0].position, PEER, "positions")


# -- refusals ----------------------------------------------------------------------------------------------------------------

ROD = pf.body("rod", mass=1.0, com=(0, 0, -L), inertia=0.1)


def machine(kind="revolute", **given):
    body = pf.body("rod", mass=1.0, com=(0, 0, -0.5), inertia=0.1)
    more = {
        k: given.pop(k)
        for k in ("constraints", "forces", "actuators", "bodies", "coordinates", "velocities", "parameters")
        if k in given
    }
    return pf.mechanism("m", more.pop("bodies", [body]), [pf.joint("j", kind, "world", "rod", **given)], **more)


f = lambda k: k.q[0]  # noqa: E731
slip = pf.rolling.disk("c", "rod", 0.1)
REFUSED = {
    "holonomic": (".yaml", lambda: machine(constraints=[pf.holonomic("c", f)]), "constraint 'c': phi is a function in Python"),
    "nonholonomic": (
        ".yaml",
        lambda: machine(constraints=[pf.nonholonomic("c", lambda k: k.v[0])]),
        "'c': eta is a function in Python",
    ),
    "acceleration": (
        ".yaml",
        lambda: machine(constraints=[pf.constraints.acceleration_constraint("c", lambda k: ([[1]], [0]))]),
        "'c': its rows are a function in Python",
    ),
    "active": (
        ".yaml",
        lambda: machine(constraints=[pf.constraints.active_while(pf.closure("c", "weld", "world", "rod"), f)]),
        "'c': its condition is a function in Python",
    ),
    "servo": (
        ".yaml",
        lambda: machine(constraints=[pf.servo(pf.holonomic("c", f), lambda k: [[1]])]),
        "its directions are a function",
    ),
    "height": (
        ".yaml",
        lambda: machine("free", constraints=[slip.parts[0]]),
        "'c height' is the height of a contact without its slip",
    ),
    "rate": (
        ".yaml",
        lambda: machine("free", constraints=[pf.rolling.wheel("c", "rod", 1, plane=pf.rolling.plane(rate=lambda t: t))]),
        "its rate is a function",
    ),
    "potential": (".yaml", lambda: machine(forces=[pf.forces.potential("f", f)]), "force 'f': V is a function in Python"),
    "wrench": (
        ".yaml",
        lambda: machine(forces=[pf.wrench("f", "rod", lambda k: [0] * 6)]),
        "force 'f': value is a function in Python",
    ),
    "wind": (
        ".yaml",
        lambda: machine(forces=[pf.forces.drag("f", "rod", 1, wind=lambda k: [0] * 3)]),
        "force 'f': wind is a function",
    ),
    "speed": (
        ".yaml",
        lambda: machine(forces=[pf.forces.propeller("f", "rod", f, thrust=1)]),
        "force 'f': its speed is a function",
    ),
    "edge": (
        ".yaml",
        lambda: pf.mechanism(
            "m",
            [ROD],
            [pf.edge("e", "world", "rod", lambda k: pf.pose())],
            parameters=[L],
            coordinates=[pf.coordinates("c", ["s"], ["s"], lambda q: [[1]])],
        ),
        "coordinates 'c' are functions",
    ),
    "parameter": (
        ".yaml",
        lambda: machine(forces=[pf.spring("s", "world", "rod", stiffness=(p := pf.Parameter("a b", 1)))], parameters=[p]),
        "parameter 'a b': in a file, its name may have letters",
    ),
    "function": (
        ".yaml",
        lambda: machine(bodies=[pf.body("rod", mass=ca.sinh(L.symbol), inertia=1)], parameters=[L]),
        "expressions in a file lack",
    ),
    "long": (
        ".yaml",
        lambda: machine(
            bodies=[pf.body("rod", mass=sum(ca.sin(i * L.symbol) ** 2 for i in range(200)), inertia=1)], parameters=[L]
        ),
        "more than 1000 characters",
    ),
    "suffix": (".step", machine, "the suffix of the file must be one of .yaml, .yml, .urdf, .xml, .mjcf"),
    "urdf kind": (".urdf", lambda: machine("helical", pitch=0.1), "joint 'j': URDF has no helical joints; write YAML"),
    "urdf parameter": (
        ".urdf",
        lambda: machine(bodies=[ROD], parameters=[L]),
        "body 'rod': it depends on a parameter, and only YAML files have parameters",
    ),
    "urdf spring": (".urdf", lambda: machine(stiffness=1.0), "joint 'j': URDF has no joint springs"),
    "urdf damping": (".urdf", lambda: machine("planar", damping=1.0), "URDF has no damping or armature on a planar joint"),
    "urdf distribution": (
        ".urdf",
        lambda: machine("planar", distribution=["vx"]),
        "URDF has no distributions of velocities; write YAML",
    ),
    "mjcf kind": (".xml", lambda: machine("helical", pitch=0.1), "joint 'j': MJCF has no helical joints; write YAML"),
    "mjcf closure": (
        ".xml",
        lambda: machine("free", constraints=[pf.closure("c", "planar", "world", "rod")]),
        "MJCF has no planar closure",
    ),
    "mjcf force": (
        ".xml",
        lambda: machine(forces=[pf.forces.drag("f", "rod", 1)]),
        "the only forces that are written as MJCF are springs between points",
    ),
    "mjcf motor": (
        ".xml",
        lambda: machine("planar", actuators=[pf.actuator("m", "j")]),
        "no motor along an axis that turns with the body",
    ),
    "mjcf damping": (".xml", lambda: machine("planar", damping=(1, 2, 3)), "do not turn with the body"),
    "mjcf spring": (
        ".xml",
        lambda: machine("spherical", stiffness=1.0),
        "one damping and one armature per orientation, and other springs",
    ),
    "mjcf coupled": (
        ".xml",
        lambda: machine("cylindrical", damping=[[2, 1], [1, 2]]),
        "its damping couples several velocities",
    ),
}


@pytest.mark.parametrize(("suffix", "made", "words"), REFUSED.values(), ids=REFUSED)
def test_parts_that_a_format_cannot_express_are_refused_by_name(tmp_path, suffix, made, words):
    with pytest.raises(ModelError, match=words):
        write(made(), tmp_path / f"machine{suffix}")
    assert not list(tmp_path.iterdir())


def test_a_file_of_another_robot_is_not_overwritten(tmp_path):
    side = tmp_path / "machine.yaml"
    side.write_text("closed_loop: []")
    with pytest.raises(ModelError, match=r"'machine.yaml' exists and does not read 'machine.urdf'"):
        write(machine(), tmp_path / "machine.urdf")
    assert side.read_text() == "closed_loop: []" and not (tmp_path / "machine.urdf").exists()
    side.unlink()
    assert write(machine(), tmp_path / "machine.urdf") == write(machine(), tmp_path / "machine.urdf")


def test_files_that_cannot_be_written(tmp_path):
    with pytest.raises(ModelError, match="cannot be written"):
        write(machine(), tmp_path / "missing" / "machine.yaml")
    with pytest.raises(ModelError, match="settings must be RunSettings, as"):
        write(machine(), tmp_path / "machine.yaml", {"duration": 1})


def test_unphysical_inertias_are_not_written_for_mujoco(tmp_path):
    rod, hinge = pf.body("rod", mass=2.0, inertia=(1, 1, 3)), pf.joint("hinge", "revolute", "world", "rod")
    with pytest.raises(pf.ModelError, match=r"body 'rod': .*MuJoCo refuses such a body; correct it, or write YAML"):
        pf.write(pf.mechanism("pendulum", [rod], [hinge], lenient=True), tmp_path / "m.xml")
