"""Maps from the velocities v to other rates: q_dot = K(q) v, link rates s = N(q) v, velocities as written v0 = T(q) v.

v0 are the velocities of joints and coordinates as written. A plain tree has s = v0 = v. Edges, whose pose is any function of q,
coordinates with a K of their own, and a choice of velocities are treated here and nowhere else: the recursions work on links
with a constant basis and rates s, and N^T transforms generalised forces along s to forces along v.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import casadi as ca
import numpy as np

from pfaffian.errors import ModelError, brief
from pfaffian.kernel.program.trace import codes_of
from pfaffian.kernel.remember import once_for, remembered
from pfaffian.model.coordinates import Coordinates, known
from pfaffian.model.coordinates import kinematic_block as coordinate_block
from pfaffian.model.joint import Joint
from pfaffian.model.mechanism import Mechanism, random_configuration
from pfaffian.model.pose import Pose
from pfaffian.model.traced_function import TracedFunction, graph
from pfaffian.model.user_functions import call_for_value, in_symbols
from pfaffian.terms.tree import BodyLayout, Tree, assemble_tree, layout

SIZES = (1.0, 1.0, 1e-9, 1e-6, 1e-3, 1e3, 1e6, 1e9)
"""Sizes of random coordinates, in metres and turns: a track of micrometres and an orbit bend alike."""

CONSTANT = 1e-12
"""Largest difference between the values of a constant entry, relative to its size."""

BRANCHING = frozenset(
    (ca.OP_LT, ca.OP_LE, ca.OP_EQ, ca.OP_NE, ca.OP_NOT, ca.OP_AND, ca.OP_OR, ca.OP_FLOOR, ca.OP_CEIL, ca.OP_FMOD)
    + (ca.OP_FABS, ca.OP_SIGN, ca.OP_COPYSIGN, ca.OP_FMIN, ca.OP_FMAX, ca.OP_IF_ELSE_ZERO, ca.OP_REMAINDER)
)
"""Operations that may make a function constant at some configurations and not at others."""


@dataclass(frozen=True, eq=False)
class Configuration:
    """The argument of an edge's pose function: the coordinates q (nq, 1) of a mechanism, by the names of joints."""

    mechanism: Mechanism
    q: ca.SX

    def joint(self, name: str) -> ca.SX:
        """The entries of q of a joint or of coordinates."""
        return coordinates_of(self.mechanism, self.mechanism.owner(name), self.q)


class Rates(NamedTuple):
    """The tree of a mechanism and its maps from v.

    tree: its links.   pose: link -> Function (q, p) -> (R, p), of edges and of joints that follow others.
    plain: whether s = v0 = v.   maps: (q, p) -> K (nq, nv), N (ns, nv), T (nv, nv).
    bias: (q, v, p) -> d/dt N v at constant v (ns, 1).
    """

    tree: Tree
    pose: dict[int, ca.Function]
    plain: bool
    maps: ca.Function
    bias: ca.Function


def moving(m: Mechanism) -> Mechanism:
    """The part of a mechanism that determines how its joints and coordinates move, with its functions traced now.

    It has no constraints, forces, actuators and choice of velocities.
    Raises ModelError: a function fails, or does not return K, phi or a pose.
    """
    bare = once_for(m, "moving", lambda: replace(m, constraints=(), forces=(), actuators=(), velocities=None))
    return bare if _is_now(bare) else _now(bare)


def symbols_of(m: Mechanism) -> tuple[int, ...]:
    """Hashes of the parameters' symbols, by which mechanisms differ that are equal but have different Parameters."""
    return tuple(p.symbol.element_hash() for p in m.parameters)


def _is_now(m: Mechanism) -> bool:
    """Whether the functions that determine how a mechanism moves are already traced."""

    def traced() -> bool:
        functions = [c.K for c in m.coordinates] + [j.pose for j in m.joints if j.pose]
        return all(isinstance(f, TracedFunction) for f in functions)

    return once_for(m, "is now", traced)


