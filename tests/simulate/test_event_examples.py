"""Machines that switch, touch and part, whose motion has a closed form: stick-slip, a clutch, a bang-bang law, a floor."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest

import pfaffian as pf
from pfaffian import control
from tests.tolerance import close

G = 9.81
INSTANT = 1e-11
"""Error of an instant or a motion that is located to 64 eps of the time, after a few events."""


def stick_slip() -> tuple[pf.Mechanism, dict]:
    """A block of 1 kg on a belt at 0.2 m/s, held by a spring of 40 N/m; friction of 6 N at rest, and of 3 N in sliding."""
    stuck = pf.Parameter("stuck", 1.0)
    slide = pf.joint("x", "prismatic", "world", "block", axis=(1, 0, 0), stiffness=40.0)
    grip = pf.constraints.active_while(pf.nonholonomic("grip", lambda k: k.v[0] - 0.2), lambda k: stuck > 0.5)
    drag = pf.forces.generalised_force("drag", lambda k: ca.if_else(stuck.symbol > 0.5, 0, 3.0), joint="x")
    m = pf.mechanism(
        "stick-slip", [pf.body("block", 1.0)], [slide], constraints=[grip], forces=[drag], parameters=[stuck], gravity=(0, 0, 0)
    )

    def following(k: pf.Kinematics) -> ca.SX:
        breaks = 40.0 * k.q[0] > 6.0
        catches = ca.logic_and(k.v[0] >= 0.2, ca.logic_not(breaks))
        return ca.if_else(stuck > 0.5, ca.logic_not(breaks), catches)

    return m, {"stuck": following}


@pytest.mark.parametrize("how", [{"step": 0.01}, {"accuracy": 1e-9}], ids=str)
def test_a_block_on_a_belt_sticks_and_slips_in_turn(how):
    """It sticks until the spring draws with 6 N, then x = 3/40 + A cos w t + B sin w t until its speed is the belt's."""
    m, switches = stick_slip()
    w, belt, breaks, middle = np.sqrt(40.0), 0.2, 6.0 / 40, 3.0 / 40
    A, B = breaks - middle, belt / w
    slip = 2 * (np.pi - np.arctan2(A * w, belt)) / w
    back = middle + A * np.cos(w * slip) + B * np.sin(w * slip)
    durations = np.r_[breaks / belt, np.tile([slip, (breaks - back) / belt], 3), slip]
    r = pf.run(m, [0.0], [belt], duration=6.0, switches=switches, backend="interpreter", **how)
    found, exact = pf.events(r), "accuracy" in how
    assert found.value.values.tolist() == [0.0, 1.0] * 4
    close(found.time.values, np.cumsum(durations), INSTANT if exact else 1e-6, "instants")
    close(found.jump.values, np.zeros((8, 1)), INSTANT if exact else 1e-6, "speeds are continuous")


def clutch() -> tuple[pf.Mechanism, dict]:
    """Two disks of 0.4 and 0.6 kg m^2 under a motor and a brake of 2 N m, joined by a clutch that carries 8 N m."""
    locked, side = pf.Parameter("locked", 0.0), pf.Parameter("side", 1.0)
    disks = [pf.body("driving", 1.0, inertia=0.4), pf.body("driven", 1.0, inertia=0.6)]
    shafts = [pf.joint(b.name, "revolute", "world", b.name, axis=(0, 0, 1)) for b in disks]
    lock = pf.constraints.active_while(pf.nonholonomic("lock", lambda k: k.v[0] - k.v[1]), lambda k: locked > 0.5)
    torque = lambda k, sign: ca.if_else(locked.symbol > 0.5, 0, -8.0 * sign * side.symbol)  # noqa: E731
    forces = [
        pf.forces.generalised_force("slips", lambda k: torque(k, 1.0), joint="driving"),
        pf.forces.generalised_force("drives", lambda k: torque(k, -1.0), joint="driven"),
        pf.forces.generalised_force("brake", lambda k: -2.0, joint="driven"),
    ]
    m = pf.mechanism(
        "clutch", disks, shafts, constraints=[lock], forces=forces, parameters=[locked, side],
        actuators=[pf.actuator("motor", "driving")],
    )  # fmt: skip

    def following(T: pf.Terms, motion) -> ca.SX:
        slips = ca.if_else(side.symbol > 0, T.v[0] > T.v[1], T.v[0] < T.v[1])
        carried = motion.reaction[1]
        return ca.if_else(locked > 0.5, ca.fabs(carried) < 8.0, ca.logic_not(slips))

    return m, {"locked": pf.of_motion(following)}


