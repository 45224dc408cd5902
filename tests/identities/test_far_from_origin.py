"""What does not depend on the place of a machine keeps its digits 384,000 km from the world's origin.

Each quantity is computed there and at the origin. The two places differ by whole numbers, which are added without rounding, so
that the poses of the bodies relative to each other are the same to the last bit.
"""

from __future__ import annotations

import numpy as np
import pytest

import pfaffian as pf
from pfaffian import control
from pfaffian.control.task import task_terms
from pfaffian.dynamics.regularity import regularity
from pfaffian.maths import so3
from pfaffian.terms.common_motion import common_motion
from pfaffian.terms.reduced_terms import split

AWAY = np.array([3.5e8, -1.5e8, 0.5e8])
"""Displacement [m]. Numbers of its size are rounded by up to 3e-8."""

KEPT = 1e-13
"""Difference relative to the largest entry: some hundred roundings of numbers of the machine's size. A vector that is computed
from two positions in the world is off by 1e-9 or more."""

NEAR = 1e-11
"""Difference of connections about two points a few metres apart, relative to the largest entry: rounding times the condition of
the inertia about the farther one."""

POINT = (0.1, -0.2, 0.3)


def tug(base: str = "free", **more) -> pf.Mechanism:
    """A hull with a mast and two arms, beside a crate that floats freely.   base: the joints that carry the hull."""
    bodies = [pf.body("hull", 80.0, (0.1, 0.2, -0.1), (20, 30, 25)), pf.body("crate", 30.0, (0.1, 0, 0.1), (5, 6, 7)),
              pf.body("mast", 3.0, (0, 0, 0.4), (0.2, 0.2, 0.1))]  # fmt: skip
    carriers = {
        "free": [pf.joint("base", "free", "world", "hull")],
        "in series": [pf.joint("base", "translation", "world", "frame"), pf.joint("turn", "spherical", "frame", "hull")],
    }[base]
    bodies += [pf.body("frame", 0.0)] if base == "in series" else []
    joints = [*carriers, pf.joint("mast", "cylindrical", "hull", "mast", axis=(0.1, 0, 1), placement=(0, 0.3, 0.5))]
    for side, x in (("left", 0.5), ("right", -0.5)):
        parent, at = "hull", pf.pose((x, 0.1, 0.2), rpy=(0.1, 0.2, 0.3))
        for i, axis in enumerate(((0, 0, 1), (0, 1, 0), (0, 1, 0.2))):
            bodies.append(pf.body(f"{side}{i}", 4.0, (0.3, 0.02, 0.01), (0.1, 0.5, 0.5)))
            joints.append(pf.joint(f"{side}{i}", "revolute", parent, f"{side}{i}", axis=axis, placement=at))
            parent, at = f"{side}{i}", pf.pose((0.8, 0.05, 0))
    if base == "free":
        joints.append(pf.joint("crate", "free", "world", "crate"))
    else:
        joints.append(pf.joint("crate", "spherical", "mast", "crate", placement=(0, 0, 0.9)))
    thruster = pf.forces.thruster("jet", "left2", axis=(1, 0, 0.5), point=POINT, torque=0.1)
    return pf.mechanism("tug", bodies, joints, gravity=(0, 0, 0), actuators=[thruster], **more)