def _now(m: Mechanism) -> Mechanism:
    """The mechanism with the functions of edges and coordinates traced now."""
    q, p = ca.SX.sym("q", m.nq), m.p_symbols
    poses = {j.name: _returned_pose(m, j, q, p) for j in m.joints if j.pose}
    digests = {name: graph([q, p], [G.R, G.p]) for name, G in poses.items()}
    joints = [replace(j, pose=TracedFunction(j.pose, digests[j.name])) if j.pose else j for j in m.joints]
    return replace(m, coordinates=tuple(known(c, m.parameters) for c in m.coordinates), joints=tuple(joints))


def rates_as_written(m: Mechanism) -> Rates:
    """Rates for the velocities v0 of joints and coordinates as written, computed once. Raises ModelError: invalid poses or K.

    For a choice of velocities see `kinematics.rates`.
    """
    return _rates_as_written(moving(m), m.velocities is None, symbols_of(m))


@remembered(256)
def _rates_as_written(m: Mechanism, all_of_v: bool, symbols: tuple[int, ...]) -> Rates:
    """Rates for v0.   all_of_v: whether v0 are the velocities v, so that link rates of a plain tree may be entries of v."""
    q, p = ca.SX.sym("q", m.nq), m.p_symbols
    poses = {j.name: _edge_pose(m, j, q, p) for j in m.joints if j.pose}
    at = layout(m, {name: G for name, G in poses.items() if not ca.depends_on(ca.veccat(G.R, G.p), q)})
    K = ca.diagcat(ca.SX(0, 0), *[_kinematic_block(m, o, q, p) for o in m.owners])
    bases, rows, pose = list[ca.SX](), list[ca.SX](), dict[int, ca.Function]()
    for i, (_, j, part, _) in enumerate(at.frames):
        if part is not None:
            bases.append(part.S)
            rows.append(rate_rows(m, j)[part.v, :])
            if j.mimic:
                pose[i] = ca.Function("pose", [q, p], list(map(ca.SX, part.subgroup.motion(coordinates_of(m, j, q)))))
        else:
            G = poses[j.name]
            pose[i] = ca.Function("pose", [q, p], [G.R, G.p])
            S, N = _reduced(settled(m, twists(G, q, K), G.p, q, p))
            bases.append(S)
            rows.append(N)
    N = ca.sparsify(ca.vertcat(ca.SX(0, m.nv), *rows))
    slices = _in_place(at, N, bases)
    plain = slices is not None and all_of_v and N.shape[0] == m.nv
    if not plain or slices is None:
        ends = np.cumsum([S.shape[1] for S in bases], dtype=int)
        slices = [slice(int(e) - S.shape[1], int(e)) for e, S in zip(ends, bases, strict=True)]
    return rates_of(assemble_tree(m, at, bases, slices), pose, plain, (K, N, ca.SX.eye(m.nv)), q, p)


def rates_of(
    tree: Tree, pose: dict[int, ca.Function], plain: bool, maps: tuple[ca.SX, ca.SX, ca.SX], q: ca.SX, p: ca.SX
) -> Rates:
    """Rates of a tree with the maps (K, N, T) at symbols q and p."""
    K, N, T = maps
    v = ca.SX.sym("v", T.shape[0])
    bias = ca.jtimes(N @ v, q, K @ v) if N.shape[0] else ca.SX(0, 1)
    return Rates(tree, pose, plain, ca.Function("maps", [q, p], [K, N, T]), ca.Function("bias", [q, v, p], [ca.densify(bias)]))


def coordinates_of(m: Mechanism, owner: Joint | Coordinates, q: ca.SX) -> ca.SX:
    """The entries of q (nq, 1) of a joint or of coordinates; for a joint that follows others, its coordinate."""
    if isinstance(owner, Joint) and owner.mimic:
        others = ca.vertcat(*[coordinates_of(m, m.joint(n), q) for n in owner.mimic.joints])
        return ca.dot(owner.mimic.ratios, others) + owner.mimic.offset
    # Both axes are indexed: CasADi treats an empty slice of a 1 x 1 column as a row.
    return q[m.q_slices[owner.name], 0]


def rate_rows(m: Mechanism, owner: Joint | Coordinates) -> ca.SX:
    """Matrix (n, nv) that gives the n velocities of an owner from v0; one row of ratios for a joint that follows others."""
    if isinstance(owner, Joint) and owner.mimic:
        return owner.mimic.ratios.T @ ca.vertcat(*[rate_rows(m, m.joint(n)) for n in owner.mimic.joints])
    return ca.SX.eye(m.nv)[m.v_slices[owner.name], :]


