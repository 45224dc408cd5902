"""Servos of MJCF files: their inputs as targets or as torques, and the part of a target that makes up for what they measure."""

from __future__ import annotations

import numpy as np
import pytest

import pfaffian as pf
from pfaffian.errors import ModelError
from tests.tolerance import ALGEBRA, close

FILE = """<mujoco><worldbody><site name="w" pos="0.5 0 1"/>
<body name="a"><joint name="h" axis="0 1 0"/><geom size="0.1" pos="0.3 0 -0.4" mass="1"/><site name="p" pos="0.2 0 0.1"/>
<body name="b" pos="0.6 0 0"><joint name="s" type="slide" axis="1 0 0"/><geom size="0.1" mass="0.5"/></body></body></worldbody>
<tendon><spatial name="t"><site site="w"/><site site="p"/></spatial></tendon>
<actuator><position name="joint" joint="h" kp="70" kv="5" gear="2" forcerange="-90 80" ctrlrange="-1 1"/>
<velocity name="slide" joint="s" kv="4" gear="3"/><position name="line" tendon="t" kp="30" gear="-1.5"/>
<motor name="motor" joint="h" gear="4"/></actuator><keyframe><key name="home" ctrl="0.4 0.1 0.3 0.2"/></keyframe></mujoco>"""
GEARS = np.array([70 * 2, 4 * 3, 30 * -1.5, 4])
"""Force along joint or tendon per unit of each input."""


@pytest.fixture(scope="module")
def both():
    with pytest.warns(pf.ModelWarning, match="force limits of servos are left out: 'joint'"):
        targets, at_home = pf.formats.parse_mjcf(FILE, keyframe="home")
    torques, start = pf.formats.parse_mjcf(FILE, servos="torques", keyframe="home")
    assert at_home.u == {"joint": 0.4, "slide": 0.1, "line": 0.3, "motor": 0.2} and start.u == {"motor": 0.2}
    return targets, torques


def test_torques_have_gears_and_force_ranges_and_no_feedback(both):
    targets, torques = both
    assert not [f for f in torques.forces if "bias" in f.name or "damping" in f.name] and len(targets.forces) == 4
    close(np.array([float(a.gear) for a in torques.actuators]), [2, 3, 1.5, 4], ALGEBRA, "gears")
    close(torques.u_limits[0], [-90, 80], ALGEBRA, "range of the force")
    assert np.isinf(torques.u_limits[1:3]).all()
    with pytest.raises(ModelError, match="servos"):
        pf.formats.parse_mjcf(FILE, servos="forces")


def test_the_part_of_a_servo_is_what_its_force_does_without_a_target(both):
    _, torques = both
    q, v, a = [[0.3, -0.1], [-0.4, 0.2]], [0.2, -0.5], [0.1, 0.7]
    by_target, by_torque = (pf.inverse_dynamics(m, q, v, a) for m in both)
    force = (by_target.u - by_target.servo_part) * GEARS
    close(by_target.servo_part[:, 3], [0, 0], ALGEBRA, "part of a motor", 1.0)
    assert not by_torque.servo_part.any()
    of = pf.compile_terms(torques, {"B": lambda T: T.B})
    for i in range(2):
        B = of(q[i], v)["B"] / np.array([2, 3, 1.5, 4])  # per unit of force along joint or tendon
        B[:, 2] = -B[:, 2]
        close(B @ force[i], by_torque.tau[i], 1e3 * ALGEBRA, "generalised force")
