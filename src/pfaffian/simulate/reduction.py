"""Reduction: a mechanism in the state that its symmetries and constraints leave: q, and the momenta, conserved or not.

One equation covers all cases. Velocities that the constraints allow are v = X(q) y, the momenta of y are pi = X^T p, and

    pi_dot = X^T p_dot + X_dot^T p,        p = M v,   y = (X^T M X)^-1 pi,

where reactions occur in neither term. X is 1 without constraints: reduction by momentum [chhabra14 chapter 3]. With them it
is the horizontal lift of Chaplygin's reduction [chhabra14 section 4.3], whose curvature comes from X_dot. Momenta of a joint
that is a group of symmetries are carried as the spatial ones, mu = Ad_g^-T pi_g, which forces alone change; those of the other
symmetries are changed by forces alone as they are. So conserved momenta are conserved to the last bit, at any mu, without a
chart of the group; shape and momenta do not depend on the pose, which is integrated beside them by q_dot = K v.

Under a first joint that slides everything is seen from a frame that moves with the mass centre and does not turn: there the
angular momentum is the same about all points, and nothing grows with the distance or the speed of the machine.

Where the constraints fix no group in every shape, the columns of X are directions across their rows that turn with the shape
(terms/directions.py): the momentum equation of systems with nonholonomic momentum [chhabra14 prop. 4.2.15].

A column of X may be any field sigma(q) that the constraints allow: pi = <p, sigma> is then its momentum. If that is a constant
of motion, a horizontal symmetry that no group of positions has, it is conserved like the others [chhabra14 prop. 4.2.15].
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from pfaffian.dynamics.motion import Motion
from pfaffian.errors import ModelError, brief, nearest
from pfaffian.evaluate.directions import other_places, planned, states
from pfaffian.evaluate.reduction_plan import (
    Changes,
    Plan,
    as_group,
    carrier,
    changes_of,
    changing,
    conserved_motions,
    further,
    other_values,
    place_dependence,
    somewhere,
)
from pfaffian.evaluate.symmetry import NOTHING, STATES, symmetry
from pfaffian.maths.linear import solve_symmetric
from pfaffian.maths.subgroups import name_of
from pfaffian.model import reprs
from pfaffian.model.caller import ask_column
from pfaffian.model.constraint import Closure, Nonholonomic
from pfaffian.model.joint import Joint
from pfaffian.model.mechanism import Mechanism, as_mechanism, force_unit
from pfaffian.simulate.constants import constants_beside
from pfaffian.simulate.held_momenta import holding
from pfaffian.simulate.one_momentum import at_momentum, checked_momentum
from pfaffian.simulate.orbit import reduced_space
from pfaffian.simulate.system import StatePart, System, made
from pfaffian.simulate.variables import normalise
from pfaffian.terms.common_motion import CommonMotion, carried_together
from pfaffian.terms.digest import digest, of_function
from pfaffian.terms.directions import Directions, directions, labels, left_by
from pfaffian.terms.kinematics import Kinematics
from pfaffian.terms.momentum import Moving, changes, momenta, moving, transport, weight
from pfaffian.terms.reduction import (
    Translation,
    about_mass_centre,
    first_joint,
    in_first_joint,
    indices,
    others,
    split,
    still_in,
    to_body,
    to_space,
    translation,
    translation_of_all,
    transport_along,
)
from pfaffian.terms.terms import Terms, symbols


def reduce(
    m: Mechanism, *, by: Any = None, momentum: Any = None, along: Mapping[str, Callable[[Kinematics], Any]] | None = None
) -> System:
    """The mechanism reduced by its symmetries, and by its constraints on velocities: a System that `run` takes.

    The state is [q; momentum]. Where nothing constrains velocities, `momentum` begins with that of the first joint: spatial,
    conserved while no force acts on it. [chhabra14 (3.3.35)] If the first joint slides, it is the momentum along the axes of
    that joint's frame and the angular momentum about the mass centre, which are conserved as well, and the momenta of other
    joints are those seen from there: no digits are lost however far and fast the machine goes. `momentum_map` gives the
    momentum about the frame. Where constraints act, a group is found whose velocities they determine from the others
    (Chaplygin), and `momentum` belongs to the others. Where they determine none in every shape, as those of a snakeboard, a
    roller racer or a car with a trailer, it belongs to directions that turn with the shape, called after velocities: those that
    move the body on the first joints alone, of unit length, a turn counting as a slide at the usual lever of the constraints,
    and those of the shape's velocities. [chhabra14 prop. 4.2.15] In either case the momenta of further symmetries
    (axially symmetric rotors, posts of cranes) are conserved too, to the last bit while nothing drives them.

    Several first joints, as of satellites that a spring or a closure connects, and joints in turn with nothing of mass between
    them (a translation and a ball; x, y and an angle) are taken as one that carries all by the motions that they share:
    `momentum` then has that of all bodies in the place of one joint's, by the names all.vx to all.wz. Symmetries of the first
    joint from its child's side, such as the spin of a top, have their momenta in `held_momentum`, and the attitude is put where
    these have it after each step.

    Args:
        m: open chains or trees. Closures between their bodies are kept as constraints that push back; closures to the floor are
            taken beside wheels or blades, as constraints like these.
        by: under constraints on velocities, names of the joints whose velocities they determine; found if None.
        momentum: (k,) spatial momentum of the first joint that every run has [N s, N m s], of a machine that nothing pushes
            from outside. The state is then of the reduced space itself, [q; orbit; momentum], orbit being the momentum as the
            body sees it, on its coadjoint orbit, and momentum that of the other joints. The given one is about the frame, so
            far from it few digits are left of what turns the machine, of which a run warns: place the frame near. Of several
            first joints: the momentum of all bodies as `momentum_map` gives it, and the state [q; momentum] of the others.
            None: a state that takes any momentum, wherever the machine is.
        along: {name of a velocity: field}; field(k) returns the velocities sigma(q) (nv,) of a motion whose momentum <p, sigma>
            is a constant of motion. It takes that velocity's place in the state, and is conserved. [chhabra14 thm. 4.2.17] Its
            unit is that of sigma, whose entry for that velocity is nowhere zero.
    Returns:
        A System. A result has, beside q and v: `momentum`, by name; `momentum_drift`, the momenta that q and v of the bodies
        give less the conserved ones of the state; `momentum_rate_error`, how fast the full equations would change those beyond
        the first joint's; `reduction_error`, how far that may have led away from them; `shape_momentum`, p - A^T mu_b of the
        other joints [chhabra14 (3.3.42)]; `constant`, what gravity leaves of the first joint's momentum where that is along
        none of its axes, exact however long the machine falls. A run warns where these tell that its motion departs from that
        of the full equations, and refuses parameters that break a symmetry. Printing the System tells what is conserved.
    Raises ModelError: no such mechanism; nothing is a symmetry, and what stands in the way; constraints on velocities that
    leave neither a group nor directions that are the same wherever the first joints are, or a group of `by` that they determine
    in some shapes only; a field that they do not allow, or whose momentum is not
    conserved, and by what.

    Example:
        A motor between two bodies of 3 and 1 kg does not change their momentum, here 4 N s:

        >>> import pfaffian as pf
        >>> joints = [pf.joint("base", "prismatic", "world", "base", axis=(1, 0, 0)),
        ...           pf.joint("arm", "prismatic", "base", "arm", axis=(1, 0, 0))]
        >>> bodies = [pf.body("base", mass=3.0), pf.body("arm", mass=1.0)]
        >>> m = pf.mechanism("pair", bodies, joints, actuators=[pf.actuator("motor", "arm")])
        >>> result = pf.run(pf.reduce(m), v=[1.0, 0.0], u=[2.0], duration=0.1, step=0.01, backend="numpy")
        >>> result["momentum"].sel(momentum_entry="base").values[[0, -1]]
        array([4., 4.])
    """
    if momentum is not None:
        if by is not None or along is not None:
            raise ModelError(
                "reduce: momentum= is for a machine without constraints, at one momentum; by= is for one with "
                "constraints, along= for a state that takes any momentum"
            )
        m = as_mechanism(m)
        common = carried_together(m)
        return _at_momentum(m, common, momentum) if common else reduced_space(m, momentum)
    fields = {} if along is None else along
    if not isinstance(fields, Mapping) or not all(isinstance(n, str) and callable(f) for n, f in fields.items()):
        raise ModelError(f"along: {{name of a velocity: function of Kinematics}} is needed, got {brief(along)}")
    return _reduced(as_mechanism(m), as_group(by), tuple(fields.items()))


Fields = tuple[tuple[str, Callable[[Kinematics], Any]], ...]
"""Names of velocities, each with the field whose momentum takes the place of that velocity's."""


