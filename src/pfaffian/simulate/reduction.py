"""Reduction: a mechanism in the state that its symmetries and constraints leave, q, what is kept and what is not.

All of it is one thing. Velocities that the constraints allow are v = X(q) y, the momenta that belong to y are pi = X^T p, and

    pi_dot = X^T p_dot + X_dot^T p,        p = M v,   y = (X^T M X)^-1 pi,

where the reactions are in neither term. X is 1 without constraints: reduction by momentum [chhabra14 chapter 3]. With them it
is the horizontal lift of Chaplygin's reduction [chhabra14 section 4.3], X_dot what its curvature comes from. Momenta of a joint
that is a group of symmetries are carried as the spatial ones, mu = Ad_g^-T pi_g, which forces alone change; those of the other
symmetries are changed by forces alone as they stand. So what is kept is kept to the last bit, at any mu, with no chart of the
group; shape and momenta know nothing of the place, which is found by q_dot = K v beside them.

A column of X may be any field sigma(q) that the constraints allow: pi = <p, sigma> is then a momentum of it, and where it is a
constant of motion, horizontal symmetry that no group of positions has, it is kept as the others [chhabra14 prop. 4.2.15].
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import casadi as ca
import numpy as np

from pfaffian.dynamics.motion import Motion
from pfaffian.errors import ModelError, brief, nearest
from pfaffian.maths.linear import solve_symmetric
from pfaffian.model import shown
from pfaffian.model.caller import ask_column
from pfaffian.model.constraint import Closure
from pfaffian.model.joint import Joint
from pfaffian.model.mechanism import Mechanism, as_mechanism, force_unit
from pfaffian.simulate.orbit import reduced_space
from pfaffian.simulate.plan import Plan, as_group, plan, somewhere
from pfaffian.simulate.symmetry import NOTHING, STATES, symmetry
from pfaffian.simulate.system import StatePart, System, made
from pfaffian.simulate.variables import normalise
from pfaffian.terms.digest import digest, of_function
from pfaffian.terms.forces import named_forces
from pfaffian.terms.kinematics import Kinematics
from pfaffian.terms.momentum import momenta, moving, transport, weight
from pfaffian.terms.reduction import (
    blocks,
    carried,
    first_joint,
    horizontal_lift,
    in_first_joint,
    indices,
    others,
    to_body,
    to_space,
)
from pfaffian.terms.terms import Terms, symbols


def reduce(
    m: Mechanism, *, by: Any = None, momentum: Any = None, along: Mapping[str, Callable[[Kinematics], Any]] | None = None
) -> System:
    """The mechanism reduced by its symmetries, and by its constraints on velocities: a System that `run` takes.

    The state is [q; momentum]. Where nothing constrains velocities, `momentum` begins with that of the first joint about the
    frame it stands in: spatial, kept while no force acts on it. [chhabra14 (3.3.35)] Where constraints do, a group is found
    whose velocities they fix by the others (Chaplygin), and `momentum` belongs to the others. In either case momenta of further
    symmetries (axially symmetric rotors, posts of cranes) are kept too, to the last bit while nothing drives them.

    The result has beside q and v: `momentum`, by name; `momentum_drift`, what the bodies have in all less what the state says
    (of a first joint); `shape_momentum`, p - A^T mu_b of the other joints [chhabra14 (3.3.42)].

    Args:
        m: an open chain or tree on one first joint. Closures between bodies of it are kept as constraints that push back.
        by: under constraints on velocities, the joints whose velocities they fix, names; found if None.
        momentum: (k,) the spatial momentum of the first joint that every run has [N s, N m s], of a machine that nothing pushes
            from outside: the state is then of the reduced space itself, [q; orbit; shape_momentum], with a chart of the
            coadjoint orbit, see `simulate.orbit`. None for a state that takes any.
        along: {name of a velocity: field}, field(k) the velocities (nv,) sigma(q) of a motion whose momentum <p, sigma> is a
            constant of motion: in the state it stands in the place of that velocity's, and is kept. [chhabra14 thm. 4.2.17]
            Its unit is that of sigma, whose entry for that velocity is nowhere zero.
    Raises ModelError: no such mechanism; nothing is a symmetry, and what stands in the way; constraints on velocities that fix
        no group, or a group that is no symmetry of them; a field that they do not allow, or whose momentum is not kept, and by
        what.
    """
    if momentum is not None:
        if by is not None or along is not None:
            raise ModelError(
                "reduce: momentum is of a machine that nothing constrains, in a chart; by= is of one that has constraints, "
                "along= of a state that takes any momentum"
            )
        return reduced_space(as_mechanism(m), momentum)
    fields = {} if along is None else along
    if not isinstance(fields, Mapping) or not all(isinstance(n, str) and callable(f) for n, f in fields.items()):
        raise ModelError(f"along: {{name of a velocity: function of Kinematics}} is needed, got {brief(along)}")
    return _reduced(as_mechanism(m), as_group(by), tuple(fields.items()))


Fields = tuple[tuple[str, Callable[[Kinematics], Any]], ...]
"""Name of a velocity, and the field whose momentum stands in the place of that velocity's."""


