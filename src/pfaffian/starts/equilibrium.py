"""Static equilibria: configurations in which the constraints carry all forces, their stability, and their branches.

    phi(q) = 0,   Z^T (f + B u - c) = 0   at v = 0, the columns of Z a basis of the velocities that the constraints allow

These equations are solved by Newton iterations with the derivative of Z^T (f + B u - c + A^T lambda) at constant lambda. For
holonomic constraints it is minus the Hessian of the Lagrangian on their tangent space. Rows may depend on each other. Z is
orthonormal in the metric of M, so the eigenvalues of minus that derivative are the squares of angular frequencies.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from pfaffian.control.reason import MOST_NAMED, mainly
from pfaffian.dynamics.motion import RANK_TOLERANCE
from pfaffian.errors import ModelError, RunError
from pfaffian.evaluate.arrays import as_batch, by_name, one_or_many, parameter_values
from pfaffian.evaluate.single_values import as_flag, as_number, as_whole, some_runs
from pfaffian.maths.span import basis, complement
from pfaffian.maths.spectrum import spectrum
from pfaffian.model.mechanism import Mechanism, as_mechanism, random_configuration
from pfaffian.output.plain import LONGEST, text
from pfaffian.starts.assemble import APART, assemble
from pfaffian.starts.given_start import fixed_by_name, names_to_hold
from pfaffian.starts.newton import ACCEPTED
from pfaffian.states.variables import normalised
from pfaffian.terms.applied_forces import named_forces
from pfaffian.terms.connection import refuse_distributions
from pfaffian.terms.lengths import scales
from pfaffian.terms.pfaffian import ACCELERATION, POSITION, VELOCITY
from pfaffian.terms.terms import Terms, symbols
from pfaffian.terms.traced_now import present, remembered

ITERATIONS = 200
"""Largest number of Newton iterations from one start."""

BALANCED = 1e-10
"""Largest unbalanced force at an equilibrium, relative to the machine's forces."""

NEGLIGIBLE = 1e-13
"""Change of a configuration that is negligible [rad, the machine's length]."""

STRIDE = 0.3
"""Largest change in one iteration [rad, the machine's length]."""

NEUTRAL = 1e-9
"""Fraction of the largest stiffness, or of the machine's forces over its length, below which a stiffness counts as zero."""

FLUTTER = 1e-6
"""Imaginary part of a stiffness, relative to its size, above which the motion oscillates and grows."""

STARTS, BRANCH_ITERATIONS = 32, 60
"""Number of starts from which branches are searched, and of iterations from each."""


ARRAYS = "q", "stable", "stiffness", "modes", "reaction", "residual", "unstable", "neutral", "stability"
"""Fields of Equilibrium that have an axis of runs or branches."""


class Equilibrium(NamedTuple):
    """A static equilibrium, or a batch of them with leading axis (runs, ...) or (branches, ...).

    q: (..., nq) the configuration.   stable: (...) whether each small motion that constraints leave has a positive stiffness.
    unstable, neutral: (...) numbers of small motions that grow, and of those without stiffness, such as the spin of a wheel.
    stability: (...) of text: "stable", or the velocities in which it is unstable or neutral.
    stiffness: (..., n) [1/s^2] stiffness per inertia of these small motions, the least first; its square root is the angular
        frequency. Real parts, if forces have no potential.
    modes: (..., nv, n) these motions, as velocities of kinetic energy 1/2. Motions of equal stiffness span a subspace, on which
        alone their basis depends; a complex pair has two columns.
    reaction: (..., nv) generalised force of the constraints, including the force that holds the held coordinates.
    residual: (...) the unbalanced force, relative to the machine's forces.
    q_names, v_names: names of the entries.
    """

    q: np.ndarray
    stable: np.ndarray
    stiffness: np.ndarray
    modes: np.ndarray
    reaction: np.ndarray
    residual: np.ndarray
    q_names: tuple[str, ...]
    v_names: tuple[str, ...]
    unstable: np.ndarray
    neutral: np.ndarray
    stability: np.ndarray

    @property
    def named(self) -> dict[str, Any]:
        """Coordinate name -> its value, or (runs,) or (branches,) values."""
        return by_name(self.q, self.q_names)

    def __repr__(self) -> str:
        words = set(np.atleast_1d(self.stability).tolist())
        verdict = words.pop() if len(words) == 1 else f"{np.sum(self.stable)} of {len(self.q)} stable"
        return f"<Equilibrium: {one_or_many(self.q, self.q_names)}, {verdict}>"

    @property
    def hertz(self) -> np.ndarray:
        """(..., n) [Hz] frequencies of the small motions without damping; if negative, minus the growth rate over 2 pi."""
        return np.sign(self.stiffness) * np.sqrt(np.abs(self.stiffness)) / (2 * np.pi)