class _Reduction(NamedTuple):
    """The data of a reduced state.

    found: the plan.   along: directions that constraints leave, where they fix no group of velocities by the others.
    fields: those of the caller.   base: what carries all, if its momentum is in the state, else None: the first joint, or
    several together.
    conserved: entries of v whose momenta are, beyond those of the base.   shared: those of them whose momentum a mere
    translation along the slides of the base changes; these are taken in the world; the others are the same there.
    """

    m: Mechanism
    found: Plan
    along: Directions | None
    fields: Fields
    base: Joint | CommonMotion | None
    conserved: tuple[int, ...]
    shared: tuple[int, ...]

    def at(self, entries: Sequence[int]) -> list[int]:
        """Positions of entries of v among the momenta of the state."""
        return [self.found.y.index(i) for i in entries]

    @property
    def group(self) -> list[int]:
        """Entries of v of the base, where its momenta stand."""
        if isinstance(self.base, CommonMotion):
            return self.base.entries(symbols(self.m).kinematics.tree)
        return indices(self.m, (self.base.name,)) if self.base else []

    @property
    def counted(self) -> list[int]:
        """Entries of v of several roots' base: those of the group, and those of its motions beside."""
        assert isinstance(self.base, CommonMotion)
        tree = symbols(self.m).kinematics.tree
        return [*self.base.entries(tree), *self.base.remaining_entries(tree)]

    @property
    def names(self) -> list[str]:
        """Of the momenta, in the order of v."""
        names = list(labels(self.m, self.along)[0])
        if isinstance(self.base, CommonMotion):
            for i, name in zip(self.counted, (*self.base.names, *self.base.remaining_names), strict=True):
                names[i] = name
        return names

    @property
    def units(self) -> list[str]:
        """Of the velocities that the momenta belong to."""
        units = list(labels(self.m, self.along)[1])
        if isinstance(self.base, CommonMotion):
            for i, twist in zip(self.counted, (*self.base.twists, *self.base.remaining), strict=True):
                units[i] = "rad/s" if any(twist[3:]) else "m/s"
        return units

    def lift(self, T: Terms) -> ca.SX | None:
        """X; None if it is 1."""
        fixed = self.along or self.found.group
        if not (fixed or self.fields or isinstance(self.base, CommonMotion)):
            return None
        X = _lift(T, self.found, fixed, self.fields)
        if isinstance(self.base, CommonMotion):
            X[:, self.at(self.counted)] = self.base.lift(T.kinematics, along_base=True)[:, self.counted]
        return X

    def by_lift(self, T: Terms, x: ca.SX) -> ca.SX:
        """X^T x."""
        X = self.lift(T)
        return x if X is None else X.T @ x

    def frame(self, k: Kinematics) -> Translation | None:
        """The frame in which momenta are seen; None for the world's."""
        if isinstance(self.base, CommonMotion):
            return translation_of_all(k, self.base)
        return translation(k, self.base) if self.base else None

    def terms(self, q: ca.SX, v: ca.SX, t: ca.SX) -> Terms:
        return Terms(self.m, q, v, ca.SX(self.m.nu, 1), t)

    def turned(self, q: ca.SX, pi: ca.SX, how: Callable[[Joint, ca.SX, ca.SX], ca.SX]) -> ca.SX:
        """pi (ny, 1) with its spatial entries transformed by how(joint, q of the joint, entries)."""
        pi = ca.SX(pi)
        for name in self.found.spatial:
            entries = self.at(indices(self.m, (name,)))
            pi[entries, 0] = how(self.m.joint(name), q[self.m.q_slices[name], 0], pi[entries, 0])
        return ca.densify(pi)


