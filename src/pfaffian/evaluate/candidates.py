"""Motions of joints that may be symmetries: from the parent's side, from the child's side, and in the world.

left: from the parent's side, q_j -> g q_j.   right: from the child's side, q_j -> q_j g.
world: the child and all that it carries move in the world, q_1..q_j -> g q_1..q_j, if joint j alone can do this; or the whole
machine, if several joints do it together.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import casadi as ca
import numpy as np

from pfaffian.evaluate.effects import Effect, Unclear, without_effect
from pfaffian.maths import se3
from pfaffian.maths.linear import solve_definite
from pfaffian.maths.values import values_at
from pfaffian.model import reprs
from pfaffian.model.joint import Joint
from pfaffian.model.mechanism import Mechanism
from pfaffian.terms.common_motion import CommonMotion
from pfaffian.terms.generic_states import generic_states, length_at, speed_units
from pfaffian.terms.reduced_terms import adjoint_inverse, group_of
from pfaffian.terms.terms import Terms

STATES = 8
"""Number of random states at which candidates must depend on each other, or be motions that a joint cannot do alone."""

DEPENDENT = 1e-8
"""A candidate counts as dependent if less than this fraction of its field is independent of earlier ones."""

JOINT = "joint"
"""Name of the cause that a joint cannot do a motion alone."""

AXES = ("moving along x", "moving along y", "moving along z", "turning about x", "turning about y", "turning about z")


class JointMotion(NamedTuple):
    """A motion of one joint, or of several together.

    joint: name of the moving joint.   side: left, right or world.   label: the motion in words.
    twist: (6,) [v; w] of the joint's algebra, in the joint's frame for left and right, in the world frame for world.
    """

    joint: str
    side: str
    twist: tuple[float, ...]
    label: str


class Candidate(NamedTuple):
    """A candidate motion.

    Y: (nv, 1) its field at T.q.   left_over: (r, 1) part of the motion that the joint cannot do, of a motion `whole` (s, 1);
    both in 1 rad/s or the machine's length per second.
    """

    motion: JointMotion
    Y: ca.SX
    left_over: ca.SX
    whole: ca.SX

    @property
    def turns(self) -> bool:
        """Whether it is a rotation, perhaps with a translation."""
        return any(self.motion.twist[3:])


class Candidates(NamedTuple):
    """Independent candidates of a mechanism.

    q: symbols of their fields.   first: indices of those of the joints that carry the whole machine, from the parent's side.
    alone: (d, n) combinations that joints can do alone, in row-reduced form.   unclear: those that they nearly can.
    impossible: effect of what they cannot do.
    """

    q: ca.SX
    found: tuple[Candidate, ...]
    first: list[int]
    alone: np.ndarray
    unclear: list[Unclear]
    impossible: Effect

    @property
    def Y(self) -> ca.SX:
        """(nv, n) the fields at q."""
        return ca.horzcat(*[c.Y for c in self.found])


def candidates(T: Terms, carries: Joint | CommonMotion, p: tuple[float, ...] | None) -> Candidates:
    """The independent candidates of a mechanism; of those in the world only those that joints can do.

    carries: the joint, or the joints, that carry the whole machine.   p: (np,) parameters; None for any.
    """
    m, at = T.mechanism, np.array(p) if p is not None else None
    length = length_at(m, m.p_defaults if at is None else at)
    listed = _listed(T, carries, at, length)
    height = max((c.left_over.numel() for c in listed), default=0)
    over = [ca.vertcat(c.left_over, ca.SX.zeros(height - c.left_over.numel(), 1)) for c in listed]
    out = [ca.horzcat(*[c.Y for c in listed]), ca.horzcat(*over), ca.vertcat(*[ca.norm_2(c.whole) for c in listed])]
    f = ca.Function("candidates", [T.q, T.t, m.p_symbols], [ca.densify(x) for x in out])
    samples = values_at(f, [(x.q, x.t, x.p) for x in generic_states(m, parameters=at, count=STATES)])
    # Each field moves one joint alone, unless the first ones move several together.
    alone = not isinstance(carries, CommonMotion)
    unit = speed_units(m, m.p_defaults if at is None else at)
    fields = np.hstack([(x[0] / unit[:, None]).T for x in samples])
    chosen = _independent(fields, [c.motion.joint if alone else "all" for c in listed])
    rows, size = np.vstack([x[1] for x in samples])[:, chosen], np.array([x[2][chosen, 0] for x in samples])
    impossible = Effect(rows, np.repeat(size, height, axis=0), np.ones(len(chosen)))
    possible, unclear = _alone(impossible, [listed[i].motion.joint for i in chosen])
    # A motion in the world that a joint cannot do is of no interest, one from the parent's side is reported as impossible.
    nearly = np.vstack([possible, *[x.combination for x in unclear]])
    used = [n for n, i in enumerate(chosen) if nearly[:, n].any() or listed[i].motion.side == "left"]
    found = tuple(listed[chosen[n]] for n in used)
    side = "left" if alone else "world"
    first = [n for n, c in enumerate(found) if c.motion.joint == carries.name and c.motion.side == side]
    there = Effect(rows[:, used], impossible.size[:, used], np.ones(len(used)))
    doubts = [x._replace(combination=x.combination[used]) for x in unclear]
    return Candidates(T.q, found, first, possible[:, used], doubts, there)


def _listed(T: Terms, carries: Joint | CommonMotion, p: np.ndarray | None, length: float) -> list[Candidate]:
    """All candidates, in the order in which they are preferred.   p: (np,) parameters.   length: of the machine [m]."""
    m, k = T.mechanism, T.kinematics
    out = _together(T, carries) if isinstance(carries, CommonMotion) else []
    for j in m.joints:
        group = group_of(j)
        if group is None or not j.nv:
            continue
        q = k.joint(j.name)
        back, S = adjoint_inverse(j, q), group.S
        for i in range(group.nv):
            twist = tuple(numbers(m, p, S[:, i]).ravel().tolist())
            for side, y in (("left", back[:, i]), ("right", ca.SX.eye(group.nv)[:, i])):
                out.append(_of_joint(m, j, JointMotion(j.name, side, twist, _label(twist, j.name, side)), y, length))
        if j is not carries:
            out += _in_world(T, j, length)
    return out


def _together(T: Terms, common: CommonMotion) -> list[Candidate]:
    """The candidates that several joints do together."""
    out = []
    for twist, Y in zip(common.twists, ca.horzsplit(common.fields(T.kinematics)) if common.twists else [], strict=True):
        words = f"{_axis(twist)} of {reprs.listed(common.joints)} together"
        out.append(Candidate(JointMotion(common.name, "world", twist, words), Y, ca.SX(0, 1), ca.SX(0, 1)))
    return out


def _in_world(T: Terms, j: Joint, length: float) -> list[Candidate]:
    """The six motions in the world as candidates of a joint; their `left_over` vanishes if the joint can do them alone."""
    m, k = T.mechanism, T.kinematics
    (part,) = j.parts
    link = next(i for i, x in enumerate(k.tree.links) if x.joint.name == j.name)
    G = k.link_pose(link)
    Ad = se3.Ad_inv(G.R, G.p)
    S, axes = part.subgroup.S, list(part.subgroup.axes)
    scale = ca.DM([1 / length] * 3 + [1.0] * 3)
    out = []
    for i in range(6):
        y = Ad[axes, i]
        twist = tuple(float(x) for x in np.eye(6)[i])
        field = _of_joint(m, j, JointMotion(j.name, "world", twist, f"{AXES[i]} of the world by {j.name!r}"), y, length)
        left_over = ca.vertcat(field.left_over, scale * (Ad[:, i] - S @ y))
        out.append(field._replace(left_over=left_over, whole=scale * Ad[:, i]))
    return out


def _of_joint(m: Mechanism, j: Joint, motion: JointMotion, y: ca.SX, length: float) -> Candidate:
    """A candidate from the velocity y (k, 1) of the joint's group; a distribution leaves only part of it, as speeds."""
    Y, left_over = ca.SX.zeros(m.nv, 1), ca.SX(0, 1)
    (part,) = j.parts
    scale = ca.DM([1 / length if axis < 3 else 1.0 for axis in part.subgroup.axes])
    whole = scale * y
    if j.distribution is not None:
        D = j.distribution
        speeds = solve_definite(D.T @ D, D.T @ y)
        y, left_over = speeds, scale * (y - D @ speeds)
    Y[m.v_slices[j.name], 0] = y
    return Candidate(motion, Y, left_over, whole)


