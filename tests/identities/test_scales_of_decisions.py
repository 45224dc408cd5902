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
from pfaffian.evaluate.directions_at_states import planned
from pfaffian.maths.margins import ZERO, rank, vanishing
from pfaffian.model.pose import Pose
from pfaffian.starts.branch import chosen_blocks
from pfaffian.terms.common_motion import common_motion
from pfaffian.terms.generic_states import at_generic_states, generic_states
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


@pytest.mark.parametrize(("name", "ratio"), [("Myard", 1e-12), ("storeys", 1e-12), ("Bricard", 1e12), ("screws", 1e12)])
def test_ratios_of_masses_in_loops_change_no_decision(name, ratio):
    """One body of a linkage is light or heavy beside the others: what its motors drive does not depend on it."""
    m = pf.actuate_all(MACHINES[name]())
    middle = len(m.bodies) // 2
    bodies = [replace(b, mass=b.mass * ratio, inertia=b.inertia * ratio) if i == middle else b for i, b in enumerate(m.bodies)]
    with collected() as told:
        for of in (m, m.with_(actuators=m.actuators[1:])):
            assert independent_motors(of.with_(bodies=bodies)) == independent_motors(of)
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


@pytest.mark.parametrize("pull", [1.0, 1e-11])
def test_a_rope_that_hardly_pulls_a_slide_drives_it(pull):
    """Without constraints the unit of each velocity is free, so that a small entry that is alone in its row counts."""
    ropes = [pf.forces.transmission("a", {"x": 1.0}), pf.forces.transmission("b", {"x": 1.0, "y": pull})]
    with collected() as told:
        assert independent_motors(slide(0.5).with_(actuators=ropes)) == 2
    assert not told


DIRECTIONS = [(0.5, True, None), (1e-6, True, None), (8e-9, True, "nonzero"), (8e-10, False, "zero"), (1e-12, False, None)]
"""How much the directions differ, whether both count as driven, and what is told."""


@pytest.mark.parametrize(("apart", "driven", "words"), DIRECTIONS)
def test_a_close_decision_is_told(apart, driven, words):
    for drives in (lambda m: without_motor(m) == "", lambda m: independent_motors(m) == 2):
        with collected() as told:
            assert drives(slide(apart)) is driven
        assert len(told) == (words is not None)
        assert words is None or (f"counted as {words}" in told[0] and "'slide'" in told[0])


def test_a_close_decision_in_a_run_is_told_by_each_run():
    """Two closures of one loop that are nearly the same one: a later run finds equations and steps in the store."""

    def crank(apart: float) -> pf.Mechanism:
        pins = [(0, 0, 0), (1, 0, 0), (1.5, 0, 0)]
        joints = [pf.joint(f"pin {i}", "revolute", "world" if i == 0 else f"rod {i - 1}", f"rod {i}", placement=pins[i])
                  for i in range(3)]  # fmt: skip
        ends = [pf.closure(name, "revolute", "rod 2", "world", placement_a=(1, 0, 0), placement_b=(x, 0, 0))
                for name, x in (("one", 1.2), ("two", 1.2 + apart))]  # fmt: skip
        return pf.mechanism("crank", [pf.body(f"rod {i}", 1.0, inertia=0.1) for i in range(3)], joints, constraints=ends)

    for m in (crank(3e-10), crank(3e-10)):
        with pytest.warns(pf.ModelWarning, match="whether 'one' and 'two' are the same closure is a close decision"):
            pf.run(m, duration=0.002, step=1e-3, backend="interpreter")


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


LENGTHS = (1e-6, 1.0, 1e6)
"""Factors of all lengths of the following machines, whose functions are written by hand."""


@pytest.mark.parametrize("long", LENGTHS)
def test_matrices_that_are_not_symmetric_are_refused_in_any_units(long):
    """The entries of one unit do not hide those of another, which are 1e-12 times as large."""
    unit = np.array([long] * 3 + [1.0])
    P = np.array([[0.4, 0.1, 0, 0.1], [0.2, 0.5, 0, 0], [0, 0, 0.3, 0], [0.1, 0, 0, 1.0]])
    with pytest.raises(pf.ModelError, match="symmetric"):
        pf.body("block", pseudo=P * np.outer(unit, unit))
    pf.body("block", pseudo=(P + P.T) * np.outer(unit, unit))
    K = 1e3 * np.diag([1.0] * 3 + [long**2] * 3)
    K[3, 4], K[4, 3] = 300 * long**2, 200 * long**2
    with pytest.raises(pf.ModelError, match="symmetric"):
        pf.joint("mount", "free", "world", "block", stiffness=K)
    pf.joint("mount", "free", "world", "block", stiffness=K + K.T)


