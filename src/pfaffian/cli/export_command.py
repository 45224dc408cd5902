"""`pfaffian export`: write a control law or an estimator as C99 and print its costs."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from pfaffian.cli.chosen_machine import count, time_above_zero, with_settings
from pfaffian.cli.terminal import DONE
from pfaffian.errors import ModelError
from pfaffian.output.plain import table, text


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `pfaffian export`."""
    add = parser.add_argument
    words = "a study that has a law, such as konz-quadcopter; or a Python file with functions mechanism() and law()"
    add("law", metavar="LAW", help=words)
    add("--out", type=Path, default=Path("out"), metavar="DIR", help="folder for NAME.h, NAME.c, NAME_test.c (default: out)")
    add("--name", help="name of the files and prefix of all names in C (default: that of the law)")
    add("--precision", choices=("double", "single"), default="double", help="single: compute in floats (default: double)")
    add("--period", metavar="S", help="time between two calls of a law in continuous time [s]")
    add("--tick", metavar="S", help="time between two calls [s] (default: the longest one that divides all periods)")
    add("--saturate", action="store_true", help="cut inputs at their limits")
    add("--stack", action="store_true", help="compile the source too, and print the stack that the compiler reports")
    words = "number of random calls over which floats are compared with doubles (default: those of NAME_test.c)"
    add("--draws", metavar="N", help=words)
    words = "a parameter's value, which becomes a constant (may be repeated)"
    add("--set", action="append", default=[], metavar="NAME=VALUE", dest="settings", help=words)
    add("--tunable", action="append", default=[], metavar="NAME", help="a parameter that stays an input (may be repeated)")


def command(chosen: argparse.Namespace) -> int:
    """The command `pfaffian export`: write a control law as C99 and print its costs."""
    import pfaffian as pf
    from pfaffian.formats.text.run_settings import RunSettings
    from pfaffian.viewer.laws import find

    named = find(chosen.law)
    settings = with_settings(named.mechanism, RunSettings(), chosen.settings)
    if settings != RunSettings(parameters=settings.parameters):
        raise ModelError("--set: export takes values of parameters alone; the state and inputs are arguments of each call")
    given = {k: getattr(chosen, k) for k in ("period", "tick") if getattr(chosen, k) is not None}
    times = {k: time_above_zero(word, f"--{k}", 0.0) for k, word in given.items()}
    options: dict[str, Any] = {"name": chosen.name or named.name, "precision": chosen.precision, "tunable": chosen.tunable}
    draws = None if chosen.draws is None else count(chosen.draws, "--draws")
    arguments = {"parameters": settings.parameters, "saturate": chosen.saturate, "draws": draws, **options, **times}
    exported = pf.export(named.law, named.mechanism, chosen.out, **arguments)
    print(table(_costs(exported, exported.measured_stack if chosen.stack else None)))
    for path in exported.files:
        print(f"wrote {text(path)}")
    return DONE


def _costs(exported: Any, measured_stack: int | None) -> list[tuple[str, str]]:
    """What a call of the exported code costs: operations, stack, state, work memory, error of floats."""
    stack = f"{exported.stack} bytes at most, if each value has a place of its own"
    rows = [("operations", f"{exported.operations} a call at most"), ("stack", stack), ("state", f"{exported.state} bytes")]
    rows.append(("work", f"{exported.work} bytes, which the caller provides for each call"))
    if measured_stack is not None:
        rows.insert(2, ("", f"{measured_stack} bytes along the deepest calls, as the compiler reports with -O2"))
    if exported.draws:
        words = f"differ from doubles by {exported.error:.1e} of the largest number, over {exported.draws} calls"
        rows.append(("in floats", f"{words}; {exported.failing:.1%} of these fail in floats alone"))
    return rows
