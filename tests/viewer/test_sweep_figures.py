"""Figures of sweeps, compared with the numbers that they draw."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

import pfaffian as pf
import pfaffian.viewer.sweeps as figures
from pfaffian.errors import ModelError

SIDE = 6


def study(**changes) -> xr.Dataset:
    """The result of a sweep over a grid with the recorded quantity `far`; one run has not finished."""
    x, y = (z.ravel() for z in np.meshgrid(np.arange(SIDE) / 10, np.arange(SIDE) * 2.0, indexing="ij"))
    status = np.zeros(SIDE**2, dtype=np.int32)
    status[3] = 1
    data = {
        "space": (("run", "axis"), np.column_stack([x, y, x + y])),
        "status": ("run", status),
        "far": (("run", "coordinate"), np.column_stack([x - y, y]), {"units": "m"}),
    }
    names = {"axis": ["x", "y", "z"], "axis_unit": ("axis", ["m", "1", ""]), "coordinate": ["a", "b"]}
    return xr.Dataset(data | changes, names, {"mechanism": "machine"})


def test_a_heat_map_has_the_mean_of_each_cell():
    found = study()
    figure = pf.plot_sweep(found, "far.a", "x", "y", kind="heat")
    ax, bar = figure.axes
    assert (ax.get_xlabel(), ax.get_ylabel(), bar.get_ylabel()) == ("x [m]", "y", "far.a [m]")
    assert [t.get_text() for t in ax.get_xticklabels()] == ["0", "0.1", "0.2", "0.3", "0.4", "0.5"]
    drawn = ax.collections[0].get_array()
    expected = found["far"].values[:, 0].reshape(SIDE, SIDE).T
    assert drawn.mask.sum() == 1 and drawn.mask[3, 0]
    np.testing.assert_allclose(drawn.compressed(), expected[~drawn.mask], atol=1e-12)
    grey = ax.collections[1].get_array()
    assert grey.count() == 1 and not grey.mask[3, 0], "the cell of the run that did not finish"
    coarse = pf.plot_sweep(found, "far.a", "x", "y", kind="heat", cells=3)
    assert coarse.axes[1].get_ylabel() == "mean of far.a [m]" and len(coarse.axes[0].collections) == 1
    few = coarse.axes[0].collections[0].get_array()
    values = np.where(found["status"].values == 0, found["far"].values[:, 0], np.nan).reshape(SIDE, SIDE)
    means = np.nanmean(values.reshape(3, 2, 3, 2), axis=(1, 3))
    np.testing.assert_allclose(np.asarray(few), means.T, atol=1e-12)
    assert "36 runs, 1 did not finish" in figure.get_suptitle()


def test_parallel_axes_draw_the_smallest_values_in_front(monkeypatch):
    monkeypatch.setitem(figures.MOST_DRAWN, "parallel", 10)
    figure = pf.plot_sweep(study(), "far.b")
    ax = figure.axes[0]
    lines, lost = ax.collections[:2]
    assert len(lines.get_segments()) == 10 and (np.diff(lines.get_array()) <= 0).all()
    assert lines.get_array()[0] == 2.0 * (SIDE - 1) and lines.get_array()[-1] == 0.0
    assert [t.get_text() for t in ax.get_xticklabels()] == ["0\nx [m]", "0\ny", "0\nz", "0\nfar.b [m]"]
    assert [t.get_text() for t in ax.texts] == ["0.5", "10", "10.5", "10"]
    assert all(0 <= p[1] <= 1 for s in lines.get_segments() for p in s)
    assert "10 drawn" in figure.get_suptitle() and not any(s.get_visible() for s in ax.spines.values())
    np.testing.assert_allclose(lost.get_segments()[0][:, 1], [0, 0.6, 6 / 10.5], atol=1e-12)
    assert lost.zorder < lines.zorder and [t.get_text() for t in figure.legends[0].get_texts()] == ["without a value"]


def test_values_of_stopped_runs_are_not_drawn():
    """The value of a diverged run would otherwise set the range of an axis."""
    far = study()["far"].copy(deep=True)
    far[3] = 1e9
    figure = pf.plot_sweep(study(far=far), "far.b")
    assert figure.axes[0].texts[-1].get_text() == "10"
    cloud = pf.plot_sweep(study(far=far), "far.b", "x", "far.a", kind="scatter")
    assert len(cloud.axes[0].collections) == 1 and not cloud.legends


def test_a_cloud_of_points(monkeypatch):
    monkeypatch.setattr(figures, "MOST_READ", 12)
    figure = pf.plot_sweep(study(), "far.a", "z", "far.b", kind="scatter")
    points = figure.axes[0].collections[0]
    assert len(points.get_offsets()) == 11, "every third run, but for one that stopped"
    assert figure.axes[0].get_ylabel() == "far.b [m]" and "one in 3 read" in figure.get_suptitle()
    assert pf.plot_sweep(study(), "far.a", title="mine").get_suptitle() == "mine"
    lost = pf.plot_sweep(study(), "far.a", kind="scatter").axes[0].collections[1]
    np.testing.assert_allclose(lost.get_offsets(), [[0.0, 6.0]])


def test_the_title_counts_runs_without_a_value_by_reason():
    far = study()["far"].copy(deep=True)
    far[10:12] = np.nan
    status = study()["status"].copy(deep=True)
    status[20:] = -1
    figure = pf.plot_sweep(study(far=far, status=status), "far.a", kind="scatter")
    assert figure.get_suptitle() == "machine: 36 runs, 1 did not finish, 2 without a value, 16 not computed yet"
    assert len(figure.axes[0].collections[1].get_offsets()) == 3, "runs not computed yet are not drawn"


def grid(x: np.ndarray, y: np.ndarray, size: np.ndarray) -> xr.Dataset:
    """A sweep over two axes in which all runs finished."""
    first, second = (z.ravel() for z in np.meshgrid(x, y, indexing="ij"))
    data = {
        "space": (("run", "axis"), np.column_stack([first, second])),
        "status": ("run", np.zeros(len(first), dtype=np.int32)),
        "size": (("run", "velocity"), size.reshape(-1, 1), {"units": "per velocity s"}),
    }
    return xr.Dataset(
        data, {"axis": ["d", "k"], "velocity": ["x"], "v_unit": ("velocity", ["rad/s"])}, {"mechanism": "machine"}
    )


def test_values_that_crowd_at_the_low_end_get_logarithmic_scales():
    x, y = np.logspace(-2, 6, 30), np.linspace(1.0, 40.0, 20)
    found = grid(x, y, np.outer(x, np.ones(20)))
    for kind in ("heat", "scatter"):
        figure = pf.plot_sweep(found, "size", kind=kind)
        ax, bar = figure.axes
        assert (ax.get_xscale(), ax.get_yscale(), bar.get_yscale()) == ("log", "linear", "log")
        assert bar.get_ylabel() == "size [rad/s s]"
    wide = pf.plot_sweep(found, "size", kind="heat").axes[0].collections[0]
    assert wide.get_array().count() == 600, "a cell for each run"
    np.testing.assert_allclose(np.diff(np.log(wide.get_coordinates()[0, :, 0])), np.log(x[1] / x[0]))
    ax = pf.plot_sweep(found, "size").axes[0]
    assert [t.get_text().endswith("(log)") for t in ax.get_xticklabels()] == [True, False, True]
    np.testing.assert_allclose(np.unique([s[0][1].round(9) for s in ax.collections[0].get_segments()]), np.linspace(0, 1, 30))


def test_a_few_extreme_values_do_not_set_the_scale_of_colours():
    size = np.tile(np.linspace(-1.0, 1.0, 20), (30, 1))
    size[3, 4], size[5, 6] = 500.0, -700.0
    figure = pf.plot_sweep(grid(np.linspace(0, 1, 30), np.linspace(0, 1, 20), size), "size", kind="scatter")
    points = figure.axes[0].collections[0]
    assert points.norm.vmin == -1.0 and points.norm.vmax == 1.0 and points.colorbar.extend == "both"
    size[3, 4] = size[5, 6] = 0.0
    figure = pf.plot_sweep(grid(np.linspace(0, 1, 30), np.linspace(0, 1, 20), size), "size", kind="scatter")
    assert figure.axes[0].collections[0].colorbar.extend == "neither"


def test_a_sweep_over_one_axis():
    found = study().isel(axis=[0])
    assert [t.get_text() for t in pf.plot_sweep(found, "far.a").axes[0].get_xticklabels()] == ["0\nx [m]", "-10\nfar.a [m]"]
    ax = pf.plot_sweep(found, "far.a", kind="scatter").axes[0]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("x [m]", "far.a [m]")
    with pytest.raises(ModelError, match=r"a heat figure has two axes, got 'x'; kind='scatter' draws 'far.a' over one"):
        pf.plot_sweep(found, "far.a", kind="heat")
    same = found.isel(run=[0, 0])
    assert pf.plot_sweep(same, "far.a").axes[0].collections[0].get_segments()[0][:, 1].tolist() == [0.5, 0.5]


WRONG = {
    "a kind": ({"kind": "pie"}, "plot_sweep: kind 'pie' is unknown; one of parallel, heat, scatter"),
    "three axes": ({"axes": ("x", "y", "z"), "kind": "heat"}, "has two axes; name two of x, y, z"),
    "no such axis": ({"axes": ("w",)}, "the sweep has no 'w'"),
    "cells": ({"cells": 0}, "cells must be a whole number"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_arguments_are_refused(case):
    given, words = WRONG[case]
    axes = given.pop("axes", ()) if "axes" in given else ()
    with pytest.raises(ModelError, match=words):
        pf.plot_sweep(study(), "far.a", *axes, **{k: x for k, x in given.items() if k != "axes"})


def test_a_sweep_without_finished_runs_is_refused():
    with pytest.raises(ModelError, match=r"no run that finished has a value of 'far.a'; machine: 36 runs, 36 not"):
        pf.plot_sweep(study(status=("run", np.full(SIDE**2, -1, dtype=np.int32))), "far.a")
