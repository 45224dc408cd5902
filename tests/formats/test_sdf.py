"""The meaning of SDF files, compared with MuJoCo and MJCF, and the messages about what is refused or left out."""

from __future__ import annotations

import math
import warnings

import mujoco
import numpy as np
import pytest

import pfaffian as pf
from pfaffian.errors import ModelError, ModelWarning
from tests.formats.test_mjcf import CHAIN, body, mjcf, ours, state_of
from tests.formats.test_mjcf import quiet as read_mjcf
from tests.refused import refused_texts
from tests.tolerance import PEER, SATISFIED, close

INERTIA = "<inertia><ixx>0.05</ixx><iyy>0.06</iyy><izz>0.04</izz><ixy>0.002</ixy><ixz>-0.003</ixz><iyz>0.001</iyz></inertia>"
MASS = f"<inertial><pose>0.1 0.02 -0.05 0.3 -0.2 0.5</pose><mass>1.3</mass>{INERTIA}</inertial>"


def link(name, place="", inside=MASS):
    return f'<link name="{name}">{place}{inside}</link>'


def joint(name, kind, parent, child, inside="<axis><xyz>0 1 0</xyz></axis>"):
    return f'<joint name="{name}" type="{kind}"><parent>{parent}</parent><child>{child}</child>{inside}</joint>'


def sdf(*parts, version="1.9"):
    return f'<sdf version="{version}"><model name="m">\n' + "\n".join(parts) + "\n</model></sdf>"


def read(text, **options):
    with warnings.catch_warnings(record=True, action="always") as caught:
        m, settings = pf.formats.parse_sdf(text, **options)
    return m, settings, "; ".join(str(w.message) for w in caught)


def twin(model):
    """A compiled MJCF model as SDF text: links at their poses of qpos0, hinges, slides, balls, connects and welds."""
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    parts = []

    def at(x, quat, relative=""):
        words = [*x, *np.roll(quat, -1)]
        to = f' relative_to="{relative}"' if relative else ""
        return f'<pose rotation_format="quat_xyzw"{to}>{" ".join(repr(float(w)) for w in words)}</pose>'

    for i in range(1, model.nbody):
        name, R = model.body(i).name, np.zeros(9)
        mujoco.mju_quat2Mat(R, model.body_iquat[i])
        I = R.reshape(3, 3) @ np.diag(model.body_inertia[i]) @ R.reshape(3, 3).T
        words = "".join(
            f"<i{a}{b}>{I['xyz'.index(a), 'xyz'.index(b)]!r}</i{a}{b}>" for a, b in ("xx", "yy", "zz", "xy", "xz", "yz")
        )
        inertia = f"<inertia>{words}</inertia>".replace("np.float64(", "").replace(")", "")
        inside = (
            f"<inertial>{at(model.body_ipos[i], [1, 0, 0, 0])}<mass>{float(model.body_mass[i])!r}</mass>{inertia}</inertial>"
        )
        parts.append(link(name, at(data.xpos[i], data.xquat[i]), inside))
        if not model.body_jntnum[i]:
            parts.append(joint(f"{name} fixed", "fixed", model.body(model.body_parentid[i]).name, name, ""))
    for j in range(model.njnt):
        b, kind = int(model.jnt_bodyid[j]), ("floating", "ball", "prismatic", "revolute")[model.jnt_type[j]]
        if kind == "floating":
            continue
        parent = model.body(model.body_parentid[b]).name
        xyz, d = " ".join(repr(float(x)) for x in model.jnt_axis[j]), model.jnt_dofadr[j]
        words = {
            "damping": model.dof_damping[d],
            "spring_stiffness": model.jnt_stiffness[j],
            "spring_reference": model.qpos_spring[model.jnt_qposadr[j]],
        }
        dynamics = "".join(f"<{k}>{float(x)!r}</{k}>" for k, x in words.items())
        axis = "" if kind == "ball" else f"<axis><xyz>{xyz}</xyz><dynamics>{dynamics}</dynamics></axis>"
        parts.append(joint(model.joint(j).name, kind, parent, model.body(b).name, at(model.jnt_pos[j], [1, 0, 0, 0]) + axis))
    for e in range(model.neq):
        a, b = (model.body(k).name for k in (model.eq_obj1id[e], model.eq_obj2id[e]))
        kind, place = ("ball", model.eq_data[e, 3:6]) if model.eq_type[e] == 0 else ("fixed", model.eq_data[e, :3])
        parts.append(joint(f"equality {e}", kind, a, b, at(place, [1, 0, 0, 0])))
    return sdf(*parts, version="1.6")


SPRUNG = CHAIN.replace('name="h"', 'name="h" damping="0.2" stiffness="3" springref="0.4"')
ENDS = (
    '<body name="d" pos="0.5 0 0.1" quat="0.6 0 0 0.8"><inertial pos="0 0 0.1" mass="0.4" diaginertia="0.1 0.2 0.25"/>{}</body>'
)
SLIDE = '<joint name="s" type="slide" axis="1 0.2 0" pos="0.1 0 0" damping="0.3"/>'


def test_a_model_moves_like_the_same_model_in_mjcf():
    free = ENDS.replace('"d"', '"e"').format("<freejoint name='root_joint'/>")
    text = mjcf(free + SPRUNG.replace("</body>", body("tip", "") + "</body>", 1) + ENDS.format(SLIDE))
    model = mujoco.MjModel.from_xml_string(text)
    m, settings, _ = read(twin(model))
    assert m.joint("tip fixed").kind.name == "fixed"
    random, data = np.random.default_rng(4), mujoco.MjData(model)
    assert m.q_names == read_mjcf(text)[0].q_names
    q, v = pf.random_configuration(m, random), random.normal(size=m.nv)
    found = pf.compile_terms(m, {"v_dot": lambda T: pf.FORMULATIONS["gauss"](T).v_dot}, backend="numpy", lanes=1)
    data.qpos, data.qvel, turns = state_of(model, q, v)
    mujoco.mj_forward(model, data)
    close(np.ravel(found(q, v)["v_dot"]), ours(data.qacc, data.qvel, turns), PEER, "SDF against MuJoCo")
    assert settings.guess["root_joint.x"] == 0.5