def state(m: pf.Mechanism, away: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """q and v (n,), the machine displaced by `away` (3,)."""
    random, q = np.random.default_rng(8), m.neutral()
    for j in m.joints:
        at = m.q_slices[j.name]
        if j.kind.name in ("free", "translation"):
            q[at.start : at.start + 3] = away + {"base": (1.0, 2.0, -3.0), "crate": (3.0, 1.0, -4.0)}[j.name]
        if j.kind.quaternion:
            turn = so3.rpy_to_matrix(random.uniform(-1, 1, 3))
            q[at.stop - 4 : at.stop] = so3.quaternions(np.array(turn, dtype=float))
        elif j.kind.name != "translation":
            q[at] = random.uniform(-1, 1, at.stop - at.start)
    return q, random.normal(size=m.nv)


def kept(ask, **more) -> None:
    """Assert that ask(m, q, v), a number, an array or a list of these, is the same at the origin and away from it."""
    m = tug(**more)
    here, there = (ask(m, *state(m, away)) for away in (0 * AWAY, AWAY))
    many = isinstance(here, list)
    for at_origin, far in zip(here if many else [here], there if many else [there], strict=True):
        size = max(float(np.abs(at_origin).max()), np.finfo(float).tiny)
        assert np.abs(far - at_origin).max() <= KEPT * size, np.abs(far - at_origin).max() / size


def terms(*functions):
    """ask(m, q, v) for functions of Terms."""

    def ask(m, q, v):
        parts = {str(i): f for i, f in enumerate(functions)}
        return list(pf.compile_terms(m, parts, backend="numpy", lanes=1, squeeze=False)(q, v).values())

    return ask


AXES = ("LOCAL", "LOCAL_WORLD_ALIGNED")
BASES = ("free", "in series")

QUANTITIES = {
    "mass_matrix": lambda m, q, v: pf.mass_matrix(m, q),
    "bias_force": lambda m, q, v: pf.bias_force(m, q, v),
    "input matrix": terms(lambda T: T.B),
    "jacobian": lambda m, q, v: [pf.jacobian(m, body, q, frame=f, point=POINT) for f in AXES for body in ("left2", "crate")],
    "velocities": terms(
        lambda T: T.kinematics.velocity("left2", POINT), lambda T: T.kinematics.bias_acceleration("right1", POINT),
        lambda T: T.kinematics.specific_force("left2", T.v, POINT),
    ),
    "relative": terms(*[
        part for a, b in (("left2", "right2"), ("left2", "hull"), ("hull", "mast"), ("crate", "left1"), ("left1", "crate"))
        for part in (
            lambda T, a=a, b=b: T.kinematics.relative(a, b)[0].p, lambda T, a=a, b=b: T.kinematics.relative(a, b)[1],
            lambda T, a=a, b=b: T.kinematics.relative_pose(a, b).p,
            lambda T, a=a, b=b: T.kinematics.line(a, b, POINT, (0.3, 0.1, 0.2)),
        )
    ]),
    "screw_jacobian": lambda m, q, v: [
        pf.screws.screw_jacobian(m, a, pf.screws.chart_to_screw(m, q), relative_to=b, frame=f)
        for a, b, f in (("left2", "hull", "left2"), ("left2", "right2", "hull"), ("mast", "left1", "right2"))
    ],
    "tasks": terms(*[
        part for task in (control.point("left2", POINT), control.pose("right2"), control.centre_of_mass())
        for part in (lambda T, task=task: task_terms(T, task).J, lambda T, task=task: task_terms(T, task).drift)
    ]),
}  # fmt: skip


@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("name", QUANTITIES)
def test_quantities(name, base):
    kept(QUANTITIES[name], base=base)


FLOATING = {
    "generalised_jacobian": lambda m, q, v: [
        pf.reduction.generalised_jacobian(m, "left2", q, frame=frame, point=POINT) for frame in AXES
    ],
    "momentum_twist": lambda m, q, v: [
        pf.reduction.momentum_twist(m, "left2", q, v, frame=frame, point=POINT) for frame in AXES
    ],
    "reaction_null_space": lambda m, q, v: [
        pf.reduction.reaction_null_space(m, q, keep=keep) for keep in ("pose", "attitude")
    ],
    "shape_inertia": lambda m, q, v: pf.reduction.shape_inertia(m, q),
}  # fmt: skip


@pytest.mark.parametrize("name", FLOATING)
@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("loop", [False, True], ids=["tree", "loop"])
def test_floating_machines(name, base, loop):
    kept(FLOATING[name], base=base, constraints=[closure("fixed", "left2", "right2")] if loop else [])


def closure(kind: str, a: str, b: str):
    """A closure that the states of these tests violate."""
    more = {"universal": {"axis": (0, 0, 1), "axis_b": (1, 0, 0)}, "distance": {"length": 1.0}}.get(kind, {})
    return pf.closure("grip", kind, a, b, placement_a=(0.5, 0, 0), placement_b=(0.5, 0.1, 0), **more)


ROWS = terms(lambda T: T.A, lambda T: T.b, lambda T: T.rows.phi, lambda T: T.rows.eta)


@pytest.mark.parametrize("ends", [("left2", "right2"), ("left1", "crate")], ids=" to ".join)
@pytest.mark.parametrize("kind", ["spherical", "fixed", "revolute", "universal", "distance", "point-on-line"])
def test_closures(kind, ends):
    grip = closure(kind, *ends)
    kept(ROWS, constraints=[grip])
    kept(lambda m, q, v: pf.forward_dynamics(m, q, v).v_dot, constraints=[grip])


@pytest.mark.parametrize("base", BASES)
def test_regularity(base):
    kept(terms(regularity), base=base, constraints=[closure("universal", "left2", "right2")])


ROLLING = {
    "sphere": lambda a, b: pf.rolling.sphere("s", a, 0.3, centre=POINT, plane=pf.rolling.plane(on=b, rate=0.2)),
    "disk": lambda a, b: pf.rolling.disk("d", a, 0.3, plane=pf.rolling.plane(on=b, through=POINT, rate=0.2)),
    "ellipsoid": lambda a, b: pf.rolling.ellipsoid("e", a, (0.3, 0.2, 0.1), centre=POINT, plane=pf.rolling.plane(on=b)),
    "knife edge": lambda a, b: pf.rolling.knife_edge("k", a, (1, 0, 0), point=POINT, plane=pf.rolling.plane(on=b)),
    "wheel": lambda a, b: pf.rolling.wheel("w", a, 0.3, plane=pf.rolling.plane(on=b, through=POINT)),
}


@pytest.mark.parametrize("ends", [("left2", "right2"), ("left1", "crate")], ids=" on ".join)
@pytest.mark.parametrize("kind", ROLLING)
def test_rolling(kind, ends):
    kept(ROWS, constraints=[ROLLING[kind](*ends)])


FORCES = {
    "spring": lambda a, b: pf.spring("s", a, b, point_a=POINT, stiffness=100.0, rest=0.5, damping=3.0),
    "wrench": lambda a, b: pf.wrench("w", a, (1, 2, 3, 0.1, 0.2, 0.3), point=POINT, by=b),
    "pose_spring": lambda a, b: pf.forces.pose_spring("p", a, b, np.diag([1.0, 2, 3, 4, 5, 6])),
    "pose_damper": lambda a, b: pf.forces.pose_damper("p", a, b, np.diag([1.0, 2, 3, 4, 5, 6])),
    "cable": lambda a, b: pf.forces.cable("c", a, b, point_a=POINT, length=0.3, stiffness=100.0, damping=0.1),
    "contact": lambda a, b: pf.forces.contact(
        "c", a, b, shape_a=POINT, shape_b=pf.pose((0, 0, 9.0)), stiffness=100.0, damping=0.1, friction=0.3
    ),
    "balls": lambda a, b: pf.forces.contact(
        "c", a, b, shape_a=pf.shape("sphere", radius=2.0), shape_b=pf.shape("capsule", radius=3.0, length=1.0),
        stiffness=100.0, friction=0.3,
    ),
    "contact_friction": lambda a, b: pf.forces.contact_friction(
        "f", a, b, normal=(0, 0, 1), load=2.0, coefficient=1.0, point=POINT
    ),
    "tyre": lambda a, b: pf.forces.tyre("t", a, 0.3, load=3.0, plane=pf.rolling.plane(on=b)),
}  # fmt: skip


@pytest.mark.parametrize("ends", [("left2", "right2"), ("crate", "left1")], ids=" and ".join)
@pytest.mark.parametrize("kind", FORCES)
def test_forces(kind, ends):
    kept(terms(lambda T: T.f, lambda T: T.V), forces=[FORCES[kind](*ends)])


def test_reactions():
    """Of a machine at rest whose loop is closed, under a wrench."""
    push = pf.wrench("push", "right1", (1, 2, 3, 0.1, 0.2, 0.3), point=POINT)
    m = tug(constraints=[closure("spherical", "left2", "right2")], forces=[push])
    near = state(m, 0 * AWAY)[0]
    at = pf.assemble(m, near, hold=["base", "crate"]).q
    far = at.copy()
    for joint in ("base", "crate"):
        first = m.q_slices[joint].start
        far[first : first + 3] += AWAY
    for name in ("left0", "mast", "grip"):
        for frame in AXES:
            here, there = (pf.reaction_wrench(m, name, q, frame=frame).wrench for q in (at, far))
            assert np.abs(here - there).max() <= KEPT * max(1.0, np.abs(here).max())


@pytest.mark.parametrize("base", BASES)
def test_the_connection_of_several_joints_is_that_about_the_origin(base):
    """Its translations contain the displacement, by nature; they are as exact as their largest numbers."""
    m = tug(base)
    here, there = (pf.reduction.mechanical_connection(m, state(m, away)[0]) for away in (0 * AWAY, AWAY))
    assert np.abs(there[3:] - here[3:]).max() <= KEPT * np.abs(here[3:]).max()
    x, y, z = AWAY
    moved = here[:3] + np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]]) @ here[3:]
    assert np.abs(there[:3] - moved).max() <= KEPT * np.abs(moved).max()


