"""Program -> C. Only numbers and names of operations enter the text; most numbers are read from a table (skeleton.py)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

from pfaffian import sources
from pfaffian.kernel.functions import angle_reduction as reduction
from pfaffian.kernel.functions import elementary
from pfaffian.kernel.program.ops import OPS, SINGLE
from pfaffian.kernel.program.program import GUARDED, Program, callees_first
from pfaffian.kernel.program.skeleton import places
from pfaffian.kernel.program.stages import Call, ProgramStage, Stages, cut
from pfaffian.kernel.text.units import of_unit

UNIT_STEPS, MOST_UNITS = 5000, 8  # steps of each unit in which a long text is compiled; largest number of units
PART_SIZE = 1500  # size of a stage: operations, loads and stores of a C function
TILE = 8  # largest number of blocks of a tile; half as many where the code fits into the instruction cache anyway
SHORT_TEXT = 4000  # operations whose code fits into that cache
CIRCULAR, INLINED = ("sin", "cos", "sincos"), 128  # inlined (3 % faster) if used at most so often, or the code would bloat
TILE_BYTES = 512 << 10  # largest size of the frames of a tile: well within the second-level cache
LONG_TEXT = 25_000  # operations whose code alone fills that cache: then each fetch of it serves a whole tile (15 % faster)


@cache
def file_text(name: str) -> str:
    """Text of a file in this folder."""
    return sources.read(f"kernel/text/{name}")


@cache
def _elementary(name: str, inline: bool) -> str:
    """C text of an elementary function."""
    return elementary.c_text(name, inline)


@cache
def reduction_text() -> str:
    """C text of the exact reduction of huge angles, with its table of 2/pi."""
    words = ", ".join(f"UINT64_C({word})" for word in reduction.limbs())
    return f"static const uint64_t TWO_OVER_PI[] = {{{words}}};\n" + file_text("reduction.h")


@dataclass(frozen=True)
class Source:
    """C text of a kernel.   lanes: doubles of a vector.   frame: vectors of the workspace of a block of runs.
    tile: number of blocks that pass a stage together."""

    text: str
    lanes: int
    frame: int
    tile: int

    @property
    def doubles(self) -> int:
        """Size of the workspace, in doubles."""
        return self.lanes * self.frame * self.tile


def kernel_source(program: Program, lanes: int, part_size: int = PART_SIZE) -> Source:
    """C text of one Program and of the loop over a batch that calls it (driver.h)."""
    return source_of([program], ["PROGRAM"], file_text("driver.h"), lanes, part_size)


def rollout_source(step: Program, observe: Program, *samplers: Program, lanes: int, part_size: int = PART_SIZE) -> Source:
    """C text of a step, an observation and samplers, and of the time loop that calls them (rollout.h)."""
    return source_of([step, observe], ["STEP", "OBSERVE"], file_text("rollout.h"), lanes, part_size, samplers)


def single_source(step: Program, observe: Program, *samplers: Program, part_size: int = PART_SIZE) -> Source:
    """C text of a step, an observation, samplers and their time loop for one run at a time, with all numbers in the text."""
    return source_of([step, observe], ["STEP", "OBSERVE"], file_text("rollout.h"), 1, part_size, samplers, most=1, table=False)


def source_of(
    programs: Sequence[Program],
    names: Sequence[str],
    driver: str,
    lanes: int,
    part_size: int,
    samplers: Sequence[Program] = (),
    most: int = TILE,
    table: bool = True,
) -> Source:
    """C text of Programs, and of the loops (driver) that call them by these names.

    most: largest number of blocks of a tile.   table: whether constants are read from a table instead of being in the text.
    """
    order = callees_first([*programs, *samplers])
    index = {program.digest(): i for i, program in enumerate(order)}
    uses = Counter(s.op for program in order for s in program.steps if s.op in elementary.FUNCTIONS)
    functions = [_elementary(name, name in CIRCULAR and uses[name] <= INLINED) for name in sorted(uses)]
    slots: dict[str, int] = {}
    bodies, numbers = [], 0
    units = min(MOST_UNITS, 1 + sum(len(program.steps) for program in order) // UNIT_STEPS)
    for i, program in enumerate(order):
        pieces = cut(program, part_size)
        literals = _literals(program, numbers if table else None)
        bodies.append(_function(program, i, index, pieces, units, literals))
        numbers += len(places(program))
        slots[program.digest()] = pieces.slots + max((slots[c.digest()] for c in program.callees), default=0)
    ports = [_ports(name, program, index[program.digest()]) for name, program in zip(names, programs, strict=True)]
    ports.append(_table(samplers, [index[s.digest()] for s in samplers]))
    frame = sum(p.n_in + p.n_out for p in programs) + max((s.n_out + s.inputs[0] for s in samplers), default=0)
    frame += max(slots[p.digest()] for p in (*programs, *samplers))
    steps = sum(len(program.steps) for program in order)
    tile = most if steps > SHORT_TEXT else max(1, most // 2)
    if steps < LONG_TEXT:
        tile = max(1, min(tile, TILE_BYTES // (8 * lanes * max(1, frame))))
    sizes = f"#define W {lanes}\nenum {{ FRAME = {max(1, frame)}, TILE = {tile} }};\n"
    loops = of_unit(0, *ports, file_text("transpose.h"), file_text("ports.h"), driver)
    text = "\n".join([sizes, file_text("prelude.h"), reduction_text(), file_text("huge.h"), *functions, *bodies, *loops])
    return Source(text, lanes, max(1, frame), tile)


def _ports(name: str, program: Program, index: int) -> str:
    """C definitions of the name of a Program and of the numbers and lengths of its ports."""
    sizes = {"IN": program.inputs, "OUT": tuple(map(len, program.outputs))}
    lines = [f"#define {name} p{index}"]
    for side, lengths in sizes.items():
        table = ", ".join(map(str, lengths)) or "0"
        lines.append(f"static const int {name}_{side}[] = {{{table}}};")
        lines.append(f"enum {{ {name}_N_{side} = {len(lengths)}, {name}_{side}_TOTAL = {sum(lengths)} }};")
    return "\n".join(lines) + "\n"


def _table(samplers: Sequence[Program], index: Sequence[int]) -> str:
    """C tables of the samplers' functions and their numbers of faults, with a single entry 0 if there are no samplers."""
    functions = ", ".join(f"p{i}" for i in index) or "0"
    faults = ", ".join(str(len(s.outputs[1])) for s in samplers) or "0"
    most = max((s.n_out for s in samplers), default=0)
    lines = [f"#define SAMPLERS {{{functions}}}", f"#define SAMPLER_FAULTS {{{faults}}}"]
    saved = len(samplers[0].outputs[0]) if samplers else 0
    return "\n".join([*lines, f"enum {{ N_SAMPLERS = {len(samplers)}, SAMPLER_OUT = {most}, KEPT = {saved} }};", ""])


