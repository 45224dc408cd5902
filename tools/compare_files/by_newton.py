"""What Newton's importer makes of a USD stage, beside the mechanism that the reader makes: joints, forces, masses, starts.

Joints are matched by their bodies. Those that have other coordinates in Newton, such as two axes of a D6 joint, are not
compared, and stay at zero; of joints in series the place of the last body is compared by itself, since the mass matrix that
Newton has of them does not belong to its own poses. A joint that follows another moves by itself in both, and its law is
compared. Newton computes its mass matrix from the poses of the bodies; velocities of a free body are along the world's axes
there, at the mass centre.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

import pfaffian as pf
from pfaffian.formats.text.coupling import GravityCompensation
from pfaffian.formats.text.run_settings import RunSettings
from pfaffian.maths import so3
from pfaffian.model.constraint import Closure
from tools.compare_files import newton_mended, newton_series
from tools.compare_files.trees import apart, limits_apart

with suppress(ImportError):  # before any stage is opened: it registers schemas, for which OpenUSD looks once
    import newton as _  # noqa: F401

ENDLESS = 1e6
"""From here on Newton's limits stand for none: efforts of 1e6, angles of 1e10 degrees, lengths of 1e10."""

UNITS = "ratios between turns and slides have no units in Newton's schema: degrees and lengths of the stage here, radians there"
"""Cause of differences of mimics."""

SIZES = {"prismatic": (1, 1), "revolute": (1, 1), "spherical": (4, 3), "free": (7, 6)}
"""Kind of joint -> the numbers of coordinates and velocities in Newton of the same motion."""

Bodies = Mapping[str, pf.Body]
"""Path of a prim in the stage -> its body."""

Masses = tuple[float, np.ndarray, np.ndarray]
"""Mass [kg], mass centre [m] and inertia [kg m^2] of a body."""


@dataclass(frozen=True)
class Pair:
    """A joint, and where Newton has it: its index, coordinates, velocities and the body that it moves."""

    joint: pf.Joint
    index: int
    q: slice
    v: slice
    child: int


class Imported:
    """Newton's model of a stage. Raises ImportError: Newton is not installed; and what its importer raises."""

    def __init__(self, path: Path) -> None:
        import newton
        import warp

        warp.config.quiet = True
        self.newton, self.builder = newton, newton.ModelBuilder()
        schemas = [newton.usd.SchemaResolverPhysx(), newton.usd.SchemaResolverNewton()]
        self.found = self.builder.add_usd(str(path), schema_resolvers=schemas)
        if alone := self._alone():
            self.builder.add_articulation(alone)

    def _alone(self) -> list[int]:
        """The tree of the joints of a stage without articulations, without those that close loops, and with those turned round
        that lead the other way; empty if the importer has a joint before that of its parent, since Newton computes poses in
        its order."""
        b, found, reached = self.builder, list[int](), {-1, *self.moved}
        left = [i for i, tree in enumerate(b.joint_articulation) if tree < 0]
        while left:
            ends = [{b.joint_parent[i], b.joint_child[i]} for i in left]
            k = next((k for k, both in enumerate(ends) if len(both & reached) == 1), -1)
            if k < 0:  # a loop, or another machine
                left = [i for i, both in zip(left, ends, strict=True) if not both <= reached]
                reached |= {min((min(b.joint_parent[i], b.joint_child[i]) for i in left), default=-1)}
                continue
            i = left.pop(k)
            if b.joint_child[i] in reached:
                newton_mended.turn(b, i)
            reached.add(b.joint_child[i])
            found.append(i)
        return found if found == sorted(found) else []

    @property
    def moved(self) -> set[int]:
        """Bodies that a joint of a tree moves."""
        b = self.builder
        return {child for child, tree in zip(b.joint_child, b.joint_articulation, strict=True) if tree >= 0}

    @property
    def twice(self) -> list[str]:
        """Paths that the importer gives to two bodies, of which one has another path in the stage."""
        return [path for path, n in Counter(self.builder.body_label).items() if n > 1]

    @property
    def masses(self) -> dict[str, Masses]:
        """Path of a body -> its mass properties."""
        b = self.builder
        return {
            str(p): (float(b.body_mass[i]), np.array(b.body_com[i]), np.array(b.body_inertia[i]).reshape(3, 3))
            for p, i in self.found["path_body_map"].items() if i >= 0
        }  # fmt: skip

    @cached_property
    def model(self) -> Any:
        """The builder's model, ready to be evaluated; joints that close loops belong to no tree."""
        return self.builder.finalize(device="cpu", skip_validation_joints=True)

    def pairs(self, m: pf.Mechanism, bodies: Bodies) -> list[Pair]:
        """Joints of the tree that have the same motion in Newton."""
        b, found = self.builder, list[Pair]()
        index = _numbered(self, bodies)
        ends = zip(b.joint_parent, b.joint_child, b.joint_articulation, strict=True)
        joints = {(parent, child): i for i, (parent, child, tree) in enumerate(ends) if tree >= 0}
        q_end, v_end = (*b.joint_q_start[1:], b.joint_coord_count), (*b.joint_qd_start[1:], b.joint_dof_count)
        for j in m.joints:
            i = joints.get((index.get(j.parent, -1), index.get(j.child, -1)))
            if i is None:
                continue
            q, v = slice(b.joint_q_start[i], q_end[i]), slice(b.joint_qd_start[i], v_end[i])
            if (q.stop - q.start, v.stop - v.start) == SIZES.get(j.kind.name):
                found.append(Pair(j, i, q, v, b.joint_child[i]))
        return found

    def still(self) -> np.ndarray:
        """Coordinates at zero, with quaternions that turn nothing."""
        b, q = self.builder, np.zeros(self.builder.joint_coord_count)
        sizes = zip(b.joint_q_start, (*b.joint_q_start[1:], b.joint_coord_count), b.joint_dof_dim, strict=True)
        q[[end - 1 for start, end, dof in sizes if end - start > sum(dof)]] = 1.0
        return q

    def state(self, q: np.ndarray) -> Any:
        """The state whose bodies have the poses at coordinates, at rest."""
        import warp

        found = self.model.state()
        at = [warp.array(x.astype(np.float32), dtype=float, device="cpu") for x in (q, 0 * self.model.joint_qd.numpy())]
        self.newton.eval_fk(self.model, *at, found)
        return found

    def mass_matrix(self, q: np.ndarray) -> np.ndarray:
        """Of all velocities; those of separate trees are not coupled."""
        b, blocks = self.builder, self.newton.eval_mass_matrix(self.model, self.state(q)).numpy()
        M = np.zeros((b.joint_dof_count,) * 2)
        for first, last, block in zip(b.articulation_start, b.articulation_end, blocks, strict=True):
            start = b.joint_qd_start[first]
            stop = b.joint_qd_start[last] if last < len(b.joint_qd_start) else b.joint_dof_count
            M[start:stop, start:stop] = block[: stop - start, : stop - start]
        return M


