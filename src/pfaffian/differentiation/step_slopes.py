"""Derivatives of a step: CasADi differentiates the step itself, and takes the derivatives of the functions it calls from here.

The derivative of a right-hand side is that of the dynamics at constant accelerations and multipliers
(`dynamics/response.py`). The derivative of the correction onto the constraints takes its factors as constant. It neglects the
derivative of the factors times the corrected residual, h^5 with the classical rule, h^3 with an implicit one. A stage that
solves an equation has the derivative of the solution, whatever iterations found it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from pfaffian.control.law import Control
from pfaffian.differentiation.jumps import refuse_jumps
from pfaffian.dynamics import FORMULATIONS
from pfaffian.dynamics.response import Factors, FixedMotion, Response, Slopes, gradient, response, slopes
from pfaffian.errors import ModelError
from pfaffian.maths.linear import solve_definite
from pfaffian.maths.pack import pack, unpack
from pfaffian.maths.tree_factor import multiply_WT, solve_WT
from pfaffian.parts.rebound import impacts_of
from pfaffian.simulate.step.closed_loop import closed_loop
from pfaffian.simulate.step.run_arguments import arguments
from pfaffian.simulate.step.sampling import refuse
from pfaffian.simulate.step.simulation import Simulation
from pfaffian.simulate.step.step import Functions, RightHandSide, Scheme, time_step
from pfaffian.simulate.step.tracing import correction, rate_with
from pfaffian.states.system import as_system
from pfaffian.states.variables import q_dot
from pfaffian.terms.connection import refuse_distributions
from pfaffian.terms.terms import Terms

DIFFERENTIATED = ("rk4", "euler", "tr-bdf2", "dopri5", "dop853")
"""Integrators whose steps can be differentiated."""

STAY: dict[str, Any] = {"never_inline": True, "max_num_dir": 1}
"""Options of a function whose derivatives are given: CasADi uses these, one direction at a time. For several directions at once
it would differentiate the expressions instead."""


def differentiable(m: Any, control: Control | None, scheme: Scheme | None, what: str) -> Simulation:
    """A Simulation whose step can be differentiated. Raises ModelError: it cannot; an argument has the wrong type."""
    system = as_system(m)
    chosen, law, _ = arguments(system.mechanism, scheme, control, None)
    s = Simulation(system, chosen, law, (), ("q", "v"), ())
    _check(s, what)
    return s


def refuse_accuracy(accuracy: Any, what: str) -> None:
    """Raise ModelError, with the way out, where an accuracy is asked of what takes steps of one length."""
    if accuracy is not None:
        raise ModelError(
            f"{what} takes steps of one length and no accuracy: give step= alone; pf.calculus.accurate_rollout differentiates "
            "a run to an accuracy"
        )


def _check(s: Simulation, what: str) -> None:
    """Raise ModelError, with the way out, where a step has no derivative or none is implemented."""
    m = s.mechanism
    refuse_distributions(m, what)
    refuse(s.control, what, "differentiate the machine alone, under the inputs that the law sent")
    if s.system.other_state:
        raise ModelError(f"{what} takes mechanisms in the state [q; v]; {s.system.title} has another: give its mechanism")
    if FORMULATIONS.is_added(s.scheme.formulation):
        raise ModelError(
            f"{what} differentiates the motion that the library's formulations give; {s.scheme.formulation!r} may give "
            "another: choose one of the library"
        )
    if s.scheme.integrator not in DIFFERENTIATED:
        reasons = {"midpoint": " corrects the energy by iterations", "radau5": " has stages that share one equation"}
        why = reasons.get(s.scheme.integrator or "", " is none of these")
        raise ModelError(f"{what} takes the integrators {', '.join(DIFFERENTIATED)}; {s.scheme.integrator!r}{why}")
    names = [c.name for c in m.ideal if c.active]
    if names:
        raise ModelError(
            f"{what}: {', '.join(names)} may switch on and off, at an instant that depends on the state, where the motion "
            "has no such derivative; leave out active_while"
        )
    if impacts := impacts_of(m):
        raise ModelError(
            f"{what}: the impacts of {', '.join(impacts)} occur at instants that depend on the state, where the motion has no "
            "such derivative; give stiffness in place of impact"
        )
    if what != "fit":  # which compares whole motions, and takes the derivative as a direction
        refuse_jumps(s, what)


class _ClosedLoopRate(NamedTuple):
    """The closed loop at symbols.   x, w, p, t: arguments of its functions.   T: Terms under the law's inputs.
    z_dot: of the law.   v_dot: symbols of the accelerations.   numbers: symbols of the integrator's terms, the factors and the
    multipliers, packed in the form of `structure`.   at, motion: Response and FixedMotion of these symbols.
    """

    x: ca.SX
    w: ca.SX
    p: ca.SX
    t: ca.SX
    T: Terms
    z_dot: ca.SX
    v_dot: ca.SX
    numbers: ca.SX
    structure: Any
    at: Response
    motion: FixedMotion

    @property
    def by(self) -> ca.SX:
        """All symbols with respect to which there are derivatives."""
        return ca.vertcat(self.x, self.w, self.p, self.t)

    def inputs(self) -> list[ca.SX]:
        """The arguments of functions that compute derivatives."""
        return [self.x, self.w, self.p, self.t, self.v_dot, self.numbers]

    def along(self, along: Callable[[ca.SX], ca.SX]) -> ca.SX:
        """The derivatives of x_dot along the directions of `along`, see `slopes`."""
        moved = slopes(self.at, self.motion, along)
        return ca.densify(ca.vertcat(along(q_dot(self.T.kinematics)), moved.v_dot, along(self.z_dot)))

    def back(self, seed: ca.SX) -> ca.SX:
        """The derivative of x_dot . seed with respect to x, w, p and t."""
        m, none = self.T.mechanism, ca.SX(0, 0)
        first, second, third = ca.vertsplit(seed, [0, m.nq, m.nq + m.nv, seed.numel()])
        found = gradient(self.at, self.motion, Slopes(second, none, none, none), self.by)
        rest = ca.vertcat(q_dot(self.T.kinematics), self.z_dot)
        return ca.densify(found + ca.jtimes(rest, self.by, ca.vertcat(first, third), True))


def _factors(T: Terms) -> tuple[Factors, ca.SX, ca.SX]:
    """The factors, multipliers and servo forces that a right-hand side passes on to its derivative."""
    at = response(T, least=False)
    motion = at.motion()
    return at.factors, motion.multipliers, motion.mu


def _rate(s: Simulation, name: str) -> tuple[_ClosedLoopRate, ca.Function]:
    """The closed loop, and its right-hand side, which carries the integrator's terms and `_factors`."""
    rhs, structure = rate_with(s, name, lambda T, *rest: (s.integrator.needs(T, *rest), _factors(T)))
    c, m = closed_loop(s, s.system.at()), s.mechanism
    T = c.pushed
    v_dot = ca.SX.sym("v_dot", m.nv)
    numbers = ca.SX.sym("factors", pack(structure).numel())
    _, (factors, lam, mu) = unpack(structure, numbers)
    at, motion = Response(T, factors, ca.SX(0), ca.SX(1), None), FixedMotion(v_dot, lam, mu)
    z_dot = ca.densify(c.command.z_dot)
    return _ClosedLoopRate(c.x, c.w, m.p_symbols, T.t, T, z_dot, v_dot, numbers, structure, at, motion), rhs


