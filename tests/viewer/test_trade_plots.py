"""Plots in the habit of each trade: root locus, Campbell diagram, curves over travel, ratios over a crank, loads of pins."""

from __future__ import annotations

import numpy as np
import pytest

import pfaffian as pf
from pfaffian.errors import ModelError
from pfaffian.viewer.spectra import followed, stability_changes
from tests.simulate.machines import FOUR_BAR_START, four_bar
from tests.tolerance import PEER, PEER_CONSTRAINED
from tests.viewer.figure_faults import complaints
from tests.viewer.test_figures import fake, legend

K, TILT, SPIN = 250.0, 0.5, 0.2
"""A rotor: stiffness of each tilt [N m/rad], inertia about the axes of tilt and about its own [kg m^2]."""

CHORD = 1e-3
"""Curves are straight between speeds 1 rad/s apart, which displaces a crossing by less than this part."""


def rotor(damping: float = 0.0) -> pf.Mechanism:
    axes = {"tilt": (0, 1, 0), "lean": (0, 0, 1)}
    frames = [pf.body(name, 0.0, inertia=0.0) for name in axes]
    spring = {"stiffness": K, "damping": damping}
    joints = [
        pf.joint("tilt", "revolute", "world", "tilt", axis=(0, 1, 0), **spring),
        pf.joint("lean", "revolute", "tilt", "lean", axis=(0, 0, 1), **spring),
        pf.joint("spin", "revolute", "lean", "rotor", axis=(1, 0, 0)),
    ]
    disk = pf.body("rotor", 3.0, inertia=(SPIN, TILT, TILT))
    return pf.mechanism("rotor", [*frames, disk], joints, gravity=(0, 0, 0))


def campbell(damping: float = 0.0, orders=(1,), **how):
    speeds = np.linspace(0.0, 60.0, 61)
    m = rotor(damping)
    return pf.results.plot_campbell([pf.linearise(m, v={"spin": w}) for w in speeds], speeds, orders, **how)


def test_the_branches_of_a_campbell_diagram_are_those_of_a_gyroscopic_rotor():
    """TILT a'' -+ SPIN w a' + K a = 0 has the frequencies sqrt(g^2 + K / TILT) -+ g with g = SPIN w / (2 TILT)."""
    ax = campbell(orders=()).axes[0]
    curves = [line for line in ax.lines if line.get_linestyle() == "-"]
    g = SPIN * (curves[0].get_xdata() * 2 * np.pi / 60) / (2 * TILT)
    whirl = [(np.sqrt(g**2 + K / TILT) + side * g) / (2 * np.pi) for side in (-1, 1)]
    found = sorted((line.get_ydata() for line in curves), key=lambda y: y[-1])
    assert len(found) == 2 and ax.get_ylabel() == "natural frequency [Hz]" and ax.get_xlabel() == "speed [1/min]"
    np.testing.assert_allclose(found, whirl, rtol=PEER)


@pytest.mark.parametrize("order", [1, 2])
def test_critical_speeds_are_marked(order):
    """Order k excites where k w is a frequency: (k w)^2 TILT -+ SPIN k w^2 = K."""
    expected = [np.sqrt(K / (TILT * order**2 - side * SPIN * order)) * 60 / (2 * np.pi) for side in (-1, 1)]
    figure = campbell(orders=[order])
    marked = sorted(float(line.get_xdata()[0]) for line in figure.axes[0].lines if line.get_marker() == "o")
    np.testing.assert_allclose(marked, expected, rtol=CHORD)
    assert figure.get_suptitle() == "Campbell diagram: 2 critical speeds" and complaints(figure) == []


def test_motions_that_grow_are_red():
    assert "red" not in campbell(damping=0.5).get_suptitle()
    grows = campbell(damping=-0.5)
    assert grows.get_suptitle().endswith("red grows")
    assert campbell(title="mine").get_suptitle() == "mine"


@pytest.mark.parametrize(("x", "other"), [([0.0, 1.0, 2.0, 4.0, 5.0], (5.5, -1.0)), ([0.0, 2.2, 2.3], (5.2, 0.2))])
def test_branches_stay_apart_where_they_cross_and_where_steps_differ(x, other):
    x = np.array(x)
    a, b = 1.0 + x, other[0] + other[1] * x
    rows = np.sort(np.stack([a, b], axis=1), axis=1) * 1j
    np.testing.assert_array_equal(followed(rows, x), np.stack([a, b], axis=1) * 1j)


def test_stability_changes_twice():
    x = np.arange(5.0)
    roots = np.array([-1.0, -1e-9, 2.0, 1.0, -0.5])[:, None] + 3j
    assert stability_changes(x, roots) == [(1.0, 2.0), (3.0, 4.0)]


