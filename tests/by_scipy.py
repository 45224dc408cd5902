"""One accurate run by SciPy's DOP853 and the compiled right-hand side, with each step corrected onto the constraints.

Its time loop, error control and interpolation are SciPy's, so it checks those of the library.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import casadi as ca
import numpy as np
import scipy.integrate

from pfaffian import kernel
from pfaffian.control.law import check_parameters
from pfaffian.errors import ModelError
from pfaffian.kernel.remember import remembered
from pfaffian.model.number import floats, named_float
from pfaffian.simulate.error.global_error import Solutions, global_error, largest_speeds
from pfaffian.simulate.record.provenance import machine
from pfaffian.simulate.record.result import DIVERGED, FIRST_FAULT, Recorded, build_result, status_of
from pfaffian.simulate.run.findings import EndedRuns, with_findings
from pfaffian.simulate.run.singular_start import REGULAR
from pfaffian.simulate.step.limits import check_loop_limits
from pfaffian.simulate.step.run_arguments import arguments
from pfaffian.simulate.step.sampling import refuse
from pfaffian.simulate.step.signals import as_record
from pfaffian.simulate.step.simulation import Simulation
from pfaffian.simulate.step.step import RightHandSide, settings_of
from pfaffian.starts.given_start import start_arguments, start_of
from pfaffian.starts.start import start_state
from pfaffian.states.abstract_system import enter
from pfaffian.states.system import as_system

if TYPE_CHECKING:
    import xarray as xr


@remembered(64)
def _kernels(simulation: Simulation) -> tuple[kernel.Kernel, kernel.Kernel]:
    """The compiled right-hand side of a simulation, and its compiled projection onto the constraints."""
    rhs, project = (kernel.compile(f, lanes=1) for f in (simulation.traced.rhs, simulation.project))
    return rhs, project


def run_adaptive(
    m, q=None, v=None, *, times, u=None, parameters=None, control=None, outputs=None, record=None, scheme=None,
    tolerance=1e-10, max_step=np.inf,
) -> xr.Dataset:  # fmt: skip
    """The motion of one run at `times`, with the arguments of `pf.run`.

    tolerance: local error allowed per step, relative and absolute.   max_step: longest step [s].
    """
    system = as_system(m)
    m = system.mechanism
    scheme, law, extra = arguments(m, scheme, control, outputs)
    refuse(law, "run_adaptive")
    times = floats(times, "times")
    if times.ndim != 1 or len(times) < 2 or not (np.diff(times) > 0).all():
        raise ModelError("times must be at least two increasing numbers")
    if not 0 < named_float(tolerance, "tolerance") < 1:
        raise ModelError(f"tolerance must lie between 0 and 1, got {tolerance!r}")
    if max_step != np.inf and not named_float(max_step, "max_step") > 0:
        raise ModelError(f"max_step must be a time above zero, got {max_step!r}")
    simulation = Simulation(system, scheme, law, extra, as_record(record, 1))
    rhs, project = _kernels(simulation)
    arrays = start_arguments(m, q, v, parameters, u=u, u_names=simulation.w_names)
    given = start_of(m, arrays, float(times[0]), "auto")
    check_parameters(law, m, given.p)
    if max(len(given.q), len(arrays.u)) > 1:
        raise ModelError("run_adaptive makes one run; use run for a batch")
    begun = start_state(given, True)
    check_loop_limits(m, begun.q, begun.p, float(times[0]))
    x = np.concatenate([enter(system, begun.q, begun.v, begun.p, float(times[0]))[0], simulation.z])
    equations = _RunEquations(
        rhs, project, simulation.layout.start, arrays.u[0], begun.p[0], simulation.arrived, status_of(simulation, "arriving")
    )
    done = _integrate(equations, x, times, tolerance, max_step)
    provenance = (
        machine()
        | settings_of(scheme, m)
        | {"integrator": "DOP853", "tolerance": tolerance, "kernel_digest": rhs.provenance["digest"], "state": system.name}
    )
    course = Recorded(
        times,
        done.records,
        np.array([done.status]),
        np.array([done.stopped]),
        begun,
        arrays.u,
        0.0,
        np.full((len(times), 1, 3), np.nan),
    )
    result = build_result(simulation, course, provenance)
    last = np.concatenate([done.x, simulation.layout.start])[None]
    runs = EndedRuns(simulation, begun, float(times[0]), begun.messages, last, np.full(1, REGULAR))
    return with_findings(result, runs).labelled(squeeze=True)


class _RunEquations(NamedTuple):
    """The equations of one run, as functions of the state [x; z] and the time alone.

    rhs, project: the compiled functions, see `Traced`.   d: discrete state, which does not change.   w: (nw,) inputs.
    p: (np,) parameters.   arrived: see `Simulation`.
    first_status: the status that the first flag of `arrived` stands for.
    """

    rhs: kernel.Kernel
    project: kernel.Kernel
    d: np.ndarray
    w: np.ndarray
    p: np.ndarray
    arrived: ca.Function | None
    first_status: int

    def at(self, x: np.ndarray, t: float) -> RightHandSide:
        """The right-hand side at a state."""
        return RightHandSide(*self.rhs(np.concatenate([x, self.d]), self.w, self.p, np.array([t])))

    def on_constraints(self, x: np.ndarray, t: float) -> np.ndarray:
        """The state x put onto the constraints at the time t [s]."""
        return self.project(x, self.p, np.array([t]))[0]

    def arrival(self, t: float, x: np.ndarray, t_next: float, x_next: np.ndarray) -> int:
        """The status for a constraint that becomes active or jumps within a step away from phi = 0; 0 if there is none."""
        if self.arrived is None:
            return 0
        size = self.arrived.size1_in(0)  # the state of the system comes first, then the states that the law integrates
        flags = np.array(self.arrived(x[:size], x_next[:size], self.p, t, t_next - t))
        return self.first_status + int(np.argmax(flags != 0)) if flags.any() else 0


class _Integrated(NamedTuple):
    """The end of a run.

    x: (nx,) last good state.   records: (times, 1, signals), NaN after a stop.   status: cause of the stop, 0 if none.
    stopped: the time of the stop [s], NaN if the run finished.
    """

    x: np.ndarray
    records: np.ndarray
    status: int
    stopped: float


def _integrate(of: _RunEquations, x: np.ndarray, times: np.ndarray, tolerance: float, max_step: float) -> _Integrated:
    """Integrate from x at the first of the times to the last, or until a fault or too short a step ends the run."""
    begun = of.at(x, times[0])
    sides = begun.sides
    records = np.full((len(times), 1, len(begun.records)), np.nan)
    records[0, 0], status, k, evaluations = begun.records, 0, 1, list[RightHandSide]()

    def rate(t: float, y: np.ndarray) -> np.ndarray:
        evaluations.append(of.at(y, t))
        return evaluations[-1].x_dot

    solver = scipy.integrate.DOP853(rate, times[0], x, times[-1], max_step, tolerance, tolerance)
    while solver.status == "running" and k < len(times):
        with np.errstate(all="ignore"):
            evaluations.clear()
            t, y = solver.t, solver.y.copy()
            solver.step()
        if solver.status == "failed" or not np.isfinite(solver.y).all():
            # No step was short enough. The cause is a fault at one of the stages, if there was one.
            status = max(_fault(answer, sides) for answer in evaluations) or DIVERGED
            break
        dense = solver.dense_output()
        ended = _arrived(of, dense, _StateAt(t, y), _StateAt(solver.t, solver.y))
        reached = ended.last.t if ended else solver.t
        while k < len(times) and times[k] <= reached:
            records[k, 0] = of.at(of.on_constraints(dense(times[k]), times[k]), times[k]).records
            k += 1
        if ended:
            return _Integrated(of.on_constraints(ended.last.x, reached), records, ended.status, reached)
        # Put the state back onto the constraints, and evaluate the slope there.
        solver.y = of.on_constraints(solver.y, solver.t)
        solver.f = solver.fun(solver.t, solver.y)
        status, sides = _fault(evaluations[-1], sides), evaluations[-1].sides
        if status:
            break
    return _Integrated(solver.y, records, status, solver.t if status else np.nan)


class _StateAt(NamedTuple):
    """The state x (nx,) at the time t [s]."""

    t: float
    x: np.ndarray


class _Arrival(NamedTuple):
    """A fault of a constraint within a step.   last: the instant before it becomes active or jumps.   status: of the fault."""

    last: _StateAt
    status: int


HALVINGS = 60
"""Bisections of a step that locate the time of a jump: the last interval is as short as the rounding of the time."""


def _arrived(of: _RunEquations, dense: Callable[[float], np.ndarray], begin: _StateAt, end: _StateAt) -> _Arrival | None:
    """Find, by bisection, the instant within a step at which a constraint becomes active or jumps away from phi = 0.

    dense: t -> the state within the step.
    None if there is no such instant, also where a change that seemed a jump over an interval is none over both its halves.
    """
    status = of.arrival(*begin, *end)
    for _ in range(HALVINGS if status else 0):
        t = begin.t + (end.t - begin.t) / 2
        if not begin.t < t < end.t:
            break
        middle = _StateAt(t, dense(t))
        if found := of.arrival(*begin, *middle):
            status, end = found, middle
        elif found := of.arrival(*middle, *end):
            status, begin = found, middle
        else:
            return None
    return _Arrival(begin, status) if status else None


def _fault(answer: RightHandSide, before: np.ndarray) -> int:
    """The status for the faults of a right-hand side, 0 if there is none.

    before: the sides at the start of the step, see `Command.sides`; a fault also counts where its side changed sign.
    """
    faults, side = answer.faults, answer.sides
    found = np.flatnonzero((faults != 0) & np.isfinite(faults) | (side * before < 0))
    return FIRST_FAULT + 1 + int(found[0]) if found.size else 0


BETWEEN = 20
"""Number of parts of the time between two records in which the largest speeds are looked for."""


def with_instants_between(times: np.ndarray) -> np.ndarray:
    """The times with others between them, for a motion whose largest speeds are to be known."""
    return np.interp(np.arange(BETWEEN * (len(times) - 1) + 1) / BETWEEN, np.arange(len(times)), times)


def true_error(m, r, exact) -> np.ndarray:
    """(times, kinds) the error of a run at its records.   exact: its motion at these times and `with_instants_between`."""
    mine, its = (np.concatenate([x.q.values, x.v.values], axis=1)[:, None] for x in (r, exact))
    p, duration = np.array([[x.default for x in m.parameters]]), float(r.time[-1] - r.time[0])
    return global_error(m, Solutions(mine, its[::BETWEEN]), p, duration, largest_speeds(m, its))[:, 0]
