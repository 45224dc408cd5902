"""Without a law, the open loop passes the inputs to the machine and changes nothing else."""

from __future__ import annotations

import numpy as np
import pytest

import pfaffian as pf
from pfaffian import control
from pfaffian.control.open_loop import is_open, open_loop
from tests.simulate.machines import pendulum
from tests.tolerance import ALGEBRA, close


def pushed() -> pf.Mechanism:
    """Two motors, and a wrench input on the body that they move."""
    slides = [
        pf.joint("x", "prismatic", "world", "cart", axis=(1, 0, 0)),
        pf.joint("z", "prismatic", "cart", "hook", axis=(0, 0, 1)),
    ]
    motors = [pf.actuator("drive", "x"), pf.actuator("hoist", "z")]
    bodies = [pf.body("cart", 3.0), pf.body("hook", 0.5)]
    return pf.mechanism("crane", bodies, slides, actuators=motors, forces=[pf.wrench("push", "hook")])


MACHINES = pytest.mark.parametrize("make", [pendulum, pushed])


@MACHINES
def test_the_open_loop_has_the_inputs_of_the_machine(make):
    m = make()
    law = open_loop(m)
    assert law is open_loop(m) and is_open(law) and not is_open(control.Control(lambda T, z, w, y: control.Command(w)))
    assert law.w_names == m.motor_names and not (law.z or law.faults or law.parts)
    assert pf.linearise(m, m.neutral()).input_units == m.u_units


@MACHINES
def test_a_step_is_that_of_the_machine_alone(make):
    """Explicit Euler by hand, with forward dynamics without a law; all inputs differ."""
    m, h = make(), 1e-3
    u, q, v = np.arange(1.0, 1.0 + len(m.u_names)), np.full(m.nq, 0.3), np.full(m.nv, 0.5)
    r = pf.run(m, q, v, u=u, duration=h, step=h, scheme=pf.Scheme(integrator="euler"), backend="numpy", error_bound=np.inf)
    close(r.v.values[-1], v + h * pf.forward_dynamics(m, q, v, u).v_dot, ALGEBRA, "speed")
    np.testing.assert_array_equal(r.u.values[0], u)
