"""Loops in dialects of URDF: every file here describes the same four-bar, which must move like the one in Python."""

import warnings

import casadi as ca
import numpy as np
import pytest

import pfaffian as pf
from pfaffian.errors import ModelError, ModelWarning
from pfaffian.formats import parse_urdf, read_urdf
from pfaffian.formats.urdf.loop_record import hinge_at
from tests.tolerance import PEER, close

RODS = {"crank": (0.2, 1.0), "coupler": (1.0, 2.0), "rocker": (0.7, 1.5)}
"""Length [m] and mass [kg] of the rods. At zero coordinates all are along x, where the loop is open."""


def link(name):
    length, mass = RODS[name]
    I = mass * length**2 / 9
    return (
        f'<link name="{name}"><inertial><origin xyz="{length / 2} 0 0"/><mass value="{mass}"/>'
        f'<inertia ixx="{I}" iyy="{I}" izz="{I}" ixy="0" ixz="0" iyz="0"/></inertial></link>'
    )


def joint(name, parent, child, x, more="", inside=""):
    return (
        f'<joint name="{name}" type="continuous" {more}><parent link="{parent}"/><child link="{child}"/>'
        f'<origin xyz="{x} 0 0"/><axis xyz="0 1 0"/>{inside}</joint>'
    )


TREE = [
    '<link name="ground"/>',
    *map(link, RODS),
    joint("a", "ground", "crank", 0),
    joint("b", "crank", "coupler", 0.2),
    joint("c", "ground", "rocker", 0.5),
]
DRAKE = 'xmlns:drake="http://drake.mit.edu"'


def robot(*parts):
    return f'<robot name="four bar" {DRAKE}>\n' + "\n".join([*TREE, *parts]) + "\n</robot>"


def sdf(words, kind="revolute"):
    return f'<gazebo><joint name="d" type="{kind}"><parent>coupler</parent><child>rocker</child>{words}</joint></gazebo>'


def frame(name, on, x):
    return joint(name, on, f"{name} link", x).replace("continuous", "fixed") + f'<link name="{name} link"/>'


PLACES = 'xyz="1 0 0"', 'xyz="0.7 0 0"'
HINGE = '<axis xyz="0 1 0"/>'
DIALECTS = {
    "URDF+": f'<loop name="d" type="revolute"><predecessor link="coupler"><origin {PLACES[0]}/></predecessor>'
    f'<successor link="rocker"><origin {PLACES[1]}/></successor>{HINGE}</loop>',
    "Strandbeest": f'<loop_joint name="d" type="continuous"><link1 link="coupler" {PLACES[0]}/>'
    f'<link2 link="rocker" {PLACES[1]}/>{HINGE}</loop_joint>',
    "urdfdom": f'<constraint name="d" type="revolute"><parent link="coupler"/><parent_origin {PLACES[0]}/>'
    f'<parent_axis xyz="0 1 0"/><child link="rocker"/><child_origin {PLACES[1]}/><child_axis xyz="0 2 0"/></constraint>',
    "several parents": joint("d", "coupler", "tip", 1.0)
    + joint("e", "rocker", "tip", 0.7).replace("continuous", "fixed")
    + '<link name="tip"/>',
}
POINTS = {
    "Isaac": f'<loop_joint name="d" type="spherical"><link1 link="coupler" {PLACES[0]}/>'
    f'<link1 link="rocker" {PLACES[1]}/></loop_joint>',
    "Drake": '<drake:ball_constraint><drake:ball_constraint_body_A name="coupler"/>'
    '<drake:ball_constraint_body_B name="rocker"/>'
    '<drake:ball_constraint_p_AP value="1 0 0"/><drake:ball_constraint_p_BQ value="0.7 0 0"/></drake:ball_constraint>',
    "frames": frame("A", "coupler", 1) + frame("B", "rocker", 0.7),
}
SIDECAR = "closed_loop: [[A, B]]\ntype: [{}]\nname_mot: [a]\n"


def written(kind="revolute"):
    """The four-bar, made in Python."""
    bodies = [pf.body(n, mass=m, com=(l / 2, 0, 0), inertia=m * l**2 / 9) for n, (l, m) in RODS.items()]
    ends = (("a", "world", "crank", 0), ("b", "crank", "coupler", 0.2), ("c", "world", "rocker", 0.5))
    joints = [pf.joint(n, "revolute", a, b, axis=(0, 1, 0), placement=(x, 0, 0)) for n, a, b, x in ends]
    pin = pf.closure("d", kind, "coupler", "rocker", placement_a=(1, 0, 0), placement_b=(0.7, 0, 0), axis=(0, 1, 0))
    return pf.mechanism("four bar", bodies, joints, constraints=[pin], actuators=[pf.actuator("a", "a")])


