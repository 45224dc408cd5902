"""The command `pfaffian`: run a file, sweep it, describe it, check a study, export a law, examine this machine.

Exit status: 0 done; 1 a run stopped, a claim fails, a backend is wrong; 2 the input is wrong, or a disk full; 130 interrupted.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from pfaffian.errors import ModelError, PfaffianError, RunError, nearest, optional, plural
from pfaffian.output.plain import lines, stem, table, text

# Everything else is imported where it is used, so that --help answers at once.
if TYPE_CHECKING:
    from pfaffian.formats.text.run_settings import RunSettings
    from pfaffian.model.mechanism import Mechanism
    from pfaffian.simulate.step.step import Scheme
    from pfaffian.states.abstract_system import AbstractSystem

DONE, STOPPED, WRONG_INPUT, INTERRUPTED = 0, 1, 2, 130
EXPLAIN = {"q": "coordinate", "v": "velocity", "u": "input"}
"""Prefix of a name in --set -> what the name is."""


class _Parser(argparse.ArgumentParser):
    """An argument parser that reports an error in one line, with control characters escaped."""

    def error(self, message: str) -> NoReturn:
        self.exit(WRONG_INPUT, f"{self.prog}: {text(message)}; see {self.prog} --help\n")

    def print_help(self, file: Any = None) -> None:
        print(self.format_help(), end="", file=file)  # argparse would hide that it cannot be written


class _StandardOutput:
    """Standard output, which raises RunError where it cannot be written, as on a full disk."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)

    def write(self, words: str) -> int:
        return self._tried(self.stream.write, words)

    def flush(self) -> None:
        self._tried(self.stream.flush)

    def _tried(self, write: Callable[..., Any], *words: str) -> Any:
        try:
            return write(*words)
        except BrokenPipeError:
            raise
        except OSError as error:
            _discard(self.stream)
            raise RunError(f"standard output cannot be written: {error.strerror or error}") from None


def _discard(stream: Any) -> None:
    """Discard what a stream still holds, so that nothing fails when the interpreter flushes it at exit."""
    with contextlib.suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    try:
        if sys.stdout is None:  # it is closed
            return _called(argv)
        with contextlib.redirect_stdout(_StandardOutput(sys.stdout)) as output:
            status = _called(argv)
            output.flush()
        return status
    except PfaffianError as error:
        _say(lines(error))
        return WRONG_INPUT
    except KeyboardInterrupt:
        _say("interrupted")
        return INTERRUPTED
    except BrokenPipeError:  # the reader has closed the pipe, as `head` does
        _discard(sys.stdout)
        return STOPPED


def _called(argv: Sequence[str] | None) -> int:
    """The exit status of the command that the arguments call."""
    try:
        chosen = _parser().parse_args(argv)
    except SystemExit as end:  # --help, --version, or wrong arguments
        return end.code if isinstance(end.code, int) else WRONG_INPUT
    with warnings.catch_warnings():
        warnings.showwarning = _notice
        return chosen.command(chosen)


def _say(message: str) -> None:
    """Print a message as one line of standard error, if that can be written."""
    with contextlib.suppress(OSError):
        if sys.stderr is not None:  # None if it is closed
            print(f"pfaffian: {message}", file=sys.stderr)


