"""The interface of a control law: the data that a time step needs to evaluate it, and the checks of its results."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import wraps
from inspect import signature
from typing import Any, NamedTuple, ParamSpec

import casadi as ca
import numpy as np

from pfaffian.control.command import Command, Fault, as_command, as_faults
from pfaffian.control.law_part import LawPart
from pfaffian.errors import ModelError, brief, plural
from pfaffian.model import reprs
from pfaffian.model.mechanism import Mechanism
from pfaffian.model.number import column, floats
from pfaffian.model.user_functions import call_for_value
from pfaffian.terms.terms import Terms


def _whole(terms: Terms, reaction: ca.SX) -> ca.SX:
    """The default of `Control.measured`: the whole generalised reaction."""
    return reaction


def motor_matrix(terms: Terms) -> ca.SX:
    """B (nv, motors), the columns of the input matrix that belong to actuators: the inputs that a law may use."""
    return terms.B[:, : len(terms.mechanism.actuators)]


def with_no_wrench(terms: Terms, u: ca.SX) -> ca.SX:
    """(nu, 1) inputs of the mechanism: those of the motors (motors, 1), then zero for external wrenches, which no law uses."""
    return ca.vertcat(u, ca.SX.zeros(len(terms.mechanism.wrench_names), 1))


class Made(NamedTuple):
    """The origin of a law: the name of the library function that made it, its arguments, and the functions in its result."""

    maker: str
    arguments: tuple[tuple[str, Any], ...]
    law: Callable[..., Any]
    measured: Callable[..., Any]
    parts: tuple[LawPart, ...]


@dataclass(frozen=True, eq=False)
class Control:
    """A control law in continuous time, or in discrete time with `parts`.

    The control laws of the library return a Control; for a law of your own, make one from a function:

        law(terms, z, w, y) -> Command

    terms: Terms at the measured state with zero inputs (the law does not know external wrenches).   z: (nz, 1) states that the
    law integrates.   w: (nw, 1) inputs that the run supplies to the law, such as references.   y: (ny, 1) the part of the
    reaction that the law measures. A law that uses y closes an algebraic loop, which the step solves exactly by ny equations,
    as both sides are affine.

    Args:
        law: the function.
        z: (nz,) start values of the states that it integrates; none by default.
        w_names: names of the inputs that a run supplies to the law; none by default.
        faults: for each fault a text that says what it means and what to do.
        measured: function (terms, reaction) -> y, linear in the generalised reaction (nv, 1); by default y is all of it.
        made: the origin of a law of the library; set by the function that makes it.
        parts: parts that are called once a period instead of at every stage of a step, made by `discrete`; the inputs that
            they hold are added to those of `law`.
        takes: names of the inputs w of `law` where parts supply some of them; w_names if None.
        units: {signal: unit} of recorded signals; "per velocity" or "per input" labels the entries by velocity or input.
        entries: {signal: names of its entries}, for signals whose entries have names.
        check: function (mechanism, parameters (runs, np) of a run) that raises ModelError where the law cannot take them.
    Raises ModelError: an argument that should be a function, texts or finite numbers is not. The Commands of the law are
    checked by a run.

    Example:
        >>> import pfaffian as pf
        >>> from pfaffian import control
        >>> rail = pf.joint("rail", "prismatic", "world", "cart", axis=(1, 0, 0))
        >>> m = pf.mechanism("cart", [pf.body("cart", 2.0)], [rail], actuators=[pf.actuator("motor", "rail")])
        >>> brake = control.Control(lambda terms, z, w, y: control.Command(-4.0 * terms.v))
        >>> run = pf.run(m, v=[1.0], duration=1.0, step=0.01, control=brake, backend="numpy")
        >>> run["v"].values[-1].round(4)  # exp(-4 / 2 * 1 s)
        array([0.1353])
    """

    law: Callable[[Terms, ca.SX, ca.SX, ca.SX], Command]
    z: tuple[float, ...] = ()
    w_names: tuple[str, ...] = ()
    faults: tuple[Fault, ...] = ()
    measured: Callable[[Terms, ca.SX], ca.SX] = _whole
    made: Made | None = None
    parts: tuple[LawPart, ...] = ()
    takes: tuple[str, ...] | None = None
    units: Mapping[str, str] = field(default_factory=dict)
    entries: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    check: Callable[[Mechanism, np.ndarray], None] | None = None

    def __repr__(self) -> str:
        if self.parts:
            titles = [f"{part.title} every {part.period:g} s" for part in self.parts]
            return reprs.words(self, "in discrete time", reprs.listed(titles))
        parts = [f"integrates {plural(len(self.z), 'number')}"] if self.z else []
        parts += [f"inputs {reprs.listed(self.w_names)}"] if self.w_names else []
        return reprs.words(self, reprs.maker(self.law), *parts)

    def __post_init__(self) -> None:
        for name in ("law", "measured"):
            if not callable(getattr(self, name)):
                raise ModelError(f"Control: {name} must be a function, got {brief(getattr(self, name))}")
        if isinstance(self.w_names, str) or not all(isinstance(x, str) for x in self.w_names):
            raise ModelError(f"Control: w_names must be a tuple of texts, got {brief(self.w_names)}")
        object.__setattr__(self, "faults", as_faults(self.faults, "Control: faults"))
        if not isinstance(self.units, Mapping) or not all(isinstance(x, str) for item in self.units.items() for x in item):
            raise ModelError(f"Control: units must be {{signal: unit}} of texts, got {brief(self.units)}")
        named = isinstance(self.entries, Mapping) and all(isinstance(x, (tuple, list)) for x in self.entries.values())
        if not named or not all(isinstance(name, str) for x in self.entries.values() for name in x):
            raise ModelError(f"Control: entries must be {{signal: names of its entries}}, got {brief(self.entries)}")
        object.__setattr__(self, "z", tuple(floats(self.z, "Control: z").tolist()))
        for name in ("w_names", "parts"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        for name in ("units", "entries"):
            object.__setattr__(self, name, copied(dict(getattr(self, name))))


_LawArguments = ParamSpec("_LawArguments")


def copied(x: Any) -> Any:
    """A deep copy of the numbers and containers in an argument of a law, so that later changes do not affect the law."""
    if isinstance(x, (ca.SX, ca.DM)):
        return type(x)(x)
    if type(x) in (list, tuple):
        return type(x)([copied(part) for part in x])
    if type(x) is dict:
        return {name: copied(part) for name, part in x.items()}
    return np.array(x) if hasattr(x, "__array__") and not isinstance(x, np.generic) else x


def maker(make: Callable[_LawArguments, Control]) -> Callable[_LawArguments, Control]:
    """Decorator of functions that make laws: each law records its origin, so that compiled code is found without tracing."""

    @wraps(make)
    def made(*args: _LawArguments.args, **kwargs: _LawArguments.kwargs) -> Control:
        try:
            bound = signature(make).bind(*args, **kwargs)
        except TypeError:
            return make(*args, **kwargs)  # raises the TypeError that names the missing argument
        bound.apply_defaults()
        bound.arguments.update({name: copied(x) for name, x in bound.arguments.items()})
        control = make(*bound.args, **bound.kwargs)
        origin = Made(make.__name__, tuple(bound.arguments.items()), control.law, control.measured, control.parts)
        return replace(control, made=origin)

    return made


def check_parameters(law: Any, m: Mechanism, p: np.ndarray) -> None:
    """Raise ModelError where a law, or a law that it is composed of, cannot take the parameters (runs, np) of a run."""
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
    """Yield each distinct row of parameters (runs, np), preceded by a label with its values and the first run that has it."""
    _, first = np.unique(p, axis=0, return_index=True)
    for run in sorted(first.tolist()):
        owner = f" of run {run}" if len(p) > 1 else ""
        values = ", ".join(f"{name} = {x:.6g}" for name, x in zip(m.p_names, p[run], strict=True))
        yield f"parameters{owner} ({values}): " if values else "", p[run]


def command(control: Control, terms: Terms, z: ca.SX, w: ca.SX, y: ca.SX) -> Command:
    """The Command of a law, its fields as columns. Raises ModelError: the law fails, or does not return a Command."""
    what = "the control law"
    result = as_command(call_for_value(control.law, what, terms, z, w, y), what)
    if result.d_next:
        raise ModelError(f"{what} returns d_next, but only a law in discrete time has such a state: see control.discrete")
    return result


def measured(control: Control, terms: Terms, reaction: ca.SX) -> ca.SX:
    """(ny, 1) the part of a reaction that the law measures."""
    what = "what the control law measures"
    return column(call_for_value(control.measured, what, terms, reaction), what)
