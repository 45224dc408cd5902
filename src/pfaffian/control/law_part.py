"""The parts of a law in discrete time, and what such a part is given at an instant."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

import casadi as ca

from pfaffian.control.command import Command, Fault
from pfaffian.errors import ModelError, brief, nearest
from pfaffian.maths.random import Stream
from pfaffian.model import reprs
from pfaffian.terms.terms import Terms

HOLDS = ("zero", "first")
"""How inputs change between two instants: they keep their values, or continue the change from the last instant to this one."""


@dataclass(frozen=True, eq=False)
class Sample(Mapping[str, ca.SX]):
    """The argument of a law in discrete time at an instant: a mapping from names to columns, s["gyro"].

    Its names are those of the law's discrete state, of its sensors, of the signals of parts called before it, and of the run's
    inputs that it reads.

    terms: Terms at the state and the time terms.t, with zero inputs.
    u: (nu, 1) inputs of the mechanism from laws in discrete time, as held until this instant.
    known: the mapping as a dict.
    acting: (nu, 1) all inputs at this instant: u, those of a law in continuous time, wrenches from outside.
    reaction: (nv, 1) generalised reaction under the inputs `acting`.
    owner: name of the law.   count: number of this sample.   stream: the run's random stream.

    Example:
        >>> import pfaffian as pf
        >>> from pfaffian import control
        >>> rail = pf.joint("rail", "prismatic", "world", "cart", axis=(1, 0, 0))
        >>> m = pf.mechanism("cart", [pf.body("cart", 2.0)], [rail], actuators=[pf.actuator("motor", "rail")])
        >>> def integrate(s: control.Sample):
        ...     return control.Command(s["sum"], d_next={"sum": s["sum"] + s.terms.q})
        >>> law = control.discrete(integrate, 0.1, state={"sum": 0.0})
        >>> pf.run(m, q=[1.0], duration=0.2, step=0.1, control=law, backend="numpy")["u"].values.ravel().round(4)
        array([0., 1., 2.])
    """

    terms: Terms
    u: ca.SX
    known: Mapping[str, ca.SX]
    acting: ca.SX
    reaction: ca.SX
    owner: str
    count: ca.SX
    stream: Stream

    def __repr__(self) -> str:
        return reprs.words(self, reprs.listed(tuple(self.known)), name=self.owner)

    def __getitem__(self, name: str) -> ca.SX:
        if name not in self.known:
            raise ModelError(f"the sample of {self.owner!r} has no {brief(name)}; {nearest(name, tuple(self.known))}")
        return self.known[name]

    def __getattr__(self, name: str) -> Any:
        if name in self.__dict__.get("known", ()):
            raise AttributeError(f"a Sample has no attribute {name!r}: read s[{name!r}]")
        known = [f.name for f in fields(Sample)]
        of_terms = [*(f.name for f in fields(Terms)), *(x for x in vars(Terms) if x[0] != "_")]
        way = f"read s.terms.{name}" if name in of_terms else nearest(name, known)
        raise AttributeError(f"a Sample has no attribute {name!r}: {way}")

    def __iter__(self) -> Iterator[str]:
        return iter(self.known)

    def __len__(self) -> int:
        return len(self.known)


@dataclass(frozen=True, eq=False)
class LawPart:
    """A part of a law that is called once a period, a law itself or one of its sensors.

    name: name of the law; prefix for names of signals that another part has too.
    call: Sample -> Command, whose u and signals are held for a period and whose `d_next` is the next discrete state.
    period, phase: [s].   latency: whole periods until u and signals take effect.   hold: one of HOLDS, for u.
    state: names and start values of the discrete state.   start: (nu,) inputs until the first u takes effect, zero if empty.
    inputs: names of the inputs that it reads, of the run or of a part before it.
    gives: names of its signals that later parts read as inputs.
    faults: Faults of the law.   units, entries: of its signals.   random: whether it draws random numbers.
    python: replaces `call` by (t, q, v) -> u between compiled steps, or by (t, q, v, y) -> u if it `measures`.
    begins: whether `python` is called with (mechanism, number of runs) at the start of runs, and returns that function.
    sensor: name of the sensor; "" for a law.
    """

    name: str
    call: Callable[[Sample], Command]
    period: float
    phase: float = 0.0
    latency: int = 0
    state: tuple[tuple[str, tuple[float, ...]], ...] = ()
    inputs: tuple[str, ...] = ()
    gives: tuple[str, ...] = ()
    start: tuple[float, ...] = ()
    faults: tuple[Fault, ...] = ()
    units: Mapping[str, str] = field(default_factory=dict)
    entries: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    random: bool = False
    python: Callable[..., Any] | None = None
    measures: bool = False
    begins: bool = False
    sensor: str = ""
    hold: str = HOLDS[0]

    @property
    def title(self) -> str:
        """Name of the sensor or of the law."""
        return self.sensor or self.name

    def __repr__(self) -> str:
        late = [f"latency {self.latency}"] if self.latency else []
        return reprs.words(self, f"every {self.period:g} s", *late, name=self.title)