def _reduced(m: Mechanism, by: tuple[str, ...] | None, fields: Fields = ()) -> System:
    found = plan(m, by)
    found = found._replace(kept=(*found.kept, *_constants(m, found, fields)))
    names = [m.v_names[i] for i in found.y]
    units = [f"{force_unit(m.v_units[i])} s" for i in found.y]

    first = indices(m, (first_joint(m).name,))

    def lift(T: Terms) -> ca.SX | None:
        return _lift(T, found, fields) if found.group or fields else None

    def turned(q: ca.SX, x: ca.SX, how: Callable[[Joint, ca.SX, ca.SX], ca.SX]) -> ca.SX:
        """x (ny, 1) with its spatial entries carried by how(joint, q of it, they)."""
        x = ca.SX(x)
        for name in found.spatial:
            own = [found.y.index(i) for i in indices(m, (name,))]
            x[own, 0] = how(m.joint(name), q[m.q_slices[name], 0], x[own, 0])
        return ca.densify(x)

    def at(q: ca.SX, t: ca.SX) -> Terms:
        return Terms(m, q, ca.SX(m.nv, 1), ca.SX(m.nu, 1), t)

    def show(x: ca.SX, t: ca.SX) -> tuple[ca.SX, ca.SX]:
        q = x[: m.nq, 0]
        T, pi = at(q, t), turned(q, x[m.nq :, 0], to_body)
        X = lift(T)
        return q, moving(T, pi).v if X is None else X @ solve_symmetric(X.T @ T.M @ X, pi)

    def enter(T: Terms) -> ca.SX:
        X, p = lift(T), momenta(T)
        return ca.vertcat(T.q, turned(T.q, p if X is None else X.T @ p, to_space))

    def rated(T: Terms, motion: Motion, x: ca.SX) -> ca.SX:
        X, k = lift(T), T.kinematics
        pushed = weight(k) + T.generalised_input
        if found.closed:
            # What closures between bodies push back leaves the first joint alone; what wheels do is in X^T times all of it.
            still = [] if found.group else first
            pushed += ca.vertcat(*[0 if i in still else motion.reaction[i] for i in range(m.nv)])
        if X is None:
            forces, own = pushed, transport(T, moving(T, turned(T.q, x[m.nq :, 0], to_body)).h)
        else:
            forces, own = X.T @ pushed, carried(T, X)
        own[[i for i, entry in enumerate(found.y) if entry in found.kept], 0] = 0
        return ca.vertcat(k.q_dot, turned(T.q, forces + own, to_space))

    base = found.spatial[0] if found.spatial and not found.group else None

    def signals(T: Terms, motion: Motion, x: ca.SX) -> dict[str, ca.SX]:
        if base is None:
            return {}
        own = indices(m, (base,))
        of_bodies = in_first_joint(T, base)
        rest = others(m, own)
        p, said = momenta(T), {"momentum_drift": of_bodies - x[m.nq :, 0][own, 0]}
        return said | ({"shape_momentum": p[rest] - blocks(T, base).A.T @ p[own]} if rest else {})

    system = System(
        m,
        "[q; reduced momentum]",
        (StatePart("q", m.q_names, m.q_units), StatePart("momentum", tuple(names), tuple(units))),
        enter,
        show,
        rated,
        project=lambda x, t: ca.vertcat(normalise(m, x[: m.nq, 0]), x[m.nq :, 0]),
        signals=signals,
        named=_named(m, base, dict(zip(found.y, units, strict=True))),
        holds=bool(found.group) and not found.closed,
        about=_about(m, found, fields),
    )
    return made(system, f"[q; reduced momentum] {found} {_said(m, fields)}", lambda: f"{digest(m)} {_said(m, fields)}")


def _named(m: Mechanism, base: str | None, units: Mapping[int, str]) -> tuple[StatePart, ...]:
    """Names and units of what is said of a spatial first joint, and of the joints beside it."""
    own = indices(m, (base,)) if base else []
    parts = {"momentum_drift": own, "shape_momentum": others(m, own) if own else []}
    return tuple(
        StatePart(name, tuple(m.v_names[i] for i in at), tuple(units[i] for i in at)) for name, at in parts.items() if at
    )


