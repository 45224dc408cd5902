"""Symmetries of a mechanism: motions of its joints that leave kinetic energy, potential, forces and constraints unchanged.

A field Y(q) of velocities is a symmetry if its momentum Y^T p is conserved,

    d/dt (Y^T p) = Y^T p_dot + Y_dot^T p = 0    at all q and v,       A Y = 0,

which is linear in Y. So candidate motions are listed joint by joint (`candidates.py`), their effects are sampled at random
states, and the largest algebra is a null space, with each motion judged beside its own size (`effects.py`). Each symmetry is
then verified at further states, of widely different places and speeds. This covers all cases of [chhabra14 section 4.4]: AP1
and AP2, right actions on extremities, commuting joints.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from pfaffian.errors import ModelError, ModelWarning, notice
from pfaffian.evaluate.arrays import parameter_values
from pfaffian.evaluate.candidates import JOINT, Candidate, JointMotion, candidates, numbers
from pfaffian.evaluate.effects import (
    CONSTRAINTS,
    NONE,
    SOME,
    Effect,
    Unclear,
    beside,
    breaks,
    changes_of,
    sampled,
    without_effect,
)
from pfaffian.maths.margins import ZERO
from pfaffian.maths.subgroups import name_of
from pfaffian.model import reprs
from pfaffian.model.mechanism import Mechanism, as_mechanism
from pfaffian.terms.common_motion import common_motion
from pfaffian.terms.generic_states import GenericState, generic_states
from pfaffian.terms.reduced_terms import first_joint
from pfaffian.terms.terms import Terms, shared
from pfaffian.terms.traced_now import remembered

STATES = 24
"""Number of random states at which effects are sampled; one more is added for each motion that a joint can do alone."""

VERIFIED_AT = 20
"""Number of further states at which each symmetry is verified."""

SPEEDS, FASTER, PLACES = 2.0, 2.5, 1.0
"""Powers of ten up to which the speeds of these states differ, those of joints, and the distances from the origin."""


class Doubt(NamedTuple):
    """A motion that may be a symmetry.

    parts: (weight, JointMotion) of the motion.   cause: what changes its momentum.   relative: by how much of its size.
    """

    parts: tuple[tuple[float, JointMotion], ...]
    cause: str
    relative: float

    def __str__(self) -> str:
        what = _motions_in_words(self.parts)
        prevented = {JOINT: "the joint prevents", CONSTRAINTS: "constraints prevent"}.get(self.cause)
        if prevented:
            return f"{what}: {prevented} {self.relative:.1e} of it, which is unclear"
        return f"{what}: {self.cause} changes its momentum by {self.relative:.1e} of its size, which is unclear"


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
    unclear: each motion that may be a symmetry: what changes its momentum is neither nothing nor clearly something, and no
    symmetry is claimed.
    """

    mechanism: str
    joint: str
    basis: np.ndarray
    group: str
    further: tuple[tuple[tuple[float, JointMotion], ...], ...]
    broken: tuple[tuple[JointMotion, tuple[str, ...]], ...]
    driven: dict[str, tuple[JointMotion, ...]]
    unclear: tuple[Doubt, ...] = ()

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
        out += [f"  {doubt}" for doubt in self.unclear]
        return out


