"""Tracking of a prototype: the machine moves as much like a chosen other machine as its inputs permit. [konz25 ch. 4]

The prototype has the machine's kinematics and, between any pairs of bodies, inertia, damping and stiffness of its own: 4 x 4
pseudo-matrices Mbar', Dbar', Kbar'. Its motion towards a reference q_R(t) is Mbar v_dot + bbar = 0 with

    Mbar = sum J^T Vee(Mbar') J,    bbar = cbar + fDbar + fKbar,    fKbar = sum J^T vee2((1 - G_E^-1) Kbar'),    (4.66)

where G_E = G_R^-1 G is the error of the pose G of each pair and J its body Jacobian. Inertia and damping act on the difference
of the motions, in one of three ways:

particle: of all points of the body, relative to the first one of the pair (4.66c,d).
body: of the twists, xi_E = J v - Ad(G_E^-1) J_R v_R (4.66e,f).
energy: of the velocities, v_E = v - Q v_R with a transport map Q(q, q_R) (4.66g-i).

At a constant reference the energy Wbar of each falls by what the dampers dissipate, where the inputs leave no matching force.
Along a moving one it does so with `energy` where the transport error (4.30) is zero, and with `body` where the xi_E of all
pairs are J v_E of one velocity v_E, as those of one pair on a body that moves any way are; those of several pairs of an arm are
not, and the energy may rise there. With `particle` it may rise along any. `prototype_power` records its rate.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from pfaffian.control.law import Command, Control, Fault, Reason, at_values, maker, motor_matrix, with_no_wrench
from pfaffian.control.reason import lowest, mainly, null, share
from pfaffian.control.reference import Reference, as_reference, of_unit_length
from pfaffian.dynamics import gauss
from pfaffian.dynamics.motion import RANK_TOLERANCE
from pfaffian.errors import ModelError, brief
from pfaffian.maths import se3, so3
from pfaffian.maths.linear import orthogonalise, smallest, solve_semidefinite, solve_symmetric
from pfaffian.maths.qp import INACCURATE, INFEASIBLE, SOLVED, Nearest, nearest
from pfaffian.model import shown
from pfaffian.model.body import WORLD
from pfaffian.model.caller import answer, checked
from pfaffian.model.data import data
from pfaffian.model.elastic import symmetric_pseudo
from pfaffian.model.mechanism import Mechanism, random_configuration
from pfaffian.model.number import column, matrix, several
from pfaffian.terms import connection
from pfaffian.terms.connection import pseudo_inverse
from pfaffian.terms.fresh import fresh, placed
from pfaffian.terms.kinematics import Kinematics
from pfaffian.terms.present import remembered
from pfaffian.terms.terms import Terms, symbols

EXCLUDED = "no input is within the limits W u <= l: widen them"
UNSOLVED = (
    "the limits could not be met to the digits of a double: give the prototype more even inertia along what the inputs drive, "
    "leave out rows of W that nearly repeat others, or request inputs that are less far beyond their limits"
)
SINGULAR = "the prototype has no inertia against some motion that the inputs drive: give some pair of bodies more Mbar'"

SMALL = 1e-7
"""Weight of the size of inputs beside the motion in the first search for those within limits; see `_within`."""


ALIKE = 1e-9
"""A motor counts as redundant if other motors produce all of its motion but this squared part."""


@data
class Pair:
    """What a prototype has between two bodies; made by `pair`.

    body, seen_from: their names.   inertia, damping, stiffness: pseudo-matrices (4, 4) in the frame of `body`.

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
        return shown.words(self, f"{self.body!r} seen from {self.seen_from!r}")


def pair(body: str, *, seen_from: str = WORLD, inertia: Any = None, damping: Any = None, stiffness: Any = None) -> Pair:
    """Inertia, damping and stiffness of a prototype between two bodies. [konz25 (4.66)]

    Args:
        body: name of the body in whose frame the matrices are.
        seen_from: name of the body that its motion is relative to; default the world, for an absolute pair.
        inertia: Mbar' (4, 4) symmetric [kg, kg m, kg m^2], made by `pf.forces.pseudo_matrix`; none if None.
        damping: Dbar' (4, 4) symmetric [N s/m, N s, N m s]; none if None.
        stiffness: Kbar' (4, 4) symmetric [N/m, N, N m]; none if None.
    Returns:
        Pair. Its matrices need not be positive semidefinite by themselves: those of all pairs together must be, which the law
        checks.
    Raises ModelError: a matrix that is not symmetric or not (4, 4); one body twice, or a name that is not a text.

    Example:
        >>> import pfaffian as pf
        >>> from pfaffian import control
        >>> rail = pf.joint("rail", "prismatic", "world", "cart", axis=(1, 0, 0))
        >>> m = pf.mechanism("cart", [pf.body("cart", 2.0)], [rail], actuators=[pf.actuator("motor", "rail")])
        >>> weight = {"inertia": 1.0, "damping": 2.0, "stiffness": 1.0}
        >>> soft = control.pair("cart", **{n: pf.forces.pseudo_matrix(x) for n, x in weight.items()})
        >>> law = control.prototype_tracking([soft], control.set_point([1.0]))  # as a cart of 1 kg on a spring of 1 N/m
        >>> pf.run(m, duration=0.05, step=0.01, control=law, backend="numpy")["u"].values[0].round(6)
        array([2.])
    """
    what = f"pair {body!r} seen from {seen_from!r}"
    if body == seen_from or not all(isinstance(n, str) for n in (body, seen_from)):
        raise ModelError(f"{what}: two different bodies are needed")
    given = {"inertia": inertia, "damping": damping, "stiffness": stiffness}
    matrices = {n: ca.SX(4, 4) if x is None else symmetric_pseudo(x, f"{what}: {n}") for n, x in given.items()}
    return Pair(body, seen_from, **matrices)


