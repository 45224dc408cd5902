"""What a joint that closes a loop carries, read from and written to every kind of file that can say it."""

import casadi as ca
import numpy as np
import pytest

import pfaffian as pf
from tests.loops_cut_anywhere import FOUR_BAR, PARALLELOGRAM, linkage
from tests.tolerance import PEER_CONSTRAINED, close

FLOAT = 1e-6
"""Numbers of a USD file have the digits of a float."""

CARRIED = {"stiffness": 2.0, "rest": 0.3, "damping": 0.5, "armature": 0.2, "limits": (-3.0, 2.5), "effort": 7.0}


def acceleration(m: pf.Mechanism, u: float = 0.0) -> float:
    """Of the crank, at 0.4 rad and 2 rad/s."""
    at = pf.assemble(m, {"A": 0.4}, v={"A": 2.0})
    return float(pf.forward_dynamics(m, at.q, at.v, u=np.full(m.nu, u)).v_dot[m.v_names.index("A")])


def test_yaml_writes_and_reads_what_a_closure_carries(tmp_path):
    motor = pf.actuator("motor", "C", gear=2.0, limits=(-3, 3))
    seal = pf.forces.joint_friction("seal", "C", 0.2, smooth=0.1)
    turns = pf.Parameter("turns", 0.5)
    m = linkage(
        FOUR_BAR, "C", {"C": CARRIED | {"near": turns, "friction": 0.1}}, actuators=[motor], forces=[seal], parameters=[turns]
    )
    pf.write(m, tmp_path / "m.yaml")
    again, _ = pf.read(tmp_path / "m.yaml")
    (c,), (d,) = m.constraints, again.constraints
    assert d.limits == c.limits and d.effort == c.effort and again.value(d.near) == m.value(c.near) == 0.5
    close(acceleration(again, 0.7), acceleration(m, 0.7), PEER_CONSTRAINED, "acceleration")
    pf.write(again, tmp_path / "again.yaml")
    assert (tmp_path / "again.yaml").read_text() == (tmp_path / "m.yaml").read_text()


def test_yaml_keeps_the_zero_of_a_universal_closure(tmp_path):
    ends = {"placement_a": pf.pose((0.1, 0, 0), rpy=(0.2, 0.1, 0.4)), "axis": (1, 1, 0), "axis_b": (0, 0, 1)}
    joint = pf.closure("U", "universal", "world", "b", stiffness=(1.0, 2.0), rest=(0.1, 0.2), **ends)
    body, base = pf.body("b", mass=1.0, inertia=0.1), pf.joint("base", "free", "world", "b")
    m = pf.mechanism("m", [body], [base], constraints=[joint])
    pf.write(m, tmp_path / "m.yaml")
    again, _ = pf.read(tmp_path / "m.yaml")
    q = pf.assemble(m, [0.1, 0.0, 0.0, 0.3, 0.1, 0.2, 0.9]).q
    angles = [pf.compile_terms(x, {"U": lambda T: T.kinematics.joint("U")}, backend="numpy")(q)["U"] for x in (m, again)]
    close(angles[1], angles[0], PEER_CONSTRAINED, "angles")
    assert np.abs(angles[0]).max() > 0.05


CUTS = tuple(PARALLELOGRAM)
SAME = 1e-12
"""A machine that is read from text and one made in Python: the rounding of a mass matrix of three bodies."""

BODY = '<mass value="1"/><inertia ixx=".03" iyy=".02" izz=".04" ixy="0" ixz="0" iyz="0"/>'
COM = np.array([0.1, 0.0, 0.2])


def numbers(x) -> str:
    return " ".join(repr(float(i)) for i in x)


def outwards(cut: str) -> list[tuple[str, str, str, np.ndarray, np.ndarray, float]]:
    """(joint, parent, child, place in the parent, place in the child, sign of its axis) from the world outwards."""
    found, reached, waiting = [], {"world"}, [n for n in CUTS if n != cut]
    while waiting:
        name = next(n for n in waiting if {PARALLELOGRAM[n].one, PARALLELOGRAM[n].other} & reached)
        waiting.remove(name)
        h = PARALLELOGRAM[name]
        at, there = np.array(h.at, float), np.array(h.there, float)
        along = h.one in reached
        found.append((name, h.one, h.other, at, there, 1.0) if along else (name, h.other, h.one, there, at, -1.0))
        reached |= {h.one, h.other}
    return found


