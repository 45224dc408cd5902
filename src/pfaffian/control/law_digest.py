"""The digest of a control law: of the arguments that made it, or else of its traced graph."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import fields
from hashlib import sha256
from typing import Any

import casadi as ca
import numpy as np

from pfaffian.control import law
from pfaffian.control.discrete_laws import Sensor
from pfaffian.control.law import Control
from pfaffian.control.layout import PartFunction, part_functions
from pfaffian.control.outputs import Output
from pfaffian.control.prototype_pair import Pair
from pfaffian.control.reference import Reference
from pfaffian.model.constraint import Servo
from pfaffian.model.mechanism import Mechanism
from pfaffian.model.number import Parameter
from pfaffian.model.user_functions import in_symbols
from pfaffian.terms import equations_digest as equations
from pfaffian.terms.terms import Terms, symbols


def digest(control: Control, m: Mechanism) -> str:
    """sha256 of everything that determines the equations of a law on a mechanism.

    A law of the library records the arguments that made it: numbers, references and tasks. Only the graphs of its references
    and tasks are traced. Of any other law, or one with a replaced function, the whole graph is traced.
    """
    with suppress(_Unknown):
        return _by_maker(control, m)
    return _traced(control, m)


def _by_maker(control: Control, m: Mechanism) -> str:
    """Digest of a library law's maker and arguments. Raises _Unknown: a part of the law is not from the library."""
    made = control.made
    if not made or (made.law, made.measured, made.parts) != (control.law, control.measured, control.parts):
        raise _Unknown
    if any(name == "law" and not isinstance(x, Control) for name, x in made.arguments):
        raise _Unknown  # a function of a Sample
    if any(name == "transport" and x is not None for name, x in made.arguments):
        raise _Unknown  # a function of two kinematics
    # A law may depend on the limits of actuators, which a mechanism's equations do not contain.
    identity = made.maker, m.u_limits.tolist(), [(name, _identity(x, m)) for name, x in made.arguments]
    return sha256(repr(identity).encode()).hexdigest()


class _Unknown(Exception):
    """Raised where a part of a law is not from the library, so that its arguments do not identify it."""


def _identity(x: Any, m: Mechanism) -> Any:
    """Nested tuples and lists whose repr identifies a part of a law. Raises _Unknown: the part is not from the library."""
    if isinstance(x, (tuple, list)):
        return [_identity(part, m) for part in x]
    if isinstance(x, np.ndarray):
        return x.dtype.str, x.shape, x.tolist()
    if isinstance(x, (ca.SX, ca.DM, Parameter)):
        return equations.graph([m.p_symbols], [in_symbols(ca.SX(x), "a number of the control law", [m.p_symbols])])
    if isinstance(x, Reference):
        t, w = ca.SX.sym("t"), ca.SX.sym("w", len(x.w_names))
        known = [t, w, m.p_symbols]
        return x.size, x.w_names, equations.graph(known, [in_symbols(y, "the reference", known) for y in x.at(t, w)])
    if isinstance(x, Servo):
        return equations.digest(m.with_(constraints=(*m.constraints, x)))
    if isinstance(x, Control):
        # A law in discrete time may read signals of other laws, so that it cannot be traced alone.
        return _by_maker(x, m) if x.parts else digest(x, m)
    if isinstance(x, (Pair, Output)):
        return [_identity(getattr(x, f.name), m) for f in fields(x)]
    if isinstance(x, Mapping):
        return [(name, _identity(value, m)) for name, value in x.items()]
    if isinstance(x, Sensor):
        if x.moving:
            raise _Unknown  # a function of terms and motion
        return _identity((x.function, x.std, x.period, x.phase, x.latency, x.unit), m)
    if callable(x):
        return equations.of_function(x, "the task", symbols(m).kinematics)
    if x is None or isinstance(x, (str, bool, int, float, np.generic)):
        return x
    raise _Unknown


def _traced(control: Control, m: Mechanism) -> str:
    """Digest of the traced graphs of a law and of its parts in discrete time."""
    T = symbols(m)
    idle = Terms(m, T.q, T.v, ca.SX(m.nu, 1), T.t)
    F = ca.SX.sym("F", m.nv)
    y = law.measured(control, idle, F)
    w_names = control.w_names if control.takes is None else control.takes
    inputs = [ca.SX.sym(name, n) for name, n in (("z", len(control.z)), ("w", len(w_names)), ("y", y.numel()))]
    command = law.command(control, idle, *inputs)
    names = list(command.signals)
    outputs = [y, *command[:3], command.sides, *command.signals.values()]
    parts = [_of_part(a) for a in part_functions(control, m)]
    graph = equations.graph([T.q, T.v, T.t, m.p_symbols, F, *inputs], outputs)
    return sha256(repr((names, control.takes, control.w_names, parts, graph)).encode()).hexdigest()


def _of_part(a: PartFunction) -> tuple[Any, ...]:
    """Everything that determines the equations of a part in discrete time."""
    x, inputs = a.part, a.function.sx_in()
    declared = (x.name, x.period, x.phase, x.latency, x.hold, x.state, x.start, [fault.meaning for fault in x.faults], x.units)
    given = (x.random, x.python is not None, a.inputs, a.signals, a.uses_inputs, a.uses_reaction)
    return *declared, *given, equations.graph(inputs, a.function.call(inputs))
