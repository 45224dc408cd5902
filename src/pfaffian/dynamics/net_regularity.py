"""|X_j|^2 of `loop_regularity` for the joints of nets: loops whose equations depend on those of other loops.

The freedoms of the closures, most freedoms in a net of rods, are eliminated in closed form. Wrenches that do no work on those
of their own closure are N mu, with one unknown mu for each row of a constraint instead of six for each loop. Let C be the
columns of S for these freedoms, E = C C^T, and R the columns of all other joints. The idle wrenches are W = N w with
R^T N w = 0. With the motions along them as further freedoms, H = S S^T + G W D^-1 W^T G, D = W^T G W, is regular, and

    Y = H^-1 - W D^-1 W^T,    t^T H^-1 t = t^T E t + r^T F^-1 r,    F = [[-M, J^T], [J, 0]],    r = [-A^T E t; N^T t],

where A = [R, G W] are the remaining motions, M = diag(1, D) + A^T E A gives their sum of squares if the closures follow, and
J = N^T A are the rows in which the closures cannot follow.
"""

from __future__ import annotations

from collections.abc import Sequence

import casadi as ca

from pfaffian.maths.linear import orthogonalise, solve_symmetric
from pfaffian.maths.reflection import NOTHING
from pfaffian.maths.selected_inverse import entries, factor, supports, weighed
from pfaffian.terms.loops import Loops, equations

LEAST = 1e-7
"""Relative length below which the remainder of a screw is rounding; about the least regularity of loops, too."""

NetBlocks = Sequence[tuple[tuple[int, ...], int]]
"""Loops whose equations depend on each other, and how many of these are redundant."""


def compensation(at: Loops, joints: Sequence[int], blocks: NetBlocks) -> list[ca.SX]:
    """|X_j|^2 of the joints of a net."""
    members = sorted({l for j in joints for l in at.joints[j]})
    rows = [i for l in members for i in equations(l)]
    N, of = ca.diagcat(*[at.N[l] for l in members]), [l for l in members for _ in range(at.N[l].shape[1])]
    T, S = at.T[rows, [c for j in joints for c in equations(j)]], at.S[rows, :]
    used = {c for c in range(S.shape[1]) if S[:, c].nnz()}
    C, R = S[:, sorted(used & {*at.closing})], S[:, sorted(used - {*at.closing})]
    off = ca.diag(ca.vertcat(*[1 - at.on[l] for l in of]))
    w = _idle(ca.sparsify(N.T @ R), R, of, _redundant(at, members, blocks))
    V = ca.sparsify(T.T @ N)
    U = ca.sparsify(V @ w)
    D = ca.sparsify(U.T @ U + w.T @ off @ w)
    A = ca.horzcat(R, ca.sparsify(T @ U + N @ (off @ w)))
    CA, J = ca.sparsify(C.T @ A), ca.sparsify(N.T @ A)
    M = ca.diagcat(ca.SX.eye(R.shape[1]), D) + CA.T @ CA
    n, size = M.shape[0], ca.sum1(V * V).T + ca.diag(off)

    def invert(i: int, pivot: ca.SX) -> ca.SX:
        return -1 / ca.fmax(-pivot, NOTHING) if i < n else 1 / ca.fmax(pivot, LEAST**2 * size[i - n])

    F = ca.sparsify(ca.blockcat([[-M, J.T], [J, off]]))
    entry = entries(factor(F, invert, {n + i: set(columns) for i, columns in enumerate(supports(J))}))
    D_inverse, found = solve_symmetric(D, ca.SX.eye(D.shape[0])), []
    for i in range(len(joints)):
        Ct, u = ca.sparsify(C.T @ T[:, equations(i)]), U[equations(i), :]
        r = ca.sparsify(ca.vertcat(-CA.T @ Ct, V[equations(i), :].T))
        found.append(ca.sumsqr(Ct) + weighed(entry, r) - ca.trace(u @ D_inverse @ u.T))
    return found


def null_space(rows: ca.SX, count: int, lengths: ca.SX | None = None) -> ca.SX:
    """(m, count) orthonormal columns that rows (k, m) of rank m - count annul, at full rank those that they annul best.

    lengths: (k, 1) squared lengths beside which the remainders of rows are rounding; their own if None.
    """
    size = None if lengths is None else ca.sum2(rows * rows) / ca.fmax(lengths, NOTHING)
    best = _best(rows, size, rows.shape[1] - count)
    rest = ca.SX.eye(rows.shape[1]) - best.T @ best
    return _best(rest, ca.sum2(rest * rest), count, passes=1).T


def _best(rows: ca.SX, size: ca.SX | None, count: int, passes: int = 2) -> ca.SX:
    """Orthonormal rows, each from the row with the largest remainder.   size: as in `orthogonalise`."""
    m = rows.shape[0]
    return orthogonalise(rows, ca.SX(m, 0), LEAST, size, passes=passes, groups=[[*range(m)]], most=count).Q


def _redundant(at: Loops, members: Sequence[int], blocks: NetBlocks) -> dict[tuple[int, ...], int]:
    """{loops: number of idle wrenches} for all loops of a net; a loop in no block has one for each empty equation."""
    found = {block: count for block, count in blocks if block[0] in members}
    others = {*members}.difference(*found)
    return found | {(l,): sum(not at.S[i, :].nnz() for i in equations(l)) for l in others}


def _idle(J: ca.SX, R: ca.SX, of: Sequence[int], redundant: dict[tuple[int, ...], int]) -> ca.SX:
    """w (m, d): a basis of the combinations of rows J = N^T R that vanish wherever the constraints are satisfied.

    of: the loop of each row, in ascending order.   redundant: {loops: number of combinations of their rows}.
    """
    found, members = [ca.SX(len(of), 0)], sorted({*of})
    for loops, count in redundant.items():
        rows = [i for i, l in enumerate(of) if l in loops]
        empty = [i for i in rows if not J[i, :].nnz()]
        found.append(ca.SX.eye(len(of))[:, empty])
        if count > len(empty):
            others = [i for i in rows if i not in empty]
            columns = [c for c in range(J.shape[1]) if J[others, c].nnz()]
            screws = R[[i for l in loops for i in equations(members.index(l))], columns]
            found.append(ca.SX(len(of), count - len(empty)))
            found[-1][others, :] = null_space(ca.sparsify(J[others, columns]).T, count - len(empty), ca.sum1(screws * screws).T)
    return ca.sparsify(ca.horzcat(*found))