def compared(n: Imported, m: pf.Mechanism, settings: RunSettings, bodies: Bodies) -> tuple[dict[str, float], str]:
    """What was compared -> the largest relative difference; and the joints that were not."""
    loose, settings = _as_tree(m, settings)
    pairs = n.pairs(loose, bodies)
    series, chained = newton_series.compared(n, loose, _numbered(n, bodies))
    matched = {p.joint.name for p in pairs} | chained
    few = [j.name for j in loose.joints if j.nv and j.name not in matched][:5]
    found = {"Newton gravity": apart(m.value(m.gravity).ravel(), n.model.gravity.numpy()[0], 1.0)} | series
    if pairs:
        found |= _at_random(n, loose, settings, bodies, pairs) | _numbers(n, loose, pairs) | _followers(n, m, pairs)
    found |= _loops(n, m, bodies) | {"Newton velocities": _starts(n, m, settings, bodies)}
    return found, f"Newton has other joints for {', '.join(few)}" if few else ""


def _as_tree(m: pf.Mechanism, settings: RunSettings) -> tuple[pf.Mechanism, RunSettings]:
    """Without closures, with what these carry, and without laws of followers."""
    closing = {c.name for c in m.constraints}
    motors = [a for a in m.actuators if a.joint not in closing]
    forces = [f for f in m.forces if f.name.removesuffix(" friction") not in closing]
    free = [replace(j, mimic=None) for j in m.joints]
    inputs = {name: x for name, x in settings.u.items() if name in {a.name for a in motors}}
    return m.with_(constraints=(), joints=free, actuators=motors, forces=forces), replace(settings, u=inputs)


def _at_random(n: Imported, m: pf.Mechanism, settings: RunSettings, bodies: Bodies, pairs: list[Pair]) -> dict[str, float]:
    """Poses, mass matrix and forces of joints at a random state, in which joints without a pair are at zero and at rest, and
    bodies that no joint of Newton moves are where the stage places them."""
    random = np.random.default_rng(0)
    drawn, given, v = pf.random_configuration(m, random), _still(n, m, settings, bodies), np.zeros(m.nv)
    both = [p.joint for p in pairs] + _bases(n, m, bodies, pairs)
    for j in both:
        own = m.q_slices[j.name]
        given |= dict(zip(m.q_names[own], drawn[own], strict=True))
        v[m.v_slices[j.name]] = random.normal(size=j.nv)
    q = RunSettings(q=given).arrays(m).q
    where, index = pf.forward_kinematics(m, q), _numbered(n, bodies)
    theirs, T = _in_newton(n, m, q, pairs, index)
    poses = n.state(theirs).body_q.numpy()
    moved = [(where[name], poses[i]) for name, i in index.items()]
    far = [max(apart(ours.position, x[:3], 1.0), 1 - abs(float(ours.quaternion @ x[3:]))) for ours, x in moved]
    keep = np.concatenate([np.arange(m.nv)[m.v_slices[j.name]] for j in both])
    ours, M = (x[np.ix_(keep, keep)] for x in (pf.mass_matrix(m, q), T.T @ n.mass_matrix(theirs) @ T))
    forces = _forces(n, m, settings, q, v, pairs)
    return {"Newton poses": max(far), "Newton mass matrix": apart(ours, M, 1e-300), "Newton forces": forces}


