"""The meaning of MJCF files, compared with MuJoCo at random states, and the messages about what is refused or left out."""

from __future__ import annotations

import re
import sys
import warnings

import mujoco
import numpy as np
import pytest

import pfaffian as pf
from pfaffian.errors import ModelError, ModelWarning
from pfaffian.viewer.meshes import read_mesh
from tests.refused import refused_texts
from tests.tolerance import PEER, SATISFIED, close
from tools.compare_files.mjcf import examine

SMALL = '<inertial pos="0.1 0.02 -0.05" mass="1.3" fullinertia="0.05 0.06 0.04 0.002 -0.003 0.001"/>'


def mjcf(bodies, more="", head='<compiler angle="radian"/>'):
    return f"<mujoco model='m'>\n{head}\n<worldbody>{bodies}</worldbody>\n{more}</mujoco>"


def body(name, joints, inside="", place='pos="0.1 0.2 0.3" quat="0.8 0 0.6 0"'):
    return f'<body name="{name}" {place}>{SMALL}{joints}{inside}</body>'


def quiet(text, **options):
    """The mechanism and the settings of an MJCF text, and its warnings joined into one text."""
    with warnings.catch_warnings(record=True, action="always") as caught:
        m, settings = pf.formats.parse_mjcf(text, **options)
    return m, settings, "; ".join(str(w.message) for w in caught)


def read(text, **options):
    return quiet(text, **options)[0]


HINGE = '<joint name="h" type="hinge" axis="0.6 0 0.8" pos="0.05 -0.1 0.2" ref="0.3"/>'
BALL = '<joint name="b" type="ball" pos="0.02 0.03 0.04" damping="0.1"/>'
FREE = '<freejoint name="f"/>'

MACHINES = {
    "every joint": body(
        "a", FREE, body("b1", HINGE, body("c", BALL, body("d", '<joint name="s" type="slide" axis="0 1 1" ref="-0.2"/>')))
    ),
    "several joints of one body": body("a", '<joint name="x" type="slide" axis="1 0 0" pos="0.1 0 0"/>' + HINGE + BALL),
    "springs and dampers": body(
        "a",
        '<joint name="h" axis="0 1 0" stiffness="3" springref="0.4" ref="0.1" damping="0.2" armature="0.07"/>',
        body(
            "b1",
            '<joint name="s" type="slide" stiffness="20" springref="-0.1" damping="0.5" armature="0.2"/>',
            body("c", '<joint name="b" type="ball" stiffness="0.7" damping="0.03" armature="0.01"/>'),
        ),
    ),
    "a free body with springs and armature": body(
        "a",
        '<joint name="f" type="free" stiffness="2" damping="0.3" armature="0.4"/>',
        place='pos="0.3 0.1 0.2" quat="0.6 0 0.8 0"',
    ),
    "polynomial springs and dampers": body(
        "a",
        '<joint name="h" axis="0 1 0" stiffness="3 -1 0.5" springref="0.4" damping="0.2 0.3 0.1"/>',
        body(
            "b1",
            '<joint name="s" type="slide" stiffness="0 4 0.5" damping="0 0 0.2"/>',
            body("c", '<joint name="b" type="ball" stiffness="0.7 0.4 0.3"/>'),
        ),
    ),
    "a free body with a polynomial spring": body("a", '<joint name="f" type="free" stiffness="2 0.5 0.3"/>'),
    "weight held up": body("a", HINGE).replace('name="a"', 'name="a" gravcomp="0.7"'),
    "weight below zero": body("a", HINGE).replace('name="a"', 'name="a" gravcomp="-0.7"'),
    "weights of both signs": body("a", HINGE, body("b1", HINGE.replace('"h"', '"h2"')))
    .replace('name="a"', 'name="a" gravcomp="-0.7"')
    .replace('name="b1"', 'name="b1" gravcomp="0.2"'),
}
TWO = body(
    "a",
    '<joint name="h" axis="0 1 0"/>',
    body("b1", '<joint name="s" type="slide" axis="1 0 0"/><site name="p" pos="0.1 0 0"/>'),
)
FIXED = '<fixed name="t" {}><joint joint="h" coef="0.7"/><joint joint="s" coef="-1.3"/></fixed>'
SITES = '<site name="w" pos="1 -1 2"/><site name="w2" pos="-1 0.5 0"/>'
TENDONS = {
    "a fixed tendon": (FIXED.format('stiffness="9" damping="0.4" springlength="0.2" armature="0.3"'), ""),
    "polynomials of a length": (FIXED.format('stiffness="9 2 -1" springlength="-0.1 0.2" damping="0.4 0.3 0.2"'), ""),
    "a spring with play": (FIXED.format('stiffness="9" springlength="-0.1 0.1"'), ""),
    "a path with a pulley": (
        '<spatial name="t" stiffness="11" damping="0.4" springlength="0.5" armature="0.2"><site site="w"/><site site="p"/>'
        '<pulley divisor="2"/><site site="p"/><site site="w2"/></spatial>',
        SITES,
    ),
    "a path round a cylinder": (
        '<spatial name="t" stiffness="11" damping="0.4" springlength="0.5"><site site="w"/><geom geom="bar"/><site site="p"/>'
        "</spatial>",
        SITES + '<geom name="bar" type="cylinder" size="0.3 1" pos="0.6 -0.4 1" euler="20 30 0"/>',
    ),
    "a path round spheres, on a given side of one": (
        '<spatial name="t" stiffness="11 2" damping="0.4" springlength="0.5"><site site="w"/><geom geom="ball" sidesite="s"/>'
        '<site site="p"/><pulley divisor="2"/><site site="p"/><geom geom="ball"/><site site="w2"/></spatial>',
        SITES + '<geom name="ball" size="0.4" pos="0.2 -0.3 0.9"/><site name="s" pos="2 2 -1"/>',
    ),
}
ACTUATORS = {
    "motor": '<motor name="u" joint="h" gear="2.5"/>',
    "position": '<position name="u" joint="h" kp="7" kv="0.4" gear="1.5"/>',
    "velocity": '<velocity name="u" joint="s" kv="3" gear="-2"/>',
    "general": '<general name="u" joint="s" gainprm="2" biastype="affine" biasprm="0.5 -4 -0.3" gear="3"/>',
    "tendon": '<general name="u" tendon="t" gainprm="2" biastype="affine" biasprm="0.5 -4 -0.3" gear="3"/>',
    "armature": '<motor name="u" joint="h" gear="2" armature="0.1" damping="0.2"/>',
    "a polynomial damper": '<motor name="u" joint="h" gear="2" damping="0.2 0.3 0.1"/>',
    "a polynomial damper of a tendon": '<motor name="u" tendon="t" gear="2" damping="0.2 0.3 0.1"/>',
    "armature of a tendon": '<motor name="u" tendon="t" gear="2" armature="0.1" damping="0.2"/>',
}
LINES = {
    "a motor": '<motor name="u" tendon="t" gear="-2.5" damping="0.3"/>',
    "a servo": '<position name="u" tendon="t" kp="7" kv="0.4" gear="1.5"/>',
    "a damper": '<general name="u" tendon="t" gaintype="affine" gainprm="0 0 -3" gear="2"/>',
    "a damper of a joint": '<general name="u" joint="h" gaintype="affine" gainprm="0 0 -3" gear="2"/>',
    "a slider-crank": '<motor name="u" cranksite="p" slidersite="w3" cranklength="3" gear="2"/>',
    "a servo of a slider-crank": '<position name="u" cranksite="p" slidersite="w3" cranklength="3" kp="4"/>',
    "a rod that is too short": '<motor name="u" cranksite="p" slidersite="w3" cranklength="0.1" gear="2"/>',
}
"""Actuators along a line round a cylinder, or a slider that stands on the moving frame of `w3`."""
DRONE = (
    f'<body name="a">{SMALL}{FREE}<site name="r" pos="0.2 0.1 0" quat="0.8 0.6 0 0"/></body>'
    f'<body name="b1">{SMALL}<joint name="b" type="ball"/></body>'
)
DRIVEN = {
    "a rotor": '<motor name="u" site="r" gear="0 0 1 0 0 0.02"/>',
    "any wrench": '<motor name="u" site="r" gear="0.3 0 2 0.1 -0.4 0"/>',
    "a ball joint": '<motor name="u" joint="b" gear="0.3 -2 0.7"/>',
    "moments of a free joint": '<motor name="u" joint="f" gear="0 0 0 0.3 -2 0.7"/>',
}


