"""Tools for constraints: projectors, multipliers, control forces, and special kinds of constraints.

projector, coupling, length_metric                            motions that constraints allow, and the forces of constraints
minimum_norm_multipliers, unique_multipliers                  multipliers where rows are redundant
control_force, realisability                                  forces of servo constraints, and whether they suffice
quasi_velocity, reduced_quasi_velocity, FACTORS               velocities y with kinetic energy |y|^2 / 2
normalise                                                     coordinates put onto their conditions, such as unit length
acceleration_constraint                                       a constraint on accelerations
active_while                                                  a constraint that is active while a condition holds
taut_cable                                                    a massless cable of fixed length along a path
stabilised                                                    constraints whose residual decays at a given rate
transport_basis                                               a smooth basis of the null space along a motion
complete_acceleration                                         the other components of an acceleration given in part
singularities                                                 singularity measures of a closed machine
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
from pfaffian.model.path_force import taut_cable as taut_cable
from pfaffian.starts.singularities import singularities as singularities
from pfaffian.states.variables import normalise as normalise
from pfaffian.terms.stabilised import stabilised as stabilised
