"""Passes and parts change no bit."""

import itertools

import numpy as np
import pytest

from pfaffian.errors import BuildError
from pfaffian.kernel import parts, passes, text
from pfaffian.kernel.interpret import evaluate
from pfaffian.kernel.kernel import from_program
from pfaffian.kernel.program import Program, Step


def same(a, b):
    return all(np.array_equal(x, y, equal_nan=True) for x, y in zip(a, b, strict=True))


@pytest.mark.parametrize("seed", range(10))
def test_every_order_of_passes(seed, random_program, awkward):
    program = random_program(seed, 120, (random_program(seed + 50, 15),))
    thin = Program(program.inputs, program.constants, program.steps, (program.outputs[0][::7],), program.callees)
    inputs = [awkward(16, 3), awkward(16, 2)]
    wanted = evaluate(thin, inputs)
    for order in itertools.permutations((passes.merge, passes.prune, passes.pair)):
        shorter = thin
        for change in order:
            shorter = change(shorter).check()
        assert same(evaluate(shorter, inputs), wanted)
        assert len(shorter.steps) < len(thin.steps)


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_parts(size, random_program, awkward, monkeypatch):
    program = random_program(3, 60, (random_program(4, 10),))
    inputs = [awkward(9, 3), awkward(9, 2)]
    monkeypatch.setattr(text.kernel_source, "__defaults__", (size,))
    assert same(from_program(program, backend="c")(*inputs), evaluate(program, inputs))


def test_slots_are_used_again():
    steps = tuple(Step("sq", (i,), i + 1) for i in range(500))
    assert parts.cut(Program((1,), (), steps, ((500,),)), 10).slots <= 2


def test_a_call_between_stages(random_program, awkward):
    """Arguments from inputs, constants, earlier stages and other calls; results that are outputs, or used late."""
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


def test_places_of_arguments_are_used_again():
    inner = Program((3,), (), (Step("add", (0, 1), 3),), ((3, 2),))
    steps = tuple(Step("call", (2 * i, 2 * i + 1, 0), 2 * i + 2, 0) for i in range(200))
    assert parts.cut(Program((2,), (), steps, ((401,),), (inner,)).check(), 10).slots <= 12


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
