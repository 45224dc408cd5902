"""Symmetries, and reduction by them and by constraints, as numbers; `pf.reduce` integrates what is left.

momentum_map, locked_inertia, shape_inertia, mechanical_connection, connection_curvature     of the first joint
isotropy_inertia, isotropy_connection, reduced_two_form                                       of one value of its momentum
constraint_connection, constraint_curvature                                                   of constraints on velocities
floating_base, generalised_jacobian, momentum_twist, reaction_null_space, holonomy            of machines with a floating base
symmetry                                                                                      finds symmetries
StatePart, chosen_velocities, hamiltonian                                                     of a System in another state
"""

from pfaffian.dynamics.floating import floating_base
from pfaffian.evaluate.connections import (
    connection_curvature,
    constraint_connection,
    constraint_curvature,
    isotropy_connection,
    isotropy_inertia,
    locked_inertia,
    mechanical_connection,
    momentum_map,
    reduced_two_form,
    shape_inertia,
)
from pfaffian.evaluate.floating import generalised_jacobian, momentum_twist, reaction_null_space
from pfaffian.evaluate.symmetry import symmetry
from pfaffian.simulate.holonomy import holonomy
from pfaffian.simulate.states import chosen_velocities, hamiltonian
from pfaffian.simulate.system import StatePart

__all__ = [
    "StatePart",
    "chosen_velocities",
    "connection_curvature",
    "constraint_connection",
    "constraint_curvature",
    "floating_base",
    "generalised_jacobian",
    "hamiltonian",
    "holonomy",
    "isotropy_connection",
    "isotropy_inertia",
    "locked_inertia",
    "mechanical_connection",
    "momentum_map",
    "momentum_twist",
    "reaction_null_space",
    "reduced_two_form",
    "shape_inertia",
    "symmetry",
]