def state_of(model, q, v):
    """MuJoCo's qpos and qvel at q and v, and the rotation of each free joint by the index of its velocity."""
    qpos, qvel, turns = np.array(q), np.array(v), {}
    for j in range(model.njnt):
        kind, at, rate = int(model.jnt_type[j]), model.jnt_qposadr[j], model.jnt_dofadr[j]
        first = at + 3 * (kind == 0)
        if kind < 2:
            qpos[first : first + 4] = np.roll(q[first : first + 4], 1)
        if kind == 0:
            R = np.zeros(9)
            mujoco.mju_quat2Mat(R, qpos[first : first + 4])
            turns[rate] = R.reshape(3, 3)
            qvel[rate : rate + 3] = turns[rate] @ v[rate : rate + 3]
    return qpos, qvel, turns


def ours(a, qvel, turns):
    """MuJoCo's accelerations, converted to our velocities; those of free joints are along the body's axes."""
    a = np.array(a)
    for rate, R in turns.items():
        a[rate : rate + 3] = R.T @ a[rate : rate + 3] - np.cross(qvel[rate + 3 : rate + 6], R.T @ qvel[rate : rate + 3])
    return a


def start_of(model):
    """q of the pose in which MuJoCo's model is written."""
    q = np.array(model.qpos0)
    for j in np.flatnonzero(model.jnt_type < 2):
        first = model.jnt_qposadr[j] + 3 * (model.jnt_type[j] == 0)
        q[first : first + 4] = np.roll(q[first : first + 4], -1)
    return q


def check_against_mujoco(text, seeds=(0, 1), idle=False, **options):
    """Compare accelerations without constraints, and positions of all bodies, in the pose of the file at rest, where lengths
    and angles may be zero, and at random states.   idle: without inputs."""
    m, model = read(text, **options), mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    parts = {"v_dot": lambda T: pf.FORMULATIONS["gauss"](T).v_dot, **{b.name: _place(b.name) for b in m.bodies}}
    at = pf.compile_terms(m, parts, backend="interpreter", lanes=1)
    for seed in (None, *seeds):
        random = np.random.default_rng(seed or 0)
        q, v, u = pf.random_configuration(m, random), random.normal(size=m.nv), random.normal(size=m.nu) * (not idle)
        if seed is None:
            q, v, u = start_of(model), 0 * v, 0 * u
        data.qpos, data.qvel, turns = state_of(model, q, v)
        data.ctrl[:] = u if m.nu and not idle else 0  # actuation may be switched off
        mujoco.mj_forward(model, data)
        found = at(q, v, u)
        close(np.ravel(found["v_dot"]), ours(data.qacc, data.qvel, turns), PEER, f"acceleration, seed {seed}")
        for i in range(1, model.nbody):
            close(np.ravel(found[model.body(i).name]), data.xpos[i], PEER, f"place of {model.body(i).name}", 1.0)
    return m


def _place(name):
    return lambda T: T.kinematics.position(name)


@pytest.mark.parametrize("name", MACHINES)
def test_joints_and_their_springs_move_as_in_mujoco(name):
    check_against_mujoco(mjcf(MACHINES[name], head='<compiler angle="radian"/><option gravity="1 -2 -9"/>'))


@pytest.mark.parametrize("name", TENDONS)
def test_tendons_pull_as_in_mujoco(name):
    tendon, sites = TENDONS[name]
    check_against_mujoco(mjcf(sites + TWO, f"<tendon>{tendon}</tendon>"), seeds=(0, 1, 2))


@pytest.mark.parametrize("name", LINES)
def test_actuators_along_lines_pull_as_in_mujoco(name):
    tendon, bar = TENDONS["a path round a cylinder"]
    slider = body("slider", '<joint name="y" type="slide" axis="1 1 0"/><site name="w3" pos="0.3 0.2 0.1" euler="30 40 0"/>')
    m = check_against_mujoco(
        mjcf(bar + TWO + slider, f"<tendon>{tendon}</tendon><actuator>{LINES[name]}</actuator>"), seeds=(0, 1, 2)
    )
    assert m.u_names == ("u",)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ('<actuator>\n\n<motor joint="h" delay="0.1" nsample="5"/></actuator>', "delays of .* left out: '<motor> in line 6'"),
        ("<worldbody><plugin instance='i'/></worldbody>", "plugins are left out: '<plugin> in line 4'"),
    ],
)
def test_elements_without_a_name_are_named_by_their_line(more, words):
    text = f"<mujoco>\n<worldbody>\n{body('a', HINGE)}</worldbody>\n{more}</mujoco>"
    with pytest.warns(ModelWarning, match=words):
        pf.formats.parse_mjcf(text)


def test_a_tendon_on_one_body_alone_is_named():
    """Its length never changes, so its motor does nothing; the other one pulls as in MuJoCo."""
    tendon, sites = TENDONS["a path round a cylinder"]
    idle = '<spatial name="still"><site site="idle a"/><site site="idle b"/></spatial>'
    points = '<site name="idle a" pos="1 0 0"/><site name="idle b" pos="0 1 0"/>'
    motors = '<actuator><motor tendon="still"/><motor name="u" tendon="t"/></actuator>'
    text = mjcf(points + sites + TWO, f"<tendon>{idle}{tendon}</tendon>{motors}")
    with pytest.warns(ModelWarning, match="tendons on one body alone, whose lengths never change, .*'still'"):
        m, _ = pf.formats.parse_mjcf(text)
    assert m.u_names == ("u",)


@pytest.mark.parametrize("name", ACTUATORS)
def test_actuators_act_as_in_mujoco(name):
    m = check_against_mujoco(mjcf(TWO, f"<tendon>{FIXED.format('')}</tendon><actuator>{ACTUATORS[name]}</actuator>"))
    assert m.u_names == ("u",)


@pytest.mark.parametrize("name", DRIVEN)
def test_wrenches_act_as_in_mujoco(name):
    assert check_against_mujoco(mjcf(DRONE, f"<actuator>{DRIVEN[name]}</actuator>")).u_names == ("u",)


def test_couplings_of_joints_count_from_the_pose_of_the_file():
    """Whose coordinates are .3 and -.2: a - .3 = .1 + .5 (b + .2) + .2 (b + .2)^2."""
    a, b = (f'<joint name="{n}" axis="0 1 0" ref="{x}"/>' for n, x in (("a", 0.3), ("b", -0.2)))
    coupling = '<equality><joint joint1="a" joint2="b" polycoef="0.1 0.5 0.2 0 0"/></equality>'
    m = read(mjcf(body("one", a, body("two", b)), coupling, '<compiler angle="radian"/>'))
    at = pf.assemble(m, q={"b": 0.7}, backend="interpreter")
    close(at.q, [0.3 + 0.1 + 0.5 * 0.9 + 0.2 * 0.81, 0.7], PEER, "coordinates")


COMPENSATED = """<body name="a" gravcomp="0.7" pos="0.1 0.2 0.3" quat="0.8 0.1 0.6 0">{0}
<joint name="s" type="slide" axis="0 0.6 0.8" {1}/><joint name="h" axis="0 1 0" pos="0.1 0 0.2" {2}/>
<body name="b1" pos="0.3 0 0" gravcomp="1.2">{0}<joint name="h2" axis="1 1 0" pos="0 0.1 0" {3}/></body></body>"""
BY_MOTORS = 'actuatorgravcomp="true"'
LITTLE = BY_MOTORS + ' actuatorfrcrange="-0.5 0.7"'
IDLE = '<actuator><motor name="u" joint="h2"/></actuator>'


