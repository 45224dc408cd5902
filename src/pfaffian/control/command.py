"""What a control law returns at an instant, and the faults by which it may stop a run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from pfaffian.errors import ModelError, brief
from pfaffian.model.mechanism import Mechanism
from pfaffian.model.number import column
from pfaffian.terms.terms import Terms


class Reason(NamedTuple):
    """How to find the cause of a fault at the state where it stopped a run.

    matrices: {name: function of Terms}, the matrices to evaluate.   words: function of their values that returns a message.
    """

    matrices: Mapping[str, Callable[[Terms], ca.SX]]
    words: Callable[[Mechanism, Mapping[str, np.ndarray]], str]


class Fault(NamedTuple):
    """A condition that stops a run.

    meaning: text that says what is wrong and what to do.   reason: how to find the cause; None if the text is enough.
    near: whether inputs grow without bound near the condition, so that a step may jump over it and diverge.
    """

    meaning: str
    reason: Reason | None = None
    near: bool = False


def as_faults(value: Any, what: str) -> tuple[Fault, ...]:
    """A caller's faults, given as texts or Faults, as Faults. Raises ModelError: something else."""
    if isinstance(value, (str, Fault)) or not all(isinstance(x, (str, Fault)) for x in value):
        raise ModelError(f"{what} must be a tuple of texts, got {brief(value)}")
    return tuple(x if isinstance(x, Fault) else Fault(x) for x in value)


class Command(NamedTuple):
    """The output of a control law at one instant.

    u: (nu, 1) inputs of the mechanism [N, N m].
    z_dot: (nz, 1) rates of the states that the law integrates [unit of z / s]; empty for none.
    faults: (nf, 1), nonzero where the law cannot continue; `Control.faults` gives the meaning of each.
    signals: {name: column} to be recorded.
    sides: (nf, 1), or empty for none. A fault whose side is not zero is checked at every stage of a step, and is also raised
        when its side changes sign; the other faults are checked at the start of a step, on the constraints.
    d_next: {name: column} the discrete state at the next instant, of a law in discrete time; see `discrete`.

    Example:
        >>> import pfaffian as pf
        >>> from pfaffian import control
        >>> rail = pf.joint("rail", "prismatic", "world", "cart", axis=(1, 0, 0))
        >>> m = pf.mechanism("cart", [pf.body("cart", 2.0)], [rail], actuators=[pf.actuator("motor", "rail")])
        >>> def brake(terms, z, w, y):
        ...     return control.Command(-4.0 * terms.v, signals={"slip": terms.v})
        >>> run = pf.run(m, v=[1.0], duration=0.1, step=0.01, control=control.Control(brake), backend="numpy")
        >>> float(run["u"].values[0, 0]), float(run["slip"].values[0])
        (-4.0, 1.0)
    """

    u: ca.SX
    z_dot: ca.SX = ca.SX(0, 1)
    faults: ca.SX = ca.SX(0, 1)
    signals: Mapping[str, ca.SX] = {}
    sides: ca.SX = ca.SX(0, 1)
    d_next: Mapping[str, ca.SX] = {}


def as_command(given: Any, what: str) -> Command:
    """A Command with its fields converted to columns. Raises ModelError: it is not a Command."""
    if not isinstance(given, Command):
        raise ModelError(f"{what} must return a control.Command(u, ...), got {brief(given)}")
    parts: dict[str, Any] = {}
    for field_name, value in given._asdict().items():
        if field_name not in ("signals", "d_next"):
            parts[field_name] = column(value, f"{what}: {field_name}")
        elif not isinstance(value, Mapping) or not all(isinstance(name, str) for name in value):
            raise ModelError(f"{what}: {field_name} must be {{name: column}}, got {brief(value)}")
        else:
            parts[field_name] = {name: column(x, f"{what}: {field_name} {name!r}") for name, x in value.items()}
    return Command(**parts)
