"""Directions that constraints leave if they determine no group from the other velocities; decided at random states.

`terms/permitted_directions.py` has the expressions. The states satisfy the closures to bodies that do not move, and first
joints are moved along these closures: a body on the floor stays on it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

import casadi as ca
import numpy as np

from pfaffian.control.law import at_values
from pfaffian.errors import ModelError
from pfaffian.evaluate.effects import NONE, SOME, changes_of, changing
from pfaffian.evaluate.place_dependence import first_in_words, place_dependence
from pfaffian.evaluate.reduction_plan import (
    SAMPLES,
    STATES,
    Plan,
    plan,
    unclear_momentum,
)
from pfaffian.maths.linear import connected
from pfaffian.maths.margins import EQUAL, ZERO, Decision, closest, largest, span, vanishing
from pfaffian.maths.values import values
from pfaffian.model import reprs
from pfaffian.model.constraint import Closure, Holonomic, Nonholonomic
from pfaffian.model.joint import Joint
from pfaffian.model.mechanism import Mechanism, check_configuration
from pfaffian.terms.dependence import DEPENDENT
from pfaffian.terms.generic_states import GenericState, at_generic_states, generic_states, length_at, speed_units, tell
from pfaffian.terms.permitted_directions import Directions, RowBlock, labels, left_by, scaled_rows
from pfaffian.terms.pfaffian import POSITION, VELOCITY
from pfaffian.terms.reduced_terms import first_joint, group_of, indices, others
from pfaffian.terms.terms import Terms, shared
from pfaffian.terms.traced_now import remembered

SMALL = 1e-6
"""Volumes of rows, and motions that leave a space of constant directions, count as nothing below this fraction of others."""
ABSENT = 1e-12
"""Entries of a row count as nothing below this fraction of its largest."""
NEAR = 1e-4
"""Fraction of a row's usual orthogonal part below which it nearly depends on the others: the directions are not used there."""
STRIDES = 5
"""Number of random displacements, of about 1 rad or the machine's length each, that move first joints elsewhere."""
ITERATIONS = 30
CLOSED = 1e-10
"""Residual phi below which a configuration satisfies the closures, in rad or lengths of the machine along the rows."""


class Moves(NamedTuple):
    """How a mechanism is reduced.

    found: the plan.   along: the directions that constraints leave, None where the constraints determine a group.
    """

    found: Plan
    along: Directions | None


def planned(m: Mechanism, by: tuple[str, ...] | None) -> Moves:
    """Reduce by a group whose velocities the constraints determine at home and in every shape, otherwise along directions.

    by: names of the joints of the group; found if None.
    Raises ModelError: neither exists (with the causes); the constraints do not always determine the group named in `by`.
    """
    if not any(isinstance(c, Nonholonomic) for c in m.all_constraints):
        return Moves(plan(m, by), None)
    try:
        found = plan(m, by)
    except ModelError as error:
        if by is not None:
            raise
        return _or_moves(m, error)
    if fixed_everywhere(m, found.group):
        return Moves(found, None)
    if by is not None:
        raise ModelError(
            f"by: in some shapes the constraints of {m.name!r} do not determine the velocities of {reprs.listed(by)} from the "
            "others; leave it out: the state then has directions that turn with the shape"
        )
    return moves(m)


def _or_moves(m: Mechanism, no_group: ModelError) -> Moves:
    """The directions of a mechanism without a group. Raises ModelError: no directions either; the message has both causes."""
    try:
        return moves(m)
    except ModelError as error:
        first, why = str(no_group), str(error).removeprefix("reduce: ")
        if why in first:
            raise no_group from None
        raise ModelError(f"{first}; there are no directions that turn with the shape either: {why}") from None


