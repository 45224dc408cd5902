"""Kinematics of an open chain as a product of exponentials, in screw parameters. [chhabra14 ch. 2]

A joint is a displacement subgroup and gives one factor; a universal joint, which is two of them in series, gives two. At home,
where all coordinates are zero, factor j has the twists tau_j = Ad(home_j) S_j, (6, k), in the world frame. Its screw parameters
s_j (k,) are the constant twist that takes it from home to its pose in unit time, so that the pose of a body is

    exp(hat(tau_1 s_1)) ... exp(hat(tau_m s_m)) home,    over the factors on its path from the world.    [chhabra14 thm. 2.2.3]

`kinematics` computes the same quantities from q and v in another way. Several joints may connect bodies to the world.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import casadi as ca

from pfaffian.errors import ModelError
from pfaffian.maths import se3
from pfaffian.maths.subgroups import Subgroup
from pfaffian.model import reprs
from pfaffian.model.body import WORLD
from pfaffian.model.graph import check_open
from pfaffian.model.joint import Joint
from pfaffian.model.mechanism import Mechanism, as_mechanism
from pfaffian.model.pose import IDENTITY, Pose
from pfaffian.terms.rates import coordinates_of
from pfaffian.terms.tree import BodyLayout, layout, upwards


class Block(NamedTuple):
    """A subgroup of a joint that has independent screw parameters.

    s, q: its entries of s and of q.   names: names of its parameters.
    """

    joint: Joint
    subgroup: Subgroup
    s: slice
    q: slice
    names: tuple[str, ...]


class Factor(NamedTuple):
    """exp(hat(tau s_j)) of one subgroup of a joint.

    before: index of the previous factor on the path from the world, or -1.
    home: pose of its frame in the world, at home.   step: in the frame of the previous factor.
    ratios: (k, ns) with s_j = ratios s: rows of the identity, or ratios where the joint follows others.
    """

    before: int
    joint: Joint
    subgroup: Subgroup
    home: Pose
    step: Pose
    ratios: ca.SX

    @property
    def tau(self) -> ca.SX:
        """(6, k) twists at home, in the world frame. [chhabra14 def. 2.1.4]"""
        return ca.sparsify(ca.SX(se3.Ad(self.home.R, self.home.p)) @ self.subgroup.S)


def blocks(m: Mechanism) -> tuple[Block, ...]:
    """The blocks in the order of s, which is that of the joints. Raises ModelError: m is not an open chain of joints."""
    check_chain(m)
    found, begin = list[Block](), 0
    for j in m.joints:
        for part, kind in zip(j.parts, j.kind.factors, strict=True) if not j.mimic else ():
            first, g = m.q_slices[j.name].start, part.subgroup
            labels = [kind.label or n for n in g.s_names]
            names = tuple(f"{j.name}.{n}" if n else j.name for n in labels)
            q = slice(first + part.q.start, first + part.q.stop)
            found.append(Block(j, g, slice(begin, begin + g.nv), q, names))
            begin += g.nv
    return tuple(found)


def check_chain(m: Mechanism) -> None:
    """Raise ModelError, naming the part at fault, if m is not an open chain of subgroups."""
    check_open(as_mechanism(m))
    for j in m.joints:
        if j.pose:
            raise ModelError(
                f"edge {j.name!r} is a function of q but not an exponential: replace it by a joint, "
                "or by several joints in series"
            )
    for c in m.coordinates:
        raise ModelError(
            f"coordinates {c.name!r} belong to no joint, but a product of exponentials has factors for joints only: "
            "leave them out"
        )


@dataclass(frozen=True, eq=False)
class Exponentials:
    """An open chain at screw parameters s (ns, 1) [m, rad]; made by `exponentials`. Each quantity is computed once.

    s is ordered by joints like q, with as many entries for a joint as its group has dimensions. Twists [v; w] = J s_dot are in
    the world frame unless another frame is named.
    """

    mechanism: Mechanism
    s: ca.SX

    def __repr__(self) -> str:
        return reprs.words(self, f"of {self.mechanism.name!r}", f"s ({self.s.numel()}, 1)", f"{len(self.factors)} factors")

    @property
    def s_names(self) -> tuple[str, ...]:
        """Names of s; for a joint with several: x, y, z along the axes of its frame, and angle, or rx, ry, rz, about them."""
        return tuple(n for b in self.blocks for n in b.names)

    @property
    def s_units(self) -> tuple[str, ...]:
        return tuple(u for b in self.blocks for u in b.subgroup.s_units)

    # -- rates of the parameters ------------------------------------------------------------------------------------

    @cached_property
    def blocks(self) -> tuple[Block, ...]:
        return blocks(self.mechanism)

    @cached_property
    def q(self) -> ca.SX:
        """(nq, 1) coordinates. [chhabra14 (2.1.3a)]"""
        return ca.densify(ca.vertcat(ca.SX(0, 1), *[b.subgroup.screw_to_chart(self.s[b.s, 0]) for b in self.blocks]))

    @cached_property
    def Z(self) -> ca.SX:
        """(nq, ns) q_dot = Z s_dot, the unit matrix where the motions of a joint commute. [chhabra14 (2.1.3b)]"""
        return _diagonal([b.subgroup.screw_rate(self.s[b.s, 0]) for b in self.blocks])

    @cached_property
    def Sigma(self) -> ca.SX:
        """(ns, n) s_dot = Sigma v_bar; v_bar are the speeds of joints with a distribution, and s_dot of other joints.

        Sigma = Z^-1 C_bar [chhabra14 (2.1.5)]; the example in the thesis prints Z C_bar.
        """
        return _diagonal([ca.SX.eye(b.subgroup.nv) if b.joint.distribution is None else self._speeds(b) for b in self.blocks])

    @cached_property
    def of_v(self) -> ca.SX:
        """(ns, nv) s_dot = of_v v, with v the body-fixed velocities of the joints as written."""
        return _diagonal([self._speeds(b) for b in self.blocks])

    def _speeds(self, b: Block) -> ca.SX:
        """s_dot of a block for unit values of its velocities."""
        D = ca.SX(b.subgroup.dexp_right_inv(self.s[b.s, 0]))
        return D if b.joint.distribution is None else D @ b.joint.distribution

    # -- poses ------------------------------------------------------------------------------------------------------

    @cached_property
    def _layout(self) -> BodyLayout:
        return layout(self.mechanism, {})

    @cached_property
    def factors(self) -> tuple[Factor, ...]:
        """The factors, each after those on its path to the world."""
        m, found, rows_of = self.mechanism, list[Factor](), {b.joint.name: list[ca.SX]() for b in self.blocks}
        for b in self.blocks:
            rows_of[b.joint.name].append(ca.SX.eye(self.s.numel())[b.s, :])
        left = {name: iter(rows) for name, rows in rows_of.items()}
        for before, j, part, placement in self._layout.frames:
            assert part is not None  # no edges
            at_rest = part.subgroup.motion(coordinates_of(m, j, ca.SX(ca.DM(m.neutral())))) if j.mimic else None
            step = placement @ Pose(*map(ca.SX, at_rest)) if at_rest else placement
            home = found[before].home @ step if before >= 0 else step
            found.append(
                Factor(before, j, part.subgroup, home, step, _followed(m, j, rows_of) if j.mimic else next(left[j.name]))
            )
        return tuple(found)

    @cached_property
    def exponentials(self) -> tuple[Pose, ...]:
        """gamma_j = exp(hat(tau_j s_j)) of each factor: its motion from home, in the world frame."""
        return tuple(f.home @ X @ f.home.inverse() for f, X in zip(self.factors, self.motions, strict=True))

    @cached_property
    def motions(self) -> tuple[Pose, ...]:
        """exp(hat(S_j s_j)) of each factor: its motion from home, in its own frame."""
        return tuple(Pose(*map(ca.SX, f.subgroup.exp(f.ratios @ self.s))) for f in self.factors)

    @cached_property
    def products(self) -> tuple[Pose, ...]:
        """gamma_1 ... gamma_j up to each factor j, over the factors on its path from the world."""
        found = list[Pose]()
        for f, gamma in zip(self.factors, self.exponentials, strict=True):
            found.append(found[f.before] @ gamma if f.before >= 0 else gamma)
        return tuple(found)

    def home(self, body: str) -> Pose:
        """Pose of a body in the world where all parameters are zero."""
        factor, X = self.place(body)
        return self.factors[factor].home @ X if factor >= 0 else X

    def twists(self, joint: str) -> ca.SX:
        """(6, k) tau of a joint: columns are twists at home, in the world frame [m/rad, 1]. [chhabra14 def. 2.1.4]"""
        name = self.mechanism.joint(joint).name
        return ca.horzcat(ca.SX(6, 0), *[f.tau for f in self.factors if f.joint.name == name])

    def pose(self, body: str) -> Pose:
        """Pose of a body in the world, as a product of exponentials. [chhabra14 thm. 2.2.3]"""
        factor, _ = self.place(body)
        return self.products[factor] @ self.home(body) if factor >= 0 else self.home(body)

    # -- twists -----------------------------------------------------------------------------------------------------

    def jacobian(self, body: str, *, relative_to: str = WORLD, frame: str = WORLD) -> ca.SX:
        """(6, ns) J with [v; w] = J s_dot of a body. [chhabra14 (2.3.7), (2.3.11), (2.3.12)]

        Block j is Ad(gamma_1 ... gamma_{j-1}) Omega_j tau_j, Omega_j the integral of exp(x ad(tau_j s_j)) over x from 0 to 1.

        relative_to: body relative to which the motion is measured; blocks of joints that carry both bodies vanish.
        frame: body whose axes and origin the twist refers to.
        """
        (end, _), (other, _) = self.place(body), self.place(relative_to)
        if frame == WORLD:
            return ca.sparsify(self._spatial(end) - self._spatial(other))
        J, here, there = ca.SX(6, self.s.numel()), self._path(end), self._path(other)
        for i in (i for i in (*here, *there) if (i in here) != (i in there)):
            f, X = self.factors[i], self._seen_from(frame, i)
            block = ca.SX(se3.Ad(X.R, X.p)) @ f.subgroup.S @ f.subgroup.dexp_right(f.ratios @ self.s) @ f.ratios
            J += block if i in here else -block
        return ca.sparsify(J)

    def _path(self, factor: int) -> list[int]:
        """A factor and those before it on the path to the world, nearest first."""
        return upwards(factor, lambda i: self.factors[i].before)

    def _seen_from(self, body: str, factor: int) -> Pose:
        """Pose of a factor's frame relative to a body, from the factors between them alone: no digits are lost far from the
        world's origin."""
        last, X = self.place(body)
        up, down = self._path(last), self._path(factor)
        here, above = self._split([i for i in up if i not in down], X)
        there, below = self._split([i for i in down if i not in up], IDENTITY)
        return (below.seen_from(above) @ there).seen_from(here)

    def _split(self, path: list[int], X: Pose) -> tuple[Pose, Pose]:
        """A pose X in the frame of the nearest factor of a path, in two parts: in the frame of its last factor, and the pose of
        that one in the frame before it."""
        if not path:
            return IDENTITY, X
        for i in path[:-1]:
            X = self.factors[i].step @ self.motions[i] @ X
        return X, self.factors[path[-1]].step @ self.motions[path[-1]]

    def _spatial(self, factor: int) -> ca.SX:
        """(6, ns) Jacobian, in the world frame, of what a factor carries."""
        J = ca.SX(6, self.s.numel())
        while factor >= 0:
            f = self.factors[factor]
            moved = f.home if f.before < 0 else self.products[f.before] @ f.home
            # Ad(home) S dexp_left(s_j) is Omega_j tau_j: exp commutes with Ad.
            J = J + se3.Ad(moved.R, moved.p) @ f.subgroup.S @ f.subgroup.dexp_left(f.ratios @ self.s) @ f.ratios
            factor = f.before
        return J

    def modified_jacobian(self, body: str, *, relative_to: str = WORLD, frame: str = WORLD) -> ca.SX:
        """(6, n) J Sigma, the Jacobian for the speeds v_bar of `Sigma`. [chhabra14 (2.3.13)]"""
        return ca.sparsify(self.jacobian(body, relative_to=relative_to, frame=frame) @ self.Sigma)

    def place(self, body: str) -> tuple[int, Pose]:
        """Index of the last factor on the path to a body, -1 if there is none, and the pose of the body in its frame."""
        return self._layout.place[body if body == WORLD else self.mechanism.body(body).name]


