"""Fits that go wrong: false minima, interruptions, and arguments that cannot be used."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np
import pytest

import pfaffian as pf
from pfaffian.fitting import fit_state
from tests.fitting.machines import PENDULUM, pendulum
from tests.fitting.machines import record as record_of

SAME = 1e-4
"""Relative distance of two converged fits of one record: each stops within a tenth of a standard error."""


def oscillator() -> pf.Mechanism:
    k = pf.Parameter("stiffness", 3.0, "N/m")
    slide = pf.joint("x", "prismatic", "world", "box", axis=(1, 0, 0), stiffness=k)
    return pf.mechanism("oscillator", [pf.body("box", mass=2.0)], [slide], parameters=[k])


def record(q: np.ndarray, t: np.ndarray) -> dict[str, np.ndarray]:
    return {"time": t, "q": q + 1e-3 * np.random.default_rng(0).normal(size=t.size)}


def test_one_long_segment_reaches_the_numbers_of_short_ones() -> None:
    """From 3 N/m the motion of 60 s is seven radians out of phase at its end: its sum of squares has minima in between, whose
    residuals are small beside the way of the carriage on which the box swings."""
    k = pf.Parameter("stiffness", 3.0, "N/m")
    track = pf.joint("track", "prismatic", "world", "carriage", axis=(1, 0, 0))
    slide = pf.joint("x", "prismatic", "carriage", "box", axis=(1, 0, 0), stiffness=k)
    bodies = [pf.body("carriage", mass=2e9), pf.body("box", mass=2.0)]
    m = pf.mechanism("train", bodies, [track, slide], parameters=[k])
    t = np.arange(0.0, 60.0, 0.04)
    noise = 1e-3 * np.random.default_rng(0).normal(size=(2, t.size))
    one = {"time": t, "q": {"track": 5 * t + noise[0]}, "place": 5 * t + np.cos(2 * t) + noise[1]}
    fit = pf.fit(m, one, outputs={"place": lambda k: k.position("box")[0]}, horizon=60.0)
    assert fit.problem.segments.runs == 1 and fit.converged and fit.deviations["place"] < 2e-3
    assert abs(fit.values["stiffness"] - 8.0) < 3 * fit.half_widths["stiffness"]


def test_residuals_far_above_the_noise_are_told() -> None:
    t = np.arange(0.0, 4.0, 0.02)
    q = np.cos(2 * t) + 0.03 * np.cos(9 * t) + 3e-3 * np.random.default_rng(1).normal(size=t.size)
    with pytest.warns(pf.RunWarning, match="'q x' are [6-9].* times as large as the noise"):
        fit = pf.fit(oscillator(), {"time": t, "q": q})
    assert fit.doubt in repr(fit) and "false minimum" in fit.doubt


def test_a_fit_that_was_stopped_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    t, file = np.arange(0.0, 4.0, 0.02), tmp_path / "fit.npz"
    one = record(np.cos(2 * t), t)
    written = fit_state.write_file

    def stopped(*of: Any) -> None:
        written(*of)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(fit_state, "write_file", stopped)
        pf.fit(oscillator(), one, resume=file)
    whole, rest = pf.fit(oscillator(), one), pf.fit(oscillator(), one, resume=file)
    assert rest.iterations < whole.iterations and rest.converged
    assert np.isclose(rest.values["stiffness"], whole.values["stiffness"], rtol=SAME)
    assert rest.table["start"]["stiffness"] == 3.0
    with pytest.raises(pf.ModelError, match=r"resume.*other numbers or records"):
        pf.fit(oscillator(), {name: x[:150] for name, x in one.items()}, resume=file)
    file.write_bytes(file.read_bytes()[:-20])
    with pytest.raises(pf.ModelError, match=r"resume.*not the file of a fit"):
        pf.fit(oscillator(), one, resume=file)


@pytest.mark.parametrize(
    "change, options, words",
    [
        ({"time": np.arange(3).astype("datetime64[s]")}, {}, "time \\[s\\]: .* is not an array of real numbers"),
        ({"q": np.array([0.0, np.inf, 1.0])}, {}, "q: sample 1 is infinite"),
        ({"q": np.array([1j, 0, 1])}, {}, "q: .* is not an array of real numbers"),
        ({}, {"units": {"v": "deg/s"}}, "units: no record measures 'v'"),
        ({}, {"unknown": {"q": 3}}, "unknown: 'q' needs a word"),
        ({}, {"priors": {"stiffness": 3.0}}, "value, standard deviation"),
        ({}, {"priors": {"stiffness": (3.0, 0.0)}}, "above zero"),
        ({}, {"horizon": 1e-6}, "longer horizon"),
        ({}, {"start": [[1, 2]]}, "start: {name: value} is needed"),
        ({}, {"bounds": np.array([True])}, "bounds: {name: value} is needed"),
        ({}, {"priors": {1: (1.0, 1.0)}}, "priors: {name: value} is needed"),
        ({}, {"units": "m"}, "units: {name: value} is needed"),
        ({}, {"outputs": ca.MX.sym("x")}, "outputs: {name: value} is needed"),
        ({}, {"parameters": type}, "parameters: a list of names is needed"),
        ({}, {"robust": "1"}, "robust must be True or False"),
        ({}, {"start": {"stiffness": 3.0}, "bounds": {"stiffness": (4.0, 5.0)}}, "outside its bounds"),
    ],
)
def test_what_a_fit_cannot_use_is_named(change: dict[str, Any], options: dict[str, Any], words: str) -> None:
    one = {"time": np.arange(3) * 0.1, "q": np.array([0.0, 0.1, 0.3])}
    with pytest.raises(pf.ModelError, match=words):
        pf.fit(oscillator(), one | change, **options)


def test_a_start_moves_into_its_bounds() -> None:
    t = np.arange(0.0, 2.0, 0.02)
    fit = pf.fit(oscillator(), record(np.cos(2 * t), t), bounds={"stiffness": (7.0, 9.0)})
    assert 7.0 < fit.values["stiffness"] < 9.0 and fit.table["start"]["stiffness"] == 7.0


def test_angles_in_degrees_are_told() -> None:
    m = pendulum()
    one = record_of(m, PENDULUM, ("hinge",), q={"hinge": 1.0})
    with pytest.warns(pf.RunWarning, match="degrees, write units"):
        pf.fit(m, one | {"q": np.degrees(one["q"]["hinge"])})