def test_a_root_locus_shows_where_a_machine_becomes_unstable():
    """A box on a damper c: x'' + c x' + 4 x = 0 has the eigenvalues -c/2 +- sqrt(c^2 / 4 - 4)."""
    c = pf.Parameter("c", 1.0, "N s/m")
    slide = pf.joint("x", "prismatic", "world", "box", stiffness=4.0, damping=c)
    m = pf.mechanism("box", [pf.body("box", 1.0)], [slide], parameters=[c], gravity=(0, 0, 0))
    values = np.linspace(-0.9, 5.1, 13)
    figure = pf.results.plot_root_locus([pf.linearise(m, parameters={"c": x}) for x in values], values, "c")
    assert figure.get_suptitle() == "eigenvalues over c: stability changes between -0.4 and 0.1"
    points = figure.axes[0].collections[0].get_offsets()
    expected = [x for c in values for x in np.roots([1.0, c, 4.0])]
    for x in expected:
        assert np.abs(points[:, 0] + 1j * points[:, 1] - x).min() < PEER
    assert len(points) == len(expected) and figure.axes[1].get_ylabel() == "c"
    first, last = (next(x for x in figure.axes[0].lines if x.get_marker() == mark) for mark in "xo")
    np.testing.assert_allclose(first.get_xdata(), 0.45, rtol=PEER)
    np.testing.assert_allclose(sorted(last.get_xdata()), sorted(np.roots([1.0, 5.1, 4.0])), rtol=PEER)


def test_bad_values_are_refused():
    m = rotor()
    near = pf.linearise(m)
    for values, words in (([1.0], "two or more"), ([2.0, 1.0], "increasing"), ([1.0, 2.0, 3.0], "for each of the 3")):
        with pytest.raises(ModelError, match=words):
            pf.results.plot_campbell([near, near], values)
    other = pf.linearise(pf.mechanism("box", [pf.body("box", 1.0)], [pf.joint("x", "prismatic", "world", "box")]))
    with pytest.raises(ModelError, match="2 to 6 states"):
        pf.results.plot_root_locus([near, other], [1.0, 2.0], "k")


def test_curves_over_travel_stand_upright_in_degrees_and_millimetres():
    """A trailing arm of 0.5 m turns by asin(z / 0.5); its wheel has neither camber nor toe."""
    hinge = pf.joint("hinge", "revolute", "world", "arm", axis=(0, 1, 0))
    m = pf.mechanism("trailing arm", [pf.body("arm", 9.0, com=(-0.5, 0.6, 0), inertia=1.0)], [hinge])
    travel = np.linspace(-0.1, 0.1, 9)
    found = pf.analysis.wheel_curves(m, "arm", travel, centre=(-0.5, 0.6, 0), steering=[(-0.5, 0.6, -0.1), (-0.5, 0.6, 0.1)])
    figure = pf.results.plot_travel(found, "caster", "recession", "roll_centre")
    assert [ax.get_xlabel() for ax in figure.axes] == ["caster [deg]", "recession [mm]", "roll centre [mm]"]
    x, y = figure.axes[0].lines[0].get_data()
    np.testing.assert_allclose(y, 1000 * travel, atol=PEER)
    np.testing.assert_allclose(
        np.abs(np.diff(x)), np.abs(np.diff(np.degrees(np.arcsin(travel / 0.5)))), atol=PEER_CONSTRAINED * 180
    )
    assert len(pf.results.plot_travel(found).axes) == 7 and complaints(figure) == []
    with pytest.raises(ModelError, match="camber"):
        pf.results.plot_travel(found, "cambr")
    with pytest.raises(ModelError, match="wheel_curves"):
        pf.results.plot_travel(fake(2, 3))


@pytest.fixture(scope="module")
def way():
    m = four_bar()
    guess = dict(zip(m.q_names, FOUR_BAR_START, strict=True))
    begin = guess.pop("a")
    t = np.linspace(0.0, 1.0, 201)
    return pf.assemble(m, {"a": begin + 0.8 * t}, guess=guess, t=t, along=True, backend="numpy")