def _notice(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
    """Print a warning as one line."""
    from pfaffian.errors import ModelWarning

    kind = "note" if issubclass(category, ModelWarning) else "warning"
    _say(f"{kind}: {text(message)}")


def _parser() -> argparse.ArgumentParser:
    """The parser of the command line, with one subparser a command."""
    parser = _Parser(
        prog="pfaffian",
        description="Model, simulate and control rigid-body mechanisms with constraints.",
        epilog="Exit status: 0 done; 1 a run stopped or a claim fails; 2 the input is wrong.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version and exit")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True, parser_class=_Parser)

    def command(name: str, function: Callable[[argparse.Namespace], int], help: str) -> argparse.ArgumentParser:
        subparser = commands.add_parser(name, help=help, description=f"{help[0].upper()}{help[1:]}.", allow_abbrev=False)
        subparser.set_defaults(command=function)
        return subparser

    _run_arguments(command("run", _run, "run a .urdf or .yaml file; write a NetCDF result and a figure"))
    _sweep_arguments(command("sweep", _sweep, "run the sweep of a .yaml file into a store; called again, resume it"))
    info = command("info", _info, "describe a file: bodies, joints, constraints, rank, degrees of freedom")
    _file_arguments(info)
    words = "print the kinematics of an open chain, or with --equations the equations of motion, as LaTeX (needs sympy)"
    info.add_argument("--latex", action="store_true", help=words)
    info.add_argument("--equations", action="store_true", help="print the equations of motion in letters (needs sympy)")
    info.add_argument("--symmetry", action="store_true", help="list the symmetries, and what breaks the others")
    fit = command("fit", _fit, "fit a machine to measured records as a .yaml file describes; write its numbers and a page")
    fit.add_argument("file", type=Path, metavar="FILE", help="a YAML file with machine, records and columns")
    fit.add_argument("--out", type=Path, metavar="DIR", help="folder for page and mechanism (default: out/FILE)")
    _study_arguments(command("study", _study, "run a study and check its claims; without a name, list the studies"))
    _zoo_arguments(
        command("zoo", _zoo, "list the machines that came with this package; with a name, show one and check its number")
    )
    _export_arguments(command("export", _export, "write a control law or an estimator as C99 for an embedded processor"))
    _fmu_arguments(command("fmu", _fmu, "write a machine as an FMU, which other simulators load"))
    docs = command("docs", _docs, "list the pages of the manual; with a name, print one")
    docs.add_argument("name", nargs="?", metavar="PAGE", help="a page, e.g. tutorials/vehicle")
    docs.add_argument("--site", action="store_true", help="open the site that `python -m tools.pages` built in a browser")
    docs.add_argument("--copy", metavar="PAGE", help="write the code of a page as a program into this folder")
    doctor = command("doctor", _doctor, "check this machine: versions, compiler, and the numbers of each backend")
    doctor.add_argument("--prune", metavar="DAYS", help="first delete compiled code that was not used for so many days")
    return parser


def _sweep_arguments(parser: argparse.ArgumentParser) -> None:
    _file_arguments(parser)
    add = parser.add_argument
    add("--store", type=Path, metavar="DIR", help="folder for the results (default: out/NAME.zarr)")
    add("--shard", metavar="I/N", help="compute only part I of N, for batch systems that start N such jobs")
    add(
        "--scheduler",
        metavar="ADDRESS",
        help="address of a Dask scheduler whose workers compute the runs, e.g. tcp://head:8786",
    )
    add("--threads", metavar="K", help="number of blocks at a time on this machine (default: one for each core)")
    add("--explain", action="store_true", help="print how many runs, bytes and seconds the sweep takes, and store no results")
    add("--progress", action=argparse.BooleanOptionalAction, help="show a progress bar (default: on a terminal)")


def _study_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `pfaffian study`."""
    add = parser.add_argument
    add("name", nargs="?", metavar="NAME", help="a study, e.g. slider-crank")
    add("--out", type=Path, metavar="DIR", help="folder for figures and results (default: out/NAME)")
    add("--json", type=Path, metavar="FILE", help="write the claims into this file as JSON")
    add("--view", metavar="RESULT", help="then show this result in a browser (needs viser)")
    words = "write each result that is a motion of the study's mechanism as a page that plays in a browser, next to the figures"
    add("--animate", action="store_true", help=words)


def _zoo_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("name", nargs="?", metavar="NAME", help="a machine of the zoo, e.g. bennett; `pfaffian run NAME` runs it")
    add("--out", type=Path, default=Path("out"), metavar="DIR", help="folder for its picture (default: out)")
    add("--view", action="store_true", help="then show its motion in a browser (needs viser)")
    add("--animate", type=Path, metavar="FILE", help="write its motion into FILE.html, .mp4 or .gif (see pf.animate)")


def _export_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `pfaffian export`."""
    add = parser.add_argument
    words = "a study that has a law, such as konz-quadcopter; or a Python file with functions mechanism() and law()"
    add("law", metavar="LAW", help=words)
    add("--out", type=Path, default=Path("out"), metavar="DIR", help="folder for NAME.h, NAME.c, NAME_test.c (default: out)")
    add("--name", help="name of the files and prefix of all names in C (default: that of the law)")
    add("--precision", choices=("double", "single"), default="double", help="single: compute in floats (default: double)")
    add("--period", metavar="S", help="time between two calls of a law in continuous time [s]")
    add("--tick", metavar="S", help="time between two calls [s] (default: the longest one that divides all periods)")
    add("--saturate", action="store_true", help="cut inputs at their limits")
    add("--stack", action="store_true", help="compile the source too, and print the stack that the compiler reports")
    words = "number of random calls over which floats are compared with doubles (default: those of NAME_test.c)"
    add("--draws", metavar="N", help=words)
    words = "a parameter's value, which becomes a constant (may be repeated)"
    add("--set", action="append", default=[], metavar="NAME=VALUE", dest="settings", help=words)
    add("--tunable", action="append", default=[], metavar="NAME", help="a parameter that stays an input (may be repeated)")


