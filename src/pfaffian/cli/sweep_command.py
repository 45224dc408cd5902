"""`pfaffian sweep`: run the sweep of a file into a store, or explain what it takes."""

from __future__ import annotations

import argparse
import contextlib
import sys
import time
from pathlib import Path
from typing import Any

from pfaffian.cli.chosen_machine import count, file_arguments, keywords_of_run, read, system_of
from pfaffian.cli.terminal import DONE
from pfaffian.errors import ModelError, optional, plural
from pfaffian.output.plain import stem, text


def arguments(parser: argparse.ArgumentParser) -> None:
    file_arguments(parser)
    add = parser.add_argument
    add("--store", type=Path, metavar="DIR", help="folder for the results (default: out/NAME.zarr)")
    add("--shard", metavar="I/N", help="compute only part I of N, for batch systems that start N such jobs")
    add(
        "--scheduler",
        metavar="ADDRESS",
        help="address of a Dask scheduler whose workers compute the runs, e.g. tcp://head:8786",
    )
    add("--threads", metavar="K", help="number of blocks at a time on this machine (default: one for each core)")
    add("--explain", action="store_true", help="print how many runs, bytes and seconds the sweep takes, and store no results")
    add("--progress", action=argparse.BooleanOptionalAction, help="show a progress bar (default: on a terminal)")


def command(chosen: argparse.Namespace) -> int:
    """The command `pfaffian sweep`: run the sweep of a file into a store, or explain what it takes."""
    import pfaffian as pf
    from pfaffian.output.folder import prepare
    from pfaffian.sweeps.at_states import OF_STATES

    m, settings = read(chosen)
    if settings.sweep is None:
        raise ModelError(f"{text(chosen.file.name)}: there is no section `sweep:`; it needs axes, samples or states, and keep")
    s = settings.sweep
    space: dict[str, Any] = {label: (dim, list(x)) for label, (dim, x) in s.listed.items()}
    if s.ranges:
        space |= pf.sweeps.samples(s.ranges, s.count, method=s.method, seed=s.seed)
    keep: Any = s.keep
    if not isinstance(s.keep, str):
        keep = {n: x if x is True else getattr(pf.statistics, x[0])(x[1], *x[2]) for n, x in s.keep.items()}
    write_file = chosen.store or Path("out") / f"{stem(chosen.file.stem)}.zarr"
    arguments: dict[str, Any] = {"store": write_file, "keep": keep, "block": s.block, **keywords_of_run(settings)}
    if s.states:
        arguments = {n: x for n, x in arguments.items() if n in ("store", "keep", "block", *OF_STATES) and x is not None}
        arguments["states"] = {label: (dim, list(x)) for label, (dim, x) in s.states.items()}
    system = system_of(m, settings.state)
    if chosen.explain:
        print(pf.sweeps.explain(system, space, **arguments))
        return DONE
    prepare(write_file.parent)
    started = time.perf_counter()
    bar = chosen.progress if chosen.progress is not None else sys.stderr.isatty()
    with _cluster(chosen.scheduler) as client:
        threads = None if chosen.threads is None else count(chosen.threads, "--threads")
        dataset = pf.sweep(system, space, client=client, shard=chosen.shard, threads=threads, progress=bar, **arguments)
    left = int((dataset["block_digest"].values == 0).sum())
    rest = f"{plural(left, 'block')} left to other parts" if left else "complete"
    print(f"{plural(dataset.sizes['run'], 'run')} in {text(write_file)}, {rest}; {time.perf_counter() - started:.1f} s")
    return DONE


def _cluster(address: str | None) -> Any:
    """A context with a client of the Dask scheduler at this address; with None if there is no address."""
    if address is None:
        return contextlib.nullcontext()
    distributed = optional("distributed", "distributed", "--scheduler needs")
    try:
        return distributed.Client(address, timeout=20, set_as_default=False)  # one that finds nobody would stay the default
    except (OSError, ValueError) as error:
        raise ModelError(f"--scheduler {text(address, 60)!r}: no Dask scheduler answers: {text(error, 200)}") from None
