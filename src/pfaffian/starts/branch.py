"""On which branch an assembly is, and how far it is from the state that was given.

With some coordinates fixed, the others are isolated where the rows A of the constraints in them are square and regular. Only
through a singular configuration can they pass from det A > 0 to det A < 0, so the sign of det A is constant along a branch.
A falls into blocks that can be solved one after the other (a leg, a dyad of a linkage), and each has a sign of its own.
"""

from __future__ import annotations

from typing import Any

import casadi as ca
import numpy as np

from pfaffian import kernel
from pfaffian.kernel.call.recipe import Backend
from pfaffian.maths import so3
from pfaffian.maths.margins import Decision, closest, exceeding
from pfaffian.maths.values import values
from pfaffian.model.mechanism import Mechanism
from pfaffian.starts.newton import Problem, call, coordinate_rates, lanes_for
from pfaffian.terms.dependence import PLAIN, ROUNDED
from pfaffian.terms.equations_digest import digest
from pfaffian.terms.generic_states import generic_states, tell
from pfaffian.terms.lengths import default_length, slides
from pfaffian.terms.pfaffian import POSITION
from pfaffian.terms.terms import Terms, row_lengths, shared, typical
from pfaffian.terms.traced_now import remembered

UNKNOWN = -1
"""Index where motions stay free, or where rows repeat each other so that no square block has a sign."""

DEPENDENT = 1e-6
"""Length of a row's remainder, relative to its typical length, below which it depends on rows before it."""

CLEAR = 1e-7
"""Smallest |det A| of a block, relative to the product of the lengths of its rows or columns, whose sign is not chance: where
it vanishes, the rounding of a state changes it by the root of 1e-16."""

DRAWN = 3
"""Number of random configurations at which rows are chosen where none on the constraints is known."""

QUESTION = "whether the other coordinates follow from the fixed ones, so that assemblies lie on branches,"

MOST_BLOCKS, MOST_PRODUCTS = 52, 50_000
"""Largest number of blocks that an index counts, and of products in a determinant."""


def branch_and_distance(problem: Problem, given: np.ndarray, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(runs,) index of the branch of assemblies q (runs, nq), and (runs,) their distance from `given` [kg^(1/2) m].

    The distance is that in the metric of M; fixed coordinates have not moved.
    """
    fixed = tuple(problem.fixed.q[0].tolist())
    of = _kernel(problem.m, problem.backend, fixed, lanes_for(len(q)))
    index, squared = call(of, q, given, np.sqrt(problem.fixed.weight), problem.p, problem.instants)
    return np.where(np.isfinite(index[:, 0]), index[:, 0], UNKNOWN).astype(int), np.sqrt(np.maximum(squared[:, 0], 0))


def sides(problem: Problem, q: np.ndarray) -> np.ndarray:
    """(runs,) index of the branch of each state q (runs, nq); UNKNOWN also where one is singular."""
    fixed = tuple(problem.fixed.q[0].tolist())
    if chosen_blocks(problem.m, fixed) is None:
        return np.full(len(q), UNKNOWN)
    of = _sides_kernel(problem.m, problem.backend, fixed, lanes_for(len(q)))
    index, clear = call(of, q, problem.p, problem.instants)
    return np.where(np.isfinite(index[:, 0]) & (clear[:, 0] > CLEAR), index[:, 0], UNKNOWN).astype(int)


@remembered(64)
def _sides_kernel(m: Mechanism, backend: Backend, fixed: tuple[bool, ...], lanes: int) -> kernel.Kernel:
    """Kernel (q, p, t) -> index of the branch, smallest size of a block's determinant."""
    return kernel.compile(lambda: _sides(m, fixed), backend=backend, lanes=lanes, key=f"sides {fixed!r} {digest(m)}")


@remembered(64)
def _sides(m: Mechanism, fixed: tuple[bool, ...]) -> ca.Function:
    """(q, p, t) -> index of the branch, smallest |det A| of a block relative to the lengths of its rows or columns."""
    T, blocks = shared(m), chosen_blocks(m, fixed)
    A, clear = T.A[T.rows.at(POSITION), :] @ coordinate_rates(T), ca.SX(1)
    for rows, columns in blocks or ():
        block = A[list(rows), list(columns)]
        det = determinant(block)
        if det is not None:  # a row, or a column, may vanish where A is singular: not all of them do
            longest = ca.fmax(*(_product([ca.norm_2(x) for x in split(block)]) for split in (ca.vertsplit, ca.horzsplit)))
            clear = ca.fmin(clear, ca.fabs(det) / longest)
    return ca.Function("sides", [T.q, m.p_symbols, T.t], [_index(A, blocks), clear], {"cse": True})


def _product(x: list[ca.SX]) -> ca.SX:
    """The product of numbers."""
    return x[0] if len(x) == 1 else x[0] * _product(x[1:])


@remembered(64)
def _kernel(m: Mechanism, backend: Backend, fixed: tuple[bool, ...], lanes: int) -> kernel.Kernel:
    """Kernel (q, given, stiffness, p, t) -> index of the branch, squared distance."""
    return kernel.compile(lambda: _function(m, fixed), backend=backend, lanes=lanes, key=f"branch {fixed!r} {digest(m)}")


@remembered(64)
def _function(m: Mechanism, fixed: tuple[bool, ...]) -> ca.Function:
    """(q, given, stiffness, p, t) -> index of the branch, squared distance."""
    T, given, stiffness = shared(m), ca.SX.sym("given", m.nq), ca.SX.sym("stiffness", m.nv)
    R = coordinate_rates(T)
    move = R @ (_change(m, T.kinematics.kinematic_matrix @ R, given, T.q) * stiffness)  # zero where a coordinate is fixed
    index = _index(T.A[T.rows.at(POSITION), :] @ R, chosen_blocks(m, fixed))
    outputs = index, 2 * Terms(m, T.q, move, T.u, T.t).T  # move^T M move; M itself would take n^2 operations for n links
    inputs = [T.q, given, stiffness, m.p_symbols, T.t]
    return ca.Function("branch", inputs, [ca.densify(x) for x in outputs], {"cse": True})


def _change(m: Mechanism, K: ca.SX, q: ca.SX, other: ca.SX) -> ca.SX:
    """(nv, 1) changes of the coordinates, one by one, from q to `other`; rotations by quaternions are rotation vectors."""
    if m.velocities is not None or m.coordinates:
        return ca.solve(K.T @ K, K.T @ (other - q))
    parts = [ca.SX(0, 1)]
    for j in m.owners:
        at = m.q_slices[j.name]
        if j.name in m.quaternions:
            plain, turn = slice(at.start, at.stop - 4), slice(at.stop - 4, at.stop)
            between = so3.quat_mul(so3.quat_conj(q[turn, 0]), other[turn, 0])
            parts += [other[plain, 0] - q[plain, 0], so3.quat_log(between)]
        else:
            parts.append(other[at, 0] - q[at, 0])
    return ca.vertcat(*parts)


RowBlocks = tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]
"""Rows and columns of square blocks."""


