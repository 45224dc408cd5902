"""Idle motions, such as the spin of a rod between two ball joints: nothing drives them, and nothing depends on them."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import casadi as ca
import numpy as np

from pfaffian.control.allocation import UNCONTROLLABLE
from pfaffian.control.law import Control, motor_matrix
from pfaffian.control.reason import mainly, participation
from pfaffian.maths.margins import exceeding, free, unit_rows
from pfaffian.model.mechanism import Mechanism
from pfaffian.terms.applied_forces import named_forces
from pfaffian.terms.dependence import DEPENDENT
from pfaffian.terms.generic_states import at_generic_states, length_at, speed_units, tell
from pfaffian.terms.momentum import weight
from pfaffian.terms.terms import Terms, shared
from pfaffian.terms.traced_now import remembered

STILL = 1e-6
"""A body turns about its mass centre if this moves by less than this fraction of the machine's length per radian: files give
lengths with six digits."""


class Idle(NamedTuple):
    """The idle motions of a machine with its motors.

    number: of them at almost all states.   names: of the velocities that take part in them.
    """

    number: int = 0
    names: tuple[str, ...] = ()


def idle_motions(m: Mechanism, task: Callable[[Terms], ca.SX] | None = None) -> Idle:
    """The motions that constraints and motors leave, that move no mass centre, and on which no force acts.

    Bodies then turn about axes through their mass centres, whatever the others do.
    task: the rows J (k, nv) of a task that must not depend on them either; None for no task.
    """
    found = _idle_motions(m)
    if task is None or not found.number:
        return found
    J = at_generic_states(m, {"J": ca.densify(task(shared(m)))}, on_constraints=True)["J"]
    unit = speed_units(m, m.p_defaults)
    seen = [np.abs(unit_rows(x * unit) @ N).max(initial=0.0) for x, N in zip(J, _directions(m), strict=True)]
    return Idle() if max(seen) > STILL else found


def idle_under(law: Control, m: Mechanism) -> tuple[str, ...]:
    """The names of the velocities that a law with inputs by `allocate` leaves to themselves."""
    allocates = any(fault.meaning == UNCONTROLLABLE for fault in law.faults)
    return idle_motions(m).names if allocates else ()


@remembered(64)
def _idle_motions(m: Mechanism) -> Idle:
    found = _directions(m)
    count = min((N.shape[1] for N in found), default=0)
    if not count:
        return Idle()
    shares = np.max([participation(N) for N in found], axis=0)
    return Idle(count, tuple(mainly(shares, m.v_names, m.nv).split(", ")))


@remembered(64)
def _directions(m: Mechanism) -> list[np.ndarray]:
    """(nv, k) orthonormal idle motions at each of the generic states, along speeds of unit size; none where k differs."""
    T = shared(m)
    if not (m.ideal and m.actuators and T.kinematics.tree.links):
        return []
    pushing = sum(named_forces(T.kinematics).values(), ca.SX(m.nv, 1))
    given = {"f": pushing, "g": weight(T.kinematics)} | _geometry(m)
    at = at_generic_states(m, {n: ca.densify(x) for n, x in given.items()}, on_constraints=True)
    unit, found = speed_units(m, m.p_defaults)[:, None], list[np.ndarray]()
    for f, g, *geometry in zip(*at.values(), strict=True):
        N = _still(m, *geometry)
        relative = np.abs(N.T @ (unit * f)) / max(np.abs(unit * f).max(), np.abs(unit * g).max(), np.finfo(float).tiny)
        question = "whether a force acts on a motion that moves no mass centre"
        if tell(m, question, exceeding(relative, STILL)).any():
            return []
        found.append(N)
    return found if len({N.shape[1] for N in found}) == 1 else []


def idle_at(m: Mechanism, q: np.ndarray, v: np.ndarray, t: float, p: np.ndarray) -> np.ndarray:
    """(nv, k) velocities that span the idle motions at a state; k = 0 if the machine has none."""
    if not _idle_motions(m).number:
        return np.zeros((m.nv, 0))
    T = shared(m)
    f = ca.Function("at", [T.q, T.v, T.t, m.p_symbols], [ca.densify(x) for x in _geometry(m).values()])
    return speed_units(m, m.p_defaults)[:, None] * _still(m, *(np.array(x) for x in f(q, v, t, p)))


def _geometry(m: Mechanism) -> dict[str, ca.SX]:
    """A, B, and the Jacobians of all mass centres one below the other, at the symbols of `shared`."""
    T = shared(m)
    heavy = [b for b in m.bodies if not b.mass.is_zero()]
    centres = [T.kinematics.jacobian(b.name, "LOCAL_WORLD_ALIGNED", b.com)[:3, :] for b in heavy]
    return {"A": T.A, "B": motor_matrix(T), "C": ca.vertcat(ca.SX(0, m.nv), *centres)}


def _still(m: Mechanism, A: np.ndarray, B: np.ndarray, C: np.ndarray) -> np.ndarray:
    """(nv, k) orthonormal motions, along speeds of unit size, that constraints and motors leave and that keep mass centres."""
    unit, long = speed_units(m, m.p_defaults), length_at(m, m.p_defaults)
    N = tell(m, "which motions constraints and motors leave", free(np.vstack([A, B.T]) * unit, DEPENDENT))
    moved = C * unit @ N / long
    if not moved.size:
        return N
    _, sizes, V = np.linalg.svd(moved)
    moving = tell(m, "which motions without a motor move a mass centre", exceeding(sizes, STILL))
    return N @ V[int(moving.sum()) :].T
