"""Passes, and the division of a text into parts, change no bit."""

import itertools

import numpy as np
import pytest

from pfaffian.errors import BuildError
from pfaffian.kernel.build.compiled_passes import passes as compiled
from pfaffian.kernel.program import passes, stages
from pfaffian.kernel.program.interpret import evaluate
from pfaffian.kernel.program.ops import OPS
from pfaffian.kernel.program.program import Program, Step
from pfaffian.kernel.program.trial_programs import tried
from pfaffian.kernel.text import source
from tests.kernel.conftest import same
from tests.programs import from_program


def test_every_step_of_the_trial_programs_leads_to_an_output():
    for program in tried():
        assert len(passes.prune(program).steps) == len(program.steps)


@pytest.mark.parametrize("seed", range(10))
def test_every_order_of_passes(seed, random_program, awkward):
    program = random_program(seed, 120, (random_program(seed + 50, 15),))
    thin = Program(program.inputs, program.constants, program.steps, (program.outputs[0][::7],), program.callees)
    inputs = [awkward(16, 3), awkward(16, 2)]
    expected = evaluate(thin, inputs)
    for order in itertools.permutations((passes.merge, passes.prune, passes.pair)):
        shorter = thin
        for change in order:
            shorter = change(shorter).check()
        assert same(evaluate(shorter, inputs), expected)
        assert len(shorter.steps) < len(thin.steps)


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_parts(size, random_program, awkward, monkeypatch):
    program = random_program(3, 60, (random_program(4, 10),))
    inputs = [awkward(9, 3), awkward(9, 2)]
    monkeypatch.setattr(source.kernel_source, "__defaults__", (size,))
    assert same(from_program(program, backend="c")(*inputs), evaluate(program, inputs))


def test_slots_are_reused():
    steps = tuple(Step("sq", (i,), i + 1) for i in range(500))
    assert stages.cut(Program((1,), (), steps, ((500,),)), 10).slots <= 2


def test_a_call_between_stages(random_program, awkward):
    """Arguments come from inputs, constants, earlier stages and other calls. Results are outputs or are used much later."""
    inner = Program((2,), (), (Step("add", (0, 1), 2), Step("mul", (0, 1), 3)), ((2, 3, 0),))
    steps = (
        Step("call", (0, 1), 3, 0), Step("call", (2, 5), 6, 0), Step("sq", (7,), 9), Step("call", (9, 9), 10, 0),
        Step("sub", (10, 3), 13), Step("call", (13, 4), 14, 0),
    )  # fmt: skip
    program = Program((2,), (0.5,), steps, ((14, 15, 16, 6, 0, 2), (3, 11, 14)), (inner,)).check()
    inputs = [awkward(70, 2)]
    assert same(from_program(program, backend="c")(*inputs), evaluate(program, inputs))
    nothing = Program((2,), (0.5,), (), ((1, 2, 0, 2),)).check()
    assert same(from_program(nothing, backend="c")(*inputs), evaluate(nothing, inputs))


def test_slots_of_arguments_are_reused():
    inner = Program((3,), (), (Step("add", (0, 1), 3),), ((3, 2),))
    steps = tuple(Step("call", (2 * i, 2 * i + 1, 0), 2 * i + 2, 0) for i in range(200))
    assert stages.cut(Program((2,), (), steps, ((401,),), (inner,)).check(), 10).slots <= 12


@pytest.mark.parametrize("how", [passes.PYTHON, compiled()], ids=["Python", "C"])
@pytest.mark.parametrize("op", [name for name, op in OPS.items() if op.arity == 2])
def test_commuted_operations_are_computed_once(op, how):
    a, b = np.array([[1.5]]), np.array([[-2.0]])
    forth, back = (evaluate(Program((1, 1), (), (Step(op, args, 2),), ((2,),)), [a, b]) for args in ((0, 1), (1, 0)))
    both = Program((1, 1), (), (Step(op, (0, 1), 2), Step(op, (1, 0), 3)), ((2, 3),))
    commutes = op in ("add", "mul", "eq", "ne", "and", "or")
    assert len(how["merge"](both).steps) == (1 if commutes else 2)
    assert not commutes or same(forth, back)


def test_sine_and_cosine_share_one_reduction():
    program = Program((1,), (), (Step("sin", (0,), 1), Step("cos", (0,), 2)), ((1, 2),))
    assert [s.op for s in passes.optimise(program).steps] == ["sincos"]


@pytest.mark.parametrize(
    "steps", [(Step("add", (0,), 1),), (Step("sq", (1,), 1),), (Step("sq", (0,), 2),), (Step("call", (), 1, 0),),
              (Step("system", (0,), 1),)]
)  # fmt: skip
def test_check_refuses(steps):
    with pytest.raises(BuildError):
        Program((1,), (), steps, ((0,),)).check()
    with pytest.raises(BuildError, match="inf or nan"):
        Program((1,), (float("inf"),), (), ((0,),)).check()


