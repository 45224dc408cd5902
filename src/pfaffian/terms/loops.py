"""The loops of a mechanism; joints of the tree and joints that closures represent are treated alike.

Around a loop l the motions of its joints add up to zero: sum_j s_lj X_lj B_j q_dot_j = 0. B_j are the freedoms of joint j,
s_lj is 1 or -1, the direction in which the loop passes through it, and X_lj transforms a twist from the joint's point to that
of the loop. Twists are [v / length; w] in world axes, with the length of the loops' bodies: a slide by this length counts as a
turn by 1 rad.

The freedoms of a joint leave open where its frame is placed. Its point is the possible origin nearest to the mean of the mass
centres of the two pieces that it connects: the foot of the perpendicular on the axis of a hinge, the centre of a ball joint,
the mean itself for a prismatic joint. So nothing here depends on the placement of frames, nor on which joints are closures.
Links that are welded together count as one piece.

Joints that follow others, edges, and joints with a distribution have no independent rates. Together with the joints that share
their velocities they move along C v, where C are their twists for unit velocities v. Orthonormal columns that span C replace
their B_j, so that a joint's motion is measured by its twist, whatever it follows and however it is written.
"""

from __future__ import annotations

from typing import NamedTuple

import casadi as ca
import numpy as np

from pfaffian.kernel.remember import once_for
from pfaffian.maths import se3, so3
from pfaffian.maths.linear import connected, largest, orthogonalise
from pfaffian.maths.margins import ZERO, Decision
from pfaffian.maths.reflection import NOTHING
from pfaffian.maths.subgroups import Subgroup
from pfaffian.model.constraint import Closure, Target
from pfaffian.model.mechanism import Mechanism
from pfaffian.model.pose import IDENTITY, Pose
from pfaffian.terms.generic_states import generic_states, tell
from pfaffian.terms.kinematics import Kinematics
from pfaffian.terms.lengths import loop_length
from pfaffian.terms.pfaffian import activity
from pfaffian.terms.rates import tree
from pfaffian.terms.traced_now import remembered


class LoopJoint(NamedTuple):
    """A joint of a loop, in the tree or represented by a closure.

    point: (3, 1) in the axes of `_pose` [m].   B: (6, k) its freedoms as twists of that point.
    ways: loop -> 1 or -1, the direction in which the loop passes through it.
    parts: its links in the tree, none for a closure.
    N: (6, m) orthonormal wrenches at that point that do no work on its freedoms, if these are orthonormal or a projector.
    """

    point: ca.SX
    B: ca.SX
    ways: dict[int, int]
    parts: tuple[int, ...] = ()
    N: ca.SX | None = None


class Loops(NamedTuple):
    """All loops of a mechanism.

    of: index in `ideal` -> loop, for closures and their repetitions.   on: for each loop 1, or 0 while it is not active.
    T: (6 L, 6 J) with T_lj = s_lj X_lj.   S: (6 L, n) = T B, S q_dot = 0.   joints: for each joint the loops that contain it.
    N: for each loop (6, m) the wrenches of its closure that do no work on the closure's own freedoms, orthonormal; all six
    where these freedoms are not.   closing: the columns of S with the freedoms to which the N belong, each in one loop.
    """

    of: dict[int, int]
    on: tuple[ca.SX, ...]
    T: ca.SX
    S: ca.SX
    joints: tuple[tuple[int, ...], ...]
    N: tuple[ca.SX, ...]
    closing: tuple[int, ...]


def equations(l: int) -> range:
    """Indices of the rows of S that belong to loop l, and of the columns of T that belong to joint l."""
    return range(6 * l, 6 * l + 6)


def loops(k: Kinematics) -> Loops:
    """The loops of closures, see `closed`, without repetitions of another loop; computed once for these Kinematics."""
    return once_for(k, "loops", lambda: _loops(k))