def _index(A: ca.SX, blocks: RowBlocks | None) -> ca.SX:
    """(1, 1) the index of a branch: a binary digit for each block, 1 where its determinant is below zero."""
    if blocks is None:
        return ca.SX(UNKNOWN)
    index = ca.SX(0)
    for k, (rows, columns) in enumerate(blocks):
        det = determinant(A[list(rows), list(columns)])
        if det is None:
            return ca.SX(UNKNOWN)
        index += 2**k * (det < 0)
    return index


def determinant(A: ca.SX) -> ca.SX | None:
    """The determinant of a sparse square A by minors, without a division; None if it takes too many products.

    Example:
        >>> import casadi as ca
        >>> from pfaffian.starts.branch import determinant
        >>> print(determinant(ca.SX([[1, 2, 0], [3, 4, 5], [0, 1, 2]])))
        -9
    """
    entries = [[(j, A[i, j]) for j in range(A.shape[1]) if A.sparsity().has_nz(i, j)] for i in range(A.shape[0])]
    minors, count = {0: ca.SX(1)}, 0  # set of columns, as bits -> minor of the rows so far
    for row in entries:
        wider: dict[int, Any] = {}
        for used, minor in minors.items():
            for j, x in row:
                if used >> j & 1:
                    continue
                sign = -1 if (used >> j).bit_count() % 2 else 1
                wider[used | 1 << j] = wider.get(used | 1 << j, 0) + sign * x * minor
                count += 1
        if count > MOST_PRODUCTS:
            return None
        minors = wider
    return next(iter(minors.values()), ca.SX(0))


@remembered(64)
def chosen_blocks(m: Mechanism, fixed: tuple[bool, ...]) -> RowBlocks | None:
    """The square blocks of position rows in the coordinates that are not fixed, in the order of their first coordinates.

    A configuration near a singular one does not decide where another is far from them or clearly singular. None where rows do
    not determine these coordinates, or where more rows than one could serve in a block, which none of them does everywhere.
    """
    T, free = shared(m), [i for i, x in enumerate(fixed) if not x]
    firm = T.rows.at(POSITION)
    if not free or not firm:
        return () if not free else None
    A = ca.sparsify(T.A[firm, :] @ coordinate_rates(T))[:, free]
    lengths = row_lengths(T)[firm, 0]
    f = ca.Function("rows", [T.q, T.t, m.p_symbols], [ca.densify(A / ca.repmat(lengths, 1, len(free)))])
    places = typical(m).places or [x.q for x in generic_states(m, count=DRAWN)]
    unit = np.where(slides(m), default_length(m) or 1.0, 1.0)[free]  # as in `row_lengths`
    samples = [unit * values(f, q, 0, m.p_defaults)[0] for q in places]
    largest = np.max([np.abs(x).max(axis=1) for x in samples], axis=0)
    used = np.flatnonzero(tell(m, QUESTION, exceeding(largest, DEPENDENT))).tolist()
    if len(used) != len(free):
        return None
    least = np.array([min(_remainders(x[used])) for x in samples])
    plain = least[(least <= ROUNDED) | (least >= PLAIN)]
    least = plain if plain.size else least
    if not tell(m, QUESTION, Decision((least > DEPENDENT).all(), closest(least, DEPENDENT), DEPENDENT)):
        return None
    nb, rows, columns, row_at, column_at, *_ = A[used, :].sparsity().btf()
    blocks = [
        (
            tuple(sorted(used[i] for i in rows[row_at[b] : row_at[b + 1]])),
            tuple(sorted(columns[column_at[b] : column_at[b + 1]])),
        )
        for b in range(nb)
    ]
    if len(blocks) > MOST_BLOCKS or any(len(r) != len(c) for r, c in blocks):
        return None
    return tuple((r, tuple(free[j] for j in c)) for r, c in sorted(blocks, key=lambda block: block[1]))


def _remainders(A: np.ndarray) -> list[float]:
    """The length of what each row adds to the rows before, orthogonal to those of them whose own remainders are not short."""
    orthonormal, lengths = list[np.ndarray](), list[float]()
    for row in A:
        for _ in range(2):
            row = row - sum((k * (k @ row) for k in orthonormal), np.zeros(len(row)))
        lengths.append(float(np.sqrt((row * row).sum())))
        if lengths[-1] > DEPENDENT:
            orthonormal.append(row / lengths[-1])
    return lengths