@pytest.mark.parametrize(
    ("head", "more", "joints"),
    [
        ("", "", (BY_MOTORS, BY_MOTORS, "")),
        ("", IDLE, (BY_MOTORS, BY_MOTORS, "")),
        ("", IDLE, (LITTLE, LITTLE, "")),
        ('<option><flag actuation="disable"/></option>', IDLE, (LITTLE, BY_MOTORS, LITTLE)),
        ("", "", ("", BY_MOTORS, LITTLE)),
        ('<option><flag gravity="disable"/></option>', "", (BY_MOTORS, BY_MOTORS, "")),
    ],
)
def test_motors_compensate_gravity_only_where_there_are_any_and_within_their_range(head, more, joints):
    """Joints before and after each other on one body, and on the next body; gravity is not along an axis."""
    head += '<option gravity="1 -2 -9"/>'
    check_against_mujoco(mjcf(COMPENSATED.format(SMALL, *joints), more, '<compiler angle="radian"/>' + head), seeds=(0, 1, 2))


def test_a_motor_beside_its_gravity_compensation_is_named():
    messages = quiet(mjcf(COMPENSATED.format(SMALL, "", "", LITTLE), IDLE))[2]
    assert "limits motors and gravity compensation one by one, not their sum: 'h2'" in messages
    ball = '<joint name="b" type="ball" actuatorgravcomp="true"/>'
    assert "acts without motors and limits: 'b'" in quiet(mjcf(body("a", ball).replace('name="a"', 'name="a" gravcomp="1"')))[2]


@pytest.mark.parametrize(
    "text",
    [
        mjcf(body("a", '<joint name="h" type="ball" stiffness="1" springyield="0.3"/>')),
        mjcf(TWO, "<tendon>" + FIXED.replace('"t"', '"h"').format('stiffness="1" springyield="0.3"') + "</tendon>"),
    ],
)
def test_springs_that_yield_are_refused(text):
    with pytest.raises(ModelError, match=r"(joint|tendon) 'h': its spring yields \(springyield\).* for an elastic one"):
        read(text)
    read(text.replace("stiffness", "damping"))  # without a spring there is nothing to yield


@pytest.mark.parametrize(
    ("actuator", "sort"),
    [
        ('<muscle name="u" joint="h" lengthrange="0 1"/>', "muscle"),
        ('<dcmotor name="u" joint="h" motorconst="1" resistance="2"/>', "dcmotor"),
        ('<pid name="u" joint="h" kp="3" ki="1"/>', "pid"),
        ('<orientation name="u" joint="b" kp="3"/>', "so3"),
        ('<general name="u" joint="h" gaintype="affine" gainprm="0 3"/>', "a force that is not affine in its input"),
        ('<general name="u" joint="h" gaintype="user"/>', "user"),
    ],
)
def test_actuators_that_are_left_out_are_named_with_their_sort(actuator, sort):
    bodies = body("a", HINGE, body("b1", BALL))
    assert f"cannot represent are left out: 'u ({sort})'" in quiet(mjcf(bodies, f"<actuator>{actuator}</actuator>"))[2]


# -- loops ------------------------------------------------------------------------------------------------------------

CHAIN = body(
    "a",
    '<joint name="h" axis="0 1 0"/>',
    body("b1", '<joint name="h2" axis="0.1 1 0"/>', body("c", '<joint name="b" type="ball"/>')),
)
OTHER = body("d", FREE + '<site name="e" pos="0.1 0 0.2" quat="0.6 0.8 0 0"/>', place='pos="0.5 0 0.1" quat="0.6 0 0 0.8"')
LOOPS = {
    "connect": '<connect body1="c" body2="d" anchor="0.2 0.1 0"/>',
    "connect to the world": '<connect body1="c" anchor="0.2 0.1 0"/>',
    "weld": '<weld body1="c" body2="d" anchor="0.05 0 0.1"/>',
    "weld without torque": '<weld body1="c" body2="d" anchor="0.05 0 0.1" torquescale="0"/>',
    "weld with a pose": '<weld body1="c" body2="d" relpose="0.3 0.1 0.2 0.8 0 0.6 0"/>',
    "connect of sites": '<connect site1="e" site2="g"/>',
    "weld of sites": '<weld site1="e" site2="g"/>',
    "joints": '<joint joint1="h" joint2="h2" polycoef="0.1 0.7 0.3 -0.2 0.05"/>',
    "one joint": '<joint joint1="h2" polycoef="0.2 0 0 0 0"/>',
    "tendons": '<tendon tendon1="t" tendon2="t2" polycoef="0.1 2 0.3 0 0"/>',
    "a tendon with a length": '<tendon tendon1="line" tendon2="t2" polycoef="0.05 0.4 0.3 0 0"/>',
}
STRANDS = (
    '<tendon><fixed name="t"><joint joint="h" coef="0.7"/></fixed>'
    '<fixed name="t2"><joint joint="h2" coef="0.7"/><joint joint="h" coef="-0.4"/></fixed>'
    '<spatial name="line"><site site="e"/><site site="g"/></spatial></tendon>'
)


@pytest.mark.parametrize("name", LOOPS)
def test_loops_agree_with_mujoco_but_are_exact(name):
    """The loop allows the velocities J v = 0 of MuJoCo, and accelerations obey Gauss's principle with its M, J and forces."""
    text = mjcf(
        CHAIN.replace("</body>", '<site name="g" pos="0.1 0.2 0.1"/></body>', 1) + OTHER,
        f"{STRANDS}<equality>{LOOPS[name]}</equality>",
    )
    m, settings, _ = quiet(text)
    model = mujoco.MjModel.from_xml_string(text)
    model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_REFSAFE)
    data, random = mujoco.MjData(model), np.random.default_rng(3)
    start = settings.arrays(m).q + 0.1 * random.normal(size=m.nq)
    q = pf.assemble(m, start, backend="interpreter").q
    data.qpos, data.qvel, turns = state_of(model, q, np.zeros(m.nv))
    mujoco.mj_forward(model, data)
    assert np.abs(data.efc_pos[: data.ne]).max() < SATISFIED
    J = data.efc_J.reshape(-1, model.nv)[: data.ne]
    M = np.zeros((model.nv, model.nv))
    mujoco.mj_fullM(model, data, M)
    assert np.linalg.matrix_rank(J, tol=1e-9) == len(J) - (3 if name == "weld without torque" else 0)
    basis = np.linalg.svd(J)[2][np.linalg.matrix_rank(J, tol=1e-9) :].T
    expected = basis @ np.linalg.solve(basis.T @ M @ basis, basis.T @ M @ data.qacc_smooth)
    found = pf.compile_terms(m, {"a": lambda T: pf.FORMULATIONS["projection"](T).v_dot}, backend="interpreter", lanes=1)
    close(np.ravel(found(q, np.zeros(m.nv))["a"]), ours(expected, data.qvel, turns), PEER, f"acceleration with {name}")


# -- the rest of a file -----------------------------------------------------------------------------------------------


def test_keyframes_are_starts():
    keys = '<keyframe><key name="home" qpos="1 2 3 0.8 0 0.6 0 0.5" qvel="1 2 3 0.1 0.2 0.3 0.7" ctrl="4"/>'
    keys += '<key qpos="0 0 0 1 0 0 0 9"/></keyframe>'
    text = mjcf(body("a", FREE, body("b1", HINGE)), '<actuator><motor name="u" joint="h"/></actuator>' + keys)
    m, settings, _ = quiet(text)
    q, v, u, _ = settings.arrays(m)
    assert q.tolist() == pytest.approx([0.1, 0.2, 0.3, 0, 0.6, 0, 0.8, 0.3]) and not v.any() and not u.any()
    q, v, u, _ = quiet(text, keyframe="home")[1].arrays(m)
    model = mujoco.MjModel.from_xml_string(text)
    qpos, qvel, _ = state_of(model, q, v)
    close(qpos, model.key_qpos[0], SATISFIED, "qpos")
    close(qvel, model.key_qvel[0], SATISFIED, "qvel")
    assert u.tolist() == [4]
    assert quiet(text, keyframe=1)[1].guess["h"] == 9
    assert settings.step == 0.002 and settings.duration == 1.0


