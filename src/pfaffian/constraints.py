"""What constraint rows are worth: projectors, multipliers, control forces.

projector, coupling, length_metric                            along the constraints and across them
minimum_norm_multipliers, unique_multipliers                  forces of redundant rows
realisability                                                 can chosen forces hold chosen motions?
transport_basis                                               a smooth basis of the null space along a motion
"""

from pfaffian.dynamics.multipliers import minimum_norm_multipliers, unique_multipliers
from pfaffian.dynamics.projection import coupling, length_metric, projector
from pfaffian.evaluate.realisability import realisability
from pfaffian.evaluate.transported_basis import transport_basis

__all__ = [
    "coupling",
    "length_metric",
    "minimum_norm_multipliers",
    "projector",
    "realisability",
    "transport_basis",
    "unique_multipliers",
]
