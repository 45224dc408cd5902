"""Components of a momentum that gravity conserves, across or about its direction, each as a separate entry of the state.

Where gravity is not along an axis of the first joint, all entries of the joint's momentum mu change, and only combinations
c = C mu of them are conserved, such as the momentum along a horizontal direction. Computed from the entries, c is only as exact
as they are, and they grow as long as the machine falls. Here c is a part of the state, with the rate zero, and after each step
mu is corrected by the smallest change that restores C mu = c. [chhabra14 thm. 3.3.3 for a subgroup]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import casadi as ca
import numpy as np

from pfaffian.dynamics.motion import Motion
from pfaffian.errors import ModelError
from pfaffian.evaluate.reduction_plan import other_values
from pfaffian.evaluate.symmetry import Symmetry
from pfaffian.model.joint import Joint
from pfaffian.model.mechanism import Mechanism
from pfaffian.states.abstract_system import AbstractSystem, StatePart
from pfaffian.states.inner_momenta import WithInnerMomenta
from pfaffian.states.reduced_state import ReducedState
from pfaffian.terms.generic_states import ZERO
from pfaffian.terms.terms import Terms, symbols


def with_constants(within: Within, found: Symmetry, first: Joint, turns_about_centre: bool) -> Within | WithConstants:
    """The system with the conserved components of the first joint's momentum that are along none of its axes, if there are any.

    within: its state begins with q and that momentum.   turns_about_centre: whether the angular momentum is that about the mass
    centre; then only the components along slides are combined.
    """
    C = _conserved(found, first, turns_about_centre)
    if not C.size:
        return within
    m, slides = within.mechanism, len(first.parts[0].subgroup.along)
    names = tuple(_label(row, m.v_names[m.v_slices[first.name]]) for row in C)
    units = tuple("N s" if np.abs(row[:slides]).max(initial=0.0) > ZERO else "N m s" for row in C)
    return WithConstants(
        mechanism=m,
        parts=(*within.parts, StatePart("constant", names, units)),
        named=within.named,
        about=(*within.about, f"also conserved, each as a separate entry: {'; '.join(names)}"),
        ends=within.ends,
        holds=within.holds,
        uncorrected=within.uncorrected,
        within=within,
        C=tuple(tuple(row) for row in C.tolist()),
    )


Within = ReducedState | WithInnerMomenta
"""The systems to whose state conserved components are added."""


@final
@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class WithConstants(AbstractSystem):
    """[x; c], x the state of the system `within`.   C: rows of unit length over the momenta that follow q in x; c = C mu."""

    mechanism: Mechanism
    parts: tuple[StatePart, ...]
    named: tuple[StatePart, ...]
    about: tuple[str, ...]
    ends: str | None
    holds: bool
    uncorrected: tuple[int, ...]
    within: Within
    C: tuple[tuple[float, ...], ...]
    name = ReducedState.name

    def enter(self, T: Terms) -> ca.SX:
        """[x; C mu]."""
        x = ca.SX(self.within.enter(T))
        return ca.vertcat(x, ca.DM(self.C) @ x[self.momenta, 0])

    def show(self, x: ca.SX, t: ca.SX) -> tuple[ca.SX, ca.SX]:
        """(q, v) of x."""
        return self.within.show(self.split(x)[0], t)

    def rate(self, T: Terms, motion: Motion, x: ca.SX) -> ca.SX:
        """[x_dot; 0]."""
        return ca.vertcat(self.within.rate(T, motion, self.split(x)[0]), ca.SX(len(self.C), 1))

    def project(self, x: ca.SX, t: ca.SX) -> ca.SX:
        """The corrected state: the momenta moved by the smallest change to C mu = c."""
        (x, c), C = self.split(x), ca.DM(self.C)
        x = ca.SX(self.within.project(x, t))
        x[self.momenta, 0] += C.T @ (c - C @ x[self.momenta, 0])
        return ca.vertcat(x, c)

    def inside(self, x: ca.SX, t: ca.SX) -> ca.SX:
        """That of the system."""
        return self.within.inside(self.split(x)[0], t)

    def signals(self, T: Terms, motion: Motion, x: ca.SX) -> dict[str, ca.SX]:
        """Those of the system."""
        return self.within.signals(T, motion, self.split(x)[0])

    def inertia(self, T: Terms) -> ca.SX:
        """That of the system."""
        return self.within.inertia(T)

    def check(self, p: np.ndarray) -> None:
        """Raise ModelError if a component is not conserved at some of the parameters p (runs, np)."""
        self.within.check(p)
        m, names = self.mechanism, self.parts[-1].names
        for words, at, _ in other_values(m, p):
            for state in at:
                change = np.array(self.rates()(*state)).ravel()
                error = np.abs(np.array(self.C) @ change)
                if (error > ZERO * np.linalg.norm(change)).any():
                    raise ModelError(
                        f"{words}the momentum {names[int(np.argmax(error))]} of {m.name!r} is not conserved, although it is "
                        "near the defaults; reduce a mechanism that has these values as its defaults, or run it without "
                        "reduction"
                    )

    def identity(self) -> str:
        """That of the system, and the components."""
        return f"{self.within.key} {self.C}"

    def changed(self) -> bool:
        """That of the system."""
        return self.within.changed()

    @property
    def momenta(self) -> slice:
        """The entries of the state that C combines."""
        return slice(self.mechanism.nq, self.mechanism.nq + len(self.C[0]))

    def split(self, x: ca.SX) -> tuple[ca.SX, ca.SX]:
        """The state of the system, and the conserved components."""
        return x[: self.within.nx, 0], x[self.within.nx :, 0]

    def rates(self) -> ca.Function:
        """(q, v, t, p) -> rates of the momenta that C combines, at zero inputs."""
        m = self.mechanism
        T = symbols(m)
        idle = Terms(m, T.q, T.v, ca.SX(m.nu, 1), T.t)
        still = Motion(ca.SX(m.nv, 1), ca.SX(m.nv, 1), ca.SX(1))
        rate = self.within.rate(idle, still, self.within.enter(idle))
        return ca.Function("rates", [T.q, T.v, T.t, m.p_symbols], [ca.densify(rate[self.momenta, 0])])


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