def as_pairs(pairs: Any, what: str) -> tuple[Pair, ...]:
    """The pairs as they are. Raises ModelError: they are not a list of pairs, or an empty one."""
    if not several(pairs) or not pairs or not all(isinstance(p, Pair) for p in pairs):
        raise ModelError(f"{what}: a list of pair(...) is needed, got {brief(pairs)}")
    return tuple(pairs)


class Motion(NamedTuple):
    """The motion of a pair.   G: (4, 4) pose of the body seen from the other.   J: (6, nv) body Jacobian.   J_dot: (6, nv)."""

    G: ca.SX
    J: ca.SX
    J_dot: ca.SX


def motion_of(k: Kinematics, of: Pair) -> Motion:
    """The motion of a pair at k."""
    s = fresh(k)
    G, J = s.relative(of.body, of.seen_from)
    return Motion(*placed([se3.homogeneous(G.R, G.p), ca.densify(J), connection.rate(s, J)], s, k))


def assembled(k: Kinematics, pairs: Sequence[Pair], what: str) -> ca.SX:
    """(nv, nv) sum J^T Vee(X') J over all pairs, with X' their inertia, damping or stiffness. [konz25 (4.48)]"""
    total = ca.SX(k.mechanism.nv, k.mechanism.nv)
    for p in pairs:
        label = f"pair {p.body!r} seen from {p.seen_from!r}: {what}"
        J, X = motion_of(k, p).J, checked(getattr(p, what), label, [k.mechanism.p_symbols])
        total += J.T @ se3.Vee(X) @ J
    return ca.densify(total)


Transport = Callable[[Kinematics, Kinematics], Any]
"""(k, k_R) -> Q, the map that transports velocities of the reference to the machine's configuration, see
`prototype_tracking`."""


class ReferenceMotion(NamedTuple):
    """The reference as a motion of the mechanism, for `prototype_terms`.

    k: its Kinematics, at q_R and v_R.   v_dot: (nv, 1) its acceleration.

    Example:
        >>> import casadi as ca
        >>> import pfaffian as pf
        >>> from pfaffian import control
        >>> rail = pf.joint("rail", "prismatic", "world", "cart", axis=(1, 0, 0))
        >>> m = pf.mechanism("cart", [pf.body("cart", 2.0)], [rail], actuators=[pf.actuator("motor", "rail")])
        >>> there = pf.Kinematics(m, ca.SX([1.0]), ca.SX([0.5]), ca.SX(0.0))
        >>> goal = control.ReferenceMotion(there, ca.SX([0.0]))
        >>> print(goal.k.joint("rail"), goal.k.v)
        1 0.5
    """

    k: Kinematics
    v_dot: ca.SX


def reference_motion(terms: Terms, reference: Reference, w: ca.SX) -> ReferenceMotion:
    """q_R(t), its quaternions normalised, with v_R = K^+ q_R_dot, and v_R_dot.

    Raises ModelError: a reference of another size, or with a quaternion that is zero.
    """
    m, x = terms.mechanism, reference.at(terms.t, w)
    if reference.size != m.nq:
        raise ModelError(f"the reference has {reference.size} numbers, the configuration of {m.name!r} {m.nq}: all are needed")
    for name, turn in m.quaternions.items():
        x = of_unit_length(x, turn, f"the reference of joint {name!r}")
    s = fresh(terms.kinematics)
    rate = ca.SX.sym("rate", m.nq)
    left = pseudo_inverse(s)
    v = ca.densify(left @ rate)
    bend = ca.jtimes(ca.densify(s.kinematic_matrix @ s.v), s.q, s.q_dot)
    f = ca.Function("v_R", [s.q, rate, m.p_symbols], [v])
    v_R = ca.SX(f(x.value, x.rate, m.p_symbols))
    f = ca.Function("v_R_dot", [s.q, s.v, rate, m.p_symbols], [ca.densify(left @ (rate - bend))])
    v_R_dot = ca.SX(f(x.value, v_R, x.acceleration, m.p_symbols))
    return ReferenceMotion(Kinematics(m, ca.SX(x.value), v_R, terms.t), v_R_dot)