@dataclass(frozen=True)
class Case:
    """One machine under constant inputs u at a time t.   fixed: (nv,) of bool.   lengths: (nv,) the machine's length [m] for
    translations, 1 for others."""

    m: Mechanism
    u: np.ndarray
    t: float
    p: np.ndarray
    fixed: np.ndarray
    lengths: np.ndarray


class _Balance(NamedTuple):
    """Forces at a configuration, in mass-weighted coordinates x = L^T dy with M = L L^T.

    phi: (rows,) residuals over the lengths of their rows.   rows: (rows, nv) unit rows of phi and of held coordinates.
    Z, Y: (nv, n) motions that the position rows leave, and that all rows leave.   r: (n,) forces along Y.   back: L^-T.
    out: |r| relative to the machine's forces.   off: largest phi over its scale.   slope: (nv, nv) derivative of the forces
    along y.   reaction: (nv,) along y.   phi_p, force_p: (rows, np), (nv, np) derivatives with respect to the parameters.
    lengths: (nv,) those of the Case.   span: [kg^0.5 m] size of x for a move by these lengths.   pull: [1/s^2] the machine's
    forces relative to its inertia and length.
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
    lengths: np.ndarray
    span: float
    pull: float

    @property
    def stiffness(self) -> np.ndarray:
        """(n, n) stiffness of the motions Y: minus the derivative of the forces along them."""
        return -self.Y.T @ (self.back.T @ self.slope @ self.back) @ self.Y

    @property
    def solved(self) -> bool:
        """Whether constraints and balance of forces are satisfied."""
        return self.off <= ACCEPTED and (self.out <= BALANCED or self.near)

    @property
    def near(self) -> bool:
        """Whether a negligible change would balance all forces, as where springs are relaxed and their forces are rounding."""
        K = self.stiffness
        if not K.size or not np.isfinite(self.out):
            return not K.size and bool(np.isfinite(self.out))
        y = np.linalg.lstsq(K, self.r, rcond=None)[0]
        left = np.abs(K @ y - self.r).max() <= NEGLIGIBLE * np.abs(K).max()
        return bool(left and np.abs(self.back @ (self.Y @ y) / self.lengths).max() <= NEGLIGIBLE)


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
    """Find a configuration in which a machine stays at rest, Z^T (f + B u - c) = 0 and phi = 0, and its stability.

    The stiffness of the small motions is the Hessian of the Lagrangian on the tangent space of the constraints, in the metric
    of the kinetic energy. Dry friction vanishes at rest, so it holds nothing.

    Args:
        m: the mechanism. Its constraints may be redundant.
        q: start of the search: (nq,), (runs, nq) or {coordinate: number}; neutral where left out. It is put onto the
            constraints.
        hold: names of coordinates or joints that stay at their values in q; the reaction contains the force that holds them.
        u: inputs (nu,), (runs, nu) or {name: number}, zero where left out.
        parameters: {name: value or (runs,)} or an array in the mechanism's order; defaults where left out.
        t: time [s], 0 by default.
        branches: above 1, return up to this many different equilibria of one state, stable and unstable, the nearest first;
            they are searched from random configurations, so one may be missed. 1 by default.
        stable: whether to follow the forces, so that the search ends where the machine would come to rest; False ends at the
            nearest equilibrium of any kind. True by default.
    Returns:
        q (..., nq), whether it is stable, its stability in words, the stiffness (..., n) of the motions that constraints leave
        with their `hertz` and modes, the reaction (..., nv) and the residual; leading axes (runs,) or (branches,). Motions
        without stiffness, such as the spin of a wheel, are neutral: neither stable nor unstable.
    Raises RunError: Newton iterations from q find no equilibrium; the message names the coordinate with the largest unbalanced
    force. Also if q does not close.
    Raises ModelError: wrong names, shapes or numbers, servo constraints, rows of accelerations alone, branches of a batch.

    Example:
        An upright rod of 2 kg on a spring of 15 N m/rad, which is too weak to hold it, falls to one side:

        >>> import pfaffian as pf
        >>> rod = pf.body("rod", mass=2.0, com=(0, 0, 1))
        >>> hinge = pf.joint("hinge", "revolute", "world", "rod", axis=(0, 1, 0), stiffness=15.0)
        >>> m = pf.mechanism("rod on a spring", [rod], [hinge])
        >>> found = pf.equilibrium(m, {"hinge": 0.1})
        >>> found.q.round(4), bool(found.stable), found.hertz.round(3)  # sin(q) = 15 / 19.62 q
        (array([1.2349]), True, array([0.329]))
    """
    m = present(as_mechanism(m))
    refuse_distributions(m, "equilibrium")
    _refuse(m)
    hold = names_to_hold(hold)
    most, t = as_whole(branches, "branches", most=STARTS), as_number(t, "t")
    stable = as_flag(stable, "stable")
    closed, p = assemble(m, q, parameters=parameters, t=t, hold=hold).q, parameter_values(m, parameters)
    begin = np.atleast_2d(closed)
    inputs = as_batch(u, m.u_names, np.zeros(m.nu), "u")
    count = some_runs({"q, parameters": len(begin), "u": len(inputs)})
    if most > 1 and count > 1:
        raise ModelError(f"branches takes one state at a time, not {count}")
    starts, p, inputs = (np.broadcast_to(x, (count, x.shape[1])) for x in (begin, p, inputs))
    fixed = fixed_by_name(m, hold)
    lengths = scales(m, p, starts, m.v_units)
    cases = [Case(m, inputs[i], t, p[i], fixed, lengths[i]) for i in range(count)]
    if most > 1:
        return _stacked(m, *_branches(cases[0], starts[0], hold, most))
    ends = [_solved_from(case, start, stable) for case, start in zip(cases, starts, strict=True)]
    batch = count > 1 or any(np.ndim(x) == 2 for x in (q, u, parameters))
    found = _stacked(m, cases, ends)
    return found if batch else found._replace(**{name: getattr(found, name)[0] for name in ARRAYS})


def case_of(m: Mechanism, q: Any, hold: Iterable[str], u: Any, parameters: Any, t: Any) -> tuple[Case, np.ndarray]:
    """The Case of one machine, and its nearest equilibrium (nq,) of any kind. Raises as `equilibrium` does."""
    hold = names_to_hold(hold)
    found = equilibrium(m, q, hold=hold, u=u, parameters=parameters, t=t, stable=False)
    if found.q.ndim > 1:
        raise ModelError(f"one state at a time is needed, not {len(found.q)}")
    inputs, p = as_batch(u, m.u_names, np.zeros(m.nu), "u")[0], parameter_values(m, parameters)[0]
    lengths = scales(m, p[None], found.q[None], m.v_units)[0]
    return Case(m, inputs, as_number(t, "t"), p, fixed_by_name(m, hold), lengths), found.q


def _refuse(m: Mechanism) -> None:
    """Raise ModelError for servo constraints and rows of accelerations alone."""
    if m.servos:
        raise ModelError(f"equilibrium: servo constraint {m.servos[0].name!r} moves the machine; hold=[...] holds a coordinate")
    if ACCELERATION in symbols(m).rows.level:
        raise ModelError("equilibrium: constraints on accelerations alone do not determine a machine at rest")


def _solved_from(case: Case, start: np.ndarray, stable: bool) -> np.ndarray:
    """(nq,) the equilibrium found from one start on the constraints. Raises RunError: none is found."""
    if np.isnan(start).any():
        raise RunError(
            f"equilibrium: some runs of {case.m.name!r} cannot be put onto their constraints; `assemble` returns nan for them"
        )
    m, (q, at) = case.m, _solve(case, start, stable)
    if not at.solved:
        pull = at.back @ (at.Y @ at.r)
        worst = m.v_names[int(np.argmax(np.abs(pull)))] if len(pull) else ""
        raise RunError(
            f"no equilibrium of {m.name!r} was found from q: after {ITERATIONS} iterations a fraction of {at.out:.2g} of its "
            f"forces is out of balance, most along {worst!r}; start elsewhere, hold what moves freely by hold=[...], or take "
            "stable=False"
        )
    return q


def _branches(case: Case, start: np.ndarray, hold: tuple[str, ...], count: int) -> tuple[list[Case], list[np.ndarray]]:
    """Up to `count` different equilibria, the nearest first."""
    m, random, found = case.m, np.random.default_rng(7), list[np.ndarray]()  # starts of a search
    fixed = fixed_by_name(m, hold)
    lengths = scales(m, case.p[None], start[None], m.q_units)[0]
    within = case.lengths.max(initial=0.0)
    random_starts = [_with_fixed(m, random_configuration(m, random, within), start, fixed) for _ in range(STARTS - 2)]
    closed = assemble(m, np.array([start, start, *random_starts]), parameters=case.p, t=case.t, hold=hold, search=False).q
    for i, q_start in enumerate(closed[~np.isnan(closed).any(axis=1)]):
        q, at = _solve(case, q_start, stable=i % 2 == 0, iterations=BRANCH_ITERATIONS)
        q = _nearest_turn(m, q, start)
        if at.solved and all((np.abs(q - other) > APART * lengths).any() for other in found):
            found.append(q)
    if not found:
        raise RunError(f"no equilibrium of {m.name!r} was found from {STARTS} starts; hold what moves freely by hold=[...]")
    found.sort(key=lambda q: (round(float(np.linalg.norm((q - start) / lengths)), 6), *np.round((q - start) / lengths, 6)))
    return [case] * len(found[:count]), found[:count]


def _with_fixed(m: Mechanism, random_q: np.ndarray, start: np.ndarray, fixed: np.ndarray) -> np.ndarray:
    """A random configuration with the held coordinates of `start`."""
    q = random_q.copy()
    for owner in m.owners:
        if owner.nv and fixed[m.v_slices[owner.name]].any():
            q[m.q_slices[owner.name]] = start[m.q_slices[owner.name]]
    return q


def _nearest_turn(m: Mechanism, q: np.ndarray, start: np.ndarray) -> np.ndarray:
    """q with the angles of hinges within half a turn of the start, and quaternions of the sign nearest to it."""
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
    """Newton iterations from q. stable: whether each moves along the forces in every direction, towards a minimum of energy."""
    at, stride = balance(case, q), STRIDE
    for _ in range(iterations):
        if at.solved:
            break
        step = _step(at, stable)
        size = size_of(case, at.back @ step)
        step = step * min(1.0, stride / max(size, 1e-300))
        q_next = moved(case, q, at.back @ step)
        next_balance = balance(case, q_next)
        if not np.isfinite(next_balance.out):
            stride /= 4
            continue
        # If the forces now resist the step half as much as they drove it, or more, the step was too long.
        forward, resisting = at.r @ (at.Y.T @ step), next_balance.r @ (next_balance.Y.T @ step)
        if stable and forward > 0 and resisting < -0.5 * forward and at.off <= ACCEPTED:
            stride = min(stride, size) / 3
            continue
        stride = min(STRIDE, 2 * stride)
        q, at = q_next, next_balance
    return q, at


def _step(at: _Balance, stable: bool) -> np.ndarray:
    """(nv,) mass-weighted change of q, onto the constraints and along them towards balance."""
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
    """The largest entry of a change along y: of angles, and of lengths over the machine's length."""
    return float(np.abs(dy / case.lengths).max(initial=0.0))


