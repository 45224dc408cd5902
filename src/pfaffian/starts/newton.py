"""Newton iterations onto phi(q, t) = 0 and eta(q, v, t) = 0, with some coordinates fixed and others weighted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import casadi as ca
import numpy as np

from pfaffian import kernel
from pfaffian.dynamics.motion import RANK_TOLERANCE
from pfaffian.evaluate.progress import progress_line
from pfaffian.kernel.call.memory import threads_for
from pfaffian.kernel.call.recipe import Backend
from pfaffian.maths.linear import largest_entry
from pfaffian.maths.minimum_norm import MinimumNorm, damped, minimum_norm
from pfaffian.maths.tree_factor import TreeFactor, factor_tree, solve_W, solve_WT
from pfaffian.model.coordinates import Coordinates
from pfaffian.model.mechanism import Mechanism, check_configuration
from pfaffian.states.variables import normalised
from pfaffian.terms.equations_digest import digest
from pfaffian.terms.lengths import rate_limit_factor
from pfaffian.terms.pfaffian import POSITION, VELOCITY
from pfaffian.terms.terms import Terms, relative_size, row_lengths, shared
from pfaffian.terms.traced_now import remembered

ITERATIONS = 50
"""Default maximum of the Newton iterations of a run."""

ACCEPTED = 1e-9
"""Largest |phi| and |eta| that count as satisfied, relative to the row's scale: see `inverse_scale`."""

CONVERGED = 1e-13
"""Relative |phi| and |eta| below which more iterations gain nothing."""

PATIENCE = 8
"""Iterations without a decrease of |phi| and |eta| by a twentieth after which a run is given up."""

FEW_RUNS = 64
"""Largest number of runs for which a kernel with one lane is fast enough."""

BLOCK = 2**14
"""Runs that are put onto their constraints at once, so that their data fits into a cache, however many runs there are."""

MANY = 1024
"""Number of runs from which it pays to trace and compile a separate kernel for the coordinates that they fix."""

SHARE = 1024
"""Runs for each thread; fewer runs take less time than passing them to a thread."""

LEAST_INERTIA = 1e-4
"""Least inertia in the metric of an assembly, relative to the largest one, where some directions have almost none."""

DESCENT_STEPS, LEAST_FRACTION = 200, 1e-4
"""Largest number of steps of a descent, and the fraction of a full step below which the descent ends off the constraints."""

STALLED, FALLS = 16, 0.99
"""A descent ends when the sum of the squares of phi has not fallen to the fraction FALLS within STALLED steps: phi is then
about as small as it becomes nearby."""

STRIDE = 0.5
"""Largest rotation in one iteration [rad]; a full Newton step far from the solution would end on a distant branch."""


class Fixed(NamedTuple):
    """The coordinates that an assembly must not change, and the weights of the others.

    q, v: (runs, nv) of bool, by velocity coordinate.   weight: (nv,) positive factors of the inertia of each coordinate.
    """

    q: np.ndarray
    v: np.ndarray
    weight: np.ndarray

    def take(self, at: Any) -> Fixed:
        """The fixed coordinates of the runs `at`."""
        return Fixed(self.q[at], self.v[at], self.weight)

    def release(self, q: Any = True, v: Any = True) -> Fixed:
        """Fixed without the marked coordinates of q and v."""
        return Fixed(self.q & ~np.asarray(q), self.v & ~np.asarray(v), self.weight)


class State(NamedTuple):
    """States of runs, with the residuals of their constraints.

    q: (runs, nq).   v: (runs, nv).   phi, eta: (runs, rows) residuals.   rank: (runs,) rank of the position rows without the
    fixed coordinates.   inverse: (runs, rows), pace: (runs, 1) [1/s], the scales of `terms.lengths`.
    """

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
        return worst_of(self.phi, self.eta)

    @property
    def parts(self) -> tuple[np.ndarray, np.ndarray]:
        """phi and eta relative to the scale of the row, (runs, rows) each."""
        return self.phi * self.inverse, self.eta * self.inverse / self.pace

    @property
    def off(self) -> np.ndarray:
        """(runs,) the largest relative residual, infinite where it is NaN."""
        return worst_of(*self.parts)

    @property
    def satisfied(self) -> np.ndarray:
        """(runs,) whether all constraints are satisfied."""
        return self.off <= ACCEPTED

    @property
    def closed(self) -> np.ndarray:
        """(runs,) whether phi = 0 is satisfied, whatever the value of eta."""
        return worst_of(self.parts[0]) <= ACCEPTED

    def take(self, at: Any) -> State:
        """The runs `at`. Values of one number for all runs are contiguous in memory, the fastest layout for kernels."""
        return State(*[x.T[..., at].T for x in self])

    def put(self, at: Any, of: State) -> None:
        """Replace the runs `at`, in this order, by the runs of another State."""
        for mine, new in zip(self, of, strict=True):
            mine.T[..., at] = new.T