class StepParts(NamedTuple):
    """A step with derivatives.   functions: that the step calls.   derivatives: of these functions, stored here because CasADi
    does not keep them alive.   first: the right-hand side of the first stage, if it is a different one."""

    functions: Functions
    derivatives: list[ca.Function]
    first: ca.Function | None = None

    def step(self, s: Simulation) -> tuple[list[ca.SX], ca.SX]:
        """Symbols (x, w, p, t, h), and x after a step under constant inputs w."""
        step = time_step(self.functions, s.mechanism, s.system.variables, s.scheme, self.first)
        x, w, _, p, t, h = (ca.SX.sym(name, step.size1_in(i)) for i, name in enumerate(("x", "w", "w1", "p", "t", "h")))
        return [x, w, p, t, h], step(x, w, w, p, t, h)[0]


def with_matrices(s: Simulation) -> StepParts:
    """The functions of a step, each with its Jacobian among its results, so that it is computed once."""
    f, (r, rate) = s.traced.functions, _rate(s, "rhs_and_factors")
    slope = ca.Function("rate_slopes", r.inputs(), [r.along(lambda x: ca.jacobian(x, r.by))], STAY)
    given = rate.sx_in()
    *values, _ = rate(*given)
    results = [*values, ca.vec(slope(*given, *_handed_on(s, values)))]
    rhs = _WithDerivatives("rhs_with_slopes", given, results, 4, (0, 1, 2, 3))
    inputs, (moved, violation) = _correction(s)
    J = ca.vec(ca.densify(ca.jacobian(moved, ca.vertcat(*inputs[:3]))))
    project = _WithDerivatives("project_with_slopes", inputs, [moved, ca.vertcat(violation, J)], 1, (0, 1, 2))
    if s.scheme.stiff:
        return _solved(s, r, rhs.by_matrix(), project.by_matrix())
    return _parts(f, rhs.by_matrix(), project.by_matrix())


