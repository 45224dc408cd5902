"""Newton's iterations onto phi(q, t) = 0 and eta(q, v, t) = 0, with some coordinates held and others weighted."""

from __future__ import annotations

from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from pfaffian import kernel
from pfaffian.dynamics.motion import RANK_TOLERANCE
from pfaffian.evaluate.progress import progress_line
from pfaffian.kernel.call.memory import threads_for
from pfaffian.kernel.call.recipe import Backend
from pfaffian.maths.linear import largest_entry
from pfaffian.maths.minimum_norm import damped, minimum_norm
from pfaffian.maths.tree_factor import factor_tree, solve_W, solve_WT
from pfaffian.model.coordinates import Coordinates
from pfaffian.model.mechanism import Mechanism, check_configuration
from pfaffian.simulate.variables import normalise
from pfaffian.terms.digest import digest
from pfaffian.terms.lengths import pace
from pfaffian.terms.pfaffian import POSITION, VELOCITY
from pfaffian.terms.present import remembered
from pfaffian.terms.terms import Terms, relative_size, row_lengths, shared

ITERATIONS = 50
ACCEPTED = 1e-9
"""Largest |phi| and |eta| that count as satisfied, relative to the row's scale: see `inverse_scale`."""

CONVERGED = 1e-13
"""Relative |phi| and |eta| below which iterations gain nothing more."""

PATIENCE = 8
"""Iterations that may pass while |phi| and |eta| do not fall by a twentieth: after them the run is given up."""

FEW = 64
"""Runs up to which a kernel of one lane will do."""

BLOCK = 2**14
"""Runs that are put onto their constraints at once: all that is needed for it fits into a cache, however many there are."""

SHARE = 1024
"""Runs of each thread: fewer take less time than it takes to hand them over."""

HEAVY = 1e-4
"""Least inertia in the metric of an assembly, as a part of the largest one, where some directions have almost none."""

DESCENT, LEAST = 200, 1e-4
"""Most steps of a descent, and the part of a step below which it has ended beside the constraints."""

STALLED, FALLS = 16, 0.99
"""Steps of a descent that may pass until the squares of phi have fallen to a part of what they were: beyond, phi is about as
small as it becomes near there."""

STRIDE = 0.5
"""Largest turn of one iteration [rad]: a full Newton step far from the solution would end on a distant branch."""


class Fixed(NamedTuple):
    """What an assembly may not move.   q, v: (runs, nv) of bool, by velocity coordinate.
    weight: (nv,) above zero, factor on the inertia of each coordinate."""

    q: np.ndarray
    v: np.ndarray
    weight: np.ndarray

    def take(self, at: Any) -> Fixed:
        return Fixed(self.q[at], self.v[at], self.weight)

    def release(self, q: Any = True, v: Any = True) -> Fixed:
        """Without the marked ones of q and v."""
        return Fixed(self.q & ~np.asarray(q), self.v & ~np.asarray(v), self.weight)


class State(NamedTuple):
    """q: (runs, nq).   v: (runs, nv).   phi, eta: (runs, rows) residuals.   rank: (runs,) of the position rows without the held
    coordinates.   inverse: (runs, rows), pace: (runs, 1) [1/s], the scales of `terms.lengths`."""

    q: np.ndarray
    v: np.ndarray
    phi: np.ndarray
    eta: np.ndarray
    rank: np.ndarray
    inverse: np.ndarray
    pace: np.ndarray

    @property
    def residual(self) -> np.ndarray:
        """(runs,) the larger of |phi| and |eta|, infinite where it is NaN."""
        return _worst(self.phi, self.eta)

    @property
    def parts(self) -> tuple[np.ndarray, np.ndarray]:
        """(runs, rows) each: phi and eta relative to the row's scale."""
        return self.phi * self.inverse, self.eta * self.inverse / self.pace

    @property
    def off(self) -> np.ndarray:
        """(runs,) the largest of these, infinite where it is NaN."""
        return _worst(*self.parts)

    @property
    def satisfied(self) -> np.ndarray:
        """(runs,) whether all constraints are satisfied."""
        return self.off <= ACCEPTED

    @property
    def closed(self) -> np.ndarray:
        """(runs,) whether phi = 0 is satisfied, whatever eta."""
        return _worst(self.parts[0]) <= ACCEPTED

    def take(self, at: Any) -> State:
        """The runs `at`, each number's runs next to each other in memory, as kernels take them the fastest."""
        return State(*[x.T[..., at].T for x in self])

    def put(self, at: np.ndarray, of: State) -> None:
        """Replace the runs `at`, in this order, by those of another State."""
        for mine, new in zip(self, of, strict=True):
            mine.T[..., at] = new.T


