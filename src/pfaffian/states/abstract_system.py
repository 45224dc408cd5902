"""What a system is: a mechanism and the state in which it is integrated, [q; v] or any other from which q and v follow.

Each kind of state is a file of this room with one final class: its data are fields, its equations methods. The methods of
`AbstractSystem` ask these equations and check what they return.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from pfaffian import kernel
from pfaffian.control.reason import foremost
from pfaffian.dynamics.motion import Motion
from pfaffian.errors import ModelError, brief
from pfaffian.kernel.program.numpy_loop import LIMIT
from pfaffian.maths.values import values
from pfaffian.model import reprs
from pfaffian.model.mechanism import Mechanism
from pfaffian.model.number import column
from pfaffian.model.traced_function import graph
from pfaffian.model.user_functions import call_for_value, in_symbols
from pfaffian.states.signal import Signal
from pfaffian.states.variables import AS_THEY_ARE, Variables, normalised
from pfaffian.terms.terms import Terms, shared, symbols

RETURNS = 1e-6
"""Largest error of a coordinate or velocity after `enter` and `show`, relative to 1 plus the largest of them."""


class StatePart(NamedTuple):
    """A named part of a system's state, recorded as a signal of that name.

    Args:
        name: of the part; "q" and "v" are those of the mechanism.
        names: of its entries.
        units: of its entries, one for each name.

    Example:
        >>> import pfaffian as pf
        >>> hinge = pf.joint("hinge", "revolute", "world", "rod", axis=(0, 1, 0))
        >>> m = pf.mechanism("pendulum", [pf.body("rod", mass=2.0, com=(0, 0, -1))], [hinge])
        >>> pf.reduction.hamiltonian(m).parts[1]
        StatePart(name='momentum', names=('hinge',), units=('N m s',))
        >>> pf.reduction.StatePart("p", names=("p_x", "p_y"), units=("N s", "N s")).units[0]
        'N s'
    """

    name: str
    names: tuple[str, ...]
    units: tuple[str, ...]


@dataclass(frozen=True, eq=False, repr=False)
class StateData:
    """The data that every kind of state has, described at `System`."""

    mechanism: Mechanism
    name: str
    parts: tuple[StatePart, ...]
    _: KW_ONLY
    named: tuple[StatePart, ...] = ()
    about: tuple[str, ...] = ()
    ends: str | None = None
    holds: bool = False
    uncorrected: tuple[int, ...] = ()


class AbstractSystem(StateData):
    """A mechanism and the state x (nx,) in which it is integrated, its parts one after another.

        x_dot = rate(T, motion, x),   (q, v) = show(x, t),   x = enter(T) where T.q = q and T.v = v

    A kind of state is a final class that has the three functions and, of the others, those that it needs; the rest are None.
    They take and return expressions. No kind overrides a method of this class.

    mechanism, name, parts: as of `System`, like all that is not listed here.
    variables: that are stepped; by default the entries of the state.
    other_state: whether the state differs from the mechanism's [q; v].
    ends, inside: message with what ends there and the way out, and (x, t) -> a number that is positive inside.
    inertia: Terms -> (k, 1) inertia along the entries of the signal "momentum_drift" [kg, kg m^2].
    identity: () -> text that distinguishes the state from others of its class; None: the graphs of its functions do.
    changed: () -> whether a function from which the state was derived gives another result now.

    Example:
        >>> import pfaffian as pf
        >>> slide = pf.joint("x", "prismatic", "world", "box", axis=(1, 0, 0))
        >>> system = pf.reduction.hamiltonian(pf.mechanism("block", [pf.body("box", mass=2.0)], [slide]))
        >>> isinstance(system, pf.reduction.AbstractSystem), [part.name for part in system.parts]
        (True, ['q', 'centred_momentum'])
    """

    enter: Callable[[Terms], Any]
    show: Callable[[ca.SX, ca.SX], Any]
    rate: Callable[[Terms, Motion, ca.SX], Any]

    project: Callable[[ca.SX, ca.SX], Any] | None = None
    signals: Callable[[Terms, Motion, ca.SX], Any] | None = None
    inside: Callable[[ca.SX, ca.SX], Any] | None = None
    check: Callable[[np.ndarray], None] | None = None
    inertia: Callable[[Terms], Any] | None = None
    identity: Callable[[], str] | None = None
    changed: Callable[[], bool] | None = None

    variables: Variables = AS_THEY_ARE
    other_state: bool = True
    digest: str | None = None

    def __repr__(self) -> str:
        parts = ", ".join(f"{part.name} ({len(part.names)})" for part in self.parts)
        return f"<System: of {self.mechanism.name!r}, state {self.name!r}: {parts}>"

    def __str__(self) -> str:
        return "\n".join([repr(self), *(f"  {line}" for line in self.about)])

    def _repr_html_(self) -> str:
        return reprs.lines(str(self))

    @property
    def title(self) -> str:
        """Name of the system in error messages."""
        return f"system {self.name!r} of {self.mechanism.name!r}"

    @cached_property
    def nx(self) -> int:
        """Size of the state."""
        return sum(len(part.names) for part in self.parts)

    @cached_property
    def limit(self) -> float:
        """The magnitude beyond which a state has diverged; momenta exceed velocities by the size of the inertias."""
        if not self.other_state:
            return LIMIT
        m, T = self.mechanism, shared(self.mechanism)
        f = ca.Function("inertia", [T.q, T.t, m.p_symbols], [ca.densify(T.M)])
        (M,) = values(f, m.neutral(), 0.0, m.p_defaults)
        return LIMIT * float(np.abs(M[np.isfinite(M)]).max(initial=1.0))

    @cached_property
    def key(self) -> str:
        """Text that identifies the system among those of its mechanism."""
        if self.identity is None:
            return f"traced {self._traced()} {self.digest!r}"
        return f"made {type(self).__name__} {self.identity()}"

    def _traced(self) -> str:
        """The names of the system and the graphs of all its functions, as one text."""
        here, m = self.at(), self.mechanism
        T, x, moves = here.T, here.x, [ca.SX.sym(name, n) for name, n in (("v_dot", m.nv), ("reaction", m.nv), ("rank", 1))]
        motion = Motion(*moves)
        at = symbols(m)
        signals = self.recorded(x, T, motion)
        outputs = [self.rated(x, T, motion), self.side(x, T), *signals.values()]
        outputs += [] if self.project is None else [self.projected(x, T.t)]
        graphs = [
            graph([at.q, at.v, at.t, m.p_symbols], [self.entered(at, at.q, at.v)]),
            graph([x, T.t, m.p_symbols], list(self.q_and_v(x, T.t))),
            graph([x, *([] if here.q_and_v is None else [T.q, T.v]), T.u, T.t, m.p_symbols, *moves], outputs),
        ]
        return repr((self.name, self.parts, self.named, list(signals), self.ends, graphs))

    def at(self) -> At:
        """A state at new symbols, and the Terms there."""
        m, x, t = self.mechanism, ca.SX.sym("x", self.nx), ca.SX.sym("t")
        q, v = self.q_and_v(x, t)
        u = ca.SX.sym("u", m.nu)
        if q.is_valid_input() and v.is_valid_input():
            return At(Terms(m, q, v, u, t), x, None)
        return At(Terms(m, ca.SX.sym("q", m.nq), ca.SX.sym("v", m.nv), u, t), x, (q, v))

    def at_shared(self) -> At:
        """The state [q; v] at the symbols of `terms.shared`, whose kinematics and rows are built only once; any other state at
        new symbols.
        """
        if self.other_state:
            return self.at()
        T = shared(self.mechanism)
        return At(T.anew(), ca.vertcat(T.q, T.v), None)

    def q_and_v(self, x: ca.SX, t: ca.SX) -> tuple[ca.SX, ca.SX]:
        """(q, v) of a state x, as expressions. Raises ModelError: `show` returns something else."""
        m, what = self.mechanism, f"{self.title}: show"
        pair = call_for_value(self.show, what, x, t)
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            raise ModelError(f"{what}: (q, v) is needed, got {brief(pair)}")
        known = (x, t, m.p_symbols)
        return sized(pair[0], m.nq, f"{what}: q", known), sized(pair[1], m.nv, f"{what}: v", known)

    def entered(self, T: Terms, q: ca.SX, v: ca.SX) -> ca.SX:
        """x for (q, v) at the time T.t, as an expression."""
        m, what = self.mechanism, f"{self.title}: enter"
        here = Terms(m, ca.SX.sym("q", m.nq), ca.SX.sym("v", m.nv), ca.SX(m.nu, 1), T.t)
        x = sized(call_for_value(self.enter, what, here), self.nx, what, (here.q, here.v, here.t, m.p_symbols))
        return ca.substitute(x, ca.vertcat(here.q, here.v), ca.densify(ca.vertcat(q, v)))

    def rated(self, x: ca.SX, closed: Terms, motion: Motion) -> ca.SX:
        """x_dot at a state x, as an expression of x and of the symbols of the Terms."""
        what = f"{self.title}: rate"
        return sized(call_for_value(self.rate, what, closed, motion, x), self.nx, what, _known(closed, x, motion))

    def pushed(self, x: ca.SX, T: Terms, dq: ca.SX, dv: ca.SX) -> ca.SX:
        """The change of a state x for the changes dq and dv, as an expression of the symbols of the Terms T there."""
        if not self.other_state:
            return ca.vertcat(dq, dv)
        return ca.jtimes(self.entered(T, T.q, T.v), ca.vertcat(T.q, T.v), ca.vertcat(dq, dv))

    def projected(self, x: ca.SX, t: ca.SX) -> ca.SX:
        """x on the state's manifold, by `project`."""
        what = f"{self.title}: project"
        assert self.project is not None
        return sized(call_for_value(self.project, what, x, t), self.nx, what, (x, t, self.mechanism.p_symbols))

    def settled(self, x: ca.SX, t: ca.SX) -> ca.SX:
        """x on the state's manifold: by `project`, else [q; v] with quaternions of unit length, other states unchanged."""
        if self.project is not None:
            return self.projected(x, t)
        nq = self.mechanism.nq
        return x if self.other_state else ca.vertcat(normalised(self.mechanism, x[:nq, 0]), x[nq:, 0])

    def side(self, x: ca.SX, T: Terms) -> ca.SX:
        """(1, 1) the value of `inside`, (0, 1) if the state ends nowhere."""
        if self.ends is None or self.inside is None:
            return ca.SX(0, 1)
        what = f"{self.title}: inside"
        return sized(call_for_value(self.inside, what, x, T.t), 1, what, (x, T.t, self.mechanism.p_symbols))

    def recorded(self, x: ca.SX, closed: Terms, motion: Motion) -> dict[str, ca.SX]:
        """The signals that the state adds to a record: its parts other than q and v, and those of `signals`."""
        ends = np.cumsum([len(part.names) for part in self.parts])
        signals = {part.name: x[end - len(part.names) : end, 0] for part, end in zip(self.parts, ends.tolist(), strict=True)}
        signals = {name: column for name, column in signals.items() if name in self.labels}
        if self.signals is None:
            return signals
        what = f"{self.title}: signals"
        more = call_for_value(self.signals, what, closed, motion, x)
        if not isinstance(more, Mapping):
            raise ModelError(f"{what}: {{name: column}} is needed, got {brief(more)}")
        known = _known(closed, x, motion)
        return signals | {
            name: in_symbols(column(value, f"{what}: {name}"), f"{what}: {name}", known) for name, value in more.items()
        }

    @cached_property
    def entering(self) -> kernel.Kernel:
        """Kernel (q, v, p, t) -> x."""
        T = symbols(self.mechanism)
        function = ca.Function("enter", [T.q, T.v, self.mechanism.p_symbols, T.t], [ca.densify(self.entered(T, T.q, T.v))])
        return kernel.compile(function, lanes=1)

    @cached_property
    def siding(self) -> kernel.Kernel:
        """Kernel (x, p, t) -> the value of `inside`."""
        m, x, t = self.mechanism, ca.SX.sym("x", self.nx), ca.SX.sym("t")
        T = Terms(m, ca.SX.sym("q", m.nq), ca.SX.sym("v", m.nv), ca.SX(m.nu, 1), t)
        return kernel.compile(ca.Function("side", [x, m.p_symbols, t], [ca.densify(self.side(x, T))]), lanes=1)

    @cached_property
    def showing(self) -> kernel.Kernel:
        """Kernel (x, p, t) -> (q, v)."""
        x, t = ca.SX.sym("x", self.nx), ca.SX.sym("t")
        both = [ca.densify(part) for part in self.q_and_v(x, t)]
        return kernel.compile(ca.Function("show", [x, self.mechanism.p_symbols, t], both), lanes=1)

    @cached_property
    def labels(self) -> dict[str, Signal]:
        """The Signals of the parts other than q and v, and of the state's signals with named entries."""
        labelled = [part for part in (*self.parts, *self.named) if part.name not in ("q", "v")]
        return {
            part.name: Signal(part.units[0] if len(set(part.units)) == 1 else "per entry", f"{part.name}_entry", part.names)
            for part in labelled
        }


