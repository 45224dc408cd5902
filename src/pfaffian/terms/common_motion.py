"""The motions that carry a whole machine as one rigid body where no single joint does.

A machine may stand on the world by several joints, as two satellites do that a spring or a closure connects, or by joints in
turn that are one group together: a translation and a ball, or x, y and an angle, with nothing of mass between them. A twist of
the world carries all of it if each of these roots can follow; the momentum along it is that of all bodies. [chhabra14 section
3.3.2 asks for one first joint; these are merged to one.]
"""

from __future__ import annotations

from typing import NamedTuple

import casadi as ca
import numpy as np

from pfaffian.maths.linear import solve_definite
from pfaffian.maths.span import null_space, reduced
from pfaffian.model.mechanism import Mechanism, random_configuration
from pfaffian.terms.kinematics import Kinematics
from pfaffian.terms.present import remembered
from pfaffian.terms.rates import moving, some_parameters
from pfaffian.terms.tree import Link, Tree

STATES = 8
"""Random states at which the roots must be able to follow."""

NOTHING = 1e-9
"""Part of a unit twist that counts as none."""

INDEPENDENT = 1e-6
"""Part of a twist that others must leave of it for it to stand beside them."""

NAMES = ("vx", "vy", "vz", "wx", "wy", "wz")


class Root(NamedTuple):
    """Links in turn from the world to the first with mass, and the names of their joints."""

    links: tuple[int, ...]
    joints: tuple[str, ...]


class CommonMotion(NamedTuple):
    """The motions of a machine as one body.

    roots: what it stands on.   base: the one whose velocities are counted as these motions and those of `beside`, -1 if there
    is none.   twists: twists [v; w] of the world that carry everything, about its origin; the first `slides` of them are
    translations, of unit length and at right angles.   beside: twists of the world that the base alone can follow.
    """

    roots: tuple[Root, ...]
    base: int
    twists: tuple[tuple[float, ...], ...]
    slides: int
    beside: tuple[tuple[float, ...], ...]

    @property
    def name(self) -> str:
        """Of the joints that carry all together, as `Symmetry.joint` has it."""
        return ", ".join(self.joints)

    @property
    def joints(self) -> tuple[str, ...]:
        """Names of the joints of all roots."""
        return tuple(dict.fromkeys(name for root in self.roots for name in root.joints))

    @property
    def basis(self) -> np.ndarray:
        """(6, k)."""
        return np.array(self.twists).reshape(-1, 6).T

    @property
    def names(self) -> tuple[str, ...]:
        """A name for each motion, by the largest entry of its twist from the last."""
        return _names("all", self.twists)

    @property
    def names_beside(self) -> tuple[str, ...]:
        """Names for the motions of the base alone."""
        return tuple(f"{name} in the world" for name in _names(self.roots[self.base].joints[-1], self.beside))

    def entries(self, tree: Tree) -> list[int]:
        """Entries of v of the base that the motions stand for."""
        return _entries(tree, self.roots[self.base])[: len(self.twists)]

    def entries_beside(self, tree: Tree) -> list[int]:
        """Its other entries, which those of the base alone stand for."""
        return _entries(tree, self.roots[self.base])[len(self.twists) :]

    def lift(self, k: Kinematics, along_base: bool = False) -> ca.SX:
        """X (nv, nv), v = X y: y are the speeds along the motions, those of the base beside them, and what all other joints
        do besides.   along_base: as in `fields`.
        """
        X, root = ca.SX.eye(k.mechanism.nv), self.roots[self.base]
        own, point = _entries(k.tree, root), self.point(k, along_base)
        X[:, own[: len(self.twists)]] = self.fields(k, along_base)
        X[own, own[len(self.twists) :]] = ca.horzcat(ca.SX(len(own), 0), *[self._of(k, root, x, point) for x in self.beside])
        return X

    def fields(self, k: Kinematics, along_base: bool = False) -> ca.SX:
        """(nv, n) velocities along the motions.   along_base: turn about a point that slides along with the base, not the
        origin; seen from where nothing slides the momenta are the same, and how far away the machine is costs no digits.
        """
        Y, point = ca.SX(k.mechanism.nv, len(self.twists)), self.point(k, along_base)
        for root in self.roots:
            for i, twist in enumerate(self.twists):
                Y[_entries(k.tree, root), i] = self._of(k, root, twist, point)
        return Y

    def point(self, k: Kinematics, along_base: bool) -> ca.SX:
        """(3, 1) about which motions turn."""
        if not along_base:
            return ca.SX.zeros(3, 1)
        E, p = self.basis[:3, : self.slides], k.link_pose(self.roots[self.base].links[-1]).p
        return p if self.slides == 3 else ca.DM(E @ E.T) @ p

    def _of(self, k: Kinematics, root: Root, twist: tuple[float, ...], point: ca.SX) -> ca.SX:
        """Velocities of a root's joints along a twist of the world about a point."""
        arm, v, w = k.link_pose(root.links[-1]).p - point, ca.DM(twist[:3]), ca.DM(twist[3:])
        return following(k, root, ca.vertcat(v + ca.cross(w, arm), w))


def _names(of: str, twists: tuple[tuple[float, ...], ...]) -> tuple[str, ...]:
    found: list[str] = []
    for twist in twists:
        turning = any(abs(x) > NOTHING for x in twist[3:])
        among = twist[3:] if turning else twist[:3]
        name = f"{of}.{'w' if turning else 'v'}{'xyz'[int(np.argmax(np.abs(among)))]}"
        found.append(name if name not in found else f"{name}{len(found)}")
    return tuple(found)


