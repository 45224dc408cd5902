"""A control law as a function that is called once a tick: its inputs, state and outputs, and the Programs that compute them.

All numbers of a call (inputs, parameters and state) lie in one array, the pool. The Program of each rate reads the pool and
returns new values for some of its entries, and the faults of its parts. The last Program computes the outputs from the pool.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import groupby
from math import gcd, lcm
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from pfaffian.control.discrete_laws import discrete, in_continuous_time
from pfaffian.control.law import Control
from pfaffian.control.law_part import LawPart
from pfaffian.control.layout import PartFunction, layout, part_functions, sizes, units
from pfaffian.errors import ModelError, brief
from pfaffian.evaluate.arrays import parameter_values
from pfaffian.kernel.build.compiled_passes import passes
from pfaffian.kernel.program.interpret import constant, evaluate
from pfaffian.kernel.program.passes import optimise
from pfaffian.kernel.program.program import Program
from pfaffian.kernel.program.skeleton import argument_words
from pfaffian.kernel.program.trace import trace
from pfaffian.maths.precision import building_for
from pfaffian.model.mechanism import Mechanism, as_mechanism, force_unit, random_configuration
from pfaffian.model.number import floats, named_float
from pfaffian.simulate.step.limits import saturated
from pfaffian.simulate.step.sampling import Loads, evaluate_parts, sampling
from pfaffian.states.system import as_system


class Entry(NamedTuple):
    """Name (any text) and unit of one number of a port or of the state."""

    name: str
    unit: str = ""


class Port(NamedTuple):
    """A group of inputs or outputs.   name: an identifier of C.   what: its description.   entries: its numbers, in order."""

    name: str
    what: str
    entries: tuple[Entry, ...]


class RateGroup(NamedTuple):
    """The parts of a law that are evaluated at the same instants.

    program: pool -> (new values, faults).   changed: indices of the new values in the pool.   period, phase: in ticks.
    """

    program: Program
    changed: tuple[int, ...]
    period: int
    phase: int


@dataclass(frozen=True, eq=False)
class Controller:
    """A control law in the form that is exported.

    inputs: ports that are read, each with the indices of its numbers in the pool.
    constants: index, value and name of each parameter that is read.   state: index, start value and name of each number that
    is stored between calls.   rates: in the order of their evaluation.   result: Program pool -> numbers of `outputs`.
    outputs: ports u and signals.   faults: port of the faults of all rates, one after another.   size: of the pool.
    tick: [s] between two calls, None if the law may be called at any time.
    """

    inputs: tuple[tuple[Port, tuple[int, ...]], ...]
    constants: tuple[tuple[int, float, Entry], ...]
    state: tuple[tuple[int, float, Entry], ...]
    rates: tuple[RateGroup, ...]
    result: Program
    outputs: tuple[Port, ...]
    faults: Port
    size: int
    tick: float | None

    @property
    def programs(self) -> tuple[Program, ...]:
        """The Programs of all rates, then that of the outputs."""
        return (*[rate.program for rate in self.rates], self.result)

    @property
    def operations(self) -> int:
        """Largest number of operations in one call: that of a call in which every part is evaluated."""
        return sum(program.n_ops for program in self.programs)

    @property
    def counts(self) -> bool:
        """Whether the C code must count calls, because some part is not evaluated in every call."""
        return any((rate.period, rate.phase) != (1, 0) for rate in self.rates)


class Calls(NamedTuple):
    """Recorded successive calls, the first one from the start state.   inputs, outputs: {port: (calls, n)}.
    faults: (calls, nf).   state: (n,) after the last call."""

    inputs: dict[str, np.ndarray]
    outputs: dict[str, np.ndarray]
    faults: np.ndarray
    state: np.ndarray

    @property
    def failed(self) -> np.ndarray:
        """(calls,) whether each call raises a fault or gives an output that is not finite."""
        lost = [~np.isfinite(x).all(axis=1) for x in self.outputs.values()]
        return np.any([(self.faults != 0).any(axis=1), *lost], axis=0)


def controller(
    law: Control,
    mechanism: Mechanism,
    *,
    period: float | None = None,
    tick: float | None = None,
    parameters: Any = None,
    tunable: Sequence[str] = (),
    saturate: bool = False,
    precision: str = "double",
) -> Controller:
    """The law as a function that is called once a tick. It takes the arguments of `export` and raises the same errors."""
    with building_for(precision):
        return _controller(law, mechanism, period, tick, parameters, tunable, saturate)


def _controller(
    law: Control,
    mechanism: Mechanism,
    period: float | None,
    tick: float | None,
    parameters: Any,
    tunable: Sequence[str],
    saturate: bool,
) -> Controller:
    """The law as a function, built for the arithmetic of the context."""
    m = as_mechanism(mechanism)
    if not isinstance(law, Control):
        raise ModelError(
            f"export: a control law is needed, got {brief(law)}; discrete(...) makes one of a function of a Sample"
        )
    free = not law.parts and not law.z and period is None and tick is None
    law = _in_discrete_time(law, period)
    parts = [part for part in law.parts if not part.sensor]
    tick = _tick(parts, tick)
    names = _tunable(m, tunable)
    values = parameter_values(m, parameters)
    if len(values) > 1:
        raise ModelError(f"export: parameters: one value for each is needed, got those of {len(values)} runs")
    pool = _Pool(law, m)
    called = [answer for answer in pool.answers if not answer.part.sensor]
    groups = groupby(called, key=lambda answer: (answer.part.period, answer.part.phase))
    rates = [pool.rate(list(group), tick, saturate) for _, group in groups]
    outputs, result = pool.outputs(saturate)
    needed = pool.read(result, *[rate.program for rate in rates])
    rates = [_without_unread(rate, needed) for rate in rates]
    by_rates, by_result = pool.read(*[rate.program for rate in rates]), pool.read(result)
    computed = {place for rate in rates for place in rate.changed}
    # A number that every call computes anew before it is read need not be stored.
    always = all((rate.period, rate.phase) == (1, 0) for rate in rates)
    stored = by_rates | (by_result - computed if always else by_result)
    ports, given = pool.ports(names), {place for _, places in pool.ports(names) for place in places}
    return Controller(
        inputs=tuple((port, places) for port, places in ports if (by_rates | by_result) & set(places)),
        constants=tuple(x for x in pool.parameters(values[0]) if x[0] in by_rates | by_result and x[0] not in given),
        state=tuple(x for x in pool.memory() if x[0] in stored and x[0] not in given),
        rates=tuple(rates),
        result=result,
        outputs=outputs,
        faults=Port(
            "faults", "not zero where the law cannot go on", tuple(Entry(f.meaning) for part in parts for f in part.faults)
        ),
        size=pool.size,
        tick=None if free else tick,
    )


def _in_discrete_time(law: Control, period: float | None) -> Control:
    """The law in discrete time; a continuous one gets the period. Raises ModelError: the law cannot be exported."""
    if any(part.python for part in law.parts):
        raise ModelError("export: a law in Python cannot be translated to C: write it with CasADi's functions, see discrete")
    if not law.parts:
        if period is None and law.z:
            raise ModelError("export: this law integrates in continuous time; say how often it is called: period=0.005 [s]")
        return discrete(law, 1.0 if period is None else period)  # a law without memory may have any period
    if period is not None:
        raise ModelError("export: this law has a period of its own; leave out `period`")
    if in_continuous_time(law):
        raise ModelError("export: a part of this law is in continuous time: give it a period, by discrete(...)")
    if all(part.sensor for part in law.parts):
        raise ModelError("export: there is nothing but sensors in this law")
    return law


def _tick(parts: Sequence[LawPart], tick: Any) -> float:
    """Time between two calls [s]: the given one, else the longest that divides all periods and phases."""
    if tick is not None:
        tick = named_float(tick, "export: tick")
        if not tick > 0:
            raise ModelError(f"export: tick must be a time above zero, got {tick:g}")
    else:
        times = [Fraction(x).limit_denominator(10**9) for part in parts for x in (part.period, part.phase) if x]
        tick = float(Fraction(gcd(*[x.numerator * (lcm(*[y.denominator for y in times]) // x.denominator) for x in times]),
                              lcm(*[y.denominator for y in times])))  # fmt: skip
    sampling(parts, tick)
    return tick


def _tunable(m: Mechanism, tunable: Any) -> tuple[str, ...]:
    """Names of the parameters that become inputs. Raises ModelError: the mechanism has no such parameter."""
    names = tuple(tunable) if not isinstance(tunable, str) else (tunable,)
    for name in names:
        if name not in m.p_names:
            raise ModelError(f"export: tunable: there is no parameter {brief(name)}; the parameters are {', '.join(m.p_names)}")
    return names


def _unknown(d: ca.SX) -> ca.SX:
    """Raise ModelError: the law asks for all inputs that act on the machine, which an embedded processor cannot know."""
    raise ModelError("export: the law takes `acting`, all inputs of the machine; let a sensor measure those that it needs")


class _Pool:
    """The pool of a law on a mechanism: its symbols, and the indices of each group of them."""

    def __init__(self, law: Control, m: Mechanism) -> None:
        self.law, self.m = law, m
        self.answers = part_functions(law, m)
        self.at = layout(law.parts, sizes(self.answers))
        self.units = units(law)
        self.T = as_system(m).at().T
        w, d, F = ca.SX.sym("w", len(law.w_names)), ca.SX.sym("d", self.at.size), ca.SX.sym("F", m.nv)
        T = self.T
        self.symbols = {"t": T.t, "q": T.q, "v": T.v, "w": w, "p": m.p_symbols, "reaction": F, "d": d}
        self.places: dict[str, range] = {}
        self.size = 0
        for name, x in self.symbols.items():
            self.places[name] = range(self.size, self.size + x.numel())
            self.size += x.numel()

    def program(self, *outputs: ca.SX) -> Program:
        """The Program pool -> outputs."""
        given = ca.vertcat(*[ca.densify(x) for x in self.symbols.values()])
        f = ca.Function("pool", [given], [ca.densify(x) for x in outputs])
        return optimise(trace(f, passes()), passes())

    def read(self, *programs: Program) -> set[int]:
        """Indices of the pool's entries that the Programs read."""
        values = {v for program in programs for v in program.words[argument_words(program)].tolist()}
        values |= {v for program in programs for output in program.outputs for v in output}
        return {v for v in values if v < self.size}

    def rate(self, group: Sequence[PartFunction], tick: float, saturate: bool) -> RateGroup:
        """What the parts of the law with the same period and phase share: their function, inputs and instants."""
        x = self.symbols
        loads = Loads(_unknown, lambda d: x["reaction"])
        after, faults = evaluate_parts(group, self.at, self.T, x["d"], x["w"], loads, saturate)
        program = self.program(after, faults)
        changed = [k for k, (i, v) in enumerate(zip(self.places["d"], program.outputs[0], strict=True)) if v != i]
        program = replace(program, outputs=(tuple(program.outputs[0][k] for k in changed), program.outputs[1]))
        ((period, phase),) = sampling([group[0].part], tick)
        return RateGroup(program, tuple(self.places["d"][k] for k in changed), period, phase)

    def outputs(self, saturate: bool) -> tuple[tuple[Port, ...], Program]:
        """The output ports, u and signals, and the Program that computes them."""
        d, m = self.symbols["d"], self.m
        motors = len(m.motor_names)
        u = self.at.u(d, m.nu, self.T.t)
        u = ca.densify(saturated(m, u) if saturate else u)[:motors, 0]
        parts = [placed for placed in self.at.parts if not placed.part.sensor]
        entries = [e for placed in parts for e in self._of_signals(placed.signals)]
        ports, columns = [], [ca.SX(0, 1)]
        if any(placed.inputs for placed in parts):
            ports.append(Port("u", "inputs of the machine", _entries(m.motor_names, m.u_units[:motors])))
            columns.append(u)
        if entries:
            ports.append(Port("signals", "signals", tuple(entries)))
            columns += [placed.sampled_signals(d) for placed in parts]
        if not ports:
            raise ModelError("export: the law gives neither inputs nor signals")
        return tuple(ports), self.program(ca.vertcat(*columns))

    def ports(self, tunable: Sequence[str]) -> list[tuple[Port, tuple[int, ...]]]:
        """All input ports that a call may have, whether the law reads them or not, each with its indices in the pool."""
        m, at = self.m, self.places
        where = dict(zip(m.p_names, at["p"], strict=True))
        unit = {p.name: p.unit for p in m.parameters}
        measured = list[tuple[int, Entry]]()
        for placed in self.at.parts:
            if placed.part.sensor:
                measured += zip(at["d"][placed.slots.given], self._of_signals(placed.signals), strict=True)
        reactions = _entries(m.v_names, [force_unit(u) for u in m.v_units])
        ports = [
            (Port("t", "time", (Entry("t", "s"),)), at["t"]),
            (Port("q", "coordinates", _entries(m.q_names, m.q_units)), at["q"]),
            (Port("v", "velocities", _entries(m.v_names, m.v_units)), at["v"]),
            (Port("w", "inputs of the law", tuple(map(Entry, self.law.w_names))), at["w"]),
            (Port("p", "parameters", tuple(Entry(n, unit[n]) for n in tunable)), [where[n] for n in tunable]),
            (Port("reaction", "measured generalised reaction along v", reactions), at["reaction"]),
            (Port("y", "the newest samples of sensors", tuple(e for _, e in measured)), [place for place, _ in measured]),
        ]
        return [(port, tuple(places)) for port, places in ports]

    def parameters(self, values: np.ndarray) -> list[tuple[int, float, Entry]]:
        """Index in the pool, value and name of each parameter."""
        names = [Entry(p.name, p.unit) for p in self.m.parameters]
        return list(zip(self.places["p"], values.tolist(), names, strict=True))

    def memory(self) -> list[tuple[int, float, Entry]]:
        """Index in the pool, start value and name of each number of the law's discrete state d."""
        m, labels = self.m, [Entry("")] * self.at.size
        for part, inputs, signals, slots in self.at.parts:
            given = [*_entries(m.u_names[:inputs], m.u_units[:inputs]), *self._of_signals(signals)]
            labels[slots.given] = given
            labels[slots.ring] = [e._replace(name=f"{e.name}, on its way") for e in given] * part.latency
            labels[slots.state] = self._of_signals([(name, len(x)) for name, x in part.state])
            if slots.before.stop > slots.before.start:
                labels[slots.before] = [e._replace(name=f"{e.name}, before") for e in given[:inputs]]
                labels[slots.since] = [Entry("since when", "s")]
        return list(zip(self.places["d"], self.at.start.tolist(), labels, strict=True))

    def _of_signals(self, signals: Sequence[tuple[str, int]]) -> list[Entry]:
        """An Entry for each number of the signals, given as (name, length)."""
        return [Entry(name if n == 1 else f"{name} {i}", self.units.get(name, "")) for name, n in signals for i in range(n)]


