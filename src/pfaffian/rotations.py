"""The rotation nearest to a matrix or to pairs of directions.

nearest_rotation, special_polar      to a matrix
wahba, critical_rotations            to directions
"""

from pfaffian.model.rotations import critical_rotations, nearest_rotation, special_polar, wahba

__all__ = [
    "critical_rotations",
    "nearest_rotation",
    "special_polar",
    "wahba",
]
