"""A machine that the caller's loop moves step by step: state in, state out, without a labelled result."""

from __future__ import annotations

import math
from typing import Any, NamedTuple, final

import numpy as np

from pfaffian import kernel
from pfaffian.errors import ModelError, brief, is_one_of
from pfaffian.evaluate.arrays import as_batch as rows_of
from pfaffian.evaluate.single_values import as_number, as_whole
from pfaffian.kernel import Span
from pfaffian.kernel.call.rollout import Buffers, InPlace
from pfaffian.kernel.program.numpy_loop import LARGEST
from pfaffian.simulate.run.abstract_stepper import AbstractStepper
from pfaffian.simulate.run.roll import first_step, initial_status
from pfaffian.simulate.run.saved import check_saved
from pfaffian.simulate.run.singular_start import REGULAR, entrances
from pfaffian.simulate.run.stepper_start import Options, first_of
from pfaffian.simulate.step.inputs import Times
from pfaffian.simulate.step.sampling import instants
from pfaffian.simulate.step.signals import entries_of
from pfaffian.simulate.step.simulation import Simulation
from pfaffian.simulate.step.time_loop import TimeLoop, compiled, settled
from pfaffian.starts.given_start import start_arguments


class Saved(NamedTuple):
    """The saved state of a stepper, from which `Stepper.restore` continues.

    x: (runs, nx) states, including the values that a law holds.   u: (1, runs, nu) current inputs.   p: (runs, np) parameters.
    status: (runs,).   stopped: (runs,) step at which a run stopped, -1 if it has not.   kinds: (runs,) kinds of starts, see
    `entrances`.   start: time at the start [s].   step: length of a step [s].   k: number of steps since the start.
    identity: digest of mechanism, state and law.
    """

    x: np.ndarray
    u: np.ndarray
    p: np.ndarray
    status: np.ndarray
    stopped: np.ndarray
    kinds: np.ndarray
    start: float
    step: float
    k: int
    identity: str


ARRAYS = "x", "u", "p", "status", "stopped", "kinds"
"""Fields of Saved that are arrays."""