def _fmu_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `pfaffian fmu`."""
    _file_arguments(parser)
    add = parser.add_argument
    add("--out", type=Path, metavar="FILE", help="the FMU to write (default: out/NAME.fmu)")
    add("--kind", choices=("co-simulation", "model exchange"), default="co-simulation", help="(default: co-simulation)")
    add("--fmi", choices=("3.0", "2.0"), default="3.0", help="version of FMI (default: 3.0)")
    add("--step", metavar="S", help="time step of co-simulation [s] (default: as the file says)")
    words = "linux64, win64 or darwin64 (may be repeated; default: this machine; others need ziglang)"
    add("--platform", action="append", metavar="P", help=words)
    words = "x86-64-v3 is faster and needs a processor with AVX2 (default: x86-64)"
    add("--processor", choices=("x86-64", "x86-64-v3"), default="x86-64", help=words)


class _Version(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        from importlib.metadata import version

        print(f"pfaffian {version('pfaffian')}")
        parser.exit(DONE)


def _file_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "file",
        type=Path,
        metavar="FILE",
        help="a URDF, MJCF, SDF, USD or YAML file, or a machine of the zoo, such as four_bar",
    )
    add("--base", choices=("fixed", "free"), help="URDF only: weld the root link to the world, or let it float")
    add("--mimic", choices=("free", "follow"), help="URDF only: let mimic joints move freely, or follow")
    words = "a parameter; or q:NAME, v:NAME, u:NAME for a start value or an input (may be repeated)"
    add("--set", action="append", default=[], metavar="NAME=VALUE", dest="settings", help=words)


def _run_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `pfaffian run`."""
    _file_arguments(parser)
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


def _read(chosen: argparse.Namespace) -> tuple[Mechanism, RunSettings]:
    """The file's mechanism and its run settings, the latter with the values of --set."""
    import pfaffian as pf
    from pfaffian.formats.bundled import model_file

    chosen.file = model_file(chosen.file)
    options = {k: getattr(chosen, k) for k in ("base", "mimic") if getattr(chosen, k) is not None}
    if options and chosen.file.suffix.lower() in (".yaml", ".yml"):
        raise ModelError("--base and --mimic are for URDF files; in a .yaml file write urdf: {file: ..., base: free}")
    m, settings = pf.read(chosen.file, **options)
    m = replace(m, name=text(m.name, 200))  # a progress bar prints it
    return m, _with_settings(m, settings, chosen.settings)


def _with_settings(m: Mechanism, settings: RunSettings, given: list[str]) -> RunSettings:
    """The settings with each NAME=VALUE of --set in the field to which its name belongs."""
    from pfaffian.formats.text.strict_number import number

    known = {"parameters": m.p_names, "q": m.q_names, "v": m.v_names, "u": m.u_names}
    for setting in given:
        name, equals, value = setting.rpartition("=")
        if not equals:
            raise ModelError(f"--set {text(setting, 60)!r}: NAME=VALUE is needed, such as --set mass=2.5")
        field, entry = "parameters", name
        if name not in known["parameters"] and name[:2] in ("q:", "v:", "u:"):
            field, entry = name[0], name[2:]
        if entry not in known[field]:
            what = EXPLAIN.get(field, "parameter")
            raise ModelError(f"--set: there is no {what} {text(entry, 60)!r}; {_hint(entry, known, field)}")
        values = {**getattr(settings, field), entry: number(value, f"--set {text(name, 60)}")}
        changed: dict[str, Any] = {field: values}
        if field == "q":  # a coordinate that --set fixes is no longer a guess
            changed["guess"] = {n: x for n, x in settings.guess.items() if n != entry}
        settings = replace(settings, **changed)
    return settings


def _hint(name: str, known: dict[str, Any], field: str) -> str:
    """Advice for an unknown name: the prefix with which it is known, or the nearest known name."""
    elsewhere = [f"{k}:{name} (the {what})" for k, what in EXPLAIN.items() if name in known[k]]
    return f"write {' or '.join(elsewhere)}" if elsewhere else nearest(name, known[field])


