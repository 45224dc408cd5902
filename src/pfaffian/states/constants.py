"""Components of a momentum that gravity conserves, across or about its direction, each as a separate entry of the state.

Where gravity is not along an axis of the first joint, all entries of the joint's momentum mu change, and only combinations
c = C mu of them are conserved, such as the momentum along a horizontal direction. Computed from the entries, c is only as exact
as they are, and they grow as long as the machine falls. Here c is a part of the state, with the rate zero, and after each step
mu is corrected by the smallest change that restores C mu = c. [chhabra14 thm. 3.3.3 for a subgroup]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from pfaffian.dynamics.motion import Motion
from pfaffian.errors import ModelError
from pfaffian.evaluate.reduction_plan import other_values
from pfaffian.evaluate.symmetry import Symmetry
from pfaffian.model.joint import Joint
from pfaffian.model.mechanism import Mechanism
from pfaffian.states.system import StatePart, System
from pfaffian.terms.generic_states import ZERO
from pfaffian.terms.terms import Terms, symbols


class _Extended(NamedTuple):
    """A system whose state is extended by conserved components.

    system: the system without them.   begin: where the momenta of the first joint begin in its state.   C: rows of unit length
    over these momenta.
    """

    system: System
    begin: int
    C: tuple[tuple[float, ...], ...]

    @property
    def rows(self) -> ca.DM:
        """C as a matrix."""
        return ca.DM(self.C)

    @property
    def at(self) -> slice:
        """The entries of the state that C combines."""
        return slice(self.begin, self.begin + len(self.C[0]))

    def split(self, x: ca.SX) -> tuple[ca.SX, ca.SX]:
        """The state of the system, and the conserved components."""
        return x[: self.system.nx, 0], x[self.system.nx :, 0]


def with_constants(system: System, found: Symmetry, first: Joint, turns_about_centre: bool) -> System:
    """Extend the state of a system by the conserved components of the first joint's momentum that are along none of its axes.

    Returns the system itself if there are none.
    system: its state begins with q and that momentum.   turns_about_centre: whether the angular momentum is that about the mass
    centre; then only the components along slides are combined.
    """
    C = _conserved(found, first, turns_about_centre)
    if not C.size:
        return system
    m = system.mechanism
    r = _Extended(system, m.nq, tuple(tuple(row) for row in C.tolist()))
    slides = len(first.parts[0].subgroup.along)
    names = tuple(_label(row, m.v_names[m.v_slices[first.name]]) for row in C)
    units = tuple("N s" if np.abs(row[:slides]).max(initial=0.0) > ZERO else "N m s" for row in C)
    return replace(
        system,
        parts=(*system.parts, StatePart("constant", names, units)),
        enter=partial(_enter, r),
        show=lambda x, t: system.show(r.split(x)[0], t),
        rate=lambda T, motion, x: ca.vertcat(system.rate(T, motion, r.split(x)[0]), ca.SX(len(C), 1)),
        project=partial(_project, r),
        signals=None if system.signals is None else partial(_signals, r),
        about=(*system.about, f"also conserved, each as a separate entry: {'; '.join(names)}"),
        check=partial(_check, r, names),
    )


def _conserved(found: Symmetry, first: Joint, turns_about_centre: bool) -> np.ndarray:
    """C (n, k), orthonormal rows; none if each conserved direction is an axis, or an input acts along the first joint."""
    group = first.parts[0].subgroup
    rows = found.basis[list(group.axes)].T
    driven = any(x.joint == first.name for motions in found.driven.values() for x in motions)
    if driven or not rows.size:
        return np.zeros((0, group.nv))
    if turns_about_centre:
        turning = rows[:, len(group.along) :]
        rows = rows - turning @ np.linalg.pinv(turning, rcond=ZERO) @ rows
    span = np.linalg.pinv(rows, rcond=ZERO) @ rows
    is_axis = np.abs(np.diag(span) - 1) < ZERO
    C = list[np.ndarray]()
    for axis in np.flatnonzero(~is_axis):
        left = span[axis] - sum((c * c[axis] for c in C), np.zeros(group.nv))
        if np.linalg.norm(left) > ZERO:
            C.append(np.where(np.abs(left) > ZERO, left, 0.0) / np.linalg.norm(left))
    return np.array(C).reshape(-1, group.nv)


def _label(row: np.ndarray, names: Sequence[str]) -> str:
    """The name of a component: the combination of velocities that it belongs to."""
    terms = [f"{x:+.3g} {name}" for x, name in zip(row, names, strict=True) if x]
    return " ".join(terms).removeprefix("+")


def _enter(r: _Extended, T: Terms) -> ca.SX:
    """The extended state at Terms."""
    x = ca.SX(r.system.enter(T))
    return ca.vertcat(x, r.rows @ x[r.at, 0])


def _project(r: _Extended, x: ca.SX, t: ca.SX) -> ca.SX:
    """The corrected state: the momenta moved by the smallest change to C mu = c."""
    x, c = r.split(x)
    x = ca.SX(x if r.system.project is None else r.system.project(x, t))
    x[r.at, 0] += r.rows.T @ (c - r.rows @ x[r.at, 0])
    return ca.vertcat(x, c)


def _signals(r: _Extended, T: Terms, motion: Motion, x: ca.SX) -> Any:
    """The signals of the system, at the extended state x."""
    assert r.system.signals is not None
    return r.system.signals(T, motion, r.split(x)[0])


def _check(r: _Extended, names: Sequence[str], p: np.ndarray) -> None:
    """Raise ModelError if a component is not conserved at some of the parameters p (runs, np)."""
    if r.system.check is not None:
        r.system.check(p)
    m = r.system.mechanism
    for words, at, _ in other_values(m, p):
        for state in at:
            change = np.array(_rates(m, r)(*state)).ravel()
            error = np.abs(np.array(r.C) @ change)
            if (error > ZERO * np.linalg.norm(change)).any():
                raise ModelError(
                    f"{words}the momentum {names[int(np.argmax(error))]} of {m.name!r} is not conserved, although it is near "
                    "the defaults; reduce a mechanism that has these values as its defaults, or run it without reduction"
                )


def _rates(m: Mechanism, r: _Extended) -> ca.Function:
    """(q, v, t, p) -> rates of the momenta that C combines, at zero inputs."""
    T = symbols(m)
    idle = Terms(m, T.q, T.v, ca.SX(m.nu, 1), T.t)
    rate = r.system.rate(idle, Motion(ca.SX(m.nv, 1), ca.SX(m.nv, 1), ca.SX(1)), r.system.enter(idle))
    return ca.Function("rates", [T.q, T.v, T.t, m.p_symbols], [ca.densify(rate[r.at, 0])])