@remembered(64)
def moves(m: Mechanism) -> Moves:
    """Reduce a mechanism along directions.

    Raises ModelError: constraints are not linear in velocities or are not always active; part of the equations depends on the
    position of the first joint.
    """
    cause, T = None, shared(m)
    _check(T)
    for base in _bases(m, first_joint(m)):
        random = np.random.default_rng(61)
        at = [on_floor(m, base, x, random) for x in generic_states(m, count=STATES)]
        along = _directions(m, base, [_home(m), *at])
        if along is None:
            continue
        differing = place_dependence(m, along, at, [elsewhere(m, along.moved, x, random) for x in at])
        sliding = tuple(i for i in along.moved if m.v_units[i] == "m/s")
        if sliding and differing:
            # On a slope, or where it may tip over, the attitude of a machine matters, and where it stands does not.
            along = along._replace(moved=sliding)
            differing = place_dependence(m, along, at, [elsewhere(m, along.moved, x, random) for x in at])
        if not differing:
            return Moves(_along_plan(m, along, at), along)
        cause = cause or first_in_words(differing)
    raise ModelError(f"reduce: {cause} of {m.name!r} depends on where {first_joint(m).name!r} is: no symmetry")


def _along_plan(m: Mechanism, along: Directions, at: Sequence[GenericState]) -> Plan:
    """The plan of a mechanism along directions."""
    T = shared(m)
    relative = changing(changes_of(T, left_by(T, along)), at)[:, 0]
    constant = [i for i, x in zip(along.y, relative, strict=True) if x <= NONE]
    names = labels(m, along)[0]
    unclear = [unclear_momentum(names[i], x) for i, x in zip(along.y, relative, strict=True) if NONE < x < SOME]
    return Plan(tuple(others(m, along.y)), along.y, (), tuple(constant), False, tuple(unclear))


def _check(T: Terms) -> None:
    """Raise ModelError if a constraint is of another kind than A(q) v = 0, or not always active."""
    m = T.mechanism
    for c in m.all_constraints:
        if not isinstance(c, (Closure, Holonomic, Nonholonomic)) or c.active is not None:
            raise ModelError(f"constraint {c.name!r} is not always active, or constrains neither positions nor velocities")
    rest = ca.substitute(T.rows.eta, T.v, ca.SX.zeros(m.nv, 1))
    at = at_generic_states(m, {"A": T.A, "rest": rest}, count=STATES)
    size = np.linalg.norm(at["A"] * speed_units(m, m.p_defaults), axis=2, keepdims=True)
    if not vanishing(at["rest"], size).answer.all() or ca.depends_on(T.A, ca.vertcat(T.v, T.t)):
        raise ModelError(
            f"a constraint of {m.name!r} is not linear in velocities alone (A(q) v = 0); a reduction takes no others"
        )


def _bases(m: Mechanism, first: Joint) -> Iterator[tuple[str, ...]]:
    """Names of the first joints that form an unbranched chain: as many as possible first, then fewer."""
    chain = [first]
    while chain[-1].distribution is None:
        then = [j for j in m.joints if j.parent == chain[-1].child and (j.nv or j.pose)]
        if len(then) != 1 or group_of(then[0]) is None or then[0].distribution is not None:
            break
        chain.append(then[0])
    for n in range(len(chain), 0, -1):
        yield tuple(j.name for j in chain[:n])


def fixed_everywhere(m: Mechanism, group: Sequence[int]) -> bool:
    """Whether constraints on velocities determine a group of entries of v from the others at home and in every shape.

    "Every shape" is decided at random states, by the volume of the rows.
    """
    T = shared(m)
    rows = T.A[T.rows.at(VELOCITY), list(group)]
    f = ca.Function("rows", [T.q, T.v, T.t, m.p_symbols], [ca.densify(rows)])
    home = GenericState(m.neutral(), np.zeros(m.nv), 0.0, m.p_defaults)
    at = np.array([values(f, *x)[0] for x in (home, *generic_states(m, count=STATES))])
    A = at * speed_units(m, m.p_defaults)[list(group)]
    chosen, _ = independent(m, A)
    if len(chosen) != len(group):
        return False
    A = A[:, chosen] / np.maximum(np.linalg.norm(A[:, chosen], axis=2, keepdims=True), 1e-150)
    volume = np.linalg.det(A)
    least = float((volume * volume[0]).min() / np.abs(volume).max() ** 2)
    return tell(m, "whether the constraints determine a group in every shape", Decision(least > SMALL, max(least, 0.0), SMALL))