def _time(word: str | None, what: str, otherwise: Any = None) -> Any:
    """A time above zero from the command line [s], `otherwise` if there is none."""
    from pfaffian.formats.text.strict_number import number

    if word is None:
        return otherwise
    value = number(word, what)
    if not value > 0:
        raise ModelError(f"{what}: a time above zero is needed, got {value:g}")
    return value


def _overridden(chosen: argparse.Namespace, settings: RunSettings) -> RunSettings:
    """The settings with times, formulation, integrator, state and saturation from the command line where it gives them."""
    from pfaffian.formats.text.run_settings import MAX_STEPS
    from pfaffian.formats.text.strict_number import number

    duration, step = (_time(getattr(chosen, k), f"--{k}", getattr(settings, k)) for k in ("duration", "step"))
    every = chosen.every if chosen.every is not None else str(settings.record_every)
    steps = _count(every, "--every")
    accuracy = settings.accuracy if chosen.accuracy is None else number(chosen.accuracy, "--accuracy")
    stepped = [k for k in ("step", "every") if getattr(chosen, k) is not None]
    if stepped and chosen.accuracy is not None:
        raise ModelError(f"--{stepped[0]}: a run to an accuracy has no step of its own; leave out one of the two")
    accuracy = None if stepped else accuracy
    if accuracy is None and step is not None and not step <= duration <= MAX_STEPS * step:
        raise ModelError(f"{duration:g} s in steps of {step:g} s is not between 1 and {MAX_STEPS:g} steps")
    named = ("formulation", "integrator", "saturate", "state")
    replaced = {k: getattr(chosen, k) for k in named if getattr(chosen, k) is not None}
    return replace(settings, duration=duration, step=step, record_every=steps, accuracy=accuracy, **replaced)


def _run(chosen: argparse.Namespace) -> int:
    """The command `pfaffian run`: run a file, write its result, print a summary."""
    m, settings = _read(chosen)
    settings = _overridden(chosen, settings)
    arguments = _keywords_of_run(settings)
    _check_pictures(chosen.view, chosen.animate)
    from pfaffian.output.folder import prepare

    out = prepare(chosen.out)
    started = time.perf_counter()
    result = _result(chosen, _system(m, settings.state), arguments)
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


def _sweep(chosen: argparse.Namespace) -> int:
    """The command `pfaffian sweep`: run the sweep of a file into a store, or explain what it takes."""
    import pfaffian as pf
    from pfaffian.output.folder import prepare
    from pfaffian.sweeps.at_states import OF_STATES

    m, settings = _read(chosen)
    if settings.sweep is None:
        raise ModelError(f"{text(chosen.file.name)}: there is no section `sweep:`; it needs axes or samples, and keep")
    s = settings.sweep
    space: dict[str, Any] = {label: (dim, list(x)) for label, (dim, x) in s.listed.items()}
    if s.ranges:
        space |= pf.sweeps.samples(s.ranges, s.count, method=s.method, seed=s.seed)
    keep: Any = s.keep
    if not isinstance(s.keep, str):
        keep = {n: x if x is True else getattr(pf.statistics, x[0])(x[1], *x[2]) for n, x in s.keep.items()}
    write_file = chosen.store or Path("out") / f"{stem(chosen.file.stem)}.zarr"
    arguments: dict[str, Any] = {"store": write_file, "keep": keep, "block": s.block, **_keywords_of_run(settings)}
    if s.states:
        arguments = {n: x for n, x in arguments.items() if n in ("store", "keep", "block", *OF_STATES) and x is not None}
        arguments["states"] = {label: (dim, list(x)) for label, (dim, x) in s.states.items()}
    system = _system(m, settings.state)
    if chosen.explain:
        print(pf.sweeps.explain(system, space, **arguments))
        return DONE
    prepare(write_file.parent)
    started = time.perf_counter()
    bar = chosen.progress if chosen.progress is not None else sys.stderr.isatty()
    with _cluster(chosen.scheduler) as client:
        threads = None if chosen.threads is None else _count(chosen.threads, "--threads")
        dataset = pf.sweep(system, space, client=client, shard=chosen.shard, threads=threads, progress=bar, **arguments)
    left = int((dataset["block_digest"].values == 0).sum())
    rest = f"{plural(left, 'block')} left to other parts" if left else "complete"
    print(f"{plural(dataset.sizes['run'], 'run')} in {text(write_file)}, {rest}; {time.perf_counter() - started:.1f} s")
    return DONE