def urdf(cut: str, closing) -> str:
    """The parallelogram as URDF, whose links have their frames at the joints that lead to them.

    closing: (name, one, other, place in one, place in the other) -> the elements that close the loop.
    """
    shift, parts = {"world": np.zeros(3)}, ['<link name="world"/>']
    for name, parent, child, at, there, sign in outwards(cut):
        shift[child] = there
        parts.append(f'<link name="{child}"><inertial><origin xyz="{numbers(COM - there)}"/>{BODY}</inertial></link>')
        parts.append(
            f'<joint name="{name}" type="continuous"><parent link="{parent}"/><child link="{child}"/>'
            f'<origin xyz="{numbers(at - shift[parent])}"/><axis xyz="0 {sign} 0"/></joint>'
        )
    h = PARALLELOGRAM[cut]
    ends = (np.array(x, float) - shift[body] for x, body in ((h.at, h.one), (h.there, h.other)))
    return f'<robot name="p">{"".join(parts)}{closing(cut, h.one, h.other, *map(numbers, ends))}</robot>'


INSIDE = '<dynamics damping="0.5" friction="0"/><limit lower="-3" upper="2.5" effort="7" velocity="1"/>'
CLOSING = {
    "Isaac Sim": lambda n, a, b, x, y: (
        f'<loop_joint name="{n}" type="revolute"><link1 link="{a}" xyz="{x}"/><link2 link="{b}" xyz="{y}"/>'
        f'<axis xyz="0 1 0"/>{INSIDE}</loop_joint>'
    ),
    "URDF+": lambda n, a, b, x, y: (
        f'<loop name="{n}" type="revolute"><predecessor link="{a}"><origin xyz="{x}"/></predecessor>'
        f'<successor link="{b}"><origin xyz="{y}"/></successor><axis xyz="0 1 0"/>{INSIDE}</loop>'
    ),
    "urdfdom": lambda n, a, b, x, y: (
        f'<constraint name="{n}" type="revolute"><parent link="{a}"/><parent_origin xyz="{x}"/><parent_axis xyz="0 1 0"/>'
        f'<child link="{b}"/><child_origin xyz="{y}"/><child_axis xyz="0 1 0"/>{INSIDE}</constraint>'
    ),
    "Gazebo": lambda n, a, b, x, y: (
        f'<gazebo><joint name="{n}" type="revolute"><parent>{a}</parent><child>{b}</child><pose>{y} 0 0 0</pose><axis>'
        "<xyz>0 1 0</xyz><dynamics><damping>0.5</damping></dynamics><limit><lower>-3</lower><upper>2.5</upper>"
        "<effort>7</effort></limit></axis></joint></gazebo>"
    ),
    "two parents": lambda n, a, b, x, y: (
        f'<link name="tip"/><joint name="weld" type="fixed"><parent link="{b}"/><child link="tip"/><origin xyz="{y}"/></joint>'
        f'<joint name="{n}" type="revolute"><parent link="{a}"/><child link="tip"/><origin xyz="{x}"/><axis xyz="0 1 0"/>'
        f"{INSIDE}</joint>"
    ),
}


def expected(cut: str, u: float = 0.0, **more) -> dict[str, float]:
    carried = {"damping": 0.5, "limits": (-3, 2.5), "effort": 7.0} | more
    m = linkage(PARALLELOGRAM, cut, {cut: carried}, actuators=[pf.actuator(cut, cut)])
    return moving(m, cut, {cut: u})


def moving(m: pf.Mechanism, cut: str, u: dict[str, float]) -> dict[str, float]:
    """Accelerations of the tree's joints at 0.4 rad and 2 rad/s of the crank, by name."""
    by = "D" if "A" not in m.q_names else "A"
    at = pf.assemble(m, {by: 0.4}, v={by: 2.0})
    return dict(zip(m.v_names, pf.forward_dynamics(m, at.q, at.v, u=u).v_dot.tolist(), strict=True))


def alike(found: dict[str, float], wanted: dict[str, float], what: str) -> None:
    shared = sorted(set(found) & set(wanted))
    assert shared
    close([found[n] for n in shared], [wanted[n] for n in shared], SAME, what, max(map(abs, wanted.values())))


