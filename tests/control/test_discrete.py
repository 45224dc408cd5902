"""Laws in discrete time: against the exact map of a linear system by the matrix exponential, and bit by bit."""

import json
import re
import warnings

import casadi as ca
import numpy as np
import pytest
from scipy.linalg import expm

import pfaffian as pf
from pfaffian import control
from pfaffian.control import Command
from pfaffian.errors import ModelError, RunWarning
from pfaffian.simulate.record.result import causes
from pfaffian.simulate.step.integrators import INTEGRATORS
from tests.by_scipy import run_adaptive
from tests.tolerance import EPS

EXACT = 1e-12
"""Rounding of some thousand operations. The error of RK4 with steps of 1 ms at a few rad/s is below 1e-14 per second."""

STEP = 1e-3
NOTHING = ca.SX(0, 1)


def chain(n=3, driven=True):
    """n carts of 1 kg in a row, springs of 2 N/m between them and to the wall, slightly damped."""
    bodies = [pf.body(f"b{i}", 1.0) for i in range(n)]
    rail = [pf.joint(f"x{i}", "prismatic", "world", f"b{i}", axis=(1, 0, 0), placement=(i, 0, 0)) for i in range(n)]
    pulls = pf.forces.potential("springs", lambda k: ca.sumsqr(ca.vertcat(k.q[0], k.q[1:] - k.q[:-1])))
    motors = [pf.actuator("first", "x0"), pf.actuator("last", f"x{n - 1}")] if driven else []
    return pf.mechanism("chain", bodies, rail, forces=[pulls], actuators=motors, gravity=(0, 0, 0))


M = chain()
K = 2 * (np.diag([2, 2, 1.0]) - np.eye(3, k=1) - np.eye(3, k=-1))
A = np.block([[np.zeros((3, 3)), np.eye(3)], [-K, np.zeros((3, 3))]])
B = np.vstack([np.zeros((3, 2)), [[1, 0], [0, 0], [0, 1]]])
GAIN = np.array([[1.5, 0.2, 0.0, 1.0, 0.1, 0.0], [0.0, 0.3, 1.1, 0.0, 0.2, 0.9]])
X0 = np.array([0.3, -0.2, 0.5, 0.0, 0.4, -0.1])


def hold(T):
    """F and G of x(t + T) = F x + G u for a constant u."""
    whole = expm(T * np.block([[A, B], [np.zeros((2, 8))]]))
    return whole[:6, :6], whole[:6, 6:]


def state(s):
    return ca.vertcat(s.terms.q, s.terms.v)


def feedback(s):
    return Command(-ca.DM(GAIN) @ state(s))


def run(law, seconds=2.0, m=M, x=X0, **how):
    return pf.run(m, x[..., :3], x[..., 3:], duration=seconds, step=STEP, control=law, **{"backend": "numpy"} | how)


def states(r):
    return np.concatenate([r.q.values, r.v.values], axis=-1)


def test_a_law_with_a_single_input_is_held():
    """With one motor, no signal and no state the law holds a single number, which CasADi would turn into a row."""
    m = pf.mechanism("one", [pf.body("b", 1.0)], [pf.joint("x", "prismatic", "world", "b")], gravity=(0, 0, 0),
                     actuators=[pf.actuator("motor", "x")])  # fmt: skip
    r = pf.run(m, [0.3], [0.0], duration=0.02, step=STEP, control=control.discrete(lambda s: Command(-5 * s.terms.q), 0.01),
               backend="interpreter")  # fmt: skip
    assert (r.u.values[:10] == -1.5).all() and -1.5 < r.u.values[10, 0] < -1.49


def test_a_law_uses_the_parameter_of_its_own_mechanism():
    """A mechanism that is built again equals the first but has another Parameter, and the law refers to that one."""
    for _ in range(2):
        gain = pf.Parameter("gain", 2.0)
        m = pf.mechanism("own", [pf.body("b", 1.0)], [pf.joint("x", "prismatic", "world", "b")], gravity=(0, 0, 0),
                         actuators=[pf.actuator("motor", "x")], parameters=[gain])  # fmt: skip
        for law in (
            control.Control(lambda T, z, w, y, gain=gain: Command(-gain * T.q)),
            control.discrete(lambda s, gain=gain: Command(-gain * s.terms.q), 0.01),
        ):
            r = pf.run(m, [0.3], [0.0], duration=0.01, step=STEP, control=law, backend="interpreter")
            assert r.u.values[0, 0] == -0.6