def moved(case: Case, q: np.ndarray, dy: np.ndarray) -> np.ndarray:
    """(nq,) q moved by the change dy (nv,), quaternions at unit length."""
    *_, move = _functions(case.m)
    return np.array(move(q, dy, case.p)).ravel()


def balance(case: Case, q: np.ndarray) -> _Balance:
    """The forces, residuals and their derivatives at q."""
    statics, slopes, _ = _functions(case.m)
    state = q, case.u, case.t, case.p
    F, A, B, phi, M, scale, weight, forces = (np.array(x) for x in statics(*state))
    if not all(np.isfinite(x).all() for x in (F, A, B, phi)):
        return _undefined(len(F))
    try:
        back = np.linalg.inv(np.linalg.cholesky(M)).T
    except np.linalg.LinAlgError:
        raise ModelError(
            f"equilibrium: a motion of {case.m.name!r} has no inertia; lock it, or give what it moves inertia"
        ) from None
    unit = np.eye(len(F))[case.fixed]
    rows, along = (_unit_rows(np.vstack([X, unit]) @ back) for X in (A, B))
    phi = np.concatenate([phi.ravel(), np.zeros(len(unit))]) / rows.lengths
    Z, Y = complement(rows.rows, RANK_TOLERANCE), complement(along.rows, RANK_TOLERANCE)
    f = back.T @ F.ravel()
    lam = -np.linalg.lstsq(along.rows.T, f, rcond=RANK_TOLERANCE)[0] / along.lengths if len(along.rows) else np.zeros(0)
    lam = np.where(np.isfinite(lam), lam, 0.0)
    slope, force_p, phi_p = (np.array(x) for x in slopes(*state, lam[: len(B)]))
    r = Y.T @ f
    off = float(np.abs(phi[: len(A)] * rows.lengths[: len(A)] * scale.ravel()).max(initial=0.0))
    reaction = np.vstack([B, unit]).T @ lam
    phi_p = np.vstack([phi_p, np.zeros((len(unit), phi_p.shape[1]))]) / rows.lengths[:, None]
    size = weight.item() + float(np.linalg.norm(back.T @ forces, axis=0).sum())
    out = float(np.abs(r).max(initial=0.0) / max(size, 1e-300))
    span = float(np.sqrt((np.diag(M) * case.lengths**2).max(initial=0.0))) or 1.0
    pull = size / span
    return _Balance(phi, rows.rows, Z, Y, r, back, out, off, slope, reaction, phi_p, force_p, case.lengths, span, pull)


