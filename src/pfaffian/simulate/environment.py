"""Many copies of one machine as a Gymnasium vector environment."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from pfaffian.errors import ModelError, brief, install
from pfaffian.evaluate.arrays import as_whole
from pfaffian.model.mechanism import Mechanism
from pfaffian.model.number import floats
from pfaffian.simulate.entrance import REGULAR
from pfaffian.simulate.stepper import Stepper, stepper
from pfaffian.simulate.system import System, as_system

try:
    from gymnasium.spaces import Box
    from gymnasium.vector import AutoresetMode, VectorEnv
    from gymnasium.vector.utils import batch_space
except ImportError:
    raise ModelError(f"environments for learning need the package gymnasium: run {install('gymnasium')}") from None

Numbers = Callable[..., Any]


class Environment(VectorEnv):
    """Copies of one machine that a learner moves step by step; made by `vector_environment`.

    stepper: the machines.   elapsed: (num_envs,) actions of each machine since its start.
    A machine whose episode has ended starts anew in the next step and ignores its action in that step (NEXT_STEP of Gymnasium).
    The time of the stepper, on which forces may depend, is not reset.

    Example:
        >>> import numpy as np, pfaffian as pf
        >>> slide = pf.joint("x", "prismatic", "world", "cart", axis=(1, 0, 0))
        >>> m = pf.mechanism("cart", [pf.body("cart", 2.0)], [slide], actuators=[pf.actuator("push", "x", limits=(-1, 1))])
        >>> env = pf.learning.vector_environment(m, 3, step=0.1, reward=lambda q, v, u: -q[:, 0] ** 2, longest=50)
        >>> observation, info = env.reset(seed=1)
        >>> observation, reward, terminated, truncated, info = env.step(np.ones((3, 1)))
        >>> observation.shape, reward.round(6)
        ((3, 2), array([-6.e-06, -6.e-06, -6.e-06]))
    """

    metadata = {"autoreset_mode": AutoresetMode.NEXT_STEP}  # noqa: RUF012

    def __init__(self, machines: Stepper, starts: Stepper, limits: np.ndarray, functions: _Functions, longest: int) -> None:
        self.stepper, self._saved, self._f = machines, starts.save(), functions
        self.num_envs, self._longest = machines.runs, longest
        self._low, self._high = limits.T
        self.single_action_space = Box(limits[:, 0], limits[:, 1], dtype=np.float64)
        size = functions.observe(starts.q[:1], starts.v[:1]).shape[1]
        self.single_observation_space = Box(-np.inf, np.inf, (size,), dtype=np.float64)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.elapsed, self._ended = np.zeros(self.num_envs, dtype=int), np.zeros(self.num_envs, dtype=bool)

    def _start(self, which: np.ndarray) -> None:
        """Put these machines into starts that are drawn at random."""
        self.stepper.put(which, self._saved, self.np_random.integers(len(self._saved.x), size=len(which)))
        self.elapsed[which] = 0

    def reset(self, *, seed: Any = None, options: Any = None) -> tuple[np.ndarray, dict[str, Any]]:
        """Start all machines anew, each from a start drawn at random; return (observations, {}).

        seed: of the random draws.   options: ignored.
        """
        super().reset(seed=seed)
        self._start(np.arange(self.num_envs))
        self._ended[:] = False
        return self._f.observe(self.stepper.q, self.stepper.v), {}

    def step(self, actions: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Apply one action to each machine; return (observations, rewards, terminations, truncations, {}).

        actions: (num_envs, nu).   The episode of a machine that diverges or stops is terminated.
        """
        s, restarted = self.stepper, np.flatnonzero(self._ended)
        u = np.clip(np.asarray(actions, dtype=float), self._low, self._high)
        s.step(u, self._f.steps)
        self.elapsed += 1
        if restarted.size:
            self._start(restarted)
        q, v = s.q, s.v
        reward = _one_per_machine(self._f.reward(q, v, u), len(q), "reward").astype(float)
        terminated = _one_per_machine(self._f.terminated(q, v), len(q), "terminated").astype(bool) | (s.status != 0)
        truncated = (self.elapsed >= self._longest) & ~terminated
        reward[restarted], terminated[restarted], truncated[restarted] = 0.0, False, False
        self._ended = terminated | truncated
        return self._f.observe(q, v), reward, terminated, truncated, {}


class _Functions:
    """The functions that the caller gave, or their defaults.   steps: steps of the stepper for each action."""

    def __init__(self, reward: Numbers, terminated: Numbers | None, observe: Numbers | None, steps: int) -> None:
        self.reward, self.steps = reward, steps
        self.terminated: Numbers = terminated or (lambda q, v: np.zeros(len(q), dtype=bool))
        self.observe: Numbers = observe or (lambda q, v: np.hstack([q, v]))