STEPPED = Program((3,), (1.0,), (Step("add", (0, 3), 4), Step("fmin", (4, 2), 5), Step("sub", (1, 5), 6)), ((5, 6),))
"""The Program (x, y, limit) -> min(x + 1, limit), y minus that."""


def chain(*limits, callee=STEPPED, extra=()):
    """Inputs x, y and more: one call after another updates x and y; each takes as limit the input with the given index."""
    steps, now = [], (0, 1)
    first = 2 + max(limits) - 1
    for i, limit in enumerate(limits):
        steps.append(Step("call", (*now, limit), first + 2 * i, 0))
        now = (first + 2 * i, first + 2 * i + 1)
    return Program((first,), (), tuple(steps), ((*now, *extra),), (callee,)).check()


def test_a_chain_of_calls_becomes_a_loop(awkward):
    straight = chain(*[2] * 20)
    rolled = passes.roll(straight).check()
    assert [s.times for s in rolled.steps] == [20] and rolled.n_ops == straight.n_ops
    inputs = [np.vstack([awkward(30, 3), np.arange(90.0).reshape(30, 3) % 7])]
    expected = evaluate(straight, inputs)
    assert same(evaluate(rolled, inputs), expected)
    for lanes in (1, 8):
        assert same(from_program(rolled, backend="c", lanes=lanes)(*inputs), expected)


def test_calls_that_form_no_chain_are_not_rolled():
    assert [s.times for s in passes.roll(chain(2, 2, 3, 3, 3)).steps] == [2, 3]
    used_between = chain(2, 2, 2, extra=(4,))  # the second result of the first call
    assert [s.times for s in passes.roll(used_between).steps] == [1, 2]
    two = Program((3,), (), (Step("call", (0, 1, 2), 3, 0), Step("call", (3, 4, 2), 5, 1)), ((5, 6),), (STEPPED, DOUBLED))
    assert len(passes.roll(two.check()).steps) == 2
    swapped = Program((3,), (), (Step("call", (0, 1, 2), 3, 0), Step("call", (4, 3, 2), 5, 0)), ((5, 6),), (STEPPED,))
    assert len(passes.roll(swapped.check()).steps) == 2


DOUBLED = Program((3,), (), (Step("twice", (0,), 3),), ((3, 1),))


def test_a_loop_ends_when_nothing_changes():
    """A loop of 10^9 turns must end early: in each run nothing changes any more after at most eleven turns."""
    steps = (Step("call", (0, 1, 2), 3, 0, 10**9),)
    rest = Program((3,), (1.0,), (Step("add", (0, 3), 4), Step("fmin", (4, 2), 5)), ((5, 1),))
    program = Program((3,), (), steps, ((3, 4),), (rest,)).check()
    x = np.zeros((40, 3))
    x[:, 1:] = [2.0, 1.0]
    x[:, 2] += np.arange(40) % 11
    for answer in (
        evaluate(program, [x]),
        from_program(program, backend="c")(x),
        from_program(program, backend="c", lanes=1)(x),
        from_program(program, backend="interpreter")(x),
    ):
        assert np.array_equal(answer[0], x[:, [2, 1]])


def test_a_loop_of_a_loop_between_other_calls(awkward):
    inner = Program((3,), (), (Step("call", (0, 1, 2), 3, 0, 3), Step("mul", (3, 2), 5)), ((5, 4),), (STEPPED,))
    steps = (Step("call", (0, 1, 2), 3, 1), Step("call", (3, 4, 2), 5, 0, 4), Step("call", (5, 6, 3), 7, 1))
    program = Program((3,), (), steps, ((7, 8, 4),), (inner, STEPPED)).check()
    inputs = [awkward(50, 3)]
    assert same(from_program(program, backend="c")(*inputs), evaluate(program, inputs))
    apart = []
    x, y, limit = inputs[0].T
    with np.errstate(all="ignore"):
        turn = lambda x, y, limit: ((a := np.where((x + 1 < limit) | (limit != limit), x + 1, limit)), y - a)  # noqa: E731
        x1, y1 = turn(x, y, limit)
        x, y = x1, y1
        for _ in range(4):
            for _ in range(3):
                x, y = turn(x, y, limit)
            x = x * limit
        x, y = turn(x, y, x1)
        apart = np.stack([x, y, y1], axis=1)
    assert same(evaluate(program, inputs), [apart])


def test_digests_depend_on_the_number_of_turns():
    assert passes.roll(chain(2, 2)).digest() != passes.roll(chain(2, 2, 2)).digest()
    with pytest.raises(BuildError, match="repeated"):
        Program((1,), (), (Step("call", (0,), 1, 0, 2),), ((1, 2),), (Program((1,), (), (), ((0, 0),)),)).check()
