"""One time step as CasADi functions: the integrator, and the correction onto the constraints.

The state x is that of a System, [q; v] or another, followed by the states that a law integrates.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, NamedTuple

import casadi as ca

from pfaffian.dynamics.motion import shortest_change
from pfaffian.errors import ModelError, brief
from pfaffian.kernel import guarded
from pfaffian.maths import linear
from pfaffian.maths.minimum_norm import MinimumNorm
from pfaffian.maths.pack import unpack
from pfaffian.maths.tree_factor import TreeFactor, solve_WT
from pfaffian.model.mechanism import Mechanism
from pfaffian.model.number import named_float
from pfaffian.parts.contact import compliant_parts
from pfaffian.simulate.step.integrators import INTEGRATORS, KINKED, NEWTON
from pfaffian.simulate.step.method import Moved, Stage, StepData, Tangent
from pfaffian.states.abstract_system import At
from pfaffian.states.variables import Variables, normalised, of_joints
from pfaffian.terms.pfaffian import POSITION, VELOCITY, Rows
from pfaffian.terms.terms import Terms, shared
from pfaffian.terms.traced_now import remembered

DEFAULT = "rk4"
"""The integrator of runs with fixed steps, unless a scheme names another."""

FAULTS = (
    "constraint violation above the limit after correction: take a shorter step, or look for rows that contradict each other",
)
"""Meaning of each fault of the step, in order; the first has the status 2."""


@dataclass(frozen=True)
class Scheme:
    """How a run is integrated: all settings that change the compiled step.

    Args:
        formulation: a name in `FORMULATIONS`, or auto: articulated for a tree unless a law needs the mass matrix, control-force
            with servo constraints, gauss otherwise.
        integrator: rk4; euler, semi-implicit; midpoint, implicit, which keeps the energy; tr-bdf2, implicit, for stiff springs;
            dopri5 and dop853, pairs of order 5 and 8, which also take steps under error control. docs/integrators.md says what
            each is for. None, the default: rk4, or with an `accuracy` the pair that suits it.
        corrections: largest number of Newton iterations onto phi = 0 and eta = 0 after each step, 0 to 20; 0: none.
        tolerance: iterations end where |phi|, or |eta| of rows without phi, is at most this; 0: all iterations are done.
        violation_limit: a run stops when |phi|, or |eta| of rows without phi, exceeds this after the last iteration. [aghili05
            section VI] This and `tolerance` are relative to the machine's length for lengths, and in rad for angles.
        saturate: cut the inputs at their limits (`actuator`, a joint's effort) within the step. `u` in the result is the
            applied input, `u_cut` the part that was cut off. Refused where forces are not a function of the inputs alone: with
            servo constraints in the mechanism, and under a law that measures reactions.
        iterations: number of Newton iterations in each stage of `tr-bdf2`, 2 to 40. None, the default: 4, enough for springs
            and dampers, and 16 for machines with contacts or stops, whose forces have kinks; the result contains the number.
    Raises ModelError: an unknown name, or a number outside these ranges.

    Example:
        The midpoint rule keeps the energy of an oscillator, here 4 J, to rounding:

        >>> import pfaffian as pf
        >>> slide = pf.joint("x", "prismatic", "world", "box", axis=(1, 0, 0), stiffness=8.0)
        >>> m = pf.mechanism("oscillator", [pf.body("box", mass=2.0)], [slide])
        >>> scheme = pf.Scheme(integrator="midpoint")
        >>> result = pf.run(m, {"x": 1.0}, duration=2.0, step=0.02, scheme=scheme, error_bound=0.1, backend="numpy")
        >>> round(float(result["energy"][-1]), 9)
        4.0
    """

    formulation: str = "auto"
    integrator: str | None = None
    corrections: int = 2
    tolerance: float = 0.0
    violation_limit: float = 1e-6
    saturate: bool = False
    iterations: int | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.formulation, str):
            raise ModelError(f"formulation must be a name of FORMULATIONS or 'auto', got {brief(self.formulation)}")
        INTEGRATORS.named(DEFAULT if self.integrator is None else self.integrator)
        if isinstance(self.corrections, bool) or not (isinstance(self.corrections, int) and 0 <= self.corrections <= 20):
            raise ModelError(f"corrections must be a whole number from 0 to 20, got {self.corrections!r}")
        if not isinstance(self.saturate, bool):
            raise ModelError(f"saturate must be True or False, got {self.saturate!r}")
        n = NEWTON if self.iterations is None else self.iterations
        if isinstance(n, bool) or not (isinstance(n, int) and 2 <= n <= 40):
            raise ModelError(f"iterations must be a whole number from 2 to 40, got {self.iterations!r}")
        if self.iterations is not None and not self.stiff:
            name = DEFAULT if self.integrator is None else self.integrator
            raise ModelError(f"iterations: {name} has none to set; only integrator='tr-bdf2' does")
        if not named_float(self.violation_limit, "violation_limit") > 0:
            raise ModelError(f"violation_limit must be positive, got {self.violation_limit!r}")
        if not 0 <= named_float(self.tolerance, "tolerance") <= self.violation_limit:
            raise ModelError(
                f"tolerance must lie between 0 and violation_limit {self.violation_limit!r}, got {self.tolerance!r}: beyond "
                "that a run would stop before it is corrected"
            )

    @property
    def stiff(self) -> bool:
        """Whether the integrator passes over motions that are too fast for its step, as tr-bdf2 does."""
        return INTEGRATORS.named(DEFAULT if self.integrator is None else self.integrator).stiff


def settings_of(scheme: Scheme, m: Mechanism) -> dict[str, Any]:
    """The fields of a scheme, with the `iterations` that it uses for this mechanism."""
    usual = KINKED if compliant_parts(m) else NEWTON
    return asdict(scheme) | {"iterations": usual if scheme.iterations is None else scheme.iterations}


class RightHandSide(NamedTuple):
    """What `Functions.rhs` gives at a state: rate, faults and their sides, numbers for the rest of the step, and records.

    carried: for the correction and the integrator.
    """

    x_dot: Any
    faults: Any
    sides: Any
    carried: Any
    records: Any


class Functions(NamedTuple):
    """The functions that a step calls. The first three are called, not inlined, so that each is compiled once.

    rhs: (x, u, p, t) -> a RightHandSide.
    project: (x, p, t, near) -> (x, violation); `near` is the part of `carried` for the correction.
    energy: (x, way, p, t) -> T + V and its derivative along `way`.
    terms: structure of the other part of `carried`, for the integrator.
    settled: (x, t) -> x projected onto the state's manifold, inlined.   tangent, limit: of the state.
    solved: (k, base, g, u, p, t) -> k, see `StepData`.
    slopes: (x, u, p, t) -> derivatives, and the number of coordinates, see `StepData`; only for integrators that need them.
    remaining: (guard, x, p, t, near, dq, dv) -> dq, dv: what a correction of x leaves of a change of q and v; None where
        nothing is corrected, or without an explicit pair.
    """

    rhs: ca.Function
    project: ca.Function
    energy: ca.Function
    terms: Any
    settled: Callable[[ca.SX, ca.SX], ca.SX]
    tangent: Tangent
    limit: float
    solved: Callable[..., ca.SX] = lambda k, *_: k
    slopes: ca.Function | None = None
    coordinates: int = 0
    remaining: ca.Function | None = None


def time_step(
    functions: Functions,
    m: Mechanism,
    variables: Variables,
    scheme: Scheme,
    first: ca.Function | None = None,
    now: Callable[[ca.SX, ca.SX], ca.SX] = lambda p, discrete: p,
    arrived: ca.Function | None = None,
    *,
    embedded: bool = False,
) -> ca.Function:
    """(x, u0, u1, p, t, h) -> (x_next, faults); x_next is without the discrete last part of x, which a step does not change.

    variables: the variables that are stepped.   first: replaces rhs at the first stage.
    now: (p, discrete part of x) -> the parameters in force.   arrived: (x, x after the step, p, t, h) -> the last faults.
    embedded: whether to add to the results the `differences` and `fastest` of a pair, the state before its correction, the
        `rates`, by default those of a straight path, and `near` of its correction.
    """
    rhs, project, energy, terms, *_ = functions
    x, p = ca.SX.sym("x", rhs.size1_in(0)), ca.SX.sym("p", rhs.size1_in(2))
    u0, u1 = ca.SX.sym("u0", rhs.size1_in(1)), ca.SX.sym("u1", rhs.size1_in(1))
    t, h = ca.SX.sym("t"), ca.SX.sym("h")
    whole, x, discrete = x, x[: project.size1_in(0), 0], x[project.size1_in(0) :, 0]
    given, p = p, now(p, discrete)

    def stage(f: ca.Function, x: ca.SX, u: ca.SX, t: ca.SX) -> Stage:
        x_dot, faults, sides, carried, _ = f(ca.vertcat(x, discrete), u, p, t)
        near = project.size1_in(3)
        rest = unpack(terms, carried[near:, 0])
        return Stage(variables.rate(x, x_dot), faults, sides, carried[:near, 0], rest)

    data = StepData(
        m=m,
        variables=variables,
        start=partial(stage, first or rhs),
        f=partial(stage, rhs),
        settled=functions.settled,
        project=lambda x, t, near: project(x, p, t, near)[0],
        energy=lambda x, way, t: energy(x, way, p, t),
        tangent=functions.tangent,
        limit=functions.limit,
        x=x,
        p=p,
        u0=u0,
        u1=u1,
        t=t,
        h=h,
        iterations=settings_of(scheme, m)["iterations"],
        solved=lambda k, base, g, u, t: functions.solved(k, base, g, u, p, t),
        slopes=lambda x, u, t: functions.slopes(ca.vertcat(x, discrete), u, p, t) if functions.slopes else ca.SX(0, 0),
        coordinates=functions.coordinates,
    )
    moved = INTEGRATORS.named(scheme.integrator or DEFAULT).step(data)
    corrected, violation = project(moved.x, p, t + h, moved.near)
    faults = ca.vertcat(violation > scheme.violation_limit, moved.faults, moved.integrator_faults)
    if arrived:
        nx = arrived.size1_in(0)
        faults = ca.vertcat(faults, arrived(x[:nx, 0], moved.x[:nx, 0], p, t, h))
    more = (*_estimates(moved), moved.x, _rates(variables, x, moved, h), moved.near) if embedded else ()
    return ca.Function("step", [whole, u0, u1, given, t, h], [corrected, faults, *more])


def _estimates(moved: Moved) -> tuple[ca.SX, ca.SX]:
    """`differences` and `fastest` of a pair, without columns of another rule."""
    none = ca.SX(moved.x.numel(), 0)
    return none if moved.differences is None else moved.differences, none if moved.fastest is None else moved.fastest


def _rates(variables: Variables, x: ca.SX, moved: Moved, h: ca.SX) -> ca.SX:
    """The rates at both ends of a step from x over h: those of the rule, or those of a straight path."""
    if moved.rates is not None:
        return moved.rates
    mean = (variables.stepped(moved.x) - variables.stepped(x)) / ca.if_else(h > 0, h, 1)
    return ca.horzcat(mean, mean)


class CorrectionFactors(NamedTuple):
    """The factors along which corrections move.   metric: factor of M.   rows: of the rows with a residual, in that metric."""

    metric: TreeFactor
    rows: MinimumNorm

    def move(self, off: ca.SX) -> ca.SX:
        """(nv, k) the shortest changes along the velocities that remove the residuals `off` (m, k)."""
        return solve_WT(self.metric, self.rows.solve(off))


def along(T: Terms) -> CorrectionFactors:
    """The factors at T, without acceleration rows: these have no residual, and corrections need not satisfy them."""
    with_residual = T.rows.at(POSITION, VELOCITY)
    return CorrectionFactors(
        T.factor, shortest_change(T, rows=with_residual if len(with_residual) < len(T.rows.level) else None)
    )


def correct(T: Terms, scheme: Scheme, move: Callable[[ca.SX], ca.SX] | None = None) -> tuple[ca.SX, ca.SX, ca.SX]:
    """(q, v) moved onto phi = 0 and eta = 0 along M^-1 A^T, and the largest relative residual left.

    The residual is |phi|, or |eta| of rows without phi, relative to the row's scale: see `inverse_scale`. The moves are the
    shortest in the metric of M. All corrections share one factorisation: that of the state from which they start, or by `move`
    that of a state near it, such as the last stage of the step, which differs by h^3. Corrections are small, and so is the
    factor by which each reduces the residual. Where the residual is within the scheme's tolerance a move has length zero, so
    that all runs go through the same operations. [aghili05 section VI, with the metric of M]

    Rows that depend on each other on the constraints do not where q is off them by the error of a step. What v has along such a
    row is motion, not drift, and a factorisation there would remove it. With rows of this kind and no other state near, v is
    corrected after q, along a factorisation at the corrected q.

    Where q turns a body's axes, v is turned back, so that the stepped `variables` do not change: at 7.5 km/s, axes of a free
    body that turn by 1e-9 rad would change its velocity by 7.5e-6 m/s, and separate it from the body to which it is closed.
    """
    m = T.mechanism
    q, v = normalised(m, T.q), T.v
    if not m.ideal:
        return q, v, ca.SX(0)
    residuals, corrected = _residuals(m, scheme.violation_limit), T.rows.at(POSITION, VELOCITY)

    def moved(q: ca.SX, v: ca.SX, move: Callable[[ca.SX], ca.SX] | None, which: list[bool]) -> tuple[ca.SX, ca.SX]:
        """(q, v) after the corrections along `move`, by default the factors at this state.   which: whether of q, and of v."""
        move, straight = move or along(Terms(m, q, v, T.u, T.t)).move, of_joints(m)
        for _ in range(scheme.corrections):
            phi, eta, K, inverse = residuals(q, v, m.p_symbols, T.t)
            off = (ca.horzcat(phi, eta) @ ca.sparsify(ca.diag(ca.DM(which))))[corrected, :]
            if scheme.tolerance:
                off *= _violation(T.rows, phi, eta, inverse) > scheme.tolerance
            change = move(off)
            y = straight.stepped(ca.vertcat(q, v))[m.nq :, 0]
            q = normalised(m, q - K @ change[:, 0])
            v = straight.state(ca.vertcat(q, y))[m.nq :, 0] - change[:, 1]
        return q, v

    if move or T.row_blocks(corrected) is None:
        q, v = moved(q, v, move, [True, True])
    else:
        q, v = moved(*moved(q, v, None, [True, False]), None, [False, True])
    phi, eta, _, inverse = residuals(q, v, m.p_symbols, T.t)
    return q, v, _violation(T.rows, phi, eta, inverse)


@remembered(64)
def _residuals(m: Mechanism, limit: float) -> ca.Function:
    """(q, v, p, t) -> phi, eta, the kinematic matrix, and 1 / s of each row, s being its scale for this limit."""
    T = shared(m)
    outputs = [T.rows.phi, T.rows.eta, T.kinematics.kinematic_matrix, T.inverse_scales(limit)]
    return ca.Function("left", [T.q, T.v, m.p_symbols, T.t], outputs)


def corrected_rows(T: Terms) -> list[int]:
    """Indices of the rows that corrections satisfy."""
    return list(T.rows.at(POSITION, VELOCITY))


def remaining(here: At, inputs: list[ca.SX], near: CorrectionFactors | None) -> ca.Function:
    """What a correction leaves of changes of q and v, see `Functions`.   inputs, near: of the correction."""
    T, m = here.T, here.T.mechanism
    dq, dv = ca.SX.sym("dq", m.nq), ca.SX.sym("dv", m.nv)
    off = ca.horzcat(ca.jtimes(T.rows.phi, T.q, dq), ca.jtimes(T.rows.eta, T.v, dv))
    change = (near or along(T)).move(off[corrected_rows(T), :])
    left = [dq - T.kinematics.kinematic_matrix @ change[:, 0], dv - change[:, 1]]
    return guarded("remaining", [ca.SX.sym("guard"), *inputs, dq, dv], here.of_state(left))


def _violation(rows: Rows, phi: ca.SX, eta: ca.SX, inverse: ca.SX) -> ca.SX:
    """The largest relative residual: |phi|, or |eta| of rows without phi.   inverse: 1 / s of each row, s being its scale."""
    positions, velocities = rows.at(POSITION), rows.at(VELOCITY)
    return linear.largest_entry(ca.vertcat(phi[positions, 0], eta[velocities, 0]) * inverse[[*positions, *velocities], 0])
