"""`compile_rollout` makes a Rollout of a step: time loop, recording and status of every run in compiled code."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from pfaffian.errors import BuildError, ModelError
from pfaffian.kernel.build.compiled_passes import passes
from pfaffian.kernel.build.exercise import of_loop
from pfaffian.kernel.build.trial import Trial
from pfaffian.kernel.call import memory
from pfaffian.kernel.call.obtain import Code, obtain
from pfaffian.kernel.call.recipe import Backend, PortLengths, Recipe, mode_of, recipe
from pfaffian.kernel.call.tiers import Tier
from pfaffian.kernel.program.hoist import hoist
from pfaffian.kernel.program.numpy_loop import LARGEST, RolloutResult, Span, as_span, run_loop
from pfaffian.kernel.program.program import Program
from pfaffian.kernel.program.share import share
from pfaffian.kernel.text.source import rollout_source


def compile_rollout(
    step: ca.Function | Callable[[], tuple[ca.Function, ...]],
    observe: ca.Function | None = None,
    samplers: Sequence[ca.Function] = (),
    *,
    backend: Backend = "auto",
    lanes: int = 8,
    strict: bool = True,
    key: str | None = None,
) -> Rollout:
    """Compile a time loop of Functions of SX.

    Args:
        step: (x[nx], u0[nu], u1[nu], p[np], t[1], h[1]) -> (x_next[n], fault[nf]), with the inputs u0 and u1 at both ends of
            the step. n is at most nx; the other entries of x do not change. With a third result (1,) the step is called again
            in the runs where that is not zero, before the time moves on; it must become zero, or raise a fault, after a bounded
            number of calls. Or a function without arguments that returns (step, observe, *samplers).
        observe: (x[nx], u[nu], p[np], t[1]) -> y[ny], the record.
        samplers: Functions (x[nx], u[nu], p[np], t[1]) -> (x[k], fault[..]) that change the state at some instants only: its
            first k entries, the same number for all samplers.
        backend, lanes, strict: as for `compile`.
        key: identifies all these Functions permanently, as for `compile`.
    """

    def build() -> tuple[Any, ...]:
        if observe is not None or isinstance(step, ca.Function) or not callable(step):
            return step, observe, *samplers
        functions = step()
        if not isinstance(functions, tuple) or len(functions) < 2:
            raise ModelError(f"the function given to compile_rollout must return (step, observe, *samplers), got {functions!r}")
        return functions

    return _rollout(recipe(build, rollout_source, backend, lanes, mode_of(strict), _together), backend, key)


def _rollout(plan: Recipe, backend: Backend, key: str | None) -> Rollout:
    """The Rollout of a recipe."""
    code = obtain(plan, "pfaffian_rollout", _trial, backend, key)
    return Rollout(code)


def _together(step: Program, observe: Program, *samplers: Program) -> tuple[Program, ...]:
    """Apply the passes over all Programs of a loop, `share` and `hoist`. Raises BuildError: their ports do not fit."""
    _check_shapes(step, observe, *samplers)
    how = passes()
    programs = step, observe, *samplers
    before = [sum(program.inputs[: -3 if program is step else -2]) for program in programs]
    parameters = [range(start, start + step.inputs[3]) for start in before]
    return hoist(share(*programs, passes=how), parameters, how)


def _check_shapes(step: Program, observe: Program, *samplers: Program) -> None:
    """Raise BuildError if the ports of step, observation and samplers do not fit."""
    if len(step.inputs) != 6 or [len(port) for port in step.outputs[2:]] not in ([], [1]):
        raise BuildError("step must be (x, u0, u1, p, t, h) -> (x_next, fault), or with a third result of one number")
    nx, nu, nu1, n_p, nt, nh = step.inputs
    if nu != nu1 or nt != 1 or nh != 1 or len(step.outputs[0]) > nx:
        raise BuildError(f"step has inputs {step.inputs} and a next state of {len(step.outputs[0])}: they do not fit")
    if observe.inputs != (nx, nu, n_p, 1) or len(observe.outputs) != 1:
        raise BuildError(f"observe has inputs {observe.inputs}: needs (x, u, p, t) = {(nx, nu, n_p, 1)} and one output")
    for s in samplers:
        if s.inputs != observe.inputs or len(s.outputs) != 2:
            raise BuildError(f"a sampler has inputs {s.inputs}: needs (x, u, p, t) = {(nx, nu, n_p, 1)} -> (x, fault)")
        changed = len(s.outputs[0])
        if changed > nx or changed != len(samplers[0].outputs[0]):
            raise BuildError(f"a sampler changes {changed} of the {nx} entries of x: needs the same number as the others")


class _PortStruct(ctypes.Structure):
    """The struct Port of ports.h."""

    _fields_ = [("data", ctypes.c_void_p), ("run", ctypes.c_int64), ("element", ctypes.c_int64)]


class _RolloutStruct(ctypes.Structure):
    """The struct Rollout of rollout.h."""

    _fields_ = (
        [(name, _PortStruct) for name in ("x0", "u", "p", "x", "records")]
        + [(name, ctypes.c_int64) for name in ("u_sample", "record", "batch", "count", "samples", "first", "steps", "every")]
        + [(name, ctypes.c_int64) for name in ("last", "linear", "stride", "chooser", "until_still")]
        + [(name, ctypes.c_void_p) for name in ("sampling", "status", "stopped")]
        + [(name, ctypes.c_double) for name in ("t0", "h", "limit")]
        + [("parts", ctypes.c_void_p), ("room", ctypes.c_int64), ("noted", ctypes.c_void_p)]
    )


@dataclass(frozen=True, eq=False)
class Rollout:
    """Compiled time loop: rollout(x0, u, p, Span(t0, h, steps)) -> RolloutResult."""

    code: Code = field(repr=False)

    @property
    def shapes(self) -> tuple[PortLengths, ...]:
        """Lengths of the inputs and outputs of step, observation and samplers."""
        return self.code.shapes

    @property
    def provenance(self) -> dict[str, Any]:
        """Digest of the Programs, options, the backend that computes now, and how it was compiled."""
        return self.code.provenance

    @property
    def in_c(self) -> bool:
        """Whether the loop runs in C, as compiled code or by the interpreter, and not in NumPy."""
        return self.code.tiers is not None

    @property
    def step(self) -> Program:
        """The step's Program. It is traced when first needed if the rollout came from the store by its key."""
        return self.code.recipe.programs[0]

    @property
    def observe(self) -> Program:
        """The observation's Program."""
        return self.code.recipe.programs[1]

    @property
    def samplers(self) -> tuple[Program, ...]:
        """The samplers' Programs."""
        return self.code.recipe.programs[2:]

    @property
    def source(self) -> str:
        """The C text."""
        return self.code.recipe.source.text

    def __call__(
        self,
        x0: Any,
        u: Any,
        p: Any,
        span: Span,
        *,
        threads: int = 1,
        status: Any = None,
        stopped: Any = None,
        room: int = 0,
    ) -> RolloutResult:
        """Run the steps of a span from the states x0.

        Args:
            x0: (batch, nx) or (nx,) states.
            u: (samples, nu) or (samples, batch, nu) samples of the inputs.
            p: (batch, np) or (np,) parameters.
            span: the steps, and what is recorded.
            threads: number of threads that share the blocks of runs, default 1.
            status, stopped: those of the previous call; None: all runs are running. A run with a nonzero status does not move.
            room: of a single run, the number of rows of `parts` that is expected; 0: none are wanted.
        Returns:
            RolloutResult. The status of a run is 0 while it runs, 1 if its state is not finite or beyond the limit, 2 + i if
            fault i is not zero (or nan); faults are counted through the step, then the samplers. The state of a stopped run is
            its last good one, and its later records are nan.
        """
        nx, nu, _, n_p, _, _ = self.shapes[0].inputs
        span = as_span(span)
        if len(span.sampling) != len(self.shapes) - 2:
            raise ModelError(f"there are {len(self.shapes) - 2} samplers, but sampling has periods for {len(span.sampling)}")
        if span.chooser is not None and not 0 <= span.chooser < nx:
            raise ModelError(f"chooser {span.chooser}: the index of an entry of x is needed, from 0 to {nx - 1}")
        x0 = _array(x0, "x0", (1, 2), nx)
        u = _array(u, "u", (2, 3), nu)
        p = _array(p, "p", (1, 2), n_p)
        if len(u) == 0:
            raise ModelError("u has no sample: give at least one, of width 0 for a step without input")
        runs = [len(a) for a in (x0, p) if a.ndim == 2] + ([u.shape[1]] if u.ndim == 3 else [])
        if len(set(runs)) > 1:
            raise ModelError(f"x0, u and p have different numbers of runs: {sorted(set(runs))}")
        batch = runs[0] if runs else 1
        tier = self.tier(batch, span.steps, span.sampling)
        result = RolloutResult(
            np.empty((nx, batch)).T,
            np.empty((len(span.recorded()), sum(self.shapes[1].outputs), batch)).swapaxes(1, 2),
            _resumed(status, batch, np.int32, 0),
            _resumed(stopped, batch, np.int64, -1),
            tier.name if tier else "numpy",
        )
        if batch and tier:
            sampling = np.array(span.sampling, dtype=np.int64).reshape(-1)
            task = _task(x0, u, p, span, result, sampling)
            if not room:
                self._run(tier, task, threads)
                return result
            parts, noted = np.empty((room, 1 + nx)), np.zeros(1, np.int64)
            task.parts, task.room, task.noted = memory.address(parts), room, memory.address(noted)
            self._run(tier, task, threads)
            if noted[0] <= room:
                return result._replace(parts=parts[: noted[0]])
            so_far = {"status": status, "stopped": stopped}
            return self(x0, u, p, span, threads=threads, room=int(noted[0]), **so_far)
        rows = run_loop(self.step, self.observe, self.samplers, x0, u, p, span, result) if batch else []
        return result._replace(parts=np.array(rows).reshape(-1, 1 + nx)) if room else result

    def tier(self, batch: int, steps: int, sampling: Sequence[tuple[int, int]]) -> Tier | None:
        """The tier for a call of this many steps with the samplers that they call; None for NumPy."""
        if not self.code.tiers:
            return None
        blocks, (step, _, *samplers) = -(-batch // self.code.recipe.lanes), self.code.work
        a_step = step + sum(n / period for n, (period, _) in zip(samplers, sampling, strict=True))
        return self.code.tiers.take(blocks * a_step * steps)

    def _run(self, tier: Tier, task: _RolloutStruct, threads: int) -> None:
        """Run the time loop in C and fill in the results of the task."""

        def work(begin: int, end: int) -> None:
            tier.call(ctypes.byref(task), begin, end, memory.WORKSPACES.get(tier.doubles))

        memory.in_blocks(work, task.batch, self.code.recipe.lanes, threads)


def _task(x0: Any, u: Any, p: Any, span: Span, result: RolloutResult, sampling: Any) -> _RolloutStruct:
    """The struct Rollout of a call. The arrays, all of NumPy or all of one device, must outlive it."""

    def port(array: Any, axis: int | None = 0) -> _PortStruct:
        return _PortStruct(*memory.port(array, axis))

    shared = [port(x0, 0 if x0.ndim == 2 else None), port(u, 1 if u.ndim == 3 else None)]
    shared += [port(p, 0 if p.ndim == 2 else None), port(result.x), port(result.records, 1)]
    when = [span.first, span.steps, span.every, span.last, span.hold == "linear", span.stride]
    when += [0 if span.chooser is None else 1 + span.chooser, span.until_still]
    return _RolloutStruct(
        *shared, u.strides[0] >> 3, result.records.strides[0] >> 3, len(result.status), len(result.records), len(u), *when,
        *map(memory.address, (sampling, result.status, result.stopped)), span.t0, span.h, span.limit,
    )  # fmt: skip


class Buffers(NamedTuple):
    """The arrays in which an InPlace works: x (runs, nx), u (1, runs, nu), p (runs, np), status and stopped (runs,)."""

    x: np.ndarray
    u: np.ndarray
    p: np.ndarray
    status: np.ndarray
    stopped: np.ndarray


class InPlace:
    """A rollout that works in fixed arrays: each call continues from them and takes a few microseconds besides its steps.

    span: start time, step, and sampling; each call chooses the steps.
    """

    def __init__(self, rollout: Rollout, span: Span, arrays: Buffers, threads: int) -> None:
        self.rollout, self.arrays, self.threads = rollout, arrays, threads
        self.span, self.runs = as_span(span._replace(every=LARGEST)), len(arrays.status)
        self._task, (self._records, *self._alive) = task_in_place(rollout, self.span, arrays, np)
        self._at = ctypes.addressof(self._task)

    def advance(self, first: int, steps: int) -> None:
        """Compute the steps first ... first + steps - 1."""
        self._task.every, self._task.last, self._task.count = LARGEST, False, first == 0
        self._move(first, steps)

    def observed(self, first: int, steps: int) -> np.ndarray:
        """Compute the steps first ... first + steps - 1; return the record (runs, ny) at their end.

        The record is valid until the next call.
        """
        # The loop records step 0 as well, because 0 is a multiple of `every`.
        self._task.every, self._task.last, self._task.count = first + steps, True, 1 + (first == 0)
        self._move(first, steps)
        return self._records[int(first == 0)]

    def _move(self, first: int, steps: int) -> None:
        """Compute steps with the settings of the task, in C or NumPy."""
        tier = self.rollout.tier(self.runs, steps, self.span.sampling)
        if tier is None:
            self._by_numpy(first, steps)
            return
        self._task.first, self._task.steps = first, steps
        if self.threads == 1:
            tier.call(self._at, 0, self.runs, memory.WORKSPACES.get(tier.doubles))
            return

        def work(begin: int, end: int) -> None:
            tier.call(self._at, begin, end, memory.WORKSPACES.get(tier.doubles))

        memory.in_blocks(work, self.runs, self.rollout.code.recipe.lanes, self.threads)

    def _by_numpy(self, first: int, steps: int) -> None:
        """Compute steps in NumPy and copy the results into the arrays."""
        x, u, p, status, stopped = self.arrays
        span = self.span._replace(first=first, steps=steps, every=self._task.every, last=bool(self._task.last))
        r = self.rollout(x, u, p, span, status=status, stopped=stopped)
        x[...], status[...], stopped[...], self._records[: len(r.records)] = r.x, r.status, r.stopped, r.records


def task_in_place(rollout: Rollout, span: Span, arrays: Buffers, module: Any) -> tuple[_RolloutStruct, tuple[Any, Any]]:
    """The struct Rollout of calls that work in these arrays, and (records, sampling), two more arrays that must outlive it.

    module: the library of the arrays, NumPy or one with the same functions.
    """
    x, u, p, status, stopped = arrays
    record = module.empty((2, sum(rollout.shapes[1].outputs), len(status))).swapaxes(1, 2)  # of step 0 and of the last step
    sampling = module.asarray(np.array(span.sampling, dtype=np.int64).reshape(-1))
    return _task(x, u, p, span, RolloutResult(x, record, status, stopped), sampling), (record, sampling)


def _array(value: Any, name: str, ndims: tuple[int, int], width: int) -> np.ndarray:
    """The value as an array of float64. Raises ModelError: a wrong number of axes or length of the last axis."""
    array = memory.addressable(memory.as_float(value, name))
    if array.ndim not in ndims or array.shape[-1] != width:
        raise ModelError(f"{name} has shape {array.shape}: needs {ndims[0]} or {ndims[1]} axes, the last of length {width}")
    return array


def _resumed(value: Any, batch: int, dtype: Any, default: int) -> np.ndarray:
    """A new array with one integer for each run: the given ones, or the default if there are none."""
    if value is None:
        return np.full(batch, default, dtype)
    array = np.array(value, dtype=dtype)
    if array.shape != (batch,):
        raise ModelError(f"status and stopped need one integer for each of {batch} runs, got shape {array.shape}")
    return array


def _trial(plan: Recipe) -> Trial:
    """The trial of a time loop, by the function pfaffian_trial of rollout.h."""
    return Trial(lambda: of_loop(plan.programs), plan.source.doubles, plan.mode != "fast", plan.numbers)