def vector_environment(
    m: Mechanism | System,
    runs: int,
    *,
    reward: Numbers,
    terminated: Numbers | None = None,
    observe: Numbers | None = None,
    q: Any = None,
    v: Any = None,
    longest: int = 1000,
    step: float = 1e-3,
    steps: int = 1,
    limits: Any = None,
    **options: Any,
) -> Environment:
    """A Gymnasium vector environment of many copies of one machine, moved by one `stepper`. Needs the package gymnasium.

    Args:
        m: the mechanism, or a System.
        runs: number of machines.
        reward: function (q, v, u) -> (runs,) of the states (runs, nq), (runs, nv) after an action and the inputs (runs, nu).
        terminated: function (q, v) -> (runs,) of bool, whether an episode ends; None (default): only when a machine stops.
        observe: function (q, v) -> (runs, n), the observations; None (default): [q, v].
        q, v: starts, (n,), (starts, n) or {name: number or (starts,)}; one is drawn at random for each episode. They are put
            onto the constraints as `run` does.
        longest: number of actions after which an episode is truncated, 1000 by default.
        step: length of a step [s], 1e-3 by default.
        steps: number of steps for each action, 1 by default.
        limits: (nu, 2) lowest and highest actions; None (default): those of the actuators, each of which must then have some.
        options: further arguments of `stepper`, except parameters: control, scheme, threads, backend, strict, ...
    Returns:
        Environment with `reset`, `step` and the spaces that Gymnasium requires, in float64.
    Raises ModelError: an input without limits; wrong arguments.

    Example:
        >>> import pfaffian as pf
        >>> hinge = pf.joint("hinge", "revolute", "world", "rod", axis=(0, 1, 0))
        >>> rod, motor = pf.body("rod", 1.0, com=(0, 0, 0.5), inertia=0.1), pf.actuator("motor", "hinge", limits=(-3, 3))
        >>> m = pf.mechanism("pendulum", [rod], [hinge], actuators=[motor])
        >>> env = pf.learning.vector_environment(m, 8, q=[[0.1], [-0.1]], reward=lambda q, v, u: -abs(q[:, 0]), longest=100)
        >>> env.action_space.shape, env.observation_space.shape
        ((8, 1), (8, 2))
    """
    mechanism = as_system(m).mechanism
    for name, f in {"reward": reward, "terminated": terminated, "observe": observe}.items():
        if not callable(f) and (name == "reward" or f is not None):
            raise ModelError(f"vector_environment: {name} must be a function of arrays, got {brief(f)}")
    machines = stepper(m, runs=as_whole(runs, "runs"), step=step, **options)
    named = [x for given in (q, v) if isinstance(given, Mapping) for x in given.values() if np.ndim(x) == 1]
    count = max([1, *(len(x) for x in (*named, *(x for x in (q, v) if np.ndim(x) == 2)))])
    starts = stepper(m, runs=count, step=step, **options)
    starts.reset(q, v)
    saved = starts.save()
    if (saved.status != 0).any() or (saved.kinds != REGULAR).any():
        why = "cannot be put onto the constraints" if (saved.status != 0).any() else "is in a singular configuration"
        raise ModelError(f"vector_environment: a start {why}; see `assemble`, and choose others")
    machines.reset(starts.q[0], starts.v[0], correct_start=False)
    functions = _Functions(reward, terminated, observe, as_whole(steps, "steps"))
    return Environment(machines, starts, _limits(mechanism, machines.u_names, limits), functions, as_whole(longest, "longest"))


def _one_per_machine(value: Any, runs: int, what: str) -> np.ndarray:
    """The (runs,) array that a caller's function returned. Raises ModelError: the value has another shape.

    what: name of the function in the message.
    """
    array = np.asarray(value)
    if array.shape != (runs,):
        raise ModelError(f"vector_environment: {what} gives {array.shape}: ({runs},) is needed, one number for each machine")
    return array


def _limits(m: Mechanism, names: tuple[str, ...], given: Any) -> np.ndarray:
    """(nu, 2) checked limits of the actions; without `given` those of the actuators."""
    known = {n: limit for n, limit in zip(m.u_names, m.u_limits, strict=True)}
    bounds = np.array([known.get(n, (-np.inf, np.inf)) for n in names]) if given is None else floats(given, "limits")
    if bounds.shape != (len(names), 2) or not (bounds[:, 0] < bounds[:, 1]).all():
        raise ModelError(
            f"limits: shape ({len(names)}, 2) is needed, the lowest and highest value of each input in this order, got shape "
            f"{bounds.shape}"
        )
    if given is None and not np.isfinite(bounds).all():
        unlimited = names[int(np.flatnonzero(~np.isfinite(bounds).all(axis=1))[0])]
        raise ModelError(f"input {unlimited!r} has no limits, which a learner's actions need: give limits=...")
    return bounds
