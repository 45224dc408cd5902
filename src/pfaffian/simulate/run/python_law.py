"""A law in plain Python within runs: called between the compiled steps, after its sensors and all modes are evaluated."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from itertools import takewhile
from typing import Any

import numpy as np

from pfaffian import kernel
from pfaffian.control.law_part import LawPart
from pfaffian.errors import ModelError, brief
from pfaffian.kernel.call.recipe import Backend
from pfaffian.kernel.remember import remembered
from pfaffian.model import reprs
from pfaffian.model.number import reals
from pfaffian.model.user_functions import call_user
from pfaffian.simulate.record.result import status_of
from pfaffian.simulate.step.sampling import in_python, instants, pass_on, sampling
from pfaffian.simulate.step.simulation import Simulation
from pfaffian.simulate.step.time_loop import TimeLoop
from pfaffian.states.abstract_system import show


@remembered(64)
def _sampled(s: Simulation, backend: Backend, lanes: int, strict: bool) -> kernel.Rollout:
    """A compiled loop whose steps change nothing, with the samplers that are otherwise part of the run's own loop."""
    return kernel.compile_rollout(
        lambda: s.traced.between, backend=backend, lanes=lanes, strict=strict, key=f"{s.key} between the steps"
    )


@dataclass(eq=False)
class PythonCalls:
    """Calls of a law in Python for the states of runs, and the messages of the runs in which it failed.

    p: (runs, np) parameters.   messages: run -> why it stopped.   function: that is called in these runs.
    first: whether it has not been called yet.
    """

    simulation: Simulation
    part: LawPart
    p: np.ndarray
    messages: dict[int, str] = field(default_factory=dict)
    first: bool = True

    def __post_init__(self) -> None:
        part = self.part
        assert part.python is not None
        self.function = part.python(self.simulation.mechanism, len(self.p)) if part.begins else part.python

    @property
    def what(self) -> str:
        """The name of the law in messages."""
        assert self.part.python is not None
        name = reprs.function(self.part.python)
        return name if self.part.begins else f"the law in Python, {name}"

    @cached_property
    def names(self) -> list[str]:
        """Names of the numbers that it gives: inputs, then the entries of its signals."""
        signals = self.simulation.layout.of(self.part).signals
        return [*self.simulation.mechanism.u_names, *(name for name, n in signals for _ in range(n))]

    def answered(self, x: np.ndarray, t: float, status: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """States (runs, nx) with what the law gives at the time t [s], and (runs,) whether it failed in a run.

        status: (runs,); runs in which it is not 0 have stopped. The message of a failure is added to `messages`.
        """
        u = self._inputs(x, t, status)
        failed = (status == 0) & np.array([run in self.messages for run in range(len(x))])
        s, x = self.simulation, x.copy(order="F")
        going = (status == 0) & ~failed
        d = x[:, s.nx - s.layout.size :]
        passed = d[going].T.copy()
        for _ in range(2 if self.part.begins and self.first else 1):  # the second time, what is extrapolated has no slope yet
            pass_on(s.layout.of(self.part).slots, passed, u[going].T, t)
        self.first = False
        d[going] = passed.T
        return x, failed

    def _inputs(self, x: np.ndarray, t: float, status: np.ndarray) -> np.ndarray:
        """(runs, given) inputs from the law, then its signals. A call that fails stops all runs, a number that is not finite
        only its own run."""
        s = self.simulation
        p, d = s.parameters(np.broadcast_to(self.p, (len(x), self.p.shape[1])), x), x[:, s.nx - s.layout.size :]
        before = takewhile(lambda placed: placed.part is not self.part, s.layout.parts)
        signals = {
            name: d[:, where] for placed in before for name, where in placed.named
        }  # its own sensors are the last of them
        given = [*show(s.system, x, p, t), *([signals] if self.part.measures else [])]
        try:
            u = self._called(t, given, (len(x), len(self.names)))
        except ModelError as error:
            self.messages |= dict.fromkeys(np.flatnonzero(status == 0).tolist(), f"{error} at t = {t:.6g} s")
            return np.zeros((len(x), len(self.names)))
        for run, i in np.argwhere(~np.isfinite(u)).tolist():
            words = f"{self.what}: u is not finite: {self.names[i]!r} is {u[run, i]} at t = {t:.6g} s"
            self.messages.setdefault(run, words)
        return u

    def _called(self, t: float, given: list[Any], shape: tuple[int, int]) -> np.ndarray:
        """(runs, given) what the function returns. For a single run its arguments and u have no axis of runs."""
        single = shape[0] == 1

        def of_run(a: np.ndarray) -> np.ndarray:
            return np.array(a[0] if single else a)

        arguments = [{n: of_run(y) for n, y in a.items()} if isinstance(a, dict) else of_run(a) for a in given]
        answer = call_user(self.function, self.what, t, *arguments)
        try:
            u = reals(answer, self.what)
        except ModelError:
            raise ModelError(f"{self.what} gives {brief(answer)}: numbers are needed") from None
        if u.shape != shape[single:]:
            each = "" if single else ", a row for each run"
            raise ModelError(f"{self.what} gives u of shape {u.shape}: {shape[single:]} is needed{each}")
        return u.reshape(shape)


@dataclass(eq=False)
class PythonLaw:
    """A law in Python with the samplers of its run in steps of one length.

    due: period and phase of each sampler, in steps.   due_law: period and phase of the law, in steps.
    """

    loop: TimeLoop
    calls: PythonCalls
    rollout: kernel.Rollout
    due: list[tuple[int, int]]
    due_law: tuple[int, int]

    def until(self, k: int) -> int:
        """Number of steps from k to the next step at which a sampler or the law is due."""
        return min(phase - k if k < phase else period - (k - phase) % period for period, phase in (*self.due, self.due_law))

    def is_due(self, k: int) -> bool:
        """Whether a sampler or the law is due at step k."""
        return any(_is_due(when, k) for when in (*self.due, self.due_law))

    def answered(
        self, x: np.ndarray, k: int, status: np.ndarray, stopped: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """States (runs, nx), status and stopped after the samplers and the law that are due at step k.

        Runs in which the law fails are stopped.
        """
        loop = self.loop
        if any(_is_due(when, k) for when in self.due):
            span = loop.span(k, 1)._replace(every=1, sampling=self.due)
            r = self.rollout(x, loop.series, loop.p, span, threads=loop.threads, status=status, stopped=stopped)
            x, status, stopped = r.x, r.status, r.stopped
        if not _is_due(self.due_law, k) or status.all():
            return x, status, stopped
        x, failed = self.calls.answered(x, loop.when.start + k * loop.when.step, status)
        return x, np.where(failed, status_of(loop.simulation, "python"), status), np.where(failed, k, stopped)


def _is_due(when: tuple[int, int], k: int) -> bool:
    """Whether a sampler with this period and phase, in steps, is due at step k."""
    period, phase = when
    return k >= phase and (k - phase) % period == 0


def python_law_of(loop: TimeLoop, backend: Backend, strict: bool) -> PythonLaw | None:
    """The law in Python of a run, None if it has none."""
    s = loop.simulation
    part = in_python(s.control)
    if part is None:
        return None
    if loop.when.first:
        refuse_continued(part)
    rollout = _sampled(s, backend, 8 if len(loop.p) > 1 else 1, strict)
    step = loop.when.step
    calls = PythonCalls(s, part, loop.p)
    return PythonLaw(loop, calls, rollout, instants(s.control, step), sampling([part], step)[0])


def refuse_continued(part: LawPart) -> None:
    """Raise ModelError if a run cannot continue another one, because its law has a state that results do not contain."""
    if part.begins:
        assert part.python is not None
        raise ModelError(
            f"start_from: {reprs.function(part.python)} has a state that the result does not contain: run the whole time"
        )


def messages_of(begun: tuple[str, ...], calls: PythonCalls | None, runs: int) -> tuple[str, ...]:
    """Why each run could not start, or its law in Python failed; "" where neither is so."""
    if calls is None:
        return begun
    messages = np.broadcast_to(np.array(begun, dtype=object), runs)
    return tuple(calls.messages.get(run, words) for run, words in enumerate(messages.tolist()))