def _worst(*parts: np.ndarray) -> np.ndarray:
    worst = np.max([np.abs(x).max(axis=1, initial=0.0) for x in parts], axis=0)
    return np.where(np.isfinite(worst), worst, np.inf)


class Problem(NamedTuple):
    """What to assemble.   p: (runs, np).   t: [s].   fixed: of each run."""

    m: Mechanism
    p: np.ndarray
    t: float
    fixed: Fixed
    backend: Backend

    def released(self) -> Problem:
        """The same with nothing held."""
        return self._replace(fixed=self.fixed.release())

    def take(self, at: Any) -> Problem:
        return self._replace(p=self.p[at], fixed=self.fixed.take(at))


def free_problem(m: Mechanism, p: np.ndarray, t: float, backend: Backend) -> Problem:
    """The Problem with nothing held and weights 1: p (runs, np), t [s]."""
    none = np.zeros((len(p), m.nv), dtype=bool)
    return Problem(m, p, t, Fixed(none, none, np.ones(m.nv)), backend)


def rank_at(problem: Problem, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, int]:
    """(runs,) rank of the position rows at q (runs, nq), and the number of rows with an entry."""
    blocks = [slice(begin, begin + BLOCK) for begin in range(0, max(1, len(q)), BLOCK)]
    found = [_step(problem.take(at), q[at], v[at]).rank.copy() for at in blocks]
    return np.concatenate(found), _written(problem.m)


@remembered(64)
def _written(m: Mechanism) -> int:
    """Number of position rows with an entry: a hinge that closes a plane loop has three without."""
    T = shared(m)
    return len(set(T.A.sparsity().row()) & set(T.rows.at(POSITION)))


def settle(problem: Problem, q: np.ndarray, v: np.ndarray, iterations: int = ITERATIONS) -> State:
    """Each run's Newton iterations from q, v (runs, n), until its constraints are satisfied or it makes no progress.

    A state that satisfies them stays as it is, to the bit. A run never depends on the others.
    """
    found = _there(problem, q, v)
    before = found.off
    going = np.flatnonzero(np.isfinite(before) & (before > CONVERGED))
    now, problem, before, waited = found.take(going), problem.take(going), before[going], np.zeros(len(going), dtype=int)
    nearest = before
    for _ in range(iterations):
        if not len(going):
            break
        after = _step(problem, now.q, now.v)
        left = after.off
        accepted = (before > ACCEPTED) | (left < before)
        if not accepted.all():
            after.put(np.flatnonzero(~accepted), now.take(~accepted))
        nearer = left < 0.95 * nearest
        nearest, waited = np.where(nearer, left, nearest), np.where(nearer, 0, waited + 1)
        far = (left > ACCEPTED) & (waited < PATIENCE)
        on = np.isfinite(left) & (left > CONVERGED) & (far | (left < before / 2))
        before = np.where(accepted, left, before)
        if on.all():
            now = after
            continue
        found.put(going[~on], after.take(~on))
        now, problem, going = after.take(on), problem.take(on), going[on]
        before, nearest, waited = before[on], nearest[on], waited[on]
    found.put(going, now)
    return found


