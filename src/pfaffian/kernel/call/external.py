"""`compile_external` compiles Functions into a library that `casadi.external` loads, so that CasADi calls compiled code."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import casadi as ca

from pfaffian.errors import issue
from pfaffian.kernel.build.compiled_passes import passes
from pfaffian.kernel.build.exercise import exercise
from pfaffian.kernel.build.interpreter import Interpreted
from pfaffian.kernel.build.library import load
from pfaffian.kernel.build.toolchain import needed_compiler
from pfaffian.kernel.build.trial import RUNS, Answers, Trial, in_rounds, one_after_another
from pfaffian.kernel.build.waiting import tell
from pfaffian.kernel.call import cache_keys as keyed
from pfaffian.kernel.call.recipe import Recipe
from pfaffian.kernel.program.passes import optimise
from pfaffian.kernel.program.program import Program
from pfaffian.kernel.program.trace import trace
from pfaffian.kernel.remember import checking, compare
from pfaffian.kernel.text.external_source import external_text
from pfaffian.kernel.text.source import Source


def compile_external(build: Callable[[], tuple[ca.Function, ...]], key: str) -> Path:
    """Compile Functions of SX into one library, in strict mode, so that CasADi gets the bits of the interpreter.

    CasADi finds the derivatives of a function f in the same library by the names jac_f, fwd1_f, adj1_f, and fwd1_adj1_f for a
    derivative of a derivative.

    Args:
        build: returns the Functions; the name of each is its name in the library.
        key: identifies the Functions permanently. If a library was compiled under this key before, it is used, and `build` is
            not called.
    Returns:
        path of the library.
    Raises BuildError: there is no compiler, or it fails.
    """
    keyed.check_key(key)
    functions = cache(build)

    def external(*programs: Program, lanes: int) -> Source:
        return external_text(functions(), programs)

    def traced() -> tuple[Program, ...]:
        how = passes()
        return tuple(optimise(trace(f, how, dense=False), how) for f in functions())

    plan = Recipe(traced, external, 1, "strict")
    if hit := keyed.recall(key, plan):
        if checking():
            compare(f"the library of {key}", hit.digest, plan.digest)
        issue(hit.notices)
        return Path(hit.library._name)
    compiler = needed_compiler()
    tell("deriving the equations")
    programs = plan.programs
    library, meta = load(plan.source.text, plan.mode, Trial(lambda: _answers(programs), plan.source.doubles, True), compiler)
    keyed.remember(key, plan, meta, plan.source.doubles)
    issue(plan.notices)
    return Path(library._name)


def _answers(programs: tuple[Program, ...]) -> Answers:
    """Rounds for the function pfaffian_trial of the library, which evaluates one function after another."""
    each = []
    for program in programs:
        inputs = in_rounds(exercise(program))
        each.append((inputs, Interpreted(program).trial(inputs, program.n_out * RUNS, loop=False)))
    return Answers(*(one_after_another(rows) for rows in zip(*each, strict=True)))
