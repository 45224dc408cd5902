"""From casadi.Function to Program: values, calls, structure and refusals."""

import casadi as ca
import numpy as np
import pytest

from pfaffian import kernel
from pfaffian.errors import BuildError
from pfaffian.kernel.build.compiled_passes import passes as compiled
from pfaffian.kernel.program.interpret import evaluate
from pfaffian.kernel.program.passes import PYTHON, optimise

x = ca.SX.sym("x", 3)
UNARY = ["sqrt", "sin", "cos", "tan", "asin", "acos", "atan", "exp", "log", "fabs", "floor", "ceil", "sign",
         "tanh", "sinh", "cosh", "logic_not", "log1p", "expm1", "asinh", "acosh", "atanh"]  # fmt: skip
BINARY = ["plus", "minus", "times", "rdivide", "power", "atan2", "fmin", "fmax", "lt", "le", "eq", "ne",
          "logic_and", "logic_or", "copysign", "fmod", "hypot"]  # fmt: skip


def test_operations_of_casadi_agree_with_casadi():
    a, b = x[0], x[1]
    outputs = [getattr(ca, n)(a) for n in UNARY] + [getattr(ca, n)(a, b) for n in BINARY]
    outputs += [a * a, a**3, a**-2, a**2.5, 1 / a, -a, a + a, a**0.5, ca.if_else(a > b, a / b, b / a), 2**a]
    f = ca.Function("f", [x], [ca.vertcat(*outputs)])
    k = kernel.compile(f, backend="c")
    for values in np.random.default_rng(0).uniform(-2, 2, (50, 3)):
        np.testing.assert_allclose(k(values)[0], np.array(f(values)).ravel(), rtol=1e-13, atol=1e-15)


def nested():
    inner = ca.Function("inner", [x], [ca.sin(x) * x[0], x[1] ** 2], {"never_inline": True})
    a, b = inner(x + 1)
    middle = ca.Function("middle", [x], [a + b, inner(a)[0]], {"never_inline": True})
    c, d = middle(x)
    return ca.Function("outer", [x], [c, d, inner(c)[0] * middle(d)[1]])


def test_calls_nest_and_are_printed_once():
    f = nested()
    k = kernel.compile(f, backend="c")
    batch = np.random.default_rng(0).normal(size=(11, 3))
    for row, *results in zip(batch, *k(batch), strict=True):
        for got, expected in zip(results, f(row), strict=True):
            np.testing.assert_allclose(got, np.array(expected).ravel(), rtol=1e-12)
    assert k.source.count("pf_sin(v") == 3  # once in the text of inner, for three components
    assert kernel.trace(f).digest() == kernel.trace(nested()).digest()


@pytest.mark.parametrize("how", [PYTHON, compiled()], ids=["Python", "C"])
def test_zeros_that_appear_by_merging_equal_expressions_are_propagated(how):
    """CasADi writes each sine as a separate expression, so the traced function contains no constant zero."""
    a, b = x[0], x[1]
    zero, another = (ca.sin(ca.cos(a * b)) - ca.sin(ca.cos(a * b)) for _ in range(2))
    of_zero = [zero, zero * b, b * zero, zero / b, -zero, zero**2, 2 * zero, zero + another, zero - another, zero * another]
    f = ca.Function("f", [x], [ca.vertcat(*of_zero, *[b + y for y in of_zero], b - zero, zero - b)])
    assert 0.0 not in [f.instruction_constant(i) for i in range(f.n_instructions()) if f.instruction_id(i) == ca.OP_CONST]
    program = optimise(kernel.trace(f, how), how)
    assert [s.op for s in program.steps] == ["neg"]
    (got,) = evaluate(program, [np.array([[0.3, 0.7, 2.0]])])
    assert got.tolist() == [[0.0] * len(of_zero) + [0.7] * (len(of_zero) + 1) + [-0.7]]


def test_two_callees_of_one_name_are_refused():
    f, g = (ca.Function("same", [x], [n * x], {"never_inline": True}) for n in (2, 3))
    with pytest.raises(BuildError, match="two different functions"):
        kernel.trace(ca.Function("f", [x], [f(x) + g(x)]))


def test_two_callees_of_one_name_in_different_callers_are_refused():
    f, g = (ca.Function("same", [x], [n * x], {"never_inline": True}) for n in (2, 3))
    h = ca.Function("h", [x], [g(x)], {"never_inline": True})
    with pytest.raises(BuildError, match="two different functions"):
        kernel.trace(ca.Function("f", [x], [f(x) + h(x)]))


def test_sparse_and_matrix_ports_become_dense_columns():
    L = ca.SX.sym("L", ca.Sparsity.lower(2))
    f = ca.Function("f", [L], [ca.diag(ca.vertcat(L[0, 0], L[1, 1])), L.T @ L])
    k = kernel.compile(f, backend="numpy")
    a, b = k(np.array([2.0, 3.0, 99.0, 5.0]))
    assert a.tolist() == [2, 0, 0, 5]
    assert b.tolist() == [13, 15, 15, 25]


def test_refusals_name_the_culprit():
    y = ca.MX.sym("y")
    with pytest.raises(BuildError, match="not a Function of SX"):
        kernel.trace(ca.Function("mx", [y], [ca.sin(y)]))
    with pytest.raises(BuildError, match="OP_ERF"):
        kernel.trace(ca.Function("f", [x], [ca.erf(x)]))
    with pytest.raises(BuildError, match="inf or nan"):
        kernel.trace(ca.Function("f", [x], [x * ca.inf]))


@pytest.mark.parametrize("name", ['a"; int evil = 1; //', "Algorithm:\n@0 = system([@1]);", "*/ #error", "x\n" * 50])
def test_port_names_never_reach_the_source(name):
    inner = ca.Function("inner", [x], [x * 2], {"never_inline": True})
    try:
        f = ca.Function("f", [x], [inner(x)], [name], ["y"])
    except RuntimeError:
        pytest.skip("CasADi refuses the name")
    plain = kernel.compile(ca.Function("f", [x], [inner(x)]), backend="numpy")
    assert kernel.compile(f, backend="numpy").source == plain.source


def test_a_nan_in_the_other_branch_does_not_leak():
    f = ca.Function("f", [x], [ca.if_else(x[0] > 0, ca.sqrt(x[0]), x[1])])
    for lanes in (8, 1):
        assert kernel.compile(f, backend="c", lanes=lanes)(np.array([-1.0, 3.0, 0.0]))[0].tolist() == [3.0]
