"""Constraints that become active: satisfied where the motion leads to them; elsewhere the run stops and its reason states
how far off they were."""

from types import SimpleNamespace

import casadi as ca
import numpy as np
import pytest

import pfaffian as pf
from pfaffian.simulate.step import activation
from tests import by_scipy as adaptive
from tests.by_scipy import run_adaptive
from tests.simulate.test_velocity_constraints import slide
from tests.tolerance import SATISFIED, close

QUICK = {"duration": 0.5, "step": 1e-2, "backend": "interpreter"}
AWAY = r"became active \(active_while\) away from phi = 0: .*'floor' is "


def floor(height, condition):
    return pf.constraints.active_while(pf.holonomic("floor", lambda k: k.joint("z") - height), condition)


def late(k):
    return k.t > 0.195


@pytest.mark.parametrize("integrator", ["rk4", "euler", "tr-bdf2"])
@pytest.mark.parametrize("rate", [0.0, 3.0], ids=["at rest", "moving along"])
def test_a_run_stops_where_a_constraint_activates_far_away(rate, integrator):
    m = slide([floor(0.3, late)], gravity=(0, 0, 0))
    with pytest.warns(pf.RunWarning, match=AWAY + r"-0\.3"):
        r = pf.run(m, None, [rate, 0.0], scheme=pf.Scheme(integrator=integrator), **QUICK)
    assert float(r["stopped"]) == pytest.approx(0.195) and float(r["status"]) > 2
    assert not r["q"].values[r["time"].values < 0.195, 1].any(), "no jump before"


def test_each_constraint_that_activates_is_named_with_its_residual():
    """A closure is judged by its row with the largest residual."""
    pin = pf.closure("pin", "fixed", "world", "point", placement_a=(0.2, 0, -0.7))
    m = slide([floor(-0.7, late), pf.constraints.active_while(pin, late)], gravity=(0, 0, 0))
    with pytest.warns(
        pf.RunWarning, match=r"became active \(active_while\) away from phi = 0: floor, pin; let it become active where"
    ):
        r = pf.run(m, **QUICK)
    assert str(r["reason"].values).endswith("at its last state phi of 'floor' is 0.7, phi of 'pin' is 0.7"), r["reason"].values


def test_other_runs_of_a_batch_continue():
    """Half of the runs are on the floor when it becomes active. The body has a radius of gyration, since a particle has no
    length to compare with."""
    height = pf.Parameter("height", 0.0, "m")
    m = slide([floor(height.symbol, late)], gravity=(0, 0, 0), parameters=[height])
    m = m.with_(bodies=[m.bodies[0], pf.body("point", 1.5, inertia=1.0)])
    with pytest.warns(pf.RunWarning, match=r"2 of 4 runs stopped: 2 a constraint became active"):
        r = pf.run(m, parameters={"height": [0.0, 0.2, 1e-7, -0.1]}, **QUICK)
    assert ((r["status"].values != 0) == [False, True, False, True]).all()
    assert "phi of 'floor' is 0.1" in str(r["reason"].values[3])
    close(r["q"].values[2, -1, 1], 1e-7, SATISFIED, "moved by less than the tolerance")


@pytest.mark.parametrize("speed", [1e-3, 1.0, 300.0])
def test_a_falling_body_is_caught_by_a_floor(speed):
    """However far a step goes, the floor becomes active once the point is below it."""
    m = slide([floor(-0.1 * speed, lambda k: k.joint("z") < -0.1 * speed)])
    r = pf.run(m, None, [0.5, -speed], **QUICK)
    assert float(r["status"]) == 0
    close(r["q"].values[-1, 1], -0.1 * speed, SATISFIED, "lies on the floor")
    close(r["v"].values[-1], [0.5, 0.0], SATISFIED, "slides on")


def test_a_fall_from_rest_onto_a_floor_nearby_is_caught():
    """The acceleration alone leads there."""
    m = slide([floor(-1e-4, lambda k: k.joint("z") < -1e-4)])
    assert float(pf.run(m, **QUICK)["status"]) == 0


def test_a_constraint_that_is_always_active_may_drift():
    m = slide([pf.constraints.active_while(pf.holonomic("circle", lambda k: ca.sumsqr(k.q) - 1), lambda k: k.t >= 0)])
    r = pf.run(m, [1.0, 0.0], [0.0, 6.0], duration=0.5, step=0.05, backend="interpreter", scheme=pf.Scheme(corrections=4))
    assert float(r["status"]) == 0


def test_other_kinds_of_constraints_may_activate_anywhere():
    """Velocities are projected and acceleration constraints hold accelerations, wherever they become active."""
    skate = pf.constraints.active_while(pf.nonholonomic("skate", lambda k: k.v[1]), late)
    law = pf.constraints.active_while(pf.constraints.acceleration_constraint("law", lambda k: ([[1.0, 0.0]], 0)), late)
    r = pf.run(slide([skate, law]), None, [1.0, 1.0], **QUICK)
    assert float(r["status"]) == 0
    close(r["v"].values[-1, 1], 0.0, SATISFIED, "stopped")


