"""The signals that a run records: states, energies, signals of constraints and of a control law, outputs of the caller."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import dataclass
from functools import cache, partial
from itertools import accumulate
from typing import Any, Literal

import casadi as ca

from pfaffian.control.command import Command
from pfaffian.dynamics.controlforce import control_force, ideal_reaction
from pfaffian.dynamics.motion import Motion
from pfaffian.dynamics.multipliers import minimum_norm_multipliers
from pfaffian.dynamics.regularity import regularity
from pfaffian.errors import ModelError, brief, nearest, plural
from pfaffian.maths.linear import largest_entry
from pfaffian.model.loop_coordinates import loop_coordinates_of
from pfaffian.model.mechanism import Mechanism, as_names
from pfaffian.model.number import column, several
from pfaffian.model.traced_function import graph
from pfaffian.model.user_functions import call_for_column, call_for_value, in_symbols
from pfaffian.states.signal import Signal
from pfaffian.terms.kinematics import Kinematics
from pfaffian.terms.pfaffian import row_names
from pfaffian.terms.terms import Terms, shared, symbols
from pfaffian.terms.traced_now import of_function, remembered


def entries_of(signals: Mapping[str, tuple[Signal, int]]) -> dict[str, slice]:
    """The slice of each signal in a record.   signals: name -> (Signal, number of entries), in the order of the record."""
    ends = accumulate(size for _, size in signals.values())
    return {name: slice(end - size, end) for (name, (_, size)), end in zip(signals.items(), ends, strict=True)}


@dataclass(frozen=True)
class MotionOutput:
    """An output of a run that depends on forces as well: column(terms, motion), labelled by `signal`."""

    column: Callable[[Terms, Motion], Any]
    signal: Signal


OutputFunction = Callable[[Kinematics], Any] | MotionOutput
"""An output that a caller may record: a function of Kinematics, or one of Terms and Motion."""


def of_motion(f: Callable[[Terms, Motion], Any], *, unit: str = "", names: Iterable[str] = ()) -> MotionOutput:
    """An output of a run that depends on accelerations or forces, or that has a unit and names, from f(terms, motion).

    Args:
        f: function of the Terms at an instant (M, c, f, B, u, A, b and the kinematics) and of the motion there (v_dot,
            reaction, rank) that returns a CasADi expression, a number or a column of them.
        unit: of its entries, for plots and files; not known by default.
        names: of its entries, by which they are selected and plotted; numbers by default.
    Returns:
        An output for `outputs` of `run`.
    Raises ModelError: f is not a function; unit or names are not text, or two names are equal; in the run, the function returns
    another number of entries than there are names.

    Example:
        The acceleration of a box of 2 kg on a spring of 8 N/m, stretched by 1 m:

        >>> import pfaffian as pf
        >>> slide = pf.joint("x", "prismatic", "world", "box", axis=(1, 0, 0), stiffness=8.0)
        >>> m = pf.mechanism("oscillator", [pf.body("box", mass=2.0)], [slide])
        >>> outputs = {"a": pf.of_motion(lambda terms, motion: motion.v_dot)}
        >>> result = pf.run(m, {"x": 1.0}, duration=0.1, step=0.01, outputs=outputs, backend="numpy")
        >>> round(float(result["a"][0]), 9)
        -4.0

        With a unit and names, a plot has them on its axis and beside its curves:

        >>> place = pf.of_motion(lambda terms, motion: terms.kinematics.position("box"), unit="m", names="xyz")
        >>> result = pf.run(m, {"x": 1.0}, duration=0.1, step=0.01, outputs={"place": place}, backend="numpy")
        >>> float(result["place"].sel(place_component="x")[0]), pf.plot(result, "place").axes[0].get_ylabel()
        (1.0, 'place [m]')
    """
    if not callable(f):
        raise ModelError(f"of_motion: a function of terms and motion is needed, got {brief(f)}")
    if not isinstance(unit, str):
        raise ModelError(f"of_motion: unit: a text such as 'm/s' is needed, got {brief(unit)}")
    labels = tuple(names) if isinstance(names, str) else as_names(names, "of_motion: names")
    if twice := [n for n in labels if labels.count(n) > 1]:
        raise ModelError(f"of_motion: two entries are named {brief(twice[0])}")
    return MotionOutput(f, Signal(unit or "per component", None, labels))


def labelled_output(name: str, output: MotionOutput, size: int) -> Signal:
    """The labels of an output in a result. Raises ModelError: it has another number of entries than names."""
    signal = output.signal
    if signal.dim or not signal.names:
        return signal
    if len(signal.names) != size:
        raise ModelError(f"output {name!r}: its function returns {plural(size, 'number')}, but {len(signal.names)} are named")
    return signal._replace(dim=f"{name}_component")


@remembered(256)
def standard(m: Mechanism, saturate: bool = False) -> Mapping[str, Signal]:
    """The signals that a run of a mechanism can record under any law.   saturate: whether inputs are cut at their limits."""
    signals = {
        "q": Signal("per coordinate", "coordinate", m.q_names),
        "v": Signal("per velocity", "velocity", m.v_names),
        "energy": Signal("J"),
        "kinetic_energy": Signal("J"),
    }
    if (loops := loop_coordinates_of(m)).closures:
        signals["loop"] = Signal("per loop coordinate", "loop_coordinate", loops.names)
        signals["loop_rate"] = Signal("per loop velocity", "loop_velocity", loops.v_names)
    if m.nu:
        signals["u"] = Signal("per input", "input", m.u_names)
        if saturate:
            signals["u_cut"] = Signal("per input", "input", m.u_names)
    k = shared(m).kinematics
    if m.ideal:
        rows = row_names(k)
        signals |= {
            "phi": Signal("per row", "row", rows),
            "violation": Signal("unit of phi"),
            "velocity_violation": Signal("unit of phi / s"),
            "rank": Signal("1"),
            "regularity": Signal("1"),
            "reaction": Signal("per velocity", "velocity", m.v_names),
            "multiplier": Signal("per row", "row", rows),
        }
    if m.servos:
        rows = row_names(k, tuple(s.target for s in m.servos))
        signals |= {
            "servo_force": Signal("unit of the direction", "servo_row", rows),
            "servo_hold": Signal("1"),
            "servo_error": Signal("per row", "servo_row", rows),
            "servo_rate": Signal("per row / s", "servo_row", rows),
        }
    return signals


BULKY = ("phi", "reaction", "multiplier")
"""Signals with an entry for each row or velocity, which a lean record leaves out."""

STANDARD = frozenset({
    "q", "v", "energy", "kinetic_energy", "loop", "loop_rate", "u", "u_cut", "phi", "violation", "velocity_violation", "rank",
    "regularity", "reaction", "multiplier", "servo_force", "servo_hold", "servo_error", "servo_rate",
})  # fmt: skip
"""Names of the signals that `standard` may list."""

RESERVED = frozenset({
    "time", "run", "coordinate", "q_unit", "velocity", "v_unit", "force_unit", "input", "u_unit", "row", "servo_row",
    "given", "given_unit", "sample", "sample_time", "parameter", "p_unit", "inputs", "parameters", "status", "stopped",
    "reason", "moved", "moved_rate", "start_residual", "entrance", "limit_excess", "limit_time", "input_excess",
    "input_time", "reduction_error", "error", "error_kind",
    "steps", "tolerance", "trusted", "error_growth", "energy_error", "momentum_error", "momentum_error_entry",
    "momentum_error_unit", "end_state", "state_entry", "loop_coordinate", "loop_unit", "loop_velocity", "loop_rate_unit",
    "loop_excess", "loop_time",
})  # fmt: skip
"""Names in a result that are not signals."""

Record = Literal["all", "lean"] | tuple[str, ...]
"""What to record: all signals, all but the bulky ones, or the named ones."""


def columns(
    T: Terms,
    motion: Motion,
    command: Command,
    outputs: Mapping[str, OutputFunction],
    record: Record = "all",
    cut: ca.SX | None = None,
    of_state: Mapping[str, ca.SX] | None = None,
) -> dict[str, ca.SX]:
    """The selected signals and all outputs as dense columns; signals that are not recorded cost nothing.

    cut: the part of the inputs that saturation removes.   of_state: the signals of the system's state.

    Raises ModelError: two signals have one name; an unknown name in `record`.
    """
    known, of_state = _standard_columns(T, motion, cut), of_state or {}
    for name in [n for n in of_state if n in known]:
        raise ModelError(f"signal {name!r} of the state: the result has a signal of that name already")
    known |= {name: partial(_as_is, x) for name, x in of_state.items()}
    extra = {name: partial(_as_is, x) for name, x in command.signals.items()}
    extra |= {name: partial(_output_column, name, output, T, motion) for name, output in outputs.items()}
    for name in extra:
        if name in known or (name in command.signals and name in outputs):
            whose = "sensor or signal of the law" if name in command.signals else "output"
            another = "choose another name, such as"
            raise ModelError(f"{whose} {name!r}: the result has a signal of that name already; {another} {f'my_{name}'!r}")
    built = known | extra
    # Outputs are always recorded: the caller named them.
    selected = {*chosen(tuple(built), record), *outputs}
    return {name: ca.densify(ca.vec(ca.SX(f()))) for name, f in built.items() if name in selected}


def _output_column(name: str, output: OutputFunction, T: Terms, motion: Motion) -> ca.SX:
    """The column of a caller's output. Raises ModelError: it fails, or contains foreign symbols."""
    what = f"output {name!r}"
    if isinstance(output, MotionOutput):
        known = (T.q, T.v, T.u, T.t, T.mechanism.p_symbols, motion.v_dot, motion.reaction)
        return in_symbols(column(call_for_value(output.column, what, T, motion), what), what, known)
    return call_for_column(output, what, T.kinematics)


