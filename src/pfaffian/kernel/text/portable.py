"""Programs -> C99 for one run: portable to any compiler, without a library, in memory that the caller provides.

The text has the same operations as that of a kernel, so in double precision it gives the interpreter's bits wherever the
compiler respects IEEE 754. In single precision, sums and products are computed in floats, and elementary functions in double,
then rounded; these are the bits of the interpreter on floats.

Values that are needed beyond one short C function are stored in a work array of the caller, so that a law of any length takes
little stack, whatever the compiler does.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from string import Template
from typing import Any, NamedTuple

import numpy as np

from pfaffian.kernel.functions import elementary
from pfaffian.kernel.program.interpret import constant
from pfaffian.kernel.program.ops import OPS
from pfaffian.kernel.program.program import GUARDED, Program, callees_first
from pfaffian.kernel.program.stages import Stages, cut
from pfaffian.kernel.text.source import file_text, reduction_text, stage_lines


class Precision(NamedTuple):
    """A floating-point type.   real: its name in C.   kind: its type in NumPy.   suffix: suffix of names of C operations.
    words: values for the template portable.h."""

    real: str
    kind: Any
    suffix: str
    words: dict[str, str]


PRECISIONS = {
    "double": Precision("double", np.float64, "", {
        "word": "uint64_t", "signed": "int64_t", "literal": "(c)", "width": "64", "fraction": "52", "exponents": "2047",
        "bias": "1023", "whole": "0x1p52", "scale": "0x1p52", "armbit": "8", "armreg": "w", "aarch64": "fsqrt %d0, %d1",
        "arm": "vsqrt.f64 %P0, %P1", "sse": "_mm_cvtsd_f64(_mm_sqrt_sd(_mm_set_sd(a), _mm_set_sd(a)))",
    }),
    "single": Precision("float", np.float32, "_f", {
        "word": "uint32_t", "signed": "int32_t", "literal": "((float)(c))", "width": "32", "fraction": "23", "exponents": "255",
        "bias": "127", "whole": "0x1p23", "scale": "0x1p23", "armbit": "4", "armreg": "t", "aarch64": "fsqrt %s0, %s1",
        "arm": "vsqrt.f32 %0, %1", "sse": "_mm_cvtss_f32(_mm_sqrt_ss(_mm_set_ss(a)))",
    }),
}  # fmt: skip

GUARD = """\
#include <float.h>
#include <stdint.h>
#if defined(__SSE2__) && !defined(PLAIN_SQRT)
#include <emmintrin.h>
#endif
/* 16 and 32 widen types below _Float16 and _Float32, which leaves float and double as they are: ISO/IEC TS 18661-3. */
#if defined(__FAST_MATH__) || !defined(FLT_EVAL_METHOD) \\
    || (FLT_EVAL_METHOD != 0 && FLT_EVAL_METHOD != 16 && FLT_EVAL_METHOD != 32)
