"""Stiff joints in states of momenta, linearisation about such a state, and the springs and dampers that are too fast for
the steps."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import pfaffian as pf
from pfaffian.control.open_loop import open_loop
from pfaffian.simulate.error.fastest import fastest
from studies.chhabra_control import ROVER_AT, rover
from studies.chhabra_robots import robot
from tests.simulate.test_closed_bases import LOOPS, four_bar
from tests.tolerance import PEER, close

STIFF = pf.Scheme(integrator="tr-bdf2")
HUB, DISC, TIP = 0.8, 0.3, 0.1
"""Moments of inertia about one axle [kg m^2]."""


def turbine(stiffness=0.0, damping=0.0, base="planar", tip=(0.0, 0.0), **more) -> pf.Mechanism:
    """Three discs on one axle: a spring and a damper between hub and disc, another pair between disc and tip, and a motor
    between hub and disc."""
    bodies = [pf.body(n, 2.0, inertia=(J, J, J)) for n, J in (("hub", HUB), ("disc", DISC), ("tip", TIP))]
    joints = [
        pf.joint("base", base, "world", "hub"),
        pf.joint("shaft", "revolute", "hub", "disc", stiffness=stiffness, damping=damping),
        pf.joint("end", "revolute", "disc", "tip", stiffness=tip[0], damping=tip[1]),
    ]
    return pf.mechanism("turbine", bodies, joints, actuators=[pf.actuator("motor", "shaft")], gravity=(0, 0, 0), **more)


STATES = {"[q; v]": lambda m: m, "reduced": pf.reduce, "hamiltonian": pf.reduction.hamiltonian}


@pytest.mark.parametrize("state", STATES)
def test_a_stiff_shaft_in_closed_form(state):
    """Damped by 1e6 N m s the discs turn as one at once, with their momentum conserved; sprung by 1e9 N m the shaft twists
    by u / k."""
    one = STATES[state](turbine(damping=1e6, tip=(0, 1e5)))
    spinning = {"base.wz": 2.0, "shaft": 3.0, "end": -1.0}
    r = pf.run(one, None, spinning, duration=0.5, step=1e-2, scheme=STIFF)
    momentum = HUB * 2 + DISC * (2 + 3) + TIP * (2 + 3 - 1)
    close(r.v.sel(velocity="base.wz")[-1], momentum / (HUB + DISC + TIP), 1e-9, "speed")
    close(r.v.sel(velocity=["shaft", "end"])[-1], np.zeros(2), 1e-8, "relative speeds", 1)
    sprung = STATES[state](turbine(stiffness=1e9, damping=1e3, tip=(1e8, 1e3)))
    r = pf.run(sprung, u=[500.0], duration=0.5, step=1e-2, scheme=STIFF)
    close(r.q.sel(coordinate="shaft")[-1], 500 / 1e9, 1e-9, "twist")
    close(r.v[-1], np.zeros(len(r.velocity)), 1e-12, "at rest", 1)


def test_a_stiff_hinge_in_a_closed_chain_and_on_a_rover():
    """The reduced motion equals that of [q; v] at steps a hundred times longer than the hinge's time constant, to order
    two."""
    m = four_bar(LOOPS["revolute"])
    m = m.with_(joints=[*m.joints[:2], pf.joint("j2", "revolute", "a", "b", placement=(0.3, 0, 0), damping=300.0), m.joints[3]])
    closed = pf.assemble(m, {"j1": 1.0}).q
    v = pf.assemble(m, closed, 0.5 * np.random.default_rng(1).normal(size=m.nv)).v
    r = rover()
    arm = r.joints[-1]
    r = r.with_(joints=[*r.joints[:-1], pf.joint(arm.name, "revolute", arm.parent, arm.child, axis=(1, 0, 0),
                                                 placement=arm.placement, damping=1e4)])  # fmt: skip
    for machine, at, moving in ((m, closed, v), (r, *ROVER_AT)):
        given = {"duration": 0.2, "every": 1000, "scheme": STIFF}
        fine = pf.run(machine, at, moving, step=2e-4, **given).q[-1].values
        off = []
        for h in (4e-3, 2e-3):
            reduced = pf.run(pf.reduce(machine), at, moving, step=h, **given | {"every": round(0.2 / h)})
            assert pf.results.causes(reduced) == ["finished"]
            off.append(np.abs(reduced.q[-1].values - fine).max())
        assert off[1] < min(1e-5, off[0] / 2.5)
        assert float(np.abs(reduced.momentum_drift).max() if "momentum_drift" in reduced else 0) < 1e-10


def test_linearisation_about_a_state_of_momenta():
    """A and B are those of [q; v]; at one momentum only the shaft's frequencies and the place of the hub remain."""
    k = 7.0
    m = turbine(stiffness=k, tip=(1e3, 0))
    near, reduced = pf.linearise(m), pf.linearise(pf.reduce(m))
    close(reduced.A, near.A, 0, "A")
    close(reduced.B, near.B, 0, "B")
    at_momentum = pf.linearise(pf.reduce(m, momentum=[0.0, 0.0, 0.0]))
    assert len(near.states) == 10 and at_momentum.states == tuple(f"r{i}" for i in range(7))
    M = np.diag([DISC + TIP, TIP]) + [[0, TIP], [TIP, 0]]
    seen = M - np.outer(row := np.array([DISC + TIP, TIP]), row) / (HUB + DISC + TIP)
    squares = np.linalg.eigvals(np.linalg.solve(seen, np.diag([k, 1e3])))
    found = np.sort(at_momentum.frequencies)
    close(found[3:], np.repeat(np.sort(np.sqrt(squares)), 2), PEER, "frequencies")
    close(found[:3], np.zeros(3), 1e-9, "places of the hub", 1)
    shape = np.linalg.solve(seen, np.diag([k, 1e3]))
    close((at_momentum.dv @ at_momentum.A)[3:], -shape @ at_momentum.dq[3:], PEER, "accelerations")
    # The motor turns the shaft alone, against its effective inertia.
    close((at_momentum.dv @ at_momentum.B)[3:, 0], np.linalg.solve(seen, [1, 0]), PEER, "B")
    with pytest.raises(pf.ModelError, match=r"show does not undo enter: v .base\.wz. went in as 1"):
        pf.linearise(pf.reduce(m, momentum=[0.0, 0.0, 0.0]), v={"base.wz": 1.0})


