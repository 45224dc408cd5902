"""Ready-made machines that fly by propellers, and what their propellers can do.

multicopter, thrust_multicopter, bicopter      machines
QUADCOPTER, TRICOPTER                          parameters of two that were built, for `multicopter`
thrust_polygon, bicopter_lean                  limits of tilting propellers; how they push sideways as they turn the machine

Example:
    >>> import pfaffian as pf
    >>> pf.multicopters.multicopter("quadcopter", **pf.multicopters.QUADCOPTER)
    <Mechanism 'quadcopter': 5 bodies, 5 joints (nq 11, nv 10), 10 forces, inputs motor 1, motor 2, motor 3, motor 4>
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
