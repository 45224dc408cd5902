"""Mutation testing: would the tests detect a fault? Plants small faults in a copy of the source, one at a time.

    python -m tools.covering                                 first, once: which tests run which functions
    python -m tools.mutate                                   100 mutants of all of src/, drawn by a seed
    python -m tools.mutate --since v1.0                      20 of each file that differs from a revision
    python -m tools.mutate --only control --count 40         of some folders or files
    python -m tools.mutate --only model/check.py --list      print the mutants, run nothing
    python -m tools.mutate --only model/check.py:120         of one line, for example to retry a survivor
    python -m tools.mutate --count 200 --jobs 2              two at a time
    python -m tools.mutate --keep                            add the score to tools/mutation_score.md

Each mutant is run against the tests that run its function, first those that name it and then the fastest, and is killed by the
first test that fails. Survivors are printed as differences. A mutant is unknown if no test runs its file, if it runs out of
time, or if the failed test also fails without it; it may have survived, and counts so. The exit status is 1 if fewer than nine
in ten are killed: some survivors are equivalent programs, or change only the time at which something ends.
"""

from __future__ import annotations

import argparse
import compileall
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import date
from difflib import unified_diff
from itertools import accumulate, islice
from pathlib import Path
from queue import Queue
from typing import NamedTuple

from tools import mutant_tests
from tools.covering import Covering, read
from tools.mutants import Mutant, candidates, differs

ROOT = Path(__file__).resolve().parents[1]
SOURCE = "src/pfaffian"
SCORES = ROOT / "tools" / "mutation_score.md"
COPIED = ("src", "tests", "tools", "studies", "examples", "benchmarks", "docs", "findings")
COPIED += ("README.md", "CONTRIBUTING.md", "pyproject.toml")
BAR = 0.9
"""Least fraction of the mutants that the tests have to kill."""

EACH = 20
"""Number of mutants of each file that differs from a revision."""

BUDGET = 60.0
"""Recorded time of the tests that are run against one mutant [s]."""

ALWAYS = "tests/promises/test_defaults.py"
"""The test of the default values, which runs no function but reads them all."""

LEFT_OUT = ("tests/simulate/test_bits.py", "tests/simulate/test_provenance.py", "tests/promises/test_pages.py")
"""Tests that are slower than others with the same coverage, or that examine the checkout, which the copy is not."""


class Change(NamedTuple):
    """path: below src/pfaffian.   source: the file's text without the mutant."""

    path: str
    mutant: Mutant
    source: bytes

    def __str__(self) -> str:
        return f"{SOURCE}/{self.path}:{self.mutant.line} {self.mutant.kind}"

    def diff(self) -> str:
        old, new = (x.decode().splitlines() for x in (self.source, self.mutant.apply(self.source)))
        return "\n".join(list(unified_diff(old, new, n=0, lineterm=""))[3:])


def covering_tests(table: Covering, path: str, names: list[set[str]]) -> list[str]:
    """The tests to run against a mutant of a source file, for at most BUDGET seconds; none if no test runs that file.

    They are those that run the functions around the mutant; if none does, as of a constant, those that run a function which
    leads to it, or any of the file. The first choice are tests whose file names such a function, and those that run few
    others.   names: those around the mutant, and those that lead to them.
    """
    of_file = table.functions.get(path, {})
    sets = ([tests for f, tests in of_file.items() if f in wanted] for wanted in (*names, set(of_file)))
    running = next((set[str]().union(*tests) for tests in sets if tests), set[str]())
    running = {t for t in running if not t.startswith(LEFT_OUT) and (ROOT / t.partition("::")[0]).exists()}
    files = {t.partition("::")[0] for t in running}
    near = {f for f in files if names[0] & set(re.findall(r"\w+", (ROOT / f).read_text(encoding="utf-8")))}
    order = sorted(running, key=lambda t: (t.partition("::")[0] not in near, table.breadth[t], t))
    spent = list(accumulate(table.tests[t] for t in order))
    return [*[t for t, s in zip(order, spent, strict=True) if s <= max(BUDGET, spent[0])], ALWAYS] if order else []


