"""Machines that fly by propellers, ready-made, with what their propellers can give.

multicopter, thrust_multicopter, bicopter      machines
QUADCOPTER, TRICOPTER                          numbers of two that were built
thrust_polygon, bicopter_lean                  what the propellers can give
"""

from pfaffian.model.multicopter import (
    QUADCOPTER,
    TRICOPTER,
    bicopter,
    bicopter_lean,
    multicopter,
    thrust_multicopter,
    thrust_polygon,
)

__all__ = [
    "QUADCOPTER",
    "TRICOPTER",
    "bicopter",
    "bicopter_lean",
    "multicopter",
    "thrust_multicopter",
    "thrust_polygon",
]
