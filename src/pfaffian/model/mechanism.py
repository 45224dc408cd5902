"""The whole machine: bodies, joints, constraints, forces, actuators, parameters; frozen and checked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from functools import cached_property
from hashlib import sha256
from typing import Any

import casadi as ca
import numpy as np

from pfaffian.errors import ModelError
from pfaffian.maths.inertia import is_physical, moments, pseudo
from pfaffian.model.body import WORLD, Body
from pfaffian.model.constraint import Closure, Constraint, Servo, Target
from pfaffian.model.force import Actuator, ExternalWrench, Force, Spring
from pfaffian.model.joint import Joint
from pfaffian.model.number import Parameter, vector
from pfaffian.model.pose import Pose


@dataclass(frozen=True, eq=False)
class Mechanism:
    """A tree of bodies, and what constrains and drives it. Made by `mechanism`.

    q: (nq,) configuration and v: (nv,) velocity run over the joints as written; u: (nu,) over the actuators as
    written, then the six components of each external wrench without a value; p: (np,) over the parameters.
    """

    name: str
    bodies: tuple[Body, ...]
    joints: tuple[Joint, ...]
    constraints: tuple[Constraint, ...]
    forces: tuple[Force, ...]
    actuators: tuple[Actuator, ...]
    gravity: ca.SX
    parameters: tuple[Parameter, ...]
    lenient: bool = False

    @cached_property
    def nq(self) -> int:
        return sum(j.nq for j in self.joints)

    @cached_property
    def nv(self) -> int:
        return sum(j.nv for j in self.joints)

    @cached_property
    def nu(self) -> int:
        return len(self.u_names)

    @cached_property
    def q_slices(self) -> dict[str, slice]:
        """Joint name -> its entries of q."""
        return _slices(self.joints, [j.nq for j in self.joints])

    @cached_property
    def v_slices(self) -> dict[str, slice]:
        """Joint name -> its entries of v."""
        return _slices(self.joints, [j.nv for j in self.joints])

    @cached_property
    def q_names(self) -> tuple[str, ...]:
        return tuple(_coordinate(j.name, n) for j in self.joints for n in j.kind.q_names)

    @cached_property
    def v_names(self) -> tuple[str, ...]:
        return tuple(_coordinate(j.name, n) for j in self.joints for n in j.kind.v_names)

    @cached_property
    def q_units(self) -> tuple[str, ...]:
        return tuple(u for j in self.joints for u in j.kind.q_units)

    @cached_property
    def v_units(self) -> tuple[str, ...]:
        return tuple(u for j in self.joints for u in j.kind.v_units)

    @cached_property
    def u_names(self) -> tuple[str, ...]:
        wrenches = (f.name for f in self.forces if isinstance(f, ExternalWrench) and f.value is None)
        return tuple(a.name for a in self.actuators) + tuple(f"{n}.{c}" for n in wrenches for c in ("fx", "fy", "fz", "nx", "ny", "nz"))

    @cached_property
    def u_units(self) -> tuple[str, ...]:
        """Of each input: N on translations, N m on rotations."""
        kinds = {j.name: j.kind for j in self.joints}
        units = ["N" if kinds[a.joint].v_units[a.component] == "m/s" else "N m" for a in self.actuators]
        return tuple(units + (["N"] * 3 + ["N m"] * 3) * ((self.nu - len(units)) // 6))

    @cached_property
    def p_defaults(self) -> np.ndarray:
        return np.array([p.default for p in self.parameters], dtype=float)

    @cached_property
    def p_symbols(self) -> ca.SX:
        return ca.vertcat(*[p.symbol for p in self.parameters]) if self.parameters else ca.SX(0, 1)

    @cached_property
    def ideal(self) -> tuple[Target, ...]:
        """The constraints that an ideal reaction holds."""
        return tuple(c for c in self.constraints if not isinstance(c, Servo))

    @cached_property
    def servos(self) -> tuple[Servo, ...]:
        """The constraints that forces along chosen directions hold."""
        return tuple(c for c in self.constraints if isinstance(c, Servo))

    def body(self, name: str) -> Body:
        return _find(self.bodies, name, "body", self.name)

    def joint(self, name: str) -> Joint:
        return _find(self.joints, name, "joint", self.name)

    def neutral(self) -> np.ndarray:
        """(nq,) configuration with every joint at its zero (quaternions at identity)."""
        q = np.zeros(self.nq)
        for name, unit in zip(self.q_names, range(self.nq), strict=True):
            q[unit] = 1.0 if name.endswith(".qw") else 0.0
        return q

    def with_(self, **changes: Any) -> Mechanism:
        """A copy with some fields replaced and everything checked again, e.g. `with_(constraints=(...))`."""
        given = {f.name: getattr(self, f.name) for f in fields(self)} | changes
        return mechanism(given.pop("name"), **given)

    def value(self, x: ca.SX) -> np.ndarray:
        """A model number at the parameters' default values."""
        return np.array(ca.DM(ca.substitute(x, self.p_symbols, ca.DM(self.p_defaults)))) if self.parameters else np.array(ca.DM(x))