def worst_of(*parts: np.ndarray) -> np.ndarray:
    """(runs,) the largest absolute value in arrays (runs, rows), infinite where it is NaN."""
    worst = np.max([np.abs(x).max(axis=1, initial=0.0) for x in parts], axis=0)
    return np.where(np.isfinite(worst), worst, np.inf)


class Problem(NamedTuple):
    """The assembly to solve.

    p: (runs, np) parameters.   t: time [s], or (runs, 1) that of each run.   fixed: the fixed coordinates of each run.
    general: whether one kernel serves any fixed coordinates, for searches that try many; otherwise each choice has its own.
    """

    m: Mechanism
    p: np.ndarray
    t: float | np.ndarray
    fixed: Fixed
    backend: Backend
    general: bool = False

    def released(self) -> Problem:
        """The problem without fixed coordinates."""
        return self._replace(fixed=self.fixed.release())

    def take(self, at: Any) -> Problem:
        """The problem of the runs `at`."""
        t = self.t[at] if isinstance(self.t, np.ndarray) else self.t
        return self._replace(p=self.p[at], t=t, fixed=self.fixed.take(at))

    @property
    def instants(self) -> np.ndarray:
        """The time as an argument of kernels, (1,) or (runs, 1)."""
        return self.t if isinstance(self.t, np.ndarray) else np.array([self.t])

    @property
    def choice(self) -> tuple[bool, ...] | None:
        """The fixed coordinates for which a kernel is made; None if it has to serve any.

        The order of elimination depends on this choice, and so do the last bits: it must not depend on the number of runs.
        """
        mine = self.fixed.q
        return None if self.general or not (mine == mine[:1]).all() else tuple(mine[0].tolist())


def free_problem(m: Mechanism, p: np.ndarray, t: float, backend: Backend) -> Problem:
    """The Problem without fixed coordinates and with weights 1, for parameters p (runs, np) at time t [s]."""
    none = np.zeros((len(p), m.nv), dtype=bool)
    return Problem(m, p, t, Fixed(none, none, np.ones(m.nv)), backend)


def rank_at(problem: Problem, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, int]:
    """(runs,) rank of the position rows at q (runs, nq), and the number of rows that are not structurally zero."""
    blocks = [slice(begin, begin + BLOCK) for begin in range(0, max(1, len(q)), BLOCK)]
    ranks = [newton_step(problem.take(at), q[at], v[at]).rank.copy() for at in blocks]
    return np.concatenate(ranks), _written(problem.m)


@remembered(64)
def _written(m: Mechanism) -> int:
    """Number of position rows that are not structurally zero: a hinge that closes a planar loop has three that are."""
    T = shared(m)
    return len(set(T.A.sparsity().row()) & set(T.rows.at(POSITION)))


def newton(problem: Problem, q: np.ndarray, v: np.ndarray, iterations: int = ITERATIONS) -> State:
    """Newton iterations of each run from q, v (runs, n), until its constraints are satisfied or it makes no progress.

    A state that already satisfies them is returned bit for bit. No run depends on the others. The rank is zero where many runs
    are at rest, for which a kernel without velocities is enough.
    """
    states = evaluated(problem, q, v)
    if len(q) >= MANY and not v.any() and problem.choice is not None and _rest(problem.m):
        found = _iterated(problem, Positions(states.q, states.parts[0]), _step_of_positions, iterations)
        return evaluated(problem, found.q, v)
    return _iterated(problem, states, lambda problem, s: newton_step(problem, s.q, s.v), iterations)


class Positions(NamedTuple):
    """Configurations q (runs, nq) with phi (runs, rows) relative to its scale: the part of a State that matters at rest."""

    q: np.ndarray
    phi: np.ndarray

    @property
    def off(self) -> np.ndarray:
        return worst_of(self.phi)

    def take(self, at: Any) -> Positions:
        return Positions(*[x.T[..., at].T for x in self])

    def put(self, at: Any, of: Positions) -> None:
        for mine, new in zip(self, of, strict=True):
            mine.T[..., at] = new.T


