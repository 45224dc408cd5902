"""Zero dynamics of outputs: at a state, along a motion, and beside conserved momenta. [chhabra14 5.3]"""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest

import pfaffian as pf
from pfaffian import control
from pfaffian.errors import RunWarning
from studies.chhabra_control import BESIDE, L0, satellite, satellite_at, satellite_law, straight_at, straight_law, tip
from studies.chhabra_control import rover as plain_rover
from tests.tolerance import close

SPEED = pf.Parameter("speed", -0.3, "m/s")
TURN = pf.Parameter("turn", 0.0, "rad/s")
ROUND = pf.Parameter("round", 0.0)
"""1: the mass centre moves on a circle; 0: straight ahead."""


def centre(t):
    v, w = SPEED.symbol, TURN.symbol
    circle = ca.vertcat(ca.sin(w * t), 1 - ca.cos(w * t)) * ROUND.symbol / (w + 1 - ROUND.symbol)
    return ca.vertcat(L0, 0) + v * (circle + ca.vertcat(t, 0) * (1 - ROUND.symbol))


def hand(t):
    a = TURN.symbol * t
    x, y, z = BESIDE - [L0, 0, 0]
    return ca.vertcat(centre(t) + ca.vertcat(x * ca.cos(a) - y * ca.sin(a), x * ca.sin(a) + y * ca.cos(a)), z)


def rover():
    return plain_rover().with_(parameters=[SPEED, TURN, ROUND])


LAW = control.concurrent([
    control.output("rover", "position", centre, axes=(0, 1), at=(L0, 0, 0), stiffness=4, damping=4),
    control.output("lower", "position", hand, at=(0, 0.2, 0), stiffness=9, damping=6),
])  # fmt: skip


def on_both(heading, **numbers):
    """q and v of the rover with both outputs on their references."""
    m = rover()

    def off(k):
        return ca.vertcat(k.position("rover", (L0, 0, 0))[:2] - centre(k.t), k.position("lower", (0, 0.2, 0)) - hand(k.t))

    constrained = m.with_(constraints=[*m.constraints, pf.holonomic("on both", off)])
    found = pf.assemble(constrained, {"base.angle": heading}, parameters=numbers)
    return found.q, found.v


def along(heading, duration, **numbers):
    q, v = on_both(heading, **numbers)
    return pf.analysis.zero_dynamics_along(rover(), LAW, q, v, duration=duration, step=2e-3, every=50, parameters=numbers)


@pytest.mark.parametrize("speed", [0.3, -0.3])
def test_the_zero_dynamics_of_a_reversing_rover_are_unstable(speed):
    """Its heading obeys theta_dot = (V / l0) sin(beta - theta): one eigenvalue is -V / l0, those of the wheels are zero."""
    m, at = plain_rover(), straight_at(speed)
    inside = pf.analysis.zero_dynamics(m, straight_law(tip(m, at[0]), speed), *at)
    assert (inside.displacements, inside.speeds, inside.conserved) == (3, 0, 0) and inside.unstable == (speed < 0)
    close(sorted(inside.eigenvalues.real), sorted([-speed / 0.1, 0, 0]), 1e-7, "eigenvalues")


def test_growth_of_a_heading_disturbance_while_the_rover_turns():
    """By the variational equation of theta_dot = (V / l0) sin(beta - theta), d theta / d theta_0 = sin theta / sin theta_0,
    which grows about fiftyfold and returns; no output shows it."""
    with pytest.warns(
        RunWarning, match=r"a disturbance that changes no output grows 30\.3 times until t = 1\.7 s, mainly of psi"
    ):
        found = along(0.02, 3.0)
    heading = found.result.q.values[:, 2]
    growth = np.sin(heading) / np.sin(heading[0])
    assert growth.max() > 45 and found.unstable and len(found.time) == 31
    changed = np.array([z.dq[2] @ Phi for z, Phi in zip(found.at, found.transition, strict=True)])
    close(changed, np.outer(growth, found.at[0].dq[2]), 2e-7, "heading by heading")
    close(np.abs(found.result.output_error.values).max(), 0, 1e-10, "errors", 1)
    assert found.departure.max() < 1e-7
    close(found.at[0].eigenvalues.real.max(), 3, 1e-3, "the eigenvalue at its start")
    assert "until t = 1.7 s" in str(found)


def test_a_rover_that_goes_forwards_settles(recwarn):
    found = along(0.02, 1.0, speed=0.3)
    assert not found.unstable and not recwarn.list
    assert "grows 1" in str(found)
    heading = found.result.q.values[:, 2]
    changed = np.array([z.dq[2] @ Phi for z, Phi in zip(found.at, found.transition, strict=True)])
    close(changed, np.outer(np.sin(heading) / np.sin(heading[0]), found.at[0].dq[2]), 1e-7, "heading by heading")


