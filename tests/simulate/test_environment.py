"""Gymnasium vector environments step as a run does; episodes begin and end as Gymnasium defines."""

from __future__ import annotations

import sys
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


def test_a_machine_that_stops_ends_its_episode_alone():
    push = pf.forces.generalised_force("push", lambda k: 1e300 * (k.q[0] > 0.4) * k.q[0] ** 2, joint="pivot")
    env = vector_environment(pendulum().with_(forces=[push]), N, **HOW, reward=cost, q=[[0.5], [0.1]])
    first = env.reset(seed=2)[0][:, 0] == 0.5
    assert 0 < first.sum() < N
    terminated = env.step(np.zeros((N, 1)))[2]
    np.testing.assert_array_equal(terminated, first)
    observed, _, terminated, *_ = env.step(np.zeros((N, 1)))
    assert np.isfinite(observed).all() and not terminated[first].any()


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
    """A learning program would broadcast a column against the rewards of all machines."""
    for shape in ((N, 1), (), (N - 1,)):
        env = environment(**{name: lambda *state, shape=shape: np.zeros(shape)})
        env.reset(seed=0)
        with pytest.raises(ModelError, match=rf"{name} gives .*: \({N},\) is needed, one number for each machine"):
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
    monkeypatch.delitem(sys.modules, "pfaffian.simulate.environment")
    monkeypatch.setitem(sys.modules, "gymnasium.spaces", None)
    with pytest.raises(ModelError, match="need the package gymnasium: run `pip install gymnasium`"):
        import_module("pfaffian.simulate.environment")