def _literals(program: Program, begin: int | None) -> list[str]:
    """C text of each constant.   begin: index of the Program's first number in the table; None: all are written as numbers."""
    tabled = {} if begin is None else {i: begin + place for i, place in places(program).items()}
    return [f"C({tabled[i]})" if i in tabled else f"K({c.hex()})" for i, c in enumerate(program.constants)]


def _function(program: Program, index: int, order: dict[str, int], pieces: Stages, units: int, literals: Sequence[str]) -> str:
    """C text of one Program without its callees: a function for each stage, and one that runs each stage over all frames of a
    tile, then the call that follows it.

    Stage j of Program i belongs to unit (i + j) mod units, the function that runs the stages to unit 0.
    """
    text, body = [], []
    for j, stage in enumerate(pieces.stages):
        lines = stage_lines(program, stage, literals)
        if lines:
            given = "const V *restrict in, V *restrict out, V *restrict w, const double *restrict c"
            signature = f"STAGE void p{index}_{j}({given})"
            text += [f"{signature};", *of_unit((index + j) % units, f"{signature} {{", *lines, "}")]
            body.append(f"  for (int64_t i = 0; i < n; i += FRAME) p{index}_{j}(in + i, out + i, w + i, c);")
        if stage.call:
            assert stage.called
            body.append(_call(order, program.callees[stage.call.callee], stage.call, stage.called.times, pieces.slots))
    signature = f"static void p{index}(const V *in, V *out, V *w, const double *c, int64_t n) {{"
    return "\n".join([*text, *of_unit(0, signature, *body, "}"), ""])


