"""Laws in discrete time, whose inputs are held for a period; noisy sensors; laws at several rates; laws in plain Python."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any, Literal

import casadi as ca
import numpy as np

from pfaffian.control import law as laws
from pfaffian.control.command import Command, Fault, as_faults
from pfaffian.control.law import Control, maker
from pfaffian.control.law_part import HOLDS, LawPart, Sample
from pfaffian.dynamics import gauss
from pfaffian.errors import ModelError, brief, is_one_of
from pfaffian.maths.random import WORD, normals
from pfaffian.model import reprs
from pfaffian.model.mechanism import as_names
from pfaffian.model.number import column, floats, is_whole, named_float
from pfaffian.model.user_functions import call_for_column, call_for_value
from pfaffian.terms.terms import Terms

MOST_LATENCY = 1000
"""Largest latency, in periods."""


@dataclass(frozen=True, eq=False)
class Sensor:
    """A sensor of a law in discrete time, made by `sensor`.

    function: function of the kinematics, or of terms and motion.   moving: whether it takes terms and motion.
    std: standard deviation of the noise.   period, phase: [s], None for those of the law.
    latency: periods of the sensor until the law receives a sample.   unit: of the signal.

    Example:
        >>> from pfaffian import control
        >>> gyro = control.sensor(lambda k: k.v, std=0.01, period=0.005, unit="rad/s")
        >>> gyro
        <Sensor: a lambda, every 0.005 s>
        >>> gyro.period, gyro.latency
        (0.005, 0)
    """

    function: Callable[..., Any]
    moving: bool
    std: ca.SX
    period: float | None
    phase: float | None
    latency: int
    unit: str

    def __repr__(self) -> str:
        often = "with its law" if self.period is None else f"every {self.period:g} s"
        return reprs.words(self, reprs.function(self.function), often)


def sensor(
    function: Callable[..., Any],
    std: Any = 0.0,
    *,
    moving: bool = False,
    period: float | None = None,
    phase: float | None = None,
    latency: int = 0,
    unit: str = "",
) -> Sensor:
    """A sensor for a law in discrete time: it samples a signal, adds noise and delays it.

        y_k = function(at t_k) + std n_k

    n_k are independent standard normal numbers, which depend only on the seed of the run, the number of the run in its batch,
    the names of law and sensor, and k. Pass the sensor to a law by `discrete(law, 0.005, measure={"gyro": sensor(...)})`.

    Args:
        function: function of the Kinematics that returns a number or a column.
        std: standard deviation of the noise, one number or one for each entry, in the unit of the signal; default 0.
        moving: True if `function` takes (terms, motion) instead, as for `of_motion`, such as that of an accelerometer. The
            motion is under all inputs at the instant: those that laws in discrete time held until then, those of a law in
            continuous time, wrenches from outside. Default False.
        period: time between samples [s], a whole number of steps of the run; that of the law if None.
        phase: time from the start of the run to the first sample [s], below the period. If None, that of the law, or 0 if a
            period is given.
        latency: whole number of periods of the sensor until the law receives a sample; default 0.
        unit: of the signal, a text; default "".
    Returns:
        Sensor.
    Raises ModelError: function is not a function or unit not a text; std is negative; a period not above zero, a phase not
    within it, or a latency that is not a whole number.

    Example:
        >>> import pfaffian as pf
        >>> from pfaffian import control
        >>> rail = pf.joint("rail", "prismatic", "world", "cart", axis=(1, 0, 0))
        >>> m = pf.mechanism("cart", [pf.body("cart", 2.0)], [rail], actuators=[pf.actuator("motor", "rail")])
        >>> late = control.sensor(lambda k: k.joint("rail"), latency=1, unit="m")
        >>> law = control.discrete(lambda s: control.Command(-s["x"]), 0.1, measure={"x": late})
        >>> pf.run(m, v=[1.0], duration=0.2, step=0.1, control=law, backend="numpy")["x"].values.round(3)
        array([0. , 0. , 0.1])
    """
    if not callable(function) or not isinstance(moving, bool):
        raise ModelError(
            f"sensor: a function of the kinematics is needed, or with moving=True of terms and motion, got {brief(function)}"
        )
    if not isinstance(unit, str):
        raise ModelError(f"sensor: unit must be a text, got {brief(unit)}")
    if period is not None:
        timing(period, phase or 0.0, "sensor")
    spread = column(std, "sensor: std")
    if spread.is_constant() and not (np.array(ca.DM(spread)) >= 0).all():
        raise ModelError(f"sensor: std must not be negative, got {brief(std)}")
    return Sensor(function, moving, ca.SX(spread), period, phase, _latency(latency, "sensor"), unit)


@maker
def discrete(
    law: Control | Callable[[Sample], Command],
    period: float,
    *,
    phase: float = 0.0,
    latency: int = 0,
    hold: Literal["zero", "first"] = "zero",
    state: Mapping[str, Any] | None = None,
    inputs: Sequence[str] = (),
    gives: Sequence[str] = (),
    measure: Mapping[str, Sensor] | None = None,
    start: Any = None,
    faults: Sequence[str] = (),
) -> Control:
    """A law that is called once a period and whose inputs are held in between.

    The law is called at t_k = start of the run + phase + k period, after its sensors. Its Command takes effect `latency`
    periods later. A law of the library is evaluated at the state of this instant. Its integrated states advance by
    z_k+1 = z_k + period z_dot_k, and it measures reactions under the inputs held until this instant. A law of your own is a
    function of a `Sample`, law(s) -> Command(u, signals=..., d_next=...), which reads s["name"] (its state, sensors, inputs)
    and s.terms; its signals are held and recorded like u.

    Args:
        law: a law of the library, or a function of a Sample that returns a Command.
        period: time between two calls [s], a whole number of steps of the run.
        phase: time from the start of the run to the first call [s], below the period; default 0.
        latency: whole periods until its inputs take effect; default 0.
        hold: "zero" (default) holds u constant for a period; "first" extrapolates it, u_k + (u_k - u_k-1) (t - t_k) / period.
            Signals are always held constant.
        state: {name: start values} of the discrete state of a law of your own, which returns all of it in d_next each time.
        inputs: names of the run's inputs that a law of your own reads.
        gives: names of its signals that later laws read as inputs, see `several`. A law of your own reads s["goal"], a column
            of one or several numbers; a law whose inputs are single numbers reads the entries "goal[0]", "goal[1]", ...
        measure: {name: sensor(...)}; none by default.
        start: (nu,) inputs until the first u takes effect [N, N m]; zero if None.
        faults: for each fault of a law of your own, a text that says what it means.
    Returns:
        Control.
    Stops a run: as the law does, at the instants at which it is called.
    Raises ModelError: an argument of another kind or out of its range; a law that is in discrete time already; state, inputs,
    gives or faults for a law of the library, which has its own.

    Example:
        >>> import pfaffian as pf
        >>> from pfaffian import control
        >>> rail = pf.joint("rail", "prismatic", "world", "cart", axis=(1, 0, 0))
        >>> m = pf.mechanism("cart", [pf.body("cart", 2.0)], [rail], actuators=[pf.actuator("motor", "rail")])
        >>> goal = control.joints("rail"), control.set_point([1.0])
        >>> law = control.discrete(control.projected(*goal, stiffness=4.0, damping=4.0), period=0.1)
        >>> pf.run(m, duration=0.2, step=0.05, control=law, backend="numpy")["u"].values.ravel().round(2)
        array([8.  , 8.  , 4.64, 4.64, 2.37])
    """
    period, phase = timing(period, phase, "discrete")
    given = {"state": state, "inputs": inputs, "gives": gives, "faults": faults}
    if isinstance(law, Control):
        part = _of_library(law, period)
        for name in [name for name, x in given.items() if x]:
            raise ModelError(f"discrete: {name} is for a law of your own; a law of the library has its own")
    elif callable(law):
        read, passed_on = (as_names(given[name], f"discrete: {name}") for name in ("inputs", "gives"))
        stops = as_faults(faults, "discrete: faults")
        part = LawPart("law", law, period, state=_states(state), inputs=read, gives=passed_on, faults=stops)
    else:
        raise ModelError(f"discrete: a control law or a function of a Sample is needed, got {brief(law)}")
    first = () if start is None else tuple(np.atleast_1d(floats(start, "discrete: start")).tolist())
    if not is_one_of(hold, HOLDS):
        raise ModelError(f"discrete: hold {brief(hold)} is unknown; one of {', '.join(HOLDS)}")
    part = replace(part, phase=phase, latency=_latency(latency, "discrete"), start=first, hold=hold)
    sensors = [sensing(name, s, part) for name, s in _sensors(measure)]
    return Control(_nothing, w_names=part.inputs, parts=(*sensors, part))


@maker
def several(**controls: Control) -> Control:
    """Combine several laws into one, which adds up their inputs.

    At a common instant the laws are called in the order of the arguments. The Sample of a law contains the signals of the laws
    before it, and a law reads as its inputs the signals that a law before it `gives`; all other inputs are the run's. One of
    the laws may be in continuous time. Where two laws have a signal of the same name, its record is prefixed with the name of
    the law: "inner.error".

    Args:
        controls: two laws or more as keywords, several(outer=discrete(...), inner=discrete(...)).
    Returns:
        Control.
    Raises ModelError: fewer than two laws; an argument that is not a Control; two in continuous time; a law in Python or
    an FMU that is not the last.

    Example:
        >>> import pfaffian as pf
        >>> from pfaffian import control
        >>> rail = pf.joint("rail", "prismatic", "world", "cart", axis=(1, 0, 0))
        >>> m = pf.mechanism("cart", [pf.body("cart", 2.0)], [rail], actuators=[pf.actuator("motor", "rail")])
        >>> push = control.Control(lambda terms, z, w, y: control.Command(10.0))
        >>> brake = control.discrete(lambda s: control.Command(-4.0 * s.terms.v), period=0.1)
        >>> law = control.several(push=push, brake=brake)
        >>> pf.run(m, v=[1.0], duration=0.1, step=0.1, control=law, backend="numpy")["u"].values[0]
        array([6.])
    """
    if len(controls) < 2:
        raise ModelError("several: two laws or more are needed, several(outer=..., inner=...)")
    parts: list[LawPart] = []
    last = list(controls)[-1]
    continuous: list[tuple[str, Control]] = []
    given: set[str] = set()
    w_names: list[str] = []
    for name, c in controls.items():
        if not isinstance(c, Control):
            raise ModelError(f"several: {name}: a control law is needed, got {brief(c)}; discrete(...) makes one of a function")
        if name != last and any(p.python for p in c.parts):
            raise ModelError(f"several: {name}: a law in Python, or an FMU, is called after all others: name it last")
        if in_continuous_time(c):
            continuous.append((name, c))
        parts += [replace(p, name=name, faults=_labelled(name, p.faults)) for p in c.parts]
        w_names += [n for n in c.w_names if n not in given and _owner(n) not in given and n not in w_names]
        given |= {n for p in c.parts for n in p.gives}
    if len(continuous) > 1:
        raise ModelError(f"several: {' and '.join(n for n, _ in continuous)} are in continuous time; give all but one a period")
    whole = continuous[0][1] if continuous else Control(_nothing)
    return replace(whole, w_names=tuple(w_names), parts=tuple(parts), takes=whole.w_names, made=None)


def entry_names(name: str, count: int) -> list[str]:
    """Names of the single entries of a signal of several numbers."""
    return [f"{name}[{i}]" for i in range(count)]


def _owner(name: str) -> str:
    """Name of the signal to which an entry such as "goal[0]" belongs; other names as they are."""
    return name.rpartition("[")[0] if name.endswith("]") else name


def single(name: str, value: ca.SX) -> ca.SX:
    """The value of an input that must be one number. Raises ModelError: it has several; the message names its entries."""
    if value.numel() != 1:
        raise ModelError(
            f"input {name!r}: one number is needed, got {value.numel()}; take {', '.join(entry_names(name, 2))}, ..."
        )
    return value


def _labelled(law: str, faults: Sequence[Fault]) -> tuple[Fault, ...]:
    """Faults whose meanings begin with the name of their law."""
    return tuple(fault._replace(meaning=f"{law}: {fault.meaning}") for fault in faults)


def python_law(
    function: Callable[..., Any],
    period: float,
    *,
    phase: float = 0.0,
    latency: int = 0,
    hold: Literal["zero", "first"] = "zero",
    measure: Mapping[str, Sensor] | None = None,
    start: Any = None,
) -> Control:
    """A law in plain Python, called with numbers once a period; slow.

    Sensors, their noise, latency and modes work as in `discrete`: the same equations give the same motion, to the bit where
    NumPy's arithmetic agrees with CasADi's. The compiled steps stop at each instant of the law, its sensors and switches; each
    stop takes some 0.2 ms in addition to the function's time. A law of CasADi's functions, see `discrete`, is faster.

    Args:
        function: (t [s], q (nq,), v (nv,)) -> u (nu,) [N, N m]; with `measure` (t, q, v, y) -> u, where y is {name: (n,)
            measured values}. In a batch it is called once for all runs, and all of these except t have runs as their first
            axis. It may have a state of its own, and is called at increasing times; in a sweep it has to begin anew at the
            first instant of each run.
        period: time between two calls [s], a whole number of steps of the run.
        phase: time from the start of the run to the first call [s], below the period; default 0.
        latency: whole periods until its inputs take effect; default 0.
        hold: "zero" holds u constant for a period; "first" extrapolates it, see `discrete`. Default "zero".
        measure: {name: sensor(...)}; none by default.
        start: (nu,) inputs until the first u takes effect [N, N m]; zero if None.
    Returns:
        Control.
    Stops a run: the function raises or returns something other than u, which stops all runs, or returns numbers that are not
    finite; `reason` in the result says what happened, and when.
    Raises ModelError: an argument of another kind or out of its range.

    Example:
        >>> import pfaffian as pf
        >>> from pfaffian import control
        >>> rail = pf.joint("rail", "prismatic", "world", "cart", axis=(1, 0, 0))
        >>> m = pf.mechanism("cart", [pf.body("cart", 2.0)], [rail], actuators=[pf.actuator("motor", "rail")])
        >>> late = control.sensor(lambda k: k.q, latency=1)
        >>> law = control.python_law(lambda t, q, v, y: -8.0 * y["x"] - 8.0 * v, period=0.1, measure={"x": late})
        >>> run = pf.run(m, q=[1.0], duration=0.2, step=0.05, control=law, backend="numpy")
        >>> run["u"].values.ravel().round(2)
        array([-0. , -0. , -8. , -8. , -4.8])
    """
    if not callable(function):
        raise ModelError(f"python_law: a function of t, q and v is needed, got {brief(function)}")
    period, phase = timing(period, phase, "python_law")
    first = () if start is None else tuple(np.atleast_1d(floats(start, "python_law: start")).tolist())
    if not is_one_of(hold, HOLDS):
        raise ModelError(f"python_law: hold {brief(hold)} is unknown; one of {', '.join(HOLDS)}")
    sensors, late = _sensors(measure), _latency(latency, "python_law")
    part = LawPart("law", _silent, period, phase, late, start=first, python=function, measures=bool(sensors), hold=hold)
    return of_parts([*[sensing(name, s, part) for name, s in sensors], part])


def of_parts(parts: Sequence[LawPart]) -> Control:
    """The law that has these parts in discrete time alone."""
    return Control(_nothing, parts=tuple(parts))


def in_continuous_time(control: Control) -> bool:
    """Whether a law has a part in continuous time."""
    return control.law is not _nothing


def _nothing(terms: Terms, z: ca.SX, w: ca.SX, reaction: ca.SX) -> Command:
    """The continuous-time part of a law in discrete time: no inputs."""
    return Command(ca.SX(terms.mechanism.nu, 1))


def _silent(s: Sample) -> Command:
    """Replaces a law in Python where equations are traced."""
    return Command(ca.SX.zeros(s.terms.mechanism.nu, 1))


def _of_library(law: Control, period: float) -> LawPart:
    """A law of the library as a part in discrete time, its integrated states advanced by Euler's rule."""
    if law.parts:
        raise ModelError("discrete: this law is in discrete time already; combine laws by several(...)")

    def call(s: Sample) -> Command:
        w = ca.vertcat(ca.SX(0, 1), *[single(name, s[name]) for name in law.w_names])
        z = s["z"] if law.z else ca.SX(0, 1)
        c = laws.command(law, s.terms, z, w, laws.measured(law, s.terms, s.reaction))
        return Command(c.u, faults=c.faults, signals=c.signals, d_next={"z": z + period * c.z_dot} if law.z else {})

    state = (("z", law.z),) if law.z else ()
    return LawPart(
        "law", call, period, state=state, inputs=law.w_names, faults=law.faults, units=law.units, entries=law.entries
    )