#error "this needs IEEE arithmetic in the type that is written: no -ffast-math, no x87"
#endif
#if defined(__GNUC__) /* what a processor with an instruction for roots may leave aside */
#define SPARE __attribute__((unused))
#else
#define SPARE
#endif
#if defined(__clang__) || !defined(__GNUC__)
#pragma STDC FP_CONTRACT OFF
#elif defined(__OPTIMIZE__)
#pragma GCC optimize("Og", "fp-contract=off") /* long lists of sums and products: more passes cost time and gain none */
#else
#pragma GCC optimize("fp-contract=off")
#endif
"""
PART_SIZE = 200
"""Largest number of operations of a C function, and so of values on the stack at once."""
FRAME = 128
"""Stack of a call [bytes] besides its values: return address, saved registers, frame of an operation that is a function."""

_OPERATION = re.compile(r"\b(K|LT|LE|EQ|NE|SEL|TRUTH|SQRT|FABS|FLOOR|CEIL|FMOD|COPYSIGN)\(")
_WORD = re.compile(r"\w+")
_DEFINED = re.compile(r"^(?:#define |typedef \w+ |(?:SPARE )?static (?:inline )?\w+ )(\w+)", re.M)


@dataclass(frozen=True)
class Portable:
    """C99 of Programs.

    text: functions `static void p{i}(const V *in, V *out, V *w)`.   names: names of the functions of the requested Programs.
    work: length of w that each of them needs.   stack: bound on the stack of a call of each [bytes], even without
    optimisation.
    """

    text: str
    names: tuple[str, ...]
    work: tuple[int, ...]
    stack: tuple[int, ...]


def portable_source(programs: Sequence[Program], precision: str, part_size: int = PART_SIZE) -> Portable:
    """C99 of the Programs, in "double" or "single" precision.   part_size: largest number of operations of a C function."""
    of = PRECISIONS[precision]
    order = callees_first(programs)
    index = {program.digest(): i for i, program in enumerate(order)}
    used = sorted({op for program in order for op in program.operations} - {"call"})
    functions = [_elementary(name) for name in used if name in elementary.FUNCTIONS]
    repeats = any(s.times > 1 for program in order if program.callees for s in program.steps)
    deepest = max((8 * text.count("\n") for text in functions), default=0) + FRAME
    bodies: list[str] = []
    work: list[int] = []
    stack: list[int] = []
    for i, program in enumerate(order):
        pieces, called = cut(program, part_size), [index[c.digest()] for c in program.callees]
        text, frame = _function(program, i, index, of, pieces)
        bodies.append(text)
        work.append(pieces.slots + max([0, *[work[c] for c in called]]))
        stack.append(FRAME + max([frame + deepest, *[stack[c] for c in called]]))
    reduction = [reduction_text()] if any("reduce_huge" in f for f in functions) else []
    huge = ["static void reduce_huge(V x, V limit, V *n, V *high, V *low) { (void)limit; reduce_one(x, n, high, low); }"]
    parts = [*reduction, *(huge if reduction else []), "", *functions]
    at = [index[program.digest()] for program in programs]
    words = [f"V{of.suffix} K{of.suffix}", *[f"MOVED{of.suffix}"] * repeats, *[_pattern(op, of.suffix) for op in used]]
    whole = "\n".join([GUARD, _prelude(*words, *parts), *parts, *bodies])
    return Portable(whole, tuple(f"p{i}" for i in at), tuple(work[i] for i in at), tuple(stack[i] for i in at))


def literal(of: Precision, c: float) -> str:
    """C text of a number, rounded to the precision."""
    return f"K{of.suffix}({float(constant(c, of.kind)).hex()})"


@cache
def _elementary(name: str) -> str:
    """C text of an elementary function, without the attribute NOINLINE of kernels."""
    return elementary.c_text(name, False).replace("static NOINLINE ", "static ", 1)


def _prelude(*texts: str) -> str:
    """C definitions of all operations that the texts use, directly or through other operations."""
    template = file_text("portable.h")
    pieces = []
    for of in PRECISIONS.values():
        whole = Template(template).substitute(of.words, s=of.suffix, real=of.real)
        pieces += [piece.strip("\n") for piece in whole.split("\n\n")]
    used, definitions = {word for text in texts for word in _WORD.findall(text)}, list[str]()
    for piece in reversed(pieces):
        if used & set(_DEFINED.findall(piece)):
            used |= set(_WORD.findall(piece))
            definitions.append(piece)
    return "\n".join(definitions[::-1]) + "\n"


def _function(program: Program, index: int, order: dict[str, int], of: Precision, pieces: Stages) -> tuple[str, int]:
    """C text of one Program without its callees, and the stack [bytes] of its largest stage."""
    V, text, body, most, size = f"V{of.suffix}", [], [], 0, np.dtype(of.kind).itemsize
    literals = [literal(of, c) for c in program.constants]
    patterns = {op: _pattern(op, of.suffix).format for op in program.operations if op != "call"}

    def statement(op: str, v: int, args: Sequence[str]) -> str:
        return patterns[op](v, *args, next=v + 1)

    for j, stage in enumerate(pieces.stages):
        lines = stage_lines(program, stage, literals, V, statement, in_place=True)
        if lines:
            words = "\n".join(["", *lines])
            most = max(most, size * words.count(f"\n  const {V} ") + (size + 16) * words.count("\n  V d"))
            lines = [f"  (void){name};" for name in ("in", "out", "w") if f"{name}[" not in words] + lines
            text += [f"static void p{index}_{j}(const {V} *in, {V} *out, {V} *w) {{", *lines, "}"]
            body.append(f"  p{index}_{j}(in, out, w);")
        if stage.call:
            assert stage.called
            callee, times = program.callees[stage.call.callee], stage.called.times
            x, y = f"w + {stage.call.inputs}", f"w + {stage.call.outputs}"
            call = f"p{order[callee.digest()]}({x}, {y}, w + {pieces.slots});"
            turns = [f"  for (int k = 0; k < {times}; k++) {{", f"    {call}",
                     f"    if (!MOVED{of.suffix}({x}, {y}, {callee.n_out})) break;", "  }"]  # fmt: skip
            needed = f"if ({x.replace('w + ', 'w[')}] != 0) " if times == GUARDED else ""
            body += [f"  {needed}{call}"] if times <= 1 else turns
    unused = [] if any("(in," in line for line in body) else ["  (void)in;", "  (void)out;", "  (void)w;"]
    head = f"static void p{index}(const {V} *in, {V} *out, {V} *w) {{"
    return "\n".join([*text, head, *unused, *body, "}", ""]), most + FRAME


@cache
def _pattern(op: str, suffix: str) -> str:
    """C statement of an operation, with {0} for the number of its result, {next} for that of a second result, and {1}, {2}, ...
    for its arguments; in single precision, an elementary function is computed in double, then rounded."""
    V, double = f"V{suffix}", op in elementary.FUNCTIONS and suffix != ""
    given = [f"(V){{{i}}}" if double else f"{{{i}}}" for i in range(1, 1 + OPS[op].arity)]
    text = OPS[op].c.format(*given)
    if OPS[op].results == 2:
        pair = f"  V d{{0}}, d{{next}}; pf_{op}({given[0]}, &d{{0}}, &d{{next}});"
        return f"{pair} const {V} v{{0}} = ({V})d{{0}}, v{{next}} = ({V})d{{next}};"
    if double:
        return f"  const {V} v{{0}} = ({V}){text};"
    return f"  const {V} v{{0}} = " + _OPERATION.sub(rf"\g<1>{suffix}(", text) + ";"
