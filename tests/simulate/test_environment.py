"""Gymnasium vector environments step as a run does; episodes begin and end as Gymnasium defines."""

from __future__ import annotations

import sys
import warnings
from copy import copy, deepcopy
from importlib import import_module

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

import pfaffian as pf
from pfaffian.errors import ModelError, RunWarning
from pfaffian.learning import vector_environment
from tests.simulate.machines import FOUR_BAR_START, four_bar, pendulum

STEP, N = 1e-2, 4
HOW = {"step": STEP, "backend": "interpreter", "limits": [[-3.0, 3.0]]}
STARTS = np.array([[0.1], [0.5], [-0.9]])


def cost(q, v, u):
    return -(q[:, 0] ** 2) - 1e-3 * u[:, 0] ** 2


def environment(**changes):
    return vector_environment(pendulum(), N, **HOW | {"reward": cost, "q": STARTS, "longest": 1000} | changes)


def test_steps_are_those_of_a_run():
    env = environment(steps=3)
    observed, info = env.reset(seed=5)
    assert observed.shape == (N, 2) and env.observation_space.contains(observed) and not info
    assert {*observed[:, 0]} <= {*STARTS[:, 0]} and len({*observed[:, 0]}) > 1 and (observed[:, 1] == 0).all()
    start, u = observed[:, :1], np.array([[1.0], [-2.0], [9.0], [0.0]])
    for _ in range(4):
        observed, reward, terminated, truncated, info = env.step(u)
    clipped = np.clip(u, -3, 3)
    alone = pf.run(pendulum(), start, u=clipped, duration=12 * STEP, step=STEP, backend="interpreter", every=12)
    np.testing.assert_array_equal(observed, np.hstack([alone.q.values[:, -1], alone.v.values[:, -1]]))
    np.testing.assert_array_equal(reward, cost(alone.q.values[:, -1], alone.v.values[:, -1], clipped))
    assert terminated.dtype == truncated.dtype == bool and not (terminated | truncated).any()
    np.testing.assert_array_equal(env.reset(seed=5)[0][:, :1], start)


def test_episodes_end_and_restart_in_the_next_step():
    env = environment(terminated=lambda q, v: np.abs(q[:, 0]) < 0.05, longest=40)
    assert env.metadata["autoreset_mode"] is AutoresetMode.NEXT_STEP
    env.reset(seed=1)
    before, ends = np.zeros(N, dtype=bool), np.zeros(2, dtype=int)
    for _ in range(100):
        observed, reward, terminated, truncated, _ = env.step(np.zeros((N, 1)))
        assert np.isin(observed[before, 0], STARTS).all() and (reward[before] == 0).all() and (env.elapsed[before] == 0).all()
        assert not (terminated | truncated)[before].any() and (np.abs(observed[terminated, 0]) < 0.05).all()
        assert not (terminated & truncated).any() and (env.elapsed[truncated] == 40).all() and (env.elapsed <= 40).all()
        before, ends = terminated | truncated, ends + [terminated.sum(), truncated.sum()]
    assert (ends > 0).all()


def bouncing() -> pf.Mechanism:
    """A ball on a slide before a wall whose force rises steeply, which an implicit integrator cannot always follow."""
    slide = pf.joint("x", "prismatic", "world", "ball", axis=(0, 0, 1))
    wall = pf.forces.generalised_force("wall", lambda k: 1e-6 * k.q[0] / (k.q[0] ** 2 + 1e-9) ** 3, joint="x")
    push = pf.actuator("push", "x", limits=(-50, 50))
    return pf.mechanism("bouncing ball", [pf.body("ball", 1.0)], [slide], forces=[wall], actuators=[push])


def test_machines_that_stop_are_truncated_with_the_cause_and_restart_alone():
    """An integrator without a solution says nothing about the task: a learner must not take it for the end of the episode."""
    make = {"q": [[0.3], [0.5]], "step": 0.02, "scheme": pf.Scheme(integrator="tr-bdf2"), "backend": "interpreter"}
    with pytest.warns(RunWarning, match="in a trial of 50 random actions of 8 machines: . of 8 runs stopped"):
        env = vector_environment(bouncing(), 16, reward=lambda q, v, u: -(q[:, 0] ** 2), longest=50, **make)
    env.reset(seed=0)
    random, count, before = np.random.default_rng(0), 0, np.zeros(16, dtype=bool)
    for _ in range(120):
        observed, reward, terminated, truncated, info = env.step(random.uniform(-50, 50, (16, 1)))
        assert np.isfinite(observed).all() and np.isfinite(reward).all() and not terminated.any()
        stopped = info.get("_stopped", np.zeros(16, dtype=bool))
        assert ("stopped" in info) == stopped.any() and (truncated == (stopped | (env.elapsed == 50))).all()
        if stopped.any():
            assert all("did not converge" in words for words in info["stopped"][stopped])
            assert all(words is None for words in info["stopped"][~stopped])
        assert (env.elapsed[before] == 0).all() and (env.elapsed[~before] > 0).all() and not stopped[before].any()
        count, before = count + stopped.sum(), truncated
    assert count > 20


