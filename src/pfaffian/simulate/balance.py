"""The errors that the steps of a run add to what its equations balance: its energy less the work done, and its momenta.

The parts of a machine tell whether anything does work on it: no input or law pushes, nothing damps, and neither forces nor
constraints depend on time. Then the change of energy over the run is the error of all steps, and so is the change of a momentum
beyond the impulse of weight, if weight alone changes it. In all other cases the looks give an upper estimate. Where parts only
take energy, such as contacts and friction, whatever it rises by between two records is an error of the steps, which the looks
miss if they fall between two impacts.
"""

from __future__ import annotations

from typing import NamedTuple

import casadi as ca
import numpy as np

from pfaffian.control.open_loop import is_open
from pfaffian.kernel.remember import remembered
from pfaffian.model.constraint import Closure, Holonomic, Nonholonomic, Target
from pfaffian.model.contact import ContactLoss, StopLoss
from pfaffian.model.drives import GapLoss
from pfaffian.model.elastic import PoseDamper
from pfaffian.model.force import Dissipation, GeneralisedForce, KineticEnergy, Potential, Spring, Wrench
from pfaffian.model.friction import ContactFriction, JointFriction
from pfaffian.model.traced_function import TracedFunction
from pfaffian.simulate.accuracy import Watch
from pfaffian.simulate.bursts import add_bursts
from pfaffian.simulate.momenta import Momenta
from pfaffian.simulate.simulation import Simulation
from pfaffian.terms.forces import potential_energy
from pfaffian.terms.kinematics import Kinematics
from pfaffian.terms.pfaffian import position_residual, target_rows
from pfaffian.terms.terms import shared, symbols

SMALL = 1e-7
"""Kinetic energy below this fraction of other energies counts as none: its changes are rounding."""


LOSSES = (ContactLoss, StopLoss, GapLoss, JointFriction, ContactFriction, PoseDamper)
"""Laws of forces that only take energy."""


class Cost(NamedTuple):
    """The errors of the steps of each run, nan where no step was compared; of energy and momenta also nan where it stopped.

    error: (runs,) accumulated error, see `Watch.gathered`.
    energy: (runs,) [J], None if it is not recorded.   estimated: whether that is an upper estimate.
    rise: (runs,) the most by which the energy rises although nothing drives the machine [J], zero where something may.
    momentum: (runs, k) of `momenta`, None of a machine that has none.
    certain: (runs,) the part of both that is exact, relative to the largest speed.
    """

    error: np.ndarray
    energy: np.ndarray | None
    estimated: bool
    rise: np.ndarray
    momentum: np.ndarray | None
    momenta: Momenta | None
    certain: np.ndarray


def cost_of(
    watch: Watch, x: np.ndarray, stopped: np.ndarray, E: np.ndarray, T: np.ndarray, q: np.ndarray, v: np.ndarray
) -> Cost | None:
    """The cost of the steps of all runs; None if no step was compared.

    x: (runs, nx) last states.   stopped: (runs,) the step at which a run stopped, -1 if it did not.
    E, T, q, v: (times, runs, 1, nq or nv) recorded energy, kinetic energy and state, (times, runs, 0) if they are not.
    """
    gathered = watch.gathered(v, stopped)
    if gathered is None:
        return None
    error, made = gathered
    add_bursts(watch, q, v, stopped, error, made)
    if (stopped >= 0).any():
        made[stopped >= 0] = np.nan
    pushed, momentum, rise, certain = made[:, E.shape[2] :], None, np.zeros(len(x)), np.zeros(len(x))
    s, driven = watch.loop.simulation, watch.loop.series.any()
    estimated = driven or not nothing_works(s)
    energy = None if not E.size else made[:, 0] if estimated else E[-1, :, 0] - E[0, :, 0]
    if energy is not None and estimated and not driven and nothing_drives(s):
        rise = _rise(E[:, :, 0])
        energy = np.where(stopped >= 0, energy, np.fmax(energy, rise))
    if energy is not None and T.size and (rise.any() or not estimated):
        certain = _beside_motion(watch, rise if estimated else energy, E[:, :, 0], T[:, :, 0])
    if watch.halves.momenta is not None:
        momentum, own = _momentum(watch, pushed, x, stopped)
        certain = np.fmax(certain, own)
    return Cost(error, energy, bool(estimated), rise, momentum, watch.halves.momenta, certain)


