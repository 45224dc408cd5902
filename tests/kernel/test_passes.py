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
