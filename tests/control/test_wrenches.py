"""Laws leave wrench inputs from outside at zero and compensate every force that has a value.

Each law gives its designed error dynamics exactly at a state of a spatial chain with springs, dampers, armature, a spring
between bodies and a constant wrench. A force that is forgotten or counted twice would show.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import casadi as ca
import numpy as np
import pytest

import pfaffian as pf
from pfaffian import control
from pfaffian.dynamics.quasivelocity import quasi_velocity, reduced_quasi_velocity
from pfaffian.terms.terms import Terms, symbols
from tests.random_mechanisms import Case, constrained, random_forces, random_tree
from tests.tolerance import close

DESIGNED = 1e-9
"""Tolerance of error dynamics at a state: law and plant each solve with M and the rows, with conditions up to 1e4."""

G_P, G_D = [90.0, 20.0, 35.0], [12.0, 7.0, 9.0]
FREE = ("j0", "j1", "j3")


class Loop(NamedTuple):
    """Closed loop of a law and its plant, in symbols.   T: terms under the law's inputs."""

    T: pf.Terms
    command: control.Command
    v_dot: ca.SX
    reaction: ca.SX

    def rate(self, x: ca.SX) -> ca.SX:
        """Time derivative of a function of q, v, t."""
        T = self.T
        return ca.jtimes(x, T.q, T.kinematics.q_dot) + ca.jtimes(x, T.v, self.v_dot) + ca.jacobian(x, T.t)


def close_loop(m: pf.Mechanism, law: control.Control) -> Loop:
    T = symbols(m)
    idle = Terms(m, T.q, T.v, ca.SX(m.nu, 1), T.t)
    none = ca.SX.zeros(m.nv, 1)
    seen = law.measured(idle, none) if law.measured else none
    command = law.law(idle, ca.SX.zeros(len(law.z), 1), ca.SX(0, 1), seen)
    closed = Terms(m, T.q, T.v, command.u, T.t)
    motion = pf.FORMULATIONS["gauss"](closed)
    return Loop(closed, command, motion.v_dot, motion.reaction)


def at(case: Case, loop: Loop, *values: ca.SX) -> list[np.ndarray]:
    T = loop.T
    f = ca.Function("f", [T.q, T.v, T.t], [ca.densify(x) for x in values])
    return [np.array(x).ravel() for x in f.call([ca.DM(case.q), ca.DM(case.v), ca.DM(case.t)])]


def wave(size: int, still: bool = False) -> control.Reference:
    """A reference that moves, or with `still` rests at its value at t = 1."""
    return control.function_of_time(lambda t: [0.3 * ca.sin((1 + i) * (1 if still else t) + i) for i in range(size)], size)


def second_order(loop: Loop, case: Case) -> tuple[ca.SX, ca.SX]:
    """e_ddot and its designed value -G_D e_dot - G_P e."""
    e, e_dot = (loop.command.signals[n] for n in ("task_error", "task_error_rate"))
    k = e.numel()
    return loop.rate(e_dot), -(ca.DM(G_D[:k]) * e_dot + ca.DM(G_P[:k]) * e)


def bounded(loop: Loop, case: Case) -> tuple[ca.SX, ca.SX]:
    """Both sides of eps^T eps_dot = -K_d |eps|^2, since Gamma_r is skew. [aghili08 (43)]"""
    eps = loop.command.signals["eps"]
    return ca.dot(eps, loop.rate(eps)), -4.0 * ca.sumsqr(eps)


def damped(loop: Loop, case: Case) -> tuple[ca.SX, ca.SX]:
    """Both sides of d/dt (|v_r|^2 + e^T K_p e) / 2 = -K_d |v_r|^2. [aghili08 (51)]"""
    T, e = loop.T, loop.command.signals["task_error"]
    x = quasi_velocity(T)
    y = reduced_quasi_velocity(T, x).P @ x.y
    return loop.rate((ca.sumsqr(y) + 30.0 * ca.sumsqr(e)) / 2), -4.0 * ca.sumsqr(y)


def forced(loop: Loop, case: Case) -> tuple[ca.SX, ca.SX]:
    """Error dynamics of the task and the multiplier, each with its designed value."""
    e = second_order(loop, case)
    lam = pf.constraints.minimum_norm_multipliers(loop.T, loop.reaction)
    return ca.vertcat(e[0], lam), ca.vertcat(e[1], 5 * ca.cos(loop.T.t))


gains = {"stiffness": G_P, "damping": G_D}
quasi = {"velocity_gain": 4.0, "position_gain": 30.0}
LAMBDA = control.function_of_time(lambda t: [5 * ca.cos(t)], 1)
all_joints = {"stiffness": [*G_P, 50.0], "damping": [*G_D, 14.0]}
Designed = Callable[[Loop, Case], tuple[ca.SX, ca.SX]]


def every_joint(loop: Loop, case: Case) -> tuple[ca.SX, ca.SX]:
    e, e_dot = (loop.command.signals[n] for n in ("task_error", "task_error_rate"))
    return loop.rate(e_dot), -(ca.DM([*G_D, 14.0]) * e_dot + ca.DM([*G_P, 50.0]) * e)


