"""The difference of two solutions in each of its kinds, beside numbers by hand.

True and told errors are both measured by this function, so that comparing them would not show a fault in it.
"""

from __future__ import annotations

import numpy as np
import pytest

import pfaffian as pf
from pfaffian.simulate.error.global_error import FRACTION, SLOW, Solutions, global_error, largest_speeds

NONE = np.zeros((1, 0))
"""Parameters of one run of a machine without any."""


def machine(*joints: str, com: tuple[float, float, float] = (0, 0, 0)) -> pf.Mechanism:
    """A body at the end of joints of these kinds."""
    names = [f"body {i}" for i in range(len(joints))]
    bodies = [pf.body(name, 1.0, com=com, inertia=(0.02, 0.03, 0.04)) for name in names]
    between = zip(joints, ["world", *names], names, strict=False)
    along = {"revolute": {"axis": (0, 1, 0)}, "prismatic": {"axis": (0, 1, 0)}}
    chain = [pf.joint(f"j{i}", kind, a, b, **along.get(kind, {})) for i, (kind, a, b) in enumerate(between)]
    return pf.mechanism("machine", bodies, chain)


def difference(m: pf.Mechanism, one: list, other: list, duration: float = 1.0, **more) -> np.ndarray:
    """(times, kinds) of one run, from [q; v] at each time."""
    both = Solutions(*(np.array(x, dtype=float)[:, None, :] for x in (one, other)))
    return global_error(m, both, NONE, duration, **more)[:, 0]


def test_angles_and_speeds_of_hinges():
    found = difference(machine("revolute"), [[0.1, 2.0], [0.30, -4.0]], [[0.1, 2.0], [0.27, -4.2]])
    np.testing.assert_allclose(found, [[0, 0, 0], [0.03, 0, 0.2 / 4.2]], atol=1e-15)


def test_the_largest_of_several_angles_counts():
    found = difference(machine("revolute", "revolute"), [[0.1, 0.2, 1.0, 0.0]], [[0.1 - 0.02, 0.2 + 0.05, 1.0, 0.0]])
    np.testing.assert_allclose(found[0], [0.05, 0, 0], atol=1e-15)


def test_quaternions_differ_by_the_angle_between_them():
    turned = lambda angle: [0, np.sin(angle / 2), 0, np.cos(angle / 2), 0, 3.0, 0]  # noqa: E731
    found = difference(machine("spherical"), [turned(0.7)], [turned(0.7 + 1e-4)])
    np.testing.assert_allclose(found[0], [1e-4, 0, 0], rtol=1e-6, atol=1e-15)


def test_positions_are_relative_to_the_largest_where_bodies_have_no_length():
    rail = pf.mechanism("point", [pf.body("point", 1.0)], [pf.joint("x", "prismatic", "world", "point")], gravity=(0, 0, 0))
    found = difference(rail, [[2.0, 0.0], [0.5, 8.0]], [[2.0, 0.0], [0.503, 8.0]])
    np.testing.assert_allclose(found[1], [0, 0.003 / 2.0, 0], atol=1e-15)


def test_a_position_that_gravity_holds_is_relative_to_part_of_a_fall():
    rail = pf.mechanism("point", [pf.body("point", 1.0)], [pf.joint("x", "prismatic", "world", "point")])
    found = difference(rail, [[1e-15, 0.0]], [[1e-12 + 1e-15, 0.0]], duration=4.0)
    np.testing.assert_allclose(found[0, 1], 1e-12 / (FRACTION * 9.81 * 4.0**2 / 2))


def test_speeds_of_one_unit_are_relative_to_the_fastest_of_all_records():
    m = machine("revolute", "revolute")
    found = difference(m, [[0, 0, 0.1, 5.0], [0, 0, 0.1, 0.0]], [[0, 0, 0.1, 5.0], [0, 0, 0.102, 0.0]])
    np.testing.assert_allclose(found[:, 2], [0, 0.002 / 5.0], atol=1e-15)


def test_speeds_between_the_records_count_too():
    m = machine("revolute")
    found = difference(m, [[0, 0.5]], [[0, 0.6]], speeds={"rad/s": np.array([8.0])})
    np.testing.assert_allclose(found[0, 2], 0.1 / 8.0)


def test_the_speed_of_a_slide_is_at_least_that_of_the_fastest_turn_on_the_length():
    m = machine("revolute", "prismatic", com=(0, 0, -0.5))
    slow, fast = (difference(m, [[0, 0, w, 0.01]], [[0, 0, w, 0.02]])[0, 2] for w in (0.0, 100.0))
    alone = difference(m, [[0, 0, 0, 50.0]], [[0, 0, 0, 50.01]])[0, 2]
    assert slow == pytest.approx(0.5, rel=1e-9) or slow < 0.5, "relative to the slide, or to a length in the time of the run"
    length = 0.01 / difference(m, [[0, 0, 0, 0]], [[0, 0.01, 0, 0]])[0, 1]
    assert fast == pytest.approx(0.01 / (100 * length)) and fast < slow / 20 and alone == pytest.approx(0.01 / 50.01)


@pytest.mark.parametrize("duration", [0.5, 4.0])
def test_a_machine_that_hardly_moves_is_judged_beside_a_turn_in_the_time_of_the_run(duration):
    found = difference(machine("revolute"), [[0, 0.0]], [[0, 1e-13]], duration, rounding=1e-15)
    np.testing.assert_allclose(found[0, 2], (1e-13 + 1e-15 / duration) / (SLOW / duration))


def test_records_that_one_solution_lacks_have_no_error():
    found = difference(machine("revolute"), [[0.1, 2.0], [np.nan, np.nan]], [[0.2, 2.0], [0.3, 2.0]])
    assert found[0, 0] == pytest.approx(0.1) and np.isnan(found[1]).all()


def test_largest_speeds_of_each_unit():
    m = machine("revolute", "prismatic", "revolute")
    q_v = np.array([[[0, 0, 0, -3.0, 0.5, 1.0]], [[0, 0, 0, 1.0, np.nan, 1.0]], [[0, 0, 0, 2.0, -0.75, 4.0]]])
    assert {unit: float(x[0]) for unit, x in largest_speeds(m, q_v).items()} == {"rad/s": 4.0, "m/s": 0.75}
