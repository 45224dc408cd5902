"""Static equilibria of chains, a buckling four-bar, a suspension and a skate, against closed forms and a scalar search."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.spatial.transform import Rotation

import pfaffian as pf
from pfaffian.calculus import equilibrium_path
from tests.other_lapack import mix
from tests.refused import refusals
from tests.tolerance import close

G = 9.81
MATCH = 1e-9
"""Newton's iterations stop where 1e-10 of the forces is out of balance."""


def hinge(name: str, a: str, b: str, at=(0, 0, 0), **more) -> pf.Joint:
    return pf.joint(name, "revolute", a, b, axis=(0, 1, 0), placement=at, **more)


# -- a hanging chain --------------------------------------------------------------------------------------------------


def chain(n: int, span: float, length: float = 2.0) -> pf.Mechanism:
    """Rods between two fixed points; one of the closure's three rows is redundant."""
    l = length / n
    bodies = [pf.body(f"rod {i}", 1 / n, com=(l / 2, 0, 0), inertia=l * l / 12 / n) for i in range(n)]
    joints = [hinge(f"j{i}", f"rod {i - 1}" if i else "world", f"rod {i}", (l if i else 0, 0, 0)) for i in range(n)]
    end = pf.closure("end", "spherical", "world", f"rod {n - 1}", placement_a=(span, 0, 0), placement_b=(l, 0, 0))
    return pf.mechanism("chain", bodies, joints, constraints=[end])


@pytest.mark.parametrize("n", [3, 10])
def test_a_hanging_chain_of_rods(n):
    """tan(angle of rod i) = (i - (n - 1) / 2) w / H, where H follows from the span."""
    span, i = 1.2, np.arange(n) - (n - 1) / 2
    H = brentq(lambda H: np.cos(np.arctan(i * G / n / H)).sum() * 2 / n - span, 1e-6, 1e4)
    found = pf.equilibrium(chain(n, span), {"j0": 0.5})
    angles = (-np.cumsum(found.q) + np.pi) % (2 * np.pi) - np.pi
    close(angles, np.arctan(i * G / n / H), MATCH, "angles")
    assert found.stable and found.unstable == 0 and found.stiffness.shape == (n - 2,) and found.residual < 1e-10


