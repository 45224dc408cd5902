"""Rotations (`so3`) and poses (`se3`) as expressions or numbers; what the rest of the library computes with."""

from pfaffian.maths import se3, so3

__all__ = ["se3", "so3"]
