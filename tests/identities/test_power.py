"""dE/dt equals the power of all nonconservative forces, along any motion, by exact derivatives without integration."""

from __future__ import annotations

import casadi as ca
import numpy as np
from hypothesis import given

import pfaffian as pf
from tests.identities.test_inertia import drawn_case, rate
from tests.oracles.test_formulations import well_posed
from tests.random_mechanisms import loops, matrices, trees
from tests.tolerance import POWER, close


def damping_power(T: pf.Terms) -> ca.SX:
    """Power of joint dampers, dampers between bodies and constant wrenches, by their definitions."""
    k, m = T.kinematics, T.mechanism
    rates = {j: k.joint_rate(j.name) for j in m.joints}
    P = -sum(ca.dot(v, j.damping @ v) for j, v in rates.items())
    for f in m.forces:
        if hasattr(f, "stiffness"):
            line = k.position(f.body_b, f.point_b) - k.position(f.body_a, f.point_a)
            P -= f.damping * rate(T, ca.norm_2(line)) ** 2
        elif f.value is not None:
            P += wrench_power(k, f, f.value)
    return P


def wrench_power(k: pf.Kinematics, w, value: ca.SX) -> ca.SX:
    turn = k.rotation(w.body) if w.axes == "LOCAL" else ca.SX.eye(3)
    force, moment = turn @ value[:3], turn @ value[3:]
    return ca.dot(force, k.velocity(w.body, w.point)) + ca.dot(moment, k.twist(w.body, "WORLD")[3:])


def input_power(T: pf.Terms) -> ca.SX:
    """Power of motors through their gears, and of the wrenches that are inputs."""
    k, m = T.kinematics, T.mechanism
    P = sum(a.gear * T.u[i] * k.joint_rate(a.joint)[a.component] for i, a in enumerate(m.actuators))
    hands = [f for f in m.forces if getattr(f, "value", 0) is None]
    for i, f in enumerate(hands):
        at = len(m.actuators) + 6 * i
        P += wrench_power(k, f, T.u[at : at + 6])
    return P


def powers(formulation: str) -> dict:
    """dE/dt and the powers whose sum it must be, for the motion by one formulation."""
    made: dict = {}

    def motion(T):
        return made.setdefault("motion", pf.FORMULATIONS[formulation](T))

    return {
        "kinetic": lambda T: rate(T, T.T, motion(T).v_dot),
        "potential": lambda T: rate(T, T.V),
        "damping": damping_power,
        "inputs": input_power,
        "reaction": lambda T: ca.dot(motion(T).reaction, T.v),
        "M": lambda T: T.M, "A": lambda T: T.A, "b": lambda T: T.b, "force": lambda T: T.force,
        "eta": lambda T: T.rows.eta, "phi": lambda T: T.rows.phi, "size": lambda T: T.row_size,
        "v_dot": lambda T: motion(T).v_dot,
    }  # fmt: skip


def balance(r: dict, v: np.ndarray, what: str) -> None:
    given_ = r["damping"] + r["inputs"] + r["reaction"]
    size = np.abs(v).sum() * (np.abs(r["M"]).max() * np.abs(r["v_dot"]).max() + np.abs(r["force"]).max())
    size += sum(np.abs(r[n]).max() for n in ("kinetic", "potential", "damping", "inputs", "reaction"))
    close(r["kinetic"] + r["potential"], given_, POWER, what, size)


@given(trees())
def test_power_of_a_tree(drawn):
    case = drawn_case(drawn)
    balance(matrices(case, powers("articulated")), case.v, "dE/dt of a tree")


@given(loops())
def test_power_with_constraints(case):
    r = matrices(case, powers("gauss"))
    well_posed(r)
    balance(r, case.v, "dE/dt with constraints")
    moving = [c for c in case.m.constraints if c.name.startswith(("driven", "rolling", "speed", "pushed"))]
    if not moving:  # constraints that are at rest
        forces = np.abs(r["M"]).max() * np.abs(r["v_dot"]).max() + np.abs(r["force"]).max()
        close(r["reaction"], [[0.0]], POWER, "constraints at rest do no work", (1 + np.abs(case.v).sum()) * forces)
