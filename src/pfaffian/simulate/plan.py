"""How a mechanism is reduced: which group its constraints fix, which momenta are kept, and what stands in the way.

Symmetries are looked for at random states with random parameters: what holds at a few such holds whatever they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from pfaffian.errors import ModelError
from pfaffian.maths import se3
from pfaffian.model.constraint import Closure, Nonholonomic
from pfaffian.model.joint import Joint
from pfaffian.model.mechanism import Mechanism, as_names, random_configuration
from pfaffian.simulate.symmetry import NOTHING, STATES, Symmetry, symmetry
from pfaffian.terms.forces import named_forces
from pfaffian.terms.momentum import momenta, weight
from pfaffian.terms.pfaffian import VELOCITY
from pfaffian.terms.present import remembered
from pfaffian.terms.rates import some_parameters
from pfaffian.terms.reduction import (
    carried,
    first_joint,
    group_of,
    horizontal_lift,
    indices,
    others,
    still,
)
from pfaffian.terms.terms import symbols


class Plan(NamedTuple):
    """How a mechanism is reduced.

    group: entries of v that the constraints fix by the others.   y: those others.
    spatial: joints whose momenta are carried as spatial ones.   kept: entries of y whose momenta forces alone change.
    closed: whether closures push back.
    """

    group: tuple[int, ...]
    y: tuple[int, ...]
    spatial: tuple[str, ...]
    kept: tuple[int, ...]
    closed: bool


def as_group(by: Any) -> tuple[str, ...] | None:
    """Names of joints that a caller says as one or many, None if none. Raises ModelError: what is no text."""
    return None if by is None else as_names([by] if isinstance(by, str) else by, "by")


@remembered(64)
def plan(m: Mechanism, by: tuple[str, ...] | None) -> Plan:
    """How a mechanism is reduced. Raises ModelError: it cannot be, and why."""
    first = first_joint(m)
    _check_constraints(m, first)
    if any(isinstance(c, Nonholonomic) for c in m.constraints):
        return _chaplygin(m, first, by)
    if by is not None:
        raise ModelError(f"by: nothing constrains velocities of {m.name!r}, so no group is fixed by the others; leave it out")
    every = tuple(range(m.nv))
    if first.distribution is None:
        found = symmetry(m)
        if not found.basis.shape[1]:
            raise ModelError(f"reduce: {_nothing(found)}")
        own, spatial = indices(m, (first.name,)), [first.name]
    else:
        _check_invariant(m, (), (first.name,))
        own, spatial = [], []
    more, kept = _further(m, (), every, [first.name])
    closed = any(isinstance(c, Closure) for c in m.constraints)
    return Plan((), every, (*spatial, *more), (*own, *kept), closed)


def _nothing(found: Symmetry) -> str:
    causes = "; ".join(f"{motion.said}: {', '.join(why)}" for motion, why in found.broken if motion.joint == found.joint)
    return (
        f"no motion of joint {found.joint!r} leaves {found.mechanism!r} as it is ({causes}); take out what stands in the "
        "way, or run the mechanism as it is"
    )


def _check_constraints(m: Mechanism, first: Joint) -> None:
    for c in m.constraints:
        if isinstance(c, Closure) and (held := still(m) & {c.body_a, c.body_b}):
            raise ModelError(
                f"closure {c.name!r} ties {m.name!r} to {held.pop()!r}, which does not move, and so takes momentum from joint "
                f"{first.name!r}: run the mechanism as it is, or take the closure out by m.with_(constraints=...)"
            )
        if not isinstance(c, (Closure, Nonholonomic)) or c.active is not None:
            raise ModelError(
                f"constraint {c.name!r} of {m.name!r} is no closure between bodies and none on velocities that always holds; a "
                f"reduction by joint {first.name!r} cannot take it: say it by a closure or a joint, or run it as it is"
            )


def _chaplygin(m: Mechanism, first: Joint, by: tuple[str, ...] | None) -> Plan:
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
        own = indices(m, names)
        sizes = [np.linalg.svd(x[:, own], compute_uv=False) for x in A]
        fixed = len(own) == rank and np.median([s[-1] / s[0] for s in sizes]) > 1e-6
        if not fixed:
            tried.append(f"{', '.join(names)} ({len(own)} velocities where the constraints have rank {rank})")
            continue
        try:
            _check_invariant(m, tuple(own), names)
        except ModelError as error:
            tried.append(str(error).removeprefix("reduce: "))
            continue
        y = tuple(others(m, own))
        more, kept = _further(m, tuple(own), y, list(names))
        return Plan(tuple(own), y, more, kept, any(isinstance(c, Closure) for c in m.constraints))
    raise ModelError(
        f"reduce: the constraints of {m.name!r} fix the velocities of no group by the others: "
        f"{'; '.join(tried) or 'none fits'}. Say which joints by by=..., or give the first joint a distribution, so "
        "that its own velocities stay"
    )


def _groups(m: Mechanism, first: Joint, rank: int) -> list[tuple[str, ...]]:
    """The first joint, and with it as many of the others as the constraints have rows to fix."""
    others = [j for j in m.joints if j is not first and j.nv == 1 and group_of(j) is not None]
    missing = rank - first.nv
    return [(first.name, *(j.name for j in x)) for x in combinations(others, missing)] if 0 <= missing <= 3 else [(first.name,)]


def _check_invariant(m: Mechanism, group: tuple[int, ...], names: Sequence[str]) -> None:
    """Raise ModelError unless nothing depends on where the joints of these names are."""
    T = symbols(m)
    X = horizontal_lift(T, group) if group else ca.SX.eye(m.nv)
    said = {"what is left by the constraints": X, "kinetic energy": X.T @ T.M @ X, "gravity": X.T @ weight(T.kinematics)}
    said |= {name: X.T @ F for name, F in named_forces(T.kinematics).items()}
    f = ca.Function("invariant", [T.q, T.v, T.t, m.p_symbols], [ca.densify(x) for x in said.values()])
    random = np.random.default_rng(37)
    moved = [i for n in names for i in range(m.q_slices[n].start, m.q_slices[n].stop)]
    for _ in range(STATES):
        q, v, t, p_at = somewhere(m, random)
        other = q.copy()
        other[moved] = random_configuration(m, random)[moved]
        for name, a, b in zip(said, f(q, v, t, p_at), f(other, v, t, p_at), strict=True):
            a, b = np.array(a), np.array(b)
            if np.abs(a - b).max(initial=0.0) > NOTHING * (1 + np.abs(a).max(initial=0.0)):
                raise ModelError(f"reduce: {name} of {m.name!r} depends on where {', '.join(map(repr, names))} is: no symmetry")


def _further(
    m: Mechanism, group: tuple[int, ...], y: tuple[int, ...], taken: list[str]
) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """Joints beyond the first whose spatial momenta are kept, and all entries of v whose momenta forces alone change."""
    T = symbols(m)
    k = T.kinematics
    X = horizontal_lift(T, group) if group else ca.SX.eye(m.nv)[:, list(y)]
    turning = carried(T, X)
    pi = X.T @ momenta(T)
    joints = [j for j in m.joints if j.name not in taken and j.nv and group_of(j) is not None and j.distribution is None]
    own = {j.name: [y.index(i) for i in indices(m, (j.name,))] for j in joints if set(indices(m, (j.name,))) <= set(y)}
    body = [turning[at, 0] for at in own.values()]
    spatial = [turning[at, 0] - _coadjoint(m.joint(name), k.joint_rate(name), pi[at, 0]) for name, at in own.items()]
    rows = ca.densify(T.A)
    f = ca.Function("further", [T.q, T.v, T.t, m.p_symbols], [*map(ca.densify, body + spatial), pi, rows])
    random = np.random.default_rng(41)
    sizes, size = np.zeros(2 * len(own)), np.float64(0.0)
    of_entry = [np.zeros(len(at)) for at in own.values()]
    for _ in range(STATES):
        q, v, t, p_at = somewhere(m, random)
        if rows.numel():
            A = np.array(f(q, v, t, p_at)[-1])
            v -= np.linalg.pinv(A) @ (A @ v)
        found = [np.abs(np.array(x)).ravel() for x in f(q, v, t, p_at)]
        sizes = np.maximum(sizes, [x.max(initial=0.0) for x in found[: 2 * len(own)]])
        of_entry = [np.maximum(a, b) for a, b in zip(of_entry, found, strict=False)]
        size += np.linalg.norm(found[-2]) * np.linalg.norm(v) / STATES
    more, kept = [], list[int]()
    for i, (name, entries) in enumerate(zip(own, of_entry, strict=True)):
        at = indices(m, (name,))
        if sizes[len(own) + i] <= NOTHING * size and len(at) > 1:
            more.append(name)
            kept += at
        else:
            kept += [entry for entry, x in zip(at, entries, strict=True) if x <= NOTHING * size]
    return tuple(more), tuple(kept)


def somewhere(m: Mechanism, random: np.random.Generator) -> tuple[np.ndarray, np.ndarray, float, np.ndarray]:
    """q, v, t and parameters, anywhere."""
    return random_configuration(m, random), random.normal(size=m.nv), random.uniform(), some_parameters(m, random)


def _coadjoint(j: Joint, tau: ca.SX, p: ca.SX) -> ca.SX:
    """(k, 1) ad_tau^T p on the algebra of a joint: how a body-fixed momentum turns while the spatial one stands still."""
    (part,) = j.parts
    S, axes = part.subgroup.S, list(part.subgroup.axes)
    return (se3.ad(S @ tau) @ S)[axes, :].T @ p