def test_a_loop_moves_alike_in_sdf_and_mjcf():
    arm = body(
        "a", '<joint name="h" axis="0 1 0" stiffness="3" springref="0.4"/>', body("c", '<joint name="h2" axis="0 1 0"/>')
    )
    rocker = ENDS.format('<joint name="h3" axis="0 1 0"/>').replace("0.6 0 0 0.8", "0.6 0 0.8 0")
    text = mjcf(arm + rocker, "<equality><connect body1='c' body2='d' anchor='0.2 0.1 0'/></equality>")
    ends = []
    for m, settings in (read_mjcf(text)[:2], read(twin(mujoco.MjModel.from_xml_string(text)))[:2]):
        r = pf.run(m, settings.arrays(m).q, duration=0.03, step=1e-3, backend="interpreter", every=30)
        ends.append({n: float(r.q.sel(coordinate=n)[-1]) for n in m.q_names})
    assert ends[0].keys() == ends[1].keys() and abs(ends[0]["h"]) > 1e-4
    close([ends[1][n] for n in ends[0]], list(ends[0].values()), 1e-8, "after 0.03 s", 1.0)


# -- frames -----------------------------------------------------------------------------------------------------------

ROD = "<pose>0.3 0.1 0.2 0.4 0 0</pose>"


def place(m, settings, body):
    return np.ravel(pf.forward_kinematics(m, settings.arrays(m).q)[body].position)


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ((link("a", ROD),), (0.3, 0.1, 0.2)),
        (
            (link("a", ROD), link("b", '<pose relative_to="a">0 1 0 0 0 0</pose>'), joint("j", "revolute", "a", "b")),
            (0.3, 0.1 + math.cos(0.4), 0.2 + math.sin(0.4)),
        ),
        (
            (
                '<frame name="f"><pose>1 0 0 0 0 90</pose></frame>'.replace("<pose", '<pose degrees="true"'),
                link("b", '<pose relative_to="f">1 0 0 0 0 0</pose>'),
            ),
            (1, 1, 0),
        ),
        (
            (
                link("a", ROD),
                '<frame name="f" attached_to="a"><pose>0 0 1 0 0 0</pose></frame>',
                link("b", '<pose relative_to="f"/>'),
                joint("j", "fixed", "a", "b", ""),
            ),
            (0.3, 0.1 - math.sin(0.4), 0.2 + math.cos(0.4)),
        ),
        (
            (
                link("a", ROD),
                link("b", '<pose relative_to="j">0 0 0 0 0 0</pose>'),
                joint("j", "revolute", "a", "b", '<pose relative_to="a">1 0 0 0 0 0</pose>'),
            ),
            (1.3, 0.1, 0.2),
        ),
        (("<pose>0 0 5 0 0 0</pose>", link("b", ROD)), (0.3, 0.1, 5.2)),
        ((link("b", '<pose frame="">0 1 0 0 0 0</pose>'),), (0, 1, 0)),
        ((link("b", '<pose rotation_format="quat_xyzw">1 2 3 0 0 0 2</pose>'),), (1, 2, 3)),
        (
            (link("a", '<pose degrees="1">0 0 0 0 0 90</pose>'), link("b", '<pose relative_to="a">1 0 0 0 0 0</pose>')),
            (0, 1, 0),
        ),
    ],
)
def test_frames_determine_the_positions_of_links(parts, expected):
    m, settings, _ = read(sdf(*parts))
    close(place(m, settings, m.bodies[-1].name), expected, SATISFIED, "place", 1.0)


def test_in_old_files_frame_says_what_a_pose_is_relative_to():
    m, settings, _ = read(sdf(link("a", ROD), link("b", '<pose frame="a">0 0 1 0 0 0</pose>'), version="1.6"))
    near, far = (place(m, settings, n) for n in "ab")
    close(far - near, (0, -math.sin(0.4), math.cos(0.4)), SATISFIED, "difference of places", 1.0)


def test_quaternions_that_are_not_of_unit_length_are_told_once():
    """One of five per cent too long, and one whose digits are rounded, in a nested model."""
    turned = '<pose rotation_format="quat_xyzw">1 2 3 0 0 {} 0.8</pose>'
    inner = f'<model name="hand">{link("palm", turned.format(0.7))}{link("thumb", turned.format(0.6001))}</model>'
    _, _, told = read(sdf(link("a"), inner))
    words = "rotations by quaternions that are not of unit length are normalised: '<pose> in <link> palm'"
    assert told.count(words) == 1 and "thumb" not in told


def test_in_old_files_a_joint_may_have_the_name_of_a_link():
    m, settings, _ = read(sdf(link("a", ROD), joint("a", "revolute", "world", "a", ROD), version="1.6"))
    close(place(m, settings, "a"), (0.3, 0.1, 0.2), SATISFIED, "place", 1.0)


def test_ends_of_a_joint_may_be_frames_of_links():
    m, _, _ = read(sdf(link("a"), link("b"), '<frame name="f" attached_to="a"/>', joint("j", "revolute", "f", "b")))
    assert (m.joint("j").parent, m.joint("j").child) == ("a", "b")


TURNED = "<pose>0 0 0 0 0 0.7</pose>"


