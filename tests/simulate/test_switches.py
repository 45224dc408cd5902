"""Parameters that a run changes, so that constraints, forces and laws switch on and off at certain states."""

import json

import casadi as ca
import numpy as np
import pytest

import pfaffian as pf
from pfaffian import control
from pfaffian.errors import RunWarning
from pfaffian.simulate.step.switches import as_switches
from pfaffian.states.system import as_system
from tests.refused import refusals
from tests.simulations import simulation
from tests.tolerance import EPS, close

G, STEP = 9.81, 1e-3
LANDED = pf.Parameter("landed", 0.0)


def on_floor(k):
    return LANDED > 0.5


def touches(point):
    return lambda k: ca.if_else(point(k) < 0, 1, LANDED)


DROP = pf.mechanism(
    "drop", [pf.body("c", 2.0)], [pf.joint("x", "prismatic", "world", "c", axis=(0, 0, 1))], parameters=[LANDED],
    constraints=[pf.constraints.active_while(pf.holonomic("floor", lambda k: k.q[0]), on_floor)],
)  # fmt: skip
LATCH = {"landed": touches(lambda k: k.q[0])}


def tip(k):
    return k.position("b1", (1, 0, 0))


def arm():
    bodies = [pf.body(f"b{i}", 1.0 + i, (0.4, 0, 0.1), 0.1) for i in range(2)]
    joints = [pf.joint(f"j{i}", "revolute", "world" if i == 0 else "b0", f"b{i}", axis=(0, 1, 0), placement=(i, 0, 1 - i))
              for i in range(2)]  # fmt: skip
    floor = pf.constraints.active_while(pf.holonomic("floor", lambda k: tip(k)[2]), on_floor)
    return pf.mechanism("arm", bodies, joints, constraints=[floor], parameters=[LANDED])


def run(m=DROP, q=1.0, v=0.0, switches=LATCH, duration=0.6, **how):
    q, v = (np.array(x, ndmin=1) for x in (q, v))
    return pf.run(m, q, v, **{"duration": duration, "step": STEP, "switches": switches, "backend": "interpreter"} | how)


def test_a_falling_body_rests_from_the_instant_of_contact():
    r = run()
    at = int(np.argmax(r.landed.values > 0.5))
    assert at == int(np.sqrt(2 / G) / STEP) + 1 and (r.landed.values[at:] == 1).all()
    t = r.time.values[:at]
    np.testing.assert_allclose(r.q.values[:at, 0], 1 - G / 2 * t**2, rtol=0, atol=64 * EPS)
    assert (r.q.values[at:] == 0).all() and (r.v.values[at:] == 0).all()
    np.testing.assert_allclose(r.reaction.values[at:, 0], 2 * G, rtol=1e-12)
    assert (r.reaction.values[:at] == 0).all() and json.loads(r.attrs["switches"]) == ["landed"]


def test_velocities_jump_as_in_a_plastic_impact():
    """v+ = v- - M^-1 A^T (A M^-1 A^T)^-1 A v-, the smallest change in the metric of M."""
    m, switches = arm(), {"landed": touches(lambda k: tip(k)[2])}
    r = run(m, [0.2, -0.3], [0.0, 0.0], switches, duration=0.8)
    exact = run(m, [0.2, -0.3], [0.0, 0.0], switches, duration=0.8, accuracy=1e-10, step=None)
    found = pf.events(exact)
    at = int(np.argmax(r.landed.values > 0.5))
    assert at == int(float(found.time[0]) / STEP) + 1
    before = run(m, [0.2, -0.3], [0.0, 0.0], None, duration=None, accuracy=1e-10, step=None, times=[0.0, float(found.time[0])])
    parts = pf.compile_terms(m, {"M": lambda T: T.M, "A": lambda T: ca.jacobian(tip(T.kinematics)[2], T.q)}, backend="numpy")
    here = parts(before.q.values[-1], before.v.values[-1])
    v, M, A = before.v.values[-1], here["M"], here["A"].reshape(1, 2)
    back = np.linalg.solve(M, A.T)
    jump = -(back @ np.linalg.solve(A @ back, A @ v[:, None]))[:, 0]
    assert np.abs(jump).max() > 0.5
    close(found.jump.values[0], jump, 1e-8, "jump of the velocities")
    assert np.abs(r.phi.values[at:]).max() < 1e-12 and np.abs(r.velocity_violation.values[at:]).max() < 1e-12


