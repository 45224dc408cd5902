"""A symmetry is judged relative to what it moves, and a reduced run checks itself, however far away and fast the machine
is."""

from __future__ import annotations

from types import SimpleNamespace

import casadi as ca
import numpy as np
import pytest

import pfaffian as pf
from pfaffian.evaluate.directions_at_states import Moves
from pfaffian.evaluate.reduction_plan import plan
from pfaffian.simulate.error.drift import warn_of_drift
from pfaffian.simulate.step.draft import Draft
from pfaffian.states import reduce as reduction
from tests.by_scipy import run_adaptive
from tests.simulate.test_reduction import rover, satellite
from tests.tolerance import close

KEEP = {"duration": 0.05, "step": 1e-3, "every": 10, "backend": "interpreter"}
SPIN = "turning about z of 'spin'"


def craft(off=0.0, across=0.0, **more):
    """A rotor of one gram on a hull of five tons.   off: distance of its mass centre from its axis [m].   across: relative
    difference of its inertias across the axis."""
    hull = pf.body("hull", 5000.0, com=(0.1, 0, 0), inertia=(4e3, 5e3, 6e3))
    rotor = pf.body("rotor", 1e-3, com=(off, 0, 0.01), inertia=(2e-7 * (1 + across), 2e-7, 3e-7))
    place = pf.pose((0.5, 0.2, 0.1), rpy=(0.3, -0.2, 0.4))
    joints = [
        pf.joint("base", "free", "world", "hull"),
        pf.joint("spin", "revolute", "hull", "rotor", placement=place, **more.pop("spin", {})),
    ]
    return pf.mechanism("craft", [hull, rotor], joints, **{"gravity": (0, 0, 0)} | more)


def causes(m):
    return {motion.label: ", ".join(why) for motion, why in pf.reduction.symmetry(m).broken}


UNEVEN = {
    "a micrometre off": ({"off": 1e-6}, "centre of mass of 'rotor' lies 1e-06 m off the axis"),
    "uneven": ({"across": 1e-6}, "the inertia of 'rotor' is not the same about all perpendicular axes"),
    "a weak spring": ({"spin": {"stiffness": 1e-10}}, "spring or damper of joint 'spin'"),
    "a tether": (
        {"forces": [pf.spring("tether", "hull", "rotor", point_a=(1, 0, 0), point_b=(0.02, 0, 0), stiffness=1e-9)]},
        "spring 'tether'",
    ),
}


@pytest.mark.parametrize("changed, why", UNEVEN.values(), ids=UNEVEN)
def test_a_gram_on_a_hull_of_tons_is_judged_by_the_inertia_of_the_gram(changed, why):
    """Relative to the whole machine these forces are 1e-10 or less, but they are what moves the rotor."""
    assert why in causes(craft(**changed))[SPIN]
    assert plan(craft(**changed), None).conserved == (*range(6), *([] if "inertia" in why or "mass" in why else [6]))


def test_weight_on_a_light_rotor_is_judged_by_the_rotor():
    """A rotor about a horizontal axis, on a rover on level ground: with its mass centre 1e-9 m off the axis it swings."""
    axis = {"axis": (1, 0, 0)}
    hull, rotor = pf.body("hull", 5000.0, inertia=5e3), pf.body("rotor", 1e-3, com=(0, 1e-9, 0), inertia=(3e-7, 2e-7, 2e-7))
    joints = [pf.joint("base", "planar", "world", "hull"), pf.joint("spin", "revolute", "hull", "rotor", **axis)]
    m = pf.mechanism("rover", [hull, rotor], joints)
    assert "gravity" in causes(m)[SPIN]
    even = m.with_(bodies=[hull, pf.body("rotor", 1e-3, inertia=(3e-7, 2e-7, 2e-7))])
    assert SPIN not in causes(even)


