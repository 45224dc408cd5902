"""Hoisting: operations of a callee on parameters alone are computed once, by the caller, with the same bits."""

import casadi as ca
import numpy as np
import pytest

from pfaffian.kernel import Span, compile_rollout
from pfaffian.kernel.build.compiled_passes import passes as compiled
from pfaffian.kernel.program.hoist import hoist
from pfaffian.kernel.program.interpret import evaluate
from pfaffian.kernel.program.passes import PYTHON
from pfaffian.kernel.program.program import Program, Step

LENGTH = ca.SX.sym("x", 2), ca.SX.sym("p", 3), ca.SX.sym("t")


def stage(x, p, t):
    """A derivative with 9 operations on the parameters alone. 2 p[1] is not hoisted: passing it on would cost as much."""
    long = ca.sqrt(p[0] ** 2 + p[1] ** 2 + 0.25) * ca.sin(p[2])
    return ca.vertcat(x[1] + p[0] * x[0], -long * x[0] + t / long + 2 * p[1])


def rollout(backend):
    x, p, t = LENGTH
    f = ca.Function("f", [x, p, t], [stage(x, p, t)], {"never_inline": True})
    h, u = ca.SX.sym("h"), ca.SX(0, 1)
    a = f(x, p, t)
    b = f(x + h * a, p, t + h)
    step = ca.Function("step", [x, u, u, p, t, h], [x + h / 2 * (a + b), ca.SX(0, 1)])
    observe = ca.Function("observe", [x, u, p, t], [ca.vertcat(x, f(x, p, t))])
    return compile_rollout(step, observe, backend=backend)


def test_a_step_computes_operations_on_parameters_once():
    made = rollout("numpy")
    (function,) = made.step.callees
    assert function == made.observe.callees[0]
    ops = [s.op for s in made.step.steps]
    assert ops.count("sqrt") == ops.count("sin") == 1
    assert not {"sqrt", "sin"} & {s.op for s in function.steps}
    assert function.n_ops < 10 and "twice" in {s.op for s in function.steps}


@pytest.mark.parametrize("backend", ["numpy", "interpreter", "c"])
def test_a_run_agrees_with_the_equations(backend):
    random = np.random.default_rng(3)
    x, p, h = random.normal(size=(20, 2)), random.uniform(0.5, 1.5, size=(20, 3)), 0.01
    got = rollout(backend)(x, np.zeros((1, 0)), p, Span(0.0, h, 50))

    def f(x, t):
        long = np.sqrt(p[:, 0] ** 2 + p[:, 1] ** 2 + 0.25) * np.sin(p[:, 2])
        return np.stack([x[:, 1] + p[:, 0] * x[:, 0], -long * x[:, 0] + t / long + 2 * p[:, 1]], axis=1)

    for k in range(50):
        a = f(x, k * h)
        x = x + h / 2 * (a + f(x + h * a, k * h + h))
    np.testing.assert_allclose(got.x, x, rtol=1e-12)


def calling(function, arguments, parameters, n=5):
    """A Program of n inputs, of which the last are parameters, that calls the function once for each tuple of arguments."""
    steps, outputs = [], []
    known = n + 1
    for args in arguments:
        steps.append(Step("call", args, known, 0))
        outputs += range(known, known + function.n_out)
        known += function.n_out
    return Program((n - parameters, parameters), (0.5,), tuple(steps), (tuple(outputs),), (function,)).check()


@pytest.mark.parametrize("how", [PYTHON, compiled()], ids=["Python", "C"])
@pytest.mark.parametrize("seed", range(12))
def test_hoisting_changes_no_bit(seed, how, random_program, awkward):
    f = random_program(seed, 150, (random_program(seed + 50, 15),) if seed % 2 else ())
    f = Program(f.inputs, f.constants, f.steps, (f.outputs[0][::3], f.outputs[0][1::7]), f.callees)
    n = f.n_in
    swapped = (1, 0, *range(2, n))
    step, observe = calling(f, [tuple(range(n)), swapped], 2), calling(f, [swapped], 2)
    parameters = [range(n - 2, n)] * 2
    inputs = [awkward(16, n - 2), awkward(16, 2)]
    hoisted = [program.check() for program in hoist([step, observe], parameters, how)]
    for before, after in zip((step, observe), hoisted, strict=True):
        for a, b in zip(evaluate(before, inputs), evaluate(after, inputs), strict=True):
            assert np.array_equal(a, b, equal_nan=True)
    found = len(hoisted[0].steps) > len(step.steps)
    assert (hoisted[0].n_ops < step.n_ops) == found != (hoisted[0] == step) and hoisted[1].n_ops <= observe.n_ops
    assert found or seed == 1  # seed 1 draws no expensive operation that is used
    assert hoisted[0].callees == hoisted[1].callees


ROOT = Program((2,), (), (Step("sqrt", (1,), 2), Step("mul", (0, 2), 3)), ((3, 1),))
"""The Program (x, p) -> x sqrt(p), p."""


@pytest.mark.parametrize("arguments", [[(0, 1), (0, 2)], [(0, 1), (0, 0)], [(1, 0)]], ids=["another", "a value", "swapped"])
def test_no_hoisting_where_calls_differ_in_the_parameter(arguments):
    program = calling(ROOT, arguments, 2, n=3)
    assert hoist([program], [range(1, 3)]) == (program,)


def test_no_hoisting_where_programs_differ_in_the_parameter():
    programs = [calling(ROOT, [(0, k)], 2, n=3) for k in (1, 2)]
    assert hoist(programs, [range(1, 3)] * 2) == tuple(programs)
    first, second = hoist([programs[0], calling(ROOT, [(1, 2)], 1, n=3)], [range(1, 3), range(2, 4)])
    assert first.callees == second.callees and [s.op for s in first.steps] == ["sqrt", "call"]


def test_no_hoisting_from_a_repeated_call():
    step = Step("call", (0, 1), 2, 0, 3)
    program = Program((1, 1), (), (step,), ((2, 3),), (ROOT,)).check()
    assert hoist([program], [range(1, 2)]) == (program,)