class At(NamedTuple):
    """A state x (nx, 1) at symbols, and the Terms there.

    q_and_v: (q, v) as expressions of x if T has separate symbols for them; None if they are entries of x.
    """

    T: Terms
    x: ca.SX
    q_and_v: tuple[ca.SX, ca.SX] | None

    def of_state(self, expressions: list[ca.SX]) -> list[ca.SX]:
        """The expressions as functions of x."""
        if self.q_and_v is None:
            return expressions
        return ca.substitute(expressions, [self.T.q, self.T.v], list(self.q_and_v))


def _known(T: Terms, x: ca.SX, motion: Motion) -> tuple[ca.SX, ...]:
    """Symbols that a function of a System may use."""
    return x, T.q, T.v, T.u, T.t, T.mechanism.p_symbols, motion.v_dot, motion.reaction, motion.rank


def sized(value: Any, size: int, what: str, known: tuple[ca.SX, ...]) -> ca.SX:
    """(size, 1) column from the value that a function of a System returned. Raises ModelError: it cannot be one."""
    x = in_symbols(column(value, what), what, known)
    if x.numel() != size:
        raise ModelError(f"{what}: {size} numbers are needed, got {x.numel()}")
    return x


def enter(s: AbstractSystem, q: np.ndarray, v: np.ndarray, p: np.ndarray, t: float) -> np.ndarray:
    """(runs, nx) the state of each run, from q (runs, nq), v (runs, nv), parameters p (runs, np) and the time t [s].

    Raises ModelError: `enter` and `show` are not inverse to each other; a start is where the state has ended, or has
    parameters that the state cannot represent.
    """
    if not s.other_state:
        return np.hstack([q, v])
    m, instant = s.mechanism, np.array([t])
    if s.check is not None:
        s.check(p)
    x = s.entering(q, v, p, instant)[0]
    if s.ends is not None:
        inside = (s.siding(x, p, instant)[0] > 0).ravel()
        if not inside.all():
            which = f" of run {int(np.argmin(inside))}" if len(inside) > 1 else ""
            raise ModelError(f"{s.title}: start{which}: {s.ends}")
    back = show(s, x, p, t)
    for what, given, found, names in (("q", q, back[0], m.q_names), ("v", v, back[1], m.v_names)):
        off = np.abs(found - given) / (1 + np.abs(given).max(axis=1, keepdims=True, initial=0.0))
        if not (off <= RETURNS).all():
            run, i = foremost(off)
            why = s.about[0] if s.about else "each (q, v) needs exactly one x"
            raise ModelError(
                f"{s.title}: show does not undo enter: {what} {names[i]!r} went in as {given[run, i]:.6g} and came back as "
                f"{found[run, i]:.6g}; {why}"
            )
    return x


def show(s: AbstractSystem, x: np.ndarray, p: np.ndarray, t: float | np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """q (..., nq) and v (..., nv) of states x (..., nx or more) at the time t [s], one or (runs,)."""
    if not s.other_state:
        return x[..., : s.mechanism.nq], x[..., s.mechanism.nq : s.nx]
    q, v = s.showing(x[..., : s.nx], p, np.array(t)[..., None])
    return q, v
