"""Intervals of a fit: starts are eliminated without loss, and what is not measured widens nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pfaffian as pf
from pfaffian.fitting.determined import students, uncertainty
from pfaffian.fitting.known_before import settings
from pfaffian.fitting.linear_step import bounded_step, reduced
from tests.tolerance import ALGEBRA

SETTLED = 0.02
"""Relative difference of two estimated standard deviations: each is settled to a hundredth."""


DRAWS, COVERED = 200, (0.925, 0.98)
"""Draws of noise, and part of the 95 % intervals that contain the true value; 800 intervals scatter by .01."""


def test_starts_that_rows_determine_in_part_are_eliminated_exactly() -> None:
    """Of five directions of a start one changes nothing, and two change the same; one segment has fewer rows than numbers."""
    rng, k, n = np.random.default_rng(3), 5, 3
    J, e = rng.normal(size=(4, 12, k + n)), rng.normal(size=(4, 12))
    J[:, :, 1] = 0.0
    J[:, :, 4] = J[:, :, 2] - 3 * J[:, :, 0]
    J[3, 4:], e[3, 4:] = 0.0, 0.0
    rows = np.concatenate([J, e[:, :, None]], axis=2)
    part = reduced(np.linalg.qr(rows, mode="r"), k)
    H, g, rank = np.zeros((n, n)), np.zeros(n), 0
    for segment, error, x in zip(J, e, part.starts, strict=True):
        S, T = segment[:, :k], segment[:, k:]
        project = np.eye(12) - S @ np.linalg.pinv(S, rcond=1e-10)
        H, g, rank = H + T.T @ project @ T, g + T.T @ project @ error, rank + np.linalg.matrix_rank(S)
        assert (
            np.abs(S.T @ (T - S @ x[:, :-1])).max() < 1e3 * ALGEBRA
            and np.abs(S.T @ (error - S @ x[:, -1])).max() < 1e3 * ALGEBRA
        )
    assert np.abs(part.R.T @ part.R - H).max() < 1e3 * ALGEBRA and np.abs(part.R.T @ part.rhs - g).max() < 1e3 * ALGEBRA
    assert part.rank == rank == 12


def boxes(masses: tuple[float, ...]) -> pf.Mechanism:
    """One box on a spring to the world, or two joined by it."""
    k, c = pf.Parameter("stiffness", 5.0, "N/m"), pf.Parameter("damping", 0.1, "N s/m")
    names = [f"box {i}" for i in range(len(masses))]

    def pull(sign: float) -> Any:
        return lambda K: sign * (k * gap(names)(K) + c * sum(s * K.joint_rate(n) for n, s in zip(names, (1, -1), strict=False)))

    forces = [pf.forces.generalised_force(f"pull {n}", pull(s), joint=n) for n, s in zip(names, (-1.0, 1.0), strict=False)]
    slides = [pf.joint(n, "prismatic", "world", n, axis=(1, 0, 0)) for n in names]
    bodies = [pf.body(n, mass=x) for n, x in zip(names, masses, strict=True)]
    return pf.mechanism("boxes", bodies, slides, forces=forces, parameters=[k, c])


def gap(names: list[str]) -> Any:
    return lambda K: sum(s * K.position(n)[0] for n, s in zip(names, (1, -1), strict=False))


def test_boxes_of_which_the_distance_is_measured_are_one_of_the_reduced_mass() -> None:
    t = np.arange(0.0, 4.0, 0.02)
    one = {"time": t, "gap": np.exp(-0.1 * t) * np.cos(2 * t) + 1e-3 * np.random.default_rng(1).normal(size=t.size)}
    single, both = (
        pf.fit(boxes(masses), one, outputs={"gap": gap([f"box {i}" for i in range(len(masses))])}, horizon=0.2)
        for masses in ((1.2,), (3.0, 2.0))
    )
    for name in single.names:
        assert abs(single.values[name] - both.values[name]) < SETTLED * single.half_widths[name], name
        assert abs(single.half_widths[name] / both.half_widths[name] - 1) < SETTLED, name


@pytest.mark.parametrize("memory", [0.0, 0.5])
def test_intervals_of_correlated_residuals_in_a_few_uneven_segments(memory: float) -> None:
    """Six segments, of which two have most of the information; a residual keeps a part of the one before it."""
    rng, segments, samples, k, n = np.random.default_rng(5), 6, 40, 2, 4
    t = np.linspace(0, 1, samples)
    waves = [np.sin(rng.uniform(2, 12, size=(k + n, 1)) * t + rng.uniform(0, 6, size=(k + n, 1))).T for _ in range(segments)]
    J = np.array(waves) * np.array([3, 3, 1, 1, 1, 1])[:, None, None]
    free, inside = settings(tuple("abcd"), {}, {}, lambda _: True), list[np.ndarray]()
    for _ in range(DRAWS):
        e = rng.normal(size=(segments, samples))
        for i in range(1, samples):
            e[:, i] = memory * e[:, i - 1] + np.sqrt(1 - memory**2) * e[:, i]
        part = reduced(np.linalg.qr(np.concatenate([J, e[:, :, None]], axis=2), mode="r"), k)
        error, _ = bounded_step(part.R, part.rhs, np.ones(n), 0.0, free)
        left = part.rhs - part.R @ error
        deviation = np.sqrt((left**2).sum() / (e.size - part.rank - n))
        told = uncertainty(part._replace(R=part.R / deviation, rhs=left / deviation), np.ones(n), np.ones(n), free.prior)
        inside.append(np.abs(error) <= told.half_width)
    assert COVERED[0] < np.mean(inside) < COVERED[1]


@pytest.mark.parametrize(("freedom", "quantile"), [(1, 12.706), (2, 4.303), (5, 2.571), (10, 2.228), (30, 2.042), (1e5, 1.960)])
def test_half_widths_of_students_distribution_are_those_of_tables(freedom: float, quantile: float) -> None:
    assert students(freedom) == pytest.approx(quantile, abs=6e-4)
