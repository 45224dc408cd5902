"""The errors that the steps of a run add to the quantities that its equations balance: energy and momenta.

The error of the energy is its change less the work that is done on the machine.

The parts of a machine determine whether anything does work on it. If no input or law acts, nothing damps, and neither forces
nor constraints depend on time, the change of energy over the run is the error of all steps. The change of a momentum beyond
the impulse of weight is such an error too, if weight alone changes that momentum. In all other cases the comparisons with half
steps give an upper estimate. Where parts only dissipate energy, as contacts and friction do, any rise of the energy between two
records is an error of the steps, which the comparisons miss if they fall between two impacts.
"""

from __future__ import annotations

from typing import NamedTuple

import casadi as ca
import numpy as np

from pfaffian.control.open_loop import is_open
from pfaffian.kernel.remember import remembered
from pfaffian.model.constraint import Closure, Holonomic, Nonholonomic, Target
from pfaffian.model.force import Dissipation, GeneralisedForce, KineticEnergy, Potential, Spring, Wrench
from pfaffian.model.load_loss import LoadLoss
from pfaffian.model.path_force import PathSpring
from pfaffian.model.traced_function import untraced
from pfaffian.parts.contact import CompoundLoss
from pfaffian.parts.elastic import PoseDamper
from pfaffian.parts.friction import ContactFriction, JointFriction
from pfaffian.parts.rebound import NoForce
from pfaffian.simulate.error.accuracy import StepErrorMonitor
from pfaffian.simulate.error.between_comparisons import add_bursts
from pfaffian.simulate.error.momenta import BaseMomenta
from pfaffian.simulate.step.simulation import Simulation
from pfaffian.terms.applied_forces import potential_energy
from pfaffian.terms.kinematics import Kinematics
from pfaffian.terms.pfaffian import position_residual, target_rows
from pfaffian.terms.terms import shared, symbols

SMALL = 1e-7
"""Kinetic energy below this fraction of the other energies counts as zero: its changes are rounding."""


LOSSES = (CompoundLoss, JointFriction, ContactFriction, PoseDamper, NoForce)
"""Force laws that only dissipate energy."""


class Cost(NamedTuple):
    """The errors of the steps of each run: nan where no step was compared, and for energy and momenta also where it stopped.

    error: (runs,) accumulated error, see `Watch.gathered`.
    energy: (runs,) error of the energy [J], None if it is not recorded.   estimated: whether it is an upper estimate.
    rise: (runs,) the largest rise of the energy although nothing drives the machine [J], zero if something may drive it.
    momentum: (runs, k) errors of `momenta`, None if the machine has none.
    certain: (runs,) the errors of energy and momenta that are exact, as an error relative to the largest speed.
    """

    error: np.ndarray
    energy: np.ndarray | None
    estimated: bool
    rise: np.ndarray
    momentum: np.ndarray | None
    momenta: BaseMomenta | None
    certain: np.ndarray


def cost_of(
    watch: StepErrorMonitor, x: np.ndarray, stopped: np.ndarray, E: np.ndarray, T: np.ndarray, q: np.ndarray, v: np.ndarray
) -> Cost | None:
    """The errors of the steps of all runs; None if no step was compared.

    x: (runs, nx) last states.   stopped: (runs,) the step at which a run stopped, -1 if it did not.
    E, T, q, v: recorded energy and kinetic energy (times, runs, 1) and state (times, runs, nq or nv); (times, runs, 0) for
    each that is not recorded.
    """
    gathered = watch.gathered(v, stopped)
    if gathered is None:
        return None
    error, balance_errors = gathered
    add_bursts(watch, q, v, stopped, error, balance_errors)
    if (stopped >= 0).any():
        balance_errors[stopped >= 0] = np.nan
    pushed, momentum, rise, certain = balance_errors[:, E.shape[2] :], None, np.zeros(len(x)), np.zeros(len(x))
    s, driven = watch.loop.simulation, watch.loop.series.any()
    estimated = driven or not only_inputs_work(s)
    energy = None if not E.size else balance_errors[:, 0] if estimated else E[-1, :, 0] - E[0, :, 0]
    if energy is not None and estimated and not driven and only_inputs_drive(s):
        rise = _rise(E[:, :, 0])
        energy = np.where(stopped >= 0, energy, np.fmax(energy, rise))
    if energy is not None and T.size and (rise.any() or not estimated):
        certain = _speed_error(watch, rise if estimated else energy, E[:, :, 0], T[:, :, 0])
    if watch.halves.momenta is not None:
        momentum, conserved_error = _momentum(watch, pushed, x, stopped)
        certain = np.fmax(certain, conserved_error)
    return Cost(error, energy, bool(estimated), rise, momentum, watch.halves.momenta, certain)


def _rise(E: np.ndarray) -> np.ndarray:
    """(runs,) the largest rise of energies (times, runs) above an earlier value."""
    return np.asarray(np.fmax.reduce(E - np.fmin.accumulate(E, axis=0), axis=0))