@pytest.mark.parametrize(
    ("axis", "version", "expected"),
    [
        ("<xyz>1 0 0</xyz>", "1.9", (math.cos(0.7), math.sin(0.7), 0)),
        ('<xyz expressed_in="__model__">1 0 0</xyz>', "1.9", (1, 0, 0)),
        ('<xyz expressed_in="a">1 0 0</xyz>', "1.9", (math.cos(0.2), math.sin(0.2), 0)),
        ("<xyz>1 0 0</xyz><use_parent_model_frame>1</use_parent_model_frame>", "1.6", (1, 0, 0)),
        ("<xyz>1 0 0</xyz><use_parent_model_frame>0</use_parent_model_frame>", "1.6", (math.cos(0.7), math.sin(0.7), 0)),
        ("<xyz>1 0 0</xyz>", "1.4", (1, 0, 0)),
        ("", "1.9", (0, 0, 1)),
    ],
)
def test_axes_are_expressed_in_their_frame(axis, version, expected):
    text = sdf(
        link("a", "<pose>0 0 0 0 0 0.2</pose>"),
        link("b", TURNED),
        joint("j", "prismatic", "world", "b", f"<axis>{axis}</axis>"),
        joint("k", "fixed", "b", "a", ""),
        version=version,
    )
    m, _, _ = read(text)
    moved = [np.ravel(pf.forward_kinematics(m, [x])["b"].position) for x in (0.0, 1.0)]
    close(moved[1] - moved[0], expected, SATISFIED, "direction", 1.0)


# -- joints -----------------------------------------------------------------------------------------------------------


def test_every_type_of_joint():
    two = "<axis><xyz>0 0 1</xyz></axis><axis2><xyz>1 0 0</xyz></axis2>"
    kinds = {
        "fixed": "",
        "revolute": "",
        "continuous": "",
        "prismatic": "",
        "ball": "",
        "universal": two,
        "revolute2": two,
        "screw": "<screw_thread_pitch>0.02</screw_thread_pitch>",
    }
    m, _, _ = read(sdf(link("a"), *(link(k) + joint(f"to {k}", k, "a", k, inside) for k, inside in kinds.items())))
    assert {j.name: j.kind.name for j in m.joints} == {
        "root_joint": "free",
        "to fixed": "fixed",
        "to revolute": "revolute",
        "to continuous": "revolute",
        "to prismatic": "prismatic",
        "to ball": "spherical",
        "to universal": "revolute",
        "to universal axis2": "revolute",
        "to revolute2": "revolute",
        "to revolute2 axis2": "revolute",
        "to screw": "helical",
    }
    assert float(m.joint("to screw").pitch) == pytest.approx(0.02 / (2 * math.pi))
    assert [a.name for a in m.actuators] == [j.name for j in m.joints if j.nv == 1]
    assert np.ravel(m.value(m.joint("to universal axis2").placement.R)[:, 2]) == pytest.approx([1, 0, 0])


@pytest.mark.parametrize("kind", ["revolute", "prismatic", "fixed", "ball"])
def test_joints_without_an_axis_are_named(kind):
    """SDFormat refuses them; z is the default of <xyz>."""
    joints = joint("j", kind, "world", "b", ""), joint("k", "revolute", "b", "c")
    _, _, told = read(sdf(link("b"), *joints, link("c")))
    named = "joints without <axis>, which SDFormat refuses, act about or along z: 'j'"
    assert (named in told) == (kind in ("revolute", "prismatic"))


def test_a_continuous_joint_turns_freely_whatever_its_limits():
    limit = "<axis><xyz>0 1 0</xyz><limit><lower>-1</lower><effort>5</effort></limit></axis>"
    m, _, told = read(sdf(link("b"), joint("j", "continuous", "world", "b", limit)))
    assert (m.joint("j").limits, m.joint("j").effort) == (((-math.inf, math.inf),), 5)
    assert "limits of continuous joints, which turn freely, are left out: 'j'" in told


def test_the_old_pitch_of_a_screw_has_the_opposite_sign():
    m, _, _ = read(sdf(link("b"), joint("j", "screw", "world", "b", "<thread_pitch>-100</thread_pitch>")))
    assert float(m.joint("j").pitch) == pytest.approx(0.01)


def test_limits_effort_and_dynamics():
    limit = "<limit><lower>-1</lower><upper>2</upper><effort>5</effort></limit>"
    dynamics = "<dynamics><damping>0.5</damping><friction>0.7</friction>"
    dynamics += "<spring_stiffness>3</spring_stiffness><spring_reference>0.2</spring_reference></dynamics>"
    text = sdf(link("b"), joint("j", "revolute", "world", "b", f"<axis><xyz>0 1 0</xyz>{limit}{dynamics}</axis>"))
    m, _, messages = read(text)
    j = m.joint("j")
    numbers = (m.value(x).item() for x in (j.damping, j.stiffness, j.rest))
    assert (j.limits, j.effort, tuple(numbers), m.u_limits.tolist()) == (((-1, 2),), 5, (0.5, 3, 0.2), [[-5, 5]])
    assert "dry friction is smooth below 0.001 rad/s or m/s: 'j'" in messages and len(m.forces) == 1
    with_friction = float(pf.compile_terms(m, {"f": lambda T: T.f}, backend="numpy")([0.2], [1.0])["f"])
    m, _, messages = read(text, friction="none")
    assert "dry friction is left out: 'j'" in messages and not m.forces
    free = float(pf.compile_terms(m, {"f": lambda T: T.f}, backend="numpy")([0.2], [1.0])["f"])
    assert with_friction - free == pytest.approx(-0.7, abs=1e-5)
    for none in ("1e16", "inf", "-1"):
        m, _, _ = read(
            text.replace("<effort>5", f"<effort>{none}").replace("<upper>2", "<upper>1e16").replace("<lower>-1", "<lower>-inf")
        )
        assert m.joint("j").limits == ((-math.inf, math.inf),) and m.u_limits[0, 1] in (math.inf, 1e16)


def test_mimic_joints_follow():
    mimic = '<axis><xyz>0 1 0</xyz><mimic joint="lead" axis="axis">'
    mimic += "<multiplier>-2</multiplier><offset>0.3</offset><reference>0.1</reference></mimic></axis>"
    m, _, _ = read(
        sdf(link("a"), link("b"), joint("lead", "revolute", "world", "a"), joint("j", "revolute", "world", "b", mimic))
    )
    assert m.q_names == ("lead",)
    R = pf.forward_kinematics(m, [0.4])["b"].rotation
    assert math.atan2(R[0, 2], R[0, 0]) == pytest.approx(-2 * (0.4 - 0.1) + 0.3)


