"""Concurrent control of a base and its arms: outputs on Lie groups follow references of their own. [chhabra14 ch. 5]

The outputs of base and end effectors together are a point of a product of groups with body velocities V = E J v, and each
requires a V_dot = nu of its own (`control.output`):

    u = D^+ [nu - drift],    D = E J S,    drift = E J a + E J_dot v,                                     (5.4.30)

where v_dot = a + S u on the constraints. Conserved momentum and rolling wheels are in a and S, so that D is the generalised
Jacobian times an inertia: nothing has to be reduced first.

More motors than outputs leave motions open. The smallest inputs, D^+, do not act on them, and light wrists then spin; with a
damping d the motion is, of all that give the outputs, the one nearest to v_dot = -d v in the metric of inertia:

    O u = D^T y - S^T M (a + d v),    y = (D O^-1 D^T)^-1 [nu - drift + D O^-1 S^T M (a + d v)],    O = B^T S,

which spares what is heavy: arms swing before wheels turn. With weights W the rates r = B^T v along the motors come nearest to
r_dot = -d r in the metric of W, by the generalised Jacobian G = D O^-1:

    O u = W^-1 G^T y - B^T (a + d v),    y = (G W^-1 G^T)^-1 [nu - drift + G B^T (a + d v)].
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from pfaffian.control.allocation import weights
from pfaffian.control.law import Command, Control, Fault, Reason, at_values, maker, motor_matrix, with_no_wrench
from pfaffian.control.motors import accelerations, independent_motors, motors_to_spare
from pfaffian.control.output import (
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
from pfaffian.control.reach import check_reach
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
"""Distance from half a turn [rad] within which an attitude error counts as having no unique logarithm: it would jump to the
other side.
"""

TURNED = f"an attitude error is within {HALF_TURN:g} rad of half a turn, where it has two logarithms and the law no direction"
LEFT = (
    "the reference of an output is no motion of its group: R^T R = 1 with determinant 1 is needed, and a rate that keeps it; "
    "give samples closer to each other, or a function of time"
)
LOST = "the outputs are not within the inputs' reach here: the decoupling matrix has lost rank"


class Decoupling(NamedTuple):
    """How the inputs move the outputs, V_dot = D u + drift.

    D: (k, motors).   drift: (k, 1).   a: (nv, 1), S: (nv, motors) of v_dot = a + S u.
    jacobian: (k, motors) generalised Jacobian, outputs' velocities for rates along the motors at constant momentum.
    motor_mobility: (motors, motors) O = B^T S, accelerations along the motors.
    mobility: (k, 1) of each output if every velocity were driven, E J M^-1 J^T E^T.
    """

    D: ca.SX
    drift: ca.SX
    jacobian: ca.SX
    motor_mobility: ca.SX
    mobility: ca.SX
    a: ca.SX
    S: ca.SX


def decoupling(terms: Terms, outputs: Sequence[Output]) -> Decoupling:
    """The decoupling of outputs [chhabra14 (5.3.27)], from v_dot = a + S u of any formulation."""
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
"""Units of the signals that the law records beside errors."""


@maker
def concurrent(outputs: Sequence[Output], *, weight: Any = None, rest_damping: Any = None, rest_weight: Any = None) -> Control:
    """Steer outputs of base and arms at once on SE(3), SO(3), R^n, SE(2), SO(2). [chhabra14 theorem 5.4.2]

        u = D^+ [nu - drift],    V_dot = D u + drift of the outputs,    nu as their servo laws require it

    With as many inputs as coordinates of the outputs each error evolves by itself, v_e_dot = nu - ..., and V_L falls as
    -<K_D v_e, v_e>; with more inputs u is the smallest u^T R u of those that do it, or with a `rest_damping` the one that
    damps the remaining motion. Bases without actuators, conserved momentum and rolling wheels are taken into account, and
    `pf.reduce` of the machine runs under the same law. The errors vanish whatever the motion that no output sees;
    `zero_dynamics_along` tells whether that motion is stable.

    Args:
        outputs: a list, made by `output`.
        weight: (motors,) positive numbers R [1/N^2, 1/(N m)^2]; ones if None. Given without a rest_damping it says that the
            smallest inputs are meant.
        rest_damping: d [1/s] of motion that the outputs leave open: |v_dot + d v| in the metric of inertia is made as small as
            they permit, which also compensates weight; R decides between motors that move the machine alike. None leaves that
            motion to the smallest inputs, which do not damp it: for short runs, or if all motors are needed for the outputs.
        rest_weight: (motors,) positive numbers W: |r_dot + d r| of the rates r along the motors, in the metric of W, is made
            small instead. Low weights let reaction wheels carry what arms would; 1 / (highest rate)^2 is a fair choice. None
            for the metric of inertia.
    Returns:
        Control that records, output by output along the group's axes, output_error xi_e and velocity_error v_e; lyapunov V_L
        and lyapunov_rate, in units of I; sigma_min, the smallest singular value of the generalised Jacobian, outputs'
        velocities over rates along the motors [m or rad per m or rad], at zero of which it ends; basin, the largest ratio of an
        output's V_L to the value at which its error can be half a turn: below 1 all errors vanish exponentially.
    Stops a run: D has lost rank; the reason names the output, the motors and the configuration. An attitude error has come to
    half a turn, or a reference has left its group; the reason names the output. Where inputs grow so fast that a step jumps
    over a loss of rank and diverges, the reason says how near it was shortly before, and to which.
    Raises ModelError: no outputs, or one twice; a rest_damping below zero, at the parameters of a run too; a rest_weight
    without a rest_damping, or with motors that move the machine alike. At the run: unknown bodies, more coordinates than
    actuators, an output that cannot move, outputs that at no configuration move independently of each other (a position beside
    the pose of the same body, a point on an axle).
    Warns RunWarning: motors are left that neither rest_damping nor weight says what to do with.

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
            (u, rank, side), G = _calmed(terms, eliminated, nu, d, W), eliminated.G
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
    """The damping d, None if there is none. Raises ModelError: it is negative, or missing beside a weight."""
    if rest_damping is None:
        if rest_weight is not None:
            raise ModelError("concurrent: rest_weight says which motors a rest_damping spares; give that too, in 1/s")
        return None
    d = scalar(rest_damping, "rest_damping")
    if (number := at_defaults(d)) is not None and not number.item() >= 0:
        raise ModelError(f"concurrent: rest_damping must be at least zero, got {brief(rest_damping)}: motion would grow by it")
    return d


