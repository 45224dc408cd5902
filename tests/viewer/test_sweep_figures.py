"""Figures of sweeps against the numbers that they draw."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

import pfaffian as pf
import pfaffian.viewer.sweeps as figures
from pfaffian.errors import ModelError

SIDE = 6


def study(**changes) -> xr.Dataset:
    """What a sweep over a grid gives, with the distance from a point as what was kept; one run has not finished."""
    x, y = (z.ravel() for z in np.meshgrid(np.arange(SIDE) / 10, np.arange(SIDE) * 2.0, indexing="ij"))
    status = np.zeros(SIDE**2, dtype=np.int32)
    status[3] = 1
    data = {
        "space": (("run", "axis"), np.column_stack([x, y, x + y])),
        "status": ("run", status),
        "far": (("run", "coordinate"), np.column_stack([x - y, y]), {"units": "m"}),
    }
    return xr.Dataset(data | changes, {"axis": ["x", "y", "z"], "coordinate": ["a", "b"]}, {"mechanism": "machine"})


def test_a_heat_map_has_the_mean_of_each_cell():
    found = study()
    figure = pf.plot_sweep(found, "far.a", "x", "y", kind="heat")
    ax, bar = figure.axes
    assert (ax.get_xlabel(), ax.get_ylabel(), bar.get_ylabel()) == ("x", "y", "far.a [m]")
    drawn = ax.collections[0].get_array()
    wanted = found["far"].values[:, 0].reshape(SIDE, SIDE).T
    assert drawn.mask.sum() == 1 and drawn.mask[3, 0]
    np.testing.assert_allclose(drawn.compressed(), wanted[~drawn.mask], atol=1e-12)
    few = pf.plot_sweep(found, "far.a", "x", "y", kind="heat", cells=3).axes[0].collections[0].get_array()
    values = np.where(found["status"].values == 0, found["far"].values[:, 0], np.nan).reshape(SIDE, SIDE)
    means = np.nanmean(values.reshape(3, 2, 3, 2), axis=(1, 3))
    np.testing.assert_allclose(np.asarray(few), means.T, atol=1e-12)
    assert "36 runs, 1 without a value left out" in figure.get_suptitle()


def test_lines_across_parallel_axes_with_the_smallest_in_front(monkeypatch):
    monkeypatch.setitem(figures.MOST_DRAWN, "parallel", 10)
    ax = pf.plot_sweep(study(), "far.b").axes[0]
    lines = ax.collections[0]
    assert len(lines.get_segments()) == 10 and (np.diff(lines.get_array()) <= 0).all()
    assert lines.get_array()[0] == 2.0 * (SIDE - 1) and lines.get_array()[-1] == 0.0
    assert [t.get_text() for t in ax.get_xticklabels()] == ["x\n0 to 0.5", "y\n0 to 10", "z\n0 to 10.5"]
    assert all(0 <= p[1] <= 1 for s in lines.get_segments() for p in s)
    assert "10 drawn" in ax.get_figure().get_suptitle()


def test_a_cloud_of_points(monkeypatch):
    monkeypatch.setattr(figures, "MOST_READ", 12)
    figure = pf.plot_sweep(study(), "far.a", "z", "far.b", kind="scatter")
    points = figure.axes[0].collections[0]
    assert len(points.get_offsets()) == 11, "every third run, but for one that stopped"
    assert figure.axes[0].get_ylabel() == "far.b" and "one in 3 looked at" in figure.get_suptitle()
    assert pf.plot_sweep(study(), "far.a", title="mine").get_suptitle() == "mine"


WRONG = {
    "a kind": ({"kind": "pie"}, "plot_sweep: kind 'pie' is unknown; one of parallel, heat, scatter"),
    "three axes": ({"axes": ("x", "y", "z"), "kind": "heat"}, "has two axes; name two of x, y, z"),
    "no such axis": ({"axes": ("w",)}, "the sweep has no 'w'"),
    "cells": ({"cells": 0}, "cells must be a whole number"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_cannot_be_drawn_is_refused(case):
    given, words = WRONG[case]
    axes = given.pop("axes", ()) if "axes" in given else ()
    with pytest.raises(ModelError, match=words):
        pf.plot_sweep(study(), "far.a", *axes, **{k: x for k, x in given.items() if k != "axes"})


def test_nothing_to_draw():
    with pytest.raises(ModelError, match=r"no run that finished has a value of 'far.a'"):
        pf.plot_sweep(study(status=("run", np.full(SIDE**2, -1, dtype=np.int32))), "far.a")
