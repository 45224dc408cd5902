"""Quotients with one denominator share its reciprocal; nothing else changes."""

import casadi as ca
import numpy as np
import pytest

from pfaffian.kernel.program.interpret import evaluate
from pfaffian.kernel.program.program import Program, Step
from pfaffian.kernel.program.reciprocal import share_reciprocals


def ops(program):
    return [s.op for s in program.steps]


def shared(n=5):
    """The Program (x, y) -> x0 / y, ..., x(n-1) / y, 1 / y, x0 / x1."""
    steps = [Step("div", (i, n), n + 1 + i) for i in range(n)]
    steps += [Step("inv", (n,), 2 * n + 1), Step("div", (0, 1), 2 * n + 2)]
    return Program((n, 1), (), tuple(steps), (tuple(range(n + 1, 2 * n + 3)),)).check()


def test_values_within_two_ulp_of_plain_division():
    plain, once = shared(), share_reciprocals(shared()).check()
    assert sorted(ops(once)) == ["div", "inv", *["mul"] * 5]
    random = np.random.default_rng(0)

    def draw(count):
        return random.choice([-1, 1], (20000, count)) * random.uniform(1, 2, (20000, count)) * (
            2.0 ** random.integers(-500, 500, (20000, count)))  # fmt: skip

    x, y = draw(5), draw(1)
    (expected,), (got,) = evaluate(plain, [x, y]), evaluate(once, [x, y])
    error = np.abs(got - expected) / np.spacing(np.abs(expected))
    assert 0 < error.max() <= 2
    assert np.array_equal(got[:, 5:], expected[:, 5:])


def test_powers_of_two_signs_and_division_by_zero_are_exact():
    x = np.array([[1.0, -3.0, 0.0, np.inf, np.nan]])
    for y in (2.0, -0.25, 0.0, -0.0, np.inf, np.nan):
        (expected,), (got,) = (evaluate(p, [x, np.array([[y]])]) for p in (shared(), share_reciprocals(shared())))
        assert np.array_equal(got, expected, equal_nan=True)
        assert np.array_equal(np.signbit(got)[~np.isnan(got)], np.signbit(expected)[~np.isnan(got)])


def test_the_ends_of_the_range_are_as_documented():
    big, small, x = 2.0**1023, 2.0**-1074, np.array([[2.0**1000, 1.0, 0.0, 3.0, 5.0]])
    (got,) = evaluate(share_reciprocals(shared()), [x, np.array([[big]])])
    assert got[0, 0] == 2.0**-23  # a power of two loses no digit
    (got,) = evaluate(share_reciprocals(shared()), [x * 2.0**-1074, np.array([[small]])])
    assert np.isinf(got[0, 0]) and np.isnan(got[0, 2])


@pytest.mark.parametrize(
    "steps",
    [
        (Step("div", (0, 1), 3),),
        (Step("div", (0, 1), 3), Step("div", (1, 0), 4), Step("inv", (2,), 5)),
        (Step("mul", (0, 1), 3), Step("div", (0, 3), 4), Step("div", (3, 0), 5), Step("add", (4, 5), 6)),
    ],
)
def test_denominators_used_once_are_left_alone(steps):
    program = Program((3,), (), steps, ((3,),)).check()
    assert share_reciprocals(program).digest() == program.digest()


def test_programs_without_shared_denominators_keep_their_digest(random_program):
    for seed in range(20):
        program = random_program(seed, 60, (random_program(seed + 100, 9),))
        denominators = [s.args[-1] for s in program.steps if s.op in ("div", "inv")]
        if len(set(denominators)) == len(denominators):
            assert share_reciprocals(program).digest() == program.digest()
        again = share_reciprocals(program).check()
        assert share_reciprocals(again).digest() == again.digest()


def test_a_division_before_the_first_reciprocal_and_calls_between():
    inner = Program((1,), (), (Step("sq", (0,), 1), Step("twice", (0,), 2)), ((1, 2),))
    steps = (Step("div", (0, 1), 2), Step("call", (2,), 3, 0), Step("div", (4, 1), 5), Step("sincos", (5,), 6))
    program = Program((2,), (), steps, ((2, 3, 4, 5, 6, 7),), (inner,)).check()
    once = share_reciprocals(program).check()
    assert ops(once) == ["inv", "mul", "call", "mul", "sincos"]
    x = np.array([[6.0, 0.5]])
    assert np.array_equal(evaluate(once, [x])[0], evaluate(program, [x])[0])


def test_a_reciprocal_made_on_purpose_survives_casadi():
    from pfaffian.kernel import trace

    x = ca.SX.sym("x", 4)
    r = 1 / x[3]
    f = ca.Function("f", [x], [x[0] * r, x[1] * r, x[2] * r])
    assert sorted(ops(trace(f))) == ["inv", "mul", "mul", "mul"]