def test_limits_of_joints_and_inputs():
    joints = '<joint name="h" axis="0 1 0" limited="true" range="-1 2" actuatorfrclimited="true" actuatorfrcrange="-6 9"/>'
    inputs = (
        '<motor name="u" joint="h" gear="2" ctrllimited="true" ctrlrange="-5 4"/>'
        '<general name="w" joint="h" gear="-2" gainprm="3" forcelimited="true" forcerange="-12 3"/>'
        '<position name="p" joint="h" kp="3" forcelimited="true" forcerange="-1 1" ctrllimited="true" ctrlrange="-1 1"/>'
    )
    m, _, messages = quiet(mjcf(body("a", joints), f"<actuator>{inputs}</actuator>"))
    assert m.joint("h").limits == ((-1, 2),)
    assert m.u_limits.tolist() == [[-3, 4], [-1.5, 1], [-1, 1]]
    assert "force limits of servos are left out: 'p'" in messages


def test_an_activation_has_the_limits_of_both_its_ranges():
    ranges = 'dyntype="filter" dynprm="0.1" actlimited="true" actrange="-2 3" ctrllimited="true" ctrlrange="-5 1"'
    m, _, _ = quiet(mjcf(ONE, f'<actuator><general name="u" joint="h" {ranges}/></actuator>'))
    assert m.u_limits.tolist() == [[-2, 1]]


def test_friction_is_smooth_or_left_out():
    text = mjcf(body("a", '<joint name="h" frictionloss="0.5"/>'))
    m, _, messages = quiet(text)
    assert "dry friction (frictionloss) is smooth below 0.001 rad/s or m/s: 'h'" in messages
    found = pf.compile_terms(m, {"f": lambda T: T.f}, backend="numpy", lanes=1)
    assert float(np.ravel(found([0.0], [1.0])["f"])[0] - np.ravel(found([0.0], [0.0])["f"])[0]) == pytest.approx(-0.5, rel=1e-5)
    m, _, messages = quiet(text, friction="none")
    assert "dry friction (frictionloss) is left out: 'h'" in messages and not m.forces


def test_flags_of_the_file_are_obeyed():
    flags = "".join(f'<option><flag {f}="disable"/></option>' for f in ("gravity", "spring", "damper", "equality", "actuation"))
    springs = '<joint name="h" axis="0 1 0" stiffness="3" damping="1"/>'
    m = read(mjcf(body("a", springs), '<equality><joint joint1="h"/></equality><actuator><motor joint="h"/></actuator>', flags))
    assert not m.constraints and not m.actuators and m.gravity.is_zero()
    assert m.joint("h").stiffness.is_zero() and m.joint("h").damping.is_zero()
    groups = '<actuator><motor name="u" joint="h" group="2"/><motor name="w" joint="h"/></actuator>'
    m, _, messages = quiet(mjcf(body("a", HINGE), groups, '<option actuatorgroupdisable="2"/>'))
    assert m.u_names == ("w",) and "actuators that the file disables are left out: 'u'" in messages


def test_shapes_are_read_and_missing_names_invented():
    geoms = (
        '<geom type="box" size="0.1 0.2 0.3" rgba="1 0 0 1" mass="0"/>'
        '<geom type="capsule" fromto="0 0 0 0 0 2" size="0.1" group="3" mass="0"/>'
        '<geom type="cylinder" size="0.1 0.4" mass="0"/><geom size="0.3" mass="0" pos="0 0 1"/>'
        '<geom type="ellipsoid" size="1 2 3" mass="0"/>'
    )
    text = mjcf(f'<body>{SMALL}<joint/>{geoms}</body><body name="fixed"/><geom type="plane" size="1 1 1"/>')
    m, _, messages = quiet(text)
    b = m.body("body 1")
    sizes = [(s.kind, s.role, np.ravel(m.value(s.size)).tolist()) for s in b.shapes]
    assert sizes == [
        ("box", "visual", [0.2, 0.4, 0.6]),
        ("capsule", "collision", [0.1, 2]),
        ("cylinder", "visual", [0.1, 0.8]),
        ("sphere", "visual", [0.3]),
    ]
    assert b.shapes[0].colour == (1, 0, 0, 1) and m.value(b.shapes[1].placement.p).ravel().tolist() == [0, 0, 1]
    assert [j.name for j in m.joints] == ["body 1 hinge", "fixed fixed"]
    assert "shapes other than boxes, spheres, cylinders, capsules and meshes are left out of pictures: 'body 1'" in messages
    assert "shapes of the world are left out" in messages and "contact between shapes is left out" in messages


TETRAHEDRON = "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"
MESHED = '<asset><mesh name="t" file="t.obj" scale="2 2 2"/></asset><visual/>'


def meshed(inertial, head='<compiler meshdir="meshes"/>'):
    inside = f'<joint name="h"/>{inertial}<geom name="g" type="mesh" mesh="t" pos="0.1 0.2 0.3" quat="0.8 0.6 0 0"/>'
    return mjcf(f'<body name="a">{inside}</body>', MESHED, head)


def test_meshes_are_needed_only_for_inertia(tmp_path):
    (tmp_path / "meshes").mkdir()
    missing, _, messages = quiet(meshed(SMALL), folder=tmp_path)
    assert missing.body("a").shapes[0].file is None and "lack the inertia" not in messages
    with pytest.raises(ModelError) as error:
        quiet(meshed(""), folder=tmp_path)
    for part in (
        "MJCF line 3: <body> 'a'",
        "the body moves but has no inertia without its mesh",
        "Without their meshes: 'a (mesh meshes/t.obj)'",
    ):
        assert part in str(error.value)
    partly = meshed('<geom size="0.1" mass="2"/>')
    m, _, messages = quiet(partly, folder=tmp_path)
    assert m.value(m.body("a").mass).item() == 2
    assert "bodies lack the inertia of meshes that are missing or cannot be read: 'a (mesh meshes/t.obj)'" in messages
    path = tmp_path / "meshes" / "t.obj"
    path.write_text(TETRAHEDRON)
    m, _, messages = quiet(meshed(""), folder=tmp_path)
    model = mujoco.MjSpec.from_string(meshed("", "").replace('file="t.obj"', f'file="{path}"')).compile()
    assert m.value(m.body("a").mass).item() == pytest.approx(model.body_mass[1]) == pytest.approx(1000 * 8 / 6)
    with_file = m.body("a").shapes[0], quiet(meshed(SMALL), folder=tmp_path)[0].body("a").shapes[0]
    for s in with_file:
        assert s.file == str(path.resolve()) and np.ravel(m.value(s.size)).tolist() == [2, 2, 2]
        close(np.ravel(m.value(s.placement.p)), [0.1, 0.2, 0.3], SATISFIED, "place of the mesh", 1.0)
        close(m.value(s.placement.R)[:, 1], [0, 0.28, 0.96], SATISFIED, "direction of the mesh", 1.0)


