"""A machine, or many of one kind, that the caller's loop moves by times of its choice, with steps under error control."""

from __future__ import annotations

from typing import Any, NamedTuple, final

import numpy as np

from pfaffian.errors import ModelError, brief, is_one_of
from pfaffian.evaluate.arrays import as_batch
from pfaffian.evaluate.single_values import as_number
from pfaffian.simulate.error.global_error import ERROR_KINDS, Solutions, global_error
from pfaffian.simulate.run.abstract_stepper import AbstractStepper
from pfaffian.simulate.run.accuracy_request import check_end
from pfaffian.simulate.run.controlled import COARSER, OF_STIFF, error_from, first_tolerance
from pfaffian.simulate.run.input_intervals import InputIntervals
from pfaffian.simulate.run.roll import initial_status
from pfaffian.simulate.run.saved import check_saved
from pfaffian.simulate.run.solver import Solver, Watch, compiled_samplers, compiled_start, compiled_steps, stiff_steps_for
from pfaffian.simulate.run.stepper_start import Options, first_of
from pfaffian.simulate.step.choice_of_pair import has_been_stiff
from pfaffian.simulate.step.lane import lane_of, law_instants, new_lanes
from pfaffian.simulate.step.signals import entries_of
from pfaffian.simulate.step.simulation import Simulation
from pfaffian.simulate.step.step import Scheme
from pfaffian.simulate.step.time_marks import time_marks
from pfaffian.starts.given_start import start_arguments

WHOLE = 1e-9
"""Largest difference of the end of a call from an instant of the law, relative to its period, that counts as none."""

UNWATCHED = Watch(lambda seconds: None, lambda: False, lambda found: np.zeros(1, dtype=bool))


class SavedLanes(NamedTuple):
    """The saved state of an AccurateStepper, from which `restore` continues.

    lane: (2 runs, numbers) of the runs, then of their coarser solutions.   p: (runs, np) parameters.   u: (runs, nu) inputs.
    records: (2 runs, signals), q_v: (2 runs, nq + nv) at this instant.   status: (2 runs,).   start, elapsed: [s].
    identity: digest of mechanism, state and law.
    """

    lane: np.ndarray
    p: np.ndarray
    u: np.ndarray
    records: np.ndarray
    q_v: np.ndarray
    status: np.ndarray
    start: float
    elapsed: float
    identity: str


