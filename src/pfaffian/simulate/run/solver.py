"""Solutions of runs by steps under error control: each lane of the compiled loop has its own time and step.

A run ends inside its last step, where a record is a step of that length. What a later run needs to continue is the lane before
that step, so that the step is made again and no bit depends on where the first run ended.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from pfaffian import kernel
from pfaffian.kernel.call.recipe import Backend
from pfaffian.kernel.program.numpy_loop import Span
from pfaffian.kernel.remember import remembered
from pfaffian.simulate.record.event_table import PassedEvents, at_last, passed_events
from pfaffian.simulate.record.result import INTERRUPTED, causes_of, status_of
from pfaffian.simulate.run.input_intervals import InputIntervals
from pfaffian.simulate.run.python_law import PythonCalls
from pfaffian.simulate.step.attempt import attempt, beginning, record
from pfaffian.simulate.step.choice_of_pair import has_been_stiff
from pfaffian.simulate.step.events import eventful
from pfaffian.simulate.step.integrators import STIFF_PAIR
from pfaffian.simulate.step.lane import BARRIER, SINCE, at_instant, discrete_of, lane_of, law_instants, row_size, rows_of_lanes
from pfaffian.simulate.step.motion_statistics import Evaluate, Steps
from pfaffian.simulate.step.pairs import ATTEMPTS
from pfaffian.simulate.step.sampling import in_python
from pfaffian.simulate.step.simulation import Simulation
from pfaffian.simulate.step.step import Scheme

EARLY, FAR = 8, 64
"""A run also ends when this part of ATTEMPTS has been tried in so small a part of its time: 1 / EARLY and 1 / FAR."""

GIVEN_UP = -1
"""Status of a lane that is given up, because its run will be repeated."""

CHECKS = 32
"""Least number of instants, at even distances, near which the error of a run is estimated."""

AHEAD = 12
"""Number of steps that are tried beyond the end of a run for events there: some of them locate, pass and settle each."""

SPARE, MORE = 16, 1.5
"""How many more steps, and how many times as many, a call tries than its lanes would need if no step became shorter. It costs
little, since the call ends where they do."""

AT_ONCE = 2**15
"""Most records that are computed at once, which bounds their memory."""

LONGER, FIRST_PART = 1.2, 0.8
"""Where something else than their error limits steps, those of a coarser solution differ too: their greatest length is so many
times as large, and the first between two barriers takes at most this part of the time. Equal steps would have equal errors,
whose difference tells none."""

FIRST_CALL, CALL_BYTES = 256, 2**26
"""Most steps that the first call of the compiled loop tries, and memory for the progress of a call [bytes]."""


class SolvedRuns(NamedTuple):
    """Solutions of runs.   records: (times, runs, signals).   q_v: (times, runs, nq + nv).   lane: (runs, numbers) at the end.
    last: (runs, numbers) before the step that passes the end.   w: (runs, 2 nw + 1) inputs there, without their barrier.
    status: (runs,).   steps, stiff_steps: (runs,) made, and those of them by the stiff pair.   tried: (runs,) number of steps
    tried.   stiff: (times, runs, 1) whether the stiff pair made the step to the record.
    stiffened: (times, runs, 1) whether it has made any by then.   made: (times, runs, 1) number of steps by then, since the
    first run began.   tolerance: (runs, 2) of the steps of the explicit pair and of the stiff one."""

    records: np.ndarray
    q_v: np.ndarray
    lane: np.ndarray
    last: np.ndarray
    w: np.ndarray
    status: np.ndarray
    steps: np.ndarray
    stiff_steps: np.ndarray
    tried: np.ndarray
    stiff: np.ndarray
    stiffened: np.ndarray
    made: np.ndarray
    tolerance: np.ndarray


@remembered(64)
def compiled_attempt(s: Simulation, backend: Backend, lanes: int, strict: bool) -> kernel.Rollout:
    """The compiled loop of a simulation under error control."""
    return kernel.compile_rollout(lambda: attempt(s), backend=backend, lanes=lanes, strict=strict, key=f"attempt {s.key}")


@remembered(64)
def compiled_record(s: Simulation, backend: Backend, strict: bool) -> kernel.Kernel:
    """The compiled `record` of a simulation."""
    return kernel.compile(lambda: record(s), backend=backend, strict=strict, key=f"record {s.key}")


class StepsOfPair(NamedTuple):
    """The compiled steps of a pair: the loop that makes them, and what gives the records within them."""

    loop: kernel.Rollout
    recorder: kernel.Kernel


def compiled_steps(s: Simulation, runs: int, backend: Backend, strict: bool) -> StepsOfPair:
    """The steps of the pair of a simulation.   runs: number of them, each with a coarser solution beside it."""
    lanes = 4 if 2 * runs <= 4 else 8  # short vectors divide and take roots faster
    return StepsOfPair(compiled_attempt(s, backend, lanes, strict), compiled_record(s, backend, strict))


def stiff_steps_for(
    given: Scheme | None, s: Simulation, runs: int, backend: Backend, strict: bool
) -> Callable[[], StepsOfPair] | None:
    """What makes the steps of the stiff pair in place of that of a simulation; None where the given scheme names a pair."""
    if given is not None and given.integrator is not None:
        return None
    stiff = replace(s, scheme=replace(s.scheme, integrator=STIFF_PAIR))
    return partial(compiled_steps, stiff, runs, backend, strict)


@remembered(64)
def compiled_start(s: Simulation, changes: bool, backend: Backend, strict: bool) -> kernel.Kernel:
    """The compiled `beginning` of a simulation.   changes: whether the stiff pair may make steps."""
    return kernel.compile(lambda: beginning(s, changes), backend=backend, strict=strict, key=f"begin {s.key} {changes}")


@remembered(64)
def compiled_samplers(s: Simulation, backend: Backend, strict: bool) -> tuple[kernel.Kernel, ...]:
    """The compiled samplers of a simulation with a law in Python, which are called between calls of the loop."""
    functions = s.traced.between[2:] if in_python(s.control) else ()
    return tuple(kernel.compile(f, backend=backend, strict=strict) for f in functions)


class Watch(NamedTuple):
    """What watches over a solution.   count: called with the simulated time of each call, summed over lanes [s].
    interrupted: whether Ctrl-C was pressed.   lost: solutions so far -> (lanes,) whether a lane is given up.
    steps: called with the steps that lanes have made, and with what gives the signals within them; None: not called.
    events: called with steps that pass events."""

    count: Callable[[float], Any]
    interrupted: Callable[[], bool]
    lost: Callable[[SolvedRuns], np.ndarray]
    steps: Callable[[Steps, Evaluate], None] | None = None
    events: Callable[[PassedEvents], None] | None = None


class Solver(NamedTuple):
    """What solves runs.   first: steps of the pair with which they begin.   stiff: makes the steps of the stiff pair when they
    are first needed, if runs may change to it.   starter, samplers: compiled.   inputs: of the runs.   p: (runs, np).
    begin: of the first run [s]; all other times are counted from it.   elapsed: when the runs begin.   instants: (times,) of
    the records.   longest: greatest length of a step [s].   threads: of a call.   python: calls a law in Python, if that is
    the law; the batch is then solved as a whole."""

    simulation: Simulation
    first: StepsOfPair
    stiff: Callable[[], StepsOfPair] | None
    starter: kernel.Kernel
    samplers: tuple[kernel.Kernel, ...]
    inputs: InputIntervals
    p: np.ndarray
    begin: float
    elapsed: float
    instants: np.ndarray
    longest: float
    threads: int
    python: PythonCalls | None = None

    @property
    def end(self) -> float:
        """When the runs end [s]."""
        return float(self.instants[-1])

    def solve(
        self,
        start: np.ndarray,
        before: np.ndarray,
        runs: np.ndarray,
        tolerance: np.ndarray,
        coarse: np.ndarray,
        watch: Watch,
        status: np.ndarray | int = 0,
    ) -> SolvedRuns:
        """Solve runs, each with tolerances (n, 2) of the steps of the explicit pair and of the stiff one.

        start: (n, numbers) their lanes at `elapsed`, or before the step that passes it.   before: (n, 2 nw + 1) the inputs
        until `elapsed`, without their barrier.   runs: (n,) which run of the batch each is.   coarse: (n,) whether a lane is
        the coarser solution of a run, whose steps are others also where no error limits them.   status: (n,) nonzero where a
        lane has stopped already.
        """
        at, solved = lane_of(self.simulation), self.empty(len(start))
        solved.status[:], solved.tolerance[:] = status, tolerance
        lane = solved.lane
        lane[:, : start.shape[1]] = start
        lane[:, at.begin], lane[:, at.longest] = self.begin, self.longest * np.where(coarse, LONGER, 1.0)
        lane[:, at.part] = np.where(coarse, FIRST_PART, 0.0)
        lane[:, at.tolerance] = solved.tolerance[:, int(self.simulation.scheme.stiff)]
        intervals = self.inputs.intervals(self.end, self.elapsed)
        resumed = bool(intervals.since[0] <= self.elapsed and self.elapsed)
        most = CALL_BYTES // (8 * row_size(self.simulation) * (len(runs) if self.inputs.separate else 1))
        rows = np.zeros((0, 0))
        for some in intervals.groups(self.end, resumed, most):
            rows, since = self.inputs.rows(intervals, some, runs), intervals.since[some.start]
            if resumed and not some.start:
                rows = self._arrive(solved, rows, before, runs, watch)
            ends = np.flatnonzero(np.broadcast_to(rows[0, ..., SINCE], len(runs)) == self.end)
            if ends.size:
                self._keep(solved, ends, lane[ends, : at.moving], np.broadcast_to(rows[0], (len(runs), rows.shape[-1]))[ends])
            if since >= self.elapsed:
                self._sample(solved, since, intervals.due.get(some.start, ()), rows[0], self.p[runs])
            if since == self.elapsed == 0:
                lane[:] = self.starter(lane, rows[0], self.p[runs])[0]
            self._pass(solved, rows, runs, watch)
        if watch.events and eventful(self.simulation):
            self._look_ahead(solved, rows, runs, watch.events)
        return solved

    def _look_ahead(self, solved: SolvedRuns, rows: np.ndarray, runs: np.ndarray, tell: Callable[[PassedEvents], None]) -> None:
        """Tell the events of lanes at the end of the run, where rounding decides on which side of it they are. The steps that
        pass them are made for that alone."""
        at, end = lane_of(self.simulation), self.end + at_last(self.begin + self.end)
        lanes = np.flatnonzero((solved.status == 0) & (solved.lane[:, at.time] < end))
        for stiff in (False, True):
            some = lanes[(solved.lane[lanes, at.implicit] == 1) == stiff]
            if some.size:
                lane, span, w = solved.lane[some], self._span(AHEAD), _of_lanes(rows, some)
                lane[:, at.end] = end
                r = self._steps_of(stiff).loop(lane, w, self.p[runs[some]], span, threads=self.threads)
                if passed := passed_events(self.simulation, r.records, r.x, w, some):
                    tell(passed)

    def watched(self) -> Solver:
        """This solver, with so many instants, also where records are far apart, that a large error is noticed anywhere."""
        more, apart = np.linspace(self.elapsed, self.end, CHECKS, endpoint=False, retstep=True)
        before = np.searchsorted(self.instants, more, "right")
        padded = np.r_[-np.inf, self.instants, np.inf]
        far = np.minimum(more - padded[before], padded[before + 1] - more) > apart / 2
        return self._replace(instants=np.union1d(self.instants, more[far]))

    def empty(self, n: int) -> SolvedRuns:
        """Solutions of n runs before their start."""
        at = lane_of(self.simulation)
        widths = (*self.first.recorder.shape.outputs, 1, 1, 1)
        records, q_v, stiff, stiffened, made = (np.full((len(self.instants), n, width), np.nan) for width in widths)
        lane, last = np.zeros((n, at.size)), np.zeros((n, at.moving + at.discrete.stop - at.discrete.start))
        w, status = np.zeros((n, row_size(self.simulation) - 1)), np.zeros(n, np.int32)
        steps, stiff_steps, tried = (np.zeros(n, np.int64) for _ in range(3))
        of_steps = steps, stiff_steps, tried, stiff, stiffened, made
        return SolvedRuns(records, q_v, lane, last, w, status, *of_steps, np.zeros((n, 2)))

    def _arrive(self, solved: SolvedRuns, rows: np.ndarray, before: np.ndarray, runs: np.ndarray, watch: Watch) -> np.ndarray:
        """Advance lanes from before `elapsed`, past it where their inputs stay the same, else up to it. Returns the rows
        (1, lanes, entries) of the interval that begins there for those that are there.   rows: of that which contains it."""
        at = lane_of(self.simulation)
        now = np.array(np.broadcast_to(rows[0], (len(runs), rows.shape[-1])))
        stays = (before[:, :-1] == now[:, :SINCE]).all(axis=1) & (now[:, SINCE] < self.elapsed)
        barrier = np.where(stays, now[:, BARRIER], self.elapsed)
        self._pass(solved, np.concatenate([before, barrier[:, None]], axis=1)[None], runs, watch)
        now[solved.lane[:, at.time] == self.elapsed, SINCE] = self.elapsed
        return now[None]

    def _sample(self, solved: SolvedRuns, since: float, due: tuple[int, ...], rows: np.ndarray, p: np.ndarray) -> None:
        """Call the samplers that are due at the begin of an interval, then a law in Python; lanes with a fault stop.

        rows: (entries,) or (lanes, entries) of inputs.
        """
        at, lane, going = lane_of(self.simulation), solved.lane, solved.status == 0
        first = 2 + self.first.loop.shapes[0].outputs[1]
        for j, sampler in enumerate(self.samplers):
            if j in due:
                x = np.concatenate([lane[:, at.x], lane[:, at.discrete]], axis=1)
                t = np.array([self.begin + since])
                x, faults = sampler(x, rows[..., : len(self.simulation.w_names)], p, t)
                stops = going & (faults != 0).any(axis=1)
                if stops.any():
                    solved.status[stops] = first + np.argmax(faults[stops] != 0, axis=1)
                lane[going & ~stops, at.discrete] = x[going & ~stops, at.x.stop :]
            first += sampler.shape.outputs[1]
        if self.python and len(self.samplers) in due and not solved.status.all():
            x = np.concatenate([lane[:, at.x], lane[:, at.discrete]], axis=1)
            x, failed = self.python.answered(x, self.begin + since, solved.status)
            solved.status[failed] = status_of(self.simulation, "python")
            lane[:, at.discrete] = x[:, at.x.stop :]

    def _pass(self, solved: SolvedRuns, rows: np.ndarray, runs: np.ndarray, watch: Watch) -> None:
        """Advance the lanes to the last barrier or the end of the run, and write their records.

        rows: (intervals, entries) or (intervals, lanes, entries) of inputs.
        """
        at, lane, status = lane_of(self.simulation), solved.lane, solved.status
        lane[:, at.interval], lane[:, at.end] = 0, np.minimum(self.end, rows[-1, ..., BARRIER])
        p, most = self.p[runs], [FIRST_CALL, FIRST_CALL]
        while True:
            going = np.flatnonzero((status == 0) & (lane[:, at.time] < lane[:, at.end]))
            if not going.size:
                break
            recorded = False
            for stiff in (False, True):
                of_pair = going[(lane[going, at.implicit] == 1) == stiff]
                if of_pair.size:
                    recorded |= self._call(solved, of_pair, stiff, most[stiff], _of_lanes(rows, of_pair), p[of_pair], watch)
                stayed = of_pair.size and ((lane[of_pair, at.implicit] == 1) == stiff).all()
                most[stiff] = min(2 * most[stiff], ATTEMPTS) if stayed else 2 * FIRST_CALL
            if recorded and ((status == 0) & (lane[:, at.time] < self.end)).any():
                status[(status == 0) & watch.lost(solved)] = GIVEN_UP
            status[(status == 0) & self._endless(solved)] = status_of(self.simulation, "integrator")
            if watch.interrupted():
                status[status == 0] = causes_of(self.simulation).index(INTERRUPTED)
        changed = (rows[0, ..., SINCE] == self.end) | self._unsampled(lane)
        ends = changed & (status == 0) & (lane[:, at.time] == self.end)
        for stiff in (False, True):  # inputs and samples at the end are only for its record
            if (some := np.flatnonzero(ends & ((lane[:, at.implicit] == 1) == stiff))).size:
                lane[some, at.end] = np.inf
                self._advance(solved, some, stiff, 0, _of_lanes(rows, some), p[some], watch)

    def _endless(self, solved: SolvedRuns) -> np.ndarray:
        """(lanes,) whether lanes have tried as many steps as a run may, or so many that it shows they will not do."""
        done = (solved.lane[:, lane_of(self.simulation).time] - self.elapsed) / ((self.end - self.elapsed) or 1.0)
        return (solved.tried >= ATTEMPTS) | ((solved.tried >= ATTEMPTS // EARLY) & (done < 1 / FAR))

    def _call(
        self, solved: SolvedRuns, lanes: np.ndarray, stiff: bool, most: int, rows: np.ndarray, p: np.ndarray, watch: Watch
    ) -> bool:
        """Try at most so many steps of a pair in some lanes, as `_advance` does."""
        at, lane = lane_of(self.simulation), solved.lane[lanes]
        longest = min([self.longest, *[period for period, _ in law_instants(self.simulation)]])
        longest = min(longest, self.inputs.step) if len(rows) > 1 else longest
        left = (lane[:, at.end] - lane[:, at.time]) / np.minimum(lane[:, at.length], longest)
        tried = solved.tried[lanes]
        most = max(4, min(most, CALL_BYTES // (8 * at.moving * len(lanes))))
        most = min(most, int((np.where(tried < ATTEMPTS // EARLY, ATTEMPTS // EARLY, ATTEMPTS) - tried).min()))
        steps = int(min(most, SPARE + np.ceil(MORE * min(left.max(), most))))
        return self._advance(solved, lanes, stiff, steps, rows, p, watch)

    def _advance(
        self, solved: SolvedRuns, lanes: np.ndarray, stiff: bool, steps: int, rows: np.ndarray, p: np.ndarray, watch: Watch
    ) -> bool:
        """Try so many steps of a pair in some lanes, and write their records; returns whether there are any. With no steps
        these are the records of their end, for which alone the law is called there."""
        at, lane = lane_of(self.simulation), solved.lane[lanes]
        loop, status = self._steps_of(stiff).loop, solved.status[lanes]
        lane[:, at.tolerance] = solved.tolerance[lanes, int(stiff)]
        r = loop(lane, rows, p, self._span(steps), threads=self.threads, status=status)
        if (r.status != status).any():  # a lane that stops stays at the end of its last step
            ended = np.isnan(r.records[:, :, at.time])
            r.records[ended] = np.broadcast_to(r.x[:, : at.moving], r.records.shape)[ended]
        recorded = self._record(solved, r.records, r.x, lanes, rows, p)
        if watch.steps:
            watch.steps(self._steps(r.records, r.x, lanes, rows, p), self._within)
        passed = passed_events(self.simulation, r.records, r.x, rows, lanes)
        if passed and watch.events:
            watch.events(passed)
        watch.count(float((r.x[:, at.time] - lane[:, at.time]).sum()))
        solved.lane[lanes], solved.status[lanes] = r.x, r.status
        solved.tried[lanes] += self._number_tried(r.records, r.x)
        return recorded

    def _number_tried(self, passed: np.ndarray, x: np.ndarray) -> np.ndarray:
        """(lanes,) number of steps that lanes tried in a call: those that changed their time or the length of the next.
        A lane that nothing changes is at its end, or would remain there: all steps of the call then count."""
        both = slice(lane_of(self.simulation).time, lane_of(self.simulation).length + 1)
        steps = np.concatenate([passed[:, :, both], x[None, :, both]])
        number = np.count_nonzero((steps[1:] != steps[:-1]).any(axis=2), axis=0)
        return np.where(number, number, len(passed))

    def _unsampled(self, lane: np.ndarray) -> np.ndarray:
        """Whether lanes (n, numbers) are at an instant of the law and were not sampled there yet."""
        at = lane_of(self.simulation)
        return at_instant(self.simulation, lane[:, at.time]) & (lane[:, at.sampled] != lane[:, at.time])

    def _span(self, steps: int) -> Span:
        """The Span of so many steps that are tried, before each of which the parts of the law are called; of none, it records
        the end."""
        s, at = self.simulation, lane_of(self.simulation)
        each = [(1, 0)] * len(law_instants(s))
        return Span(
            0.0, 1.0, steps, last=steps == 0, limit=s.system.limit, sampling=each, chooser=at.interval, until_still=True
        )

    def _steps_of(self, stiff: bool) -> StepsOfPair:
        """The steps of the stiff pair or of the explicit one."""
        return self.stiff() if stiff and self.stiff else self.first

    def _record(
        self, solved: SolvedRuns, passed: np.ndarray, x: np.ndarray, lanes: np.ndarray, rows: np.ndarray, p: np.ndarray
    ) -> bool:
        """Write the records at instants within the steps that lanes have made; returns whether there are any.

        passed: (steps, lanes, numbers) before each step.   x: (lanes, numbers) at the end.   rows: of inputs.
        """
        at, each = lane_of(self.simulation), np.arange(len(lanes))
        times = np.concatenate([passed[:, :, at.time], x[None, :, at.time]])
        interval, since_of = passed[:, :, at.interval], rows[..., SINCE, None]
        made = np.count_nonzero(times[1:] > times[:-1], axis=0)
        solved.steps[lanes] += made
        solved.stiff_steps[lanes] += made * (passed[0, :, at.implicit] == 1).astype(np.int64)
        now = rows_of_lanes(since_of, x[:, at.interval], each)[..., 0]
        ends = np.minimum(times[-1], x[:, at.end])
        arrived = (ends == times[-1]) & (times[0] < times[-1])
        unsampled = arrived & (self._unsampled(x) | ((ends == now) & (times[-2] < ends)))
        if (some := np.flatnonzero((times[0] < self.end) & (times[-1] >= self.end))).size:
            last = (times[:, some] < self.end).sum(axis=0) - 1
            w = rows_of_lanes(rows, interval[last, some], some)
            some, last, w = (n[w[:, BARRIER] > self.end] for n in (some, last, w))
            self._keep(solved, lanes[some], passed[last, some], w)
        at_barrier = (ends == rows[-1, ..., BARRIER]) | unsampled
        begin, before = (np.searchsorted(self.instants, t) for t in (times[0], ends))
        stop = np.where(at_barrier, before, np.searchsorted(self.instants, ends, "right"))
        count = np.maximum(stop - begin, 0)
        i = np.repeat(np.arange(len(lanes)), count)
        j = begin[i] + np.arange(len(i)) - (np.cumsum(count) - count)[i]
        new = np.isnan(solved.stiff[j, lanes[i], 0])  # the call before may have ended at this instant and written its record
        i, j = i[new], j[new]
        if not len(i):
            return False
        k, t = _step_at(times, i, self.instants[j]), self.instants[j]
        after = np.minimum(k + 1, len(passed) - 1)
        begins = (times[k, i] < t) & (times[after, i] == t)  # the first step after the samples and inputs there change
        changed = rows_of_lanes(since_of, interval[after, i], i)[..., 0] == t
        if law_instants(self.simulation):
            changed |= times[after, i] == passed[after, i, at.sampled]
        k = np.where(begins & changed, after, k)
        for first in range(0, len(i), AT_ONCE):
            part = slice(first, first + AT_ONCE)
            step, of_lane = k[part], i[part]
            begins_of = np.concatenate([passed[step, of_lane], x[of_lane, at.moving :]], axis=1)
            w = rows_of_lanes(rows, interval[step, of_lane], of_lane)
            self._store(solved, j[part], lanes[of_lane], begins_of, w, p[of_lane])
        return True

    def _store(
        self, solved: SolvedRuns, at: np.ndarray, lanes: np.ndarray, begins: np.ndarray, w: np.ndarray, p: np.ndarray
    ) -> None:
        """Write records of lanes (n,), at the instants of the indices `at` (n,) within the steps that follow `begins`
        (n, numbers)."""
        numbers = lane_of(self.simulation)
        solved.records[at, lanes], solved.q_v[at, lanes] = self._recorded(begins, w, p, self.instants[at])
        implicit = begins[:, numbers.implicit]
        solved.stiff[at, lanes, 0] = implicit
        solved.made[at, lanes, 0] = begins[:, numbers.made]
        solved.stiffened[at, lanes, 0] = has_been_stiff(implicit, begins[:, numbers.patience])

    def _steps(self, passed: np.ndarray, x: np.ndarray, lanes: np.ndarray, rows: np.ndarray, p: np.ndarray) -> Steps:
        """The steps that lanes have made since the run began, up to its end, there also one of length 0; as in `_record`."""
        at = lane_of(self.simulation)
        times = np.clip(np.concatenate([passed[:, :, at.time], x[None, :, at.time]]), self.elapsed, self.end)
        moved = times[1:] > times[:-1]
        moved[0] |= passed[0, :, at.time] == self.end
        k, i = np.nonzero(moved)
        begins = np.concatenate([passed[k, i], x[i, at.moving :]], axis=1)
        w = rows_of_lanes(rows, passed[k, i, at.interval], i)
        return Steps(begins, w, p[i], times[k, i], times[k + 1, i], lanes[i])

    def _within(self, steps: Steps, instants: np.ndarray) -> np.ndarray:
        """(n, signals) at an instant (n,) within each step."""
        return self._recorded(steps.rows, steps.w, steps.p, instants)[0]

    def _recorded(self, rows: np.ndarray, w: np.ndarray, p: np.ndarray, instants: np.ndarray) -> list[np.ndarray]:
        """Signals and [q; v] at an instant (n,) within the step after each of the lanes (n, numbers), by its pair."""
        implicit = rows[:, lane_of(self.simulation).implicit] == 1
        if implicit.all() or not implicit.any():
            return list(self._steps_of(bool(implicit[0])).recorder(rows, w, p, instants[:, None], threads=self.threads))
        found = [np.empty((len(rows), width)) for width in self.first.recorder.shape.outputs]
        for stiff in (False, True):
            k = np.flatnonzero(implicit == stiff)
            parts = self._steps_of(stiff).recorder(rows[k], w[k], p[k], instants[k][:, None], threads=self.threads)
            for whole, part in zip(found, parts, strict=True):
                whole[k] = part
        return found

    def _keep(self, solved: SolvedRuns, lanes: np.ndarray, moving: np.ndarray, w: np.ndarray) -> None:
        """Keep what a later run needs to continue these lanes: the numbers that a step moves, as they are before the step, and
        the inputs there, which are the first of that run."""
        at = lane_of(self.simulation)
        solved.last[lanes] = np.concatenate([moving, discrete_of(at, moving, solved.lane[lanes])], axis=1)
        solved.last[lanes, at.interval] = 0
        solved.w[lanes] = w[:, :BARRIER]


def _of_lanes(rows: np.ndarray, lanes: np.ndarray) -> np.ndarray:
    """The rows of inputs of some lanes."""
    return rows[:, lanes] if rows.ndim == 3 else rows


def _step_at(times: np.ndarray, lanes: np.ndarray, instants: np.ndarray) -> np.ndarray:
    """(n,) index of the last step of each of these lanes (n,) that begins before an instant (n,), at least 0.

    times: (steps + 1, lanes) at which steps begin and the last one ends.
    """
    low, high = np.zeros(len(lanes), dtype=int), np.full(len(lanes), len(times) - 1)
    while (high > low + 1).any():
        middle = (low + high) // 2
        before = times[middle, lanes] < instants
        low, high = np.where(before, middle, low), np.where(before, high, middle)
    return low
