"""The trial of a new object notices wrong instructions: planted into the step and the observation of a slider-crank."""

import ctypes
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import pfaffian as pf
from pfaffian.errors import BuildError
from pfaffian.kernel import rollout, toolchain, trial
from pfaffian.kernel.interpret import evaluate
from pfaffian.kernel.program import Program
from pfaffian.kernel.recipe import Recipe, recipe, shape
from pfaffian.simulate.simulation import Simulation
from pfaffian.simulate.system import as_system

EXAMPLE = Path(__file__).parents[2] / "examples" / "slider_crank.yaml"
PLANTS = 250  # in each Program
OTHER = {"add": "sub", "sub": "add", "mul": "add", "div": "mul", "sqrt": "fabs", "fmin": "fmax", "fmax": "fmin", "lt": "le",
         "le": "lt", "neg": "fabs", "sq": "twice", "twice": "sq", "inv": "neg", "fabs": "neg", "sincos": "sincos"}  # fmt: skip


@pytest.fixture(scope="module")
def plan():
    """The step and the observation, and states of a run through several singular configurations."""
    m, settings = pf.read(EXAMPLE)
    system = Simulation(as_system(m), pf.Scheme())
    made = recipe(lambda: (system.traced.step, system.traced.observe), rollout.checked_source, "c", 1, True)
    q, v, u, p = settings.arrays(m)
    r = pf.run(m, q, v, u=u, parameters=p, duration=settings.duration, step=settings.step, every=50, record="all")
    x = np.hstack([r["q"].values, r["v"].values])
    assert np.isfinite(x).all()
    rest = [np.zeros((len(x), m.nu)), np.tile(m.p_defaults, (len(x), 1)), np.zeros((len(x), 1))]
    return made, [x, rest[0], rest[0], *rest[1:], np.full((len(x), 1), settings.step)], [x, *rest]


def parts_of(program):
    """A Program and all that it calls, each once."""
    found = {program.digest(): program}
    for callee in program.callees:
        found |= {part.digest(): part for part in parts_of(callee)}
    return list(found.values())


def put(program: Program, old: Program, new: Program) -> Program:
    """The Program with one of its parts exchanged."""
    return new if program == old else replace(program, callees=tuple(put(callee, old, new) for callee in program.callees))


def plant(program: Program, random: np.random.Generator) -> Program:
    """One wrong thing: a constant, an operation, exchanged operands, or another value in place of one."""
    parts = parts_of(program)
    sizes = np.array([len(part.steps) + len(part.constants) for part in parts])
    part = parts[random.choice(len(parts), p=sizes / sizes.sum())]
    i = int(random.integers(len(part.constants) + len(part.steps)))
    if i < len(part.constants):
        wrong = [c if k != i else 1.5 * c + (c == 0) for k, c in enumerate(part.constants)]
        return put(program, part, replace(part, constants=tuple(wrong)))
    i -= len(part.constants)
    step, kind = part.steps[i], int(random.integers(3))
    if kind == 0 and step.op in OTHER:
        step = step._replace(op=OTHER[step.op])
    elif kind == 1 and len(step.args) == 2:
        step = step._replace(args=step.args[::-1])
    else:
        args = list(step.args)
        args[int(random.integers(len(args)))] = int(random.integers(step.result))
        step = step._replace(args=tuple(args))
    return put(program, part, replace(part, steps=(*part.steps[:i], step, *part.steps[i + 1 :])))


def same(a, b) -> bool:
    return all(
        trial.same(np.ascontiguousarray(x).ravel(), np.ascontiguousarray(y).ravel(), True) for x, y in zip(a, b, strict=True)
    )


def loop(programs, inputs):
    """What the loop of a trial makes of its inputs with these Programs."""
    made = Recipe(lambda: programs, rollout.checked_source, 1, True)
    x0, u, p = inputs
    plain = rollout.Rollout(made, tuple(map(shape, programs)), {})
    r = plain(x0, u, p, t0=rollout.TRIAL_START, h=0.0078125, steps=1, every=1, hold="linear", last=True)
    return [r.x, r.records, r.status.astype(float)]


@pytest.mark.parametrize("which", [0, 1], ids=["step", "observe"])
def test_every_plant_that_changes_numbers_is_noticed(plan, which):
    """Whatever changes a number of the run changes one of the trial, on states that know nothing of the constraints."""
    made, *references = plan
    program, reference = made.programs[which], references[which]
    given = trial.split(trial.random_inputs(program.inputs), program.inputs)
    right, tried = evaluate(program, reference), evaluate(program, given)
    assert all(np.isfinite(outputs).mean() > 0.5 for outputs in tried)
    settled = rollout._loop_inputs(made)
    in_loop = loop(made.programs, settled)
    random, harmful, missed = np.random.default_rng(which), 0, []
    for _ in range(PLANTS):
        wrong = plant(program, random).check()
        if same(evaluate(wrong, reference), right):
            continue
        harmful += 1
        programs = (wrong, made.programs[1]) if which == 0 else (made.programs[0], wrong)
        if same(evaluate(wrong, given), tried) and same(loop(programs, settled), in_loop):
            missed.append(wrong)
    assert harmful > PLANTS / 3 and not missed


WRONG = [
    (r"(const V v\d+ = \S+) \+ (\S+;)", r"\1 - \2"),
    (r"(const V v\d+ = \S+) \* (\S+;)", r"\1 + \2"),
    (r"(const V v\d+ = )(\S+) - (\S+);", r"\1\3 - \2;"),
    (r"K\((0x1\.[0-9a-f]+p[+-]\d+)\)", r"K(2.5 * \1)"),
    (r"^  (w|out)\[\d+\] = v\d+;", ""),
]


@pytest.mark.parametrize("pattern, instead", WRONG, ids=["minus", "plus", "order", "constant", "no store"])
def test_plants_in_the_text_are_noticed(plan, pattern, instead, tmp_path):
    """The same through the compiler: each text with one wrong line is refused, unless it makes no difference to a run."""
    made, (x, u, _, p, *_), _ = plan
    text = made.source.text
    body = text.index("STAGE void p0_0")
    places = [found for found in re.finditer(pattern, text, re.MULTILINE) if found.start() > body]
    random = np.random.default_rng(5)
    for i in random.choice(len(places), 2, replace=False):
        at = places[int(i)]
        source, built = tmp_path / "kernel.c", tmp_path / f"kernel{i}.so"
        source.write_text(text[: at.start()] + at.expand(instead) + text[at.end() :])
        toolchain.compile_source(toolchain.find_compiler(), source, built, "strict")
        try:
            trial.check(rollout._trial(made), built, source)
        except BuildError as error:
            assert "miscompiles" in str(error)
            continue
        compiled = ctypes.CDLL(str(built)).pfaffian_rollout
        compiled.argtypes, compiled.restype = [ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p], None
        shapes = tuple(map(shape, made.programs))
        wrong = rollout.Rollout(made, shapes, {}, compiled, made.source.doubles)
        good = rollout.Rollout(made, shapes, {})
        keep = dict(t0=0.0, h=1e-3, steps=2, every=1, last=True)
        a, b = (f(x, u[:1], p, **keep) for f in (wrong, good))
        assert same([a.x, a.records], [b.x, b.records]), text[at.start() - 200 : at.end() + 200]


def test_what_was_tried_is_said(plan):
    r = pf.run(*pf.read(EXAMPLE)[:1], duration=0.002, step=1e-3)
    assert re.fullmatch(r"32 runs, \d+ numbers", r.attrs["kernel_trial"])
    assert int(r.attrs["kernel_trial"].split()[2]) > 1000
