"""What the parts of a law in discrete time answer, as functions; and where their values are in a run's state."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import takewhile
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from pfaffian.control.discrete import LawPart, Sample, entry_names
from pfaffian.control.law import Command, Control, as_command
from pfaffian.errors import ModelError, listed
from pfaffian.maths.random import Stream, split_seed
from pfaffian.model.caller import ask_value, in_symbols
from pfaffian.model.mechanism import Mechanism
from pfaffian.terms.terms import Terms, symbols

STREAM = 3
"""Numbers of a Stream."""


class PartFunction(NamedTuple):
    """What a part answers at an instant.

    function: (q, v, t, p, w, u, acting, F, stream, others, state, count) -> (given, next state, faults); u what laws in
    discrete time hold, acting all inputs that act, F the generalised reaction under these, others what all parts before it
    hold, state its discrete state, given u and then its signals.
    inputs: how many of `given` are u: nu, or 0.   signals: names and sizes of the others.   feels, reacts: whether it depends
    on `acting` and on F.
    """

    part: LawPart
    function: ca.Function
    inputs: int
    signals: tuple[tuple[str, int], ...]
    feels: bool
    reacts: bool


def part_functions(control: Control, m: Mechanism) -> tuple[PartFunction, ...]:
    """The PartFunction of each part. Raises ModelError: a law fails, or does not fit the mechanism or its declaration."""
    T = symbols(m)
    idle = Terms(m, T.q, T.v, ca.SX(m.nu, 1), T.t)
    w = ca.SX.sym("w", len(control.w_names))
    u, acting, F, stream = (ca.SX.sym(n, k) for n, k in (("u", m.nu), ("acting", m.nu), ("F", m.nv), ("stream", STREAM)))
    common = [T.q, T.v, T.t, m.p_symbols, w, u, acting, F, stream]
    earlier: dict[str, ca.SX] = {}
    plain: dict[str, ca.SX] = {}
    passed_on: set[str] = set()
    found: list[PartFunction] = []
    for part in control.parts:
        what = f"the law {part.name!r} in discrete time" if part.name != "law" else "the law in discrete time"
        state = {name: ca.SX.sym(name, len(start)) for name, start in part.state}
        count, others = ca.SX.sym("count"), ca.vertcat(ca.SX(0, 1), *earlier.values())
        run = {name: w[i] for i, name in enumerate(control.w_names)} | offered(plain, passed_on)
        read = {name: run[name] for name in part.inputs if name in run}
        known = {**earlier, **plain, **read, **state}
        numbers = Stream(*ca.vertsplit(stream))
        command = as_command(ask_value(part.call, what, Sample(idle, u, known, acting, F, part.name, count, numbers)), what)
        _check(command, part, m, what)
        next_state = ca.vertcat(ca.SX(0, 1), *[command.d_next[name] for name in state])
        given = ca.vertcat(command.u, *command.signals.values())
        inputs = [*common, others, ca.vertcat(ca.SX(0, 1), *state.values()), count]
        outputs = [in_symbols(x, what, inputs) for x in (given, next_state, command.faults)]
        sizes = tuple((name, x.numel()) for name, x in command.signals.items())
        f, every = ca.Function("answer", inputs, outputs), ca.veccat(*outputs)
        found.append(PartFunction(part, f, command.u.numel(), sizes, ca.depends_on(every, acting), ca.depends_on(every, F)))
        symbolic = {name: ca.SX.sym(name, n) for name, n in sizes}
        for name in symbolic:
            if f"{part.name}.{name}" in earlier:
                raise ModelError(f"{what}: two signals or sensors are called {name!r}")
        earlier |= {f"{part.name}.{name}": x for name, x in symbolic.items()}
        plain = symbolic | plain
        passed_on |= set(part.gives)
    return tuple(found)


def offered(signals: Mapping[str, ca.SX], names: Iterable[str]) -> dict[str, ca.SX]:
    """The signals of these names, by which later parts read them, and the entries of those that have several."""
    found: dict[str, ca.SX] = {}
    for name in names:
        found[name], column = signals[name], signals[name]
        found |= dict(zip(entry_names(name, column.numel()), ca.vertsplit(column), strict=True)) if column.numel() > 1 else {}
    return found


def _check(command: Command, part: LawPart, m: Mechanism, what: str) -> None:
    """Raise ModelError where a Command does not fit the mechanism or the part's declaration."""
    if command.u.numel() not in (0, m.nu):
        raise ModelError(f"{what} gives {command.u.numel()} inputs: {m.nu} are needed, or none if the law only gives signals")
    if command.z_dot.numel():
        raise ModelError(f"{what} gives z_dot: it has a discrete state instead, whose next values go into d_next")
    if command.faults.numel() != len(part.faults):
        raise ModelError(f"{what} gives {command.faults.numel()} faults where {len(part.faults)} are declared")
    if part.start and len(part.start) != m.nu:
        raise ModelError(f"{what}: start has {len(part.start)} numbers, the mechanism {m.nu} inputs")
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
                f"{what}: its state and {'a signal' if name in command.signals else 'an input'} are called {name!r}"
            )


class Slots(NamedTuple):
    """Where the values of a part are. given: u and signals in force.   ring: the delay line of later ones.   state: its
    discrete state.
    drawn: count of its samples, where it draws random numbers.   before, since: with a first-order hold the u before that in
    force, and the time at which this took effect [s].
    """

    given: slice
    ring: slice
    state: slice
    drawn: slice
    before: slice
    since: slice