@pytest.mark.parametrize("at", [0.195, 0.3217])
def test_an_adaptive_run_stops_at_the_instant_of_activation(at):
    """The instant lies within a step of any length: all records before it are kept, and the time of the stop is its own."""
    m = slide([floor(0.3, lambda k: k.t > at)], gravity=(0, 0, 0))
    with pytest.warns(pf.RunWarning, match=AWAY) as caught:
        r = run_adaptive(m, {"x": 0.0}, {"x": 1.0}, times=np.linspace(0, 0.5, 51), max_step=0.2)
    assert f"at t = {at} s" in str(caught[0].message), caught[0].message
    before = r["time"].values <= at
    close(r["stopped"].values, at, SATISFIED, "stopped at the jump")
    close(r["q"].values[before, 0], r["time"].values[before], SATISFIED, "recorded until then")
    assert float(r["status"]) > 2 and np.isnan(r["q"].values[~before]).all()


def test_motion_that_both_half_steps_follow_is_no_jump():
    """Compared over the whole step it looked like one."""
    looks = SimpleNamespace(arrival=lambda t, x, t_next, x_next: 7 if t_next - t > 0.3 else 0)
    begin, end = (adaptive._StateAt(t, np.zeros(2)) for t in (0.0, 0.5))
    assert adaptive._arrived(looks, lambda t: np.zeros(2), begin, end) is None
    jumps = SimpleNamespace(arrival=lambda t, x, t_next, x_next: 7 if t < 0.2 <= t_next else 0)
    found = adaptive._arrived(jumps, lambda t: np.full(2, t), begin, end)
    assert found.status == 7 and found.last.t == np.nextafter(0.2, 0) and (found.last.x == found.last.t).all()


def test_a_switched_parameter_may_activate_a_constraint():
    on = pf.Parameter("on", 0.0)
    m = slide([floor(0.3, lambda k: on.symbol > 0)], gravity=(0, 0, 0), parameters=[on])
    assert float(pf.run(m, **QUICK)["status"]) == 0
    with pytest.warns(pf.RunWarning, match=AWAY + r"-0\.3"):
        r = pf.run(m, switches={"on": lambda k: ca.if_else(k.t > 0.195, 1, on.symbol)}, **QUICK)
    assert 0.19 <= float(r["stopped"]) <= 0.21
    close(pf.run(m, parameters={"on": 1.0}, **QUICK)["q"].values[-1, 1], 0.3, SATISFIED, "on from the start: assembled")


# -- phi that jumps, and conditions that become NaN -------------------------------------------------------------------------

HEIGHT = pf.Parameter("height", 0.0, "m")


def with_radius_of_gyration(m):
    """The machine with a body whose radius of gyration is a metre: limits of phi are relative to a length, and a particle
    has none."""
    return m.with_(bodies=[m.bodies[0], pf.body("point", 1.5, inertia=1.0)])


JUMPED = r"phi of a constraint jumped: shelf; .*phi of 'shelf' is "


def shelf(height):
    return pf.holonomic("shelf", lambda k: k.joint("z") - height(k))


@pytest.mark.parametrize("integrator", ["rk4", "euler", "tr-bdf2", "midpoint"])
@pytest.mark.parametrize("leap", [0.3, -1e-4])
def test_phi_that_jumps_in_time_stops_the_run(leap, integrator):
    """Otherwise the body would move by any distance in one step."""
    m = slide([shelf(lambda k: ca.if_else(k.t > 0.195, leap, 0))])
    with pytest.warns(pf.RunWarning, match=JUMPED + "0"):
        r = pf.run(m, None, [2.0, 0.0], scheme=pf.Scheme(integrator=integrator), **QUICK)
    assert float(r["stopped"]) == pytest.approx(0.19) and not r["q"].values[r["time"].values < 0.2, 1].any()


@pytest.mark.parametrize("active", [False, True])
def test_phi_that_jumps_by_a_switched_parameter_stops_the_run(active):
    constraint = shelf(lambda k: HEIGHT.symbol)
    m = slide([pf.constraints.active_while(constraint, lambda k: k.t >= 0) if active else constraint], parameters=[HEIGHT])
    switch = {"height": lambda k: ca.if_else(k.t > 0.195, 0.3, HEIGHT.symbol)}
    words = r"became active \(active_while\) away from phi = 0: shelf" if active else JUMPED + r"-0\.3"
    with pytest.warns(pf.RunWarning, match=words):
        r = pf.run(m, switches=switch, **QUICK)
    assert 0.19 <= float(r["stopped"]) <= 0.21 and np.nanmax(np.abs(r["q"].values[:, 1])) < SATISFIED


