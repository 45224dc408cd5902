"""The trial of a new object detects wrong instructions, planted into the step and the observation of a slider-crank."""

import ctypes
import re
from dataclasses import replace
from pathlib import Path

import casadi as ca
import numpy as np
import pytest

import pfaffian as pf
from pfaffian import control
from pfaffian.dynamics import formulation
from pfaffian.errors import BuildError
from pfaffian.evaluate import solve_qp as qp
from pfaffian.evaluate.compiled import function_of
from pfaffian.kernel.build import exercise, loop_trial, toolchain, trial
from pfaffian.kernel.call import rollout, tiers
from pfaffian.kernel.call.obtain import Code
from pfaffian.kernel.call.recipe import Recipe, recipe, shape
from pfaffian.kernel.program.numpy_loop import Span
from pfaffian.kernel.program.passes import optimise
from pfaffian.kernel.program.program import Program
from pfaffian.kernel.program.trace import trace
from pfaffian.kernel.text.source import rollout_source
from pfaffian.model.mechanism import random_configuration
from pfaffian.starts import newton
from pfaffian.states.system import as_system
from pfaffian.terms.terms import symbols
from tests.control.test_allocation_motors import arm, boat, pairs
from tests.control.test_projection import slider_crank
from tests.maths.qp_problems import FAMILIES
from tests.programs import from_program
from tests.simulate.machines import ball_and_plane, flying_pair, four_bar
from tests.simulations import simulation

EXAMPLE = Path(__file__).parents[2] / "examples" / "slider_crank.yaml"
PLANTS, HARMFUL = 400, 90  # most wrong instructions drawn for each Program, and number of those tried that change the run
OTHER = {"add": "sub", "sub": "add", "mul": "add", "div": "mul", "sqrt": "fabs", "fmin": "fmax", "fmax": "fmin", "lt": "le",
         "le": "lt", "neg": "fabs", "sq": "twice", "twice": "sq", "inv": "neg", "fabs": "neg", "sincos": "sincos"}  # fmt: skip


@pytest.fixture(scope="module")
def plan():
    """The Programs of the step and the observation, and states of a run through several singular configurations."""
    m, settings = pf.read(EXAMPLE)
    system = simulation(as_system(m), pf.Scheme())
    made = recipe(lambda: (system.traced.step, system.traced.observe), rollout_source, "c", 1, "strict")
    q, v, u, p = settings.arrays(m)
    r = pf.run(m, q, v, u=u, parameters=p, duration=settings.duration, step=settings.step, every=50, record="all")
    x = np.hstack([r["q"].values, r["v"].values])
    assert np.isfinite(x).all()
    rest = [np.zeros((len(x), m.nu)), np.tile(m.p_defaults, (len(x), 1)), np.zeros((len(x), 1))]
    return made, [x, rest[0], rest[0], *rest[1:], np.full((len(x), 1), settings.step)], [x, *rest]


def parts_of(program):
    """A Program and all Programs that it calls, each once."""
    found = {program.digest(): program}
    for callee in program.callees:
        found |= {part.digest(): part for part in parts_of(callee)}
    return list(found.values())


def exchanged(program: Program, old: Program, new: Program) -> Program:
    """The Program with one of its parts replaced."""
    return new if program == old else replace(program, callees=tuple(exchanged(callee, old, new) for callee in program.callees))


def plant(program: Program, random: np.random.Generator) -> Program:
    """The Program with one error: in a constant, in an operation, in the order of operands, or one value instead of
    another."""
    parts = parts_of(program)
    sizes = np.array([len(part.steps) + len(part.constants) for part in parts])
    part = parts[random.choice(len(parts), p=sizes / sizes.sum())]
    i = int(random.integers(len(part.constants) + len(part.steps)))
    if i < len(part.constants):
        wrong = [c if k != i else 1.5 * c + (c == 0) for k, c in enumerate(part.constants)]
        return exchanged(program, part, replace(part, constants=tuple(wrong)))
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
    return exchanged(program, part, replace(part, steps=(*part.steps[:i], step, *part.steps[i + 1 :])))


def evaluate(program, arrays):
    """Outputs (runs, size) of the Program."""
    return from_program(program, backend="interpreter")(*arrays)


def same(a, b) -> bool:
    return all(
        trial.same(np.ascontiguousarray(x).ravel(), np.ascontiguousarray(y).ravel(), True) for x, y in zip(a, b, strict=True)
    )


def loop(programs, inputs):
    """Results of the loop of a trial for these inputs with these Programs."""
    x0, u, p = (np.ascontiguousarray(part.T) for part in inputs)
    u = u.reshape(len(u), 2, -1).swapaxes(0, 1)
    made = rollout._rollout(Recipe(lambda: programs, rollout_source, 8, "strict"), "interpreter", None)
    r = made(x0, u, p, Span(loop_trial.START, loop_trial.STEP, 1, hold="linear", last=True))
    return [r.x, r.records, r.status.astype(float)]


def tried_inputs(program, likely=None):
    """Inputs that a trial gives to the Program, (runs, size) each."""
    return trial.split(exercise.exercise(program, likely), program.inputs)


