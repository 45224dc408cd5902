"""Events at their instants, against closed forms: switches, constraints that begin, impacts; in steps of one length and under
error control."""

from __future__ import annotations

import re
import warnings

import casadi as ca
import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.spatial.transform import Rotation

import pfaffian as pf
from pfaffian import control
from pfaffian.simulate.run import solver
from pfaffian.simulate.step import time_loop
from pfaffian.simulate.step.events import SELDOM, Ahead
from tests.simulate.machines import FOUR_BAR_START, four_bar
from tests.tolerance import EPS, SATISFIED, SLOPE, close

G = 9.81
INSTANT = 1e-11
"""Error of an instant or a motion that is located to 64 eps of the time, after a few events."""


def sling() -> tuple[pf.Mechanism, dict]:
    """A drone of 1.5 kg, and a load of 0.5 kg on the ground that hangs on 2 m of line from when it is taut."""
    taut = pf.Parameter("taut", 0.0)
    slides = [pf.joint(n, "prismatic", "world", b, axis=(0, 0, 1)) for n, b in (("z", "drone"), ("l", "load"))]
    line = pf.constraints.active_while(pf.holonomic("line", lambda k: k.q[0] - k.q[1] - 2), lambda k: taut > 0.5)
    ground = pf.constraints.active_while(pf.holonomic("ground", lambda k: k.q[1]), lambda k: taut < 0.5)
    bodies = [pf.body("drone", 1.5), pf.body("load", 0.5)]
    m = pf.mechanism("sling", bodies, slides, constraints=[line, ground], parameters=[taut],
                     actuators=[pf.actuator("thrust", "z")])  # fmt: skip
    return m, {"taut": lambda k: ca.if_else(k.q[0] - k.q[1] > 2, 1, taut)}


@pytest.mark.parametrize("how", [{"step": 1e-3}, {"step": 0.04}, {"accuracy": 1e-4}, {"accuracy": 1e-8}], ids=str)
def test_a_line_that_becomes_taut_shares_the_momentum_at_that_instant(how):
    m, switches = sling()
    a = 30 / 1.5 - G
    t1 = np.sqrt(4 / a)
    v, rest = a * t1 * 1.5 / 2, 2 - t1
    height = 2 + v * rest + (30 / 2 - G) * rest**2 / 2
    r = pf.run(m, duration=2.0, u={"thrust": 30.0}, switches=switches, backend="interpreter", **how)
    close(r.q.values[-1], [height, height - 2], INSTANT, "heights")
    assert int(r.status) == 0 and float(r.error.max()) < 1e-10, "told"
    if "accuracy" in how:
        found = pf.events(r)
        assert found["name"].values.tolist() == ["taut"] and found.value.values.tolist() == [1.0]
        close(found.time.values, [t1], INSTANT, "instant")
        close(found.jump.values[0], [v - a * t1, v], INSTANT, "jump")


def peg() -> tuple[pf.Mechanism, dict]:
    """A pendulum of 1 m whose damper acts below -0.3 rad only, from when the mode says so."""
    low = pf.Parameter("low", 0.0)
    damper = pf.forces.dissipation("damper", lambda k: low.symbol * 0.8 * k.v[0] ** 2)
    hinge = pf.joint("hinge", "revolute", "world", "bob", axis=(0, 1, 0))
    m = pf.mechanism("peg", [pf.body("bob", 1.0, com=(0, 0, -1))], [hinge], forces=[damper], parameters=[low])
    return m, {"low": lambda k: ca.if_else(k.q[0] < -0.3, 1, 0)}


def by_solve_ivp(end: float) -> tuple[np.ndarray, int]:
    """[q, v] of `peg` at the end, and the number of events, by SciPy's integrator and its own search for them."""
    t, y, low, count = 0.0, np.array([1.0, 0.0]), 0.0, 0

    def edge(_, y):
        return y[0] + 0.3

    edge.terminal = True
    while True:
        f = lambda _, y, on=low: [y[1], -G * np.sin(y[0]) - 1.6 * on * y[1]]  # noqa: E731
        edge.direction = 1 if low else -1
        s = solve_ivp(f, (t, end), y, "DOP853", events=edge, rtol=1e-13, atol=1e-13)
        t, y = s.t[-1], s.y[:, -1]
        if s.status == 0:
            return y, count
        low, count = 1.0 - low, count + 1


def test_errors_fall_with_the_order_of_the_rule_through_events():
    m, switches = peg()
    (truth, _), steps = by_solve_ivp(3.0), 0.04 / 2.0 ** np.arange(4)
    how = {"duration": 3.0, "switches": switches, "backend": "interpreter", "error_bound": np.inf}
    ends = [pf.run(m, [1.0], step=h, every=round(3 / h), **how) for h in steps]
    size = [1.0, 3.0]  # of an angle [rad], and of the largest speed [rad/s]
    off = np.array([np.abs((np.r_[r.q.values[-1], r.v.values[-1]] - truth) / size).max() for r in ends])
    slopes = np.log2(off[:-1] / off[1:])
    assert slopes.min() > 4 - SLOPE, (off, slopes)
    fastest = np.sqrt(2 * G * (1 - np.cos(1)))
    off = np.array([np.abs(np.r_[r.q.values[-1], r.v.values[-1] / fastest] - truth / [1, fastest]).max() for r in ends])
    told = np.array([float(r.error.max()) for r in ends])
    assert (told > off / 3).all() and (told < 30 * off).all(), (off, told)


@pytest.mark.parametrize("accuracy", [1e-4, 1e-8, 1e-11])
def test_accuracy_is_had_through_events(accuracy):
    m, switches = peg()
    r = pf.run(m, [1.0], times=[0.0, 3.0], accuracy=accuracy, switches=switches, backend="interpreter")
    truth, count = by_solve_ivp(3.0)
    close(np.r_[r.q.values[-1], r.v.values[-1]], truth, 3 * accuracy, "motion")
    assert float(r.error.max()) <= accuracy and len(pf.events(r)["name"]) == count > 2


def test_two_crossings_in_one_step_are_found():
    """A thrown ball is above a line for 0.18 s of a flight that takes a single step."""
    seen = pf.Parameter("seen", 0.0)
    slide = pf.joint("z", "prismatic", "world", "ball", axis=(0, 0, 1))
    m = pf.mechanism("thrown", [pf.body("ball", 1.0)], [slide], parameters=[seen])
    top = 5.0**2 / (2 * G)
    line = top - G / 2 * 0.09**2
    count = {"seen": lambda k: ca.if_else(k.q[0] > line, 1, 0)}
    r = pf.run(m, [0.0], [5.0], times=[0.0, 1.0], accuracy=1e-6, switches=count, backend="interpreter")
    found = pf.events(r)
    assert found.value.values.tolist() == [1.0, 0.0]
    close(found.time.values, 5 / G + np.array([-0.09, 0.09]), INSTANT, "instants")
    split = pf.run(m, [0.0], [5.0], duration=1.0, step=0.5, switches=count, backend="interpreter")
    assert split["seen"].values.tolist() == [0.0, 1.0, 0.0], "at .5 s the ball is above the line"


@pytest.mark.parametrize("how", [{"accuracy": 1e-9}, {"step": 4.0}], ids=str)
@pytest.mark.parametrize(("start", "height"), [(0.0, 0.16), (0.0, 0.2499), (-0.75, -0.001)])
def test_two_crossings_between_the_points_of_a_long_step_are_found(start, height, how):
    """A throw so small that it takes a single step, longer than the run: only the curve within it tells that it passes the
    height."""
    unit = 1e-6
    on = pf.Parameter("on", 0.0)
    slide = pf.joint("z", "prismatic", "world", "b", axis=(0, 0, 1))
    m = pf.mechanism("throw", [pf.body("b", 1.0)], [slide], parameters=[on], gravity=(0, 0, -2 * unit))
    switches = {"on": lambda k: ca.if_else(k.q[0] > height * unit, 1, on)}
    speed = 2 * np.sqrt(-start) if start else 1.0
    r = pf.run(m, [start * unit], [speed * unit], duration=4.0, switches=switches, backend="interpreter", **how)
    instant = speed / 2 - np.sqrt(speed**2 / 4 + start - height)
    close(pf.events(r).time.values, [instant], 1e-9, "instant")