@pytest.mark.parametrize("ends", [("frame", "in"), ("in", "frame")])
def test_a_gearbox_couples_two_angles(ends):
    """theta_2 = -ratio theta_1; both angles are relative to the reference body, which may be either end of a joint."""
    gear = (
        "<gearbox_reference_body>frame</gearbox_reference_body><gearbox_ratio>0.25</gearbox_ratio>"
        "<axis><xyz>0 0 1</xyz></axis><axis2><xyz>0 0 1</xyz></axis2>"
    )
    back = joint("slow", "revolute", "frame", "out", "<axis><xyz>0 0 -1</xyz></axis>")
    fast = joint("fast", "revolute", *ends, "<axis><xyz>0 0 1</xyz></axis>")
    m, _, _ = read(
        sdf(link("frame"), link("in"), link("out"), fast, back, joint("gear", "gearbox", "in", "out", gear)), base="fixed"
    )
    found = pf.assemble(m, {"fast": 0.8}, backend="interpreter")
    sign = 1 if ends[0] == "frame" else -1
    assert found.named["slow"] == pytest.approx(sign * 0.2)  # about -z: the output turns by -0.2 about z


# -- loops ------------------------------------------------------------------------------------------------------------

BAR = (
    link("a"),
    link("b", "<pose>1 0 0 0 0 0</pose>"),
    link("c", "<pose>1 1 0 0 0 0</pose>"),
    joint("1", "revolute", "world", "a", "<axis><xyz>0 0 1</xyz></axis>"),
    joint("2", "revolute", "a", "b", "<axis><xyz>0 0 1</xyz></axis>"),
    joint("3", "revolute", "b", "c", "<axis><xyz>0 0 1</xyz></axis>"),
)


@pytest.mark.parametrize(
    ("kind", "inside", "closure"),
    [
        ("revolute", "<axis><xyz>0 0 1</xyz></axis>", "revolute"),
        ("ball", "", "spherical"),
        ("fixed", "", "weld"),
        ("prismatic", "<axis><xyz>0 1 0</xyz></axis>", "prismatic"),
        ("screw", "<axis><xyz>0 0 1</xyz></axis>", "helical"),
        ("universal", "<axis><xyz>0 0 1</xyz></axis><axis2><xyz>1 0 0</xyz></axis2>", "universal"),
    ],
)
def test_a_second_parent_closes_a_loop(kind, inside, closure):
    m, settings, _ = read(sdf(*BAR, joint("4", kind, "world", "c", f"<pose>0.2 0 0 0.3 0 0</pose>{inside}")))
    assert [j.name for j in m.joints] == ["1", "2", "3"]
    assert [(c.name, c.kind, c.body_a, c.body_b) for c in m.constraints] == [("4", closure, "world", "c")]
    found = pf.assemble(m, settings.arrays(m).q, backend="interpreter")
    assert found.residual < 1e-12 and not found.q.any()


def test_a_link_that_is_only_a_parent_becomes_a_child():
    """The tree traverses the joint from child to parent, but the coordinate remains the angle of the child about the axis."""
    text = sdf(
        link("a"),
        link("b", "<pose>1 0 0 0 0 0.4</pose>"),
        joint("1", "revolute", "world", "a"),
        joint(
            "2",
            "screw",
            "b",
            "a",
            "<pose>0.1 0.2 0 0.3 0 0</pose><axis><xyz>0 1 0</xyz></axis><screw_thread_pitch>3</screw_thread_pitch>",
        ),
    )
    m, _, _ = read(text)
    assert [(j.name, j.parent, j.child) for j in m.joints] == [("1", "world", "a"), ("2", "a", "b")] and not m.constraints
    forward, _, _ = read(
        text.replace("<parent>b</parent><child>a</child>", "<parent>a</parent><child>b</child>").replace(
            "<pose>0.1 0.2 0 0.3 0 0</pose>", '<pose relative_to="a">0.1 0.2 0 0.3 0 0</pose>'
        )
    )
    turned, straight = (pf.forward_kinematics(x, [0.2, y])["b"] for x, y in ((m, -0.7), (forward, 0.7)))
    close(turned.position, straight.position, SATISFIED, "place", 1.0)
    close(turned.rotation, straight.rotation, SATISFIED, "orientation", 1.0)


def test_base_decides_whether_a_model_floats():
    for base, kind in (("file", "free"), ("free", "free"), ("fixed", "fixed")):
        m, _, _ = read(sdf(link("a", ROD), link("b"), joint("j", "revolute", "a", "b")), base=base)
        assert m.joint("root_joint").kind.name == kind
    m, settings, _ = read(sdf(link("a", ROD), link("b"), joint("j", "revolute", "a", "b")), base="fixed")
    close(place(m, settings, "a"), (0.3, 0.1, 0.2), SATISFIED, "place", 1.0)


def test_world_gravity_step_and_models():
    one, two = (
        sdf(link("a"))[len('<sdf version="1.9">') : -len("</sdf>")],
        "<model name='n'><static>true</static><link name='x'/></model>",
    )
    text = '<sdf version="1.9"><world name="w"><gravity>0 1 -2</gravity>'
    text += f"<physics><max_step_size>0.004</max_step_size></physics>{one}{two}</world></sdf>"
    m, settings, _ = read(text, model="m")
    assert m.value(m.gravity).ravel().tolist() == [0, 1, -2] and settings.step == 0.004
    m, settings, _ = read(sdf(link("a", "", f"<gravity>0</gravity>{MASS}")))
    a = pf.compile_terms(m, {"a": lambda T: pf.FORMULATIONS["gauss"](T).v_dot}, backend="numpy", lanes=1)
    close(np.ravel(a(settings.arrays(m).q, np.zeros(6))["a"]), np.zeros(6), SATISFIED, "without gravity", 1.0)


