"""Random mechanisms with all kinds of joints and constraints, at states that satisfy their constraints.

Hypothesis draws the structure (which joints, which constraints), so that failures shrink; numbers come from one seed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import casadi as ca
import numpy as np
from hypothesis import strategies as st

import pfaffian as pf
from pfaffian.maths.closures import CLOSURES as KINDS_OF_CLOSURE
from pfaffian.maths.subgroups import SUBGROUPS
from pfaffian.model.constraint import AccelerationConstraint
from pfaffian.model.joint import KINDS, axis_frame
from pfaffian.model.pose import Pose
from pfaffian.terms.terms import symbols

JOINTS = (
    "revolute", "prismatic", "spherical", "planar", "free", "fixed", "helical", "cylindrical", "planar-translation",
    "translation", "universal", "planar-helical", "schoenflies",
)  # fmt: skip
SCREWS = ("helical", "planar-helical")
CLOSURES = tuple(name for name in KINDS_OF_CLOSURE if name != "fixed")  # it is the same as weld
SYMMETRIC = tuple(name for name in CLOSURES if not name.startswith("point"))  # they are the same from B to A
EXTRAS = ("duplicate", "reversed", "driven", "rolling", "squared", "within", "speed", "pushed")


@dataclass(frozen=True)
class Case:
    """A mechanism with a state on its constraints.   t: time of the state."""

    m: pf.Mechanism
    q: np.ndarray
    v: np.ndarray
    u: np.ndarray
    t: float

    def __repr__(self) -> str:
        joints = ", ".join(f"{j.kind.name} {j.parent}-{j.child}" for j in self.m.joints)
        return f"Case({joints}; {', '.join(c.name for c in self.m.constraints)}; q={self.q}, v={self.v}, t={self.t})"


def random_rotation(random: np.random.Generator) -> np.ndarray:
    Q, R = np.linalg.qr(random.normal(size=(3, 3)))
    Q = Q * np.sign(np.diag(R))
    return Q * np.linalg.det(Q)


def random_pose(random: np.random.Generator, reach: float = 0.5) -> pf.Pose:
    return pf.pose(random.uniform(-reach, reach, 3), rotation=random_rotation(random))


def random_body(random: np.random.Generator, name: str) -> pf.Body:
    """A body of six point masses in a cube, so that its inertia is always physical."""
    masses, points = random.uniform(0.1, 1, 6), random.uniform(-0.4, 0.4, (6, 3))
    com = masses @ points / masses.sum()
    arms = points - com
    I = sum(k * (a @ a * np.eye(3) - np.outer(a, a)) for k, a in zip(masses, arms, strict=True))
    return pf.body(name, masses.sum(), com, I.tolist())


def random_tree(random: np.random.Generator, kinds: list[str], parents: list[int]) -> pf.Mechanism:
    """A tree in which joint kinds[i] carries body i on body parents[i], -1 being the world; some joints have springs,
    dampers and armature."""
    bodies = [random_body(random, f"b{i}") for i in range(len(kinds))]
    joints = []
    for i, (kind, parent) in enumerate(zip(kinds, parents, strict=True)):
        above = "world" if parent < 0 else f"b{parent}"
        joints.append(
            pf.joint(f"j{i}", kind, above, f"b{i}", axis=random.normal(size=3), placement=random_pose(random),
                     child_placement=random_pose(random), **joint_numbers(random, kind))
        )  # fmt: skip
    return pf.mechanism("random", bodies, joints, gravity=random.normal(size=3) * 5)


def joint_numbers(random: np.random.Generator, kind: str) -> dict[str, Any]:
    """Pitch, spring, damper and armature of a joint: scalars, one number for each velocity, or matrices."""
    k = KINDS[kind]
    numbers: dict[str, Any] = {"pitch": random.choice([-0.3, 0.4])} if kind in SCREWS else {}
    if not k.nv:
        return numbers
    damping, stiffness = random.uniform(0, 0.5, k.nv), random.uniform(0, 5, k.nv)
    mixed = random.normal(size=(k.nv, k.nv))
    numbers["damping"] = [damping[0], damping, 0.2 * mixed @ mixed.T][random.integers(3)]
    numbers["stiffness"] = [0.0, stiffness[0], stiffness][random.integers(3)]
    numbers["armature"] = [0.0, 0.3, random.uniform(0, 0.5, k.nv)][random.integers(3)]
    return numbers | {"rest": random.uniform(-1, 1, k.nq)}


def random_forces(random: np.random.Generator, m: pf.Mechanism) -> pf.Mechanism:
    """A spring-damper, a wrench with a value, a wrench as input, and geared actuators."""
    names = [b.name for b in m.bodies]
    forces = [
        pf.spring("spring", "world", names[-1], point_a=random.normal(size=3) * 3, point_b=random.normal(size=3) * 0.2,
                  stiffness=4.0, rest=0.5, damping=0.3),
        pf.wrench("push", names[0], point=random.normal(size=3), axes="LOCAL", value=random.normal(size=6)),
        pf.wrench("hand", names[-1], point=random.normal(size=3), axes="WORLD"),
    ]  # fmt: skip
    motors = [pf.actuator(f"motor {j.name}", j.name, component=j.nv - 1, gear=random.uniform(0.5, 3)) for j in m.joints if j.nv]
    return m.with_(forces=forces, actuators=motors)


def moving(m: pf.Mechanism) -> list[str]:
    """Bodies that move, because of their joint or one before it."""
    found: list[str] = []
    for j in m.joints:
        if j.nv or j.parent in found:
            found.append(j.child)
    return [b.name for b in m.bodies if b.name in found]


def placements(m: pf.Mechanism, q: np.ndarray) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Rotation and position of every body, the world included."""
    parts = {b.name: lambda T, n=b.name: ca.horzcat(T.kinematics.rotation(n), T.kinematics.position(n)) for b in m.bodies}
    found = pf.compile_terms(m, parts, backend="numpy", lanes=1)(q)
    return {n: (G[:, :3], G[:, 3]) for n, G in found.items()} | {"world": (np.eye(3), np.zeros(3))}