def test_a_closure_that_a_switched_parameter_shifts():
    bodies = [pf.body("a", 1.0, inertia=1.0), pf.body("b", 1.0, inertia=1.0)]
    joints = [pf.joint(n, "planar", "world", n) for n in "ab"]
    weld = pf.closure("weld", "fixed", "a", "b", placement_a=pf.pose((HEIGHT.symbol, 0, 0)))
    m = pf.mechanism("welded", bodies, joints, constraints=[weld], parameters=[HEIGHT])
    with pytest.warns(pf.RunWarning, match="phi of a constraint jumped: weld"):
        pf.run(m, switches={"height": lambda k: ca.if_else(k.t > 0.195, 0.3, HEIGHT.symbol)}, **QUICK)


def ramps(k):
    """Rests, climbs, rests again, bends back: a continuous function whose rate is not continuous."""
    return ca.if_else(k.t < 0.105, 0, ca.fmin(k.t - 0.105, 0.2)) + ca.fabs(ca.sin(9 * k.t)) * ca.floor(1.2)


@pytest.mark.parametrize("step", [1e-2, 1e-3])
def test_phi_that_moves_without_a_jump_is_followed(step):
    r = pf.run(slide([shelf(ramps)]), None, [1.0, 0.0], **QUICK | {"step": step, "every": round(1e-2 / step)})
    assert float(r["status"]) == 0
    f = ca.Function("f", [t := ca.SX.sym("t")], [ramps(type("At", (), {"t": t}))])
    close(r["q"].values[:, 1], [float(f(t)) for t in r["time"].values], SATISFIED, "on the shelf")


def test_a_small_shift_by_a_switched_parameter_is_followed():
    m = with_radius_of_gyration(slide([shelf(lambda k: HEIGHT.symbol)], parameters=[HEIGHT]))
    r = pf.run(m, switches={"height": lambda k: HEIGHT.symbol + 5e-7}, **QUICK)
    assert float(r["status"]) == 0
    close(r["q"].values[-1, 1], 49 * 5e-7, 3 * SATISFIED, "moved by less than the tolerance in each step but the first")


def test_constraints_that_cannot_jump_are_not_checked_for_jumps():
    """Only a machine that needs the check has its kernel."""
    smooth = slide([shelf(lambda k: 0.1 * ca.sin(k.t)), pf.holonomic("mark", lambda k: ca.if_else(k.q[0] > 9, 1, 0) + k.q[0])])
    assert activation.faults(smooth) == () and activation.faults(slide([floor(0.3, late)])) != ()
    assert len(activation.faults(slide([floor(0.3, late)]))) == 1, "the time is never NaN"


@pytest.mark.parametrize("below", [False, True])
def test_a_condition_that_becomes_nan_stops_the_run(below):
    """NaN would count as false, and the constraint would vanish."""
    m = slide([floor(0.0, lambda k: ca.logic_or(ca.sqrt(0.2 - k.t) > 0.1, below * (k.q[0] > 1)))], gravity=(0, 0, 0))
    with pytest.warns(pf.RunWarning, match=r"condition of a constraint \(active_while\) became NaN: floor \(at t = 0\.2"):
        r = pf.run(m, None, [1.0, 0.0], **QUICK)
    assert float(r["status"]) > 2


def test_a_condition_that_becomes_infinite_is_valid():
    m = slide([floor(0.0, lambda k: 1 / (k.t - 0.2) ** 2 > 4)], gravity=(0, 0, 0))
    assert float(pf.run(m, **QUICK)["status"]) == 0


@pytest.mark.parametrize("off, reached", [(0.0, True), (1e-3, False)])
@pytest.mark.parametrize("integrator", ["rk4", "euler"])
def test_a_constraint_is_reached_where_the_motion_is_at_its_instant(off, reached, integrator):
    """The floor becomes active when the point, which moves at 0.7 m/s, is on it, or a millimetre before it: much less than it
    moves in a step of 1e-2 s."""
    m = with_radius_of_gyration(slide([floor(off, late)], gravity=(0, 0, 0)))
    start = {"z": -0.7 * 0.195}, {"z": 0.7}
    keep = QUICK | {"duration": 0.2, "scheme": pf.Scheme(integrator=integrator)}
    if reached:
        r = pf.run(m, *start, **keep)
        assert float(r["status"]) == 0
        close(r["q"].values[-1, 1], off, SATISFIED, "on the floor")
        return
    with pytest.warns(pf.RunWarning, match=AWAY):
        assert float(pf.run(m, *start, **keep)["stopped"]) == pytest.approx(0.195)


@pytest.mark.parametrize("off, reached", [(0.9, True), (1.1, False)])
def test_a_machine_at_rest_may_be_off_by_the_violation_limit(off, reached):
    scheme = pf.Scheme(violation_limit=1e-4)
    m = with_radius_of_gyration(slide([floor(off * 1e-4, late)], gravity=(0, 0, 0)))
    if reached:
        assert float(pf.run(m, scheme=scheme, **QUICK)["status"]) == 0
        return
    with pytest.warns(pf.RunWarning, match=AWAY):
        pf.run(m, scheme=scheme, **QUICK)
