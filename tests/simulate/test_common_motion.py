"""Machines on several first joints, or on joints in series: the momentum of all their bodies is that of one first joint."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import pfaffian as pf
from tests.random_mechanisms import random_body, random_pose
from tests.simulate.machines import summed
from tests.simulate.test_reduced_rates import checked_signals
from tests.simulate.test_reduction import further, machine
from tests.tolerance import DERIVATIVE, close

KEEP = {"duration": 0.05, "step": 1e-3, "every": 10, "backend": "interpreter"}


def spring(random, name, a, b, **more):
    ends = {f"point_{x}": random.uniform(-0.5, 0.5, 3) for x in "ab"}
    return pf.spring(name, a, b, **ends, **{"stiffness": 30.0} | more)


def several(kinds, places=None, seed=1, **more):
    """Bodies on joints of these kinds to the world, an arm on the first body, and a spring between each two neighbours."""
    random = np.random.default_rng(seed)
    names = [f"b{i}" for i in range(len(kinds))]
    bodies = [random_body(random, name) for name in (*names, "arm")]
    joints = [pf.joint(f"j{i}", kind, "world", f"b{i}", placement=(places or {}).get(i, (0, 0, 0)),
                       **({"pitch": 0.2} if "helical" in kind else {})) for i, kind in enumerate(kinds)]  # fmt: skip
    joints.append(pf.joint("hinge", "revolute", "b0", "arm", axis=(1, 2, 0), placement=random_pose(random)))
    links = [
        spring(random, f"s{i}", a, b, rest=0.1, damping=0.3)
        for i, (a, b) in enumerate(zip(["arm", *names], names[1:], strict=False))
    ]
    return machine(bodies, joints, forces=links, actuators=[pf.actuator("motor", "hinge")], **more)


SLOPE = pf.pose((0.2, 0.3, 0.1), rpy=(0.3, -0.4, 0.2))

SEVERAL = {
    "two free": (several(["free", "free"]), "SE(3)", 6),
    "two free on frames of their own": (several(["free", "free"], {0: SLOPE, 1: (1, 2, 3)}), "SE(3)", 6),
    "three free": (several(["free", "free", "free"]), "SE(3)", 6),
    "parallel planes": (several(["planar", "planar"], {1: (1, 2, 3)}), "SE(2)", 3),
    "a slope": (several(["planar", "planar"], {0: SLOPE, 1: SLOPE}), "SE(2)", 3),
    "a plane and a free one": (several(["free", "planar"]), "SE(2)", 3),
    "parallel rails": (several(["prismatic", "prismatic"], {1: (1, 0, 0)}), "R", 1),
    "one axle": (several(["cylindrical", "cylindrical"], {0: SLOPE, 1: SLOPE}), "SO(2) x R", 2),
    "balls at one point": (several(["spherical", "spherical"], {0: SLOPE, 1: SLOPE}), "SO(3)", 3),
    "screws alike": (several(["helical", "helical"]), "H", 1),
}


@pytest.mark.parametrize("m, group, k", SEVERAL.values(), ids=SEVERAL)
def test_several_first_joints_act_as_one(m, group, k):
    """Checks the group, the rate of the momentum against the unreduced machine, and its value against the sum over the
    bodies, also with weight and inputs."""
    s = pf.reduction.symmetry(m)
    assert (s.group, s.basis.shape) == (group, (6, k)) and not s.further
    assert s.joint == ", ".join(j.name for j in m.joints[:-1])
    random = np.random.default_rng(3)
    at = pf.random_configuration(m, random)
    for j in m.joints[:-1]:
        J = pf.jacobian(m, j.child, at, frame="WORLD")[:, m.v_slices[j.name]]
        close(J @ np.linalg.lstsq(J, s.basis, rcond=None)[0], s.basis, 1e-9, f"what {j.name} can follow", scale=1.0)
    jet = pf.wrench("jet", "b1", point=(0.1, 0.2, 0.3), axes="LOCAL")
    for gravity in ((0, 0, 0), 9.81 * s.basis[:3, 0]) if k > 2 else [(0, 0, 0)]:
        pushed = m.with_(gravity=gravity, forces=[*m.forces, jet])
        q, v = pf.random_configuration(m, random), random.normal(size=m.nv)
        signals = checked_signals(pf.reduce(pushed), q, v, random.normal(size=pushed.nu))
        close(signals["momentum_drift"], 0 * signals["momentum_drift"], 100 * DERIVATIVE, "momentum of the bodies", scale=1.0)
        if k == 6:
            P, L = summed(m, q, v)
            close(signals["momentum"][:6], np.r_[P, L], 100 * DERIVATIVE, "sum over the bodies")


def test_two_free_bodies_on_a_spring_conserve_momentum_and_move_as_in_full():
    m = several(["free", "free"])
    random = np.random.default_rng(5)
    q, v = pf.random_configuration(m, random), random.normal(size=m.nv)
    plain, reduced = pf.run(m, q, v, u=[0.2], **KEEP), pf.run(pf.reduce(m), q, v, u=[0.2], **KEEP)
    close(reduced.q, plain.q, 1e-9, "q")
    momentum_of_all = [i for i, name in enumerate(reduced.momentum_entry.values) if name.startswith("all.")]
    assert reduced.momentum_entry.values[momentum_of_all].tolist() == [
        "all.vx",
        "all.vy",
        "all.vz",
        "all.wx",
        "all.wy",
        "all.wz",
    ]
    ends = [np.r_[summed(m, reduced.q.values[i], reduced.v.values[i])] for i in (0, -1)]
    close(ends[1], ends[0], 1e-13, "momentum", scale=10.0)
    assert float(reduced.reduction_error) < 1e-13


def test_a_closure_between_free_bodies_does_not_change_the_momentum():
    m = several(["free", "free"]).with_(forces=[], constraints=[pf.coincide("grip", "arm", (0.2, 0.1, 0), "b1", (0, 0.3, 0.1))])
    random = np.random.default_rng(6)
    there = pf.assemble(m, pf.random_configuration(m, random), random.normal(size=m.nv))
    signals = checked_signals(pf.reduce(m), there.q, there.v, [0.3])
    assert (signals["rate"][m.nq : m.nq + 6] == 0).all()


def test_a_spring_to_the_world_leaves_rotations_about_its_end():
    m = several(["free", "free"])
    tether = pf.spring("tether", "world", "b1", point_a=(0.3, 0.2, 5.0), point_b=(0.1, 0, 0), stiffness=3.0)
    s = pf.reduction.symmetry(m.with_(forces=[*m.forces, tether]))
    assert s.group == "SO(3)"
    # A rotation about the end of the spring does not move that end.
    for x in s.basis.T:
        close(x[:3] + np.cross(x[3:], [0.3, 0.2, 5.0]), np.zeros(3), 1e-9, "point", scale=1.0)
    down = pf.reduction.symmetry(m.with_(forces=[*m.forces, tether], gravity=(0, 0, -1)))
    assert down.group == "SO(2)"
    close(np.cross(down.basis[3:, 0], [0, 0, 1]), np.zeros(3), 1e-9, "vertical", scale=1.0)


def test_a_symmetry_at_the_default_of_a_parameter_alone_does_not_count():
    """Two rails that are parallel while a parameter is zero."""
    tilt = pf.Parameter("tilt", 0.0, "rad")
    m = several(["prismatic", "prismatic"], {1: pf.pose((1, 0, 0), rpy=(tilt, 0, 0))}, parameters=[tilt])
    assert pf.reduction.symmetry(m).group == "none"
    with pytest.raises(pf.ModelError, match="none of these moves as all do together"):
        pf.reduce(m)


# -- joints in series -----------------------------------------------------------------------------------------------


def in_series(kinds, *, masses=(), placements=None, seed=2, **more):
    """A body on joints in series, each (kind, axis), with massless bodies between them, or bodies of these masses; an arm
    on it."""
    random = np.random.default_rng(seed)
    between = [f"n{i}" for i in range(len(kinds) - 1)]
    masses = [*masses, *[0.0] * (len(between) - len(masses))]
    bodies = [pf.body(n, x, inertia=0.1 * x) for n, x in zip(between, masses, strict=True)]
    bodies += [random_body(random, "hull"), random_body(random, "arm")]
    parents, joints = ["world", *between, "hull"], []
    for i, (kind, axis) in enumerate(kinds):
        place = (placements or {}).get(i, (0, 0, 0))
        joints.append(pf.joint(f"j{i}", kind, parents[i], parents[i + 1], axis=axis, placement=place) if axis else
                      pf.joint(f"j{i}", kind, parents[i], parents[i + 1], placement=place))  # fmt: skip
    joints.append(pf.joint("hinge", "revolute", "hull", "arm", axis=(1, 2, 0), placement=random_pose(random)))
    return machine(bodies, joints, actuators=[pf.actuator("motor", "hinge")], **more)


X, Y, Z = (1, 0, 0), (0, 1, 0), (0, 0, 1)
IN_SERIES = {
    "translation and ball": (in_series([("translation", None), ("spherical", None)]), "SE(3)", 6),
    "on frames of their own": (in_series([("translation", None), ("spherical", None)], placements={0: SLOPE}), "SE(3)", 6),
    "x, y, angle": (in_series([("prismatic", X), ("prismatic", Y), ("revolute", Z)]), "SE(2)", 3),
    "skew": (in_series([("prismatic", X), ("prismatic", (0.6, 0.8, 0)), ("revolute", Z)], placements={0: SLOPE}), "SE(2)", 3),
    "angle, x, y": (in_series([("revolute", Z), ("prismatic", X), ("prismatic", Y)]), "SE(2)", 3),
    "angles of Euler": (in_series([("translation", None), ("revolute", Z), ("revolute", Y), ("revolute", X)]), "SE(3)", 6),
    "universal and hinge": (in_series([("translation", None), ("universal", None), ("revolute", Z)]), "SE(3)", 6),
    "three slides": (in_series([("prismatic", X), ("prismatic", Y), ("prismatic", Z)]), "R^3", 3),
}  # fmt: skip


@pytest.mark.parametrize("m, group, k", IN_SERIES.values(), ids=IN_SERIES)
def test_joints_in_series_act_as_one(m, group, k):
    s = pf.reduction.symmetry(m)
    assert (s.group, s.joint) == (group, ", ".join(j.name for j in m.joints[:-1]))
    assert s.basis.shape == (6, k)
    system = pf.reduce(m)
    assert f"{s.joint} are taken as one that carries all, {group} in the world" in str(system)
    random = np.random.default_rng(4)
    q, v = pf.random_configuration(m, random), random.normal(size=m.nv)
    signals = checked_signals(system, q, v, [0.3])
    assert np.abs(signals["rate"][m.nq : m.nq + k]).max() < 1e-13
    close(signals["momentum_drift"], 0 * signals["momentum_drift"], 100 * DERIVATIVE, "momentum of the bodies", scale=1.0)


def test_a_slide_with_mass_reduces_the_group():
    """Where the slide x carries the slide y with a mass of its own, rotations do not move the machine as a whole; the
    momenta along x and y are still conserved."""
    m = in_series([("prismatic", X), ("prismatic", Y), ("revolute", Z)], masses=(0.5, 0.2))
    s = pf.reduction.symmetry(m)
    assert (s.group, s.joint) == ("R", "j0") and further(s) == ["moving along z of 'j1'"]


def test_joints_in_series_equal_a_free_joint_also_far_away():
    """A translation and a ball joint are compared with a free joint, near the origin and 7000 km away at 7.5 km/s under
    gravity."""
    turns = in_series([("translation", None), ("spherical", None)], gravity=(0.2, -9.7, 1.3))
    free = turns.with_(bodies=turns.bodies[1:], joints=[pf.joint("f", "free", "world", "hull"), turns.joints[-1]])
    random = np.random.default_rng(7)
    q, v = pf.random_configuration(free, random), random.normal(size=free.nv)
    R = Rotation.from_quat(q[3:7]).as_matrix()
    there = np.r_[R @ v[:3], v[3:]]
    long = KEEP | {"duration": 0.3, "every": 50}
    home, as_free = pf.run(pf.reduce(turns), q, there, **long), pf.run(pf.reduce(free), q, v, **long)
    close(home.q, as_free.q, 1e-11, "q")
    q[:3] += 7e6, -1e6, 2e6
    there[:3] += 0, 7.5e3, 100
    far = pf.run(pf.reduce(turns), q, there, **long)
    close(far.q[:, 3:], home.q[:, 3:], 1e-11, "attitude and shape")
    assert float(far.reduction_error) < 1e-9
