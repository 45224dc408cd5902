"""Equations that are linear in inertias: against the library's own terms, with loops, and their rank."""

from __future__ import annotations

import numpy as np
import pytest

import pfaffian as pf
from tests.fitting.machines import NEAR, TRUTH, five_bar
from tests.tolerance import ALGEBRA


def arm() -> pf.Mechanism:
    """Three bodies on a turning, a sliding and a ball joint, with a spring, a damper and a rotor."""
    bodies = [
        pf.body("base", 3.0, (0.1, 0.02, -0.3), (0.3, 0.4, 0.5, 0.01, -0.02, 0.03)),
        pf.body("slide", 2.0, (0, 0.1, 0.2), (0.1, 0.2, 0.15)),
        pf.body("ball", 1.0, (0.3, 0, 0), (0.05, 0.04, 0.03)),
    ]
    joints = [
        pf.joint("turn", "revolute", "world", "base", axis=(0.3, 1, 0.2), stiffness=3.0, damping=0.4),
        pf.joint("slide", "prismatic", "base", "slide", axis=(1, 0, 0), placement=(0, 0, -0.5), armature=0.3),
        pf.joint("ball", "spherical", "slide", "ball", placement=(0.2, 0, 0)),
    ]
    return pf.actuate_all(pf.mechanism("arm", bodies, joints))


def states(m: pf.Mechanism, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Random states and accelerations of a tree."""
    rng = np.random.default_rng(7)
    q = np.array([pf.random_configuration(m, rng) for _ in range(n)])
    return q, rng.normal(size=(n, m.nv)), rng.normal(size=(n, m.nv))


def test_the_regressor_and_the_rest_give_the_inverse_dynamics() -> None:
    m = arm()
    q, v, a = states(m, 20)
    r, e = pf.identification.regressor(m, q, v, a), pf.identification.equation_error(m, q, v, a)
    u = pf.inverse_dynamics(m, q, v, a).tau
    other = -e.b  # without inputs: armature, spring, damper
    scale = np.abs(u).max()
    assert np.abs(r.Y @ r.phi + other - u).max() < 100 * ALGEBRA * scale
    assert np.abs(other).max() > 0.1
    some = pf.identification.regressor(m, q, v, a, bodies=["slide"])
    assert np.array_equal(some.Y, r.Y[:, :, 10:20]) and some.names == r.names[10:20]
    with pytest.raises(pf.ModelError, match="slid"):
        pf.identification.regressor(m, q, v, a, bodies=["slid"])


def test_inertias_are_found_from_a_loop_with_passive_joints() -> None:
    m = five_bar()
    t = np.arange(400) * 0.005
    u = np.column_stack([3 * np.sin(9 * t), 2 * np.sin(13 * t + 1)])
    outputs = {"a": pf.of_motion(lambda T, motion: motion.v_dot)}
    run = pf.run(
        m, guess=NEAR, u=u[:-1], u_step=0.005, duration=t[-1], step=0.005, parameters=TRUTH, outputs=outputs,
        error_bound=np.inf,
    )  # fmt: skip
    q, v, a = run["q"].values, run["v"].values, run["a"].values
    e = pf.identification.equation_error(m, q, v, a, run["u"].values, bodies=["left rod"], parameters=TRUTH)
    base = pf.identification.base_parameters(e)
    found = pf.identification.least_squares(base.reduced(e))
    phi = pf.identification.regressor(m, q[:1], v[:1], a[:1], bodies=["left rod"], parameters=TRUTH).phi
    assert np.allclose(found.value, base.matrix @ phi, rtol=1e-6, atol=1e-8)


def test_base_parameters_of_a_planar_arm_are_three_a_link_and_one() -> None:
    """A planar chain of n links about horizontal axes has 3 n base parameters, without the weight's share of the last mass."""
    bodies = [pf.body(f"link {i}", 1.0, (0, 0, -0.3), (0.1, 0.1, 0.1)) for i in (1, 2, 3)]
    joints = [
        pf.joint(f"{i}", "revolute", f"link {i - 1}" if i > 1 else "world", f"link {i}", axis=(0, 1, 0),
                 placement=(0, 0, -0.5 if i > 1 else 0))
        for i in (1, 2, 3)
    ]  # fmt: skip
    m = pf.mechanism("chain", bodies, joints)
    q, v, a = states(m, 60)
    r = pf.identification.regressor(m, q, v, a)
    base = pf.identification.base_parameters(r)
    assert len(base.columns) == 9
    assert "link 1 hz - 0.5 link 2 m - 0.5 link 3 m" in base.names
    assert np.abs(r.Y[:, :, list(base.columns)] @ (base.matrix @ r.phi) - r.Y @ r.phi).max() < 1e-9
    with pytest.raises(pf.ModelError, match="determine nothing"):
        pf.identification.base_parameters(pf.identification.LinearEquations(np.zeros((5, 3)), np.zeros(5)))
