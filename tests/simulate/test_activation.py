"""Constraints that come on: met where the motion leads to them, and a stop that tells how far off it was where it does not."""

from types import SimpleNamespace

import casadi as ca
import numpy as np
import pytest

import pfaffian as pf
from pfaffian.simulate import activation, adaptive
from tests.simulate.test_velocity_constraints import slide
from tests.tolerance import MET, close

QUICK = {"duration": 0.5, "step": 1e-2, "backend": "interpreter"}
AWAY = r"became active \(active_while\) away from phi = 0: .*'floor' is "


def floor(height, condition):
    return pf.constraints.active_while(pf.holonomic("floor", lambda k: k.joint("z") - height), condition)


def late(k):
    return k.t > 0.195


@pytest.mark.parametrize("integrator", ["rk4", "euler", "tr-bdf2"])
@pytest.mark.parametrize("rate", [0.0, 3.0], ids=["at rest", "moving along"])
def test_far_away_the_run_stops(rate, integrator):
    m = slide([floor(0.3, late)], gravity=(0, 0, 0))
    with pytest.warns(pf.RunWarning, match=AWAY + r"-0\.3"):
        r = pf.run(m, None, [rate, 0.0], scheme=pf.Scheme(integrator=integrator), **QUICK)
    assert float(r["stopped"]) == pytest.approx(0.19) and float(r["status"]) > 2
    assert not r["q"].values[r["time"].values < 0.19, 1].any(), "nothing jumped before"


def test_each_that_comes_on_is_said_with_how_far_off_it_is():
    """Closures too, by the row of theirs that is farthest off."""
    pin = pf.closure("pin", "fixed", "world", "point", placement_a=(0.2, 0, -0.7))
    m = slide([floor(-0.7, late), pf.constraints.active_while(pin, late)], gravity=(0, 0, 0))
    with pytest.warns(
        pf.RunWarning, match=r"became active \(active_while\) away from phi = 0: floor, pin; let it become active where"
    ):
        r = pf.run(m, **QUICK)
    assert str(r["reason"].values).endswith("at its last state phi of 'floor' is 0.7, phi of 'pin' is 0.7"), r["reason"].values


def test_others_of_a_batch_go_on():
    """Half of them are on the floor when it comes on: a body of 1 m, since of a particle nothing says what is near."""
    height = pf.Parameter("height", 0.0, "m")
    m = slide([floor(height.symbol, late)], gravity=(0, 0, 0), parameters=[height])
    m = m.with_(bodies=[m.bodies[0], pf.body("point", 1.5, inertia=1.0)])
    with pytest.warns(pf.RunWarning, match=r"2 of 4 runs stopped: 2 a constraint became active"):
        r = pf.run(m, parameters={"height": [0.0, 0.2, 1e-7, -0.1]}, **QUICK)
    assert ((r["status"].values != 0) == [False, True, False, True]).all()
    assert "phi of 'floor' is 0.1" in str(r["reason"].values[3])
    close(r["q"].values[2, -1, 1], 1e-7, MET, "moved by what counts as met")


@pytest.mark.parametrize("speed", [1e-3, 1.0, 300.0])
def test_what_falls_onto_it_is_caught(speed):
    """However far a step goes: the floor comes on where the point is below."""
    m = slide([floor(-0.1 * speed, lambda k: k.joint("z") < -0.1 * speed)])
    r = pf.run(m, None, [0.5, -speed], **QUICK)
    assert float(r["status"]) == 0
    close(r["q"].values[-1, 1], -0.1 * speed, MET, "lies on the floor")
    close(r["v"].values[-1], [0.5, 0.0], MET, "slides on")


def test_falling_from_rest_onto_a_floor_next_to_it():
    """Acceleration alone leads there."""
    m = slide([floor(-1e-4, lambda k: k.joint("z") < -1e-4)])
    assert float(pf.run(m, **QUICK)["status"]) == 0


def test_a_constraint_that_is_on_all_the_time_may_drift():
    m = slide([pf.constraints.active_while(pf.holonomic("circle", lambda k: ca.sumsqr(k.q) - 1), lambda k: k.t >= 0)])
    r = pf.run(m, [1.0, 0.0], [0.0, 6.0], duration=0.5, step=0.05, backend="interpreter", scheme=pf.Scheme(corrections=4))
    assert float(r["status"]) == 0