@final
class AccurateStepper(AbstractStepper[SavedLanes]):
    """One machine, or many of one kind, moved by times of one's choice to an accuracy; returned by `stepper(m, accuracy=...)`.

    q: (nq,) or (runs, nq) configuration.   v: (nv,) or (runs, nv) velocities.   t: time [s].   u_names: names of the inputs.
    status: 0, or the index in `causes` of the reason why a run stopped; an integer or (runs,).   order: of the steps.
    error: (3,) or (runs, 3), the estimated error of angles, lengths and speeds since `reset`, as in the result of `run`. Steps
    that are made cannot be repeated, so that it may exceed the accuracy: in `run` it does not.
    A copy, by `copy.copy` or `copy.deepcopy`, moves on its own from the same state.

    Example:
        >>> import pfaffian as pf
        >>> slide = pf.joint("x", "prismatic", "world", "cart", axis=(1, 0, 0), stiffness=4.0)
        >>> m = pf.mechanism("cart", [pf.body("cart", mass=1.0)], [slide], actuators=[pf.actuator("push", "x")])
        >>> s = pf.stepper(m, accuracy=1e-8)
        >>> for k in range(4):
        ...     s.advance(0.25, u=[1.0])
        >>> s.t, s.q.round(6), bool(s.error.max() < 1e-8)
        (1.0, array([0.354037]), True)
    """

    def __init__(self, simulation: Simulation, options: Options, accuracy: float, given: Scheme | None) -> None:
        super().__init__(simulation, options)
        self._accuracy, self._given, self.order = accuracy, given, simulation.pair.order
        compiled = (options.backend, options.strict)
        stiff = stiff_steps_for(given, simulation, self.runs, *compiled)
        self._compiled = (
            compiled_steps(simulation, self.runs, *compiled),
            stiff,
            compiled_start(simulation, stiff is not None, *compiled),
            compiled_samplers(simulation, *compiled),
        )
        self._known: tuple[float, np.ndarray] | None = None

    def __copy__(self) -> AccurateStepper:
        twin = AccurateStepper(self._s, self._options, self._accuracy, self._given)
        twin._now, twin._known = self._now, self._known  # which are replaced, never changed in place
        return twin

    def reset(
        self, q: Any = None, v: Any = None, *, t: float = 0.0, parameters: Any = None, correct_start: bool = True
    ) -> None:
        """Start again from another state; the arguments are those of `Stepper.reset`.

        Raises:
            ModelError: an argument is wrong, or has another number of runs than the stepper.
            RunError: no run can be put onto the constraints.
        """
        s, start = self._s, as_number(t, "t")
        begun, x = first_of(s, self._options, start_arguments(s.mechanism, q, v, parameters), start, correct_start)
        lane = new_lanes(s, np.tile(x, (2, 1)))
        p, u = np.broadcast_to(begun.p, (self.runs, begun.p.shape[1])), np.zeros((self.runs, len(self.u_names)))
        status, nothing = np.tile(initial_status(s, begun, self.runs, 0)[0], 2), np.zeros((0, 0))
        self._known = None
        self._now = SavedLanes(lane, p, u, nothing, nothing, status, start, 0.0, self._identity)
        self._move(0.0)

    def advance(self, seconds: float | None = None, u: Any = None) -> None:
        """Advance by a time under constant inputs.

        Args:
            seconds: time [s]; None: `step` of the stepper.
            u: (nu,), (runs, nu) or {name: value} in the units of the mechanism; None: as in the call before, at first zero.
        Raises:
            ModelError: the time is not positive, or ends more than 5e10 s after the reset; u has another shape, an unknown
            name, or a number that is not finite.
        """
        now, long = self._at, self._options.step if seconds is None else as_number(seconds, "seconds", above=0)
        check_end(now.elapsed + long)
        if u is not None:
            rows = as_batch(u, self.u_names, np.zeros(len(self.u_names)), "u")
            if len(rows) not in (1, self.runs):
                raise ModelError(f"u is for {len(rows)} runs; the stepper has {self.runs}")
            self._now = now._replace(u=np.array(np.broadcast_to(rows, now.u.shape)))
        self._move(long)

    def _move(self, seconds: float) -> None:
        """Advance by a time [s], at whose end a step ends."""
        now, at = self._at, lane_of(self._s)
        end = now.elapsed + seconds
        for period, phase in law_instants(self._s):
            near = phase + round((end - phase) / period) * period
            end = near if abs(end - near) <= WHOLE * period else end
        inputs = InputIntervals(now.u[None], marks=np.append(self._marks(now, end), end))
        o, twice = self._options, np.tile(np.arange(self.runs), 2)
        solver = Solver(self._s, *self._compiled, inputs, now.p, now.start, now.elapsed, np.array([end]), np.inf, o.threads)
        tolerance = first_tolerance(self._accuracy) * np.repeat([(1.0, 1.0), (COARSER, OF_STIFF)], self.runs, axis=0)
        coarse = np.repeat([False, True], self.runs)
        before = np.concatenate([now.u, 0 * now.u, np.full((self.runs, 1), now.elapsed)], axis=1)
        found = solver.solve(now.lane, np.tile(before, (2, 1)), twice, tolerance, coarse, UNWATCHED, now.status)
        lane, going = found.lane.copy(), found.status == 0
        lane[going, : at.moving], lane[going, at.discrete] = found.last[going, : at.moving], found.last[going, at.moving :]
        records, q_v = found.records[-1], found.q_v[-1]
        if len(now.records):
            records, q_v = (np.where(going[:, None], new, old) for new, old in ((records, now.records), (q_v, now.q_v)))
        self._now = now._replace(lane=lane, records=records, q_v=q_v, status=found.status, elapsed=end)

    def _marks(self, now: SavedLanes, end: float) -> np.ndarray:
        """Instants up to `end` [s] at which the equations change abruptly; found anew whenever the time has doubled."""
        if self._known is None or end > self._known[0]:
            self._known = 2 * end, time_marks(self._s, np.array(now.p), now.start, now.start + 2 * end) - now.start
        marks = self._known[1]
        return marks[(marks > now.elapsed) & (marks <= end)]

    @property
    def t(self) -> float:
        """Current time [s]."""
        return self._at.start + self._at.elapsed

    @property
    def q(self) -> np.ndarray:
        """(nq,) or (runs, nq) configuration."""
        return self._rows(self._at.q_v[:, : self._s.mechanism.nq])

    @property
    def v(self) -> np.ndarray:
        """(nv,) or (runs, nv) velocities."""
        return self._rows(self._at.q_v[:, self._s.mechanism.nq :])

    @property
    def error(self) -> np.ndarray:
        """(3,) or (runs, 3) the estimated error of angles [rad], lengths and speeds at this instant, nan of stopped runs."""
        now, n, at = self._at, self.runs, lane_of(self._s)
        fine, coarse = now.q_v[None, :n], now.q_v[None, n:]
        before = dict(zip(at.units, now.lane[:n, at.speeds].T, strict=True))
        difference = global_error(self._s.mechanism, Solutions(coarse, fine), now.p, now.elapsed, before)[0]
        stiffened = has_been_stiff(now.lane[:, at.implicit], now.lane[:, at.patience])
        either = np.logical_or(stiffened[:n], stiffened[n:])[:, None]
        finer = (now.lane[n:, at.made] > now.lane[:n, at.made])[:, None]
        error = error_from(self._s, difference, first_tolerance(self._accuracy), either, finer)
        stopped = (now.status[:n] != 0) | (now.status[n:] != 0)
        return self._rows(np.where(stopped[:, None], np.nan, error).reshape(n, len(ERROR_KINDS)))

    def _rows(self, values: np.ndarray) -> np.ndarray:
        """A copy of the rows of the runs, without those of their coarser solutions; of a single machine its row."""
        return values[0].copy() if self._options.runs is None else values[: self.runs].copy()

    def observe(self) -> dict[str, np.ndarray]:
        """q, v and the signals in `record` of the stepper at the current instant: {name: (size,) or (runs, size)}."""
        record = self._rows(self._at.records)
        return {name: record[..., where].copy() for name, where in entries_of(self._s.signals).items()}

    def save(self) -> SavedLanes:
        """A copy of the current state, including the values that a law holds, for `restore`."""
        return _copied(self._at)

    def restore(self, saved: SavedLanes) -> None:
        """Continue, to the same bits, from the saved state of a stepper of the same mechanism, law and number of runs.

        Raises ModelError: it was saved from another one, or is not what `save` returned.
        """
        if not isinstance(saved, SavedLanes):
            raise ModelError(f"restore: saved is {brief(saved)}; restore takes what save() returned, unchanged")
        other = isinstance(saved.status, np.ndarray) and saved.status.shape != (2 * self.runs,)
        if other or not is_one_of(saved.identity, (self._identity,)):
            raise ModelError("restore: the saved state belongs to another mechanism, law, kind of state or number of runs")
        m, runs, lanes = self._s.mechanism, self.runs, 2 * self.runs
        recorded = sum(size for _, size in self._s.signals.values())
        check_saved(saved, {
            "status": (lanes,), "lane": (lanes, lane_of(self._s).size), "records": (lanes, recorded),
            "q_v": (lanes, m.nq + m.nv), "p": (runs, len(m.p_names)), "u": (runs, len(self.u_names)),
        }, self.causes, "restore")  # fmt: skip
        as_number(saved.start, "restore: saved.start")
        as_number(saved.elapsed, "restore: saved.elapsed", least=0)
        self._now, self._known = _copied(saved), None


def _copied(saved: SavedLanes) -> SavedLanes:
    """The state with arrays of its own."""
    arrays: dict[str, Any] = {name: x.copy() for name, x in saved._asdict().items() if isinstance(x, np.ndarray)}
    return saved._replace(**arrays)
