"""Symmetries and reductions are the same in any units and for any ratio of masses, or are told to be unclear."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import pfaffian as pf
from pfaffian.errors import collected
from pfaffian.evaluate.directions import planned
from tests.identities.test_scales_of_decisions import in_units
from tests.random_mechanisms import random_tree

SCALES = [(1e-6, 1.0), (1e6, 1.0), (1.0, 1e-6), (1.0, 1e6), (1e-3, 1e6)]
"""Factors of all lengths and of all masses."""

SAME = 1e-8
"""Difference of two runs by steps of an error of 1e-10, after some seconds."""


def craft(
    hull=(1.0, 1.0, 1.0), wheel=(1e-5, 1e-5, 2e-5), mass=0.02, at=(0.5, 0.0, 0.0), off=0.0, of_hull=100.0
) -> pf.Mechanism:
    """A hull in flight with a wheel of this mass and these inertias, whose mass centre may be `off` its axis."""
    bodies = [pf.body("hull", of_hull, inertia=hull), pf.body("wheel", mass, com=(off, 0, 0), inertia=wheel)]
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