def changes(only: list[str]) -> list[Change]:
    """All candidates in the given files, folders or lines (path:line); in all files if none are given."""
    files = sorted(p.relative_to(ROOT / SOURCE).as_posix() for p in (ROOT / SOURCE).rglob("*.py"))
    places = [p.removeprefix(f"{SOURCE}/").rstrip("/") for p in only]
    texts = {f: (ROOT / SOURCE / f).read_bytes() for f in files if _within(f, [p.partition(":")[0] for p in places])}
    every = (Change(f, m, text) for f, text in texts.items() for m in candidates(text))
    return [c for c in every if _within(c.path, places) or f"{c.path}:{c.mutant.line}" in places]


def _within(path: str, names: list[str]) -> bool:
    return not names or any(path == n or path.startswith(f"{n}/") for n in names)


def changed(revision: str) -> list[str]:
    """Files of the source that differ from a revision in more than their path."""
    command = ["git", "-C", str(ROOT), "diff", "--name-status", "--find-renames", "--diff-filter=d", revision]
    output = subprocess.run([*command, "--", f"{SOURCE}/*.py"], capture_output=True, text=True, check=True).stdout
    return [line.split("\t")[-1] for line in output.splitlines() if not line.startswith("R100")]


def draw_each(every: list[Change], count: int, seed: int) -> list[Change]:
    """Random sample of this many mutants of each file, or all where it has fewer."""
    files = sorted({c.path for c in every})
    return [c for f in files for c in draw([c for c in every if c.path == f], count, seed)]


def draw(every: list[Change], count: int, seed: int) -> list[Change]:
    """Random sample of this many mutants, each a different program; only drawn mutants are parsed."""
    order = random.Random(seed).sample(every, len(every))
    return sorted(islice((c for c in order if differs(c.source, c.mutant)), count))


def run_tests(tree: Path, tests: list[str], names: list[set[str]], limit: float, cache: Path) -> tuple[str, str]:
    """The tests' verdict on a tree, killed, survived or unknown; and the test that failed."""
    options = ["-x", "-q", "-n", "0", "--tb=no", "--assert=plain", "-p", "no:cacheprovider", *tests]
    return mutant_tests.run(tree, options, names, limit, cache)


def copy_tree(folder: str) -> Path:
    """A copy of the files that the tests need, compiled to bytecode, which otherwise takes half of the time of a fast test."""
    tree = Path(folder)
    for part in COPIED:
        where = ROOT / part
        (shutil.copytree if where.is_dir() else shutil.copy2)(where, tree / part)
    for words in (["init", "-q"], ["add", "."]):  # some tests list the files by git
        subprocess.run(["git", *words], cwd=tree, check=True)
    for part in ("src", "tests"):  # only once: no bytecode is written while mutants are in the tree
        compileall.compile_dir(tree / part, quiet=1)
    return tree


def run_mutants(table: Covering, chosen: list[Change], limit: float, jobs: int = 1, shared: Path | None = None) -> Counter[str]:
    """Run every mutant, `jobs` at a time, and print its verdict. A test that kills has to pass without the mutant.

    shared: a permanent cache. Mutants of kernel/, which could write wrong objects into it, use a separate one.
    """
    counts: Counter[str] = Counter()
    sound: set[str] = set()
    trees: Queue[Path] = Queue()

    def one(change: Change) -> None:
        tree, begun = trees.get(), time.monotonic()
        cache = shared if shared and not change.path.startswith("kernel/") else tree / "out" / "cache"
        target = tree / SOURCE / change.path
        names = mutant_tests.names_at(change.source, change.mutant.line)
        tests = covering_tests(table, change.path, names)
        target.write_bytes(change.mutant.apply(change.source))
        verdict, test = run_tests(tree, tests, names, limit, cache) if tests else ("unknown", "no test runs it")
        target.write_bytes(change.source)
        # If no test has failed because nothing could be collected, this must also be due to the mutant.
        alone = [test] if "::" in test else [*([test] if test else tests), "--collect-only"]
        if verdict == "killed" and test not in sound and run_tests(tree, alone, names, 5 * limit, cache)[0] != "survived":
            verdict, test = "unknown", f"{test or 'the choice of tests'} fails without it"
        elif test:
            sound.add(test)
        trees.put(tree)
        counts[verdict] += 1
        words = [f"{counts.total():4d}/{len(chosen)} {time.monotonic() - begun:5.0f} s  {verdict:11s} {change}  {test}"]
        print("\n".join(words + [change.diff()] * (verdict != "killed")), flush=True)

    with ExitStack() as stack, ThreadPoolExecutor(jobs) as pool:
        for _ in range(jobs):
            trees.put(copy_tree(stack.enter_context(tempfile.TemporaryDirectory(prefix="mutate-"))))
        list(pool.map(one, chosen))
    return counts