def _entries(names: Sequence[str], of: Sequence[str]) -> tuple[Entry, ...]:
    """An Entry for each name.   of: units of the names."""
    return tuple(Entry(n, u) for n, u in zip(names, of, strict=True))


def _without_unread(rate: RateGroup, needed: set[int]) -> RateGroup:
    """The rate without those new values that no Program reads."""
    pairs = [(place, v) for place, v in zip(rate.changed, rate.program.outputs[0], strict=True) if place in needed]
    if len(pairs) == len(rate.changed):
        return rate
    program = replace(rate.program, outputs=(tuple(v for _, v in pairs), rate.program.outputs[1]))
    return rate._replace(program=optimise(program, passes()), changed=tuple(place for place, _ in pairs))


def random_inputs(c: Controller, m: Mechanism, calls: int, random: np.random.Generator) -> dict[str, np.ndarray]:
    """Random inputs (calls, n) of each port: valid coordinates, increasing times, default parameters, else normal numbers."""
    drawn: dict[str, np.ndarray] = {p.name: random.normal(size=(calls, len(p.entries))) for p, _ in c.inputs}
    if "t" in drawn:
        drawn["t"] = np.arange(calls)[:, None] * (c.tick or 0.01)
    if "q" in drawn:
        drawn["q"] = np.array([random_configuration(m, random) for _ in range(calls)])
    if "p" in drawn:
        (port,) = [port for port, _ in c.inputs if port.name == "p"]
        drawn["p"] = np.tile([m.p_defaults[m.p_names.index(e.name)] for e in port.entries], (calls, 1))
    return drawn