def _still(n: Imported, m: pf.Mechanism, settings: RunSettings, bodies: Bodies) -> dict[str, float]:
    """Coordinates at the start of free joints whose body no joint of Newton moves: it stays where the stage places it."""
    index, start, found, moved = _numbered(n, bodies), settings.arrays(m).q, dict[str, float](), n.moved
    for j in m.joints:
        if j.kind.name == "free" and j.child in index and index[j.child] not in moved:
            own = m.q_slices[j.name]
            found |= dict(zip(m.q_names[own], start[own], strict=True))
    return found


def _bases(n: Imported, m: pf.Mechanism, bodies: Bodies, pairs: list[Pair]) -> list[pf.Joint]:
    """Free joints of machines that Newton has on a free joint of another one of their bodies."""
    index, matched, b = _numbered(n, bodies), {p.joint.name for p in pairs}, n.builder
    sizes = np.diff([*b.joint_q_start, b.joint_coord_count])
    joints = [*zip(b.joint_parent, b.joint_child, b.joint_articulation, sizes, strict=True)]
    floating = {tree for _, _, tree, size in joints if tree >= 0 and size == SIZES["free"][0]}
    carried = {child for parent, child, tree, _ in joints if parent >= 0 and tree in floating}
    free = [j for j in m.joints if j.kind.name == "free" and j.parent == "world" and j.name not in matched]
    return [j for j in free if index.get(j.child, -1) in carried]


def _in_newton(
    n: Imported, m: pf.Mechanism, q: np.ndarray, pairs: list[Pair], index: Mapping[str, int]
) -> tuple[np.ndarray, np.ndarray]:
    """Newton's coordinates, and the matrix T by which its velocities are T v."""
    where, b = pf.forward_kinematics(m, q), n.builder
    theirs, T = n.still(), np.zeros((b.joint_dof_count, m.nv))
    for p in pairs:
        own = m.v_slices[p.joint.name]
        theirs[p.q] = q[m.q_slices[p.joint.name]]
        T[p.v, own] = np.eye(p.joint.nv)
        if p.joint.kind.name == "spherical":  # along the axes of the parent
            T[p.v, own] = np.array(so3.quat_to_matrix(theirs[p.q]))
    names = {i: name for name, i in index.items()}
    for i, (at, after) in enumerate(pairwise((*b.joint_q_start, b.joint_coord_count))):
        if after - at == 7 and b.joint_parent[i] < 0 and b.joint_child[i] in names:
            body, v = names[b.joint_child[i]], slice(b.joint_qd_start[i], b.joint_qd_start[i] + 6)
            theirs[at : at + 7] = np.r_[where[body].position, where[body].quaternion]
            com = m.value(m.body(body).com).ravel()
            T[v] = pf.jacobian(m, body, q, frame="LOCAL_WORLD_ALIGNED", point=com)
    return theirs, T


def _forces(n: Imported, m: pf.Mechanism, settings: RunSettings, q: np.ndarray, v: np.ndarray, pairs: list[Pair]) -> float:
    """Springs, dampers, drives and dry friction of joints with one velocity, without limits of their effort."""
    b, held = n.builder, [f for f in m.forces if isinstance(getattr(f, "function", None), GravityCompensation)]
    free = m.with_(gravity=(0, 0, 0), forces=[f for f in m.forces if f not in held])
    passive = [replace(j, stiffness=0 * j.stiffness, damping=0 * j.damping) for j in m.joints]
    bare = m.with_(gravity=(0, 0, 0), forces=(), actuators=(), joints=passive)
    a, a_bare = (pf.forward_dynamics(x, q, v, u).v_dot for x, u in ((free, settings.arrays(m).u), (bare, None)))
    ours = pf.mass_matrix(m, q) @ np.ravel(a - a_bare)
    worst = 0.0
    for p in (p for p in pairs if p.joint.nv == 1):
        x, rate = (float(of[at][0]) for of, at in ((q, m.q_slices[p.joint.name]), (v, m.v_slices[p.joint.name])))
        i, k = p.v.start, p.q.start
        force = b.joint_target_ke[i] * (b.joint_target_q[k] - x) + b.joint_target_kd[i] * (b.joint_target_qd[i] - rate)
        force -= b.joint_stiffness[i] * (x - b.joint_rest_q[k]) + b.joint_damping[i] * rate
        force -= b.joint_friction[i] * np.sign(rate)
        worst = max(worst, apart(ours[m.v_slices[p.joint.name]], np.array([force]), 1.0))
    return worst


