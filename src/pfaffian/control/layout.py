"""The parts of a law in discrete time as CasADi functions, and the layout of their values in the state of a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import takewhile
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from pfaffian.control.command import Command, as_command
from pfaffian.control.discrete_laws import entry_names
from pfaffian.control.law import Control
from pfaffian.control.law_part import LawPart, Sample
from pfaffian.errors import ModelError, listed
from pfaffian.maths.random import Stream, split_seed
from pfaffian.model.mechanism import Mechanism
from pfaffian.model.user_functions import call_for_value, in_symbols
from pfaffian.terms.terms import Terms, symbols

STREAM = 3
"""Number of entries of a random Stream in the state of a run."""


class PartFunction(NamedTuple):
    """The function that evaluates a part at one of its instants.

    function: (q, v, t, p, w, u, acting, F, stream, others, state, count) -> (given, next state, faults). u are the inputs that
    laws in discrete time hold, acting all inputs that act, F the generalised reaction under these, others the signals that
    earlier parts hold, state the part's discrete state, count the number of the sample; given is u, then the part's signals.
    inputs: number of entries of `given` that are u: nu, or 0.   signals: names and sizes of the other entries.
    uses_inputs, uses_reaction: whether the part depends on `acting` and on F.
    """

    part: LawPart
    function: ca.Function
    inputs: int
    signals: tuple[tuple[str, int], ...]
    uses_inputs: bool
    uses_reaction: bool


def part_functions(control: Control, m: Mechanism) -> tuple[PartFunction, ...]:
    """The PartFunction of each part of a law.

    Raises ModelError: a law fails, or its Command does not fit the mechanism or the declarations of the part.
    """
    T = symbols(m)
    idle = Terms(m, T.q, T.v, ca.SX(m.nu, 1), T.t)
    w = ca.SX.sym("w", len(control.w_names))
    u, acting, F, stream = (ca.SX.sym(n, k) for n, k in (("u", m.nu), ("acting", m.nu), ("F", m.nv), ("stream", STREAM)))
    common = [T.q, T.v, T.t, m.p_symbols, w, u, acting, F, stream]
    earlier: dict[str, ca.SX] = {}
    plain: dict[str, ca.SX] = {}
    passed_on: set[str] = set()
    functions: list[PartFunction] = []
    for part in control.parts:
        what = f"the law {part.name!r} in discrete time" if part.name != "law" else "the law in discrete time"
        state = {name: ca.SX.sym(name, len(start)) for name, start in part.state}
        count, others = ca.SX.sym("count"), ca.vertcat(ca.SX(0, 1), *earlier.values())
        run = {name: w[i] for i, name in enumerate(control.w_names)} | offered(plain, passed_on)
        read = {name: run[name] for name in part.inputs if name in run}
        known = {**earlier, **plain, **read, **state}
        numbers = Stream(*ca.vertsplit(stream))
        command = as_command(
            call_for_value(part.call, what, Sample(idle, u, known, acting, F, part.name, count, numbers)), what
        )
        _check(command, part, m, what)
        next_state = ca.vertcat(ca.SX(0, 1), *[command.d_next[name] for name in state])
        given = ca.vertcat(command.u, *command.signals.values())
        inputs = [*common, others, ca.vertcat(ca.SX(0, 1), *state.values()), count]
        outputs = [in_symbols(x, what, inputs) for x in (given, next_state, command.faults)]
        sizes = tuple((name, x.numel()) for name, x in command.signals.items())
        f, values = ca.Function("answer", inputs, outputs), ca.veccat(*outputs)
        functions.append(
            PartFunction(part, f, command.u.numel(), sizes, ca.depends_on(values, acting), ca.depends_on(values, F))
        )
        symbolic = {name: ca.SX.sym(name, n) for name, n in sizes}
        for name in symbolic:
            if f"{part.name}.{name}" in earlier:
                raise ModelError(f"{what}: two signals or sensors are called {name!r}")
        earlier |= {f"{part.name}.{name}": x for name, x in symbolic.items()}
        plain = symbolic | plain
        passed_on |= set(part.gives)
    return tuple(functions)


def offered(signals: Mapping[str, ca.SX], names: Iterable[str]) -> dict[str, ca.SX]:
    """The named signals as later parts read them: each as a column, and one with several entries also entry by entry."""
    result: dict[str, ca.SX] = {}
    for name in names:
        result[name], column = signals[name], signals[name]
        result |= dict(zip(entry_names(name, column.numel()), ca.vertsplit(column), strict=True)) if column.numel() > 1 else {}
    return result


def _check(command: Command, part: LawPart, m: Mechanism, what: str) -> None:
    """Raise ModelError where a Command does not fit the mechanism or the part's declaration."""
    if command.u.numel() not in (0, m.nu):
        raise ModelError(f"{what} gives {command.u.numel()} inputs: {m.nu} are needed, or none if the law only gives signals")
    if command.z_dot.numel():
        raise ModelError(f"{what} gives z_dot: a law in discrete time returns the next values of its state in d_next instead")
    if command.faults.numel() != len(part.faults):
        raise ModelError(f"{what} gives {command.faults.numel()} faults where {len(part.faults)} are declared")
    if part.start and len(part.start) != m.nu:
        raise ModelError(f"{what}: start has {len(part.start)} numbers, but the mechanism has {m.nu} inputs")
    for name in part.gives:
        if name not in command.signals or not command.signals[name].numel():
            raise ModelError(f"{what}: it gives no signal {name!r}; its Command has {listed(tuple(command.signals))}")
    sizes = {name: len(start) for name, start in part.state}
    for name in [*sizes, *command.d_next]:
        got = command.d_next[name].numel() if name in command.d_next else 0
        if sizes.get(name, 0) != got:
            raise ModelError(f"{what}: d_next has {got} numbers of {name!r} where its state has {sizes.get(name, 0)}")
    for name in sizes:
        if name in command.signals or name in part.inputs:
            raise ModelError(
                f"{what}: its state and {'a signal' if name in command.signals else 'an input'} are both called {name!r}"
            )


