"""The mechanism as a whole: bodies, joints, constraints, forces, actuators and parameters; frozen and checked."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields, replace
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np

from pfaffian.errors import ModelError, brief, nearest, plural
from pfaffian.model import check, reprs
from pfaffian.model.body import WORLD, Body
from pfaffian.model.compound import Compound, flat
from pfaffian.model.constraint import Closure, Constraint, Servo, Target, with_laws
from pfaffian.model.coordinates import Coordinates, Inverted, Velocities, check_coordinates, closest, known
from pfaffian.model.data import data
from pfaffian.model.force import Actuator, Force, KineticEnergy, Motor, Thruster, Wrench
from pfaffian.model.joint import UNLIMITED, Joint
from pfaffian.model.number import Parameter, all_constants, apart, constants, named_float, several, vector
from pfaffian.model.path_force import Winch

FORCE_UNITS = {"m/s": "N", "rad/s": "N m"}
"""Unit of a velocity -> unit of the force along it."""


def force_unit(rate: str) -> str:
    """Unit of the force along a velocity with the unit `rate`; J where this unit is 1/s or unknown."""
    return FORCE_UNITS.get(rate, "J")


def _motor_unit(a: Motor, rates: dict[str, tuple[str, ...]]) -> str:
    """Unit of an input; J where it acts on velocities of joints of several units.

    rates: name of a joint -> units of its velocities.
    """
    if isinstance(a, (Thruster, Winch)):
        return a.unit
    units = {force_unit(rates[joint][component]) for joint, component in a.ends}
    return units.pop() if len(units) == 1 else "J"


DRAWS = 20
"""Number of random configurations from which a configuration with phi = 0 is searched."""


@data
class Mechanism:
    """Bodies on joints and edges, with the constraints, forces and actuators that act on them; made by `mechanism`.

    q, v: (nq,) configuration and (nv,) velocity, listed by joints as written, then by user-defined coordinates. With a choice
        of `velocities`, v consists of these instead.
    u: (nu,) inputs: those of the actuators as written, then the six components of each wrench without a value.
    p: (np,) values of the parameters.

    Example:
        >>> import pfaffian as pf
        >>> rod = pf.body("rod", mass=2.0, com=(0, 0, -0.5), inertia=0.1)
        >>> m = pf.mechanism("pendulum", [rod], [pf.joint("hinge", "revolute", "world", "rod", axis=(0, 1, 0))])
        >>> m
        <Mechanism 'pendulum': 1 body, 1 joint (nq 1, nv 1), no inputs>
        >>> m.q_names, m.q_units, m.v_units, m.neutral()
        (('hinge',), ('rad',), ('rad/s',), array([0.]))
        >>> m.with_(gravity=(0, 0, 0)).gravity.is_zero()  # a copy with another field, checked again
        True
    """

    name: str
    bodies: tuple[Body, ...]
    joints: tuple[Joint, ...]
    constraints: tuple[Constraint | Compound, ...]
    forces: tuple[Force | Compound, ...]
    actuators: tuple[Motor, ...]
    gravity: ca.SX
    parameters: tuple[Parameter, ...]
    lenient: bool = False
    coordinates: tuple[Coordinates, ...] = ()
    velocities: Velocities | None = None

    def __repr__(self) -> str:
        parts = [plural(len(self.bodies), "body"), f"{plural(len(self.joints), 'joint')} (nq {self.nq}, nv {self.nv})"]
        if self.coordinates:
            parts.append(f"coordinates {reprs.listed([c.name for c in self.coordinates])}")
        if self.velocities:
            parts.append(f"velocities {reprs.listed(self.velocities.names)}")
        for kind, items in (("constraint", self.all_constraints), ("force", self.all_forces)):
            if items:
                parts.append(plural(len(items), kind))
        parts.append(f"inputs {reprs.listed(self.u_names)}" if self.nu else "no inputs")
        if self.parameters:
            parts.append(f"parameters {reprs.listed(self.p_names)}")
        return reprs.words(self, *parts, name=self.name)

    def _repr_html_(self) -> str:
        """HTML tables of joints, constraints, forces, inputs and parameters, with every text escaped."""
        q = [", ".join(f"{n} [{u}]" if n else f"[{u}]" for n, u in zip(j.q_names, j.q_units, strict=True)) for j in self.joints]
        joints = [(j.name, j.kind.name, j.parent, j.child, of) for j, of in zip(self.joints, q, strict=True)]
        coordinates = [(c.name, ", ".join(c.q_names), ", ".join(c.v_names)) for c in self.coordinates]
        constraints = [(c.name, reprs.description(c)) for c in self.all_constraints]
        forces = [(f.name, type(f).__name__, reprs.description(f)) for f in self.all_forces]
        inputs = list(zip(self.u_names, self.u_units, strict=True))
        parameters = [(p.name, f"{p.default:.6g}", p.unit) for p in self.parameters]
        tables = (
            reprs.table(("joint", "kind", "parent", "child", "coordinates"), joints),
            reprs.table(("coordinates", "q", "v"), coordinates),
            reprs.table(("constraint", "holds"), constraints),
            reprs.table(("force", "kind", "acts"), forces),
            reprs.table(("input", "unit"), inputs),
            reprs.table(("parameter", "default", "unit"), parameters),
        )
        sizes = f"{plural(len(self.bodies), 'body')}, nq {self.nq}, nv {self.nv}, nu {self.nu}"
        return f"<b>{reprs.cell(self.name)}</b>: {sizes}" + "".join(tables)

    @cached_property
    def owners(self) -> tuple[Joint | Coordinates, ...]:
        """The joints, then the user-defined coordinates, in the order in which their entries appear in q and v."""
        return self.joints + self.coordinates

    @cached_property
    def nq(self) -> int:
        return sum(j.nq for j in self.owners)

    @cached_property
    def nv(self) -> int:
        return sum(j.nv for j in self.owners)

    @cached_property
    def nu(self) -> int:
        return len(self.u_names)

    @cached_property
    def q_slices(self) -> dict[str, slice]:
        """Name of a joint or of coordinates -> its entries of q."""
        return _slices(self.owners, [j.nq for j in self.owners])

    @cached_property
    def v_slices(self) -> dict[str, slice]:
        """Name of a joint or of coordinates -> its entries of v; with a choice of `velocities`, its entries of T v."""
        return _slices(self.owners, [j.nv for j in self.owners])

    @cached_property
    def quaternions(self) -> dict[str, slice]:
        """Name of a joint with a quaternion (x, y, z, w) -> the four entries of q that form it."""
        ends = {j.name: self.q_slices[j.name].stop for j in self.joints if j.kind.quaternion}
        return {name: slice(end - 4, end) for name, end in ends.items()}

    @cached_property
    def q_names(self) -> tuple[str, ...]:
        return tuple(_coordinate(j.name, n) for j in self.owners for n in j.q_names)

    @cached_property
    def v_names(self) -> tuple[str, ...]:
        if self.velocities:
            return self.velocities.names
        return tuple(_coordinate(j.name, n) for j in self.owners for n in j.v_names)

    @cached_property
    def places(self) -> dict[str, list[tuple[str, int]]]:
        """Name -> where it stands: ("q", its index) for a coordinate, ("v", its index) for a velocity.

        A velocity with the name of a coordinate is called by that name and "'". An ambiguous name stands in several places.
        """
        found: dict[str, list[tuple[str, int]]] = {}
        for i, name in enumerate(self.q_names):
            found.setdefault(name, []).append(("q", i))
        rates = [f"{name}'" if name in found else name for name in self.v_names]
        for i, name in enumerate(rates):
            found.setdefault(name, []).append(("v", i))
        return found

    @cached_property
    def q_units(self) -> tuple[str, ...]:
        return tuple(u for j in self.owners for u in j.q_units)

    @cached_property
    def v_units(self) -> tuple[str, ...]:
        return self.velocities.units if self.velocities else tuple(u for j in self.owners for u in j.v_units)

    @cached_property
    def motor_names(self) -> tuple[str, ...]:
        """Names of the inputs that a control law may use."""
        return tuple(a.name for a in self.actuators)

    @cached_property
    def wrench_names(self) -> tuple[str, ...]:
        """Names of the inputs that act from outside: six components of each wrench without a value."""
        wrenches = (f.name for f in self.all_forces if isinstance(f, Wrench) and f.value is None)
        return tuple(f"{n}.{c}" for n in wrenches for c in ("fx", "fy", "fz", "nx", "ny", "nz"))

    @cached_property
    def kinetic_energies(self) -> tuple[KineticEnergy, ...]:
        """The kinetic energies that are added to that of the bodies."""
        return tuple(f for f in self.all_forces if isinstance(f, KineticEnergy))

    @cached_property
    def loop_rotors(self) -> tuple[Closure, ...]:
        """The joints that close loops with rotors."""
        return tuple(c for c in self.loop_joints.values() if c.armature is not None and not c.armature.is_zero())

    @property
    def inertia_elsewhere(self) -> bool:
        """Whether more has inertia than the bodies and the rotors of the tree."""
        return bool(self.kinetic_energies or self.loop_rotors)

    @cached_property
    def u_names(self) -> tuple[str, ...]:
        return self.motor_names + self.wrench_names

    @cached_property
    def u_units(self) -> tuple[str, ...]:
        """Unit of each input: N on translations and for thrusters, N m on rotations, J on other velocities or on both."""
        rates = {j.name: j.v_units for j in self.named_movers.values()}
        motors = [_motor_unit(a, rates) for a in self.actuators]
        return tuple(motors + (["N"] * 3 + ["N m"] * 3) * (len(self.wrench_names) // 6))

    @cached_property
    def q_limits(self) -> np.ndarray:
        """(nq, 2) lowest and highest value of each coordinate, infinite where it has no limit."""
        pairs = [x for j in self.owners for x in (j.limits[: j.nq] if isinstance(j, Joint) else (UNLIMITED,) * j.nq)]
        return np.array(pairs, dtype=float).reshape(-1, 2)

    @cached_property
    def u_limits(self) -> np.ndarray:
        """(nu, 2) lowest and highest value of each input: the actuator's limits, cut by its joint's effort."""
        effort = {j.name: j.effort if isinstance(j, Joint) else np.inf for j in self.named_movers.values()}
        bounds = [effort[a.joint] if isinstance(a, Actuator) else np.inf for a in self.actuators]
        motors = [(max(a.limits[0], -r), min(a.limits[1], r)) for a, r in zip(self.actuators, bounds, strict=True)]
        return np.array(motors + [(-np.inf, np.inf)] * len(self.wrench_names), dtype=float).reshape(-1, 2)

    @cached_property
    def given_parameters(self) -> tuple[Parameter, ...]:
        """The parameters that a caller gives: all but the last ones, by which a run counts the turns of closures."""
        targets = (c.target if isinstance(c, Servo) else c for c in self.all_constraints)
        closures = (c for c in targets if isinstance(c, Closure))
        counted = sum(c.counted.numel() for c in closures if c.counted is not None)
        return self.parameters[: len(self.parameters) - counted]

    def all_parameters(self, given: np.ndarray) -> np.ndarray:
        """The parameters (..., np) from those that a caller gave (..., n), before any turn is counted."""
        more = len(self.parameters) - len(self.given_parameters)
        return np.concatenate([given, np.zeros((*given.shape[:-1], more))], axis=-1) if more else given

    @cached_property
    def p_names(self) -> tuple[str, ...]:
        return tuple(p.name for p in self.parameters)

    @cached_property
    def p_identities(self) -> tuple[str, ...]:
        """Identities of the parameters, which distinguish them from others with the same names and defaults."""
        return tuple(p.identity for p in self.parameters)

    @cached_property
    def p_defaults(self) -> np.ndarray:
        defaults = np.array([p.default for p in self.parameters], dtype=float)
        defaults.setflags(write=False)  # The array is shared by all runs that use the defaults.
        return defaults

    @cached_property
    def p_symbols(self) -> ca.SX:
        return ca.vertcat(*[p.symbol for p in self.parameters]) if self.parameters else ca.SX(0, 1)

    @cached_property
    def all_constraints(self) -> tuple[Constraint, ...]:
        """The constraints one by one, with the parts of each compound in its place, and the laws that closures follow."""
        return with_laws(flat(self.constraints))

    @cached_property
    def all_forces(self) -> tuple[Force, ...]:
        """The forces one by one, with the parts of each compound in its place."""
        return flat(self.forces)

    @cached_property
    def compounds(self) -> tuple[Compound, ...]:
        """The compounds among the constraints and forces."""
        return tuple(x for x in (*self.constraints, *self.forces) if isinstance(x, Compound))

    @cached_property
    def ideal(self) -> tuple[Target, ...]:
        """The constraints that ideal reactions maintain."""
        return tuple(c for c in self.all_constraints if not isinstance(c, Servo))

    @cached_property
    def servos(self) -> tuple[Servo, ...]:
        """The servo constraints, which forces along chosen directions maintain."""
        return tuple(c for c in self.all_constraints if isinstance(c, Servo))

    @cached_property
    def loop_joints(self) -> dict[str, Closure]:
        """Name -> each closure that is a joint and permits a motion, except those that share their name with a joint."""
        owned = {o.name for o in self.owners}
        targets = [c.target if isinstance(c, Servo) else c for c in self.all_constraints]
        return {c.name: c for c in targets if isinstance(c, Closure) and c.joint is not None and c.name not in owned}

    @cached_property
    def named_movers(self) -> dict[str, Joint | Coordinates]:
        """Name -> all that forces and actuators may act along: joints, user-defined coordinates, joints that close loops."""
        closing = {name: c.joint for name, c in self.loop_joints.items() if c.joint is not None}
        return {o.name: o for o in self.owners} | closing

    def owner(self, name: str) -> Joint | Coordinates:
        """The joint, in the tree or closing a loop, or the coordinates of this name. Raises ModelError: there are none."""
        return self._find("movers", name, "joint or coordinates" if self.coordinates else "joint")

    def body(self, name: str) -> Body:
        """The body of this name. Raises ModelError: there is none."""
        return self._find("bodies", name, "body")

    def joint(self, name: str) -> Joint:
        """The joint or edge of this name. Raises ModelError: there is none."""
        return self._find("joints", name, "joint")

    def _find(self, kind: str, name: str, what: str) -> Any:
        """The item of this name in a field. Raises ModelError: there is none.   what: noun."""
        named = self._named[kind]
        if not isinstance(name, str) or name not in named:
            raise ModelError(f"mechanism {self.name!r} has no {what} {brief(name)}; {nearest(name, [*named])}")
        return named[name]

    @cached_property
    def _named(self) -> dict[str, dict[str, Any]]:
        """Field -> name -> item, so that one of many items is found at once."""
        named = {kind: {item.name: item for item in getattr(self, kind)} for kind in ("bodies", "joints")}
        return named | {"movers": self.named_movers}

    def neutral(self) -> np.ndarray:
        """(nq,) the configuration with joints at zero, quaternions at the identity and other coordinates at their start."""
        q = np.zeros(self.nq)
        for c in self.coordinates:
            q[self.q_slices[c.name]] = closest(c, np.array(c.start), self.parameters)
        for turn in self.quaternions.values():
            q[turn.stop - 1] = 1.0
        return q

    def with_(self, **changes: Any) -> Mechanism:
        """A copy with some fields replaced, checked again as a whole, e.g. `with_(constraints=(...))`."""
        parts = {f.name: getattr(self, f.name) for f in fields(self)}
        for name in changes:
            if name not in parts:
                raise ModelError(f"with_: a mechanism has no field {name!r}; {nearest(name, list(parts))}")
        parts |= changes
        return mechanism(parts.pop("name"), **parts)

    def value(self, x: ca.SX, p: Any = None) -> np.ndarray:
        """The value of a number x of the model for parameter values p (np,), their defaults if None."""
        x = x if isinstance(x, ca.SX) else ca.SX(x)
        return constants(x) if x.is_constant() else self.values([x], p)[0]

    def values(self, numbers: Sequence[ca.SX], p: Any = None) -> list[np.ndarray]:
        """The values of numbers of the model at once, in time linear in their number.   p: as in `value`."""
        numbers = [x if isinstance(x, ca.SX) else ca.SX(x) for x in numbers]
        if all(x.is_constant() for x in numbers):
            return all_constants(numbers)
        together = ca.densify(ca.veccat(*numbers))
        at = self.p_defaults if p is None else p
        return apart(np.array(ca.Function("values", [self.p_symbols], [together])(at)).ravel(), numbers)

    @cached_property
    def moments(self) -> check.BodyMoments:
        """Masses (n,) [kg], mass centres (n, 3) [m] and inertias (n, 3, 3) [kg m^2] of the bodies, for default parameters."""
        found = check.moments_of(self.bodies, self.values)
        for x in found:
            x.flags.writeable = False
        return found


def mechanism(
    name: str,
    bodies: Iterable[Body],
    joints: Iterable[Joint],
    *,
    constraints: Iterable[Constraint | Compound] = (),
    forces: Iterable[Force | Compound] = (),
    actuators: Iterable[Motor] = (),
    gravity: Any = (0.0, 0.0, -9.81),
    parameters: Iterable[Parameter] = (),
    lenient: bool = False,
    coordinates: Iterable[Coordinates] = (),
    velocities: Velocities | None = None,
) -> Mechanism:
    """A mechanism from its parts. Names, tree, references, numbers and masses are checked.

    Args:
        name: of the mechanism.
        bodies: in any order.
        joints: joints and edges, parents before children, exactly one leading to each body; q and v follow the order of the
            joints. Edges may be written in any order and from either side.
        constraints: closures, points that coincide, phi = 0, eta = 0, Z v_dot = z, servo constraints, compounds of them.
        forces: wrenches, springs, potentials, compounds of them, ...
        actuators: actuators, transmissions and thrusters, each with one input.
        gravity: (3,) [m/s^2], world axes; (0, 0, -9.81) by default.
        parameters: every Parameter that the numbers use.
        lenient: accept physically impossible inertias, which many published robot files contain; see `unphysical`. False by
            default.
        coordinates: user-defined coordinates, which follow those of the joints in q and v.
        velocities: a choice of v made by `velocities(...)`; None, the default, for the velocities of joints and coordinates.
    Raises ModelError: duplicate or unknown names, joints that form no tree, impossible masses or inertias, unlisted parameters.

    Example:
        >>> import pfaffian as pf
        >>> rod = pf.body("rod", mass=2.0, com=(0, 0, -0.5), inertia=0.1)
        >>> hinge = pf.joint("hinge", "revolute", "world", "rod", axis=(0, 1, 0))
        >>> m = pf.mechanism("pendulum", [rod], [hinge], actuators=[pf.actuator("motor", "hinge")])
        >>> m
        <Mechanism 'pendulum': 1 body, 1 joint (nq 1, nv 1), inputs motor>
        >>> pf.forward_dynamics(m, [0.0], u={"motor": 1.2}).v_dot.round(9)  # 1.2 / (0.1 + 2 * 0.5^2)
        array([2.])
    """
    if not isinstance(lenient, (bool, np.bool_)):
        raise ModelError(f"lenient must be True or False, got {brief(lenient)}")
    lists = {"bodies": bodies, "joints": joints, "constraints": constraints, "forces": forces, "actuators": actuators}
    parts: dict[str, Any] = {what: _items(items, what) for what, items in lists.items()}
    parameters_used = _items(parameters, "parameters")
    if velocities is not None and not isinstance(velocities, Velocities):
        raise ModelError(f"velocities: {brief(velocities)} is not a choice of velocities; make one by velocities(T, names)")
    parts["joints"] = _parents_first(parts["joints"])
    m = Mechanism(
        name,
        **parts,
        gravity=vector(gravity, 3, "gravity"),
        parameters=parameters_used,
        lenient=bool(lenient),
        coordinates=_items(coordinates, "coordinates"),
        velocities=velocities,
    )
    _check(m)
    return m


def _check(m: Mechanism) -> None:
    """Raise ModelError for the first fault of a mechanism."""
    lists = {what: getattr(m, what) for what in ("bodies", "constraints", "forces", "actuators", "parameters")}
    check.check_kinds(lists | {"joints": m.joints, "coordinates": m.coordinates})
    check.check_names(m.name, {"joints and coordinates" if m.coordinates else "joints": m.owners} | lists)
    if m.nv == 0:
        raise ModelError(f"mechanism {m.name!r} has no joint that moves, and no coordinates")
    check.check_tree(m.bodies, m.joints)
    check.check_mimics(m.joints, m.all_constraints)
    bodies, owner = {b.name for b in m.bodies} | {WORLD}, m.named_movers
    check.check_references(bodies, owner, m.all_constraints, m.all_forces, m.actuators, m.u_names)
    constraints = m.all_constraints + tuple(s.target for s in m.servos)
    parts = {"body": m.bodies, "joint": m.joints, "constraint": constraints, "force": m.all_forces, "actuator": m.actuators}
    check.check_parameters(check.numbers(m.gravity, parts), m.parameters, m.values)
    check.check_distributions(m.joints, m.values)
    for c in m.coordinates:
        check_coordinates(c, m.parameters)
    if m.velocities and len(m.velocities.names) != m.nv:
        raise ModelError(
            f"velocities: {len(m.velocities.names)} names for the {m.nv} velocities of {m.name!r}; give one for each of "
            f"{', '.join(f'{j.name} ({j.nv})' for j in m.owners if j.nv)}"
        )
    for name, reason in () if m.lenient else check.impossible_bodies(m.bodies, m.moments).items():
        raise ModelError(f"body {name!r}: {reason}; correct it, or pass lenient=True to use it as it is")
    if not m.inertia_elsewhere:  # It may supply all the inertia. A motion without inertia is reported by the equations.
        check.check_inertias(m.bodies, m.joints, m.moments, m.values)


def unconstrained(m: Mechanism, named: bool = False) -> Mechanism:
    """The mechanism without constraints, but for the joints that close loops where forces may act along these.

    Energies, forces and inertia are those of the mechanism.   named: whether a function may name these joints too.
    """
    closing = m.loop_joints.values()
    acting = named or bool(m.all_forces) or bool(m.actuators) or any(c.carries for c in closing)
    return replace(m, constraints=tuple(closing) if acting else ())


def _parents_first(joints: tuple[Any, ...]) -> tuple[Any, ...]:
    """The joints and edges, parents first. Edges are moved, and inverted where needed; joints keep their order."""
    if not any(isinstance(j, Joint) and j.pose for j in joints):
        return joints
    waiting, ordered, placed = list(joints), list[Joint](), {WORLD}
    while waiting:
        joint = next((j for j in waiting if not (isinstance(j, Joint) and j.pose)), None)
        ready = [j for j in waiting if isinstance(j, Joint) and j.pose and (j.parent in placed) != (j.child in placed)]
        # The next joint comes first, unless its parent is not placed yet and an edge can be placed.
        if joint is not None and (not ready or not isinstance(joint, Joint) or joint.parent in placed):
            chosen = source = joint
        elif ready:
            source = ready[0]
            chosen = source
            if source.pose and source.parent not in placed:
                chosen = replace(source, parent=source.child, child=source.parent, pose=Inverted(source.pose))
        else:
            return tuple(ordered + waiting)  # There is a cycle or an unconnected body; `check` reports it.
        waiting.remove(source)
        ordered.append(chosen)
        if isinstance(chosen, Joint):
            placed.add(chosen.child)
    return tuple(ordered)


def _items(items: Any, what: str) -> tuple[Any, ...]:
    """The items of a list, tuple or generator as a tuple. Raises ModelError: a single item, a dict, None."""
    if not several(items):
        raise ModelError(f"{what}: a list is needed, got {brief(items)}; write {what}=[...]")
    return tuple(items)


def as_mechanism(m: Any) -> Mechanism:
    """The mechanism m unchanged. Raises ModelError: m is not a mechanism.

    For a file name, or the pair that a reader returns, the message explains how to obtain the mechanism.
    """
    if isinstance(m, Mechanism):
        return m
    if isinstance(m, tuple) and m and isinstance(m[0], Mechanism):
        raise ModelError(
            "a Mechanism is needed, got the pair (mechanism, settings) that read returns: write "
            "m, settings = pf.read(file) and use m; q, v, u, p = settings.arrays(m) are its start values"
        )
    if isinstance(m, str) or hasattr(m, "__fspath__"):
        raise ModelError(f"a Mechanism is needed, got {brief(m)}; write m, settings = pf.read(file) and use m")
    way = "; take its .mechanism" if isinstance(getattr(m, "mechanism", None), Mechanism) else ""
    raise ModelError(f"a Mechanism is needed, made by mechanism(...) or a reader, got {brief(m)}{way}")


def as_names(rows: Any, what: str) -> tuple[str, ...]:
    """The names as a tuple. Raises ModelError: a single text, or items that are not texts.

    what: the label of the argument in the message.
    """
    names = tuple(rows) if several(rows) else (None,)
    if not all(isinstance(name, str) for name in names):
        raise ModelError(f"{what}: a list of names is needed, got {brief(rows)}")
    return names


def check_configuration(m: Mechanism, q: np.ndarray, fixed: np.ndarray | None = None) -> np.ndarray:
    """Configurations q (runs, nq) with normalised quaternions and with user-defined coordinates moved onto phi = 0.

    Coordinates that are `stabilised` are left as they are.

    fixed: (nq,) bool, the entries that must not change; none if None.
    Raises ModelError: a quaternion that is zero, or no solution of phi = 0 nearby.
    """
    q = q.copy()
    for name, turn in m.quaternions.items():
        length = np.linalg.norm(q[:, turn], axis=1, keepdims=True)
        if not (length > 1e-6).all():
            raise ModelError(f"q: the quaternion of joint {name!r} is zero; the identity is (0, 0, 0, 1)")
        q[:, turn] /= length
    for c in (known(c, m.parameters) for c in m.coordinates):
        at = m.q_slices[c.name]
        if c.returns is None:
            q[:, at] = [closest(c, x, m.parameters, None if fixed is None else fixed[at]) for x in q[:, at]]
    return q


def random_configuration(m: Mechanism, random: np.random.Generator, within: float = 1.0) -> np.ndarray:
    """(nq,) a random configuration with phi = 0: angles from -pi to pi, translations up to `within`, uniform orientations.

    Coordinates without a unit are drawn from the normal distribution. If none of several draws leads to phi = 0, the neutral
    configuration is returned. The configuration need not satisfy the constraints: put it onto them with `assemble`.

    Args:
        m: the mechanism.
        random: a generator, np.random.default_rng(seed).
        within: largest translation [m], one by default.
    Raises ModelError: m is not a mechanism, random is not a generator, or within is not a number.

    Example:
        >>> import numpy as np
        >>> import pfaffian as pf
        >>> m = pf.mechanism("ball", [pf.body("ball", mass=2.0, inertia=0.1)], [pf.joint("base", "free", "world", "ball")])
        >>> q = pf.random_configuration(m, np.random.default_rng(0), within=0.5)
        >>> bool(np.abs(q[:3]).max() <= 0.5), round(float(np.linalg.norm(q[3:])), 9)  # position, unit quaternion
        (True, 1.0)
    """
    as_mechanism(m)
    if not isinstance(random, np.random.Generator):
        raise ModelError(f"random_configuration(m, random): np.random.default_rng(seed) is needed, got {brief(random)}")
    most = named_float(within, "random_configuration: within")
    for _ in range(DRAWS):
        q = np.array([_draw(unit, random, most) for unit in m.q_units])
        try:
            return check_configuration(m, q[None])[0]
        except ModelError:
            if not m.coordinates:
                raise
    return m.neutral()  # None of the draws leads to phi = 0.


def _draw(unit: str, random: np.random.Generator, within: float) -> float:
    """A random value of a coordinate with this unit.   within: largest translation [m]."""
    if unit == "1":
        return random.normal()
    return random.uniform(-np.pi, np.pi) if unit == "rad" else within * random.uniform(-1, 1)


def actuate_all(m: Mechanism) -> Mechanism:
    """The mechanism with one actuator on every velocity of every joint, in place of its previous actuators.

    Each actuator has the name of the velocity along which it acts, and its input is limited to the effort of the joint.

    Args:
        m: the mechanism.
    Raises ModelError: m is not a mechanism.

    Example:
        >>> import pfaffian as pf
        >>> ball, rail = pf.body("ball", mass=2.0, inertia=0.1), pf.joint("rail", "cylindrical", "world", "ball")
        >>> m = pf.actuate_all(pf.mechanism("ball on a rail", [ball], [rail]))
        >>> m.u_names, m.u_units
        (('rail.vz', 'rail.wz'), ('N', 'N m'))
    """
    as_mechanism(m)
    effort = {j.name: j.effort for j in m.joints}
    motors = [Actuator(_coordinate(j.name, n), j.name, i, ca.SX(1), (-effort.get(j.name, np.inf), effort.get(j.name, np.inf)))
              for j in m.owners for i, n in enumerate(j.v_names)]  # fmt: skip
    return replace(m, actuators=tuple(motors))


def _coordinate(joint: str, suffix: str) -> str:
    """Name of a coordinate or velocity: that of its joint, with a suffix where the joint has several."""
    return f"{joint}.{suffix}" if suffix else joint


def _slices(joints: tuple[Joint | Coordinates, ...], sizes: list[int]) -> dict[str, slice]:
    """Name of each joint -> its slice of a vector in which the joints have these sizes."""
    ends = np.cumsum(sizes, dtype=int)
    return {j.name: slice(int(e - s), int(e)) for j, s, e in zip(joints, sizes, ends, strict=True)}
