"""Ready-made machines that fly by propellers, and the limits of their propellers.

multicopter, thrust_multicopter, bicopter      machines
QUADCOPTER, TRICOPTER                          parameters of two real machines, as arguments of `multicopter`
thrust_polygon                                 limits of the inputs of propellers that tilt
bicopter_coupling_length                       how much the inputs of a bicopter push it sideways as they turn it

Example:
    >>> import pfaffian as pf
    >>> pf.multicopters.multicopter("quadcopter", **pf.multicopters.QUADCOPTER)
    <Mechanism 'quadcopter': 5 bodies, 5 joints (nq 11, nv 10), 10 forces, inputs motor 1, motor 2, motor 3, motor 4>
"""

from pfaffian.parts.multicopter import QUADCOPTER as QUADCOPTER
from pfaffian.parts.multicopter import TRICOPTER as TRICOPTER
from pfaffian.parts.multicopter import bicopter as bicopter
from pfaffian.parts.multicopter import bicopter_coupling_length as bicopter_coupling_length
from pfaffian.parts.multicopter import multicopter as multicopter
from pfaffian.parts.multicopter import thrust_multicopter as thrust_multicopter
from pfaffian.parts.multicopter import thrust_polygon as thrust_polygon
