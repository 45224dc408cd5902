"""One text for what two Programs compute alike: a step and an observation call one function, of which each needs a part.

The function is cut in two: its head, which gives the step what it asks for, and its tail, which goes on from there to what only
the observation asks for. The step calls the head, the observation both; nothing is printed or computed twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pfaffian.kernel.program.passes import prune, rebuild
from pfaffian.kernel.program.program import Program, Step

WORTH = 0.5
"""Part of the head's operations that the observation must need for itself; else it would call the head for little."""

HANDED_ON = 1 / 16
"""Numbers for each operation of the head that it may hand on to the tail: a step stores them all at every call."""


def share(step: Program, observe: Program, *samplers: Program) -> tuple[Program, ...]:
    """Step and observation, each with the part that it needs of a function that both call; one text where that is worth it.

    Samplers, called now and then, stay as they are.
    """
    for function in [p for p in observe.callees if p in step.callees and not _repeated(p, step, observe)]:
        used, wanted = (_used(program, function) for program in (step, observe))
        if pieces := _pieces(function, used, wanted):
            own = (pieces[0], used)
            step = _calling(step, function, [own])
            observe = _calling(observe, function, [own, (pieces[1], range(len(used), function.n_out))])
        else:
            step, observe = (
                _calling(program, function, [(_only(function, values), values)])
                for program, values in ((step, used), (observe, wanted))
            )
    return step, observe, *samplers


def _pieces(function: Program, used: list[int], wanted: list[int]) -> tuple[Program, Program] | None:
    """Its head, which gives what a step uses, and the tail; None where two texts serve better."""
    head = _steps_for(function, used)
    if used != list(range(len(used))) or len(head & _steps_for(function, wanted)) <= WORTH * len(head):
        return None
    first, then = cut(function, len(used))
    return (first, then) if first.n_out - len(used) <= HANDED_ON * len(head) else None


def cut(function: Program, count: int) -> tuple[Program, Program]:
    """The head gives the first `count` values of the function, then those on which the rest goes on; the tail takes the inputs
    and these, and gives the other values. One output each."""
    values = _values(function)
    kept = _steps_for(function, range(count))
    rest = [s for s in function.steps if s.result not in kept]
    made = {r for s in function.steps if s.result in kept for r in range(s.result, s.result + function.width(s))}
    crossing = sorted(made & {a for s in rest for a in s.args} | made & set(values[count:]))
    head = prune(replace(function, outputs=((*values[:count], *crossing),)))
    return head, _tail(function, rest, crossing, values[count:])


def _tail(function: Program, rest: list[Step], crossing: list[int], values: Sequence[int]) -> Program:
    n, more = function.n_in, len(crossing)
    number = {v: v if v < n else v + more for v in range(function.first_result)}
    number |= {v: n + i for i, v in enumerate(crossing)}
    steps, known = [], function.first_result + more
    for s in rest:
        steps.append(s._replace(args=tuple([number[a] for a in s.args]), result=known))
        number |= {s.result + k: known + k for k in range(function.width(s))}
        known += function.width(s)
    outputs = (tuple([number[v] for v in values]),)
    return prune(Program((*function.inputs, more), function.constants, tuple(steps), outputs, function.callees))


def _only(function: Program, wanted: Sequence[int]) -> Program:
    values = _values(function)
    return prune(replace(function, outputs=(tuple(values[k] for k in wanted),)))


def _values(function: Program) -> list[int]:
    return [v for output in function.outputs for v in output]


def _steps_for(function: Program, wanted: Sequence[int]) -> set[int]:
    """The steps that the wanted values of the function need, each by its first result."""
    values = _values(function)
    needed, found = {values[k] for k in wanted}, set()
    for s in reversed(function.steps):
        if any(r in needed for r in range(s.result, s.result + function.width(s))):
            needed.update(s.args)
            found.add(s.result)
    return found


def _repeated(function: Program, *programs: Program) -> bool:
    return any(s.times > 1 and program.callees[s.callee] == function for program in programs for s in program.steps)


def _used(program: Program, function: Program) -> list[int]:
    """Which values of the function the program uses."""
    used = {a for s in program.steps for a in s.args} | set(_values(program))
    starts = [s.result for s in program.steps if s.op == "call" and program.callees[s.callee] == function]
    return [k for k in range(function.n_out) if any(start + k in used for start in starts)]


def _calling(program: Program, function: Program, pieces: Sequence[tuple[Program, Sequence[int]]]) -> Program:
    """The program with each call of the function replaced by calls of its pieces, in turn.

    A piece gives some values of the function; what it gives beyond these goes to the next piece.
    """
    at = program.callees.index(function)
    callees = [*program.callees, *(piece for piece, _ in pieces[1:])]
    callees[at] = pieces[0][0]
    where = [at, *range(len(program.callees), len(callees))]
    # Numbers beyond all others, until they are counted anew.
    fresh = 1 + max(s.result + program.width(s) for s in program.steps)
    steps: list[Step] = []
    renamed: dict[int, int] = {}
    for s in program.steps:
        if s.op != "call" or s.callee != at:
            steps.append(s)
            continue
        passed: tuple[int, ...] = ()
        for callee, (piece, given) in zip(where, pieces, strict=True):
            steps.append(Step("call", s.args + passed, fresh, callee))
            renamed |= {s.result + k: fresh + i for i, k in enumerate(given)}
            passed = tuple(range(fresh + len(given), fresh + piece.n_out))
            fresh += piece.n_out
    return rebuild(program, steps, renamed, tuple(callees))