def relay(law=None):
    """A mass that a relay pulls back whenever it is more than 0.1 m away."""
    side = pf.Parameter("side", 1.0)
    slide = pf.joint("x", "prismatic", "world", "c", axis=(1, 0, 0))
    m = pf.mechanism("relay", [pf.body("c", 1.0)], [slide], actuators=[pf.actuator("motor", "x")], parameters=[side],
                     gravity=(0, 0, 0))  # fmt: skip
    pull = control.Control(lambda T, z, w, y: control.Command(2 * side.symbol))
    switches = {"side": lambda k: ca.if_else(k.q[0] > 0.1, -1, ca.if_else(k.q[0] < -0.1, 1, side))}
    return m, {"control": pull, "switches": switches}


@pytest.mark.parametrize("how", [{"step": 0.02}, {"accuracy": 1e-9}], ids=str)
def test_events_have_the_same_bits_in_any_batch_and_on_every_backend(how):
    m, given = relay()
    q = np.linspace(-0.09, 0.09, 11)[:, None]
    settings = given | how | {"duration": 1.5, "record": ["q", "v", "side"]}
    first = pf.run(m, q, backend="interpreter", **settings)
    assert len(np.unique(np.argmax(first["side"].values < 0, axis=1))) > 3, "at different instants"
    for other in ({"backend": "c"}, {"backend": "numpy"}, {"backend": "interpreter", "threads": 2}):
        again = pf.run(m, q, **settings, **other)
        for name in ("q", "v", "side", "error"):
            np.testing.assert_array_equal(first[name].values, again[name].values)
    one = pf.run(m, q[7], backend="interpreter", **settings)
    np.testing.assert_array_equal(one.q.values, first.q.values[7])


def test_a_run_continues_through_events_with_the_bits_of_one_run():
    m, given = relay()
    times, how = np.linspace(0, 3, 31), given | {"accuracy": 1e-9, "backend": "interpreter"}
    whole = pf.run(m, [0.0], times=times, **how)
    for cut in (3, 4, 12):
        part = pf.run(m, [0.0], times=times[: cut + 1], **how)
        rest = pf.run(m, start_from=part, times=times[cut + 1 :], **how)
        np.testing.assert_array_equal(rest.q.values, whole.q.values[cut + 1 :])
        np.testing.assert_array_equal(
            np.r_[pf.events(part).time.values, pf.events(rest).time.values], pf.events(whole).time.values
        )


def test_a_stepper_passes_events_as_a_run_does():
    m, given = relay()
    r = pf.run(m, [0.0], duration=1.5, step=0.02, backend="interpreter", **given)
    stepper = pf.stepper(m, step=0.02, backend="interpreter", **given)
    stepper.reset(q=[0.0])
    for _ in range(75):
        stepper.step()
    np.testing.assert_array_equal(np.ravel(stepper.q), r.q.values[-1])


def test_a_law_in_discrete_time_sees_no_event_of_its_own_steps():
    """A sampled force is the same whether or not a mode that it does not read switches between its instants."""
    m, given = relay()
    law = control.discrete(control.Control(lambda T, z, w, y: control.Command(-3 * T.q[0])), 0.05)
    how = {"control": law, "times": np.linspace(0, 1, 11), "backend": "interpreter", "accuracy": 1e-10}
    plain, switching = pf.run(m, [0.3], **how), pf.run(m, [0.3], switches=given["switches"], **how)
    assert len(pf.events(switching)["name"]) > 0
    close(switching.u.values, plain.u.values, 1e-10, "inputs")


@pytest.mark.parametrize(
    "condition",
    [lambda k, side: ca.if_else(k.q[0] + k.v[0] > 0, -1, 1), lambda k, side: ca.if_else(k.q[0] > 0.4, -side, side)],
    ids=["sliding", "in a circle"],
)  # fmt: skip
@pytest.mark.parametrize("how", [{"step": 1e-2}, {"accuracy": 1e-6}], ids=str)
def test_events_without_end_are_named(condition, how):
    """A relay whose both modes lead back to the switch, and a mode that contradicts itself. Steps of one length go on where
    time passes, and say so."""
    m, given = relay()
    side = m.parameters[0]
    moving = {"control": given["control"], "switches": {"side": lambda k: condition(k, side.symbol)}}
    words = "events of 'side' follow one another so fast|events follow one another without end: .*'side'.*; let the mode switch"
    with pytest.warns(pf.RunWarning, match=words):
        r = pf.run(m, [0.3], [0.5], duration=3.0, backend="interpreter", **moving, **how)
    if "accuracy" in how:
        assert int(r.status) > 0 and 0 < float(r.stopped) < 1
        assert re.search(r"the last 10 (follow within \S+ s|are at one instant)", str(r.reason.values))


def puck(z, v, switch, g=0.0, **how):
    """A run of a second of a body that slides along a line, with a mode."""
    on = pf.Parameter("on", 0.0)
    slide = pf.joint("z", "prismatic", "world", "puck", axis=(0, 0, 1))
    m = pf.mechanism("puck", [pf.body("puck", 1.0)], [slide], parameters=[on], gravity=(0, 0, -g))
    switches = {"on": lambda k: switch(k, on.symbol)}
    return pf.run(m, [z], [v], duration=1.0, switches=switches, backend="interpreter", **how)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("how", [{"step": 1e-2}, {"accuracy": 1e-8}], ids=str)
@pytest.mark.parametrize("start, speed", [(1000.0, 0.1), (1.0, 1e-3), (1000.0, 1e-3), (-2e4, 0.01)])
@pytest.mark.parametrize("instant", [0.0, 0.437])
def test_a_slow_motion_passes_its_event(start, speed, instant, how):
    """In the time to which events are located it moves by less than the last digit of its position."""
    line = start - instant * speed
    r = puck(start, -speed, lambda k, on: ca.if_else(k.q[0] < line, 1, on), **how)
    assert int(r.status) == 0 and float(r.on[-1]) == 1
    digit = 64 * EPS * abs(start) / speed
    if "accuracy" in how:
        close(pf.events(r).time.values, [instant], digit + INSTANT, "instant")
    assert (r.on.values == (r.time.values > instant)).all()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("how", [{"step": 1e-2}, {"accuracy": 1e-8}], ids=str)
def test_stairs_are_passed_one_by_one(how):
    """A mode that is a rounded position, from rest at an edge: also several edges in a step."""
    r = puck(1.0, 0.0, lambda k, on: ca.floor(4 * k.q[0]), g=G, **how)
    depths = np.arange(1, 20) / 4
    fall = 1 - G / 2 * r.time.values**2
    assert int(r.status) == 0 and (r.on.values[1:] == np.floor(4 * fall[1:])).all()
    if "accuracy" in how:
        found = pf.events(r).time.values[2:]
        close(found, np.sqrt(2 * depths / G)[: len(found)], 1e-8, "instants, to the accuracy")