def sensing(name: str, s: Sensor, part: LawPart) -> LawPart:
    """A sensor as a part of its law."""
    noisy = not column(s.std, name).is_zero()

    def call(at: Sample) -> Command:
        what = f"sensor {name!r}"
        y, spread = _measured(s, what, at), column(s.std, what)
        if spread.numel() not in (1, y.numel()):
            raise ModelError(f"{what}: std has {spread.numel()} numbers, but it measures {y.numel()}")
        if noisy:
            y += spread * normals(y.numel(), at.stream, _word(f"{at.owner}.{name}"), at.count)
        return Command(ca.SX(0, 1), signals={name: y})

    default = part.phase if s.period is None else 0.0
    phase = default if s.phase is None else s.phase
    period, phase = timing(part.period if s.period is None else s.period, phase, f"sensor {name!r}")
    return LawPart(part.name, call, period, phase, s.latency, units={name: s.unit} if s.unit else {}, random=noisy, sensor=name)


def _measured(s: Sensor, what: str, at: Sample) -> ca.SX:
    """The measurement without noise."""
    if not s.moving:
        return call_for_column(s.function, what, at.terms.kinematics)
    T = Terms(at.terms.mechanism, at.terms.q, at.terms.v, at.acting, at.terms.t)
    return column(call_for_value(s.function, what, T, gauss.motion(T)), what)


