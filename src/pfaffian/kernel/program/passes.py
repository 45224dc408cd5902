"""Passes: pure functions Program -> Program that change no bit of any result."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from pfaffian.kernel.program.ops import OPS
from pfaffian.kernel.program.program import Program, Step

COMMUTE = {"add", "mul", "eq", "ne", "and", "or"}


def optimise(program: Program) -> Program:
    """All passes, callees included."""
    return roll(pair(prune(merge(program))))


def rebuild(program: Program, steps: list[Step], renamed: dict[int, int], callees: tuple[Program, ...]) -> Program:
    """Renumber the results of `steps` in order. `renamed` maps values that were removed to those that replace them."""
    if len(steps) == len(program.steps) and not renamed and callees == program.callees:
        return program
    number = {v: v for v in range(program.first_result)}
    known, fresh = program.first_result, []
    for step in steps:
        args = tuple([number[renamed.get(a, a)] for a in step.args])
        fresh.append(Step(step.op, args, known, step.callee, step.times))
        width = callees[step.callee].n_out if step.op == "call" else OPS[step.op].results
        for k in range(width):
            number[step.result + k] = known + k
        known += width
    outputs = tuple(tuple([number[renamed.get(v, v)] for v in output]) for output in program.outputs)
    return replace(program, steps=tuple(fresh), outputs=outputs, callees=callees)


def prune(program: Program) -> Program:
    """Drop the steps that no output needs."""
    needed = {v for output in program.outputs for v in output}
    kept = []
    for step in reversed(program.steps):
        if any(r in needed for r in range(step.result, step.result + program.width(step))):
            needed.update(step.args)
            kept.append(step)
    return rebuild(program, kept[::-1], {}, tuple(map(prune, program.callees)))


def merge(program: Program) -> Program:
    """Compute equal expressions once. a + b and b + a are equal bit for bit; nothing else is reordered."""
    seen: dict[tuple, int] = {}
    renamed: dict[int, int] = {}
    kept = []
    for step in program.steps:
        args = tuple([renamed.get(a, a) for a in step.args])
        key = (step.op, step.callee, step.times, *(sorted(args) if step.op in COMMUTE else args))
        first = seen.setdefault(key, step.result)
        if first == step.result:
            kept.append(step)
        else:
            renamed.update((step.result + k, first + k) for k in range(program.width(step)))
    return rebuild(program, kept, renamed, tuple(map(merge, program.callees)))


def pair(program: Program) -> Program:
    """sin and cos of one argument become one sincos: they share the reduction of the angle."""
    cosine = {s.args: s.result for s in program.steps if s.op == "cos"}
    paired = {s.args for s in program.steps if s.op == "sin"} & cosine.keys()
    fresh = 1 + max((s.result + program.width(s) for s in program.steps), default=0)
    pairs: dict[tuple[int, ...], int] = {}
    renamed: dict[int, int] = {}
    kept = []
    for step in program.steps:
        if step.op not in ("sin", "cos") or step.args not in paired:
            kept.append(step)
            continue
        if step.args not in pairs:
            pairs[step.args] = fresh
            kept.append(Step("sincos", step.args, fresh))
            fresh += 2
        renamed[step.result] = pairs[step.args] + (step.op == "cos")
    return rebuild(program, kept, renamed, tuple(map(pair, program.callees)))


def roll(program: Program) -> Program:
    """A chain of calls, each on all results of the previous one and otherwise the same arguments, becomes one repeated call."""
    uses = Counter(a for s in program.steps for a in s.args) + Counter(v for output in program.outputs for v in output)
    chains: dict[int, Step] = {}  # first result of a chain -> its step
    for s in program.steps:
        if s.op != "call":
            continue
        width = program.width(s)
        before = chains.get(s.args[0]) if s.args else None
        given = range(s.args[0], s.args[0] + width) if before else range(0)
        if (
            before is not None
            and (before.callee, s.times) == (s.callee, 1)
            and s.args == (*given, *before.args[width:])
            and all(uses[v] == 1 for v in given)
        ):
            del chains[before.result]
            s = s._replace(args=before.args, times=before.times + 1)
        chains[s.result] = s
    kept = [chains.get(s.result, s) for s in program.steps if s.op != "call" or s.result in chains]
    return rebuild(program, kept, {}, tuple(map(roll, program.callees)))