def _keywords_of_run(settings: RunSettings) -> dict[str, Any]:
    """The keyword arguments of `pf.run` in the settings of a file."""
    values = {"q": settings.q, "guess": settings.guess, "v": settings.v, "u": settings.u, "parameters": settings.parameters}
    return settings.times | {k: dict(x) for k, x in values.items() if x} | {"scheme": _scheme(settings)}


def _cluster(address: str | None) -> Any:
    """A context with a client of the Dask scheduler at this address; with None if there is no address."""
    if address is None:
        return contextlib.nullcontext()
    distributed = optional("distributed", "distributed", "--scheduler needs")
    try:
        return distributed.Client(address, timeout=20)
    except (OSError, ValueError) as error:
        raise ModelError(f"--scheduler {text(address, 60)!r}: no Dask scheduler answers: {text(error, 200)}") from None


def _count(word: str, what: str) -> int:
    """A whole number from 1 on, from the command line."""
    if not (word.isascii() and word.isdigit() and 1 <= len(word) <= 9 and int(word) >= 1):
        raise ModelError(f"{what}: a whole number from 1 on is needed, got {text(word, 40)!r}")
    return int(word)


def _check_pictures(view: Any, animation: Path | None) -> None:
    """Raise ModelError for a missing package or an unknown suffix before a long run rather than after it."""
    if view:
        from pfaffian.viewer.browser import need_viser

        need_viser()
    if animation is not None:
        from pfaffian.output.folder import prepare
        from pfaffian.viewer.animate import suffix_of

        suffix_of(animation)
        prepare(animation.parent)


def _scheme(settings: RunSettings) -> Scheme:
    """The Scheme of the run; its formulation is checked before anything is computed."""
    import pfaffian as pf

    options = {k: getattr(settings, k) for k in ("formulation", "integrator") if getattr(settings, k) is not None}
    known = ("auto", *pf.FORMULATIONS)
    if options.get("formulation", "auto") not in known:
        raise ModelError(f"formulation {text(options['formulation'], 40)!r} is unknown; one of {', '.join(known)}")
    return pf.Scheme(**options, saturate=settings.saturate)


def _system(m: Mechanism, state: str) -> Mechanism | AbstractSystem:
    """The mechanism, or the System with the state that the run integrates."""
    import pfaffian as pf
    from pfaffian.formats.text.run_settings import STATES

    if state not in STATES:
        raise ModelError(f"--state: {text(state, 40)!r} is unknown; {nearest(state, STATES)}")
    return pf.reduce(m) if state == "reduced" else pf.reduction.hamiltonian(m) if state == "hamiltonian" else m


def _result(chosen: argparse.Namespace, system: Any, arguments: dict[str, Any]) -> Any:
    """Run the system; the attributes of the result name the file that it came from, with its digest."""
    import hashlib

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


def _info(chosen: argparse.Namespace) -> int:
    """The command `pfaffian info`: describe a mechanism, or print its equations, kinematics or symmetries."""
    m, settings = _read(chosen)
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


def _fit(chosen: argparse.Namespace) -> int:
    """The command `pfaffian fit`: fit a machine to records, print the numbers, write a page and the mechanism."""
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
    return DONE if found.converged else STOPPED


def _study(chosen: argparse.Namespace) -> int:
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
    _check_pictures(chosen.view, None)
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


def _docs(chosen: argparse.Namespace) -> int:
    """The command `pfaffian docs`: list the pages of the manual, print one, copy its code, or open the site."""
    import webbrowser

    from pfaffian.output.folder import write_file
    from pfaffian.viewer import manual

    if chosen.copy is not None:
        file = manual.page(chosen.copy)
        target = Path(f"{file.stem}.py")
        if target.exists():
            raise ModelError(f"{text(str(target))} exists already; move it away, or copy in another folder")
        print(f"written: {write_file(target, manual.program(file).encode('utf-8'))}")
    elif chosen.site:
        webbrowser.open(manual.site().as_uri())
    elif chosen.name is not None:
        print(lines(manual.page(chosen.name).read_text(encoding="utf-8")))
    else:
        print(table([(name, manual.title(file)) for name, file in manual.pages().items()], ("page", "title")))
        print("pfaffian docs PAGE prints one, pfaffian docs --copy PAGE writes its code as a program")
    return DONE


