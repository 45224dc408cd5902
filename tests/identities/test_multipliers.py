"""Which multipliers the motion determines, and the smallest ones where it does not."""

import numpy as np
import pytest
import scipy.linalg

import pfaffian as pf
from pfaffian.dynamics import gauss
from pfaffian.dynamics.multipliers import minimum_norm_multipliers, unique_multipliers

AXIS = (0, -1, 0)
ROD = (0, 1 / 12, 1 / 12)
ACCURATE = 1e-10
"""Error of multipliers of some newtons: rounding times the condition of a few rows."""


def four_bar(kind, extra=()):
    """A planar four-bar whose loop is closed in space: rows out of the plane are redundant or vanish."""
    bodies = [pf.body(name, 1.0, (0.5, 0, 0), ROD) for name in ("crank", "coupler", "rocker")]
    joints = [
        pf.joint("A", "revolute", "world", "crank", axis=AXIS),
        pf.joint("B", "revolute", "crank", "coupler", axis=AXIS, placement=(1, 0, 0)),
        pf.joint("D", "revolute", "world", "rocker", axis=AXIS, placement=(1, 0, 0)),
    ]
    ends = {"placement_a": (1, 0, 0), "placement_b": (1, 0, 0)}
    return pf.mechanism("four-bar", bodies, joints, constraints=[pf.closure("C", kind, "coupler", "rocker", **ends), *extra])


def found(m):
    quantities = {
        "A": lambda T: T.A,
        "reaction": lambda T: pf.FORMULATIONS["gauss"](T).reaction,
        "multiplier": lambda T: minimum_norm_multipliers(T, pf.FORMULATIONS["gauss"](T).reaction),
        "by the motion's rows": gauss.multipliers,
        "unique": unique_multipliers,
    }
    return pf.compile_terms(m, quantities, backend="numpy")([1.0, -1.0, 1.0], [0.7, -0.7, 0.7])


DOUBLE = pf.coincide("again", "coupler", (1, 0, 0), "rocker", (1, 0, 0))


@pytest.mark.parametrize(
    ("kind", "extra"), [("spherical", ()), ("revolute", ()), ("spherical", (DOUBLE,)), ("revolute", (DOUBLE,))]
)
def test_uniqueness_follows_from_the_left_null_space(kind, extra):
    x = found(four_bar(kind, extra))
    idle = scipy.linalg.null_space(x["A"].T)
    expected = np.linalg.norm(idle, axis=1) < 1e-8
    assert np.array_equal(x["unique"].astype(bool), expected)
    smallest = np.linalg.pinv(x["A"].T, rcond=1e-9) @ x["reaction"]
    np.testing.assert_allclose(x["multiplier"], smallest, atol=ACCURATE * np.abs(smallest).max())
    np.testing.assert_allclose(x["by the motion's rows"], smallest, atol=ACCURATE * np.abs(smallest).max())
    np.testing.assert_allclose(x["A"].T @ x["multiplier"], x["reaction"], atol=ACCURATE * np.abs(x["reaction"]).max())


def test_in_plane_multipliers_are_unique_unless_rows_are_duplicated():
    assert found(four_bar("spherical"))["unique"].sum() == 2
    assert found(four_bar("spherical", (DOUBLE,)))["unique"].sum() == 0
