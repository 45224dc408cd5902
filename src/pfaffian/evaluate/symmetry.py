"""Symmetries of a mechanism: motions of its joints that leave kinetic energy, potential, forces and constraints unchanged.

A field Y(q) of velocities is a symmetry if its momentum Y^T p is conserved,

    d/dt (Y^T p) = Y^T p_dot + Y_dot^T p = 0    at all q and v,       A Y = 0,

which is linear in Y. So candidate motions are listed joint by joint, their effects are sampled at random states, and the
largest algebra is a null space. This covers all cases of [chhabra14 section 4.4]: AP1 and AP2, right actions on extremities,
commuting joints. A candidate moves its joint from one of three sides:
    left: from the parent's side, q_j -> g q_j.   right: from the child's side, q_j -> q_j g.
    world: the child and all that it carries move in the world, q_1..q_j -> g q_1..q_j, if joint j alone can do this; or the
    whole machine, if several joints do it together.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from pfaffian.errors import ModelError
from pfaffian.evaluate.arrays import parameter_values
from pfaffian.maths import se3
from pfaffian.maths.linear import solve_definite
from pfaffian.maths.span import null_space, reduced
from pfaffian.maths.subgroups import name_of
from pfaffian.model import reprs
from pfaffian.model.joint import Joint
from pfaffian.model.mechanism import Mechanism, as_mechanism, random_configuration
from pfaffian.terms.common_motion import CommonMotion, common_motion
from pfaffian.terms.force_scale import force_sizes
from pfaffian.terms.momentum import changes
from pfaffian.terms.present import remembered
from pfaffian.terms.rates import some_parameters
from pfaffian.terms.reduction import adjoint_inverse, first_joint, group_of
from pfaffian.terms.terms import Terms, symbols

STATES = 24
"""Number of random states at which effects are sampled; one more is added for each motion that a joint can do alone."""

NOTHING = 1e-9
"""Largest effect that counts as none, relative to the size of the forces along that motion (`force_sizes`)."""

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


@dataclass(frozen=True, eq=False)
class Symmetry:
    """The symmetries of a mechanism.

    mechanism: name of the mechanism.   joint: name of the first joint, whose group moves the whole machine; if several joints
    carry the machine together, their names, separated by commas.
    basis: (6, d) twists [v; w] of the symmetries of this joint, in its frame on the world; in the world frame for several
    joints.   group: name of the group that they span, such as "SE(2)".
    further: each other symmetry, as its parts (weight, JointMotion).
    broken: (JointMotion, causes) for each motion of a joint from the parent's side that is not a symmetry, with the causes.
    driven: input -> motions of symmetries along which it does work, so that their momenta change while it acts.
    """

    mechanism: str
    joint: str
    basis: np.ndarray
    group: str
    further: tuple[tuple[tuple[float, JointMotion], ...], ...]
    broken: tuple[tuple[JointMotion, tuple[str, ...]], ...]
    driven: dict[str, tuple[JointMotion, ...]]

    def __repr__(self) -> str:
        more = [f"{len(self.further)} more"] if self.further else []
        return reprs.words(self, f"of {self.mechanism!r}", f"{self.group} by {self.joint!r}", *more)

    def __str__(self) -> str:
        return "\n".join(self.lines())

    @property
    def carrier(self) -> str:
        """The joint, or the joints, whose group moves the whole machine, in words."""
        names = self.joint.split(", ")
        return f"joint {self.joint!r}" if len(names) == 1 else f"joints {reprs.listed(names)} together"

    def lines(self) -> list[str]:
        """The text of `print`, line by line."""
        summary = f"no motion of {self.carrier} leaves all as it is"
        if self.basis.shape[1]:
            summary = f"{self.carrier} can be moved by {self.group} and nothing changes"
        out = [f"{self.mechanism}: {summary}"]
        for parts in self.further:
            out.append(f"  so can: {_motions_in_words(parts)}")
        for motion, causes in self.broken:
            out.append(f"  not by {motion.label}: {', '.join(causes)}")
        for name, motions in self.driven.items():
            out.append(f"  input {name!r} does work along {', '.join(x.label for x in motions)}")
        return out


def symmetry(m: Mechanism, *, parameters: Any = None) -> Symmetry:
    """The largest group of motions that leave kinetic energy, potential, forces and constraints of a mechanism unchanged.

    The first candidates are motions of the whole machine: those of the first joint, or of several joints that connect it to the
    world or together form a group, such as a translation followed by a ball joint without a mass between them. Then come the
    motions of all joints, from either side and in any combination, such as the spin of a top, or the motion of one of two
    unconnected bodies. Each motion that is not a symmetry is listed with its causes: a mass centre off the axis, unequal
    inertias, the direction of gravity, a spring, a damper, a constraint. Inputs break no symmetry, and are listed with the
    symmetries that they drive. The decision is made at random states, with a tolerance of 1e-9 of the inertia and the forces
    along each motion, so that light parts are judged on their scale. [chhabra14 theorem 3.3.3, section 4.4]

    Args:
        m: the mechanism.
        parameters: {name: value} at which to decide; None, the default, finds symmetries that hold for any values.
    Returns:
        a Symmetry, which prints as a report: `group` (name) and `basis` (6, d) of the first joint's symmetries, `further`
        ones of other joints, `broken` motions with their causes, `driven` inputs.
    Raises ModelError: m is not a mechanism; no joint connects it to the world, or one without a group of motions does.

    Example:
        >>> import pfaffian as pf
        >>> bodies = [pf.body("hub", mass=3.0, inertia=3.0), pf.body("wheel", mass=1.0, inertia=1.0)]
        >>> joints = [pf.joint("turn", "revolute", "world", "hub"), pf.joint("spin", "revolute", "hub", "wheel")]
        >>> print(pf.reduction.symmetry(pf.mechanism("satellite", bodies, joints)))
        satellite: joint 'turn' can be moved by SO(2) and nothing changes
          so can: turning about z of 'spin'
    """
    as_mechanism(m)
    return _symmetry(m, None if parameters is None else tuple(parameter_values(m, parameters)[0].tolist()))


class _Candidate(NamedTuple):
    """A candidate motion.   Y: (nv, 1) its field at T.q.   left_over: (r, 1) part of the motion that the joint cannot do."""

    motion: JointMotion
    Y: ca.SX
    left_over: ca.SX


class _Effect(NamedTuple):
    """Effect of one cause on candidates.

    rows: (samples, candidates) the effects.   size: (candidates,) scale relative to which an effect is none below NOTHING.
    """

    rows: np.ndarray
    size: np.ndarray

    def of(self, i: int) -> bool:
        """Whether candidate i is affected."""
        return bool(np.abs(self.rows[:, i]).max(initial=0) > NOTHING * self.size[i])


class _Samples(NamedTuple):
    """Candidates of a mechanism with their sampled effects.

    q: symbols of the fields.   candidates: independent candidates.   effects: effect on them, by cause.
    driving: (states, candidates, inputs) work of each input along each candidate.
    """

    q: ca.SX
    candidates: list[_Candidate]
    effects: dict[str, _Effect]
    driving: np.ndarray


@remembered(64)
def _samples(m: Mechanism, p: tuple[float, ...] | None) -> _Samples:
    """The sampled candidates of a mechanism.   p: (np,) parameters; None for random ones at each sample."""
    T = symbols(m)
    candidates = _candidates(T, common_motion(m) or first_joint(m), p)
    chosen, effects, driving = _sampled(T, candidates, p)
    return _Samples(T.q, [candidates[i] for i in chosen], effects, driving)


def conserved_fields(T: Terms, still: Sequence[str], p: np.ndarray) -> ca.SX:
    """Y (nv, k): symmetries along which only inputs that are zero do work, so that the momenta Y^T M v are conserved.

    There are none if servo forces act, or if no joints carry the whole machine as a group.
    still: names of inputs that are zero.   p: (np,) parameters.
    """
    m = T.mechanism
    try:
        x = _samples(m, tuple(p.tolist()))
    except ModelError:
        return ca.SX(m.nv, 0)
    if m.servos or not x.candidates:
        return ca.SX(m.nv, 0)
    pushing = [i for i, name in enumerate(m.u_names) if name not in still]
    work = x.driving[:, :, pushing].transpose(0, 2, 1).reshape(-1, len(x.candidates))
    symmetries = _null_space([*x.effects.values(), _Effect(work, np.ones(len(x.candidates)))])
    return ca.substitute(ca.horzcat(*[c.Y for c in x.candidates]), x.q, T.q) @ ca.DM(symmetries.T)


class Inner(NamedTuple):
    """Symmetries that contain motions of joints from the child's side.

    Y: (nv, n) fields at `symbols(m).q`.   names: of the speeds along them, after the first velocity that is a rotation.
    labels: the motions in words.
    """

    Y: ca.SX
    names: tuple[str, ...]
    labels: tuple[str, ...]


@remembered(64)
def inner_symmetries(m: Mechanism, joints: tuple[str, ...]) -> Inner:
    """The inner symmetries of these joints that hold for any values of the parameters."""
    q, candidates, effects, _ = _samples(m, None)
    inner = [i for i, c in enumerate(candidates) if c.motion.joint in joints and c.motion.side == "right"]
    symmetries = [
        _turning(x, candidates) for x in _null_space(list(effects.values())) if np.abs(x[inner]).max(initial=0.0) > 1e-6
    ]
    if not symmetries:
        return Inner(ca.SX(m.nv, 0), (), ())
    names = []
    for x in symmetries:
        used = [candidates[i] for i in inner if abs(x[i]) > 1e-6]
        turning = [c for c in used if any(c.motion.twist[3:])] or used
        names.append(f"{m.v_names[ca.sparsify(turning[0].Y).row()[0]]} within")
    labels = [_motions_in_words((float(w), candidates[i].motion) for i, w in enumerate(x) if abs(w) > 1e-6) for x in symmetries]
    Y = ca.horzcat(*[c.Y for c in candidates]) @ ca.DM(np.array(symmetries).T)
    return Inner(ca.substitute(Y, q, symbols(m).q), tuple(names), tuple(labels))


def _motions_in_words(parts: Iterable[tuple[float, JointMotion]]) -> str:
    """A combination of motions in words, with weights other than 1."""
    return " and ".join(f"{w:+.3g} {x.label}".removeprefix("+1 ") for w, x in parts)


@remembered(64)
def _symmetry(m: Mechanism, p: tuple[float, ...] | None) -> Symmetry:
    """The symmetries at parameters p (np,); if None, those that hold for any values."""
    common = common_motion(m)
    first, side = (common.name, "world") if common else (first_joint(m).name, "left")
    _, candidates, effects, work = _samples(m, p)
    base = [i for i, c in enumerate(candidates) if c.motion.joint == first and c.motion.side == side]
    of_first = _null_space([_Effect(x.rows[:, base], x.size[base]) for x in effects.values()])
    symmetries = _null_space(list(effects.values()))
    basis = np.array([candidates[i].motion.twist for i in base]).T.reshape(6, -1) @ of_first.T
    others = [x for x in symmetries if np.abs(np.delete(x, base)).max(initial=0.0) > 1e-6]
    others = [_turning(x, candidates) for x in others]
    further = tuple(tuple((float(w), candidates[i].motion) for i, w in enumerate(x) if abs(w) > 1e-6) for x in others)
    members = [np.flatnonzero(np.abs(x) > 1e-6).tolist() for x in symmetries]
    broken = tuple(
        (
            c.motion,
            tuple(_cause_in_words(m, p, why, c.motion) for why, x in effects.items() if x.of(i)),
        )
        for i, c in enumerate(candidates)
        if (c.motion.side == "left" or i in base) and not any(i in parts for parts in members)
    )
    driven = {}
    for u, name in enumerate(m.u_names):
        along = {
            i for x, parts in zip(symmetries, members, strict=True) if np.abs(work[:, :, u] @ x).max() > NOTHING for i in parts
        }
        if along:
            driven[name] = tuple(candidates[i].motion for i in sorted(along))
    return Symmetry(m.name, first, basis, name_of(basis), further, broken, driven)


def _turning(x: np.ndarray, candidates: list[_Candidate]) -> np.ndarray:
    """A symmetry x (candidates,) scaled so that its first rotation has the weight 1."""
    turns = [w for w, c in zip(x, candidates, strict=True) if abs(w) > 1e-6 and any(c.motion.twist[3:])]
    return x / turns[0] if turns else x


def _candidates(T: Terms, carries: Joint | CommonMotion, p: tuple[float, ...] | None) -> list[_Candidate]:
    """The candidate motions of a mechanism.   carries: the joint, or the joints, that carry the whole machine."""
    m, k = T.mechanism, T.kinematics
    out = _common_candidates(T, carries) if isinstance(carries, CommonMotion) else []
    for j in m.joints:
        group = group_of(j)
        if group is None or not j.nv:
            continue
        q = k.joint(j.name)
        back, S = adjoint_inverse(j, q), group.S
        for i in range(group.nv):
            twist = tuple(_numbers(m, p, S[:, i]).ravel().tolist())
            for side, y in (("left", back[:, i]), ("right", ca.SX.eye(group.nv)[:, i])):
                out.append(_field(m, j, JointMotion(j.name, side, twist, _label(twist, j.name, side)), y))
        if j is not carries:
            out += _in_world(T, j)
    return out


def _common_candidates(T: Terms, common: CommonMotion) -> list[_Candidate]:
    """The candidates that several joints do together."""
    out = []
    for twist, Y in zip(common.twists, ca.horzsplit(common.fields(T.kinematics)) if common.twists else [], strict=True):
        words = f"{_axis(twist)} of {reprs.listed(common.joints)} together"
        out.append(_Candidate(JointMotion(common.name, "world", twist, words), Y, ca.SX(0, 1)))
    return out


def _in_world(T: Terms, j: Joint) -> list[_Candidate]:
    """The six motions in the world as candidates of a joint; their `left_over` vanishes if the joint can do them alone."""
    m, k = T.mechanism, T.kinematics
    (part,) = j.parts
    link = next(i for i, x in enumerate(k.tree.links) if x.joint.name == j.name)
    G = k.link_pose(link)
    Ad = se3.Ad_inv(G.R, G.p)
    S, axes = part.subgroup.S, list(part.subgroup.axes)
    out = []
    for i in range(6):
        y = Ad[axes, i]
        twist = tuple(float(x) for x in np.eye(6)[i])
        field = _field(m, j, JointMotion(j.name, "world", twist, f"{AXES[i]} of the world by {j.name!r}"), y)
        out.append(field._replace(left_over=ca.vertcat(field.left_over, Ad[:, i] - S @ y)))
    return out


def _field(m: Mechanism, j: Joint, motion: JointMotion, y: ca.SX) -> _Candidate:
    """A candidate from the velocity y (k, 1) of the joint's group; a distribution leaves only part of it, as speeds."""
    Y, left_over = ca.SX.zeros(m.nv, 1), ca.SX(0, 1)
    if j.distribution is not None:
        D = j.distribution
        speeds = solve_definite(D.T @ D, D.T @ y)
        y, left_over = speeds, y - D @ speeds
    Y[m.v_slices[j.name], 0] = y
    return _Candidate(motion, Y, left_over)


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


