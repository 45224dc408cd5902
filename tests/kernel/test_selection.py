"""`if_else`, which CasADi writes as five operations, becomes one selection with the bits of the selected value."""

import casadi as ca
import numpy as np
import pytest

from pfaffian.kernel import compile
from pfaffian.kernel.program.interpret import evaluate
from pfaffian.kernel.program.passes import optimise
from pfaffian.kernel.program.trace import trace

A, B, C = (ca.SX.sym(name) for name in "abc")
VALUES = np.array([[1.0, 2, 3], [2, 1, 3], [1, 1, -0.0], [np.nan, 1, 2], [0, np.inf, np.nan], [-1, 0, 5]])


def ops(expression):
    program = optimise(trace(ca.Function("f", [A, B, C], [expression])))
    return program, sorted(s.op for s in program.steps)


def test_if_else_is_one_selection_in_either_order_of_the_sum():
    for expression in (ca.if_else(A < B, C, B), ca.if_else(ca.logic_not(A < B), B, C)):
        assert "select" in ops(expression)[1]
        assert "if_else_zero" not in ops(expression)[1]
    yes, no = ca.if_else(A, B, 0), ca.if_else(ca.logic_not(A), C, 0)
    assert ops(no + yes)[1] == ["select"]


def test_other_sums_of_selections_stay_sums():
    for expression in (ca.if_else(A, B, 0) + ca.if_else(C, B, 0), ca.if_else(A, B, 0) + ca.if_else(ca.logic_not(B), C, 0)):
        assert "select" not in ops(expression)[1]


@pytest.mark.parametrize("lanes", [1, 8])
def test_the_bits_are_those_of_the_selected_branch(lanes):
    more = ca.logic_or(ca.logic_and(A < B, ca.logic_not(B <= C)), A == C)
    expressions = [ca.if_else(A < B, C, B), ca.if_else(more, A, C), ca.if_else(A, C, B), more + (A < B), ca.logic_not(A != B)]
    function = ca.Function("f", [A, B, C], expressions)
    program = optimise(trace(function))
    columns = [VALUES[:, i : i + 1] for i in range(3)]
    expected = evaluate(program, columns)
    a, b, c = VALUES.T
    both = ((a < b) & ~(b <= c)) | (a == c)
    by_hand = [np.where(a < b, c, b), np.where(both, a, c), np.where(a != 0, c, b), both * 1.0 + (a < b), a == b]
    for x, y in zip(expected, by_hand, strict=True):
        assert np.array_equal(x[:, 0].view(np.int64), y.astype(float).view(np.int64))
    got = compile(function, backend="c", lanes=lanes)(*columns)
    for x, y in zip(got, expected, strict=True):
        assert np.array_equal(np.ascontiguousarray(x).view(np.int64), y.view(np.int64))