def _zoo(chosen: argparse.Namespace) -> int:
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
    _check_pictures(chosen.view, chosen.animate)
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


def _view_study(outcome: Any, name: str) -> None:
    """Show a result of a study in a browser.   name: of the result, which is also that of its file."""
    from pfaffian.viewer.browser import view
    from pfaffian.viewer.run_study import datasets, folder, load

    results = dict(datasets(outcome.result))
    if name not in results:
        raise ModelError(f"--view: study {outcome.name!r} has no result {text(name, 60)!r}; {nearest(name, list(results))}")
    view(load(outcome.name, folder(), ("mechanism",)).mechanism(), results[name], block=True)


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


def _fmu(chosen: argparse.Namespace) -> int:
    """The command `pfaffian fmu`: write a machine as an FMU and print its variables."""
    import pfaffian as pf

    m, settings = _read(chosen)
    out = chosen.out or Path("out") / f"{stem(m.name)}.fmu"
    values = {"q": settings.q, "guess": settings.guess, "v": settings.v, "parameters": settings.parameters}
    how: dict[str, Any] = {k: dict(x) for k, x in values.items() if x} | {"scheme": _scheme(settings)}
    how |= {"kind": chosen.kind, "version": chosen.fmi, "platforms": chosen.platform, "processor": chosen.processor}
    step = _time(chosen.step, "--step", settings.step)
    made = pf.fmu(_system(m, settings.state), out, **how, **({} if step is None else {"step": step}))
    print(table(made.variables.items(), ("variable", "unit")))
    sizes = ", ".join(f"{name} {size} bytes" for name, size in made.platforms.items())
    print(f"wrote {text(made.file)} (FMI {chosen.fmi}, {chosen.kind}; {sizes})")
    return DONE


def _export(chosen: argparse.Namespace) -> int:
    """The command `pfaffian export`: write a control law as C99 and print its costs."""
    import pfaffian as pf
    from pfaffian.formats.text.run_settings import RunSettings
    from pfaffian.viewer.laws import find

    named = find(chosen.law)
    settings = _with_settings(named.mechanism, RunSettings(), chosen.settings)
    if settings != RunSettings(parameters=settings.parameters):
        raise ModelError("--set: export takes values of parameters alone; the state and inputs are arguments of each call")
    times = {k: _time(getattr(chosen, k), f"--{k}", 0.0) for k in ("period", "tick") if getattr(chosen, k) is not None}
    options: dict[str, Any] = {"name": chosen.name or named.name, "precision": chosen.precision, "tunable": chosen.tunable}
    draws = None if chosen.draws is None else _count(chosen.draws, "--draws")
    arguments = {"parameters": settings.parameters, "saturate": chosen.saturate, "draws": draws, **options, **times}
    exported = pf.export(named.law, named.mechanism, chosen.out, **arguments)
    print(table(_costs(exported, exported.measured_stack if chosen.stack else None)))
    for path in exported.files:
        print(f"wrote {text(path)}")
    return DONE


def _costs(exported: Any, measured_stack: int | None) -> list[tuple[str, str]]:
    """What a call of the exported code costs: operations, stack, state, work memory, error of floats."""
    stack = f"{exported.stack} bytes at most, if each value has a place of its own"
    rows = [("operations", f"{exported.operations} a call at most"), ("stack", stack), ("state", f"{exported.state} bytes")]
    rows.append(("work", f"{exported.work} bytes, which the caller provides for each call"))
    if measured_stack is not None:
        rows.insert(2, ("", f"{measured_stack} bytes along the deepest calls, as the compiler reports with -O2"))
    if exported.draws:
        words = f"differ from doubles by {exported.error:.1e} of the largest number, over {exported.draws} calls"
        rows.append(("in floats", f"{words}; {exported.failing:.1%} of these fail in floats alone"))
    return rows


def _doctor(chosen: argparse.Namespace) -> int:
    """The command `pfaffian doctor`: check this computer and print a report."""
    from pfaffian.kernel.build.object_store import prune
    from pfaffian.viewer.doctor import examine

    if chosen.prune is not None:
        count = prune(_time(chosen.prune, "--prune", 0.0))
        print(f"deleted {count} compiled object{'s' * (count != 1)}")
    report, good = examine()
    print(report)
    return DONE if good else STOPPED