_S = TypeVar("_S", State, Positions)


def _iterated(problem: Problem, states: _S, step: Callable[[Problem, _S], _S], iterations: int) -> _S:
    """The states after at most so many steps; see `newton`."""
    before = states.off
    active = np.flatnonzero(np.isfinite(before) & (before > CONVERGED))
    some = all_of(active, len(before))
    now, problem, before, waited = states.take(some), problem.take(some), before[some], np.zeros(len(active), dtype=int)
    nearest = before
    for _ in range(iterations):
        if not len(active):
            break
        after = step(problem, now)
        off = after.off
        accepted = (before > ACCEPTED) | (off < before)
        if not accepted.all():
            after.put(np.flatnonzero(~accepted), now.take(~accepted))
        nearer = off < 0.95 * nearest
        nearest, waited = np.where(nearer, off, nearest), np.where(nearer, 0, waited + 1)
        far = (off > ACCEPTED) & (waited < PATIENCE)
        on = np.isfinite(off) & (off > CONVERGED) & (far | (off < before / 2))
        before = np.where(accepted, off, before)
        if on.all():
            now = after
            continue
        states.put(active[~on], after.take(~on))
        now, problem, active = after.take(on), problem.take(on), active[on]
        before, nearest, waited = before[on], nearest[on], waited[on]
    states.put(all_of(active, len(states.q)), now)
    return states


def all_of(at: np.ndarray, count: int) -> Any:
    """Increasing indices `at` of `count` runs, as a slice where they are all of them: views in place of copies."""
    return slice(None) if len(at) == count else at


def _step_of_positions(problem: Problem, now: Positions) -> Positions:
    return Positions(*_moved(problem, now.q))


@remembered(64)
def _rest(m: Mechanism) -> bool:
    """Whether velocities of zero satisfy eta = 0 everywhere."""
    T = shared(m)
    return ca.sparsify(ca.substitute(ca.densify(T.rows.eta), T.v, ca.SX.zeros(m.nv, 1))).nnz() == 0


def descend(problem: Problem, q: np.ndarray, v: np.ndarray) -> State:
    """`newton` after a `descent` of each run from q (runs, nq)."""
    return newton(problem, descent(problem, q, v).q, v)


def descent(problem: Problem, q: np.ndarray, v: np.ndarray) -> State:
    """The states to which each run descends from q (runs, nq), by steps that are shortened until they reduce phi.

    Far from a solution a full Newton step may increase phi. Near a ridge, for example where frames that should coincide are
    half a turn apart, phi falls too slowly for `newton`, which gives up. A descent takes about a hundred steps; where phi
    stays open, it ends about STALLED steps after phi has stopped falling.
    """
    states, part, waited = evaluated(problem, q, v), np.ones(len(q)), np.zeros(len(q), dtype=int)
    before = _squares(states)
    for _ in range(DESCENT_STEPS):
        active = np.flatnonzero(~states.closed & (part > LEAST_FRACTION) & (waited < STALLED))
        if not len(active):
            break
        subproblem, now = problem.take(active), states.take(active)
        step = newton_step(subproblem, now.q, now.v).q - now.q
        step[~np.isfinite(step).all(axis=1)] = 0
        trial = evaluated(subproblem, check_configuration(problem.m, now.q + part[active, None] * step), now.v)
        squares = _squares(trial)
        nearer, falls = squares < _squares(now), squares < FALLS * before[active]
        states.put(active[nearer], trial.take(nearer))
        part[active] = np.minimum(1, part[active] * np.where(nearer, 2, 0.5))
        before[active], waited[active] = np.where(falls, squares, before[active]), np.where(falls, 0, waited[active] + 1)
    return states


def _squares(s: State) -> np.ndarray:
    """(runs,) sum of the squares of phi."""
    return np.asarray(np.square(s.parts[0]).sum(axis=1))


