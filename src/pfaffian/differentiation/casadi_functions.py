"""Named CasADi functions of a mechanism, with derivatives computed at constant accelerations and multipliers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import casadi as ca
import numpy as np

from pfaffian.control.allocation import allocate, weights
from pfaffian.control.idle import idle_motions
from pfaffian.control.law import Control
from pfaffian.control.losses_at import with_losses_at
from pfaffian.differentiation.curvature import smooth_motion, smooth_step
from pfaffian.differentiation.step_slopes import STAY, differentiable, refuse_accuracy, with_matrices, with_products
from pfaffian.dynamics.response import Slopes, gradient, response, slopes
from pfaffian.errors import BuildError, ModelError, notice_once
from pfaffian.evaluate.inverse import actuated_by
from pfaffian.evaluate.progress import progress_line
from pfaffian.evaluate.single_values import as_flag, as_number, one_of
from pfaffian.kernel.call.external import compile_external
from pfaffian.model.mechanism import Mechanism, as_mechanism, as_names
from pfaffian.simulate.step.simulation import Simulation
from pfaffian.simulate.step.step import Scheme
from pfaffian.terms.equations_digest import digest
from pfaffian.terms.terms import Terms, symbols

FUNCTIONS = ("forward_dynamics", "inverse_dynamics", "constraints", "rate", "step")
"""Names of the functions that `casadi_function` makes."""

Evaluator = Literal["auto", "c", "casadi"]
"""How a function is evaluated: compiled if there is a compiler, always compiled, or by CasADi."""


def casadi_function(
    m: Mechanism,
    what: str,
    *,
    wrt: Sequence[str] = (),
    step: float | None = None,
    accuracy: None = None,
    scheme: Scheme | None = None,
    control: Control | None = None,
    hessian: bool = True,
    backend: Evaluator = "auto",
) -> ca.Function:
    """A CasADi function of a mechanism, with named inputs and outputs, from which optimisation problems are built.

        forward_dynamics   (q, v, u, p, t) -> (v_dot, reaction, multipliers)
        inverse_dynamics   (q, v, v_dot, p, t) -> (u, reaction), the smallest u
        constraints        (q, v, p, t) -> (phi, eta), which vanish on the constraints
        rate               (x, u, p, t) -> x_dot, x = [q; v]
        step               (x, u, p, t) -> x_next, a step of `run` under constant inputs, x = [q; v; z of a law]

    The library supplies the derivatives of forward_dynamics, rate and step to CasADi: those of inverse dynamics and constraint
    rows at constant accelerations and multipliers, solved with one factorisation, see `derivatives`. They are taken with
    respect to the numbers in q, not along velocities, and serve jacobian, jtimes and solvers alike. First derivatives of a step
    are those of `step_derivatives`: exact where x satisfies the constraints, and otherwise off by an error of the order of the
    residual. Second derivatives are exact.

    A compiled function lies in a shared library in the cache, together with its Jacobian, its products with a direction
    (forward and reverse) and the derivatives of the reverse product, for exact Hessians; with `wrt` it has no derivatives. A
    file that CasADi writes of it contains the path of that library, so it works on this machine only. A function that is an
    expression has second derivatives too. Read back from a file it has lost the supplied derivatives, and CasADi differentiates
    the expression itself, including the factorisations: this costs more, and gives wrong second derivatives of a step and wrong
    derivatives where a leg is exactly straight.

    Args:
        m: the mechanism.
        what: one of these five names.
        wrt: names of inputs with respect to which each output is differentiated; the derivatives are further outputs
            `<output>_by_<input>`. None by default.
        step: length of the step [s], needed for "step".
        accuracy: refused, since steps of one length have none; `accurate_rollout` takes it.
        scheme: scheme of "step", with the integrator rk4 or euler; `pf.Scheme()` by default.
        control: a law in continuous time that closes the loop of "step"; u are then its inputs. None by default.
        hessian: whether second derivatives are compiled too, which doubles the code; without them solvers must approximate
            Hessians. True by default.
        backend: "auto" compiles now or, if there is no compiler, warns and lets CasADi evaluate the function; "c" compiles;
            "casadi" returns an expression of SX that CasADi evaluates. The numbers agree to rounding.
    Returns:
        a casadi.Function, for symbols of SX and MX. p are the mechanism's parameters, in the order of `p_names`; m.p_defaults
        are their values. In a call by names, inputs that are left out are zero, except p, which is then NaN.
    Raises ModelError: another name, a step without length, or whatever `step_derivatives` refuses.
    Raises BuildError: backend "c" without a compiler.

    Example:
        >>> import pfaffian as pf
        >>> bob = pf.body("bob", mass=2.0, com=(0, 0, -1))
        >>> m = pf.mechanism("pendulum", [bob], [pf.joint("hinge", "revolute", "world", "bob", axis=(0, 1, 0))])
        >>> f = pf.casadi_function(m, "forward_dynamics", wrt=["q"], backend="casadi")
        >>> f.name_in(), f.name_out()[3:]
        (['q', 'v', 'u', 'p', 't'], ['v_dot_by_q', 'reaction_by_q', 'multipliers_by_q'])
        >>> round(float(f(q=0.0)["v_dot_by_q"]), 2)  # -g / l
        -9.81
    """
    refuse_accuracy(accuracy, "casadi_function")
    as_mechanism(m)
    one_of(what, FUNCTIONS, "casadi_function: what")
    one_of(backend, get_args(Evaluator), "casadi_function: backend")
    request = FunctionRequest(m, what, as_names(wrt, "wrt") if len(wrt) else (), as_flag(hessian, "hessian"))
    if what == "step":
        if step is None:
            raise ModelError("casadi_function: give the length of a step too, such as step=0.01 [s]")
        h = as_number(step, "step", above=0)
        request = replace(request, simulation=explicit(m, control, scheme, "casadi_function"), h=h)
    elif not (step is None and scheme is None and control is None):
        raise ModelError(f"casadi_function: {what!r} takes no step, scheme or control; 'step' does")
    for name in request.wrt:
        one_of(name, INPUTS[what], "casadi_function: wrt")
    if backend == "casadi":
        return request.expression()
    try:
        with progress_line(m.name, False):
            path = compile_external(request.library, request.key)
    except BuildError as error:
        if backend == "c":
            raise
        notice_once(f"casadi_function: evaluated by CasADi, some ten times slower than compiled: {error}")
        return request.expression()
    f = ca.external(what, str(path))
    penalty = MOST_DIRECTIONS / max(1, min(f.nnz_in(), f.nnz_out()))
    products = {"jac_penalty": -1}  # the library has no Jacobian of the products, and CasADi would search for one without end
    return ca.external(what, str(path), {"jac_penalty": penalty, "ad_weight": 0.5, "reverse_options": products})


MOST_DIRECTIONS = 1.5
"""For more directions than this CasADi evaluates the Jacobian, which costs about two, instead of one product after another."""

INPUTS = {
    "forward_dynamics": ("q", "v", "u", "p", "t"),
    "inverse_dynamics": ("q", "v", "v_dot", "p", "t"),
    "constraints": ("q", "v", "p", "t"),
    "rate": ("x", "u", "p", "t"),
    "step": ("x", "u", "p", "t"),
}


@dataclass(frozen=True)
class FunctionRequest:
    """A function that a caller requested.

    what: one of FUNCTIONS.   wrt: inputs with respect to which it is differentiated.   hessian: whether second derivatives are
    compiled too.   simulation, h: for "step", the simulation and the length of the step [s].
    """

    mechanism: Mechanism
    what: str
    wrt: tuple[str, ...]
    hessian: bool
    simulation: Simulation | None = None
    h: float = 0.0

    @property
    def key(self) -> str:
        """The key of the compiled library in the cache."""
        of = f"step {self.h.hex()} {self.simulation.key}" if self.simulation else f"{self.what} {digest(self.mechanism)}"
        return f"casadi {of} by {self.wrt} {self.hessian}"

    def expression(self) -> ca.Function:
        """The function as an expression of SX, with the derivatives that the library supplies."""
        f = _MAKE[self.what](symbols(self.mechanism)) if self.simulation is None else _step(self.simulation, self.h)
        return _with_jacobians(f, self.wrt) if self.wrt else f

    def matrices(self) -> ca.Function:
        """A function that returns the values and their derivatives with respect to `wrt`, computed together to save work.

        It must not be differentiated again.
        """
        if self.simulation is not None:
            return _with_jacobians(step_function(self.simulation, self.h, True), self.wrt)
        f = _MAKE[self.what](symbols(self.mechanism))
        given, n = f.sx_in(), f.n_in()
        values = f.call(given)
        blocks = f.jacobian().call([*given, *values])
        return _with_blocks(f, self.wrt, given, values, lambda o, i: blocks[o * n + i])

    def library(self) -> tuple[ca.Function, ...]:
        """The functions to compile: the function itself, and those that CasADi calls to differentiate it."""
        if self.wrt:
            return (self.matrices(),)
        f = value = self.expression()
        J = f.jacobian() if self.simulation is None else _jacobian(step_function(self.simulation, self.h, True))
        if self.simulation is not None:
            value = step_function(self.simulation, self.h, False)
        reverse = f.reverse(1)
        second = (reverse.forward(1), reverse.reverse(1)) if self.hessian else ()
        return (value, J, f.forward(1), reverse, *second)


def explicit(m: Mechanism, control: Control | None, scheme: Scheme | None, what: str) -> Simulation:
    """The Simulation of a step that has second derivatives, checked by `differentiable`.

    Raises ModelError: whatever `differentiable` refuses, and integrators whose stages solve equations, which lack second
    derivatives.
    """
    s = differentiable(m, control, scheme, what)
    if s.scheme.stiff:
        raise ModelError(
            f"{what} takes the integrators rk4 and euler, whose second derivatives are exact; for first ones with "
            f"{s.scheme.integrator!r} see step_derivatives and rollout"
        )
    return s


def _step(s: Simulation, h: float) -> ca.Function:
    """The step. First derivatives reuse its factors; second ones come from an expression that differentiates no factor."""
    f, smooth = step_function(s, h, False), smooth_step(s, h)
    first = [_smoothed(f.forward(1), smooth.forward(1)), _smoothed(f.reverse(1), smooth.reverse(1))]
    return _with_derivatives(smooth, {d.name(): d for d in first})


def _smoothed(first: ca.Function, smooth: ca.Function) -> ca.Function:
    """`first` with the derivatives of `smooth`, another expression of the same first derivative."""
    return _with_derivatives(first, {d.name(): d for d in (smooth.forward(1), smooth.reverse(1))})


def _with_derivatives(f: ca.Function, derivatives: dict[str, ca.Function]) -> ca.Function:
    """f with these derivatives, given under the names by which CasADi looks for them."""
    given = [ca.SX.sym(name, f.sparsity_in(i)) for i, name in enumerate(f.name_in())]
    options = {**STAY, **_defaults(f.name_in()), "cache": derivatives}
    return ca.Function(f.name(), given, f.call(given), *_names(f.name_in(), f.name_out()), options)


def _defaults(names: Sequence[str]) -> dict[str, Any]:
    """CasADi options for inputs that a caller leaves out: zero, but NaN for parameters, as zeros would be another machine."""
    return {"default_in": [np.nan if name == "p" else 0.0 for name in names]}


def _jacobian(f: ca.Function) -> ca.Function:
    """The Jacobian of a function with one output, under the name by which CasADi looks for it."""
    given = [ca.SX.sym(name, f.size1_in(i)) for i, name in enumerate(f.name_in())]
    (value,) = f.call(given)
    unused = ca.SX.sym("out", ca.Sparsity(value.numel(), 1))
    return ca.Function(f"jac_{f.name()}", [*given, unused], [ca.jacobian(value, x) for x in given])


def step_function(s: Simulation, h: float, matrices: bool) -> ca.Function:
    """(x, u, p, t) -> x_next.   matrices: whether all derivatives are needed, so that each stage computes its own once."""
    (x, w, p, t, length), x_next = (with_matrices if matrices else with_products)(s).step(s)
    whole = ca.Function("step_of_length", [x, w, p, t, length], [x_next])
    named = INPUTS["step"]
    return ca.Function("step", [x, w, p, t], [whole(x, w, p, t, h)], *_names(named, ("x_next",)), _defaults(named))


def _names(inputs: Sequence[str], outputs: Sequence[str]) -> tuple[list[str], list[str]]:
    """The names of inputs and outputs as lists, which CasADi requires."""
    return list(inputs), list(outputs)


def _with_jacobians(f: ca.Function, wrt: Sequence[str]) -> ca.Function:
    """f with the derivatives of its outputs with respect to `wrt` as further outputs."""
    given = [ca.SX.sym(name, f.size1_in(i)) for i, name in enumerate(f.name_in())]
    values = f.call(given)
    return _with_blocks(f, wrt, given, values, lambda o, i: ca.jacobian(values[o], given[i]))


def _with_blocks(
    f: ca.Function, wrt: Sequence[str], given: list[ca.SX], values: list[ca.SX], block: Callable[[int, int], ca.SX]
) -> ca.Function:
    """f with derivatives as further outputs.   block: (output, input) -> derivative of that output with respect to that input.

    given, values: symbols of the inputs, and the outputs at these.
    """
    pairs = [(o, i) for o in f.name_out() for i in wrt]
    more = [block(f.index_out(o), f.index_in(i)) for o, i in pairs]
    names = [*f.name_out(), *[f"{o}_by_{i}" for o, i in pairs]]
    return ca.Function(f.name(), given, [*values, *more], f.name_in(), names, _defaults(f.name_in()))


class _DifferentiatedDynamics:
    """Forward dynamics at Terms, with its derivatives with respect to (q, v, u, p, t)."""

    def __init__(self, T: Terms) -> None:
        self.T, self.at = T, response(T)
        self.motion = self.at.motion()
        self.inputs = [T.q, T.v, T.u, T.mechanism.p_symbols, T.t]
        reaction = T.A.T @ self.motion.multipliers + T.servo.Z.T @ self.motion.mu
        self.values = [self.motion.v_dot, ca.densify(reaction), self.motion.multipliers]
        self.variables = ca.vertcat(*self.inputs)

    def forward(self, along: Callable[[ca.SX], ca.SX]) -> list[ca.SX]:
        """The changes of the values.   along: an expression -> its change, such as a product with a direction."""
        changes = slopes(self.at, self.motion, along)
        return [ca.densify(x) for x in (changes.v_dot, changes.reaction, changes.multipliers)]

    def reverse(self, seeds: list[ca.SX]) -> ca.SX:
        """The gradient of the values, weighted by the seeds, with respect to all inputs."""
        return gradient(self.at, self.motion, Slopes(seeds[0], seeds[2], ca.SX(0, 0), seeds[1]), self.variables)


def motion_with_matrices(T: Terms) -> tuple[list[ca.SX], list[ca.SX], ca.SX]:
    """(q, v, u, p, t), (v_dot, reaction, multipliers), and the Jacobian of all of these with respect to all of those."""
    d = _DifferentiatedDynamics(T)
    return d.inputs, d.values, ca.vertcat(*d.forward(lambda x: ca.jacobian(x, d.variables)))


def _forward(T: Terms) -> ca.Function:
    """Forward dynamics: accelerations, reaction and multipliers."""
    d = _DifferentiatedDynamics(T)
    smooth = None if T.mechanism.servos else [*smooth_motion(T)]
    return _differentiated(
        "forward_dynamics", d.inputs, d.values, d.forward, d.reverse, ("q", "v", "u", "p", "t"), OUTPUTS, smooth
    )


OUTPUTS = ("v_dot", "reaction", "multipliers")


def _rate(T: Terms) -> ca.Function:
    """The rate of x = [q; v]."""
    d, m = _DifferentiatedDynamics(T), T.mechanism
    q_dot = ca.densify(T.kinematics.q_dot)
    x = ca.vertcat(T.q, T.v)

    def forward(along: Callable[[ca.SX], ca.SX]) -> list[ca.SX]:
        return [ca.densify(ca.vertcat(along(q_dot), d.forward(along)[0]))]

    def reverse(seeds: list[ca.SX]) -> ca.SX:
        first, second = ca.vertsplit(seeds[0], [0, m.nq, m.nq + m.nv])
        none = ca.SX(0, 0)
        return gradient(d.at, d.motion, Slopes(second, none, none, none), d.variables) + ca.jtimes(
            q_dot, d.variables, first, True
        )

    values = [ca.vertcat(q_dot, d.motion.v_dot)]
    smooth = None if m.servos else [ca.vertcat(q_dot, smooth_motion(T)[0])]
    return _differentiated("rate", [x, *d.inputs[2:]], values, forward, reverse, ("x", "u", "p", "t"), ("x_dot",), smooth)


def _differentiated(
    name: str,
    inputs: list[ca.SX],
    values: list[ca.SX],
    forward: Callable[[Callable[[ca.SX], ca.SX]], list[ca.SX]],
    reverse: Callable[[list[ca.SX]], ca.SX],
    named: Sequence[str],
    outputs: Sequence[str],
    smooth: list[ca.SX] | None,
) -> ca.Function:
    """A Function with forward and reverse products and Jacobians, given under the names by which CasADi looks for them.

    forward, reverse: of _DifferentiatedDynamics.   smooth: values as expressions whose second derivatives are exact; None: the
    second derivatives of the values are used.
    """
    variables = ca.vertcat(*inputs)
    unused = [ca.SX.sym(f"out_{n}", ca.Sparsity(x.numel(), 1)) for n, x in zip(outputs, values, strict=True)]  # not needed
    seeds = [ca.SX.sym(f"fwd_{n}", x.numel()) for n, x in zip(named, inputs, strict=True)]
    weights_back = [ca.SX.sym(f"adj_{n}", x.numel()) for n, x in zip(outputs, values, strict=True)]
    ends = np.cumsum([0, *[x.numel() for x in inputs]]).tolist()
    direction = ca.vertcat(*seeds)
    products = forward(lambda x: ca.jtimes(x, variables, direction))
    reverse_products = [ca.densify(x) for x in ca.vertsplit(ca.densify(reverse(weights_back)), ends)]
    matrices = [ca.densify(part) for J in forward(lambda x: ca.jacobian(x, variables)) for part in ca.horzsplit(J, ends)]
    derivatives = [
        ca.Function(f"fwd1_{name}", [*inputs, *unused, *seeds], products),
        ca.Function(f"adj1_{name}", [*inputs, *unused, *weights_back], reverse_products),
        ca.Function(f"jac_{name}", [*inputs, *unused], matrices),
    ]
    if smooth is not None:
        s = ca.Function(name, inputs, smooth, *_names(named, outputs))
        derivatives[:2] = _smoothed(derivatives[0], s.forward(1)), _smoothed(derivatives[1], s.reverse(1))
    options = {**STAY, **_defaults(named), "cache": {f.name(): f for f in derivatives}}
    return ca.Function(name, inputs, values, *_names(named, outputs), options)


def _inverse(T: Terms) -> ca.Function:
    """Inverse dynamics: the smallest u for the accelerations, and the reaction."""
    m = T.mechanism
    driven = actuated_by(m, None)
    T, a = Terms(driven, T.q, T.v, ca.SX(driven.nu, 1), T.t), ca.SX.sym("v_dot", m.nv)
    R, idle = weights(driven), idle_motions(driven).number
    T = with_losses_at(T, a, R, idle)
    force = T.inertia_force(a) - T.f
    u = ca.densify(allocate(T, force, R, idle=idle).u)
    given, named = [T.q, T.v, a, m.p_symbols, T.t], INPUTS["inverse_dynamics"]
    values = [u, ca.densify(force - T.B @ u)]
    return ca.Function("inverse_dynamics", given, values, *_names(named, ("u", "reaction")), _defaults(named))


def _constraints(T: Terms) -> ca.Function:
    """The residuals phi and eta of the constraint rows."""
    given, named = [T.q, T.v, T.mechanism.p_symbols, T.t], INPUTS["constraints"]
    values = [ca.densify(x) for x in (T.rows.phi, T.rows.eta)]
    return ca.Function("constraints", given, values, *_names(named, ("phi", "eta")), _defaults(named))


_MAKE: dict[str, Callable[[Terms], ca.Function]] = {
    "forward_dynamics": _forward,
    "inverse_dynamics": _inverse,
    "constraints": _constraints,
    "rate": _rate,
}