@pytest.mark.filterwarnings("error::pfaffian.RunWarning")
@pytest.mark.parametrize("how", [{"step": 1e-2}, {"accuracy": 1e-8}], ids=str)
@pytest.mark.parametrize(
    "condition, end",
    [
        (lambda x: ca.log(x - 0.9) < -3, 0.1),
        (lambda x: ca.logic_not(ca.sqrt(x - 0.8) < 0.1), 0.2),
        (lambda x: ca.floor(ca.log(x - 0.9)), 0.1),
        (lambda x: ca.acos(x + 0.5) < 1, 0.0),
    ],
    ids=["logarithm", "root", "rounded", "at the start"],
)
def test_a_condition_on_no_number_is_named(condition, end, how):
    """A condition that compares NaN is false by the rules of floating point, which is no answer."""
    with pytest.warns(pf.RunWarning, match="a condition compares became NaN.*'on'; guard it, as in"):
        r = puck(1.0, 0.0, lambda k, on: ca.if_else(condition(k.q[0]), 1, 0), g=G, **how)
    instant = np.sqrt(2 * end / G)
    assert int(r.status) > 0 and instant - 1e-2 < float(r.stopped) < instant + INSTANT
    if "accuracy" in how:
        close(float(r.stopped), instant, INSTANT, "instant")
    guarded = puck(1.0, 0.0, lambda k, on: ca.if_else(ca.logic_and(k.q[0] < -9, condition(k.q[0])), 1, 0), g=G, **how)
    assert int(guarded.status) == 0, "where another condition decides"
    if "accuracy" in how and end == 0.1:
        r = puck(1.0, 0.0, lambda k, on: ca.if_else(ca.logic_and(k.q[0] > 0.9, condition(k.q[0])), 1, 0), g=G, **how)
        assert float(pf.events(r).time[-1]) < instant + INSTANT, "a guard that ends where the number does"


def scanned(f, **more) -> pf.Mechanism:
    """A ball under a force, of a law if it has a motor."""
    slide = pf.joint("z", "prismatic", "world", "puck", axis=(0, 0, 1))
    return pf.mechanism("puck", [pf.body("puck", 1.0)], [slide], forces=f, **more)


BELOW = lambda k: ca.if_else(ca.log(k.q[0] - 0.9) < -3, 1.0, 0.0)  # noqa: E731
DOUBTFUL = {  # name, machine, settings
    "force": ("wind", lambda f: scanned([pf.forces.generalised_force("wind", f)]), BELOW),
    "energy": ("spring", lambda f: scanned([pf.forces.potential("spring", f)]), lambda k: k.q[0] * BELOW(k)),
    "several kinks": ("wind", lambda f: scanned([pf.forces.generalised_force("wind", f)]),
                      lambda k: ca.fabs(k.q[0] - 0.5) * BELOW(k)),
    "surface": ("pad", lambda f: scanned([pf.forces.rebound("pad", f, 0.5)]), lambda k: ca.sqrt(k.q[0] - 0.9) + 0.1),
}  # fmt: skip


@pytest.mark.parametrize("how", [{"step": 1e-2}, {"accuracy": 1e-8}], ids=str)
@pytest.mark.parametrize("case", [*DOUBTFUL, "law"])
def test_a_force_a_law_or_a_surface_whose_condition_compares_no_number_is_named(case, how):
    """Without its guard it would act as on one of the sides."""
    motor = {"actuators": [pf.actuator("motor", "z")]}
    act = lambda f: control.Control(lambda T, z, w, y: control.Command(f(T)))  # noqa: E731
    name, make, f = DOUBTFUL.get(case, ("control law", lambda f: scanned([], **motor), BELOW))
    guarded = lambda k: ca.if_else(k.q[0] > 0.9, f(k), 1.0)  # noqa: E731
    for given, fine in ((f, False), (guarded, True)):
        law = {"control": act(given)} if case == "law" else {}
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            r = pf.run(make(given), [1.0], duration=0.2, backend="interpreter", **law, **how)
        assert (int(r.status) == 0) == fine
        words = f"a condition compares became NaN .*'{name}'; guard it, as in"
        assert any(re.search(words, str(w.message)) for w in told) != fine


SAWTOOTH = [0.05, 0.15, 0.25, 0.35, 0.45, 0.55, 0.65, 0.75, 0.85, 0.95]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("how", [{"step": 1e-2}, {"step": 0.1}, {"accuracy": 1e-8}], ids=str)
@pytest.mark.parametrize(
    "condition, instants",
    [
        (lambda x: ca.fmod(x, 0.2) < 0.1, SAWTOOTH),
        (lambda x: ca.fmod(1.3 - x, 0.3) < 0.1, [0.05, 0.25, 0.35, 0.55, 0.65, 0.85, 0.95]),
        (lambda x: x - ca.floor(5 * x) / 5 < 0.1, SAWTOOTH),
        (lambda x: ca.atan2(x - 0.4, -1) < 3, [0.35, 0.35 + np.tan(np.pi - 3)]),
        (lambda x: ca.copysign(2, x - 0.5) < 0, [0.45]),
        (lambda x: ca.fmod(x, 0.6) < ca.if_else(x > 0.7, 0.2, 0.3), [0.25, 0.55, 0.75]),
    ],
    ids=["sawtooth", "falling sawtooth", "stairs taken off", "angle", "sign of another", "two jumps"],
)
def test_numbers_that_jump_are_compared_at_their_jumps_too(condition, instants, how):
    """A polynomial through a jump passes zero where nothing happens."""
    r = puck(0.05, 1.0, lambda k, on: ca.if_else(condition(k.q[0]), 1, 0), **how)
    after = r.time.values[1:-1] + 1e-6  # a record at an event is of the side before it
    x = 0.05 + after
    truth = [float(ca.if_else(condition(ca.DM(one)), 1, 0)) for one in x]
    edges = np.abs(np.subtract.outer(after, instants)).min(axis=1) < 2e-6
    assert (r.on.values[1:-1] == truth)[~edges].all()
    if "accuracy" in how:
        close(pf.events(r).time.values[-len(instants) :], instants, 1e-8, "instants, to the accuracy")


@pytest.mark.parametrize("start", [0.0, 7.0])
@pytest.mark.parametrize("how", [{"step": 0.25}, {"step": 0.5}, {"accuracy": 1e-9}], ids=str)
def test_an_input_series_passes_a_threshold_between_its_samples(how, start):
    """The input rises by 2/5 a second, then by 8/5, and falls by 2 a second; a mode that follows it from 0.6 on doubles it."""
    on = pf.Parameter("on", 0.0)
    slide = pf.joint("x", "prismatic", "world", "c", axis=(1, 0, 0))
    more = pf.forces.generalised_force("more", lambda k: on.symbol * k.q[1], joint="x")
    track = pf.joint("y", "prismatic", "world", "d", axis=(1, 0, 0))
    m = pf.mechanism("c", [pf.body("c", 1.0), pf.body("d", 1.0)], [slide, track], forces=[more], parameters=[on],
                     actuators=[pf.actuator("motor", "x")], gravity=(0, 0, 0))  # fmt: skip
    switches = {"on": pf.of_motion(lambda T, motion: ca.if_else(T.u[0] > 0.6, 1, 0))}
    series = {"u": np.array([[0.0], [0.2], [1.0], [0.0]]), "u_step": 0.5, "hold": "linear", "start": start}
    r = pf.run(m, [0.0, 3.0], duration=1.5, switches=switches, backend="interpreter", **series, **how)
    close(pf.events(r).time.values - start, [0.75, 1.2], INSTANT, "instants")
    close(pf.events(r).value.values, [1.0, 0.0], 0.0, "modes")
    close(r.v.values[-1], [0.05 + 0.3 + 0.25 + 3.0 * 0.45, 0.0], INSTANT, "speeds")


