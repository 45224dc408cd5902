"""Derivatives of implicit steps are those of the equations that their stages solve, against differences and closed forms."""

from __future__ import annotations

import numpy as np
import pytest

import pfaffian as pf
from pfaffian import control
from tests.simulate.test_sensitivity import CALLS, SAME, by_differences, five_bar, gradient_and_differences
from tests.tolerance import close

STIFF = pf.Scheme(integrator="tr-bdf2")
ENOUGH = pf.Scheme(integrator="tr-bdf2", iterations=8)
"""Iterations in which a stage solves its equation to rounding."""

GAMMA = 1 - 2**-0.5


def sprung() -> pf.Mechanism:
    """A cart on another one by a stiff spring, and a rod on a hinge whose spring has a quartic potential."""
    k = pf.Parameter("k", 1e6, "N/m")
    joints = [
        pf.joint("a", "prismatic", "world", "inner", axis=(1, 0, 0)),
        pf.joint("b", "prismatic", "inner", "outer", axis=(1, 0, 0)),
        pf.joint("c", "revolute", "outer", "rod", axis=(0, 1, 0)),
    ]
    spring = pf.forces.potential("spring", lambda K: k * (K.q[1] ** 2 / 2 + K.q[2] ** 4 / 10))
    damper = pf.forces.dissipation("damper", lambda K: 100 * K.v[1] ** 2 / 2)
    bodies = [pf.body("inner", 1.0), pf.body("outer", 0.2), pf.body("rod", 0.3, com=(0, 0, -0.5), inertia=0.01)]
    return pf.mechanism("sprung", bodies, joints, forces=[spring, damper], parameters=[k], actuators=[pf.actuator("push", "a")])


@pytest.mark.parametrize("step", [1e-3, 1e-2])
def test_a_stiff_step_equals_differences(step):
    """At 1 and 10 times the period of the stiff spring over 2 pi; all changes are scaled by their effect."""
    m, sizes = sprung(), np.array([*[1e-3] * 7, 1e2])
    s, at = pf.stepper(m, step=step, scheme=ENOUGH, **CALLS), np.array([0.0, 1e-3, 0.05, 1.0, 0.1, -0.5, 2.0, 1e6])

    def end(x: np.ndarray) -> np.ndarray:
        s.reset(*np.split(at + x * sizes, [3, 6])[:2], parameters=(at + x * sizes)[7:], correct_start=False)
        s.step((at + x * sizes)[6:7])
        return np.concatenate([s.q, s.v])

    d = pf.calculus.step_derivatives(m, at[:3], at[3:6], at[6:7], step=step, parameters=at[7:], scheme=ENOUGH, **CALLS)
    assert np.array_equal(np.concatenate([d.q, d.v]), end(np.zeros(8)))  # the step of run, to the bit
    found = np.hstack([d.A, d.B, d.P]) * sizes
    close(found, by_differences(end, np.zeros(8)), 1e-10, "by q, v, u and p", np.abs(found).max())


def test_a_linear_machine_and_law_give_the_matrix_of_the_rule():
    slide = pf.joint("x", "prismatic", "world", "cart", axis=(1, 0, 0))
    m = pf.mechanism("cart", [pf.body("cart", 2.0)], [slide], actuators=[pf.actuator("push", "x")])
    law = control.Control(lambda T, z, w, y: control.Command(-3 * T.q - 2 * z + w, z_dot=T.q), z=(0.5,), w_names=("set",))
    h, A, I = 0.01, np.array([[0, 1, 0], [-1.5, 0, -1], [1, 0, 0]]), np.eye(3)  # x_dot of [x; v; z]
    d = pf.calculus.step_derivatives(m, [0.2], [0.1], [0.3], step=h, control=law, z=[0.7], scheme=STIFF, **CALLS)
    first = np.linalg.solve(I - GAMMA * h * A, I + GAMMA * h * A)
    whole = np.linalg.solve(I - GAMMA * h * A, I + 2**0.5 / 4 * h * A @ (I + first))
    close(d.A, whole, SAME, "A")


def test_a_gradient_through_a_loop():
    """jvp and vjp agree. They differ from differences by what fixed factors neglect, step^3 in each step and step^2 of a
    motion."""
    m = five_bar()
    q, v = map(np.ravel, pf.assemble(m, [1.8, -0.9, 1.2, 0.9], [0.3, 0.1, 0.2, 0.4])[:2])
    random, A = np.random.default_rng(0), pf.compile_terms(m, {"A": lambda T: T.A}, backend="numpy")(q)["A"]
    change = random.normal(size=4)
    dv, off = change - np.linalg.pinv(A, rcond=1e-8) @ (A @ change), list[float]()
    for steps in (100, 200):
        t = np.linspace(0.0, 0.2, steps, endpoint=False)
        start = q, v, 2 * np.sin(np.outer(3 * t, [1, 1.3]) + [0, 1]), m.p_defaults
        way = np.zeros(4), dv, np.outer(np.cos(10 * t), [0.7, -1.1]), np.zeros(1)
        found, expected = gradient_and_differences(m, start, way, steps, 0.2 / steps, STIFF)
        off.append(abs(found - expected) / abs(expected))
    assert off[0] < 2e-5 and off[1] < off[0] / 3
    r, weights = pf.calculus.rollout(m, q, v, start[2][:20], steps=20, step=2e-3, every=7, scheme=STIFF, **CALLS), np.ones
    ahead, back = r.jvp(dv=dv, du=way[2][:20], dp=[0.3]), r.vjp(q=weights(r.q.shape), v=weights(r.v.shape))
    backwards = back.v @ dv + (back.u * way[2][:20]).sum() + back.parameters @ [0.3]
    close(backwards, ahead.q.sum() + ahead.v.sum(), 1e-11, "one number by jvp and by vjp", abs(backwards))
