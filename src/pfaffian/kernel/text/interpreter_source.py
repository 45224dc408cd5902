"""The C text of the interpreter: loops over registers for each operation of a Program, and the loops of compiled kernels.

The first use of a machine waits for it to be compiled. Most Programs have no elementary functions but those of angles, and the
others are more than half of the text. So these are a text of their own, which is compiled when a Program has one of them; the
interpreter calls them through pointers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from pfaffian.kernel.functions import elementary
from pfaffian.kernel.program.encode import END, TURNS, encode
from pfaffian.kernel.program.ops import CALL, OPS
from pfaffian.kernel.program.program import Program
from pfaffian.kernel.program.trial_programs import tried, with_each
from pfaffian.kernel.text.source import Source, file_text, kernel_source, reduction_text

DECIDING = {"lt": "LT({0}, {1})", "le": "LE({0}, {1})", "fmin": "LT({0}, {1})", "fmax": "LT({1}, {0})"}
"""{operation: C text of its decision}, with {0}, {1} for its operands. All other selections use the results of these."""


OF_ANGLES = "sin", "cos", "sincos", "asin", "acos", "atan2"

APART = tuple(name for name in elementary.FUNCTIONS if name not in OF_ANGLES)
"""The elementary functions that the text of the interpreter does not contain."""


def interpreter_tried() -> tuple[Program, Program, Program]:
    """The Programs of the interpreter's trial, with all operations that its text contains."""
    return tried([name for name in OPS if name not in APART])


def interpreter_text(lanes: int) -> str:
    """C text of the interpreter with this number of lanes. Its trial runs the encoded Programs of `interpreter_tried`."""
    functions = [elementary.c_text(name, inline=False) for name in OF_ANGLES]
    parts = [f"#define W {lanes}\nenum {{ TURNS = {TURNS} }};", file_text("prelude.h"), reduction_text(), file_text("huge.h")]
    parts += [*functions, _pointers()]
    parts += [file_text(name) for name in ("interpreter.h", "transpose.h", "ports.h", "rollout.h")]
    return "\n".join([*parts, _run_words(), _tried(interpreter_tried()), file_text("interpreted.h")])


def functions_tried() -> Program:
    """The Program of the trial of the functions APART."""
    return with_each(APART, (3,))


def functions_source(lanes: int) -> Source:
    """C text of the functions APART with this number of lanes, of a table of them, and of a Program for their trial."""
    source, table = kernel_source(functions_tried(), lanes), ", ".join(f"pf_{name}" for name in APART)
    return replace(source, text=f"{source.text}\nvoid *const pfaffian_functions[] = {{{table}}};\n")


def _pointers() -> str:
    """C text of pointers to the functions APART, and of the function that sets them."""
    lines = [f"static V (*pf_{name})({', '.join(['V'] * OPS[name].arity)});" for name in APART]
    set_all = " ".join(f"pf_{name} = functions[{i}];" for i, name in enumerate(APART))
    return "\n".join([*lines, f"void pfaffian_interpret_with(void *const *functions) {{ {set_all} }}", ""])


def _run_words() -> str:
    """C text of the function that executes groups of steps until the end of a Program."""
    cases = [f"    case {i}: {_case(name)}" for i, name in enumerate(OPS)]
    cases.append(f"    case {CALL}: at = run_call(at, r); break;")
    cases.append(f"    case {END}: return;")
    lines = ["static void run_words(const int32_t *restrict at, V *restrict r) {", "  for (;;) switch (*at++) {"]
    return "\n".join([*lines, *cases, "    default: __builtin_trap();", "  }", "}", ""])


def _case(name: str) -> str:
    """C text that executes a group of steps of one operation."""
    op = OPS[name]
    size = op.arity + op.results
    args = [f"r[at[{op.results + i}]]" for i in range(op.arity)]
    if op.results == 1:
        body = f"r[at[0]] = {op.c.format(*args)}"
    else:
        body = f"pf_{name}({args[0]}, {', '.join(f'&r[at[{i}]]' for i in range(op.results))})"
    if name in DECIDING:
        a, b = args
        noted = f"for (int32_t n = at[0], i = 0; i < n; i++) {{ const int32_t *const at = from + {size} * i;"
        text = f"if (book) {{ const int32_t *const from = at + 1; {noted} note({DECIDING[name].format(a, b)}, {a}, {b}); }} }} "
    else:
        text = ""
    return f"{text}for (int32_t n = *at++; n; n--, at += {size}) {body}; break;"


def _tried(programs: Sequence[Program]) -> str:
    """C text of the struct Code of the Programs of the trial."""
    c = encode(*programs)
    of_each = [*(f"INPUTS{i}" for i in range(2)), *(f"OUTPUTS{i}" for i in range(2))]
    arrays: dict[str, Iterable[int]] = dict(zip(of_each, (*c.inputs[:2], *c.outputs[:2]), strict=True))
    arrays |= {"WORDS": c.words, "TABLE": c.table.ravel(), "TOPS": c.tops, "FAULTS": [sizes[1] for sizes in c.outputs[2:]]}
    lines = [f"static const int32_t TRIED_{name}[] = {{{', '.join(map(str, values))}}};" for name, values in arrays.items()]
    lines.append(f"static const double TRIED_CONSTANTS[] = {{{', '.join(float(x).hex() for x in c.constants)}}};")
    fields = {name.lower(): f"TRIED_{name}" for name in ("WORDS", "TABLE", "CONSTANTS", "TOPS", "FAULTS")}
    fields |= {side.lower(): f"{{TRIED_{side}0, TRIED_{side}1}}" for side in ("INPUTS", "OUTPUTS")}
    fields |= {name: str(value) for name, value in c.counts.items()}
    return "\n".join([*lines, f"static const Code TRIED = {{{', '.join(f'.{k} = {v}' for k, v in fields.items())}}};", ""])