@pytest.mark.parametrize("how", [{"step": 0.1}, {"accuracy": 1e-9}], ids=str)
def test_a_clutch_locks_at_equal_speeds_and_slips_beyond_its_torque(how):
    """Locked, it carries 0.6 M + 0.8 N m of the motor's M, which reaches 8 N m on the way from 4 to 24 N m within 2 s."""
    m, switches = clutch()
    ramp = {"u": {"motor": [4.0, 4.0, 24.0]}, "u_step": 2.0, "hold": "linear"}
    locks = 10.0 / ((8 - 2) / 0.6 + (8 - 4) / 0.4)
    slips = 2.0 + (7.2 / 0.6 - 4.0) / 10.0
    r = pf.run(m, [0.0, 0.0], [10.0, 0.0], duration=4.0, switches=switches, backend="interpreter", **ramp, **how)
    found = pf.events(r)
    assert found.value.values.tolist() == [1.0, 0.0]
    close(found.time.values, [locks, slips], INSTANT, "instants")
    common = 10.0 * locks + (4 - 2) * (2.0 - locks)  # of momentum until the ramp; 10 = (8 - 2) / 0.6
    common += (4 - 2) * (slips - 2) + 5.0 * (slips - 2) ** 2
    rest = 4.0 - slips
    driven = common + (8 - 2) / 0.6 * rest
    driving = common + ((7.2 / 0.6 - 8) * rest + 5.0 * rest**2) / 0.4
    close(r.v.values[-1], [driving, driven], 1e-10, "speeds")


@pytest.mark.parametrize("how", [{"step": 0.05}, {"accuracy": 1e-8}], ids=str)
@pytest.mark.parametrize("start", [(1.0, 0.0), (-0.4, 1.3), (0.7, 1.5)])
def test_a_bang_bang_law_brings_a_mass_to_rest_in_least_time(start, how):
    """Full force until the parabola x = -v |v| / 2 F, then the opposite one; the time is known in closed form."""
    force, (x, v) = 2.0, start
    slide = pf.joint("x", "prismatic", "world", "c", axis=(1, 0, 0))
    side = pf.Parameter("side", 0.0)
    m = pf.mechanism("c", [pf.body("c", 1.0)], [slide], actuators=[pf.actuator("motor", "x")], parameters=[side],
                     gravity=(0, 0, 0))  # fmt: skip
    first = -np.sign(x + v * abs(v) / (2 * force))
    peak = np.sqrt(v**2 / 2 - first * x * force)
    turn, end = (peak - first * v) / force, (2 * peak - first * v) / force
    law = control.Control(lambda T, z, w, y: control.Command(force * side.symbol))

    def following(k: pf.Kinematics) -> ca.SX:
        beyond = k.q[0] + k.v[0] * ca.fabs(k.v[0]) / (2 * force)
        return ca.if_else(first * beyond > 0, -first, side)

    r = pf.run(m, [x], [v], duration=0.5 * np.ceil(2 * end), control=law, switches={"side": following},
               parameters={"side": first}, backend="interpreter", **how)  # fmt: skip
    found = pf.events(r)
    close(found.time.values[:1], [turn], INSTANT, "instant")
    close(found.value.values[:1], [-first], 0.0, "side")
    rest = pf.run(m, [x], [v], times=[0.0, end], control=law, switches={"side": following}, parameters={"side": first},
                  accuracy=1e-9, backend="interpreter")  # fmt: skip
    close(np.r_[rest.q.values[-1], rest.v.values[-1]], np.zeros(2), 1e-9, "at rest")