def test_another_kind_stays_out_of_it():
    """Velocities are projected, accelerations are held, wherever they come on."""
    skate = pf.constraints.active_while(pf.nonholonomic("skate", lambda k: k.v[1]), late)
    law = pf.constraints.active_while(pf.constraints.acceleration_constraint("law", lambda k: ([[1.0, 0.0]], 0)), late)
    r = pf.run(slide([skate, law]), None, [1.0, 1.0], **QUICK)
    assert float(r["status"]) == 0
    close(r["v"].values[-1, 1], 0.0, MET, "stopped")


@pytest.mark.parametrize("at", [0.195, 0.3217])
def test_an_accurate_run_stops_where_it_comes_on(at):
    """Within a step of any length: what was before is recorded, and the time is that of the jump."""
    m = slide([floor(0.3, lambda k: k.t > at)], gravity=(0, 0, 0))
    with pytest.warns(pf.RunWarning, match=AWAY) as said:
        r = pf.run_adaptive(m, {"x": 0.0}, {"x": 1.0}, times=np.linspace(0, 0.5, 51), max_step=0.2)
    assert f"at t = {at} s" in str(said[0].message), said[0].message
    before = r["time"].values <= at
    close(r["stopped"].values, at, MET, "stopped at the jump")
    close(r["q"].values[before, 0], r["time"].values[before], MET, "recorded until then")
    assert float(r["status"]) > 2 and np.isnan(r["q"].values[~before]).all()


def test_what_both_halves_of_a_step_follow_is_no_jump():
    """Over the whole step it looked like one."""
    looks = SimpleNamespace(arrival=lambda t, x, t_next, x_next: 7 if t_next - t > 0.3 else 0)
    begin, end = (adaptive._Instant(t, np.zeros(2)) for t in (0.0, 0.5))
    assert adaptive._arrived(looks, lambda t: np.zeros(2), begin, end) is None
    jumps = SimpleNamespace(arrival=lambda t, x, t_next, x_next: 7 if t < 0.2 <= t_next else 0)
    found = adaptive._arrived(jumps, lambda t: np.full(2, t), begin, end)
    assert found.status == 7 and found.last.t == np.nextafter(0.2, 0) and (found.last.x == found.last.t).all()


def test_a_switched_parameter_counts_as_coming_on():
    on = pf.Parameter("on", 0.0)
    m = slide([floor(0.3, lambda k: on.symbol > 0)], gravity=(0, 0, 0), parameters=[on])
    assert float(pf.run(m, **QUICK)["status"]) == 0
    with pytest.warns(pf.RunWarning, match=AWAY + r"-0\.3"):
        r = pf.run(m, switches={"on": lambda k: ca.if_else(k.t > 0.195, 1, on.symbol)}, **QUICK)
    assert 0.19 <= float(r["stopped"]) <= 0.21
    close(pf.run(m, parameters={"on": 1.0}, **QUICK)["q"].values[-1, 1], 0.3, MET, "on from the start: assembled")


# -- phi that jumps, and conditions that are no number ----------------------------------------------------------------------

HEIGHT = pf.Parameter("height", 0.0, "m")


def of_a_metre(m):
    """With a body of that radius of gyration: limits of phi are beside the machine's length, and a particle has none."""
    return m.with_(bodies=[m.bodies[0], pf.body("point", 1.5, inertia=1.0)])


JUMPED = r"phi of a constraint jumped: shelf; .*phi of 'shelf' is "


def shelf(height):
    return pf.holonomic("shelf", lambda k: k.joint("z") - height(k))


@pytest.mark.parametrize("integrator", ["rk4", "euler", "tr-bdf2", "midpoint"])
@pytest.mark.parametrize("leap", [0.3, -1e-4])
def test_phi_that_jumps_in_time_stops_the_run(leap, integrator):
    """It would move the body by any distance in one step."""
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
    assert 0.19 <= float(r["stopped"]) <= 0.21 and np.nanmax(np.abs(r["q"].values[:, 1])) < MET


def test_a_closure_that_a_switched_parameter_shifts():
    bodies = [pf.body("a", 1.0, inertia=1.0), pf.body("b", 1.0, inertia=1.0)]
    joints = [pf.joint(n, "planar", "world", n) for n in "ab"]
    weld = pf.closure("weld", "fixed", "a", "b", placement_a=pf.pose((HEIGHT.symbol, 0, 0)))
    m = pf.mechanism("welded", bodies, joints, constraints=[weld], parameters=[HEIGHT])
    with pytest.warns(pf.RunWarning, match="phi of a constraint jumped: weld"):
        pf.run(m, switches={"height": lambda k: ca.if_else(k.t > 0.195, 0.3, HEIGHT.symbol)}, **QUICK)


