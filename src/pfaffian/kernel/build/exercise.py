"""Inputs that exercise all of a kernel, and the interpreter's outputs for them: the answers of a compiled object's trial."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from pfaffian.kernel.build.decisions import both_sides
from pfaffian.kernel.build.interpreter import Interpreted
from pfaffian.kernel.build.loop_trial import START, STEP
from pfaffian.kernel.build.trial import DRAWN, RUNS, Answers, in_rounds, one_after_another, random_inputs
from pfaffian.kernel.program.program import Program

SETTLING = 2
"""Steps of zero length that move random states to states where a step has no fault, such as onto the constraints."""


def of_program(program: Program) -> Answers:
    """Rounds for the function pfaffian_trial of driver.h."""
    inputs = in_rounds(exercise(program, definite(program.inputs)))
    return Answers(inputs, Interpreted(program).trial(inputs, program.n_out * RUNS, loop=False))


def of_loop(programs: Sequence[Program]) -> Answers:
    """Rounds for the function pfaffian_trial of rollout.h: the step, the observation, the samplers, then the loop."""
    x, u, p = likely(programs[0])
    t, h = np.full((1, RUNS), START), np.full((1, RUNS), STEP)
    first = u[: len(u) // 2]
    rows = [exercise(programs[0], np.vstack([x, u, p, t, h]))]
    rows += [exercise(program, np.vstack([x, first, p, t])) for program in programs[1:]]
    inputs = one_after_another([*map(in_rounds, rows), in_rounds(np.vstack([x, u, p]))])
    records = len(x) + 2 * programs[1].n_out + 1
    return Answers(inputs, Interpreted(*programs).trial(inputs, (sum(p.n_out for p in programs) + records) * RUNS, loop=True))


def exercise(program: Program, likely: np.ndarray | None = None) -> np.ndarray:
    """Inputs (n, runs) in whole rounds: random ones, the likely ones if given, and some on both sides of decisions."""
    rows = random_inputs(program.inputs, DRAWN)
    rows = rows if likely is None else np.hstack([rows, likely])
    close = both_sides(program, rows)
    return np.hstack([rows, close[:, np.arange(-(-close.shape[1] // RUNS) * RUNS) % max(1, close.shape[1])]])


def definite(sizes: Sequence[int]) -> np.ndarray | None:
    """Inputs (n, DRAWN) whose square matrices are positive definite, as random ones seldom are; None if no input is square."""
    rows, first = random_inputs(sizes, DRAWN), 0
    square = [math.isqrt(size) if math.isqrt(size) ** 2 == size else 0 for size in sizes]
    for size, n in zip(sizes, square, strict=True):
        if n > 1:
            A = rows[first : first + size].reshape(n, n, -1)
            rows[first : first + size] = np.einsum("ikr,jkr->ijr", A, A).reshape(size, -1)
        first += size
    return rows if max(square, default=0) > 1 else None


def likely(step: Program) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Likely arguments of a step: states (nx, RUNS), inputs at both ends (2 nu, RUNS) and parameters (np, RUNS).

    The states are random ones, moved by up to SETTLING steps where they have a fault.
    """
    nx, nu, _, n_p, _, _ = step.inputs
    x, u, p = np.split(random_inputs((nx, 2 * nu, n_p)), [nx, nx + 2 * nu])
    interpreted, moving = Interpreted(step), len(step.outputs[0])
    times = np.array([[START], [0.0]]) * np.ones(RUNS)
    for _ in range(SETTLING):
        outputs = interpreted.outputs(np.vstack([x, u[:nu], u[:nu], p, times]))
        moved, fault = np.vstack([outputs[:moving], x[moving:]]), outputs[moving : moving + len(step.outputs[1])]
        faulty = (np.nan_to_num(fault) != 0).any(axis=0) & np.isfinite(moved).all(axis=0)
        if not faulty.any():
            break
        x = np.where(faulty, moved, x)
    return x, u, p
