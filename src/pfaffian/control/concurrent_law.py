"""Concurrent control of a base and its arms, whose outputs on Lie groups follow references. [chhabra14 ch. 5]

The outputs of base and end effectors together are a point in a product of groups, with body velocities V = E J v. The servo
law of each output (`control.output`) requires an acceleration V_dot = nu of this output:

    u = D^+ [nu - drift],    D = E J S,    drift = E J a + E J_dot v,                                     (5.4.30)

where v_dot = a + S u on the constraints. As a and S account for conserved momentum and rolling wheels, no reduction is needed,
and D is the generalised Jacobian times the mobility O along the motors.

If there are more motors than outputs, some motions remain open. The smallest inputs, D^+, do not act on them, and light wrists
then spin. With a damping d, v_dot is nearest to -d v in the metric of inertia among all that produce the outputs' V_dot:

    O u = D^T y - S^T M (a + d v),    y = (D O^-1 D^T)^-1 [nu - drift + D O^-1 S^T M (a + d v)],    O = B^T S,

so that heavy parts move least: arms swing before wheels turn. With weights W, the rates r = B^T v along the motors have the
r_dot nearest to -d r in the metric of W, where G = D O^-1 is the generalised Jacobian:

    O u = W^-1 G^T y - B^T (a + d v),    y = (G W^-1 G^T)^-1 [nu - drift + G B^T (a + d v)].
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from pfaffian.control.allocation import weights
from pfaffian.control.command import Command, Fault, Reason
from pfaffian.control.law import Control, at_values, maker, motor_matrix, with_no_wrench
from pfaffian.control.motors import accelerations, independent_motors, motors_are_redundant
from pfaffian.control.output_rank import check_reach
from pfaffian.control.outputs import (
    GAINS,
    KINDS,
    Output,
    ServoLaw,
    check_in_group,
    check_moves,
    goal_at,
    half_turn,
    is_definite,
    leaves_group,
    moving,
    servo,
)
from pfaffian.control.reason import ROUNDING, mainly, participation, weakest
from pfaffian.control.undriven import Undriven, driven, inputs, undriven
from pfaffian.dynamics.motion import RANK_TOLERANCE
from pfaffian.errors import ModelError, RunWarning, brief, notice, plural
from pfaffian.maths import so3
from pfaffian.maths.linear import handedness, orthogonalise, smallest, solve_definite, solve_semidefinite
from pfaffian.maths.reflection import NOTHING
from pfaffian.maths.roots import smallest_singular_value
from pfaffian.maths.tree_factor import factor_tree, solve_W, solve_WT
from pfaffian.model.mechanism import Mechanism
from pfaffian.model.number import at_defaults, scalar, several
from pfaffian.terms.terms import Terms

HALF_TURN = 0.01
"""Distance from half a turn [rad] within which the logarithm of an attitude error counts as not unique: it could jump to the
opposite axis.
"""

TURNED = f"an attitude error is within {HALF_TURN:g} rad of half a turn, where its logarithm is not unique"
LEFT = (
    "the reference of an output is no motion of its group: R^T R = 1 with determinant 1 is needed, and a rate that keeps it; "
    "give samples closer to each other, or a function of time"
)
LOST = "the outputs are not within the inputs' reach here: the decoupling matrix has lost rank"


class Decoupling(NamedTuple):
    """How the inputs accelerate the outputs, V_dot = D u + drift.

    D: (k, motors).   drift: (k, 1).   a: (nv, 1), S: (nv, motors) of v_dot = a + S u.
    jacobian: (k, motors) generalised Jacobian, from rates along the motors to the outputs' velocities at constant momentum.
    motor_mobility: (motors, motors) O = B^T S, from inputs to accelerations along the motors.
    mobility: (k, 1) diagonal of E J M^-1 J^T E^T, the mobility of each output if every velocity were driven.
    """

    D: ca.SX
    drift: ca.SX
    jacobian: ca.SX
    motor_mobility: ca.SX
    mobility: ca.SX
    a: ca.SX
    S: ca.SX


def decoupling(terms: Terms, outputs: Sequence[Output]) -> Decoupling:
    """The Decoupling of outputs, from v_dot = a + S u of any formulation. [chhabra14 (5.3.27)]"""
    J, J_dot = _jacobians(terms, outputs)
    a, S = accelerations(terms)
    D, motor_mobility = J @ S, motor_matrix(terms).T @ S
    jacobian = solve_semidefinite(ca.densify(motor_mobility), ca.densify(D.T), RANK_TOLERANCE).x.T
    mobility = ca.sum1(solve_W(terms.factor, J.T) ** 2).T
    return Decoupling(ca.densify(D), J @ a + J_dot @ terms.v, jacobian, ca.densify(motor_mobility), ca.densify(mobility), a, S)


def _jacobians(terms: Terms, outputs: Sequence[Output]) -> tuple[ca.SX, ca.SX]:
    """J and J_dot (k, nv) of all outputs."""
    parts = [moving(terms.kinematics, o) for o in outputs]
    return ca.vertcat(*[x.J for x in parts]), ca.vertcat(*[x.J_dot for x in parts])


UNITS = {"lyapunov": "(m or rad)^2/s^2", "lyapunov_rate": "(m or rad)^2/s^3", "sigma_min": "1", "basin": "1"}
"""Units of the signals that the law records in addition to errors."""


@maker
def concurrent(outputs: Sequence[Output], *, weight: Any = None, rest_damping: Any = None, rest_weight: Any = None) -> Control:
    """Control outputs of base and arms at once, on SE(3), SO(3), R^n, SE(2), SO(2). [chhabra14 theorem 5.4.2]

        u = D^+ [nu - drift],    V_dot = D u + drift of the outputs,    nu as their servo laws require it

    If there are as many inputs as coordinates of the outputs, each error evolves independently, v_e_dot = nu - ..., and V_L
    falls as -<K_D v_e, v_e>. If there are more inputs, u has the smallest u^T R u among those with this effect, or with a
    `rest_damping` damps the remaining motion. The law accounts for bases without actuators, conserved momentum and rolling
    wheels, and also runs on `pf.reduce` of the machine. The errors vanish whatever motion the outputs do not contain;
    `zero_dynamics_along` checks whether that motion is stable.

    Args:
        outputs: list of Outputs, made by `output`.
        weight: (motors,) positive numbers R [1/N^2, 1/(N m)^2]; ones if None. Without a rest_damping, giving a weight confirms
            that the smallest inputs are meant.
        rest_damping: d [1/s] of motion that the outputs leave open: |v_dot + d v| in the metric of inertia is as small as the
            outputs permit, which also compensates gravity; R decides between motors that move the machine alike. None leaves
            that motion to the smallest inputs, which do not damp it: for short runs, or if the outputs need all motors.
        rest_weight: (motors,) positive numbers W: instead, |r_dot + d r| of the rates r along the motors is as small as
            possible in the metric of W. With low weights reaction wheels move in place of arms; 1 / (highest rate)^2 is a fair
            choice. None for the metric of inertia.
    Returns:
        Control that records, output by output along the group's axes, output_error xi_e and velocity_error v_e; lyapunov V_L
        and lyapunov_rate, in units of I; sigma_min, the smallest singular value of the generalised Jacobian from rates along
        the motors to the outputs' velocities [m or rad per m or rad], which is zero where D loses rank; basin, the largest
        ratio of an output's V_L to the value at which its error can be half a turn: below 1 all errors vanish exponentially.
    Stops a run: D has lost rank; the reason names the output, the motors and the configuration. An attitude error has reached
    half a turn, or a reference has left its group; the reason names the output. Where inputs grow so fast that a step jumps
    over a loss of rank and diverges, the reason names this loss of rank and how near it was shortly before.
    Raises ModelError: no outputs, or one twice; a rest_damping below zero, also at the parameters of a run; a rest_weight
    without a rest_damping, or with motors that move the machine alike. At the run: unknown bodies, more coordinates than
    actuators, an output that cannot move, outputs that at no configuration move independently of each other (position and pose
    of the same body, a point on an axle).
    Warns RunWarning: there are more motors than the outputs need, and neither rest_damping nor weight is given.

    Example:
        >>> import pfaffian as pf
        >>> from pfaffian import control
        >>> rail = pf.joint("rail", "prismatic", "world", "cart", axis=(1, 0, 0))
        >>> m = pf.mechanism("cart", [pf.body("cart", 2.0)], [rail], actuators=[pf.actuator("motor", "rail")])
        >>> place = control.output("cart", "position", [1.0], stiffness=4.0, damping=4.0, axes=[0])
        >>> run = pf.run(m, duration=0.05, step=0.01, control=control.concurrent([place]), backend="numpy")
        >>> run["u"].values[0].round(6), round(float(run["lyapunov"].values[0]), 6)  # 2 kg * 4 / s^2 * 1 m, and 4 / 2
        (array([8.]), 2.0)
    """
    _check_outputs(outputs)
    names = tuple(name for o in outputs for name in o.names)
    d = _as_rest_damping(rest_damping, rest_weight)

    def law(terms: Terms, z: ca.SX, w: ca.SX, reaction: ca.SX) -> Command:
        """Inputs for the accelerations nu of all outputs; the rest of the motion is damped where d is given."""
        _check_count(terms.mechanism, names)
        R = weights(terms.mechanism, weight)
        servos, left = _servos(terms, outputs, w)
        nu = ca.vertcat(*[y.nu for y in servos])
        along = None if d is None or len(terms.mechanism.actuators) <= len(names) else driven(terms)
        if d is None or along is None:
            x = decoupling(terms, outputs)
            (u, rank, side), G = _inputs(terms, x, nu - x.drift, R, d, rest_weight), x.jacobian
        else:
            eliminated = undriven(terms, along, *_jacobians(terms, outputs))
            W = None if rest_weight is None else weights(terms.mechanism, rest_weight)
            (u, rank, side), G = _damped_by_elimination(terms, eliminated, nu, d, W), eliminated.G
        signals = _signals(outputs, servos, G)
        faults = ca.vertcat(rank < len(names), left, _half_turned(outputs, servos))
        return Command(with_no_wrench(terms, u), ca.SX(0, 1), faults, signals, ca.vertcat(side, 1, 1))

    error = ", ".join(dict.fromkeys(KINDS[o.kind].unit for o in outputs))
    units = UNITS | {"output_error": error, "velocity_error": f"({error}) / s"}
    w_names = tuple(name for o in outputs for name in o.reference.w_names)
    left, turned = (None, None) if w_names else (_left(outputs), _turned(outputs))
    faults = (Fault(LOST, _lost(outputs, names), near=True), Fault(LEFT, left), Fault(TURNED, turned))
    entries = {"output_error": names, "velocity_error": names}
    check = partial(_check, tuple(outputs), d, weight is None)
    return Control(law, (), w_names, faults, units=units, entries=entries, check=check)


def _as_rest_damping(rest_damping: Any, rest_weight: Any) -> ca.SX | None:
    """The damping d, or None. Raises ModelError: d is negative, or a rest_weight is given without it."""
    if rest_damping is None:
        if rest_weight is not None:
            raise ModelError("concurrent: rest_weight says which motors rest_damping moves least; give rest_damping in 1/s")
        return None
    d = scalar(rest_damping, "rest_damping")
    if (number := at_defaults(d)) is not None and not number.item() >= 0:
        raise ModelError(f"concurrent: rest_damping must be at least zero, got {brief(rest_damping)}: motion would grow")
    return d


def _servos(terms: Terms, outputs: Sequence[Output], w: ca.SX) -> tuple[list[ServoLaw], ca.SX]:
    """The servo law of each output; and whether the reference of a pose, attitude or heading has left its group."""
    servos, left, begin = [], ca.SX(0), 0
    for o in outputs:
        end = begin + len(o.reference.w_names)
        at = moving(terms.kinematics, o)
        check_moves(o, at.J)
        check_in_group(o, terms.mechanism)
        goal = goal_at(o, terms.t, w[begin:end, 0])
        left = ca.logic_or(left, leaves_group(goal)) if o.turning else left
        servos.append(servo(o, at.R, at.p, at.J @ terms.v, goal))
        begin = end
    return servos, left


def _signals(outputs: Sequence[Output], servos: Sequence[ServoLaw], G: ca.SX) -> dict[str, ca.SX]:
    """The recorded signals of the law.   G: (k, motors) generalised Jacobian."""
    basins = [y.value / half_turn(o) for o, y in _turning(outputs, servos)]
    return {
        "output_error": ca.vertcat(*[y.error for y in servos]),
        "velocity_error": ca.vertcat(*[y.rate for y in servos]),
        "lyapunov": sum((y.value for y in servos), ca.SX(0)),
        "lyapunov_rate": sum((y.decay for y in servos), ca.SX(0)),
        "sigma_min": smallest_singular_value(G),
        "basin": ca.mmax(ca.vertcat(0, *basins)),
    }


def _half_turned(outputs: Sequence[Output], servos: Sequence[ServoLaw]) -> ca.SX:
    """Whether an attitude error is within HALF_TURN of half a turn."""
    angles = [ca.norm_2(y.error[o.turning, 0]) for o, y in _turning(outputs, servos)]
    return ca.mmax(ca.vertcat(0, *angles)) > np.pi - HALF_TURN


def _turning(outputs: Sequence[Output], servos: Sequence[ServoLaw]) -> list[tuple[Output, ServoLaw]]:
    """The outputs with rotational coordinates, and their servo laws."""
    return [(o, y) for o, y in zip(outputs, servos, strict=True) if o.turning]


def _check(outputs: tuple[Output, ...], d: ca.SX | None, unweighted: bool, m: Mechanism, p: np.ndarray) -> None:
    """Check a law before a run with parameters (runs, np), and warn of motion that nothing damps.

    unweighted: whether no weight of the inputs is given.

    Raises ModelError: the outputs or gains are not admissible at these parameters.
    """
    _check_values(outputs, d, m, p)
    names = tuple(name for o in outputs for name in o.names)
    _check_count(m, names)
    check_reach(m, outputs, p)
    spare = independent_motors(m) - len(names)
    if spare > 0 and d is None and unweighted:
        notice(
            f"concurrent: the motors of {m.name!r} drive {plural(spare, 'motion')} besides the "
            f"{plural(len(names), 'coordinate')} of the outputs, and the smallest inputs do not damp them: give "
            "rest_damping=..., in 1/s, or weight=... to confirm that the smallest inputs are meant",
            RunWarning,
        )


def _check_values(outputs: Sequence[Output], d: ca.SX | None, m: Mechanism, p: np.ndarray) -> None:
    """Raise ModelError where gains or the rest damping are not admissible at the parameters (runs, np) of a run."""
    gains = [(f"output {o.kind!r} of {o.body!r}: {n}", getattr(o, n)) for o in outputs for n in GAINS]
    f = ca.Function("gains", [m.p_symbols], [ca.densify(x) for x in (*[X for _, X in gains], ca.SX(0) if d is None else d)])
    for label, values in at_values(m, p):
        *matrices, damping = (np.array(x) for x in f.call([values]))
        for (what, _), X in zip(gains, matrices, strict=True):
            if not is_definite(X):
                raise ModelError(f"{label}{what}: must be symmetric and positive definite, got {brief(X.tolist())}")
        if not damping.item() >= 0:
            raise ModelError(f"{label}concurrent: rest_damping must be at least zero, got {damping.item():.6g}")


class Share(NamedTuple):
    """Inputs that produce the outputs' V_dot.   u: (motors, 1).   rank: of D.   side: sign of det D if D is square, else 1."""

    u: ca.SX
    rank: ca.SX
    side: ca.SX