@pytest.mark.parametrize("start", [0.0, 5.0])
@pytest.mark.parametrize("how", [{"step": 0.3}, {"accuracy": 1e-9}], ids=str)
def test_conditions_and_gaps_know_the_time_at_which_a_run_starts(how, start):
    """A mode that a moving line switches, and a wall that comes at 2 m/s: u = v - 2 (v + e (v + 2) + ...)."""
    e, on = 0.5, pf.Parameter("on", 0.0)
    slide = pf.joint("x", "prismatic", "world", "ball", axis=(1, 0, 0))
    wall = pf.forces.rebound("wall", lambda k: 3.0 - 2.0 * (k.t - start) - k.q[0], e)
    m = pf.mechanism("wall", [pf.body("ball", 1.0)], [slide], forces=[wall], parameters=[on], gravity=(0, 0, 0))
    line = {"on": lambda k: ca.if_else(k.q[0] > 0.5 - 0.25 * (k.t - start), 1, 0)}
    r = pf.run(m, [0.0], [1.0], duration=1.5, start=start, switches=line, backend="interpreter", **how)
    found = pf.events(r)
    assert found["name"].values.tolist() == ["on", "wall", "on"]
    after = -2.0 - e * 3.0
    back = 1.0 + (0.5 - 0.25 - 1.0) / (after + 0.25)
    close(found.time.values - start, [0.4, 1.0, back], INSTANT, "instants")
    close(found.jump.values[1], [after - 1.0], INSTANT, "jump")
    close(r.q.values[-1], [1.0 + after * 0.5], INSTANT, "place")


def grip() -> tuple[pf.Mechanism, dict, float]:
    """A sledge of 0.5 m/s that a hook holds from 0.3 m on, and the instant."""
    held, slide = pf.Parameter("held", 0.0), pf.joint("x", "prismatic", "world", "sledge", axis=(1, 0, 0))
    hook = pf.constraints.active_while(pf.nonholonomic("hook", lambda k: k.v[0]), lambda k: held > 0.5)
    m = pf.mechanism("grip", [pf.body("sledge", 3.0)], [slide], constraints=[hook], parameters=[held])
    switches = {"held": lambda k: ca.if_else(k.q[0] > 0.3, 1, held)}
    return m, {"q": [0.0], "v": [0.5], "switches": switches}, 0.6


def soft_wall() -> tuple[pf.Mechanism, dict, float]:
    """The sledge, which touches a soft stop at that instant."""
    m, _, instant = grip()
    wall = pf.forces.stop("wall", "x", high=0.3, stiffness=200.0)
    return pf.mechanism("wall", m.bodies, m.joints, forces=[wall]), {"q": [0.0], "v": [0.5]}, instant


@pytest.mark.parametrize(
    "case, length",
    [("rebound", "accuracy"), ("switch", "accuracy"), ("soft", "accuracy"), ("rebound", "step"), ("switch", "step")],
)
def test_an_event_at_the_last_instant_is_listed_once(case, length):
    """The record there is of the side before it, and so is the state from which another run continues."""
    kinds = {"rebound": lambda: (bounce(0.5), {"q": [1.0]}, np.sqrt(2 / G)), "switch": grip, "soft": soft_wall}
    m, begin, instant = kinds[case]()
    again, more = {k: x for k, x in begin.items() if k == "switches"}, {"backend": "interpreter"}
    if length == "accuracy":
        more, first = more | {"accuracy": 1e-8}, {"times": [0.0, instant]}
        both, last = {"times": [0.0, instant, instant + 0.1]}, {"times": [instant + 0.1]}
    else:
        more |= {"step": instant / 6, "error_bound": np.inf}
        first, last, both = ({"duration": n * instant / 6} for n in (6, 2, 8))
    start, whole = pf.run(m, **begin, **first, **more), pf.run(m, **begin, **both, **more)
    rest = pf.run(m, start_from=start, **again, **last, **more)
    np.testing.assert_array_equal(rest.q.values[-1], whole.q.values[-1])
    one, two, all_of_them = (pf.events(r).time.values for r in (start, rest, whole))
    close(one, [instant], INSTANT, "instant")
    np.testing.assert_array_equal(np.r_[one, two], all_of_them)


def test_inputs_that_another_run_brings_may_cause_an_event_at_its_first_instant():
    """That event is not one which the run before it has listed."""
    on, slide = pf.Parameter("on", 0.0), pf.joint("x", "prismatic", "world", "cart", axis=(1, 0, 0))
    m = pf.mechanism("cart", [pf.body("cart", 1.0)], [slide], parameters=[on], actuators=[pf.actuator("push", "x")])
    law = pf.of_motion(lambda T, motion: ca.if_else(motion.v_dot[0] > 1, 1, 0))
    how = {"switches": {"on": law}, "backend": "interpreter", "accuracy": 1e-6}
    first = pf.run(m, [0.0], times=[0.0, 0.5], u={"push": 0.5}, **how)
    rest = pf.run(m, start_from=first, times=[1.0], u={"push": 2.0}, **how)
    assert not len(pf.events(first).time)
    close(pf.events(rest).time.values, [0.5], INSTANT, "instant")


def barge() -> tuple[pf.Mechanism, dict]:
    """A barge whose drag acts while its tug pushes forwards."""
    on, slide = pf.Parameter("on", 0.0), pf.joint("x", "prismatic", "world", "barge", axis=(1, 0, 0))
    drag = pf.forces.generalised_force("drag", lambda k: -on.symbol * k.v[0], joint="x")
    m = pf.mechanism("barge", [pf.body("barge", 2.0)], [slide], forces=[drag], parameters=[on],
                     actuators=[pf.actuator("tug", "x")])  # fmt: skip
    return m, {"on": pf.of_motion(lambda T, motion: ca.if_else(T.u[0] > 0, 1, 0))}


TO_AND_FRO = {
    "a law": lambda: {
        "control": control.discrete(
            lambda s: control.Command(1 - 2 * s["n"], d_next={"n": 1 - s["n"]}), 0.05, measure={}, state={"n": 0.0}
        )
    },
    "inputs": lambda: {"u": np.tile([[1.0], [-1.0]], (6, 1)), "u_step": 0.05},
}


@pytest.mark.parametrize("given", TO_AND_FRO)
def test_a_record_where_a_sample_switches_a_mode_at_once_is_of_the_side_before_it(given, monkeypatch):
    """Wherever a call of the loop ends: before that instant, at it, or between the sample and what it switches."""
    (m, switches), begin, found = barge(), {"q": [[0.0], [0.0]], "v": [[0.5], [0.1]]}, []
    how = {"switches": switches, "accuracy": 1e-6, "backend": "interpreter"} | TO_AND_FRO[given]()
    for n in (solver.FIRST_CALL, *range(4, 10)):
        monkeypatch.setattr(solver, "FIRST_CALL", n)
        if found:  # calls do not grow
            monkeypatch.setattr(solver, "CALL_BYTES", 400 * n)
        found.append(pf.run(m, **begin, times=np.arange(9) * 0.05, **how))
    first = found[0].isel(run=0)
    close(first.on.values[1:], np.arange(8) % 2 == 0, 0.0, "modes")
    close(first.u.values[:, 0], 1 - 2 * (np.arange(9) % 2), 0.0, "inputs")
    for r in found[1:]:
        for name in ("q", "v", "u", "on"):
            np.testing.assert_array_equal(r[name].values, found[0][name].values)


# -- impacts --------------------------------------------------------------------------------------------------------------


def bounce(e) -> pf.Mechanism:
    slide = pf.joint("z", "prismatic", "world", "ball", axis=(0, 0, 1))
    return pf.mechanism("bounce", [pf.body("ball", 2.0)], [slide], forces=[pf.forces.stop("floor", "z", low=0.0, impact=e)])


