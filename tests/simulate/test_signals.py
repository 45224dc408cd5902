"""Signals of a run in closed form: residuals, regularity, hold of a servo, units, singular passages; and the start time."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest
import xarray as xr

import pfaffian as pf
from pfaffian import control
from pfaffian.simulate.step.signals import RESERVED, standard
from tests.oracles.test_singular import slider_crank
from tests.simulate.machines import FOUR_BAR_START, four_bar, pendulum
from tests.tolerance import ALGEBRA, INTEGRATED, close

MASSES = np.array([0.5, 1.5, 3.0])
NUMPY = {"backend": "interpreter", "step": 1e-3}


def particles(*constraints, motors: bool = False) -> pf.Mechanism:
    """Three slides at right angles in series, so that M is diagonal."""
    bodies = [pf.body(f"p{i}", k) for i, k in enumerate(MASSES)]
    joints = [
        pf.joint(f"x{i}", "prismatic", "world" if i == 0 else f"p{i - 1}", f"p{i}", axis=np.eye(3)[i].tolist())
        for i in range(3)
    ]
    m = pf.mechanism("particles", bodies, joints, constraints=constraints, gravity=(0, 0, 0))
    return pf.actuate_all(m) if motors else m


INERTIA = MASSES[::-1].cumsum()[::-1]


def cosine(a: np.ndarray, b: np.ndarray) -> float:
    """Cosine of the angle between two rows in the metric of M."""
    ab, aa, bb = (float(np.sum(x * y / INERTIA)) for x, y in ((a, b), (a, a), (b, b)))
    return ab / np.sqrt(aa * bb)


def line(name: str, a: np.ndarray) -> object:
    return pf.holonomic(name, lambda k: ca.dot(ca.DM(a), k.q))


# Residuals of constraints.


def test_violation_is_the_largest_residual_of_position_and_velocity():
    """Recorded at a start that is not corrected: |phi| and |A v - c| of the worst row."""
    slow = pf.holonomic("driven", lambda k: k.q[0] - 0.3 * k.t)
    flat = pf.holonomic("flat", lambda k: 2 * k.q[1])
    rolling = pf.nonholonomic("rolling", lambda k: k.v[2] - 0.5)
    r = pf.run(particles(slow, flat, rolling), [-2e-4, 1.5e-4, 1.0], [0.3, -0.2, 0.35], duration=0.0, correct_start=False,
               scheme=pf.Scheme(corrections=0, violation_limit=1.0), **NUMPY)  # fmt: skip
    close(r.phi.values, [[-2e-4, 3e-4, 0.0]], ALGEBRA, "phi")
    close(r.violation.values, [3e-4], ALGEBRA, "violation")
    close(r.velocity_violation.values, [0.4], ALGEBRA, "velocity violation: 2 * -0.2 outweighs -0.15 and 0")
    only = pf.run(particles(slow), [0, 0, 0], [0.1, 0, 0], duration=0.0, correct_start=False, **NUMPY)
    close(only.velocity_violation.values, [0.2], ALGEBRA, "the driven row wants 0.3 m/s")


def test_rows_without_a_position_have_no_position_residual():
    """Two rolling rows of one constraint and a row of position: phi of the former is zero, eta is not."""
    rolling = pf.nonholonomic("rolling", lambda k: ca.vertcat(k.v[1] - 0.5, 2 * k.v[2] + k.v[1]))
    r = pf.run(particles(line("flat", np.array([1.0, 0, 0])), rolling), [1e-7, 1.0, 2.0], [0, 0.4, 0.3], duration=0.0,
               correct_start=False, **NUMPY)  # fmt: skip
    assert list(r.row.values) == ["flat", "rolling.0", "rolling.1"]
    close(r.phi.values, [[1e-7, 0.0, 0.0]], ALGEBRA, "phi")
    close(r.velocity_violation.values, [1.0], ALGEBRA, "2 * 0.3 + 0.4")


# Regularity.


@pytest.mark.parametrize("angle", [0.03, 0.4, 1.2])
def test_regularity_is_the_sine_between_two_rows(angle):
    """Measured in the metric of M; a redundant copy of a row does not count."""
    a, b = np.array([1.0, 0, 0]), np.array([np.cos(angle), np.sin(angle), 0])
    sine = np.sqrt(1 - cosine(a, b) ** 2)
    for rows in ((a, b), (a, b, a), (b, b, a)):
        m = particles(*[line(f"row {i}", x) for i, x in enumerate(rows)])
        r = pf.run(m, duration=0.0, **NUMPY)
        close(r.regularity.values, [sine], 1e-10, f"sine at {angle}, {len(rows)} rows")
        assert int(r["rank"][0]) == 2


def test_regularity_of_a_row_that_vanishes_is_its_length():
    """q0^2 + q1^2 = c has a gradient of 2 |q|: near zero the regularity is proportional to it, and far from zero it is at
    most 1."""
    radius = pf.Parameter("radius", 0.1)
    ring = pf.holonomic("ring", lambda k: k.q[0] ** 2 + k.q[1] ** 2 - radius.symbol**2)
    m = particles(ring).with_(parameters=[radius])
    sizes = np.array([0.02, 0.04, 0.08, 50.0])
    q = np.column_stack([sizes, 0 * sizes, 0 * sizes])
    r = pf.run(m, q, parameters={"radius": sizes}, duration=0.0, record=["regularity"], **NUMPY)
    found = r.regularity.values[:, 0]
    close(found[1:3] / found[0], [2.0, 4.0], 1e-10, "in proportion")
    assert found[0] < 0.05 and found[3] == 1.0


# Servo constraints.


def test_servo_error_rate_and_hold():
    """phi_ddot + 12 phi_dot + 36 phi = 0; the hold is the cosine between the constraint's row and the force direction in
    the metric of M."""
    a, z = np.array([1.0, 0.5, 0]), np.array([0.3, 1.0, 0.4])
    wish = pf.holonomic("wish", lambda k: ca.dot(ca.DM(a), k.q) - 0.5 - 0.1 * k.t)
    m = particles(pf.servo(wish, lambda k: ca.SX(ca.DM(z).T), stiffness=36.0, damping=12.0))
    r = pf.run(m, [0.8, 0.2, 0], [0.2, 0.4, 0], duration=0.3, **NUMPY)
    t, e, rate = r.time.values, 0.8 + 0.1 - 0.5, 0.2 + 0.2 - 0.1
    close(r.servo_error.values[:, 0], (e + (rate + 6 * e) * t) * np.exp(-6 * t), INTEGRATED, "error")
    close(r.servo_rate.values[:, 0], (rate - 6 * (rate + 6 * e) * t) * np.exp(-6 * t), INTEGRATED, "rate of the error")
    close(r.servo_hold.values, np.full(len(t), cosine(a, z)), 1e-10, "hold")
    pull = -(12 * r.servo_rate.values[:, 0] + 36 * r.servo_error.values[:, 0]) / (a @ (z / INERTIA))
    close(r.servo_force.values[:, 0], pull, INTEGRATED, "force along the direction")


def test_the_hold_of_two_rows_is_that_of_the_weaker():
    """Forces act along the second and third slide: they supply the part of a row outside the first slide, and of two such
    rows that are not at right angles the second retains the sine of their angle."""
    Z, weight = np.eye(3)[1:], np.sqrt(INERTIA)
    for rows in ([[0, 1, 0], [0.6, 0, 0.8]], [[0.6, 0, 0.8], [0, 1, 0]], [[0, 1, 0.3], [0.2, 0.5, 1]]):
        demanded = np.array(rows) / weight
        given = demanded[:, 1:]
        (a, b), size = given, np.linalg.norm(given, axis=1) / np.linalg.norm(demanded, axis=1)
        sine = np.sqrt(1 - (a @ b) ** 2 / (a @ a) / (b @ b))
        wish = pf.holonomic("wish", lambda k, rows=rows: ca.DM(rows) @ k.q)
        r = pf.run(particles(pf.servo(wish, lambda k: ca.SX(ca.DM(Z)))), duration=0.0, **NUMPY)
        close(r.servo_hold.values, [min(size[0], sine * size[1])], 1e-10, f"hold of {rows}")


# Units.


def test_units_of_forces():
    """N along velocities in m/s and N m along those in rad/s, for each velocity and each input, on mixed joints."""
    bodies = [pf.body("cart", 1.0), pf.body("plate", 1.0, inertia=0.1), pf.body("rod", 1.0, inertia=0.1)]
    joints = [
        pf.joint("rail", "prismatic", "world", "cart"),
        pf.joint("table", "planar", "cart", "plate"),
        pf.joint("hinge", "revolute", "plate", "rod"),
    ]
    m = pf.actuate_all(pf.mechanism("mixed", bodies, joints, constraints=[pf.holonomic("c", lambda k: k.q[0])]))
    r = pf.run(m, duration=0.0, **NUMPY)
    units = ["N", "N", "N", "N m", "N m"]
    assert list(r.force_unit.values) == units
    assert list(r.u_unit.values) == units
    assert [v.removesuffix("/s") for v in r.v_unit.values] == ["m" if u == "N" else "rad" for u in units]
    assert r.reaction.dims[-1] == "velocity"


# Singular passages.


def recorded(regularity: list, rank: list) -> xr.Dataset:
    time = np.arange(len(rank)) * 0.1
    data = {"regularity": ("time", np.array(regularity, float)), "rank": ("time", np.array(rank, float))}
    return xr.Dataset(data | {"status": ((), 0)}, {"time": time, "row": ["a", "b"]})


def test_passages_are_minima_and_changes_of_rank():
    r = recorded([1, 0.5, 0.01, 0.4, 0.015, 0.015, 0.5, 0.001, 0.002, 1], [2, 2, 2, 2, 2, 2, 2, 1, 2, 2])
    found = pf.results.singular_passages(r)
    assert [round(p.time, 9) for p in found] == [0.2, 0.5, 0.7, 0.8]
    assert [p.regularity for p in found] == [0.01, 0.015, 0.001, 0.002]
    assert [p.ranks for p in found] == [(2, 2, 2), (2, 2, 2), (2, 1, 2), (1, 2, 2)]
    assert [round(p.time, 9) for p in pf.results.singular_passages(r, near=0.005)] == [0.7, 0.8]
    assert pf.results.singular_passages(recorded([0.001, 1, 0.001], [2, 2, 2])) == []  # a minimum at an end does not count


def test_passages_of_a_run_are_where_the_crank_stands_upright():
    m = slider_crank()
    r = pf.run(m, [0.3, -0.6], [8.0, -16.0], duration=1.0, step=1e-3)
    found = pf.results.singular_passages(r)
    turns = r.q.values[:, 0] / np.pi - 0.5
    assert len(found) == int(np.floor(turns[-1]) - np.floor(turns[0])) >= 2
    for p in found:
        at = float(r.q.sel(time=p.time)[0]) / np.pi - 0.5
        speed = float(abs(r.v.sel(time=p.time)[0])) * 1e-3 / np.pi
        assert abs(at - round(at)) <= speed


def test_passages_need_one_run_with_constraints():
    two = pf.run(four_bar(), FOUR_BAR_START, np.zeros((2, 3)), duration=2e-3, **NUMPY)
    for result in (two, pf.run(pendulum(), duration=2e-3, **NUMPY)):
        with pytest.raises(pf.ModelError, match="one run of a mechanism with constraints"):
            pf.results.singular_passages(result)
    assert pf.results.singular_passages(two.isel(run=1)) == []


# Where time begins.


def driven() -> pf.Mechanism:
    return pendulum().with_(constraints=[pf.holonomic("drive", lambda k: k.joint("pivot") - 0.4 * ca.sin(3 * k.t))])


def test_start_is_the_time_of_the_first_state():
    """Constraints, outputs and the time axis begin at `start`: the state is put onto phi(q, start) = 0."""
    r = pf.run(driven(), [0.3], duration=0.01, start=0.7, outputs={"clock": lambda k: k.t}, **NUMPY)
    close(r.time.values, 0.7 + 1e-3 * np.arange(11), ALGEBRA, "time")
    close(r.clock.values, r.time.values, ALGEBRA, "the clock of outputs")
    close(r.q.values[:, 0], 0.4 * np.sin(3 * r.time.values), 1e-10, "the angle that the drive wants")
    close(r.v.values[:, 0], 1.2 * np.cos(3 * r.time.values), 1e-10, "and its rate")


def test_a_run_continues_where_another_ended():
    """From the state at 0.05 s with start=0.05 the rest of the run is the same, including the law and the input series."""
    m = pendulum(damping=0.2)
    law = control.projected(
        control.joints("pivot"), control.function_of_time(lambda t: [ca.sin(5 * t)], 1), stiffness=9, damping=6
    )
    whole = pf.run(m, [0.2], [0.5], duration=0.1, control=law, **NUMPY)
    rest = pf.run(m, whole.q.values[50], whole.v.values[50], duration=0.05, start=0.05, control=law, **NUMPY)
    close(rest.q.values, whole.q.values[50:], 1e4 * ALGEBRA, "q under a law of time")
    close(rest.u.values, whole.u.values[50:], 1e4 * ALGEBRA, "u under a law of time")
    u = np.random.default_rng(0).normal(size=(11, 1))
    free = pf.run(m, [0.2], [0.5], duration=0.1, u=u, u_step=0.01, **NUMPY)
    later = pf.run(m, free.q.values[50], free.v.values[50], duration=0.05, start=0.05, u=u[5:], u_step=0.01, **NUMPY)
    close(later.q.values, free.q.values[50:], 1e4 * ALGEBRA, "a series begins with the run")


def test_a_stop_is_reported_in_the_time_of_the_run():
    m = pendulum(damping=-500.0)  # the gain makes the state grow beyond its limit
    stops = [float(pf.run(m, [0.1], [1.0], duration=0.5, start=s, **NUMPY).stopped) for s in (0.0, 2.0)]
    assert 0 < stops[0] < 0.5
    close(stops[1] - 2.0, stops[0], 1e-9, "stopped")


# Names.


def test_variables_and_dimensions_of_a_result_are_no_names_for_outputs():
    """With limits, series, parameters and runs that cannot start, each variable and dimension is a signal or reserved."""
    length = pf.Parameter("length", 1.0, "m")
    reach = pf.holonomic("reach", lambda k: ca.cos(k.q[0]) + length - 1.5)
    joint = pf.joint("pivot", "revolute", "world", "rod", axis=(0, 1, 0), limits=(-0.1, 0.1))
    rod = [pf.body("rod", 1.0, com=(0, 0, -1), inertia=0.1)]
    given = {"actuators": [pf.actuator("motor", "pivot", limits=(-1, 1))], "parameters": [length]}
    m = pf.mechanism("held", rod, [joint], constraints=[reach], **given)
    lengths = {"length": [0.5, 1.0, 9.0]}  # the first run starts where its row is lost, the last one cannot start
    with pytest.warns(pf.RunWarning):
        r = pf.run(m, {}, duration=2e-3, parameters=lengths, u=np.full((3, 1), 3.0), u_step=1e-3, **NUMPY)
    names = set(map(str, r.variables)) | set(map(str, r.dims))
    assert names - set(standard(m, True)) <= RESERVED
    assert {"reason", "limit_excess", "input_time", "sample_time", "p_unit", "entrance"} <= names
