"""Maps between changes of any state and changes of [q; v], for implicit steps, which solve for velocities."""

from __future__ import annotations

import casadi as ca

from pfaffian.simulate.step.method import Tangent
from pfaffian.states.abstract_system import AbstractSystem
from pfaffian.states.variables import AS_THEY_ARE, Variables
from pfaffian.terms.terms import Terms


def tangent(s: AbstractSystem, corrects: bool) -> Tangent:
    """How changes of the stepped state and changes of [q; v] follow from each other.   corrects: see `Tangent`."""
    return _of_another_state(s, corrects) if s.other_state else _of_velocities(s, corrects)


def _of_velocities(s: AbstractSystem, corrects: bool) -> Tangent:
    """The Tangent of [q; v], whose v is stepped along other axes at the same q."""
    nq, n, axes = s.mechanism.nq, s.nx, s.variables

    def into(x: ca.SX, t: ca.SX, r: ca.SX) -> tuple[ca.SX, ca.SX]:
        return r[:nq, 0], axes.state(ca.vertcat(x[:nq, 0], r[nq:n, 0]))[nq:n, 0]

    def onto(x: ca.SX, t: ca.SX, dq: ca.SX, dv: ca.SX) -> ca.SX:
        return ca.vertcat(dq, axes.stepped(ca.vertcat(x[:nq, 0], dv))[nq:n, 0])

    show = lambda x, t: (x[:nq, 0], x[nq:n, 0])  # noqa: E731
    return Tangent(n, corrects, show, lambda q, v, t: ca.vertcat(q, v), into, onto)


def _of_another_state(s: AbstractSystem, corrects: bool) -> Tangent:
    """The Tangent of any other state, by the derivatives of `show` and `enter`."""
    m, nq = s.mechanism, s.mechanism.nq

    def terms(q: ca.SX, v: ca.SX, t: ca.SX) -> Terms:
        return Terms(m, q, v, ca.SX(m.nu, 1), t)

    def into(x: ca.SX, t: ca.SX, r: ca.SX) -> tuple[ca.SX, ca.SX]:
        at = ca.SX.sym("x", s.nx)
        moved = ca.jtimes(ca.vertcat(*s.q_and_v(at, t)), at, _unstepped(s.variables, at, r))
        moved = ca.substitute(moved, at, x[: s.nx, 0])
        return moved[:nq, 0], moved[nq:, 0]

    def onto(x: ca.SX, t: ca.SX, dq: ca.SX, dv: ca.SX) -> ca.SX:
        T = terms(ca.SX.sym("q", nq), ca.SX.sym("v", m.nv), t)
        here = s.q_and_v(x[: s.nx, 0], t)
        moved = ca.substitute(s.pushed(x, T, dq, dv), ca.vertcat(T.q, T.v), ca.vertcat(*here))
        at = ca.SX.sym("x", s.nx)
        return ca.substitute(ca.jtimes(s.variables.stepped(at), at, moved), at, x[: s.nx, 0])

    def enter(q: ca.SX, v: ca.SX, t: ca.SX) -> ca.SX:
        return s.entered(terms(q, v, t), q, v)

    return Tangent(s.nx, corrects, lambda x, t: s.q_and_v(x[: s.nx, 0], t), enter, into, onto)


def _unstepped(variables: Variables, x: ca.SX, r: ca.SX) -> ca.SX:
    """The change of a state x (symbols) for a change r of its stepped variables."""
    if variables is AS_THEY_ARE:
        return r
    X = ca.SX.sym("X", x.numel())
    return ca.substitute(ca.jtimes(variables.state(X), X, r), X, variables.stepped(x))
