"""Integrators converge at their order, closed loops and quaternions included."""

from __future__ import annotations

import numpy as np
import pytest

import pfaffian as pf
from tests.by_scipy import run_adaptive
from tests.simulate.machines import FOUR_BAR_START, ball_and_plane, flying_pair, four_bar, velocity
from tests.tolerance import ALGEBRA, SATISFIED, SLOPE, close

DURATION = 0.4
HALVINGS = 5
CASES = {  # mechanism, start, steps of the coarsest RK4 run
    "four-bar, redundant rows": (four_bar(), FOUR_BAR_START, {"a": 4.0}, 80),
    "four-bar, pinned": (four_bar("spherical"), FOUR_BAR_START, {"a": 4.0}, 80),
    "ball and plane": (ball_and_plane(), None, velocity(ball_and_plane()), 20),
    "flying pair": (flying_pair(), None, velocity(flying_pair(), 1, 2.0), 20),
}


def errors(m: pf.Mechanism, q, v, scheme: pf.Scheme, first: int) -> np.ndarray:
    """Error of q and v at the end for halved steps, against DOP853."""
    exact = run_adaptive(m, q, v, times=[0, DURATION], tolerance=1e-13)
    end = np.concatenate([exact.q.values[-1], exact.v.values[-1]])
    found = []
    for i in range(HALVINGS):
        n = first * 2**i
        r = pf.run(m, q, v, duration=DURATION, step=DURATION / n, every=n, scheme=scheme)
        assert r.status == 0
        found.append(np.abs(np.concatenate([r.q.values[-1], r.v.values[-1]]) - end).max())
    return np.array(found)


def slope(error: np.ndarray) -> float:
    return -np.polyfit(np.arange(len(error)), np.log2(error), 1)[0]


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("integrator, order", [("rk4", 4), ("euler", 1), ("midpoint", 2), ("tr-bdf2", 2)])
def test_order(case, integrator, order):
    m, q, v, first = CASES[case]
    error = errors(m, q, v, pf.Scheme(integrator=integrator), {4: first, 2: max(first, 40), 1: 320}[order])
    assert abs(slope(error) - order) < SLOPE, error


def test_corrections_hold_the_constraints():
    m, q, v, _ = CASES["four-bar, redundant rows"]
    r = pf.run(m, q, v, duration=3.0, step=1e-3, every=10)
    assert r.violation.max() < SATISFIED
    assert r.velocity_violation.max() < SATISFIED
    loose = pf.run(m, q, v, duration=3.0, step=1e-3, every=10, scheme=pf.Scheme(corrections=0))
    assert loose.violation.max() > r.violation.max()


def test_quaternions_keep_unit_length():
    m, q, v, _ = CASES["flying pair"]
    r = pf.run(m, q, v, duration=2.0, step=1e-2)
    for joint in ("flight", "ball"):
        x = r.q.sel(coordinate=[f"{joint}.{c}" for c in ("qx", "qy", "qz", "qw")])
        close((x**2).sum("coordinate"), np.ones(len(r.time)), ALGEBRA, "length of a quaternion")


def test_energy_drifts_at_the_order_of_the_integrator():
    m, q, v, _ = CASES["four-bar, redundant rows"]
    drift = []
    for step in (4e-3, 2e-3, 1e-3):
        r = pf.run(m, q, v, duration=1.0, step=step)
        drift.append(float(abs(r.energy - r.energy[0]).max()))
    assert drift[0] / drift[1] > 12
    assert drift[1] / drift[2] > 12


def oscillator() -> pf.Mechanism:
    """1 kg on a spring of 100 N/m."""
    return pf.mechanism(
        "oscillator", [pf.body("b", 1.0)], [pf.joint("x", "prismatic", "world", "b", stiffness=100.0)], gravity=(0, 0, 0)
    )


def test_euler_is_semi_implicit():
    """The rule computes v first and q with the new v, to the last digit. So the energy stays within h w / 2 of its start,
    where that of the explicit rule grows."""
    h, q, v = 1e-2, [0.3], [0.5]
    r = pf.run(oscillator(), q[0:1], v[0:1], duration=10.0, step=h, scheme=pf.Scheme(integrator="euler"), backend="interpreter")
    for _ in range(len(r.time) - 1):
        v.append(v[-1] - h * 100.0 * q[-1])
        q.append(q[-1] + h * v[-1])
    close(r.q.values[:, 0], np.array(q), 1e4 * ALGEBRA, "q by the rule")
    close(r.v.values[:, 0], np.array(v), 1e4 * ALGEBRA, "v by the rule")
    assert float(abs(r.energy / r.energy[0] - 1).max()) < 0.1


def test_euler_turns_quaternions_by_the_new_velocity():
    """A free ball under a moment about its axis turns by h times the new rate in a step, not the old one."""
    h, moment = 1e-2, 5.0
    push = pf.wrench("push", "ball", value=(0, 0, 0, 0, 0, moment))
    ball = pf.mechanism("ball", [pf.body("ball", 1.0, inertia=0.1)], [pf.joint("j", "free", "world", "ball")], forces=[push])
    r = pf.run(ball, duration=h, step=h, scheme=pf.Scheme(integrator="euler"), backend="interpreter")
    spin = h * moment / 0.1
    close(r.v.values[1, 5], spin, ALGEBRA, "spin")
    turned = 2 * np.arctan2(r.q.values[1, 5], r.q.values[1, 6])
    close(turned, h * spin, (h * spin) ** 2, "angle turned by a chord")
