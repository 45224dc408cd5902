"""Contacts that open at the step at whose start they would pull, against closed forms."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest

import pfaffian as pf
from pfaffian import control

G, STEP = 9.81, 1e-3
ON = pf.Parameter("on", 1.0)


def lasting(k: pf.Kinematics) -> ca.SX:
    return ON > 0.5


def pushes(sign: float = 1.0):
    """1 while the multiplier of the only row pushes, 0 from the step at whose start it would pull."""

    def following(T: pf.Terms, motion) -> ca.SX:
        force = pf.constraints.minimum_norm_multipliers(T, motion.reaction)
        return ca.if_else(sign * force < 0, 0, ON)

    return pf.of_motion(following)


def on_a_ball() -> pf.Mechanism:
    """A point on a sphere of 1 m, in a plane."""
    ball = pf.constraints.active_while(pf.holonomic("ball", lambda k: ca.sumsqr(k.q) - 1), lasting)
    joint = pf.joint("xz", "planar-translation", "world", "p")
    return pf.mechanism("on a ball", [pf.body("p", 2.0)], [joint], constraints=[ball], parameters=[ON], gravity=(0, -G, 0))


def on_a_table(motor: bool = False) -> pf.Mechanism:
    """A box on a table that moves up and down by 5 cm at 20 rad/s; or on a table at rest, with a motor that pulls it up."""
    height = (lambda k: 0.05 * ca.sin(20 * k.t)) if not motor else (lambda k: 0.0)
    table = pf.constraints.active_while(pf.holonomic("table", lambda k: k.q[0] - height(k)), lasting)
    joint = pf.joint("z", "prismatic", "world", "box")
    lift = [pf.actuator("lift", "z")] if motor else []
    return pf.mechanism("on a table", [pf.body("box", 2.0)], [joint], constraints=[table], parameters=[ON], actuators=lift)


def opening(r) -> float:
    """Instant at which the contact opened [s]."""
    return float(r.time[np.argmax(r.on.values < 0.5)])


def test_a_point_leaves_a_ball_where_the_contact_would_pull():
    """It leaves at two thirds of its initial height, whatever its mass, and then flies freely."""
    start = np.array([np.sin(0.1), np.cos(0.1)])
    how = {"duration": 1.5, "step": STEP, "switches": {"on": pushes()}, "backend": "interpreter"}
    r = pf.run(on_a_ball(), start, [0, 0], **how)
    at = int(np.argmax(r.on.values < 0.5))
    x, z = r.q.values[at]
    height = 2 / 3 * np.cos(0.1)
    speed = float(np.hypot(*r.v.values[at]))
    assert abs(z - height) < speed * STEP and abs(x**2 + z**2 - 1) < 1e-4 and 0 < at < len(r.time) - 200
    assert np.abs(r.phi.values[1 : at - 1]).max() < 1e-12 and (r.on.values[at:] == 0).all()
    t = r.time.values[at:] - r.time.values[at]
    thrown = r.q.values[at] + np.outer(t, r.v.values[at]) - np.outer(t**2, [0, G / 2])
    assert np.abs(r.q.values[at:] - thrown).max() < 1e-9
    constrained = pf.run(on_a_ball(), start, [0, 0], **(how | {"switches": None}))
    assert np.abs(constrained.phi.values).max() < 1e-12 < 0.1 < np.abs(constrained.q.values - r.q.values).max()


def test_a_box_leaves_a_table_that_falls_faster_and_lands_again():
    """It leaves at sin(w t) = g / (a w^2) and lands where its parabola meets the table, a nanometre lower: where it leaves
    rounding decides on which side of the table it is."""
    a, w = 0.05, 20.0

    def following(T: pf.Terms, motion) -> ca.SX:
        force = pf.constraints.minimum_norm_multipliers(T, motion.reaction)
        below = T.q[0] - a * ca.sin(w * T.t)
        return ca.if_else(ON > 0.5, ca.if_else(force < 0, 0, 1), ca.if_else(below < -1e-9, 1, 0))

    how = {"duration": 0.6, "step": STEP, "switches": {"on": pf.of_motion(following)}, "backend": "interpreter"}
    r = pf.run(on_a_table(), [0.0], [a * w], **how)
    leaves = np.arcsin(G / (a * w**2)) / w
    assert 0 <= opening(r) - leaves <= STEP
    t = np.linspace(leaves, 0.6, 600001)
    flight = a * np.sin(w * leaves) + a * w * np.cos(w * leaves) * (t - leaves) - G / 2 * (t - leaves) ** 2
    lands = t[100 + np.argmax(flight[100:] < a * np.sin(w * t[100:]))]
    back = float(r.time[np.argmax((r.on.values > 0.5) & (r.time.values > leaves + 2 * STEP))])
    assert -STEP <= back - lands <= 3 * STEP and int(r.status) == 0
    one = pf.run(on_a_table(), [0.0], [a * w], **(how | {"duration": 0.3}))
    two = pf.run(on_a_table(), **(how | {"duration": 0.3, "start_from": one}))
    assert np.array_equal(two.q.values[-1], r.q.values[-1]) and np.array_equal(two.on.values[-1], r.on.values[-1])


PULLS = control.Control(lambda T, z, w, y: control.Command(ca.vertcat(50 * T.t)))


@pytest.mark.parametrize("law", [PULLS, control.discrete(PULLS, 0.01)])
def test_the_inputs_of_a_law_count(law):
    """A force that grows by 50 N/s lifts a box of 2 kg when it equals the weight; a law in discrete time holds its force
    for 10 ms."""
    r = pf.run(on_a_table(motor=True), [0.0], [0.0], duration=0.6, step=STEP, control=law, switches={"on": pushes()},
               backend="interpreter")  # fmt: skip
    period = 0.01 if law.parts else STEP
    assert 0 <= opening(r) - 2 * G / 50 <= period + STEP
    plain = pf.run(
        on_a_table(motor=True), u={"lift": 25.0}, duration=0.1, step=STEP, switches={"on": pushes()}, backend="interpreter"
    )
    assert opening(plain) == 0.0 and float(plain.q[-1, 0]) > 0.01


def test_wrong_switches_are_refused():
    with pytest.raises(pf.ModelError, match=r"switches: 'on': a function of the kinematics or of_motion\(...\) is needed"):
        pf.run(on_a_table(), duration=0.1, switches={"on": 1.0})
    with pytest.raises(pf.ModelError, match="switch 'on': one number is needed, its function gives 2"):
        pf.run(on_a_table(), duration=0.1, switches={"on": pf.of_motion(lambda T, motion: [1, 2])}, backend="interpreter")