@pytest.mark.parametrize("radius", [1e-6, 1.0, 7e6])
def test_a_track_bends_whatever_its_radius(radius):
    """The direction of an orbit is constant to 1e-12 within a metre, and is no constant."""
    arc = pf.coordinates("arc", ["s"], ["s_dot"], lambda q: [[1.0]], q_units="m")
    on_circle = lambda a: pf.pose((radius * ca.sin(a), radius * (1 - ca.cos(a)), 0))  # noqa: E731
    car = pf.edge("track", "world", "car", lambda k: on_circle(k.q[0] / radius))
    m = pf.mechanism("track", [pf.body("car", 1.0, inertia=0.1)], [car], coordinates=[arc])
    close(pf.jacobian(m, "car", [radius])[:2, 0], [np.cos(1), np.sin(1)], 1e-12, "direction after one radian")


@pytest.mark.parametrize("long", LENGTHS)
def test_rows_of_coordinates_of_any_units_are_independent(long):
    """A bead on a ring beside two geared wheels: one row in square metres, one in radians."""
    rows = lambda q: ca.vertcat(q[0] ** 2 + q[1] ** 2 - long**2, q[2] - 2 * q[3])  # noqa: E731
    K = lambda q: [[-q[1], 0], [q[0], 0], [0, 2], [0, 1]]  # noqa: E731
    units = ["m", "m", "rad", "rad"]
    c = pf.coordinates("c", ["x", "y", "a", "b"], ["w", "s"], K, phi=rows, start=[long, 0, 0, 0], q_units=units)
    bead = pf.edge("bead", "world", "bead", lambda k: pf.pose((k.q[0], k.q[1], 0)))
    m = pf.mechanism("bead", [pf.body("bead", 1.0)], [bead], coordinates=[c])
    close(pf.mass_matrix(m, [long, 0, 0, 0])[0, 0] / long**2, 1.0, 1e-12, "inertia")


@pytest.mark.parametrize("long", LENGTHS)
def test_velocities_may_be_chosen_in_any_units(long):
    """The speed of a rim of 1e-5 lengths instead of the angular velocity."""
    bodies = [pf.body("cart", 1.0), pf.body("wheel", 1.0, com=(long, 0, 0), inertia=long**2)]
    joints = [pf.joint("x", "prismatic", "world", "cart", axis=(1, 0, 0)), pf.joint("r", "revolute", "cart", "wheel")]
    rim = pf.velocities(lambda k: ca.diag(ca.vertcat(1, 1 / (1e-5 * long))), ["x", "rim"], "m/s")
    m = pf.mechanism("cart", bodies, joints, velocities=rim)
    close(pf.mass_matrix(m, [0.0, 0.0])[0, 0], 2.0, 1e-12, "mass")


@pytest.mark.parametrize("long", LENGTHS)
def test_kinks_are_told_apart_in_any_units(long):
    """Three stops that lie 1e-7 of a length apart."""
    bumps = lambda k: sum(ca.fmax(k.q[0] - i * 1e-7 * long, 0) ** 2 for i in (1, 2, 3))  # noqa: E731
    rail = pf.joint("x", "prismatic", "world", "cart", axis=(1, 0, 0))
    m = pf.mechanism("cart", [pf.body("cart", 2.0)], [rail], gravity=(0, 0, 0), forces=[pf.forces.potential("bumps", bumps)])
    r = pf.run(m, [0.0], [1e-6 * long], duration=0.5, accuracy=1e-6, backend="interpreter")
    assert pf.events(r).sizes["event"] == 3


@pytest.mark.parametrize("long", LENGTHS)
def test_branches_of_loops_with_slides_are_numbered_in_any_units(long):
    """A crank and its piston; what the slide and the hinges do to a row differs by the factor of the lengths."""
    bodies = [pf.body(n, 1.0, inertia=0.1) for n in ("crank", "rod", "piston")]
    hinge = {"axis": (0, 1, 0)}
    joints = [pf.joint("A", "revolute", "world", "crank", **hinge),
              pf.joint("B", "revolute", "crank", "rod", placement=(0.5, 0, 0), **hinge),
              pf.joint("S", "prismatic", "world", "piston", axis=(1, 0, 0))]  # fmt: skip
    pin = pf.closure("C", "revolute", "rod", "piston", placement_a=(1.7, 0, 0), placement_b=(0.1, 0, 0), **hinge)
    m = in_units(pf.mechanism("engine", bodies, joints, constraints=[pin]), long, 1.0)
    ((rows, columns),) = chosen_blocks(m, (True, False, False)) or ((),)
    assert (len(rows), columns) == (2, (1, 2))