def may_converge(problem: Problem, q: np.ndarray, v: np.ndarray, iterations: int = ITERATIONS) -> np.ndarray:
    """(runs,) of bool: False for runs whose phi `newton` would leave open, determined in a fraction of its time.

    The iterations are those of `newton` on q alone, which do not depend on v, by a kernel for the coordinates that all these
    runs fix. They end together with those of `newton` as long as its velocities, solved anew in each iteration, are nearer
    to their constraints than q is.
    """
    if problem.choice is None:
        return np.ones(len(q), dtype=bool)
    before = evaluated(problem, q, v).off
    closed, active = before <= ACCEPTED, np.flatnonzero(np.isfinite(before) & (before > ACCEPTED))
    problem = problem.take(active)
    q, before, waited = q.T[:, active].T, before[active], np.zeros(len(active), dtype=int)
    nearest = before
    for _ in range(iterations):
        if not len(active):
            break
        q, phi = _moved(problem, q)
        off = worst_of(phi)
        closed[active[off <= ACCEPTED]] = True
        nearer = off < 0.95 * nearest
        nearest, waited = np.where(nearer, off, nearest), np.where(nearer, 0, waited + 1)
        on = np.isfinite(off) & (off > ACCEPTED) & ((waited < PATIENCE) | (off < before / 2))
        before = off
        if not on.all():
            q, problem, active = q.T[:, on].T, problem.take(on), active[on]
            before, nearest, waited = before[on], nearest[on], waited[on]
    return closed


def evaluated(problem: Problem, q: np.ndarray, v: np.ndarray) -> State:
    """The State at q, v without an iteration, and with rank zero."""
    residuals = _residuals(problem.m, problem.backend, lanes_for(len(q)))
    phi, eta, inverse, speed = call(residuals, q, v, problem.p, problem.instants)
    q, v = np.array(q, order="F"), np.array(v, order="F")
    return State(q, v, phi, eta, np.zeros(len(q)), inverse, speed)


def newton_step(problem: Problem, q: np.ndarray, v: np.ndarray) -> State:
    """The State after one Newton step from q, v (runs, n)."""
    fixed = problem.fixed
    iteration = _iteration(problem.m, problem.backend, lanes_for(len(q)), problem.choice)
    outputs = call(iteration, q, v, 1.0 - fixed.q, 1.0 - fixed.v, np.sqrt(fixed.weight), problem.p, problem.instants)
    *fields, rank, inverse, speed = outputs
    return State(fields[0], fields[1], fields[2], fields[3], rank[:, 0], inverse, speed)


