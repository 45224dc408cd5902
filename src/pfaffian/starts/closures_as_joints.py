"""Coordinates of closures that a caller holds: a joint of the tree takes the place of each such closure, and a weld closes it.

Where a loop is cut changes no number, so the coordinates of the joint are those of the closure, and everything that is said of
held coordinates is true of them: they are continued from where they are, over whole turns, and messages name them. The bodies
between joint and weld have no mass, and their coordinates are the last ones.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from pfaffian import kernel
from pfaffian.errors import ModelError
from pfaffian.evaluate.arrays import unknown
from pfaffian.kernel.call.recipe import Backend
from pfaffian.model.body import body
from pfaffian.model.constraint import Closure
from pfaffian.model.joint import Joint, JointFactor, JointKind
from pfaffian.model.loop_coordinates import coordinates_of_closures, labels, velocities_of_closures
from pfaffian.model.mechanism import Mechanism
from pfaffian.model.pose import IDENTITY, Pose
from pfaffian.terms.equations_digest import digest
from pfaffian.terms.lengths import default_length
from pfaffian.terms.loop_joints import closing_joint, loop_coordinates, loop_rates, open_turns
from pfaffian.terms.terms import shared
from pfaffian.terms.traced_now import remembered

SLIGHT = 1e-6
"""Inertia of a joint in the place of a closure, relative to the machine's: a coordinate that is not held barely resists."""


class ClosuresAsJoints(NamedTuple):
    """The mechanism with joints in the place of closures that are held.

    m: the caller's mechanism.   whole: with the joints.   names: of the closures.   open_q: (nq,), open_v: (nv,) of bool,
    coordinates and velocities that the caller did not name; those of these joints follow from the others.
    """

    m: Mechanism
    whole: Mechanism
    names: tuple[str, ...]
    open_q: np.ndarray
    open_v: np.ndarray

    def measured(
        self, q: np.ndarray, v: np.ndarray, p: np.ndarray, t: np.ndarray, backend: Backend
    ) -> tuple[np.ndarray, np.ndarray]:
        """q (runs, nq) and v (runs, nv) of `whole`, with all coordinates of the closures as they follow from the others."""
        q, v = q[:, : self.m.nq], v[:, : self.m.nv]
        x, rates = measured(self.m, self.names, q, v, p, t, backend)
        return np.hstack([q, x]), np.hstack([v, rates])

    def off_turn(self, q: np.ndarray, p: np.ndarray, t: np.ndarray, backend: Backend) -> list[str]:
        """A message for each of the states q (runs, nq) of `whole` in which the tree tells that a closure is whole turns from
        where it is held, else ""."""
        x, _ = measured(self.m, self.names, q[:, : self.m.nq], np.zeros((len(q), self.m.nv)), p, t, backend)
        goal, names = q[:, self.m.nq :], self.whole.q_names[self.m.nq :]
        off = (np.abs(x - goal) > np.pi) & _turned(self.m, self.names)
        return [
            f"the coordinate {names[i]!r} = {there[i]:.6g} rad cannot be kept: the loop closes at {here[i]:.6g} rad, whole "
            "turns away, which the joints of the tree do not make"
            if any(wrong)
            else ""
            for i, wrong, there, here in zip(off.argmax(axis=1), off, goal, x, strict=True)
        ]


@remembered(64)
def _turned(m: Mechanism, names: tuple[str, ...]) -> np.ndarray:
    """(n,) of bool: the coordinates of these closures that are angles of which the tree knows the turns."""
    k, known = shared(m).kinematics, list[bool]()
    for c in (m.loop_joints[name] for name in names):
        known += [unit == "rad" and not open_turns(k, c) for unit in closing_joint(c).q_units]
    return np.array(known, dtype=bool)


def closures_as_joints(m: Mechanism, q: Any, v: Any, guess: Any, hold: Iterable[str]) -> ClosuresAsJoints | None:
    """The closures whose coordinates or rates are named in a start, None without any.   q, v, guess, hold: see `assemble`.

    Raises ModelError: an unknown name, a closure without coordinates, one that forces hold, or chosen velocities.
    """
    given = [x if isinstance(x, Mapping) else {} for x in (q, guess, v)]
    _check_names(m, dict(zip(("q", "guess", "v"), given, strict=True)))
    names = closures_named(m, [n for x in (*given, tuple(hold)) for n in x])
    if not names:
        return None
    whole = with_joints(m, names)
    open_q = np.array([n not in given[0] and n not in given[1] for n in whole.q_names])
    open_v = np.array([n not in given[2] for n in whole.v_names])
    return ClosuresAsJoints(m, whole, names, open_q, open_v)


