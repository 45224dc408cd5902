"""Answers of the interpreter's own trial: NumPy's results for a step, an observation, samplers and their time loop."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pfaffian.kernel.build.trial import DRAWN, RUNS, Answers, in_rounds, one_after_another, random_inputs, split
from pfaffian.kernel.program.interpret import evaluate
from pfaffian.kernel.program.numpy_loop import RolloutResult, Span, run_loop
from pfaffian.kernel.program.program import Program

START, STEP, LIMIT = 0.125, 0.0078125, 1e12  # [s], [s], and the limit of states, as in rollout.h


def loop_answers(programs: Sequence[Program]) -> Answers:
    """Rounds for the function pfaffian_trial of rollout.h: a step, an observation, samplers, then the loop."""
    parts = [answers_of(program) for program in programs]
    step = programs[0].inputs
    sizes = step[0], 2 * step[1], step[3]
    parts.append(_of_loop(programs, random_inputs(sizes)))
    return Answers(*(one_after_another(each) for each in zip(*parts, strict=True)))


def answers_of(program: Program) -> Answers:
    """NumPy's answers of one Program to random inputs."""
    rows = random_inputs(program.inputs, DRAWN)
    outputs = evaluate(program, split(rows, program.inputs))
    return Answers(in_rounds(rows), in_rounds(np.vstack([x.T for x in outputs])))


def _of_loop(programs: Sequence[Program], rows: np.ndarray) -> Answers:
    """A round of one step with two records, in which all samplers are called at each step.   rows: x0, u at both ends, p."""
    step, observe, *samplers = programs
    nx, nu, _, n_p, _, _ = step.inputs
    x0, u, p = split(rows, (nx, 2 * nu, n_p))
    span = Span(START, STEP, 1, last=True, hold="linear", limit=LIMIT, sampling=((1, 0),) * len(samplers))
    result = RolloutResult(
        np.empty(x0.shape), np.empty((2, RUNS, observe.n_out)), np.zeros(RUNS, np.int32), np.full(RUNS, -1, np.int64)
    )
    run_loop(step, observe, samplers, x0, u.reshape(RUNS, 2, nu).swapaxes(0, 1), p, span, result)
    outputs = [result.x.T, *result.records.swapaxes(1, 2), result.status.astype(np.float64)[None]]
    return Answers(in_rounds(rows), in_rounds(np.vstack(outputs)))
