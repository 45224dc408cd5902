"""Motions of a whole machine as one rigid body, where no single joint permits them.

A machine may stand on the world by several joints in parallel, like two satellites connected by a spring or a closure, or by
joints in series that together permit one group: a translation and a ball joint, or x, y and an angle, with no mass between
them. Each such connection to the world is a root. A twist in the world is a common motion if every root can follow it; the
momentum along it is that of all bodies. [chhabra14 section 3.3.2 requires one first joint; here these joints are merged into
one.]
"""

from __future__ import annotations

from typing import NamedTuple

import casadi as ca
import numpy as np

from pfaffian.maths.linear import solve_definite
from pfaffian.maths.margins import ZERO, Decision, closest, null_space
from pfaffian.maths.span import reduced
from pfaffian.maths.values import values_at
from pfaffian.model.mechanism import Mechanism
from pfaffian.terms.generic_states import generic_states, length_at, speed_units, tell
from pfaffian.terms.kinematics import Kinematics
from pfaffian.terms.rates import moving
from pfaffian.terms.traced_now import remembered
from pfaffian.terms.tree import Link, Tree

STATES = 8
"""Number of random states at which the roots must be able to follow a common motion."""

INDEPENDENT = 1e-6
"""Fraction of a twist that must be independent of other twists for it to be added to them."""

NAMES = ("vx", "vy", "vz", "wx", "wy", "wz")


class Root(NamedTuple):
    """A chain of links from the world to the first one with mass, and the names of their joints."""

    links: tuple[int, ...]
    joints: tuple[str, ...]


