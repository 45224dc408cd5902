"""Steady motions, in which no velocity changes, and eigenvalues of the motions near them, with exact derivatives by parameters.

    R(q, v, lambda; p) = [phi; eta; force; A v_dot - b] = 0   at v_dot = 0

is the steady motion; it follows the parameters as R_x dx = -R_p dp. Near it, with the accelerations a among the unknowns,

    s E x = F x,   F = d[q_dot; a; force; A a - b] / d(q, v, a, lambda),   E = diag(1, 1, 0, 0, 0)

has the eigenvalues of `linearise`, and E is constant. With the left vector y that y^T (F - s E) = 0 and y^T E x = 1,
ds = y^T dF x, where dF includes the change of the steady motion.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from pfaffian.analysis.linearise import linearise
from pfaffian.dynamics.response import Residuals, residuals
from pfaffian.errors import RunError
from pfaffian.model.mechanism import Mechanism
from pfaffian.terms.terms import Terms, symbols
from pfaffian.terms.traced_now import remembered

ITERATIONS = 60
"""Most Newton iterations to a steady motion."""

STRIDE = 0.3
"""Largest change of a coordinate in one iteration."""

CLOSED = 1e-11
"""Residual below which a motion counts as steady, relative to the forces and rows in it."""

ACCEPTED = 1e-8
"""Residual that is accepted after the last iteration: rounding may leave more than CLOSED where forces nearly cancel."""

DEPENDENT = 1e-10
"""A singular value below this fraction of the largest one counts as zero."""


class SteadyMotion(NamedTuple):
    """A steady motion.   q: (nq,).   v: (nv,).   multipliers: (r,) of all rows.   by_p: (nq + nv + r, np) their changes."""

    q: np.ndarray
    v: np.ndarray
    multipliers: np.ndarray
    by_p: np.ndarray


def steady(m: Mechanism, q: np.ndarray, v: np.ndarray, given_rates: np.ndarray, u: np.ndarray, p: np.ndarray) -> SteadyMotion:
    """The steady motion nearest to q (nq,) and v (nv,).   given_rates: (nv,) of bool, velocities that must not change.

    Raises RunError: none was found.
    """
    f, nq, nv = _steady(m), m.nq, m.nv
    x = np.concatenate([q, v, np.zeros(f.carried)])
    free = np.concatenate([np.ones(nv, bool), ~given_rates, np.ones(f.carried, bool)])
    for _ in range(ITERATIONS):
        r, J, J_p, onto, size = f.at(x, u, p)
        left = float(np.abs(r / size).max(initial=0.0))
        if not np.isfinite(left) or left <= CLOSED:
            break
        step = -_inverse(J[:, free], size) @ (r / size)
        change = np.zeros(len(free))
        change[free] = step / max(1.0, np.abs(step[:nv]).max(initial=0.0) / STRIDE)
        x = _unit(m, x + onto @ change)
    if not left <= ACCEPTED:
        raise RunError(f"fit_modes: there is no steady motion of {m.name!r} near the given state; what is left is {left:.2g}")
    by_p = onto[:, free] @ -_inverse(J[:, free], size) @ (J_p / size[:, None])
    return SteadyMotion(x[:nq], x[nq : nq + nv], x[nq + nv :], by_p)


def _inverse(J: np.ndarray, size: np.ndarray) -> np.ndarray:
    """The pseudo-inverse of the rows, each relative to its size."""
    return np.linalg.pinv(J / size[:, None], rcond=DEPENDENT)


def _unit(m: Mechanism, x: np.ndarray) -> np.ndarray:
    """The motion with quaternions of unit length."""
    for at in m.quaternions.values():
        x[at] /= np.linalg.norm(x[at])
    return x


class _Steady(NamedTuple):
    """f: (q, v, multipliers, u, p) -> residuals, their derivatives by [displacement; v; multipliers] and by p, K, their sizes.
    carried: number of multipliers."""

    f: ca.Function
    carried: int

    def at(self, x: np.ndarray, u: np.ndarray, p: np.ndarray) -> tuple[np.ndarray, ...]:
        """Residuals (r,), derivatives (r, 2 nv + carried) and (r, np), d x / d [displacement; v; multipliers], sizes (r,)."""
        nq, nv = self.f.numel_in(0), self.f.numel_in(1)
        r, J, J_p, K, size = (np.array(y) for y in self.f(x[:nq], x[nq : nq + nv], x[nq + nv :], u, p))
        onto = np.zeros((len(x), 2 * nv + self.carried))
        onto[:nq, :nv] = K
        onto[nq:, nv:] = np.eye(nv + self.carried)
        return r[:, 0], J, J_p, onto, size[:, 0]


class _MotionEquations(NamedTuple):
    """The equations of motion in T.   r: residuals.   given: [q, v, multipliers, u, p]."""

    T: Terms
    r: Residuals
    given: list[ca.SX]

    @property
    def multipliers(self) -> ca.SX:
        return self.given[2]

    def steadily(self, x: list[ca.SX]) -> list[ca.SX]:
        """Expressions at v_dot = 0 and t = 0."""
        still = [self.r.motion.v_dot, self.T.t], [ca.SX.zeros(self.T.mechanism.nv), ca.SX.zeros(1)]
        found: list[ca.SX] = ca.substitute([ca.densify(y) for y in x], *still)
        return found


def _equations(m: Mechanism) -> _MotionEquations:
    """The equations of motion of a mechanism."""
    T = symbols(m)
    r = residuals(T)
    return _MotionEquations(T, r, [T.q, T.v, ca.vertcat(r.motion.multipliers, r.motion.mu), T.u, m.p_symbols])


@remembered(16)
def _steady(m: Mechanism) -> _Steady:
    """The residuals of a steady motion."""
    at = _equations(m)
    T, r, lam = at.T, at.r, at.multipliers
    K, rows = T.kinematics.kinematic_matrix, ca.vertcat(T.rows.phi, T.rows.eta, r.rows, r.servo)
    whole = ca.vertcat(rows, r.force)
    by_x = ca.horzcat(ca.jacobian(whole, T.q) @ K, ca.jacobian(whole, ca.vertcat(T.v, lam)))
    weight = ca.norm_2(ca.vertcat(T.generalised_input, T.c - T.f, r.pushing)) + 1e-9
    size = ca.vertcat(ca.SX.ones(rows.numel()), weight * ca.SX.ones(m.nv))
    outputs = [whole, by_x, ca.jacobian(whole, m.p_symbols), K, size]
    return _Steady(ca.Function("steady", at.given, at.steadily(outputs)), lam.numel())


class EigenvalueSlope(NamedTuple):
    """An eigenvalue s [1/s] and its derivatives (np,) by the parameters."""

    s: complex
    by_p: np.ndarray


def modes(m: Mechanism, at: SteadyMotion, u: np.ndarray, p: np.ndarray, chosen: Any) -> list[EigenvalueSlope]:
    """Eigenvalues of the motion near a steady one, of which `chosen(eigenvalues)` returns the indices, with derivatives."""
    near, f = linearise(m, at.q, at.v, u, parameters=p), _pencil(m)
    given = [at.q, at.v, at.multipliers, u, p]
    F, E = (np.array(y) for y in f.matrices(*given))
    found = list[EigenvalueSlope]()
    for i in chosen(near.eigenvalues):
        s, r = complex(near.eigenvalues[i]), near.vectors[:, i]
        moved = np.concatenate([near.dq @ r, near.dv @ r, s * (near.dv @ r)])
        rest = np.linalg.lstsq(
            F[:, len(moved) :], -(F[:, : len(moved)] @ moved) + s * (E[:, : len(moved)] @ moved), rcond=DEPENDENT
        )[0]
        x = np.concatenate([moved, rest])
        y = _left(F - s * E, E @ x)
        by_x, by_p = _complex_gradient(f.gradient, given, y, x)
        found.append(EigenvalueSlope(s, by_p + by_x @ at.by_p))
    return found


def _left(A: np.ndarray, Ex: np.ndarray) -> np.ndarray:
    """The y with y^T A = 0 and y^T E x = 1."""
    size = np.abs(A).max(axis=1)
    size = np.where(size > 0, size, 1.0)
    rows = np.vstack([(A / size[:, None]).T, Ex / size])
    y = np.linalg.lstsq(rows, np.append(np.zeros(A.shape[1]), 1.0), rcond=DEPENDENT)[0]
    return np.asarray(y / size)


def _complex_gradient(f: ca.Function, given: list[np.ndarray], y: np.ndarray, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The gradient of y^T F x by [q; v; multipliers] and by p, for complex y and x."""
    parts = {
        (a, b): [np.array(g)[:, 0] for g in f(*given, getattr(y, a), getattr(x, b))]
        for a in ("real", "imag")
        for b in ("real", "imag")
    }
    real = [a - b for a, b in zip(parts["real", "real"], parts["imag", "imag"], strict=True)]
    imaginary = [a + b for a, b in zip(parts["real", "imag"], parts["imag", "real"], strict=True)]
    by_x, by_p = (a + 1j * b for a, b in zip(real, imaginary, strict=True))
    return by_x, by_p