@pytest.mark.parametrize("e", [0.8, 0.5])
def test_a_ball_bounces_until_its_last_instant(e):
    """Its flights take e times as long each, so they end at t0 (1 + 2 e / (1 - e))."""
    t0 = np.sqrt(2 / G)
    with pytest.warns(
        pf.RunWarning, match="events follow one another without end: .*'floor'.*; a body that comes to rest there"
    ):
        r = pf.run(bounce(e), [1.0], duration=5.0, accuracy=1e-9, backend="interpreter")
    found = pf.events(r)
    flights = 2 * t0 * e ** np.arange(1, 12)
    close(found.time.values[:12], t0 + np.r_[0, np.cumsum(flights)], INSTANT, "instants")
    close(found.jump.values[:12, 0], (1 + e) * G * t0 * e ** np.arange(12), INSTANT, "jumps")
    close(float(r.stopped), t0 * (1 + 2 * e / (1 - e)), 1e-9, "the last instant")
    before = pf.run(bounce(e), [1.0], duration=1.2, step=0.05, backend="interpreter")
    finer = pf.run(bounce(e), [1.0], times=[0, 1.2], accuracy=1e-10, backend="interpreter")
    close(before.q.values[-1], finer.q.values[-1], INSTANT, "steps of one length")


def test_the_energy_of_an_elastic_ball_stays_and_the_books_close():
    r = pf.run(bounce(1.0), [1.0], duration=5.0, accuracy=1e-10, backend="interpreter")
    close(r.energy.values, np.full(len(r.time), 2 * G), 1e-9, "energy")
    lossy = pf.run(bounce(0.7), [1.0], duration=1.2, step=0.01, backend="interpreter")
    close(float(lossy.energy[-1]), 2 * G * 0.7**4, 1e-9, "after two impacts")
    assert abs(float(lossy.energy_error)) < 1e-9


def test_an_impact_in_a_loop_keeps_the_constraints_and_loses_as_newton_says():
    """A stop of the rocker of a four-bar with redundant rows: J v+ = -e J v-, along the one motion of the loop, so that e^2 of
    the kinetic energy remains."""
    e, m, how = 0.6, four_bar(), {"duration": 1.0, "accuracy": 1e-9, "backend": "interpreter", "u": {"motor": 1.0}}
    rocker = pf.run(m, FOUR_BAR_START, **how).q.values[:, 2]
    end = (rocker[0] + rocker.max()) / 2
    stopped = m.with_(forces=[pf.forces.stop("end", "d", high=end, impact=e)])
    r = pf.run(stopped, FOUR_BAR_START, **how)
    found = pf.events(r)
    assert len(found["name"]) > 0 and set(found["name"].values) == {"end"}, found
    assert float(r.q[:, 2].max()) < end + SATISFIED and float(np.abs(r.phi).max()) < SATISFIED
    v = {}
    for side in (-1e-9, 1e-9):
        near = pf.run(stopped, FOUR_BAR_START, **how | {"duration": None, "times": [0.0, float(found.time[0]) + side]})
        v[side] = near.v.values[-1], float(near.kinetic_energy[-1])
    (before, T0), (after, T1) = v[-1e-9], v[1e-9]
    close(after[2], -e * before[2], 1e-6, "rebound")
    close(after / after[2], before / before[2], 1e-6, "along the motion of the loop")
    close(T1, e**2 * T0, 1e-6, "the whole energy moves along it")


def test_a_box_meets_the_ground_at_one_corner_after_the_other():
    """Steps of one length and error control agree; momenta across gravity are conserved by ground without friction."""
    box = pf.forces.contact("ground", "box", shape_a=pf.shape("box", size=(0.2, 0.3, 0.4)), impact=0.5)
    free = pf.joint("f", "free", "world", "box")
    m = pf.mechanism("dice", [pf.body("box", 1.0, inertia=(0.02, 0.03, 0.04))], [free], forces=[box])
    q = np.r_[0, 0, 1.0, np.sin(0.35) * np.array([0.6, 0.8, 0]), np.cos(0.35)]
    v = np.r_[Rotation.from_quat(q[3:]).inv().apply([0.4, -0.2, 0]), np.zeros(3)]
    r = pf.run(m, q, v, duration=0.9, accuracy=1e-9, backend="interpreter")
    assert len(set(pf.events(r)["name"].values)) >= 2
    other = pf.run(m, q, v, duration=0.9, step=1e-3, backend="interpreter")
    close(other.q.values[-1], r.q.values[-1], 1e-8, "pose")
    close(r.q.values[-1][:2], [0.4 * 0.9, -0.2 * 0.9], 1e-9, "where its centre is")


def die(com=(0.0, 0.0, 0.0), e: float = 0.5) -> pf.Mechanism:
    """A box that rebounds at its eight corners."""
    ground = pf.forces.contact("ground", "box", shape_a=pf.shape("box", size=(0.2, 0.3, 0.4)), impact=e)
    free = pf.joint("f", "free", "world", "box")
    return pf.mechanism("die", [pf.body("box", 1.0, com=com, inertia=(0.02, 0.03, 0.04))], [free], forces=[ground])


@pytest.mark.parametrize("how", [{"step": 1e-2}, {"accuracy": 1e-8}], ids=str)
@pytest.mark.parametrize("com", [(0.0, 0.0, 0.0), (0.05, -0.03, 0.0)])
def test_a_box_that_falls_flat_rebounds_without_turning(com, how):
    """Its four corners meet the ground at once. Where its centre is above the face, the ground only pushes."""
    r = pf.run(die(com), [0, 0, 1.0, 0, 0, 0, 1], duration=0.5, backend="interpreter", **how)
    instant = np.sqrt(2 * 0.8 / G)
    after = G * instant / 2 - G * (0.5 - instant)
    close(r.v.values[-1], [0, 0, after, 0, 0, 0], 1e-9, "velocities")
    if "accuracy" in how:
        found = pf.events(r)
        assert found["name"].values.tolist() == ["ground 0", "ground 2", "ground 4", "ground 6"]
        assert np.ptp(found.time.values) == 0


def test_a_box_that_falls_onto_a_face_beside_its_centre_turns_over_its_edge():
    """The ground cannot pull: the two corners below the centre rebound, and the other two open faster than that."""
    b, e = 0.15, 0.5
    r = pf.run(die((b, 0.0, 0.0), e), [0, 0, 1.0, 0, 0, 0, 1], duration=0.5, accuracy=1e-8, backend="interpreter")
    v, arm, inertia = G * np.sqrt(1.6 / G), b - 0.1, 0.03
    impulse = (1 + e) * v / (1 + arm**2 / inertia)
    spin = impulse * arm / inertia
    close(pf.events(r).jump.values[0], [0, 0, impulse + spin * b, 0, spin, 0], 1e-8, "of the origin of the body")


def test_an_impact_at_an_edge_keeps_the_symmetry():
    lean = np.r_[0, 0, 1.0, 0, np.sin(0.35), 0, np.cos(0.35)]
    r = pf.run(die(), lean, duration=0.6, accuracy=1e-8, backend="interpreter")
    assert len(pf.events(r)["name"]) > 0 and abs(r.v.values[-1][4]) > 1
    close(r.v.values[-1][[1, 3, 5]], np.zeros(3), 1e-9, "across the edge")


def test_gaps_that_contradict_each_other_rebound_one_after_another():
    """A ball that two walls meet at once cannot open both gaps as fast as they close."""
    x = pf.joint("x", "prismatic", "world", "ball", axis=(1, 0, 0))
    walls = pf.forces.rebound("walls", lambda k: ca.vertcat(k.q[0] + 1 - 2 * k.t, 1 - 2 * k.t - k.q[0]), impact=1.0)
    m = pf.mechanism("vice", [pf.body("ball", 1.0)], [x], forces=[walls], gravity=(0, 0, 0))
    with pytest.warns(pf.RunWarning, match="events follow one another without end: .*'walls"):
        r = pf.run(m, [0.0], duration=1.0, accuracy=1e-6, backend="interpreter")
    close(float(r.stopped), 0.5, 1e-9, "instant")


