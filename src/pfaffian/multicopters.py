"""Ready-made machines that fly by propellers, and what their propellers can do.

multicopter, thrust_multicopter, bicopter      machines
QUADCOPTER, TRICOPTER                          parameters of two that were built, for `multicopter`
thrust_polygon                                 limits of propellers that tilt
bicopter_coupling_length                       how far propellers push sideways as they turn a bicopter

Example:
    >>> import pfaffian as pf
    >>> pf.multicopters.multicopter("quadcopter", **pf.multicopters.QUADCOPTER)
    <Mechanism 'quadcopter': 5 bodies, 5 joints (nq 11, nv 10), 10 forces, inputs motor 1, motor 2, motor 3, motor 4>
"""

from pfaffian.model.multicopter import QUADCOPTER as QUADCOPTER
from pfaffian.model.multicopter import TRICOPTER as TRICOPTER
from pfaffian.model.multicopter import bicopter as bicopter
from pfaffian.model.multicopter import bicopter_coupling_length as bicopter_coupling_length
from pfaffian.model.multicopter import multicopter as multicopter
from pfaffian.model.multicopter import thrust_multicopter as thrust_multicopter
from pfaffian.model.multicopter import thrust_polygon as thrust_polygon