@pytest.mark.parametrize("latency", [0, 1, 2, 3])
@pytest.mark.parametrize("phase", [0.0, 0.004])
def test_state_feedback_is_the_exact_discrete_map(latency, phase):
    T, start = 0.02, np.array([0.3, -0.1])
    r = run(control.discrete(feedback, T, latency=latency, phase=phase, start=start), every=4)
    F, G = hold(T)
    before, force = hold(phase)
    x, waiting = before @ X0 + force @ start, [start] * latency
    found = states(r)[round(phase / 0.004) :: 5]
    for k in range(98):
        np.testing.assert_allclose(found[k], x, rtol=0, atol=EXACT)
        waiting.append(-GAIN @ x)
        x = F @ x + G @ waiting[k]
    assert json.loads(r.attrs["sampling"]) == [{"name": "law", "period": T, "phase": phase, "latency": latency, "hold": "zero"}]


@pytest.mark.parametrize("latency", [0, 2])
def test_a_hold_of_first_order_is_the_exact_map_of_a_ramp(latency):
    T, start = 0.02, np.array([0.3, -0.1])
    r = run(control.discrete(feedback, T, latency=latency, start=start, hold="first"), seconds=1.0, every=4)
    ramp = expm(T * np.block([[A, B, np.zeros((6, 2))], [np.zeros((2, 8)), np.eye(2)], [np.zeros((2, 10))]]))
    F, G, S = ramp[:6, :6], ramp[:6, 6:8], ramp[:6, 8:]
    x, waiting = X0, [start] * (latency + 1)
    for k in range(50):
        np.testing.assert_allclose(states(r)[5 * k], x, rtol=0, atol=EXACT)
        waiting.append(-GAIN @ x)
        before, u = waiting[k], waiting[k + 1]
        np.testing.assert_allclose(r.u.values[5 * k + 2], u + 0.4 * (u - before), rtol=0, atol=EXACT)
        x = F @ x + G @ u + S @ (u - before) / T


def test_many_periods_are_a_power_of_the_closed_loop_map():
    """Not only step by step: the state after 100 periods is (F - G K)^100 times the initial one."""
    F, G = hold(0.02)
    r = run(control.discrete(feedback, 0.02), every=2000)
    np.testing.assert_allclose(states(r)[-1], np.linalg.matrix_power(F - G @ GAIN, 100) @ X0, rtol=0, atol=EXACT)