def descend(problem: Problem, q: np.ndarray, v: np.ndarray) -> State:
    """`settle` from where each run's phi falls to from q (runs, nq): no step is followed further than it makes phi smaller.

    A whole step from far away may lead further off, and beside a ridge, as where frames that should coincide are half a turn
    apart, phi falls too slowly for `settle`, which then gives up. It takes some hundred steps; where phi stays open, some
    STALLED beyond those that bring it down.
    """
    found, part, waited = _there(problem, q, v), np.ones(len(q)), np.zeros(len(q), dtype=int)
    before = _squares(found)
    for _ in range(DESCENT):
        going = np.flatnonzero(~found.closed & (part > LEAST) & (waited < STALLED))
        if not len(going):
            break
        some, now = problem.take(going), found.take(going)
        step = _step(some, now.q, now.v).q - now.q
        step[~np.isfinite(step).all(axis=1)] = 0
        trial = _there(some, check_configuration(problem.m, now.q + part[going, None] * step), now.v)
        left = _squares(trial)
        nearer, falls = left < _squares(now), left < FALLS * before[going]
        found.put(going[nearer], trial.take(nearer))
        part[going] = np.minimum(1, part[going] * np.where(nearer, 2, 0.5))
        before[going], waited[going] = np.where(falls, left, before[going]), np.where(falls, 0, waited[going] + 1)
    return settle(problem, found.q, v)


def _squares(s: State) -> np.ndarray:
    """(runs,) sum of the squares of phi."""
    return np.asarray(np.square(s.parts[0]).sum(axis=1))


def hopeful(problem: Problem, q: np.ndarray, v: np.ndarray, iterations: int = ITERATIONS) -> np.ndarray:
    """(runs,) of bool: False for runs of which `settle` would leave phi open, found in a part of its time.

    These are the same iterations on q alone, which do not depend on v, by a kernel for what all these runs hold. They end with
    those of `settle` as long as its rates, found anew in each iteration, are nearer to their constraints than q is.
    """
    fixed = problem.fixed
    if not (fixed.q == fixed.q[:1]).all():
        return np.ones(len(q), dtype=bool)
    positions = _positions(problem.m, problem.backend, tuple(fixed.q[0].tolist()))
    before, stiffness, t = _there(problem, q, v).off, np.sqrt(fixed.weight), np.array([problem.t])
    hope, going = before <= ACCEPTED, np.flatnonzero(np.isfinite(before) & (before > ACCEPTED))
    q, p, before, waited = q.T[:, going].T, problem.p[going], before[going], np.zeros(len(going), dtype=int)
    nearest = before
    for _ in range(iterations):
        if not len(going):
            break
        q, phi = positions(q, stiffness, p, t, threads=threads_for(len(q), SHARE))
        left = _worst(phi)
        hope[going[left <= ACCEPTED]] = True
        nearer = left < 0.95 * nearest
        nearest, waited = np.where(nearer, left, nearest), np.where(nearer, 0, waited + 1)
        on = np.isfinite(left) & (left > ACCEPTED) & ((waited < PATIENCE) | (left < before / 2))
        before = left
        if not on.all():
            q, p, going = q.T[:, on].T, p[on], going[on]
            before, nearest, waited = before[on], nearest[on], waited[on]
    return hope


def _there(problem: Problem, q: np.ndarray, v: np.ndarray) -> State:
    """The State at q, v as they are, with no rank: everything is held."""
    phi, eta, inverse, speed = _called(_residuals(problem.m, problem.backend, len(q) <= FEW), q, v, problem.p, problem.t)
    q, v = np.array(q, order="F"), np.array(v, order="F")
    return State(q, v, phi, eta, np.zeros(len(q)), inverse, speed)


def _step(problem: Problem, q: np.ndarray, v: np.ndarray) -> State:
    m, p, t, fixed, backend = problem
    iteration = _iteration(m, backend, len(q) <= FEW)
    found = _called(iteration, q, v, 1.0 - fixed.q, 1.0 - fixed.v, np.sqrt(fixed.weight), p, t)
    *there, rank, inverse, speed = found
    return State(there[0], there[1], there[2], there[3], rank[:, 0], inverse, speed)


def _called(of: kernel.Kernel, q: np.ndarray, *given: Any) -> list[np.ndarray]:
    """What a kernel gives for q and the other arguments, the last of which is t."""
    arrays = [q, *given[:-1], np.array([given[-1]])]
    if len(q) == 1:  # at a third of the cost
        return [x[None] for x in of(*[x.reshape(-1) for x in arrays])]
    return list(of(*arrays, threads=threads_for(len(q), SHARE)))


