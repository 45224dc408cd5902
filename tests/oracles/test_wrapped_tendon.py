"""Tendons that wrap round shapes beside MuJoCo's, in length and moment arm over the whole range; winches of a cable robot."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

import pfaffian as pf
from pfaffian.terms.path_forces import length_gradient
from tests.tolerance import PEER, close

LENGTH, ARM = 1e-8, 1e-6
"""Differences from MuJoCo in length [m] and moment arm [m], where its own functions round near the ends of the contact."""

FINGER = """<mujoco><compiler angle="radian"/><worldbody>
<site name="s0" pos="-0.2 0.03 0.04"/>{world}
<body name="a" pos="0 0 0"><joint name="h" axis="0 1 0"/><geom size="0.02"/>{link}<site name="s1" pos="0.3 0 0.05"/>
<body name="b" pos="0.4 0 0"><joint name="k" axis="0.1 1 0"/><geom size="0.02" pos="0.1 0 0"/>{tip}
<site name="s2" pos="0.25 -0.02 0.02"/></body></body></worldbody>
<tendon><spatial name="t"><site site="s0"/>{first}<site site="s1"/>{last}<site site="s2"/></spatial></tendon>
<actuator><motor name="u" tendon="t"/></actuator></mujoco>"""

PARTS = {"world": "", "link": "", "tip": "", "first": "", "last": ""}
CYLINDER = '<geom name="{}" type="cylinder" size="0.035 0.1" pos="0 0 0" euler="1.6 0.1 0"/>'
CASES = {
    "cylinders of the world and of a link": {
        "world": CYLINDER.format("w"), "first": '<geom geom="w"/>', "link": CYLINDER.format("l").replace('pos="0', 'pos="0.4'),
        "last": '<geom geom="l"/>',
    },
    "spheres": {
        "world": '<geom name="w" size="0.045"/>', "first": '<geom geom="w"/>',
        "tip": '<geom name="l" size="0.03" pos="0.02 0 0"/>', "last": '<geom geom="l"/>',
    },
    "a cylinder and a sphere with sides": {
        "world": CYLINDER.format("w") + '<site name="up" pos="0 0 0.3"/>', "first": '<geom geom="w" sidesite="up"/>',
        "link": '<geom name="l" size="0.03" pos="0.4 0 0"/><site name="side" pos="0.4 0.02 0.2"/>',
        "last": '<geom geom="l" sidesite="side"/>',
    },
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_length_and_moment_arm_over_the_whole_range(name):
    text = FINGER.format(**(PARTS | CASES[name]))
    m, _ = pf.formats.parse_mjcf(text)
    path = m.actuators[0].path
    of = pf.compile_terms(
        m,
        {
            "length": lambda T: path.length(T.kinematics),
            "arm": lambda T: length_gradient(T.kinematics, path, path.line(T.kinematics).pulls),
        },
        backend="interpreter",
    )
    q = np.stack(np.meshgrid(np.linspace(-2.2, 2.2, 45), np.linspace(-2, 2, 21)), axis=-1).reshape(-1, 2)
    found = of(q, np.zeros_like(q))
    model = mujoco.MjModel.from_xml_string(text)
    data, wrapped = mujoco.MjData(model), 0
    for x, l, arm in zip(q, found["length"].ravel(), found["arm"].reshape(-1, 2), strict=True):
        data.qpos = x
        mujoco.mj_forward(model, data)
        close(l, data.ten_length[0], LENGTH, f"length at {x}", 1.0)
        close(arm, data.actuator_moment[:2], ARM, f"moment arm at {x}", 1.0)
        wrapped += data.ten_wrapnum[0] > 3
    assert len(q) / 10 < wrapped < len(q), "it wraps at some configurations and runs free at others"


ROBOT = """<mujoco><worldbody>{anchors}<body name="plat" pos="0.5 0 0.5"><joint name="x" type="slide" axis="1 0 0"/>
<joint name="z" type="slide" axis="0 0 1"/><joint name="r" type="hinge" axis="0 -1 0"/>
<inertial pos="0 0 0" mass="1" diaginertia="0.01 0.01 0.01"/>{points}</body></worldbody><tendon>{tendons}</tendon>
<actuator>{winches}</actuator></mujoco>"""


def cable_robot(low=0, high=100) -> str:
    """A plate on four cables with winches between limits."""
    anchors = "".join(f'<site name="a{i}" pos="{x} 0 {z}"/>' for i, (x, z) in enumerate([(0, 0), (1, 0), (1, 1), (0, 1)]))
    corners = enumerate([(-0.05, -0.03), (0.05, -0.03), (0.05, 0.03), (-0.05, 0.03)])
    points = "".join(f'<site name="p{i}" pos="{x} 0 {z}"/>' for i, (x, z) in corners)
    tendons = "".join(f'<spatial name="t{i}"><site site="a{i}"/><site site="p{i}"/></spatial>' for i in range(4))
    limits = f'ctrllimited="true" ctrlrange="{low} {high}"'
    winches = "".join(f'<motor name="c{i}" tendon="t{i}" gear="-1" {limits}/>' for i in range(4))
    return ROBOT.format(anchors=anchors, points=points, tendons=tendons, winches=winches)


def test_four_winches_move_a_plate_as_in_mujoco():
    m, _ = pf.formats.parse_mjcf(cable_robot())
    assert m.u_names == ("c0", "c1", "c2", "c3") and m.u_units == ("N",) * 4
    q, u = [-0.2, 0.1, 0.05], [5, 7, 20, 18]
    model = mujoco.MjModel.from_xml_string(cable_robot())
    data = mujoco.MjData(model)
    data.qpos, data.ctrl = q, u
    mujoco.mj_forward(model, data)
    found = pf.forward_dynamics(m, q, u=u).v_dot
    close(found, data.qacc, PEER, "acceleration")
    close(found, [10.65098075, 5.78564752, -52.38242986], 1e-9, "acceleration by MuJoCo 4.0.0")


def test_a_warning_names_tensions_beyond_the_limits_of_their_winches():
    m, _ = pf.formats.parse_mjcf(cable_robot(2, 100))
    with pytest.warns(pf.RunWarning, match=r"'c0' -2\.271 N, from 2 to 100; 'c1' .* limits=\"actuators\" finds inputs within"):
        free = pf.inverse_dynamics(m, [-0.2, 0.1, 0.05], [0, 0, 0], [0, 0, 0])
    close(free.u, [-2.27079142, -7.42416962, 5.44511497, 0.17484017], 1e-8, "tensions of least size")
