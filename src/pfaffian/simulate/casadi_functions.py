"""Named CasADi functions of a mechanism, whose derivatives are those at constant accelerations and multipliers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import casadi as ca
import numpy as np

from pfaffian.control.allocation import allocate, weights
from pfaffian.control.law import Control
from pfaffian.dynamics.response import Slopes, gradient, response, slopes
from pfaffian.errors import BuildError, ModelError
from pfaffian.evaluate.arrays import as_flag, as_number, one_of
from pfaffian.evaluate.inverse import actuated_by
from pfaffian.evaluate.progress import progress_line
from pfaffian.kernel.build.library import warn_once
from pfaffian.kernel.call.external import compile_external
from pfaffian.model.mechanism import Mechanism, as_mechanism, as_names
from pfaffian.simulate.curvature import smooth_motion, smooth_step
from pfaffian.simulate.simulation import Simulation
from pfaffian.simulate.step import Scheme
from pfaffian.simulate.step_slopes import STAY, differentiable, with_matrices, with_products
from pfaffian.terms.digest import digest
from pfaffian.terms.terms import Terms, symbols

FUNCTIONS = ("forward_dynamics", "inverse_dynamics", "constraints", "rate", "step")
"""What `casadi_function` makes."""

By = Literal["auto", "c", "casadi"]
"""Who evaluates what it makes."""


def casadi_function(
    m: Mechanism,
    what: str,
    *,
    wrt: Sequence[str] = (),
    step: float | None = None,
    scheme: Scheme | None = None,
    control: Control | None = None,
    hessian: bool = True,
    backend: By = "auto",
) -> ca.Function:
    """A CasADi function of a mechanism, with named inputs and outputs, to build optimisations of.

        forward_dynamics   (q, v, u, p, t) -> (v_dot, reaction, multipliers)
        inverse_dynamics   (q, v, v_dot, p, t) -> (u, reaction), the smallest u
        constraints        (q, v, p, t) -> (phi, eta), which vanish on the constraints
        rate               (x, u, p, t) -> x_dot, x = [q; v]
        step               (x, u, p, t) -> x_next, a step of `run` under inputs that are held, x = [q; v; z of a law]

    CasADi gets the derivatives of forward_dynamics, rate and step from the library: those of inverse dynamics and rows at
    constant accelerations and multipliers, answered by one factorisation, see `derivatives`. They are by the numbers in q, not
    along velocities, and hold wherever jacobian, jtimes or a solver asks for them. The first ones of a step are those of
    `step_derivatives`: exact where x satisfies the constraints, off by the residual elsewhere. Second ones are exact.

    Compiled, the function is one of a shared library in the library's cache, beside its Jacobian, its products with a
    direction, forwards and back, and the derivatives of the latter, for exact Hessians; with `wrt` it stands alone. A file that
    CasADi writes of it holds the path of that library, for this machine. As an expression it has second derivatives too; read
    again from a file it has lost ours, and CasADi differentiates the text itself, factorisations and all: at a higher price,
    and wrongly in second derivatives of a step and where a leg is exactly straight.

    Args:
        m: the mechanism.
        what: one of the names above.
        wrt: names of inputs by which each output is differentiated, as further outputs `<output>_by_<input>`; none by default.
        step: length of the step [s], needed for "step".
        scheme: of "step", with the integrator rk4 or euler; `pf.Scheme()` by default.
        control: a law in continuous time in the loop of "step", whose inputs u then are; None by default.
        hessian: whether second derivatives are compiled too, which doubles the text; without them solvers must approximate
            Hessians. True by default.
        backend: "auto" compiled now, or, after a warning, evaluated by CasADi where there is no compiler; "c" compiled;
            "casadi" an expression of SX that CasADi evaluates. The numbers agree to rounding.
    Returns:
        a casadi.Function, for symbols of SX and MX. p are the mechanism's parameters, in the order of `p_names`; m.p_defaults
        are their values. Inputs that are left out in a call by names are zero, but for p, which is then NaN.
    Raises ModelError: another name, a step without length, or what `step_derivatives` refuses.
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
    as_mechanism(m)
    one_of(what, FUNCTIONS, "casadi_function: what")
    one_of(backend, get_args(By), "casadi_function: backend")
    made = FunctionRequest(m, what, as_names(wrt, "wrt") if len(wrt) else (), as_flag(hessian, "hessian"))
    if what == "step":
        if step is None:
            raise ModelError("casadi_function: give the length of a step too, such as step=0.01 [s]")
        h = as_number(step, "step", above=0)
        made = replace(made, simulation=explicit(m, control, scheme, "casadi_function"), h=h)
    elif not (step is None and scheme is None and control is None):
        raise ModelError(f"casadi_function: {what!r} takes no step, scheme or control; 'step' does")
    for name in made.wrt:
        one_of(name, INPUTS[what], "casadi_function: wrt")
    if backend == "casadi":
        return made.expression()
    try:
        with progress_line(m.name, False):
            path = compile_external(made.library, made.key)
    except BuildError as error:
        if backend == "c":
            raise
        warn_once(f"casadi_function: evaluated by CasADi, some ten times slower than compiled: {error}")
        return made.expression()
    f = ca.external(what, str(path))
    penalty = MATRIX / max(1, min(f.nnz_in(), f.nnz_out()))
    products = {"jac_penalty": -1}  # they have no Jacobian in the library, for which CasADi would search without end
    return ca.external(what, str(path), {"jac_penalty": penalty, "ad_weight": 0.5, "reverse_options": products})


