"""`pfaffian fit`: fit a machine to records, print the numbers, write a page and the mechanism."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from pfaffian.cli.terminal import DONE, STOPPED
from pfaffian.output.plain import lines, text


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `pfaffian fit`."""
    add = parser.add_argument
    add("file", type=Path, metavar="FILE", help="a YAML file with machine, records and columns")
    add("--out", type=Path, metavar="DIR", help="folder for page and mechanism (default: out/FILE)")


def command(chosen: argparse.Namespace) -> int:
    """The command `pfaffian fit`: fit a machine to records, print the numbers, write a page and the mechanism.

    Its exit status is 1 where the fit has not converged or is in doubt.
    """
    import pfaffian as pf
    from pfaffian.fitting.fit_file import read_fit
    from pfaffian.output.folder import prepare
    from pfaffian.viewer.fit_report import fit_report

    described = read_fit(chosen.file)
    out = prepare(chosen.out or Path("out", chosen.file.stem))
    found = described.fit(progress=sys.stderr.isatty())
    table = found.unseen(described.unseen, described.horizons) if described.unseen else None
    files = [fit_report(found, out / "fit.html", unseen=table), *pf.write(found.mechanism, out / "fitted.yaml")]
    print(lines(found))
    if table is not None:
        print(table.to_string())
    print("\n".join(f"wrote {text(str(file))}" for file in files))
    return DONE if found.converged and not found.doubt else STOPPED