def _servos(terms: Terms, outputs: Sequence[Output], w: ca.SX) -> tuple[list[ServoLaw], ca.SX]:
    """The servo law of each output; and whether a reference of those that turn has left its group."""
    servos, left, begin = [], ca.SX(0), 0
    for o in outputs:
        end = begin + len(o.reference.w_names)
        at = moving(terms.kinematics, o)
        check_moves(o, at.J)
        check_in_group(o, terms.kinematics)
        goal = goal_at(o, terms.t, w[begin:end, 0])
        left = ca.logic_or(left, leaves_group(goal)) if o.turning else left
        servos.append(servo(o, at.R, at.p, at.J @ terms.v, goal))
        begin = end
    return servos, left


def _signals(outputs: Sequence[Output], servos: Sequence[ServoLaw], G: ca.SX) -> dict[str, ca.SX]:
    """What the law records.   G: generalised Jacobian."""
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
    """Whether an attitude error is half a turn, but for HALF_TURN."""
    angles = [ca.norm_2(y.error[o.turning, 0]) for o, y in _turning(outputs, servos)]
    return ca.mmax(ca.vertcat(0, *angles)) > np.pi - HALF_TURN


def _turning(outputs: Sequence[Output], servos: Sequence[ServoLaw]) -> list[tuple[Output, ServoLaw]]:
    """The outputs that turn, with their servo laws."""
    return [(o, y) for o, y in zip(outputs, servos, strict=True) if o.turning]


def _check(outputs: tuple[Output, ...], d: ca.SX | None, unsaid: bool, m: Mechanism, p: np.ndarray) -> None:
    """Before a run: raise ModelError for what cannot work at its parameters (runs, np); warn of motion that nothing damps.

    unsaid: whether no weight says how redundant motors share.
    """
    _check_values(outputs, d, m, p)
    names = tuple(name for o in outputs for name in o.names)
    _check_count(m, names)
    check_reach(m, outputs, p)
    spare = independent_motors(m) - len(names)
    if spare > 0 and d is None and unsaid:
        notice(
            f"concurrent: the motors of {m.name!r} drive {plural(spare, 'motion')} beside the "
            f"{plural(len(names), 'coordinate')} of the outputs, and the smallest inputs do not damp them: give "
            "rest_damping=..., in 1/s, or say by weight=... that the smallest inputs are meant",
            RunWarning,
        )


