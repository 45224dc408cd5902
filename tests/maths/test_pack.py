"""Packing a structure of expressions into a column and unpacking it preserves entries, structure and zeros."""

import casadi as ca
import numpy as np

from pfaffian.maths.linear import orthogonalise
from pfaffian.maths.minimum_norm import minimum_norm, minimum_norm_by_gram
from pfaffian.maths.pack import pack, placeholders, unpack


def test_unpacking_restores_the_structure():
    x = (ca.SX(ca.DM([[1, 0], [2, 3]])), {"a": ca.SX(4), 7: [ca.SX(0, 1), (1, None, "word")]}, ca.SX(2, 2))
    numbers = pack(x)
    assert numbers.numel() == 4 + 1
    back = unpack(x, 10 * numbers)
    assert np.array_equal(np.array(ca.DM(back[0])), [[10, 0], [20, 30]])
    assert float(back[1]["a"]) == 40
    assert back[1][7] == [back[1][7][0], (1, None, "word")] and back[1][7][0].shape == (0, 1)
    assert back[2].nnz() == 0 and back[2].shape == (2, 2)
    assert pack(None).shape == (0, 1)


def test_a_factorisation_solves_from_its_numbers():
    random = np.random.default_rng(0)
    A, B = ca.SX.sym("A", 3, 6), ca.SX.sym("B", 3, 2)
    for factor in (minimum_norm, minimum_norm_by_gram):
        made = factor(A, 1e-5, ca.SX.ones(3, 1))
        numbers = ca.SX.sym("n", pack(made).numel())
        direct = ca.Function("direct", [A, B], [made.solve(B)])
        from_numbers = ca.Function("told", [numbers, B], [unpack(made, numbers).solve(B)])
        a, b = random.normal(size=(3, 6)), random.normal(size=(3, 2))
        known = ca.Function("pack", [A], [pack(made)])(a)
        assert np.array_equal(np.array(direct(a, b)), np.array(from_numbers(known, b)))


def test_placeholders_are_symbols_except_for_constants():
    x = ca.SX.sym("x")
    made = ca.vertsplit(placeholders((2 * x, {"a": ca.SX([1, 0])}, x), "n"))
    assert [s.is_symbolic() for s in made] == [True, False, False, True]
    assert [float(s) for s in made[1:3]] == [1, 0] and not ca.is_equal(made[0], made[3]) and not ca.is_equal(made[3], x)
    assert placeholders(None, "n").shape == (0, 1)


def test_named_tuples_keep_their_type():
    rows = orthogonalise(ca.SX.sym("A", 2, 3), ca.SX.sym("B", 2, 1), 1e-5)
    back = unpack(rows, pack(rows))
    assert type(back) is type(rows) and back._fields == rows._fields
    assert ca.is_equal(ca.veccat(back.Q, back.D), ca.veccat(rows.Q, rows.D))
