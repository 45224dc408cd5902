"""Symmetries, and the quantities of a reduction by symmetries and constraints; `pf.reduce` integrates the reduced machine.

momentum_map, locked_inertia, shape_inertia, mechanical_connection, connection_curvature     for the first joint
isotropy_inertia, isotropy_connection, reduced_two_form                                       for one value of its momentum
constraint_connection, constraint_curvature                                                   for constraints on velocities
floating_base, generalised_jacobian, momentum_twist, reaction_null_space, holonomy            for machines with a floating base
symmetry                                                                                      finds symmetries
AbstractSystem, StatePart, chosen_velocities, hamiltonian                                     a System with another state
"""

from pfaffian.dynamics.floating_base import floating_base as floating_base
from pfaffian.evaluate.connections import connection_curvature as connection_curvature
from pfaffian.evaluate.connections import constraint_connection as constraint_connection
from pfaffian.evaluate.connections import constraint_curvature as constraint_curvature
from pfaffian.evaluate.connections import isotropy_connection as isotropy_connection
from pfaffian.evaluate.connections import isotropy_inertia as isotropy_inertia
from pfaffian.evaluate.connections import locked_inertia as locked_inertia
from pfaffian.evaluate.connections import mechanical_connection as mechanical_connection
from pfaffian.evaluate.connections import momentum_map as momentum_map
from pfaffian.evaluate.connections import reduced_two_form as reduced_two_form
from pfaffian.evaluate.connections import shape_inertia as shape_inertia
from pfaffian.evaluate.floating_quantities import generalised_jacobian as generalised_jacobian
from pfaffian.evaluate.floating_quantities import momentum_twist as momentum_twist
from pfaffian.evaluate.floating_quantities import reaction_null_space as reaction_null_space
from pfaffian.evaluate.symmetry import symmetry as symmetry
from pfaffian.starts.holonomy import holonomy as holonomy
from pfaffian.states.abstract_system import AbstractSystem as AbstractSystem
from pfaffian.states.abstract_system import StatePart as StatePart
from pfaffian.states.chosen_velocities import chosen_velocities as chosen_velocities
from pfaffian.states.hamilton_state import hamiltonian as hamiltonian