def _inputs(terms: Terms, x: Decoupling, V_dot: ca.SX, R: ca.SX, d: ca.SX | None, rest_weight: Any) -> Share:
    """Inputs with D u = V_dot: the smallest ones, or with d those that damp the motion that the outputs leave open, if any."""
    k, motors = x.D.shape
    if d is None or motors <= k:
        return _least(terms.mechanism, x, V_dot, R)
    if rest_weight is None:
        return _damped(terms, x, V_dot, d, R)
    return _damped_motors(terms, x, V_dot, d, _rest_weights(terms, x, rest_weight))


def _least(m: Mechanism, x: Decoupling, V_dot: ca.SX, R: ca.SX) -> Share:
    """Smallest u^T R u with D u = V_dot."""
    k, motors = x.D.shape
    square = k == motors
    unit = _motor_units(x) if square else ca.SX(1 / ca.sqrt(R))
    solved = orthogonalise(_by_column(x.D, unit), ca.SX(k, 0), RANK_TOLERANCE, _driven_share(x), passes=1)
    return Share(unit * smallest(solved, V_dot), solved.rank, handedness(solved.Q) if square else ca.SX(1))


def _motor_units(x: Decoupling) -> ca.SX:
    """(motors, 1) units of the inputs that make the diagonal of O one, so that inputs of different kinds are comparable."""
    return 1 / ca.sqrt(ca.fmax(ca.diag(x.motor_mobility), NOTHING))