@pytest.mark.parametrize("step", ["0", "-0.001", "1"])
def test_an_invalid_step_is_refused_with_its_line(step):
    text = f'<sdf version="1.9"><world name="w">\n<physics><max_step_size>{step}</max_step_size></physics>'
    with pytest.raises(ModelError, match=r"line 2.*max_step_size .* is not a time step"):
        read(f"{text}<model name='n'><link name='x'/></model></world></sdf>")


def test_shapes_and_masses():
    shapes = (
        "<visual name='v'><pose>0 0 1 0 0 0</pose><geometry><box><size>1 2 3</size></box></geometry>"
        "<material><diffuse>1 0 0 1</diffuse></material></visual>"
        "<collision name='c'><geometry><capsule><radius>0.1</radius><length>0.5</length></capsule></geometry></collision>"
        "<visual name='w'><geometry><mesh><uri>model://r/x.stl</uri><scale>2 2 2</scale></mesh></geometry></visual>"
        "<visual name='u'><geometry><plane/></geometry></visual>"
    )
    m, _, messages = read(sdf(link("a", "", MASS + shapes), link("b", "", ""), joint("j", "revolute", "a", "b")))
    found = m.body("a").shapes
    assert [(s.kind, s.role) for s in found] == [("box", "visual"), ("mesh", "visual"), ("capsule", "collision")]
    assert found[0].colour == (1, 0, 0, 1) and found[1].file is None and found[1].label == "model://r/x.stl"
    assert (
        "capsule, cone or mesh, are left out of pictures: 'a'" in messages and "contact between shapes is left out" in messages
    )
    assert "links without <inertial> have mass 1 kg and inertia 1 kg m^2, the defaults of SDF: 'b'" in messages
    assert m.value(m.body("b").mass).item() == 1 and m.value(m.body("b").inertia) == pytest.approx(np.eye(3))


# -- refusals ---------------------------------------------------------------------------------------------------------

A = link("a")
HINGED = joint("j", "revolute", "world", "a")


def hinged(axis: str) -> str:
    """A link on a hinge whose <axis> contains this."""
    return sdf(A, joint("j", "revolute", "world", "a", f"<axis>{axis}</axis>"))