def _alone(impossible: Effect, joints: Sequence[str]) -> tuple[np.ndarray, list[Unclear]]:
    """(d, n) combinations of candidates of one joint each that this joint can do alone, and those that it nearly can.

    joints: name of the joint of each candidate.
    """
    n, out, unclear = len(joints), [np.zeros((0, len(joints)))], list[Unclear]()
    for name in dict.fromkeys(joints):
        of_joint = np.eye(n)[[i for i, other in enumerate(joints) if other == name]]
        found, doubts = without_effect({JOINT: impossible}, of_joint)
        out.append(found)
        unclear += doubts
    return np.vstack(out), unclear


def _independent(fields: np.ndarray, joints: Sequence[str]) -> list[int]:
    """Indices of the candidates that do not depend on earlier ones with the same name in `joints`.

    fields: (candidates, samples) values of their fields Y.
    """
    chosen: list[int] = []
    known = {name: np.zeros((0, fields.shape[1])) for name in joints}
    for i, (x, name) in enumerate(zip(fields, joints, strict=True)):
        Q = known[name]
        left = x - Q.T @ (Q @ x)
        left -= Q.T @ (Q @ left)
        if np.linalg.norm(left) > DEPENDENT * np.linalg.norm(x) > 0:
            chosen.append(i)
            known[name] = np.vstack([Q, left / np.linalg.norm(left)])
    return chosen


def numbers(m: Mechanism, p: np.ndarray | None, x: ca.SX) -> np.ndarray:
    """A number of the model at parameters p (np,), the defaults if None."""
    return np.array(ca.DM(ca.substitute(x, m.p_symbols, ca.DM(m.p_defaults if p is None else p))))


def _axis(twist: tuple[float, ...]) -> str:
    """The axis of a twist in words: the name of an axis of the frame, or the components of another direction."""
    used = [i for i in range(6) if twist[i]]
    if len(used) > 1 and max(used) < 3:
        return f"moving along ({', '.join(f'{x:.3g}' for x in twist[:3])})"
    if len([i for i in used if i > 2]) > 1:
        return f"turning about ({', '.join(f'{x:.3g}' for x in twist[3:])})"
    return AXES[max(used)]


def _label(twist: tuple[float, ...], joint: str, side: str) -> str:
    """A motion of a joint in words."""
    return f"{_axis(twist)} of {joint!r}" + (" from the child's side" if side == "right" else "")
