"""The C text of the passes, of the translation of listings and of the encoding."""

from __future__ import annotations

from pfaffian.kernel.program.encode import DECIDING, END, TURNS
from pfaffian.kernel.program.ops import CALL, OPS
from pfaffian.kernel.program.passes import COMMUTE, FOLDED
from pfaffian.kernel.text.source import file_text

IN_C = "merge", "simplify", "share_reciprocals", "select", "prune", "pair", "roll"
"""Passes from words to words of a Program, in the order of their numbers in C."""

TASKS = {"TAIL": 100, "ENCODE": 101, "LIST": 102}
"""Numbers of the trial's other tasks, which are not such passes."""

TRIAL_ROOM = 512
"""Length of each array of the trial's answers."""

_C_NAMES = {"select": "select_one"}  # `select` is a function of the system


def passes_text() -> str:
    """C text of the passes, of the translation of listings and of the encoding, with their trial."""
    constants = (
        {name.upper(): i for i, name in enumerate(OPS)} | {"CALL": CALL, "END": END, "TURNS": TURNS, "ROOM": TRIAL_ROOM} | TASKS
    )
    names = ", ".join(f"{name} = {value}" for name, value in constants.items())
    tables = {
        "ARITY": [op.arity for op in OPS.values()],
        "RESULTS": [op.results for op in OPS.values()],
        "COMMUTES": [int(name in COMMUTE) for name in OPS],
        "FOLDS": [int(name in FOLDED) for name in OPS],
        "DECIDES": [int(name in DECIDING) for name in OPS],
    }
    lines = ["#include <stdint.h>", "#include <stdlib.h>", "#include <string.h>", f"enum {{ {names} }};"]
    lines += [f"static const int32_t {name}[] = {{{', '.join(map(str, row))}}};" for name, row in tables.items()]
    lines.append(f"#define PASS_LIST {', '.join(_C_NAMES.get(name, name) for name in IN_C)}")
    return "\n".join([*lines, *(file_text(name) for name in ("passes.h", "listing.h", "encode.h", "passes_trial.h"))])
