"""Distance of loops from losing rank, independent of the choice of cut joints, of frames, order and units.

Around a loop the motions of the joints add up to zero: S q_dot = 0, with all joints treated alike (`terms/loops.py`). If a
joint j had an error, a twist delta, all joints would have to compensate it: S q_dot = -T_j delta. The motion that this takes,
over all delta, is |X_j|^2 = trace(T_j^T Y T_j) with Y = (S S^T)^-1, and it grows without bound where S loses rank.

Some wrenches w in loops do no work on any joint wherever the constraints are satisfied, S^T w = 0: the force normal to a planar
loop of hinges, three directions in Bennett's linkage. The component of delta on which they would do work cannot be compensated.
It is distributed over the joints so that the sum of the squares is least. Let these wrenches be the columns of W, and G the sum
of T_j T_j^T: then Y is the inverse of S S^T on the wrenches with W^T G w = 0.

Other loops through the same joints are combinations of these, S -> C S and T_j -> C T_j, so Y -> C^-T Y C^-1 and X_j does not
change. The number of columns of W is determined beforehand, where the constraints are satisfied. So in a configuration that
loses more rank, X_j is unbounded; the regularity falls to zero there, in proportion to the distance.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, reduce

import casadi as ca
import numpy as np

from pfaffian.dynamics.net_regularity import LEAST, NetBlocks, compensation, null_space
from pfaffian.maths.linear import connected
from pfaffian.maths.margins import parted
from pfaffian.maths.reflection import NOTHING
from pfaffian.maths.selected_inverse import SparseFactor, entries, factor, supports, weighed
from pfaffian.model.mechanism import Mechanism
from pfaffian.terms.dependence import DEPENDENT
from pfaffian.terms.generic_states import at_generic_states, tell
from pfaffian.terms.loops import Loops, equations, loops
from pfaffian.terms.terms import always_active, shared
from pfaffian.terms.traced_now import remembered


def of_loops(m: Mechanism, at: Loops) -> ca.SX:
    """(1, 1) the squared regularity of loops: the least r / (J |X_j|^2) over their joints j, at most 1.

    r is the rank of the equations S of all loops that share joints with each other, and J the number of these joints.
    """
    blocks = redundant(m)
    in_nets = {l for block, _ in blocks if len(block) > 1 for l in block}
    components = connected([set(ways) for ways in at.joints])
    nets = [joints for joints in components if any(in_nets & {*at.joints[j]} for j in joints)]
    others = sorted(j for joints in components if joints not in nets for j in joints)
    X = dict(zip(others, _compensation(at, _idle(at, blocks), others), strict=True))
    for joints in nets:
        X |= zip(joints, compensation(at, joints, blocks), strict=True)
    ranks: list[ca.SX] = [at.on[l] * sum(bool(at.S[i, :].nnz()) for i in equations(l)) for l in range(len(at.on))]
    for block, count in blocks:
        all_on = reduce(ca.fmin, [at.on[l] for l in block])
        ranks[block[0]] += sum((6 * at.on[l] - ranks[l] for l in block), ca.SX(0)) - count * all_on
    worst = ca.SX(1)
    for joints in components:
        rank = sum((ranks[l] for l in {l for j in joints for l in at.joints[j]}), ca.SX(0))
        largest = ca.mmax(ca.vertcat(*[X[j] for j in joints]))
        worst = ca.fmin(worst, (rank + NOTHING) / ca.fmax(len(joints) * largest, NOTHING))
    return worst


@remembered(64)
def redundant(m: Mechanism) -> tuple[tuple[tuple[int, ...], int], ...]:
    """Blocks of loops whose equations depend on each other where the constraints are satisfied, with the number of redundant
    equations of each.

    Equations that contain no joint in any position, such as those normal to a plane, do not count.
    """
    active = always_active(m)
    S = loops(shared(active).kinematics).S
    samples = at_generic_states(active, {"S": S}, on_constraints=True)["S"]
    occupied = [i for i, support in enumerate(supports(S)) if support]
    dependent = [set[int]() for _ in occupied]
    sizes = list[np.ndarray]()
    for x in samples:
        U, rank, relative = _rank(x[occupied])
        sizes.append(relative)
        for i, j in np.argwhere(np.abs(U[:, rank:] @ U[:, rank:].T) > DEPENDENT):
            dependent[i].add(occupied[j] // 6)
    blocks = [set[int]().union(*[dependent[i] for i in part]) for part in connected(dependent) if dependent[part[0]]]
    rows = [[i for l in sorted(block) for i in equations(l)] for block in blocks]
    redundancy = [min(len(of_block) - _rank(x[of_block])[1] for x in samples) for of_block in rows]
    found = tuple((tuple(sorted(block)), count) for block, count in zip(blocks, redundancy, strict=True))
    which = parted(found, np.concatenate(sizes), DEPENDENT)
    return tell(m, "which equations of loops depend on each other", which)


def _rank(x: np.ndarray) -> tuple[np.ndarray, int, np.ndarray]:
    """Left singular vectors of a matrix, its rank, and its singular values relative to the largest, or to one."""
    U, sizes, _ = np.linalg.svd(x)
    relative = sizes / sizes.max(initial=1.0)
    return U, int((relative > DEPENDENT).sum()), relative


def _idle(at: Loops, blocks: NetBlocks) -> ca.SX:
    """W (6 L, d), a basis of the wrenches in loops apart from nets that do no work wherever the constraints are satisfied.

    Wrenches that do no work in any position, such as those normal to a plane, are omitted if they do not mix with others.
    """
    n, columns = at.S.shape[0], list[ca.SX]()
    for (l, *others), count in blocks:
        if not others:
            screws = ca.sparsify(at.S[equations(l), :]).T
            W = ca.SX(n, count)
            W[equations(l), :] = null_space(screws[[i for i in range(screws.shape[0]) if screws[i, :].nnz()], :], count)
            columns.append(W)
    in_blocks = {l for block, _ in blocks for l in block}
    occupied = [bool(at.S[i, :].nnz()) for i in range(n)]
    for part in connected(_neighbours(at.T)):
        if any(occupied[j] for j in part):
            columns += [ca.SX.eye(n)[:, i] for i in part if not occupied[i] and i // 6 not in in_blocks]
    return ca.sparsify(ca.horzcat(ca.SX(n, 0), *columns))


def _neighbours(T: ca.SX) -> list[set[int]]:
    """For each row of T the set of that row and the rows that share an entry of T T^T with it."""
    neighbours = [{i} for i in range(T.shape[0])]
    for i, j in zip(*ca.sparsify(T @ T.T).sparsity().get_triplet(), strict=True):
        neighbours[i].add(j)
    return neighbours


def _compensation(at: Loops, W: ca.SX, joints: list[int]) -> list[ca.SX]:
    """|X_j|^2 of joints, by two sparse factors: Y = H^-1 - W D^-1 W^T with D = W^T G W, H = S S^T + G W D^-1 W^T G."""
    loops = {l for j in joints for l in at.joints[j]}
    occupied = enumerate(zip(supports(at.S), supports(W), strict=True))
    rows = [i for i, columns in occupied if i // 6 in loops and any(columns)]
    n = len(rows)
    inactive = ca.diag(ca.vertcat(*[1 - at.on[i // 6] for i in rows]))
    T, S, W = at.T[rows, :], at.S[rows, :], W[rows, :]
    W = W[:, [z for z in range(W.shape[1]) if W[:, z].nnz()]]
    G = ca.sparsify(T @ T.T) + inactive
    GW = ca.sparsify(G @ W)
    D = ca.sparsify(W.T @ GW)
    H = ca.sparsify(ca.blockcat([[S @ S.T + inactive, GW], [GW.T, -D]]))
    first = {i: {n + z for z in used} for i, used in enumerate(supports(W))}

    def invert(i: int, pivot: ca.SX) -> ca.SX:
        return 1 / ca.fmax(pivot, LEAST**2 * G[i, i]) if i < n else -1 / ca.fmax(-pivot, NOTHING)

    Y = _quotient(factor(H, invert, first), factor(D, lambda _, pivot: 1 / ca.fmax(pivot, NOTHING)), W)
    return [weighed(Y, T[:, equations(j)]) for j in joints]


def _quotient(H: SparseFactor, D: SparseFactor, W: ca.SX) -> Callable[[int, int], ca.SX]:
    """The function (i, j) -> entry of H^-1 - W D^-1 W^T."""
    of_H, of_D = entries(H), entries(D)
    used = supports(W)

    @cache
    def right(z: int, j: int) -> ca.SX:
        return sum((of_D(z, y) * W[j, y] for y in used[j]), ca.SX(0))

    @cache
    def entry(i: int, j: int) -> ca.SX:
        return of_H(i, j) - sum((W[i, z] * right(z, j) for z in used[i]), ca.SX(0))

    return entry
