"""A controller uses motors, not wrench inputs from outside; results of mechanisms with one velocity keep their shape."""

import numpy as np

import pfaffian as pf
from pfaffian import control

PEND = pf.body("bob", mass=2.0, com=(1.0, 0, 0))
JOINT = pf.joint("pivot", "revolute", "world", "bob", axis=(0, -1, 0))


def pendulum(forces=()):
    return pf.mechanism("pendulum", [PEND], [JOINT], actuators=[pf.actuator("motor", "pivot")], forces=forces)


def test_inverse_dynamics_and_laws_leave_wrench_inputs_at_zero():
    m = pendulum([pf.wrench("gust", "bob", point=(1.0, 0, 0))])
    found = pf.inverse_dynamics(m, [0.3], [0.0], [1.5])
    assert found.names == m.u_names
    np.testing.assert_allclose(found.u, [2.0 * 1.5 + 2.0 * 9.81 * np.cos(0.3), 0, 0, 0, 0, 0, 0], rtol=1e-12)
    law = control.projected(control.joints("pivot"), control.set_point([0.5]), stiffness=25, damping=10)
    r = pf.run(m, [0.3], duration=0.1, control=law)
    assert (np.abs(r["u"].sel(input="motor")) > 1).all()
    assert not r["u"].isel(input=slice(1, None)).values.any()


def test_results_with_one_velocity_keep_its_axis():
    m = pendulum()
    one, many = pf.forward_dynamics(m, [0.3]), pf.forward_dynamics(m, np.array([[0.3], [0.4]]))
    assert one.v_dot.shape == (1,)
    assert many.v_dot.shape == many.reaction.shape == (2, 1)
    np.testing.assert_allclose(pf.inverse_dynamics(m, [0.3], [0.0], one.v_dot).u, [0], atol=1e-12)
