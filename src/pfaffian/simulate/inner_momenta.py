"""Momenta of symmetries that act from within: the spin of a top, all of that of an even body.

The momentum of what carries all is held in space. What belongs to motions of the first joint from its child's side is then a
function of that momentum and of the attitude: the spin of Lagrange's top is L . a, a its axis. Left to itself it is conserved
as exactly as the attitude is known. Here it is a part of the state, which forces alone change, and after each step the attitude
is put where the momentum has it, by the shortest turn of all that moves. [chhabra14 section 4.4]
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
from pfaffian.evaluate.reduction_plan import changes_of, changing, other_values, somewhere
from pfaffian.evaluate.symmetry import NOTHING, Inner, inner_symmetries
from pfaffian.maths.linear import solve_definite
from pfaffian.model.mechanism import Mechanism
from pfaffian.simulate.system import StatePart, System
from pfaffian.simulate.variables import normalise
from pfaffian.terms.momentum import changes, momenta
from pfaffian.terms.terms import Terms, symbols

BEHIND = 1e-4
"""Angle [rad] between a momentum and an axis below which the spin about that axis does not tell where the axis is."""

ITERATIONS = 2
"""Of Newton, from an attitude that is off by the error of one step."""

STATES = 3
"""Random states at which a turn of all that moves must change a momentum for it to tell of the attitude."""

SIGNALS = ("momentum_drift", "momentum_rate_error")
"""Of a reduced state, which are longer by the momenta held here."""


class _InnerMomenta(NamedTuple):
    """system: that carries momenta in space.   inner: the motions.
    turns: Terms -> (nv, k) velocities that turn all.   seen: (x, t) -> Terms at a state of the system, as seen from its frame.
    """

    system: System
    inner: Inner
    turns: Callable[[Terms], ca.SX]
    seen: Callable[[ca.SX, ca.SX], Terms]

    @property
    def m(self) -> Mechanism:
        return self.system.mechanism

    def split(self, x: ca.SX) -> tuple[ca.SX, ca.SX]:
        """The state of the system, and the momenta held."""
        return x[: self.system.nx, 0], x[self.system.nx :, 0]

    def along(self, T: Terms, x: ca.SX) -> ca.SX:
        """Y^T x."""
        return self.at(T).T @ x

    def at(self, T: Terms) -> ca.SX:
        """Y."""
        return ca.substitute(self.inner.Y, symbols(self.m).q, T.q)


def with_inner_momenta(
    system: System, turns: Callable[[Terms], ca.SX], seen: Callable[[ca.SX, ca.SX], Terms], joints: tuple[str, ...]
) -> System:
    """The system of a reduced state with the momenta of symmetries from the child's side of these joints, where there are some.

    turns, seen: see `_Held`.
    """
    inner = inner_symmetries(system.mechanism, joints)
    telling = _telling(_InnerMomenta(system, inner, turns, seen)) if inner.names else []
    if not telling:
        return system
    names, labels = (tuple(of[i] for i in telling) for of in inner[1:])
    r = _InnerMomenta(system, Inner(inner.Y[:, telling], names, labels), turns, seen)
    return replace(
        system,
        parts=(*system.parts, StatePart("inner_momentum", names, ("N m s",) * len(names))),
        enter=lambda T: ca.vertcat(system.enter(T), r.along(T, momenta(T))),
        show=lambda x, t: system.show(r.split(x)[0], t),
        rate=partial(_rate, r),
        project=partial(_project, r),
        signals=partial(_signals, r),
        named=_named(r),
        about=(*system.about, f"kept too, the attitude being put where that has it after each step: {'; '.join(labels)}"),
        check=partial(_check, r),
        uncorrected=(*system.uncorrected, *range(system.nx, system.nx + len(names))),
        inertia=lambda T: ca.vertcat(_inertia(system, T), ca.sum1(r.at(T) * (T.M @ r.at(T))).T),
    )


def _telling(r: _InnerMomenta) -> list[int]:
    """Those of the fields whose momenta a turn of all that moves changes, the momenta of the state given."""
    T = symbols(r.m)
    x = ca.SX.sym("x", r.system.nx)
    seen = r.seen(x, T.t)
    slope, size = _slope(r, x, T.t), ca.sqrt(ca.sumsqr(momenta(seen)))
    f = ca.Function("telling", [x, T.t, r.m.p_symbols], [ca.densify(slope), size])
    enter = ca.Function("enter", [T.q, T.v, T.t, r.m.p_symbols], [r.system.enter(T)])
    random, found = np.random.default_rng(71), np.zeros(len(r.inner.names), dtype=bool)
    for _ in range(STATES):
        q, v, t, p = somewhere(r.m, random)
        there, most = (np.array(x) for x in f(enter(q, v, t, p), t, p))
        found |= np.abs(there).max(axis=1) > NOTHING * most.item()
    return np.flatnonzero(found).tolist()


def _implied_momenta(r: _InnerMomenta, x: ca.SX, t: ca.SX) -> ca.SX:
    """(n, 1) what the state of the system says of the momenta held."""
    T = r.seen(x, t)
    return r.along(T, momenta(T))


def _slope(r: _InnerMomenta, x: ca.SX, t: ca.SX) -> ca.SX:
    """(n, k) how it changes with turns of all that moves."""
    T, q = r.seen(x, t), ca.SX.sym("q", r.m.nq)
    around, rest = T.kinematics.kinematic_matrix @ r.turns(T), x[r.m.nq :, 0]
    at = _implied_momenta(r, ca.vertcat(q, rest), t)
    moved = [ca.substitute(ca.jtimes(at, q, way), q, x[: r.m.nq, 0]) for way in ca.horzsplit(around)]
    return ca.horzcat(*moved)


def _project(r: _InnerMomenta, x: ca.SX, t: ca.SX) -> ca.SX:
    """Written at symbols of its own, because implicit integrators nest it, and derivatives would go through all before it."""
    at, when = ca.SX.sym("x", x.numel()), ca.SX.sym("t")
    f = ca.Function("project", [at, when, r.m.p_symbols], [ca.densify(_agreeing(r, at, when))])
    return ca.SX(f(x, t, r.m.p_symbols))


def _agreeing(r: _InnerMomenta, x: ca.SX, t: ca.SX) -> ca.SX:
    x, target = r.split(x)
    q, rest = normalise(r.m, x[: r.m.nq, 0]), x[r.m.nq :, 0]
    turning = [i for i, unit in enumerate(r.m.v_units) if unit == "rad/s"]
    for _ in range(ITERATIONS):
        at = ca.vertcat(q, rest)
        T, slope = r.seen(at, t), _slope(r, at, t)
        # Of parts too: the whole may have no momentum while its parts do, and then rounding alone would tell of the attitude.
        behind = BEHIND**2 * ca.sumsqr(momenta(T)[turning, 0]) + np.finfo(float).tiny
        off = solve_definite(slope @ slope.T + behind * ca.SX.eye(len(r.inner.names)), target - _implied_momenta(r, at, t))
        q = normalise(r.m, q + T.kinematics.kinematic_matrix @ (r.turns(T) @ (slope.T @ off)))
    return ca.vertcat(q, rest, target)


def _rate(r: _InnerMomenta, T: Terms, motion: Motion, x: ca.SX) -> ca.SX:
    return ca.vertcat(r.system.rate(T, motion, r.split(x)[0]), r.along(T, T.generalised_input))


def _signals(r: _InnerMomenta, T: Terms, motion: Motion, x: ca.SX) -> dict[str, ca.SX]:
    x, carried = r.split(x)
    others = dict(r.system.signals(T, motion, x)) if r.system.signals else {}
    own = dict(zip(SIGNALS, (r.along(T, momenta(T)) - carried, changes(T, r.at(T))["inertia"]), strict=True))
    return others | {name: ca.vertcat(others.get(name, ca.SX(0, 1)), value) for name, value in own.items()}


def _named(r: _InnerMomenta) -> tuple[StatePart, ...]:
    had = {part.name: part for part in r.system.named}
    for name, unit in zip(SIGNALS, ("N m s", "N m"), strict=True):
        before = had.get(name, StatePart(name, (), ()))
        had[name] = StatePart(name, (*before.names, *r.inner.names), (*before.units, *(unit,) * len(r.inner.names)))
    return tuple(had.values())


def _inertia(system: System, T: Terms) -> ca.SX:
    return system.inertia(T) if system.inertia else ca.SX(0, 1)


def _check(r: _InnerMomenta, p: np.ndarray) -> None:
    """Raise ModelError where parameters (runs, np) break what was found near their defaults."""
    if r.system.check:
        r.system.check(p)
    T = symbols(r.m)
    watched = changes_of(T, r.at(T))
    for words, at, _ in other_values(r.m, p):
        lost = np.flatnonzero(changing(watched, at)[:, :2].any(axis=1))
        if lost.size:
            raise ModelError(
                f"{words}the momentum of {r.inner.names[lost[0]]!r} of {r.m.name!r} is not conserved, which near the defaults "
                "it is; reduce a mechanism that has these as its defaults, or run it as it is"
            )