@pytest.mark.parametrize("which", [0, 1], ids=["step", "observe"])
def test_every_wrong_instruction_that_changes_the_run_is_detected(plan, which):
    """An error that changes a number of the run changes one of the trial, whose states ignore the constraints."""
    made, *references = plan
    program, reference = made.programs[which], references[which]
    given = tried_inputs(program)
    right, tried = evaluate(program, reference), evaluate(program, given)
    assert all(np.isfinite(outputs[: trial.RUNS]).mean() > 0.5 for outputs in tried)
    settled = exercise.likely(made.programs[0])
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
        if harmful == HARMFUL:
            break
    assert harmful == HARMFUL and not missed


def states(m, runs=64):
    random = np.random.default_rng(1)
    q = np.array([random_configuration(m, random) for _ in range(runs)])
    return q, random.normal(size=(runs, m.nv)), np.tile(m.p_defaults, (runs, 1)), np.zeros((runs, 1)), random


def of_newton(m):
    """Starts off the constraints, far and near, with coordinates fixed and free."""
    q, v, p, t, random = states(m)
    q[::3] = q[0] + 0.01 * random.normal(size=q[::3].shape)
    free_q, free_v = (np.where(random.random(v.shape) < 0.7, 1.0, 0.0) for _ in "qv")
    free_q[::4], free_v[::4], free_q[1::8] = 1.0, 1.0, 0.0
    return newton._newton(m, None), [q, v, free_q, free_v, np.ones_like(v), p, t]


def of_terms(m, f):
    q, v, p, t, random = states(m)
    T = symbols(m)
    return function_of(T, {"x": f(T)}), [q, v, random.normal(size=(len(q), m.nu)), p, t]


def of_system(s, which):
    q, _, p, t, random = states(s.mechanism)
    s = simulation(as_system(s.system), s.scheme, s.control)
    x, w = random.uniform(-1, 1, (len(q), s.nx)), random.normal(size=(len(q), len(s.w_names)))
    x[:, : q.shape[1]] = q
    if which == "step":
        return s.traced.step, [x, w, w, p, t, np.full_like(t, 1e-3)]
    return (s.traced.observe if which == "observe" else s.traced.samplers[-1]), [x, w, p, t]


def noisy(m):
    law = control.discrete(lambda s: control.Command(-s["g"][0]), 0.02, measure={"g": control.sensor(lambda K: K.v, 0.1)})
    return simulation(as_system(m), pf.Scheme(), law)


def steered(m, law):
    return of_system(simulation(as_system(m), pf.Scheme(), law), "step")


def shared():
    """Three motors on two joints, with limits: each stage searches for the nearest inputs within them."""
    m = arm()
    law = control.projected(control.whole(m), control.set_point([0.1, 0.1]), stiffness=9, damping=6, limits=[(-6.0, 6.0)] * 3)
    return steered(m, law)


def nearest():
    """A larger search of the same kind, for a prototype."""
    m = boat(4)
    return steered(m, control.prototype_tracking(pairs(m), control.set_point([0.0, 0, 0]), approach="body", limits="actuators"))


def projected():
    return steered(slider_crank(), control.projected(control.joints("q1"), control.set_point([1.2]), stiffness=25, damping=10))


KINDS = {
    "a projected law": projected,
    "a projected law within limits": shared,
    "a prototype within limits": nearest,
    "Newton, redundant rows": lambda: of_newton(four_bar()),
    "Newton, a quaternion": lambda: of_newton(ball_and_plane()),
    "forward dynamics": lambda: of_terms(ball_and_plane(), lambda T: formulation("auto", T)(T).v_dot),
    "multipliers": lambda: of_terms(four_bar(), lambda T: formulation("multipliers", T)(T).reaction),
    "energy": lambda: of_terms(flying_pair(), lambda T: ca.vertcat(T.T, T.V)),
    "mass matrix": lambda: of_terms(flying_pair(), lambda T: T.M),
    "a sampler with noise": lambda: of_system(noisy(four_bar()), "sampler"),
    "a step with cut inputs": lambda: of_system(simulation(as_system(four_bar()), pf.Scheme(saturate=True)), "step"),
    "Hamilton's observation": lambda: of_system(simulation(pf.reduction.hamiltonian(flying_pair()), pf.Scheme()), "observe"),
    "Hamilton's step": lambda: of_system(simulation(pf.reduction.hamiltonian(flying_pair()), pf.Scheme()), "step"),
}

FEWEST = {"a projected law within limits": 30}
"""Smallest number of wrong instructions that change a number; it is low for a search that has little to do."""


@pytest.mark.parametrize("kind", KINDS)
def test_wrong_instructions_in_every_kind_of_kernel_are_detected(kind):
    """200 wrong instructions each, with fixed and free coordinates, states off the constraints, and both outcomes of each
    decision."""
    function, reference = KINDS[kind]()
    program = optimise(trace(function))
    harmful, missed = planted(program, reference, tried_inputs(program))
    assert harmful > FEWEST.get(kind, 60) and not missed


