"""Cylinders: forces by pressure and area, friction of the seals, ends of the stroke; and their pictures, as those of lines."""

from __future__ import annotations

import numpy as np
import pytest

import pfaffian as pf
from pfaffian.viewer.build import scene
from pfaffian.viewer.scene import states_of
from tests.tolerance import ALGEBRA, DERIVATIVE, close

F = pf.forces
SIZES = {"bore": 0.05, "rod": 0.03, "stroke": (0.6, 1.0), "stiffness": 1e6}


def press(**given) -> pf.Mechanism:
    """A load of 10 kg without weight on a vertical cylinder whose pins are z apart."""
    ram = F.cylinder("ram", "world", "load", **(SIZES | given))
    lift = pf.joint("z", "prismatic", "world", "load")
    return pf.mechanism("press", [pf.body("load", 10.0)], [lift], forces=[ram], actuators=F.pressures(ram), gravity=(0, 0, 0))


def test_pressures_act_on_the_piston_and_on_its_ring():
    found = pf.forward_dynamics(press(), [[0.8], [0.8]], u=[[2e5, 0], [0, 3e5]]).v_dot.ravel()
    piston, ring = np.pi * 0.05**2 / 4, np.pi * (0.05**2 - 0.03**2) / 4
    close(found, [2e5 * piston / 10, -3e5 * ring / 10], DERIVATIVE, "accelerations")


def test_a_cylinder_shows_its_sizes():
    shown = repr(F.cylinder("ram", "world", "load", **SIZES).of)
    assert shown == "<Cylinder: 'world' to 'load', bore 0.05 m, rod 0.03 m, from 0.6 m to 1 m>"


def test_seals_rub_against_the_motion_and_stops_push_back():
    m, v = press(friction=40.0, viscous=20.0, smooth=0.01, damping=0.5), np.array([0.3, -0.2, 0.0])
    rubbed = pf.forward_dynamics(m, np.full((3, 1), 0.8), v[:, None]).v_dot.ravel()
    close(rubbed, -(40 * v / np.hypot(v, 0.01) + 20 * v) / 10, DERIVATIVE, "friction")
    stopped = pf.forward_dynamics(m, [[0.59], [1.02]]).v_dot.ravel()
    close(stopped, [1e6 * 0.01 / 10, -1e6 * 0.02 / 10], DERIVATIVE, "stops")
    damped = pf.forward_dynamics(press(damping=2.0), [[0.59], [1.01], [1.01]], [[-1.0], [1.0], [-1.0]]).v_dot.ravel()
    close(damped, [3e3, -3e3, 0], DERIVATIVE, "damped stops")


def test_a_cylinder_runs_into_its_stop_and_keeps_its_energy():
    m = press()
    r = pf.run(m, [0.8], [1.0], duration=0.8, step=1e-4, scheme=pf.Scheme(integrator="rk4"), record=["q", "energy"], every=10)
    depth = np.sqrt(10.0 / 1e6)
    assert 0.6 - 1.01 * depth < r.q.values.min() < 0.6 < 1.0 < r.q.values.max() < 1.0 + 1.01 * depth
    close(r.energy.values, np.full(r.energy.shape, 5.0), 1e-4, "energy")


def drawn(m, r):
    return scene(m, states_of(m, r))


def test_its_picture_is_a_barrel_of_one_length_and_a_rod_that_slides_out():
    m = press()
    r = pf.run(m, [0.7], [0.5], duration=0.4, step=1e-3, record=["q", "v"], every=100)
    parts = [x for x in drawn(m, r).moving if x.name == "ram"]
    barrel, rod = (x.ends for x in parts)
    assert len(parts) == 2 and parts[0].radius > parts[1].radius == 0.015
    close(np.linalg.norm(barrel[:, 1] - barrel[:, 0], axis=1), np.full(len(barrel), 0.6), ALGEBRA, "barrel")
    close(rod[:, 0], barrel[:, 1], ALGEBRA, "the rod begins at the end of the barrel", 1.0)
    close(rod[:, 1, 2], r.q.values[:, 0], ALGEBRA, "and ends at the pin")


@pytest.mark.parametrize("kind", ["cylinder", "pulley", "sphere", "straight"])
def test_the_picture_of_a_line_is_as_long_as_the_line(kind):
    """Its chords lie on what it goes round, and their lengths add up to the length in the equations, but for the arc."""
    axis = None if kind == "sphere" else (0, 1, 0)
    turn = F.pulley("world", 0.2, axis=(0, -1, 0)) if kind == "pulley" else F.guide("world", 0.2, axis=axis)
    between = [] if kind == "straight" else [turn]
    line = F.path([("world", (0.3, 0, 0.8)), *between, ("load", (0, 0.1, 0))])
    spring, cable = F.path_spring("spring", line, stiffness=1.0), pf.constraints.taut_cable("cable", line, length=5.0)
    joint = pf.joint("x", "translation", "world", "load")
    m = pf.mechanism("line", [pf.body("load", 1.0)], [joint], forces=[spring], actuators=[F.winch("winch", line)])
    assert cable.phi.path == line
    r = pf.run(m, [0.1, 0, -0.7], duration=0.01, step=0.01, record=["q", "v"], outputs={"l": line.length})
    picture = drawn(m, r)
    for name in ("spring", "winch"):
        chords = [x for x in picture.moving if x.name == name]
        ends = np.array([x.ends[0] for x in chords])
        length = np.linalg.norm(ends[:, 1] - ends[:, 0], axis=1).sum()
        close(ends[1:, 0], ends[:-1, 1], ALGEBRA, "chords follow one another", 1.0) if len(ends) > 1 else None
        close(length, float(r.l[0]), 1e-3 if between else ALGEBRA, f"length of {name}")
        if between:
            middle = ends[1:-1, 0] if kind == "sphere" else ends[1:-1, 0][:, [0, 2]]
            close(np.linalg.norm(middle, axis=1), np.full(len(middle), 0.2), 1e3 * ALGEBRA, "points of the arc")
        if between and kind != "sphere":
            steps = np.diff(ends[1:, 0, 1])[:-1]
            assert steps[0] > 0
            close(steps, np.full(len(steps), steps[0]), 1e3 * ALGEBRA, "slope of the arc along the axis")
    assert picture.layers["lines"] and len([p for p in picture.parts if p.layer == "lines"]) == len(between)