class Slots(NamedTuple):
    """Slices of d, the discrete part of a run's state, that contain the values of one part of a law.

    given: its u and signals in force.   ring: the delay line of those that take effect later.   state: its discrete state.
    drawn: the number of its samples, if it draws random numbers.   before, since: with a first-order hold, the u that preceded
    the one in force, and the time at which the latter took effect [s].
    """

    given: slice
    ring: slice
    state: slice
    drawn: slice
    before: slice
    since: slice


class PlacedPart(NamedTuple):
    """A part of a law, with the sizes of its outputs and the slots of its values in d.

    inputs: number of its outputs that are u: nu, or 0.   signals: names and sizes of its other outputs.
    """

    part: LawPart
    inputs: int
    signals: tuple[tuple[str, int], ...]
    slots: Slots

    def u(self, d: ca.SX, t: ca.SX) -> ca.SX:
        """(inputs, 1) its inputs u of the mechanism at the time t [s]."""
        given, before = d[self.slots.given, 0][: self.inputs, 0], d[self.slots.before, 0]
        if not before.numel():
            return given
        return given + (given - before) * ((t - d[self.slots.since, 0]) / self.part.period)

    def sampled_signals(self, d: ca.SX) -> ca.SX:
        """Its signals in force, stacked into a column."""
        return d[self.slots.given, 0][self.inputs :, 0]

    @property
    def named(self) -> list[tuple[str, slice]]:
        """Name and slice of d of each of its signals, then of each part of its discrete state."""
        state = [(name, len(values)) for name, values in self.part.state]
        slices: list[tuple[str, slice]] = []
        for at, entries in ((self.slots.given.start + self.inputs, self.signals), (self.slots.state.start, state)):
            for name, n in entries:
                slices.append((name, slice(at, at + n)))
                at += n
        return slices


class Layout(NamedTuple):
    """The layout of d (size,), the discrete part of a run's state.

    parts: the parts of the law in the order of their evaluation.   signals: {recorded name: slice of d}.
    stream: slice of the random Stream, empty if no random numbers are drawn.   switched: slice of the parameters that the run
    changes.   events: slice with what locates events (`EventNumbers`), empty where a run has none.
    start: (size,) start values, zero for the Stream and the parameters.
    """

    parts: tuple[PlacedPart, ...]
    signals: Mapping[str, slice]
    stream: slice
    switched: slice
    events: slice
    start: np.ndarray

    @property
    def size(self) -> int:
        """Number of entries of d."""
        return len(self.start)

    def of(self, part: LawPart) -> PlacedPart:
        """Where the values of a part of the law are within d and w."""
        (match,) = [placed for placed in self.parts if placed.part is part]
        return match

    def earlier(self, part: LawPart, d: ca.SX) -> ca.SX:
        """The signals that the parts before this one hold, stacked into a column."""
        before = takewhile(lambda placed: placed.part is not part, self.parts)
        return ca.vertcat(ca.SX(0, 1), *[placed.sampled_signals(d) for placed in before])

    def u(self, d: ca.SX, nu: int, t: ca.SX) -> ca.SX:
        """(nu, 1) sum of the inputs that all parts hold at the time t [s]."""
        total = ca.SX(nu, 1)
        for placed in self.parts:
            total = total + placed.u(d, t) if placed.inputs else total
        return total

    def started(self, runs: int, seed: Any, switched: np.ndarray | None = None) -> np.ndarray:
        """(runs, size) start values of d, with the values (1 or runs, ...) of the switched parameters.

        seed: one seed, from which each run gets its own sequence of random numbers; or (runs,) seeds, each of which gives the
        sequence of a single run with that seed.
        """
        d = np.tile(self.start, (runs, 1))
        if switched is not None:
            d[:, self.switched] = switched
        if self.stream.stop > self.stream.start:
            words = np.array([split_seed(int(one)) for one in np.ravel(seed)])
            d[:, self.stream] = np.column_stack([np.broadcast_to(words, (runs, 2)), np.arange(runs) * (np.ndim(seed) == 0)])
        return d


