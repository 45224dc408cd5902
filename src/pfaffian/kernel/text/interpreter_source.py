"""The C text of the interpreter: loops over registers for each operation of a Program, and the loops of compiled kernels."""

from __future__ import annotations

from collections.abc import Iterable

from pfaffian.kernel.functions import elementary
from pfaffian.kernel.program.encode import END, TURNS, encode
from pfaffian.kernel.program.ops import CALL, OPS
from pfaffian.kernel.program.trial_programs import tried
from pfaffian.kernel.text.source import file_text, reduction_text

DECIDING = {"lt": "LT({0}, {1})", "le": "LE({0}, {1})", "fmin": "LT({0}, {1})", "fmax": "LT({1}, {0})"}
"""{operation: C text of its decision}, with {0}, {1} for its operands. All other selections use the results of these."""


def interpreter_text(lanes: int) -> str:
    """C text of the interpreter with this number of lanes. Its trial runs the encoded Programs of `tried`."""
    functions = [elementary.c_text(name, inline=False) for name in elementary.FUNCTIONS]
    parts = [f"#define W {lanes}\nenum {{ TURNS = {TURNS} }};", file_text("prelude.h"), reduction_text(), file_text("huge.h")]
    parts += functions
    parts += [file_text(name) for name in ("interpreter.h", "transpose.h", "ports.h", "rollout.h")]
    return "\n".join([*parts, _run_words(), _tried(), file_text("interpreted.h")])


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


def _tried() -> str:
    """C text of the struct Code of the Programs of `tried`, which the trial runs."""
    c = encode(*tried())
    of_each = [*(f"INPUTS{i}" for i in range(2)), *(f"OUTPUTS{i}" for i in range(2))]
    arrays: dict[str, Iterable[int]] = dict(zip(of_each, (*c.inputs[:2], *c.outputs[:2]), strict=True))
    arrays |= {"WORDS": c.words, "TABLE": c.table.ravel(), "TOPS": c.tops, "FAULTS": [sizes[1] for sizes in c.outputs[2:]]}
    lines = [f"static const int32_t TRIED_{name}[] = {{{', '.join(map(str, values))}}};" for name, values in arrays.items()]
    lines.append(f"static const double TRIED_CONSTANTS[] = {{{', '.join(float(x).hex() for x in c.constants)}}};")
    fields = {name.lower(): f"TRIED_{name}" for name in ("WORDS", "TABLE", "CONSTANTS", "TOPS", "FAULTS")}
    fields |= {side.lower(): f"{{TRIED_{side}0, TRIED_{side}1}}" for side in ("INPUTS", "OUTPUTS")}
    fields |= {name: str(value) for name, value in c.counts.items()}
    return "\n".join([*lines, f"static const Code TRIED = {{{', '.join(f'.{k} = {v}' for k, v in fields.items())}}};", ""])
