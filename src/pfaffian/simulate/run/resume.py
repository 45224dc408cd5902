"""A run that continues from the end of another one: `run(m, start_from=result, duration=...)`.

The state of a run is [x; z; d]: the state x of the system, the states z that a law integrates, and the discrete states d of
its law, which include the modes that have switched and the counter of its noise. Steps are counted from the start of the first
run, so that times, the instants of laws and all bits are the same as in one run.
"""

from __future__ import annotations

import json
from hashlib import sha256
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pfaffian.errors import ModelError, RunWarning, notice
from pfaffian.model.mechanism import Mechanism
from pfaffian.simulate.record.result import as_result
from pfaffian.simulate.step.inputs import Times
from pfaffian.simulate.step.simulation import Simulation
from pfaffian.starts.start import Start
from pfaffian.states.abstract_system import show
from pfaffian.terms.equations_digest import digest

if TYPE_CHECKING:
    import xarray as xr

WHOLE = "start_from continues a whole result, which contains q, v, parameters, start and seed, so leave out"


class End(NamedTuple):
    """The end of a result, from which a run can continue.

    x: (runs, nx) states.   p: (runs, np) parameters.   start: [s] start of the first run.   steps: number of steps since then.
    step: [s] length of a step.   seed: seed of the noise.   digest: digest of mechanism, state, law and switches.
    """

    x: np.ndarray
    p: np.ndarray
    start: float
    steps: int
    step: float
    seed: Any
    digest: str


def end_of(m: Mechanism, result: Any, given: dict[str, Any]) -> End:
    """The end of a result.   given: {name: value} of other arguments of the run that set its start.

    Raises ModelError: see `checked_end`; or the result is of a run to an accuracy.
    """
    r, x, p = checked_end(m, result, given)
    a = r.attrs
    if "steps_made" not in a:
        raise ModelError(f"start_from: the result is of a run to an accuracy: give accuracy={a.get('accuracy')!r}, and no step")
    seed = json.loads(str(a.get("seed", 0)))
    return End(x, p, float(a["first_start"]), int(a["steps_made"]), float(a["step"]), seed, str(a["digest"]))


def checked_end(m: Mechanism, result: Any, given: dict[str, Any]) -> tuple[xr.Dataset, np.ndarray, np.ndarray]:
    """A result, its end state (runs, n) and its parameters (runs, np).   given: as in `end_of`.

    Raises ModelError: the result contains no end state, one of its runs stopped, or an argument in `given` is not None.
    """
    r = as_result(result)
    if conflicting := [name for name, value in given.items() if value is not None]:
        raise ModelError(f"{WHOLE} {', '.join(conflicting)}")
    if "end_state" not in r or not {"first_start", "digest"} <= set(r.attrs):
        raise ModelError("start_from: this result does not contain its end state; results of `run` do")
    stopped = np.flatnonzero(np.atleast_1d(r["status"].values))
    if stopped.size:
        which = f"run {stopped[0]} of the result" if "run" in r.dims else "the run"
        raise ModelError(
            f"start_from: {which} stopped before its end, see causes(result); select the others with result.isel(run=[...])"
        )
    x = np.atleast_2d(r["end_state"].values)
    return r, x, m.all_parameters(np.atleast_2d(r["parameters"].values) if "parameters" in r else np.zeros((len(x), 0)))


def following(end: End | None, when: Times) -> Times:
    """The times of a run that continues from an end, if there is one.

    Raises ModelError: the step differs, or records or samples of u do not continue at the end.
    """
    if end is None:
        return when
    if when.step != end.step:
        raise ModelError(
            f"start_from: the result has steps of {end.step!r} s and this run of {when.step!r} s: take step={end.step!r}"
        )
    for what, count in (("every", when.every), ("u_step / step", when.stride)):
        if end.steps % count:
            raise ModelError(
                f"start_from: the result ends after {end.steps} steps, which is no multiple of {what} = {count}: choose another"
            )
    return when._replace(first=end.steps)


def resumed(s: Simulation, end: End, runs: int, when: Times) -> Start:
    """The start at the end of another run. Raises ModelError: its mechanism, state, law or number of runs differs."""
    if end.digest != identity(s) or end.x.shape[1] != s.nx:
        raise ModelError(
            "start_from: the result is of another mechanism, state, law or switches; start a new run at its last q and v"
        )
    if len(end.x) != runs:
        raise ModelError(f"start_from: the result has {len(end.x)} runs and u {runs}: give u for each of them")
    q, v = show(s.system, end.x, s.parameters(end.p, end.x), when.begin)
    still = np.zeros_like(q), np.zeros_like(v), np.zeros(len(q))
    return Start(q, v, end.p, *still, ("",) * len(q))


def identity(s: Simulation) -> str:
    """Digest of everything that gives a state its meaning: the mechanism, the kind of state, the law and the switches."""
    m = s.mechanism
    parts = (digest(m), s.system.name, s.system.digest, s.law, s.changing.digests, s.nx)
    return sha256(repr(parts).encode()).hexdigest()


def since_start(series: np.ndarray, when: Times) -> np.ndarray:
    """Samples of u, preceded by placeholders for the samples of the earlier steps, which no step of this run uses."""
    before = when.first // when.stride if len(series) > 1 else 0
    return np.concatenate([np.repeat(series[:1], before, axis=0), series]) if before else series


def end_state(s: Simulation, x: np.ndarray, when: Times) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The variable and the attributes that store the end of a result.   x: (runs, nx) last states."""
    meaning = "state after the last step, with the internal state of the law: run(..., start_from=result) continues from it"
    attributes = {"first_start": when.start, "steps_made": when.end, "digest": identity(s)}
    return (("run", "state_entry"), x, {"meaning": meaning}), attributes


def warn_of_restart(s: Simulation, start: float) -> None:
    """Issue a RunWarning if an uncorrected start is probably the end of another run, because the law starts anew."""
    if start and (s.z or s.layout.size):
        notice(
            "correct_start=False takes q and v as they are, but the internal state of the law starts anew; "
            "start_from=result continues with the complete state at the end of a run",
            RunWarning,
        )
