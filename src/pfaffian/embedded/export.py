"""pfaffian export: a law as files of C99, with what they cost."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from pfaffian.control.law import Control
from pfaffian.embedded import text as c99
from pfaffian.embedded.controller import Calls, Controller, as_inputs, call, controller, random_inputs
from pfaffian.embedded.stack import measured_stack
from pfaffian.errors import ModelError, brief
from pfaffian.formats.file import as_path
from pfaffian.kernel.text.portable import PRECISIONS, portable_source
from pfaffian.model.mechanism import Mechanism
from pfaffian.output.folder import place, prepare
from pfaffian.output.plain import text
from pfaffian.simulate.provenance import machine

CALLS = 32
"""Recorded for the test."""
MARK = "Written by pfaffian export; sha256 of what follows this line: "
FLAGS = "-std=c99 -pedantic -Wall -Wextra -Wconversion"

_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")
_TAKEN = {
    "assert", "complex", "ctype", "emmintrin", "errno", "fenv", "float", "inttypes", "iso646", "limits", "locale",
    "math", "setjmp", "signal", "stdarg", "stdbool", "stddef", "stdint", "stdio", "stdlib", "string", "tgmath",
    "time", "wchar", "wctype", "aux", "con", "nul", "prn",
}  # fmt: skip
"""Names of headers that the compiler brings, and of no files."""


class Exported(NamedTuple):
    """What was written, and what it costs.

    files: header, source, test.   operations: of a call in which every part is asked, at most.   stack: bytes that a call takes
    at most where each value has a place of its own, as without optimisation.   measured_stack: as gcc or clang says with -O2,
    None without either.   state: bytes that the caller keeps.   error: of single beside double over the recorded calls,
    relative to the largest number of each kind that comes out; 0 of double.
    """

    files: tuple[Path, ...]
    operations: int
    stack: int
    measured_stack: int | None
    state: int
    error: float


def export(
    law: Control,
    mechanism: Mechanism,
    out: Any,
    *,
    name: str = "law",
    precision: Literal["double", "single"] = "double",
    period: float | None = None,
    tick: float | None = None,
    parameters: Any = None,
    tunable: Sequence[str] = (),
    saturate: bool = False,
    vectors: Mapping[str, Any] | None = None,
) -> Exported:
    """Write a law or an estimator as C99 that depends on nothing: NAME.h, NAME.c and NAME_test.c, which recorded calls check.

    The caller owns the state: `NAME_init(&state)`, then `NAME_step(&in, &state, &out)` once a tick. There is no heap, no global
    variable and no library; elementary functions are carried along. In double the bits are those of a run here. In single, sums
    and products are of floats and elementary functions are the double's, rounded. What sensors measure is an input, their noise
    is left out; reactions that a law measures are an input as well.

    Args:
        law: in discrete time; one in continuous time is called every `period`, see `discrete`. An estimator is a law of your
        own that gives signals alone, `discrete(step, 0.005, state={...}, inputs=[...])`.   mechanism: that it drives.
        out: folder, made if it is not there.   name: of the files and before all names in C; small letters, digits and _.
        precision: "double", or "single" for processors that have floats alone.   period: [s], of a law in continuous time; it
        may be left out where the law integrates nothing.   tick: [s] between two calls, of which every period and phase is a
        multiple; the longest there is if None. A shorter one lets inputs of hold="first" go on in between.
        parameters: (np,) or by name, instead of the defaults; they become constants.   tunable: names of those that become
        inputs instead.   saturate: cut inputs at the mechanism's limits, as Scheme(saturate=True) does.
        vectors: {field: (calls, n)} that the test gives, {"q": ..., "w": ...}; random if None.
    Raises ModelError: a law in Python; one that is partly in continuous time; a name that is none; a folder that cannot be
    written to, or files in it that were not written by this function or were changed since; a law that fails in floats.
    """
    if not isinstance(name, str) or not _NAME.fullmatch(name) or name in _TAKEN:
        way = "a small letter, then small letters, digits and _, 40 at most, and no header of C"
        raise ModelError(f"export: name {brief(name)} cannot begin names in C: {way}")
    if precision not in PRECISIONS:
        raise ModelError(f"export: precision {brief(precision)} is unknown; one of {', '.join(PRECISIONS)}")
    c = controller(law, mechanism, period=period, tick=tick, parameters=parameters, tunable=tunable, saturate=saturate)
    of, programs = PRECISIONS[precision], portable_source(c.programs, precision)
    inputs = random_inputs(c, mechanism, CALLS, np.random.default_rng(1)) if vectors is None else as_inputs(c, vectors)
    exact = call(c, inputs)
    calls, error = exact, 0.0
    if precision == "single":
        calls = call(c, inputs, np.float32)
        error = _error(calls, exact)
        _check_single(c, calls, exact)
    size = np.dtype(of.kind).itemsize
    stack = size * (c.size + max(p.n_out for p in c.programs)) + 128 + max(programs.stack)
    state = size * len(c.state) + 4 * len(c.rates) * c.counts
    about = _about(c, mechanism, precision, stack, state, error)
    texts = {f"{name}.h": c99.header(c, name, of, about), f"{name}.c": c99.source(c, name, of, programs, about[:1]),
             f"{name}_test.c": c99.test(c, name, of, calls, about[:1])}  # fmt: skip
    folder = prepare(as_path(out, "the folder to export to"))
    for file in texts:
        _check_own(folder / file)
    files = tuple(place(folder / file, _marked(words)) for file, words in texts.items())
    return Exported(files, c.operations, stack, measured_stack(texts, name), state, error)


def _error(calls: Calls, exact: Calls) -> float:
    worst = 0.0
    for name, x in exact.outputs.items():
        good = np.isfinite(x) & np.isfinite(calls.outputs[name])
        size = np.abs(x[good]).max(initial=0.0)
        worst = max(worst, np.abs(calls.outputs[name][good] - x[good]).max(initial=0.0) / size if size else 0.0)
    return float(worst)


def _check_single(c: Controller, calls: Calls, exact: Calls) -> None:
    """Raise ModelError: the law fails in floats where it does not in doubles."""
    failing = (calls.faults != 0) & (exact.faults == 0)
    lost = any((np.isfinite(x) & ~np.isfinite(calls.outputs[name])).any() for name, x in exact.outputs.items())
    if failing.any() or lost:
        said = [e.name for e, column in zip(c.faults.entries, failing.T, strict=True) if column.any()] or [
            "no number comes out"
        ]
        raise ModelError(f"export: in floats the law fails where in doubles it does not ({said[0]}); export it in double")


def _about(c: Controller, m: Mechanism, precision: str, stack: int, state: int, error: float) -> list[str]:
    often = f"Call it every {c.tick!r} s." if c.tick else "It remembers nothing: call it whenever you like."
    lines = [f"A control law of {c99.comment(m.name)}, by pfaffian {machine()['pfaffian']}. {often}", ""]
    lines += [
        f"{c.operations} operations a call at most; {state} bytes of state; {stack} bytes of stack at most where each value",
        "has a place of its own (-O0), less with optimisation. No heap, no global variable, no library; loops have a bound.",
        "",
        f"Compile with {FLAGS}; NAME_test.c is a test with it. Products and sums must stay",
        "apart, which the source asks for (-ffp-contract=off says the same; -ffp-contract=fast of clang overrules it);",
        "-ffast-math and an x87 it refuses. PLAIN_SQRT defined leaves the machine's own instruction for roots aside.",
    ]
    if precision == "single":
        lines += [
            "",
            f"In float: beside the law in double the recorded calls differ by {error:.1e} of the largest number at most.",
        ]
    return lines


def _marked(words: str) -> bytes:
    body = words.encode("ascii")
    return f"/* {MARK}{sha256(body).hexdigest()} */\n".encode("ascii") + body


def _check_own(path: Path) -> None:
    """Raise ModelError: there is a file that `export` did not write, or that somebody changed."""
    if not path.exists() and not path.is_symlink():
        return
    way = "move it away, or choose another folder or name"
    try:
        head, _, body = path.read_bytes().partition(b"\n")
    except OSError as error:
        raise ModelError(f"export: {text(path)!r} is there and cannot be read: {error.strerror}; {way}") from None
    if head != f"/* {MARK}{sha256(body).hexdigest()} */".encode("ascii"):
        own = head.startswith(f"/* {MARK}".encode("ascii"))
        said = "was changed since it was exported" if own else "was not written by pfaffian export"
        raise ModelError(f"export: {text(path)!r} {said}; {way}")
