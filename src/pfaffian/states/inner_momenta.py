"""Momenta of symmetries in the first body's own frame, such as the spin of a top, as part of a reduced state.

A reduced state stores the momentum of the whole machine in space axes. A momentum that belongs to motions of the first joint on
the child's side is a function of it and of the attitude: the spin of Lagrange's top is L . a, with a its axis. Computed that
way it is conserved only as exactly as the attitude is known. Here it is integrated as part of the state, so that only forces
change it, and after each step the attitude is corrected to agree with it, by the smallest rotation of the whole machine.
[chhabra14 section 4.4]
"""

from __future__ import annotations

from typing import NamedTuple

import casadi as ca
import numpy as np

from pfaffian.errors import ModelError
from pfaffian.evaluate.effects import NONE, changes_of, changing
from pfaffian.evaluate.reduction_plan import other_values
from pfaffian.evaluate.symmetry import Inner, inner_symmetries
from pfaffian.maths.linear import solve_definite
from pfaffian.maths.margins import vanishing
from pfaffian.maths.values import values
from pfaffian.states.abstract_system import StatePart
from pfaffian.states.extended_state import AnyReduced, extended
from pfaffian.states.reduced_state import ReducedState
from pfaffian.states.variables import normalised
from pfaffian.terms.common_motion import CommonMotion
from pfaffian.terms.generic_states import generic_states, tell
from pfaffian.terms.momentum import changes, momenta
from pfaffian.terms.terms import Terms, shared

ALIGNED = 1e-4
"""Angle [rad] between a momentum and an axis below which the spin about the axis does not determine the axis."""

ITERATIONS = 2
"""Newton iterations of the correction, which starts from an attitude that is off by the error of one step."""

SIGNALS = ("momentum_drift", "momentum_rate_error")
"""Signals of a reduced state that get one more entry for each inner momentum."""


def with_inner_momenta(within: ReducedState) -> AnyReduced:
    """The system with the momenta of symmetries on the child's side of its first joints in its state, if there are any."""
    base = within.r.base
    assert base is not None
    joints = base.roots[base.base].joints if isinstance(base, CommonMotion) else (base.name,)
    found = inner_symmetries(within.mechanism, joints)
    chosen = _changed_by_rotation(within, found) if found.names else []
    if not chosen:
        return within
    names, labels = (tuple(texts[i] for i in chosen) for texts in (found.names, found.labels))
    words = f"conserved too, with the attitude corrected to agree after each step: {'; '.join(labels)}"
    momenta_inside = InnerMomenta(within, Inner(found.q, found.Y[:, chosen], names, labels))
    part = StatePart("inner_momentum", names, ("N m s",) * len(names))
    return extended(within, part, momenta_inside, words, _named(within, names))


class InnerMomenta(NamedTuple):
    """Momenta along motions of the first body, as entries of a state.   within: the system.   inner: these motions."""

    within: ReducedState
    inner: Inner

    @property
    def key(self) -> str:
        """The motions."""
        return f"{self.inner.names} {self.inner.labels}"

    def of(self, T: Terms, x: ca.SX) -> ca.SX:
        """The inner momenta."""
        return _along(self.inner, T, momenta(T))

    def rate(self, T: Terms) -> ca.SX:
        """The applied forces along the motions."""
        return _along(self.inner, T, T.generalised_input)

    def corrected(self, x: ca.SX, y: ca.SX, t: ca.SX) -> ca.SX:
        """The state with its attitude corrected.

        It is a function of separate symbols: implicit integrators nest it, and derivatives would expand everything before it.
        """
        at, goal, when = ca.SX.sym("x", x.numel()), ca.SX.sym("y", y.numel()), ca.SX.sym("t")
        p = self.within.mechanism.p_symbols
        f = ca.Function("project", [at, goal, when, p], [ca.densify(_corrected(self.within, self.inner, at, goal, when))])
        return ca.SX(f(x, y, t, p))

    def signals(self, T: Terms, y: ca.SX, signals: dict[str, ca.SX]) -> dict[str, ca.SX]:
        """The signals of the system, with the entries of the inner momenta appended."""
        Y = _motions(self.inner, T)
        added = dict(zip(SIGNALS, (_along(self.inner, T, momenta(T)) - y, changes(T, Y)["inertia"]), strict=True))
        return signals | {name: ca.vertcat(signals.get(name, ca.SX(0, 1)), value) for name, value in added.items()}

    def inertia(self, T: Terms, inertia: ca.SX) -> ca.SX:
        """(k, 1) the inertia along the momenta of the system, and along the motions."""
        return ca.vertcat(inertia, _inertia(T, _motions(self.inner, T)))

    def check(self, p: np.ndarray) -> None:
        """Raise ModelError if at the parameters p (runs, np) a momentum is not conserved, although it is near the defaults."""
        m = self.within.mechanism
        T = shared(m)
        momentum_changes = changes_of(T, _motions(self.inner, T))
        for words, at, _ in other_values(m, p):
            lost = np.flatnonzero((changing(momentum_changes, at)[:, :2] > NONE).any(axis=1))
            if lost.size:
                raise ModelError(
                    f"{words}the momentum of {self.inner.names[lost[0]]!r} of {m.name!r} is not conserved, although it is near "
                    "the defaults; reduce a mechanism that has these parameters as its defaults, or run it without reduction"
                )