def swinging(end):
    """The switches of a relay at +-0.1 with the accelerations 2 and -2: (instant, position, speed, next force), in order."""
    t, x, v, force, found = 0.0, 0.0, 0.0, 1.0, []
    while True:
        edge = 0.1 * force
        wait = (-v * force + np.sqrt(v**2 + 4 * force * (edge - x))) / 2
        if t + wait > end:
            return found
        t, x, v, force = t + wait, edge, v + 2 * force * wait, -force
        found.append((t, x, v, force))


INTEGRATING = control.Control(
    lambda T, z, w, y: control.Command(ca.vertcat(-z[0], z[1]), ca.vertcat(T.q[0], -z[0])), (0.3, 0.7)
)


@pytest.mark.parametrize("law", [None, INTEGRATING, control.discrete(lambda s: control.Command(s.u), 0.002)])
def test_a_switch_that_never_changes_has_no_effect(law):
    m = pf.actuate_all(arm())
    same = {"duration": 0.05, "control": law, "outputs": {"tip": tip}}
    for start in (0.0, 1.0):
        settings = same | {"parameters": {"landed": start}}
        q, v = pf.assemble(m, np.array([0.9, 1.2]), parameters={"landed": 1.0})[:2]
        plain, switched = (run(m, q, v, s, **settings) for s in (None, {"landed": lambda k: LANDED}))
        for name in ("q", "v", "tip", "energy", "multiplier"):
            np.testing.assert_array_equal(plain[name].values, switched[name].values)


@pytest.mark.parametrize("how", [{"backend": "c"}, {"backend": "c", "threads": 2}, {"backend": "numpy"}])
def test_each_run_of_a_batch_switches_alone_with_the_same_bits(how, monkeypatch):
    heights, start = np.linspace(0.01, 0.2, 19)[:, None], np.where(np.arange(19) % 5 == 0, 1.0, 0.0)
    given = {"q": heights, "v": np.zeros((19, 1)), "duration": 0.15, "parameters": {"landed": start}, "record": "all"}
    batch = run(correct_start=False, **given | how, scheme=pf.Scheme(violation_limit=1.0))
    monkeypatch.setattr("pfaffian.simulate.run.roll.FIRST_LANE_STEPS", 1)
    monkeypatch.setattr("pfaffian.simulate.run.roll.GROWTH", 1.0)
    for i in (0, 1, 7, 18):
        one = run(q=heights[i], parameters={"landed": start[i]}, duration=0.15, correct_start=False,
                  scheme=pf.Scheme(violation_limit=1.0))  # fmt: skip
        for name in ("q", "v", "landed", "reaction"):
            np.testing.assert_array_equal(batch[name].values[i], one[name].values)
    assert (batch.landed.values[start == 1] == 1).all() and 0 < batch.landed.values[start == 0].mean() < 1


def test_a_relay_with_hysteresis_switches_a_law_back_and_forth():
    """u = -push above and +push below, switching at +-0.1; between two switches the motion is a parabola."""
    side = pf.Parameter("side", 1.0)
    m = pf.mechanism("cart", [pf.body("c", 1.0)], [pf.joint("x", "prismatic", "world", "c", axis=(1, 0, 0))],
                     actuators=[pf.actuator("motor", "x")], parameters=[side], gravity=(0, 0, 0))  # fmt: skip

    def relay(k):
        return ca.if_else(k.q[0] > 0.1, -1, ca.if_else(k.q[0] < -0.1, 1, side))

    law = control.Control(lambda T, z, w, y: control.Command(2 * side.symbol))
    late = control.discrete(lambda s: control.Command(2 * side.symbol), 0.001)
    r, sampled = (run(m, 0.0, 0.0, {"side": relay}, duration=3.0, control=c) for c in (law, late))
    switched, t = swinging(3.0), r.time.values
    s = (-1.0) ** np.searchsorted([at for at, *_ in switched], t)
    assert (r["side"].values == s).all() and len(switched) == 3
    x, v = t**2, 2 * t
    for at, position, speed, force in switched:
        x = np.where(t > at, position + speed * (t - at) + force * (t - at) ** 2, x)
        v = np.where(t > at, speed + 2 * force * (t - at), v)
    close(r.q.values[:, 0], x, 1e-11, "position between exact switches")
    close(r.v.values[:, 0], v, 1e-11, "speed")
    assert 0 < np.abs(sampled.q.values - r.q.values).max() < 10 * STEP, "a law in discrete time follows at its next sample"
    assert r["side"].attrs["units"] == "1"