MATRIX = 1.5
"""For more directions than this CasADi takes the Jacobian, which costs some two of them, instead of one after another."""

INPUTS = {
    "forward_dynamics": ("q", "v", "u", "p", "t"),
    "inverse_dynamics": ("q", "v", "v_dot", "p", "t"),
    "constraints": ("q", "v", "p", "t"),
    "rate": ("x", "u", "p", "t"),
    "step": ("x", "u", "p", "t"),
}


@dataclass(frozen=True)
class FunctionRequest:
    """The functions that are requested.   hessian: with second derivatives.   simulation, h: of a step."""

    mechanism: Mechanism
    what: str
    wrt: tuple[str, ...]
    hessian: bool
    simulation: Simulation | None = None
    h: float = 0.0

    @property
    def key(self) -> str:
        of = f"step {self.h.hex()} {self.simulation.key}" if self.simulation else f"{self.what} {digest(self.mechanism)}"
        return f"casadi {of} by {self.wrt} {self.hessian}"

    def expression(self) -> ca.Function:
        """The Function of SX."""
        f = _MAKE[self.what](symbols(self.mechanism)) if self.simulation is None else _step(self.simulation, self.h)
        return _with_jacobians(f, self.wrt) if self.wrt else f

    def matrices(self) -> ca.Function:
        """It, and its derivatives by `wrt` computed together, for the least work; these have no derivatives themselves."""
        if self.simulation is not None:
            return _with_jacobians(step_function(self.simulation, self.h, True), self.wrt)
        f = _MAKE[self.what](symbols(self.mechanism))
        given, n = f.sx_in(), f.n_in()
        values = f.call(given)
        blocks = f.jacobian().call([*given, *values])
        return _beside(f, self.wrt, given, values, lambda o, i: blocks[o * n + i])

    def library(self) -> tuple[ca.Function, ...]:
        """It, and what CasADi asks for to differentiate it."""
        if self.wrt:
            return (self.matrices(),)
        f = value = self.expression()
        J = f.jacobian() if self.simulation is None else _jacobian(step_function(self.simulation, self.h, True))
        if self.simulation is not None:
            value = step_function(self.simulation, self.h, False)
        back = f.reverse(1)
        more = (back.forward(1), back.reverse(1)) if self.hessian else ()
        return (value, J, f.forward(1), back, *more)


def explicit(m: Mechanism, control: Control | None, scheme: Scheme | None, what: str) -> Simulation:
    """As `differentiable`. Raises ModelError too where stages solve equations: their second derivatives are not there."""
    s = differentiable(m, control, scheme, what)
    if s.scheme.stiff:
        raise ModelError(
            f"{what} takes the integrators rk4 and euler, whose second derivatives are exact; for first ones with "
            f"{s.scheme.integrator!r} see step_derivatives and rollout"
        )
    return s


def _step(s: Simulation, h: float) -> ca.Function:
    """The step, with first derivatives along factors at hand, and second ones without."""
    f, smooth = step_function(s, h, False), smooth_step(s, h)
    first = [_followed(f.forward(1), smooth.forward(1)), _followed(f.reverse(1), smooth.reverse(1))]
    return _called(smooth, {d.name(): d for d in first})


def _followed(first: ca.Function, smooth: ca.Function) -> ca.Function:
    """A first derivative, for whose own derivatives CasADi takes those of another expression of it."""
    return _called(first, {d.name(): d for d in (smooth.forward(1), smooth.reverse(1))})


