"""Checks of the parts of a mechanism: names, tree, references, numbers, masses. An error names the element and the way out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from functools import cache
from typing import Any

import casadi as ca
import numpy as np

from pfaffian.errors import ModelError, brief, nearest
from pfaffian.maths.inertia import are_physical, is_physical, pseudos
from pfaffian.model.body import WORLD, Body
from pfaffian.model.circle import circle
from pfaffian.model.compound import Compound, flat
from pfaffian.model.constraint import Closure, Constraint, Holonomic, Nonholonomic, Servo
from pfaffian.model.coordinates import Coordinates
from pfaffian.model.data import follows_from_fields, numbers_of
from pfaffian.model.force import Actuator, Force, Motor, Spring, Thruster, Transmission, Wrench, joints_of
from pfaffian.model.joint import Joint, JointKind, Mimic
from pfaffian.model.load_loss import CARRIERS, LoadLoss
from pfaffian.model.number import Parameter
from pfaffian.model.path import Path
from pfaffian.model.path_force import PathSpring, Winch
from pfaffian.model.pose import Pose
from pfaffian.model.shape import Shape

Values = Callable[[Sequence[ca.SX]], list[np.ndarray]]
"""Function that gives the values of numbers at the parameters' defaults."""


LabelledNumber = tuple[str, str, str, ca.SX]
"""A number of the model, after the noun, the name and the field of the element to which it belongs."""


def numbers(gravity: ca.SX, parts: Mapping[str, Iterable[Any]]) -> Iterator[LabelledNumber]:
    """Every number of the model.   parts: noun -> the elements of this kind."""
    yield "", "", "gravity", gravity
    for what, items in parts.items():
        for item in items:
            for field in _field_names(item.__class__):
                value = getattr(item, field)
                if value.__class__ not in _WITHOUT:
                    for x in _numbers_in(value):
                        yield what, item.name, field, x


def _label(number: LabelledNumber) -> str:
    """The element and the field of a number, for a message."""
    what, name, field, _ = number
    return f"{what} {name!r}: {field}" if what else field


@cache
def _field_names(kind: type) -> tuple[str, ...]:
    """The names of the fields of a class."""
    return tuple(field.name for field in fields(kind))


_WITHOUT = (str, float, type(None), JointKind)
"""Classes of values that contain no numbers of the model: most values."""


def _numbers_in(value: Any) -> tuple[ca.SX, ...]:
    """The numbers that the value of one field contains."""
    if isinstance(value, ca.SX):
        return (value,)
    if isinstance(value, Pose):
        return value.R, value.p
    if isinstance(value, Mimic):
        return value.ratios, value.offset
    if isinstance(value, Path):
        return value.numbers
    if value and isinstance(value, tuple) and isinstance(value[0], Shape):
        return tuple(x for s in value for x in (s.size, *_numbers_in(s.placement)))
    return numbers_of(value) if callable(value) and follows_from_fields(value) else ()


