"""Many copies of one machine as a Gymnasium vector environment."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from typing import Any

import numpy as np

from pfaffian.errors import ModelError, RunError, RunWarning, brief, collected, install, notice
from pfaffian.evaluate.single_values import as_whole
from pfaffian.model.mechanism import Mechanism
from pfaffian.model.number import floats, real_array, reals
from pfaffian.simulate.error.accuracy import BOUND, as_bound
from pfaffian.simulate.run.new_stepper import stepper
from pfaffian.simulate.run.run import run
from pfaffian.simulate.run.singular_start import REGULAR
from pfaffian.simulate.run.stepper import Stepper
from pfaffian.simulate.step.sampling import check_seed
from pfaffian.states.abstract_system import AbstractSystem
from pfaffian.states.system import as_system

try:
    from gymnasium.spaces import Box
    from gymnasium.vector import AutoresetMode, VectorEnv
    from gymnasium.vector.utils import batch_space
except ImportError:
    raise ModelError(f"environments for learning need the package gymnasium: run {install('gymnasium')}") from None

Numbers = Callable[..., Any]

TRIAL_RUNS, TRIAL_ACTIONS, TRIAL_STEPS = 8, 100, 2000
"""Largest numbers of runs, of actions and of steps in the trial of random actions when an environment is made."""


class Environment(VectorEnv):
    """Copies of one machine that a learner moves step by step; made by `vector_environment`.

    stepper: the machines.   elapsed: (num_envs,) actions of each machine since its start.
    A machine whose episode has ended starts anew in the next step and ignores its action in that step (NEXT_STEP of Gymnasium).
    The time of the stepper, on which forces may depend, is not reset.

    A machine may stop: its state grows beyond bounds, an integrator finds no solution, a law has no answer. That says nothing
    about the task, so the episode is truncated, not terminated; info["stopped"] has the cause as text and info["_stopped"]
    marks these machines. The observation and the reward are those of the last good state; where they are not finite, the
    observation before and zero. So a learner may add the value of the observation to the return as for any truncation.

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

    def __init__(
        self, machines: Stepper, starts: Stepper, limits: np.ndarray, functions: _EnvironmentFunctions, longest: int
    ) -> None:
        self.stepper, self._saved, self._f = machines, starts.save(), functions
        self.num_envs, self._longest = machines.runs, longest
        self._low, self._high = limits.T
        self.single_action_space = Box(limits[:, 0], limits[:, 1], dtype=np.float64)
        size = functions.observe(starts.q[:1], starts.v[:1]).shape[1]
        self.single_observation_space = Box(-np.inf, np.inf, (size,), dtype=np.float64)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.elapsed, self._ended = np.zeros(self.num_envs, dtype=int), np.zeros(self.num_envs, dtype=bool)
        self._observed = np.zeros((self.num_envs, size))

    def __copy__(self) -> Environment:
        return deepcopy(self, {id(self._f): self._f})

    def _start(self, which: np.ndarray) -> None:
        """Put these machines into starts that are drawn at random."""
        self.stepper.put(which, self._saved, self.np_random.integers(len(self._saved.x), size=len(which)))
        self.elapsed[which] = 0

    def reset(self, *, seed: Any = None, options: Any = None) -> tuple[np.ndarray, dict[str, Any]]:
        """Start all machines anew, each from a start drawn at random; return (observations, {}).

        seed: of the random draws, a whole number from 0 to 2^52 - 1; None: they continue.   options: ignored.
        """
        if seed is not None:
            check_seed(seed)
        super().reset(seed=seed)
        self._start(np.arange(self.num_envs))
        self._ended[:] = False
        none = np.zeros(self.num_envs, dtype=bool)
        self._observed = self._observe(self.stepper.q, self.stepper.v, none)
        return self._observed.copy(), {}

    def _actions(self, actions: Any) -> np.ndarray:
        """The actions (num_envs, nu) as floats. Raises ModelError: they have another shape, or are no finite real numbers."""
        u, shape = real_array(actions, "actions").astype(float), self.action_space.shape
        if u.shape != shape or not np.isfinite(u).all():
            found = f"shape {u.shape}" if u.shape != shape else "numbers that are not finite"
            raise ModelError(
                f"actions have {found}: {shape} is needed, a row of {', '.join(self.stepper.u_names)} for each machine"
            )
        return u

    def _observe(self, q: np.ndarray, v: np.ndarray, stopped: np.ndarray) -> np.ndarray:
        """(num_envs, n) observations; those of stopped machines that are not finite are the observations before.

        Raises ModelError: another shape, or an observation of a running machine that is not finite.
        """
        found = reals(self._f.observe(q, v), "vector_environment: observe").copy()
        if found.shape != self.observation_space.shape:
            raise ModelError(f"vector_environment: observe gives {found.shape}: {self.observation_space.shape} is needed")
        if not np.isfinite(found).all():
            lost = ~np.isfinite(found).all(axis=1)
            _refuse_lost(lost & ~stopped, found, "observe")
            found[lost] = self._observed[lost]
        return found

    def step(self, actions: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Apply one action to each machine; return (observations, rewards, terminations, truncations, info).

        actions: (num_envs, nu), clipped to the limits.   info: empty, or the causes of the machines that stopped.
        """
        s, restarted = self.stepper, np.flatnonzero(self._ended)
        u = np.clip(self._actions(actions), self._low, self._high)
        s.step(u, self._f.steps)
        self.elapsed += 1
        if restarted.size:
            self._start(restarted)
        q, v, status = s.q, s.v, s.status
        stopped = status != 0
        reward = _one_per_machine(self._f.reward(q, v, u), len(q), "reward").astype(float)
        terminated = _one_per_machine(self._f.terminated(q, v), len(q), "terminated", "b") & ~stopped
        truncated = stopped | ((self.elapsed >= self._longest) & ~terminated)
        reward[restarted], terminated[restarted], truncated[restarted] = 0.0, False, False
        if not np.isfinite(reward).all():
            lost = ~np.isfinite(reward)
            _refuse_lost(lost & ~stopped, reward, "reward")
            reward[lost] = 0.0
        self._ended, self._observed = terminated | truncated, self._observe(q, v, stopped)
        info: dict[str, Any] = {}
        if stopped.any():
            info = {"stopped": np.array([s.causes[i] if i else None for i in status], dtype=object), "_stopped": stopped}
        return self._observed.copy(), reward, terminated, truncated, info


class _EnvironmentFunctions:
    """The functions that the caller gave, or their defaults.   steps: steps of the stepper for each action."""

    def __init__(self, reward: Numbers, terminated: Numbers | None, observe: Numbers | None, steps: int) -> None:
        self.reward, self.steps = reward, steps
        self.terminated: Numbers = terminated or (lambda q, v: np.zeros(len(q), dtype=bool))
        self.observe: Numbers = observe or (lambda q, v: np.hstack([q, v]))


def vector_environment(
    m: Mechanism | AbstractSystem,
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
    error_bound: float = BOUND,
    **options: Any,
) -> Environment:
    """A Gymnasium vector environment of many copies of one machine, moved by one `stepper`. Needs the package gymnasium.

    A stepper does not check its steps. So a short trial of random actions is made by `run` first, whose warnings are passed on.

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
        error_bound: bound on the step error in the trial of random actions, as in `run`; inf: no trial.
        options: further arguments of `stepper`, except parameters and accuracy: control, scheme, threads, backend, strict, ...
    Returns:
        Environment with `reset`, `step` and the spaces that Gymnasium requires, in float64.
    Raises ModelError: an input without limits; wrong arguments.
    Warns RunWarning: steps are too long for the motion under random actions, or machines stop; as `run`.

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
    if options.pop("accuracy", None) is not None:
        raise ModelError("vector_environment: it takes steps of one length and no accuracy; give step= and error_bound=")
    machines = stepper(m, runs=as_whole(runs, "runs"), step=step, **options)
    named = [x for given in (q, v) if isinstance(given, Mapping) for x in given.values() if _axes(x) == 1]
    count = max([1, *(len(x) for x in (*named, *(x for x in (q, v) if _axes(x) == 2)))])
    starts = stepper(m, runs=count, step=step, **options)
    starts.reset(q, v)
    saved = starts.save()
    if (saved.status != 0).any() or (saved.kinds != REGULAR).any():
        why = "cannot be put onto the constraints" if (saved.status != 0).any() else "is in a singular configuration"
        raise ModelError(f"vector_environment: a start {why}; see `assemble`, and choose others")
    machines.reset(starts.q[0], starts.v[0], correct_start=False)
    functions = _EnvironmentFunctions(reward, terminated, observe, as_whole(steps, "steps"))
    env = Environment(machines, starts, _limits(mechanism, machines.u_names, limits), functions, as_whole(longest, "longest"))
    if np.isfinite(as_bound(error_bound)):
        actions = min(TRIAL_ACTIONS, max(TRIAL_STEPS // functions.steps, 1), longest)
        _try(m, starts, env.single_action_space, actions, functions.steps, step, options | {"error_bound": error_bound})
    return env


def _axes(value: Any) -> int:
    """Number of axes of an array, 0 for what is none, which `reset` refuses."""
    try:
        return np.ndim(value)
    except ValueError:  # rows of different lengths
        return 0


def _try(
    m: Mechanism | AbstractSystem, starts: Stepper, space: Any, actions: int, steps: int, step: float, options: Any
) -> None:
    """Run some of the starts under random actions, and pass on the warnings of this run.

    space: of the actions of one machine.   actions, steps: number of actions, and of steps for each.   options: of `run`.
    """
    q, v = (np.resize(x, (TRIAL_RUNS, x.shape[1])) for x in (starts.q, starts.v))
    every = batch_space(batch_space(space, TRIAL_RUNS), actions)
    every.seed(0)
    more: dict[str, Any] = {"u": every.sample(), "u_step": step * steps} if space.shape[0] else {}
    more |= options | {"record": ("q",)}
    with collected() as messages:
        try:
            run(m, q, v, duration=actions * steps * step, step=step, every=steps, **more)
        except RunError as error:
            messages.append(str(error))
    for message in messages:
        notice(f"vector_environment, in a trial of {actions} random actions of {TRIAL_RUNS} machines: {message}", RunWarning)


def _refuse_lost(lost: np.ndarray, values: np.ndarray, what: str) -> None:
    """Raise ModelError if a caller's function gave a value that is not finite.

    lost: (runs,) of bool, where it did.   what: name of the function in the message.
    """
    if lost.any():
        at = int(np.argmax(lost))
        raise ModelError(f"vector_environment: {what} gives {brief(values[at])} for machine {at}, which is not finite")


def _one_per_machine(value: Any, runs: int, what: str, kinds: str = "fiu") -> np.ndarray:
    """The (runs,) array that a caller's function returned. Raises ModelError: the value has another shape or type.

    what: name of the function in the message.   kinds: of its numbers; "b" for True and False.
    """
    one = "True or False" if kinds == "b" else "one number"
    try:
        array = np.asarray(value)
    except ValueError:  # rows of different lengths
        array = np.zeros(0)
    if array.shape != (runs,) or array.dtype.kind not in kinds:
        found = array.shape if array.shape != (runs,) else brief(value)
        raise ModelError(f"vector_environment: {what} gives {found}: ({runs},) is needed, {one} for each machine")
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