@pytest.mark.parametrize("how", [{"step": 1e-2}, {"accuracy": 1e-6}], ids=str)
def test_constraints_that_begin_at_once_and_contradict_each_other_are_named_at_their_instant(how):
    """A sledge meets two belts of different speeds at 0.3 m. No shorter step would help, so the run ends there."""
    x = pf.joint("x", "prismatic", "world", "sledge", axis=(1, 0, 0))
    belts = [
        pf.constraints.active_while(pf.nonholonomic(name, lambda k, w=w: k.v[0] - w), lambda k: k.q[0] > 0.3)
        for name, w in (("slow belt", 0.1), ("fast belt", 0.6))
    ]
    m = pf.mechanism("belts", [pf.body("sledge", 1.0)], [x], constraints=belts, gravity=(0, 0, 0))
    with pytest.warns(pf.RunWarning, match="violation above the limit.*'slow belt', 'fast belt', or rows beside them"):
        r = pf.run(m, [0.0], [0.5], duration=1.0, backend="interpreter", **how)
    close(float(r.stopped), 0.6, 1e-9, "instant")


@pytest.mark.parametrize("integrator, exactness", [("radau5", 1e-5), ("tr-bdf2", 1e-2)])
def test_implicit_rules_find_an_event_on_the_path_of_their_stages(integrator, exactness):
    """A crane whose cart strikes a buffer, in steps of 0.05 s. On a straight path its place would be found too slowly."""
    cart, bob = pf.body("cart", 1.0), pf.body("bob", 0.8, com=(0, 0, -0.4), inertia=0.01)
    slide = pf.joint("x", "prismatic", "world", "cart", axis=(1, 0, 0), stiffness=30.0)
    swing = pf.joint("swing", "revolute", "cart", "bob", axis=(0, 1, 0))
    m = pf.mechanism("crane", [cart, bob], [slide, swing], forces=[pf.forces.stop("buffer", "x", low=-0.15, impact=0.8)])
    how = {"duration": 0.5, "backend": "interpreter", "error_bound": np.inf, "error": False}
    r = pf.run(m, [0.2, 1.2], step=0.05, scheme=pf.Scheme(integrator=integrator), **how)
    exact = pf.events(pf.run(m, [0.2, 1.2], duration=0.5, accuracy=1e-8, backend="interpreter"))
    close(pf.events(r).time.values, exact.time.values, exactness, "instants")


@pytest.mark.parametrize("how", [{"step": 0.05, "duration": 0.6}, {"accuracy": 1e-8, "times": [0.0, 0.6]}], ids=str)
def test_what_an_impact_or_a_mode_switches_at_once_is_listed_once(how):
    """A thrown ball sets `far` at 0.3 m, which sets `known`; a wall at 0.5 m returns it, which sets `back`."""
    far, known, back = (pf.Parameter(n, 0.0) for n in ("far", "known", "back"))
    slide = pf.joint("x", "prismatic", "world", "ball", axis=(1, 0, 0))
    wall = pf.forces.rebound("wall", lambda k: 0.5 - k.q[0], 0.7)
    m = pf.mechanism("ball", [pf.body("ball", 1.0)], [slide], forces=[wall], parameters=[far, known, back], gravity=(0, 0, 0))
    switches = {
        "far": lambda k: ca.if_else(k.q[0] > 0.3, 1, far),
        "known": lambda k: ca.if_else(far > 0.5, 1, known),
        "back": lambda k: ca.if_else(k.v[0] < 0, 1, 0),
    }
    found = pf.events(pf.run(m, [0.0], [1.0], switches=switches, backend="interpreter", **how))
    assert found["name"].values.tolist() == ["far", "known", "wall", "back"]
    close(found.time.values, [0.3, 0.3, 0.5, 0.5], INSTANT, "instants")
    close(found.value.values, [1.0, 1.0, 0.0, 1.0], 0.0, "values")
    close(found.jump.values[:, 0], [0.0, 0.0, -1.7, 0.0], INSTANT, "jumps")


@pytest.mark.parametrize("how", [{"step": 0.05, "duration": 0.8}, {"accuracy": 1e-8, "times": [0.0, 0.8]}], ids=str)
def test_geared_bodies_stop_at_a_wall_without_rebound(how):
    """One impact: the rounding of the gears, onto which the velocities are put, does not close the gap again."""
    slides = [pf.joint(n, "prismatic", "world", f"block {n}", axis=(1, 0, 0)) for n in "abc"]
    gears = pf.nonholonomic("gears", lambda k: ca.vertcat(k.v[0] - 0.7 * k.v[1] - 0.3 * k.v[2], k.v[1] - 1.3 * k.v[2]))
    wall = pf.forces.rebound("wall", lambda k: 0.3 - k.q[0], 0.0)
    pull = pf.forces.generalised_force("pull", lambda k: -0.5, joint="a")
    blocks = [pf.body(f"block {n}", mass) for n, mass in zip("abc", (1.0, 2.0, 0.7), strict=True)]
    m = pf.mechanism("geared", blocks, slides, constraints=[gears], forces=[wall, pull], gravity=(0, 0, 0))
    r = pf.run(m, v=[0.7 * 1.3 + 0.3, 1.3, 1.0], backend="interpreter", **how)
    ratio = np.array([0.7 * 1.3 + 0.3, 1.3, 1.0])
    a = -0.5 * ratio[0] / (np.array([1.0, 2.0, 0.7]) @ ratio**2)  # of block c
    instant = (-1 + np.sqrt(1 + 2 * a * 0.3 / ratio[0])) / a
    found = pf.events(r)
    assert found["name"].values.tolist() == ["wall"] and int(r.status) == 0
    close(found.time.values, [instant], INSTANT, "instant")
    close(r.v.values[-1], a * (0.8 - instant) * ratio, INSTANT, "speeds")


def test_impacts_beside_kinks_that_follow_one_another_are_not_lost():
    """A ball on a rod with dry friction, whose kinks at v = 0 are passed by ordinary steps in the end: it rebounds up to the
    limit of its impacts, whose times are a geometric series."""
    e, dry, asked = 0.3, 2.0, 1e-6
    slide = pf.joint("z", "prismatic", "world", "ball", axis=(0, 0, 1))
    forces = [
        pf.forces.generalised_force("dry", lambda k: -dry * ca.sign(k.v[0])),
        pf.forces.rebound("floor", lambda k: k.q[0], e),
    ]
    m = pf.mechanism("ball", [pf.body("ball", 1.0)], [slide], forces=forces)
    with pytest.warns(pf.RunWarning, match="events follow one another without end: .* the last is of 'floor'"):
        r = pf.run(m, [1.0], times=[0.0, 2.0], accuracy=asked, backend="interpreter")
    up, down = G + dry, G - dry
    first = e * np.sqrt(2 * down) * (1 / up + 1 / np.sqrt(up * down))
    limit = np.sqrt(2 / down) + first / (1 - e * np.sqrt(down / up))
    found = pf.events(r)
    close(found.time.values[-1], limit, asked, "limit")
    assert len(found.time) < 100


