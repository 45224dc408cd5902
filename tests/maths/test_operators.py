"""The direct operators give the same expressions and the same errors as CasADi's."""

import operator

import casadi as ca
import numpy as np
import pytest

from pfaffian.maths import operators

USUAL = {"__add__": ca.plus, "__sub__": ca.minus, "__mul__": ca.times, "__truediv__": ca.rdivide}
X, A, S = ca.SX.sym("x", 3), ca.SX.sym("A", 3, 3), ca.SX.sym("s")
OPERANDS = {
    "vectors": (X, X + 1), "scalar": (A, S), "scalar first": (S, X), "sparse": (A, ca.SX.eye(3)), "number": (X, 2.5),
    "array": (A, np.ones((3, 3))), "DM": (X, ca.DM([1, 0, 2])), "equal": (X, X), "zero": (X, ca.SX(3, 1)), "vector": (A, X),
}  # fmt: skip


@pytest.mark.parametrize("name", OPERANDS)
@pytest.mark.parametrize("op", USUAL)
def test_same_expressions(op, name):
    x, y = OPERANDS[name]
    made, usual = getattr(operator, op)(x, y), USUAL[op](x, y)
    assert made.sparsity() == usual.sparsity()
    assert str(made) == str(usual)


@pytest.mark.parametrize("op", USUAL)
def test_same_errors(op):
    for call in (getattr(operator, op), USUAL[op]):
        with pytest.raises(RuntimeError, match="Dimension mismatch"):
            call(X, X.T)


def test_only_two_expressions_of_sx_use_the_direct_operators(monkeypatch):
    seen = []
    monkeypatch.setattr(ca.SX, "binary", lambda code, x, y: seen.append(code))
    for name, code in operators.OPERATORS.items():
        operator_ = operators._direct(name, code)
        operator_(X, X)
        operator_(X, 2.5)
        operator_(X, ca.MX.sym("x", 3))
    assert seen == list(operators.OPERATORS.values())


def test_installing_again_changes_nothing():
    before = [getattr(ca.SX, name) for name in operators.OPERATORS]
    operators.install()
    assert [getattr(ca.SX, name) for name in operators.OPERATORS] == before
