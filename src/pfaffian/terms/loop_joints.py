"""Joints that close loops: their coordinates and velocities, as functions of those of the tree.

Frame B of a closure has the pose (R, r) relative to frame A, on the group of motions that the closure permits. Its coordinates
are those of a joint of the tree at this pose, and its velocities v_c = J v those of such a joint. So springs, dampers, motors
and functions of a user act along a closure as along a joint, with the generalised force J^T tau.

An angle follows from the pose up to full turns only. Where all axes of a loop are parallel, it is a sum of angles of the tree,
which knows its turns. Otherwise it is the one nearest to such a sum over the axes that are about parallel, and without any, the
one within half a turn of the closure's `near`, of the middle of its limits, or of its rest. A run counts on from there: what
this angle has left behind it, the closure's `counted`, is added to the angle that it is near to.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple, Protocol

import casadi as ca
import numpy as np

from pfaffian.kernel.remember import once_for
from pfaffian.maths import so3
from pfaffian.model.constraint import Closure
from pfaffian.model.joint import Joint
from pfaffian.model.loop_coordinates import loop_coordinates_of
from pfaffian.model.mechanism import Mechanism
from pfaffian.model.pose import Pose
from pfaffian.terms.rates import Rates, coordinates_of
from pfaffian.terms.tree import Tree

PARALLEL = 1e-12
"""Largest difference between the unit vectors along two axes that count as parallel: rounding."""

ALIKE = 0.5
"""Least cosine of the angle between two axes for a turn about one of them to count as a turn about the other."""

FramePair = tuple[tuple[int, Pose], tuple[int, Pose]]
"""(link, pose in it) of the frames A and B of a closure."""


class MovingLinks(Protocol):
    """What loop joints need of `Kinematics`, in which these are explained."""

    @property
    def mechanism(self) -> Mechanism: ...
    @property
    def q(self) -> ca.SX: ...
    @property
    def tree(self) -> Tree: ...
    @property
    def rates(self) -> Rates: ...
    @property
    def maps(self) -> tuple[ca.SX, ca.SX, ca.SX]: ...

    def link_pose(self, link: int) -> Pose: ...
    def columns(self, arms: Mapping[int, ca.SX]) -> ca.SX: ...
    def arms(self, link: int, x: ca.SX, outside: Collection[int] = ()) -> dict[int, ca.SX]: ...
    def between(self, a: tuple[int, ca.SX], b: tuple[int, ca.SX]) -> ca.SX: ...


class LoopTurning(NamedTuple):
    """How the angle of a closure follows from the angles of the tree.

    signs: link -> 1 or -1, for each link of the loop whose angle adds to that of the closure.
    exact: whether the angle is their sum and a constant.   zero: this constant, the angle where those of the tree are zero.
    """

    signs: dict[int, int]
    exact: bool
    zero: ca.SX


def closure_frames(k: MovingLinks, c: Closure) -> FramePair:
    """The frames A and B of a closure."""
    (la, Xa), (lb, Xb) = k.tree.place[c.body_a], k.tree.place[c.body_b]
    return (la, Xa @ c.placement_a), (lb, Xb @ c.placement_b)


def relative_twist(k: MovingLinks, frames: FramePair) -> tuple[ca.SX, ca.SX, ca.SX, ca.SX]:
    """Rotations of frames A and B and the vector r from A to B in world axes, and the Jacobian J (6, nv) of B's twist relative
    to A, at B's origin in A's axes."""
    (la, Xa), (lb, Xb) = frames
    Ra, Rb = (k.link_pose(link).R @ X.R for link, X in frames)
    r = k.between((la, Xa.p), (lb, Xb.p))
    shared = set(k.tree.path(la)) & set(k.tree.path(lb))
    J = k.columns(k.arms(lb, Xb.p, shared)) - k.columns({i: arm + r for i, arm in k.arms(la, Xa.p, shared).items()})
    return Ra, Rb, r, ca.diagcat(Ra.T, Ra.T) @ J


def loop_coordinates(k: MovingLinks, c: Closure) -> ca.SX:
    """(nq, 1) coordinates of the joint that closes a loop [m, rad]."""
    return once_for(k, f"coordinates of closure {c.name!r}", lambda: ca.densify(_coordinates(k, c)))


def loop_rates(k: MovingLinks, c: Closure) -> ca.SX:
    """J (n, nv) of the joint that closes a loop: its velocities are J v."""
    return once_for(k, f"rates of closure {c.name!r}", lambda: ca.SX(ca.sparsify(_rates(k, c))))


def closing_joint(c: Closure) -> Joint:
    """The joint that closes a loop."""
    assert c.joint is not None
    return c.joint


def _coordinates(k: MovingLinks, c: Closure) -> ca.SX:
    """The coordinates, those along the axes of A first."""
    group, kind = c.holds.group, closing_joint(c).kind
    if kind.nq == 1 and group is not None and group.rotation.axes and not group.screws:
        turning = _turning(k, c)
        if turning.exact:
            return _sum(k, turning)
    Ra, Rb, r, _ = _motion(k, c)
    R, r = Ra.T @ Rb, Ra.T @ r
    if group is None:
        return _universal_angles(c, R)
    along = r[list(group.along), 0]
    turns = len(group.rotation.axes)
    if turns == 0:
        return along
    if turns == 3:
        return ca.vertcat(along, ca.SX(so3.matrix_to_quat(R)))
    return ca.vertcat(along, r[2] / c.number if group.screws else _angle(k, c, R))


def _rates(k: MovingLinks, c: Closure) -> ca.SX:
    """The velocities, along the axes of B as those of a joint of the tree."""
    group = c.holds.group
    turns = 0 if group is None else len(group.rotation.axes)
    if turns == 1 and (turning := _turning(k, c)).exact:
        about_z = _sum_of_rates(k, turning)
        if group is not None and not group.along:
            return about_z
    else:
        about_z = None
    Ra, Rb, _, J = _motion(k, c)
    if group is None:
        return ca.vertcat(J[5, :], (Ra.T @ Rb)[:, 2].T @ J[3:, :])
    R = Ra.T @ Rb
    linear = J[:3, :] if not turns else R.T @ J[:3, :]
    rows = [J[2, :] if i == 2 and turns < 3 else linear[i, :] for i in group.along]
    if turns == 3:
        return ca.vertcat(*rows, R.T @ J[3:, :])
    return ca.vertcat(*rows, *([J[5, :] if about_z is None else about_z] if turns else []))


def loop_wrench_rows(k: MovingLinks, c: Closure) -> ca.SX:
    """(n, 6) the velocities of a closure from the twist of B relative to A, at B's origin in world axes.

    Its transpose is the wrench on body_b of a unit force along each velocity.
    """
    group, (Ra, Rb, _, _) = c.holds.group, _motion(k, c)
    nothing = ca.SX(1, 3)
    if group is None:
        return ca.vertcat(*[ca.horzcat(nothing, axis.T) for axis in (Ra[:, 2], Rb[:, 2])])
    turns = len(group.rotation.axes)
    linear = Rb if turns else Ra
    slides = [ca.horzcat((Ra if i == 2 and turns < 3 else linear)[:, i].T, nothing) for i in group.along]
    about = {0: [], 1: [Ra[:, 2]], 3: [Rb[:, i] for i in range(3)]}[turns]
    return ca.vertcat(*slides, *[ca.horzcat(nothing, axis.T) for axis in about])


def _motion(k: MovingLinks, c: Closure) -> tuple[ca.SX, ca.SX, ca.SX, ca.SX]:
    """`relative_twist` of a closure, computed once for these MovingLinks."""
    return once_for(k, f"motion of closure {c.name!r}", lambda: relative_twist(k, closure_frames(k, c)))


# -- angles and their turns -------------------------------------------------------------------------------------------------


def _angle(k: MovingLinks, c: Closure, R: ca.SX) -> ca.SX:
    """The angle about z of B relative to A, with its turns.   R: (3, 3) rotation of B relative to A."""
    near = _centre(k, c)
    return near if _turning(k, c).exact else _nearest(near, (R[0, 0] + R[1, 1]) / 2, (R[1, 0] - R[0, 1]) / 2)


def _centre(k: MovingLinks, c: Closure) -> ca.SX:
    """The angle within half a turn of which that of a closure with one axis is given, or this angle itself if it is exact."""
    turning = _turning(k, c)
    if turning.exact:
        return _sum(k, turning)
    return _counted(c, 0, _sum(k, turning) if turning.signs and c.near is None else _middle(c, 0))


def _counted(c: Closure, i: int, near: ca.SX) -> ca.SX:
    """The angle `near` to which the i-th angle of a closure was near at first, moved on as a run counts."""
    return near if c.counted is None else near + c.counted[i]


def open_turns(k: MovingLinks, c: Closure) -> list[tuple[int, ca.SX]]:
    """For each angle of a closure whose turns its pose leaves open: its index among the coordinates, and the angle within half
    a turn of which it is given."""
    group, j = c.holds.group, closing_joint(c)
    if group is None:
        return [(i, _counted(c, i, _middle(c, i))) for i in range(j.nq)]
    if len(group.rotation.axes) != 1 or group.screws or _turning(k, c).exact:
        return []
    return [(j.nq - 1, _centre(k, c))]


def half_turn_sides(k: MovingLinks) -> ca.SX:
    """(n, 1) for each angle of a closure whose turns nothing tells: a number that changes its sign where it passes half a turn
    from the angle that it is near to; zero within a quarter of a turn."""
    sides = []
    for c in loop_coordinates_of(k.mechanism).closures:
        for i, near in uncounted(k, c):
            off = loop_coordinates(k, c)[i] - near
            sides.append(ca.if_else(ca.fabs(off) > np.pi / 2, off, 0))
    return ca.densify(ca.vertcat(ca.SX(0, 1), *sides))


def _nearest(near: ca.SX, cos: ca.SX, sin: ca.SX) -> ca.SX:
    """The angle with this cosine and sine, up to a common factor, that is nearest to the angle `near`."""
    if near.is_zero():
        return ca.atan2(sin, cos)
    C, S = ca.cos(near), ca.sin(near)
    return near + ca.atan2(sin * C - cos * S, cos * C + sin * S)


def _middle(c: Closure, i: int) -> ca.SX:
    """The angle within half a turn of which the i-th angle is given: `near`, the middle of its limits, or its rest."""
    if c.near is not None:
        return c.near[i]
    j = closing_joint(c)
    i += j.nq - j.kind.q_units.count("rad")
    low, high = j.limits[i]
    return ca.SX((low + high) / 2) if np.isfinite(low) and np.isfinite(high) else j.rest[i]


def _universal_angles(c: Closure, R: ca.SX) -> ca.SX:
    """The angles of a universal closure: of B's axis about A's axis, and of A's axis about B's, from where frames coincide."""
    assert c.zero is not None
    a, b, a0, b0 = R[:, 2], R[2, :].T, c.zero[:, 2], c.zero[2, :].T  # B's axis in A and A's axis in B, now and at zero
    centre = [_counted(c, i, _middle(c, i)) for i in range(2)]
    first = _nearest(centre[0], a0[0] * a[0] + a0[1] * a[1], a0[0] * a[1] - a0[1] * a[0])
    # R = Rz(first) zero Rz(second): as B turns on, A's axis turns backwards in B.
    return ca.vertcat(first, _nearest(centre[1], b0[0] * b[0] + b0[1] * b[1], b0[1] * b[0] - b0[0] * b[1]))


def _turning(k: MovingLinks, c: Closure) -> LoopTurning:
    """How the angle of a closure with one axis follows from those of the tree, decided at the parameters' defaults."""
    return once_for(k, f"turning of closure {c.name!r}", lambda: _find_turning(k, c))


