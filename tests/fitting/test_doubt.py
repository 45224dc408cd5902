"""False minima: left where short segments lead to a better one, and told where residuals stay far above the noise."""

from __future__ import annotations

import numpy as np
import pytest

import pfaffian as pf


def oscillator() -> pf.Mechanism:
    k = pf.Parameter("stiffness", 3.0, "N/m")
    slide = pf.joint("x", "prismatic", "world", "box", axis=(1, 0, 0), stiffness=k)
    return pf.mechanism("oscillator", [pf.body("box", mass=2.0)], [slide], parameters=[k])


def record(q: np.ndarray, t: np.ndarray) -> dict[str, np.ndarray]:
    return {"time": t, "q": q + 1e-3 * np.random.default_rng(0).normal(size=t.size)}


def test_one_long_segment_reaches_the_numbers_of_short_ones() -> None:
    """From 3 N/m the motion of 60 s is seven radians out of phase at its end: its sum of squares has minima in between."""
    t = np.arange(0.0, 60.0, 0.04)
    fit = pf.fit(oscillator(), record(np.cos(2 * t), t), horizon=60.0)
    assert fit.problem.segments.runs == 1 and fit.converged and not fit.doubt
    assert abs(fit.values["stiffness"] - 8.0) < 3 * fit.half_widths["stiffness"]


def test_residuals_far_above_the_noise_are_told() -> None:
    t = np.arange(0.0, 4.0, 0.02)
    with pytest.warns(pf.RunWarning, match="'q x' are .* times as large as the noise"):
        fit = pf.fit(oscillator(), record(np.cos(2 * t) + 0.5 * np.cos(9 * t), t))
    assert fit.doubt in repr(fit) and "false minimum" in fit.doubt