def _undefined(n: int) -> _Balance:
    """The balance at a configuration where a force or residual is not finite."""
    none, empty = np.zeros((n, 0)), np.zeros((0, n))
    return _Balance(
        np.zeros(0), empty, none, none, np.zeros(0), np.eye(n), np.inf, np.inf, np.eye(n), np.zeros(n), empty, empty,
        np.ones(n), 1.0, 0.0,
    )  # fmt: skip


class _UnitRows(NamedTuple):
    """Rows divided by their lengths.   rows: (rows, nv), of unit length or zero.   lengths: (rows,), 1 for a zero row."""

    rows: np.ndarray
    lengths: np.ndarray


def _unit_rows(A: np.ndarray) -> _UnitRows:
    """Divide the rows of A by their lengths."""
    lengths = np.linalg.norm(A, axis=1)
    lengths = np.where(lengths > 0, lengths, 1.0)
    return _UnitRows(A / lengths[:, None], lengths)


@remembered(16)
def _functions(m: Mechanism) -> tuple[ca.Function, ca.Function, ca.Function]:
    """(q, u, t, p) -> F, position rows, all rows, phi, M, scales of phi, the weight [N], the forces (nv, forces) of which F
    consists; (q, u, t, p, lambda) -> the slopes of F + B^T lambda along y and with respect to p, and of phi with respect to p;
    (q, dy, p) -> q moved by dy."""
    S = symbols(m)
    T = Terms(m, S.q, ca.SX.zeros(m.nv, 1), S.u, S.t)
    position, all_rows = T.rows.at(POSITION), T.rows.at(POSITION, VELOCITY)
    A, K = ca.densify(T.A), T.kinematics.kinematic_matrix
    lam, dy, p = ca.SX.sym("lam", len(all_rows)), ca.SX.sym("dy", m.nv), m.p_symbols
    weight = ca.sqrt(sum((link.mass for link in T.kinematics.tree.links), ca.SX(0))) * ca.norm_2(m.gravity)
    forces = [*named_forces(T.kinematics).values(), T.B @ T.u]
    state = [S.q, S.u, S.t, p]
    statics = (T.force, A[position, :], A[all_rows, :], T.rows.phi[position], T.M, T.inverse_scales(ACCEPTED)[position], weight,
               ca.horzcat(*forces))  # fmt: skip
    E = T.force + A[all_rows, :].T @ lam
    slopes = (ca.jacobian(E, S.q) @ K, ca.jacobian(E, p), ca.jacobian(T.rows.phi[position], p))
    moved = normalised(m, S.q + K @ dy)
    outputs = [[ca.densify(x) for x in part] for part in (statics, slopes, (moved,))]
    return (
        ca.Function("statics", state, outputs[0]),
        ca.Function("slopes", [*state, lam], outputs[1]),
        ca.Function("moved", [S.q, dy, p], outputs[2]),
    )


