"""Tracking of a prototype: the machine moves as nearly as its inputs can make it like another of one's choice. [konz25 ch. 4]

The prototype has the machine's kinematics, and between any pairs of bodies inertia, damping and stiffness of its own, 4 x 4
pseudo-matrices Mbar', Dbar', Kbar'. Its motion towards a reference q_R(t) is Mbar v_dot + bbar = 0 with

    Mbar = sum J^T Vee(Mbar') J,    bbar = cbar + fDbar + fKbar,    fKbar = sum J^T vee2((1 - G_E^-1) Kbar'),    (4.66)

G_E = G_R^-1 G the error of the pose G of each pair and J its body Jacobian. Inertia and damping feel the difference of the
motions, in one of three ways:

particle: of all points of the body, seen from the first one of the pair (4.66c,d).
body: of the twists, xi_E = J v - Ad(G_E^-1) J_R v_R (4.66e,f).
energy: of the velocities, v_E = v - Q v_R with a transport map Q(q, q_R) (4.66g-i).

At a constant reference the energy Wbar of each falls, by what the dampers take, where the inputs leave no matching force. Along
one that moves it does with `energy` where the transport error (4.30) is zero, and with `body` where the xi_E of all pairs are
J v_E of one velocity v_E, as those of one pair on a body that moves any way are; those of several pairs of an arm are not, and
the energy may rise there. With `particle` it may rise along any. `prototype_power` tells what it does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from pfaffian.control.law import Command, Control, Reason, at_values, maker, motor_matrix, with_no_wrench
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
    "leave out rows of W that all but repeat others, or ask for inputs that are less far beyond their limits"
)
SINGULAR = "the prototype has no inertia against some motion that the inputs drive: give a pair of bodies more Mbar'"

SMALL = 1e-7
"""What the size of inputs counts beside the motion in the first search for those within limits; see `_within`."""


ALIKE = 1e-9
"""Squared part of a motor's motion that others cannot make below which they make all of it."""


