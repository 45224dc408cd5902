"""Servo constraints as inputs: the forces along chosen inputs that hold a wanted motion. [ider]"""

from __future__ import annotations

import casadi as ca

from pfaffian.control.law import Command, Control
from pfaffian.dynamics.controlforce import FAULT, control_force
from pfaffian.errors import ModelError
from pfaffian.model.constraint import Servo
from pfaffian.terms.terms import Terms


def servo_control(*servos: Servo) -> Control:
    """Inputs that hold servo constraints on a mechanism that does not have them. [ider (14)-(19)]

    Args:
        servos: made by `servo`, their directions being names of inputs.
    Stops a run: the chosen directions cannot produce the wanted acceleration.
    Raises ModelError: directions that are not inputs.
    """
    for s in servos:
        if callable(s.directions):
            raise ModelError(f"servo constraint {s.name!r}: as a control law its directions must be names of inputs")

    def law(terms: Terms, z: ca.SX, w: ca.SX, reaction: ca.SX) -> Command:
        m = terms.mechanism
        held = m.with_(constraints=m.constraints + servos)
        x = control_force(Terms(held, terms.q, terms.v, ca.SX(m.nu, 1), terms.t))
        used = [m.u_names.index(n) for s in servos for n in s.directions]
        u = ca.SX(m.nu, 1)
        for i, index in enumerate(used):
            u[index] = x.mu[i]
        rows = Terms(held, terms.q, terms.v, ca.SX(m.nu, 1), terms.t).servo
        return Command(ca.densify(u), ca.SX(0, 1), 1 - x.realisable, {"servo_error": rows.phi, "servo_rate": rows.eta})

    return Control(law, (), (), (FAULT,))
