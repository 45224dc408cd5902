"""What an MJCF file means: against MuJoCo itself on random states, and what is refused or left out with which words."""

from __future__ import annotations

import warnings

import mujoco
import numpy as np
import pytest

import pfaffian as pf
from pfaffian.errors import ModelError, ModelWarning
from tests.tolerance import MET, PEER, close

SMALL = '<inertial pos="0.1 0.02 -0.05" mass="1.3" fullinertia="0.05 0.06 0.04 0.002 -0.003 0.001"/>'


def mjcf(bodies, more="", head='<compiler angle="radian"/>'):
    return f"<mujoco model='m'>\n{head}\n<worldbody>{bodies}</worldbody>\n{more}</mujoco>"


def body(name, joints, inside="", place='pos="0.1 0.2 0.3" quat="0.8 0 0.6 0"'):
    return f'<body name="{name}" {place}>{SMALL}{joints}{inside}</body>'


def quiet(text, **options):
    """The mechanism and settings of a text, and what was said about it."""
    with warnings.catch_warnings(record=True, action="always") as caught:
        m, settings = pf.parse_mjcf(text, **options)
    return m, settings, "; ".join(str(w.message) for w in caught)


def read(text, **options):
    return quiet(text, **options)[0]


HINGE = '<joint name="h" type="hinge" axis="0.6 0 0.8" pos="0.05 -0.1 0.2" ref="0.3"/>'
BALL = '<joint name="b" type="ball" pos="0.02 0.03 0.04" damping="0.1"/>'
FREE = '<freejoint name="f"/>'

MACHINES = {
    "every joint": body("a", FREE, body("b1", HINGE, body("c", BALL, body("d", '<joint name="s" type="slide" axis="0 1 1" ref="-0.2"/>')))),
    "several joints of one body": body("a", '<joint name="x" type="slide" axis="1 0 0" pos="0.1 0 0"/>' + HINGE + BALL),
    "springs and dampers": body(
        "a",
        '<joint name="h" axis="0 1 0" stiffness="3" springref="0.4" ref="0.1" damping="0.2" armature="0.07"/>',
        body("b1", '<joint name="s" type="slide" stiffness="20" springref="-0.1" damping="0.5" armature="0.2"/>'
             , body("c", '<joint name="b" type="ball" stiffness="0.7" damping="0.03" armature="0.01"/>')),
    ),
    "a free body with springs and armature": body(
        "a", '<joint name="f" type="free" stiffness="2" damping="0.3" armature="0.4"/>', place='pos="0.3 0.1 0.2" quat="0.6 0 0.8 0"'
    ),
    "weight held up": body("a", HINGE).replace('name="a"', 'name="a" gravcomp="0.7"'),
}  # fmt: skip
TWO = body("a", '<joint name="h" axis="0 1 0"/>', body("b1", '<joint name="s" type="slide" axis="1 0 0"/><site name="p" pos="0.1 0 0"/>'))
FIXED = '<fixed name="t" {}><joint joint="h" coef="0.7"/><joint joint="s" coef="-1.3"/></fixed>'
SITES = '<site name="w" pos="1 -1 2"/><site name="w2" pos="-1 0.5 0"/>'
TENDONS = {
    "a fixed tendon": (FIXED.format('stiffness="9" damping="0.4" springlength="0.2" armature="0.3"'), ""),
    "a spring with play": (FIXED.format('stiffness="9" springlength="-0.1 0.1"'), ""),
    "a path with a pulley": (
        '<spatial name="t" stiffness="11" damping="0.4" springlength="0.5" armature="0.2"><site site="w"/><site site="p"/>'
        '<pulley divisor="2"/><site site="p"/><site site="w2"/></spatial>', SITES,
    ),
}  # fmt: skip
ACTUATORS = {
    "motor": '<motor name="u" joint="h" gear="2.5"/>',
    "position": '<position name="u" joint="h" kp="7" kv="0.4" gear="1.5"/>',
    "velocity": '<velocity name="u" joint="s" kv="3" gear="-2"/>',
    "general": '<general name="u" joint="s" gainprm="2" biastype="affine" biasprm="0.5 -4 -0.3" gear="3"/>',
    "tendon": '<general name="u" tendon="t" gainprm="2" biastype="affine" biasprm="0.5 -4 -0.3" gear="3"/>',
    "armature": '<motor name="u" joint="h" gear="2" armature="0.1" damping="0.2"/>',
    "armature of a tendon": '<motor name="u" tendon="t" gear="2" armature="0.1" damping="0.2"/>',
}
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
    """MuJoCo's qpos and qvel, and its rotation of each free joint."""
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
    """MuJoCo's accelerations along our velocities: of free joints along the body's axes."""
    a = np.array(a)
    for rate, R in turns.items():
        a[rate : rate + 3] = R.T @ a[rate : rate + 3] - np.cross(qvel[rate + 3 : rate + 6], R.T @ qvel[rate : rate + 3])
    return a