def _loops(k: Kinematics) -> Loops:
    """The loops, with their joints in the order of closures, then of the tree."""
    m = k.mechanism
    original = closed(m)
    first = [i for i in original if i == original[i]]
    pieces = _pieces(k)
    length = _length(k, pieces, [c for i in first if isinstance(c := m.ideal[i], Closure)])
    found, at, N, closing, n = list[LoopJoint](), list[ca.SX](), list[ca.SX](), list[int](), 0
    in_tree = dict[str, LoopJoint]()
    for l, i in enumerate(first):
        c = m.ideal[i]
        assert isinstance(c, Closure)
        joint = _closing(k, pieces, c, length)
        at.append(joint.point)
        N.append(ca.SX.eye(6) if joint.N is None else joint.N)
        if not _welds(c):
            found.append(joint._replace(ways={l: -1}))
            closing += [] if joint.N is None else range(n, n + joint.B.shape[1])
            n += joint.B.shape[1]
        for way, links in _around(k.tree.path(_place(m, c.body_a)[0]), k.tree.path(_place(m, c.body_b)[0])):
            for name, parts in _by_joint(k, links).items():
                if name not in in_tree:
                    in_tree[name] = _of_tree(k, pieces, parts, length)
                in_tree[name].ways[l] = way
    found += in_tree.values()
    length = ca.fmax(_spread(found) if length.is_zero() else length, NOTHING)
    on = tuple(ca.SX(1) if (c := m.ideal[i]).active is None else activity(k, c.active, c.name) for i in first)
    T = [
        [_to_point(j, at[l], length) * (j.ways[l] * on[l]) if l in j.ways else ca.SX(6, 6) for j in found]
        for l in range(len(at))
    ]
    blocks = ca.sparsify(ca.blockcat(T)) if found else ca.SX(6 * len(at), 0)
    S = ca.sparsify(blocks @ _motions(k, found, length))
    of, ways = {i: first.index(j) for i, j in original.items()}, tuple(tuple(j.ways) for j in found)
    return Loops(of, on, blocks, S, ways, tuple(N), tuple(closing))


@remembered(64)
def closed(m: Mechanism) -> dict[int, int]:
    """For each closure of a loop: index in `ideal` -> index of the first closure that imposes the same condition.

    Closures between bodies of a single link are left out.
    """
    found = dict[int, int]()
    for i, c in enumerate(m.ideal):
        if not isinstance(c, Closure):
            continue
        (a, _), (b, _) = _place(m, c.body_a), _place(m, c.body_b)
        if set(tree(m).path(a)) ^ set(tree(m).path(b)):
            found[i] = next((j for j in found if _same(m, m.ideal[j], c)), i)
    return found


def _same(m: Mechanism, c: Target, d: Closure) -> bool:
    """Whether two closures impose the same condition, with the parameters at their defaults and near them.

    Lengths are in that of the loop's bodies.
    """
    assert isinstance(c, Closure)
    c_ends, d_ends = ({_place(m, body)[0] for body in (x.body_a, x.body_b)} for x in (c, d))
    if c.kind != d.kind or c_ends != d_ends or c.active is not None or d.active is not None:
        return False
    long = ca.fmax(loop_length(m, c), NOTHING)
    data = [ca.vertcat(_condition(m, x, long), x.number / long) for x in (c, d)]
    f = ca.Function("same", [m.p_symbols], [ca.densify(x) for x in data])
    pairs = [[np.array(x) for x in f(p)] for p in (m.p_defaults, *[state.p for state in generic_states(m, count=1)])]
    if any(x.shape != y.shape for x, y in pairs):
        return False
    off = max(float(np.abs(x - y).max() / max(1.0, np.abs(x).max())) for x, y in pairs)
    return bool(tell(m, f"whether {c.name!r} and {d.name!r} are the same closure", Decision(off <= ZERO, off)))


def _condition(m: Mechanism, c: Closure, long: ca.SX) -> ca.SX:
    """A column that is equal for closures of one kind that impose the same condition, whichever body is named first.

    long: the length [m] in which it counts lengths.
    """
    group, ends = c.holds.group, []
    for body, placement in ((c.body_a, c.placement_a), (c.body_b, c.placement_b)):
        link, X = _place(m, body)
        X = X @ placement
        p = X.p / long
        if group is None:
            data = ca.vertcat(p, ca.vec(X.R)) if c.kind != "distance" else p
        else:
            S = se3.Ad(X.R, p) @ (group.with_pitch(c.number / long) if group.screws else group).S
            data = ca.vec(S @ ca.solve(ca.densify(S.T @ S), ca.densify(S.T))) if S.shape[1] else ca.SX(36, 1)
        ends.append((link, data))
    both_ways = group is not None or c.kind in ("distance", "universal")
    ordered = sorted(ends, key=lambda end: end[0]) if both_ways else ends
    return ca.vertcat(*[x for link, data in ordered for x in (ca.SX(link), data)])


# -- the joints -----------------------------------------------------------------------------------------------------