# -- surfaces with compliance ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("accuracy", [1e-4, 1e-7, 1e-10])
def test_a_ball_on_a_stiff_floor_touches_and_leaves_it_at_the_instants_of_the_closed_form(accuracy):
    """A parabola, and on the floor z = R cos(w t + a) - g / w^2 until z = 0 again: its forces have a kink there."""
    k, height = 1e5, 0.5
    w, v = np.sqrt(k / 2), np.sqrt(2 * G * height)
    on_it = 2 * (np.pi - np.arctan2(v / w, G / w**2)) / w
    slide = pf.joint("z", "prismatic", "world", "ball", axis=(0, 0, 1))
    floor = pf.forces.stop("floor", "z", low=0.0, stiffness=k, exponent=1.0)
    m = pf.mechanism("bounce", [pf.body("ball", 2.0)], [slide], forces=[floor])
    r = pf.run(m, [height], duration=2.2, accuracy=accuracy, backend="interpreter")
    found = pf.events(r)
    instants = v / G + np.cumsum(np.r_[0, np.tile([on_it, 2 * v / G], 3)])[:6]
    assert found["name"].values.tolist() == ["floor"] * 6 and found.value.values.tolist() == [1.0, 0.0] * 3
    assert np.abs(found.jump.values).max() < v * accuracy
    close(found.time.values, instants, accuracy, "instants")
    close(r.energy.values, np.full(len(r.time), 2 * G * height), 10 * accuracy, "energy")


def test_told_errors_hold_for_surfaces_with_friction():
    """Steps over a kink would have errors that the pair does not see, and that both solutions of a run share."""
    ground = pf.forces.contact("ground", "block", stiffness=1e5, damping=0.3, friction=0.3)
    base = pf.joint("x", "planar", "world", "block", axis=(0, -1, 0))
    m = pf.mechanism("block", [pf.body("block", 1.0, inertia=0.1)], [base], forces=[ground])
    how = {"times": np.linspace(0, 1.0, 21), "record": ["q", "v"], "backend": "interpreter"}
    exact = pf.run(m, [0, 0.2, 0.1], [1.0, 0, 0.5], accuracy=1e-11, **how)
    for accuracy in (1e-3, 1e-5, 1e-7, 1e-9):
        r = pf.run(m, [0, 0.2, 0.1], [1.0, 0, 0.5], accuracy=accuracy, **how)
        speed = np.array([np.abs(exact.v.values[:, :2]).max()] * 2 + [np.abs(exact.v.values[:, 2]).max()])
        true = max(np.abs(r.q.values - exact.q.values).max(), (np.abs(r.v.values - exact.v.values) / speed).max())
        assert true < 3 * float(r.error.max()) < 3 * accuracy, (accuracy, true, float(r.error.max()))


def test_surfaces_that_touch_and_part_by_rounding_alone_do_not_stop_a_run():
    """Two balls that swing side by side: the last digits of their places decide whether they touch."""
    along = {"kind": "prismatic", "axis": (1, 0, 0)}
    rails = [
        pf.joint("a", parent="world", child="a", rest=0.0, stiffness=40.0, **along),
        pf.joint("b", parent="world", child="b", rest=0.2, stiffness=120.0, **along),
    ]
    ball = pf.shape("sphere", radius=0.1)
    pads = pf.forces.contact("pads", "a", "b", shape_a=ball, shape_b=ball, stiffness=1.0)
    m = pf.mechanism("pair", [pf.body("a", 1.0), pf.body("b", 3.0)], rails, forces=[pads], gravity=(0, 0, 0))
    r = pf.run(m, [1.0, 1.2], duration=5.0, accuracy=1e-8, backend="interpreter")
    assert int(r.status) == 0 and int(r.steps) < 2000 and len(pf.events(r)["name"]) > 0
    close(r.q.values[-1], np.array([0.0, 0.2]) + np.cos(np.sqrt(40.0) * 5.0), 1e-7, "places")
