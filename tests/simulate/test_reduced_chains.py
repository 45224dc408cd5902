"""Random trees of random joints over 10 s: reduced they move as the full machine, and their momentum is conserved.

The first and later joints have every group of motions, bodies have any inertia, and later joints have springs, dampers and
motors. Speeds are some 0.2 rad/s or m/s, so low that an error of the start grows 6 to 110 times in 10 s, not by the factor of
a chaotic motion, and that differences of 1e-9 are meaningful. Each test also measures the error of the full machine.
"""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest
from scipy.linalg import block_diag

import pfaffian as pf
from pfaffian.evaluate.reduction_plan import plan
from pfaffian.maths.subgroups import SUBGROUPS
from pfaffian.model.joint import KINDS
from tests.by_scipy import run_adaptive
from tests.random_mechanisms import random_pose, random_tree
from tests.simulate.machines import about_mass_centre, summed
from tests.tolerance import close

TIMES = np.linspace(0, 10, 11)
SAME, CONSERVED = 1e-9, 1e-12
"""Bounds on states after 10 s, and on momenta [N s, N m s], which are conserved to rounding."""
FULL_ERROR = 5e-11
"""Largest error of the full machine in 10 s, which is its change when steps are limited to 0.02 s."""

GROUPS = tuple(name for name, g in SUBGROUPS.items() if g.nv)
LATER = tuple(KINDS)
TREES = ([-1, 0, 1, 2], [-1, 0, 0, 1], [-1, 0, 1, 0])
ORBITS = {"free": 6, "spherical": 3, "planar": 3, "schoenflies": 4, "planar-helical": 3}
"""Number of momentum coordinates in the body's frame, for groups whose orbits are not points."""
POLE = 5
"""Seed of a free machine the axis of whose momentum becomes perpendicular to that of the base within 10 s."""


def accurate(machine, q, v, **more):
    return run_adaptive(machine, q, v, times=TIMES, tolerance=1e-13, **more)


def full_run(m, q, v, **more):
    """The run of the full machine, after a check that limited steps give the same."""
    r = accurate(m, q, v, **more)
    same(accurate(m, q, v, max_step=0.02, **more), r, FULL_ERROR)
    return r


def same(r, plain, tolerance=SAME):
    """Check that two runs have the same motion until the first one ends; returns the records up to there."""
    lasts = ~(plain.time.values > r.stopped.values)
    assert lasts.sum() > 3
    for name in ("q", "v", "energy"):
        close(r[name].values[lasts], plain[name].values[lasts], tolerance, name, scale=1.0)
    return lasts


def drift(r):
    return r.momentum_drift.values.reshape(len(r.time), -1)


def first(random, kind, **more):
    """A first joint at a random placement, without spring, damper or armature."""
    pitch = {"pitch": 0.3} if SUBGROUPS[kind].screws else {}
    return pf.joint(
        "j0", kind, "world", "b0", placement=random_pose(random), child_placement=random_pose(random), **pitch | more
    )


def tree(random, kinds, parents):
    """A random tree without weight; its first joint has only a placement, and half of the other joints have motors."""
    m = random_tree(random, kinds, parents)
    motors = [pf.actuator(f"motor {j.name}", j.name, component=j.nv - 1) for j in m.joints[1:] if j.nv and random.integers(2)]
    return m.with_(joints=[first(random, kinds[0]), *m.joints[1:]], gravity=(0, 0, 0), actuators=motors)


def start(m, random):
    return pf.random_configuration(m, random), 0.2 * random.normal(size=m.nv)


@pytest.mark.parametrize("base, seed", [*((g, 7) for g in GROUPS), ("free", POLE)])
def test_open_chains_and_trees_conserve_their_momentum(base, seed):
    """Reduced by the momenta of bodies, and by curvature on the orbit of one momentum."""
    i = GROUPS.index(base)
    random = np.random.default_rng([seed, i])
    m = tree(random, [base, *(LATER[(i + k) % len(LATER)] for k in (1, 5, 9))], TREES[i % 3])
    by_momenta_and_by_curvature(m, random, base)


