"""The passes in C give the same Programs as those in Python, for random Programs and for functions of CasADi."""

import casadi as ca
import numpy as np
import pytest

from pfaffian.errors import BuildError
from pfaffian.kernel.build.compiled_passes import passes
from pfaffian.kernel.program import trace as tracing
from pfaffian.kernel.program.encode import encode
from pfaffian.kernel.program.passes import OPTIMISATION, PYTHON, TRANSLATION, optimise
from pfaffian.kernel.program.program import Program, Step
from pfaffian.kernel.program.share import cut
from pfaffian.kernel.program.trace import trace


def same_steps(a: Program, b: Program) -> bool:
    return tuple(a.steps) == tuple(b.steps) and len(a.steps) == len(b.steps) and a.digest() == b.digest()


def some_outputs(program: Program, seed: int) -> Program:
    chosen = np.random.default_rng(seed).permutation(program.outputs[0])[::5].tolist()
    outputs = tuple(chosen[:7]), tuple(chosen[7:])
    return Program(program.inputs, program.constants, program.steps, outputs, program.callees)


def drawn(random_program, seed: int) -> Program:
    callees = (random_program(seed + 50, 15), random_program(seed + 80, 9)) if seed % 2 else ()
    return some_outputs(random_program(seed, 300, callees), seed)


@pytest.mark.parametrize("seed", range(20))
def test_each_pass(seed, random_program):
    compiled, program = passes(), drawn(random_program, seed)
    assert compiled is not PYTHON
    for name in (*TRANSLATION, *OPTIMISATION):
        after = PYTHON[name](program)
        assert same_steps(compiled[name](program), after), name
        program = after
    (tail, crossing), (tail_in_c, crossing_in_c) = (how["tail"](program, 7) for how in (PYTHON, compiled))
    assert same_steps(tail, tail_in_c) and crossing == crossing_in_c and tail.inputs == tail_in_c.inputs
    assert [same_steps(*pair) for pair in zip(cut(program, 7), cut(program, 7, compiled), strict=True)] == [True, True]
    a, b = encode(program), encode(program, place=compiled["placed"])
    assert np.array_equal(a.words, b.words) and np.array_equal(a.table, b.table) and a.registers == b.registers


def chain(random) -> Program:
    """A random chain of calls: most take the previous results in order, together with one of the two inputs."""
    inner = Program((3,), (), (Step("add", (0, 2), 3), Step("sub", (1, 2), 4)), ((3, 4),))
    steps, last, known = [], (0, 1), 2
    for _ in range(30):
        steps.append(Step("call", (*last, int(random.integers(5) == 0)), known, 0))
        last = (known, known + 1) if random.integers(6) else (known + 1, known)
        known += 2
    return Program((2,), (), tuple(steps), (last,), (inner,)).check()


@pytest.mark.parametrize("seed", range(8))
def test_chains_of_calls(seed):
    program = chain(np.random.default_rng(seed))
    rolled = PYTHON["roll"](program)
    assert same_steps(passes()["roll"](program), rolled)
    assert len(rolled.steps) < len(program.steps)
    assert same_steps(passes()["roll"](rolled), rolled)


def functions(seed: int) -> ca.Function:
    """Random expressions with a sparse matrix, selections and a callee; enough instructions for the serialised reading."""
    random = np.random.default_rng(seed)
    x, y = ca.SX.sym("x", ca.Sparsity.upper(4)), ca.SX.sym("y", 3)
    inner = ca.Function("inner", [y], [ca.sin(y) * y[0], ca.cos(y[1])], {"never_inline": True})
    values = [*ca.vertsplit(y), *x.nonzeros(), ca.SX(0.25)]
    for _ in range(150):
        a, b, c = (values[int(i)] for i in random.integers(len(values), size=3))
        made = [
            a * b,
            a - b,
            a / (2 + b * b),
            ca.if_else(a < b, c, a),
            ca.fmin(a, 3.5),
            -a,
            ca.sqrt(a * a + 1),
            ca.sin(a) - ca.cos(a),
        ]
        values += [made[int(random.integers(len(made)))], made[int(random.integers(len(made)))]]
    called = inner(ca.vertcat(*values[-3:]))
    z = ca.SX(4, 2)
    z[1, 0], z[3, 1] = values[-4], called[1]
    return ca.Function("f", [x, y], [ca.vertcat(*values[::7]), z, called[0]])


@pytest.mark.parametrize("seed", range(12))
def test_functions_of_casadi(seed, monkeypatch):
    f = functions(seed)
    program, in_c = trace(f), trace(f, passes())
    assert same_steps(program, in_c)
    assert same_steps(optimise(program), optimise(in_c, passes()))
    assert f.n_instructions() > tracing.MANY
    assert tracing._serialised(f) is not None
    monkeypatch.setattr(tracing, "MANY", 10**9)
    assert same_steps(trace(f), program)


@pytest.mark.parametrize("how", [PYTHON, passes()], ids=["python", "c"])
def test_operations_that_no_program_contains_are_refused_whatever_their_code_is(how):
    """One with the greatest code of CasADi was read beyond the end of a table, as any other operation."""
    x = ca.SX.sym("x")
    for name, y in (("ERF", ca.erf(x)), ("REMAINDER", ca.remainder(x, 0.2))):
        with pytest.raises(BuildError, match=f"OP_{name} cannot be compiled"):
            trace(ca.Function("f", [x], [y]), how)


def test_a_serialised_reading_that_does_not_match_is_rejected(monkeypatch):
    """Serialised data of another function must not be used as the instructions of this one."""
    f, g = functions(1), functions(2)
    expected = trace(f)

    class Other:
        def __getattr__(self, name):
            return getattr(f, name)

        def serialize(self):
            return g.serialize()

    assert tracing._serialised(Other()) is None
    assert same_steps(trace(f), expected)


def test_numbers_that_become_equal():
    """a b - b a from products built separately: CasADi does not recognise it as zero, but the passes remove it."""
    x = ca.SX.sym("x", 2)
    first, second = x[0] * x[1], x[1] * x[0]
    f = ca.Function("f", [x], [ca.sin(x[0]) * (first - second) + x[1], first + second, (x[0] + 0) * x[0]])
    for how in (PYTHON, passes()):
        program = optimise(trace(f, how), how)
        assert [s.op for s in program.steps] == ["mul", "twice", "sq"]
        assert program.outputs[0] == (1,)