def score(counts: Counter[str]) -> float:
    """The fraction of killed mutants. One whose fate is unknown may have survived, so it counts as a survivor."""
    return counts["killed"] / counts.total() if counts else 1.0


def last_score() -> str:
    rows = re.findall(r"^\|.*\|$", SCORES.read_text(encoding="utf-8"), re.M) if SCORES.exists() else []
    return rows[-1] if len(rows) > 2 else "none"


def keep(row: str) -> None:
    head = "| score | killed | survived | unknown | of | seed | date | revision |\n|---|---|---|---|---|---|---|---|\n"
    text = SCORES.read_text(encoding="utf-8") if SCORES.exists() else f"# Mutation score\n\n`python -m tools.mutate`\n\n{head}"
    SCORES.write_text(f"{text}{row}\n", encoding="utf-8")


def main(given: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.mutate", description=__doc__.split("\n")[0])
    parser.add_argument("--only", nargs="*", default=[], metavar="PATH", help="files or folders below src/pfaffian")
    parser.add_argument("--since", metavar="REVISION", help="files that differ from a revision, in addition to --only")
    parser.add_argument("--count", type=int, default=100, help="how many mutants to draw (100)")
    parser.add_argument("--each", type=int, metavar="N", help=f"draw N of each file instead (with --since {EACH})")
    parser.add_argument("--seed", type=int, default=1, help="of the random choice (1)")
    parser.add_argument(
        "--limit", type=float, default=300.0, help="seconds of processor time for the tests of one mutant (300)"
    )
    parser.add_argument("--cache", type=Path, metavar="FOLDER", help="cache of compiled kernels, kept for the next time (none)")
    parser.add_argument("--jobs", type=int, default=1, help="mutants at a time, each in its own copy of the tree (1)")
    parser.add_argument("--list", action="store_true", help="show the mutants, run nothing")
    parser.add_argument("--keep", action="store_true", help="add the score to tools/mutation_score.md")
    args = parser.parse_args(given)
    every = changes(args.only + (changed(args.since) if args.since else []))
    each = args.each or (EACH if args.since else None)
    chosen = draw_each(every, each, args.seed) if each else draw(every, args.count, args.seed)
    if args.list:
        print("\n".join(f"{c}\n{c.diff()}" for c in chosen))
        return 0
    git = ["git", "-C", str(ROOT), "describe", "--always", "--dirty"]
    revision = subprocess.run(git, capture_output=True, text=True, check=False).stdout.strip() or "unknown"
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended"))
    counts = run_mutants(read(), chosen, args.limit, args.jobs, args.cache and args.cache.resolve())
    numbers = [counts[x] for x in ("killed", "survived", "unknown")]
    what = ", ".join(args.only + [f"since {args.since}"] * bool(args.since)) or "all"
    row = " | ".join(map(str, [f"{score(counts):.3f}", *numbers, f"{what} ({len(every)})", args.seed, date.today(), revision]))
    print(f"last kept: {last_score()}\nnow:       | {row} |")
    if args.keep:
        keep(f"| {row} |")
    if score(counts) < BAR:
        print(f"{score(counts):.3f} is below {BAR}: for each survivor write a test, or see that it is the same program")
    return int(score(counts) < BAR)


if __name__ == "__main__":
    sys.exit(main())
