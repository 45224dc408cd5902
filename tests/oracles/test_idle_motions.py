"""A leg with rods between ball joints: the rods turn about themselves, which nothing drives and nothing sees."""

import numpy as np
import pytest

import pfaffian as pf
from pfaffian import control
from pfaffian.control.idle import idle_motions
from pfaffian.errors import collected
from tests.tolerance import INTEGRATED, PEER_CONSTRAINED, close


def leg(
    *, com: float = 0.0, damping: float = 0.0, moments=(0.0005, 0.01, 0.01), motors=("left", "right"), ball: str = "spherical"
) -> pf.Mechanism:
    """A parallel ankle: two cranks move a foot on a universal joint by two rods with ball joints at both ends.

    com: distance of the rods' mass centres from their axes [m].   damping: of the balls at the cranks.   ball: kind of these.
    """
    bodies, joints, closures = [pf.body("foot", mass=1.2, com=(0.05, 0.01, -0.03), inertia=(0.004, 0.006, 0.005))], [], []
    joints.append(pf.joint("ankle", "universal", "world", "foot", placement=(0, 0, -0.3)))
    for name, side in (("left", 1.0), ("right", -1.0)):
        bodies += [
            pf.body(f"{name} crank", mass=0.2, com=(-0.02, 0, 0), inertia=(1e-4, 2e-4, 2e-4)),
            pf.body(f"{name} rod", mass=0.15, com=(com, 0, -0.15), inertia=moments[::-1]),
        ]
        more = {"damping": damping} if damping else {}
        joints += [
            pf.joint(name, "revolute", "world", f"{name} crank", placement=(0, 0.05 * side, 0), axis=(0, 1, 0)),
            pf.joint(f"{name} ball", ball, f"{name} crank", f"{name} rod", placement=(-0.06, 0, 0), **more),
        ]
        closures.append(pf.coincide(f"{name} heel", "foot", (-0.06, 0.05 * side, 0), f"{name} rod", (0, 0, -0.3)))
    actuators = [pf.actuator(n, n) for n in motors]
    return pf.mechanism("leg", bodies, joints, constraints=closures, actuators=actuators)


def moving(m: pf.Mechanism):
    return pf.assemble(m, {"ankle.about_x": 0.05, "ankle.about_y": 0.12}, v={"ankle.about_x": 0.4, "ankle.about_y": -0.7})


def test_idle_motions_are_found_and_only_these():
    found = idle_motions(leg())
    assert found.number == 2 and set(found.names) == {"left ball.wz", "right ball.wz"}
    assert idle_motions(leg(com=1e-3)).number == 0  # weight turns the rods
    assert idle_motions(leg(damping=0.1)).number == 0
    assert idle_motions(leg(ball="universal")).number == 0
    cart = pf.mechanism(
        "crane",
        [pf.body("cart", mass=1.0), pf.body("load", mass=1.0, com=(0, 0, -1))],
        [
            pf.joint("rail", "prismatic", "world", "cart", axis=(1, 0, 0)),
            pf.joint("rope", "revolute", "cart", "load", axis=(0, 1, 0)),
        ],
        actuators=[pf.actuator("motor", "rail")],
    )
    assert idle_motions(cart).number == 0


@pytest.mark.parametrize(
    ("com", "idle", "words"), [(1e-9, 2, ""), (1e-7, 2, "counted as zero"), (1e-6, 0, "counted as nonzero"), (1e-4, 0, "")]
)
def test_it_is_told_where_idle_motions_hardly_move_mass_centres(com, idle, words):
    with collected() as messages:
        assert idle_motions(leg(com=com)).number == idle
    told = [message for message in messages if "which motions without a motor move a mass centre" in message]
    assert bool(told) == bool(words) and all(words in message for message in told)


@pytest.mark.parametrize(("damping", "told"), [(1e-9, False), (1e-6, True), (1e-3, False)])
def test_it_is_told_where_hardly_any_force_acts_on_idle_motions(damping, told):
    with collected() as messages:
        idle_motions(leg(damping=damping))
    assert any("whether a force acts" in message for message in messages) == told