def _driven_share(x: Decoupling) -> ca.SX:
    """(k, 1) share of each output's mobility that comes from the motors; D loses rank where a share is nearly zero."""
    return ca.sum2(_by_column(x.D, _motor_units(x)) ** 2) / ca.fmax(x.mobility, NOTHING)


def _damped(terms: Terms, x: Decoupling, V_dot: ca.SX, d: ca.SX, R: ca.SX) -> Share:
    """D u = V_dot with |a + S u + d v| as small as possible in the metric of inertia."""
    rest = x.S.T @ (terms.M @ (x.a + d * terms.v))
    gram = x.D @ x.jacobian.T
    solved = solve_semidefinite(gram, V_dot + x.jacobian @ rest, RANK_TOLERANCE, ca.diag(gram) / ca.fmax(x.mobility, NOTHING))
    tau = x.D.T @ solved.x - rest
    return Share(_shared(terms, x, tau, R), ca.sum1(solved.independent), ca.SX(1))


def _damped_motors(terms: Terms, x: Decoupling, V_dot: ca.SX, d: ca.SX, W: ca.SX) -> Share:
    """D u = V_dot with |r_dot + d r| of the rates r along the motors as small as possible in the metric of W."""
    drift = motor_matrix(terms).T @ (x.a + d * terms.v)
    weighted = _by_column(x.jacobian, 1 / W)
    solved = solve_semidefinite(weighted @ x.jacobian.T, V_dot + x.jacobian @ drift, RANK_TOLERANCE, _driven_share(x))
    return Share(solve_definite(x.motor_mobility, weighted.T @ solved.x - drift), ca.sum1(solved.independent), ca.SX(1))


