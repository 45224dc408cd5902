"""The events of runs to an accuracy: when, of what, to which value, and how far velocities jumped."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import casadi as ca
import numpy as np

from pfaffian import kernel
from pfaffian.errors import ModelError
from pfaffian.kernel.remember import remembered
from pfaffian.simulate.record.result import as_result
from pfaffian.simulate.step.attempt import Lane, lane_of
from pfaffian.simulate.step.draft import Draft
from pfaffian.simulate.step.events import events_of
from pfaffian.simulate.step.simulation import Simulation
from pfaffian.states.abstract_system import show

if TYPE_CHECKING:
    import xarray as xr


class PassedEvents(NamedTuple):
    """Steps that pass events.   before, after: (n, numbers) lanes.   w: (n, 2 nw) inputs.   runs: (n,) of each."""

    before: np.ndarray
    after: np.ndarray
    w: np.ndarray
    runs: np.ndarray


def passed_events(s: Simulation, rows: np.ndarray, end: np.ndarray, w: np.ndarray, lanes: np.ndarray) -> PassedEvents | None:
    """Those of the steps that lanes have made that pass an event, or put the state onto the constraints after a switch.

    rows: (steps, lanes, numbers) before each step.   end: (lanes, numbers) after the last.   w: (lanes, 2 nw).
    """
    events = events_of(s)
    if events is None:
        return None
    at = lane_of(s)
    moving = np.concatenate([rows, end[None, :, : at.moving]])
    time, aim, count, last = (moving[..., i] for i in (at.time, at.events.aim, at.events.count, at.events.last))
    settles = (aim[:-1] == time[:-1]) & (aim[1:] != aim[:-1])
    jumps = count[1:] > count[:-1]
    begins = jumps & (last[1:] < events.conditions) & ~settles
    impacts = jumps & (last[1:] < events.conditions + events.impacts) & (time[1:] == time[:-1])
    k, i = np.nonzero((settles & (last[1:] >= events.conditions + events.impacts)) | begins | impacts)
    rest = end[i, at.moving :]
    before, after = (np.concatenate([moving[j, i], rest], axis=1) for j in (k, k + 1))
    return PassedEvents(before, after, w[i], lanes[i])


@remembered(64)
def _compiled(s: Simulation) -> kernel.Kernel:
    """The compiled states of conditions and parameters."""
    events = events_of(s)
    assert events is not None
    x, w, p, t = events.function.sx_in()
    return kernel.compile(ca.Function("states", [x, w, p, t], [events.function(x, w, p, t)[0]]), lanes=1)


def record_events(result: Draft, s: Simulation, found: list[PassedEvents], p: np.ndarray) -> None:
    """Add the events of runs to their result.   p: (runs, np) parameters."""
    events = events_of(s)
    if events is None:
        return
    at = lane_of(s)
    empty = PassedEvents(np.zeros((0, at.size)), np.zeros((0, at.size)), np.zeros((0, 2 * len(s.w_names))), np.zeros(0, int))
    passed = PassedEvents(*(np.concatenate(each) for each in zip(empty, *found, strict=True)))
    order = np.lexsort((passed.after[:, at.time], passed.runs))
    passed = PassedEvents(*(x[order] for x in passed))
    runs, time = passed.runs.astype(int), passed.after[:, at.begin] + passed.after[:, at.time]
    states, (x, y) = _compiled(s), (_states(at, rows) for rows in (passed.before, passed.after))
    w = (
        passed.w[:, : len(s.w_names)]
        + (passed.after[:, at.time] - passed.after[:, at.since])[:, None] * passed.w[:, len(s.w_names) :]
    )
    values = states(y, w, p[runs], time[:, None])[0] if len(runs) else np.zeros((0, len(events.names)))
    last = passed.after[:, at.events.last].astype(int)
    v, v_next = (
        (show(s.system, state, s.parameters(p[runs], state), time)[1] for state in (x, y))
        if len(runs)
        else [np.zeros((0, s.mechanism.nv))] * 2
    )
    names = np.array(events.names, dtype=object)[last] if len(runs) else np.array([], dtype=object)
    meaning = "1 where a constraint begins to act and 0 where it ceases, 0 at an impact, or the new value of a parameter"
    result.data["event_time"] = "event", time, {"units": "s"}
    result.data["event_run"] = "event", runs, {"units": "1"}
    result.data["event_name"] = "event", names.astype(str), {"meaning": "the constraint or parameter that changes"}
    result.data["event_value"] = "event", values[np.arange(len(runs)), last], {"units": "1", "meaning": meaning}
    result.data["event_jump"] = (
        ("event", "velocity"),
        v_next - v,
        {"units": "per velocity", "meaning": "change of the velocities at the event"},
    )


def _states(at: Lane, rows: np.ndarray) -> np.ndarray:
    """(n, nx) states [x; z; d] of lanes."""
    return np.concatenate([rows[:, at.x], rows[:, at.discrete]], axis=1)


COLUMNS = ("time", "run", "name", "value", "jump")


def events(result: xr.Dataset) -> xr.Dataset:
    """The events of runs to an accuracy: constraints that began or ceased to act, and parameters that switched.

    Args:
        result: the result of `run(..., accuracy=)`.
    Returns:
        Dataset over `event`, in the order of runs and of time: `time` [s]; `run`; `name` of the constraint or parameter;
        `value`, 1 where a constraint begins to act and 0 where it ceases, or the new value of the parameter; `jump`
        (event, velocity), how far velocities jumped at it.
    Raises ModelError: the argument is not the result of a run to an accuracy.

    Example:
        A ball falls 1.962 m onto a floor that then carries it:

        >>> import casadi as ca
        >>> import pfaffian as pf
        >>> on = pf.Parameter("on", 0.0)
        >>> floor = pf.constraints.active_while(pf.holonomic("floor", lambda k: k.q[0]), lambda k: on > 0.5)
        >>> slide = pf.joint("z", "prismatic", "world", "ball", axis=(0, 0, 1))
        >>> m = pf.mechanism("fall", [pf.body("ball", 1.0)], [slide], constraints=[floor], parameters=[on])
        >>> landing = {"on": lambda k: ca.if_else(k.q[0] < 0, 1, on)}
        >>> result = pf.run(m, {"z": 1.962}, duration=1.0, accuracy=1e-6, switches=landing, backend="numpy")
        >>> found = pf.events(result)
        >>> found.name.values.tolist(), found.time.values.round(6).tolist(), found.jump.values.round(3).tolist()
        (['on'], [0.632456], [[6.204]])
    """
    r = as_result(result)
    if "accuracy" not in r.attrs:
        raise ModelError("events are recorded in runs to an accuracy: run with accuracy= in place of step=")
    names = {f"event_{column}": column for column in COLUMNS if f"event_{column}" in r}
    return r[list(names)].drop_vars("run", errors="ignore").rename(names)
