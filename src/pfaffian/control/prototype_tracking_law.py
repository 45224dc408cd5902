"""The law that tracks a prototype by the inputs whose motion is nearest to the prototype's. [konz25 (4.51)-(4.64)]"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import casadi as ca
import numpy as np

from pfaffian.control.command import Command, Fault, Reason
from pfaffian.control.law import Control, maker, with_no_wrench
from pfaffian.control.motors import accelerations, limit_rows, motors_are_redundant
from pfaffian.control.prototype import (
    ReferenceMotion,
    Transport,
    check_approach,
    check_together,
    prototype_terms,
    reference_motion,
    transport_error,
    transported,
)
from pfaffian.control.prototype_pair import Pair, as_pairs, motion_of
from pfaffian.control.reason import mainly, participation, weakest
from pfaffian.control.reference import Reference, as_reference, of_configuration, places
from pfaffian.dynamics.motion import RANK_TOLERANCE
from pfaffian.errors import ModelError
from pfaffian.maths import so3
from pfaffian.maths.linear import orthogonalise, root, smallest, solve_semidefinite, solve_symmetric
from pfaffian.maths.precision import for_floats
from pfaffian.maths.qp import INACCURATE, INFEASIBLE, SOLVED, Nearest, in_floats, nearest, nearest_by_root
from pfaffian.model.mechanism import Mechanism
from pfaffian.parts.elastic import spatial
from pfaffian.terms.kinematics import Kinematics
from pfaffian.terms.new_symbols import at_new_symbols
from pfaffian.terms.terms import Terms

EXCLUDED = "no input is within the limits W u <= l: widen them"
UNSOLVED = (
    "the limits could not be met to the digits of the arithmetic: give the prototype more even inertia along the motions that "
    "the inputs drive, leave out rows of W that nearly repeat others, or request inputs that are less far beyond their limits"
)
SINGULAR = "the prototype has no inertia against some motion that the inputs drive: give some pair of bodies more Mbar'"
NOWHERE = (
    "the reference is no configuration of the machine: a quaternion is zero, or coordinates or their rates leave phi(q) = 0; "
    "give samples closer to each other, or a function of time"
)
SMALL = 1e-7
SMALL_IN_FLOATS = 1e-3
SMALL_BESIDE_ROOT = 1e-6
"""Weight of small inputs, relative to the motion, in the first search for inputs within the limits, see `_within`: in doubles;
in floats, where S^T M S has few digits left; and in floats with the root of that matrix, as a law is exported.
"""

UNITS = {
    "prototype_energy": "J",
    "prototype_power": "W",
    "prototype_potential": "J",
    "matching_force": "per velocity",
    "transport_error": "per velocity",
    "transport_power": "W",
    "limit_slack": "per limit",
    "limit_active": "1",
}
"""Units of the signals that `prototype_tracking` records."""


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

    With as many inputs as motions, u solves M v_dot + c = f + B u for the v_dot of the prototype. With fewer, the matching
    force Mbar v_dot + bbar remains. Constraints are taken into account: a and S are those of the constrained mechanism. Where
    the motors are redundant, as on closed loops, legs and multicopters with more than four propellers, u is the smallest input
    that gives this motion.

    Inertia and damping act on the difference between motion and reference. The approach "particle" takes the velocities of all
    points of a body relative to the other body of the pair, "body" the twists, and "energy" the velocities, v - Q v_R; at a
    constant reference the three are the same. With "energy" the energy Wbar falls wherever the transport error (4.30) is zero
    and no matching force is left.

    Args:
        pairs: list of `pair`, the inertia, damping and stiffness of the prototype between bodies.
        reference: of the whole configuration, (nq,) numbers on phi = 0 and on the constraints; quaternions of any length.
        approach: "particle", "body" or "energy"; default "energy".
        transport: for "energy", function of the kinematics k and k_R of motion and reference that returns Q (nv, nv), with
            Q = 1 where the two are equal, such as `error_coordinates` makes; if None, the Q nearest to 1 that maps the twists
            of the pairs, weighted by their stiffness.
        limits: "actuators" for the limits of the actuators, (motors, 2) the lowest and highest input of each [N, N m], or
            W u <= l as the pair (W, l), W (rows, motors) and l (rows,) numbers or Parameters; None for no limits. Within the
            limits u is nearest to the unlimited input in the metric of S^T Mbar S, so that the motion is as near as the limits
            permit. [konz25 (4.63)-(4.64)]
    Returns:
        Control that records prototype_energy Wbar [J], its rate prototype_power [W], prototype_potential Vbar [J] and
        matching_force; with "energy" also transport_error along v and transport_power [W], which the transport map adds to the
        rate of Wbar and which is zero where the map satisfies (4.30); with limits limit_slack l - W u and limit_active, 1 for
        rows that restrict u.
    Stops a run: the prototype has no inertia against some motion that the inputs drive; a quaternion of the reference is zero,
    or its coordinates leave phi = 0; no u is within the limits, or the limits could not be met to the digits of a double.
    Warns RunWarning: transport_power exceeds rounding in the run.
    Raises ModelError: no pairs, a reference that is not a Reference, an unknown approach, "particle" with inertia or damping
    (6, 6), a transport that is not a function or not for "energy". At the run: unknown bodies, a prototype that is negative
    along some motion, also for parameters of the run, a reference of another size, no actuators, limits of another form.

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
    check_approach(approach, as_pairs(pairs, "prototype_tracking"))
    as_reference(reference)
    if transport is not None and (approach != "energy" or not callable(transport)):
        raise ModelError("transport: a function of two kinematics, for the approach 'energy' only")

    def law(terms: Terms, z: ca.SX, w: ca.SX, reaction: ca.SX) -> Command:
        """Inputs u of least |S u - a*| in the metric of the prototype, a* its motion towards the reference."""
        m, k = terms.mechanism, terms.kinematics
        if not m.actuators:
            raise ModelError(f"prototype_tracking: {m.name!r} has no actuators; see actuate_all")
        check_together(tuple(pairs), m, m.p_defaults[None])
        goal = reference_motion(terms, reference, w)
        P = prototype_terms(k, goal, pairs, approach, transport)
        a, S = accelerations(terms)
        # This counts every row of constraints, including constraints that are not active yet.
        redundant = len(m.actuators) > m.nv - terms.A.shape[0] or motors_are_redundant(m)
        u, singular = _inputs(S, P.M, P.M @ a + P.b, redundant)
        faults, more_signals = [singular, ca.sum1(goal.left) > 0], dict[str, ca.SX]()
        if approach == "energy":
            Q, _ = transported(k, goal, list(pairs), transport)
            residual = transport_error(k, goal.k, pairs, Q)
            more_signals = {"transport_error": residual, "transport_power": ca.dot(residual, goal.k.v)}
        if limits is not None:
            W, l = limit_rows(terms.mechanism, limits)
            if for_floats():
                within = nearest_by_root(root(P.M) @ S, u, W, l, SMALL_BESIDE_ROOT if redundant else 0.0)
            else:
                within = _within(so3.symmetric(S.T @ P.M @ S), u, W, l, redundant)
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
    nowhere = None if reference.w_names else _nowhere(reference)
    known = (Fault(SINGULAR, _weightless(pairs)), Fault(NOWHERE, nowhere), *within)
    check = partial(check_together, tuple(pairs))
    return Control(law, (), reference.w_names, known, units=UNITS, check=check)


def _inputs(S: ca.SX, M: ca.SX, force: ca.SX, redundant: bool) -> tuple[ca.SX, ca.SX]:
    """The u of least |v_dot + Mbar^-1 bbar| in the metric of M = Mbar, and whether M is singular along S.

    Along orthonormal accelerations, the rows Q = D S^T, the rank is that of M and not of S, whose columns may differ by 1e4.
    force: Mbar a + bbar.   redundant: whether motors may be redundant; then u is the smallest input that gives this motion.
    """
    driven = orthogonalise(S.T, ca.SX.eye(S.shape[1]), RANK_TOLERANCE, passes=2 if for_floats() else 1)
    solved = solve_semidefinite(driven.Q @ M @ driven.Q.T, -driven.Q @ force, RANK_TOLERANCE)
    singular = ca.sum1(solved.independent) < driven.rank
    if not redundant:
        return driven.D.T @ solved.x, singular
    rows = orthogonalise(driven.Q @ S, ca.SX(S.shape[1], 0), RANK_TOLERANCE, passes=1)
    return smallest(rows, solved.x), singular


def _within(H: ca.SX, u0: ca.SX, W: ca.SX, l: ca.SX, redundant: bool) -> Nearest:
    """The u nearest to u0 in the metric of H with W u <= l; with redundant motors the smallest that gives the same motion.

    The weight on small inputs disturbs the motion by an error of the order of the weight. A second search therefore puts the
    weight only on the distance from the first result, which is almost the smallest; this squares the error. [Rockafellar 1976]
    """
    if not redundant:
        return nearest(H, u0, W, l)
    small = ca.if_else(in_floats(H[0, 0]), SMALL_IN_FLOATS, SMALL) * ca.trace(H)
    G = H + small * ca.SX.eye(H.shape[0])
    first = nearest(G, u0, W, l)
    second = nearest(G, u0 + small * solve_symmetric(G, first.u - u0), W, l)
    # The second step is so small that much of it is rounding. The status is therefore that of the first search, except that
    # the second result is checked against the rows.
    finished = ca.logic_or(second.status == SOLVED, second.status == INACCURATE)
    violated = ca.logic_and(first.status == SOLVED, ca.logic_not(second.within))
    return second._replace(status=ca.if_else(finished, ca.if_else(violated, INACCURATE, first.status), second.status))


def _power(
    k: Kinematics,
    goal: ReferenceMotion,
    pairs: Sequence[Pair],
    approach: str,
    transport: Transport | None,
    v_dot: ca.SX,
) -> ca.SX:
    """The rate of Wbar along motion and reference [W]."""
    s, s_R, v_R_dot = at_new_symbols(k), at_new_symbols(k), ca.SX.sym("v_R_dot", k.mechanism.nv)
    W = prototype_terms(s, ReferenceMotion(s_R, v_R_dot), pairs, approach, transport).energy
    acceleration = ca.SX.sym("v_dot", k.mechanism.nv)
    rate = (
        ca.jtimes(W, s.q, s.q_dot)
        + ca.jtimes(W, s_R.q, s_R.q_dot)
        + ca.jtimes(W, s.v, acceleration)
        + ca.jtimes(W, s_R.v, v_R_dot)
    )
    p = k.mechanism.p_symbols
    f = ca.Function("power", [s.q, s.v, s_R.q, s_R.v, v_R_dot, acceleration, p], [rate])
    return ca.SX(f(k.q, k.v, goal.k.q, goal.k.v, goal.v_dot, v_dot, p))


def _nowhere(reference: Reference) -> Reason:
    """The Reason that names the joints and coordinates at which a reference is not a configuration."""

    def words(m: Mechanism, x: Mapping[str, np.ndarray]) -> str:
        names = [name for name, invalid in zip(places(m), x["left"].ravel(), strict=True) if invalid]
        # The reference may become invalid only later in the attempted step, while it is still valid at the start of the step.
        return f"it is the reference of {' and '.join(names or places(m))}"

    return Reason({"left": lambda T: of_configuration(T.mechanism, reference, T.t, ca.SX(0, 1))[1]}, words)


def _contradicting(limits: Any) -> Reason:
    """The Reason that names the rows of W u <= l that no u satisfies together."""

    def rows(terms: Terms) -> ca.SX:
        W, l = limit_rows(terms.mechanism, limits)
        n = W.shape[1]
        return ca.horzcat(W, nearest(ca.SX.eye(n), ca.SX.zeros(n, 1), W, l).active)

    def words(m: Mechanism, x: Mapping[str, np.ndarray]) -> str:
        active = [i for i, row in enumerate(x["rows"]) if row[-1]]
        motors = [n for i, n in enumerate(m.motor_names) if np.any(x["rows"][active, i])]
        return f"rows {', '.join(map(str, active))} contradict each other; they limit {', '.join(motors) or 'no actuator'}"

    return Reason({"rows": rows}, words)


def _weightless(pairs: Sequence[Pair]) -> Reason:
    """The Reason that names the driven motion against which the prototype has the least inertia, or none."""

    def M(terms: Terms) -> ca.SX:
        parts = [(motion_of(terms.kinematics, p).J, spatial(p.inertia)) for p in pairs]
        return sum((J.T @ I @ J for J, I in parts), ca.SX(terms.mechanism.nv, terms.mechanism.nv))

    def words(m: Mechanism, x: Mapping[str, np.ndarray]) -> str:
        driven = np.linalg.qr(x["S"])[0]
        lost = driven @ weakest(driven.T @ x["Mbar"] @ driven).inputs
        velocities = mainly(participation(lost), m.v_names, m.nv)
        given = ", ".join(f"{p.body!r} seen from {p.seen_from!r}" for p in pairs if not p.inertia.is_zero())
        return f"the prototype has the least inertia against a motion of {velocities}; it has inertia for {given or 'no pair'}"

    return Reason({"Mbar": M, "S": lambda T: accelerations(T)[1]}, words)
