"""The rate of a reduced state is the derivative of `enter` along the motion of the full machine.

Random states of random machines are compared to rounding; runs of 10 s are in test_reduced_chains. The motion comes from
articulated bodies, or from multipliers where there are constraints; these share only the kinematics with a reduction.
"""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest

import pfaffian as pf
from pfaffian.dynamics.motion import Motion
from pfaffian.maths.subgroups import isotropy
from pfaffian.model.joint import KINDS
from tests.random_mechanisms import random_body, random_pose
from tests.simulate.test_reduced_chains import GROUPS, LATER, ORBITS, TREES, following, tree
from tests.tolerance import DERIVATIVE, close


def checked_signals(system, q, v, u, p=None):
    """The state's parts and signals by name, after a check of its rate and of the q and v that it gives back."""
    m = system.mechanism
    T = pf.symbols(m)
    plain = T.kinematics.rates.plain and not m.constraints
    motion = Motion(*map(ca.SX, pf.FORMULATIONS["articulated" if plain else "multipliers"](T)))
    x = system.entered(T, T.q, T.v)
    moved, rate = system.pushed(x, T, T.kinematics.q_dot, motion.v_dot), system.rated(x, T, motion)
    signals = system.recorded(x, T, motion) | {"M": T.M}
    f = ca.Function("f", [T.q, T.v, T.u, T.t, m.p_symbols], [moved, rate, *system.q_and_v(x, T.t), x, *signals.values()])
    found = [np.array(a).ravel() for a in f(q, v, u, 0.3, m.p_defaults if p is None else p)]
    moved, rate, q_back, v_back = found[:4]
    close(rate, moved, 1e4 * DERIVATIVE, "rate", scale=1 + np.abs(moved).max())
    close(q_back, q, 0.0, "q")
    close(v_back, v, 1e3 * DERIVATIVE, "v", scale=1.0)
    return dict(zip(signals, found[5:], strict=True)) | {"rate": rate, "x": found[4]}


def start(m, random):
    return pf.random_configuration(m, random), random.normal(size=m.nv), random.normal(size=m.nu)


def machine(random, base):
    i = GROUPS.index(base)
    return tree(random, [base, *(LATER[(i + k) % len(LATER)] for k in (1, 5, 9))], TREES[i % 3])


@pytest.mark.parametrize("base", GROUPS)
def test_momenta_equal_those_of_the_bodies(base):
    """With a force from outside too: it changes the momentum of the first joint, which equals that of the bodies."""
    random = np.random.default_rng([1, GROUPS.index(base)])
    m = machine(random, base)
    m = m.with_(forces=[pf.wrench("hand", "b3", point=random.normal(size=3))])
    q, v, u = start(m, random)
    signals = checked_signals(pf.reduce(m), q, v, u)
    k = m.joints[0].nv
    assert len(signals["momentum_drift"]) >= k
    close(signals["momentum_drift"], 0 * signals["momentum_drift"], 100 * DERIVATIVE, "momentum of the bodies", scale=1.0)
    error = signals.get("momentum_rate_error", np.zeros(0))
    close(error, 0 * error, 100 * DERIVATIVE, "momenta beyond the first joint's", scale=1.0)
    M = signals["M"].reshape(m.nv, m.nv)
    shape = np.linalg.inv(np.linalg.inv(M)[k:, k:])
    close(signals["shape_momentum"], shape @ v[k:], 1e3 * DERIVATIVE, "M^ s")


@pytest.mark.parametrize("base", ["free", "planar", "schoenflies"])
def test_weight_changes_momenta_along_it(base):
    random = np.random.default_rng([2, GROUPS.index(base)])
    m = machine(random, base)
    m = m.with_(gravity=random.normal(size=3))
    bare = pf.joint("j0", base, "world", "b0")
    m = m.with_(joints=[bare, *m.joints[1:]])
    q, v, u = start(m, random)
    signals = checked_signals(pf.reduce(m), q, v, u)
    weight = sum(float(b.mass) for b in m.bodies) * np.array([float(x) for x in ca.vertsplit(ca.DM(m.gravity))])
    along = ["xyz".index(n[-1]) for n in bare.v_names if n.startswith("v")]
    close(signals["rate"][m.nq : m.nq + len(along)], weight[along], 100 * DERIVATIVE, "weight")


