"""What constraints do to motions and forces: projectors, multipliers, control forces.

projector, coupling, length_metric                            motion along the constraints, and force across them
minimum_norm_multipliers, unique_multipliers                  forces of redundant rows
control_force, realisability                                  whether chosen forces can hold chosen motions, and which forces
quasi_velocity, reduced_quasi_velocity, FACTORS               velocities in which kinetic energy is |y|^2 / 2
normalise                                                     coordinates corrected to satisfy their own definitions
acceleration_constraint                                       a constraint on accelerations
active_while                                                  a constraint that comes and goes
stabilised                                                    constraints that a run draws back to, at a rate
transport_basis                                               a smooth basis of the null space along a motion
complete_acceleration                                         accelerations of which some components are given
singularities                                                 how near a parallel machine is to its singular configurations
"""

from pfaffian.dynamics.controlforce import control_force
from pfaffian.dynamics.multipliers import minimum_norm_multipliers, unique_multipliers
from pfaffian.dynamics.projection import coupling, length_metric, projector
from pfaffian.dynamics.quasivelocity import FACTORS, quasi_velocity, reduced_quasi_velocity
from pfaffian.evaluate.complete import complete_acceleration
from pfaffian.evaluate.realisability import realisability
from pfaffian.evaluate.transported_basis import transport_basis
from pfaffian.model.constraint import acceleration_constraint, active_while
from pfaffian.simulate.singularities import singularities
from pfaffian.simulate.variables import normalise
from pfaffian.terms.stabilised import stabilised

__all__ = [
    "FACTORS",
    "acceleration_constraint",
    "active_while",
    "complete_acceleration",
    "control_force",
    "coupling",
    "length_metric",
    "minimum_norm_multipliers",
    "normalise",
    "projector",
    "quasi_velocity",
    "realisability",
    "reduced_quasi_velocity",
    "singularities",
    "stabilised",
    "transport_basis",
    "unique_multipliers",
]