def _sampled(
    T: Terms, candidates: list[_Candidate], p_given: tuple[float, ...] | None
) -> tuple[list[int], dict[str, _Effect], np.ndarray]:
    """Indices of the independent candidates, the effect of each cause on them, and the work of inputs along them (states,
    candidates, inputs).

    p_given: (np,) parameters; None for random ones at each sample.
    """
    m, Y = T.mechanism, ca.horzcat(*[c.Y for c in candidates])
    effects, sizes = changes(T, Y), force_sizes(T, Y)
    height = max(c.left_over.numel() for c in candidates)
    over = ca.horzcat(*[ca.vertcat(c.left_over, ca.SX.zeros(height - c.left_over.numel(), 1)) for c in candidates])
    rows = ca.densify(T.A)
    f = ca.Function(
        "symmetry",
        [T.q, T.v, T.t, m.p_symbols],
        [ca.horzcat(*effects.values()), ca.horzcat(*sizes.values()), rows @ Y, over, Y, Y.T @ T.B, rows],
    )
    random = np.random.default_rng(29)

    def sample() -> list[np.ndarray]:
        q, v, t = random_configuration(m, random), random.normal(size=m.nv), random.uniform()
        at = some_parameters(m, random) if p_given is None else np.array(p_given)
        if rows.numel():
            A = np.array(f(q, v, t, at)[6])
            # Rows may depend on each other: the tolerance keeps LAPACK's rounding from counting as a further row.
            v -= np.linalg.pinv(A, rcond=1e-9) @ (A @ v)
        return [np.array(x) for x in f(q, v, t, at)]

    samples = [sample() for _ in range(STATES)]
    # Each field moves one joint alone, unless the first ones move several together.
    alone = candidates[0].motion.joint in [j.name for j in m.joints]
    chosen = _independent(np.hstack([x[4].T for x in samples]), [c.motion.joint if alone else "all" for c in candidates])
    joint, free = _alone(np.vstack([x[3] for x in samples])[:, chosen], [candidates[i].motion.joint for i in chosen])
    samples += [sample() for _ in range(free)]
    size = np.mean([x[1][chosen] for x in samples], axis=0)
    by_cause = {name: _Effect(np.array([x[0][chosen, i] for x in samples]), size[:, i]) for i, name in enumerate(effects)}
    unit = np.ones(len(chosen))
    if rows.numel():
        by_cause["constraints"] = _Effect(np.vstack([x[2][:, chosen] for x in samples]), unit)
    return chosen, by_cause | {"joint": _Effect(joint, unit)}, np.array([x[5][chosen] for x in samples])