def output_digest(name: str, output: OutputFunction, m: Mechanism) -> str:
    """Digest of an output: its labels, and the graph of its expression at symbols of terms and motion."""
    T, what = symbols(m), f"output {name!r}"
    if not isinstance(output, MotionOutput):
        return of_function(output, what, T.kinematics)
    motion = Motion(*[ca.SX.sym(part, n) for part, n in (("v_dot", m.nv), ("reaction", m.nv), ("rank", 1))])
    known = [T.q, T.v, T.u, T.t, m.p_symbols, *motion]
    value = column(call_for_value(output.column, what, T, motion), what)
    return repr(output.signal) + graph(known, [in_symbols(value, what, known)])


def as_record(record: Any, count: int) -> Record:
    """The Record for a caller's `record` of `count` runs; None means "all" for one run, "lean" for a batch."""
    if record is None:
        return "all" if count == 1 else "lean"
    if isinstance(record, str):
        if record in ("all", "lean"):
            return record  # type: ignore[return-value]
        raise ModelError(f"record must be a list of names, 'all' or 'lean', got {record!r}; write record=[{record!r}]")
    if isinstance(record, Mapping):
        raise ModelError(
            "record: statistics, {name: statistics.maximum('u')}, are supported by run only; give a list of names here"
        )
    if not (several(record) or isinstance(record, Set)) or not (names := tuple(record)):
        raise ModelError(f"record must be a list of at least one name, 'all' or 'lean', got {record!r}")
    return tuple(sorted(set(names), key=str))


