"""Under a law, wrenches from outside are the run's own inputs, and applied forces with a value are known to the law."""

from __future__ import annotations

import numpy as np

from tests.random_mechanisms import random_forces, random_tree


def test_inputs_are_motors_then_wrenches():
    random = np.random.default_rng(0)
    m = random_forces(random, random_tree(random, ["revolute", "spherical"], [-1, 0]))
    assert m.motor_names == ("motor j0", "motor j1")
    assert m.wrench_names == ("hand.fx", "hand.fy", "hand.fz", "hand.nx", "hand.ny", "hand.nz")
    assert m.u_names == m.motor_names + m.wrench_names
    assert len(m.u_units) == m.nu
