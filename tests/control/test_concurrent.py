"""Concurrent control: outputs on Lie groups, each going its own way. [chhabra14 ch. 5; numbers of the specification's section 7]"""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest

import pfaffian as pf
from pfaffian import control
from pfaffian.errors import RunWarning
from pfaffian.maths import se3, so3
from tests.simulate.test_reduction import rover
from tests.tolerance import close


def pose(xi):
    return se3.homogeneous(*se3.exp(xi))


def test_a_pose_on_the_double_integrator():
    """Test 17: whatever the body weighs, V_dot = nu."""
    body = pf.body("hull", 3.0, com=(0.1, 0, 0.05), inertia=(0.3, 0.4, 0.5))
    m = pf.actuate_all(pf.mechanism("hull", [body], [pf.joint("flight", "free", "world", "hull")], gravity=(0, 0, -9.81)))

    def gamma(t):
        swing = ca.DM([0.3, -0.2, 0.5, 0.4, 0.1, -0.3])
        return pose(ca.DM([0.5, -0.3, 0.4, 0.8, -0.6, 0.5])) @ pose(0.5 * ca.sin(0.6 * t) * swing)

    o = control.output("hull", "pose", gamma, stiffness=(4, 4, 5, 3, 2, 3), damping=(3, 3, 3, 4, 3, 3))
    r = pf.run(m, duration=2, step=1e-3, every=1000, control=control.concurrent([o]))
    close(r.lyapunov, [2.81271778, 0.848258741, 9.23089750e-2], 3e-9, "V_L")
