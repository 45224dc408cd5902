"""`fmu` writes a machine as an FMU, for the simulators of other people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pfaffian.control.law import Control
from pfaffian.errors import ModelError, brief, is_one_of
from pfaffian.evaluate.single_values import as_flag, as_number
from pfaffian.formats.text.file import as_path
from pfaffian.interchange.archive import PLATFORMS, PROCESSORS, here, packed
from pfaffian.interchange.contents import contents
from pfaffian.interchange.fmu_variables import variables_of
from pfaffian.interchange.machine import Timing, machine_of
from pfaffian.kernel.call.obtain import uncollected
from pfaffian.model.mechanism import as_names
from pfaffian.output.folder import prepare, write_file
from pfaffian.simulate.run.accuracy_request import PAIR, as_accuracy
from pfaffian.simulate.step.run_arguments import arguments
from pfaffian.simulate.step.sampling import check_seed
from pfaffian.simulate.step.signals import OutputFunction, as_record
from pfaffian.simulate.step.simulation import Simulation
from pfaffian.simulate.step.step import DEFAULT, Scheme
from pfaffian.simulate.step.switches import as_switches
from pfaffian.simulate.step.turns import counting_turns
from pfaffian.states.system import as_system

KINDS = ("co-simulation", "model exchange")
VERSIONS = ("3.0", "2.0")


@dataclass(frozen=True)
class WrittenFMU:
    """The FMU that `fmu` wrote.

    file: its path.   variables: names of its variables, with their units.   platforms: {platform: bytes of its binary}.
    """

    file: Path
    variables: Mapping[str, str]
    platforms: Mapping[str, int]


def fmu(
    m: Any,
    out: Any,
    *,
    kind: Literal["co-simulation", "model exchange"] = "co-simulation",
    version: Literal["3.0", "2.0"] = "3.0",
    step: float = 1e-3,
    accuracy: float | None = None,
    q: Any = None,
    v: Any = None,
    guess: Any = None,
    parameters: Any = None,
    start: float = 0.0,
    control: Control | None = None,
    switches: Mapping[str, OutputFunction] | None = None,
    outputs: Mapping[str, OutputFunction] | None = None,
    record: Any = "lean",
    scheme: Scheme | None = None,
    seed: int = 0,
    platforms: Sequence[str] | None = None,
    processor: Literal["x86-64", "x86-64-v3"] = "x86-64",
    clocks: bool = False,
) -> WrittenFMU:
    """Write a machine, with or without a law, as a Functional Mock-up Unit: a file that other simulators load as a component.

    The binaries are compiled from the same equations as a run, contained in the file as C, and need neither Python nor
    CasADi. In co-simulation the machine takes its own steps, as `run` does, and gives the bits of `run` at equal steps. In
    model exchange the simulator integrates the rates of the state; where the state has left the constraints, it is put back
    onto them in an event, and quaternions are brought back to unit length; switches, constraints that begin or cease to act
    and rebounds are events too.

    Its variables are `time`; `input.NAME` for the inputs of the law or the mechanism; `parameter.NAME`, tunable; `q.NAME` and
    `v.NAME`, whose start values may be set and are then put onto the constraints; `der(...)` of these in model exchange; and
    every recorded signal, `energy` or `reaction.NAME`. A fault of a run makes a call fail, with its reason in the log.

    Args:
        m: the mechanism, or in co-simulation a System: the mechanism in a state of another kind.
        out: path of the file, "machine.fmu"; its folder is created if it does not exist.
        kind: "co-simulation", the default, or "model exchange".
        version: of FMI, "3.0", the default, or "2.0".
        step: length of a step in co-simulation [s], 1e-3 by default; communication steps are whole numbers of these.
        accuracy: in co-simulation, steps under error control in place of those of one length, with the bits of
            `stepper(m, accuracy=...)`; a communication step may then have any length, and `step` is the one that is proposed.
        q, v, guess, parameters, start: where the machine starts, as in `run`.
        control, switches, outputs, scheme, seed: as in `run`.
        record: names of the signals that become outputs, "all" or "lean", the default, which leaves out those with an entry
            for each row or velocity.
        platforms: names from "linux64", "win64" and "darwin64"; None: that of this machine. Others are compiled by zig.
        processor: "x86-64", the default, runs on all of them; "x86-64-v3" needs one with AVX2, most since 2013, and makes
            long equations up to 1.3 times faster, with the same bits. On others the FMU refuses to be instantiated.
        clocks: whether the parts of a law in discrete time are clocked, in FMI 3.0: their periods are then clocks that an
            importer has, and ticks in event mode. By default the machine knows its instants itself.
    Returns:
        WrittenFMU: file, its path; variables, {name: unit}; platforms, {platform: size of its binary [bytes]}.
    Raises ModelError: an unknown kind, version, platform or processor; a law in Python; a singular start; for model exchange,
    switches that change gradually, or another state than [q; v]; clocks in FMI 2.0.
    Raises RunError: the start cannot be put onto the constraints; the file cannot be written.
    Raises BuildError: no compiler works, or zig is not installed and another platform is asked for.

    Example:
        >>> import tempfile
        >>> import pfaffian as pf
        >>> slide = pf.joint("x", "prismatic", "world", "cart", axis=(1, 0, 0))
        >>> m = pf.mechanism("cart", [pf.body("cart", mass=2.0)], [slide], actuators=[pf.actuator("push", "x")])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     made = pf.fmu(m, f"{folder}/cart.fmu", step=0.01)
        >>> made.file.name, list(made.variables)[:4]
        ('cart.fmu', ['time', 'input.push', 'q.x', 'v.x'])
    """
    system = as_system(m)
    for value, known, name in ((kind, KINDS, "kind"), (version, VERSIONS, "version"), (processor, PROCESSORS, "processor")):
        if not is_one_of(value, known):
            raise ModelError(f"fmu: {name} {brief(value)} is unknown; one of {', '.join(known)}")
    targets = _platforms(platforms)
    check_seed(seed)
    path = as_path(out, "the FMU to write")
    changes = accuracy is not None and (scheme is None or scheme.integrator is None)
    timing = _timing(kind, version, step, start, accuracy, changes, clocks)
    pair = DEFAULT if timing.accuracy is None else PAIR
    scheme, law, extra = arguments(system.mechanism, scheme, control, outputs, pair)
    system = system if timing.exchange else counting_turns(system, law, extra, switches)
    changing = as_switches(system.mechanism, switches)
    simulation = Simulation(system, scheme, law, extra, as_record(record, 1), changing.next)
    simulation = simulation if timing.exchange else simulation.with_kinks()
    given = {"q": q, "v": v, "guess": guess, "parameters": parameters}
    with uncollected():
        whole = machine_of(simulation, timing, given, seed)
        variables = variables_of(whole)
        files, sizes = contents(whole, variables, version, targets, processor)
    write_file(prepare(path.parent) / path.name, packed(files))
    return WrittenFMU(path, {x.name: x.unit for x in variables.listed()}, sizes)


def _timing(kind: str, version: str, step: Any, start: Any, accuracy: Any, changes: bool, clocks: Any) -> Timing:
    """Who steps the FMU, and how. Raises ModelError: an argument is wrong, or not of this kind or version."""
    exchange, h = kind == KINDS[1], as_number(step, "fmu: step")
    if not h > 0:
        raise ModelError(f"fmu: step is {h!r} s; a number above 0 is needed")
    if accuracy is not None and exchange:
        raise ModelError("fmu: in model exchange the importer chooses the steps: leave accuracy out, or write another kind")
    if (clocked := as_flag(clocks, "fmu: clocks")) and version != VERSIONS[0]:
        raise ModelError(f"fmu: clocks need version {VERSIONS[0]!r}, not {version!r}: leave out one of the two")
    controlled = None if accuracy is None else as_accuracy(accuracy)
    return Timing(exchange, h, as_number(start, "start"), controlled, changes, clocked)


def _platforms(names: Sequence[str] | None) -> tuple[str, ...]:
    """The names of platforms, each once. Raises ModelError: one is unknown, or there is none."""
    if names is None:
        names = [here() or "linux64"]
    chosen = tuple(dict.fromkeys(as_names([names] if isinstance(names, str) else names, "fmu: platforms")))
    for name in chosen:
        if not is_one_of(name, PLATFORMS):
            raise ModelError(f"fmu: platform {brief(name)} is unknown; one of {', '.join(PLATFORMS)}")
    if not chosen:
        raise ModelError(f"fmu: platforms is empty; name one of {', '.join(PLATFORMS)}")
    return chosen
