"""Simulations for tests that look below `pf.run`."""

from __future__ import annotations

from typing import Any

from pfaffian.control.law import Control
from pfaffian.control.open_loop import open_loop
from pfaffian.simulate.step.simulation import Simulation
from pfaffian.simulate.step.step import Scheme
from pfaffian.states.abstract_system import AbstractSystem


def simulation(system: AbstractSystem, scheme: Scheme, law: Control | None = None, *others: Any, **named: Any) -> Simulation:
    """Simulation with the same arguments; without a law it has the open loop."""
    return Simulation(system, scheme, law or open_loop(system.mechanism), *others, **named)
