"""A run with steps of one length, from its arguments to its result."""

from __future__ import annotations

from pfaffian.evaluate.progress import progress_line
from pfaffian.evaluate.single_values import MOST_THREADS, as_whole, some_runs
from pfaffian.simulate.run.batch import Batch, computed
from pfaffian.simulate.run.batch_start import beginning, started
from pfaffian.simulate.run.companion import as_estimated
from pfaffian.simulate.run.resume import End, end_of, following
from pfaffian.simulate.run.run_options import bound_of
from pfaffian.simulate.run.run_request import RunRequest
from pfaffian.simulate.step.draft import Draft
from pfaffian.simulate.step.inputs import times_in_steps, warn_of_short_inputs
from pfaffian.simulate.step.running_statistics import as_recording
from pfaffian.simulate.step.sampling import check_seeds, compiled_instants
from pfaffian.simulate.step.signals import as_record
from pfaffian.simulate.step.simulation import Simulation
from pfaffian.simulate.step.switches import as_switches
from pfaffian.simulate.step.turns import counting_arguments
from pfaffian.states.abstract_system import AbstractSystem


def run_in_steps(system: AbstractSystem, r: RunRequest) -> Draft:
    """The result of `run` with steps of one length. Raises and warns as `run` does."""
    system, scheme, law, extra = counting_arguments(system, r.scheme, r.control, r.outputs, r.switches)
    m = system.mechanism
    end = None if r.start_from is None else end_of(m, r.start_from, r.of_start)
    when = following(end, times_in_steps(end.start if end else r.start, r.duration, r.step, r.every, r.u_step))
    seeds, bound = check_seeds(r.seed), bound_of(r.error_bound, r.step, scheme)
    changing = as_switches(m, r.switches)
    due = compiled_instants(law, when.step)
    begin, series = beginning(m, law, end or when.start, r.state, r.u, r.u_step is not None, r.backend, r.progress)
    if r.u_step is not None:
        warn_of_short_inputs(series, when, r.hold)
    count = some_runs({"q, v, parameters": len(begin.p), "u": series.shape[1] if series.ndim == 3 else 1, "seed": seeds})
    workers = None if r.threads is None else as_whole(r.threads, "threads", most=MOST_THREADS)
    recording = as_recording(r.record)
    recorded = as_record(recording.signals if recording else r.record, count)
    simulation = Simulation(system, scheme, law, extra, recorded, changing.next).with_kinks()
    with progress_line(m.name, r.progress):
        begun = started(simulation, begin, count, when, r.seed, recording, r.correct_start)
    seed = begin.seed if isinstance(begin, End) else r.seed
    del begin  # its memory, which a large batch needs
    batch = Batch(
        simulation=simulation,
        started=begun,
        runs=count,
        when=when,
        series=series,
        hold=r.hold,
        due=due,
        bound=bound,
        seed=seed,
        correct_start=r.correct_start,
        backend=r.backend,
        strict=r.strict,
        threads=workers,
        progress=r.progress,
        estimated=as_estimated(r.error, count),
    )
    return computed(batch)