@pytest.mark.parametrize("base", GROUPS)
def test_the_space_of_one_momentum(base):
    random = np.random.default_rng([3, GROUPS.index(base)])
    m = machine(random, base)
    q, v, u = start(m, random)
    mu = pf.reduction.momentum_map(m, q, v)
    signals = checked_signals(pf.reduce(m, momentum=mu), q, v, u)
    seen = (pf.mass_matrix(m, q) @ v)[: len(mu)]
    close(signals.get("orbit", mu), seen, 100 * DERIVATIVE, "momentum in the body", scale=1.0)
    assert ("orbit" in signals) == (base in ORBITS)
    close(signals["momentum_drift"], np.zeros(len(mu)), 100 * DERIVATIVE, "momentum of the bodies", scale=1.0)
    shape = np.linalg.inv(np.linalg.inv(signals["M"].reshape(m.nv, m.nv))[len(mu) :, len(mu) :])
    close(signals["shape_momentum"], shape @ v[len(mu) :], 1e3 * DERIVATIVE, "M^ s")


@pytest.mark.parametrize(
    "base", ["cylindrical", "planar-translation", "planar", "planar-helical", "schoenflies", "spherical", "free"]
)
@pytest.mark.parametrize("which", ["none", "along axes", "slides only", "turns only"])
def test_the_space_of_a_special_momentum(base, which):
    """The orbit has coordinates unless every motion of the group keeps the momentum: [chhabra14 table 3.1]. Also for
    momenta along axes of the frame."""
    random = np.random.default_rng([4, GROUPS.index(base)])
    m = machine(random, base)
    q, v, u = start(m, random)
    group = m.joints[0].parts[0].subgroup
    k, turns = group.nv, np.array([i > 2 for i in group.axes])
    mu = {
        "none": np.zeros(k), "along axes": np.array([1.0 if i in (1, 2, 4, 5) else 0.0 for i in group.axes]),
        "slides only": np.where(turns, 0, random.normal(size=k)), "turns only": np.where(turns, random.normal(size=k), 0),
    }[which]  # fmt: skip
    # The velocity of the first joint at which the machine has this momentum.
    by_shape = pf.reduction.momentum_map(m, q, np.r_[np.zeros(k), v[k:]])
    v[:k] = np.linalg.solve(np.array([pf.reduction.momentum_map(m, q, e) for e in np.eye(m.nv)[:k]]).T, mu - by_shape)
    signals = checked_signals(pf.reduce(m, momentum=mu), q, v, u)
    keeping = isotropy(ca.DM(group.S), mu).shape[1]
    assert len(signals.get("orbit", ())) == (k if k > keeping else 0)


@pytest.mark.parametrize("base", GROUPS)
def test_groups_that_follow_the_shape(base):
    """v_G = -A(s) s_dot with a random A and a force from outside, against multipliers."""
    random = np.random.default_rng([5, GROUPS.index(base)])
    m = following(random, base)
    m = m.with_(forces=[pf.wrench("hand", "b2", point=random.normal(size=3), axes="LOCAL")])
    q, v, u = start(m, random)
    there = pf.assemble(m, q, v)
    checked_signals(pf.reduce(m), there.q, there.v, u)


