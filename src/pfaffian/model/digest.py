"""A mechanism's fingerprint: compiled equations are found again by it."""

from __future__ import annotations

from hashlib import sha256

import casadi as ca

from pfaffian.model.check import numbers
from pfaffian.model.constraint import Closure, Servo
from pfaffian.model.force import Spring
from pfaffian.model.mechanism import Mechanism


def digest(m: Mechanism) -> str | None:
    """sha256 of all that shapes the equations; None if a function of the caller's is part of the mechanism.

    Two mechanisms with one digest have the same equations, whatever their names.
    """
    targets = [c.target if isinstance(c, Servo) else c for c in m.constraints]
    closures = [t for t in targets if isinstance(t, Closure) and t.active is None]
    if len(closures) < len(targets) or any(callable(s.directions) for s in m.servos):
        return None
    columns = [ca.vec(x) for _, x in numbers(m)]
    values = ca.Function("numbers", [m.p_symbols], [ca.densify(ca.vertcat(*columns))])
    shape = [
        [b.name for b in m.bodies],
        [(j.name, j.kind.name, j.parent, j.child) for j in m.joints],
        [
            (type(c).__name__, t.kind, t.body_a, t.body_b, getattr(c, "directions", None))
            for c, t in zip(m.constraints, closures, strict=True)
        ],
        [
            (f.body_a, f.body_b) if isinstance(f, Spring) else (f.body, f.axes, f.value is None)
            for f in m.forces
        ],
        [(a.name, a.joint, a.component) for a in m.actuators],
        m.u_names,
        [x.numel() for x in columns],
    ]  # fmt: skip
    return sha256((repr(shape) + values.serialize()).encode()).hexdigest()
