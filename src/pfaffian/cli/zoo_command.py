"""`pfaffian zoo`: list the machines, or draw one and check its number."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from pfaffian.cli.chosen_machine import check_pictures
from pfaffian.cli.terminal import DONE, STOPPED
from pfaffian.errors import plural
from pfaffian.output.plain import table, text


def arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("name", nargs="?", metavar="NAME", help="a machine of the zoo, e.g. bennett; `pfaffian run NAME` runs it")
    add("--out", type=Path, default=Path("out"), metavar="DIR", help="folder for its picture (default: out)")
    add("--view", action="store_true", help="then show its motion in a browser (needs viser)")
    add("--animate", type=Path, metavar="FILE", help="write its motion into FILE.html, .mp4 or .gif (see pf.animate)")


def command(chosen: argparse.Namespace) -> int:
    """The command `pfaffian zoo`: list the machines, or draw one and check its number."""
    from pfaffian.formats.bundled import examples
    from pfaffian.viewer import zoo

    if chosen.name is None:
        header = ("machine", "bodies", "degrees of freedom", "checked number")
        rows = [(n, len(zoo.machine(n).m.bodies), zoo.mobility(n), zoo.description(n)) for n in zoo.machines()]
        print(table(rows, header))
        robots = ", ".join(sorted(set(examples()) - set(zoo.machines())))
        print(f"{plural(len(rows), 'machine')}, and with example-robot-data {robots}")
        print("pfaffian zoo NAME shows one, pfaffian run NAME runs it, pf.read('zoo:NAME') reads it")
        return DONE
    machine = zoo.machine(chosen.name)
    check_pictures(chosen.view, chosen.animate)
    from pfaffian.output.folder import prepare, write_file
    from pfaffian.viewer.run_study import report

    out, at = prepare(chosen.out), zoo.start(machine.m, machine.settings)
    claim = zoo.claim(machine, at)
    print(
        f"{text(machine.m.name)}: {plural(len(machine.m.bodies), 'body')}, "
        f"{plural(zoo.mobility(machine.name), 'degree')} of freedom"
    )
    print(text(machine.title))
    print(report([claim]))
    result = zoo.motion(machine, at)
    from pfaffian.viewer.still import still

    print(f"wrote {text(write_file(out / f'{machine.name}.png', still(machine.m, result)))}")
    if chosen.animate is not None:
        from pfaffian.viewer.animate import animate

        animate(machine.m, result, chosen.animate, progress=sys.stderr.isatty())
        print(f"wrote {text(chosen.animate)}")
    if chosen.view:
        from pfaffian.viewer.browser import view

        view(machine.m, result, block=True)
    return DONE if claim.holds else STOPPED
