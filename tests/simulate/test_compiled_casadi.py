"""`casadi_function` with compiled code gives the numbers and derivatives of the expression, also within CasADi's solvers."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest

import pfaffian as pf
from pfaffian import control
from pfaffian.differentiation import casadi_functions
from pfaffian.errors import BuildError, ModelError, notice_once
from tests.tolerance import close

SAME = 1e-12
"""Tolerance for the same sums in another order."""

H = 0.02


def bead() -> pf.Mechanism:
    """A bead on a circle that grows with time, in a wind that varies, with a motor and a parameter."""
    size = pf.Parameter("size", 1.0, "m")
    plane = pf.joint("bead", "planar-translation", "world", "bead")
    circle = pf.holonomic("circle", lambda k: (k.q[0] ** 2 + k.q[1] ** 2 - (size.symbol + 0.1 * k.t) ** 2) / 2)
    wind = pf.forces.potential("wind", lambda k: ca.sin(3 * k.t) * k.q[0])
    return pf.mechanism(
        "bead", [pf.body("bead", mass=2.0)], [plane], constraints=[circle], parameters=[size], forces=[wind],
        actuators=[pf.actuator("fan", "bead", component=0)],
    )  # fmt: skip


def at(f: ca.Function, t: float = 0.0) -> list[ca.DM]:
    """Arguments of f at a state on the constraint."""
    q, v = np.array([0.6, 0.8]), np.array([0.8, -0.6])
    radius = 1.2 + 0.1 * t
    q, v = q * radius, v * 0.7 + 0.1 * q
    known = {"q": q, "v": v, "x": np.concatenate([q, v]), "u": 0.3, "p": 1.2, "t": t, "v_dot": [0.2, -0.1]}
    return [ca.DM(known[name]) for name in f.name_in()]


def derivatives(f: ca.Function) -> ca.Function:
    """The Jacobian of f, its products with a direction and with weights, and the Hessian of a sum of its results."""
    given = [ca.MX.sym(name, f.size1_in(i)) for i, name in enumerate(f.name_in())]
    x, y = ca.vertcat(*given), ca.vertcat(*[ca.vec(part) for part in f.call(given)])
    way, weights = ca.DM(np.sin(1.0 + np.arange(x.numel()))), ca.DM(np.cos(np.arange(y.numel())))
    total = ca.dot(weights, y) + ca.sumsqr(y)
    found = [ca.jacobian(y, x), ca.jtimes(y, x, way), ca.jtimes(y, x, weights, True), ca.hessian(total, x)[0]]
    return ca.Function("derivatives", given, found)


MADE = {"forward_dynamics": {}, "step": {"step": H}}


@pytest.fixture(scope="module")
def both() -> dict[str, tuple[ca.Function, ca.Function]]:
    m = bead()
    return {
        what: (pf.casadi_function(m, what, backend="c", **how), pf.casadi_function(m, what, backend="casadi", **how))
        for what, how in MADE.items()
    }


@pytest.mark.parametrize("what", MADE)
def test_numbers_and_derivatives_are_those_of_the_expression(both, what):
    f, expression = both[what]
    assert f.is_a("External", False) and f.jacobian().is_a("External", False) and not expression.is_a("External", False)
    for part in (f.forward(1), f.reverse(1), f.reverse(1).forward(1), f.reverse(1).reverse(1)):
        assert part.is_a("External", False)
    for a, b in zip(f.call(at(f, 0.3)), expression.call(at(f, 0.3)), strict=True):
        close(np.array(a), np.array(b), SAME, what, max(1.0, float(ca.norm_inf(b))))
    parts = "Jacobian", "forward", "reverse", "Hessian"
    compiled, interpreted = (derivatives(g).call(at(f, 0.3)) for g in (f, expression))
    for name, a, b in zip(parts, compiled, interpreted, strict=True):
        close(np.array(a), np.array(b), 1e-11, name, float(ca.norm_inf(ca.vec(b))))


@pytest.mark.parametrize("what", MADE)
def test_the_time_derivative_equals_differences_along_a_motion(both, what):
    """The differences are taken along q(t), v(t) that stay on the circle."""
    f = both[what][0]
    J = f.jacobian()(*at(f, 0.3), *f.call(at(f, 0.3)))
    e = 1e-3

    def value(t: float) -> np.ndarray:
        return np.array(f.call(at(f, t))[0]).ravel()

    near, far = ((value(0.3 + d) - value(0.3 - d)) / (2 * d) for d in (e / 2, e))
    moved = [(np.array(a - b) / (2 * e)).ravel() for a, b in zip(at(f, 0.3 + e), at(f, 0.3 - e), strict=True)]
    found = sum(np.array(block) @ way for block, way in zip(J[: f.n_in()], moved, strict=True))
    close(found, (4 * near - far) / 3, 1e-8, "along the motion")


def test_omitted_parameters_give_nan(both):
    for f in both["step"]:
        assert np.isnan(np.array(f(x=at(f)[0])["x_next"])).all() and np.isfinite(np.array(f(x=at(f)[0], p=1.2)["x_next"])).all()


def test_the_step_is_that_of_run(both):
    f, m = both["step"][0], bead()
    d = pf.calculus.step_derivatives(m, *np.split(at(f)[0].full().ravel(), 2), [0.3], step=H, parameters=[1.2], backend="numpy")
    close(np.array(f.call(at(f))[0]).ravel(), np.concatenate([d.q, d.v]), SAME, "the step")


def test_ipopt_plans_with_compiled_code_and_exact_hessians(both):
    """Twenty steps shall bring the bead to rest at the top of its circle."""
    found = []
    for step in both["step"]:
        u, x, cost = ca.MX.sym("u", 20), at(step)[0], 0
        for k in range(20):
            x = step(x, u[k], 1.2, H * k)
            cost += 1e-4 * u[k] ** 2
        cost += ca.sumsqr(x - ca.DM([0, 1.24, 0, 0.1]))
        quiet = {"print_time": False, "ipopt.print_level": 0, "ipopt.sb": "yes"}
        solver = ca.nlpsol("plan", "ipopt", {"x": u, "f": cost}, quiet)
        found.append((np.array(solver(x0=0)["x"]).ravel(), solver.stats()["iter_count"]))
        assert solver.stats()["success"] and solver.stats()["iter_count"] < 15
    close(found[0][0], found[1][0], 1e-6, "the plan", np.abs(found[1][0]).max())


def test_derivatives_survive_expressions_of_sx_and_serialisation(both):
    f, expression = both["forward_dynamics"]
    q, (_, *rest) = ca.SX.sym("q", 2), at(f)
    for g in (f, ca.Function.deserialize(f.serialize())):
        assert g.jacobian().is_a("External", False)
        slope = ca.Function("slope", [q], [ca.jtimes(g(q, *rest)[0], q, ca.DM([1.0, 2.0]))])
        expected = ca.Function("slope", [q], [ca.jtimes(expression(q, *rest)[0], q, ca.DM([1.0, 2.0]))])
        close(np.array(slope(at(f)[0])), np.array(expected(at(f)[0])), SAME, "in SX", 10.0)


def test_wrt_adds_jacobians_and_hessian_false_omits_second_derivatives():
    m = bead()
    f = pf.casadi_function(m, "rate", wrt=["x", "t"], backend="c")
    expression = pf.casadi_function(m, "rate", wrt=["x", "t"], backend="casadi")
    assert f.name_out() == ["x_dot", "x_dot_by_x", "x_dot_by_t"]
    for a, b in zip(f.call(at(f)), expression.call(at(f)), strict=True):
        close(np.array(a), np.array(b), SAME, "with matrices", 10.0)
    once = pf.casadi_function(m, "rate", hessian=False, backend="c")
    assert once.reverse(1).is_a("External", False)
    x = ca.MX.sym("x", 4)
    with pytest.raises(RuntimeError, match="Derivatives cannot be calculated for adj1_rate"):
        ca.hessian(ca.sumsqr(once(x, 0.3, 1.2, 0)), x)


def test_a_compiled_function_is_not_derived_again(both, monkeypatch):
    def never(self: object) -> None:
        raise AssertionError

    monkeypatch.setattr(casadi_functions.FunctionRequest, "library", never)
    again = pf.casadi_function(bead(), "forward_dynamics", backend="c")
    close(np.array(again.call(at(again))[0]), np.array(both["forward_dynamics"][0].call(at(again))[0]), 0, "the same")


def test_each_step_size_and_law_has_its_library(both):
    law = control.Control(lambda T, z, w, y: control.Command(w - T.v[0]), w_names=("set",))
    m, f = bead(), both["step"][0]
    keys = {
        casadi_functions.FunctionRequest(m, "step", (), True, casadi_functions.differentiable(m, control, None, "here"), h).key
        for control in (None, law)
        for h in (0.01, 0.02)
    }
    for what in ("rate", "constraints"):
        for wrt in ((), ("x",)):
            keys |= {casadi_functions.FunctionRequest(m, what, wrt, hessian).key for hessian in (True, False)}
    assert len(keys) == 4 + 8
    other = pf.casadi_function(m, "step", step=H / 2, hessian=False, backend="c")
    assert np.abs(np.array(other.call(at(f))[0] - f.call(at(f))[0])).max() > 1e-3


def test_without_a_compiler_casadi_evaluates_it_and_warns(monkeypatch):
    monkeypatch.setenv("PFAFFIAN_CC", "/no/such/compiler")
    notice_once.cache_clear()
    with pytest.warns(RuntimeWarning, match="casadi_function: evaluated by CasADi, .* slower .*: no C compiler found") as seen:
        f = pf.casadi_function(bead(), "rate")
        pf.casadi_function(bead(), "rate")
    assert len(seen) == 1 and not f.is_a("External", False) and np.isfinite(np.array(f.call(at(f))[0])).all()
    with pytest.raises(BuildError, match="no C compiler found"):
        pf.casadi_function(bead(), "rate", backend="c")
    with pytest.raises(ModelError, match="casadi_function: backend 'numpy' is unknown"):
        pf.casadi_function(bead(), "rate", backend="numpy")