def _check_values(outputs: Sequence[Output], d: ca.SX | None, m: Mechanism, p: np.ndarray) -> None:
    """Raise ModelError where gains or the rest damping are not admissible at the parameters (runs, np) of a run."""
    gains = [(f"output {o.kind!r} of {o.body!r}: {n}", getattr(o, n)) for o in outputs for n in GAINS]
    f = ca.Function("gains", [m.p_symbols], [ca.densify(x) for x in (*[X for _, X in gains], ca.SX(0) if d is None else d)])
    for words, values in at_values(m, p):
        *found, damping = (np.array(x) for x in f.call([values]))
        for (what, _), X in zip(gains, found, strict=True):
            if not is_definite(X):
                raise ModelError(f"{words}{what}: must be symmetric and positive definite, got {brief(X.tolist())}")
        if not damping.item() >= 0:
            raise ModelError(f"{words}concurrent: rest_damping must be at least zero, got {damping.item():.6g}")


class Share(NamedTuple):
    """u: (motors, 1).   rank: of D.   side: sign of det D where no other u gives the outputs, else 1."""

    u: ca.SX
    rank: ca.SX
    side: ca.SX


def _inputs(terms: Terms, x: Decoupling, V_dot: ca.SX, R: ca.SX, d: ca.SX | None, rest_weight: Any) -> Share:
    """Inputs with D u = V_dot: the smallest ones, or those that damp by d what the outputs leave open, if they leave any."""
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
    """(motors, 1) units of the inputs in which each accelerates its own motor by one."""
    return 1 / ca.sqrt(ca.fmax(ca.diag(x.motor_mobility), NOTHING))


def _driven_share(x: Decoupling) -> ca.SX:
    """(k, 1) share of each output's mobility that comes from the motors; where it is next to none, rank is lost."""
    return ca.sum2(_by_column(x.D, _motor_units(x)) ** 2) / ca.fmax(x.mobility, NOTHING)


def _damped(terms: Terms, x: Decoupling, V_dot: ca.SX, d: ca.SX, R: ca.SX) -> Share:
    """D u = V_dot with |a + S u + d v| as small as possible in the metric of inertia."""
    push = x.S.T @ (terms.M @ (x.a + d * terms.v))
    left = x.D @ x.jacobian.T
    solved = solve_semidefinite(left, V_dot + x.jacobian @ push, RANK_TOLERANCE, ca.diag(left) / ca.fmax(x.mobility, NOTHING))
    tau = x.D.T @ solved.x - push
    return Share(_shared(terms, x, tau, R), ca.sum1(solved.independent), ca.SX(1))


def _damped_motors(terms: Terms, x: Decoupling, V_dot: ca.SX, d: ca.SX, W: ca.SX) -> Share:
    """D u = V_dot with |r_dot + d r| of the rates r along the motors as small as possible in the metric of W."""
    drift = motor_matrix(terms).T @ (x.a + d * terms.v)
    cheap = _by_column(x.jacobian, 1 / W)
    solved = solve_semidefinite(cheap @ x.jacobian.T, V_dot + x.jacobian @ drift, RANK_TOLERANCE, _driven_share(x))
    return Share(solve_definite(x.motor_mobility, cheap.T @ solved.x - drift), ca.sum1(solved.independent), ca.SX(1))


def _calmed(terms: Terms, x: Undriven, nu: ca.SX, d: ca.SX, W: ca.SX | None) -> Share:
    """The same two, V_dot = nu and the rest damped by d in the metric of inertia or of W, with undriven velocities eliminated.

    y = (G N^-1 G^T)^-1 [nu - drift + d G r],  r_dot = N^-1 G^T y - d r,  N being W or M^ = Mss + Msb X.
    """
    r, N = terms.v[x.s, 0], x.inertia if W is None else ca.diag(W)
    root = factor_tree(N, range(-1, len(x.s) - 1)) if W is None else factor_tree(N, [-1] * len(x.s))
    H = solve_W(root, x.G.T)
    solved = solve_semidefinite(H.T @ H, nu - x.drift + d * (x.G @ r), RANK_TOLERANCE, x.share)
    r_dot = solve_WT(root, H @ solved.x) - d * r
    return Share(inputs(terms, x, r_dot), ca.sum1(solved.independent), ca.SX(1))


def _rest_weights(terms: Terms, x: Decoupling, weight: Any) -> ca.SX:
    m = terms.mechanism
    if motors_to_spare(m):
        raise ModelError(
            f"concurrent: rest_weight weighs the rates along the motors, and some of {m.name!r} move it as others do, so that "
            "their rates are the same: leave motors or rest_weight out"
        )
    return weights(m, weight)