def _reduction(m: Mechanism, by: tuple[str, ...] | None, fields: Fields = ()) -> _Reduction:
    found, along = planned(m, by)
    found = found._replace(conserved=tuple(dict.fromkeys((*found.conserved, *_constants(m, found, along, fields)))))
    first = carrier(m)
    base = first if isinstance(first, CommonMotion) or first.name in found.spatial else None
    r = _Reduction(m, found, along, fields, base, further(m, found), ())
    return r._replace(shared=_shared(r))


def _at_momentum(m: Mechanism, common: CommonMotion, momentum: Any) -> System:
    """At one momentum of all that several joints carry."""
    if any(not isinstance(c, Closure) for c in m.constraints):
        raise ModelError(
            f"reduce: {m.name!r} has constraints besides closures; a machine at one momentum has none: leave momentum out"
        )
    mu = checked_momentum(m, common, momentum)
    r = _reduction(m, None)
    system = at_momentum(_state(r), common, mu)
    return made(system, f"[q; reduced momentum] at {mu} {r.found} {r.shared}", lambda: digest(m))


def _reduced(m: Mechanism, by: tuple[str, ...] | None, fields: Fields = ()) -> System:
    r = _reduction(m, by, fields)
    system = _state(r)
    if r.base:
        joints = r.base.roots[r.base.base].joints if isinstance(r.base, CommonMotion) else (r.base.name,)
        system = holding(system, partial(_turns, r), partial(_seen_inside, r), joints)
    if isinstance(r.base, Joint):
        system = constants_beside(system, symmetry(m), r.base, r.frame(symbols(m).kinematics) is not None)
    return made(
        system,
        f"[q; reduced momentum] {r.found} {r.along} {r.shared} {system.parts[2:]} {_fields_digest(m, fields)}",
        lambda: f"{digest(m)} {_fields_digest(m, fields)}",
    )


