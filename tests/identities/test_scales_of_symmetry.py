"""Symmetries and reductions are the same in any units and for any ratio of masses, or are told to be unclear."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import pfaffian as pf
from pfaffian.errors import collected
from pfaffian.evaluate.directions_at_states import planned
from tests.identities.test_scales_of_decisions import in_units
from tests.random_mechanisms import random_tree
from tests.tolerance import close

SCALES = [(1e-6, 1.0), (1e6, 1e-6), (1e-3, 1e6)]
"""Factors of all lengths and of all masses."""

SAME = 1e-8
"""Difference of two runs by steps of an error of 1e-10, after some seconds."""


def craft(hull=(100.0, 1.0), wheel=(1e-5, 1e-5, 2e-5), mass=0.02, at=(0.5, 0.0, 0.0), off=0.0) -> pf.Mechanism:
    """An even hull in flight, of this mass and inertia, with a wheel whose mass centre may be `off` its axis."""
    bodies = [pf.body("hull", hull[0], inertia=hull[1]), pf.body("wheel", mass, com=(off, 0, 0), inertia=wheel)]
    joints = [pf.joint("base", "free", "world", "hull"), pf.joint("spin", "revolute", "hull", "wheel", placement=at)]
    return pf.mechanism("craft", bodies, joints, gravity=(0, 0, 0))


def top() -> pf.Mechanism:
    """A heavy top whose axis is none of its frame."""
    R = Rotation.from_euler("xyz", (0.4, 0.3, -0.2)).as_matrix()
    body = pf.body("top", 0.9, com=0.25 * R[:, 2], inertia=R @ np.diag([0.013, 0.013, 0.021]) @ R.T)
    return pf.mechanism("top", [body], [pf.joint("peg", "spherical", "world", "top")])


def pair() -> pf.Mechanism:
    """Two bodies in flight that a ball joint connects, as a closure."""
    bodies = [pf.body("one", 3.0, com=(0.1, 0, 0.05), inertia=(0.1, 0.2, 0.25)), pf.body("two", 2.0, inertia=0.1)]
    grip = pf.coincide("grip", "one", (0.4, 0, 0), "two", (0, 0.3, 0.1))
    joints = [pf.joint(f"flight of {b.name}", "free", "world", b.name) for b in bodies]
    return pf.mechanism("pair", bodies, joints, constraints=[grip], gravity=(0, 0, 0))


def disc() -> pf.Mechanism:
    """A cart that slides anywhere on a disc that turns."""
    bodies = [pf.body("disc", 20.0, inertia=2.5), pf.body("cart", 4.0, com=(0.15, 0, 0), inertia=0.1)]
    joints = [pf.joint("turn", "revolute", "world", "disc"), pf.joint("plane", "planar", "disc", "cart")]
    return pf.mechanism("disc", bodies, joints)


def slope() -> pf.Mechanism:
    """A cart with an even and an uneven wheel on a slope."""
    bodies = [pf.body("cart", 4.0, com=(0.15, 0, 0), inertia=0.1), pf.body("even", 1.0, inertia=0.01)]
    bodies.append(pf.body("uneven", 1.0, com=(0.02, 0, 0), inertia=0.01))
    joints = [pf.joint("plane", "planar", "world", "cart", placement=pf.pose(rpy=(0.3, 0.2, 0)))]
    joints += [pf.joint(name, "revolute", "cart", name, placement=(0.2, y, 0)) for name, y in (("even", 0.1), ("uneven", -0.1))]
    return pf.mechanism("slope", bodies, joints)


def tree(seed: int, kinds: list[str]) -> pf.Mechanism:
    """A random tree without springs."""
    m = random_tree(np.random.default_rng(seed), kinds, [-1, 0, 1, 1][: len(kinds)])
    return m.with_(
        joints=[replace(j, stiffness=0 * j.stiffness, damping=0 * j.damping, armature=0 * j.armature) for j in m.joints],
        forces=[],
    )


FREE = {
    "a light wheel on an even hull": craft,
    "a wheel on its axis": lambda: craft(at=(0, 0, 0.3)),
    "a wheel off its axis": lambda: craft(off=2e-3),
    "top": top,
    "pair": pair,
    "disc": disc,
    "slope": slope,
    "hull with arms": lambda: tree(2, ["free", "revolute", "prismatic", "cylindrical"]),
    "rail": lambda: tree(1, ["prismatic", "revolute", "spherical", "revolute"]),
    "cross slides": lambda: tree(3, ["planar", "prismatic", "revolute"]),
}


def board(length: float, mass: float, tilt: float = 0.0) -> pf.Mechanism:
    """A board with a rotor on two blades that turn independently, perhaps on a slope."""
    size = mass * length**2
    bodies = [pf.body("board", 6.0 * mass, inertia=0.3 * size), pf.body("rotor", 0.1 * mass, inertia=0.4 * size)]
    joints = [pf.joint("ground", "planar", "world", "board", placement=pf.pose(rpy=(tilt, 0, 0)))]
    joints.append(pf.joint("rotor", "revolute", "board", "rotor"))
    for name, x in (("back", -0.35), ("front", 0.35)):
        bodies.append(pf.body(name, 0.1 * mass, inertia=0.05 * size))
        joints.append(pf.joint(name, "revolute", "board", name, placement=(x * length, 0, 0)))
    blades = [pf.rolling.knife_edge(f"{name} blade", name, (1, 0, 0)) for name in ("back", "front")]
    return pf.mechanism("board", bodies, joints, constraints=blades, gravity=(0, 0, -9.81 * length))


def rover(length: float, mass: float) -> pf.Mechanism:
    """A rover on two wheels that roll."""
    size, radius = mass * length**2, 0.1 * length
    bodies, joints = [pf.body("rover", 8.0 * mass, com=(0.05 * length, 0, 0), inertia=0.3 * size)], []
    joints.append(pf.joint("base", "planar", "world", "rover", placement=(0, 0, radius)))
    for side, y in (("left", 0.25), ("right", -0.25)):
        bodies.append(pf.body(side, 0.5 * mass, inertia=(0.004 * size, 0.004 * size, 0.006 * size)))
        place = pf.pose((0, y * length, 0), rpy=(-np.pi / 2, 0, 0))
        joints.append(pf.joint(side, "revolute", "rover", side, placement=place))
    wheels = [pf.rolling.wheel(side, side, radius) for side in ("left", "right")]
    return pf.mechanism("rover", bodies, joints, constraints=wheels, gravity=(0, 0, -9.81 * length))


ROLLING = {"board": board, "board on a slope": lambda length, mass: board(length, mass, 0.2), "rover": rover}


def decisions(m: pf.Mechanism) -> tuple[object, ...]:
    """What is decided about the symmetries and the reduction of a machine, without numbers of its units."""
    s = pf.reduction.symmetry(m)
    further = [[x.label for _, x in parts] for parts in s.further]
    broken = [(x.label, [_without_numbers(why) for why in causes]) for x, causes in s.broken]
    symmetries = s.group, further, broken, s.driven, s.unclear
    try:
        found, along = planned(m, None)
    except pf.ModelError as error:
        return *symmetries, _without_numbers(str(error))
    return *symmetries, found, along and along._replace(length=1.0, parts=tuple(x._replace(least=()) for x in along.parts))


def _without_numbers(words: str) -> str:
    """Words without the numbers in them."""
    return re.sub(r"[-+]?\d\S*|[\[\] ]+", " ", re.sub(r"\[[^\]]*\]", "", words))


@pytest.mark.parametrize("name", [*FREE, *ROLLING])
def test_units_of_length_and_mass_change_no_symmetry(name):
    make = ROLLING.get(name) or (lambda length, mass: in_units(FREE[name](), length, mass))
    with collected() as told:
        expected = decisions(make(1.0, 1.0))
        for length, mass in SCALES:
            assert decisions(make(length, mass)) == expected, (length, mass)
    assert not told


@pytest.mark.parametrize("name", ["a wheel off its axis", "slope"])
def test_momenta_of_a_giant_are_no_divergence(name):
    """In thousands of kilometres and tons, angular momenta are 1e18 times as large, and the motion is the same."""
    moves = []
    for long, heavy in ((1.0, 1.0), (1e6, 1e6)):
        m = in_units(FREE[name](), long, heavy)
        v = np.where(np.array(m.v_units) == "m/s", long, 1.0) * np.linspace(0.3, 0.5, m.nv)
        r = pf.run(pf.reduce(m), v=v, duration=0.05, step=5e-3, backend="interpreter")
        moves.append(r.q.values / np.where(np.array(m.q_units) == "m", long, 1.0))
    close(moves[1], moves[0], SAME, "q in lengths of the machine", scale=1.0)


def found(m: pf.Mechanism) -> tuple[list[list[str]], list[list[str]]]:
    """Labels of the parts of each further symmetry, and of each unclear one."""
    with collected():
        s = pf.reduction.symmetry(m)
    return [[x.label for _, x in parts] for parts in s.further], [[x.label for _, x in doubt.parts] for doubt in s.unclear]


SPIN = ["turning about z of 'spin'"]


@pytest.mark.parametrize("power", range(-12, 13, 3))
def test_a_wheel_of_any_size_keeps_its_spin(power):
    """Its inertia is up to 1e12 times smaller or larger than the hull's, and no symmetry mixes the motions of both."""
    small, large = 10.0 ** min(power, 0), 10.0 ** max(power, 0)
    symmetries, _ = found(craft(hull=(100 / large, 1 / large), wheel=(0.01 * small,) * 2 + (0.02 * small,), mass=0.2 * small))
    assert SPIN in symmetries
    assert all(not any("'spin'" in label for label in labels) for labels in symmetries if labels != SPIN)


