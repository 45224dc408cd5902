"""Static equilibria: configurations in which the constraints carry all forces, how stable they are, and their branches.

    phi(q) = 0,   Z^T (f + B u - c) = 0   at v = 0, the columns of Z a basis of the velocities that the constraints allow

by Newton's iterations with the slope of Z^T (f + B u - c + A^T lambda), lambda held: on holonomic constraints the Hessian of
the Lagrangian on their tangent space. Rows may depend on each other. Z is orthonormal in the metric of M, so the eigenvalues
of minus that slope are the squares of angular frequencies.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from pfaffian.dynamics.motion import RANK_TOLERANCE
from pfaffian.errors import ModelError, RunError
from pfaffian.evaluate.arrays import as_flag, as_number, as_whole, by_name, one_or_many, parameter_values, runs, some_runs
from pfaffian.maths.tree_factor import solve_W
from pfaffian.model.mechanism import Mechanism, as_mechanism, random_configuration
from pfaffian.simulate.assemble import APART, assemble, fixed_by_name
from pfaffian.simulate.newton import ACCEPTED
from pfaffian.simulate.variables import normalise
from pfaffian.terms.connection import refuse_distributions
from pfaffian.terms.forces import named_forces
from pfaffian.terms.lengths import default_length, scales
from pfaffian.terms.pfaffian import ACCELERATION, POSITION, VELOCITY
from pfaffian.terms.present import remembered
from pfaffian.terms.terms import Terms, symbols

ITERATIONS = 200
"""Of Newton's method from one start."""

BALANCED = 1e-10
"""Part of the machine's forces that may stay out of balance."""

TINY = 1e-13
"""[rad, m] Change that is no change."""

STRIDE = 0.3
"""Largest change in one iteration [rad, the machine's length]."""

NEUTRAL = 1e-9
"""Part of the largest stiffness, or of g over the machine's length, below which a stiffness counts as zero."""

STARTS, FEW = 32, 60
"""Random starts from which branches are searched, and iterations from each."""


class Equilibrium(NamedTuple):
    """A static equilibrium, or (runs, ...) or (branches, ...) of them.

    q: (..., nq) the configuration.   stable: (...) whether every small motion that is left has a stiffness above zero.
    stiffness: (..., n) [1/s^2] per inertia, of the small motions that are left, the least first: its square root is their
        angular frequency. Real parts, where forces have no potential.
    modes: (..., nv, n) these motions, as velocities of unit kinetic energy 1/2.
    reaction: (..., nv) generalised force of the constraints, and of whoever holds what is held.
    residual: (...) of the balance of forces, relative to the machine's forces.
    q_names, v_names: of the entries.
    """

    q: np.ndarray
    stable: np.ndarray
    stiffness: np.ndarray
    modes: np.ndarray
    reaction: np.ndarray
    residual: np.ndarray
    q_names: tuple[str, ...]
    v_names: tuple[str, ...]

    @property
    def named(self) -> dict[str, Any]:
        """Coordinate name -> its value, or (runs,) or (branches,) values."""
        return by_name(self.q, self.q_names)

    def __repr__(self) -> str:
        stable = "stable" if np.all(self.stable) else "unstable" if not np.any(self.stable) else "some stable"
        return f"<Equilibrium: {one_or_many(self.q, self.q_names)}, {stable}>"

    @property
    def hertz(self) -> np.ndarray:
        """(..., n) [Hz] of the small motions without damping; below zero the rate over 2 pi at which they grow."""
        return np.sign(self.stiffness) * np.sqrt(np.abs(self.stiffness)) / (2 * np.pi)

    @property
    def unstable(self) -> np.ndarray:
        """(...) number of motions that grow."""
        return (self.stiffness < -_zero(self.stiffness)).sum(axis=-1)


def _zero(stiffness: np.ndarray) -> np.ndarray:
    return NEUTRAL * np.maximum(np.abs(np.nan_to_num(stiffness)).max(axis=-1, initial=0.0, keepdims=True), 1.0)


@dataclass(frozen=True)
class Case:
    """One machine under constant inputs.   fixed: (nv,) of bool.   length: [m]."""

    m: Mechanism
    u: np.ndarray
    t: float
    p: np.ndarray
    fixed: np.ndarray
    length: float


