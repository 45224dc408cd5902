"""Which motions are symmetries: the momenta that random machines conserve, and the reasons for those that they do not."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest

import pfaffian as pf
from tests.random_mechanisms import random_body, random_rotation
from tests.simulate.test_reduction import HULL, OFF, ROTOR, SPIN, causes, further, machine
from tests.tolerance import ALGEBRA, close


def sliders(**more) -> pf.Mechanism:
    """Two slides on one line, the outer one on a spring to the world."""
    bodies = [pf.body("a", 2.0, inertia=0.1), pf.body("b", 1.0, inertia=0.1)]
    joints = [pf.joint("first", "prismatic", "world", "a"), pf.joint("second", "prismatic", "a", "b")]
    tether = pf.spring("tether", "world", "b", point_a=(0, 0, -3), stiffness=5.0)
    return machine(bodies, joints, forces=[tether], **more)


def test_text_of_a_symmetry():
    assert str(pf.reduction.symmetry(ROTOR, parameters={"off": 0.2})).splitlines() == [
        "machine: joint 'base' can be moved by SE(2) and nothing changes",
        "  not by turning about z of 'spin': the centre of mass of 'rotor' lies 0.2 m off the axis",
    ]
    of_base = [f"{what} of 'base' from the child's side" for what in ("moving along x", "moving along y", "turning about z")]
    assert str(pf.reduction.symmetry(ROTOR, parameters={"off": 0.0})).splitlines()[1:] == [
        f"  so can: +0.02 {of_base[0]} and -0.08 {of_base[1]} and {of_base[2]}",
        f"  so can: {SPIN}",
    ]
    assert repr(pf.reduction.symmetry(ROTOR, parameters={"off": 0.0})) == "<Symmetry: of 'machine', SE(2) by 'base', 2 more>"
    assert repr(pf.reduction.symmetry(ROTOR)) == "<Symmetry: of 'machine', SE(2) by 'base'>"


def test_gravity_conserves_the_momenta_across_it():
    """The broken motions of a body in flight, by name."""
    s = pf.reduction.symmetry(machine([HULL], [pf.joint("flight", "free", "world", "hull")], gravity=(0, 0, -1)))
    weight = "gravity, [ 0.  0. -1.] m/s^2"
    assert s.group == "SE(2)" and causes(s) == {
        f"{motion} of 'flight'": weight for motion in ("moving along z", "turning about x", "turning about y")
    }


def test_motions_of_several_joints_at_once():
    """The inner slide moves while the outer body stays: a motor between them does work, a thruster on the outer one does
    none."""
    motors = [
        pf.actuator("motor", "second"),
        pf.forces.thruster("jet", "b", axis=(0, 0, 1)),
        pf.forces.thruster("push", "a", axis=(0, 0, 1)),
    ]
    s = pf.reduction.symmetry(sliders(actuators=motors))
    both = "moving along z of 'first'", "moving along z of 'second'"
    assert str(s).splitlines() == [
        "machine: no motion of joint 'first' leaves all as it is",
        "  so can: " + " and -1 ".join(both),
        "  input 'motor' does work along " + ", ".join(both),
        "  input 'push' does work along " + ", ".join(both),
    ]
    assert s.group == "none" and s.basis.shape == (6, 0)


def test_motions_are_twists_of_joints():
    disc, cart = pf.body("disc", 20.0, inertia=2.5), pf.body("cart", 4.0, com=(0.15, 0, 0), inertia=0.1)
    joints = [pf.joint("turn", "revolute", "world", "disc"), pf.joint("plane", "planar", "disc", "cart")]
    s = pf.reduction.symmetry(machine([disc, cart], joints))
    found = {x.label: (x.joint, x.side, x.twist) for parts in s.further for _, x in parts}
    x, y, *_, turn = (tuple(e) for e in np.eye(6))
    # The last one turns the cart about its mass centre.
    ((one, about),) = ([w for w, _ in parts] for parts in s.further if len(parts) > 1)
    close([one, about], [-0.15, 1], 1e3 * ALGEBRA, "weights")
    assert found == {
        "moving along x of the world by 'plane'": ("plane", "world", x),
        "moving along y of the world by 'plane'": ("plane", "world", y),
        "turning about z of 'plane'": ("plane", "left", turn),
        "moving along y of 'plane' from the child's side": ("plane", "right", y),
        "turning about z of 'plane' from the child's side": ("plane", "right", turn),
    }


def test_constraints_break_symmetries_and_allow_others():
    """A wheel whose mass is off its axis may turn while its carrier is fixed: symmetry is judged at velocities that the
    constraints allow."""
    on = ROTOR.with_(constraints=[pf.nonholonomic("held", lambda k: k.joint_rate("base"))])
    s = pf.reduction.symmetry(on, parameters={"off": 0.2})
    assert s.group == "none" and further(s) == [SPIN]
    assert causes(s) == {
        "moving along x of 'base'": "constraints", "moving along y of 'base'": "constraints",
        "turning about z of 'base'": "constraints",
    }  # fmt: skip


def test_a_rolling_joint_lacks_some_motions():
    """A cart that moves anywhere in the plane but cannot turn, whatever its gear is."""
    gear = pf.Parameter("gear", 2.0)
    way = {"distribution": [[gear, 0], [0, 1], [0, 0]], "speeds": ["ahead", "aside"]}
    m = machine([pf.body("cart", 3.0, com=(0.1, 0, 0), inertia=0.2)], [pf.joint("base", "planar", "world", "cart", **way)],
                parameters=[gear])  # fmt: skip
    for s in (pf.reduction.symmetry(m), pf.reduction.symmetry(m, parameters={"gear": 0.5})):
        assert s.group == "R^2" and causes(s) == {"turning about z of 'base'": "the joint cannot do it alone"}


@pytest.mark.parametrize("stiffness", [1e-10, 1e10])
def test_forces_are_judged_relative_to_their_size(stiffness):
    """A spring to the world breaks the symmetry however weak it is; a spring between bodies does not however stiff it is."""
    weak, strong = (
        pf.spring("s", on, "rotor", point_a=(0, 0, 1), point_b=(0.3, 0, 0), stiffness=stiffness) for on in ("world", "hull")
    )
    assert causes(pf.reduction.symmetry(ROTOR.with_(forces=[weak])))["moving along x of 'base'"] == "spring 's'"
    assert pf.reduction.symmetry(ROTOR.with_(forces=[strong])).group == "SE(2)"


def test_weight_across_a_plane_is_rounding():
    """For a heavy machine on a slope, with gravity normal to it, the remainder of 1e5 N along the slope is rounding."""
    slope = pf.pose((0, 0, 0), rpy=(0.3, -0.4, 0.5))
    base = pf.joint("base", "planar", "world", "hull", placement=slope)
    down = -9.81 * np.array(ca.DM(slope.R))[:, 2]
    m = machine([pf.body("hull", 1e4, com=(0.1, 0, 0), inertia=1e3)], [base], gravity=down)
    assert pf.reduction.symmetry(m).group == "SE(2)"


def test_long_chains_have_no_spurious_symmetries(monkeypatch):
    """More motions need more states, however few are tried first: thirty hinges once had six symmetries too many."""
    monkeypatch.setattr("pfaffian.evaluate.symmetry.STATES", 2)
    random, n = np.random.default_rng(1), 6
    bodies = [random_body(random, f"b{i}") for i in range(n + 1)]
    joints = [pf.joint("j0", "free", "world", "b0")] + [
        pf.joint(f"j{i}", "revolute", f"b{i - 1}", f"b{i}", axis=random.normal(size=3),
                 placement=pf.pose(random.normal(size=3), rotation=random_rotation(random)))
        for i in range(1, n + 1)
    ]  # fmt: skip
    s = pf.reduction.symmetry(machine(bodies, joints))
    assert s.group == "SE(3)" and not s.further


def test_parameters_affect_twists_and_reasons():
    """A screw under gravity along its axis, and across it."""
    pitch, fall = pf.Parameter("pitch", 0.1, "m/rad"), pf.Parameter("fall", 9.80665, "m/s^2")
    m = machine([pf.body("nut", 1.0, inertia=0.1)], [pf.joint("screw", "helical", "world", "nut", pitch=pitch)],
                parameters=[pitch, fall], gravity=(0, 0, -fall))  # fmt: skip
    s = pf.reduction.symmetry(m, parameters={"pitch": 0.3, "fall": 0})
    assert s.group == "H"
    close(s.basis[:, 0], [0, 0, 0.3, 0, 0, 1], ALGEBRA, "twist")
    close(pf.reduction.symmetry(m.with_(gravity=(fall, 0, 0))).basis[:, 0], [0, 0, 0.1, 0, 0, 1], ALGEBRA, "twist")
    reasons = {p: causes(pf.reduction.symmetry(m, parameters=p and {"fall": p})) for p in (None, 2.5)}
    assert reasons[None] == {"turning about z of 'screw'": "gravity, [ 0.      0.     -9.8066] m/s^2"}
    assert reasons[2.5] == {"turning about z of 'screw'": "gravity, [ 0.   0.  -2.5] m/s^2"}


ROUND = {"com": (0, 0, 0.1), "inertia": (1, 1, 1.5)}


@pytest.mark.parametrize("changed, why", [
    ({}, None), ({"inertia": (1, 1 + 1e-6, 1.5)}, "the inertia of 'rotor' is not the same about all perpendicular axes"),
    ({"inertia": [[1, 0, 0.1], [0, 1, 0], [0.1, 0, 1.5]]},
     "the inertia of 'rotor' is not the same about all perpendicular axes"),
    ({"com": (0.03, -0.04, 0.1)}, "the centre of mass of 'rotor' lies 0.05 m off the axis"),
    ({"com": (OFF, 0, 0.1)}, "the inertia of 'rotor' with other parameters"),
])  # fmt: skip
def test_the_inertia_that_breaks_a_symmetry_is_named(changed, why):
    """A rotor on a hull in flight."""
    joints = [pf.joint("base", "free", "world", "hull"), ROTOR.joints[1]]
    m = ROTOR.with_(bodies=[ROTOR.bodies[0], pf.body("rotor", 2.0, **ROUND | changed)], joints=joints)
    assert causes(pf.reduction.symmetry(m)).get(SPIN) == why


def test_inertia_of_what_a_joint_carries():
    """Where more bodies hang on a rotor, the reason is the inertia of all that the joint carries; for a slide it is the
    mass on it."""
    arm = pf.body("arm", 0.5, com=(0.2, 0, 0), inertia=0.01)
    m = ROTOR.with_(bodies=[*ROTOR.bodies, arm], joints=[*ROTOR.joints, pf.joint("arm", "revolute", "rotor", "arm")])
    assert causes(pf.reduction.symmetry(m))[SPIN] == "the inertia of what it carries"
    rail = pf.joint("rail", "prismatic", "hull", "cart", axis=(1, 0, 0))
    slides = machine([ROTOR.bodies[0], pf.body("cart", 1.0, inertia=0.1)], [ROTOR.joints[0], rail])
    assert causes(pf.reduction.symmetry(slides)) == {"moving along z of 'rail'": "the mass of 'cart'"}


def test_joints_that_form_no_group_are_skipped():
    """A universal joint, and a hinge that follows another, have no group of motions."""
    joints = [ROTOR.joints[0], pf.joint("wrist", "universal", "hull", "rotor"), pf.joint("hinge", "revolute", "hull", "arm"),
              pf.joint("follows", "revolute", "arm", "tip", mimic=pf.mimic({"hinge": 2.0}))]  # fmt: skip
    bodies = [*ROTOR.bodies, pf.body("arm", 0.5, com=(0.2, 0, 0), inertia=0.01), pf.body("tip", 0.2, inertia=0.01)]
    s = pf.reduction.symmetry(ROTOR.with_(bodies=bodies, joints=joints))
    assert s.group == "SE(2)" and {x.joint for x, _ in s.broken} == {"hinge"}