def following(k: Kinematics, root: Root, twist: ca.SX) -> ca.SX:
    """(n, 1) velocities of a root's joints by which its last link has a twist (6, 1) of its origin, world axes: the nearest."""
    last = k.tree.links[root.links[-1]]
    if len(root.links) == 1 and last.subgroup is not None and not last.subgroup.screws:
        # Within a step a quaternion is not of unit length, and R^T not the inverse: forces between roots cancel by the inverse.
        back = _inverse(k.link_pose(root.links[-1]).R)
        return ca.vertcat(back @ twist[:3], back @ twist[3:])[list(last.subgroup.axes), 0]
    J = _columns(k, root)
    return solve_definite(ca.densify(J.T @ J), ca.densify(J.T @ twist))


def _inverse(R: ca.SX) -> ca.SX:
    """Of a matrix (3, 3)."""
    x, y, z = ca.horzsplit(R)
    rows = ca.horzcat(ca.cross(y, z), ca.cross(z, x), ca.cross(x, y)).T
    return rows / ca.dot(x, rows[0, :].T)


def _columns(k: Kinematics, root: Root) -> ca.SX:
    """(6, n) of the twist of a root's last link at its origin."""
    last = root.links[-1]
    return k.world_columns(last, k.link_pose(last).p)[:, _entries(k.tree, root)]


def _entries(tree: Tree, root: Root) -> list[int]:
    return [i for at in root.links for i in range(tree.ns)[tree.links[at].v]]


@remembered(64)
def common_motion(m: Mechanism) -> CommonMotion | None:
    """The motions of a machine with several roots, or one of several joints; None where a single joint carries all, where
    something else than joints decides what moves, or where a root is no group in turn.
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
    # One with no further motions, or else the least of those that are groups in the world, where their other motions are fixed.
    fit = [i for i, n in enumerate(sizes) if twists and (n == len(twists) or alone[i].shape[1] == n)]
    base = min(fit, key=lambda i: sizes[i], default=-1)
    beside = _beside(twists, alone[base]) if base >= 0 and sizes[base] > len(twists) else ()
    return CommonMotion(tuple(roots), base, twists, slides, beside)


def carried_together(m: Mechanism) -> CommonMotion | None:
    """The motions of a machine that several joints carry together, side by side or in turn; None where one joint does, or
    nothing. It follows from joints alone, so that functions of constraints may ask for it.
    """
    found = common_motion(moving(m)) if m.velocities is None else None
    return found if found and found.base >= 0 else None


def _kinematics(m: Mechanism) -> Kinematics:
    return Kinematics(m, ca.SX.sym("q", m.nq), ca.SX.sym("v", m.nv), ca.SX.sym("t"))


def _roots(m: Mechanism, tree: Tree) -> list[Root] | None:
    """None where one is no chain of groups."""
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
    return link.mass.is_zero() and link.h.is_zero() and link.I.is_zero()


def _shared(
    m: Mechanism, k: Kinematics, roots: list[Root]
) -> tuple[tuple[tuple[tuple[float, ...], ...], int], list[np.ndarray]] | None:
    """Twists about the origin that all roots can follow, and how many of them slide; and those that each root can follow
    wherever it is, (6, n) each. None where a root's joints depend on each other everywhere.
    """
    at = [x for root in roots for x in (_columns(k, root), k.link_pose(root.links[-1]).p)]
    f = ca.Function("roots", [k.q, m.p_symbols], [ca.densify(x) for x in at])
    random, rows = np.random.default_rng(67), [list[np.ndarray]() for _ in roots]
    for _ in range(STATES):
        out = [np.array(x) for x in f(random_configuration(m, random), some_parameters(m, random))]
        for of, J, p in zip(rows, out[::2], out[1::2], strict=True):
            Q, sizes, _ = np.linalg.svd(J, full_matrices=False)
            if sizes[-1] < NOTHING * sizes[0]:
                return None
            x, y, z = p.ravel()
            arm = np.array([[0, z, -y], [-z, 0, x], [y, -x, 0]])  # w -> w x p
            carry = np.block([[np.eye(3), arm], [np.zeros((3, 3)), np.eye(3)]])
            of.append((np.eye(6) - Q @ Q.T) @ carry)
    everything = [x for of in rows for x in of]
    return _basis(null_space(np.vstack(everything), NOTHING).T), [null_space(np.vstack(of), NOTHING).T for of in rows]


def _beside(twists: tuple[tuple[float, ...], ...], own: np.ndarray) -> tuple[tuple[float, ...], ...]:
    """Those of a basis of a root's own twists (6, n) that make one of it together with these."""
    chosen, known = [], np.linalg.qr(np.array(twists).T)[0]
    for x in _basis(own)[0]:
        left = np.array(x) - known @ (known.T @ x)
        if np.linalg.norm(left) > INDEPENDENT * np.linalg.norm(x):
            chosen.append(x)
            known = np.column_stack([known, left / np.linalg.norm(left)])
    return tuple(chosen)


def _basis(W: np.ndarray) -> tuple[tuple[tuple[float, ...], ...], int]:
    """Translations first, then turns of unit length without any of these; along the axes of the world where they span them."""
    if not W.size:
        return (), 0
    slides = reduced((W[:3] @ null_space(W[3:], NOTHING).T).T).T
    n = slides.shape[1]
    if not np.allclose(slides.T @ slides, np.eye(n), rtol=0, atol=NOTHING):
        slides = np.linalg.qr(slides)[0]
    turns = W.copy()
    turns[:3] -= slides @ (slides.T @ W[:3])
    turns = reduced(turns[::-1].T).T[::-1, ::-1]
    turns = turns / np.linalg.norm(turns[3:], axis=0)
    columns = np.hstack([np.vstack([slides, np.zeros((3, n))]), turns])
    return tuple(tuple(float(x) for x in column) for column in columns.T), n