WRONG = {
    "another format": ("<robot/>", "the root element of an SDF file is <sdf>"),
    "no version": ("<sdf><model name='m'/></sdf>", "version '' is not a version number"),
    "an odd version": ('<sdf version="1.x"><model name="m"/></sdf>', "version '1.x' is not a version number"),
    "no model": ('<sdf version="1.9"/>', "the file has no <model>"),
    "two models": ('<sdf version="1.9"><model name="m"/><model name="n"/></sdf>', "2 models: 'm', 'n'; pass model=name"),
    "an included world": (
        '<sdf version="1.9"><world name="w"><include><uri>model://cassie</uri></include></world></sdf>',
        "'model://cassie' is not below this file's folder; pass meshes=[the folder that holds 'cassie']",
    ),
    "a model placed in a world": (
        sdf("<pose relative_to='table'>0 0 1 0 0 0</pose>", A),
        "placed relative to 'table', which is not read",
    ),
    "static": (sdf("<static>true</static>", A), "the model is static"),
    "placement frame": (sdf(A).replace('name="m"', 'name="m" placement_frame="f"'), "no link, joint or frame 'f'"),
    "no link": (sdf(), "a model must have 1 to 20000 links and joints"),
    "an unknown canonical link": (
        sdf(A, joint("j", "fixed", "world", "__model__", "")).replace('name="m"', 'name="m" canonical_link="b"'),
        "there is no link",
    ),
    "two links of one name": (sdf(A, A), "a <link> of this name is on line 2; names must be unique"),
    "a joint named as a link": (sdf(A, joint("a", "revolute", "world", "a")), "a <link> of this name"),
    "two joints of one name": (sdf(A, HINGED, HINGED, version="1.6"), "a <joint> of this name"),
    "no name": (sdf("<link/>"), "the attribute 'name' is missing"),
    "a reserved name": (sdf(link("__root__")), "the name '__root__' is reserved"),
    "a link called world": (sdf(link("world")), "the name 'world' is reserved"),
    "a long name": (sdf(link("a" * 129)), "1 to 128 printable characters"),
    "unknown type": (sdf(A, joint("j", "hinge", "world", "a")), "type 'hinge' is unknown; the types are fixed, revolute"),
    "no parent": (sdf(A, '<joint name="j" type="fixed"><child>a</child></joint>'), "<parent> is missing"),
    "unknown child": (sdf(A, joint("j", "fixed", "world", "c", "")), "no link"),
    "unknown parent": (sdf(A, joint("j", "fixed", "c", "a", "")), "there is no link 'c'"),
    "its own parent": (sdf(A, joint("j", "fixed", "a", "a", "")), "parent and child are both 'a'"),
    "no axis direction": (hinged("<xyz>0 0 0</xyz>"), "has no direction"),
    "axis of two numbers": (
        hinged("<xyz>0 1</xyz>"),
        "3 numbers separated by spaces",
    ),
    "axis in an unknown frame": (
        hinged('<xyz expressed_in="f">0 0 1</xyz>'),
        "no link, joint or frame 'f'",
    ),
    "no second axis": (sdf(A, joint("j", "universal", "world", "a")), "<axis2> is missing"),
    "limits swapped": (
        hinged("<limit><lower>2</lower><upper>1</upper></limit>"),
        "swap them",
    ),
    "damping in words": (
        hinged("<dynamics><damping>much</damping></dynamics>"),
        "'much' is not a decimal",
    ),
    "a screw without pitch": (
        sdf(A, joint("j", "screw", "world", "a", "<screw_thread_pitch>0</screw_thread_pitch>")),
        "pitch of a screw",
    ),
    "mimic of an unknown joint": (
        hinged('<mimic joint="k"/>'),
        "it mimics 'k', which is not a joint",
    ),
    "mimic of itself": (
        hinged('<mimic joint="j"/>'),
        "follow each other in a circle",
    ),
    "gearbox without a reference": (
        sdf(A, link("b"), joint("j", "gearbox", "a", "b", "<axis/><axis2/>")),
        "<gearbox_reference_body> is missing",
    ),
    "gearbox on an unknown body": (
        sdf(
            A,
            link("b"),
            HINGED,
            joint("g", "gearbox", "a", "b", "<axis/><axis2/><gearbox_reference_body>c</gearbox_reference_body>"),
        ),
        "a gearbox needs a revolute joint between 'c' and 'a'",
    ),
    "skew axes of a closure": (
        sdf(*BAR, joint("4", "universal", "world", "c", "<axis><xyz>0 0 1</xyz></axis><axis2><xyz>0 1 1</xyz></axis2>")),
        "right angles",
    ),
    "a pose of five numbers": (sdf(link("a", "<pose>0 0 0 0 0</pose>")), "6 numbers separated by spaces"),
    "a quaternion of zeros": (sdf(link("a", '<pose rotation_format="quat_xyzw">0 0 0 0 0 0 0</pose>')), "not all zero"),
    "a pose in an unknown frame": (sdf(link("a", '<pose relative_to="f">0 0 0 0 0 0</pose>')), "no link, joint or frame 'f'"),
    "a circle of frames": (
        sdf(A, '<frame name="f"><pose relative_to="g"/></frame>', '<frame name="g"><pose relative_to="f"/></frame>'),
        "relative to itself",
    ),
    "negative mass": (sdf(link("a", "", "<inertial><mass>-1</mass></inertial>")), "must be zero or positive"),
    "an infinite mass": (sdf(link("a", "", "<inertial><mass>inf</mass></inertial>")), "line 2: <inertial>: mass: 'inf' is not"),
    "an empty mass": (
        sdf(link("a", "", "<inertial><mass/></inertial>")),
        "line 2: <inertial>: mass: '' is not a decimal number",
    ),
    "an infinite inertia": (
        sdf(link("a", "", "<inertial><inertia><ixx>INF</ixx></inertia></inertial>")),
        "line 2: <inertia>: ixx: 'INF' is not a decimal number",
    ),
    "two masses": (
        sdf(link("a", "", "<inertial><mass>1</mass><mass>2</mass></inertial>")),
        "line 2: <mass>: another <mass> of the same element is on line 2",
    ),
    "two axes": (sdf(A, joint("j", "revolute", "world", "a", "<axis/><axis/>")), "line 3: <axis>: another <axis>"),
    "an unused wrong number": (
        hinged("<limit><velocity>0x3</velocity></limit>"),
        "velocity: '0x3' is not a decimal number",
    ),
    "mimics of each other": (
        sdf(
            A,
            link("b"),
            joint("j", "revolute", "world", "a", '<axis><mimic joint="k"/></axis>'),
            joint("k", "revolute", "a", "b", '<axis><mimic joint="j"/></axis>'),
        ),
        "line 4: <joint> 'j': mimic joints follow each other in a circle",
    ),
    "inertia of shapes": (
        sdf(link("a", "", '<inertial auto="true"/>')),
        "auto needs a <collision> of the link",
    ),
    "not a boolean": (sdf(link("a", "<gravity>perhaps</gravity>")), "'perhaps' is not true or false"),
    "entities": ("<!DOCTYPE a [<!ENTITY x 'y'>]>" + sdf(A), "document types and entities are not allowed"),
    "no motion": (sdf(A, joint("j", "fixed", "world", "a", "")), "no joint that moves"),
    "a gravity of two": (
        '<sdf version="1.9"><world name="w"><gravity>0 1</gravity>' + sdf(A)[19:-6] + "</world></sdf>",
        "3 numbers separated by spaces",
    ),
}


test_wrong_files_are_refused_with_the_reason = refused_texts(WRONG, pf.formats.parse_sdf)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"base": "loose"}, "base='loose': one of file, fixed, free"),
        ({"base": "free"}, "a joint already connects the model to the world"),
        ({"friction": "wet"}, "friction='wet': one of smooth, none"),
        ({"model": "n"}, "model='n': there are m"),
        ({"actuated": ["k"]}, "actuated: 'k' is not a joint with one velocity"),
    ],
)
def test_wrong_options_are_refused(options, message):
    with pytest.raises(ModelError) as error:
        pf.formats.parse_sdf(sdf(A, HINGED), **options)
    assert message in str(error.value)


def test_parts_that_are_left_out_are_named_in_one_warning():
    loop = joint(
        "4",
        "revolute",
        "world",
        "c",
        "<axis><xyz>0 0 1</xyz><dynamics><damping>1</damping></dynamics><limit><lower>0</lower></limit></axis>",
    )
    ball = joint("5", "ball", "c", "d", "<axis><dynamics><damping>1</damping></dynamics></axis>")
    text = sdf(*BAR, loop, link("d"), ball, "<plugin name='p' filename='x.so'/>")
    _, _, messages = read(text)
    for part in (
        "SDF: plugins are left out: 'p'",
        "axes of ball joints, with their dampers, are left out: '5'",
    ):
        assert part in messages
    with pytest.warns(ModelWarning) as caught:
        pf.formats.parse_sdf(text)
    assert len(caught) == 1


