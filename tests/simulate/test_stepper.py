"""A machine in the caller's loop has the bits of `run`: with laws, sensors, switches, singular starts, and when saved and
restored."""

import copy
import itertools
import pickle

import casadi as ca
import numpy as np
import pytest

import pfaffian as pf
from pfaffian import control
from pfaffian.errors import ModelError, RunError
from tests.oracles.test_known_answers import n_four_bar
from tests.simulate.machines import four_bar
from tests.simulate.test_entrance import ALONG, FLAT

STEP, STEPS = 2e-3, 40
X, Y = (1, 0, 0), (0, 1, 0)


def cart(**more):
    """A cart with a rod on a hinge."""
    bodies = [pf.body("cart", 1.5), pf.body("rod", 1.0, (0, 0, -0.5), 0.1)]
    joints = [pf.joint("slide", "prismatic", "world", "cart", axis=X), pf.joint("hinge", "revolute", "cart", "rod", axis=Y)]
    return pf.mechanism("cart", bodies, joints, actuators=[pf.actuator("push", "slide"), pf.actuator("turn", "hinge")], **more)


def noisy():
    sensor = control.sensor(lambda K: ca.vertcat(K.q, K.v), 0.05, latency=1)
    return control.discrete(lambda s: control.Command(-3 * s["y"][:2] - s["y"][2:4]), 0.01, measure={"y": sensor})


def regulating():
    return control.computed_torque(control.joints("slide", "hinge"), control.set_point([0.1, 0.2]), stiffness=50, damping=10)


def sprung():
    """A cart on a spring whose stiffness is a parameter."""
    stiffness = pf.Parameter("stiffness", 10.0)
    bound = pf.joint("slide", "prismatic", "world", "cart", axis=X, stiffness=stiffness)
    return cart().with_(joints=[bound, *cart().joints[1:]], parameters=[stiffness])


SWITCHED = {"stiffness": lambda K: ca.if_else(K.q[0] > 0.052, 500.0, 10.0)}
CASES = {
    "free": (cart(), {}),
    "a law": (cart(), {"control": regulating()}),
    "a law with noise and latency": (cart(), {"control": noisy(), "seed": 5}),
    "a switch": (sprung(), {"switches": SWITCHED}),
    "Hamilton": (pf.reduction.hamiltonian(cart()), {}),
    "a loop": (four_bar(), {}),
}


def bits(a, b):
    assert np.array_equal(np.asarray(a, float).view(np.int64), np.asarray(b, float).view(np.int64))


@pytest.mark.parametrize("case, runs", itertools.product(CASES, (None, 5)))
def test_steps_have_the_bits_of_a_run(case, runs):
    """Step by step, for one run and for several at once, with inputs for each step and run."""
    m, how = CASES[case]
    mechanism = getattr(m, "mechanism", m)
    random = np.random.default_rng(3)
    q, v = {mechanism.q_names[0]: 0.4 if "loop" in case else 0.05}, {}
    if runs:
        q = {name: value + 0.01 * np.arange(runs) for name, value in q.items()}
    s = pf.stepper(m, step=STEP, runs=runs, record=["q", "v", "energy"], **how)
    s.reset(q, v)
    n = len(s.u_names)
    u = random.normal(size=(STEPS, runs, n) if runs else (STEPS, n))
    given = {"u": u, "u_step": STEP} if n else {}
    r = pf.run(m, q, v, duration=STEPS * STEP, step=STEP, record=["q", "v", "energy"], progress=False, **given, **how)
    for k in range(STEPS + 1):
        at = r.isel(time=k)
        for name in ("q", "v"):
            bits(getattr(s, name), at[name].values)
        if k % 13 == 0:
            seen = s.observe()
            bits(seen["energy"].ravel(), np.ravel(at["energy"].values))
            bits(seen["q"], at["q"].values)
        assert s.t == at["time"].values and not np.any(s.status)
        if k < STEPS:
            s.step(u[k] if n else None)