UNITS = {
    "prototype_energy": "J",
    "prototype_power": "W",
    "prototype_potential": "J",
    "matching_force": "per velocity",
    "transport_error": "per velocity",
    "limit_slack": "per limit",
    "limit_active": "1",
}
"""Units of the signals that a law which tracks a prototype records."""


class Prototype(NamedTuple):
    """Equations of a prototype.

    M: Mbar (nv, nv), b: bbar (nv, 1) of Mbar v_dot + bbar = 0.   energy: (1, 1) Wbar = Tbar + Vbar [J].   potential: Vbar [J].
    """

    M: ca.SX
    b: ca.SX
    energy: ca.SX
    potential: ca.SX


class _Error(NamedTuple):
    """Of one pair.   of: the pair.   here, there: motion and its reference.   back: (4, 4) G_E^-1.   carry: (6, 6) Ad of it."""

    of: Pair
    here: Motion
    there: Motion
    back: ca.SX
    carry: ca.SX

    @property
    def pull(self) -> ca.SX:
        """(6, 1) vee2((1 - G_E^-1) Kbar')."""
        return se3.vee2((ca.SX.eye(4) - self.back) @ self.of.stiffness)


def _errors(k: Kinematics, k_R: Kinematics, pairs: Sequence[Pair]) -> list[_Error]:
    found = []
    for of in pairs:
        here, there = motion_of(k, of), motion_of(k_R, of)
        R, p = here.G[:3, :3], here.G[:3, 3]
        back = se3.homogeneous(*se3.compose(R.T, -(R.T @ p), there.G[:3, :3], there.G[:3, 3]))
        found.append(_Error(of, here, there, back, se3.Ad(back[:3, :3], back[:3, 3])))
    return found


def _norm(E: ca.SX, weight: ca.SX) -> ca.SX:
    """tr(E weight E^T) / 2."""
    return ca.dot(E, E @ weight) / 2


def prototype_terms(
    k: Kinematics,
    goal: ReferenceMotion,
    pairs: Sequence[Pair],
    approach: str,
    transport: Transport | None,
) -> Prototype:
    """Mbar, bbar and the energies of a prototype, for laws and analyses of your own. [konz25 (4.66)]

        Mbar v_dot + bbar = 0,   Wbar = Tbar + Vbar

    Args:
        k: Kinematics of the machine.
        goal: ReferenceMotion, the reference at this instant.
        pairs: list of Pair.
        approach: "particle", "body" or "energy": what inertia and damping act on, see `prototype_tracking`.
        transport: of "energy", function of the kinematics k and k_R that returns Q (nv, nv); if None the Q nearest to 1 that
            carries the pairs' twists as their stiffness sees them.
    Returns:
        Prototype with expressions M (nv, nv), b (nv, 1), energy and potential [J].
    Raises ModelError: unknown bodies, a transport of another size.

    Example:
        >>> import casadi as ca
        >>> import pfaffian as pf
        >>> from pfaffian import control
        >>> rail = pf.joint("rail", "prismatic", "world", "cart", axis=(1, 0, 0))
        >>> m = pf.mechanism("cart", [pf.body("cart", 2.0)], [rail], actuators=[pf.actuator("motor", "rail")])
        >>> here, there = (pf.Kinematics(m, ca.SX([x]), ca.SX([0.0]), ca.SX(0.0)) for x in (0.0, 1.0))
        >>> spring = control.pair("cart", inertia=pf.forces.pseudo_matrix(1.0), stiffness=pf.forces.pseudo_matrix(3.0))
        >>> x = control.prototype_terms(here, control.ReferenceMotion(there, ca.SX([0.0])), [spring], "body", None)
        >>> float(x.M), float(x.b), float(x.energy)  # 1 kg, -3 N, 3 / 2 J
        (1.0, -3.0, 1.5)
    """
    errors = _errors(k, goal.k, pairs)
    v, v_R, n = k.v, goal.k.v, k.mechanism.nv
    M, b, kinetic, potential = ca.SX(n, n), ca.SX(n, 1), ca.SX(0), ca.SX(0)
    for e in errors:
        M += e.here.J.T @ se3.Vee(e.of.inertia) @ e.here.J
        b += e.here.J.T @ e.pull
        potential += _norm(ca.SX.eye(4) - e.back, e.of.stiffness)
    if approach == "energy":
        f, kinetic = _by_energy(k, goal, errors, M, transport)
        return Prototype(M, ca.densify(b + f), kinetic + potential, potential)
    for e in errors:
        here, there = e.here, e.there
        xi, xi_R = here.J @ v, there.J @ v_R
        a, a_R = here.J_dot @ v, there.J @ goal.v_dot + there.J_dot @ v_R
        if approach == "particle":
            X, X_R = se3.hat(xi), se3.hat(xi_R)
            slip = X - e.back @ X_R
            gone = se3.hat(a) + X @ X - e.back @ (se3.hat(a_R) + X_R @ X_R)
            b += here.J.T @ se3.vee2(slip @ e.of.damping + gone @ e.of.inertia)
            kinetic += _norm(slip, e.of.inertia)
        else:
            I, carried = se3.Vee(e.of.inertia), e.carry @ xi_R
            xi_E = xi - carried
            gone = I @ (a - e.carry @ a_R + se3.ad(xi_E) @ carried) - se3.ad_transpose(xi_E, I @ xi_E)
            b += here.J.T @ (se3.Vee(e.of.damping) @ xi_E + gone)
            kinetic += ca.dot(xi_E, I @ xi_E) / 2
    return Prototype(M, ca.densify(b), kinetic + potential, potential)


