"""The interpreter in C starts at once, and compiled code with the same bits takes over where that pays, leaving no files."""

import os
import subprocess
import sys
import threading
import warnings

import casadi as ca
import numpy as np
import pytest

import pfaffian as pf
from pfaffian import kernel
from pfaffian.errors import BuildError
from pfaffian.kernel.build.decisions import SIDE, _comparisons
from pfaffian.kernel.build.interpreter import Interpreted
from pfaffian.kernel.call import cache_keys as keyed
from pfaffian.kernel.call import obtain, tiers
from pfaffian.kernel.program.encode import DECIDING, encode, groups_of
from pfaffian.kernel.program.interpret import evaluate
from pfaffian.kernel.program.program import Program, Step
from pfaffian.kernel.program.program_bytes import pack, unpack
from tests.programs import from_program

X = np.random.default_rng(3).normal(size=(20, 3))


def same(a, b):
    """Equality of all bits, including the sign of zero. All NaNs are equal, since their sign depends on the processor."""
    return all(_same_bits(np.asarray(x), np.asarray(y)) for x, y in zip(a, b, strict=True))


def _same_bits(x, y):
    return x.shape == y.shape and bool(((x.view(np.int64) == y.view(np.int64)) | (np.isnan(x) & np.isnan(y))).all())


def small(factor=7.0):
    x = ca.SX.sym("x", 3)
    return ca.Function("f", [x], [ca.sin(x) * factor, ca.fmax(x[0], x[1])])


def loop():
    x, none, t, h = ca.SX.sym("x", 2), [ca.SX.sym(n, 0) for n in ("u", "w", "p")], ca.SX.sym("t"), ca.SX.sym("h")
    step = ca.Function("step", [x, *none, t, h], [x + h * ca.vertcat(x[1], -ca.sin(x[0])), ca.SX(0, 1)])
    return step, ca.Function("observe", [x, *none[1:], t], [x * t])


@pytest.fixture
def at_once(monkeypatch):
    """Compile in this thread, before the next call, wherever that pays; no kernel is found in the cache."""
    monkeypatch.setattr(keyed, "recall", lambda key, recipe: None)
    monkeypatch.setattr(tiers._BACKGROUND, "start", lambda work: work())


@pytest.mark.parametrize("seed", range(4))
def test_every_step_comes_after_its_arguments(seed, random_program):
    program = random_program(seed, 60, (random_program(seed + 50, 10),))
    groups, known = groups_of(program), set(range(program.first_result))
    assert sorted(i for group in groups for i in group) == list(range(len(program.steps)))
    for group in groups:
        steps = [program.steps[i] for i in group]
        assert len({s.op for s in steps}) == 1 and (len(steps) == 1 or steps[0].op != "call")
        assert all(set(s.args) <= known for s in steps)
        known |= {r for s in steps for r in range(s.result, s.result + program.width(s))}


@pytest.mark.parametrize("seed", range(4))
def test_packed_programs_unpack_to_the_same(seed, random_program):
    inner = random_program(seed + 50, 10)
    programs = random_program(seed, 40, (inner,)), inner, random_program(seed + 9, 5)
    assert unpack(pack(programs)) == programs


def test_registers_are_reused():
    steps = tuple(Step("add" if i % 2 else "mul", (i, i), i + 1) for i in range(200))
    program = Program((1,), (), steps, ((200,),)).check()
    assert encode(program).registers <= 4
    x = np.array([[0.5], [1.0]])
    assert same(from_program(program, backend="interpreter")(x), evaluate(program, [x]))