START = pf.assemble(written(), [0.8, -0.5, 0.9], [1.0, 0, 0], hold=["a"])
"""A state of the closed loop."""


def moves_alike(m):
    """Compare the accelerations at a state of the closed loop, with a torque on the crank."""
    ours = pf.forward_dynamics(written(), START.q, START.v, {"a": 0.3}).v_dot
    close(pf.forward_dynamics(m, START.q, START.v, {"a": 0.3}).v_dot, ours, PEER, "accelerations")


def quietly(text, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)
        return parse_urdf(text, **options)


@pytest.mark.parametrize("name", DIALECTS)
def test_hinges_of_every_dialect(name):
    text = robot(DIALECTS[name])
    with pytest.warns(ModelWarning, match=r"loops are closed by constraints: '[de]', (revolute|weld) of .coupler|rocker"):
        m = parse_urdf(text)
    moves_alike(m)


def test_sdf_joints_in_urdf_are_placed_by_the_zero_configuration():
    """<gazebo><joint> gives the frame in the child; its placement in the parent follows from the tree at zero coordinates."""
    m = quietly(robot(sdf("<pose>0.7 0 0 0 0 0</pose><axis><xyz>0 1 0</xyz></axis>")))
    c = m.constraints[0]
    assert m.value(c.placement_a.p).ravel() == pytest.approx([1.0, 0, 0])
    assert m.value(c.placement_b.p).ravel() == pytest.approx([0.7, 0, 0])
    moves_alike(m)


def test_a_massless_joint_in_a_loop_becomes_the_closure():
    """A hinge leads to a link without mass, which is welded to a frame of the other end."""
    ends = joint("d", "coupler", "tip", 1.0) + '<link name="tip"/>' + frame("A", "tip", 0.25) + frame("B", "rocker", 0.95)
    weld = '<loop name="w" type="fixed"><predecessor link="B link"/><successor link="A link"/></loop>'
    with pytest.warns(ModelWarning, match="massless joints at the ends of loops become part of the loop closures: 'd'"):
        m = parse_urdf(robot(ends, weld), strict=True)
    assert [c.kind for c in m.constraints] == ["revolute"]
    moves_alike(m)
    with pytest.raises(ModelError, match="joint 'd' moves no mass, so nothing determines the motion of this loop"):
        quietly(robot(ends, weld.replace("fixed", "spherical")))


@pytest.mark.parametrize("name", ["Isaac", "Drake"])
def test_ball_closures(name):
    m = quietly(robot(POINTS[name]))
    assert [c.kind for c in m.constraints] == ["spherical"]
    moves_alike(m)


@pytest.mark.parametrize(("word", "kind"), [("6d", "weld"), ("6D", "weld"), ("3d", "spherical"), ("3D", "spherical")])
def test_a_sidecar_lets_frames_coincide(tmp_path, word, kind):
    """The YAML file is found by its name unless loops=False, and it also names the motors."""
    (tmp_path / "robot.urdf").write_text(robot(POINTS["frames"]))
    (tmp_path / "robot.yaml").write_text(SIDECAR.format(word))
    with pytest.warns(ModelWarning, match=rf"loops are closed by constraints \(robot.yaml\): 'A B', {kind}"):
        m = read_urdf(tmp_path / "robot.urdf")
    assert m.u_names == ("a",) and [c.kind for c in m.constraints] == [kind]
    if kind == "spherical":
        moves_alike(m)
    open_ = read_urdf(tmp_path / "robot.urdf", loops=False)
    assert not open_.constraints and open_.u_names == ("a", "b", "c")
    (tmp_path / "robot.yaml").write_text("some: thing\n")
    assert not read_urdf(tmp_path / "robot.urdf").constraints


def test_a_hinge_by_a_point_is_at_one_place_for_both_links():
    """Its point and axis are those of the root link when all joints are at zero, however the links are turned there."""
    zero = {"a": pf.pose((1, 0, 0), rpy=(0.3, 0.2, 0.1)), "b": pf.pose((0, 2, 0), rpy=(0, 0, 1))}
    loop = hinge_at("h", ("a", "b"), (0.5, 0.6, 0.7), (0, 0.6, 0.8), zero, "revolute", "here")
    for link, place in zip("ab", loop.places, strict=True):
        at = zero[link] @ place
        close(np.array(ca.DM(at.p)).ravel(), np.array([0.5, 0.6, 0.7]), PEER, "point")
        assert any(np.allclose(axis, (0, 0.6, 0.8)) for axis in np.array(ca.DM(at.R)).T)