def planted(program, reference, given):
    """How many of 200 wrong instructions change numbers of the reference, and those of them that a trial does not detect."""
    right, tried = evaluate(program, reference), evaluate(program, given)
    random, harmful, missed = np.random.default_rng(5), 0, []
    for _ in range(200):
        wrong = plant(program, random)
        if not all(np.isfinite(c) for part in parts_of(wrong) for c in part.constants):
            continue  # 1.5 times the largest double is infinite, which no Program takes
        if not same(evaluate(wrong.check(), reference), right):
            harmful += 1
            missed += [wrong] if same(evaluate(wrong, given), tried) else []
    return harmful, missed


def test_wrong_instructions_in_a_search_for_the_nearest_inputs_are_detected():
    """A caller gives the metric; random matrices are seldom definite, so a trial makes some that are."""
    r, kinds = np.random.default_rng(2), ("plain", "box", "doubled", "vertex", "contradicting", "grid")
    problems = [FAMILIES[kind](r, 16, 3, 6) for kind in kinds]
    H, u0, W, l = (np.concatenate([np.asarray(x, float) for x in parts]) for parts in zip(*problems, strict=True))
    reference = [H.transpose(0, 2, 1).reshape(len(H), -1), u0, W.transpose(0, 2, 1).reshape(len(H), -1), l]
    program = optimise(trace(qp._function(3, 6)))
    harmful, missed = planted(program, reference, tried_inputs(program, exercise.definite(program.inputs)))
    assert harmful > 60 and not missed


def test_both_sides_of_a_decision_are_tried():
    """A comparison whose limit is off by a millionth is detected."""
    x = ca.SX.sym("x", 2)
    right, wrong = (
        optimise(trace(ca.Function("f", [x], [ca.if_else(x[0] * x[1] < limit, 1, 2)]))) for limit in (0.3, 0.3000003)
    )
    given = tried_inputs(right)
    assert not same(evaluate(right, given), evaluate(wrong, given))


def test_both_sides_of_every_decision_are_tried():
    """Each of 120 comparisons with different limits is detected if its limit is off by a millionth."""
    x, limits = ca.SX.sym("x", 2), np.linspace(0.02, 3, 120)

    def program(limits):
        return optimise(trace(ca.Function("f", [x], [sum(ca.if_else(x[0] * x[1] < c, 1, 2) for c in limits)])))

    right = program(limits)
    given = tried_inputs(right)
    tried = evaluate(right, given)
    for i in range(len(limits)):
        wrong = limits.copy()
        wrong[i] *= 1.000001
        assert not same(evaluate(program(wrong), given), tried), i


@pytest.mark.parametrize("turn", [1, 4])
def test_both_sides_of_a_decision_in_a_later_iteration_are_tried(turn):
    """The loop ignores its comparison in all other iterations."""

    def program(limit):
        s, y = ca.SX.sym("s", 2), ca.SX.sym("y")
        decided = ca.if_else(s[0] == turn, ca.if_else(s[1] * y < limit, 5, 7), 0)
        body = ca.Function("body", [s, y], [ca.vertcat(s[0] + 1, s[1] + 0.125 + decided)], {"never_inline": True})
        x = ca.SX.sym("x", 2)
        now = ca.vertcat(0, x[0])
        for _ in range(6):
            now = body(now, x[1])
        return optimise(trace(ca.Function("f", [x], [now[1]])))

    right, wrong = program(1.7), program(1.70001)
    given = tried_inputs(right)
    assert not same(evaluate(right, given), evaluate(wrong, given))


WRONG = [
    (r"(const V v\d+ = \S+) \+ (\S+;)", r"\1 - \2"),
    (r"(const V v\d+ = \S+) \* (\S+;)", r"\1 + \2"),
    (r"(const V v\d+ = )(\S+) - (\S+);", r"\1\3 - \2;"),
    (r"\bC\((\d+)\)", r"(K(2.5) * C(\1))"),
    (r"^  (w|out)\[\d+\] = v\d+;", ""),
]


@pytest.mark.parametrize("pattern, instead", WRONG, ids=["minus", "plus", "order", "constant", "no store"])
def test_wrong_lines_in_the_text_are_detected(plan, pattern, instead, tmp_path):
    """Compiled text with one wrong line is refused, unless the line makes no difference to a run."""
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
        compiled = tiers.compiled(ctypes.CDLL(str(built)), "pfaffian_rollout", made.source.doubles, {}, made.numbers)
        shapes = tuple(map(shape, made.programs))
        work = tuple(p.n_ops for p in made.programs)
        wrong = rollout.Rollout(Code(made, shapes, "", tiers.Tiers(compiled), work))
        good = rollout.Rollout(Code(made, shapes, ""))
        a, b = (f(x, u[:1], p, Span(0.0, 1e-3, 2, last=True)) for f in (wrong, good))
        assert same([a.x, a.records], [b.x, b.records]), text[at.start() - 200 : at.end() + 200]


def test_the_result_reports_the_trial(plan):
    r = pf.run(*pf.read(EXAMPLE)[:1], duration=0.002, step=1e-3, backend="c")
    assert re.fullmatch(r"\d+ runs, \d+ numbers", r.attrs["kernel_trial"])
    assert int(r.attrs["kernel_trial"].split()[2]) > 1000
