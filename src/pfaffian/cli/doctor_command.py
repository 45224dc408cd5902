"""`pfaffian doctor`: check this computer and print a report."""

from __future__ import annotations

import argparse

from pfaffian.cli.chosen_machine import time_above_zero
from pfaffian.cli.terminal import DONE, STOPPED


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `pfaffian doctor`."""
    words = "first delete compiled code that was not used for so many days"
    parser.add_argument("--prune", metavar="DAYS", help=words)


def command(chosen: argparse.Namespace) -> int:
    """The command `pfaffian doctor`: check this computer and print a report."""
    from pfaffian.kernel.build.object_store import prune
    from pfaffian.viewer.doctor import examine

    if chosen.prune is not None:
        count = prune(time_above_zero(chosen.prune, "--prune", 0.0))
        print(f"deleted {count} compiled object{'s' * (count != 1)}")
    report, good = examine()
    print(report)
    return DONE if good else STOPPED
