"""Figures draw every kind of result, label it with units, and are saved as valid files."""

from __future__ import annotations

from pathlib import Path

import matplotlib
import numpy as np
import pytest
import xarray as xr
from matplotlib.figure import Figure

import pfaffian as pf
from pfaffian.viewer import curves, drawing, figures
from tests.loops_cut_anywhere import FOUR_BAR, linkage
from tests.viewer.figure_faults import complaints

EXACT = 1e-12
"""Rounding of a few additions of numbers between 1 and 10."""


def fake(n: int, times: int, runs: int = 1, status: int = 0) -> xr.Dataset:
    """A result with n revolute coordinates, made without a run."""
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
    path = drawing.save(figures.overview(fake(2, 50).squeeze("run")), tmp_path / "x.png")
    assert path.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    assert [p.name for p in tmp_path.iterdir()] == ["x.png"]


def test_every_axis_has_a_unit() -> None:
    figure = figures.overview(fake(2, 50))
    assert titles(figure) == [
        "angle\n[rad]", "angular velocity\n[rad/s]", "energy\n[J]", "energy gained\n[J]",
        "violation of constraints\n[m, rad; m/s, rad/s]", "rank\n[rows]", "reaction moment\n[N m]",
    ]  # fmt: skip


@pytest.mark.parametrize("dropped", [[], ["rank"]], ids=["an odd number", "an even number"])
def test_only_the_lowest_axes_of_each_column_name_the_time(dropped) -> None:
    figure = figures.overview(fake(2, 50).drop_vars(dropped))
    count = len(figure.axes)
    below = [count - 2, count - 1]
    assert [i for i, ax in enumerate(figure.axes) if ax.get_xlabel()] == below
    assert {figure.axes[i].get_xlabel() for i in below} == {"time [s]"}
    assert all(figure.axes[i].xaxis.get_major_ticks()[0].label1.get_visible() for i in below)


def test_quantities_of_every_unit_have_their_name() -> None:
    """The machine has force and torque motors on prismatic, spherical and revolute joints. u is drawn because it varies."""
    bodies = [pf.body("cart", 1.0), pf.body("ball", 1.0, inertia=0.1), pf.body("plate", 1.0, com=(0.1, 0, 0), inertia=0.1)]
    joints = [pf.joint("rail", "prismatic", "world", "cart", axis=(1, 0, 0)), pf.joint("socket", "spherical", "cart", "ball"),
              pf.joint("hinge", "revolute", "ball", "plate", axis=(0, 1, 0))]  # fmt: skip
    level = pf.holonomic("level", lambda k: k.joint("rail") - 0.1 * k.joint("hinge"))
    motors = [pf.actuator("push", "rail"), pf.actuator("turn", "hinge")]
    m = pf.mechanism("all sorts", bodies, joints, constraints=[level], actuators=motors)
    u = np.linspace(0, 1, 4)[:, None] * [1.0, 2.0]
    figure = figures.overview(pf.run(m, duration=0.03, step=0.01, u=u, u_step=0.01, backend="numpy"))
    assert titles(figure) == [
        "position\n[m]", "quaternion\n[1]", "angle\n[rad]", "velocity\n[m/s]", "angular velocity\n[rad/s]", "energy\n[J]",
        "energy gained\n[J]", "violation of constraints\n[m, rad; m/s, rad/s]", "rank\n[rows]", "reaction force\n[N]",
        "reaction moment\n[N m]", "multiplier\n[N or N m by row]", "input force\n[N]", "input moment\n[N m]",
    ]  # fmt: skip
    assert legend(panel(figure, "input force")) == ["push"] and legend(panel(figure, "angle")) == ["hinge"]


@pytest.mark.parametrize(("n", "labelled"), [(2, 2), (10, 10), (11, 11), (40, 11)])
def test_long_legends_are_shortened(n: int, labelled: int) -> None:
    names = legend(figures.overview(fake(n, 20)).axes[0])
    assert len(names) == labelled
    if n > curves.MAX_LINES:
        assert names[-1] == f"{n - curves.MAX_LINES} that move less"


def test_constant_coordinates_share_one_entry() -> None:
    result = fake(40, 20)
    result["q"].values[:] = 0.5
    assert legend(figures.overview(result).axes[0]) == ["40 that stay"]


