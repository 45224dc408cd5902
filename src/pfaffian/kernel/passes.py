"""Passes: pure functions Program -> Program that change no bit of any result, and the cut into parts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

from pfaffian.kernel.ops import OPS
from pfaffian.kernel.program import Program, Step

COMMUTE = {"add", "mul", "eq", "ne", "and", "or"}


def optimise(program: Program) -> Program:
    """All passes, callees included."""
    return pair(prune(merge(program)))


def _rebuild(program: Program, steps: list[Step], renamed: dict[int, int], callees: tuple[Program, ...]) -> Program:
    """Number the results of `steps` anew, in order. `renamed` maps values that went away to the ones that stay."""
    if len(steps) == len(program.steps) and not renamed and callees == program.callees:
        return program
    number = {v: v for v in range(program.first_result)}
    known, fresh = program.first_result, []
    for step in steps:
        args = tuple([number[renamed.get(a, a)] for a in step.args])
        fresh.append(Step(step.op, args, known, step.callee))
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
    return _rebuild(program, kept[::-1], {}, tuple(map(prune, program.callees)))


def merge(program: Program) -> Program:
    """Compute equal expressions once. a + b and b + a are equal to the bit; nothing else is reordered."""
    seen: dict[tuple, int] = {}
    renamed: dict[int, int] = {}
    kept = []
    for step in program.steps:
        args = tuple([renamed.get(a, a) for a in step.args])
        key = (step.op, step.callee, *(sorted(args) if step.op in COMMUTE else args))
        first = seen.setdefault(key, step.result)
        if first == step.result:
            kept.append(step)
        else:
            renamed.update((step.result + k, first + k) for k in range(program.width(step)))
    return _rebuild(program, kept, renamed, tuple(map(merge, program.callees)))


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
    return _rebuild(program, kept, renamed, tuple(map(pair, program.callees)))


class Part(NamedTuple):
    """Steps of one C function; loads and stores are (value, slot) of the workspace that parts share."""

    steps: tuple[Step, ...]
    loads: tuple[tuple[int, int], ...]
    stores: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Parts:
    """A Program cut into parts that run one after another, and the number of slots they share."""

    parts: tuple[Part, ...]
    slots: int


def cut(program: Program, size: int) -> Parts:
    """Cut after every `size` steps. A slot is used again once the last part that reads it is over."""
    chunks = [program.steps[i : i + size] for i in range(0, len(program.steps), size)]
    defined, uses = {}, {}  # type: ignore[var-annotated]
    for j, chunk in enumerate(chunks):
        for step in chunk:
            for a in step.args:
                if defined.get(a, j) != j:
                    uses.setdefault(a, []).append(j)
            for k in range(program.width(step)):
                defined[step.result + k] = j
    slot: dict[int, int] = {}
    free: list[int] = []
    slots = 0
    stores: list[list[tuple[int, int]]] = [[] for _ in chunks]
    loads: list[set[tuple[int, int]]] = [set() for _ in chunks]
    expiring: list[list[int]] = [[] for _ in chunks]
    crossing = sorted(uses)
    born: list[list[int]] = [[] for _ in chunks]
    for v in crossing:
        born[defined[v]].append(v)
    for j in range(len(chunks)):
        if j:
            free += expiring[j - 1]
        for v in born[j]:
            if not free:
                free.append(slots)
                slots += 1
            slot[v] = free.pop()
            stores[j].append((v, slot[v]))
            expiring[uses[v][-1]].append(slot[v])
            for user in uses[v]:
                loads[user].add((v, slot[v]))
    parts = zip(chunks, loads, stores, strict=True)
    return Parts(tuple(Part(c, tuple(sorted(r)), tuple(w)) for c, r, w in parts), slots)