class _Balance(NamedTuple):
    """Forces at a configuration, in mass-weighted coordinates x = L^T dy.

    phi: (rows,) over the lengths of their rows.   rows: (rows, nv) of these and of what is held.   Z, Y: (nv, n) motions that
    the position rows leave, and that all rows leave.   r: (n,) forces along Y.   back: L^-T.   out: |r| relative to the forces.
    off: largest phi over its scale.   slope, reaction: (nv, nv) and (nv,), along y.   by_p: (rows + nv, np) slopes of phi and
    forces by the parameters.
    """

    phi: np.ndarray
    rows: np.ndarray
    Z: np.ndarray
    Y: np.ndarray
    r: np.ndarray
    back: np.ndarray
    out: float
    off: float
    slope: np.ndarray
    reaction: np.ndarray
    phi_p: np.ndarray
    force_p: np.ndarray

    @property
    def stiffness(self) -> np.ndarray:
        """(n, n) of the motions Y, minus the slope of the forces along them."""
        return -self.Y.T @ (self.back.T @ self.slope @ self.back) @ self.Y

    @property
    def solved(self) -> bool:
        return self.off <= ACCEPTED and (self.out <= BALANCED or self.near)

    @property
    def near(self) -> bool:
        """Whether a change of TINY would balance all forces: where springs are free, their forces are rounding."""
        K = self.stiffness
        if not K.size or not np.isfinite(self.out):
            return not K.size and bool(np.isfinite(self.out))
        y = np.linalg.lstsq(K, self.r, rcond=None)[0]
        left = np.abs(K @ y - self.r).max() <= TINY * np.abs(K).max()
        return bool(left and np.abs(self.back @ (self.Y @ y)).max() <= TINY)


def equilibrium(
    m: Mechanism,
    q: Any = None,
    *,
    hold: Iterable[str] = (),
    u: Any = None,
    parameters: Any = None,
    t: float = 0.0,
    branches: int = 1,
    stable: bool = True,
) -> Equilibrium:
    """A configuration in which a machine stays at rest: Z^T (f + B u - c) = 0 and phi = 0. How stable it is comes with it.

    The stiffness of the small motions is that of the Lagrangian's Hessian on the tangent space of the constraints, with the
    kinetic energy as metric. Dry friction vanishes at rest and holds nothing.

    Args:
        m: the mechanism. Its constraints may be redundant.
        q: where to start: (nq,), (runs, nq) or {coordinate: number}; neutral where left out. It is put onto the constraints.
        hold: names of coordinates or joints that stay at their values in q; the reaction says what that takes.
        u: inputs (nu,), (runs, nu) or {name: number}, zero where left out.
        parameters: {name: value or (runs,)} or an array in the mechanism's order; defaults where left out.
        t: time [s].
        branches: above 1, up to so many different equilibria of one state, stable and unstable ones, the nearest first; they
            are searched from random configurations, so one may be missed. 1 by default.
        stable: follow the forces, and so end where the machine would come to rest; False ends at the nearest equilibrium of
            any kind. True by default.
    Returns:
        q (..., nq), whether it is stable, the stiffness (..., n) of the motions that are left with their `hertz` and modes, the
        constraints' reaction (..., nv) and the residual; leading axes (runs,) or (branches,).
    Raises RunError: there is none that Newton's iterations find from q, with the coordinate that pulls most; q does not close.
    Raises ModelError: wrong names, shapes or numbers, servo constraints, rows of accelerations alone, branches of a batch.

    Example:
        A rod of 2 kg that a spring of 15 N m/rad holds upright falls to one side:

        >>> import pfaffian as pf
        >>> rod = pf.body("rod", mass=2.0, com=(0, 0, 1))
        >>> hinge = pf.joint("hinge", "revolute", "world", "rod", axis=(0, 1, 0), stiffness=15.0)
        >>> m = pf.mechanism("rod on a spring", [rod], [hinge])
        >>> found = pf.equilibrium(m, {"hinge": 0.1})
        >>> found.q.round(4), bool(found.stable), found.hertz.round(3)  # sin(q) = 15 / 19.62 q
        (array([1.2349]), True, array([0.329]))
    """
    as_mechanism(m)
    refuse_distributions(m, "equilibrium")
    _refuse(m)
    many, t = as_whole(branches, "branches", most=STARTS), as_number(t, "t")
    stable = as_flag(stable, "stable")
    closed, p = assemble(m, q, parameters=parameters, t=t, hold=hold).q, parameter_values(m, parameters)
    begin = np.atleast_2d(closed)
    inputs = runs(u, m.u_names, np.zeros(m.nu), "u")
    count = some_runs({"q, parameters": len(begin), "u": len(inputs)})
    if many > 1 and count > 1:
        raise ModelError(f"branches takes one state at a time, not {count}")
    starts, p, inputs = (np.broadcast_to(x, (count, x.shape[1])) for x in (begin, p, inputs))
    fixed = fixed_by_name(m, hold)
    cases = [Case(m, inputs[i], t, p[i], fixed, default_length(m) or 1.0) for i in range(count)]
    if many > 1:
        return _stacked(m, *_several(cases[0], starts[0], hold, many))
    ends = [_from(case, start, stable) for case, start in zip(cases, starts, strict=True)]
    batch = count > 1 or any(np.ndim(x) == 2 for x in (q, u, parameters))
    found = _stacked(m, cases, ends)
    return found if batch else found._replace(**{name: getattr(found, name)[0] for name in Equilibrium._fields[:6]})


