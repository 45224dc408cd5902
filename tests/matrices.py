"""Small matrices as arrays, and their comparison."""

from __future__ import annotations

from typing import Any

import casadi as ca
import numpy as np


def number(x: Any) -> np.ndarray:
    """A matrix of CasADi, or of numbers, as an array."""
    return np.array(ca.DM(x))


def hat(w: Any) -> np.ndarray:
    """The matrix of the cross product w x."""
    return np.array([[0, -w[2], w[1]], [w[2], 0, -w[0]], [-w[1], w[0], 0]])


def near(a: Any, b: Any, tolerance: float, scale: float = 1.0) -> None:
    """Matrices, of CasADi or of NumPy, that are equal to a tolerance; as columns where their shapes differ."""
    a, b = (np.array(m.full() if isinstance(m, ca.DM) else m, dtype=float) for m in (a, b))
    if a.shape != b.shape:
        a, b = a.ravel(), b.ravel()
    np.testing.assert_allclose(a, b, rtol=0, atol=tolerance * scale)