def ramps(k):
    """Rests, climbs, rests again, bends back: continuous, and its rate is not."""
    return ca.if_else(k.t < 0.105, 0, ca.fmin(k.t - 0.105, 0.2)) + ca.fabs(ca.sin(9 * k.t)) * ca.floor(1.2)


@pytest.mark.parametrize("step", [1e-2, 1e-3])
def test_phi_that_moves_on_without_a_jump_is_followed(step):
    r = pf.run(slide([shelf(ramps)]), None, [1.0, 0.0], **QUICK | {"step": step, "every": round(1e-2 / step)})
    assert float(r["status"]) == 0
    f = ca.Function("f", [t := ca.SX.sym("t")], [ramps(type("At", (), {"t": t}))])
    close(r["q"].values[:, 1], [float(f(t)) for t in r["time"].values], MET, "on the shelf")


def test_a_switched_parameter_that_shifts_little_is_followed():
    m = of_a_metre(slide([shelf(lambda k: HEIGHT.symbol)], parameters=[HEIGHT]))
    r = pf.run(m, switches={"height": lambda k: HEIGHT.symbol + 5e-7}, **QUICK)
    assert float(r["status"]) == 0
    close(r["q"].values[-1, 1], 50 * 5e-7, 3 * MET, "moved by less than counts as met, each step")


def test_what_cannot_jump_has_no_look_at_it():
    """A kernel of its own only where it is needed."""
    smooth = slide([shelf(lambda k: 0.1 * ca.sin(k.t)), pf.holonomic("mark", lambda k: ca.if_else(k.q[0] > 9, 1, 0) + k.q[0])])
    assert activation.faults(smooth) == () and activation.faults(slide([floor(0.3, late)])) != ()
    assert len(activation.faults(slide([floor(0.3, late)]))) == 1, "the time is a number"


@pytest.mark.parametrize("below", [False, True])
def test_a_condition_that_becomes_no_number_stops_the_run(below):
    """It would count as not met, and the constraint be gone."""
    m = slide([floor(0.0, lambda k: ca.logic_or(ca.sqrt(0.2 - k.t) > 0.1, below * (k.q[0] > 1)))], gravity=(0, 0, 0))
    with pytest.warns(pf.RunWarning, match=r"condition of a constraint \(active_while\) became NaN: floor \(at t = 0\.2"):
        r = pf.run(m, None, [1.0, 0.0], **QUICK)
    assert float(r["status"]) > 2


def test_a_condition_that_divides_by_zero_is_one():
    m = slide([floor(0.0, lambda k: 1 / (k.t - 0.2) ** 2 > 4)], gravity=(0, 0, 0))
    assert float(pf.run(m, **QUICK)["status"]) == 0


@pytest.mark.parametrize("steps, met", [(1.9, True), (2.1, False)])
@pytest.mark.parametrize("integrator", ["rk4", "euler"])
def test_a_motion_of_two_steps_counts_as_leading_there(steps, met, integrator):
    """It comes on at once where the point still has so many steps of 1e-2 s to go, at 0.7 m/s."""
    m = slide([floor(0.007 * steps, late)], gravity=(0, 0, 0))
    start = {"z": -0.7 * 0.19}, {"z": 0.7}  # at z = 0 when the step begins in which it comes on
    keep = QUICK | {"duration": 0.2, "scheme": pf.Scheme(integrator=integrator)}
    if met:
        r = pf.run(m, *start, **keep)
        assert float(r["status"]) == 0
        close(r["q"].values[-1, 1], 0.007 * steps, MET, "on the floor")
        return
    with pytest.warns(pf.RunWarning, match=AWAY):
        assert float(pf.run(m, *start, **keep)["stopped"]) == pytest.approx(0.19)


@pytest.mark.parametrize("off, met", [(0.9, True), (1.1, False)])
def test_what_is_met_at_rest_is_met_within_the_limit_of_violation(off, met):
    scheme = pf.Scheme(violation_limit=1e-4)
    m = of_a_metre(slide([floor(off * 1e-4, late)], gravity=(0, 0, 0)))
    if met:
        assert float(pf.run(m, scheme=scheme, **QUICK)["status"]) == 0
        return
    with pytest.warns(pf.RunWarning, match=AWAY):
        pf.run(m, scheme=scheme, **QUICK)
