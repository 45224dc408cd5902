"""Worst-case stack of an exported law, from the compiler's report."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from pfaffian.errors import BuildError
from pfaffian.kernel.build import processes
from pfaffian.kernel.build.toolchain import TIMEOUT, find_compiler

_CALL = re.compile(r"\b((?:p|pf_)\w+|SQRT\w*|FMOD\w*|reduce_\w+)\(")
_FUNCTION = re.compile(r"^(?:static |inline |int |void |V\w* )+(\w+)\([^;]*\{\n(.*?)^\}", re.M | re.S)


def measured_stack(texts: Mapping[str, str], name: str, flags: tuple[str, ...] = ("-O2",)) -> int | None:
    """Stack [bytes] of the deepest chain of calls from NAME_step, by -fstack-usage of gcc or clang; None without either."""
    compiler = find_compiler()
    if compiler is None or compiler.kind not in ("gcc", "clang"):
        return None
    with tempfile.TemporaryDirectory(prefix="pfaffian-") as folder:
        place = Path(folder)
        for file in (f"{name}.h", f"{name}.c"):
            (place / file).write_text(texts[file], encoding="ascii")
        argv = [*compiler.argv, "-std=c99", *flags, "-fstack-usage", "-c", f"{place / name}.c", "-o", f"{place / name}.o"]
        with suppress(BuildError, OSError):
            processes.run([argv], TIMEOUT, environment=os.environ | {"LC_ALL": "C", "TMPDIR": folder})
            return _deepest(texts[f"{name}.c"], (place / f"{name}.su").read_text(), f"{name}_step")
    return None


def _deepest(source: str, usage: str, top: str) -> int:
    """Stack [bytes] of the deepest chain of calls from `top`, by the compiler's report; an inlined function has no frame."""
    frame: dict[str, int] = {}
    for line in usage.splitlines():
        where, size, _ = line.split("\t")
        function = where.rsplit(":", 1)[1].split(".")[0]
        frame[function] = max(frame.get(function, 0), int(size) + 8)  # 8 bytes for the return address
    calls = {f: set(_CALL.findall(body)) for f, body in _FUNCTION.findall(source)}
    depth: dict[str, int] = {}
    for f in [*calls, top]:  # callees come first
        depth[f] = frame.get(f, 0) + max((depth.get(g, 0) for g in calls.get(f, ())), default=0)
    return depth[top]
