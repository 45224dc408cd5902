"""sweep: runs a space block by block into a store, on threads or on a Dask cluster; a second call continues the first."""

from __future__ import annotations

import pickle
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import as_completed as first_done
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, NamedTuple

import casadi as ca
import xarray as xr

from pfaffian.errors import ModelError, RunWarning, brief, notice, optional, plural
from pfaffian.evaluate.progress import progress_bar, progress_line
from pfaffian.evaluate.single_values import MOST_THREADS, as_flag, as_whole
from pfaffian.kernel.call.memory import threads_for
from pfaffian.model.data import functions_by_value
from pfaffian.sweeps.blocks import need_zarr
from pfaffian.sweeps.description import is_unused, tidy
from pfaffian.sweeps.plan import plan, read_again
from pfaffian.sweeps.planned import Sweep, computed
from pfaffian.sweeps.store import check, create, open_store, write

LONG = 10.0
"""Duration of a block [s] from which it is measured only once."""

RETRIES = 3
"""How often Dask repeats a block that failed or whose worker was lost."""


class Explained(NamedTuple):
    """The cost of a sweep.

    runs, blocks: total numbers.   left: number of runs that are not in the store yet.   bytes: size of the whole store, before
    compression.   seconds: time for the runs that are left, on one worker, from a block that was measured.
    """

    runs: int
    blocks: int
    left: int
    bytes: int
    seconds: float

    def __str__(self) -> str:
        size = next(f"{self.bytes / 1000**i:.3g} {u}" for i, u in reversed([*enumerate(["B", "kB", "MB", "GB", "TB"])])
                    if self.bytes >= 1000**i or not i)  # fmt: skip
        return (
            f"{self.runs} runs in {plural(self.blocks, 'block')}, {self.left} of them to do; {size} before compression; "
            f"about {self.seconds:.3g} s on one worker"
        )


def explain(
    m: Any, space: Any, *, store: Any, keep: Any, states: Any = None, block: int | None = None, **options: Any
) -> Explained:
    """The cost of a sweep: runs, bytes and seconds. One block is run to measure its time; nothing is stored.

    Args:
        m, space, store, keep, states, block, options: as in `sweep`.
    Returns:
        runs, blocks, left, bytes, seconds; printed, they are a sentence.
    Raises ModelError: wrong arguments; a store of another sweep, or a damaged one.

    Example:
        >>> import pfaffian as pf
        >>> m = pf.mechanism("box", [pf.body("box", 1.0)], [pf.joint("x", "prismatic", "world", "box")])
        >>> how = {"duration": 1.0, "step": 0.1, "backend": "numpy", "keep": {"end": pf.statistics.final("q")}}
        >>> found = pf.sweeps.explain(m, {"v:x": [1.0, 2.0], "q:x": [0.0, 0.5, 1.0]}, store="runs.zarr", **how)
        >>> found.runs, found.left, found.bytes
        (6, 6, 360)
    """
    need_zarr()
    planned = _ready(plan(m, space, store, keep, block, options, states))
    left = list(range(planned.blocks))
    if not is_unused(planned.store):
        check(planned)
        left = planned.written.missing()
    count = sum(planned.runs_of(k).stop - planned.runs_of(k).start for k in left)
    seconds = 0.0
    if left:
        runs = planned.runs_of(left[0])
        seconds = _measured(planned, left[0]) * count / (runs.stop - runs.start)
    return Explained(planned.space.runs, planned.blocks, count, planned.space.runs * planned.bytes_a_run, seconds)


def _measured(planned: Sweep, k: int) -> float:
    """Duration of a block [s]; that of a second run if the first was quick, when most of it is tracing and compiling."""
    for last in (False, True):
        begun = time.perf_counter()
        computed(planned, k, 1)
        seconds = time.perf_counter() - begun
        if last or seconds > LONG:
            break
    return seconds


