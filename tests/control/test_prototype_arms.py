"""Laws of arms as prototypes: joint PD, augmented PD and computed torque to rounding; missing inertia. [konz25 4.3.2]"""

from __future__ import annotations

import warnings
from functools import lru_cache

import casadi as ca
import numpy as np
import pytest

import pfaffian as pf
from pfaffian import control
from pfaffian.errors import ModelWarning
from pfaffian.evaluate.compiled import Compiled
from pfaffian.formats.text.place import installed
from pfaffian.model.joint import Joint
from tests.random_mechanisms import random_tree
from tests.tolerance import close

pm = pf.forces.pseudo_matrix


def ur5() -> pf.Mechanism:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)
        return pf.formats.read_urdf(installed("example-robot-data", "ur_description/urdf/ur5_robot.urdf", "tests"))


def random_arm() -> pf.Mechanism:
    kinds = ["revolute", "prismatic", "revolute", "prismatic", "revolute"]
    return pf.actuate_all(random_tree(np.random.default_rng(11), kinds, [-1, 0, 1, 2, 3]))


ARMS = {"random": random_arm(), "UR5": ur5()}


class Aim:
    """q, v: a state.   q_R, v_R, a_R: the reference at t = 0.   K, D: (nv,) gains.   e, rate: errors of q and v."""

    def __init__(self, m: pf.Mechanism):
        random, n = np.random.default_rng(5), m.nv
        self.q, self.v, self.q_R, self.v_R, self.a_R = random.uniform(-1, 1, (5, n))
        self.K, self.D = random.uniform(5, 20, (2, n))
        self.e, self.rate = self.q - self.q_R, self.v - self.v_R

    def reference(self) -> control.Reference:
        return control.function_of_time(
            lambda t: ca.DM(self.q_R) + ca.DM(self.v_R) * t + ca.DM(self.a_R) * t**2 / 2, len(self.q)
        )

    def pull(self, m: pf.Mechanism) -> np.ndarray:
        """K e for sliding joints, K sin e for turning joints."""
        return self.K * np.where(turns(m), np.sin(self.e), self.e)


def moving(m: pf.Mechanism) -> list[Joint]:
    return [j for j in m.joints if j.nv]


def turns(m: pf.Mechanism) -> np.ndarray:
    return np.array([j.kind.name == "revolute" for j in moving(m)])


def between_links(m: pf.Mechanism, **weights: np.ndarray) -> list[control.Pair]:
    """Pairs with each weight (nv,) on the motion of a single joint."""
    pairs = []
    for i, j in enumerate(moving(m)):
        of = {name: pm(0, moments=x[i]) if j.kind.name == "revolute" else pm(x[i]) for name, x in weights.items()}
        pairs.append(control.pair(j.child, seen_from=j.parent, **of))
    return pairs


def machine_inertia(m: pf.Mechanism) -> list[control.Pair]:
    """Pairs with the inertia of each body and of the armatures, so that Mbar = M."""
    moved = {j.child for j in moving(m)}
    for j in m.joints:
        moved |= {j.child} if j.parent in moved else set()
    bodies = [control.pair(b.name, inertia=pm(b.mass, b.com, b.inertia)) for b in m.bodies if b.name in moved]
    armature = np.array([float(ca.DM(j.armature)) for j in moving(m)])
    return bodies + between_links(m, inertia=armature)


@lru_cache
def plant(name: str) -> Compiled:
    """M, c, f, B and the Coriolis matrix C_ij = (d_k M_ij + d_j M_ik - d_i M_jk) v^k / 2."""
    m = ARMS[name]

    def coriolis(T: pf.Terms) -> ca.SX:
        slopes = [ca.reshape(ca.jacobian(ca.vec(ca.densify(T.M)), T.q[k]), m.nv, m.nv) for k in range(m.nv)]
        along = sum(s * T.v[k] for k, s in enumerate(slopes))
        turned = ca.horzcat(*[s @ T.v for s in slopes])
        return (along + turned - turned.T) / 2

    parts = {"M": lambda T: T.M, "c": lambda T: T.c, "f": lambda T: T.f, "C": coriolis, "B": lambda T: T.B}
    return pf.compile_terms(m, parts, backend="numpy", lanes=1)


def inputs(m: pf.Mechanism, law: control.Control, aim: Aim) -> np.ndarray:
    T, none = pf.symbols(m), ca.SX(0, 1)
    u = law.law(pf.Terms(m, T.q, T.v, ca.SX.zeros(m.nu, 1), T.t), none, none, ca.SX.zeros(m.nv, 1)).u
    return np.array(ca.Function("u", [T.q, T.v, T.t, m.p_symbols], [u])(aim.q, aim.v, 0.0, m.p_defaults)).ravel()


def unit(k: pf.Kinematics, k_R: pf.Kinematics) -> ca.SX:
    return ca.SX.eye(k.mechanism.nv)


@pytest.mark.parametrize("name", ARMS)
def test_inertia_of_the_machine_gives_augmented_pd(name):
    """Mbar = M, Q = 1: u = M a_R + C v_R - D e' - K e + gravity, and joint PD at a constant reference. [konz25 (4.38)]"""
    m, aim = ARMS[name], Aim(ARMS[name])
    pairs = machine_inertia(m) + between_links(m, damping=aim.D, stiffness=aim.K)
    u, T = inputs(m, control.prototype_tracking(pairs, aim.reference(), transport=unit), aim), plant(name)(aim.q, aim.v)
    free = T["c"] - T["C"] @ aim.v - T["f"]
    expected = T["M"] @ aim.a_R + T["C"] @ aim.v_R - aim.D * aim.rate - aim.pull(m) + free
    close(T["B"] @ u, expected, 1e-11, "augmented PD")
    still = control.prototype_tracking(pairs, control.set_point(aim.q_R), approach="body")
    close(T["B"] @ inputs(m, still, aim), free - aim.D * aim.v - aim.pull(m), 1e-11, "joint PD")


