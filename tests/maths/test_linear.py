"""Linear algebra that traces, against NumPy."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest

from pfaffian.maths.linear import handedness
from tests.tolerance import ALGEBRA, close


@pytest.mark.parametrize("n", range(7))
def test_handedness_is_the_determinant(n: int) -> None:
    random = np.random.default_rng(n)
    for _ in range(6):
        Q, _ = np.linalg.qr(random.normal(size=(n, n)))
        close(float(ca.DM(handedness(ca.SX(Q)))), np.linalg.det(Q), ALGEBRA, "determinant of an orthogonal matrix")


def test_handedness_of_rows_that_change_places() -> None:
    swap = ca.SX(ca.DM([[0, 1, 0], [1, 0, 0], [0, 0, 1]]))
    assert float(ca.DM(handedness(swap))) == -1
    assert float(ca.DM(handedness(swap[[1, 0, 2], :]))) == 1