class SmallMotions(NamedTuple):
    """The small motions that constraints leave at an equilibrium, the least stiffness first.

    stiffness: (n,) [1/s^2], real parts.   modes: (nv, n) velocities of kinetic energy 1/2.   share: (nv, n) [1] share of each
    velocity in that energy.   sinks: number of motions with negative stiffness, which come first.   growing: (n,) whether a
    motion grows; also true of a pair that gains energy as it oscillates.   neutral: (n,) whether it has no stiffness.
    """

    stiffness: np.ndarray
    modes: np.ndarray
    share: np.ndarray
    sinks: int
    growing: np.ndarray
    neutral: np.ndarray


def small_motions(at: _Balance) -> SmallMotions:
    """The small motions at an equilibrium."""
    n = at.Y.shape[1]
    found = [x for x in spectrum(at.stiffness).clusters if x.value.imag >= 0]
    found.sort(key=lambda x: x.value.real)
    bases = [x.vectors.real if x.value.imag == 0 else _real(x.vectors) for x in found]
    k = np.array([x.value for x, basis in zip(found, bases, strict=True) for _ in basis.T], dtype=complex)
    y = at.Y @ np.hstack([np.zeros((n, 0)), *bases])
    modes = at.back @ y
    zero = NEUTRAL * max(float(np.abs(k).max(initial=0.0)), at.pull)
    flutter = np.abs(k.imag) > FLUTTER * (np.abs(k) + zero)
    growing, neutral = (k.real < -zero) | flutter, (np.abs(k.real) <= zero) & ~flutter
    share = modes * np.linalg.solve(at.back.T, y)
    return SmallMotions(k.real, modes, share, int(((k.real < -zero) & ~flutter).sum()), growing, neutral)