def _corrected(within: ReducedState, inner: Inner, x: ca.SX, target: ca.SX, t: ca.SX) -> ca.SX:
    """[x; target] with the attitude in x at which the implied inner momenta equal the target."""
    m = within.mechanism
    q, rest = normalised(m, x[: m.nq, 0]), x[m.nq :, 0]
    turning = [i for i, unit in enumerate(m.v_units) if unit == "rad/s"]
    for _ in range(ITERATIONS):
        at = ca.vertcat(q, rest)
        T, slope = within.terms_in_frame(at, t), _slope(within, inner, at, t)
        # Each momentum of a turning joint counts: where they cancel in the whole, rounding alone would decide the attitude.
        damping = ALIGNED**2 * ca.sumsqr(momenta(T)[turning, 0]) + np.finfo(float).tiny
        off = target - _implied_momenta(within, inner, at, t)
        off = solve_definite(slope @ slope.T + damping * ca.SX.eye(len(inner.names)), off)
        q = normalised(m, q + T.kinematics.kinematic_matrix @ (within.turns(T) @ (slope.T @ off)))
    return ca.vertcat(q, rest, target)


def _motions(inner: Inner, T: Terms) -> ca.SX:
    """Y (nv, n), the motions at the Terms T."""
    return ca.substitute(inner.Y, inner.q, T.q)


def _along(inner: Inner, T: Terms, x: ca.SX) -> ca.SX:
    """Y^T x, the parts of x (nv, 1) along the motions."""
    return _motions(inner, T).T @ x


def _inertia(T: Terms, Y: ca.SX) -> ca.SX:
    """(n, 1) the inertia along motions Y (nv, n)."""
    return ca.sum1(Y * (T.M @ Y)).T


def _changed_by_rotation(within: ReducedState, inner: Inner) -> list[int]:
    """Indices of the motions whose momenta change with a rotation of the whole machine while its momentum stays."""
    m = within.mechanism
    T, x = shared(m), ca.SX.sym("x", within.nx)
    outputs = within.enter(T), _inertia(T, _motions(inner, T))
    f = ca.Function("slopes", [x, T.t, m.p_symbols], [ca.densify(_slope(within, inner, x, T.t))])
    enter = ca.Function("enter", [T.q, T.v, T.t, m.p_symbols], [ca.densify(y) for y in outputs])
    slopes, sizes = [], []
    for q, v, t, p in generic_states(m):
        state, size = values(enter, q, v, t, p)
        slopes.append(values(f, state, t, p)[0])
        sizes.append(size)
    fixed = tell(m, "which inner momenta determine the attitude", vanishing(np.array(slopes), np.array(sizes)))
    return np.flatnonzero(~fixed.all(axis=1)).tolist()


def _implied_momenta(within: ReducedState, inner: Inner, x: ca.SX, t: ca.SX) -> ca.SX:
    """(n, 1) inner momenta that follow from the momentum and the attitude in the state x of the system."""
    T = within.terms_in_frame(x, t)
    return _along(inner, T, momenta(T))


def _slope(within: ReducedState, inner: Inner, x: ca.SX, t: ca.SX) -> ca.SX:
    """(n, k) derivatives of `_implied_momenta` along rotations of the whole machine."""
    nq = within.mechanism.nq
    T, q = within.terms_in_frame(x, t), ca.SX.sym("q", nq)
    rotations, rest = T.kinematics.kinematic_matrix @ within.turns(T), x[nq:, 0]
    implied = _implied_momenta(within, inner, ca.vertcat(q, rest), t)
    slopes = [ca.substitute(ca.jtimes(implied, q, q_dot), q, x[:nq, 0]) for q_dot in ca.horzsplit(rotations)]
    return ca.horzcat(*slopes)


def _named(within: ReducedState, names: tuple[str, ...]) -> tuple[StatePart, ...]:
    """Names and units of the signals of the system, with those of the inner momenta appended."""
    parts = {part.name: part for part in within.named}
    for name, unit in zip(SIGNALS, ("N m s", "N m"), strict=True):
        part = parts.get(name, StatePart(name, (), ()))
        parts[name] = StatePart(name, (*part.names, *names), (*part.units, *(unit,) * len(names)))
    return tuple(parts.values())