def test_several_steps_in_one_call_hold_their_inputs():
    m, u = cart(), np.array([1.0, -0.2])
    one, many = (pf.stepper(m, step=STEP) for _ in range(2))
    for s in (one, many):
        s.reset([0.1, 0.2])
    one.step({"push": 1.0, "turn": -0.2})
    for _ in range(9):
        one.step()
    many.step(u, steps=10)
    bits(one.q, many.q)
    bits(one.q, pf.run(m, [0.1, 0.2], u=u, duration=10 * STEP, step=STEP)["q"].values[-1])


def test_saved_and_restored():
    """Noise, latency and the law's memory continue unchanged."""
    m, law = cart(), noisy()
    s, other = (pf.stepper(m, step=STEP, control=law, seed=9, runs=3) for _ in range(2))
    s.reset([0.1, 0.2], t=1.5)
    s.step(steps=7)
    there = s.save()
    s.step(steps=30)
    q = s.q
    s.restore(there)
    assert s.t == 1.5 + 7 * STEP
    s.step(steps=30)
    bits(s.q, q)
    other.restore(there)
    other.step(steps=30)
    bits(other.q, q)
    with pytest.raises(ModelError, match="another mechanism, law"):
        pf.stepper(m, step=STEP, runs=3).restore(there)
    with pytest.raises(ModelError, match="number of runs"):
        pf.stepper(m, step=STEP, control=law, seed=9, runs=2).restore(there)


@pytest.mark.parametrize("at_once", [True, False])
def test_a_singular_start_takes_a_special_first_step(at_once):
    """One four-bar moves through its flat configuration at the start, another one starts elsewhere."""
    m = n_four_bar(2, False)
    q, v = np.array([FLAT, FLAT + 0.1 * FLAT]), np.array([ALONG, ALONG])
    r = pf.run(m, q, v, duration=20 * STEP, step=STEP)
    assert r["entrance"].values.tolist() == [1, 0]
    s = pf.stepper(m, step=STEP, runs=2)
    for _ in range(2):
        s.reset(q, v)
        for steps in [20] if at_once else [1] * 20:
            s.step(steps=steps)
        bits(s.q, r["q"].values[:, -1])


def test_parameters_of_each_run():
    m, k = sprung(), np.array([1.0, 100.0])
    s = pf.stepper(m, step=STEP, runs=2)
    s.reset({"slide": 0.1}, parameters={"stiffness": k})
    s.step(steps=30)
    bits(s.q, pf.run(m, {"slide": 0.1}, parameters={"stiffness": k}, duration=30 * STEP, step=STEP)["q"].values[:, -1])


def test_a_run_that_stops_leaves_the_others_alone():
    """One cart is faster than a state may be."""
    m = cart()
    s = pf.stepper(m, step=STEP, runs=2)
    s.reset(v=[[0.3, 0.0], [2e12, 0.0]])
    s.step(steps=5)
    assert s.status[0] == 0 and s.causes[s.status[1]] != s.causes[0]
    q = s.q
    s.step(steps=5)
    assert np.array_equal(s.q[1], q[1]) and not np.array_equal(s.q[0], q[0])


def test_signals_are_copies():
    s = pf.stepper(cart())
    s.reset([0.1, 0.2])
    s.q[:] = 7
    assert s.q[0] == 0.1


@pytest.mark.parametrize("backend", ["numpy", "interpreter", "c"])
def test_backends(backend):
    m = cart()
    s = pf.stepper(m, step=STEP, runs=3, backend=backend, threads=2)
    s.reset([0.1, 0.2])
    s.step(np.ones((3, 2)), steps=3)
    bits(s.q[1], pf.run(m, [0.1, 0.2], u=[1.0, 1.0], duration=3 * STEP, step=STEP)["q"].values[-1])


