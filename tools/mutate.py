"""Do the tests notice what is wrong? Changes the source, one small fault at a time, in a copy of the tree.

    python -m tools.mutate                                   100 of all mutants of src/, drawn by a seed
    python -m tools.mutate --only control --count 40         of some folders or files
    python -m tools.mutate --only model/check.py --list      what would be tried
    python -m tools.mutate --keep                            writes the score into tools/mutation_score.md

Each mutant meets the tests most likely to notice it, quickest first, and counts as killed by the first that fails. Survivors
are printed as differences. Some are equal programs, or change only how soon something ends: the score is not to reach 1, it is
not to fall. Unknown are mutants that run out of time, or meet a test that fails without them; they count as neither.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from datetime import date
from difflib import unified_diff
from pathlib import Path
from typing import Any, NamedTuple

from tools.mutants import Mutant, mutants

ROOT = Path(__file__).resolve().parents[1]
SOURCE = "src/pfaffian"
SCORES = ROOT / "tools" / "mutation_score.md"
COPIED = ("src", "tests", "tools", "studies", "examples", "benchmarks", "docs", "README.md", "pyproject.toml")
LAWS = ["control/test_faults.py", "control/test_weights.py", "control/test_wrenches.py"]
NOTICED_BY = {
    "__init__.py": ["promises"],
    "cli.py": ["cli"],
    "control": [*LAWS, "control/test_designed.py"],
    "control/acceleration.py": [*LAWS, "control/test_allocation.py", "control/test_designed.py"],
    "control/allocation.py": [*LAWS, "control/test_allocation.py", "control/test_designed.py"],
    "control/actuation.py": ["control/test_flight_filters.py"],
    "control/digest.py": ["control/test_digest.py"],
    "control/discrete.py": ["control/test_discrete.py", "control/test_digest.py", "promises/test_repr.py"],
    "control/concurrent.py": ["control/test_concurrent.py", "control/test_zero_dynamics.py"],
    "control/output.py": ["control/test_concurrent.py", "control/test_random_outputs.py"],
    "control/estimation.py": ["control/test_flight_filters.py", "control/test_flight_filter.py"],
    "control/identification.py": ["control/test_identification.py"],
    "control/flat.py": ["control/test_flat.py", "control/test_bicopter.py"],
    "control/layout.py": ["control/test_discrete.py", "control/test_digest.py"],
    "control/placement.py": ["control/test_placement.py", "control/test_bicopter.py"],
    "control/prototype.py": ["control/test_prototype.py", "control/test_matching.py", "control/test_prototype_arms.py"],
    "control/reference.py": ["control/test_reference.py", *LAWS],
    "control/servo.py": [*LAWS, "control/test_servo.py"],
    "control/task.py": ["control/test_reference.py", *LAWS],
    "dynamics": ["identities", "oracles/test_formulations.py", "oracles/test_singular.py", "control/test_wrenches.py"],
    "dynamics/controlforce.py": ["simulate/test_signals.py", "control/test_servo.py"],
    "dynamics/passage.py": ["simulate/test_entrance.py"],
    "dynamics/projection.py": ["control/test_projection.py", "oracles/test_formulations.py"],
    "dynamics/quasivelocity.py": ["control/test_wrenches.py", "control/test_quasivelocity.py", "oracles/test_formulations.py"],
    "dynamics/reaction.py": ["oracles/test_reaction_wrench.py"],
    "embedded": ["embedded"],
    "errors.py": ["promises"],
    "formats": ["formats"],
    "kernel": ["kernel"],
    "maths": ["maths", "identities", "oracles/test_formulations.py"],
    "maths/random.py": ["maths/test_random.py", "control/test_discrete.py"],
    "model": ["model", "simulate/test_wrong_models.py", "simulate/test_inputs.py", "formats/test_yaml.py", "identities"],
    "model/graph.py": ["oracles/test_exponentials.py", "promises/test_repr.py"],
    "simulate": ["simulate", "control/test_faults.py"],
    "simulate/bundle.py": ["identities/test_reduction_forms.py", "simulate/test_reduction.py", "simulate/test_floating.py"],
    "simulate/diagnose.py": ["control/test_servo.py"],
    "simulate/exponentials.py": ["oracles/test_exponentials.py", "promises"],
    "simulate/floating.py": ["simulate/test_floating.py"],
    "simulate/gain.py": ["control/test_gain.py"],
    "simulate/impact.py": ["simulate/test_impact.py"],
    "simulate/inverse.py": ["control/test_projection.py", "control/test_wrenches.py"],
    "simulate/light.py": ["oracles/test_light_directions.py"],
    "simulate/linearise.py": ["oracles/test_linearise.py"],
    "simulate/matching.py": ["control/test_matching.py"],
    "simulate/orbit.py": ["simulate/test_reduced_rates.py", "simulate/test_reduction.py"],
    "simulate/quantities.py": ["oracles/test_quantities.py"],
    "simulate/reactions.py": ["oracles/test_reaction_wrench.py"],
    "simulate/plan.py": ["simulate/test_reduced_rates.py", "simulate/test_reduction.py"],
    "simulate/reduction.py": ["simulate/test_reduced_rates.py", "simulate/test_reduction.py"],
    "simulate/sampling.py": ["control/test_discrete.py", "simulate/test_switches.py"],
    "simulate/switches.py": ["simulate/test_switches.py"],
    "simulate/symmetry.py": ["simulate/test_symmetry.py", "simulate/test_reduction.py"],
    "simulate/zero_dynamics.py": ["control/test_zero_dynamics.py"],
    "terms": ["identities", "oracles/test_formulations.py", "oracles/test_pinocchio_joints.py", "simulate/test_signals.py"],
    "terms/floating.py": ["simulate/test_floating.py"],
    "terms/exponentials.py": ["oracles/test_exponentials.py"],
    "terms/momentum.py": ["identities/test_kinetic_energy.py", "simulate/test_reduced_rates.py", "simulate/test_states.py"],
    "terms/orbit.py": ["simulate/test_reduced_rates.py", "simulate/test_reduction.py"],
    "terms/reduction.py": ["simulate/test_reduced_rates.py", "simulate/test_reduction.py"],
    "terms/symbolic.py": ["oracles/test_symbolic.py", "viewer/test_latex.py"],
    "terms/pfaffian.py": ["model", "identities", "simulate/test_signals.py", "control/test_servo.py"],
    "terms/wrenches.py": ["oracles/test_reaction_wrench.py"],
    "viewer": ["viewer", "cli"],
    "viewer/latex.py": ["viewer/test_latex.py"],
}
"""File or folder of the source -> tests that know it, quickest first; the longest match counts."""
LEFT_OUT = ("tests/simulate/test_bits.py", "tests/simulate/test_provenance.py")
"""What others notice sooner, and what looks at the checkout that the copy is not."""


class Change(NamedTuple):
    """path: below src/pfaffian.   source: of that file without the mutant."""

    path: str
    mutant: Mutant
    source: bytes

    def __str__(self) -> str:
        return f"{SOURCE}/{self.path}:{self.mutant.line} {self.mutant.kind}"

    def diff(self) -> str:
        old, new = (x.decode().splitlines() for x in (self.source, self.mutant.apply(self.source)))
        return "\n".join(list(unified_diff(old, new, n=0, lineterm=""))[3:])


def known_by(path: str) -> list[str]:
    """The tests for a source file, as they exist."""
    key = max((k for k in NOTICED_BY if path == k or path.startswith(f"{k}/")), key=len, default="")
    chosen = [f"tests/{t}" for t in NOTICED_BY.get(key, [])]
    return [t for t in chosen if (ROOT / t).exists()] or ["tests"]


def changes(only: list[str]) -> list[Change]:
    """All mutants of the chosen files; all files if none are."""
    files = sorted(p.relative_to(ROOT / SOURCE).as_posix() for p in (ROOT / SOURCE).rglob("*.py"))
    wanted = [p.removeprefix(f"{SOURCE}/").rstrip("/") for p in only]
    chosen = [f for f in files if not wanted or any(f == w or f.startswith(f"{w}/") for w in wanted)]
    texts = {f: (ROOT / SOURCE / f).read_bytes() for f in chosen}
    return [Change(f, m, text) for f, text in texts.items() for m in mutants(text)]


def noticed(tree: Path, tests: list[str], limit: float) -> tuple[str, str]:
    """What the tests make of a tree: killed, survived, or unknown; and which one failed."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-n", "0", "--tb=no", "-p", "no:cacheprovider", *tests]
    command += [f"--ignore={t}" for t in LEFT_OUT]
    settings = {"PYTHONPATH": str(tree / "src"), "PFAFFIAN_CACHE": str(tree / "out" / "cache"), "PYTHONDONTWRITEBYTECODE": "1"}
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    with subprocess.Popen(
        command, cwd=tree, env=os.environ | settings | {"COLUMNS": "999"}, start_new_session=True, **pipes
    ) as child:
        try:
            said, _ = child.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            return "unknown", "out of time"
        except BaseException:
            os.killpg(child.pid, signal.SIGKILL)
            raise
    failed = re.search(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", said, re.M)
    return "killed" if child.returncode else "survived", failed[1] if failed else ""


def tried(chosen: list[Change], limit: float) -> Counter[str]:
    """Run every mutant; prints what comes of it. A test that kills has to pass without the mutant."""
    counts: Counter[str] = Counter()
    sound: set[str] = {"", "out of time"}
    with tempfile.TemporaryDirectory(prefix="mutate-") as folder:
        tree = Path(folder)
        for part in COPIED:
            where = ROOT / part
            (shutil.copytree if where.is_dir() else shutil.copy)(where, tree / part)
        for words in (["init", "-q"], ["add", "."]):  # some tests ask git for the files
            subprocess.run(["git", *words], cwd=tree, check=True)
        for i, change in enumerate(chosen):
            target, begun = tree / SOURCE / change.path, time.monotonic()
            target.write_bytes(change.mutant.apply(change.source))
            end, test = noticed(tree, known_by(change.path), limit)
            target.write_bytes(change.source)
            if (
                test not in sound
                and noticed(tree, [test] if "::" in test else [test, "--collect-only"], 5 * limit)[0] != "survived"
            ):
                end, test = "unknown", f"{test} fails without it"
            else:
                sound.add(test)
            counts[end] += 1
            print(f"{i + 1:4d}/{len(chosen)} {time.monotonic() - begun:5.0f} s  {end:11s} {change}  {test}", flush=True)
            if end != "killed":
                print(change.diff(), flush=True)
    return counts


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
    parser.add_argument("--count", type=int, default=100, help="how many mutants to draw (100)")
    parser.add_argument("--seed", type=int, default=1, help="of the draw (1)")
    parser.add_argument("--limit", type=float, default=300.0, help="seconds for the tests of one mutant (300)")
    parser.add_argument("--list", action="store_true", help="show the mutants, run nothing")
    parser.add_argument("--keep", action="store_true", help="add the score to tools/mutation_score.md")
    args = parser.parse_args(given)
    every = changes(args.only)
    chosen = sorted(random.Random(args.seed).sample(every, min(args.count, len(every))))
    if args.list:
        print("\n".join(f"{c}\n{c.diff()}" for c in chosen))
        return 0
    git = ["git", "-C", str(ROOT), "describe", "--always", "--dirty"]
    revision = subprocess.run(git, capture_output=True, text=True, check=False).stdout.strip() or "unknown"
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended"))
    counts = tried(chosen, args.limit)
    known = counts["killed"] + counts["survived"]
    score = f"{counts['killed'] / known:.3f}" if known else "none"
    numbers = [counts[x] for x in ("killed", "survived", "unknown")]
    what = ", ".join(args.only) or "all"
    row = " | ".join(map(str, [score, *numbers, f"{what} ({len(every)})", args.seed, date.today(), revision]))
    print(f"last kept: {last_score()}\nnow:       | {row} |")
    if args.keep:
        keep(f"| {row} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