def as_inputs(c: Controller, given: Mapping[str, Any], what: str) -> dict[str, np.ndarray]:
    """The given inputs as arrays (calls, n), one for each port.   what: their name in messages.

    Raises ModelError: a port is missing or has another shape, a name is not that of a port, or there is no call.
    """
    known = {port.name: len(port.entries) for port, _ in c.inputs}
    arrays = {name: floats(x, f"export: {what} {name!r}") for name, x in given.items()}
    for name, x in arrays.items():
        if name in known and x.ndim == 1 and known[name] == 1:
            arrays[name] = x[:, None]
        elif name in known and (x.ndim != 2 or x.shape[1] != known[name]):
            raise ModelError(f"export: {what} {name!r}: (calls, {known[name]}) is needed, got {x.shape}")
    if known.keys() != arrays.keys() or len({len(arrays[name]) for name in known}) > 1:
        raise ModelError(
            f"export: {what}: the ports {', '.join(known)} are needed, no other, and with equal numbers of rows; "
            f"got {', '.join(arrays)}"
        )
    if any(len(x) == 0 for x in arrays.values()):
        raise ModelError(f"export: {what}: at least one call is needed")
    return {name: arrays[name] for name in known}


def call(c: Controller, inputs: Mapping[str, np.ndarray], kind: Any = np.float64) -> Calls:
    """Evaluate successive calls by the NumPy interpreter, in numbers of the given kind (float64 or float32)."""
    calls = len(next(iter(inputs.values()))) if inputs else 1
    converted: dict[str, Any] = {name: x.astype(kind) for name, x in inputs.items()}
    pool: np.ndarray = np.zeros((calls, c.size), kind)
    for place, x, _ in (*c.constants, *c.state):
        pool[:, place] = constant(x, kind)
    for port, places in c.inputs:
        pool[:, list(places)] = converted[port.name]
    table: np.ndarray = np.zeros((calls, c.result.n_out), kind)
    faults: np.ndarray = np.zeros((calls, len(c.faults.entries)), kind)
    memory = [place for place, _, _ in c.state]
    # Calls that keep nothing for the next one are evaluated together.
    for rows in [slice(k, k + 1) for k in range(calls)] if memory or c.counts else [slice(0, calls)]:
        first = 0
        for rate in c.rates:
            n = len(rate.program.outputs[1])
            if rows.start >= rate.phase and (rows.start - rate.phase) % rate.period == 0:
                pool[rows, list(rate.changed)], faults[rows, first : first + n] = evaluate(rate.program, [pool[rows]], kind)
            first += n
        (table[rows],) = evaluate(c.result, [pool[rows]], kind)
        pool[rows.stop : rows.stop + 1, memory] = pool[rows.stop - 1, memory]
    ends = np.cumsum([0, *[len(port.entries) for port in c.outputs]])
    outputs = {port.name: table[:, a:b] for port, a, b in zip(c.outputs, ends, ends[1:], strict=False)}
    return Calls(converted, outputs, faults, pool[-1, memory])