def _by_energy(
    k: Kinematics,
    goal: ReferenceMotion,
    errors: list[_Error],
    M: ca.SX,
    transport: Transport | None,
) -> tuple[ca.SX, ca.SX]:
    """cbar + fDbar, and Tbar. [konz25 (4.66g-i)]"""
    n = k.mechanism.nv
    Q, turning = _transported(k, goal, [e.of for e in errors], transport)
    v_E = k.v - Q @ goal.k.v
    C, D = ca.SX(n, n), ca.SX(n, n)
    for e in errors:
        J, I = e.here.J, se3.Vee(e.of.inertia)
        C += J.T @ (I @ e.here.J_dot + _skew(e.of.inertia, J @ k.v) @ J)
        D += J.T @ se3.Vee(e.of.damping) @ J
    return (C + D) @ v_E - M @ (Q @ goal.v_dot + turning), ca.dot(v_E, M @ v_E) / 2


def _skew(inertia: ca.SX, xi: ca.SX) -> ca.SX:
    """C (6, 6) = Gamma_pqr xi^r of a free body, skew, with C xi = -ad(xi)^T M xi. [konz25 (3.58)]"""
    m, h, w = inertia[3, 3], ca.densify(inertia[:3, 3]), so3.hat(xi[3:])
    s = so3.hat(h)
    turning = so3.hat(ca.densify(inertia[:3, :3]) @ xi[3:])
    return ca.SX(ca.blockcat([[m * w, -w @ s], [s @ w, turning]]))


def _transported(k: Kinematics, goal: ReferenceMotion, pairs: list[Pair], transport: Transport | None) -> tuple[ca.SX, ca.SX]:
    """Q(q, q_R) (nv, nv) and Q_dot v_R (nv, 1)."""
    s, s_R = fresh(k), fresh(k)
    Q = (
        _transport(s, s_R, pairs)
        if transport is None
        else ca.densify(matrix(answer(transport, "transport", s, s_R), "transport"))
    )
    n = k.mechanism.nv
    if Q.shape != (n, n):
        raise ModelError(f"transport must give Q ({n}, {n}), got {Q.shape}")
    v_R = ca.SX.sym("v_R", n)
    turning = ca.jtimes(Q @ v_R, s.q, s.q_dot) + ca.jtimes(Q @ v_R, s_R.q, s_R.q_dot)
    p = k.mechanism.p_symbols
    f = ca.Function("Q", [s.q, s.v, s_R.q, s_R.v, v_R, p], [Q, ca.densify(turning)])
    Q, turning = f.call([k.q, k.v, goal.k.q, goal.k.v, goal.k.v, p])
    return Q, turning


def transport_error(k: Kinematics, k_R: Kinematics, pairs: Sequence[Pair], Q: ca.SX) -> ca.SX:
    """How far a transport map misses the condition under which the prototype's energy falls. [konz25 (4.30), (4.46)]

        grad_R Vbar + Q^T grad Vbar

    Args:
        k: Kinematics of the machine.
        k_R: Kinematics of its reference.
        pairs: list of Pair, of which the stiffness counts.
        Q: (nv, nv) the map.
    Returns:
        (nv, 1) expression along the velocities of the reference, zero where the map satisfies the condition.

    Example:
        >>> import casadi as ca
        >>> import pfaffian as pf
        >>> from pfaffian import control
        >>> rail = pf.joint("rail", "prismatic", "world", "cart", axis=(1, 0, 0))
        >>> m = pf.mechanism("cart", [pf.body("cart", 2.0)], [rail], actuators=[pf.actuator("motor", "rail")])
        >>> here, there = (pf.Kinematics(m, ca.SX([x]), ca.SX([0.0]), ca.SX(0.0)) for x in (0.0, 1.0))
        >>> spring = control.pair("cart", stiffness=pf.forces.pseudo_matrix(3.0))
        >>> [float(control.transport_error(here, there, [spring], Q)) for Q in (1.0, 0.5)]  # -3 N (Q - 1)
        [0.0, 1.5]
    """
    off = ca.SX(k.mechanism.nv, 1)
    for e in _errors(k, k_R, pairs):
        off += (e.here.J @ Q - e.carry @ e.there.J).T @ e.pull
    return ca.densify(off)