def _state(r: _Reduction) -> System:
    """The System with the state [q; momentum] alone."""
    m, found, along = r.m, r.found, r.along
    names = [r.names[i] for i in found.y]
    units = [f"{force_unit(r.units[i])} s" for i in found.y]
    return System(
        m,
        "[q; reduced momentum]",
        (StatePart("q", m.q_names, m.q_units), StatePart("momentum", tuple(names), tuple(units))),
        enter=partial(_enter, r),
        show=partial(_show, r),
        rate=partial(_rate, r),
        project=lambda x, t: ca.vertcat(normalise(m, x[: m.nq, 0]), x[m.nq :, 0]),
        signals=partial(_signals, r),
        named=_named(r),
        limit=(ENDS, partial(_inside_directions, r)) if along else None,
        holds=bool(found.group) and all(isinstance(c, Nonholonomic) for c in m.constraints),
        about=_about(r),
        check=partial(_check_values, r),
        inertia=partial(_inertia, r),
        uncorrected=tuple(m.nq + i for i in r.at(r.group)),
    )


ENDS = (
    "rows of constraints that were independent are about to depend on each other here, and the directions along which momenta "
    "are counted end; run the mechanism as it is"
)


def _inside_directions(r: _Reduction, x: ca.SX, t: ca.SX) -> ca.SX:
    """(1, 1) positive while the directions are smooth."""
    assert r.along is not None
    return ca.mmin(directions(r.terms(x[: r.m.nq, 0], ca.SX(r.m.nv, 1), t), r.along).inside)


