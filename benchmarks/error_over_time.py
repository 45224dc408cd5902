"""The picture of `python -m benchmarks accuracy`: the true error of integrators over time, and what ours tell of theirs."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import pfaffian as pf
from benchmarks.integrators import Rate, around_ours
from benchmarks.problems import Problem, start
from benchmarks.timing import Options

RECORDS, EXACT, LEAST, MOST = 201, 1e-11, 1e-14, 60.0
"""Number of instants, accuracy of the reference, least error that is drawn, most processor time of a curve [s]."""

SHOWN = {"SciPy DOP853": "tab:orange", "SUNDIALS CVODE": "tab:red", "SUNDIALS IDA": "tab:gray"}
"""Integrators around our right-hand side that are shown, with tolerances of 1e-6, and their colours."""


def draw(path: Path, problems: Sequence[tuple[str, Callable[[], Problem]]], o: Options) -> None:
    """Draw the motions, a panel for each, into a file."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    rows = -(-len(problems) // 3)
    figure, axes = plt.subplots(rows, 3, figsize=(11, 1 + 2.7 * rows), layout="constrained")
    for ax, (what, make) in zip(axes.flat, problems, strict=False):
        panel(ax, make(), o)
        ax.set_title(what, fontsize=9)
        ax.grid(True, alpha=0.4)
    figure.supxlabel("time [s]")
    figure.supylabel("largest error of an angle [rad] or position [m]")
    figure.legend(*axes.flat[0].get_legend_handles_labels(), loc="outside upper center", ncols=4, fontsize=8)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=100)
    plt.close(figure)


def panel(ax: Any, of: Problem, o: Options) -> None:
    """The errors of one motion over time."""
    times = np.linspace(0.0, of.duration, RECORDS)

    def motion(accuracy: float) -> Any:
        return pf.run(of.m, of.q, of.v, u=of.u, times=times, accuracy=accuracy, record=["q", "v"], backend=o.backend)

    exact = motion(EXACT).q.values

    def add(q: np.ndarray, label: str, **style: Any) -> None:
        ax.semilogy(times[1:], np.maximum(np.abs(q - exact).max(axis=1), LEAST)[1:], label=label, linewidth=0.9, **style)

    for accuracy, colour in ((1e-6, "tab:blue"), (1e-9, "tab:green")):
        r = motion(accuracy)
        add(r.q.values, f"accuracy={accuracy:g}", color=colour)
        told = r.error.sel(error_kind=["angle", "length"]).max("error_kind").values[1:]
        ax.semilogy(times[1:], told, ":", color=colour, label="its `error`")
    rate = Rate(of, o.backend)
    for name, solve in around_ours().items():
        if name in SHOWN:
            rate.restart(time.process_time() + MOST)
            add(solve(rate, start(of), times, 1e-6)[:, : of.m.nq], f"{name}, tolerances 1e-6", color=SHOWN[name])