def test_meshes_of_the_kind_of_mujoco_weigh_and_are_drawn(tmp_path):
    """The same as a mesh whose corners are in the file; damaged ones do not reach the compiler."""
    corners = np.array([[0, 0, 0], [1, 0, 0], [0, 2, 0], [0, 0, 3]], "<f4")
    faces = np.array([[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]], "<i4")
    whole = np.array([4, 4, 0, 4], "<i4").tobytes() + corners.tobytes() * 2 + faces.tobytes()
    path, words = tmp_path / "t.msh", " ".join(map(str, np.ravel(corners)))
    body = '<body name="a"><joint name="h"/><geom type="mesh" mesh="t"/></body>'

    def read(given):
        return quiet(f"<mujoco><asset><mesh name='t' {given}/></asset><worldbody>{body}</worldbody></mujoco>", folder=tmp_path)

    path.write_bytes(whole)
    m, _, _ = read("file='t.msh'")
    inline, _, _ = read(f"vertex='{words}' face='{' '.join(map(str, np.ravel(faces)))}'")
    close(m.value(m.body("a").inertia), m.value(inline.body("a").inertia), SATISFIED, "inertia", 1.0)
    close(m.value(m.body("a").mass), [[1000.0]], SATISFIED, "mass", 1000.0)
    assert len(read_mesh(m.body("a").shapes[0].file)[0].faces) == 4
    wild = faces.copy()
    wild[2, 1] = 4
    nan = np.where(corners == 3, np.nan, corners).astype("<f4")
    for damaged in (
        whole[:-1],
        b"",
        whole[:12],
        np.array([4, -4, 12, 4], "<i4").tobytes() + whole[16:],
        whole[: -faces.nbytes] + wild.tobytes(),
        whole[:16] + nan.tobytes() * 2 + faces.tobytes(),
    ):
        path.write_bytes(damaged)
        with pytest.raises(ModelError, match="has no inertia without its mesh"):
            read("file='t.msh'")
        with pytest.raises(ModelError, match=r"t\.msh: the mesh has no triangles"):
            read_mesh(str(path))


def test_a_mesh_is_read_even_if_the_compiler_moves_its_geometry():
    """MuJoCo's compiler may fuse static bodies with their parents and discard visual geometries."""
    inner = f'<body name="in" pos="0 0 1">{SMALL}<geom type="mesh" mesh="t" contype="0" conaffinity="0"/></body>'
    text = mjcf(body("a", HINGE, inner + '<geom size="0.1"/>'), MESHED, '<compiler fusestatic="true" discardvisual="true"/>')
    m, _, _ = quiet(text.replace("<visual/>", ""))
    assert [b.name for b in m.bodies] == ["a"]
    assert [(s.kind, np.ravel(m.value(s.placement.p)).tolist()) for s in m.body("a").shapes] == [
        ("sphere", [0, 0, 0]),
        ("mesh", [0, 0, 1]),
    ]
    pair = '<contact><pair geom1="g" geom2="f"/></contact>'
    off = 'contype="0" conaffinity="0"'
    messages = quiet(mjcf(body("a", HINGE, f'<geom name="g" size="1" {off}/><geom name="f" size="1" {off}/>'), pair))[2]
    assert messages == "MJCF: contact between shapes is left out"