def _shared(r: _Reduction) -> tuple[int, ...]:
    """See `_Reduction`: decided at random states, relative to the sizes there."""
    T = symbols(r.m)
    frame = r.frame(T.kinematics)
    if frame is None or not r.conserved:
        return ()
    X, rows = r.lift(T), r.at(r.conserved)
    X = ca.SX.eye(r.m.nv) if X is None else X
    moved = ca.horzcat(*[X[:, rows].T @ weight(T.kinematics, axis) for axis in ca.horzsplit(frame.axes)])
    inertia = ca.sum1(X[:, rows] * (T.M @ X[:, rows])).T
    f = ca.Function("shared", [T.q, T.v, T.t, r.m.p_symbols], [ca.densify(moved), inertia, frame.mass])
    random = np.random.default_rng(53)
    at = [[np.array(x) for x in f(*somewhere(r.m, random))] for _ in range(STATES)]
    found = np.any([np.abs(x) > NOTHING * np.sqrt(mass * inertia) for x, inertia, mass in at], axis=(0, 2))
    return tuple(i for i, some in zip(r.conserved, found, strict=True) if some)


def _inside(r: _Reduction, q: ca.SX, pi: ca.SX, t: ca.SX) -> Moving:
    """v and the momenta of the links at a state, seen from its frame."""
    T, pi = r.terms(q, ca.SX(r.m.nv, 1), t), ca.SX(pi)
    frame, X, shared = r.frame(T.kinematics), r.lift(T), r.at(r.shared)
    V = ca.SX(3, 1)
    if frame:
        V = frame.axes @ pi[frame.entries, 0] / frame.mass
        pi[frame.entries, 0] = 0
    pi = r.turned(q, pi, to_body)
    if shared:
        pi[shared, 0] -= r.by_lift(T, weight(T.kinematics, V))[shared, 0]
    return moving(T, pi) if X is None else Moving(X @ solve_symmetric(X.T @ T.M @ X, pi), [])


def _seen_inside(r: _Reduction, x: ca.SX, t: ca.SX) -> Terms:
    """The machine at a state, as seen from its frame."""
    q = x[: r.m.nq, 0]
    return r.terms(q, ca.SX(_inside(r, q, x[r.m.nq :, 0], t).v), t)


def _turns(r: _Reduction, T: Terms) -> ca.SX:
    """(nv, k) velocities that turn all that moves about a point of the base."""
    if isinstance(r.base, CommonMotion):
        return r.base.fields(T.kinematics, along_base=True)[:, r.base.slides :]
    turning = [i for i in r.group if r.m.v_units[i] == "rad/s"]
    return ca.SX.eye(r.m.nv)[:, turning]


def _show(r: _Reduction, x: ca.SX, t: ca.SX) -> tuple[ca.SX, ca.SX]:
    q, pi = x[: r.m.nq, 0], x[r.m.nq :, 0]
    v = ca.SX(_inside(r, q, pi, t).v)
    frame = r.frame(Kinematics(r.m, q, v, t))
    if frame:
        v += frame.fields @ pi[frame.entries, 0] / frame.mass
    return q, v


def _still(r: _Reduction, T: Terms) -> Terms:
    """The Terms as seen from the frame."""
    return still_in(T, r.frame(T.kinematics))


def _enter(r: _Reduction, T: Terms) -> ca.SX:
    frame, p, shared = r.frame(T.kinematics), momenta(T), r.at(r.shared)
    pi = ca.SX(r.by_lift(T, momenta(_still(r, T))))
    pi[shared, 0] = r.by_lift(T, p)[shared, 0]
    if frame is None:
        return ca.vertcat(T.q, r.turned(T.q, pi, to_space))
    pi[frame.entries, 0] = 0
    pi = r.turned(T.q, pi, to_space)
    pi[frame.entries, 0] = frame.along(p)
    return ca.vertcat(T.q, pi)


