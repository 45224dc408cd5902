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

from pfaffian.dynamics.controlforce import control_force as control_force
from pfaffian.dynamics.multipliers import minimum_norm_multipliers as minimum_norm_multipliers
from pfaffian.dynamics.multipliers import unique_multipliers as unique_multipliers
from pfaffian.dynamics.projection import coupling as coupling
from pfaffian.dynamics.projection import length_metric as length_metric
from pfaffian.dynamics.projection import projector as projector
from pfaffian.dynamics.quasivelocity import FACTORS as FACTORS
from pfaffian.dynamics.quasivelocity import quasi_velocity as quasi_velocity
from pfaffian.dynamics.quasivelocity import reduced_quasi_velocity as reduced_quasi_velocity
from pfaffian.evaluate.complete import complete_acceleration as complete_acceleration
from pfaffian.evaluate.realisability import realisability as realisability
from pfaffian.evaluate.transported_basis import transport_basis as transport_basis
from pfaffian.model.constraint import acceleration_constraint as acceleration_constraint
from pfaffian.model.constraint import active_while as active_while
from pfaffian.simulate.singularities import singularities as singularities
from pfaffian.simulate.variables import normalise as normalise
from pfaffian.terms.stabilised import stabilised as stabilised