def check_against_mujoco(text, seeds=(0, 1), **options):
    """Accelerations of random states, without constraints, and the positions of all bodies."""
    m, model = read(text, **options), mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    parts = {"v_dot": lambda T: pf.FORMULATIONS["gauss"](T).v_dot, **{b.name: _place(b.name) for b in m.bodies}}
    at = pf.compile_terms(m, parts, backend="interpreter", lanes=1)
    for seed in seeds:
        random = np.random.default_rng(seed)
        q, v, u = pf.random_configuration(m, random), random.normal(size=m.nv), random.normal(size=m.nu)
        data.qpos, data.qvel, turns = state_of(model, q, v)
        data.ctrl[:] = u
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


@pytest.mark.parametrize("name", ACTUATORS)
def test_actuators_act_as_in_mujoco(name):
    m = check_against_mujoco(mjcf(TWO, f"<tendon>{FIXED.format('')}</tendon><actuator>{ACTUATORS[name]}</actuator>"))
    assert m.u_names == ("u",)


@pytest.mark.parametrize("name", DRIVEN)
def test_wrenches_act_as_in_mujoco(name):
    assert check_against_mujoco(mjcf(DRONE, f"<actuator>{DRIVEN[name]}</actuator>")).u_names == ("u",)


# -- loops ------------------------------------------------------------------------------------------------------------

CHAIN = body("a", '<joint name="h" axis="0 1 0"/>', body("b1", '<joint name="h2" axis="0.1 1 0"/>', body("c", '<joint name="b" type="ball"/>')))
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
}  # fmt: skip
STRANDS = (
    '<tendon><fixed name="t"><joint joint="h" coef="0.7"/></fixed>'
    '<fixed name="t2"><joint joint="h2" coef="0.7"/><joint joint="h" coef="-0.4"/></fixed></tendon>'
)


@pytest.mark.parametrize("name", LOOPS)
def test_loops_are_those_of_mujoco_made_exact(name):
    """J v = 0 has the same velocities, and the accelerations obey Gauss' principle with MuJoCo's M, J and forces."""
    text = mjcf(CHAIN.replace("</body>", '<site name="g" pos="0.1 0.2 0.1"/></body>', 1) + OTHER, f"{STRANDS}<equality>{LOOPS[name]}</equality>")
    m, settings, _ = quiet(text)
    model = mujoco.MjModel.from_xml_string(text)
    model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_REFSAFE)
    data, random = mujoco.MjData(model), np.random.default_rng(3)
    start = settings.arrays(m)[0] + 0.1 * random.normal(size=m.nq)
    q = pf.assemble(m, start, backend="interpreter").q
    data.qpos, data.qvel, turns = state_of(model, q, np.zeros(m.nv))
    mujoco.mj_forward(model, data)
    assert np.abs(data.efc_pos[: data.ne]).max() < MET
    J = data.efc_J.reshape(-1, model.nv)[: data.ne]
    M = np.zeros((model.nv, model.nv))
    mujoco.mj_fullM(model, data, M)
    assert np.linalg.matrix_rank(J, tol=1e-9) == len(J) - (3 if name == "weld without torque" else 0)
    basis = np.linalg.svd(J)[2][np.linalg.matrix_rank(J, tol=1e-9) :].T
    expected = basis @ np.linalg.solve(basis.T @ M @ basis, basis.T @ M @ data.qacc_smooth)
    found = pf.compile_terms(m, {"a": lambda T: pf.FORMULATIONS["projection"](T).v_dot}, backend="interpreter", lanes=1)
    close(np.ravel(found(q, np.zeros(m.nv))["a"]), ours(expected, data.qvel, turns), PEER, f"acceleration with {name}")