def test_includes_are_read_only_below_the_folder(tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    (home / "part.xml").write_text(f"<mujocoinclude>{body('a', HINGE)}</mujocoinclude>")
    (tmp_path / "part.xml").write_text(f"<mujocoinclude>{body('a', HINGE)}</mujocoinclude>")
    inside = mjcf('<include file="part.xml"/>')
    assert quiet(inside, folder=home)[0].q_names == ("h",)
    (home / "m.xml").write_text(inside)
    assert pf.read(home / "m.xml")[0].q_names == ("h",)
    (home / "self.xml").write_text('<mujocoinclude><include file="self.xml"/></mujocoinclude>')
    (home / "link.xml").symlink_to(tmp_path / "part.xml")
    (home / "wrong.xml").write_text("<mujocoinclude>\n<body name='a'><joint kind='hinge'/></body></mujocoinclude>")
    for name, message in {
        "../part.xml": "is not a path below the file's own folder",
        str(tmp_path / "part.xml"): "is not a path below",
        "link.xml": "leads out of the file's own folder",
        "none.xml": "cannot be read",
        "self.xml": "is included twice",
        "wrong.xml": "wrong.xml line 2: <joint>: Schema violation: unrecognized attribute: 'kind'",
    }.items():
        with pytest.raises(ModelError) as error:
            pf.formats.parse_mjcf(mjcf(f'<include file="{name}"/>'), folder=home)
        assert message in str(error.value), name
    with pytest.raises(ModelError, match="the text has no folder"):
        pf.formats.parse_mjcf(inside)


def test_files_beside_the_folder_are_found_below_a_common_one(tmp_path):
    """As in MuJoCo, names are relative to the main file or, if there is no such file, to the one that includes."""
    for name in ("arm", "common/deep", "meshes"):
        (tmp_path / name).mkdir(parents=True)
    main = tmp_path / "arm" / "m.xml"
    part = '<include file="../common/a.xml"/><include file="../common/tools.xml"/>'
    main.write_text(f"<mujoco><compiler meshdir='../meshes'/><worldbody>{part}</worldbody></mujoco>")
    include = '<include file="deep/b.xml"/><include file="../common/c.xml"/>'
    (tmp_path / "common" / "a.xml").write_text(f"<mujocoinclude>{body('a', HINGE)}{include}</mujocoinclude>")
    hinge = '<joint name="{}"/>'
    for name in ("common/deep/b", "common/c", "common/tools", "arm/tools"):
        made = body(name, hinge.format(name))
        (tmp_path / f"{name}.xml").write_text(f"<mujocoinclude>{made}</mujocoinclude>")
    (tmp_path / "arm" / "b.xml").symlink_to(tmp_path / "common" / "c.xml")
    names = {mujoco.MjModel.from_xml_path(str(main)).joint(i).name for i in range(4)}
    assert names == {"h", "common/deep/b", "common/c", "common/tools"}
    m, _ = pf.read(main, folder=tmp_path)
    assert set(m.q_names) == names and pf.read(str(main), folder=str(tmp_path))[0] == m
    with pytest.raises(ModelError, match="read the main file with folder="):
        pf.read(main)
    with pytest.raises(ModelError, match="give a folder above the file"):
        pf.read(main, folder=tmp_path / "common")
    outside = tmp_path / "common" / "a.xml"
    outside.write_text('<mujocoinclude><include file="../../../etc/a.xml"/></mujocoinclude>')
    with pytest.raises(ModelError, match="leads out of the file's own folder"):
        pf.read(main, folder=tmp_path)


def test_models_beside_the_folder_are_attached_with_their_meshes(tmp_path):
    (tmp_path / "arm").mkdir()
    (tmp_path / "hand" / "meshes").mkdir(parents=True)
    corners = b"v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"
    (tmp_path / "hand" / "meshes" / "palm.obj").write_bytes(corners)
    hand = "<mujoco model='hand'><compiler meshdir='meshes'/><asset><mesh name='palm' file='palm.obj'/></asset>"
    hand += "<worldbody><body name='palm'><joint name='bend'/><geom type='mesh' mesh='palm'/></body></worldbody></mujoco>"
    (tmp_path / "hand" / "hand.xml").write_text(hand)
    place = '<attach model="hand" body="palm" prefix="left_"/>'
    model = '<asset><model name="hand" file="../hand/hand.xml"/></asset>'
    main = tmp_path / "arm" / "m.xml"
    main.write_text(mjcf(body("a", HINGE, place), model))
    b = pf.read(main, folder=tmp_path)[0].body("left_palm")
    assert float(b.mass) == pytest.approx(1000 / 6)


BEND = HINGE.replace('"h"', '"bend"')
HAND = mjcf(
    CHAIN + '<frame name="mount" pos="0.1 0.2 0.3" quat="0.6 0 0.8 0">' + body("palm", BEND) + "</frame>",
    '<actuator><motor name="u" joint="bend" gear="3"/></actuator>',
    '<compiler angle="degree"/>',
)
HAND = re.sub("<mujoco[^>]*>", '<mujoco model="hand">', HAND)


def attaching(folder):
    """The path of a file that attaches a frame of a second file twice, and a body of a third, which attaches a model itself."""
    (folder / "parts").mkdir()
    (folder / "hand.xml").write_text(HAND)
    (folder / "parts" / "arm.xml").write_text(
        mjcf(
            ONE.replace("</body>", '<attach model="hand" body="palm" prefix="in_"/></body>'),
            '<asset><model file="hand.xml"/></asset>',
        )
    )
    (folder / "parts" / "hand.xml").write_text(HAND.replace('gear="3"', 'gear="-5"'))
    places = '<frame pos="0 {} 1"><attach model="hand" frame="mount" prefix="p{}_"/></frame>'
    text = mjcf(
        "".join(places.format(i, i) for i in range(2)) + '<frame><attach model="arm" body="a" prefix="arm_"/></frame>',
        '<asset><model file="hand.xml"/><model name="arm" file="parts/arm.xml"/></asset>',
    )
    (folder / "all.xml").write_text(text)
    return folder / "all.xml"


COPIED = mjcf(
    f'<frame name="rig" pos="0.4 0 0"><frame name="mount" pos="0.1 0.2 0.3" quat="0.6 0 0.8 0">{body("palm", BEND)}</frame>'
    + '<frame pos="1 0 0"><attach frame="mount" prefix="in_"/></frame></frame>'
    + '<frame euler="10 20 30"><attach frame="rig" prefix="p_"/></frame><replicate count="2"><attach body="palm" prefix="q"/>'
    + "</replicate>",
    '<actuator><motor name="u" joint="bend" gear="3"/></actuator>',
)


@pytest.mark.parametrize("own", [False, True])
def test_attached_models_move_as_in_mujoco(tmp_path, own):
    """Accelerations agree with those of MuJoCo, whose compiler reads the attached files, or parts of the file, itself."""
    path = attaching(tmp_path)
    if own:
        path.write_text(COPIED)
    model = mujoco.MjModel.from_xml_path(str(path))
    m = read(path.read_text(), folder=tmp_path)
    assert (m.nv, m.nu) == (model.nv, model.nu) and {*(("p_in_bend", "in_bend") if own else ("p1_bend", "arm_in_bend"))} <= {
        *m.q_names
    }
    data, random = mujoco.MjData(model), np.random.default_rng(5)
    q, v, u = pf.random_configuration(m, random), random.normal(size=m.nv), random.normal(size=m.nu)
    data.qpos, data.qvel, turns = state_of(model, q, v)
    data.ctrl = u
    mujoco.mj_forward(model, data)
    close(pf.forward_dynamics(m, q, v, u).v_dot, ours(data.qacc, data.qvel, turns), PEER, "accelerations")


def test_attached_models_are_limited_in_size_and_to_their_folder(tmp_path):
    path = attaching(tmp_path)
    text, hand = path.read_text(), tmp_path / "hand.xml"
    for old, new, words in (
        ("parts/arm.xml", "../arm.xml", "is not a path below the file's own folder; move the file there, or read"),
        ("parts/arm.xml", "/etc/hostname", "is not a path below the file's own folder"),
        ("parts/arm.xml", "parts/foot.xml", "foot.xml"),
        ('model="arm"', 'model="foot"', "foot"),
        ('<frame><attach model="arm" body="a" prefix="arm_"/></frame>',
         '<replicate count="9999"><attach model="arm" body="a" prefix="arm_"/></replicate>', "elements in all; make fewer"),
    ):  # fmt: skip
        with pytest.raises(ModelError, match=words):
            read(text.replace(old, new), folder=tmp_path)
    arm = tmp_path / "parts" / "arm.xml"
    arm.write_text("\n\n" + (sound := arm.read_text()).replace('"h" type="hinge"', '"h" type="knee"'))
    with pytest.raises(ModelError, match=r"^parts/arm\.xml line \d: <joint> 'h': invalid keyword: 'knee' \(reported by"):
        read(text, folder=tmp_path)
    arm.write_text(sound)
    hand.write_text(HAND.replace("</mujoco>", '<asset><model file="hand.xml"/></asset></mujoco>'))
    with pytest.raises(ModelError, match=r"'hand\.xml' attaches itself"):
        read(text, folder=tmp_path)
    hand.write_text("<robot/>")
    with pytest.raises(
        ModelError, match=r"hand\.xml line 1: <robot>: this is not MJCF; the root element of an MJCF file is <mujoco>"
    ):
        read(text, folder=tmp_path)


def test_soft_bodies_are_left_out_by_name():
    cloth = '<body name="z"><flexcomp name="cloth" type="grid" count="3 3 1" spacing="0.1 0.1 0.1" dim="2"/></body>'
    m, _, messages = quiet(mjcf(ONE + cloth, '<equality><flex flex="cloth"/></equality><keyframe><key qpos="1 2"/></keyframe>'))
    assert m.q_names == ("h",) and "soft bodies (flex) are left out: 'cloth'" in messages
    assert "keyframes of soft bodies are left out" in messages


def test_no_file_is_opened_that_the_reader_does_not_allow(tmp_path, monkeypatch):
    """MuJoCo's compiler would open any file, so it is given a text without file names."""
    outside = tmp_path / "t.obj"
    outside.write_text(TETRAHEDRON)
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.chdir(tmp_path)
    for name in (str(outside), "../t.obj", "t.obj"):
        text = mjcf(
            '<body name="a"><joint/><geom type="mesh" mesh="t"/></body>', f'<asset><mesh name="t" file="{name}"/></asset>', ""
        )
        with pytest.raises(ModelError, match="has no inertia without its mesh"):
            quiet(text, folder=home)
    rest = '<asset><texture type="2d" file="x.png"/><hfield name="f" file="x.png" size="1 1 1 1"/><skin file="x.skn"/></asset>'
    m, _, messages = quiet(mjcf(body("a", HINGE, '<geom type="hfield" hfield="f"/>'), rest), folder=home)
    assert (m.nv == 1 and "are left out: 'a'" not in messages.split("contact")[0]) or m.body("a").shapes


# -- refusals ---------------------------------------------------------------------------------------------------------

ONE = body("a", HINGE)
WRONG = {
    "another format": ("<robot/>", "the root element of an MJCF file is <mujoco>"),
    "an include": ("<mujocoinclude/>", "the root element of an MJCF file is <mujoco>"),
    "not closed": ("<mujoco><worldbody>", "not well-formed XML"),
    "entities": ('<!DOCTYPE a [<!ENTITY x "y">]><mujoco/>', "document types and entities are not allowed"),
    "unknown element": (mjcf("<boddy/>"), "MJCF line 3: <boddy>: Schema violation: unrecognized element"),
    "unknown attribute": (mjcf(ONE.replace("axis", "axes")), "<joint> 'h': Schema violation: unrecognized attribute: 'axes'"),
    "unknown type": (mjcf(ONE.replace('"hinge"', '"revolute"')), "<joint> 'h'"),
    "text for a number": (mjcf(ONE.replace("0.6 0 0.8", "a b c")), "<joint> 'h'"),
    "two numbers for three": (mjcf(ONE.replace("0.6 0 0.8", "0 1")), "<joint> 'h'"),
    "no number": (mjcf(ONE.replace("0.6 0 0.8", "0 -NaN 1")), "<joint> 'h': axis '-NaN' is not a finite decimal number"),
    "a hexadecimal number": (
        mjcf(ONE, '<actuator><motor joint="h" gear="0 0X1p3"/></actuator>'),
        "<motor>: gear '0X1p3' is not",
    ),
    "an infinite damping": (mjcf(ONE.replace('ref="0.3"', 'damping="inf"')), "<joint> 'h': damping 'inf' is not a finite"),
    "an empty number": (mjcf(ONE.replace('ref="0.3"', 'armature=" "')), "<joint> 'h': armature is empty"),
    "a negative armature": (mjcf(ONE.replace('ref="0.3"', 'armature="-0.01"')), "3: <joint> 'h': armature -0.01 is below zero"),
    "negative friction": (mjcf(ONE.replace('ref="0.3"', 'frictionloss="-2"')), "3: <joint> 'h': frictionloss -2 is below zero"),
    "negative friction of a class": (
        mjcf(ONE.replace(' name="h"', ""), '<default><joint frictionloss="-2"/></default>'),
        "joint 'a hinge': frictionloss -2 is below zero",
    ),
    "a range swapped": (
        mjcf(ONE, '<actuator><motor name="u" joint="h" ctrlrange="3 -inf"/></actuator>'),
        "<motor> 'u': ctrlrange: 3 is above -inf; swap them",
    ),
    "a negative step": (mjcf(ONE, '<option timestep="-0.01"/>'), "the timestep -0.01 of <option> is not above zero"),
    "an axis of zero": (mjcf(ONE.replace("0.6 0 0.8", "0 0 0")), "<joint> 'h': axis too small"),
    "a name twice": (mjcf(ONE + ONE), "repeated name"),
    "no inertia": (
        mjcf('<body name="a"><joint name="h"/></body>'),
        "<body> 'a': mass and inertia of moving bodies must be larger",
    ),
    "a negative mass": (mjcf(ONE.replace('"1.3"', '"-1"')), "<body> 'a'"),
    "an impossible inertia": (mjcf(ONE.replace("0.05 0.06 0.04", "0.05 0.9 0.04")), "must satisfy A + B >= C"),
    "a nested free joint": (mjcf(body("a", HINGE, body("b1", FREE))), "free joint can only be used on top level"),
    "two orientations": (
        mjcf(ONE.replace('quat="0.8 0 0.6 0"', 'quat="1 0 0 0" euler="1 0 0"')),
        "multiple orientation specifiers",
    ),
    "limits swapped": (mjcf(ONE.replace('ref="0.3"', 'limited="true" range="2 1"')), "<joint> 'h'"),
    "unknown class": (mjcf(ONE.replace('ref="0.3"', 'class="c"')), "unknown default class"),
    "connect to an unknown body": (
        mjcf(ONE, '<equality><connect body1="a" body2="z" anchor="0 0 0"/></equality>'),
        "<connect>: unknown element 'z'",
    ),
    "connect without anchor": (mjcf(ONE, '<equality><connect body1="a"/></equality>'), "<connect>"),
    "coupling of an unknown joint": (mjcf(ONE, '<equality><joint joint1="z"/></equality>'), "unknown element 'z'"),
    "coupling of a ball": (
        mjcf(ONE + body("c", BALL), '<equality><joint joint1="h" joint2="b"/></equality>'),
        "only HINGE and SLIDE",
    ),
    "tendon on unknown joint": (mjcf(ONE, '<tendon><fixed><joint joint="z" coef="1"/></fixed></tendon>'), "z"),
    "an empty tendon": (mjcf(ONE, '<tendon><fixed name="t"/></tendon>'), "<fixed> 't'"),
    "motor on no joint": (mjcf(ONE, '<actuator><motor joint="z"/></actuator>'), "<motor>: unknown transmission target 'z'"),
    "motor without a joint": (mjcf(ONE, '<actuator><motor name="u"/></actuator>'), "<motor> 'u'"),
    "a keyframe of another size": (
        mjcf(ONE, '<keyframe><key qpos="1 2 3"/></keyframe>'),
        "keyframe '': invalid qpos size, expected 1",
    ),
    "soft bodies": (
        mjcf('<flexcomp name="f" type="grid"/>'),
        "no joint moves; soft bodies (flex) are not supported",
    ),
    "attached models": (
        mjcf(ONE, '<asset><model name="m" file="x.xml"/></asset>'),
        "<model> 'm': 'x.xml' cannot be found: the text has no folder",
    ),
    "an attached part that is missing": (
        mjcf(ONE + '<frame name="f"/><attach frame="pf" prefix="p"/>'),
        "<attach>: the file has no <frame> 'pf'; correct the name, or write the copy out",
    ),
    "an attached part without a name": (mjcf(ONE + '<attach prefix="p"/>'), "<attach>: it names neither a body nor a frame"),
    "a part that attaches itself": (
        mjcf(ONE + '<frame name="f"><frame><attach frame="f" prefix="p"/></frame></frame>'),
        "<attach>: 'f' attaches itself, or parts are attached more than 8 deep",
    ),
    "attached copies of copies": (
        mjcf(
            f'<frame name="f0">{ONE}</frame>'
            + "".join(
                f'<frame name="f{i + 1}">' + "".join(f'<attach frame="f{i}" prefix="{k}"/>' for k in range(9)) + "</frame>"
                for i in range(7)
            )
        ),
        "elements in all; make fewer",
    ),
    "too many copies": (mjcf(f'<replicate count="100001">{ONE}</replicate>'), "more than 10000 copies"),
    "copies of copies": (
        mjcf(f'<replicate count="200"><replicate count="200">{ONE}</replicate></replicate>'),
        "more than 10000 copies",
    ),
    "a count in words": (mjcf(f'<replicate count="many">{ONE}</replicate>'), "count 'many' must be whole numbers"),
    "nothing moves": (mjcf('<body name="a"/>'), "no joint moves; give a body a <joint> or a <freejoint>"),
    "an include without a folder": (mjcf('<include file="a.xml"/>'), "'a.xml' cannot be found: the text has no folder"),
    "an include without a file": (mjcf("<include/>"), "the attribute 'file' is missing"),
    "too deep": ("<mujoco>" + "<body>" * 300 + "</body>" * 300 + "</mujoco>", "more than 256 levels"),
}


test_wrong_files_are_refused_with_the_reason = refused_texts(WRONG, pf.formats.parse_mjcf)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"friction": "wet"}, "friction='wet': one of smooth, none"),
        ({"keyframe": "home"}, "keyframe='home': the file has no keyframes"),
        ({"keyframe": 0}, "keyframe=0: the file has no keyframes"),
        ({"keyframe": True}, "keyframe=True"),
    ],
)
def test_wrong_options_are_refused(options, message):
    with pytest.raises(ModelError) as error:
        pf.formats.parse_mjcf(mjcf(ONE), **options)
    assert message in str(error.value)


