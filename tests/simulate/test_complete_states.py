"""inverse_dynamics takes a complete state on the constraints; nonholonomic takes rows that contain velocities."""

import casadi as ca
import numpy as np
import pytest

import pfaffian as pf
from tests.simulate.machines import four_bar, pendulum


def slider() -> pf.Mechanism:
    """Two masses on rails, tied: x = y + 1."""
    bodies = [pf.body("a", 1.0, inertia=1.0), pf.body("b", 2.0, inertia=1.0)]
    joints = [pf.joint(n, "prismatic", "world", b, axis=(1, 0, 0)) for n, b in (("x", "a"), ("y", "b"))]
    tie = pf.holonomic("tie", lambda k: k.joint("x") - k.joint("y") - 1)
    return pf.actuate_all(pf.mechanism("slider", bodies, joints, constraints=[tie]))


def test_a_state_on_the_constraints_is_accepted():
    found = pf.inverse_dynamics(slider(), {"x": 1.5, "y": 0.5}, {"x": 2.0, "y": 2.0}, {"x": 3.0, "y": 3.0})
    np.testing.assert_allclose(found.u, [4.5, 4.5], rtol=1e-12)
    near = pf.inverse_dynamics(slider(), [1.5 + 5e-7, 0.5], [2.0, 2.0 - 5e-7], [3.0, 3.0])
    np.testing.assert_allclose(near.u, [4.5, 4.5], rtol=1e-12)


@pytest.mark.parametrize(
    "q, v, message",
    [
        ([1.5, 0.4], [2.0, 2.0], r"row 'tie' has phi = 0.1, eta = 0;"),
        ([1.5, 0.5], [2.0, 2.25], r"row 'tie' has phi = 0, eta = -0.25;"),
        ([1.5 + 4e-6, 0.5], [2.0, 2.0], r"row 'tie' has phi = 4e-06"),
        ([[1.5, 0.5], [1.5, 0.2]], [2.0, 2.0], r"off the constraints in run 1: row 'tie' has phi = 0.3"),
    ],
)
def test_a_state_off_the_constraints_is_refused(q, v, message):
    with pytest.raises(pf.ModelError, match=f"{message}.*assemble"):
        pf.inverse_dynamics(slider(), q, v, [3.0, 3.0])


def test_a_fast_state_is_judged_relative_to_its_speed():
    """At 1e6 m/s a difference of 0.5 m/s is a relative error of 5e-7."""
    v = np.array([1e6, 1e6 - 0.5])
    assert pf.inverse_dynamics(slider(), [1.5, 0.5], v, [3.0, 3.0]).u.shape == (2,)


def test_a_closure_is_named():
    with pytest.raises(pf.ModelError, match=r"row 'c\.v[xz]' has phi"):
        pf.inverse_dynamics(four_bar(), {"a": 0.1}, {}, {})


@pytest.mark.parametrize("missing", ["v", "a"])
def test_missing_arguments_do_not_mean_zero(missing):
    given = {"q": [0.3], "v": [0.0], "a": [0.0]}
    for function in (pf.inverse_dynamics, pf.calculus.inverse_dynamics_derivatives):
        with pytest.raises(pf.ModelError, match=rf"{missing} is missing: give \(1,\).*np.zeros\(1\)"):
            function(pendulum(), **given | {missing: None})
    from_dict = pf.inverse_dynamics(pendulum(), **given | {missing: {}})
    np.testing.assert_array_equal(from_dict.u, pf.inverse_dynamics(pendulum(), **given).u)


def wheel(eta) -> pf.Mechanism:
    return slider().with_(constraints=[pf.nonholonomic("wheel", eta)])


@pytest.mark.parametrize(
    "eta, which",
    [
        (lambda k: k.joint("x") - k.t, "eta"),
        (lambda k: ca.vertcat(k.joint_rate("x"), k.joint("y")), r"eta\[1\]"),
        (lambda k: ca.SX(1.0), "eta"),
        (lambda k: 0 * k.joint_rate("x") + k.joint("x"), "eta"),
    ],
)
def test_a_row_without_velocity_is_refused(eta, which):
    with pytest.raises(pf.ModelError, match=f"constraint 'wheel': {which} has no velocity in it; use holonomic"):
        pf.run(wheel(eta), duration=0.01, backend="numpy")


def test_a_row_that_vanishes_in_this_machine_is_redundant():
    m = wheel(lambda k: ca.vertcat(k.velocity("a")[1], k.joint_rate("x") - k.joint_rate("y")))
    r = pf.run(m, None, [1.0, 1.0], duration=0.01, backend="numpy")
    assert (r["rank"] == 1).all()
