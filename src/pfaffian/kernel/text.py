"""Program -> C. Nothing else knows syntax; nothing but numbers and names of operations enters the text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from pfaffian.kernel import elementary, reduction
from pfaffian.kernel.ops import OPS
from pfaffian.kernel.passes import Part, cut
from pfaffian.kernel.program import Program

PART_SIZE = 1500


@cache
def _file(name: str) -> str:
    return files("pfaffian.kernel").joinpath(name).read_text(encoding="utf-8")


@cache
def _elementary(name: str) -> str:
    return elementary.c_text(name)


@cache
def _reduction() -> str:
    words = ", ".join(f"UINT64_C({word})" for word in reduction.limbs())
    return f"static const uint64_t TWO_OVER_PI[] = {{{words}}};\n" + _file("reduction.h")


@dataclass(frozen=True)
class Source:
    """C text, and the workspace [vectors of W doubles] that the programs in it need besides inputs and outputs."""

    text: str
    slots: int


def kernel_source(program: Program, lanes: int, part_size: int = PART_SIZE) -> Source:
    """C of one Program and of the loop over a batch around it (driver.h)."""
    return _source([program], ["PROGRAM"], "driver.h", lanes, part_size)


def rollout_source(step: Program, observe: Program, lanes: int, part_size: int = PART_SIZE) -> Source:
    """C of a step and an observation and of the time loop around them (rollout.h)."""
    return _source([step, observe], ["STEP", "OBSERVE"], "rollout.h", lanes, part_size)


def _source(programs: Sequence[Program], names: Sequence[str], driver: str, lanes: int, part_size: int) -> Source:
    order = _callees_first(programs)
    index = {program.digest(): i for i, program in enumerate(order)}
    used = sorted({s.op for program in order for s in program.steps} & elementary.FUNCTIONS.keys())
    slots: dict[str, int] = {}
    bodies = []
    for i, program in enumerate(order):
        text, slots[program.digest()] = _function(program, i, index, slots, part_size)
        bodies.append(text)
    ports = [_ports(name, program, index[program.digest()]) for name, program in zip(names, programs, strict=True)]
    chunks = [f"#define W {lanes}\n", _file("prelude.h"), _reduction(), *map(_elementary, used), *bodies, *ports]
    need = max(slots[program.digest()] for program in programs)
    return Source("\n".join([*chunks, _file("ports.h"), _file(driver)]), need)


def _callees_first(programs: Sequence[Program]) -> list[Program]:
    order: dict[str, Program] = {}

    def visit(program: Program) -> None:
        if program.digest() not in order:
            for callee in program.callees:
                visit(callee)
            order[program.digest()] = program

    for program in programs:
        visit(program)
    return list(order.values())


def _ports(name: str, program: Program, index: int) -> str:
    sizes = {"IN": program.inputs, "OUT": tuple(map(len, program.outputs))}
    lines = [f"#define {name} p{index}"]
    for side, lengths in sizes.items():
        table = ", ".join(map(str, lengths)) or "0"
        lines.append(f"static const int {name}_{side}[] = {{{table}}};")
        lines.append(f"enum {{ {name}_N_{side} = {len(lengths)}, {name}_{side}_TOTAL = {sum(lengths)} }};")
    return "\n".join(lines) + "\n"


def _function(program: Program, index: int, order: dict[str, int], slots: dict[str, int], size: int) -> tuple[str, int]:
    """C of one Program without its callees, and the slots it needs with them."""
    pieces = cut(program, size)
    place: dict[int, list[int]] = {}
    for k, v in enumerate(v for output in program.outputs for v in output):
        place.setdefault(v, []).append(k)
    text, calls = [], []
    literals = {program.n_in + i: f"K({c.hex()})" for i, c in enumerate(program.constants)}
    for j, part in enumerate(pieces.parts):
        lines = _part_lines(program, part, literals, place, order, pieces.slots)
        signature = f"static NOINLINE void p{index}_{j}(const V *restrict in, V *restrict out, V *restrict w) {{"
        text += [signature, *lines, "}"]
        calls.append(f"  p{index}_{j}(in, out, w);")
    early = [(v, k) for v, ks in place.items() if v < program.first_result for k in ks]
    calls += [f"  out[{k}] = {literals.get(v, f'in[{v}]')};" for v, k in early]
    signature = f"static inline void p{index}(const V *restrict in, V *restrict out, V *restrict w) {{"
    text += [signature, *calls, "}\n"]
    return "\n".join(text), pieces.slots + max((slots[c.digest()] for c in program.callees), default=0)


def _part_lines(
    program: Program,
    part: Part,
    literals: dict[int, str],
    place: dict[int, list[int]],
    order: dict[str, int],
    slots: int,
) -> list[str]:
    """Statements of one part: literals writes the constants, place the outputs that are a value, order the callees."""
    n_in = program.n_in
    used = sorted({a for step in part.steps for a in step.args if a < n_in})
    lines = [f"  const V v{v} = in[{v}];" for v in used]
    lines += [f"  const V v{v} = w[{slot}];" for v, slot in part.loads]
    saved = dict(part.stores)

    def name(v: int) -> str:
        return literals.get(v) or f"v{v}"

    for step in part.steps:
        args = [name(a) for a in step.args]
        v = step.result
        if step.op == "call":
            lines += _call_lines(program.callees[step.callee], args, v, order, slots)
            results = range(v, v + program.callees[step.callee].n_out)
        elif OPS[step.op].results == 1:
            lines.append(f"  const V v{v} = {OPS[step.op].c.format(*args)};")
            results = range(v, v + 1)
        else:
            lines.append(f"  V v{v}, v{v + 1}; pf_{step.op}({args[0]}, &v{v}, &v{v + 1});")
            results = range(v, v + 2)
        for r in results:
            if r in saved:
                lines.append(f"  w[{saved[r]}] = v{r};")
            lines += [f"  out[{k}] = v{r};" for k in place.get(r, ())]
    return lines


def _call_lines(callee: Program, args: list[str], v: int, order: dict[str, int], slots: int) -> list[str]:
    n_in, n_out = max(1, callee.n_in), max(1, callee.n_out)
    lines = [f"  V a{v}[{n_in}], r{v}[{n_out}];"]
    lines += [f"  a{v}[{i}] = {arg};" for i, arg in enumerate(args)]
    lines.append(f"  p{order[callee.digest()]}(a{v}, r{v}, w + {slots});")
    return lines + [f"  const V v{v + k} = r{v}[{k}];" for k in range(callee.n_out)]