def error_coordinates(chi: Callable[[Kinematics, Kinematics], Any]) -> Callable[[Kinematics, Kinematics], ca.SX]:
    """The transport map of error coordinates e = chi(k, k_R), for the approach "energy" of `prototype_tracking`.

        Q = -(d chi)^+ (d_R chi), the derivatives along v and v_R

    It serves every potential that is a function of e alone. [konz25 (A.8)]

    Args:
        chi: function of the kinematics of motion and reference that returns at least as many error coordinates as there are
            velocities, each dependent on the motion.
    Returns:
        Function (k, k_R) -> Q (nv, nv), a `transport`.
    Raises ModelError: chi is not a function.

    Example:
        >>> import casadi as ca
        >>> import pfaffian as pf
        >>> from pfaffian import control
        >>> rail = pf.joint("rail", "prismatic", "world", "cart", axis=(1, 0, 0))
        >>> m = pf.mechanism("cart", [pf.body("cart", 2.0)], [rail], actuators=[pf.actuator("motor", "rail")])
        >>> transport = control.error_coordinates(lambda k, k_R: k.q - 2 * k_R.q)
        >>> here, there = (pf.Kinematics(m, ca.SX.sym(x), ca.SX([0.0]), ca.SX(0.0)) for x in ("q", "q_R"))
        >>> print(transport(here, there))
        2
    """
    if not callable(chi):
        raise ModelError(f"error_coordinates: a function of two kinematics is needed, got {brief(chi)}")

    def transport(k: Kinematics, k_R: Kinematics) -> ca.SX:
        e = column(answer(chi, "error_coordinates", k, k_R), "error_coordinates")
        here, there = (ca.jacobian(e, x.q) @ x.kinematic_matrix for x in (k, k_R))
        return -solve_semidefinite(ca.densify(here.T @ here), ca.densify(here.T @ there), RANK_TOLERANCE).x

    return transport


def _transport(s: Kinematics, s_R: Kinematics, pairs: list[Pair]) -> ca.SX:
    """The Q nearest to 1 that carries the twists of the reference as the stiffness sees them, J Q = Ad(G_E^-1) J_R. (4.46)"""
    n = s.mechanism.nv
    S, rhs = ca.SX(n, n), ca.SX(n, n)
    for e in _errors(s, s_R, pairs):
        JK = e.here.J.T @ se3.Vee(e.of.stiffness)
        S += JK @ e.here.J
        rhs += JK @ (e.carry @ e.there.J - e.here.J)
    return ca.SX.eye(n) + solve_semidefinite(ca.densify(S), ca.densify(rhs), RANK_TOLERANCE).x


APPROACHES = ("particle", "body", "energy")
"""What inertia and damping of a prototype act on: the `approach` of `prototype_tracking`.

Example:
    >>> from pfaffian import control
    >>> control.APPROACHES
    ('particle', 'body', 'energy')
"""