WRONG = {
    "runs of q": (lambda s: s.reset(np.zeros((3, 2))), "3 runs; the stepper has 2"),
    "runs of u": (lambda s: s.step(np.zeros((3, 2))), "3 runs; the stepper has 2"),
    "width of u": (lambda s: s.step(np.zeros(3)), r"\(3,\)"),
    "name of u": (lambda s: s.step({"pusk": 1.0}), "push"),
    "nan": (lambda s: s.step(np.array([[np.nan, 0], [0, 0]])), "finite"),
    "inf": (lambda s: s.step([np.inf, 0.0]), "finite"),
    "no steps": (lambda s: s.step(steps=0), "steps"),
    "backwards": (lambda s: s.step(steps=-2), "steps"),
    "parts of steps": (lambda s: s.step(steps=1.5), "steps"),
    "time": (lambda s: s.reset(t="now"), "t"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_arguments_change_nothing(case):
    wrong, words = WRONG[case]
    s = pf.stepper(cart(), runs=2)
    s.reset([0.1, 0.2])
    with pytest.raises(ModelError, match=words):
        wrong(s)
    s.step()
    fresh = pf.stepper(cart(), runs=2)
    fresh.reset([0.1, 0.2])
    fresh.step()
    bits(s.q, fresh.q)


def test_arguments_that_cannot_be_stepped_are_refused():
    m = cart()
    with pytest.raises(ModelError, match="runs"):
        pf.stepper(m, runs=0)
    with pytest.raises(ModelError, match="step"):
        pf.stepper(m, step=0.0)
    with pytest.raises(ModelError, match="control"):
        pf.stepper(m, control=3)
    with pytest.raises(ModelError, match="law in Python"):
        pf.stepper(m, control=control.python_law(lambda t, q, v: [0.0, 0.0], period=0.1))
    s = pf.stepper(four_bar())
    with pytest.raises(RunError):
        s.reset({name: 3.0 for name in four_bar().q_names})


@pytest.mark.parametrize("make", [copy.copy, copy.deepcopy])
@pytest.mark.parametrize("started", [True, False])
def test_a_copy_moves_on_its_own(make, started):
    """With the law's noise and memory; the original stays where it is, and both then move alike."""
    s = pf.stepper(cart(), step=STEP, control=noisy(), seed=9, runs=3, backend="interpreter")
    if started:
        s.reset([0.1, 0.2], t=1.5)
        s.step(steps=7)
    other = make(s)
    q, t = s.q, s.t
    other.step(steps=12)
    moved = other.q
    bits(s.q, q)
    assert s.t == t and other.t == t + 12 * STEP and (moved != q).any()
    s.step(steps=12)
    bits(s.q, moved)
    other.reset([0.3, 0.1])
    bits(s.q, moved)


def test_a_copy_takes_the_special_first_step_of_a_singular_start():
    m = n_four_bar(2, False)
    s = pf.stepper(m, step=STEP, runs=2, backend="interpreter")
    s.reset(np.array([FLAT, FLAT + 0.1 * FLAT]), np.array([ALONG, ALONG]))
    other = copy.copy(s)
    for x in (other, s):
        x.step(steps=5)
    bits(other.q, s.q)


def test_a_stepper_is_not_pickled():
    s = pf.stepper(sprung(), step=STEP, backend="numpy")
    for wrap in (lambda x: x, lambda x: {"machine": [x]}):
        with pytest.raises(ModelError, match=r"cannot be pickled.*save\(\) returns"):
            pickle.dumps(wrap(s))
    s.step(steps=3)
    other = pf.stepper(sprung(), step=STEP, backend="numpy")
    other.restore(pickle.loads(pickle.dumps(s.save())))
    bits(other.q, s.q)


def test_a_regular_state_put_into_a_singular_start_is_no_singular_start():
    """It may be saved and put elsewhere at once, and takes an ordinary first step."""
    m = n_four_bar(2, False)
    starts, s, alone = (pf.stepper(m, step=STEP, runs=n, backend="interpreter") for n in (1, 2, 1))
    starts.reset(FLAT + 0.1 * FLAT, ALONG)
    s.reset(np.array([FLAT, FLAT]), np.array([ALONG, ALONG]))
    with pytest.raises(ModelError, match="a singular start needs a special first step"):
        alone.put([0], s.save(), [1])
    s.put([1], starts.save(), [0])
    alone.put([0], s.save(), [1])
    for x in (s, alone):
        x.step(steps=3)
    bits(s.q[1], alone.q[0])


ODD = ("a word", 1j, True, None, object(), {"x": 1}, {1, 2}, [[1], [1, 2]], 2.5, np.zeros((2, 2)), np.zeros(0),
       np.array(["1"]), np.array([1j]), np.array([0.5, 0.5]), np.array([np.nan]))  # fmt: skip
"""Values of other kinds, shapes and ranges than any index or part of a saved state."""


@pytest.mark.parametrize("what", ODD, ids=lambda x: type(x).__name__)
def test_wrong_indices_and_saved_states_are_refused_by_name(what):
    """By an error of the library that names the method and the argument; and nothing moves."""
    s = pf.stepper(sprung(), step=STEP, runs=3, backend="numpy")
    s.reset([[0.1, 0.0], [0.2, 0.0], [0.3, 0.0]])
    saved, q = s.save(), s.q
    calls = {r"restore: saved is": lambda: s.restore(what), r"put: saved is": lambda: s.put([0], what, [0])}
    if not isinstance(what, np.ndarray) or what.size:  # an empty array names no machine
        calls |= {r"put: which": lambda: s.put(what, saved, [0]), r"put: rows": lambda: s.put([0], saved, what)}
    for words, call in calls.items():
        with pytest.raises(ModelError, match=words):
            call()
    for name in saved._fields:
        if name in ("start", "step") and isinstance(what, float):
            continue
        broken = saved._replace(**{name: what})
        for method, call in (("restore", lambda x=broken: s.restore(x)), ("put", lambda x=broken: s.put([0], x, [0]))):
            with pytest.raises(ModelError, match=rf"{method}: .*(saved\.{name}|another mechanism|number of runs)"):
                call()
    last = len(s.causes) - 1
    s.restore(saved._replace(status=saved.status + last))
    s.restore(saved)
    beyond = {"k": -1, "status": saved.status + last + 1, "stopped": saved.stopped - 7, "kinds": saved.kinds + 3}
    for name, value in beyond.items():
        with pytest.raises(ModelError, match=rf"restore: saved\.{name} is"):
            s.restore(saved._replace(**{name: value}))
    bits(s.q, q)


INDICES = {
    "beyond the machines": ([3], [0], r"put: which is \[3\].*from 0 to 2"),
    "beyond the runs": ([0], [2], r"put: rows is \[2\].*from 0 to 1"),
    "from behind": ([-1], [0], "put: which"),
    "a machine twice": ([1, 1], [0, 1], "names a machine more than once"),
    "more rows than machines": ([0], [0, 1], "which has 1 machines and rows 2"),
    "fewer rows than machines": ([0, 1], [0], "which has 2 machines and rows 1"),
    "a mask": (np.array([True, False, True]), [0, 1], "np.flatnonzero"),
    "one number": (0, 0, "put: which is 0"),
    "a table": ([[0]], [[0]], "put: which"),
}


@pytest.mark.parametrize("case", INDICES)
def test_wrong_machines_and_rows_are_refused(case):
    which, rows, words = INDICES[case]
    s, starts = (pf.stepper(sprung(), step=STEP, runs=n, backend="numpy") for n in (3, 2))
    with pytest.raises(ModelError, match=words):
        s.put(which, starts.save(), rows)
    s.put([], starts.save(), [])
    s.put((2, 0), starts.save(), np.array([1, 0], dtype=np.int8))


def test_a_saved_state_of_another_step_is_refused():
    """Its time would be read as another one."""
    s, other = (pf.stepper(sprung(), step=h, runs=2, backend="numpy") for h in (STEP, 2 * STEP))
    other.step(steps=4)
    for call in (lambda: s.restore(other.save()), lambda: s.put([0], other.save(), [0])):
        with pytest.raises(ModelError, match=r"is of steps of 0\.004 s, those here are of 0\.002 s"):
            call()


@pytest.mark.parametrize("steps", [True, 0, -1, 1.0, "1", None, np.array([1]), np.zeros(0), [1], np.inf])
def test_wrong_numbers_of_steps_are_refused(steps):
    s = pf.stepper(sprung(), step=STEP, backend="numpy")
    with pytest.raises(ModelError, match="steps must be a whole number"):
        s.step(steps=steps)
    assert s.t == 0
    s.step(steps=np.int64(2))
    assert s.t == 2 * STEP
