"""What a control law is to the step that runs it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import wraps
from inspect import signature
from typing import TYPE_CHECKING, Any, NamedTuple, ParamSpec

import casadi as ca
import numpy as np

from pfaffian.errors import ModelError, brief, plural
from pfaffian.model import shown
from pfaffian.model.caller import answer
from pfaffian.model.mechanism import Mechanism
from pfaffian.model.number import column, floats
from pfaffian.terms.terms import Terms

if TYPE_CHECKING:
    from pfaffian.control.discrete import Part


class Reason(NamedTuple):
    """Who is to blame for a fault.   matrices: name -> function of Terms.   words: what their numbers say, with names."""

    matrices: Mapping[str, Callable[[Terms], ca.SX]]
    words: Callable[[Mechanism, Mapping[str, np.ndarray]], str]


class Command(NamedTuple):
    """What a law answers at one instant.

    u: (nu, 1) inputs of the mechanism [N, N m].   z_dot: (nz, 1) rates of what it integrates [unit of z / s].
    faults: (nf, 1) nonzero where it cannot go on; Control.faults says what each means.   signals: recorded columns.
    sides: (nf, 1), or empty for none: where fault i has a side that is not zero, it is looked for at every stage of a step,
    and also is where the side changes its sign; the others are judged at the start of a step, on the constraints.
    d_next: of a law in discrete time, the next values of its discrete state by name; see `discrete`.
    """

    u: ca.SX
    z_dot: ca.SX = ca.SX(0, 1)
    faults: ca.SX = ca.SX(0, 1)
    signals: Mapping[str, ca.SX] = {}
    sides: ca.SX = ca.SX(0, 1)
    d_next: Mapping[str, ca.SX] = {}


def _whole(terms: Terms, reaction: ca.SX) -> ca.SX:
    return reaction


def motor_matrix(terms: Terms) -> ca.SX:
    """B (nv, motors) of the inputs that a law may use."""
    return terms.B[:, : len(terms.mechanism.actuators)]


def with_no_wrench(terms: Terms, u: ca.SX) -> ca.SX:
    """(nu, 1) inputs from those of the motors (motors, 1): wrenches from outside are not a law's to use."""
    return ca.vertcat(u, ca.SX.zeros(len(terms.mechanism.wrench_names), 1))


class Made(NamedTuple):
    """How a law was made: by which maker of the library, of what, and the functions that this gave."""

    maker: str
    arguments: tuple[tuple[str, Any], ...]
    law: Callable
    measured: Callable
    parts: tuple[Part, ...]