def case_of(m: Mechanism, q: Any, hold: Iterable[str], u: Any, parameters: Any, t: Any) -> tuple[Case, np.ndarray]:
    """One machine under constant inputs, and its nearest equilibrium (nq,) of any kind. Raises as `equilibrium` does."""
    found = equilibrium(m, q, hold=hold, u=u, parameters=parameters, t=t, stable=False)
    if found.q.ndim > 1:
        raise ModelError(f"one state at a time is needed, not {len(found.q)}")
    inputs, p = runs(u, m.u_names, np.zeros(m.nu), "u")[0], parameter_values(m, parameters)[0]
    return Case(m, inputs, as_number(t, "t"), p, fixed_by_name(m, hold), default_length(m) or 1.0), found.q


def _refuse(m: Mechanism) -> None:
    if m.servos:
        raise ModelError(f"equilibrium: servo constraint {m.servos[0].name!r} moves the machine; hold=[...] holds a coordinate")
    if ACCELERATION in symbols(m).rows.level:
        raise ModelError("equilibrium: rows of accelerations alone say nothing about a machine at rest")


def _from(case: Case, start: np.ndarray, stable: bool) -> np.ndarray:
    """(nq,) the equilibrium from one start on the constraints. Raises RunError: none is found."""
    if np.isnan(start).any():
        raise RunError(
            f"equilibrium: some runs of {case.m.name!r} cannot be put onto their constraints; `assemble` tells which"
        )
    m, (q, at) = case.m, _solve(case, start, stable)
    if not at.solved:
        pull = at.back @ (at.Y @ at.r)
        worst = m.v_names[int(np.argmax(np.abs(pull)))] if len(pull) else ""
        raise RunError(
            f"no equilibrium of {m.name!r} was found from q: after {ITERATIONS} iterations {at.out:.2g} of its forces are out "
            f"of balance, most along {worst!r}; start elsewhere, hold=[...] what moves freely, or stable=False"
        )
    return q


def _several(case: Case, start: np.ndarray, hold: Iterable[str], count: int) -> tuple[list[Case], list[np.ndarray]]:
    """Up to `count` different equilibria, the nearest first."""
    m, random, found = case.m, np.random.default_rng(7), list[np.ndarray]()
    fixed = fixed_by_name(m, hold)
    size = scales(m, case.p[None], start[None], m.q_units)[0]
    away = [_with(m, random_configuration(m, random, case.length), start, fixed) for _ in range(STARTS - 2)]
    closed = assemble(m, np.array([start, start, *away]), parameters=case.p, t=case.t, hold=hold, search=False).q
    for i, begin in enumerate(closed[~np.isnan(closed).any(axis=1)]):
        q, at = _solve(case, begin, stable=i % 2 == 0, iterations=FEW)
        q = _nearest_turn(m, q, start)
        if at.solved and all((np.abs(q - other) > APART * size).any() for other in found):
            found.append(q)
    if not found:
        raise RunError(f"no equilibrium of {m.name!r} was found from {STARTS} starts; hold=[...] what moves freely")
    found.sort(key=lambda q: (round(float(np.linalg.norm((q - start) / size)), 6), *np.round((q - start) / size, 6)))
    return [case] * len(found[:count]), found[:count]


def _with(m: Mechanism, away: np.ndarray, start: np.ndarray, fixed: np.ndarray) -> np.ndarray:
    """The configuration `away` with what is held of `start`."""
    q = away.copy()
    for owner in m.owners:
        if owner.nv and fixed[m.v_slices[owner.name]].any():
            q[m.q_slices[owner.name]] = start[m.q_slices[owner.name]]
    return q


