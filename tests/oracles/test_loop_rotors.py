"""The rotor of a joint that closes a loop, beside that of the same joint in the tree, closed forms and derivatives."""

import casadi as ca
import numpy as np
import pytest

import pfaffian as pf
from tests.loops_cut_anywhere import FOUR_BAR, PARALLELOGRAM, ROD_BETWEEN_BALLS, linkage, same_state
from tests.tolerance import ALGEBRA, PEER_CONSTRAINED, close

SAME = 1e-12
"""Two cuts of one loop: the rounding of a mass matrix of three bodies."""


def test_a_rotor_adds_its_inertia_where_the_loop_is_cut():
    """Crank and rocker of a parallelogram turn alike, and the hinge C by the opposite angle: I w_dot = moment."""
    found = []
    for a in (0.0, 0.7):
        m = linkage(PARALLELOGRAM, "C", {"C": {"armature": a}}, gravity=(0, 0, 0), actuators=[pf.actuator("motor", "A")])
        q = pf.assemble(m, {"A": 0.4}).q
        found.append(1 / pf.forward_dynamics(m, q, u=[1.0]).v_dot[m.v_names.index("A")])
    close(found[1] - found[0], 0.7, 1e2 * ALGEBRA, "inertia that the crank feels")


@pytest.mark.parametrize("on", ROD_BETWEEN_BALLS)
def test_a_rotor_moves_a_loop_in_space_alike_wherever_it_is_cut(on):
    first = linkage(ROD_BETWEEN_BALLS, "outer", {on: {"armature": 0.3}})
    at = pf.assemble(first, {"turn": 0.4}, v={"turn": 5.0})
    expected = dict(zip(first.v_names, pf.forward_dynamics(first, at.q, at.v).v_dot, strict=True))
    without = linkage(ROD_BETWEEN_BALLS, "outer")
    bare = pf.forward_dynamics(without, at.q, at.v).v_dot[without.v_names.index("turn")]
    assert abs(bare - expected["turn"]) > 1e-3 * abs(bare)
    for cut in ROD_BETWEEN_BALLS:
        m = linkage(ROD_BETWEEN_BALLS, cut, {on: {"armature": 0.3}})
        q, v = same_state(first, m, at.q, at.v)
        found = dict(zip(m.v_names, pf.forward_dynamics(m, q, v).v_dot, strict=True))
        hinges = sorted({"turn", "rock"} & set(found))
        size = max(abs(expected[n]) for n in hinges)
        close([found[n] for n in hinges], [expected[n] for n in hinges], SAME, f"cut at {cut}", size)
        energies = [float(pf.energy(x, *state).kinetic) for x, state in ((m, (q, v)), (first, (at.q, at.v)))]
        close(energies[0], energies[1], SAME, "kinetic energy")


def test_every_form_of_the_inertia_has_the_rotor():
    """M and c by differentiation of the energy, C, the acceleration energy, momenta, and M v_dot + c by recursion."""
    m = linkage(ROD_BETWEEN_BALLS, "rock", {"rock": {"armature": 0.3}})
    random = np.random.default_rng(4)
    v_dot = random.normal(size=m.nv)

    def forms(T: pf.Terms) -> dict[str, ca.SX]:
        a, k = ca.SX.sym("a", m.nv), T.kinematics
        S = pf.calculus.acceleration_energy(k, a)
        force = ca.substitute(ca.gradient(S, a), a, ca.SX(v_dot))
        M_dot = ca.reshape(ca.jtimes(ca.vec(ca.densify(T.M)), k.q, k.q_dot), m.nv, m.nv)
        at_rest = ca.substitute(T.c, T.v, ca.SX.zeros(m.nv, 1))
        inertia = {"force": force, "M v_dot + c": T.M @ v_dot + T.c, "recursion": T.inertia_force(v_dot)}
        turning = {"C v": T.C @ T.v, "c - weight": T.c - at_rest, "C + C^T": T.C + T.C.T, "M_dot": M_dot}
        return inertia | turning | {"energy": T.T, "v M v / 2": T.v.T @ T.M @ T.v / 2}

    q, v = np.array(pf.random_configuration(m, random, 0.5)), random.normal(size=m.nv)
    x = pf.compile_terms(m, {n: (lambda T, n=n: forms(T)[n]) for n in forms(pf.symbols(m))}, backend="numpy")(q, v)
    for one, other in (("force", "M v_dot + c"), ("recursion", "M v_dot + c"), ("C v", "c - weight"), ("C + C^T", "M_dot"),
                       ("energy", "v M v / 2")):  # fmt: skip
        close(x[one], x[other], 1e2 * ALGEBRA, f"{one} and {other}")


def test_formulations_agree_on_a_rotor_in_a_loop():
    m = linkage(FOUR_BAR, "C", {"C": {"armature": 0.4}})
    at = pf.assemble(m, {"A": 0.4}, v={"A": 2.0})
    expected = pf.forward_dynamics(m, at.q, at.v).v_dot
    for name in ("nullspace", "projection", "multipliers"):
        close(pf.forward_dynamics(m, at.q, at.v, formulation=name).v_dot, expected, PEER_CONSTRAINED, name)
    with pytest.raises(pf.errors.ModelError, match="inertia besides that of its bodies"):
        pf.forward_dynamics(m, at.q, at.v, formulation="articulated")


def test_a_rotor_is_enough_inertia_for_a_joint_of_the_tree():
    """A massless crank, whose only inertia is the rotor of the closure to the world."""
    bodies = [pf.body("crank"), pf.body("load", mass=2.0)]
    joints = [pf.joint("turn", "revolute", "world", "crank"), pf.joint("rail", "prismatic", "world", "load", axis=(1, 0, 0))]
    pin = pf.closure("pin", "revolute", "world", "crank", armature=0.5)
    m = pf.mechanism("m", bodies, joints, constraints=[pin], actuators=[pf.actuator("motor", "turn")])
    close(pf.forward_dynamics(m, m.neutral(), u=[1.0]).v_dot, [2.0, 0.0], SAME, "acceleration")


def test_a_released_closure_has_no_rotor():
    m = linkage(FOUR_BAR, "C", {"C": {"armature": 0.4}})
    (closed,) = m.constraints
    gone = m.with_(constraints=[pf.constraints.active_while(closed, lambda k: k.t < 1)])
    q, v = m.neutral(), np.ones(m.nv)
    bare = linkage(FOUR_BAR, "C").with_(constraints=[])
    close(pf.forward_dynamics(gone, q, v, t=2.0).v_dot, pf.forward_dynamics(bare, q, v).v_dot, SAME, "open chain")


def test_joined_keeps_the_rotor():
    bodies = [pf.body(n, mass=1.0, inertia=0.1) for n in ("hull", "arm")]
    joints = [pf.joint(f"free {n}", "free", "world", n) for n in ("hull", "arm")]
    pin = pf.closure("pin", "revolute", "hull", "arm", armature=0.5)
    m = pf.joined(pf.mechanism("m", bodies, joints, constraints=[pin]), "pin")
    assert float(m.joint("pin").armature) == 0.5


def test_a_rotor_below_zero_is_refused():
    with pytest.raises(pf.errors.ModelError, match=r"'C': armature -0.1 is below zero"):
        pf.closure("C", "revolute", "a", "b", armature=-0.1)
