"""Passes: pure functions Program -> Program. Those of OPTIMISATION change no bit of any result; those of TRANSLATION may.

`simplify` takes x - x and 0 x for zero even where x is inf or nan, as CasADi does; `share_reciprocals` changes quotients by at
most 2 ulp; and `select` may return -0.0 where CasADi's sum is 0.0.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from pfaffian.kernel.program.listing import listed
from pfaffian.kernel.program.ops import OPS
from pfaffian.kernel.program.program import Program, Step
from pfaffian.kernel.program.reciprocal import share_reciprocals
from pfaffian.kernel.program.selection import select

COMMUTE = {"add", "mul", "eq", "ne", "and", "or"}

Passes = Mapping[str, Callable[..., Any]]
"""{name: pass}, as in PYTHON. Each pass changes one Program and leaves its callees as they are."""

TRANSLATION = "simplify", "share_reciprocals", "select"
"""Passes that are part of translating a CasADi Function."""

FOLDED = {"add", "sub", "mul", "div", "neg", "sq", "twice"}
"""Operations that may reduce to an argument, to zero or to a simpler operation."""

OPTIMISATION = "merge", "prune", "pair", "roll"


def optimise(program: Program, passes: Passes | None = None) -> Program:
    """Apply all passes of OPTIMISATION to a Program and its callees."""
    passes = PYTHON if passes is None else passes
    if program.callees:
        program = replace(program, callees=tuple(optimise(callee, passes) for callee in program.callees))
    for name in OPTIMISATION:
        program = passes[name](program)
    return program


def rebuild(
    program: Program, steps: list[Step], renamed: dict[int, int], callees: tuple[Program, ...] | None = None
) -> Program:
    """The Program with other steps, their results numbered anew in order.

    renamed: removed value -> value that replaces it.   callees: None: those of the Program.
    """
    callees = program.callees if callees is None else callees
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
    """Remove the steps that no output needs."""
    needed = _needed(program, [v for output in program.outputs for v in output])
    return rebuild(program, [s for s in program.steps if s.result in needed], {})


def _needed(program: Program, values: Iterable[int]) -> set[int]:
    """First results of the steps that the values need."""
    needed, steps = set(values), set()
    for s in reversed(program.steps):
        if any(r in needed for r in range(s.result, s.result + program.width(s))):
            needed.update(s.args)
            steps.add(s.result)
    return steps


def tail(program: Program, count: int) -> tuple[Program, list[int]]:
    """The tail of a Program: the steps that its first `count` output values do not need.

    Returns the tail, and the values that it needs of the removed steps. These become its last input. The tail has one output,
    the remaining output values.
    """
    n, values = program.n_in, [v for output in program.outputs for v in output]
    head = _needed(program, values[:count])
    rest = [s for s in program.steps if s.result not in head]
    computed = {r for s in program.steps if s.result in head for r in range(s.result, s.result + program.width(s))}
    crossing = sorted(computed & {a for s in rest for a in s.args} | computed & set(values[count:]))
    more = len(crossing)
    number = {v: v if v < n else v + more for v in range(program.first_result)}
    number |= {v: n + i for i, v in enumerate(crossing)}
    steps, known = [], program.first_result + more
    for s in rest:
        steps.append(Step(s.op, tuple([number[a] for a in s.args]), known, s.callee, s.times))
        number |= {s.result + k: known + k for k in range(program.width(s))}
        known += program.width(s)
    outputs = (tuple([number[v] for v in values[count:]]),)
    return Program((*program.inputs, more), program.constants, tuple(steps), outputs, program.callees), crossing


def merge(program: Program) -> Program:
    """Compute equal expressions once. a + b and b + a count as equal, since their bits are; nothing else is reordered."""
    return _merge(program, fold=False)


def simplify(program: Program) -> Program:
    """Compute equal expressions once, and simplify a - a, a + a, a a and operations on zero as CasADi does.

    CasADi simplifies while an expression is built. At that time equal operands may still be two different expressions.
    """
    return _merge(program, fold=True)


def _merge(program: Program, fold: bool) -> Program:
    """Compute equal expressions once; with fold, simplify operations too."""
    zeros = [program.n_in + i for i, c in enumerate(program.constants) if c.hex() == (0.0).hex()]
    zero = zeros[0] if zeros else -1
    results: dict[tuple[Any, ...], int] = {}
    renamed: dict[int, int] = {}
    steps = []
    for step in program.steps:
        step = step._replace(args=tuple([renamed.get(a, a) for a in step.args]))
        simpler = _folded(step, zero) if fold and step.op in FOLDED else step
        if isinstance(simpler, int):
            renamed[step.result] = simpler
            continue
        step = simpler
        key = (step.op, step.callee, step.times, *(sorted(step.args) if step.op in COMMUTE else step.args))
        first = results.setdefault(key, step.result)
        if first == step.result:
            steps.append(step)
        else:
            renamed.update((step.result + k, first + k) for k in range(program.width(step)))
    return rebuild(program, steps, renamed)


def _folded(step: Step, zero: int) -> Step | int:
    """Simplify a step: the step, a simpler one, or the number of the value that it is equal to.

    zero: number of the constant 0.0, or -1 if there is none.
    """
    a, b = step.args[0], step.args[-1]
    if (a == zero and step.op not in ("add", "sub")) or (b == zero and step.op == "mul"):
        return zero
    if step.op not in ("add", "sub", "mul"):
        return step
    if b == zero:
        return a
    if a == zero:
        return b if step.op == "add" else step._replace(op="neg", args=(b,))
    if a == b and step.op == "sub":
        return zero if zero >= 0 else step
    return step._replace(op="twice" if step.op == "add" else "sq", args=(a,)) if a == b else step


def pair(program: Program) -> Program:
    """Replace sin and cos of the same argument by one sincos, which reduces the angle only once."""
    cosine = {s.args: s.result for s in program.steps if s.op == "cos"}
    paired = {s.args for s in program.steps if s.op == "sin"} & cosine.keys()
    fresh = 1 + max((s.result + program.width(s) for s in program.steps), default=0)
    pairs: dict[tuple[int, ...], int] = {}
    renamed: dict[int, int] = {}
    steps = []
    for step in program.steps:
        if step.op not in ("sin", "cos") or step.args not in paired:
            steps.append(step)
            continue
        if step.args not in pairs:
            pairs[step.args] = fresh
            steps.append(Step("sincos", step.args, fresh))
            fresh += 2
        renamed[step.result] = pairs[step.args] + (step.op == "cos")
    return rebuild(program, steps, renamed)


def roll(program: Program) -> Program:
    """Replace a chain of calls by one repeated call.

    Each call of the chain takes all results of the previous one, then the same further arguments, and no other step uses them.
    """
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
    steps = [chains.get(s.result, s) for s in program.steps if s.op != "call" or s.result in chains]
    return rebuild(program, steps, {})


PYTHON: Passes = {f.__name__: f for f in (listed, simplify, share_reciprocals, select, merge, prune, pair, roll, tail)}
"""The passes in Python: the specification of those in C, and their substitute where nothing can be compiled."""