def _find_turning(k: MovingLinks, c: Closure) -> LoopTurning:
    """The turning of a closure, from the axes of the links between its frames, at the mechanism's default parameters."""
    frames = closure_frames(k, c)
    shared = set(k.tree.path(frames[0][0])) & set(k.tree.path(frames[1][0]))
    signs, ends, exact = dict[int, int](), list[ca.SX](), True
    for way, (link, X) in zip((-1, 1), frames, strict=True):
        R = X.R  # rotation of the closure's frame in the frame of the link at which the path has arrived
        for i in k.tree.path(link):
            if i in shared:
                break
            member = k.tree.links[i]
            g = member.subgroup
            cosine = float(k.mechanism.value(R[2, 2]).item())
            if g is None or len(g.rotation.axes) == 3:
                exact = False
            elif g.rotation.axes:
                across = k.mechanism.value(R[:2, 2])
                exact = exact and bool(R[:, 2].is_constant()) and float(np.abs(across).max()) <= PARALLEL
                if abs(cosine) >= ALIKE:
                    signs[i] = way if cosine > 0 else -way
            R = member.placement.R @ R
        ends.append(R)
    R = ends[0].T @ ends[1]
    aligned = k.mechanism.value(R[2, 2]).item() > 0 and bool(R[:, 2].is_constant())
    exact = exact and aligned and float(np.abs(k.mechanism.value(R[:2, 2])).max()) <= PARALLEL
    return LoopTurning(signs, exact, ca.SX(ca.atan2(R[1, 0] - R[0, 1], R[0, 0] + R[1, 1])))


