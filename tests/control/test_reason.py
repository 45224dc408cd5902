"""Names in reasons do not depend on the computer: rounding neither chooses among equals nor prints digits of a zero."""

import numpy as np
import pytest

import pfaffian as pf
from pfaffian.control.reason import foremost, lowest, mainly, participation, undriven, weakest

RANDOM = np.random.default_rng(7)
NOISE = [1e-15 * RANDOM.normal(size=4) for _ in range(20)]


def test_equal_shares_keep_their_order():
    for noise in NOISE:
        assert mainly(np.array([0.5, -1, 1, 0.5]) + noise, "abcd") == "b, c, a, d"
        assert mainly(np.array([1, 0.5, 0.1, 0.09]) + noise, "abcd") == "a, b, c"
        assert foremost(np.array([[0.5, -1], [1, 0.5]]) + noise.reshape(2, 2)) == (0, 1)
        assert foremost(np.array([0.5, 0.9, 1 + 1e-3, 1]) + noise) == (2,)
    assert mainly(np.zeros(3), "abc") == "a, b, c" and mainly(np.arange(4.0), "abcd", 2) == "d, c"
    assert mainly(np.array([1, np.nan, 3]), "abc") == "b" and foremost(np.array([1, np.inf, np.nan])) == (1,)


def turned(n):
    return np.linalg.qr(RANDOM.normal(size=(n, n)))[0]


@pytest.mark.parametrize("gains, dims, gain", [
    ((3, 2, 1), (1, 1), 1), ((3, 1, 1), (2, 2), 1), ((2, 1e-4), (1, 1), 1e-4), ((2, 1e-14), (2, 1), 0), ((0, 0), (3, 2), 0),
])  # fmt: skip
def test_weakest_finds_whole_singular_spaces(gains, dims, gain):
    """A (n, k) has known singular values along random axes: the spaces are spanned by all axes of the least value."""
    n, k = 3, len(gains)
    U, V = turned(n), turned(k)
    A = U[:, :k] @ np.diag(gains) @ V.T
    for B, left, right, sizes in ((A, U, V, dims), (A.T, V, U, dims[::-1])):
        found = weakest(B)
        small = weakest(1e-9 * B)
        assert small.inputs.shape == found.inputs.shape and np.isclose(small.gain, 1e-9 * found.gain, rtol=1e-9, atol=0)
        wide = B.shape[1] > B.shape[0]
        assert np.isclose(found.gain, 0 if wide else gain, rtol=1e-9, atol=0)
        if found.gain == gain == 0 or not wide:
            assert (found.outputs.shape[1], found.inputs.shape[1]) == sizes
            for space, axes in ((found.outputs, left), (found.inputs, right)):
                low = [i for i in range(len(axes)) if i >= k or gains[i] <= gain + 1e-9]
                low = low if gain == 0 else [i for i in low if i < k]
                assert np.abs(participation(space) - participation(axes[:, low])).max() < 1e-9


def test_all_motions_without_an_actuator_are_named():
    """A free body that is pushed along z alone: the other motions keep their order, however null spaces are spanned."""
    joint = pf.joint("flight", "free", "world", "hull")
    m = pf.mechanism(
        "hull", [pf.body("hull", 3.0, inertia=1.0)], [joint], actuators=[pf.actuator("lift", "flight", component=2)]
    )
    for noise in (0, 1e-15):
        B = np.eye(6)[:, 2:3] + noise * RANDOM.normal(size=(6, 1))
        words = undriven().words(m, {"A": np.zeros((0, 6)), "B": B})
        assert words.startswith("the motion without an actuator moves flight.vx, flight.vy, flight.wx, flight.wy, flight.wz;")
        words = undriven().words(m, {"A": np.eye(6)[3:5] + noise * RANDOM.normal(size=(2, 6)), "B": B})
        assert words.startswith("the motion without an actuator moves flight.vx, flight.vy, flight.wz;")


def test_the_lowest_eigenvalue_has_all_its_axes():
    Q = turned(4)
    for values, count in (((-2, 1, 1, 3), 1), ((0, 1e-9, 1, 3), 2), ((1, 1, 1, 1), 4)):
        found = lowest(Q @ np.diag(values) @ Q.T)
        assert found.shape == (4, count) and np.abs(participation(found) - participation(Q[:, :count])).max() < 1e-9
