"""Plots of chosen signals over time and over each other: curves and labels."""

from __future__ import annotations

import numpy as np
import pytest

import pfaffian as pf
from pfaffian.errors import ModelError
from pfaffian.viewer import curves
from tests.simulate.machines import FOUR_BAR_START, four_bar
from tests.viewer.figure_faults import complaints
from tests.viewer.test_figures import fake, legend


@pytest.fixture(scope="module")
def result():
    tip = {"tip": lambda k: k.position("coupler"), "height": lambda k: k.position("coupler")[2]}
    return pf.run(four_bar(), FOUR_BAR_START, duration=0.2, step=0.01, outputs=tip, backend="numpy", error_bound=np.inf)


def labels(figure):
    return [ax.get_ylabel() for ax in figure.axes]


def test_axes_are_labelled_with_names_and_units(result):
    figure = pf.plot(result, "q", "v.a", "energy", "multiplier", "u", "tip", "height", "regularity")
    assert labels(figure) == [
        "angle [rad]", "a, angular velocity [rad/s]", "energy [J]", "multiplier, force [N]", "multiplier, moment [N m]",
        "motor, input moment [N m]", "tip", "height", "regularity [1]",
    ]  # fmt: skip
    assert figure.axes[-1].get_xlabel() == "time [s]" and legend(figure.axes[0]) == ["a", "b", "d"]
    assert complaints(figure) == []


def test_forces_and_moments_of_a_reaction_have_panels_of_their_own():
    hinge = pf.joint("hinge", "revolute", "world", "rod", axis=(0, 1, 0))
    m = pf.mechanism("pendulum", [pf.body("rod", 1.0, com=(0.1, 0, -0.5))], [hinge])
    outputs = {"pin": pf.reaction("hinge"), "size": pf.reaction("hinge", magnitude=True)}
    r = pf.run(m, {"hinge": 0.3}, duration=0.1, step=0.01, outputs=outputs, backend="numpy")
    labels = [ax.get_ylabel() for ax in pf.plot(r, "pin", "size").axes]
    assert labels == ["pin [N]", "pin [N m]", "force, size [N]", "moment, size [N m]"]


def test_one_entry_is_one_curve_without_a_legend(result):
    (ax,) = pf.plot(result, "q.b", title="mine").axes
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), result.q.sel(coordinate="b"))
    assert legend(ax) == [] and ax.figure.get_suptitle() == "mine"


def test_a_phase_plot_starts_at_a_ring_and_ends_at_a_dot(result):
    (ax,) = pf.plot(result, "v.a", over="q.d").axes
    x, y = ax.lines[0].get_data()
    np.testing.assert_array_equal(x, result.q.sel(coordinate="d"))
    np.testing.assert_array_equal(y, result.v.sel(velocity="a"))
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("d, angle [rad]", "a, angular velocity [rad/s]")
    assert ax.lines[1].get_markerfacecolor() == "white" and ax.lines[1].get_xdata()[0] == x[0]
    assert ax.lines[2].get_xdata()[0] == x[-1]


def test_phase_plots_have_a_curve_for_each_run_that_ends_at_its_stop():
    batch = fake(2, 30, runs=4)
    batch["q"].values[2, 20:] = np.nan
    (ax,) = pf.plot(batch, "v.j1", over="q.j0").axes
    ways = [x for x in ax.lines if len(x.get_xdata()) > 1]
    assert [len(x.get_xdata()) for x in ways] == [30, 30, 20, 30]
    (ax,) = pf.plot(batch, "q").axes
    assert len(ax.collections) == 2, "bands"


def test_curves_that_coincide_share_one_entry_and_line():
    same = fake(5, 40)
    same["q"].values[:, :, 3] = same["q"].values[:, :, 1] * (1 + 1e-6)
    (ax,) = pf.plot(same, "q").axes
    assert legend(ax) == ["j0", "j1 = j3", "j2", "j4"] and len(ax.lines) == 4
    same["q"].values[:] = 0.0
    assert legend(pf.plot(same, "q").axes[0]) == ["j0 = j1 = j2 = 2 more"]
    near = fake(2, 40)
    near["q"].values[:, :, 1] = near["q"].values[:, :, 0] + 2 * curves.APART * np.ptp(near["q"].values[:, :, 0])
    assert legend(pf.plot(near, "q").axes[0]) == ["j0", "j1"]


def test_signals_without_information_are_not_drawn():
    """Regularity is drawn only if it comes close to zero, and forces only if they are not zero throughout."""
    titles = lambda r: [ax.get_ylabel().split("\n")[0] for ax in pf.overview(r).axes]  # noqa: E731
    r = fake(2, 20)
    r["regularity"] = ("run", "time"), np.full((1, 20), 0.5)
    r["multiplier"] = ("run", "time", "row"), np.ones((1, 20, 3)) * [1.0, 0.0, 1e-14]
    r = r.assign_coords(row=["c.vx", "c.wy", "c.wz"])
    assert "regularity" not in titles(r) and "multiplier, force" in titles(r) and "multiplier, moment" not in titles(r)
    r["regularity"].values[0, 7] = 0.01
    assert "regularity" in titles(r)


def test_a_notebook_gets_an_image(result):
    for figure in (pf.overview(result), pf.plot(result, "q")):
        assert figure._repr_png_()[:8] == b"\x89PNG\r\n\x1a\n"


@pytest.mark.parametrize("long", ["x", "a long name of some joint"])
def test_legends_take_no_width(long):
    """Axes have the same width with short and long names."""
    r = fake(9, 20)
    r = r.assign_coords(coordinate=[f"{long} {i}" for i in range(9)])
    figure = pf.overview(r)
    assert complaints(figure) == []
    boxes = [ax.get_position() for ax in figure.axes]
    assert min(b.width for b in boxes) > 0.4


WRONG = {
    "nothing": ((), {}, "name what to draw"),
    "unknown": (("speed",), {}, "no signal 'speed' over time; did you mean|no signal 'speed'"),
    "no entry": (("q.z",), {}, "'q' has no entry 'z'; there are a, b, d"),
    "several across": (("v",), {"over": "q"}, "over: 'q' has several entries"),
    "no name": ((3,), {}, "no signal 3"),
}


@pytest.mark.parametrize("case", WRONG)
def test_unknown_signals_are_named(result, case):
    what, how, words = WRONG[case]
    with pytest.raises(ModelError, match=words):
        pf.plot(result, *what, **how)


def test_a_single_instant_is_refused(result):
    with pytest.raises(ModelError, match="over time"):
        pf.plot(result.isel(time=0), "q")


def test_a_single_record_is_a_dot_and_no_record_is_refused() -> None:
    """A run that stopped at once has one state to show."""
    slide = pf.joint("slide", "prismatic", "world", "block", axis=(1, 0, 0))
    r = pf.run(pf.mechanism("block", [pf.body("block", 2.0)], [slide]), v=[1.0], duration=0.1, step=0.01, backend="numpy")
    (dot,) = pf.plot(r.isel(time=[3]), "q").axes[0].get_lines()
    (curve,) = pf.plot(r, "q").axes[0].get_lines()
    assert dot.get_marker() == "o" and curve.get_marker() == "None"
    for figure in (pf.overview, lambda x: pf.plot(x, "q")):
        with pytest.raises(pf.ModelError, match="no record left"):
            figure(r.isel(time=[]))