def _of_tree(k: Kinematics, pieces: dict[int, list[int]], parts: list[int], length: ca.SX) -> LoopJoint:
    """The joint of the tree that consists of these links, of which the first is nearest to the root."""
    centre = _between(k, pieces[k.tree.links[parts[0]].parent], pieces[parts[-1]])
    groups = [k.tree.links[i].subgroup for i in parts]
    G = _pose(k, parts[-1])
    if groups[0] is None:  # an edge: its frame may be anywhere on the child
        return LoopJoint(G.p if centre is None else centre, ca.SX(6, 0), {}, tuple(parts))
    B = ca.horzcat(*[_freedoms(g, _pose(k, i).R, length) for g, i in zip(groups, parts, strict=True) if g])
    return LoopJoint(_point(groups[0], G, centre) if len(parts) == 1 else G.p, B, {}, tuple(parts))


def _motions(k: Kinematics, found: list[LoopJoint], length: ca.SX) -> ca.SX:
    """(6 J, n) B: columns that span the motions of all joints, orthonormal where joints have no independent rates."""
    if not any(_without_rates(k, j) for j in found):
        return ca.diagcat(ca.SX(0, 0), *[j.B for j in found])
    along = [_along_v(k, j, length) for j in found]
    columns = [ca.SX(6 * len(found), 0)]
    for part in connected([{c for c in range(x.shape[1]) if x[:, c].nnz()} for x in along]):
        rows = [i for j in part for i in range(6 * j, 6 * j + 6)]
        if any(_without_rates(k, found[j]) for j in part):
            C = ca.vertcat(*[along[j] for j in part]).T
            C = C[[i for i in range(C.shape[0]) if C[i, :].nnz()], :]
            basis = orthogonalise(C, ca.SX(C.shape[0], 0), ZERO, groups=[[*range(C.shape[0])]]).Q.T
        else:
            basis = ca.diagcat(*[found[j].B for j in part])
        placed = ca.SX(columns[0].shape[0], basis.shape[1])
        placed[rows, :] = basis
        columns.append(placed)
    return ca.sparsify(ca.horzcat(*columns))


def _without_rates(k: Kinematics, j: LoopJoint) -> bool:
    """Whether a joint of the tree has no independent rates."""
    links = [k.tree.links[i] for i in j.parts]
    return any(x.subgroup is None or bool(x.joint.mimic) or x.joint.distribution is not None for x in links)


def _along_v(k: Kinematics, j: LoopJoint, length: ca.SX) -> ca.SX:
    """(6, nv) twists of a joint, at its point, for unit velocities v; without entries for a closure."""
    twist, N = ca.SX(6, k.mechanism.nv), k.maps[1]
    for i in j.parts:
        link, G = k.tree.links[i], _pose(k, i)
        V, w = G.R @ link.basis[:3, :], G.R @ link.basis[3:, :]
        twist += ca.vertcat((V + so3.hat(G.p - j.point) @ w) / length, w) @ N[link.v, :]
    return ca.sparsify(twist)


def _closing(k: Kinematics, pieces: dict[int, list[int]], c: Closure, length: ca.SX) -> LoopJoint:
    """The joint that a closure represents."""
    (a, Xa), (b, Xb) = _place(k.mechanism, c.body_a), _place(k.mechanism, c.body_b)
    Ga, Gb = _pose(k, a) @ Xa @ c.placement_a, _pose(k, b) @ Xb @ c.placement_b
    group, turns = c.holds.group, ca.vertcat(ca.SX(3, 3), ca.SX.eye(3))
    if group is not None:
        g = group.with_pitch(c.number) if group.screws else group
        N = None if g.screws else _blocked(g, Ga.R)
        return LoopJoint(_point(g, Ga, _between(k, pieces[a], pieces[b])), _freedoms(g, Ga.R, length), {}, N=N)
    if c.kind == "universal":
        return LoopJoint(Ga.p, ca.vertcat(ca.SX(3, 2), ca.horzcat(Ga.R[:, 2], Gb.R[:, 2])), {})
    if c.kind == "distance":
        r = Gb.p - Ga.p
        across = ca.vertcat(ca.SX.eye(3) - r @ r.T / ca.fmax(ca.sumsqr(r), NOTHING), ca.SX(3, 3))
        N = _forces(r / ca.sqrt(ca.fmax(ca.sumsqr(r), NOTHING)))
        return LoopJoint((Ga.p + Gb.p) / 2, ca.horzcat(across, turns), {}, N=N)
    along = [2] if c.kind == "point-on-line" else [0, 1]
    N = _forces(Ga.R[:, [i for i in range(3) if i not in along]])
    return LoopJoint(Gb.p, ca.horzcat(_forces(Ga.R[:, along]), turns), {}, N=N)


