"""Sharing one text between step and observation changes no bit, computes nothing twice, and is skipped where it is useless."""

import casadi as ca
import numpy as np
import pytest

from pfaffian.kernel import Span, compile_rollout
from pfaffian.kernel.program.interpret import evaluate
from pfaffian.kernel.program.passes import optimise
from pfaffian.kernel.program.program import Program, Step
from pfaffian.kernel.program.share import cut, needed, share
from pfaffian.kernel.program.trace import trace
from tests.kernel.conftest import same


def caller(function: Program, chosen: list[int], calls: int = 2) -> Program:
    """A Program that calls the function repeatedly, each time on results of the previous call, and outputs chosen values."""
    n, steps, outputs, args, known = function.n_in, [], [], tuple(range(function.n_in)), function.n_in
    for _ in range(calls):
        steps.append(Step("call", args, known, 0))
        outputs += [known + k for k in chosen]
        args = tuple(known + chosen[i % len(chosen)] for i in range(n))
        known += function.n_out
    return Program(function.inputs, (), tuple(steps), (tuple(outputs),), (function,)).check()


def function(random_program, seed: int, first: int) -> Program:
    """A random Program that calls another. Every fifth value is an output: `first` of them in port 0, the rest in port 1."""
    whole = random_program(seed, 200, (random_program(seed + 50, 15),))
    chosen = list(range(0, max(whole.outputs[0]) + 1, 5))
    np.random.default_rng(seed).shuffle(chosen)
    return Program(whole.inputs, whole.constants, whole.steps, (tuple(chosen[:first]), tuple(chosen[first:])), whole.callees)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("first", [1, 7, 30])
def test_share_changes_no_bit(seed, first, random_program, awkward):
    f = function(random_program, seed, first)
    rest = list(range(first, f.n_out))
    step, observe = caller(f, list(range(first))), caller(f, rest + [0])
    inputs = [awkward(16, 3), awkward(16, 2)]
    shared = [program.check() for program in share(step, observe)]
    for before, after in zip((step, observe), shared, strict=True):
        assert same(evaluate(after, inputs), evaluate(before, inputs))
    assert shared[0].n_ops <= step.n_ops
    assert f not in shared[0].callees


@pytest.mark.parametrize("seed", range(6))
def test_head_and_tail_hold_every_step_once(seed, random_program):
    f = optimise(function(random_program, seed, 9))
    head, tail = cut(f, 9)
    assert len(head.steps) + len(tail.steps) == len(f.steps)
    assert len(head.outputs[0]) == 9 + tail.inputs[-1]


def both(recorded):
    """A step and an observation that call one function of (x, u, p, t); only the observation uses recorded(x, deep)."""
    x, u, p, t = (ca.SX.sym(n, k) for n, k in (("x", 2), ("u", 1), ("p", 1), ("t", 1)))
    deep = x
    for _ in range(20):
        deep = ca.sin(deep * p + ca.vertcat(deep[1], deep[0])) + u
    options = {"never_inline": True, "cse": True}
    f = ca.Function("f", [x, u, p, t], [deep - x, recorded(x, deep)], options)
    u1, h = ca.SX.sym("u1"), ca.SX.sym("h")
    step = ca.Function("step", [x, u, u1, p, t, h], [x + h * f(x, u, p, t)[0], ca.SX(0, 1)])
    return step, ca.Function("observe", [x, u, p, t], [f(x, u, p, t)[1]])


def test_an_observation_continues_from_values_of_the_step():
    rollout = compile_rollout(*both(lambda x, deep: ca.vertcat(x, ca.sumsqr(deep))), backend="numpy")
    head, tail = rollout.observe.callees
    assert rollout.step.callees == (head,)
    assert len(tail.steps) <= 4 < 60 <= len(head.steps)


def test_a_small_observation_shares_nothing():
    rollout = compile_rollout(*both(lambda x, deep: ca.sumsqr(x)), backend="numpy")
    assert rollout.step.callees != rollout.observe.callees
    assert rollout.observe.n_ops <= 3
    assert len(rollout.step.callees[0].outputs[0]) == 2


def test_a_step_stores_few_values_for_an_observation():
    """The observation uses many intermediate values. Sharing would make every step store them, but observations are rare."""

    def recorded(x, deep):
        found, seen = [], [deep[0]]
        while seen and len(found) < 20:
            found.append(seen[-1])
            seen = [seen[-1].dep(0)] if seen[-1].n_dep() else []
        return ca.vertcat(*[ca.exp(y) for y in found])

    step, observe = both(recorded)
    rollout = compile_rollout(step, observe, backend="numpy")
    (callee,) = rollout.step.callees
    assert callee not in rollout.observe.callees and callee.n_out == 2
    assert rollout.observe.n_ops >= callee.n_ops


def test_shared_text_computes_what_two_texts_do():
    step, observe = both(lambda x, deep: ca.vertcat(ca.cos(deep), x * deep))
    x0, u, p = np.random.default_rng(0).normal(size=(3, 11, 2))
    span = Span(0.0, 1e-2, 20, 3, last=True)
    fast = compile_rollout(step, observe, backend="c")(x0, u[:1, :1], p[:, :1], span)
    x, records = x0, []
    for k in range(21):
        t = np.array([k * 1e-2])
        if k % 3 == 0:
            records.append(evaluate(optimise(trace(observe)), [x, u[0, :1], p[:, :1], t])[0])
        if k < 20:
            x = evaluate(optimise(trace(step)), [x, u[0, :1], u[0, :1], p[:, :1], t, np.array([1e-2])])[0]
    assert np.array_equal(fast.x, x)
    assert np.array_equal(fast.records, np.array(records))


def test_a_repeated_function_is_not_divided(random_program, awkward):
    turn = Program((3,), (), (Step("mul", (0, 2), 3), Step("add", (1, 0), 4)), ((3, 4),))
    step = Program((3,), (), (Step("call", (0, 1, 2), 3, 0, 9),), ((3,),), (turn,)).check()
    observe = Program((3,), (), (Step("call", (0, 1, 2), 3, 0, 5),), ((4, 3),), (turn,)).check()
    assert share(step, observe) == (step, observe)


@pytest.mark.parametrize("seed", range(6))
def test_a_kernel_calls_what_it_needs_with_the_same_bits(seed, random_program, awkward):
    """Two calls use some values of a function, and a third one, of results of the first, more of them; or one call alone."""
    f = function(random_program, seed, 9)
    few, many, n = [4, 1, 7], range(0, f.n_out, 2), f.n_in
    second, third = n + f.n_out, n + 2 * f.n_out
    args = tuple(n + few[i % 3] for i in range(n))
    steps = Step("call", tuple(range(n)), n, 0), Step("call", args, second, 0), Step("call", args[::-1], third, 0)
    outputs = tuple(second + k for k in few), tuple(third + k for k in many)
    inputs = [awkward(16, 3), awkward(16, 2)]
    for whole in (Program(f.inputs, (), steps, outputs, (f,)), caller(f, [3, 5], calls=1)):
        less = needed(whole.check()).check()
        assert same(evaluate(less, inputs), evaluate(whole, inputs))
        assert less.n_ops < whole.n_ops and f not in less.callees
        assert len(less.steps) == len(whole.steps) + (whole.steps == steps)  # the tail is called once
