"""The passes `share` and `needed`: what is called computes what its callers need, and no more.

`share`: a step and an observation that call the same function share the part of it that both need.

The function is cut in two: its head computes the values that the step needs, and its tail continues from there to the values
that only the observation needs. The step calls the head, the observation both, so nothing is printed or computed twice.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from pfaffian.kernel.program.passes import PYTHON, Passes, rebuild
from pfaffian.kernel.program.program import Program, Step, callees_first

WORTH = 0.5
"""The observation must need at least this fraction of the head's operations; otherwise calling the head would be wasteful."""

HANDED_ON = 1 / 16
"""Largest number of values that the head may pass to the tail, per operation of the head: a step stores them at every call."""


def share(step: Program, observe: Program, *samplers: Program, passes: Passes = PYTHON) -> tuple[Program, ...]:
    """Reduce each function that both step and observation call to the part that each needs; they share its head if that pays.

    Samplers are returned unchanged, because they are rarely called.
    """
    for function in [p for p in observe.callees if p in step.callees and not _repeated(p, step, observe)]:
        by_step, by_observe = (_used(program, function) for program in (step, observe))
        if pieces := _pieces(function, by_step, by_observe, passes):
            head = (pieces[0], by_step)
            step = _calling(step, function, [head])
            observe = _calling(observe, function, [head, (pieces[1], range(len(by_step), function.n_out))])
        else:
            step, observe = (
                _calling(program, function, [(_only(function, values, passes), values)])
                for program, values in ((step, by_step), (observe, by_observe))
            )
    return _reduced(step, observe, passes), observe, *samplers


def needed(program: Program, passes: Passes = PYTHON) -> Program:
    """Reduce each function that the Program calls to the values that it uses. What the costliest call alone uses, such as the
    signals at the end of a step, is the function's tail, which that call makes after the head that all make."""
    deeper = {f for callee in callees_first(program.callees) for f in callee.callees}  # printed once, for all who call them
    for function in [f for f in program.callees if f not in deeper and not _repeated(f, program)]:
        starts = [s.result for s in program.steps if s.op == "call" and program.callees[s.callee] == function]
        read = {a for s in program.steps for a in s.args} | set(_values(program))
        uses = {start: {k for k in range(function.n_out) if start + k in read} for start in starts}
        richest, common = min(
            ((start, sorted({k for s in starts if s != start for k in uses[s]})) for start in starts),
            key=lambda each: len(_only(function, each[1], passes).steps),
        )
        further = sorted(uses[richest].difference(common))
        if common and further:
            values = _values(function)
            head, tail = cut(replace(function, outputs=(tuple(values[k] for k in [*common, *further]),)), len(common), passes)
            program = _calling(program, function, [(head, common), (tail, further)], whole={richest})
        elif len(common) + len(further) < function.n_out:
            program = _calling(program, function, [(_only(function, common or further, passes), common or further)])
    return program


def _reduced(step: Program, observe: Program, passes: Passes) -> Program:
    """The step with each function that it alone calls reduced to the values that it uses."""
    for function in [p for p in step.callees if p not in observe.callees]:
        values = _used(step, function)
        if len(values) < function.n_out and not _repeated(function, step):
            step = _calling(step, function, [(_only(function, values, passes), values)])
    return step


def _pieces(function: Program, by_step: list[int], by_observe: list[int], passes: Passes) -> tuple[Program, Program] | None:
    """The head of the function, which computes the values that the step uses, and its tail; None if sharing does not pay."""
    if by_step != list(range(len(by_step))):
        return None
    whole = sorted({*by_step, *by_observe})
    head, other, both = (len(_only(function, chosen, passes).steps) for chosen in (by_step, by_observe, whole))
    if head + other - both <= WORTH * head:
        return None
    first, then = cut(function, len(by_step), passes)
    return (first, then) if first.n_out - len(by_step) <= HANDED_ON * head else None


def cut(function: Program, count: int, passes: Passes = PYTHON) -> tuple[Program, Program]:
    """Head and tail of a function, with one output each. The head computes the first `count` output values, then the values
    that the tail needs of it. The tail takes the function's inputs and these values, and computes the other output values."""
    tail, crossing = passes["tail"](function, count)
    head = replace(function, outputs=((*_values(function)[:count], *crossing),))
    return passes["prune"](head), passes["prune"](tail)


def _only(function: Program, chosen: Sequence[int], passes: Passes) -> Program:
    """The function with the chosen output values as its only output, without the steps that these do not need."""
    values = _values(function)
    return passes["prune"](replace(function, outputs=(tuple(values[k] for k in chosen),)))


def _values(function: Program) -> list[int]:
    """All output values of the function."""
    return [v for output in function.outputs for v in output]


def _repeated(function: Program, *programs: Program) -> bool:
    """Whether a repeated call in one of the programs calls the function."""
    return any(s.times > 1 and program.callees[s.callee] == function for program in programs for s in program.steps)


def _used(program: Program, function: Program) -> list[int]:
    """Indices of the function's output values that the program uses."""
    used = {a for s in program.steps for a in s.args} | set(_values(program))
    starts = [s.result for s in program.steps if s.op == "call" and program.callees[s.callee] == function]
    return [k for k in range(function.n_out) if any(start + k in used for start in starts)]


def _calling(
    program: Program,
    function: Program,
    pieces: Sequence[tuple[Program, Sequence[int]]],
    whole: Collection[int] | None = None,
) -> Program:
    """The program with each call of the function replaced by calls of its pieces, in order.

    pieces: each with the indices of the function's output values that it computes first. Its further values become arguments
    of the next piece.   whole: first results of the calls that need all pieces, the others the first alone; None: all do.
    """
    at = program.callees.index(function)
    callees = [*program.callees, *(piece for piece, _ in pieces[1:])]
    callees[at] = pieces[0][0]
    where = [at, *range(len(program.callees), len(callees))]
    # Numbers beyond all others, until `rebuild` renumbers them.
    fresh = 1 + max(s.result + program.width(s) for s in program.steps)
    steps: list[Step] = []
    renamed: dict[int, int] = {}
    for s in program.steps:
        if s.op != "call" or s.callee != at:
            steps.append(s)
            continue
        passed: tuple[int, ...] = ()
        some = pieces if whole is None or s.result in whole else pieces[:1]
        for callee, (piece, given) in zip(where, some, strict=False):
            steps.append(Step("call", s.args + passed, fresh, callee, s.times))
            renamed |= {s.result + k: fresh + i for i, k in enumerate(given)}
            passed = tuple(range(fresh + len(given), fresh + piece.n_out))
            fresh += piece.n_out
    return rebuild(program, steps, renamed, tuple(callees))
