"""Comparison of small matrices, of CasADi or of NumPy, as columns where their shapes differ."""

from __future__ import annotations

from typing import Any

import casadi as ca
import numpy as np


def near(a: Any, b: Any, tolerance: float, scale: float = 1.0) -> None:
    a, b = (np.array(m.full() if isinstance(m, ca.DM) else m, dtype=float) for m in (a, b))
    if a.shape != b.shape:
        a, b = a.ravel(), b.ravel()
    np.testing.assert_allclose(a, b, rtol=0, atol=tolerance * scale)