@pytest.mark.parametrize(("fast", "slow"), [(0, 0), (1, 0), (0, 2), (2, 1)])
def test_two_rates(fast, slow):
    """An outer loop integrates the error and sets the goal of an inner loop that runs five times as fast."""
    aim = np.array([0.1, 0.2])

    def outer(s):
        desired = ca.vertcat(s["aim0"], s["aim1"])
        goal = s["sum"] + 0.5 * desired
        return Command(NOTHING, signals={"goal": goal}, d_next={"sum": s["sum"] + 0.02 * (desired - s.terms.q[[0, 2]])})

    def inner(s):
        return Command(-ca.DM(GAIN) @ state(s) + 3 * s["goal"])

    law = control.several(
        outer=control.discrete(outer, 0.02, latency=slow, state={"sum": [0.0, 0.05]}, inputs=("aim0", "aim1")),
        inner=control.discrete(inner, 0.004, latency=fast),
    )
    r = run(law, u={"aim0": aim[0], "aim1": aim[1]}, every=4)
    F, G = hold(0.004)
    x, total, goals, forces = X0, np.array([0.0, 0.05]), [np.zeros(2)] * slow, [np.zeros(2)] * fast
    for k in range(500):
        np.testing.assert_allclose(states(r)[k], x, rtol=0, atol=EXACT)
        if k % 5 == 0:
            goals.append(total + 0.5 * aim)
            total = total + 0.02 * (aim - x[[0, 2]])
        np.testing.assert_allclose(r.goal.values[k], goals[k // 5], rtol=0, atol=EXACT)
        np.testing.assert_allclose(r["sum"].values[k], total, rtol=0, atol=EXACT)
        forces.append(-GAIN @ x + 3 * goals[k // 5])
        np.testing.assert_allclose(r.u.values[k], forces[k], rtol=0, atol=10 * EXACT)
        x = F @ x + G @ forces[k]


def test_a_library_law_takes_its_goal_from_an_outer_law():
    """The inner law runs in discrete or in continuous time; the goal is constant between samples."""
    aims = ("x0", "x1", "x2")
    names = tuple(f"{n}{mark}" for mark in ("", "'", "''") for n in aims)

    def outer(s):
        return Command(NOTHING, signals={n: s["far"] + s.terms.t if n == "x1" else 0.0 for n in names})

    m = pf.actuate_all(chain(driven=False))
    inner = control.computed_torque(control.joints("x0", "x1", "x2"), control.sampled(aims), stiffness=4, damping=4)
    first = control.discrete(outer, 0.02, inputs=("far",), gives=names)
    for law in (control.several(outer=first, inner=control.discrete(inner, STEP)), control.several(outer=first, inner=inner)):
        assert law.w_names == ("far",)
        r = run(law, m=m, u={"far": 0.3}, seconds=0.1)
        goals = 0.3 + np.floor(np.arange(101) / 20 + 1e-9) * 0.02
        np.testing.assert_allclose(r.task_error.values[:, 1], goals - r.q.values[:, 1], rtol=0, atol=EXACT)
    # In continuous time the error obeys its own equation exactly while the goal is constant.
    e = np.array([r.task_error.values[0, 1], -X0[4]])
    np.testing.assert_allclose(
        (expm(0.02 * np.array([[0, 1], [-4, -4]])) @ e)[0] + 0.02, r.task_error.values[20, 1], rtol=0, atol=1e-11
    )


def test_a_law_passes_on_vectors_whole_or_by_their_entries():
    """Goals give the same motion as three scalar signals, as a vector that a caller's law reads, and as entries of a vector."""
    m, aims, marks = pf.actuate_all(chain(driven=False)), ("x0", "x1", "x2"), ("", "'", "''")
    goal = lambda s: ca.vertcat(s["far"], 2 * s["far"] + s.terms.t, 0)  # noqa: E731
    single = [f"{n}{mark}" for mark in marks for n in aims]

    def apart(s):
        return Command(NOTHING, signals=dict(zip(single, [*ca.vertsplit(goal(s)), *[ca.SX(0)] * 6], strict=True)))

    def whole(s):
        return Command(NOTHING, signals={"goal": goal(s), "rest": ca.SX.zeros(6, 1)})

    def reads_vector(s):
        return Command(4 * (s["goal"] - s.terms.q) - 4 * s.terms.v)

    u, seconds = {"far": 0.3}, 0.1
    one = control.discrete(apart, 0.02, inputs=("far",), gives=single)
    all_ = control.discrete(whole, 0.02, inputs=("far",), gives=("goal", "rest"))
    entries = [f"goal[{i}]" for i in range(3)] + [f"rest[{i}]" for i in range(6)]

    def inner(names):
        return control.Control(lambda T, z, w, y: Command(4 * (w[:3] - T.q) - 4 * T.v), w_names=tuple(names[:3]))

    reading = control.discrete(reads_vector, STEP, inputs=("goal",))
    expected = run(control.several(outer=one, inner=control.discrete(inner(single), STEP)), m=m, u=u, seconds=seconds)
    for law in (reading, control.discrete(inner(entries), STEP)):
        both = control.several(outer=all_, inner=law)
        assert both.w_names == ("far",)
        found = run(both, m=m, u=u, seconds=seconds)
        np.testing.assert_array_equal(found.q.values, expected.q.values)
        np.testing.assert_array_equal(found.goal.values[:, 1], expected[aims[1]].values)
    flowing = [control.several(outer=o, inner=inner(n)) for o, n in ((one, single), (all_, entries))]
    a, b = (run(law, m=m, u=u, seconds=seconds).q.values for law in flowing)
    np.testing.assert_array_equal(a, b)
    assert np.abs(a - expected.q.values).max() > 1e-6, "the motion differs in continuous time"
    for law in (control.discrete(inner(["goal", "goal[1]", "goal[2]"]), STEP), inner(["goal", "goal[1]", "goal[2]"])):
        with pytest.raises(ModelError, match=r"'goal': one number is needed, got 3; take goal\[0\]"):
            run(control.several(outer=all_, inner=law), m=m, u=u, seconds=seconds)


def test_integrals_of_a_library_law_advance_by_one_period():
    law = control.Control(
        lambda T, z, w, y: Command(ca.vertcat(-z[0] - T.v[0], w[0]), ca.vertcat(T.q[0], 0), signals={"sum": z}),
        z=(0.5, 1.0),
        w_names=("pull",),
    )
    r = run(control.discrete(law, 0.01), u={"pull": 0.2}, seconds=0.1, every=10)
    z = 0.5 + np.concatenate([[0], np.cumsum(0.01 * r.q.values[:-1, 0])])
    np.testing.assert_allclose(r["sum"].values[:, 0], z, rtol=0, atol=4 * EPS)
    np.testing.assert_allclose(r.z.values[:-1, 0], z[1:], rtol=0, atol=4 * EPS)  # the record holds the next value already
    assert (r.u.values[:, 1] == 0.2).all()


def test_a_law_reads_the_inputs_in_force_and_their_reaction():
    """Reaction of a blocked cart: the inputs held until then push against the block."""
    m = M.with_(constraints=(pf.holonomic("block", lambda k: k.q[2]),))
    given = control.discrete(
        lambda s: Command(ca.vertcat(0, s.terms.t * 10), signals={"seen": s.reaction[2], "was": s.u[1]}), 0.01
    )
    r = run(given, m=m, x=np.array([0.1, 0.1, 0, 0, 0, 0.0]), seconds=0.05, every=10)
    np.testing.assert_allclose(r.was.values, np.concatenate([[0], r.u.values[:-1, 1]]), rtol=0, atol=0)
    np.testing.assert_allclose(r.reaction.values[:, 2] + r.u.values[:, 1], r.seen.values + r.was.values, rtol=0, atol=1e-12)


def test_a_sampled_law_measures_the_reaction_to_a_push_from_outside():
    """A blocked cart: the block bears the spring, the input held until then and the wrench on the body together. This also
    holds for a library law, whose own input comes before the wrench's."""
    wrench = pf.wrench("push", "b2")
    m = M.with_(constraints=(pf.holonomic("block", lambda k: k.q[2]),), forces=(*M.forces, wrench))
    x, push = np.array([0.1, 0.1, 0, 0, 0, 0.0]), {"push.fx": 7.0, "push.fy": 3.0, "bias": 0.5}
    none = ca.SX.zeros(6)  # wrenches from outside are not a law's to use

    def callers(s):
        return Command(ca.vertcat(0, s["bias"], none), signals={"seen": s.reaction[2]})

    def flowing(T, z, w, y):
        return Command(ca.vertcat(0, w, none), signals={"seen": y})

    library = control.Control(flowing, w_names=("bias",), measured=lambda T, F: F[2])
    for law in (control.discrete(callers, 0.01, inputs=("bias",)), control.discrete(library, 0.01)):
        r = run(law, m=m, x=x, seconds=0.02, every=10, u=push)
        held = np.array([0, 0.5, 0.5])
        np.testing.assert_allclose(r.seen.values, -(2 * (r.q.values[:, 1] - r.q.values[:, 2]) + held + 7), rtol=0, atol=1e-12)


# -- sensors ------------------------------------------------------------------------------------------------------------


def noisy(**more):
    """A law that holds the measurements of two sensors, one of them late."""
    measure = {
        "place": control.sensor(lambda k: k.q, 0.1, unit="m"),
        "speed": control.sensor(lambda k: k.v[0], 0.2, period=0.002, latency=2),
    }
    return control.discrete(lambda s: Command(ca.vertcat(-s["place"][0], -s["speed"])), 0.004, measure=measure, **more)


def test_a_sensor_is_sampled_late_and_noisy():
    r = run(noisy(), seconds=0.04, seed=3)
    held, late = np.arange(41) // 4 * 4, np.maximum(np.arange(41) // 2 * 2 - 4, 0)
    off = r.place.values - r.q.values[held]
    assert (off[:-1].reshape(10, 4, 3) == off[:-1].reshape(10, 4, 3)[:, :1]).all()
    assert 0.01 < np.abs(off).max() < 0.4
    slow = r.speed.values[4:] - r.v.values[late[4:], 0]
    assert len(np.unique(slow)) == 19 and 0.02 < np.abs(slow).max() < 0.8
    assert (r.speed.values[:4] == 0).all(), "no measurement has arrived yet"
    np.testing.assert_array_equal(r.u.values[:-1:4, 0], -r.place.values[:-1:4, 0])
    assert r.place.attrs["units"] == "m" and r.attrs["seed"] == 3
    exact = run(control.discrete(lambda s: Command(-s["at"][:2]), 0.004, measure={"at": control.sensor(lambda k: k.q)}))
    np.testing.assert_array_equal(exact["at"].values[::4], exact.q.values[::4])
    np.testing.assert_array_equal(exact.u.values[::4], -exact.q.values[::4, :2])


def test_a_sensor_samples_at_its_own_instants():
    """A sensor samples with its law, at a period of its own from the start of the run, or shifted by its phase."""
    measure = {name: control.sensor(lambda k: k.t, **when) for name, when in {
        "with its law": {}, "later": {"phase": 0.003}, "slower": {"period": 0.008}, "both": {"period": 0.008, "phase": 0.005},
    }.items()}  # fmt: skip
    r = run(control.discrete(lambda s: Command(ca.vertcat(0, 0)), 0.004, phase=0.001, measure=measure), seconds=0.02)
    k = np.arange(21)
    for name, period, phase in (("with its law", 4, 1), ("later", 4, 3), ("slower", 8, 0), ("both", 8, 5)):
        last = np.where(k < phase, 0, (k - phase) // period * period + phase)
        np.testing.assert_allclose(r[name].values, STEP * last, rtol=0, atol=1e-15, err_msg=name)
    schedule = {x["name"]: (x["period"], x["phase"]) for x in json.loads(r.attrs["sampling"])}
    assert schedule == {"with its law": (0.004, 0.001), "later": (0.004, 0.003), "slower": (0.008, 0), "both": (0.008, 0.005),
                    "law": (0.004, 0.001)}  # fmt: skip


def test_a_motion_sensor_measures_under_the_inputs_held_until_then():
    feels = control.sensor(lambda terms, motion: motion.v_dot, moving=True)
    r = run(control.discrete(feedback, 0.02, measure={"shaken": feels}), seconds=0.2, every=4)
    before = np.vstack([np.zeros(2), r.u.values[4:-1:5]])
    np.testing.assert_allclose(r.shaken.values[::5], r.q.values[::5] @ -K + before @ B[3:].T, rtol=0, atol=EXACT)
    assert np.abs(np.diff(r.shaken.values[::5], axis=0)).min() > 0


def test_a_motion_sensor_measures_every_force():
    """A law in continuous time, one in discrete time and a wrench from outside, against Newton's law for the carts."""
    push = pf.wrench("gust", "b1", axes="WORLD")
    flow = control.Control(lambda T, z, w, y: Command(ca.vertcat(-3 * T.q[0] - z, ca.SX(7, 1)), z_dot=T.q[0]), z=(0.4,))
    slow = control.discrete(
        lambda s: Command(ca.vertcat(0, -s.terms.q[2], ca.SX(6, 1)), signals={"seen": s.reaction[1]}),
        0.02,
        measure={"felt": control.sensor(lambda terms, motion: motion.v_dot, moving=True)},
    )
    wall = pf.holonomic("wall", lambda k: k.q[1] - 0.1)
    m = M.with_(forces=(*M.forces, push), constraints=(wall,))
    law = control.several(flow=flow, slow=slow)
    x = np.array([0.3, 0.1, 0.5, 0.0, 0.0, -0.1])
    r = run(law, seconds=0.1, m=m, x=x, u={"gust.fx": 0.7}, outputs={"a": pf.of_motion(lambda T, motion: motion.v_dot)})
    q, v = r.q.values[::20], r.v.values[::20]
    z = 0.4 + np.concatenate([[0], np.cumsum((r.q.values[1:, 0] + r.q.values[:-1, 0]) * STEP / 2)])[::20]
    held = np.concatenate([[0], -q[:-1, 2]])
    free = q @ -K + np.column_stack([-3 * q[:, 0] - z, np.full(len(q), 0.7), held])
    np.testing.assert_allclose(r.felt.values[::20][:, [0, 2]], free[:, [0, 2]], rtol=0, atol=1e-6)  # z by the trapezoidal rule
    np.testing.assert_allclose(r.felt.values[::20, 1], 0 * v[:, 1], rtol=0, atol=EXACT)
    np.testing.assert_allclose(r.seen.values[::20], -free[:, 1], rtol=0, atol=1e-9)
    unheld = r.a.values[::20] - np.column_stack([0 * held, 0 * held, -q[:, 2] - held])  # the record follows the law's sample
    np.testing.assert_allclose(r.felt.values[::20], unheld, rtol=0, atol=EXACT)


@pytest.fixture(scope="module")
def many():
    return run(noisy(), seconds=0.012, x=np.tile(X0, (4097, 1)), seed=11, backend="c", threads=1)


@pytest.mark.parametrize(("runs", "threads"), [(1, 1), (2, 1), (7, 2), (8, 1), (9, 2), (64, 2), (1025, 1), (4097, 2)])
def test_noise_has_the_same_bits_in_any_batch(many, runs, threads):
    r = run(noisy(), seconds=0.012, x=np.tile(X0, (runs, 1)), seed=11, backend="c", threads=threads, squeeze=False)
    for name in ("q", "v", "u", "place", "speed"):
        assert np.array_equal(r[name].values, many[name].values[:runs]), name


def test_noise_is_the_same_in_the_interpreter_and_in_pieces(many, monkeypatch):
    monkeypatch.setattr("pfaffian.simulate.run.roll.FIRST_LANE_STEPS", 1)
    monkeypatch.setattr("pfaffian.simulate.run.roll.GROWTH", 1.0)
    r = run(noisy(), seconds=0.012, x=np.tile(X0, (5, 1)), seed=11)
    assert np.array_equal(r.place.values, many.place.values[:5]) and np.array_equal(r.v.values, many.v.values[:5])


def test_noise_is_normal_and_independent(many):
    off = (many.place.values - many.q.values)[:, ::4] / 0.1  # (runs, samples, entries)
    n = off[:, :, 0].size
    assert abs(off.mean()) < 4 / np.sqrt(off.size) and abs(off.var() - 1) < 4 * np.sqrt(2 / off.size)
    flat = off.reshape(n, 3)
    assert np.abs(np.corrcoef(flat.T) - np.eye(3)).max() < 5 / np.sqrt(n), "entries"
    assert abs(np.mean(off[1:] * off[:-1])) < 5 / np.sqrt(off.size), "runs"
    assert abs(np.mean(off[:, 1:] * off[:, :-1])) < 5 / np.sqrt(off.size), "samples"
    # Sample by sample, although one sensor is late: place k at 4 k ms; speed k at 2 k ms, which arrives 4 ms later.
    first, second = off[:, :3, 0], (many.speed.values[:, 4:9:2] - many.v.values[:, 0:5:2, 0]) / 0.2
    assert abs(np.corrcoef(first.ravel(), second.ravel())[0, 1]) < 5 / np.sqrt(first.size), "sensors"
    assert abs(second.var() - 1) < 4 * np.sqrt(2 / second.size)
    other = run(noisy(), seconds=0.012, x=np.tile(X0, (64, 1)), seed=12, backend="c")
    assert not (other.place.values == many.place.values[:64]).any(), "seeds"


# -- in Python ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("latency", [0, 2])
def test_a_law_in_python_moves_the_machine_as_the_compiled_one(latency):
    how = {"period": 0.008, "latency": latency, "phase": 0.002, "start": [0.1, 0.2]}
    called = []

    def law(t, q, v):
        called.append(t)
        return [-2 * q[0] - v[0], -0.5 * q[2]]

    def equations(s):
        return Command(ca.vertcat(-2 * s.terms.q[0] - s.terms.v[0], -0.5 * s.terms.q[2]))

    compiled = run(control.discrete(equations, **how), seconds=0.05)
    r = run(control.python_law(law, **how), seconds=0.05)
    np.testing.assert_array_equal(states(r), states(compiled))
    np.testing.assert_array_equal(r.u.values, compiled.u.values)
    np.testing.assert_allclose(called, np.arange(0.002, 0.0501, 0.008), rtol=1e-12)
    assert "slow" in r.attrs["sampling"]


@pytest.mark.parametrize(
    ("law", "words"),
    [
        (lambda t, q, v: [1.0, 2.0] if t < 0.02 else 1 / 0, "ZeroDivisionError"),
        (lambda t, q, v: [1.0, 2.0] if t < 0.02 else [1.0], r"shape \(1,\).*\(2,\)"),
        (lambda t, q, v: [1.0, 2.0] if t < 0.02 else [1.0, np.nan], "not finite"),
    ],
)
def test_a_law_in_python_that_fails_stops_the_run(law, words):
    with pytest.warns(RunWarning, match="the law in Python failed"):
        r = run(control.python_law(law, 0.01), seconds=0.05, squeeze=False)
    assert r.stopped.values == pytest.approx([0.02])
    assert np.isfinite(r.q.values[0, :20]).all() and np.isnan(r.q.values[0, 20:]).all()
    assert re.search(words, r.reason.values[0])
    assert causes(r)[0].startswith("the law in Python failed")


# -- limits and stops ---------------------------------------------------------------------------------------------------


def test_held_inputs_are_limited():
    m = M.with_(actuators=tuple(pf.actuator(n, j, limits=(-0.1, 0.2)) for n, j in (("first", "x0"), ("last", "x2"))))
    r = run(control.discrete(feedback, 0.01), m=m, seconds=0.1, scheme=pf.Scheme(saturate=True))
    assert r.u.values.min() == -0.1 and r.u.values.max() <= 0.2
    commanded = (r.u + r.u_cut).values[::10]
    np.testing.assert_allclose(commanded, -states(r)[::10] @ GAIN.T, rtol=0, atol=1e-13)


def test_a_fault_is_judged_at_the_samples_of_its_law():
    law = control.discrete(lambda s: Command(ca.vertcat(1, 1), faults=s.terms.t > 0.0131), 0.01, faults=("too late",))
    with pytest.warns(RunWarning, match="too late"):
        r = run(control.several(a=law, b=control.discrete(feedback, 0.003)), seconds=0.05)
    assert float(r.stopped) == pytest.approx(0.02) and causes(r)[0].startswith("a: too late")


def test_a_sampled_library_law_names_the_cause_of_its_fault():
    bodies = [pf.body(f"b{i}", 1.0, (0.5, 0, 0), 0.1) for i in range(2)]
    joints = [pf.joint(f"j{i}", "revolute", "world" if i == 0 else "b0", f"b{i}", axis=(0, 1, 0), placement=(i, 0, 0))
              for i in range(2)]  # fmt: skip
    m = pf.actuate_all(pf.mechanism("arm", bodies, joints))
    law = control.computed_torque(
        control.point("b1", (1, 0, 0), axes=(0, 2)), control.set_point([2.0, 0.0]), stiffness=1, damping=1
    )
    with pytest.warns(RunWarning, match="singular"):
        r = pf.run(m, [0.0, 0.0], duration=0.01, control=control.discrete(law, 0.005), backend="interpreter")
    assert "task coordinate 0" in str(r.reason.values)


def test_the_law_that_fails_among_several_is_named_with_its_cause():
    """Two laws of one kind: fault and reason are those of the law whose task is out of reach."""
    from tests.control.test_faults import ELBOW, GAINS, OPEN, STRETCHED, TIP

    def law(task, goal):
        return control.discrete(control.computed_torque(task, control.set_point(goal), **GAINS), 0.002)

    easy, hard = law(control.joints("q1", "q2"), [0.5, 0.0]), law(TIP, [1.0, 0.2])
    for both, name in ((control.several(first=easy, second=hard), "second"), (control.several(hand=hard, rest=easy), "hand")):
        with pytest.warns(RunWarning, match=f"the run stopped: {name}: the task's Jacobian is singular"):
            r = pf.run(OPEN, STRETCHED, duration=0.01, step=STEP, control=both, backend="interpreter")
        assert causes(r)[0].startswith(f"{name}: ") and "the joints leave task coordinate" in str(r.reason.values)
        assert pf.run(OPEN, ELBOW, duration=2e-3, step=STEP, control=both, backend="interpreter").status == 0


# -- errors -------------------------------------------------------------------------------------------------------------

LAW, SPEED = control.discrete(feedback, 0.01), control.sensor(lambda k: k.v)
WRONG = {
    "period between steps": (lambda: run(control.discrete(feedback, 0.0025)), r"0\.0025 s .*whole number of steps of 0\.001 s"),
    "phase between steps": (lambda: run(control.discrete(feedback, 0.01, phase=0.0005)), r"phase 0\.0005 s"),
    "sensor between steps": (
        lambda: run(control.discrete(feedback, 0.01, measure={"a": control.sensor(lambda k: k.q, period=0.0105)})),
        r"0\.0105 s",
    ),
    "no period": (lambda: control.discrete(feedback, 0.0), "period must be a time above zero"),
    "a phase beyond": (lambda: control.discrete(feedback, 0.01, phase=0.01), "below the period"),
    "early": (lambda: control.discrete(feedback, 0.01, latency=-1), "latency must be a whole number"),
    "no hold": (lambda: control.discrete(feedback, 0.01, hold="linear"), "hold 'linear' is unknown; one of zero, first"),
    "later than there is room for": (lambda: control.discrete(feedback, 0.01, latency=1001), "from 0 to 1000, got 1001"),
    "half late": (lambda: control.discrete(feedback, 0.01, latency=0.5), "latency must be a whole number"),
    "no law": (lambda: control.discrete(3, 0.01), "a control law or a function"),
    "twice": (lambda: control.discrete(LAW, 0.01), "discrete time already"),
    "unknown name": (lambda: run(control.discrete(lambda s: Command(s["giro"]), 0.01, state={"gyro": 0})), "mean 'gyro'"),
    "state of wrong size": (
        lambda: run(control.discrete(lambda s: Command(s.u, d_next={"i": s.terms.q}), 0.01, state={"i": [0, 0]})),
        "3 numbers of 'i' where its state has 2",
    ),
    "forgotten state": (lambda: run(control.discrete(feedback, 0.01, state={"i": 0})), "0 numbers of 'i' where"),
    "inputs of wrong size": (lambda: run(control.discrete(lambda s: Command(s.terms.q), 0.01)), "time gives 3 inputs"),
    "start of wrong size": (lambda: run(control.discrete(feedback, 0.01, start=[1.0])), "start has 1 numbers"),
    "z_dot": (lambda: run(control.discrete(lambda s: Command(s.u, s.terms.t), 0.01)), "gives z_dot.*d_next"),
    "d_next in continuous time": (
        lambda: run(control.Control(lambda T, z, w, y: Command(ca.SX(2, 1), d_next={"i": 1}))), "discrete"
    ),
    "no command": (lambda: run(control.discrete(lambda s: s.u, 0.01)), "must return a control.Command"),
    "state of the library": (
        lambda: control.discrete(control.Control(lambda *_: 0), 0.01, state={"i": 0}),
        "state is for a law of your own",
    ),
    "gives what it has not": (lambda: run(control.discrete(feedback, 0.01, gives=("goal",))), "gives no signal 'goal'"),
    "state without a name": (lambda: control.discrete(feedback, 0.01, state=[0]), "state: {name: start values}"),
    "sensor by a number": (lambda: control.discrete(feedback, 0.01, measure={"a": 1}), "measure: {name: sensor"),
    "sensor of numbers": (lambda: control.sensor(1.0), "a function of the kinematics"),
    "sensor that moves by a word": (lambda: control.sensor(lambda k: k.q, moving="yes"), "of terms and motion"),
    "sensor of motion by kinematics": (
        lambda: run(control.discrete(feedback, 0.01, measure={"a": control.sensor(lambda k: k.q, moving=True)})),
        "sensor 'a': a function of 2 argument",
    ),
    "negative noise": (lambda: control.sensor(lambda k: k.q, -1), "std must not be negative"),
    "noise of wrong size": (
        lambda: run(control.discrete(feedback, 0.01, measure={"a": control.sensor(lambda k: k.q, [1, 2])})),
        "std has 2 numbers, but it measures 3",
    ),
    "a signal called as a sensor": (
        lambda: run(control.discrete(lambda s: Command(s.u, signals={"a": 1}), 1.0, measure={"a": SPEED})),
        "two signals or sensors are called 'a'",
    ),
    "a state called as a signal": (
        lambda: run(control.discrete(lambda s: Command(s.u, signals={"i": 1}, d_next={"i": 0}), 1.0, state={"i": 0})),
        "its state and a signal are both called 'i'",
    ),
    "a state called as an input": (
        lambda: run(control.discrete(lambda s: Command(s.u, d_next={"i": 0}), 1.0, state={"i": 0}, inputs=("i",)), u={"i": 0}),
        "its state and an input are both called 'i'",
    ),
    "one alone": (lambda: control.several(a=LAW), "two laws or more"),
    "several functions": (lambda: control.several(a=LAW, b=feedback), "b: a control law is needed"),
    "two continuous": (
        lambda: control.several(a=control.Control(lambda *_: 0), b=control.Control(lambda *_: 0)), "a and b are in continuous"
    ),
    "python before others": (lambda: control.several(b=control.python_law(feedback, 0.01), a=LAW), "name it last"),
    "seed": (lambda: run(LAW, seed=-1), "seed must be a whole number"),
    "adaptive": (lambda: run_adaptive(M, X0[:3], times=[0, 1], control=LAW), "sampled once a period: use run"),
    "linearise": (lambda: pf.linearise(M, X0[:3], control=LAW), "sampled once a period"),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_wrong_laws_and_sensors_are_named(case):
    call, words = WRONG[case]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ModelError, match=words):
            call()


def test_the_reference_matrices_are_those_of_the_chain():
    """The eigenvalues of A are those of the linearised mechanism."""
    found = pf.linearise(M, np.zeros(3))
    assert np.allclose(sorted(np.linalg.eigvals(A).imag), sorted(found.eigenvalues.imag))


# -- with other features ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_held_values_do_not_depend_on_the_integrator(integrator):
    """Inputs, measurements and states change only at the law's samples, as in a NumPy loop over short runs."""
    law = control.discrete(feedback, 0.005, latency=1, measure={"at": control.sensor(lambda k: k.q[0])})
    scheme = pf.Scheme(integrator=integrator)
    r = run(law, seconds=0.05, scheme=scheme)
    x, waiting = X0, np.zeros(2)
    for k in range(10):
        u, waiting = waiting, -GAIN @ x
        np.testing.assert_array_equal(r["at"].values[5 * k], x[0])
        part = pf.run(M, x[:3], x[3:], u=u, duration=0.005, step=STEP, scheme=scheme, backend="interpreter")
        np.testing.assert_allclose(states(r)[5 * k : 5 * k + 6], states(part), rtol=0, atol=64 * EPS)
        x = states(r)[5 * k + 5]


def test_the_hamiltonian_state_gives_the_same_motion():
    r, momenta = run(control.discrete(feedback, 0.01), seconds=0.1), {"seconds": 0.1, "m": pf.reduction.hamiltonian(M)}
    for law in (control.discrete(feedback, 0.01), control.python_law(lambda t, q, v: -GAIN @ [*q, *v], 0.01)):
        np.testing.assert_allclose(states(r), states(run(law, **momenta)), rtol=0, atol=EXACT)


def test_force_control_at_a_rate_holds_the_force():
    """An arm against a wall: the measured reaction is one period old, so that the force loop is integral only."""
    bodies = [pf.body(f"b{i}", 1.0, (0.5, 0, 0), 0.1) for i in range(2)]
    joints = [pf.joint(f"j{i}", "revolute", "world" if i == 0 else "b0", f"b{i}", axis=(0, 1, 0), placement=(i, 0, 0))
              for i in range(2)]  # fmt: skip
    wall = pf.holonomic("wall", lambda k: k.position("b1", (1, 0, 0))[0] - 1.5)
    m = pf.actuate_all(pf.mechanism("arm", bodies, joints, constraints=[wall]))
    height, pull = control.point("b1", (1, 0, 0), axes=2), {"stiffness": 100, "damping": 20, "integral_gain": 30.0}
    law = control.hybrid_force(height, control.set_point([0.2]), control.set_point([5.0]), ["wall"], **pull)
    r = pf.run(m, {"j0": -0.6}, duration=0.6, control=control.discrete(law, 0.005), backend="interpreter", every=5)
    errors = np.abs(r.force_error.values)
    assert errors[0] > 1 and errors[-1] < 0.03 and abs(float(r.multiplier[-1, 0]) - 5.0) < 0.03
    assert float(r.violation.max()) < 1e-9