@remembered(64)
def _residuals(m: Mechanism, backend: Backend, few: bool) -> kernel.Kernel:
    """Kernel of what is left of the constraints: (q, v, p, t) -> phi, eta and their scales. A start that satisfies them needs
    no other."""

    return kernel.compile(lambda: _left(m), backend=backend, lanes=1 if few else 8, key=f"residuals {digest(m)}")


@remembered(64)
def _left(m: Mechanism) -> ca.Function:
    """(q, v, p, t) -> phi, eta and their scales."""
    T = shared(m)
    T.check_mass()
    found = T.rows.phi, T.rows.eta, T.inverse_scales(ACCEPTED), pace(T.kinematics, ACCEPTED)
    return ca.Function("residuals", [T.q, T.v, m.p_symbols, T.t], [ca.densify(x) for x in found])


@remembered(64)
def _iteration(m: Mechanism, backend: Backend, few: bool) -> kernel.Kernel:
    """Kernel of one Newton step: (q, v, free_q, free_v, stiffness, p, t) -> State."""
    with progress_line(m.name, False):
        return kernel.compile(lambda: _newton(m), backend=backend, lanes=1 if few else 8, key=f"newton {digest(m)}")


def _newton(m: Mechanism) -> ca.Function:
    """free_q, free_v: (nv,) 1 where a coordinate may move, 0 where it is held.   stiffness: (nv,) root of the weight."""
    T = shared(m)
    T.check_mass()
    free_q, free_v, stiffness = (ca.SX.sym(name, m.nv) for name in ("free_q", "free_v", "stiffness"))
    q, rank = _nearer(T, free_q, stiffness)
    there = Terms(m, q, T.v, T.u, T.t)
    moving = T.rows.at(POSITION, VELOCITY)
    v = T.v - _shortest(there, there.A[moving, :], there.M, there.rows.eta[moving], moving, free_v, stiffness)[0]
    phi, eta, *scales = _left(m)(q, v, m.p_symbols, T.t)
    inputs = [T.q, T.v, free_q, free_v, stiffness, m.p_symbols, T.t]
    found = q, v, phi, eta, rank, *scales
    return ca.Function("newton", inputs, [ca.densify(x) for x in found])


@remembered(64)
def _positions(m: Mechanism, backend: Backend, fixed: tuple[bool, ...]) -> kernel.Kernel:
    """Kernel of what a Newton step does to q where the marked coordinates are held: (q, stiffness, p, t) -> q, and phi relative
    to the row's scale. With constants for what is held it has a part of the operations and the same bits."""

    def build() -> ca.Function:
        T, stiffness = shared(m), ca.SX.sym("stiffness", m.nv)
        q, _ = _nearer(T, ca.SX([0.0 if x else 1.0 for x in fixed]), stiffness)
        phi, _, inverse, _ = _left(m)(q, T.v, m.p_symbols, T.t)
        found = q, phi * inverse
        return ca.Function("positions", [T.q, stiffness, m.p_symbols, T.t], [ca.densify(x) for x in found], {"cse": True})

    return kernel.compile(build, backend=backend, key=f"positions {fixed!r} {digest(m)}")


def _nearer(T: Terms, free: ca.SX, stiffness: ca.SX) -> tuple[ca.SX, ca.SX]:
    """q (nq, 1) after a Newton step, and the rank of the position rows; free, stiffness: of `_newton`."""
    m, firm, R = T.mechanism, T.rows.at(POSITION), _rates(T)
    move, rank = _shortest(T, T.A[firm, :] @ R, R.T @ T.M @ R, T.rows.phi[firm], firm, free, stiffness, far=True)
    turns = largest_entry(move[[i for i, unit in enumerate(m.v_units) if unit != "m/s"]])
    return normalise(m, T.q - T.kinematics.kinematic_matrix @ (R @ move) * (STRIDE / ca.fmax(turns, STRIDE))), rank


