"""How a mechanism is reduced: the group that its constraints determine, the conserved momenta, and obstacles to a reduction.

Symmetries are tested at random states with random parameters: a symmetry that holds at a few of these holds at all.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from pfaffian.control.law import at_values
from pfaffian.errors import ModelError
from pfaffian.evaluate.effects import NONE, SOME, changes_of, changing
from pfaffian.evaluate.place_dependence import first_in_words, place_dependence
from pfaffian.evaluate.symmetry import Symmetry, symmetries
from pfaffian.maths.margins import rank, vanishing
from pfaffian.maths.subgroups import name_of
from pfaffian.model import reprs
from pfaffian.model.constraint import Closure, Holonomic, Nonholonomic
from pfaffian.model.joint import Joint
from pfaffian.model.mechanism import Mechanism, as_names
from pfaffian.terms.common_motion import CommonMotion, common_motion
from pfaffian.terms.generic_states import GenericState, at_generic_states, generic_states, speed_units, tell
from pfaffian.terms.pfaffian import VELOCITY, target_rows
from pfaffian.terms.reduced_terms import (
    adjoint_inverse,
    first_joint,
    group_of,
    horizontal_lift,
    indices,
    others,
    still,
)
from pfaffian.terms.terms import Terms, shared
from pfaffian.terms.traced_now import remembered

STATES = 24
"""Number of random states at which a reduction is planned."""

INTERNAL = (Closure, Holonomic)
"""Kinds of constraints that act between bodies only, or else are refused."""


class Plan(NamedTuple):
    """How a mechanism is reduced.

    group: entries of v that the constraints determine from the others.   y: the other entries.
    spatial: joints whose momenta are spatial ones in the state.   conserved: entries of y whose momenta only forces change.
    closed: whether there are reactions between bodies.
    unclear: decisions that were not clear, in words; what may be conserved counts as not conserved.
    """

    group: tuple[int, ...]
    y: tuple[int, ...]
    spatial: tuple[str, ...]
    conserved: tuple[int, ...]
    closed: bool
    unclear: tuple[str, ...] = ()


def as_group(by: Any) -> tuple[str, ...] | None:
    """Names of joints from one name or several; None stays None. Raises ModelError: a name is not text."""
    return None if by is None else as_names([by] if isinstance(by, str) else by, "by")


def carrier(m: Mechanism) -> Joint | CommonMotion:
    """The first joint, or the joints that carry the machine together if no constraint on velocities is present.

    Raises ModelError: no joints carry the whole machine.
    """
    rolling = any(isinstance(c, Nonholonomic) for c in m.all_constraints)
    return (None if rolling else common_motion(m)) or first_joint(m)


@remembered(64)
def plan(m: Mechanism, by: tuple[str, ...] | None) -> Plan:
    """The plan of a mechanism's reduction.   by: names of the joints of the group; found if None.

    Raises ModelError: the mechanism cannot be reduced (with the causes).
    """
    first = carrier(m)
    _check_constraints(m, first)
    if isinstance(first, Joint) and any(isinstance(c, Nonholonomic) for c in m.all_constraints):
        return _chaplygin(m, first, by)
    if by is not None:
        raise ModelError(f"by: nothing constrains velocities of {m.name!r}, so there is no group to choose; leave it out")
    y = tuple(range(m.nv))
    if isinstance(first, CommonMotion):
        return _common_plan(m, first, y)
    unclear = list[str]()
    if first.distribution is None:
        found = symmetries(m)
        if not found.basis.shape[1]:
            raise ModelError(f"reduce: {_no_symmetry(found)}")
        entries, spatial, unclear = indices(m, (first.name,)), [first.name], _doubts(found)
    else:
        _check_invariant(m, (), (first.name,))
        entries, spatial = [], []
    more = _further(m, (), y, [first.name])
    closed = any(isinstance(c, INTERNAL) for c in m.all_constraints)
    return Plan((), y, (*spatial, *more.spatial), (*entries, *more.conserved), closed, tuple(unclear) or more.unclear)


def _common_plan(m: Mechanism, common: CommonMotion, y: tuple[int, ...]) -> Plan:
    """The plan of a machine that several joints carry together. Raises ModelError: no base among them, or no symmetry."""
    if common.base < 0:
        raise ModelError(
            f"reduce: {m.name!r} stands on the world by {reprs.listed(common.joints)}, and none of these moves as all do "
            f"together ({name_of(common.basis)}): run the mechanism as it is"
        )
    found = symmetries(m)
    if not found.basis.shape[1]:
        raise ModelError(f"reduce: {_no_symmetry(found)}")
    of_base = common.roots[common.base].joints
    more = _further(m, (), y, list(of_base), [name for name in common.joints if name not in of_base])
    closed = any(isinstance(c, INTERNAL) for c in m.all_constraints)
    entries = common.entries(shared(m).kinematics.tree)
    return Plan((), y, more.spatial, (*entries, *more.conserved), closed, tuple(_doubts(found)) or more.unclear)


def _doubts(found: Symmetry) -> list[str]:
    """The unclear symmetries that a reduction would use, in words: forces along joints beyond the first do not matter to it."""
    used = [x for x in found.unclear if x.cause == "inertia" or any(motion.joint == found.joint for _, motion in x.parts)]
    return [str(x) for x in used]


def _no_symmetry(found: Symmetry) -> str:
    """The message for a mechanism without a symmetry, with the causes for each motion of its carrier."""
    causes = "; ".join(f"{motion.label}: {', '.join(why)}" for motion, why in found.broken if motion.joint == found.joint)
    return (
        f"no motion of {found.carrier} leaves {found.mechanism!r} as it is ({causes}); remove these causes, or run the "
        "mechanism as it is"
    )


def _check_constraints(m: Mechanism, first: Joint | CommonMotion) -> None:
    """Raise ModelError for a constraint that is not always active, or neither between moving bodies nor on velocities."""
    for c in m.all_constraints:
        if isinstance(c, Closure) and (fixed := still(m) & {c.body_a, c.body_b}):
            raise ModelError(
                f"closure {c.name!r} ties {m.name!r} to {fixed.pop()!r}, which does not move, and so takes momentum from joint "
                f"{first.name!r}: run the mechanism as it is, or take the closure out by m.with_(constraints=...)"
            )
        if not isinstance(c, (Closure, Holonomic, Nonholonomic)) or c.active is not None:
            raise ModelError(
                f"constraint {c.name!r} of {m.name!r} is neither a constraint between bodies nor a constraint on velocities, "
                f"or not always active; a reduction by joint {first.name!r} cannot take it: write it as a closure or a joint, "
                "or run the mechanism as it is"
            )
        if isinstance(c, Holonomic) and not _acts_between_bodies(m, c, first):
            raise ModelError(
                f"constraint {c.name!r} of {m.name!r} depends on where {first.name!r} is, and so takes momentum from it: "
                "run the mechanism as it is, or write the constraint with coordinates of the other joints"
            )


def _acts_between_bodies(m: Mechanism, c: Holonomic, first: Joint | CommonMotion) -> bool:
    """Whether a constraint permits the motions that carry all bodies."""
    T = shared(m)
    rows = target_rows(T.kinematics, c)
    tree, unit = T.kinematics.tree, speed_units(m, m.p_defaults)
    entries = first.entries(tree) if isinstance(first, CommonMotion) else indices(m, (first.name,))
    fields = first.fields(T.kinematics) if isinstance(first, CommonMotion) else ca.SX.eye(m.nv)[:, entries]
    push = rows.A @ fields @ ca.DM(np.diag(unit[entries]))
    at = at_generic_states(m, {"A": rows.A, "push": ca.densify(push)})
    size = np.linalg.norm(at["A"] * unit, axis=2, keepdims=True)
    known = tell(m, f"whether constraint {c.name!r} acts between bodies only", vanishing(at["push"], size))
    return bool(known.all())


def _chaplygin(m: Mechanism, first: Joint, by: tuple[str, ...] | None) -> Plan:
    """The plan of a mechanism whose constraints determine the velocities of a group of joints from the others."""
    T = shared(m)
    rows, unit = T.A[T.rows.at(VELOCITY), :], speed_units(m, m.p_defaults)
    rest = ca.substitute(T.rows.eta[T.rows.at(VELOCITY), :], T.v, ca.SX.zeros(m.nv, 1))
    at = at_generic_states(m, {"A": rows, "rest": rest}, count=STATES)
    A = at["A"] * unit
    moves_alone = vanishing(at["rest"], np.linalg.norm(A, axis=2, keepdims=True))
    if not moves_alone.answer.all() or ca.depends_on(rows, ca.vertcat(T.v, T.t)):
        raise ModelError(
            f"a constraint of {m.name!r} is not linear in velocities alone (A(q) v = 0); a reduction takes no others"
        )
    known = tell(m, "how many velocities the constraints determine", rank(A))
    if by is not None:
        for name in by:
            m.joint(name)
        groups = [tuple(by)]
    else:
        groups = _groups(m, first, known)
    tried = []
    for names in groups:
        entries = indices(m, names)
        question = f"whether the constraints determine {reprs.listed(names)}"
        if len(entries) != known or tell(m, question, rank(A[:, :, entries])) < known:
            tried.append(f"{', '.join(names)} ({len(entries)} velocities where the constraints have rank {known})")
            continue
        try:
            _check_invariant(m, tuple(entries), names)
        except ModelError as error:
            tried.append(str(error).removeprefix("reduce: "))
            continue
        y = tuple(others(m, entries))
        more = _further(m, tuple(entries), y, list(names))
        closed = any(isinstance(c, INTERNAL) for c in m.all_constraints)
        return Plan(tuple(entries), y, more.spatial, more.conserved, closed, more.unclear)
    raise ModelError(
        f"reduce: the constraints of {m.name!r} determine the velocities of no group from the others: "
        f"{'; '.join(tried) or 'none fits'}. Name the joints with by=..., or give the first joint a distribution, so "
        "that its velocities stay in the state"
    )


def _groups(m: Mechanism, first: Joint, rank: int) -> list[tuple[str, ...]]:
    """Candidate groups: the first joint with as many other joints as the rank of the constraints exceeds its velocities."""
    others = [j for j in m.joints if j is not first and j.nv == 1 and group_of(j) is not None]
    missing = rank - first.nv
    return [(first.name, *(j.name for j in x)) for x in combinations(others, missing)] if 0 <= missing <= 3 else [(first.name,)]


def _check_invariant(m: Mechanism, group: tuple[int, ...], names: Sequence[str]) -> None:
    """Raise ModelError if part of the equations depends on the position of the joints of these names."""
    at = generic_states(m, count=STATES)
    differing = place_dependence(m, group, at, moved(m, names, at))
    if differing:
        raise ModelError(
            f"reduce: {first_in_words(differing)} of {m.name!r} depends on where {', '.join(map(repr, names))} is: no symmetry"
        )


def moved(m: Mechanism, names: Sequence[str], at: Sequence[GenericState]) -> list[np.ndarray]:
    """q of each state with the joints of these names where they are in another one."""
    places = [x.q.copy() for x in at]
    for name in names:
        for q, other in zip(places, [*at[1:], at[0]], strict=True):
            q[m.q_slices[name]] = other.q[m.q_slices[name]]
    return places


class _Further(NamedTuple):
    """Momenta beyond those of the first joint.

    spatial: joints whose spatial momenta are conserved.   conserved: entries of v whose momenta only forces change.
    unclear: which of the others may be conserved, in words.
    """

    spatial: tuple[str, ...] = ()
    conserved: tuple[int, ...] = ()
    unclear: tuple[str, ...] = ()


def _further(
    m: Mechanism, group: tuple[int, ...], y: tuple[int, ...], used: list[str], on_world: Sequence[str] = ()
) -> _Further:
    """The momenta beyond those of the first joint.

    used: joints to skip.   on_world: other joints that stand on the world, whose momenta are not spatial ones in the state:
    these would be about the world's origin, which may be far away.
    """
    T = shared(m)
    X = horizontal_lift(T, group) if group else ca.SX.eye(m.nv)[:, list(y)]
    joints = [j for j in m.joints if j.name not in used and j.nv and group_of(j) is not None and j.distribution is None]
    entries = {j.name: [y.index(i) for i in indices(m, (j.name,))] for j in joints if set(indices(m, (j.name,))) <= set(y)}
    if not entries:
        return _Further()
    Y = [X[:, at] for at in entries.values()]
    in_space = [x @ adjoint_inverse(m.joint(name), T.kinematics.joint(name)) for name, x in zip(entries, Y, strict=True)]
    relative = changing(changes_of(T, ca.horzcat(*Y, *in_space)), generic_states(m, count=STATES))[:, 0]
    constant = relative <= NONE
    spatial, conserved, unclear, begin = [], list[int](), list[str](), 0
    for name, at in entries.items():
        end = begin + len(at)
        if len(at) > 1 and name not in on_world and constant[len(constant) // 2 :][begin:end].all():
            spatial.append(name)
            conserved += [y[i] for i in at]
        else:
            conserved += [y[i] for i, unchanged in zip(at, constant[begin:end], strict=True) if unchanged]
            off = zip(at, relative[begin:end], strict=True)
            unclear += [unclear_momentum(m.v_names[y[i]], x) for i, x in off if NONE < x < SOME]
        begin = end
    return _Further(tuple(spatial), tuple(conserved), tuple(unclear))


def unclear_momentum(name: str, relative: float) -> str:
    """That it is not clear whether a momentum is conserved, in words."""
    return f"the momentum of {name!r} may be conserved: its own inertia changes it by {relative:.1e} of its size"


SAMPLES = 2
"""Number of random states at which the parameters of a run are checked."""


def other_values(
    m: Mechanism, p: np.ndarray, names: Sequence[str] = ()
) -> Iterator[tuple[str, list[GenericState], list[np.ndarray]]]:
    """For each row of parameters (runs, np) other than the defaults: words for it, random states with these parameters, and
    the q of these states with the joints of these names at random positions.
    """
    states = generic_states(m, count=SAMPLES)
    elsewhere = moved(m, names, states)
    for words, at in at_values(m, p):
        if not np.array_equal(at, m.p_defaults):
            yield words, [x._replace(p=at) for x in states], elsewhere


def in_words(cause: str) -> str:
    """A cause of `Changes`, in words."""
    return {"inertia": "the inertia of what moves", "weight": "gravity"}.get(cause, cause)


def conserved_motions(T: Terms, X: ca.SX, found: Plan) -> ca.SX:
    """Y (nv, n) of the conserved momenta Y^T p except those of the first joint, in the order of `further`."""
    m, out = T.mechanism, []
    for name in dict.fromkeys(_joint_of(m, i) for i in further(m, found)):
        columns = [found.y.index(i) for i in indices(m, (name,)) if i in found.conserved]
        back = adjoint_inverse(m.joint(name), T.kinematics.joint(name)) if name in found.spatial else ca.SX.eye(len(columns))
        out.append(X[:, columns] @ back)
    return ca.horzcat(ca.SX(m.nv, 0), *out)


def further(m: Mechanism, found: Plan) -> tuple[int, ...]:
    """Entries of v, except those of the first joint, whose momenta are conserved; in ascending order."""
    first = carrier(m)
    if isinstance(first, CommonMotion):
        base = first.entries(shared(m).kinematics.tree)
    else:
        base = indices(m, (first.name,)) if first.name in found.spatial else []
    return tuple(i for i in sorted(found.conserved) if i not in base)


def _joint_of(m: Mechanism, entry: int) -> str:
    """Name of the joint to which an entry of v belongs."""
    return next(j.name for j in m.joints if entry in indices(m, (j.name,)))
