"""Components of a momentum that gravity conserves, across or about its direction, each as a separate entry of the state.

Where gravity is not along an axis of the first joint, all entries of the joint's momentum mu change, and only combinations
c = C mu of them are conserved, such as the momentum along a horizontal direction. Computed from the entries, c is only as exact
as they are, and they grow as long as the machine falls. Here c is a part of the state, with the rate zero, and after each step
mu is corrected by the smallest change that restores C mu = c. [chhabra14 thm. 3.3.3 for a subgroup]
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import casadi as ca
import numpy as np

from pfaffian.dynamics.motion import Motion
from pfaffian.errors import ModelError
from pfaffian.evaluate.reduction_plan import other_values
from pfaffian.evaluate.symmetry import Symmetry
from pfaffian.maths.margins import ZERO
from pfaffian.model.joint import Joint
from pfaffian.states.abstract_system import StatePart
from pfaffian.states.extended_state import AnyReduced, extended
from pfaffian.terms.terms import Terms, symbols


def with_constants(within: AnyReduced, found: Symmetry, first: Joint, turns_about_centre: bool) -> AnyReduced:
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
    words = f"also conserved, each as a separate entry: {'; '.join(names)}"
    constants = Constants(within, names, slice(m.nq, m.nq + C.shape[1]), tuple(tuple(row) for row in C.tolist()))
    return extended(within, StatePart("constant", names, units), constants, words)


class Constants(NamedTuple):
    """Entries c = C mu of a state.

    within: the system with the momenta mu.   momenta: the entries of its state that C combines.   C: rows of unit length.
    """

    within: AnyReduced
    names: tuple[str, ...]
    momenta: slice
    C: tuple[tuple[float, ...], ...]

    @property
    def key(self) -> str:
        """The components."""
        return str(self.C)

    def of(self, T: Terms, x: ca.SX) -> ca.SX:
        """C mu."""
        return ca.SX(ca.DM(self.C) @ x[self.momenta, 0])

    def rate(self, T: Terms) -> ca.SX:
        """Zero."""
        return ca.SX(len(self.C), 1)

    def corrected(self, x: ca.SX, y: ca.SX, t: ca.SX) -> ca.SX:
        """The state with the momenta moved by the smallest change to C mu = c."""
        C, x = ca.DM(self.C), ca.SX(self.within.project(x, t))
        x[self.momenta, 0] += C.T @ (y - C @ x[self.momenta, 0])
        return ca.vertcat(x, y)

    def signals(self, T: Terms, y: ca.SX, signals: dict[str, ca.SX]) -> dict[str, ca.SX]:
        """Those of the system."""
        return signals

    def inertia(self, T: Terms, inertia: ca.SX) -> ca.SX:
        """That of the system."""
        return inertia

    def check(self, p: np.ndarray) -> None:
        """Raise ModelError if a component is not conserved at some of the parameters p (runs, np)."""
        m = self.within.mechanism
        for words, at, _ in other_values(m, p):
            for state in at:
                change = np.array(self.rates()(*state)).ravel()
                error = np.abs(np.array(self.C) @ change)
                if (error > ZERO * np.linalg.norm(change)).any():
                    name = self.names[int(np.argmax(error))]
                    raise ModelError(
                        f"{words}the momentum {name} of {m.name!r} is not conserved, although it is near the defaults; "
                        "reduce a mechanism that has these values as its defaults, or run it without reduction"
                    )

    def rates(self) -> ca.Function:
        """(q, v, t, p) -> rates of the momenta that C combines, at zero inputs."""
        m = self.within.mechanism
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
