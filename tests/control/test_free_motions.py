"""Motions that a law's task leaves free do not depend on where the loop of a machine is cut."""

import numpy as np
import pytest

import pfaffian as pf
from pfaffian import control
from tests.loops_cut_anywhere import Hinge, linkage, same_state
from tests.tolerance import ALGEBRA, close

FIVE_BAR = {
    "A": Hinge("world", "a", (0, 0, 0), (0, 0, 0)),
    "B": Hinge("a", "b", (0, 0, 0.4), (0, 0, 0)),
    "C": Hinge("b", "c", (0, 0, 0.7), (0, 0, 0.6)),
    "D": Hinge("c", "d", (0, 0, 0), (0, 0, 0.5)),
    "E": Hinge("world", "d", (0.6, 0, 0), (0, 0, 0)),
}
"""Two motions, of which a task of one coordinate leaves one free."""

GAINS = {"stiffness": 4.0, "damping": 4.0, "rest_damping": 0.3}


def five_bar(cut: str) -> pf.Mechanism:
    return linkage(FIVE_BAR, cut, actuators=[pf.actuator("left", "A"), pf.actuator("right", "E")])


@pytest.mark.parametrize("cut", ["B", "D", "E"])
def test_a_motion_that_the_task_leaves_free_does_not_see_the_cut(cut):
    base, other = five_bar("C"), five_bar(cut)
    at = pf.assemble(base, {"A": -0.5, "E": 0.6}, {"A": 1.0, "E": -2.0}, guess={"B": 1.0, "D": -1.0})
    law = control.projected(lambda k: k.joint("A"), control.set_point([-0.4]), **GAINS)
    found = []
    for m, (q, v) in ((base, (at.q, at.v)), (other, same_state(base, other, at.q, at.v))):
        r = pf.run(m, q, v, duration=1e-3, step=1e-3, control=law, backend="interpreter", error_bound=np.inf)
        found.append(r["u"].values[0])
    close(found[1], found[0], 1e3 * ALGEBRA, "inputs")
    assert np.abs(found[0]).min() > 0.01