@pytest.mark.filterwarnings("ignore:.*close loops|.*closed by constraints|.*locked at zero:pfaffian.errors.ModelWarning")
@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize("dialect", CLOSING)
def test_every_dialect_of_urdf_keeps_what_a_closing_joint_carries(dialect, cut):
    m = pf.formats.parse_urdf(urdf(cut, CLOSING[dialect]), actuated=[cut])
    (c,) = m.constraints
    assert c.name == cut and c.limits == ((-3.0, 2.5),) and c.effort == 7.0 and m.u_limits.tolist() == [[-7.0, 7.0]]
    alike(moving(m, cut, {cut: 0.7}), expected(cut, 0.7), dialect)


def test_a_joint_with_two_parents_has_a_motor_as_others_do():
    with pytest.warns(pf.errors.ModelWarning) as caught:
        m = pf.formats.parse_urdf(urdf("C", CLOSING["two parents"]))
    assert set(m.u_names) == set(CUTS)
    assert not any("without" in str(w.message) for w in caught)


def test_what_a_closing_joint_of_urdf_cannot_carry_is_named():
    ends = '<link1 link="coupler" xyz="1 0 0"/><link2 link="rocker" xyz="0 0 .5"/>'
    table = f'<loop_joint name="C" type="planar">{ends}<axis xyz="0 1 0"/><dynamics damping="1" friction="2"/></loop_joint>'
    with pytest.warns(pf.errors.ModelWarning) as caught:
        pf.formats.parse_urdf(urdf("C", lambda *_: table))
    words = " ".join(str(w.message) for w in caught)
    assert "damping of the planar loop 'C'" in words and "dry friction is left out: 'C'" in words


@pytest.mark.filterwarnings("ignore:.*close loops|.*closed by constraints:pfaffian.errors.ModelWarning")
@pytest.mark.parametrize("kind", ["spherical", "universal"])
def test_a_ball_that_closes_a_loop_has_the_damping_of_one_in_the_tree(kind):
    ball = (
        f'<loop_joint name="C" type="{kind}"><link1 link="coupler" xyz="1 0 0"/><link2 link="rocker" xyz="0 0 .5"/>'
        '<axis1 xyz="0 1 0"/><axis2 xyz="1 0 0"/><dynamics damping="1.5"/></loop_joint>'
    )
    (c,) = pf.formats.parse_urdf(
        urdf("C", lambda *_: ball.replace("axis1", "axis") if kind == "spherical" else ball)
    ).constraints
    assert np.array_equal(np.array(ca.DM(c.damping)), 1.5 * np.eye(c.joint.nv))


ROTOR = (
    '<transmission><joint name="C"/><actuator name="m"><drake:rotor_inertia value="0.05"/><drake:gear_ratio value="2"/>'
    "</actuator></transmission></robot>"
)


@pytest.mark.filterwarnings("ignore:.*close loops|.*closed by constraints|.*locked at zero:pfaffian.errors.ModelWarning")
@pytest.mark.parametrize("dialect", CLOSING)
def test_a_rotor_of_drake_on_a_closing_joint_of_any_dialect(dialect):
    m = pf.formats.parse_urdf(urdf("C", CLOSING[dialect]).replace("</robot>", ROTOR), actuated=["C"])
    alike(moving(m, "C", {"C": 0.7}), expected("C", 0.7, armature=0.2), dialect)


def test_a_rotor_of_no_joint_is_named():
    with pytest.warns(pf.errors.ModelWarning, match="the rotor of 'E', which is no joint"):
        pf.formats.parse_urdf(urdf("C", CLOSING["Isaac Sim"]).replace("</robot>", ROTOR.replace('"C"', '"E"')))


LAW = pf.mimic({"A": -2.0}, 0.3)
"""Of the hinge C, which makes a mechanism of a hinge more."""


def led(m: pf.Mechanism) -> dict[str, float]:
    """Accelerations of an arm of two hinges whose tip slides, with C led by A."""
    at = pf.assemble(m, {"A": 0.4}, v={"A": 2.0})
    return dict(zip(m.v_names, pf.forward_dynamics(m, at.q, at.v).v_dot.tolist(), strict=True))


