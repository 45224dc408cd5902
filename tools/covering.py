"""Which tests run which functions: found once by coverage, kept in out/covering.json, asked by tools/mutate.py.

    python -m tools.covering                              of all tests, two at a time
    python -m tools.covering tests/viewer -n 0            of some, in place of what is known of them; arguments as of pytest

A function is known by its name, not by its lines, so that the table outlives edits above it. A result that is kept counts for
the test that computed it first; hence the tests run with an empty cache.
"""

from __future__ import annotations

import ast
import json
import os
import shutil
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "pfaffian"
TABLE = ROOT / "out" / "covering.json"
RAW = ROOT / "out" / "covering"
"""Folder of the data of one run of the tests: of each process its coverage, and the durations."""

SECONDS = "seconds.json"


@dataclass(frozen=True)
class Covering:
    """tests: name without parameters -> duration [s].   functions: file below src/pfaffian -> name of a function or class ->
    the tests that run it."""

    tests: dict[str, float]
    functions: dict[str, dict[str, set[str]]]

    @cached_property
    def breadth(self) -> Counter[str]:
        """Test -> number of functions that it runs: the smaller, the more it is about each of them."""
        return Counter(test for of_file in self.functions.values() for tests in of_file.values() for test in tests)


def read(path: Path = TABLE) -> Covering:
    """The table. Exits with a message if there is none."""
    if not path.exists():
        sys.exit(f"{path} is missing: run `python -m tools.covering` first, which runs all tests under coverage")
    data = json.loads(path.read_text(encoding="utf-8"))
    names = [name for name, _ in data["tests"]]
    functions = {
        file: {f: {names[i] for i in rows} for f, rows in of_file.items()} for file, of_file in data["functions"].items()
    }
    return Covering(dict(data["tests"]), functions)


def write(table: Covering, path: Path = TABLE) -> None:
    """Write the table; tests are numbers in it, which keeps it small."""
    place = {name: i for i, name in enumerate(table.tests)}
    functions = {
        file: {f: sorted(place[t] for t in tests) for f, tests in of_file.items()} for file, of_file in table.functions.items()
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"tests": list(table.tests.items()), "functions": functions}), encoding="utf-8")


def updated(old: Covering, new: Covering) -> Covering:
    """The old table with the tests of all files that the new one knows replaced."""
    again = {test.partition("::")[0] for test in new.tests}
    kept = {test: s for test, s in old.tests.items() if test.partition("::")[0] not in again}
    functions: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for table in (old, new):
        for file, of_file in table.functions.items():
            for name, tests in of_file.items():
                functions[file][name] |= tests & kept.keys() if table is old else tests
    return Covering(kept | new.tests, {file: dict(of_file) for file, of_file in functions.items()})


def by_function(source: str, tests_of_line: Mapping[int, Iterable[str]]) -> dict[str, set[str]]:
    """Name of each function and class -> the tests that run a line within it."""
    kinds = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
    spans = [(n.name, n.lineno, n.end_lineno or n.lineno) for n in ast.walk(ast.parse(source)) if isinstance(n, kinds)]
    found: dict[str, set[str]] = defaultdict(set)
    for line, tests in tests_of_line.items():
        for name, first, last in spans:
            if first <= line <= last:
                found[name] |= {test for test in tests if test}  # no test: while the file was imported
    return {name: tests for name, tests in found.items() if tests}


def name_of(node: str) -> str:
    """The name of a test, without the parameters in its node id."""
    return node.partition("[")[0]


class Recorder:
    """A pytest plugin: the coverage of this process, with the running test as context."""

    def __init__(self) -> None:
        from coverage import Coverage

        RAW.mkdir(parents=True, exist_ok=True)
        self.coverage = Coverage(
            data_file=str(RAW / "lines"), data_suffix=str(os.getpid()), source=[str(SOURCE)], config_file=False
        )
        self.coverage.start()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: Any) -> Iterator[None]:
        self.coverage.switch_context(name_of(item.nodeid))
        try:
            return (yield)
        finally:
            self.coverage.switch_context("")

    def pytest_sessionfinish(self) -> None:
        self.coverage.stop()
        self.coverage.save()


class Clock:
    """A pytest plugin: the duration of each test, with all its parameters."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)

    def pytest_runtest_logreport(self, report: Any) -> None:
        self.seconds[name_of(report.nodeid)] += report.duration

    def pytest_sessionfinish(self) -> None:
        RAW.mkdir(parents=True, exist_ok=True)
        (RAW / SECONDS).write_text(json.dumps(self.seconds), encoding="utf-8")


def pytest_configure(config: Any) -> None:
    """Watch the tests of this process, or as the one that hands them out their durations."""
    works = hasattr(config, "workerinput")
    if works or not config.getoption("numprocesses", None):
        config.pluginmanager.register(Recorder())
    if not works:
        config.pluginmanager.register(Clock())


def collected() -> Covering:
    """The table of the tests that have run."""
    from coverage import CoverageData

    lines: dict[str, dict[int, set[str]]] = defaultdict(lambda: defaultdict(set))
    for path in RAW.glob("lines.*"):
        data = CoverageData(basename=str(path))
        data.read()
        for file in data.measured_files():
            for line, tests in data.contexts_by_lineno(file).items():
                lines[file][line] |= set(tests)
    functions = {
        Path(file).relative_to(SOURCE).as_posix(): by_function(Path(file).read_text(encoding="utf-8"), of_file)
        for file, of_file in lines.items()
    }
    return Covering(json.loads((RAW / SECONDS).read_text(encoding="utf-8")), functions)


def main(given: list[str] | None = None) -> int:
    tests = sys.argv[1:] if given is None else given
    shutil.rmtree(RAW, ignore_errors=True)
    os.environ |= {"PFAFFIAN_CACHE": str(RAW / "cache"), "COVERAGE_CORE": "ctrace"}  # contexts need this core
    code = int(pytest.main(["-q", "-p", "tools.covering", "-n", "2", *tests]))
    if code > 1:
        return code
    new = collected()
    write(updated(read(), new) if TABLE.exists() else new)
    shutil.rmtree(RAW)
    print(f"{len(new.tests)} tests and their functions are in {TABLE}")
    return 0  # the table is right although a test may have failed


if __name__ == "__main__":
    sys.exit(main())