def _freedoms(g: Subgroup, R: ca.SX, length: ca.SX) -> ca.SX:
    """(6, k) freedoms of a group with axes R, as twists of a point on its axis or at its centre of rotation."""
    slides = ca.SX.eye(3) if len(g.along) == 3 else R[:, list(g.along)]
    turns = {0: ca.SX(3, 0), 1: R[:, 2], 3: ca.SX.eye(3)}[len(g.rotation.axes)]
    along = R[:, 2] * (g.pitch / length) if g.screws else ca.SX(*turns.shape)
    return ca.sparsify(ca.blockcat([[slides, along], [ca.SX(*slides.shape), turns]]))


def _blocked(g: Subgroup, R: ca.SX) -> ca.SX:
    """(6, 6 - k) orthonormal wrenches that do no work on `_freedoms`, of a group without screws."""
    across = R[:, [i for i in range(3) if i not in g.along]] if g.along else ca.SX.eye(3)
    moments = {0: ca.SX.eye(3), 1: R[:, :2], 3: ca.SX(3, 0)}[len(g.rotation.axes)]
    return ca.sparsify(ca.diagcat(across, moments))


def _forces(f: ca.SX) -> ca.SX:
    """(6, k) forces (3, k) as wrenches, or slides as twists."""
    return ca.vertcat(f, ca.SX(*f.shape))


def _point(g: Subgroup, G: Pose, centre: ca.SX | None) -> ca.SX:
    """Of the points to which the origin of a group's frame G may be moved, the one nearest to a centre."""
    free = {0: {0, 1, 2}, 1: {2, *g.along}, 3: {*g.along}}[len(g.rotation.axes)]
    if centre is None or not free:
        return G.p
    return centre if len(free) == 3 else G.p + G.R[:, sorted(free)] @ (G.R[:, sorted(free)].T @ (centre - G.p))


def _to_point(j: LoopJoint, at: ca.SX, length: ca.SX) -> ca.SX:
    """(6, 6) X, which transforms a twist from the point of a joint to the point `at`."""
    return ca.blockcat([[ca.SX.eye(3), so3.hat((j.point - at) / length)], [ca.SX(3, 3), ca.SX.eye(3)]])


def _around(path_a: list[int], path_b: list[int]) -> list[tuple[int, list[int]]]:
    """The links of a loop, by the direction, 1 or -1, in which it passes through them."""
    return [(-1, [i for i in path_a if i not in path_b]), (1, [i for i in path_b if i not in path_a])]


def _by_joint(k: Kinematics, links: list[int]) -> dict[str, list[int]]:
    """{joint: its links among these, of which the first is nearest to the root}, for links from the last to the first."""
    found = dict[str, list[int]]()
    for i in reversed(links):
        found.setdefault(k.tree.links[i].joint.name, []).append(i)
    return found


def _place(m: Mechanism, body: str) -> tuple[int, Pose]:
    """The link that carries a body, -1 for the world, and the pose of the body in it."""
    return tree(m).place[body]


def _welds(c: Closure) -> bool:
    """Whether a closure permits no motion."""
    return c.holds.group is not None and not c.holds.group.nv


def _pose(k: Kinematics, link: int) -> Pose:
    """Pose of a link in axes of the world, whose origin is where the points of all loops keep their digits."""
    return Pose(k.link_pose(link).R, once_for(k, "loop positions", lambda: _positions(k))[link])


def _positions(k: Kinematics) -> dict[int, ca.SX]:
    """Positions (3, 1) of links, from the last link that carries both ends of all closures, or else from the world's origin."""
    closures = [c for c in k.mechanism.ideal if isinstance(c, Closure)]
    paths = [k.tree.path(_place(k.mechanism, body)[0]) for c in closures for body in (c.body_a, c.body_b)]
    carrier = next((i for i in paths[0] if all(i in path for path in paths)), -1) if paths else -1
    found = {carrier: ca.SX.zeros(3, 1)}
    for i, link in enumerate(k.tree.links):
        if link.parent in found:
            found[i] = k.offset(i) + found[link.parent]
    return found


# -- pieces and their lengths ---------------------------------------------------------------------------------------