def arm(cut: str) -> pf.Mechanism:
    """A four-bar whose coupler also slides along the crank: two motions, one of which the law of C takes."""
    bodies = [
        pf.body(n, mass=1.0, com=(0.1, 0, 0.2), inertia=(0.03, 0.02, 0.04)) for n in ("crank", "slider", "coupler", "rocker")
    ]
    slide = pf.joint("S", "prismatic", "crank", "slider", axis=(0, 0, 1))
    about = {"axis": (0, 1, 0)}
    a = pf.joint("A", "revolute", "world", "crank", **about)
    b = pf.joint("B", "revolute", "slider", "coupler", placement=(0, 0, 0.3), **about)
    d = pf.joint("D", "revolute", "world", "rocker", placement=(0.9, 0, 0), **about)
    ends = about | {"mimic": LAW}
    if cut == "C":
        c = pf.closure("C", "revolute", "coupler", "rocker", placement_a=(0.8, 0, 0), placement_b=(0, 0, 0.6), **ends)
        return pf.mechanism("m", bodies, [a, slide, b, d], constraints=[c])
    c = pf.joint("C", "revolute", "coupler", "rocker", placement=(0.8, 0, 0), child_placement=(0, 0, 0.6), **ends)
    d = pf.closure("D", "revolute", "world", "rocker", placement_a=(0.9, 0, 0), **about)
    return pf.mechanism("m", bodies, [a, slide, b, c], constraints=[d])


def test_a_closure_follows_joints_as_one_of_the_tree(tmp_path):
    m = arm("C")
    alike(led(m), led(arm("D")), "cut at C and at D")
    pf.write(m, tmp_path / "m.yaml")
    again, _ = pf.read(tmp_path / "m.yaml")
    assert again.all_constraints[1].name == "C follows"
    alike(led(again), led(m), "YAML")
    free = pf.joint("base", "free", "world", "rocker")
    loose = m.with_(joints=[free if j.name == "D" else j for j in m.joints])
    assert pf.joined(loose, "C").joint("C").mimic == LAW
    with pytest.warns(pf.errors.ModelWarning, match="that constraint 'C' follows joints"):
        pf.write(m, tmp_path / "m.xml")


@pytest.mark.filterwarnings("ignore:.*close loops|.*closed by constraints|.*locked at zero:pfaffian.errors.ModelWarning")
def test_mimic_of_a_closing_joint_in_urdf():
    text = (
        urdf("C", CLOSING["two parents"])
        .replace("</robot>", "")
        .replace(INSIDE, '<mimic joint="A" multiplier="-2" offset="0.3"/>')
    )
    (c,) = pf.formats.parse_urdf(text + "</robot>", mimic="follow").constraints
    assert c.mimic == LAW
    with pytest.warns(pf.errors.ModelWarning, match="the <mimic> of joint 'C', which closes a loop"):
        (c,) = pf.formats.parse_urdf(text + "</robot>").constraints
    assert c.mimic is None


@pytest.mark.parametrize(("given", "words"), [
    ({"mimic": pf.mimic({"E": 1.0})}, "'C' follows 'E', which is not a joint of the tree"),
    ({"mimic": pf.mimic({"A": 1.0}), "limits": (-1, 1)}, "'C': it follows others and has no limits"),
    ({"mimic": pf.mimic({"A": 1.0}), "kind": "cylindrical"}, "'C': a cylindrical joint cannot follow others"),
    ({"mimic": pf.mimic({"A": 1.0}), "kind": "weld"}, "'C': a weld closure has no coordinate that could follow"),
    ({"mimic": 2.0}, "'C': mimic=2.0; make it by mimic"),
])  # fmt: skip
def test_a_closure_that_cannot_follow_is_refused(given, words):
    m = linkage(FOUR_BAR, "C")
    with pytest.raises(pf.errors.ModelError, match=words):
        m.with_(
            constraints=[pf.closure(**({"name": "C", "kind": "revolute", "body_a": "coupler", "body_b": "rocker"} | given))]
        )


def test_a_closure_held_by_forces_does_not_follow():
    m = linkage(FOUR_BAR, "C", actuators=[pf.actuator("motor", "A")])
    c = pf.closure("C", "revolute", "coupler", "rocker", mimic=LAW)
    with pytest.raises(pf.errors.ModelError, match="'C' is held by forces and follows joints"):
        m.with_(constraints=[pf.servo(c, ["motor"])])