def _rate(r: _Reduction, T: Terms, motion: Motion, x: ca.SX) -> ca.SX:
    k, pushed, frame = T.kinematics, T.generalised_input, r.frame(T.kinematics)
    intrinsic = ca.SX(_carried(r, T, x))
    intrinsic[r.at(r.found.conserved), 0] = 0
    if r.found.closed:
        # Reactions of closures between bodies do no work along what carries all; those of wheels vanish in X^T.
        carrying = [] if r.found.group else r.group or indices(r.m, (first_joint(r.m).name,))
        reaction = ca.SX(r.by_lift(T, motion.reaction))
        reaction[r.at(carrying), 0] = 0
        intrinsic += reaction
    if frame is None:
        return ca.vertcat(k.q_dot, r.turned(T.q, r.by_lift(T, pushed + weight(k)) + intrinsic, to_space))
    push = frame.along(pushed)
    forces = ca.SX(r.by_lift(T, pushed + weight(k, frame.effective_gravity(r.m.gravity, push))))
    conserved, shared = r.at(r.conserved), r.at(r.shared)
    forces[conserved, 0] = r.by_lift(T, pushed)[conserved, 0]
    forces[shared, 0] += r.by_lift(T, weight(k))[shared, 0]
    forces[frame.entries, 0] = 0
    pi_dot = r.turned(T.q, forces + intrinsic, to_space)
    pi_dot[frame.entries, 0] = frame.rate(r.m.gravity, push)
    return ca.vertcat(k.q_dot, pi_dot)


def _carried(r: _Reduction, T: Terms, x: ca.SX) -> ca.SX:
    """(ny, 1) part of the momenta's rate that the motion itself causes."""
    X, frame = r.lift(T), r.frame(T.kinematics)
    if X is not None and frame is None:
        return transport_along(T, X)
    seen = _inside(r, T.q, x[r.m.nq :, 0], T.t)
    there = r.terms(T.q, seen.v, T.t) if frame else T
    return transport(there, seen.h) if X is None else transport_along(there, X)


# -- signals and checks of a reduced run ---------------------------------------------------------------------------------


def _motions(r: _Reduction, T: Terms) -> ca.SX:
    """(nv, n) motions whose momenta are conserved beyond those of the base, in the order of `_Reduction.conserved`."""
    X = r.lift(T)
    return conserved_motions(T, ca.SX.eye(r.m.nv) if X is None else X, r.found)


def _signals(r: _Reduction, T: Terms, motion: Motion, x: ca.SX) -> dict[str, ca.SX]:
    pi, still, Y = x[r.m.nq :, 0], _still(r, T), _motions(r, T)
    drift, signals = [Y.T @ momenta(T) - pi[r.at(r.conserved), 0]], {}
    if r.base:
        rest, p, X = others(r.m, r.group), r.by_lift(T, momenta(still)), r.lift(T)
        drift = [_of_bodies(r, T) - pi[r.at(r.group), 0], *drift]
        A = split(T.M if X is None else X.T @ T.M @ X, r.group).A
        signals = {"shape_momentum": p[rest] - A.T @ p[r.group]} if rest else {}
    if r.conserved:
        shared = [i for i, entry in enumerate(r.conserved) if entry in r.shared]
        error = changes(still, Y)["inertia"]
        error[shared, 0] = changes(T, Y)["inertia"][shared, 0]
        signals["momentum_rate_error"] = error
    return ({"momentum_drift": ca.vertcat(*drift)} if r.base or r.conserved else {}) | signals


def _of_bodies(r: _Reduction, T: Terms) -> ca.SX:
    """(k, 1) momentum of the base that the bodies have, by q and v."""
    frame = r.frame(T.kinematics)
    if isinstance(r.base, CommonMotion):
        turning = r.base.fields(T.kinematics, along_base=True)[:, r.base.slides :].T @ momenta(_still(r, T))
        return ca.vertcat(frame.along(momenta(T)) if frame else ca.SX(0, 1), turning)
    assert r.base is not None
    return about_mass_centre(T, r.base, frame) if frame else in_first_joint(T, r.base.name)