def _word(name: str) -> int:
    """Number derived from the name of a signal, so that different signals have different random numbers."""
    return int.from_bytes(sha256(name.encode()).digest()[:4], "big") % int(WORD)


def _sensors(measure: Any) -> list[tuple[str, Sensor]]:
    """Names and Sensors of the argument `measure`. Raises ModelError: it has another form."""
    if measure is None:
        return []
    if not isinstance(measure, Mapping):
        raise ModelError(f"measure: {{name: sensor(...)}} is needed, got {brief(measure)}")
    for name, s in measure.items():
        if not isinstance(name, str) or not name or not isinstance(s, Sensor):
            raise ModelError(f"measure: {{name: sensor(...)}} is needed, got {brief(name)}: {brief(s)}")
    return list(measure.items())


def _states(state: Any) -> tuple[tuple[str, tuple[float, ...]], ...]:
    """Names and start values of the argument `state`. Raises ModelError: it has another form."""
    if state is None:
        return ()
    if not isinstance(state, Mapping) or not all(isinstance(name, str) and name for name in state):
        raise ModelError(f"discrete: state: {{name: start values}} is needed, got {brief(state)}")
    values = {name: np.atleast_1d(floats(x, f"discrete: state {name!r}")) for name, x in state.items()}
    for name, x in values.items():
        if x.ndim != 1 or not x.size:
            raise ModelError(f"discrete: state {name!r} has shape {x.shape}: a number or a list of numbers is needed")
    return tuple((name, tuple(x.tolist())) for name, x in values.items())


def timing(period: Any, phase: Any, what: str) -> tuple[float, float]:
    """Period and phase [s]. Raises ModelError: the period is not above zero, or the phase not within it."""
    period, phase = named_float(period, f"{what}: period"), named_float(phase, f"{what}: phase")
    if not period > 0:
        raise ModelError(f"{what}: period must be a time above zero, got {period:g}")
    if not 0 <= phase < period:
        raise ModelError(f"{what}: phase must be at least 0 and below the period of {period:g} s, got {phase:g}")
    return period, phase


def _latency(latency: Any, what: str) -> int:
    """The latency in periods. Raises ModelError: it is not a whole number from 0 to MOST_LATENCY."""
    if not is_whole(latency) or not 0 <= latency <= MOST_LATENCY:
        raise ModelError(f"{what}: latency must be a whole number of periods from 0 to {MOST_LATENCY}, got {brief(latency)}")
    return int(latency)
