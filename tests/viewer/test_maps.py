"""Maps of configurations, compared with closed forms for a planar arm, alone and on a cross slide."""

from __future__ import annotations

import numpy as np
import pytest

import pfaffian as pf
from pfaffian.errors import ModelError, RunWarning
from tests.tolerance import ALGEBRA

L1, L2 = 1.0, 0.6
H = {"kind": "revolute", "axis": (0, 0, 1)}


def arm(**given) -> pf.Mechanism:
    bodies = [pf.body("a", 1.0, (0.5, 0, 0), 0.1), pf.body("b", 1.0, (0.3, 0, 0), 0.1)]
    joints = [pf.joint("A", parent="world", child="a", **H), pf.joint("B", parent="a", child="b", placement=(L1, 0, 0), **H)]
    return pf.mechanism("arm", bodies, joints, **given)


def tip_x(k):
    return k.position("b", (L2, 0, 0))[0]


def tip_y(k):
    return k.position("b", (L2, 0, 0))[1]


def test_the_workspace_of_an_arm_and_its_manipulability():
    """It reaches L1 - L2 < r < L1 + L2 with |det J| = L1 L2 |sin B|, by the law of cosines, on one branch throughout."""
    x, y = np.linspace(-1.9, 1.9, 9), np.linspace(-1.8, 1.8, 8)
    found = pf.map_of(arm(), (tip_x, x), (tip_y, y), "manipulability", body="b", point=(L2, 0, 0), q={"A": 0.3, "B": 0.8})
    X, Y = np.meshgrid(x, y)
    c = (X**2 + Y**2 - L1**2 - L2**2) / (2 * L1 * L2)
    np.testing.assert_array_equal(np.isfinite(found.values), np.abs(c) < 1)
    inside = np.abs(c) < 1
    np.testing.assert_allclose(found.values[inside], L1 * L2 * np.sqrt(1 - c[inside] ** 2), atol=1e-6)
    assert (np.sin(found.q[..., 1])[inside] > 0).all(), "the elbow stays on its side"
    assert found.x_title == "tip_x" and found.title == "manipulability of b" and "% in reach" in repr(found)


def test_coordinates_of_a_loop_and_the_rank_of_its_rows():
    """An arm with its tip pinned to the world closes at no pair of angles; with its tip on a cross slide, within reach."""
    m = arm(constraints=[pf.coincide("pin", "b", (L2, 0, 0), "world", (1.2, 0, 0))])
    with pytest.warns(RunWarning, match="no configuration of the map closes"):
        nothing = pf.map_of(m, ("A", np.linspace(2, 3, 3)), ("B", np.linspace(0, 1, 2)))
    assert np.isnan(nothing.values).all()
    rail = [pf.joint("x", "prismatic", "world", "c", axis=(1, 0, 0)), pf.joint("y", "prismatic", "c", "d", axis=(0, 1, 0))]
    both = arm().with_(
        bodies=[*arm().bodies, pf.body("c", 1.0), pf.body("d", 1.0)],
        joints=[*arm().joints, *rail],
        constraints=[pf.coincide("pin", "b", (L2, 0, 0), "d", (0, 0, 0))],
    )
    side = np.linspace(-1.0, 1.0, 5)
    found = pf.map_of(both, ("x", side + 0.05), ("y", side), lambda T: T.kinematics.q[0], q={"A": 0.3, "B": 0.8})
    assert found.x_title == "x [m]" and found.y_title == "y [m]"
    good = np.isfinite(found.values)
    r = np.hypot(*np.meshgrid(side + 0.05, side))
    np.testing.assert_array_equal(good, (r < L1 + L2) & (r > L1 - L2))
    A, B, x, _ = np.moveaxis(found.q[good], -1, 0)
    np.testing.assert_array_equal(found.values[good], A)
    np.testing.assert_allclose(L1 * np.cos(A) + L2 * np.cos(A + B), x, atol=1e-9)
    np.testing.assert_array_equal(x, np.meshgrid(side + 0.05, side)[0][good])
    ranks = pf.map_of(both, ("x", side + 0.05), ("y", side), "rank", q={"A": 0.3, "B": 0.8})
    assert (ranks.values[good] == 2).all()


def test_the_figure_of_a_map_draws_its_values():
    found = pf.map_of(arm(), ("A", np.linspace(0, 1, 3)), ("B", np.linspace(0, 2, 4)), lambda T: T.M[0, 0])
    assert found.values.shape == (4, 3)
    expected = pf.mass_matrix(arm(), found.q.reshape(-1, 2))[:, 0, 0].reshape(4, 3)
    np.testing.assert_allclose(found.values, expected, rtol=ALGEBRA)
    ax, bar = found.figure().axes
    assert (ax.get_xlabel(), ax.get_ylabel(), bar.get_ylabel()) == ("A [rad]", "B [rad]", "a lambda")
    np.testing.assert_array_equal(ax.collections[0].get_array().reshape(4, 3), found.values)
    assert found._repr_png_()[:4] == b"\x89PNG"


GOOD = np.linspace(0, 1, 3)
WRONG = {
    "a name alone": ({"x": "A"}, "x: .coordinate or function of Kinematics, values"),
    "no such coordinate": ({"x": ("C", GOOD)}, "x: there is no coordinate 'C'"),
    "not increasing": ({"y": ("B", GOOD[::-1])}, "y: 2 to 400 increasing values"),
    "one value": ({"y": ("B", [1.0])}, "y: 2 to 400 increasing values"),
    "no such quantity": ({"quantity": "beauty"}, "quantity 'beauty': there are regularity, rank, manipulability"),
    "a body is missing": ({"quantity": "manipulability"}, "name it, body="),
    "several numbers": ({"quantity": lambda T: T.q}, r"must return one number, got \(2, 1\)"),
    "a batch": ({"q": [[0, 0], [1, 1]]}, "q: one set is needed, got 2"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_maps_are_refused(case):
    given, words = WRONG[case]
    with pytest.raises(ModelError, match=words):
        pf.map_of(arm(), **{"x": ("A", GOOD), "y": ("B", GOOD)} | given)