@maker
def prototype_tracking(
    pairs: Sequence[Pair],
    reference: Reference,
    *,
    approach: str = "energy",
    transport: Transport | None = None,
    limits: Any = None,
) -> Control:
    """Move as nearly like a prototype as the inputs permit: |v_dot + Mbar^-1 bbar| least in the metric of Mbar. [konz25 (4.52)]

        v_dot = a + S u,    u = -(S^T Mbar S)^-1 S^T (Mbar a + bbar)

    With as many inputs as motions that is M v_dot + b = B u with the prototype's v_dot; with fewer, what remains is the
    matching force Mbar v_dot + bbar. Constraints are taken into account: a and S are those of the constrained mechanism. Where
    there are more motors than motions that they drive, as on closed loops, legs and multicopters with more than four
    propellers, u is the smallest of those with the same motion.

    Inertia and damping act on the difference between motion and reference: with "particle" of all points of a body relative to
    the other of the pair, with "body" of the twists, with "energy" of the velocities, v - Q v_R; at a constant reference the
    three are the same. With "energy" the energy Wbar falls wherever the transport error (4.30) is zero and no matching force
    is left.

    Args:
        pairs: list of `pair`, bodies with what the prototype has between them.
        reference: of the whole configuration, (nq,) numbers on phi = 0 and on the constraints; quaternions of any length.
        approach: "particle", "body" or "energy"; default "energy".
        transport: of "energy", function of the kinematics k and k_R of motion and reference that returns Q (nv, nv), with Q = 1
            where the two are equal, such as `error_coordinates` makes; if None the Q nearest to 1 that carries the pairs'
            twists as their stiffness sees them.
        limits: W u <= l of the actuators as the pair (W, l), W (rows, motors) and l (rows,) numbers or Parameters, or
            "actuators" for their own limits; None for none. Within them u is the nearest to the one without limits, in the
            metric of S^T Mbar S, so that the motion is as near as the limits permit. [konz25 (4.63)-(4.64)]
    Returns:
        Control that records prototype_energy Wbar [J], its rate prototype_power [W], prototype_potential Vbar [J] and
        matching_force; of "energy" transport_error along v; with limits limit_slack l - W u and limit_active, 1 for rows that
        restrict u.
    Stops a run: the prototype has no inertia against some motion that the inputs drive; no u is within the limits, or the
    limits could not be met to the digits of a double.
    Raises ModelError: no pairs, a reference that is not a Reference, an unknown approach, a transport that is not a function or
    not for "energy". At the run: unknown bodies, a prototype that is negative along some motion, a reference of another size,
    no actuators, limits of another form.

    Example:
        >>> import pfaffian as pf
        >>> from pfaffian import control
        >>> rail = pf.joint("rail", "prismatic", "world", "cart", axis=(1, 0, 0))
        >>> m = pf.mechanism("cart", [pf.body("cart", 2.0)], [rail], actuators=[pf.actuator("motor", "rail")])
        >>> weight = {"inertia": 1.0, "damping": 2.0, "stiffness": 1.0}
        >>> soft = control.pair("cart", **{n: pf.forces.pseudo_matrix(x) for n, x in weight.items()})
        >>> law = control.prototype_tracking([soft], control.set_point([1.0]))
        >>> run = pf.run(m, duration=0.05, step=0.01, control=law, backend="numpy")
        >>> run["u"].values[0].round(6), round(float(run["prototype_energy"].values[0]), 6)  # 2 kg * 1 m/s^2, and 1/2 J
        (array([2.]), 0.5)
    """
    as_pairs(pairs, "prototype_tracking")
    as_reference(reference)
    if approach not in APPROACHES:
        raise ModelError(f"approach {brief(approach)} is unknown; one of {', '.join(APPROACHES)}")
    if transport is not None and (approach != "energy" or not callable(transport)):
        raise ModelError("transport: a function of two kinematics, for the approach 'energy' only")

    def law(terms: Terms, z: ca.SX, w: ca.SX, reaction: ca.SX) -> Command:
        m, k = terms.mechanism, terms.kinematics
        if not m.actuators:
            raise ModelError(f"prototype_tracking: {m.name!r} has no actuators; see actuate_all")
        check_together(tuple(pairs), m, m.p_defaults[None])
        goal = reference_motion(terms, reference, w)
        P = prototype_terms(k, goal, pairs, approach, transport)
        a, S = accelerations(terms)
        # All rows count here, also those of constraints that are not active yet.
        spare = len(m.actuators) > m.nv - terms.A.shape[0] or motors_to_spare(m)
        u, short = _inputs(S, P.M, P.M @ a + P.b, spare)
        faults, more_signals = [short], dict[str, ca.SX]()
        if approach == "energy":
            Q, _ = _transported(k, goal, list(pairs), transport)
            more_signals = {"transport_error": transport_error(k, goal.k, pairs, Q)}
        if limits is not None:
            W, l = limit_rows(terms.mechanism, limits)
            within = _within(so3.symmetric(S.T @ P.M @ S), u, W, l, spare)
            u, more_signals = within.u, more_signals | {"limit_slack": l - W @ within.u, "limit_active": within.active}
            faults += [within.status == INFEASIBLE, (within.status != SOLVED) * (within.status != INFEASIBLE)]
        v_dot = a + S @ u
        signals = {
            "prototype_energy": P.energy,
            "prototype_power": _power(k, goal, pairs, approach, transport, v_dot),
            "prototype_potential": P.potential,
            "matching_force": P.M @ v_dot + P.b,
        }
        return Command(with_no_wrench(terms, u), ca.SX(0, 1), ca.vertcat(*faults), signals | more_signals)

    within = () if limits is None else (Fault(EXCLUDED, _contradicting(limits)), Fault(UNSOLVED))
    known = (Fault(SINGULAR, _weightless(pairs)), *within)
    check = partial(check_together, tuple(pairs))
    return Control(law, (), reference.w_names, known, units=UNITS, check=check)


