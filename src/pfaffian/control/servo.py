"""Servo constraints as inputs: the forces along chosen inputs that hold a wanted motion. [ider]"""

from __future__ import annotations

import casadi as ca

from pfaffian.control.law import Command, Control, maker
from pfaffian.dynamics.controlforce import control_force, fault
from pfaffian.errors import ModelError, brief
from pfaffian.model.constraint import Servo
from pfaffian.terms.terms import Terms


@maker
def servo_control(*servos: Servo) -> Control:
    """Inputs that hold servo constraints on a mechanism that does not have them. [ider (14)-(19)]

    Args:
        servos: made by `servo`, their directions being names of inputs; a wrench's component may be one of them.
    Stops a run: the chosen directions cannot produce the wanted acceleration.
    Raises ModelError: directions that are not inputs.
    """
    if not servos:
        raise ModelError("servo_control needs at least one servo constraint")
    used: list[str] = []
    for s in servos:
        if not isinstance(s, Servo):
            raise ModelError(f"servo_control takes servo constraints, one after another, made by servo(...), got {brief(s)}")
        if callable(s.directions):
            raise ModelError(f"servo constraint {s.name!r}: as a control law its directions must be names of inputs")
        used += s.directions

    def law(terms: Terms, z: ca.SX, w: ca.SX, reaction: ca.SX) -> Command:
        m = terms.mechanism
        held = m.with_(constraints=m.constraints + servos)
        under = Terms(held, terms.q, terms.v, ca.SX(m.nu, 1), terms.t)
        x = control_force(under)
        u = ca.SX.zeros(m.nu, 1)
        # The mechanism's own servo constraints, if any, come first and are held by their own forces.
        for i, name in enumerate(used, start=x.mu.numel() - len(used)):
            u[m.u_names.index(name)] = x.mu[i]
        return Command(u, ca.SX(0, 1), 1 - x.realisable, {"error": under.servo.phi, "error_rate": under.servo.eta}, x.side)

    return Control(law, (), (), (fault(servos),))