@data
class Pair:
    """What the prototype has between two bodies: pseudo-matrices (4, 4) in the frame of `body`, seen from `seen_from`."""

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
        body, seen_from: names of bodies; the world is the other end of an absolute pair.
        inertia: Mbar' [kg, kg m, kg m^2].   damping: Dbar' [N s/m, N s, N m s].   stiffness: Kbar' [N/m, N, N m]. Each (4, 4),
            symmetric, in the frame of `body`; `pseudo_matrix` makes one; None for none. Of one pair they need not be positive
            semidefinite: all pairs together must be, which the law checks.
    Raises ModelError: a matrix that is not symmetric; one body twice.
    """
    what = f"pair {body!r} seen from {seen_from!r}"
    if body == seen_from or not all(isinstance(n, str) for n in (body, seen_from)):
        raise ModelError(f"{what}: two different bodies are needed")
    given = {"inertia": inertia, "damping": damping, "stiffness": stiffness}
    matrices = {n: ca.SX(4, 4) if x is None else symmetric_pseudo(x, f"{what}: {n}") for n, x in given.items()}
    return Pair(body, seen_from, **matrices)


def as_pairs(pairs: Any, what: str) -> tuple[Pair, ...]:
    """The pairs as they are. Raises ModelError: it is no list of pairs, or an empty one."""
    if not several(pairs) or not pairs or not all(isinstance(p, Pair) for p in pairs):
        raise ModelError(f"{what}: a list of pair(...) is needed, got {brief(pairs)}")
    return tuple(pairs)


class Motion(NamedTuple):
    """How a pair moves.   G: (4, 4) pose of the body seen from the other.   J: (6, nv) body Jacobian.   J_dot: (6, nv)."""

    G: ca.SX
    J: ca.SX
    J_dot: ca.SX


def motion_of(k: Kinematics, of: Pair) -> Motion:
    """Of a pair at k."""
    s = fresh(k)
    G, J = s.relative(of.body, of.seen_from)
    return Motion(*placed([se3.homogeneous(G.R, G.p), ca.densify(J), connection.rate(s, J)], s, k))


def assembled(k: Kinematics, pairs: Sequence[Pair], what: str) -> ca.SX:
    """(nv, nv) sum J^T Vee(X') J of what the pairs have together, X' their inertia, damping or stiffness. [konz25 (4.48)]"""
    total = ca.SX(k.mechanism.nv, k.mechanism.nv)
    for p in pairs:
        said = f"pair {p.body!r} seen from {p.seen_from!r}: {what}"
        J, X = motion_of(k, p).J, checked(getattr(p, what), said, [k.mechanism.p_symbols])
        total += J.T @ se3.Vee(X) @ J
    return ca.densify(total)


Transport = Callable[[Kinematics, Kinematics], Any]
"""(k, k_R) -> what carries velocities of the reference to where the machine is, see `prototype_tracking`."""


class ReferenceMotion(NamedTuple):
    """The reference as a motion of the mechanism.   k: its kinematics.   v_dot: (nv, 1)."""

    k: Kinematics
    v_dot: ca.SX


def wanted(terms: Terms, reference: Reference, w: ca.SX) -> ReferenceMotion:
    """q_R(t), its quaternions made of length one, with v_R = K^+ q_R_dot, and v_R_dot.

    Raises ModelError: a reference of another size, or with a quaternion that is zero.
    """
    m, x = terms.mechanism, reference.at(terms.t, w)
    if reference.size != m.nq:
        raise ModelError(f"the reference has {reference.size} numbers, the configuration of {m.name!r} {m.nq}: it needs all")
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
"""Of what a law that tracks a prototype records."""


class Prototype(NamedTuple):
    """Mbar (nv, nv), bbar (nv, 1): Mbar v_dot + bbar = 0.   energy: (1, 1) Wbar = Tbar + Vbar [J].   potential: Vbar."""

    M: ca.SX
    b: ca.SX
    energy: ca.SX
    potential: ca.SX


class _Error(NamedTuple):
    """Of one pair.   of: the pair.   here, there: actual and wanted motion.   back: (4, 4) G_E^-1.   carry: (6, 6) Ad of it."""

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
    """Mbar, bbar and energies of the prototype at k on its way to the goal. [konz25 (4.66)]

    pairs, approach, transport: as in `prototype_tracking`.
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
    held = ca.SX.sym("v_R", n)
    turning = ca.jtimes(Q @ held, s.q, s.q_dot) + ca.jtimes(Q @ held, s_R.q, s_R.q_dot)
    p = k.mechanism.p_symbols
    f = ca.Function("Q", [s.q, s.v, s_R.q, s_R.v, held, p], [Q, ca.densify(turning)])
    Q, turning = f.call([k.q, k.v, goal.k.q, goal.k.v, goal.k.v, p])
    return Q, turning


def transport_error(k: Kinematics, k_R: Kinematics, pairs: Sequence[Pair], Q: ca.SX) -> ca.SX:
    """(nv, 1) grad_R Vbar + Q^T grad Vbar, which vanishes for a map along which the energy falls. [konz25 (4.30), (4.46)]

    k, k_R: kinematics of the machine and of its reference.   pairs: as in `prototype_tracking`.   Q: (nv, nv) the map.
    """
    off = ca.SX(k.mechanism.nv, 1)
    for e in _errors(k, k_R, pairs):
        off += (e.here.J @ Q - e.carry @ e.there.J).T @ e.pull
    return ca.densify(off)


def error_coordinates(chi: Callable[[Kinematics, Kinematics], Any]) -> Callable[[Kinematics, Kinematics], ca.SX]:
    """The transport map of error coordinates e = chi(k, k_R): Q = -(d chi)^+ (d_R chi), the derivatives along v and v_R.

    It serves every potential that is a function of e alone. [konz25 (A.8)]

    chi: function of the kinematics of motion and reference giving at least as many error coordinates as there are velocities,
        of which none stands still. Raises ModelError: it is no function.
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


@maker
def prototype_tracking(
    pairs: Sequence[Pair],
    reference: Reference,
    *,
    approach: str = "energy",
    transport: Transport | None = None,
    limits: Any = None,
) -> Control:
    """u such that the motion is nearest to the prototype's, |v_dot + Mbar^-1 bbar| in the metric of Mbar. [konz25 (4.52)]

        v_dot = a + S u,    u = -(S^T Mbar S)^-1 S^T (Mbar a + bbar)

    With as many inputs as motions that is M v_dot + b = B u with the prototype's v_dot; with fewer, what is left is the
    matching force Mbar v_dot + bbar, recorded as `matching_force` along v. Constraints are taken into account: a and S are
    those of the constrained mechanism. Where there are more motors than motions that they drive, as on closed loops, legs and
    multicopters with more than four propellers, u is the smallest of those that move alike.

    Args:
        pairs: of bodies with what the prototype has between them, see `pair`.
        reference: of the whole configuration, (nq,) numbers on phi = 0 and on the constraints; quaternions of any length.
        approach: "particle", "body" or "energy", see above; at a constant reference they are the same.
        transport: of "energy": function of the kinematics k and k_R of motion and reference giving Q (nv, nv), with Q = 1
            where the two are equal, as `error_coordinates` makes one; the one nearest to 1 that carries the pairs' twists as
            their stiffness sees them if None.
        limits: W u <= l of the actuators as the pair (W, l), W (rows, motors) and l (rows,) numbers or parameters, or
            "actuators" for their own; None for none. Within them u is the nearest to the one without, in the metric of
            S^T Mbar S: the motion then is as near as the limits let it be. [konz25 (4.63)-(4.64)]
    Records `prototype_energy` Wbar [J], `prototype_power` its rate [W], `prototype_potential` Vbar [J], `matching_force`; of
    "energy" `transport_error` along v, which is zero where the map does what it should (4.30): the energy falls there; and
    with limits `limit_slack` l - W u and `limit_active`, 1 for rows that hold u.
    Stops a run: the prototype has no inertia against some motion that the inputs drive; no u is within the limits.
    Raises ModelError: no pairs, unknown bodies or approach, a reference of another size, no actuators, no limits.
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
        goal = wanted(terms, reference, w)
        P = prototype_terms(k, goal, pairs, approach, transport)
        a, S = accelerations(terms)
        # All rows count here, those of constraints that are not active yet among them.
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

    known = (SINGULAR,) if limits is None else (SINGULAR, EXCLUDED, UNSOLVED)
    reasons = {SINGULAR: _weightless(pairs)} | ({} if limits is None else {EXCLUDED: _contradicting(limits)})
    check = partial(check_together, tuple(pairs))
    return Control(law, (), reference.w_names, known, reasons=reasons, units=UNITS, check=check)


def _inputs(S: ca.SX, M: ca.SX, force: ca.SX, spare: bool) -> tuple[ca.SX, ca.SX]:
    """u of least |v_dot + Mbar^-1 bbar| in the metric of M, force = Mbar a + bbar; whether M is short of rank along S.

    Along orthonormal accelerations, the rows Q = D S^T, the rank is that of M and not of S, whose columns may differ by 1e4.
    spare: there may be more motors than motions that they drive; u is the smallest of those that move alike then.
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
    """Whether some motors move a machine as others do: S has fewer independent columns than motors at one configuration, as
    almost anywhere. A rank of numbers: more motors than velocities are not needed for that, and may not suffice."""
    T, random = symbols(m), np.random.default_rng(43)
    f = ca.Function("driven", [T.q, T.v, T.t, m.p_symbols], [ca.densify(x) for x in (T.M, T.A, motor_matrix(T))])
    at = random_configuration(m, random), random.normal(size=m.nv), 0.0, m.p_defaults
    M, A, B = (np.array(x) for x in f(*at))
    rank = np.linalg.matrix_rank(A) if A.size else 0  # of nothing NumPy 2.0 has none
    N = null(A) if rank < m.nv else np.zeros((m.nv, 0))
    driven = B.T @ N @ np.linalg.pinv(N.T @ M @ N, hermitian=True) @ N.T @ B
    size = np.sqrt(np.outer(np.diag(driven), np.diag(driven)))
    alike = np.divide(driven, size, out=np.zeros_like(driven), where=size > 0)
    return bool(np.linalg.matrix_rank(alike, tol=ALIKE, hermitian=True) < len(alike))


def _within(H: ca.SX, u0: ca.SX, W: ca.SX, l: ca.SX, spare: bool) -> Nearest:
    """The u nearest to u0 in the metric of H with W u <= l; where motors are to spare the smallest of those that move alike.

    What small inputs count beside the motion moves it by as much. So a second search counts only how far u is from the first,
    which has found almost the smallest: that moves it by the square. [Rockafellar 1976]
    """
    if not spare:
        return nearest(H, u0, W, l)
    small = SMALL * ca.trace(H)
    G = H + small * ca.SX.eye(H.shape[0])
    first = nearest(G, u0, W, l)
    second = nearest(G, u0 + small * solve_symmetric(G, first.u - u0), W, l)
    # Its move is so small that rounding is much of it: what it is worth the first has told.
    ended = ca.logic_or(second.status == SOLVED, second.status == INACCURATE)
    return second._replace(status=ca.if_else(ended, first.status, second.status))


def check_together(pairs: tuple[Pair, ...], m: Mechanism, p: np.ndarray) -> None:
    """Raise ModelError where inertia, damping or stiffness of all pairs together are negative along some motion.

    p: (runs, np) parameters. Looked at in a few configurations.
    """
    for words, values in at_values(m, p):
        for what in MATRICES:
            for q in _places(m):
                X = np.array(_assembling(m, pairs, what)(q, values))
                # Each motion in units of its own, or what is light is rounding beside what is heavy.
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
"""Of a pair, each of which is positive semidefinite for all pairs together."""

PLACES = 8
"""Random configurations at which that is looked at, beside the neutral one."""


@remembered(64)
def _places(m: Mechanism) -> list[np.ndarray]:
    random = np.random.default_rng(3)
    return [m.neutral(), *(random_configuration(m, random) for _ in range(PLACES))]


@remembered(64)
def _assembling(m: Mechanism, pairs: tuple[Pair, ...], what: str) -> ca.Function:
    T = symbols(m)
    return ca.Function("X", [T.q, m.p_symbols], [assembled(T.kinematics, pairs, what)])


def limit_rows(m: Mechanism, limits: Any) -> tuple[ca.SX, ca.SX]:
    """W (rows, motors) and l (rows, 1)."""
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
    """a (nv, 1) and S (nv, motors): v_dot = a + S u on the constraints."""
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
    """Rate of Wbar along the motion and the reference."""
    s, s_R, v_R_dot = fresh(k), fresh(k), ca.SX.sym("v_R_dot", k.mechanism.nv)
    W = prototype_terms(s, ReferenceMotion(s_R, v_R_dot), pairs, approach, transport).energy
    bend = ca.SX.sym("v_dot", k.mechanism.nv)
    rate = ca.jtimes(W, s.q, s.q_dot) + ca.jtimes(W, s_R.q, s_R.q_dot) + ca.jtimes(W, s.v, bend) + ca.jtimes(W, s_R.v, v_R_dot)
    p = k.mechanism.p_symbols
    f = ca.Function("power", [s.q, s.v, s_R.q, s_R.v, v_R_dot, bend, p], [rate])
    return ca.SX(f(k.q, k.v, goal.k.q, goal.k.v, goal.v_dot, v_dot, p))


def _contradicting(limits: Any) -> Reason:
    """Which rows of W u <= l no u meets together."""

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
    """What the inputs drive along which the prototype has no inertia, or the least."""

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