def check_names(signals: Mapping[str, tuple[Signal, int]]) -> None:
    """Raise ModelError if a result or a file cannot store a signal of a law or an output under its name."""
    labelled = {signal.dim for signal, _ in signals.values() if signal.dim}
    plain = {f"{name}_component" for name, (signal, _) in signals.items() if not signal.dim}
    for name in signals:
        if name in RESERVED | labelled | plain or (signals[name][0].dim is None and f"{name}_component" in labelled):
            raise ModelError(f"output {name!r}: the result has something else of that name; choose another")
        if "/" in name:
            raise ModelError(f"output {name!r}: a name without '/' is needed, which separates the groups of a NetCDF file")


def chosen(names: tuple[str, ...], record: Record) -> tuple[str, ...]:
    """The names that `record` selects, in the order of `names`. Raises ModelError: it contains an unknown name."""
    if record == "all":
        return names
    if record == "lean":
        return tuple(n for n in names if n not in BULKY)
    for name in record:
        if name not in names:
            raise ModelError(f"record: there is no signal {brief(name)}; {nearest(name, names)}")
    return tuple(n for n in names if n in record)


def _as_is(x: ca.SX) -> ca.SX:
    """x; `partial` makes a function without arguments of it."""
    return x


def _standard_columns(T: Terms, motion: Motion, cut: ca.SX | None) -> dict[str, Callable[[], ca.SX]]:
    """Name -> function that builds the signal, for the `standard` signals."""
    values: dict[str, Callable[[], ca.SX]] = {
        "q": lambda: T.q,
        "v": lambda: T.v,
        "energy": lambda: T.T + T.V,
        "kinetic_energy": lambda: T.T,
    }
    m = T.mechanism
    if closures := loop_coordinates_of(m).closures:
        values["loop"] = lambda: ca.vertcat(*[T.kinematics.joint(c.name) for c in closures])
        values["loop_rate"] = lambda: ca.vertcat(*[T.kinematics.joint_rate(c.name) for c in closures])
    if m.nu:
        values["u"] = lambda: T.u
        if cut is not None:
            values["u_cut"] = partial(_as_is, cut)
    if m.ideal:
        values |= {
            "phi": lambda: T.rows.phi,
            "violation": lambda: largest_entry(T.rows.phi),
            "velocity_violation": lambda: largest_entry(T.rows.eta),
            "rank": lambda: motion.rank,
            "regularity": lambda: regularity(T),
            "reaction": lambda: motion.reaction,
            "multiplier": lambda: minimum_norm_multipliers(T, ideal_reaction(T, motion)),
        }
    if m.servos:
        servo = cache(lambda: control_force(T))
        values |= {
            "servo_force": lambda: servo().mu,
            "servo_hold": lambda: servo().hold,
            "servo_error": lambda: T.servo.phi,
            "servo_rate": lambda: T.servo.eta,
        }
    return values