def _shortest(
    T: Terms, A: ca.SX, M: ca.SX, rhs: ca.SX, rows: list[int], free: ca.SX, stiffness: ca.SX, far: bool = False
) -> tuple[ca.SX, ca.SX]:
    """The x with A x = rhs and x_i = 0 where not free that is shortest in the metric S M S, and the rank of its rows.

    far: rhs may be large. Rows that depend on each other at the solution contradict each other before it, so x is damped
    there; and light directions get at least a HEAVY part of the largest inertia, or they alone would move.
    """
    if not rows:
        return ca.SX.zeros(T.mechanism.nv, 1), ca.SX(0)
    s = free * stiffness
    if far and T.counted is not None:
        M = M + ca.diag(_least_inertia(T.mechanism, ca.diag(M)))
    factor = factor_tree(ca.sparsify(M * (s @ s.T)) + ca.diag(1 - free), T.kinematics.parents)
    A = ca.sparsify(A @ ca.diag(free))
    Lam, lengths = solve_W(factor, A.T).T, row_lengths(T)[rows, 0]
    found = minimum_norm(Lam, RANK_TOLERANCE, relative_size(T, A, rows), T.counted, T.row_blocks(rows))
    x = damped(ca.diag(1 / lengths) @ Lam, rhs / lengths, RANK_TOLERANCE) if far and T.groups else found.solve(rhs)
    return solve_WT(factor, x), found.rank


def _least_inertia(m: Mechanism, inertia: ca.SX) -> ca.SX:
    """(nv, 1) HEAVY parts of the largest inertia (nv, 1) of the same kind, along or about an axis."""
    linear = [unit == "m/s" for unit in m.v_units]
    most = {kind: ca.mmax(ca.vertcat(0, *[inertia[i] for i, x in enumerate(linear) if x == kind])) for kind in (True, False)}
    return HEAVY * ca.vertcat(*[most[kind] for kind in linear])


def _rates(T: Terms) -> ca.SX:
    """(nv, nv) velocities that change one coordinate at a time: along the joint's axes for translations, body-fixed for
    rotations by a quaternion."""
    m, K, blocks = T.mechanism, T.kinematics.kinematic_matrix, []
    for j in m.owners:
        q, v, k = m.q_slices[j.name].start, m.v_slices[j.name].start, j.plain
        blocks += [K[q : q + k, v : v + k].T, ca.SX.eye(j.nv - k)]  # K is orthogonal there
    return ca.diagcat(*blocks) if m.velocities is None else ca.SX.eye(m.nv)


def fixed_entries(m: Mechanism, fixed: np.ndarray) -> np.ndarray:
    """(runs, nq) of bool, the entries of q that stay when the marked (runs, nv) velocity coordinates do not move."""
    return np.stack([fixed[:, list(by)].any(axis=1) for by in _movers(m)], axis=1) if m.nq else np.zeros((len(fixed), 0), bool)


def fixed_velocities(m: Mechanism, named: np.ndarray) -> np.ndarray:
    """(nv,) of bool, the velocity coordinates that move one of the marked (nq,) entries of q."""
    marked = np.zeros(m.nv, dtype=bool)
    for entry in np.flatnonzero(named):
        marked[list(_movers(m)[entry])] = True
    return marked


def _moved_together(m: Mechanism) -> tuple[tuple[int, ...], ...]:
    """For each entry of q the velocities in its row of K."""
    pattern = shared(m).kinematics.kinematic_matrix.sparsity()
    found: list[list[int]] = [[] for _ in range(m.nq)]
    for i, j in zip(*pattern.get_triplet(), strict=True):
        found[i].append(j)
    return tuple(map(tuple, found))


@remembered(64)
def _movers(m: Mechanism) -> tuple[tuple[int, ...], ...]:
    """For each entry of q the velocity coordinates that move it: its own, or the three of a quaternion's rotation."""
    found: list[tuple[int, ...]] = []
    by_K = _moved_together(m)
    for j in m.owners:
        v, k = m.v_slices[j.name].start, j.plain
        if m.velocities or isinstance(j, Coordinates) or j.distribution is not None:
            found += by_K[m.q_slices[j.name]]
        else:
            found += [(v + i,) if i < k else tuple(range(v + k, v + j.nv)) for i in range(j.nq)]
    return tuple(found)
