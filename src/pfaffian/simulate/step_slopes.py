"""Derivatives of a step by its stages: CasADi differentiates the step itself, and asks here for those of what it calls.

The derivative of a right-hand side is that of the dynamics at constant accelerations and multipliers
(`dynamics/response.py`). That of the correction onto the constraints is along constant factors: what it leaves out is the
derivative of these times the residual that is corrected, h^5 with the classical rule.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from pfaffian.dynamics.response import Slopes, gradient, response, slopes
from pfaffian.errors import ModelError
from pfaffian.simulate.closed_loop import command_of
from pfaffian.simulate.limits import saturated
from pfaffian.simulate.sampling import refuse
from pfaffian.simulate.simulation import Simulation
from pfaffian.simulate.step import Functions, time_step
from pfaffian.simulate.tracing import correction
from pfaffian.simulate.variables import q_dot
from pfaffian.terms.connection import refuse_distributions
from pfaffian.terms.terms import Terms

EXPLICIT = ("rk4", "euler")
"""Integrators whose steps are differentiated: the others end iterations before rounding, and their derivatives would too."""

STAY = {"never_inline": True}


def check_differentiable(s: Simulation, what: str) -> None:
    """Raise ModelError where a step has no derivative, or none that is written here, and name the way out."""
    m = s.mechanism
    refuse_distributions(m, what)
    refuse(s.control, what)
    if s.system.own_state:
        raise ModelError(f"{what} takes mechanisms in the state [q; v]; {s.system.title} has another: give its mechanism")
    if s.scheme.integrator not in EXPLICIT:
        raise ModelError(f"{what} takes the integrators {', '.join(EXPLICIT)}; {s.scheme.integrator!r} iterates to a tolerance")
    names = [c.name for c in m.ideal if c.active]
    if names:
        raise ModelError(
            f"{what}: {', '.join(names)} may come and go, at an instant that moves with the state, where the motion has no "
            "derivative of this kind; leave out active_while"
        )


class _Rate(NamedTuple):
    """The closed loop at symbols.   x, w, p, t, v_dot: of its functions.   T: under the law's inputs.   z_dot: of the law."""

    x: ca.SX
    w: ca.SX
    p: ca.SX
    t: ca.SX
    v_dot: ca.SX
    T: Terms
    z_dot: ca.SX

    @property
    def by(self) -> ca.SX:
        return ca.vertcat(self.x, self.w, self.p)

    def inputs(self) -> list[ca.SX]:
        return [self.x, self.w, self.p, self.t, self.v_dot]

    def along(self, along: Callable[[ca.SX], ca.SX]) -> ca.SX:
        """The derivatives of x_dot along any directions, as in `slopes`."""
        at = response(self.T)
        moved = slopes(at, at.held()._replace(v_dot=self.v_dot), along)
        return ca.densify(ca.vertcat(along(q_dot(self.T.kinematics)), moved.v_dot, along(self.z_dot)))

    def back(self, seed: ca.SX) -> ca.SX:
        """The derivative of x_dot . seed by x, w and p."""
        m, at = self.T.mechanism, response(self.T)
        first, second, third = ca.vertsplit(seed, [0, m.nq, m.nq + m.nv, seed.numel()])
        held = at.held()._replace(v_dot=self.v_dot)
        none = ca.SX(0, 0)
        found = gradient(at, held, Slopes(second, none, none, none), self.by)
        rest = ca.vertcat(q_dot(self.T.kinematics), self.z_dot)
        return ca.densify(found + ca.jtimes(rest, self.by, ca.vertcat(first, third), True))


def _rate(s: Simulation) -> _Rate:
    here, m = s.system.at(), s.mechanism
    w, z, v_dot = ca.SX.sym("w", len(s.w_names)), ca.SX.sym("z", len(s.z)), ca.SX.sym("v_dot", m.nv)
    command = command_of(here.T.under(ca.SX(m.nu, 1)), s.control, s.scheme, z, w)
    u = saturated(m, command.u) if s.scheme.saturate else command.u
    return _Rate(ca.vertcat(here.x, z), w, m.p_symbols, here.T.t, v_dot, here.T.under(u), ca.densify(command.z_dot))


class StepParts(NamedTuple):
    """functions: of a step.   kept: the derivatives that CasADi will ask for, which it does not keep alive itself."""

    functions: Functions
    kept: list[ca.Function]

    def step(self, s: Simulation) -> tuple[list[ca.SX], ca.SX]:
        """(x, w, p, t, h), and x after a step under inputs that are held."""
        step = time_step(self.functions, s.mechanism, s.system.variables, s.scheme)
        x, w, _, p, t, h = (ca.SX.sym(name, step.size1_in(i)) for i, name in enumerate(("x", "w", "w1", "p", "t", "h")))
        return [x, w, p, t, h], step(x, w, w, p, t, h)[0]


def with_matrices(s: Simulation) -> StepParts:
    """The functions of a step, each with its derivatives as some of its numbers, computed once."""
    f, r = s.traced.functions, _rate(s)
    slope = ca.Function("rate_slopes", r.inputs(), [r.along(lambda x: ca.jacobian(x, r.by))], STAY)
    given = [ca.SX.sym(name, f.rhs.size1_in(i)) for i, name in enumerate(("x", "w", "p", "t"))]
    *values, _ = f.rhs(*given)
    rhs = _Extended("rhs_with_slopes", given, [*values, ca.vec(slope(*given, _v_dot(s, values[0])))], 4, (0, 1, 2))
    inputs, (moved, violation) = _correction(s)
    J = ca.vec(ca.densify(ca.jacobian(moved, ca.vertcat(*inputs[:2]))))
    project = _Extended("project_with_slopes", inputs, [moved, ca.vertcat(violation, J)], 1, (0, 1))
    return _parts(f, rhs.by_matrix(), project.by_matrix())


