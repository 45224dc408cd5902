"""The pass `hoist`: values that a function computes from the parameters alone are computed once, by its caller.

A step calls the same function at several stages. Masses, lengths of the machine and all other values that depend on nothing
but the parameters are the same at all stages, so the caller computes them once and passes them to each call.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pfaffian.kernel.program.passes import PYTHON, Passes, rebuild
from pfaffian.kernel.program.program import Program, Step

CHEAP = {"add", "sub", "mul", "neg", "sq", "twice"}
"""Operations that, applied to the parameters themselves, cost no more than passing on their result."""


def hoist(programs: Sequence[Program], parameters: Sequence[range], passes: Passes = PYTHON) -> tuple[Program, ...]:
    """The Programs after moving into them what their callees compute from the parameters alone.

    parameters: for each Program the range of its inputs that are the parameters.
    """
    moved = tuple(programs)
    for function in dict.fromkeys(callee for program in programs for callee in program.callees):
        fixed = _fixed(function, moved, parameters)
        if parts := _apart(function, fixed, passes) if fixed else None:
            moved = tuple(_handing(p, function, *parts) if function in p.callees else p for p in moved)
    return tuple(p if p is before else passes["merge"](p) for p, before in zip(moved, programs, strict=True))


def _fixed(function: Program, programs: Sequence[Program], parameters: Sequence[range]) -> set[int]:
    """The inputs of the function that are the same parameter at every call."""
    calls = [
        (s, places)
        for program, places in zip(programs, parameters, strict=True)
        for s in program.steps
        if s.op == "call" and program.callees[s.callee] == function
    ]
    if any(s.times > 1 for s, _ in calls):
        return set()
    given = [[a - places.start if a in places else None for a in s.args] for s, places in calls]
    return {k for k, numbers in enumerate(zip(*given, strict=True)) if numbers[0] is not None and len(set(numbers)) == 1}


def _apart(function: Program, fixed: set[int], passes: Passes) -> tuple[Program, Program] | None:
    """The function cut in two: the part that it computes from the fixed inputs alone, as far as it is worth passing on, and
    the rest, which takes the values of the first part after its inputs. None if nothing is worth it.
    """
    plain = fixed | set(range(function.n_in, function.first_result))
    worth: dict[int, bool] = {}  # value that depends on fixed inputs alone -> whether it is worth passing on
    used = {v for output in function.outputs for v in output}
    for s in function.steps:
        if s.op != "call" and all(a in plain or a in worth for a in s.args):
            costly = s.op not in CHEAP or any(a in worth for a in s.args)
            worth |= dict.fromkeys(range(s.result, s.result + function.width(s)), costly)
        else:
            used.update(s.args)
    chosen = tuple(v for v, costly in worth.items() if costly and v in used)
    if not chosen:
        return None
    rest, handed = passes["tail"](replace(function, outputs=(chosen, *function.outputs)), len(chosen))
    return passes["prune"](replace(function, outputs=(tuple(handed),))), passes["prune"](rest)


def _handing(program: Program, function: Program, first: Program, rest: Program) -> Program:
    """The program that computes `first` itself, and calls `rest` with the results where it called the function."""
    at = program.callees.index(function)
    program = _with_constants(program, first.constants)
    place = {c.hex(): program.n_in + i for i, c in enumerate(program.constants)}
    (call, *_) = (s for s in program.steps if s.op == "call" and s.callee == at)
    fresh = 1 + max(s.result + program.width(s) for s in program.steps)  # beyond all others, until `rebuild` renumbers
    number = dict(enumerate(call.args)) | {first.n_in + i: place[c.hex()] for i, c in enumerate(first.constants)}
    steps: list[Step] = []
    for s in first.steps:
        steps.append(s._replace(args=tuple([number[a] for a in s.args]), result=fresh))
        number |= {s.result + k: fresh + k for k in range(first.width(s))}
        fresh += first.width(s)
    handed, renamed = tuple([number[v] for v in first.outputs[0]]), dict[int, int]()
    for s in program.steps:
        if s.op == "call" and s.callee == at:
            renamed |= {s.result + k: fresh + k for k in range(program.width(s))}
            s = s._replace(args=s.args + handed, result=fresh)
            fresh += program.width(s)
        steps.append(s)
    callees = tuple(rest if i == at else callee for i, callee in enumerate(program.callees))
    return rebuild(program, steps, renamed, callees)


def _with_constants(program: Program, constants: Sequence[float]) -> Program:
    """The program with these numbers among its constants."""
    known = {c.hex() for c in program.constants}
    more = tuple(c for c in constants if c.hex() not in known)

    def moved(values: Sequence[int]) -> tuple[int, ...]:
        return tuple([v if v < program.first_result else v + len(more) for v in values])

    steps = [s._replace(args=moved(s.args), result=s.result + len(more)) for s in program.steps]
    outputs = tuple(moved(output) for output in program.outputs)
    return replace(program, constants=(*program.constants, *more), steps=tuple(steps), outputs=outputs)