def two_rows(apart: float) -> pf.Mechanism:
    """Three slides and two rows, which differ by `apart` of their length."""
    bodies = [pf.body(n, 1.0) for n in "xyz"]
    slides = [pf.joint(b.name, "prismatic", "world", b.name, axis=(1, 0, 0)) for b in bodies]
    by = lambda ratio: lambda k: k.joint("y") + ratio * k.joint("z") - ca.sin(k.joint("x"))  # noqa: E731
    rows = [pf.holonomic("one", by(1.0)), pf.holonomic("two", by(1.0 + apart))]
    return pf.mechanism("slides", bodies, slides, constraints=rows)


BRANCHES = [(0.0, False, ""), (4e-7, False, "counted as zero"), (1e-5, True, "counted as nonzero"), (0.1, True, "")]


@pytest.mark.parametrize(("apart", "numbered", "words"), BRANCHES)
def test_it_is_told_where_assemblies_are_hardly_on_branches(apart, numbered, words):
    with collected() as told:
        assert (chosen_blocks(two_rows(apart), (True, False, False)) is not None) == numbered
    assert bool(told) == bool(words) and all(words in x and "assemblies lie on branches" in x for x in told)


def test_it_is_told_where_a_row_hardly_holds_a_coordinate_of_a_branch():
    """The second of two rows holds the only coordinate that is not fixed by 1e-6 of its length."""
    slides = two_rows(0.0)
    rows = [pf.holonomic(n, lambda k, by=by: ca.sin(k.joint("x")) + k.joint("y") + by * k.joint("z"))
            for n, by in (("one", 1.0), ("two", 1e-6))]  # fmt: skip
    with collected() as told:
        assert chosen_blocks(slides.with_(constraints=rows), (True, True, False)) == (((0,), (2,)),)
    assert len(told) == 1 and "counted as zero" in told[0]


ELSEWHERE = [(0.0, 1, ""), (1e-5, 1, "counted as zero"), (1e-4, 2, "counted as nonzero"), (0.1, 2, "")]


@pytest.mark.parametrize(("apart", "rank", "words"), ELSEWHERE)
def test_derivatives_tell_where_the_rank_of_rows_is_hardly_decided(apart, rank, words):
    with collected() as messages:
        assert pf.derivatives(two_rows(apart), [0.0] * 3, backend="numpy").motion.rank == rank
    told = [x for x in messages if "the rank of the constraint rows at almost all states" in x]
    assert bool(told) == bool(words) and all(words in x for x in told)


@pytest.mark.parametrize(("apart", "words"), [(3e-9, ""), (1e-7, "counted as zero")])
def test_a_motor_drives_a_linkage_whose_numbers_are_rounded(apart, words):
    """Myard's linkage whose links are offset along a hinge: it moves within the tolerance of its rows, as its runs do."""
    c = linkages.myard()
    m = pf.actuate_all(linkages.linkage(c._replace(R=(apart, *c.R[1:]))))
    with collected() as messages:
        assert independent_motors(m) == 1
    told = [x for x in messages if "which motions the constraints leave" in x]
    assert len(told) == bool(words) and all(words in x for x in told)


@pytest.mark.parametrize(("apart", "told"), [(0.0, 0), (8e-9, 1), (1e-3, 0)])
def test_closures_that_are_nearly_the_same_are_told(apart, told):
    """A rod closed twice by the same ball, and by a second one that is `apart` lengths beside the first."""
    m = MACHINES["parallelogram"]()
    loop = m.constraints[0]
    at = Pose(loop.placement_b.R, loop.placement_b.p + np.full(3, apart))
    twice = m.with_(constraints=[loop, replace(loop, name="again", placement_b=at)])
    with collected() as words:
        assert closed(twice) == {0: 0, 1: 0 if not apart else 1}
    assert len(words) == told


