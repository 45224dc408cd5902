"""`pfaffian info`: describe a mechanism, or print its equations, kinematics or symmetries."""

from __future__ import annotations

import argparse

from pfaffian.cli.chosen_machine import file_arguments, read
from pfaffian.cli.terminal import DONE
from pfaffian.errors import ModelError
from pfaffian.output.plain import lines, text


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `pfaffian info`."""
    file_arguments(parser)
    add = parser.add_argument
    words = "print the kinematics of an open chain, or with --equations the equations of motion, as LaTeX (needs sympy)"
    add("--latex", action="store_true", help=words)
    add("--equations", action="store_true", help="print the equations of motion in letters (needs sympy)")
    add("--symmetry", action="store_true", help="list the symmetries, and what breaks the others")


def command(chosen: argparse.Namespace) -> int:
    """The command `pfaffian info`: describe a mechanism, or print its equations, kinematics or symmetries."""
    m, settings = read(chosen)
    if chosen.equations:
        from pfaffian.viewer.equations import equations

        written = equations(m)
        print(written.latex() if chosen.latex else lines(written))
        return DONE
    if chosen.latex:
        from pfaffian.viewer.latex import kinematics_latex

        print(kinematics_latex(m), end="")
        return DONE
    if chosen.symmetry:
        from pfaffian.evaluate.symmetry import symmetry
        from pfaffian.states.reduce import reduce

        print("\n".join(text(line) for line in symmetry(m).lines()))
        try:
            print("\n".join(text(line) for line in ("pf.reduce:", *(f"  {line}" for line in reduce(m).about))))
        except ModelError as error:
            print(text(f"pf.reduce cannot: {error}"))
        return DONE
    from pfaffian.viewer.describe import describe

    print(describe(m, settings))
    return DONE