def _rise(E: np.ndarray) -> np.ndarray:
    """(runs,) the most by which energies (times, runs) are above an earlier one."""
    return np.asarray(np.fmax.reduce(E - np.fmin.accumulate(E, axis=0), axis=0))


def _beside_motion(watch: Watch, made: np.ndarray, E: np.ndarray, T: np.ndarray) -> np.ndarray:
    """(runs,) error of the energy as an error of the largest speed.   E, T: (times, runs).

    The energy of a free fall over the run gives the scale where nothing moves and the energy happens to be zero.
    """
    most = np.fmax.reduce(T, axis=0)
    if not (np.abs(made) / (2 * watch.bound) > most).any():
        return np.zeros_like(most)
    m = watch.mechanism
    mass, g = sum((link.mass for link in symbols(m).kinematics.tree.links), ca.SX(0)), ca.norm_2(m.gravity)
    fall = float(m.value(mass * (g * watch.loop.when.duration) ** 2 / 2).item())
    most += SMALL * (np.fmax.reduce(np.abs(E), axis=0) + fall)
    return np.divide(np.abs(made), 2 * most, out=np.zeros_like(most), where=most > 0)


def _momentum(watch: Watch, pushed: np.ndarray, x: np.ndarray, stopped: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(runs, k) errors of all momenta, and (runs,) those of the conserved ones relative to the largest speeds.

    pushed: (runs, ..) errors of those that are not conserved.
    """
    momenta, when = watch.halves.momenta, watch.loop.when
    assert momenta is not None
    made, error = np.full((len(x), len(momenta.names)), np.nan), np.zeros(len(x))
    made[:, momenta.pushed] = pushed
    some = np.flatnonzero((stopped < 0) & np.isfinite(watch.looks[0].error[:, 0]))
    some = some[: watch.few(some)]
    if not momenta.conserved.any() or not some.size:
        return made, error
    a, rate, inertia = watch.halves.momenta_at(when.first, watch.loop.q_and_v(when.first, watch.begin[some], some), some)
    b, *_ = watch.halves.momenta_at(when.end, watch.loop.q_and_v(when.end, x[some], some), some)
    kept = momenta.conserved
    made[np.ix_(some, kept)] = (b - a - rate * (when.steps * when.step))[:, kept]
    unit = [watch.halves.sizes.units.index(unit) for unit in momenta.v_units]
    with np.errstate(all="ignore"):
        beside = np.abs(made[some]) / (inertia * watch.largest[some][:, unit])
    error[some] = np.fmax.reduce(np.where(kept & (beside < np.inf), beside, 0), axis=1)
    return made, error


@remembered(64)
def nothing_works(s: Simulation) -> bool:
    """Whether nothing but the inputs of a run can change the energy of its machine."""
    m = s.mechanism
    return nothing_drives(s) and all(j.damping.is_zero() for j in m.joints) and all(map(_conservative, m.forces))


@remembered(64)
def nothing_drives(s: Simulation) -> bool:
    """Whether nothing but the inputs of a run can raise the energy of its machine."""
    m = s.mechanism
    if not is_open(s.control) or s.switches or m.servos or any(c.returns is not None for c in m.coordinates):
        return False
    k = shared(m).kinematics
    if not all(_conservative(f) or _only_takes(f) for f in m.forces) or ca.depends_on(potential_energy(k), k.t):
        return False
    return all(_workless(k, c) for c in m.ideal) and not ca.depends_on(ca.vertcat(shared(m).T, k.q_dot), k.t)


def _only_takes(force: object) -> bool:
    """Whether a force that is not conservative can but take energy."""
    law = force.value if isinstance(force, Wrench) else getattr(force, "function", None)
    law = law.function if isinstance(law, TracedFunction) else law
    known = isinstance(force, (Wrench, GeneralisedForce, Dissipation)) and isinstance(law, LOSSES)
    return known or isinstance(force, Spring)


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