def sdf(order: str, carrying: str) -> str:
    """The parallelogram as SDF, with its joints in an order."""
    places = {"crank": (0, 0, 0), "coupler": (0, 0, 0.5), "rocker": (1, 0, 0)}
    inertia = "<ixx>.03</ixx><iyy>.02</iyy><izz>.04</izz>"
    parts = [
        f'<link name="{n}"><pose>{numbers(x)} 0 0 0</pose><inertial><pose>{numbers(COM)} 0 0 0</pose><mass>1</mass>'
        f"<inertia>{inertia}</inertia></inertial></link>"
        for n, x in places.items()
    ]
    inside = (
        "<dynamics><damping>.5</damping><spring_stiffness>2</spring_stiffness><spring_reference>.3</spring_reference>"
        "<friction>.1</friction></dynamics><limit><lower>-3</lower><upper>2.5</upper><effort>7</effort></limit>"
    )
    for n in order:
        h = PARALLELOGRAM[n]
        more = inside if n == carrying else ""
        parts.append(
            f'<joint name="{n}" type="revolute"><parent>{h.one}</parent><child>{h.other}</child>'
            f"<pose>{numbers(h.there)} 0 0 0</pose><axis><xyz>0 1 0</xyz>{more}</axis></joint>"
        )
    return f'<sdf version="1.9"><model name="p">{"".join(parts)}</model></sdf>'


@pytest.mark.filterwarnings("ignore:.*dry friction:pfaffian.errors.ModelWarning")
def test_the_order_of_joints_in_sdf_does_not_matter():
    found, cuts = [], set()
    for order in ("ABCD", "BCDA", "CDAB", "DABC", "DCBA", "BDCA"):
        m, _ = pf.formats.parse_sdf(sdf(order, "C"))
        assert set(m.u_names) == set(CUTS) and [f.joint for f in m.forces] == ["C"]
        cuts |= {c.name for c in m.constraints}
        found.append(moving(m, "", {"C": 0.7}))
    assert len(cuts) > 1
    for x in found[1:]:
        alike(x, found[0], "order")
    friction = pf.forces.joint_friction("dry", "C", 0.1)
    carried = {"damping": 0.5, "stiffness": 2.0, "rest": 0.3}
    own = linkage(PARALLELOGRAM, "D", {"C": carried}, forces=[friction], actuators=[pf.actuator("C", "C")], gravity=m.gravity)
    alike(found[0], moving(own, "", {"C": 0.7}), "SDF")


@pytest.mark.parametrize("cut", CUTS)
def test_sdf_keeps_what_a_closing_joint_carries(cut):
    text = sdf("".join(sorted(CUTS, key=lambda n: n == cut)), cut)
    with pytest.warns(pf.errors.ModelWarning, match=f"dry friction is left out: '{cut}'"):
        m, _ = pf.formats.parse_sdf(text, friction="none")
    m = m.with_(gravity=(0, 0, -9.81))
    alike(moving(m, cut, {cut: 0.7}), expected(cut, 0.7, stiffness=2.0, rest=0.3), f"cut near {cut}")


def usda(cut: str, rotor: float = 0.25) -> str:
    """The parallelogram as USD, whose joint `cut` has a drive and is excluded from the articulation."""
    degree = np.pi / 180
    prims = [
        f'def Xform "{n}" ( prepend apiSchemas = ["PhysicsRigidBodyAPI", "PhysicsMassAPI"] )\n'
        f"{{ float physics:mass = 1\n point3f physics:centerOfMass = ({', '.join(map(repr, COM.tolist()))})\n"
        f" float3 physics:diagonalInertia = (0.03, 0.02, 0.04)\n double3 xformOp:translate = {x}\n"
        ' uniform token[] xformOpOrder = ["xformOp:translate"]\n}'
        for n, x in (("crank", (0, 0, 0)), ("coupler", (0, 0, 0.5)), ("rocker", (1, 0, 0)))
    ]
    for n, h in PARALLELOGRAM.items():
        drive = (
            f" float drive:angular:physics:damping = {0.5 * degree}\n float drive:angular:physics:stiffness = {2 * degree}\n"
            f" float drive:angular:physics:targetPosition = {0.3 / degree}\n float drive:angular:physics:maxForce = 7\n"
            f" float physics:lowerLimit = -170\n float physics:upperLimit = 140\n"
            f" bool physics:excludeFromArticulation = true\n float newton:armature = {rotor}\n"
        )
        given = ' ( prepend apiSchemas = ["PhysicsDriveAPI:angular"] )' if n == cut else ""
        first = "" if h.one == "world" else f" rel physics:body0 = </{h.one}>\n"
        prims.append(
            f'def PhysicsRevoluteJoint "{n}"{given}\n{{{first} rel physics:body1 = </{h.other}>\n'
            f' uniform token physics:axis = "Y"\n point3f physics:localPos0 = {tuple(map(float, h.at))}\n'
            f" point3f physics:localPos1 = {tuple(map(float, h.there))}\n"
            f"{drive if n == cut else ''}}}"
        )
    return '#usda 1.0\n( metersPerUnit = 1\n upAxis = "Z" )\n' + "\n".join(prims)


