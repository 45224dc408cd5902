"""Machines as graphs of bodies and joints, any of which may be cut if a tree remains; and their regularity by NumPy.

The machine is described in one configuration, by the poses of its bodies and of the frames of its joints in the world. A joint
of the tree has its coordinates at zero there, so that this is the neutral configuration, whatever is cut.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

import pfaffian as pf
from pfaffian.maths.subgroups import SUBGROUPS
from tests.random_mechanisms import random_pose

PITCH = 0.3
KINDS = [kind for kind in SUBGROUPS if kind not in ("free", "fixed")]


class Part(NamedTuple):
    """A joint of a kind between two bodies.   at: its frame in the world.   to: the frame of b for a kind that is no group
    of motions, a universal joint, a point on a line or plane, or a rod. Such a joint is always cut."""

    kind: str
    a: str
    b: str
    at: pf.Pose
    to: pf.Pose | None = None


class Graph(NamedTuple):
    """bodies: name -> (pose in the world, mass, mass centre in the body (3,), radius of gyration).   parts: name -> joint."""

    bodies: dict[str, tuple[pf.Pose, float, np.ndarray, float]]
    parts: dict[str, Part]


def machine(
    g: Graph,
    cut: set[str],
    random: np.random.Generator | None = None,
    options: Mapping[str, Mapping[str, Any]] = MappingProxyType({}),
) -> pf.Mechanism:
    """The machine with these joints cut. With `random` the frames of closures are moved along what they leave free, and some
    ends are exchanged.

    options: joint -> further options, or its pose if it is an edge.
    """
    where = {"world": pf.pose()} | {name: body[0] for name, body in g.bodies.items()}
    bodies = [pf.body(name, mass, com, 2 / 3 * mass * radius**2) for name, (_, mass, com, radius) in g.bodies.items()]
    joints, reached, waiting = [], ["world"], {n: p for n, p in g.parts.items() if n not in cut}
    while waiting:
        name, part = next((n, p) for n, p in waiting.items() if (p.a in reached) != (p.b in reached))
        del waiting[name]
        parent, child = (part.a, part.b) if part.a in reached else (part.b, part.a)
        ends = {"placement": where[parent].inverse() @ part.at, "child_placement": where[child].inverse() @ part.at}
        more = options.get(name, {})
        if "pose" in more:
            A, B, way = ends["placement"], ends["child_placement"].inverse(), more["pose"]
            away = parent == part.a
            moved = way if away else lambda k, way=way: way(k).inverse()
            joints.append(pf.edge(name, parent, child, lambda k, A=A, B=B, moved=moved: A @ moved(k) @ B))
        else:
            joints.append(pf.joint(name, part.kind, parent, child, **ends, **_number(part.kind), **more))
        reached.append(child)
    closures = []
    for name in sorted(cut, reverse=random is not None):
        part = g.parts[name]
        if part.to is not None:
            closures.append(_plain_closure(name, part, where))
            continue
        if random is not None and random.random() < 0.5:
            part = part._replace(a=part.b, b=part.a)
        moved = [_moved(part.kind, random) if random else pf.pose() for _ in range(2)]
        A, B = (where[x].inverse() @ part.at @ X for x, X in zip((part.a, part.b), moved, strict=True))
        closures.append(pf.closure(name, part.kind, part.a, part.b, placement_a=A, placement_b=B, **_number(part.kind)))
    return pf.mechanism("graph", bodies, joints, constraints=closures)


def _plain_closure(name: str, part: Part, where: Mapping[str, pf.Pose]) -> pf.Constraint:
    """Closure for a joint that is no group of motions."""
    assert part.to is not None
    A, B = where[part.a].inverse() @ part.at, where[part.b].inverse() @ part.to
    more: dict[str, Any] = {"axis_b": (0, 0, 1)} if part.kind == "universal" else {}
    if part.kind == "distance":
        more = {"length": float(ca.norm_2(part.to.p - part.at.p))}
    return pf.closure(name, part.kind, part.a, part.b, placement_a=A, placement_b=B, **more)


def _plain(part: Part, centre: Mapping[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray, list[float]]:
    """Point and freedoms [m or 1; 1] of a joint that is no group of motions, and the lengths that it contributes."""
    assert part.to is not None
    (R, p), (Q, r) = ((np.array(ca.DM(X.R)), np.array(ca.DM(X.p)).ravel()) for X in (part.at, part.to))
    turns = np.vstack([np.zeros((3, 3)), np.eye(3)])
    slides = {"point-on-line": R[:, 2:], "point-on-plane": R[:, :2], "distance": np.linalg.svd((r - p)[None])[2][1:].T}
    arms = [np.linalg.norm(centre[part.b] - r)] if part.b in centre else []
    if not part.kind.startswith("point") and part.a in centre:  # frame A of a point may lie anywhere on its line or plane
        arms.append(np.linalg.norm(centre[part.a] - p))
    if part.kind == "universal":
        return p, np.vstack([np.zeros((3, 2)), np.column_stack([R[:, 2], Q[:, 2]])]), arms
    x = slides[part.kind]
    rod = [np.linalg.norm(r - p)] if part.kind == "distance" else []
    return (p + r) / 2 if rod else r, np.hstack([np.vstack([x, 0 * x]), turns]), arms + rod


def _number(kind: str) -> dict[str, float]:
    return {"pitch": PITCH} if "helical" in kind else {}


def _moved(kind: str, random: np.random.Generator) -> pf.Pose:
    g = SUBGROUPS[kind].with_pitch(PITCH) if "helical" in kind else SUBGROUPS[kind]
    q = random.normal(size=g.nq)
    R, p = g.motion(ca.DM(q / np.linalg.norm(q) if kind == "spherical" else q)) if g.nq else (np.eye(3), np.zeros(3))
    return pf.pose(np.array(p).ravel(), rotation=np.array(R))


def by_numpy(g: Graph, tree: set[str], tied: tuple[str, str, float] | None = None) -> float:
    """Regularity of a graph in which all loops share joints, by singular values: those of S in the metric of G.

    tied: a hinge, another one that turns with it, and the ratio of their rates.
    """
    position = {n: np.array(ca.DM((X @ pf.pose(com)).p)).ravel() for n, (X, _, com, _) in g.bodies.items()}
    names = [n for n in g.parts if g.parts[n].kind != "fixed"]
    whole = _welded(g)
    mass = {n: body[1] for n, body in g.bodies.items()}
    centre = {n: sum(mass[x] * position[x] for x in whole[n]) / sum(mass[x] for x in whole[n])
              for n in g.bodies if "world" not in whole[n] and mass[n]}  # fmt: skip
    lengths = [np.sqrt(sum(mass[x] * (g.bodies[x][3] ** 2 + ((position[x] - c) ** 2).sum()) for x in whole[n])
                       / sum(mass[x] for x in whole[n])) for n, c in centre.items()]  # fmt: skip
    points, freedoms = {}, {}
    for n in names:
        part = g.parts[n]
        if part.to is not None:
            points[n], freedoms[n], more = _plain(part, centre)
            lengths += more
            continue
        R, p = np.array(ca.DM(part.at.R)), np.array(ca.DM(part.at.p)).ravel()
        near = [centre[x] for x in (part.a, part.b) if x in centre]
        group = SUBGROUPS[part.kind]
        free = sorted({0: {0, 1, 2}, 1: {2, *group.along}, 3: {*group.along}}[len(group.rotation.axes)])
        points[n] = p + R[:, free] @ R[:, free].T @ (np.mean(near, axis=0) - p) if near else p
        if group.rotation.axes and not {0, 1} & {*group.along}:
            lengths += [np.linalg.norm((np.eye(3) - R[:, free] @ R[:, free].T) @ (c - p)) for c in near]
        freedoms[n] = np.kron(np.eye(2), R) @ np.array(ca.DM((group.with_pitch(PITCH) if group.screws else group).S))
        lengths += [PITCH] * group.screws
    apart = np.array([points[n] for n in names]) - np.mean([points[n] for n in names], axis=0)
    long = max(lengths) if lengths else np.linalg.norm(apart)
    scale, loops = np.diag([1 / long] * 3 + [1.0] * 3), _cycles(g, tree)
    T, S = [], []
    for way in loops:
        T.append([way.get(n, 0) * _shift((points[n] - points[names[0]]) / long) for n in names])
        S.append([X @ scale @ freedoms[n] @ np.diag([long if not u[3:].any() else 1.0 for u in freedoms[n].T])
                  for X, n in zip(T[-1], names, strict=True)])  # fmt: skip
    T = np.block(T)
    if tied is None:
        S = np.block(S)
    else:
        first, second, ratio = names.index(tied[0]), names.index(tied[1]), tied[2]
        both = [[(row[first] + ratio * row[second]) / np.hypot(1, ratio)] for row in S]
        S = np.block([x + [y for j, y in enumerate(row) if j not in (first, second)] for x, row in zip(both, S, strict=True)])
    F = np.linalg.cholesky(T @ T.T)
    back = np.linalg.pinv(np.linalg.solve(F, S), rcond=1e-7) @ np.linalg.solve(F, T)
    sizes = [(back[:, 6 * i : 6 * i + 6] ** 2).sum() for i in range(len(names))]
    rank = np.linalg.matrix_rank(np.linalg.solve(F, S), tol=1e-7)
    return float(np.sqrt(rank / (len(names) * max(sizes))))


def _shift(r: np.ndarray) -> np.ndarray:
    """Matrix that takes a twist [v; w] at r to the origin."""
    X = np.eye(6)
    X[:3, 3:] = np.cross(r, np.eye(3)).T
    return X


def _welded(g: Graph) -> dict[str, set[str]]:
    whole = {n: {n} for n in ("world", *g.bodies)}
    for part in g.parts.values():
        if part.kind == "fixed":
            both = whole[part.a] | whole[part.b]
            whole |= dict.fromkeys(both, both)
    return whole


def _cycles(g: Graph, tree: set[str]) -> list[dict[str, int]]:
    """For each joint outside the tree, the signs of the joints around its loop, from a null vector of the incidence matrix."""
    bodies, found = ["world", *g.bodies], []
    column = {
        n: (np.array([x == p.b for x in bodies]) * 1.0 - np.array([x == p.a for x in bodies])) for n, p in g.parts.items()
    }
    within = sorted(tree)
    for n in g.parts.keys() - tree:
        x = np.linalg.lstsq(np.array([column[i] for i in within]).T, -column[n], rcond=None)[0]
        found.append({i: round(y) for i, y in zip(within, x, strict=True) if round(y)} | {n: 1})
    return found


# -- machines -------------------------------------------------------------------------------------------------------


def body(random: np.random.Generator) -> tuple[pf.Pose, float, np.ndarray, float]:
    return random_pose(random), random.uniform(0.5, 2.0), random.uniform(-0.3, 0.3, 3), random.uniform(0.05, 0.2)


def ring(kinds: list[str], random: np.random.Generator) -> Graph:
    """A single loop through the world."""
    names = ["world", *(f"body {i}" for i in range(len(kinds) - 1))]
    parts = {
        f"{i} {kind}": Part(kind, names[i], names[(i + 1) % len(kinds)], random_pose(random)) for i, kind in enumerate(kinds)
    }
    return Graph({n: body(random) for n in names[1:]}, parts)


def platform(legs: list[list[str]], random: np.random.Generator) -> Graph:
    """A platform on legs, each a chain of joints from the ground to the platform."""
    bodies, parts = {"platform": body(random)}, {}
    for i, kinds in enumerate(legs):
        chain = ["world", *(f"link {i}{j}" for j in range(len(kinds) - 1)), "platform"]
        bodies |= {n: body(random) for n in chain[1:-1]}
        parts |= {f"{kind} {i}{j}": Part(kind, chain[j], chain[j + 1], random_pose(random)) for j, kind in enumerate(kinds)}
    return Graph(bodies, parts)


def cranks(count: int, rotation: np.ndarray, angles: tuple[float, float] = (0.4, 0.3)) -> Graph:
    """Equal cranks side by side, with bars from the top of each one to that of the next: loops in a plane that share
    hinges."""
    Y, (swing, lean) = pf.pose(rotation=np.array([[1, 0, 0], [0, 0, 1], [0, -1, 0.0]])), angles
    base = pf.pose(rotation=rotation)
    bodies, parts = {}, {}

    def at(x: float, z: float) -> pf.Pose:
        return base @ pf.pose((x, 0, z)) @ Y

    top = [(1.1 * i + np.sin(swing + lean * i), np.cos(swing + lean * i)) for i in range(count)]
    for i in range(count):
        bodies[f"crank {i}"] = base, 1.0, np.array([(1.1 * i + top[i][0]) / 2, 0.05, top[i][1] / 2]), 0.3
        parts[f"foot {i}"] = Part("revolute", "world", f"crank {i}", at(1.1 * i, 0))
        if i:
            (x, z), (u, w) = top[i - 1], top[i]
            bodies[f"bar {i}"] = base, 1.2, np.array([(x + u) / 2, -0.02, (z + w) / 2]), 0.4
            parts[f"left {i}"] = Part("revolute", f"crank {i - 1}", f"bar {i}", at(x, z))
            parts[f"right {i}"] = Part("revolute", f"bar {i}", f"crank {i}", at(u, w))
    return Graph(bodies, parts)


def coupled_wheels(angle: float) -> Graph:
    """Three equal cranks on one rigid rod, as on a locomotive: even in the plane one of them is redundant."""
    Y = pf.pose(rotation=np.array([[1, 0, 0], [0, 0, 1], [0, -1, 0.0]]))
    bodies, parts = {"rod": (pf.pose(), 1.5, np.array([1.1 + np.cos(angle), 0.1, np.sin(angle)]), 0.8)}, {}
    for i, x in enumerate((0.0, 1.0, 2.3)):
        top = x + np.cos(angle), 0, np.sin(angle)
        bodies[f"wheel {i}"] = pf.pose(), 2.0, np.array([x, 0, 0]), 0.7
        parts[f"axle {i}"] = Part("revolute", "world", f"wheel {i}", pf.pose((x, 0, 0)) @ Y)
        parts[f"pin {i}"] = Part("revolute", f"wheel {i}", "rod", pf.pose(top) @ Y)
    return Graph(bodies, parts)