def _check_names(m: Mechanism, given: Mapping[str, Mapping[Any, Any]]) -> None:
    """Raise ModelError for a name, among those that each argument gives, that is neither of the tree nor of a closure."""
    more = coordinates_of_closures(m), velocities_of_closures(m)
    for what, names in given.items():
        known = (*m.v_names, *more[1]) if what == "v" else (*m.q_names, *more[0])
        for name in names if isinstance(names, dict) else ():  # a Dataset is a Mapping too, and is refused as such
            # A closure without coordinates is refused by `closures_named`, which tells why.
            if name not in known and not any(isinstance(c, Closure) and c.name == name for c in m.all_constraints):
                raise unknown(name, known, what)


def closures_named(m: Mechanism, names: Iterable[Any]) -> tuple[str, ...]:
    """The closures, in their order, whose own names, coordinates or velocities are among these names.

    Raises ModelError: a closure without coordinates.
    """
    strange = {n for n in names if isinstance(n, str)} - {*m.q_names, *m.v_names, *m.v_slices}
    if not strange:
        return ()
    for c in m.all_constraints:
        if isinstance(c, Closure) and c.name in strange and c.joint is None:
            raise ModelError(
                f"q: closure {c.name!r} ({c.kind}) has no coordinate that could be held; hold joints, or add a holonomic "
                "constraint"
            )
    return tuple(c.name for c in m.loop_joints.values() if strange & {c.name, *labels(closing_joint(c))})


def widened(x: np.ndarray, to: np.ndarray) -> np.ndarray:
    """An array (..., n) with the last entries of `to` (m,) added, m >= n."""
    more = to[x.shape[-1] :]
    return np.concatenate([x, np.broadcast_to(more, (*x.shape[:-1], len(more)))], axis=-1)


@remembered(64)
def with_joints(m: Mechanism, names: tuple[str, ...]) -> Mechanism:
    """The mechanism with joints in the place of these closures, whose coordinates are its last ones."""
    if m.velocities is not None:
        raise ModelError(f"q: closure {names[0]!r} cannot be held where velocities are chosen by pf.velocities")
    if forced := [s.name for s in m.servos if s.name in names]:
        raise ModelError(f"q: closure {forced[0]!r} is held by forces already; leave it out, or take it out of the servos")
    bodies, joints, constraints, long = list(m.bodies), list(m.joints), list(m.constraints), default_length(m) or 1.0
    mass = float(sum(np.sum(x) for x in m.values([b.mass for b in m.bodies])))
    for i, c in enumerate(constraints):
        if isinstance(c, Closure) and c.name in names:
            end = f"{c.name} as held"
            bodies.append(body(end, 0.0))
            joints.append(_joint(c, end, SLIGHT * mass, long))
            weld = Closure(c.name, "weld", end, c.body_b, IDENTITY, c.placement_b, ca.SX(0), active=c.active)
            constraints[i] = replace(weld, counted=c.counted)
    return m.with_(bodies=bodies, joints=joints, constraints=constraints)


def _joint(c: Closure, end: str, mass: float, long: float) -> Joint:
    """The joint of a closure from its first body to the body `end`.   mass: [kg] of its slides, and of turns at `long` [m]."""
    j = closing_joint(c)
    inertia = ca.vertcat(*[ca.SX(mass if unit == "m/s" else mass * long**2) for unit in j.v_units])
    kind, child = j.kind, IDENTITY
    if c.zero is not None:
        zero = np.array(ca.DM(c.zero))
        first, second = j.kind.factors
        kind = JointKind(kind.name, (first, JointFactor(second.subgroup, tuple(zero[:, 2].tolist()), second.label)))
        child = Pose(c.zero.T, IDENTITY.p)
    return replace(j, child=end, kind=kind, child_placement=child, armature=inertia)


def measured(
    m: Mechanism, names: tuple[str, ...], q: np.ndarray, v: np.ndarray, p: np.ndarray, t: np.ndarray, backend: Backend
) -> tuple[np.ndarray, np.ndarray]:
    """The coordinates and velocities (runs, n) of these closures at q (runs, nq) and v (runs, nv).   t: (1,) or (runs, 1)."""
    x, rates = _coordinates(m, backend, names)(q, v, p, t)
    return x, rates


@remembered(64)
def _coordinates(m: Mechanism, backend: Backend, names: Collection[str]) -> kernel.Kernel:
    """Kernel (q, v, p, t) -> coordinates and velocities of these closures."""

    def build() -> ca.Function:
        T = shared(m)
        closures = [m.loop_joints[name] for name in names]
        x = ca.vertcat(*[loop_coordinates(T.kinematics, c) for c in closures])
        rates = ca.vertcat(*[loop_rates(T.kinematics, c) @ T.v for c in closures])
        return ca.Function("closures", [T.q, T.v, m.p_symbols, T.t], [ca.densify(x), ca.densify(rates)])

    return kernel.compile(build, backend=backend, key=f"closures {names!r} {digest(m)}")
