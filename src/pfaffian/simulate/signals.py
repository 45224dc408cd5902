"""What a run records: states, energies, constraint signals, a control law's own, a caller's outputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import casadi as ca

from pfaffian.control.law import Command
from pfaffian.dynamics.controlforce import control_force
from pfaffian.dynamics.motion import Motion, shortest_change
from pfaffian.dynamics.multipliers import minimum_norm_multipliers
from pfaffian.errors import ModelError
from pfaffian.model.mechanism import Mechanism
from pfaffian.simulate.step import largest
from pfaffian.terms.kinematics import Kinematics
from pfaffian.terms.pfaffian import row_names
from pfaffian.terms.terms import Terms, symbols


class Signal(NamedTuple):
    """unit: of the entries.   dim, names: what the entries run over, if the signal is no single number."""

    unit: str
    dim: str | None = None
    names: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        return len(self.names) if self.dim else 1


def standard(m: Mechanism) -> dict[str, Signal]:
    """The signals that every run of a mechanism records."""
    signals = {
        "q": Signal("per coordinate", "coordinate", m.q_names),
        "v": Signal("per velocity", "velocity", m.v_names),
        "energy": Signal("J"),
        "kinetic_energy": Signal("J"),
    }
    if m.nu:
        signals["u"] = Signal("per input", "input", m.u_names)
    k = symbols(m).kinematics
    if m.ideal:
        rows = row_names(k)
        signals |= {
            "phi": Signal("per row", "row", rows),
            "violation": Signal("unit of phi"),
            "velocity_violation": Signal("unit of phi / s"),
            "rank": Signal("1"),
            "regularity": Signal("1"),
            "reaction": Signal("per velocity", "velocity", m.v_names),
            "multiplier": Signal("per row", "row", rows),
        }
    if m.servos:
        rows = row_names(k, tuple(s.target for s in m.servos))
        signals |= {
            "servo_force": Signal("unit of the direction", "servo_row", rows),
            "servo_hold": Signal("1"),
            "servo_error": Signal("per row", "servo_row", rows),
            "servo_rate": Signal("per row / s", "servo_row", rows),
        }
    return signals


STRUCTURAL = 1e-6
"""A row with less than this left of it is redundant everywhere, not close to a singular configuration."""


def regularity(T: Terms) -> ca.SX:
    """How much is left of the weakest independent constraint row, 1 at best, near 0 close to a singular configuration."""
    left = shortest_change(T, lambda Lam: T.rows.phi).left
    return ca.sqrt(ca.mmin(ca.fmin(1, ca.if_else(left > STRUCTURAL**2, left, 1))))


def columns(T: Terms, motion: Motion, command: Command, outputs: Mapping[str, Callable[[Kinematics], Any]]) -> dict[str, ca.SX]:
    """Every recorded signal as a dense column. Raises ModelError: two of one name."""
    values = {"q": T.q, "v": T.v, "energy": T.T + T.V, "kinetic_energy": T.T}
    m = T.mechanism
    if m.nu:
        values["u"] = T.u
    if m.ideal:
        values |= {
            "phi": T.rows.phi,
            "violation": largest(T.rows.phi),
            "velocity_violation": largest(T.rows.eta),
            "rank": motion.rank,
            "regularity": regularity(T),
            "reaction": motion.reaction,
            "multiplier": minimum_norm_multipliers(T, motion.reaction),
        }
    if m.servos:
        x = control_force(T)
        values |= {"servo_force": x.mu, "servo_hold": x.hold, "servo_error": T.servo.phi, "servo_rate": T.servo.eta}
    extra = dict(command.signals) | {name: output(T.kinematics) for name, output in outputs.items()}
    for name in extra:
        if name in values or (name in command.signals and name in outputs):
            raise ModelError(f"output {name!r}: the result has a signal of that name already")
    return {name: ca.densify(ca.vec(ca.SX(x))) for name, x in (values | extra).items()}