class CommonMotion(NamedTuple):
    """The motions of a machine as one body.

    roots: the chains of links by which it stands on the world.
    base: index of the root whose velocities are replaced by the speeds along `twists` and `remaining`, -1 if there is none.
    twists: twists [v; w] in the world, about its origin, that move the whole machine.
    slides: the number of translations among them, which come first and are orthonormal.
    remaining: twists in the world that the base can follow besides `twists`.
    """

    roots: tuple[Root, ...]
    base: int
    twists: tuple[tuple[float, ...], ...]
    slides: int
    remaining: tuple[tuple[float, ...], ...]

    @property
    def name(self) -> str:
        """Names of the joints of all roots, in the form of `Symmetry.joint`."""
        return ", ".join(self.joints)

    @property
    def joints(self) -> tuple[str, ...]:
        """Names of the joints of all roots."""
        return tuple(dict.fromkeys(name for root in self.roots for name in root.joints))

    @property
    def basis(self) -> np.ndarray:
        """(6, k) the common twists as columns."""
        return np.array(self.twists).reshape(-1, 6).T

    @property
    def names(self) -> tuple[str, ...]:
        """A name for each common motion, after the largest angular entry of its twist, or linear one of a translation."""
        return _names("all", self.twists)

    @property
    def remaining_names(self) -> tuple[str, ...]:
        """Names for the remaining motions of the base."""
        return tuple(f"{name} in the world" for name in _names(self.roots[self.base].joints[-1], self.remaining))

    def entries(self, tree: Tree) -> list[int]:
        """Entries of v of the base that the speeds along the common motions replace."""
        return _entries(tree, self.roots[self.base])[: len(self.twists)]

    def remaining_entries(self, tree: Tree) -> list[int]:
        """Entries of v of the base that the speeds along its remaining motions replace."""
        return _entries(tree, self.roots[self.base])[len(self.twists) :]

    def lift(self, k: Kinematics, along_base: bool = False) -> ca.SX:
        """X (nv, nv) with v = X y.

        y are the speeds along the common motions, those along the remaining motions of the base, and the velocities of all
        other joints in excess of the common motions.   along_base: as in `fields`.
        """
        X, root = ca.SX.eye(k.mechanism.nv), self.roots[self.base]
        entries, point = _entries(k.tree, root), self.point(k, along_base)
        X[:, entries[: len(self.twists)]] = self.fields(k, along_base)
        X[entries, entries[len(self.twists) :]] = ca.horzcat(
            ca.SX(len(entries), 0), *[self._velocities(k, root, x, point) for x in self.remaining]
        )
        return X

    def fields(self, k: Kinematics, along_base: bool = False) -> ca.SX:
        """(nv, n) velocities along the common motions.

        along_base: whether to rotate about a point that translates with the base, not about the origin. Where the momenta of
        translation are zero, the other momenta are the same about both points, and far from the origin no digits are lost.
        """
        Y, point = ca.SX(k.mechanism.nv, len(self.twists)), self.point(k, along_base)
        for root in self.roots:
            for i, twist in enumerate(self.twists):
                Y[_entries(k.tree, root), i] = self._velocities(k, root, twist, point)
        return Y

    def point(self, k: Kinematics, along_base: bool) -> ca.SX:
        """(3, 1) the point about which the common motions rotate."""
        if not along_base:
            return ca.SX.zeros(3, 1)
        E, p = self.basis[:3, : self.slides], k.link_pose(self.roots[self.base].links[-1]).p
        return p if self.slides == 3 else ca.DM(E @ E.T) @ p

    def near(self, k: Kinematics) -> ca.SX:
        """X (nv, nv) of `lift(k)` with its common motions replaced by those that rotate about a point of the base.

        They span the same motions. Far from the origin, rotations about it are almost translations, and speeds along them
        cannot be computed from momenta.
        """
        X = self.lift(k)
        X[:, self.entries(k.tree)] = self.fields(k, along_base=True)
        return X

    def about_origin(self, k: Kinematics, speeds: ca.SX) -> ca.SX:
        """Convert speeds (k, n) along the common motions of `near` to those along the motions of `lift(k)`."""
        out = ca.SX(speeds)
        for i, twist in enumerate(self.twists):
            if any(twist[3:]):
                out[: self.slides, :] -= self._swept(k, twist) @ speeds[i, :]
        return out

    def _swept(self, k: Kinematics, twist: tuple[float, ...]) -> ca.SX:
        """(slides, 1) speeds along the common translations of the point of the base, if a twist rotates it about the origin."""
        return ca.DM(self.basis[:3, : self.slides].T) @ ca.cross(ca.DM(twist[3:]), self.point(k, along_base=True))

    def _velocities(self, k: Kinematics, root: Root, twist: tuple[float, ...], point: ca.SX) -> ca.SX:
        """Velocities of a root's joints for a twist in the world about a point."""
        arm, v, w = k.link_pose(root.links[-1]).p - point, ca.DM(twist[:3]), ca.DM(twist[3:])
        return following(k, root, ca.vertcat(v + ca.cross(w, arm), w))


def _names(of: str, twists: tuple[tuple[float, ...], ...]) -> tuple[str, ...]:
    """Unique names `of`.vx ... `of`.wz for twists, after their largest angular entry, or the largest one of a translation."""
    found: list[str] = []
    for twist in twists:
        turning = any(abs(x) > ZERO for x in twist[3:])
        among = twist[3:] if turning else twist[:3]
        name = f"{of}.{'w' if turning else 'v'}{'xyz'[int(np.argmax(np.abs(among)))]}"
        found.append(name if name not in found else f"{name}{len(found)}")
    return tuple(found)


def following(k: Kinematics, root: Root, twist: ca.SX) -> ca.SX:
    """(n, 1) velocities of a root's joints that give its last link's origin a twist (6, 1), world axes, or the nearest one."""
    last = k.tree.links[root.links[-1]]
    if len(root.links) == 1 and last.subgroup is not None and not last.subgroup.screws:
        # Within a step a quaternion deviates from unit length, so R^T is not the inverse of R. Forces between roots cancel only
        # with the inverse.
        back = _inverse(k.link_pose(root.links[-1]).R)
        return ca.vertcat(back @ twist[:3], back @ twist[3:])[list(last.subgroup.axes), 0]
    J = _columns(k, root)
    return solve_definite(ca.densify(J.T @ J), ca.densify(J.T @ twist))


