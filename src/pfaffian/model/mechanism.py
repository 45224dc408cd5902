"""The whole machine: bodies, joints, constraints, forces, actuators, parameters; frozen and checked."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields, replace
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np

from pfaffian.errors import ModelError, brief, nearest
from pfaffian.model import shown
from pfaffian.model.body import Body
from pfaffian.model.check import check
from pfaffian.model.constraint import Constraint, Servo, Target
from pfaffian.model.data import data
from pfaffian.model.force import Actuator, Force, Wrench
from pfaffian.model.joint import Joint
from pfaffian.model.number import Parameter, several, vector


@data
class Mechanism:
    """A tree of bodies, and what constrains and drives it. Made by `mechanism`.

    q: (nq,) configuration and v: (nv,) velocity run over the joints as written; u: (nu,) over the actuators as
    written, then the six components of each wrench without a value; p: (np,) over the parameters.
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

    def __repr__(self) -> str:
        return shown.mechanism(self)

    def _repr_html_(self) -> str:
        return shown.html(self)

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
    def quaternions(self) -> dict[str, slice]:
        """Joint name -> the four entries of q that are its quaternion (x, y, z, w), of the joints that have one."""
        own = {j.name: self.q_slices[j.name].start + j.kind.plain for j in self.joints if j.kind.plain < j.nq}
        return {name: slice(first, first + 4) for name, first in own.items()}

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
    def motor_names(self) -> tuple[str, ...]:
        """The inputs that a control law may use."""
        return tuple(a.name for a in self.actuators)

    @cached_property
    def wrench_names(self) -> tuple[str, ...]:
        """The inputs that push from outside: six components of each wrench without a value."""
        wrenches = (f.name for f in self.forces if isinstance(f, Wrench) and f.value is None)
        return tuple(f"{n}.{c}" for n in wrenches for c in ("fx", "fy", "fz", "nx", "ny", "nz"))

    @cached_property
    def u_names(self) -> tuple[str, ...]:
        return self.motor_names + self.wrench_names

    @cached_property
    def u_units(self) -> tuple[str, ...]:
        """Of each input: N on translations, N m on rotations."""
        kinds = {j.name: j.kind for j in self.joints}
        motors = ["N" if kinds[a.joint].v_units[a.component] == "m/s" else "N m" for a in self.actuators]
        return tuple(motors + (["N"] * 3 + ["N m"] * 3) * (len(self.wrench_names) // 6))

    @cached_property
    def q_limits(self) -> np.ndarray:
        """(nq, 2) lowest and highest value of each coordinate, infinite where there is none."""
        return np.array([j.limits for j in self.joints for _ in j.kind.q_names], dtype=float).reshape(-1, 2)

    @cached_property
    def u_limits(self) -> np.ndarray:
        """(nu, 2) lowest and highest value of each input: the actuator's own, within its joint's effort."""
        effort = {j.name: j.effort for j in self.joints}
        motors = [(max(a.limits[0], -effort[a.joint]), min(a.limits[1], effort[a.joint])) for a in self.actuators]
        return np.array(motors + [(-np.inf, np.inf)] * len(self.wrench_names), dtype=float).reshape(-1, 2)

    @cached_property
    def p_names(self) -> tuple[str, ...]:
        return tuple(p.name for p in self.parameters)

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
        for turn in self.quaternions.values():
            q[turn.stop - 1] = 1.0
        return q

    def with_(self, **changes: Any) -> Mechanism:
        """A copy with some fields replaced and everything checked again, e.g. `with_(constraints=(...))`."""
        given = {f.name: getattr(self, f.name) for f in fields(self)}
        for name in changes:
            if name not in given:
                raise ModelError(f"with_: a mechanism has no field {name!r}; {nearest(name, list(given))}")
        given |= changes
        return mechanism(given.pop("name"), **given)

    def value(self, x: ca.SX) -> np.ndarray:
        """A model number at the parameters' default values."""
        return (
            np.array(ca.DM(ca.substitute(x, self.p_symbols, ca.DM(self.p_defaults)))) if self.parameters else np.array(ca.DM(x))
        )


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
        constraints: loops, points, phi = 0, Pfaffian rows.   forces: wrenches, springs, potentials, ...   actuators: inputs.
        gravity: (3,) [m/s^2], z up.   parameters: every Parameter that the numbers use.
        lenient: accept inertias that no body can have, as many published robot files contain; see `unphysical`.
    Raises ModelError: duplicate or unknown names, no tree, masses that no body can have, unlisted parameters.
    """
    if not isinstance(lenient, (bool, np.bool_)):
        raise ModelError(f"lenient must be True or False, got {brief(lenient)}")
    given = {"bodies": bodies, "joints": joints, "constraints": constraints, "forces": forces, "actuators": actuators}
    parts: dict[str, Any] = {what: _items(items, what) for what, items in given.items()}
    used = _items(parameters, "parameters")
    made = Mechanism(name, **parts, gravity=vector(gravity, 3, "gravity"), parameters=used, lenient=bool(lenient))
    check(made)
    return made


def _items(items: Any, what: str) -> tuple:
    """The items of a list, a tuple, a generator. Raises ModelError: one alone, a dict, none."""
    if not several(items):
        raise ModelError(f"{what}: a list is needed, got {brief(items)}; write {what}=[...]")
    return tuple(items)


def as_mechanism(m: Any) -> Mechanism:
    """m as it is. Raises ModelError: it is none; for the pair that a reader gives, how to take it apart."""
    if isinstance(m, Mechanism):
        return m
    if isinstance(m, tuple) and m and isinstance(m[0], Mechanism):
        raise ModelError(
            "a Mechanism is needed, got the pair (mechanism, settings) that read gives: write "
            "m, settings = pf.read(file) and go on with m; q, v, u, p = settings.arrays(m) are its start values"
        )
    if isinstance(m, str) or hasattr(m, "__fspath__"):
        raise ModelError(f"a Mechanism is needed, got {brief(m)}; write m, settings = pf.read(file) and go on with m")
    raise ModelError(f"a Mechanism is needed, made by mechanism(...) or a reader, got {brief(m)}")


def as_names(rows: Any, what: str) -> tuple[str, ...]:
    """Names as a tuple. Raises ModelError: one text alone, or what is no text."""
    if isinstance(rows, str) or not all(isinstance(r, str) for r in (rows if several(rows) else [rows])):
        raise ModelError(f"{what}: a list of names is needed, got {brief(rows)}")
    return tuple(rows)


def check_configuration(m: Mechanism, q: np.ndarray) -> np.ndarray:
    """q (runs, nq) with unit quaternions; ModelError for one that has no direction."""
    q = q.copy()
    for name, turn in m.quaternions.items():
        length = np.linalg.norm(q[:, turn], axis=1, keepdims=True)
        if not (length > 1e-6).all():
            raise ModelError(f"q: the quaternion of joint {name!r} is zero; the identity is (0, 0, 0, 1)")
        q[:, turn] /= length
    return q


def actuate_all(m: Mechanism) -> Mechanism:
    """The mechanism with one actuator on every velocity coordinate of every joint, named as the coordinate."""
    as_mechanism(m)
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
    names = [i.name for i in items]
    raise ModelError(f"mechanism {owner!r} has no {what} {brief(name)}; {nearest(name, names)}")