def states(m: Mechanism, along: Directions | None) -> list[GenericState]:
    """Random states; on the closures if the mechanism is reduced along directions."""
    random, anywhere = np.random.default_rng(43), generic_states(m, count=STATES)
    return [on_floor(m, along.base, x, random) for x in anywhere] if along else list(anywhere)


def _directions(m: Mechanism, base: tuple[str, ...], at: Sequence[GenericState]) -> Directions | None:
    """The directions with the joints of these names as base; None if these carry no body as a group.

    at: states, home first.
    """
    axes = () if len(base) == 1 else _axes(m, base, at)
    if axes is None:
        return None
    T = shared(m)
    bare = Directions(base, axes, tuple(indices(m, base)), (), (), 1.0)
    f = ca.Function("rows", [T.q, T.v, T.t, m.p_symbols], [ca.densify(scaled_rows(T, bare))])
    rows = np.array([values(f, *x)[0] for x in at])
    turns = np.array([unit == "rad/s" for unit in labels(m, bare)[1]])
    bare = bare._replace(length=_lever(m, rows, turns))
    rows = np.where(turns, rows / bare.length, rows)
    body = indices(m, base)
    of_body, of_all = independent(m, rows[:, :, body]), independent(m, rows)
    moves_alone = len(of_body[0]) == len(of_all[0]) < len(body)
    entries = body if moves_alone else list(range(m.nv))
    parts = tuple(_parts(m, rows, entries, *(of_body if moves_alone else of_all)))
    return bare._replace(
        y=tuple(i for i in range(m.nv) if not any(i in x.entries and i not in x.names for x in parts)), parts=parts
    )


def _parts(m: Mechanism, rows: np.ndarray, among: Sequence[int], chosen: list[int], least: list[float]) -> Iterator[RowBlock]:
    """Blocks of rows (states, m, nv) that share velocities, as far as these are entries `among` of v.

    chosen, least: the independent rows and the smallest orthogonal part of each, as returned by `independent`.
    """
    used = rows[:, chosen]
    absent = tell(
        m, "which velocities a constraint row contains", vanishing(used, np.abs(used).max(axis=2, keepdims=True), ABSENT)
    )
    columns_of = [set(np.flatnonzero(~x).tolist()) for x in absent]
    support = [x & set(among) for x in columns_of]
    for members in connected(support):
        entries = sorted(set().union(*[support[i] for i in members]))
        lifts = sorted(set().union(*[columns_of[i] for i in members]) - set(among))
        mine = [chosen[i] for i in members]
        reflected, names = _reflected(rows[:, mine][:, :, entries])
        yield RowBlock(
            tuple(mine),
            tuple(entries),
            tuple(entries[i] for i in names),
            reflected,
            tuple(least[i] for i in members),
            tuple(lifts),
        )


def _lever(m: Mechanism, rows: np.ndarray, turns: np.ndarray) -> float:
    """The ratio by which turns are compared with slides: the median lever [m] of rows (states, m, nv).

    It is the machine's length if no row has a lever, which would have both slides and turns.
    """
    long = length_at(m, m.p_defaults)
    parts = np.stack([np.linalg.norm(rows[:, :, which], axis=2) for which in (~turns, turns)], axis=1)
    slide, turn = parts[:, 0], parts[:, 1]
    sizes = np.stack([slide, turn / long], axis=1)
    absent = tell(m, "which constraint rows have a lever", vanishing(sizes, sizes.sum(axis=1, keepdims=True)))
    both = ~absent.any(axis=0) & (sizes.min(axis=1) > ZERO * sizes.max(axis=1))
    return float(f"{np.median(turn[both] / slide[both]) if both.any() else long:.2g}")