def test_a_machine_that_diverges_keeps_its_last_good_state():
    """Even where the caller's functions have no finite value there; and the others go on, to the bit."""
    push = pf.forces.generalised_force("push", lambda k: 1e300 * (k.q[0] > 0.4) * k.q[0] ** 2, joint="pivot")
    wild = lambda q, v: np.hstack([q, np.where(q > 0.4, np.inf, v)]) if wild_now else np.hstack([q, v])  # noqa: E731
    score = lambda q, v, u: np.where(q[:, 0] > 0.4, -np.inf, -(q[:, 0] ** 2))  # noqa: E731
    wild_now = False
    m = pendulum().with_(forces=[push])
    env = vector_environment(m, N, **HOW, reward=score, q=[[0.5], [0.1]], observe=wild, error_bound=np.inf)
    start = env.reset(seed=2)[0]
    first = start[:, 0] == 0.5
    assert 0 < first.sum() < N
    wild_now = True
    observed, reward, terminated, truncated, info = env.step(np.zeros((N, 1)))
    np.testing.assert_array_equal(truncated, first)
    np.testing.assert_array_equal(observed[first], start[first])
    assert not terminated.any() and (reward[first] == 0).all() and (reward[~first] < 0).all()
    assert all("diverged" in words for words in info["stopped"][first])
    alone = pf.run(m, start[~first, :1], duration=STEP, step=STEP, backend="interpreter", squeeze=False, error_bound=np.inf)
    np.testing.assert_array_equal(observed[~first, 0], alone.q.values[:, -1, 0])
    wild_now = False
    observed, _, _, truncated, info = env.step(np.zeros((N, 1)))
    assert np.isfinite(observed).all() and not truncated[first].any() and not info


def test_a_state_that_ends_the_task_is_still_terminated():
    env = environment(terminated=lambda q, v: q[:, 0] > -2, q=[[0.1]])
    env.reset(seed=0)
    _, _, terminated, truncated, info = env.step(np.zeros((N, 1)))
    assert terminated.all() and not truncated.any() and not info


def test_the_trial_passes_on_the_warning_of_a_run():
    """A stepper does not check its steps; the run of random actions does. With steps that are short enough it says nothing."""
    stiff = pendulum(stiffness=1e4)
    with pytest.warns(RunWarning, match="in a trial of .* random actions.*step=") as caught:
        vector_environment(stiff, N, **HOW, reward=cost)
    assert len(caught) == 1 and "vector_environment" in str(caught[0].message)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        vector_environment(stiff, N, **HOW, reward=cost, error_bound=np.inf)
        vector_environment(stiff, N, **HOW | {"step": 1e-4}, reward=cost, steps=5)


@pytest.mark.parametrize("make", [copy, deepcopy])
def test_a_copy_moves_on_its_own(make):
    env = environment()
    env.reset(seed=3)
    env.step(np.ones((N, 1)))
    other = make(env)
    state = env.stepper.q, env.elapsed.copy()
    moved = [other.step(np.zeros((N, 1)))[0] for _ in range(3)]
    np.testing.assert_array_equal(env.stepper.q, state[0])
    np.testing.assert_array_equal(env.elapsed, state[1])
    np.testing.assert_array_equal([env.step(np.zeros((N, 1)))[0] for _ in range(3)], moved)


def test_actions_in_single_precision_or_whole_numbers_are_taken_silently():
    env = environment()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        results = []
        for kind in (float, np.float32, int, object):
            env.reset(seed=1)
            results.append(env.step(np.ones((N, 1), dtype=kind))[0])
    assert all((x == results[0]).all() for x in results)


ACTIONS = {
    "complex": np.full((N, 1), 1j),
    "truth values": np.full((N, 1), True),
    "text": np.full((N, 1), "1"),
    "a flat array": np.zeros(N),
    "too many inputs": np.zeros((N, 3)),
    "too few machines": np.zeros((1, 1)),
    "one number": 1.0,
    "nan": np.full((N, 1), np.nan),
    "infinity": np.full((N, 1), np.inf),
    "nothing": None,
    "rows of two lengths": [[1.0], [1.0, 2.0], [1.0], [1.0]],
}


@pytest.mark.parametrize("kind", ACTIONS)
def test_wrong_actions_are_refused_and_move_nothing(kind):
    env = environment()
    env.reset(seed=0)
    before = env.stepper.q
    with pytest.raises(ModelError, match="actions"):
        env.step(ACTIONS[kind])
    np.testing.assert_array_equal(env.stepper.q, before)
    assert (env.elapsed == 0).all()


@pytest.mark.parametrize("seed", ["1", 1.5, -1, True, [1, 2], np.array([1]), 2**60])
def test_seeds_of_other_kinds_are_refused(seed):
    with pytest.raises(ModelError, match="seed"):
        environment().reset(seed=seed)


