"""A mechanism's fingerprint: compiled equations are found again by it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from hashlib import sha256

import casadi as ca

from pfaffian.model.caller import ask_rows
from pfaffian.model.check import numbers
from pfaffian.model.constraint import AccelerationConstraint, Closure, Constraint, Holonomic, Servo
from pfaffian.model.force import Actuator, Force, Thruster
from pfaffian.model.mechanism import Mechanism


def structure(m: Mechanism, graph: Callable[[Callable, str], str]) -> str:
    """sha256 of all that shapes the equations, graph(f, owner) being what to say of a function of the caller's.

    Two mechanisms with one digest have the same equations, whatever they are called.
    """
    columns = [ca.vec(x) for _, x in numbers(m)]
    values = ca.Function("numbers", [m.p_symbols], [ca.densify(ca.vertcat(*columns))])
    shape = [
        [b.name for b in m.bodies],
        [(j.name, j.kind.name, j.parent, j.child) for j in m.joints],
        [_constraint(c, graph) for c in m.constraints],
        [_parts(f, graph) for f in m.forces],
        [_parts(a, graph) for a in m.actuators],
        m.u_names,
        [(c.name, c.nq, c.nv, c.start) for c in m.coordinates],
        m.velocities and m.velocities.names,
        [x.numel() for x in columns],
    ]  # fmt: skip
    return sha256((repr(shape) + values.serialize()).encode()).hexdigest()


def _constraint(c: Constraint, graph: Callable[[Callable, str], str]) -> tuple:
    if isinstance(c, Servo):
        along = c.directions
        return (
            "servo",
            _constraint(c.target, graph),
            graph(along, f"servo constraint {c.name!r}: directions") if callable(along) else along,
        )
    what = f"constraint {c.name!r}"
    active = c.active and graph(c.active, f"{what}: active_while")
    if isinstance(c, Closure):
        return c.kind, c.body_a, c.body_b, active
    if isinstance(c, AccelerationConstraint):
        return type(c).__name__, graph(lambda k: ca.horzcat(*ask_rows(c.rows, "rows", k)), what), active
    return type(c).__name__, graph(c.phi if isinstance(c, Holonomic) else c.eta, what), active


def _parts(f: Force | Actuator | Thruster, graph: Callable[[Callable, str], str]) -> tuple:
    """All but its name and its numbers, which `u_names` and `numbers` give; limits are no part of an equation."""
    values = [getattr(f, field.name) for field in fields(f) if field.name not in ("name", "limits")]
    shape = ["number" if isinstance(x, ca.SX) else graph(x, f"force {f.name!r}") if callable(x) else x for x in values]
    return type(f).__name__, *shape