def _kinematic_block(m: Mechanism, owner: Joint | Coordinates, q: ca.SX, p: ca.SX) -> ca.SX:
    """K of a joint or of coordinates, with q_dot = K v0 for their entries."""
    entries = q[m.q_slices[owner.name], 0]
    if isinstance(owner, Joint):
        return owner.kinematic(entries) if owner.nv else ca.SX(0, 0)
    alone = ca.SX.sym("q", owner.nq)
    return ca.substitute(coordinate_block(owner, alone, p), alone, entries)


def _edge_pose(m: Mechanism, j: Joint, q: ca.SX, p: ca.SX) -> Pose:
    """Pose of an edge at symbols q and p. Raises ModelError: it is not a pose, or R is not a rotation."""
    G = _returned_pose(m, j, q, p)
    found = ca.Function("R", [q, p], [G.R])
    for at in places(m):
        M = np.array(found(*at))
        if not np.allclose(M @ M.T, np.eye(3), atol=1e-9) or np.linalg.det(M) < 0:
            raise ModelError(f"edge {j.name!r}: pose: R is not a rotation at q = {brief(at[0].tolist())}")
    return G


def _returned_pose(m: Mechanism, j: Joint, q: ca.SX, p: ca.SX) -> Pose:
    """What the pose function of an edge returns. Raises ModelError: it fails, or does not return a Pose."""
    what = f"edge {j.name!r}: pose"
    assert j.pose is not None
    G = call_for_value(j.pose, what, Configuration(m, q))
    if not isinstance(G, Pose):
        raise ModelError(f"{what} must give a Pose(R, p), got {brief(G)}")
    R, x = in_symbols(G.R, f"{what}: R", (q, p)), in_symbols(G.p, f"{what}: p", (q, p))
    if R.shape != (3, 3) or x.numel() != 3:
        raise ModelError(f"{what} must give R (3, 3) and p (3, 1), got {R.shape} and {x.shape}")
    return Pose(R, ca.vec(x))


def twists(G: Pose, q: ca.SX, K: ca.SX) -> ca.SX:
    """(6, nv) body Jacobian of the pose G(q); column i is the body twist vee(G^-1 d_i G). [konz25 (3.103)]"""
    dR, dp = (ca.sparsify(ca.jacobian(ca.vec(x), q) @ K) for x in (G.R, G.p))
    x, y, z = (dR[3 * i : 3 * i + 3, :] for i in range(3))
    return ca.sparsify(ca.vertcat(G.R.T @ dp, G.R[:, 2].T @ y, G.R[:, 0].T @ z, G.R[:, 1].T @ x))


def branches(f: ca.Function) -> bool:
    """Whether a Function has branches, so that a property found at random inputs may fail at others."""
    return not BRANCHING.isdisjoint(codes_of(f))


def settled(m: Mechanism, x: ca.SX, at: ca.SX, q: ca.SX, p: ca.SX) -> ca.SX:
    """Twists x (6, n) with numbers for all entries that are constant wherever phi = 0, whatever the parameters.

    CasADi does not simplify sin^2 + cos^2 to one, nor R^T R to the unit matrix. Rotations are of the size 1, and displacements
    of that of the largest of them, or of the position.

    at: (3, 1) the position [m].
    """
    f, position = (ca.Function("x", [q, p], [ca.densify(y)]) for y in (x, at))
    if branches(f):
        return x
    values, positions = (np.array([np.array(g(*where)) for where in places(m, varied=True)]) for g in (f, position))
    slides = np.nan_to_num(np.abs(np.concatenate([values[:, :3], positions], axis=2)), posinf=0.0).max(axis=(1, 2))
    size = np.stack([slides] * 3 + [np.ones(len(slides))] * 3, axis=1)[:, :, None]
    rounding = CONSTANT * np.maximum(size, np.abs(values)) + CONSTANT * np.maximum(size[0], np.abs(values[0]))
    same = (np.abs(values - values[0]) <= rounding).all(axis=0)
    out = ca.SX(*x.shape)
    for i, j in zip(*x.sparsity().get_triplet(), strict=True):
        value = values[0, i, j]
        whole = round(value) if same[i, j] else 0
        out[i, j] = x[i, j] if not same[i, j] else float(whole) if abs(value - whole) <= rounding[0, i, j] else value
    return ca.sparsify(out)