def test_initial_positions_of_axes_are_the_start():
    """They are read for hinges, sliders and universal joints, but not for joints that follow others or close loops."""

    def turned(x, more=""):
        return f"<xyz>0 1 0</xyz><initial_position>{x}</initial_position>{more}"

    two = "<axis><xyz>1 0 0</xyz><initial_position>0.2</initial_position></axis><axis2><xyz>0 1 0</xyz></axis2>"
    follows = turned(0.3, '<mimic joint="h"><multiplier>2</multiplier></mimic>')
    _, settings, words = read(sdf(
        link("a"), link("b"), link("c"), link("d"), link("e"),
        joint("h", "revolute", "world", "a", f"<axis>{turned(0.7)}</axis>"),
        joint("s", "prismatic", "a", "b", f"<axis>{turned(-0.1)}</axis>"),
        joint("u", "universal", "b", "c", two),
        joint("f", "revolute", "c", "d", f"<axis>{follows}</axis>"),
        joint("n", "revolute", "d", "e", f"<axis>{turned(0.5)}</axis>"),
        joint("loop", "revolute", "world", "e", f"<axis>{turned(0.4)}</axis>"),
        version="1.6",
    ))  # fmt: skip
    assert {n: x for n, x in settings.guess.items() if x} == {"h": 0.7, "s": -0.1, "u": 0.2, "n": 0.5}
    assert "initial positions of joints that follow others are left out: 'f'" in words
    assert "initial positions of joints that close loops are left out: 'loop'" in words
    back = sdf(
        link("a"),
        link("b"),
        joint("w", "fixed", "world", "b", ""),
        joint("h", "revolute", "a", "b", f"<axis>{turned(0.7)}</axis>"),
    )
    m, settings, _ = read(back)
    R = pf.compile_terms(m, {"R": lambda T: T.kinematics.rotation("a")}, backend="interpreter", lanes=1)([settings.guess["h"]])
    close(R["R"][0, 2], math.sin(-0.7), PEER, "b turned by 0.7 from a")
    with pytest.raises(ModelError, match="initial_position"):
        read(sdf(link("a"), joint("h", "revolute", "world", "a", f"<axis>{turned('far')}</axis>")))


IMPOSSIBLE = {
    "a side too long": ("<ixx>1</ixx><iyy>1</iyy><izz>3</izz>", "break the triangle inequality: 1, 1, 3 kg m"),
    "negative": ("<ixx>-1</ixx>", "is negative: -1, 1, 1 kg m"),
    "large products": ("<ixy>5</ixy>", "is negative: -4, 1, 6 kg m"),
}


@pytest.mark.parametrize("name", IMPOSSIBLE)
def test_impossible_inertias_are_named_with_the_reason_or_refused(name):
    inertia, reason = IMPOSSIBLE[name]
    text = sdf(link("a", "", f"<inertial><inertia>{inertia}</inertia></inertial>"), HINGED)
    m, _, words = read(text)
    assert m.lenient and "used as they are: 'a': " in words and reason in words
    with pytest.raises(ModelError, match=r"line 2: <link> 'a': .*; correct it"):
        pf.formats.parse_sdf(text, strict=True)
    assert not pf.formats.parse_sdf(sdf(A, HINGED), strict=True)[0].lenient


def test_a_joint_between_links_that_are_already_connected_closes_a_loop():
    """The link "p" hangs on "u" by its child; so "r", which carries "u", cannot hang on "v", which "p" carries."""
    ends = (("1", "r", "u"), ("2", "p", "v"), ("3", "p", "u"), ("4", "r", "v"))
    m, _, _ = read(sdf(*(link(n) for n in "rupv"), *(joint(n, "revolute", a, b) for n, a, b in ends)))
    assert [c.name for c in m.constraints] == ["4"] and [j.name for j in m.joints] == ["root_joint", "1", "3", "2"]


# -- what the file leaves to its shapes, to the world, or to other engines ---------------------------------------------

AT = "<pose>1 0 0 0.1 0.2 0.3</pose>"
SOLIDS = {
    "sphere": ("<radius>0.1</radius>", 4.188790204786391, (1, 0, 0), (0.01675516, 4.20554537, 4.20554537), (0, 0, 0)),
    "capsule": ("<radius>0.1</radius><length>0.5</length>", 19.89675347273536, (1, 0, 0),
                (0.69365716, 20.61950881, 20.02286297), (0.00507027, -0.13378729, 0.02264421)),
    "cylinder": ("<radius>0.1</radius><length>0.5</length>", 15.707963267948967, (1, 0, 0),
                 (0.35278915, 16.07408908, 15.80062641), (0.00232387, -0.06131918, 0.0103786)),
    "cone": ("<radius>0.1</radius><length>0.5</length>", 5.235987755982989, (0.97270617, 0.00461963, -0.12189629),
             (0.13288722, 5.08875302, 4.97190988), (-0.02319538, 0.61204748, 0.00443449)),
    "ellipsoid": ("<radii>0.1 0.2 0.3</radii>", 25.132741228718345, (1, 0, 0), (0.62286728, 25.64770238, 25.40234631),
                  (0.04292081, -0.08156498, 0.00038078)),
}  # fmt: skip
"""Kind -> its size; mass, mass centre, moments and products of inertia about the origin by Drake 1.51.1, which reads SDF by
libsdformat."""

PRINTED = 2e-8
"""Drake's numbers were printed with eight decimals."""


def auto(shapes, inside="", of=""):
    return sdf(link("a", "", f'<inertial auto="true">{inside}</inertial>{shapes}{of}'), version="1.11")


@pytest.mark.parametrize("kind", SOLIDS)
def test_inertias_of_shapes_are_those_of_drake(kind):
    size, mass, com, moments, products = SOLIDS[kind]
    shape = f"<collision name='c'>{AT}<geometry><{kind}>{size}</{kind}></geometry></collision>"
    m = read(auto(shape))[0]
    b = m.bodies[0]
    c, I = m.value(b.com).ravel(), m.value(b.inertia)
    about = I + float(b.mass) * (c @ c * np.eye(3) - np.outer(c, c))
    close([float(b.mass), *c, *np.diag(about)], [mass, *com, *moments], PRINTED, kind)
    close(about[(0, 0, 1), (1, 2, 2)], products, PRINTED, kind, 1.0)