def _inverse(R: ca.SX) -> ca.SX:
    """Inverse of a matrix (3, 3)."""
    x, y, z = ca.horzsplit(R)
    rows = ca.horzcat(ca.cross(y, z), ca.cross(z, x), ca.cross(x, y)).T
    return rows / ca.dot(x, rows[0, :].T)


def _columns(k: Kinematics, root: Root) -> ca.SX:
    """(6, n) Jacobian of the twist of a root's last link at its origin, world axes, for the velocities of the root's joints."""
    last = root.links[-1]
    return k.columns(k.arms(last, ca.SX.zeros(3, 1)))[:, _entries(k.tree, root)]


def _entries(tree: Tree, root: Root) -> list[int]:
    """Entries of v of a root's links."""
    return [i for at in root.links for i in range(tree.ns)[tree.links[at].v]]


@remembered(64)
def common_motion(m: Mechanism) -> CommonMotion | None:
    """Common motions of a machine with several roots, or with one root of several joints.

    None where a single joint carries the machine, where coordinates, chosen velocities or kinetic energies affect its motion,
    or where a root is not a chain of groups.
    """
    T = _kinematics(m)
    if not m.joints or m.coordinates or m.velocities or m.kinetic_energies or not T.rates.plain:
        return None
    roots = _roots(m, T.tree)
    if roots is None or (len(roots) == 1 and len(roots[0].joints) == 1):
        return None
    found = _shared(m, T, roots)
    if found is None or (len(roots) == 1 and len(found[0][0]) < len(_entries(T.tree, roots[0]))):
        return None
    (twists, slides), alone = found
    sizes = [len(_entries(T.tree, root)) for root in roots]
    # The base is the smallest root without further motions, or whose remaining motions are constant twists in the world.
    fit = [i for i, n in enumerate(sizes) if twists and (n == len(twists) or alone[i].shape[1] == n)]
    base = min(fit, key=lambda i: sizes[i], default=-1)
    remaining = _completing(twists, alone[base], length_at(m, m.p_defaults)) if base >= 0 and sizes[base] > len(twists) else ()
    return CommonMotion(tuple(roots), base, twists, slides, remaining)


def carried_together(m: Mechanism) -> CommonMotion | None:
    """Common motions of a machine that several joints carry, in parallel or in series; None if there are none or no base.

    They depend on joints alone, so that constraint functions may call this.
    """
    found = common_motion(moving(m)) if m.velocities is None else None
    return found if found and found.base >= 0 else None


def _kinematics(m: Mechanism) -> Kinematics:
    """Kinematics at new symbols."""
    return Kinematics(m, ca.SX.sym("q", m.nq), ca.SX.sym("v", m.nv), ca.SX.sym("t"))


def _roots(m: Mechanism, tree: Tree) -> list[Root] | None:
    """The roots of the tree; None if one of them is not a chain of groups with at most six velocities."""
    found = []
    for i, link in enumerate(tree.links):
        if link.parent >= 0:
            continue
        chain = [i]
        while _weightless(tree.links[chain[-1]]):
            carried = [n for n, x in enumerate(tree.links) if x.parent == chain[-1]]
            if len(carried) != 1:
                break
            chain += carried
        links = [tree.links[n] for n in chain]
        whole = all(x.subgroup is not None and x.joint.distribution is None and x.armature.is_zero() for x in links)
        if not whole or sum(x.nv for x in links) > len(NAMES):
            return None
        found.append(Root(tuple(chain), tuple(dict.fromkeys(x.joint.name for x in links))))
    return found


def _weightless(link: Link) -> bool:
    """Whether a link has no mass and no inertia."""
    return link.mass.is_zero() and link.h.is_zero() and link.I.is_zero()