def test_energy_of_a_system_is_that_of_its_machine():
    m = turbine(stiffness=7.0)
    for system in (pf.reduce(m), pf.reduction.hamiltonian(m)):
        E = pf.energy(system, {"shaft": 0.3}, {"base.wz": 2.0})
        close([E.kinetic, E.potential], [(HUB + DISC + TIP) * 2, 7 * 0.3**2 / 2], PEER, "E")
    with pytest.raises(pf.ModelError, match="a Mechanism is needed"):
        pf.energy("turbine")


def stiff_words(m, **given) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        pf.run(m, duration=given.pop("duration", 0.01), **given)
    return [str(x.message) for x in caught if "time constants shorter" in str(x.message)]


@pytest.mark.parametrize("state", STATES)
def test_springs_and_dampers_faster_than_the_step_are_named(state):
    """The rates are d (1/J1 + 1/J2) for the discs on either side of a damper, and sqrt(k (1/J1 + 1/J2)) for a spring;
    slower ones are not named."""
    make, base, tip = STATES[state], 1 / HUB + 1 / DISC, 1 / DISC + 1 / TIP
    d, k = 50.0, 4e4
    m = make(turbine(damping=d, tip=(k, 0)))
    rates = d * base, np.sqrt(k * tip)
    assert rates[0] < rates[1]
    (words,) = stiff_words(m, step=1.01 / rates[0], duration=1.01 / rates[0])
    assert words.startswith(
        f"the spring of joint 'end', {rates[1]:.3g} rad/s, the damper of joint 'shaft', {rates[0]:.3g} 1/s of"
    )
    (words,) = stiff_words(m, step=0.99 / rates[0], duration=0.99 / rates[0])
    assert "shaft" not in words and "tr-bdf2" in words
    assert not stiff_words(m, step=0.99 / rates[1], duration=0.99 / rates[1])
    assert not stiff_words(m, step=0.1, duration=0.1, scheme=STIFF)


def test_the_stiffest_run_counts_and_a_force_has_its_name():
    d = pf.Parameter("d", 1.0)
    m = turbine(damping=d.symbol, parameters=[d])
    (words,) = stiff_words(m, step=0.01, parameters={"d": [1.0, 2.0, 80.0]})
    assert f"the damper of joint 'shaft', {80 * (1 / HUB + 1 / DISC):.3g} 1/s of" in words
    brake = pf.forces.dissipation("brake", lambda k: 80.0 * k.joint_rate("end") ** 2 / 2)
    (words,) = stiff_words(turbine(forces=[brake]), step=0.01)
    assert words.startswith(f"the damper of dissipation 'brake', {80 * (1 / DISC + 1 / TIP):.3g} 1/s of")


def test_parts_beyond_six_are_counted():
    brakes = [pf.forces.dissipation(f"brake {i}", lambda k: 80.0 * k.joint_rate("end") ** 2 / 2) for i in range(8)]
    (words,) = stiff_words(turbine(forces=brakes), step=0.01)
    assert words.count("the damper of dissipation") == 6 and " and 2 more of" in words


def test_the_name_of_the_fastest_part_is_not_affected_by_rounding_of_speeds():
    """Tiago's wrist has a damping of 1 N m s; speeds of 1e-17 at other joints once made the warning name a wheel."""
    m = robot("tiago_description/robots/tiago_no_hand.urdf", base="free").with_(gravity=(0, 0, 0))
    v = np.zeros(m.nv)
    v[m.v_names.index("torso_lift_joint")] = 0.1
    for noise in (0.0, 1e-17):
        v = v + noise * np.random.default_rng(0).normal(size=m.nv)
        found = fastest(m, open_loop(m), m.neutral(), v, np.zeros(m.nu), np.zeros(0), 0.0, np.array(m.p_defaults))
        assert found.name == "damper of joint 'arm_7_joint'"