def with_products(s: Simulation) -> StepParts:
    """The functions of a step, with products of their derivatives along a direction, and back."""
    f, r = s.traced.functions, _rate(s)
    x, w, p = r.x, r.w, r.p
    dx, dw, dp = (ca.SX.sym(f"d{name}", y.numel()) for name, y in (("x", x), ("w", w), ("p", p)))
    way, seed = ca.vertcat(dx, dw, dp), ca.SX.sym("seed", x.numel())
    ahead = ca.Function("rate_ahead", [*r.inputs(), dx, dw, dp], [r.along(lambda y: ca.jtimes(y, r.by, way))], STAY)
    sizes = [0, x.numel(), x.numel() + w.numel(), x.numel() + w.numel() + p.numel()]
    back = ca.Function("rate_back", [*r.inputs(), seed], list(ca.vertsplit(r.back(seed), sizes)), STAY)
    given = [ca.SX.sym(name, f.rhs.size1_in(i)) for i, name in enumerate(("x", "w", "p", "t"))]
    rhs = _Extended("rhs_with_products", given, list(f.rhs(*given)), 4, (0, 1, 2))
    rates = rhs.by_products(
        lambda values, seeds: ahead(*given, _v_dot(s, values[0]), *seeds),
        lambda values, bar: list(back(*given, _v_dot(s, values[0]), bar)),
    )
    inputs, (moved, violation) = _correction(s)
    both = ca.vertcat(*inputs[:2])
    project = _Extended("project_with_products", inputs, [moved, violation], 1, (0, 1))
    corrections = project.by_products(
        lambda values, seeds: ca.jtimes(moved, both, ca.vertcat(*seeds)),
        lambda values, bar: list(ca.vertsplit(ca.jtimes(moved, both, bar, True), [0, f.project.size1_in(0), both.numel()])),
    )
    return _parts(f, rates, corrections)


def _parts(f: Functions, rhs: list[ca.Function], project: list[ca.Function]) -> StepParts:
    return StepParts(f._replace(rhs=rhs[0], project=project[0]), [*rhs, *project])


def _correction(s: Simulation) -> tuple[list[ca.SX], list[ca.SX]]:
    inputs, (moved, violation), _ = correction(s, s.system.at(), ca.SX.sym("z", len(s.z)))
    return inputs, [ca.densify(moved), violation]


def _v_dot(s: Simulation, x_dot: ca.SX) -> ca.SX:
    return x_dot[s.mechanism.nq : s.mechanism.nq + s.mechanism.nv, 0]


class _Extended(NamedTuple):
    """A function whose first result has derivatives by some inputs, and whose other results have none.

    at: the result whose last numbers are these derivatives, where they are computed with it.
    """

    name: str
    inputs: list[ca.SX]
    results: list[ca.SX]
    at: int
    by: tuple[int, ...]

    def by_matrix(self) -> list[ca.Function]:
        """It, and what CasADi shall take for its derivatives: products with the matrix among its results."""
        values = self.values()
        n, width = self.results[0].numel(), sum(self.inputs[k].numel() for k in self.by)
        J = ca.reshape(values[self.at][values[self.at].numel() - n * width :, 0], n, width)
        ends = np.cumsum([0, *[self.inputs[k].numel() for k in self.by]]).tolist()
        return self._made(values, lambda _, seeds: J @ ca.vertcat(*seeds), lambda _, bar: list(ca.vertsplit(J.T @ bar, ends)))

    def by_products(self, ahead: _Ahead, back: _Back) -> list[ca.Function]:
        """It, and these as its derivatives.   ahead: (results, change of each input) -> that of the first result.
        back: (results, weights of the first result) -> those of each input."""
        return self._made(self.values(), ahead, back)

    def values(self) -> list[ca.SX]:
        """Symbols for the results."""
        return [ca.SX.sym(f"{self.name}_{k}", x.sparsity()) for k, x in enumerate(self.results)]

    def _made(self, values: list[ca.SX], ahead: _Ahead, back: _Back) -> list[ca.Function]:
        seeds = [ca.SX.sym(f"d{k}", x.numel()) for k, x in enumerate(self.inputs)]
        bars = [ca.SX.sym(f"b{k}", x.sparsity()) for k, x in enumerate(values)]
        forward = [ahead(values, [seeds[k] for k in self.by]), *[0 * x for x in values[1:]]]
        parts = dict(zip(self.by, back(values, bars[0]), strict=True))
        reverse = [ca.densify(parts.get(k, ca.SX(x.numel(), 1))) for k, x in enumerate(self.inputs)]
        derivatives = [
            ca.Function(f"fwd1_{self.name}", [*self.inputs, *values, *seeds], [ca.densify(forward[0]), *forward[1:]]),
            ca.Function(f"adj1_{self.name}", [*self.inputs, *values, *bars], reverse),
        ]
        options: dict[str, Any] = {**STAY, "cache": {f.name(): f for f in derivatives}}
        return [ca.Function(self.name, self.inputs, self.results, options), *derivatives]


_Ahead = Callable[[list[ca.SX], list[ca.SX]], ca.SX]
_Back = Callable[[list[ca.SX], ca.SX], list[ca.SX]]
