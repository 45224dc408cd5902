"""Decisions taken at random states: the same for a machine in any units, and told where they are close."""

from __future__ import annotations

import warnings
from dataclasses import replace

import casadi as ca
import numpy as np
import pytest

import pfaffian as pf
from pfaffian import control
from pfaffian.control.full_actuation import without_motor
from pfaffian.control.motors import independent_motors
from pfaffian.dynamics.loop_regularity import redundant
from pfaffian.errors import collected
from pfaffian.model.pose import Pose
from pfaffian.terms.generic_states import ZERO, at_generic_states, generic_states, rank, vanishing
from pfaffian.terms.loops import closed
from pfaffian.terms.terms import shared, typical
from tests import linkages
from tests.random_mechanisms import random_tree
from tests.tolerance import close

SCALES = [(1e-6, 1.0), (1e6, 1.0), (1.0, 1e-6), (1.0, 1e6), (1e-3, 1e6)]
"""Factors of all lengths and of all masses."""

ON_CONSTRAINTS = 1e-11
"""Residuals of random states, lengths beside that of the machine: where rounding stops Newton's steps on a loop of six."""


def in_units(m: pf.Mechanism, length: float, mass: float) -> pf.Mechanism:
    """A machine of bodies, joints without springs, and closures, with all lengths and masses multiplied."""
    at = lambda X: Pose(X.R, X.p * length)  # noqa: E731
    bodies = [replace(b, mass=b.mass * mass, com=b.com * length, inertia=b.inertia * mass * length**2) for b in m.bodies]
    joints = [replace(j, placement=at(j.placement), child_placement=at(j.child_placement)) for j in m.joints]
    loops = [
        replace(c, placement_a=at(c.placement_a), placement_b=at(c.placement_b), number=c.number * length)
        for c in m.constraints
    ]
    return m.with_(bodies=bodies, joints=joints, constraints=loops, gravity=np.array(ca.DM(m.gravity)).ravel() * length)


def tree(seed: int, kinds: list[str]) -> pf.Mechanism:
    m = random_tree(np.random.default_rng(seed), kinds, [-1, 0, 1, 1, 0][: len(kinds)])
    plain = [replace(j, stiffness=0 * j.stiffness, damping=0 * j.damping, armature=0 * j.armature) for j in m.joints]
    return m.with_(joints=plain, forces=[])


MACHINES = {
    "Bennett": lambda: linkages.linkage(linkages.bennett(1.0, 1.3, 0.5)),
    "Goldberg": lambda: linkages.linkage(linkages.goldberg()),
    "Myard": lambda: linkages.linkage(linkages.myard()),
    "Bricard": lambda: linkages.linkage(linkages.bricard()),
    "Schatz": lambda: linkages.linkage(linkages.schatz()),
    "Sarrus": lambda: linkages.linkage(linkages.sarrus()),
    "parallelogram": lambda: linkages.linkage(linkages.parallelogram()),
    "storeys": lambda: linkages.storeys(2, np.eye(3)),
    "arm on a rail": lambda: tree(1, ["prismatic", "revolute", "spherical", "revolute"]),
    "free hull": lambda: tree(2, ["free", "revolute", "prismatic", "cylindrical", "revolute"]),
    "screws": lambda: tree(3, ["planar", "helical", "universal", "revolute"]),
}


def decisions(m: pf.Mechanism) -> tuple[object, ...]:
    """What is decided about a machine with all its motors, and with one left out."""
    full = pf.actuate_all(m)
    fewer = full.with_(actuators=full.actuators[1:])
    return (
        typical(m).dependent, closed(m), redundant(m), independent_motors(full), independent_motors(fewer), without_motor(full),
        without_motor(fewer), rank(at_generic_states(m, {"A": shared(m).A}, on_constraints=True)["A"]).answer,
    )  # fmt: skip


@pytest.mark.parametrize("name", MACHINES)
def test_units_of_length_and_mass_change_no_decision(name):
    m = MACHINES[name]()
    with collected() as told:
        expected = decisions(m)
        for length, mass in SCALES:
            assert decisions(in_units(m, length, mass)) == expected, (length, mass)
    assert not told


def test_one_motor_drives_a_linkage_whose_loop_closes_only_for_its_proportions():
    """Off its constraints a Bennett linkage cannot move at all, so that no motor would drive anything."""
    for name, moving in {"Bennett": 1, "Myard": 1, "Sarrus": 1, "storeys": 2}.items():
        m = pf.actuate_all(MACHINES[name]())
        assert independent_motors(m) == moving, name
        assert independent_motors(m.with_(actuators=m.actuators[:1])) == 1, name


def two_carts(ratio: float) -> pf.Mechanism:
    """Two carts on one rail, of which the second is `ratio` times as heavy, with a motor each."""
    bodies = [pf.body("one", 1.0, inertia=0.1), pf.body("two", ratio, inertia=0.1 * ratio)]
    rails = [pf.joint(f"rail of {b.name}", "prismatic", "world", b.name, axis=(1, 0, 0)) for b in bodies]
    return pf.actuate_all(pf.mechanism("carts", bodies, rails))


@pytest.mark.parametrize("ratio", [1e-12, 1e-6, 1.0, 1e6, 1e12])
def test_ratios_of_masses_change_no_decision(ratio):
    with collected() as told:
        assert independent_motors(two_carts(ratio)) == 2
        assert without_motor(two_carts(ratio)) == ""
    assert not told