def closing(name: str, kind: str, a: str, b: str, random: np.random.Generator, at: dict) -> Any:
    """A closure between two bodies that is satisfied at their placements, with its frames moved along what it leaves free."""
    X, axis = random_pose(random), random.normal(size=3)
    (Ra, pa), (Rb, pb) = at[a], at[b]
    number = KINDS_OF_CLOSURE[kind].number
    numbers = {number: random.uniform(0.1, 0.5)} if number else {}
    G = axis_frame(axis, name)
    there = X @ G @ allowed(kind, random, numbers) @ Pose(G.R.T, ca.SX.zeros(3, 1))
    if kind == "universal":
        numbers["axis_b"] = np.array(ca.DM(G.R))[:, 0]
    R, p = Ra @ np.array(ca.DM(there.R)), Ra @ np.array(ca.DM(there.p)).ravel() + pa
    Y = pf.pose(Rb.T @ (p - pb), rotation=Rb.T @ R)
    return pf.closure(name, kind, a, b, placement_a=X, placement_b=Y, axis=axis, **numbers)


def allowed(kind: str, random: np.random.Generator, numbers: dict) -> pf.Pose:
    """A pose of b relative to a that a closure with the axis z allows; for a universal joint x is the second axis of b."""
    if kind == "universal":  # about z of a, then about x of b
        a, b = random.uniform(-np.pi, np.pi, 2)
        return pf.pose(rpy=(0, 0, a)) @ pf.pose(rpy=(b, 0, 0))
    place = {"point-on-line": (0, 0, 1), "point-on-plane": (1, 1, 0), "distance": (1, 1, 1)}.get(kind)
    if place:
        p = random.normal(size=3) * place
        return pf.pose(p * numbers["length"] / np.linalg.norm(p) if numbers else p, rotation=random_rotation(random))
    g = SUBGROUPS["fixed" if kind == "weld" else kind]
    g = g.with_pitch(numbers["pitch"]) if g.screws else g
    q = random.uniform(-1, 1, g.nq) * (20 if g.screws else 1)
    R, p = g.motion(ca.DM(q / np.linalg.norm(q) if kind == "spherical" else q)) if g.nq else (np.eye(3), np.zeros(3))
    return pf.pose(np.array(ca.DM(p)).ravel(), rotation=np.array(ca.DM(R)))


def reverse(c: Any) -> Any:
    """The same closure with its ends exchanged: other rows in the same row space."""
    ends = {"body_a": c.body_b, "body_b": c.body_a, "placement_a": c.placement_b, "placement_b": c.placement_a}
    return replace(c, name=f"{c.name} reversed", **ends)