def _check_values(r: _Reduction, p: np.ndarray) -> None:
    """Raise ModelError where parameters (runs, np) break what the plan found near their defaults."""
    m, group = r.m, set(r.found.group)
    names = [j.name for j in m.joints if group & set(indices(m, (j.name,)))] or ([] if r.base else [first_joint(m).name])
    if r.along:
        names = list(r.along.base)
    for words, at, elsewhere in other_places(m, p, names) if r.along else other_values(m, p, names):
        cause = place_dependence(m, r.along or r.found.group, at, elsewhere) if names else None
        if cause:
            raise ModelError(
                f"{words}{cause} of {m.name!r} depends on where {reprs.listed(names)} is, which near the defaults it does not; "
                "run the mechanism as it is"
            )
        lost = [i for i, some in zip(r.conserved, changing(_watching(r), at)[:, 0], strict=True) if some] if r.conserved else []
        if lost:
            raise ModelError(
                f"{words}the momentum of {m.v_names[lost[0]]!r} of {m.name!r} is not conserved, which near the defaults it is; "
                "reduce a mechanism that has these as its defaults, or run it as it is"
            )


@lru_cache(maxsize=64)
def _watching(r: _Reduction) -> Changes:
    T = symbols(r.m)
    return changes_of(T, _motions(r, T))


def _inertia(r: _Reduction, T: Terms) -> ca.SX:
    """The inertia along each entry of `momentum_drift`."""
    own = r.base.fields(T.kinematics, along_base=True) if isinstance(r.base, CommonMotion) else ca.SX.eye(r.m.nv)[:, r.group]
    Y = ca.horzcat(own, _motions(r, T))
    return ca.sum1(Y * (T.M @ Y)).T


def _named(r: _Reduction) -> tuple[StatePart, ...]:
    """Names and units of the signals beside the state."""
    of = {
        "momentum_drift": ([*r.group, *r.conserved], " s"),
        "momentum_rate_error": (r.conserved, ""),
        "shape_momentum": (others(r.m, r.group) if r.base else [], " s"),
    }
    names, units = r.names, r.units
    return tuple(
        StatePart(name, tuple(names[i] for i in at), tuple(f"{force_unit(units[i])}{seconds}" for i in at))
        for name, (at, seconds) in of.items()
        if at
    )


def _about(r: _Reduction) -> tuple[str, ...]:
    """The plan in words, line by line."""
    m, found = r.m, r.found
    first, names = carrier(m), r.names
    out = list[str]()
    if isinstance(first, CommonMotion):
        out.append(
            f"joints {reprs.listed(first.joints)} are taken as one that carries all, {name_of(first.basis)} in the world; "
            f"its momentum is that of all bodies{', about the mass centre' if first.slides else ''}"
        )
    if r.along:
        out.append(
            f"the constraints leave {len(found.y)} of {m.nv} velocities, directions that turn with the shape, called after "
            f"{_listed(names, found.y)}"
        )
    elif found.group:
        fixed = reprs.listed([j.name for j in m.joints if set(indices(m, (j.name,))) & set(found.group)])
        out.append(f"the constraints fix the velocities of {fixed} by the others: {_listed(names, found.y)}")
    for name in found.spatial:
        out.append(f"momenta of joint {name!r} are spatial, {_seen(r, name)}")
    for name, _ in r.fields:
        out.append(f"the momentum of the field along {name!r} stands in the place of its own")
    out.append(f"kept while no force acts along them: {_listed(names, found.conserved)}")
    changing = [i for i in found.y if i not in found.conserved]
    out.append(f"changed by the motion itself: {_listed(names, changing)}")
    if not found.group and (isinstance(first, CommonMotion) or first.distribution is None):
        of_all = symmetry(m)
        for motion, causes in of_all.broken:
            if motion.joint == of_all.joint:
                out.append(f"no symmetry by {motion.label}: {', '.join(causes)}")
    if found.closed:
        closures = reprs.listed([c.name for c in m.constraints if isinstance(c, Closure)])
        out.append(f"closures {closures} push back; what they do to momenta adds up to nothing")
    return tuple(out)


def _seen(r: _Reduction, joint: str) -> str:
    own = isinstance(r.base, Joint) and joint == r.base.name
    frame = r.frame(symbols(r.m).kinematics) if own else None
    return "about the mass centre, from which those of other joints are seen" if frame else "about the frame that it stands in"


