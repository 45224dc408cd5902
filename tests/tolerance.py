"""The tolerances of the tests with their reasons, and the comparison that uses them.

With PFAFFIAN_TOL_SCALE=0 every comparison fails and so prints its residual; PFAFFIAN_RESIDUALS=file appends all residuals to a
file.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

EPS = float(np.finfo(float).eps)

ALGEBRA = 64 * EPS
"""Rounding of a few dozen operations on numbers of the stated scale; to be multiplied by the condition number where a
system is solved."""

SATISFIED = 1e-10
"""Residual of a state on its constraints: closures are placed and velocities projected to a few eps."""

CLEAR_OF_THRESHOLD = (1e-7, 1e-2)
"""Rows with a remainder below the first number are dependent and above the second independent, in any metric; in between
formulations may decide differently (RANK_TOLERANCE is 1e-5)."""

PEER = 1e-10
"""Difference from the recursions of another engine, relative to the largest entry: above rounding, and below any wrong
term."""

PEER_CONSTRAINED = 1e-8
"""Difference from Pinocchio's proximal iteration, which has an error of about 1e-9."""

POWER = 1e-12
"""Difference of dE/dt and power, both by exact derivatives, relative to the sum of the magnitudes of their parts: rounding
of long sums."""

DERIVATIVE = 1e-12
"""Difference between a closed formula and CasADi's derivative of another one, relative to the size of the parts."""

INTEGRATED = 1e-8
"""Difference of RK4 at steps of 1e-3 s or below from order 8 at 1e-10 to 1e-12, over a second of slow motion."""

PAST_SINGULAR = 1e-5
"""Error of the tip of the N-four-bar after 20 s and eleven singular passages at 1 ms, relative to its length."""

ANDREWS = 1e-8
"""Error of Andrews' mechanism at t = 0.03 s, after five turns of the crank at up to 1400 rad/s."""

ADAMS = 1e-4
"""ADAMS' integration error over 5 s of swinging; its tables have 7 digits."""

ADAMS_LOOSE = 1e-3
"""Error where ADAMS' tables are less accurate: for the same motion those of two joints differ by 8e-4."""

SLOPE = 0.2
"""Error of the observed order over five halvings; higher powers of the step still affect the first ones."""

CENTRAL = 1e-7
"""Error of central differences at a step of 1e-5: h^2 / 6 of the third derivative, and eps / h."""


def residual(actual, expected, scale=None) -> float:
    """Largest |actual - expected| relative to `scale`, by default the largest |expected| (1 if that is zero)."""
    actual, expected = np.asarray(actual, dtype=float), np.asarray(expected, dtype=float)
    assert actual.shape == expected.shape, (actual.shape, expected.shape)
    if actual.size == 0:
        return 0.0
    size = float(np.abs(expected).max() if scale is None else np.max(scale))
    return float(np.abs(actual - expected).max() / (size or 1.0))


def close(actual, expected, tolerance: float, what: str, scale=None) -> None:
    """Assert that two arrays agree within `tolerance` of the scale."""
    found = residual(actual, expected, scale)
    if "PFAFFIAN_RESIDUALS" in os.environ:
        with Path(os.environ["PFAFFIAN_RESIDUALS"]).open("a") as file:
            file.write(f"{found:.3e} of {tolerance:.3e} {what}\n")
    bound = tolerance * float(os.environ.get("PFAFFIAN_TOL_SCALE", "1"))
    assert found <= bound, f"{what}: residual {found:.3e} is above {bound:.3e}"