def _speed_error(watch: StepErrorMonitor, error: np.ndarray, E: np.ndarray, T: np.ndarray) -> np.ndarray:
    """(runs,) error of the energy, expressed as a relative error of the largest speed.   E, T: (times, runs).

    The energy of a free fall over the duration of the run sets the scale if nothing moves and the energy happens to be zero.
    """
    largest = np.fmax.reduce(T, axis=0)
    if not (np.abs(error) / (2 * watch.bound) > largest).any():
        return np.zeros_like(largest)
    m = watch.mechanism
    mass, g = sum((link.mass for link in symbols(m).kinematics.tree.links), ca.SX(0)), ca.norm_2(m.gravity)
    fall = float(m.value(mass * (g * watch.loop.when.duration) ** 2 / 2).item())
    largest += SMALL * (np.fmax.reduce(np.abs(E), axis=0) + fall)
    return np.divide(np.abs(error), 2 * largest, out=np.zeros_like(largest), where=largest > 0)


def _momentum(watch: StepErrorMonitor, pushed: np.ndarray, x: np.ndarray, stopped: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(runs, k) errors of all momenta, and (runs,) the largest error of a conserved one, as a relative error of its speed.

    pushed: (runs, ..) errors of the momenta that are not conserved.
    """
    momenta, when = watch.halves.momenta, watch.loop.when
    assert momenta is not None
    errors, relative_error = np.full((len(x), len(momenta.names)), np.nan), np.zeros(len(x))
    errors[:, momenta.pushed] = pushed
    runs = np.flatnonzero((stopped < 0) & np.isfinite(watch.comparisons[0].error[:, 0]))
    runs = runs[: watch.momenta_count(runs)]
    if not momenta.conserved.any() or not runs.size:
        return errors, relative_error
    a, rate, inertia = watch.halves.momenta_at(when.first, watch.loop.q_and_v(when.first, watch.begin[runs], runs), runs)
    b, *_ = watch.halves.momenta_at(when.end, watch.loop.q_and_v(when.end, x[runs], runs), runs)
    conserved = momenta.conserved
    errors[np.ix_(runs, conserved)] = (b - a - rate * (when.steps * when.step))[:, conserved]
    unit = [watch.halves.sizes.units.index(unit) for unit in momenta.v_units]
    with np.errstate(all="ignore"):
        ratios = np.abs(errors[runs]) / (inertia * watch.largest[runs][:, unit])
    relative_error[runs] = np.fmax.reduce(np.where(conserved & (ratios < np.inf), ratios, 0), axis=1)
    return errors, relative_error


@remembered(64)
def only_inputs_work(s: Simulation) -> bool:
    """Whether only the inputs of a run can change the energy of its machine."""
    m = s.mechanism
    undamped = all(j.damping.is_zero() for j in m.joints) and all(
        c.damping is None and c.friction is None for c in m.loop_joints.values()
    )
    return only_inputs_drive(s) and undamped and all(map(_conservative, m.all_forces))


@remembered(64)
def only_inputs_drive(s: Simulation) -> bool:
    """Whether only the inputs of a run can raise the energy of its machine."""
    m = s.mechanism
    if not is_open(s.control) or s.changing.visible or m.servos or any(c.returns is not None for c in m.coordinates):
        return False
    k = shared(m).kinematics
    if not all(_conservative(f) or _only_dissipates(f) for f in m.all_forces) or ca.depends_on(potential_energy(k), k.t):
        return False
    return all(_workless(k, c) for c in m.ideal) and not ca.depends_on(ca.vertcat(shared(m).T, k.q_dot), k.t)


def _only_dissipates(force: object) -> bool:
    """Whether a force that is not conservative can only dissipate energy."""
    law = force.value if isinstance(force, Wrench) else getattr(force, "function", None)
    law = untraced(law)
    known = isinstance(force, (Wrench, GeneralisedForce, Dissipation)) and isinstance(law, LOSSES)
    return known or isinstance(force, (Spring, PathSpring, LoadLoss))


def _conservative(force: object) -> bool:
    """Whether a force conserves energy: it has a potential and no damping, adds kinetic energy, or is a wrench that the run
    takes as an input."""
    if isinstance(force, Wrench):
        return force.value is None
    return isinstance(force, (Potential, KineticEnergy)) or (
        isinstance(force, (Spring, PathSpring)) and force.damping.is_zero()
    )


def _workless(k: Kinematics, c: Target) -> bool:
    """Whether a constraint is always active and its reaction does no work: phi(q) = 0, or A(q) v = 0."""
    if c.active is not None or not isinstance(c, (Closure, Holonomic, Nonholonomic)):
        return False
    if isinstance(c, (Closure, Holonomic)):
        return not ca.depends_on(position_residual(k, c), k.t)
    rows = target_rows(k, c)
    at_rest = ca.substitute(rows.eta, k.v, ca.SX.zeros(*k.v.shape))
    return at_rest.is_zero() and not ca.depends_on(rows.A, ca.vertcat(k.v, k.t))
