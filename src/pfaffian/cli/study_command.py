"""`pfaffian study`: list the studies, or run one and check its claims."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

from pfaffian.cli.chosen_machine import check_pictures
from pfaffian.cli.terminal import DONE, STOPPED
from pfaffian.errors import ModelError, nearest, plural
from pfaffian.output.plain import stem, table, text


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `pfaffian study`."""
    add = parser.add_argument
    add("name", nargs="?", metavar="NAME", help="a study, e.g. slider-crank")
    add("--out", type=Path, metavar="DIR", help="folder for figures and results (default: out/NAME)")
    add("--json", type=Path, metavar="FILE", help="write the claims into this file as JSON")
    add("--view", metavar="RESULT", help="then show this result in a browser (needs viser)")
    words = "write each result that is a motion of the study's mechanism as a page that plays in a browser, next to the figures"
    add("--animate", action="store_true", help=words)


def command(chosen: argparse.Namespace) -> int:
    """The command `pfaffian study`: list the studies, or run one and check its claims."""
    from pfaffian.viewer.run_study import as_json, folder, report, run_study, studies

    if chosen.name is None:
        known = studies()
        print(f"{plural(len(known), 'study')} in {text(folder())}")
        print(table(list(known.items())))
        return DONE
    from pfaffian.output.folder import prepare, write_file

    if chosen.name in studies():
        out = prepare(chosen.out or Path("out") / chosen.name)
        if chosen.json:
            prepare(chosen.json.parent)
    check_pictures(chosen.view, None)
    started = time.perf_counter()
    outcome = run_study(chosen.name)
    print(report(outcome.claims))
    print(f"{time.perf_counter() - started:.1f} s")
    for path in _write_study(outcome, out):
        print(f"wrote {text(path)}")
    if chosen.json:
        from pfaffian.simulate.record.provenance import machine

        words = as_json(outcome, machine())
        print(f"wrote {text(write_file(chosen.json, words.encode()))}")
    if chosen.animate:
        for path in _animate_study(outcome, out):
            print(f"wrote {text(path)}")
    if chosen.view is not None:
        _view_study(outcome, chosen.view)
    return DONE if outcome.holds else STOPPED


def _write_study(outcome: Any, out: Path) -> list[Path]:
    """Write the results of a study as NetCDF, and its figures; return their paths."""
    from pfaffian.output.folder import unused
    from pfaffian.simulate.record.netcdf import write_netcdf
    from pfaffian.viewer.drawing import save
    from pfaffian.viewer.run_study import datasets

    files, used = [], set[str]()
    for name, data in datasets(outcome.result):
        files.append(out / f"{name}.nc")
        write_netcdf(data, files[-1])
    for name, figure in outcome.figures.items():
        files.append(save(figure, out / f"{unused(stem(name, 'figure'), used)}.png"))
    return files


def _animate_study(outcome: Any, out: Path) -> list[Path]:
    """Write a page for each result that is a motion of the study's mechanism. Raises ModelError: there is none."""
    from pfaffian.viewer.animate import animate
    from pfaffian.viewer.run_study import datasets, folder, load

    m = load(outcome.name, folder(), ("mechanism",)).mechanism()
    files = []
    for name, data in datasets(outcome.result):
        if "q" in data and "time" in data["q"].dims and tuple(data["coordinate"].values.tolist()) == m.q_names:
            files.append(out / f"{name}.html")
            animate(m, data, files[-1], progress=sys.stderr.isatty())
    if not files:
        raise ModelError(f"--animate: no result of study {outcome.name!r} is a motion of its mechanism {m.name!r}")
    return files


def _view_study(outcome: Any, name: str) -> None:
    """Show a result of a study in a browser.   name: of the result, which is also that of its file."""
    from pfaffian.viewer.browser import view
    from pfaffian.viewer.run_study import datasets, folder, load

    results = dict(datasets(outcome.result))
    if name not in results:
        raise ModelError(f"--view: study {outcome.name!r} has no result {text(name, 60)!r}; {nearest(name, list(results))}")
    view(load(outcome.name, folder(), ("mechanism",)).mechanism(), results[name], block=True)