def _damped_by_elimination(terms: Terms, x: Undriven, nu: ca.SX, d: ca.SX, W: ca.SX | None) -> Share:
    """Inputs with V_dot = nu that damp the remaining motion by d, in the metric of inertia or of W, with undriven velocities
    eliminated.

        y = (G N^-1 G^T)^-1 [nu - drift + d G r],  r_dot = N^-1 G^T y - d r,  N = W or Mss + Msb X
    """
    r, N = terms.v[x.s, 0], x.inertia if W is None else ca.diag(W)
    root = factor_tree(N, range(-1, len(x.s) - 1)) if W is None else factor_tree(N, [-1] * len(x.s))
    H = solve_W(root, x.G.T)
    solved = solve_semidefinite(H.T @ H, nu - x.drift + d * (x.G @ r), RANK_TOLERANCE, x.share)
    r_dot = solve_WT(root, H @ solved.x) - d * r
    return Share(inputs(terms, x, r_dot), ca.sum1(solved.independent), ca.SX(1))


def _rest_weights(terms: Terms, x: Decoupling, weight: Any) -> ca.SX:
    """(motors, 1) W. Raises ModelError: some motors move the machine as others do."""
    m = terms.mechanism
    if motors_are_redundant(m):
        raise ModelError(
            f"concurrent: rest_weight weights the rates along the motors, but some motors of {m.name!r} move it as others do, "
            "so that their rates are the same: leave out motors or rest_weight"
        )
    return weights(m, weight)