def extra(kind: str, m: pf.Mechanism, made: list, random: np.random.Generator, at: dict, t: float) -> list:
    """Constraints that are difficult in some way, all satisfied at these placements."""
    name, body = f"{kind} {len(made)}", str(random.choice([n for n in moving(m) if "plate" not in n]))
    x, i = random.normal(size=3) * 0.3, int(random.integers(3))
    R, p = at[body]
    here = float((R @ x + p)[i])
    if kind == "duplicate" and made:
        return [type(made[0])(**{**vars(made[0]), "name": name})]
    if kind == "reversed" and made and getattr(made[-1], "kind", "") in SYMMETRIC:
        return [reverse(made[-1])]
    if kind == "driven":
        return [pf.holonomic(name, lambda k: k.position(body, x)[i] - here - 0.1 * (ca.sin(3 * k.t) - np.sin(3 * t)))]
    if kind == "rolling":
        return [pf.nonholonomic(name, lambda k: ca.dot(k.rotation(body)[:, i], k.velocity(body, x)) - 0.2 * ca.cos(k.t))]
    if kind == "speed":  # not affine in v
        return [pf.nonholonomic(name, lambda k: ca.sumsqr(k.velocity(body, x)) - 0.5 - 0.1 * ca.sin(3 * k.t))]
    if kind == "pushed":  # constrains accelerations, by rows that depend on q, v and t
        mix = random.normal(size=(2, m.nv))
        return [pf.constraints.acceleration_constraint(name, lambda k: _pushed(k, mix))]
    if kind == "squared":  # the plain row, and one whose gradient vanishes wherever the plain one is satisfied
        return [
            pf.holonomic(name, lambda k: k.position(body, x)[i] - here),
            pf.holonomic(f"{name} again", lambda k: (k.position(body, x)[i] - here) ** 2),
        ]
    if kind == "within":  # a closure between a body and itself, through a fixed joint: its rows are always zero
        return [pf.closure(name, "weld", body, f"{body} plate")]
    return []


def _pushed(k: pf.Kinematics, mix: np.ndarray) -> tuple[ca.SX, ca.SX]:
    Z = mix[:1] + 0.3 * mix[1:] * ca.sin(ca.sum1(k.v) + k.q[0] + k.t)
    return Z, ca.cos(k.v[0] - k.t)


def constrained(
    random: np.random.Generator, kinds: list[str], parents: list[int], closures: list[str], extras: list[str]
) -> Case:
    """A mechanism at a random state that satisfies all its constraints in position and velocity."""
    m = random_tree(random, kinds, parents)
    m = random_forces(random, m)
    if "within" in extras:
        plates = [random_body(random, f"{b.name} plate") for b in m.bodies]
        bolts = [pf.joint(f"{b.name} bolt", "fixed", b.name, f"{b.name} plate") for b in m.bodies]
        m = m.with_(bodies=[*m.bodies, *plates], joints=[*m.joints, *bolts])
    q, t = pf.random_configuration(m, random), float(random.uniform(0, 2))
    at = placements(m, q)
    ends, made = [n for n in moving(m) if "plate" not in n], []
    for i, kind in enumerate(closures):
        b = ends[-1 - i % len(ends)]
        a = str(random.choice([n for n in ("world", *ends) if n != b]))
        made.append(closing(f"{kind} {i}", kind, a, b, random, at))
    for kind in dict.fromkeys(extras):
        made += extra(kind, m, made, random, at, t)
    m = m.with_(constraints=made)
    v = on_velocity(m, q, random.normal(size=m.nv), t)
    m = _without_contradiction(Case(m, q, v, np.zeros(m.nu), t))
    return Case(m, q, v, random.normal(size=m.nu), t)


def _without_contradiction(case: Case) -> pf.Mechanism:
    """The mechanism, without rows of accelerations if the other rows leave no freedom for them, since then they would
    contradict."""
    m, others = case.m, [c for c in case.m.constraints if not isinstance(c, AccelerationConstraint)]
    if len(others) == len(m.constraints):
        return m
    rows = matrices(case, {"A": lambda T: T.A, "level": lambda T: ca.DM(T.rows.level)})
    A, before = rows["A"], rows["A"][rows["level"].ravel() < 2]
    free = np.linalg.matrix_rank(A, tol=1e-2) > np.linalg.matrix_rank(before, tol=1e-2)
    return m if free else m.with_(constraints=others)