@pytest.mark.filterwarnings("ignore:.*:pfaffian.errors.ModelWarning")
@pytest.mark.parametrize("cut", CUTS)
def test_usd_keeps_the_drive_of_a_closing_joint(cut, tmp_path):
    pytest.importorskip("pxr")
    (tmp_path / "p.usda").write_text(usda(cut))
    m, _ = pf.read(tmp_path / "p.usda")
    (c,) = m.constraints
    assert c.name == cut and m.u_limits[m.u_names.index(cut)].tolist() == [-7.0, 7.0]
    close(c.limits, np.radians([[-170, 140]]), SAME, "limits")
    j = c.joint  # the drive has the digits of a float
    assert float(j.armature) == 0.25
    carried = {"stiffness": j.stiffness, "damping": j.damping, "rest": j.rest, "armature": j.armature}
    close([float(x) for x in carried.values()], [2.0, 0.5, 0.3, 0.25], FLOAT, "drive")
    u = {cut: 0.7}
    wanted = moving(linkage(PARALLELOGRAM, cut, {cut: carried}, actuators=[pf.actuator(cut, cut)]), cut, u)
    found = moving(m, cut, u)
    shared = sorted(set(found) & set(wanted))
    close([found[n] for n in shared], [wanted[n] for n in shared], FLOAT, "accelerations", max(map(abs, wanted.values())))


@pytest.mark.filterwarnings("ignore:.*:pfaffian.errors.ModelWarning")
@pytest.mark.parametrize("name", ["m.xml", "m.urdf"])
@pytest.mark.parametrize("cut", CUTS)
def test_files_that_are_written_keep_what_a_closure_carries(cut, name, tmp_path):
    m = linkage(PARALLELOGRAM, cut, {cut: CARRIED}, actuators=[pf.actuator("motor", cut, gear=2.0)])
    pf.write(m, tmp_path / name)
    again, _ = pf.read(tmp_path / name.replace(".urdf", ".yaml"))
    assert again.u_names == ("motor",) and again.u_limits.tolist() == [[-7.0, 7.0]]
    alike(moving(again, cut, {"motor": 0.7}), moving(m, cut, {"motor": 0.7}), name)


def test_mjcf_names_in_one_warning_what_it_cannot_say(tmp_path):
    ball = {n: h._replace(kind="spherical") if n == "C" else h for n, h in PARALLELOGRAM.items()}
    m = linkage(ball, "C", {"C": {"damping": 0.5, "friction": 0.1}})
    with pytest.warns(pf.errors.ModelWarning) as caught:
        pf.write(m, tmp_path / "m.xml")
    assert len(caught) == 1
    assert "the damping, friction of constraint 'C', since MuJoCo has no joint there" in str(caught[0].message)