def test_compiled_code_takes_over_between_two_calls(monkeypatch, at_once):
    """Compiled code takes over once enough operations are done to pay for compiling. The bits do not depend on when."""
    with_c, only = (kernel.compile_rollout(*loop(), backend=b) for b in ("c", "interpreter"))
    given = dict(x0=np.array([[0.3, -0.1], [1.0, 0.2]]), u=np.zeros((1, 0)), p=np.zeros(0))
    all_of_it = kernel.Span(0.0, 0.01, 40, 3, last=True)
    whole = with_c(**given, span=all_of_it)
    assert same(whole[:2], only(**given, span=all_of_it)[:2])
    for paid in (0, 9, 10, 25):
        auto = kernel.compile_rollout(*loop())
        worth = auto.step.n_ops * paid / sum(len(p.steps) for p in (auto.step, auto.observe))
        monkeypatch.setattr(obtain, "WORTH", worth)
        auto = kernel.compile_rollout(*loop())
        x, found, seen = given["x0"], [], []
        for first in range(0, 40, 10):
            r = auto(**given | {"x0": x}, span=all_of_it._replace(steps=10, first=first, last=first == 30))
            x = r.x
            found.append(r.records)
            seen.append(r.tier)
        assert seen == ["interpreter"] * (paid // 10) + ["c"] * (4 - paid // 10)
        assert same([np.concatenate(found), x], [whole.records, whole.x])
        assert auto.provenance["backend"] == "c" and "flags" in auto.provenance


def test_compiled_code_takes_over_between_single_calls(monkeypatch, at_once):
    monkeypatch.setattr(obtain, "WORTH", 1.5)  # between one and two calls, since a call runs each step once
    k = kernel.compile(small(), lanes=1)
    results = []
    for _ in range(3):
        results.append(k(X[0]))
        results.append((k.provenance["backend"],))
    assert [name for (name,) in results[1::2]] == ["interpreter", "c", "c"]
    assert same(results[0], results[4])


def test_compiling_runs_in_the_background(monkeypatch):
    """The call that starts the compiler does not wait for it."""
    go_on = threading.Event()
    monkeypatch.setattr(obtain, "WORTH", 0.0)
    monkeypatch.setattr(obtain, "load", lambda *_, load=obtain.load: (go_on.wait(), load(*_))[1])
    k = kernel.compile(small(11.0))
    k(X)
    assert k.provenance["backend"] == "interpreter"
    go_on.set()
    tiers.wait()
    assert same(k(X), evaluate(k.program, [X])) and k.provenance["backend"] == "c"


def test_a_compiler_that_fails_later_warns_once(monkeypatch, at_once):
    def fails(*_):
        raise BuildError("out of luck")

    monkeypatch.setattr(obtain, "WORTH", 0.0)
    monkeypatch.setattr(obtain, "load", fails)
    k = kernel.compile(small(12.0))
    with pytest.warns(RuntimeWarning, match="running on the interpreter, .*: out of luck"):
        assert same(k(X), evaluate(k.program, [X]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert same(k(X), evaluate(k.program, [X]))
    assert k.provenance["backend"] == "interpreter"


def test_a_result_names_the_tiers_of_its_run(monkeypatch, at_once):
    """Of three runs of the same machine, only the first starts on the interpreter."""
    m = pf.mechanism("ball", [pf.body("ball", 1.0, inertia=0.1)], [pf.joint("free", "free", "world", "ball")])
    monkeypatch.setattr("pfaffian.simulate.run.roll.FIRST_LANE_STEPS", 10)
    monkeypatch.setattr(obtain, "WORTH", 30.0)
    seen = [pf.run(m, v=[1.0, 0, 0, 0, 1, 0], duration=0.1).attrs["kernel_backend"] for _ in range(3)]
    assert seen == ["interpreter, then c", "c", "c"]
    assert pf.run(m, duration=0.1, backend="interpreter").attrs["kernel_backend"] == "interpreter"
    assert pf.run(m, duration=0.01, backend="numpy").attrs["kernel_backend"] == "numpy"


ENDS = """
import casadi as ca, numpy as np, sys
from pfaffian import kernel
from pfaffian.kernel.call import obtain
obtain.WORTH = 0.0
x = ca.SX.sym("x", 3)
y = x
for i in range(4000):
    y = ca.sin(y) * ca.vertcat(y[1], y[2], y[0]) + i
k = kernel.compile(ca.Function("f", [x], [y]))
k(np.ones(3))
print(k.provenance["backend"], flush=True)
"""


def test_the_compiler_ends_with_the_program(tmp_path):
    """The program does not wait for its compiler and leaves no temporary folder."""
    environment = os.environ | {"PFAFFIAN_CACHE": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", ENDS], env=environment, capture_output=True, text=True, timeout=120)
    assert (done.stdout, done.returncode) == ("interpreter\n", 0), done.stderr
    (place,) = tmp_path.iterdir()
    assert not list(place.glob("tmp*")) and len(list(place.glob("*.so"))) == 2  # interpreter and passes
    assert not done.stderr


SELDOM = """
import casadi as ca, numpy as np
from pathlib import Path
from pfaffian import kernel
x = ca.SX.sym("x", 2)
for lanes in (1, 8):
    for f in (ca.sin, ca.atan2, ca.tanh, ca.power):
        y = f(x[0], x[1]) if f in (ca.atan2, ca.power) else f(x[0])
        k = kernel.compile(ca.Function("f", [x], [y * x[1]]), lanes=lanes, backend="interpreter")
        same = np.array_equal(k(np.array([[0.7, 1.3]] * 3))[0], kernel.compile(ca.Function("f", [x], [y * x[1]]),
                              backend="numpy")(np.array([[0.7, 1.3]] * 3))[0])
        print(same, len(list(Path(PLACE).glob("*/*.so"))))
"""


def test_seldom_used_functions_are_compiled_when_a_program_has_one(tmp_path):
    """The passes, and for each number of lanes the interpreter, then the functions that it does not contain, once."""
    environment = os.environ | {"PFAFFIAN_CACHE": str(tmp_path)}
    code = SELDOM.replace("PLACE", repr(str(tmp_path)))
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=120)
    found = [line.split() for line in done.stdout.splitlines()]
    assert [same for same, _ in found] == ["True"] * 8, done.stderr
    assert [int(n) for _, n in found] == [2, 2, 3, 3, 4, 4, 5, 5]


def test_kernels_with_other_bits_are_never_interpreted():
    """Fused multiply-add gives other bits, so such a kernel is compiled before its first call."""
    assert kernel.compile(small(13.0), strict=False).provenance["backend"] == "c"
    with pytest.raises(BuildError, match="strict"):
        kernel.compile(small(13.0), strict=False, backend="interpreter")


def decisions_of(program, rows):
    """Outcomes (decisions, runs) that the interpreter records, checked against the operands of each decision in turn."""
    interpreted = Interpreted(program)
    outputs, sides = interpreted.sides(rows)
    decided = np.unpackbits(sides, axis=1, bitorder="little").astype(bool)[:, : rows.shape[1]]
    which, names = _comparisons(program)
    assert len(which) == len(decided)
    operands = interpreted.operands(rows, np.arange(len(which)))
    for i, name in enumerate(names[which]):
        assert np.array_equal(decided[i], SIDE[name](*operands[i].T))
    assert same(outputs, np.vstack([x.T for x in evaluate(program, blocks(program, rows))]))
    return decided


def blocks(program, rows):
    return [part.T for part in np.split(rows, np.cumsum(program.inputs)[:-1])]


@pytest.mark.parametrize("seed", range(3))
def test_decisions_are_recorded(seed, random_program):
    """All values of this Program are outputs, so that the recorded decisions can be compared with their results."""
    program = random_program(seed, 120)
    rows = np.random.default_rng(seed).normal(size=(program.n_in, 24))
    decided = decisions_of(program, rows)
    values = np.vstack([x.T for x in evaluate(program, blocks(program, rows))])
    place = {v: k for k, v in enumerate(v for output in program.outputs for v in output)}
    comparisons = [program.steps[i] for group in groups_of(program) for i in group if program.steps[i].op in DECIDING]
    assert len(comparisons) > 5
    for side, step in zip(decided, comparisons, strict=True):
        if step.op in ("lt", "le"):
            assert np.array_equal(side, values[place[step.result]] != 0)


def test_skipped_turns_of_a_loop_repeat_the_decisions_of_the_last():
    """In these runs, nothing changes any more after 0 to 10 turns. The same chain of calls without a loop decides alike."""
    rest = Program((3,), (1.0,), (Step("add", (0, 3), 4), Step("fmin", (4, 2), 5)), ((5, 1, 2),))
    rolled = Program((3,), (), (Step("call", (0, 1, 2), 3, 0, 30),), ((3, 4),), (rest,)).check()
    steps = tuple(Step("call", tuple(range(3 * i, 3 * i + 3)), 3 * i + 3, 0) for i in range(30))
    plain = Program((3,), (), steps, ((90, 91),), (rest,)).check()
    rows = np.vstack([np.zeros(40), np.ones(40), np.arange(40) % 11 + 0.5])
    a, b = decisions_of(rolled, rows), decisions_of(plain, rows)
    assert a.shape == (30, 40) and np.array_equal(a, b)