def slide(apart: float) -> pf.Mechanism:
    """A table on a cross slide with two ropes that pull in directions which differ by `apart`."""
    bodies = [pf.body("carriage", 1.0, inertia=0.1), pf.body("table", 2.0, inertia=0.1)]
    joints = [pf.joint("x", "prismatic", "world", "carriage", axis=(1, 0, 0)),
              pf.joint("y", "prismatic", "carriage", "table", axis=(0, 1, 0))]  # fmt: skip
    ropes = [pf.forces.transmission(name, {"x": 1.0, "y": 1.0 + x}) for name, x in (("a", 0.0), ("b", apart))]
    return pf.mechanism("slide", bodies, joints, actuators=ropes)


@pytest.mark.parametrize("length", [1e-6, 1e6])
def test_motions_without_motor_are_named_alike_in_any_units(length):
    """A raft with one oblique thruster off its middle: slides and turns take part in the motions that it does not drive."""

    def raft(long: float) -> pf.Mechanism:
        push = pf.forces.thruster("push", "raft", axis=(3, 1, 0), point=(0.2 * long, 0.4 * long, 0))
        body = pf.body("raft", 2.0, inertia=0.3 * long**2)
        return pf.mechanism("raft", [body], [pf.joint("base", "planar", "world", "raft")], actuators=[push])

    assert without_motor(raft(length)) == without_motor(raft(1.0)) != ""


@pytest.mark.parametrize("length", [1e-6, 1e6])
def test_a_small_eccentric_moves_in_any_units(length):
    """A rod on a pin that is 1e-7 of its length off the shaft: its twist depends on the angle, however small it is."""

    def jacobian(long: float) -> np.ndarray:
        angle = pf.coordinates("shaft", ["a"], ["a_dot"], lambda q: [[1.0]])
        pin = lambda k: pf.pose((1e-7 * long * ca.cos(k.q[0]), 1e-7 * long * ca.sin(k.q[0]), 0))  # noqa: E731
        rod = pf.body("rod", 2.0, com=(long, 0, 0), inertia=0.1 * long**2)
        m = pf.mechanism("eccentric", [rod], [pf.edge("pin", "world", "rod", pin)], coordinates=[angle])
        return pf.jacobian(m, "rod", [0.3])[:3, 0] / (1e-7 * long)

    close(jacobian(length), jacobian(1.0), 1e-12, "twist of the rod, in eccentricities")


DIRECTIONS = [(0.5, True, None), (1e-6, True, None), (8e-9, True, "nonzero"), (8e-10, False, "zero"), (1e-12, False, None)]
"""How much the directions differ, whether both count as driven, and what is told."""


@pytest.mark.parametrize(("apart", "driven", "words"), DIRECTIONS)
def test_a_close_decision_is_told(apart, driven, words):
    with collected() as told:
        assert (without_motor(slide(apart)) == "") is driven
    assert len(told) == (words is not None)
    assert words is None or (f"counted as {words}" in told[0] and "'slide'" in told[0])


@pytest.mark.parametrize("length", [1e-6, 1.0, 1e6])
def test_random_states_have_the_size_of_the_machine_and_satisfy_its_constraints(length):
    m = in_units(MACHINES["Schatz"](), length, 1.0)
    T = shared(m)
    off = ca.Function("off", [T.q, T.v, T.t, m.p_symbols], [T.rows.phi, T.rows.eta])
    unit = np.where([row.startswith("v") for row in m.constraints[0].holds.rows], length, 1.0)
    for state in generic_states(m, on_constraints=True):
        for x in off(*state):
            assert (np.abs(np.array(x)).ravel() < ON_CONSTRAINTS * unit).all()
        assert np.abs(state.v).max() > 1e-3
    free = in_units(MACHINES["free hull"](), length, 1.0)
    for state in generic_states(free):
        assert 1e-3 < np.abs(state.q[:3]).max() / length < 10


def test_what_vanishes_is_judged_beside_its_size():
    x = np.array([[1e-12, 1e-12, 0.0, 1.0], [0.0, 0.0, 0.0, 1.0]])
    assert vanishing(x, np.array([1.0, 1e-12, 0.0, 1e12])).answer.tolist() == [True, False, True, True]
    assert vanishing(x, 1.0).margin == pytest.approx(ZERO / 1e-12)


def test_planar_outputs_are_decided_whatever_the_units():
    """A cart of micrometres tilted out of the plane is refused its planar pose, and one in the plane keeps it."""
    gains = {"damping": 1.0, "stiffness": 1.0}
    for tilt in (0.0, 1e-3):
        for length in (1e-6, 1.0, 1e6):
            place = pf.pose(rpy=(tilt, 0, 0))
            m = pf.mechanism(
                "cart", [pf.body("cart", 1.0, inertia=0.1)], [pf.joint("base", "planar", "world", "cart", placement=place)]
            )
            m = pf.actuate_all(in_units(m, length, 1.0))
            law = control.concurrent([control.output("cart", "planar pose", np.eye(3), **gains)])
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                if tilt:
                    with pytest.raises(pf.ModelError, match="does not move in the x y plane"):
                        pf.run(m, duration=1e-3, step=1e-3, control=law, backend="interpreter")
                else:
                    assert pf.run(m, duration=1e-3, step=1e-3, control=law, backend="interpreter").status == 0
