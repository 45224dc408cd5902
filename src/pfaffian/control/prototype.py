"""The equations of a prototype: a machine of chosen dynamics that a law makes the real machine imitate. [konz25 ch. 4]

The prototype has the kinematics of the machine, and chosen inertia, damping and stiffness between any pairs of bodies: 4 x 4
pseudo-matrices Mbar', Dbar', Kbar', or symmetric 6 x 6 matrices (A.14). Its motion towards a reference q_R(t) is
Mbar v_dot + bbar = 0 with

    Mbar = sum J^T Vee(Mbar') J,    bbar = cbar + fDbar + fKbar,    fKbar = sum J^T vee2((1 - G_E^-1) Kbar'),    (4.66)

where G_E = G_R^-1 G is the error of the pose G of each pair and J its body Jacobian. Inertia and damping act on the difference
between motion and reference, which is measured by one of three approaches:

particle: the velocities of all points of the body, relative to the body `seen_from` (4.66c,d). Inertia and damping must be
    those of points, that is pseudo-matrices.
body: the twists, xi_E = J v - Ad(G_E^-1) J_R v_R (4.66e,f).
energy: the velocities, v_E = v - Q v_R with a transport map Q(q, q_R) (4.66g-i).

At a constant reference the energy Wbar of each approach falls by what the dampers dissipate, if no matching force is left.
Along a moving reference this still holds for `energy` where the transport error (4.30) is zero, and for `body` where a single
velocity v_E gives xi_E = J v_E for all pairs. This is the case for a single pair whose body can move in every direction, but
not for several pairs of an arm, whose energy may rise. With `particle` the energy may rise along any moving reference. A run
records the rate of the energy as `prototype_power` and the part that the transport map adds as `transport_power`, and warns if
this part exceeds rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from pfaffian.control.law import at_values
from pfaffian.control.prototype_pair import Pair, PairMotion, assembled, motion_of
from pfaffian.control.reason import lowest, mainly, participation
from pfaffian.control.reference import NO_ENTRIES, Reference, of_configuration
from pfaffian.dynamics.motion import RANK_TOLERANCE
from pfaffian.errors import ModelError, brief, is_one_of
from pfaffian.maths import se3, so3
from pfaffian.maths.linear import solve_semidefinite
from pfaffian.maths.margins import ZERO, Decision
from pfaffian.model.mechanism import Mechanism
from pfaffian.model.number import column, matrix
from pfaffian.model.user_functions import call_for_value
from pfaffian.parts.elastic import spatial
from pfaffian.terms.connection import pseudo_inverse
from pfaffian.terms.generic_states import generic_states, speed_units, tell
from pfaffian.terms.kinematics import Kinematics
from pfaffian.terms.new_symbols import at_new_symbols
from pfaffian.terms.terms import Terms, symbols
from pfaffian.terms.traced_now import remembered

Transport = Callable[[Kinematics, Kinematics], Any]
"""Function of the kinematics k and k_R that returns Q, the map of velocities at the reference to velocities at the machine's
configuration; see `prototype_tracking`."""


class ReferenceMotion(NamedTuple):
    """A reference as a motion of the mechanism at an instant, for `prototype_terms`.

    k: Kinematics at q_R and v_R.   v_dot: (nv, 1) acceleration.   left: (n, 1) for each joint with a quaternion and each
    coordinates with a condition phi, whether the reference is not a configuration there; empty by default.

    Example:
        >>> import casadi as ca
        >>> import pfaffian as pf
        >>> from pfaffian import control
        >>> m = pf.mechanism("cart", [pf.body("cart", 2.0)], [pf.joint("rail", "prismatic", "world", "cart", axis=(1, 0, 0))])
        >>> there = pf.Kinematics(m, ca.SX([1.0]), ca.SX([0.5]), ca.SX(0.0))
        >>> goal = control.ReferenceMotion(there, ca.SX([0.0]))
        >>> print(goal.k.joint("rail"), goal.k.v)
        1 0.5
    """

    k: Kinematics
    v_dot: ca.SX
    left: ca.SX = NO_ENTRIES


def reference_motion(terms: Terms, reference: Reference, w: ca.SX) -> ReferenceMotion:
    """The motion of a reference: q_R(t) with normalised quaternions, v_R = K^+ q_R_dot, v_R_dot, and where q_R is invalid.

    w: inputs of the run that the reference reads. Raises ModelError: a reference of another size, or one that is never a
    configuration.
    """
    m = terms.mechanism
    x, off = of_configuration(m, reference, terms.t, w)
    s = at_new_symbols(terms.kinematics)
    rate = ca.SX.sym("rate", m.nq)
    inverse = pseudo_inverse(s)
    v = ca.densify(inverse @ rate)
    K_dot_v = ca.jtimes(ca.densify(s.kinematic_matrix @ s.v), s.q, s.q_dot)
    f = ca.Function("v_R", [s.q, rate, m.p_symbols], [v])
    v_R = ca.SX(f(x.value, x.rate, m.p_symbols))
    f = ca.Function("v_R_dot", [s.q, s.v, rate, m.p_symbols], [ca.densify(inverse @ (rate - K_dot_v))])
    v_R_dot = ca.SX(f(x.value, v_R, x.acceleration, m.p_symbols))
    return ReferenceMotion(Kinematics(m, ca.SX(x.value), v_R, terms.t), v_R_dot, off)


class Prototype(NamedTuple):
    """The equations Mbar v_dot + bbar = 0 of a prototype, and its energies.

    M: (nv, nv) Mbar.   b: (nv, 1) bbar.   energy: (1, 1) Wbar = Tbar + Vbar [J].   potential: (1, 1) Vbar [J].
    """

    M: ca.SX
    b: ca.SX
    energy: ca.SX
    potential: ca.SX


class _Error(NamedTuple):
    """The error of one pair.

    pair: the pair.   motion, reference: its motion at the machine and at the reference.   inverse: (4, 4) G_E^-1.
    adjoint: (6, 6) Ad(G_E^-1).
    """

    pair: Pair
    motion: PairMotion
    reference: PairMotion
    inverse: ca.SX
    adjoint: ca.SX

    @property
    def force(self) -> ca.SX:
        """(6, 1) fKbar of the pair along twists: vee2((1 - G_E^-1) Kbar'), or <G_E - 1, G_E hat(.)> for a stiffness (6, 6)."""
        if self.pair.stiffness.shape == (4, 4):
            return se3.vee2((ca.SX.eye(4) - self.inverse) @ self.pair.stiffness)
        R, _ = self.pose
        return se3.pull(self.pair.stiffness, self.deviation, R)

    @property
    def potential(self) -> ca.SX:
        """(1, 1) potential <G_E - 1, G_E - 1> / 2 [J]."""
        if self.pair.stiffness.shape == (4, 4):
            return _norm(ca.SX.eye(4) - self.inverse, self.pair.stiffness)
        return se3.inner(self.pair.stiffness, self.deviation, self.deviation) / 2

    @property
    def pose(self) -> tuple[ca.SX, ca.SX]:
        """Rotation and position of G_E."""
        R = self.inverse[:3, :3].T
        return R, -(R @ self.inverse[:3, 3])

    @property
    def deviation(self) -> tuple[ca.SX, ca.SX]:
        """The rotational and the translational part of G_E - 1."""
        R, p = self.pose
        return R - ca.SX.eye(3), p


def _errors(k: Kinematics, k_R: Kinematics, pairs: Sequence[Pair]) -> list[_Error]:
    """The error of each pair between the machine k and its reference k_R."""
    errors = []
    for p in pairs:
        motion, reference = motion_of(k, p), motion_of(k_R, p)
        R, r = motion.G[:3, :3], motion.G[:3, 3]
        inverse = se3.homogeneous(*se3.compose(R.T, -(R.T @ r), reference.G[:3, :3], reference.G[:3, 3]))
        errors.append(_Error(p, motion, reference, inverse, se3.Ad(inverse[:3, :3], inverse[:3, 3])))
    return errors


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
    """The matrix Mbar, vector bbar and energies of a prototype, for laws and analyses of your own. [konz25 (4.66)]

        Mbar v_dot + bbar = 0,   Wbar = Tbar + Vbar

    Args:
        k: Kinematics of the machine.
        goal: ReferenceMotion, the reference at this instant.
        pairs: list of Pair.
        approach: "particle", "body" or "energy": the error of motion on which inertia and damping act, see
            `prototype_tracking`.
        transport: for "energy", function of the kinematics k and k_R that returns Q (nv, nv); if None, the Q nearest to 1 that
            maps the twists of the pairs, weighted by their stiffness.
    Returns:
        Prototype with expressions M (nv, nv), b (nv, 1), energy and potential [J].
    Raises ModelError: unknown bodies, a transport of another size, an approach that does not suit the pairs' matrices.

    Example:
        >>> import casadi as ca
        >>> import pfaffian as pf
        >>> from pfaffian import control
        >>> m = pf.mechanism("cart", [pf.body("cart", 2.0)], [pf.joint("rail", "prismatic", "world", "cart", axis=(1, 0, 0))])
        >>> here, there = (pf.Kinematics(m, ca.SX([x]), ca.SX([0.0]), ca.SX(0.0)) for x in (0.0, 1.0))
        >>> spring = control.pair("cart", inertia=pf.forces.pseudo_matrix(1.0), stiffness=pf.forces.pseudo_matrix(3.0))
        >>> x = control.prototype_terms(here, control.ReferenceMotion(there, ca.SX([0.0])), [spring], "body", None)
        >>> float(x.M), float(x.b), float(x.energy)  # 1 kg, -3 N, 3 / 2 J
        (1.0, -3.0, 1.5)
    """
    check_approach(approach, pairs)
    errors = _errors(k, goal.k, pairs)
    v, v_R, n = k.v, goal.k.v, k.mechanism.nv
    M, b, kinetic, potential = ca.SX(n, n), ca.SX(n, 1), ca.SX(0), ca.SX(0)
    for e in errors:
        M += e.motion.J.T @ spatial(e.pair.inertia) @ e.motion.J
        b += e.motion.J.T @ e.force
        potential += e.potential
    if approach == "energy":
        f, kinetic = _by_energy(k, goal, errors, M, transport)
        return Prototype(M, ca.densify(b + f), kinetic + potential, potential)
    for e in errors:
        motion, reference = e.motion, e.reference
        xi, xi_R = motion.J @ v, reference.J @ v_R
        a, a_R = motion.J_dot @ v, reference.J @ goal.v_dot + reference.J_dot @ v_R
        if approach == "particle":
            X, X_R = se3.hat(xi), se3.hat(xi_R)
            slip = X - e.inverse @ X_R
            slip_rate = se3.hat(a) + X @ X - e.inverse @ (se3.hat(a_R) + X_R @ X_R)
            b += motion.J.T @ se3.vee2(slip @ e.pair.damping + slip_rate @ e.pair.inertia)
            kinetic += _norm(slip, e.pair.inertia)
        else:
            I, carried = spatial(e.pair.inertia), e.adjoint @ xi_R
            xi_E = xi - carried
            inertial = I @ (a - e.adjoint @ a_R + se3.ad(xi_E) @ carried) - se3.ad_transpose(xi_E, I @ xi_E)
            b += motion.J.T @ (spatial(e.pair.damping) @ xi_E + inertial)
            kinetic += ca.dot(xi_E, I @ xi_E) / 2
    return Prototype(M, ca.densify(b), kinetic + potential, potential)


def _by_energy(
    k: Kinematics,
    goal: ReferenceMotion,
    errors: list[_Error],
    M: ca.SX,
    transport: Transport | None,
) -> tuple[ca.SX, ca.SX]:
    """The forces cbar + fDbar and the kinetic energy Tbar of the approach "energy". [konz25 (4.66g-i)]"""
    n = k.mechanism.nv
    Q, Q_dot_v = transported(k, goal, [e.pair for e in errors], transport)
    v_E = k.v - Q @ goal.k.v
    C, D = ca.SX(n, n), ca.SX(n, n)
    for e in errors:
        J, I = e.motion.J, spatial(e.pair.inertia)
        C += J.T @ (I @ e.motion.J_dot + _skew(e.pair.inertia, J @ k.v) @ J)
        D += J.T @ spatial(e.pair.damping) @ J
    return (C + D) @ v_E - M @ (Q @ goal.v_dot + Q_dot_v), ca.dot(v_E, M @ v_E) / 2


def _skew(inertia: ca.SX, xi: ca.SX) -> ca.SX:
    """C (6, 6) = Gamma_pqr xi^r, Coriolis matrix of a free body, skew with C xi = -ad(xi)^T M xi. [konz25 (3.57)-(3.58)]"""
    if inertia.shape == (6, 6):
        f, n = ca.vertsplit(inertia @ xi, 3)
        turned = inertia @ se3.ad(xi)
        carried = ca.blockcat([[ca.SX(3, 3), -so3.hat(f)], [-so3.hat(f), -so3.hat(n)]])
        return ca.SX(carried + turned - turned.T) / 2
    m, h, w = inertia[3, 3], ca.densify(inertia[:3, 3]), so3.hat(xi[3:])
    s = so3.hat(h)
    turning = so3.hat(ca.densify(inertia[:3, :3]) @ xi[3:])
    return ca.SX(ca.blockcat([[m * w, -w @ s], [s @ w, turning]]))


def transported(k: Kinematics, goal: ReferenceMotion, pairs: list[Pair], transport: Transport | None) -> tuple[ca.SX, ca.SX]:
    """The transport map Q(q, q_R) (nv, nv), and Q_dot v_R (nv, 1). Raises ModelError: a transport of another size."""
    s, s_R = at_new_symbols(k), at_new_symbols(k)
    Q = (
        _transport(s, s_R, pairs)
        if transport is None
        else ca.densify(matrix(call_for_value(transport, "transport", s, s_R), "transport"))
    )
    n = k.mechanism.nv
    if Q.shape != (n, n):
        raise ModelError(f"transport must give Q ({n}, {n}), got {Q.shape}")
    v_R = ca.SX.sym("v_R", n)
    Q_dot_v = ca.jtimes(Q @ v_R, s.q, s.q_dot) + ca.jtimes(Q @ v_R, s_R.q, s_R.q_dot)
    p = k.mechanism.p_symbols
    f = ca.Function("Q", [s.q, s.v, s_R.q, s_R.v, v_R, p], [Q, ca.densify(Q_dot_v)])
    Q, Q_dot_v = f.call([k.q, k.v, goal.k.q, goal.k.v, goal.k.v, p])
    return Q, Q_dot_v


def transport_error(k: Kinematics, k_R: Kinematics, pairs: Sequence[Pair], Q: Any) -> ca.SX:
    """The residual of a transport map in the condition under which the prototype's energy falls. [konz25 (4.30), (4.46)]

        grad_R Vbar + Q^T grad Vbar

    Args:
        k: Kinematics of the machine.
        k_R: Kinematics of its reference.
        pairs: list of Pair, of which only the stiffness counts.
        Q: (nv, nv) the transport map.
    Returns:
        (nv, 1) expression along the velocities of the reference, zero where the map satisfies the condition.
    Raises ModelError: Q has another shape, or contains what is neither a number nor an expression.

    Example:
        >>> import casadi as ca
        >>> import pfaffian as pf
        >>> from pfaffian import control
        >>> m = pf.mechanism("cart", [pf.body("cart", 2.0)], [pf.joint("rail", "prismatic", "world", "cart", axis=(1, 0, 0))])
        >>> def at(x): return pf.Kinematics(m, ca.SX([x]), ca.SX([0.0]), ca.SX(0.0))
        >>> spring = control.pair("cart", stiffness=pf.forces.pseudo_matrix(3.0))
        >>> [float(control.transport_error(at(0.0), at(1.0), [spring], Q)) for Q in (1.0, 0.5)]  # -3 N (Q - 1)
        [0.0, 1.5]
    """
    transport, nv = matrix(Q, "transport_error: Q"), k.mechanism.nv
    if transport.shape != (nv, nv):
        raise ModelError(f"transport_error: Q must be {(nv, nv)}, got {transport.shape}")
    residual = ca.SX(nv, 1)
    for e in _errors(k, k_R, pairs):
        residual += (e.motion.J @ transport - e.adjoint @ e.reference.J).T @ e.force
    return ca.densify(residual)


def error_coordinates(chi: Callable[[Kinematics, Kinematics], Any]) -> Callable[[Kinematics, Kinematics], ca.SX]:
    """The transport map of error coordinates e = chi(k, k_R), for the approach "energy" of `prototype_tracking`.

        Q = -(d chi)^+ (d_R chi), the derivatives along v and v_R

    It can be used with every potential that is a function of e alone. [konz25 (A.8)]

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
        >>> m = pf.mechanism("cart", [pf.body("cart", 2.0)], [pf.joint("rail", "prismatic", "world", "cart", axis=(1, 0, 0))])
        >>> transport = control.error_coordinates(lambda k, k_R: k.q - 2 * k_R.q)
        >>> here, there = (pf.Kinematics(m, ca.SX.sym(x), ca.SX([0.0]), ca.SX(0.0)) for x in ("q", "q_R"))
        >>> print(transport(here, there))
        2
    """
    if not callable(chi):
        raise ModelError(f"error_coordinates: a function of two kinematics is needed, got {brief(chi)}")

    def transport(k: Kinematics, k_R: Kinematics) -> ca.SX:
        e = column(call_for_value(chi, "error_coordinates", k, k_R), "error_coordinates")
        here, there = (ca.jacobian(e, x.q) @ x.kinematic_matrix for x in (k, k_R))
        return -solve_semidefinite(ca.densify(here.T @ here), ca.densify(here.T @ there), RANK_TOLERANCE).x

    return transport


def _transport(s: Kinematics, s_R: Kinematics, pairs: list[Pair]) -> ca.SX:
    """The Q nearest to 1 that solves J Q = Ad(G_E^-1) J_R in the least squares weighted by stiffness. [konz25 (4.46)]"""
    n = s.mechanism.nv
    S, rhs = ca.SX(n, n), ca.SX(n, n)
    for e in _errors(s, s_R, pairs):
        JK = e.motion.J.T @ spatial(e.pair.stiffness)
        S += JK @ e.motion.J
        rhs += JK @ (e.adjoint @ e.reference.J - e.motion.J)
    return ca.SX.eye(n) + solve_semidefinite(ca.densify(S), ca.densify(rhs), RANK_TOLERANCE).x


APPROACHES = ("particle", "body", "energy")
"""The approaches of `prototype_tracking`: the errors of motion on which inertia and damping of a prototype can act.

Example:
    >>> from pfaffian import control
    >>> control.APPROACHES
    ('particle', 'body', 'energy')
"""


def check_approach(approach: str, pairs: Sequence[Pair]) -> None:
    """Raise ModelError: an unknown approach, or "particle" with an inertia or damping (6, 6), which points cannot have."""
    if not is_one_of(approach, APPROACHES):
        raise ModelError(f"approach {brief(approach)} is unknown; one of {', '.join(APPROACHES)}")
    for p in pairs if approach == "particle" else ():
        for what in ("inertia", "damping"):
            if getattr(p, what).shape == (6, 6):
                raise ModelError(
                    f"pair {p.body!r} seen from {p.seen_from!r}: {what}: points have no matrix (6, 6) of 21 numbers; with the "
                    "approach 'particle' give a pseudo-matrix (4, 4), or take 'body' or 'energy'"
                )


def check_together(pairs: tuple[Pair, ...], m: Mechanism, p: np.ndarray) -> None:
    """Raise ModelError if the inertia, damping or stiffness of all pairs together is negative along some motion.

    p: (runs, np) parameters. The check is made at a few configurations.
    """
    for words, values in at_values(m, p):
        for what in MATRICES:
            for q in [m.neutral(), *[x.q for x in generic_states(m, count=PLACES)]]:
                X, speed = np.array(_assembling(m, pairs, what)(q, values)), speed_units(m, values)
                # Scale each motion by its own size, so that small entries are not lost in the rounding of large ones.
                size = np.abs(np.diag(X)) * speed**2
                unit = np.sqrt(np.maximum(size, FAINT * np.abs(X * np.outer(speed, speed)).max())) / speed
                unit = np.where(unit > 0, unit, 1.0)
                scaled = X / np.outer(unit, unit)
                below = -np.linalg.eigvalsh(scaled)[0]
                if not tell(m, f"whether the prototype's {what} is nowhere negative", Decision(below <= ZERO, max(below, 0.0))):
                    motions = lowest(scaled) / unit[:, None]
                    motion = motions[:, 0]
                    raise ModelError(
                        f"{words}the prototype's {what} is negative, {motion @ X @ motion / (motion @ motion):.4g}, along a "
                        f"motion of {mainly(participation(motions), m.v_names)}; give it more between some pair of bodies"
                    )


MATRICES = ("inertia", "damping", "stiffness")
"""The matrices of a pair; the sum over all pairs must be positive semidefinite for each."""

FAINT = 1e-5
"""A motion along which a matrix has less than this fraction of its largest entry, at unit speeds, is scaled by this."""

PLACES = 8
"""Number of random configurations, besides the neutral one, at which `check_together` evaluates these sums."""


@remembered(64)
def _assembling(m: Mechanism, pairs: tuple[Pair, ...], what: str) -> ca.Function:
    """The function (q, p) -> (nv, nv) matrix of all pairs, as `assembled` gives it."""
    T = symbols(m)
    return ca.Function("X", [T.q, m.p_symbols], [assembled(T.kinematics, pairs, what)])