def _pieces(k: Kinematics) -> dict[int, list[int]]:
    """{link, or -1 for the world: the links of its piece}, where closures that are welds join links to pieces."""
    welds = [c for c in k.mechanism.ideal if isinstance(c, Closure) and _welds(c) and c.active is None]
    sets = [{i} for i in range(-1, len(k.tree.links))]
    sets += [{_place(k.mechanism, body)[0] for body in (c.body_a, c.body_b)} for c in welds]
    whole = [set[int]().union(*[sets[i] for i in part]) for part in connected(sets)]
    return {i: sorted(piece) for piece in whole for i in piece}


def _centre(k: Kinematics, piece: list[int], axes: int) -> ca.SX | None:
    """(3, 1) mass centre of a piece, in the frame of the link `axes` or, for -1, in that of `_pose`; None for the piece of the
    world and for one without mass.
    """
    heavy = [i for i in piece if i < 0 or not k.tree.links[i].mass.is_zero()]
    if -1 in piece or not heavy:
        return None
    links = k.tree.links
    if heavy == [axes]:
        return links[axes].h / links[axes].mass
    moments = [_pose(k, i).R @ links[i].h + links[i].mass * _pose(k, i).p for i in heavy]
    centre = sum(moments, ca.SX(3, 1)) / sum((links[i].mass for i in heavy), ca.SX(0))
    if axes < 0:
        return centre
    G = _pose(k, axes)
    return G.R.T @ (centre - G.p)


def _between(k: Kinematics, a: list[int], b: list[int]) -> ca.SX | None:
    """(3, 1) mean of the mass centres of two pieces, in the frame of `_pose`; that of one if the other has none; else None."""
    known = [c for piece in (a, b) if (c := _centre(k, piece, -1)) is not None]
    return sum(known, ca.SX(3, 1)) / len(known) if known else None


def _length(k: Kinematics, pieces: dict[int, list[int]], closures: list[Closure]) -> ca.SX:
    """The largest length in the loops [m]; structurally zero if there is none.

    Lengths are radii of gyration, distances from a mass centre to a rotating joint, pitches, and the lengths of rods.
    """
    arms, used = [ca.fabs(c.number) for c in closures], set[int]()
    links = k.tree.links
    for c in closures:
        (a, Xa), (b, Xb) = _place(k.mechanism, c.body_a), _place(k.mechanism, c.body_b)
        arms += _arm(c.holds.group, Xb @ c.placement_b, _centre(k, pieces[b], b))
        if not c.kind.startswith("point"):  # frame A of these may be anywhere on a line or plane
            arms += _arm(c.holds.group, Xa @ c.placement_a, _centre(k, pieces[a], a))
        around = set(k.tree.path(a)) ^ set(k.tree.path(b))
        used |= {a, b, *around, *(links[i].parent for i in around)}
    for i in sorted(used - {-1}):
        link = links[i]
        if link.subgroup is None:
            continue
        arms += [ca.fabs(ca.SX(link.subgroup.pitch))] if link.subgroup.screws else []
        arms += _arm(link.subgroup, IDENTITY, _centre(k, pieces[i], i))
        if link.parent in used:
            arms += _arm(link.subgroup, link.placement, _centre(k, pieces[link.parent], link.parent))
    arms += [_radius(k, piece) for piece in {tuple(pieces[i]) for i in used} if _centre(k, list(piece), -1) is not None]
    return largest(arms)


def _spread(found: list[LoopJoint]) -> ca.SX:
    """Root of the sum of squared distances of the joints' points from their mean [m]."""
    points = ca.horzcat(*[j.point for j in found])
    return ca.sqrt(ca.sumsqr(points - ca.repmat(ca.sum2(points) / len(found), 1, len(found))))


def _arm(g: Subgroup | None, G: Pose, centre: ca.SX | None) -> list[ca.SX]:
    """The distance from a mass centre to the axis or centre of rotation of a joint at G, in a list; empty if there is none."""
    if centre is None or (g is not None and ({*g.along} - {2} or not g.rotation.axes or len(g.axes) == 6)):
        return []
    point = G.p if g is None else _point(g, G, centre)
    return [ca.norm_2(centre - point)]


def _radius(k: Kinematics, piece: tuple[int, ...]) -> ca.SX:
    """The radius of gyration [m] of a piece with mass."""
    links, second, mass = k.tree.links, ca.SX(0), ca.SX(0)
    for i in piece:
        c = _centre(k, list(piece), i)
        assert c is not None
        second += ca.trace(links[i].I) / 2 - 2 * ca.dot(c, links[i].h) + links[i].mass * ca.sumsqr(c)
        mass += links[i].mass
    return ca.sqrt(ca.fmax(second / mass, 0))