class PlacedPart(NamedTuple):
    """A part of a law, what it gives, and where its values are in d.

    inputs: how many of `given` are u: nu, or 0.   signals: names and sizes of the others.
    """

    part: LawPart
    inputs: int
    signals: tuple[tuple[str, int], ...]
    slots: Slots

    def u(self, d: ca.SX, t: ca.SX) -> ca.SX:
        """(inputs, 1) what it gives at the time t [s]."""
        given, before = d[self.slots.given, 0][: self.inputs, 0], d[self.slots.before, 0]
        if not before.numel():
            return given
        return given + (given - before) * ((t - d[self.slots.since, 0]) / self.part.period)

    def sampled_signals(self, d: ca.SX) -> ca.SX:
        """Its signals in force, one after another."""
        return d[self.slots.given, 0][self.inputs :, 0]

    @property
    def named(self) -> list[tuple[str, slice]]:
        """Its signals, then its discrete state, by name."""
        state = [(name, len(values)) for name, values in self.part.state]
        found: list[tuple[str, slice]] = []
        for at, entries in ((self.slots.given.start + self.inputs, self.signals), (self.slots.state.start, state)):
            for name, n in entries:
                found.append((name, slice(at, at + n)))
                at += n
        return found


class Layout(NamedTuple):
    """Where everything is in d (size,), the discrete part of a run's state.

    parts: of the law, in the order of their evaluation.   signals: recorded name -> where.
    stream: the Stream, empty if no random numbers are drawn.   switched: parameters that the run changes.   start: (size,)
    start values, without Stream and parameters.
    """

    parts: tuple[PlacedPart, ...]
    signals: Mapping[str, slice]
    stream: slice
    switched: slice
    start: np.ndarray

    @property
    def size(self) -> int:
        return len(self.start)

    def of(self, part: LawPart) -> PlacedPart:
        (found,) = [placed for placed in self.parts if placed.part is part]
        return found

    def earlier(self, part: LawPart, d: ca.SX) -> ca.SX:
        """The signals that all parts before this one hold, one after another."""
        before = takewhile(lambda placed: placed.part is not part, self.parts)
        return ca.vertcat(ca.SX(0, 1), *[placed.sampled_signals(d) for placed in before])

    def u(self, d: ca.SX, nu: int, t: ca.SX) -> ca.SX:
        """(nu, 1) inputs in force at the time t [s]."""
        total = ca.SX(nu, 1)
        for placed in self.parts:
            total = total + placed.u(d, t) if placed.inputs else total
        return total

    def started(self, runs: int, seed: Any, switched: np.ndarray | None = None) -> np.ndarray:
        """(runs, size) start values of d, with the switched parameters (1 or runs, ...).

        seed: one, of which each run has a sequence of its own; or (runs,): each run has that of a single run with its seed.
        """
        d = np.tile(self.start, (runs, 1))
        if switched is not None:
            d[:, self.switched] = switched
        if self.stream.stop > self.stream.start:
            words = np.array([split_seed(int(one)) for one in np.ravel(seed)])
            d[:, self.stream] = np.column_stack([np.broadcast_to(words, (runs, 2)), np.arange(runs) * (np.ndim(seed) == 0)])
        return d


Sizes = Sequence[tuple[int, Sequence[tuple[str, int]]]]
"""For each part, in order, how many inputs it gives, and its signals with their sizes: what is stored for the next run."""


def sizes(of: Sequence[PartFunction]) -> list[tuple[int, tuple[tuple[str, int], ...]]]:
    return [(a.inputs, a.signals) for a in of]


def layout(parts: Sequence[LawPart], of: Sizes, switched: Sequence[str] = ()) -> Layout:
    """The layout of the values of a law's parts, of these sizes, and of parameters that the run changes."""
    start: list[float] = []

    def place(values: Sequence[float]) -> slice:
        start.extend(values)
        return slice(len(start) - len(values), len(start))

    placed = tuple(
        PlacedPart(
            part, inputs, tuple((name, n) for name, n in signals), _slots(part, inputs, sum(n for _, n in signals), place)
        )
        for part, (inputs, signals) in zip(parts, of, strict=True)
    )
    stream = place([0.0] * (STREAM if any(part.random for part in parts) else 0))
    modes = place([0.0] * len(switched))
    return Layout(placed, _named(placed, switched, modes), stream, modes, np.array(start))


def _slots(part: LawPart, inputs: int, others: int, place: Callable[[Sequence[float]], slice]) -> Slots:
    """Slots for the values of a part that gives so many inputs and other numbers; place: start values -> where they are."""
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


def _named(parts: Sequence[PlacedPart], switched: Sequence[str], modes: slice) -> dict[str, slice]:
    """Recorded name -> where, with the prefix of its part where two parts have the same."""
    places = [(placed.part.name, name, where) for placed in parts for name, where in placed.named]
    often = Counter(name for _, name, _ in places)
    named = {f"{owner}.{name}" if often[name] > 1 else name: where for owner, name, where in places}
    for i, name in enumerate(switched, start=modes.start):
        if name in named:
            raise ModelError(f"switch {name!r}: the law has a signal of that name; give one another")
        named[name] = slice(i, i + 1)
    return named


def units(control: Control) -> dict[str, Any]:
    """Known units of recorded signals."""
    return {**control.units, **{name: unit for part in control.parts for name, unit in part.units.items()}}


def entries(control: Control) -> dict[str, tuple[str, ...]]:
    """Names of the entries of recorded signals, where they have names."""
    found = {**control.entries, **{name: names for part in control.parts for name, names in part.entries.items()}}
    return {name: tuple(names) for name, names in found.items()}