BodyMoments = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Masses (n,), mass centres (n, 3) and inertias (n, 3, 3) of n bodies, in numbers."""


def moments_of(bodies: Sequence[Body], values: Values) -> BodyMoments:
    """The masses, mass centres and inertias of the bodies."""
    n = len(bodies)
    mass, com, I = values([ca.veccat(*(getattr(b, x) for b in bodies)) for x in ("mass", "com", "inertia")])
    return mass.reshape(n), com.reshape(n, 3), I.reshape(n, 3, 3).transpose(0, 2, 1)


def impossible_bodies(bodies: Sequence[Body], found: BodyMoments) -> dict[str, str]:
    """Names of the bodies whose mass and inertia are physically impossible -> the reason.   found: their moments."""
    P = pseudos(*found)
    return {bodies[i].name: is_physical(P[i]) or "" for i in np.flatnonzero(~are_physical(P)).tolist()}


Lists = Mapping[str, Sequence[Any]]
"""Name of a list of a mechanism, such as "forces" -> its items."""


def check_kinds(lists: Lists) -> None:
    """Raise ModelError for an item in the wrong list, such as a force among the joints."""
    kinds = (
        ("bodies", Body, "body(...)"),
        ("joints", Joint, "joint(...) or edge(...)"),
        ("coordinates", Coordinates, "coordinates(...)"),
        (
            "constraints",
            Constraint,
            "closure(...), coincide(...), holonomic(...), nonholonomic(...), acceleration_constraint(...), servo(...) or "
            "pf.rolling.disk(...)",
        ),
        (
            "forces",
            Force,
            "spring(...), wrench(...), potential(...), dissipation(...), kinetic_energy(...), generalised_force(...) or "
            "pf.forces.contact(...)",
        ),
        ("actuators", Motor, "actuator(...), thruster(...), transmission(...) or winch(...)"),
        ("parameters", Parameter, "Parameter(...)"),
    )
    for what, kind, maker in kinds:
        for item in lists[what]:
            if not _fits(item, kind, what):
                home = next((name for name, other, _ in kinds if _fits(item, other, name)), None)
                belongs = f"; this item belongs in {home}=[...]" if home else ""
                if isinstance(item, (tuple, list)) and all(_fits(x, kind, what) for x in item):
                    belongs = f"; join the lists, {what}=[..., *more]"
                raise ModelError(f"{what}: {brief(item)} does not belong here; make each item by {maker}{belongs}")


def _fits(item: Any, kind: Any, what: str) -> bool:
    """Whether an item belongs in the list `what`, whose items are of this kind or, for forces and constraints, compounds."""
    if isinstance(item, Compound):
        return what in ("constraints", "forces") and all(isinstance(part, kind) for part in item.parts)
    return isinstance(item, kind)


def _check_name(name: Any, what: str) -> None:
    """Raise ModelError for a name that is not text, empty, too long or not printable."""
    if not isinstance(name, str) or not name or len(name) > 128 or not name.isprintable():
        raise ModelError(f"{what}: {name!r} is not a name; use 1 to 128 printable characters")


def check_names(name: str, lists: Lists) -> None:
    """Raise ModelError for an invalid name, or a name used twice."""
    _check_name(name, "mechanism")
    for what, items in lists.items():
        names = [item.name for item in (*items, *flat(x for x in items if isinstance(x, Compound)))]
        for n in names:
            _check_name(n, what)
        for n, count in Counter(names).items():
            if count > 1:
                raise ModelError(f"{what}: the name {n!r} is used {count} times; names must be unique")


def check_tree(bodies: Sequence[Body], joints: Sequence[Joint]) -> None:
    """Raise ModelError unless the joints form a tree from the world, parents first, that reaches every body once."""
    known, placed = {b.name for b in bodies}, {WORLD}
    for j in joints:
        for body in (j.parent, j.child):
            if body != WORLD and body not in known:
                raise ModelError(f"joint {j.name!r}: there is no body {body!r}")
        if j.child == WORLD:
            raise ModelError(f"joint {j.name!r}: the world cannot be a child; swap parent and child")
        if j.child in placed:
            raise ModelError(f"joint {j.name!r}: body {j.child!r} has a joint already; close the loop with a constraint")
        if j.parent not in placed:
            raise ModelError(f"joint {j.name!r}: its parent {j.parent!r} comes later or is in a cycle; write parents first")
        placed.add(j.child)
    for unreached in known - placed:
        raise ModelError(f"body {unreached!r} has no joint or edge that leads to it; use kind 'free' if it floats")


def check_mimics(joints: Sequence[Joint], constraints: Sequence[Constraint]) -> None:
    """Raise ModelError for a joint or closure that follows an unknown joint, one of several coordinates, or itself."""
    named = {j.name: j for j in joints}
    follows = {j.name: j.mimic.joints for j in joints if j.mimic}
    lead = [(f"joint {name!r}", n, "joint") for name, others in follows.items() for n in others]
    targets = [(c, c.target if isinstance(c, Servo) else c) for c in constraints]
    for c, target in targets:
        if isinstance(target, Closure) and target.mimic:
            if c is not target:
                raise ModelError(f"constraint {c.name!r} is held by forces and follows joints; hold a closure without mimic")
            lead += [(f"constraint {c.name!r}", n, "joint of the tree") for n in target.mimic.joints]
    for who, n, kind in lead:
        if n not in named:
            raise ModelError(f"{who} follows {n!r}, which is not a {kind}; {nearest(n, list(named))}")
        if named[n].kind.nq != 1:
            raise ModelError(f"{who} follows {n!r}, which has {named[n].kind.nq} coordinates; one is needed")
    if found := circle(follows):
        raise ModelError(f"joints follow each other in a circle: {', '.join(found)}; let one of them move freely")


def check_distributions(joints: Sequence[Joint], values: Values) -> None:
    """Raise ModelError for a distribution whose columns are linearly dependent."""
    for j in joints:
        B = None if j.distribution is None else values([j.distribution])[0]
        if B is not None and np.linalg.matrix_rank(B, tol=1e-9 * np.abs(B).max(initial=0.0)) < B.shape[1]:
            raise ModelError(f"joint {j.name!r}: distribution: the columns depend on each other; give independent ones")


def check_references(
    bodies: set[str], owners: Mapping[str, Joint | Coordinates], constraints: Iterable[Constraint], forces: Iterable[Force],
    actuators: Iterable[Motor], inputs: Sequence[str],
) -> None:  # fmt: skip
    """Raise ModelError where a constraint, force or actuator names a missing body, joint or input, or has wrong limits.

    bodies: names, the world's too.   owners: name -> joint or coordinates.   inputs: names.
    """
    for c in constraints:
        if isinstance(c, Servo) and not callable(c.directions):
            for n in c.directions:
                if n not in inputs:
                    raise ModelError(f"servo constraint {c.name!r}: there is no input {n!r}; {nearest(n, inputs)}")
        c = c.target if isinstance(c, Servo) else c
        if isinstance(c, (Holonomic, Nonholonomic)):
            law = c.phi if isinstance(c, Holonomic) else c.eta
            _check_bodies(f"constraint {c.name!r}", getattr(law, "bodies", ()), bodies)
            _check_path(f"constraint {c.name!r}", getattr(law, "path", None))
        if isinstance(c, Closure):
            _check_bodies(f"constraint {c.name!r}", (c.body_a, c.body_b), bodies)
            if c.body_a == c.body_b:
                raise ModelError(f"constraint {c.name!r}: both ends are on {c.body_a!r}; name two bodies")
            if c.carries and owners.get(c.name) is not c.joint:
                raise ModelError(f"constraint {c.name!r} carries forces, so it needs a name that no joint has")
    for f in forces:
        named = _ends(f)
        if len(set(named)) < len(named) and not isinstance(f, PathSpring):
            raise ModelError(f"force {f.name!r}: both ends are on {named[0]!r}; name two bodies")
        _check_bodies(f"force {f.name!r}", named, bodies)
        _check_path(f"force {f.name!r}", getattr(f, "path", None))
        if named == (WORLD,):
            raise ModelError(f"force {f.name!r}: it acts on the world, which nothing moves; name a body")
        for n in joints_of(f):
            if n not in owners:
                raise ModelError(f"force {f.name!r}: {_no_joint(constraints, owners, n)}")
        if isinstance(f, LoadLoss):
            _check_carrier(f, owners[f.joint])
    _check_actuators(bodies, owners, constraints, actuators)


def _check_actuators(
    bodies: set[str], owners: Mapping[str, Joint | Coordinates], constraints: Iterable[Constraint], actuators: Iterable[Motor]
) -> None:
    """Raise ModelError where an actuator names a missing body or joint, or has wrong limits."""
    for a in actuators:
        if isinstance(a, Thruster):
            _check_bodies(f"actuator {a.name!r}", (a.body,), bodies)
            continue
        if isinstance(a, Winch):
            _check_bodies(f"actuator {a.name!r}", a.path.bodies, bodies)
            _check_path(f"actuator {a.name!r}", a.path)
            for n in a.path.joints:
                if n not in owners:
                    raise ModelError(f"actuator {a.name!r}: {_no_joint(constraints, owners, n)}")
            continue
        several = isinstance(a, Transmission)
        for joint, component in a.ends:
            owner = _check_driven(constraints, owners, a, joint, component)
        if not a.limits[0] <= a.limits[1]:
            raise ModelError(f"actuator {a.name!r}: limits {a.limits} are the wrong way round")
        effort = owner.effort if isinstance(owner, Joint) and not several else np.inf
        if not (a.limits[0] <= effort and -effort <= a.limits[1]):
            raise ModelError(f"actuator {a.name!r}: limits {a.limits} lie outside its joint's effort {effort:g}")


def _no_joint(constraints: Iterable[Constraint], owners: Mapping[str, Joint | Coordinates], name: Any) -> str:
    """The message for a name that is not that of a joint, of coordinates or of a closure along which a force may act."""
    closure = next((c for c in constraints if c.name == name and isinstance(c, Closure)), None)
    if closure is not None:
        return f"{name!r} is a {closure.kind} closure, which has no coordinates; name a joint, or a closure of another kind"
    return f"there is no joint {brief(name)}; {nearest(name, list(owners))}"


def _check_driven(
    constraints: Iterable[Constraint],
    owners: Mapping[str, Joint | Coordinates],
    a: Actuator | Transmission,
    joint: str,
    component: int,
) -> Joint | Coordinates:
    """The joint or coordinates on which an actuator acts. Raises ModelError: they do not exist or lack this velocity."""
    if joint not in owners:
        raise ModelError(f"actuator {a.name!r}: {_no_joint(constraints, owners, joint)}")
    owner, name = owners[joint], a.name
    if isinstance(owner, Joint) and owner.mimic:
        followed = ", ".join(owner.mimic.joints)
        raise ModelError(f"actuator {name!r}: joint {joint!r} follows {followed}; drive that, with gear times the ratio")
    if not 0 <= component < owner.nv:
        raise ModelError(f"actuator {name!r}: joint {joint!r} has {owner.nv} velocities, none numbered {component}")
    return owner


def _check_carrier(f: LoadLoss, owner: Joint | Coordinates) -> None:
    """Raise ModelError if a joint is not of a kind that has this friction."""
    kinds = CARRIERS[f.carrier]
    if not isinstance(owner, Joint) or owner.kind.name not in kinds or owner.mimic or owner.distribution is not None:
        kind = f"a {owner.kind.name} joint" if isinstance(owner, Joint) else "no joint"
        follows = " that follows another or has a distribution" if isinstance(owner, Joint) and owner.kind.name in kinds else ""
        raise ModelError(
            f"force {f.name!r}: a {f.carrier} is in a {' or '.join(kinds)} joint of its own, and {f.joint!r} is {kind}{follows}"
            "; name another joint, or take joint_friction"
        )


def _ends(f: Force) -> tuple[str, ...]:
    """The bodies on which a force acts, as far as the force names them; empty for a function of the kinematics."""
    if isinstance(f, Spring):
        return f.body_a, f.body_b
    if isinstance(f, LoadLoss):
        return ()
    if isinstance(f, PathSpring):
        return f.path.bodies
    if isinstance(f, Wrench):
        return (f.body,) if f.by is None else (f.body, f.by)
    return getattr(f.function, "bodies", ())


def _check_bodies(what: str, names: tuple[str, ...], bodies: set[str]) -> None:
    """Raise ModelError for a name that is not among the bodies.   what: the label of the element that names them."""
    for n in names:
        if n not in bodies:
            raise ModelError(f"{what}: there is no body {n!r}; {nearest(n, sorted(bodies))}")


def _check_path(what: str, path: Any) -> None:
    """Raise ModelError for a path of constant length.   what: the label of the element that runs along it."""
    if isinstance(path, Path) and len(set(path.bodies)) == 1 and not path.drums:
        raise ModelError(
            f"{what}: its path is on {path.bodies[0]!r} alone, so that its length never changes; name a point of another body"
        )


def check_parameters(found: Iterable[LabelledNumber], parameters: Sequence[Parameter], values: Values) -> None:
    """Raise ModelError for a number with an unlisted Parameter, or one that is not finite at the default values.

    found: the `numbers` of the model.
    """
    known = {p.symbol.element_hash() for p in parameters}
    varying, seen = list[LabelledNumber](), dict[int, ca.SX]()  # id -> number, since parts share zeros and rotations
    for number in found:
        x = number[-1]
        if id(x) in seen:
            continue
        seen[id(x)] = x
        if not x.is_constant():
            if any(s.element_hash() not in known for s in ca.symvar(x)):
                raise ModelError(f"{_label(number)} uses a Parameter that is not among the mechanism's parameters=(...)")
            varying.append(number)
        elif not x.is_regular():
            raise ModelError(f"{_label(number)} is not finite at the parameters' default values")
    for number, value in zip(varying, values([number[-1] for number in varying]), strict=True):
        if not np.isfinite(value).all():
            raise ModelError(f"{_label(number)} is not finite at the parameters' default values")


def check_inertias(bodies: Sequence[Body], joints: Sequence[Joint], found: BodyMoments, values: Values) -> None:
    """Raise ModelError for a joint that moves no inertia.   found: of the bodies."""
    mass, _, I = found
    has = (mass != 0) | I.any(axis=(1, 2))
    moved = Counter({b.name: int(x) for b, x in zip(bodies, has.tolist(), strict=True)})
    for j in reversed(joints):
        moved[j.parent] += moved[j.child]
        if j.nv and not moved[j.child] and not (values([j.armature])[0] > 0).all():
            raise ModelError(f"joint {j.name!r} moves no mass at all; give {j.child!r} a mass, or make the joint fixed")