@pytest.mark.parametrize("name", ["robot.yaml", "loop_closures.yaml"])
def test_a_sidecar_must_lie_in_the_folder_of_its_robot(tmp_path, name):
    """A link within the folder is followed, as is one of the robot itself; one that leads out of the folder is refused."""
    inside, outside = tmp_path / "in", tmp_path / "out"
    for folder in (inside, outside):
        folder.mkdir()
        (folder / "loops.txt").write_text("closed_loop: []")
    (inside / "r.urdf").write_text(robot())
    link_to(inside / name, outside / "loops.txt")
    with pytest.raises(ModelError, match=f"r.urdf: '{name}' leads out of the file's own folder; pass loops=path"):
        read_urdf(inside / "r.urdf")
    assert read_urdf(inside / "r.urdf", loops=False).nv == read_urdf(inside / "r.urdf", loops=inside / name).nv == 3
    (inside / name).unlink()
    link_to(inside / name, inside / "loops.txt")
    assert read_urdf(inside / "r.urdf").nv == 3
    for target in (inside / "lost.txt", inside / name, inside):  # without its loops it would be another machine
        (inside / name).unlink()
        link_to(inside / name, target)
        with pytest.raises(ModelError, match=f"r.urdf: '?{name}'? is (a link to what is no file|not a usable path)"):
            read_urdf(inside / "r.urdf")


def link_to(place, target):
    """Make a symbolic link, where the system has them."""
    try:
        place.symlink_to(target)
    except OSError:
        pytest.skip("this system makes no symbolic links")


def test_a_sidecar_changes_the_kind_of_joints(tmp_path):
    side = "closed_loop: []\ntype: []\njoint_name: [a, b, c, x]\njoint_type: [SPHERICAL, FIXED, UJOINT_ZY, FIXED]\nmore: 1\n"
    (tmp_path / "robot.yaml").write_text(side)
    with pytest.warns(ModelWarning, match=r"left out: 'robot.yaml: more', 'robot.yaml: x'"):
        m = parse_urdf(robot(), loops=tmp_path / "robot.yaml")
    assert [m.joint(n).kind.name for n in "abc"] == ["spherical", "fixed", "universal"] and m.u_names == ()
    q = np.array([0, 0, 0, 1, 0.4, -0.3])
    turned = pf.pose(rpy=(0, 0, 0.4)) @ pf.pose(rpy=(0, -0.3, 0))
    place = pf.forward_kinematics(m, q)["rocker"]
    assert place.rotation == pytest.approx(m.value(turned.R)) and place.position == pytest.approx([0.5, 0, 0])


def test_hinges_by_point_and_axis(tmp_path):
    """scikit-robot's file gives point and axis in the root link, with all joints at zero, as if the loop were closed there."""
    shut = robot().replace('"0.5 0 0"', '"0.5 0 0" rpy="0 0 0"')
    (tmp_path / "loop_closures.yaml").write_text(
        "closures: [{link_a: coupler, link_b: rocker, point: [1.2, 0, 0], axis: [0, 1, 0]}]\n"
        "dependent: [b, c]\nindependent: [a]\n"
    )
    (tmp_path / "bars.urdf").write_text(shut)
    with pytest.warns(ModelWarning, match=r"'closure 1', revolute of 'coupler' and 'rocker'"):
        m = read_urdf(tmp_path / "bars.urdf")
    assert m.u_names == ("a",)
    moves_alike(m)


def test_couplings_follow_exactly():
    """ratio times the joint sum to one link equals the joint sum to the other; the joint that is not independent follows."""
    rotor = joint("r", "ground", "rocker", 0.5, 'independent="false"')
    parts = [p if 'name="c"' not in p else rotor for p in TREE]
    text = (
        robot()
        .replace("\n".join(TREE), "\n".join(parts))
        .replace(
            "</robot>",
            '<coupling name="g" type="rolling"><predecessor link="coupler"/><successor link="rocker"/>'
            '<ratio value="6"/></coupling></robot>',
        )
    )
    text = text.replace('name="a" type="continuous"', 'name="a" type="continuous" independent="True"')
    with pytest.warns(ModelWarning, match="motors are on the joints that the file marks as independent"):
        m = parse_urdf(text)
    assert m.q_names == ("a", "b") and m.u_names == ("a", "b")
    mimic = m.joint("r").mimic
    assert dict(zip(mimic.joints, m.value(mimic.ratios).ravel(), strict=True)) == {"a": 6.0, "b": 6.0}
    back = parse_urdf(
        text.replace('independent="false"', "").replace(
            'name="b" type="continuous"', 'name="b" type="continuous" independent="false"'
        )
    )
    mimic = back.joint("b").mimic
    assert dict(zip(mimic.joints, back.value(mimic.ratios).ravel(), strict=True)) == pytest.approx({"a": -1.0, "r": 1 / 6})