@pytest.mark.parametrize("approach", ["body", "energy"])
@pytest.mark.parametrize("name", ARMS)
def test_inertia_of_joints_alone_gives_computed_torque(name, approach):
    """Mbar = 1: u = M (a_R - D e' - K e) + c - f; the library's own computed torque where K sin e is K e. [konz25 (4.40)]"""
    m, aim = ARMS[name], Aim(ARMS[name])
    K = aim.K * np.where(turns(m), aim.e / np.sin(aim.e), 1)
    pairs = between_links(m, inertia=np.ones(m.nv), damping=aim.D, stiffness=K)
    u, T = inputs(m, control.prototype_tracking(pairs, aim.reference(), approach=approach), aim), plant(name)(aim.q, aim.v)
    expected = T["M"] @ (aim.a_R - aim.D * aim.rate - aim.K * aim.e) + T["c"] - T["f"]
    close(T["B"] @ u, expected, 1e-11, "computed torque")
    law = control.computed_torque(control.whole(m), aim.reference(), stiffness=aim.K, damping=aim.D)
    close(u, inputs(m, law, aim), 1e-11, "the library's computed torque")


def test_joints_have_their_placed_poles():
    """Characteristic polynomial s^2 + D s + K of every joint. [konz25 (4.39)]"""
    m, aim = ARMS["random"], Aim(ARMS["random"])
    poles = np.array([[-2 - 1j, -2 + 1j], [-3, -5], [-4, -4.5], [-6, -1], [-2.5 - 2j, -2.5 + 2j]])
    D, K = -poles.sum(axis=1).real, poles.prod(axis=1).real
    law = control.prototype_tracking(between_links(m, inertia=np.ones(5), damping=D, stiffness=K), control.set_point(aim.q_R))
    found = pf.linearise(m, aim.q_R, np.zeros(5), control=law).eigenvalues
    close(np.poly(found).real, np.poly(poles.ravel()).real, 1e-6, "characteristic polynomial")


# -- missing inertia ------------------------------------------------------------------------------------------------------


def stopped(m: pf.Mechanism, pairs: list[control.Pair], q: np.ndarray) -> str:
    with pytest.warns(pf.RunWarning, match="the prototype has no inertia"):
        r = pf.run(m, q, duration=1e-3, control=control.prototype_tracking(pairs, control.set_point(q)))
    return pf.results.causes(r)[0].rpartition("against a motion of ")[2]


def test_joints_without_a_pair_are_named():
    m = ARMS["UR5"]
    cause = stopped(m, between_links(m, inertia=np.ones(6))[:4], Aim(m).q)
    named, _, with_inertia = cause.partition("; it has inertia for ")
    assert {"wrist_2_joint", "wrist_3_joint"} == set(named.split(", ")), cause
    assert with_inertia.startswith("'shoulder_link' seen from ")


def test_joints_that_a_single_pair_leaves_free_are_named():
    """The wrist is stretched, so that joints 4 and 6 can turn against each other while the tool stands still."""
    m = ARMS["UR5"]
    q = np.array([0.3, -1.0, 1.2, 0.4, 0.0, 0.7])
    cause = stopped(m, [control.pair("tool0", inertia=pm(1, moments=0.1), stiffness=pm(1, moments=0.1))], q)
    named, _, with_inertia = cause.partition("; it has inertia for ")
    assert {"shoulder_lift_joint", "elbow_joint", "wrist_1_joint", "wrist_3_joint"} == set(named.split(", ")), cause
    assert with_inertia == "'tool0' seen from 'world'"


def test_joints_that_turn_while_the_tool_stands_still_are_named():
    """A redundant arm: its elbow swings round at a fixed angle. Its wrist is 1e4 times lighter than the rest."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)
        m = pf.formats.read_urdf(installed("example-robot-data", "panda_description/urdf/panda.urdf", "tests"))
    m = pf.actuate_all(m.with_(joints=[pf.locked(j) if "finger" in j.name else j for j in m.joints], actuators=()))
    q = np.array([0.0, -0.4, 0.3, -2.2, 0.2, 2.0, 0.7])
    cause = stopped(m, [control.pair("panda_hand_tcp", inertia=pm(2, moments=0.05))], q)
    assert {"panda_joint1", "panda_joint3"} <= set(cause.partition(";")[0].split(", ")), cause
    assert "panda_joint4" not in cause


def test_a_negative_weight_is_named():
    m = ARMS["UR5"]
    one = np.ones(6)
    pairs = between_links(m, inertia=one, damping=one)
    pairs.append(control.pair("forearm_link", seen_from="upper_arm_link", damping=-2 * np.eye(4)))
    with pytest.raises(
        pf.ModelError, match="the prototype's damping is negative, -3, along a motion of elbow_joint; give it more"
    ):
        pf.run(m, duration=1e-3, control=control.prototype_tracking(pairs, control.set_point(np.zeros(6))))