def _inputs(S: ca.SX, M: ca.SX, force: ca.SX, spare: bool) -> tuple[ca.SX, ca.SX]:
    """u of least |v_dot + Mbar^-1 bbar| in the metric of M, with force = Mbar a + bbar; and whether M lacks rank along S.

    Along orthonormal accelerations, the rows Q = D S^T, the rank is that of M and not of S, whose columns may differ by 1e4.
    spare: there may be more motors than motions that they drive; then u is the smallest of those with the same motion.
    """
    driven = orthogonalise(S.T, ca.SX.eye(S.shape[1]), RANK_TOLERANCE, passes=1)
    solved = solve_semidefinite(driven.Q @ M @ driven.Q.T, -driven.Q @ force, RANK_TOLERANCE)
    short = ca.sum1(solved.kept) < driven.rank
    if not spare:
        return driven.D.T @ solved.x, short
    rows = orthogonalise(driven.Q @ S, ca.SX(S.shape[1], 0), RANK_TOLERANCE, passes=1)
    return smallest(rows, solved.x), short


@remembered(64)
def motors_to_spare(m: Mechanism) -> bool:
    """Whether some motors move a machine as others do, at one random configuration and so almost anywhere.

    S then has fewer independent columns than motors, numerically; more motors than velocities are neither needed nor enough.
    """
    T, random = symbols(m), np.random.default_rng(43)
    f = ca.Function("driven", [T.q, T.v, T.t, m.p_symbols], [ca.densify(x) for x in (T.M, T.A, motor_matrix(T))])
    at = random_configuration(m, random), random.normal(size=m.nv), 0.0, m.p_defaults
    M, A, B = (np.array(x) for x in f(*at))
    rank = np.linalg.matrix_rank(A) if A.size else 0  # NumPy 2.0 has no rank of an empty matrix
    N = null(A) if rank < m.nv else np.zeros((m.nv, 0))
    driven = B.T @ N @ np.linalg.pinv(N.T @ M @ N, hermitian=True) @ N.T @ B
    size = np.sqrt(np.outer(np.diag(driven), np.diag(driven)))
    alike = np.divide(driven, size, out=np.zeros_like(driven), where=size > 0)
    return bool(np.linalg.matrix_rank(alike, tol=ALIKE, hermitian=True) < len(alike))


def _within(H: ca.SX, u0: ca.SX, W: ca.SX, l: ca.SX, spare: bool) -> Nearest:
    """The u nearest to u0 in the metric of H with W u <= l; with spare motors the smallest of those with the same motion.

    The weight on small inputs disturbs the motion by as much. A second search therefore weighs only the distance from the
    result of
    the first, which is almost the smallest: the disturbance becomes the square. [Rockafellar 1976]
    """
    if not spare:
        return nearest(H, u0, W, l)
    small = SMALL * ca.trace(H)
    G = H + small * ca.SX.eye(H.shape[0])
    first = nearest(G, u0, W, l)
    second = nearest(G, u0 + small * solve_symmetric(G, first.u - u0), W, l)
    # Its step is so small that much of it is rounding, so the first search determines the status.
    ended = ca.logic_or(second.status == SOLVED, second.status == INACCURATE)
    return second._replace(status=ca.if_else(ended, first.status, second.status))


def check_together(pairs: tuple[Pair, ...], m: Mechanism, p: np.ndarray) -> None:
    """Raise ModelError where inertia, damping or stiffness of all pairs together is negative along some motion.

    p: (runs, np) parameters. Checked at a few configurations.
    """
    for words, values in at_values(m, p):
        for what in MATRICES:
            for q in _places(m):
                X = np.array(_assembling(m, pairs, what)(q, values))
                # Each motion in its own unit, lest light ones be rounding beside heavy ones.
                unit = np.sqrt(np.maximum(np.abs(np.diag(X)), 1e-5 * np.abs(X).max()))
                unit = np.where(unit > 0, unit, 1.0)
                scaled = X / np.outer(unit, unit)
                if not np.linalg.eigvalsh(scaled)[0] >= -1e-9:
                    motions = lowest(scaled) / unit[:, None]
                    motion = motions[:, 0]
                    raise ModelError(
                        f"{words}the prototype's {what} is negative, {motion @ X @ motion / (motion @ motion):.4g}, along a "
                        f"motion of {mainly(share(motions), m.v_names)}; give it more between some pair of bodies"
                    )


MATRICES = ("inertia", "damping", "stiffness")
"""The matrices of a pair; the sum over all pairs must be positive semidefinite for each."""

PLACES = 8
"""Random configurations at which that is checked, beside the neutral one."""


@remembered(64)
def _places(m: Mechanism) -> list[np.ndarray]:
    random = np.random.default_rng(3)
    return [m.neutral(), *(random_configuration(m, random) for _ in range(PLACES))]


@remembered(64)
def _assembling(m: Mechanism, pairs: tuple[Pair, ...], what: str) -> ca.Function:
    T = symbols(m)
    return ca.Function("X", [T.q, m.p_symbols], [assembled(T.kinematics, pairs, what)])