def test_detachable_joints_of_gazebo_are_welds_of_a_loop():
    """A pin in a nested model, hung on the rocker, is attached to the coupler's end."""
    text = sdf("ABD", "D")
    pin = (
        '<model name="pin"><pose>1 0 .5 0 0 0</pose><link name="l"><inertial><mass>.1</mass></inertial></link></model>'
        '<joint name="P" type="revolute"><parent>rocker</parent><child>pin::l</child><axis><xyz>0 1 0</xyz></axis></joint>'
        '<plugin filename="gz-sim-detachable-joint-system" name="gz::sim::systems::DetachableJoint">'
        "<parent_link>coupler</parent_link><child_model>pin</child_model><child_link>l</child_link></plugin>"
    )
    with pytest.warns(pf.errors.ModelWarning) as caught:
        m, _ = pf.formats.parse_sdf(text.replace("</model>", f"{pin}</model>", 1))
    (c,) = m.constraints
    assert (c.kind, c.body_a, c.body_b) == ("weld", "coupler", "pin::l")
    assert m.nv - int(pf.forward_dynamics(m, pf.assemble(m, {"A": 0.3}).q).rank) == 1
    words = " ".join(str(w.message) for w in caught)
    assert "close a loop" in words and "plugins are left out" not in words
    far = text.replace("</model>", pin.replace("<child_model>pin<", "<child_model>other<") + "</model>", 1)
    with pytest.warns(pf.errors.ModelWarning, match="DetachableJoint plugins whose links are not in the model are left out"):
        m, _ = pf.formats.parse_sdf(far)
    assert not m.constraints


@pytest.mark.filterwarnings("ignore:.*close loops|.*closed by constraints:pfaffian.errors.ModelWarning")
def test_gazebo_keeps_the_spring_of_a_closing_joint_in_urdf():
    inside = "<dynamics><damping>0.5</damping>", "<dynamics><damping>0.5</damping><spring_stiffness>2</spring_stiffness>"
    text = urdf("C", CLOSING["Gazebo"]).replace(inside[0], f"{inside[1]}<spring_reference>0.3</spring_reference>")
    alike(
        moving(pf.formats.parse_urdf(text, actuated=["C"]), "C", {"C": 0.7}),
        expected("C", 0.7, stiffness=2.0, rest=0.3),
        "spring",
    )


@pytest.mark.filterwarnings("ignore:.*:pfaffian.errors.ModelWarning")
def test_mjcf_keeps_the_zero_of_a_closing_hinge(tmp_path):
    pytest.importorskip("mujoco")
    m = linkage(PARALLELOGRAM, "C", {"C": CARRIED})
    (c,) = m.constraints
    turned = pf.closure(
        "C", "revolute", "coupler", "rocker", placement_a=pf.pose((1, 0, 0), rpy=(0, 0.8, 0)), placement_b=(0, 0, 0.5),
        axis=(0, 1, 0), **CARRIED,
    )  # fmt: skip
    m = m.with_(constraints=[turned])
    angle = {"C": lambda T: T.kinematics.joint("C")}
    angles = [pf.compile_terms(m.with_(constraints=[x]), angle, backend="numpy")(m.neutral())["C"] for x in (c, turned)]
    close(angles[1], angles[0] - 0.8, SAME, "zero")
    pf.write(m, tmp_path / "m.xml")
    again, _ = pf.read(tmp_path / "m.xml")
    alike(moving(again, "C", {}), moving(m, "C", {}), "turned")


@pytest.mark.filterwarnings("ignore:.*:pfaffian.errors.ModelWarning")
def test_a_joint_of_sdf_that_follows_another_stays_in_the_tree():
    """Although it is the last one of its loop in the file."""
    text = sdf("ABDC", "").replace('<joint name="C" type="revolute">', '<joint name="E" type="revolute">')
    follows = '<xyz>0 1 0</xyz><mimic joint="A"><multiplier>-1</multiplier></mimic>'
    head, tail = text.split('<joint name="E" type="revolute">')
    text = head + '<joint name="E" type="revolute">' + tail.replace("<xyz>0 1 0</xyz>", follows, 1)
    m, _ = pf.formats.parse_sdf(text)
    assert m.joint("E").mimic is not None and [c.name for c in m.constraints] == ["D"]


@pytest.mark.filterwarnings("ignore:.*:pfaffian.errors.ModelWarning")
def test_a_joint_of_sdf_that_follows_another_may_close_the_loop():
    """Where every other joint of the loop must stay in the tree too, since it starts at a value."""
    parts = sdf("ABDC", "").split("<xyz>0 1 0</xyz>")
    start = "<xyz>0 1 0</xyz><initial_position>0.001</initial_position>"
    law = '<xyz>0 1 0</xyz><mimic joint="A"><multiplier>-1</multiplier></mimic>'
    m, _ = pf.formats.parse_sdf(parts[0] + start + parts[1] + start + parts[2] + start + parts[3] + law + parts[4])
    (c,) = m.constraints
    assert c.name == "C" and c.mimic == pf.mimic({"A": -1.0}) and "C" not in m.u_names