def exponentials(m: Mechanism, s: ca.SX | None = None) -> Exponentials:
    """An open chain of displacement subgroups in screw parameters, as expressions. [chhabra14 ch. 2]

    Args:
        m: the mechanism, an open chain.
        s: (ns, 1) expressions of type casadi.SX [m, rad]; new symbols if None.
    Returns:
        an object with `s_names` and, as expressions, `q`, the poses `pose(body)`, the twists `twists(joint)` (6, k), the
        Jacobian `jacobian(body)` (6, ns), and the matrices `Z`, `Sigma` and `of_v` of the parameters' rates.
    Raises ModelError: m is a closed chain, has an edge, or has coordinates that belong to no joint; s has another shape.

    Example:
        >>> import casadi as ca
        >>> import pfaffian as pf
        >>> m = pf.mechanism("jib", [pf.body("jib", 1.0)], [pf.joint("mast", "cylindrical", "world", "jib")])
        >>> E = pf.screws.exponentials(m, ca.SX([0.5, 0.0]))
        >>> print(E.s_names, ca.DM(E.pose("jib").p))
        ('mast.z', 'mast.angle') [0, 0, 0.5]
    """
    n = sum(b.subgroup.nv for b in blocks(m))
    s = ca.SX.sym("s", n) if s is None else s
    if not isinstance(s, ca.SX) or s.shape != (n, 1):
        raise ModelError(f"s must be expressions of type casadi.SX and shape ({n}, 1), one for each screw parameter")
    return Exponentials(m, s)


def _followed(m: Mechanism, j: Joint, rows_of: dict[str, list[ca.SX]]) -> ca.SX:
    """(1, ns) ratios of a joint with one coordinate to s, through all joints that it follows."""
    if not j.mimic:
        return rows_of[j.name][0]
    return j.mimic.ratios.T @ ca.vertcat(*[_followed(m, m.joint(n), rows_of) for n in j.mimic.joints])


def _diagonal(parts: list[ca.SX]) -> ca.SX:
    """The block diagonal matrix of these blocks, also of none."""
    return ca.SX(ca.diagcat(ca.SX(0, 0), *parts))
