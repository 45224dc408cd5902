"""Derivatives of runs refuse what jumps at an instant that depends on the state, by name, and take kinks."""

import casadi as ca
import numpy as np
import pytest

import pfaffian as pf
from pfaffian import ModelError, control
from pfaffian.control.open_loop import open_loop
from pfaffian.differentiation.jumps import jumping
from pfaffian.simulate.step.simulation import Simulation
from pfaffian.states.system import as_system

BEYOND = 40.0  # m, far from where a search begins


def sled(*forces, actuators=(), **kwargs):
    """Two bodies on rails beside each other, with forces on them."""
    bodies = [pf.body("sled", 2.0), pf.body("tender", 1.0)]
    joints = [pf.joint(f"{b.name} rail", "prismatic", "world", b.name, axis=(1, 0, 0)) for b in bodies]
    forces = [pf.forces.generalised_force(f"force {i}", f) for i, f in enumerate(forces)]
    return pf.mechanism("sled", bodies, joints, forces=forces, actuators=actuators, **kwargs)


JUMPING = {
    "a brake beyond a mark": lambda k: ca.vertcat(ca.if_else(k.q[0] > BEYOND, -3 * k.v[0], 0), 0),
    "dry friction": lambda k: ca.vertcat(-ca.sign(k.v[0] - k.v[1]), ca.sign(k.v[0] - k.v[1])),
    "one of two springs": lambda k: ca.vertcat(0, ca.if_else(k.q[0] ** 2 + k.q[1] ** 2 < 1, -k.q[1], -2 * k.q[1])),
    "steps": lambda k: ca.vertcat(ca.floor(4 * k.q[1]), 0),
    "a branch of an angle": lambda k: ca.vertcat(ca.atan2(k.q[1], k.q[0]), 0),
}
STEADY = {
    "one-sided spring": lambda k: ca.vertcat(-1e6 * ca.fmax(k.q[0] - 1, 0), 0),
    "the same by if_else": lambda k: ca.vertcat(ca.if_else(k.q[0] > 1, -1e6 * (k.q[0] - 1), 0), 0),
    "drag": lambda k: ca.vertcat(-ca.sign(k.v[0]) * k.v[0] ** 2, -ca.fabs(k.v[1]) * k.v[1]),
    "cogs": lambda k: ca.vertcat(ca.sin(2 * ca.pi * (3 * k.q[0] - ca.floor(3 * k.q[0]))), 0),
    "the direction of an angle": lambda k: ca.vertcat(ca.cos(ca.atan2(k.q[1], k.q[0])), 0),
    "with time alone": lambda k: ca.vertcat(ca.if_else(k.t > 0.3, 1, 0), 0),
}


@pytest.mark.parametrize("name", [*JUMPING, *STEADY])
def test_what_jumps_is_told_from_what_has_a_kink(name):
    m = sled(lambda k: -k.q, {**JUMPING, **STEADY}[name])
    scheme = pf.Scheme(integrator="rk4")
    assert jumping(Simulation(as_system(m), scheme, open_loop(m))) == (["force 1"] if name in JUMPING else [])


CALLS = {
    "rollout": lambda m: pf.calculus.rollout(m, [0.1, 0.2], step=0.01, steps=2, backend="numpy"),
    "accurate_rollout": lambda m: pf.calculus.accurate_rollout(m, [0.1, 0.2], accuracy=1e-6, duration=0.1, backend="numpy"),
    "step_derivatives": lambda m: pf.calculus.step_derivatives(m, [0.1, 0.2], step=0.01, backend="numpy"),
    "casadi_function": lambda m: pf.casadi_function(m, "step", step=0.01),
}


@pytest.mark.parametrize("call", CALLS)
def test_derivatives_refuse_a_jump_by_name(call):
    with pytest.raises(ModelError, match=f"{call}: force 0 jumps .* tanh"):
        CALLS[call](sled(JUMPING["dry friction"]))


def test_a_law_and_a_row_that_jump():
    m = sled(actuators=[pf.actuator("push", "sled rail")])
    law = control.Control(lambda T, *_: control.Command(-ca.sign(T.kinematics.q[0])))
    with pytest.raises(ModelError, match="control law jumps"):
        pf.calculus.rollout(m, [0.1, 0.2], step=0.01, steps=2, control=law, backend="numpy")
    row = pf.nonholonomic("ratchet", lambda k: k.v[1] - ca.if_else(k.q[0] > 0, 2, 1) * k.v[0])
    with pytest.raises(ModelError, match="ratchet jumps"):
        pf.calculus.rollout(sled(constraints=[row]), [0.1, 0.2], step=0.01, steps=2, backend="numpy")


def test_the_derivative_through_a_kink_is_that_of_the_motion():
    """A spring on one side, met after the start: difference quotients of two motions agree."""
    m, h = sled(STEADY["the same by if_else"]), 1e-6
    stiff = {"step": 1e-4, "steps": 400, "backend": "interpreter"}
    q, v = np.array([0.98037, 0.0]), np.array([1.0, 0.0])
    r = pf.calculus.rollout(m, q, v, **stiff)
    slope = r.jvp(dq=[1.0, 0.0])
    a, b = (pf.calculus.rollout(m, q + [way * h, 0], v, **stiff) for way in (1, -1))
    assert float(r.q[-1, 0]) < 1 < float(np.max(r.q[:, 0]))
    np.testing.assert_allclose(slope.q[-1], (a.q[-1] - b.q[-1]) / (2 * h), rtol=1e-4, atol=1e-6)


def test_functions_of_other_libraries_refuse_jumps_and_events():
    """Those of JAX and CasADi, of a step; accelerations alone have derivatives on either side of a jump."""
    jax = pytest.importorskip("jax")
    row = pf.constraints.active_while(pf.nonholonomic("clutch", lambda k: k.v[1] - k.v[0]), lambda k: k.q[0] > 0.2)
    stop = pf.forces.rebound("bumper", lambda k: k.q[1] - k.q[0] + 1, 0.5)
    refused = {
        "force 0 jumps": sled(JUMPING["steps"]),
        "clutch": sled(constraints=[row]),
        "bumper": sled().with_(forces=[stop]),
    }
    with jax.enable_x64(True):
        for message, m in refused.items():
            for function in (pf.bridges.jax_function, pf.casadi_function):
                with pytest.raises(ModelError, match=message):
                    function(m, "step", step=0.01)
        f = pf.bridges.jax_function(sled(JUMPING["dry friction"]), "forward_dynamics", backend="numpy")
        slope = jax.jacobian(f, argnums=1)(np.zeros(2), np.array([1.0, 0.5]))
    np.testing.assert_array_equal(slope, np.zeros((2, 2)))