def test_a_stop_is_explained_in_the_mode_in_which_it_occurred():
    """Only after the switch the task no longer depends on its second coordinate."""
    sight = pf.Parameter("sight", 1.0)
    m = pf.actuate_all(arm()).with_(parameters=(LANDED, sight))
    task = lambda k: ca.vertcat(k.q[0], sight * k.q[1])  # noqa: E731
    law = control.computed_torque(task, control.set_point([0.1, 0.1]), stiffness=1, damping=1)
    with pytest.warns(RunWarning, match="singular"):
        r = run(m, [0.1, 0.2], [0, 0], {"sight": lambda k: ca.if_else(k.t > 0.0095, 0, sight)}, duration=0.1, control=law)
    assert float(r.stopped) == pytest.approx(0.0095) and "task coordinate 1 the least motion, 0," in str(r.reason.values)


def test_a_mode_of_the_masses_counts_in_another_state():
    """Momenta are M(mode) v, so the v that a law gets, in equations or in Python, follows the mode."""
    load = pf.Parameter("load", 1.0)
    m = pf.mechanism("cart", [pf.body("c", load)], [pf.joint("x", "prismatic", "world", "c", axis=(1, 0, 0))],
                     actuators=[pf.actuator("motor", "x")], parameters=[load], gravity=(0, 0, 0))  # fmt: skip
    grows = {"load": lambda k: ca.if_else(k.t > 0.0185, 3, load)}
    equations = control.discrete(lambda s: control.Command(s.terms.v), 0.01)
    for law in (equations, control.python_law(lambda t, q, v: v, 0.01)):
        r = run(pf.reduction.hamiltonian(m), 0.0, 1.5, grows, duration=0.03, control=law)
        at, p = np.arange(0, 30, 10), r.momentum.values[:-1:10, 0]
        np.testing.assert_allclose(r.u.values[at, 0], p / [1, 1, 3], rtol=1e-12)


def test_the_next_value_is_part_of_the_kernels_key():
    def key(f, name="landed"):
        return simulation(as_system(DROP), pf.Scheme(), switches=as_switches(DROP, {name: f}).next).key

    assert key(LATCH["landed"]) == key(touches(lambda k: k.q[0])) != key(touches(lambda k: k.q[0] + 1))
    assert key(LATCH["landed"]) != simulation(as_system(DROP), pf.Scheme()).key


WRONG = {
    "no dict": (lambda: run(switches=[1]), "switches: {name of a parameter"),
    "unknown": (lambda: run(switches={"laned": on_floor}), "no parameter 'laned'; did you mean 'landed'"),
    "a number": (lambda: run(switches={"landed": 1.0}), "'landed': a function of the kinematics"),
    "two numbers": (lambda: run(switches={"landed": lambda k: [1, 2]}), "switch 'landed': one number is needed"),
    "nothing": (lambda: run(switches={"landed": lambda k: None}), "switch 'landed'.*return"),
    "a name that is taken": (
        lambda: run(control=control.discrete(lambda s: control.Command(s.u, signals={"landed": 1}), 0.01)),
        "switch 'landed': the law has a signal of that name",
    ),
}


test_wrong_switches_are_named = refusals(WRONG)


def test_a_file_contains_switched_and_sampled_signals(tmp_path):
    law = control.discrete(lambda s: control.Command(s.u, d_next={"n": s["n"] + 1}), 0.01, state={"n": 0},
                           measure={"speed": control.sensor(lambda k: k.v, 0.1)})  # fmt: skip
    r = run(control=law, seed=7)
    pf.results.write_netcdf(r, tmp_path / "run.nc")
    back = pf.results.read_netcdf(tmp_path / "run.nc")
    assert back.attrs["seed"] == 7 and json.loads(back.attrs["sampling"])[0]["name"] == "speed"
    for name in ("landed", "speed", "n"):
        np.testing.assert_array_equal(back[name].values, r[name].values)