def _numbers(n: Imported, m: pf.Mechanism, pairs: list[Pair]) -> dict[str, float]:
    """Limits and efforts of joints with one velocity."""
    b, single = n.builder, [p for p in pairs if p.joint.nv == 1]
    spans = {p.joint.name: (b.joint_limit_lower[p.v.start], b.joint_limit_upper[p.v.start]) for p in single}
    limits = {name: tuple(x if abs(x) < ENDLESS else np.copysign(np.inf, x) for x in span) for name, span in spans.items()}
    most = {a.name: a.limits[1] for a in m.actuators}
    found = limits_apart(m, limits, "Newton", tuple(limits))
    for p in single:
        effort = b.joint_effort_limit[p.v.start]
        if p.joint.name in most and not np.isclose(most[p.joint.name], effort if effort < ENDLESS else np.inf):
            found[f"Newton effort of '{p.joint.name}'"] = 1.0
    return found


def _followers(n: Imported, m: pf.Mechanism, pairs: list[Pair]) -> dict[str, float]:
    """The laws of joints that follow another."""
    b, names, found = n.builder, {p.index: p.joint.name for p in pairs}, dict[str, float]()
    for p in pairs:
        law, i = m.joint(p.joint.name).mimic, b.joint_mimic_joint[p.index]
        ours = (law.joints[0], *m.value(law.ratios).ravel(), *m.value(law.offset).ravel()) if law else ()
        theirs = (names.get(i), b.joint_mimic_coeffs[p.index][1], b.joint_mimic_coeffs[p.index][0]) if i >= 0 else ()
        if ours[:1] != theirs[:1] or not np.allclose(ours[1:], theirs[1:]):
            across = bool(law) and ours[:1] == theirs[:1] and m.joint(ours[0]).kind.name != p.joint.kind.name
            found[f"Newton {'units of the ' if across else ''}mimic of '{p.joint.name}'"] = 1.0
    return found


def _loops(n: Imported, m: pf.Mechanism, bodies: Bodies) -> dict[str, float]:
    """Joint frames of closures, of those that Newton has between the same bodies: anchors, and axes of hinges and sliders."""
    import warp

    b, index, worst = n.builder, _numbered(n, bodies), list[float]()
    loops = [i for i, tree in enumerate(b.joint_articulation) if tree < 0]
    ends = {frozenset((b.joint_parent[i], b.joint_child[i])): i for i in loops}
    for c in m.constraints:
        numbers = [index.get(name, -1) for name in (c.body_a, c.body_b)] if isinstance(c, Closure) else []
        i = ends.get(frozenset(numbers))
        if i is None:
            continue
        frames = (b.joint_X_p[i], b.joint_X_c[i]) if numbers[0] == b.joint_parent[i] else (b.joint_X_c[i], b.joint_X_p[i])
        for ours, theirs in zip((c.placement_a, c.placement_b), frames, strict=True):
            worst.append(apart(m.value(ours.p).ravel(), np.array(theirs)[:3], 1.0))
            if c.kind in ("revolute", "prismatic"):
                axis = np.array(warp.quat_rotate(warp.transform_get_rotation(theirs), b.joint_axis[b.joint_qd_start[i]]))
                worst.append(1 - abs(float(m.value(ours.R)[:, 2] @ axis)))
    return {"Newton closures": max(worst)} if worst else {}


def _numbered(n: Imported, bodies: Bodies) -> dict[str, int]:
    """Name of a body -> its number in Newton."""
    return {bodies[str(p)].name: i for p, i in n.found["path_body_map"].items() if str(p) in bodies}


def _starts(n: Imported, m: pf.Mechanism, settings: RunSettings, bodies: Bodies) -> float:
    """Velocities of mass centres and angular velocities at the start, of bodies to which the stage gives one."""
    start, worst = settings.arrays(m), 0.0
    for path, i in n.found["path_body_map"].items():
        if path in bodies and i >= 0 and any(n.builder.body_qd[i]):
            com = m.value(bodies[path].com).ravel()
            twist = pf.jacobian(m, bodies[path].name, start.q, frame="LOCAL_WORLD_ALIGNED", point=com) @ start.v
            worst = max(worst, apart(twist, np.array(n.builder.body_qd[i]), 1.0))
    return worst
