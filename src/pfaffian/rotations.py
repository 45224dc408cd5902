"""Rotations nearest to a matrix or to pairs of directions.

nearest_rotation, special_polar      the rotation nearest to a matrix
wahba                                the rotation that best maps directions onto others
critical_rotations                   all rotations at which -tr(P R), the cost of these problems, is stationary
"""

from pfaffian.parts.rotation_potential import critical_rotations as critical_rotations
from pfaffian.parts.rotation_potential import nearest_rotation as nearest_rotation
from pfaffian.parts.rotation_potential import special_polar as special_polar
from pfaffian.parts.rotation_potential import wahba as wahba