def symmetry(m: Mechanism, *, parameters: Any = None) -> Symmetry:
    """The largest group of motions that leave kinetic energy, potential, forces and constraints of a mechanism unchanged.

    The first candidates are motions of the whole machine: those of the first joint, or of several joints that connect it to the
    world or together form a group, such as a translation followed by a ball joint without a mass between them. Then come the
    motions of all joints, from either side and in any combination, such as the spin of a top, or the motion of one of two
    unconnected bodies. Each motion that is not a symmetry is listed with its causes: a mass centre off the axis, unequal
    inertias, the direction of gravity, a spring, a damper, a constraint. Inputs break no symmetry, and are listed with the
    symmetries that they drive. The decision is made at random states, beside the inertia and the forces along each motion, so
    that light parts are judged on their scale, and verified at states of widely different speeds. An effect of up to 3e-11 of
    this size counts as none. If it is less than 3e-8, the motion counts as no symmetry, and a warning says that it is unclear.
    [chhabra14 theorem 3.3.3, section 4.4]

    Args:
        m: the mechanism.
        parameters: {name: value} at which to decide; None, the default, finds symmetries that hold for any values.
    Returns:
        a Symmetry, which prints as a report: `group` (name) and `basis` (6, d) of the first joint's symmetries, `further`
        ones of other joints, `broken` motions with their causes, `driven` inputs, `unclear` motions.
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
    found = symmetries(m, None if parameters is None else tuple(parameter_values(m, parameters)[0].tolist()))
    for doubt in found.unclear:
        notice(f"{m.name!r}: {doubt}; make what breaks it zero, or clearly larger", ModelWarning)
    return found


class _FoundSymmetries(NamedTuple):
    """The symmetries of a mechanism, and what its candidates do.

    q: symbols of the fields Y (nv, n) of the candidates.   first: indices of those of the joints that carry the whole machine.
    symmetries: (d, n) combinations that are symmetries, in row-reduced form.   of_first: those of the `first` candidates alone.
    unclear: those that may be symmetries.
    effects: on the candidates, by cause.   work: of each input along each candidate.
    """

    q: ca.SX
    Y: ca.SX
    candidates: tuple[Candidate, ...]
    first: list[int]
    symmetries: np.ndarray
    of_first: np.ndarray
    unclear: list[Unclear]
    effects: dict[str, Effect]
    work: list[Effect]


@remembered(64)
def _found(m: Mechanism, p: tuple[float, ...] | None) -> _FoundSymmetries:
    """The symmetries among the candidates of a mechanism.   p: (np,) parameters; None for random ones at each sample."""
    T = shared(m)
    c = candidates(T, common_motion(m) or first_joint(m), p)
    at = None if p is None else np.array(p)
    changes = changes_of(T, c.Y, at)
    states = generic_states(m, parameters=at, count=STATES + len(c.alone) + VERIFIED_AT)
    effects, work = sampled(changes, states[:-VERIFIED_AT])
    again = sampled(changes, _elsewhere(m, states[-VERIFIED_AT:]), any_speed=True).effects

    def without(motions: np.ndarray) -> tuple[np.ndarray, list[Unclear]]:
        """The verified symmetries among motions (d, n), and the unclear ones."""
        found, unclear = without_effect(effects, motions)
        lasting = np.ones(len(found), dtype=bool)
        for cause, x in again.items():
            relative = x.along(found).worst
            lost = np.flatnonzero(lasting & (relative > ZERO))
            unclear += [Unclear(found[i], cause, float(relative[i])) for i in lost]
            lasting[lost] = False
        return found[lasting], unclear

    symmetries, unclear = without(c.alone)
    unclear += [x for x in c.unclear if not breaks(effects, x.combination)]
    of_first, _ = without(c.alone[~np.delete(c.alone, c.first, axis=1).any(axis=1)])
    return _FoundSymmetries(c.q, c.Y, c.found, c.first, symmetries, of_first, unclear, effects | {JOINT: c.impossible}, work)


def _elsewhere(m: Mechanism, states: Sequence[GenericState]) -> list[GenericState]:
    """States at widely different places and speeds."""
    random, far = np.random.default_rng(83), np.array([unit == "m" for unit in m.q_units])
    found = []
    for q, v, t, p in states:
        factor = np.ones(m.nv)
        for j in m.joints:
            factor[m.v_slices[j.name]] = 10 ** random.uniform(-FASTER, FASTER)
        there = np.where(far, q * 10 ** random.uniform(-PLACES, PLACES), q)
        found.append(GenericState(there, 10 ** random.uniform(-SPEEDS, SPEEDS) * factor * v, t, p))
    return found


def conserved_fields(T: Terms, still: Sequence[str], p: np.ndarray) -> ca.SX:
    """Y (nv, k): symmetries along which only inputs that are zero do work, so that the momenta Y^T M v are conserved.

    There are none if servo forces act, or if no joints carry the whole machine as a group.
    still: names of inputs that are zero.   p: (np,) parameters.
    """
    m = T.mechanism
    try:
        x = _found(m, tuple(p.tolist()))
    except ModelError:
        return ca.SX(m.nv, 0)
    if m.servos or not x.candidates:
        return ca.SX(m.nv, 0)
    pushing = {name: work for name, work in zip(m.u_names, x.work, strict=True) if name not in still}
    symmetries = without_effect(pushing, x.symmetries)[0]
    return ca.substitute(x.Y, x.q, T.q) @ ca.DM(symmetries.T)


class Inner(NamedTuple):
    """Symmetries that contain motions of joints from the child's side.

    q: symbols of the fields Y (nv, n).   names: of the speeds along them, after the first velocity that is a rotation.
    labels: the motions in words.
    """

    q: ca.SX
    Y: ca.SX
    names: tuple[str, ...]
    labels: tuple[str, ...]


@remembered(64)
def inner_symmetries(m: Mechanism, joints: tuple[str, ...]) -> Inner:
    """The inner symmetries of these joints that hold for any values of the parameters."""
    x = _found(m, None)
    inner = [i for i, c in enumerate(x.candidates) if c.motion.joint in joints and c.motion.side == "right"]
    symmetries = [_turning(w, x.candidates) for w in x.symmetries if w[inner].any()]
    names = []
    for w in symmetries:
        used = [x.candidates[i] for i in inner if w[i]]
        turning = [c for c in used if c.turns] or used
        names.append(f"{m.v_names[ca.sparsify(turning[0].Y).row()[0]]} within")
    labels = [_motions_in_words(_parts(w, x.candidates)) for w in symmetries]
    return Inner(x.q, x.Y @ ca.DM(np.array(symmetries).reshape(-1, len(x.candidates)).T), tuple(names), tuple(labels))


def _motions_in_words(parts: Iterable[tuple[float, JointMotion]]) -> str:
    """A combination of motions in words, with weights other than 1."""
    return " and ".join(f"{w:+.3g} {x.label}".removeprefix("+1 ") for w, x in parts)


def _parts(x: np.ndarray, of: Sequence[Candidate]) -> tuple[tuple[float, JointMotion], ...]:
    """The parts (weight, motion) of a combination x (n,) of candidates."""
    return tuple((float(w), of[i].motion) for i, w in enumerate(x) if w)


@remembered(64)
def symmetries(m: Mechanism, p: tuple[float, ...] | None = None) -> Symmetry:
    """The symmetries at parameters p (np,); if None, those that hold for any values. Unclear ones are not told."""
    first = (common_motion(m) or first_joint(m)).name
    x = _found(m, p)
    of, base, symmetries, effects = x.candidates, x.first, x.symmetries, x.effects
    basis = np.array([of[i].motion.twist for i in base]).T.reshape(6, -1) @ x.of_first[:, base].T
    further = tuple(_parts(_turning(w, of), of) for w in symmetries if np.delete(w, base).any())
    members = [np.flatnonzero(x).tolist() for x in symmetries]
    values = None if p is None else np.array(p)
    broken = tuple(
        (
            c.motion,
            tuple(_cause_in_words(m, values, why, c.motion, e.largest[i]) for why, e in effects.items() if e.largest[i] > NONE),
        )
        for i, c in enumerate(of)
        if (c.motion.side == "left" or i in base) and not any(i in parts for parts in members)
    )
    driven = {}
    for name, work in zip(m.u_names, x.work, strict=True):
        does = work.along(symmetries).largest > NONE
        along = {i for moves, parts in zip(does, members, strict=True) if moves for i in parts}
        if along:
            driven[name] = tuple(of[i].motion for i in sorted(along))
    doubtful = tuple(Doubt(_parts(_turning(u.combination, of), of), u.cause, u.relative) for u in x.unclear)
    return Symmetry(m.name, first, basis, name_of(basis), further, broken, driven, doubtful)


def _turning(x: np.ndarray, of: Sequence[Candidate]) -> np.ndarray:
    """A symmetry x (n,) scaled so that its first rotation has the weight 1."""
    turns = [w for w, c in zip(x, of, strict=True) if w and c.turns]
    return x / turns[0] if turns else x


def _cause_in_words(m: Mechanism, p: np.ndarray | None, cause: str, motion: JointMotion, relative: float) -> str:
    """The cause that breaks a motion by an effect `relative` to its size, in words."""
    words = cause
    if cause == "weight":
        words = f"gravity, {np.array2string(numbers(m, p, m.gravity).ravel(), precision=4)} m/s^2"
    elif cause == JOINT:
        words = "the joint cannot do it alone"
    elif cause == "inertia":
        words = _inertia_in_words(m, p, motion)
    return words if relative >= SOME else f"{words} ({beside(relative)})"


def _inertia_in_words(m: Mechanism, p: np.ndarray | None, motion: JointMotion) -> str:
    """Why the inertia of the bodies that a joint carries depends on the position of the joint, in words."""
    tree = shared(m).kinematics.tree
    if motion.side == "world":
        return "the inertia of what it carries"
    i, link = next((i, x) for i, x in enumerate(tree.links) if x.joint.name == motion.joint)
    if any(i in tree.path(other) for other in range(len(tree.links)) if other != i):
        return "the inertia of what it carries"
    child = m.joint(motion.joint).child
    mass, h, I = (numbers(m, p, x) for x in (link.mass, link.h, link.I))
    axis = np.array(motion.twist[3:])
    if not axis.any():
        return f"the mass of {child!r}"
    off = np.linalg.norm(h.ravel() - axis * (axis @ h.ravel())) / mass.item()
    if mass.item() * off**2 > NONE**2 * np.trace(I):
        return f"the centre of mass of {child!r} lies {off:.4g} m off the axis"
    about, along = axis @ I @ axis, np.outer(axis, axis)
    even = about * along + (np.trace(I) - about) / 2 * (np.eye(3) - along)
    if np.abs(I - even).max() < NONE * np.trace(I):
        return f"the inertia of {child!r} with other parameters"
    return f"the inertia of {child!r} is not the same about all perpendicular axes"
