"""The same machine in other units of length, from nanometres to gigametres, and far from the origin, has the same motion."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest

import pfaffian as pf
from pfaffian.terms.lengths import default_length, loop_length, machine_length
from tests.tolerance import close

ROUNDED = 1e-12
"""Difference of angles, and of slides in their unit, after 50 steps: units that are no powers of two cause rounding."""

Y = (0, 1, 0)


def four_bar(unit, closed: bool = True, parameters=()) -> pf.Mechanism:
    """A four-bar with sides of 0.3 to 0.9 units, closed by five rows of rank two or by a function."""
    lengths = {"crank": 0.3, "coupler": 0.8, "rocker": 0.7}
    bodies = [pf.body(n, 1 + l, com=(l / 2 * unit, 0, 0), inertia=l * l / 6 * unit**2) for n, l in lengths.items()]
    joints = [
        pf.joint("a", "revolute", "world", "crank", axis=Y),
        pf.joint("b", "revolute", "crank", "coupler", axis=Y, placement=(0.3 * unit, 0, 0)),
        pf.joint("d", "revolute", "world", "rocker", axis=Y, placement=(0.9 * unit, 0, 0)),
    ]
    ends = (0.8 * unit, 0, 0), (0.7 * unit, 0, 0)
    if closed:
        cut = pf.closure("c", "revolute", "coupler", "rocker", axis=Y, placement_a=ends[0], placement_b=ends[1])
    else:
        cut = pf.holonomic("c", lambda k: (k.position("coupler", ends[0]) - k.position("rocker", ends[1]))[[0, 2]])
    gravity = (0, 0, -9.81 * unit)
    return pf.mechanism("four-bar", bodies, joints, constraints=[cut], gravity=gravity, parameters=parameters)


def slider_crank(unit) -> pf.Mechanism:
    """A machine with angles and a slide in the same rows."""
    bodies = [
        pf.body("crank", 1.0, com=(0.15 * unit, 0, 0), inertia=0.01 * unit**2),
        pf.body("rod", 1.5, com=(0.4 * unit, 0, 0), inertia=0.05 * unit**2),
        pf.body("slider", 2.0),
    ]
    joints = [
        pf.joint("a", "revolute", "world", "crank", axis=Y),
        pf.joint("b", "revolute", "crank", "rod", axis=Y, placement=(0.3 * unit, 0, 0)),
        pf.joint("s", "prismatic", "world", "slider", axis=(1, 0, 0)),
    ]
    pin = pf.closure("pin", "revolute", "rod", "slider", axis=Y, placement_a=(0.8 * unit, 0, 0))
    return pf.mechanism("slider-crank", bodies, joints, constraints=[pin], gravity=(0, 0, -9.81 * unit))


def welded_pair(unit) -> pf.Mechanism:
    """Two free bodies, with rows of lengths and rows of angles."""
    inertia = np.array([0.1, 0.2, 0.15]) * unit**2
    bodies = [pf.body(n, mass, com=(0.1 * unit, 0.2 * unit, 0), inertia=list(inertia)) for n, mass in (("A", 1.0), ("B", 2.0))]
    joints = [pf.joint(n.lower(), "free", "world", n) for n in "AB"]
    weld = pf.closure("weld", "weld", "A", "B", placement_a=pf.pose((0.5 * unit, 0, 0), rpy=(0.1, 0.2, 0.3)),
                      placement_b=(0, -0.5 * unit, 0.2 * unit))  # fmt: skip
    return pf.mechanism("welded pair", bodies, joints, constraints=[weld], gravity=(0, 0, -9.81 * unit))


def disk(unit) -> pf.Mechanism:
    """A rolling disk, with rows of velocities."""
    body = pf.body("disk", 1.0, inertia=[x * unit**2 for x in (0.1, 0.2, 0.1)])
    roll = pf.rolling.disk("roll", "disk", 0.5 * unit, axis=Y)
    return pf.mechanism(
        "disk", [body], [pf.joint("f", "free", "world", "disk")], constraints=[roll], gravity=(0, 0, -9.81 * unit)
    )


def particle(unit) -> pf.Mechanism:
    """A particle on a circle by a function in square lengths; no body has a length."""
    joints = [
        pf.joint("x", "prismatic", "world", "slide", axis=(1, 0, 0)),
        pf.joint("z", "prismatic", "slide", "bob"),
    ]
    rod = pf.holonomic("rod", lambda k: (ca.sumsqr(k.position("bob")) - unit**2) / 2)
    bodies = [pf.body("slide"), pf.body("bob", 1.0)]
    return pf.mechanism("particle", bodies, joints, constraints=[rod], gravity=(0, 0, -9.81 * unit))


def two_particles(unit) -> pf.Mechanism:
    """Two particles on crossing rails, with a rod between them. y = 0 is singular, so the start has to be searched for."""
    joints = [pf.joint("x", "prismatic", "world", "A", axis=(1, 0, 0)), pf.joint("y", "prismatic", "world", "B")]
    rod = pf.closure("rod", "distance", "A", "B", length=unit)
    bodies = [pf.body("A", 1.0), pf.body("B", 2.0)]
    return pf.mechanism("two particles", bodies, joints, constraints=[rod], gravity=(0, 0, -9.81 * unit))


START = {
    "four-bar": (four_bar, lambda unit: {"a": -0.35}, None),
    "four-bar by a function": (lambda unit: four_bar(unit, closed=False), lambda unit: {"a": -0.35}, None),
    "slider-crank": (slider_crank, lambda unit: {"a": 0.6}, None),
    "welded pair": (welded_pair, lambda unit: {"a.x": 0.1 * unit}, {"a.wx": 1.0, "a.wz": 2.0}),
    "disk": (disk, lambda unit: [0, 0, 0.5 * unit, 0.1, 0, 0, 1], [0, 0, 0, 0.3, 3.0, 0]),
    "particle": (particle, lambda unit: [unit, 0.0], None),
    "two particles": (two_particles, lambda unit: {"x": 0.6 * unit}, None),
}


def moved(name: str, unit: float):
    """q in units, rank, regularity, and the violation in units."""
    machine, q, v = START[name]
    m = machine(unit)
    r = pf.run(m, q(unit), v, duration=0.15, step=3e-3, every=10, backend="interpreter")
    assert int(r.status) == 0
    slides = np.where([x == "m" for x in m.q_units], unit, 1.0)
    return r.q.values / slides, r["rank"].values, r.regularity.values, float(r.violation.max()) / max(unit, unit**2)


@pytest.mark.filterwarnings("ignore:q was off")
@pytest.mark.parametrize("name", START)
def test_units_of_length_change_nothing(name):
    q, rank, regularity, violation = moved(name, 1.0)
    assert violation < 1e-12
    for unit in (1e-9, 1e-3, 1e3, 1e9) if name in ("four-bar", "slider-crank") else (1e-9, 1e9):
        other = moved(name, unit)
        close(other[0], q, ROUNDED, f"{name} in units of {unit} m", 1.0)
        assert (other[1] == rank).all()
        # A particle gives no typical length for its row.
        assert name == "particle" or np.abs(other[2] - regularity).max() < ROUNDED, f"regularity of {name} in units of {unit} m"
        assert other[3] < max(1e-12, 1e-15 / min(unit, 1.0))  # angles have no unit


@pytest.mark.filterwarnings("ignore:.*inertia so far off")
@pytest.mark.parametrize("closed", [True, False])
def test_lengths_that_are_parameters(closed):
    """One kernel serves machines of 1e-9 to 1e9 m."""
    unit = pf.Parameter("unit", 1.0, "m")
    m = four_bar(unit.symbol, closed, [unit])
    sizes = [1.0, 1e-9, 1e-5, 1e5, 1e9]
    r = pf.run(
        m, {"a": -0.35}, parameters={"unit": sizes}, duration=0.15, step=3e-3, every=10, record="all", backend="interpreter"
    )
    assert (r.status == 0).all() and (r["rank"] == 2).all()
    close(r.q.values, np.broadcast_to(r.q.values[:1], r.q.shape), ROUNDED, "sizes of a four-bar", 1.0)
    assert (r.violation.max("time").values < 1e-12 * np.array(sizes)).all()


def test_a_small_machine_that_leaves_its_constraints_stops():
    """Without correction a four-bar of 1 nm drifts off by a fraction of its size, and stops as one of 1 m does."""
    stops = []
    for unit in (1.0, 1e-9):
        with pytest.warns(pf.RunWarning, match="violation above the limit"):
            r = pf.run(
                four_bar(unit), {"a": -0.35}, duration=1.0, step=1e-2, scheme=pf.Scheme(corrections=0), backend="interpreter"
            )
        stops.append(float(r.stopped))
    assert stops[0] == stops[1]


def test_a_state_that_is_off_by_a_fraction_of_a_small_machine_is_refused():
    m = four_bar(1e-9)
    with pytest.raises(pf.ModelError, match="off the constraints"):
        pf.inverse_dynamics(m, {"a": 0.3}, {}, np.zeros(3))


def test_welded_bodies_in_orbit():
    """At 4.2e7 m from the origin rounding alone is 1e-8 m; an error of a metre is still detected."""
    m, random = welded_pair(1.0), np.random.default_rng(0)
    q = np.array([pf.random_configuration(m, random) for _ in range(60)])
    q[:, :3] += 4.2e7 / np.sqrt(3) * random.normal(size=(60, 3))
    q[:, 7:10] += q[:, :3]
    found = pf.assemble(m, q, backend="numpy")
    assert np.isfinite(found.q).all()
    assert found.residual.max() < 1e-6


def test_an_error_beyond_rounding_far_away_is_refused():
    body, pin = pf.body("A", 1.0, inertia=1.0), pf.joint("a", "revolute", "world", "A", placement=(4.2e7, 0, 0))
    tie = pf.coincide("held", "world", (4.2e7 + 1e-3, 0, 0), "A", (0, 0, 0))
    m = pf.mechanism("stuck", [body], [pin], constraints=[tie])
    with pytest.raises(pf.RunError, match="held"):
        pf.assemble(m, backend="numpy")


def pair(kind: str, at: float = 0.0, **number: float) -> pf.Mechanism:
    """Two point masses that slide along all axes from a point `at` metres from the origin, with one closure."""
    bodies = [pf.body(name, 1.0) for name in "ab"]
    joints = [pf.joint(f"to {name}", "translation", "world", name, placement=(at, 0, 0)) for name in "ab"]
    return pf.mechanism("pair", bodies, joints, constraints=[pf.closure("rod", kind, "a", "b", **number)], gravity=(0, 0, 0))


@pytest.mark.parametrize(("kind", "number", "long"), [("distance", {"length": 3.0}, 3.0), ("helical", {"pitch": -2.0}, 2.0)])
def test_a_rod_or_a_pitch_is_a_length_where_bodies_are_points(kind, number, long):
    m = pair(kind, **number)
    assert default_length(m) == long and float(loop_length(m, m.ideal[0])) == long
    assert machine_length(m, closed=False).is_zero()


@pytest.mark.parametrize(("kind", "long"), [("revolute", 3.0), ("prismatic", 0.0)])
def test_the_lever_of_a_hinge_is_a_length_and_that_of_a_slide_is_not(kind, long):
    """A point mass 3 m from the origin of its body, where the joint is."""
    m = pf.mechanism("lever", [pf.body("a", 1.0, com=(3, 0, 0))], [pf.joint("to a", kind, "world", "a")])
    assert default_length(m) == pytest.approx(long, abs=1e-12)


def test_an_error_that_is_large_for_a_rod_is_refused_at_any_distance():
    """The error is a hundredth of 3 mm, which is negligible relative to the kilometre to the origin."""
    m = pair("distance", at=1000.0, length=3e-3)
    q = np.array([0, 0, 0, 3.03e-3, 0, 0])
    with pytest.raises(pf.ModelError, match="off the constraints"):
        pf.inverse_dynamics(m, q, np.zeros(6), np.zeros(6))