GroupSizes = Sequence[tuple[int, Sequence[tuple[str, int]]]]
"""For each part in order, the number of its inputs, and names and sizes of its signals; stored for the next run."""


def sizes(functions: Sequence[PartFunction]) -> list[tuple[int, tuple[tuple[str, int], ...]]]:
    """The sizes of the outputs of each part."""
    return [(f.inputs, f.signals) for f in functions]


class EventNumbers(NamedTuple):
    """The numbers in d that locate events.

    aim: where the next part of a step ends [s], NO_AIM where nothing is expected.   count: number of the parts of a step of one
    length, or of events in quick succession.   last: index of the name that changed at the last event.   width: exactness of
    the instant of the event ahead, relative to that of other events.   total: number of the events of the run so far.
    still: number of the steps of late that met one at which what is compared stands still; it falls with time.
    Of steps of one length alone: done: part of the step that is done [s].   unsplit: number of steps that were not split at
    all of their events.   finer: 1 in a solution that tells the error of another one: where a step meets events, it makes what
    lies between two of them in two parts; 2 after the first of these; 0 elsewhere.
    """

    aim: Any
    count: Any
    last: Any
    width: Any
    total: Any
    still: Any
    done: Any
    unsplit: Any
    finer: Any


TO_ACCURACY = 6
"""Number of the first `EventNumbers`, which steps under error control change."""

NO_AIM = 1e11
"""Where the next part of a step ends that may end anywhere [s]."""

NO_EVENTS = EventNumbers(NO_AIM, 0.0, -1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0)
"""The numbers of a run before its first event."""


def layout(
    parts: Sequence[LawPart],
    output_sizes: GroupSizes,
    switched: Sequence[str] = (),
    visible: Sequence[str] = (),
    eventful: bool = False,
) -> Layout:
    """The Layout of d.

    parts: of a law, in order.   output_sizes: of these parts.   switched: names of the parameters that the run changes.
    visible: those among them that are recorded.   eventful: whether the run has events.
    Raises ModelError: a switched parameter and a signal have the same name.
    """
    start: list[float] = []

    def place(values: Sequence[float]) -> slice:
        """Append start values to d and return their slice."""
        start.extend(values)
        return slice(len(start) - len(values), len(start))

    placed = tuple(
        PlacedPart(
            part, inputs, tuple((name, n) for name, n in signals), _slots(part, inputs, sum(n for _, n in signals), place)
        )
        for part, (inputs, signals) in zip(parts, output_sizes, strict=True)
    )
    stream = place([0.0] * (STREAM if any(part.random for part in parts) else 0))
    modes = place([0.0] * len(switched))
    at = dict(zip(switched, range(modes.start, modes.stop), strict=True))
    events = place(NO_EVENTS if eventful else ())
    return Layout(placed, _named(placed, at, visible), stream, modes, events, np.array(start))


def _slots(part: LawPart, inputs: int, others: int, place: Callable[[Sequence[float]], slice]) -> Slots:
    """Place the values of a part in d.   inputs, others: numbers of its inputs and of the entries of its signals.

    place: function that appends start values to d and returns their slice.
    """
    first = [*(part.start or [0.0] * inputs)[:inputs], *[0.0] * others]
    ramp = part.hold == "first" and inputs
    return Slots(
        given=place(first),
        ring=place(first * part.latency),
        state=place([x for _, values in part.state for x in values]),
        drawn=place([0.0] * part.random),
        before=place(first[:inputs] if ramp else ()),
        since=place([0.0] if ramp else ()),
    )


def _named(parts: Sequence[PlacedPart], switched: Mapping[str, int], visible: Sequence[str]) -> dict[str, slice]:
    """{recorded name: slice of d}; a name that several parts use gets the name of its part as a prefix.

    switched: index in d of each parameter that the run changes.   visible: those that are recorded.
    """
    places = [(placed.part.name, name, where) for placed in parts for name, where in placed.named]
    uses = Counter(name for _, name, _ in places)
    named = {f"{owner}.{name}" if uses[name] > 1 else name: where for owner, name, where in places}
    for name in visible:
        if name in named:
            raise ModelError(f"switch {name!r}: the law has a signal of that name; rename one of the two")
        named[name] = slice(switched[name], switched[name] + 1)
    return named


def units(control: Control) -> dict[str, Any]:
    """{signal: unit} of the recorded signals that have one."""
    return {**control.units, **{name: unit for part in control.parts for name, unit in part.units.items()}}


def entries(control: Control) -> dict[str, tuple[str, ...]]:
    """{signal: names of its entries} of the recorded signals whose entries have names."""
    named = {**control.entries, **{name: names for part in control.parts for name, names in part.entries.items()}}
    return {name: tuple(names) for name, names in named.items()}