def _axes(m: Mechanism, base: tuple[str, ...], at: Sequence[GenericState]) -> tuple[int, ...] | None:
    """Entries of the body's twist that determine the velocities of the joints.

    None if the twists of the body do not span a constant space of that dimension.
    """
    T, last = shared(m), m.joint(base[-1]).child
    entries = indices(m, base)
    f = ca.Function("twists", [T.q, T.t, m.p_symbols], [ca.densify(T.kinematics.jacobian(last)[:, entries])])
    unit = speed_units(m, m.p_defaults)[entries]
    J = np.hstack([values(f, q, t, p)[0] * unit for q, _, t, p in at])
    J[:3] /= length_at(m, m.p_defaults)
    if tell(m, f"how many motions the joints {reprs.listed(base)} give their last body", span(J, SMALL)) != len(entries):
        return None
    left, axes = np.linalg.svd(J, full_matrices=False)[0][:, : len(entries)].copy(), list[int]()
    for _ in entries:
        best = largest(np.linalg.norm(left, axis=1))
        axes.append(best)
        unit = left[best] / np.linalg.norm(left[best])
        left -= np.outer(left @ unit, unit)
    return tuple(sorted(axes))


def independent(m: Mechanism, rows: np.ndarray) -> tuple[list[int], list[float]]:
    """Indices of the rows (states, m, n) that do not depend on earlier rows, and for each its `least` in a `RowBlock`.

    A row counts as dependent as it does in a run: if at half of the states less than DEPENDENT of it is orthogonal to the
    others.
    """
    chosen, least, basis, parts = list[int](), list[float](), list[np.ndarray](), list[float]()
    for i in range(rows.shape[1]):
        row, squared = rows[:, i], np.maximum((rows[:, i] ** 2).sum(axis=1), 1e-300)
        left = row.copy()
        for u in [*basis, *basis]:
            left -= (left * u).sum(axis=1, keepdims=True) * u
        part = (left**2).sum(axis=1) / squared
        usual = float(np.median(part))
        parts.append(np.sqrt(usual))
        if parts[-1] > DEPENDENT:
            chosen.append(i)
            least.append(float(f"{NEAR * usual:.2g}"))
            basis.append(left / np.maximum(np.linalg.norm(left, axis=1, keepdims=True), 1e-150))
    decision = Decision((chosen, least), closest(np.array(parts), DEPENDENT), DEPENDENT)
    return tell(m, "which constraint rows depend on others", decision)


def _reflected(A: np.ndarray) -> tuple[tuple[tuple[int, int], ...], list[int]]:
    """`RowBlock.reflected` for rows (states, r, n), the first state being home, and the indices of the remaining columns."""
    names, reflected = list(range(A.shape[2])), list[tuple[int, int]]()
    N = np.broadcast_to(np.eye(A.shape[2]), (len(A), A.shape[2], A.shape[2]))
    for i in range(A.shape[1]):
        u = np.einsum("sj,sjk->sk", A[:, i], N)
        u /= np.linalg.norm(u, axis=1, keepdims=True)
        n = u.shape[1]
        if n == 2:
            first = abs(u[0, 1]) >= abs(u[0, 0]) - EQUAL
            place, sign = (1, -1 if u[0, 1] > 0 else 1) if first else (0, 1 if u[0, 0] > 0 else -1)
            turned = sign * np.stack([-u[:, 1], u[:, 0]], axis=1)[:, :, None]
        else:
            ways = [(e, s) for e in range(n) for s in (1, -1)]
            place, sign = ways[largest(np.array([(1 + s * u[:, e]).min() for e, s in ways]))]
            w = u + sign * np.eye(n)[place]
            turned = np.eye(n) - w[:, :, None] * w[:, None] / (1 + sign * u[:, place])[:, None, None]
            turned = np.delete(turned, place, axis=2)
        N = N @ turned
        reflected.append((place, sign))
        del names[place]
    return tuple(reflected), names