@dataclass(frozen=True, eq=False)
class Control:
    """A control law in the loop.

    law(terms, z, w, y) -> Command: terms at the measured state with zero inputs (a push from outside is not foreseen),
    z (nz, 1) what it integrates, w (nw, 1) the run's inputs under this law (references, say), y (ny, 1) what it measures of
    the reaction. A law that uses y closes an algebraic loop, which the step solves exactly, ny equations: both sides are
    affine.
    z: start values.   w_names: of the run's inputs.   faults: what each fault means and what to do.
    measured(terms, reaction) -> y, linear in the generalised reaction (nv, 1); all of it if not given.
    reasons: fault -> how to find at the stopping state who is to blame.   made: by which maker of the library, if by one.
    parts: what is called once a period instead of at every stage of a step, see `discrete`; what they hold adds to the law's u.
    takes: names of the law's w, where parts give some of it; None: w_names.
    units: of the signals that it records, by name; one "per velocity" or "per input" is labelled by these.
    entries: of such a signal the names of its entries, where it has some of its own.
    check: (mechanism, parameters (runs, np) of a run) raises ModelError where the law cannot have them.
    Raises ModelError: what should be a function, texts or finite numbers is not. What the law answers is checked by a run.
    """

    law: Callable[[Terms, ca.SX, ca.SX, ca.SX], Command]
    z: tuple[float, ...] = ()
    w_names: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()
    measured: Callable[[Terms, ca.SX], ca.SX] = _whole
    reasons: Mapping[str, Reason] = field(default_factory=dict)
    made: Made | None = None
    parts: tuple[Part, ...] = ()
    takes: tuple[str, ...] | None = None
    units: Mapping[str, str] = field(default_factory=dict)
    entries: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    check: Callable[[Mechanism, np.ndarray], None] | None = None

    def __repr__(self) -> str:
        if self.parts:
            often = [f"{part.title} every {part.period:g} s" for part in self.parts]
            return shown.words(self, "in discrete time", shown.listed(often))
        parts = [f"integrates {plural(len(self.z), 'number')}"] if self.z else []
        parts += [f"inputs {shown.listed(self.w_names)}"] if self.w_names else []
        return shown.words(self, shown.maker(self.law), *parts)

    def __post_init__(self) -> None:
        for name in ("law", "measured"):
            if not callable(getattr(self, name)):
                raise ModelError(f"Control: {name} must be a function, got {brief(getattr(self, name))}")
        for name in ("w_names", "faults"):
            texts = getattr(self, name)
            if isinstance(texts, str) or not all(isinstance(x, str) for x in texts):
                raise ModelError(f"Control: {name} must be a tuple of texts, got {brief(texts)}")
        if not isinstance(self.units, Mapping) or not all(isinstance(x, str) for item in self.units.items() for x in item):
            raise ModelError(f"Control: units must be {{signal: unit}} of texts, got {brief(self.units)}")
        named = isinstance(self.entries, Mapping) and all(isinstance(x, (tuple, list)) for x in self.entries.values())
        if not named or not all(isinstance(name, str) for x in self.entries.values() for name in x):
            raise ModelError(f"Control: entries must be {{signal: names of its entries}}, got {brief(self.entries)}")
        object.__setattr__(self, "z", tuple(floats(self.z, "Control: z").tolist()))
        for name in ("w_names", "faults", "parts"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        for name in ("units", "entries", "reasons"):
            object.__setattr__(self, name, copied(dict(getattr(self, name))))


_Arguments = ParamSpec("_Arguments")


def copied(x: Any) -> Any:
    """What a law keeps of numbers and containers that it is given: copies, which nobody changes."""
    if isinstance(x, (ca.SX, ca.DM)):
        return type(x)(x)
    if type(x) in (list, tuple):
        return type(x)([copied(part) for part in x])
    if type(x) is dict:
        return {name: copied(part) for name, part in x.items()}
    return np.array(x) if hasattr(x, "__array__") and not isinstance(x, np.generic) else x


def maker(make: Callable[_Arguments, Control]) -> Callable[_Arguments, Control]:
    """A maker of laws whose laws tell how they were made: what they compile is found again without tracing."""

    @wraps(make)
    def made(*args: _Arguments.args, **kwargs: _Arguments.kwargs) -> Control:
        try:
            given = signature(make).bind(*args, **kwargs)
        except TypeError:
            return make(*args, **kwargs)  # which says what is missing
        given.apply_defaults()
        given.arguments.update({name: copied(x) for name, x in given.arguments.items()})
        control = make(*given.args, **given.kwargs)
        said = Made(make.__name__, tuple(given.arguments.items()), control.law, control.measured, control.parts)
        return replace(control, made=said)

    return made


def check_parameters(law: Any, m: Mechanism, p: np.ndarray) -> None:
    """Raise ModelError where a law, or one that it is made of, cannot have the parameters (runs, np) of a run."""
    if isinstance(law, Control):
        if law.check is not None:
            law.check(m, p)
        check_parameters(law.made.arguments if law.made else (), m, p)
    elif isinstance(law, (tuple, list)):
        for part in law:
            check_parameters(part, m, p)
    elif isinstance(law, Mapping):
        check_parameters(tuple(law.values()), m, p)


def at_values(m: Mechanism, p: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    """Each row of parameters (runs, np) that differs from the others, the first of its kind, with words for whose it is."""
    _, first = np.unique(p, axis=0, return_index=True)
    for run in sorted(first.tolist()):
        of = f" of run {run}" if len(p) > 1 else ""
        values = ", ".join(f"{name} = {x:.6g}" for name, x in zip(m.p_names, p[run], strict=True))
        yield f"parameters{of} ({values}): " if values else "", p[run]


def command(control: Control, terms: Terms, z: ca.SX, w: ca.SX, y: ca.SX) -> Command:
    """What the law answers, its parts as columns. Raises ModelError: it fails, or gives no Command."""
    what = "the control law"
    given = as_command(answer(control.law, what, terms, z, w, y), what)
    if given.d_next:
        raise ModelError(f"{what} gives d_next, and only a law in discrete time has such a state: see control.discrete")
    return given


def as_command(given: Any, what: str) -> Command:
    """A Command, its parts as columns. Raises ModelError: it is none."""
    if not isinstance(given, Command):
        raise ModelError(f"{what} must give a control.Command(u, ...), got {brief(given)}")
    parts: dict[str, Any] = {}
    for field_name, value in given._asdict().items():
        if field_name not in ("signals", "d_next"):
            parts[field_name] = column(value, f"{what}: {field_name}")
        elif not isinstance(value, Mapping) or not all(isinstance(name, str) for name in value):
            raise ModelError(f"{what}: {field_name} must be {{name: column}}, got {brief(value)}")
        else:
            parts[field_name] = {name: column(x, f"{what}: {field_name} {name!r}") for name, x in value.items()}
    return Command(**parts)


def measured(control: Control, terms: Terms, reaction: ca.SX) -> ca.SX:
    """(ny, 1) what the law measures of a reaction."""
    what = "what the control law measures"
    return column(answer(control.measured, what, terms, reaction), what)