def places(m: Mechanism, varied: bool = False) -> tuple[tuple[np.ndarray, np.ndarray], ...]:
    """Random configurations q (nq,) with phi = 0, each with parameters p (np,): defaults or, if `varied`, values near them.

    Coordinates have one of the SIZES at each, but for quaternions and those that phi keeps within its own.
    """
    return _places(moving(m), varied)


@remembered(64)
def _places(m: Mechanism, varied: bool) -> tuple[tuple[np.ndarray, np.ndarray], ...]:
    random = np.random.default_rng(5)
    found = []
    for size in SIZES:
        q, p = random_configuration(m, random), some_parameters(m, random)
        found.append((np.where(_any_size(m), size, 1.0) * q, p if varied else m.p_defaults))
    return tuple(found)


def _any_size(m: Mechanism) -> np.ndarray:
    """(nq,) which coordinates may have any size: all but quaternions and those of coordinates with phi."""
    free = np.ones(m.nq, dtype=bool)
    for at in (*m.quaternions.values(), *[m.q_slices[c.name] for c in m.coordinates if c.phi]):
        free[at] = False
    return free


def some_parameters(m: Mechanism, random: np.random.Generator) -> np.ndarray:
    """(np,) random parameters near the defaults: a property that holds at a few of these holds for all values."""
    p = m.p_defaults
    return p + 0.1 * random.uniform(-1, 1, len(p)) * np.where(p == 0, 1.0, p)


def _reduced(J: ca.SX) -> tuple[ca.SX, ca.SX]:
    """S (6, k) and N (k, nv) with S N = J: S are the columns of a constant J, else unit twists of its nonzero rows."""
    columns = [i for i in range(J.shape[1]) if J[:, i].nnz()]
    if J.is_constant() and np.linalg.matrix_rank(np.array(ca.DM(J[:, columns])), tol=1e-9) == len(columns):
        return ca.SX(J[:, columns]), ca.SX.eye(J.shape[1])[columns, :]
    used = [i for i in range(6) if J[i, :].nnz()]
    return ca.SX.eye(6)[:, used], ca.SX(J[used, :])


def _in_place(at: BodyLayout, N: ca.SX, bases: list[ca.SX]) -> list[slice] | None:
    """For each link the slice of v0 that contains its rates; None if N is not a selection of slices with parents first."""
    picks, first, slices = [], 0, list[slice]()
    if not N.is_constant():
        return None
    numbers = np.array(ca.DM(N))
    for S in bases:
        rows = numbers[first : first + S.shape[1]]
        first += S.shape[1]
        columns = [int(np.argmax(row)) for row in rows]
        if not np.array_equal(rows, np.eye(N.shape[1])[columns]) or not columns:
            return None
        if columns != list(range(columns[0], columns[0] + len(columns))):
            return None
        picks += columns
        slices.append(slice(columns[0], columns[-1] + 1))
    parents_first = all(f.parent < 0 or slices[f.parent].stop <= s.start for f, s in zip(at.frames, slices, strict=True))
    return slices if parents_first and len(set(picks)) == len(picks) else None


def tree(m: Mechanism) -> Tree:
    """The tree of links of a mechanism, for its joints and coordinates as written."""
    return rates_as_written(m).tree


def elimination_parents(pattern: ca.Sparsity) -> tuple[int, ...]:
    """For each row of a symmetric pattern, the nearest earlier row that its elimination changes, or -1.

    Rows are eliminated from the last to the first.
    """
    n = pattern.size1()
    near: list[set[int]] = [set() for _ in range(n)]
    for i, j in zip(*pattern.get_triplet(), strict=True):
        near[max(i, j)].add(min(i, j))
    parents = [-1] * n
    for k in reversed(range(n)):
        before = {i for i in near[k] if i < k}
        if before:
            parents[k] = max(before)
            near[parents[k]] |= before - {parents[k]}
    return tuple(parents)
