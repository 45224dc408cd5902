"""Bodies that spin fast: slow motions are integrated along axes that do not spin."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest

import pfaffian as pf
from pfaffian.simulate.step.integrators import INTEGRATORS
from tests.simulate.test_order import errors, slope
from tests.tolerance import ALGEBRA, INTEGRATED, SLOPE, close

SPIN = 230.0
"""Spin [rad/s]: a quarter of a radian in each millisecond."""

CYLINDER, BALL = 0.5, 0.02
TURNS = SPIN * BALL / (CYLINDER - BALL)
"""Rate [rad/s] at which a ball with this spin circles the axis of the cylinder."""

ROUNDING_OF_STEPS = 1e-12
"""Rounding of a thousand sums of numbers of order 1 to 100, relative to the largest."""


def ball_in_cylinder() -> pf.Mechanism:
    """A ball that rolls inside an upright cylinder: its contact point stays at the wall and does not slip."""

    def slip(k: pf.Kinematics) -> ca.SX:
        x = k.position("ball")
        outward = ca.vertcat(x[0], x[1], 0) / ca.norm_2(x[:2])
        V = k.twist("ball", "LOCAL_WORLD_ALIGNED")
        touching = V[:3] + ca.cross(V[3:], BALL * outward)
        return ca.vertcat(outward[0] * touching[1] - outward[1] * touching[0], touching[2])

    wall = pf.holonomic("wall", lambda k: ca.sumsqr(k.position("ball")[:2]) - (CYLINDER - BALL) ** 2)
    body = pf.body("ball", 1.0, inertia=0.4 * BALL**2)
    rolling = pf.nonholonomic("rolling", slip)
    return pf.mechanism("ball", [body], [pf.joint("flight", "free", "world", "ball")], constraints=[wall, rolling])


def test_a_ball_in_a_cylinder_oscillates_and_never_reaches_the_bottom():
    """z'' + 2/7 W^2 z = -5/7 g for a ball that circles at W, without spin about the normal."""
    start, v = [CYLINDER - BALL, 0, 0, 0, 0, 0, 1], [0, SPIN * BALL, 0, 0, 0, -SPIN]
    r = pf.run(ball_in_cylinder(), start, v, duration=5.0, step=1e-3, every=10)
    rate, depth = np.sqrt(2 / 7) * TURNS, 5 / 2 * 9.81 / TURNS**2
    assert r.status == 0
    close(r.q.values[:, 2], -depth * (1 - np.cos(rate * r.time.values)), INTEGRATED, "height of the ball")
    close(r.energy.values, np.full(len(r.time), r.energy.values[0]), INTEGRATED, "its energy")


@pytest.mark.parametrize("integrator", INTEGRATORS)
@pytest.mark.parametrize("kind", ["free", "planar"])
def test_a_spinning_body_flies_straight(kind, integrator):
    body = pf.body("body", 1.0, inertia=(0.02, 0.03, 0.04))
    joint = pf.joint("flight", kind, "world", "body", placement=pf.pose((0.3, 0, 1), rpy=(0.4, 0.5, 0.6)))
    m = pf.mechanism("flier", [body], [joint], gravity=(0, 0, 0))
    way = {"at": lambda k: k.position("body"), "speed": lambda k: k.velocity("body")}
    # Euler's rule can keep only a spin about a principal axis.
    tumble = [0.0, 0.0] if integrator == "euler" else [20.0, 100.0]
    v = [1.0, 2.0, 3.0, *tumble, -SPIN] if kind == "free" else [1.0, 2.0, SPIN]
    r = pf.run(m, None, v, duration=1.0, step=1e-3, every=100, outputs=way, scheme=pf.Scheme(integrator=integrator))
    straight = r["at"].values[:1] + r.time.values[:, None] * r.speed.values[:1]
    close(r["at"].values, straight, ROUNDING_OF_STEPS, "position", SPIN)
    close(r.speed.values, np.repeat(r.speed.values[:1], len(r.time), axis=0), ROUNDING_OF_STEPS, "velocity", SPIN)


@pytest.mark.parametrize("kind", ["free", "spherical"])
def test_a_moment_fixed_in_space_speeds_a_ball_up_evenly(kind):
    inertia, moment = 0.02, np.array([0.0, 0.0, 0.0, 0.3, -0.2, 0.5])
    body = pf.body("ball", 1.0, inertia=inertia)
    joint = pf.joint("joint", kind, "world", "ball", placement=pf.pose((0, 0, 0), rpy=(0.4, 0.5, 0.6)))
    push = pf.wrench("push", "ball", axes="WORLD", value=moment)
    m = pf.mechanism("ball", [body], [joint], forces=[push], gravity=(0, 0, 0))
    turn = {"w": lambda k: k.twist("ball", "LOCAL_WORLD_ALIGNED")[3:]}
    v = np.r_[np.zeros(m.nv - 3), SPIN, -20.0, 10.0]
    r = pf.run(m, None, v, duration=1.0, step=1e-3, every=100, outputs=turn)
    close(r.w.values, r.w.values[:1] + r.time.values[:, None] * moment[3:] / inertia, ROUNDING_OF_STEPS, "spin", SPIN)


def puck_with_ball() -> pf.Mechanism:
    """A planar joint with an eccentric mass centre, and a ball on it that a spring pulls: every choice of variables at
    once."""
    bodies = [pf.body("puck", 2.0, (0.1, 0.05, 0), (0.2, 0.3, 0.4)), pf.body("ball", 1.0, inertia=0.1)]
    joints = [
        pf.joint("slide", "planar", "world", "puck", axis=(0.1, 0.2, 1)),
        pf.joint("seat", "spherical", "puck", "ball", placement=pf.pose((0.3, 0, 0.1))),
    ]
    pull = pf.spring("pull", "world", "ball", point_a=(1, 1, 1), point_b=(0.2, 0, 0), stiffness=5.0, rest=0.2)
    return pf.mechanism("puck with ball", bodies, joints, forces=[pull])


@pytest.mark.parametrize("integrator, order, first", [("rk4", 4, 20), ("euler", 1, 320)])
def test_integrators_keep_their_order(integrator, order, first):
    m = puck_with_ball()
    error = errors(m, None, [1.0, -1.0, 4.0, 2.0, -3.0, 1.0], pf.Scheme(integrator=integrator), first)
    assert abs(slope(error) - order) < SLOPE, error


def test_the_attitude_has_the_only_error_of_a_long_step():
    """About a principal axis the quaternion falls behind by (w h)^5 / 5120 in each step of RK4, and nothing else has an
    error."""
    body = pf.body("body", 1.0, inertia=(0.02, 0.03, 0.04))
    m = pf.mechanism("top", [body], [pf.joint("flight", "free", "world", "body")], gravity=(0, 0, 0))
    r = pf.run(m, None, [0, 0, 0, 0, 0, SPIN], duration=1.0, step=1e-3, every=1000)
    x, y = r.q.values[-1, 5:]
    behind = (SPIN - 2 * np.arctan2(x, y) + np.pi) % (2 * np.pi) - np.pi
    close(behind, 1000 * (SPIN * 1e-3) ** 5 / 5120, 0.01, "angle lost in a second [rad]")
    close(r.v.values[-1], [0, 0, 0, 0, 0, SPIN], ALGEBRA, "velocity")
