"""A Program cut into stages: C functions of about a thousand operations, with the calls of other Programs between them.

A function of 10,000 operations in a row compiles slowly, and its code does not fit into the instruction cache. Stages run one
after another, each over a tile of blocks, and pass values on in the slots of a workspace.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from pfaffian.kernel.program.ops import SINGLE
from pfaffian.kernel.program.program import Program, Step


@dataclass(frozen=True)
class Call:
    """Call of a callee, which reads the slots from `inputs` on and writes the slots from `outputs` on."""

    callee: int
    inputs: int
    outputs: int


@dataclass
class ProgramStage:
    """The steps of one C function, and the call that follows it.

    steps: its operations.   made: the values that these define.   called: step of the call, None if no call follows.
    call: its callee and slots.
    loads, stores: (value, slot) that the function reads and writes.   outs: (value, k), where the value is entry k of the
    Program's outputs.
    """

    steps: Sequence[Step]
    made: range
    called: Step | None = None
    call: Call | None = None
    loads: list[tuple[int, int]] = field(default_factory=list)
    stores: list[tuple[int, int]] = field(default_factory=list)
    outs: list[tuple[int, int]] = field(default_factory=list)


@dataclass(frozen=True)
class Stages:
    """The stages of a Program, and the number of slots that they share."""

    stages: tuple[ProgramStage, ...]
    slots: int


def cut(program: Program, size: int) -> Stages:
    """Cut a Program into stages, at every call and wherever a stage would exceed the size. A slot is reused after the last
    stage that reads its value."""
    stages, first = _split(program, size), program.first_result
    born = {v: j for j, stage in enumerate(stages) for v in stage.made}
    given = {v: j for j, stage in enumerate(stages) if stage.called for v in _results(program, stage.called)}
    for k, v in enumerate(v for output in program.outputs for v in output):
        stages[given[v] + 1 if v in given else born.get(v, 0)].outs.append((v, k))
    last: dict[int, int] = {}
    for j, stage in enumerate(stages):
        last |= {v: j for v in _read(stage) if v >= first and born.get(v) != j}
    return Stages(stages, _allocate(program, stages, last))


def _split(program: Program, size: int) -> tuple[ProgramStage, ...]:
    """The stages without their slots: at least one, and one after every call.

    The steps of a stage, the values that it reads and the values that it leaves to later stages are together at most `size`,
    because the time that a compiler takes grows with the square of the last two numbers.
    """
    steps, n_in, known = program.steps, program.n_in, program.first_result
    last = {a: i for i, step in enumerate(steps) for a in step.args}
    last |= dict.fromkeys((v for output in program.outputs for v in output), len(steps))
    stages, start, first, read, open_ = [], 0, known, set[int](), set[int]()
    constants = range(n_in, known)
    for i, step in enumerate(steps):
        known, before = step.result + (1 if step.op in SINGLE else program.width(step)), step.result
        if step.op == "call":
            stages.append(ProgramStage(steps[start:i], range(first, before), step))
            start, first, read, open_ = i + 1, known, set(), set()
            continue
        if i - start + len(read) + len(open_) >= size and i > start:
            stages.append(ProgramStage(steps[start:i], range(first, before)))
            start, first, read, open_ = i, before, set(), set()
        for a in step.args:
            if a not in open_ and a not in constants:
                read.add(a)
        for a in step.args:
            if last[a] == i:
                open_.discard(a)
        for v in range(before, known):
            if last.get(v, i) > i:
                open_.add(v)
    return (*stages, ProgramStage(steps[start:], range(first, known)))


def _results(program: Program, step: Step) -> range:
    """Values that the step defines."""
    return range(step.result, step.result + program.width(step))


def _read(stage: ProgramStage) -> list[int]:
    """Values that the C function of the stage reads, in order, some more than once."""
    read = [a for step in stage.steps for a in step.args] + [v for v, _ in stage.outs]
    return read + list(stage.called.args if stage.called else ())


def _allocate(program: Program, stages: tuple[ProgramStage, ...], last: dict[int, int]) -> int:
    """Fill in the loads, stores and calls of the stages; return the number of slots.

    last: value -> last stage, other than the one that defines it, that reads it.
    """
    slots = _SlotAllocator()
    slot: dict[int, int] = {}
    ending: dict[int, list[tuple[int, int]]] = defaultdict(list)  # stage -> (slot, count) that become free after it
    for j, stage in enumerate(stages):
        stage.loads = sorted({(v, slot[v]) for v in _read(stage) if v in slot})
        for v in (v for v in stage.made if v in last):
            slot[v] = slots.take(1)
            stage.stores.append((v, slot[v]))
            ending[last[v]].append((slot[v], 1))
        if stage.called:
            args, results = stage.called.args, _results(program, stage.called)
            room = len(results) if stage.called.times <= 1 else len(args)  # a repeated call alternates between two places
            stage.call = Call(stage.called.callee, slots.take(len(args)), slots.take(room))
            stage.stores += [(a, stage.call.inputs + i) for i, a in enumerate(args)]
            slot |= {v: stage.call.outputs + k for k, v in enumerate(results)}
            ending[j].append((stage.call.inputs, len(args)))
            ending[max([j, *(last.get(v, j) for v in results)])].append((stage.call.outputs, room))
        for place, count in ending.pop(j, ()):
            slots.free[count].append(place)
    return slots.count


class _SlotAllocator:
    """Allocator of ranges of neighbouring slots. A free range is reused for a request of the same length."""

    def __init__(self) -> None:
        self.count = 0
        self.free: dict[int, list[int]] = defaultdict(list)

    def take(self, count: int) -> int:
        """The first of `count` neighbouring slots."""
        if self.free[count]:
            return self.free[count].pop()
        self.count += count
        return self.count - count
