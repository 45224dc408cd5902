"""The entrance of the command `pfaffian`: it finds the command, and turns errors and warnings into lines and a status."""

from __future__ import annotations

import argparse
import contextlib
import sys
import warnings
from collections.abc import Sequence
from types import ModuleType
from typing import Any, NoReturn

from pfaffian.cli import (
    docs_command,
    doctor_command,
    export_command,
    fit_command,
    fmu_command,
    info_command,
    run_command,
    study_command,
    sweep_command,
    zoo_command,
)
from pfaffian.cli.terminal import DONE, INTERRUPTED, STOPPED, WRONG_INPUT, StandardOutput, discard, notice, say
from pfaffian.errors import PfaffianError
from pfaffian.output.plain import lines, text

COMMANDS: dict[str, tuple[ModuleType, str]] = {
    "run": (run_command, "run a .urdf or .yaml file; write a NetCDF result and a figure"),
    "sweep": (sweep_command, "run the sweep of a .yaml file into a store; called again, resume it"),
    "info": (info_command, "describe a file: bodies, joints, constraints, rank, degrees of freedom"),
    "fit": (fit_command, "fit a machine to measured records as a .yaml file describes; write its numbers and a page"),
    "study": (study_command, "run a study and check its claims; without a name, list the studies"),
    "zoo": (zoo_command, "list the machines that came with this package; with a name, show one and check its number"),
    "export": (export_command, "write a control law or an estimator as C99 for an embedded processor"),
    "fmu": (fmu_command, "write a machine as an FMU, which other simulators load"),
    "docs": (docs_command, "list the pages of the manual; with a name, print one"),
    "doctor": (doctor_command, "check this machine: versions, compiler, and the numbers of each backend"),
}
"""Name of a command -> the file with its `arguments` and its `command`, and what it does."""


class _Parser(argparse.ArgumentParser):
    """An argument parser that reports an error in one line, with control characters escaped."""

    def error(self, message: str) -> NoReturn:
        self.exit(WRONG_INPUT, f"{self.prog}: {text(message)}; see {self.prog} --help\n")

    def print_help(self, file: Any = None) -> None:
        print(self.format_help(), end="", file=file)  # argparse would hide that it cannot be written


class _Version(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        from importlib.metadata import version

        print(f"pfaffian {version('pfaffian')}")
        parser.exit(DONE)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    try:
        if sys.stdout is None:  # it is closed
            return _called(argv)
        with contextlib.redirect_stdout(StandardOutput(sys.stdout)) as output:
            status = _called(argv)
            output.flush()
        return status
    except PfaffianError as error:
        say(lines(error))
        return WRONG_INPUT
    except KeyboardInterrupt:
        say("interrupted")
        return INTERRUPTED
    except BrokenPipeError:  # the reader has closed the pipe, as `head` does
        discard(sys.stdout)
        return STOPPED


def _called(argv: Sequence[str] | None) -> int:
    """The exit status of the command that the arguments call."""
    try:
        chosen = _parser().parse_args(argv)
    except SystemExit as end:  # --help, --version, or wrong arguments
        return end.code if isinstance(end.code, int) else WRONG_INPUT
    with warnings.catch_warnings():
        warnings.showwarning = notice
        return chosen.command(chosen)


def _parser() -> argparse.ArgumentParser:
    """The parser of the command line, with one subparser a command."""
    parser = _Parser(
        prog="pfaffian",
        description="Model, simulate and control rigid-body mechanisms with constraints.",
        epilog="Exit status: 0 done; 1 a run stopped, a fit is in doubt or a claim fails; 2 the input is wrong.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version and exit")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True, parser_class=_Parser)
    for name, (module, help) in COMMANDS.items():
        subparser = commands.add_parser(name, help=help, description=f"{help[0].upper()}{help[1:]}.", allow_abbrev=False)
        module.arguments(subparser)
        subparser.set_defaults(command=module.command)
    return parser