def _solved(s: Simulation, r: _ClosedLoopRate, rhs: list[ca.Function], project: list[ca.Function]) -> StepParts:
    """The parts of a step whose stages solve k = f(base + g k): iterations as in `run`, derivatives of the solution,

    (1 - g J) dk = J dbase + f_w dw + f_p dp + f_t dt,   J the derivative of f with respect to the stepped variables
    """
    f, given = s.traced.functions, r.inputs()[:4]
    plain = _WithDerivatives("rhs_held", given, list(f.rhs(*given)), 0, ())
    forward = plain.by_products(lambda *_: ca.SX(r.x.numel(), 1), lambda *_: [])
    solution = _solution(s, r, rhs[0])

    def solved(k: ca.SX, base: ca.SX, g: ca.SX, u: ca.SX, p: ca.SX, t: ca.SX) -> ca.SX:
        return solution[0](k, base, g, u, p, t)[0]

    functions = f._replace(rhs=forward[0], project=project[0], solved=solved)
    return StepParts(functions, [*rhs, *project, *forward, *solution], rhs[0])


def _solution(s: Simulation, r: _ClosedLoopRate, rhs: ca.Function) -> list[ca.Function]:
    """The function (k, base, g, w, p, t) -> k, and the functions that CasADi uses as its derivatives.

    The equations are solved in mass-weighted velocities, where 1 - g J is positive definite if forces restore and damp.
    """
    n, of = r.x.numel(), s.traced.functions.tangent
    k, base, g = (ca.SX.sym(name, size) for name, size in (("k", n), ("base", n), ("g", 1)))
    x = s.system.variables.state(base + g * k)
    here = RightHandSide(*rhs(x, r.w, r.p, r.t))
    _, (factors, *_) = unpack(r.structure, here.carried[s.traced.functions.project.size1_in(3) :, 0])

    def weighted(change: ca.SX) -> ca.SX:
        dq, dv = of.into(x, r.t, change[: of.n, 0])
        return ca.vertcat(dq, multiply_WT(factors.metric, dv), change[of.n :, 0])

    def plain(change: ca.SX) -> ca.SX:
        dq, y = ca.vertsplit(change[: of.n, 0], [0, s.mechanism.nq, of.n])
        return ca.vertcat(of.onto(x, r.t, dq, solve_WT(factors.metric, y)), change[of.n :, 0])

    moved = ca.jacobian(s.system.variables.rate(x, here.x_dot), ca.vertcat(base, r.w, r.p, r.t))
    A = _each(weighted, moved[:, :n] @ _each(plain, ca.SX.eye(n)))
    D = _each(plain, solve_definite(ca.SX.eye(n) - g * A, _each(weighted, moved)))
    return _WithDerivatives("solution", [k, base, g, r.w, r.p, r.t], [k, ca.vec(D)], 1, (1, 3, 4, 5)).by_matrix()


def _each(f: Callable[[ca.SX], ca.SX], columns: ca.SX) -> ca.SX:
    """f applied to each column."""
    return ca.densify(ca.horzcat(*[f(ca.densify(x)) for x in ca.horzsplit(columns)]))


def with_products(s: Simulation) -> StepParts:
    """The functions of a step, with forward and backward products of their derivatives (jvp and vjp)."""
    if s.scheme.stiff:
        return with_matrices(s)
    f, (r, rate) = s.traced.functions, _rate(s, "rhs_and_factors")
    changes = [ca.SX.sym(f"d{name}", y.numel()) for name, y in (("x", r.x), ("w", r.w), ("p", r.p), ("t", r.t))]
    way, seed = ca.vertcat(*changes), ca.SX.sym("seed", r.x.numel())
    jvp = ca.Function("rate_ahead", [*r.inputs(), *changes], [r.along(lambda y: ca.jtimes(y, r.by, way))], STAY)
    sizes = np.cumsum([0, *[y.numel() for y in changes]]).tolist()
    vjp = ca.Function("rate_back", [*r.inputs(), seed], list(ca.vertsplit(r.back(seed), sizes)), STAY)
    given = rate.sx_in()
    rhs = _WithDerivatives("rhs_with_products", given, list(rate(*given)), 4, (0, 1, 2, 3))
    rates = rhs.by_products(
        lambda values, seeds: jvp(*given, *_handed_on(s, values), *seeds),
        lambda values, bar: list(vjp(*given, *_handed_on(s, values), bar)),
    )
    inputs, (moved, violation) = _correction(s)
    moving, ends = ca.vertcat(*inputs[:3]), np.cumsum([0, *[y.numel() for y in inputs[:3]]]).tolist()
    project = _WithDerivatives("project_with_products", inputs, [moved, violation], 1, (0, 1, 2))
    corrections = project.by_products(
        lambda values, seeds: ca.jtimes(moved, moving, ca.vertcat(*seeds)),
        lambda values, bar: list(ca.vertsplit(ca.jtimes(moved, moving, bar, True), ends)),
    )
    return _parts(f, rates, corrections)