def _nearest_turn(m: Mechanism, q: np.ndarray, start: np.ndarray) -> np.ndarray:
    """q with the angles of hinges within half a turn of the start, and quaternions on its side."""
    q = q.copy()
    for j in m.joints:
        at = m.q_slices.get(j.name)
        if at is None or not j.nv:
            continue
        if j.kind.name == "revolute":
            q[at] -= 2 * np.pi * np.round((q[at] - start[at]) / (2 * np.pi))
        elif j.name in m.quaternions:
            last = slice(at.stop - 4, at.stop)
            q[last] *= np.sign(q[last] @ start[last]) or 1.0
    return q


def _solve(case: Case, q: np.ndarray, stable: bool, iterations: int = ITERATIONS) -> tuple[np.ndarray, _Balance]:
    """Newton's iterations from q; stable: along the forces in every direction, so that they end at a minimum of the energy."""
    at, most = balance(case, q), STRIDE
    for _ in range(iterations):
        if at.solved:
            break
        step = _step(at, stable)
        size = size_of(case, at.back @ step)
        step = step * min(1.0, most / max(size, 1e-300))
        ahead = moved(case, q, at.back @ step)
        there = balance(case, ahead)
        if not np.isfinite(there.out):
            most /= 4
            continue
        # Forces that now push back as hard as they pushed on mean that the step went too far.
        onward, back = at.r @ (at.Y.T @ step), there.r @ (there.Y.T @ step)
        if stable and onward > 0 and back < -0.5 * onward and at.off <= ACCEPTED:
            most = min(most, size) / 3
            continue
        most = min(STRIDE, 2 * most)
        q, at = ahead, there
    return q, at


def _step(at: _Balance, stable: bool) -> np.ndarray:
    """(nv,) mass-weighted change of q: onto the constraints, and towards the balance along them."""
    onto = -np.linalg.pinv(at.rows, rcond=RANK_TOLERANCE) @ at.phi
    slope = at.back.T @ at.slope @ at.back
    r, K = at.r + at.Y.T @ slope @ onto, -at.Y.T @ slope @ at.Z
    if not stable or at.Y.shape != at.Z.shape:
        return onto + at.Z @ (np.linalg.pinv(K, rcond=1e-12) @ r)
    k, V = np.linalg.eigh((K + K.T) / 2)
    least = 1e-8 * np.abs(k).max(initial=0.0) + 1e-300
    if k.min(initial=1.0) > least:
        return onto + at.Z @ np.linalg.solve(K, r)
    return onto + at.Z @ (V @ ((V.T @ r) / np.maximum(np.abs(k), least)))


def size_of(case: Case, dy: np.ndarray) -> float:
    linear = np.array([unit == "m/s" for unit in case.m.v_units])
    return float(np.abs(np.where(linear, dy / case.length, dy)).max(initial=0.0))


def moved(case: Case, q: np.ndarray, dy: np.ndarray) -> np.ndarray:
    return np.array(_functions(case.m)[2](q, dy, case.p)).ravel()


def balance(case: Case, q: np.ndarray) -> _Balance:
    """The forces at q."""
    statics, slopes, _ = _functions(case.m)
    state = q, case.u, case.t, case.p
    F, A, B, phi, M, scale, size = (np.array(x) for x in statics(*state))
    if not all(np.isfinite(x).all() for x in (F, A, B, phi)):
        return _lost(len(F))
    back = np.linalg.inv(np.linalg.cholesky(M)).T
    e = np.eye(len(F))[case.fixed]
    rows, along = (_unit(np.vstack([X, e]) @ back) for X in (A, B))
    phi = np.concatenate([phi.ravel(), np.zeros(len(e))]) / rows.lengths
    Z, Y = _kernel(rows.rows), _kernel(along.rows)
    f = back.T @ F.ravel()
    lam = -np.linalg.lstsq(along.rows.T, f, rcond=RANK_TOLERANCE)[0] / along.lengths if len(along.rows) else np.zeros(0)
    lam = np.where(np.isfinite(lam), lam, 0.0)
    slope, force_p, phi_p = (np.array(x) for x in slopes(*state, lam[: len(B)]))
    r = Y.T @ f
    off = float(np.abs(phi[: len(A)] * rows.lengths[: len(A)] * scale.ravel()).max(initial=0.0))
    reaction = np.vstack([B, e]).T @ lam
    phi_p = np.vstack([phi_p, np.zeros((len(e), phi_p.shape[1]))]) / rows.lengths[:, None]
    out = float(np.abs(r).max(initial=0.0) / max(size.item(), 1e-300))
    return _Balance(phi, rows.rows, Z, Y, r, back, out, off, slope, reaction, phi_p, force_p)