def _alone(left_over: np.ndarray, joints: list[str]) -> tuple[np.ndarray, int]:
    """Rows (r, candidates) that vanish on combinations that each joint can do alone, and the number of these motions.

    left_over: (samples, candidates).   joints: name of the joint of each candidate.
    """
    rows, free = [np.zeros((0, len(joints)))], 0
    for name in dict.fromkeys(joints):
        columns = [i for i, other in enumerate(joints) if other == name]
        R = np.linalg.qr(left_over[:, columns], mode="r")
        rows.append(np.zeros((len(R), len(joints))))
        rows[-1][:, columns] = R
        free += len(columns) - int(np.linalg.matrix_rank(R, tol=NOTHING))
    return np.vstack(rows), free


def _independent(fields: np.ndarray, joints: list[str]) -> list[int]:
    """Indices of the candidates that do not depend on earlier ones with the same name in `joints`.

    fields: (candidates, samples) values of their fields Y.
    """
    chosen: list[int] = []
    known = {name: np.zeros((0, fields.shape[1])) for name in joints}
    for i, (x, name) in enumerate(zip(fields, joints, strict=True)):
        Q = known[name]
        left = x - Q.T @ (Q @ x)
        left -= Q.T @ (Q @ left)
        if np.linalg.norm(left) > 1e-8 * np.linalg.norm(x) > 0:
            chosen.append(i)
            known[name] = np.vstack([Q, left / np.linalg.norm(left)])
    return chosen