def on_velocity(m: pf.Mechanism, q: np.ndarray, v: np.ndarray, t: float) -> np.ndarray:
    """v projected onto eta = 0 by NumPy's pseudoinverse, in one step if eta is affine in v."""
    if not m.constraints:
        return v
    rows_of = {"A": lambda T: T.A[T.rows.at(0, 1), :], "eta": lambda T: T.rows.eta[T.rows.at(0, 1), 0]}
    at = of_terms(m, rows_of)
    for _ in range(12 if any(c.name.startswith("speed") for c in m.constraints) else 1):
        rows = at(q, v, np.zeros(m.nu), t)
        v = v - (np.linalg.pinv(rows["A"], rcond=1e-9) @ rows["eta"]).ravel()
    return v


@st.composite
def trees(draw: st.DrawFn, most: int = 6) -> tuple[np.random.Generator, list[str], list[int]]:
    """A random generator, and the joints and parents of up to `most` bodies."""
    kinds = draw(st.lists(st.sampled_from(JOINTS), min_size=1, max_size=most).filter(lambda kinds: set(kinds) != {"fixed"}))
    parents = [draw(st.integers(-1, i - 1)) for i in range(len(kinds))]
    return np.random.default_rng(draw(st.integers(0, 2**32 - 1))), kinds, parents


@st.composite
def loops(draw: st.DrawFn, most: int = 5, kinds_of_more: tuple[str, ...] = EXTRAS) -> Case:
    """A constrained mechanism at a consistent state."""
    random, kinds, parents = draw(trees(most))
    closures = draw(st.lists(st.sampled_from(CLOSURES), min_size=0, max_size=2))
    if len(kinds) < 2:
        closures = closures[:1]
    extras = draw(st.lists(st.sampled_from(kinds_of_more), min_size=0 if closures else 1, max_size=3))
    if not closures and not set(extras) & {"driven", "rolling", "squared", "within", "speed", "pushed"}:
        extras = [*extras, "driven"]
    return constrained(random, kinds, parents, closures, extras)


@st.composite
def small(draw: st.DrawFn) -> Case:
    """Sizes 0, 1, 2 of everything: one or two joints that move, mounts, rows, inputs, parameters."""
    count = st.integers(0, 2)
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    kinds = draw(st.lists(st.sampled_from(("revolute", "prismatic", "fixed", "fixed", "planar", "spherical")), min_size=1,
                          max_size=3).filter(lambda kinds: set(kinds) != {"fixed"}))  # fmt: skip
    parents = [draw(st.integers(-1, i - 1)) for i in range(len(kinds))]
    m = random_tree(random, kinds, parents)
    p = [pf.Parameter(f"p{i}", 1.0 + i, "kg") for i in range(draw(count))]
    bodies = [
        pf.body(b.name, b.mass * (x / x.default), b.com, b.inertia * (x / x.default)) for b, x in zip(m.bodies, p, strict=False)
    ]
    m = m.with_(bodies=[*bodies, *m.bodies[len(bodies) :]], parameters=p[: len(bodies)])
    motors = pf.actuate_all(m).actuators[: draw(count)]
    m = m.with_(actuators=motors, forces=[pf.wrench("hand", "b0")] if draw(st.booleans()) and not motors else [])
    q, t = pf.random_configuration(m, random), 0.0
    at, last_body, made = placements(m, q), moving(m)[-1], []
    for i in range(draw(count)):
        made.append(closing(f"c{i}", "point-on-plane", "world", last_body, random, at))
    m = m.with_(constraints=made)
    return Case(m, q, on_velocity(m, q, random.normal(size=m.nv), t), random.normal(size=m.nu), t)


def matrices(case: Case, parts: dict[Any, Any]) -> dict[Any, np.ndarray]:
    """Functions of Terms at the state of the case, by any keys, each as a matrix (rows, columns)."""
    return of_terms(case.m, parts)(case.q, case.v, case.u, case.t)


def of_terms(m: pf.Mechanism, parts: dict[Any, Any]) -> Callable[..., dict[Any, np.ndarray]]:
    """(q, v, u, t) -> functions of Terms, each as a matrix, by CasADi, since a Program does not pay for one state."""
    T = symbols(m)
    made = [ca.densify(ca.SX(f(T))) for f in parts.values()]
    f = ca.Function("parts", [T.q, T.v, T.u, T.t, m.p_symbols], made, {"cse": True})

    def at(q: np.ndarray, v: np.ndarray, u: np.ndarray, t: float) -> dict[Any, np.ndarray]:
        found = f.call([ca.DM(x) for x in (q, v, u, t, m.p_defaults)])
        return {key: np.array(x).reshape(x.shape) for key, x in zip(parts, found, strict=True)}

    return at
