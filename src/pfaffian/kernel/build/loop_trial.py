"""Trial of a loop: its step, its observation, its samplers, then the loop itself, with inputs that occur in use."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pfaffian.kernel.build.trial import RUNS, Answers, answers, in_rounds, one_after_another, random_inputs, split
from pfaffian.kernel.program.interpret import evaluate
from pfaffian.kernel.program.loop import RolloutResult, Span, run_loop
from pfaffian.kernel.program.program import Program

SETTLING = 2
"""Steps of zero length that move random states towards those where a step has no fault, as onto their constraints."""

TRIAL_START, TRIAL_STEP, TRIAL_LIMIT = 0.125, 0.0078125, 1e12  # s, s, and the limit of states, as in rollout.h


def loop_answers(programs: Sequence[Program]) -> Answers:
    """What pfaffian_trial of rollout.h must give for a step, an observation and samplers."""
    x0, u, p = inputs = inputs_of(programs[0])
    t, h = np.full((1, RUNS), TRIAL_START), np.full((1, RUNS), TRIAL_STEP)
    step = np.vstack([x0.T, u[0].T, u[1].T, p.T, t, h])
    other = np.vstack([x0.T, u[0].T, p.T, t])
    parts = [answers(f, step if i == 0 else other) for i, f in enumerate(programs)]
    return one_after_another([*parts, of_loop(programs, *inputs)])


def of_loop(programs: Sequence[Program], x0: np.ndarray, u: np.ndarray, p: np.ndarray) -> Answers:
    """One step with two records, in which all is sampled each step."""
    step, observe, *samplers = programs
    often = ((1, 0),) * len(samplers)
    span = Span(TRIAL_START, TRIAL_STEP, 1, 1, 0, True, "linear", 1, TRIAL_LIMIT, often)
    result = RolloutResult(
        np.empty(x0.shape), np.empty((2, RUNS, observe.n_out)), np.zeros(RUNS, np.int32), np.full(RUNS, -1, np.int64)
    )
    run_loop(step, observe, samplers, x0, u, p, span, result)
    inputs = [x0.T, *u.swapaxes(1, 2), p.T]
    outputs = [result.x.T, *result.records.swapaxes(1, 2), result.status.astype(np.float64)[None]]
    return in_rounds(np.vstack(inputs), outputs)


def inputs_of(step: Program) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """x0 (RUNS, nx), u (2, RUNS, nu), p (RUNS, np)."""
    nx, nu, _, n_p, _, _ = step.inputs
    sizes = nx, 2 * nu, n_p
    x0, u, p = split(random_inputs(sizes), sizes)
    u = u.reshape(RUNS, 2, nu).swapaxes(0, 1)
    for _ in range(SETTLING):
        x, fault = evaluate(step, [x0, u[0], u[0], p, np.array([TRIAL_START]), np.zeros(1)])
        x = np.hstack([x, x0[:, x.shape[1] :]])
        faulty = (np.nan_to_num(fault) != 0).any(axis=1) & np.isfinite(x).all(axis=1)
        if not faulty.any():
            break
        x0 = np.where(faulty[:, None], x, x0)
    return x0, u, p