def _null_space(effects: Sequence[_Effect]) -> np.ndarray:
    """(d, n) the combinations of candidates without any of these effects, in row-reduced form.

    The row reduction keeps a symmetry that consists of one candidate separate from others. The causes are treated one by one,
    with each remaining motion scaled by the size of the effect along it, so that light parts count as much as heavy ones.
    """
    combinations = np.eye(len(effects[0].size))
    for x in effects:
        if not len(combinations):
            break
        size = np.abs(combinations) @ x.size
        size = np.where(size > 0, size, 1.0)
        left = reduced(null_space(x.rows @ combinations.T / size, NOTHING)) / size
        pivots = np.take_along_axis(left, (left != 0).argmax(axis=1)[:, None], axis=1)
        combinations = (left / pivots) @ combinations
    return np.where(np.abs(combinations) < NOTHING, 0.0, combinations)


def _cause_in_words(m: Mechanism, p: tuple[float, ...] | None, cause: str, motion: JointMotion) -> str:
    """The cause that breaks a motion, in words."""
    if cause == "weight":
        return f"gravity, {np.array2string(_numbers(m, p, m.gravity).ravel(), precision=4)} m/s^2"
    if cause == "joint":
        return "the joint cannot do it alone"
    if cause == "inertia":
        return _inertia_in_words(m, p, motion)
    return cause


