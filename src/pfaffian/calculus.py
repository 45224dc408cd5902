"""Calculus along the velocities of a mechanism, and the matrices of its graph.

directional_derivative, covariant_hessian                        derivatives of functions of the configuration
commutation_coefficients, connection_coefficients                coefficients of the velocities and of the mass matrix
coriolis_matrix, acceleration_energy                             expressions, from a metric and from bodies
jvp, vjp, motion_derivatives                                     derivatives of the motion: forward, backward, as expressions
inverse_dynamics_derivatives                                     derivatives of the inputs that a motion needs
step_derivatives, rollout, accurate_rollout                      derivatives of one step, and of many in both modes
linearise_along                                                  equations of small deviations from a motion
equilibrium_path                                                 equilibria along a parameter, with folds and branches
graph_matrices                                                   incidence and path matrices of joints and bodies
"""

from pfaffian.differentiation.accurate_rollout import accurate_rollout as accurate_rollout
from pfaffian.differentiation.sensitivity import rollout as rollout
from pfaffian.differentiation.sensitivity import step_derivatives as step_derivatives
from pfaffian.evaluate.configuration_calculus import commutation_coefficients as commutation_coefficients
from pfaffian.evaluate.configuration_calculus import connection_coefficients as connection_coefficients
from pfaffian.evaluate.configuration_calculus import covariant_hessian as covariant_hessian
from pfaffian.evaluate.configuration_calculus import directional_derivative as directional_derivative
from pfaffian.evaluate.configuration_calculus import linearise_along as linearise_along
from pfaffian.evaluate.derivatives import jvp as jvp
from pfaffian.evaluate.derivatives import motion_derivatives as motion_derivatives
from pfaffian.evaluate.derivatives import vjp as vjp
from pfaffian.evaluate.inverse_derivatives import inverse_dynamics_derivatives as inverse_dynamics_derivatives
from pfaffian.model.graph import graph_matrices as graph_matrices
from pfaffian.starts.equilibrium_path import equilibrium_path as equilibrium_path
from pfaffian.terms.connection import coriolis_matrix as coriolis_matrix
from pfaffian.terms.hamel import acceleration_energy as acceleration_energy