def test_wrong_impacts_are_refused():
    for given, words in (
        ({"impact": 1.2}, "from 0 to 1, got 1.2"),
        ({}, "either stiffness, of soft surfaces, or impact"),
        ({"impact": 0.5, "stiffness": 1e3}, "either stiffness"),
        ({"impact": 0.5, "friction": 0.1}, "without friction"),
        ({"impact": 0.5, "damping": 1.0}, "damping is of soft surfaces"),
    ):
        with pytest.raises(pf.ModelError, match=words):
            pf.forces.contact("ground", "ball", **given)
    with pytest.raises(pf.ModelError, match="gap must be a function"):
        pf.forces.rebound("wall", 0.0, impact=0.5)
    m = bounce(0.5)
    with pytest.raises(pf.ModelError, match="impacts of floor change momenta"):
        pf.reduce(m)
    with pytest.raises(pf.ModelError, match="impacts of floor occur at instants that depend on the state"):
        pf.calculus.rollout(m, [1.0], steps=3, step=1e-3)
    by_speed = m.with_(forces=[pf.forces.rebound("wall", lambda k: k.q[0] + k.v[0], 0.5)])
    with pytest.raises(pf.ModelError, match="depends on no velocity"):
        pf.run(by_speed, [1.0], duration=0.1)


def ball_between(e) -> tuple[pf.Mechanism, pf.Parameter]:
    """A ball between a floor and a lid that a parameter moves."""
    lid = pf.Parameter("lid", 2.0)
    slide = pf.joint("z", "prismatic", "world", "ball", axis=(0, 0, 1))
    lid_above = pf.forces.rebound("above", lambda k: ca.vertcat(lid.symbol - k.q[0], lid.symbol + 1 - k.q[0]), e)
    floor = pf.forces.stop("floor", "z", low=0.0, impact=0.5)
    parameters = [lid, e] if isinstance(e, pf.Parameter) else [lid]
    return pf.mechanism("between", [pf.body("ball", 2.0)], [slide], forces=[floor, lid_above], parameters=parameters), lid


@pytest.mark.parametrize("how", [{"step": 1e-2}, {"accuracy": 1e-6}], ids=str)
@pytest.mark.parametrize("value", [1.5, -0.1])
def test_a_restitution_that_a_run_gives_is_checked_as_one_of_the_model(value, how):
    m, _ = ball_between(pf.Parameter("e", 0.5))
    with pytest.raises(pf.ModelError, match=f"'above' in run 1.*impact.* {value:g} must be from 0 to 1; correct parameters"):
        pf.run(m, [1.0], duration=0.1, parameters={"e": [1.0, value]}, backend="interpreter", **how)
    if "step" in how:
        with pytest.raises(pf.ModelError, match=f"impact.* {value:g} must be from 0 to 1; correct"):
            pf.stepper(m, backend="interpreter", **how).reset(q=[1.0], parameters={"e": value})


@pytest.mark.parametrize("how", [{"step": 1e-2}, {"accuracy": 1e-6}], ids=str)
@pytest.mark.parametrize("speed", [-1.0, 0.0, 1.0])
def test_a_start_inside_a_surface_is_named_with_its_depth(speed, how):
    m, _ = ball_between(1.0)
    with pytest.raises(pf.RunError, match=r"'above': its surfaces start 0.25 m or rad inside one another in run 1.*at least 0"):
        pf.run(m, [[1.0], [2.25]], [speed], duration=0.1, backend="interpreter", **how)
    with pytest.raises(pf.RunError, match="'floor': its surfaces start"):
        pf.run(m, [-1e-3], [speed], duration=0.1, backend="interpreter", **how)
    touching = pf.run(m, [2.0 + 1e-9], [speed], duration=0.1, backend="interpreter", **how)
    assert int(touching.status) == 0 and float(touching.q[-1, 0]) < 2.0


@pytest.mark.parametrize("how", [{"accuracy": 1e-9}, {"step": 0.05}], ids=str)
def test_surfaces_that_meet_at_one_instant_are_all_listed(how):
    """Three balls dropped from the same height; the velocities of all jump together."""
    slides = [pf.joint(f"z{i}", "prismatic", "world", f"b{i}", axis=(0, 0, 1)) for i in range(3)]
    floors = [pf.forces.stop(f"floor {i}", f"z{i}", low=0.0, impact=0.5) for i in range(3)]
    m = pf.mechanism("three", [pf.body(f"b{i}", 1.0 + i) for i in range(3)], slides, forces=floors)
    found = pf.events(pf.run(m, [1.0, 1.0, 1.0], duration=0.6, backend="interpreter", **how))
    assert found["name"].values.tolist() == ["floor 0", "floor 1", "floor 2"]
    close(found.time.values, np.full(3, np.sqrt(2 / G)), INSTANT, "instants")
    close(found.jump.values, np.full((3, 3), 1.5 * np.sqrt(2 * G)), INSTANT, "jumps")


def test_impacts_are_written_and_read(tmp_path):
    wall = pf.forces.stop("wall", "z", low=-0.5, high=2.0, impact=0.25)
    m = bounce(0.5).with_(forces=[*bounce(0.5).forces, wall])
    pf.write(m, tmp_path / "bounce.yaml")
    again = pf.read(tmp_path / "bounce.yaml")[0]
    how = {"duration": 0.8, "accuracy": 1e-8, "backend": "interpreter"}
    np.testing.assert_array_equal(pf.run(again, [1.0], **how).q.values, pf.run(m, [1.0], **how).q.values)


def driven_sling() -> tuple[pf.Mechanism, dict]:
    """`sling` under a thrust that changes linearly, from t = 3 s on."""
    m, switches = sling()
    u = np.array([[20.0], [40.0], [25.0]])
    return m, {"switches": switches, "u": u, "u_step": 0.5, "hold": "linear", "start": 3.0}


@pytest.mark.parametrize(
    "machine, step, exactness",
    [
        (driven_sling, 0.1, INSTANT),
        (driven_sling, 2e-3, INSTANT),
        (lambda: (bounce(0.7), {"q": [1.0], "start": 3.0}), 0.5, INSTANT),
        (lambda: (die(), {"q": [0, 0, 1, 0.3, 0, 0, 1]}), 0.01, 1e-7),
    ],
    ids=["sling", "sling in short steps", "ball", "die"],
)
def test_steps_of_one_length_list_the_events_that_a_run_to_an_accuracy_lists(machine, step, exactness):
    """Of a switch that changes a constraint, under inputs that change linearly, and of impacts."""
    m, how = machine()
    how |= {"duration": 1.0, "backend": "interpreter"}
    exact, split = (pf.events(pf.run(m, **how, **x)) for x in ({"accuracy": 1e-10}, {"step": step, "error_bound": np.inf}))
    assert split["name"].values.tolist() == exact["name"].values.tolist() and split["name"].size > 0
    for name in ("time", "value", "jump"):
        close(split[name].values, exact[name].values, exactness, name)


def test_events_of_calls_that_have_no_room_for_their_parts_and_of_runs_that_continue(monkeypatch):
    how = {"duration": 1.4, "step": 1e-2, "backend": "interpreter"}
    whole = pf.events(pf.run(bounce(0.7), [1.0], **how))
    monkeypatch.setattr(time_loop, "ROOM", 2)
    np.testing.assert_array_equal(pf.events(pf.run(bounce(0.7), [1.0], **how)).time.values, whole.time.values)
    first = pf.run(bounce(0.7), [1.0], **how | {"duration": 0.6})
    rest = pf.run(bounce(0.7), start_from=first, **how | {"duration": 0.8})
    np.testing.assert_array_equal(np.r_[pf.events(first).time.values, pf.events(rest).time.values], whole.time.values)