def _numbers(m: Mechanism, p: tuple[float, ...] | None, x: ca.SX) -> np.ndarray:
    """A number of the model at parameters p (np,), the defaults if None."""
    return np.array(ca.DM(ca.substitute(x, m.p_symbols, ca.DM(m.p_defaults if p is None else p))))


def _inertia_in_words(m: Mechanism, p: tuple[float, ...] | None, motion: JointMotion) -> str:
    """Why the inertia of the bodies that a joint carries depends on the position of the joint, in words."""
    tree = symbols(m).kinematics.tree
    if motion.side == "world":
        return "the inertia of what it carries"
    i, link = next((i, x) for i, x in enumerate(tree.links) if x.joint.name == motion.joint)
    if any(i in tree.path(other) for other in range(len(tree.links)) if other != i):
        return "the inertia of what it carries"
    child = m.joint(motion.joint).child
    mass, h, I = (_numbers(m, p, x) for x in (link.mass, link.h, link.I))
    axis = np.array(motion.twist[3:])
    if not axis.any():
        return f"the mass of {child!r}"
    off = np.linalg.norm(h.ravel() - axis * (axis @ h.ravel())) / mass.item()
    if off > NOTHING:
        return f"the centre of mass of {child!r} lies {off:.4g} m off the axis"
    about, along = axis @ I @ axis, np.outer(axis, axis)
    even = about * along + (np.trace(I) - about) / 2 * (np.eye(3) - along)
    if np.abs(I - even).max() < NOTHING * np.trace(I):
        return f"the inertia of {child!r} with other parameters"
    return f"the inertia of {child!r} is not the same about all perpendicular axes"
