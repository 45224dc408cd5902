"""python -m benchmarks [NAME ...] [--json FILE] [--repeat N] [--quick] [--out DIR], and folders for some: see --help."""

from __future__ import annotations

import argparse
import sys
import traceback
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from tqdm import tqdm

from benchmarks.check import CheckFailed
from benchmarks.machine import describe, headline
from benchmarks.result import Comparison, Missing, table, write_json
from benchmarks.timing import Options, pin_to_one_core

NAMES = (
    "forward_dynamics",
    "constrained_dynamics",
    "derivatives",
    "rollout",
    "build_time",
    "chain_length",
    "parallel_chains",
    "single_run",
    "accuracy",
    "stiff",
    "calls",
    "closed_loop",
    "graph",
    "assembly",
    "qp",
    "multicopter",
    "laws",
    "inputs_and_loads",
    "reduction",
    "embedded",
    "fit",
    "fmu",
    "readers",
)
CHECK, CRASH = 1, 2
"""Exit status after a failed check, and after another failure."""


def main(arguments: Sequence[str] | None = None) -> int:
    given = parse(arguments)
    o = Options(given.repeat, given.quick, given.out, chains=given.chains, files=given.files, beside=given.beside)
    about = {"quick": o.quick, "batch": o.runs, "repeat": 1 if o.quick else o.repeat} | describe(
        None if o.quick else pin_to_one_core()
    )
    rows: list[tuple[str, Comparison]] = []
    failed, missing = dict[str, str](), dict[str, str]()
    status = 0
    with tqdm(given.names, unit="benchmark", disable=not sys.stderr.isatty()) as bar:
        for name in bar:
            bar.set_description(name)
            try:
                for c in import_module(f"benchmarks.{name}").run(o):
                    rows.append((name, c))
                    bar.set_postfix_str(c.what)
            except Missing as error:
                missing[name] = str(error)
            except CheckFailed as error:
                failed[name], status = str(error), max(status, CHECK)
            except Exception as error:
                traceback.print_exc()
                failed[name], status = f"{type(error).__name__}: {error}", CRASH
    print(headline(about), "", table(rows, not o.quick), sep="\n")
    for name, why in missing.items():
        print(f"not measured: {name}: {why}")
    for name, why in failed.items():
        print(f"FAILED {name}: {why}")
    if given.json:
        write_json(given.json, about, rows, failed)
    return status


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    p = argparse.ArgumentParser(prog="python -m benchmarks", description="The library beside its peers, on one core.")
    p.add_argument("names", nargs="*", metavar="NAME", help=f"which ones, all by default: {', '.join(NAMES)}")
    p.add_argument("--json", type=Path, metavar="FILE", help="write every sample, with machine and versions")
    p.add_argument("--repeat", type=int, default=9, metavar="N", help="samples of each side (default 9)")
    p.add_argument("--quick", action="store_true", help="one sample at a small batch; nothing is judged")
    p.add_argument("--out", type=Path, default=Path("out/benchmarks"), metavar="DIR", help="folder of the figures")
    p.add_argument("--chains", type=Path, metavar="DIR", help="URDF+ files of parallel chains, for parallel_chains")
    p.add_argument("--files", type=Path, metavar="DIR", help="further robots, for readers")
    p.add_argument("--beside", type=Path, metavar="DIR", help="another checkout of the library, for readers")
    given = p.parse_args(arguments)
    unknown = [n for n in given.names if n not in NAMES]
    if unknown:
        p.error(f"no benchmark {', '.join(unknown)}; there are {', '.join(NAMES)}")
    if given.repeat < 1:
        p.error("--repeat must be at least 1")
    given.names = given.names or list(NAMES)
    return given


if __name__ == "__main__":
    sys.exit(main())