def test_a_fine_chain_hangs_as_a_catenary():
    """The sag tends to a (cosh(s / 2a) - 1), where 2 a sinh(s / 2a) = length, with the square of the rods' length."""
    a = brentq(lambda a: 2 * a * np.sinh(0.6 / a) - 2, 0.1, 10)
    off = []
    for n in (4, 8):
        q = pf.equilibrium(chain(n, 1.2), {"j0": 0.5}).q
        off.append(2 / n * np.sin(np.cumsum(q))[: n // 2].sum() - a * (np.cosh(0.6 / a) - 1))
    assert 3.5 < off[0] / off[1] < 4.5 and abs(off[1]) < 0.01


# -- a four-bar with a spring that buckles ------------------------------------------------------------------------------

LOAD, LENGTH, SPRING = pf.Parameter("load", 5.0, "kg"), 0.5, 40.0


def portal() -> pf.Mechanism:
    """A parallelogram: two light cranks with a loaded coupler, which a spring in one foot holds upright."""
    bodies = [
        pf.body("left", 1e-9, inertia=1e-9),
        pf.body("beam", LOAD, (0.3, 0, 0), 0.1),
        pf.body("right", 1e-9, inertia=1e-9),
    ]
    joints = [hinge("foot", "world", "left", stiffness=SPRING), hinge("knee", "left", "beam", (0, 0, LENGTH)),
              hinge("far knee", "beam", "right", (0.6, 0, 0))]  # fmt: skip
    foot = pf.closure(
        "far foot", "revolute", "world", "right", axis=(0, 1, 0), placement_a=(0.6, 0, 0), placement_b=(0, 0, -LENGTH)
    )
    return pf.mechanism("portal", bodies, joints, constraints=[foot], parameters=[LOAD])


CRITICAL = SPRING / LENGTH / G
"""[kg] k / (l g), above which k angle = m g l sin(angle) has two more solutions."""


def test_a_four_bar_with_a_spring_buckles_to_both_sides():
    mass = 1.5 * CRITICAL
    angle = brentq(lambda x: SPRING * x - mass * G * LENGTH * np.sin(x), 0.1, 3)
    found = pf.equilibrium(portal(), parameters={"load": mass}, branches=6)
    upright = np.flatnonzero(np.abs(found.named["knee"] + found.named["foot"]) < 1e-6)  # the other solutions are crossed
    assert found.q.shape[0] >= 3
    angles = found.named["foot"][upright]
    for expected, stable in ((0.0, False), (angle, True), (-angle, True)):
        at = int(np.argmin(np.abs(angles - expected)))
        close(angles[at], expected, MATCH, "angle", 1)
        assert bool(found.stable[upright[at]]) is stable
        stiff = (SPRING - mass * G * LENGTH * np.cos(expected)) / (mass * LENGTH**2)
        close(found.stiffness[upright[at]], [stiff], 1e-6, "stiffness", abs(stiff))
    assert found.unstable[upright[int(np.argmin(np.abs(angles)))]] == 1


def test_the_branches_along_the_load():
    """The straight branch becomes unstable at the critical load, where two others begin; their loads follow the closed
    form."""
    path = equilibrium_path(portal(), "load", 2 * CRITICAL, step=0.1)
    assert set(path.curve) == {0, 1, 2}
    (at,) = np.flatnonzero(path.event == "branch")
    close(path.parameter[at], CRITICAL, 1e-6, "critical load")
    main = (path.curve == 0) & (path.event == "")
    assert np.abs(path.q[main]).max() < 1e-8
    assert (path.stable[main] == (path.parameter[main] < CRITICAL * (1 - 1e-9))).all()
    for curve in (1, 2):
        points = np.flatnonzero(path.curve == curve)[1:]
        angle, load = path.q[points, 0], path.parameter[points]
        close(load, SPRING * angle / (G * LENGTH * np.sin(angle)), 1e-7, "load", CRITICAL)
        assert path.stable[points].all() and (np.sign(angle) == np.sign(angle[0])).all()
        close(load[-1], 2 * CRITICAL, 1e-9, "the end of the range")
    assert len({np.sign(path.q[np.flatnonzero(path.curve == c)[-1], 0]) for c in (1, 2)}) == 2


def test_a_curve_goes_round_its_folds():
    """The von Mises truss has two springs that snap through: F = 2 k (l0 / l - 1) h, with a fold at l^3 = l0 b^2."""
    F, b, k, l0 = pf.Parameter("F", 0.0, "N"), 1.0, 200.0, np.hypot(1.0, 0.3)
    slide = pf.joint("h", "prismatic", "world", "top")
    springs = [pf.spring(n, "world", "top", point_a=(x, 0, 0), stiffness=k, rest=l0) for n, x in (("l", -b), ("r", b))]
    push = pf.forces.generalised_force("push", lambda t: -F, joint="h")
    m = pf.mechanism("truss", [pf.body("top", 1.0)], [slide], forces=[*springs, push], parameters=[F], gravity=(0, 0, 0))
    path = equilibrium_path(m, "F", 20.0, {"h": 0.3}, step=0.02)
    h = path.q[:, 0]
    close(path.parameter, 2 * k * (l0 / np.hypot(b, h) - 1) * h, 1e-8, "load", 10)
    fold = np.sqrt((l0 * b**2) ** (2 / 3) - b**2)
    turns = np.flatnonzero(path.event == "fold")
    assert len(turns) >= 1 and abs(h[turns[0]] - fold) < 0.03 and not (path.event == "branch").any()
    assert (path.stable == (np.abs(h) > fold)).all()


# -- a double wishbone suspension ----------------------------------------------------------------------------------------

LOWER, UPPER, UPRIGHT, PIVOT, RATE, FREE = 0.40, 0.30, 0.25, np.array([0.05, 0.30]), 2e5, 0.36
"""Lengths of the arms and the upright [m], the upper pivot relative to the lower one (y, z) [m], rate [N/m] and free length
[m] of the spring."""
WHEEL = pf.Parameter("wheel load", 3000.0, "N")


def wishbone() -> pf.Mechanism:
    """A quarter car: arms about x, a spring from the middle of the lower arm to the body, and the wheel's load on the
    upright."""
    rods = [("lower", LOWER, 4.0), ("upper", UPPER, 3.0), ("upright", UPRIGHT, 20.0)]
    bodies = [pf.body(n, mass, com=(0, 0, l / 2) if n == "upright" else (0, l / 2, 0), inertia=0.05) for n, l, mass in rods]
    axis = {"axis": (1, 0, 0)}
    joints = [
        pf.joint("lower pivot", "revolute", "world", "lower", **axis),
        pf.joint("upper pivot", "revolute", "world", "upper", placement=(0, *PIVOT), **axis),
        pf.joint("lower ball", "revolute", "lower", "upright", placement=(0, LOWER, 0), **axis),
    ]
    ball = pf.closure("upper ball", "spherical", "upright", "upper", placement_a=(0, 0, UPRIGHT), placement_b=(0, UPPER, 0))
    coil = pf.spring("coil", "world", "lower", point_a=(0, 0.1, 0.35), point_b=(0, LOWER / 2, 0), stiffness=RATE, rest=FREE)
    tyre = pf.wrench("tyre", "upright", lambda k: [0, 0, WHEEL, 0, 0, 0], point=(0, 0.1, 0.1))
    return pf.mechanism("wishbone", bodies, joints, constraints=[ball], forces=[coil, tyre], parameters=[WHEEL])


def rotated(x: float, y: float, z: float) -> np.ndarray:
    return np.array([y * np.cos(x) - z * np.sin(x), y * np.sin(x) + z * np.cos(x)])


def by_hand(x: float) -> tuple[float, float, float]:
    """Angles of the upper arm and the upright from circles in the plane (y, z), and the energy, at the lower arm's angle x."""
    ball = rotated(x, LOWER, 0)
    d = np.linalg.norm(ball - PIVOT)
    cos = (UPPER**2 + d**2 - UPRIGHT**2) / (2 * UPPER * d)
    y = np.arctan2(*(ball - PIVOT)[::-1]) + np.arccos(cos)
    top = PIVOT + rotated(y, UPPER, 0)
    w = np.arctan2(-(top - ball)[0], (top - ball)[1])
    length = np.linalg.norm(rotated(x, LOWER / 2, 0) - [0.1, 0.35])
    high = [
        4.0 * rotated(x, LOWER / 2, 0)[1],
        3.0 * (PIVOT + rotated(y, UPPER / 2, 0))[1],
        20.0 * (ball + rotated(w, 0, UPRIGHT / 2))[1],
    ]
    return y, w, RATE / 2 * (length - FREE) ** 2 + G * sum(high) - 3000.0 * (ball + rotated(w, 0.1, 0.1))[1]


def test_a_double_wishbone_rests_where_a_scalar_search_finds_it():
    h = 1e-3
    x = brentq(
        lambda x: sum(c * by_hand(x + i * h)[2] for i, c in ((-2, 1), (-1, -8), (1, 8), (2, -1))), -0.25, 0.3, xtol=1e-13
    )
    y, w, _ = by_hand(x)
    found = pf.equilibrium(wishbone(), {"lower pivot": 0.0})
    close(found.q, [x, y, w - x], 1e-7, "angles", 1)
    assert found.stable and found.stiffness.shape == (1,)
    close(np.sort(pf.linearise(wishbone(), found.q).hertz), np.sort([found.hertz[0]] * 2), 1e-8, "frequency")


# -- fixed coordinates, batches, redundant rows, a skate, no equilibrium -------------------------------------------------


def test_hold_fixes_a_coordinate_and_gives_its_reaction():
    """A pendulum at a fixed angle needs m g l sin(angle). Parameters and inputs may be batches in one call."""
    mass = pf.Parameter("mass", 2.0, "kg")
    arm = pf.body("arm", mass, com=(0, 0, -1.0), inertia=0.1)
    m = pf.mechanism("arm", [arm], [hinge("A", "world", "arm")], actuators=[pf.actuator("motor", "A")], parameters=[mass])
    found = pf.equilibrium(m, {"A": 0.7}, hold=["A"], parameters={"mass": [1.0, 2.0, 3.0]})
    close(found.q[:, 0], [0.7] * 3, 1e-15, "fixed angle")
    close(found.reaction[:, 0], np.array([1, 2, 3]) * G * np.sin(0.7), 1e-12, "torque")
    assert found.stable.all() and found.stiffness.shape == (3, 0)
    driven = pf.equilibrium(m, u=[[0.0], [5.0]])
    close(driven.q[:, 0], [0.0, np.arcsin(5 / (2 * G))], MATCH, "driven", 1)
    over = pf.equilibrium(m, {"A": 3.0}, stable=False)
    close(over.q, [np.pi], MATCH, "upright")
    assert not over.stable and over.unstable == 1 and over.hertz[0] < 0


def test_a_duplicate_closure_changes_nothing():
    once, twice = portal(), portal()
    twice = twice.with_(constraints=[*twice.constraints, *(pf.closure("again", "revolute", "world", "right", axis=(0, 1, 0),
                        placement_a=(0.6, 0, 0), placement_b=(0, 0, -LENGTH)),)])  # fmt: skip
    given = {"parameters": {"load": 1.5 * CRITICAL}}
    a, b = (pf.equilibrium(m, {"foot": 0.5}, **given) for m in (once, twice))
    close(b.q, a.q, MATCH, "angles")
    close(b.stiffness, a.stiffness, 1e-6, "stiffness")


def test_a_skate_on_a_slope_rests_across_it():
    """A row on velocities contributes only its reaction: across the slope the skate rests at any place, along it nowhere."""
    skate = pf.joint("skate", "planar", "world", "skate")
    blade = pf.nonholonomic("blade", lambda k: k.twist("skate")[1])
    slope = {"gravity": (2.0, 0, -9.0), "constraints": [blade]}
    m = pf.mechanism("skate", [pf.body("skate", 1.0, inertia=0.1)], [skate], **slope)
    found = pf.equilibrium(m, {"skate.theta": 1.2} if "skate.theta" in m.q_names else {m.q_names[2]: 1.2}, stable=False)
    close(abs(np.cos(found.q[2])), 0.0, 1e-8, "across", 1)
    close(np.linalg.norm(found.reaction[:2]), 2.0, 1e-8, "held by the blade")


def test_a_machine_without_equilibrium_raises_an_error():
    m = pf.mechanism("box", [pf.body("box", 1.0)], [pf.joint("slope", "prismatic", "world", "box", axis=(1, 0, 1))])
    with pytest.raises(pf.RunError, match=r"no equilibrium of 'box' was found.*most along 'slope'"):
        pf.equilibrium(m)


# -- accelerations ------------------------------------------------------------------------------------------------------


def test_one_acceleration_determines_the_others_and_the_inputs():
    """In a four-bar one component gives the others, as in its free motion; inverse dynamics completes it likewise."""
    m = portal()
    q = pf.assemble(m, {"foot": 0.4}).q
    v = pf.assemble(m, q, {"foot": 1.3}).v
    a = pf.constraints.complete_acceleration(m, q, v, {"foot": 2.0})
    close(a, [2.0, -2.0, 2.0], 1e-9, "a parallelogram turns and turns back")
    full = pf.inverse_dynamics(m, q, v, a, actuated=["foot"])
    short = pf.inverse_dynamics(m, q, v, {"foot": 2.0}, actuated=["foot"], complete=True)
    close(short.u, full.u, 1e-12, "torque")
    freely = pf.forward_dynamics(m, q, v).v_dot
    close(pf.constraints.complete_acceleration(m, q, v, {"foot": freely[0]}), freely, 1e-9, "as it moves freely", 10)
    many = pf.constraints.complete_acceleration(m, q, v, {"foot": np.array([0.0, 1.0])})
    close(many[:, 1], [0.0, -1.0], 1e-9, "a batch", 1)


ARM = pf.mechanism("arm", [pf.body("arm", 1.0, com=(0, 0, -1), inertia=0.1)], [hinge("A", "world", "arm")])
SWUNG = ARM.with_(
    constraints=[pf.servo(pf.holonomic("swing", lambda k: k.q[0] - k.t), ["A"])], actuators=[pf.actuator("A", "A")]
)
TWO = pf.mechanism(
    "two", [pf.body(n, 1.0, com=(0, 0, -1), inertia=0.1) for n in "ab"], [hinge("A", "world", "a"), hinge("B", "world", "b")],
    constraints=[pf.holonomic("geared", lambda k: k.q[0] - k.q[1])],
)  # fmt: skip
PUSHED = pf.mechanism(
    "push", [pf.body("arm", 1.0, inertia=1.0)], [hinge("A", "world", "arm")], parameters=[pf.Parameter("p", 1.0)]
)
DRIVEN = ARM.with_(actuators=[pf.actuator("A", "A")])
COMPLETE = pf.constraints.complete_acceleration
WRONG = {
    "a name as machine": (lambda: pf.equilibrium("arm"), "a Mechanism is needed"),
    "servo constraints": (lambda: pf.equilibrium(SWUNG), "servo constraint 'swing' moves the machine"),
    "hold of a word": (lambda: pf.equilibrium(ARM, hold="A"), "hold must be a list of names"),
    "hold of an unknown": (lambda: pf.equilibrium(ARM, hold=["B"]), "hold: there is no 'B'"),
    "an unknown coordinate": (lambda: pf.equilibrium(ARM, {"B": 1}), "there is no 'B'"),
    "no branches": (lambda: pf.equilibrium(ARM, branches=0), "branches"),
    "branches of a batch": (lambda: pf.equilibrium(ARM, [[0], [1]], branches=2), "branches takes one state at a time, not 2"),
    "batches of two sizes": (lambda: pf.equilibrium(DRIVEN, np.zeros((2, 1)), u=np.zeros((3, 1))),
                             "q, parameters: 2, u: 3|2.*3"),
    "stable of a word": (lambda: pf.equilibrium(ARM, stable="yes"), "stable must be True or False"),
    "a start that is open": (lambda: pf.equilibrium(TWO, {"A": 0.0, "B": 1.0}), "these coordinates cannot all be kept"),
    "an unknown parameter": (lambda: equilibrium_path(PUSHED, "q", 2.0), "has no parameter 'q'"),
    "no range": (lambda: equilibrium_path(PUSHED, "p", 1.0), "'p' is 1 already"),
    "no end": (lambda: equilibrium_path(PUSHED, "p", np.inf), "finite"),
    "no step": (lambda: equilibrium_path(PUSHED, "p", 2.0, step=0.0), "step must be above 0 and at most 1"),
    "a path of a batch": (lambda: equilibrium_path(PUSHED, "p", 2.0, [[0.0], [1.0]]), "one state at a time is needed, not 2"),
    "nothing to complete": (lambda: COMPLETE(TWO, [0, 0], [0, 0], {}), "velocity: number} is needed"),
    "no acceleration": (lambda: COMPLETE(TWO, [0, 0], [0, 0], None), "a is missing"),
    "an unknown acceleration": (lambda: COMPLETE(TWO, [0, 0], [0, 0], {"C": 1}), "there is no 'C'"),
    "an acceleration off the constraints": (lambda: COMPLETE(TWO, [0, 1], [0, 0], {"A": 1}), "off the constraints"),
    "complete of a word": (lambda: pf.inverse_dynamics(TWO, [0, 0], [0, 0], {"A": 1}, complete="yes"), "complete"),
}  # fmt: skip


test_wrong_arguments_are_named = refusals(WRONG, (pf.ModelError, pf.RunError))


def test_accelerations_that_break_rows_or_leave_motions_free():
    with pytest.raises(pf.RunError, match=r"violate the constraints, row '.*' by"):
        COMPLETE(TWO, [0, 0], [0, 0], {"A": 1.0, "B": 2.0})
    loose = TWO.with_(constraints=[])
    with pytest.raises(pf.RunError, match=r"1 motion\(s\) stay free, of B"):
        COMPLETE(loose, [0, 0], [0, 0], {"A": 1.0})


def test_branches_include_equilibria_that_forces_lead_away_from():
    """A pendulum hangs or stands upright; following the forces leads to the first only."""
    hinge = pf.joint("hinge", "revolute", "world", "rod", axis=(0, 1, 0))
    m = pf.mechanism("pendulum", [pf.body("rod", 2.0, com=(0, 0, -1))], [hinge])
    found = pf.equilibrium(m, {"hinge": 0.5}, branches=3)
    assert found.stable.tolist() == [True, False]
    assert np.cos(found.q[:, 0]) == pytest.approx([1, -1])


def test_modes_are_sorted_by_stiffness():
    """Two carts on springs, the stiffer one first in the mechanism."""
    slides = [
        pf.joint("stiff", "prismatic", "world", "light", axis=(1, 0, 0), stiffness=900.0),
        pf.joint("soft", "prismatic", "world", "heavy", axis=(1, 0, 0), stiffness=100.0),
    ]
    m = pf.mechanism("carts", [pf.body("light", mass=1.0), pf.body("heavy", mass=4.0)], slides)
    found = pf.equilibrium(m)
    close(found.stiffness, [25.0, 900.0], MATCH, "stiffness per mass")
    close(found.hertz, np.array([5.0, 30.0]) / (2 * np.pi), MATCH, "frequencies")
    close(np.abs(found.modes), [[0.0, 1.0], [0.5, 0.0]], MATCH, "modes of unit v M v")


# -- neutral motions, repeated stiffness, and units -----------------------------------------------------------------------


def mast(wheel: bool = True, length: float = 1.0) -> pf.Mechanism:
    """An upright mast in a universal joint with two equal springs, which carries a load at its top, and a wheel that spins
    freely."""
    l = length
    bodies = [pf.body("mast", LOAD, com=(0, 0, l), inertia=0.1 * l * l)]
    joints = [pf.joint("foot", "universal", "world", "mast", stiffness=15.0 * l * l)]
    if wheel:
        bodies.append(pf.body("wheel", 0.5, inertia=(0.1 * l * l, 0.1 * l * l, 0.2 * l * l)))
        joints.append(pf.joint("hub", "revolute", "mast", "wheel", axis=(0, 0, 1), placement=(0, 0, 0.4 * l)))
    return pf.mechanism("mast", bodies, joints, parameters=[LOAD], gravity=(0, 0, -9.81 * l))


MAST_LOAD = (15 - 0.5 * 9.81 * 0.4) / 9.81
"""[kg] the load at which the mast with its wheel loses its stiffness, in both directions at once."""


@pytest.mark.parametrize("length", [1e-4, 1.0, 1e5])
def test_a_wheel_that_spins_freely_is_neutral(length):
    for load, words, unstable in (
        (0.5, "neutral in hub, stable otherwise", 0),
        (2.0, "unstable in foot.wx, foot.wy, neutral in hub", 2),
    ):
        found = pf.equilibrium(mast(length=length), parameters={"load": load}, stable=False)
        names = found.v_names
        words = words.replace("foot.wx, foot.wy", ", ".join(names[:2]))
        assert str(found.stability) == words and words in repr(found)
        assert (found.unstable, found.neutral, bool(found.stable)) == (unstable, 1, False)
        inertia = load + 0.1 + 0.5 * 0.16 + 0.1
        bends = (15 - 9.81 * (load + 0.2)) / inertia
        close(np.sort(found.stiffness), np.sort([0, bends, bends]), 1e-9, "stiffness", abs(bends))
    held = pf.equilibrium(mast(length=length), hold=["hub"], parameters={"load": 0.5})
    assert held.stable and str(held.stability) == "stable" and held.neutral == 0
    many = pf.equilibrium(mast(length=length), parameters={"load": [0.5, 0.6]}, stable=False)
    assert many.stability.shape == (2,) and "neutral in hub, stable otherwise" in repr(many)
    mixed = pf.equilibrium(mast(length=length), parameters={"load": [0.5, 2.0]}, stable=False)
    assert "0 of 2 stable" in repr(mixed) and mixed.unstable.tolist() == [0, 2]


def test_a_floating_machine_is_neutral_as_a_whole():
    hull = pf.body("hull", 2.0, com=(0.1, 0.2, 0.3), inertia=(0.3, 0.4, 0.5))
    found = pf.equilibrium(pf.mechanism("hull", [hull], [pf.joint("free", "free", "world", "hull")], gravity=(0, 0, 0)))
    assert (found.unstable, found.neutral) == (0, 6) and str(found.stability).startswith("neutral in")
    assert "stable" not in str(found.stability)
    tilt = np.array([0.3, -0.5, 0.7])  # a turntable about the direction of gravity, up to rounding
    table = pf.joint("table", "revolute", "world", "hull", axis=tilt, placement=pf.pose((0.3, 0.1, 0.2), rpy=(0.1, 0.2, 0.3)))
    weight = -9.81 * Rotation.from_euler("xyz", (0.1, 0.2, 0.3)).as_matrix() @ tilt / np.linalg.norm(tilt)
    for start in (0.3, 0.7, -1.1):
        spun = pf.equilibrium(pf.mechanism("table", [hull], [table], gravity=weight), [start])
        assert spun.neutral == 1 and str(spun.stability) == "neutral in table"


def test_a_follower_force_that_makes_a_machine_flutter_is_unstable():
    """A double pendulum of springs under a force along its second link (Ziegler's column) flutters: complex stiffness."""
    P = pf.Parameter("P", 4.0, "N")
    bodies = [pf.body("lower", 2.0, com=(0, 0, 1.0)), pf.body("upper", 1.0, com=(0, 0, 1.0))]
    joints = [
        pf.joint(n, "revolute", a, b, axis=(0, 1, 0), placement=(0, 0, z), stiffness=1.0)
        for n, a, b, z in (("foot", "world", "lower", 0), ("knee", "lower", "upper", 1.0))
    ]
    push = pf.wrench("push", "upper", lambda k: [0, 0, -P, 0, 0, 0], point=(0, 0, 1.0), axes="LOCAL")
    m = pf.mechanism("Ziegler", bodies, joints, forces=[push], parameters=[P], gravity=(0, 0, 0))
    M = np.array([[3.0, 1.0], [1.0, 1.0]])  # by absolute angles
    found = [pf.equilibrium(m, parameters={"P": p}, stable=False) for p in (0.5, 2.5)]
    for p, x in zip((0.5, 2.5), found, strict=True):
        exact = np.linalg.eigvals(np.linalg.solve(M, [[2.0 - p, p - 1.0], [-1.0, 1.0]]))
        close(x.stiffness, np.sort(exact.real), 1e-9, "real parts")
        assert x.unstable == 2 * bool(np.abs(exact.imag).max() > 1e-6) and x.stable == (x.unstable == 0)
        assert np.linalg.matrix_rank(x.modes) == 2, "two motions, not the real part of one twice"
    assert found[0].stable and found[1].unstable == 2


def test_modes_of_equal_stiffness_do_not_depend_on_the_basis_of_lapack(monkeypatch):
    m, given = mast(), {"parameters": {"load": 0.5}, "stable": False}
    expected = pf.equilibrium(m, **given)
    curves = {"to": 1.5, "parameters": {"load": 0.5}, "step": 0.3}
    path = equilibrium_path(m, "load", **curves)
    mix(monkeypatch)
    found, other = pf.equilibrium(m, **given), equilibrium_path(m, "load", **curves)
    close(found.modes, expected.modes, 1e-9, "modes")
    assert str(found.stability) == str(expected.stability)
    assert path.curve.max() == 4
    close(other.q, path.q, 1e-7, "the same curves in the same order", 1.0)


def test_a_path_with_a_free_wheel_has_its_own_branches_only():
    """The spin has no stiffness anywhere on the curve; at the critical load two motions lose theirs, and both are followed."""
    path = equilibrium_path(mast(), "load", 2.0, parameters={"load": 0.5})
    (at,) = np.flatnonzero(path.event == "branch")
    close(path.parameter[at], MAST_LOAD, 1e-6, "critical load")
    assert (path.event[path.event != ""] == "branch").all() and path.curve.max() == 4
    main = (path.curve == 0) & (path.event == "")
    assert (path.unstable[main] == np.where(path.parameter[main] < MAST_LOAD, 0, 2)).all() and not path.stable[main].any()
    assert (path.neutral[main] == 1).all()
    ends = np.array([path.q[np.flatnonzero(path.curve == c)[-1], :2] for c in (1, 2, 3, 4)])
    assert len({tuple(np.sign(np.round(x, 6))) for x in ends}) == 4, "to both sides along two directions"
    hub = path.q[:, path.q_names.index("hub")]
    assert np.abs(hub).max() < 2.0, "the wheel is not turned on and on"


@pytest.mark.parametrize("length", [1e-3, 1e3])
def test_a_path_is_the_same_in_any_unit_of_length(length):
    """The von Mises truss in millimetres and in kilometres: steps, folds and loads follow in proportion."""

    def curve(b: float):
        F, k, l0 = pf.Parameter("F", 0.0, "N"), 200.0, b * np.hypot(1.0, 0.3)
        slide = pf.joint("h", "prismatic", "world", "top")
        springs = [pf.spring(n, "world", "top", point_a=(x, 0, 0), stiffness=k, rest=l0) for n, x in (("l", -b), ("r", b))]
        push = pf.forces.generalised_force("push", lambda t: -F, joint="h")
        m = pf.mechanism("truss", [pf.body("top", 1.0)], [slide], forces=[*springs, push], parameters=[F], gravity=(0, 0, 0))
        return equilibrium_path(m, "F", 20.0 * b, {"h": 0.3 * b}, step=0.02)

    here, there = curve(1.0), curve(length)
    assert here.event.tolist() == there.event.tolist() and "fold" in here.event.tolist()
    close(there.q / length, here.q, 1e-9, "path", 1.0)
    close(there.parameter / length, here.parameter, 1e-9, "load", 10.0)


@pytest.mark.parametrize("length", [1e-13, 1.0, 1e6])
def test_relaxed_springs_are_found_in_any_unit_of_length(length):
    """Two points on three relaxed springs, whose forces at the solution are rounding."""
    points = [pf.body(f"p{i}", 1.0) for i in (0, 1)]
    joints = [pf.joint(f"t{i}", "translation", "world", f"p{i}", placement=(0, i * length, 0)) for i in (0, 1)]
    springs = [pf.spring("s", "p0", "p1", stiffness=3.0, rest=length),
               pf.spring("w", "world", "p0", point_a=(0, -length, 0), stiffness=3.0, rest=length)]  # fmt: skip
    m = pf.mechanism("points", points, joints, forces=springs, gravity=(0, 0, 0))
    found = pf.equilibrium(m, np.array([0, 0.1, 0, 0, 0.2, 0]) * length)
    close(found.q / length, np.zeros(6), 1e-9, "relaxed", 1.0)
    assert (found.unstable, found.neutral) == (0, 4)


def test_names_to_hold_may_come_from_anywhere():
    """A generator is read once, though the names are needed twice."""
    m = mast()
    expected = pf.equilibrium(m, {"hub": 0.3}, hold=["hub"], parameters={"load": 0.5}).stiffness
    for names in ({"hub"}, {"hub": 0.3}, (n for n in ["hub"]), np.array(["hub"])):
        close(pf.equilibrium(m, {"hub": 0.3}, hold=names, parameters={"load": 0.5}).stiffness, expected, 1e-12, "held")
    for wrong in (3, None, True, np.zeros((2, 2)), {1: 1.0}, [["hub"]], [1]):
        with pytest.raises(pf.ModelError, match="hold: a list of names is needed"):
            pf.equilibrium(m, hold=wrong)
        with pytest.raises(pf.ModelError, match="hold: a list of names is needed"):
            pf.assemble(m, hold=wrong)


def test_every_neutral_motion_is_named():
    """Eight wheels spin freely beside a pendulum: none of them may count as "stable otherwise"."""
    names = [f"wheel {i}" for i in range(8)]
    wheels = [pf.joint(n, "revolute", "world", n, axis=(1, 0, 0)) for n in names]
    bodies = [*(pf.body(n, 1.0, inertia=0.1) for n in names), pf.body("bob", 1.0, com=(0, 0, -1))]
    m = pf.mechanism("wheels", bodies, [*wheels, pf.joint("pin", "revolute", "world", "bob", axis=(0, 1, 0))])
    found = pf.equilibrium(m, {"pin": 0.2})
    assert str(found.stability) == f"neutral in {', '.join(names)}, stable otherwise" and found.neutral == 8