@final
class Stepper(AbstractStepper[Saved]):
    """One machine, or many of one kind, moved step by step; returned by `stepper`.

    q: (nq,) or (runs, nq) configuration.   v: (nv,) or (runs, nv) velocities.   t: time [s].   u_names: names of the inputs.
    status: 0, or the index in `causes` of the reason why a run stopped; an integer or (runs,).
    A run that stops keeps its last good state, and the others continue. Accuracy, limits and rank are not checked as in `run`:
    choose the step with `run` first. A copy, by `copy.copy` or `copy.deepcopy`, moves on its own from the same state.

    Example:
        >>> import numpy as np, pfaffian as pf
        >>> slide = pf.joint("x", "prismatic", "world", "cart", axis=(1, 0, 0))
        >>> m = pf.mechanism("cart", [pf.body("cart", mass=2.0)], [slide], actuators=[pf.actuator("push", "x")])
        >>> s = pf.stepper(m, step=0.01)
        >>> for _ in range(100):
        ...     s.step(4.0 - 2.0 * s.v)
        >>> s.t, s.q.round(3), s.v.round(3)
        (1.0, array([0.738]), array([1.268]))
    """

    def __init__(self, simulation: Simulation, options: Options) -> None:
        super().__init__(simulation, options)
        self._rollout: kernel.Rollout = compiled(simulation, options.backend, 8 if self.runs > 1 else 1, options.strict)

    def __copy__(self) -> Stepper:
        twin = Stepper(self._s, self._options)
        if self._now is not None:
            twin.restore(self.save())
        return twin

    @property
    def operations(self) -> dict[str, int]:
        """Number of scalar operations in the rate of the state, including the law, and in a whole step."""
        return {"rate": self._s.traced.rhs.n_instructions(), "step": self._rollout.step.n_ops}

    def reset(
        self, q: Any = None, v: Any = None, *, t: float = 0.0, parameters: Any = None, correct_start: bool = True
    ) -> None:
        """Start again from another state.

        Args:
            q, v: configuration and velocities, (n,), (runs, n) or {name: value}; neutral and zero by default.
            t: time at the start [s], 0 by default.
            parameters: {name: value or (runs,) values}; None: the defaults of the mechanism.
            correct_start: whether q and v are put onto the constraints, as in `run`; True by default.
        Raises:
            ModelError: an argument is wrong, or has another number of runs than the stepper.
            RunError: no run can be put onto the constraints.

        Example:
            >>> import numpy as np, pfaffian as pf
            >>> slide = pf.joint("x", "prismatic", "world", "cart", axis=(1, 0, 0))
            >>> s = pf.stepper(pf.mechanism("cart", [pf.body("cart", mass=2.0)], [slide]), runs=2)
            >>> s.reset(q=[[0.0], [1.0]], v={"x": 3.0})
            >>> s.q.ravel(), s.v.ravel()
            (array([0., 1.]), array([3., 3.]))
        """
        s, start = self._s, as_number(t, "t")
        begun, x = first_of(s, self._options, start_arguments(s.mechanism, q, v, parameters), start, correct_start)
        kinds = entrances(s.mechanism, begun, start, self._options.backend) if correct_start else REGULAR
        u, p = np.zeros((1, self.runs, len(self.u_names))), np.broadcast_to(begun.p, (self.runs, begun.p.shape[1]))
        status, stopped = initial_status(s, begun, self.runs, 0)
        x = settled(s, self._rollout, x, u, p, start)
        self._place(Saved(x, u, p, status, stopped, np.broadcast_to(kinds, self.runs), start, self._options.step, 0, ""))

    def _place(self, at: Saved) -> None:
        """Copy the arrays of a saved state, and pass their addresses to the compiled code."""
        o = self._options
        copies: dict[str, Any] = {name: np.array(getattr(at, name), order="F") for name in ARRAYS}
        self._now = now = at._replace(**copies)
        self._k, self._singular = at.k, at.k == 0 and bool((at.kinds != REGULAR).any())
        self._due = instants(self._s.control, o.step)
        buffers = Buffers(now.x, now.u, now.p, now.status, now.stopped)
        self._moved = InPlace(*self.loop, buffers, o.threads)

    def step(self, u: Any = None, steps: int = 1) -> None:
        """Advance by some steps under constant inputs.

        Args:
            u: (nu,), (runs, nu) or {name: value} in the units of the mechanism; None: as in the call before, at first zero.
            steps: number of steps, 1 by default.
        Raises:
            ModelError: u has another shape, an unknown name, or a number that is not finite.
        """
        if type(steps) is not int or steps != 1:
            steps = as_whole(steps, "steps")
        at = self._at
        if u is not None:
            self._take(u, at.u)
        if self._singular:
            self._enter(at)
            steps -= 1
        if steps:
            self._moved.advance(self._k, steps)
            self._k += steps

    def _take(self, u: Any, to: np.ndarray) -> None:
        """Check the inputs u and copy them into `to` (1, runs, nu). Raises ModelError: see `step`."""
        if type(u) is np.ndarray and u.dtype == np.float64 and u.shape == to.shape[1 + (self._options.runs is None) :]:
            given = u
        else:
            given = rows_of(u, self.u_names, np.zeros(len(self.u_names)), "u")
            if len(given) not in (1, self.runs):
                raise ModelError(f"u is for {len(given)} runs; the stepper has {self.runs}")
        if not math.isfinite(np.vdot(given, given)) and not np.isfinite(given).all():
            raise ModelError("u is not finite everywhere")
        to[0] = given

    def _enter(self, at: Saved) -> None:
        """Take the first step; singular starts take a special one."""
        when = Times(at.start, self._options.step, 0.0, 1, LARGEST, 1)
        loop = TimeLoop(self._s, self._rollout, when, at.u, "zero", at.p, self._due, self._options.threads)
        r = first_step(loop, at.x, self._k, at.kinds, at.status, at.stopped)
        at.x[...], at.status[...], at.stopped[...] = r.x, r.status, r.stopped
        self._k, self._singular = self._k + 1, False

    @property
    def t(self) -> float:
        """Current time [s]."""
        return self._at.start + self._k * self._options.step

    @property
    def q(self) -> np.ndarray:
        """(nq,) or (runs, nq) configuration."""
        return self._part("q", 0, self._s.mechanism.nq)

    @property
    def v(self) -> np.ndarray:
        """(nv,) or (runs, nv) velocities."""
        return self._part("v", self._s.mechanism.nq, self._s.system.nx)

    def _part(self, name: str, start: int, end: int) -> np.ndarray:
        """A copy of q or v: a slice of the state, or computed where the system integrates another state than [q; v]."""
        if self._s.system.other_state:
            return self.observe()[name]
        x = self._at.x
        return x[0, start:end].copy() if self._options.runs is None else x[:, start:end].copy()

    @property
    def loop(self) -> tuple[kernel.Rollout, Span]:
        """The compiled loop, and the span of one step from the start, with the sampling instants of the law."""
        return self._rollout, Span(self._at.start, self._options.step, 1, limit=self._s.system.limit, sampling=self._due)

    def observe(self) -> dict[str, np.ndarray]:
        """q, v and the signals in `record` of the stepper at the current instant: {name: (size,) or (runs, size)}.

        Example:
            >>> import pfaffian as pf
            >>> slide = pf.joint("x", "prismatic", "world", "cart", axis=(1, 0, 0))
            >>> s = pf.stepper(pf.mechanism("cart", [pf.body("cart", mass=2.0)], [slide]), record=["energy"])
            >>> s.reset(v={"x": 3.0})
            >>> s.observe()
            {'q': array([0.]), 'v': array([3.]), 'energy': array([9.])}
        """
        at = self._at
        span = self.loop[1]._replace(steps=0, first=self._k, last=True)
        r = self._rollout(at.x, at.u, at.p, span, status=at.status, stopped=at.stopped)
        record = r.records[0, 0] if self._options.runs is None else r.records[0]
        return {name: record[..., where].copy() for name, where in entries_of(self._s.signals).items()}

    def save(self) -> Saved:
        """A copy of the current state, including the values that a law holds, for `restore`."""
        at = self._at
        copies: dict[str, Any] = {name: getattr(at, name).copy() for name in ARRAYS}
        return at._replace(**copies, k=self._k, identity=self._identity)

    def restore(self, saved: Saved) -> None:
        """Continue, to the same bits, from the saved state of a stepper of the same mechanism, law, step and number of runs.

        Raises ModelError: it was saved from another mechanism, law or number of runs, or with another step; it is not what
        `save` returned.

        Example:
            >>> import pfaffian as pf
            >>> slide = pf.joint("x", "prismatic", "world", "cart", axis=(1, 0, 0))
            >>> s = pf.stepper(pf.mechanism("cart", [pf.body("cart", mass=2.0)], [slide]), step=0.5)
            >>> s.reset(v={"x": 1.0})
            >>> there = s.save()
            >>> s.step()
            >>> s.restore(there)
            >>> s.t, s.q
            (0.0, array([0.]))
        """
        self._check(saved, "restore")
        if len(saved.x) != self.runs:
            raise ModelError(
                f"restore: the number of runs is {len(saved.x)} in the saved state and {self.runs} in the stepper; `put` moves "
                "single machines"
            )
        self._place(saved)

    def put(self, which: Any, saved: Saved, rows: Any) -> None:
        """Put some machines into saved states, while the others keep theirs.

        Args:
            which: (n,) indices of the machines, from 0, each at most once.
            saved: state saved by a stepper of the same mechanism, law and step, with any number of runs. Its time is ignored.
            rows: (n,) indices of its runs, from 0.
        Raises ModelError: it was saved from another mechanism or law, or with steps of another length; it is not what `save`
        returned; indices of another kind, number or range; or a run in it starts in a singular configuration, which needs a
        special first step: take that step before saving.

        Example:
            >>> import numpy as np, pfaffian as pf
            >>> slide = pf.joint("x", "prismatic", "world", "cart", axis=(1, 0, 0))
            >>> m = pf.mechanism("cart", [pf.body("cart", mass=2.0)], [slide])
            >>> s, starts = pf.stepper(m, runs=3), pf.stepper(m, runs=2)
            >>> starts.reset(q=[[1.0], [2.0]])
            >>> s.put(np.array([0, 2]), starts.save(), np.array([1, 0]))
            >>> s.q.ravel()
            array([2., 0., 1.])
        """
        self._check(saved, "put")
        which, rows = _indices(which, self.runs, "which"), _indices(rows, len(saved.x), "rows")
        if len(which) != len(rows):
            raise ModelError(f"put: which has {len(which)} machines and rows {len(rows)}; one row for each machine is needed")
        if len(np.unique(which)) < len(which):
            raise ModelError("put: which names a machine more than once; name each at most once")
        if saved.k == 0 and (saved.kinds[rows] != REGULAR).any():
            raise ModelError("put: a singular start needs a special first step; take that step before saving")
        at = self._at
        at.x[which], at.p[which], at.kinds[which] = saved.x[rows], saved.p[rows], REGULAR
        at.status[which], at.stopped[which] = saved.status[rows], saved.stopped[rows]

    def _check(self, saved: Any, what: str) -> None:
        """Raise ModelError: this is no state, of any number of runs, saved by a stepper of the same mechanism, law and step.

        what: name of the method, for the message.
        """
        way = f"{what} takes what save() returned, unchanged"
        if not isinstance(saved, Saved):
            raise ModelError(f"{what}: saved is {brief(saved)}; {way}")
        if not is_one_of(saved.identity, (self._identity,)):
            raise ModelError(f"{what}: the saved state belongs to another mechanism, law or kind of state; save one of this")
        runs = saved.x.shape[:1] if isinstance(saved.x, np.ndarray) else ()
        shapes = {"x": (*runs, self._s.nx), "u": (1, *runs, len(self.u_names)), "p": (*runs, len(self._s.mechanism.p_names))}
        check_saved(saved, dict.fromkeys(ARRAYS, runs) | shapes, self.causes, what)
        as_number(saved.start, f"{what}: saved.start")
        if type(saved.k) is not int or not 0 <= saved.k <= LARGEST:
            raise ModelError(f"{what}: saved.k is {brief(saved.k)}; {way}")
        step = as_number(saved.step, f"{what}: saved.step")
        if step != self._options.step:
            raise ModelError(f"{what}: the saved state is of steps of {step:g} s, those here are of {self._options.step:g} s")


def _indices(value: Any, count: int, what: str) -> np.ndarray:
    """(n,) checked indices. Raises ModelError: they are no whole numbers from 0 to count - 1.   what: name of the argument."""
    try:
        array = np.asarray(value)
    except ValueError:  # rows of different lengths
        array = np.zeros(())
    array = array if array.size else np.zeros(array.shape, dtype=int)
    if array.ndim != 1 or array.dtype.kind not in "iu" or not ((array >= 0) & (array < count)).all():
        raise ModelError(
            f"put: {what} is {brief(value)}: (n,) whole numbers from 0 to {count - 1} are needed; np.flatnonzero makes them of "
            "True and False"
        )
    return array
