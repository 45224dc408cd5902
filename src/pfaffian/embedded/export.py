"""`export` writes a control law as files of C99 and reports their cost in operations and memory."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from pfaffian.control.law import Control
from pfaffian.embedded import text as c99
from pfaffian.embedded.controller import Calls, Controller, as_inputs, call, controller, random_inputs
from pfaffian.embedded.stack import measured_stack
from pfaffian.errors import ModelError, brief, is_one_of
from pfaffian.evaluate.single_values import as_whole
from pfaffian.formats.text.file import as_path
from pfaffian.kernel.call.obtain import uncollected
from pfaffian.kernel.text.portable import FRAME, PRECISIONS, portable_source
from pfaffian.model.mechanism import Mechanism
from pfaffian.model.number import named_float
from pfaffian.output.folder import prepare, write_file
from pfaffian.output.plain import text
from pfaffian.simulate.record.provenance import machine

CALLS = 32
"""Number of calls recorded for the exported test."""
LARGEST_ERROR = 1e-2
"""Largest error in floats with which a law is exported, unless a user states another."""
FAILING = 0.05
"""Largest share of draws that may fail in floats alone: NAME_step reports each such call, but a law must be able to go on."""
MARK = "Written by pfaffian export; sha256 of what follows this line: "
FLAGS = "-std=c99 -pedantic -Wall -Wextra -Wconversion"

_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")
_RESERVED = {
    "assert", "complex", "ctype", "emmintrin", "errno", "fenv", "float", "inttypes", "iso646", "limits", "locale",
    "math", "setjmp", "signal", "stdarg", "stdbool", "stddef", "stdint", "stdio", "stdlib", "string", "tgmath",
    "time", "wchar", "wctype", "aux", "con", "nul", "prn",
}  # fmt: skip
"""Names of standard headers and of devices of Windows, which cannot be names of files."""


@dataclass(frozen=True)
class Exported:
    """The files that `export` wrote, and their cost.

    files: paths of header, source and test.   operations: largest number of operations of a call.   stack: bound on the stack
    of a call [bytes], even without optimisation.   state: bytes that the caller stores between calls.
    work: bytes of scratch memory that the caller provides for each call.
    error: largest difference between single and double precision over the draws, relative to the largest number of each
    output port; 0 for double, nan if no draw succeeds.   failing: share of the draws that fail in floats alone.
    draws: number of draws; 0 for double.
    """

    files: tuple[Path, ...]
    operations: int
    stack: int
    state: int
    work: int
    error: float
    failing: float
    draws: int
    _texts: Mapping[str, str] = field(repr=False)

    @cached_property
    def measured_stack(self) -> int | None:
        """Stack of a call [bytes] that gcc or clang reports with -O2, which compiles the source once; None without either."""
        return measured_stack(self._texts, self.files[0].stem)


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
    draws: int | Mapping[str, Any] | None = None,
    largest_error: float = LARGEST_ERROR,
) -> Exported:
    """Write a control law or an estimator as C99 for an embedded processor: NAME.h, NAME.c and a test, NAME_test.c.

    The caller owns all memory and calls `NAME_init(&state)`, then `NAME_step(&in, &state, &work, &out)` once a tick. `work` is
    scratch memory of one call; laws that are called in turn may share it. The C code needs little stack, no heap, no global
    variable and no library; it contains its elementary functions. In double precision it gives the same bits as a run of this
    library. In single precision, sums and products are computed in floats, and elementary functions in double, then rounded;
    the law is compared with the one in double over `draws`, and each call checks whether its inputs meet their limits.
    Measurements of sensors are inputs, without noise, and so are the reactions that a law measures. The test repeats recorded
    calls and compares all bits.

    Args:
        law: a law in discrete time, or in continuous time and then evaluated every `period`, as by `discrete`. An estimator is
            a law of your own that has signals but no inputs, `discrete(step, 0.005, state={...}, inputs=[...])`.
        mechanism: the machine that the law drives.
        out: folder for the files, created if it does not exist.
        name: name of the files and prefix of all names in C: lower-case letters, digits and _; default "law".
        precision: "double", the default, or "single" for processors that have floats only.
        period: period [s] of a law in continuous time; may be left out where the law integrates nothing.
        tick: time between two calls [s], a divisor of every period and phase; None, the default: the longest such time. With a
            shorter tick, inputs of hold="first" are extrapolated in between.
        parameters: (np,) or {name: number} values instead of the defaults; they become constants in C.
        tunable: names of parameters that become inputs instead of constants.
        saturate: whether to cut inputs at the mechanism's limits, as Scheme(saturate=True) does; default False.
        vectors: {port: (calls, n)} inputs of the recorded calls, as {"q": ..., "w": ...}; None, the default: random inputs.
        draws: in single precision, the successive calls over which the law is compared with the one in double: {port:
            (calls, n)} inputs, or a number of random ones; None, the default: the recorded calls.
        largest_error: in single precision, largest error over the draws, relative to the largest number of each output port,
            above which the law is refused; default 0.01.
    Returns:
        Exported: files, paths of header, source and test; operations, the largest number in a call; stack, a bound on the
        stack of a call [bytes], even without optimisation; measured_stack [bytes], as gcc or clang reports it with -O2 (None
        without either; compiled when it is first read); state and work [bytes]; error, the largest difference between single
        and double precision over the draws, relative to the largest number of each output port (0 for double, nan if no draw
        succeeds); failing, the share of the draws that fail in floats alone; draws, their number (0 for double).
    Raises ModelError: a law in Python; a law that is partly in continuous time; an invalid name; a folder that cannot be
    written to, or files in it that were not written by this function or were changed since; a law in floats that differs by
    more than `largest_error`, or fails in more than one of twenty draws in which the law in double succeeds.

    Example:
        >>> import tempfile
        >>> import pfaffian as pf
        >>> from pfaffian import control
        >>> hinge = pf.joint("hinge", "revolute", "world", "rod", axis=(0, 1, 0))
        >>> m = pf.mechanism("arm", [pf.body("rod", 1.0)], [hinge], actuators=[pf.actuator("motor", "hinge")])
        >>> law = control.discrete(lambda s: control.Command(-20 * s.terms.q - 4 * s.terms.v), 0.01)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     made = pf.export(law, m, folder, name="hold")
        >>> [path.name for path in made.files], made.operations
        (['hold.h', 'hold.c', 'hold_test.c'], 3)
    """
    if not isinstance(name, str) or not _NAME.fullmatch(name) or name in _RESERVED:
        way = "a lower-case letter, then lower-case letters, digits and _, 40 at most, and not the name of a header of C"
        raise ModelError(f"export: name {brief(name)} cannot be a prefix of names in C: choose {way}")
    if not is_one_of(precision, PRECISIONS):
        raise ModelError(f"export: precision {brief(precision)} is unknown; one of {', '.join(PRECISIONS)}")
    of, beside = PRECISIONS[precision], _Beside(0.0, 0.0, 0)
    how: dict[str, Any] = {"period": period, "tick": tick, "parameters": parameters, "tunable": tunable, "saturate": saturate}
    with uncollected():
        c = controller(law, mechanism, precision=precision, **how)
        calls = call(c, _inputs(c, mechanism, CALLS if vectors is None else vectors, "vectors"), of.kind)
        if precision == "single":
            exact, drawn = controller(law, mechanism, **how), vectors if draws is None else draws
            inputs = _inputs(exact, mechanism, CALLS if drawn is None else drawn, "vectors" if draws is None else "draws")
            beside = _beside(call(c, inputs, np.float32), call(exact, inputs), c, named_float(largest_error, "largest_error"))
        programs = portable_source(c.programs, precision)
    size = np.dtype(of.kind).itemsize
    stack, work = FRAME + max(programs.stack), c99.work_size(c, programs)
    state = size * len(c.state) + 4 * len(c.rates) * c.counts
    about = _about(c, mechanism, (state, size * work, stack), beside)
    texts = {f"{name}.h": c99.header(c, name, of, work, about), f"{name}.c": c99.source(c, name, of, programs, about[:1]),
             f"{name}_test.c": c99.test(c, name, of, calls, about[:1])}  # fmt: skip
    folder = prepare(as_path(out, "the folder to export to"))
    for file in texts:
        _check_overwrites(folder / file)
    files = tuple(write_file(folder / file, _signed(words)) for file, words in texts.items())
    return Exported(files, c.operations, stack, state, size * work, *beside, texts)


class _Beside(NamedTuple):
    """A law in floats beside the one in doubles.   error, failing: as in Exported.   draws: number of calls compared."""

    error: float
    failing: float
    draws: int


def _inputs(c: Controller, m: Mechanism, given: int | Mapping[str, Any], what: str) -> dict[str, np.ndarray]:
    """The given inputs of each port, or so many random ones.   what: their name in messages."""
    if isinstance(given, Mapping):
        return as_inputs(c, given, what)
    return random_inputs(c, m, as_whole(given, f"export: {what}"), np.random.default_rng(1))


def _beside(calls: Calls, exact: Calls, c: Controller, largest_error: float) -> _Beside:
    """Compare calls in floats with those in doubles. Raises ModelError: they differ too much, or too many fail in floats."""
    good = ~(calls.failed | exact.failed)
    error = {name: _error(calls.outputs[name][good], x[good]) for name, x in exact.outputs.items()} if good.any() else {}
    worst = max(error, key=error.__getitem__, default="")
    failing = float((calls.failed & ~exact.failed).mean())
    way = "export it in double"
    if failing > FAILING:
        alone = (calls.faults != 0) & (exact.faults == 0)
        reasons = [e.name for e, column in zip(c.faults.entries, alone.T, strict=True) if column.any()]
        raise ModelError(
            f"export: the law fails in floats but not in doubles ({reasons[0] if reasons else 'an output is not finite'}) in "
            f"{failing:.0%} of {len(good)} draws; {way}"
        )
    if error and error[worst] > largest_error:
        raise ModelError(
            f"export: in floats, {worst} differs from doubles by {error[worst]:.1e} of its largest number over {len(good)} "
            f"draws; {way}, name `draws` that occur, or allow more by `largest_error`"
        )
    return _Beside(error[worst] if error else math.nan, failing, len(good))


def _error(found: np.ndarray, exact: np.ndarray) -> float:
    """Largest difference of two tables, relative to the largest exact number."""
    size = np.abs(exact).max(initial=0.0)
    return float(np.abs(found - exact).max(initial=0.0) / size) if size else 0.0


def _about(c: Controller, m: Mechanism, sizes: tuple[int, int, int], beside: _Beside) -> list[str]:
    """Lines of the comment that describes the law and its cost.   sizes: bytes of state, of work and of stack."""
    state, work, stack = sizes
    often = f"Call it every {c.tick!r} s." if c.tick else "It has no memory: call it at any time."
    lines = [f"A control law of {c99.comment(m.name)}, by pfaffian {machine()['pfaffian']}. {often}", ""]
    lines += [
        f"{c.operations} operations a call at most; {state} bytes of state; {stack} bytes of stack at most",
        f"even where each value has a place of its own (-O0); {work} bytes of work, which the caller provides for each call.",
        "No heap, no global variable, no library; loops have a bound.",
        "",
        f"Compile with {FLAGS}; NAME_test.c tests it. The compiler must not fuse",
        "products and sums: the source forbids it, as -ffp-contract=off does, but clang's -ffp-contract=fast overrules it.",
        "-ffast-math and x87 are refused. Define PLAIN_SQRT to do without the processor's square-root instruction.",
    ]
    if beside.draws:
        lines += [
            "",
            f"In float: {beside.draws} calls",
            f"differ from the law in double by at most {beside.error:.1e} of the largest number,",
            f"and {beside.failing:.1%} of them fail in float alone.",
        ]
    return lines


def _signed(words: str) -> bytes:
    """The text of a file after a first line with its sha256, by which a later export recognises an unchanged file."""
    body = words.encode("ascii")
    return f"/* {MARK}{sha256(body).hexdigest()} */\n".encode("ascii") + body


def _check_overwrites(path: Path) -> None:
    """Raise ModelError if the file exists and was not written by `export`, or was changed since."""
    if not path.exists() and not path.is_symlink():
        return
    way = "move it away, or choose another folder or name"
    try:
        head, _, body = path.read_bytes().partition(b"\n")
    except OSError as error:
        raise ModelError(f"export: {text(path)!r} exists but cannot be read: {error.strerror}; {way}") from None
    if head != f"/* {MARK}{sha256(body).hexdigest()} */".encode("ascii"):
        exported = head.startswith(f"/* {MARK}".encode("ascii"))
        reason = "was changed since it was exported" if exported else "was not written by pfaffian export"
        raise ModelError(f"export: {text(path)!r} {reason}; {way}")
