"""How a mechanism is reduced: the group that its constraints determine, the conserved momenta, and obstacles to a reduction.

Symmetries are tested at random states with random parameters: a symmetry that holds at a few of these holds at all.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import combinations
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from pfaffian.control.law import at_values
from pfaffian.errors import ModelError
from pfaffian.evaluate.symmetry import NOTHING, STATES, Symmetry, symmetry
from pfaffian.maths.subgroups import name_of
from pfaffian.model import reprs
from pfaffian.model.constraint import Closure, Nonholonomic
from pfaffian.model.joint import Joint
from pfaffian.model.mechanism import Mechanism, as_names, random_configuration
from pfaffian.terms.common_motion import CommonMotion, common_motion
from pfaffian.terms.directions import Directions, in_body, left_by
from pfaffian.terms.force_scale import force_sizes
from pfaffian.terms.forces import named_forces
from pfaffian.terms.momentum import changes, weight
from pfaffian.terms.pfaffian import VELOCITY
from pfaffian.terms.present import remembered
from pfaffian.terms.rates import some_parameters
from pfaffian.terms.reduction import (
    adjoint_inverse,
    first_joint,
    group_of,
    horizontal_lift,
    indices,
    others,
    still,
)
from pfaffian.terms.terms import Terms, symbols


class Plan(NamedTuple):
    """How a mechanism is reduced.

    group: entries of v that the constraints determine from the others.   y: the other entries.
    spatial: joints whose momenta are spatial ones in the state.   conserved: entries of y whose momenta only forces change.
    closed: whether there are reactions of closures.
    """

    group: tuple[int, ...]
    y: tuple[int, ...]
    spatial: tuple[str, ...]
    conserved: tuple[int, ...]
    closed: bool


def as_group(by: Any) -> tuple[str, ...] | None:
    """Names of joints from one name or several; None stays None. Raises ModelError: a name is not text."""
    return None if by is None else as_names([by] if isinstance(by, str) else by, "by")


def carrier(m: Mechanism) -> Joint | CommonMotion:
    """The first joint, or the joints that carry the machine together if no constraint on velocities is present.

    Raises ModelError: no joints carry the whole machine.
    """
    rolling = any(isinstance(c, Nonholonomic) for c in m.constraints)
    return (None if rolling else common_motion(m)) or first_joint(m)


@remembered(64)
def plan(m: Mechanism, by: tuple[str, ...] | None) -> Plan:
    """The plan of a mechanism's reduction.   by: names of the joints of the group; found if None.

    Raises ModelError: the mechanism cannot be reduced (with the causes).
    """
    first = carrier(m)
    _check_constraints(m, first.name)
    if isinstance(first, Joint) and any(isinstance(c, Nonholonomic) for c in m.constraints):
        return _chaplygin(m, first, by)
    if by is not None:
        raise ModelError(f"by: nothing constrains velocities of {m.name!r}, so there is no group to choose; leave it out")
    y = tuple(range(m.nv))
    if isinstance(first, CommonMotion):
        return _common_plan(m, first, y)
    if first.distribution is None:
        symmetries = symmetry(m)
        if not symmetries.basis.shape[1]:
            raise ModelError(f"reduce: {_no_symmetry(symmetries)}")
        entries, spatial = indices(m, (first.name,)), [first.name]
    else:
        _check_invariant(m, (), (first.name,))
        entries, spatial = [], []
    more, conserved = _further(m, (), y, [first.name])
    closed = any(isinstance(c, Closure) for c in m.constraints)
    return Plan((), y, (*spatial, *more), (*entries, *conserved), closed)


def _common_plan(m: Mechanism, common: CommonMotion, y: tuple[int, ...]) -> Plan:
    """The plan of a machine that several joints carry together. Raises ModelError: no base among them, or no symmetry."""
    if common.base < 0:
        raise ModelError(
            f"reduce: {m.name!r} stands on the world by {reprs.listed(common.joints)}, and none of these moves as all do "
            f"together ({name_of(common.basis)}): run the mechanism as it is"
        )
    symmetries = symmetry(m)
    if not symmetries.basis.shape[1]:
        raise ModelError(f"reduce: {_no_symmetry(symmetries)}")
    of_base = common.roots[common.base].joints
    more, conserved = _further(m, (), y, list(of_base), [name for name in common.joints if name not in of_base])
    closed = any(isinstance(c, Closure) for c in m.constraints)
    return Plan((), y, more, (*common.entries(symbols(m).kinematics.tree), *conserved), closed)


def _no_symmetry(found: Symmetry) -> str:
    """The message for a mechanism without a symmetry, with the causes for each motion of its carrier."""
    causes = "; ".join(f"{motion.label}: {', '.join(why)}" for motion, why in found.broken if motion.joint == found.joint)
    return (
        f"no motion of {found.carrier} leaves {found.mechanism!r} as it is ({causes}); remove these causes, or run the "
        "mechanism as it is"
    )


def _check_constraints(m: Mechanism, first: str) -> None:
    """Raise ModelError for a constraint that is not always active, or neither a closure of moving bodies nor on velocities."""
    for c in m.constraints:
        if isinstance(c, Closure) and (fixed := still(m) & {c.body_a, c.body_b}):
            raise ModelError(
                f"closure {c.name!r} ties {m.name!r} to {fixed.pop()!r}, which does not move, and so takes momentum from joint "
                f"{first!r}: run the mechanism as it is, or take the closure out by m.with_(constraints=...)"
            )
        if not isinstance(c, (Closure, Nonholonomic)) or c.active is not None:
            raise ModelError(
                f"constraint {c.name!r} of {m.name!r} is neither a closure between bodies nor a constraint on velocities, or "
                f"not always active; a reduction by joint {first!r} cannot take it: write it as a closure or a joint, or run "
                "the mechanism as it is"
            )


def _chaplygin(m: Mechanism, first: Joint, by: tuple[str, ...] | None) -> Plan:
    """The plan of a mechanism whose constraints determine the velocities of a group of joints from the others."""
    T = symbols(m)
    rows = [i for i, level in enumerate(T.rows.level) if level == VELOCITY]
    f = ca.Function("rows", [T.q, T.v, T.t, m.p_symbols], [ca.densify(T.A[rows, :]), ca.densify(T.rows.eta[rows, :])])
    random = np.random.default_rng(31)
    at = [somewhere(m, random) for _ in range(STATES)]
    A = np.array([np.array(f(*x)[0]) for x in at])
    rest = np.array([np.array(f(q, 0 * v, t, p)[1]) for q, v, t, p in at])
    if np.abs(rest).max() > NOTHING or any(ca.depends_on(T.A[i, :], ca.vertcat(T.v, T.t)) for i in rows):
        raise ModelError(
            f"a constraint of {m.name!r} is not linear in velocities alone (A(q) v = 0); a reduction takes no others"
        )
    rank = int(np.median([np.linalg.matrix_rank(x, tol=1e-9) for x in A]))
    if by is not None:
        for name in by:
            m.joint(name)
        groups = [tuple(by)]
    else:
        groups = _groups(m, first, rank)
    tried = []
    for names in groups:
        entries = indices(m, names)
        sizes = [np.linalg.svd(x[:, entries], compute_uv=False) for x in A]
        fixed = len(entries) == rank and np.median([s[-1] / s[0] for s in sizes]) > 1e-6
        if not fixed:
            tried.append(f"{', '.join(names)} ({len(entries)} velocities where the constraints have rank {rank})")
            continue
        try:
            _check_invariant(m, tuple(entries), names)
        except ModelError as error:
            tried.append(str(error).removeprefix("reduce: "))
            continue
        y = tuple(others(m, entries))
        more, conserved = _further(m, tuple(entries), y, list(names))
        return Plan(tuple(entries), y, more, conserved, any(isinstance(c, Closure) for c in m.constraints))
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
    random = np.random.default_rng(37)
    at = [somewhere(m, random) for _ in range(STATES)]
    elsewhere = [moved(m, names, q, random) for q, *_ in at]
    cause = place_dependence(m, group, at, elsewhere)
    if cause:
        raise ModelError(f"reduce: {cause} of {m.name!r} depends on where {', '.join(map(repr, names))} is: no symmetry")


def moved(m: Mechanism, names: Sequence[str], q: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """q with the joints of these names at random positions."""
    out, other = q.copy(), random_configuration(m, random)
    for name in names:
        out[m.q_slices[name]] = other[m.q_slices[name]]
    return out


def place_dependence(
    m: Mechanism, group: tuple[int, ...] | Directions, at: Sequence[State], elsewhere: Sequence[np.ndarray]
) -> str | None:
    """The first part of the equations that differs between states `at` and these states with q `elsewhere`; None if none does.

    Differences are relative to the size of each number: entries of the kinetic energy to the inertias along their two motions,
    forces to `force_sizes`.
    """
    causes, f = _parts(m, group)
    for (q, v, t, p), other in zip(at, elsewhere, strict=True):
        *here, inertia, sizes = (np.array(x) for x in f(q, v, t, p))
        there = (np.array(x) for x in f(other, v, t, p))
        root = np.sqrt(inertia)
        size_of_part = [1 + np.abs(here[0]), root @ root.T, *sizes.T[:, :, None]]
        for cause, a, b, size in zip(causes, here, there, size_of_part, strict=False):
            if (np.abs(a - b) > NOTHING * size).any():
                return cause
    return None


@lru_cache(maxsize=64)
def _parts(m: Mechanism, group: tuple[int, ...] | Directions) -> tuple[list[str], ca.Function]:
    """The parts of the equations along the motions that constraints leave, in words, and the function of a state for their
    values.

    The function also returns, at the end, the inertia (ny, 1) and the sizes of forces (ny, forces) along these motions.
    """
    T = symbols(m)
    X = left_by(T, group)
    sizes = force_sizes(T, X)
    forces = {"weight": weight(T.kinematics)} | named_forces(T.kinematics)
    motions = in_body(T.kinematics, group, X) if isinstance(group, Directions) else X
    parts = {"the permitted motion": motions, "kinetic energy": X.T @ T.M @ X}
    parts |= {name if name != "weight" else "gravity": X.T @ F for name, F in forces.items()}
    inertia, of_forces = ca.diag(parts["kinetic energy"]), ca.horzcat(*[sizes[name] for name in forces])
    out = [ca.densify(x) for x in (*parts.values(), inertia, of_forces)]
    return list(parts), ca.Function("parts", [T.q, T.v, T.t, m.p_symbols], out)


def _further(
    m: Mechanism, group: tuple[int, ...], y: tuple[int, ...], used: list[str], on_world: Sequence[str] = ()
) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """Joints beyond the first whose spatial momenta are conserved, and all entries of v whose momenta only forces change.

    used: joints to skip.   on_world: other joints that stand on the world, whose momenta are not spatial ones in the state:
    these would be about the world's origin, which may be far away.
    """
    T = symbols(m)
    X = horizontal_lift(T, group) if group else ca.SX.eye(m.nv)[:, list(y)]
    joints = [j for j in m.joints if j.name not in used and j.nv and group_of(j) is not None and j.distribution is None]
    entries = {j.name: [y.index(i) for i in indices(m, (j.name,))] for j in joints if set(indices(m, (j.name,))) <= set(y)}
    if not entries:
        return (), ()
    Y = [X[:, at] for at in entries.values()]
    in_space = [x @ adjoint_inverse(m.joint(name), T.kinematics.joint(name)) for name, x in zip(entries, Y, strict=True)]
    random = np.random.default_rng(41)
    causes = changes_of(T, ca.horzcat(*Y, *in_space))
    constant = ~changing(causes, [somewhere(m, random) for _ in range(STATES)])[:, 0]
    more, conserved, begin = [], list[int](), 0
    for name, at in entries.items():
        end = begin + len(at)
        if len(at) > 1 and name not in on_world and constant[len(constant) // 2 :][begin:end].all():
            more.append(name)
            conserved += [y[i] for i in at]
        else:
            conserved += [y[i] for i, unchanged in zip(at, constant[begin:end], strict=True) if unchanged]
        begin = end
    return tuple(more), tuple(conserved)


SAMPLES = 2
"""Number of random states at which the parameters of a run are checked."""


def other_values(m: Mechanism, p: np.ndarray, names: Sequence[str] = ()) -> Iterator[tuple[str, list[State], list[np.ndarray]]]:
    """For each row of parameters (runs, np) other than the defaults: words for it, random states with these parameters, and
    the q of these states with the joints of these names at random positions.
    """
    random = np.random.default_rng(59)
    states = [somewhere(m, random) for _ in range(SAMPLES)]
    elsewhere = [moved(m, names, q, random) for q, *_ in states]
    for words, values in at_values(m, p):
        if not np.array_equal(values, m.p_defaults):
            yield words, [(q, v, t, values) for q, v, t, _ in states], elsewhere


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
        base = first.entries(symbols(m).kinematics.tree)
    else:
        base = indices(m, (first.name,)) if first.name in found.spatial else []
    return tuple(i for i in sorted(found.conserved) if i not in base)


def _joint_of(m: Mechanism, entry: int) -> str:
    """Name of the joint to which an entry of v belongs."""
    return next(j.name for j in m.joints if entry in indices(m, (j.name,)))


State = tuple[np.ndarray, np.ndarray, float, np.ndarray]
"""A state (q, v, t, parameters)."""


class Changes(NamedTuple):
    """Rates of momenta Y^T p of fields Y, by cause.

    causes: in words.   f: (q, v, t, p) -> rates and their `force_sizes`, both (n, causes), and the constraint rows A.
    """

    causes: tuple[str, ...]
    f: ca.Function


def changes_of(T: Terms, Y: ca.SX) -> Changes:
    """The rates of the momenta Y^T p, as a function of the state.   Y: (nv, n) functions of q."""
    by, sizes = changes(T, Y), force_sizes(T, Y)
    words = {"inertia": "the inertia of what moves", "weight": "gravity"}
    out = [ca.horzcat(*by.values()), ca.horzcat(*[sizes[name] for name in by]), T.A]
    f = ca.Function("changes", [T.q, T.v, T.t, T.mechanism.p_symbols], [ca.densify(x) for x in out])
    return Changes(tuple(words.get(name, name) for name in by), f)


def changing(of: Changes, at: Sequence[State]) -> np.ndarray:
    """(n, causes) of bool: whether each cause changes each momentum at any of these states.

    The velocities of the states are projected onto the constraints first.
    """
    largest = size = np.zeros(of.f.size_out(0))
    for q, v, t, p in at:
        change, scale, A = (np.array(x) for x in of.f(q, v, t, p))
        if A.size:
            change, scale, _ = (np.array(x) for x in of.f(q, v - np.linalg.pinv(A, rcond=1e-9) @ (A @ v), t, p))
        largest, size = np.maximum(largest, np.abs(change)), size + scale / len(at)
    return largest > NOTHING * size


def somewhere(m: Mechanism, random: np.random.Generator) -> State:
    """A random state with parameters near their defaults; it need not satisfy the constraints."""
    return random_configuration(m, random), random.normal(size=m.nv), random.uniform(), some_parameters(m, random)