def test_a_compound_first_joint():
    """A joint that turns hangs on one that slides, with a massless body between them."""
    random = np.random.default_rng(11)
    m = tree(random, ["translation", "spherical", "cylindrical"], [-1, 0, 1])
    ball = pf.joint("j1", "spherical", "b0", "b1", child_placement=random_pose(random))
    m = m.with_(bodies=[pf.body("b0"), *m.bodies[1:]], joints=[m.joints[0], ball, m.joints[2]])
    q, v = start(m, random)
    _, _, r = by_momenta(m, random, q, v, np.concatenate(summed(m, q, v)))
    assert list(m.u_names) == ["motor j1"]  # the motor turns everything about the carriage, so that L changes
    assert not np.ptp(r.momentum.values[:, :3], axis=0).any() and np.ptp(r.momentum.values[:, 3:6], axis=0).min() > 1e-3


def by_momenta_and_by_curvature(m, random, base):
    q, v = start(m, random)
    mu = pf.reduction.momentum_map(m, q, v)
    assert (np.abs(mu) > 0.03).all()
    u, plain, r = by_momenta(m, random, q, v, about_mass_centre(m, q, v))
    first_momenta = r.momentum.values[:, : len(mu)]
    r = accurate(pf.reduce(m, momentum=mu), q, v, u=u)
    assert (r.orbit.shape[1] if "orbit" in r else 0) == ORBITS.get(base, 0)
    assert not r.status
    lasts = same(r, plain)
    # Place and orbit are integrated separately, so their momentum has integration errors.
    close(drift(r)[lasts], 0 * first_momenta[lasts], CONSERVED, "momentum on the orbit", scale=max(1.0, np.abs(mu).max()))


def by_momenta(m, random, q, v, total):
    """The inputs, the run of the full machine, and that of the reduced one, whose first momenta must be `total`."""
    u = 0.01 * random.normal(size=m.nu)
    plain = full_run(m, q, v, u=u)
    r = accurate(pf.reduce(m), q, v, u=u)
    same(r, plain)
    close(r.momentum.values[0, : len(total)], total, CONSERVED, "momentum of the state", scale=1.0)
    close(drift(r), 0 * drift(r), CONSERVED, "momentum of the bodies", scale=1.0)
    assert np.ptp(r.shape_momentum.values, axis=0).max() > 1e-3
    return u, plain, r


# -- constraints ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("base", ["cylindrical", "planar", "planar-helical", "spherical", "free"])
def test_a_group_that_follows_the_shape(base):
    """Chaplygin's reduction in its most general form: v_G = -A(s) s_dot with a random A, against multipliers."""
    random = np.random.default_rng([8, GROUPS.index(base)])
    m = following(random, base)
    compare_with_multipliers(m, *moved(m, random), tuple(range(m.joints[0].nv)))


def following(random, base):
    """A tree whose first joint moves by v_G = -A(s) s_dot with a random smooth A."""
    i = GROUPS.index(base)
    kinds = ["universal", "revolute", "helical", "cylindrical", "prismatic", "planar"]
    m = tree(random, [base, *(kinds[(i + k) % len(kinds)] for k in (0, 1))], TREES[i % 3][:3])
    k, n = m.joints[0].nv, m.nv - m.joints[0].nv
    a = random.normal(size=(3, k, n)) / 3

    def follows(x):
        s = ca.vertcat(*[x.joint(j.name) for j in m.joints[1:]]).T
        s_dot = ca.vertcat(*[x.joint_rate(j.name) for j in m.joints[1:]])
        A = a[0] + a[1] * ca.repmat(ca.sin(s), k, 1) + a[2] * ca.repmat(ca.cos(s[:, ::-1]), k, 1)
        return x.joint_rate("j0") + A @ s_dot

    return m.with_(constraints=[pf.nonholonomic("follows", follows)])