@pytest.mark.parametrize("long", LENGTHS)
def test_a_prototype_is_refused_in_any_units(long):
    """The damping about the axis is a thousandth of what it is for slides, and negative."""
    pm = pf.forces.pseudo_matrix
    m = pf.mechanism("raft", [pf.body("raft", 2.0, inertia=long**2)], [pf.joint("base", "planar", "world", "raft")])
    pair = control.pair("raft", inertia=pm(1.0, moments=long**2), damping=np.diag([0.0, -1e-3 * long**2, 0, 1.0]))
    law = control.prototype_tracking([pair], control.set_point([0.0] * 3))
    with pytest.raises(pf.ModelError, match=r"damping is negative, -.*, along a motion of base\.wz"):
        pf.run(pf.actuate_all(m), duration=0.01, step=1e-2, control=law, backend="interpreter")


def toed_in(angle: float, long: float = 1.0) -> pf.Mechanism:
    """A cart with an arm, on two wheels at its sides whose axles make this angle with the line between them."""
    bodies = [pf.body("cart", 2.0, inertia=0.1 * long**2), pf.body("arm", 0.5, com=(0.3 * long, 0, 0), inertia=0.05 * long**2)]
    joints = [pf.joint("base", "planar", "world", "cart"),
              pf.joint("pan", "revolute", "cart", "arm", placement=(0.2 * long, 0, 0))]  # fmt: skip

    def rolls(side: int) -> pf.Constraint:
        def skid(k: pf.Kinematics) -> ca.SX:
            t = k.twist("cart")
            return ca.cos(angle) * t[1] - side * np.sin(angle) * (t[0] - side * 0.3 * long * t[5])

        return pf.nonholonomic(f"wheel {side}", skid)

    return pf.mechanism("cart", bodies, joints, constraints=[rolls(1), rolls(-1)])


TOE = [(1e-8, 1e-6, 1, False), (2e-6, 1e6, 0, True), (3e-4, 1e-6, 0, False)]
"""Angle [rad], factor of the lengths, whether the cart rolls, and whether this is told."""


@pytest.mark.parametrize(("angle", "long", "rolling", "told"), TOE)
def test_wheels_out_of_line_block_a_reduced_machine_as_they_block_the_full_one(angle, long, rolling, told):
    m = toed_in(angle, long)
    with collected() as words:
        along = planned(m, None).along
    assert any("which constraint rows depend" in x for x in words) is told
    assert along is not None and len(along.y) == 2 + rolling
    assert len(typical(m).dependent) == rolling


@pytest.mark.parametrize("long", LENGTHS)
@pytest.mark.parametrize(("tilt", "shared", "told"), [(0.0, 3, 0), (1e-12, 3, 0), (5e-8, 1, 1), (1e-3, 1, 0)])
def test_two_floors_that_are_nearly_parallel_are_told(tilt, shared, told, long):
    """Two rafts, each on a floor of its own: together they glide and turn if the floors are parallel."""
    bodies = [pf.body(n, 2.0, inertia=0.1 * long**2) for n in "ab"]
    joints = [pf.joint("a", "planar", "world", "a"),
              pf.joint("b", "planar", "world", "b", placement=pf.pose((long, 0, 0), rpy=(tilt, 0, 0)))]  # fmt: skip
    with collected() as words:
        found = common_motion(pf.mechanism("rafts", bodies, joints, gravity=(0, 0, 0)))
    assert len(found.twists if found else ()) == shared
    assert len(words) == told and all("all joints to the world permit" in x for x in words)


@pytest.mark.parametrize(("apart", "rank", "told"), [(1e-11, 2, 0), (2e-8, 2, 1), (1e-6, 3, 1), (1e-3, 3, 0)])
def test_rows_that_are_nearly_dependent_at_a_state_are_told(apart, rank, told):
    """A bar held by two rods, and by a third one whose direction differs by this from that of the first."""
    slides = [pf.joint("p", "planar", "world", "bar")]
    hold = lambda i, a: pf.holonomic(f"rod {i}", lambda k: ca.cos(a) * k.q[0] + np.sin(a) * k.q[1])  # noqa: E731
    rods = [hold(0, 0.0), hold(1, apart), pf.holonomic("rod 2", lambda k: k.q[2] - 0.0)]
    m = pf.actuate_all(pf.mechanism("bar", [pf.body("bar", 1.0, inertia=0.1)], slides, constraints=rods))
    with collected() as words:
        found = pf.constraints.singularities(m, [0.0, 0.0, 0.0], "bar", length=1.0)
    assert found.rank == rank and len(words) == told