def test_a_balanced_light_rotor_is_a_symmetry_and_an_unbalanced_one_moves_as_in_full():
    assert SPIN not in causes(craft()) and plan(craft(), None).conserved == tuple(range(7))
    m = craft(1e-3)
    q, v = m.neutral(), np.r_[0.1, 0.2, 0, 0.3, 0.5, 1.0, 3.0]
    keep = KEEP | {"duration": 0.2}
    close(pf.run(pf.reduce(m), q, v, **keep).q, pf.run(m, q, v, **keep).q, 1e-10, "q")


def swaying(default=1e-16):
    """A craft whose rotor is off its axis by a parameter; near the default it is balanced."""
    off = pf.Parameter("off", default, "m")
    return craft(off, parameters=[off])


def test_parameters_of_a_run_that_break_a_symmetry_are_refused():
    m = swaying()
    system, start = pf.reduce(m), {"v": np.r_[0, 0, 0, 0.3, 0.5, 1.0, 3.0]}
    assert plan(m, None).conserved == tuple(range(7))
    for p, which in ((1e-3, "parameters"), ([0, 2e-16, 1e-3], "parameters of run 2")):
        with pytest.raises(pf.ModelError, match=rf"{which} \(off = 0.001\): the momentum of 'spin' .* is not conserved"):
            pf.run(system, **start, parameters={"off": p}, **KEEP)
    with pytest.raises(pf.ModelError, match="momentum of 'spin' of 'craft' is not conserved"):
        run_adaptive(system, **start, parameters={"off": 1e-3}, times=[0, 0.1])
    pf.run(system, **start, parameters={"off": -1e-16}, **KEEP)


def test_parameters_that_make_forces_depend_on_the_place_are_refused():
    bump = pf.Parameter("bump", 1e-12, "m/s^2")
    m = rover().with_(gravity=(bump, 0, -9.81), parameters=[bump])
    with pytest.raises(pf.ModelError, match=r"parameters \(bump = 0.1\): gravity of 'rover' depends on where base is"):
        pf.run(pf.reduce(m), parameters={"bump": 0.1}, **KEEP)


def test_parameters_that_change_a_given_momentum_are_refused():
    pull = pf.Parameter("pull", 0.0, "m/s^2")
    m = craft(0.0, gravity=(0, 0, -ca.fmax(pull.symbol - 1, 0)), parameters=[pull])
    system, v = pf.reduce(m, momentum=np.zeros(6)), np.r_[np.zeros(6), 1.0]
    v[:6] = -pf.reduction.mechanical_connection(m)[:, 0]
    pf.run(system, v=v, parameters={"pull": 0.5}, **KEEP)
    with pytest.raises(pf.ModelError, match=r"\(pull = 2\): the momentum of joint 'base' of 'craft' is not conserved: gravity"):
        pf.run(system, v=v, parameters={"pull": 2.0}, **KEEP)


def test_a_run_that_departs_from_the_full_equations_warns():
    """A mode that switches on during the run takes the rotor out of balance, by 1e-3 m at once."""
    m = swaying()
    start = {"v": np.r_[0, 0, 0, 0.3, 0.5, 1.0, 3.0]}
    lost = {"switches": {"off": lambda k: 1e-3}}
    with pytest.warns(
        pf.RunWarning, match="departs from that of the full equations, which do not conserve the momentum of 'spin'"
    ):
        r = pf.run(pf.reduce(m), **start, **lost, **KEEP)
    full = pf.run(m, **start, **lost, **KEEP)
    off = float(np.abs(r.q - full.q)[-1, 7])
    # The mode also changes at once which momentum the state stands for; that is another effect.
    assert off > 1e-3 and float(r.reduction_error) > 1e-3
    assert float(np.abs(r.momentum_rate_error).max()) > 1e-7
    even = pf.run(pf.reduce(m), **start, **KEEP)
    assert float(even.reduction_error) < 1e-9 and even.momentum_rate_error_entry.values.tolist() == ["spin"]
    assert even.momentum_drift_entry.values.tolist() == list(m.v_names)


