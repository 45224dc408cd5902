"""The velocities that the integrator steps: along axes that do not spin with the body.

A spinning body carries the axes of its velocity v round with it, so v changes fast even where the motion is simple. The
integrator therefore steps y = T(q) v, y_dot = T v_dot + T_dot v, with a T for each kind of joint; states and results stay in v.

free, planar: y has the linear velocity along the axes of the joint's frame on the parent.
free, spherical, of a body with equal moments of inertia: y has the angular velocity along these axes too. Such a body has no
principal axes, and the forces on it have axes of their own. The angular velocity of any other body changes less along the axes
of the body (a torque-free disc: 14 times less error).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import casadi as ca

from pfaffian.dynamics.motion import RANK_TOLERANCE
from pfaffian.maths.linear import orthogonalise
from pfaffian.model.coordinates import Coordinates, residual
from pfaffian.model.mechanism import Mechanism, as_mechanism
from pfaffian.terms.kinematics import Kinematics
from pfaffian.terms.rates import tree
from pfaffian.terms.tree import Link, motion, split_motion


class Choice(NamedTuple):
    """The velocities y of one joint.   T: (nv, nv) orthogonal, y = T v.   carried: (nv, 1) T^-1 T_dot v, so that
    y_dot = T (v_dot + carried)."""

    T: ca.SX
    carried: ca.SX


def choice(link: Link, q: ca.SX, v: ca.SX) -> Choice | None:
    """The Choice for a link's joint at its q, with a unit quaternion, and its v; None if v itself is stepped."""
    g = link.subgroup
    if g is None or link.joint.distribution is not None:
        return None
    turns, n = len(g.rotation.axes), len(g.along)
    ball = turns == 3 and is_ball(link)
    if not turns or not (n or ball):
        return None
    R, (u, w) = motion(link, q).R, split_motion(link, v)
    along = list(g.along)
    return Choice(
        ca.diagcat(R[along, along], R if ball else ca.SX.eye(turns)), ca.vertcat(ca.cross(w, u)[along], ca.SX(turns, 1))
    )


def is_ball(link: Link) -> bool:
    """Whether all moments of inertia about the joint are equal."""
    return bool((link.I - link.I[0, 0] * ca.SX.eye(3)).is_zero())


class Variables(NamedTuple):
    """The variables X that are stepped in place of a state x, of the same size.

    stepped: x -> X.   state: X -> x.   rate: (x, x_dot) -> X_dot.
    straight: indices of the entries of X whose rate is another entry of X, and the indices of these rates.
    """

    stepped: Callable[[ca.SX], ca.SX]
    state: Callable[[ca.SX], ca.SX]
    rate: Callable[[ca.SX, ca.SX], ca.SX]
    straight: tuple[list[int], list[int]]


AS_THEY_ARE = Variables(ca.SX, ca.SX, lambda x, x_dot: x_dot, ([], []))
"""The entries of the state itself are stepped."""


def of_joints(m: Mechanism) -> Variables:
    """The Variables [q; y; ...] of a state [q; v; ...]."""
    return Variables(partial(_stepped, m), partial(_state, m), partial(_rate, m), _straight(m))


def _stepped(m: Mechanism, x: ca.SX) -> ca.SX:
    """The stepped variables X of a state x: its velocities along the axes of `_choices`, the rest as it is."""
    X = ca.SX(x)
    for at, of in _choices(m, x):
        X[at] = of.T @ x[at]
    return X


def _state(m: Mechanism, X: ca.SX) -> ca.SX:
    """The state x of the stepped variables X, with quaternions of unit length where T depends on them."""
    if not _choices(m, X):
        return X
    x = ca.vertcat(normalised(m, X[: m.nq, 0]), X[m.nq :, 0])
    for at, of in _choices(m, x):
        x[at] = of.T.T @ X[at]
    return x


def _rate(m: Mechanism, x: ca.SX, x_dot: ca.SX) -> ca.SX:
    """The rate of the stepped variables X at a state x with the rate x_dot."""
    X_dot = ca.SX(x_dot)
    for at, of in _choices(m, x):
        X_dot[at] = of.T @ (x_dot[at] + of.carried)
    return X_dot


def _straight(m: Mechanism) -> tuple[list[int], list[int]]:
    """Indices of all coordinates but quaternions, and of the y that are their rates."""
    pairs = []
    for j in [] if m.velocities else m.joints:
        q, v = m.q_slices[j.name].start, m.nq + m.v_slices[j.name].start
        pairs += [(q + i, v + i) for i in range(j.plain)]
    return [i for i, _ in pairs], [j for _, j in pairs]


def _choices(m: Mechanism, x: ca.SX) -> list[tuple[slice, Choice]]:
    """Each Choice at a state x, with the slice of the joint's velocity in x."""
    links = [] if m.velocities else [link for link in tree(m).links if link.joint.nv]
    places = [(link, m.v_slices[link.joint.name]) for link in links]
    choices = [(at := slice(m.nq + v.start, m.nq + v.stop), choice(link, x[link.q], x[at])) for link, v in places]
    return [(at, of) for at, of in choices if of is not None]


def _to_phi(c: Coordinates, q: ca.SX, p: ca.SX) -> ca.SX:
    """-dphi/dq^+ phi, the Newton step onto phi = 0, after which phi is of the order of its square before."""
    at = ca.SX.sym("q", c.nq)
    phi = residual(c, at, p)
    rows = orthogonalise(ca.sparsify(ca.jacobian(phi, at)), phi, RANK_TOLERANCE)
    return ca.SX(ca.Function("to_phi", [at, p], [-(rows.Q.T @ rows.D)])(q, p))


def normalise(m: Mechanism, q: ca.SX) -> ca.SX:
    """q with quaternions of unit length, and with the caller's coordinates put onto phi = 0 by one Newton step.

    Coordinates that are `stabilised` stay unchanged.

    Args:
        m: the mechanism.
        q: (nq, 1) expression.
    Returns:
        (nq, 1) expression.

    Example:
        >>> import casadi as ca
        >>> import pfaffian as pf
        >>> m = pf.mechanism("ball", [pf.body("b", 1.0, inertia=0.1)], [pf.joint("pivot", "spherical", "world", "b")])
        >>> print(ca.DM(pf.constraints.normalise(m, ca.SX([0.0, 3.0, 0.0, 4.0]))))
        [0, 0.6, 0, 0.8]
    """
    return normalised(as_mechanism(m), q)


def normalised(m: Mechanism, q: ca.SX) -> ca.SX:
    """`normalise` of a mechanism that is known to be one."""
    q = ca.densify(q)
    for c in m.coordinates:
        if c.phi is not None and c.returns is None:
            q[m.q_slices[c.name], 0] += _to_phi(c, q[m.q_slices[c.name], 0], m.p_symbols)
    for turn in m.quaternions.values():
        q[turn, 0] = q[turn, 0] / ca.norm_2(q[turn, 0])
    return q


def q_dot(k: Kinematics) -> ca.SX:
    """(nq, 1) rate of q: K v, plus -dphi/dq^+ Lambda phi, by which stabilised coordinates return to phi = 0. [konz25 (A.10)]"""
    m, rate = k.mechanism, ca.SX(k.q_dot)
    for c in m.coordinates:
        if c.returns is not None:
            at = m.q_slices[c.name]
            rate[at, 0] += c.returns * _to_phi(c, k.q[at, 0], m.p_symbols)
    return rate
