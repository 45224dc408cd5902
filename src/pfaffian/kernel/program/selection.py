"""One selection in place of CasADi's five operations.

CasADi writes if_else(c, a, b) as (c ? a : 0) + (!c ? b : 0). This is part of the translation, before any printer sees the
Program. The bits are those of a or b: where one of them is -0.0, the sum would have been 0.0.
"""

from __future__ import annotations

from pfaffian.kernel.program.program import Program


def select(program: Program) -> Program:
    """if_else_zero(c, a) + if_else_zero(not c, b) becomes select(c, a, b). `prune` removes what is then unused."""
    made = {step.result: step for step in program.steps}
    steps = []
    for step in program.steps:
        parts = [made[a] for a in step.args if a in made and made[a].op == "if_else_zero"] if step.op == "add" else []
        if len(parts) == 2:
            for yes, no in (parts, parts[::-1]):
                other = made.get(no.args[0])
                if other is not None and other.op == "not" and other.args == yes.args[:1]:
                    step = step._replace(op="select", args=(*yes.args, no.args[1]))
                    break
        steps.append(step)
    return Program(program.inputs, program.constants, tuple(steps), program.outputs, program.callees)