@pytest.mark.parametrize("moments", [(0.0005, 0.01, 0.01), (0.0005, 0.01, 0.0098)], ids=["slender", "flat"])
def test_inverse_dynamics_leaves_the_rods_to_themselves(moments):
    m = leg(moments=moments)
    at = moving(m)
    wanted = {"ankle.about_x": 2.0, "ankle.about_y": -1.0}
    u = pf.inverse_dynamics(m, at.q, at.v, wanted, complete=True)
    assert set(u.idle) == {"left ball.wz", "right ball.wz"}
    found = pf.forward_dynamics(m, at.q, at.v, u=u.u)
    reached = dict(zip(m.v_names, found.v_dot, strict=True))
    close([reached[n] for n in wanted], list(wanted.values()), PEER_CONSTRAINED, "accelerations of the foot")
    close(u.reaction, found.reaction, PEER_CONSTRAINED, "reaction")
    assert pf.inverse_dynamics(*_fixed(moments, wanted), complete=True).idle == ()


def _fixed(moments, wanted):
    """The leg whose rods cannot turn, at a state and with the accelerations of the foot."""
    m = leg(moments=moments, ball="universal")
    at = moving(m)
    return m, at.q, at.v, wanted


def test_a_motion_without_motor_that_is_seen_is_refused_with_the_way_out():
    m = leg(com=1e-3)
    at = moving(m)
    a = np.zeros(m.nv)
    spins = {f"{n} ball.wz": 0.0 for n in ("left", "right")}
    a = pf.constraints.complete_acceleration(m, at.q, at.v, {"ankle.about_x": 1.0, "ankle.about_y": 0.0} | spins)
    with pytest.raises(pf.errors.RunError, match=r"uncontrollable.*make '(left|right) ball' a universal joint.*pf\.locked"):
        pf.inverse_dynamics(m, at.q, at.v, a)
    with pytest.raises(pf.errors.RunError, match=r"uncontrollable.*(left|right) ball|moves"):
        pf.inverse_dynamics(leg(motors=("left",)), at.q, at.v, a)


def test_a_law_steers_the_foot_and_its_result_names_what_is_idle():
    m = leg()
    law = control.projected(control.joints("ankle"), control.set_point([0.0, 0.0]), stiffness=25.0, damping=10.0)
    at = moving(m)
    r = pf.run(m, at.q, at.v, duration=0.3, step=1e-3, every=100, control=law, backend="interpreter")
    assert pf.results.causes(r) == ["finished"] and set(r.attrs["idle_motions"].split(", ")) == {
        "left ball.wz",
        "right ball.wz",
    }
    t = r["time"].values[:, None]
    e, e_dot = -np.array([[0.05, 0.12]]), -np.array([[0.4, -0.7]])
    error = (e + (e_dot + 5.0 * e) * t) * np.exp(-5.0 * t)  # critically damped
    close(r["task_error"].values, error, INTEGRATED * 1e2, "error")
    # A task that sees the spin of a rod cannot leave it idle.
    spin = control.projected(lambda k: k.rotation("left rod")[0, 0], control.set_point([1.0]), stiffness=25.0, damping=10.0)
    with pytest.warns(pf.errors.RunWarning, match="uncontrollable"):
        ended = pf.run(m, at.q, at.v, duration=0.1, step=1e-3, control=spin, backend="interpreter")
    assert int(ended["status"].values) != 0


def test_inputs_of_a_leg_with_rods_beside_pinocchio():
    pytest.importorskip("pinocchio")
    from tests.oracles.pinocchio_twin import twin_of
    from tests.oracles.test_pinocchio_loops import their_acceleration

    m = leg()
    at = moving(m)
    wanted = {"ankle.about_x": 2.0, "ankle.about_y": -1.0}
    found = pf.inverse_dynamics(m, at.q, at.v, wanted, complete=True)
    w = twin_of(m.with_(constraints=[], actuators=[]))
    theirs = their_acceleration(w, list(m.constraints), at.q, at.v, found.tau)
    names = [m.v_names.index(n) for n in wanted]
    close(theirs[names], list(wanted.values()), PEER_CONSTRAINED, "accelerations by Pinocchio")
