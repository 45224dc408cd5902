"""Quaternions of a file whose length is not 1: a rotation does not depend on it, but one of the numbers may be wrong."""

from __future__ import annotations

import math
from collections.abc import Sequence

DIGITS = 1e-3
"""Largest difference of a length from 1 that counts as rounding: files give four digits or more."""

NORMALISED = "rotations by quaternions that are not of unit length are normalised"
"""Message of the warning that lists them."""


def is_of_unit_length(quaternion: Sequence[float]) -> bool:
    """Whether the length of a quaternion is 1 to the digits of a file."""
    return abs(math.hypot(*quaternion) - 1) <= DIGITS