# -- states on the closures ---------------------------------------------------------------------------------------------


@lru_cache(maxsize=64)
def _floor(m: Mechanism) -> ca.Function:
    """(q, v, t, p) -> residual phi and matrix A of the position rows, and the kinematic matrix K."""
    T = shared(m)
    rows = T.rows.at(POSITION)
    out = [T.rows.phi[rows], T.A[rows, :], T.kinematics.kinematic_matrix]
    return ca.Function("floor", [T.q, T.v, T.t, m.p_symbols], [ca.densify(x) for x in out])


def _home(m: Mechanism) -> GenericState:
    """The neutral state, put onto the closures."""
    v, p = np.zeros(m.nv), m.p_defaults
    return GenericState(_closed(m, m.neutral(), p, range(m.nv)), v, 0.0, p)


def on_floor(m: Mechanism, base: Sequence[str], at: GenericState, random: np.random.Generator) -> GenericState:
    """A state put onto the closures, with its joints `base` moved from neutral along them."""
    q = at.q.copy()
    for name in base:
        q[m.q_slices[name]] = m.neutral()[m.q_slices[name]]
    there = at._replace(q=_closed(m, q, at.p, range(m.nv)))
    return there._replace(q=elsewhere(m, indices(m, base), there, random))


def elsewhere(m: Mechanism, moved: Sequence[int], at: GenericState, random: np.random.Generator) -> np.ndarray:
    """q of a state displaced along the entries `moved` of v, on the same closures."""
    (q, v, t, p), entries = at, list(moved)
    unit = speed_units(m, p)[entries]
    for _ in range(STRIDES):
        _, A, K = values(_floor(m), q, v, t, p)
        A, stride = A[:, entries] * unit, random.normal(size=len(entries))
        stride -= np.linalg.pinv(A, rcond=ZERO) @ (A @ stride)
        q = _closed(m, check_configuration(m, (q + K[:, entries] @ (unit * stride))[None])[0], p, entries, t)
    return q


def _closed(m: Mechanism, q: np.ndarray, p: np.ndarray, moved: Sequence[int], t: float = 0.0) -> np.ndarray:
    """q put onto the closures by Newton's iterations in these entries of v. Raises ModelError: they do not converge."""
    unit, entries = speed_units(m, p), list(moved)
    for _ in range(ITERATIONS):
        phi, A, K = values(_floor(m), q, np.zeros(m.nv), t, p)
        A = A * unit
        closed = (np.abs(phi.ravel()) <= CLOSED * np.linalg.norm(A, axis=1)).all()
        step = K[:, entries] @ (unit[entries] * (np.linalg.pinv(A[:, entries], rcond=ZERO) @ phi.ravel()))
        q = check_configuration(m, (q - step)[None])[0]
        if closed:
            return q  # after one more step, which leaves rounding alone
    raise ModelError(f"reduce: found no states of {m.name!r} on its closures; reduce it without them, or run it as it is")


def other_places(m: Mechanism, p: np.ndarray, along: Directions) -> Iterator[tuple[str, list[GenericState], list[np.ndarray]]]:
    """For each row of parameters (runs, np) other than the defaults: words for it, random states on the closures, and q of
    these states displaced along the closures, by the motions on which nothing depended at the defaults.
    """
    for words, given in at_values(m, p):
        if not np.array_equal(given, m.p_defaults):
            random = np.random.default_rng(59)
            anywhere = [x._replace(p=given) for x in generic_states(m, count=SAMPLES)]
            at = [on_floor(m, along.base, x, random) for x in anywhere]
            yield words, at, [elsewhere(m, along.moved, x, random) for x in at]
