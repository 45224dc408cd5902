"""Programs -> C of a library that `casadi.external` loads: functions, with names and sparsity patterns of their ports."""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import isnan

import casadi as ca

from pfaffian.errors import BuildError
from pfaffian.kernel.program.program import Program
from pfaffian.kernel.text.source import PART_SIZE, Source, file_text, source_of

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*", re.ASCII)


def external_text(functions: Sequence[ca.Function], programs: Sequence[Program]) -> Source:
    """C text of a library of Functions.   programs: the Program of each, from nonzero inputs to nonzero outputs."""
    names = [f"F{i}" for i in range(len(programs))]
    tables = [_tables(name, f) for name, f in zip(names, functions, strict=True)]
    entries = [f"EXTERNAL({_checked(f.name())}, {name})" for name, f in zip(names, functions, strict=True)]
    trial = ["void pfaffian_trial(const double *c, double *in, double *out, V *w) {", "  FP_ENTER;"]
    trial += [*[f"  TRY({name}, c, &in, &out, w);" for name in names], "  FP_LEAVE;", "}", ""]
    loops = "\n".join(["#include <stddef.h>", file_text("external.h"), *tables, *entries, *trial])
    return source_of(programs, names, loops, 1, PART_SIZE, most=1, table=False)


def _tables(name: str, f: ca.Function) -> str:
    """C tables of the sparsity patterns, names and default values of a Function's ports."""
    lines = []
    ports = {
        "IN": [(f.name_in(i), f.sparsity_in(i)) for i in range(f.n_in())],
        "OUT": [(f.name_out(i), f.sparsity_out(i)) for i in range(f.n_out())],
    }
    for side, each in ports.items():
        for i, (_, pattern) in enumerate(each):
            numbers = ", ".join(map(str, pattern.compress()))
            lines.append(f"static const long long {name}_{side}_{i}[] = {{{numbers}}};")
        words = ", ".join(f'"{_checked(port)}"' for port, _ in each) or "0"
        patterns = ", ".join(f"{name}_{side}_{i}" for i in range(len(each))) or "0"
        lines.append(f"static const char *const {name}_NAMES_{side}[] = {{{words}}};")
        lines.append(f"static const long long *const {name}_PATTERNS_{side}[] = {{{patterns}}};")
    defaults = ", ".join(_number(f.default_in(i)) for i in range(f.n_in())) or "0"
    lines.append(f"static const double {name}_DEFAULTS[] = {{{defaults}}};")
    return "\n".join(lines)


def _number(x: float) -> str:
    """C text of a number, which may be nan."""
    return '__builtin_nan("")' if isnan(x) else repr(x)


def _checked(name: str) -> str:
    """The name. Raises BuildError: it is not an identifier of C."""
    if not _NAME.fullmatch(name):
        raise BuildError(f"{name!r} is not an identifier of C: use letters, digits and _")
    return name