def test_an_entry_has_the_same_style_in_all_panels() -> None:
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
    assert len(line.get_xdata()) < 2 * curves.MAX_POINTS
    assert np.nanmax(line.get_ydata()) == 77.0
    assert (np.diff(line.get_xdata()) >= 0).all()


def test_batch_has_medians_and_bands() -> None:
    figure = figures.overview(fake(3, 30, runs=7))
    assert len(figure.axes[0].collections) == 3
    assert "7 runs, 7 finished" in figure.get_suptitle()


def edges(band) -> tuple[np.ndarray, np.ndarray]:
    """Lower and upper edge (time,) of a filled band."""
    points = band.get_paths()[0].vertices
    times = np.unique(points[:, 0])
    at = [points[points[:, 0] == t, 1] for t in times]
    return np.array([x.min() for x in at]), np.array([x.max() for x in at])


def test_a_band_goes_from_the_5_percent_to_the_95_percent_quantile() -> None:
    """Bands of coordinates, violations and rank, with their medians. With 41 runs, both quantiles are values of a run."""
    result, runs, random = fake(2, 30, runs=41), np.arange(41.0), np.random.default_rng(3)
    order = random.permutation(41)  # the runs are not in the order of their values
    result["q"].values[:] = (runs[order] ** 2)[:, None, None] * np.linspace(1, 2, 30)[:, None] + [0.0, 7.0]
    result["violation"].values[:] = 10 ** -(3 + runs[order] / 10)[:, None]
    result["rank"].values[:] = runs[order][:, None]
    figure = figures.overview(result)
    growing = np.linspace(1, 2, 30)
    for i, band in enumerate(panel(figure, "angle").collections):
        for edge, run in zip(edges(band), (2, 38), strict=True):
            np.testing.assert_allclose(edge, run**2 * growing + 7 * i, rtol=EXACT)
        np.testing.assert_allclose(panel(figure, "angle").lines[i].get_ydata(), 20**2 * growing + 7 * i, rtol=EXACT)
    for edge, run in zip(edges(panel(figure, "violation of constraints").collections[0]), (38, 2), strict=True):
        np.testing.assert_allclose(edge, 10 ** -(3 + run / 10), rtol=1e-9)
    np.testing.assert_allclose(drawn(panel(figure, "violation of constraints"), "position"), 10**-5.0, rtol=1e-9)
    low, high = edges(panel(figure, "rank").collections[0])
    assert (low == 2).all() and (high == 38).all() and (drawn(panel(figure, "rank"), "rank") == 20).all()


def test_a_line_shows_the_number_of_written_rows() -> None:
    """Three rows have rank two. If rows are not recorded, the line is absent."""
    ax = panel(figures.overview(fake(2, 30)), "rank")
    assert legend(ax) == ["rank", "3 written"]
    assert (np.array(drawn(ax, "3 written")) == 3).all() and (drawn(ax, "rank") == 2).all() and ax.get_ylim()[1] > 3
    assert legend(panel(figures.overview(fake(2, 30).drop_vars("row")), "rank")) == ["rank"]


def test_the_figure_of_a_stopped_run_names_the_cause_and_is_readable() -> None:
    result = fake(2, 100, status=1).squeeze("run")
    result["q"].values[49] = 1e11
    result["q"].values[50:] = np.nan
    figure = figures.overview(result)
    assert "diverged" in figure.get_suptitle()
    assert figure.axes[0].get_ylim()[1] < 100
    assert any(np.allclose(line.get_xdata(), 0.5) for line in figure.axes[0].lines)


def test_a_run_without_finite_values_can_be_drawn() -> None:
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
        drawing.save(figures.overview(result), tmp_path / "x.png")


def test_style_is_undone() -> None:
    before = dict(matplotlib.rcParams)
    figures.overview(fake(2, 5))
    assert dict(matplotlib.rcParams) == before


def drawn(ax, name: str) -> np.ndarray:
    """The y values of the line with this name in the legend."""
    texts = [t.get_text() for t in ax.get_legend().get_texts()]
    handle = ax.get_legend().legend_handles[texts.index(name)]
    (line,) = [x for x in ax.lines if x.get_color() == handle.get_color() and x.get_linestyle() == handle.get_linestyle()]
    return line.get_ydata()


def panel(figure, title: str):
    (ax,) = [ax for ax in figure.axes if ax.get_ylabel().startswith(f"{title}\n")]
    return ax