def _shared(
    m: Mechanism, k: Kinematics, roots: list[Root]
) -> tuple[tuple[tuple[tuple[float, ...], ...], int], list[np.ndarray]] | None:
    """A basis of the twists about the origin that all roots can follow, and the number of its translations; and for each root
    the twists (6, n) that it can follow at any configuration, in lengths of the machine.

    None where the joints of a root depend on each other everywhere.
    """
    at = [x for root in roots for x in (_columns(k, root), k.link_pose(root.links[-1]).p)]
    f = ca.Function("roots", [k.q, m.p_symbols], [ca.densify(x) for x in at])
    rows, independent = [list[np.ndarray]() for _ in roots], list[float]()
    # In lengths of the machine, so that twists of rotations and of translations compare.
    long, unit = length_at(m, m.p_defaults), speed_units(m, m.p_defaults)
    units = [unit[_entries(k.tree, root)] for root in roots]
    for out in values_at(f, [(x.q, x.p) for x in generic_states(m, count=STATES)]):
        for of, J, p, one in zip(rows, out[::2], out[1::2], units, strict=True):
            Q, sizes, _ = np.linalg.svd(np.vstack([J[:3] / long, J[3:]]) * one, full_matrices=False)
            independent.append(sizes[-1] / sizes[0])
            x, y, z = p.ravel() / long
            arm = np.array([[0, z, -y], [-z, 0, x], [y, -x, 0]])  # w -> w x p
            carry = np.block([[np.eye(3), arm], [np.zeros((3, 3)), np.eye(3)]])
            of.append((np.eye(6) - Q @ Q.T) @ carry)
    least = np.array(independent)
    if not tell(m, "whether a joint to the world adds a motion", Decision((least > ZERO).all(), closest(least))):
        return None
    found = null_space(np.vstack([x for of in rows for x in of])), *[null_space(np.vstack(of)) for of in rows]
    tell(m, "which motions all joints to the world permit", min(found, key=lambda x: x.margin))
    shared, *alone = [x.answer.T for x in found]
    return _basis(shared, long), alone


def _completing(twists: tuple[tuple[float, ...], ...], root_twists: np.ndarray, long: float) -> tuple[tuple[float, ...], ...]:
    """Twists of a root that complete the common ones to a basis of the span (6, n) of all twists of the root.

    root_twists: their linear parts are in lengths `long` [m].
    """
    unit = np.array([1 / long] * 3 + [1.0] * 3)
    chosen, known = [], np.linalg.qr((np.array(twists) * unit).T)[0]
    for x in _basis(root_twists, long)[0]:
        one = np.array(x) * unit
        left = one - known @ (known.T @ one)
        if np.linalg.norm(left) > INDEPENDENT * np.linalg.norm(one):
            chosen.append(x)
            known = np.column_stack([known, left / np.linalg.norm(left)])
    return tuple(chosen)


def _basis(W: np.ndarray, long: float) -> tuple[tuple[tuple[float, ...], ...], int]:
    """A basis of twists W (6, n), whose linear parts are in lengths `long` [m], and the number of its translations.

    The translations come first and are orthonormal. Rotations follow, of unit angular velocity and without parts along these
    translations. Both are along the axes of the world where possible.
    """
    if not W.size:
        return (), 0
    slides = reduced((W[:3] @ null_space(W[3:]).answer.T).T).T
    n = slides.shape[1]
    if not np.allclose(slides.T @ slides, np.eye(n), rtol=0, atol=ZERO):
        slides = np.linalg.qr(slides)[0]
    turns = W.copy()
    turns[:3] -= slides @ (slides.T @ W[:3])
    turns = reduced(turns[::-1].T).T[::-1, ::-1]
    turns = turns / np.linalg.norm(turns[3:], axis=0)
    turns[:3] *= long
    columns = np.hstack([np.vstack([slides, np.zeros((3, n))]), turns])
    return tuple(tuple(float(x) for x in column) for column in columns.T), n