def sweep(
    m: Any,
    space: Any,
    *,
    store: Any,
    keep: Any,
    states: Any = None,
    block: int | None = None,
    client: Any = None,
    shard: str | None = None,
    threads: int | None = None,
    progress: bool = False,
    **options: Any,
) -> xr.Dataset:
    """Run a space of parameters, starts, inputs and seeds, and store the results in a folder that may be larger than memory.

    A sweep may be stopped at any instant; called again, it computes only what is missing. The store has the same bits for any
    order of the blocks, any workers and any interruptions.

    Args:
        m: the mechanism, or a System.
        space: {label: values}; a label is the name of a parameter, "q:NAME", "v:NAME", "u:NAME" or "seed". Plain values
            (n,) get a dimension of that label; ("dimension", values) or a DataArray over one dimension name it;
            `sweeps.samples` fills a box. Axes that share a dimension vary together, and dimensions multiply; the last one
            varies fastest. {} for one machine alone, whose `states` vary.
        store: folder of the store, such as "runs.zarr", created if there is none.
        keep: what is stored of each run, as `record` of `run`: {"peak": statistics.maximum("v")} for numbers over the run,
            names of signals for trajectories; "loads" for the peak loads of all joints and closures, see `loads`.
        states: {label: values} with labels and dimensions as in `space`: states along a stroke or in a workspace, evaluated in
            place of a run. Coordinates and rates that are named are held; the others close the loops on the branch of the state
            before, the first one on that of `guess`. The actuators hold each state, with the smallest inputs; with `u`, or
            without actuators, it moves under these inputs instead. Statistics are then over the states, and an instant is the
            number of a state. Of the arguments of `run` q, v, u, parameters, guess, outputs, backend and start are taken. None
            (default): runs.
        block: number of runs in a block, which is one chunk of the store and the most that an interruption costs; None
            (default): chosen by the steps and bytes of a run.
        client: a `dask.distributed.Client` whose workers compute the blocks; they need access to the same folder. None
            (default): this process computes them.
        shard: "2/10": only the blocks of the second of ten workers, for batch systems; None (default): all.
        threads: number of blocks computed at a time without a `client`; None (default): one for each core.
        progress: show a progress bar over all blocks of the store, including those of other workers. False by default.
        options: arguments of `run`; `duration` is needed. q, v, u and parameters are {name: number} for what does not vary, or
            arrays without an axis of runs; an axis of the same name replaces the number. With `u_step`, u is a series for all
            runs. `guess` selects the branch of a loop. Run k of the space has the noise of the seed `seed + k`, or of its
            "seed" in the space. A law in Python is called for one block at a time, and must give the same inputs whenever a run
            is computed.
    Returns:
        Dataset over `run` that reads from the store, see `sweeps.open_store`.
    Raises ModelError: wrong arguments; a store of another mechanism, law, space, version or layout; the message says what
    differs; metadata or labels of the store are damaged, see `sweeps.damaged`.
    Raises RunError: the store cannot be written or read.
    Warns RunWarning: there were warnings about runs; the number of blocks with warnings, and the first warning.

    Example:
        >>> import tempfile
        >>> import pfaffian as pf
        >>> l = pf.Parameter("length", 1.0, "m")
        >>> hinge = pf.joint("hinge", "revolute", "world", "bob", axis=(0, 1, 0))
        >>> m = pf.mechanism("pendulum", [pf.body("bob", 1.0, com=(0, 0, -l))], [hinge], parameters=[l])
        >>> space = {"length": [0.5, 1.0, 2.0], "q:hinge": [0.1, 0.2]}
        >>> keep = {"fastest": pf.statistics.maximum("v")}
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     found = pf.sweep(m, space, store=f"{folder}/runs.zarr", keep=keep, duration=2.0, step=0.01, backend="numpy")
        ...     found["fastest"].sel(velocity="hinge").values.round(3)
        array([0.443, 0.884, 0.313, 0.625, 0.212, 0.423])
    """
    need_zarr()
    part, parts = _shard(shard)
    if client is not None and threads is not None:
        raise ModelError(
            "sweep: threads are those of this process; workers of a client have their own: leave one of the two out"
        )
    if client is not None and not (hasattr(client, "map") and hasattr(client, "scatter")):
        raise ModelError(f"client: a dask.distributed.Client is needed, got {brief(client)}")
    workers = None if threads is None else as_whole(threads, "threads", MOST_THREADS)
    with progress_line(as_name(m), as_flag(progress, "progress")):
        planned = plan(m, space, store, keep, block, options, states)
        payload = pickled(planned) if client is not None else b""  # before a law in Python is called, which may change it
        create(_ready(planned))
        tidy(planned.store)
    left = [k for k in planned.written.missing() if k % parts == part]
    done = _on_cluster(payload, left, client) if payload else _here(planned, left, workers or threads_for(2**20, 1))
    noisy: Counter[int] = Counter()
    messages: list[str] = []
    finished = planned.blocks - len(planned.written.missing())
    with progress_bar(planned.blocks, "block", None, progress, finished) as count_blocks:
        for k, warned in done:
            now = max(finished, len(planned.written.stored()))
            count_blocks(now - finished)
            finished = now
            noisy[k] += len(warned) > 0
            messages += [f"runs {planned.runs_of(k).start} to {planned.runs_of(k).stop - 1}: {x}" for x in warned[:1]]
    if messages:
        notice(f"{plural(sum(noisy.values()), 'block')} of {len(left)} computed now had warnings; {min(messages)}", RunWarning)
    return open_store(planned.store)