def _lost(n: int) -> _Balance:
    none, empty = np.zeros((n, 0)), np.zeros((0, n))
    return _Balance(
        np.zeros(0), empty, none, none, np.zeros(0), np.eye(n), np.inf, np.inf, np.eye(n), np.zeros(n), empty, empty
    )


class _Unit(NamedTuple):
    """rows: (rows, nv) of length one, or zero.   lengths: (rows,)."""

    rows: np.ndarray
    lengths: np.ndarray


def _unit(A: np.ndarray) -> _Unit:
    lengths = np.linalg.norm(A, axis=1)
    lengths = np.where(lengths > 0, lengths, 1.0)
    return _Unit(A / lengths[:, None], lengths)


def _kernel(A: np.ndarray) -> np.ndarray:
    """(nv, n) an orthonormal basis of what the rows leave."""
    _, sizes, V = np.linalg.svd(A, full_matrices=True) if len(A) else (0, np.zeros(0), np.eye(A.shape[1]))
    return V[int((sizes > RANK_TOLERANCE * sizes.max(initial=0.0)).sum()) :].T


@remembered(16)
def _functions(m: Mechanism) -> tuple[ca.Function, ca.Function, ca.Function]:
    """(q, u, t, p) -> F, position rows, all rows, phi, M, scales of phi, size of the forces; (..., lambda) -> slopes of F + B^T
    lambda by y and p, and of phi by p; (q, dy, p) -> q moved."""
    S = symbols(m)
    T = Terms(m, S.q, ca.SX.zeros(m.nv, 1), S.u, S.t)
    firm, every = T.rows.at(POSITION), T.rows.at(POSITION, VELOCITY)
    A, K = ca.densify(T.A), T.kinematics.kinematic_matrix
    lam, dy, p = ca.SX.sym("lam", len(every)), ca.SX.sym("dy", m.nv), m.p_symbols
    weight = ca.sqrt(sum((link.mass for link in T.kinematics.tree.links), ca.SX(0))) * ca.norm_2(m.gravity)
    forces = [*named_forces(T.kinematics).values(), T.B @ T.u]
    size = weight + sum((ca.norm_2(ca.densify(solve_W(T.factor, x))) for x in forces), ca.SX(0))
    state = [S.q, S.u, S.t, p]
    found = (T.force, A[firm, :], A[every, :], T.rows.phi[firm], T.M, T.inverse_scales(ACCEPTED)[firm], size)
    E = T.force + A[every, :].T @ lam
    slopes = (ca.jacobian(E, S.q) @ K, ca.jacobian(E, p), ca.jacobian(T.rows.phi[firm], p))
    moved = normalise(m, S.q + K @ dy)
    outputs = [[ca.densify(x) for x in part] for part in (found, slopes, (moved,))]
    return (
        ca.Function("statics", state, outputs[0]),
        ca.Function("slopes", [*state, lam], outputs[1]),
        ca.Function("moved", [S.q, dy, p], outputs[2]),
    )


def _stacked(m: Mechanism, cases: list[Case], ends: list[np.ndarray]) -> Equilibrium:
    """The answer at equilibria (nq,) each, with nan where one has fewer motions left."""
    each = []
    for case, q in zip(cases, ends, strict=True):
        at = balance(case, q)
        k, V = np.linalg.eig(at.stiffness)
        order = np.argsort(k.real, kind="stable")
        k, V = k[order], V[:, order]
        zero = NEUTRAL * max(float(np.abs(k).max(initial=0.0)), float(np.linalg.norm(m.value(m.gravity))) / case.length)
        stable = bool((k.real > zero).all() and (np.abs(k.imag) <= 1e-6 * (np.abs(k) + zero)).all())
        each.append((q, stable, k.real, (at.back @ at.Y @ V).real, at.reaction, at.out))
    most = max(x[2].size for x in each)
    wide = [np.pad(x[2], (0, most - x[2].size), constant_values=np.nan) for x in each]
    modes = [np.pad(x[3], ((0, 0), (0, most - x[2].size)), constant_values=np.nan) for x in each]
    columns = [[x[i] for x in each] for i in (0, 1, 4, 5)]
    ends_at, holds, reaction, residual = (np.array(x) for x in columns)
    return Equilibrium(ends_at, holds, np.array(wide), np.array(modes), reaction, residual, m.q_names, m.v_names)
