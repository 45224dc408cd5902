"""Types of public names that a type checker must know. mypy reads this file; no test runs it.

Public names are imported when they are first used. The stubs that list them give them their types.
"""

from __future__ import annotations

from typing import assert_type

import xarray as xr

import pfaffian as pf
from pfaffian import control
from pfaffian.control.placement import Matched
from pfaffian.control.task import Task
from pfaffian.evaluate.gain_bound import GainBound
from pfaffian.evaluate.quantities import BodyPose
from pfaffian.model.force import Potential


def use(m: pf.Mechanism) -> None:
    """Check the return types of functions and classes from several rooms."""
    assert_type(pf.joint("hinge", "revolute", "world", "rod"), pf.Joint)
    assert_type(pf.mechanism("pendulum", [], []), pf.Mechanism)
    assert_type(pf.run(m, duration=1.0), xr.Dataset)
    assert_type(pf.forward_kinematics(m), dict[str, BodyPose])
    assert_type(pf.forces.potential("well", lambda k: k.q[0] ** 2), Potential)
    assert_type(control.joints("hinge"), Task)
    assert_type(pf.analysis.position_gain_bound(m, [0.0], [0.0]), GainBound)
    assert_type(control.matched_placement(1.0, 1.0, 1.0, [-1.0]), Matched)
    assert_type(pf.__version__, str)