def mechanism(
    name: str,
    bodies: Iterable[Body],
    joints: Iterable[Joint],
    *,
    constraints: Iterable[Constraint] = (),
    forces: Iterable[Force] = (),
    actuators: Iterable[Actuator] = (),
    gravity: Any = (0.0, 0.0, -9.81),
    parameters: Iterable[Parameter] = (),
    lenient: bool = False,
) -> Mechanism:
    """A checked mechanism.

    Args:
        bodies: in any order.   joints: parents before children, one joint leading to each body; the order gives q and v.
        constraints: loops, points, phi = 0, Pfaffian rows.   forces: external wrenches, springs.   actuators: inputs.
        gravity: (3,) [m/s^2], z up.   parameters: every Parameter that the numbers use.
        lenient: accept inertias that no body can have, as many published robot files contain; see `unphysical`.
    Raises ModelError: duplicate or unknown names, no tree, masses that no body can have, unlisted parameters.
    """
    made = Mechanism(name, tuple(bodies), tuple(joints), tuple(constraints), tuple(forces), tuple(actuators),
                     vector(gravity, 3, "gravity"), tuple(parameters), lenient)  # fmt: skip
    _check_names(made)
    _check_tree(made)
    _check_references(made)
    _check_parameters(made)
    _check_physics(made)
    return made


def unphysical(m: Mechanism) -> dict[str, str]:
    """Body name -> why no body can have its mass and inertia; empty for a sound mechanism."""
    found = {}
    for b in m.bodies:
        reason = is_physical(pseudo(*moments(m.value(b.mass).item(), m.value(b.com), m.value(b.inertia))))
        if reason:
            found[b.name] = reason
    return found


def check_configuration(m: Mechanism, q: np.ndarray) -> np.ndarray:
    """q (runs, nq) with unit quaternions; ModelError for one that has no direction."""
    q = q.copy()
    for j in m.joints:
        turn = [i for i, n in enumerate(j.kind.q_names) if n in ("qx", "qy", "qz", "qw")]
        if turn:
            columns = np.arange(m.q_slices[j.name].start, m.q_slices[j.name].stop)[turn]
            length = np.linalg.norm(q[:, columns], axis=1, keepdims=True)
            if not (length > 1e-6).all():
                raise ModelError(f"q: the quaternion of joint {j.name!r} is zero; the identity is (0, 0, 0, 1)")
            q[:, columns] /= length
    return q


def actuate_all(m: Mechanism) -> Mechanism:
    """The mechanism with one actuator on every velocity coordinate of every joint, named as the coordinate."""
    acts = [Actuator(_coordinate(j.name, n), j.name, i, ca.SX(1), (-j.effort, j.effort))
            for j in m.joints for i, n in enumerate(j.kind.v_names)]  # fmt: skip
    return replace(m, actuators=tuple(acts))


def _coordinate(joint: str, suffix: str) -> str:
    return f"{joint}.{suffix}" if suffix else joint


def _slices(joints: tuple[Joint, ...], sizes: list[int]) -> dict[str, slice]:
    ends = np.cumsum(sizes, dtype=int)
    return {j.name: slice(int(e - s), int(e)) for j, s, e in zip(joints, sizes, ends, strict=True)}


def _find(items: tuple, name: str, what: str, owner: str) -> Any:
    for item in items:
        if item.name == name:
            return item
    raise ModelError(f"mechanism {owner!r} has no {what} {name!r}; it has {', '.join(i.name for i in items)}")


def digest(m: Mechanism) -> str | None:
    """sha256 of all that shapes the equations; None if a function of the caller's is part of the mechanism.

    Two mechanisms with one digest have the same equations, whatever their names.
    """
    targets = [c.target if isinstance(c, Servo) else c for c in m.constraints]
    closures = [t for t in targets if isinstance(t, Closure) and t.active is None]
    if len(closures) < len(targets) or any(callable(s.directions) for s in m.servos):
        return None
    numbers = [ca.vec(x) for _, x in _numbers(m)]
    values = ca.Function("numbers", [m.p_symbols], [ca.densify(ca.vertcat(*numbers))])
    shape = [
        [b.name for b in m.bodies],
        [(j.name, j.kind.name, j.parent, j.child) for j in m.joints],
        [(type(c).__name__, t.kind, t.body_a, t.body_b, getattr(c, "directions", None)) for c, t in zip(m.constraints, closures, strict=True)],
        [(type(f).__name__, getattr(f, "axes", None), *[getattr(f, n, None) for n in ("body", "body_a", "body_b")], getattr(f, "value", 0) is None)
         for f in m.forces],
        [(a.name, a.joint, a.component) for a in m.actuators],
        m.u_names,
        [x.numel() for x in numbers],
    ]  # fmt: skip
    return sha256((repr(shape) + values.serialize()).encode()).hexdigest()