def test_starts_are_assembled_and_observations_may_be_chosen():
    start = FOUR_BAR_START + 1e-3
    with pytest.warns(RunWarning, match="moved"):
        env = vector_environment(four_bar(), 2, **HOW, reward=cost, q=start, observe=lambda q, v: np.sin(q[:, :1]))
    observed, _ = env.reset()
    assert observed.shape == (2, 1) == env.observation_space.shape
    assert observed[0, 0] == np.sin(pf.assemble(four_bar(), start).q[0]) != np.sin(start[0])
    named = vector_environment(pendulum(), N, **HOW, reward=cost, q={"pivot": [0.1, 0.2]}, v={"pivot": 3.0})
    assert {*named.reset(seed=3)[0][:, 0]} == {0.1, 0.2}


def test_wrappers_of_gymnasium_accept_it():
    env = gymnasium.wrappers.vector.RecordEpisodeStatistics(environment(longest=3))
    env.reset(seed=0)
    infos = [env.step(env.action_space.sample())[-1] for _ in range(3)]
    assert infos[-1]["episode"]["l"].tolist() == [3] * N


WRONG = {
    "no limits": ({"limits": None}, "input 'motor' has no limits"),
    "an accuracy": ({"accuracy": 1e-6}, "steps of one length and no accuracy"),
    "limits of another shape": ({"limits": [-1, 1]}, r"\(1, 2\) is needed"),
    "limits turned": ({"limits": [[1, -1]]}, "the lowest and highest"),
    "no reward": ({"reward": 3.0}, "reward must be a function"),
    "no end": ({"terminated": True}, "terminated must be a function"),
    "no machines": ({"longest": 0}, "longest must be a whole number"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_arguments_are_refused(case):
    changed, words = WRONG[case]
    with pytest.raises(ModelError, match=words):
        environment(**changed)


@pytest.mark.parametrize("name", ["reward", "terminated"])
def test_functions_must_return_one_number_for_each_machine(name):
    """A learning program would broadcast a column against the rewards of all machines, and nan counts as True."""
    what, other = ("one number", "?") if name == "reward" else ("True or False", "d")
    wrong = [np.zeros(shape, "?" if name == "terminated" else "d") for shape in ((N, 1), (), (N - 1,))]
    wrong += [np.zeros(N, other), np.full(N, "1"), np.zeros(N, complex), np.full(N, None), [[0.0], [0.0, 1.0], 1.0]]
    for value in wrong:
        env = environment(**{name: lambda *state, value=value: value})
        env.reset(seed=0)
        with pytest.raises(ModelError, match=rf"{name} gives .*: \({N},\) is needed, {what} for each machine"):
            env.step(np.zeros((N, 1)))


def test_observations_are_real_numbers():
    for value in (np.full((N, 1), "1"), np.zeros((N, 1), complex), np.zeros((N, 1), bool), [[0.0]] * (N - 1) + [[0.0, 1.0]]):
        with pytest.raises(ModelError, match="observe"):
            env = environment(observe=lambda q, v, value=value: value if len(q) == N else np.zeros((1, 1)))
            env.reset(seed=0)


def test_functions_must_return_finite_numbers_for_machines_that_run():
    bad = {"reward": lambda q, v, u: np.where(q[:, 0] > 0.3, np.nan, 1.0), "observe": lambda q, v: np.log(q + 0.5)}
    for name, f in bad.items():
        env = environment(q=[[0.5]] if name == "reward" else [[0.1]], **{name: f})
        env.reset(seed=0)
        with pytest.raises(ModelError, match=f"{name} gives .* for machine 0, which is not finite"), np.errstate(all="ignore"):
            for _ in range(200):
                env.step(np.full((N, 1), -3.0 if name == "observe" else 0.0))
    env = environment(observe=lambda q, v: np.hstack([q, v])[: len(q) - (q[:, 0] != 0.5).all()])
    with pytest.raises(ModelError, match=r"observe gives \(3, 2\): \(4, 2\) is needed"):
        env.reset(seed=0)
        env.step(np.zeros((N, 1)))


def test_saved_states_of_other_mechanisms_and_singular_starts_are_refused():
    s, other = pf.stepper(pendulum(), runs=2), pf.stepper(pendulum(2.0), runs=2)
    with pytest.raises(ModelError, match="put: the saved state belongs to another mechanism"):
        s.put(np.array([0]), other.save(), np.array([0]))
    folded = pf.stepper(pendulum(), runs=1, backend="interpreter")
    saved = folded.save()
    saved.kinds[:] = 1
    with pytest.raises(ModelError, match="put: a singular start needs a special first step"):
        folded.put(np.array([0]), saved, np.array([0]))


def test_without_gymnasium_the_error_names_the_package(monkeypatch):
    monkeypatch.delitem(sys.modules, "pfaffian.simulate.run.environment")
    monkeypatch.setitem(sys.modules, "gymnasium.spaces", None)
    with pytest.raises(ModelError, match="need the package gymnasium: run `pip install gymnasium`"):
        import_module("pfaffian.simulate.run.environment")