def _real(X: np.ndarray) -> np.ndarray:
    """(n, 2 m) a real orthonormal basis of the motions in a complex pair of subspaces, one of which has the columns X."""
    return basis(np.linalg.qr(np.hstack([X.real, X.imag]))[0])


def _stability(x: SmallMotions, names: tuple[str, ...]) -> str:
    """The verdict in words."""
    parts, labels = [], [text(name, LONGEST) for name in names]
    for word, which in (("unstable", x.growing), ("neutral", x.neutral)):
        if which.any():
            moving = x.share[:, which].sum(axis=1)
            parts.append(f"{word} in {mainly(moving, labels, max(MOST_NAMED, int(which.sum())))}")
    rest = not x.growing.any() and not x.neutral.all()
    return ", ".join(parts + ["stable otherwise"] * (rest and bool(parts))) or "stable"


def _stacked(m: Mechanism, cases: list[Case], ends: list[np.ndarray]) -> Equilibrium:
    """The Equilibrium record of configurations (nq,), padded with nan where one has fewer motions than another."""
    at = [balance(case, q) for case, q in zip(cases, ends, strict=True)]
    each = [small_motions(x) for x in at]
    width = max(x.stiffness.size for x in each)
    wide = [((0, 0), (0, width - x.stiffness.size)) for x in each]
    unstable, neutral = (np.array([int(getattr(x, name).sum()) for x in each]) for name in ("growing", "neutral"))
    return Equilibrium(
        np.array(ends), (unstable == 0) & (neutral == 0),
        np.array([np.pad(x.stiffness, pad[1], constant_values=np.nan) for x, pad in zip(each, wide, strict=True)]),
        np.array([np.pad(x.modes, pad, constant_values=np.nan) for x, pad in zip(each, wide, strict=True)]),
        np.array([x.reaction for x in at]), np.array([x.out for x in at]), m.q_names, m.v_names, unstable, neutral,
        np.array([_stability(x, m.v_names) for x in each]),
    )  # fmt: skip