def _shared(terms: Terms, x: Decoupling, tau: ca.SX, R: ca.SX) -> ca.SX:
    """u with O u = tau; the one with smallest u^T R u where motors move the machine alike."""
    if not motors_are_redundant(terms.mechanism):
        return solve_definite(x.motor_mobility, tau)
    unit = 1 / ca.sqrt(R)
    rows = orthogonalise(_by_column(x.motor_mobility, unit), ca.SX(x.motor_mobility.shape[0], 0), RANK_TOLERANCE)
    return unit * smallest(rows, tau)


def _by_column(A: ca.SX, x: ca.SX) -> ca.SX:
    """A (k, n) with each column multiplied by its entry of x (n, 1)."""
    return A * ca.repmat(x.T, A.shape[0], 1)


def _check_outputs(outputs: Any) -> None:
    """Raise ModelError unless outputs is a list of different Outputs."""
    if not several(outputs) or not len(outputs) or not all(isinstance(o, Output) for o in outputs):
        raise ModelError(f"concurrent: a list of outputs made by control.output(...) is needed, got {brief(outputs)}")
    seen = set()
    for o in outputs:
        for i in o.axes if o.kind == "position" else (0,):
            this = (o.body, o.seen_from, o.kind, "" if o.kind in ("attitude", "heading") else str(o.at), i)
            if this in seen:
                raise ModelError(f"concurrent: the {o.kind} of {o.body!r} is an output twice; leave one out")
            seen.add(this)


