"""The events of runs: when, of what, to which value, and how far velocities jumped."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import casadi as ca
import numpy as np

from pfaffian import kernel
from pfaffian.control.layout import NO_EVENTS, TO_ACCURACY, EventNumbers
from pfaffian.errors import ModelError
from pfaffian.kernel.remember import remembered
from pfaffian.simulate.record.result import as_result
from pfaffian.simulate.step.draft import Draft
from pfaffian.simulate.step.events import Events, events_of
from pfaffian.simulate.step.lane import SINCE, discrete_of, lane_of, rows_of_lanes
from pfaffian.simulate.step.simulation import Simulation
from pfaffian.states.abstract_system import show

if TYPE_CHECKING:
    import xarray as xr


LAST = 2.0**12 * float(np.finfo(float).eps)
"""Time from the end of a run, relative to the time itself, within which an event counts as at its last instant: rounding
decides on which side of the end it is."""


def at_last(end: float) -> float:
    """Time from the end of a run within which an event is at its last instant [s].   end: [s]."""
    return LAST * abs(end)


class PassedEvents(NamedTuple):
    """Steps that pass events.   before, after: (n, nx) states [x; z; d].   time: (n,) [s].   w: (n, nw) inputs.   runs: (n,) of
    each."""

    before: np.ndarray
    after: np.ndarray
    time: np.ndarray
    w: np.ndarray
    runs: np.ndarray


def passing(events: Events, time: np.ndarray, numbers: EventNumbers) -> np.ndarray:
    """Which steps pass an event, put the state onto the constraints after a switch, or rebound.

    time: (steps + 1, ...) at the begin of each and after the last.   numbers: (steps + 1, ...) each, at the same states.
    """
    aim, total, last = numbers.aim, numbers.total, numbers.last[1:]
    settles = (aim[:-1] == time[:-1]) & (aim[1:] != aim[:-1])
    jumps, modes = total[1:] > total[:-1], events.conditions + events.impacts
    begins = jumps & (last < events.conditions) & ~settles
    impacts = jumps & (last < modes) & (time[1:] == time[:-1])
    found: np.ndarray = (settles & (last >= modes)) | begins | impacts
    return found


def passed_events(s: Simulation, rows: np.ndarray, end: np.ndarray, w: np.ndarray, lanes: np.ndarray) -> PassedEvents | None:
    """Those of the steps that lanes have made that pass an event; None where there are none.

    rows: (steps, lanes, numbers) before each step.   end: (lanes, numbers) after the last.   w: rows of their inputs.
    """
    events = events_of(s)
    if events is None:
        return None
    at = lane_of(s)
    time, *numbers = (np.concatenate([rows[..., j], end[None, :, j]]) for j in (at.time, *at.events[:TO_ACCURACY]))
    k, i = np.nonzero(passing(events, time, EventNumbers(*numbers, *NO_EVENTS[TO_ACCURACY:])))
    if not k.size:
        return None
    following = np.concatenate([rows[1:], end[None, :, : at.moving]])
    moving = rows[k, i], following[k, i]
    before, after = (np.concatenate([x[:, at.x], discrete_of(at, x, end[i])], axis=1) for x in moving)
    then, nw, w = time[k + 1, i], len(s.w_names), rows_of_lanes(w, rows[k, i, at.interval], i)
    now = w[:, :nw] + (then - w[:, SINCE])[:, None] * w[:, nw : 2 * nw]
    return PassedEvents(before, after, end[i, at.begin] + then, now, lanes[i])


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
    if events is None or not (events.names or s.changing.visible):
        return
    nx, nw = s.nx, len(s.w_names)
    empty = PassedEvents(np.zeros((0, nx)), np.zeros((0, nx)), np.zeros(0), np.zeros((0, nw)), np.zeros(0, int))
    passed = PassedEvents(*(np.concatenate(each) for each in zip(empty, *found, strict=True)))
    order = np.lexsort((passed.time, passed.runs))
    passed = PassedEvents(*(each[order] for each in passed))
    found_at = Described(np.zeros(0, int), np.array([], dtype=str), np.zeros(0), np.zeros((0, s.mechanism.nv)))
    if len(passed.runs):
        found_at = _described(s, passed, p[passed.runs])
    rows, names, values, jumps = found_at
    meaning = "1 where a constraint begins to act and 0 where it ceases, 0 at an impact, or the new value of a parameter"
    result.data["event_time"] = "event", passed.time[rows], {"units": "s"}
    result.data["event_run"] = "event", passed.runs[rows], {"units": "1"}
    result.data["event_name"] = "event", names, {"meaning": "the constraint, parameter or part that changes"}
    result.data["event_value"] = "event", values, {"units": "1", "meaning": meaning}
    about = {"units": "per velocity", "meaning": "change of the velocities at the event"}
    result.data["event_jump"] = ("event", "velocity"), jumps, about


def drop_listed(result: Draft, earlier: xr.Dataset) -> None:
    """Drop the events of a result that the one which it continues has listed already, as those of its last instant."""
    if "event_time" not in result.data or "event_time" not in earlier:
        return
    r = earlier.attrs
    end = float(r["first_start"]) + float(r["time_made"] if "time_made" in r else r["steps_made"] * r["step"])

    def near(found: Draft | xr.Dataset) -> tuple[np.ndarray, list[tuple[int, str]]]:
        when, run, name = (np.asarray(found[f"event_{column}"]) for column in ("time", "run", "name"))
        return np.abs(when - end) <= 2 * at_last(end), list(zip(run.tolist(), name.tolist(), strict=True))

    close, listed = near(earlier)
    known = {each for each, at_end in zip(listed, close, strict=True) if at_end}
    close, found = near(result)
    new = np.array([not (at_begin and each in known) for each, at_begin in zip(found, close, strict=True)], dtype=bool)
    for column in COLUMNS:
        dims, values, about = result.data[f"event_{column}"]
        result.data[f"event_{column}"] = dims, values[new], about


class Described(NamedTuple):
    """What changes at events.   rows: (n,) the event of each.   names, values: (n,) of what changes to which value.   jumps:
    (n, nv) of the velocities."""

    rows: np.ndarray
    names: np.ndarray
    values: np.ndarray
    jumps: np.ndarray


def _described(s: Simulation, passed: PassedEvents, p: np.ndarray) -> Described:
    """What changes at each event; several things where surfaces meet, or constraints change, at one instant.   p: (n, np)."""
    events, x, y, time = events_of(s), passed.before, passed.after, passed.time
    assert events is not None
    before, values = (_compiled(s)(state, passed.w, p, time[:, None])[0] for state in (x, y))
    d, modes = y[:, s.nx - s.layout.size :], events.conditions + events.impacts
    values[:, modes:] = d[:, events.modes]
    last = EventNumbers(*d[:, s.layout.events].T).last.astype(int)
    changes = np.arange(len(events.names)) == last[:, None]
    of_state, of_impact = last < events.conditions, (last >= events.conditions) & (last < modes)
    changes[of_state, : events.conditions] |= (before != values)[of_state, : events.conditions]
    changes[of_impact, events.conditions : modes] |= before[of_impact, events.conditions : modes] == 1
    rows, which = np.nonzero(changes)
    v, v_next = (show(s.system, state, s.parameters(p, state), time)[1] for state in (x, y))
    names = np.array(events.names, dtype=object)[which].astype(str)
    return Described(rows, names, values[rows, which], (v_next - v)[rows])


COLUMNS = ("time", "run", "name", "value", "jump")


def events(result: xr.Dataset) -> xr.Dataset:
    """The events of runs: constraints that began or ceased to act, parameters that switched, impacts, and kinks of forces.

    Args:
        result: the result of `run`, to an accuracy or of a single run in steps of one length.
    Returns:
        Dataset over `event`, in the order of runs and of time: `time` [s]; `run`; `name` of the constraint or parameter, or,
        with `accuracy`, of the contact, stop, force or "control law" with a kink; `value`, 1 where a constraint begins to act
        or surfaces touch, 0 where they cease, the new value of the parameter, or 1 and 0 on the sides of a kink; `jump`
        (event, velocity), how far velocities jumped at it. Where surfaces meet or constraints change at one instant, each is
        listed, with the jump of all together; of parameters that switch at once, the first. An event at the last instant of a
        run is listed, though the record there is of the side before it; a run that continues lists it no more.
    Raises ModelError: the argument is no such result.

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
    if "accuracy" not in r.attrs and r["status"].size > 1:
        raise ModelError(
            "the events of a batch are recorded in runs to an accuracy: run with accuracy= in place of step=, or one by one"
        )
    names = {f"event_{column}": column for column in COLUMNS if f"event_{column}" in r}
    return r[list(names)].drop_vars("run", errors="ignore").rename(names)