def test_energies_agree_with_their_names() -> None:
    result = fake(2, 40)
    total, kinetic = 5.0 + 0.1 * result["time"].values, 2 * result["time"].values ** 2
    result["energy"].values[0], result["kinetic_energy"].values[0] = total, kinetic
    figure = figures.overview(result)
    ax = panel(figure, "energy")
    assert legend(ax) == ["total", "kinetic", "potential"]
    for name, expected in (("total", total), ("kinetic", kinetic), ("potential", total - kinetic)):
        np.testing.assert_allclose(drawn(ax, name), expected, rtol=EXACT)
    (gained,) = panel(figure, "energy gained").lines
    np.testing.assert_allclose(gained.get_ydata(), total - total[0], atol=EXACT)


def test_energy_gained_starts_at_zero_in_each_run() -> None:
    """The runs have different energies and gain equally."""
    result = fake(1, 40, runs=3)
    gain = result["time"].values
    result["energy"].values[:] = np.array([1.0, 10.0, 100.0])[:, None] + gain
    ax = panel(figures.overview(result), "energy gained")
    np.testing.assert_allclose(ax.lines[0].get_ydata(), gain, atol=100 * EXACT)


def test_position_and_velocity_violations_have_separate_lines() -> None:
    ax = panel(figures.overview(fake(2, 20)), "violation of constraints")
    assert (drawn(ax, "position") == figures.ROUNDING).all() and (drawn(ax, "velocity") == 1e-12).all()


def stopped(result: xr.Dataset, when: dict[int, float]) -> xr.Dataset:
    """The result, with the runs stopped at the given times."""
    for run, t in when.items():
        result["status"].values[run], result["stopped"].values[run] = 1, t
        for name in ("q", "v", "energy", "kinetic_energy", "violation", "velocity_violation", "rank", "reaction"):
            result[name].values[run, result["time"].values > t] = np.nan
    return result


def test_the_figure_of_a_run_ends_at_its_stop() -> None:
    figure = figures.overview(stopped(fake(2, 101), {0: 0.5}).squeeze("run"))
    for ax in figure.axes:
        assert 0.5 < ax.get_xlim()[1] < 0.55 and -0.05 < ax.get_xlim()[0] < 0
        assert [x for x in ax.lines if x.get_linestyle() == ":" and np.allclose(x.get_xdata(), 0.5)]
    assert figure.axes[0].get_title(loc="left") == "stopped at t = 0.5 s: diverged"


def test_a_run_that_stopped_at_once_has_a_figure() -> None:
    figure = figures.overview(stopped(fake(2, 101), {0: 0.0}).squeeze("run"))
    assert complaints(figure) == []
    assert "stopped at t = 0 s" in figure.axes[0].get_title(loc="left")


def test_a_median_does_not_jump_where_a_run_stops() -> None:
    """The two highest of five runs stop early, so the median is that of the other three from the start."""
    result = stopped(fake(1, 101, runs=5), {3: 0.3, 4: 0.6})
    rest = np.median(result["q"].values[:3, :, 0], axis=0)
    figure = figures.overview(result)
    np.testing.assert_array_equal(figure.axes[0].lines[0].get_ydata(), rest)
    assert figure.axes[0].get_title(loc="left") == "drawn: 3 of 5 runs; run 3 stopped first at t = 0.3 s: diverged"
    assert "5 runs, 3 finished" in figure.get_suptitle()


def test_a_batch_without_finished_runs_ends_at_the_first_stop_of_the_drawn_runs() -> None:
    figure = figures.overview(stopped(fake(1, 101, runs=4), {0: 0.1, 1: 0.4, 2: 0.8, 3: 0.75}))
    line = figure.axes[0].lines[0]
    assert abs(line.get_xdata()[-1] - 0.75) < EXACT and np.isfinite(line.get_ydata()).all()
    assert figure.axes[0].get_title(loc="left").startswith("drawn: 2 of 4 runs; run 0 stopped first at t = 0.1 s")


@pytest.mark.parametrize(("without", "note"), [((2,), "drawn: 3 of 4 runs"), ((0, 1, 2, 3), "drawn: 0 of 4 runs")])
def test_runs_without_a_finite_state_are_not_counted(without: tuple[int, ...], note: str) -> None:
    result = fake(2, 11, runs=4)
    there = xr.DataArray(~np.isin(np.arange(4), without), dims="run")
    figure = figures.overview(result.assign({name: result[name].where(there) for name in ("q", "v", "energy")}))
    assert figure.axes[0].get_title(loc="left") == note


