"""Laws that need every velocity actuated: they distribute over redundant motors and refuse motors that drive too little."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest

import pfaffian as pf
from pfaffian import control
from tests.control.test_allocation_motors import arm, boat, tilted
from tests.tolerance import close

GAINS = {"stiffness": 9.0, "damping": 6.0}


def on(*joints: str, **more) -> pf.Mechanism:
    """The two-joint arm with a motor on each of these joints; all gears differ."""
    return arm().with_(actuators=[pf.actuator(f"m{i}", name, gear=1.0 + i) for i, name in enumerate(joints)], **more)


def on_wall(m: pf.Mechanism) -> pf.Mechanism:
    """The arm with its tip on a wall."""
    return m.with_(constraints=[pf.holonomic("wall", lambda k: k.position("lower", (0.4, 0, 0))[0] - 0.8)])


def tip(*axes) -> pf.Mechanism:
    """The arm driven only by thrusters at its end, which drive one motion where the arm is stretched."""
    thrusters = [pf.forces.thruster(f"t{i}", "lower", axis=axis, point=(0.4, 0, 0)) for i, axis in enumerate(axes)]
    return arm().with_(actuators=thrusters)


TWO_WAYS, THREE_WAYS = ((1, 0, 0), (0, 0, 1)), ((1, 0, 0), (0, 0, 1), (0.6, 0, 0.8))
MACHINES = {
    "one motor a joint": on("shoulder", "elbow"),
    "two motors on a joint": on("shoulder", "shoulder", "elbow"),
    "five motors on two joints": on("shoulder", "elbow", "shoulder", "elbow", "elbow"),
    "two motors on a joint, on a wall": on_wall(on("shoulder", "shoulder", "elbow")),
    "three thrusters": tip(*THREE_WAYS),
    "boat of four": boat(4),
    "tilted, six": tilted(6),
    "tilted, eight": tilted(8),
}


def laws(m: pf.Mechanism) -> dict[str, control.Control]:
    if m.name == "drone":
        task = control.stack(
            control.point("body", (0, 0, 0)), control.point("body", (1, 0, 0), (1, 2)), control.point("body", (0, 1, 0), (2,))
        )
        goal = control.set_point([0.1, 0.2, 0.3, 0.2, 0.3, 0.3])
    else:
        task, goal = control.whole(m), control.set_point(np.full(m.nq, 0.1))
    return {
        "computed torque": control.computed_torque(task, goal, **GAINS),
        "operational space": control.operational_space(task, goal, **GAINS),
    }


def law_function(m: pf.Mechanism, law: control.Control):
    """Function of (q, v, t) that returns u, the law's faults, B, M and c - f."""
    T, none = pf.symbols(m), ca.SX(0, 1)
    terms = pf.Terms(m, T.q, T.v, ca.SX.zeros(m.nu, 1), T.t)
    x = law.law(terms, none, none, ca.SX.zeros(m.nv, 1))
    return ca.Function("law", [T.q, T.v, T.t], [x.u, x.faults, T.B, T.M, T.c - terms.f])


def state(m: pf.Mechanism, random: np.random.Generator):
    q = m.neutral()
    if m.quaternions:
        q[:3] = random.uniform(-0.3, 0.3, 3)
        q[3:] += random.uniform(-0.2, 0.2, 4)
        q[3:] /= np.linalg.norm(q[3:])
    else:
        q += random.uniform(0.2, 0.6, m.nq)
    return q, 0.5 * random.normal(size=m.nv)


@pytest.mark.parametrize("name", MACHINES)
@pytest.mark.parametrize("law", ["computed torque", "operational space"])
def test_redundant_inputs_are_the_smallest_that_give_the_motion(name, law):
    m = MACHINES[name]
    alone = m.with_(actuators=[pf.actuator(f"{j.name}{i}", j.name, component=i) for j in m.joints for i in range(j.kind.nv)])
    many, one = law_function(m, laws(m)[law]), law_function(alone, laws(alone)[law])
    for random in map(np.random.default_rng, range(3)):
        q, v = state(m, random)
        u, faults, B, *_ = (np.array(x) for x in many(q, v, 0.0))
        tau, none, single, *_ = (np.array(x) for x in one(q, v, 0.0))
        assert not faults.any() and not none.any()
        close(u, np.linalg.pinv(B, rcond=1e-9) @ single @ tau, 1e-9, "the smallest inputs")


@pytest.mark.parametrize("law", ["computed torque", "operational space"])
@pytest.mark.parametrize(
    ("m", "found"),
    [
        (on("shoulder", "shoulder"), r"\(m0, m1\) drive no motion of elbow;"),
        (on("elbow", "elbow", "elbow"), r"drive no motion of shoulder;"),
        (on_wall(on("shoulder", "shoulder", "shoulder")), "drive no motion of elbow;"),
        (on("elbow"), r"\(m0\) drive no motion of shoulder;"),
        (tip((1, 0, 0), (-1, 0, 0)), "drive no motion of "),
        (arm().with_(actuators=[]), r"\(none\) drive no motion of shoulder, elbow;"),
    ],
    ids=["two on the first", "three on the second", "on a wall", "one", "two thrusters of one direction", "none"],
)
def test_velocities_that_no_motor_drives_are_named(law, m, found):
    with pytest.raises(pf.ModelError, match=f"needs every velocity actuated, and the actuators .*{found}"):
        law_function(m, laws(m)[law])


def test_a_gear_that_is_zero_by_default_may_be_nonzero_in_a_run():
    gear = pf.Parameter("gear", 0.0)
    m = arm().with_(actuators=[pf.actuator("a", "shoulder"), pf.actuator("b", "elbow", gear=gear)], parameters=[gear])
    settings = {"duration": 2e-3, "step": 1e-3, "control": laws(m)["computed torque"], "backend": "interpreter"}
    assert pf.results.causes(pf.run(m, [0.5, 0.8], parameters={"gear": 2.0}, **settings)) == ["finished"]
    with pytest.warns(pf.RunWarning, match="drive every velocity"):
        r = pf.run(m, [0.5, 0.8], **settings)
    assert pf.results.causes(r)[0].endswith(
        "the motion without an actuator moves elbow; the actuators are a, b; lock what need not move, for instance 'elbow' by "
        "pf.locked"
    )
