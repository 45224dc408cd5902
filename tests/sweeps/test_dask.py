"""A sweep on a Dask cluster of processes, one of which is killed during the sweep."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import distributed
import numpy as np

import pfaffian as pf
from pfaffian import statistics
from tests.sweeps.test_sweep import files


def machine() -> pf.Mechanism:
    """A pendulum under a force given by a function, which is sent to the workers."""
    pull = pf.forces.generalised_force("pull", lambda k: -k.q[0], joint="hinge")
    hinge = pf.joint("hinge", "revolute", "world", "rod", axis=(0, 1, 0))
    return pf.mechanism("pendulum", [pf.body("rod", 1.0, com=(0, 0, -1), inertia=0.1)], [hinge], forces=[pull])


class Killer(distributed.WorkerPlugin):
    """Kills the process of one worker, only once, in the middle of writing its second block."""

    def __init__(self, once: str) -> None:
        self.once = once

    def setup(self, worker) -> None:
        replace, count, once = Path.replace, [0], Path(self.once)

        def counting(path, target):
            count[0] += ".zarr" in str(path)
            if count[0] == 9 and once.exists():
                once.unlink()
                os.kill(os.getpid(), signal.SIGKILL)
            return replace(path, target)

        Path.replace = counting


def test_killed_workers_cost_only_time(tmp_path, monkeypatch):
    monkeypatch.setenv("PFAFFIAN_CACHE", str(tmp_path / "cache"))
    once = tmp_path / "once"
    once.write_text("")
    space = {"v:hinge": np.linspace(0, 3, 40)}
    run = {"duration": 0.05, "step": 0.01, "backend": "interpreter", "keep": {"end": statistics.final("q")}, "block": 4}
    how = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    with distributed.LocalCluster(**how) as cluster, distributed.Client(cluster) as client:
        client.register_plugin(Killer(str(once)))
        pf.sweep(machine(), space, store=tmp_path / "far.zarr", client=client, **run)
    assert not once.exists(), "a worker was killed"
    pf.sweep(machine(), space, store=tmp_path / "near.zarr", **run)
    assert files(tmp_path / "far.zarr") == files(tmp_path / "near.zarr")