STIFF = "steps of the stiff pair\n[1]"


def test_forces_and_errors_are_drawn_if_recorded() -> None:
    result, per = fake(2, 30), ("run", "time")
    grows = np.linspace(0, 1, 30)[None, :, None]
    result["multiplier"] = ((*per, "row"), grows * [1.0, 2.0, 3.0])
    result = result.assign_coords(row=["c.vx", "c.wy", "mine"], servo_row=["path.0", "path.1"])
    result["servo_force"] = ((*per, "servo_row"), grows * [4.0, 5.0])
    result["servo_error"] = ((*per, "servo_row"), grows * [6.0, 7.0])
    result["task_error"] = ((*per, "task_error_component"), grows * [8.0, 9.0])
    result["force_error"] = (per, 10 * grows[:, :, 0])
    figure = figures.overview(result)
    expected = {
        "multiplier, force\n[N]": {"c.vx": 1}, "multiplier, moment\n[N m]": {"c.wy": 2},
        "multiplier\n[N or N m by row]": {"mine": 3}, "servo force\n[N, N m]": {"path.0": 4, "path.1": 5},
        "servo error\n[unit of the constraint]": {"path.0": 6, "path.1": 7},
        "task error\n[unit of the task]": {"0": 8, "1": 9}, "force error\n[N, N m]": {"0": 10},
    }  # fmt: skip
    for title, curves_of in expected.items():
        ax = panel(figure, title.split("\n")[0])
        assert ax.get_ylabel() == title and legend(ax) == list(curves_of)
        for name, end in curves_of.items():
            assert drawn(ax, name)[-1] == end
    assert complaints(figure) == []


@pytest.mark.parametrize(
    ("stiff", "moment", "expected"), [(0.0, 1e-12, ["pin\n[N]"]), (1.0, 0.5, [STIFF, "pin\n[N]", "pin\n[N m]"])]
)
def test_what_is_zero_or_rounding_has_no_panel(stiff: float, moment: float, expected: list[str]) -> None:
    """Moments of pins that turn freely, and the steps of the stiff pair where the run made none."""
    result, per = fake(2, 20), ("run", "time")
    result["stiff"] = (per, np.full((1, 20), stiff), {"units": "1"})
    load = np.linspace(1, 2, 20)[None, :, None] * [3.0, moment]
    result["pin"] = ((*per, "wrench_magnitude"), load, {"units": "N, N m"})
    result = result.assign_coords(wrench_magnitude=["force", "moment"])
    titles = [ax.get_ylabel() for ax in figures.overview(result).axes]
    assert titles[len(figures.overview(fake(2, 20)).axes) :] == expected


@pytest.mark.parametrize("n", [1, 15])
@pytest.mark.parametrize(("runs", "stops"), [(1, {}), (6, {}), (6, {0: 0.5})])
def test_overviews_have_no_faults(n: int, runs: int, stops: dict[int, float]) -> None:
    assert complaints(figures.overview(stopped(fake(n, 60, runs), stops))) == []


def test_axes_name_the_side_where_curves_are_cut_off() -> None:
    result = fake(2, 100)
    result["q"].values[0, 60] = 1e9
    ax = figures.overview(result).axes[0]
    assert ax.get_ylim()[1] < 100 and ax.get_title(loc="right") == "cut off above"


def plotted(*names: str):
    figure = Figure(figsize=(5, 3), layout="constrained")
    ax = figure.subplots()
    for i, name in enumerate(names):
        ax.plot([0, 1, 2], [i, 1 - i, 2 * i], label=name)
    return figure, ax


def test_finish_moves_legends_aside_and_names_cut_curves() -> None:
    figure, ax = plotted("a", "b")
    ax.plot([np.nan], [np.nan], label="nothing")
    ax.legend(loc="center")
    ax.set(ylim=(0.5, 1.5), xlim=(0, 1.5))
    found = " ".join(complaints(figure))
    for words in ("hides 'a'", "no curve for 'nothing'", "'b' is cut off above", "'a' is cut off right"):
        assert words in found
    width = figure.get_size_inches()[0]
    drawing.finish(figure)
    assert complaints(figure) == [] and legend(ax) == ["a", "b"]
    assert ax.get_title(loc="right") == "cut off below and above and right"
    assert figure.get_size_inches()[0] > width