def _call(order: dict[str, int], callee: Program, call: Call, times: int, slots: int) -> str:
    """C text of a call over all frames of a tile. A repeated call goes frame by frame, on its own results until they stop
    changing; one that is GUARDED passes over frames in which its first argument is zero."""
    name, x, y, w = f"p{order[callee.digest()]}", f"w + {call.inputs}", f"w + {call.outputs}", f"w + {slots}"
    if times == 1:
        return f"  {name}({x}, {y}, {w}, c, n);"
    if times == GUARDED:
        needed = f"ANY(NE({x.replace('w +', 'w[i +')}], K(0.0)))"
        return f"  for (int64_t i = 0; i < n; i += FRAME) if ({needed}) {name}({x} + i, {y} + i, {w} + i, c, FRAME);"
    rest, size = callee.n_out, callee.n_in
    return (
        f"  for (int64_t i = 0; i < n; i += FRAME) {{\n"
        f"    V *x = {x} + i, *y = {y} + i;\n"
        f"    for (int k = 1;; k++) {{\n"
        f"      {name}(x, y, {w} + i, c, FRAME);\n"
        f"      if (k == {times} || pf_same(x, y, {rest})) break;\n"
        f"      if (k == 1) pf_copy(y + {rest}, x + {rest}, {size - rest});\n"
        f"      V *z = x; x = y; y = z;\n"
        f"    }}\n"
        f"    if (y != {y} + i) pf_copy({y} + i, y, {rest});\n"
        f"  }}"
    )


class _LaneWriter:
    """Writes operations as C statements on lanes. A condition is stored both as a number and as a mask, so that a later
    selection need not compare the number again."""

    def __init__(self) -> None:
        self.masks: set[str] = set()

    def __call__(self, op: str, v: int, args: Sequence[str]) -> str:
        if OPS[op].results > 1:
            return f"  V v{v}, v{v + 1}; pf_{op}({args[0]}, &v{v}, &v{v + 1});"
        text = OPS[op].c.format(*args)
        for a in self.masks.intersection(args):
            text = text.replace(f"NE({a}, K(0.0))", f"m{a}").replace(f"EQ({a}, K(0.0))", f"~m{a}")
        if not text.startswith("TRUTH("):
            return f"  const V v{v} = {text};"
        self.masks.add(f"v{v}")
        return f"  const I mv{v} = {text[6:-1]}; const V v{v} = TRUTH(mv{v});"


def stage_lines(
    program: Program,
    stage: ProgramStage,
    literals: Sequence[str],
    V: str = "V",
    statement: Callable[[str, int, Sequence[str]], str] | None = None,
    in_place: bool = False,
) -> list[str]:
    """C statements of one stage, with values of type V. A value is stored as soon as it is known.

    literals: C text of each constant.   statement: writes one operation; None: as lanes.   in_place: whether to read inputs
    and slots where they are used instead of loading all of them first. This is safe: no stage writes to a place that it reads.
    """
    names = _ValueNames(enumerate(literals, program.n_in))
    stored = [(v, f"w[{slot}]") for v, slot in stage.stores] + [(v, f"out[{k}]") for v, k in stage.outs]
    places: dict[int, list[str]] = {}
    for v, place in stored:
        places.setdefault(v, []).append(place)
    read = {a for step in stage.steps for a in step.args} | {v for v, _ in stored}
    sources = [(v, f"in[{v}]") for v in sorted(read) if v < program.n_in]
    sources += [(v, f"w[{slot}]") for v, slot in stage.loads]
    lines = [f"  {place} = {names[v]};" for v, place in stored if v in names]
    for v, source in sources:
        if in_place:
            names[v] = source
        else:
            lines.append(f"  const {V} v{v} = {source};")
        lines += [f"  {place} = {names[v]};" for place in places.get(v, ())]
    write = statement or _LaneWriter()
    for op, args, v, *_ in stage.steps:
        lines.append(write(op, v, [names[a] for a in args]))
        for r in (v,) if op in SINGLE else range(v, v + OPS[op].results):
            if r in places:
                lines += [f"  {place} = v{r};" for place in places[r]]
    return lines


class _ValueNames(dict[int, str]):
    """The C text of values: that of constants and of places in memory, else the name v and the value's number."""

    def __missing__(self, v: int) -> str:
        text = self[v] = f"v{v}"
        return text
