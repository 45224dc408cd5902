"""`pfaffian run`: run a file, write its result and a figure, print a summary."""

from __future__ import annotations

import argparse
import hashlib
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pfaffian.cli.chosen_machine import check_pictures, count, file_arguments, keywords_of_run, read, system_of, time_above_zero
from pfaffian.cli.terminal import DONE, INTERRUPTED, STOPPED
from pfaffian.errors import ModelError
from pfaffian.output.plain import stem, text

if TYPE_CHECKING:
    from pfaffian.formats.text.run_settings import RunSettings


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `pfaffian run`."""
    file_arguments(parser)
    add = parser.add_argument
    add("--duration", metavar="S", help="simulated time [s]")
    add("--step", metavar="S", help="time step [s]")
    add("--every", metavar="K", help="record every K-th step")
    add("--accuracy", metavar="A", help="error of the motion, for steps under error control in place of --step")
    add("--formulation", metavar="F", help="gauss, projection, nullspace, multipliers, ... (default: auto)")
    add("--integrator", metavar="I", help="rk4, euler, midpoint or tr-bdf2; dopri5 or dop853 with an accuracy")
    add("--state", metavar="X", help="standard (q and v), reduced (q and momenta) or hamiltonian (default: as the file says)")
    add("--saturate", action=argparse.BooleanOptionalAction, help="cut inputs at their limits (default: as the file says)")
    add("--out", type=Path, default=Path("out"), metavar="DIR", help="folder for the results (default: out)")
    add("--no-figure", action="store_true", help="write no figure")
    add("--progress", action=argparse.BooleanOptionalAction, help="show a progress bar (default: on a terminal)")
    add("--view", action="store_true", help="then show the motion in a browser (needs viser)")
    add("--animate", type=Path, metavar="FILE", help="write the motion into FILE.html, .mp4 or .gif (see pf.animate)")


def command(chosen: argparse.Namespace) -> int:
    """The command `pfaffian run`: run a file, write its result, print a summary."""
    m, settings = read(chosen)
    settings = _overridden(chosen, settings)
    arguments = keywords_of_run(settings)
    check_pictures(chosen.view, chosen.animate)
    from pfaffian.output.folder import prepare

    out = prepare(chosen.out)
    started = time.perf_counter()
    result = _result(chosen, system_of(m, settings.state), arguments)
    seconds = time.perf_counter() - started
    files = _write(chosen, result, out)
    if chosen.animate is not None:
        from pfaffian.viewer.animate import animate

        animate(m, result, chosen.animate, parameters=settings.arrays(m).p, progress=sys.stderr.isatty())
        files.append(chosen.animate)
    from pfaffian.simulate.record.result import FINISHED, causes
    from pfaffian.viewer.summary import summary

    print(summary(m, result, seconds, files))
    if "interrupted" in result.attrs:
        return INTERRUPTED
    if chosen.view:
        from pfaffian.viewer.browser import view

        view(m, result, settings.arrays(m).p, block=True)
    return DONE if all(c == FINISHED for c in causes(result)) else STOPPED


def _overridden(chosen: argparse.Namespace, settings: RunSettings) -> RunSettings:
    """The settings with times, formulation, integrator, state and saturation from the command line where it gives them."""
    from pfaffian.formats.text.run_settings import MAX_STEPS
    from pfaffian.formats.text.strict_number import number

    duration, step = (time_above_zero(getattr(chosen, k), f"--{k}", getattr(settings, k)) for k in ("duration", "step"))
    every = chosen.every if chosen.every is not None else str(settings.record_every)
    steps = count(every, "--every")
    accuracy = settings.accuracy if chosen.accuracy is None else number(chosen.accuracy, "--accuracy")
    stepped = [k for k in ("step", "every") if getattr(chosen, k) is not None]
    if stepped and chosen.accuracy is not None:
        raise ModelError(f"--{stepped[0]}: a run to an accuracy has no step of its own; leave out one of the two")
    if accuracy is not None and stepped == ["every"]:
        raise ModelError(f"--every: {text(chosen.file.name)} asks for an accuracy, and such a run has no step; give --step too")
    accuracy = None if stepped else accuracy
    if accuracy is None and step is not None and not step <= duration <= MAX_STEPS * step:
        raise ModelError(f"{duration:g} s in steps of {step:g} s is not between 1 and {MAX_STEPS:g} steps")
    named = ("formulation", "integrator", "saturate", "state")
    replaced = {k: getattr(chosen, k) for k in named if getattr(chosen, k) is not None}
    return replace(settings, duration=duration, step=step, record_every=steps, accuracy=accuracy, **replaced)


def _result(chosen: argparse.Namespace, system: Any, arguments: dict[str, Any]) -> Any:
    """Run the system; the attributes of the result name the file that it came from, with its digest."""

    import pfaffian as pf

    bar = chosen.progress if chosen.progress is not None else sys.stderr.isatty()
    result = pf.run(system, **arguments, progress=bar)
    digest = hashlib.sha256(chosen.file.read_bytes()).hexdigest()
    result.attrs |= {"file": text(chosen.file.name), "file_sha256": digest}
    return result


def _write(chosen: argparse.Namespace, result: Any, out: Path) -> list[Path]:
    """Write the result as NetCDF, and its figure; return their paths."""
    from pfaffian.simulate.record.netcdf import write_netcdf

    name = stem(chosen.file.stem)
    files = [out / f"{name}.nc"]
    write_netcdf(result, files[0])
    if not chosen.no_figure:
        from pfaffian.viewer.drawing import has_matplotlib, save
        from pfaffian.viewer.figures import overview

        if has_matplotlib(text(chosen.file.name)):
            files.append(save(overview(result), out / f"{name}.png"))
    return files