def test_events_are_told_apart_from_results_without_them():
    batch = pf.run(bounce(0.5), [[1.0], [0.5]], duration=0.1, step=1e-2, backend="interpreter")
    with pytest.raises(pf.ModelError, match=r"run with accuracy=.*one by one"):
        pf.events(batch)
    m, _ = peg()
    for how in ({"accuracy": 1e-6}, {"step": 0.1}):
        assert not pf.events(pf.run(m, [0.1], duration=0.1, backend="interpreter", **how)).data_vars
    assert EPS * 64 < INSTANT


def tow(condition=lambda stretch: stretch >= 0) -> pf.Mechanism:
    """A tug that takes a raft along from when the rope between them is taut, as long as it stays so."""
    slides = [pf.joint(name, "prismatic", "world", name, axis=(1, 0, 0)) for name in ("tug", "raft")]
    stretch = lambda k: k.q[0] - k.q[1] - 1.5  # noqa: E731
    rope = pf.constraints.active_while(pf.holonomic("rope", stretch), lambda k: condition(stretch(k)))
    pull = pf.forces.generalised_force("pull", lambda k: ca.vertcat(7, -3 * k.v[1] * ca.fabs(k.v[1])))
    return pf.mechanism("tow", [pf.body("tug", 2.0), pf.body("raft", 5.0)], slides, constraints=[rope], forces=[pull])


def leash() -> pf.Mechanism:
    """A ball that falls until a leash of 2 m is taut, and would swing from then on."""
    x, z = pf.joint("x", "prismatic", "world", "frame", axis=(1, 0, 0)), pf.joint("z", "prismatic", "frame", "ball")
    reach = lambda k: ca.sumsqr(k.q)  # noqa: E731
    rope = pf.constraints.active_while(pf.holonomic("rope", lambda k: ca.sqrt(reach(k)) - 2), lambda k: reach(k) >= 4)
    return pf.mechanism("leash", [pf.body("frame", 1e-3), pf.body("ball", 1.0)], [x, z], constraints=[rope])


@pytest.mark.parametrize("accuracy", [1e-4, 2e-8, 1e-8, 5e-9, 3e-9, 1e-9])
@pytest.mark.parametrize(
    "machine, start",
    [
        (tow, {}),
        (lambda: tow(lambda stretch: stretch > 0), {}),
        (tow, {"q": [1.5, 0.0]}),
        (leash, {"q": [0.5, 0], "v": [1, 0]}),
    ],
    ids=["tow", "strictly", "from the edge", "leash"],
)
def test_a_condition_that_its_own_constraint_keeps_at_the_edge_is_named_soon(machine, start, accuracy):
    """Rounding turns it off and on, or would, in steps of any length, from when the rope is taut."""
    with pytest.warns(pf.RunWarning, match="without end.*the last is of 'rope'.*give it a memory"):
        r = pf.run(machine(), duration=3.0, accuracy=accuracy, backend="interpreter", **start)
    assert r.steps < 1000 and len(pf.events(r).time) < 100


def test_a_condition_that_rounding_does_not_move_is_kept_at_its_edge():
    """A ball whose height on a floor is 0 to the last bit."""
    slide = pf.joint("z", "prismatic", "world", "ball", axis=(0, 0, 1))
    floor = pf.constraints.active_while(pf.holonomic("floor", lambda k: k.q[0]), lambda k: k.q[0] <= 0)
    m = pf.mechanism("landing", [pf.body("ball", 1.0)], [slide], constraints=[floor])
    r = pf.run(m, [1.0], duration=3.0, accuracy=1e-8, backend="interpreter")
    assert int(r.status) == 0
    close(pf.events(r).time.values, [np.sqrt(2 / G)], INSTANT, "instant")


def test_a_constraint_that_acts_and_ceases_many_times_by_its_own_condition_is_not_named():
    """A block on springs that a brake grips inside a narrow band, 80 times in all, often so slowly that the band takes long."""
    slide = pf.joint("x", "prismatic", "world", "block", axis=(1, 0, 0), stiffness=100.0, damping=0.05)
    belt = pf.constraints.active_while(pf.nonholonomic("belt", lambda k: k.v[0] - 1.0), lambda k: ca.fabs(k.q[0]) < 0.02)
    m = pf.mechanism("pulled", [pf.body("block", 1.0)], [slide], constraints=[belt], gravity=(0, 0, 0))
    r = pf.run(m, [0.1], duration=12.0, accuracy=1e-6, backend="interpreter")
    assert int(r.status) == 0 and len(pf.events(r).time) > 60


@pytest.mark.parametrize("place, start", [(10.0, 1e-3), (1.0, 1.234e-3), (0.0, 1.001234)])
def test_many_events_within_a_short_part_of_a_run_do_not_end_it(place, start):
    """A block that slides at 1 m/s across fifty ridges of half a millimetre, where a brake that asks for this speed acts. Far
    from the origin rounding moves it in strides that are longer than what its instants are located to."""
    slide, ridges = pf.joint("x", "prismatic", "world", "block", axis=(1, 0, 0)), 2 * np.pi * 1e3
    acts = lambda k: ca.logic_and(k.q[0] > place, ca.sin(ridges * (k.q[0] - place)) > 0)  # noqa: E731
    brake = pf.constraints.active_while(pf.nonholonomic("brake", lambda k: k.v[0] - 1.0), acts)
    m = pf.mechanism("rough", [pf.body("block", 1.0)], [slide], constraints=[brake], gravity=(0, 0, 0))
    how = {"duration": start + 0.0502, "accuracy": 1e-6, "max_step": 2e-4, "backend": "interpreter"}
    r = pf.run(m, [place - start], [1.0], **how)
    assert int(r.status) == 0
    close(pf.events(r).time.values, start + 0.5e-3 * np.arange(101), 1e-11, "instants")


@pytest.mark.parametrize("place", [0.0, 10.0, 1000.0])
@pytest.mark.parametrize("kind", ["force", "mode"])
def test_events_far_from_the_origin_are_passed(kind, place):
    """A block crosses the same ridges under a force that each of them reverses, and with a mode that tells them apart. A
    kilometre away it moves in strides of 1e-13 m."""
    slide, on = pf.joint("x", "prismatic", "world", "block", axis=(1, 0, 0)), pf.Parameter("on", 0.0)
    height = lambda k: ca.sin(2 * np.pi * 1e3 * (k.q[0] - place))  # noqa: E731
    bumps = pf.forces.generalised_force("bumps", lambda k: 0.5 * ca.sign(height(k)))
    m = pf.mechanism("far", [pf.body("block", 1.0)], [slide], parameters=[on], gravity=(0, 0, 0))
    m, more = (m.with_(forces=[bumps]), {}) if kind == "force" else (m, {"on": lambda k: ca.if_else(height(k) > 0, 1, 0)})
    how = {"duration": 0.0202, "accuracy": 1e-6, "max_step": 2e-4, "backend": "interpreter", "switches": more}
    r = pf.run(m, [place - 0.00024], [1.0], **how)
    instants = pf.events(r).time.values
    assert int(r.status) == 0 and len(instants) == 40 and r.steps < 1000
    close(instants, 0.00024 + 0.5e-3 * np.arange(40), 1e-5 if kind == "force" else 1e-8, "instants")


def test_steps_with_events_that_stand_still_count_for_a_thousandth_of_the_time():
    def count(still: float, steps: float, elapsed: float, h: float) -> float:
        met = Ahead(*[ca.SX(0)] * (len(Ahead._fields) - 1), ca.SX(still))
        return float(ca.evalf(met.stood_still(ca.SX(steps), ca.SX(elapsed), ca.SX(h))))

    assert count(1, 5, 1.0, 1e-3) == 6 and count(0, 5, 9.0, 1.0) == 0 and count(0, 5, 0.0, 0.0) == 5
    close(count(0, 5, 1.0, 2 * SELDOM), 5 - 2 / (1 + 2 * SELDOM), SATISFIED, "steps that count")
