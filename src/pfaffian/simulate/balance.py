"""What a run has to keep: the energy of a machine on which nothing works.

Where nothing works on a machine is read off its parts: no input or law pushes, nothing damps, and neither forces nor
constraints depend on the time. Then the energy at the end less that at the start is the doing of the steps.
"""

from __future__ import annotations

import casadi as ca
import numpy as np

from pfaffian.model.constraint import Closure, Holonomic, Nonholonomic, Target
from pfaffian.model.force import KineticEnergy, Potential, Spring, Wrench
from pfaffian.model.mechanism import Mechanism
from pfaffian.simulate.simulation import Simulation
from pfaffian.terms.forces import potential_energy
from pfaffian.terms.kinematics import Kinematics
from pfaffian.terms.pfaffian import position_residual, target_rows
from pfaffian.terms.present import remembered
from pfaffian.terms.terms import symbols

SMALL = 1e-7
"""Part of other energies beside which kinetic energy is none: what it changes by is rounding."""


def energy_made(s: Simulation, series: np.ndarray, E: np.ndarray) -> np.ndarray | None:
    """(runs,) [J] what the steps made of it, nan of runs that stopped; None where something else works on the machine.

    series: inputs of the run.   E: (times, runs) recorded, or (0, runs).
    """
    if not len(E) or s.control or s.switches or series.any() or not keeps_energy(s.mechanism):
        return None
    return E[-1] - E[0]


def beside_motion(m: Mechanism, made: np.ndarray, E: np.ndarray, T: np.ndarray, duration: float) -> np.ndarray:
    """(runs,) energy made as what it is of the largest speed.

    E, T: (times, runs) recorded energies [J].   duration: [s]; what a free fall of the machine gains in it tells what is small
    where nothing moves and the energy happens to be zero.
    """
    mass, g = sum((link.mass for link in symbols(m).kinematics.tree.links), ca.SX(0)), ca.norm_2(m.gravity)
    fall = float(m.value(mass * (g * duration) ** 2 / 2).item())
    most = np.fmax.reduce(T, axis=0) + SMALL * (np.fmax.reduce(np.abs(E), axis=0) + fall)
    return np.divide(np.abs(made), 2 * most, out=np.zeros_like(most), where=most > 0)


@remembered(64)
def keeps_energy(m: Mechanism) -> bool:
    """Whether nothing but inputs can change the energy of a machine."""
    if m.servos or not all(j.damping.is_zero() for j in m.joints):
        return False
    k = symbols(m).kinematics
    if not all(_conservative(force) for force in m.forces) or ca.depends_on(potential_energy(k), k.t):
        return False
    return all(_workless(k, c) for c in m.ideal) and not ca.depends_on(ca.vertcat(symbols(m).T, k.q_dot), k.t)


def _conservative(force: object) -> bool:
    if isinstance(force, Wrench):
        return force.value is None
    return isinstance(force, (Potential, KineticEnergy)) or (isinstance(force, Spring) and force.damping.is_zero())


def _workless(k: Kinematics, c: Target) -> bool:
    """Whether a constraint lasts, and its reaction does no work: phi(q) = 0, or A(q) v = 0."""
    if c.active is not None or not isinstance(c, (Closure, Holonomic, Nonholonomic)):
        return False
    if isinstance(c, (Closure, Holonomic)):
        return not ca.depends_on(position_residual(k, c), k.t)
    rows = target_rows(k, c)
    at_rest = ca.substitute(rows.eta, k.v, ca.SX.zeros(*k.v.shape))
    return at_rest.is_zero() and not ca.depends_on(rows.A, ca.vertcat(k.v, k.t))