def _shared(terms: Terms, x: Decoupling, tau: ca.SX, R: ca.SX) -> ca.SX:
    """u with O u = tau; the smallest u^T R u where motors move the machine alike."""
    if not motors_to_spare(terms.mechanism):
        return solve_definite(x.motor_mobility, tau)
    unit = 1 / ca.sqrt(R)
    rows = orthogonalise(_by_column(x.motor_mobility, unit), ca.SX(x.motor_mobility.shape[0], 0), RANK_TOLERANCE)
    return unit * smallest(rows, tau)


def _by_column(A: ca.SX, x: ca.SX) -> ca.SX:
    return A * ca.repmat(x.T, A.shape[0], 1)


def _check_outputs(outputs: Any) -> None:
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
    if len(names) > len(m.actuators):
        raise ModelError(
            f"concurrent: {len(names)} coordinates of outputs ({', '.join(names)}) for {plural(len(m.actuators), 'actuator')} "
            f"of {m.name!r} ({', '.join(m.motor_names) or 'none'}); leave outputs out, or give it more actuators"
        )


def _lost(outputs: Sequence[Output], names: Sequence[str]) -> Reason:
    """Names the outputs that no motor moves, the motors that are then idle, and the joints whose positions cause it."""

    def slope(T: Terms) -> ca.SX:
        """(nv, 1) slope of log det along each velocity; dominated by the singular value that vanishes."""
        G = decoupling(T, outputs).jacobian
        falls = ca.sum1(ca.log(ca.diag(ca.chol(G @ G.T))))
        return T.kinematics.kinematic_matrix.T @ ca.gradient(falls, T.q)

    def most(T: Terms) -> ca.SX:
        """Upper bound of what the motors can do to each output, from its mobility; far less is rounding of zero."""
        x = decoupling(T, outputs)
        return ca.sqrt(x.mobility @ (1 / ca.fmax(ca.diag(x.motor_mobility), NOTHING)).T)

    def words(m: Mechanism, x: Mapping[str, np.ndarray]) -> str:
        jacobian = np.where(np.abs(x["jacobian"]) > ROUNDING * x["most"], x["jacobian"], 0.0)
        found = weakest(jacobian.T)
        still, idle = mainly(participation(found.inputs), names, 3), mainly(participation(found.outputs), m.motor_names, 3)
        steep, q = x["slope"].ravel(), x["q"].ravel()
        joints = [j.name for j in m.joints if j.nv]
        turns = np.array([np.linalg.norm(steep[m.v_slices[n]]) for n in joints])
        places = jacobian.any() and np.isfinite(turns).all() and turns.any()
        guilty = mainly(turns, joints, 3).split(", ") if places else joints
        at = [f"{m.q_names[i]} = {q[i]:.4g}" for n in guilty for i in range(m.nq)[m.q_slices[n]]]
        return f"{still} hardly move, by {found.gain:.2g} for a unit of {idle}, because of {', '.join(at)}"

    matrices = {"jacobian": lambda T: decoupling(T, outputs).jacobian, "most": most, "slope": slope, "q": lambda T: T.q}
    return Reason(matrices, words)


def _turned(outputs: Sequence[Output]) -> Reason:
    """Names the attitude error that is half a turn."""
    turning = [o for o in outputs if o.turning]

    def angle(T: Terms, o: Output) -> ca.SX:
        at, gamma = moving(T.kinematics, o), goal_at(o, T.t, ca.SX(0, 1))[0]
        return ca.norm_2(ca.SX(so3.log(at.R.T @ gamma[:3, :3])))

    def words(m: Mechanism, x: Mapping[str, np.ndarray]) -> str:
        angles = x["angles"].ravel()
        o = turning[int(np.argmax(angles))]
        return f"the {o.kind} of {o.body!r} is {angles.max():.4g} rad off; start nearer, or lead the reference there"

    return Reason({"angles": lambda T: ca.vertcat(*[angle(T, o) for o in turning])}, words)


def _left(outputs: Sequence[Output]) -> Reason:
    """Names the reference that is not a motion of its group."""
    turning = [o for o in outputs if o.turning]

    def left(T: Terms) -> ca.SX:
        return ca.vertcat(ca.SX(0, 1), *[leaves_group(goal_at(o, T.t, ca.SX(0, 1))) for o in turning])

    def words(m: Mechanism, x: Mapping[str, np.ndarray]) -> str:
        found = [f"{o.kind} of {o.body!r}" for o, some in zip(turning, x["left"].ravel(), strict=True) if some]
        # It may leave its group only within the step that was tried, not yet at its start.
        return f"it is that of the {' or the '.join(found or [f'{o.kind} of {o.body!r}' for o in turning])}"

    return Reason({"left": left}, words)
