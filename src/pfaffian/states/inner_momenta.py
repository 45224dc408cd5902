"""Momenta of symmetries in the first body's own frame, such as the spin of a top, as part of a reduced state.

A reduced state stores the momentum of the whole machine in space axes. A momentum that belongs to motions of the first joint on
the child's side is a function of it and of the attitude: the spin of Lagrange's top is L . a, with a its axis. Computed that
way it is conserved only as exactly as the attitude is known. Here it is integrated as part of the state, so that only forces
change it, and after each step the attitude is corrected to agree with it, by the smallest rotation of the whole machine.
[chhabra14 section 4.4]
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import casadi as ca
import numpy as np

from pfaffian.dynamics.motion import Motion
from pfaffian.errors import ModelError
from pfaffian.evaluate.effects import NONE, changes_of, changing
from pfaffian.evaluate.reduction_plan import other_values
from pfaffian.evaluate.symmetry import Inner, inner_symmetries
from pfaffian.maths.linear import solve_definite
from pfaffian.maths.values import values
from pfaffian.model.mechanism import Mechanism
from pfaffian.states.system import StatePart, System
from pfaffian.states.variables import normalise
from pfaffian.terms.generic_states import generic_states, tell, vanishing
from pfaffian.terms.momentum import changes, momenta
from pfaffian.terms.terms import Terms, shared

ALIGNED = 1e-4
"""Angle [rad] between a momentum and an axis below which the spin about the axis does not determine the axis."""

ITERATIONS = 2
"""Newton iterations of the correction, which starts from an attitude that is off by the error of one step."""

SIGNALS = ("momentum_drift", "momentum_rate_error")
"""Signals of a reduced state that get one more entry for each inner momentum."""


class _InnerMomenta(NamedTuple):
    """A reduced system and the motions whose momenta its state is extended by.

    system: the system without them.   inner: the motions.   turns: Terms -> (nv, k) velocities that rotate the whole machine.
    terms_at: (x, t) -> Terms at a state of the system, relative to its frame.
    """

    system: System
    inner: Inner
    turns: Callable[[Terms], ca.SX]
    terms_at: Callable[[ca.SX, ca.SX], Terms]

    @property
    def m(self) -> Mechanism:
        """The mechanism of the system."""
        return self.system.mechanism

    def split(self, x: ca.SX) -> tuple[ca.SX, ca.SX]:
        """The state of the system without inner momenta, and the inner momenta."""
        return x[: self.system.nx, 0], x[self.system.nx :, 0]

    def along(self, T: Terms, x: ca.SX) -> ca.SX:
        """Y^T x, the parts of x (nv, 1) along the motions."""
        return self.at(T).T @ x

    def at(self, T: Terms) -> ca.SX:
        """Y (nv, n), the motions at the Terms T."""
        return ca.substitute(self.inner.Y, self.inner.q, T.q)


def with_inner_momenta(
    system: System, turns: Callable[[Terms], ca.SX], terms_at: Callable[[ca.SX, ca.SX], Terms], joints: tuple[str, ...]
) -> System:
    """The system with the momenta of symmetries on the child's side of these joints added to its state, if there are any.

    turns: Terms -> (nv, k) velocities that rotate the whole machine.
    terms_at: (x, t) -> Terms at a state of the system, relative to its frame.
    """
    inner = inner_symmetries(system.mechanism, joints)
    chosen = _changed_by_rotation(_InnerMomenta(system, inner, turns, terms_at)) if inner.names else []
    if not chosen:
        return system
    names, labels = (tuple(texts[i] for i in chosen) for texts in (inner.names, inner.labels))
    r = _InnerMomenta(system, Inner(inner.q, inner.Y[:, chosen], names, labels), turns, terms_at)
    return replace(
        system,
        parts=(*system.parts, StatePart("inner_momentum", names, ("N m s",) * len(names))),
        enter=lambda T: ca.vertcat(system.enter(T), r.along(T, momenta(T))),
        show=lambda x, t: system.show(r.split(x)[0], t),
        rate=partial(_rate, r),
        project=partial(_project, r),
        signals=partial(_signals, r),
        named=_named(r),
        about=(*system.about, f"conserved too, with the attitude corrected to agree after each step: {'; '.join(labels)}"),
        check=partial(_check, r),
        uncorrected=(*system.uncorrected, *range(system.nx, system.nx + len(names))),
        inertia=lambda T: ca.vertcat(_inertia(system, T), ca.sum1(r.at(T) * (T.M @ r.at(T))).T),
    )


def _changed_by_rotation(r: _InnerMomenta) -> list[int]:
    """Indices of the motions whose momenta change with a rotation of the whole machine while its momentum stays."""
    T, x = shared(r.m), ca.SX.sym("x", r.system.nx)
    Y = r.at(T)
    inertia = ca.sum1(Y * (T.M @ Y)).T
    f = ca.Function("slopes", [x, T.t, r.m.p_symbols], [ca.densify(_slope(r, x, T.t))])
    enter = ca.Function("enter", [T.q, T.v, T.t, r.m.p_symbols], [ca.densify(y) for y in (r.system.enter(T), inertia)])
    slopes, sizes = [], []
    for q, v, t, p in generic_states(r.m):
        state, size = values(enter, q, v, t, p)
        slopes.append(values(f, state, t, p)[0])
        sizes.append(size)
    fixed = tell(r.m, "which inner momenta determine the attitude", vanishing(np.array(slopes), np.array(sizes)))
    return np.flatnonzero(~fixed.all(axis=1)).tolist()


def _implied_momenta(r: _InnerMomenta, x: ca.SX, t: ca.SX) -> ca.SX:
    """(n, 1) inner momenta that follow from the momentum and the attitude in the state x of the system."""
    T = r.terms_at(x, t)
    return r.along(T, momenta(T))


def _slope(r: _InnerMomenta, x: ca.SX, t: ca.SX) -> ca.SX:
    """(n, k) derivatives of `_implied_momenta` along rotations of the whole machine."""
    T, q = r.terms_at(x, t), ca.SX.sym("q", r.m.nq)
    rotations, rest = T.kinematics.kinematic_matrix @ r.turns(T), x[r.m.nq :, 0]
    implied = _implied_momenta(r, ca.vertcat(q, rest), t)
    slopes = [ca.substitute(ca.jtimes(implied, q, q_dot), q, x[: r.m.nq, 0]) for q_dot in ca.horzsplit(rotations)]
    return ca.horzcat(*slopes)


def _project(r: _InnerMomenta, x: ca.SX, t: ca.SX) -> ca.SX:
    """The state with its attitude corrected.

    It is a function of separate symbols: implicit integrators nest it, and derivatives would expand everything before it.
    """
    at, when = ca.SX.sym("x", x.numel()), ca.SX.sym("t")
    f = ca.Function("project", [at, when, r.m.p_symbols], [ca.densify(_corrected(r, at, when))])
    return ca.SX(f(x, t, r.m.p_symbols))


def _corrected(r: _InnerMomenta, x: ca.SX, t: ca.SX) -> ca.SX:
    """x with the attitude at which the implied inner momenta equal those of the state."""
    x, target = r.split(x)
    q, rest = normalise(r.m, x[: r.m.nq, 0]), x[r.m.nq :, 0]
    turning = [i for i, unit in enumerate(r.m.v_units) if unit == "rad/s"]
    for _ in range(ITERATIONS):
        at = ca.vertcat(q, rest)
        T, slope = r.terms_at(at, t), _slope(r, at, t)
        # Each momentum of a turning joint counts: where they cancel in the whole, rounding alone would decide the attitude.
        damping = ALIGNED**2 * ca.sumsqr(momenta(T)[turning, 0]) + np.finfo(float).tiny
        off = solve_definite(slope @ slope.T + damping * ca.SX.eye(len(r.inner.names)), target - _implied_momenta(r, at, t))
        q = normalise(r.m, q + T.kinematics.kinematic_matrix @ (r.turns(T) @ (slope.T @ off)))
    return ca.vertcat(q, rest, target)


def _rate(r: _InnerMomenta, T: Terms, motion: Motion, x: ca.SX) -> ca.SX:
    """Rate of the state: that of the system, and the applied forces along the motions."""
    return ca.vertcat(r.system.rate(T, motion, r.split(x)[0]), r.along(T, T.generalised_input))


def _signals(r: _InnerMomenta, T: Terms, motion: Motion, x: ca.SX) -> dict[str, ca.SX]:
    """The signals of the system, with the entries of the inner momenta appended."""
    x, inner = r.split(x)
    signals = dict(r.system.signals(T, motion, x)) if r.system.signals else {}
    added = dict(zip(SIGNALS, (r.along(T, momenta(T)) - inner, changes(T, r.at(T))["inertia"]), strict=True))
    return signals | {name: ca.vertcat(signals.get(name, ca.SX(0, 1)), value) for name, value in added.items()}


def _named(r: _InnerMomenta) -> tuple[StatePart, ...]:
    """Names and units of the signals, with those of the inner momenta appended."""
    parts = {part.name: part for part in r.system.named}
    for name, unit in zip(SIGNALS, ("N m s", "N m"), strict=True):
        part = parts.get(name, StatePart(name, (), ()))
        parts[name] = StatePart(name, (*part.names, *r.inner.names), (*part.units, *(unit,) * len(r.inner.names)))
    return tuple(parts.values())


def _inertia(system: System, T: Terms) -> ca.SX:
    """Inertia along the momenta of the system; empty if the system gives none."""
    return system.inertia(T) if system.inertia else ca.SX(0, 1)


def _check(r: _InnerMomenta, p: np.ndarray) -> None:
    """Raises ModelError: at the parameters p (runs, np) a momentum is not conserved, although it is near the defaults."""
    if r.system.check:
        r.system.check(p)
    T = shared(r.m)
    momentum_changes = changes_of(T, r.at(T))
    for words, at, _ in other_values(r.m, p):
        lost = np.flatnonzero((changing(momentum_changes, at)[:, :2] > NONE).any(axis=1))
        if lost.size:
            raise ModelError(
                f"{words}the momentum of {r.inner.names[lost[0]]!r} of {r.m.name!r} is not conserved, although it is "
                "near the defaults; reduce a mechanism that has these parameters as its defaults, or run it without reduction"
            )
