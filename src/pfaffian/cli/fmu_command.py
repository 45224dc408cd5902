"""`pfaffian fmu`: write a machine as an FMU and print its variables."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from pfaffian.cli.chosen_machine import file_arguments, read, scheme, system_of, time_above_zero
from pfaffian.cli.terminal import DONE
from pfaffian.output.plain import stem, table, text


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `pfaffian fmu`."""
    file_arguments(parser)
    add = parser.add_argument
    add("--out", type=Path, metavar="FILE", help="the FMU to write (default: out/NAME.fmu)")
    add("--kind", choices=("co-simulation", "model exchange"), default="co-simulation", help="(default: co-simulation)")
    add("--fmi", choices=("3.0", "2.0"), default="3.0", help="version of FMI (default: 3.0)")
    add("--step", metavar="S", help="time step of co-simulation [s] (default: as the file says)")
    add("--accuracy", metavar="A", help="error of the motion, for steps under error control in co-simulation")
    words = "linux64, win64 or darwin64 (may be repeated; default: this machine; others need ziglang)"
    add("--platform", action="append", metavar="P", help=words)
    words = "x86-64-v3 is faster and needs a processor with AVX2 (default: x86-64)"
    add("--processor", choices=("x86-64", "x86-64-v3"), default="x86-64", help=words)


def command(chosen: argparse.Namespace) -> int:
    """The command `pfaffian fmu`: write a machine as an FMU and print its variables."""
    import pfaffian as pf
    from pfaffian.formats.text.strict_number import number

    m, settings = read(chosen)
    out = chosen.out or Path("out") / f"{stem(m.name)}.fmu"
    values = {"q": settings.q, "guess": settings.guess, "v": settings.v, "parameters": settings.parameters}
    how: dict[str, Any] = {k: dict(x) for k, x in values.items() if x} | {"scheme": scheme(settings)}
    how |= {"kind": chosen.kind, "version": chosen.fmi, "platforms": chosen.platform, "processor": chosen.processor}
    how |= {} if chosen.accuracy is None else {"accuracy": number(chosen.accuracy, "--accuracy")}
    step = time_above_zero(chosen.step, "--step", settings.step)
    made = pf.fmu(system_of(m, settings.state), out, **how, **({} if step is None else {"step": step}))
    print(table(made.variables.items(), ("variable", "unit")))
    sizes = ", ".join(f"{name} {size} bytes" for name, size in made.platforms.items())
    print(f"wrote {text(made.file)} (FMI {chosen.fmi}, {chosen.kind}; {sizes})")
    return DONE