def test_a_wrong_symmetry_shows_in_the_run(monkeypatch):
    """If a momentum were wrongly taken for conserved, the run would report the error."""
    m = craft(1e-3)
    found = plan(m, None)
    monkeypatch.setattr(reduction, "planned", lambda *_: Moves(found._replace(conserved=tuple(range(7))), None))
    q, v = m.neutral(), np.r_[0, 0, 0, 0.3, 0.5, 1.0, 3.0]
    full = pf.run(m, q, v, **KEEP)
    with pytest.warns(pf.RunWarning, match="momentum of 'spin'"):
        r = pf.run(reduction._reduced(m, None), q, v, **KEEP)
    off = float(np.abs(r.q - full.q)[-1, 7])
    assert off > 1e-4 and 0.5 < float(r.reduction_error) / off < 2


def drifting(drift, rate_error):
    """A result of two runs at 0, 1 and 3 s with this drift of the momenta 'a' and 'b' and this rate error of 'b' (runs,
    times, entries)."""
    dims = ("run", "time")
    data = {"momentum_drift": ((*dims, "momentum_drift_entry"), np.array(drift, float)),
            "momentum_rate_error": ((*dims, "momentum_rate_error_entry"), np.array(rate_error, float))}  # fmt: skip
    entries = {"momentum_drift_entry": ["a", "b"], "momentum_rate_error_entry": ["b"]}
    return Draft(data, {"time": ("time", np.array([0.0, 1.0, 3.0]))} | entries, {})


def test_reduction_error_by_drift_and_by_errors_of_rates(recwarn):
    """With inertias 2 + q and 4, the drift of a momentum is integrated once and a rate error twice, and both only until a
    run stops."""
    m = pf.mechanism("a", [pf.body("a", 1.0)], [pf.joint("a", "prismatic", "world", "a")])
    system = SimpleNamespace(mechanism=m, inertia=lambda T: ca.vertcat(2 + T.q[0], 4))
    start = np.array([[0.0], [2.0]]), np.zeros((1, 1)), np.zeros((1, 0)), 0.0
    r = drifting([[[2e-3, 0], [-2e-3, 0], [np.nan, np.nan]], np.zeros((3, 2))], [np.zeros((3, 1)), np.full((3, 1), -4e-3)])
    warn_of_drift(r, system, *start)
    off = r.labelled().reduction_error
    close(off, [1e-3 + 1e-3, (0.5 + 4) * 1e-3], 1e-12, "of each run")
    assert off.dims == ("run",) and off.attrs["units"] == "m, rad"
    assert off.attrs["meaning"].endswith("that of the full equations")
    (message,) = [str(w.message) for w in recwarn.list]
    assert "the momentum of 'b': at the end it is off by some 0.0045 m or rad there, in run 1 of 2 the most" in message
    for off, many in ((0.9e-6, 1), (1.1e-6, 2)):  # on both sides of 1e-6, below which there is no warning
        little = drifting([np.zeros((3, 2)), [[0, 0], [off * 4 / 1.5, 0], [0, 0]]], np.zeros((2, 3, 1)))
        warn_of_drift(little, system, *start)
        close(little["reduction_error"], [0, off], 1e-12, "a little")
        assert len(recwarn.list) == many
    warn_of_drift(none := Draft({"momentum_rate_error": little.data["momentum_rate_error"]}, little.coords, {}), system, *start)
    assert len(recwarn.list) == 2 and "reduction_error" not in none


# -- far away and fast --------------------------------------------------------------------------------------------


def carrying(gravity=(0, 0, 0), **more):
    """A satellite with an arm and a balanced wheel."""
    m = satellite(gravity, actuators=[], **more)
    wheel = pf.body("wheel", 0.3, inertia=(0.002, 0.002, 0.003))
    place = pf.pose((0.1, -0.2, 0.3), rpy=(0.3, 0.2, 0.1))
    hinge = pf.joint("wheel", "revolute", "hull", "wheel", placement=place)
    return m.with_(bodies=[*m.bodies, wheel], joints=[*m.joints, hinge])


FAR = {"duration": 0.5, "step": 1e-3, "every": 50}