def test_drakes_joints_rotors_springs_and_bushings():
    parts = [
        '<frame name="F" link="coupler" xyz="1 0 0" rpy="0 0 0.3"/><frame name="G" link="rocker" xyz="0.7 0 0" rpy="0 0 0.3"/>',
        '<drake:linear_bushing_rpy><drake:bushing_frameA name="F"/><drake:bushing_frameC name="G"/>'
        '<drake:bushing_torque_stiffness value="0 0 0"/><drake:bushing_torque_damping value="1 2 3"/>'
        '<drake:bushing_force_stiffness value="100 200 300"/>'
        '<drake:bushing_force_damping value="4 5 6"/></drake:linear_bushing_rpy>',
        '<drake:linear_spring_damper><drake:linear_spring_damper_body_A name="ground"/>'
        '<drake:linear_spring_damper_body_B name="rocker"/>'
        '<drake:linear_spring_damper_p_AP value="0 0 1"/><drake:linear_spring_damper_p_BQ value="0.7 0 0"/>'
        '<drake:linear_spring_damper_free_length value="0.5"/><drake:linear_spring_damper_stiffness value="7"/>'
        '<drake:linear_spring_damper_damping value="2"/></drake:linear_spring_damper>',
        '<transmission><joint name="a"/><actuator><drake:rotor_inertia value="0.5"/>'
        '<drake:gear_ratio value="3"/></actuator></transmission>',
        '<drake:tendon_constraint/><drake:collision_filter_group name="x"/>',
    ]
    with pytest.warns(ModelWarning, match=r"left out: '<drake:tendon_constraint> on line \d+'$") as caught:
        m = parse_urdf(robot(*parts), base="free")
    assert any("acts on poses, not on roll, pitch and yaw" in str(w.message) for w in caught)
    assert m.value(m.joint("a").armature).item() == 4.5 and [f.name for f in m.forces][-1] == "spring ground rocker"
    fixed = quietly(robot(*parts))
    ours = written().with_(
        constraints=[],
        forces=[
            pf.forces.bushing(
                "b",
                "coupler",
                "rocker",
                stiffness=_moved([100, 200, 300, 0, 0, 0]),
                damping=_moved([4, 5, 6, 1, 2, 3]),
                rest=(0.3, 0, 0),
            ),
            pf.spring("s", "world", "rocker", point_a=(0, 0, 1), point_b=(0.7, 0, 0), stiffness=7, rest=0.5, damping=2),
        ],
    )
    ours = ours.with_(joints=[pf.joint("a", "revolute", "world", "crank", axis=(0, 1, 0), armature=4.5), *ours.joints[1:]])
    q, v = [0.02, 0.03, 0.01], [0.2, -0.4, 0.6]
    close(pf.forward_dynamics(fixed, q, v).v_dot, pf.forward_dynamics(ours, q, v).v_dot, PEER, "accelerations")


def _moved(diagonal):
    """The stiffness in the rocker's frame of a bushing at its end, with axes turned by 0.3 rad about z."""
    c, s = np.cos(0.3), np.sin(0.3)
    R, p = np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]]), np.array([0.7, 0, 0])
    hat = np.array([[0, -p[2], p[1]], [p[2], 0, -p[0]], [-p[1], p[0], 0]])
    T = np.block([[R.T, -R.T @ hat], [np.zeros((3, 3)), R.T]])  # twist of the rocker's frame -> that of the bushing's
    return T.T @ np.diag(diagonal) @ T


@pytest.mark.parametrize(("kind", "nv"), [("ball", 3), ("universal", 2), ("planar", 3), ("screw", 1)])
def test_joints_of_drake(kind, nv):
    inside = '<drake:screw_thread_pitch value="0.5"/>' if kind == "screw" else ""
    j = f'<drake:joint name="k" type="{kind}"><parent link="rocker"/><child link="tip"/>{inside}</drake:joint>'
    m = quietly(robot(link("crank").replace("crank", "tip"), j))
    assert m.joint("k").nv == nv and m.value(m.joint("k").pitch).item() == pytest.approx(0.25 / np.pi if kind == "screw" else 0)


def test_xacro_is_expanded_only_on_request(tmp_path):
    pytest.importorskip("xacro")
    file = tmp_path / "bars.xacro"
    head = '<robot name="r" xmlns:xacro="http://ros.org/wiki/xacro"><xacro:property name="l" value="${0.1 + 0.4}"/>'
    file.write_text(robot().replace(f'<robot name="four bar" {DRAKE}>', head).replace('"0.5 0 0"', '"${l} 0 0"'))
    with pytest.raises(ModelError, match="if you trust it, expand=True"):
        pf.read(file)
    m, _ = pf.read(file, expand=True)
    assert m.value(m.joint("c").placement.p).ravel() == pytest.approx([0.5, 0, 0])
    file.write_text(head + "${undefined}</robot>")
    with pytest.raises(ModelError, match="xacro cannot expand it"):
        read_urdf(file, expand=True)
