"""Check the promises of the sweep page with 10^6 slider-cranks: cost, kill and resume, full disk, Dask workers, large stores.

    python -m tools.sweep_check whole kill full dask large --runs 1048576

whole   time, bytes, files and peak memory of one sweep on two threads
kill    that sweep, stopped by `kill -9` at 20 random instants and called again: are the files equal byte for byte?
full    that sweep on a disk that is full three times (needs the right to mount a tmpfs): errors, and are the files equal?
dask    a quarter of the runs on 1, 2 and 4 workers: how even is their work, and are the files equal?
large   trajectories larger than the memory limit of a process: peak memory of the sweep and of its mean
"""

from __future__ import annotations

import argparse
import hashlib
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pfaffian as pf

KILLS, THREADS, SEED = 20, 2, 7
START = 4.0
"""Assumed time until a process computes its first block [s]."""

SHARES = (0.02, 0.5, 0.8)
"""Sizes of the full disks, relative to the store."""

PAGE = 4096
"""Block size of a tmpfs [bytes]."""

MEMORY = 2 * 2**30
"""Memory limit of a process with trajectories [bytes], half the size of 2^19 of them."""

EXAMPLE = Path(__file__).parents[1] / "examples" / "slider_crank.yaml"


def sweep(store: Path, runs: int, *, large: bool = False, **how: Any) -> Any:
    """Sweep over four axes with six statistics of 200 steps each, or with trajectories."""
    m, _ = pf.read(EXAMPLE)
    ranges = {"l": (0.5, 2.0), "m": (0.5, 2.0), "q:q1": (0.3, 1.2), "u:crank torque": (-3.0, 3.0)}
    statistics: Any = ["q", "v", "energy"]
    if not large:
        kinds = {"most": pf.statistics.maximum, "end": pf.statistics.final, "sum": pf.statistics.integral}
        statistics = {f"{kind}_{of}": make(of) for kind, make in kinds.items() for of in ("q", "v")}
    given = {"guess": {"q2": 4.0}, "duration": 0.2, "step": 1e-3, "keep": statistics}
    return pf.sweep(m, pf.sweeps.samples(ranges, runs, seed=SEED), store=store, **given, **how)


def files(store: Path) -> dict[str, str]:
    """Digest of each file of a store, without the files that a killed process was writing."""
    every = sorted(p for p in store.rglob("*") if p.is_file() and ".partial" not in str(p))
    return {str(p.relative_to(store)): hashlib.sha256(p.read_bytes()).hexdigest() for p in every}


def child(store: Path, runs: int, *, large: bool = False) -> subprocess.Popen[str]:
    """Run a process that sweeps and prints its wall time, processor time [s] and peak memory [MB]."""
    argv = [sys.executable, "-m", "tools.sweep_check", "_sweep", "--store", str(store), "--runs", str(runs)]
    return subprocess.Popen([*argv, *(["--large"] if large else [])], stdout=subprocess.PIPE, text=True)


def finished(process: subprocess.Popen[str]) -> str:
    words, _ = process.communicate()
    assert process.returncode == 0, f"ended with {process.returncode}: {words}"
    return words.strip()


def blocks(store: Path) -> int:
    folder = store / "block_digest" / "c"
    return len(list(folder.iterdir())) if folder.is_dir() else 0


def whole(place: Path, runs: int) -> dict[str, str]:
    words = finished(child(place / "whole.zarr", runs))
    found = files(place / "whole.zarr")
    size = sum(p.stat().st_size for p in (place / "whole.zarr").rglob("*") if p.is_file())
    print(f"whole: {runs} runs, {words}; {len(found)} files, {size / 1e6:.1f} MB", flush=True)
    assert not pf.sweeps.damaged(place / "whole.zarr")
    return found


def kill(place: Path, runs: int, expected: dict[str, str]) -> None:
    """Kill each process after its start-up and at most a twelfth of the work."""
    store, draw, seen = place / "killed.zarr", random.Random(SEED), list[int]()
    begun = time.monotonic()
    finished(child(place / "timed.zarr", runs))
    alone = time.monotonic() - begun
    while len(seen) < KILLS and (not seen or seen[-1] < blocks(place / "whole.zarr")):
        process = child(store, runs)
        time.sleep(draw.uniform(0.0, START + alone / 12))
        process.kill()
        assert process.wait() == -signal.SIGKILL
        seen.append(blocks(store))
    finished(child(store, runs))
    print(f"kill: killed {len(seen)} times, after {seen} blocks of {blocks(store)}", flush=True)
    assert files(store) == expected, [n for n in expected if files(store).get(n) != expected[n]]
    print("kill: the same files, byte for byte", flush=True)