def _called(f: ca.Function, derivatives: dict[str, ca.Function]) -> ca.Function:
    """The same function, with these derivatives under the names by which CasADi asks for them."""
    given = [ca.SX.sym(name, f.sparsity_in(i)) for i, name in enumerate(f.name_in())]
    options = {**STAY, **_defaults(f.name_in()), "cache": derivatives}
    return ca.Function(f.name(), given, f.call(given), *_named(f.name_in(), f.name_out()), options)


def _defaults(names: Sequence[str]) -> dict[str, Any]:
    """Options: what CasADi takes for inputs that a caller leaves out. Parameters of zero would be another machine."""
    return {"default_in": [np.nan if name == "p" else 0.0 for name in names]}


def _jacobian(f: ca.Function) -> ca.Function:
    """The Jacobian of a function of one output, under the name by which CasADi asks for it."""
    given = [ca.SX.sym(name, f.size1_in(i)) for i, name in enumerate(f.name_in())]
    (value,) = f.call(given)
    unused = ca.SX.sym("out", ca.Sparsity(value.numel(), 1))
    return ca.Function(f"jac_{f.name()}", [*given, unused], [ca.jacobian(value, x) for x in given])


def step_function(s: Simulation, h: float, matrices: bool) -> ca.Function:
    """(x, u, p, t) -> x_next.   matrices: whether all derivatives are wanted, so that stages compute theirs once."""
    (x, w, p, t, length), there = (with_matrices if matrices else with_products)(s).step(s)
    whole = ca.Function("step_of_length", [x, w, p, t, length], [there])
    named = INPUTS["step"]
    return ca.Function("step", [x, w, p, t], [whole(x, w, p, t, h)], *_named(named, ("x_next",)), _defaults(named))


def _named(inputs: Sequence[str], outputs: Sequence[str]) -> tuple[list[str], list[str]]:
    return list(inputs), list(outputs)


def _with_jacobians(f: ca.Function, wrt: Sequence[str]) -> ca.Function:
    given = [ca.SX.sym(name, f.size1_in(i)) for i, name in enumerate(f.name_in())]
    values = f.call(given)
    return _beside(f, wrt, given, values, lambda o, i: ca.jacobian(values[o], given[i]))


def _beside(
    f: ca.Function, wrt: Sequence[str], given: list[ca.SX], values: list[ca.SX], block: Callable[[int, int], ca.SX]
) -> ca.Function:
    """f with derivatives beside its values.   block: (output, input) -> that of one by the other."""
    pairs = [(o, i) for o in f.name_out() for i in wrt]
    more = [block(f.index_out(o), f.index_in(i)) for o, i in pairs]
    names = [*f.name_out(), *[f"{o}_by_{i}" for o, i in pairs]]
    return ca.Function(f.name(), given, [*values, *more], f.name_in(), names, _defaults(f.name_in()))


class _Dynamics:
    """Forward dynamics at Terms, and its derivatives along any change of (q, v, u, p, t)."""

    def __init__(self, T: Terms) -> None:
        self.T, self.at = T, response(T)
        self.motion = self.at.motion()
        self.inputs = [T.q, T.v, T.u, T.mechanism.p_symbols, T.t]
        reaction = T.A.T @ self.motion.multipliers + T.servo.Z.T @ self.motion.mu
        self.values = [self.motion.v_dot, ca.densify(reaction), self.motion.multipliers]
        self.by = ca.vertcat(*self.inputs)

    def moved(self, along: Callable[[ca.SX], ca.SX]) -> list[ca.SX]:
        found = slopes(self.at, self.motion, along)
        return [ca.densify(x) for x in (found.v_dot, found.reaction, found.multipliers)]

    def back(self, seeds: list[ca.SX]) -> ca.SX:
        return gradient(self.at, self.motion, Slopes(seeds[0], seeds[2], ca.SX(0, 0), seeds[1]), self.by)


def motion_with_matrices(T: Terms) -> tuple[list[ca.SX], list[ca.SX], ca.SX]:
    """(q, v, u, p, t), (v_dot, reaction, multipliers), and the derivatives of these below each other by those side by side."""
    d = _Dynamics(T)
    return d.inputs, d.values, ca.vertcat(*d.moved(lambda x: ca.jacobian(x, d.by)))


def _forward(T: Terms) -> ca.Function:
    d = _Dynamics(T)
    smooth = None if T.mechanism.servos else [*smooth_motion(T)]
    return _differentiated("forward_dynamics", d.inputs, d.values, d.moved, d.back, ("q", "v", "u", "p", "t"), OUTPUTS, smooth)