def test_parts_that_are_left_out_are_named_in_one_warning():
    inside = '<geom name="g" type="cylinder" size="0.1 0.2"/><site name="p"/><site name="q" pos="1 0 0"/>'
    bodies = body("a", HINGE, inside + '<site name="q2" pos="-1 0 0"/>') + body(
        "c", '<joint name="b" type="ball" limited="true" range="0 1" frictionloss="1"/>', "<geom size='1'/>"
    )
    more = (
        '<tendon><spatial name="round"><site site="q"/><geom geom="g" sidesite="p"/><site site="q2"/></spatial>'
        '<fixed name="t" limited="true" range="0 1" frictionloss="1"><joint joint="h" coef="1"/></fixed></tendon>'
        '<equality><joint name="off" joint1="h" active="false"/><tendon name="bound" tendon1="round"/></equality>'
        '<actuator><muscle name="m" joint="h" lengthrange="0 1"/><motor name="w" tendon="round"/>'
        '<motor name="j" jointinparent="b" gear="1 0 0"/>'
        '<general name="f" joint="h" dyntype="filter" dynprm="0.1"/>'
        '<motor name="late" joint="h" delay="0.1" nsample="5"/></actuator>'
        "<sensor><jointpos joint='h'/></sensor>"
    )
    text = mjcf(bodies, more, '<compiler angle="radian"/><option density="1"/>')
    with pytest.warns(ModelWarning) as caught:
        m, _ = pf.formats.parse_mjcf(text)
    assert len(caught) == 1 and m.u_names == ("f", "late")
    for part in (
        "delays of actuators are left out: 'late'",
        "limits of ball joints are left out: 'b'",
        "dry friction (frictionloss) is left out: 'b'",
        "tendons that run inside shapes are left out, with their actuators: 'round'",
        "actuators that a mechanism cannot represent are left out: 'm (muscle)', 'w', 'j'",
        "activation dynamics of actuators are left out, so the input is the activation: 'f'",
        "limits of tendons are left out: 't'",
        "dry friction of tendons is left out: 't'",
        "equality constraints that are not active at the start are left out: 'off'",
        "couplings of tendons that are left out are left out too: 'bound'",
        "fluid forces (density, viscosity) are left out",
        "contact between shapes is left out",
    ):
        assert part in str(caught[0].message), part