@pytest.mark.parametrize("seed", range(2))
def test_rovers_of_any_build(seed):
    """Two wheels of any size on an axle anywhere on the hull, with an arm of random joints."""
    random = np.random.default_rng([9, seed])
    radius, half, high, wheels = random.uniform(0.1, 0.3, 2), random.uniform(0.2, 0.5), 0.4, ("left", "right")
    axle = pf.pose((*random.uniform(-0.3, 0.3, 2), -high), rpy=(0, 0, random.uniform(-3, 3)))
    kinds = [["revolute", "spherical"], ["universal", "prismatic"]][seed]
    m = random_tree(random, ["planar", *kinds], [-1, 0, 1])
    joints, bodies = [pf.joint("j0", "planar", "world", "b0", placement=(0, 0, high)), *m.joints[1:]], [*m.bodies]
    for name, r, side in zip(wheels, radius, (half, -half), strict=True):
        bodies.append(pf.body(name, 0.5, inertia=(0.004, 0.004, 0.006)))
        place = axle @ pf.pose((0, side, r), rpy=(-np.pi / 2, 0, 0))
        joints.append(pf.joint(name, "revolute", "b0", name, placement=place))
    rolling = [pf.rolling.wheel(f"{n} rolls", n, r) for n, r in zip(wheels, radius, strict=True)]
    m = pf.mechanism("rover", bodies, joints, constraints=rolling, actuators=[pf.actuator("motor", "left")])
    compare_with_multipliers(m, *moved(m, random), (0, 1, 2))


def moved(m, random):
    """A start on the constraints, with joints at about 0.2 rad/s."""
    there = pf.assemble(m, *start(m, random))
    return there.q, there.v


def compare_with_multipliers(m, q, v, group):
    found = plan(m, None)
    assert found.group == group
    u = np.full(m.nu, 0.01)
    r = accurate(pf.reduce(m), q, v, u=u)
    same(r, full_run(m, q, v, u=u))
    assert float(r.velocity_violation.max()) < 1e-12 and np.abs(np.ptp(r.v.values, axis=0)[: len(group)]).max() > 1e-2


@pytest.mark.parametrize("at, kind", [(0, "planar"), (0, "spherical"), (0, "free"), (2, "planar"), (2, "spherical")])
def test_joints_with_random_distributions(at, kind):
    """A first or last joint with a random distribution v = B w, against the same joint under constraints C v = 0 with C B =
    0."""
    random = np.random.default_rng([10, at, *map(ord, kind)])
    kinds = ["cylindrical", "planar", "universal"]
    kinds[at] = kind
    m = tree(random, kinds, [-1, 0, 1])
    j = m.joints[at]
    B = random.normal(size=(j.nv, j.nv // 2))
    C = np.linalg.svd(B.T)[2][j.nv // 2 :]
    rolls = pf.nonholonomic("rolls", lambda x: ca.DM(C) @ x.joint_rate(j.name))
    motors = [a for a in m.actuators if a.joint != j.name]
    wide = pf.joint(j.name, kind, j.parent, j.child, placement=j.placement)
    rolling = pf.joint(j.name, kind, j.parent, j.child, placement=j.placement, distribution=B)
    constrained = m.with_(joints=[wide if x is j else x for x in m.joints], constraints=[rolls], actuators=motors)
    m = m.with_(joints=[rolling if x is j else x for x in m.joints], actuators=motors)
    widen = block_diag(*[B if x.name == j.name else np.eye(x.nv) for x in m.joints])

    q, w = start(m, random)
    u = 0.01 * random.normal(size=m.nu)
    plain, r = full_run(constrained, q, widen @ w, u=u), accurate(pf.reduce(m), q, w, u=u)
    for name, a in {"q": r.q.values, "v": r.v.values @ widen.T, "energy": r.energy.values}.items():
        close(a, plain[name], SAME, name, scale=1.0)
    momenta = r.momentum.values
    if at:  # if only the last joint rolls, the momentum of the first one is conserved
        assert (momenta[:, :2] == momenta[0, :2]).all()
        assert float(np.abs(r.momentum_drift).max()) < CONSERVED
    else:
        assert r.momentum_unit.values[0] == ("N m s" if kind == "spherical" else "J s") and "momentum_drift" not in r