def _sum(k: MovingLinks, turning: LoopTurning) -> ca.SX:
    """The angle that the angles of the tree add up to."""
    total = turning.zero
    for i, sign in turning.signs.items():
        link = k.tree.links[i]
        assert link.subgroup is not None
        q = coordinates_of(k.mechanism, link.joint, k.q) if link.joint.mimic else k.q[link.q, 0]
        total = total + sign * q[len(link.subgroup.along)]
    return total


def _sum_of_rates(k: MovingLinks, turning: LoopTurning) -> ca.SX:
    """(1, nv) rate of `_sum` for v."""
    total = ca.SX(1, k.tree.ns)
    for i, sign in turning.signs.items():
        link = k.tree.links[i]
        total[0, link.v] += sign * link.basis[5, :]
    return total if k.rates.plain else total @ k.maps[1]


def counters(k: MovingLinks, c: Closure) -> dict[str, ca.SX]:
    """Name of each parameter that counts the turns of a closure -> its next value, which becomes that of an angle, or what has
    been `counted` of it."""
    if c.near is None and c.counted is None:
        return {}
    found, names = dict[str, ca.SX](), {p.symbol.element_hash(): p.name for p in k.mechanism.parameters}
    for n, (i, near) in enumerate(open_turns(k, c)):
        counter = near if c.counted is None else c.counted[n]
        if counter.is_symbolic() and counter.element_hash() in names:
            found[names[counter.element_hash()]] = loop_coordinates(k, c)[i] - (near - counter)
    return found


def uncounted(k: MovingLinks, c: Closure) -> list[tuple[int, ca.SX]]:
    """The `open_turns` of a closure, none where parameters count them."""
    return [] if counters(k, c) else open_turns(k, c)