def test_titles_name_cut_curves_and_equal_legends_are_drawn_once() -> None:
    figure = Figure(figsize=(6, 3), layout="constrained")
    left, right = figure.subplots(1, 2)
    for ax in (left, right):
        ax.plot([0, 1], [0, 1], label="a")
        ax.fill_between([0, 1], [0, 0], [0.1, 0.2], label="band")
        ax.set_title("up")
    right.set_ylim(0, 0.5)
    drawing.finish(figure)
    assert (left.get_title(), right.get_title()) == ("up", "up; cut off above")
    assert legend(left) == ["a", "band"] and right.get_legend() is None and complaints(figure) == []


def test_axes_side_by_side_have_their_legends_above() -> None:
    """No legend is between columns, entries of the figure's legend are not repeated, and axes keep their heights."""
    figure = Figure(figsize=(6, 3), layout="constrained")
    left, right = figure.subplots(1, 2)
    left.set_title("left")
    for ax, names in ((left, "ab"), (right, "ac")):
        for i, name in enumerate(names):
            ax.plot([0, 1], [i, 1], label=name)
    figure.legend(*[x[:1] for x in left.get_legend_handles_labels()], loc="outside lower center")
    drawing.finish(figure)
    assert legend(left) == ["b"] and legend(right) == ["c"] and complaints(figure) == []
    (width, height), boxes = figure.get_size_inches(), [ax.get_window_extent() for ax in (left, right)]
    assert width == 6 and height > 3
    assert all(ax.get_legend().get_window_extent().y0 >= box.y1 for ax, box in zip((left, right), boxes, strict=True))
    assert left.title.get_window_extent().y0 >= left.get_legend().get_window_extent().y0
    assert boxes[1].x0 - boxes[0].x1 < 0.15 * figure.dpi * width


def test_complaints_detect_legends_on_other_axes_and_cut_logarithmic_curves() -> None:
    figure = Figure(figsize=(6, 3))
    left, right = figure.subplots(1, 2)
    left.semilogy([0, 1], [1e-9, 1], label="decay")
    left.set_ylim(1e-3, 1)
    left.legend(loc="upper left", bbox_to_anchor=(1.1, 1))
    assert [c.split(": ")[1] for c in complaints(figure)] == ["its legend lies on other axes", "'decay' is cut off below"]
    right.plot([0, 1], [2, 3])
    right.set_title("all there, cut off above")
    assert "nothing is cut off above" in complaints(figure)[-1]
    right.set_title("")
    drawing.note_cut(right)
    drawing.note_cut(left)
    assert left.get_title(loc="right") == "cut off below" and right.get_title(loc="right") == ""


def test_other_datasets_are_refused() -> None:
    with pytest.raises(pf.ModelError, match="not the result of a run"):
        figures.overview(xr.Dataset({"a": 1}))


def test_rounding_of_a_constant_is_not_magnified():
    """An axis of 1e-14 around 0.0377 would show a constant multiplier as jumping."""
    ax = Figure().subplots()
    noise = 0.0377 * (1 + 1e-13 * np.sin(np.arange(50.0)))
    curves.lines(ax, np.linspace(0, 1, 50), -noise[None, :, None], ["mimic"])
    low, high = ax.get_ylim()
    assert low < -0.038 and -0.037 < high < 0


def test_lines_without_a_colour_use_those_of_the_library():
    """After the seven colours, the same follow dashed: the first fourteen lines are all different."""
    with drawing.style():
        ax = pf.study.blank_figure(4, 3).subplots()
        looks = [(line.get_color(), line.get_linestyle()) for line in ax.plot(np.eye(14))]
    assert [colour for colour, _ in looks] == 2 * list(drawing.COLOURS) and len(set(looks)) == 14


def test_the_overview_shows_the_coordinates_of_closures_that_carry_something() -> None:
    m = linkage(FOUR_BAR, "C", {"C": {"damping": 0.5}})
    at = pf.assemble(m, {"A": 0.4}, v={"A": 2.0})
    r = pf.run(m, at.q, at.v, duration=0.1, step=1e-2, backend="numpy", error_bound=np.inf)
    titles = [axes.get_ylabel() for axes in pf.overview(r).axes]
    assert any("angle of closures" in title for title in titles) and any("velocity of closures" in title for title in titles)
    assert any("rad" in axes.get_ylabel() for axes in pf.plot(r, "loop").axes)
