"""The rotation nearest to a matrix or to pairs of directions.

nearest_rotation, special_polar      to a matrix
wahba, critical_rotations            to directions
"""

from pfaffian.model.rotations import critical_rotations as critical_rotations
from pfaffian.model.rotations import nearest_rotation as nearest_rotation
from pfaffian.model.rotations import special_polar as special_polar
from pfaffian.model.rotations import wahba as wahba