def _handed_on(s: Simulation, values: list[ca.SX]) -> tuple[ca.SX, ca.SX]:
    """v_dot and the packed numbers of `_factors`, from the results of a right-hand side."""
    m, carried = s.mechanism, values[3]
    return values[0][m.nq : m.nq + m.nv, 0], carried[s.traced.functions.project.size1_in(3) :, 0]


def _parts(f: Functions, rhs: list[ca.Function], project: list[ca.Function]) -> StepParts:
    """The StepParts of functions that are each followed by their derivatives."""
    return StepParts(f._replace(rhs=rhs[0], project=project[0], terms=()), [*rhs, *project])


def _correction(s: Simulation) -> tuple[list[ca.SX], list[ca.SX]]:
    """Arguments and results of the correction onto the constraints."""
    of = correction(s, s.system.at(), ca.SX.sym("z", len(s.z)))
    return of.inputs, [ca.densify(of.x), of.violation]


class _WithDerivatives(NamedTuple):
    """A function whose first result has given derivatives with respect to some inputs; its other results have none.

    at: index of the result whose last entries are the Jacobian, for `by_matrix`.   by: indices of these inputs.
    """

    name: str
    inputs: list[ca.SX]
    results: list[ca.SX]
    at: int
    by: tuple[int, ...]

    def by_matrix(self) -> list[ca.Function]:
        """The function, and functions for its derivatives: products with the Jacobian among its results."""
        values = self.values()
        n, width = self.results[0].numel(), sum(self.inputs[k].numel() for k in self.by)
        J = ca.reshape(values[self.at][values[self.at].numel() - n * width :, 0], n, width)
        ends = np.cumsum([0, *[self.inputs[k].numel() for k in self.by]]).tolist()
        return self._define(values, lambda _, seeds: J @ ca.vertcat(*seeds), lambda _, bar: list(ca.vertsplit(J.T @ bar, ends)))

    def by_products(self, jvp: _Jvp, vjp: _Vjp) -> list[ca.Function]:
        """The function, and functions for its derivatives.   jvp: (results, changes of inputs) -> change of the first result.
        vjp: (results, weights of the first result) -> weights of the inputs."""
        return self._define(self.values(), jvp, vjp)

    def values(self) -> list[ca.SX]:
        """Symbols for the results."""
        return [ca.SX.sym(f"{self.name}_{k}", x.sparsity()) for k, x in enumerate(self.results)]

    def _define(self, values: list[ca.SX], jvp: _Jvp, vjp: _Vjp) -> list[ca.Function]:
        """The function, with its derivatives in the cache in which CasADi looks for them, followed by these derivatives."""
        seeds = [ca.SX.sym(f"d{k}", x.numel()) for k, x in enumerate(self.inputs)]
        bars = [ca.SX.sym(f"b{k}", x.sparsity()) for k, x in enumerate(values)]
        forward = [jvp(values, [seeds[k] for k in self.by]), *[0 * x for x in values[1:]]]
        parts = dict(zip(self.by, vjp(values, bars[0]), strict=True))
        reverse = [ca.densify(parts.get(k, ca.SX(x.numel(), 1))) for k, x in enumerate(self.inputs)]
        derivatives = [
            ca.Function(f"fwd1_{self.name}", [*self.inputs, *values, *seeds], [ca.densify(forward[0]), *forward[1:]]),
            ca.Function(f"adj1_{self.name}", [*self.inputs, *values, *bars], reverse),
        ]
        options: dict[str, Any] = {**STAY, "cache": {f.name(): f for f in derivatives}}
        return [ca.Function(self.name, self.inputs, self.results, options), *derivatives]


_Jvp = Callable[[list[ca.SX], list[ca.SX]], ca.SX]
_Vjp = Callable[[list[ca.SX], ca.SX], list[ca.SX]]