def limit_rows(m: Mechanism, limits: Any) -> tuple[ca.SX, ca.SX]:
    """W (rows, motors) and l (rows, 1) of W u <= l. Raises ModelError: limits of another form."""
    n = len(m.actuators)
    if isinstance(limits, str) and limits == "actuators":
        low, high = m.u_limits[:n].T
        rows = [(i, -1.0, -x) for i, x in enumerate(low) if np.isfinite(x)]
        rows += [(i, 1.0, x) for i, x in enumerate(high) if np.isfinite(x)]
        if not rows:
            raise ModelError(f"limits: no actuator of {m.name!r} has any; give them limits=(low, high), or leave it out")
        W = ca.SX(len(rows), n)
        for r, (i, sign, _) in enumerate(rows):
            W[r, i] = sign
        return W, ca.SX(ca.DM([x for *_, x in rows]))
    if not isinstance(limits, tuple) or len(limits) != 2:
        raise ModelError(f'limits: a pair (W, l) with W u <= l is needed, or "actuators", got {brief(limits)}')
    W, l = matrix(limits[0], "limits: W"), column(limits[1], "limits: l")
    if W.shape != (l.numel(), n) or not l.numel():
        raise ModelError(f"limits: W must be ({l.numel()}, {n}) for {l.numel()} limits on {n} actuators, got {W.shape}")
    return W, l


def accelerations(terms: Terms) -> tuple[ca.SX, ca.SX]:
    """a (nv, 1) and S (nv, motors) of v_dot = a + S u on the constraints."""
    m, u = terms.mechanism, ca.SX.sym("u", terms.mechanism.nu)
    v_dot = gauss.motion(Terms(m, terms.q, terms.v, u, terms.t)).v_dot
    S = ca.jacobian(v_dot, u)
    return ca.substitute(v_dot, u, ca.SX.zeros(m.nu, 1)), ca.densify(S[:, : len(m.actuators)])


def _power(
    k: Kinematics,
    goal: ReferenceMotion,
    pairs: Sequence[Pair],
    approach: str,
    transport: Transport | None,
    v_dot: ca.SX,
) -> ca.SX:
    """Rate of Wbar along motion and reference."""
    s, s_R, v_R_dot = fresh(k), fresh(k), ca.SX.sym("v_R_dot", k.mechanism.nv)
    W = prototype_terms(s, ReferenceMotion(s_R, v_R_dot), pairs, approach, transport).energy
    bend = ca.SX.sym("v_dot", k.mechanism.nv)
    rate = ca.jtimes(W, s.q, s.q_dot) + ca.jtimes(W, s_R.q, s_R.q_dot) + ca.jtimes(W, s.v, bend) + ca.jtimes(W, s_R.v, v_R_dot)
    p = k.mechanism.p_symbols
    f = ca.Function("power", [s.q, s.v, s_R.q, s_R.v, v_R_dot, bend, p], [rate])
    return ca.SX(f(k.q, k.v, goal.k.q, goal.k.v, goal.v_dot, v_dot, p))


def _contradicting(limits: Any) -> Reason:
    """Names the rows of W u <= l that no u satisfies together."""

    def rows(terms: Terms) -> ca.SX:
        W, l = limit_rows(terms.mechanism, limits)
        n = W.shape[1]
        return ca.horzcat(W, nearest(ca.SX.eye(n), ca.SX.zeros(n, 1), W, l).active)

    def words(m: Mechanism, x: Mapping[str, np.ndarray]) -> str:
        active = [i for i, row in enumerate(x["rows"]) if row[-1]]
        motors = [n for i, n in enumerate(m.motor_names) if np.any(x["rows"][active, i])]
        return f"rows {', '.join(map(str, active))} contradict each other, of {', '.join(motors) or 'no actuator'}"

    return Reason({"rows": rows}, words)


def _weightless(pairs: Sequence[Pair]) -> Reason:
    """Names the motion driven by the inputs against which the prototype has no inertia, or the least."""

    def M(terms: Terms) -> ca.SX:
        parts = [(motion_of(terms.kinematics, p).J, se3.Vee(p.inertia)) for p in pairs]
        return sum((J.T @ I @ J for J, I in parts), ca.SX(terms.mechanism.nv, terms.mechanism.nv))

    def words(m: Mechanism, x: Mapping[str, np.ndarray]) -> str:
        driven = np.linalg.qr(x["S"])[0]
        lost = driven @ null(driven.T @ x["Mbar"] @ driven)
        found = mainly(share(lost), m.v_names, m.nv)
        given = ", ".join(f"{p.body!r} seen from {p.seen_from!r}" for p in pairs if not p.inertia.is_zero())
        return f"the prototype has the least inertia against a motion of {found}; it has some for {given or 'no pair'}"

    return Reason({"Mbar": M, "S": lambda T: accelerations(T)[1]}, words)