@pytest.mark.parametrize("radius", [1e-2, 5e-3, 1e-4])
def test_a_wheel_lost_in_the_rounding_of_its_hull_is_told(radius):
    """A wheel of a tenth of a millimetre, half a metre from the middle: what changes its spin is computed from terms that are
    1e8 times as large."""
    m = craft(wheel=(1e-3 * radius**2,) * 3, mass=1e-3)
    symmetries, unclear = found(m)
    assert (SPIN in symmetries, SPIN in unclear) == (radius > 1e-3, radius < 1e-3)
    assert (6 in planned(m, None).found.conserved) is (radius > 1e-3)


ROUNDNESS = {0.0: ("x", "y", "z"), 1e-13: ("x", "y", "z"), 2e-10: ("y",), 2e-7: ("y",)}


@pytest.mark.parametrize("uneven", ROUNDNESS)
def test_a_ball_that_is_nearly_round(uneven):
    """Two of its inertias are equal; the third differs by a fraction, which is nothing, unclear or enough."""
    bodies = [pf.body("hull", 10.0, inertia=(1, 1.2, 1.5)), pf.body("ball", 1.0, inertia=(0.1, 0.1 * (1 + uneven), 0.1))]
    joints = [pf.joint("base", "free", "world", "hull"), pf.joint("s", "spherical", "hull", "ball", placement=(0.3, 0, 0))]
    m = pf.mechanism("nearly round", bodies, joints, gravity=(0, 0, 0))
    symmetries, unclear = found(m)
    assert symmetries == [[f"turning about {x} of 's' from the child's side"] for x in ROUNDNESS[uneven]]
    assert len(unclear) == (2 if uneven == 2e-10 else 0)
    _compare(m, [0.1, -0.2, 0.3, 0.4, 0.5, -0.6, 3.0, -2.0, 5.0], told=uneven == 2e-10)


