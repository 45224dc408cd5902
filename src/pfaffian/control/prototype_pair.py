"""Pairs of bodies: the inertia, damping and stiffness that a prototype has between them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import casadi as ca

from pfaffian.errors import ModelError, brief
from pfaffian.maths import se3
from pfaffian.model import reprs
from pfaffian.model.body import WORLD
from pfaffian.model.data import data
from pfaffian.model.number import several
from pfaffian.model.user_functions import in_symbols
from pfaffian.parts.elastic import check_parts, spatial, symmetric_pseudo
from pfaffian.terms import connection
from pfaffian.terms.kinematics import Kinematics
from pfaffian.terms.new_symbols import at_new_symbols, placed


@data
class Pair:
    """Inertia, damping and stiffness of a prototype between two bodies; made by `pair`.

    body, seen_from: names of the two bodies.   inertia, damping, stiffness: in the frame of `body`, pseudo-matrices (4, 4), or
    matrices (6, 6) along twists.

    Example:
        >>> import pfaffian as pf
        >>> from pfaffian import control
        >>> p = control.pair("tool", seen_from="base", inertia=pf.forces.pseudo_matrix(3.0))
        >>> p
        <Pair: 'tool' seen from 'base'>
        >>> print(p.inertia[3, 3])  # the mass [kg]
        3
    """

    body: str
    seen_from: str
    inertia: ca.SX
    damping: ca.SX
    stiffness: ca.SX

    def __repr__(self) -> str:
        return reprs.words(self, f"{self.body!r} seen from {self.seen_from!r}")


def pair(body: str, *, seen_from: str = WORLD, inertia: Any = None, damping: Any = None, stiffness: Any = None) -> Pair:
    """Choose inertia, damping and stiffness of a prototype between two bodies. [konz25 (4.66)]

    Args:
        body: name of the body in whose frame the matrices are given.
        seen_from: name of the body relative to which it moves; default the world, for an absolute pair.
        inertia: Mbar' (4, 4) symmetric [kg, kg m, kg m^2], made by `pf.forces.pseudo_matrix`; or any Mbar (6, 6) symmetric, of
            21 numbers, along twists [v; w], for the approaches "body" and "energy"; none if None.
        damping: Dbar' (4, 4) symmetric [N s/m, N s, N m s], or Dbar (6, 6) as for the inertia; none if None.
        stiffness: Kbar' (4, 4) symmetric [N/m, N, N m]; or Kbar (6, 6), for every approach, the Hessian at rest of the
            potential of a `pf.forces.pose_spring` [konz25 (A.19)]; none if None.
    Returns:
        Pair. Its matrices need not be positive semidefinite; their sums over all pairs must be, which the law checks.
    Raises ModelError: a matrix that is not symmetric or has another size; a stiffness (6, 6) that couples turning to a
    translation that it does not resist; one body twice, or a name that is not a text.

    Example:
        >>> import pfaffian as pf
        >>> from pfaffian import control
        >>> m = pf.mechanism("cart", [pf.body("cart", 2.0)], [pf.joint("rail", "prismatic", "world", "cart", axis=(1, 0, 0))])
        >>> weight = {"inertia": 1.0, "damping": 2.0, "stiffness": 1.0}
        >>> soft = control.pair("cart", **{n: pf.forces.pseudo_matrix(x) for n, x in weight.items()})
        >>> law = control.prototype_tracking([soft], control.set_point([1.0]))  # as a cart of 1 kg on a spring of 1 N/m
        >>> pf.run(pf.actuate_all(m), duration=0.05, step=0.01, control=law, backend="numpy")["u"].values[0].round(6)
        array([2.])
    """
    what = f"pair {body!r} seen from {seen_from!r}"
    if body == seen_from or not all(isinstance(n, str) for n in (body, seen_from)):
        raise ModelError(f"{what}: two different bodies are needed")
    given = {"inertia": inertia, "damping": damping, "stiffness": stiffness}
    sizes = (4, 4), (6, 6)
    matrices = {n: ca.SX(4, 4) if x is None else symmetric_pseudo(x, f"{what}: {n}", *sizes) for n, x in given.items()}
    check_parts(matrices["stiffness"], f"{what}: stiffness")
    return Pair(body, seen_from, **matrices)


def as_pairs(pairs: Any, what: str) -> tuple[Pair, ...]:
    """The pairs as a tuple. Raises ModelError: the value is not a list of pairs, or is empty."""
    if not several(pairs) or not pairs or not all(isinstance(p, Pair) for p in pairs):
        raise ModelError(f"{what}: a list of pair(...) is needed, got {brief(pairs)}")
    return tuple(pairs)


class PairMotion(NamedTuple):
    """The motion of a pair.   G: (4, 4) pose of body in seen_from.   J, J_dot: (6, nv) body Jacobian and its rate."""

    G: ca.SX
    J: ca.SX
    J_dot: ca.SX


def motion_of(k: Kinematics, p: Pair) -> PairMotion:
    """The motion of a pair at the kinematics k."""
    s = at_new_symbols(k)
    G, J = s.relative(p.body, p.seen_from)
    return PairMotion(*placed([se3.homogeneous(G.R, G.p), ca.densify(J), connection.rate(s, J)], s, k))


def assembled(k: Kinematics, pairs: Sequence[Pair], what: str) -> ca.SX:
    """(nv, nv) sum J^T X J over all pairs, with X = Vee(X') of each pair's inertia, damping or stiffness. [konz25 (4.48)]

    what: "inertia", "damping" or "stiffness".
    """
    total = ca.SX(k.mechanism.nv, k.mechanism.nv)
    for p in pairs:
        label = f"pair {p.body!r} seen from {p.seen_from!r}: {what}"
        J, X = motion_of(k, p).J, in_symbols(getattr(p, what), label, [k.mechanism.p_symbols])
        total += J.T @ spatial(X) @ J
    return ca.densify(total)