@pytest.mark.parametrize("at, kind", [(at, k) for at in (0, 2) for k in KINDS if KINDS[k].nv > 1 and k != "universal"])
def test_joints_that_roll(at, kind):
    """Springs, dampers and rotors act along the speeds too."""
    random = np.random.default_rng([6, at, *map(ord, kind)])
    kinds = ["cylindrical", "planar", "universal"]
    kinds[at] = kind
    m = tree(random, kinds, [-1, 0, 1])
    j = m.joints[at]
    pitch = {"pitch": 0.3} if kind == "planar-helical" else {}
    rolling = pf.joint(j.name, kind, j.parent, j.child, placement=random_pose(random),
                       distribution=random.normal(size=(j.nv, max(1, j.nv // 2))), **pitch)  # fmt: skip
    motors = [a for a in m.actuators if a.joint != j.name]
    m = m.with_(joints=[rolling if x is j else x for x in m.joints], actuators=motors)
    checked_signals(pf.reduce(m), *start(m, random))


@pytest.mark.parametrize("base", ["free", "planar", "cylindrical"])
def test_closures_do_not_change_the_momentum(base):
    """A loop of four bars on any base: its closure does not change the momentum, but it changes the motion of the shape."""
    random = np.random.default_rng([7, GROUPS.index(base)])
    m = tree(random, [base, "spherical", "spherical", "spherical"], [-1, 0, 1, 0])
    m = m.with_(constraints=[pf.coincide("tip", "b2", (0.3, 0.1, 0), "b3", (0.1, 0.3, 0))])
    q, v, u = start(m, random)
    there = pf.assemble(m, q, v)
    signals = checked_signals(pf.reduce(m), there.q, there.v, u)
    k = m.joints[0].nv
    assert (signals["rate"][m.nq : m.nq + k] == 0).all()


def test_closures_react_on_wheels_too():
    """Chaplygin's reduction with a loop on the hull, onto which the state has to be projected; with wheels alone no state
    can leave the constraints."""
    random = np.random.default_rng(8)
    m = following(random, "planar")
    assert pf.reduce(m).holds
    loop = [random_body(random, "b3"), random_body(random, "b4")]
    joints = [pf.joint("j3", "spherical", "b0", "b3", placement=random_pose(random)),
              pf.joint("j4", "spherical", "b3", "b4", placement=random_pose(random))]  # fmt: skip
    tip = pf.coincide("tip", "b0", (0.3, 0.1, 0.2), "b4", (0.1, 0.3, 0))
    m = m.with_(bodies=[*m.bodies, *loop], joints=[*m.joints, *joints], constraints=[*m.constraints, tip])
    system = pf.reduce(m)
    assert not system.holds
    q, v, u = start(m, random)
    there = pf.assemble(m, q, v)
    signals = checked_signals(system, there.q, there.v, u)
    assert "momentum_drift" not in signals


def test_a_first_joint_on_a_pedestal():
    random = np.random.default_rng(9)
    m = tree(random, ["cylindrical", "universal", "planar"], [-1, 0, 0])
    foot = pf.joint("bolt", "fixed", "world", "foot", placement=random_pose(random))
    first = m.joints[0]
    stands = pf.joint("j0", "cylindrical", "foot", "b0", placement=first.placement, child_placement=first.child_placement)
    m = m.with_(bodies=[random_body(random, "foot"), *m.bodies], joints=[foot, stands, *m.joints[1:]])
    q, v, u = start(m, random)
    signals = checked_signals(pf.reduce(m), q, v, u)
    close(signals["momentum_drift"], np.zeros(2), 100 * DERIVATIVE, "momentum of the bodies", scale=1.0)


@pytest.mark.parametrize("how", ["mimic", "edge"])
def test_joints_that_follow_others(how):
    """They come before a ball with a rotor, so that its velocities do not have the numbers of its link."""
    random = np.random.default_rng(3)
    m = tree(random, ["planar", "revolute", "revolute", "spherical"], [-1, 0, 1, 2])
    place = {"placement": random_pose(random)}
    drives = pf.joint("j1", "revolute", "b0", "b1", armature=0.4, **place)
    follows = {
        "mimic": pf.joint("j2", "revolute", "b1", "b2", mimic=pf.mimic({"j1": -1.7}), armature=0.3, **place),
        "edge": pf.edge("j2", "b1", "b2", lambda k: pf.pose((0.1, 0.2 * k.joint("j1"), 0), rpy=(0, 0, ca.sin(k.joint("j1"))))),
    }[how]
    ball = pf.joint("j3", "spherical", "b2", "b3", armature=0.7, **place)
    m = m.with_(joints=[m.joints[0], drives, follows, ball], actuators=[pf.actuator("motor", "j1")])
    q, v, u = start(m, random)
    checked_signals(pf.reduce(m), q, v, u)
    checked_signals(pf.reduce(m, momentum=pf.reduction.momentum_map(m, q, v)), q, v, u)