@pytest.mark.parametrize("inertia", [3e-5, 3e-6, (3e-6, 3e-6, 5e-6)])
def test_a_light_wheel_on_an_even_hull_moves_as_in_full(inertia):
    """The hull is no part of the wheel's symmetry, however little of it that were."""
    m = craft(hull=(300.0, 2.0), wheel=inertia, mass=0.05, at=(0, 0.4, 0.1))
    _compare(m, [0.1, -0.2, 0.3, 0.4, 0.5, -0.6, 50.0])


def test_a_rotor_slightly_off_the_axis_of_a_large_hull_breaks_its_symmetry():
    """The hull of three tons could turn about the line to the rotor, were the rotor not off it by 0.8 mm. At rates near 1 that
    is 1e-10 of the hull's inertia, and it is told."""
    m = craft(hull=(3000.0, 3000.0), wheel=(1e-7,) * 3, mass=8e-4, off=8e-4)
    symmetries, unclear = found(m)
    assert symmetries == [] and ["turning about x of 'base' from the child's side"] in unclear
    _compare(m, [0.1, -0.2, 0.3, 0.4, 0.5, -0.6, 5.0], told=True)


def test_a_doubt_that_another_cause_settles_is_not_told():
    """A tether to the world breaks the hull's symmetry, so that the rotor's small effect on it does not matter."""
    m = craft(hull=(3000.0, 3000.0), wheel=(1e-7,) * 3, mass=8e-4, off=8e-4)
    tether = pf.spring("tether", "world", "hull", point_a=(0, 0, 2), point_b=(0.1, 0.2, 0.3), stiffness=5e3)
    assert found(m.with_(forces=[tether])) == ([], [])


