"""Figures: they draw every kind of result, label it with units, and are files that open."""

from __future__ import annotations

from pathlib import Path

import matplotlib
import numpy as np
import pytest
import xarray as xr

import pfaffian as pf
from pfaffian.viewer import figures


def fake(n: int, times: int, runs: int = 1, status: int = 0) -> xr.Dataset:
    """A result of n revolute coordinates without running anything."""
    time = np.linspace(0, 1, times)
    q = np.sin(np.arange(1, n + 1) * time[:, None]) * np.linspace(1, 2, runs)[:, None, None]
    names = [f"j{i}" for i in range(n)]
    per = ("run", "time")
    data = {
        "q": ((*per, "coordinate"), q),
        "v": ((*per, "velocity"), np.gradient(q, axis=1)),
        "energy": (per, np.full((runs, times), 5.0)),
        "kinetic_energy": (per, np.abs(q[:, :, 0])),
        "violation": (per, np.zeros((runs, times))),
        "velocity_violation": (per, np.full((runs, times), 1e-12)),
        "rank": (per, np.full((runs, times), 2.0)),
        "reaction": ((*per, "velocity"), q),
        "status": ("run", np.full(runs, status), {"meaning": '["finished", "diverged: look"]'}),
        "stopped": ("run", np.full(runs, 0.5 if status else np.nan)),
    }
    coords = {
        "time": time, "coordinate": names, "velocity": names, "row": ["a", "b", "c"], "run": np.arange(runs),
        "q_unit": ("coordinate", ["rad"] * n), "v_unit": ("velocity", ["rad/s"] * n), "force_unit": ("velocity", ["N m"] * n),
    }  # fmt: skip
    return xr.Dataset(data, coords, attrs={"mechanism": "fake"})


def legend(ax) -> list[str]:
    return [t.get_text() for t in ax.get_legend().get_texts()] if ax.get_legend() else []


def titles(figure) -> list[str]:
    return [ax.get_ylabel() for ax in figure.axes]


def test_png_of_one_run(tmp_path: Path) -> None:
    path = figures.save(figures.overview(fake(2, 50).squeeze("run")), tmp_path / "x.png")
    assert path.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    assert [p.name for p in tmp_path.iterdir()] == ["x.png"]


def test_every_axis_has_a_unit() -> None:
    figure = figures.overview(fake(2, 50))
    assert titles(figure) == [
        "angle\n[rad]", "angular velocity\n[rad/s]", "energy\n[J]", "energy gained\n[J]",
        "violation of constraints\n[m, rad; m/s, rad/s]", "rank\n[rows]", "reaction moment\n[N m]",
    ]  # fmt: skip


@pytest.mark.parametrize(("n", "labelled"), [(2, 2), (10, 10), (11, 11), (40, 11)])
def test_no_legend_soup(n: int, labelled: int) -> None:
    names = legend(figures.overview(fake(n, 20)).axes[0])
    assert len(names) == labelled
    if n > figures.MAX_LINES:
        assert names[-1] == f"{n - figures.MAX_LINES} that move less"


def test_many_that_stay_are_one_entry() -> None:
    result = fake(40, 20)
    result["q"].values[:] = 0.5
    assert legend(figures.overview(result).axes[0]) == ["40 that stay"]


def test_an_entry_has_one_look_in_all_panels() -> None:
    figure = figures.overview(fake(15, 20))
    looks: dict[str, set] = {}
    for ax in (figure.axes[0], figure.axes[1]):
        for text, handle in zip(ax.get_legend().get_texts(), ax.get_legend().legend_handles, strict=True):
            looks.setdefault(text.get_text(), set()).add((handle.get_color(), handle.get_linestyle()))
    assert all(len(look) == 1 for look in looks.values())
    assert len({look for found in looks.values() for look in found}) == len(looks)


def test_long_run_keeps_its_peak() -> None:
    result = fake(1, 100_000).squeeze("run")
    result["q"].values[54_321, 0] = 77.0
    line = figures.overview(result).axes[0].lines[0]
    assert len(line.get_xdata()) < 2 * figures.MAX_POINTS
    assert np.nanmax(line.get_ydata()) == 77.0
    assert (np.diff(line.get_xdata()) >= 0).all()


def test_batch_has_medians_and_bands() -> None:
    figure = figures.overview(fake(3, 30, runs=7))
    assert len(figure.axes[0].collections) == 3
    assert "7 runs, 7 finished" in figure.get_suptitle()


def test_stopped_run_says_so_and_keeps_its_start_readable() -> None:
    result = fake(2, 100, status=1).squeeze("run")
    result["q"].values[49] = 1e11
    result["q"].values[50:] = np.nan
    figure = figures.overview(result)
    assert "diverged" in figure.get_suptitle()
    assert figure.axes[0].get_ylim()[1] < 100
    assert any(np.allclose(line.get_xdata(), 0.5) for line in figure.axes[0].lines)


def test_run_that_never_was_finite() -> None:
    result = fake(2, 5, status=1)
    for name in ("q", "v", "energy", "kinetic_energy", "violation", "rank", "reaction"):
        result[name].values[:] = np.nan
    figures.overview(result).canvas.draw()


def test_floating_base_with_names_of_tex(pendulum: pf.Mechanism, tmp_path: Path) -> None:
    result = pf.run(pendulum, duration=0.05, step=0.01, backend="numpy")
    figure = figures.overview(result)
    assert {"angle\n[rad]", "position\n[m]", "quaternion\n[1]"} <= set(titles(figure))
    assert " _float.qw" in [n for ax in figure.axes for n in legend(ax)]
    with matplotlib.rc_context({"text.usetex": True}):
        figures.save(figures.overview(result), tmp_path / "x.png")


def test_style_is_undone() -> None:
    before = dict(matplotlib.rcParams)
    figures.overview(fake(2, 5))
    assert dict(matplotlib.rcParams) == before


def test_what_is_no_result() -> None:
    with pytest.raises(pf.ModelError, match="no result of a run"):
        figures.overview(xr.Dataset({"a": 1}))
