"""Skeletons: sorting the constants leaves the Program equivalent, and the digest does not depend on the numbers."""

from dataclasses import replace

import numpy as np
import pytest

from pfaffian.kernel.program.interpret import evaluate
from pfaffian.kernel.program.program import Program, Step, callees_first
from pfaffian.kernel.program.skeleton import in_order_of_use, numbers, skeleton
from tests.kernel.conftest import same


def inputs_of(program):
    random = np.random.default_rng(4)
    return [random.normal(size=(6, n)) for n in program.inputs]


@pytest.mark.parametrize("seed", range(6))
def test_steps_are_found_among_the_words(seed, random_program):
    inner = random_program(seed + 50, 10)
    for program in (
        inner,
        random_program(seed, 40 * seed, (inner, random_program(seed + 70, 5))),
        Program((2,), (), (), ((1,),)),
    ):
        lengths = [3 + len(s.args) if s.op == "call" else 1 + len(s.args) for s in program.steps]
        assert program.heads.tolist() == np.cumsum([0, *lengths])[:-1].tolist()
        assert program.operations == {s.op for s in program.steps}


@pytest.mark.parametrize("seed", range(6))
def test_sorting_constants_changes_no_value(seed, random_program):
    inner = random_program(seed + 50, 10)
    whole = random_program(seed, 60, (inner, random_program(seed + 70, 5, (inner,)))), random_program(seed + 9, 5, (inner,))
    ordered = in_order_of_use(whole)
    assert len(callees_first(ordered)) == len(callees_first(whole))
    for before, after in zip(whole, ordered, strict=True):
        after.check()
        assert same(evaluate(after, inputs_of(before)), evaluate(before, inputs_of(before)))
        assert list(after.steps) == list(replace(after, steps=tuple(after.steps)).check().steps)
    assert in_order_of_use(ordered) == ordered


def test_constants_are_sorted_in_order_of_use():
    """Inputs are 0 and 1, constants 2 to 5; one constant is not used, and one is an output."""
    steps = Step("mul", (1, 5), 6), Step("add", (6, 3), 7), Step("mul", (7, 5), 8)
    program = Program((2,), (2.5, 3.5, 4.5, 5.5), steps, ((8, 2), (0,))).check()
    (found,) = in_order_of_use([program])
    assert found.constants == (5.5, 3.5, 2.5)
    assert list(found.steps) == [Step("mul", (1, 2), 5), Step("add", (5, 3), 6), Step("mul", (6, 2), 7)]
    assert found.outputs == ((7, 4), (0,))


def test_a_program_without_steps():
    (found,) = in_order_of_use([Program((1,), (2.5, 3.5), (), ((2, 0),))])
    assert (found.constants, found.outputs) == ((3.5,), ((1, 0),))


def scaled(constants, inner=(2.5, 0.0)):
    callee = Program((1,), inner, (Step("mul", (0, 1), 3), Step("add", (3, 2), 4)), ((4,),))
    steps = Step("mul", (0, 1), 4), Step("call", (4,), 5, 0), Step("add", (5, 2), 6), Step("mul", (6, 3), 7)
    return Program((1,), constants, steps, ((7,),), (callee,)).check()


def test_a_skeleton_does_not_depend_on_numbers():
    one, other = scaled((1.5, 2.5, 1.0)), scaled((-7.0, 1e300, 1.0), (0.125, 0.0))
    assert skeleton([one]) == skeleton([other])
    assert numbers([one]).tolist() == [2.5, 1.5, 2.5] and numbers([other]).tolist() == [0.125, -7.0, 1e300]


@pytest.mark.parametrize(
    "other",
    [
        scaled((1.0, 2.5, 1.0)),
        scaled((1.5, 2.5, -1.0)),
        scaled((1.5, 2.5, 3.0)),
        scaled((1.5, 2.5, 1.0), (2.5, -0.0)),
        replace(scaled((1.5, 2.5, 1.0)), outputs=((6,),)),
        replace(scaled((1.5, 2.5, 1.0)), inputs=(1, 0)),
    ],
)
def test_a_skeleton_depends_on_everything_else(other):
    """Zero and one, with their signs, belong to the skeleton too, because the text contains them."""
    assert skeleton([other]) != skeleton([scaled((1.5, 2.5, 1.0))])


def test_a_skeleton_depends_on_which_callees_are_identical():
    callees = [scaled((1.5, 2.5, 1.0), (x, 0.0)).callees[0] for x in (2.5, 2.5, 3.5)]
    steps = Step("call", (0,), 1, 0), Step("call", (1,), 2, 1)
    alike, apart = (Program((1,), (), steps, ((2,),), (callees[0], callees[i])) for i in (1, 2))
    assert skeleton([alike]) != skeleton([apart])
    assert len(numbers([alike])) == 1 and len(numbers([apart])) == 2