def test_a_fast_wheel_breaks_the_symmetry_of_a_slow_hull():
    """At rates near 1 a wheel of 1e-11 of the hull's inertia changes nothing; it may turn 1e5 times as fast as the hull."""
    symmetries, unclear = found(craft(wheel=(1e-11,) * 3, mass=6e-7))
    assert symmetries == [SPIN] and ["turning about x of 'base' from the child's side"] in unclear


def _compare(m: pf.Mechanism, v: list[float], told: bool = False) -> None:
    """The reduced machine moves as the full one, and says so."""
    steps = {"duration": 2.0, "step": 2e-3, "every": 200, "backend": "interpreter", "error_bound": 1.0}
    with collected() as words:
        reduced = pf.run(pf.reduce(m), v=v, **steps)
    close(reduced.q, pf.run(m, v=v, **steps).q, SAME, "q", scale=1.0)
    assert float(reduced.reduction_error) < SAME and bool(words) is told


def test_symmetries_are_verified_on_the_motion(monkeypatch):
    """Whatever the null space claims, only motions whose momenta last are symmetries, and the others are told."""
    real, _ = found(craft(hull=(90.0, 0.9)))
    monkeypatch.setattr("pfaffian.evaluate.symmetry.without_effect", lambda effects, motions: (motions, []))
    symmetries, unclear = found(craft(hull=(91.0, 0.9)))
    assert symmetries == real == [SPIN]
    assert [labels for labels in unclear if "about x" in labels[0] or ("about y" in labels[0] and "'base'" in labels[0])] == [
        ["turning about x of 'base' from the child's side"],
        ["turning about y of 'base' from the child's side"],
    ]


@pytest.mark.parametrize(("stiffness", "clear"), [(1.0, True), (1e-7, True), (1e-13, False)])
def test_a_weak_spring_breaks_a_symmetry_or_is_told(stiffness, clear):
    spring = pf.spring("rubber", "hull", "wheel", point_a=(0.3, 0.1, 0), point_b=(0.05, 0, 0), stiffness=stiffness)
    symmetries, unclear = found(craft(wheel=(1e-3, 1e-3, 2e-3)).with_(forces=[spring]))
    assert symmetries == [] and (SPIN in unclear) is not clear


@pytest.mark.parametrize("tilt", [0.0, 1e-13, 1e-10, 1e-6])
def test_a_joint_that_can_nearly_do_a_motion_is_told(tilt):
    """A cart on a disc slides along y of the world, whatever the disc does, if both planes are parallel."""
    m = disc()
    tilted = replace(m.joints[1], placement=pf.pose(rpy=(tilt, 0, 0)))
    symmetries, unclear = found(m.with_(joints=[m.joints[0], tilted], gravity=(0, 0, 0)))
    along = ["moving along y of the world by 'plane'"]
    assert (along in symmetries, along in unclear) == (tilt < 1e-12, 1e-12 < tilt < 1e-8)