class _Pencil(NamedTuple):
    """matrices: (q, v, multipliers, u, p) -> F, E.   gradient: (..., y, x) -> that of y^T F x by [q; v; multipliers] and p."""

    matrices: ca.Function
    gradient: ca.Function


@remembered(16)
def _pencil(m: Mechanism) -> _Pencil:
    """The equations of motion near a steady motion."""
    at = _equations(m)
    T, r, lam = at.T, at.r, at.multipliers
    unknown = ca.vertcat(T.q, T.v, r.motion.v_dot, lam)
    whole = ca.vertcat(T.kinematics.q_dot, r.motion.v_dot, r.force, r.rows, r.servo)
    E = ca.diag(ca.vertcat(ca.SX.ones(m.nq + m.nv), ca.SX(m.nv + lam.numel(), 1)))
    y, x = ca.SX.sym("y", whole.numel()), ca.SX.sym("x", unknown.numel())
    weighted = ca.dot(y, at.steadily([ca.jtimes(whole, unknown, x)])[0])
    by = [ca.densify(ca.gradient(weighted, z)) for z in (ca.vertcat(T.q, T.v, lam), m.p_symbols)]
    (F,) = at.steadily([ca.jacobian(whole, unknown)])
    return _Pencil(ca.Function("pencil", at.given, [F, ca.densify(E)]), ca.Function("gradient", [*at.given, y, x], by))
