"""`export` writes a control law as files of C99 and reports their cost in operations and memory."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal

import numpy as np

from pfaffian.control.law import Control
from pfaffian.embedded import text as c99
from pfaffian.embedded.controller import Calls, Controller, as_inputs, call, controller, random_inputs
from pfaffian.embedded.stack import measured_stack
from pfaffian.errors import ModelError, brief, is_one_of
from pfaffian.formats.file import as_path
from pfaffian.kernel.text.portable import FRAME, PRECISIONS, portable_source
from pfaffian.model.mechanism import Mechanism
from pfaffian.output.folder import place, prepare
from pfaffian.output.plain import text
from pfaffian.simulate.provenance import machine

CALLS = 32
"""Number of calls recorded for the exported test."""
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
    error: largest difference between single and double precision over the recorded calls, relative to the largest number of
    each output port; 0 for double.
    """

    files: tuple[Path, ...]
    operations: int
    stack: int
    state: int
    work: int
    error: float
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
) -> Exported:
    """Write a control law or an estimator as C99 for an embedded processor: NAME.h, NAME.c and a test, NAME_test.c.

    The caller owns all memory and calls `NAME_init(&state)`, then `NAME_step(&in, &state, &work, &out)` once a tick. `work` is
    scratch memory of one call; laws that are called in turn may share it. The C code needs little stack, no heap, no global
    variable and no library; it contains its elementary functions. In double precision it gives the same bits as a run of this
    library. In single precision, sums and products are computed in floats, and elementary functions in double, then rounded.
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
    Returns:
        Exported: files, paths of header, source and test; operations, the largest number in a call; stack, a bound on the
        stack of a call [bytes], even without optimisation; measured_stack [bytes], as gcc or clang reports it with -O2 (None
        without either; compiled when it is first read); state and work [bytes]; error, the largest difference between single
        and double precision over the recorded calls, relative to the largest number of each output port (0 for double).
    Raises ModelError: a law in Python; a law that is partly in continuous time; an invalid name; a folder that cannot be
    written to, or files in it that were not written by this function or were changed since; a law that fails in floats.

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
    c = controller(law, mechanism, period=period, tick=tick, parameters=parameters, tunable=tunable, saturate=saturate)
    inputs = random_inputs(c, mechanism, CALLS, np.random.default_rng(1)) if vectors is None else as_inputs(c, vectors)
    exact = call(c, inputs)
    calls, error = exact, 0.0
    if precision == "single":
        calls = call(c, inputs, np.float32)
        error = _error(calls, exact)
        _check_single(c, calls, exact)
    of, programs = PRECISIONS[precision], portable_source(c.programs, precision)
    size = np.dtype(of.kind).itemsize
    stack, work = FRAME + max(programs.stack), c99.work_size(c, programs)
    state = size * len(c.state) + 4 * len(c.rates) * c.counts
    about = _about(c, mechanism, precision, (state, size * work, stack), error)
    texts = {f"{name}.h": c99.header(c, name, of, work, about), f"{name}.c": c99.source(c, name, of, programs, about[:1]),
             f"{name}_test.c": c99.test(c, name, of, calls, about[:1])}  # fmt: skip
    folder = prepare(as_path(out, "the folder to export to"))
    for file in texts:
        _check_overwrites(folder / file)
    files = tuple(place(folder / file, _signed(words)) for file, words in texts.items())
    return Exported(files, c.operations, stack, state, size * work, error, texts)


def _error(calls: Calls, exact: Calls) -> float:
    """Largest difference of the outputs of two recordings, relative to the largest exact number of the same port."""
    worst = 0.0
    for name, x in exact.outputs.items():
        good = np.isfinite(x) & np.isfinite(calls.outputs[name])
        size = np.abs(x[good]).max(initial=0.0)
        worst = max(worst, np.abs(calls.outputs[name][good] - x[good]).max(initial=0.0) / size if size else 0.0)
    return float(worst)


def _check_single(c: Controller, calls: Calls, exact: Calls) -> None:
    """Raise ModelError if a call fails in floats that succeeds in doubles."""
    failing = (calls.faults != 0) & (exact.faults == 0)
    lost = any((np.isfinite(x) & ~np.isfinite(calls.outputs[name])).any() for name, x in exact.outputs.items())
    if failing.any() or lost:
        reasons = [e.name for e, column in zip(c.faults.entries, failing.T, strict=True) if column.any()]
        reason = reasons[0] if reasons else "an output is not finite"
        raise ModelError(f"export: the law fails in floats but not in doubles ({reason}); export it in double")


def _about(c: Controller, m: Mechanism, precision: str, sizes: tuple[int, int, int], error: float) -> list[str]:
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
    if precision == "single":
        lines += [
            "",
            f"In float: the recorded calls differ from the law in double by at most {error:.1e} of the largest number.",
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
