"""Calculus along the velocities of a mechanism, and the matrices of its graph.

directional_derivative, covariant_hessian                        of functions
commutation_coefficients, connection_coefficients                of the velocities and the mass matrix
linearise_along                                                  along a motion
graph_matrices                                                   of the tree
"""

from pfaffian.evaluate.calculus import (
    commutation_coefficients,
    connection_coefficients,
    covariant_hessian,
    directional_derivative,
    linearise_along,
)
from pfaffian.model.graph import graph_matrices

__all__ = [
    "commutation_coefficients",
    "connection_coefficients",
    "covariant_hessian",
    "directional_derivative",
    "graph_matrices",
    "linearise_along",
]