def test_exponents_of_a_periodic_motion():
    """On a circle the heading lags by phi, sin phi = w l0 / V, and phi_dot = w - (V / l0) sin phi: the Floquet exponent of one
    round is -(V / l0) cos phi, those of the wheels' angles are zero."""
    V, w = 0.3, 2 * np.pi / 3
    lag = np.arcsin(w * L0 / V)
    found = along(-lag, 3.0, speed=V, turn=w, round=1.0)
    close(found.result.q.values[[0, -1], 2], [-lag, 2 * np.pi - lag], 1e-9, "heading")
    close(found.exponents.real, [0, 0, -V / L0 * np.cos(lag)], 2e-5, "exponents")


def test_conserved_momenta_are_not_part_of_the_zero_dynamics():
    """Six output coordinates leave a satellite six displacements and no speed; its six momenta are conserved at any value."""
    m = satellite()
    q, v, hand = satellite_at(m, 0.9)
    law = satellite_law(hand, (0.25, -0.2, 0.3))
    for rates in (v, np.zeros(m.nv)):
        inside = pf.analysis.zero_dynamics(m, law, q, rates)
        assert (inside.displacements, inside.speeds, inside.conserved) == (6, 0, 6)
        mu = [pf.momentum(m, q + e * inside.dq.T[i], rates + e * inside.dv.T[i]) for i in range(6) for e in (1e-5, -1e-5)]
        close(np.array(mu[::2]) - mu[1::2], np.zeros((6, 6)), 1e-12, "momentum", 1)
    assert "and 6 conserved momenta" in str(inside)
    close(np.abs(inside.eigenvalues), np.zeros(6), 1e-9, "at rest", 1)
    # With a thruster that turns the hull the law changes angular momentum; linear momentum is conserved.
    turned = m.with_(actuators=[*m.actuators, pf.actuator("jets", "flight", component=5)])
    inside = pf.analysis.zero_dynamics(turned, law, q, v)
    assert (inside.displacements, inside.speeds, inside.conserved) == (6, 3, 3)


def test_an_undriven_rotor_conserves_its_momentum():
    """Five motors drive five outputs; the sixth wheel turns freely and is symmetric about its axis, so that its momentum is the
    seventh conserved one."""
    m = satellite()
    m = m.with_(actuators=m.actuators[1:])
    q, v, hand = satellite_at(m, 0.9)
    v[6] = 5.0
    outputs = [
        control.output("base", "attitude", np.eye(3), stiffness=1, damping=1),
        control.output("elbow", "position", hand[:2], axes=(0, 1), at=(0, 0.3, 0), stiffness=1, damping=1),
    ]
    inside = pf.analysis.zero_dynamics(m, control.concurrent(outputs), q, v)
    assert (inside.displacements, inside.speeds, inside.conserved) == (7, 0, 7)


def test_outputs_that_leave_no_zero_dynamics():
    body = pf.body("slider", 1.0)
    m = pf.actuate_all(pf.mechanism("slide", [body], [pf.joint("x", "prismatic", "world", "slider")]))
    law = control.concurrent([control.output("slider", "position", 0.0, axes=(2,), stiffness=1, damping=1)])
    found = pf.analysis.zero_dynamics_along(m, law, duration=0.1, step=0.05, backend="numpy")
    assert found.at[0].A.shape == (0, 0) and not found.unstable and found.transition.shape == (3, 0, 0)
    assert str(found).startswith(
        "the outputs leave 0 displacements and 0 speeds\nalong 0.1 s: a disturbance that changes no output grows 0 times"
    )


def test_a_law_without_outputs_is_refused():
    m = satellite()
    with pytest.raises(pf.ModelError, match=r"the law records no output_error, velocity_error; control.concurrent does"):
        pf.analysis.zero_dynamics(m, control.Control(lambda T, z, w, y: control.Command(ca.SX(m.nu, 1))))


def test_exponents_do_not_depend_on_the_start_time():
    """A pendulum below a cart at rest has the exponents +-i sqrt(g / l) from any start time."""
    bodies = [pf.body("cart", 1.0), pf.body("bob", 0.5, com=(0, 0, -0.4))]
    joints = [pf.joint("x", "prismatic", "world", "cart", axis=(1, 0, 0)),
              pf.joint("swing", "revolute", "cart", "bob", axis=(0, 1, 0))]  # fmt: skip
    m = pf.mechanism("crane", bodies, joints, actuators=[pf.actuator("drive", "x")])
    law = control.concurrent([control.output("cart", "position", 0.0, axes=(0,), stiffness=1, damping=2)])
    for start in (0.0, 3.0):
        found = pf.analysis.zero_dynamics_along(m, law, duration=0.2, step=0.01, every=20, start=start, backend="numpy")
        close(found.time, [start, start + 0.2], 1e-12, "time")
        close(np.sort(found.exponents.imag), np.array([-1, 1]) * np.sqrt(9.81 / 0.4), 1e-5, "exponents")
        close(found.exponents.real, np.zeros(2), 1e-5, "their real parts", scale=1.0)
