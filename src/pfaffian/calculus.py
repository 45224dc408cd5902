"""Calculus along the velocities of a mechanism, and the matrices of its graph.

directional_derivative, covariant_hessian                        derivatives of functions of the configuration
commutation_coefficients, connection_coefficients                of the velocities, and of the mass matrix
coriolis_matrix, acceleration_energy                             expressions, from a metric and from bodies
jvp, vjp, motion_derivatives                                     of the motion along a direction, back, as expressions
inverse_dynamics_derivatives                                     of the inputs that a motion needs
step_derivatives, rollout                                        of a step, and of many forwards and backwards
linearise_along                                                  the equations of small deviations from a motion
equilibrium_path                                                 equilibria along a parameter, folds and branches
graph_matrices                                                   incidence and path matrices of joints and bodies
"""

from pfaffian.evaluate.calculus import (
    commutation_coefficients,
    connection_coefficients,
    covariant_hessian,
    directional_derivative,
    linearise_along,
)
from pfaffian.evaluate.derivatives import inverse_dynamics_derivatives, jvp, motion_derivatives, vjp
from pfaffian.model.graph import graph_matrices
from pfaffian.simulate.equilibrium_path import equilibrium_path
from pfaffian.simulate.sensitivity import rollout, step_derivatives
from pfaffian.terms.connection import coriolis_matrix
from pfaffian.terms.hamel import acceleration_energy

__all__ = [
    "acceleration_energy",
    "commutation_coefficients",
    "connection_coefficients",
    "coriolis_matrix",
    "covariant_hessian",
    "directional_derivative",
    "equilibrium_path",
    "graph_matrices",
    "inverse_dynamics_derivatives",
    "jvp",
    "linearise_along",
    "motion_derivatives",
    "rollout",
    "step_derivatives",
    "vjp",
]