def laws(case: Case) -> dict[str, tuple[control.Control, bool, Designed]]:
    """Name -> law, whether it accounts for constraints, and its designed error dynamics."""
    task, row = control.joints(*FREE), "point-on-plane 0.vz"
    rest = control.set_point([0.1, -0.2, 0.3, 0.4])
    follow = pf.holonomic("follow", lambda k: ca.vertcat(k.joint("j1") - 0.3 * ca.sin(k.t), k.position("b3")[2] - 0.1 * k.t))
    servo = pf.servo(follow, ["motor j0", "motor j3"], stiffness=90.0, damping=12.0)
    return {
        "projected": (control.projected(task, wave(3), **gains), True, second_order),
        "hybrid": (control.hybrid_force(task, wave(3), LAMBDA, [row], **gains), True, forced),
        "tracking": (control.tracking(wave(4), **quasi), True, bounded),
        "regulation": (control.regulation(rest, **quasi), True, damped),
        "servo": (control.servo_control(servo), True, servo_error),
        "computed": (
            control.computed_torque(control.joints("j0", "j1", "j2", "j3"), wave(4), **all_joints),
            False,
            every_joint,
        ),
        "operational": (control.operational_space(task, wave(3), **gains, joint_damping=3.0), False, second_order),
    }


def servo_error(loop: Loop, case: Case) -> tuple[ca.SX, ca.SX]:
    phi, eta = (loop.command.signals[n] for n in ("task_error", "task_error_rate"))
    return loop.rate(eta), -(12.0 * eta + 90.0 * phi)


@cache
def chain() -> Case:
    """Four actuated joints in space, the tip on a fixed plane; every kind of force, and a wrench input."""
    random = np.random.default_rng(6)
    return constrained(random, ["revolute", "prismatic", "revolute", "revolute"], [-1, 0, 1, 2], ["point-on-plane"], [])


def free(case: Case, constraints: bool) -> Case:
    return case if constraints else Case(case.m.with_(constraints=[]), case.q, case.v, case.u, case.t)


@pytest.mark.parametrize("name", laws(chain()))
def test_a_law_compensates_every_force_that_has_a_value(name):
    case = chain()
    law, constraints, designed = laws(case)[name]
    case = free(case, constraints)
    loop = close_loop(case.m, law)
    got, expected, faults = at(case, loop, *designed(loop, case), loop.command.faults)
    assert not faults.any()
    close(got, expected, DESIGNED, f"designed error dynamics of {name}", np.abs(expected).max() + 1)


@pytest.mark.parametrize("name", laws(chain()))
def test_a_law_leaves_wrench_inputs_at_zero(name):
    case = chain()
    law, constraints, _ = laws(case)[name]
    case = free(case, constraints)
    still = case.m.with_(forces=[f for f in case.m.forces if f.name != "hand"])
    assert case.m.nu == still.nu + 6
    (u,), (u_alone,) = (at(case, loop, loop.command.u) for loop in (close_loop(case.m, law), close_loop(still, law)))
    assert u[: still.nu].tolist() == u_alone.tolist()
    assert not u[still.nu :].any()


def test_weights_apply_to_actuators_only():
    case = chain()
    assert control.length_weights(case.m, 0.5).tolist() == [4.0, 1.0, 4.0, 4.0]
    law = control.projected(control.joints(*FREE), wave(3), **gains, weight=[1.0, 2.0, 3.0, 4.0])
    assert close_loop(case.m, law).command.u.shape == (case.m.nu, 1)
    wrong = control.projected(control.joints(*FREE), wave(3), **gains, weight=np.ones(case.m.nu))
    with pytest.raises(pf.ModelError, match="4 numbers are needed, got 10"):
        close_loop(case.m, wrong)


@pytest.mark.parametrize("law", ["computed", "operational"])
def test_a_law_that_needs_every_joint_driven_names_the_undriven_one(law):
    case = free(chain(), False)
    m = case.m.with_(actuators=case.m.actuators[:3])
    with pytest.raises(pf.ModelError, match=r"\(motor j0, motor j1, motor j2\) drive no motion of j3; see actuate_all"):
        close_loop(m, laws(case)[law][0])


def test_inverse_dynamics_takes_motors_only():
    """With wrenches but no actuators every joint counts as driven; a velocity that the motors leave undriven is named."""
    m = chain().m.with_(constraints=[], actuators=[])
    found = pf.inverse_dynamics(m, m.neutral(), np.zeros(4), np.ones(4))
    assert found.names == ("j0", "j1", "j2", "j3", *m.wrench_names)
    with pytest.raises(pf.RunError, match="moves j2; the actuators are j0, j1, j3"):
        pf.inverse_dynamics(m, m.neutral(), np.zeros(4), np.ones(4), actuated=["j0", "j1", "j3"])


def test_inputs_are_motors_then_wrenches():
    random = np.random.default_rng(0)
    m = random_forces(random, random_tree(random, ["revolute", "spherical"], [-1, 0]))
    assert m.motor_names == ("motor j0", "motor j1")
    assert m.wrench_names == ("hand.fx", "hand.fy", "hand.fz", "hand.nx", "hand.ny", "hand.nz")
    assert m.u_names == m.motor_names + m.wrench_names
    assert len(m.u_units) == m.nu