def _listed(names: Sequence[str], entries: Sequence[int]) -> str:
    return ", ".join(reprs.listed([names[i]]) for i in sorted(entries)) or "none"


# -- fields of the caller ------------------------------------------------------------------------------------------------


def _field(name: str, f: Callable[[Kinematics], Any], k: Kinematics) -> ca.SX:
    """(nv, 1) the caller's field. Raises ModelError: it is no column of that size."""
    what, x = f"along {name!r}", ask_column(f, f"along {name!r}", k)
    if x.numel() != k.mechanism.nv:
        raise ModelError(f"{what}: a field of {k.mechanism.nv} velocities is needed, in the order of v_names, got {x.numel()}")
    return x


def _lift(T: Terms, found: Plan, fixed: tuple[int, ...] | Directions, fields: Fields) -> ca.SX:
    """X (nv, ny), v = X y, with the caller's fields in their places."""
    X, names = left_by(T, fixed), labels(T.mechanism, fixed if isinstance(fixed, Directions) else None)[0]
    for name, f in fields:
        X[:, found.y.index(names.index(name))] = _field(name, f, T.kinematics)
    return X


def _fields_digest(m: Mechanism, fields: Fields) -> str:
    k = symbols(m).kinematics
    return " ".join(f"{name} {of_function(f, f'along {name!r}', k)}" for name, f in fields)


def _constants(m: Mechanism, found: Plan, along: Directions | None, fields: Fields) -> tuple[int, ...]:
    """The velocities whose places fields take. Raises ModelError: a field is not valid, or its momentum is not conserved."""
    if not fields:
        return ()
    free = [i for i in found.y if i not in indices(m, found.spatial)]
    v_names = labels(m, along)[0]
    for name, _ in fields:
        if name not in v_names:
            raise ModelError(f"along: {m.name!r} has no velocity {brief(name)}: {nearest(name, v_names)}")
        entry = v_names.index(name)
        if entry not in free:
            raise ModelError(
                f"along {name!r}: that momentum is not among the free ones of {m.name!r}; take one of "
                f"{', '.join(v_names[i] for i in free)}"
            )
    entries = tuple(v_names.index(name) for name, _ in fields)
    T, fixed, at = symbols(m), along or found.group, [found.y.index(i) for i in entries]
    Y, X, rows = _lift(T, found, fixed, fields)[:, at], left_by(T, fixed), ca.densify(T.A)
    if ca.depends_on(Y, ca.vertcat(T.v, T.t)):
        raise ModelError("along: a field depends on velocities or time; it must be a function of q alone")
    f = ca.Function("along", [T.q, T.v, T.t, m.p_symbols], [ca.densify(x) for x in (Y, X, rows @ Y)])
    at_states = states(m, along, np.random.default_rng(43))
    for state in at_states:
        fields_at, left, across = (np.array(x) for x in f(*state))
        parts = np.linalg.pinv(left, rcond=NOTHING) @ fields_at
        for i, (name, place) in enumerate(zip(dict(fields), at, strict=True)):
            if across.size and np.abs(across[:, i]).max() > NOTHING * (1 + np.linalg.norm(fields_at[:, i])):
                raise ModelError(f"along {name!r}: the constraints of {m.name!r} do not allow that motion")
            if not abs(parts[place, i]) > NOTHING * np.linalg.norm(parts[:, i]):
                raise ModelError(f"along {name!r}: the field does not move {name!r}; give it to a velocity that it moves")
    found_changes = changes_of(T, Y)
    for name, changed in zip(dict(fields), changing(found_changes, at_states), strict=True):
        by = [cause for cause, some in zip(found_changes.causes, changed, strict=True) if some]
        if by:
            raise ModelError(
                f"along {name!r}: the momentum of that motion is no constant of {m.name!r}: {', '.join(by)} "
                "changes it; leave it out: the state then holds the momenta of its parts"
            )
    return entries