def test_densities_of_shapes_come_before_that_of_the_link():
    """Three cubes of 0.1 m: one by its own density, one by that of the link; a mass of the link scales both."""
    box = "<geometry><box><size>0.1 0.1 0.1</size></box></geometry>"
    cube = f"<collision name='{{}}'><pose>{{}} 0 0 0 0 0</pose>{{}}{box}</collision>"
    own = cube.format("c", 0, "<density>3000</density>")
    for link_density, mass, total in (("", "", 4), ("<density>500</density>", "", 3.5), ("", "<mass>8</mass>", 8)):
        m = read(auto(own, link_density + mass, cube.format("d", 1, "")))[0]
        second = 0.5 if link_density else 1
        assert float(m.bodies[0].mass) == pytest.approx(total)
        assert float(m.bodies[0].com[0]) == pytest.approx(second / (3 + second))
        about = total / (3 + second) * (3 * second / (3 + second)) + total * 0.01 / 6
        assert float(m.bodies[0].inertia[2, 2]) == pytest.approx(about)


def test_the_inertia_of_turned_shapes_is_symmetric_to_the_last_digit(tmp_path):
    """So that the machine is equal when its YAML file is read, which has six numbers."""
    shape = "<collision name='{}'><pose>1 2 3 0.{} 0.2 0.5</pose><geometry><box><size>1 2 3</size></box></geometry></collision>"
    m = read(auto("".join(shape.format(k, k + 1) for k in range(5))))[0]
    I = np.array(m.value(m.bodies[0].inertia))
    assert (I == I.T).all()
    assert pf.read(pf.write(m, tmp_path / "a.yaml")[0])[0] == m


def test_the_inertia_of_a_mesh(tmp_path):
    pytest.importorskip("trimesh")
    corners = "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 1 4 3\n"
    (tmp_path / "open.obj").write_text(corners)
    (tmp_path / "closed.obj").write_text(corners + "f 2 3 4\n")
    mesh = "<collision name='c'><geometry><mesh><uri>{}.obj</uri><scale>2 1 1</scale></mesh></geometry></collision>"
    b = read(auto(mesh.format("closed")), folder=tmp_path)[0].bodies[0]
    assert [float(b.mass), float(b.com[0])] == pytest.approx([1000 / 3, 0.5])
    assert float(b.inertia[0, 0]) == pytest.approx(1000 / 3 * (3 / 80 + 3 / 80))  # 3/80 m a^2 of each edge of a tetrahedron
    _, _, told = read(auto(mesh.format("closed")), folder=tmp_path)
    assert "inertias of meshes" not in told
    for more in ("<mesh><submesh><name>lid</name></submesh>", '<mesh optimization="convex_hull">'):
        _, _, told = read(auto(mesh.format("closed").replace("<mesh>", more)), folder=tmp_path)
        assert "inertias of meshes are those of their whole files, whatever their submesh and optimization: 'a'" in told
    for name, words in (("open", "is not closed, so it has no inertia"), ("none", "which is not found; pass meshes=")):
        with pytest.raises(ModelError, match=words):
            read(auto(mesh.format(name)), folder=tmp_path)


@pytest.mark.parametrize(
    ("inside", "shape", "words"),
    [
        ("<pose>0 0 1 0 0 0</pose>", "<sphere/>", "with auto, <pose> is computed and must not be given"),
        ("", "<plane/>", "auto knows no inertia of this shape"),
        ("<mass>-1</mass>", "<sphere/>", "the mass -1.0 is not above zero"),
        ("<density>0</density>", "<sphere/>", "the density 0.0 is not above zero"),
        ("", "<sphere><radius>0</radius></sphere>", "it has no volume, so auto cannot give it a mass"),
        ("", "<sphere/><box/>", "one shape is needed in <geometry>"),
    ],
)
def test_wrong_inertias_of_shapes_are_refused(inside, shape, words):
    with pytest.raises(ModelError, match=words):
        read(auto(f"<collision name='c'><geometry>{shape}</geometry></collision>", inside))


def test_gravity_of_a_world_and_of_none():
    """9.8 m/s^2 in a world that gives none, as libsdformat 12.3.0 has it; up to SDF 1.4 it is in <physics>."""
    model = sdf(link("a"))[len('<sdf version="1.9">') : -len("</sdf>")]
    physics = "<physics><gravity>0 0 -1</gravity></physics>"
    for text, z in (
        (sdf(link("a")), -9.81),
        (f'<sdf version="1.9"><world name="w">{model}</world></sdf>', -9.8),
        (f'<sdf version="1.4"><world name="w">{physics}{model}</world></sdf>', -1),
    ):
        m = read(text)[0]
        assert m.value(m.gravity).ravel().tolist() == [0, 0, z]


def test_elements_that_are_not_read_are_named():
    inside = "<velocity_decay><linear>0.1</linear></velocity_decay><enable_wind>true</enable_wind>"
    inside += "<must_be_base_link>1</must_be_base_link>"
    hinge = joint("j", "revolute", "world", "a", "<axis><xyz>0 1 0</xyz><dynamics><dampping>1</dampping></dynamics></axis>"
                  "<physics><ode><max_force>1</max_force><cfm>1</cfm></ode></physics>")  # fmt: skip
    model = sdf(link("a", inside), hinge, "<enable_wind>0</enable_wind><model_state name='m'/>")
    silent = ("Physics", "UserCommands", "SceneBroadcaster", "Sensors", "Contact", "Imu", "ForceTorque", "Altimeter", "NavSat")
    plugins = "".join(f"<plugin name='gz::sim::systems::{x}'/>" for x in (*silent, "Buoyancy"))
    world = model.replace("<model", '<world name="w"><wind/><joint name="k"/><model', 1)
    messages = read(world.replace("</sdf>", f"{plugins}</world></sdf>"))[2]
    listed = "'<joint> in <world> w', '<model_state> in <model> m', '<velocity_decay> in <link> a', "
    listed += "'<enable_wind> in <link> a', '<dampping> in <dynamics> j', '<max_force> in <ode> j'"
    assert f"elements and attributes that are not read: {listed}" in messages
    assert "plugins are left out: 'gz::sim::systems::Buoyancy'" in messages