@pytest.mark.parametrize("gravity", [(0, 0, 0), (0.2, -9.7, 1.3)], ids=["in orbit", "falling"])
def test_in_orbit_a_machine_moves_as_at_the_origin(gravity):
    m = carrying(gravity)
    q, v = pf.random_configuration(m, np.random.default_rng(3)), np.random.default_rng(4).normal(size=m.nv)
    away, fast = q.copy(), v.copy()
    away[:3] = 7e6, -1e6, 2e6
    turn = pf.forward_kinematics(m, q)["hull"].rotation
    fast[:3] += turn.T @ [0, 7.5e3, 100.0]
    home, there = pf.run(pf.reduce(m), q, v, **FAR), pf.run(pf.reduce(m), away, fast, **FAR)
    close(there.q[:, 3:], home.q[:, 3:], 1e-11, "attitude and shape")
    close(there.v[:, 3:], home.v[:, 3:], 1e-11, "their rates")
    close(home.q, pf.run(m, q, v, **FAR).q, 1e-9, "q of the full machine")
    turning = there.momentum.values[:, 3:6]
    assert (turning == turning[0]).all() and (there.momentum.values[:, -1] == there.momentum.values[0, -1]).all()
    assert np.abs(there.momentum_drift.values[:, 3:]).max() < 1e-11
    assert float(there.reduction_error) < 1e-9


def test_springs_between_bodies_keep_their_digits_far_away():
    """Their forces depend only on what lies between their ends: along a joint that carries both ends they are exactly zero."""
    ends = {"point_a": (0.5, 0.2, 0.3), "point_b": (0.1, 0.2, 0.1), "stiffness": 40.0}
    springs = [pf.spring("long", "hull", "right", rest=0.4, damping=0.3, **ends), pf.spring("short", "right", "wheel", **ends)]
    m = carrying().with_(forces=springs)
    q, v = pf.random_configuration(m, np.random.default_rng(3)), np.random.default_rng(4).normal(size=m.nv)
    away, fast = q.copy(), v.copy()
    away[:3] = 7e6, -1e6, 2e6
    fast[:3] += pf.forward_kinematics(m, q)["hull"].rotation.T @ [0, 7.5e3, 100.0]
    T = pf.symbols(m)
    pushed = np.array(ca.Function("pushed", [T.q, T.v], [ca.densify(T.f)])(away, fast)).ravel()
    assert (pushed[:6] == 0).all() and (np.abs(pushed[6:]) > 0.1).all()
    # The expected force follows from a potential of the same lengths, near the origin.
    at = {"hull": (0.5, 0.2, 0.3), "right": (0.1, 0.2, 0.1)}

    def potential(k):
        line = k.position("right", at["right"]) - k.position("hull", at["hull"])
        short = k.position("wheel", at["right"]) - k.position("right", at["hull"])
        return 20 * (ca.norm_2(line) - 0.4) ** 2 + 20 * ca.sumsqr(short)

    def friction(k):
        line = k.position("right", at["right"]) - k.position("hull", at["hull"])
        l_dot = ca.dot(line, k.velocity("right", at["right"]) - k.velocity("hull", at["hull"])) / ca.norm_2(line)
        return 0.3 * l_dot**2 / 2

    other = pf.symbols(m.with_(forces=[pf.forces.potential("V", potential), pf.forces.dissipation("R", friction)]))
    home = np.array(ca.Function("home", [other.q, other.v], [ca.densify(other.f)])(q, v)).ravel()
    close(pushed, home, 1e-11, "force")


