"""The pass `select`: one selection instead of several operations.

CasADi writes if_else(c, a, b) as (c ? a : 0) + (!c ? b : 0). This pass is part of the translation from CasADi, before any C is
printed. The result has the bits of a or b; in CasADi's sum, a result of -0.0 would become 0.0.
"""

from __future__ import annotations

from pfaffian.kernel.program.program import Program


def select(program: Program) -> Program:
    """Replace if_else_zero(c, a) + if_else_zero(not c, b) by select(c, a, b). `prune` removes the operands if unused."""
    maker = {step.result: step for step in program.steps}
    steps = []
    for step in program.steps:
        parts = [maker[a] for a in step.args if a in maker and maker[a].op == "if_else_zero"] if step.op == "add" else []
        if len(parts) == 2:
            for yes, no in (parts, parts[::-1]):
                other = maker.get(no.args[0])
                if other is not None and other.op == "not" and other.args == yes.args[:1]:
                    step = step._replace(op="select", args=(*yes.args, no.args[1]))
                    break
        steps.append(step)
    return Program(program.inputs, program.constants, tuple(steps), program.outputs, program.callees)
