"""The momenta that a floating machine conserves: along the slides of its first joint, and about its mass centre.

They are those of a reduction by the first joint (`simulate.reduction`). If the joint slides, they are computed in a frame that
moves with the mass centre, so that no digits are lost far from the origin or at high speed. Weight changes them at a known
rate. Whether anything else changes them is decided by the forces, inputs and constraints along the first joint, where those
between bodies cancel. This is tested at a few random states and then holds at all, unless a user's function has branches.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple

import casadi as ca
import numpy as np

from pfaffian.errors import ModelError
from pfaffian.kernel.remember import remembered
from pfaffian.maths.margins import vanishing
from pfaffian.model.joint import Joint
from pfaffian.model.mechanism import Mechanism, force_unit
from pfaffian.parts.rebound import gaps_of
from pfaffian.simulate.step.simulation import Simulation
from pfaffian.terms.applied_forces import named_forces
from pfaffian.terms.generic_states import at_generic_states, length_at, speed_units, tell
from pfaffian.terms.momentum import momenta, weight
from pfaffian.terms.pfaffian import target_rows
from pfaffian.terms.rates import branches
from pfaffian.terms.reduced_terms import (
    Translation,
    about_mass_centre,
    carries,
    first_joint,
    in_first_joint,
    in_moving_frame,
    indices,
    push,
    translation,
)
from pfaffian.terms.terms import Terms, shared


class BaseMomenta(NamedTuple):
    """Functions that compute the k momenta along the first joint.

    names, units: of the momenta.   v_units: units of the velocities along them.
    conserved: (k,) whether nothing but weight changes the momentum.
    f: (q, v, t, p) -> the momenta, their rates due to weight, and lower bounds of the inertias along them, (k, 1) each.
    """

    names: tuple[str, ...]
    units: tuple[str, ...]
    v_units: tuple[str, ...]
    conserved: np.ndarray
    f: ca.Function

    @property
    def pushed(self) -> np.ndarray:
        """Indices of the momenta that something other than weight changes."""
        return np.flatnonzero(~self.conserved)

    def at(self, x: np.ndarray, p: np.ndarray, t: float) -> list[np.ndarray]:
        """The three outputs of f, (runs, k) each, at x (runs, nq + nv or more) [q; v; ...] and parameters p (runs, np)."""
        nq, nv, given = self.f.size1_in(0), self.f.size1_in(1), [np.empty((len(x), len(self.names))) for _ in range(3)]
        buffer, evaluate = self.f.buffer()
        for run, (state, at_joint) in enumerate(zip(x, p, strict=True)):
            for i, a in enumerate((state[:nq], state[nq : nq + nv], np.array([t]), at_joint)):
                buffer.set_arg(i, memoryview(np.ascontiguousarray(a)))  # type: ignore[arg-type, call-arg]
            for i, a in enumerate(given):
                buffer.set_res(i, memoryview(a[run]))  # type: ignore[call-arg]
            evaluate()
        return given


@remembered(64)
def momenta_of(s: Simulation) -> BaseMomenta | None:
    """The momenta along a first joint that is a group, if the joint is free or conserves some of them; otherwise None.

    None also for a reduced system, whose state contains these momenta; for parameters that change during the run; and for a
    first joint that moves inertia that belongs to no body.
    """
    m = s.mechanism
    if s.system.inertia is not None or s.changing.visible:
        return None
    with suppress(ModelError):
        first = first_joint(m)
        if _plain(m, first):
            along = _along(m, first)
            return along if first.kind.name == "free" or along.conserved.any() else None
    return None


def _plain(m: Mechanism, first: Joint) -> bool:
    """Whether bodies alone contribute to the momentum along the first joint: no armature, screw, mimic joint or given pose."""
    if first.distribution is not None or first.kind.screws or not first.armature.is_zero():
        return False
    return not any(j.pose is not None or (j.mimic and first.name in j.mimic.joints) for j in m.joints)


def _along(m: Mechanism, first: Joint) -> BaseMomenta:
    """The BaseMomenta along the first joint of a mechanism."""
    T, entries = shared(m), indices(m, (first.name,))
    k, frame = T.kinematics, translation(T.kinematics, first)
    n, moved = len(frame.entries) if frame else 0, carries(k, first)
    momentum = about_mass_centre(in_moving_frame(T, frame), first, frame) if frame else in_first_joint(T, first.name)
    rate = ca.SX(len(entries), 1)
    if frame:
        momentum[:n, 0] = frame.R @ momenta(T)[frame.entries, 0]
        rate[:n, 0] = frame.mass * frame.pull(m.gravity)
    inertia = ca.vertcat(*[moved.mass] * n, *[ca.trace(moved.I)] * (len(entries) - n))
    outputs = [ca.densify(x) for x in (momentum, rate, inertia)]
    f = ca.Function("momenta", [T.q, T.v, T.t, m.p_symbols], outputs)
    v_units = tuple(m.v_units[i] for i in entries)
    units = tuple(f"{force_unit(unit)} s" for unit in v_units)
    conserved = np.zeros(len(entries), dtype=bool) if m.servos else ~_pushed(T, first, frame)
    return BaseMomenta(tuple(m.v_names[i] for i in entries), units, v_units, conserved, f)


def _pushed(T: Terms, first: Joint, frame: Translation | None) -> np.ndarray:
    """(k,) whether anything but weight along the slides changes each momentum."""
    m, k, entries = T.mechanism, T.kinematics, indices(T.mechanism, (first.name,))
    pushed, unit = np.zeros(len(entries), dtype=bool), speed_units(m, m.p_defaults)
    for F, size in _causes(T, frame, unit):
        at_joint = ca.sparsify(F[entries, :])
        if not at_joint.nnz():
            continue
        rates = ca.diag(unit[entries]) @ ca.horzcat(*[push(k, first, frame, x) for x in ca.horzsplit(at_joint)])
        if branches(ca.Function("pushed", [T.q, T.v, T.t, m.p_symbols], [ca.densify(rates)])):
            pushed[sorted(set(ca.sparsify(rates).row()))] = True
            continue
        at = at_generic_states(m, {"rates": rates, "size": size})
        question = f"whether forces change the momentum along {first.name!r}"
        pushed |= ~tell(m, question, vanishing(at["rates"], at["size"])).all(axis=1)
    return pushed


def _causes(T: Terms, frame: Translation | None, unit: np.ndarray) -> Iterator[tuple[ca.SX, ca.SX]]:
    """Forces and constraint rows (nv, n) that may change a momentum, each with the size (1, n) of its columns.

    unit: (nv,) the rate that counts as 1 for each velocity.
    """
    m, k = T.mechanism, T.kinematics
    across = frame.remaining_gravity(m.gravity) if frame else m.gravity
    if not across.is_zero():
        mass = sum((link.mass for link in k.tree.links), ca.SX(0))
        yield weight(k, across), mass * ca.norm_2(m.gravity) * length_at(m, m.p_defaults)
    rows = (*(target_rows(k, c).A for c in m.ideal), *(gap.J for gap in gaps_of(k).values()))
    for F in (*named_forces(k).values(), T.B, *(A.T for A in rows)):
        yield F, ca.horzcat(ca.SX(1, 0), *[ca.norm_2(unit * x) for x in ca.horzsplit(F)])