def two_tables() -> pf.Mechanism:
    """A puck that slides and turns on a table, tied to a cart that slides on it and carries a wheel: they share two
    translations, and the turning of the puck remains."""
    bodies = [pf.body("puck", 2.0, (0.1, 0.2, 0), 0.3), pf.body("cart", 0.0), pf.body("wheel", 1.0, (0, 0.1, 0.3), 0.2)]
    joints = [pf.joint("puck", "planar", "world", "puck"), pf.joint("cart", "planar-translation", "world", "cart"),
              pf.joint("wheel", "revolute", "cart", "wheel", axis=(1, 0, 0))]  # fmt: skip
    return pf.mechanism("two tables", bodies, joints, gravity=(0, 0, 0))


@pytest.mark.parametrize(
    "make", [lambda: tug("in series"), lambda: tug("free"), two_tables], ids=["in series", "free", "tables"]
)
def test_the_connection_is_that_of_motions_about_the_origin(make):
    """Near the origin it can be computed from these motions directly."""
    m = make()
    common = common_motion(m)
    q = pf.random_configuration(m, np.random.default_rng(4))

    def directly(T):
        X = common.lift(T.kinematics)
        return split(X.T @ T.M @ X, common.entries(T.kinematics.tree)).A

    (A,) = terms(directly)(m, q, None)
    assert np.abs(pf.reduction.mechanical_connection(m, q) - A).max() <= NEAR * np.abs(A).max()
    floating = pf.compile_terms(m, {"A": lambda T: pf.reduction.floating_base(T).blocks.A}, backend="numpy", lanes=1)(q)["A"]
    assert np.abs(floating - A).max() <= NEAR * np.abs(A).max()