def test_without_mujoco_the_error_gives_the_install_command(monkeypatch):
    monkeypatch.setattr(mujoco, "__version__", "3.2.1")
    with pytest.raises(ModelError, match=r"from version 4 on, not 3\.2\.1: run `pip install --upgrade mujoco`"):
        pf.formats.parse_mjcf(mjcf(ONE))
    monkeypatch.setitem(sys.modules, "mujoco", None)
    with pytest.raises(ModelError, match="MJCF is read by MuJoCo's compiler: run `pip install mujoco`"):
        pf.formats.parse_mjcf(mjcf(ONE))


def test_the_comparison_of_files_reports_equal_different_and_unreadable_ones(tmp_path):
    """A closed chain with a servo, a motor with a delay, which is left out, a body without a joint, and a file that includes
    another one from a folder beside its own."""
    end = body("b1", '<joint name="j" axis="0 1 0"/>', body("c", '<joint name="k" axis="0 1 0"/>', place='pos="0.3 0 0"'))
    chain = body("a", '<joint name="h" axis="0 1 0" damping="0.1"/>', end, place='pos="0 0 1"')
    pin = '<equality><connect body1="c" anchor="0.2 0 0.1"/></equality>'
    servo = '<actuator><position name="u" joint="h" kp="7" kv="0.4"/></actuator>'
    late = '<actuator><motor name="u" joint="h" delay="0.01" nsample="3"/></actuator>'
    for name, text in {"loop": mjcf(chain, pin + servo), "late": mjcf(chain, late), "still": mjcf(body("a", ""))}.items():
        (tmp_path / f"{name}.xml").write_text(text)
    loop, late, still = (examine(tmp_path / f"{name}.xml") for name in ("loop", "late", "still"))
    assert loop.outcome == "equal" and (loop.nv, loop.note) == (3, "rows 3, rank 2") and loop.differences["tied"] < PEER
    assert late.outcome == "differs with a known cause" and late.why == "delays of actuators act in MuJoCo"
    assert still.outcome == "does not open" and still.why.endswith("<freejoint>; MuJoCo has 0 degrees of freedom")
    (tmp_path / "deep" / "er").mkdir(parents=True)
    (tmp_path / "deep" / "er" / "main.xml").write_text('<mujoco><include file="../../loop.xml"/></mujoco>')
    above = examine(tmp_path / "deep" / "er" / "main.xml")
    assert above.outcome == "equal" and above.nv == 3


def test_the_comparison_bounds_what_motors_hold_as_the_file_does(tmp_path):
    """With the range on a joint beside its own motor and on one without, and in a file without any motor."""
    shapes = COMPENSATED.format(SMALL, LITTLE, BY_MOTORS, LITTLE)
    for name, more in {"held": IDLE, "falls": ""}.items():
        (tmp_path / f"{name}.xml").write_text(mjcf(shapes, more, '<compiler angle="radian"/>'))
        found = examine(tmp_path / f"{name}.xml")
        assert found.outcome == "equal" and found.differences["free"] < PEER, (found.numbers, found.why)


def test_names_may_look_like_numbers_and_ranges_may_be_open():
    text = mjcf(
        ONE.replace('"h"', '"0x10"').replace('ref="0.3"', 'range="-Inf 2"'),
        '<actuator><motor name="nan" joint="0x10"/></actuator>',
    )
    m, _, _ = quiet(text)
    assert m.q_names == ("0x10",) and m.u_names == ("nan",) and m.joint("0x10").limits[0][0] == -np.inf


def test_rotors_and_dampers_of_several_actuators_add_up():
    motor = '<general name="{}" joint="h" gear="{}" armature="0.1" damping="0.2"/>'
    m, _, _ = quiet(mjcf(ONE, f"<actuator>{motor.format('u', 2)}{motor.format('v', 3)}</actuator>"))
    alone, _, _ = quiet(mjcf(ONE))
    for word, each in (("armature", 0.1), ("damping", 0.2)):
        added = m.value(getattr(m.joint("h"), word)) - alone.value(getattr(alone.joint("h"), word))
        assert added.item() == pytest.approx(each * (2**2 + 3**2), rel=1e-12)


ROTOR = '<motor name="u" {}="{}" gear="{}" damping="0.2" armature="0.3"/>'
TURNED = {
    "a ball, about its x axis": body("a", BALL, body("b1", HINGE)) + "|" + ROTOR.format("joint", "b", "2 0 0"),
    "a ball, about its y axis": body("a", BALL, body("b1", HINGE)) + "|" + ROTOR.format("joint", "b", "0 2 0"),
    "a hinge, in its parent": body("a", HINGE, body("b1", BALL)) + "|" + ROTOR.format("jointinparent", "h", "2"),
    "a free joint": body("a", FREE) + "|" + ROTOR.format("joint", "f", "0 0 0 1 0 0"),
}


@pytest.mark.parametrize("name", TURNED)
def test_rotors_of_actuators_turn_with_every_kind_of_joint(name):
    """MuJoCo takes the first gear, for all velocities of a joint."""
    bodies, actuator = TURNED[name].split("|")
    check_against_mujoco(mjcf(bodies, f"<actuator>{actuator}</actuator>"), idle=True)


NARROW = '<joint name="h" axis="0 1 0" actuatorfrcrange="-0.5 0.5"/>'
ONE_SIDE = '<joint name="k" axis="1 0 0" actuatorfrcrange="-0.5 0.5"/>'
SHARED = {
    "two motors of a joint": ('<motor name="u" joint="h"/><motor name="v" jointinparent="h"/>', "h"),
    "a motor of a tendon": ('<motor name="u" tendon="t"/>', "h"),
    "a motor of a line": ('<motor name="u" tendon="line"/>', "h"),
    "two motors of a tendon": ('<motor name="u" tendon="narrow"/><motor name="v" tendon="narrow"/>', "narrow"),
    "a rotor on a later body": ('<motor name="u" site="p" gear="0 0 1 0 0 0"/>', "h"),
}
STRINGS = (
    '<tendon><fixed name="t"><joint joint="h" coef="1"/></fixed><spatial name="line"><site site="w"/><site site="p"/></spatial>'
    '<fixed name="narrow" actuatorfrcrange="-1 1"><joint joint="s" coef="1"/></fixed></tendon>'
)


@pytest.mark.parametrize("name", SHARED)
def test_ranges_that_limit_a_sum_of_actuators_are_named(name):
    """The joint k is on another branch, where no actuator acts."""
    actuators, limited = SHARED[name]
    slide = body("b1", '<joint name="s" type="slide" axis="1 0 0"/><site name="p" pos="0.1 0 0"/>')
    text = mjcf(SITES + body("a", NARROW, slide) + body("c", ONE_SIDE), STRINGS + f"<actuator>{actuators}</actuator>")
    assert f"actuatorfrcrange limits motors and gravity compensation one by one, not their sum: '{limited}'" in quiet(text)[2]


def test_a_range_that_limits_one_motor_limits_its_input():
    m, _, told = quiet(mjcf(body("a", NARROW), '<actuator><motor name="u" joint="h" gear="2"/></actuator>'))
    assert m.u_limits.tolist() == [[-0.25, 0.25]] and "actuatorfrcrange" not in told