def _check_name(name: Any, what: str) -> None:
    if not isinstance(name, str) or not name or len(name) > 128 or not name.isprintable():
        raise ModelError(f"{what}: {name!r} is no name; use 1 to 128 printable characters")


def _check_names(m: Mechanism) -> None:
    _check_name(m.name, "mechanism")
    for what in ("bodies", "joints", "constraints", "forces", "actuators", "parameters"):
        names = [item.name for item in getattr(m, what)]
        for n in names:
            _check_name(n, what)
        for n, count in Counter(names).items():
            if count > 1:
                raise ModelError(f"{what}: the name {n!r} is used {count} times; names must be unique")
    if m.nv == 0:
        raise ModelError(f"mechanism {m.name!r} has no joint that moves")


def _check_tree(m: Mechanism) -> None:
    known, placed = {b.name for b in m.bodies}, {WORLD}
    for j in m.joints:
        for body in (j.parent, j.child):
            if body != WORLD and body not in known:
                raise ModelError(f"joint {j.name!r}: there is no body {body!r}")
        if j.child == WORLD:
            raise ModelError(f"joint {j.name!r}: the world cannot be a child; swap parent and child")
        if j.child in placed:
            raise ModelError(f"joint {j.name!r}: body {j.child!r} has a joint already; close the loop with a constraint")
        if j.parent not in placed:
            raise ModelError(f"joint {j.name!r}: its parent {j.parent!r} comes later or hangs in a cycle; write parents first")
        placed.add(j.child)
    for lost in known - placed:
        raise ModelError(f"body {lost!r} has no joint; use kind 'free' if it floats")


def _check_references(m: Mechanism) -> None:
    bodies, joints = {b.name for b in m.bodies} | {WORLD}, {j.name: j for j in m.joints}
    for c in m.constraints:
        if isinstance(c, Servo) and not callable(c.directions):
            for n in c.directions:
                if n not in m.u_names:
                    raise ModelError(f"servo constraint {c.name!r}: there is no input {n!r}; there are {', '.join(m.u_names) or 'none'}")
        c = c.target if isinstance(c, Servo) else c
        if isinstance(c, Closure):
            _check_bodies(f"constraint {c.name!r}", (c.body_a, c.body_b), bodies)
            if c.body_a == c.body_b:
                raise ModelError(f"constraint {c.name!r}: both ends are on {c.body_a!r}")
    for f in m.forces:
        _check_bodies(f"force {f.name!r}", (f.body_a, f.body_b) if isinstance(f, Spring) else (f.body,), bodies)
    for a in m.actuators:
        if a.joint not in joints:
            raise ModelError(f"actuator {a.name!r}: there is no joint {a.joint!r}")
        if not 0 <= a.component < joints[a.joint].nv:
            raise ModelError(f"actuator {a.name!r}: joint {a.joint!r} has {joints[a.joint].nv} velocities, none numbered {a.component}")
        if not a.limits[0] <= a.limits[1]:
            raise ModelError(f"actuator {a.name!r}: limits {a.limits} are the wrong way round")


def _check_bodies(what: str, names: tuple[str, ...], bodies: set[str]) -> None:
    for n in names:
        if n not in bodies:
            raise ModelError(f"{what}: there is no body {n!r}")


def _numbers(m: Mechanism) -> Iterable[tuple[str, ca.SX]]:
    """Every number of the model with the name of its owner."""
    yield "gravity", m.gravity
    targets = tuple(s.target for s in m.servos)
    owners = (("body", m.bodies), ("joint", m.joints), ("constraint", m.constraints + targets), ("force", m.forces), ("actuator", m.actuators))
    for what, items in owners:
        for item in items:
            for field in fields(item):
                value = getattr(item, field.name)
                for x in (value.R, value.p) if isinstance(value, Pose) else (value,):
                    if isinstance(x, ca.SX):
                        yield f"{what} {item.name!r}: {field.name}", x


def _check_parameters(m: Mechanism) -> None:
    known = {p.symbol.element_hash() for p in m.parameters}
    for what, x in _numbers(m):
        for s in ca.symvar(x):
            if s.element_hash() not in known:
                raise ModelError(f"{what} uses a Parameter that is not among the mechanism's parameters=(...)")
        if not np.isfinite(m.value(x)).all():
            raise ModelError(f"{what} is not finite at the parameters' default values")


def _check_physics(m: Mechanism) -> None:
    if not m.lenient:
        for name, reason in unphysical(m).items():
            raise ModelError(f"body {name!r}: {reason}; correct it, or pass lenient=True to use it as it is")
    moved = Counter({b.name: int(bool(m.value(b.mass).any() or m.value(b.inertia).any())) for b in m.bodies})
    for j in reversed(m.joints):
        moved[j.parent] += moved[j.child]
        if j.nv and not moved[j.child] and not m.value(j.armature).item() > 0:
            raise ModelError(f"joint {j.name!r} moves no mass at all; give {j.child!r} a mass, or make the joint fixed")