def as_name(m: Any) -> str:
    """Name of a caller's mechanism in a progress line, before it is checked."""
    return str(getattr(m, "name", "sweep"))


def _ready(planned: Sweep) -> Sweep:
    """The sweep, with its block size determined before it goes to workers, so that all have the same."""
    assert planned.block
    return planned


def _shard(shard: Any) -> tuple[int, int]:
    """Index of a worker, from 0 on, and number of workers. Raises ModelError: not "i/n" with i from 1 to n."""
    if shard is None:
        return 0, 1
    first, slash, second = shard.partition("/") if isinstance(shard, str) else ("", "", "")
    if not (slash and all(x.isascii() and x.isdigit() and len(x) < 10 for x in (first, second))):
        raise ModelError(f"shard: 'i/n' is needed, such as '2/10', got {shard!r}")
    if not 1 <= int(first) <= int(second):
        raise ModelError(f"shard {shard!r}: there are shards 1 to {second}")
    return int(first) - 1, int(second)


def stored(planned: Sweep, k: int) -> tuple[int, list[str]]:
    """Compute block k and write it into the store; returns k and the warnings about its runs."""
    try:
        results, messages = computed(planned, k, 1)
    except ModelError as error:
        runs = planned.runs_of(k)
        raise ModelError(f"runs {runs.start} to {runs.stop - 1} of the sweep: {error}") from None
    write(planned, k, results)
    return k, messages


@contextmanager
def _pool(workers: int) -> Iterator[ThreadPoolExecutor]:
    """A pool of threads that, on Ctrl-C or an error, finishes the blocks that have begun and drops the others."""
    pool = ThreadPoolExecutor(workers, thread_name_prefix="sweep")
    try:
        yield pool
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _here(planned: Sweep, left: list[int], workers: int) -> Iterator[tuple[int, list[str]]]:
    """The blocks, computed by threads of this process."""
    with _pool(max(1, min(workers, len(left)))) as pool:
        futures: list[Future[Any]] = [pool.submit(stored, planned, k) for k in left]
        for future in first_done(futures):
            yield future.result()


def pickled(planned: Sweep) -> bytes:
    """The sweep in bytes, for other processes. Raises ModelError: an object in it cannot be pickled."""
    import cloudpickle  # a dependency of distributed

    try:
        with functions_by_value(), ca.global_pickle_context():
            return cloudpickle.dumps(planned)
    except Exception as error:  # the caller's objects may raise any exception
        raise ModelError(f"client: the sweep cannot be sent to workers: {error}") from error


@lru_cache(maxsize=4)
def _unpickled(payload: bytes) -> Sweep:
    """The sweep on a worker. Its identity is computed again, so that a worker that reads it differently is refused."""
    with ca.global_unpickle_context():
        planned = read_again(pickle.loads(payload))  # noqa: S301  # from the scheduler, which may run any code here anyway
    check(planned)
    return planned


def on_worker(k: int, payload: bytes) -> tuple[int, list[str]]:
    """`stored` in another process. Raises ModelError: this process has other versions than the store."""
    return stored(_unpickled(payload), k)


def _on_cluster(payload: bytes, left: list[int], client: Any) -> Iterator[tuple[int, list[str]]]:
    """The blocks, computed as tasks of Dask, which restarts those of a lost worker."""
    distributed = optional("distributed", "distributed", "client= needs")
    sent = client.scatter(payload, broadcast=True)
    futures = client.map(on_worker, left, payload=sent, pure=False, retries=RETRIES)
    for future in distributed.as_completed(futures):
        yield future.result()
        future.release()