@pytest.mark.parametrize("integrator", ["rk4", "tr-bdf2"])
def test_connected_bodies_move_at_any_speed_as_at_rest(integrator):
    """Two free bodies connected by a ball joint, 7000 km away at 7.5 km/s. [Galilei: the same motion, carried along]"""
    bodies = [pf.body("a", 3.0, com=(0.05, 0, 0.02), inertia=(0.1, 0.2, 0.25)), pf.body("b", 2.0, com=(0, 0.1, 0), inertia=0.1)]
    # These numbers are exact at 7e6 m too; otherwise the start would be put onto the closure by a different rotation.
    hand = {"placement_a": (0.5, 0, 0), "placement_b": (-0.375, 0.125, 0)}
    m = pf.mechanism(
        "pair", bodies, [pf.joint(n, "free", "world", n) for n in "ab"],
        constraints=[pf.closure("hand", "spherical", "a", "b", **hand)], gravity=(0, 0, 0),
    )  # fmt: skip
    turning, upright = np.array([[0.5, -0.25, 0.5], [0.125, 0.5, 0.25]]), [0, 0, 0, 1.0]
    way = np.cross(turning[0], hand["placement_a"]) - np.cross(turning[1], hand["placement_b"])
    beside = np.subtract(hand["placement_a"], hand["placement_b"])

    def moved(system, far, speed):
        far, speed = np.array([0, far, 0]), np.array([speed, 0, 0])
        q, v = np.r_[far, upright, far + beside, upright], np.r_[speed, turning[0], speed + way, turning[1]]
        how = {"duration": 0.1, "step": 2e-3, "every": 10, "backend": "interpreter", "scheme": pf.Scheme(integrator=integrator)}
        r = pf.run(system, q, v, **how)
        places = r.q.values.reshape(-1, 2, 7)
        places[:, :, :3] -= far + speed * r.time.values[:, None, None]
        return places

    home = moved(m, 0, 0)
    for system in (m, pf.reduce(m)) if integrator == "rk4" else (m,):
        close(moved(system, 0, 7500.0), home, 1e-9, "fast")
        close(moved(system, 7e6, 7500.0), home, 1e-7, "far away too, where a position has nine digits behind the point")


def test_a_momentum_about_a_distant_frame_loses_digits_and_warns():
    m = satellite(actuators=[])
    for away, warns in ((0.0, False), (7e6, True)):
        q, v = m.neutral(), np.r_[0, away / 1e3, 0, 0.3, 0.5, 1.0, 0.2, -0.4]
        q[0] = away
        system = pf.reduce(m, momentum=pf.reduction.momentum_map(m, q, v))
        if warns:
            with pytest.warns(
                pf.RunWarning, match="departs from that of the full equations, which do not conserve the momentum of 'flight.w"
            ):
                assert float(pf.run(system, q, v, **KEEP).reduction_error) > 1e-6
        else:
            assert float(pf.run(system, q, v, **KEEP).reduction_error) < 1e-9


def test_momenta_on_a_falling_machine_are_conserved():
    """A car on rails that fall conserves its momentum along them while nothing pushes it."""
    from tests.simulate.test_reduced_rates import checked_signals

    bodies = [pf.body("frame", 3.0, com=(0.1, 0.2, 0), inertia=0.2), pf.body("car", 1.0, com=(0.1, 0, 0.2), inertia=0.1),
              pf.body("arm", 0.5, com=(0.2, 0.1, 0), inertia=0.05)]  # fmt: skip
    joints = [pf.joint("rails", "translation", "world", "frame", placement=pf.pose((0, 0, 0), rpy=(0.3, 0.2, 0.1))),
              pf.joint("car", "prismatic", "frame", "car", axis=(0.6, 0, 0.8)),
              pf.joint("arm", "revolute", "frame", "arm", axis=(0, 0.6, 0.8))]  # fmt: skip
    motors = [pf.forces.thruster("jet", "frame", axis=(1, 0.5, 0.2)), pf.actuator("winch", "car")]
    m = pf.mechanism("rails", bodies, joints, actuators=motors, gravity=(0.5, -1.0, -9.81))
    assert "car" in [m.v_names[i] for i in plan(m, None).conserved]
    random = np.random.default_rng(8)
    signals = checked_signals(pf.reduce(m), pf.random_configuration(m, random), random.normal(size=5), random.normal(size=2))
    close(signals["momentum_drift"], 0 * signals["momentum_drift"], 1e-12, "momentum of the bodies", scale=1.0)