def full(place: Path, runs: int, expected: dict[str, str]) -> None:
    disk = place / "disk"
    disk.mkdir()
    needed = sum(-(-p.stat().st_size // PAGE) * PAGE for p in (place / "whole.zarr").rglob("*") if p.is_file())
    sizes = [*(int(share * needed) for share in SHARES), 4 * needed]
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={sizes[0]}", "tmpfs", str(disk)], check=True)
    try:
        for size, more in pairwise(sizes):
            try:
                sweep(disk / "runs.zarr", runs, threads=THREADS)
            except pf.RunError as error:
                print(f"full: {size} bytes, {blocks(disk / 'runs.zarr')} blocks: {error}", flush=True)
            else:
                raise AssertionError("the disk was not full")
            assert not (disk / "runs.zarr").exists() or not pf.sweeps.damaged(disk / "runs.zarr")
            subprocess.run(["mount", "-o", f"remount,size={more}", str(disk)], check=True)
        sweep(disk / "runs.zarr", runs, threads=THREADS)
        assert files(disk / "runs.zarr") == expected
        print("full: the same files, byte for byte", flush=True)
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def dask(place: Path, runs: int, _: dict[str, str]) -> None:
    import distributed

    stores = []
    for count in (1, 2, 4):
        stores.append(place / f"dask{count}.zarr")
        how: dict[str, Any] = {"n_workers": count, "threads_per_worker": 1, "dashboard_address": None}
        with distributed.LocalCluster(**how) as cluster, distributed.Client(cluster) as client:
            begun = time.monotonic()
            sweep(stores[-1], runs // 4, client=client)
            seconds = time.monotonic() - begun
            done = client.run(lambda dask_worker: dask_worker.state.executed_count)
        print(f"dask: {count} workers, {seconds:.1f} s, blocks {sorted(done.values())}", flush=True)
    assert all(files(store) == files(stores[0]) for store in stores)
    print("dask: the same files on 1, 2 and 4 workers", flush=True)


def large(place: Path, runs: int, _: dict[str, str]) -> None:
    words = finished(child(place / "large.zarr", runs // 2, large=True))
    found = pf.sweeps.open_store(place / "large.zarr")
    numbers = sum(found[name].nbytes for name in ("q", "v", "energy"))
    begun = time.monotonic()
    mean = float(found["energy"].max("time").mean().compute())
    print(f"large: {runs // 2} runs, {numbers / 1e9:.2f} GB of numbers, {words}; read in {time.monotonic() - begun:.0f} s, "
          f"peak {peak():.0f} MB with that; {mean:.6g} J", flush=True)  # fmt: skip


def peak() -> float:
    """Peak memory of this process [MB]."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def only_sweep(store: Path, runs: int, is_large: bool) -> None:
    begun = time.perf_counter(), time.process_time()
    if is_large:
        resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    sweep(store, runs, large=is_large, threads=THREADS)
    now = time.perf_counter(), time.process_time()
    print(f"{now[0] - begun[0]:.1f} s, {now[1] - begun[1]:.1f} s of processor time, peak memory {peak():.0f} MB")


def main() -> None:
    checks: dict[str, Callable[[Path, int, dict[str, str]], None]] = {"kill": kill, "full": full, "dask": dask, "large": large}
    parser = argparse.ArgumentParser(prog="python -m tools.sweep_check", description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("what", nargs="+", choices=["whole", *checks, "_sweep"])
    parser.add_argument("--runs", type=int, default=2**20)
    parser.add_argument("--store", type=Path)
    parser.add_argument("--large", action="store_true")
    given = parser.parse_args()
    if given.what == ["_sweep"]:
        only_sweep(given.store, given.runs, given.large)
        return
    with tempfile.TemporaryDirectory() as folder:
        expected = whole(Path(folder), given.runs)
        for name in given.what:
            if name in checks:
                checks[name](Path(folder), given.runs, expected)


if __name__ == "__main__":
    main()
