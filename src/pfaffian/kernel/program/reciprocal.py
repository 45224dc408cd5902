"""The pass `share_reciprocals`: one division instead of many with the same denominator.

CasADi turns x * (1 / y) back into x / y, so a reciprocal that was computed once on purpose arrives as many divisions,
each of which costs as much as several products. This pass is part of the translation from CasADi, before any C is printed.

The quotient changes by at most 2 ulp, as long as 1 / y is a normal number. Where |y| is above 2^1022 the reciprocal is
subnormal and loses digits, and where it is 2^-1024 or less it overflows, so that a / y comes out as inf (or nan, for a = 0)
although it is a number. Denominators in mechanics (masses, inertias, lengths) are far from both limits.
"""

from __future__ import annotations

from collections import Counter

from pfaffian.kernel.program.program import Program, Step


def share_reciprocals(program: Program) -> Program:
    """Replace a / y, b / y, ... by a * r, b * r with r = 1 / y. A denominator that occurs only once is left alone."""
    uses = Counter(s.args[-1] for s in program.steps if s.op in ("div", "inv"))
    shared = {y for y, n in uses.items() if n > 1}
    number = {v: v for v in range(program.first_result)}
    reciprocal: dict[int, int] = {}
    known, steps = program.first_result, []
    for step in program.steps:
        args = tuple([number[a] for a in step.args])
        y = step.args[-1] if step.op in ("div", "inv") else -1
        if y in shared and y not in reciprocal:
            reciprocal[y] = known
            steps.append(Step("inv", args[-1:], known))
            known += 1
        if step.op == "inv" and y in shared:
            number[step.result] = reciprocal[y]
            continue
        if y in shared:
            step, args = Step("mul", step.args, step.result), (args[0], reciprocal[y])
        steps.append(Step(step.op, args, known, step.callee, step.times))
        for k in range(program.width(step)):
            number[step.result + k] = known + k
        known += program.width(step)
    outputs = tuple(tuple([number[v] for v in output]) for output in program.outputs)
    return Program(program.inputs, program.constants, tuple(steps), outputs, program.callees)
