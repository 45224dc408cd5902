"""compile_rollout(step, observe) -> Rollout: the time loop, recording and status of every run in compiled code."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import casadi as ca
import numpy as np

from pfaffian.errors import BuildError, ModelError
from pfaffian.kernel import memory
from pfaffian.kernel.build import load_or_none
from pfaffian.kernel.interpret import evaluate
from pfaffian.kernel.kernel import Backend, check_options, same
from pfaffian.kernel.passes import optimise
from pfaffian.kernel.program import Program
from pfaffian.kernel.text import rollout_source
from pfaffian.kernel.trace import trace

Hold = Literal["zero", "linear"]


class RolloutResult(NamedTuple):
    """x (batch, nx) last good states, records (n, batch, ny), status (batch,) int32, stopped (batch,) step or -1."""

    x: np.ndarray
    records: np.ndarray
    status: np.ndarray
    stopped: np.ndarray


def compile_rollout(
    step: ca.Function, observe: ca.Function, *, backend: Backend = "auto", lanes: int = 8, strict: bool = True
) -> Rollout:
    """Compile a time loop.

    Args:
        step: (x[nx], u0[nu], u1[nu], p[np], t[1], h[1]) -> (x_next[nx], fault[nf]); u0, u1 at both ends of the step.
        observe: (x[nx], u[nu], p[np], t[1]) -> y[ny].
    """
    check_options(backend, lanes)
    return rollout_from_programs(
        optimise(trace(step)), optimise(trace(observe)), backend=backend, lanes=lanes, strict=strict
    )


def rollout_from_programs(
    step: Program, observe: Program, *, backend: Backend = "auto", lanes: int = 8, strict: bool = True
) -> Rollout:
    """Rollout of Programs as they are, no passes."""
    _check_shapes(step, observe)
    source = rollout_source(step, observe, lanes)
    doubles = lanes * (step.n_in + step.n_out + observe.n_in + observe.n_out + source.slots)
    plain = Rollout(step, observe, source.text, {}, lanes)
    loaded = None
    if backend != "numpy":
        loaded = load_or_none(
            source.text, strict, lambda lib: _agrees(_with_native(plain, lib, doubles, {}), plain, strict), backend
        )
    provenance: dict[str, Any] = {"digest": f"{step.digest()}:{observe.digest()}", "lanes": lanes, "strict": strict}
    if loaded is None:
        return Rollout(step, observe, source.text, provenance | {"backend": "numpy"}, lanes)
    return _with_native(plain, loaded[0], doubles, provenance | {"backend": "c"} | loaded[1])


def _check_shapes(step: Program, observe: Program) -> None:
    if len(step.inputs) != 6 or len(step.outputs) != 2:
        raise BuildError("step must be (x, u0, u1, p, t, h) -> (x_next, fault)")
    nx, nu, nu1, n_p, nt, nh = step.inputs
    if nu != nu1 or nt != 1 or nh != 1 or len(step.outputs[0]) != nx:
        raise BuildError(f"step has inputs {step.inputs} and a next state of {len(step.outputs[0])}: they do not fit")
    if observe.inputs != (nx, nu, n_p, 1) or len(observe.outputs) != 1:
        raise BuildError(f"observe has inputs {observe.inputs}: needs (x, u, p, t) = {(nx, nu, n_p, 1)} and one output")


class _Port(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("run", ctypes.c_int64), ("element", ctypes.c_int64)]


class _Task(ctypes.Structure):
    """The struct Rollout of rollout.h."""

    _fields_ = (
        [(name, _Port) for name in ("x0", "u", "p", "x", "records")]
        + [(name, ctypes.c_int64) for name in ("u_sample", "record", "batch", "samples", "first", "steps", "every")]
        + [(name, ctypes.c_int64) for name in ("last", "linear", "stride")]
        + [(name, ctypes.c_void_p) for name in ("status", "stopped")]
        + [(name, ctypes.c_double) for name in ("t0", "h", "limit")]
    )


class _Span(NamedTuple):
    """When and how: what a call of a Rollout says besides its arrays."""

    t0: float
    h: float
    steps: int
    every: int
    first: int
    last: bool
    hold: Hold
    stride: int
    limit: float

    def recorded(self) -> list[int]:
        """Step indices at which a record is taken."""
        start = -(-self.first // self.every) * self.every
        return list(range(start, self.first + self.steps + bool(self.last), self.every))


@dataclass(frozen=True, eq=False)
class Rollout:
    """rollout(x0, u, p, t0=, h=, steps=, every=) -> RolloutResult."""

    step: Program
    observe: Program
    source: str
    provenance: dict[str, Any]
    lanes: int = 8
    native: Any = field(default=None, repr=False)
    doubles: int = 0

    def __call__(
        self, x0: Any, u: Any, p: Any, *, t0: float, h: float, steps: int, every: int, first: int = 0, hold: Hold = "zero",
        stride: int = 1, limit: float = 1e12, threads: int = 1, status: Any = None, stopped: Any = None, last: bool = False
    ) -> RolloutResult:  # fmt: skip
        """Run steps k = first ... first + steps - 1 from the states x0, with t_k = t0 + k h.

        Args:
            x0: (batch, nx) or (nx,).   p: (batch, np) or (np,).
            u: (samples, nu) or (samples, batch, nu), a sample every `stride` steps, the last one kept on;
                hold "zero" keeps a sample through its steps, "linear" interpolates between samples.
            every: the state before each step k with k % every == 0 is observed; last: also after the final step.
                So calls that follow one another with `first` give the records of one call, to the bit.
            limit: a run stops when |x_i| exceeds it.
            status, stopped: those of the call before. A run with a status stays as it is.
        Returns:
            status 0 running, 1 state not finite or beyond the limit, 2 + i fault i not zero (a nan included).
            A stopped run keeps its last good state; its further records are nan.
        """
        nx, nu, _, n_p, _, _ = self.step.inputs
        span = _Span(float(t0), float(h), int(steps), int(every), int(first), bool(last), hold, int(stride),
                     min(float(limit), np.finfo(np.float64).max))  # fmt: skip
        _check_span(span)
        x0 = _array(x0, "x0", (1, 2), nx)
        u = _array(u, "u", (2, 3), nu)
        p = _array(p, "p", (1, 2), n_p)
        if len(u) == 0:
            raise ModelError("u has no sample: give at least one, of width 0 for a step without input")
        batch = _batch([x0 if x0.ndim == 2 else None, u.swapaxes(0, 1) if u.ndim == 3 else None, p if p.ndim == 2 else None])
        result = RolloutResult(
            np.empty((nx, batch)).T,
            np.empty((len(span.recorded()), self.observe.n_out, batch)).swapaxes(1, 2),
            _resumed(status, batch, np.int32, 0),
            _resumed(stopped, batch, np.int64, -1),
        )
        if batch:
            (self._interpret if self.native is None else self._run)(x0, u, p, span, result, threads)
        return result

    def _run(
        self, x0: np.ndarray, u: np.ndarray, p: np.ndarray, span: _Span, result: RolloutResult, threads: int
    ) -> None:
        def port(array: np.ndarray, axis: int | None) -> _Port:
            return _Port(*memory.port(array, axis))

        task = _Task(
            port(x0, 0 if x0.ndim == 2 else None), port(u, 1 if u.ndim == 3 else None), port(p, 0 if p.ndim == 2 else None),
            port(result.x, 0), port(result.records, 1), u.strides[0] >> 3, result.records.strides[0] >> 3,
            len(result.status), len(u), span.first, span.steps, span.every, span.last, span.hold == "linear", span.stride,
            result.status.ctypes.data, result.stopped.ctypes.data, span.t0, span.h, span.limit,
        )  # fmt: skip

        def work(begin: int, end: int) -> None:
            self.native(ctypes.byref(task), begin, end, memory.WORKSPACES.get(self.doubles))

        memory.in_blocks(work, len(result.status), self.lanes, threads)

    def _interpret(
        self, x0: np.ndarray, u: np.ndarray, p: np.ndarray, span: _Span, result: RolloutResult, threads: int
    ) -> None:
        """The same loop on NumPy arrays; it says what rollout.h means."""
        batch = len(result.status)
        x = np.array(np.broadcast_to(x0, (batch, x0.shape[-1])))
        records, index, end = iter(result.records), span.recorded(), span.first + span.steps
        wanted = set(index)
        for k in range(span.first, end + 1):
            running = result.status == 0
            t = np.array([span.t0 + k * span.h])
            u0 = _input_at(u, k, span)
            if k in wanted:
                y = evaluate(self.observe, [x, u0, p, t])[0]
                next(records)[...] = np.where(running[:, None], y, np.nan)
            if k == end or not running.any():
                continue
            u1 = _input_at(u, k + 1, span) if span.hold == "linear" else u0
            x_next, fault = evaluate(self.step, [x, u0, u1, p, t, np.array([span.h])])
            now = _verdict(x_next, fault, span.limit)
            x = np.where((running & (now == 0))[:, None], x_next, x)
            failing = running & (now != 0)
            result.status[failing] = now[failing]
            result.stopped[failing] = k
        result.x[...] = x


def _input_at(u: np.ndarray, j: int, span: _Span) -> np.ndarray:
    """Input at the time t0 + j h."""
    last, i = len(u) - 1, j // span.stride
    sample = u[min(i, last)]
    if span.hold == "zero" or i >= last or j % span.stride == 0:
        return sample
    with np.errstate(all="ignore"):
        return sample + (j % span.stride) / span.stride * (u[i + 1] - sample)


def _verdict(x: np.ndarray, fault: np.ndarray, limit: float) -> np.ndarray:
    """0 good, 1 state not finite or beyond the limit, 2 + i fault i. A fault that is a number is the better reason."""
    good = np.all(np.fabs(x) <= limit, axis=1)
    code = np.where(good, 0, 1)
    for i in reversed(range(fault.shape[1])):
        f = fault[:, i]
        code = np.where((f != 0) & (good | (f == f)), 2 + i, code)
    return code


def _array(value: Any, name: str, ndims: tuple[int, int], width: int) -> np.ndarray:
    array = memory.addressable(memory.as_float(value, name))
    if array.ndim not in ndims or array.shape[-1] != width:
        raise ModelError(f"{name} has shape {array.shape}: needs {ndims[0]} or {ndims[1]} axes, the last of length {width}")
    return array


def _batch(arrays: list[np.ndarray | None]) -> int:
    """Number of runs of the arrays that have an axis for them, which must agree; 1 without any."""
    sizes = {len(a) for a in arrays if a is not None}
    if len(sizes) > 1:
        raise ModelError(f"x0, u and p have different numbers of runs: {sorted(sizes)}")
    return sizes.pop() if sizes else 1


def _resumed(value: Any, batch: int, dtype: Any, default: int) -> np.ndarray:
    """A fresh array of one integer a run."""
    if value is None:
        return np.full(batch, default, dtype)
    array = np.array(value, dtype=dtype)
    if array.shape != (batch,):
        raise ModelError(f"status and stopped need one integer for each of {batch} runs, got shape {array.shape}")
    return array


def _check_span(span: _Span) -> None:
    if span.steps < 0 or span.every < 1 or span.stride < 1 or span.first < 0:
        raise ModelError("rollout needs steps >= 0, every >= 1, stride >= 1, first >= 0")
    if span.hold not in ("zero", "linear"):
        raise ModelError(f"hold {span.hold!r}: choose zero or linear")
    if not np.isfinite([span.t0, span.h]).all() or np.isnan(span.limit):
        raise ModelError("t0 and h must be finite, limit not nan")


def _with_native(plain: Rollout, library: ctypes.CDLL, doubles: int, provenance: dict[str, Any]) -> Rollout:
    function = library.pfaffian_rollout
    function.argtypes = [ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p]
    function.restype = None
    return Rollout(plain.step, plain.observe, plain.source, provenance, plain.lanes, function, doubles)


def _agrees(native: Rollout, plain: Rollout, strict: bool) -> bool:
    """Trial of a new object: two steps of 8 runs against the interpreter."""
    nx, nu, _, n_p, _, _ = plain.step.inputs
    random = np.random.default_rng(7)
    arrays = [random.uniform(-1.0, 1.0, shape) for shape in ((8, nx), (3, 8, nu), (8, n_p))]
    results = [r(*arrays, t0=0.1, h=0.01, steps=2, every=1, last=True) for r in (native, plain)]
    return all(same(a, b, strict) for a, b in zip(results[0][:2], results[1][:2], strict=True)) and bool(
        np.array_equal(results[0].status, results[1].status)
    )
