"""Numbers of lines, losses and vehicle parts that parameters of a run put out of range."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pfaffian as pf
from pfaffian.errors import ModelError

F = pf.forces
X = pf.Parameter("x", 0.3)
LINE = F.path([("world", (0.5, 0, 2)), ("load", (0, 0, 0))])
ROUND = F.path([("world", (0.9, 0, 2)), F.guide("world", X, axis=(0, 1, 0), centre=(0, 0, 1)), ("load", (0, 0, 0))])
ON_DRUM = F.path([("world", (0.5, 0, 2)), ("load", (0, 0, 0))], drums={"lift": X})
FLAT = F.road([0.0], x=[0.0])
MADE: dict[str, tuple[Callable[[], dict[str, Any]], float, str]] = {
    "a coefficient": (lambda: {"forces": [F.guide_friction("rub", "lift", X)]}, -0.1, "force 'rub'.*coefficient -0.1 must"),
    "static friction": (
        lambda: {"forces": [F.guide_friction("rub", "lift", X, static=0.4)]}, 0.5, "static friction less sliding friction -0.1",
    ),
    "an efficiency": (lambda: {"forces": [F.gear_loss("head", "lift", X)]}, 1.25, "efficiency 1.25 must be above 0 and at"),
    "no efficiency": (lambda: {"forces": [F.gear_loss("head", "lift", X)]}, 0.0, "efficiency 0 must be above"),
    "a cylinder": (lambda: {"forces": [F.path_spring("s", ROUND, stiffness=1)]}, 0.0, "the cylinder on 'world' 0 must"),
    "a drum": (lambda: {"actuators": [F.winch("w", ON_DRUM)]}, -0.1, "actuator 'w'.*radius of the drum on 'lift' -0.1 must"),
    "a rest length": (lambda: {"forces": [F.path_spring("s", LINE, stiffness=1, rest=X)]}, -1.0, "rest -1 must not"),
    "a cable": (lambda: {"constraints": [pf.constraints.taut_cable("c", LINE, length=X)]}, -1.0, "constraint 'c'.*length -1"),
    "a tyre": (lambda: {"forces": [F.road_tyre("t", "load", 0.3, road=FLAT, vertical=1e4, friction=X)]}, -1.0, "friction -1"),
    "a tyre's speed": (
        lambda: {"forces": [F.road_tyre("t", "load", 0.3, road=FLAT, vertical=1e4, speed=X)]}, -1.0, "'t'.*speed -1 must",
    ),
    "a rod": (
        lambda: {"forces": [F.cylinder("c", "world", "load", bore=0.4, rod=X, stroke=(1, 2), stiffness=1)]}, 0.5,
        "compound 'c'.*bore less rod -0.1 must be",
    ),
    "the oil of a cylinder": (
        lambda: {"forces": [F.cylinder("c", "world", "load", bore=0.4, viscous=X, stroke=(1, 2), stiffness=1)]}, -2.0,
        "compound 'c'.*viscous -2 must not",
    ),
    "a bush": (
        lambda: {"forces": [F.bush("b", "world", "load", axis=(1, 1, 0), radial=X, axial=9, torsional=0, cardanic=0)]}, -2.0,
        "compound 'b'.*radial -2 must be above",
    ),
    "a bush that turns": (
        lambda: {"forces": [F.bush("b", "world", "load", axis=(1, 1, 0), radial=1, axial=9, torsional=X, cardanic=0)]}, -2.0,
        "compound 'b'.*torsional -2 must not",
    ),
    "a pose spring": (
        lambda: {"forces": [F.pose_spring("s", "world", "load", F.pseudo_matrix(X))]}, -2.0, "force 's'.*stiffness 1, 1 -",
    ),
    "a seed": (lambda: {"forces": [F.drag("d", "load", 1, wind=F.gust(intensity=1, seed=X))]}, 1.5, "1.5 must be a whole"),
    "a seed below zero": (
        lambda: {"forces": [F.drag("d", "load", 1, wind=F.gust(intensity=1, seed=X))]}, -1.0, "force 'd'.*seed of the gust -1",
    ),
    "an area": (lambda: {"forces": [F.drag("d", "load", area=X)]}, -1.0, "force 'd'.*area times"),
    "dry friction": (lambda: {"forces": [F.joint_friction("f", "lift", X)]}, -1.0, "force 'f'.*sliding friction -1 must"),
    "a rebound": (lambda: {"forces": [F.stop("s", "lift", 0, 1, impact=X)]}, 1.5, "restitution, 1.5 must be from 0 to 1"),
    "a stop": (lambda: {"forces": [F.stop("s", "lift", 0, 1, stiffness=X)]}, -1.0, "compound 's'.*stiffness -1 must"),
}  # fmt: skip


def press(**parts: Any) -> pf.Mechanism:
    lift = pf.joint("lift", "prismatic", "world", "load")
    return pf.mechanism("press", [pf.body("load", 2.0)], [lift], parameters=[X], **parts)


@pytest.mark.parametrize("name", MADE)
def test_numbers_out_of_range_are_refused_with_their_run(name: str) -> None:
    make, wrong, words = MADE[name]
    m = press(**make())
    good = 2.0 if "seed" in name else 0.3
    values = np.array([good, good, wrong, good])
    with pytest.raises(ModelError, match=rf"in run 2 \(x = {wrong:g}\)"):
        pf.run(m, [0.2], parameters={"x": values}, duration=0.1, backend="interpreter")
    with pytest.raises(ModelError, match=words):
        pf.assemble(m, [0.2], parameters={"x": wrong}, backend="interpreter")


def test_numbers_within_their_range_run() -> None:
    """The friction of each run is its own, zero too."""
    rail = pf.joint("lift", "prismatic", "world", "load", axis=(1, 0, 0))
    m = press(forces=[F.guide_friction("rub", "lift", X)]).with_(joints=[rail])
    r = pf.run(m, v=[2.0], parameters={"x": [0.0, 0.1]}, duration=0.05, step=1e-3, error=False, backend="numpy")
    assert r.v[:, -1, 0].values == pytest.approx([2.0, 2.0 - 0.1 * 9.81 * 0.05], abs=1e-6)


def test_every_door_refuses_them() -> None:
    m = press(forces=[F.guide_friction("rub", "lift", X)], actuators=[pf.actuator("motor", "lift")])
    given: dict[str, Any] = {"parameters": {"x": -0.1}}
    doors: tuple[Callable[[], Any], ...] = (
        lambda: pf.forward_dynamics(m, [0.2], **given),
        lambda: pf.inverse_dynamics(m, [0.2], [0.0], [0.0], **given),
        lambda: pf.reaction_wrench(m, ["lift"], [0.2], **given),
        lambda: pf.linearise(m, [0.2], **given),
        lambda: pf.mass_matrix(m, [0.2], **given),
    )
    for door in doors:
        with pytest.raises(ModelError, match=r"force 'rub'.*coefficient -0\.1 must not be below zero"):
            door()
