"""Run the tests of one mutant in a process that is forked from one with the large packages already imported."""

from __future__ import annotations

import ast
import inspect
import json
import multiprocessing
import os
import re
import resource
import signal
import sys
from pathlib import Path
from typing import Any

PRELOADED = ("pytest", "hypothesis", "scipy.optimize", "casadi", "xarray", "matplotlib.pyplot", "mujoco", "pinocchio", "zarr")
"""Packages that most tests import and no mutant changes."""

PATIENCE = 20
"""Wall-clock limit as a multiple of the processor-time limit, for tests that wait or a busy machine."""

UNKNOWN = 0.5
"""Assumed duration of a test that was never timed [s]."""


def names_at(source: bytes, line: int) -> list[set[str]]:
    """Names of the functions, classes and constants around a line; then of those in the module that lead to them."""
    tree = ast.parse(source)
    defined: list[tuple[str, Any]] = [(n.name, n) for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.ClassDef)]
    defined += [(t.id, n) for n in tree.body if isinstance(n, ast.Assign) for t in n.targets if isinstance(t, ast.Name)]
    around = {name for name, n in defined if n.lineno <= line <= n.end_lineno}
    uses = {name: {w.id for w in ast.walk(n) if isinstance(w, ast.Name)} for name, n in defined}
    reached, before = set(around), set[str]()
    while reached != before:
        before = set(reached)
        reached |= {name for name, used in uses.items() if used & reached}
    return [around, reached]


class Order:
    """A pytest plugin: tests that name the changed function run first, then the fastest; it records their durations."""

    def __init__(self, names: list[set[str]], seconds: dict[str, float]) -> None:
        self.names, self.seconds, self.failed = names, seconds, ""

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        ranks: dict[Any, int] = {}
        for item in items:
            if item.function not in ranks:
                words = set(re.findall(r"\w+", inspect.getsource(item.function)))
                ranks[item.function] = next((k for k, names in enumerate(self.names) if names & words), len(self.names))
        items.sort(key=lambda item: (ranks[item.function], self.seconds.get(item.nodeid, UNKNOWN)))

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.when == "call":
            self.seconds[report.nodeid] = report.duration
        self._note(report)

    def pytest_collectreport(self, report: Any) -> None:
        self._note(report)

    def _note(self, report: Any) -> None:
        if report.failed and not self.failed:
            self.failed = report.nodeid


def run(tree: Path, options: list[str], names: list[set[str]], limit: float, cache: Path) -> tuple[str, str]:
    """The tests' verdict on a tree, killed, survived or unknown; and the test that failed."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(list(PRELOADED))
    process = context.Process(target=_child, args=(tree, options, names, limit, cache))
    process.start()
    try:
        process.join(PATIENCE * limit)
    finally:
        if process.is_alive():
            os.killpg(process.pid or 0, signal.SIGKILL)
            process.join()
    note = tree / "out" / "failed"
    failed = note.read_text(encoding="utf-8") if note.exists() else ""
    if process.exitcode in (-signal.SIGXCPU, -signal.SIGKILL):
        return "unknown", "out of time"
    return ("killed" if process.exitcode else "survived"), failed


def _child(tree: Path, options: list[str], names: list[set[str]], limit: float, cache: Path) -> None:
    os.setsid()
    resource.setrlimit(resource.RLIMIT_CPU, (round(limit), round(limit) + 5))
    out = tree / "out"
    out.mkdir(exist_ok=True)
    (out / "failed").unlink(missing_ok=True)
    written = os.open(out / "tests.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for stream in (1, 2):
        os.dup2(written, stream)
    os.chdir(tree)
    os.environ |= {"PYTHONPATH": str(tree / "src"), "PFAFFIAN_CACHE": str(cache), "PYTHONDONTWRITEBYTECODE": "1"}
    sys.dont_write_bytecode = True
    here = str(Path(__file__).resolve().parents[1])
    sys.path[:] = [str(tree / "src"), str(tree)] + [p for p in sys.path if p and p not in (here, f"{here}/src")]
    for module in [m for m in sys.modules if m.partition(".")[0] in ("tools", "pfaffian")]:
        del sys.modules[module]
    import pytest

    times = out / "seconds.json"
    order = Order(names, json.loads(times.read_text(encoding="utf-8")) if times.exists() else {})
    code = int(pytest.main(options, plugins=[order]))
    (out / "failed").write_text(order.failed, encoding="utf-8")
    times.write_text(json.dumps(order.seconds), encoding="utf-8")
    os._exit(code)