def _about(m: Mechanism, found: Plan, fields: Fields) -> tuple[str, ...]:
    """What the plan is, in words."""
    first, names = first_joint(m), m.v_names
    out = []
    if found.group:
        fixed = shown.listed([j.name for j in m.joints if set(indices(m, (j.name,))) & set(found.group)])
        out.append(f"the constraints fix the velocities of {fixed} by the others: {_listed(names, found.y)}")
    for name in found.spatial:
        out.append(f"momenta of joint {name!r} are spatial, about the frame that it stands in")
    for name, _ in fields:
        out.append(f"the momentum of the field along {name!r} stands in the place of its own")
    out.append(f"kept while no force acts along them: {_listed(names, found.kept)}")
    changing = [i for i in found.y if i not in found.kept]
    out.append(f"changed by the motion itself: {_listed(names, changing)}")
    if not found.group and first.distribution is None:
        for motion, causes in symmetry(m).broken:
            if motion.joint == first.name:
                out.append(f"no symmetry by {motion.said}: {', '.join(causes)}")
    if found.closed:
        closures = shown.listed([c.name for c in m.constraints if isinstance(c, Closure)])
        out.append(f"closures {closures} push back; what they do to momenta adds up to nothing")
    return tuple(out)


def _listed(names: Sequence[str], entries: Sequence[int]) -> str:
    return ", ".join(shown.listed([names[i]]) for i in sorted(entries)) or "none"


# -- fields of one's own -------------------------------------------------------------------------------------------------


def _field(name: str, f: Callable[[Kinematics], Any], k: Kinematics) -> ca.SX:
    """(nv, 1) of a caller's field. Raises ModelError: it is no column of that size, or of q alone."""
    what, x = f"along {name!r}", ask_column(f, f"along {name!r}", k)
    if x.numel() != k.mechanism.nv:
        raise ModelError(f"{what}: a field of {k.mechanism.nv} velocities is needed, in the order of v_names, got {x.numel()}")
    return x


def _lift(T: Terms, found: Plan, fields: Fields) -> ca.SX:
    """X (nv, ny), v = X y, with the fields of the caller's in their places."""
    X = horizontal_lift(T, found.group) if found.group else ca.SX.eye(T.mechanism.nv)
    for name, f in fields:
        X[:, found.y.index(T.mechanism.v_names.index(name))] = _field(name, f, T.kinematics)
    return X


def _said(m: Mechanism, fields: Fields) -> str:
    k = symbols(m).kinematics
    return " ".join(f"{name} {of_function(f, f'along {name!r}', k)}" for name, f in fields)


def _constants(m: Mechanism, found: Plan, fields: Fields) -> tuple[int, ...]:
    """The velocities in whose places fields stand. Raises ModelError: a field is none, or its momentum is not kept."""
    if not fields:
        return ()
    free = [i for i in found.y if i not in indices(m, found.spatial)]
    for name, _ in fields:
        if name not in m.v_names:
            raise ModelError(f"along: {m.name!r} has no velocity {brief(name)}: {nearest(name, m.v_names)}")
        entry = m.v_names.index(name)
        if entry not in free:
            raise ModelError(
                f"along {name!r}: that momentum is none of the free ones of {m.name!r}; take one of "
                f"{', '.join(m.v_names[i] for i in free)}"
            )
    entries = tuple(m.v_names.index(name) for name, _ in fields)
    T = symbols(m)
    X, p, rows = _lift(T, found, fields), momenta(T), ca.densify(T.A)
    own = X[:, [found.y.index(i) for i in entries]]
    if ca.depends_on(own, ca.vertcat(T.v, T.t)):
        raise ModelError("along: a field depends on velocities or time; it must be a function of q alone")
    forces = {"gravity": weight(T.kinematics)} | named_forces(T.kinematics)
    turning = carried(T, X)[[found.y.index(i) for i in entries], 0]
    said = [turning, *[own.T @ F for F in forces.values()], own, rows @ own, rows, *forces.values()]
    f = ca.Function("along", [T.q, T.v, T.t, m.p_symbols], [*map(ca.densify, said), ca.norm_2(p)])
    random, n = np.random.default_rng(43), len(forces)
    for _ in range(STATES):
        q, v, t, at = somewhere(m, random)
        if rows.numel():
            A = np.array(f(q, v, t, at)[n + 3])
            v -= np.linalg.pinv(A) @ (A @ v)
        x = [np.array(y) for y in f(q, v, t, at)]
        fields_at, across = x[n + 1], x[n + 2]
        acting = [float(x[-1].item() * np.linalg.norm(v)), *[float(np.linalg.norm(F)) for F in x[n + 4 : -1]]]
        for i, (name, entry) in enumerate(zip(dict(fields), entries, strict=True)):
            size = np.linalg.norm(fields_at[:, i])
            if across.size and np.abs(across[:, i]).max() > NOTHING * (1 + size):
                raise ModelError(f"along {name!r}: the constraints of {m.name!r} do not allow that motion")
            if not abs(fields_at[entry, i]) > NOTHING * size:
                raise ModelError(f"along {name!r}: the field does not move {name!r}; give it to a velocity that it moves")
            causes = ["the inertia of what moves", *forces]
            by = [c for c, y, a in zip(causes, x, acting, strict=False) if np.abs(y[i]).max() > NOTHING * size * (a or 1.0)]
            if by:
                raise ModelError(
                    f"along {name!r}: the momentum of that motion is no constant of {m.name!r}: {', '.join(by)} "
                    "changes it; leave it out, the state then holds what its parts become"
                )
    return entries