OUTPUTS = ("v_dot", "reaction", "multipliers")


def _rate(T: Terms) -> ca.Function:
    d, m = _Dynamics(T), T.mechanism
    q_dot = ca.densify(T.kinematics.q_dot)
    x = ca.vertcat(T.q, T.v)

    def moved(along: Callable[[ca.SX], ca.SX]) -> list[ca.SX]:
        return [ca.densify(ca.vertcat(along(q_dot), d.moved(along)[0]))]

    def back(seeds: list[ca.SX]) -> ca.SX:
        first, second = ca.vertsplit(seeds[0], [0, m.nq, m.nq + m.nv])
        none = ca.SX(0, 0)
        return gradient(d.at, d.motion, Slopes(second, none, none, none), d.by) + ca.jtimes(q_dot, d.by, first, True)

    values = [ca.vertcat(q_dot, d.motion.v_dot)]
    smooth = None if m.servos else [ca.vertcat(q_dot, smooth_motion(T)[0])]
    return _differentiated("rate", [x, *d.inputs[2:]], values, moved, back, ("x", "u", "p", "t"), ("x_dot",), smooth)


def _differentiated(
    name: str,
    inputs: list[ca.SX],
    values: list[ca.SX],
    moved: Callable[[Callable[[ca.SX], ca.SX]], list[ca.SX]],
    back: Callable[[list[ca.SX]], ca.SX],
    named: Sequence[str],
    outputs: Sequence[str],
    smooth: list[ca.SX] | None,
) -> ca.Function:
    """A Function with its derivatives along a direction, back, and as matrices, under the names by which CasADi asks.

    smooth: the values again, as expressions whose second derivatives are exact; None: those of the values are taken.
    """
    by = ca.vertcat(*inputs)
    there = [ca.SX.sym(f"out_{n}", ca.Sparsity(x.numel(), 1)) for n, x in zip(outputs, values, strict=True)]  # not needed
    seeds = [ca.SX.sym(f"fwd_{n}", x.numel()) for n, x in zip(named, inputs, strict=True)]
    weights_back = [ca.SX.sym(f"adj_{n}", x.numel()) for n, x in zip(outputs, values, strict=True)]
    ends = np.cumsum([0, *[x.numel() for x in inputs]]).tolist()
    way = ca.vertcat(*seeds)
    ahead = moved(lambda x: ca.jtimes(x, by, way))
    by_each = [ca.densify(x) for x in ca.vertsplit(ca.densify(back(weights_back)), ends)]
    matrices = [ca.densify(part) for J in moved(lambda x: ca.jacobian(x, by)) for part in ca.horzsplit(J, ends)]
    derivatives = [
        ca.Function(f"fwd1_{name}", [*inputs, *there, *seeds], ahead),
        ca.Function(f"adj1_{name}", [*inputs, *there, *weights_back], by_each),
        ca.Function(f"jac_{name}", [*inputs, *there], matrices),
    ]
    if smooth is not None:
        s = ca.Function(name, inputs, smooth, *_named(named, outputs))
        derivatives[:2] = _followed(derivatives[0], s.forward(1)), _followed(derivatives[1], s.reverse(1))
    options = {**STAY, **_defaults(named), "cache": {f.name(): f for f in derivatives}}
    return ca.Function(name, inputs, values, *_named(named, outputs), options)


def _inverse(T: Terms) -> ca.Function:
    m = T.mechanism
    driven = actuated_by(m, None)
    T, a = Terms(driven, T.q, T.v, ca.SX(driven.nu, 1), T.t), ca.SX.sym("v_dot", m.nv)
    force = T.inertia_force(a) - T.f
    u = ca.densify(allocate(T, force, weights(driven)).u)
    given, named = [T.q, T.v, a, m.p_symbols, T.t], INPUTS["inverse_dynamics"]
    values = [u, ca.densify(force - T.B @ u)]
    return ca.Function("inverse_dynamics", given, values, *_named(named, ("u", "reaction")), _defaults(named))


def _constraints(T: Terms) -> ca.Function:
    given, named = [T.q, T.v, T.mechanism.p_symbols, T.t], INPUTS["constraints"]
    values = [ca.densify(x) for x in (T.rows.phi, T.rows.eta)]
    return ca.Function("constraints", given, values, *_named(named, ("phi", "eta")), _defaults(named))


_MAKE: dict[str, Callable[[Terms], ca.Function]] = {
    "forward_dynamics": _forward,
    "inverse_dynamics": _inverse,
    "constraints": _constraints,
    "rate": _rate,
}