def position_step(problem: Problem, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """(runs, nq) q after one Newton step from q, v (runs, n); for many runs by a kernel for the coordinates that they fix."""
    return position_residual(problem, q, v)[0]


def position_residual(problem: Problem, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(runs, nq) q after a `position_step`, and (runs, rows) phi there relative to its scale."""
    if len(q) < MANY or problem.choice is None:
        after = newton_step(problem, q, v)
        return after.q, after.parts[0]
    return _moved(problem, q)


def _moved(problem: Problem, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """`position_residual` by the kernel for the coordinates that all runs fix."""
    assert problem.choice is not None
    positions = _positions(problem.m, problem.backend, problem.choice)
    q, phi = positions(q, np.sqrt(problem.fixed.weight), problem.p, problem.instants, threads=threads_for(len(q), SHARE))
    return q, phi


def lanes_for(runs: int) -> int:
    """Number of lanes of the kernel for so many runs."""
    return 1 if runs <= FEW_RUNS else 8


def call(of: kernel.Kernel, *given: np.ndarray, into: list[np.ndarray] | None = None) -> list[np.ndarray]:
    """The outputs of a kernel for arguments (runs, n), or (n,) where all runs share them; the first one is (runs, n).

    into: arrays (runs, n) for the outputs, new ones if it is not given.
    """
    if len(given[0]) == 1 and into is None:  # without the axis of runs a call costs a third
        return [x[None] for x in of(*[x.reshape(-1) for x in given])]
    return list(of(*given, threads=threads_for(len(given[0]), SHARE), out=into))


@remembered(64)
def _residuals(m: Mechanism, backend: Backend, lanes: int) -> kernel.Kernel:
    """Kernel of the residuals: (q, v, p, t) -> phi, eta and their scales.

    A start that satisfies the constraints needs no other kernel.
    """

    return kernel.compile(lambda: _residual_function(m), backend=backend, lanes=lanes, key=f"residuals {digest(m)}")


@remembered(64)
def _residual_function(m: Mechanism) -> ca.Function:
    """(q, v, p, t) -> phi, eta and their scales."""
    T = shared(m)
    T.check_mass()
    outputs = T.rows.phi, T.rows.eta, T.inverse_scales(ACCEPTED), rate_limit_factor(T.kinematics, ACCEPTED)
    return ca.Function("residuals", [T.q, T.v, m.p_symbols, T.t], [ca.densify(x) for x in outputs])


@remembered(64)
def _iteration(m: Mechanism, backend: Backend, lanes: int, fixed: tuple[bool, ...] | None) -> kernel.Kernel:
    """Kernel of one Newton step: (q, v, free_q, free_v, stiffness, p, t) -> the fields of State."""
    with progress_line(m.name, False):
        return kernel.compile(lambda: _newton(m, fixed), backend=backend, lanes=lanes, key=f"newton {fixed!r} {digest(m)}")


def _newton(m: Mechanism, fixed: tuple[bool, ...] | None) -> ca.Function:
    """One Newton step: (q, v, free_q, free_v, stiffness, p, t) -> the fields of State.

    free_q, free_v: (nv,) 1 where a coordinate may move, 0 where it is fixed; free_q is not read where `fixed` is given.
    stiffness: (nv,) square root of the weight.
    """
    T = shared(m)
    T.check_mass()
    free_q, free_v, stiffness = (ca.SX.sym(name, m.nv) for name in ("free_q", "free_v", "stiffness"))
    q, rank = _nearer(T, free_q if fixed is None else _free(fixed), stiffness)
    moved = Terms(m, q, T.v, T.u, T.t)
    moving = T.rows.at(POSITION, VELOCITY)
    v = T.v - shortest(moved, moved.A[moving, :], moved.M, moving, free_v, stiffness).solve(moved.rows.eta[moving])
    phi, eta, *scales = _residual_function(m)(q, v, m.p_symbols, T.t)
    inputs = [T.q, T.v, free_q, free_v, stiffness, m.p_symbols, T.t]
    outputs = q, v, phi, eta, rank, *scales
    return ca.Function("newton", inputs, [ca.densify(x) for x in outputs])


@remembered(64)
def _positions(m: Mechanism, backend: Backend, fixed: tuple[bool, ...]) -> kernel.Kernel:
    """Kernel of a Newton step of q with the marked coordinates fixed: (q, stiffness, p, t) -> q, phi relative to its scale.

    With the fixed coordinates as constants it has fewer operations than the kernel of `_newton`, and gives the same bits.
    """

    def build() -> ca.Function:
        T, stiffness = shared(m), ca.SX.sym("stiffness", m.nv)
        q, _ = _nearer(T, _free(fixed), stiffness)
        phi, _, inverse, _ = _residual_function(m)(q, T.v, m.p_symbols, T.t)
        outputs = q, phi * inverse
        return ca.Function("positions", [T.q, stiffness, m.p_symbols, T.t], [ca.densify(x) for x in outputs], {"cse": True})

    return kernel.compile(build, backend=backend, key=f"positions {fixed!r} {digest(m)}")


def _free(fixed: tuple[bool, ...]) -> ca.SX:
    """(nv, 1) 1 where a coordinate may move, 0 where it is fixed."""
    return ca.SX([0.0 if x else 1.0 for x in fixed])


def _nearer(T: Terms, free: ca.SX, stiffness: ca.SX) -> tuple[ca.SX, ca.SX]:
    """q (nq, 1) after a Newton step, and the rank of the position rows.   free, stiffness: see `_newton`."""
    m, firm, R = T.mechanism, T.rows.at(POSITION), coordinate_rates(T)
    M = R.T @ T.M @ R
    if T.counted is not None:
        M = M + ca.diag(_least_inertia(m, ca.diag(M)))
    step = shortest(T, T.A[firm, :] @ R, M, firm, free, stiffness)
    move = step.solve(T.rows.phi[firm], far=True)
    turns = largest_entry(move[[i for i, unit in enumerate(m.v_units) if unit != "m/s"]])
    return normalised(m, T.q - T.kinematics.kinematic_matrix @ (R @ move) * (STRIDE / ca.fmax(turns, STRIDE))), step.rank


class Shortest(NamedTuple):
    """A factorisation for the shortest x in the metric S M S with A x = rhs and x_i = 0 where not free.

    Lam: (rows, nv) A in mass-weighted coordinates.   lengths: (rows, 1) typical lengths of the rows.   minimum: None without
    rows.
    """

    factor: TreeFactor
    Lam: ca.SX
    lengths: ca.SX
    minimum: MinimumNorm | None
    dependent: bool

    @property
    def rank(self) -> ca.SX:
        """(1, 1) rank of A."""
        return ca.SX(0) if self.minimum is None else self.minimum.rank

    def solve(self, rhs: ca.SX, far: bool = False) -> ca.SX:
        """x (nv, 1) for the right-hand sides rhs (rows, 1).

        far: whether rhs may be large. Rows that depend on each other at the solution contradict each other far from it, so x is
            damped.
        """
        if self.minimum is None:
            return ca.SX.zeros(self.Lam.shape[1], 1)
        if far and self.dependent:
            return solve_WT(self.factor, damped(ca.diag(1 / self.lengths) @ self.Lam, rhs / self.lengths, RANK_TOLERANCE))
        return solve_WT(self.factor, self.minimum.solve(rhs))


def shortest(T: Terms, A: ca.SX, M: ca.SX, rows: list[int], free: ca.SX, stiffness: ca.SX) -> Shortest:
    """The Shortest of A (rows, nv), which are the constraint rows with these indices.   free, stiffness: see `_newton`."""
    s = free * stiffness
    factor = factor_tree(ca.sparsify(M * (s @ s.T)) + ca.diag(1 - free), T.kinematics.parents)
    if not rows:
        return Shortest(factor, ca.SX(0, T.mechanism.nv), ca.SX(0, 1), None, False)
    A = ca.sparsify(A @ ca.diag(free))
    Lam, lengths = solve_W(factor, A.T).T, row_lengths(T)[rows, 0]
    minimum = minimum_norm(Lam, RANK_TOLERANCE, relative_size(T, A, rows), T.counted, T.row_blocks(rows))
    return Shortest(factor, Lam, lengths, minimum, bool(T.groups))


def _least_inertia(m: Mechanism, inertia: ca.SX) -> ca.SX:
    """(nv, 1) LEAST_INERTIA times the largest inertia (nv, 1) of the same kind, along or about an axis.

    It is added because light directions alone would move otherwise.
    """
    linear = [unit == "m/s" for unit in m.v_units]
    most = {kind: ca.mmax(ca.vertcat(0, *[inertia[i] for i, x in enumerate(linear) if x == kind])) for kind in (True, False)}
    return LEAST_INERTIA * ca.vertcat(*[most[kind] for kind in linear])


def coordinate_rates(T: Terms) -> ca.SX:
    """(nv, nv) velocities that change one coordinate at a time.

    For translations they are along the axes of the joint, for rotations by a quaternion body-fixed.
    """
    m, K, blocks = T.mechanism, T.kinematics.kinematic_matrix, []
    for j in m.owners:
        q, v, k = m.q_slices[j.name].start, m.v_slices[j.name].start, j.plain
        blocks += [K[q : q + k, v : v + k].T, ca.SX.eye(j.nv - k)]  # K is orthogonal there
    return ca.diagcat(*blocks) if m.velocities is None else ca.SX.eye(m.nv)


def fixed_entries(m: Mechanism, fixed: np.ndarray) -> np.ndarray:
    """(runs, nq) of bool: the entries of q that are fixed when the marked velocity coordinates (runs, nv) are fixed."""
    return np.stack([fixed[:, list(by)].any(axis=1) for by in _movers(m)], axis=1) if m.nq else np.zeros((len(fixed), 0), bool)


def fixed_velocities(m: Mechanism, named: np.ndarray) -> np.ndarray:
    """(nv,) of bool: the velocity coordinates that move one of the marked entries (nq,) of q."""
    marked = np.zeros(m.nv, dtype=bool)
    for entry in np.flatnonzero(named):
        marked[list(_movers(m)[entry])] = True
    return marked


@remembered(64)
def _moved_together(m: Mechanism) -> tuple[tuple[int, ...], ...]:
    """For each entry of q, the velocities in its row of K."""
    pattern = shared(m).kinematics.kinematic_matrix.sparsity()
    movers: list[list[int]] = [[] for _ in range(m.nq)]
    for i, j in zip(*pattern.get_triplet(), strict=True):
        movers[i].append(j)
    return tuple(map(tuple, movers))


@remembered(64)
def _movers(m: Mechanism) -> tuple[tuple[int, ...], ...]:
    """For each entry of q, the velocity coordinates that move it: one, or the three of a quaternion's rotation."""
    movers: list[tuple[int, ...]] = []
    for j in m.owners:
        v, k = m.v_slices[j.name].start, j.plain
        if m.velocities or isinstance(j, Coordinates) or j.distribution is not None:
            movers += _moved_together(m)[m.q_slices[j.name]]
        else:
            movers += [(v + i,) if i < k else tuple(range(v + k, v + j.nv)) for i in range(j.nq)]
    return tuple(movers)
