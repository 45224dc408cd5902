"""Servo constraints as a control law: forces of chosen inputs maintain a prescribed motion. [ider]"""

from __future__ import annotations

import casadi as ca

from pfaffian.control.command import Command, Fault
from pfaffian.control.law import Control, maker
from pfaffian.dynamics.controlforce import control_force, fault
from pfaffian.errors import ModelError, brief
from pfaffian.model.constraint import Servo
from pfaffian.terms.terms import Terms


@maker
def servo_control(*servos: Servo) -> Control:
    """Maintain servo constraints by chosen inputs, on a mechanism that does not contain the constraints. [ider (14)-(19)]

    Args:
        servos: servo constraints, one after another, made by `pf.servo` with names of inputs as directions; components of a
            wrench are inputs too.
    Returns:
        Control that records error and error_rate of the constraints.
    Stops a run: the chosen inputs cannot produce the required acceleration.
    Raises ModelError: no servo constraint, an argument that is not one, or directions that are not names of inputs.

    Example:
        >>> import pfaffian as pf
        >>> from pfaffian import control
        >>> rail = pf.joint("rail", "prismatic", "world", "cart", axis=(1, 0, 0))
        >>> m = pf.mechanism("cart", [pf.body("cart", 2.0)], [rail], actuators=[pf.actuator("motor", "rail")])
        >>> motion = pf.holonomic("speed up", lambda k: k.joint("rail") - 0.5 * k.t**2)
        >>> law = control.servo_control(pf.servo(motion, ["motor"]))
        >>> run = pf.run(m, duration=0.05, step=0.01, control=law, backend="numpy")
        >>> run["u"].values[-1].round(6)  # 2 kg at 1 m/s^2
        array([2.])
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
        constrained = m.with_(constraints=m.constraints + servos)
        under = Terms(constrained, terms.q, terms.v, ca.SX(m.nu, 1), terms.t)
        x = control_force(under)
        u = ca.SX.zeros(m.nu, 1)
        # The servo constraints of the mechanism itself, if any, come first in mu; their forces are not inputs of this law.
        for i, name in enumerate(used, start=x.mu.numel() - len(used)):
            u[m.u_names.index(name)] = x.mu[i]
        return Command(
            u, ca.SX(0, 1), 1 - x.realisable, {"task_error": under.servo.phi, "task_error_rate": under.servo.eta}, x.side
        )

    return Control(law, (), (), (Fault(fault(servos)),))