def _check_count(m: Mechanism, names: Sequence[str]) -> None:
    """Raise ModelError where the outputs have more coordinates than the mechanism has actuators."""
    if len(names) > len(m.actuators):
        raise ModelError(
            f"concurrent: {len(names)} coordinates of outputs ({', '.join(names)}) for {plural(len(m.actuators), 'actuator')} "
            f"of {m.name!r} ({', '.join(m.motor_names) or 'none'}); leave out outputs, or add actuators"
        )


def _lost(outputs: Sequence[Output], names: Sequence[str]) -> Reason:
    """Reason that names the outputs that do not move, the motors that are idle, and the joints whose positions cause it."""

    def slope(T: Terms) -> ca.SX:
        """(nv, 1) slope of log det(G G^T) / 2 along each velocity; the singular value that vanishes dominates it."""
        G = decoupling(T, outputs).jacobian
        log_det = ca.sum1(ca.log(ca.diag(ca.chol(G @ G.T))))
        return T.kinematics.kinematic_matrix.T @ ca.gradient(log_det, T.q)

    def bound(T: Terms) -> ca.SX:
        """(k, motors) upper bound of the generalised Jacobian's entries, from mobilities; far smaller entries are rounding."""
        x = decoupling(T, outputs)
        return ca.sqrt(x.mobility @ (1 / ca.fmax(ca.diag(x.motor_mobility), NOTHING)).T)

    def words(m: Mechanism, x: Mapping[str, np.ndarray]) -> str:
        """The coordinates that hardly move, by which motors and at which joints."""
        jacobian = np.where(np.abs(x["jacobian"]) > ROUNDING * x["most"], x["jacobian"], 0.0)
        least = weakest(jacobian.T)
        still, idle = mainly(participation(least.inputs), names, 3), mainly(participation(least.outputs), m.motor_names, 3)
        slopes, q = x["slope"].ravel(), x["q"].ravel()
        joints = [j.name for j in m.joints if j.nv]
        sizes = np.array([np.linalg.norm(slopes[m.v_slices[n]]) for n in joints])
        known = jacobian.any() and np.isfinite(sizes).all() and sizes.any()
        causes = mainly(sizes, joints, 3).split(", ") if known else joints
        at = [f"{m.q_names[i]} = {q[i]:.4g}" for n in causes for i in range(m.nq)[m.q_slices[n]]]
        return f"{still} hardly move, by {least.gain:.2g} for a unit of {idle}, because of {', '.join(at)}"

    matrices = {"jacobian": lambda T: decoupling(T, outputs).jacobian, "most": bound, "slope": slope, "q": lambda T: T.q}
    return Reason(matrices, words)


def _turned(outputs: Sequence[Output]) -> Reason:
    """Reason that names the output whose attitude error is half a turn."""
    turning = [o for o in outputs if o.turning]

    def angle(T: Terms, o: Output) -> ca.SX:
        at, gamma = moving(T.kinematics, o), goal_at(o, T.t, ca.SX(0, 1))[0]
        return ca.norm_2(ca.SX(so3.log(at.R.T @ gamma[:3, :3])))

    def words(m: Mechanism, x: Mapping[str, np.ndarray]) -> str:
        angles = x["angles"].ravel()
        o = turning[int(np.argmax(angles))]
        return f"the {o.kind} of {o.body!r} is {angles.max():.4g} rad off; start nearer, or let the reference begin nearby"

    return Reason({"angles": lambda T: ca.vertcat(*[angle(T, o) for o in turning])}, words)


def _left(outputs: Sequence[Output]) -> Reason:
    """Reason that names the output whose reference is not a motion of its group."""
    turning = [o for o in outputs if o.turning]

    def left(T: Terms) -> ca.SX:
        return ca.vertcat(ca.SX(0, 1), *[leaves_group(goal_at(o, T.t, ca.SX(0, 1))) for o in turning])

    def words(m: Mechanism, x: Mapping[str, np.ndarray]) -> str:
        outside = [f"{o.kind} of {o.body!r}" for o, gone in zip(turning, x["left"].ravel(), strict=True) if gone]
        # A reference may leave its group within the failed step, so that none is outside at the start of the step.
        return f"it is the reference of the {' or the '.join(outside or [f'{o.kind} of {o.body!r}' for o in turning])}"

    return Reason({"left": left}, words)