def test_motion_over_a_crank(way):
    m = four_bar()
    ratio = 1.0 / (np.linspace(-1.0, 1.0, 201) + 1e-3)
    figure = pf.results.plot_motion(m, way, "d", over="a", more={"advantage [1]": ratio})
    d, pole = figure.axes
    assert (d.get_ylabel(), pole.get_ylabel(), pole.get_xlabel()) == ("d [deg]", "advantage [1]", "a [deg]")
    np.testing.assert_allclose(d.lines[0].get_data(), np.degrees([way.named["a"], way.named["d"]]), rtol=PEER)
    assert max(np.abs(pole.get_ylim())) < 25 and "cut off" in pole.get_title("right"), "a pole does not flatten the curve"
    peak = np.where(np.arange(201) == 100, 50.0, np.linspace(-1.0, 1.0, 201))
    (ax,) = pf.results.plot_motion(m, way, over="a", more={"peak": peak}).axes
    assert ax.get_ylim()[1] > 50.0, "a peak to one side is no pole"
    for given, words in (
        ({"what": ["e"]}, "no coordinate 'e'"),
        ({}, "name a coordinate"),
        ({"more": {"x": [1.0]}}, "201 values"),
    ):
        with pytest.raises(ModelError, match=words):
            pf.results.plot_motion(m, way, *given.get("what", ()), over="a", more=given.get("more"))
    with pytest.raises(ModelError, match="along=True"):
        pf.results.plot_motion(rotor(), way, "tilt", over="lean")


def test_motion_of_a_batch_is_refused(way):
    batch = way._replace(q=np.stack([way.q, way.q], axis=1))
    with pytest.raises(ModelError, match="2 runs"):
        pf.results.plot_motion(four_bar(), batch, "d", over="a")


def test_loads_of_pins_have_their_maximum_marked(tmp_path):
    """A mass m on a bar of length l, held at angle q by a motor: the pin carries m g, the motor m g l cos q about its axis."""
    mass = pf.Parameter("mass", 1.0, "kg")
    m = pf.mechanism(
        "bar", [pf.body("bar", mass, com=(2.0, 0, 0))], [pf.joint("q", "revolute", "world", "bar", axis=(0, 1, 0))],
        actuators=[pf.actuator("motor", "q")], parameters=[mass],
    )  # fmt: skip
    angles = np.linspace(-1.0, 1.0, 11)
    pin = {"pin": pf.reaction("q", magnitude=True)}
    found = pf.sweep(
        m,
        {"mass": [1.0, 3.0]},
        states={"q:q": angles},
        store=tmp_path / "s.zarr",
        keep=["pin", "q"],
        outputs=pin,
        backend="numpy",
    )
    figure = pf.results.plot_loads(found, "pin", over="q")
    (ax,) = [a for a in figure.axes if a.get_ylabel() == "force [N]"]
    heavy = 3.0 * 9.81
    top = [line for line in ax.lines if line.get_marker() == "o"]
    assert len(top) == 1 and float(top[0].get_ydata()[0]) == pytest.approx(heavy, rel=PEER)
    assert [x[:12] for x in legend(ax)] == [f"pin: {heavy:.4g} N"[:12]]
    assert "2 runs" in figure.get_suptitle() and complaints(figure) == []
    assert figure.axes[-1].get_xlabel() == "q [deg]" and legend(ax)[0].endswith(" deg"), "as in plot_motion"
    heavier = pf.results.plot_loads(found.assign(pin=1000 * found["pin"])).axes[0]
    assert legend(heavier)[0].startswith("pin: 29430 N at "), "no power of ten"
    assert pf.results.plot_loads(found).axes[-1].get_xlabel() == "state"
    for what, over, words in (((), "r", "no coordinate 'r'"), (("pn",), None, "pin")):
        with pytest.raises(ModelError, match=words):
            pf.results.plot_loads(found, *what, over=over)


def test_a_stop_of_a_run_is_no_load_and_missing_records_are_named():
    m = pf.mechanism("p", [pf.body("rod", 1.0, com=(0, 0, -1))], [pf.joint("h", "revolute", "world", "rod", axis=(0, 1, 0))])
    pin = {"pin": pf.reaction("h", magnitude=True)}
    r = pf.run(m, {"h": 1.0}, duration=0.5, step=0.01, outputs=pin, backend="numpy", error_bound=np.inf)
    whole = r["pin"].values.copy()
    r["pin"].values[20:] = np.nan
    ax = pf.results.plot_loads(r).axes[0]
    peak = next(line for line in ax.lines if line.get_marker() == "o")
    assert float(peak.get_ydata()[0]) == whole[:20, 0].max() and ax.get_figure().axes[-1].get_xlabel() == "time [s]"
    r["pin"].values[:] = np.nan
    assert legend(pf.results.plot_loads(r).axes[0]) == ["pin: no finite value"]
    with pytest.raises(ModelError, match="needs the record of 'q'"):
        pf.results.plot_loads(r.drop_vars("q"), over="h")
    with pytest.raises(ModelError, match="magnitude=True"):
        pf.results.plot_loads(r.drop_vars("pin"))
