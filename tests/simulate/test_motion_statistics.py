"""Statistics of the continuous motion of runs to an accuracy, beside closed forms and beside finely sampled motions."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest

import pfaffian as pf
from pfaffian.maths import chebyshev
from pfaffian.statistics import final, first_crossing, histogram, integral, maximum, mean, minimum
from tests.simulate.machines import FOUR_BAR_START, four_bar, pendulum

RATE, END, ACCURACY = 2.0, 5.3, 1e-7
CLOSE = 1e-6
"""Error of a statistic at ACCURACY, relative to its size: instants of crossings multiply errors of x by 1 / speed."""


def oscillator() -> pf.Mechanism:
    slide = pf.joint("x", "prismatic", "world", "b", axis=(1, 0, 0), stiffness=RATE**2)
    return pf.mechanism("oscillator", [pf.body("b", 1.0)], [slide], gravity=(0, 0, 0))


def of(m, at, v=None, end=END, **record):
    return pf.run(m, at, v, duration=end, accuracy=ACCURACY, record=record, backend="interpreter")


def test_statistics_of_an_oscillation():
    """x = cos(2 t), from 0 to 5.3 s: all of them in closed form."""
    edges = [-1.0, -0.5, 0.25, 0.9, 2.0]
    r = of(
        oscillator(), {"x": 1.0}, top=maximum("v"), low=minimum("q"), mean=mean("q"), sum=integral("v"), last=final("q"),
        down=first_crossing("q", -0.3, "falling"), up=first_crossing("q", -0.3, "rising"), never=first_crossing("q", 1.5),
        times=histogram("q", edges), q=True,
    )  # fmt: skip
    x = np.cos(RATE * END)
    expected = {"top": RATE, "low": -1.0, "mean": np.sin(RATE * END) / RATE / END, "sum": x - 1, "last": x}
    expected |= {"down": np.arccos(-0.3) / RATE, "up": (2 * np.pi - np.arccos(-0.3)) / RATE}
    for name, value in expected.items():
        assert abs(float(r[name].squeeze()) - value) < CLOSE, name
    assert np.isnan(r["never"].item()) and r["times"].attrs["units"] == "s" and len(r.time) == 201
    fine = np.cos(RATE * np.linspace(0, END, 2_000_001))
    counted = np.histogram(fine, edges)[0] * END / len(fine)
    np.testing.assert_allclose(r["times"].values[0], counted, atol=1e-5)
    assert r["top"].attrs["meaning"] == "maximum of v over the motion"


def test_a_signal_that_turns_between_two_instants_of_a_step_is_followed_there():
    """x = cos(2 t - phase) in 64 phases, whose top lies anywhere in a step, also near its ends: the largest and the smallest
    value, and when and for how long a level is passed of which x passes 1e-6 beyond."""
    phase, level = np.linspace(0.3, 2.0, 64), 1 - 1e-6
    record = {
        "top": maximum("q"), "low": minimum("q"), "up": first_crossing("q", level, "rising"),
        "down": first_crossing("q", level, "falling"), "dip": first_crossing("q", -level, "falling"),
        "back": first_crossing("q", -level, "rising"), "times": histogram("q", [-2, -level, level, 2]),
    }  # fmt: skip
    start = np.cos(phase)[:, None], RATE * np.sin(phase)[:, None]
    r = of(oscillator(), *start, end=2.8, **record)
    half = np.arccos(level)
    exact = {"top": 1.0 + 0 * phase, "low": -1.0 + 0 * phase, "up": (phase - half) / RATE, "down": (phase + half) / RATE}
    exact |= {"dip": (phase + np.pi - half) / RATE, "back": (phase + np.pi + half) / RATE}
    for name, close in {"top": 2e-8, "low": 2e-8, "up": 1e-5, "down": 1e-5, "dip": 1e-5, "back": 1e-5}.items():
        np.testing.assert_allclose(r[name].values[:, 0], exact[name], atol=close, err_msg=name)
    inside = 2 * half / RATE
    np.testing.assert_allclose(r["times"].values[:, 0], [[inside, 2.8 - 2 * inside, inside]] * 64, atol=2e-5)


def test_statistics_of_a_mechanism_agree_with_a_finely_sampled_motion():
    m, q, v = four_bar(), FOUR_BAR_START, {"a": 4.0}
    kinds = {"top": maximum, "low": minimum, "mean": mean, "sum": integral, "last": final, "when": first_crossing}
    found = {f"{kind} {signal}": make(signal) for kind, make in kinds.items() for signal in ("v", "reaction", "energy")}
    r = of(m, q, v, end=2.0, **found)
    fine = pf.run(m, q, v, duration=2.0, step=2e-4, record=found, backend="interpreter")
    sizes = {s: np.abs(fine[f"top {s}"]).max() + np.abs(fine[f"low {s}"]).max() for s in ("v", "reaction", "energy")}
    for name in found:
        (kind, signal), close = name.split(), fine[name]
        if kind == "mean":  # over steps, in which both ends of the motion count
            close = fine[f"sum {signal}"] / 2.0
        size = 2.0 if kind == "when" else float(sizes[signal])
        np.testing.assert_allclose(r[name].values, close.values, atol=1e-5 * size, err_msg=name)


def test_a_signal_with_kinks_and_jumps():
    """|x| and the sign of x, which error control does not see: the steps are divided where they are not smooth."""
    outputs = {"size": lambda k: ca.fabs(k.q), "side": lambda k: ca.sign(k.q)}
    record = {"mean": mean("size"), "low": minimum("size"), "top": maximum("side"), "turns": first_crossing("side"),
              "area": integral("side")}  # fmt: skip
    r = pf.run(oscillator(), {"x": 1.0}, duration=3 * np.pi / 4, accuracy=1e-6, outputs=outputs, record=record)
    expected = {"mean": 2 / np.pi, "low": 0.0, "top": 1.0, "turns": np.pi / 4, "area": -np.pi / 4}
    for name, close in {"mean": 1e-5, "low": 1e-4, "top": 1e-12, "turns": 1e-4, "area": 1e-4}.items():
        assert abs(float(r[name].squeeze()) - expected[name]) < close, (name, float(r[name].squeeze()))


def test_a_law_in_discrete_time_jumps_between_its_instants():
    law = pf.control.discrete(
        lambda s: pf.control.Command(-5 * s["angle"]), 0.1, measure={"angle": pf.control.sensor(lambda k: k.q)}
    )
    record = {"mean": mean("u"), "top": maximum("u"), "low": minimum("u"), "when": first_crossing("u"), "last": final("u")}
    how = {"control": law, "duration": 1.0, "record": record, "backend": "interpreter"}
    r = pf.run(pendulum(), {"pivot": 0.4}, accuracy=1e-8, **how)
    u = pf.run(
        pendulum(), {"pivot": 0.4}, times=np.linspace(0, 1, 11), accuracy=1e-8, **how | {"duration": None, "record": ["u"]}
    ).u
    assert abs(float(r["mean"].squeeze()) - u.values[:-1].mean()) < 1e-9
    for name, x in {"top": u.max(), "low": u.min(), "last": u[-1, 0]}.items():
        assert float(r[name].squeeze()) == pytest.approx(float(x), abs=1e-12)
    assert float(r["when"].squeeze()) == pytest.approx(0.1 * np.argmax(u.values[:, 0] > 0), abs=1e-12)


def test_the_bits_of_a_statistic_depend_on_nothing_else():
    record = {
        "top": maximum("v"),
        "mean": mean("q"),
        "when": first_crossing("q"),
        "times": histogram("q", [-1, 0, 1]),
        "e": integral("energy"),
    }
    q = np.linspace(0.1, 2.0, 7)[:, None]
    how = {"duration": 3.0, "accuracy": 1e-5, "record": record}
    many = pf.run(pendulum(), q, backend="interpreter", threads=2, **how)
    alone = pf.run(pendulum(), q[4], backend="numpy", **how)
    for name in record:
        np.testing.assert_array_equal(many[name].values[4], alone[name].values, err_msg=name)


def test_statistics_of_a_run_in_two_parts():
    record = {"sum": integral("q"), "top": maximum("q")}
    whole, half = (of(oscillator(), {"x": 1.0}, end=end, **record) for end in (2.0, 0.9))
    rest = pf.run(oscillator(), start_from=half, duration=1.1, accuracy=ACCURACY, record=record, backend="interpreter")
    assert (half["sum"] + rest["sum"] - whole["sum"]).item() == pytest.approx(0.0, abs=1e-12)
    assert half["sum"].item() == pytest.approx(np.sin(1.8) / 2, abs=CLOSE)


def test_polynomials():
    """Of degree 8, through any polynomial of that degree: values, integral, roots and maxima."""
    c = np.random.default_rng(3).normal(size=9)
    p = np.polynomial.Polynomial(c, domain=[0, 1])
    values = p(chebyshev.NODES)[:, None]
    found = chebyshev.coefficients(values)
    s = np.linspace(0, 1, 50)
    np.testing.assert_allclose([chebyshev.at(found, np.array([x]))[0] for x in s], p(s), atol=1e-13)
    assert chebyshev.integral(values)[0] == pytest.approx(p.integ()(1) - p.integ()(0), abs=1e-14)
    grid = chebyshev.on_grid(values, found)[:, 0]
    place = int(np.argmax(grid[1:-1])) + 1
    tops = p(chebyshev.peak(found, np.array([place - 1])))[0], p(chebyshev.peak(found, np.array([place])))[0]
    assert max(tops) == pytest.approx(p(np.linspace(0, 1, 100_001)).max(), abs=1e-8)
    ends = np.array([int(np.argmax((grid[:-1] < 0.3) != (grid[1:] < 0.3))) + k for k in (0, 1)]) / chebyshev.CELLS
    assert p(chebyshev.root(found, 0.3, ends[:1], ends[1:])[0]) == pytest.approx(0.3, abs=1e-12)
